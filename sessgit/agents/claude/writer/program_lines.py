"""Turns that a program holds, as lines of a transcript: what the client itself would have written, and marks.

Every line hangs on the one before it and is later than all others, so that each version of the client resumes it (see
`transcript.py` for what was measured).
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.agents.claude.lines import parsed
from sessgit.agents.claude.writer import marks
from sessgit.model import canonical, ids
from sessgit.model.program_input import GivenTurn, Outcome, Part, Reason, Saying, Step, Task, ToolCall

SYNTHETIC = "<synthetic>"
ENTRYPOINT = "sessgit"
"""What the client notes of how it was started; a session of a program is none of its headless ones."""
GONE = "interrupted: the session went on without a result"
"""The error of a cell that was still pending when the next turn began."""

RUNNING = "No result yet: it comes below."
"""What stands in for the result of a cell that is pending while something else is written."""

_LAST = 253_402_300_799_998
"""The last millisecond but one that has a year of four digits: whatever a clock says, lines can be written."""

Name = Callable[[str], str]
"""Makes a uuid of a word that is unique within a session."""


def random_name(word: str) -> str:
    """Another uuid each time."""
    return str(uuid.uuid4())


@dataclass
class Chain:
    """Writes line after line of one session.

    `leaf` is the uuid of the last line, ``""`` at the beginning, `latest` the latest time of all lines in milliseconds
    since 1970. `common` is what every line says beside: its folder, its branch. `open` are the cells whose calls have
    no result in the file, `message` is the model's message that the last line belongs to, if that is such a call.

    The client sends a call only with a result right behind it. So calls that follow each other are one message; and
    where anything else comes before their results, a stand-in is written for each. The result of such a cell is that
    of a second call, which asks for it.
    """

    agent_id: str
    common: Mapping[str, Any] = field(default_factory=dict)
    leaf: str = ""
    latest: int = 0
    name: Name = random_name
    open: dict[str, None] = field(default_factory=dict)
    message: str = ""

    def prompt(self, text: str, at: float | None, key: str = "") -> list[bytes]:
        """What opens a turn, said `at` seconds since 1970; `key` is the prompt's uuid where it has one already."""
        said = {"type": "user", "message": {"role": "user", "content": text}}
        return [*self.stand_in(at), self._line("prompt", said, at, key)]

    def call(self, task: Task, at: float | None) -> list[bytes]:
        """What begins a cell; `task` has an id."""
        name, message = _tool(task.operation), self.message
        before = [] if message else self.stand_in(at)
        block = {"type": "tool_use", "id": call_id(task.id), "name": name, "input": dict(task.args)}
        line = self._assistant("call", [block], at, mark=marks.of_task(task, name), message=message)
        self.open[task.id] = None
        self.message = message or _message_id(self.leaf)
        return [*before, line]

    def outcome(self, cell_id: str, outcome: Outcome, at: float | None, operation: str = "") -> list[bytes]:
        """What ends a cell, which is of that operation."""
        text, mark = marks.of_outcome(outcome)
        before, call = list[bytes](), call_id(cell_id)
        if cell_id not in self.open:
            before, call = self.stand_in(at), f"{call}_result"
            block = {"type": "tool_use", "id": call, "name": _tool(operation or "result"), "input": {"cell": cell_id}}
            before.append(self._assistant("call", [block], at, mark={"result_of": cell_id}))
        self.open.pop(cell_id, None)
        return [*before, self._result(call, text, at, is_error=not outcome.ok, mark=mark)]

    def words(
        self, text: str, at: float | None, model: str = "", tokens: Mapping[str, int] | None = None
    ) -> list[bytes]:
        """Something said; without a model by the program itself."""
        block, mark = {"type": "text", "text": text}, {} if model else {"words": True}
        return [*self.stand_in(at), self._assistant("words", [block], at, model, tokens, mark)]

    def reason(self, reason: Reason, at: float | None) -> list[bytes]:
        """A reason, as words that a person reads too."""
        block = {"type": "text", "text": shown(reason)}
        return [*self.stand_in(at), self._assistant("reason", [block], at, mark=marks.of_reason(reason))]

    def tool(self, call: ToolCall, model: str, at: float | None) -> list[bytes]:
        """A call of a tool and its result, as the client writes them; without a model the program itself made it."""
        before = self.stand_in(at)
        key = call.id or f"toolu_{self.name(f'tool.{self.leaf}').replace('-', '')[:24]}"
        block = {"type": "tool_use", "id": key, "name": call.name, "input": dict(call.input)}
        begun = self._assistant("call", [block], at, model, mark={} if model else {"words": True})
        return [*before, begun, self._result(key, call.output, at, is_error=call.is_error, mark={})]

    def part(self, part: Part, model: str, at: float | None) -> list[bytes]:
        """The lines of one part of a turn."""
        match part:
            case Step(task, outcome):
                begun = self.call(task, task.created if task.created is not None else at)
                return begun if outcome is None else [*begun, *self.outcome(task.id, outcome, at)]
            case ToolCall():
                return self.tool(part, model, at if part.time is None else part.time)
            case Reason():
                return self.reason(part, at if part.time is None else part.time)
            case Saying(text, said_by):
                return self.words(text, at if part.time is None else part.time, said_by)

    def turn(self, turn: GivenTurn) -> list[bytes]:
        """The lines of a turn that is given as a whole."""
        out = self.prompt(turn.prompt, turn.time, turn.key)
        key = self.leaf
        for number, part in enumerate(turn.parts):
            out += self.part(_identified(part, key, number), turn.model, turn.time)
        if turn.answer.strip():
            out += self.words(turn.answer, turn.ended, turn.model, turn.tokens)
        return out + self.stand_in(turn.ended)

    def name_by(self, name: Name) -> None:
        """Has the uuids of lines from here on made by `name`."""
        self.name = name

    def say_plan(self, name: str) -> None:
        """Has every line from here on say that the session has a plan of that name."""
        self.common = {**self.common, "slug": name}

    def follow(self, lines: Iterable[bytes]) -> None:
        """Goes on behind lines that it did not write."""
        for line in parsed(lines):
            if line.uuid and line.data is not None and not line.is_sidechain:
                self.leaf = line.uuid
                self.latest = max(self.latest, round((canonical.seconds(line.text("timestamp")) or 0) * 1000))

    def stand_in(self, at: float | None) -> list[bytes]:
        """Results for all calls that have none, which say so."""
        waiting, self.open = self.open, {}
        said = (self._result(call_id(cell), RUNNING, at, is_error=False, mark={"running": True}) for cell in waiting)
        return list(said)

    def _assistant(  # noqa: PLR0913, PLR0917 - what such a line says
        self, word: str, content: list[dict[str, Any]], at: float | None, model: str = "",
        tokens: Mapping[str, int] | None = None, mark: Mapping[str, Any] | None = None, message: str = "",
    ) -> bytes:  # fmt: skip
        used = tokens or {}
        usage = {"input_tokens": used.get("input", 0), "output_tokens": used.get("output", 0)}
        usage |= {f"cache_{long}_input_tokens": used[short] for short, long in _CACHE.items() if used.get(short)}
        calls = any(block["type"] == "tool_use" for block in content)
        key = self.name(f"{word}.{self.leaf}")
        said = {
            "id": message or _message_id(key), "type": "message", "role": "assistant", "model": model or SYNTHETIC,
            "content": content, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
            "usage": usage,
        }  # fmt: skip
        return self._line(word, {"type": "assistant", "message": said, **_marked(mark)}, at, key)

    def _result(self, call: str, text: str, at: float | None, *, is_error: bool, mark: Mapping[str, Any]) -> bytes:
        block: dict[str, Any] = {"tool_use_id": call, "type": "tool_result", "content": text}
        if is_error:
            block["is_error"] = True
        said = {"type": "user", "message": {"role": "user", "content": [block]}, **_marked(mark)}
        return self._line("result", said, at)

    def _line(self, word: str, said: Mapping[str, Any], at: float | None, key: str = "") -> bytes:
        key = key or self.name(f"{word}.{self.leaf}")
        self.latest = min(max(self.latest + 1, round(at * 1000) if at is not None else 0), _LAST)
        line = {
            "parentUuid": self.leaf or None, "isSidechain": False, "userType": "external", "entrypoint": ENTRYPOINT,
            **self.common, "sessionId": self.agent_id, **said, "uuid": key,
            "timestamp": canonical.rfc3339(self.latest / 1000 + 0.0005),
        }  # fmt: skip
        self.leaf, self.message = key, ""
        return _compact(line)


