"""Keeps the results of a replay as turns of a session of their own: a fork without a file for the client."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.branch import fork as forks
from sessgit.branch.edit import check_name_free
from sessgit.branch.restore import write_copy
from sessgit.errors import ConflictError, SessgitError
from sessgit.history.resolve import ForkPoint
from sessgit.model import humanize
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.program_input import CELL_ID, GivenTurn, Outcome, Step, Task
from sessgit.record import privacy as private
from sessgit.record.edit_commit import LOCK_TIMEOUT
from sessgit.record.recording import record, skipped_error
from sessgit.record.source import TranscriptSource
from sessgit.replay import compare
from sessgit.replay.run import CellResult
from sessgit.store import layout, locks, operations, recorder_state, refs, tempdirs
from sessgit.store.context import Context
from sessgit.store.operations import Move

SOURCE = "sessgit replay"
"""The source of the cells that a replay adds."""


@frozen
class KeptSession:
    """The session with the results: its id, its name, and the number of the last turn that was added."""

    id: str
    name: str
    turn: int = 0


def begin_session(context: Context, id: str, name: str, point: ForkPoint, head: Session) -> KeptSession:
    """Create the session as a fork at a point of the session with the state `head`; its name gets a number if it is
    taken. Raises ConflictError if nothing may be recorded of its project."""
    check_can_keep(context, head)
    names = itertools.chain((name,), (f"{name} ({number})" for number in itertools.count(2)))
    name = next(one for one in names if _is_free_name(context, one, head.project))
    forks.fork_session(context.store, head, point, forks.ForkPlan(id, name, context.now(), None))
    context.index.sync(id)
    return KeptSession(id, name)


def check_can_keep(context: Context, state: Session) -> None:
    """Raise ConflictError if nothing may be recorded of the project, UsageError if nothing may be at all."""
    try:
        private.check_project(context.privacy, state.project)
    except SessgitError as error:
        raise type(error)(
            str(error), f"{error.hint} Or use `--no-keep` to run it without keeping the results.".strip()
        ) from error


def add_turn(context: Context, kept: KeptSession, turn: GivenTurn) -> KeptSession:
    """Add a turn to the session, which has no file of the client's: the turn is appended to a copy of the session's
    file in a temporary folder, and recorded from there.

    Raises ConflictError if another process keeps writing the session, or it is archived or was deleted."""
    store, session = context.store, kept.id
    with locks.session_lock(store.paths, session, LOCK_TIMEOUT) as held, tempdirs.make_folder("sessgit-") as at:
        if not held:
            raise ConflictError(f"another process is writing {session[:8]}", "Try again.")
        state = context.branch(session).state
        path = write_copy(store, state, at)
        end = agents.of(state).programs.end(path, replace(state, updated=""))
        end.read()
        end.append(end.chain.turn(turn), durable=False)
        own = context.homes.of(state)
        source = TranscriptSource(path, state.agent_id, Path(at), own=own, client=state.agent)
        done = record(context, source)
        # The file is gone: the next recording of the session reads its own from the beginning.
        recorder_state.delete_cursor(store.paths, session)
    if done.skipped:
        raise skipped_error(session, done.skipped)
    rows = context.index.with_prompt(end.key)
    return replace(kept, turn=next((row.turn for row in rows if row.branch == session), 0))


def record_operation(context: Context, kept: KeptSession, what: str) -> None:
    """Add one operation to the journal for all that was done, so that one undo reverts it."""
    ref = layout.head_ref(kept.id)
    tip = refs.read(context.store.path, ref)
    created = [
        operation.id
        for operation in operations.read(context.store.paths)
        if any(move.ref == ref and move.old is None for move in operation.moves)
    ]
    if tip is not None and created:
        operations.perform_operation(
            context.store, "replay", f"{kept.id[:8]}: {what}", [Move(ref, None, tip)], context.now(), held={ref: tip},
            completes=created[-1],
        )  # fmt: skip
    context.index.sync(kept.id)


def result_turn(results: Sequence[CellResult], address: str) -> GivenTurn:
    """Return the turn with the results: one cell for each that ran, which depends on that."""
    ran = [result for result in results if result.outcome != "skipped"]
    prompt = f"Replay of {humanize.format_count(len(ran), 'cell')} of {address}"
    return GivenTurn(
        prompt, tuple(Step(_result_task(result), _result_outcome(result)) for result in ran), counts_text(results)
    )


def kept_name(what: str, session: str, place: str) -> str:
    """Return the name of the session, as in `replay of a41f9c02, 7.3`; a name can have no @."""
    return f"{what} of {session}{', ' if place else ''}{place.lstrip('@')}"


def counts_text(results: Sequence[CellResult]) -> str:
    """Return `3 equal, 1 differs, 2 skipped`; messages of the model are not counted."""
    results = [result for result in results if not result.item.is_message]
    counts = {
        name: sum(result.outcome == name for result in results) for name in ("equal", "differs", "failed", "skipped")
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to run"


def _result_task(result: CellResult) -> Task:
    cell, address = result.item.node.cell, result.item.node.address
    known = (cell.id,) if CELL_ID.fullmatch(cell.id) else ()
    operation = cell.operation if cell.operation.isprintable() else repr(cell.operation)
    return Task("verification", operation[:200], {"cell": cell.id, "address": address}, SOURCE, known)


def _result_outcome(result: CellResult) -> Outcome:
    value: dict[str, Any] = {"outcome": result.outcome}
    if result.why:
        value["why"] = result.why
    if result.compared is not None:
        value["recorded"] = compare.bounded_text(result.compared.recorded)
        value["now"] = compare.bounded_text(result.compared.now)
    ms = None if result.ms is None else round(result.ms)
    return Outcome(value | {"ms": ms}, execution_time_ms=ms)


def _is_free_name(context: Context, name: str, project: str) -> bool:
    try:
        check_name_free(context.index, name, "", project)
    except ConflictError:
        return False
    return True
