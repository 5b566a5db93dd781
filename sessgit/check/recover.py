"""Conversations whose client is gone without having said so: recorded to their end, and so marked.

A client that is killed sends no event. Nothing here looks at a process but to see whether it is there. One that is
killed in its very first turn may have sent none while its transcript was there: then no session is known. Its file is
found by what it is, written since the hooks were installed and without an answer at its end: all other files that are
not known were written while nothing was to be recorded, and are an import's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.agents.reader import Reader, no_redaction, opened
from sessgit.errors import SessgitError
from sessgit.history import client_files, resolve
from sessgit.history.views import body_of
from sessgit.model import ids
from sessgit.record import catch_up, open_turns
from sessgit.record import privacy as private
from sessgit.record.bulk import discovery
from sessgit.record.privacy import Privacy
from sessgit.store import layout, project, refs
from sessgit.store.index import Index
from sessgit.store.recorder import cursor as cursors
from sessgit.store.sqlite.rows import Branch

if TYPE_CHECKING:
    from sessgit.store.store import Store

SETTLED = 5.0
"""Seconds after which a transcript is at rest where clients say that they live: what was buffered is written."""

_TELLING = (2, 1)
"""The first version of the client that says which of its processes live; of older ones a longer silence must do."""
_VERSION = re.compile(r"(\d{1,5})\.(\d{1,5})")

Cut = Literal["", "call", "answer"]
"""What the last turn lacks: the result of a call, or an answer to its prompt or to what came last; or nothing, also
where a person stopped it."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A session as it is recorded now; `turns` counts those that were recorded, or grew."""

    branch: Branch
    turns: int
    cut: Cut


@dataclass(frozen=True, slots=True)
class Failure:
    """A session that could not be recorded, and why."""

    session: str
    reason: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session whose transcript was written just now, by whom nothing says, and after how many seconds it is taken for
    left."""

    session: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was recovered, the session that was active last first, what could not be, and what may be later."""

    sessions: tuple[Recovered, ...]
    errors: tuple[Failure, ...]
    waiting: tuple[Waiting, ...] = ()


@dataclass(frozen=True, slots=True)
class _Left:
    """A transcript that no client seems to have open, and what is known of its session: `branch` is None where nothing
    of it is recorded. `version` is the client's."""

    session: str
    agent_id: str
    path: Path
    project: str
    version: str
    branch: Branch | None = None


def recover(  # noqa: PLR0913 - whose, where to, and when
    open_store: Callable[[], Store],
    index: Index,
    config: Path,
    privacy: Privacy,
    folder: str | None,
    *,
    clock: Callable[[], float],
    wait: Callable[[float], None],
) -> Outcome:
    """Records each session that was left by a client that is gone to the end of its transcript, of the project at
    `folder` or of all.

    A session of which nothing is left to record is not among them, nor one of a project that is off; no git library is
    loaded where there is none. One that cannot be recorded is named in the result, and the others go on. A file that
    will be at rest within seconds is waited for; one that takes longer is named. Raises UsageError where nothing may be
    recorded because a command asks.
    """
    private.check_on(off=privacy.off)
    found, errors, waiting = list[Recovered](), list[Failure](), list[Waiting]()
    left = [*_left(index, config, privacy, folder), *_unknown(index, config, privacy, folder)]
    now = clock()
    soon = max((rest for one in left if (rest := _rest(one, now)) <= SETTLED), default=0.0)
    if soon > 0:
        wait(soon)
        now = clock()
    for one in left:
        if _is_open(config, index, one):  # asked again: a client may have been writing that it lives
            continue
        if (rest := _rest(one, now)) > 0:
            waiting.append(Waiting(one.session, rest))
            continue
        try:
            done = _recorded(open_store, index, one, config, privacy)
        except SessgitError as error:
            errors.append(Failure(one.session, str(error)))
            continue
        if isinstance(done, Failure):
            errors.append(done)
        elif done is not None:
            found.append(done)
    found.sort(key=lambda one: (one.branch.state.updated, one.branch.name), reverse=True)
    return Outcome(tuple(found), tuple(errors), tuple(waiting))


def _left(index: Index, config: Path, privacy: Privacy, folder: str | None) -> Iterator[_Left]:
    """The sessions that nobody ended, or that have gone on since, and whose client is gone."""
    outlines = [outline for outline in index.outlines() if outline.turns and not outline.archived]
    if folder is not None:
        outlines = resolve.outlines_in_project(outlines, folder)
    beside = layout.StorePaths(index.path)
    for outline in outlines:
        branch = index.branch(outline.name)
        path = client_files.transcript_place(config, branch.state, beside) if branch else None
        if branch is None or path is None or not agents.at(config).home.is_transcript(config, path):
            continue
        state = branch.state
        if state.state != "active" and catch_up.is_level(beside, branch.name, path, final=True):
            continue
        one = _Left(state.id, state.agent_id, path, state.project, state.agent_version, branch)
        left = _is_begun(index, beside, branch, path) and not _is_open(config, index, one)
        if left and private.transcript_verdict(privacy, path, state.project).recorded:
            yield one


