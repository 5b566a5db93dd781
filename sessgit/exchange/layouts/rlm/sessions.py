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
from sessgit.exchange.layouts.kept_files import keep
from sessgit.exchange.layouts.rlm import flat, turns
from sessgit.exchange.layouts.rlm.flat import CURRENT, EXTERNALIZED, STATE, TRAJECTORIES, Names
from sessgit.model import unified_state
from sessgit.model.foreign_session import Foreign, Found
from sessgit.model.program_input import Reason, Step

SYSTEM = "rlm"
KEPT = "rlm"
SESSIONS = "rlm-sessions"
ARCHIVE = "archive"
VERSION = 1
MEMORY = f"{KEPT}/working-memory.json"
_TRANSCRIPT, _STATE, _CELLS, _INDEX = "transcript.jsonl", "session.json", "cells", "index.json"
_REASONS = {"reasoning/traces.jsonl": "trace", "reasoning/decisions.jsonl": "decision"}
_LEFT = {
    ".db": "it is a database of the other system", "-wal": "it belongs to a database of the other system",
    "-shm": "it belongs to a database of the other system", ".tar.gz": "it is compressed: decompress it, and "
    "import the result",
    ".tgz": "it is compressed: decompress it, and import the result", ".zip": "it is compressed: decompress it, "
    "and import the result",
    "rlm-config.json": "it has the settings of the other system",
}  # fmt: skip


def read(folder: Path) -> Found:
    """The sessions in a folder of the client, in its `rlm-state` or in its `rlm-sessions`; raises NotFoundError where
    there are none."""
    root = folder.absolute()
    source = files.opened(root, STATE, SESSIONS, EXTERNALIZED, TRAJECTORIES)
    _look_beside(source)
    start = f"{SESSIONS}/" if (root / SESSIONS).is_dir() else ""
    places = _places(source, start)
    sessions = [one for place, archived in places if (one := _session(source, place, archived=archived)) is not None]
    there = {one.id for one in sessions}
    state_at = f"{STATE}/" if (root / STATE).is_dir() else ""
    if state_at or not places:
        sessions += flat.read(source, Names(state_at, there, is_nested=bool(state_at or start)))
    for path in source.entries:
        why = next((why for end, why in _LEFT.items() if path.endswith(end)), "")
        if why and source.has(path) and path not in source.noted:
            source.note(path, "left", why)
    if not sessions and not source.noted:
        raise NotFoundError(f"there are no RLM sessions in {folder}", "Name ~/.claude, or its subfolder rlm-state.")
    return Found(files.parents_first(sessions), source.files())


def write(
    session: Foreign, document: Mapping[str, Any] | None = None, cells: Sequence[Mapping[str, Any]] = ()
) -> Mapping[str, bytes]:
    """The files of a session below the client's folder. `document` is its state in the system's own form, with the
    index of its cells at `cells`, and `cells` are those; without them they are what the session itself says."""
    at = f"{SESSIONS}/{files.keepable(session.id)}" if not session.archived else _archived(session.id)
    state = _with_memory(dict(document) if document is not None else _plain(session), session)
    index = dict(files.mapping(state.get("cells")))
    state["cells"] = {"count": files.whole(index.pop("count", len(cells))), "index_path": f"{_CELLS}/{_INDEX}"}
    state[own_keys.KEY] = {"version": VERSION, "id": session.id, **own_keys.written(session)}
    out = {f"{at}/{_STATE}": files.document(state), f"{at}/{_CELLS}/{_INDEX}": files.document(index or _empty(session))}
    out |= {f"{at}/{_CELLS}/{files.keepable(str(one['cell_id']))}.json": files.document(one) for one in cells}
    if session.transcript:
        out[f"{at}/{_TRANSCRIPT}"] = session.transcript
    for path, kind in _REASONS.items():
        if lines := turns.reasons_of(session.turns, kind):
            out[f"{at}/{path}"] = b"".join(files.line(line) for line in lines)
    for path, data in session.kept.items():
        own = path.removeprefix(f"{KEPT}/")
        is_natural = own != path and not own.startswith("kept/") and not _is_known(own)
        out[f"{at}/{own if is_natural else f'kept/{path}'}"] = data
    return out


def _archived(ident: str) -> str:
    return f"{SESSIONS}/{ARCHIVE}/{files.keepable(ident)}"


def _plain(session: Foreign) -> dict[str, Any]:
    """The state as the session alone tells it."""
    own = unified_state.document(unified_state.of(session.unified))
    return {
        "metadata": {
            "session_id": session.id, "created_at": files.seconds(session.created) or 0,
            "updated_at": files.seconds(session.updated) or 0, "ended_at": files.seconds(session.ended),
            "cwd": session.project,
        },
        "activation": {"rlm_active": False, "activation_mode": "never", "current_depth": 0,
                       **own.get("activation", {})},
        "context": {"files": {}, "tool_outputs": [], "working_memory": {}, **own.get("context", {})},
        "budget": own.get("budget", {}),
    }  # fmt: skip


def _with_memory(state: dict[str, Any], session: Foreign) -> dict[str, Any]:
    """The state with the working memory that is kept as a file, where it has none itself."""
    context = files.mapping(state.get("context"))
    try:
        memory = files.parsed(session.kept.get(MEMORY, b"{}"))
    except DamagedFileError:
        return state
    return state if context.get("working_memory") else {**state, "context": {**context, "working_memory": memory}}


def _empty(session: Foreign) -> dict[str, Any]:
    return {"version": "1.0", "session_id": session.id, "cells": {}, "roots": [], "leaves": [], "execution_order": []}


