"""The layout of RLM: folders `rlm-sessions/<id>/`, and the older flat files of `rlm-state/`.

An export has the client's transcript next to the state, so it holds all of a session. An import may find it there too;
otherwise the conversation is what the state, the cells and the reasons say.

Of the flat files, `<id>.json` is the state of a session, `<id>_context.json` the conversation; `context.json` is a copy
of the latter for the session that `session-metadata.json` names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessgit.errors import DamageError, NotFoundError, SessgitError, UsageError
from sessgit.exchange import files, mapping, values
from sessgit.exchange.files import DamagedFileError, Folder, Link
from sessgit.exchange.mapping import OWN_KEY
from sessgit.exchange.values import Document
from sessgit.model import dependency_graph, ids, program_input, stored_fields
from sessgit.model.conversation import session as sessions
from sessgit.model.foreign_session import ForeignFolder, ForeignSession
from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Part, Reason, Saying, Step, Task
from sessgit.model.progress import Progress

if TYPE_CHECKING:
    from sessgit import Session

SYSTEM = "rlm"
VERSION = 1
KEPT_STATE, KEPT_MEMORY = f"{SYSTEM}/session.json", f"{SYSTEM}/working-memory.json"
_KEPT_PARTS = f"{SYSTEM}/parts.json"
"""Reasons as they were (recording puts the times of a turn in order), and cells and their index if they say more than a
session can."""
_ACCESSES = f"{SYSTEM}/file-access.jsonl"
_SESSIONS, _ARCHIVE = "rlm-sessions", "archive"
_FLAT, _EXTERNALIZED, _TRAJECTORIES = "rlm-state", "rlm-externalized", "rlm-trajectories"
_CURRENT = "current-transcript.jsonl"
_TRANSCRIPT, _STATE, _CELLS, _INDEX = "transcript.jsonl", "session.json", "cells", "index.json"
_INDEX_PATH = f"{_CELLS}/{_INDEX}"
_REASON_FILES = {"reasoning/traces.jsonl": "trace", "reasoning/decisions.jsonl": "decision"}
_COMPRESSED = "it is compressed: decompress it, and import the result"
_SKIPPED_SUFFIXES = {
    ".db": "it is a database of the other system", "-wal": "it belongs to a database of the other system",
    "-shm": "it belongs to a database of the other system", ".tar.gz": _COMPRESSED, ".tgz": _COMPRESSED,
    ".zip": _COMPRESSED, "rlm-config.json": "it has the settings of the other system",
}  # fmt: skip
_INDEX_KEYS = ("version", "session_id", "cells", "roots", "leaves", "execution_order")
_ENTRY_KEYS = ("type", "dependencies", "dependents")
_COMPUTED_IN_CELLS = (
    "created_at",
    "input.source",
    "output.execution_time_ms",
    "metadata.model",
    "metadata.tokens_used",
)
"""What a cell has from its lines if the imported one has nothing valid."""
_CELL_COUNT_KEYS = ("count", "index_path")
_STATE_PARTS = ("metadata", "activation", "context", "budget", "cells", "trajectory")


# Reading


def read(folder: Path) -> ForeignFolder:
    """Return the sessions in a folder of the client, in its `rlm-state` or in its `rlm-sessions`; raises NotFoundError
    if there are none."""
    root = folder.absolute()
    source = files.open_folder(root, _FLAT, _SESSIONS, _EXTERNALIZED, _TRAJECTORIES)
    for entry in files.list_folder(root):
        if entry.path.startswith("rlm-") or entry.path == _CURRENT:
            source.entries.setdefault(entry.path, entry)
    start = f"{_SESSIONS}/" if (root / _SESSIONS).is_dir() else ""
    states = (_STATE, f"{_STATE}.gz")
    places = [(path, False) for name in states for path in source.names(f"{start}*/{name}")]
    places += [(path, True) for name in states for path in source.names(f"{start}{_ARCHIVE}/*/{name}")]
    if not start and source.has(_STATE):
        places.append((_STATE, False))
    sessions = [
        session
        for path, archived in places
        if (session := _read_session(source, path.rpartition("/")[0], archived=archived)) is not None
    ]
    if (root / _FLAT).is_dir():
        sessions += _read_flat_sessions(source, f"{_FLAT}/", {session.id for session in sessions}, only_states=False)
    elif not places:
        sessions += _read_flat_sessions(source, "", set(), only_states=not start)
    for path in source.entries:
        why = next((why for end, why in _SKIPPED_SUFFIXES.items() if path.endswith(end)), "")
        if why and source.has(path) and path not in source.noted:
            source.note(path, "left", why)
    if not sessions and not source.noted:
        raise NotFoundError(f"there are no RLM sessions in {folder}", "Name ~/.claude, or its subfolder rlm-state.")
    return ForeignFolder(files.sort_parents_first(sessions), source.files())


def _read_session(source: Folder, at: str, *, archived: bool) -> ForeignSession | None:
    """Return the session in a folder, None if its state is damaged."""
    path, own = _find_file(source, at, _STATE), at.rpartition("/")[2]
    document = source.load_object(path, own, _check_version)
    if document is None:
        return None
    ours = values.mapping(document, OWN_KEY)
    own = values.text(document, f"{OWN_KEY}.id", "metadata.session_id") or own
    odd = [part for part in _STATE_PARTS if document.get(part) and not isinstance(document[part], dict)]
    why = [f"{', '.join(odd)}: not an object, so an export replaces it"] if odd else []
    if values.value_at(document, "cells.index_path") not in (None, _INDEX_PATH):
        why.append(f"cells.index_path is not {_INDEX_PATH}, where an export writes the index")
    source.note(path, "imported", "; ".join(why), own)
    lines = _find_file(source, at, _TRANSCRIPT)
    transcript = source.load(source.unpacked, lines, own) or b""
    if source.has(lines):
        source.note(lines, "imported" if transcript else "empty", session=own)
    kept = dict[str, bytes]()
    if ours:
        session = mapping.with_own_values(ForeignSession(own), ours)
        for view in source.below(at):  # files that an export makes of the transcript
            if _is_generated_file(view.removeprefix(f"{at}/").removesuffix(".gz")) and view not in source.noted:
                source.note(view, "imported", "the transcript contains it", own)
    else:
        session = with_state(ForeignSession(own, archived=archived), document)
        if not transcript:
            turns, parts = _read_turns(source, at, own, values.mapping(document, "context"))
            session = replace(session, turns=turns)
            if parts:
                kept[_KEPT_PARTS] = files.json_document(parts)
        _keep_state(session, document, kept)
    for file in source.below(at):
        if file not in source.noted or source.noted[file].outcome == "damaged":
            source.keep(file, _kept_name(file, at), own, kept)
    for file, name in _shared_folder_files(source, own).items():
        source.keep(file, f"{SYSTEM}/{name}", own, kept)
    return replace(_with_accesses(session, kept), archived=archived, transcript=transcript, kept=kept)


def _with_accesses(session: ForeignSession, kept: Mapping[str, bytes]) -> ForeignSession:
    """Return the session; its files are also those that its log of accesses names."""
    lines = files.parse_lines(kept.get(_ACCESSES, b"")).values
    logged = [values.text(line, "file_path", "path", "file") for line in lines]
    every = [*dict.fromkeys(filter(None, (*values.texts(session.facts, "files"), *logged)))]
    return replace(session, facts={**session.facts, "files": every}) if every else session


def _check_version(document: Document) -> None:
    """Raise DamagedFileError if a document has a later version than is known."""
    theirs = document.get("version", document.get("schema_version"))
    for version in (values.value_at(document, f"{OWN_KEY}.version"), theirs):
        major = str(version).partition(".")[0]
        if version is not None and major.isdecimal() and int(major[:9]) > VERSION:
            raise DamagedFileError(f"it has version {str(version)[:20]}, which this sessgit does not know")


def _read_turns(
    source: Folder, at: str, session: str, context: Document
) -> tuple[tuple[GivenTurn, ...], dict[str, Any]]:
    """Return the turns that the state's context, the cells and the reasons make, and documents of which these turns
    have only a part, by the names of their files."""
    builder, parts = TurnBuilder(session), dict[str, Any]()
    builder.messages(values.objects(context, "conversation"))
    builder.outputs(values.objects(context, "tool_outputs"))
    cells, index = _read_cells(source, at, session)
    steps = {id: parse_step(document) for id, document in cells.items()}
    builder.cells(steps.values())
    for id, document in cells.items():
        is_whole = steps.keys() >= {*steps[id].task.dependencies}
        if not is_whole or {**document, "dependents": []} != {**step_document(steps[id]), "dependents": []}:
            parts.setdefault(_CELLS, {})[id] = document
    if index:
        parts["index"] = index
    for name, kind in _REASON_FILES.items():
        path = _find_file(source, at, name)
        if (lines := source.load(source.lines, path, session)) is None:
            continue
        reasons = [(reason, line) for line in lines.values if (reason := parse_reason(kind, line))]
        if len(reasons) == len(lines.values):  # a file with unknown lines is kept as it is
            source.note(path, "damaged" if lines.damaged else "imported" if reasons else "empty", lines.why, session)
        builder.reasons(reason for reason, _ in reasons)
        if reasons:
            parts[kind] = [line for _, line in reasons]
    return builder.turns(), parts


def _read_cells(source: Folder, at: str, session: str) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the documents of the cells by their ids, and what their index says that follows from no cell."""

    def read_cell(path: str) -> dict[str, Any]:
        document = source.object(path)
        try:
            parse_step(document)
        except SessgitError as error:
            raise DamagedFileError(f"it is not a cell: {error}") from error
        return document

    cells, more = dict[str, dict[str, Any]](), dict[str, Any]()
    for path in source.below(f"{at}/{_CELLS}"):
        if path.rpartition("/")[2].removesuffix(".gz") == _INDEX:
            if (index := source.load_object(path, session, _check_version)) is not None:
                source.note(path, "imported", "derived from the cells", session)
                more = _without(index, _INDEX_KEYS)
                entries = values.mapping(index, _CELLS).items()
                own = {id: _without(entry, _ENTRY_KEYS) if isinstance(entry, dict) else entry for id, entry in entries}
                if own := {id: entry for id, entry in own.items() if entry}:
                    more[_CELLS] = own
        elif document := source.load(read_cell, path, session):
            is_copy = document["cell_id"] in cells
            why = "another cell has its id" if is_copy else ""
            source.note(path, "damaged" if is_copy else "imported", why, session)
            cells.setdefault(document["cell_id"], document)
    return cells, more


