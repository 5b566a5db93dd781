"""What killed commands and a loss of power left unfinished: refs that are gone, a purge, merges, temporary folders."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.branch import lost_refs
from sessgit.branch.merging import interrupted
from sessgit.check.doctoring.context import Ailment, Patient
from sessgit.errors import ConflictError, SessgitError
from sessgit.model import humanize
from sessgit.model.finding import Finding
from sessgit.purge import denied_values, purge
from sessgit.purge.purge import PurgeProgress, PurgeValues
from sessgit.store import layout
from sessgit.store.damage import packed_refs
from sessgit.store.files import tempdirs
from sessgit.store.store import Store

_DAY = 86_400.0
_FIX = "sessgit doctor --fix"


def check(patient: Patient) -> Iterator[Ailment]:
    """What was begun and never came to its end, and what is gone that nobody took away."""
    yield from _folders(patient)
    yield from map(Ailment, denied_values.denied_value_findings(patient.beside))
    if patient.index is not None:
        store = patient.index.open_store()
        yield from _refs(patient, store)
        yield from _purge(patient, store)
        yield from _merges(patient, store)


def _refs(patient: Patient, store: Store) -> Iterator[Ailment]:
    faults = packed_refs.invalid_lines(patient.store)
    try:
        lost = lost_refs.lost_refs(store)
    except SessgitError:  # what cannot be read, `verify` tells
        lost = []
    names = {one.ref for one in lost}
    for ref in (ref for ref in packed_refs.refs_without_id(patient.store) if ref not in names):
        session = humanize.quote_for_shell(layout.session_of(ref.split("/", 2)[-1]))
        what = "it holds no object id, and its old value is unknown"
        yield Ailment(Finding("damage", "refs", ref, what, f"`sessgit repair {session}` records its file again."))
    if not faults and not lost:
        return
    said = []
    if faults:
        lines = f"line {faults[0]} of packed-refs is" if len(faults) == 1 else f"{len(faults)} lines of packed-refs are"
        said.append(f"{lines} not a ref, so git cannot move any")
    if lost:
        many = lost[0].ref if len(lost) == 1 else f"{humanize.format_count(len(lost), 'ref')}, {lost[0].ref} first,"
        said.append(f"{many} {'is' if len(lost) == 1 else 'are'} missing or empty, and no command did that")
    finding = Finding("damage", "refs", str(patient.store), "; ".join(said), _FIX)
    yield Ailment(finding, lambda: _put_back(patient, store))


def _put_back(patient: Patient, store: Store) -> str:
    count = lost_refs.restore_lost(store)
    assert patient.index is not None
    patient.index.damaged.clear()
    patient.index.sync()
    return f"{humanize.format_count(count, 'ref')} restored"


def _purge(patient: Patient, store: Store) -> Iterator[Ailment]:
    if not purge.is_pending(patient.store):
        return
    what = "a purge was interrupted: the value may still be stored"
    finding = Finding("damage", "purge", str(patient.beside.purging), what, _FIX)
    yield Ailment(finding, lambda: _purged(patient, store))


def _purged(patient: Patient, store: Store) -> str:
    assert patient.index is not None
    nothing = PurgeValues(())
    done = purge.purge_values(store, patient.index, nothing, patient.config, patient.now, PurgeProgress())
    if purge.is_pending(patient.store):
        raise ConflictError(
            "cannot complete the purge", "To complete it, run `sessgit purge` with the same value again."
        )
    return "the purge is complete" if done.completed else "the value is not known yet: run the purge again"


def _merges(patient: Patient, store: Store) -> Iterator[Ailment]:
    begun = interrupted.unfinished_sessions(store)
    if begun:
        many = humanize.format_count(len(begun), "conversation")
        what = f"{many} left by an interrupted merge, {begun[0][:8]} first"
        finding = Finding("wrong", "leftovers", str(patient.beside.state), what, "sessgit gc")
        yield Ailment(finding, lambda: _taken_back(patient, store))
    for path in sorted(patient.beside.state.glob("*.append")):
        try:
            age = patient.now - path.stat().st_mtime
        except OSError:
            continue
        if age > _DAY:
            what = f"a merge into {path.stem[:8]} was interrupted: run it again to complete it"
            yield Ailment(Finding("note", "leftovers", str(path), what, "sessgit gc"))


def _taken_back(patient: Patient, store: Store) -> str:
    count = interrupted.delete_unfinished(store, patient.config, patient.now)
    return f"{humanize.format_count(count, 'conversation')} removed"


def _folders(patient: Patient) -> Iterator[Ailment]:
    left = [*tempdirs.stale_folders(), *tempdirs.stale_folders(patient.beside.state)]
    if left:
        what = f"{humanize.format_count(len(left), 'temporary folder')} left by killed commands, {left[0].name} first"
        finding = Finding("wrong", "leftovers", str(left[0].parent), what, "sessgit gc")
        yield Ailment(finding, lambda: _swept(patient))


def _swept(patient: Patient) -> str:
    deleted = tempdirs.delete_stale_folders() + tempdirs.delete_stale_folders(patient.beside.state)
    return f"{humanize.format_count(deleted, 'folder')} removed"
