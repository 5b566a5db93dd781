"""Converts messages of an apex session to turns, and turns to messages.

A turn has no place for ids of messages, system messages and other keys. So an import keeps the messages of each turn,
and an export writes them again. Other turns become new messages.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sessgit.exchange import mapping, values
from sessgit.model import canonical
from sessgit.model.program_input import GivenTurn, Part, Reason, Saying, Step, ToolCall

NAMELESS = "apex"
"""The model of messages that used tokens and name no model."""
_NAMESPACE = uuid.UUID("0f4f8c5c-64d5-5b0c-8f0e-9a2f3f2b9d10")
_LONGEST_MODEL = 100
_LONGEST_TOOL = 128
_TOKEN_KINDS = ("input", "output")

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """The turns that messages make, and the index of the last message of each.

    `before` are messages before the first turn; `groups` has the messages of each turn.
    """

    turns: tuple[GivenTurn, ...]
    ends: tuple[int, ...]
    groups: tuple[Sequence[Any], ...]
    before: list[Any]

    @property
    def original(self) -> dict[str, Any]:
        """The messages, by the keys of their turns."""
        return {"before": self.before, "turns": {t.key: g for t, g in zip(self.turns, self.groups, strict=True)}}


# Reading


def parse_messages(messages: Sequence[Any], session: str, opening: str) -> ParsedMessages:
    """Return the turns of the messages of a session; `opening` is the prompt of messages before the first prompt."""
    turns, ends, groups, before, keys = list[GivenTurn](), list[int](), list[Sequence[Any]](), list[Any](), set[str]()
    starts = sorted({0, *(n for n, message in enumerate(messages) if _is_prompt(message)), len(messages)})
    for start, end in pairwise(starts):
        group = messages[start:end]
        turn = _parse_turn(group, opening)
        if turn is None:
            before += group
            continue
        key = _turn_key(group[0], session, start, keys)
        keys.add(key)
        turns.append(replace(turn, key=key))
        ends.append(end - 1)
        groups.append(group)
    return ParsedMessages(tuple(turns), tuple(ends), tuple(groups), before)


def _is_prompt(message: Any) -> bool:
    return values.text(message, "role") == "user" and bool(_message_text(message).strip())


def _parse_turn(group: Sequence[Any], opening: str) -> GivenTurn | None:
    """Return the turn that messages make, None if they have nothing for it."""
    prompt = _message_text(group[0]) if _is_prompt(group[0]) else ""
    parts, answers = _message_calls(group[0]) if prompt else [], list[Message]()
    for message in group[1:] if prompt else group:
        role, text = values.text(message, "role"), _message_text(message)
        calls, time = _message_calls(message), values.seconds(message, "timestamp")
        if role not in ("assistant", "tool") or not (text.strip() or calls):
            continue
        answers.append(message)
        if role == "tool" and not calls:
            tool = values.text(message, "metadata.toolName", "metadata.tool", "name") or "tool"
            parts.append(ToolCall(_tool_name(tool), output=text, time=time))
            continue
        parts += calls
        if text.strip():
            parts.append(Saying(text, _message_model(message), time))
    if not (prompt or (opening and answers)):
        return None
    used = {kind: sum(values.count(message, f"tokens.{kind}") for message in group) for kind in _TOKEN_KINDS}
    model = _message_model(answers[-1]) if answers else ""
    first = group[0] if prompt else answers[0]
    turn = GivenTurn(prompt or opening, tuple(parts), time=values.seconds(first, "timestamp"))
    return replace(
        mapping.with_answer(turn),
        model=model or (NAMELESS if any(used.values()) else ""),
        ended=values.seconds(answers[-1], "timestamp") if answers else None,
        tokens={kind: number for kind, number in used.items() if number},
    )


def _message_text(message: Any) -> str:
    """Return the text of a message, followed by its code blocks that the text lacks."""
    text = values.text(message, "content")
    for block in values.objects(message, "codeBlocks"):
        code = values.text(block, "code")
        if code.strip() and code.strip() not in text:
            name, language = (canonical.one_line(values.text(block, key), 200) for key in ("filename", "language"))
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            head = f"**{name}**\n" if name else ""
            text = f"{text}\n\n{head}{fence}{language}\n{code.removesuffix(chr(10))}\n{fence}".lstrip("\n")
    return text


def _message_calls(message: Any) -> list[Part]:
    """Return the calls of a message, none if one of them is invalid."""
    calls = values.items(message, "toolCalls")
    if not all(isinstance(values.value_at(call, "toolName"), str) for call in calls):
        return []
    time = values.seconds(message, "timestamp")
    return [
        ToolCall(
            _tool_name(call["toolName"]),
            values.mapping(call, "input"),
            _output_text(call.get("output")),
            call.get("status") == "error",
            time=time,
        )
        for call in calls
    ]


def _output_text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _tool_name(name: str) -> str:
    """Return the name as the model's API accepts it."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_LONGEST_TOOL] or "tool"


