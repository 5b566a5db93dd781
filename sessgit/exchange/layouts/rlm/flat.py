"""The flat files in which RLM kept sessions first, and what its states have in common.

`<id>.json` is the state of a session, `<id>_context.json` what was said; `context.json` is the latter of the session
that `session-metadata.json` names, once more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.files import DamagedFileError, Folder
from sessgit.exchange.layouts.kept_files import keep_file
from sessgit.exchange.layouts.rlm import turns
from sessgit.model import unified_state
from sessgit.model.foreign_session import ForeignSession

KEPT_FOLDER = "rlm"
STATE, EXTERNALIZED, TRAJECTORIES = "rlm-state", "rlm-externalized", "rlm-trajectories"
CURRENT = "current-transcript.jsonl"
_SHARED, _METADATA, _CONTEXT = "context", "session-metadata", "_context"
_ACCESS_PREFIX = "file-access-"
_MIGRATED_REASON = "rlm-sessions has the session"
_SAME_REASON = "another file has the same contents"


@dataclass(frozen=True, slots=True)
class FlatNames:
    """Where the flat files are, which sessions a folder of their own has already, and whether the folders of what
    was put outside lie beside that of the flat files."""

    at: str
    there: Collection[str]
    is_nested: bool


def read_sessions(source: Folder, names: FlatNames) -> list[ForeignSession]:
    """The sessions of the flat files, by their ids."""
    at = names.at
    stems = [path.removeprefix(at).removesuffix(".json") for path in source.names(f"{at}*.json")]
    meta = _read_object(source, f"{at}{_METADATA}.json", "") if _METADATA in stems else {}
    current = files.text_or_empty(meta.get("session_id"))
    own = [stem.removesuffix(_CONTEXT) for stem in stems if stem not in (_SHARED, _METADATA)]
    if not names.is_nested:
        own = [name for name in own if f"{name}{_CONTEXT}" in stems or _is_state(source, f"{name}.json")]
    ids = sorted({name for name in own if name} | ({current} if current else set()))
    out = []
    for ident in ids:
        if ident in names.there:
            for path in _session_files(source, at, ident).keys() - shared_folder_files(source, ident).keys():
                source.note(path, "left", _MIGRATED_REASON, ident)
            continue
        out.append(_make_session(source, at, ident, meta if ident == current else {}))
    if _SHARED in stems and not current:
        source.note(f"{at}{_SHARED}.json", "left", f"no {_METADATA}.json names its session")
    if current and f"{at}{_METADATA}.json" not in source.noted:
        source.note(f"{at}{_METADATA}.json", "imported", session=current)
    return [one for one in out if one is not None]


def with_state(session: ForeignSession, document: Mapping[str, Any]) -> ForeignSession:
    """The session with what its state in a folder of its own says of it as a whole."""
    meta = files.dict_or_empty(document.get("metadata"))
    ended = files.format_time(meta.get("ended_at"))
    own = unified_state.state_document(unified_state.parse_state(document))
    return replace(
        session,
        project=files.text_or_empty(meta.get("cwd")),
        created=files.format_time(meta.get("created_at")),
        updated=files.format_time(meta.get("updated_at")),
        ended=ended,
        state="ended" if ended or session.archived else "active",
        unified=own,
    )


def state_leftovers(session: ForeignSession, document: Mapping[str, Any]) -> dict[str, Any]:
    """What of a state a session here does not say by itself, in the form of that state."""
    known = with_state(replace(session, unified={}), document)
    out: dict[str, Any] = {}
    for key, value in document.items():
        if key not in _STATE_PARTS or not isinstance(value, dict):
            out[key] = value
            continue
        inner = {k: v for k, v in value.items() if not _is_value_known(known, key, k, v)}
        if inner and key != "cells":
            out[key] = inner
    return out


def _make_session(source: Folder, at: str, ident: str, meta: Mapping[str, Any]) -> ForeignSession | None:
    state = _read_object(source, f"{at}{ident}.json", ident)
    said = _read_object(source, f"{at}{ident}{_CONTEXT}.json", ident)
    shared = _read_object(source, f"{at}{_SHARED}.json", ident) if meta else {}
    path = f"{at}{_SHARED}.json"
    if shared:
        is_new = not said and bool(_context_messages(shared) or shared.get("tool_outputs"))
        source.note(path, "imported" if is_new else "empty", "" if is_new else _SAME_REASON, ident)
    context = said or shared
    if not state and not context and not meta:
        return None
    made = turns.TurnBuilder()
    made.messages(_context_messages(context))
    made.outputs(files.objects_of(context.get("tool_outputs")))
    document = migrated_state(ident, state, context, meta)
    session = with_state(ForeignSession(ident), document)
    kept = dict[str, bytes]()
    if over := state_leftovers(session, document):
        kept[f"{KEPT_FOLDER}/{DOCUMENT}"] = files.json_document(over)
    for path, name in _session_files(source, at, ident).items():
        if name:
            keep_file(source, path, f"{KEPT_FOLDER}/{name}", ident, kept)
    return replace(session, turns=made.turns(), kept=kept)


def migrated_state(
    ident: str, state: Mapping[str, Any], context: Mapping[str, Any], meta: Mapping[str, Any]
) -> dict[str, Any]:
    """The state in a folder of its own that the system itself makes of the flat files.

    `state` is the state, `context` what was said, `meta` what `session-metadata.json` says. Keys that the system leaves
    out stay: those of the state at the top, those of the other two in `context` and in `metadata`.
    """
    memory, words = (files.dict_or_empty(one.get("working_memory")) for one in (state, context))
    return {
        "metadata": {
            "session_id": ident,
            "created_at": state.get("created_at", meta.get("started_at")),
            "updated_at": state.get("updated_at"),
            "ended_at": state.get("ended_at"),
            "cwd": files.text_or_empty(meta.get("cwd")),
            "claude_transcript_path": meta.get("transcript_path"),
            "rlm_version": _VERSION,
            **_unknown_keys(meta, _METADATA_KEYS, "started_at" if "created_at" in state else ""),
        },
        "activation": {
            "rlm_active": state.get("rlm_active", False),
            "activation_mode": state.get("activation_mode", "complexity"),
            "activation_reason": state.get("activation_reason"),
            "complexity_score": state.get("complexity_score"),
            "current_depth": state.get("current_depth", 0),
            "max_depth": state.get("max_depth", unified_state.MOST_DEPTH),
        },
        "context": {
            "conversation": context.get("messages") or context.get("conversation") or [],
            "files": context.get("files", {}),
            "tool_outputs": context.get("tool_outputs", []),
            "working_memory": memory or words,
            **_unknown_keys(context, _CONTEXT_KEYS),
            **({"context_working_memory": words} if memory and words and memory != words else {}),
        },
        "budget": {
            "total_tokens_used": state.get("total_tokens_used", 0),
            "total_recursive_calls": state.get("total_recursive_calls", 0),
            "max_recursive_calls": _MOST_CALLS,
        },
        "trajectory": {
            "events_count": state.get("trajectory_events_count", 0),
            "export_path": state.get("trajectory_path"),
        },
        **_unknown_keys(state, (*_STATE_KEYS, *_STATE_PARTS)),
    }


def _unknown_keys(found: Mapping[str, Any], known: Collection[str], more: str = "") -> dict[str, Any]:
    """What stands under keys that the system has no place for, and under one more."""
    return {key: value for key, value in found.items() if key not in known or key == more}


DOCUMENT = "session.json"
"""What of a state a session here does not say by itself, among the files that are kept."""
_STATE_PARTS = ("metadata", "activation", "context", "budget", "cells", "trajectory")
"""The parts of a state in a folder."""
_VERSION, _MOST_CALLS = "0.1.0", 10
"""What the system puts into each state that it brings into a folder."""
_STATE_KEYS = (
    "session_id", "created_at", "updated_at", "ended_at", "rlm_active", "current_depth", "max_depth", "working_memory",
    "total_tokens_used", "total_recursive_calls", "trajectory_path", "trajectory_events_count",
    "activation_mode", "activation_reason", "complexity_score",
)  # fmt: skip
_CONTEXT_KEYS = ("messages", "conversation", "files", "tool_outputs", "working_memory")
_METADATA_KEYS = ("session_id", "transcript_path", "cwd", "started_at")


def _session_files(source: Folder, at: str, ident: str) -> dict[str, str]:
    """All files of a session, and by which name each is kept as it is; ``""`` where it is read."""
    found = {
        f"{at}{ident}.json": "",
        f"{at}{ident}{_CONTEXT}.json": "",
        f"{at}{_ACCESS_PREFIX}{ident}.jsonl": "file-access.jsonl",
    }
    found |= shared_folder_files(source, ident)
    return {path: name for path, name in found.items() if source.has(path)}


def shared_folder_files(source: Folder, ident: str) -> dict[str, str]:
    """The files of a session that lie in folders of all sessions, and by which name each is kept as it is."""
    found = dict[str, str]()
    for path in source.below(f"{EXTERNALIZED}/{ident}"):
        found[path] = f"externalized/{path.removeprefix(f'{EXTERNALIZED}/{ident}/')}"
    for path in source.below(TRAJECTORIES):
        name = path.removeprefix(f"{TRAJECTORIES}/")
        if name.startswith(ident) and name[len(ident) : len(ident) + 1] in ("_", ".", "-", "/"):
            found[path] = f"trajectories/{name}"
    return found


def _read_object(source: Folder, path: str, session: str) -> dict[str, Any]:
    if not source.has(path):
        return {}
    try:
        found = source.object(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return {}
    source.note(path, "imported" if found else "empty", session=session)
    return found


def _context_messages(context: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return files.objects_of(context.get("messages")) or files.objects_of(context.get("conversation"))


def _is_state(source: Folder, path: str) -> bool:
    """Whether a file that lies in a folder of any name is a state."""
    try:
        return bool(source.object(path).keys() & {"rlm_active", "current_depth", "total_tokens_used", "working_memory"})
    except DamagedFileError:
        return True


def _is_value_known(session: ForeignSession, part: str, key: str, value: object) -> bool:
    """Whether a value of a state is one that the session has, or none at all. Times are cut to milliseconds here, and
    lines may say others."""
    if value in (None, {}, [], ""):
        return True
    if part == "metadata" and (key, value) in (("session_id", session.id), ("cwd", session.project)):
        return True
    return (
        files.dict_or_empty(
            unified_state.state_document(unified_state.parse_state({part: {key: value}})).get(part)
        ).get(key)
        == value
    )
