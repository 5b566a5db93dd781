"""Turns that a program holds, as lines of a transcript: what the client itself would have written, and marks.

Every line names the one before it as its parent and is later than all others: so each version of the client resumes it
(`writer.py` says what was measured).
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sessgit.agents import agent_files
from sessgit.agents.claude.cells import USAGE_KINDS
from sessgit.agents.claude.lines import (
    MARK_KEY,
    NO_MARK,
    OUTSIDE,
    SYNTHETIC,
    Mark,
    call_ids,
    compact,
    is_chained,
    is_stand_in,
    make,
    mark_of,
    message_key,
    message_of,
    milliseconds,
    outcome_mark,
    parsed,
    reason_mark,
    result_ids,
    task_mark,
)
from sessgit.agents.line import Line, Opened, opened, split
from sessgit.errors import ROOM, SessgitError
from sessgit.model import canonical, ids
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import plausible_count
from sessgit.model.program_input import GivenTurn, Outcome, Part, Reason, Saying, Step, Task, ToolCall

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
    """Return another uuid each time."""
    return str(uuid.uuid4())


@dataclass
class Chain:
    """Writes line after line of one session.

    `leaf` is the uuid of the last line, ``""`` at the beginning, `latest` the latest time of all lines in milliseconds
    since 1970. `common` is what every line also says: its folder, its branch. `open` are the cells whose calls have
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
        """Return what opens a turn, said `at` seconds since 1970; `key` is the prompt's uuid if it has one
        already."""
        message = {"type": "user", "message": {"role": "user", "content": text}}
        return [*self.stand_in(at), self._line("prompt", message, at, key)]

    def call(self, task: Task, at: float | None) -> list[bytes]:
        """Return what begins a cell; `task` has an id."""
        name, message = _tool(task.operation), self.message
        before = [] if message else self.stand_in(at)
        block = {"type": "tool_use", "id": call_id(task.id), "name": name, "input": dict(task.args)}
        line = self._assistant("call", block, at, mark=task_mark(task, name), message=message)
        self.open[task.id] = None
        self.message = message or _message_id(self.leaf)
        return [*before, line]

    def outcome(self, cell_id: str, outcome: Outcome, at: float | None, operation: str = "") -> list[bytes]:
        """Return what ends a cell, which is of that operation."""
        text, mark = outcome_mark(outcome)
        before, call = list[bytes](), call_id(cell_id)
        if cell_id not in self.open and OUTSIDE not in self.common:
            before, call = self.stand_in(at), f"{call}_result"
            block = {"type": "tool_use", "id": call, "name": _tool(operation or "result"), "input": {"cell": cell_id}}
            before.append(self._assistant("call", block, at, mark={"result_of": cell_id}))
        self.open.pop(cell_id, None)
        return [*before, self._result(call, text, at, is_error=not outcome.ok, mark=mark)]

    def words(
        self, text: str, at: float | None, model: str = "", tokens: Mapping[str, int] | None = None
    ) -> list[bytes]:
        """Return the line of something said; without a model the program itself said it."""
        block, mark = {"type": "text", "text": text}, {} if model else _WORDS
        return [*self.stand_in(at), self._assistant("words", block, at, model, tokens, mark=mark)]

    def reason(self, reason: Reason, at: float | None) -> list[bytes]:
        """Return a reason, as words that a person reads too."""
        block = {"type": "text", "text": shown(reason)}
        return [*self.stand_in(at), self._assistant("reason", block, at, mark=reason_mark(reason))]

    def tool(
        self, call: ToolCall, model: str, at: float | None, tokens: Mapping[str, int] | None = None
    ) -> list[bytes]:  # fmt: skip
        """Return a call of a tool and its result, as the client writes them; without a model the program itself made
        it."""
        before = self.stand_in(at)
        key = call.id or f"toolu_{self.name(f'tool.{self.leaf}').replace('-', '')[:24]}"
        block = {"type": "tool_use", "id": key, "name": call.name, "input": dict(call.input)}
        begun = self._assistant("call", block, at, model, tokens, mark={} if model else _WORDS)
        return [*before, begun, self._result(key, call.output, at, is_error=call.is_error, mark={})]

    def part(
        self, part: Part, model: str, at: float | None, tokens: Mapping[str, int] | None = None
    ) -> list[bytes]:  # fmt: skip
        """Return the lines of one part of a turn: none of an empty text, which the model's API does not accept. A tool
        call has the tokens."""
        match part:
            case Step(task, outcome):
                begun = self.call(task, task.created if task.created is not None else at)
                return begun if outcome is None else [*begun, *self.outcome(task.id, outcome, at)]
            case ToolCall():
                return self.tool(part, model, at if part.time is None else part.time, tokens)
            case Reason():
                return self.reason(part, at if part.time is None else part.time)
            case Saying(text, said_by):
                return self.words(text, at if part.time is None else part.time, said_by) if text.strip() else []

    def turn(self, turn: GivenTurn) -> list[bytes]:
        """Return the lines of a turn that is given as a whole. Without an answer the last part has its tokens."""
        out = self.prompt(turn.prompt, turn.time, turn.key)
        key, last = self.leaf, -1 if turn.answer.strip() else len(turn.parts) - 1
        for number, part in enumerate(turn.parts):
            out += self.part(
                _identified(part, key, number), turn.model, turn.time, turn.tokens if number == last else None
            )
        if turn.answer.strip():
            out += self.words(turn.answer, turn.ended, turn.model, turn.tokens)
        return out + self.stand_in(turn.ended)

    def name_by(self, name: Name) -> None:
        """Have the uuids of lines from here on made by `name`."""
        self.name = name

    def say_plan(self, name: str) -> None:
        """Make every line from here on say that the session has a plan of that name."""
        self.common = {**self.common, "slug": name}

    def say_branch(self, name: str) -> None:
        """Make every line from here on name the branch that is checked out in the project, if there is one."""
        self.common = {**{key: value for key, value in self.common.items() if key != "gitBranch"},
                       **({"gitBranch": name} if name else {})}  # fmt: skip

    def follow(self, lines: Iterable[bytes]) -> None:
        """Continue behind lines that it did not write."""
        for line in parsed(lines):
            if is_chained(line):
                self.leaf, self.latest = line.uuid, max(self.latest, milliseconds(line))

    def stand_in(self, at: float | None) -> list[bytes]:
        """Return results for all calls that have none, which say so; outside a transcript a call needs no result."""
        late_results, self.open = ({} if OUTSIDE in self.common else self.open), {}
        results = (
            self._result(call_id(cell), RUNNING, at, is_error=False, mark={"running": True}) for cell in late_results
        )
        return list(results)

    def _assistant(  # noqa: PLR0913 - what such a line says
        self, word: str, block: dict[str, Any], at: float | None, model: str = "",
        tokens: Mapping[str, int] | None = None, *, mark: Mapping[str, Any], message: str = "",
    ) -> bytes:  # fmt: skip
        used = tokens or {}
        usage = {"input_tokens": used.get("input", 0), "output_tokens": used.get("output", 0)}
        usage |= {f"cache_{long}_input_tokens": used[short] for short, long in _CACHE.items() if used.get(short)}
        key = self.name(f"{word}.{self.leaf}")
        body = {
            "id": message or _message_id(key), "type": "message", "role": "assistant", "model": model or SYNTHETIC,
            "content": [block], "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        request = {"requestId": f"req_{key.replace('-', '')}"} if model else {}
        return self._line(word, {"type": "assistant", "message": body, **request, **_marked(mark)}, at, key)

    def _result(self, call: str, text: str, at: float | None, *, is_error: bool, mark: Mapping[str, Any]) -> bytes:
        block: dict[str, Any] = {"tool_use_id": call, "type": "tool_result", "content": text}
        if is_error:
            block["is_error"] = True
        message = {"type": "user", "message": {"role": "user", "content": [block]}, **_marked(mark)}
        return self._line("result", message, at)

    def _line(self, word: str, content: Mapping[str, Any], at: float | None, key: str = "") -> bytes:
        key = key or self.name(f"{word}.{self.leaf}")
        self.latest = min(max(self.latest + 1, round(at * 1000) if at is not None else 0), _LAST)
        line = {
            "parentUuid": self.leaf or None, "isSidechain": False, "userType": "external", "entrypoint": ENTRYPOINT,
            **self.common, "sessionId": self.agent_id, **content, "uuid": key,
            "timestamp": canonical.rfc3339(self.latest / 1000 + 0.0005),
        }  # fmt: skip
        self.leaf, self.message = key, ""
        return compact(line, allow_nan=False)


_WORDS: Mapping[str, Any] = {"words": True}
"""The mark of what the program itself said."""
_CACHE = {"cache_read": "read", "cache_write": "creation"}


def call_id(cell_id: str) -> str:
    """Return the client's id for the call that is a program's cell."""
    return f"toolu_{cell_id}"


def _tool(operation: str) -> str:
    """Return the name of the tool that stands for an operation."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", operation)[:128]


def _message_id(uuid: str) -> str:
    return f"msg_{uuid.replace('-', '')}"


def _identified(part: Part, key: str, number: int) -> Part:
    if not isinstance(part, Step) or part.task.id:
        return part
    return replace(part, task=replace(part.task, id=ids.cell_id(key, f"step {number}")))


def shown(reason: Reason) -> str:
    """Return a reason as text."""
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


def _marked(mark: Mapping[str, Any]) -> dict[str, Any]:
    return {MARK_KEY: dict(mark)} if mark else {}


_STEP = 64 << 10
_SEAM = 4096
"""So many bytes before what is new must be those that were there: a file that was cut may have grown again."""


@dataclass
class End:
    """Where the transcript at `path` ends, of which `size` bytes are known.

    `key` is the uuid of its last prompt, ``""`` if there is none. `begun` are the cells of programs in the turn
    that this prompt opened, by their ids, and `pending` those of them that have no result yet.
    """

    path: Path
    chain: Chain
    size: int = -1
    inode: int = 0
    key: str = ""
    begun: dict[str, Task] = field(default_factory=dict)
    pending: dict[str, Task] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    """By the client's ids for calls the cells that they are."""
    called: set[str] = field(default_factory=set)
    """The client's ids for all calls in that turn."""
    torn: int = 0
    """So many bytes at its end are no whole line: a writer was killed."""
    seam: bytes = b""
    """The last bytes of those that are known."""
    changed: int = -1
    """When the file was changed last, as it was read, in nanoseconds since 1970."""
    client_at_work: bool = False
    """Whether the last turn is the client's, and has no end yet."""

    def read(self) -> bool:
        """Read what was written since the last time; returns whether the file is there."""
        try:
            info = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            self.forget()
            return False
        except OSError as error:
            raise SessgitError(f"cannot read {self.path}: {error.strerror or error}", ROOM) from error
        if (info.st_ino, info.st_size, info.st_mtime_ns) == (self.inode, self.size + self.torn, self.changed):
            return True
        with opened(self.path) as source:
            before = source.at(max(0, self.size - len(self.seam)), len(self.seam))
            if source.inode != self.inode or before != self.seam:
                self.forget()
            data = source.at(self.size, source.size - self.size) if self.size >= 0 else _last_turn(source)
            self.inode, self.size, self.changed = source.inode, source.size, info.st_mtime_ns
        self.torn = len(data) - (data.rfind(b"\n") + 1)
        self.size -= self.torn
        self.seam = (self.seam + data[: len(data) - self.torn])[-_SEAM:]
        # Where only the newline is missing, what is there counts, and is read again when it gets one.
        self._note(make(raw) for raw, _ in split(data + b"\n" * bool(self.torn), 0))
        return True

    def append(self, lines: Iterable[bytes], *, durable: bool) -> None:
        """Add lines that the chain wrote; with `durable` they survive a loss of power. `read` came right before.

        Raises SessgitError, with the file as it was; then the chain is read anew.
        """
        lines = list(lines)
        data = canonical.join_lines(lines)
        try:
            if self.size < 0:
                self._create()
                self.size = 0
            # What a writer that was killed left of a line gets its end, and stays what it is.
            close = b"\n" if self.torn else b""
            agent_files.append(self.path, self.size + self.torn, close + data, durable=durable)
            self.changed = self.path.stat().st_mtime_ns
        except BaseException:
            self.forget()
            raise
        self.size += self.torn + len(close) + len(data)
        self.torn, self.seam = 0, (data or self.seam)[-_SEAM:]
        self._note((make(raw) for raw, _ in split(data, 0)), ours=True)

    def forget(self) -> None:
        """Forget what is known of the file."""
        self.size, self.inode, self.key, self.torn, self.seam = -1, 0, "", 0, b""
        self.client_at_work = False
        self.begun, self.pending, self.calls, self.called = {}, {}, {}, set()
        self.chain.leaf, self.chain.open, self.chain.message = "", {}, ""

    def _create(self) -> None:
        try:
            agent_files.make_folder(self.path)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            self.inode = self.path.stat().st_ino
        except OSError as error:
            raise SessgitError(f"cannot write {self.path}: {error.strerror or error}", ROOM) from error

    def _note(self, lines: Iterable[Line], *, ours: bool = False) -> None:
        for line in lines:
            if not is_chained(line):
                continue
            if line.is_prompt:
                self.key, self.begun, self.pending, self.calls = line.prompt_id, {}, {}, {}
                self.called = set()
            if line.is_prompt or line.is_work:
                self.client_at_work = line.text("entrypoint") != ENTRYPOINT and not line.is_end
            elif line.message_text.startswith("[Request interrupted"):
                self.client_at_work = False
            self.called.update(call_ids(line))
            mark = mark_of(line) if line.type == "assistant" else NO_MARK
            if mark.task is not None:
                self._begin(mark.task, mark.call)
            elif mark.result_of in self.begun:
                self.calls.setdefault(mark.call, mark.result_of)
            ended = [self.calls.get(call, "") for call in result_ids(line)]
            if not is_stand_in(line):
                for cell in ended:
                    self.pending.pop(cell, None)
            if not ours:
                self._follow(line, mark, ended)

    def _follow(self, line: Line, mark: Mark, ended: list[str]) -> None:
        """Continue the chain after a line that it did not write."""
        chain = self.chain
        chain.leaf, chain.latest = line.uuid, max(chain.latest, milliseconds(line))
        if line.is_prompt:
            chain.open = {}
        if mark.task is not None and mark.call == call_id(mark.task.id):
            chain.open[mark.task.id] = None
            chain.message = message_key(line, 0)
        else:
            for cell in ended:
                chain.open.pop(cell, None)
            chain.message = ""

    def _begin(self, task: Task, call: str) -> None:
        if task.id not in self.begun and call not in self.calls:
            self.begun[task.id] = self.pending[task.id] = task
            self.calls[call] = task.id


def chain(agent_id: str, project: str, latest: str = "") -> Chain:
    """Write the lines of a session from its beginning on, all of them later than a time in RFC 3339."""
    common = {"cwd": project} if project else {}
    return Chain(agent_id, common, latest=round((canonical.seconds(latest) or 0) * 1000))


def end(path: Path, state: Session) -> End:
    """Return the end of a session's file, of which nothing is read yet."""
    return End(path, chain(state.agent_id, state.project, state.updated))


def outside(path: Path, state: Session) -> End:
    """Return the end of the file with what programs add outside a session's transcript."""
    written = chain(state.agent_id, state.project, state.created)
    written.common = {"cwd": state.project, OUTSIDE: True}
    return End(path, written)


def give_up(path: Path, state: Session) -> bool:
    """End the cells that a program which is gone left pending; returns whether
    there were any. The caller holds the session's lock, and no turn is open."""
    written = end(path, state)
    if not written.read() or not written.pending:
        return False
    gone, lines = Outcome(error=GONE), list[bytes]()
    for cell, task in list(written.pending.items()):
        lines += written.chain.outcome(cell, gone, None, task.operation)
    written.append(lines, durable=False)
    return True


def _last_turn(source: Opened) -> bytes:
    """Return the last lines of a file, from its last prompt on; all of it if it has none."""
    length = _STEP
    while True:
        start = max(0, source.size - length)
        data = source.at(start, source.size - start)
        if start:
            data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
        prompts = [extent.offset for raw, extent in split(data, 0) if b'"user"' in raw and make(raw).is_prompt]
        if prompts or not start:
            return data[prompts[-1] :] if prompts else data
        length *= 4


_STAND_IN, _LATER, _CALL = b'"running":true', b'"result_of"', call_id("")


def continues(recorded: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Return whether the new lines say what those here do, and perhaps more."""
    return len(new) >= len(recorded) and all(map(_says_same, recorded, new))


def extended(recorded: Sequence[bytes], new: Sequence[bytes]) -> bytes:
    """Return the lines here, and after them what the new ones say more, as a transcript."""
    out, latest = list(recorded), 0
    excess = Counter[str]()
    """The tokens that the present turn has here and not in the new lines."""
    for number, theirs in enumerate(map(make, new)):
        if theirs.is_prompt:
            excess.clear()
        if number < len(recorded):
            ours = make(recorded[number])
            excess.update(_usage(ours))
            excess.subtract(_usage(theirs))
            latest = max(latest, milliseconds(ours))
        else:
            latest = max(latest + 1, milliseconds(theirs))
            out.append(_later(theirs, latest, excess))
    return b"".join(raw + b"\n" for raw in out)


def same_prompts(recorded: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Return whether the prompts that both have say the same, whatever was done about them."""
    ours, theirs = (
        {one.uuid: one.message_text for one in map(make, lines) if one.is_prompt} for lines in (recorded, new)
    )
    return all(ours[key] == theirs[key] for key in ours.keys() & theirs.keys())


def late_results(recorded: Sequence[bytes]) -> dict[str, bool]:
    """Return the cells that had no result when other lines were written behind them, by their ids, and whether each
    has got it since."""
    lines = [make(raw) for raw in recorded if _STAND_IN in raw or _LATER in raw]
    cells = {result_ids(one)[0].removeprefix(_CALL): False for one in lines if is_stand_in(one)}
    return cells | {mark.result_of: True for mark in map(mark_of, lines) if mark.result_of in cells}


def _says_same(one: bytes, other: bytes) -> bool:
    return one == other or (_said(make(one)) == _said(make(other)) is not None)


def _said(one: Line) -> tuple[Any, ...] | None:
    if one.data is None or not one.uuid:
        return None
    mark = one.data.get(MARK_KEY)
    mark = None if mark == _WORDS else mark  # who said it is known of an answer, and may not be of what came before
    return one.uuid, one.data.get("parentUuid"), one.type, message_of(one).get("content"), mark


def _later(line: Line, at: int, excess: Counter[str]) -> bytes:
    """Return the line with that time, in milliseconds since 1970, without the tokens that are counted already."""
    usage = _usage(line)
    counted = Counter({kind: min(number, excess[kind]) for kind, number in usage.items()})
    if line.data is None or (at == milliseconds(line) and not any(counted.values())):
        return line.raw
    data = {**line.data, "timestamp": canonical.rfc3339(at / 1000 + 0.0005)}
    if any(counted.values()):
        message = message_of(line)
        fewer = {kind: number - counted[kind] for kind, number in usage.items()}
        data["message"] = {**message, "usage": {**message["usage"], **fewer}}
        excess.subtract(counted)
    return compact(data)


def _usage(line: Line) -> dict[str, int]:
    usage = message_of(line).get("usage") if line.type == "assistant" else None
    return (
        {kind: plausible_count(usage[kind]) for kind in USAGE_KINDS if kind in usage} if isinstance(usage, dict) else {}
    )


def cell_of(line: Line) -> tuple[str, bool]:
    """Return the cell that a line of a program begins or ends, "" for none, and whether it ends it."""
    if line.type == "assistant":
        task = mark_of(line).task
        return (task.id, False) if task else ("", False)
    calls = result_ids(line)
    return (calls[0].removeprefix(_CALL), True) if calls else ("", False)
