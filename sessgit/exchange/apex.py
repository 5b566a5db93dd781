"""The layout of apex: a file for each session below `.apex/sessions/`, an index, the active session, and an archive."""

from __future__ import annotations

import gzip
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from sessgit.errors import NotFoundError
from sessgit.exchange import files, mapping, values
from sessgit.exchange.files import DamagedFileError, Folder, SessionFile
from sessgit.exchange.mapping import OWN_KEY, Field
from sessgit.exchange.values import Document
from sessgit.model import canonical, humanize
from sessgit.model.foreign_session import ForeignFolder, ForeignSession, agent_id, clean_description, clean_label
from sessgit.model.frozen import frozen
from sessgit.model.program_input import GivenTurn, Part, Reason, Saying, Step, ToolCall

SYSTEM = "apex"
FOLDER = ".apex/sessions"
VERSION = 1
"""The latest known version of the index."""
INDEX, ACTIVE = "index.json", "active.json"
KEPT_PATH, KEPT_ACTIVE = f"{SYSTEM}/session.json", f"{SYSTEM}/{ACTIVE}"
_TIME_KEYS = ("createdAt", "updatedAt", "lastAccessedAt")
_INDEX_KEYS = ("id", "name", "projectPath", *_TIME_KEYS, "messageCount", "totalCost", "tags", "archived")
_CHILDREN, _PARENT = "childSessionIds", "parentSessionId"
_INDEX_OWN_KEYS = {"version", "sessions", "lastUpdated"}
_LONGEST_NAME = 100
_MOST_LABELS = 50


def _name(value: object) -> str:
    return mapping.to_line(value, _LONGEST_NAME)


def _is_same_name(one: str, other: str) -> bool:
    """Return whether two names are equal, apart from characters that a name here cannot have."""
    return one.replace("/", "-").replace("@", " ").strip() == other.replace("/", "-").replace("@", " ").strip()


def _labels(value: object) -> tuple[str, ...]:
    return tuple(sorted({label for label in map(clean_label, values.texts(value)) if label}))[:_MOST_LABELS]


FIELDS = (
    Field("name", "name", _name, lambda s: s.name or s.title or None,
          lambda d, s: _is_same_name(_name(d.get("name")), s.name or s.title)),
    Field("description", "description", lambda value: clean_description(values.text(value)),
          lambda s: s.description or None),
    Field("projectPath", "project", values.text, lambda s: s.project, lambda d, s: s.project == _project(d)),
    Field("tags", "labels", _labels, lambda s: list(s.labels) or None),
    Field(_PARENT, "parent", values.text, lambda s: s.parent or None, lambda d, s: True),
    Field("createdAt", "created", values.to_time, lambda s: s.created, lambda d, s: True),
    Field("updatedAt", "updated", values.to_time, lambda s: s.updated, lambda d, s: True),
)  # fmt: skip
"""The last three change only with the session's turns: see `_document`."""


def _project(document: Document) -> str:
    return values.text(document, "projectPath", "state.workingDirectory")


def _with_document(session: ForeignSession, document: Document) -> ForeignSession:
    return replace(session, **{**mapping.read_fields(FIELDS, document), "project": _project(document)})


# Reading


