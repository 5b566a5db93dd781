"""Conversations whose client is gone without having said so: recorded to their end, and so marked.

A client that is killed sends no event. Nothing here looks at a process but to see whether it is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sessgit.agents.claude import content, home
from sessgit.errors import SessgitError
from sessgit.model.conversation.session import Session
from sessgit.ops import privacy as private
from sessgit.ops.finding import places, resolve
from sessgit.ops.privacy import Privacy
from sessgit.ops.programs import opening
from sessgit.ops.reading.views import body_of
from sessgit.ops.recording import catchup
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.indexed.rows import Branch
from sessgit.store.recorder import cursor as cursors

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
class Outcome:
    """What was recovered, the session that was active last first, and what could not be."""

    sessions: tuple[Recovered, ...]
    errors: tuple[Failure, ...]


def recover(
    open_store: Callable[[], Store],
    index: Index,
    config: Path,
    privacy: Privacy,
    folder: str | None,
    now: float,
) -> Outcome:
    """Records each session that was left by a client that is gone to the end of its transcript, of the project at
    `folder` or of all.

    A session of which nothing is left to record is not among them, nor one of a project that is off; no git library is
    loaded where there is none. One that cannot be recorded is named in the result, and the others go on. Raises
    UsageError where nothing may be recorded because a command asks.
    """
    private.check_on(off=privacy.off)
    found, errors = list[Recovered](), list[Failure]()
    for branch, path in list(_left(index, config, privacy, folder, now)):
        if home.is_open(config, branch.state.agent_id):  # asked again: a client may have been writing that it lives
            continue
        try:
            done = _recorded(open_store, index, branch, path, config, privacy)
        except SessgitError as error:
            errors.append(Failure(branch.name, str(error)))
            continue
        if isinstance(done, Failure):
            errors.append(done)
        elif done is not None:
            found.append(done)
    found.sort(key=lambda one: (one.branch.state.updated, one.branch.name), reverse=True)
    return Outcome(tuple(found), tuple(errors))


def _left(
    index: Index, config: Path, privacy: Privacy, folder: str | None, now: float
) -> Iterator[tuple[Branch, Path]]:
    """The sessions that nobody ended, or that have gone on since, and whose client is gone; with their transcripts."""
    outlines = [outline for outline in index.outlines() if outline.turns and not outline.archived]
    if folder is not None:
        outlines = resolve.in_project(outlines, folder)
    beside = layout.Beside(index.path)
    for outline in outlines:
        branch = index.branch(outline.name)
        path = places.place_of(config, branch.state, beside) if branch else None
        if branch is None or path is None or not home.is_transcript(config, path):
            continue
        is_ended = branch.state.state != "active"
        if is_ended and catchup.is_level(beside, branch.name, path, final=True):
            continue
        left = _is_begun(index, beside, branch, path) and _is_gone(config, beside, branch.state, path, now)
        if left and private.of_transcript(privacy, path, branch.state.project).recorded:
            yield branch, path


def _is_begun(index: Index, beside: layout.Beside, branch: Branch, path: Path) -> bool:
    """Whether a client wrote the file here: not where it is a fork that nobody has opened, whatever was brought to it,
    nor one that was restored from another machine, where the conversation may be going on."""
    origin = branch.state.origin
    prefix = origin.prefix if origin else 0
    try:
        if path.stat().st_size <= prefix or cursors.load(beside, branch.name) is None:
            return False
    except OSError:
        return False
    if origin is None or not prefix or not catchup.is_level(beside, branch.name, path):
        return True
    own = index.turns(branch.name, origin.turn + bool(origin.cell) + 1)
    return not own or not all(row.message.get("Origin") for row in own)


def _is_gone(config: Path, beside: layout.Beside, state: Session, path: Path, now: float) -> bool:
    """Whether no client and no program has the session open, and the file has been at rest for a while."""
    version = _VERSION.match(state.agent_version)
    tells = version is not None and (int(version[1]), int(version[2])) >= _TELLING
    try:
        quiet = now - path.stat().st_mtime
    except OSError:
        return False
    is_open = home.is_open(config, state.agent_id) or opening.is_open(beside, state.id)
    return quiet > (SETTLED if tells else catchup.QUIET) and not is_open


def _recorded(
    open_store: Callable[[], Store], index: Index, branch: Branch, path: Path, config: Path, privacy: Privacy
) -> Recovered | Failure | None:
    """The session recorded to its end; None where it is as it was, or must stay so."""
    before = {row.commit for row in index.turns(branch.name)}
    caught = catchup.record_file(open_store, index, path, config, privacy, project=branch.state.project, final=True)
    if caught.off:
        return None
    if not caught.level:
        return Failure(branch.name, caught.why)
    index.sync(branch.name)
    now = index.branch(branch.name)
    if now is None:
        return None
    turns = sum(row.commit not in before for row in index.turns(branch.name))
    if not turns and now.state.state == branch.state.state:
        return None
    return Recovered(now, turns, _cut(open_store(), index, now))


def _cut(store: Store, index: Index, branch: Branch) -> Cut:
    cells, rows = store.cells(branch.tip, branch.state.turns), index.turns(branch.name)
    if any(cell.ok is None for cell in cells):
        return "call"
    is_answered = bool(cells) and cells[-1].type != "tool"
    if is_answered or branch.state.state == "interrupted" or not rows:
        return "" if rows else "answer"
    about, _ = content.told(body_of(store, branch.tip, rows[-1]))
    return "" if about.answer and not about.calls else "answer"  # without a model the program itself said it
