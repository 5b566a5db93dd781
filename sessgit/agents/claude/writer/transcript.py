"""Turns into a transcript that every version of the client resumes.

What is needed was measured with three of them: one linear chain of unique uuids, no call without its result at the
end, a last `last-prompt` that names the leaf, and a leaf that is later than every other line: 2.0 takes the newest
line for the leaf, and of two in the same millisecond the first. Blocks stay whole and unchanged; of a line only its
session's id, where its parent was left out its `parentUuid`, and of the leaf, if need be, its time are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessgit.agents.claude.cells import display_prompt, is_program, message_of, text_of
from sessgit.agents.claude.lines import BODY_TYPES, ClaudeLine, blocks, is_prompt, parsed, said, tool_results
from sessgit.agents.line import Line, parse
from sessgit.agents.values import Written
from sessgit.model import canonical, json_scan
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import Cell

_LEFT_OUT = ("queue-operation", "last-prompt", "api-request", "api-request-blob", "api-request-shape", "cost-state")
"""Housekeeping of the client that it writes anew, or that tells of prompts which are not in the fork."""


_WORDS = ("text", "image", "document")
"""The blocks in which something is said."""
_OF_SESSION = ("sessionId", "session_id")
_READ = ("uuid", "type", "parentUuid", "timestamp", *_OF_SESSION)
"""What of a line decides what becomes of it."""
_NAMING = ("custom-title", "ai-title", "summary")

_NOWHERE = Extent(0, 0)
_Data = Mapping[str, Any]
"""The JSON object on a line."""


def resumable(turns: Iterable[Sequence[bytes]], agent_id: str, title: str = "") -> Written:
    """The turns, each given as its stored lines, as one transcript of the session `agent_id`; they are taken one after
    another, and none is kept."""
    writer = _Writer(agent_id)
    last: Sequence[bytes] = ()
    for lines in turns:
        writer.turn(last)
        last = lines
    kept, dropped = _up_to_last_result(parsed(last))
    writer.turn(line.raw for line in kept)
    prompt = next((display_prompt(said(line)) for line in kept if is_prompt(line)), "")
    return Written(writer.finish(title, prompt), writer.leaf, dropped)


def continued(
    shared: Sequence[Sequence[bytes]], more: Sequence[Sequence[bytes]], agent_id: str
) -> tuple[Written, bytes]:
    """The beginning that `resumable` makes of the shared turns, and the lines with which further ones go on from it:
    together a transcript as well, if every call in the shared ones has its result."""
    beginning = resumable(shared, agent_id) if shared else Written((), "")
    writer = _Writer(agent_id)
    for raw in shared:
        writer.turn(raw)
    prompt = ""
    for raw in more:
        writer.turn(raw)
        prompt = next((display_prompt(said(line)) for line in parsed(raw) if is_prompt(line)), prompt)
    return beginning, b"".join(writer.finish("", prompt)[len(shared) :])


def session_ids(line: Line) -> set[str]:
    """The sessions that a line names as its own."""
    return {name for key in _OF_SESSION if (name := line.text(key))}


def leads_back(body: Sequence[Line]) -> bool:
    """Whether the client finds its way from the last line of a turn back to the first one, by what each names as its
    parent: of what it does not find it sends nothing."""
    own = [line for line in body if line.is_body and line.data and not line.is_sidechain]
    by_uuid = {line.uuid: line for line in body if line.uuid}
    uuid = own[-1].uuid if own else ""
    while line := by_uuid.pop(uuid, None):
        uuid = line.parent
        if line is own[0] or line.is_boundary:
            return True
    # One that is not in this turn is in an earlier one; a circle is none of both.
    return bool(uuid) and uuid not in {one.uuid for one in body}


def cell_end(body: Sequence[Line], cells: Sequence[Cell], chosen: Cell) -> int:
    """The number of the line at which a turn can be cut behind a cell: every call up to there has its result, if it
    ever gets one."""
    if not is_program(body, chosen):
        message = chosen.id if chosen.type == "llm_call" else chosen.depends[0]
        together = [one for one in cells if one.id == message or (message in one.depends[:1] and one.type == "tool")]
        return max(n for cell in together for n in cell.lines)
    end = max(chosen.lines)
    open_calls = {block.get("id") for line in body[:end] for block in blocks(line) if block.get("type") == "tool_use"}
    for number, line in enumerate(body, start=1):
        for block in tool_results(line):
            if block.get("tool_use_id") in open_calls:
                open_calls.remove(block.get("tool_use_id"))
                end = max(end, number)
    return end


def summary(lines: Iterable[Line]) -> str:
    """The text of the last summary that a compaction left in these lines, or ``""``."""
    found = [line for line in lines if line.data and line.data.get("isCompactSummary")]
    return text_of(message_of(found[-1]).get("content"))[0] if found else ""


def spoken(lines: Iterable[bytes]) -> list[bytes]:
    """The lines of a turn in which something was said, with their other blocks left out, each hanging on the one
    before it that is left; a line with nothing but words stays as it is.

    A compaction stays: without its boundary a client would send what came before it once more.
    """
    out, relinked = list[bytes](), dict[str, str]()
    for line in parsed(lines):
        kept = _without_tools(line)
        parent = relinked.get(line.parent, line.parent)
        if kept is None:
            if line.uuid:
                relinked[line.uuid] = parent
            continue
        if parent != line.parent:
            kept = {**kept, "parentUuid": parent or None}
        out.append(line.raw if kept is line.data else compact(kept))
    return out


def _without_tools(line: Line) -> dict[str, Any] | None:
    """What is left of a line; None where nothing is. A prompt is, whatever it holds: it opens its turn."""
    data = line.data
    if data is None or data.get("isSidechain"):
        return None
    if line.type in _NAMING or line.is_boundary or data.get("isCompactSummary"):
        return data
    if line.type == "attachment":
        return data if _is_queued(data.get("attachment")) else None
    if line.type not in ("user", "assistant") or (line.type == "user" and not is_prompt(line)):
        return None
    every = blocks(line)
    words = [block for block in every if block.get("type") in _WORDS]
    if len(words) == len(every) or (line.type == "user" and not words):
        return data
    if not words:
        return None
    return {**data, "message": {**data["message"], "content": words}}


def _is_queued(attached: object) -> bool:
    """Whether a person said it while the agent was at work."""
    return (
        isinstance(attached, dict)
        and attached.get("type") == "queued_command"
        and attached.get("commandMode") != "task-notification"
    )


class _Writer:
    """Takes turns, each of which becomes one part. A session has lines by the ten thousand: of those that are written
    only the bytes of their turn are kept, and where in them the leaf is."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.leaf = ""
        self._leaf_at = (0, 0)
        """The part, and the line in it."""
        self._leaf_time = ""
        self._latest = ""
        """The latest time of all lines but the leaf."""
        self._parts: list[bytes] = []
        self._lines: list[bytes] = []
        """Those of the turn that is being written."""
        self._emitted: set[str] = set()
        self._relinked: dict[str, str] = {}
        self._members: dict[tuple[str, str], tuple[bytes, bytes]] = {}

    def turn(self, lines: Iterable[bytes]) -> None:
        for raw in lines:
            self._line(raw)
        self._parts.append(b"\n".join([*self._lines, b""]))
        self._lines = []

    def finish(self, title: str, prompt: str) -> list[bytes]:
        """The parts of the whole transcript, of which the last holds the lines that tell the client its title and where
        to go on."""
        self._make_leaf_latest()
        last = [title_line(title, self.agent_id)] if title else []
        if self.leaf:
            shown = canonical.one_line(prompt, 200)
            told = {"type": "last-prompt", "lastPrompt": shown, "leafUuid": self.leaf, "sessionId": self.agent_id}
            last.append(compact(told))
        return [*self._parts, b"".join(line + b"\n" for line in last)]

    def _line(self, raw: bytes) -> None:
        data = parse(raw)
        if data is None:
            return
        uuid, kind, named, time, *ids = map(data.get, _READ)
        if not (isinstance(uuid, str) and isinstance(kind, str) and isinstance(named, str) and isinstance(time, str)):
            uuid, kind, named, time = (value if isinstance(value, str) else "" for value in (uuid, kind, named, time))
        if kind in _LEFT_OUT or data.get("isSidechain"):
            self._leave_out(uuid, named)
            return
        if uuid in self._emitted:
            return
        parent = self._parent(named, kind) if uuid else named
        if parent is None:
            self._leave_out(uuid, named)
            return
        raw = self.own(raw, ids)
        if parent != named:
            raw = _replaced(raw, "parentUuid", named, parent)
        if uuid and kind in BODY_TYPES:
            self.leaf, self._leaf_at = uuid, (len(self._parts), len(self._lines))
            time, self._leaf_time = self._leaf_time, time
        self._latest = max(self._latest, time)
        if uuid:
            self._emitted.add(uuid)
        self._lines.append(raw)

    def _parent(self, named: str, kind: str) -> str | None:
        """The uuid that a line shall name as its parent, ``""`` for none; None where it is off the chain."""
        if not named:
            return ""
        parent = self._relinked.get(named, named)
        if not parent or parent in self._emitted:
            return parent
        return self.leaf if kind in ("user", "assistant") else None

    def _make_leaf_latest(self) -> None:
        moment = canonical.seconds(self._latest)
        if not self.leaf or self._leaf_time > self._latest or moment is None:
            return
        part, number = self._leaf_at
        lines = self._parts[part].split(b"\n")
        later = canonical.rfc3339(moment + 0.0015)
        lines[number] = _replaced(lines[number], "timestamp", self._leaf_time, later)
        self._parts[part] = b"\n".join(lines)

    def _leave_out(self, uuid: str, parent: str) -> None:
        if uuid and uuid not in self._emitted:
            self._relinked[uuid] = self._relinked.get(parent, parent)

    def own(self, raw: bytes, ids: Iterable[object]) -> bytes:
        """The line as this session's; `ids` are those of the sessions that it names."""
        for key, old in zip(_OF_SESSION, ids, strict=True):
            if old and old != self.agent_id and isinstance(old, str):
                if (key, old) not in self._members:
                    self._members[key, old] = _member(key, old), _member(key, self.agent_id)
                theirs, own = self._members[key, old]
                ours = raw.replace(theirs, own)
                raw = ours if ours != raw else _replaced(raw, key, old, self.agent_id)
        return raw


