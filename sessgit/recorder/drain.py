"""Recording the events that wait in the spool, session by session, until none waits that another process leaves.

What is done after the commits is imported after them: a user may wait for the commits.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sessgit import agents
from sessgit.agents import Agent, Transcript
from sessgit.errors import SessgitError
from sessgit.history import client_files, project_git
from sessgit.model import ids
from sessgit.record import privacy, program_turns
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import locks, log, operations, recorder_state, settings, spool
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import path_exists
from sessgit.store.recorder_state import LatestTurn
from sessgit.store.settings import Privacy, span_seconds
from sessgit.store.spool import Claim, Event, UnreadableEvent
from sessgit.store.store import Store

_PROMPT_EVENTS = ("SessionStart", "UserPromptSubmit")
"""The events at which the last prompt, if it is in the transcript already, has only just been typed."""
_STOP_EVENTS = ("Stop", "PostToolUse")
"""The events at which the end of the transcript is not written yet."""
_FRESH_SECONDS = 10.0
"""Seconds after which the project's commit is no longer the one that a turn left behind."""
_INDEXING_SECONDS = 20.0
"""Seconds that a recorder may spend on the full-text index, of the minute that it has."""
_WAIT_SECONDS = 3.0
"""Seconds that a recorder waits for another process that works on a session; a command takes less."""
QUIET_SECONDS = 0.15
"""Seconds without growth after which a transcript is taken as written, if there is no answer to wait for."""
ANSWER_SECONDS = 1.0
"""Seconds that a recorder waits for an answer."""
_ANSWER_POLL_SECONDS = 0.005
_POLL_SECONDS = 0.05


def drain_spool(store_path: Path, homes: Homes, env: dict[str, str], claim: Claim | None = None) -> None:
    """Record every event that waits.

    An event whose session another process works on for long stays; one of a project that is off is discarded. A
    recorder that releases a session's lock reads the spool again, because an event that came meanwhile found the lock
    held. A command does not, so one recorder waits for it. `claim` is this process's claim to read the spool, if it
    has one; it is given up first.
    """
    paths = StorePaths(store_path)
    claim = claim or Claim(paths)
    try:
        config, mistake = settings.load_or_default(paths)
    except SessgitError as error:
        # Which projects are off is not known. The transcripts hold everything until the settings are fixed.
        log.write(paths.log, time.time(), f"nothing is recorded until the settings are fixed: {error}")
        claim.give_up()
        for event in spool.waiting_events(paths.spool, time.time()):
            spool.discard_event(event)
        return
    if mistake:
        log.write(paths.log, time.time(), f"the settings are ignored: {mistake}")
    store = Store(store_path, fsync=config.record.fsync)
    index = Index(store_path, lambda: store)
    home = env.get("HOME") or "/"
    index.local_path = client_files.local_path_map(config.project.map, home, index.remotes)
    drain = _Drain(Context(index, homes, Privacy(config.record, home), env), claim)
    try:
        drain.process_all()
        drain.wait()
        with drain.logged("full-text index"):
            update_fulltext(index, _INDEXING_SECONDS)
        with locks.maintenance_lock(paths) as lock:
            if lock:
                _pack_if_due(store_path, lock)
                with drain.logged("automatic archiving"):
                    _archive_old(drain.context, span_seconds(config.archive.after), lock)
        drain.process_all()  # an event that was saved meanwhile may have taken this recorder for one about to read it
    finally:
        index.close()
    if paths.repacking.exists() and not locks.is_repack_running(paths):
        from sessgit.store import maintenance

        maintenance.start_repack(store_path, env)