def read(folder: Path) -> ForeignFolder:
    """Return the sessions below a project, its `.apex`, or the folder of the sessions; raises NotFoundError if it is
    none of them."""
    source, base, _ = files.open_layout(folder, *FOLDER.split("/"))
    index = source.load_object(base + INDEX) or {}
    version = index.get("version", VERSION)
    if type(version) is int and version > VERSION:
        for path in source.below(base):
            source.note(path, "left", f"the index has version {version}, but {VERSION} is the latest known version")
        return ForeignFolder((), source.files())
    if not base and not source.has(INDEX) and not source.names("*.json") and not source.below("archive"):
        raise NotFoundError(f"there are no sessions in {folder}", "A session is a file in .apex/sessions.")
    documents = {file.id: file for file in files.without_duplicates(source, SYSTEM, _session_files(source, base))}
    active, reference = _active_session(source, base + ACTIVE, documents)
    entries = {values.text(entry, "id"): entry for entry in values.objects(index, "sessions")}
    sessions, parsed = dict[str, ForeignSession](), dict[str, ParsedMessages]()
    parents = [ForeignSession(id, parent=values.text(one.document, _PARENT)) for id, one in documents.items()]
    for one in files.sort_parents_first(parents):
        file = documents[one.id]
        session, messages = _read_session(file, documents, sessions, parsed)
        if not file.document["messages"] and not session.name:
            source.note(file.path, "empty", "it has no messages", file.id)
            continue
        kept = dict[str, bytes]()
        source.keep_below(f"{base}kept/{file.id}", "", file.id, kept)
        if not _is_own_export(session, file):
            kept[KEPT_PATH] = files.json_document(_rest(file, session, messages, entries.get(file.id, {})))
        if active == file.id:
            session, kept[KEPT_ACTIVE] = replace(session, state="active"), reference
        facts = _facts(file.document)
        sessions[file.id], parsed[file.id] = replace(session, kept=kept, facts=facts), messages
        odd = sum(not isinstance(message, dict) for message in file.document["messages"])
        objects = "is not an object" if odd == 1 else "are not objects"
        source.note(
            file.path, "imported", f"{humanize.format_count(odd, 'message')} of it {objects}" if odd else "", file.id
        )
    if source.has(base + INDEX):
        missing, more = sum(id not in documents for id in entries), sorted(index.keys() - _INDEX_OWN_KEYS)
        why = [f"it names {humanize.format_count(missing, 'session')} without a readable file"] if missing else []
        why += ["version is not a whole number, so an export writes 1"] if type(version) is not int else []
        why += [f"not imported, because they belong to no session: {', '.join(more)}"] if more else []
        source.note(base + INDEX, "imported", "; ".join(why))
    return ForeignFolder(tuple(sessions.values()), source.files())


def _is_own_export(session: ForeignSession, file: SessionFile) -> bool:
    """Return whether an export here made the file: all of it but the cost follows from the session."""
    session = replace(session, children=values.texts(file.document, _CHILDREN))
    made = _document(session, file.id, {}, is_same=False)
    made["state"] |= {key: value for key, value in values.mapping(file.document, "state").items() if key == "totalCost"}
    return OWN_KEY in file.document and made == file.document


def _facts(document: Document) -> dict[str, Any]:
    tokens = sum(_tokens([document], "state.totalTokens").values())
    cost = values.to_number(values.value_at(document, "state.totalCost"))
    state = ("currentTaskId", "tasksCreated", "tasksCompleted", "lastGitBranch")
    more = (*(f"state.{key}" for key in state), "lastAccessedAt")
    totals = {"tokens": tokens, "cost_usd": cost} | {
        f"{key}s": [*dict.fromkeys(filter(None, (values.text(one, key) for one in document["messages"])))]
        for key in ("agent", "stage", "taskId")
    }
    return {key: value for key, value in totals.items() if value} | mapping.facts_at(document, *more)


def _session_files(source: Folder, base: str) -> list[SessionFile]:
    out = list[SessionFile]()
    for pattern in ("*.json", "archive/*.json.gz", "archive/*.json"):
        for path in source.names(base + pattern):
            name = path.rpartition("/")[2].removesuffix(".gz").removesuffix(".json")
            if path.removeprefix(base) in (INDEX, ACTIVE):
                continue
            if document := source.load_object(path, check=partial(_check_document, name)):
                out.append(SessionFile(path, name, document, archived=pattern.startswith("archive/")))
    return out


