"""What the library costs: the same however long a session is, and a turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from plain import Keep, run_git
from transcripts import SESSION, Talk

from sessgit import Cell, Session, Store
from sessgit.agents.claude import programs as agent_programs
from sessgit.agents.line import Opened
from sessgit.api import writer
from sessgit.errors import UsageError
from sessgit.history import project_git
from sessgit.history.cells import read_turns
from sessgit.store import refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import head_ref
from sessgit.store.store import Store as Objects


@pytest.fixture
def library(seal: Path) -> Iterator[Store]:
    """A store that does not wait for the disk."""
    place = seal / "store"
    Store.open(place).close()
    (place / "config.toml").write_text("[record]\nfsync = false\n")
    with Store.open(place) as opened:
        yield opened


@pytest.fixture
def project(seal: Path) -> Path:
    made = seal / "project"
    made.mkdir()
    return made


class Meter:
    """Counts what a library does with its store: objects written and read, questions to the index, and bytes read of
    transcripts."""

    def __init__(self, library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repo = library.context.store.repo
        self.written, self.read, self.asked, self.bytes = 0, 0, list[str](), 0
        library.context.index._db.set_trace_callback(self.asked.append)
        for method, counter in (("data", "read"), ("_write", "written")):
            monkeypatch.setattr(self.repo, method, self._counted(getattr(self.repo, method), counter))
        monkeypatch.setattr(agent_programs, "opened", self._opened(agent_programs.opened))

    def cost(self, do: Callable[[], object]) -> tuple[int, int, list[str], int]:
        self.written, self.read, self.bytes = 0, 0, 0
        self.asked.clear()
        do()
        return self.written, self.read, [query.split()[0] for query in self.asked], self.bytes

    def _counted(self, real: Callable[..., Any], counter: str) -> Callable[..., Any]:
        def counted(*arguments: object) -> Any:
            setattr(self, counter, getattr(self, counter) + 1)
            return real(*arguments)

        return counted

    def _opened(self, real: Callable[[Path], Any]) -> Callable[[Path], Any]:
        work = self

        class Counted(Opened):
            def at(self, offset: int, length: int) -> bytes:
                data = super().at(offset, length)
                work.bytes += len(data)
                return data

        @contextmanager
        def opened(path: Path) -> Iterator[Opened]:
            with real(path) as file:
                yield Counted(file.file, file.inode, file.size, file.modified)

        return opened


def cells(session: Session) -> Callable[[], None]:
    """Begins and ends a cell that depends on the one before it."""
    last = list[Cell]()

    def cell() -> None:
        begun = session.begin_cell(type="repl", operation="peek", dependencies=last)
        session.complete_cell(begun, 1)
        last[:] = [begun]

    return cell


def test_loose_cell_120_costs_what_cell_20_did(library: Store, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, session = Meter(library, monkeypatch), library.create_session(project)
    cell = cells(session)
    costs = [meter.cost(lambda: (cell(), session.tip)) for _ in range(120)]
    assert costs[-1] == costs[19]
    written, read, asked, of_file = costs[-1]
    assert (written, of_file) == (8, 0)
    assert read <= 60
    assert len(asked) <= 60
    assert len(session.cells()) == 120


def test_loose_cells_in_a_row_are_recorded_together(
    library: Store, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_FLUSH_SECONDS", 30)
    meter, session = Meter(library, monkeypatch), library.create_session(project)
    cell = cells(session)
    cell()
    costs = [meter.cost(cell) for _ in range(50)]
    assert {(written, of_file) for written, _, _, of_file in costs} == {(0, 0)}
    assert len(costs[-1][2]) == len(costs[9][2]) <= 20
    with Store.open(library.path) as other:
        assert len(other.load_session(session.id).cells()) == 51
    assert [(one.turn, one.state) for one in session.cells()] == [(n, "done") for n in range(1, 52)]
    assert session.begin_cell(type="repl", operation="x", dependencies=session.cells())


def test_loose_cells_of_two_objects_know_each_other(
    library: Store, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_FLUSH_SECONDS", 30)
    first = library.create_session(project)
    objects, made = (first, library.load_session(first.id)), list[str]()
    for number in range(6):
        cell = objects[number % 2].begin_cell(type="repl", operation="x", dependencies=made)
        objects[number % 2].complete_cell(cell, number)
        made.append(cell.id)
    assert [cell.dependencies for cell in first.cells()] == [tuple(made[:number]) for number in range(6)]


def test_a_loose_cell_is_recorded_although_nothing_is_read(library: Store, project: Path) -> None:
    session = library.create_session(project)
    before, head = session.tip, head_ref(session.id)
    cells(session)()
    deadline = time.monotonic() + 30
    while (tip := refs.read(library.path, head)) == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert tip == session.tip != before


def test_cell_300_of_a_turn_is_appended_as_cell_3_was(
    library: Store, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter, session = Meter(library, monkeypatch), library.create_session(project)
    cell = cells(session)
    cell()
    with session.turn("many"):
        costs = [meter.cost(cell) for _ in range(300)]
        assert costs[-1] == costs[2]
        written, read, _, of_file = costs[-1]
        assert (written, read, of_file) == (0, 0, 0)
    assert len(session.dependency_chain(session.cells()[-1])) == 300


def test_questions_again_read_nothing(library: Store, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, session = Meter(library, monkeypatch), library.create_session(project)
    cell = cells(session)
    for _ in range(3):
        cell()
    first = session.execution_order(), [one.id for one in session.cells()]
    assert meter.cost(session.cells)[:2] == meter.cost(session.execution_order)[:2] == (0, 0)
    assert first[0] == first[1] == session.execution_order()
    cell()
    assert session.execution_order()[:-1] == first[0]


def test_cells_that_others_added_since(library: Store, project: Path) -> None:
    """Whoever has asked once which cells there are learns of new ones."""
    ours = library.create_session(project)
    first = ours.begin_cell(type="repl", operation="a", id="cell_aaaaaaaa")
    ours.complete_cell(first)
    with Store.open(library.path) as other:
        theirs = other.load_session(ours.id)
        with theirs.turn("theirs"):
            theirs.complete_cell(theirs.begin_cell(type="repl", operation="b", id="cell_bbbbbbbb"))
            theirs.complete_cell(theirs.begin_cell(type="repl", operation="c", id="cell_cccccccc"))
        theirs.edit(name="edited")
        theirs.complete_cell(theirs.begin_cell(type="repl", operation="d", id="cell_dddddddd"))
    needs = ["cell_bbbbbbbb", "cell_dddddddd", "cell_aaaaaaaa"]
    second = ours.begin_cell(type="repl", operation="e", dependencies=needs)
    ours.complete_cell(second)
    assert ours.dependency_chain(second) == ["cell_aaaaaaaa", "cell_bbbbbbbb", "cell_dddddddd"]
    for taken in ("cell_cccccccc", "cell_dddddddd", second.id):
        with pytest.raises(UsageError, match="already"):
            ours.begin_cell(type="repl", operation="f", id=taken)
    with pytest.raises(UsageError, match="cell_zzzzzzzz"):
        ours.begin_cell(type="repl", operation="f", dependencies=["cell_zzzzzzzz"])
    assert ours.pending() == []


def test_some_turns_are_read_as_all_are(store: Objects, index: Index, keep: Keep) -> None:
    """Across the folders in which a hundred turns lie each, whatever the index remembers."""
    talk = Talk()
    for number in range(1, 232):
        talk.prompt(f"go {number}").tool("Read", {"file_path": f"/{number}"}, "x").answer("Read.")
    keep(talk)
    index.sync()
    branch = index.branch(SESSION)
    assert branch is not None
    every = [(turn.number, [node.cell for node in turn.nodes]) for turn in read_turns(Context(index), branch)]
    assert len(every) == 231
    told = read_turns(Context(index), branch)
    for first, last in [(1, 1), (98, 101), (99, 99), (100, 100), (199, 200), (200, None), (231, 231), (232, None)]:
        found = read_turns(Context(index), branch, first, last)
        assert [(turn.number, [node.cell for node in turn.nodes]) for turn in found] == every[first - 1 : last]
        assert read_turns(Context(index), branch, first) == told[first - 1 :]
    with index._db as db:
        db.execute("DELETE FROM cells")
    assert read_turns(Context(index), branch, 150) == told[149:]
    assert read_turns(Context(index), branch) == told


# The project's commit


@pytest.fixture
def repository(project: Path) -> Path:
    run_git(project, "init", "-q", "-b", "main")
    (project / "a.py").write_text("1\n")
    run_git(project, "add", ".")
    run_git(project, "-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-qm", "one")
    return project


def noted(library: Store, session: Session) -> str:
    return library.context.store.message(library.context.store.repo.ref(head_ref(session.id)) or "").get("Project-Head")


def test_a_cell_notes_what_the_project_is_at(library: Store, repository: Path) -> None:
    commit = run_git(repository, "rev-parse", "HEAD").strip()
    session = library.create_session(repository)
    cell = cells(session)
    cell()
    assert noted(library, session) == f"{commit} (main)"
    (repository / "a.py").write_text("2\n")
    cell()
    assert noted(library, session) == f"{commit} (main, dirty)"


def test_git_that_does_not_answer(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for so long, or ended where nobody asks."""
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    env = {"PATH": f"{slow.parent}:/usr/bin:/bin"}
    monkeypatch.setenv("PATH", env["PATH"])
    monkeypatch.setattr(project_git, "_TIMEOUT", 0.05)
    started = time.monotonic()
    assert project_git.project_head(str(repository), env) == ""
    with project_git.project_head_in_background(str(repository), env):
        pass
    assert time.monotonic() - started < 30
    monkeypatch.setenv("PATH", str(tmp_path))
    assert project_git.project_head(str(repository), {"PATH": str(tmp_path)}) == ""
    assert project_git.project_head("/nowhere", env) == ""
