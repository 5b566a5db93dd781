"""Makes one value of a recorded session, as an import takes it: turns, authored fields, scratchpad, kept files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.api.importing import without_mark
from sessgit.history import pad_lists, session_files
from sessgit.history.views import body_of
from sessgit.model import canonical, ids, prices
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.content import Call, Piece
from sessgit.model.conversation.turn import Cell, Tokens, Turn
from sessgit.model.foreign_session import ForeignSession, agent_id
from sessgit.model.program_input import GivenTurn, Part, Saying, Step, ToolCall
from sessgit.model.progress import Progress, counted
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row

_SAME_FIELDS = (
    "title", "name", "description", "project", "created", "updated", "ended", "labels", "stage", "confidence",
)  # fmt: skip
"""Fields of the state that a snapshot has too."""
_EARLIEST_TIME = 86_400
"""Lines of 1 January 1970 were written without a time."""


def session_snapshot(context: Context, branch: Branch, system: str, progress: Progress) -> ForeignSession:
    """Return the session, with the id that the system gave it if it was imported from there."""
    store, state, origin = context.store, branch.state, branch.state.origin
    rows, turns, costs = context.index.turns(branch.name), list[GivenTurn](), dict[str, float]()
    for row in counted(rows, progress):
        given, used = _turn(context, branch, row)
        turns.append(given)
        if used and (cost := prices.token_cost(used, context.prices)) is not None:
            costs[row.prompt] = cost
    parent = context.index.branch(layout.session_of(origin.session)) if origin else None
    own = _source_id(context, branch, system)
    # The parent is a field of the session.
    unified = sessions.state_document(sessions.with_values(state.unified, {"metadata.parent": None}))
    manager = context.index.branch(state.unified.metadata.parent or "")
    above = parent or manager
    below = [*context.index.forks_of(state.id), *context.index.children_of(state.id)]
    kept = session_files.kept_files(store, branch.tip)
    return ForeignSession(
        id=own,
        agent="" if agent_id(system, own) == state.agent_id else state.agent_id,
        **{name: getattr(state, name) for name in _SAME_FIELDS},
        state=state.state if state.state in ("active", "interrupted") else "ended",
        archived=branch.archived,
        parent=_source_id(context, above, system) if above else origin.session if origin else "",
        branch=origin.turn if origin else None,
        turns=tuple(turns),
        pad={name: data for name, data in sorted(pad_lists.read_lists(store, branch.tip).items()) if data},
        unified=unified,
        kept={path: store.repo.blob(oid) for path, (oid, _) in kept.items()},
        children=tuple(_source_id(context, one, system) for one in below),
        costs=costs,
        inherits=bool(kept) and not session_files.source_note(store, branch.tip, state.id),
    )


def _source_id(context: Context, branch: Branch, system: str) -> str:
    note = session_files.source_note(context.store, branch.tip, branch.state.id)
    own = note.get("id") if note.get("system") == system else None
    return own if isinstance(own, str) and own else branch.state.agent_id


def _turn(context: Context, branch: Branch, row: Row) -> tuple[GivenTurn, Mapping[str, Tokens]]:
    """Return a turn as a program would give it, without what only the client understands: thoughts, pictures,
    subagents, and notes next to calls; and its tokens by model."""
    body, agent = body_of(context.store, branch.tip, row), agents.of(branch.state)
    turn, pieces = agent.content.parse_turn(body)
    parts = list(_parts(agent, body, turn, pieces))
    last = parts[-1] if parts else None
    model = last.model if isinstance(last, Saying) else next(filter(None, (_model(turn, c) for c in turn.cells)), "")
    counts: dict[str, int] = turn.tokens.get(model, Tokens()).as_json() if model else {}
    for outcome in (piece.outcome for piece in pieces if isinstance(piece, Call)):
        if outcome is not None and outcome.model == model:  # a program made the call itself
            counts = {kind: max(0, count - outcome.tokens.get(kind, 0)) for kind, count in counts.items()}
    out = GivenTurn(
        without_mark(body[0].message_text), tuple(parts), "", model, _time(body[0].time), None, row.prompt,
        {kind: count for kind, count in counts.items() if count},
    )  # fmt: skip
    if isinstance(last, Saying):
        out = replace(out, parts=tuple(parts[:-1]), answer=last.text, ended=last.time)
    return out, turn.tokens


def _model(turn: Turn, cell: Cell) -> str:
    """Return the model of which a cell is a message, or "" for none."""
    is_message = cell.type == "llm_call" and not cell.program
    return cell.operation if is_message and cell.operation in turn.tokens else ""


def _parts(agent: Agent, body: Sequence[Line], turn: Turn, pieces: Sequence[Piece]) -> Iterator[Part]:
    for piece in pieces:
        time = _time(piece.time)
        if isinstance(piece, Call) and piece.task is not None:
            yield Step(piece.task, piece.outcome if piece.result_line else None)
        elif isinstance(piece, Call):
            calls = (said.call for said in agent.content.texts(body[piece.line - 1], piece.line))
            own = next((call for call in calls if ids.cell_id(turn.prompt_uuid, call) == piece.cell.id), "")
            yield ToolCall(piece.tool, piece.input, piece.output, piece.cell.ok is False, own, time)
        elif piece.by == "model" and not piece.thinking:
            model = _model(turn, turn.cells[piece.ordinal - 1]) if piece.ordinal else ""
            yield Saying(piece.text, model, time) if piece.reason is None else replace(piece.reason, time=time)


def _time(text: str) -> float | None:
    time = canonical.seconds(text)
    return time if time is not None and time >= _EARLIEST_TIME else None
