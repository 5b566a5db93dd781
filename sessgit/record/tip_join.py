"""Two tips of one session brought together, where nobody has to decide anything.

Where only one of them has turns that the other lacks, what people said of the session since is joined in one commit.
It is a function of the two tips alone: whichever machine makes it makes the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sessgit.errors import DamageError
from sessgit.history import pad_lists, session_files, shared_turns
from sessgit.model import merge_decisions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.merge_decisions import Side
from sessgit.store import layout
from sessgit.store.store import Store

JoinOutcome = Literal["held", "forward", "joined", "parted"]

TURNLESS = ("edit", "end")
"""The events of commits that bring no turn."""
_AUTHORED_FIELDS = ("name", "description", "stage", "confidence", "origin", "extra")


@dataclass(frozen=True, slots=True)
class ReconciledTip:
    """What becomes of our tip: `tip` is the commit that has both, our own where it has theirs already or they parted.

    `new` says whether theirs has turns that ours lacks.
    """

    outcome: JoinOutcome
    tip: str
    new: bool = False


def reconcile_tips(store: Store, ours: str, theirs: str) -> ReconciledTip:
    """Brings our tip and theirs together, or says that each has turns of its own.

    Raises DamageError where theirs goes on from ours and leaves out turns of it.
    """
    if contains_tip(store, ours, theirs):
        return ReconciledTip("held", ours)
    new = has_own_turns(store, theirs, ours)
    if contains_tip(store, theirs, ours):
        _check_closed_turns(store, theirs, ours)
        return ReconciledTip("forward", theirs, new)
    own = has_own_turns(store, ours, theirs)
    if new and own:
        return ReconciledTip("parted", ours, new)
    if new == own:
        main, other = sorted((ours, theirs), key=lambda tip: _rank(store, tip), reverse=True)
    else:
        main, other = (theirs, ours) if new else (ours, theirs)
    return ReconciledTip("joined", joined_commit(store, main, other), new)


def contains_tip(store: Store, tip: str, other: str) -> bool:
    """Whether the history of a tip leads to another one without leaving turns of it aside.

    What was merged stands behind the second parent of a commit, and its turns are those of another branch.
    """
    return store.repo.is_ancestor(other, tip) and (
        _is_contained(store, other, tip) or not has_own_turns(store, other, tip)
    )


def _is_contained(store: Store, commit: str, tip: str) -> bool:
    return any(found.id == commit for found in store.repo.first_parents(tip))


def has_own_turns(store: Store, tip: str, other: str) -> bool:
    """Whether a tip has turns, or more of one, that the other lacks.

    Two machines that recorded one transcript have other commits and the same folders of turns.
    """
    for commit, message in store.history(tip):
        if _is_contained(store, commit, other):
            return False
        if message.get("Event") not in TURNLESS:
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
    """What goes on from a commit has all turns that were closed there, as bare as they were: another machine may say
    otherwise."""
    if _lacks_turns(store, turn_folders(store, tip), turn_folders(store, before), -1):
        raise DamageError("it continues the conversation here, but without some of its turns")
    if store.state(tip).rules.get("redact") and not store.state(before).rules.get("redact"):
        raise DamageError("it marks lines as redacted that are not redacted here")


def turn_folders(store: Store, tip: str) -> list[tuple[str, str]]:
    """The folders of all turns as of a commit, in order: each name and its tree."""
    return [(path.rpartition("/")[2], oid) for path, oid in store.turn_folders(tip).items()]


def _is_partial(store: Store, part: str, whole: str) -> bool:
    """Whether one folder holds a turn so far, and the other the same turn with what came later."""
    found = store.repo.files(whole)
    for path, (oid, _) in store.repo.files(part).items():
        if path == layout.CELLS:  # a function of the lines
            continue
        other = found.get(path, ("", False))[0]
        grows = path == layout.BODY or path.startswith(layout.SUBAGENTS + "/")
        if not other or (other != oid and not (grows and store.repo.blob(other).startswith(store.repo.blob(oid)))):
            return False
    return True


def _rank(store: Store, tip: str) -> tuple[bool, str, int, str]:
    """Of two tips with the same turns the one that has the lines behind them, too, is the greater one."""
    return store.tail(tip) != b"", store.state(tip).ended, store.commit(tip).time, tip


def joined_commit(store: Store, main: str, other: str) -> str:
    """The commit that goes on from both, with the turns of the first: no ref leads to it yet."""
    ours, theirs = store.state(main), store.state(other)
    found = shared_turns.merge_base(store, main, other)
    base = store.state(found) if found else None
    if base is None or base.id != ours.id:
        # Nothing is known of a beginning that both had: whatever one of them says stands against nothing.
        found, base = "", Session(ours.id, ours.agent_id, project=theirs.project, transcript=theirs.transcript)
    later = max((store.commit(tip).time, tip) for tip in (main, other))[1]
    state = _joined_state(base, ours, theirs, theirs_is_later=later == other)
    known = base.unified if found else None
    side: Side = "theirs" if later == other else "ours"
    state = replace(state, unified=merge_decisions.join_program_states(known, ours.unified, theirs.unified, side))
    pad = pad_lists.joined_changes(store, found, main, other)
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