_CACHE = {"cache_read": "read", "cache_write": "creation"}


def call_id(cell_id: str) -> str:
    """The client's id for the call that is a program's cell."""
    return f"toolu_{cell_id}"


def _tool(operation: str) -> str:
    """The name of the tool that stands for an operation."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", operation)[:128]


def _message_id(uuid: str) -> str:
    return f"msg_{uuid.replace('-', '')}"


def transcript(agent_id: str, turns: Iterable[GivenTurn], name: Name, common: Mapping[str, Any]) -> bytes:
    """The whole transcript of a session whose turns are given, each line ending with a newline.

    It is a function of what is given, if `name` is one: the transcript of more turns begins with that of fewer. A
    cell without an id gets one that follows from its place. Times that are not given follow those before them.
    """
    chain = Chain(agent_id, common, name=name)
    out = list[bytes]()
    for turn in turns:
        out += chain.turn(turn)
    return b"".join(line + b"\n" for line in out)


def _identified(part: Part, key: str, number: int) -> Part:
    if not isinstance(part, Step) or part.task.id:
        return part
    return replace(part, task=replace(part.task, id=ids.cell_id(key, f"step {number}")))


def shown(reason: Reason) -> str:
    """A reason as text."""
    head = f"Decision: {reason.text}" if reason.kind == "decision" else reason.text
    rest = []
    if reason.options:
        rest.append(f"Options: {'; '.join(reason.options)}")
    if reason.chosen:
        rest.append(f"Chosen: {reason.chosen}")
    if reason.evidence:
        rest.append(f"Evidence: {'; '.join(reason.evidence)}")
    if reason.confidence is not None:
        rest.append(f"Confidence: {reason.confidence:g}")
    return "\n".join([head, *rest])


def _marked(mark: Mapping[str, Any] | None) -> dict[str, Any]:
    return {marks.KEY: dict(mark)} if mark else {}


def _compact(line: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:  # half a character
        return json.dumps(line, separators=(",", ":"), allow_nan=False).encode()
