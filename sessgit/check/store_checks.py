"""The store's own files and refs, as `verify` and `doctor` both check them.

A finding about a file has its path in the store as the place. Each has the fix that `doctor --fix` applies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sessgit.branch import lost_refs
from sessgit.check.repairing import broken_packs
from sessgit.errors import SessgitError, StoreError
from sessgit.model.finding import Finding
from sessgit.model.humanize import format_count, quote_for_shell
from sessgit.purge import denied_values
from sessgit.store import denylist, layout, pack_repair, packed_refs, private_files, refs, settings
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

FIX = "sessgit doctor --fix"
_MOST_LINES = 20
_KEY_SIZE = 32
_GIT_SETTINGS = ("bare=true", "auto=0", "logallrefupdates=false", "denydeletes=true")
_PACK_FAULTS = {
    "index": "its index is missing or damaged", "cut": "it was truncated, or does not match its index",
    "lost": "the pack is gone, only its index is left",
}  # fmt: skip


# Packs


def check_packs(store: Path, index: Index | None) -> Iterator[Finding]:
    """Return findings for packs that git cannot use."""
    for path in pack_repair.unreadable_packs(store):
        what, hint = "no permission to read it, so its contents seem to be missing", quote_for_shell(str(path))
        fix = partial(_make_readable, path) if path.is_file() else None
        yield Finding("damage", "permissions", _place(store, path), what, f"chmod u+rX {hint}", fix=fix)
    for broken in pack_repair.broken_packs(store):
        if broken.fault != "closed":
            fix = partial(_remove_index if broken.fault == "lost" else _mend_pack, store, index, broken.path)
            what = f"git cannot use it: {_PACK_FAULTS[broken.fault]}"
            yield Finding("damage", "pack", _place(store, broken.path), what, FIX, fix=fix)


def _place(store: Path, path: Path) -> str:
    return path.relative_to(store).as_posix()


def _make_readable(path: Path) -> str:
    try:
        path.chmod(path.stat().st_mode | 0o400)
    except OSError as error:
        raise StoreError(f"cannot change {path}: {error.strerror}") from error
    return "it is readable"


def _mend_pack(store: Path, index: Index | None, path: Path) -> str:
    mended = broken_packs.mend_packs(Store(store))
    if any(one.path == path for one in pack_repair.broken_packs(store)):
        raise StoreError("the pack is also damaged", "`sessgit repair` restores what files and remotes have.")
    reread(index)
    return f"{format_count(mended.total(), 'object')} readable again"


def _remove_index(store: Path, index: Index | None, path: Path) -> str:
    pack_repair.quarantine_pack(store, path)
    reread(index)
    return "the old index is in state/damaged"


def reread(index: Index | None) -> None:
    """Make the index read again what was damaged before."""
    if index is not None:
        index.open_store().repo.refresh_packs()
        index.damaged.clear()
        index.sync()


# Refs


def check_refs(store: Store, index: Index | None) -> Iterator[Finding]:
    """Return findings for refs that are gone and no command removed, and for what in their files is no ref."""
    fix, lost = partial(_restore_refs, store, index), set[str]()
    with suppress(SessgitError):  # an unreadable journal is a finding of its own
        lost = {one.ref for one in lost_refs.lost_refs(store)}
        yield from (replace(one, fix=fix) for one in lost_refs.lost_ref_findings(store))
    for ref in packed_refs.refs_without_id(store.path):
        if ref in lost:
            yield Finding("damage", "ref", ref, "the ref has no object id", FIX, fix=fix)
        else:
            hint = f"`sessgit repair {quote_for_shell(layout.session_of_ref(ref))}` records its file again."
            yield Finding("damage", "ref", ref, "it has no object id, and its old value is unknown", hint)
    for number in packed_refs.invalid_lines(store.path)[:_MOST_LINES]:
        what = f"line {number} is not a ref, so git cannot move any"
        yield Finding("damage", "ref", refs.PACKED, what, FIX, fix=fix)


def _restore_refs(store: Store, index: Index | None) -> str:
    count = lost_refs.restore_lost(store)
    reread(index)
    return f"{format_count(count, 'ref')} restored"


# Files


def check_repository(paths: StorePaths) -> Iterator[Finding]:
    """Return findings for HEAD, git's settings of the store, and the key."""
    fix = partial(complete, paths)
    if read(paths.store / "HEAD") != stores.HEAD:
        what = "it does not name the branch that must never exist"
        yield Finding("wrong", "store", "HEAD", what, FIX, fix=partial(restore_head, paths))
    yield from _check_git_settings(paths, fix)
    if not (key := read(paths.key)):
        what = "the key is missing: redacted lines can no longer be proved"
        what += ", and purged values are no longer blocked" if paths.forbidden.exists() else ""
        hint = f"Restore it from a copy of the store. `{FIX}` creates a new one for later secrets."
        yield Finding("damage", "key", "key", what, hint, fix=fix)
    elif len(key) != _KEY_SIZE:
        what = f"the key is not {_KEY_SIZE} bytes long: redacted lines can no longer be proved"
        yield Finding("damage", "key", "key", what, "Restore it from a copy of the store.")


def _check_git_settings(paths: StorePaths, fix: Callable[[], str]) -> Iterator[Finding]:
    config = paths.store / "config"
    try:
        text = config.read_text("utf-8", "replace").lower()
    except FileNotFoundError:
        yield Finding("damage", "store", "config", "git's settings of the store are missing", FIX, fix=fix)
        return
    except OSError as error:
        command = f"chmod u+rw {quote_for_shell(str(config))}"
        yield Finding("damage", "store", "config", f"it cannot be read: {error.strerror}", command)
        return
    settings = {re.sub(r"\s", "", line) for line in text.split("\n")}
    if missing := [line for line in _GIT_SETTINGS if line not in settings]:
        what = f"git's settings lack {', '.join(missing)}: git may pack or log by itself"
        is_bare = "bare=true" in settings
        yield Finding("wrong", "store", "config", what, FIX if is_bare else "", fix=fix if is_bare else None)


def restore_head(paths: StorePaths) -> str:
    """Write HEAD again."""
    private_files.write_private(paths.store / "HEAD", stores.HEAD, durable=True)
    return "it is restored; run sessgit doctor again to check the rest"


def complete(paths: StorePaths) -> str:
    """Create what the store lacks: its folders, git's settings, and the key."""
    lost = 0
    if not paths.key.exists() and paths.forbidden.exists():
        lost = denylist.keep_without_fingerprints(paths)
    stores.create_store(paths.store)
    if not lost:
        return "the store is complete again"
    return f"the store has a new key: {format_count(lost, 'value')} must be purged again"


def check_settings(paths: StorePaths) -> Iterator[Finding]:
    """Return a finding for invalid settings of the store."""
    try:
        settings.load_settings(paths)
    except SessgitError as error:
        hint = error.hint or "`sessgit config` lists the valid settings."
        yield Finding("wrong", "settings", "config.toml", str(error), hint)


def check_purges(paths: StorePaths) -> Iterator[Finding]:
    """Return findings for an unfinished purge, and for purged values that are no longer blocked."""
    try:
        denylist.denied_values(paths)
    except SessgitError as error:
        yield Finding("wrong", "purge", f"state/{paths.forbidden.name}", str(error), error.hint)
    yield from denied_values.denied_value_findings(paths)
    if paths.purging.exists():
        what = "a purge was interrupted: the value may still be stored"
        yield Finding("wrong", "purge", f"state/{paths.purging.name}", what, FIX)


def read(path: Path) -> bytes:
    """Return the content of a file, nothing if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
