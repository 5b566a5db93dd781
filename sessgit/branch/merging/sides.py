"""The two sides of a merge: where they parted, and which turns of theirs ours lacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from sessgit import agents
from sessgit.errors import ConflictError, UsageError
from sessgit.history import shared_turns
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.shared_turns import is_same_turn
from sessgit.model.conversation.session import Session
from sessgit.model.merge_decisions import Base
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class MergeSides:
    """`base` is the commit where the sides parted, ``""`` where they have no common ancestor, and `shared` so many
    turns of theirs lie before it.

    `new` are theirs' turns since then that ours lacks, `own` those of ours that theirs lacks; `grown` is a turn that
    both have and of which theirs has more. `merged` says that theirs is part of ours' history already; `brought` are
    the numbers of theirs' turns since they parted that ours has.
    """

    ours: Branch
    theirs: Branch
    tip: str
    base: str
    shared: int
    new: tuple[Row, ...]
    own: tuple[Row, ...]
    grown: Row | None
    merged: bool
    brought: tuple[int, ...]
    related: bool = True
    """Whether the base is part of the history of both, and not only a turn that they have in common."""

    @property
    def forward(self) -> bool:
        """Whether ours has not gone on since the sides parted."""
        return bool(self.base) and not self.own and self.grown is None


def check_sides(ours: ResolvedTarget, theirs: ResolvedTarget) -> None:
    """Raises UsageError or ConflictError where the two cannot be the sides of a merge."""
    name = layout.short_name(theirs.branch.name)
    if ours.branch.name == theirs.branch.name:
        raise UsageError(
            f"both addresses name {name}",
            "Name two conversations: `sessgit merge THEIRS --into OURS`",
        )
    if theirs.cell:
        raise UsageError(
            "only whole turns can be merged",
            f"Leave out the cell: {name}@{theirs.turn}.",
        )
    check_ours(ours)
    if not theirs.state.turns or theirs.turn == 0:
        raise UsageError(f"{name} has no turns to merge", "`sessgit log` lists turns.")


def check_ours(ours: ResolvedTarget) -> None:
    """Raises UsageError or ConflictError where nothing can be merged into the branch."""
    name = ours.branch.name
    if ours.turn is not None:
        raise UsageError(
            f"a merge appends after the last turn of {name[:8]}, not after turn {ours.turn}",
            f"`sessgit fork {name[:8]} --at {ours.turn}` makes a conversation that ends there.",
        )
    if layout.is_side_branch(name):
        what = (
            "a branch left behind by a rewind"
            if layout.is_rewound_branch(name)
            else "another version of the conversation"
        )
        raise UsageError(
            f"{layout.short_name(name)} is {what}: you cannot merge into it",
            f"`sessgit fork {layout.short_name(name)}` makes it a conversation.",
        )
    if ours.branch.archived:
        raise ConflictError(f"{name[:8]} is archived", f"`sessgit unarchive {name[:8]}` unarchives it.")
    if not ours.state.turns:
        raise UsageError(f"{name[:8]} has no turns to continue from", "Name another conversation with `--into`.")


def merge_sides(context: Context, ours: Branch, theirs: Branch, turn: int | None = None) -> MergeSides:
    """The sides, theirs up to a turn if one is given."""
    store = context.store
    mine, rows = context.index.turns(ours.name), context.index.turns(theirs.name, last=turn)
    tip = theirs.tip if turn is None else rows[-1].commit
    pairs = _TurnPairs(store, mine, rows)
    our_history, their_history = _ancestors(store, ours.tip), _ancestors(store, tip)
    base = shared_turns.newest_commit(store, _common_ancestors(our_history, their_history))
    known = _count_reached(rows, our_history)
    new = [row for row in rows[known:] if _brought_from(row) != ours.name]
    lacking = [row for row in new if pairs.mine(row) is None]
    own = [row for row in mine[_count_reached(mine, their_history) :] if pairs.theirs(row) is None]
    grown = next(
        (row for row in new if (own_row := pairs.mine(row)) and _has_more(store, tip, row, ours.tip, own_row)), None
    )
    shared = known
    while shared < min(len(rows), len(mine)) and pairs.mine(rows[shared]) is mine[shared] and rows[shared] is not grown:
        shared += 1
    began = base or (mine[shared - 1].commit if shared else "")
    return MergeSides(
        ours, theirs, tip, began, shared, tuple(lacking), tuple(own), grown, tip in our_history,
        tuple(row.turn for row in new if base and pairs.mine(row)), began in our_history and began in their_history,
    )  # fmt: skip


class _TurnPairs:
    """Which turns of the two sides are the same one: those with the same prompt uuid, unless their lines differ."""

    def __init__(self, store: Store, mine: Sequence[Row], theirs: Sequence[Row]) -> None:
        self._store = store
        self._mine, self._theirs = ({row.prompt: row for row in rows} for rows in (mine, theirs))

    def mine(self, row: Row) -> Row | None:
        """Our turn that is this one of theirs, or None."""
        mine = self._mine.get(row.prompt)
        return mine if mine is not None and self._is_one(mine, row) else None

    def theirs(self, row: Row) -> Row | None:
        """Their turn that is this one of ours, or None."""
        theirs = self._theirs.get(row.prompt)
        return theirs if theirs is not None and self._is_one(row, theirs) else None

    def _is_one(self, mine: Row, theirs: Row) -> bool:
        is_brought = mine.trailer("Origin") == f"{theirs.branch}@{theirs.turn}"  # maybe with other uuids in it
        return is_brought or is_same_turn(self._store, mine, theirs)


def _ancestors(store: Store, tip: str) -> dict[str, tuple[str, ...]]:
    """Every commit that a commit leads to, itself too, with its parents: asked once for all that is asked of it."""
    parents, waiting = dict[str, tuple[str, ...]](), [tip]
    while waiting:
        commit = waiting.pop()
        if commit not in parents:
            parents[commit] = store.repo.commit(commit).parents
            waiting += parents[commit]
    return parents


def _common_ancestors(ours: Mapping[str, Sequence[str]], theirs: Mapping[str, Sequence[str]]) -> Set[str]:
    """The newest commits that both histories lead to."""
    both = ours.keys() & theirs.keys()
    return both - {parent for commit in both for parent in ours[commit]}


def base_states(store: Store, sides: MergeSides) -> Base:
    """The states that the sides began with when they parted."""
    return Base(*(base_state(store, tip, sides.base) for tip in (sides.ours.tip, sides.tip)))


def base_state(store: Store, tip: str, base: str) -> Session:
    """The state that a side began with, a blank one where it left nothing."""
    commit = base_commit(store, tip, base)
    return store.state(commit) if commit else Session(store.state(tip).id, "")


def base_commit(store: Store, tip: str, base: str) -> str:
    """The commit that a side began with: the base; of a session that left another one there, its own first one."""
    first, session = "", store.state(tip).id
    for commit, message in store.history(tip):
        if commit == base or message.get("Session") != session:
            break
        first = commit
    is_fork = bool(first) and store.message(first).get("Event") == "fork"
    return first if is_fork and (not base or store.repo.is_ancestor(base, first)) else base


def _count_reached(rows: list[Row], history: Collection[str]) -> int:
    """So many of the turns, from the first, are part of a history."""
    return next((number for number, row in enumerate(rows) if row.commit not in history), len(rows))


def _brought_from(row: Row) -> str:
    """The branch from which a merge brought the turn, or ``""``."""
    return row.trailer("Origin").partition("@")[0]


def _has_more(store: Store, tip: str, row: Row, ours: str, mine: Row) -> bool:
    """Whether theirs has more of a turn that both have: a fork may have been made in the middle of it."""
    if store.folder(tip, row.turn).get(layout.BODY) == store.folder(ours, mine.turn).get(layout.BODY):
        return False
    agent = agents.of_turn(store, mine)
    theirs, own = (
        agent.writer.complete(agent.parsed(store.lines(*at).body)) for at in ((tip, row.turn), (ours, mine.turn))
    )
    return len(theirs) > len(own)
