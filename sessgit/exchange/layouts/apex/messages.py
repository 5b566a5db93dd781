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
from sessgit.exchange.layouts.difference import less, more
from sessgit.model import canonical
from sessgit.model.program_input import GivenTurn, Part, Reason, Saying, Step, ToolCall

NAMELESS = "apex"
"""The model of messages that say what they used and not of what."""
_NAMESPACE = uuid.UUID("0f4f8c5c-64d5-5b0c-8f0e-9a2f3f2b9d10")
_STAMPS = ("id", "timestamp")
_LONGEST_MODEL = 100
_LONGEST_TOOL = 128

Message = dict[str, Any]
Rest = dict[str, Any]
"""`before` are messages in front of all turns, `turns` has by the key of each turn an item for each of its messages."""


@dataclass(frozen=True, slots=True)
class Told:
    """The turns that messages say, the place of the last message of each, and the rest."""

    turns: tuple[GivenTurn, ...]
    ends: tuple[int, ...]
    items: tuple[list[Message], ...]
    before: list[Any]

    @property
    def rest(self) -> Rest:
        return {"before": self.before, "turns": {t.key: i for t, i in zip(self.turns, self.items, strict=True)}}


@dataclass(frozen=True, slots=True)
class _Shape:
    """What of a turn a message holds: its prompt or words, and so many calls; of the tool's own, what one call said."""

    role: str
    calls: int = 0
    says: bool = False


@dataclass
class _Group:
    """The messages of one turn, as they are read."""

    shapes: list[_Shape | None] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    prompt: str = ""
    said: list[Message] = field(default_factory=list)
    """Those that are not the prompt and that the turn holds."""


# Reading


def read(messages: Sequence[Any], session: str, opening: str) -> Told:
    """The turns of messages in their order; `session` is its id, and `opening` stands for the prompt of messages in
    front of the first one."""
    turns, ends, items, keys = list[GivenTurn](), list[int](), list[list[Message]](), set[str]()
    before = list[Any]()
    for start, end in pairwise(_cuts(messages)):
        group = messages[start:end]
        turn, shapes = _turn(group, opening)
        if not turn.prompt or not any(shapes):
            before += group
            continue
        turn = replace(turn, key=_key(group[0], session, start, keys))
        keys.add(turn.key)
        turns.append(turn)
        ends.append(end - 1)
        items.append(_items(group, turn, shapes, start))
    return Told(tuple(turns), tuple(ends), tuple(items), before)


def _cuts(messages: Sequence[Any]) -> list[int]:
    """Where turns begin, and the end."""
    return sorted({0, *(n for n, one in enumerate(messages) if _is_prompt(one)), len(messages)})


