"""Sessions of RLM: folders `rlm-sessions/<id>/`, and before these the flat files of `rlm-state/`.

What is written has the client's own transcript beside the state, so that it holds all of a session. What is read may
have it too; else the conversation is what the state says of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessgit.errors import NotFoundError, SessgitError
from sessgit.exchange.layouts import files, own_keys
from sessgit.exchange.layouts.files import DamagedFileError, Folder
from sessgit.exchange.layouts.kept_files import keep_file
from sessgit.exchange.layouts.rlm import flat, turns
from sessgit.exchange.layouts.rlm.flat import CURRENT, EXTERNALIZED, STATE, TRAJECTORIES, FlatNames
from sessgit.model import unified_state
from sessgit.model.foreign_session import ForeignFolder, ForeignSession
from sessgit.model.program_input import Reason, Step

SYSTEM = "rlm"
KEPT_FOLDER = "rlm"
SESSIONS = "rlm-sessions"
ARCHIVE = "archive"
VERSION = 1
MEMORY = f"{KEPT_FOLDER}/working-memory.json"
_TRANSCRIPT, _STATE, _CELLS, _INDEX = "transcript.jsonl", "session.json", "cells", "index.json"
_REASON_FILES = {"reasoning/traces.jsonl": "trace", "reasoning/decisions.jsonl": "decision"}
_SKIPPED_SUFFIXES = {
    ".db": "it is a database of the other system", "-wal": "it belongs to a database of the other system",
    "-shm": "it belongs to a database of the other system", ".tar.gz": "it is compressed: decompress it, and "
    "import the result",
    ".tgz": "it is compressed: decompress it, and import the result", ".zip": "it is compressed: decompress it, "
    "and import the result",
    "rlm-config.json": "it has the settings of the other system",
}  # fmt: skip


def read(folder: Path) -> ForeignFolder:
    """The sessions in a folder of the client, in its `rlm-state` or in its `rlm-sessions`; raises NotFoundError where
    there are none."""
    root = folder.absolute()
    source = files.open_folder(root, STATE, SESSIONS, EXTERNALIZED, TRAJECTORIES)
    _note_other_files(source)
    start = f"{SESSIONS}/" if (root / SESSIONS).is_dir() else ""
    places = _session_folders(source, start)
    sessions = [
        one for place, archived in places if (one := _read_session(source, place, archived=archived)) is not None
    ]
    there = {one.id for one in sessions}
    state_at = f"{STATE}/" if (root / STATE).is_dir() else ""
    if state_at or not places:
        sessions += flat.read_sessions(source, FlatNames(state_at, there, is_nested=bool(state_at or start)))
    for path in source.entries:
        why = next((why for end, why in _SKIPPED_SUFFIXES.items() if path.endswith(end)), "")
        if why and source.has(path) and path not in source.noted:
            source.note(path, "left", why)
    if not sessions and not source.noted:
        raise NotFoundError(f"there are no RLM sessions in {folder}", "Name ~/.claude, or its subfolder rlm-state.")
    return ForeignFolder(files.sort_parents_first(sessions), source.files())


def write(
    session: ForeignSession, document: Mapping[str, Any] | None = None, cells: Sequence[Mapping[str, Any]] = ()
) -> Mapping[str, bytes]:
    """The files of a session below the client's folder. `document` is its state in the system's own form, with the
    index of its cells at `cells`, and `cells` are those; without them they are what the session itself says."""
    at = f"{SESSIONS}/{files.storable_path(session.id)}" if not session.archived else _archive_path(session.id)
    state = _with_memory(dict(document) if document is not None else _minimal_state(session), session)
    index = dict(files.dict_or_empty(state.get("cells")))
    state["cells"] = {"count": files.count_or_zero(index.pop("count", len(cells))), "index_path": f"{_CELLS}/{_INDEX}"}
    state[own_keys.KEY] = {"version": VERSION, "id": session.id, **own_keys.own_object(session)}
    out = {
        f"{at}/{_STATE}": files.json_document(state),
        f"{at}/{_CELLS}/{_INDEX}": files.json_document(index or _empty_index(session)),
    }
    out |= {f"{at}/{_CELLS}/{files.storable_path(str(one['cell_id']))}.json": files.json_document(one) for one in cells}
    if session.transcript:
        out[f"{at}/{_TRANSCRIPT}"] = session.transcript
    for path, kind in _REASON_FILES.items():
        if lines := turns.reason_lines(session.turns, kind):
            out[f"{at}/{path}"] = b"".join(files.json_line(line) for line in lines)
    for path, data in session.kept.items():
        own = path.removeprefix(f"{KEPT_FOLDER}/")
        is_natural = own != path and not own.startswith("kept/") and not _is_generated_file(own)
        out[f"{at}/{own if is_natural else f'kept/{path}'}"] = data
    return out


def _archive_path(ident: str) -> str:
    return f"{SESSIONS}/{ARCHIVE}/{files.storable_path(ident)}"


def _minimal_state(session: ForeignSession) -> dict[str, Any]:
    """The state as the session alone tells it."""
    own = unified_state.state_document(unified_state.parse_state(session.unified))
    return {
        "metadata": {
            "session_id": session.id, "created_at": files.parse_seconds(session.created) or 0,
            "updated_at": files.parse_seconds(session.updated) or 0, "ended_at": files.parse_seconds(session.ended),
            "cwd": session.project,
        },
        "activation": {"rlm_active": False, "activation_mode": "never", "current_depth": 0,
                       **own.get("activation", {})},
        "context": {"files": {}, "tool_outputs": [], "working_memory": {}, **own.get("context", {})},
        "budget": own.get("budget", {}),
    }  # fmt: skip


def _with_memory(state: dict[str, Any], session: ForeignSession) -> dict[str, Any]:
    """The state with the working memory that is kept as a file, where it has none itself."""
    context = files.dict_or_empty(state.get("context"))
    try:
        memory = files.parse_json(session.kept.get(MEMORY, b"{}"))
    except DamagedFileError:
        return state
    return state if context.get("working_memory") else {**state, "context": {**context, "working_memory": memory}}


def _empty_index(session: ForeignSession) -> dict[str, Any]:
    return {"version": "1.0", "session_id": session.id, "cells": {}, "roots": [], "leaves": [], "execution_order": []}


# Folders of sessions


def _note_other_files(source: Folder) -> None:
    """Names what lies beside the folders that are read, as far as it is the system's."""
    for entry in files.list_folder(source.root):
        if entry.path.startswith("rlm-") or entry.path == CURRENT:
            source.entries.setdefault(entry.path, entry)