def _check_document(name: str, document: Document) -> None:
    """Raise DamagedFileError if the document is not a session of that name."""
    own = document.get("id")
    if not isinstance(own, str) or not isinstance(document.get("messages"), list):
        raise DamagedFileError("it is not a session: it has no id or no messages")
    if own != name:
        shown = files.printable_path(canonical.one_line(own, 60))
        raise DamagedFileError(f"it says that it is session {shown}, and its name does not")
    if not mapping.ID.fullmatch(own):
        raise DamagedFileError("its id cannot be one")


def _active_session(source: Folder, path: str, documents: Mapping[str, SessionFile]) -> tuple[str, bytes]:
    """Return the id of the active session, and the file that names it."""
    data = source.load(source.data, path) or b""
    value = source.load(lambda _: files.parse_json(data), path)
    if not source.has(path) or path in source.noted:  # it is damaged
        return "", b""
    id = value if isinstance(value, str) else values.text(value, "sessionId", "activeSessionId", "id", "session")
    if id not in documents:
        source.note(path, "left", "it names no readable session")
        return "", b""
    source.note(path, "imported", session=id)
    return id, data


def _read_session(
    file: SessionFile, documents: Mapping[str, SessionFile], sessions: Mapping[str, ForeignSession],
    parsed: Mapping[str, ParsedMessages],
) -> tuple[ForeignSession, ParsedMessages]:  # fmt: skip
    """Return the session of a file, without kept files, and its messages; `sessions` and `parsed` have those before."""
    document = file.document
    session = _with_document(ForeignSession(file.id, archived=file.archived), document)
    opening = session.name or canonical.one_line(session.description, _LONGEST_NAME) or f"Session {file.id}"
    messages = parse_messages(document["messages"], file.id, opening)
    # A session in a circle of parents, or whose parent has no messages, begins by itself.
    parent = session.parent if session.parent in sessions or session.parent not in documents else ""
    shared = _shared_turns(messages, parsed.get(parent), document.get("branchPoint")) if parent else None
    keys = [turn.key for turn in parsed[parent].turns] if parent in parsed else _shared_keys(document)
    same = [replace(turn, key=key) for turn, key in zip(messages.turns[: shared or 0], keys, strict=False)]
    messages = replace(messages, turns=(*same, *messages.turns[len(same) :]))
    theirs = sessions[parent].turns[: shared or 0] if parent in sessions else ()
    start = canonical.seconds(session.created or session.updated)
    own = [replace(turn, time=start) if turn.time is None else turn for turn in messages.turns[len(theirs) :]]
    session = mapping.with_own_values(
        replace(session, parent=parent, branch=shared, turns=(*theirs, *own)), document.get(OWN_KEY)
    )
    return replace(session, state=session.state.replace("active", "ended")), messages


def _shared_turns(messages: ParsedMessages, parent: ParsedMessages | None, point: object) -> int:
    """Return how many turns a session shares with its parent: those that end before the message of the branch."""
    last = point if type(point) is int else max(messages.ends, default=0)
    own = [turn for turn, end in zip(messages.turns, messages.ends, strict=True) if end <= last]
    if parent is None:
        return len(own) if type(point) is int else 0
    pairs = zip(own, parent.turns, strict=False)
    different = (n for n, (turn, other) in enumerate(pairs) if turn != replace(other, key=turn.key))
    return next(different, min(len(own), len(parent.turns)))


def _shared_keys(document: Document) -> list[str]:
    """Return the keys that an export noted of the turns shared with the parent."""
    keys = values.texts(document, f"{OWN_KEY}.keys")
    try:
        return [str(uuid.UUID(key)) for key in keys] if len(set(keys)) == len(keys) else []
    except ValueError:
        return []


