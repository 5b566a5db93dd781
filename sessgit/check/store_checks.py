"""The store's own files and refs, as `verify` and `doctor` both check them.

A finding about a file has its path in the store as the place. Each has the fix that `doctor --fix` applies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sessgit.branch import lost_refs
from sessgit.errors import SessgitError, StoreError
from sessgit.model import ids
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import EVENTS, Message
from sessgit.model.finding import Finding
from sessgit.model.humanize import format_count, quote_for_shell
from sessgit.model.ids import is_tag
from sessgit.purge import denied_values
from sessgit.store import (
    layout,
    object_scan,
    objects,
    operations,
    private_files,
    refs,
    secret_filter,
    settings,
    tempdirs,
)
from sessgit.store import store as stores
from sessgit.store.backend import AUTHOR
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.object_scan import GitObject
from sessgit.store.store import Store

FIX = "sessgit doctor --fix"
_MOST_LINES = 20
_KEY_SIZE = 32
_KEPT_NAME = re.compile(r"[0-9a-f]{8}-[1-9][0-9]{0,9}")
_OID = re.compile("[0-9a-f]{40}")
_GIT_SETTINGS = ("bare=true", "auto=0", "logallrefupdates=false", "denydeletes=true")
_PACK_FAULTS = {
    "index": "its index is missing or damaged", "cut": "it was truncated, or does not match its index",
    "lost": "the pack is gone, only its index is left",
}  # fmt: skip


# Packs


def check_packs(store: Path, index: Index | None) -> Iterator[Finding]:
    """Return findings for packs that git cannot use."""
    for path in object_scan.unreadable_packs(store):
        what, hint = "no permission to read it, so its contents seem to be missing", quote_for_shell(str(path))
        fix = partial(_make_readable, path) if path.is_file() else None
        yield Finding("damage", "permissions", path.relative_to(store).as_posix(), what, f"chmod u+rX {hint}", fix=fix)
    for broken in object_scan.broken_packs(store):
        if broken.fault != "closed":
            fix = partial(_remove_index if broken.fault == "lost" else _mend_pack, store, index, broken.path)
            what = f"git cannot use it: {_PACK_FAULTS[broken.fault]}"
            yield Finding("damage", "pack", broken.path.relative_to(store).as_posix(), what, FIX, fix=fix)


def _make_readable(path: Path) -> str:
    try:
        path.chmod(path.stat().st_mode | 0o400)
    except OSError as error:
        raise StoreError(f"cannot change {path}: {error.strerror}") from error
    return "it is readable"


def _mend_pack(store: Path, index: Index | None, path: Path) -> str:
    mended = mend_packs(Store(store))
    if any(one.path == path for one in object_scan.broken_packs(store)):
        raise StoreError("the pack is also damaged", "`sessgit repair` restores what files and remotes have.")
    reread(index)
    return f"{format_count(mended.total(), 'object')} readable again"


def mend_packs(store: Store) -> Counter[str]:
    """Make missing and damaged pack indexes again, and write the intact objects of truncated packs to the store;
    unusable packs go to `state/damaged/`. Return the number of objects restored from each kind of source."""
    restored = Counter[str]()
    for broken in object_scan.broken_packs(store.path):
        if broken.fault == "index":
            with suppress(StoreError):  # the pack is damaged, too: its objects are searched elsewhere
                restored["a pack whose index was rebuilt"] += object_scan.make_index(store.path, broken.path)
        elif broken.fault == "cut":
            with tempdirs.make_folder("repair-", store.paths.state) as folder:
                intact = list(object_scan.salvage_objects(broken.path, folder / "store"))
            missing = [one for one in intact if store.repo.read_problem(one.id)]
            write_objects(store, missing)
            object_scan.quarantine_pack(store.path, broken.path)
            restored["a truncated pack"] += len(missing)
    store.repo.refresh_packs()
    return restored


def write_objects(store: Store, objects: Sequence[GitObject]) -> None:
    """Write objects to the store, where damaged ones of their names make room."""
    for one in objects:
        object_scan.write_loose_object(store.path, one, store.paths.state / "damaged")


def _remove_index(store: Path, index: Index | None, path: Path) -> str:
    object_scan.quarantine_pack(store, path)
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
    for ref in refs.refs_without_id(store.path):
        if ref in lost:
            yield Finding("damage", "ref", ref, "the ref has no object id", FIX, fix=fix)
        else:
            hint = f"`sessgit repair {quote_for_shell(layout.session_of_ref(ref))}` records its file again."
            yield Finding("damage", "ref", ref, "it has no object id, and its old value is unknown", hint)
    for number in refs.invalid_lines(store.path)[:_MOST_LINES]:
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
        lost = secret_filter.keep_without_fingerprints(paths)
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
        secret_filter.denied_values(paths)
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


# Refs, tags and the journal


def shared_findings(store: Store) -> Iterator[Finding]:
    """Yield the findings about what sessions share: packs, refs, the journal, and files next to the repository."""
    yield from check_packs(store.path, None)
    yield from check_refs(store, None)
    current = refs.read_all(store.path)
    for ref, oid in sorted(current.items()):
        if ref.startswith(layout.BRANCH_SPACES):
            yield from _branch_findings(ref, oid, current)
        elif ref.startswith(layout.TAGS):
            yield from _tag_findings(store, ref, oid)
        elif ref.startswith(layout.DELETED):
            yield from _tombstone_findings(store, ref, oid)
        elif ref.startswith(layout.KEEP):
            yield from _kept_findings(store, ref, oid)
        elif ref.startswith(layout.REMOTES):
            yield from _remote_findings(store, ref, oid)
        else:
            yield Finding("note", "ref", ref, "unknown ref; it is ignored")
    yield from check_repository(store.paths)
    yield from check_settings(store.paths)
    yield from _journal_findings(store.paths)
    yield from check_purges(store.paths)
    yield from _purged_commits(store)


def kept_tips(store: Store) -> dict[str, dict[str, str]]:
    """Return by session its readable commits that undo or a tag keeps, by their refs."""
    tips: dict[str, dict[str, str]] = {}
    kept = {**refs.read_all(store.path, layout.KEEP), **refs.read_all(store.path, layout.TAGS)}
    for ref, oid in sorted(kept.items()):
        with suppress(SessgitError):
            commit = store.repo.peel(oid)
            if commit and (session := store.message(commit).get("Session")):
                tips.setdefault(session, {})[ref] = commit
    return tips


def _branch_findings(ref: str, oid: str, current: Mapping[str, str]) -> Iterator[Finding]:
    name = ref.removeprefix(layout.HEADS).removeprefix(layout.ARCHIVE)
    session = layout.session_of(name)
    if not ids.is_branch(name):
        yield Finding("wrong", "ref", ref, "not a valid name for a branch of a session")
    elif layout.head_ref(session) not in current and layout.archive_ref(session) not in current:
        hint = f"sessgit repair {quote_for_shell(session)}"
        yield Finding("wrong", "ref", ref, "a side branch whose session has no head", hint)
    if ref.startswith(layout.ARCHIVE) and current.get(layout.head_ref(name), oid) != oid:
        yield Finding("note", "ref", ref, "a live branch has another last commit, which takes precedence")


def _kept_findings(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    if not _KEPT_NAME.fullmatch(ref.removeprefix(layout.KEEP)):
        yield Finding("wrong", "ref", ref, "not a valid name for a kept tip")
    elif store.repo.read_problem(oid):
        yield Finding("damage", "object", ref, f"its undo data is missing: object {oid}", "", (oid,))


def _remote_findings(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    if layout.split_ref(ref)[0] not in layout.REF_SPACES:
        yield Finding("note", "ref", ref, "it belongs to no remote")
    elif store.repo.read_problem(oid):
        folder, name = quote_for_shell(str(store.path)), quote_for_shell(ref)
        hint = f"`git -C {folder} update-ref -d {name}`, then `sessgit pull`"
        yield Finding("damage", "object", ref, f"an object of a remote is missing here: object {oid}", hint, (oid,))


def _tag_findings(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    name = ref.removeprefix(layout.TAGS)
    delete, commit = f"sessgit tag --delete {quote_for_shell(name)}", store.repo.peel(oid)
    if not is_tag(name):
        yield Finding("wrong", "tag", ref, "an address cannot name this tag", delete)
    if commit is None:
        hint = f"It is restored with its conversation: `{FIX}`. To give it up: `{delete}`"
        yield Finding("damage", "tag", ref, f"it does not point to a commit: object {oid}", hint, (oid,))
        return
    with suppress(SessgitError):
        message = store.message(commit)
        if message.get("Session") and message.get("Event") in EVENTS:
            return
    yield Finding("wrong", "tag", ref, "it points to a commit of no session")


def _tombstone_findings(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    try:
        commit = store.commit(oid)
    except SessgitError:
        yield Finding("damage", "object", ref, f"the tombstone is missing: object {oid}", "", (oid,))
        return
    tips = [("Tip", tip) for tip in store.message(oid).all("Tip") if _OID.fullmatch(tip)]
    message = Message("deleted", (("Session", ref.removeprefix(layout.DELETED)), *tips))
    data = objects.encode_commit(objects.EMPTY_TREE, [], AUTHOR, commit.time, messages.format_message(message))
    if not tips or objects.object_id("commit", data) != oid:
        yield Finding("wrong", "ref", ref, "it is not a tombstone of that session")


def _journal_findings(paths: StorePaths) -> Iterator[Finding]:
    name = paths.journal.name
    try:
        operations.read(paths)
    except SessgitError as error:
        yield Finding("damage", "operations", name, str(error), "Move it away: a new one is created.")
    parsed = [operations.parse_line(line) for line in read(paths.journal).split(b"\n") if line]
    whole = [one for one in parsed if one is not None]
    if count := len(parsed) - len(whole):
        lines = "a line" if count == 1 else f"{count} lines"
        yield Finding("note", "operations", name, f"{lines} cannot be read, so those operations cannot be undone")
    known = [one.id for one in whole]
    if len(set(known)) < len(known) or not all(re.fullmatch("[0-9a-f]{8}", one) for one in known):
        what = "operations have no id, or the same id: undo may revert the wrong one"
        yield Finding("wrong", "operations", name, what)
    moved = (oid for one in whole for move in one.moves for oid in (move.old, move.new) if oid is not None)
    if not all(map(_OID.fullmatch, moved)):
        what = "an operation moved a ref from or to an object that is not a commit"
        yield Finding("wrong", "operations", name, what)


def _purged_commits(store: Store) -> Iterator[Finding]:
    """Yield findings for commits that a purge removed and that are back."""
    rewritten = store.paths.rewritten
    lines = read(rewritten).decode("ascii", "replace").splitlines()
    pairs = [re.fullmatch("([0-9a-f]{40}) ([0-9a-f]{40})", line) for line in lines]
    if not all(pairs):
        what = "a line is not a pair of commits: purged values may return from a remote"
        yield Finding("wrong", "purge", f"state/{rewritten.name}", what)
    if back := [pair[1] for pair in pairs if pair and store.repo.has(pair[1])]:
        what = f"{len(back)} of the commits that a purge removed {'is' if len(back) == 1 else 'are'} back"
        yield Finding("wrong", "purge", back[0], what, "`sessgit gc --prune` removes unreachable objects.")