def _session_folders(source: Folder, start: str) -> list[tuple[str, bool]]:
    """The folders of sessions, and whether each is in the archive."""
    names = (_STATE, f"{_STATE}.gz")
    found = [(path, False) for name in names for path in source.names(f"{start}*/{name}")]
    found += [(path, True) for name in names for path in source.names(f"{start}{ARCHIVE}/*/{name}")]
    if not start and source.has(_STATE):
        found.append((_STATE, False))
    return [(path.rpartition("/")[0], archived) for path, archived in found]


def _read_session(source: Folder, at: str, *, archived: bool) -> ForeignSession | None:
    """The session in a folder, None where it cannot be had."""
    path = _find_file(source, at, _STATE)
    own = at.rpartition("/")[2]
    try:
        document = source.object(path)
        _check_version(document)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), own)
        return None
    meta, ours = files.dict_or_empty(document.get("metadata")), files.dict_or_empty(document.get(own_keys.KEY))
    own = files.text_or_empty(ours.get("id")) or files.text_or_empty(meta.get("session_id")) or own
    source.note(path, "imported", session=own)
    session = flat.with_state(ForeignSession(own, archived=archived), document)
    lines = _find_file(source, at, _TRANSCRIPT)
    transcript = _read_bytes(source, lines, own) if source.has(lines) else b""
    kept = dict[str, bytes]()
    if ours:
        session = replace(
            own_keys.apply_own_object(ForeignSession(own), ours), archived=archived, transcript=transcript
        )
        _skip_exported_views(source, at, own)
    elif transcript:
        session = replace(session, transcript=transcript)
        _keep_other_files(session, document, kept)
    else:
        session = _with_turns(source, at, session, document, kept)
    for path in source.below(at):
        if path not in source.noted or source.noted[path].outcome == "damaged":
            keep_file(source, path, _kept_name(path, at), own, kept)
    for path, name in flat.shared_folder_files(source, own).items():
        keep_file(source, path, f"{KEPT_FOLDER}/{name}", own, kept)
    return replace(session, kept=kept)


