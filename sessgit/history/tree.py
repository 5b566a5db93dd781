"""Families of conversations as a tree: where each left another, side branches, and merges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, Literal

from sessgit.errors import SessgitError
from sessgit.history import turn_log
from sessgit.history.ls import is_begun
from sessgit.history.resolve import outlines_in_project
from sessgit.history.turn_log import Prices, families, grouped, list_merges
from sessgit.model import prices as price_list
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count
from sessgit.store import layout
from sessgit.store.index import Branch, ForkPlace, Index, Outline, Row

Kind = Literal["session", "rewound", "machine"]

_FEW_TURNS = 5
"""Forks with more turns of their own are always drawn."""
_NEWEST_FORKS = 4
_NEWEST_SINGLE = 8
"""The newest quiet forks of a session, and the newest quiet single sessions, that are drawn."""


@frozen
class TreeFilter:
    """Which families to draw: that of `session`, else those with a session of the project at `folder`, else all.

    Families of headless or empty sessions only are drawn with `everything`, those of archived ones only with
    `archived`. `limit` is the number of families, `live` the agent's ids of the sessions that are open in a client.
    With `fold` quiet sessions are only counted.
    """

    session: str = ""
    folder: str | None = None
    everything: bool = False
    archived: bool = False
    limit: int | None = None
    live: frozenset[str] = frozenset()
    fold: bool = True


@frozen
class TreeNode:
    """A session or a side branch, and its own turns.

    `parent` is the branch above it, ``""`` for the first of a family; it left that after turn `turn`, or at `cell` of
    the next, or is its child (`turn` 0). A turn that was cut for a fork at a cell is not its own. `own_cost` leaves out
    turns that were merged from another session; it is None if a price is unknown.
    `first_words` is the first line of its first own prompt.
    """

    branch: Branch
    parent: str
    turn: int = 0
    cell: str = ""
    own_turns: int = 0
    own_cost: float | None = None
    first_words: str = ""
    merged: tuple[tuple[str, int], ...] = ()
    """The sessions that it was merged into, each with the turn after which it was."""

    @property
    def title(self) -> str:
        """The session's name, else the client's title, which may be ``""``; of a side branch, what it is."""
        if self.kind == "session":
            return self.branch.state.name or self.branch.state.title
        kind = "left behind" if self.kind == "rewound" else "another version"
        return f"{kind}: {format_count(self.own_turns, 'turn')}"

    @property
    def is_child(self) -> bool:
        """Whether it is drawn below its parent, of which it is no fork."""
        return bool(self.parent) and self.kind == "session" and self.branch.state.origin is None

    @property
    def kind(self) -> Kind:
        """`rewound` for a branch that a rewind left, `machine` for another version of a session, else `session`."""
        name = self.branch.name
        return (
            "rewound" if layout.is_rewound_branch(name) else "machine" if layout.is_other_version(name) else "session"
        )


@frozen
class FoldedForks:
    """A number of quiet forks of the session `parent`, and the first and the last place at which they left it."""

    parent: str
    count: int
    first: str
    last: str


@frozen
class TreeFamily:
    """The nodes that are drawn, each before those below it, in the order of their turns; and the folds."""

    nodes: list[TreeNode]
    folds: dict[str, FoldedForks] = field(default_factory=dict)

    @property
    def root(self) -> TreeNode:
        """The first session of the family."""
        return self.nodes[0]

    @property
    def sessions(self) -> int:
        """The number of its sessions, folded ones included."""
        drawn = sum(node.kind == "session" for node in self.nodes)
        return drawn + sum(fold.count for fold in self.folds.values())


@frozen
class Forest:
    """Families, the newest first. `quiet` is the number of single sessions that are not drawn.

    `matching` and `sessions` count all families that fit and their sessions, those that are not drawn included;
    `others` counts the sessions of all other families, without archived ones.
    """

    families: list[TreeFamily]
    quiet: int
    matching: int
    sessions: int
    others: int


def build_forest(index: Index, choice: TreeFilter, prices: Prices) -> Forest:
    """Return the families to draw; states and turns are read only for nodes that are drawn."""
    outlines = index.outlines()
    chosen = list(_matching_families(outlines, choice))
    sessions = {member.name for family in chosen for member in family}
    quiet = set[str]()
    if choice.fold and not choice.session:
        quiet = _names_to_fold([family[0] for family in chosen if len(family) == 1 and _is_plain(family[0], choice)])
    shown = [family for family in chosen if family[0].name not in quiet][: choice.limit]
    reader = _NodeReader(index, prices, [member.name for family in shown for member in family])
    drawn = [reader.family(family, _foldable_forks(family, reader, choice) if choice.fold else {}) for family in shown]
    others = sum(not outline.archived and outline.name not in sessions for outline in outlines)
    return Forest(drawn, len(quiet), len(chosen), len(sessions), others)


def forest_json(forest: Forest, live: frozenset[str], overrides: Prices) -> dict[str, Any]:
    """Return what `tree --json` prints; `live` are the agent's ids of the sessions that are open in a client."""
    families = [
        {"root": family.root.branch.name, "nodes": [_node_json(node, live, overrides) for node in family.nodes]}
        for family in forest.families
    ]
    return {"families": families}