def _find_file(source: Folder, at: str, name: str) -> str:
    """Return the path of a file of a session, compressed or not."""
    path = f"{at}/{name}" if at else name
    return path if source.has(path) or not source.has(f"{path}.gz") else f"{path}.gz"


def _is_generated_file(name: str) -> bool:
    """Return whether a file in a session's folder is one that the system derives from what it knows."""
    return name in (_STATE, _TRANSCRIPT, *_REASON_FILES) or name.startswith(f"{_CELLS}/")


def _kept_name(path: str, at: str) -> str:
    name = path.removeprefix(f"{at}/") if at else path
    return name.removeprefix("kept/") if name.startswith("kept/") else f"{SYSTEM}/{name}"


def _shared_folder_files(source: Folder, session: str) -> dict[str, str]:
    """Return the files of a session in folders of all sessions, and the name by which each is kept."""
    out = {
        path: f"externalized/{path.removeprefix(f'{_EXTERNALIZED}/{session}/')}"
        for path in source.below(f"{_EXTERNALIZED}/{session}")
    }
    for path in source.below(_TRAJECTORIES):
        name = path.removeprefix(f"{_TRAJECTORIES}/")
        if name.startswith(session) and name[len(session) : len(session) + 1] in ("_", ".", "-", "/"):
            out[path] = f"trajectories/{name}"
    return out


