"""The transcript of a session that a program holds: lines written behind its end, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from sessgit import agents
from sessgit.agents.base import Chain
from sessgit.branch import backfill
from sessgit.branch.restore import restore_session
from sessgit.errors import ConflictError
from sessgit.history import client_files
from sessgit.history.code import git
from sessgit.record import catch_up
from sessgit.record.context import RecordContext
from sessgit.record.recording import record, set_aside_error
from sessgit.record.source import Head, TranscriptSource
from sessgit.store import layout, locks, project, refs
from sessgit.store.files import paths
from sessgit.store.sqlite.rows import Branch

LOCK_TIMEOUT = 10.0
"""Seconds that a write waits for a recorder or another writer."""
_TRIES = 5

Write = Callable[[Chain], Sequence[bytes]]


class Log:
    """Appends to the transcript of one session, one thread at a time.

    `end` is what is known of the file. `beside_changed` says whether plans or todos were written since the last
    recording, `wrote` whether anything was appended.
    """

    def __init__(self, world: RecordContext, branch: Branch) -> None:
        self.world = world
        self.agent = agents.of(branch.state)
        self.id, self.agent_id = branch.name, branch.state.agent_id
        self.project = branch.state.project
        place = client_files.transcript_place(world.config, branch.state, world.store.beside)
        if place is None:
            raise ConflictError(f"the place of {self.id[:8]}'s file is unknown", "Its project folder was not recorded.")
        self.end = self.agent.programs.end(place, branch.state)
        self.beside_changed = False
        self.wrote = False

    def append(self, write: Write, key: str = "") -> None:
        """Writes lines behind the last one, whoever else wrote meanwhile.

        Raises ConflictError where `key` is said and the last prompt is another one: the turn is over.
        """
        for attempt in range(_TRIES):
            self._restore()
            with self._session_lock():
                if not self._reads() and attempt + 1 < _TRIES:
                    continue  # it went meanwhile
                if key and self.end.key != key:
                    raise ConflictError(
                        f"{self.id[:8]} continued without this turn", "Nothing more can be added to it."
                    )
                try:
                    lines = write(self.end.chain)
                except BaseException:
                    self.end.forget()  # the chain is where it would be by now
                    raise
                try:
                    self.end.append(lines, durable=False)
                except ConflictError:
                    if attempt + 1 == _TRIES:
                        raise
                    continue
                self.wrote = True
                return

    def record(self, *, final: bool = False) -> None:
        """Brings the store level with the transcript; with `final` the session has ended.

        Raises ConflictError where it was archived, deleted or switched off meanwhile: then what was written is in the
        file alone.
        """
        self.world.check_on(self.project)
        with self._session_lock(), self._project_head(final=final) as head:
            if not self.end.read():
                return
            source = TranscriptSource(
                self.end.path, self.agent_id, self.world.config, final=final, live=self.beside_changed, head=head
            )
            done = record(self.world.store, self.world.index, source, self.world.rules)
            self.beside_changed = False
        if done.aside:
            raise set_aside_error(self.id, done.aside)

    def finish(self) -> None:
        """Records that the session has ended, unless a client has it, or it is out of the way with all that it has."""
        is_aside = refs.read(self.world.store.path, layout.head_ref(self.id)) is None
        if not is_aside or not catch_up.is_level(self.world.store.beside, self.id, self.end.path):
            self.record(final=not self.is_live())

    def bring_level(self) -> None:
        """Gives the file the turns that it lacks, where the session went on elsewhere."""
        self._restore()
        branch = self.branch()
        if not self.end.read() or not branch.state.turns:
            return
        last = self.world.index.turn(self.id, branch.state.turns)
        if last is None or last.prompt == self.end.key:
            return
        self.record()  # where a client wrote meanwhile, it is the store that lacks some
        backfill.bring_level(self.world.store, self.id, self.world.config, self.end.path)

    def check_open(self) -> None:
        """Raises ConflictError where nothing may be written: the session is out of the way, or a client has it."""
        self.world.check_on(self.project)
        if refs.read(self.world.store.path, layout.head_ref(self.id)) is None:
            raise set_aside_error(self.id, "archived" if self.branch().archived else "deleted")
        if self.is_live():
            raise ConflictError(
                f"{self.id[:8]} is open in a client that would not see new turns",
                "Close it first, or continue in a fork.",
            )

    def is_live(self) -> bool:
        """Whether a client has the session open."""
        return self.agent.home.is_open(self.world.config, self.agent_id)

    def branch(self) -> Branch:
        """The session's branch as it is now; raises NotFoundError where it is gone."""
        return self.world.branch(self.id)

    def number(self, key: str) -> int:
        """The number of the turn that a prompt opened, 0 where it is not recorded."""
        return next((row.turn for row in self.world.index.with_prompt(key) if row.branch == self.id), 0)

    def _restore(self) -> None:
        """Writes the file again where it is gone, as the client deletes those that are old, or was emptied."""
        if self._is_there() or not self.branch().state.turns:
            return
        with suppress(FileNotFoundError):
            self.end.path.unlink()
        self.end.path = restore_session(self.world.store, self.id, self.world.config).path

    def _is_there(self) -> bool:
        try:
            return bool(self.end.path.stat().st_size)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return paths.is_there(self.end.path)

    def _reads(self) -> bool:
        """Whether the end of the file is known now: it may be gone only where nothing is recorded."""
        return (self.end.read() and self.end.size + self.end.torn > 0) or not self.branch().state.turns

    @contextmanager
    def _session_lock(self) -> Iterator[None]:
        with locks.session_lock(self.world.store.beside, self.id, LOCK_TIMEOUT) as held:
            if not held:
                raise ConflictError(
                    f"another process has been writing {self.id[:8]} for {LOCK_TIMEOUT:g} seconds", "Try again."
                )
            yield

    def _project_head(self, *, final: bool) -> AbstractContextManager[Head]:
        """What the project is at, for which git looks while a turn is recorded; the end of a session has none."""
        if final or not self.project or project.project_key(self.project) == self.project:
            return nullcontext("")
        return git.project_head_in_background(self.project, self.world.env)
