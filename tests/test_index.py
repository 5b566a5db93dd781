"""The index says what the refs say, whatever happened to its file."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from homes import claude_homes
from pictures import branches, prompts
from plain import Git, Keep
from transcripts import OTHER, SESSION, Talk

from sessgit.errors import NewerStoreError
from sessgit.history import stats
from sessgit.history.resolve import CallerContext, resolve_target
from sessgit.model.conversation.turn import Gist, Tokens
from sessgit.model.ids import Address
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Index, PastIndex
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store


def picture(index: Index) -> dict[str, Any]:
    """Everything that the index can be asked for."""
    index.sync()
    return {branch.name: (branch, index.turns(branch.name)) for branch in index.branches()}


def made_anew(store: Store, tmp_path: Path) -> dict[str, Any]:
    """What an index says that sees the store for the first time."""
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(store.path, copy, ignore=shutil.ignore_patterns("index.sqlite3*"))
    index = Index(copy, lambda: Store(copy))
    try:
        return picture(index)
    finally:
        index.close()


def in_one_file(store: Store) -> None:
    """Move the write-ahead log into the file of the index."""
    db = sqlite3.connect(store.paths.index)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


@pytest.fixture
def rich(keep: Keep) -> Talk:
    talk = Talk().turns("one", "two", "three").rewind(1).turns("two again").compact().turns("three again")
    keep(talk)
    keep(talk.fork_session().turns("elsewhere"))
    return talk


def test_rows(index: Index, store: Store, rich: Talk) -> None:
    index.sync()
    rows = index.turns(SESSION)
    assert [(row.turn, row.prompt, row.title, row.compacted) for row in rows] == [
        (1, rich.prompts[0], "one", False),
        (2, rich.prompts[3], "two again", False),
        (3, rich.prompts[4], "three again", True),
    ]
    assert rows[-1].commit == branches(store)[SESSION]
    assert rows[0].tokens.total == 1160
    assert index.turn(SESSION, 2) == rows[1]
    assert index.turn(SESSION, 9) is None
    assert {row.branch for row in index.with_prompt(rich.prompts[0])} == {
        f"{session}{end}" for session in (SESSION, OTHER) for end in ("", ".r-a0000002")
    }
    left = f"{SESSION}.r-a0000002"
    held = {row.branch: row.commit for row in index.with_prompt(rich.prompts[2])}
    assert held[left] == branches(store)[left]
    assert SESSION not in held
    assert index.with_prompt("none") == []
    assert index.turn_of_commit(rows[1].commit) == (SESSION, 2)
    assert index.turn_of_commit("0" * 40) is None
    assert (index.count_sessions(), stats.count_turns(index)) == (2, 6)
    assert index.left_behind(f"{SESSION}.r-a0000002", SESSION) == (1, 2)
    assert [branch.name for branch in index.branches(SESSION)] == [SESSION, f"{SESSION}.r-a0000002"]
    branch = index.branch(SESSION)
    assert branch is not None
    assert (branch.tip, branch.state) == (branches(store)[SESSION], store.state(branches(store)[SESSION]))


def test_followed_step_by_step(store: Store, index: Index, claude: Path, tmp_path: Path) -> None:
    """It says what a new one says."""
    talk = Talk().turns("one", "two").rewind(1).turns("two b").rewind(2).turns("three").prompt("four").answer("a")
    talk.answer("b").compact().rewind(0).turns("anew").rewind(3).turns("three b", "four b")
    path = talk.save(claude)
    data = path.read_bytes()
    path.write_bytes(b"")
    places = [place + 1 for place, byte in enumerate(data) if byte == 10]
    for number, (start, end) in enumerate(zip([0, *places], places, strict=False)):
        with path.open("ab") as file:
            file.write(data[start:end])
        record(
            Context(index, privacy=Privacy(RecordConfig("cell"))),
            TranscriptSource(path, SESSION, tmp_path, final=number % 7 == 6),
        )
        if number % 4 == 3:
            assert picture(index) == made_anew(store, tmp_path)
    for name, tip in branches(store).items():
        assert [row.prompt for row in index.turns(name)] == prompts(store, tip)


def test_a_branch_that_is_gone_or_moved_back(store: Store, index: Index, rich: Talk, tmp_path: Path, git: Git) -> None:
    index.sync()
    git("update-ref", "-d", f"refs/heads/{SESSION}.r-a0000002")
    git("update-ref", f"refs/heads/{SESSION}", f"{SESSION}~1")
    git("update-ref", "refs/heads/other-id", f"{OTHER}~1")
    git("pack-refs", "--all")
    assert picture(index) == made_anew(store, tmp_path)
    assert sorted(picture(index)) == [SESSION, OTHER, f"{OTHER}.r-a0000002", "other-id"]


def test_one_of_the_past_is_let_go_in_any_thread(store: Store, index: Index, rich: Talk) -> None:
    """Python collects what refers to itself wherever it is just at work."""
    index.sync()
    then = [PastIndex(index, {name: (tip, False) for name, tip in branches(store).items()}, {})]
    assert picture(then[0]) == picture(index)
    thread = threading.Thread(target=lambda: (then.clear(), gc.collect()))
    thread.start()
    thread.join()
    assert then == []


def test_one_session_is_brought_level_alone(store: Store, index: Index, rich: Talk, git: Git) -> None:
    index.sync()
    git("update-ref", f"refs/heads/{SESSION}", f"{SESSION}~2")
    git("update-ref", f"refs/heads/{OTHER}", f"{OTHER}~1")
    index.sync(OTHER)
    assert len(index.turns(SESSION)) == 3
    assert index.branch(OTHER).tip == branches(store)[OTHER]  # type: ignore[union-attr]


def test_the_store_is_not_opened_where_nothing_changed(store: Store, index: Index, rich: Talk) -> None:
    index.sync()

    def never() -> Store:
        raise AssertionError("opened")

    again = Index(store.path, never)
    again.sync()
    assert len(again.turns(SESSION)) == 3
    again.close()


@pytest.fixture
def reopened(store: Store, index: Index, rich: Talk) -> Iterator[Any]:
    """Opens the index again after something was done to its file, and closes it at the end."""
    index.sync()
    index.close()
    opened: list[Index] = []

    def open_() -> Index:
        opened.append(Index(store.path, lambda: store))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def test_a_missing_file(store: Store, reopened: Any, tmp_path: Path) -> None:
    store.paths.index.unlink()
    assert picture(reopened()) == made_anew(store, tmp_path)


@pytest.mark.parametrize("data", [b"", b"no database at all " * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_damaged_file(store: Store, reopened: Any, tmp_path: Path, data: bytes) -> None:
    store.paths.index.write_bytes(data)
    for name in ("index.sqlite3-wal", "index.sqlite3-shm"):
        (store.path / name).unlink(missing_ok=True)
    assert picture(reopened()) == made_anew(store, tmp_path)
    assert picture(reopened()) == made_anew(store, tmp_path)


@pytest.mark.parametrize("first", [1, 2, 4])
def test_a_file_whose_pages_are_damaged(store: Store, reopened: Any, tmp_path: Path, first: int) -> None:
    """Only a question finds that out; the file is then made anew and the question answered."""
    data = store.paths.index.read_bytes()
    kept = data[: first * 4096]
    store.paths.index.write_bytes(kept + b"\xa5" * (len(data) - len(kept)))
    index = reopened()
    whole = made_anew(store, tmp_path)
    assert (index.count_sessions(), stats.count_turns(index)) == (2, 6)
    assert picture(index) == whole
    keep_going = reopened()
    assert picture(keep_going) == whole


def test_names_that_are_damaged(store: Store, reopened: Any, tmp_path: Path) -> None:
    """SQLite puts them into what it says, and Python cannot read it."""
    in_one_file(store)
    data, right = store.paths.index.read_bytes(), b"CREATE INDEX recorded_prompt ON recorded(prompt)"
    assert data.count(right) == 1
    store.paths.index.write_bytes(data.replace(right, right.replace(b"ON recorded", b"ON rec\xf5rded")))
    assert picture(reopened()) == made_anew(store, tmp_path)


@pytest.mark.parametrize("state", [b"{", b"", b"\xa5" * 9])
def test_values_that_are_damaged(store: Store, reopened: Any, tmp_path: Path, state: bytes) -> None:
    paths = reopened().session_transcripts([SESSION])
    db = sqlite3.connect(store.paths.index)
    with db:
        db.execute("UPDATE branches SET state = ?", (state,))
    db.close()
    index = reopened()
    assert index.session_transcripts([SESSION]) == paths
    assert picture(index) == made_anew(store, tmp_path)


@pytest.mark.parametrize("version", [0, 1, 99])
def test_a_file_of_another_version(store: Store, reopened: Any, tmp_path: Path, version: int) -> None:
    db = sqlite3.connect(store.paths.index)
    db.execute("DROP TABLE holdings")
    db.execute("CREATE TABLE holdings(something TEXT)")
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()
    assert picture(reopened()) == made_anew(store, tmp_path)


def test_where_no_file_can_be_written_it_lives_in_memory(store: Store, reopened: Any, tmp_path: Path) -> None:
    store.paths.index.unlink()
    store.paths.index.mkdir()
    assert picture(reopened()) == made_anew(store, tmp_path)
    store.paths.index.rmdir()


def test_an_index_that_lost_its_turns_does_not_keep_one_from_recording(
    keep: Keep, store: Store, index: Index, rich: Talk
) -> None:
    index.sync()
    db = sqlite3.connect(store.paths.index)
    db.execute("DELETE FROM holdings")
    db.commit()
    db.close()
    keep(rich.turns("four"))
    assert [len(prompts(store, tip)) for name, tip in branches(store).items() if name == SESSION] == [4]


def test_it_is_readable_by_its_owner_alone(store: Store, index: Index) -> None:
    assert store.paths.index.stat().st_mode & 0o777 == 0o600
    assert layout.StorePaths(store.path).index == store.paths.index


def test_what_is_missing_for_a_while_comes_back_by_itself(store: Store, index: Index, keep: Keep) -> None:
    keep(Talk().turns("one", "two"))
    keep(Talk(OTHER).turns("else"))
    gone = index.turns(SESSION)[0].commit
    path = store.path / "objects" / gone[:2] / gone[2:]
    away = store.path.parent / "away"
    path.rename(away)
    index.close()
    (store.path / "index.sqlite3").unlink()
    damaged = Index(store.path, lambda: Store(store.path))
    damaged.sync()
    assert SESSION in damaged.damaged
    assert damaged.branch(SESSION) is None
    assert [row.title for row in damaged.turns(OTHER)] == ["else"]
    away.rename(path)
    damaged.sync()
    assert [row.title for row in damaged.turns(SESSION)] == ["one", "two"]
    assert damaged.damaged == {}
    damaged.close()


def test_what_a_list_is_chosen_by(store: Store, index: Index, rich: Talk, git: Git) -> None:
    index.sync()
    outlines = {outline.name: outline for outline in index.outlines()}
    assert sorted(outlines) == [SESSION, OTHER]
    mine, state = outlines[SESSION], index.branch(SESSION).state  # type: ignore[union-attr]
    assert (mine.agent_id, mine.project, mine.turns, mine.parent) == (SESSION, "/home/ada/shop", 3, "")
    assert (mine.created, mine.updated, mine.status, mine.labels) == (state.created, state.updated, "active", "[]")
    assert outlines[OTHER].parent == SESSION
    git("update-ref", f"refs/archive/{OTHER}", OTHER)
    git("update-ref", "-d", f"refs/heads/{OTHER}")
    index.sync()
    assert [(outline.name, bool(outline.archived)) for outline in index.outlines()] == [(OTHER, True), (SESSION, False)]
    assert index.branch(OTHER).archived  # type: ignore[union-attr]
    assert index.turns(OTHER)
    git("update-ref", f"refs/heads/{OTHER}", f"refs/archive/{OTHER}")
    index.sync(OTHER)
    assert not index.branch(OTHER).archived  # type: ignore[union-attr]


def test_which_turns_touched_a_file(keep: Keep, index: Index) -> None:
    talk = Talk().prompt("one").tool("Read", {"file_path": "/s/a.py"}).answer("a").stop_lines()
    talk.prompt("two").tool("Edit", {"file_path": "/s/a.py"}).tool("Write", {"file_path": "/s/b/c.py"}).answer("b")
    keep(talk)
    first, second = (row.commit for row in index.turns(SESSION))
    assert index.commits_touching("/s/a.py") == {first: False, second: True}
    assert (
        index.commits_touching("/s/b")
        == index.commits_touching("/s/b/")
        == index.commits_touching("*/c.py")
        == {second: True}
    )
    assert index.commits_touching("/s/a") == index.commits_touching("/s/a.p") == {}
    assert index.sessions_holding([second, "0" * 40]) == {SESSION}
    assert index.without_gist() == []


def test_what_is_not_remembered_is_told(store: Store, index: Index, keep: Keep) -> None:
    keep(Talk().turns("one", "two"))
    index.close()
    (store.path / "index.sqlite3").unlink()
    anew = Index(store.path, lambda: store)
    anew.sync()
    rows = anew.without_gist()
    assert [row.turn for row in rows] == [1, 2]
    anew.remember({rows[0].commit: Gist(("/a",), (), {"m": Tokens(1, 2, 3, 4)}, {"m": 2}, {"Read": 1})})
    assert [row.turn for row in anew.without_gist()] == [2]
    assert anew.gists([rows[0].commit])[rows[0].commit].tools == {"Read": 1}
    anew.close()


def test_the_raw_size_counts_what_is_shared_once(keep: Keep, index: Index) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    size = index.raw_size()
    assert 0 < size <= len(talk.data)
    keep(talk.branch(OTHER))
    assert index.raw_size() == size


def test_a_session_of_a_newer_format_leaves_the_others_usable(store: Store, index: Index, keep: Keep, git: Git) -> None:
    keep(Talk().turns("one"))
    keep(Talk(OTHER).turns("else"))
    tree = store.repo.edit_tree(store.tree(branches(store)[OTHER]), {"format": (store.repo.write_blob(b"2\n"), False)})
    git("update-ref", f"refs/heads/{OTHER}", store.repo.write_commit(tree, [], "x", 1))
    index.sync()
    assert [branch.name for branch in index.branches()] == [SESSION]
    where = CallerContext(claude_homes(store.path), "/", 1)
    assert resolve_target(index, Address(SESSION), where).branch.name == SESSION
    with pytest.raises(NewerStoreError, match="in format 2"):
        resolve_target(index, Address(OTHER), where)