def _node_json(node: TreeNode, live: frozenset[str], overrides: Prices) -> dict[str, Any]:
    state = node.branch.state
    cost = turn_log.session_cost(state, overrides)
    left = (bool(node.parent) and not node.is_child) or state.origin is not None
    return {
        "id": node.branch.name,
        "parent": node.parent or None,
        "child_of": state.unified.metadata.parent,
        "role": state.unified.metadata.role,
        "fork_turn": node.turn if left else None,
        "cell": node.cell or None,
        "name": state.name,
        "title": state.title,
        "turns": state.turns,
        "own_turns": node.own_turns,
        "updated": state.updated or None,
        "cost_usd": turn_log.rounded_cost(cost),
        "own_cost_usd": turn_log.rounded_cost(node.own_cost),
        "first_words": node.first_words,
        "kind": node.kind,
        "rewound_of": node.parent if node.kind == "rewound" else None,
        "merged_into": [{"session_id": session, "turn": turn} for session, turn in node.merged],
        "archived": node.branch.archived,
        "live": node.kind == "session" and state.agent_id in live,
    }


def _matching_families(outlines: Sequence[Outline], choice: TreeFilter) -> Iterator[list[Outline]]:
    """Yield the families to draw, each with its first session first and then the newest first."""
    near = outlines if choice.folder is None else outlines_in_project(outlines, choice.folder)
    near = [one for one in near if choice.archived or not one.archived]
    begun = {one.name for one in near if choice.everything or (not one.headless and is_begun(one))}
    listed = {choice.session} if choice.session else begun
    position = {outline.name: number for number, outline in enumerate(outlines)}
    for (root, _), *members in families(outlines):
        if listed & {root.name, *(member.name for member, _ in members)}:
            yield [root, *sorted((member for member, _ in members), key=lambda member: position[member.name])]


def _is_plain(outline: Outline, choice: TreeFilter) -> bool:
    """Return whether it has no name and no label from the user, and no client has it open."""
    return not outline.authored_name and outline.labels in ("", "[]") and outline.agent_id not in choice.live


def _names_to_fold(quiet: Sequence[Outline], drawn: int = _NEWEST_SINGLE) -> set[str]:
    """Return the names of all but the newest; of none if a single one would be left."""
    rest = quiet[drawn:]
    return {outline.name for outline in rest} if len(rest) > 1 else set()


def _foldable_forks(family: Sequence[Outline], reader: _NodeReader, choice: TreeFilter) -> dict[str, set[str]]:
    """Return for each session the quiet forks of it that are not drawn."""
    forks, parents = grouped(family[1:], "parent"), grouped(family, "child_of")

    def is_quiet(fork: Outline) -> bool:
        left = reader.fork_places.get(fork.name)
        own = fork.turns - _count_shared_turns(left) if left else fork.turns
        kept = fork.name in forks or fork.name in parents or fork.name in reader.merged or fork.name == choice.session
        return not kept and own <= _FEW_TURNS and _is_plain(fork, choice)

    folds = {parent: _names_to_fold([f for f in forks[parent] if is_quiet(f)], _NEWEST_FORKS) for parent in forks}
    return {parent: names for parent, names in folds.items() if names}


def _count_shared_turns(left: ForkPlace) -> int:
    """Return the number of turns that are not the fork's own, with the one that was cut for it."""
    return left.turn + bool(left.cell)


