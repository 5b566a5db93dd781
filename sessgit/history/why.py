"""How a file came to be as it is: which cells wrote it, what each of them had read before, and which read it then.

Only tools for files are traced. Commands, searches and subagents are counted, and listed if a command names the file.
"""

from __future__ import annotations

import difflib
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal, NamedTuple

from sessgit.agents.values import Use
from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.history.cell_graph import Graph
from sessgit.history.cells import Node
from sessgit.model import humanize
from sessgit.model.frozen import frozen

FileEvent = Literal["wrote", "read", "failed", "named"]
_MOST_READS = 200
"""Indirect reads of a write that are listed at most."""
_MOST_WRITERS = 200
"""Calls that are followed at most to find them: a file that was written often has as many for each write."""
_MOST_SUGGESTIONS = 3


@frozen
class FileRead:
    """A cell that read a file, and the address of the cell that had written it, or ``""`` if none of the session
    had."""

    node: Node
    file: str
    writer: str


@frozen
class FileStep:
    """Something that happened to the file: a cell wrote it, or read it before any cell of the session wrote it; a call
    for it failed or has no result; or a command named it.

    A write has what was read since the write before it (`reads`), the reads by which that came about (`behind`), the
    calls in between that are not traced (`others`), and the cells that read what it wrote (`readers`).
    """

    what: FileEvent
    node: Node
    reads: list[FileRead] = field(default_factory=list)
    behind: list[FileRead] = field(default_factory=list)
    others: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)


@frozen
class FileHistory:
    """All that happened to a file, in order."""

    file: str
    steps: list[FileStep]
    graph: Graph

    def count(self, what: FileEvent) -> int:
        """Return the number of steps of that kind."""
        return sum(step.what == what for step in self.steps)

    @property
    def readers(self) -> int:
        """The number of cells that read it."""
        return self.count("read") + len({node.address for step in self.steps for node in step.readers})


def file_history(graph: Graph, file: str, *, behind: bool = True) -> FileHistory:
    """Return the history of a file by its absolute path; a file that no tool named has no steps. Most of the work is to
    find the indirect reads `behind` each write."""
    return FileHistory(file, list(_HistoryBuilder(graph, file, behind).steps()), graph)


class _Use(NamedTuple):
    """What a call does to one file, or the command that it runs; None of a call of which nothing is known."""

    call: Node
    file: str = ""
    access: str | None = None
    command: str = ""


class _HistoryBuilder:
    """Uses are numbers here, in the order in which they happened: a call has one for each of its files."""

    def __init__(self, graph: Graph, file: str, behind: bool) -> None:
        self.file, self.behind = file, behind
        self.uses = [one for address, use in graph.uses.items() for one in _split_use(graph.nodes[address], use)]
        self.reads = [number for number, use in enumerate(self.uses) if use.access == "r"]
        self.untraced = [number for number, use in enumerate(self.uses) if not use.file]
        self.after_write = dict[int, int]()
        """The number after the previous write of the file for each use that wrote it, or 0."""
        self.writers = dict[int, int]()
        """The use that had written the file last for each use that read it."""
        self._find_writes()
        name = re.escape(os.path.basename(file))  # noqa: PTH119 - of a path as the agent has it
        self.naming = re.compile(rf"(?<![\w-]){name}(?![\w-]|\.\w)")

    def steps(self) -> Iterator[FileStep]:
        readers: dict[int, list[Node]] = {}
        for number, writer in self.writers.items():
            if self.uses[number].file == self.file and self.uses[number].access == "r":
                readers.setdefault(writer, []).append(self.uses[number].call)
        for number, (call, file, access, command) in enumerate(self.uses):
            if file != self.file:
                if command and self.naming.search(command):
                    yield FileStep("named", call)
            elif not access:
                yield FileStep("failed", call)
            elif access != "r":
                reads = self._since_write(self.reads, number)
                behind = self._indirect_reads(number, reads) if self.behind else []
                others = [self.uses[other].call for other in self._since_write(self.untraced, number)]
                own = readers.get(number, [])
                yield FileStep("wrote", call, self._file_reads(reads), self._file_reads(behind), others, own)
            elif number not in self.writers:
                yield FileStep("read", call)

    def _find_writes(self) -> None:
        last: dict[str, int] = {}
        for number, (_, file, access, _) in enumerate(self.uses):
            if "r" in (access or "") and file in last:
                self.writers[number] = last[file]
            if "w" in (access or ""):
                self.after_write[number] = last.get(file, -1) + 1
                last[file] = number

    def _file_reads(self, numbers: Sequence[int]) -> list[FileRead]:
        uses = self.uses
        return [
            FileRead(uses[n].call, uses[n].file, uses[self.writers[n]].call.address if n in self.writers else "")
            for n in numbers
        ]

    def _since_write(self, numbers: Sequence[int], end: int, most: int | None = None) -> Sequence[int]:
        """Return those of the ascending numbers since the file was written before, or the last of them."""
        first, last = (bisect_left(numbers, number) for number in (self.after_write[end], end))
        return numbers[first if most is None else max(first, last - most) : last]

    def _indirect_reads(self, write: int, reads: Sequence[int]) -> list[int]:
        """Return what the writers of these files, and of this one, had read, and the writers of those."""
        known = set(reads)
        waiting = [self.writers.get(number) for number in (write, *reads)]
        followed: set[int | None] = {None}
        indirect: list[int] = []
        while waiting and len(indirect) < _MOST_READS and len(followed) <= _MOST_WRITERS:
            writer = waiting.pop()
            if writer is None or writer in followed:
                continue
            followed.add(writer)
            waiting.append(self.writers.get(writer))
            for read in self._since_write(self.reads, writer, _MOST_READS):
                waiting.append(self.writers.get(read))
                if read not in known:
                    known.add(read)
                    indirect.append(read)
        return sorted(indirect)


