"""Whatever a program does, in whatever order: the store holds what a plain list would hold."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from programs import Place

from sessgit import Outcome, Session, Store, Task, ToolCall
from sessgit.agents.claude import writer as transcript
from sessgit.branch import restore
from sessgit.model import dependency_graph
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store as Objects

TYPES = st.sampled_from(["repl", "tool", "llm_call", "map_reduce", "verification"])
RESULTS = st.sampled_from([None, 1, "text", "", {"a": [1, None]}, "x" * 5000, {"long": "y" * 5000}])
WORDS = st.sampled_from(["look", "compare them", "ü \u2028", "x" * 5000])


@dataclass
class Cell:
    operation: str
    needs: list[str]
    state: str = "running"


@dataclass
class Model:
    """A session as a plain list: the prompts of its turns, and of each turn the cells by their ids, in order."""

    session: Session
    prompts: list[str] = field(default_factory=list)
    cells: list[dict[str, Cell]] = field(default_factory=list)

    @property
    def every(self) -> dict[str, Cell]:
        return {name: cell for turn in self.cells for name, cell in turn.items()}

    @property
    def pending(self) -> list[str]:
        return [name for name, cell in (self.cells[-1] if self.cells else {}).items() if cell.state == "running"]

    def begin(self, prompt: str) -> None:
        for cell in self.every.values():
            if cell.state == "running":
                cell.state = "failed"
        self.prompts.append(prompt)
        self.cells.append({})


class Programs(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="laws-")
        root = Path(self.folder.name).resolve()
        (root / "calc").mkdir()
        self.place = Place(Store.open(root / "store", config=root / "claude"), root / "calc")
        self.models: list[Model] = []
        self.restored: list[Path] = []
        self.known: set[str] = set()

    @initialize()
    def create(self) -> None:
        self.models.append(Model(self.place.begin()))

    def teardown(self) -> None:
        try:
            for model in self.models:
                self.settle(model)
                self.same_elsewhere(model)
            self.place.check()
        finally:
            self.place.store.close()
            self.folder.cleanup()

    # What programs do

    @rule(which=st.integers(0), prompt=WORDS, data=st.data())
    def turn(self, which: int, prompt: str, data: st.DataObject) -> None:
        model = self.pick(which)
        if model.pending and self.is_open(model):
            return
        with model.session.turn(prompt) as turn:
            model.begin(prompt)
            self.batch(model, data)
            self.complete(model, data)
            if data.draw(st.booleans()):
                turn.say("meanwhile")
            self.batch(model, data)
            self.complete(model, data)
            turn.answer("the answer")

    @rule(which=st.integers(0), data=st.data())
    def loose(self, which: int, data: st.DataObject) -> None:
        model = self.pick(which)
        if not self.is_open(model):
            tasks = self.tasks(model, data)
            if not tasks:
                return
            begun = model.session.begin_cells(tasks)
            model.begin("")
            self.note(model, tasks, [cell.id for cell in begun])
        else:
            self.batch(model, data)

    @rule(which=st.integers(0), data=st.data())
    def ends(self, which: int, data: st.DataObject) -> None:
        self.complete(self.pick(which), data)

    @rule(which=st.integers(0), prompt=WORDS, answer=WORDS, calls=st.integers(0, 2))
    def whole(self, which: int, prompt: str, answer: str, calls: int) -> None:
        model = self.pick(which)
        if self.is_open(model):
            return
        made = [ToolCall("Bash", {"command": f"echo {n}"}, f"{n}") for n in range(calls)]
        number = model.session.record_turn(prompt, answer, made)
        model.begin(prompt)
        assert number == len(model.prompts)

    # What happens to them

    @rule(which=st.integers(0))
    def reopened(self, which: int) -> None:
        """Another process goes on: what was open is interrupted."""
        model = self.pick(which)
        if self.is_open(model):
            return
        model.session = self.place.again().load_session(model.session.id)

    @rule(which=st.integers(0))
    def lost(self, which: int) -> None:
        """The client deletes the transcript."""
        model = self.pick(which)
        if not self.is_open(model):
            self.place.transcript(model.session).unlink(missing_ok=True)

    @rule(which=st.integers(0))
    def archived(self, which: int) -> None:
        model = self.pick(which)
        if not self.is_open(model) and model.prompts:
            self.place.store.archive(model.session)
            self.place.store.unarchive(model.session)

    @precondition(lambda self: len(self.models) < 3)
    @rule(which=st.integers(0), data=st.data())
    def forked(self, which: int, data: st.DataObject) -> None:
        model = self.pick(which)
        if self.is_open(model) or not model.prompts:
            return
        at = data.draw(st.integers(1, len(model.prompts)))
        if at == len(model.prompts) and model.pending:
            return  # the client's own rule: a call without a result is not in the fork's file
        fork = model.session.fork(at)
        copies = [{name: Cell(c.operation, c.needs, c.state) for name, c in turn.items()} for turn in model.cells[:at]]
        self.models.append(Model(fork, model.prompts[:at], copies))

    # What holds

    @invariant()
    def holds(self) -> None:
        for model in self.models:
            session = model.session
            self.place.store.load_session(session.id)
            assert [turn.number for turn in session] == list(range(1, len(model.prompts) + 1))
            prompts = [turn.prompt for turn in session]
            assert [p for p, wanted in zip(prompts, model.prompts, strict=True) if wanted and p != wanted] == []
            found = [cell for cell in session.cells() if cell.operation != "Bash"]
            assert [(c.id, c.operation, list(c.dependencies), c.turn) for c in found] == [
                (name, cell.operation, cell.needs, number)
                for number, turn in enumerate(model.cells, start=1)
                for name, cell in turn.items()
            ]
            states = {cell.id: cell.state for cell in found}
            wanted = {name: cell.state for name, cell in model.every.items()}
            waiting = "running" if self.is_open(model) else "interrupted"
            assert states == {name: waiting if state == "running" else state for name, state in wanted.items()}
            assert [cell.id for cell in session.pending()] == model.pending
            order = session.execution_order()
            assert dependency_graph.topological_order({c.id: c.dependencies for c in session.cells()}) == order

    # Inside

    def pick(self, which: int) -> Model:
        return self.models[which % len(self.models)]

    def is_open(self, model: Model) -> bool:
        held = model.session._cached_writer
        return held is not None and held._turn is not None

    def tasks(self, model: Model, data: st.DataObject) -> list[Task]:
        """A batch with a random graph, whose cells may stand in any order."""
        count = data.draw(st.integers(0, 3))
        letters = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=8, max_size=8)
        names = [f"cell_{data.draw(letters)}" for _ in range(count)]
        if len({*names, *self.known}) < len(names) + len(self.known):
            return []
        self.known.update(names)
        made = []
        for number, name in enumerate(names):
            before = [*model.every, *names[:number]]
            needs = data.draw(st.lists(st.sampled_from(before), max_size=2, unique=True)) if before else []
            made.append(Task(data.draw(TYPES), f"op {number}", {"n": number}, "", tuple(needs), name))
        return data.draw(st.permutations(made))

    def batch(self, model: Model, data: st.DataObject) -> None:
        tasks = self.tasks(model, data)
        begun = model.session.begin_cells(tasks)
        self.note(model, tasks, [cell.id for cell in begun])

    def note(self, model: Model, tasks: Iterable[Task], names: list[str]) -> None:
        tasks = list(tasks)
        assert names == [task.id for task in tasks]
        by_name = {task.id: task for task in tasks}
        for name in dependency_graph.topological_order({task.id: task.dependencies for task in tasks}):
            model.cells[-1][name] = Cell(by_name[name].operation, list(by_name[name].dependencies))

    def complete(self, model: Model, data: st.DataObject) -> None:
        if not model.pending:
            return
        chosen = data.draw(st.lists(st.sampled_from(model.pending), unique=True))
        failing = data.draw(st.booleans())
        outcomes = {name: Outcome(data.draw(RESULTS), "no" if failing else None) for name in chosen}
        model.session.complete_cells(outcomes)
        for name in chosen:
            model.cells[-1][name].state = "failed" if failing else "done"

    def settle(self, model: Model) -> None:
        """Ends what is open, and gets the file back."""
        if model.pending:
            model.session.complete_cells({name: Outcome(1) for name in model.pending})
        model.session.record_turn("last")
        model.begin("last")

    def same_elsewhere(self, model: Model) -> None:
        """The same transcript, recorded anew in another store, gives the same turns, and comes back byte for byte."""
        path = self.place.transcript(model.session)
        whole = path.read_bytes()
        assert restore.rebuild_file(self.place.store.context.store, model.session.id).data == whole
        if model.session.state.origin is not None:
            return
        other = Path(self.folder.name) / f"other-{model.session.id}"
        stores.create_store(other)
        objects = Objects(other)
        index = Index(other, lambda: objects)
        record(Context(index), TranscriptSource(path, path.stem, self.place.config))
        index.close()
        assert Place(Store(other, self.place.config, other), self.place.project).trees(path.stem) == (
            self.place.trees(path.stem)
        )
        assert not any(map(transcript.title_of, whole.split(b"\n")))


Programs.TestCase.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
TestPrograms = Programs.TestCase


def test_git_reads_it(seal: Path) -> None:
    """Plain git shows a program's session as it shows any other."""
    (seal / "calc").mkdir()
    place = Place(Store.open(), seal / "calc")
    session = place.begin("x")
    session.record_turn("hello", "hi")
    cell = session.begin_cell(type="repl", operation="peek")
    session.complete_cell(cell, 1)
    log = place.git("log", "--reverse", "--format=%s", session.tip).splitlines()
    assert f"start: {place.project}".startswith(log[0].removesuffix("…"))  # a long one is cut
    assert log[1:] == ["turn 1: hello", "turn 2: repl: peek"]
    env = {**os.environ, "GIT_DIR": str(place.store.path)}
    subprocess.run(["git", "fsck", "--strict"], env=env, check=True, capture_output=True)