def _rest(file: SessionFile, session: ForeignSession, messages: ParsedMessages, entry: Document) -> dict[str, Any]:
    """Return what the file and the entry of the index say and the session does not."""
    ours = values.mapping(file.document, OWN_KEY)
    own = {key: value for key, value in ours.items() if key not in ("keys", "children")}
    document = {**file.document, "messages": [], OWN_KEY: own}
    if (added := values.texts(ours, "children")) and isinstance(listed := document.get(_CHILDREN), list):
        document[_CHILDREN] = [one for one in listed if one not in added] or None
        document = {key: value for key, value in document.items() if key != _CHILDREN or value}
    made = _index_entry(file.document, archived=file.archived)
    # Counts that differ are out of date.
    counted = {key for key, kind in (("messageCount", int), ("archived", bool)) if type(entry.get(key)) is kind}
    return {
        "session": {key: value for key, value in document.items() if key != OWN_KEY or value},
        "branch": session.branch,
        "entry": {key: value for key, value in entry.items() if made.get(key) != value and key not in counted},
        "messages": json.loads(canonical.dumps(messages.original)),
    }


def _index_entry(document: Document, *, archived: bool) -> dict[str, Any]:
    """Return the entry of the index that follows from the document of a session."""
    entry = {
        **{key: document.get(key) for key in _INDEX_KEYS},
        "messageCount": len(document["messages"]),
        "totalCost": values.mapping(document, "state").get("totalCost"),
        "archived": archived,
    }
    return {key: value for key, value in entry.items() if value not in (None, "")}


# Writing


def write(session: ForeignSession) -> Mapping[str, bytes]:
    """Return the files of the session below a project's folder: its own, and an index with only this session."""
    rest = mapping.kept_object(session, KEPT_PATH)
    own, is_same = mapping.source_id(SYSTEM, session, values.text(rest, "session.id"))
    if f"{own}.json" in (INDEX, ACTIVE):
        own = agent_id(SYSTEM, own)
    document = _document(session, own, rest, is_same=is_same)
    data = files.json_document(document)
    out = {f"archive/{own}.json.gz": gzip.compress(data, mtime=0)} if session.archived else {f"{own}.json": data}
    was, theirs = values.mapping(rest, "session"), values.mapping(rest, "entry")
    made = _index_entry(document, archived=session.archived)
    still = {key: value for key, value in theirs.items() if key not in made or document.get(key) == was.get(key)}
    entry = {"totalCost": 0, **made, **still}
    index = {"version": VERSION, "sessions": [entry], "lastUpdated": document.get("updatedAt")}
    out[INDEX] = files.json_document(index)
    if session.state == "active" and not session.archived:
        reference = session.kept.get(KEPT_ACTIVE, b"") if is_same else b""
        out[ACTIVE] = reference or files.json_document({"sessionId": own})
    out |= {f"kept/{own}/{path}": data for path, data in session.kept.items() if path not in (KEPT_PATH, KEPT_ACTIVE)}
    return {f"{FOLDER}/{name}": content for name, content in sorted(out.items())}