# Folders of sessions


def _look_beside(source: Folder) -> None:
    """Names what lies beside the folders that are read, as far as it is the system's."""
    for entry in files.listed(source.root):
        if entry.path.startswith("rlm-") or entry.path == CURRENT:
            source.entries.setdefault(entry.path, entry)


def _places(source: Folder, start: str) -> list[tuple[str, bool]]:
    """The folders of sessions, and whether each is in the archive."""
    names = (_STATE, f"{_STATE}.gz")
    found = [(path, False) for name in names for path in source.names(f"{start}*/{name}")]
    found += [(path, True) for name in names for path in source.names(f"{start}{ARCHIVE}/*/{name}")]
    if not start and source.has(_STATE):
        found.append((_STATE, False))
    return [(path.rpartition("/")[0], archived) for path, archived in found]


def _session(source: Folder, at: str, *, archived: bool) -> Foreign | None:
    """The session in a folder, None where it cannot be had."""
    path = _path(source, at, _STATE)
    own = at.rpartition("/")[2]
    try:
        document = source.object(path)
        _check_version(document)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), own)
        return None
    meta, ours = files.mapping(document.get("metadata")), files.mapping(document.get(own_keys.KEY))
    own = files.text(ours.get("id")) or files.text(meta.get("session_id")) or own
    source.note(path, "imported", session=own)
    session = flat.described(Foreign(own, archived=archived), document)
    lines = _path(source, at, _TRANSCRIPT)
    transcript = _bytes(source, lines, own) if source.has(lines) else b""
    kept = dict[str, bytes]()
    if ours:
        session = replace(own_keys.read(Foreign(own), ours), archived=archived, transcript=transcript)
        _pass_views(source, at, own)
    elif transcript:
        session = replace(session, transcript=transcript)
        _keep_rest(session, document, kept)
    else:
        session = _conversation(source, at, session, document, kept)
    for path in source.below(at):
        if path not in source.noted or source.noted[path].outcome == "damaged":
            keep(source, path, _kept_name(path, at), own, kept)
    for path, name in flat.beside(source, own).items():
        keep(source, path, f"{KEPT}/{name}", own, kept)
    return replace(session, kept=kept)


def _conversation(
    source: Folder, at: str, session: Foreign, document: Mapping[str, Any], kept: dict[str, bytes]
) -> Foreign:
    """The session with the turns that its state, its cells and its reasons make."""
    made, context = turns.Turns(), files.mapping(document.get("context"))
    made.messages(files.objects(context.get("conversation")))
    made.outputs(files.objects(context.get("tool_outputs")))
    made.cells(_cells(source, at, session.id))
    for name, kind in _REASONS.items():
        path = _path(source, at, name)
        if source.has(path):
            made.reasons(_reasons(source, path, kind, session.id))
    _keep_rest(session, document, kept)
    return replace(session, turns=made.turns())


def _cells(source: Folder, at: str, session: str) -> list[Step]:
    found = dict[str, Step]()
    for path in source.below(f"{at}/{_CELLS}"):
        if path.rpartition("/")[2].removesuffix(".gz") == _INDEX:
            _check_index(source, path, session)
            continue
        try:
            step = turns.step(source.object(path))
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


def _reasons(source: Folder, path: str, kind: str, session: str) -> list[tuple[float | None, Reason]]:
    try:
        lines = source.lines(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return []
    found = [turns.reason(kind, line) for line in lines.values]
    told = [one for one in found if one is not None]
    if len(told) == len(found):
        source.note(path, "damaged" if lines.damaged else "imported" if told else "empty", lines.why, session)
    return told


def _pass_views(source: Folder, at: str, session: str) -> None:
    """What an export wrote beside the transcript says nothing that is not in that."""
    for path in source.below(at):
        if _is_known(path.removeprefix(f"{at}/").removesuffix(".gz")) and path not in source.noted:
            source.note(path, "imported", "the transcript contains it", session)


def _keep_rest(session: Foreign, document: Mapping[str, Any], kept: dict[str, bytes]) -> None:
    if rest := flat.rest(session, document):
        kept[f"{KEPT}/{flat.DOCUMENT}"] = files.document(rest)


def _is_known(name: str) -> bool:
    """Whether a file in a session's folder is one that the system itself writes from what it knows."""
    return name in (_STATE, _TRANSCRIPT, *_REASONS) or name.startswith(f"{_CELLS}/")


def _kept_name(path: str, at: str) -> str:
    name = path.removeprefix(f"{at}/") if at else path
    return name.removeprefix("kept/") if name.startswith("kept/") else f"{KEPT}/{name}"


def _path(source: Folder, at: str, name: str) -> str:
    """A file of a session, packed or not."""
    path = f"{at}/{name}" if at else name
    return path if source.has(path) or not source.has(f"{path}.gz") else f"{path}.gz"


def _bytes(source: Folder, path: str, session: str) -> bytes:
    try:
        data = source.unpacked(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return b""
    source.note(path, "imported" if data else "empty", session=session)
    return data


def _check_version(document: Mapping[str, Any]) -> None:
    """Raises DamagedFileError where a document is of a later version than is known."""
    ours = files.mapping(document.get(own_keys.KEY)).get("version")
    theirs = document.get("version", document.get("schema_version"))
    for version in (ours, theirs):
        major = str(version).partition(".")[0]
        if version is not None and major.isdecimal() and int(major[:9]) > VERSION:
            raise DamagedFileError(f"it has version {str(version)[:20]}, which this sessgit does not know")
