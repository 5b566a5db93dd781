"""Turns into a transcript that every version of the client resumes.

What is needed was measured with three of them: one linear chain of unique uuids, no call without its result at the
end, a last `last-prompt` that names the leaf, and a leaf that is later than every other line: 2.0 takes the newest
line for the leaf, and of two in the same millisecond the first. Blocks stay whole and unchanged; of a line only its
session's id, where its parent was left out its `parentUuid`, and of the leaf, if need be, its time are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sessgit.agents.claude.cells import is_program
from sessgit.agents.claude.lines import (
    BODY_TYPES,
    SYNTHETIC,
    blocks,
    call_ids,
    compact,
    display_prompt,
    is_chained,
    is_notification,
    make,
    message_id,
    message_key,
    message_of,
    milliseconds,
    parsed,
    queued_prompt,
    result_ids,
    text_of,
    tool_results,
)
from sessgit.agents.line import Line, member_reader, parse
from sessgit.agents.values import NewTurn, Seam, Written
from sessgit.errors import SessgitError
from sessgit.model import canonical, ids, json_strings
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell
from sessgit.model.stored_fields import string

_LEFT_OUT = ("queue-operation", "last-prompt", "api-request", "api-request-blob", "api-request-shape", "cost-state")
"""Housekeeping of the client that it writes anew, or that tells of prompts which are not in the fork."""


_WORDS = ("text", "image", "document")
"""The blocks in which something is said."""
_OF_SESSION = ("sessionId", "session_id")
_members = member_reader("uuid", "type", "parentUuid", "timestamp", "isSidechain", *_OF_SESSION)
"""Reads what of a line decides what becomes of it."""
_NAMING = ("custom-title", "ai-title", "summary")


def resumable(turns: Iterable[Sequence[bytes]], agent_id: str, title: str = "") -> Written:
    """Return the turns, each given as its stored lines, as one transcript of the session `agent_id`; they are taken
    one after another, and none is kept."""
    writer = _Writer(agent_id)
    last: Sequence[bytes] = ()
    for lines in turns:
        writer.turn(last)
        last = lines
    kept, dropped = _up_to_last_result(parsed(last))
    writer.turn(line.raw for line in kept)
    prompt = next((display_prompt(line.message_text) for line in kept if line.is_prompt), "")
    parts = writer.finish(title, prompt)
    return Written(parts, writer.leaf, dropped, writer.sidechain_lines, writer.unlinked_lines)


def continued(
    shared: Sequence[Sequence[bytes]], more: Sequence[Sequence[bytes]], agent_id: str
) -> tuple[Written, bytes]:
    """Return the beginning that `resumable` makes of the shared turns, and the lines with which further ones go on
    from it: together a transcript as well, if every call in the shared ones has its result."""
    beginning = resumable(shared, agent_id) if shared else Written((), "")
    writer = _Writer(agent_id)
    for raw in shared:
        writer.turn(raw)
    prompt = ""
    for raw in more:
        writer.turn(raw)
        prompt = next((display_prompt(line.message_text) for line in parsed(raw) if line.is_prompt), prompt)
    return beginning, b"".join(writer.finish("", prompt)[len(shared) :])


def session_ids(line: Line) -> set[str]:
    """Return the sessions that a line names as its own."""
    return {name for key in _OF_SESSION if (name := line.text(key))}


def leads_back(body: Sequence[Line]) -> bool:
    """Return whether the client finds its way from the last line of a turn back to the first one, by what each names
    as its parent: of what it does not find it sends nothing."""
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
    """Return the number of the line at which a turn can be cut behind a cell: every call up to there has its result,
    if it ever gets one."""
    if not is_program(body, chosen):
        message = chosen.id if chosen.type == "llm_call" else chosen.depends[0]
        together = [one for one in cells if one.id == message or (message in one.depends[:1] and one.type == "tool")]
        return max(n for cell in together for n in cell.lines)
    end = max(chosen.lines)
    open_calls = {call for line in body[:end] for call in call_ids(line)}
    for number, line in enumerate(body, start=1):
        answered = open_calls.intersection(result_ids(line))
        if answered:
            open_calls -= answered
            end = max(end, number)
    return end


def summary(lines: Iterable[Line]) -> str:
    """Return the text of the last summary that a compaction left in these lines, or ""."""
    summaries = [line for line in lines if line.data and line.data.get("isCompactSummary")]
    return text_of(message_of(summaries[-1]).get("content"))[0] if summaries else ""


def spoken(lines: Iterable[bytes]) -> list[bytes]:
    """Return the lines of a turn in which something was said, with their other blocks left out, each hanging on the
    one before it that is left; a line with nothing but words stays as it is.

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
    """Return what is left of a line; None where nothing is. A prompt is, whatever it holds: it opens its turn."""
    data = line.data
    if data is None or line.is_sidechain:
        return None
    if line.type in _NAMING or line.is_boundary or data.get("isCompactSummary"):
        return data
    if line.type == "attachment":
        queued = queued_prompt(line)
        return data if queued and not is_notification(queued) else None
    if not line.is_said or (line.type == "user" and not line.is_prompt):
        return None
    every = blocks(line)
    words = [block for block in every if block.get("type") in _WORDS]
    if len(words) == len(every) or (line.type == "user" and not words):
        return data
    if not words:
        return None
    return {**data, "message": {**data["message"], "content": words}}