def _document(session: ForeignSession, own: str, rest: Document, *, is_same: bool) -> dict[str, Any]:
    """Return the session's document: as it was, apart from what has changed since the import.

    `is_same` is False for a session that apex does not have, such as a fork of one that came from there.
    """
    was = values.mapping(rest, "session")
    original = {key: value for key, value in was.items() if is_same or key not in (_CHILDREN, *_TIME_KEYS)}
    document = mapping.write_fields(FIELDS, session, original | {"projectPath": original.get("projectPath", "")})
    noted = values.mapping(rest, "messages")
    new = [turn for turn in session.turns if turn.key not in values.mapping(noted, "turns")]
    document |= {"id": own, "messages": format_messages(session.turns, noted)}
    document |= _branch_values(session, was, rest, document["messages"], is_same=is_same)
    known = values.items(document, _CHILDREN)
    children = [id for one in session.children if (id := mapping.file_id(SYSTEM, one)) not in known]
    if children:
        document[_CHILDREN] = [*known, *children]
    if not is_same or new:
        times = mapping.turn_times(session.turns)
        created = session.created or canonical.rfc3339(min(times, default=0))
        updated = max(session.updated, canonical.rfc3339(max(times, default=0)), created)
        created = was.get("createdAt", created) if is_same else created
        document |= {"createdAt": created, "updatedAt": updated, "lastAccessedAt": updated}
    if not is_same:
        document["state"] = _recalculated_state(session, values.mapping(was, "state"), document["messages"])
        document["inputHistory"] = [turn.prompt for turn in session.turns]
    else:
        if new or "state" not in was:
            state = values.mapping(was, "state")
            used = _tokens([turn.tokens for turn in new], "")
            total = {kind: number + used[kind] for kind, number in _tokens([state], "totalTokens").items()}
            before = values.to_number(state.get("totalCost")) or 0
            more = sum(session.costs.get(turn.key, 0) for turn in new)
            document["state"] = {
                "totalTokens": total, "totalCost": 0, "tasksCreated": [], "tasksCompleted": [], **state,
                **({"totalTokens": total} if any(used.values()) else {}), **(_cost(before + more) if more else {}),
            }  # fmt: skip
        if new or "inputHistory" not in was:
            document["inputHistory"] = [*values.items(was, "inputHistory"), *(turn.prompt for turn in new)]
    read_back = replace(
        _with_document(ForeignSession(session.id, archived=session.archived, branch=session.branch), document),
        parent=session.parent, created=session.created, updated=session.updated,
        state=session.state if session.state == "active" else "ended",
    )  # fmt: skip
    is_implied = is_same and not values.mapping(was, OWN_KEY)
    omit = ["ended"] if is_implied else []
    if is_implied and _is_same_name(session.name or session.title, read_back.name):
        omit += ["name", "title"]
    keys = [turn.key for turn in session.turns[: session.branch or 0] if session.parent]
    document[OWN_KEY] = {
        **mapping.own_values(session, read_back, omit),
        **values.present({"keys": keys, "children": children}),
    } or None  # fmt: skip
    return {
        key: value
        for key, value in document.items()
        if value is not None or (is_same and key in was and key != OWN_KEY)
    }


def _branch_values(
    session: ForeignSession, was: Document, rest: Document, messages: Sequence[Any], *, is_same: bool
) -> dict[str, Any]:
    """Return the parent and the message of the branch, if they are not those of the original document. A fork within a
    turn left at the last of its `messages` that the parent has."""
    before = values.text(was, _PARENT)
    is_known = bool(before) and agent_id(SYSTEM, before) == agent_id(SYSTEM, session.parent)
    if is_same and (not session.parent or (is_known and (session.branch or 0) == (rest.get("branch") or 0))):
        return {}
    shared = session.turns[: session.branch or 0] if session.parent else ()
    noted = values.mapping(rest, "messages")
    point = len(format_messages(shared, noted)) - 1 if shared else -1
    if session.parent and not is_same:
        groups = values.mapping(noted, "turns").values()
        theirs = [one for group in groups for one in values.items(group)]
        known = [*values.items(noted, "before"), *theirs]
        left = next((n for n, message in enumerate(messages) if message not in known), len(messages))
        point = max(point, left - 1 if any(one in theirs for one in messages[:left]) else -1)
    parent = before if is_known else session.parent or None
    return {_PARENT: parent, "branchPoint": None if point < 0 else point}


def _recalculated_state(session: ForeignSession, was: Document, messages: Sequence[Any]) -> dict[str, Any]:
    """Return the state that follows from the messages of a session that apex does not have; `was` is that of the one
    from which it was forked."""
    total = _tokens(messages, "tokens")
    priced = [turn for turn in session.turns if turn.key in session.costs]
    known = sum(session.costs[turn.key] for turn in priced)
    tasks = [*dict.fromkeys(filter(None, (values.text(one, "taskId") for one in messages)))]
    theirs = sum(_tokens([was], "totalTokens").values())
    rate = (values.to_number(was.get("totalCost")) or 0) / theirs if theirs else 0
    others = sum(total.values()) - sum(_tokens([turn.tokens for turn in priced], "").values())
    return {
        **{key: value for key, value in was.items() if key != "currentTaskId" or value in tasks},
        "totalTokens": total, **_cost(known + rate * max(0, others)), "tasksCreated": tasks,
        "tasksCompleted": [one for one in values.texts(was, "tasksCompleted") if one in tasks],
    }  # fmt: skip