def _message_model(message: Message) -> str:
    return canonical.one_line(values.text(message, "metadata.model", "agent"), _LONGEST_MODEL)


def _turn_key(message: Any, session: str, index: int, taken: set[str]) -> str:
    """Return the key of the turn that a message opens: its own id if that is a uuid and not taken."""
    own = values.text(message, "id") if _is_prompt(message) else ""
    try:
        key = str(uuid.UUID(own))
    except ValueError:
        key = ""
    return key if key and key not in taken else _stable_uuid(session, str(index), own)


def _stable_uuid(*words: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join(words).encode("utf-8", "surrogatepass").hex()))


# Writing


def format_messages(turns: Sequence[GivenTurn], original: Mapping[str, Any]) -> list[Any]:
    """Return the messages of the turns: the original ones of a turn, if there are some and they still say the same."""
    out, groups = list(values.items(original, "before")), values.mapping(original, "turns")
    for turn in turns:
        group = values.to_list(groups.get(turn.key))
        parsed = _parse_turn(group, turn.prompt) if group else None
        if parsed is not None and _content(parsed) == _content(turn):
            out += group
        else:
            out += [{**message, "index": n} for n, message in enumerate(_new_messages(turn), start=len(out))]
    return out


def _content(turn: GivenTurn) -> list[Any]:
    """Return what a turn says, without times and models, which recording can change."""
    texts = [part.output if isinstance(part, ToolCall) else _part_text(part) for part in mapping.parts_and_answer(turn)]
    return [turn.prompt.strip(), *texts]


def _part_text(part: Part) -> str:
    return part.text if isinstance(part, Saying | Reason) else ""


def _new_messages(turn: GivenTurn) -> list[Message]:
    """Return new messages for a turn: each text with the calls before it, as far as they have one time."""
    out, calls = [_make_message(turn, 0, "user", [], Saying(turn.prompt, time=turn.time))], list[Part]()
    time: float | None = None
    for part in mapping.parts_and_answer(turn):
        if calls and _part_time(part) != time:
            out.append(_make_message(turn, len(out), "assistant", calls, None))
            calls = []
        time = _part_time(part)
        if isinstance(part, ToolCall | Step):
            calls.append(part)
        else:
            out.append(_make_message(turn, len(out), "assistant", calls, part))
            calls = []
    if calls:
        out.append(_make_message(turn, len(out), "assistant", calls, None))
    used = {kind: values.count(turn.tokens, kind) for kind in _TOKEN_KINDS}
    if any(used.values()):
        out[-1]["tokens"] = used
    return out


def _part_time(part: Part) -> float | None:
    return part.task.created if isinstance(part, Step) else part.time


def _make_message(turn: GivenTurn, number: int, role: str, calls: Sequence[Part], said: Part | None) -> Message:
    """Return a message of the turn with calls, and a text if there is one."""
    times = [
        *(_part_time(part) for part in (said, *calls) if part),
        *([] if role == "user" else [turn.ended, turn.time]),
    ]
    time = next((time for time in times if time is not None), None)
    out: Message = {
        "id": turn.key if role == "user" and turn.key else _stable_uuid("message", turn.key, str(number)),
        "index": 0,
        "role": role,
        "content": said.text if isinstance(said, Saying | Reason) else "",
    }
    if time is not None:
        out["timestamp"] = canonical.rfc3339(round(time * 1000) / 1000 + 0.0005)
    if calls:
        out["toolCalls"] = [_call_record(call) for call in calls]
    model = said.model if isinstance(said, Saying) else turn.model
    if model:
        out["metadata"] = {"model": model}
    return out


def _call_record(call: Part) -> Message:
    """Return a tool call, or a cell of a program, as a record of a call."""
    if isinstance(call, ToolCall):
        status = "error" if call.is_error else "success"
        return {"toolName": call.name, "input": dict(call.input), "output": call.output, "status": status}
    assert isinstance(call, Step)
    task, outcome = call.task, call.outcome
    record: Message = {"toolName": task.operation, "input": dict(task.args)}
    if outcome is not None:
        record["output"] = outcome.error if outcome.error is not None else _output_text(outcome.result)
        if outcome.execution_time_ms is not None:
            record["duration"] = outcome.execution_time_ms
    return {**record, "status": "success" if outcome is not None and outcome.ok else "error"}
