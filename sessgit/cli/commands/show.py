"""`sessgit show`: a conversation, a turn or a cell."""

from __future__ import annotations

from itertools import chain

from sessgit.cli import blocks, frame, render, session_argument, text
from sessgit.cli.blocks import Column
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import ANY_ADDRESS, option
from sessgit.cli.pages import cell_chain
from sessgit.cli.pages import show as page
from sessgit.cli.pages.turn_pieces import ShowOptions
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import cell_graph, cells, resolve, session_files, show
from sessgit.history.resolve import ResolvedTarget


@frame.command("show", reads=True, excludes={"--raw": "--json --deps", "--kept": "--raw --deps"})
def run(
    here: Invocation,
    address: str = ANY_ADDRESS,
    thinking: bool = option("--thinking", "Show the model's thinking in full."),
    full: bool = option("--full", "Show everything in full."),
    raw: bool = option("--raw", "Print the recorded transcript lines."),
    kept: str | None = option("--kept [FILE]", "List the files that an import kept, or print one."),
    deps: bool = option("--deps", "Of a cell: also show the cells it depends on, and those that depend on it."),
) -> Answer | None:
    """Show a conversation, a turn or a cell.

    For a conversation, prints a summary: what it is about, what it used, its files and its relatives. For a turn (@7),
    what was said and done, with long results folded. For a cell (@7.3, or its id), everything. @0 is the start. --raw
    prints the transcript lines of the turn (including those before its prompt), of the cell, or of all turns, byte for
    byte if the output is a pipe.
    """
    target = session_argument.target_or_cell_id(here, address)
    if deps and not target.cell:
        name = here.ident(target.branch.name)
        raise UsageError("--deps needs a cell.", f"`sessgit cells {name}` lists the cells.")
    if raw:
        _print_lines(here, target)
        return None
    if kept is not None:
        return _kept(here, target, kept)
    context, branch, prices = here.context, target.branch, here.settings.prices
    detail = ShowOptions(thinking, full)
    if target.turn is None:
        with render.progress(here, "Reading", unit="turns") as progress:
            if here.json:
                return Answer({"session": show.session_document(context, branch, prices, progress)})
            return Answer({}, page.card(here, show.session_card(context, branch, progress), detail))
    if target.turn == 0 and not target.cell:
        start = show.show_start(context, branch)
        return Answer(lambda: {"turn": show.start_document(start)}, page.start(here, start))
    if not target.cell:
        turn = show.show_turn(context, branch, target.turn)
        return Answer(lambda: {"turn": show.turn_document(turn, prices)}, page.turn(here, turn, detail))
    cell = show.show_cell(context, branch, target.turn, target.cell)
    document = show.cell_document(cell, prices) if here.json else {}
    if not deps:
        return Answer({"cell": document}, page.cell(here, cell))
    own = f"{target.turn}.{cell.ordinal}"
    with render.progress(here, "Reading", unit="turns") as progress:
        whole = cell_graph.read_graph(context, branch, progress=progress)
    if here.json:
        return Answer({"cell": document | {"in_session": cell_chain.related_json(whole, own)}})
    others = cell_chain.related_nodes(whole, own)
    known = cells.cell_details(here.store, branch, cells.turn_rows(here.index, branch, others), others)
    related = cell_chain.related(here, branch, whole, own, known)
    return Answer({}, chain(page.cell(here, cell), related), notes=map("({})".format, whole.damage))


def _kept(here: Invocation, target: ResolvedTarget, path: str) -> Answer | None:
    store, tip = here.store, target.branch.tip
    files = session_files.kept_files(store, tip)
    name = here.ident(target.branch.name)
    if path and path not in files:
        raise NotFoundError(f"{name} keeps no file {path}", f"`sessgit show {name} --kept` lists its files.")
    if path and not here.json:
        data = store.repo.blob(files[path][0])
        if here.terminal.shows_output:
            render.raw(here, [data])
        else:
            render.data([data])
        return None
    sizes = {one: size for one, size in session_files.file_sizes(store, tip).items() if path in ("", one)}
    document: dict[str, object] = {"kept": [{"path": one, "bytes": size} for one, size in sizes.items()]}
    if path:
        document["text"] = store.repo.blob(files[path][0]).decode("utf-8", "replace")
    rows = [(text.size(size), text.clean(one, 300)) for one, size in sizes.items()]
    lines = blocks.table(here, (Column(right=True), Column()), rows, [(1, 20)])
    return Answer(document, lines, notes=[] if sizes else [f"{name} keeps no files of another system."])


def _print_lines(here: Invocation, target: ResolvedTarget) -> None:
    if target.turn is None:
        render.raw(here, show.raw_session(here.store, target.branch))
    elif target.cell:
        cell = show.show_cell(here.context, target.branch, target.turn, target.cell)
        render.raw(here, show.raw_cell(here.store, cell))
    elif target.turn:
        resolve.row_of(here.index, target.branch, target.turn)
        render.raw(here, show.raw_turn(here.store, target.branch, target.turn))
