"""Finds the place of a session's transcript on this machine, and whether the client can be started there.

A conversation is lost if the client had a transcript of it on this machine and has none now: `status`, `show`, `doctor`
and `restore --all-lost` use this one rule.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath

from sessgit import agents
from sessgit.errors import ROOM, ConflictError, NotFoundError, SessgitError
from sessgit.model.conversation.session import Session
from sessgit.model.humanize import quote_for_shell
from sessgit.store import recorder_state
from sessgit.store.context import Homes
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths, short_name
from sessgit.store.private_files import path_exists
from sessgit.store.project import project_remote, project_root
from sessgit.store.settings import is_folder

LocalPath = Callable[[str], str]
"""From the folder of a project, as a session's state names it, to the one that stands for it on this machine."""


def local_path_map(
    mapping: Mapping[str, str], user: str, remotes: Callable[[], Sequence[tuple[str, str]]] = tuple, cwd: str = "/"
) -> LocalPath:
    """Return the map of folders that `project.map` defines, and clones of the same remote; `user` is the home for `~`.

    Of several prefixes the longest one counts, by whole parts of a path. A folder that exists here is not mapped: a
    session of this machine must not move because another machine has the same path. `remotes` gives the folders of
    projects and their remotes; a folder that is not here stands for the clone at `cwd`, else for one of these folders.
    """
    known = {
        PurePosixPath(_expand_home(left, user)).parts: _expand_home(right, user) for left, right in mapping.items()
    }
    longest = sorted(known, key=len, reverse=True)

    @cache
    def clones_here() -> dict[str, str]:
        recorded = remotes()
        folders = [each for each in (cwd, *(folder for folder, _ in recorded)) if recorded and path_exists(each)]
        local = {project_remote(folder): project_root(folder) for folder in reversed(folders)}
        return {folder: local[remote] for folder, remote in recorded if remote in local}

    @cache
    def folder(project: str) -> str:
        parts = PurePosixPath(project).parts
        for prefix in longest:
            if parts[: len(prefix)] == prefix:
                return project if path_exists(project) else str(PurePosixPath(known[prefix], *parts[len(prefix) :]))
        return project if not project or path_exists(project) else clones_here().get(project, project)

    return folder


def localize_state(state: Session, local_path: LocalPath) -> Session:
    """Return the state with its project's folder on this machine; the recorded state is not changed."""
    return replace(state, project=local_path(state.project))


def transcript_place(homes: Homes, state: Session, paths: StorePaths) -> Path | None:
    """Return where the client looks for the session's transcript, or None if that is unknown; `paths` are the store's.

    The state may come from another machine. In order of precedence: where the file is, where it was last read on this
    machine, the project's folder if it exists here, and the only file of that name, as in a home that was moved.
    """
    said = client_place(homes, state, state.transcript)
    if said is not None and path_exists(said):
        return said
    found = client_place(homes, state, "", _real_path(state.project))
    if said is not None and said == found:
        return said
    known = recorder_state.load_cursor(paths, state.id)
    read = client_place(homes, state, known.path) if known else None
    if read is not None:
        return read
    if said is not None and (said.parent.is_dir() or not path_exists(state.project)):
        return said
    if said is None and found is None:
        copies = agents.of(state).home.copies(homes.of(state), state.agent_id)
        return copies[0] if len(copies) == 1 else None
    if said is not None and found is not None and agents.of(state).home.is_cut(said.parent.name, found.parent.name):
        return said
    return found


def client_place(homes: Homes, state: Session, recorded: str, project: str = "") -> Path | None:
    """Return where the client has the session's transcript: at the recorded path, or in its folder for a project."""
    return agents.of(state).home.transcript_place(homes.of(state), recorded, state.agent_id, project)


def _recorded_transcript_path(state: Session, paths: StorePaths) -> str:
    """Return where the session's transcript was read according to its state, else where it was last read on this
    machine, else ``""``."""
    known = None if state.transcript else recorder_state.load_cursor(paths, state.id)
    return known.path if known else state.transcript


def transcript_file(homes: Homes, state: Session, paths: StorePaths) -> Path | None:
    """Return the session's transcript where the client looks for it, else where it was read, or None."""
    said = _recorded_transcript_path(state, paths)
    places = (transcript_place(homes, state, paths), Path(said) if said else None)
    return next((path for path in places if path is not None and path_exists(path)), None)


def was_recorded_here(state: Session, paths: StorePaths, made: Callable[[], Collection[str]] | None = None) -> bool:
    """Return whether the session was recorded on this machine, or a command created it here with a transcript.

    The path in its state proves nothing: two machines on which the user has the same home have the same paths. `made`
    returns what `_files_made_here` does, for a caller that asks about many sessions.
    """
    return path_exists(paths.cursor(state.id)) or state.transcript in (made() if made else _files_made_here(paths))


def _files_made_here(paths: StorePaths) -> frozenset[str]:
    """Return the paths of the files that commands wrote on this machine for sessions that they created."""
    from sessgit.store import operations

    return frozenset(path for operation in operations.read(paths) for path in operation.files)


