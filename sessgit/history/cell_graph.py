"""The dependencies between all cells of a session.

There are three kinds of edges. *Causal* ones are stored with a turn's cells; they may lead to earlier turns. A cell
without any *follows* the last cells before it on which no other depended until then. A cell that reads or edits a file
depends by its *data* on the last cell that wrote it. The latter two are computed here.
"""

from __future__ import annotations

import difflib
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from sessgit.agents.values import Use
from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.history import cells
from sessgit.history.cells import Node, TurnCells
from sessgit.model import dependency_graph, humanize
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store.context import Context
from sessgit.store.index import Branch

Kind = Literal["causal", "follows", "data"]
KINDS: tuple[Kind, ...] = ("causal", "follows", "data")
INDEX_VERSION = "1.0"


@dataclass(frozen=True)
class Graph:
    """The cells by address, in the order in which they happened, and by kind of edge the earlier cells that each
    depends on. `damage` has the stored dependencies that are impossible."""

    nodes: Mapping[str, Node]
    edges: Mapping[Kind, Mapping[str, Sequence[str]]]
    damage: list[str]

    @cached_property
    def uses(self) -> dict[str, Use | None]:
        """What calls are about by address, in order; None of a call of which that is not known."""
        return {address: node.traced_use for address, node in self.nodes.items() if node.is_call}

    def needs(self, *kinds: Kind) -> dict[str, list[str]]:
        """Return by address the cells that each depends on, by edges of these kinds or by any."""
        needs: dict[str, list[str]] = {address: [] for address in self.nodes}
        for kind in kinds or KINDS:
            for address, others in self.edges[kind].items():
                needs[address] += [other for other in others if other not in needs[address]]
        return needs


@frozen
class CellChain:
    """The cells on the way from a cell, by address in the order of execution, without the cell itself.

    Causal and data edges lead to those in `near`; to the others only because they came before in the conversation.
    """

    graph: Graph
    start: Node
    down: bool
    cells: Sequence[str]
    near: frozenset[str]


def read_graph(context: Context, branch: Branch, last: int | None = None, progress: Progress = no_progress) -> Graph:
    """Return the graph of a branch up to a turn, or of all of it, without what a rewind left behind."""
    return build_graph(cells.read_turns(context, branch, last=last, progress=progress))


def build_graph(turns: Sequence[TurnCells]) -> Graph:
    """Return the graph of the turns."""
    nodes: dict[str, Node] = {}
    edges: dict[Kind, dict[str, Sequence[str]]] = {kind: {} for kind in KINDS}
    damage = [text for turn in turns for text in turn.damage]
    ids: dict[str, str] = {}
    writers: dict[str, str] = {}
    unneeded: dict[str, None] = {}  # the cells on which no other depends yet, except for data
    for turn in turns:
        is_damaged = len({record[0] for record in turn.records}) < len(turn.records)
        for node in turn.nodes:
            address, cell_id, depends = node.address, node.record[0], node.record[4]
            nodes[address] = node
            needed = [ids[name] for name in dict.fromkeys(depends) if name in ids]
            is_damaged = is_damaged or not all(name in ids for name in depends)
            if needed:
                edges["causal"][address] = needed
                for other in needed:
                    unneeded.pop(other, None)
            elif unneeded and (depends or not any(node.record[6:7])):  # a program says so if a cell depends on nothing
                edges["follows"][address] = list(unneeded)
                unneeded.clear()
            unneeded[address] = None
            ids[cell_id] = address
            use = node.use
            if read := dict.fromkeys(writers[file] for file in use.reads if file in writers):
                edges["data"][address] = tuple(read)
            writers.update(dict.fromkeys(use.writes, address))
        if is_damaged:
            damage += _find_damage(turn, ids)
    return Graph(nodes, edges, damage)


def cell_chain(graph: Graph, address: str, *, down: bool) -> CellChain:
    """Return the chain of the cell at an address, up to what it depends on or down to what depends on it."""
    if address not in graph.nodes:
        raise NotFoundError(f"the store has no cell {address}", "`sessgit cells` lists the cells.")
    every, near = (
        dependency_graph.reachable(dependency_graph.dependents(needs) if down else needs, address)
        for needs in (graph.needs(), graph.needs("causal", "data"))
    )
    in_order = [other for other in graph.nodes if other in every]
    return CellChain(graph, graph.nodes[address], down, in_order, frozenset(near))


def index_document(session: str, graph: Graph) -> dict[str, Any]:
    """Return the graph in the form of other programs, by cell ids and without kinds of edges: each cell with what it
    depends on and what depends on it, the ends of the graph, and an order of execution. Of several cells with one id
    the first stands for all."""
    needs: dict[str, list[str]] = {}
    types: dict[str, str] = {}
    ids = {address: node.cell.id for address, node in graph.nodes.items()}
    for address, others in graph.needs().items():
        if ids[address] not in needs:
            needs[ids[address]] = list(dict.fromkeys(ids[other] for other in others))
            types[ids[address]] = graph.nodes[address].cell.type
    dependents = dependency_graph.dependents(needs)
    return {
        "version": INDEX_VERSION,
        "session_id": session,
        "cells": {
            own: {"type": types[own], "dependencies": others, "dependents": dependents[own]}
            for own, others in needs.items()
        },
        "roots": [own for own, others in needs.items() if not others],
        "leaves": [own for own, others in dependents.items() if not others],
        "execution_order": list(needs),
    }


def _find_damage(turn: TurnCells, ids: Mapping[str, str]) -> list[str]:
    """Return what is wrong with a turn's dependencies, if anything is; `ids` are the addresses of the last cells up to
    the end of the turn with each id."""
    needs = {record[0]: record[4] for record in turn.records}
    if len(needs) < len(turn.records):
        return [f"turn {turn.number}: several of its cells have the same id"]
    for name, depends in needs.items():
        for other in depends:
            if other not in ids:
                return [f"turn {turn.number}: {ids[name]} depends on {other[:20]}, which is not before it"]
    way = " → ".join(ids[name] for name in dependency_graph.find_cycle(needs))
    what = f"its cells depend on each other in a circle: {way}" if way else "some of its cells depend on later ones"
    return [f"turn {turn.number}: {what}"]


# How a file came to be
#
# Which cells wrote it, what each of them had read before, and which read it then. Only tools for files are traced.
# Commands, searches and subagents are counted, and listed if a command names the file.

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
