"""A session of the store as another system would keep it: its turns as values, and what was said of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.exchange import authored_state
from sessgit.exchange import lines as given_lines
from sessgit.history import pad_lists, session_files
from sessgit.history.views import body_of
from sessgit.model import canonical, unified_state
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.turn import Tokens, Turn
from sessgit.model.foreign_session import ForeignSession, agent_id
from sessgit.model.program_input import GivenTurn, Part, Saying, Step, ToolCall
from sessgit.model.progress import Progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

_EARLIEST_TIME = 86_400
"""A line of that day has no time of its own: those that are given without one follow 1970."""


@dataclass(frozen=True, slots=True)
class _LastWords:
    """What a turn's last words are."""

    words: Words
    model: str


def session_view(store: Store, index: Index, branch: Branch, system: str, progress: Progress) -> ForeignSession:
    """The session of a head, with the id that the system knows it by where it came from there."""
    state = branch.state
    rows = index.turns(branch.name)
    turns = list[GivenTurn]()
    for done, row in enumerate(rows):
        progress(done, len(rows))
        turns.append(turn_view(store, branch, row))
    progress(len(rows), len(rows))
    origin = state.origin
    parent = index.branch(layout.session_of(origin.session)) if origin else None
    own = _source_id(store, branch, system)
    return ForeignSession(
        id=own,
        agent="" if agent_id(system, own) == state.agent_id else state.agent_id,
        title=state.title,
        name=state.name,
        description=state.description,
        project=state.project,
        created=state.created,
        updated=state.updated,
        ended=state.ended,
        state=state.state if state.state in ("active", "interrupted") else "ended",
        labels=state.labels,
        stage=state.stage,
        confidence=state.confidence,
        archived=branch.archived,
        parent=_source_id(store, parent, system) if parent else origin.session if origin else "",
        branch=origin.turn if origin else None,
        turns=tuple(turns),
        pad={name: data for name, data in sorted(pad_lists.read_lists(store, branch.tip).items()) if data},
        unified=_unified_with_role(branch),
        kept={path: store.repo.blob(oid) for path, (oid, _) in session_files.kept_files(store, branch.tip).items()},
    )


def turn_view(store: Store, branch: Branch, row: Row) -> GivenTurn:
    """A turn as a program would give it. What only the client means is left out: what it noted beside its calls,
    thoughts, pictures, and subagents."""
    body = body_of(store, branch.tip, row)
    agent = agents.of(branch.state)
    about, pieces = agent.content.told(body)
    parts = list(_turn_parts(agent, body, row.prompt, pieces))
    last = parts.pop() if parts and isinstance(parts[-1], _LastWords) else None
    tokens = _token_counts(about, last.model, pieces) if isinstance(last, _LastWords) and last.model else {}
    return GivenTurn(
        given_lines.without_mark(agent.lines.said(body[0])),
        tuple(_make_saying(part) if isinstance(part, _LastWords) else part for part in parts),
        last.words.text if isinstance(last, _LastWords) else "",
        last.model if isinstance(last, _LastWords) else next(filter(None, map(agent.programs.model_of, body)), ""),
        _clean_time(body[0].time),
        _clean_time(last.words.time) if isinstance(last, _LastWords) else None,
        row.prompt,
        tokens,
    )


def _make_saying(part: _LastWords) -> Saying:
    return Saying(part.words.text, part.model, _clean_time(part.words.time))


def _turn_parts(agent: Agent, body: Sequence[Line], key: str, pieces: Sequence[Piece]) -> Iterator[Part | _LastWords]:
    for piece in pieces:
        line = body[piece.line - 1]
        if isinstance(piece, Call):
            yield _call_part(agent, piece, line, key)
        elif piece.by == "model" and not piece.thinking:
            reason = agent.programs.reason(line)
            time = _clean_time(piece.time)
            yield replace(reason, time=time) if reason is not None else _LastWords(piece, agent.programs.model_of(line))


def _call_part(agent: Agent, call: Call, line: Line, key: str) -> Part:
    if call.task is not None:
        return Step(call.task, call.outcome if call.result_line else None)
    own = agent.programs.call_of(line, key, call.cell)
    return ToolCall(call.tool, call.input, call.output, call.cell.ok is False, own, _clean_time(call.time))


def _token_counts(about: Turn, model: str, pieces: Sequence[Piece]) -> Mapping[str, int]:
    """What the model used in the turn, but for calls of it that a program made itself."""
    used = about.tokens.get(model, Tokens())
    found = {kind.name: int(getattr(used, kind.name)) for kind in fields(used)}
    for piece in pieces:
        outcome = piece.outcome if isinstance(piece, Call) else None
        if outcome is not None and outcome.model == model:
            found = {kind: max(0, number - outcome.tokens.get(kind, 0)) for kind, number in found.items()}
    return {kind: number for kind, number in found.items() if number}


def _clean_time(time: str) -> float | None:
    found = canonical.seconds(time)
    return found if found is not None and found >= _EARLIEST_TIME else None


def _source_id(store: Store, branch: Branch, system: str) -> str:
    noted = session_files.source_note(store, branch.tip, branch.state.id)
    own = noted.get("id") if noted.get("system") == system else None
    return own if isinstance(own, str) and own else branch.state.agent_id


def _unified_with_role(branch: Branch) -> dict[str, Any]:
    found: dict[str, Any] = dict(unified_state.state_document(branch.state.unified))
    role = authored_state.session_role(branch.state)
    return {**found, "metadata": {**found.get("metadata", {}), "role": role}} if role else found


def with_transcript(session: ForeignSession, data: bytes) -> ForeignSession:
    """The session with its lines in the client's own form."""
    return replace(session, transcript=data)
