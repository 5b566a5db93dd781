"""`recover`: conversations whose client is gone without an end are recorded to their end.

A client that is killed sends no event. If it is killed in its first turn, it may have sent none before, so the session
is unknown: its transcript was written since the hooks were installed, and has no answer at its end. All other unknown
transcripts were written while nothing was recorded, and are left to an import.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from sessgit import agents
from sessgit.agents import Transcript
from sessgit.agents.line import Line, Reader, opened
from sessgit.errors import SessgitError
from sessgit.history import client_files, resolve, session_files
from sessgit.history.turn_log import body_of
from sessgit.model.frozen import frozen
from sessgit.record import catch_up, import_files, privacy, program_turns
from sessgit.store import layout, project, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.index import Branch

SETTLED = 5.0
"""Seconds without a write after which a client has written everything, if clients say which of them run."""

_FIRST_WITH_PROCESSES = (2, 1)
"""The first version of the client that says which of its processes run."""
_VERSION = re.compile(r"(\d{1,5})\.(\d{1,5})")

Cut = Literal["", "call", "answer"]
"""What the last turn lacks: the result of a call, or an answer; nothing if a user interrupted it."""


@frozen
class Recovered:
    """A session as it is recorded now; `turns` counts those that are new, or grew."""

    branch: Branch
    turns: int
    cut: Cut


@frozen
class Failure:
    """A session that could not be recorded, and why."""

    session: str
    reason: str


@frozen
class Waiting:
    """A session whose transcript was just written, and the seconds after which it counts as abandoned."""

    session: str
    seconds: float


@frozen
class Outcome:
    """The recovered sessions, the latest first, those that could not be, and those that may be later."""

    sessions: tuple[Recovered, ...]
    errors: tuple[Failure, ...]
    waiting: tuple[Waiting, ...] = ()


@frozen
class _Abandoned:
    """A transcript that no client has open; `branch` is None if nothing of it is recorded, `version` the client's.
    `is_stopped_program` tells that a program was killed in a turn."""

    file: Transcript
    project: str
    version: str
    branch: Branch | None = None
    is_stopped_program: bool = False

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the file was unchanged for long enough; a program that is gone writes no more."""
        if self.is_stopped_program:
            return 0.0
        version = _VERSION.match(self.version)
        has_processes = version is not None and (int(version[1]), int(version[2])) >= _FIRST_WITH_PROCESSES
        needed = SETTLED if has_processes else catch_up.QUIET_SECONDS
        return min(max(0.0, _modified(self.file.path) + needed - now), needed)


def recover(
    context: Context, folder: str | None, *, clock: Callable[[], float], wait: Callable[[float], None]
) -> Outcome:
    """Record each abandoned session of the project at `folder`, or of all projects, to the end of its transcript.

    The result has no sessions that were complete, or whose project is off, but those that another system left active,
    until they are continued. A session that cannot be recorded does not
    stop the others. A file that settles within seconds is waited for. Raises UsageError if no command may record.
    """
    privacy.check_on(context.privacy)
    abandoned = [
        one
        for one in (*_known_sessions(context, folder), *_unknown_sessions(context, folder))
        if privacy.transcript_verdict(context.privacy, one.file.path, one.project).recorded
    ]
    now = clock()
    soon = max((left for one in abandoned if (left := one.seconds_left(now)) <= SETTLED), default=0.0)
    if soon > 0:
        wait(soon)
        now = clock()
    recovered, errors, waiting = list[Recovered](), list[Failure](), list[Waiting]()
    for one in abandoned:
        if _is_open(context, one):  # a client may have started since
            continue
        if (seconds := one.seconds_left(now)) > 0:
            waiting.append(Waiting(one.file.session, seconds))
            continue
        try:
            recovered += _record(context, one)
        except SessgitError as error:
            errors.append(Failure(one.file.session, str(error)))
    recovered += _imported_sessions(context, folder)
    recovered.sort(key=lambda one: (one.branch.state.updated, one.branch.name), reverse=True)
    return Outcome(tuple(recovered), tuple(errors), tuple(waiting))


def _branches(context: Context, folder: str | None) -> Iterator[Branch]:
    """Yield the heads of the project's sessions that are not archived, those of all projects for None."""
    outlines = [outline for outline in context.index.outlines() if not outline.archived]
    own = outlines if folder is None else resolve.outlines_in_project(outlines, folder)
    return filter(None, (context.index.branch(outline.name) for outline in own))


def _known_sessions(context: Context, folder: str | None) -> Iterator[_Abandoned]:
    """Yield the sessions that did not end, or continued afterwards, and whose client is gone."""
    homes, paths = context.homes, layout.StorePaths(context.index.path)
    for branch in _branches(context, folder):
        path = client_files.transcript_place(homes, branch.state, paths)
        file = agents.transcript_at(homes, path) if path else None
        if path is None or file is None:
            continue
        state = branch.state
        if state.state != "active" and catch_up.is_level(paths, branch.name, path, final=True):
            continue
        is_stopped = _is_of_program(branch, path) and not catch_up.is_level(paths, branch.name, path)
        one = _Abandoned(file, state.project, state.agent_version, branch, is_stopped)
        if _was_written_here(context, branch, path) and not _is_open(context, one):
            yield one


