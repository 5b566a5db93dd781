"""How the recording goes: whether it is on, what is in the store, what needs attention."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sessgit import __version__, agents
from sessgit.agents import Client, hook_settings
from sessgit.errors import SessgitError, StoreError
from sessgit.history import client_files, stats
from sessgit.model.frozen import frozen
from sessgit.model.humanize import quote_for_shell
from sessgit.record import catch_up
from sessgit.record import privacy as private
from sessgit.record.privacy import Verdict
from sessgit.store import locks, log, project, recorder_state, refs, spool, stub
from sessgit.store.context import Homes
from sessgit.store.index import Index, Outline
from sessgit.store.layout import StorePaths
from sessgit.store.log import LogEntry
from sessgit.store.recorder_state import LatestTurn
from sessgit.store.settings import Privacy

INSTALL = "sessgit install"
WEEK = 7 * 86_400
_DAY = 86_400
_NO_HOOKS = "no hooks are installed"


@frozen
class Recording:
    """Whether events of the client reach the store; the `problem`, also if they do; the command that solves it; and
    the plugin that runs the hooks, or "" if the settings do."""

    on: bool
    problem: str = ""
    hint: str = ""
    plugin: str = ""

    @property
    def why(self) -> str:
        """Return the problem with its solution."""
        return ": ".join(filter(None, (self.problem, self.hint)))


@frozen
class Contents:
    """What is in the store. `raw` is how many bytes of the agents' files are recorded, `last` the session that has the
    last turn, `latest` how that one was recorded, if a recorder did; `only_here` counts the sessions
    that `restore --all-lost` brings back."""

    sessions: int
    turns: int
    size: int
    raw: int
    last: Outline | None
    latest: LatestTurn | None
    only_here: int


@frozen
class Deleting:
    """The transcripts that the client deletes within a week, if it is started: how many, after how many days without
    a change, and from when on the first; how many of them are not recorded to their end, and how many of those
    because their project is off."""

    transcripts: int
    days: float
    first: float
    unrecorded: int
    off: int


@frozen
class Waiting:
    """How many events wait to be recorded, when the first one came, in seconds since 1970, and whether a recorder is
    running, which will take them."""

    events: int
    first: float
    recorder: bool


@frozen
class Status:
    """`project` is the one at hand, and `here` whether it is recorded where any is; `contents` is None where there is
    no store; `packing` says whether a process packs it in the background; `older` counts the client's transcripts that
    an import would bring in, and `purging` says that a purge was interrupted, or is just being done."""

    recording: Recording
    project: str
    here: Verdict
    contents: Contents | None
    deleting: Deleting | None
    older: int
    errors: tuple[LogEntry, ...]
    purging: bool = False
    packing: bool = False
    waiting: Waiting | None = None


@frozen
class _File:
    """A transcript of a client: its session, when it was last written, whether it is recorded at all, and the agent."""

    path: Path
    session: str
    modified: float
    known: bool
    agent: str


def status(store: Path, homes: Homes, index: Index | None, privacy: Privacy, *, cwd: str, now: float) -> Status:
    """Return the state of the recording into the store at a path; there may be none."""
    paths, outlines = StorePaths(store), index.outlines() if index else []
    projects = {outline.name: outline.project for outline in outlines}
    deleted = refs.deleted_sessions(store) if index else set()
    known = {*projects, *deleted}
    files = [file for file in _files(homes, projects) if file.session not in deleted]
    is_recorded = private.recorded_filter(privacy, projects)
    days, soon = _expiring(homes, files, now)
    deleting = None
    if soon:
        missing = [file for file in soon if _is_missing(paths, file, known)]
        off = sum(not is_recorded(file.path, file.session) for file in missing)
        first = min(file.modified for file in soon) + days * _DAY
        deleting = Deleting(len(soon), days, first, len(missing), off)
    return Status(
        recording(store, homes),
        project.project_root(cwd),
        private.verdict(privacy, cwd),
        _contents(store, homes, outlines, index) if index else None,
        deleting,
        sum(not file.known and is_recorded(file.path, file.session) and _is_new(file, known) for file in files),
        tuple(log.entries(paths.log)),
        paths.purging.exists(),
        locks.is_repack_running(paths),
        waiting(paths, now),
    )


def waiting(paths: StorePaths, now: float) -> Waiting | None:
    """Return what waits to be recorded, or None where nothing does, or the spool cannot be read."""
    try:
        events = [event for event in spool.waiting_events(paths.spool, now) if isinstance(event, spool.Event)]
    except StoreError:
        return None
    return Waiting(len(events), events[0].received, locks.is_recorder_running(paths)) if events else None


def recording(store: Path, homes: Homes) -> Recording:
    """Return whether events are recorded: the hooks are in order, and this user may write to the store."""
    hooks = hooks_status(store, homes)
    return Recording(False, blocked_reason(store)) if hooks.on and blocked_folders(store) else hooks


def blocked_folders(store: Path) -> list[Path]:
    """Return the existing folders in which this user may not read and write, and which recording needs."""
    paths, objects, heads = StorePaths(store), store / "objects", store / "refs" / "heads"
    folders = (store, paths.spool, paths.state, paths.locks, objects, objects / "pack", heads.parent, heads)
    return [path for path in folders if _is_folder(path) and not os.access(path, os.R_OK | os.W_OK | os.X_OK)]


def blocked_reason(store: Path) -> str:
    """Return why nothing can be recorded if a folder of the store is blocked, with the command to allow it."""
    return f"no permission to read and write in the store: {unblock_command(store)}"


def unblock_command(store: Path) -> str:
    """Return the shell command that gives this user access to the whole store."""
    return f"chmod -R u+rwX {quote_for_shell(str(store))}"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a folder above it may not be read, which is its own problem
        return False


def hooks_status(store: Path, homes: Homes) -> Recording:
    """Return whether the settings of a client run a stub of this store that can start its recorder."""
    states = [(client, _hooks_status(store, client)) for client in agents.hooked_clients(homes)]
    installed = [(client, state) for client, state in states if state.on or state.problem != _NO_HOOKS]
    client, recording = max(installed or states[-1:], key=lambda each: each[1].on)
    if recording.on and not recording.problem:
        for other, state in states:
            if other != client and not state.on and state.problem != _NO_HOOKS:
                return replace(
                    recording, problem=f"{other.agent.title} is not recorded: {state.problem}", hint=state.hint
                )
    return recording


def _hooks_status(store: Path, client: Client) -> Recording:
    hooks = client.agent.hooks
    try:
        document = hook_settings.read(hooks.settings_file(client.folder)).document
    except SessgitError as error:
        return Recording(False, f"cannot read the client's settings: {error}")
    installed = hooks.installed(document)
    hook, plugin = StorePaths(store).hook, "" if installed.entries else installed.plugin
    others = sorted(path for path in installed.stubs if Path(path) != hook)
    if not installed.entries and not installed.plugin:
        return Recording(False, _NO_HOOKS, INSTALL)
    if refusal := hooks.refusal(document, client.folder):
        is_untrusted = hooks.untrusted(document, client.folder)
        return Recording(False, refusal, f"{INSTALL} --agent {client.agent.name} --trust" if is_untrusted else "")
    if installed.entries and str(hook) not in installed.stubs:
        return Recording(False, f"the hooks record into another store, {Path(others[0]).parent}", INSTALL)
    folder = client.agent.plugin.folder(client.folder, plugin) if plugin else None
    version = client.agent.plugin.version(folder) if folder else None
    if folder and version is None:
        again = f"claude plugin marketplace remove {plugin.partition('@')[2]}, then add the moved folder"
        return Recording(False, f"the plugin's folder {folder} is gone", again)
    if plugin and not hook.is_file():
        return Recording(False, "the plugin makes the store at the next start", INSTALL)
    if not StorePaths(store).spool.is_dir():
        return Recording(False, f"{StorePaths(store).spool} is missing, so events are dropped", INSTALL)
    if not hook.is_file():
        return Recording(False, f"{hook} is missing", INSTALL)
    python = stub.stub_interpreter(store)
    if not os.access(python, os.X_OK):
        return Recording(False, f"the hook starts {python or 'no program'}, which is gone", INSTALL)
    missing = [event for event in hook_settings.HOOK_EVENTS if installed.entries and event not in installed.events]
    if missing:
        return Recording(True, f"no hook for {', '.join(missing)}", INSTALL)
    if installed.entries and installed.plugin:
        return Recording(True, f"the plugin {installed.plugin} leaves it to the hooks in the settings")
    if version and version != __version__:
        problem = f"the plugin {plugin} is version {version}, the program {__version__}"
        is_newer = version_order(version) > version_order(__version__)
        update = "update sessgit, as in `uv tool upgrade sessgit`" if is_newer else f"claude plugin update {plugin}"
        return Recording(True, problem, update, plugin)
    return Recording(True, plugin=plugin)


def version_order(version: str) -> tuple[int, ...]:
    """Return a sort key for a version: its numbers."""
    return tuple(int(part) for part in re.findall("[0-9]{1,9}", version))


def _files(homes: Homes, known: Collection[str]) -> Iterator[_File]:
    for file in agents.transcripts(homes):
        try:
            modified = file.path.stat().st_mtime
        except OSError:  # deleted meanwhile
            continue
        yield _File(file.path, file.session, modified, file.session in known, file.agent)


def _contents(store: Path, homes: Homes, outlines: Sequence[Outline], index: Index) -> Contents:
    sessions, turns = index.count_sessions(), stats.count_turns(index)
    newest_first = sorted(outlines, key=lambda outline: outline.updated, reverse=True)
    last = next((outline for outline in newest_first if outline.turns and _has_own_turn(index, outline)), None)
    note = recorder_state.load_latest(StorePaths(store))
    if note is not None and (last is None or (note.session, note.turn) != (last.name, last.turns)):
        note = None
    only_here = len(client_files.lost_sessions(index, homes))
    return Contents(sessions, turns, sum(_sizes(store)), index.raw_size(), last, note, only_here)


def _has_own_turn(index: Index, outline: Outline) -> bool:
    """Return whether the session's last turn is its own: a new fork has only turns of its parent."""
    origin = index.origins([outline.name]).get(outline.name)
    return origin is None or outline.turns > origin.turn + bool(origin.cell)


