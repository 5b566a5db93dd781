"""Sessions as a log of what went in and came out: `.claude-man/sessions/<id>/` with `io.log`, `metadata.json` and
`artifacts/`.

A line of the log has a `direction`: `in` opens a turn, `out` is what was said to it, `artifact` a file that was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sessgit.errors import NotFoundError
from sessgit.exchange.layouts import files, own_keys
from sessgit.exchange.layouts.files import DamagedFileError, Folder
from sessgit.exchange.layouts.kept_files import keep_file
from sessgit.model import canonical, humanize, ids
from sessgit.model import pad as pads
from sessgit.model.foreign_session import ForeignFolder, ForeignSession, agent_id
from sessgit.model.pad import Entry
from sessgit.model.program_input import GivenTurn, Part, Saying, ToolCall

SYSTEM = "io-log"
KEPT_FOLDER = "io-log"
FOLDER = ".claude-man"
SESSIONS = "sessions"
NO_INPUT_PROMPT = "(nothing went in before)"
"""The prompt of what came out before anything went in."""
CHANGING_KEYS = ("created", "modified", "updated")
"""What happens to an artifact that the client's own tool would do."""

_LEFTOVERS_PATH = f"{KEPT_FOLDER}/metadata.json"
_LOG_NAMES = ("io.log", "io.log.gz")
_STATE_BY_STATUS = {"active": "active", "running": "active", "completed": "ended", "interrupted": "interrupted",
           "failed": "interrupted", "aborted": "interrupted"}  # fmt: skip
_STATUS_BY_STATE = {"active": "active", "ended": "completed", "interrupted": "interrupted", "archived": "completed"}
_LAYOUT_KEYS = ("created", "ended", "state", "parent")
"""What the metadata say with keys of their own."""
_LONGEST_TITLE = 200
_LONGEST_LABEL = 50
_LONGEST_DESCRIPTION = 2_000


def read(folder: Path) -> ForeignFolder:
    """The sessions below a project, its `.claude-man` or the `sessions` in that; raises NotFoundError where it is
    none of them."""
    source, start, project = _open_source(folder)
    names = dict.fromkeys(path.removeprefix(start).split("/")[0] for path in source.below(start.rstrip("/")))
    is_one = [
        name for name in names if any(source.has(f"{start}{name}/{file}") for file in (*_LOG_NAMES, "metadata.json"))
    ]
    sessions = [_make_session(source, f"{start}{name}", name, project) for name in is_one]
    if not is_one and not start:
        raise NotFoundError(
            f"there are no sessions in {folder}", f"A session is a folder with io.log in {FOLDER}/{SESSIONS}."
        )
    return ForeignFolder(files.sort_parents_first(sessions), source.files())


def write(session: ForeignSession) -> Mapping[str, bytes]:
    """The files of a session below the project's folder. Of what was done only the artifacts are in it."""
    at = f"{FOLDER}/{SESSIONS}/{files.storable_path(session.id)}"
    lines = [line for turn in session.turns for line in _log_lines(turn)]
    out = {f"{at}/io.log": b"".join(files.json_line(line) for line in lines)}
    out[f"{at}/metadata.json"] = files.json_document(_session_metadata(session))
    for path, data in session.kept.items():
        if path.startswith(f"{KEPT_FOLDER}/artifacts/"):
            out[f"{at}/{path.removeprefix(f'{KEPT_FOLDER}/')}"] = data
        elif path != _LEFTOVERS_PATH:
            out[f"{at}/kept/{path}"] = data
    return out


def _open_source(folder: Path) -> tuple[Folder, str, str]:
    """The folder, where in it the sessions are, and the project's folder as far as it is known."""
    root = folder.absolute()
    if (root / FOLDER / SESSIONS).is_dir():
        return files.open_folder(root, FOLDER), f"{FOLDER}/{SESSIONS}/", str(root)
    if (root / SESSIONS).is_dir():
        return files.open_folder(root), f"{SESSIONS}/", str(root.parent) if root.name == FOLDER else ""
    inside = root.name == SESSIONS and root.parent.name == FOLDER
    return files.open_folder(root), "", str(root.parent.parent) if inside else ""


# A session


def _make_session(source: Folder, at: str, name: str, project: str) -> ForeignSession:
    meta = _read_metadata(source, f"{at}/metadata.json", name)
    own = files.text_or_empty(meta.get("session_id")) or name
    if (known := source.noted.get(f"{at}/metadata.json")) is not None:
        why = "; ".join(filter(None, (known.why, *_leftover_keys(meta))))
        source.note(f"{at}/metadata.json", known.outcome, why, own)
    turns = _read_turns(source, at, own)
    session = _with_metadata(replace(ForeignSession(own), turns=turns, project=project), meta)
    kept = dict(session.kept)
    for path in source.below(f"{at}/artifacts"):
        keep_file(source, path, f"{KEPT_FOLDER}/{path.removeprefix(f'{at}/')}", own, kept)
    for path in (f"{at}/{name}" for name in (*_LOG_NAMES, "metadata.json")):
        if path in source.noted and source.noted[path].outcome == "damaged":
            keep_file(source, path, f"{KEPT_FOLDER}/damaged/{path.removeprefix(f'{at}/')}", own, kept)
    for path in source.below(f"{at}/kept"):
        keep_file(source, path, path.removeprefix(f"{at}/kept/"), own, kept)
    return replace(session, kept=kept)


