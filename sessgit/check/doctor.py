"""`doctor`: whether recording works, and what is wrong with the store's files and the machine around them.

The contents of conversations are checked by `verify`. A fix never deletes recorded data.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

from sessgit import __version__, agents
from sessgit.agents import Client, hook_settings
from sessgit.branch import lost_refs
from sessgit.branch import merge as merges
from sessgit.check import gc, repair, status, store_checks
from sessgit.check.store_checks import FIX
from sessgit.errors import ConflictError, NewerStoreError, SessgitError, StoreError
from sessgit.model import canonical, humanize, ids
from sessgit.model.finding import Finding, Severity, is_sound, sorted_by_severity
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count, format_size, quote_for_shell
from sessgit.purge import purge
from sessgit.record import imports, install
from sessgit.store import (
    git,
    layout,
    locks,
    log,
    maintenance,
    object_scan,
    owner,
    recorder_state,
    refs,
    remotes,
    settings,
    spool,
    stub,
    tempdirs,
)
from sessgit.store import store as stores
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index, remove_cache
from sessgit.store.layout import StorePaths
from sessgit.store.settings import Privacy
from sessgit.store.store import Store

_ROUNDS = 3
_STARTING = 2.0
"""Seconds after which a recorder that was started runs."""
_LONGEST = 60.0
"""Seconds that a recorder runs at most."""
_UNITS = ((3600, "hour"), (60, "minute"), (1, "second"))
_PATIENCE = 20.0
_FULL = 1000
_WEEK = 7 * 86_400
_HOOK_MODE = 0o700
_DAY = 86_400.0
_LARGE = 50 << 20
_MOST_SIZE = 1.5
"""Bytes of the store per byte of transcripts above which packing helps."""
_MOST_PACKS = 50
_MOST_NAMED = 20
_OLDEST_GIT = (2, 30)
_INSTALL = "Install git 2.30 or later."
_MOST_SESSIONS = 40
"""Sessions whose client's version is looked at."""
_LITTLE = 1 << 30
_AHEAD = 86_400.0
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")


@dataclass(frozen=True)
class DoctorContext:
    """The store and the client's folder, which may not exist. `index` is None without a store, or if the store cannot
    be opened for the reason `error`. `env` is the environment for git, `python` the interpreter that runs this."""

    store: Path
    homes: Homes
    privacy: Privacy
    index: Index | None
    env: Mapping[str, str]
    python: str
    now: float
    error: SessgitError | None = None

    @property
    def paths(self) -> StorePaths:
        return StorePaths(self.store)

    def of_store(self, index: Index) -> Context:
        """Return what an operation on the store works on."""
        return Context(index, self.homes, self.privacy, self.env, lambda: self.now)


@frozen
class Fixed:
    """A finding with what its fix did, or the `error` that it raised."""

    finding: Finding
    done: str = ""
    error: str = ""


@frozen
class Diagnosis:
    """The findings that remain, those that were fixed, and the versions of the programs."""

    findings: tuple[Finding, ...]
    fixed: tuple[Fixed, ...]
    version: str
    python: str
    git: str
    clients: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return is_sound(self.findings)


def diagnose(context: DoctorContext, *, fix: bool) -> Diagnosis:
    """Return all findings; with `fix`, those that remain after every fix was tried."""
    findings = sorted_by_severity(_findings(context))
    fixed = list[Fixed]()
    for _ in range(_ROUNDS if fix else 0):
        tried = {one.finding for one in fixed}
        fixable: dict[Callable[[], str], Finding] = {}
        for finding in findings:
            if finding.fix and finding not in tried:
                fixable.setdefault(finding.fix, finding)  # several findings may have the same fix
        if not fixable:
            break
        fixed += map(_apply_fix, fixable.values())
        findings = sorted_by_severity(_findings(context))  # a fix may reveal another problem
    clients = client_versions(context) if not context.error else []
    git = git_version(context)
    return Diagnosis(tuple(findings), tuple(fixed), __version__, platform.python_version(), git, tuple(clients))


def _findings(context: DoctorContext) -> Iterator[Finding]:
    blocked = status.blocked_folders(context.store)
    if blocked:  # there is no fix, since the permissions may be intended
        what = "no permission to read and write there, so nothing is recorded"
        yield Finding("damage", "permissions", str(blocked[0]), what, status.unblock_command(context.store))
    if context.store in blocked and not os.access(context.store, os.R_OK | os.X_OK):
        return
    yield from _hooks(context)
    yield from (replace(one, where=str(context.paths.config)) for one in store_checks.check_settings(context.paths))
    if context.privacy.off:
        yield Finding("note", "off", "environment", "SESSGIT_OFF=1 is set: no client started here is recorded")
    if context.index is not None:
        yield from _spool(context)
        yield from _deleted_soon(context, context.index)
        yield from _log(context)
    yield from _store_findings(context, blocked)
    yield from _git(context)
    yield from _disk(context)
    if context.index is not None:
        yield from _clock(context, context.index)
        yield from _remotes(context)


