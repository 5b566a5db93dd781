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
from sessgit.history import pad_lists
from sessgit.model import canonical, ids
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.record import commits, edit_commit
from sessgit.record import privacy as private
from sessgit.record.source import stored_rules
from sessgit.store import layout, locks, refs
from sessgit.store.context import Context
from sessgit.store.private_files import path_exists

_LONGEST_TITLE = 200


def create_session(  # noqa: PLR0913 - what a session is given
    context: Context, id: str, folder: str, *, title: str = "", parent: str = "", role: str = "",
    inherits: bool = False, name: str = "", description: str = "", labels: Collection[str] = (),
) -> Session:  # fmt: skip
    """Create the branch of a session of the project at a folder, and return its state. `parent` is the session whose
    child it is; with `inherits` it takes over the parent's thesis, claims and open tensions.

    Raises ConflictError if the id or name is used, or the project is off, UsageError if the folder does not exist, the
    id is not one, or a text is invalid.
    """
    added = edits.parse_labels([f"+{label}" for label in labels])[0]
    changes = EditChanges(name or None, edits.parse_description(description) or None, added)
    project = _resolve_folder(folder)
    agent = agents.of_programs()
    place = agent.home.transcript_place(context.homes.folders[agent.name], "", id, project)
    if place is None or ids.session_id(id) != id:
        raise UsageError(f"“{canonical.one_line(id, 60)}” is not a session id", "Use a uuid.")
    private.check_project(context.privacy, project)
    time = canonical.rfc3339(context.now())
    blank = Session(id, id, project=project, transcript=str(place), rules=stored_rules(context.privacy.rules))
    state = replace(edits.changed_state(context.store, blank, changes).after, created=time, updated=time)
    role = _checked_line(context, "role", role, sessions.LONGEST_ROLE, state)
    own = sessions.with_values(state.unified, {"metadata.role": role, "metadata.parent": parent})
    title = _checked_line(context, "title", title, _LONGEST_TITLE, state)
    state = replace(state, unified=sessions.NO_STATE if own == sessions.NO_STATE else own, title=title)
    is_heir = parent and inherits
    pad = pad_lists.inherited_changes(context.store, context.branch(parent).tip) if is_heir else {}
    with (
        locks.names_lock(context.store.paths, edit_commit.LOCK_TIMEOUT),
        locks.session_lock(context.store.paths, id, edit_commit.LOCK_TIMEOUT),
    ):
        own_refs = (layout.head_ref(id), layout.archive_ref(id), layout.tombstone_ref(id))
        if any(refs.read(context.store.path, ref) for ref in own_refs) or path_exists(place):
            raise ConflictError(f"the session {id} already exists", "Open it with load_session.")
        if state.name:
            context.index.sync()
            edits.check_name_free(context.index, state.name, "", project)
        context.store.repo.move(layout.head_ref(id), None, commits.commit_start(context.store, state, pad))
    context.index.sync(id)
    return state


def _checked_line(context: Context, what: str, words: str, most: int, state: Session) -> str:
    """Return the words as they are stored; raises UsageError if they are not one line of at most so many characters."""
    if len(words) > most or not canonical.is_printable(words):
        raise UsageError(
            f"“{canonical.one_line(words, 60)}” cannot be a {what}",
            f"A {what} is one line of at most {most} characters.",
        )
    return edits.without_secrets(context.store, words.strip(), state)[0]


def _resolve_folder(folder: str) -> str:
    """Return the folder with its links resolved, as the client names it."""
    with suppress(ValueError):  # with NUL or half a character in it
        real = os.path.realpath(folder)
        if os.path.isdir(real):  # noqa: PTH112 - a text
            return real
    raise UsageError(
        f"there is no folder {canonical.printable(folder)}", "Pass cwd, the project folder of the session."
    )
