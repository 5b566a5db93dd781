"""The writer of a session: appends turns and cells to its transcript, and records them.

The transcript is a write-ahead log: a cell is in the file when it begins, so a crash leaves it there as pending. The
store is brought up to date when a turn ends; after a cell outside turns when something is read, the session ends, or
`_FLUSH_SECONDS` have passed, so that many such cells in a row are recorded together. One turn can be open at a time:
another process or thread that wants to open one waits. What a program passes is checked before anything is written, so
that an error leaves no trace.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sessgit import agents
from sessgit.agents.base import Chain
from sessgit.api.opened import OpenStore
from sessgit.api.values import Cell, State
from sessgit.branch.restore import append_missing_turns, restore_session
from sessgit.errors import ROOM, ConflictError, NotFoundError, SessgitError, UsageError
from sessgit.history import cells as recorded_cells
from sessgit.history import client_files, project_git, turn_log
from sessgit.model import canonical, dependency_graph, program_input
from sessgit.model.ids import cell_id
from sessgit.model.program_input import GivenTurn, Outcome, Part, Reason, Step, Task, ToolCall
from sessgit.record import catch_up, privacy, program_turns
from sessgit.record.program_turns import OpenTurnLock
from sessgit.record.recording import record, skipped_error
from sessgit.record.source import TranscriptSource
from sessgit.store import layout, locks, private_files, project, refs
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.private_files import write_private

LOCK_TIMEOUT = 10.0
"""Seconds that a write waits for a recorder or another writer."""
TODO_STATUSES = ("pending", "in_progress", "completed")
_TRIES = 5
_GRACE_SECONDS = 0.5
"""Seconds that the end of a cell waits for a process that only checks whether its turn is open."""
_POLL_SECONDS = 0.01
_FLUSH_SECONDS = 0.1
_MOST_NAMED = 3
_LONGEST_CALL_SECONDS = 660.0
"""Seconds after which a client that wrote nothing is taken as gone: it lets a command run for 10 minutes at most."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_NOTHING_RECORDED = "Nothing was recorded."
_UNKNOWN_DEPENDENCY_HINT = "Nothing was started. A cell can depend only on cells started before it, or with it."


