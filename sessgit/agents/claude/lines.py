"""What a line of a transcript means, and what a program says on a line of its own session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sessgit.agents.agent_files import file_end
from sessgit.agents.line import CHOSEN, NOWHERE, Line, Redact, no_redaction, parse
from sessgit.errors import UsageError
from sessgit.model import canonical, program_input, stored_fields
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import plausible_count
from sessgit.model.frozen import frozen
from sessgit.model.program_input import Metadata, Outcome, Reason, Task
from sessgit.model.stored_fields import string

SYNTHETIC = "<synthetic>"
"""What the client calls the model of an answer that no model gave."""
BODY_TYPES = ("user", "assistant", "attachment")
"""The types that end a turn's body; `system` lines carry the chain on but belong to no body by themselves."""

_NO_PROMPT = (
    "[Request interrupted",
    "<command-name>",
    "<local-command-",
    "<bash-",
    "<task-notification>",
)
_ID_KEYS = ("uuid", "sessionId", "leafUuid", "messageId")
"""A line of the client's has an id under one of these keys, unless it is a message."""
_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", CHOSEN)}
"""By type of line the key of the title and its rank: what a person chose wins over what the client made up."""
_ANSWER_END = 200
"""So many characters of the end of an answer tell that it is written."""
_ANSWER_WINDOW = 4 << 20
"""So many bytes of the end of the file are searched for an answer."""
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_KINDS = ("type", "subtype", "role")
_IDS = (*_KINDS, "id", "tool_use_id")


