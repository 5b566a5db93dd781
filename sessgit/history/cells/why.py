"""How a file came to be what it is: which cells wrote it, what each of them had read before, and who read it then.

All of it is what tools for files tell. What a command, a search or a subagent read or wrote is not known, so these are
only counted, and told where a command names the file.
"""

from __future__ import annotations

import difflib
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.history.cells.graph import Graph, Node
from sessgit.model import humanize

FileEvent = Literal["wrote", "read", "failed", "named"]
_MOST_FOUND = 200
"""So many reads at most are told of that lie behind those of a write."""
_MOST_WRITERS = 200
"""So many calls at most are followed to find them: a file that was written all the time has as many for each write."""
_MOST_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class FileRead:
    """A cell that read a file, and the address of the one that had written it, or ``""`` where none of the session
    had."""

    node: Node
    writer: str


@dataclass(frozen=True, slots=True)
class FileStep:
    """Something that happened to the file.

    It was written; or read before anything here wrote it; or a call for it failed or has no result; or a command named
    it. Of a write there is what was read since the write before it, by way of which more was read before (`behind`),
    the calls meanwhile of which nothing is known, and who read what it wrote.
    """

    what: FileEvent
    node: Node
    reads: list[FileRead] = field(default_factory=list)
    behind: list[FileRead] = field(default_factory=list)
    others: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FileHistory:
    """All that happened to a file, in order."""

    file: str
    steps: list[FileStep]
    graph: Graph

    def count(self, what: FileEvent) -> int:
        """How many steps are of that kind."""
        return sum(step.what == what for step in self.steps)

    @property
    def readers(self) -> int:
        """How many cells read it."""
        return self.count("read") + len({n.address for step in self.steps for n in step.readers})


def file_history(found: Graph, file: str, *, behind: bool = True) -> FileHistory:
    """The story of a file by its absolute path; one that no tool named has no steps. What lies `behind` writes is left
    out where it is not asked for: that is most of the work."""
    return FileHistory(file, list(_HistoryBuilder(found, file, behind).steps()), found)


class _HistoryBuilder:
    """Cells are places here, and only those that are told of are made."""

    def __init__(self, found: Graph, file: str, behind: bool) -> None:
        self.graph, self.file, self.behind = found, file, behind
        self.at = found.nodes.at
        self.reading = [place for place, use in found.uses.items() if use is not None and use.reads and not use.writes]
        self.unknown = [place for place, use in found.uses.items() if use is None or not use.file]
        self.writers = {place: others[0] for place, others in found.edges["data"].places.items()}
        self.before = self._writes_before()
        name = re.escape(os.path.basename(file))  # noqa: PTH119 - of a path as the agent has it
        self.naming = re.compile(rf"(?<![\w-]){name}(?![\w-]|\.\w)")

    def steps(self) -> Iterator[FileStep]:
        readers: dict[int, list[Node]] = {}
        for place, writer in self.writers.items():
            use = self.graph.uses[place]
            if use is not None and use.file == self.file and not use.writes:
                readers.setdefault(writer, []).append(self.at(place))
        for place, use in self.graph.uses.items():
            if use is None:
                continue
            if use.file == self.file and use.writes:
                reads = self._reads(place)
                behind = self._reads_of_writers(place, reads) if self.behind else []
                yield FileStep(
                    "wrote",
                    self.at(place),
                    [self._read(one) for one in reads],
                    [self._read(one) for one in behind],
                    self._untraced_calls(place),
                    readers.get(place, []),
                )
            elif use.file == self.file and use.reads and place not in self.writers:
                yield FileStep("read", self.at(place))
            elif use.file == self.file and not use.reads:
                yield FileStep("failed", self.at(place))
            elif use.command and self.naming.search(use.command):
                yield FileStep("named", self.at(place))

    def _writes_before(self) -> dict[int, int]:
        """For each cell that wrote a file the place after the write of it that came before, or 0."""
        last: dict[str, int] = {}
        found: dict[int, int] = {}
        for place, use in self.graph.uses.items():
            if use is not None and use.writes:
                found[place] = last.get(use.file, 0)
                last[use.file] = place + 1
        return found

    def _read(self, place: int) -> FileRead:
        writer = self.writers.get(place)
        return FileRead(self.at(place), "" if writer is None else self.graph.nodes.address(writer))

    def _reads(self, place: int, most: int | None = None) -> list[int]:
        """What was read since the file was written before, or the last of it."""
        first, last = (bisect_left(self.reading, end) for end in (self.before[place], place))
        return self.reading[first if most is None else max(first, last - most) : last]

    def _reads_of_writers(self, place: int, reads: Sequence[int]) -> list[int]:
        """What the writers of these files, and of this one, had read, and the writers of those."""
        known = set(reads)
        waiting = [self.writers.get(one) for one in (place, *reads)]
        asked: set[int | None] = {None}
        found: list[int] = []
        while waiting and len(found) < _MOST_FOUND and len(asked) <= _MOST_WRITERS:
            writer = waiting.pop()
            if writer is None or writer in asked:
                continue
            asked.add(writer)
            waiting.append(self.writers.get(writer))
            for read in self._reads(writer, _MOST_FOUND):
                waiting.append(self.writers.get(read))
                if read not in known:
                    known.add(read)
                    found.append(read)
        return sorted(found)

    def _untraced_calls(self, place: int) -> list[Node]:
        """The calls since the file was written before of which nobody knows what they read or wrote."""
        first, last = (bisect_left(self.unknown, end) for end in (self.before[place], place))
        return [self.at(other) for other in self.unknown[first:last]]


def resolve_file(found: Graph, text: str, folders: Sequence[str]) -> str:
    """The file that a person names: an absolute path, one relative to a folder, or the end of a path.

    Raises NotFoundError with near ones where no tool named such a file, or where it is a folder; AmbiguousError where
    several end so.
    """
    known = list(dict.fromkeys(use.file for use in found.uses.values() if use is not None and use.file))
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
            f"Name one: {_find_in_folders(inside, folders)}",
        )
    raise NotFoundError(f"no tool read or wrote “{text}” in this conversation", _suggestions(known, text, folders))


def _suggestions(known: Sequence[str], text: str, folders: Sequence[str]) -> str:
    names = {os.path.basename(file): file for file in known}  # noqa: PTH119
    close = difflib.get_close_matches(os.path.basename(text.rstrip("/")), names, n=_MOST_SUGGESTIONS, cutoff=0.5)  # noqa: PTH119
    if close:
        return f"similar: {_find_in_folders([names[name] for name in close], folders)}"
    if known:
        return f"The most recent files: {_find_in_folders(known[-_MOST_SUGGESTIONS:], folders)}"
    return "It used no file tools. Shell commands are not traced."


def _find_in_folders(files: Sequence[str], folders: Sequence[str]) -> str:
    """The first of the files, by their paths in one of the folders where they lie there."""
    below = [(f"{folder.rstrip('/')}/", file) for file in files[:_MOST_SUGGESTIONS] for folder in folders]
    short = {file: file.removeprefix(start) for start, file in below if file.startswith(start)}
    return ", ".join(short.get(file, file) for file in files[:_MOST_SUGGESTIONS])
