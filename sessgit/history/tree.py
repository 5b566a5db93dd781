"""Families as they are drawn: what left what and where, side branches, what was merged into what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from sessgit.errors import SessgitError
from sessgit.history import views
from sessgit.history.merge_history import list_merges
from sessgit.history.resolve import outlines_in_project
from sessgit.history.views import Prices
from sessgit.model import prices as price_list
from sessgit.model.conversation.turn import Tokens, add_by_model
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite import ancestry
from sessgit.store.sqlite.ancestry import ForkPlace
from sessgit.store.sqlite.rows import Branch, Outline, Row

Kind = Literal["session", "rewound", "machine"]

_FEW_TURNS = 5
"""A fork with so many turns of its own at most may be folded."""
_NEWEST_FORKS = 4
_NEWEST_SINGLE = 8
"""So many of the quiet ones are drawn all the same, the ones written last."""


@dataclass(frozen=True, slots=True)
class TreeFilter:
    """Which families: that of `session`, else those that have a session of the project at `folder`, else all.

    Only with `everything` is a headless session or one without a turn enough for its family to be there. `limit` is
    how many families, `live` the agent's ids of the sessions that are open in a client. With `fold` quiet sessions
    are only counted.
    """

    session: str = ""
    folder: str | None = None
    everything: bool = False
    limit: int | None = None
    live: frozenset[str] = frozenset()
    fold: bool = True


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A session, or a side branch of one, and what it has of its own.

    `parent` is the branch under which it stands, ``""`` for the first of a family; it left after turn `turn`, or at
    `cell` of the next. A turn that was cut for a fork at a cell is not its own. `own_cost` leaves out turns that were
    brought from another session; it is None where a price is not known, or a turn cannot be read. `first_words` are
    the first line of its first own prompt.
    """

    branch: Branch
    parent: str
    turn: int = 0
    cell: str = ""
    own_turns: int = 0
    own_cost: float | None = None
    first_words: str = ""
    merged: tuple[tuple[str, int], ...] = ()
    """The sessions that it was merged into, each with the turn that did it."""

    @property
    def kind(self) -> Kind:
        """Whether a rewind left it behind, or it is another version of a session, or a session's head."""
        name = self.branch.name
        return (
            "rewound" if layout.is_rewound_branch(name) else "machine" if layout.is_other_version(name) else "session"
        )


@dataclass(frozen=True, slots=True)
class FoldedForks:
    """Quiet forks of the session `parent` that are only counted, and from where to where they left it."""

    parent: str
    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class TreeFamily:
    """The nodes that are drawn, each before all that stands under it, in the order of their turns; and the folds."""

    nodes: list[TreeNode]
    folds: dict[str, FoldedForks] = field(default_factory=dict)

    @property
    def root(self) -> TreeNode:
        """The session that all others come from."""
        return self.nodes[0]

    @property
    def sessions(self) -> int:
        """How many sessions it has, those in folds too."""
        drawn = sum(node.kind == "session" for node in self.nodes)
        return drawn + sum(fold.count for fold in self.folds.values())


@dataclass(frozen=True, slots=True)
class Forest:
    """Families, the one written last first. `quiet` single sessions are only counted.

    `found` families and `sessions` are what was wanted, with the quiet ones and those beyond the limit; `others` are
    the sessions of all other families, archived ones left out.
    """

    families: list[TreeFamily]
    quiet: int
    found: int
    sessions: int
    others: int


@dataclass(frozen=True, slots=True)
class _FamilyOutline:
    """The sessions of a family, newest first, before anything but their outlines is read."""

    root: str
    members: list[Outline]

    @property
    def forks(self) -> dict[str, list[Outline]]:
        """The members that left each member."""
        found: dict[str, list[Outline]] = {}
        for member in self.members:
            if member.name != self.root:
                found.setdefault(member.parent, []).append(member)
        return found


