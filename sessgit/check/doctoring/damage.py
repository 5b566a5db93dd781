"""What of the repository itself is gone or cannot be used: its bare bones, packs, commits, and who may write there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sessgit.branch import lost_refs
from sessgit.check import repair
from sessgit.check.doctoring.context import Ailment, Patient
from sessgit.check.repairing import rebuild
from sessgit.errors import SessgitError, StoreError
from sessgit.model import humanize, ids
from sessgit.model.finding import Finding
from sessgit.record.context import RecordContext
from sessgit.store import layout, refs
from sessgit.store import store as stores
from sessgit.store.damage import packs
from sessgit.store.store import Store

_FIX = "sessgit doctor --fix"
_TOLD = {
    "index": "its index is missing or damaged, so git cannot read it",
    "cut": "it was truncated, or does not match its index, so git cannot read it",
    "lost": "the pack is gone, only its index is left",
}


def bones(patient: Patient) -> Iterator[Ailment]:
    """What a store without which is none: it would be taken for one in which nothing is recorded yet."""
    lacks = stores.missing_parts(patient.store)
    if "HEAD" in lacks:
        what = "it is missing or empty, so git sees no store. All other data may be intact"
        finding = Finding("damage", "store", str(patient.store / "HEAD"), what, _FIX)
        yield Ailment(finding, lambda: _headed(patient))
    if "objects" in lacks:
        what = "it is missing, and it holds all recordings"
        mend = "Restore it from a backup. `sessgit doctor --fix` creates a new one, and restores what files still have."
        finding = Finding("damage", "store", str(patient.store / "objects"), what, mend)
        yield Ailment(finding, lambda: _begun(patient))


def check(patient: Patient) -> Iterator[Ailment]:
    """What keeps the store from being written or read."""
    yield from may_not(patient)
    closed = packs.unreadable_packs(patient.store)
    for path in (path for path in closed if path.is_file()):
        finding = Finding(
            "damage", "permissions", str(path), "no permission to read it, so its contents seem to be missing",
            f"chmod u+r {humanize.quote_for_shell(str(path))}",
        )  # fmt: skip
        yield Ailment(finding, lambda path=path: _opened(path))  # type: ignore[misc]
    for broken in packs.broken_packs(patient.store):
        if broken.fault != "closed":
            finding = Finding("damage", "pack", str(broken.path), _TOLD[broken.fault], _FIX)
            cure = _unpacked if broken.fault == "lost" else _mended
            yield Ailment(finding, lambda path=broken.path, cure=cure: cure(patient, path))  # type: ignore[misc]
    if patient.index is not None and not closed and not shut(patient):
        yield from _unread(patient, patient.index.open_store())


def may_not(patient: Patient) -> Iterator[Ailment]:
    """What may not be read or written. Nothing mends it: somebody may want it so."""
    found = shut(patient)
    if found:
        what = "no permission to read and write there, so nothing is recorded"
        mend = f"chmod -R u+rwX {humanize.quote_for_shell(str(patient.store))}"
        yield Ailment(Finding("damage", "permissions", str(found[0]), what, mend))


def shut(patient: Patient) -> list[Path]:
    """The folders that must be read and written whenever anything is recorded, and may not be."""
    beside, store = patient.beside, patient.store
    objects, heads = store / "objects", store / "refs" / "heads"
    folders = (store, beside.spool, beside.state, beside.locks, objects, objects / "pack", heads.parent, heads)
    return [path for path in folders if _is_folder(path) and not os.access(path, os.R_OK | os.W_OK | os.X_OK)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # what it is in may not be read, which is told
        return False


def _unread(patient: Patient, store: Store) -> Iterator[Ailment]:
    """The conversations whose last commits nobody can read, which the index may know all the same."""
    tips = refs.branches(patient.store)
    with suppress(SessgitError):  # those of which it is known what they held are told as refs
        for one in lost_refs.lost_refs(store):
            tips.pop(one.ref.split("/", 2)[-1], None)
    torn = [name for name, (tip, _) in sorted(tips.items()) if ids.is_branch(name) and store.repo.read_problem(tip)]
    sessions = list(dict.fromkeys(layout.session_of(name) for name in torn))
    if sessions:
        many = (
            "it" if len(sessions) == 1 else f"{humanize.format_count(len(sessions), 'conversation')}, this one first,"
        )
        what = f"{many} cannot be read: the store lost data of {'it' if len(sessions) == 1 else 'them'}"
        mend = f"`{_FIX}` searches files, `sessgit repair {humanize.quote_for_shell(sessions[0])}` also remotes."
        finding = Finding("damage", "session", sessions[0], what, mend)
        yield Ailment(finding, lambda: _brought_back(patient, store, sessions))


# Cures


def _headed(patient: Patient) -> str:
    stores.write_private(patient.store / "HEAD", stores.HEAD, lasting=True)
    return "it is restored; run sessgit doctor again to check the rest"


def _begun(patient: Patient) -> str:
    stores.create_store(patient.store)
    return "created an empty one; run sessgit doctor --fix again to restore what files still have"


def _opened(path: Path) -> str:
    try:
        path.chmod(path.stat().st_mode | 0o400)
    except OSError as error:
        raise StoreError(f"cannot change {path}: {error.strerror}") from error
    return "it is readable"


def _mended(patient: Patient, path: Path) -> str:
    done = list(rebuild.mend_packs(Store(patient.store)))
    if any(one.path == path for one in packs.broken_packs(patient.store)):
        raise StoreError("the pack is also damaged", "`sessgit repair` restores what files and remotes have.")
    _forgotten(patient)
    return f"{humanize.format_count(sum(one.objects for one in done), 'object')} readable again"


def _unpacked(patient: Patient, path: Path) -> str:
    packs.quarantine_pack(patient.store, path)
    _forgotten(patient)
    return "the old index is in state/damaged"


def _forgotten(patient: Patient) -> None:
    if patient.index is not None:
        patient.index.open_store().repo.forget()
        patient.index.damaged.clear()
        patient.index.sync()


def _brought_back(patient: Patient, store: Store, sessions: Sequence[str]) -> str:
    assert patient.index is not None
    world = RecordContext(store, patient.index, patient.config, patient.privacy, patient.env, lambda: patient.now)
    count, torn = repair.bring_back(world, sessions)
    _forgotten(patient)
    if not count and not torn:
        return "what was lost is restored"
    if not count:
        raise SessgitError(
            "no file has it", f"`sessgit repair {humanize.quote_for_shell(sessions[0])}` also searches remotes."
        )
    left = f"; {humanize.format_count(torn, 'conversation')} still incomplete: sessgit repair" if torn else ""
    return f"{humanize.format_count(count, 'object')} restored from files{left}"
