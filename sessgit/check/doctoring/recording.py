"""Whether what is said is recorded: hooks, the stub, the spool, and what the client is about to delete."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from sessgit import agents
from sessgit.check import status
from sessgit.check.doctoring.context import Ailment, Patient
from sessgit.errors import SessgitError, StoreError
from sessgit.history import lost_sessions
from sessgit.model import canonical, humanize
from sessgit.model.finding import Finding
from sessgit.record import imports, install
from sessgit.store import locks, log
from sessgit.store import settings as own_settings
from sessgit.store.index import Index
from sessgit.store.recorder import launch, spool, stub

_STARTING = 2.0
"""Seconds after which a recorder that was started runs."""
_LONGEST = 60.0
"""Seconds that a recorder runs at most."""
_UNITS = ((3600, "hour"), (60, "minute"), (1, "second"))
_PATIENCE = 20.0
_FULL = 1000
_WEEK = 7 * 86_400
_INSTALL = "sessgit install"
_FIX = "sessgit doctor --fix"


def check(patient: Patient) -> Iterator[Ailment]:
    """What keeps events from being recorded, and what may be lost soon."""
    yield from _hooks(patient)
    yield from _settings(patient)
    if patient.privacy.off:
        yield Ailment(Finding("note", "off", "environment", "SESSGIT_OFF=1 is set: no client started here is recorded"))
    if patient.index is not None:
        yield from _spool(patient)
        yield from _deleted_soon(patient)
        yield from _lost(patient, patient.index)
        yield from _log(patient)
    yield from _copies(patient)


def _hooks(patient: Patient) -> Iterator[Ailment]:
    found = status.recording(patient.store, patient.config)
    where = str(patient.config / "settings.json")
    ours = _is_ours(patient)
    cure = (lambda: _installed(patient)) if ours else None
    if not found.on:
        told = found.why.removesuffix(f": {_INSTALL}")
        mend = "" if "cannot read" in found.why or "disable" in found.why else _INSTALL
        yield Ailment(Finding("wrong", "hooks", where, f"recording is off: {told}", mend), cure if mend else None)
    elif found.why:
        told = found.why.removesuffix(f": {_INSTALL}")
        if found.why.startswith("twice"):
            yield Ailment(Finding("note", "hooks", where, told))
        else:
            yield Ailment(Finding("wrong", "hooks", where, told, _INSTALL), cure)
    if patient.beside.hook.is_file() and not _is_current(patient):
        what = "the hook is from another version, or starts another Python"
        yield Ailment(Finding("wrong", "hooks", str(patient.beside.hook), what, _INSTALL), cure)


def _is_ours(patient: Patient) -> bool:
    """Whether the client's settings run the stub of this store: then somebody wanted that."""
    try:
        hooks = agents.at(patient.config).hooks
        found = hooks.installed(hooks.read(patient.config / "settings.json").document)
    except SessgitError:
        return False
    return str(patient.beside.hook) in found.stubs


def _is_current(patient: Patient) -> bool:
    python = stub.stub_interpreter(patient.store)
    try:
        return stub.is_current(patient.store, python) and os.access(python, os.X_OK)
    except SessgitError:
        return True  # this installation lacks its own: nothing can be said


def _installed(patient: Patient) -> str:
    grain = own_settings.load_settings(patient.beside).record.granularity
    install.install(patient.store, patient.config, python=patient.python, granularity=grain, privacy=patient.privacy)
    return "hooks and stub updated to this version"


def _settings(patient: Patient) -> Iterator[Ailment]:
    try:
        own_settings.load_settings(patient.beside)
    except SessgitError as error:
        mend = error.hint or f"Correct {patient.beside.config} by hand."
        yield Ailment(Finding("wrong", "settings", str(patient.beside.config), str(error), mend))