# States


def with_state(session: ForeignSession, document: Document) -> ForeignSession:
    """Return the session with what a state in a folder says of it."""
    created, updated, ended = (
        values.to_time(values.value_at(document, f"metadata.{key}_at")) for key in ("created", "updated", "ended")
    )
    budget = values.mapping(document, "budget")
    used: dict[str, Any] = {
        "tokens": values.count(budget, "total_tokens_used"),
        "cost_usd": values.to_number(budget.get("cost_usd")),
        "events_count": values.count(document, "trajectory.events_count"),
        "files": list(values.mapping(document, "context.files")),
        "tool_outputs": len(values.items(document, "context.tool_outputs")),
    }
    return replace(
        session,
        facts={key: value for key, value in used.items() if value},
        project=values.text(document, "metadata.cwd"),
        created=created,
        updated=updated,
        ended=ended,
        state="ended" if ended or session.archived else "active",
        unified=sessions.state_document(sessions.parse_state(document)),
    )


def _keep_state(session: ForeignSession, document: Document, kept: dict[str, bytes]) -> None:
    """Keep what a state says and the session does not, in the form of the state."""
    rest = dict[str, Any]()
    for part, value in document.items():
        if part not in _STATE_PARTS or not isinstance(value, dict):
            rest[part] = value
        elif inner := {k: v for k, v in value.items() if not _is_known(session, part, k, v)}:
            rest[part] = inner
    if rest:
        kept[KEPT_STATE] = files.json_document(rest)