def as_session(raw: bytes, agent_id: str) -> bytes:
    """A line as one of the session `agent_id`."""
    data = parse(raw)
    return _Writer(agent_id).own(raw, [_text(data, key) for key in _OF_SESSION])


def title_line(title: str, agent_id: str) -> bytes:
    """The line by which the client knows a session's title, without its newline."""
    return compact({"type": "custom-title", "customTitle": title, "sessionId": agent_id})


def is_titles(data: bytes, agent_id: str) -> bool:
    """Whether the bytes are lines with titles of the session and nothing else."""
    lines = data.split(b"\n")
    return not lines[-1] and all(line == title_line(title_of(line), agent_id) for line in lines[:-1])


def title_of(data: bytes) -> str:
    """The title that the last `custom-title` line of a transcript gives, or ``""``."""
    at = len(data)
    while (at := data.rfind(b'"custom-title"', 0, at)) >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        line = ClaudeLine(b"", _NOWHERE, parse(data[start : data.find(b"\n", at) % (len(data) + 1)]))
        if line.type == "custom-title" and line.text("customTitle"):
            return line.text("customTitle")
        at = start
    return ""


def compact(document: Mapping[str, object]) -> bytes:
    """The document on one line, as the client writes it."""
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(document, separators=(",", ":")).encode()


