"""The chain of a cell: as a list in execution order, as a drawing, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import cell_rails, cells
from sessgit.cli.pages.cells import Lines
from sessgit.cli.render import Paint
from sessgit.history.cells.chains import CellChain
from sessgit.history.cells.details import NO_DETAIL, CellDetail
from sessgit.history.cells.graph import KINDS, Graph, Node
from sessgit.model import dependency_graph
from sessgit.store import layout
from sessgit.store.sqlite.rows import Branch

_RUN, _KEPT = 6, 2
"""A run of more cells that have one before and one after them is folded in a drawing, but for so many at its ends."""
_RELATED = 12
_HOW = (
    ("Depends on", {"follows": "came right before it", "data": "wrote the file"}),
    ("Used by", {"follows": "came right after it", "data": "read or changed the file"}),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of a chain that is shown, in the order of execution: the cells next to the one that was asked for, at
    most so many; and the others, which are only counted."""

    chain: CellChain
    near: list[str]
    """Shown one by one."""
    folded: frozenset[str]


def shown(chain: CellChain, limit: int | None, *, every: bool) -> Shown:
    """Those of a chain that a person sees; `every` shows also what merely came before, or after."""
    near = [address for address in chain.cells if every or address in chain.near]
    if limit is not None:
        near = near[:limit] if chain.down else near[max(0, len(near) - limit) :]
    return Shown(chain, near, frozenset(chain.cells) - frozenset(near))


def nodes(found: Shown) -> list[Node]:
    """The cells of which details are wanted."""
    every = found.chain.graph.nodes
    return [*(every[address] for address in found.near), found.chain.start]


def page(here: Invocation, branch: Branch, found: Shown, details: Mapping[str, CellDetail]) -> Iterator[str]:
    """The cells of the chain, a line for each, the one that was asked for at its end or, downwards, its beginning."""
    every, paint, start = found.chain.graph.nodes, Paint(here.colour), found.chain.start
    lines = Lines(here, branch.state.project, nodes(found), details)

    def line(address: str, mark: str) -> str:
        note = written(found.chain.graph, address)
        return f"{paint('green', mark)} {lines.line(every[address], here.width - 2, note=note)}"

    yield _header(here, branch, found.chain)
    yield ""
    if found.chain.down:
        yield line(start.address, "●")
    for is_folded, some in groupby(found.chain.cells, key=found.folded.__contains__):
        run = list(some)
        yield from [paint("dim", _folded(found.chain, run))] if is_folded else [line(one, " ") for one in run]
    if not found.chain.down:
        yield line(start.address, "●")


def drawing(here: Invocation, branch: Branch, found: Shown, details: Mapping[str, CellDetail]) -> Iterator[str]:
    """The same with rails between what depends on each other, the last cell first, as `git log --graph` draws."""
    paint, chain = Paint(here.colour), found.chain
    every = chain.graph.nodes
    lines = Lines(here, branch.state.project, nodes(found), details)
    kept = {*found.near, chain.start.address}
    needs = {
        address: [other for other in wanted if other in kept]
        for address, wanted in chain.graph.needs(*(("causal", "data") if not _widened(found) else ())).items()
        if address in kept
    }
    needs, runs = _without_runs(needs)
    yield _header(here, branch, chain)
    yield ""
    if chain.down and found.folded:
        yield paint("dim", _folded(chain, _in_order(found)))
    # Where each needs the one before alone there is no line between them that would show it.
    is_plain = all(needs[later] == [before] for before, later in pairwise(needs))
    for drawn, address, left_out in cell_rails.draw(needs):
        rail = f"{drawn}  "
        room = here.width - text.width(rail)
        if address in runs:
            run = runs[address]
            told = text.cut(f"⋮ {text.counted(len(run), 'cell')}, {run[0]} – {run[-1]}", room)
            yield paint("green", rail.replace("●", "┊")) + paint("dim", told)
        elif address:
            notes = [written(chain.graph, address), f"also after {', '.join(left_out)}" if left_out else ""]
            note = "; ".join(note for note in notes if note)
            mark = rail if address == chain.start.address else rail.replace("●", "○")
            yield paint("green", mark) + lines.line(every[address], room, note=note)
            if is_plain and needs[address] and runs.keys().isdisjoint(needs[address]):
                yield paint("green", "│")
        else:
            yield paint("green", rail)
    if not chain.down and found.folded:
        yield paint("dim", _folded(chain, _in_order(found)))