def _is_known(session: ForeignSession, part: str, key: str, value: object) -> bool:
    """Return whether the session has a value of a state. Times are not: here they have only milliseconds."""
    if value in (None, {}, [], "") or (part == "metadata" and (key, value) == ("session_id", session.id)):
        return True
    if part == "cells" and key in _CELL_COUNT_KEYS:
        return True
    known = with_state(ForeignSession(""), {part: {key: value}})
    return value in (values.mapping(known.unified, part).get(key), known.project if key == "cwd" else None)


# Flat files


def _read_flat_sessions(
    source: Folder, at: str, known: Collection[str], *, only_states: bool
) -> list[ForeignSession]:  # fmt: skip
    """Return the sessions of the flat files, by id, without those that are `known` from folders. With `only_states` a
    file counts only if it looks like a state."""
    stems = [path.removeprefix(at).removesuffix(".json") for path in source.names(f"{at}*.json")]
    metadata = _read_object(source, f"{at}session-metadata.json", "")
    current = values.text(metadata, "session_id")
    own = [stem.removesuffix("_context") for stem in stems if stem not in ("context", "session-metadata")]
    if only_states:
        own = [name for name in own if f"{name}_context" in stems or _is_state(source, f"{name}.json")]
    out = list[ForeignSession]()
    for session in sorted({*own, current} - {""}):
        if session in known:
            paths = (f"{at}{session}.json", f"{at}{session}_context.json", f"{at}file-access-{session}.jsonl")
            for path in filter(source.has, paths):
                source.note(path, "left", "rlm-sessions has the session", session)
        elif made := _read_flat_session(source, at, session, metadata if session == current else {}):
            out.append(made)
    if "context" in stems and not current:
        source.note(f"{at}context.json", "left", "no session-metadata.json names its session")
    if current:
        source.note(f"{at}session-metadata.json", "imported", session=current)
    return out


def _read_flat_session(
    source: Folder, at: str, session: str, metadata: Document
) -> ForeignSession | None:  # fmt: skip
    state = _read_object(source, f"{at}{session}.json", session)
    context = _read_object(source, f"{at}{session}_context.json", session)
    shared = _read_object(source, f"{at}context.json", session) if metadata else {}
    if shared:
        is_new = not context and bool(_messages(shared) or shared.get("tool_outputs"))
        why = "" if is_new else "another file has the same contents"
        source.note(f"{at}context.json", "imported" if is_new else "empty", why, session)
    context = context or shared
    if not state and not context and not metadata:
        return None
    builder = TurnBuilder(session)
    builder.messages(_messages(context))
    builder.outputs(values.objects(context, "tool_outputs"))
    document, kept = migrated_state(session, state, context, metadata), dict[str, bytes]()
    made = with_state(ForeignSession(session, turns=builder.turns()), document)
    _keep_state(made, document, kept)
    paths = {f"{at}file-access-{session}.jsonl": "file-access.jsonl", **_shared_folder_files(source, session)}
    for path, name in paths.items():
        source.keep(path, f"{SYSTEM}/{name}", session, kept)
    return replace(_with_accesses(made, kept), kept=kept)