def unrecorded_soon(store: Path, homes: Homes, index: Index, privacy: Privacy, now: float) -> list[Path]:
    """Return the transcripts that the client deletes within a week, and that are not recorded to their end though they
    may be."""
    projects = {outline.name: outline.project for outline in index.outlines()}
    _, soon = _expiring(homes, list(_files(homes, projects)), now)
    is_recorded = private.recorded_filter(privacy, projects)
    missing = (file for file in soon if _is_missing(StorePaths(store), file, projects))
    return [file.path for file in missing if is_recorded(file.path, file.session)]


def _expiring(homes: Homes, files: Sequence[_File], now: float) -> tuple[float, list[_File]]:
    """Return after how many days, at the least, a client deletes a transcript, and those deleted within a week."""
    days = dict[str, float]()
    for agent, folder in agents.hooked_clients(homes):
        with suppress(SessgitError):
            days[agent.name] = agent.hooks.cleanup_days(hook_settings.read(agent.hooks.settings_file(folder)).document)
    soon = [file for file in files if file.modified + days.get(file.agent, math.inf) * _DAY < now + WEEK]
    return min((days[file.agent] for file in soon), default=0.0), soon


def _is_new(file: _File, known: Collection[str]) -> bool:
    from sessgit.record import import_files  # with most of recording: it is loaded for a file that is not known

    return import_files.is_new(file.path, known)


def _is_missing(paths: StorePaths, file: _File, known: Collection[str]) -> bool:
    """Return whether a transcript has lines that could be recorded and are not; `held` are the known sessions."""
    if not file.known:
        return _is_new(file, known)
    return not catch_up.is_level(paths, file.session, file.path)


def _sizes(folder: Path) -> Iterator[int]:
    pending = [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False).st_size
            except OSError:  # deleted meanwhile
                continue