def _split_use(call: Node, use: Use | None) -> list[_Use]:
    if use is None or not use.files:
        return [_Use(call, command=use.command if use else "")]
    return [_Use(call, file, access) for file, access in use.files.items()]


def resolve_file(graph: Graph, text: str, folders: Sequence[str]) -> str:
    """Return the file that the user names by an absolute path, one relative to a folder, or the end of a path.

    Raises NotFoundError with similar ones if no tool named such a file, or it is a folder; AmbiguousError if several
    paths end so.
    """
    known = list(dict.fromkeys(file for use in graph.uses.values() if use is not None for file in use.files))
    places = [os.path.normpath(os.path.join(folder, text)) for folder in folders]  # noqa: PTH118
    for place in places:
        if place in known:
            return place
    ending = "/" + os.path.normpath(text).lstrip("/")
    fitting = sorted(file for file in known if file.endswith(ending))
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        which = "".join(f"\n  {file}" for file in fitting)
        raise AmbiguousError(f"“{text}” matches {len(fitting)} files:{which}", "Give more of the path.")
    inside = sorted(file for file in known if any(file.startswith(f"{place.rstrip('/')}/") for place in places))
    if inside:
        many = humanize.format_count(len(inside), "file")
        raise NotFoundError(
            f"“{text}” is a folder, with {many} that tools read or wrote",
            f"Name one: {_short_paths(inside, folders)}",
        )
    raise NotFoundError(f"no tool read or wrote “{text}” in this conversation", _suggestions(known, text, folders))


def _suggestions(known: Sequence[str], text: str, folders: Sequence[str]) -> str:
    names = {os.path.basename(file): file for file in known}  # noqa: PTH119
    close = difflib.get_close_matches(os.path.basename(text.rstrip("/")), names, n=_MOST_SUGGESTIONS, cutoff=0.5)  # noqa: PTH119
    if close:
        return f"similar: {_short_paths([names[name] for name in close], folders)}"
    if known:
        return f"The most recent files: {_short_paths(known[-_MOST_SUGGESTIONS:], folders)}"
    return "It used no file tools. Shell commands are not traced."


def _short_paths(files: Sequence[str], folders: Sequence[str]) -> str:
    """Return the first of the files, relative to a folder in which they lie."""
    below = [(f"{folder.rstrip('/')}/", file) for file in files[:_MOST_SUGGESTIONS] for folder in folders]
    short = {file: file.removeprefix(start) for start, file in below if file.startswith(start)}
    return ", ".join(short.get(file, file) for file in files[:_MOST_SUGGESTIONS])
