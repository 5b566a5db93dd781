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

from sessgit.agents.claude import cells as claude
from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.model import graph, words
from sessgit.ops.cells.graph import Graph, Node

What = Literal["wrote", "read", "failed", "named"]
_FARTHEST = 200
"""So many reads at most are told of that lie behind those of a write."""
_WRITERS = 200
"""So many calls at most are followed to find them: a file that was written all the time has as many for each write."""
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Read:
    """A cell that read a file, and the address of the one that had written it, or ``""`` where none of the session
    had."""

    node: Node
    writer: str


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened to the file.

    It was written; or read before anything here wrote it; or a call for it failed or has no result; or a command named
    it. Of a write there is what was read since the write before it, by way of which more was read before (`behind`),
    the calls meanwhile of which nothing is known, and who read what it wrote.
    """

    what: What
    node: Node
    reads: list[Read] = field(default_factory=list)
    behind: list[Read] = field(default_factory=list)
    others: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Story:
    """All that happened to a file, in order."""

    file: str
    steps: list[Step]
    graph: Graph

    def count(self, what: What) -> int:
        return sum(step.what == what for step in self.steps)

    @property
    def readers(self) -> int:
        """How many cells read it."""
        return self.count("read") + len({n.address for step in self.steps for n in step.readers})


def story(found: Graph, file: str, *, behind: bool = True) -> Story:
    """The story of a file by its absolute path; one that no tool named has no steps. What lies `behind` writes is left
    out where it is not asked for: that is most of the work."""
    return Story(file, list(_Teller(found, file, behind).steps()), found)


class _Teller:
    def __init__(self, found: Graph, file: str, behind: bool) -> None:
        self.graph, self.file, self.behind = found, file, behind
        self.nodes = list(found.nodes.values())
        self.place = {node.address: number for number, node in enumerate(self.nodes)}
        self.reading = [number for number, node in enumerate(self.nodes) if node.reads and not node.writes]
        self.before = self._writes_before()
        name = re.escape(os.path.basename(file))  # noqa: PTH119 - of a path as the agent has it
        self.naming = re.compile(rf"(?<![\w-]){name}(?![\w-]|\.\w)")

    def steps(self) -> Iterator[Step]:
        readers = graph.dependents(self.graph.needs("data"))
        for node in self.nodes:
            if node.writes == self.file:
                yield Step(
                    "wrote",
                    node,
                    reads := self._reads(node),
                    self._behind(node, reads) if self.behind else [],
                    self._others(node),
                    [reader for address in readers[node.address] if not (reader := self.graph.nodes[address]).writes],
                )
            elif node.reads == self.file and not self._writer(node):
                yield Step("read", node)
            elif node.use.file == self.file and not node.cell.ok:
                yield Step("failed", node)
            elif node.use.command and self.naming.search(node.use.command):
                yield Step("named", node)

    def _writes_before(self) -> dict[str, int]:
        """For each cell that wrote a file the place after the write of it that came before, or 0."""
        last: dict[str, int] = {}
        found: dict[str, int] = {}
        for number, node in enumerate(self.nodes):
            if node.writes:
                found[node.address] = last.get(node.writes, 0)
                last[node.writes] = number + 1
        return found

    def _writer(self, node: Node) -> str:
        return next(iter(self.graph.edges["data"].get(node.address, ())), "")

    def _reads(self, node: Node, most: int | None = None) -> list[Read]:
        """What was read since the file was written before, or the last of it."""
        first, last = (bisect_left(self.reading, end) for end in (self.before[node.address], self.place[node.address]))
        first = first if most is None else max(first, last - most)
        some = (self.nodes[number] for number in self.reading[first:last])
        return [Read(one, self._writer(one)) for one in some]

    def _behind(self, node: Node, reads: Sequence[Read]) -> list[Read]:
        """What the writers of these files, and of this one, had read, and the writers of those."""
        known = {read.node.address for read in reads}
        waiting = [self._writer(node), *(read.writer for read in reads)]
        asked = {""}
        found: list[Read] = []
        while waiting and len(found) < _FARTHEST and len(asked) <= _WRITERS:
            writer = waiting.pop()
            if writer in asked:
                continue
            asked.add(writer)
            waiting.append(self._writer(self.graph.nodes[writer]))
            for read in self._reads(self.graph.nodes[writer], _FARTHEST):
                waiting.append(read.writer)
                if read.node.address not in known:
                    known.add(read.node.address)
                    found.append(read)
        return sorted(found, key=lambda read: self.place[read.node.address])

    def _others(self, node: Node) -> list[Node]:
        """The calls since the file was written before of which nobody knows what they read or wrote."""
        some = self.nodes[self.before[node.address] : self.place[node.address]]
        return [one for one in some if one.cell.type == "tool" and one.cell.operation not in claude.FILE_TOOLS]


def resolve(found: Graph, text: str, folders: Sequence[str]) -> str:
    """The file that a person names: an absolute path, one relative to a folder, or the end of a path.

    Raises NotFoundError with near ones where no tool named such a file, or where it is a folder; AmbiguousError where
    several end so.
    """
    known = list(dict.fromkeys(node.use.file for node in found.nodes.values() if node.use.file))
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
        raise AmbiguousError(f"“{text}” fits {len(fitting)} files:{which}", "Give more of the path.")
    inside = sorted(file for file in known if any(file.startswith(f"{place.rstrip('/')}/") for place in places))
    if inside:
        many = words.counted(len(inside), "file")
        raise NotFoundError(
            f"“{text}” is a folder, with {many} that tools read or wrote", f"Name one: {_named(inside, folders)}"
        )
    raise NotFoundError(f"no tool read or wrote “{text}” in this conversation", _near(known, text, folders))


def _near(known: Sequence[str], text: str, folders: Sequence[str]) -> str:
    names = {os.path.basename(file): file for file in known}  # noqa: PTH119
    close = difflib.get_close_matches(os.path.basename(text.rstrip("/")), names, n=_NEAR, cutoff=0.5)  # noqa: PTH119
    if close:
        return f"near ones: {_named([names[name] for name in close], folders)}"
    if known:
        return f"The last ones were: {_named(known[-_NEAR:], folders)}"
    return "No tool for files was used in it. What commands did to files is not known."


def _named(files: Sequence[str], folders: Sequence[str]) -> str:
    """The first of the files, by their paths in one of the folders where they lie there."""
    below = [(f"{folder.rstrip('/')}/", file) for file in files[:_NEAR] for folder in folders]
    short = {file: file.removeprefix(start) for start, file in below if file.startswith(start)}
    return ", ".join(short.get(file, file) for file in files[:_NEAR])