def _read_object(source: Folder, path: str, session: str) -> dict[str, Any]:
    document = source.load_object(path, session)
    if document is not None:
        source.note(path, "imported" if document else "empty", session=session)
    return document or {}


def _messages(context: Document) -> list[Document]:
    return values.objects(context, "messages") or values.objects(context, "conversation")


def _is_state(source: Folder, path: str) -> bool:
    """Return whether a JSON file in a folder of any name looks like a state."""
    try:
        return bool(source.object(path).keys() & {"rlm_active", "current_depth", "total_tokens_used", "working_memory"})
    except DamagedFileError:
        return True


_MIGRATED_STATE: dict[str, tuple[str, Any]] = {
    "created_at": ("metadata.created_at", None), "updated_at": ("metadata.updated_at", None),
    "ended_at": ("metadata.ended_at", None), "rlm_active": ("activation.rlm_active", False),
    "activation_mode": ("activation.activation_mode", "complexity"),
    "activation_reason": ("activation.activation_reason", None),
    "complexity_score": ("activation.complexity_score", None), "current_depth": ("activation.current_depth", 0),
    "max_depth": ("activation.max_depth", stored_fields.MOST_DEPTH),
    "total_tokens_used": ("budget.total_tokens_used", 0), "total_recursive_calls": ("budget.total_recursive_calls", 0),
    "trajectory_events_count": ("trajectory.events_count", 0), "trajectory_path": ("trajectory.export_path", None),
}  # fmt: skip
"""The keys of a flat state, where they are in a state in a folder, and their defaults."""


def migrated_state(session: str, state: Document, context: Document, metadata: Document) -> dict[str, Any]:
    """Return the state in a folder that RLM itself makes of the flat files: the state, the conversation, and
    `session-metadata.json`.

    Keys that RLM drops stay: those of the state at the top, those of the other two in `context` and in `metadata`.
    """
    memory, other_memory = values.mapping(state, "working_memory"), values.mapping(context, "working_memory")
    own = {"session_id", *([] if "created_at" in state else ["started_at"])}
    out: dict[str, Any] = {
        "metadata": {
            "session_id": session, "cwd": metadata.get("cwd", ""),
            "claude_transcript_path": metadata.get("transcript_path"), "rlm_version": "0.1.0",
            **_without(metadata, {*own, "transcript_path", "cwd"}),
        },
        "activation": {},
        "context": {
            "conversation": context.get("messages") or context.get("conversation") or [],
            "files": context.get("files", {}), "tool_outputs": context.get("tool_outputs", []),
            "working_memory": memory or other_memory,
            **_without(context, {"messages", "conversation", "files", "tool_outputs", "working_memory"}),
        },
        "budget": {"max_recursive_calls": 10},
        "trajectory": {},
        **_without(state, {"session_id", "working_memory", *_STATE_PARTS, *_MIGRATED_STATE}),
    }  # fmt: skip
    for key, (path, default) in _MIGRATED_STATE.items():
        part, _, name = path.partition(".")
        out[part][name] = state.get(key, default)
    if "created_at" not in state:
        out["metadata"]["created_at"] = metadata.get("started_at")
    if memory and other_memory and memory != other_memory:
        out["context"]["context_working_memory"] = other_memory
    return out


def _without(document: Document, keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}


# Writing


def write_session(session: Session, progress: Progress) -> Mapping[str, bytes | Link]:
    """Return the files of a recorded session below the client's folder, with its transcript and all its cells."""
    snapshot = replace(session.snapshot(SYSTEM, progress), transcript=session.transcript())
    document = session.state_document()
    document["cells"] = {**document["cells"], **session.cell_index(), "count": document["cells"]["count"]}
    return write(snapshot, document, session.cell_documents())


