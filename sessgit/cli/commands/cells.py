"""`sessgit cells`, `deps`, `why`: the calls and messages of a conversation, and what they depend on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, Literal

from sessgit.cli import frame, operands, render, text
from sessgit.cli.frame import ADDRESS, CELL_ADDRESS, LIMIT, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import paragraph, session_heading
from sessgit.errors import NotFoundError
from sessgit.history import cell_graph, resolve
from sessgit.history import cells as listing
from sessgit.history.cell_graph import KINDS, CellChain, FileHistory, FileRead, FileStep, Graph
from sessgit.history.cells import NO_DETAIL, CellDetail, CellListing, Node
from sessgit.model import canonical, humanize
from sessgit.model.conversation.content import failure
from sessgit.model.frozen import frozen
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
        whole = read_graph(cli, branch, target.turn)
        document = cell_graph.index_document(target.session, whole)
        damage = [f"({message})" for message in whole.damage]
        return Answer({"index": document}, json.dumps(document, indent=2).split("\n"), damage)
    number = resolve.resolve_target(cli.index, Address(branch.name, turn), cli.where).turn
    most = limit if limit is not None or cli.json else _LISTED
    query = listing.CellFilter(kind or "", operation, number, failed, target.turn, most)
    listed = listing.list_cells(cli.context, branch, query, render.progress(cli, "Looking"))
    known = listing.cell_details(cli.context, branch, listed.nodes, render.progress(cli, "Reading"))
    return Answer(
        lambda: _as_json(branch, listed, known, listing.message_places(cli.context, branch)),
        _cell_lines(cli, branch, listed, known),
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
    the last call that wrote it. Changes that shell commands make to files are not tracked. Prints the _nearest 40 cells
    in the order in which they happened; other cells, and those that merely came before, are counted. --json prints all.
    """
    target = operands.cell(cli, address, "deps")
    branch = target.branch
    whole = read_graph(cli, branch)
    cell = listing.cell_at(cli.context, branch, target.turn or 0, target.cell)
    chain = cell_graph.cell_chain(whole, cell.address, down=down)
    most = None if cli.json else _NEAREST if limit is None and not every else limit
    shown = _nearest(chain, most, every=every or cli.json)
    known = _details(cli, branch, shown.nodes)
    return Answer(
        lambda: _chain_json(branch, chain, known),
        (_chain_drawing if draw else _chain_lines)(cli, branch, shown, known),
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
    whole = read_graph(cli, branch, target.turn)
    path = cell_graph.resolve_file(whole, file, (cli.cwd, branch.state.project))
    story = cell_graph.file_history(whole, path, behind=full or cli.json)
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
            **branch_json(branch),
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
    names = operands.sessions_with_files(cli, paths)
    having = [outline for outline in cli.index.outlines() if outline.name in names]
    return [outline.name for outline in resolve.outlines_in_project(having, cli.cwd) or having]


def _is_current(cli: Invocation, sessions: Sequence[str]) -> bool:
    """Return whether the current session is one of these."""
    try:
        return layout.session_of(resolve.current_branch(cli.index, cli.where)[0]) in sessions
    except NotFoundError:
        return False


def read_graph(cli: Invocation, branch: Branch, end: int | None = None) -> Graph:
    """Return the cells of a branch up to a turn, and what they depend on."""
    return cell_graph.read_graph(cli.context, branch, end, render.progress(cli, "Reading"))


def _details(cli: Invocation, branch: Branch, nodes: Sequence[Node]) -> dict[str, CellDetail]:
    return listing.cell_details(cli.context, branch, nodes, render.progress(cli, "Reading"))


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
    name = text.path(cli, branch.state.project, history.file, cli.width - 28)
    counts = f"{text.counted(history.count('wrote'), 'write')}, {text.counted(history.readers, 'read')}"
    yield f"{cli.paint('bold', name)}  ·  {counts}"
    yield from session_heading(cli, branch)
    yield ""
    if len(steps) < len(history.steps):
        earlier = text.counted(len(history.steps) - len(steps), "earlier step")
        yield cli.paint("dim", f"({earlier} not shown: -n shows more)")
    lines = CellLines(cli, branch.state.project, [step.node for step in steps], details)
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
        return outcome(step.node, detail)
    return "before any write" if step.what == "read" else text.clean(detail.about or step.node.use.command)


def _around(cli: Invocation, branch: Branch, step: FileStep, indent: int, *, full: bool) -> Iterator[str]:
    """Yield what led to a write, and who read the file then."""
    columns = min(cli.width - indent - _LABEL, _WIDEST)
    operations = Counter(_short_operation(node) for node in step.others)

    def files(reads: Sequence[FileRead]) -> list[str]:
        last: dict[str, str] = {}
        for read in reads:
            place = f" ({read.node.address}{', by ' if read.writer else ''}{read.writer})"
            last.pop(read.file, None)
            last[read.file] = text.path(cli, branch.state.project, read.file, columns - len(place)) + place
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
        "cell": cell_json(step.node, details),
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


_ROOMY = 76
"""With fewer columns ids and types are left out: what a cell is about needs the room."""
_ID = len("cell_") + 8
_OPERATION = 14
_TYPE, _LONGEST_TYPE = len("llm_call"), len("verification")


class CellLines:
    """Draws cells one to a line, with columns that fit all of them."""

    def __init__(
        self, cli: Invocation, project: str, nodes: Collection[Node], details: Mapping[str, CellDetail]
    ) -> None:
        self.cli, self.project, self.details = cli, project, details
        self.address = max((len(node.address) for node in nodes), default=0)
        self.type = max([_TYPE, *(min(_LONGEST_TYPE, len(node.cell.type)) for node in nodes)])
        self.operation = max((text.width(_short_operation(node)) for node in nodes), default=0)

    def start(self, node: Node, *, with_id: bool = False) -> str:
        """Return the first columns: the address, the id and type if they are asked for, and the tool."""
        kind = ""
        if with_id:
            ident, kind = text.fit(text.clean(node.cell.id, _ID), _ID), text.clean(node.cell.type, 20)
            kind = f"{ident}  {text.fit(kind, self.type)}  "
        paint, tool = self.cli.paint, text.fit(_short_operation(node), self.operation)
        return f"{paint('yellow', node.address.ljust(self.address))}  {paint('dim', kind)}{paint('cyan', tool)}  "

    def line(self, node: Node, columns: int, *, with_id: bool = False, note: str = "") -> str:
        """Return the cell in so many columns; a note follows what it is about."""
        paint, detail = self.cli.paint, self.details.get(node.address, NO_DETAIL)
        start = self.start(node, with_id=with_id)
        end = "  ".join(filter(None, (outcome(node, detail), text.duration(detail.seconds))))
        end = paint("dim" if node.cell.ok and not detail.exit_code else "red", end)
        room = text.room(start, end, columns)
        note = text.cut(f"  {note}", room // 2) if note else ""
        room = max(1, room - text.width(note))
        if detail.about:
            about = text.subject(self.cli, self.project, detail.about, detail.file, room)
        else:
            tools = text.tools(detail.calls, room - 6) if detail.calls else ""
            about = paint("dim", text.cut(f"calls {tools}", room)) if tools else ""
        return text.spread(start, about + paint("dim", note), end, columns)


def _short_operation(node: Node) -> str:
    """Return the tool, of a long path of names the last one, or the model without its maker's name."""
    operation = text.clean(node.cell.operation, 60)
    is_tool = node.cell.type == "tool"
    short = operation.rpartition("__")[2] if is_tool else operation.removeprefix("claude-")
    return text.cut(short or operation, _OPERATION)


def outcome(node: Node, detail: CellDetail) -> str:
    """`ok`, `failed`, `exit 2`, `no result`; nothing for a message of the client, which is always ok."""
    is_message = node.cell.type == "llm_call" and not node.cell.program
    return failure(node.cell.ok, detail.exit_code) or ("" if is_message else "ok")


def _cell_lines(
    cli: Invocation, branch: Branch, listing: CellListing, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """Yield a line for each cell, oldest first."""
    lines = CellLines(cli, branch.state.project, listing.nodes, details)
    yield from text.session_heading(cli, branch)
    yield ""
    if listing.earlier:
        shown = f"the last {len(listing.nodes)}" if listing.nodes else "none shown"
        yield cli.paint("dim", f"({shown}: -n shows more)")
    for node in listing.nodes:
        yield lines.line(node, cli.width, with_id=cli.width >= _ROOMY)
    if not listing.nodes and not listing.earlier:
        yield "No matching cells." if branch.state.cells else "No cells yet."


def _as_json(
    branch: Branch, listing: CellListing, details: Mapping[str, CellDetail], messages: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Return what `cells --json` prints; `messages` are the places of all messages."""
    numbers = {place: number for number, place in enumerate(messages)}
    return {
        **branch_json(branch),
        "earlier": listing.earlier,
        "cells": [
            {**cell_json(node, details), "message": numbers.get((node.turn, node.ordinal))} for node in listing.nodes
        ],
        "damage": listing.damage,
    }


def branch_json(branch: Branch) -> dict[str, Any]:
    """Return what documents about cells say of the branch that they are in."""
    return {"session_id": branch.session, "branch": branch.name}


def cell_json(node: Node, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return a cell as lists of cells have it."""
    detail = details.get(node.address, NO_DETAIL)
    return {
        **frame.attributes(node, "address", "turn", "ordinal"),
        **frame.attributes(node.cell, "id", "type", "operation", "ok"),
        **frame.attributes(detail, "about", "seconds", "exit_code"),
        "file": detail.file or None,
        "time": detail.time or None,
    }


def _edge_json(graph: Graph, address: str, other: str) -> dict[str, Any]:
    """Return the cell at `other`, which depends on the one at `address` or the other way round, and the edges."""
    first, second = sorted((graph.nodes[address], graph.nodes[other]), key=lambda node: node[:2])
    kinds = [kind for kind in KINDS if first.address in graph.edges[kind].get(second.address, ())]
    written = [file for file in second.use.reads if file in first.use.writes]
    return {
        "cell_id": graph.nodes[other].cell.id,
        "address": other,
        "kinds": kinds,
        "file": written[0] if "data" in kinds else None,
    }


_RELATED = 12
_HOW = (
    ("Depends on", {"follows": "came right before it", "data": "wrote the file"}),
    ("Used by", {"follows": "came right after it", "data": "read or changed the file"}),
)


@frozen
class _ShownChain:
    """The part of a chain that is shown cell by cell, in the order of execution; the others are only counted."""

    chain: CellChain
    addresses: Sequence[str]

    @property
    def nodes(self) -> list[Node]:
        """The cells that are shown, and the one that was asked for."""
        return [*map(self.chain.graph.nodes.__getitem__, self.addresses), self.chain.start]

    @property
    def folded(self) -> list[str]:
        """The cells that are only counted."""
        shown = set(self.addresses)
        return [address for address in self.chain.cells if address not in shown]


def _nearest(chain: CellChain, limit: int | None, *, every: bool) -> _ShownChain:
    """Return the cells _nearest to the start; `every` includes those that merely came before or after it."""
    addresses = [address for address in chain.cells if every or address in chain.near]
    if limit is not None:
        addresses = addresses[:limit] if chain.down else addresses[max(0, len(addresses) - limit) :]
    return _ShownChain(chain, addresses)


def _chain_lines(
    cli: Invocation, branch: Branch, shown: _ShownChain, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """Yield a line for each cell of the chain; the one that was asked for is last, or first if the chain leads down."""
    chain, folded = shown.chain, set(shown.folded)
    lines = CellLines(cli, branch.state.project, shown.nodes, details)

    def line(address: str, mark: str) -> str:
        cell = lines.line(chain.graph.nodes[address], cli.width - 2, note=_writer(chain.graph, address))
        return f"{cli.paint('green', mark)} {cell}"

    body: list[str] = []
    for is_folded, group in groupby(chain.cells, key=folded.__contains__):
        run = list(group)
        body += [_count(cli, chain, run)] if is_folded else [line(address, " ") for address in run]
    start = line(chain.start.address, "●")
    yield from _header(cli, branch, chain)
    yield ""
    yield from [start, *body] if chain.down else [*body, start]


def _chain_drawing(
    cli: Invocation, branch: Branch, shown: _ShownChain, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """Yield the same with rails between cells that depend on each other, the last cell first."""
    paint, chain, start = cli.paint, shown.chain, shown.chain.start.address
    lines = CellLines(cli, branch.state.project, shown.nodes, details)
    drawn, folded = {*shown.addresses, start}, shown.folded
    kinds = ("causal", "data") if chain.near.issuperset(shown.addresses) else ()
    needs = {
        address: [other for other in others if other in drawn]
        for address, others in chain.graph.needs(*kinds).items()
        if address in drawn
    }
    yield from _header(cli, branch, chain)
    yield ""
    if chain.down and folded:
        yield _count(cli, chain, folded)
    # If each cell needs just the one before, no line between them would show it.
    is_plain = all(needs[later] == [before] for before, later in pairwise(needs))
    for drawing_of_rails, address, undrawn in text.draw_cells(needs):
        rail = f"{drawing_of_rails}  "
        room = cli.width - text.width(rail)
        if not address:
            yield paint("green", rail)
        else:
            notes = [_writer(chain.graph, address), f"also after {', '.join(undrawn)}" if undrawn else ""]
            cell = lines.line(chain.graph.nodes[address], room, note="; ".join(filter(None, notes)))
            yield paint("green", rail if address == start else rail.replace("●", "○")) + cell
            if is_plain and needs[address]:
                yield paint("green", "│")
    if not chain.down and folded:
        yield _count(cli, chain, folded)


def _chain_json(branch: Branch, chain: CellChain, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return what `deps --json` prints: the whole chain, with the edges inside of it."""
    inside = {*chain.cells, chain.start.address}
    needs = chain.graph.needs()

    def cell(address: str) -> dict[str, Any]:
        edges = [_edge_json(chain.graph, address, other) for other in needs[address] if other in inside]
        return {**cell_json(chain.graph.nodes[address], details), "depends_on": edges}

    return {
        **branch_json(branch),
        "direction": "down" if chain.down else "up",
        "cell": cell(chain.start.address),
        "chain": [{**cell(address), "near": address in chain.near} for address in chain.cells],
        "damage": chain.graph.damage,
    }


def related(cli: Invocation, branch: Branch, graph: Graph, address: str) -> Iterator[str]:
    """Yield what a cell depends on, and what depends on it, and how."""
    neighbours = _neighbours(graph, address)
    details = _details(cli, branch, [graph.nodes[other] for others in neighbours for other in others[:_RELATED]])
    for (heading, phrases), others in zip(_HOW, neighbours, strict=True):
        yield ""
        yield cli.paint("bold", heading if others else f"{heading} nothing")
        nodes = [graph.nodes[other] for other in others[:_RELATED]]
        lines = CellLines(cli, branch.state.project, nodes, details)
        for node in nodes:
            kinds = _edge_json(graph, address, node.address)["kinds"]
            note = ", ".join(phrases[kind] for kind in kinds if kind in phrases)
            yield f"  {lines.line(node, cli.width - 2, note=note)}"
        if len(others) > _RELATED:
            yield cli.paint("dim", f"  … and {text.counted(len(others) - _RELATED, 'more cell')}")


def related_json(graph: Graph, address: str) -> dict[str, Any]:
    """Return all cells that the cell depends on directly, and all that depend on it."""
    keys = ("dependencies", "dependents")
    return {
        key: [_edge_json(graph, address, other) for other in others]
        for key, others in zip(keys, _neighbours(graph, address), strict=True)
    }


def _neighbours(graph: Graph, address: str) -> tuple[list[str], list[str]]:
    """Return the cells that a cell depends on directly, and those that depend on it; none if it is not stored."""
    if address not in graph.nodes:
        return [], []
    needed = dict.fromkeys(other for kind in KINDS for other in graph.edges[kind].get(address, ()))
    needing = {other for kind in KINDS for other, needs in graph.edges[kind].items() if address in needs}
    return list(needed), [other for other in graph.nodes if other in needing]


def _writer(graph: Graph, address: str) -> str:
    """`as 3.4 wrote it`, if the cell read or edited what another one had written."""
    return "".join(f"as {writer} wrote it" for writer in graph.edges["data"].get(address, ()))


def _header(cli: Invocation, branch: Branch, chain: CellChain) -> Iterator[str]:
    count, own = text.counted(len(chain.cells), "cell"), chain.start.address
    verb = "depends" if len(chain.cells) == 1 else "depend"
    fact = f"{count} {verb} on {own}" if chain.down else f"{own} depends on {count}"
    return text.session_heading(cli, branch, fact)


def _count(cli: Invocation, chain: CellChain, run: Sequence[str]) -> str:
    """Return how many cells are not shown, and of which turns."""
    turns = [int(address.partition(".")[0]) for address in run]
    first, last = min(turns), max(turns)
    where = f"turn {first}" if first == last else f"turns {first}–{last}"
    near = sum(address in chain.near for address in run)
    side = "after" if chain.down else "before"
    count = f"⋮ {text.counted(len(run), 'cell')} of {where} {side} it"
    return cli.paint("dim", f"{count}, {near} of them in the chain" if near else count)
