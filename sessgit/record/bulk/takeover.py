"""What was gathered, brought into the store: the pack first, then the refs, all or none, then what is derived."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sessgit.errors import ROOM, MovedError, StoreError
from sessgit.record.bulk.gathering import PACK_NAME, RecordedTask
from sessgit.store import layout, transaction
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.packing.pack_file import is_whole_index, pack_matches_index
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_FEW_REFS = 4
"""So many refs are moved one by one: starting git would take longer."""


def take_over(store: Store, index: Index, found: RecordedTask) -> bool:
    """Whether the sessions are in the store now; if not, nothing is.

    It is not where another session that is there now, and was unknown to whoever recorded these, may be one of their
    family, or where somebody else has just recorded one of them. The caller keeps others from pruning.
    """
    if any(index.with_prompt(prompt) for prompt in found.asked):
        return False
    if found.pack:
        _install_pack(store, found)
    try:
        _make_refs(store, found.refs)
    except MovedError:
        return False
    for path in StorePaths(found.folder).state.glob("*.json"):
        with suppress(OSError):  # without it the file is read from its beginning
            path.replace(store.beside.state / path.name)
    index.add_rows(found.folder)
    return True


def _install_pack(store: Store, found: RecordedTask) -> None:
    """Puts the pack where git finds it; git looks for the index, so that comes last."""
    packs = store.path / "objects" / "pack"
    index = packs / f"pack-{found.pack}.idx"
    try:
        packs.mkdir(mode=0o700, exist_ok=True)
        was_there = index.exists()
        if was_there and _is_whole_pack(index):
            return  # an import that was interrupted had come so far
        for end in (".pack", ".idx"):
            (found.folder / PACK_NAME).with_suffix(end).replace(index.with_suffix(end))
    except OSError as error:
        raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
    if was_there:
        store.repo.forget()  # it may believe in what was no pack


def _is_whole_pack(index: Path) -> bool:
    """Whether the index is whole, and its pack there: one without the other holds nothing."""
    try:
        listed = index.read_bytes()
        return is_whole_index(listed) and pack_matches_index(index.with_suffix(".pack"), listed)
    except OSError:
        return False


def _make_refs(store: Store, refs: Mapping[str, str]) -> None:
    """Makes all refs or none; one by one where they are few, a session's side branches before its head."""
    moves = [
        Move(ref, None, tip) for ref, tip in sorted(refs.items(), key=lambda item: (not _is_side_ref(item[0]), item))
    ]
    if len(moves) <= _FEW_REFS:
        for move in moves:
            store.repo.move(move.ref, None, move.new)
        return
    try:
        transaction.move_all(store.path, moves, lasting=False)
    except StoreError as error:
        if isinstance(error, MovedError) or shutil.which("git"):
            raise
        for move in moves:
            store.repo.move(move.ref, None, move.new)


def _is_side_ref(ref: str) -> bool:
    return layout.is_side_branch(ref.removeprefix(layout.HEADS))