def write(
    session: ForeignSession, document: Document, cells: Sequence[Document]
) -> Mapping[str, bytes | Link]:  # fmt: skip
    """Return the files of a session below the client's folder: `document` is its state in RLM's form, with the index of
    its cells under `cells`, and `cells` are the documents of these."""
    name = files.storable_path(session.id)
    at = f"{_SESSIONS}/{_ARCHIVE}/{name}" if session.archived else f"{_SESSIONS}/{name}"
    state, index = dict(document), dict(values.mapping(document, "cells"))
    if values.value_at(state, "context.working_memory") in (None, {}):
        memory = mapping.kept_object(session, KEPT_MEMORY)
        state["context"] = {**values.mapping(state, "context"), "working_memory": memory}
    parts = mapping.kept_object(session, _KEPT_PARTS)
    count = {"count": index.pop("count", len(cells)), "index_path": _INDEX_PATH}
    state["cells"] = _without(index, _INDEX_KEYS) | count
    index, more = {key: index[key] for key in _INDEX_KEYS if key in index}, values.mapping(parts, "index")
    if theirs := values.mapping(more, _CELLS):  # what an imported index said of the cells besides
        entries = values.mapping(index, _CELLS).items()
        index[_CELLS] = {**theirs, **{id: {**entry, **values.mapping(theirs, id)} for id, entry in entries}}
    index = {**more, **index}
    own_values = mapping.own_values(session, ForeignSession(session.id))
    state[OWN_KEY] = {"version": VERSION, "id": session.id, **own_values}
    out: dict[str, bytes | Link] = {
        f"{at}/{_STATE}": files.json_document(state),
        f"{at}/{_INDEX_PATH}": files.json_document(index),
    }
    for cell in cells:
        original = values.mapping(parts, _CELLS).get(cell["cell_id"])
        document = _with_original_cell(cell, original, cells) if isinstance(original, dict) else cell
        out[f"{at}/{_CELLS}/{files.storable_path(str(cell['cell_id']))}.json"] = files.json_document(document)
    if session.transcript:
        out[f"{at}/{_TRANSCRIPT}"] = session.transcript
    for path, kind in _REASON_FILES.items():
        if lines := reason_lines(session.turns, kind, values.objects(parts, kind)):
            out[f"{at}/{path}"] = b"".join(map(files.json_line, lines))
    for path, data in session.kept.items():
        if path == _KEPT_PARTS:
            continue
        own = path.removeprefix(f"{SYSTEM}/")
        is_natural = own != path and not own.startswith("kept/") and not _is_generated_file(own)
        out[f"{at}/{own if is_natural else f'kept/{path}'}"] = data
    if session.state == "active" and not session.archived:
        out[f"{_SESSIONS}/current"] = Link(name)
    return out


def _with_original_cell(
    cell: Document, original: Document, cells: Sequence[Document]
) -> Document:  # fmt: skip
    """Return the document of one of the cells with what the imported one says where nothing has changed since."""
    try:
        written = step_document(parse_step(original))
    except SessgitError:
        return cell
    known = {one["cell_id"] for one in cells}  # a session has no dependency on a cell that it lacks
    written["dependencies"] = [one for one in written["dependencies"] if one in known]
    for path in _COMPUTED_IN_CELLS:
        if not values.value_at(written, path):
            part, _, key = path.rpartition(".")
            inner: dict[str, Any] = written[part] if part else written
            here = values.mapping(cell, part) if part else cell
            if key in here:
                inner[key] = here[key]
            else:
                inner.pop(key, None)
    return mapping.with_original(original, written, cell)


CELLS_PROMPT = "What a program ran outside of the conversation"
"""The prompt of a turn for what belongs to no other turn."""
OPENING_PROMPT = "(said before the first prompt)"
_TEXT_KEYS = ("text", "content", "reasoning", "thought", "decision", "question", "step")
_CHOICE_KEYS = ("chosen", "choice", "selected", "outcome")
_TIME_KEYS = ("timestamp", "created_at", "time")


