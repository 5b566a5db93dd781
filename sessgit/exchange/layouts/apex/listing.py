"""The files of apex's sessions: which there are, what the index says of them, and which one is active."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.files import DamagedFileError, Folder
from sessgit.exchange.layouts.kept_files import keep_file
from sessgit.model import canonical, humanize
from sessgit.model.foreign_session import agent_id

SYSTEM = "apex"
VERSION = 1
"""The version of the layout, which its index names."""
INDEX, ACTIVE = "index.json", "active.json"
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_REFERENCE_KEYS = ("sessionId", "activeSessionId", "id", "session")


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session as its file has it."""

    path: str
    id: str
    document: dict[str, Any]
    archived: bool


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session's own file does not say: which others there are, what the index has, and which one is active."""

    held: frozenset[str]
    entries: Mapping[str, Mapping[str, Any]]
    active: str = ""
    reference: bytes = b""


def read_index(opened: Folder, base: str) -> dict[str, dict[str, Any]] | None:
    """What the index says of each session, by id; None where it is of a later version, with all files noted."""
    path = base + INDEX
    if not opened.has(path):
        return {}
    try:
        index = opened.object(path)
    except DamagedFileError as error:
        opened.note(path, "damaged", str(error))
        return {}
    version = index.get("version", VERSION)
    if type(version) is int and version > VERSION:
        for other in opened.below(base.rstrip("/")):
            opened.note(other, "left", f"the index has version {version}, but {VERSION} is the latest known version")
        return None
    return {files.text_or_empty(one.get("id")): dict(one) for one in files.objects_of(index.get("sessions"))}


def note_index(opened: Folder, path: str, known: Mapping[str, object], held: frozenset[str]) -> None:
    """Notes what became of an index of sessions, where there is one."""
    if opened.has(path):
        missing = sum(one not in held for one in known)
        why = f"it names {humanize.format_count(missing, 'session')} without a readable file" if missing else ""
        opened.note(path, "imported", why)


def read_session_files(opened: Folder, base: str) -> list[SessionFile]:
    """The sessions that files hold; what is wrong with other files is noted."""
    out = list[SessionFile]()
    for pattern, suffix in (("*.json", ".json"), ("archive/*.json.gz", ".json.gz"), ("archive/*.json", ".json")):
        for path in opened.names(base + pattern):
            name = path.rpartition("/")[2].removesuffix(suffix)
            if path.removeprefix(base) in (INDEX, ACTIVE):
                continue
            try:
                document = opened.object(path)
                _check_document(document, name)
            except DamagedFileError as error:
                opened.note(path, "damaged", str(error))
                continue
            out.append(SessionFile(path, name, document, archived=pattern.startswith("archive/")))
    return out


def _check_document(document: Mapping[str, Any], name: str) -> None:
    """Raises DamagedFileError where the document is no session of that name."""
    own = document.get("id")
    if not isinstance(own, str) or not isinstance(document.get("messages"), list):
        raise DamagedFileError("it is not a session: it has no id or no messages")
    if own != name:
        raise DamagedFileError(
            f"it says that it is session {files.printable_path(canonical.one_line(own, 60))}, and its name does not"
        )
    if not ID.fullmatch(own):
        raise DamagedFileError("its id cannot be one")


def without_duplicates(opened: Folder, held: Iterable[SessionFile]) -> list[SessionFile]:
    """Those that are alone with their id here; of two that say the same the first, of two that do not none."""
    by_id = dict[str, list[SessionFile]]()
    for one in held:
        by_id.setdefault(agent_id(SYSTEM, one.id), []).append(one)
    out = list[SessionFile]()
    for first, *others in by_id.values():
        if all(other.document == first.document for other in others):
            out.append(first)
            for other in others:
                opened.note(
                    other.path, "left", f"it has the same contents as {files.printable_path(first.path)}", first.id
                )
            continue
        for one, other in ((first, others[0]), *((other, first) for other in others)):
            why = f"{files.printable_path(other.path)} is another session with the same id"
            opened.note(one.path, "damaged", why, one.id)
    return out


def active_session(opened: Folder, path: str, held: frozenset[str]) -> tuple[str, bytes]:
    """The id of the session that is active, and the file that says so."""
    if not opened.has(path):
        return "", b""
    try:
        data, value = opened.data(path), opened.json(path)
    except DamagedFileError as error:
        opened.note(path, "damaged", str(error))
        return "", b""
    named = _referenced_id(value)
    if named not in held:
        opened.note(path, "left", "it names no readable session")
        return "", b""
    opened.note(path, "imported", "", named)
    return named, data


def _referenced_id(value: object) -> str:
    if isinstance(value, str):
        return value
    found = files.dict_or_empty(value)
    return next((files.text_or_empty(found[key]) for key in _REFERENCE_KEYS if files.text_or_empty(found.get(key))), "")


def exported_files(opened: Folder, at: str, session: str) -> dict[str, bytes]:
    """The files that an export laid beside a session, since they have no place in it."""
    out = dict[str, bytes]()
    for path in opened.below(at.rstrip("/")):
        keep_file(opened, path, path.removeprefix(at), session, out)
    return out


def sort_parents_first(held: Iterable[SessionFile]) -> list[SessionFile]:
    """The files with those of their parents before them; of a circle each once."""
    by_id, out = {one.id: one for one in held}, dict[str, SessionFile]()
    for one in by_id.values():
        way = list[SessionFile]()
        at: SessionFile | None = one
        while at is not None and at.id not in out and at not in way:
            way.append(at)
            at = by_id.get(files.text_or_empty(at.document.get("parentSessionId")))
        out |= {found.id: found for found in reversed(way)}
    return list(out.values())
