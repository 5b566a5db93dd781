"""Messages of an apex session as turns, and turns as messages.

What a turn has no place for, as the ids of messages and the system's own words, is the rest: with it the messages come
back as they were, and turns that have none become messages of their own.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.difference import apply_difference, object_difference
from sessgit.model import canonical
from sessgit.model.program_input import GivenTurn, Part, Reason, Saying, Step, ToolCall

NAMELESS = "apex"
"""The model of messages that say what they used and not of what."""
_NAMESPACE = uuid.UUID("0f4f8c5c-64d5-5b0c-8f0e-9a2f3f2b9d10")
_STAMP_KEYS = ("id", "timestamp")
_LONGEST_MODEL = 100
_LONGEST_TOOL = 128

Message = dict[str, Any]
Rest = dict[str, Any]
"""`before` are messages in front of all turns, `turns` has by the key of each turn an item for each of its messages."""


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """The turns that messages say, the place of the last message of each, and the rest."""

    turns: tuple[GivenTurn, ...]
    ends: tuple[int, ...]
    items: tuple[list[Message], ...]
    before: list[Any]

    @property
    def rest(self) -> Rest:
        return {"before": self.before, "turns": {t.key: i for t, i in zip(self.turns, self.items, strict=True)}}


@dataclass(frozen=True, slots=True)
class _MessageShape:
    """What of a turn a message holds: its prompt or words, and so many calls; of the tool's own, what one call said."""

    role: str
    calls: int = 0
    says: bool = False


@dataclass
class _TurnMessages:
    """The messages of one turn, as they are read."""

    shapes: list[_MessageShape | None] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    prompt: str = ""
    said: list[Message] = field(default_factory=list)
    """Those that are not the prompt and that the turn holds."""


# Reading


def parse_messages(messages: Sequence[Any], session: str, opening: str) -> ParsedMessages:
    """The turns of messages in their order; `session` is its id, and `opening` stands for the prompt of messages in
    front of the first one."""
    turns, ends, items, keys = list[GivenTurn](), list[int](), list[list[Message]](), set[str]()
    before = list[Any]()
    for start, end in pairwise(_turn_starts(messages)):
        group = messages[start:end]
        turn, shapes = _make_turn(group, opening)
        if not turn.prompt or not any(shapes):
            before += group
            continue
        turn = replace(turn, key=_turn_key(group[0], session, start, keys))
        keys.add(turn.key)
        turns.append(turn)
        ends.append(end - 1)
        items.append(_message_leftovers(group, turn, shapes, start))
    return ParsedMessages(tuple(turns), tuple(ends), tuple(items), before)


def _turn_starts(messages: Sequence[Any]) -> list[int]:
    """Where turns begin, and the end."""
    return sorted({0, *(n for n, one in enumerate(messages) if _is_prompt(one)), len(messages)})


