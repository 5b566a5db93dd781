"""Which cells a session has, and what they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sessgit.history.cells import turns
from sessgit.model.ids import cell_id
from sessgit.model.program_input import Task
from sessgit.record.context import RecordContext
from sessgit.store.sqlite.rows import Branch


class RecordedCell(NamedTuple):
    """A recorded cell, and its place: the turn's number, and its own in the turn. `ok` is None without a result."""

    id: str
    type: str
    operation: str
    depends: Sequence[str]
    ok: bool | None
    turn: int
    ordinal: int


def read_recorded_cells(world: RecordContext, branch: Branch) -> list[RecordedCell]:
    """The recorded cells of a branch, oldest first."""
    return [
        RecordedCell(own, kind, operation, depends, ok, number, ordinal)
        for number, cells in turns.read_cached_turns(world.store, world.index, branch)
        for ordinal, (own, kind, operation, _, depends, ok, *_) in enumerate(cells, start=1)
    ]


def dependencies_by_id(cells: Iterable[RecordedCell]) -> dict[str, list[str]]:
    """Of each cell, by its id, the cells before it that it depends on."""
    made: dict[str, list[str]] = {}
    for cell in cells:
        made[cell.id] = [other for other in dict.fromkeys(cell.depends) if other in made]
    return made


def pending_tasks(world: RecordContext, branch: Branch) -> list[Task]:
    """The recorded cells of a branch's last turn that have no result, without their arguments."""
    found = turns.read_turns(world.store, world.index, branch, max(1, branch.state.turns))
    cells = found[-1].cells if found else []
    return [Task(one.type, one.operation, {}, "", one.depends, one.id) for one in cells if one.ok is None]


@dataclass
class KnownCells:
    """The ids of a branch's recorded cells, up to the commit `tip`, and the uuids of the prompts of its turns.

    Work is constant whatever the length of the session: only turns that are new are read, as long as the last one that
    was read is still the same, and so all before it.
    """

    ids: set[str] = field(default_factory=set)
    prompts: list[str] = field(default_factory=list)
    tip: str = ""
    last: int = 0
    commit: str = ""

    def read(self, world: RecordContext, branch: Branch) -> None:
        """Brings the ids level with the branch."""
        if branch.tip == self.tip:
            return
        if not self.last or (row := world.index.turn(branch.name, self.last)) is None or row.commit != self.commit:
            self.ids, self.prompts, self.last = set(), [], 0
        found = turns.read_cached_turns(world.store, world.index, branch, self.last + 1)
        self.ids.update(cell[0] for _, cells in found for cell in cells)
        if found:
            self.prompts += [row.prompt for row in world.index.turns(branch.name, self.last + 1, found[-1][0])]
            self.last = found[-1][0]
            row = world.index.turn(branch.name, self.last)
            self.commit = row.commit if row else ""
        now = world.index.branch(branch.name)
        if now is not None and now.tip == branch.tip:
            self.tip = branch.tip
        else:  # another process brought the index further meanwhile
            self.tip, self.last = "", 0

    def has_call(self, name: str) -> bool:
        """Whether a recorded cell is the call to which the agent gave that id."""
        return any(cell_id(prompt, name) in self.ids for prompt in self.prompts)
