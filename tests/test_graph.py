"""The laws of `model/dependency_graph.py`, and that its work grows with the graph and not faster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.cli import text
from sessgit.errors import DamageError
from sessgit.model import dependency_graph

Needs = dict[str, list[str]]


@st.composite
def dags(draw: st.DrawFn, *, shuffled: bool = True) -> Needs:
    """A graph without a cycle; the order of its keys is any, and some dependencies are no keys of it."""
    count = draw(st.integers(1, 12))
    names = [f"c{number}" for number in range(count)]
    earlier = [st.lists(st.sampled_from([*names[:n], "nobody"]), max_size=4) for n in range(count)]
    needs = {name: draw(some) for name, some in zip(names, earlier, strict=True)}
    keys = draw(st.permutations(names)) if shuffled else names
    return {key: needs[key] for key in keys}


def edges(needs: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    return {(key, other) for key, wanted in needs.items() for other in wanted if other in needs}


def closure(needs: Needs, start: str) -> set[str]:
    """All that a key depends on, found the slow way."""
    found = {start}
    while more := {other for key, other in edges(needs) if key in found} - found:
        found |= more
    return found - {start}


@given(dags())
def test_the_order_respects_each_edge(needs: Needs) -> None:
    order = dependency_graph.topological_order(needs)
    assert sorted(order) == sorted(needs)
    place = {key: number for number, key in enumerate(order)}
    assert all(place[other] < place[key] for key, other in edges(needs))


@given(dags())
def test_of_those_that_are_ready_the_first_goes_first(needs: Needs) -> None:
    keys, done = list(needs), list[str]()
    for key in dependency_graph.topological_order(needs):
        ready = [k for k in keys if k not in done and {o for o in needs[k] if o in needs} <= set(done)]
        assert key == ready[0]
        done.append(key)


@given(dags(shuffled=False))
def test_what_is_in_order_stays_so(needs: Needs) -> None:
    assert dependency_graph.topological_order(needs) == list(needs)


@given(dags())
def test_dependents_are_the_inverse(needs: Needs) -> None:
    after = dependency_graph.dependents(needs)
    assert list(after) == list(needs)
    assert {(other, key) for key, other in edges(after)} == edges(needs)
    assert all(len(set(others)) == len(others) for others in after.values())


@given(dags(), st.data())
def test_what_can_be_reached_is_closed_and_minimal(needs: Needs, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(list(needs)))
    assert dependency_graph.reachable(needs, start) == closure(needs, start)


@given(dags())
def test_without_a_cycle_none_is_found(needs: Needs) -> None:
    assert dependency_graph.find_cycle(needs) == []


@given(dags(), st.data())
def test_an_edge_back_makes_a_cycle_that_is_one(needs: Needs, data: st.DataObject) -> None:
    """From a key to itself, or to one that depends on it."""
    below = data.draw(st.sampled_from(list(needs)))
    above = data.draw(st.sampled_from([below, *(key for key in needs if below in closure(needs, key))]))
    round_trip = {**needs, below: [*needs[below], above]}
    way = dependency_graph.find_cycle(round_trip)
    assert way[0] == way[-1]
    assert len(set(way)) == len(way) - 1
    assert all(other in round_trip[key] for key, other in itertools.pairwise(way))
    with pytest.raises(DamageError, match=" → ".join(way)):
        dependency_graph.topological_order(round_trip)


@given(dags())
def test_unknown_dependencies_are_passed_over(needs: Needs) -> None:
    known = {key: [other for other in wanted if other in needs] for key, wanted in needs.items()}
    assert dependency_graph.topological_order(known) == dependency_graph.topological_order(needs)


def test_nothing() -> None:
    empty: Needs = {}
    assert (dependency_graph.topological_order(empty), dependency_graph.find_cycle(empty)) == ([], [])


def test_no_depth_is_too_deep() -> None:
    needs = {number: [number - 1] if number else [] for number in reversed(range(100_000))}
    assert dependency_graph.topological_order(needs) == list(range(100_000))
    assert dependency_graph.reachable(needs, 99_999) == set(range(99_999))
    needs[0] = [99_999]
    assert len(dependency_graph.find_cycle(needs)) == 100_001


# Work


class Key(int):
    """A number that counts how often it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        Key.looked_up += 1
        return int(self)

    def __eq__(self, other: object) -> bool:
        return int(self) == other


def work(count: int, ask: Callable[[dict[Key, list[Key]]], object], *, backwards: bool) -> int:
    """How many look-ups a question costs on a graph of so many cells, as a conversation has them: each with the one
    before it, every third also with one long past."""
    keys = [Key(number) for number in range(count)]
    needs = {
        key: [*keys[max(0, key - 1) : key], *([keys[key // 2]] if key % 3 == 0 and key > 2 else [])]
        for key in (reversed(keys) if backwards else keys)
    }
    Key.looked_up = 0
    ask(needs)
    return Key.looked_up


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    "ask",
    [
        dependency_graph.topological_order,
        dependency_graph.find_cycle,
        dependency_graph.dependents,
        lambda needs: dependency_graph.reachable(needs, max(needs)),
    ],
)
def test_the_work_grows_with_the_graph(ask: Callable[[dict[Key, list[Key]]], object], backwards: bool) -> None:
    """Ten times the cells are ten times the work; and that is some look-ups for each cell."""
    small, large = (work(count, ask, backwards=backwards) for count in (1_000, 10_000))
    assert large < 11 * small
    assert large < 20 * 10_000


# Drawings


@given(dags(shuffled=False))
def test_a_drawing_has_every_cell_once_and_stays_narrow(needs: Needs) -> None:
    known = {key: [other for other in dict.fromkeys(wanted) if other in needs] for key, wanted in needs.items()}
    drawn = list(text.draw_cells(known))
    assert [key for _, key, _ in drawn if key] == list(reversed(needs))
    assert all(len(line) < 2 * 10 for line, _, _ in drawn)
    assert all(("●" in line) == bool(key) for line, key, _ in drawn)
    assert all(set(left_out) <= set(known.get(key, ())) for _, key, left_out in drawn)


def test_more_edges_than_rails() -> None:
    """Those without a rail are told, and begin anew where they stand."""
    needs = {"a": [], **{f"b{number}": ["a"] for number in range(10)}, "c": [f"b{number}" for number in range(10)]}
    assert [f"{line}  {key}  {left_out}" for line, key, left_out in text.draw_cells(needs)][:5] == [
        "●  c  ['b1', 'b0']",
        "├─┬─┬─┬─┬─┬─┬─╮    []",
        "● │ │ │ │ │ │ │  b9  []",
        "│ ● │ │ │ │ │ │  b8  []",
        "├─╯ │ │ │ │ │ │    []",
    ]


def test_rails_that_meet_and_part() -> None:
    needs = {"1": [], "2": ["1"], "3": ["1"], "4": ["3", "2"], "5": ["4", "2"], "6": ["4", "3"], "7": ["6", "5"]}
    assert (
        "\n".join(f"{line.ljust(6)} {key}".rstrip() for line, key, _ in text.draw_cells(needs))
        == """\
●      7
├─╮
● │    6
├─┼─╮
│ ● │  5
├─┤ │
● │ │  4
╰─┼─┤
│ ●    3
● │    2
╰─┤
●      1"""
    )
