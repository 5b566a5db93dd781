"""The layout of io-log: `.claude-man/sessions/<id>/` with `io.log`, `metadata.json` and `artifacts/`.

A line of the log has a `direction`: `in` opens a turn, `out` is text of the agent, `artifact` a file that it wrote.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessgit.errors import NotFoundError
from sessgit.exchange import files, mapping, values
from sessgit.exchange.files import Folder
from sessgit.exchange.mapping import OWN_KEY, Field
from sessgit.exchange.values import Document
from sessgit.model import canonical, humanize, ids
from sessgit.model import pad as pads
from sessgit.model.foreign_session import (
    LONGEST_DESCRIPTION,
    ForeignFolder,
    ForeignSession,
    agent_id,
    clean_description,
    clean_label,
)
from sessgit.model.pad import Entry
from sessgit.model.program_input import GivenTurn, Part, Saying, ToolCall

SYSTEM = "io-log"
FOLDER = ".claude-man"
SESSIONS = "sessions"
NO_INPUT_PROMPT = "(nothing went in before)"
"""The prompt of text before the first input."""
CHANGING_ACTIONS = ("created", "modified", "updated")
"""Actions on an artifact that become a call of the client's own tool."""
_METADATA = "metadata.json"
_KEPT_METADATA, _KEPT_LINES = f"{SYSTEM}/{_METADATA}", f"{SYSTEM}/lines.json"
_LOG_NAMES = ("io.log", "io.log.gz")
_STATES = {"active": "active", "running": "active", "interrupted": "interrupted", "failed": "interrupted",
           "aborted": "interrupted"}  # fmt: skip


def _description(task: object) -> str:
    """Return the description in a task, ``""`` if it says no more than the title."""
    text = values.text(task).strip()
    return clean_description(text) if text != canonical.one_line(text, mapping.LONGEST_TITLE) else ""


def _role_label(role: object) -> str:
    return clean_label(values.text(role)).lower()


def _role(session: ForeignSession) -> str:
    return values.text(session.unified, "metadata.role")


def _unified(role: object) -> dict[str, Any]:
    label = _role_label(role)
    return {"metadata": {"role": label}} if label else {}


def _task(session: ForeignSession) -> str:
    return session.description or session.title


def _state(status: object) -> str:
    return _STATES.get(values.text(status), "ended")


FIELDS = (
    Field("role", "unified", _unified, lambda s: _role(s).upper(), lambda d, s: _role_label(d["role"]) == _role(s)),
    Field("status", "state", _state,
          lambda s: "completed" if s.state == "ended" else s.state),
    Field("created_at", "created", values.to_time, lambda s: s.created or None,
          lambda d, s: d["created_at"] is not None and values.to_time(d["created_at"]) in ("", s.created)),
    Field("completed_at", "ended", values.to_time, lambda s: s.ended or None,
          lambda d, s: d["completed_at"] is not None and values.to_time(d["completed_at"]) in ("", s.ended)),
    Field("parent_session", "parent", values.text, lambda s: s.parent,
          lambda d, s: s.parent in ("", d["parent_session"])),
    Field("task", "title", lambda task: mapping.to_line(values.text(task).strip()), _task),
    Field("task", "description", _description, _task),
)  # fmt: skip


# Reading


def read(folder: Path) -> ForeignFolder:
    """Return the sessions below a project, its `.claude-man` or the `sessions` in that; raises NotFoundError if it is
    none of them."""
    source, start, project = files.open_layout(folder, FOLDER, SESSIONS)
    folders = dict.fromkeys(path.removeprefix(start).split("/")[0] for path in source.below(start))
    names = [name for name in folders if any(source.has(f"{start}{name}/{file}") for file in (*_LOG_NAMES, _METADATA))]
    if not names and not start:
        raise NotFoundError(
            f"there are no sessions in {folder}", f"A session is a folder with io.log in {FOLDER}/{SESSIONS}."
        )
    sessions = [_read_session(source, f"{start}{name}", name, str(project or "")) for name in names]
    return ForeignFolder(files.sort_parents_first(sessions), source.files())


