"""What a remote holds is somebody else's until it was looked at: branches, tombstones, tags."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sessgit.errors import DamageError, NewerStoreError, SessgitError
from sessgit.model import ids
from sessgit.model.address import check_tag
from sessgit.store import layout
from sessgit.store.store import Store
from sessgit.sync.outcome import SkippedItem

_OID = re.compile(r"[0-9a-f]{40}")
REMOTE_HINT = "It was not changed on the remote. Ask the person who pushed it."


def readable_branches(
    store: Store, session: str, branches: Mapping[str, str], known: Collection[str]
) -> tuple[dict[str, str], list[SkippedItem]]:
    """Those of the branches that can be read as this session's, and those that were left, with the reason.

    Tips in `known` were read before. Raises NewerStoreError where one is in a format of a later sessgit.
    """
    good, left = dict[str, str](), list[SkippedItem]()
    for branch, tip in branches.items():
        try:
            if tip not in known:
                _check_branch(store, session, tip)
            good[branch] = tip
        except NewerStoreError:
            raise
        except (SessgitError, ValueError, TypeError, KeyError, RecursionError) as error:
            left.append(SkippedItem(branch, f"cannot read the remote's copy: {error}", REMOTE_HINT))
    return good, left


def _check_branch(store: Store, session: str, tip: str) -> None:
    state = store.state(tip)
    if state.id != session or (state.agent_id and ids.session_id(state.agent_id) != session):
        raise DamageError("its state is that of another conversation")
    if store.message(tip).get("Session") != session:
        raise DamageError("its last commit is of another conversation")
    _check_turns(store, tip, state.turns)


def _check_turns(store: Store, tip: str, count: int) -> None:
    top = store.repo.entry(store.tree(tip), layout.TURNS)
    hundreds = store.repo.tree(top[0]) if top else {}
    names = dict[str, str]()
    for tree, _ in hundreds.values():
        names |= {name: oid for name, (oid, _) in store.repo.tree(tree).items()}
    if sorted(names) != [f"{number:06d}" for number in range(1, len(names) + 1)] or len(names) != count:
        raise DamageError(f"it says that it has {count} turns, but has others")
    for name, folder in names.items():
        body = store.repo.tree(folder).get(layout.BODY)
        if body is None or body[1]:
            raise DamageError(f"turn {int(name)} has no lines")


def deleted_tips(store: Store, session: str, stone: str) -> frozenset[str] | None:
    """The tips that were deleted with a session, as its tombstone says; None where it is no tombstone of it."""
    try:
        message = store.message(stone)
    except SessgitError:
        return None
    if message.get("Session") != session:
        return None
    return frozenset(tip for tip in message.all("Tip") if _OID.fullmatch(tip))


def was_deleted(store: Store, tip: str, deleted: Collection[str]) -> bool:
    """Whether a commit was deleted: it is one of the tips, or what is here of their history leads to it."""
    return tip in deleted or any(store.repo.is_ancestor(tip, other) for other in deleted)


def is_valid_tag(name: str) -> bool:
    """Whether a tag can have this name here."""
    try:
        return check_tag(name) == name
    except SessgitError:
        return False