@dataclass
class _OpenTurn:
    """A turn in the making, with its parts and their times; messages keep their order."""

    prompt: str
    time: float | None = None
    parts: list[tuple[float | None, Part]] = field(default_factory=list)

    def put(self, time: float | None, part: Part) -> None:
        """Insert a part after those that are not later."""
        place = len(self.parts)
        while time is not None and place and (before := self.parts[place - 1][0]) is not None and before > time:
            place -= 1
        self.parts.insert(place, (time, part))


@dataclass
class TurnBuilder:
    """Collects turns of a session; `other` is the turn for what belongs to none of `open`."""

    session: str = ""
    outputs_so_far: int = 0
    open: list[_OpenTurn] = field(default_factory=list)
    other: _OpenTurn | None = None

    def messages(self, messages: Iterable[Document]) -> None:
        """Add messages in their order, without empty ones."""
        for message in messages:
            role, time = values.text(message, "role"), values.seconds(message, *_TIME_KEYS)
            text = _content_text(message.get("content"))
            if role in ("user", "human"):
                self.open.append(_OpenTurn(text, time))
            elif text:
                if not self.open:
                    self.open.append(_OpenTurn(OPENING_PROMPT, time))
                part: Part = Saying(text, values.text(message, "model"), time)
                if role == "tool":
                    part = self._output_cell(message, text, time)
                self.open[-1].parts.append((time, part))

    def outputs(self, outputs: Iterable[Document]) -> None:
        """Add outputs of tools, without those of cells and those of which the turn is unknown."""
        for output in outputs:
            time = values.seconds(output, *_TIME_KEYS)
            turn = self._at(time)
            if turn is not None and not values.text(output, "cell_id"):
                text = _content_text(output.get("content", output.get("content_preview")))
                turn.put(time, self._output_cell(output, text, time))

    def _output_cell(self, output: Document, text: str, time: float | None) -> Step:
        """Return the cell of an output of a tool; it depends on none."""
        self.outputs_so_far += 1
        own = ids.cell_id(self.session, f"output {self.outputs_so_far}")
        name = mapping.tool_name(values.text(output, "tool_name", "tool", "name"))
        task = Task("tool", name, source="tool", id=own, created=time)
        code = output.get("exit_code")
        return Step(task, Outcome(text) if code in (0, None) else Outcome(error=f"Exit code {code}\n{text}".strip()))

    def cells(self, steps: Iterable[Step]) -> None:
        """Add cells by the time when they were made, but none before one that it depends on."""
        known = {step.task.id: step for step in sorted(steps, key=lambda step: step.task.created or 0)}
        needs = {id: step.task.dependencies for id, step in known.items()}
        times = {id: step.task.created for id, step in known.items()}
        first = min((time for time in times.values() if time is not None), default=None)
        with suppress(DamageError):  # a cycle
            known = {id: known[id] for id in dependency_graph.topological_order(needs)}
        for id, step in known.items():
            before = (times[other] for other in needs[id] if other in times)
            times[id] = max((time for time in (times[id], *before) if time is not None), default=first)
            (self._at(times[id]) or self._other(times[id])).put(times[id], step)

    def reasons(self, reasons: Iterable[Reason]) -> None:
        """Add reasons; those without a time go to the end of the last turn."""
        for reason in reasons:
            last = self.open[-1] if self.open and reason.time is None else None
            (self._at(reason.time) or last or self._other(reason.time)).put(reason.time, reason)

    def turns(self) -> tuple[GivenTurn, ...]:
        """Return the turns in order; the turn of other items comes first if it is older than all."""
        turns = list(self.open)
        if self.other is not None:
            is_first = self.other.time is not None and bool(turns) and turns[0].time is not None
            turns.insert(0 if is_first else len(turns), self.other)
        return tuple(
            mapping.with_answer(GivenTurn(turn.prompt, tuple(part for _, part in turn.parts), time=turn.time))
            for turn in turns
        )

    def _at(self, time: float | None) -> _OpenTurn | None:
        begun = [turn for turn in self.open if turn.time is not None and time is not None and turn.time <= time]
        return begun[-1] if begun else None

    def _other(self, time: float | None) -> _OpenTurn:
        self.other = self.other or _OpenTurn(CELLS_PROMPT, time)
        return self.other


