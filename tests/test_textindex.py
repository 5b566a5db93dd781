"""The text index: it follows the store, whatever happens to it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from plain import Git, Keep
from strategies import REDACTED, SECRET
from transcripts import OTHER, SESSION, Talk

from sessgit.errors import StoreError
from sessgit.history import search
from sessgit.history.search import SearchScope
from sessgit.recorder import drain as in_background
from sessgit.store import layout
from sessgit.store.fulltext import TextIndex
from sessgit.store.index import Index, remove_cache
from sessgit.store.store import Store

Places = Callable[..., list[str]]


@pytest.fixture
def places(index: Index) -> Places:
    """Where a query is found, the best place first; what is left behind has a mark."""

    def places(query: str, **where: str) -> list[str]:
        index.sync()
        results = search.search(index, query, SearchScope(**where), 100, 160, lambda done, all_: None)
        assert (results.total, results.behind) == (len(results.turns), "")
        return [
            f"{result.branch.name.replace(SESSION, 'one').replace(OTHER, 'two')}@{result.place}"
            + " left" * result.left_behind
            for result in results.turns
        ]

    return places


def rows(store: Store) -> list[tuple[int, ...]]:
    """How many lines, turns and bodies are indexed."""
    db = sqlite3.connect(store.paths.text)
    tables = ("words_docsize", "turns", "bodies")
    found = tuple(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    db.close()
    return [found]


def test_each_line_is_found_in_its_cell(keep: Keep, places: Places) -> None:
    talk = Talk().prompt("why is it slow").tool("Bash", {"command": "make bench"}, "took nine seconds")
    keep(talk.answer("The lexer backtracks.").turns("make it quick"))
    assert places("slow") == ["one@1"]
    assert places("bench") == places("seconds") == ["one@1.2"]
    assert places("backtracks") == ["one@1.3"]
    assert places("quick") == ["one@2"]
    assert places("slow backtracks") == ["one@1"]
    assert places("slow quick") == []
    assert places("make") == ["one@2", "one@1.2"]


def test_a_turn_that_grew_adds_its_new_lines_only(keep: Keep, places: Places, store: Store) -> None:
    talk = Talk().prompt("begin").answer("alpha")
    keep(talk)
    assert places("alpha") == ["one@1.1"]
    assert rows(store) == [(2, 1, 1)]
    keep(talk.tool("Bash", {"command": "beta"}, "gamma"))
    assert places("beta") == places("gamma") == ["one@1.3"]
    assert places("alpha") == ["one@1.1"]
    assert rows(store) == [(4, 1, 1)]


def test_forks_share_the_words_of_what_they_share(keep: Keep, places: Places, store: Store) -> None:
    talk = Talk().turns("alpha", "beta")
    keep(talk)
    assert places("alpha") == ["one@1"]
    before = rows(store)
    keep(talk.branch().turns("gamma"))
    assert places("alpha") == ["one@1"]
    assert places("alpha", session=OTHER) == ["two@1"]
    assert places("gamma") == ["two@3"]
    assert rows(store) == [(before[0][0] + 2, before[0][1] + 1, before[0][2] + 1)]


def test_what_a_rewind_left_behind_is_found_and_marked(keep: Keep, places: Places) -> None:
    talk = Talk().turns("alpha", "beta")
    keep(talk)
    assert places("beta") == ["one@2"]
    keep(talk.rewind(1).turns("gamma"))
    (left,) = places("beta")
    assert left.startswith("one.r-")
    assert left.endswith("@2 left")
    assert places("alpha") == ["one@1"]
    assert places("gamma") == ["one@2"]
    assert places("beta", session=SESSION) == [left]


def test_the_tool_can_be_named(keep: Keep, places: Places) -> None:
    talk = Talk().prompt("look at x").tool("Read", {"file_path": "x"}).tool("mcp__hub__find", {"what": "x"})
    keep(talk.answer("x"))
    assert places("x", tool="Read") == ["one@1.2"]
    assert places("x", tool="read") == ["one@1.2"]
    assert places("x", tool="find") == places("x", tool="mcp__hub__find") == ["one@1.4"]
    assert places("x", tool="hub") == places("x", tool="Rea") == []
    assert places("x", place="answers") == ["one@1.5"]
    assert places("x", place="prompts") == ["one@1"]
    assert places("x", place="tools") == ["one@1.2"]


def test_long_texts_are_found_at_both_ends(keep: Keep, places: Places, store: Store) -> None:
    keep(Talk().prompt("read").tool("Read", {"file_path": "x"}, "alpha " + "so on, " * 60_000 + " omega"))
    assert (places("alpha"), places("omega")) == (["one@1.2"], ["one@1.2"])


def test_secrets_are_not_in_it(keep: Keep, places: Places, store: Store) -> None:
    keep(Talk().prompt(f"use {SECRET}").tool("Bash", {"command": f"curl {SECRET}"}, SECRET))
    assert places(SECRET) == []
    assert places(REDACTED) == ["one@1"]
    stored = b"".join(path.read_bytes() for path in store.path.glob("text.sqlite3*"))
    assert SECRET.rpartition("_")[2].lower().encode() not in stored


def test_a_branch_that_is_no_more_is_not_found(keep: Keep, places: Places, git: Git) -> None:
    keep(Talk().turns("alpha"))
    keep(Talk(OTHER).turns("alpha too"))
    assert len(places("alpha")) == 2
    git("update-ref", "-d", f"refs/heads/{OTHER}")
    assert places("alpha") == ["one@1"]
    git("update-ref", "-d", f"refs/heads/{SESSION}")
    assert places("alpha") == []


def test_an_archived_session_is_found(keep: Keep, places: Places, git: Git) -> None:
    keep(Talk().turns("alpha"))
    tip = git("rev-parse", f"refs/heads/{SESSION}").strip()
    git("update-ref", layout.ARCHIVE + SESSION, tip)
    git("update-ref", "-d", f"refs/heads/{SESSION}")
    assert places("alpha") == ["one@1"]


def test_a_turn_that_cannot_be_read_hides_no_other(keep: Keep, places: Places, store: Store, git: Git) -> None:
    keep(Talk().turns("alpha", "beta"))
    blob = git("rev-parse", f"refs/heads/{SESSION}:turns/0000/000001/transcript.jsonl").strip()
    path = store.path / "objects" / blob[:2] / blob[2:]
    saved = path.read_bytes()
    path.unlink()
    try:
        assert places("alpha") == []
        assert places("beta") == ["one@2"]
    finally:
        path.write_bytes(saved)


# The file


@pytest.mark.parametrize("damage", ["begun", "middle", "version", "empty", "gone", "names", "values"])
def test_a_file_that_is_of_no_use_is_made_anew(keep: Keep, places: Places, store: Store, damage: str) -> None:
    keep(Talk().turns(*(f"alpha{n} " + "beta " * 50 for n in range(40))))
    assert places("alpha7") == ["one@8"]
    path = store.paths.text
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if damage == "version":
        db.execute("PRAGMA user_version = 99")
    if damage == "values":
        db.execute("DROP TABLE level")
        db.execute("CREATE TABLE level(refs)")
        db.execute("INSERT INTO level VALUES (NULL)")
        db.execute("DELETE FROM words_config WHERE k = 'version'")
    db.commit()
    db.close()
    data = bytearray(path.read_bytes())
    if damage == "begun":
        data[:100] = b"x" * 100
    elif damage == "middle":
        data[4096:] = b"\xa5" * (len(data) - 4096)
    elif damage == "names":
        data = data.replace(b"CREATE INDEX placed_at ON placed", b"CREATE INDEX placed_at ON pl\xf5ced")
    if damage == "gone":
        remove_cache(path)
    elif damage not in ("version", "values"):
        path.write_bytes(b"" if damage == "empty" else data)
    assert places("alpha7") == ["one@8"]
    assert len(places("beta")) == 40


def test_one_that_holds_mostly_what_is_gone_is_made_anew(keep: Keep, places: Places, store: Store, git: Git) -> None:
    keep(Talk().turns("alpha"))
    keep(Talk(OTHER).turns("beta", "gamma"))
    assert places("beta") == ["two@1"]
    git("update-ref", "-d", f"refs/heads/{OTHER}")
    assert places("alpha") == ["one@1"]
    assert rows(store)[0][1] == 3
    keep(Talk("5e551011-0000-4000-8000-000000000003").turns("delta"))
    git("update-ref", "-d", "refs/heads/5e551011-0000-4000-8000-000000000003")
    keep(Talk().turns("alpha", "epsilon"))
    assert places("epsilon") == ["one@2"]
    assert rows(store)[0][1] == 2


def test_where_it_cannot_be_written_it_says_what_to_do(keep: Keep, index: Index, store: Store) -> None:
    keep(Talk().turns("alpha"))
    store.paths.text.mkdir()
    with pytest.raises(StoreError) as refused:
        search.sessions_with(index, "alpha")
    assert str(refused.value) == f"cannot write the full-text index: {store.paths.text}"
    assert "SESSGIT_STORE" in refused.value.hint


def test_one_that_cannot_be_written_is_asked_as_it_is(
    keep: Keep, index: Index, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(Talk().turns("alpha"))
    assert search.sessions_with(index, "alpha") == ([SESSION], "")
    keep(Talk().turns("alpha", "beta"))

    def refuse(*_: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr("sessgit.store.index._open_cache_file", refuse)
    results = search.search(index, "alpha", SearchScope(), 10, 160, lambda done, all_: None)
    assert results.total == 1
    assert results.behind == "cannot write the full-text index: the most recent turns are not searched"
    assert search.results_json("alpha", results)["exact"] is False
    assert search.sessions_with(index, "beta") == ([], results.behind)


# Several at once

_FOLLOW = """
import os, signal, sys
from pathlib import Path
from sessgit.history import search
from sessgit.store.index import Index
from sessgit.store.store import Store
from sessgit.store.fulltext import TextIndex

