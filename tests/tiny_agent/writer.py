from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from sessgit.agents.line import Line
from sessgit.agents.values import NewTurn, Seam, Written
from sessgit.model import canonical
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell
from tiny_agent.lines import make


def resumable(turns: Iterable[Sequence[bytes]], agent_id: str, title: str = "") -> Written:
    return Written([b"".join(_own(raw, agent_id) + b"\n" for raw in turn) for turn in turns], "")


def _own(raw: bytes, agent_id: str) -> bytes:
    old = make(raw).session
    return raw.replace(old.encode(), agent_id.encode(), 1) if old else raw


def continued(
    shared: Sequence[Sequence[bytes]], more: Sequence[Sequence[bytes]], agent_id: str
) -> tuple[Written, bytes]:
    return resumable(shared, agent_id), resumable(more, agent_id).data


def leads_back(body: Sequence[Line]) -> bool:
    return True


def cell_end(body: Sequence[Line], cells: Sequence[Cell], chosen: Cell) -> int:
    return max(chosen.lines)


def session_ids(line: Line) -> set[str]:
    return {line.session} - {""}


def spoken(lines: Iterable[bytes]) -> list[bytes]:
    return [raw for raw in lines if make(raw).is_said]


def summary(lines: Iterable[Line]) -> str:
    return ""


def title_line(title: str, agent_id: str) -> bytes:
    return canonical.dumps({"title": title})


def title_of(raw: bytes) -> str:
    return ""


def seam(
    turns: Iterable[Sequence[Line]], left: Iterable[Sequence[Line]], last: Sequence[Line], pending: Sequence[Line]
) -> Seam:
    return Seam("", 0, frozenset())


def summary_turn(at: Seam, key: Callable[[str], str], texts: tuple[str, str], state: Session) -> NewTurn:
    ask, reply = texts
    at_end = "2026-03-02T00:00:00.000Z"
    lines = [json.dumps(line).encode() for line in ({"at": at_end, "ask": ask}, {"at": at_end, "reply": reply})]
    return NewTurn(make(lines[0]).prompt_id, lines)


def grafted(at: Seam, bodies: Iterable[Sequence[bytes]], key: Callable[[str], str], agent_id: str) -> list[NewTurn]:
    return [NewTurn(make(body[0]).prompt_id, list(body)) for body in bodies]


def complete(body: Sequence[Line]) -> list[Line]:
    return list(body)