@dataclass(frozen=True, slots=True, eq=False)
class ClaudeLine(Line):
    """A line as Claude Code writes it: an object with a type, most with a uuid and that of the line before."""

    @property
    def type(self) -> str:
        return self.text("type")

    @property
    def is_known(self) -> bool:
        is_message = self.is_said and bool(message_of(self))
        return is_message or bool(self.type and any(map(self.text, _ID_KEYS)))

    @property
    def uuid(self) -> str:
        return self.text("uuid")

    @property
    def parent(self) -> str:
        return self.text("parentUuid")

    @property
    def is_root(self) -> bool:
        return self.data is not None and "parentUuid" in self.data and self.data["parentUuid"] is None

    @property
    def session(self) -> str:
        return self.text("sessionId")

    @property
    def forked_from(self) -> str:
        return string((self.data or {}).get("forkedFrom"), "sessionId")

    @property
    def git_branch(self) -> str:
        return self.text("gitBranch")

    @property
    def slug(self) -> str:
        return self.text("slug")

    @property
    def title(self) -> tuple[str, int] | None:
        key, rank = _TITLES.get(self.type, ("", 0))
        return (self.text(key), rank) if key else None

    @property
    def is_headless(self) -> bool | None:
        entry = self.text("entrypoint") if self.type == "user" else ""
        return entry.startswith("sdk") if entry else None

    @property
    def message_text(self) -> str:
        texts = (block.get("text") for block in blocks(self) if block.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def is_boundary(self) -> bool:
        return self.type == "system" and self.text("subtype") == "compact_boundary"

    @property
    def is_work(self) -> bool:
        """Return whether the agent is at work here: an answer of the model or the result of a tool."""
        return self.type == "assistant" or self.is_result

    @property
    def time(self) -> str:
        return canonical.moment(self.text("timestamp"))

    @property
    def is_prompt(self) -> bool:
        data = self.data
        if data is None or self.type != "user" or not isinstance(data.get("message"), dict):
            return False
        if any(data.get(flag) for flag in ("isMeta", "isSidechain", "isCompactSummary")) or tool_results(self):
            return False
        origin = data.get("origin")
        if isinstance(origin, dict) and origin.get("kind") not in (None, "human"):
            return False
        return opens_turn(self.message_text)

    @property
    def is_body(self) -> bool:
        return self.type in BODY_TYPES

    @property
    def is_result(self) -> bool:
        return self.type == "user" and bool(tool_results(self))

    @property
    def is_said(self) -> bool:
        return self.type in ("user", "assistant")

    @property
    def is_sidechain(self) -> bool:
        return self.data is not None and bool(self.data.get("isSidechain"))

    @property
    def is_end(self) -> bool:
        is_text = all(block.get("type") == "text" for block in blocks(self))
        return self.type == "assistant" and is_text and message_of(self).get("stop_reason") != "tool_use"


def make(raw: bytes, extent: Extent = NOWHERE, redact: Redact = no_redaction) -> Line:
    """Return the line as it is stored, by default a stored one without a place."""
    clean, secrets = redact(raw)
    return ClaudeLine(clean, extent, parse(clean), raw if secrets else None, secrets)


def parsed(lines: Iterable[bytes]) -> list[Line]:
    """Return stored lines as `Line`s without a place."""
    return list(map(make, lines))


def objects_on(raw: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the lines glued to one: objects that only a whole line can be, what is torn between them passed
    over. Bytes that are no UTF-8 become U+FFFD."""
    text = raw.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = text.find('{"')
    while at >= 0:
        try:
            data, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find('{"', at + 1)
            continue
        if isinstance(data, dict) and isinstance(data.get("type"), str) and ("uuid" in data or "sessionId" in data):
            yield text[at:end].encode(), data
            at = text.find('{"', end)
        else:
            at = text.find('{"', at + 1)


def message_of(line: Line) -> dict[str, Any]:
    """Return the line's message, or an empty one."""
    message = line.data.get("message") if line.data else None
    return message if isinstance(message, dict) else {}


def message_id(line: Line) -> str:
    """Return the id of the model's message that the line is a part of, or ""."""
    return string(message_of(line), "id")


def blocks(line: Line) -> list[dict[str, Any]]:
    """Return the content blocks of the line's message; text alone counts as one text block."""
    content = message_of(line).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def tool_calls(line: Line) -> list[dict[str, Any]]:
    """Return the calls of tools on the line."""
    return [block for block in blocks(line) if block.get("type") == "tool_use"]


def tool_results(line: Line) -> list[dict[str, Any]]:
    """Return the results of tools on the line."""
    return [b for b in blocks(line) if b.get("type") == "tool_result"]


def call_ids(line: Line) -> list[str]:
    """Return the ids of the calls on the line."""
    return [call for block in tool_calls(line) if (call := string(block, "id"))]


def result_ids(line: Line) -> list[str]:
    """Return the ids of the calls whose results the line has."""
    return [call for block in tool_results(line) if (call := string(block, "tool_use_id"))]


def text_of(content: object) -> tuple[str, tuple[str, ...]]:
    """Return the text of a message's or a result's content, a string or blocks, and the images in it as base64."""
    if isinstance(content, str):
        return content, ()
    texts, images = list[str](), list[str]()
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            if block.get("type") == "image":
                images.append(string(block.get("source"), "data"))
            if isinstance(block.get("text"), str):
                texts.append(block["text"])
    return "\n".join(texts), tuple(images)


def message_key(line: Line, number: int) -> str:
    """Return what the lines of one message of the model have in common; `number` is the line's in its turn, from 1."""
    return message_id(line) or line.uuid or str(number)


def display_prompt(text: str) -> str:
    """Return a prompt as a person typed it: a slash command as `/name arguments`."""
    is_command = text.lstrip().startswith(("<command-message>", "<command-name>"))
    command = _COMMAND.search(text) if is_command else None
    if command is None:
        return text
    arguments = _ARGUMENTS.search(text)
    return f"{command[1]} {arguments[1]}".strip() if arguments else command[1]


def is_chained(line: Line) -> bool:
    """Return whether other lines of the conversation may name the line as their parent."""
    return bool(line.uuid) and not line.is_sidechain


def milliseconds(line: Line) -> int:
    """Return the line's time in milliseconds since 1970, or 0 if it has none."""
    return round((canonical.seconds(line.text("timestamp")) or 0) * 1000)


def compact(document: Mapping[str, object], *, allow_nan: bool = True) -> bytes:
    """Return the document on one line, as the client writes it; raise ValueError for a NaN that is not allowed."""
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=allow_nan).encode()
    except UnicodeEncodeError:  # half a character
        return json.dumps(document, separators=(",", ":"), allow_nan=allow_nan).encode()


def queued_prompt(line: Line) -> dict[str, Any]:
    """Return what was queued while the agent was at work, or an empty object."""
    attached = line.data.get("attachment") if line.data and line.type == "attachment" else None
    return attached if isinstance(attached, dict) and attached.get("type") == "queued_command" else {}


def is_notification(queued: dict[str, Any]) -> bool:
    """Return whether the client queued it, and not a person."""
    return queued.get("commandMode") == "task-notification"


def holds_answer(path: Path, offset: int, answer: str | None) -> bool | None:
    """Return whether the file holds the end of the answer after `offset`, on a complete line; None without an
    answer."""
    if not answer:
        return None
    expected = json.dumps(answer, ensure_ascii=False)[1:-1][-_ANSWER_END:].encode("utf-8", "replace")
    data, size = file_end(path, _ANSWER_WINDOW)
    data = data[max(0, offset - size + len(data)) :]
    place = data.rfind(expected)
    return place >= 0 and (data.find(b"\n", place) >= 0 or parse(data[data.rfind(b"\n") + 1 :]) is not None)


def opens_turn(text: str) -> bool:
    """Return whether words of a person would be a prompt; the client's own begin otherwise."""
    return not text.lstrip().startswith(_NO_PROMPT)


def with_session(raw: bytes, old: Sequence[str], new: str) -> bytes:
    """Return the line with the session's id in the place of others, wherever one is a `sessionId`."""
    for agent_id in old:
        raw = raw.replace(b'"sessionId":"%s"' % agent_id.encode(), b'"sessionId":"%s"' % new.encode())
    return raw


def identity(raw: bytes, protected: Iterable[str]) -> tuple[object, ...]:
    """Return all ids and kinds on a line: what must stay when a value is removed from it."""
    line = make(raw)
    if line.data is None:
        return ()
    message = line.data.get("message")
    own = tuple(line.data.get(key) for key in (*sorted(protected), *_KINDS))
    called = tuple(message.get(key) for key in _IDS) if isinstance(message, dict) else None
    parts = tuple(block.get(key) for block in blocks(line) for key in _IDS)
    return (*own, called, *parts)


# Marks: what a program says where the client's form has no place for it, under a top-level key `sessgit`, which the
# client passes over and keeps. A line comes from outside, so what is no mark, in any part of it, is none at all: then
# the line means what it would mean without.

MARK_KEY = "sessgit"
OUTSIDE = "outsideTranscript"
"""The key of a line that is not in the transcript."""
_FARTHEST = 10_000
"""The longest list of words on a reason that is read."""


@frozen
class Mark:
    """What a line says: that it begins a cell, that it says a reason, or that no model said its words or made its
    calls, but the program itself (`words`)."""

    task: Task | None = None
    call: str = ""
    """The client's id for the call that is the cell."""
    result_of: str = ""
    """The id of a cell, if the line's one call asks for the result of it; then `call` is the client's id for that."""
    reason: Reason | None = None
    words: bool = False


NO_MARK = Mark()


def mark_of(line: Line) -> Mark:
    """Return the mark of an assistant's line."""
    mark = _mark_on(line)
    if not mark:
        return NO_MARK
    if mark.get("words") is True:
        return Mark(words=True)
    calls = tool_calls(line)
    call = string(calls[0], "id") if len(calls) == 1 else ""
    if isinstance(mark.get("cell"), dict):
        task = _task(mark["cell"], calls[0]) if call else None
        return Mark(task, call) if task is not None else NO_MARK
    if call and program_input.CELL_ID.fullmatch(string(mark, "result_of")):
        return Mark(call=call, result_of=mark["result_of"])
    return Mark(reason=_reason(mark.get("reason")))


def is_outside(line: Line) -> bool:
    """Return whether a program added the line outside a transcript: the model never saw it."""
    return line.data is not None and line.data.get(OUTSIDE) is True


def is_stand_in(line: Line) -> bool:
    """Return whether a line with a result says that there is none yet."""
    return _mark_on(line).get("running") is True and len(tool_results(line)) == 1


def noted_outcome(line: Line) -> Outcome | None:
    """Return what a line with the result of one cell says of it; None where it is a line of the client's own."""
    noted, results = _mark_on(line).get("outcome"), tool_results(line)
    if not isinstance(noted, dict) or len(results) != 1:
        return None
    content, error = results[0].get("content"), noted.get("error")
    text = content if isinstance(content, str) else None
    try:
        if results[0].get("is_error") is True:
            error = error if isinstance(error, str) else text if text is not None else "it failed"
            result = _plain(noted.get("result")) if "error" in noted else None
        else:
            error = None
            result = _plain(json.loads(text or "")) if noted.get("json") is True else text
    except (ValueError, RecursionError, UsageError):
        return None
    tokens = noted.get("tokens")
    return Outcome(
        result,
        error,
        _number(noted.get("execution_time_ms")),
        string(noted, "model"),
        {str(kind): plausible_count(n) for kind, n in tokens.items()} if isinstance(tokens, dict) else {},
    )


def task_mark(task: Task, name: str) -> dict[str, Any]:
    """Return the mark of a call, for `task` with an id; `name` is what the call has as the tool's name."""
    metadata = {key: value for key, value in stored_fields.to_json(task.metadata).items() if value}
    cell = {
        "id": task.id, "type": task.type, "operation": "" if task.operation == name else task.operation,
        "source": task.source, "dependencies": list(task.dependencies), "created_at": task.created,
        "metadata": metadata,
    }  # fmt: skip
    return {"cell": _present(cell)}


def outcome_mark(outcome: Outcome) -> tuple[str, dict[str, Any]]:
    """Return the text of a result, and its mark."""
    noted: dict[str, Any] = {}
    if outcome.error is not None:
        text = outcome.error
        noted["error"] = outcome.error
        if outcome.result is not None:
            noted["result"] = outcome.result
    elif isinstance(outcome.result, str):
        text = outcome.result
    else:
        text = program_input.to_json_line(outcome.result, "the result of a cell")
        noted["json"] = True
    used = {"execution_time_ms": outcome.execution_time_ms, "model": outcome.model, "tokens": dict(outcome.tokens)}
    noted |= _present(used)
    program_input.to_json_line(noted, "the result of a cell")
    return text, {"outcome": noted}


def reason_mark(reason: Reason) -> dict[str, Any]:
    """Return the mark of a line that says a reason."""
    fields = stored_fields.to_json(replace(reason, time=None))
    return {"reason": _present(fields)}


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say something."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}


def _mark_on(line: Line) -> Mapping[str, Any]:
    mark = line.data.get(MARK_KEY) if line.data else None
    return mark if isinstance(mark, dict) else {}


def _task(cell: Mapping[str, Any], call: Mapping[str, Any]) -> Task | None:
    arguments = call.get("input")
    dependencies = cell.get("dependencies", [])
    if not isinstance(arguments, dict) or not isinstance(dependencies, list):
        return None
    if not all(isinstance(other, str) for other in dependencies):
        return None
    try:
        return program_input.check(
            Task(
                string(cell, "type"),
                string(cell, "operation") or string(call, "name"),
                arguments,
                string(cell, "source"),
                tuple(dict.fromkeys(dependencies)),
                # Without one it would get one of its own, another each time.
                string(cell, "id") or "none",
                _number(cell.get("created_at")),
                _metadata(cell.get("metadata")),
            )
        )
    except UsageError:
        return None


def _plain(value: Any) -> Any:
    """Return the value, if it is one that JSON has: Python reads more than that."""
    program_input.to_json_line(value, "a result")
    return value


def _metadata(document: object) -> Metadata:
    return stored_fields.read(Metadata, document) if isinstance(document, dict) else Metadata()


def _reason(document: object) -> Reason | None:
    if (
        not isinstance(document, dict)
        or document.get("kind") not in ("trace", "decision")
        or not string(document, "text")
    ):
        return None
    reason = Reason(
        document["kind"], string(document, "text"), _texts(document.get("evidence")), _texts(document.get("options")),
        string(document, "chosen"),
    )  # fmt: skip
    confidence = _number(document.get("confidence"))
    return replace(reason, confidence=confidence if confidence is not None and 0 <= confidence <= 1 else None)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value[:_FARTHEST] if isinstance(text, str)) if isinstance(value, list) else ()


def _number(value: object) -> float | None:
    """Return the value where it is a plausible number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 53 else None