def _apply_fix(finding: Finding) -> Fixed:
    assert finding.fix is not None
    try:
        return Fixed(finding, finding.fix())
    except SessgitError as error:
        return Fixed(finding, error=f"{error}. {error.hint}".strip())


def _hooks(context: DoctorContext) -> Iterator[Finding]:
    clients = (client for client in agents.hooked_clients(context.homes) if _runs_our_hook(context, client))
    recording, client = status.hooks_status(context.store, context.homes), next(clients, agents.client(context.homes))
    place = str(client.agent.hooks.settings_file(client.folder))
    fix = partial(_reinstall, context) if _runs_our_hook(context, client) else None
    if recording.problem:
        severity: Severity = "note" if recording.on and not recording.hint else "wrong"
        what = recording.problem if recording.on else f"recording is off: {recording.problem}"
        yield Finding(
            severity, "hooks", place, what, recording.hint, fix=fix if recording.hint == status.INSTALL else None
        )
    if context.paths.hook.is_file() and not _is_current(context):
        mode = context.paths.hook.lstat().st_mode
        what = "the hook is from another version, or starts another Python"
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) != _HOOK_MODE:
            what = f"the hook has the permissions {stat.S_IMODE(mode):o}; they should be {_HOOK_MODE:o}, for you alone"
        yield Finding("wrong", "hooks", str(context.paths.hook), what, status.INSTALL, fix=fix)
    else:
        yield from _other_programs(context, fix)


def _other_programs(context: DoctorContext, fix: Callable[[], str] | None) -> Iterator[Finding]:
    """Return findings about other installations of this program that the hook starts, and that commands of the plugin
    run."""
    python = stub.stub_interpreter(context.store)
    if python and python != context.python:
        version = _version([python, "-P", "-m", "sessgit"], context.env)
        if version != __version__:
            has = f"sessgit {version}" if version else "no sessgit"
            what = f"the hook starts {python}, which has {has}; this is {__version__}"
            yield Finding("wrong", "hooks", str(context.paths.hook), what, status.INSTALL, fix=fix)
    program = shutil.which("sessgit", path=context.env.get("PATH"))
    if program and Path(program).parent != Path(context.python).parent:
        version = _version([program], context.env)
        if version != __version__:
            what = f"the program on the PATH is version {version or 'unknown'}, this is {__version__}"
            yield Finding("wrong", "program", program, what, "remove one of the two, or change the PATH")