def lost_sessions(index: Index, homes: Homes) -> list[str]:
    """Return the ids of the lost sessions, also of those without turns, but not of archived ones. No state is read."""
    outlines = [outline for outline in index.outlines() if not outline.archived]
    paths = index.session_transcripts([outline.name for outline in outlines])
    states = [
        Session(one.name, one.agent_id, project=one.project, transcript=paths.get(one.name, "")) for one in outlines
    ]
    return sorted(state.id for state in _find_lost(states, homes, StorePaths(index.path)))


def is_lost(state: Session, homes: Homes, paths: StorePaths) -> bool:
    """Return whether a session is lost: it had a transcript on this machine, and the client has none now."""
    return any(_find_lost([state], homes, paths))


def _find_lost(states: Iterable[Session], homes: Homes, paths: StorePaths) -> Iterator[Session]:
    """Yield the lost sessions; only id, agent's id, project and transcript of each are needed."""
    existing = cache(lambda: {file.session for file in agents.transcripts(homes)})
    made = cache(lambda: _files_made_here(paths))
    for state in states:
        recorded = _recorded_transcript_path(state, paths)
        if not recorded or path_exists(recorded):
            continue
        place = transcript_place(homes, state, paths)
        if place is not None and (path_exists(place) or state.id in existing()):
            continue
        if was_recorded_here(state, paths, made):
            yield state


def is_elsewhere(homes: Homes, state: Session, local_path: LocalPath) -> bool:
    """Return whether a session's project is a folder of another machine: it does not exist here, and either
    `project.map` names one for it, or the session was not recorded here. A transcript that `restore` wrote here does
    not make it one of this machine."""
    project = state.project
    if not is_folder(project) or path_exists(project):
        return False
    return local_path(project) != project or client_place(homes, state, state.transcript) is None


def is_folder_gone(project: str) -> bool:
    """Return whether a session's project folder is gone, so that the client cannot be started in it."""
    return bool(project) and not (path_exists(project) and Path(project).is_dir())


def resume_command(state: Session, cwd: str) -> str:
    """Return the command that continues the session in the client, quoted for a shell, with `cd` if the client needs
    it."""
    command = " ".join(map(quote_for_shell, agents.of(state).home.resume(state)))
    if state.project and state.project != cwd:
        return f"cd {quote_for_shell(state.project)} && {command}"
    return command


def check_folder(project: str) -> None:
    """Raise NotFoundError if the folder to continue a session in does not exist; ``""`` is none."""
    if is_folder_gone(project):
        raise NotFoundError(f"there is no folder {project}", "--project needs the folder in which to start the client.")


def other_copies(homes: Homes, state: Session, path: Path) -> list[Path]:
    """Return the transcripts of the session in other places of the client's folder."""
    return [other for other in agents.of(state).home.copies(homes.of(state), state.agent_id) if other != path]


def transcript_target(homes: Homes, state: Session, project: str, paths: StorePaths) -> Path:
    """Return the place of the transcript for a client started in `project`, or where the session's state says."""
    check_folder(project)
    place = client_place(homes, state, "", project) if project else transcript_place(homes, state, paths)
    if place is None:
        raise SessgitError(
            f"the place of {state.id}'s file is unknown",
            f"Choose a place: `sessgit restore {short_name(state.id)} --project DIR`, or `--output FILE`.",
        )
    return place


def move_transcript(homes: Homes, state: Session, target: Path) -> bool:
    """Move the transcript out of the folder for a project that is gone to its new place; return whether it was moved.

    The link is made first, and the old name removed last, so that a second call completes an interrupted one.
    """
    others = other_copies(homes, state, target)
    if len(others) != 1 or not is_folder_gone(state.project):
        return False
    if agents.is_open(homes, state.agent_id):
        return False
    try:
        if path_exists(target):
            if not target.samefile(others[0]):
                return False
        else:
            from sessgit.agents import agent_files

            agent_files.make_folder(target)
            target.hardlink_to(others[0])
        others[0].unlink()
    except OSError as error:
        raise SessgitError(f"cannot move {others[0]} to {target}: {error.strerror or error}", ROOM) from error
    return True


def check_no_copies(homes: Homes, state: Session, target: Path) -> None:
    """Raise ConflictError if the session's transcript is in another folder of the client, which finds neither of two
    with one id."""
    others = [] if path_exists(target) else other_copies(homes, state, target)
    if others:
        raise ConflictError(
            f"its transcript exists in another folder: {others[0]}. With two, the client finds neither",
            f"Move it to {target}, or leave it and fork: `sessgit fork {short_name(state.id)} --project DIR`",
        )


def _expand_home(folder: str, user: str) -> str:
    return os.path.normpath(f"{user}{folder[1:]}" if folder == "~" or folder.startswith("~/") else folder)


def _real_path(project: str) -> str:
    """Return the path without links, as the client has it."""
    try:
        return os.path.realpath(project) if project else ""
    except (OSError, ValueError):
        return project