def _tokens(documents: Sequence[object], path: str) -> dict[str, int]:
    """Return the sums of the tokens at a path of each document, by kind."""
    return {kind: sum(values.count(values.value_at(one, path), kind) for one in documents) for kind in _TOKEN_KINDS}


def _cost(dollars: float) -> dict[str, float]:
    return {"totalCost": round(dollars, 6) or 0}


def merge_documents(path: str, there: bytes, more: bytes) -> bytes | None:
    """Return one document with the sessions of two, if sessions share the file at `path`; None if they do not, or one
    of the documents is damaged."""
    if path == f"{FOLDER}/{ACTIVE}":
        return there
    try:
        one, other = (files.parse_json(data) for data in (there, more)) if path == f"{FOLDER}/{INDEX}" else ({}, None)
    except DamagedFileError:
        return None
    if not isinstance(one, dict) or not isinstance(other, dict) or one.get("version") != other.get("version"):
        return None
    entries = {str(entry.get("id")): entry for both in (one, other) for entry in values.objects(both, "sessions")}
    last = max(values.text(one, "lastUpdated"), values.text(other, "lastUpdated"))
    merged = {**one, "sessions": list(entries.values()), **({"lastUpdated": last} if last else {})}
    return there if merged == one else files.json_document(merged)


NAMELESS = "apex"
"""The model of messages that used tokens and name no model."""
_NAMESPACE = uuid.UUID("0f4f8c5c-64d5-5b0c-8f0e-9a2f3f2b9d10")
_LONGEST_MODEL = 100
_TOKEN_KINDS = ("input", "output")
_BETWEEN = "\n\n"
"""Separates the texts of a new turn in its message."""

Message = dict[str, Any]


@frozen
class ParsedMessages:
    """The turns that messages make, and the index of the last message of each.

    `before` are messages before the first turn; `groups` has the messages of each turn.
    """

    turns: tuple[GivenTurn, ...]
    ends: tuple[int, ...]
    groups: tuple[Sequence[Any], ...]
    before: list[Any]

    @property
    def original(self) -> dict[str, Any]:
        """The messages, by the keys of their turns."""
        return {"before": self.before, "turns": {t.key: g for t, g in zip(self.turns, self.groups, strict=True)}}


# Reading


def parse_messages(messages: Sequence[Any], session: str, opening: str) -> ParsedMessages:
    """Return the turns of the messages of a session; `opening` is the prompt of messages before the first prompt."""
    turns, ends, groups, before, keys = list[GivenTurn](), list[int](), list[Sequence[Any]](), list[Any](), set[str]()
    starts = sorted({0, *(n for n, message in enumerate(messages) if _is_prompt(message)), len(messages)})
    for start, end in pairwise(starts):
        group = messages[start:end]
        turn = _parse_turn(group, opening)
        if turn is None:
            before += group
            continue
        key = _turn_key(group[0], session, start, keys)
        keys.add(key)
        turns.append(replace(turn, key=key))
        ends.append(end - 1)
        groups.append(group)
    return ParsedMessages(tuple(turns), tuple(ends), tuple(groups), before)


def _is_prompt(message: Any) -> bool:
    return values.text(message, "role") == "user" and bool(_message_text(message).strip())


