"""The tips of one side's branches brought to the branches of the other, in either direction.

A branch only ever goes forward, or a new one is made beside it: so what a side holds only grows, and any order of
pulls and pushes ends with the same turns everywhere. Only a rewind takes a remote's head back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count, zip_longest
from typing import Literal

from sessgit.model import ids
from sessgit.record.tip_join import ReconciledTip, contains_tip, has_own_turns, reconcile_tips, turn_folders
from sessgit.store import layout
from sessgit.store.store import Store

Relation = Literal[
    "new", "forward", "parted", "merged", "joined", "rewound", "archived", "brought back", "deleted", "kept",
    "purged",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BranchChange:
    """What became of a session, or of a branch of it, where the turns came to; `turns` says how many came.

    `new`: it was not there. `forward`: it went on. `parted`: both sides went on, and `branch` holds the other one.
    `merged`: it went forward to where all of it was merged, and `branch` holds what was its own.
    `joined`: what people said of it on both sides is one now. `rewound`: `branch` holds what a rewind left behind.
    `kept`: it was deleted elsewhere, but `turns` turns here were not in what was deleted.
    `purged`: it held a value there that was purged here, and does no more.
    """

    session: str
    what: Relation
    turns: int
    branch: str


_Namer = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The target's branches with what was delivered, what changed, and whether its head went back."""

    branches: Mapping[str, str]
    changes: tuple[BranchChange, ...] = ()
    back: bool = False


def deliver_branches(  # noqa: PLR0913 - both sides, and what may become of the target
    store: Store,
    session: str,
    source: Mapping[str, str],
    target: Mapping[str, str],
    *,
    taken: Collection[str] = (),
    rewinds: bool = False,
    filed: bool = False,
) -> DeliveryResult:
    """Brings the branches of the source, which has a head, to those of the target.

    `taken` are names that the target has besides. With `rewinds` the target's head goes back to the source's where
    that has left it behind on a rewound branch, and is the newer one. `filed` says that the agent has a file there, in
    which the head's turns stand: one that is merged elsewhere is then a rewound branch.
    """
    found = _Delivery(store, session, target, taken, filed=filed)
    found.head(source, rewinds=rewinds)
    for branch in sorted(source):
        if branch != session:
            found.side(branch, source[branch])
    return DeliveryResult(found.branches, tuple(found.changes), found.back)


