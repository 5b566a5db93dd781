"""What a replay found, kept as a session of its own: a fork without a file for the client, with turns that say it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sessgit.branch import detached_turn
from sessgit.branch import fork as forks
from sessgit.branch.edit import check_name_free
from sessgit.errors import ConflictError, SessgitError
from sessgit.history.fork_point import ForkPoint
from sessgit.model import humanize
from sessgit.model.conversation.session import Session
from sessgit.model.program_input import CELL_ID, GivenTurn, Outcome, Step, Task
from sessgit.record.context import RecordContext
from sessgit.replay import compare
from sessgit.replay.run import CellResult
from sessgit.store import journal, layout, operations, refs
from sessgit.store.store import Store
from sessgit.store.transaction import Move

SOURCE = "sessgit replay"
"""Where the cells of a replay come from."""


@dataclass(frozen=True, slots=True)
class KeptSession:
    """The session that keeps it: its id, its name, and the number of the last turn that was added."""

    id: str
    name: str
    turn: int = 0


@dataclass(frozen=True, slots=True)
class NewSession:
    """The session to make: its id, what it is called, where it forks off, and the state of the session there."""

    id: str
    name: str
    point: ForkPoint
    head: Session


def begin_session(world: RecordContext, new: NewSession) -> KeptSession:
    """Makes the session; its name gets a number where it is taken. Raises ConflictError where nothing may be recorded
    of its project."""
    check_can_keep(world, new.head)
    name = _free_name(world, new.name, new.head.project)
    forks.fork_session(world.store, new.head, new.point, forks.ForkPlan(new.id, name, world.now(), None))
    world.index.sync(new.id)
    return KeptSession(new.id, name)


def check_can_keep(world: RecordContext, state: Session) -> None:
    """Raises ConflictError where nothing may be recorded of the project, UsageError where nothing may at all."""
    try:
        world.check_on(state.project)
    except SessgitError as error:
        raise type(error)(
            str(error), f"{error.hint} Or use `--no-keep` to run it without keeping the results.".strip()
        ) from error


def add_turns(world: RecordContext, kept: KeptSession, turns: Iterable[GivenTurn]) -> KeptSession:
    """Adds the turns."""
    for turn in turns:
        kept = KeptSession(kept.id, kept.name, detached_turn.append_turn(world, kept.id, turn))
    return kept


def record_operation(world: RecordContext, kept: KeptSession, told: str) -> None:
    """Writes down as one operation what was done, so that one undo takes all of it back."""
    ref = layout.head_ref(kept.id)
    tip, first = refs.read(world.store.path, ref), _creating_operation(world.store, ref)
    if tip is not None and first is not None:
        summary = f"{kept.id[:8]}: {told}"
        move = Move(ref, None, tip)
        operations.perform_operation(
            world.store, "replay", summary, [move], world.now(), held={ref: tip}, completes=first
        )
    world.index.sync(kept.id)


def result_turn(results: Sequence[CellResult], address: str) -> GivenTurn:
    """The turn that says what was replayed: a cell for each that was run, which depends on that."""
    ran = [result for result in results if result.outcome != "skipped"]
    prompt = f"Replay of {humanize.format_count(len(ran), 'cell')} of {address}"
    return GivenTurn(
        prompt, tuple(Step(_result_task(result), _result_outcome(result)) for result in ran), counts_text(results)
    )


def kept_name(what: str, session: str, place: str) -> str:
    """`replay of a41f9c02, 7.3`: what to call the session; a name can have no @."""
    return f"{what} of {session}{', ' if place else ''}{place.lstrip('@')}"


def counts_text(results: Sequence[CellResult]) -> str:
    """`3 equal, 1 differs, 2 skipped`; messages of the model are not counted."""
    results = [result for result in results if not result.item.is_message]
    counts = {
        name: sum(result.outcome == name for result in results) for name in ("equal", "differs", "failed", "skipped")
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to run"


# Inside


def _result_task(result: CellResult) -> Task:
    cell, address = result.item.node.cell, result.item.node.address
    known = (cell.id,) if CELL_ID.fullmatch(cell.id) else ()
    operation = cell.operation if cell.operation.isprintable() else repr(cell.operation)
    return Task("verification", operation[:200], {"cell": cell.id, "address": address}, SOURCE, known)


def _result_outcome(result: CellResult) -> Outcome:
    found: dict[str, Any] = {"outcome": result.outcome}
    if result.why:
        found["why"] = result.why
    if result.compared is not None:
        found["recorded"] = compare.bounded_text(result.compared.recorded)
        found["now"] = compare.bounded_text(result.compared.now)
    ms = None if result.ms is None else round(result.ms)
    return Outcome(found | {"ms": ms}, execution_time_ms=ms)


def _free_name(world: RecordContext, name: str, project: str) -> str:
    names = itertools.chain((name,), (f"{name} ({number})" for number in itertools.count(2)))
    return next(one for one in names if _is_free_name(world, one, project))


def _is_free_name(world: RecordContext, name: str, project: str) -> bool:
    try:
        check_name_free(world.index, name, "", project)
    except ConflictError:
        return False
    return True


def _creating_operation(store: Store, ref: str) -> str | None:
    """The operation that made the session."""
    found = [
        one for one in journal.read(store.beside) if any(move.ref == ref and move.old is None for move in one.moves)
    ]
    return found[-1].id if found else None