def _unknown(index: Index, config: Path, privacy: Privacy, folder: str | None) -> Iterator[_Left]:
    """The transcripts whose sessions nobody knows, and whose clients were killed before that: they were written since
    the hooks were installed, and nobody has answered at their end."""
    try:
        since = layout.StorePaths(index.path).hook.stat().st_mtime
    except OSError:  # nothing is recorded by itself
        return
    held = (ref.removeprefix(space) for space in layout.REF_SPACES for ref in refs.read_all(index.path, space))
    known = set(map(layout.session_of, held))
    here = project.project_key(folder) if folder is not None else None
    for path in agents.at(config).home.transcripts(config):
        session = ids.session_id(path.stem)
        if session in known or _modified(path) < since or not discovery.is_named_by_id(path):
            continue
        one = _cut_short(path, session)
        if one is None or _is_open(config, index, one):
            continue
        is_wanted = here is None or project.project_key(index.here(one.project)) == here
        if is_wanted and private.transcript_verdict(privacy, path, one.project).recorded:
            yield one


def _cut_short(path: Path, session: str) -> _Left | None:
    """What a transcript says of its session; None where the model has answered at its end, or nobody has asked."""
    agent, said = agents.of_file(path), dict[str, str]()

    def noted(lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            if line.cwd:
                said.setdefault("folder", line.cwd)
            if line.version:
                said["version"] = line.version
            yield line

    try:
        with opened(path) as source:
            if not agent.lines.is_cut_short(noted(Reader(source, 0, no_redaction, agent.lines.make).lines())):
                return None
    except (SessgitError, OSError):
        return None
    return _Left(session, path.stem, path, said.get("folder", ""), said.get("version", ""))


def _is_begun(index: Index, beside: layout.StorePaths, branch: Branch, path: Path) -> bool:
    """Whether a client wrote the file here: not where it is a fork that nobody has opened, whatever was brought to it,
    nor one that was restored from another machine, where the conversation may be going on."""
    origin = branch.state.origin
    prefix = origin.prefix if origin else 0
    try:
        if path.stat().st_size <= prefix or cursors.load_cursor(beside, branch.name) is None:
            return False
    except OSError:
        return False
    if origin is None or not prefix or not catch_up.is_level(beside, branch.name, path):
        return True
    own = index.turns(branch.name, origin.turn + bool(origin.cell) + 1)
    return not own or not all(row.message.get("Origin") for row in own)


def _rest(one: _Left, now: float) -> float:
    """In how many seconds the file will have been at rest for as long as it takes; 0 where it is."""
    version = _VERSION.match(one.version)
    tells = version is not None and (int(version[1]), int(version[2])) >= _TELLING
    needed = SETTLED if tells else catch_up.QUIET_SECONDS
    return min(max(0.0, _modified(one.path) + needed - now), needed)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it is gone: whoever records it says so
        return 0.0


def _is_open(config: Path, index: Index, one: _Left) -> bool:
    """Whether a client or a program has the session open."""
    return agents.at(config).home.is_open(config, one.agent_id) or open_turns.is_open(
        layout.StorePaths(index.path), one.session
    )


def _recorded(
    open_store: Callable[[], Store], index: Index, one: _Left, config: Path, privacy: Privacy
) -> Recovered | Failure | None:
    """The session recorded to its end; None where it is as it was, or must stay so."""
    before = {row.commit for row in index.turns(one.session)}
    caught = catch_up.record_file(open_store, index, one.path, config, privacy, project=one.project, final=True)
    if caught.off:
        return None
    if not caught.level:
        return Failure(one.session, caught.why)
    index.sync(one.session)
    now = index.branch(one.session)
    if now is None:
        return None
    turns = sum(row.commit not in before for row in index.turns(one.session))
    if not turns and one.branch is not None and now.state.state == one.branch.state.state:
        return None
    return Recovered(now, turns, _cut(open_store(), index, now))


def _cut(store: Store, index: Index, branch: Branch) -> Cut:
    cells, rows = store.cells(branch.tip, branch.state.turns), index.turns(branch.name)
    if any(cell.ok is None for cell in cells):
        return "call"
    is_answered = bool(cells) and cells[-1].type != "tool"
    if is_answered or branch.state.state == "interrupted" or not rows:
        return "" if rows else "answer"
    about, _ = agents.of(branch.state).content.told(body_of(store, branch.tip, rows[-1]))
    return "" if about.answer and not about.calls else "answer"  # without a model the program itself said it
