"""The client's folder as a whole: what it calls the files beside a transcript, and its index of a project's sessions.

Observed from 2.0 to 2.1. A subagent's file lies beside the transcript up to 2.1.1, where the client finds it by the
subagent's id alone, and in a folder of the session from 2.1.2 on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sessgit.agents.claude import home
from sessgit.agents.claude.sidecars.sidecar_files import AGENT, first_fields
from sessgit.agents.claude.writer.transcript import as_session
from sessgit.agents.values import PLAIN, SUBAGENT, SideFile
from sessgit.errors import SessgitError
from sessgit.model.conversation.session import Session
from sessgit.model.line_list import file_of_split, split_lines

INDEX = "sessions-index.json"

_NESTED_SINCE = (2, 1, 2)
_TODO = re.compile(r"([A-Za-z0-9-]{1,80}?)-agent-([A-Za-z0-9-]{1,80})\.json")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the side files of one session lie: `folder` is that of its transcript, `config` the client's own.

    `version` is the client's, which counts where a file does not say by which one it was written.
    """

    config: Path
    folder: Path
    agent_id: str
    version: str = ""

    def of(self, file: SideFile) -> Path | None:
        """Where the client looks for the file; None for a name that the client would not have given."""
        own = self.folder / self.agent_id
        match file.kind:
            case "subagent" if AGENT.fullmatch(file.name):
                return self.folder / file.name if is_flat(file, self.version) else own / "subagents" / file.name
            case "large tool result" if PLAIN.fullmatch(file.name):
                return own / "tool-results" / file.name
            case "task" if PLAIN.fullmatch(file.name) and file.name.endswith(".json"):
                return self.config / "tasks" / self.agent_id / file.name
            case "plan" if PLAIN.fullmatch(file.name) and file.name.endswith(".md"):
                return self.config / "plans" / file.name
            case "todo list" if named := _TODO.fullmatch(file.name):
                whose = self.agent_id if named[2] == named[1] else named[2]
                return self.config / "todos" / f"{self.agent_id}-agent-{whose}.json"
        return None


def is_flat(file: SideFile, version: str) -> bool:
    """Whether a subagent's file lies beside the transcript, as the client left it that wrote its first line."""
    if not file.name.endswith(".jsonl"):
        return False
    said = (first_fields(file.data) or {}).get("version")
    numbers = re.findall(r"\d{1,9}", said if isinstance(said, str) and said else version)[:3]
    return bool(numbers) and tuple(map(int, numbers)) < _NESTED_SINCE


def as_own(file: SideFile, agent_id: str) -> SideFile:
    """The file, or a piece of it, with the session's id in the place of another's where a subagent's lines name one; a
    line that is too long to be read names none."""
    if file.kind != SUBAGENT or not file.name.endswith(".jsonl"):
        return file
    *lines, rest = split_lines(file.data)
    own = (as_session(raw, agent_id) for raw in lines)
    return replace(file, data=file_of_split([*own, as_session(rest, agent_id) if rest else rest]))


def folder_name(said: str, project: str) -> str:
    """The name of the project's folder below `projects/`: as the session's own transcript had it, if it can be so."""
    named, slug = Path(said).parent.name, home.slug(project)[:200]
    return named if slug and named.startswith(slug) and re.fullmatch(r"[A-Za-z0-9-]{1,255}", named) else slug or "-"


def merged(index: bytes | None, states: Mapping[Path, Session], path: Path) -> bytes:
    """The index of a project's sessions with these transcripts, each in the place of the one with its `sessionId`.

    What else stands in it is kept; the same bytes where nothing changes. Raises SessgitError where it is none.
    """
    document: dict[str, Any] = {"version": 1, "entries": []} if index is None else _index(index, path)
    places = {entry.get("sessionId"): number for number, entry in enumerate(document["entries"])}
    out = [dict(entry) for entry in document["entries"]]
    for file, state in states.items():
        entry = _entry(file, state)
        number = places.get(entry["sessionId"])
        if number is None:
            out.append(entry)
        else:
            out[number] = {**out[number], **entry}
    if index is not None and out == document["entries"]:
        return index
    return json.dumps({**document, "entries": out}, indent=2).encode() + b"\n"


def _entry(path: Path, state: Session) -> dict[str, Any]:
    """What the client notes of a session in the index of its project."""
    return {
        "sessionId": state.agent_id,
        "fullPath": str(path),
        "fileMtime": path.stat().st_mtime_ns // 1_000_000,
        "firstPrompt": state.first_prompt,
        "messageCount": state.messages,
        "created": state.created,
        "modified": state.updated,
        "gitBranch": state.git_branch,
        "projectPath": state.project,
        "isSidechain": False,
    }


def links(config: Path, transcript: Path, agent_id: str) -> Iterator[Path]:
    """The links among the folders that a recording of the transcript would read below the client's folder."""
    own = transcript.parent / agent_id
    places = [config / name for name in ("projects", "todos", "tasks", "plans")]
    places += [config / "tasks" / agent_id, transcript.parent, own, own / "subagents", own / "tool-results"]
    yield from (place for place in places if place.is_symlink())


def _index(data: bytes, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    entries = document.get("entries") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not _objects(entries) or document.get("version", 1) != 1:
        raise SessgitError(
            f"{path} is not a session index of version 1", "It was not changed: name another folder, or delete it."
        )
    return document


def _objects(value: object) -> bool:
    entries: Sequence[object] = value if isinstance(value, list) else ["none"]
    return all(isinstance(entry, dict) for entry in entries)
