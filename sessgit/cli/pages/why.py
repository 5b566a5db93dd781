"""What `why` prints: who wrote a file, what they had read before, and who read it then."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessgit.cli import text
from sessgit.cli.blocks import paragraph, session_heading
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells, turn_pieces
from sessgit.history.cells import NO_DETAIL, CellDetail, Node
from sessgit.history.why import FileHistory, FileRead, FileStep
from sessgit.model import canonical
from sessgit.store.index import Branch

_STYLES = {"wrote": ("● ", "green"), "read": ("○ ", "dim"), "failed": ("✗ ", "red"), "named": ("? ", "yellow")}
_FILES = 8
_WIDEST = 100
_LABEL = 12
_NARROW = 66


def page(
    here: Invocation, branch: Branch, history: FileHistory, steps: Sequence[FileStep],
    details: Mapping[str, CellDetail], *, full: bool,
) -> Iterator[str]:  # fmt: skip
    """Yield what happened to the file, step by step."""
    name = turn_pieces.path(here, branch.state.project, history.file, here.width - 28)
    counts = f"{text.counted(history.count('wrote'), 'write')}, {text.counted(history.readers, 'read')}"
    yield f"{here.paint('bold', name)}  ·  {counts}"
    yield from session_heading(here, branch)
    yield ""
    if len(steps) < len(history.steps):
        earlier = text.counted(len(history.steps) - len(steps), "earlier step")
        yield here.paint("dim", f"({earlier} not shown: -n shows more)")
    lines = cells.CellLines(here, branch.state.project, [step.node for step in steps], details)
    moments = [moment for detail in details.values() if (moment := canonical.seconds(detail.time)) is not None]
    clock = text.clock(here.now, moments)
    for step in steps:
        detail = details.get(step.node.address, NO_DETAIL)
        mark, style = _STYLES[step.what]
        start = here.paint(style, mark) + lines.start(step.node)
        moment = canonical.seconds(detail.time) if here.width >= _NARROW else None
        end = "" if moment is None else time.strftime(clock, time.localtime(moment))
        yield text.spread(start, _about(step, detail), here.paint("dim", end), here.width)
        if step.what == "wrote":
            yield from _around(here, branch, step, lines.address + 4, full=full)
    if not history.count("wrote"):
        yield "No tool wrote this file here."
    if history.count("named") or any(step.others for step in steps):
        yield ""
        untraced = "Shell commands, searches and subagents are not traced;"
        yield from paragraph(here, f"{untraced} ? marks commands that mention the file.", "dim")


def _about(step: FileStep, detail: CellDetail) -> str:
    """Return what a write changed and what was asked for; of another step its outcome or its command."""
    if step.what == "wrote":
        lines = [line for change in detail.changes for line in change.diff]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        prompt = text.clean(detail.prompt.strip(), 200)
        return (f"+{added} −{removed}  " if lines else "") + (f"“{prompt}”" if prompt else "")
    if step.what == "failed":
        return cells.outcome(step.node, detail)
    return "before any write" if step.what == "read" else text.clean(detail.about or step.node.use.command)


def _around(here: Invocation, branch: Branch, step: FileStep, indent: int, *, full: bool) -> Iterator[str]:
    """Yield what led to a write, and who read the file then."""
    columns = min(here.width - indent - _LABEL, _WIDEST)
    operations = Counter(cells.short_operation(node) for node in step.others)

    def files(reads: Sequence[FileRead]) -> list[str]:
        last: dict[str, str] = {}
        for read in reads:
            place = f" ({read.node.address}{', by ' if read.writer else ''}{read.writer})"
            last.pop(read.node.use.file, None)
            file = turn_pieces.path(here, branch.state.project, read.node.use.file, columns - len(place))
            last[read.node.use.file] = file + place
        return list(last.values())

    for label, parts in {
        "had read": files(step.reads),
        "earlier": files(step.behind) if full else [],
        "had run": [f"{name} ×{number}" if number > 1 else name for name, number in operations.items()],
        "read by": [reader.address for reader in step.readers],
    }.items():
        earlier = 0 if full or label == "had run" else len(parts) - _FILES
        shown = [*parts[earlier:], f"and {earlier} earlier"] if earlier > 1 else parts
        yield from text.hanging_indent(
            " " * indent + here.paint("dim", label.ljust(_LABEL)), text.fold(shown, columns, "  ")
        )


def as_json(
    branch: Branch, history: FileHistory, steps: Sequence[FileStep], details: Mapping[str, CellDetail]
) -> dict[str, Any]:
    """Return what `why --json` prints."""
    return {
        **cells.branch_json(branch),
        "file": history.file,
        "steps": [_step_json(step, details) for step in steps],
        "damage": history.graph.damage,
    }


def _step_json(step: FileStep, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    detail = details.get(step.node.address, NO_DETAIL)
    return {
        "what": step.what,
        "cell": cells.cell_json(step.node, details),
        "prompt": detail.prompt,
        "changes": [{"path": change.path, "diff": list(change.diff)} for change in detail.changes],
        "reads": [_read_json(read) for read in step.reads],
        "behind": [_read_json(read) for read in step.behind],
        "others": [_place_json(node) for node in step.others],
        "readers": [_place_json(node) for node in step.readers],
    }


def _read_json(read: FileRead) -> dict[str, Any]:
    return {**_place_json(read.node), "file": read.node.use.file, "writer": read.writer or None}


def _place_json(node: Node) -> dict[str, Any]:
    return {"cell_id": node.cell.id, "address": node.address, "operation": node.cell.operation}