class _Writer:
    """Takes turns, each of which becomes one part. A session has lines by the ten thousand: of those that are written
    only the bytes of their turn are kept, and where in them the leaf is."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.leaf = ""
        self.sidechain_lines = 0
        self.unlinked_lines = 0
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
        """Return the parts of the whole transcript, of which the last holds the lines that tell the client its title
        and where to go on."""
        self._make_leaf_latest()
        last = [title_line(title, self.agent_id)] if title else []
        if self.leaf:
            shown = canonical.one_line(prompt, 200)
            marker = {"type": "last-prompt", "lastPrompt": shown, "leafUuid": self.leaf, "sessionId": self.agent_id}
            last.append(compact(marker))
        return [*self._parts, canonical.join_lines(last)]

    def _line(self, raw: bytes) -> None:
        members = _members(raw)
        if members is None:
            return
        uuid, kind, named, time, is_sidechain, *ids = members
        if not (isinstance(uuid, str) and isinstance(kind, str) and isinstance(named, str) and isinstance(time, str)):
            uuid, kind, named, time = (value if isinstance(value, str) else "" for value in (uuid, kind, named, time))
        if kind in _LEFT_OUT or is_sidechain:
            self.sidechain_lines += kind not in _LEFT_OUT
            self._leave_out(uuid, named)
            return
        if uuid in self._emitted:
            return
        parent = self._parent(named, kind) if uuid else named
        if parent is None:
            self.unlinked_lines += 1
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
        """Return the uuid that a line shall name as its parent, "" for none; None where it is off the chain."""
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
        """Return the line as this session's; `ids` are those of the sessions that it names."""
        for key, old in zip(_OF_SESSION, ids, strict=True):
            if old and old != self.agent_id and isinstance(old, str):
                if (key, old) not in self._members:
                    self._members[key, old] = _member(key, old), _member(key, self.agent_id)
                theirs, own = self._members[key, old]
                ours = raw.replace(theirs, own)
                raw = ours if ours != raw else _replaced(raw, key, old, self.agent_id)
        return raw


def as_session(raw: bytes, agent_id: str) -> bytes:
    """Return a line as one of the session `agent_id`."""
    data = parse(raw)
    return _Writer(agent_id).own(raw, [string(data, key) for key in _OF_SESSION])


def title_line(title: str, agent_id: str) -> bytes:
    """Return the line by which the client knows a session's title, without its newline."""
    return compact({"type": "custom-title", "customTitle": title, "sessionId": agent_id})


