"""The store itself: unreadable parts, lost refs, permissions, indexes, leftovers of killed commands, packing."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

from sessgit.branch import lost_refs
from sessgit.branch.merging import interrupted
from sessgit.check import gc, status, store_checks
from sessgit.check.doctoring.context import DoctorContext
from sessgit.check.repairing import lost_objects
from sessgit.check.store_checks import FIX
from sessgit.errors import ConflictError, SessgitError, StoreError
from sessgit.model import ids
from sessgit.model.finding import Finding
from sessgit.model.humanize import format_count, format_size, quote_for_shell
from sessgit.purge import purge
from sessgit.store import (
    cache_file,
    layout,
    maintenance,
    pack_repair,
    refs,
    tempdirs,
)
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.store import Store

_DAY = 86_400.0
_LARGE = 50 << 20
_MOST_SIZE = 1.5
"""Bytes of the store per byte of transcripts above which packing helps."""
_MOST_PACKS = 50
_MOST_NAMED = 20


def check(context: DoctorContext, blocked: Sequence[Path]) -> Iterator[Finding]:
    """Return findings about the store; parts that the `blocked` folders hide are not checked."""
    missing = list(_missing_parts(context))
    yield from missing
    if missing or not (context.store / "HEAD").is_file():
        return
    packs = _in_store(context, store_checks.check_packs(context.store, context.index))
    yield from (finding for finding in packs if Path(finding.where) not in blocked)
    if context.index is not None and not blocked and not pack_repair.unreadable_packs(context.store):
        yield from _unreadable_sessions(context, context.index)
    if all(os.access(folder, os.R_OK | os.X_OK) for folder in blocked):
        yield from _missing_folders(context)
        yield from _in_store(context, store_checks.check_repository(context.paths))
        yield from _permissions(context)
        yield from _leftovers(context)
        yield from _purges(context)
        if context.index is not None:
            yield from _indexes(context, context.index)
            yield from _unfinished(context, context.index)
        yield from _packing(context)


def _in_store(context: DoctorContext, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Return findings about files of the store with their whole paths."""
    return (replace(finding, where=str(context.store / finding.where)) for finding in findings)


# Access


def check_access(context: DoctorContext, blocked: Sequence[Path]) -> Iterator[Finding]:
    """Return a finding for the `blocked` folders. There is no fix, since the permissions may be intended."""
    if blocked:
        what = "no permission to read and write there, so nothing is recorded"
        yield Finding("damage", "permissions", str(blocked[0]), what, status.unblock_command(context.store))


def _permissions(context: DoctorContext) -> Iterator[Finding]:
    try:
        owner = context.store.stat().st_uid
    except OSError:
        return
    store = str(context.store)
    if owner != os.geteuid():
        command = f"chown -R {os.geteuid()} {store}"
        yield Finding("wrong", "permissions", store, "the store belongs to another user", command)
        return
    shared = [(path, mode) for path, mode in _private_files(context) if _is_shared(path, mode)]
    if shared:
        more = f", and {len(shared) - 1} more" if len(shared) > 1 else ""
        what = f"other users may read or write {shared[0][0].relative_to(context.store.parent)}{more}"
        yield Finding("wrong", "permissions", store, what, FIX, fix=partial(_make_private, shared))


def _private_files(context: DoctorContext) -> Iterator[tuple[Path, int]]:
    """Yield the paths that only their owner may access, with their modes. Files in private folders are out of reach
    anyway, so only the most important ones are listed."""
    paths = context.paths
    yield from ((folder, 0o700) for folder in (context.store, paths.spool, paths.state, paths.locks))
    files = (
        paths.config, paths.index, paths.text, paths.key, paths.latest, paths.journal, paths.log,
        paths.log.with_name("log.1"), *paths.state.glob("*.json"), *paths.spool.glob("*.json"),
    )  # fmt: skip
    yield from ((path, 0o600) for path in files)


def _is_shared(path: Path, mode: int) -> bool:
    try:
        state = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(state.st_mode) and bool(stat.S_IMODE(state.st_mode) & 0o077 & ~mode)


def _make_private(shared: Sequence[tuple[Path, int]]) -> str:
    for path, mode in shared:
        with suppress(FileNotFoundError):  # an event that was recorded meanwhile
            _chmod(path, mode)
    return f"{format_count(len(shared), 'file')} readable only by you"


