"""Cells that are stored in ways that cannot be: every command that asks for them ends, and gives what there is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from kept import begins
from lexing import lexer_talk
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit.store import layout
from sessgit.store.store import Store


@begins
def lexer(shell: Shell) -> None:
    shell.recorded(lexer_talk(shell))


CELL = {"depends": [], "id": "cell_aaaaaaaa", "lines": [2, 3], "ok": True, "operation": "Read", "type": "tool"}


def put(sessgit: Shell, turn: int, name: str, data: bytes | None) -> None:
    """Puts a commit on the session's branch in which a file of a turn holds these bytes, or is not there."""
    store = Store(sessgit.store)
    tip = store.repo.ref(layout.head_ref(SESSION)) or ""
    blob = None if data is None else (store.repo.write_blob(data), False)
    tree = store.repo.edit_tree(store.tree(tip), {f"{layout.turn_folder(turn)}/{name}": blob})
    commit = store.repo.write_commit(tree, [tip], f"edit: x\n\nSession: {SESSION}\n", 1)
    store.repo.move(layout.head_ref(SESSION), tip, commit)


def rewrite(sessgit: Shell, turn: int, change: Callable[[list[dict[str, Any]]], list[Any]]) -> None:
    """Makes the stored cells of a turn what `change` makes of them."""
    store = Store(sessgit.store)
    entry = store.folder(store.repo.ref(layout.head_ref(SESSION)) or "", turn)[layout.CELLS]
    lines = [json.loads(line) for line in store.repo.blob(entry[0]).splitlines()]
    said = [line if isinstance(line, str) else json.dumps(line) for line in change(lines)]
    put(sessgit, turn, layout.CELLS, "".join(f"{line}\n" for line in said).encode())


ALL = (("cells", "5e55"), ("cells", "5e55", "--index"), ("show", "5e55@2.1", "--deps"), ("deps", "5e55@2.1"),
       ("deps", "5e55@2.1", "--down", "--graph"), ("why", "lexer.py", "5e55"))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda cells: ["{"], "cells.jsonl of turn 2 is damaged"),
        (lambda cells: ["[]"], "cells.jsonl of turn 2 is damaged"),
        (lambda cells: ['{"id":1,"lines":[Infinity]}'], "cells.jsonl of turn 2 is damaged"),
        (lambda cells: [{**CELL, "lines": [float("inf")]}], "cells.jsonl of turn 2 is damaged"),
        (lambda cells: [*cells, cells[1]], "several of its cells have the same id"),
        (lambda cells: [{**cells[0], "depends": [cells[0]["id"]]}, *cells[1:]], "in a circle: 2.1 → 2.1"),
        (lambda cells: [{**cells[0], "depends": [cells[2]["id"]]}, *cells[1:]], "in a circle: 2.1 → 2.3 → 2.2 → 2.1"),
        (
            lambda cells: [{**cells[0], "depends": [cells[1]["id"]]}, {**cells[1], "depends": []}, *cells[2:]],
            "some of its cells depend on later ones",
        ),
        (lambda cells: [{**cells[0], "depends": ["cell_zzzzzzzz"]}, *cells[1:]], "2.1 depends on cell_zzzzzzzz, which"),
        (lambda cells: [{**cells[0], "depends": ["\x1b[31m\x9b" * 99]}, *cells[1:]], "2.1 depends on"),
        (lambda cells: [{**CELL, "lines": [0, -7, 10**9]}, *cells], ""),
        (lambda cells: [{**CELL, "operation": "\x1b[31m \x9b" * 99, "id": "\x9b\u202e", "type": "\x1b"}, *cells], ""),
        (lambda cells: [{**CELL, "lines": []}, *cells], ""),
    ],
)
def test_cells_that_cannot_be(lexer: Shell, change: Callable[[list[dict[str, Any]]], list[Any]], told: str) -> None:
    """They are told of where the whole graph is asked for, and every command gives what there is."""
    rewrite(lexer, 2, change)
    for command in ALL:
        done = lexer(*command)
        assert done.code == 0, done
        assert done.out
        assert not any(char in done.out + done.err for char in "\x1b\x9b\u202e")
        if command[0] != "cells" or "--index" in command:
            assert (told in done.err) if told else not done.err
    index = json.loads(lexer("cells", "5e55", "--index").out)
    place = {name: number for number, name in enumerate(index["execution_order"])}
    assert len(place) == len(index["cells"])
    assert all(place[other] < place[name] for name in place for other in index["cells"][name]["dependencies"])
    damage = lexer.json("why", "lexer.py", "5e55")["damage"]
    assert any(told in one for one in damage) if told else damage == []


