"""What `verify` holds against more than a commit: joins and merges against both sides, states against the lines of a
file, indexes and the agent's own files against what is recorded."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import damaging
import pytest
from damaging import Recorded, missed
from merging import THEIRS, diverged, tip
from plain import run_git
from shell import Shell
from strategies import SECRET
from transcripts import OTHER, SESSION, Talk

from sessgit.history import search
from sessgit.model import canonical
from sessgit.record import tip_delivery
from sessgit.store.index import Index
from sessgit.store.store import Store

ENTRY = b'{"cycle":1,"id":"5ae6f8b4","kind":"risk","session":"s","text":"a","time":"2026-03-01T10:00:00.000Z"}\n'


@pytest.fixture
def kept(store: Store, index: Index, claude: Path) -> Recorded:
    return damaging.three_turns(store, index, claude)


def state(kept: Recorded, **parts: dict[str, Any]) -> None:
    kept.remade(files=kept.stated(**parts))


# Joins


def joined(kept: Recorded, later: int = 1) -> Recorded:
    """What people said of the conversation on two machines, the second one so many seconds later."""
    store, before = kept.store, kept.tip()
    one = kept.then("edit", "edit: label a", files={**kept.stated(authored={"labels": ["a"]}), "pad/x.md": b"x"})
    run_git(store.path, "update-ref", f"refs/heads/{SESSION}", before)
    kept.then("edit", "edit: stage shaping", files={**kept.stated(authored={"stage": "shaping"}), "pad/y.md": b"y"})
    made = tip_delivery.reconcile_tips(store, one, kept.remade(later=later))
    store.repo.release()
    assert made.outcome == "joined"
    run_git(store.path, "update-ref", f"refs/heads/{SESSION}", made.tip)
    return kept


def leaves_turns_out(kept: Recorded) -> None:
    store, head = kept.store, kept.tip()
    second = store.commit(store.commit(head).parents[1]).parents[0]
    (fewer,) = store.commit(second).parents
    message = f"edit: joined with {second[:12]}\n\nSession: {SESSION}\nEvent: edit\n"
    made = store.repo.write_commit(store.tree(fewer), [fewer, second], message, store.commit(second).time)
    store.repo.release()
    run_git(store.path, "update-ref", f"refs/heads/{SESSION}", made)


def test_a_join_is_a_function_of_its_sides(kept: Recorded) -> None:
    joined(kept)
    assert kept.found() == []
    assert json.loads(kept.file("session.json"))["authored"]["stage"] == "shaping"
    wrong, tree = ("wrong", "state", "@3"), ("wrong", "tree", "@3")
    assert missed(kept, {
        "a label lost": (lambda k: state(k, authored={"labels": []}), wrong),
        "a name that nobody gave": (lambda k: state(k, authored={"name": "x"}), wrong),
        "a file of the pad lost": (lambda k: k.remade(files={"pad/y.md": None}), tree),
        "a file kept by nobody": (lambda k: k.remade(files={"kept/a": b"a"}), tree),
        "turns left out": (leaves_turns_out, ("damage", "join", "@2")),
    }) == {}  # fmt: skip


def test_which_of_two_of_one_time_is_later_nobody_knows(kept: Recorded) -> None:
    """The one with the greater id, and a purge gives other ids: what differs then is only noted."""
    joined(kept, later=0)
    assert kept.found() == []
    state(kept, authored={"labels": []})
    assert kept.found() == [("note", "state", "@3")]


# Merges


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recorded:
    """What a fork brought back: turns, a label, and an entry of its pad."""
    shell = diverged(Shell(monkeypatch, capsys))
    made = shell.json("fork", SESSION, "--at", "2")["id"]
    shell.out("edit", made, "--label", "fast")
    shell.out("pad", "claim", "It pays.", "--into", made)
    shell.out("merge", made, "--into", SESSION)
    store = Store(shell.store)
    assert store.commit(tip(shell)).parents[1] == tip(shell, made)
    return Recorded(store, Index(store.path, lambda: store), Path())


def test_a_merge_says_what_its_sides_said(merged: Recorded) -> None:
    assert merged.found() == []
    wrong = ("wrong", "merge", "@3")
    assert missed(merged, {
        "a label lost": (lambda k: state(k, authored={"labels": []}), wrong),
        "another title": (lambda k: state(k, metadata={"title": "x"}), wrong),
        "another project": (lambda k: state(k, metadata={"cwd": "/x"}), wrong),
        "ended": (lambda k: state(k, metadata={"state": "interrupted"}), wrong),
        "ended later": (lambda k: state(k, metadata={"ended_at": "2027-03-01T11:00:00.000Z"}), wrong),
        "an entry lost": (lambda k: k.remade(files={"pad/claims.jsonl": None}), wrong),
        "a pad of nobody": (lambda k: k.remade(files={"pad/risks.jsonl": ENTRY}), wrong),
        "a counter of nobody": (lambda k: state(k, budget={"total_recursive_calls": 5}), wrong),
        "a memory of nobody": (
            lambda k: k.remade(files={"session.json": canonical.dumps(
                {**json.loads(k.file("session.json")), "context": {"working_memory": {"a": 1}}}
            )}), wrong,
        ),
        "of another one": (
            lambda k: k.remade(message=lambda said: re.sub("(?m)^Origin: [^@\n]*", f"Origin: {SESSION}", said)), wrong,
        ),
    }) == {}  # fmt: skip


@pytest.mark.parametrize("theirs", [THEIRS, f"{THEIRS}@3", OTHER])
def test_labels_of_a_merge_of_turns(
    theirs: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a conversation that nobody said anything of, of some of its turns, and of one that has nothing in common."""
    shell = diverged(Shell(monkeypatch, capsys))
    shell.recorded(shell.talk(OTHER).turns("of another kind"))
    shell.out("edit", SESSION, "--label", "ours")
    shell.out("merge", theirs, "--into", SESSION)
    if theirs != OTHER:
        shell.out("edit", THEIRS, "--label", "later")
    store = Store(shell.store)
    kept = Recorded(store, Index(store.path, lambda: store), Path())
    assert kept.found() == []
    assert missed(kept, {
        str(labels): (lambda k, labels=labels: state(k, authored={"labels": labels}), ("wrong", "merge", "@4"))
        for labels in ([], ["nobody's"], ["nobody's", "ours"])
    }) == {}  # fmt: skip


