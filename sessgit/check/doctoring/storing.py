"""The store's own files: indexes, leftovers of killed commands, permissions, packing."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from sessgit.check.doctoring import unfinished
from sessgit.check.doctoring.context import Ailment, Patient
from sessgit.errors import SessgitError, StoreError
from sessgit.model import humanize
from sessgit.model.finding import Finding
from sessgit.store import locks, maintenance, refs
from sessgit.store import store as stores
from sessgit.store.packing import schedule
from sessgit.store.secrets import denylist
from sessgit.store.sqlite import cache_file

_DAY = 86_400.0
_LARGE = 50 << 20
_OVER = 1.5
_WAIT = 10.0
_FIX = "sessgit doctor --fix"


def check(patient: Patient) -> Iterator[Ailment]:
    """What is wrong with the store's files; what is stored in them, `verify` checks."""
    yield from _whole(patient)
    yield from _permissions(patient)
    if patient.index is not None:
        yield from _indexes(patient)
    yield from _leftovers(patient)
    yield from unfinished.check(patient)
    yield from _packing(patient)


def _whole(patient: Patient) -> Iterator[Ailment]:
    """The folders and the settings that git needs."""
    beside, lacks = patient.beside, list[str]()
    lacks += [path.name for path in (beside.spool, beside.state, beside.locks) if not path.is_dir()]
    lacks += [] if beside.key.exists() else ["key"]
    if lacks:
        what = f"{', '.join(lacks)} {'is' if len(lacks) == 1 else 'are'} missing"
        if "key" in lacks and beside.forbidden.exists():
            what += ", and without the key, purged values are no longer blocked"
        yield Ailment(Finding("wrong", "store", str(patient.store), what, _FIX), lambda: _completed(patient))
    try:
        said = (patient.store / "config").read_text("utf-8", "replace").lower().replace(" ", "").replace("\t", "")
    except FileNotFoundError:
        what = "git's settings of the store are missing"
        yield Ailment(
            Finding("damage", "store", str(patient.store / "config"), what, _FIX), lambda: _completed(patient)
        )
        return
    except OSError as error:
        mend = f"chmod u+rw {patient.store / 'config'}"
        what = f"it cannot be read: {error.strerror}"
        yield Ailment(Finding("damage", "store", str(patient.store / "config"), what, mend))
        return
    if not all(line in said.split("\n") for line in ("bare=true", "auto=0", "logallrefupdates=false")):
        what = "the store's git settings differ from those that sessgit writes: git may pack or log by itself"
        cure = (lambda: _completed(patient)) if "bare=true" in said.split("\n") else None
        yield Ailment(Finding("wrong", "store", str(patient.store / "config"), what, _FIX if cure else ""), cure)


def _completed(patient: Patient) -> str:
    beside, again = patient.beside, 0
    if not beside.key.exists() and beside.forbidden.exists():
        again = denylist.keep_without_fingerprints(beside)
    stores.create_store(patient.store)
    if not again:
        return "the store is complete again"
    many = humanize.format_count(again, "value")
    return f"the store has a new key: {many} must be purged again"


# Who may read it


def _permissions(patient: Patient) -> Iterator[Ailment]:
    try:
        owner = patient.store.stat().st_uid
    except OSError:
        return
    if owner != os.geteuid():
        yield Ailment(
            Finding(
                "wrong",
                "permissions",
                str(patient.store),
                "the store belongs to another user",
                f"chown -R {os.geteuid()} {patient.store}",
            )
        )
        return
    wrong = [(path, mode) for path, mode in _private(patient) if _is_open(path, mode)]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        what = f"other users may read or write {wrong[0][0].relative_to(patient.store.parent)}{more}"
        yield Ailment(Finding("wrong", "permissions", str(patient.store), what, _FIX), lambda: _closed(wrong))


def _private(patient: Patient) -> Iterator[tuple[Path, int]]:
    """What must be its owner's alone. What lies in such a folder is out of reach all the same, and said once."""
    beside = patient.beside
    yield patient.store, 0o700
    for folder in (beside.spool, beside.state, beside.locks):
        yield folder, 0o700
    files = (
        beside.config, beside.index, beside.text, beside.key, beside.latest, beside.journal, beside.log,
        beside.log.with_name("log.1"),
    )  # fmt: skip
    for path in (*files, *beside.state.glob("*.json"), *beside.spool.glob("*.json")):
        yield path, 0o600


def _is_open(path: Path, mode: int) -> bool:
    try:
        state = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(state.st_mode) and bool(stat.S_IMODE(state.st_mode) & 0o077 & ~mode)


