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
from sessgit.exchange.layouts.kept_files import keep
from sessgit.exchange.layouts.rlm import turns
from sessgit.model import unified_state
from sessgit.model.foreign_session import Foreign

KEPT = "rlm"
STATE, EXTERNALIZED, TRAJECTORIES = "rlm-state", "rlm-externalized", "rlm-trajectories"
CURRENT = "current-transcript.jsonl"
_SHARED, _METADATA, _CONTEXT = "context", "session-metadata", "_context"
_ACCESS = "file-access-"
_MIGRATED = "rlm-sessions has the session"
_SAME = "another file has the same contents"


@dataclass(frozen=True, slots=True)
class Names:
    """Where the flat files are, which sessions a folder of their own has already, and whether the folders of what
    was put outside lie beside that of the flat files."""

    at: str
    there: Collection[str]
    is_nested: bool


def read(source: Folder, names: Names) -> list[Foreign]:
    """The sessions of the flat files, by their ids."""
    at = names.at
    stems = [path.removeprefix(at).removesuffix(".json") for path in source.names(f"{at}*.json")]
    meta = _object(source, f"{at}{_METADATA}.json", "") if _METADATA in stems else {}
    current = files.text(meta.get("session_id"))
    own = [stem.removesuffix(_CONTEXT) for stem in stems if stem not in (_SHARED, _METADATA)]
    if not names.is_nested:
        own = [name for name in own if f"{name}{_CONTEXT}" in stems or _is_state(source, f"{name}.json")]
    ids = sorted({name for name in own if name} | ({current} if current else set()))
    out = []
    for ident in ids:
        if ident in names.there:
            for path in _files(source, at, ident).keys() - beside(source, ident).keys():
                source.note(path, "left", _MIGRATED, ident)
            continue
        out.append(_session(source, at, ident, meta if ident == current else {}))
    if _SHARED in stems and not current:
        source.note(f"{at}{_SHARED}.json", "left", f"no {_METADATA}.json names its session")
    if current and f"{at}{_METADATA}.json" not in source.noted:
        source.note(f"{at}{_METADATA}.json", "imported", session=current)
    return [one for one in out if one is not None]


def described(session: Foreign, document: Mapping[str, Any]) -> Foreign:
    """The session with what its state in a folder of its own says of it as a whole."""
    meta = files.mapping(document.get("metadata"))
    ended = files.time(meta.get("ended_at"))
    own = unified_state.document(unified_state.of(document))
    return replace(
        session,
        project=files.text(meta.get("cwd")),
        created=files.time(meta.get("created_at")),
        updated=files.time(meta.get("updated_at")),
        ended=ended,
        state="ended" if ended or session.archived else "active",
        unified=own,
    )


def rest(session: Foreign, document: Mapping[str, Any]) -> dict[str, Any]:
    """What of a state a session here does not say by itself, in the form of that state."""
    known = described(replace(session, unified={}), document)
    out: dict[str, Any] = {}
    for key, value in document.items():
        if key not in _PARTS or not isinstance(value, dict):
            out[key] = value
            continue
        inner = {k: v for k, v in value.items() if not _is_said(known, key, k, v)}
        if inner and key != "cells":
            out[key] = inner
    return out


def _session(source: Folder, at: str, ident: str, meta: Mapping[str, Any]) -> Foreign | None:
    state = _object(source, f"{at}{ident}.json", ident)
    said = _object(source, f"{at}{ident}{_CONTEXT}.json", ident)
    shared = _object(source, f"{at}{_SHARED}.json", ident) if meta else {}
    path = f"{at}{_SHARED}.json"
    if shared:
        is_new = not said and bool(_messages(shared) or shared.get("tool_outputs"))
        source.note(path, "imported" if is_new else "empty", "" if is_new else _SAME, ident)
    context = said or shared
    if not state and not context and not meta:
        return None
    made = turns.Turns()
    made.messages(_messages(context))
    made.outputs(files.objects(context.get("tool_outputs")))
    document = migrated(ident, state, context, meta)
    session = described(Foreign(ident), document)
    kept = dict[str, bytes]()
    if over := rest(session, document):
        kept[f"{KEPT}/{DOCUMENT}"] = files.document(over)
    for path, name in _files(source, at, ident).items():
        if name:
            keep(source, path, f"{KEPT}/{name}", ident, kept)
    return replace(session, turns=made.turns(), kept=kept)