def test_damaged_cells_are_those_that_the_lines_tell(lexer: Shell) -> None:
    before = lexer.out("cells", "5e55"), lexer.out("deps", "5e55@3.5"), lexer.out("why", "lexer.py", "5e55")
    rewrite(lexer, 2, lambda cells: ["{"])
    after = lexer("cells", "5e55"), lexer("deps", "5e55@3.5"), lexer("why", "lexer.py", "5e55")
    assert tuple(done.out for done in after) == before
    assert all(done.err.startswith("(turn 2: cells.jsonl of turn 2 is damaged: ") for done in after)
    assert lexer.json("cells", "5e55")["damage"][0].startswith("turn 2: cells.jsonl of turn 2 is damaged")


def test_a_turn_without_lines_is_left_out(lexer: Shell) -> None:
    rewrite(lexer, 2, lambda cells: ["{"])
    put(lexer, 2, layout.BODY, None)
    done = lexer("cells", "5e55")
    assert (done.code, len(done.out.splitlines())) == (0, 14)
    assert f"(turn 2 was skipped: turn 2 of {SESSION} has no lines)\n" in done.err
    assert "·  3.5 depends on 9 cells\n" in lexer("deps", "5e55@3.5").out


def test_cells_whose_lines_are_gone(lexer: Shell) -> None:
    """They are there, and what they were about is not known."""
    put(lexer, 2, layout.BODY, None)
    lines = lexer.out("cells", "5e55", "--turn", "2").splitlines()[2:]
    assert [line.split()[0] for line in lines] == [f"2.{number}" for number in range(1, 10)]
    assert lines[1].split()[2:] == ["tool", "Read", "ok"]
    assert [step["cell"]["address"] for step in lexer.json("why", "lexer.py", "5e55")["steps"]] == ["1.4", "3.5"]
    assert "·  3.5 depends on 18 cells\n" in lexer.out("deps", "5e55@3.5")


def test_the_same_id_in_two_turns(lexer: Shell) -> None:
    rewrite(lexer, 1, lambda cells: [{**cells[0], "id": "cell_00000000"}, *cells[1:]])
    rewrite(lexer, 3, lambda cells: [{**cells[0], "id": "cell_00000000"}, *cells[1:]])
    done = lexer("show", f"{SESSION}@.cell_00000000")
    assert (done.code, done.err) == (
        4,
        "Error: 5e551011 has 2 cells cell_00000000.\nHint: Name one by its address: 5e551011@1.1, 5e551011@3.1.\n",
    )
    index = json.loads(lexer("cells", "5e55", "--index").out)
    assert len(index["cells"]) == 20


def test_folders_of_turns_that_are_gone(sessgit: Shell) -> None:
    """Of 120 turns the first 99 lie in a folder that git lost: the others are told, and what is missing is."""
    talk = sessgit.talk()
    for number in range(120):
        talk.prompt(f"go {number}").tool("Bash", {"command": "ls"})
    sessgit.recorded(talk)
    tip = run_git(sessgit.store, "rev-parse", SESSION).strip()
    lost = run_git(sessgit.store, "rev-parse", f"{tip}:turns/0000").strip()
    (pack,) = (sessgit.store / "objects" / "pack").glob("*.pack")
    away = pack.rename(sessgit.home / "pack")
    for index in pack.parent.glob(f"{pack.stem}.*"):
        index.unlink()
    with away.open("rb") as data:
        subprocess.run(["git", "-C", sessgit.store, "unpack-objects", "-q"], stdin=data, check=True)
    (sessgit.store / "objects" / lost[:2] / lost[2:]).unlink()
    for command in (("cells", "5e55", "--index"), ("deps", "5e55@120.2")):
        done = sessgit(*command)
        assert (done.code, bool(done.out)) == (0, True), done
        assert done.err.count(f"was skipped: the store lacks the object {lost}") == 99
    assert "120.2 depends on 41 cells" in done.out