def _read_metadata(source: Folder, path: str, name: str) -> dict[str, Any]:
    if not source.has(path):
        return {}
    try:
        found = source.object(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), name)
        return {}
    source.note(path, "imported", session=name)
    return found


def _with_metadata(session: ForeignSession, meta: Mapping[str, Any]) -> ForeignSession:
    """The session with what its metadata say; what cannot be said of a session here is kept."""
    task, label = files.text_or_empty(meta.get("task")).strip(), _role_label(meta.get("role"))
    title, description = _title_and_description(task)
    times = [time for turn in session.turns for time in (turn.time, turn.ended) if time is not None]
    created = files.format_time(meta.get("created_at")) or (canonical.rfc3339(times[0]) if times else "")
    ended = files.format_time(meta.get("completed_at"))
    out = replace(
        session,
        title=title,
        description=description,
        created=created,
        ended=ended,
        updated=ended or (canonical.rfc3339(times[-1]) if times else created),
        state=_STATE_BY_STATUS.get(files.text_or_empty(meta.get("status")), "ended"),
        parent=files.text_or_empty(meta.get("parent_session")),
        labels=(label,) if label else (),
        unified={"metadata": {"role": label}} if label else {},
    )
    out = own_keys.apply_own_object(out, meta.get(own_keys.KEY), *_LAYOUT_KEYS)
    entries = _files_list(out, _paths_on_pad(_context_paths(meta)))
    if entries:
        out = replace(out, pad={**out.pad, "files": entries})
    known = _session_metadata(out)
    rest = {key: value for key, value in meta.items() if key != own_keys.KEY and known.get(key) != value}
    if out.parent and out.branch is None:
        rest["parent_session"] = out.parent  # it shares no turns: nothing but this says so
    return replace(out, kept={_LEFTOVERS_PATH: files.json_document(rest)}) if rest else out


def _session_role(session: ForeignSession) -> str:
    return files.text_or_empty(files.dict_or_empty(session.unified.get("metadata")).get("role"))


def _role_label(role: object) -> str:
    """A role as a label can be it."""
    said = canonical.printable(files.text_or_empty(role)).replace(",", " ").split()
    return " ".join(said).lower()[:_LONGEST_LABEL].strip(" +-")


def _leftover_keys(meta: Mapping[str, Any]) -> Iterator[str]:
    """What of the metadata has no place here: it is kept."""
    many = len(_context_paths(meta)) - len(_paths_on_pad(_context_paths(meta)))
    if many:
        yield f"{humanize.format_count(many, 'context file')} did not fit on the scratchpad: kept"
    if len(files.text_or_empty(meta.get("task")).strip()) > _LONGEST_DESCRIPTION:
        yield f"its task has more than {_LONGEST_DESCRIPTION:,} characters: cut, and kept"


def _context_paths(meta: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in files.nonempty_texts(meta.get("context_files")) if path.strip()))


def _paths_on_pad(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if len(path) <= pads.LONGEST)[: pads.MOST]


def _files_list(session: ForeignSession, paths: tuple[str, ...]) -> bytes:
    """The list of the files that a session begins with, as entries of its pad."""
    own, known = ids.session_id(agent_id(SYSTEM, session.id)), session.pad.get("files", b"")
    there = {entry.text for entry in pads.read_pad({"files": known}).entries}
    time = session.created or canonical.rfc3339(0)
    made = [pads.entry_with_line(Entry("", "file", path, time, own)) for path in paths]
    return known + pads.join_list(one.line for one in made if one.text not in there)


# Turns


@dataclass
class _OpenTurn:
    """A turn of which more may come."""

    prompt: str
    time: float | None
    key: str = ""
    parts: list[Part] = field(default_factory=list)

    def turn(self) -> GivenTurn:
        """The turn, with what came out last as the answer."""
        last = self.parts[-1] if self.parts else None
        if not isinstance(last, Saying):
            return GivenTurn(self.prompt, tuple(self.parts), time=self.time, key=self.key)
        return GivenTurn(self.prompt, tuple(self.parts[:-1]), last.text, time=self.time, ended=last.time, key=self.key)


