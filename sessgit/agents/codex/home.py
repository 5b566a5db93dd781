"""Where Codex keeps its rollouts: `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, and flat in `archived_sessions/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sessgit.agents import is_packed, processes
from sessgit.agents.agent_files import entries, holds_bytes, is_real_folder, resolved_in
from sessgit.agents.processes import LiveClient
from sessgit.model.conversation.session import Session
from sessgit.model.stored_fields import string

SESSIONS, ARCHIVED = "sessions", "archived_sessions"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ID = re.compile(_UUID)
_NAME = re.compile(rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_UUID})(?:_({_UUID}))?\.jsonl(?:\.zst)?")
"""With the id of the thread and, behind a rewind since 0.169, with that of the segment in which it goes on."""
_DAY = re.compile(r"\d{4}/\d\d/\d\d")


def resume(state: Session) -> list[str]:
    """Return the program and the arguments that continue a session: of a segment, its thread."""
    match = _NAME.fullmatch(Path(state.transcript).name)
    return ["codex", "resume", match[1] if match and match[2] == state.agent_id else state.agent_id]


def is_home(folder: Path) -> bool:
    """Return whether the client keeps its files in the folder."""
    return any((folder / top).is_dir() and (folder / "config.toml").exists() for top in (SESSIONS, ARCHIVED))


def agent_id(path: Path) -> str:
    """Return the id of the session by the name of its rollout, or "" if that is the name of none.

    A segment is a session of its own: its first line names the rollout, and the line in it, from which it goes on.
    """
    return _id_of(path)


def title(config: Path, transcript: Path) -> str:
    """Return the last name of a thread in `session_index.jsonl`, to which the client appends."""
    from sessgit.agents.line import parse  # `log` reads no lines

    match = _NAME.fullmatch(transcript.name)
    try:
        lines = (config / "session_index.jsonl").read_bytes().split(b"\n") if match else []
    except OSError:
        return ""
    own = (parse(line) or {} for line in reversed(lines) if match and match[1].encode() in line)
    return next((string(document, "thread_name") for document in own if match and document.get("id") == match[1]), "")


def is_cut(name: str, other: str) -> bool:
    """Return False: no name is made of a working folder."""
    return False


def new_place(config: Path, agent_id: str, cwd: str, sibling: Path | None = None) -> Path:
    """Return where to write the rollout of a new session: in the folder of today, whatever the working folder."""
    now = datetime.now(UTC)
    return config / SESSIONS / f"{now:%Y/%m/%d}" / f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{agent_id}.jsonl"


def copies(config: Path, agent_id: str) -> list[Path]:
    """Return all rollouts of a session in the folders of the client, links too."""
    if not _ID.fullmatch(agent_id):
        return []
    paths = _rollouts(config, f"rollout-*{agent_id}.jsonl*")
    return [path for path in paths if _id_of(path) == agent_id and path.is_file()]


def _rollouts(config: Path, name: str) -> list[Path]:
    paths = sorted([*(config / SESSIONS).glob(f"*/*/*/{name}"), *(config / ARCHIVED).glob(name)])
    return [path for path in paths if not _has_plain(path)]


def transcript_folders(config: Path) -> list[Path]:
    """Return the folder of each day, the folders of these, and that of archived sessions; links are not followed."""
    folders = [folder for folder in (config / SESSIONS, config / ARCHIVED) if is_real_folder(folder)]
    level = folders[:1] if folders and folders[0].name == SESSIONS else []
    for _ in range(3):
        level = [inner for folder in level for inner in entries(folder) if is_real_folder(inner)]
        folders += level
    return folders


def transcripts(config: Path) -> Iterator[Path]:
    """Yield every session's rollout, archived ones too; no link is followed."""
    for folder in transcript_folders(config):
        yield from transcripts_in(folder)


def transcripts_in(folder: Path) -> Iterator[Path]:
    """Yield the sessions' rollouts that lie in one folder."""
    for path in sorted(folder.glob("rollout-*.jsonl*")):
        if agent_id(path) and holds_bytes(path) and not _has_plain(path):
            yield path


def transcript_place(config: Path, recorded: str, agent_id: str, cwd: str) -> Path | None:
    """Return where the rollout of a session belongs, from what its state says; None if it says nothing.

    What a state says counts only where it is a rollout of the session's id, directly in a folder of rollouts. Else it
    is where the client has one, or would write a new one. The client moves what it archives, and may compress it.
    """
    if not _ID.fullmatch(agent_id):
        return None
    path = Path(recorded)
    if _id_of(path) == agent_id and _is_rollout_folder(config, path.parent):
        name = path.name.removesuffix(".zst")
        year, month, day = name.removeprefix("rollout-")[:10].split("-")
        folders = (path.parent, config / ARCHIVED, config / SESSIONS / year / month / day)
        places = [folder / each for folder in folders for each in (name, f"{name}.zst")]
        return next((place for place in places if place.exists()), places[0])
    there = copies(config, agent_id)
    return there[0] if there else new_place(config, agent_id, cwd) if cwd else None


def link_above(path: Path) -> Path | None:
    """Return the link among the folders of days that lead to a rollout, if there is one."""
    if not agent_id(path):
        return None
    inside: list[Path] = []
    for folder in list(path.parents)[:4]:
        if folder.name in (SESSIONS, ARCHIVED):
            return next((one for one in inside if one.is_symlink()), None)
        inside.append(folder)
    return None


def is_transcript(config: Path, path: Path) -> bool:
    """Return whether a path that someone else names lies where rollouts lie, links resolved."""
    file = resolved_in(config, path)
    return file is not None and bool(agent_id(file)) and _is_rollout_folder(Path(), file.parent)


def live_clients(config: Path) -> list[LiveClient]:
    """Return the clients that hold the lock of a thread, which they do since 0.169. Of a thread with segments, each
    session counts as open."""
    locks = [path for path in sorted(config.glob("thread-writer-locks/*.lock")) if _ID.fullmatch(path.stem)]
    return [
        LiveClient(pid, session, processes.working_folder(pid))
        for path, pid in processes.flock_holders(locks).items()
        for session in (path.stem, *map(_id_of, _rollouts(config, f"rollout-*{path.stem}_*.jsonl")))
    ]


def _has_plain(path: Path) -> bool:
    """Return whether a file is compressed, and the same one is there as it was."""
    return is_packed(path) and path.with_suffix("").exists()


def _id_of(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    return match[2] or match[1] if match else ""


def _is_rollout_folder(config: Path, folder: Path) -> bool:
    if folder == config / ARCHIVED:
        return True
    return folder.is_relative_to(config / SESSIONS) and bool(
        _DAY.fullmatch(folder.relative_to(config / SESSIONS).as_posix())
    )