class _Drain:
    def __init__(self, context: Context, claim: Claim) -> None:
        self.context, self.claim = context, claim
        self.paths = StorePaths(context.index.path)
        self.is_busy = False
        """Whether another process works on a session of which an event waits."""

    def wait(self) -> None:
        """Process what waits for another process to release a session, if that takes a moment.

        Until then this recorder has the claim to read the spool, so that events start no others. If another recorder
        has it, that one will find the events.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while self.is_busy and time.monotonic() < deadline:
            if not self.claim.take(time.time()):
                return
            time.sleep(_POLL_SECONDS)
            self.process_all()

    def process_all(self) -> None:
        while self._process_waiting():
            pass

    def _process_waiting(self) -> bool:
        """Process the events that wait now; return whether one of them is gone."""
        self.is_busy = False
        # Before reading, each time: an event that is saved from here on starts a recorder of its own.
        self.claim.give_up()
        progress = False
        by_file: dict[str, list[Event]] = {}
        for event in spool.waiting_events(self.paths.spool, time.time()):
            if isinstance(event, UnreadableEvent):
                self.log(f"unreadable event: {event.why}")
                progress |= spool.discard_event(event)
            else:
                by_file.setdefault(event.transcript_path, []).append(event)
        for path, events in by_file.items():
            try:
                progress |= self._process_session(Path(path), events)
            except (SessgitError, sqlite3.Error) as error:  # no other session would be recorded any more
                self.log(f"{Path(path).stem}: {error}")
                progress |= _discard(events)
        return progress

    def _process_session(self, path: Path, events: Sequence[Event]) -> bool:
        """Record a session unless its project is off; return whether its events are gone."""
        if self._is_off(path, events[-1]):
            return _discard(events)
        file = agents.transcript_at(self.context.homes, path)
        if file is None:
            # A transcript that does not exist yet is recorded at the next event.
            if path_exists(path):
                self.log(f"{events[-1].name} names a transcript in another place: {path}")
            return _discard(events)
        with locks.session_lock(self.paths, file.session) as is_locked:
            if not is_locked:
                self.is_busy = True
                return False
            try:
                self._record(file, events)
            except Exception as error:
                bug = "" if isinstance(error, SessgitError) else f"a bug: {type(error).__name__}: "
                self.log(f"{path.stem}: {bug}{error}")
            return _discard(events)

    def _is_off(self, path: Path, event: Event) -> bool:
        """Return whether nothing of the session's project may be recorded, not even that it exists."""
        rules, homes, index = self.context.privacy, self.context.homes, self.context.index
        if rules.is_everything:
            return False
        session = ids.session_id(agents.of_file(path).home.agent_id(path))
        index.sync(session)  # it may have been moved to a project that is off since the index was synced
        branch = index.branch(session)
        project = branch.state.project if branch else ""
        if not project and agents.transcript_at(homes, path) is None:
            return not privacy.verdict(rules, event.cwd).recorded
        return not privacy.transcript_verdict(rules, path, project, event.cwd).recorded

    def _record(self, file: Transcript, events: Sequence[Event]) -> None:
        last, context, path, agent = events[-1], self.context, file.path, agents.named(file.agent)
        stops = [event for event in events if event.name in _STOP_EVENTS]
        # The answer may be there before the event that names it: the first process notes the project's commit.
        is_fresh = bool(stops) or time.time() - _modified_time(path) < _FRESH_SECONDS
        head = project_git.project_head(last.cwd, context.env) if last.cwd and is_fresh else ""
        if stops:
            cursor = recorder_state.load_cursor(self.paths, file.session)
            offset = cursor.offset if cursor else 0
            wait_for_answer(agent, path, offset, stops[-1].last_assistant_message, stops[-1].received)
        written = _modified_time(path)
        is_final = last.name == "SessionEnd"
        is_prompting = all(event.name in _PROMPT_EVENTS for event in events)
        source = TranscriptSource(
            path, file.agent_id, context.homes.folders[file.agent], final=is_final, live=True, prompting=is_prompting,
            head=head, client=file.agent,
        )  # fmt: skip
        has_cells = self.paths.waiting_cells(file.session).exists()
        result = record(context, source)
        if result.skipped == "archived":
            from sessgit.branch import archive

            archive.bring_back(context, result.session)
            result = record(context, source)
        if has_cells and not is_prompting:
            program_turns.record_waiting(context, file.session)
        if result.turns:
            now = time.time()
            delay = max(0, round((now - written) * 1000)) if stops else None
            recorder_state.save_latest(self.paths, LatestTurn(result.session, result.turns[-1], now, delay))

    @contextmanager
    def logged(self, what: str) -> Iterator[None]:
        """Write errors to the log and go on."""
        try:
            yield
        except (SessgitError, OSError, sqlite3.Error) as error:
            self.log(f"{what}: {error}")

    def log(self, message: str) -> None:
        log.write(self.paths.log, time.time(), message)


def wait_for_answer(agent: Agent, path: Path, offset: int, answer: str | None, since: float) -> bool:
    """Wait until the client has written the answer, or, without one, until the file no longer grows; return False at
    the time limit. `since` is the time, in seconds since 1970, at which the client began its hook."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        is_written = agent.lines.holds_answer(path, offset, answer)
        if is_written is None:
            is_written = time.time() - max(since, _modified_time(path)) > QUIET_SECONDS
        if is_written or time.monotonic() > deadline:
            return is_written
        time.sleep(_ANSWER_POLL_SECONDS)


def _discard(events: Sequence[Event]) -> bool:
    """Return whether all events are gone: one that stays would be processed for ever."""
    discarded = [spool.discard_event(event) for event in events]
    return all(discarded)


def update_fulltext(index: Index, seconds: float) -> None:
    """Make turns searchable for about so many seconds, unless another process does it.

    Raises SessgitError or `sqlite3.Error` if the full-text index cannot be written; the next search repairs it.
    """
    from sessgit.history import search
    from sessgit.store.fulltext import TextIndex
    from sessgit.store.index import is_damage

    words = TextIndex(index.path, wait=0)
    try:
        if not search.is_up_to_date(index, words):
            search.add_new_turns(index, words, seconds=seconds)
    except sqlite3.Error as error:
        if is_damage(error):
            words.remove()
        elif getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
    finally:
        words.close()


def _archive_old(context: Context, after: float, lock: int) -> None:
    """Archive what the settings call old; `lock` is the descriptor of the maintenance lock, which is held."""
    if after == math.inf:
        return
    from sessgit.branch import archive

    if archive.archive_old(context, after=after).sessions:
        operations.pack_refs(context.index.path, lock)


def _pack_if_due(store: Path, lock: int) -> None:
    from sessgit.store import maintenance

    if maintenance.pack_store(store, lock):
        maintenance.delete_leftovers(store, time.time())


def _modified_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # recording reports it
        return 0.0