class _NodeReader:
    """Reads the nodes that are drawn."""

    def __init__(self, index: Index, prices: Prices, sessions: Sequence[str]) -> None:
        self.index, self.prices = index, prices
        self.fork_places = index.fork_places(sessions)
        self.merging = index.sessions_with_merges(sessions)
        self.merged: dict[str, set[tuple[str, int]]] = {}
        """By the branch that was merged, what it was merged into and the last turn that was there by then."""
        for branch in index.branches_named(self.merging):
            with suppress(SessgitError):  # merges of a damaged history are not drawn
                for theirs, turn in list_merges(index.open_store(), branch):
                    self.merged.setdefault(theirs, set()).add((branch.name, turn))

    def family(self, family: Sequence[Outline], folds: Mapping[str, set[str]]) -> TreeFamily:
        root, hidden = family[0].name, set[str]().union(*folds.values())
        branches = self.index.branches_named([member.name for member in family if member.name not in hidden])
        nodes = [node for branch in branches for node in self._nodes(branch, root)]
        folded = {}
        for parent, names in folds.items():
            left = sorted((self.fork_places[name] for name in names), key=lambda at: _place_order(at.turn, at.cell))
            folded[parent] = FoldedForks(parent, len(left), left[0].at, left[-1].at)
        return TreeFamily(_nodes_in_order(nodes, root), folded)

    def _nodes(self, branch: Branch, root: str) -> Iterator[TreeNode]:
        """Yield the nodes of a session and its side branches."""
        left = self.fork_places.get(branch.name)
        first = _count_shared_turns(left) + 1 if left else 1
        yield TreeNode(
            branch,
            "" if branch.name == root else left.branch if left else branch.state.unified.metadata.parent or "",
            left.turn if left else 0,
            left.cell if left else "",
            max(0, branch.state.turns - first + 1),
            self._cost(self._own(branch, first))
            if left or branch.name in self.merging
            else turn_log.session_cost(branch.state, self.prices),
            self._words(branch, first),
            tuple(sorted(self.merged.get(branch.name, ()))),
        )
        for other in self.index.branches_named(self.index.side_branches(branch.name)):
            last, count = self.index.left_behind(other.name, branch.name)
            if count:
                at = self.index.fork_place(other)
                cost = self._cost(self._own(other, max(last, _count_shared_turns(at) if at else 0) + 1))
                words = self._words(other, last + 1)
                merged = tuple(sorted(self.merged.get(other.name, ())))
                yield TreeNode(other, branch.name, last, "", count, cost, words, merged)

    def _own(self, branch: Branch, first: int) -> list[Row]:
        """Return the turns that cost something themselves: a merged one cost it in the session it comes from."""
        return [row for row in self.index.turns(branch.name, first) if row.trailer("Event") != "graft"]

    def _words(self, branch: Branch, first: int) -> str:
        row = self.index.turn(branch.name, first)
        return self.index.title(row) if row else ""

    def _cost(self, rows: Sequence[Row]) -> float | None:
        return price_list.token_cost(turn_log.sum_tokens(turn_log.indexed_gists(self.index, rows)), self.prices)


def _nodes_in_order(nodes: Sequence[TreeNode], root: str) -> list[TreeNode]:
    """Return the nodes from the root on, each before those below it, which are in the order in which they left."""
    known = {node.branch.name: node for node in nodes}
    below: dict[str, list[TreeNode]] = {}
    for node in nodes:
        if node.branch.name != root:
            # The side branch that a fork left may be gone; the session never is.
            parent = node.parent if node.parent in known else layout.session_of(node.parent)
            below.setdefault(parent, []).append(replace(node, parent=parent))
    ordered: list[TreeNode] = []
    waiting = [known[root]]
    while waiting:
        ordered.append(waiting.pop())
        forks = below.get(ordered[-1].branch.name, ())
        waiting += sorted(
            forks,
            key=lambda node: (_place_order(node.turn, node.cell), node.branch.state.created, node.branch.name),
            reverse=True,
        )
    return ordered


def _place_order(turn: int, cell: str) -> tuple[int, int]:
    """Return a sort key for a place in the conversation: a cell of the next turn comes after the whole turn."""
    ordinal = cell.rpartition(".")[2]
    return turn, int(ordinal) if ordinal.isascii() and ordinal.isdigit() and len(ordinal) < 16 else 0
