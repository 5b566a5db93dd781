"""Deliver the branches of one side of a session to the other, in either direction.

A branch only ever goes forward, or a new one is made next to it: so what a side holds only grows, and any order of
pulls and pushes ends with the same turns everywhere. Only a rewind takes a remote's head back. Two tips of which only
one has turns that the other lacks are joined: what people said of the session since is in one commit, which is a
function of the two tips alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any, Literal

from sessgit.errors import DamageError
from sessgit.history import diff, pad_lists, session_files
from sessgit.model import ids, merge_decisions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.merge_decisions import Side
from sessgit.store import layout
from sessgit.store.store import Store

Relation = Literal[
    "new", "forward", "diverged", "merged", "joined", "rewound", "archived", "unarchived", "deleted", "kept",
    "purged",
]  # fmt: skip


@frozen
class BranchChange:
    """What became of a session or of a branch of it on the side that got the turns; `turns` is their number.

    `new`: it was not there. `forward`: it went on. `diverged`: both sides went on, and `branch` holds the other one.
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


class Delivery:
    """A delivery in the making, or made: the target's branches with what was delivered, and what changed.

    `taken_names` are other names that the target has. `has_file` says that the agent has a file with the target's
    turns: a head that was merged elsewhere is then a rewound branch.
    """

    def __init__(
        self,
        store: Store,
        session: str,
        target: Mapping[str, str],
        taken_names: Collection[str] = (),
        *,
        has_file: bool = False,
    ) -> None:
        self.store, self.session, self.has_file = store, session, has_file
        self.branches = dict(target)
        self.taken_names = {*taken_names, *target}
        self.changes: list[BranchChange] = []
        self.diverged = False
        """Whether each side's head has turns that the other's lacks: their files are not the same ones."""
        self.back = False
        """Whether the head of the target went back."""

    def deliver(self, source: Mapping[str, str], *, rewinds: bool = False) -> None:
        """Deliver the branches of the source, which has a head. With `rewinds`, the target's head goes back to the
        source's if that has left it behind on a rewound branch, and is the newer one."""
        self._deliver_head(source, rewinds=rewinds)
        for branch in sorted(source):
            if branch != self.session:
                self._deliver_side(branch, source[branch])

    def _deliver_head(self, source: Mapping[str, str], *, rewinds: bool) -> None:
        tip, ours = source[self.session], self.branches.get(self.session)
        if ours is None:
            self.branches[self.session] = tip
            self._note_change("new", self.store.state(tip).turns, self.session)
            return
        reconciled = reconcile_tips(self.store, ours, tip)
        self.diverged = reconciled.outcome == "diverged"
        if not self.diverged:
            self._update_branch(self.session, tip, reconciled)
        elif rewinds and self._was_left_behind(ours, source) and _age(self.store, tip) > _age(self.store, ours):
            self.branches[self.session] = tip
            self.diverged, self.back = False, True
            self._note_change("forward", _count_unshared(self.store, tip, ours), self.session)
        elif self.store.repo.is_ancestor(ours, tip):
            self._merge_head(tip, ours, source)
        elif not self._has_tip(tip) and not self._continue_branch(tip, self._sides()):
            self._new_branch(tip, "diverged", ids.other_name)

    def _merge_head(self, tip: str, ours: str, source: Mapping[str, str]) -> None:
        """Move the head to one that has merged it; its own turns stay a branch, as if a rewind had left them."""
        turns = _count_unshared(self.store, tip, ours)
        self.branches[self.session], self.diverged = tip, False
        if self.has_file and not self._has_tip(ours):
            self._new_branch(ours, "merged", ids.rewound_name)
        for branch in sorted(source):
            if layout.is_side_branch(branch) and _contains_tip(self.store, source[branch], ours):
                self._deliver_side(branch, source[branch])
        if not self._has_tip(ours):
            self._new_branch(ours, "merged", ids.other_name)
        kept = next(name for name in self._sides() if _contains_tip(self.store, self.branches[name], ours))
        self.changes[:] = [BranchChange(self.session, "merged", turns, kept)]

    def _deliver_side(self, branch: str, tip: str) -> None:
        if self._has_tip(tip) or self._continue_branch(tip, [self.session, *self._sides()]):
            return
        if layout.is_rewound_branch(branch) and not self.diverged:
            self._new_branch(tip, "rewound", ids.rewound_name, branch)
        else:
            self._new_branch(tip, "diverged", ids.other_name, branch if layout.is_other_version(branch) else "")

    def _sides(self) -> list[str]:
        """Return the target's side branches, those of other machines first: what continues one is delivered there."""
        return sorted(
            filter(layout.is_side_branch, self.branches), key=lambda name: (layout.is_rewound_branch(name), name)
        )

    def _has_tip(self, tip: str) -> bool:
        return any(_contains_tip(self.store, own, tip) for own in self.branches.values())

    def _continue_branch(self, tip: str, branches: Collection[str]) -> bool:
        """Deliver the tip to the first of the branches that it continues, or that it can be joined with; return whether
        there is one.

        The turns of a rewound branch are in the same file as the head's, so those of another file never go there.
        """
        for name in branches:
            reconciled = reconcile_tips(self.store, self.branches[name], tip)
            is_of_other_file = reconciled.new and self.diverged and layout.is_rewound_branch(name)
            if reconciled.outcome != "diverged" and not is_of_other_file:
                self._update_branch(name, tip, reconciled)
                return True
        return False

    def _update_branch(self, name: str, tip: str, reconciled: ReconciledTip) -> None:
        before = self.branches[name]
        if reconciled.outcome == "held":
            return
        self.branches[name] = reconciled.tip
        turns = _count_unshared(self.store, tip, before) if reconciled.new else 0
        self._note_change("joined" if reconciled.outcome == "joined" else "forward", turns, name)

    def _new_branch(self, tip: str, what: Relation, name_for: _Namer, name: str = "") -> None:
        """Add a side branch with the source's name, or named after the first turn that the head lacks."""
        head = self.branches[self.session]
        if not name or name in self.taken_names:
            name = free_name(self.store, self.session, tip, head, self.taken_names, name_for)
        self.branches[name] = tip
        self.taken_names.add(name)
        self._note_change(what, _count_unshared(self.store, tip, head), name)

    def _was_left_behind(self, there: str, source: Mapping[str, str]) -> bool:
        rewound = (tip for name, tip in source.items() if layout.is_rewound_branch(name))
        return any(_contains_tip(self.store, tip, there) for tip in rewound)

    def _note_change(self, what: Relation, turns: int, branch: str) -> None:
        self.changes.append(BranchChange(self.session, what, turns, branch))


