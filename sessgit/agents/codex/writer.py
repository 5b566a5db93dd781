"""Turns as a rollout that Codex resumes: the lines as they are, with the new id in `session_meta`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sessgit.agents.codex.cells import call_id
from sessgit.agents.codex.lines import CALLS, EVENT, ITEM, META, CodexLine, compact, make, with_session
from sessgit.agents.line import Line, parse
from sessgit.agents.values import NewTurn, Seam, Written
from sessgit.model import canonical
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell
from sessgit.model.stored_fields import string

_ORDINAL = re.compile(rb'"ordinal":\d+')


def resumable(turns: Iterable[Sequence[bytes]], agent_id: str, title: str = "") -> Written:
    """Return the turns, each given as its stored lines, as one rollout of the session `agent_id`.

    Events that roll turns back are left out, as the turns that they leave behind are; ordinals are counted anew. A
    title has no place in a rollout.
    """
    parts, ordinal, has_meta = list[bytes](), None, False
    for lines in turns:
        part = list[bytes]()
        for line in map(make, lines):
            if line.turns_rolled_back or (line.type == META and has_meta):
                continue
            raw = line.raw
            if line.type == META:
                raw, has_meta = with_session(raw, sorted(session_ids(line)), agent_id), True
            if (given := line.ordinal) is not None:
                ordinal = given if ordinal is None else ordinal + 1
                raw = raw if given == ordinal else _ORDINAL.sub(b'"ordinal":%d' % ordinal, raw, count=1)
            part.append(raw + b"\n")
        parts.append(b"".join(part))
    return Written(parts, "")


def continued(
    shared: Sequence[Sequence[bytes]], more: Sequence[Sequence[bytes]], agent_id: str
) -> tuple[Written, bytes]:
    """Return the beginning that `resumable` makes of the shared turns, and the lines with which further ones go on."""
    written = resumable([*shared, *more], agent_id)
    return Written(written.parts[: len(shared)], ""), b"".join(written.parts[len(shared) :])


def leads_back(body: Sequence[Line]) -> bool:
    """Return True: the client reads a rollout in the order of its lines."""
    return True


def cell_end(body: Sequence[Line], cells: Sequence[Cell], chosen: Cell) -> int:
    """Return the number of the line at which a turn can be cut behind a cell: every call up to there has its result,
    if it ever gets one."""
    end, lines = max(chosen.lines), [line for line in body if isinstance(line, CodexLine)]
    ended = {call_id(line) for line in lines[:end] if line.is_result}
    waiting = {call_id(line) for line in lines[:end] if _is_call(line)} - ended
    for number, line in enumerate(lines[end:], start=end + 1):
        if line.is_result and call_id(line) in waiting:
            end = number
    return end


def _is_call(line: CodexLine) -> bool:
    return line.type == ITEM and line.kind in CALLS


def session_ids(line: Line) -> set[str]:
    """Return the session that a `session_meta` names."""
    return {line.session} - {""}


def spoken(lines: Iterable[bytes]) -> list[bytes]:
    """Return the lines of a turn without the calls of tools, their results and what the model thought."""
    return [raw for raw in lines if not (line := make(raw)).is_work or line.is_answer]


def summary(lines: Iterable[Line]) -> str:
    """Return the text of the last summary that a compaction left in these lines, or ""."""
    said = [string(line.payload, "message") for line in lines if isinstance(line, CodexLine) and line.is_boundary]
    return said[-1] if said else ""


def title_line(title: str, agent_id: str) -> bytes:
    """Return b"": the client keeps names in a file of its own."""
    return b""


def title_of(raw: bytes) -> str:
    """Return "": no line gives a title."""
    return ""


# Lines behind a rollout


def seam(
    turns: Iterable[Sequence[Line]], left: Iterable[Sequence[Line]], last: Sequence[Line], pending: Sequence[Line]
) -> Seam:
    """Return the seam of a rollout: as its leaf the ordinal of the next line, "" where lines have none; and the id
    of every turn in it."""
    latest, ordinal, uuids = 0, -1, set[str]()
    for lines in (*turns, *left, last, pending):
        for line in lines:
            latest = max(latest, round((canonical.seconds(line.time) or 0) * 1000))
            ordinal = max(ordinal, -1 if line.ordinal is None else line.ordinal)
            if line.is_prompt:
                uuids.add(line.prompt_id)
    return Seam(str(ordinal + 1) if ordinal >= 0 else "", latest, frozenset(uuids))


def summary_turn(at: Seam, key: Callable[[str], str], texts: tuple[str, str], state: Session) -> NewTurn:
    """Return a prompt and an answer as one turn, in the form of the file: with ordinals, or the older one."""
    turn, common = key("prompt"), {"thread_id": state.agent_id, "turn_id": key("prompt")}
    prompt, answer = texts
    asked: dict[str, Any] = {
        "type": "user_message",
        "message": prompt,
        "images": [],
        "local_images": [],
        "text_elements": [],
    }
    replied: dict[str, Any] = {"type": "agent_message", "message": answer}
    if at.leaf:
        said = {"type": "text", "text": prompt, "text_elements": []}
        asked = {
            "type": "item_completed",
            **common,
            "item": {"type": "UserMessage", "id": key("asked"), "content": [said]},
        }
        item = {"type": "AgentMessage", "id": key("answer"), "content": [{"type": "Text", "text": answer}]}
        replied = {"type": "item_completed", **common, "item": item}
    payloads: list[tuple[str, dict[str, Any]]] = [
        (EVENT, {"type": "task_started", "turn_id": turn}),
        (ITEM, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}),
        (EVENT, asked),
        (EVENT, replied),
        (ITEM, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}),
        (EVENT, {"type": "task_complete", "turn_id": turn, "last_agent_message": answer}),
    ]
    lines = list[bytes]()
    for number, (kind, payload) in enumerate(payloads):
        ordinal = {"ordinal": int(at.leaf) + number} if at.leaf else {}
        time = canonical.rfc3339((at.latest + 1 + number) / 1000 + 0.0005)
        lines.append(compact({"timestamp": time, **ordinal, "type": kind, "payload": payload}))
    return NewTurn(turn, lines)


def grafted(at: Seam, bodies: Iterable[Sequence[bytes]], key: Callable[[str], str], agent_id: str) -> list[NewTurn]:
    """Return the turns with these bodies, in their order, behind the seam. A turn keeps its id where the rollout has
    none like it, else `key` makes one of it."""
    out, ordinal, uuids = list[NewTurn](), int(at.leaf or 0), set(at.uuids)
    for number, body in enumerate(bodies):
        lines = complete([make(raw) for raw in body])
        if not lines:
            continue
        old = lines[0].prompt_id
        new = key(f"{number}.{old}") if old in uuids else old
        uuids.add(new)
        turn = list[bytes]()
        for line in lines:
            raw = line.raw.replace(b'"turn_id":"%s"' % old.encode(), b'"turn_id":"%s"' % new.encode())
            document = parse(raw) or {}
            document.pop("ordinal", None)
            kind, payload, time = document.pop("type", ""), document.pop("payload", {}), document.pop("timestamp", "")
            numbered = {"ordinal": ordinal} if at.leaf else {}
            turn.append(compact({"timestamp": time, **numbered, "type": kind, "payload": payload, **document}))
            ordinal += 1
        out.append(NewTurn(new, turn))
    return out


def complete(body: Sequence[Line]) -> list[Line]:
    """Return the lines of a body that belong to the conversation, each call with its result and each result with its
    call. A compaction goes: in another conversation it would stand for what came before it there."""
    lines = [line for line in body if isinstance(line, CodexLine) and line.data is not None]
    calls = {call_id(line) for line in lines if _is_call(line)}
    results = {call_id(line) for line in lines if line.is_result}
    kept, paired = list[Line](), calls & results
    for line in lines:
        is_whole = not (_is_call(line) or line.is_result) or call_id(line) in paired
        if is_whole and not line.is_boundary and not (kept and line.is_prompt):
            kept.append(line)
    return kept