class Writer:
    """Writes turns and cells of one session: appends to its transcript, and records it. Several threads may use it at
    once, and other processes their own.

    `end` is the known end of the file, `outside` that of the lines that wait to be recorded outside it.
    `sidecars_changed` is set when plans or todos were written since the last recording, `wrote` when anything was
    appended. The open store's lock is held while the store and the index are used.
    """

    def __init__(self, store: OpenStore, branch: Branch) -> None:
        self.store, self.context = store, store.current()
        self.agent = agents.of(branch.state)
        self.id, self.agent_id = branch.name, branch.state.agent_id
        self.project = branch.state.project
        place = client_files.transcript_place(self.context.homes, branch.state, self.context.store.paths)
        if place is None:
            raise ConflictError(f"the place of {self.id[:8]}'s file is unknown", "Its project folder was not recorded.")
        self.folder = self.context.homes.of(branch.state)
        self.end = self.agent.programs.end(place, branch.state)
        self.outside = self.agent.programs.outside(self.context.store.paths.waiting_cells(self.id), branch.state)
        self.sidecars_changed = False
        self.wrote = False
        self._unrecorded = set[str]()
        """The cells outside turns that wait to be recorded."""
        self._timer = threading.Timer(_FLUSH_SECONDS, self._record_waiting)
        self._turn: OpenTurnLock | None = None
        self._known = _KnownCells()
        self._is_known = False
        """Whether the ids of the cells before the open turn were read; no other process adds cells while it is open."""

    def append_outside(self, write: Callable[[Chain], Sequence[bytes]]) -> None:
        """Add the lines that `write` makes outside the transcript of a session that a client has open. They are
        recorded with the transcript."""
        paths = self.context.store.paths
        with locks.cells_lock(paths, self.id, LOCK_TIMEOUT) as held:
            if not held:
                raise ConflictError(f"another process has been adding cells to {self.id[:8]}", "Try again.")
            self.outside.read()
            self.outside.append(write(self.outside.chain), durable=False)
            self.wrote = True

    def append(self, write: Callable[[Chain], Sequence[bytes]], key: str = "") -> None:
        """Append the lines that `write` makes after the last line, also if another process wrote meanwhile.

        Raises ConflictError if `key` is given and the last prompt is another one: the turn is over.
        """
        for attempt in range(_TRIES):
            self._restore()
            with self._session_lock():
                if not self._is_readable() and attempt + 1 < _TRIES:
                    continue  # it was deleted meanwhile
                if key and self.end.key != key:
                    raise ConflictError(
                        f"{self.id[:8]} continued without this turn", "Nothing more can be added to it."
                    )
                try:
                    self.end.chain.say_branch(project.checked_out_branch(self.project))
                    lines = write(self.end.chain)
                except BaseException:
                    self.end.forget()  # the chain has advanced already
                    raise
                try:
                    self.end.append(lines, durable=False)
                except ConflictError:
                    if attempt + 1 == _TRIES:
                        raise
                    continue
                self.wrote = True
                return

    def record(self, *, final: bool = False) -> int:
        """Record what the transcript has and the store lacks, and return the number of its last turn, 0 for none; with
        `final` the session has ended.

        Raises ConflictError if the session was archived, deleted or switched off meanwhile: then what was written is
        only in the file.
        """
        number = self._record_file(final=final)
        self.store.waiting.pop(self.id, None)
        self._unrecorded.clear()
        self._timer.cancel()
        return number

    def _record_file(self, *, final: bool) -> int:
        privacy.check_project(self.context.privacy, self.project)
        # The end of a session has no HEAD of the project, which git looks up while a turn is recorded.
        has_head = not final and self.project and project.project_key(self.project) != self.project
        env = self.context.env
        looking = project_git.project_head_in_background(self.project, env) if has_head else nullcontext("")
        with self._session_lock(), looking as head:
            if not self.end.read():
                return 0
            source = TranscriptSource(
                self.end.path, self.agent_id, self.folder, final=final, live=self.sidecars_changed, head=head,
                client=self.agent.name,
            )  # fmt: skip
            recording = record(self.context, source)
            self.sidecars_changed = False
        if recording.skipped:
            raise skipped_error(self.id, recording.skipped)
        if self.store.keeps_index:
            path = self.end.path.parent / self.agent.sidecars.INDEX
            known = path.read_bytes() if path.exists() else None
            write_private(path, self.agent.sidecars.merged(known, {self.end.path: self.branch().state}, path))
        return next((row.turn for row in self.context.index.with_prompt(self.end.key) if row.branch == self.id), 0)

    def append_missing_turns(self) -> None:
        """Append the turns that the file lacks, if the session was continued elsewhere."""
        waiting = self.store.waiting.get(self.id)
        if waiting is not None:
            if waiting != self.record:  # cells that another object of this session wrote
                self.record()
            return
        self._restore()
        branch = self.branch()
        if not self.end.read() or not branch.state.turns:
            return
        last = self.context.index.turn(self.id, branch.state.turns)
        if last is None or last.prompt == self.end.key:
            return
        self.record()  # if a client wrote meanwhile, the store lacks turns
        append_missing_turns(self.context.store, self.id, self.context.homes, self.end.path)

    def check_open(self) -> None:
        """Raise ConflictError if no turn may be written: the session is off, archived or deleted, or open in a
        client."""
        self.check_recorded()
        if self.is_live():
            raise ConflictError(
                f"{self.id[:8]} is open in a client that would not see new turns",
                "Add cells and reasons to its turn, close it first, or continue in a fork.",
            )

    def check_recorded(self) -> None:
        """Raise ConflictError if the session is off, archived or deleted."""
        privacy.check_project(self.context.privacy, self.project)
        if refs.read(self.context.store.path, layout.head_ref(self.id)) is None:
            raise skipped_error(self.id, "archived" if self.branch().archived else "deleted")

    def is_live(self) -> bool:
        """Return whether a client has the session open: as it says itself, or because its last turn has no end and the
        file has changed in the last minutes. Old clients do not say so."""
        if agents.is_open(self.context.homes, self.agent_id):
            return True
        if not self.end.read() or not self.end.client_at_work:
            return False
        return abs(time.time() - self.end.path.stat().st_mtime) < _LONGEST_CALL_SECONDS

    def branch(self) -> Branch:
        """Return the session's branch as it is now; raises NotFoundError if it is gone."""
        return self.context.branch(self.id)

    def _restore(self) -> None:
        """Write the file again if it is missing or empty: the client deletes old ones."""
        with suppress(OSError):
            if self.end.path.stat().st_size:
                return
        if not self.branch().state.turns:
            return
        with suppress(FileNotFoundError):
            self.end.path.unlink()
        self.end.path = restore_session(self.context.store, self.id, self.context.homes).path

    def _is_readable(self) -> bool:
        """Read the end of the file; return False if the file is missing or empty although turns are recorded."""
        return (self.end.read() and self.end.size + self.end.torn > 0) or not self.branch().state.turns

    @contextmanager
    def _session_lock(self) -> Iterator[None]:
        with locks.session_lock(self.context.store.paths, self.id, LOCK_TIMEOUT) as is_locked:
            if not is_locked:
                raise ConflictError(
                    f"another process has been writing {self.id[:8]} for {LOCK_TIMEOUT:g} seconds", "Try again."
                )
            yield

    # Turns

    def begin_turn(self, prompt: str, *, timeout: float) -> str:
        """Open a turn, after the one that another writer has open, and return its prompt's uuid.

        Raises UsageError if this thread has a turn open, ConflictError after `timeout` seconds or if a client has the
        session open.
        """
        _check_prompt(prompt)
        with self._writing(timeout) as turn:
            self.append(lambda chain: [*self._abandoned(chain), *chain.prompt(prompt, self.context.now())])
            turn.key = self.end.key
            self._turn = turn
            return turn.key

    def end_turn(self, answer: str, model: str, tokens: Mapping[str, int]) -> int:
        """Close the open turn, with an answer if there is one, and record it; return its number.

        If cells that other threads began still run in it, it stays open for these, and ends with the last of them.
        """
        with self.store.lock:
            turn = self._opened()
            try:
                program_input.check(GivenTurn("", (), answer, model, tokens=tokens))
                if answer.strip():
                    self.append(lambda chain: chain.words(answer, self.context.now(), model, tokens), turn.key)
                return self.record()
            finally:
                turn.detach_thread()
                if not turn.cells:
                    self._close(turn)

    def add(self, parts: Sequence[Part], model: str) -> None:
        """Add parts to the open turn; raises UsageError, and adds nothing, as `begin` does."""
        program_input.check(GivenTurn("", tuple(parts)))
        with self.store.lock:
            self._add(self._opened(), parts, model)

    def note(self, turn: GivenTurn) -> None:
        """Add the parts of a turn to the one that this process or a client has open; if there is none, record it as a
        turn."""
        _check_turn(turn)
        with self.store.lock:
            if self._turn is not None:
                self._add(self._turn, turn.parts, turn.model)
                return
            if self.is_live():
                self._add_outside(turn.parts)
                return
        self.whole(turn)

    def whole(self, turn: GivenTurn) -> int:
        """Record a whole turn and return its number; raises what `begin_turn` and `begin` raise."""
        _check_turn(turn)
        with self._writing(LOCK_TIMEOUT):
            started = self.context.now() if turn.time is None else turn.time
            named = replace(turn, parts=self._identified(turn.parts), time=started)
            self.append(lambda chain: [*self._abandoned(chain), *chain.turn(named)])
            return self.record()

    def reason(self, reason: Reason) -> None:
        """Add a reason to the open turn; outside one it becomes a turn. Raises UsageError."""
        program_input.check(reason)
        self.note(GivenTurn(f"{reason.kind}: {canonical.one_line(reason.text, 100)}", (reason,)))

    def write_todos(self, todos: Sequence[Mapping[str, Any]]) -> None:
        """Write the todo list to the client's file and note it in the transcript; raises UsageError."""
        checked = [_check_todo(todo) for todo in todos]
        name = f"{self.agent_id}-agent-{self.agent_id}.json"
        _write_client_file(self.folder / "todos", name, json.dumps(checked, ensure_ascii=False, indent=2))
        self._note_sidecar("todos", ToolCall("TodoWrite", {"todos": checked}, "Todos have been modified successfully."))

    def create_plan(self, content: str) -> str:
        """Write a plan under a new name of three words, which every later line of the transcript has; return the
        name."""
        if not content.strip():
            raise UsageError("a plan needs words", "Nothing was written.")
        folder, name = self.folder / "plans", ""
        while not name or (folder / name).exists():
            name = self.agent.sidecars.plan_name(str(uuid.uuid4()))
        _write_client_file(folder, name, content)
        with self.store.lock:
            self.end.chain.say_plan(name.removesuffix(".md"))
        self._note_sidecar("plan", ToolCall("ExitPlanMode", {"plan": content}, f"The plan is in {name}."))
        return name

    # Cells

    def begin(self, tasks: Sequence[Task]) -> list[Task]:
        """Begin cells, dependencies first, and return them with their ids, in the order given.

        Outside a turn they are added outside that of the client that has the session open, or else open one, which ends
        with the last of them. Raises UsageError, and begins nothing, if a task
        is invalid, an id is used, a dependency is unknown, or they depend on each other in a cycle; its message has the
        path.
        """
        checked = list(map(program_input.check, tasks))
        if not checked:
            return []
        with self.store.lock:
            if self._turn is None and self.is_live():
                return [step.task for step in self._add_outside([Step(task) for task in checked])]
        with self._writing(LOCK_TIMEOUT, join="open") as turn:
            ready = self._named(checked)
            by_id = {task.id: task for task in ready}
            order = dependency_graph.topological_order({task.id: task.dependencies for task in ready})
            now, prompt = self.context.now(), "" if turn.key else _cells_title(ready)

            def lines(chain: Chain) -> list[bytes]:
                opened = [*self._abandoned(chain), *chain.prompt(prompt, now)] if prompt else []
                return opened + [line for cell in order for line in chain.call(by_id[cell], now)]

            self.append(lines, turn.key)
            if prompt:
                turn.key, turn.loose = self.end.key, True
                self._turn = turn
            turn.begin(by_id)
            return ready

    def complete(self, outcomes: Mapping[str, Outcome]) -> None:
        """End cells that were begun.

        Raises NotFoundError if the last turn has no such cell, ConflictError if a cell has a result, or another process
        has its turn open.
        """
        for outcome in outcomes.values():
            program_input.check(outcome)
        if not outcomes:
            return
        with self.store.lock:
            if self._turn is None and self._complete_outside(outcomes):
                return
        with self._writing(_GRACE_SECONDS, join="closing") as turn:
            try:
                self.append(lambda chain: self._completed(chain, outcomes))
            except SessgitError:
                if turn.loose and self.end.key not in ("", turn.key):
                    self._close(turn)  # the session continued without it
                raise
            for cell in outcomes:
                turn.cells.pop(cell, None)
            if turn.loose and not turn.cells:
                self._close(turn)
                self._record_soon()
            elif (
                not turn.key or self.context.privacy.rules.granularity == "cell"
            ):  # without a key, a crash left the cells
                self.record()

    def pending(self) -> list[Cell]:
        """Return the cells of the last turn that have no result."""
        with self.store.lock:
            is_there = self.end.read()  # the client deletes old files
            tasks = list(self.end.pending.values()) if is_there else self._recorded_pending()
            tasks += self._pending_outside()
        state: State = "running" if tasks and self.is_open() else "interrupted"
        return [Cell(task.id, task.type, task.operation, task.dependencies, state) for task in tasks]

    def is_open(self) -> bool:
        """Return whether a program has a turn of the session open, or a client has the session."""
        return program_turns.is_open(self.context.store.paths, self.id) or self.is_live()

    def finish(self) -> None:
        """Record that the session has ended; cells outside turns stay pending. Raises UsageError if this process has a
        turn open."""
        with self.store.lock:
            if self._turn is not None and not self._turn.loose:
                raise UsageError(f"a turn of {self.id[:8]} is open", "It ends when its `with` block ends.")
            if self._turn is not None:
                self._close(self._turn)
            is_aside = refs.read(self.context.store.path, layout.head_ref(self.id)) is None
            if not is_aside or not catch_up.is_level(self.context.store.paths, self.id, self.end.path):
                self.record(final=not self.is_live())  # else it was archived or deleted when it was recorded

    # Private: the open turn

    @contextmanager
    def _writing(self, timeout: float, join: Literal["", "open", "closing"] = "") -> Iterator[OpenTurnLock]:
        """Hold the lock of a new turn, which has no key yet, and release it unless the caller opens the turn.

        With `join` use the turn that this process has open, with `closing` even one that is about to end.
        """
        deadline = time.monotonic() + timeout
        while True:
            with self.store.lock:
                turn = self._turn
                if turn is not None and join and (join == "closing" or not turn.closing or turn.is_mine):
                    yield turn
                    return
                new = program_turns.open_turn(self.context.store.paths, self.id)
                if new is not None:
                    try:
                        self._is_known = False
                        self.check_open()
                        self.append_missing_turns()
                        yield new
                    finally:
                        if self._turn is not new:
                            program_turns.close_turn(self.context.store.paths, self.id, new)
                    return
                if turn is not None and turn.loose:
                    turn.closing = True  # or cells of others would keep it open forever
            if time.monotonic() >= deadline:
                raise ConflictError(
                    f"another program has a turn of {self.id[:8]} open", "Wait for it, or continue in a fork."
                )
            time.sleep(_POLL_SECONDS)

    def _record_soon(self) -> None:
        """Record the session together with what follows soon; a crash before leaves it to whatever reads it next."""
        self._unrecorded.update(self.end.begun)
        if self.id not in self.store.waiting:
            self.store.waiting[self.id] = self.record
            self._timer = threading.Timer(_FLUSH_SECONDS, self._record_waiting)
            self._timer.start()

    def _record_waiting(self) -> None:
        with self.store.lock, suppress(SessgitError):  # whatever uses the store next raises it
            if self.id in self.store.waiting:
                self.record()

    def _opened(self) -> OpenTurnLock:
        if self._turn is None:
            raise UsageError("no turn is open", "Open one: `with session.turn(PROMPT):`")
        return self._turn

    def _close(self, turn: OpenTurnLock) -> None:
        self._turn = None
        program_turns.close_turn(self.context.store.paths, self.id, turn)

    def _add(self, turn: OpenTurnLock, parts: Sequence[Part], model: str) -> None:
        now, named = self.context.now(), self._identified(parts)
        self.append(lambda chain: [line for part in named for line in chain.part(part, model, now)], turn.key)
        turn.begin(part.task.id for part in named if isinstance(part, Step) and part.outcome is None)

    def _add_outside(self, parts: Sequence[Part]) -> list[Step]:
        """Add parts outside the transcript; return its cells with their ids."""
        self.check_recorded()
        self.outside.read()
        now, named = self.context.now(), self._identified(parts)
        steps = {part.task.id: part for part in named if isinstance(part, Step)}
        order = dependency_graph.topological_order({cell: step.task.dependencies for cell, step in steps.items()})
        ready = [*map(steps.__getitem__, order), *(part for part in named if not isinstance(part, Step))]
        self.append_outside(lambda chain: [line for part in ready for line in chain.part(part, "", now)])
        return list(steps.values())

    def _complete_outside(self, outcomes: Mapping[str, Outcome]) -> bool:
        """End cells that were begun outside the transcript; return whether they were. Raises ConflictError if one of
        them has a result."""
        has_result = self._outside_cells()
        if not outcomes.keys() <= has_result.keys():
            return False
        self._check_incomplete(cell for cell in outcomes if has_result[cell])
        now, ended = self.context.now(), outcomes.items()
        self.append_outside(lambda chain: [line for cell, one in ended for line in chain.outcome(cell, one, now)])
        return True

    def _outside_cells(self) -> dict[str, bool]:
        """Return all cells outside the transcript, and whether each has a result."""
        store, path = self.context.store, self.outside.path
        recorded = turn_log.program_line_files(store, self.branch().tip).values()
        data = [*(store.repo.blob(oid) for oid, _ in recorded), path.read_bytes() if path.exists() else b""]
        out = dict[str, bool]()
        for line in self.agent.parsed(line for part in data for line in part.split(b"\n") if line):
            cell, ends = self.agent.programs.cell_of(line)
            if cell:
                out[cell] = out.get(cell, False) or ends
        return out

    def _pending_outside(self) -> list[Task]:
        """Return the cells of the last turn outside the transcript that have no result."""
        if not self.outside.read() and not turn_log.program_line_files(self.context.store, self.branch().tip):
            return []
        waiting, has_result = self.outside.pending, self._outside_cells()
        recorded = [task for task in self._recorded_pending() if not has_result.get(task.id, True)]
        return [*(task for task in recorded if task.id not in waiting), *waiting.values()]

    def _note_sidecar(self, prompt: str, call: ToolCall) -> None:
        """Add the call to the open turn, else to the last one; without any it is a turn."""
        self.sidecars_changed = True
        with self.store.lock:
            is_between_turns = self._turn is None and not self.is_live() and self.end.read() and bool(self.end.key)
        if not is_between_turns:
            self.note(GivenTurn(prompt, (call,)))
            return
        with self._writing(LOCK_TIMEOUT):
            now = self.context.now()
            self.append(lambda chain: [*self._abandoned(chain), *chain.part(call, "", now)])
            self.record()

    # Private: cells

    def _abandoned(self, chain: Chain) -> list[bytes]:
        """Return lines that fail the cells which the last turn left pending: the caller holds the turn's lock."""
        return self._ends(chain, dict.fromkeys(self.end.pending, Outcome(error=self.agent.programs.GONE)))

    def _completed(self, chain: Chain, outcomes: Mapping[str, Outcome]) -> list[bytes]:
        self._check_incomplete(cell for cell in outcomes if cell in self.end.begun and cell not in self.end.pending)
        if unknown := next((cell for cell in outcomes if cell not in self.end.pending), ""):
            raise NotFoundError(
                f"{unknown} is not a cell of the last turn of {self.id[:8]}", "A closed turn takes no more results."
            )
        return self._ends(chain, outcomes)

    def _check_incomplete(self, complete: Iterator[str]) -> None:
        if cell := next(complete, ""):
            raise ConflictError(f"{cell} already has a result", "A result cannot be overwritten.")

    def _ends(self, chain: Chain, outcomes: Mapping[str, Outcome]) -> list[bytes]:
        now, begun = self.context.now(), self.end.begun
        return [line for cell in outcomes for line in chain.outcome(cell, outcomes[cell], now, begun[cell].operation)]

    def _identified(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the parts, each cell with an id; raises what `_named` raises, and UsageError if the id of a call is
        used."""
        if any(isinstance(part, ToolCall) and part.id for part in parts):
            if self.id in self.store.waiting:
                self.record()
            self._load_known_cells()
            _check_calls(parts, self._is_called)
        tasks = iter(self._named([part.task for part in parts if isinstance(part, Step)]))
        return tuple(replace(part, task=next(tasks)) if isinstance(part, Step) else part for part in parts)

    def _named(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks with ids; raises UsageError if an id is used or a dependency unknown."""
        if any(task.id or task.dependencies for task in tasks):
            self._load_known_cells()
        return _check_tasks(tasks, self._is_taken, self.id)

    def _load_known_cells(self) -> None:
        if not self._is_known:
            self._known.read(self.context, self.branch())
            self._is_known = True

    def _is_taken(self, cell: str) -> bool:
        """Return whether the session has a cell with that id."""
        begun = (self.end.begun, self.outside.begun, self._unrecorded, self._known.ids)
        return any(cell in cells for cells in begun)

    def _is_called(self, name: str) -> bool:
        """Return whether the session has a call with that id."""
        return (
            name in self.end.called
            or name in self.outside.called
            or self._known.has_call(name)
            or self._is_taken(name.removeprefix(self.agent.programs.call_id("")))
        )

    def _recorded_pending(self) -> list[Task]:
        """Return the recorded cells of the last turn that have no result, without their arguments."""
        branch = self.branch()
        last = recorded_cells.read_turns(self.context, branch, max(1, branch.state.turns))
        cells = [node.cell for node in last[-1].nodes] if last else []
        return [Task(cell.type, cell.operation, {}, "", cell.depends, cell.id) for cell in cells if cell.ok is None]


@dataclass
class _KnownCells:
    """The ids of a branch's recorded cells up to the commit `tip`, and the rows of its turns.

    Reads only new turns as long as the last turn that it read is unchanged, so the work does not grow with the session.
    """

    ids: set[str] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)
    tip: str = ""

    def read(self, context: Context, branch: Branch) -> None:
        """Add the ids that the branch has and this object lacks."""
        if branch.tip == self.tip:
            return
        index, last = context.index, len(self.rows)
        if not last or index.turn(branch.name, last) != self.rows[-1]:
            self.ids, self.rows, last = set(), [], 0
        new = recorded_cells.read_turns(context, branch, last + 1)
        self.ids.update(record[0] for turn in new for record in turn.records)
        if new:
            self.rows += index.turns(branch.name, last + 1, new[-1].number)
        current = index.branch(branch.name)
        if current is not None and current.tip == branch.tip:
            self.tip = branch.tip
        else:  # another process has updated the index meanwhile
            self.tip, self.rows = "", []

    def has_call(self, name: str) -> bool:
        """Return whether a recorded cell is the call to which the agent gave that id."""
        return any(cell_id(row.prompt, name) in self.ids for row in self.rows)