search._BATCH_SIZE = 300
path, after = Path(sys.argv[1]), int(sys.argv[2])
store = Store(path)
index = Index(path, lambda: store)
add, count = TextIndex.add, 0

def counted(*arguments):
    global count
    count += 1
    if count == after:
        os.kill(os.getpid(), signal.SIGKILL)
    return add(*arguments)

TextIndex.add = counted
index.sync()
text = TextIndex(path)
assert search.add_new_turns(index, text)
"""


def follower(store: Store, killed_after: int = 0) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _FOLLOW, str(store.path), str(killed_after)], env=dict(os.environ))


def test_two_that_follow_at_once_index_everything_once(keep: Keep, places: Places, store: Store) -> None:
    for number in range(1, 5):
        session = replace(Talk().file, session=f"5e551011-0000-4000-8000-00000000001{number}")
        keep(Talk(file=session).turns(*(f"alpha{number}x{n} beta" for n in range(6))))
    both = [follower(store) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert rows(store) == [(48, 24, 24)]
    assert len(places("beta")) == 24
    assert len(places("alpha3x5")) == 1


@pytest.mark.parametrize("after", [1, 5, 9])
def test_one_that_is_killed_leaves_nothing_half(keep: Keep, places: Places, store: Store, after: int) -> None:
    keep(Talk().turns(*(f"alpha{n} beta" for n in range(10))))
    assert follower(store, after).wait(60) == -9
    assert len(places("beta")) == 10
    assert rows(store) == [(20, 10, 10)]


def test_who_finds_it_locked_leaves_it_or_says_so(keep: Keep, index: Index, store: Store) -> None:
    keep(Talk().turns("alpha"))
    other = TextIndex(store.path)
    with other.writing():
        in_background.update_fulltext(index, 5.0)
    assert not search.is_up_to_date(index, other)
    in_background.update_fulltext(index, 5.0)
    assert search.is_up_to_date(index, other)
    other.close()


def test_a_short_time_is_kept_to(keep: Keep, index: Index, store: Store, tmp_path: Path) -> None:
    keep(Talk().turns("alpha"))
    text = TextIndex(store.path)
    assert not search.add_new_turns(index, text, seconds=0.0)
    assert search.add_new_turns(index, text)
    assert search.is_up_to_date(index, text)
    text.close()


def config(store: Store) -> dict[str, int]:
    db = sqlite3.connect(store.paths.text)
    found = dict(db.execute("SELECT k, v FROM words_config WHERE k LIKE '%merge'").fetchall())
    db.close()
    return found


def parts(store: Store) -> int:
    """How many parts of FTS5's index there are (“structure record” of fts5_index.c: 4 bytes, levels, segments)."""
    db = sqlite3.connect(store.paths.text)
    (record,) = db.execute("SELECT block FROM words_data WHERE id = 10").fetchone()
    db.close()
    return int(record[5])


def test_where_much_comes_at_once_parts_are_joined_at_the_end(
    keep: Keep, places: Places, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_BATCH_SIZE", 1)
    monkeypatch.setattr(search, "_BULK_TURNS", 2)
    keep(Talk(OTHER).turns("alpha"))
    talk = Talk().turns(*(f"alpha {number}" for number in range(7)))
    keep(talk)
    assert len(places("alpha")) == 8
    assert config(store) == {"automerge": 0, "crisismerge": 64}
    assert parts(store) == 8
    keep(talk.turns("one more"))
    assert len(places("more")) == 1
    assert config(store) == {"automerge": 4, "crisismerge": 16}
    monkeypatch.setattr(search, "_PARTS_BEFORE_MERGE", 2)
    keep(talk.turns("alpha and", "beta"))
    assert len(places("beta")) == 1
    assert parts(store) == 1
    assert len(places("alpha")) == 9