def _read_turns(source: Folder, at: str, session: str) -> tuple[GivenTurn, ...]:
    path = next((f"{at}/{name}" for name in _LOG_NAMES if source.has(f"{at}/{name}")), "")
    if not path:
        return ()
    try:
        found = source.lines(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return ()
    turns, unknown = list[_OpenTurn](), 0
    for line in found.values:
        unknown += not _take_line(line, turns)
    odd = f"{unknown:,} of its lines are not used" if unknown else ""
    why = "; ".join(part for part in (found.why, odd) if part)
    damaged = bool(found.damaged or unknown)
    source.note(path, "damaged" if damaged else "imported" if turns else "empty", why, session)
    return tuple(one.turn() for one in turns)


def _take_line(line: Mapping[str, Any], turns: list[_OpenTurn]) -> bool:
    """Adds what a line says; returns whether it says anything."""
    direction, time = line.get("direction"), files.parse_seconds(line.get("timestamp"))
    content, path = line.get("content"), files.text_or_empty(line.get("path"))
    if direction == "in" and isinstance(content, str):
        turns.append(_OpenTurn(content, time, files.text_or_empty(line.get("uuid"))))
        return True
    if (direction != "out" or not isinstance(content, str)) and (direction != "artifact" or not path):
        return False
    if not turns:
        turns.append(_OpenTurn(NO_INPUT_PROMPT, time))
    if direction == "out":
        turns[-1].parts.append(Saying(str(content), time=time))
        return True
    action = files.text_or_empty(line.get("action"))
    call = ToolCall("Write" if action in CHANGING_KEYS else "artifact", {"file_path": path, "action": action})
    turns[-1].parts.append(replace(call, id=files.text_or_empty(line.get("id")), time=time))
    return True


# Out


def _log_lines(turn: GivenTurn) -> Iterator[dict[str, Any]]:
    if turn.prompt != NO_INPUT_PROMPT or turn.key:
        key = {"uuid": turn.key} if turn.key else {}
        yield {**_timestamp(turn.time), "direction": "in", "content": turn.prompt, **key}
    for part in turn.parts:
        match part:
            case Saying(text):
                yield {**_timestamp(part.time), "direction": "out", "content": text}
            case ToolCall(name, given) if (path := files.text_or_empty(given.get("file_path"))) and name != "Read":
                action = files.text_or_empty(given.get("action")) or ("created" if name == "Write" else "modified")
                key = {"id": part.id} if part.id else {}
                yield {**_timestamp(part.time), "direction": "artifact", "path": path, "action": action, **key}
    if turn.answer:
        yield {**_timestamp(turn.ended), "direction": "out", "content": turn.answer}


def _timestamp(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"timestamp": canonical.rfc3339(seconds)}


def _session_metadata(session: ForeignSession) -> dict[str, Any]:
    """The metadata of a session: what the layout has keys for, what was kept of them, and the rest."""
    entries = pads.read_pad({"files": session.pad.get("files", b"")}).entries
    artifacts = [
        str(part.input["file_path"])
        for turn in session.turns
        for part in turn.parts
        if isinstance(part, ToolCall) and part.name != "Read" and files.text_or_empty(part.input.get("file_path"))
    ]
    found: dict[str, Any] = {
        "session_id": session.id,
        "role": _session_role(session).upper(),
        "status": _STATUS_BY_STATE.get(session.state, "completed"),
        "created_at": session.created or None,
        "completed_at": session.ended or None,
        "parent_session": session.parent or None,
        "task": session.description or session.title,
        "context_files": [entry.text for entry in entries],
        "artifacts_produced": list(dict.fromkeys(artifacts)),
    }
    rest = _kept_metadata(session)
    found |= {key: value for key, value in rest.items() if _is_metadata_current(session, key, value)}
    if "context_files" in rest:  # those that had no room on the pad, and those that came since
        found["context_files"] = [*dict.fromkeys((*_context_paths(rest), *(entry.text for entry in entries)))]
    more = {"updated": session.updated, **own_keys.own_object(session, *_LAYOUT_KEYS, "title", "description")}
    if _title_and_description(session.description or session.title) != (session.title, session.description):
        more |= {"title": session.title, "description": session.description}
    return {**found, own_keys.KEY: more}


def _title_and_description(task: str) -> tuple[str, str]:
    """The title that a task is, and the description, where it says more than that."""
    title = canonical.one_line(task, _LONGEST_TITLE)
    short = task if len(task) <= _LONGEST_DESCRIPTION else f"{task[: _LONGEST_DESCRIPTION - 1].rstrip()}…"
    return title, short if task != title else ""


def _is_metadata_current(session: ForeignSession, key: str, value: object) -> bool:
    """Whether what was kept of the metadata still says what the session does, in other words."""
    match key:
        case "status":
            return _STATE_BY_STATUS.get(files.text_or_empty(value), "ended") == session.state
        case "role":
            return _role_label(value) == _session_role(session)
        case "parent_session":
            return not session.parent or session.parent == value
        case "created_at":
            return files.format_time(value) in ("", session.created)
        case "completed_at":
            return files.format_time(value) in ("", session.ended)
        case "task":
            return _title_and_description(files.text_or_empty(value).strip()) == (session.title, session.description)
    return True


def _kept_metadata(session: ForeignSession) -> Mapping[str, Any]:
    """What an import kept of the metadata."""
    try:
        return files.dict_or_empty(files.parse_json(session.kept.get(_LEFTOVERS_PATH, b"{}")))
    except DamagedFileError:
        return {}