def build_forest(index: Index, wanted: TreeFilter, prices: Prices, progress: Progress = no_progress) -> Forest:
    """The families that are wanted; states and turns are read of the nodes that are drawn, and only of those.

    `progress` is told of turns whose cost must be read from their lines.
    """
    everything = index.outlines()
    families = list(_matching_families(everything, wanted))
    found, inside = len(families), {member.name for family in families for member in family.members}
    quiet = set[str]()
    if wanted.fold and not wanted.session:
        quiet = _names_to_fold(
            [f.members[0] for f in families if len(f.members) == 1 and _is_plain(f.members[0], wanted)]
        )
        families = [family for family in families if family.root not in quiet]
    families = families if wanted.limit is None else families[: wanted.limit]
    names = [member.name for family in families for member in family.members]
    reader = _NodeReader(
        index, prices, progress, ancestry.fork_places(index, names), ancestry.sessions_with_merges(index, names)
    )
    drawn = [
        reader.family(family, _foldable_forks(family, reader, wanted) if wanted.fold else {}) for family in families
    ]
    others = sum(not outline.archived and outline.name not in inside for outline in everything)
    return Forest(drawn, len(quiet), found, len(inside), others)


def _matching_families(everything: Sequence[Outline], wanted: TreeFilter) -> Iterator[_FamilyOutline]:
    roots = _family_roots(everything)
    families: dict[str, list[Outline]] = {}
    for outline in everything:
        families.setdefault(roots[outline.name], []).append(outline)
    if wanted.session:
        root = roots.get(wanted.session, "")
        chosen = {root} & families.keys()
    else:
        near = everything if wanted.folder is None else outlines_in_project(everything, wanted.folder)
        chosen = {roots[outline.name] for outline in near if _is_listed(outline, wanted)}
    return (_FamilyOutline(root, members) for root, members in families.items() if root in chosen)


def _is_listed(outline: Outline, wanted: TreeFilter) -> bool:
    return not outline.archived and (wanted.everything or (not outline.headless and outline.turns > 0))


def _family_roots(everything: Sequence[Outline]) -> dict[str, str]:
    """The first session of each one's family. Sessions that name each other as parents, which only a damaged or
    foreign store holds, have the first of them by name."""
    names = {outline.name for outline in everything}
    parents = {o.name: o.parent for o in everything if o.parent in names and o.parent != o.name}
    roots = {name: name for name in names if name not in parents}
    for start in parents:
        path: dict[str, int] = {}
        name = start
        while name not in roots and name not in path:
            path[name] = len(path)
            name = parents[name]
        root = roots.get(name) or min(list(path)[path[name] :])
        roots.update(dict.fromkeys(path, root))
    return roots


def _is_plain(outline: Outline, wanted: TreeFilter) -> bool:
    """Whether nobody gave it a name or a label, and no client has it open."""
    return not outline.authored_name and outline.labels in ("", "[]") and outline.agent_id not in wanted.live


def _names_to_fold(quiet: Sequence[Outline], drawn: int = _NEWEST_SINGLE) -> set[str]:
    """The names of all but the newest; of none where a single one would be left."""
    rest = quiet[drawn:]
    return {outline.name for outline in rest} if len(rest) > 1 else set()


def _foldable_forks(family: _FamilyOutline, reader: _NodeReader, wanted: TreeFilter) -> dict[str, set[str]]:
    """For each member the quiet forks of it that are not drawn."""
    forks = family.forks

    def is_quiet(fork: Outline) -> bool:
        left = reader.fork_places.get(fork.name)
        own = fork.turns - _count_shared_turns(left) if left else fork.turns
        kept = fork.name in forks or fork.name in reader.merged or fork.name == wanted.session
        return not kept and own <= _FEW_TURNS and _is_plain(fork, wanted)

    found = {parent: _names_to_fold([f for f in forks[parent] if is_quiet(f)], _NEWEST_FORKS) for parent in forks}
    return {parent: names for parent, names in found.items() if names}


def _count_shared_turns(left: ForkPlace) -> int:
    """How many turns are not the fork's own, the one that was cut for it counted in."""
    return left.turn + bool(left.cell)


