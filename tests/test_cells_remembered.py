"""What the index remembers of cells: the same as the turns' folders hold, and of no turn that no branch has."""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lexing import lexer_talk
from plain import Keep, run_git
from shell import Shell
from strategies import Transcript, transcripts
from transcripts import OTHER, SESSION, Talk

from sessgit.history import cell_graph as graph
from sessgit.history.cell_graph import KINDS, Graph
from sessgit.model import stored_fields
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import layout
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

Rows = dict[str, tuple[Any, ...]]


def rows(index: Index) -> Rows:
    """What is remembered, by commit."""
    return {commit: tuple(told) for commit, *told in index._db.execute("SELECT * FROM cells")}


def change(index: Index, statement: str) -> None:
    with index._db as db:
        db.execute(statement)


def told(found: Graph) -> list[Any]:
    """All that there is to know of a graph."""
    cells = [(address, node.cell, node.use) for address, node in found.nodes.items()]
    return [cells, {kind: found.edges[kind] for kind in KINDS}, found.damage]


def asked(store: Store, index: Index) -> dict[str, list[Any]]:
    index.sync()
    return {branch.name: told(graph.read_graph(Context(index), branch)) for branch in index.branches()}


def talk() -> Talk:
    """Two turns: a file is written and read, a command run, and a path is none from the root."""
    made = Talk().prompt("write").tool("Write", {"file_path": "/a.py", "content": "x"}).answer("Written.")
    made.prompt("read").tool("Read", {"file_path": "/a.py"}, "x").tool("Bash", {"command": "cat a.py"}, "x")
    return (
        made.tool("Edit", {"file_path": "b/../b.py"}, "no", error=True).tool("Grep", {"pattern": "x"}).answer("Read.")
    )


@given(transcripts(secrets=True), st.sampled_from(["turn", "cell"]))
def test_the_recorder_and_a_reader_remember_the_same(transcript: Transcript, granularity: str) -> None:
    """Of any lines, and of what rewinds left behind: nothing is told that the folders do not hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "projects" / "-p" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(transcript.data)
        stores.create_store(Path(folder) / "store")
        store = Store(Path(folder) / "store")
        with closing(Index(store.path, lambda: store)) as index:
            record(
                Context(index, privacy=Privacy(RecordConfig(granularity, redact=True))),
                TranscriptSource(path, SESSION, Path(folder)),
            )
            recorded, first = rows(index), asked(store, index)
            assert rows(index) == recorded
            change(index, "DELETE FROM cells")
            assert asked(store, index) == first
            assert rows(index) == recorded
            assert asked(store, index) == first


def test_a_turn_that_goes_on_is_remembered_as_it_is(store: Store, index: Index, keep: Keep) -> None:
    growing = Talk().prompt("go").tool("Read", {"file_path": "/a.py"}, "x")
    keep(growing)
    keep(growing.tool("Write", {"file_path": "/a.py", "content": "y"}))
    (after,) = asked(store, index).values()
    assert [address for address, *_ in after[0]] == ["1.1", "1.2", "1.3", "1.4"]
    change(index, "DELETE FROM cells")
    assert asked(store, index)[SESSION] == after


@pytest.mark.parametrize(
    "damage",
    [
        "cells = '[]'", "folder = 'x'", "proof = 0", "proof = 'x'", "cells = NULL", "cells = x'ff'", "cells = 7",
        "cells = replace(cells, '1', '2')",
    ],
)  # fmt: skip
def test_a_damaged_row_is_read_anew(store: Store, index: Index, keep: Keep, damage: str) -> None:
    keep(talk())
    first, recorded = asked(store, index), rows(index)
    with index._db as db:  # the file may hold anything, whatever the table says
        db.execute("DROP TABLE cells")
        db.execute("CREATE TABLE cells(commit_id PRIMARY KEY, folder, cells, proof)")
        db.executemany("INSERT INTO cells VALUES (?,?,?,?)", [(commit, *row) for commit, row in recorded.items()])
    change(index, f"UPDATE cells SET {damage}")
    assert rows(index) != recorded
    assert asked(store, index) == first
    assert rows(index) == recorded


def test_a_branch_with_another_folder_than_the_turns_commit(store: Store, index: Index, keep: Keep) -> None:
    """What it holds is told each time, and never as what the commit holds."""
    keep(talk())
    before, recorded = asked(store, index)[SESSION], rows(index)
    tip = store.repo.ref(layout.head_ref(SESSION)) or ""
    cells = [stored_fields.to_json(cell) | {"operation": "Other"} for cell in store.cells(tip, 2)]
    blob = store.repo.write_blob("".join(f"{json.dumps(cell)}\n" for cell in cells).encode())
    tree = store.repo.edit_tree(store.tree(tip), {f"{layout.turn_folder(2)}/{layout.CELLS}": (blob, False)})
    store.repo.move(layout.head_ref(SESSION), tip, store.repo.write_commit(tree, [tip], "edit: x\n", 1))
    for _ in range(2):
        found = asked(store, index)[SESSION]
        assert [cell.operation for address, cell, _ in found[0] if address[0] == "2"] == ["Other"] * 9
        assert [one for one in found[0] if one[0][0] == "1"] == [one for one in before[0] if one[0][0] == "1"]
        assert rows(index) == recorded


def test_forks_share_what_is_remembered(sessgit: Shell) -> None:
    """One at a turn has nothing of its own; the turn that one at a cell cut is another one."""
    sessgit.recorded(lexer_talk(sessgit))
    whole, cut = (
        json.loads(sessgit.out("fork", "5e55", "--at", at, "--no-restore", "--json"))["id"] for at in ("2", "2.3")
    )
    store = Store(sessgit.store)
    with closing(Index(store.path, lambda: store)) as index:
        known, first = rows(index), asked(store, index)
        assert len(rows(index)) == len(known) + 1
        change(index, "DELETE FROM cells")
        assert asked(store, index) == first
        assert len(first[whole][0]) == len(first[cut][0]) + 5 == 14
        assert first[SESSION][0][:14] == first[whole][0]


def test_where_the_project_lies_here(sessgit: Shell) -> None:
    """A path that is not absolute, on a line that names no folder, is one of the project as it lies on this machine."""
    made = sessgit.talk().prompt("go").tool("Read", {"file_path": "src/../a.py"}, "x")
    made.lines[:] = [line.replace(f'"cwd":"{sessgit.project}"'.encode(), b'"cwd":""') for line in made.lines]
    made.lines[0] = made.lines[0].replace(b'"cwd":""', f'"cwd":"{sessgit.project}"'.encode())
    sessgit.recorded(made)
    assert sessgit.json("why", "a.py", "5e55")["file"] == str(sessgit.project / "a.py")


def test_what_was_deleted_leaves_the_file(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().prompt("go").tool("Bash", {"command": "echo unforgettable"}))
    sessgit.recorded(sessgit.talk(OTHER).prompt("else").tool("Bash", {"command": "echo other"}))
    index = sessgit.store / "index.sqlite3"
    sessgit.out("cells", SESSION, "--index")
    assert b"unforgettable" in b"".join(file.read_bytes() for file in index.parent.glob("index.sqlite3*"))
    sessgit.out("delete", SESSION, "--yes")
    sessgit.out("gc", "--prune", "--yes")
    assert b"unforgettable" not in b"".join(file.read_bytes() for file in index.parent.glob("index.sqlite3*"))
    assert b"echo other" in index.read_bytes()
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""
