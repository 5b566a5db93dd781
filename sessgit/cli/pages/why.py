"""The story of a file: who wrote it, what they had read before, who read it then."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells, turn_pieces
from sessgit.cli.render import Paint
from sessgit.history.cells.details import NO_DETAIL, CellDetail
from sessgit.history.cells.graph import Node
from sessgit.history.cells.why import FileHistory, FileRead, FileStep
from sessgit.model import canonical
from sessgit.store import layout
from sessgit.store.sqlite.rows import Branch

_MARKS = {"wrote": "●", "read": "○", "failed": "✗", "named": "?"}
_MOST = 8
"""So many files are told of that were read before a write."""
_WIDEST = 100
_LABEL = 10
_NARROW = 66


def page(here: Invocation, branch: Branch, found: FileHistory, steps: Sequence[FileStep],
    details: Mapping[str, CellDetail], *,
         full: bool) -> Iterator[str]:  # fmt: skip
    """What happened to the file, step by step."""
    teller = _Teller(here, branch, details, steps, full=full)
    paint = Paint(here.colour)
    name = turn_pieces.path(here, branch.state.project, found.file, here.width - 28)
    counts = f"{text.counted(found.count('wrote'), 'write')}, {text.counted(found.readers, 'read')}"
    yield f"{paint('bold', name)}  ·  {counts}"
    yield cells.header(here, branch)
    yield ""
    if len(steps) < len(found.steps):
        yield paint("dim", f"({text.counted(len(found.steps) - len(steps), 'earlier step')} not shown: -n shows more)")
    for step in steps:
        yield from teller.step(step)
    if not found.count("wrote"):
        yield "No tool wrote this file here."
    if found.count("named") or any(step.others for step in steps):
        yield ""
        yield from (paint("dim", line) for line in text.wrap(
            "Shell commands, searches and subagents are not traced; ? marks commands that mention the file.",
            here.width,
        ))  # fmt: skip


class _Teller:
    def __init__(
        self,
        here: Invocation,
        branch: Branch,
        details: Mapping[str, CellDetail],
        steps: Sequence[FileStep],
        *,
        full: bool,
    ) -> None:
        self.full, self.most = full, 1 << 31 if full else _MOST
        self.here, self.branch, self.details = here, branch, details
        self.paint = Paint(here.colour)
        self.address = max((len(step.node.address) for step in steps), default=0)
        self.operation = max((text.width(cells.called(step.node)) for step in steps), default=0)
        moments = (canonical.seconds(known.time) for known in details.values())
        self.clock = text.clock(here.now, (moment for moment in moments if moment is not None))

    def step(self, step: FileStep) -> Iterator[str]:
        """A line for the step itself, and of a write what led to it and where it went."""
        node, known = step.node, self.details.get(step.node.address, NO_DETAIL)
        start = f"{_MARKS[step.what]} {node.address.ljust(self.address)}  "
        operation = text.fit(cells.called(node), self.operation) + "  "
        end = self._time(known)
        room = self.here.width - text.width(start) - text.width(operation) - text.width(end) - 2 * bool(end)
        yield (
            f"{self.paint(_STYLES[step.what], start)}{self.paint('cyan', operation)}"
            f"{text.fit(self._told(step, known), room)}{'  ' if end else ''}{self.paint('dim', end)}"
        )
        if step.what != "wrote":
            return
        indent = self.address + 4
        columns = min(self.here.width - indent - _LABEL - 2, _WIDEST)
        counted = Counter(cells.called(other) for other in step.others)
        ran = [f"{name} ×{number}" if number > 1 else name for name, number in counted.items()]
        for label, parts in (
            ("had read", self._files(step.reads, columns)),
            ("earlier", self._files(step.behind, columns) if self.full else []),
            ("had run", ran),
            ("read by", _some([reader.address for reader in step.readers], self.most)),
        ):
            lines = text.fold(parts, columns, "  ")
            for number, line in enumerate(lines):
                yield f"{' ' * indent}{self.paint('dim', ('' if number else label).ljust(_LABEL))}  {line}"

    def _told(self, step: FileStep, known: CellDetail) -> str:
        """What a write did and what was asked for; of another step what it was."""
        if step.what == "wrote":
            lines = [line for change in known.changes for line in change.diff]
            added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
            size = f"+{added} −{removed}  " if lines else ""
            asked = text.clean(known.prompt.strip(), 200)
            return f"{size}“{asked}”" if asked else size
        if step.what == "failed":
            return cells.outcome(step.node, known)
        if step.what == "read":
            return "before any write"
        return text.clean(known.about or step.node.use.command)

    def _files(self, reads: Sequence[FileRead], columns: int) -> list[str]:
        """Each file with the cell that read it last, and who had written what it read."""
        last: dict[str, FileRead] = {}
        for read in reads:
            last.pop(read.node.use.file, None)
            last[read.node.use.file] = read
        told = []
        for file, read in last.items():
            place = f" ({read.node.address}{', by ' if read.writer else ''}{read.writer})"
            name = turn_pieces.path(self.here, self.branch.state.project, file, columns - len(place))
            told.append(f"{name}{place}")
        return _some(told, self.most)

    def _time(self, known: CellDetail) -> str:
        moment = canonical.seconds(known.time)
        if moment is None or self.here.width < _NARROW:
            return ""
        return time.strftime(self.clock, time.localtime(moment))


_STYLES = {"wrote": "green", "read": "dim", "failed": "red", "named": "yellow"}


def _some(parts: list[str], most: int) -> list[str]:
    """The last ones, and how many there were before."""
    left = len(parts) - most
    return parts if left <= 1 else [*parts[left:], f"and {left} earlier"]


def as_json(
    branch: Branch, found: FileHistory, steps: Sequence[FileStep], details: Mapping[str, CellDetail]
) -> dict[str, Any]:
    """Return what `why --json` prints."""

    def step(one: FileStep) -> dict[str, Any]:
        known = details.get(one.node.address, NO_DETAIL)
        return {
            "what": one.what,
            "cell": cells.cell_json(one.node, known),
            "prompt": known.prompt,
            "changes": [{"path": change.path, "diff": list(change.diff)} for change in known.changes],
            "reads": [_read_json(read) for read in one.reads],
            "behind": [_read_json(read) for read in one.behind],
            "others": [_place_json(node) for node in one.others],
            "readers": [_place_json(node) for node in one.readers],
        }

    return {
        "session_id": layout.session_of(branch.name),
        "branch": branch.name,
        "file": found.file,
        "steps": [step(one) for one in steps],
        "damage": found.graph.damage,
    }


def _read_json(read: FileRead) -> dict[str, Any]:
    return {**_place_json(read.node), "file": read.node.use.file, "writer": read.writer or None}


def _place_json(node: Node) -> dict[str, Any]:
    return {"cell_id": node.cell.id, "address": node.address, "operation": node.cell.operation}
