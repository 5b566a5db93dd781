"""What `verify` finds that stands further away: below what is kept for undo, in merges into a new session, in words of
the text index, and in sessions that come of several files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import damaging
import pytest
from damaging import Recorded, harmed
from merging import diverged
from plain import run_git
from shell import Shell
from test_verify import loose, unpack
from test_verify_sides import ENTRY
from transcripts import OTHER, SESSION, Talk

from sessgit.check import verify
from sessgit.history import search
from sessgit.model import canonical
from sessgit.store import fulltext
from sessgit.store import index as indexes
from sessgit.store.index import Index
from sessgit.store.store import Store


@pytest.fixture
def kept(store: Store, index: Index, claude: Path) -> Recorded:
    return damaging.three_turns(store, index, claude)


# What is kept for undo


def keep(kept: Recorded, tip: str) -> str:
    """Only an operation keeps it any more."""
    ref = "refs/keep/0123abcd-1"
    run_git(kept.store.path, "update-ref", ref, tip)
    move = {f"refs/heads/{SESSION}": [tip, None]}
    said = {
        "id": "0123abcd", "time": "2026-03-01T10:00:00.000Z", "command": "x", "summary": "x", "refs": move, "files": {},
        "undoes": "",
    }  # fmt: skip
    kept.store.paths.journal.write_text(json.dumps(said) + "\n")
    return ref


def test_what_is_kept_for_undo_is_looked_at(kept: Recorded) -> None:
    before = kept.tip()
    lines = kept.file(f"{damaging.THIRD}/transcript.jsonl").replace(b"Done.", b"Gone.")
    prompt = ("Prompt: a0000003", "Prompt: a0000009")
    for harm, wanted in (
        (lambda: kept.remade(files={f"{damaging.THIRD}/transcript.jsonl": lines}), ("damage", "hash")),
        (lambda: kept.remade(message=lambda said: said.replace(*prompt)), ("wrong", "trailer")),
    ):
        ref = keep(kept, harm())
        run_git(kept.store.path, "update-ref", f"refs/heads/{SESSION}", before)
        assert [one for one in kept.found(deep=False) if one[2] == ref] == [(*wanted, ref)]


def test_what_was_deleted_is_looked_at_as_long_as_it_can_come_back(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"), sessgit.talk(OTHER).turns("three"))
    blob = run_git(sessgit.store, "rev-parse", f"{SESSION}:turns/0000/000001/transcript.jsonl").strip()
    sessgit.out("delete", SESSION, "--yes")
    assert sessgit.json("verify")["findings"] == []
    unpack(sessgit.store)
    loose(sessgit.store, blob).unlink()
    done = sessgit("verify", "--json")
    found = json.loads(done.out)
    assert (done.code, found["damaged"], found["sessions"]) == (6, [], 1)
    assert [(one["kind"], one["where"][:10], one["objects"]) for one in found["findings"]] == [
        ("object", "refs/keep/", [blob])
    ]


# Merges into a new session


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recorded:
    """What two conversations said, in a third one: labels, claims, and an edit of ours behind its last turn."""
    shell = diverged(Shell(monkeypatch, capsys))
    theirs = shell.json("fork", SESSION, "--at", "2")["id"]
    shell.out("edit", theirs, "--label", "fast")
    shell.out("pad", "claim", "It pays.", "--into", theirs)
    shell.out("edit", SESSION, "--label", "ours", "--stage", "shaping")
    shell.out("pad", "claim", "It is small.", "--into", SESSION)
    shell.now += 60
    shell.out("merge", theirs, "--into", SESSION, "--new", "both")
    shell.out("edit", SESSION, "--label", "later")
    store = Store(shell.store)
    return Recorded(store, Index(store.path, lambda: store), Path())


def test_a_merge_into_a_new_session_says_what_its_sides_said(anew: Recorded) -> None:
    named = run_git(anew.store.path, "branch", "--format=%(refname:short)").split()
    (made,) = [name for name in named if "merge: " in run_git(anew.store.path, "log", "-1", "--format=%s", name, "--")]
    said = json.loads(run_git(anew.store.path, "show", f"{made}:session.json"))["authored"]
    assert (said["labels"], said["stage"]) == (["fast", "ours"], "shaping")
    assert anew.found() == []
    wanted = ("note", "merge", f"{made}@3")

    def stated(labels: list[str]) -> None:
        document = json.loads(run_git(anew.store.path, "show", f"{made}:session.json"))
        document["authored"]["labels"] = labels
        anew.remade(files={"session.json": canonical.dumps(document)}, branch=made)

    for harm in (
        lambda: stated([]),
        lambda: stated(["ours"]),
        lambda: stated(["fast", "nobody's"]),
        lambda: anew.remade(files={"pad/claims.jsonl": None}, branch=made),
        lambda: anew.remade(files={"pad/risks.jsonl": ENTRY}, branch=made),
    ):
        with harmed(anew):
            harm()
            assert wanted in anew.found(deep=False)


# Words of the text index


def rows_of(text: Path, word: str) -> list[int]:
    with closing(sqlite3.connect(text)) as db:
        return [row for (row,) in db.execute("SELECT rowid FROM words WHERE words MATCH ?", (word,))]


def test_which_lines_the_text_index_has_is_looked_at(kept: Recorded) -> None:
    """The words of a line are gone, or a line has some that says nothing."""
    assert search.update_fulltext(kept.index) == ""
    assert kept.found(index=kept.index) == []
    text = kept.store.paths.text
    whole = text.read_bytes()
    (row,) = rows_of(text, "answered: read")
    gone = "INSERT INTO words(words, rowid, asked, answered, did, tool) VALUES ('delete', ?, ?, ?, ?, ?)"
    said = "INSERT INTO words(rowid, asked, answered, did, tool) VALUES (?, ?, ?, ?, ?)"
    for statement, values in ((gone, (row, "", "Read.", "", "")), (said, (row + 1, "", "nobody's", "", ""))):
        with closing(sqlite3.connect(text)) as db, db:
            db.execute(statement, values)
        assert kept.found(index=kept.index) == [("wrong", "index", "text.sqlite3")], statement
        text.write_bytes(whole)
    assert kept.found(index=kept.index) == []


@pytest.fixture
def other(kept: Recorded) -> Iterator[Recorded]:
    """The same store, as another process has it open."""
    store = Store(kept.store.path)
    index = Index(store.path, lambda: store)
    yield Recorded(store, index, kept.folder)
    index.close()


def test_words_that_are_added_meanwhile_are_no_difference(
    kept: Recorded, other: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(OTHER).turns("one")
    kept.keep(talk)
    assert search.update_fulltext(kept.index) == ""
    kept.keep(talk.turns("two"))
    statements = list[str]()

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            statements.append(sql)
            if "FROM blocks" in sql:
                assert search.update_fulltext(other.index) == ""
            return super().execute(sql, *values)

    connect = partial(sqlite3.connect, factory=Connection)
    monkeypatch.setattr(fulltext, "sqlite3", SimpleNamespace(**{**vars(sqlite3), "connect": connect}))
    assert kept.found(index=kept.index) == []
    assert [sql for sql in statements if "FROM blocks" in sql]


@pytest.mark.parametrize("place", [(verify, "TurnTexts"), (indexes, "_rows_by_name")])
def test_turns_that_are_recorded_meanwhile_are_no_difference(
    kept: Recorded, other: Recorded, monkeypatch: pytest.MonkeyPatch, place: tuple[ModuleType, str]
) -> None:
    talk = Talk(OTHER).prompt("one").tool("Bash", {"command": "ls"})
    kept.keep(talk)
    assert search.update_fulltext(kept.index) == ""
    made, grown = getattr(*place), list[str]()

    def make(*values: Any) -> Any:
        if not grown:
            other.keep(talk.answer("Done."))
            grown.append(other.tip(OTHER))
        return made(*values)

    before = kept.tip(OTHER)
    monkeypatch.setattr(*place, make)
    assert kept.found(index=kept.index) == []
    assert grown != [before]
    assert kept.found(index=kept.index) == []


def test_words_of_what_no_branch_holds_are_passed_over(kept: Recorded) -> None:
    kept.keep(Talk(OTHER).turns("of another one"))
    assert search.update_fulltext(kept.index) == ""
    run_git(kept.store.path, "update-ref", "-d", f"refs/heads/{OTHER}")
    kept.index.sync()
    assert search.update_fulltext(kept.index) == ""
    assert rows_of(kept.store.paths.text, "another")
    assert [one for one in kept.found(index=kept.index) if one[1] != "ref"] == []
