"""Recording: hooks, settings, waiting events, and transcripts that the client is about to delete."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from sessgit import agents
from sessgit.agents import Client
from sessgit.check import status, store_checks
from sessgit.check.doctoring.context import DoctorContext
from sessgit.check.store_checks import FIX
from sessgit.errors import SessgitError, StoreError
from sessgit.history import lost_sessions
from sessgit.model import canonical, humanize
from sessgit.model.finding import Finding, Severity
from sessgit.record import imports, install
from sessgit.store import locks, log, spool, stub
from sessgit.store import settings as own_settings
from sessgit.store.index import Index

_STARTING = 2.0
"""Seconds after which a recorder that was started runs."""
_LONGEST = 60.0
"""Seconds that a recorder runs at most."""
_UNITS = ((3600, "hour"), (60, "minute"), (1, "second"))
_PATIENCE = 20.0
_FULL = 1000
_WEEK = 7 * 86_400
_HOOK_MODE = 0o700


def check(context: DoctorContext) -> Iterator[Finding]:
    """Return findings about what keeps events from being recorded, and what may be lost soon."""
    yield from _hooks(context)
    yield from (replace(one, where=str(context.paths.config)) for one in store_checks.check_settings(context.paths))
    if context.privacy.off:
        yield Finding("note", "off", "environment", "SESSGIT_OFF=1 is set: no client started here is recorded")
    if context.index is not None:
        yield from _spool(context)
        yield from _deleted_soon(context, context.index)
        yield from _deleted_by_client(context, context.index)
        yield from _log(context)
    yield from _copies(context)


def _hooks(context: DoctorContext) -> Iterator[Finding]:
    recording, client = status.hooks_status(context.store, context.homes), _hooked_client(context)
    place = str(client.agent.hooks.settings_file(client.folder))
    fix = partial(_reinstall, context) if _runs_our_hook(context, client) else None
    if recording.problem:
        severity: Severity = "note" if recording.on and not recording.hint else "wrong"
        what = recording.problem if recording.on else f"recording is off: {recording.problem}"
        yield Finding(severity, "hooks", place, what, recording.hint, fix=fix if recording.hint else None)
    if context.paths.hook.is_file() and not _is_current(context):
        mode = context.paths.hook.lstat().st_mode
        what = "the hook is from another version, or starts another Python"
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) != _HOOK_MODE:
            what = f"the hook has the permissions {stat.S_IMODE(mode):o}; they should be {_HOOK_MODE:o}, for you alone"
        yield Finding("wrong", "hooks", str(context.paths.hook), what, status.INSTALL, fix=fix)


def _hooked_client(context: DoctorContext) -> Client:
    """Return the client whose settings run the hook of this store, else the default one."""
    clients = (client for client in agents.hooked_clients(context.homes) if _runs_our_hook(context, client))
    return next(clients, agents.client(context.homes))


def _runs_our_hook(context: DoctorContext, client: Client) -> bool:
    """Return whether the client's settings, or the plugin, run the hook of this store: only then may it be installed
    again."""
    hooks = client.agent.hooks
    try:
        installed = hooks.installed(hooks.read(hooks.settings_file(client.folder)).document)
    except SessgitError:
        return False
    return str(context.paths.hook) in installed.stubs or (bool(installed.plugin) and not installed.entries)


def _is_current(context: DoctorContext) -> bool:
    python = stub.stub_interpreter(context.store)
    try:
        return stub.is_current(context.store, python) and os.access(python, os.X_OK)
    except SessgitError:
        return True  # this installation has no hook to compare with


def _reinstall(context: DoctorContext) -> str:
    grain = own_settings.load_settings(context.paths).record.granularity
    for client in agents.hooked_clients(context.homes):
        if _runs_our_hook(context, client):
            install.install(context.store, client, python=context.python, granularity=grain, privacy=context.privacy)
    return "hooks and stub updated to this version"


def _spool(context: DoctorContext) -> Iterator[Finding]:
    folder, fix = context.paths.spool, partial(_run_recorder, context)
    try:
        waiting = spool.waiting_events(folder, context.now)
    except StoreError as error:
        yield Finding("damage", "spool", str(folder), str(error))
        return
    events = [event for event in waiting if isinstance(event, spool.Event)]
    if len(waiting) >= _FULL:
        what = f"{len(waiting):,} events are waiting, and new ones are dropped"
        yield Finding("damage", "spool", str(folder), what, FIX, fix=fix)
    elif events:
        age, is_running = max(0.0, context.now - events[0].received), locks.is_recorder_running(context.paths)
        subject = "1 event is" if len(events) == 1 else f"{len(events):,} events are"
        first = f"{'for' if len(events) == 1 else 'the first for'} {_age(age)}"
        what = f"{subject} waiting to be recorded, {first}; {'a' if is_running else 'no'} recorder is running"
        is_stuck = age > (_LONGEST if is_running else _STARTING)
        yield Finding("wrong" if is_stuck else "note", "spool", str(folder), what, FIX if is_stuck else "", fix=fix)
    if unreadable := [event for event in waiting if isinstance(event, spool.UnreadableEvent)]:
        count = humanize.format_count(len(unreadable), "file")
        what = f"{count} there cannot be read by a recorder: {unreadable[0].why}"
        yield Finding("note", "spool", str(folder), what, "The next recording removes it.")


def _age(seconds: float) -> str:
    """`12 seconds`, `5 minutes`, `3 hours`."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
    return humanize.format_count(int(seconds // size), unit)


def _run_recorder(context: DoctorContext) -> str:
    """Start the recorder as the hook does, and wait until it has recorded all events."""
    before = sum(1 for _ in context.paths.spool.glob("*.json"))
    try:
        subprocess.run(
            stub.recorder_command(context.store, context.python), cwd="/", check=False,
            env=stub.recorder_environment(context.store, context.env), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise StoreError(f"cannot start the recorder: {error.strerror or error}") from error
    deadline = time.monotonic() + _PATIENCE
    while (left := sum(1 for _ in context.paths.spool.glob("*.json"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        raise StoreError(f"{humanize.format_count(left, 'event')} still waiting", f"See {context.paths.log}.")
    return f"{humanize.format_count(before, 'event')} recorded"


def _deleted_soon(context: DoctorContext, index: Index) -> Iterator[Finding]:
    paths = status.unrecorded_soon(context.store, context.homes, index, context.privacy, context.now)
    if not paths:
        return
    many = humanize.format_count(len(paths), "transcript")
    what = f"{many} that the client deletes within a week {'is' if len(paths) == 1 else 'are'} not recorded"
    fix = None if context.privacy.off else partial(_import_files, context, index, paths)
    yield Finding("wrong", "deletion", str(paths[0].parent), what, "sessgit import", fix=fix)


def _import_files(context: DoctorContext, index: Index, paths: list[Path]) -> str:
    result = imports.run_import(context.of_store(index), paths, imports.ImportProgress())
    if result.errors:
        raise StoreError(f"{result.errors[0].path}: {result.errors[0].reason}")
    sessions = humanize.format_count(result.sessions, "conversation")
    return f"{sessions} imported, {humanize.format_count(result.turns, 'turn')}"


def _deleted_by_client(context: DoctorContext, index: Index) -> Iterator[Finding]:
    """Return a note about the recorded conversations whose transcripts the client has deleted."""
    if count := len(lost_sessions.lost_sessions(index, context.homes)):
        what = f"the client deleted {humanize.format_count(count, 'conversation')}"
        hint = f"`sessgit restore --all-lost` restores {'it' if count == 1 else 'them'}."
        yield Finding("note", "lost", str(agents.client(context.homes).folder), what, hint)


def _log(context: DoctorContext) -> Iterator[Finding]:
    recent = [
        entry for entry in log.entries(context.paths.log)
        if (canonical.seconds(entry.time) or 0) > context.now - _WEEK
    ]  # fmt: skip
    if recent:
        what = f"{humanize.format_count(len(recent), 'error')} in the last week, the last one: {recent[-1].message}"
        yield Finding("note", "log", str(context.paths.log), what)


def _copies(context: DoctorContext) -> Iterator[Finding]:
    """Return a note for each transcript that lies in two folders: the client then finds neither."""
    first_places: dict[str, Path] = {}
    for file in agents.transcripts(context.homes):
        path = file.path
        first = first_places.setdefault(file.session, path)
        if first != path:
            what = f"the same conversation is also in {first.parent.name}, so the client cannot resume it"
            yield Finding("note", "copies", str(path), what, "Move one of the two files away.")