def _text(data: _Data | None, key: str) -> str:
    value = data.get(key) if data else None
    return value if isinstance(value, str) else ""


def _replaced(raw: bytes, key: str, old: str, new: str) -> bytes:
    """The line with the string of a key replaced, in the compact form that the client writes, else reserialised."""
    token = _member(key, old)
    if token in raw:
        return raw.replace(token, _member(key, new), 1)
    document = json.loads(raw)
    document[key] = new or None
    return compact(document)


def _member(key: str, value: str) -> bytes:
    return json_scan.encode_string(key) + b":" + (json_scan.encode_string(value) if value else b"null")


def _up_to_last_result(lines: list[Line]) -> tuple[list[Line], int]:
    """The lines up to where every tool call has its result, and how many calls were left out."""
    answered = {b.get("tool_use_id") for line in lines for b in tool_results(line)}
    for index, line in enumerate(lines):
        open_calls = [b for b in blocks(line) if b.get("type") == "tool_use" and b.get("id") not in answered]
        if open_calls:
            first = _first_of_message(lines, index)
            calls = (b for later in lines[first:] for b in blocks(later) if b.get("type") == "tool_use")
            return lines[:first], sum(b.get("id") not in answered for b in calls)
    return lines, 0


def _first_of_message(lines: Sequence[Line], index: int) -> int:
    """Where the message begins whose block stands at `index`: a message is sent whole or not at all."""
    message = _message_id(lines[index])
    first = index
    while first and message and lines[first - 1].type == "assistant" and _message_id(lines[first - 1]) == message:
        first -= 1
    return first


def _message_id(line: Line) -> str:
    message = line.data.get("message") if line.data else None
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str) else ""
