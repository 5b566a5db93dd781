"""What `verify` finds of the commit of each event: starts, forks, compactions, turns, edits, ends; and of states and
refs that no writer makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import damaging
import pytest
from damaging import THIRD, Found, Harm, Made, Recorded
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.model import canonical
from sessgit.store.index import Index
from sessgit.store.store import Store

LATER = "2026-03-01T11:00:00.000Z"


@pytest.fixture
def kept(store: Store, index: Index, claude: Path) -> Recorded:
    return damaging.three_turns(store, index, claude)


def missed(kept: Recorded, harms: dict[str, tuple[Harm, Found]], *, deep: bool = False) -> dict[str, Any]:
    """The same of what there is nothing to find in without any."""
    assert kept.found(deep=deep) == []
    return damaging.missed(kept, harms, deep=deep)


def made(event: str, change: Callable[[Made], object], branch: str = SESSION) -> Harm:
    return lambda kept: kept.again(event, change, branch)


def edit(change: Callable[[Recorded], dict[str, bytes | None]]) -> Harm:
    return lambda kept: kept.then("edit", "edit: x", files=change(kept))


def stated(**parts: dict[str, Any]) -> Harm:
    return edit(lambda kept: kept.stated(**parts))


def meta(**values: Any) -> Harm:
    return stated(metadata=values)


def test_a_start(kept: Recorded) -> None:
    assert missed(kept, {
        "a tail": (made("start", lambda k: k.put("tail.jsonl", b"{}\n")), ("wrong", "tree", "")),
        "a turn": (made("start", lambda k: k.put(f"{THIRD}/transcript.jsonl", b"{}\n")), ("wrong", "closed", "")),
    }) == {}  # fmt: skip


def test_a_turn(kept: Recorded) -> None:
    files = {"transcript.jsonl", "cells.jsonl"}
    assert missed(kept, {
        "comes twice": (
            lambda k: k.remade(message=str, parents=[k.tip()], files={f"{THIRD}/{name}": k.file(f"{THIRD}/{name}")
            for name in files}), ("wrong", "history", "@3"),
        ),
        "says what nobody said": (
            lambda k: k.remade(files=k.stated(authored={"labels": ["x"]})), ("note", "state", "@3"),
        ),
        "notes what nobody noted": (lambda k: k.remade(files={"pad/x.md": b"x"}), ("note", "state", "@3")),
        "a file of a later version": (lambda k: k.remade(files={"notes.md": b"x"}), ("note", "tree", "@3")),
    }) == {}  # fmt: skip


@pytest.mark.parametrize("by", [100, -9])
def test_places_that_are_none(kept: Recorded, by: int) -> None:
    """Behind bytes that nobody recorded, or where other lines stand."""
    (found,) = kept.store.message(kept.tip()).extents
    other = f"Extent: {found.offset + by}+{found.length}"
    kept.remade(message=lambda said: said.replace(f"Extent: {found.offset}+{found.length}", other))
    assert ("note", "extent", "") in kept.found(deep=False)


def test_a_turn_after_a_rewind_says_what_the_head_said(store: Store, index: Index, claude: Path) -> None:
    kept = Recorded(store, index, claude)
    talk = Talk().turns("one", "two", "three")
    kept.keep(talk)
    kept.then("edit", "edit: labels +x", files=kept.stated(authored={"labels": ["x"]}))
    index.sync()
    kept.keep(talk.rewind(1).turns("another way"))
    assert json.loads(kept.file("session.json"))["authored"]["labels"] == ["x"]
    assert kept.found() == []


def test_an_edit(kept: Recorded) -> None:
    wrong = ("wrong", "state", "@3")
    assert missed(kept, {
        "of kept files": (edit(lambda k: {"kept/a": b"a"}), ("wrong", "tree", "@3")),
        "of nothing that a session can be": (meta(agent="x"), wrong),
    }) == {}  # fmt: skip


def test_an_end(store: Store, index: Index, claude: Path) -> None:
    kept = Recorded(store, index, claude)
    kept.keep(Talk().turns("one").stop_lines(), final=True)
    assert missed(kept, {
        "with a label": (lambda k: k.remade(files=k.stated(authored={"labels": ["x"]})), ("wrong", "state", "@1")),
        "twice": (lambda k: k.remade(parents=[k.tip()]), ("wrong", "history", "@1")),
    }) == {}  # fmt: skip


def test_a_compaction(store: Store, index: Index, claude: Path) -> None:
    kept = Recorded(store, index, claude)
    kept.keep(Talk().turns("one").compact().turns("two").stop_lines())
    first = run_git(store.path, "rev-list", "--grep=^Event: compact", "-1", SESSION).strip()
    less = run_git(store.path, "show", f"{first}:tail.jsonl").encode().split(b"\n")[0] + b"\n"
    assert missed(kept, {
        "with other lines": (made("compact", lambda k: k.put("tail.jsonl", less)), ("damage", "extent", "@1")),
    }) == {}  # fmt: skip


def test_a_fork_of_the_agents(kept: Recorded) -> None:
    kept.keep(Talk().turns("one").branch(OTHER).turns("another"))

    def of(change: Callable[[Made], object]) -> Harm:
        return made("fork", change, OTHER)

    cells = "turns/0000/000001/cells.jsonl"
    assert missed(kept, {
        "live": (of(lambda k: k.put("live/plans/a.md", b"x")), ("wrong", "tree", f"{OTHER}@1")),
        "other ids": (of(lambda k: k.state("origin", replaced=["x"])), ("wrong", "fork", f"{OTHER}@1")),
        "a folder of its own": (of(lambda k: k.put(cells, b"{}\n")), ("wrong", "cells", f"{OTHER}@1")),
        "of nothing": (of(lambda k: k.state("origin", commit="here")), ("wrong", "state", f"{OTHER}@1")),
        "of another commit": (
            of(lambda k: k.state("origin", commit=k.store.commit(k.parents[0]).parents[0])),
            ("wrong", "fork", f"{OTHER}@1"),
        ),
        "of another turn": (of(lambda k: k.state("origin", turn=2)), ("wrong", "fork", f"{OTHER}@1")),
        "of another point": (of(lambda k: k.say(f"{SESSION}@1", f"{SESSION}@2")), ("wrong", "fork", f"{OTHER}@1")),
    }) == {}  # fmt: skip


def test_a_fork_of_ours(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    fork = sessgit.json("fork", SESSION, "--at", "1")["id"]
    store = Store(sessgit.store)
    kept = Recorded(store, Index(store.path, lambda: store), Path())
    length = json.loads(run_git(store.path, "show", f"{fork}:session.json"))["origin"]["prefix"]

    def of(change: Callable[[Made], object]) -> Harm:
        return made("fork", change, fork)

    assert missed(kept, {
        "places": (of(lambda k: k.say("Fork-Point", "Extent: 0+9/1\nFork-Point")), ("wrong", "extent", f"{fork}@1")),
        "another length": (of(lambda k: k.state("origin", prefix=length + 1)), ("wrong", "fork", fork)),
        "a proof that is none": (of(lambda k: k.state("origin", prefix_sha256="x")), ("wrong", "state", f"{fork}@1")),
    }) == {}  # fmt: skip


def test_states_that_no_writer_writes(kept: Recorded) -> None:
    def whole(**parts: Any) -> Harm:
        def change(kept: Recorded) -> dict[str, bytes | None]:
            return {"session.json": canonical.dumps({**json.loads(kept.file("session.json")), **parts})}

        return edit(change)

    harms = {
        "a yes": meta(headless="yes"), "a number for a word": meta(title=5), "no title": meta(title=None),
        "a list for a number": stated(cells={"count": [3]}), "half a turn": stated(trajectory={"turns": 3.5}),
        "less than none": stated(rules={"redacted": -1}), "a word for labels": stated(authored={"labels": "x"}),
        "a label that adds": stated(authored={"labels": ["+a"]}), "two in one": stated(authored={"labels": ["a,b"]}),
        "a label of two lines": stated(authored={"labels": ["a\nb"]}), "an origin that is none": whole(origin="x"),
        "an origin that is itself": whole(origin={
            "session": SESSION, "turn": 1, "commit": "1" * 40, "replaced": [], "prefix": 0, "prefix_sha256": "",
            "cell": "",
        }),
        "a mode that is none": whole(activation={"activation_mode": "x"}), "no object": whole(activation=5),
        "too deep": whole(activation={"max_depth": 9}), "less than free": stated(budget={"cost_usd": -1}),
        "memory in a list": whole(context={"working_memory": []}), "what follows": whole(context={"files": {}}),
        "what follows too": stated(trajectory={"events_count": 3}),
    }  # fmt: skip
    assert missed(kept, {name: (harm, ("wrong", "state", "@3")) for name, harm in harms.items()}) == {}


def test_refs(kept: Recorded) -> None:
    def broken(kept: Recorded) -> str:
        before = kept.tip()
        broken = kept.remade(files={"session.json": b"{"})
        run_git(kept.store.path, "update-ref", f"refs/heads/{SESSION}", before)
        return broken

    def stone(kept: Recorded, trailers: str) -> str:
        empty = kept.store.repo.edit_tree(None, {})
        return kept.store.repo.write_commit(empty, [], f"deleted\n\nSession: {OTHER}\n{trailers}", 0)

    def put(ref: str, what: Callable[[Recorded], str]) -> Harm:
        return lambda kept: run_git(kept.store.path, "update-ref", ref, what(kept))

    assert missed(kept, {
        "a tag at a tombstone": (
            put("refs/tags/x", lambda k: stone(k, f"Tip: {k.tip()}\n")), ("wrong", "tag", "refs/tags/x"),
        ),
        "a tag at what is broken": (put("refs/tags/x", broken), ("damage", "state", "refs/tags/x")),
        "a tombstone of nothing": (
            put(f"refs/deleted/{OTHER}", lambda k: stone(k, "")), ("wrong", "ref", f"refs/deleted/{OTHER}"),
        ),
        "live and archived": (
            put(f"refs/archive/{SESSION}", lambda k: k.store.commit(k.tip()).parents[0]),
            ("note", "ref", f"refs/archive/{SESSION}"),
        ),
    }) == {}  # fmt: skip