def _spool(patient: Patient) -> Iterator[Ailment]:
    folder = patient.beside.spool
    try:
        waiting = spool.waiting_events(folder, patient.now)
    except StoreError as error:
        yield Ailment(Finding("damage", "spool", str(folder), str(error)))
        return
    events = [event for event in waiting if isinstance(event, spool.Event)]
    if len(waiting) >= _FULL:
        yield Ailment(
            Finding(
                "damage",
                "spool",
                str(folder),
                f"{len(waiting):,} events are waiting, and new ones are dropped",
                "sessgit doctor --fix",
            ),
            lambda: _drained(patient),
        )
    elif events:
        age, is_running = max(0.0, patient.now - events[0].received), locks.is_recorder_running(patient.beside)
        many = "1 event is waiting" if len(events) == 1 else f"{len(events):,} events are waiting"
        first = f"{'for' if len(events) == 1 else 'the first for'} {_age(age)}"
        what = f"{many} to be recorded, {first}; {'a' if is_running else 'no'} recorder is running"
        is_stuck = age > (_LONGEST if is_running else _STARTING)
        finding = Finding("wrong" if is_stuck else "note", "spool", str(folder), what, _FIX if is_stuck else "")
        yield Ailment(finding, lambda: _drained(patient))
    unreadable = [event for event in waiting if isinstance(event, spool.UnreadableEvent)]
    if unreadable:
        what = (
            f"{humanize.format_count(len(unreadable), 'file')} there cannot be read by a recorder: {unreadable[0].why}"
        )
        yield Ailment(Finding("note", "spool", str(folder), what, "The next recording removes it."))


def _age(seconds: float) -> str:
    """`12 seconds`, `5 minutes`, `3 hours`."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
    return humanize.format_count(int(seconds // size), unit)


def _drained(patient: Patient) -> str:
    """Starts the recorder as the stub does, and waits until it is done."""
    before = sum(1 for _ in patient.beside.spool.glob("*.json"))
    try:
        subprocess.run(
            launch.recorder_command(patient.store, patient.python), cwd="/", check=False,
            env=launch.recorder_environment(patient.store, patient.env), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise StoreError(f"cannot start the recorder: {error.strerror or error}") from error
    deadline = time.monotonic() + _PATIENCE
    while (left := sum(1 for _ in patient.beside.spool.glob("*.json"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        raise StoreError(f"{humanize.format_count(left, 'event')} still waiting", f"See {patient.beside.log}.")
    return f"{humanize.format_count(before, 'event')} recorded"


def _deleted_soon(patient: Patient) -> Iterator[Ailment]:
    assert patient.index is not None
    paths = status.unrecorded_soon(patient.store, patient.config, patient.index, patient.privacy, patient.now)
    if not paths:
        return
    many = humanize.format_count(len(paths), "transcript")
    what = f"{many} that the client deletes within a week {'is' if len(paths) == 1 else 'are'} not recorded"
    cure = None if patient.privacy.off else (lambda: _imported(patient, paths))
    yield Ailment(Finding("wrong", "deletion", str(patient.config / "projects"), what, "sessgit import"), cure)


def _imported(patient: Patient, paths: list[Path]) -> str:
    assert patient.index is not None
    store = patient.index.open_store()
    done = imports.run_import(store, patient.index, paths, patient.config, patient.privacy, imports.ImportProgress())
    if done.errors:
        raise StoreError(f"{done.errors[0].path}: {done.errors[0].reason}")
    return (
        f"{humanize.format_count(done.sessions, 'conversation')} imported, {humanize.format_count(done.turns, 'turn')}"
    )


def _lost(patient: Patient, index: Index) -> Iterator[Ailment]:
    """The conversations that the client has deleted: nothing is wrong, and the user can have them back."""
    many = len(lost_sessions.lost_sessions(index, patient.config))
    if many:
        what = f"the client deleted {humanize.format_count(many, 'conversation')}"
        mend = f"`sessgit restore --all-lost` restores {'it' if many == 1 else 'them'}."
        yield Ailment(Finding("note", "lost", str(patient.config / "projects"), what, mend))


def _log(patient: Patient) -> Iterator[Ailment]:
    recent = [
        entry for entry in log.entries(patient.beside.log)
        if (canonical.seconds(entry.time) or 0) > patient.now - _WEEK
    ]  # fmt: skip
    if recent:
        what = f"{humanize.format_count(len(recent), 'error')} in the last week, the last one: {recent[-1].message}"
        yield Ailment(Finding("note", "log", str(patient.beside.log), what))


def _copies(patient: Patient) -> Iterator[Ailment]:
    """One session's transcript in two folders: the client then finds neither."""
    seen: dict[str, Path] = {}
    for path in agents.at(patient.config).home.transcripts(patient.config):
        first = seen.setdefault(path.name, path)
        if first != path:
            what = f"the same conversation is also in {first.parent.name}, so the client cannot resume it"
            yield Ailment(Finding("note", "copies", str(path), what, "Move one of the two files away."))
