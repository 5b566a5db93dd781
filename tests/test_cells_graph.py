"""The graph of a whole session against a plain model of it: cells depend on any earlier one, of whatever turn."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit import agents
from sessgit.agents.values import Use
from sessgit.errors import NotFoundError
from sessgit.history import cell_graph as graph
from sessgit.history.cell_graph import KINDS, Graph
from sessgit.history.cells import TurnCells, cell_records
from sessgit.model import dependency_graph as graphs
from sessgit.model.conversation.turn import Cell

FILES = ("/a", "/b")
USES = {"read": Use({"/a": "r"}), "write": Use({"/a": "w"}), "edit": Use({"/b": "rw"}), "read b": Use({"/b": "r"}),
        "move": Use({"/a": "rw", "/b": "w"}), "edit both": Use({"/b": "rw", "/a": "rw"}),
        "run": Use(command="ls"), "think": Use()}  # fmt: skip


@dataclass
class Program:
    """Turns of cells: what each depends on is chosen among the names of all cells before it."""

    turns: list[list[Cell]] = field(default_factory=list)

    @property
    def given(self) -> list[TurnCells]:
        agent = agents.of_programs()
        uses = [{n: USES[cell.operation] for n, cell in enumerate(cells, start=1)} for cells in self.turns]
        return [
            TurnCells(number, cell_records(agent, cells, own), "/")
            for number, (cells, own) in enumerate(zip(self.turns, uses, strict=True), start=1)
        ]

    @property
    def flat(self) -> list[tuple[str, Cell]]:
        return [(f"{t}.{o}", cell) for t, cells in enumerate(self.turns, start=1) for o, cell in enumerate(cells, 1)]


@st.composite
def programs(draw: st.DrawFn, *, twice: bool = False, unknown: bool = False) -> Program:
    """`twice` gives the same id to cells of several turns, `unknown` makes some depend on what is nowhere before."""
    found, names = Program(), list[str]()
    for number in range(draw(st.integers(1, 5))):
        turn: list[Cell] = []
        for place in range(draw(st.integers(0, 4))):
            some = [*names, *([f"x{number}", "x9", f"c{number}.{place}"] if unknown else [])]
            depends = draw(st.lists(st.sampled_from(some), max_size=3)) if some else []
            ok = draw(st.sampled_from([True, True, True, False, None]))
            name = f"c{place}" if twice else f"c{number}.{place}"
            kind = draw(st.sampled_from(["repl", "tool", "llm_call"]))
            turn.append(Cell(name, kind, draw(st.sampled_from(list(USES))), (1,), tuple(depends), ok))
            names.append(name)
        found.turns.append(turn)
    return found


def plain(program: Program) -> dict[str, dict[str, list[str]]]:
    """The edges by kind, found the slow way: each question looks through all that is before."""
    edges: dict[str, dict[str, list[str]]] = {kind: {} for kind in KINDS}
    cells = program.flat
    for number, (address, cell) in enumerate(cells):
        before = cells[:number]
        nearest = [next((a for a, other in reversed(before) if other.id == name), None) for name in cell.depends]
        causal = [other for other in dict.fromkeys(nearest) if other is not None]
        needed = {other for kind in ("causal", "follows") for some in edges[kind].values() for other in some}
        if causal:
            edges["causal"][address] = causal
        elif follows := [a for a, _ in before if a not in needed]:
            edges["follows"][address] = follows
        wrote = list[str]()
        for file in USES[cell.operation].reads if cell.ok else ():
            wrote += [a for a, other in before if file in USES[other.operation].writes and other.ok][-1:]
        if wrote:
            edges["data"][address] = list(dict.fromkeys(wrote))
    return edges


def edges(found: Graph) -> dict[str, dict[str, list[str]]]:
    return {kind: {address: list(others) for address, others in found.edges[kind].items()} for kind in KINDS}


def closure(needs: dict[str, list[str]], start: str) -> set[str]:
    found = {start}
    while more := {other for key in found for other in needs[key]} - found:
        found |= more
    return found - {start}


@given(programs())
def test_the_edges_are_those_of_the_plain_model(program: Program) -> None:
    found = graph.build_graph(program.given)
    assert (edges(found), found.damage) == (plain(program), [])
    assert [(address, node.cell) for address, node in found.nodes.items()] == program.flat


@given(programs(), st.data())
def test_order_chain_roots_and_leaves(program: Program, data: st.DataObject) -> None:
    found, model = graph.build_graph(program.given), plain(program)
    names = [address for address, _ in program.flat]
    needs = {a: list(dict.fromkeys(o for kind in KINDS for o in model[kind].get(a, ()))) for a in names}
    near = {a: [o for kind in ("causal", "data") for o in model[kind].get(a, ())] for a in names}
    assert found.needs() == needs
    ids = {address: cell.id for address, cell in program.flat}
    document = graph.index_document("s", found)
    assert document["execution_order"] == [ids[name] for name in names]
    assert document["roots"] == [ids[name] for name in names if not needs[name]]
    assert document["leaves"] == [ids[name] for name in names if not any(name in some for some in needs.values())]
    assert {own: cell["dependencies"] for own, cell in document["cells"].items()} == {
        ids[own]: [ids[other] for other in some] for own, some in needs.items()
    }
    if not names:
        return
    start = data.draw(st.sampled_from(names))
    up, down = (graph.cell_chain(found, start, down=down) for down in (False, True))
    assert list(up.cells) == [name for name in names if name in closure(needs, start)]
    assert up.near == closure(near, start)
    assert list(down.cells) == [name for name in names if start in closure(needs, name)]
    assert down.near == {name for name in names if start in closure(near, name)}


@given(programs(twice=True))
def test_of_several_cells_with_one_id_the_nearest_earlier_one_is_meant(program: Program) -> None:
    """Each turn has it once: that is no damage."""
    found = graph.build_graph(program.given)
    assert (edges(found), found.damage) == (plain(program), [])


@given(programs(unknown=True))
def test_damage_is_told_of_what_is_nowhere_before(program: Program) -> None:
    """The edges are those to what is there."""
    found, seen, wrong = graph.build_graph(program.given), set[str](), set[int]()
    for number, cells in enumerate(program.turns, start=1):
        for cell in cells:
            wrong |= set() if set(cell.depends) <= seen else {number}
            seen.add(cell.id)
    assert edges(found) == plain(program)
    assert [one.partition(":")[0] for one in found.damage] == [f"turn {number}" for number in sorted(wrong)]


def cell(name: str, *depends: str) -> Cell:
    return Cell(name, "repl", "think", (1,), depends, True)


@pytest.mark.parametrize(
    ("turns", "damage"),
    [
        ([[cell("a", "b")], [cell("b", "a")]], ["turn 1: 1.1 depends on b, which is not before it"]),
        ([[cell("a")], [cell("b", "b")]], ["turn 2: its cells depend on each other in a circle: 2.1 → 2.1"]),
        ([[cell("a")], [cell("b", "a", "c"), cell("c")]], ["turn 2: some of its cells depend on later ones"]),
        ([[cell("b")], [cell("a", "b"), cell("b")]], []),
        ([[cell("a")], [cell("b", "a"), cell("b", "a")]], ["turn 2: several of its cells have the same id"]),
        ([[cell("a")], [cell("a", "a")], [cell("a", "a")]], []),
    ],
)
def test_what_cannot_be(turns: list[list[Cell]], damage: list[str]) -> None:
    program = Program(turns)
    found = graph.build_graph(program.given)
    assert found.damage == damage
    assert edges(found) == plain(program)


def test_what_is_no_address() -> None:
    found = graph.build_graph(Program([[cell("a"), cell("b", "a")], [], [cell("c")]]).given)
    assert list(found.nodes) == ["1.1", "1.2", "3.1"]
    assert (len(found.nodes), "3.1" in found.nodes, 3 in found.nodes) == (3, True, False)
    odd = ["", "1", "1.", ".1", "1.0", "1.3", "2.1", "3.2", "4.1", "01.1", "1.01", "1.-1", "-1.1", "1.²", "1.1.1"]
    for address in [*odd, "1." + "9" * 5000]:
        assert address not in found.nodes
        with pytest.raises(NotFoundError):
            graph.cell_chain(found, address, down=False)


# Work


def test_long_chains() -> None:
    """Of 10,000 cells, each of which depends on one of the turn before it and on one long past."""
    many = 1_000
    turns = [
        [
            cell(f"c{t}.{n}", *([f"c{t - 1}.{n}", f"c{t // 2}.{n}"] if t else []))
            for n in range(10)
        ]
        for t in range(many)
    ]  # fmt: skip
    found = graph.build_graph(Program(turns).given)
    chain = graph.cell_chain(found, f"{many}.10", down=False)
    assert len(chain.cells) == many - 1 + 9  # the first cell without a dependency follows those before it
    assert len(graph.cell_chain(found, "1.10", down=True).cells) == many - 1
    assert graphs.topological_order(found.needs()) == list(found.nodes)
