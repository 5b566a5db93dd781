"""How the recording goes: whether it is on, what is in the store, what needs attention."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit import agents
from sessgit.errors import SessgitError, StoreError
from sessgit.history import lost_sessions
from sessgit.model import ids
from sessgit.record import catch_up
from sessgit.record import privacy as private
from sessgit.record.bulk import discovery
from sessgit.record.privacy import Privacy, Verdict
from sessgit.store import layout, locks, log, project, refs
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.log import LogEntry
from sessgit.store.recorder import last_turn, spool, stub
from sessgit.store.recorder.last_turn import LatestTurn
from sessgit.store.sqlite.rows import Outline

WEEK = 7 * 86_400
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Recording:
    """Whether events of the client reach the store; `why` not, or what is odd, in words for a person."""

    on: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Deleting:
    """The transcripts that the client deletes within a week, if it is started: how many, after how many days without
    a change, and from when on the first; how many of them are not recorded to their end, and how many of those
    because their project is off."""

    transcripts: int
    days: float
    first: float
    unrecorded: int
    off: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many events wait to be recorded, when the first one came, in seconds since 1970, and whether a recorder is
    running, which will take them."""

    events: int
    first: float
    recorder: bool


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class _File:
    """A transcript of the client: its session, when it was last written, and whether it is recorded at all."""

    path: Path
    session: str
    modified: float
    known: bool


def status(store: Path, config: Path, index: Index | None, privacy: Privacy, *, cwd: str, now: float) -> Status:
    """The state of the recording into the store at a path, whether there is one or not."""
    outlines = index.outlines() if index else []
    projects = {outline.name: outline.project for outline in outlines}
    deleted = {ref.removeprefix(layout.DELETED) for ref in refs.read_all(store, layout.DELETED)} if index else set()
    held = {*projects, *deleted}
    files = [file for file in _files(config, projects) if file.session not in deleted]
    is_recorded = private.recorded_filter(privacy, projects)
    return Status(
        recording(store, config),
        project.project_root(cwd),
        private.verdict(privacy, cwd),
        _contents(store, config, outlines, index) if index else None,
        _deleting(StorePaths(store), config, files, held, is_recorded, now),
        sum(
            not file.known and is_recorded(file.path, file.session) and discovery.is_new(file.path, held)
            for file in files
        ),
        tuple(log.entries(StorePaths(store).log)),
        StorePaths(store).purging.exists(),
        locks.is_repack_running(StorePaths(store)),
        waiting(StorePaths(store), now),
    )


def waiting(beside: StorePaths, now: float) -> Waiting | None:
    """Return what waits to be recorded, or None where nothing does, or the spool cannot be read."""
    try:
        events = [event for event in spool.waiting_events(beside.spool, now) if isinstance(event, spool.Event)]
    except StoreError:
        return None
    return Waiting(len(events), events[0].received, locks.is_recorder_running(beside)) if events else None


def recording(store: Path, config: Path) -> Recording:
    """Whether the client's settings run a stub of this store that can start its recorder."""
    try:
        found = agents.at(config).hooks.installed(agents.at(config).hooks.read(config / "settings.json").document)
    except SessgitError as error:
        return Recording(False, f"cannot read the client's settings: {error}")
    hook = StorePaths(store).hook
    others = sorted(path for path in found.stubs if Path(path) != hook)
    if not found.entries and not found.plugin:
        return Recording(False, "no hooks are installed: sessgit install")
    if found.hooks_disabled:
        return Recording(False, "the client's settings disable all hooks (disableAllHooks)")
    if found.entries and str(hook) not in found.stubs:
        return Recording(False, f"the hooks record into another store: {Path(others[0]).parent}")
    if not StorePaths(store).spool.is_dir():
        return Recording(False, f"{StorePaths(store).spool} is missing, so events are dropped: sessgit install")
    if not hook.is_file():
        return Recording(False, f"{hook} is missing: sessgit install")
    python = stub.stub_interpreter(store)
    if not os.access(python, os.X_OK):
        return Recording(False, f"the hook starts {python or 'no program'}, which is gone: sessgit install")
    missing = [event for event in agents.at(config).hooks.HOOK_EVENTS if found.entries and event not in found.events]
    if missing:
        return Recording(True, f"no hook for {', '.join(missing)}: sessgit install")
    if found.entries and found.plugin:
        return Recording(True, f"twice: both the settings and the plugin {found.plugin} run the hooks")
    return Recording(True)


def _files(config: Path, known: Collection[str]) -> Iterator[_File]:
    for path in agents.at(config).home.transcripts(config):
        try:
            modified = path.stat().st_mtime
        except OSError:  # deleted meanwhile
            continue
        session = ids.session_id(path.stem)
        yield _File(path, session, modified, session in known)


def _contents(store: Path, config: Path, outlines: Sequence[Outline], index: Index) -> Contents:
    sessions, turns = index.counts()
    held = [outline for outline in outlines if outline.turns]
    last = max(held, key=lambda outline: outline.updated, default=None)
    note = last_turn.load(StorePaths(store))
    if note is not None and (last is None or (note.session, note.turn) != (last.name, last.turns)):
        note = None
    only_here = len(lost_sessions.lost_sessions(index, config))
    return Contents(sessions, turns, sum(_sizes(store)), index.raw_size(), last, note, only_here)


def unrecorded_soon(store: Path, config: Path, index: Index, privacy: Privacy, now: float) -> list[Path]:
    """The transcripts that the client deletes within a week, that may be recorded, and are not to their end."""
    projects = {outline.name: outline.project for outline in index.outlines()}
    _, soon = _expiring(config, list(_files(config, projects)), now)
    is_recorded = private.recorded_filter(privacy, projects)
    missing = (file for file in soon if _is_missing(StorePaths(store), file, projects))
    return [file.path for file in missing if is_recorded(file.path, file.session)]


def _deleting(
    beside: StorePaths,
    config: Path,
    files: Sequence[_File],
    held: Collection[str],
    is_recorded: Callable[[Path, str], bool],
    now: float,
) -> Deleting | None:
    """What goes within a week, or None where nothing does or the client's settings cannot be read."""
    days, soon = _expiring(config, files, now)
    if not soon:
        return None
    missing = [file for file in soon if _is_missing(beside, file, held)]
    off = sum(not is_recorded(file.path, file.session) for file in missing)
    first = min(file.modified for file in soon) + days * _DAY
    return Deleting(len(soon), days, first, len(missing), off)


def _expiring(config: Path, files: Sequence[_File], now: float) -> tuple[float, list[_File]]:
    """After how many days the client deletes a transcript, and those that it deletes within a week."""
    try:
        days = agents.at(config).hooks.cleanup_days(agents.at(config).hooks.read(config / "settings.json").document)
    except SessgitError:
        return 0.0, []
    return days, [file for file in files if file.modified + days * _DAY < now + WEEK]


def _is_missing(beside: StorePaths, file: _File, held: Collection[str]) -> bool:
    """Whether anything of a transcript is not recorded that can be, where these are the sessions of which that is."""
    if not file.known:
        return discovery.is_new(file.path, held)
    return not catch_up.is_level(beside, file.session, file.path)


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