def _version(program: Sequence[str], env: Mapping[str, str]) -> str:
    """Return what a program says of its version, or "" if it cannot be run."""
    try:
        done = subprocess.run(
            [*program, "--version"], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
            check=True, cwd="/", env=dict(env), timeout=_PATIENCE,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return canonical.one_line(done.stdout, 40).removeprefix("sessgit ")


def _runs_our_hook(context: DoctorContext, client: Client) -> bool:
    """Return whether the client's settings, or the plugin, run the hook of this store: only then may it be installed
    again."""
    hooks = client.agent.hooks
    try:
        installed = hooks.installed(hook_settings.read(hooks.settings_file(client.folder)).document)
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
    grain = settings.load_settings(context.paths).record.granularity
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


def _log(context: DoctorContext) -> Iterator[Finding]:
    recent = [
        entry for entry in log.entries(context.paths.log)
        if (canonical.seconds(entry.time) or 0) > context.now - _WEEK
    ]  # fmt: skip
    if recent:
        what = f"{humanize.format_count(len(recent), 'error')} in the last week, the last one: {recent[-1].message}"
        yield Finding("note", "log", str(context.paths.log), what)


def _store_findings(context: DoctorContext, blocked: Sequence[Path]) -> Iterator[Finding]:
    """Return findings about the store; parts that the `blocked` folders hide are not checked."""
    missing = list(_missing_parts(context))
    yield from missing
    if missing or not (context.store / "HEAD").is_file():
        return
    packs = _in_store(context, store_checks.check_packs(context.store, context.index))
    yield from (finding for finding in packs if Path(finding.where) not in blocked)
    if context.index is not None and not blocked and not object_scan.unreadable_packs(context.store):
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
        try:
            path.chmod(mode)
        except FileNotFoundError:
            continue  # an event that was recorded meanwhile
        except OSError as error:
            raise StoreError(f"cannot change {path}: {error.strerror}") from error
    return f"{format_count(len(shared), 'file')} readable only by you"


# Parts that are missing


def _missing_parts(context: DoctorContext) -> Iterator[Finding]:
    """Return findings for parts without which git sees no store: it would be taken for an empty one."""
    missing = owner.missing_parts(context.store)
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
    searches = [repair.restore_objects(context.of_store(index), session) for session in sessions]
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
        remove_cache(path)
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


def _unfinished(context: DoctorContext, index: Index) -> Iterator[Finding]:
    """Return findings for lost refs, and for merges that a kill or a power loss interrupted."""
    store, state = index.open_store(), context.paths.state
    yield from store_checks.check_refs(store, index)
    if sessions := merges.unfinished_sessions(store):
        what = f"{format_count(len(sessions), 'conversation')} left by an interrupted merge, {sessions[0][:8]} first"
        fix = partial(_remove_unfinished, context, store)
        yield Finding("wrong", "leftovers", str(state), what, "sessgit gc", fix=fix)
    for path in sorted(state.glob("*.append")):
        with suppress(OSError):  # it was just done
            if context.now - path.lstat().st_mtime > _DAY:
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
    count = merges.delete_unfinished(store, context.homes, context.now)
    return f"{format_count(count, 'conversation')} removed"


def _collect(context: DoctorContext) -> str:
    """Pack the store and remove leftovers, as `sessgit gc` does, but nothing that undo keeps."""
    if context.index is None:
        raise StoreError("the store cannot be opened", str(context.error))
    result = gc.collect(context.of_store(context.index), keep=inf)
    return f"the store was packed, {format_count(result.leftovers, 'file')} of interrupted commands removed"


def git_version(context: DoctorContext) -> str:
    """Return the version of git, or ``""`` without git."""
    program = shutil.which("git", path=context.env.get("PATH"))
    version = _VERSION.search(_version([program], git.PLAIN_ENV)) if program else None
    return version[0] if version else ""


def client_versions(context: DoctorContext) -> list[str]:
    """Return the versions of the clients that wrote the latest sessions, the newest first."""
    if context.index is None:
        return []
    names = [outline.name for outline in context.index.outlines()[:_MOST_SESSIONS]]
    states = [branch.state for branch in context.index.branches_named(names)]
    versions = {canonical.one_line(one.agent_version, 40) for one in states if one.agent_version}
    return sorted(versions, key=status.version_order, reverse=True)


def _git(context: DoctorContext) -> Iterator[Finding]:
    version = git_version(context)
    if not version:
        yield Finding("damage", "git", "git", "git is missing: nothing can be packed, pulled or pushed", _INSTALL)
        return
    if status.version_order(version) < _OLDEST_GIT:
        yield Finding("wrong", "git", "git", f"git {version} is too old", _INSTALL)
    if context.error and not _is_explained(context):
        what = f"cannot open the store: {context.error}"
        severity: Severity = "wrong" if isinstance(context.error, NewerStoreError) else "damage"
        hint = context.error.hint or "If the error names a file, correct that file."
        yield Finding(severity, "store", str(context.store), what, hint)


def _is_explained(context: DoctorContext) -> bool:
    """Return whether another finding says why the store cannot be opened."""
    try:
        settings.load_settings(context.paths)
    except SessgitError:
        return True
    return bool(owner.missing_parts(context.store) or status.blocked_folders(context.store))


def _disk(context: DoctorContext) -> Iterator[Finding]:
    folder = context.store
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    if free < _LITTLE:
        what = f"only {humanize.format_size(free)} free: recording stops when the disk is full, and packing needs space"
        yield Finding("wrong", "disk", str(folder), what, "Free some space. `sessgit gc` makes the store smaller.")


def _clock(context: DoctorContext, index: Index) -> Iterator[Finding]:
    note = recorder_state.load_latest(context.paths)
    times = [("the last turn", note.time)] if note else []
    first = next(iter(index.outlines()), None)
    if first is not None and (moment := canonical.seconds(first.updated)) is not None:
        times.append((f"the session {first.name[:8]}", moment))
    ahead = [(what, moment) for what, moment in times if moment > context.now + _AHEAD]
    if ahead:
        day = canonical.rfc3339(min(ahead[0][1], 4e9))[:10]
        what = f"{ahead[0][0]} is dated {day}, in the future: is the clock right?"
        yield Finding("note", "clock", "clock", what)


def _remotes(context: DoctorContext) -> Iterator[Finding]:
    try:
        every = remotes.list_remotes(context.store)
    except SessgitError as error:
        yield Finding("wrong", "remotes", str(context.store / "config"), str(error))
        return
    for remote in every:
        is_near = remote.url.startswith("file://") or remotes.is_path(remote.url)
        if is_near and not Path(remote.url.removeprefix("file://")).exists():
            what = f"the remote {remote.name} is gone: there is nothing at {remote.shown}"
            hint = f"`sessgit remote remove {remote.name}`, or restore it."
            yield Finding("wrong", "remotes", remote.name, what, hint)