def _content_text(value: object) -> str:
    """Return a text, the texts of a list of blocks, or any other value as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(values.value_at(block, "text"), str) for block in value):
        return "\n".join(block["text"] for block in value)
    return program_input.to_json_line(value, "a message")


def _content_texts(value: list[Any]) -> tuple[str, ...]:
    return tuple(filter(None, map(_content_text, value)))


def parse_step(document: Document) -> Step:
    """Return the cell of a document, pending if it has no result, no error and took no time; raises UsageError if it is
    invalid."""
    if not values.text(document, "cell_id"):
        raise UsageError("it has no id")
    task = program_input.check(
        Task(
            values.text(document, "type"),
            values.text(document, "input.operation"),
            dict(values.mapping(document, "input.args")),
            values.text(document, "input.source"),
            tuple(dict.fromkeys(values.texts(document, "dependencies"))),
            values.text(document, "cell_id"),
            values.seconds(document, *_TIME_KEYS),
            Metadata(
                values.count(document, "metadata.depth"),
                values.text(document, "metadata.model"),
                values.count(document, "metadata.tokens_used"),
            ),
        )
    )
    error, result = values.value_at(document, "output.error"), values.value_at(document, "output.result")
    taken = values.to_number(values.value_at(document, "output.execution_time_ms")) or None
    if error is None and result is None and not taken:
        return Step(task)
    return Step(task, Outcome(result, None if error is None else _content_text(error) or "it failed", taken))


def step_document(step: Step) -> dict[str, Any]:
    """Return the document of a cell as an export writes it directly after its import, without `dependents`."""
    task, outcome = step.task, step.outcome or Outcome()
    return {
        "cell_id": task.id,
        "created_at": task.created,
        "type": task.type,
        "input": {"source": task.source, "operation": task.operation, "args": dict(task.args)},
        "output": {
            "result": outcome.result, "error": outcome.error, "execution_time_ms": outcome.execution_time_ms,
        },
        "dependencies": list(task.dependencies),
        "metadata": {
            "depth": task.metadata.depth, "model": task.metadata.model or None,
            "tokens_used": task.metadata.tokens_used,
        },
    }  # fmt: skip


def parse_reason(kind: str, line: Document) -> Reason | None:
    """Return the trace or decision on a line, None if it has no text."""
    text = values.text(line, *_TEXT_KEYS)
    if not text:
        return None
    confidence = values.to_number(line.get("confidence"))
    return Reason(
        "decision" if kind == "decision" else "trace", text, _content_texts(values.items(line, "evidence")),
        _content_texts(values.items(line, "options")), values.text(line, *_CHOICE_KEYS),
        confidence if confidence is not None and 0 <= confidence <= 1 else None, values.seconds(line, *_TIME_KEYS),
    )  # fmt: skip


def reason_lines(
    turns: Sequence[GivenTurn], kind: str, original: Iterable[Document]
) -> list[Document]:  # fmt: skip
    """Return the traces, or the decisions, of all turns as lines of RLM's log, as they were in the original lines if
    they still say the same."""
    reasons = [part for turn in turns for part in turn.parts if isinstance(part, Reason) and part.kind == kind]
    known = [(parse_reason(kind, line), line) for line in original]
    lines = list[Document]()
    for reason in reasons:
        # Recording keeps only the milliseconds of a time.
        same = (n for n, (parsed, _) in enumerate(known) if parsed and replace(parsed, time=reason.time) == reason)
        number = next(same, None)
        if number is not None:
            lines.append(known.pop(number)[1])
            continue
        line = {
            "timestamp": reason.time, "text": reason.text, "evidence": list(reason.evidence),
            "options": list(reason.options), "chosen": reason.chosen, "confidence": reason.confidence,
        }  # fmt: skip
        lines.append(values.present(line))
    return lines