def _parse_turn(group: Sequence[Any], opening: str) -> GivenTurn | None:
    """Return the turn that messages make, None if they have nothing for it."""
    prompt = _message_text(group[0]) if _is_prompt(group[0]) else ""
    parts, answers = _message_calls(group[0]) if prompt else [], list[Message]()
    for message in group[1:] if prompt else group:
        role, text = values.text(message, "role"), _message_text(message)
        calls, time = _message_calls(message), values.seconds(message, "timestamp")
        if role not in ("assistant", "tool") or not (text.strip() or calls):
            continue
        answers.append(message)
        if role == "tool" and not calls:
            tool = values.text(message, "metadata.toolName", "metadata.tool", "name") or "tool"
            parts.append(ToolCall(mapping.tool_name(tool), output=text, time=time))
            continue
        said = [Saying(text, _message_model(message), time)] if text.strip() else []
        parts += _in_order(message, calls) or [*calls, *said]
    if not (prompt or (opening and answers)):
        return None
    used = _tokens(group, "tokens")
    model = _message_model(answers[-1]) if answers else ""
    first = group[0] if prompt else answers[0]
    turn = GivenTurn(prompt or opening, tuple(parts), time=values.seconds(first, "timestamp"))
    return replace(
        mapping.with_answer(turn),
        model=model or (NAMELESS if any(used.values()) else ""),
        ended=values.seconds(answers[-1], "timestamp") if answers else None,
        tokens={kind: number for kind, number in used.items() if number},
    )


def _message_text(message: Any) -> str:
    """Return the text of a message, followed by its code blocks that the text lacks."""
    text = values.text(message, "content")
    for block in values.objects(message, "codeBlocks"):
        code = values.text(block, "code")
        if code.strip() and code.strip() not in text:
            name, language = (canonical.one_line(values.text(block, key), 200) for key in ("filename", "language"))
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            head = f"**{name}**\n" if name else ""
            text = f"{text}\n\n{head}{fence}{language}\n{code.removesuffix(chr(10))}\n{fence}".lstrip("\n")
    return text


def _message_calls(message: Any) -> list[Part]:
    """Return the calls of a message, none if one of them is invalid."""
    calls = values.items(message, "toolCalls")
    if not all(isinstance(values.value_at(call, "toolName"), str) for call in calls):
        return []
    time = values.seconds(message, "timestamp")
    return [
        ToolCall(
            mapping.tool_name(call["toolName"]),
            values.mapping(call, "input"),
            _output_text(call.get("output")),
            call.get("status") == "error",
            time=time,
        )
        for call in calls
    ]


def _in_order(message: Any, calls: Sequence[Part]) -> list[Part]:
    """Return the calls and the texts of a message in the order that an export noted, none if it noted none."""
    notes, text, waiting = values.objects(message, f"{OWN_KEY}.parts"), values.text(message, "content"), [*calls]
    model, out = _message_model(message), list[Part]()
    for note in notes:
        time, length = values.seconds(note, "timestamp"), note.get("length")
        if type(length) is int and 0 < length <= len(text):
            out.append(Saying(text[:length], mapping.to_line(note.get("model", model), _LONGEST_MODEL), time))
            text = text[length:].removeprefix(_BETWEEN)
        elif length is None and waiting and isinstance(call := waiting.pop(0), ToolCall):
            out.append(replace(call, time=time))
        else:
            return []  # the system has changed the message
    return [] if text or waiting else out


def _order(parts: Sequence[Part], model: str) -> list[dict[str, Any]]:
    """Return what `_in_order` needs to know of parts; `model` is that of the message."""
    return [
        ({} if (time := _part_time(part)) is None else {"timestamp": _timestamp(time)})
        | ({} if _is_call(part) else {"length": len(_part_text(part))})
        | ({"model": part.model} if isinstance(part, Saying) and part.model != model else {})
        for part in parts
    ]  # fmt: skip


def _output_text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _message_model(message: Message) -> str:
    return canonical.one_line(values.text(message, "metadata.model"), _LONGEST_MODEL)


def _turn_key(message: Any, session: str, index: int, taken: set[str]) -> str:
    """Return the key of the turn that a message opens: its own id if that is a uuid and not taken."""
    own = values.text(message, "id") if _is_prompt(message) else ""
    with suppress(ValueError):
        if (key := str(uuid.UUID(own))) not in taken:
            return key
    return _stable_uuid(session, str(index), own)