def title_of(raw: bytes) -> str:
    """Return the title that a `custom-title` line gives, or ""."""
    line = make(raw) if b'"custom-title"' in raw else None
    return line.text("customTitle") if line and line.type == "custom-title" else ""


def _replaced(raw: bytes, key: str, old: str, new: str) -> bytes:
    """Return the line with the string of a key replaced, in the compact form that the client writes, else
    reserialised."""
    token = _member(key, old)
    if token in raw:
        return raw.replace(token, _member(key, new), 1)
    document = json.loads(raw)
    document[key] = new or None
    return compact(document)


def _member(key: str, value: str) -> bytes:
    return json_strings.encode_string(key) + b":" + (json_strings.encode_string(value) if value else b"null")


def _up_to_last_result(lines: list[Line]) -> tuple[list[Line], int]:
    """Return the lines up to where every tool call has its result, and how many calls were left out."""
    answered = {call for line in lines for call in result_ids(line)}
    for index, line in enumerate(lines):
        if not answered.issuperset(call_ids(line)):
            message, first = message_id(line), index
            while message and first and message_id(lines[first - 1]) == message:  # it is sent whole or not at all
                first -= 1
            return lines[:first], sum(call not in answered for later in lines[first:] for call in call_ids(later))
    return lines, 0


_LAST_MOMENT = 253_402_300_799_000
"""The end of the year 9999, behind which no time can be written."""
_NAMED = ("sourceToolAssistantUUID",)
"""The keys, besides the parent's, by which a line names another one."""


def seam(
    turns: Iterable[Sequence[Line]], left: Iterable[Sequence[Line]], last: Sequence[Line], pending: Sequence[Line]
) -> Seam:
    """Return the seam of a file where the head's turns have these lines, and those that rewinds left behind the
    other ones; `last` is the body of the head's last turn and `pending` what is at the end of the file.

    Raises SessgitError where no line has a uuid: then no client can go on there.
    """
    latest, uuids = _met(turns)
    later, others = _met(left)
    rewound = others - uuids
    last_moment, waiting = _met([pending])
    latest, uuids = max(latest, later, last_moment), uuids | others | waiting
    leaf = next((line.uuid for line in reversed(last) if is_chained(line)), "")
    own = {line.uuid for line in last} - {""}
    for line in pending:
        # A compaction of what was left behind is none of the head's.
        begins = line.is_boundary and line.text("logicalParentUuid") not in rewound
        if is_chained(line) and (line.parent in own or begins):
            leaf = line.uuid
            own.add(leaf)
    if not leaf:
        raise SessgitError("its last turn has no line to continue from", "No client would resume it.")
    return Seam(leaf, latest, frozenset(uuids - {""}))


def _met(turns: Iterable[Sequence[Line]]) -> tuple[int, set[str]]:
    """Return the latest time of the lines, and their uuids."""
    latest, uuids = 0, set[str]()
    for lines in turns:
        for line in lines:
            latest = max(latest, milliseconds(line))
            uuids.add(line.uuid)
    return latest, uuids


