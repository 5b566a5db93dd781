"""The trees of commits: which turns they hold, which of them changed, and what of them cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.errors import StoreError
from sessgit.model import canonical
from sessgit.store import layout
from sessgit.store.backend import Commit
from sessgit.store.store import Store

_TOP = (layout.FORMAT_FILE, layout.STATE, layout.TAIL, layout.TURNS)


def numbers(store: Store, commit: str) -> tuple[list[int], list[str]]:
    """The numbers of the turns in the tree of a commit, and what stands there that is no turn."""
    top = store.repo.entry(store.tree(commit), layout.TURNS)
    found, wrong = list[int](), list[str]()
    for name, (oid, is_tree) in (store.repo.tree(top[0]) if top else {}).items():
        for turn, (_, is_folder) in (store.repo.tree(oid) if is_tree else {}).items():
            if (
                is_folder
                and turn.isascii()
                and turn.isdigit()
                and f"{layout.TURNS}/{name}/{turn}" == layout.turn(int(turn))
            ):
                found.append(int(turn))
            else:
                wrong.append(f"{layout.TURNS}/{name}/{canonical.one_line(turn, 40)} is no turn's folder")
        if not is_tree:
            wrong.append(f"{layout.TURNS}/{canonical.one_line(name, 40)} is no folder")
    return sorted(found), wrong


def changed(store: Store, before: str | None, tree: str) -> set[int]:
    """The numbers of the turns whose folders in a tree are others than in the commit before."""
    old_tree = store.tree(before) if before is not None else None
    old, new = (_hundreds(store, one) if one else {} for one in (old_tree, tree))
    names = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    out = set[int]()
    for name in names:
        a, b = (_entries(store, found[name]) if name in found else {} for found in (old, new))
        out |= {int(turn) for turn in a.keys() | b.keys() if a.get(turn) != b.get(turn) and turn.isdigit()}
    return out


def unreadable(store: Store, commit: Commit) -> Iterator[str]:
    """The objects at the top of a commit's tree, and the folders of its turns, that cannot be read."""
    pending = [(commit.tree, 0)]
    while pending:
        oid, depth = pending.pop()
        try:
            entries = store.repo.tree(oid)
        except StoreError:
            yield oid
            continue
        for name, (entry, is_tree) in entries.items():
            if is_tree and (name == layout.TURNS or depth):
                pending += [(entry, depth + 1)] if depth < 2 else []
            elif not is_tree and not depth and name in _TOP:
                try:
                    store.repo.blob(entry)
                except StoreError:
                    yield entry


def _hundreds(store: Store, tree: str) -> dict[str, str]:
    entry = store.repo.entry(tree, layout.TURNS)
    return {name: oid for name, (oid, _) in store.repo.tree(entry[0]).items()} if entry else {}


def _entries(store: Store, oid: str) -> dict[str, str]:
    return {name: found for name, (found, _) in store.repo.tree(oid).items()}
