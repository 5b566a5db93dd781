"""The end of a session's transcript, as a program that writes it has to know it.

Others may write the file too: the client, where a person resumes the session, and other programs. So what was added
since is read before every write, and nothing else: work is constant whatever the length of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sessgit.agents import file_end, new_file
from sessgit.agents.claude.cells import message_key
from sessgit.agents.claude.lines import ClaudeLine, blocks, is_prompt, prompt_uuid, tool_results
from sessgit.agents.claude.writer import marks
from sessgit.agents.claude.writer.program_lines import GONE, Chain, call_id
from sessgit.agents.line import Line, parse, split
from sessgit.agents.reader import opened
from sessgit.agents.values import Mark
from sessgit.errors import ROOM, SessgitError
from sessgit.model import canonical
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.session import Session
from sessgit.model.program_input import Outcome, Task

_STEP = 64 << 10
_SEAM = 4096
"""So many bytes before what is new must be those that were there: a file that was cut may have grown again."""
_NOWHERE = Extent(0, 0)


@dataclass
class End:
    """Where the transcript at `path` ends, of which `size` bytes are known.

    `key` is the uuid of its last prompt, ``""`` where there is none. `begun` are the cells of programs in the turn
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

    def read(self) -> bool:
        """Reads what was written since the last time; returns whether the file is there."""
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
            handle = source.file.fileno()
            if source.inode != self.inode or _at(handle, self.size - len(self.seam), len(self.seam)) != self.seam:
                self.forget()
            size = source.size
            data = _at(handle, self.size, size - self.size) if self.size >= 0 else _last_turn(handle, size)
            self.inode, self.size, self.changed = source.inode, size, info.st_mtime_ns
        self.torn = len(data) - (data.rfind(b"\n") + 1)
        self.size -= self.torn
        self.seam = (self.seam + data[: len(data) - self.torn])[-_SEAM:]
        # Where only the newline is missing, what is there counts, and is read again when it gets one.
        self._note(ClaudeLine(raw, extent, parse(raw)) for raw, extent in split(data + b"\n" * bool(self.torn), 0))
        return True

    def append(self, lines: Iterable[bytes], *, durable: bool) -> None:
        """Adds lines that the chain wrote; with `durable` they survive a loss of power. `read` came right before.

        Raises SessgitError, with the file as it was; then the chain is read anew.
        """
        lines = list(lines)
        data = b"".join(line + b"\n" for line in lines)
        try:
            if self.size < 0:
                self._create()
                self.size = 0
            # What a writer that was killed left of a line gets its end, and stays what it is.
            close = b"\n" if self.torn else b""
            file_end.append(self.path, self.size + self.torn, close + data, durable=durable)
            self.changed = self.path.stat().st_mtime_ns
        except BaseException:
            self.forget()
            raise
        self.size += self.torn + len(close) + len(data)
        self.torn, self.seam = 0, (data or self.seam)[-_SEAM:]
        self._note((ClaudeLine(raw, extent, parse(raw)) for raw, extent in split(data, 0)), ours=True)

    def forget(self) -> None:
        """Nothing of the file is known any more."""
        self.size, self.inode, self.key, self.torn, self.seam = -1, 0, "", 0, b""
        self.begun, self.pending, self.calls, self.called = {}, {}, {}, set()
        self.chain.leaf, self.chain.open, self.chain.message = "", {}, ""

    def _create(self) -> None:
        try:
            new_file.make_folder(self.path)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            self.inode = self.path.stat().st_ino
        except OSError as error:
            raise SessgitError(f"cannot write {self.path}: {error.strerror or error}", ROOM) from error

    def _note(self, lines: Iterable[Line], *, ours: bool = False) -> None:
        for line in lines:
            if line.data is None or not line.uuid or line.data.get("isSidechain"):
                continue
            if is_prompt(line):
                self.key, self.begun, self.pending, self.calls = prompt_uuid(line), {}, {}, {}
                self.called = set()
            self.called.update(str(block.get("id")) for block in blocks(line) if block.get("type") == "tool_use")
            mark = marks.of(line) if line.type == "assistant" else marks.NONE
            if mark.task is not None:
                self._begin(mark.task, mark.call)
            elif mark.result_of in self.begun:
                self.calls.setdefault(mark.call, mark.result_of)
            ended = [self.calls.get(str(block.get("tool_use_id")), "") for block in tool_results(line)]
            if not marks.is_stand_in(line):
                for cell in ended:
                    self.pending.pop(cell, None)
            if not ours:
                self._follow(line, mark, ended)

    def _follow(self, line: Line, mark: Mark, ended: list[str]) -> None:
        """The chain goes on behind a line that it did not write."""
        chain = self.chain
        moment = canonical.seconds(line.text("timestamp")) or 0
        chain.leaf, chain.latest = line.uuid, max(chain.latest, round(moment * 1000))
        if is_prompt(line):
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


def of(path: Path, state: Session) -> End:
    """The end of a session's file, of which nothing is read yet."""
    latest = round((canonical.seconds(state.updated) or 0) * 1000)
    return End(path, Chain(state.agent_id, {"cwd": state.project} if state.project else {}, latest=latest))


def give_up(path: Path, state: Session) -> bool:
    """Ends the cells that a program which is gone left pending, as whoever opens the next turn does; returns whether
    there were any. The caller holds the session's lock, and nobody has a turn open."""
    end = of(path, state)
    if not end.read() or not end.pending:
        return False
    gone, lines = Outcome(error=GONE), list[bytes]()
    for cell, task in list(end.pending.items()):
        lines += end.chain.outcome(cell, gone, None, task.operation)
    end.append(lines, durable=False)
    return True


def _last_turn(handle: int, size: int) -> bytes:
    """The last lines of a file, from its last prompt on; all of it where it has none."""
    length = _STEP
    while True:
        start = max(0, size - length)
        data = _at(handle, start, size - start)
        if start:
            data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
        found = [extent.offset for raw, extent in split(data, 0) if b'"user"' in raw and _is_prompt(raw)]
        if found or not start:
            return data[found[-1] :] if found else data
        length *= 4


def _is_prompt(raw: bytes) -> bool:
    data = parse(raw)
    return data is not None and is_prompt(ClaudeLine(raw, _NOWHERE, data))


def _at(handle: int, start: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.pread(handle, length, start)):
        parts.append(part)
        start, length = start + len(part), length - len(part)
    return b"".join(parts)
