"""Creates a session for a program: a branch with its first commit, before any turn."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from sessgit import agents
from sessgit.branch import edit as edits
from sessgit.branch.edit import EditChanges
from sessgit.errors import ConflictError, UsageError
from sessgit.model import canonical, ids
from sessgit.model.conversation.session import Session
from sessgit.record import commits
from sessgit.record import privacy as private
from sessgit.record.source import rules_from_settings
from sessgit.store import layout, locks, refs
from sessgit.store.context import Context
from sessgit.store.private_files import path_exists


def authored_changes(name: str, description: str, labels: Collection[str]) -> EditChanges:
    """Return the authored fields of a new session; raises UsageError if one is invalid."""
    added = edits.parse_labels([f"+{label}" for label in labels])[0]
    return EditChanges(name or None, edits.parse_description(description) or None, added)


def create_session(context: Context, id: str, folder: str, changes: EditChanges) -> None:
    """Create the session's branch. Raises ConflictError if the id or name is used, or the project is off, UsageError if
    the folder does not exist or the id is not one."""
    project = _resolve_folder(folder)
    agent = agents.of_programs()
    place = agent.home.transcript_place(context.homes.folders[agent.name], "", id, project)
    if place is None or ids.session_id(id) != id:
        raise UsageError(f"“{canonical.one_line(id, 60)}” is not a session id", "Use a uuid.")
    private.check_project(context.privacy, project)
    time = canonical.rfc3339(context.now())
    blank = Session(
        id, id, project=project, transcript=str(place), rules=rules_from_settings(context.privacy.rules).stored
    )
    state = replace(edits.changed_state(context.store, blank, changes).after, created=time, updated=time)
    with (
        locks.names_lock(context.store.paths, edits.LOCK_TIMEOUT),
        locks.session_lock(context.store.paths, id, edits.LOCK_TIMEOUT),
    ):
        own_refs = (layout.head_ref(id), layout.archive_ref(id), layout.tombstone_ref(id))
        if any(refs.read(context.store.path, ref) for ref in own_refs) or path_exists(place):
            raise ConflictError(f"the session {id} already exists", "Open it with load_session.")
        if state.name:
            context.index.sync()
            edits.check_name_free(context.index, state.name, "", project)
        context.store.repo.move(layout.head_ref(id), None, commits.commit_start(context.store, state))
    context.index.sync(id)


def _resolve_folder(folder: str) -> str:
    """Return the folder with its links resolved, as the client names it."""
    with suppress(ValueError):  # with NUL or half a character in it
        real = os.path.realpath(folder)
        if os.path.isdir(real):  # noqa: PTH112 - a text
            return real
    raise UsageError(
        f"there is no folder {canonical.printable(folder)}", "Pass cwd, the project folder of the session."
    )
