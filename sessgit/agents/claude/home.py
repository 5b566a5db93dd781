"""Where the client keeps its files, and which clients are alive.

The layout is not documented by its maker; it was observed from 1.0 to 2.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from sessgit.agents import processes
from sessgit.agents.agent_files import entries, holds_bytes, is_real_folder, resolved_in
from sessgit.agents.processes import LiveClient
from sessgit.model.conversation.session import Session
from sessgit.model.stored_fields import string

SLUG_LIMIT = 200
_TOPS = ("projects", "tasks", "todos", "plans")
_DEEPEST = 4
"""So many folders above a subagent's file lies that of all projects."""
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FOLDER = re.compile(r"(?!\.{1,2}$)[^\0/\ud800-\udfff]{1,255}")


def resume(state: Session) -> list[str]:
    """Return the program and the arguments that continue a session: with its id, or its file where that is no uuid."""
    is_path = state.transcript.startswith("/")  # a state from elsewhere says anything, as an option of the client's
    named = state.transcript if is_path and not _UUID.fullmatch(state.agent_id) else state.agent_id
    return ["claude", "--resume", named]


def is_home(folder: Path) -> bool:
    """Return whether the client keeps its files in the folder."""
    return (folder / "projects").is_dir()


def agent_id(path: Path) -> str:
    """Return the id of the session by the name of its transcript."""
    return path.stem


def slug(cwd: str) -> str:
    """Return the name of the folder under `projects/` for a working folder, as far as it can be computed.

    Every UTF-16 unit outside `[A-Za-z0-9]` becomes `-`; a longer name than 200 gets a hash that is not known, so
    look folders up with `project_folder`.
    """
    units = len(cwd.encode("utf-16-le", "surrogatepass")) // 2
    if units == len(cwd):
        return re.sub(r"[^A-Za-z0-9]", "-", cwd)
    return "".join(c if c.isascii() and c.isalnum() else "-" * (1 + (ord(c) > 0xFFFF)) for c in cwd)


def project_folder(config: Path, cwd: str) -> Path:
    """Return the client's folder for the transcripts of a working folder; it need not exist."""
    name = slug(cwd)
    if len(name) <= SLUG_LIMIT:
        return config / "projects" / name
    folders = sorted((config / "projects").glob(f"{name[:SLUG_LIMIT]}-*"))
    return folders[0] if folders else config / "projects" / name[:SLUG_LIMIT]


def new_place(config: Path, agent_id: str, cwd: str, sibling: Path | None = None) -> Path:
    """Return where to write the transcript of a new session: in the folder of another one of the client's, else in
    that for the working folder."""
    return (project_folder(config, cwd) if sibling is None else sibling.parent) / f"{agent_id}.jsonl"


def copies(config: Path, agent_id: str) -> list[Path]:
    """Return all transcripts of a session in the folders of the client, links too; none for an id that is no file name,
    as a state from an attacker may have."""
    if not _AGENT_ID.fullmatch(agent_id):
        return []
    return sorted(path for path in (config / "projects").glob(f"*/{agent_id}.jsonl") if path.is_file())


def transcript_folders(config: Path) -> list[Path]:
    """Return the client's folder of all projects and the folder of each; links are not followed."""
    top = config / "projects"
    return [top, *filter(is_real_folder, entries(top))]


def transcripts(config: Path) -> Iterator[Path]:
    """Yield every session's transcript under `projects/`; subagents' are left out and no link is followed."""
    for folder in transcript_folders(config)[1:]:
        yield from transcripts_in(folder)


def transcripts_in(folder: Path) -> Iterator[Path]:
    """Yield the sessions' transcripts that lie in one folder; 2.0 leaves many that are empty, which are none."""
    for path in sorted(folder.glob("*.jsonl")):
        if not path.name.startswith("agent-") and holds_bytes(path):
            yield path


def transcript_place(config: Path, recorded: str, agent_id: str, cwd: str) -> Path | None:
    """Return where the transcript of a session belongs, from what its state says; None if it says nothing.

    A state may come from another machine or from an attacker: what it says counts only where it is the session's
    own file directly in a folder of `projects/`. Else the place follows from the working folder.
    """
    name = f"{agent_id}.jsonl"
    if not _AGENT_ID.fullmatch(agent_id):
        return None
    path = Path(recorded)
    if path.name == name and path.parent.parent == config / "projects" and _FOLDER.fullmatch(path.parent.name):
        return path
    return project_folder(config, cwd) / name if cwd else None


def title(config: Path, transcript: Path) -> str:
    """Return "": a title is a line of the transcript."""
    return ""


def is_cut(name: str, other: str) -> bool:
    """Return whether a folder's name was too long for it to be computed, and begins as the other one."""
    return len(other) >= SLUG_LIMIT and name.startswith(other)


def link_above(path: Path) -> Path | None:
    """Return the link among the folders of a project and a session that lead to a file of the client's, if there is
    one.

    Where the client's own folder lies, and what lies right in it, is for a person to say.
    """
    inside: list[Path] = []
    for folder in list(path.parents)[:_DEEPEST]:
        if folder.name in _TOPS and inside and (folder.name != "projects" or inside[-1].name.startswith("-")):
            return next((one for one in inside if one.is_symlink()), None)
        inside.append(folder)
    return None


def is_transcript(config: Path, path: Path) -> bool:
    """Return whether a path that someone else names lies where transcripts lie, links resolved."""
    file = resolved_in(config / "projects", path)
    return file is not None and file.suffix == ".jsonl"


def live_clients(config: Path) -> list[LiveClient]:
    """Return the clients that are alive: their pid is, and the process began when the file says."""
    files = (path for path in entries(config / "sessions") if path.suffix == ".json")
    return [client for path in files if (client := _client(path)) is not None]


def _client(path: Path) -> LiveClient | None:
    try:
        document = json.loads(path.read_bytes())
        pid, agent_id = int(document["pid"]), document["sessionId"]
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    if not isinstance(agent_id, str) or not processes.is_running(pid, document.get("procStart")):
        return None
    return LiveClient(pid, agent_id, string(document, "cwd"))