def count_lacking(store: Store, source: Collection[str], target: Collection[str]) -> int:
    """Return how many turns the tips of a source have, at most on one branch, that no tip of the target has."""
    lost = [tip for tip in source if all(has_own_turns(store, tip, other) for other in target)]
    return max(
        (min((_count_unshared(store, tip, o) for o in target), default=store.state(tip).turns) for tip in lost),
        default=0,
    )


def _count_unshared(store: Store, tip: str, other: str) -> int:
    """Return how many turns a tip has from the first one on that the other lacks, or has with other lines."""
    own = turn_folders(store, tip)
    return len(own) - ids.common_prefix_length(own, turn_folders(store, other))


def free_name(
    store: Store, session: str, tip: str, head: str, taken_names: Collection[str], name_for: _Namer = ids.other_name
) -> str:
    """Return the name of a new side branch, after the first turn of the tip that the head lacks and no branch is named
    after."""
    keys = chain(_unshared_keys(store, tip, head), (f"{number}:{tip}" for number in count()))
    return next(name for key in keys if (name := name_for(session, key)) not in taken_names)


def _unshared_keys(store: Store, tip: str, head: str) -> Iterator[str]:
    """Yield the keys of a tip's turns from the first one on that the head lacks; if it has all of these keys, from the
    first turn that it has with other lines."""
    own = _turn_keys(store, tip)
    shared = ids.common_prefix_length(own, _turn_keys(store, head))
    yield from own[shared:] or own[len(own) - _count_unshared(store, tip, head) :]


def _turn_keys(store: Store, tip: str) -> list[str]:
    """Return the keys of the turns as of a commit, in order."""
    keys = {message.number("Turn"): message.get("Prompt") for _, message in reversed(list(store.history(tip)))}
    return [key for number, key in keys.items() if number and key]


# Two tips

_JoinOutcome = Literal["held", "forward", "joined", "diverged"]

_TURNLESS = ("edit", "end")
"""The events of commits that bring no turn."""
_AUTHORED_FIELDS = ("name", "description", "stage", "confidence", "origin", "extra")


@frozen
class ReconciledTip:
    """What becomes of our tip: `tip` is the commit that has both, or our own if it has theirs already or they diverged.

    `new` says whether theirs has turns that ours lacks.
    """

    outcome: _JoinOutcome
    tip: str
    new: bool = False


def reconcile_tips(store: Store, ours: str, theirs: str) -> ReconciledTip:
    """Join our tip and theirs, unless each has turns of its own.

    Raises DamageError if theirs continues ours and leaves out turns of it.
    """
    if _contains_tip(store, ours, theirs):
        return ReconciledTip("held", ours)
    new = has_own_turns(store, theirs, ours)
    if _contains_tip(store, theirs, ours):
        _check_closed_turns(store, theirs, ours)
        return ReconciledTip("forward", theirs, new)
    own = has_own_turns(store, ours, theirs)
    if new and own:
        return ReconciledTip("diverged", ours, new)
    if new == own:
        main, other = sorted((ours, theirs), key=lambda tip: _rank(store, tip), reverse=True)
    else:
        main, other = (theirs, ours) if new else (ours, theirs)
    return ReconciledTip("joined", joined_commit(store, main, other), new)


def _contains_tip(store: Store, tip: str, other: str) -> bool:
    """Return whether the history of a tip has another one, with all of its turns.

    A merged tip is the second parent of a commit, and its turns are those of another branch.
    """
    return store.repo.is_ancestor(other, tip) and (
        _is_contained(store, other, tip) or not has_own_turns(store, other, tip)
    )