def _is_prompt(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user" and bool(_message_text(message).strip())


def _make_turn(group: Sequence[Any], opening: str) -> tuple[GivenTurn, list[_MessageShape | None]]:
    found = _TurnMessages(prompt=opening)
    for number, message in enumerate(group):
        found.shapes.append(_take_message(found, message, is_first=number == 0) if isinstance(message, dict) else None)
    last = found.parts[-1] if found.parts else None
    answer = last.text if isinstance(last, Saying) else ""
    first = group[0] if found.shapes[:1] != [None] and _is_prompt(group[0]) else {}
    used = {kind: sum(_token_count(one, kind) for one in group) for kind in ("input", "output")}
    model = _message_model(found.said[-1]) if found.said else ""
    return GivenTurn(
        prompt=found.prompt,
        parts=tuple(found.parts[:-1] if answer else found.parts),
        answer=answer,
        model=model or (NAMELESS if any(used.values()) else ""),
        time=_message_time(first or (found.said or [{}])[0]),
        ended=_message_time(found.said[-1]) if found.said else None,
        tokens={kind: n for kind, n in used.items() if n},
    ), found.shapes  # fmt: skip


def _take_message(found: _TurnMessages, message: Message, *, is_first: bool) -> _MessageShape | None:
    """What the turn takes over of a message; None where it has no place for it."""
    role, words, calls, at = (
        message.get("role"),
        _message_text(message),
        _message_calls(message),
        _message_time(message),
    )
    if is_first and _is_prompt(message):
        found.prompt = words
        found.parts += calls
        return _MessageShape("user", len(calls), says=True)
    has_words = bool(words.strip())
    if role not in ("assistant", "tool") or not (has_words or calls):
        return None
    found.said.append(message)
    if role == "tool" and not calls:
        found.parts.append(ToolCall(_valid_tool_name(_tool_of_message(message)), output=words, time=at))
        return _MessageShape("tool", 1)
    found.parts += calls
    if has_words:
        found.parts.append(Saying(words, _message_model(message), at))
    return _MessageShape("assistant", len(calls), has_words)


def _message_time(message: Mapping[str, Any]) -> float | None:
    return files.parse_seconds(message.get("timestamp"))


def _message_text(message: Mapping[str, Any]) -> str:
    """The text of a message, with the blocks of code that do not stand in it."""
    text = files.text_or_empty(message.get("content"))
    for block in files.objects_of(message.get("codeBlocks")):
        code = files.text_or_empty(block.get("code"))
        if code.strip() and code.strip() not in text:
            name, language = (
                canonical.one_line(files.text_or_empty(block.get(key)), 200) for key in ("filename", "language")
            )
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            head = f"**{name}**\n" if name else ""
            text = f"{text}\n\n{head}{fence}{language}\n{code.removesuffix(chr(10))}\n{fence}".lstrip("\n")
    return text


def _message_calls(message: Mapping[str, Any]) -> list[Part]:
    """The calls of a message; none where one of them is no record of a call."""
    given = files.list_or_empty(message.get("toolCalls"))
    if not all(isinstance(one, dict) and isinstance(one.get("toolName"), str) for one in given):
        return []
    return [
        ToolCall(
            _valid_tool_name(one["toolName"]),
            files.dict_or_empty(one.get("input")),
            _output_text(one.get("output")),
            one.get("status") == "error",
            time=_message_time(message),
        )
        for one in given
    ]


def _output_text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _tool_of_message(message: Mapping[str, Any]) -> str:
    noted = files.dict_or_empty(message.get("metadata"))
    named = (files.text_or_empty(one) for one in (noted.get("toolName"), noted.get("tool"), message.get("name")))
    return next((name for name in named if name), "tool")


def _valid_tool_name(name: str) -> str:
    """The name as a model's service takes it."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_LONGEST_TOOL] or "tool"


def _message_model(message: Mapping[str, Any]) -> str:
    model = files.text_or_empty(files.dict_or_empty(message.get("metadata")).get("model")) or files.text_or_empty(
        message.get("agent")
    )
    return canonical.one_line(model, _LONGEST_MODEL)


def _token_count(message: Any, kind: str) -> int:
    tokens = message.get("tokens") if isinstance(message, dict) else None
    return files.count_or_zero(files.dict_or_empty(tokens).get(kind))


def _turn_key(message: Any, session: str, place: int, taken: set[str]) -> str:
    """The key of the turn that a message opens: its own id where that is a uuid, and of no turn before."""
    own = files.text_or_empty(message.get("id")) if isinstance(message, dict) and _is_prompt(message) else ""
    try:
        key = str(uuid.UUID(own))
    except ValueError:
        key = ""
    return key if key and key not in taken else _stable_uuid(session, str(place), own)


def _stable_uuid(*words: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join(words).encode("utf-8", "surrogatepass").hex()))


def _message_leftovers(
    group: Sequence[Any], turn: GivenTurn, shapes: Sequence[_MessageShape | None], place: int
) -> list[Message]:
    """What each message says beside what its turn says."""
    made = iter(_messages_of_shapes(turn, [shape for shape in shapes if shape is not None]) or [])
    out = list[Message]()
    for number, (message, shape) in enumerate(zip(group, shapes, strict=True)):
        if shape is None:
            out.append({"whole": message})
            continue
        item: Message = {"role": shape.role, "calls": shape.calls, "says": shape.says}
        whole = next(made) | {"index": place + number}
        records = list(
            zip(
                files.list_or_empty(message.get("toolCalls")), files.list_or_empty(whole.get("toolCalls")), strict=False
            )
        )
        if shape.role != "tool" and shape.calls:
            whole["toolCalls"] = message["toolCalls"]
            item["records"] = [object_difference(*pair) for pair in records]
        item |= object_difference(message, whole)
        # Noted whatever the turn says: recording a turn can move it.
        item["stamps"] = {key: message[key] for key in _STAMP_KEYS if key in message}
        item["unset"] = sorted({*item.get("unset", ()), *(key for key in _STAMP_KEYS if key not in message)})
        out.append({key: value for key, value in item.items() if value})
    return out


# Writing


def format_messages(turns: Sequence[GivenTurn], rest: Mapping[str, Any]) -> list[Any]:
    """The messages of the turns, with the rest."""
    out = list(files.list_or_empty(rest.get("before")))
    noted = files.dict_or_empty(rest.get("turns"))
    for turn in turns:
        out += _turn_messages(turn, files.objects_of(noted.get(turn.key)), len(out))
    return out


def _turn_messages(turn: GivenTurn, items: Sequence[Mapping[str, Any]], place: int) -> list[Any]:
    own = [item for item in items if "whole" not in item]
    made = _messages_of_shapes(turn, [_parse_shape(item) for item in own]) if own else None
    if made is None:
        held = [item["whole"] for item in items if "whole" in item]
        plain = _messages_of_shapes(turn, _default_shapes(turn)) or []
        return [*({**one, "index": place + n} for n, one in enumerate(plain)), *held]
    out, left = list[Any](), iter(made)
    for number, item in enumerate(items):
        if "whole" in item:
            out.append(item["whole"])
            continue
        message = next(left) | {"index": place + number}
        records = zip(
            files.list_or_empty(message.get("toolCalls")), files.objects_of(item.get("records")), strict=False
        )
        if "records" in item:
            message["toolCalls"] = [apply_difference(*pair) for pair in records]
        out.append({**apply_difference(message, item), **files.dict_or_empty(item.get("stamps"))})
    return out


def _parse_shape(item: Mapping[str, Any]) -> _MessageShape:
    return _MessageShape(
        files.text_or_empty(item.get("role")), files.count_or_zero(item.get("calls")), item.get("says") is True
    )


def _turn_parts(turn: GivenTurn) -> list[Part]:
    return [*turn.parts, *([Saying(turn.answer, turn.model, turn.ended)] if turn.answer else [])]


def _default_shapes(turn: GivenTurn) -> list[_MessageShape]:
    """How a turn is told in messages: words with the calls before them, where they are of one time."""
    out, calls, at = [_MessageShape("user", says=True)], 0, None
    for part in _turn_parts(turn):
        if calls and _part_time(part) != at:
            out.append(_MessageShape("assistant", calls))
            calls = 0
        at = _part_time(part)
        if isinstance(part, ToolCall | Step):
            calls += 1
        else:
            out.append(_MessageShape("assistant", calls, says=True))
            calls = 0
    return [*out, _MessageShape("assistant", calls)] if calls else out


def _part_time(part: Part) -> float | None:
    return part.task.created if isinstance(part, Step) else part.time


def _messages_of_shapes(turn: GivenTurn, shapes: Sequence[_MessageShape]) -> list[Message] | None:
    """Messages of these shapes; None where the turn has others."""
    left, out = _turn_parts(turn), list[Message]()
    for shape in shapes:
        calls, left = left[: shape.calls], left[shape.calls :]
        if len(calls) < shape.calls or not all(isinstance(call, ToolCall | Step) for call in calls):
            return None
        words: Saying | Reason | None = None
        if shape.role == "user":
            words = Saying(turn.prompt)
        elif shape.says:
            first, left = (left[0] if left else None), left[1:]
            if not isinstance(first, Saying | Reason):
                return None
            words = first
        out.append(_make_message(turn, len(out), shape, calls, words))
    if left or not out:
        return None
    spent = {kind: files.count_or_zero(turn.tokens.get(kind)) for kind in ("input", "output")}
    if any(spent.values()):
        out[-1]["tokens"] = spent
    return out


def _make_message(
    turn: GivenTurn, number: int, shape: _MessageShape, calls: Sequence[Part], words: Saying | Reason | None
) -> Message:
    is_prompt = shape.role == "user"
    said = (_part_time(one) for one in (words, *calls) if one is not None)
    times = (turn.time,) if is_prompt else (*said, turn.ended, turn.time)
    at = next((time for time in times if time is not None), None)
    records = [_call_record(call) for call in calls]
    out: Message = {
        "id": turn.key if is_prompt and turn.key else _stable_uuid("message", turn.key, str(number)),
        "index": 0,
        "role": shape.role if shape.role in ("user", "tool") else "assistant",
        "content": words.text if words is not None else "",
    }
    if at is not None:
        out["timestamp"] = canonical.rfc3339(round(at * 1000) / 1000 + 0.0005)
    if shape.role == "tool":
        out["content"] = records[0].get("output", "") if records else ""
        out["metadata"] = {"toolName": records[0]["toolName"]} if records else {}
    elif records:
        out["toolCalls"] = records
    model = "" if is_prompt else words.model if isinstance(words, Saying) else turn.model
    if model and shape.role != "tool":
        out["metadata"] = {"model": model}
    return out


def _call_record(call: Part) -> Message:
    """A call, or a cell of a program, as a record of a call."""
    if isinstance(call, ToolCall):
        status = "error" if call.is_error else "success"
        return {"toolName": call.name, "input": dict(call.input), "output": call.output, "status": status}
    assert isinstance(call, Step)
    task, done = call.task, call.outcome
    record: Message = {"toolName": task.operation, "input": dict(task.args)}
    if done is not None:
        record["output"] = done.error if done.error is not None else _output_text(done.result)
        if done.execution_time_ms is not None:
            record["duration"] = done.execution_time_ms
    return {**record, "status": "success" if done is not None and done.ok else "error"}