def _cells_title(tasks: Sequence[Task]) -> str:
    """Return the prompt of a turn that cells open."""
    shown = ", ".join(f"{task.source or task.type}: {task.operation}" for task in tasks[:_MOST_NAMED])
    return shown if len(tasks) <= _MOST_NAMED else f"{shown} and {len(tasks) - _MOST_NAMED} more"


def _check_todo(todo: Mapping[str, Any]) -> dict[str, Any]:
    values = todo if isinstance(todo, Mapping) else {}
    content, status, form = values.get("content"), values.get("status", "pending"), values.get("activeForm")
    if not isinstance(content, str) or not content.strip() or status not in TODO_STATUSES:
        raise UsageError(
            "a todo has a content and a status", f"The statuses are {', '.join(TODO_STATUSES)}. Nothing was written."
        )
    return {"content": content, "status": status, "activeForm": form if isinstance(form, str) and form else content}


def _write_client_file(folder: Path, name: str, text: str) -> None:
    path = folder / name
    try:
        private_files.make_folder(path.parent)
        write_private(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise SessgitError(f"cannot write {path}: {error.strerror or error}", ROOM) from error


# Checks


def _check_prompt(text: str) -> None:
    """Raise UsageError if the text cannot open a turn."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError("the prompt of a turn is empty", "Describe the purpose of the turn, as a person would.")
    if not agents.of_programs().lines.opens_turn(text):
        raise UsageError(
            f"“{canonical.one_line(text, 40)}” cannot start a turn: the client's own notes start like that",
            "Describe the purpose of the turn, as a person would.",
        )


def _check_turn(turn: GivenTurn) -> None:
    """Raise UsageError if a whole turn is invalid; `_check_tasks` checks the ids of its cells."""
    _check_prompt(turn.prompt)
    program_input.check(turn)


def _check_tasks(tasks: Sequence[Task], is_taken: Callable[[str], bool], session: str) -> list[Task]:
    """Return the tasks, each with an id; `is_taken` tells whether the session has a cell with an id.

    Raises UsageError if an id is used, a dependency is unknown, or they depend on each other in a cycle; its message
    has the path.
    """
    named = list[Task]()
    own: dict[str, tuple[str, ...]] = {}
    for task in tasks:
        if task.id and (task.id in own or is_taken(task.id)):
            raise UsageError(f"the cell {task.id} already exists", "Each cell of a session needs its own id.")
        named.append(
            task if task.id else replace(task, id="cell_" + "".join(secrets.choice(_LETTERS) for _ in range(8)))
        )
        own[named[-1].id] = task.dependencies
    for task in named:
        if lost := next((other for other in task.dependencies if other not in own and not is_taken(other)), ""):
            raise UsageError(
                f"{task.operation} depends on {lost}, which is not a cell of {session[:8]}", _UNKNOWN_DEPENDENCY_HINT
            )
    if way := dependency_graph.find_cycle(own):
        raise UsageError(f"the cells depend on each other in a cycle: {' → '.join(way)}", "Nothing was begun.")
    return named


def _check_calls(parts: Sequence[Part], is_taken: Callable[[str], bool]) -> None:
    """Raise UsageError if the id of a call is used; `is_taken` tells whether the session has it."""
    own = set[str]()
    for part in parts:
        if isinstance(part, ToolCall) and part.id:
            if part.id in own or is_taken(part.id):
                raise UsageError(
                    f"the call {part.id} already exists", f"Each call needs its own id. {_NOTHING_RECORDED}"
                )
            own.add(part.id)
