"""Recording what waits in the spool, session by session, until nothing waits that nobody else works on.

What only comes after the commit is loaded after it: somebody may wait for that.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from sessgit import agents
from sessgit.errors import SessgitError
from sessgit.history import client_files
from sessgit.history.code import git
from sessgit.model import ids
from sessgit.model.config import Config, span_seconds
from sessgit.record import privacy
from sessgit.record.privacy import Privacy
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource, rules_from_settings
from sessgit.store import locks, log, settings
from sessgit.store.files import paths
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder import last_turn, spool
from sessgit.store.recorder.claim import Claim
from sessgit.store.recorder.last_turn import LatestTurn
from sessgit.store.recorder.spool import Event, UnreadableEvent
from sessgit.store.store import Store

_PROMPT_EVENTS = ("SessionStart", "UserPromptSubmit")
"""The events at which the last prompt, if it is in the transcript already, has only just been given."""
_STOP_EVENTS = ("Stop", "PostToolUse")
"""The events at which the transcript is not yet written as far as the event tells."""
_FRESH_SECONDS = 10.0
"""Seconds after which a turn that an event brings in says nothing of what the project is at now."""
_INDEXING_SECONDS = 20.0
"""Seconds that a recorder may spend on the text index, of the minute that it has."""
_WAIT_SECONDS = 3.0
"""Seconds that a recorder waits for whoever else works on a session: a command does so for less."""
_POLL_SECONDS = 0.05


def drain_spool(store_path: Path, config_folder: Path, env: dict[str, str], claim: Claim | None = None) -> None:
    """Records every event that waits; one whose session someone else works on for long stays, and one of a project that
    is off is dropped.

    A recorder that lets go of a session's lock reads the spool again: an event that came meanwhile found the lock held.
    A command does not, so one recorder waits for it. `claim` is what this process has of the claim to read the spool;
    it is given up first.
    """
    beside = StorePaths(store_path)
    claim = claim or Claim(beside)
    try:
        config, mistake = settings.load_or_default(beside)
    except SessgitError as error:
        # Which projects are off is not known. The transcripts hold everything until that is put right.
        log.write(beside.log, time.time(), f"nothing is recorded until the settings are fixed: {error}")
        _discard_all(beside.spool, claim)
        return
    if mistake:
        # It costs the settings and not the recording.
        log.write(beside.log, time.time(), f"the settings are ignored: {mistake}")
    store = Store(store_path, fsync=config.record.fsync)
    index = Index(store_path, lambda: store)
    index.here = client_files.local_path_map(config.project.map, env.get("HOME") or "/")
    drain = _Drain(store, index, config, config_folder, env, claim)
    try:
        while drain.process_waiting():
            pass
        drain.wait()
        drain.index_words()
        with locks.maintenance_lock(beside) as held:
            if held:
                _pack_if_due(store_path, held)
                drain.archive_old(held)
        while (
            drain.process_waiting()
        ):  # what was saved meanwhile may have taken this recorder for one that is yet to read it
            pass
    finally:
        index.close()
    if beside.repacking.exists() and not locks.is_repack_running(beside):
        from sessgit.store.packing import background_repack

        background_repack.start_repack(store_path, env)


class _Drain:
    def __init__(
        self, store: Store, index: Index, config: Config, folder: Path, env: dict[str, str], claim: Claim
    ) -> None:
        self.store, self.index, self.config, self.folder, self.env = store, index, config, folder, env
        self.claim = claim
        self.privacy = Privacy(config.record, env.get("HOME") or "/")
        self.is_busy = False
        """Whether somebody else was at work on a session of which an event waits."""

    def wait(self) -> None:
        """Works on what waits for somebody else to let go of a session, if that takes a moment.

        Until then this is the recorder that has yet to read the spool, so that events start no others. Where another
        one is that, it finds them.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while self.is_busy and time.monotonic() < deadline:
            if not self.claim.take(time.time()):
                return
            time.sleep(_POLL_SECONDS)
            while self.process_waiting():
                pass

    def process_waiting(self) -> bool:
        """Works on all that waits; False where nothing could be done."""
        self.is_busy = False
        # Before reading, each time: an event that is saved from here on starts a recorder of its own.
        self.claim.give_up()
        events = spool.waiting_events(self.store.beside.spool, time.time())
        progress = False
        for event in events:
            if isinstance(event, UnreadableEvent):
                self._log(f"unreadable event: {event.why}")
                progress |= spool.discard_event(event)
        by_file: dict[str, list[Event]] = {}
        for event in events:
            if isinstance(event, Event):
                by_file.setdefault(event.transcript_path, []).append(event)
        for path, group in by_file.items():
            try:
                progress |= self._session(Path(path), group)
            except (SessgitError, sqlite3.Error) as error:  # else no other session would be recorded any more
                self._log(f"{Path(path).stem}: {error}")
                progress |= _discard_events(group)
        return progress

    def _session(self, path: Path, events: Sequence[Event]) -> bool:
        if self._is_off(path, events[-1]):
            return _discard_events(events)
        if not agents.at(self.folder).home.is_transcript(self.folder, path):
            if paths.is_there(path):
                self._log(f"{events[-1].name} names a transcript in another place: {path}")
            # A transcript that is not there yet is recorded at the next event.
            return _discard_events(events)
        with locks.session_lock(self.store.beside, ids.session_id(path.stem)) as held:
            if not held:
                self.is_busy = True
                return False
            try:
                self._record(path, events)
            except SessgitError as error:
                self._log(f"{path.stem}: {error}")
            except Exception as error:
                self._log(f"{path.stem}: a bug: {type(error).__name__}: {error}")
            return _discard_events(events)

    def _is_off(self, path: Path, event: Event) -> bool:
        """Whether nothing of the session's project is to be known here, not even that there is one."""
        if self.privacy.is_everything:
            return False
        session = ids.session_id(path.stem)
        self.index.sync(session)  # a session may have been moved to a project that is off since the index was level
        known = self.index.branch(session)
        recorded = known.state.project if known else ""
        if not recorded and not agents.at(self.folder).home.is_transcript(self.folder, path):
            return not privacy.verdict(self.privacy, event.cwd).recorded
        return not privacy.transcript_verdict(self.privacy, path, recorded, event.cwd).recorded

    def _record(self, path: Path, events: Sequence[Event]) -> None:
        last = events[-1]
        stops = [event for event in events if event.name in _STOP_EVENTS]
        # The answer may be there before the event that tells of it: whoever comes first notes what the project is at.
        fresh = bool(stops) or time.time() - _modified_time(path) < _FRESH_SECONDS
        head = git.project_head(last.cwd, self.env) if last.cwd and fresh else ""
        if stops:
            known = cursors.load_cursor(self.store.beside, ids.session_id(path.stem))
            agents.at(self.folder).wait(
                path, known.offset if known else 0, stops[-1].last_assistant_message, stops[-1].received
            )
        written = _modified_time(path)
        final = last.name == "SessionEnd"
        prompting = all(event.name in _PROMPT_EVENTS for event in events)
        source = TranscriptSource(path, path.stem, self.folder, final=final, live=True, prompting=prompting, head=head)
        rules = rules_from_settings(self.config.record)
        done = record(self.store, self.index, source, rules)
        if done.aside == "archived":
            from sessgit.branch import archive

            archive.bring_back(self.store, self.index, done.session, time.time())
            done = record(self.store, self.index, source, rules)
        if done.turns:
            now = time.time()
            delay = max(0, round((now - written) * 1000)) if stops else None
            last_turn.save(self.store.beside, LatestTurn(done.session, done.turns[-1], now, delay))

    def index_words(self) -> None:
        """Makes what was recorded searchable; what goes wrong is for the next search to put right."""
        from sessgit.recorder import fulltext_update

        try:
            fulltext_update.update_fulltext(self.index, _INDEXING_SECONDS)
        except (SessgitError, sqlite3.Error) as error:
            self._log(f"full-text index: {error}")

    def archive_old(self, lock: int) -> None:
        """Archives what the settings call old; `lock` is the descriptor of the maintenance lock, which is held."""
        after = span_seconds(self.config.archive.after)
        if after == math.inf:
            return
        from sessgit.branch import archive
        from sessgit.store import maintenance

        try:
            if archive.archive_old(
                self.store, self.index, self.folder, self.privacy, time.time(), after=after
            ).sessions:
                maintenance.pack_refs(self.store.path, lock)
        except (SessgitError, OSError, sqlite3.Error) as error:
            self._log(f"automatic archiving: {error}")

    def _log(self, message: str) -> None:
        log.write(self.store.beside.log, time.time(), message)


def _pack_if_due(store: Path, lock: int) -> None:
    """Packs the store where it is time to; `lock` is the descriptor of the maintenance lock, which is held."""
    from sessgit.store.packing import schedule

    if not schedule.is_due(store):
        return
    from sessgit.store import maintenance

    if maintenance.pack_store(store, lock):
        maintenance.delete_leftovers(store, time.time())


def _discard_events(events: Sequence[Event]) -> bool:
    """Whether all are gone: one that stays would be worked on for ever."""
    gone = [spool.discard_event(event) for event in events]
    return all(gone)


def _modified_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # recording will say so
        return 0.0


def _discard_all(folder: Path, claim: Claim) -> None:
    claim.give_up()
    for event in spool.waiting_events(folder, time.time()):
        spool.discard_event(event)
