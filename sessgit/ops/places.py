"""Where the client looks for a session's transcript, and whether it can be started there."""

from __future__ import annotations

from pathlib import Path

from sessgit.agents.claude import home
from sessgit.errors import ConflictError, NotFoundError, SessgitError
from sessgit.model.session import Session


def place_of(config: Path, state: Session) -> Path | None:
    """Where the client looks for the session's transcript, if it is known."""
    return home.transcript_place(config, state.transcript, state.agent_id, state.project)


def is_gone(project: str) -> bool:
    """Whether the folder in which a session was held is no longer there: then the client cannot be started in it."""
    return bool(project) and not (home.is_there(project) and Path(project).is_dir())


def check_folder(project: str) -> None:
    """Raises NotFoundError where a session shall be continued in a folder that is none; ``""`` is no wish."""
    if is_gone(project):
        raise NotFoundError(f"there is no folder {project}", "--project names the folder to start the client in.")


def copies(config: Path, path: Path) -> list[Path]:
    """The transcripts of the same session in other folders of the client."""
    found = (config / "projects").glob(f"*/{path.name}")
    return sorted(other for other in found if other != path and other.is_file())


def target(config: Path, state: Session, project: str) -> Path:
    """Where the transcript belongs: for the agent started in `project`, a folder, or where the session's state says."""
    check_folder(project)
    said, folder = ("", project) if project else (state.transcript, state.project)
    place = home.transcript_place(config, said, state.agent_id, folder)
    if place is None:
        raise SessgitError(
            f"it is not known where the file of {state.id} was",
            "--project DIR writes it for the client started in DIR, --output FILE to any place.",
        )
    return place


def move_along(config: Path, state: Session, target: Path) -> bool:
    """Whether the transcript was moved to its new place, out of the folder for a project that is gone.

    A link first and the old name last: what stops it between the two, doing it again completes.
    """
    others = copies(config, target)
    if len(others) != 1 or not is_gone(state.project):
        return False
    if any(client.agent_id == state.agent_id for client in home.live_clients(config)):
        return False
    try:
        if home.is_there(target):
            if not target.samefile(others[0]):
                return False
        else:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.hardlink_to(others[0])
        others[0].unlink()
    except OSError as error:
        raise SessgitError(f"{others[0]} cannot be moved to {target}: {error.strerror or error}") from error
    return True


def check_alone(config: Path, target: Path) -> None:
    """Raises ConflictError where the session's transcript lies in another folder of the client.

    Of two with one id the client finds none.
    """
    others = [] if home.is_there(target) else copies(config, target)
    if others:
        raise ConflictError(
            f"its transcript is there, in another folder: {others[0]}. With a second one the client finds neither",
            f"Moved to {target} it is found there. sessgit fork --project DIR leaves it where it is.",
        )
