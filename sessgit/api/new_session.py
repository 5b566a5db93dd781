"""A session that a program begins: a branch with its first commit, before anything is said in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sessgit import agents
from sessgit.branch import edit as edits
from sessgit.branch.edit import check_name_free
from sessgit.errors import ConflictError, UsageError
from sessgit.model import canonical, ids
from sessgit.model.conversation.session import Session
from sessgit.record import commits
from sessgit.record.context import RecordContext
from sessgit.store import layout, locks, refs
from sessgit.store.files import paths
from sessgit.store.sqlite.rows import Branch


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a new session shall be: its id, which is a uuid where the client shall find it by `claude --resume`, the
    folder of its project, and what a person would say of it."""

    id: str
    project: str
    name: str = ""
    description: str = ""
    labels: Sequence[str] = ()


def create_session(world: RecordContext, new: NewSession) -> Branch:
    """Makes the session's branch. Raises ConflictError where the id or name is taken, or the project is off, UsageError
    where the folder or the id is none."""
    project = _resolve_folder(new.project)
    place = agents.at(world.config).home.transcript_place(world.config, "", new.id, project)
    if place is None or ids.session_id(new.id) != new.id:
        raise UsageError(f"“{canonical.one_line(new.id, 60)}” is not a session id", "Use a uuid.")
    world.check_on(project)
    time = world.now()
    rules = world.rules.stored
    blank = Session(new.id, new.id, project=project, transcript=str(place), rules=rules)
    changes = edits.EditChanges(
        new.name or None,
        edits.parse_description(new.description) or None,
        edits.parse_labels([f"+{one}" for one in new.labels])[0],
    )
    state = edits.changed_state(world.store, blank, changes).after
    born = canonical.rfc3339(time)
    state = replace(state, created=born, updated=born)
    with (
        locks.names_lock(world.store.beside, edits.LOCK_TIMEOUT),
        locks.session_lock(world.store.beside, new.id, edits.LOCK_TIMEOUT),
    ):
        if _is_taken(world, new.id) or paths.is_there(place):
            raise ConflictError(f"the session {new.id} already exists", "Open it with load_session.")
        if state.name:
            world.index.sync()
            check_name_free(world.index, state.name, "", project)
        commit = commits.commit_start(world.store, state)
        world.store.repo.move(layout.head_ref(new.id), None, commit)
    world.index.sync(new.id)
    branch = world.index.branch(new.id)
    assert branch is not None
    return branch


def _resolve_folder(named: str) -> str:
    """The folder with its links resolved, as the client has it."""
    with suppress(ValueError):  # with NUL or half a character in it
        real = os.path.realpath(named)
        if os.path.isdir(real):  # noqa: PTH112 - a text
            return real
    shown = canonical.printable(named)
    raise UsageError(f"there is no folder {shown}", "Pass cwd, the project folder of the session.")


def _is_taken(world: RecordContext, session: str) -> bool:
    spaces = (layout.head_ref(session), layout.archive_ref(session), layout.tombstone_ref(session))
    return any(refs.read(world.store.path, ref) for ref in spaces)