def _imported_sessions(context: Context, folder: str | None) -> Iterator[Recovered]:
    """Yield the sessions that were active in another system, without a process, and were not continued here since."""
    gone = {name for name, facts in context.index.imported_facts().items() if facts.get("process") == "gone"}
    for branch in _branches(context, folder) if gone else ():
        if branch.name not in gone or branch.state.state != "interrupted":
            continue
        if session_files.source_note(context.store, branch.tip, branch.name).get("turns") == branch.state.turns:
            yield Recovered(branch, 0, _cut(context, branch, is_stopped=False))


def _unknown_sessions(context: Context, folder: str | None) -> Iterator[_Abandoned]:
    """Yield the transcripts of unknown sessions that were written since the hooks were installed, and have no answer at
    their end."""
    index, homes = context.index, context.homes
    try:
        since = layout.StorePaths(index.path).hook.stat().st_mtime
    except OSError:  # no hooks, so nothing is recorded by itself
        return
    names = (ref.removeprefix(space) for space in layout.REF_SPACES for ref in refs.read_all(index.path, space))
    known = set(map(layout.session_of, names))
    key = project.project_key(folder) if folder is not None else None
    for file in agents.transcripts(homes):
        if file.session in known or _modified(file.path) < since or not import_files.is_named_by_id(file.path):
            continue
        one = _unanswered(file)
        if one is None or _is_open(context, one):
            continue
        if key is None or project.project_key(index.local_path(one.project)) == key:
            yield one


def _unanswered(file: Transcript) -> _Abandoned | None:
    """Return what a transcript says about its session, None if an answer is at its end, or there is no prompt."""
    agent, folder, version = agents.named(file.agent), "", ""
    last: Line | None = None
    try:
        with opened(file.path) as source:
            for line in Reader(source, agent.lines.make).lines():
                folder, version = folder or line.cwd, line.version or version
                if line.is_prompt or (last is not None and line.is_work and not line.is_sidechain):
                    last = line
    except (SessgitError, OSError):
        return None
    return None if last is None or last.is_end else _Abandoned(file, folder, version)


def _is_of_program(branch: Branch, path: Path) -> bool:
    """Return whether a program wrote the last turn in the file. It has the turn locked until it has recorded it."""
    agent = agents.of(branch.state)
    if not agent.has("programs"):
        return False
    end = agent.programs.end(path, branch.state)
    return end.read() and not end.client_at_work and bool(end.pending or not branch.state.agent_version)


def _was_written_here(context: Context, branch: Branch, path: Path) -> bool:
    """Return whether a client wrote to the file here. Nobody may have opened a fork, also one with merged turns; and a
    conversation that was restored from another machine may go on there."""
    paths, origin = layout.StorePaths(context.index.path), branch.state.origin
    prefix = origin.prefix if origin else 0
    try:
        if path.stat().st_size <= prefix:
            return False
        if recorder_state.load_cursor(paths, branch.name) is None:
            return not branch.state.turns and origin is None  # a program was killed in the first turn
    except OSError:
        return False
    if origin is None or not prefix or not catch_up.is_level(paths, branch.name, path):
        return True
    own = context.index.turns(branch.name, origin.turn + bool(origin.cell) + 1)
    return not own or not all(row.trailer("Origin") for row in own)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it is gone, which recording will report
        return 0.0


def _is_open(context: Context, one: _Abandoned) -> bool:
    """Return whether a client or a program has the session open."""
    paths = layout.StorePaths(context.index.path)
    return agents.is_open(context.homes, one.file.agent_id) or program_turns.is_open(paths, one.file.session)


def _record(context: Context, one: _Abandoned) -> Iterator[Recovered]:
    """Record a session to its end; yield it if that changed it. Raises SessgitError if it cannot be recorded."""
    index = context.index
    before = {row.commit for row in index.turns(one.file.session)}
    result = catch_up.record_file(context, one.file, project=one.project, final=True)
    if result.off:
        return
    if not result.level:
        raise SessgitError(result.why)
    index.sync(one.file.session)
    branch = index.branch(one.file.session)
    turns = sum(row.commit not in before for row in index.turns(one.file.session))
    if branch is not None and (turns or one.branch is None or branch.state.state != one.branch.state.state):
        yield Recovered(branch, turns, _cut(context, branch, is_stopped=branch.state.state == "interrupted"))


def _cut(context: Context, branch: Branch, *, is_stopped: bool) -> Cut:
    """Return what the last turn lacks; `is_stopped` tells that a user may have stopped it. A program's cell needs no
    answer of a model."""
    cells, rows = context.store.cells(branch.tip, branch.state.turns), context.index.turns(branch.name)
    if any(cell.ok is None for cell in cells):
        return "call"
    is_answered = bool(cells) and (cells[-1].program or cells[-1].type != "tool")
    if is_answered or is_stopped or not rows:
        return "" if rows else "answer"
    about, _ = agents.of(branch.state).content.parse_turn(body_of(context.store, branch.tip, rows[-1]))
    return "" if about.answer and not about.calls else "answer"  # the program itself said it, without a model