def _closed(wrong: Sequence[tuple[Path, int]]) -> str:
    for path, mode in wrong:
        try:
            path.chmod(mode)
        except FileNotFoundError:  # an event that was recorded meanwhile
            continue
        except OSError as error:
            raise StoreError(f"cannot change {path}: {error.strerror}") from error
    return f"{humanize.format_count(len(wrong), 'file')} readable only by you"


# What can be made anew


def _indexes(patient: Patient) -> Iterator[Ailment]:
    for path, what in ((patient.beside.index, "the index"), (patient.beside.text, "the full-text index")):
        why = _damage(path)
        if why:
            finding = Finding("wrong", "index", str(path), f"{what} is damaged: {why}", _FIX)
            yield Ailment(finding, lambda path=path, what=what: _renewed(patient, path, what))  # type: ignore[misc]
    assert patient.index is not None
    held, known = refs.branches(patient.store), {one.name for one in patient.index.branches()}
    unread = sorted(held.keys() - known - patient.index.damaged.keys())
    repo = patient.index.open_store().repo
    for name, error in sorted(patient.index.damaged.items())[:20]:
        if name in held and repo.read_problem(held[name][0]):
            continue  # told with all that nobody can read
        yield Ailment(Finding("damage", "session", name, f"cannot read it: {error}", f"sessgit repair {name[:8]}"))
    if unread:
        branches = humanize.format_count(len(unread), "branch", "branches")
        what = f"the index lacks {branches}, {unread[0]} first"
        yield Ailment(
            Finding("wrong", "index", str(patient.beside.index), what, _FIX),
            lambda: _renewed(patient, patient.beside.index, "the index"),
        )


def _damage(path: Path) -> str:
    """What SQLite finds wrong with a file; nothing of one that is not there."""
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as db:
            said = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError:
        return ""  # somebody is at work on it
    except sqlite3.Error as error:
        return str(error)
    return "" if said == "ok" else said.partition("\n")[0]


def _renewed(patient: Patient, path: Path, what: str) -> str:
    try:
        cache_file.remove_file(path)
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {error.strerror}") from error
    return f"{what} was rebuilt"


# What killed commands left


def _leftovers(patient: Patient) -> Iterator[Ailment]:
    store, now = patient.store, patient.now
    left = maintenance.leftovers(store, now)
    if left:
        many = humanize.format_count(len(left), "file")
        what = f"{many} left by interrupted commands, {left[0].relative_to(store)} first"
        yield Ailment(Finding("wrong", "leftovers", str(store), what, "sessgit gc"), lambda: _swept(patient))
    old = [path for path in patient.beside.state.glob("push-*") if _age(path, now) > _DAY]
    if old:
        what = f"{humanize.format_count(len(old), 'folder')} left by a killed push"
        yield Ailment(Finding("wrong", "leftovers", str(patient.beside.state), what, _FIX), lambda: _removed(old))


def _swept(patient: Patient) -> str:
    with locks.maintenance_lock(patient.beside, _WAIT) as held:
        if not held:
            raise StoreError("another process is packing the store", "Try again later.")
        return f"{humanize.format_count(maintenance.delete_leftovers(patient.store, patient.now), 'file')} removed"


def _removed(folders: Sequence[Path]) -> str:
    import shutil

    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return f"{humanize.format_count(len(folders), 'folder')} removed"


def _age(path: Path, now: float) -> float:
    try:
        return now - path.lstat().st_mtime
    except OSError:
        return 0.0


# Its size


def _packing(patient: Patient) -> Iterator[Ailment]:
    loose = schedule.count_loose(patient.store).objects
    packs = len(list((patient.store / "objects" / "pack").glob("*.pack")))
    reasons = []
    if loose >= 2 * schedule.MOST_OBJECTS:
        reasons.append(f"about {loose:,} objects are not packed")
    if packs > 50:
        reasons.append(f"{packs} packs")
    if patient.index is not None:
        try:
            raw, size = patient.index.raw_size(), maintenance.count_objects(patient.store).size
        except SessgitError:
            raw = size = 0
        if raw and size > _LARGE and size > raw * _OVER:
            reasons.append(f"{humanize.format_size(size)} for {humanize.format_size(raw)} of transcripts")
    if reasons:
        yield Ailment(
            Finding(
                "note",
                "packing",
                str(patient.store),
                f"the store can be made smaller: {', '.join(reasons)}",
                "sessgit gc",
            ),
            lambda: _packed(patient),
        )


def _packed(patient: Patient) -> str:
    with locks.maintenance_lock(patient.beside, _WAIT) as held:
        if not held:
            raise StoreError("another process is packing the store", "Try again later.")
        maintenance.pack_store(patient.store, held, full=True)
    return "the store was packed"