def _merges_by_source(index: Index, bringing: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """By the branch that was merged, what it was merged into and the last turn that was there by then."""
    found: dict[str, list[tuple[str, int]]] = {}
    for branch in index.branches_named(bringing):
        with suppress(SessgitError):  # what is damaged is no merge that could be told
            for theirs, turn in list_merges(index.open_store(), branch):
                found.setdefault(theirs, []).append((branch.name, turn))
    return {theirs: sorted(set(into)) for theirs, into in found.items()}


class _NodeReader:
    """What is read of the nodes that are drawn."""

    def __init__(
        self,
        index: Index,
        prices: Prices,
        progress: Progress,
        departures: Mapping[str, ForkPlace],
        bringing: Sequence[str],
    ) -> None:
        self.index, self.prices, self.progress = index, prices, progress
        self.fork_places, self.sessions_with_merges = departures, bringing
        self.merged = _merges_by_source(index, bringing)

    def family(self, family: _FamilyOutline, folds: Mapping[str, set[str]]) -> TreeFamily:
        hidden = set[str]().union(*folds.values())
        shown = [member for member in family.members if member.name not in hidden]
        branches = self.index.branches_named([member.name for member in shown])
        nodes = [node for branch in branches for node in self._nodes(branch, family.root)]
        return TreeFamily(_nodes_in_order(nodes, family.root), {name: self._fold(name, folds[name]) for name in folds})

    def _fold(self, parent: str, names: set[str]) -> FoldedForks:
        left = sorted((self.fork_places[name] for name in names), key=lambda left: _place_order(left.turn, left.cell))
        return FoldedForks(parent, len(left), *(at.cell or str(at.turn) for at in (left[0], left[-1])))

    def _nodes(self, branch: Branch, root: str) -> Iterator[TreeNode]:
        """The session and its side branches."""
        left = self.fork_places.get(branch.name)
        first = _count_shared_turns(left) + 1 if left else 1
        yield TreeNode(
            branch,
            "" if branch.name == root else left.branch if left else layout.session_of(branch.name),
            left.turn if left else 0,
            left.cell if left else "",
            max(0, branch.state.turns - first + 1),
            self._cost(branch, self._own(branch, first))
            if left or branch.name in self.sessions_with_merges
            else views.session_cost(branch.state, self.prices),
            self._words(branch, first),
            tuple(self.merged.get(branch.name, ())),
        )
        for other in self.index.branches_named(ancestry.side_branches(self.index, branch.name)):
            last, count = self.index.left_behind(other.name, branch.name)
            if count:
                at = ancestry.fork_place(self.index, other)
                cost = self._cost(other, self._own(other, max(last, _count_shared_turns(at) if at else 0) + 1))
                words = self._words(other, last + 1)
                merged = tuple(self.merged.get(other.name, ()))
                yield TreeNode(other, branch.name, last, "", count, cost, words, merged)

    def _own(self, branch: Branch, first: int) -> list[Row]:
        """The turns that used something themselves: one that was brought used it where it comes from."""
        return [row for row in self.index.turns(branch.name, first) if row.message.get("Event") != "graft"]

    def _words(self, branch: Branch, first: int) -> str:
        row = self.index.turn(branch.name, first)
        return self.index.title(row) if row else ""

    def _cost(self, branch: Branch, rows: Sequence[Row]) -> float | None:
        known = self.index.gists([row.commit for row in rows])
        unknown = [row for row in rows if row.commit not in known]
        try:
            read = (
                views.turn_gists(self.index.open_store(), self.index, branch, unknown, self.progress) if unknown else []
            )
        except SessgitError:  # a damaged turn does not stop the drawing of all others
            return None
        used: dict[str, Tokens] = {}
        for gist in (*known.values(), *read):
            used = add_by_model(used, dict(gist.tokens))
        return price_list.token_cost(used, self.prices)


def _nodes_in_order(nodes: Sequence[TreeNode], root: str) -> list[TreeNode]:
    """The nodes from the root on, each before those under it, which stand in the order in which they left."""
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
        waiting += sorted(below.get(ordered[-1].branch.name, ()), key=_fork_order, reverse=True)
    return ordered


def _fork_order(node: TreeNode) -> tuple[int, int, str, str]:
    return *_place_order(node.turn, node.cell), node.branch.state.created, node.branch.name


def _place_order(turn: int, cell: str) -> tuple[int, int]:
    """Where in the conversation: a cell of the next turn comes after the whole turn."""
    ordinal = cell.rpartition(".")[2]
    return turn, int(ordinal) if ordinal.isascii() and ordinal.isdigit() and len(ordinal) < 16 else 0