def summary_turn(at: Seam, key: Callable[[str], str], texts: tuple[str, str], state: Session) -> NewTurn:
    """Return a prompt and an answer as one turn; `key` makes a uuid of a word."""
    prompt, answer = key("prompt"), key("answer")
    said = {
        "id": f"msg_{answer.replace('-', '')}", "type": "message", "role": "assistant", "model": SYNTHETIC,
        "content": [{"type": "text", "text": texts[1]}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }  # fmt: skip

    def line(parent: str, message: dict[str, Any], uuid: str, moment: int) -> bytes:
        own = {"parentUuid": parent, "isSidechain": False, "userType": "external", **_common(state)}
        own |= {"type": message["role"], "message": message, "uuid": uuid, "timestamp": _time(moment)}
        return compact(own)

    asked = line(at.leaf, {"role": "user", "content": texts[0]}, prompt, at.latest + 1)
    return NewTurn(prompt, [asked, line(prompt, said, answer, at.latest + 2)])


def _common(state: Session) -> dict[str, str]:
    """Return what the client writes in every line; the same on every machine."""
    fields = {
        "cwd": state.project, "sessionId": state.agent_id, "version": state.agent_version, "gitBranch": state.git_branch
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value}


def grafted(at: Seam, bodies: Iterable[Sequence[bytes]], key: Callable[[str], str], agent_id: str) -> list[NewTurn]:
    """Return the turns with these bodies, in their order, as turns of the session `agent_id` behind the seam.

    A line keeps its uuid where the file has none like it, else `key` makes one of it; and its time where that rises.
    """
    out, leaf, latest, uuids = [], at.leaf, at.latest, set(at.uuids)
    for number, body in enumerate(bodies):
        turn, renamed = list[bytes](), dict[str, str]()
        first = ""
        for place, line in enumerate(complete(parsed(body))):
            uuid = line.uuid
            if uuid in uuids or not ids.is_turn_key(uuid):
                uuid = key(f"{number}.{place}.{uuid}")
            renamed[line.uuid] = uuid
            latest = max(latest + 1, milliseconds(line))
            turn.append(compact(_moved(line, uuid, leaf, _time(latest), agent_id, renamed)))
            uuids.add(uuid)
            leaf, first = uuid, first or uuid
        out.append(NewTurn(first, turn))
    return out


def complete(body: Sequence[Line]) -> list[Line]:
    """Return the lines of a body that belong to the conversation, each call with its result and each result with its
    call.

    A message with a call that has no result goes as a whole. A compaction goes too: in another conversation it would
    stand for what came before it there.
    """
    kept, uuids = list[Line](), set[str]()
    for line in body:
        data = line.data
        if data is None or line.type not in BODY_TYPES or line.is_sidechain or data.get("isCompactSummary"):
            continue
        if kept and line.is_prompt:  # a second copy of one: it would open a turn
            continue
        if not line.uuid or line.uuid not in uuids:
            uuids.add(line.uuid)
            kept.append(line)
    while True:
        fewer = _paired(kept)
        if len(fewer) == len(kept):
            return kept
        kept = fewer


def _paired(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without those of messages with a call that no later line answers, and without other results."""
    called, answered = dict[str, str](), set[str]()
    again = set[int]()
    for number, line in enumerate(lines):
        results = [str(block.get("tool_use_id")) for block in tool_results(line)]
        if any(result not in called or result in answered for result in results):
            again.add(number)
            continue
        answered.update(results)
        for block in blocks(line):
            if line.type == "assistant" and block.get("type") == "tool_use":
                call = str(block.get("id"))
                if call in called:
                    again.add(number)
                else:
                    called[call] = message_key(line, number)
    broken = {message for call, message in called.items() if call not in answered}
    return [
        line
        for number, line in enumerate(lines)
        if number not in again and not (line.type == "assistant" and message_key(line, number) in broken)
    ]


def _moved(line: Line, uuid: str, parent: str, time: str, agent_id: str, renamed: Mapping[str, str]) -> dict[str, Any]:
    assert line.data is not None
    data = {key: value for key, value in line.data.items() if key != "forkedFrom"}
    data |= {"uuid": uuid, "parentUuid": parent, "timestamp": time}
    data |= {key: agent_id for key in ("sessionId", "session_id") if key in data}
    data |= {key: renamed[data[key]] for key in _NAMED if isinstance(data.get(key), str) and data[key] in renamed}
    return data


def _time(moment: int) -> str:
    if moment > _LAST_MOMENT:
        raise SessgitError("a line of it is of the year 9999: nothing can come after it")
    return canonical.rfc3339(moment / 1000 + 0.0005)  # it is cut to milliseconds, and a float may lie just below