def _read_session(source: Folder, at: str, name: str, project: str) -> ForeignSession:
    path = f"{at}/{_METADATA}"
    metadata = source.load_object(path, name)
    own = values.text(metadata, "session_id") or name
    if metadata is not None:
        paths, why = _context_paths(metadata), []  # what does not fit into a session is kept
        if many := len(paths) - len(_paths_on_pad(paths)):
            why.append(f"{humanize.format_count(many, 'context file')} did not fit on the scratchpad: kept")
        if len(values.text(metadata, "task").strip()) > LONGEST_DESCRIPTION:
            why.append(f"its task has more than {LONGEST_DESCRIPTION:,} characters: cut, and kept")
        source.note(path, "imported", "; ".join(why), own)
    groups = _read_groups(source, at, own)
    turns = tuple(map(_parse_turn, groups))
    session = _with_metadata(ForeignSession(own, turns=turns, project=project), metadata or {})
    kept = dict[str, bytes]()
    numbered = enumerate(zip(groups, turns, strict=True), start=1)
    if lines := {str(number): group for number, (group, turn) in numbered if group != [*_log_lines(turn)]}:
        kept[_KEPT_LINES] = files.json_document(lines)
    written, known = _metadata(session), (metadata or {}).items()
    rest = {key: value for key, value in known if key != OWN_KEY and written.get(key) != value}
    if session.parent and session.branch is None:
        rest["parent_session"] = session.parent  # they share no turns, so the import forgets it
    if rest:
        kept[_KEPT_METADATA] = files.json_document(rest)
    source.keep_below(f"{at}/artifacts", f"{SYSTEM}/artifacts/", own, kept)
    for file in (*_LOG_NAMES, _METADATA):
        if (note := source.noted.get(f"{at}/{file}")) and note.outcome == "damaged":
            source.keep(f"{at}/{file}", f"{SYSTEM}/damaged/{file}", own, kept)
    source.keep_below(f"{at}/kept", "", own, kept)
    facts = mapping.facts_at(metadata or {}, "role", "status", "pid", "exit_code", "artifacts_produced")
    if session.state == "interrupted" and _state(facts.get("status")) == "active":
        facts["process"] = "gone"
    return replace(session, kept=kept, facts=facts)


def _with_metadata(session: ForeignSession, metadata: Document) -> ForeignSession:
    session = replace(session, **mapping.read_fields(FIELDS, metadata))
    if session.state == "active" and _is_gone(metadata.get("pid")):
        session = replace(session, state="interrupted")
    times = mapping.turn_times(session.turns)
    created = session.created or (canonical.rfc3339(times[0]) if times else "")
    session = replace(
        session,
        created=created,
        updated=session.ended or (canonical.rfc3339(times[-1]) if times else created),
        labels=tuple(filter(None, [_role(session)])),
    )
    session = mapping.with_own_values(session, metadata.get(OWN_KEY))
    own, time = ids.session_id(agent_id(SYSTEM, session.id)), session.created or canonical.rfc3339(0)
    listed = {entry.text for entry in pads.read_pad(session.pad).of("file")}
    entries = [
        pads.entry_with_line(Entry("", "file", path, time, own))
        for path in _paths_on_pad(_context_paths(metadata))
        if path not in listed
    ]
    known = session.pad.get("files", b"")
    return replace(session, pad={**session.pad, "files": known + canonical.join_lines(entry.line for entry in entries)}
                   if entries else session.pad)  # fmt: skip


def _is_gone(pid: object) -> bool:
    """Return whether no process on this machine has the id; False for what is no id."""
    if type(pid) is int and 0 < pid < 1 << 31:
        try:
            os.kill(pid, 0)
        except OSError as error:
            return isinstance(error, ProcessLookupError)  # else it is another user's
    return False


def _context_paths(metadata: Document) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in values.texts(metadata, "context_files") if path.strip()))


def _paths_on_pad(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if len(path) <= pads.LONGEST)[: pads.MOST]


def _read_groups(source: Folder, at: str, session: str) -> list[list[dict[str, Any]]]:
    """Return the lines of each turn: those before the first input make a turn of their own."""
    path = next((f"{at}/{name}" for name in _LOG_NAMES if source.has(f"{at}/{name}")), "")
    lines = source.load(source.lines, path, session)
    if lines is None:
        return []
    groups, unknown = list[list[dict[str, Any]]](), 0
    for line in lines.values:
        if not _is_input(line) and _read_part(line) is None:
            unknown += 1
        elif _is_input(line) or not groups:
            groups.append([line])
        else:
            groups[-1].append(line)
    why = [lines.why, f"{unknown:,} of its lines are not used" if unknown else ""]
    is_damaged = lines.damaged or unknown
    source.note(
        path, "damaged" if is_damaged else "imported" if groups else "empty", "; ".join(filter(None, why)), session
    )
    return groups


def _is_input(line: Document) -> bool:
    return line.get("direction") == "in" and isinstance(line.get("content"), str)