class _Delivery:
    def __init__(
        self, store: Store, session: str, target: Mapping[str, str], taken: Collection[str], *, filed: bool
    ) -> None:
        self.store, self.session, self.filed = store, session, filed
        self.branches = dict(target)
        self.taken = {*taken, *target}
        self.changes: list[BranchChange] = []
        self.parted = False
        """Whether each side's head has turns that the other's lacks: their files are not the same ones."""
        self.back = False

    def head(self, source: Mapping[str, str], *, rewinds: bool) -> None:
        tip, there = source[self.session], self.branches.get(self.session)
        if there is None:
            self.branches[self.session] = tip
            self._tell("new", self.store.state(tip).turns, self.session)
            return
        found = reconcile_tips(self.store, there, tip)
        self.parted = found.outcome == "parted"
        if not self.parted:
            self._take(self.session, tip, found)
        elif rewinds and self._was_left_behind(there, source) and self._is_newer(tip, there):
            self.branches[self.session] = tip
            self.parted, self.back = False, True
            self._tell("forward", _count_unshared(self.store, tip, there), self.session)
        elif self.store.repo.is_ancestor(there, tip):
            self._merge_head(tip, there, source)
        elif not self._is_there(tip) and not self._goes_on(tip, self._sides()):
            self._new_branch(tip, "parted", ids.other_name)

    def _merge_head(self, tip: str, there: str, source: Mapping[str, str]) -> None:
        """Takes the head to one that has it merged; its own turns stay a branch, as if a rewind had left them."""
        turns = _count_unshared(self.store, tip, there)
        self.branches[self.session], self.parted = tip, False
        if self.filed and not self._is_there(there):
            self._new_branch(there, "merged", ids.rewound_name)
        for branch in sorted(source):
            if layout.is_side_branch(branch) and contains_tip(self.store, source[branch], there):
                self.side(branch, source[branch])
        if not self._is_there(there):
            self._new_branch(there, "merged", ids.other_name)
        kept = next(name for name in self._sides() if contains_tip(self.store, self.branches[name], there))
        self.changes[:] = [BranchChange(self.session, "merged", turns, kept)]

    def side(self, branch: str, tip: str) -> None:
        if self._is_there(tip) or self._goes_on(tip, [self.session, *self._sides()]):
            return
        if layout.is_rewound_branch(branch) and not self.parted:
            self._new_branch(tip, "rewound", ids.rewound_name, branch)
        else:
            self._new_branch(tip, "parted", ids.other_name, branch if layout.is_other_version(branch) else "")

    def _sides(self) -> list[str]:
        """The target's side branches; those of other machines first, since whatever goes on may go on there."""
        return sorted(
            filter(layout.is_side_branch, self.branches), key=lambda name: (layout.is_rewound_branch(name), name)
        )

    def _is_there(self, tip: str) -> bool:
        return any(contains_tip(self.store, there, tip) for there in self.branches.values())

    def _goes_on(self, tip: str, branches: Collection[str]) -> bool:
        """Takes the tip into the first of the branches that it goes on from, or that it can be joined with.

        The turns of a rewound branch stand in the same file as the head's: those of another file never come there.
        """
        for name in branches:
            found = reconcile_tips(self.store, self.branches[name], tip)
            if found.outcome != "parted" and not (found.new and self.parted and layout.is_rewound_branch(name)):
                self._take(name, tip, found)
                return True
        return False

    def _take(self, name: str, tip: str, found: ReconciledTip) -> None:
        before = self.branches[name]
        if found.outcome == "held":
            return
        self.branches[name] = found.tip
        turns = _count_unshared(self.store, tip, before) if found.new else 0
        self._tell("joined" if found.outcome == "joined" else "forward", turns, name)

    def _new_branch(self, tip: str, what: Relation, made: _Namer, name: str = "") -> None:
        """Makes a side branch, of the source's name or named after the first turn that the head lacks."""
        head = self.branches[self.session]
        if not name or name in self.taken:
            name = free_name(self.store, self.session, tip, head, self.taken, made)
        self.branches[name] = tip
        self.taken.add(name)
        self._tell(what, _count_unshared(self.store, tip, head), name)

    def _was_left_behind(self, there: str, source: Mapping[str, str]) -> bool:
        rewound = (tip for name, tip in source.items() if layout.is_rewound_branch(name))
        return any(contains_tip(self.store, tip, there) for tip in rewound)

    def _is_newer(self, tip: str, other: str) -> bool:
        return (self.store.commit(tip).time, tip) > (self.store.commit(other).time, other)

    def _tell(self, what: Relation, turns: int, branch: str) -> None:
        self.changes.append(BranchChange(self.session, what, turns, branch))


def count_lacking(store: Store, source: Collection[str], target: Collection[str]) -> int:
    """How many turns the tips of a source have, at most on one branch, that no tip of the target has."""
    lost = [tip for tip in source if all(has_own_turns(store, tip, other) for other in target)]
    return max(
        (min((_count_unshared(store, tip, o) for o in target), default=store.state(tip).turns) for tip in lost),
        default=0,
    )


def _count_unshared(store: Store, tip: str, other: str) -> int:
    """How many turns a tip has from the first one on that the other lacks or has otherwise."""
    own, there = turn_folders(store, tip), turn_folders(store, other)
    shared = next((n for n, (a, b) in enumerate(zip_longest(own, there)) if a != b), len(own))
    return len(own) - min(shared, len(own))


def free_name(
    store: Store, session: str, tip: str, head: str, taken: Collection[str], made: _Namer = ids.other_name
) -> str:
    """Return the name of a new side branch, after the first turn of the tip that the head lacks and no branch is named
    after."""
    keys = chain(_unshared_keys(store, tip, head), (f"{number}:{tip}" for number in count()))
    return next(name for key in keys if (name := made(session, key)) not in taken)


def _unshared_keys(store: Store, tip: str, head: str) -> Iterator[str]:
    """The keys of a tip's turns from the first one on that the head lacks; of what it has all keys of, those of the
    turns that it has otherwise."""
    own, there = _turn_keys(store, tip), _turn_keys(store, head)
    same = [n for n, (a, b) in enumerate(zip_longest(own, there)) if a != b][:1] or [len(own)]
    yield from own[same[0] :] or own[len(own) - _count_unshared(store, tip, head) :]


def _turn_keys(store: Store, tip: str) -> list[str]:
    """Return the keys of the turns as of a commit, in order."""
    keys = {message.number("Turn"): message.get("Prompt") for _, message in reversed(list(store.history(tip)))}
    return [key for number, key in keys.items() if number and key]