def migrated(
    ident: str, state: Mapping[str, Any], context: Mapping[str, Any], meta: Mapping[str, Any]
) -> dict[str, Any]:
    """The state in a folder of its own that the system itself makes of the flat files.

    `state` is the state, `context` what was said, `meta` what `session-metadata.json` says. Keys that the system leaves
    out stay: those of the state at the top, those of the other two in `context` and in `metadata`.
    """
    memory, words = (files.mapping(one.get("working_memory")) for one in (state, context))
    return {
        "metadata": {
            "session_id": ident,
            "created_at": state.get("created_at", meta.get("started_at")),
            "updated_at": state.get("updated_at"),
            "ended_at": state.get("ended_at"),
            "cwd": files.text(meta.get("cwd")),
            "claude_transcript_path": meta.get("transcript_path"),
            "rlm_version": _VERSION,
            **_others(meta, _META, "started_at" if "created_at" in state else ""),
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
            **_others(context, _CONTEXT_KEYS),
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
        **_others(state, (*_STATE_KEYS, *_PARTS)),
    }


def _others(found: Mapping[str, Any], known: Collection[str], more: str = "") -> dict[str, Any]:
    """What stands under keys that the system has no place for, and under one more."""
    return {key: value for key, value in found.items() if key not in known or key == more}


DOCUMENT = "session.json"
"""What of a state a session here does not say by itself, among the files that are kept."""
_PARTS = ("metadata", "activation", "context", "budget", "cells", "trajectory")
"""The parts of a state in a folder."""
_VERSION, _MOST_CALLS = "0.1.0", 10
"""What the system puts into each state that it brings into a folder."""
_STATE_KEYS = (
    "session_id", "created_at", "updated_at", "ended_at", "rlm_active", "current_depth", "max_depth", "working_memory",
    "total_tokens_used", "total_recursive_calls", "trajectory_path", "trajectory_events_count",
    "activation_mode", "activation_reason", "complexity_score",
)  # fmt: skip
_CONTEXT_KEYS = ("messages", "conversation", "files", "tool_outputs", "working_memory")
_META = ("session_id", "transcript_path", "cwd", "started_at")


def _files(source: Folder, at: str, ident: str) -> dict[str, str]:
    """All files of a session, and by which name each is kept as it is; ``""`` where it is read."""
    found = {
        f"{at}{ident}.json": "",
        f"{at}{ident}{_CONTEXT}.json": "",
        f"{at}{_ACCESS}{ident}.jsonl": "file-access.jsonl",
    }
    found |= beside(source, ident)
    return {path: name for path, name in found.items() if source.has(path)}


def beside(source: Folder, ident: str) -> dict[str, str]:
    """The files of a session that lie in folders of all sessions, and by which name each is kept as it is."""
    found = dict[str, str]()
    for path in source.below(f"{EXTERNALIZED}/{ident}"):
        found[path] = f"externalized/{path.removeprefix(f'{EXTERNALIZED}/{ident}/')}"
    for path in source.below(TRAJECTORIES):
        name = path.removeprefix(f"{TRAJECTORIES}/")
        if name.startswith(ident) and name[len(ident) : len(ident) + 1] in ("_", ".", "-", "/"):
            found[path] = f"trajectories/{name}"
    return found


def _object(source: Folder, path: str, session: str) -> dict[str, Any]:
    if not source.has(path):
        return {}
    try:
        found = source.object(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return {}
    source.note(path, "imported" if found else "empty", session=session)
    return found


def _messages(context: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return files.objects(context.get("messages")) or files.objects(context.get("conversation"))


def _is_state(source: Folder, path: str) -> bool:
    """Whether a file that lies in a folder of any name is a state."""
    try:
        return bool(source.object(path).keys() & {"rlm_active", "current_depth", "total_tokens_used", "working_memory"})
    except DamagedFileError:
        return True


def _is_said(session: Foreign, part: str, key: str, value: object) -> bool:
    """Whether a value of a state is one that the session has, or none at all. Times are cut to milliseconds here, and
    lines may say others."""
    if value in (None, {}, [], ""):
        return True
    if part == "metadata" and (key, value) in (("session_id", session.id), ("cwd", session.project)):
        return True
    return files.mapping(unified_state.document(unified_state.of({part: {key: value}})).get(part)).get(key) == value