def _parse_turn(group: Sequence[Document]) -> GivenTurn:
    """Return the turn that lines make."""
    first, time = group[0], values.seconds(group[0], "timestamp")
    prompt = GivenTurn(first["content"], time=time, key=values.text(first, "uuid")) if _is_input(first) else None
    parts = tuple(part for line in (group[1:] if prompt else group) if (part := _read_part(line)))
    return mapping.with_answer(replace(prompt or GivenTurn(NO_INPUT_PROMPT, time=time), parts=parts))


def _read_part(line: Document) -> Part | None:
    """Return what a line says that is not an input, None for an unknown line."""
    path, action, time = values.text(line, "path"), values.text(line, "action"), values.seconds(line, "timestamp")
    if line.get("direction") == "out" and isinstance(line.get("content"), str):
        return Saying(line["content"], time=time)
    if line.get("direction") != "artifact" or not path:
        return None
    tool = "Write" if action in CHANGING_ACTIONS else "artifact"
    return ToolCall(tool, {"file_path": path, "action": action}, id=values.text(line, "id"), time=time)


# Writing


def write(session: ForeignSession) -> Mapping[str, bytes]:
    """Return the files of a session below the project's folder. Of tool calls they have only the artifacts."""
    at = f"{FOLDER}/{SESSIONS}/{files.storable_path(session.id)}"
    original = mapping.kept_object(session, _KEPT_LINES)
    lines = list[Document]()
    for number, turn in enumerate(session.turns, start=1):
        known = values.objects(original, str(number))
        is_same = known and _content(_parse_turn(known)) == _content(turn)
        lines += known if is_same else _log_lines(turn)
    metadata = _metadata(session)
    read_back = _with_metadata(ForeignSession(session.id, turns=session.turns), metadata)
    metadata[OWN_KEY] = mapping.own_values(session, read_back, [] if session.parent else ["parent"])
    out = {
        f"{at}/io.log": b"".join(map(files.json_line, lines)),
        f"{at}/{_METADATA}": files.json_document(metadata),
    }
    for path, data in session.kept.items():
        if path.startswith(f"{SYSTEM}/artifacts/"):
            out[f"{at}/{path.removeprefix(f'{SYSTEM}/')}"] = data
        elif path not in (_KEPT_METADATA, _KEPT_LINES):
            out[f"{at}/kept/{path}"] = data
    return out


def _metadata(session: ForeignSession) -> dict[str, Any]:
    kept = {} if session.inherits else mapping.kept_object(session, _KEPT_METADATA)
    blank = {
        "session_id": session.id, "role": "", "status": "completed", "created_at": None, "completed_at": None,
        "parent_session": None, "task": "",
    }  # fmt: skip
    document = mapping.write_fields(FIELDS, session, {**blank, **kept})
    lists = {
        "context_files": [entry.text for entry in pads.read_pad(session.pad).of("file")],
        "artifacts_produced": [
            path for turn in session.turns for part in turn.parts if (path := _artifact_path(part))
        ],
    }  # fmt: skip
    for key, paths in lists.items():
        known = values.items(kept, key)
        if known or not kept.get(key):
            document[key] = [*known, *(path for path in dict.fromkeys(paths) if path not in known)]
    return document


def _artifact_path(part: Part) -> str:
    """Return the file that a tool call wrote, ``""`` if it wrote none."""
    return values.text(part.input, "file_path") if isinstance(part, ToolCall) and part.name != "Read" else ""


def _content(turn: GivenTurn) -> list[str]:
    """Return what the lines of a turn say, without times, which recording can change, and empty texts."""
    texts = [part.text if isinstance(part, Saying) else _artifact_path(part) for part in mapping.parts_and_answer(turn)]
    return [turn.prompt.strip(), *filter(None, texts)]


def _log_lines(turn: GivenTurn) -> Iterator[dict[str, Any]]:
    if turn.prompt != NO_INPUT_PROMPT or turn.key:
        key = {"uuid": turn.key} if turn.key else {}
        yield {**_timestamp(turn.time), "direction": "in", "content": turn.prompt, **key}
    for part in mapping.parts_and_answer(turn):
        if isinstance(part, Saying):
            yield {**_timestamp(part.time), "direction": "out", "content": part.text}
        elif isinstance(part, ToolCall) and (path := _artifact_path(part)):
            action = values.text(part.input, "action") or ("created" if part.name == "Write" else "modified")
            key = {"id": part.id} if part.id else {}
            yield {**_timestamp(part.time), "direction": "artifact", "path": path, "action": action, **key}


def _timestamp(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"timestamp": canonical.rfc3339(seconds)}