# What is remembered


def test_words_that_an_index_remembers(kept: Recorded) -> None:
    assert search.update_fulltext(kept.index) == ""
    assert kept.found(index=kept.index) == []
    text = kept.store.paths.text
    whole = text.read_bytes()
    for harm in (
        "UPDATE bodies SET hashes = zeroblob(length(hashes)) WHERE turn = 2",
        "UPDATE placed SET number = number + 1 WHERE number = 3",
        "DELETE FROM blocks",
    ):
        with closing(sqlite3.connect(text)) as db, db:
            db.execute(harm)
        assert kept.found(index=kept.index) == [("wrong", "index", "text.sqlite3")], harm
        text.write_bytes(whole)
    with closing(sqlite3.connect(text)) as db, db:
        db.execute("DELETE FROM blocks")
        db.execute("PRAGMA user_version = 1")
    assert kept.found(index=kept.index) == []  # it is made anew as it is
    text.write_bytes(b"no database" * 1000)
    assert kept.found(index=kept.index) == [("wrong", "index", "text.sqlite3")]


# The agent's own files


def test_proofs_that_prove_something_else(store: Store, index: Index, claude: Path) -> None:
    made = Recorded(store, index, claude)
    talk = Talk().prompt(f"the key is {SECRET}").answer("Thanks.")
    made.keep(talk)
    assert made.found() == []
    proof = store.message(made.tip()).get("Original-HMAC")
    made.remade(message=lambda said: said.replace(proof, "0" * 64))
    # A cursor goes with its commit: without that one it is not asked.
    cursor = store.paths.cursor(SESSION)
    cursor.write_text(json.dumps({**json.loads(cursor.read_bytes()), "commit": made.tip()}))
    assert made.found() == [("note", "proof", "")]
    path = claude / f"{SESSION}.jsonl"
    path.write_bytes(talk.data.replace(b"Thanks", b"Thinks"))
    assert made.found() == []