def _chmod(path: Path, mode: int) -> None:
    try:
        path.chmod(mode)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"cannot change {path}: {error.strerror}") from error


# Parts that are missing


def _missing_parts(context: DoctorContext) -> Iterator[Finding]:
    """Return findings for parts without which git sees no store: it would be taken for an empty one."""
    missing = stores.missing_parts(context.store)
    if "HEAD" in missing:
        what = "it is missing or empty, so git sees no store. All other data may be intact"
        yield Finding(
            "damage",
            "store",
            str(context.store / "HEAD"),
            what,
            FIX,
            fix=partial(store_checks.restore_head, context.paths),
        )
    if "objects" in missing:
        what = "it is missing, and it holds all recordings"
        hint = "Restore it from a backup. `sessgit doctor --fix` creates a new one, and restores what files still have."
        yield Finding(
            "damage", "store", str(context.store / "objects"), what, hint, fix=partial(_create_objects, context)
        )


def _missing_folders(context: DoctorContext) -> Iterator[Finding]:
    paths = context.paths
    if missing := [path.name for path in (paths.spool, paths.state, paths.locks) if not path.is_dir()]:
        what = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        fix = partial(store_checks.complete, paths)
        yield Finding("wrong", "store", str(context.store), what, FIX, fix=fix)


def _create_objects(context: DoctorContext) -> str:
    stores.create_store(context.store)
    return "created an empty one; run sessgit doctor --fix again to restore what files still have"


# Sessions that cannot be read


def _unreadable_sessions(context: DoctorContext, index: Index) -> Iterator[Finding]:
    """Return a finding for the conversations whose last commits cannot be read; the index may still know them."""
    store, tips = index.open_store(), refs.branches(context.store)
    with suppress(SessgitError):  # a ref whose old value is known is a finding of its own
        for lost in lost_refs.lost_refs(store):
            tips.pop(lost.ref.split("/", 2)[-1], None)
    damaged = [name for name, (tip, _) in sorted(tips.items()) if ids.is_branch(name) and store.repo.read_problem(tip)]
    sessions = list(dict.fromkeys(map(layout.session_of, damaged)))
    if sessions:
        is_one = len(sessions) == 1
        subject = "it" if is_one else f"{format_count(len(sessions), 'conversation')}, this one first,"
        what = f"{subject} cannot be read: the store lost data of {'it' if is_one else 'them'}"
        hint = f"`{FIX}` searches files, `sessgit repair {quote_for_shell(sessions[0])}` also remotes."
        yield Finding(
            "damage", "session", sessions[0], what, hint, fix=partial(_restore_sessions, context, index, sessions)
        )


def _restore_sessions(context: DoctorContext, index: Index, sessions: Sequence[str]) -> str:
    searches = [lost_objects.restore_objects(context.of_store(index), session) for session in sessions]
    count, incomplete = (sum(one.restored.total() for one in searches), sum(bool(one.lost) for one in searches))
    store_checks.reread(index)
    if not count and not incomplete:
        return "what was lost is restored"
    if not count:
        hint = f"`sessgit repair {quote_for_shell(sessions[0])}` also searches remotes."
        raise SessgitError("no file has it", hint)
    rest = f"; {format_count(incomplete, 'conversation')} still incomplete: sessgit repair" if incomplete else ""
    return f"{format_count(count, 'object')} restored from files{rest}"


# What can be computed again


def _indexes(context: DoctorContext, index: Index) -> Iterator[Finding]:
    for path, name in ((context.paths.index, "the index"), (context.paths.text, "the full-text index")):
        if damage := _database_damage(path):
            what = f"{name} is damaged: {damage}"
            yield Finding("wrong", "index", str(path), what, FIX, fix=partial(_rebuild_index, path, name))
    branches, known = refs.branches(context.store), {branch.name for branch in index.branches()}
    repo = index.open_store().repo
    for name, error in sorted(index.damaged.items())[:_MOST_NAMED]:
        if not (name in branches and repo.read_problem(branches[name][0])):  # those are reported together
            yield Finding("damage", "session", name, f"cannot read it: {error}", f"sessgit repair {name[:8]}")
    missing = sorted(branches.keys() - known - index.damaged.keys())
    if missing:
        path = context.paths.index
        what = f"the index lacks {format_count(len(missing), 'branch', 'branches')}, {missing[0]} first"
        yield Finding("wrong", "index", str(path), what, FIX, fix=partial(_rebuild_index, path, "the index"))