def as_json(branch: Branch, chain: CellChain, details: Mapping[str, CellDetail]) -> dict[str, Any]:
    """Return what `deps --json` prints: the whole chain, with the edges inside of it."""
    kept = {*chain.cells, chain.start.address}
    needs = chain.graph.needs()

    def one(address: str) -> dict[str, Any]:
        known = cells.cell_json(chain.graph.nodes[address], details.get(address, NO_DETAIL))
        edges = [cells.edge_json(chain.graph, address, other) for other in needs[address] if other in kept]
        return {**known, "depends_on": edges}

    return {
        "session_id": layout.session_of(branch.name),
        "branch": branch.name,
        "direction": "down" if chain.down else "up",
        "cell": one(chain.start.address),
        "chain": [{**one(address), "near": address in chain.near} for address in chain.cells],
        "damage": chain.graph.damage,
    }


def related(
    here: Invocation, branch: Branch, found: Graph, address: str, details: Mapping[str, CellDetail]
) -> Iterator[str]:
    """What a cell depends on, and what depends on it, and how."""
    paint = Paint(here.colour)
    for (heading, how), others in zip(_HOW, _beside(found, address), strict=True):
        yield ""
        yield paint("bold", heading if others else f"{heading} nothing")
        some = [found.nodes[other] for other in others[:_RELATED]]
        lines = Lines(here, branch.state.project, some, details)
        for node in some:
            kinds = cells.edge_json(found, address, node.address)["kinds"]
            note = ", ".join(how[kind] for kind in kinds if kind in how)
            yield f"  {lines.line(node, here.width - 2, note=note)}"
        if len(others) > len(some):
            yield paint("dim", f"  … and {text.counted(len(others) - len(some), 'more cell')}")


def beside(found: Graph, address: str) -> list[Node]:
    """The cells that `related` shows."""
    return [found.nodes[other] for others in _beside(found, address) for other in others[:_RELATED]]


def edges(found: Graph, address: str) -> dict[str, Any]:
    """The same as JSON, whole."""
    needed, needing = _beside(found, address)
    return {
        "dependencies": [cells.edge_json(found, address, other) for other in needed],
        "dependents": [cells.edge_json(found, address, other) for other in needing],
    }


def _beside(found: Graph, address: str) -> tuple[list[str], list[str]]:
    """The cells that a cell depends on directly, and those that depend on it; none where it is not stored."""
    if address not in found.nodes:
        return [], []
    own = found.nodes.place(address)
    needed = dict.fromkeys(other for kind in KINDS for other in found.edges[kind].places.get(own, ()))
    every = (found.edges[kind].places.items() for kind in KINDS)
    needing = {place for kind in every for place, wanted in kind if own in wanted}
    return [found.nodes.address(place) for place in needed], [found.nodes.address(place) for place in sorted(needing)]


def written(found: Graph, address: str) -> str:
    """`as 3.4 wrote it`, of a cell that read or edited what another one had written."""
    return "".join(f"as {other} wrote it" for other in found.edges["data"].get(address, ())[:1])


def _widened(found: Shown) -> bool:
    return any(address not in found.chain.near for address in found.near)


def _in_order(found: Shown) -> list[str]:
    return [address for address in found.chain.cells if address in found.folded]


def _header(here: Invocation, branch: Branch, chain: CellChain) -> str:
    many, own = text.counted(len(chain.cells), "cell"), chain.start.address
    verb = "depends" if len(chain.cells) == 1 else "depend"
    said = f"{many} {verb} on {own}" if chain.down else f"{own} depends on {many}"
    return cells.header(here, branch, f"  ·  {said}")


def _folded(chain: CellChain, run: Sequence[str]) -> str:
    """How many cells are not shown, and of which turns."""
    turns = [int(address.partition(".")[0]) for address in run]
    first, last = min(turns), max(turns)
    where = f"turn {first}" if first == last else f"turns {first}–{last}"
    near = sum(address in chain.near for address in run)
    told = f", {near} of them in the chain" if near else ""
    side = "after" if chain.down else "before"
    return f"⋮ {text.counted(len(run), 'cell')} of {where} {side} it{told}"


def _without_runs(needs: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The graph with long runs of cells that have one before and one after them each made one, and what these hold."""
    after = dependency_graph.dependents(needs)
    plain = [len(needs[key]) == 1 and len(after[key]) == 1 for key in needs]
    keys = list(needs)
    stands_for: dict[str, str] = {}
    runs: dict[str, list[str]] = {}
    used = set[str]()
    is_plain = dict(zip(keys, plain, strict=True))
    for key in keys:
        run: list[str] = []
        at = key
        while at not in used and is_plain[at]:
            used.add(at)
            run.append(at)
            at = after[at][0]
        if len(run) > _RUN:
            inner = run[_KEPT:-_KEPT]
            runs[inner[0]] = inner
            stands_for |= dict.fromkeys(inner, inner[0])
    kept = {
        key: [stands_for.get(other, other) for other in needs[key]] for key in keys if stands_for.get(key, key) == key
    }
    return kept, runs