def _is_contained(store: Store, commit: str, tip: str) -> bool:
    return any(ancestor.id == commit for ancestor in store.repo.first_parents(tip))


def has_own_turns(store: Store, tip: str, other: str) -> bool:
    """Return whether a tip has turns, or more of one, that the other lacks.

    Two machines that recorded one transcript have other commits and the same folders of turns.
    """
    for commit, message in store.history(tip):
        if _is_contained(store, commit, other):
            return False
        if message.get("Event") not in _TURNLESS:
            break
    return _lacks_turns(store, turn_folders(store, other), turn_folders(store, tip))


def _lacks_turns(
    store: Store, folders: Sequence[tuple[str, str]], expected: Sequence[tuple[str, str]], closed: int | None = None
) -> bool:
    """Return whether there are fewer folders than expected, or one of the first `closed` ones has less in it."""
    return len(expected) > len(folders) or any(
        there != own and (there[0] != own[0] or not _is_partial(store, own[1], there[1]))
        for own, there in zip(expected[:closed], folders, strict=False)
    )


def _check_closed_turns(store: Store, tip: str, before: str) -> None:
    """Raise DamageError if a tip that continues a commit lacks a closed turn of it, or lines of one, or says that lines
    are redacted that were not: another machine may send anything."""
    if _lacks_turns(store, turn_folders(store, tip), turn_folders(store, before), -1):
        raise DamageError("it continues the conversation here, but without some of its turns")
    if store.state(tip).rules.get("redact") and not store.state(before).rules.get("redact"):
        raise DamageError("it marks lines as redacted that are not redacted here")


def turn_folders(store: Store, tip: str) -> list[tuple[str, str]]:
    """Return the folders of all turns as of a commit, in order: each name and its tree."""
    return [(path.rpartition("/")[2], oid) for path, oid in store.turn_folders(tip).items()]


def _is_partial(store: Store, part: str, whole: str) -> bool:
    """Return whether one folder has a turn so far, and the other the same turn with what came later."""
    files = store.repo.files(whole)
    for path, (oid, _) in store.repo.files(part).items():
        if path == layout.CELLS:  # a function of the lines
            continue
        other = files.get(path, ("", False))[0]
        grows = path == layout.BODY or path.startswith(layout.SUBAGENTS + "/")
        if not other or (other != oid and not (grows and store.repo.blob(other).startswith(store.repo.blob(oid)))):
            return False
    return True


def _rank(store: Store, tip: str) -> tuple[bool, str, int, str]:
    """Of two tips with the same turns the one that has the lines behind them, too, is the greater one."""
    return store.tail(tip) != b"", store.state(tip).ended, *_age(store, tip)


def _age(store: Store, tip: str) -> tuple[int, str]:
    """Return the greater one for the newer of two commits."""
    return store.commit(tip).time, tip


def joined_commit(store: Store, main: str, other: str) -> str:
    """Write the commit that continues both, with the turns of the first; no ref leads to it yet."""
    ours, theirs = store.state(main), store.state(other)
    merge_base = diff.merge_base(store, main, other)
    base = store.state(merge_base) if merge_base else None
    if base is None or base.id != ours.id:
        # They have no common base: each field of either counts as changed.
        merge_base, base = "", Session(ours.id, ours.agent_id, project=theirs.project, transcript=theirs.transcript)
    later = max((main, other), key=lambda tip: _age(store, tip))
    state = _joined_state(base, ours, theirs, theirs_is_later=later == other)
    known = base.unified if merge_base else None
    side: Side = "theirs" if later == other else "ours"
    state = replace(state, unified=merge_decisions.join_program_states(known, ours.unified, theirs.unified, side))
    pad = pad_lists.joined_changes(store, merge_base, main, other)
    message = Message(f"edit: joined with {other[:12]}", (("Session", ours.id), ("Event", "edit")))
    changes = {layout.PAD: pad, **session_files.joined_changes(store, main, other)}
    return store.write_commit(main, changes, state, message, [main, other], store.commit(later).time)


def _joined_state(base: Session, ours: Session, theirs: Session, *, theirs_is_later: bool) -> Session:
    """Our state with what people said of theirs since the base; of two that said otherwise the later one holds."""
    values = {
        name: _joined_field(*(getattr(one, name) for one in (base, ours, theirs)), later=theirs_is_later)
        for name in _AUTHORED_FIELDS
    }
    places = ((one.project, one.transcript) for one in (base, ours, theirs))
    values["project"], values["transcript"] = _joined_field(*places, later=theirs_is_later)
    values["labels"] = tuple(merge_decisions.merge_sets(base.labels, base.labels, ours.labels, theirs.labels))
    if not theirs.rules.get("redact"):
        values["rules"] = {**ours.rules, "redact": 0}  # what is behind it was not redacted
    return replace(ours, **values)


def _joined_field(base: Any, ours: Any, theirs: Any, *, later: bool) -> Any:
    if theirs in (ours, base):
        return ours
    return theirs if ours == base or later else ours
