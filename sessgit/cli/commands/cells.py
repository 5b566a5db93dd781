"""`sessgit cells`, `deps`, `why`: the calls and messages of a conversation, and what they depend on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sessgit.cli import frame, operands, render, text
from sessgit.cli.frame import ADDRESS, CELL_ADDRESS, LIMIT, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cells as cells_page
from sessgit.cli.pages import turn_pieces
from sessgit.cli.text import paragraph, session_heading
from sessgit.errors import NotFoundError
from sessgit.history import cell_graph, resolve, why
from sessgit.history import cells as listing
from sessgit.history.cell_graph import Graph
from sessgit.history.cells import NO_DETAIL, CellDetail, Node
from sessgit.history.why import FileHistory, FileRead, FileStep
from sessgit.model import canonical, humanize
from sessgit.model.ids import Address
from sessgit.store import layout
from sessgit.store.index import Branch

_LISTED = 100
"""The most cells that are listed on a terminal without a limit."""
_OTHERS = 5
"""The most other conversations with a file that are named."""
_NEAREST = 40
"""The most cells of a chain that are shown without a limit."""


@frame.command("cells", reads=True, excludes={"--index": "--type --operation --failed --turn --limit"})
def cells(
    cli: Invocation,
    address: str = ADDRESS,
    limit: int | None = LIMIT,
    kind: Literal["llm_call", "tool", "repl", "map_reduce", "verification"] | None = option(
        "--type TYPE", "Only this type: tool or llm_call; repl, map_reduce or verification, which programs write."
    ),
    operation: str = option("--operation OP", "Only this tool or model."),
    turn: int | None = option("--turn N", "Only one turn."),
    failed: bool = option("--failed", "Only failed calls, and commands with an exit code other than 0."),
    as_index: bool = option("--index", "Print the dependency graph as JSON."),
) -> Answer:
    """List the cells of a conversation, oldest first.

    A cell is a tool call or a message of the model. Each is listed with its address, its id, what it is about, how it
    ended and how long it took: the last 100, or N. @N lists those up to turn N. --index prints all of them as one
    graph.
    """
    target = operands.whole_turn(cli, address, "cells")
    branch = target.branch
    if as_index:
        whole = _graph(cli, branch, target.turn)
        document = cell_graph.index_document(target.session, whole)
        damage = [f"({message})" for message in whole.damage]
        return Answer({"index": document}, json.dumps(document, indent=2).split("\n"), damage)
    number = resolve.resolve_target(cli.index, Address(branch.name, turn), cli.where).turn
    most = limit if limit is not None or cli.json else _LISTED
    query = listing.CellFilter(kind or "", operation, number, failed, target.turn, most)
    listed = listing.list_cells(cli.context, branch, query, render.progress(cli, "Looking"))
    known = listing.cell_details(cli.store, branch, listed.rows, listed.nodes, render.progress(cli, "Reading"))
    return Answer(
        lambda: cells_page.as_json(branch, listed, known, listing.message_places(cli.context, branch)),
        cells_page.cell_lines(cli, branch, listed, known),
        notes=map("({})".format, listed.damage),
    )


@frame.command("deps", reads=True, excludes={"--up": "--down"})
def deps(
    cli: Invocation,
    address: str = CELL_ADDRESS,
    up: bool = option("--up", "Show what it depends on (the default)."),
    down: bool = option("--down", "Show what depends on it."),
    draw: bool = option("--graph", "Draw a graph, newest cell first."),
    every: bool = option("--all", "Also show cells that merely came before or after it."),
    limit: int | None = LIMIT,
) -> Answer:
    """Show all cells that a cell depends on.

    A call depends on the message that made it, a message on the results it was given, and a cell that reads a file on
    the last call that wrote it. Changes that shell commands make to files are not tracked. Prints the nearest 40 cells
    in the order in which they happened; other cells, and those that merely came before, are counted. --json prints all.
    """
    target = operands.cell(cli, address, "deps")
    branch = target.branch
    whole = _graph(cli, branch)
    cell = listing.cell_at(cli.context, branch, target.turn or 0, target.cell)
    chain = cell_graph.cell_chain(whole, cell.address, down=down)
    most = None if cli.json else _NEAREST if limit is None and not every else limit
    nearest = cells_page.nearest(chain, most, every=every or cli.json)
    known = _details(cli, branch, nearest.nodes)
    return Answer(
        lambda: cells_page.chain_json(branch, chain, known),
        (cells_page.chain_drawing if draw else cells_page.chain_lines)(cli, branch, nearest, known),
        notes=map("({})".format, whole.damage),
    )


@frame.command("why", reads=True)
def explain(
    cli: Invocation,
    file: str = argument("FILE", "A path, or the end of one.", complete="files", required=True),
    address: str = ADDRESS,
    limit: int | None = LIMIT,
    full: bool = option("--full", "Also follow the reads behind each read."),
) -> Answer:
    """Show which calls wrote a file, and why.

    Each write is shown with the prompt it came from. “had read” lists what was read since the file was last written:
    lexer.py (2.4, by 1.2) was read in 2.4 as call 1.2 had written it. “had run” lists calls whose reads and writes are
    unknown; ? marks commands that mention the file. “read by” lists the calls that read the file afterwards. --full
    also follows the reads behind each read.

    FILE is an absolute path, a path relative to this folder or to the project, or the end of a path. @N stops at turn
    N. Without ADDRESS, the most recent conversation with FILE is shown if the current one has none, and others are
    named: those of the project, or of all projects if it has none.
    """
    others = [] if address else _sessions_with(cli, file)
    if others and not _is_current(cli, others):
        address = others[0]
        render.tell(f"(using {cli.ident(address)}, the most recent conversation that read or wrote {file})")
    try:
        target = operands.whole_turn(cli, address, f"why {file}")
    except NotFoundError:
        if address or others or not cli.index.outlines():
            raise
        hint = "`sessgit show ID` lists the files of a conversation."
        raise NotFoundError(f"no tool read or wrote “{file}” in any conversation", hint) from None
    branch = target.branch
    others = [other for other in others if other != target.session]
    whole = _graph(cli, branch, target.turn)
    path = why.resolve_file(whole, file, (cli.cwd, branch.state.project))
    story = why.file_history(whole, path, behind=full or cli.json)
    steps = story.steps if limit is None else story.steps[max(0, len(story.steps) - limit) :]
    known = _details(cli, branch, [step.node for step in steps])
    for own, detail in known.items():
        if len(detail.changes) > 1:  # only what was done to this file
            changes = ((listing.absolute_path(one.path, branch.state.project), one) for one in detail.changes)
            known[own] = replace(detail, changes=tuple(one for changed, one in changes if changed == path))
    notes = list(map("({})".format, whole.damage))
    if others:
        names = ", ".join(text.some([cli.ident(name) for name in others], _OTHERS))
        blame = f"sessgit blame {humanize.quote_for_shell(file)}"
        notes.append(f"(Also in {names}; `{blame}` shows the turn of each line.)")
    return Answer(
        lambda: {
            **cells_page.branch_json(branch),
            "file": story.file,
            "steps": [_step_json(step, known) for step in steps],
            "damage": story.graph.damage,
            "elsewhere": others,
        },
        _why_lines(cli, branch, story, steps, known, full=full),
        notes=notes,
    )


def _sessions_with(cli: Invocation, file: str) -> list[str]:
    """Return the sessions of this project that read or wrote a file, or if it has none those of all projects; also
    archived ones, the newest first."""
    if not cli.has_store:
        return []
    paths = [file] if file.startswith("/") else [file, f"*/{file}"]
    found = operands.sessions_with_files(cli, paths)
    having = [outline for outline in cli.index.outlines() if outline.name in found]
    return [outline.name for outline in resolve.outlines_in_project(having, cli.cwd) or having]


def _is_current(cli: Invocation, sessions: Sequence[str]) -> bool:
    """Return whether the current session is one of these."""
    try:
        return layout.session_of(resolve.current_branch(cli.index, cli.where)[0]) in sessions
    except NotFoundError:
        return False


def _graph(cli: Invocation, branch: Branch, end: int | None = None) -> Graph:
    return cell_graph.read_graph(cli.context, branch, end, render.progress(cli, "Reading"))


def _details(cli: Invocation, branch: Branch, nodes: Sequence[Node]) -> dict[str, CellDetail]:
    return listing.cell_details(
        cli.store, branch, listing.turn_rows(cli.index, branch, nodes), nodes, render.progress(cli, "Reading")
    )


_STYLES = {"wrote": ("● ", "green"), "read": ("○ ", "dim"), "failed": ("✗ ", "red"), "named": ("? ", "yellow")}
_FILES = 8
_WIDEST = 100
_LABEL = 12
_NARROW = 66


def _why_lines(
    cli: Invocation, branch: Branch, history: FileHistory, steps: Sequence[FileStep],
    details: Mapping[str, CellDetail], *, full: bool,
) -> Iterator[str]:  # fmt: skip
    """Yield what happened to the file, step by step."""
    name = turn_pieces.path(cli, branch.state.project, history.file, cli.width - 28)
    counts = f"{text.counted(history.count('wrote'), 'write')}, {text.counted(history.readers, 'read')}"
    yield f"{cli.paint('bold', name)}  ·  {counts}"
    yield from session_heading(cli, branch)
    yield ""
    if len(steps) < len(history.steps):
        earlier = text.counted(len(history.steps) - len(steps), "earlier step")
        yield cli.paint("dim", f"({earlier} not shown: -n shows more)")
    lines = cells_page.CellLines(cli, branch.state.project, [step.node for step in steps], details)
    clock = text.Clock(cli.now, (canonical.seconds(detail.time) for detail in details.values()))
    for step in steps:
        detail = details.get(step.node.address, NO_DETAIL)
        mark, style = _STYLES[step.what]
        start = cli.paint(style, mark) + lines.start(step.node)
        end = clock(canonical.seconds(detail.time)) if cli.width >= _NARROW else ""
        yield text.spread(start, _about(step, detail), cli.paint("dim", end), cli.width)
        if step.what == "wrote":
            yield from _around(cli, branch, step, lines.address + 4, full=full)
    if not history.count("wrote"):
        yield "No tool wrote this file here."
    if history.count("named") or any(step.others for step in steps):
        yield ""
        untraced = "Shell commands, searches and subagents are not traced;"
        yield from paragraph(cli, f"{untraced} ? marks commands that mention the file.", "dim")


def _about(step: FileStep, detail: CellDetail) -> str:
    """Return what a write changed and what was asked for; of another step its outcome or its command."""
    if step.what == "wrote":
        lines = [line for change in detail.changes for line in change.diff]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        prompt = text.clean(detail.prompt.strip(), 200)
        counts = [f"+{added} −{removed}"] if added or removed else []
        heads = [text.clean(line, 200) for line in lines[:1] if line[:1] not in "+-@ "]
        return "  ".join([*heads, *counts, *([f"“{prompt}”"] if prompt else [])])
    if step.what == "failed":
        return cells_page.outcome(step.node, detail)
    return "before any write" if step.what == "read" else text.clean(detail.about or step.node.use.command)


def _around(cli: Invocation, branch: Branch, step: FileStep, indent: int, *, full: bool) -> Iterator[str]:
    """Yield what led to a write, and who read the file then."""
    columns = min(cli.width - indent - _LABEL, _WIDEST)
    operations = Counter(cells_page.short_operation(node) for node in step.others)

    def files(reads: Sequence[FileRead]) -> list[str]:
        last: dict[str, str] = {}
        for read in reads:
            place = f" ({read.node.address}{', by ' if read.writer else ''}{read.writer})"
            last.pop(read.file, None)
            last[read.file] = turn_pieces.path(cli, branch.state.project, read.file, columns - len(place)) + place
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
            " " * indent + cli.paint("dim", label.ljust(_LABEL)), text.fold(shown, columns, "  ")
        )


def _step_json(step: FileStep, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    detail = details.get(step.node.address, NO_DETAIL)
    return {
        "what": step.what,
        "cell": cells_page.cell_json(step.node, details),
        "prompt": detail.prompt,
        "changes": [{"path": change.path, "diff": list(change.diff)} for change in detail.changes],
        "reads": [_read_json(read) for read in step.reads],
        "behind": [_read_json(read) for read in step.behind],
        "others": [_place_json(node) for node in step.others],
        "readers": [_place_json(node) for node in step.readers],
    }


def _read_json(read: FileRead) -> dict[str, Any]:
    return {**_place_json(read.node), "file": read.file, "writer": read.writer or None}


def _place_json(node: Node) -> dict[str, Any]:
    return {"cell_id": node.cell.id, "address": node.address, "operation": node.cell.operation}
