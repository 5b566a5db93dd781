"""Reads the lists of a scratchpad from a commit, and computes what changes them in another one."""

from __future__ import annotations

from sessgit.errors import ConflictError, StoreError
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.pad import Lists, Pad
from sessgit.store import layout
from sessgit.store.objects import Entry
from sessgit.store.store import Store

Changes = dict[str, Entry | None]
"""The new entries of a tree by path; None removes one."""
SUFFIX = ".jsonl"


def read_lists(store: Store, commit: str) -> Lists:
    """Return the lines of the lists as of a commit; files that are no lists, or unreadable, are left out."""
    out = dict[str, bytes]()
    for name, (oid, is_tree) in store.entries(commit, layout.PAD).items():
        if name.removesuffix(SUFFIX) in pads.LISTS.values() and name.endswith(SUFFIX) and not is_tree:
            try:
                out[name.removesuffix(SUFFIX)] = store.objects.blob(oid)
            except StoreError:  # of another repository, or a damaged one: git fsck tells
                continue
    return out


def read_pad(store: Store, commit: str) -> Pad:
    """Return the scratchpad as of a commit."""
    return pads.read_pad(read_lists(store, commit))


def list_changes(store: Store, commit: str, before: Lists, after: Lists) -> Changes:
    """Return the changes of the commit's tree that turn the lists `before` into `after`; raises ConflictError if
    something else has the place of a list."""
    held = store.entry(commit, layout.PAD)
    entries = store.entries(commit, layout.PAD)
    out = Changes()
    for name, data in after.items():
        if data == before.get(name, b""):
            continue
        known = entries.get(name + SUFFIX)
        if (held and not held[1]) or (known and (known[1] or name not in before)):
            path = f"{layout.PAD}/{name}{SUFFIX}" if held and held[1] else layout.PAD
            raise ConflictError(f"{path} in the store is not a list", "It came from elsewhere and was not changed.")
        out[f"{layout.PAD}/{name}{SUFFIX}"] = (store.repo.write_blob(data), False) if data else None
    return out


def inherited_changes(store: Store, commit: str, *, whole: bool = False) -> Changes:
    """Return what a fork inherits of the pad of a commit, as changes of its tree: all of it if `whole`, else what
    `pad.inherited_lists` leaves."""
    held = store.entry(commit, layout.PAD)
    if whole or held is None:
        return {layout.PAD: held}
    before = read_lists(store, commit)
    after = pads.inherited_lists(before)
    if after == before:
        return {layout.PAD: held}
    kept = store.entries(commit, layout.PAD)
    for name in before:
        kept.pop(name + SUFFIX)
        if after[name]:
            kept[name + SUFFIX] = (store.repo.write_blob(after[name]), False)
    return {layout.PAD: (store.repo.edit_tree(None, kept), True) if kept else None}


def joined_changes(store: Store, base: str, main: str, other: str) -> Entry | None:
    """Return the pad merged from two sides of one session, given their base or ``""``: lists unite; another file is
    that of the side that changed it, or of the first if both did."""
    tips = (base, main, other)
    before, ours, theirs = (store.entry(tip, layout.PAD) for tip in tips)
    if theirs in (ours, before) or (ours and not ours[1]) or (theirs and not theirs[1]):
        return ours
    if ours == before:
        return theirs
    start, mine, others = (store.entries(tip, layout.PAD) for tip in tips)
    out = dict[str, Entry]()
    for name in {*mine, *others}:
        was, one, two = start.get(name), mine.get(name), others.get(name)
        kept = two if one == was else one
        is_list = name.endswith(SUFFIX) and not any(entry and entry[1] for entry in (was, one, two))
        if is_list and was not in (one, two) and one != two:
            found = [store.objects.blob(entry[0]) if entry else b"" for entry in (was, was, one, two)]
            lines = pads.merge_lists(name.removesuffix(SUFFIX), *map(pads.split_list, found))
            both = canonical.join_lines(lines)
            kept = (store.repo.write_blob(both), False) if both else None
        if kept is not None:
            out[name] = kept
    return (store.repo.edit_tree(None, out), True) if out else None
