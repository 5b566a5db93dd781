"""Which cells a session has."""

from __future__ import annotations

from sessgit.ops.cells.turns import cells_of
from sessgit.ops.programs.world import World
from sessgit.store.index import Branch


def cells(world: World, branch: Branch) -> set[str]:
    """The ids of all recorded cells of a branch."""
    rows = world.index.turns(branch.name)
    return {cell.id for row in rows for cell in cells_of(world.store, branch, row, [])}