def _stable_uuid(*words: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join(words).encode("utf-8", "surrogatepass").hex()))


# Writing


def format_messages(turns: Sequence[GivenTurn], original: Document) -> list[Any]:
    """Return the messages of the turns: the original ones of a turn if they still say the same, or the first ones of
    them that do, for a fork within the turn."""
    out, groups = list(values.items(original, "before")), values.mapping(original, "turns")
    for turn in turns:
        group, said = values.items(groups.get(turn.key)), _content(turn)
        firsts = (group[:count] for count in range(len(group), 0, -1))
        same = next((one for one in firsts if (read := _parse_turn(one, turn.prompt)) and _content(read) == said), None)
        new = same or [{**message, "index": n} for n, message in enumerate(_new_messages(turn), start=len(out))]
        out += new
    return out


def _content(turn: GivenTurn) -> list[Any]:
    """Return what a turn says, without times and models, which recording can change."""
    texts = [part.output if isinstance(part, ToolCall) else _part_text(part) for part in mapping.parts_and_answer(turn)]
    return [turn.prompt.strip(), *texts]


def _part_text(part: Part) -> str:
    return part.text if isinstance(part, Saying | Reason) else ""


def _new_messages(turn: GivenTurn) -> list[Message]:
    """Return the messages of a new turn: the prompt, and one with all calls and texts; their order, if it is not calls
    before one text, is noted."""
    parts = mapping.parts_and_answer(turn)
    out = [_make_message(turn, 0, "user", turn.prompt, turn.time)]
    if parts:
        times = [turn.ended, *(_part_time(part) for part in reversed(parts)), turn.time]
        said = _BETWEEN.join(_part_text(part) for part in parts if not _is_call(part))
        answer = _make_message(turn, 1, "assistant", said, next((time for time in times if time is not None), None))
        calls = [_call_record(part) for part in parts if _is_call(part)]
        model = {"metadata": {"model": turn.model}} if turn.model else {}
        out.append({**answer, **({"toolCalls": calls} if calls else {}), **model})
        order = _order(parts, turn.model)
        read_back = _parse_turn(out, turn.prompt)
        if read_back is None or _order(mapping.parts_and_answer(read_back), turn.model) != order:
            out[-1][OWN_KEY] = {"parts": order}
    used = _tokens([turn.tokens], "")
    if any(used.values()):
        out[-1]["tokens"] = used
    return out


def _is_call(part: Part) -> TypeGuard[ToolCall | Step]:
    return isinstance(part, ToolCall | Step)


def _part_time(part: Part) -> float | None:
    return part.task.created if isinstance(part, Step) else part.time


def _make_message(turn: GivenTurn, number: int, role: str, text: str, time: float | None) -> Message:
    id = turn.key if not number and turn.key else _stable_uuid("message", turn.key, str(number))
    when = {} if time is None else {"timestamp": _timestamp(time)}
    return {"id": id, "index": 0, "role": role, "content": text, **when}


def _timestamp(time: float) -> str:
    return canonical.rfc3339(round(time * 1000) / 1000 + 0.0005)


def _call_record(call: ToolCall | Step) -> Message:
    """Return a tool call, or a cell of a program, as a record of a call."""
    if isinstance(call, ToolCall):
        status = "error" if call.is_error else "success"
        return {"toolName": call.name, "input": dict(call.input), "output": call.output, "status": status}
    task, outcome = call.task, call.outcome
    record: Message = {"toolName": task.operation, "input": dict(task.args)}
    if outcome is not None:
        record["output"] = outcome.error if outcome.error is not None else _output_text(outcome.result)
        if outcome.execution_time_ms is not None:
            record["duration"] = outcome.execution_time_ms
    return {**record, "status": "success" if outcome is not None and outcome.ok else "error"}