def _with_turns(
    source: Folder, at: str, session: ForeignSession, document: Mapping[str, Any], kept: dict[str, bytes]
) -> ForeignSession:
    """The session with the turns that its state, its cells and its reasons make."""
    made, context = turns.TurnBuilder(), files.dict_or_empty(document.get("context"))
    made.messages(files.objects_of(context.get("conversation")))
    made.outputs(files.objects_of(context.get("tool_outputs")))
    made.cells(_read_cells(source, at, session.id))
    for name, kind in _REASON_FILES.items():
        path = _find_file(source, at, name)
        if source.has(path):
            made.reasons(_read_reasons(source, path, kind, session.id))
    _keep_other_files(session, document, kept)
    return replace(session, turns=made.turns())


def _read_cells(source: Folder, at: str, session: str) -> list[Step]:
    found = dict[str, Step]()
    for path in source.below(f"{at}/{_CELLS}"):
        if path.rpartition("/")[2].removesuffix(".gz") == _INDEX:
            _check_index(source, path, session)
            continue
        try:
            step = turns.parse_step(source.object(path))
        except DamagedFileError as error:
            source.note(path, "damaged", str(error), session)
        except SessgitError as error:
            source.note(path, "damaged", f"it is not a cell: {error}", session)
        else:
            again = step.task.id in found
            source.note(path, "damaged" if again else "imported", "another cell has its id" if again else "", session)
            found.setdefault(step.task.id, step)
    return list(found.values())


def _check_index(source: Folder, path: str, session: str) -> None:
    try:
        _check_version(source.object(path))
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
    else:
        source.note(path, "imported", "derived from the cells", session)


def _read_reasons(source: Folder, path: str, kind: str, session: str) -> list[tuple[float | None, Reason]]:
    try:
        lines = source.lines(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return []
    found = [turns.parse_reason(kind, line) for line in lines.values]
    told = [one for one in found if one is not None]
    if len(told) == len(found):
        source.note(path, "damaged" if lines.damaged else "imported" if told else "empty", lines.why, session)
    return told


def _skip_exported_views(source: Folder, at: str, session: str) -> None:
    """What an export wrote beside the transcript says nothing that is not in that."""
    for path in source.below(at):
        if _is_generated_file(path.removeprefix(f"{at}/").removesuffix(".gz")) and path not in source.noted:
            source.note(path, "imported", "the transcript contains it", session)


def _keep_other_files(session: ForeignSession, document: Mapping[str, Any], kept: dict[str, bytes]) -> None:
    if rest := flat.state_leftovers(session, document):
        kept[f"{KEPT_FOLDER}/{flat.DOCUMENT}"] = files.json_document(rest)


def _is_generated_file(name: str) -> bool:
    """Whether a file in a session's folder is one that the system itself writes from what it knows."""
    return name in (_STATE, _TRANSCRIPT, *_REASON_FILES) or name.startswith(f"{_CELLS}/")


def _kept_name(path: str, at: str) -> str:
    name = path.removeprefix(f"{at}/") if at else path
    return name.removeprefix("kept/") if name.startswith("kept/") else f"{KEPT_FOLDER}/{name}"


def _find_file(source: Folder, at: str, name: str) -> str:
    """A file of a session, packed or not."""
    path = f"{at}/{name}" if at else name
    return path if source.has(path) or not source.has(f"{path}.gz") else f"{path}.gz"


def _read_bytes(source: Folder, path: str, session: str) -> bytes:
    try:
        data = source.unpacked(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return b""
    source.note(path, "imported" if data else "empty", session=session)
    return data


def _check_version(document: Mapping[str, Any]) -> None:
    """Raises DamagedFileError where a document is of a later version than is known."""
    ours = files.dict_or_empty(document.get(own_keys.KEY)).get("version")
    theirs = document.get("version", document.get("schema_version"))
    for version in (ours, theirs):
        major = str(version).partition(".")[0]
        if version is not None and major.isdecimal() and int(major[:9]) > VERSION:
            raise DamagedFileError(f"it has version {str(version)[:20]}, which this sessgit does not know")