def _database_damage(path: Path) -> str:
    """Return what SQLite finds wrong with a database, or ``""``, also if there is none."""
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as db:
            answer = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError:
        return ""  # another process has locked it
    except sqlite3.Error as error:
        return str(error)
    return "" if answer == "ok" else answer.partition("\n")[0]


def _rebuild_index(path: Path, name: str) -> str:
    try:
        cache_file.remove_file(path)
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {error.strerror}") from error
    return f"{name} was rebuilt"


def _packing(context: DoctorContext) -> Iterator[Finding]:
    loose = maintenance.count_loose(context.store).objects
    count = len(list((context.store / "objects" / "pack").glob("*.pack")))
    reasons = []
    if loose >= 2 * maintenance.MOST_OBJECTS:
        reasons.append(f"about {loose:,} objects are not packed")
    if count > _MOST_PACKS:
        reasons.append(f"{count} packs")
    if context.index is not None:
        with suppress(SessgitError):
            raw, size = context.index.raw_size(), maintenance.count_objects(context.store).size
            if raw and size > _LARGE and size > raw * _MOST_SIZE:
                reasons.append(f"{format_size(size)} for {format_size(raw)} of transcripts")
    if reasons:
        what = f"the store can be made smaller: {', '.join(reasons)}"
        yield Finding("note", "packing", str(context.store), what, "sessgit gc", fix=partial(_collect, context))


# Leftovers of killed commands


def _leftovers(context: DoctorContext) -> Iterator[Finding]:
    state = context.paths.state
    if files := maintenance.leftovers(context.store, context.now):
        first = files[0].relative_to(context.store)
        what = f"{format_count(len(files), 'file')} left by interrupted commands, {first} first"
        yield Finding("wrong", "leftovers", str(context.store), what, "sessgit gc", fix=partial(_collect, context))
    if folders := [*tempdirs.stale_folders(), *tempdirs.stale_folders(state)]:
        what = f"{format_count(len(folders), 'temporary folder')} left by killed commands, {folders[0].name} first"
        yield Finding("wrong", "leftovers", str(folders[0].parent), what, "sessgit gc", fix=partial(_collect, context))


def _age(path: Path, now: float) -> float:
    try:
        return now - path.lstat().st_mtime
    except OSError:
        return 0.0


def _unfinished(context: DoctorContext, index: Index) -> Iterator[Finding]:
    """Return findings for lost refs, and for merges that a kill or a power loss interrupted."""
    store, state = index.open_store(), context.paths.state
    yield from store_checks.check_refs(store, index)
    if sessions := interrupted.unfinished_sessions(store):
        what = f"{format_count(len(sessions), 'conversation')} left by an interrupted merge, {sessions[0][:8]} first"
        fix = partial(_remove_unfinished, context, store)
        yield Finding("wrong", "leftovers", str(state), what, "sessgit gc", fix=fix)
    for path in sorted(state.glob("*.append")):
        if _age(path, context.now) > _DAY:
            what = f"a merge into {path.stem[:8]} was interrupted: run it again to complete it"
            yield Finding("note", "leftovers", str(path), what, "sessgit gc")


def _purges(context: DoctorContext) -> Iterator[Finding]:
    for finding in _in_store(context, store_checks.check_purges(context.paths)):
        if context.index is not None and finding.where == str(context.paths.purging):
            yield replace(finding, fix=partial(_complete_purge, context, context.index))
        else:
            yield finding


def _complete_purge(context: DoctorContext, index: Index) -> str:
    result = purge.purge_values(context.of_store(index), (), purge.PurgeProgress())
    if purge.is_pending(context.store):
        hint = "To complete it, run `sessgit purge` with the same value again."
        raise ConflictError("cannot complete the purge", hint)
    return "the purge is complete" if result.completed else "the value is not known yet: run the purge again"


def _remove_unfinished(context: DoctorContext, store: Store) -> str:
    count = interrupted.delete_unfinished(store, context.homes, context.now)
    return f"{format_count(count, 'conversation')} removed"


def _collect(context: DoctorContext) -> str:
    """Pack the store and remove leftovers, as `sessgit gc` does, but nothing that undo keeps."""
    if context.index is None:
        raise StoreError("the store cannot be opened", context.error)
    result = gc.collect(context.of_store(context.index), keep=inf)
    return f"the store was packed, {format_count(result.leftovers, 'file')} of interrupted commands removed"
