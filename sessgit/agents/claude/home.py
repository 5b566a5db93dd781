"""Where the client keeps its files, and which clients are alive.

The layout is not documented by its maker; it was observed from 1.0 to 2.1.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from sessgit.agents.values import LiveClient

SLUG_LIMIT = 200
_PROC = Path("/proc")
_ENDED = ("Z", "X")
"""The states of a process of which only its exit code is left (proc(5))."""
_TOPS = ("projects", "tasks", "todos", "plans")
_DEEPEST = 4
"""So many folders above a subagent's file lies that of all projects."""
_FOLDER = re.compile(r"(?!\.{1,2}$)[^\0/\ud800-\udfff]{1,255}")


def slug(cwd: str) -> str:
    """The name of the folder under `projects/` for a working folder, as far as it can be computed.

    Every UTF-16 unit outside `[A-Za-z0-9]` becomes `-`; a longer name than 200 gets a hash that is not known, so
    look folders up with `project_folder`.
    """
    units = len(cwd.encode("utf-16-le", "surrogatepass")) // 2
    if units == len(cwd):
        return re.sub(r"[^A-Za-z0-9]", "-", cwd)
    return "".join(c if c.isascii() and c.isalnum() else "-" * (1 + (ord(c) > 0xFFFF)) for c in cwd)


def project_folder(config: Path, cwd: str) -> Path:
    """The client's folder for the transcripts of a working folder; it need not exist."""
    name = slug(cwd)
    if len(name) <= SLUG_LIMIT:
        return config / "projects" / name
    found = sorted((config / "projects").glob(f"{name[:SLUG_LIMIT]}-*"))
    return found[0] if found else config / "projects" / name[:SLUG_LIMIT]


def transcripts(config: Path) -> Iterator[Path]:
    """Every session's transcript under `projects/`; subagents' are left out and no link is followed."""
    try:
        # A link first: where it leads may not be looked at, which would hide all others.
        folders = sorted(p for p in (config / "projects").iterdir() if not p.is_symlink() and p.is_dir())
    except OSError:
        return
    for folder in folders:
        yield from transcripts_in(folder)


def transcripts_in(folder: Path) -> Iterator[Path]:
    """The sessions' transcripts that lie in one folder; 2.0 leaves many that are empty, which are none."""
    for path in sorted(folder.glob("*.jsonl")):
        if not path.name.startswith("agent-") and _holds_bytes(path):
            yield path


def transcript_place(config: Path, said: str, agent_id: str, cwd: str) -> Path | None:
    """Where the transcript of a session belongs, from what its state says; None where nothing says it.

    A state may come from another machine or from nobody good: what it says counts only where it is the session's
    own file directly in a folder of `projects/`. Else the place follows from the working folder.
    """
    name = f"{agent_id}.jsonl"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}", agent_id):
        return None
    path = Path(said)
    if path.name == name and path.parent.parent == config / "projects" and _FOLDER.fullmatch(path.parent.name):
        return path
    return project_folder(config, cwd) / name if cwd else None


def is_cut(name: str, found: str) -> bool:
    """Whether a folder's name was too long for it to be computed, and begins as the one that was found."""
    return len(found) >= SLUG_LIMIT and name.startswith(found)


def link_above(path: Path) -> Path | None:
    """The link among the folders of a project and a session that lead to a file of the client's, if there is one.

    Where the client's own folder lies, and what lies right in it, is for a person to say.
    """
    inside: list[Path] = []
    for folder in list(path.parents)[:_DEEPEST]:
        if folder.name in _TOPS and inside and (folder.name != "projects" or inside[-1].name.startswith("-")):
            return next((one for one in inside if one.is_symlink()), None)
        inside.append(folder)
    return None


def is_transcript(config: Path, path: Path) -> bool:
    """Whether a path that someone else names lies where transcripts lie, links resolved."""
    try:
        real, projects = path.resolve(strict=True), (config / "projects").resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return False
    return real.suffix == ".jsonl" and real.is_relative_to(projects) and real.is_file() and not path.is_symlink()


def live_clients(config: Path) -> list[LiveClient]:
    """The clients that are alive: their pid is, and the process began when the file says."""
    return [c for path in _files(config / "sessions") if (c := _client(path)) is not None]


def open_sessions(config: Path) -> frozenset[str]:
    """The client's ids of the sessions that clients which are alive have open."""
    return frozenset(client.agent_id for client in live_clients(config))


def is_open(config: Path, agent_id: str) -> bool:
    """Whether a client that is alive has the session open."""
    return agent_id in open_sessions(config)


def client_above(config: Path, pid: int) -> LiveClient | None:
    """The living client that is an ancestor of a process, the nearest one."""
    by_pid = {client.pid: client for client in live_clients(config)}
    for _ in range(64):
        if pid in by_pid:
            return by_pid[pid]
        above = _parent(pid)
        if above is None or above <= 1:
            return None
        pid = above
    return None


def _holds_bytes(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:  # the client deletes old ones at any time
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.suffix == ".json")
    except OSError:
        return []


def _client(path: Path) -> LiveClient | None:
    try:
        document = json.loads(path.read_bytes())
        pid, agent_id = int(document["pid"]), document["sessionId"]
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    if not isinstance(agent_id, str) or not _alive(pid, document.get("procStart")):
        return None
    cwd = document.get("cwd")
    return LiveClient(pid, agent_id, cwd if isinstance(cwd, str) else "", document.get("status") == "busy")


def _alive(pid: int, started: object) -> bool:
    """Whether the process runs and is the one that was meant: a pid is used again, its start time is not. One that
    has ended runs no more, also where nobody has asked how."""
    if pid <= 1:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no pid is that large
        return False
    except OSError:
        pass
    fields = _stat(pid)
    if fields is None:
        return True
    return fields[0] not in _ENDED and (not isinstance(started, str | int) or str(started) == fields[19])


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    if fields is not None:
        return int(fields[1])
    return os.getppid() if pid == os.getpid() else None


def _stat(pid: int) -> list[str] | None:
    """The fields of `/proc/<pid>/stat` behind the name (proc(5)), where there is such a file."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