def _is_prompt(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user" and bool(_words(message).strip())


def _turn(group: Sequence[Any], opening: str) -> tuple[GivenTurn, list[_Shape | None]]:
    found = _Group(prompt=opening)
    for number, message in enumerate(group):
        found.shapes.append(_taken(found, message, is_first=number == 0) if isinstance(message, dict) else None)
    last = found.parts[-1] if found.parts else None
    answer = last.text if isinstance(last, Saying) else ""
    first = group[0] if found.shapes[:1] != [None] and _is_prompt(group[0]) else {}
    used = {kind: sum(_used(one, kind) for one in group) for kind in ("input", "output")}
    model = _model(found.said[-1]) if found.said else ""
    return GivenTurn(
        prompt=found.prompt,
        parts=tuple(found.parts[:-1] if answer else found.parts),
        answer=answer,
        model=model or (NAMELESS if any(used.values()) else ""),
        time=_moment(first or (found.said or [{}])[0]),
        ended=_moment(found.said[-1]) if found.said else None,
        tokens={kind: n for kind, n in used.items() if n},
    ), found.shapes  # fmt: skip


def _taken(found: _Group, message: Message, *, is_first: bool) -> _Shape | None:
    """What the turn takes over of a message; None where it has no place for it."""
    role, words, calls, at = message.get("role"), _words(message), _calls(message), _moment(message)
    if is_first and _is_prompt(message):
        found.prompt = words
        found.parts += calls
        return _Shape("user", len(calls), says=True)
    has_words = bool(words.strip())
    if role not in ("assistant", "tool") or not (has_words or calls):
        return None
    found.said.append(message)
    if role == "tool" and not calls:
        found.parts.append(ToolCall(_tool(_named(message)), output=words, time=at))
        return _Shape("tool", 1)
    found.parts += calls
    if has_words:
        found.parts.append(Saying(words, _model(message), at))
    return _Shape("assistant", len(calls), has_words)


def _moment(message: Mapping[str, Any]) -> float | None:
    return files.seconds(message.get("timestamp"))


def _words(message: Mapping[str, Any]) -> str:
    """The text of a message, with the blocks of code that do not stand in it."""
    text = files.text(message.get("content"))
    for block in files.objects(message.get("codeBlocks")):
        code = files.text(block.get("code"))
        if code.strip() and code.strip() not in text:
            name, language = (canonical.one_line(files.text(block.get(key)), 200) for key in ("filename", "language"))
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            head = f"**{name}**\n" if name else ""
            text = f"{text}\n\n{head}{fence}{language}\n{code.removesuffix(chr(10))}\n{fence}".lstrip("\n")
    return text


def _calls(message: Mapping[str, Any]) -> list[Part]:
    """The calls of a message; none where one of them is no record of a call."""
    given = files.items(message.get("toolCalls"))
    if not all(isinstance(one, dict) and isinstance(one.get("toolName"), str) for one in given):
        return []
    return [
        ToolCall(
            _tool(one["toolName"]),
            files.mapping(one.get("input")),
            _output(one.get("output")),
            one.get("status") == "error",
            time=_moment(message),
        )
        for one in given
    ]


def _output(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _named(message: Mapping[str, Any]) -> str:
    noted = files.mapping(message.get("metadata"))
    named = (files.text(one) for one in (noted.get("toolName"), noted.get("tool"), message.get("name")))
    return next((name for name in named if name), "tool")


def _tool(name: str) -> str:
    """The name as a model's service takes it."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_LONGEST_TOOL] or "tool"


def _model(message: Mapping[str, Any]) -> str:
    model = files.text(files.mapping(message.get("metadata")).get("model")) or files.text(message.get("agent"))
    return canonical.one_line(model, _LONGEST_MODEL)


def _used(message: Any, kind: str) -> int:
    tokens = message.get("tokens") if isinstance(message, dict) else None
    return files.whole(files.mapping(tokens).get(kind))


def _key(message: Any, session: str, place: int, taken: set[str]) -> str:
    """The key of the turn that a message opens: its own id where that is a uuid, and of no turn before."""
    own = files.text(message.get("id")) if isinstance(message, dict) and _is_prompt(message) else ""
    try:
        key = str(uuid.UUID(own))
    except ValueError:
        key = ""
    return key if key and key not in taken else _uuid(session, str(place), own)


def _uuid(*words: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join(words).encode("utf-8", "surrogatepass").hex()))


def _items(group: Sequence[Any], turn: GivenTurn, shapes: Sequence[_Shape | None], place: int) -> list[Message]:
    """What each message says beside what its turn says."""
    made = iter(_shaped(turn, [shape for shape in shapes if shape is not None]) or [])
    out = list[Message]()
    for number, (message, shape) in enumerate(zip(group, shapes, strict=True)):
        if shape is None:
            out.append({"whole": message})
            continue
        item: Message = {"role": shape.role, "calls": shape.calls, "says": shape.says}
        whole = next(made) | {"index": place + number}
        records = list(zip(files.items(message.get("toolCalls")), files.items(whole.get("toolCalls")), strict=False))
        if shape.role != "tool" and shape.calls:
            whole["toolCalls"] = message["toolCalls"]
            item["records"] = [less(*pair) for pair in records]
        item |= less(message, whole)
        # Noted whatever the turn says: recording a turn can move it.
        item["stamps"] = {key: message[key] for key in _STAMPS if key in message}
        item["unset"] = sorted({*item.get("unset", ()), *(key for key in _STAMPS if key not in message)})
        out.append({key: value for key, value in item.items() if value})
    return out


# Writing


def written(turns: Sequence[GivenTurn], rest: Mapping[str, Any]) -> list[Any]:
    """The messages of the turns, with the rest."""
    out = list(files.items(rest.get("before")))
    noted = files.mapping(rest.get("turns"))
    for turn in turns:
        out += _messages(turn, files.objects(noted.get(turn.key)), len(out))
    return out


def _messages(turn: GivenTurn, items: Sequence[Mapping[str, Any]], place: int) -> list[Any]:
    own = [item for item in items if "whole" not in item]
    made = _shaped(turn, [_shape(item) for item in own]) if own else None
    if made is None:
        held = [item["whole"] for item in items if "whole" in item]
        plain = _shaped(turn, _plain(turn)) or []
        return [*({**one, "index": place + n} for n, one in enumerate(plain)), *held]
    out, left = list[Any](), iter(made)
    for number, item in enumerate(items):
        if "whole" in item:
            out.append(item["whole"])
            continue
        message = next(left) | {"index": place + number}
        records = zip(files.items(message.get("toolCalls")), files.objects(item.get("records")), strict=False)
        if "records" in item:
            message["toolCalls"] = [more(*pair) for pair in records]
        out.append({**more(message, item), **files.mapping(item.get("stamps"))})
    return out


def _shape(item: Mapping[str, Any]) -> _Shape:
    return _Shape(files.text(item.get("role")), files.whole(item.get("calls")), item.get("says") is True)


def _sequence(turn: GivenTurn) -> list[Part]:
    return [*turn.parts, *([Saying(turn.answer, turn.model, turn.ended)] if turn.answer else [])]


def _plain(turn: GivenTurn) -> list[_Shape]:
    """How a turn is told in messages: words with the calls before them, where they are of one time."""
    out, calls, at = [_Shape("user", says=True)], 0, None
    for part in _sequence(turn):
        if calls and _at(part) != at:
            out.append(_Shape("assistant", calls))
            calls = 0
        at = _at(part)
        if isinstance(part, ToolCall | Step):
            calls += 1
        else:
            out.append(_Shape("assistant", calls, says=True))
            calls = 0
    return [*out, _Shape("assistant", calls)] if calls else out


def _at(part: Part) -> float | None:
    return part.task.created if isinstance(part, Step) else part.time


def _shaped(turn: GivenTurn, shapes: Sequence[_Shape]) -> list[Message] | None:
    """Messages of these shapes; None where the turn has others."""
    left, out = _sequence(turn), list[Message]()
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
        out.append(_message(turn, len(out), shape, calls, words))
    if left or not out:
        return None
    spent = {kind: files.whole(turn.tokens.get(kind)) for kind in ("input", "output")}
    if any(spent.values()):
        out[-1]["tokens"] = spent
    return out


def _message(
    turn: GivenTurn, number: int, shape: _Shape, calls: Sequence[Part], words: Saying | Reason | None
) -> Message:
    is_prompt = shape.role == "user"
    said = (_at(one) for one in (words, *calls) if one is not None)
    times = (turn.time,) if is_prompt else (*said, turn.ended, turn.time)
    at = next((time for time in times if time is not None), None)
    records = [_record(call) for call in calls]
    out: Message = {
        "id": turn.key if is_prompt and turn.key else _uuid("message", turn.key, str(number)),
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


def _record(call: Part) -> Message:
    """A call, or a cell of a program, as a record of a call."""
    if isinstance(call, ToolCall):
        status = "error" if call.is_error else "success"
        return {"toolName": call.name, "input": dict(call.input), "output": call.output, "status": status}
    assert isinstance(call, Step)
    task, done = call.task, call.outcome
    record: Message = {"toolName": task.operation, "input": dict(task.args)}
    if done is not None:
        record["output"] = done.error if done.error is not None else _output(done.result)
        if done.execution_time_ms is not None:
            record["duration"] = done.execution_time_ms
    return {**record, "status": "success" if done is not None and done.ok else "error"}
