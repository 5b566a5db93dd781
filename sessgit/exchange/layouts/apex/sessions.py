"""Sessions of apex, a file each below `.apex/sessions/`, with an index, the one that is active, and an archive."""

from __future__ import annotations

import gzip
import io
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessgit.errors import NotFoundError
from sessgit.exchange.layouts import files, own_keys
from sessgit.exchange.layouts.apex import listing, messages
from sessgit.exchange.layouts.apex.listing import ACTIVE, ID, INDEX, SYSTEM, VERSION, SessionContext, SessionFile
from sessgit.exchange.layouts.apex.messages import ParsedMessages
from sessgit.exchange.layouts.files import DamagedFileError
from sessgit.model import canonical, humanize
from sessgit.model.foreign_session import ForeignFolder, ForeignSession, agent_id
from sessgit.model.program_input import GivenTurn

KEPT_PATH = "apex/session.json"
KEPT_ACTIVE = "apex/active.json"
_TIME_KEYS = ("createdAt", "updatedAt", "lastAccessedAt")
_ENTRY_KEYS = ("id", "name", "projectPath", *_TIME_KEYS, "messageCount", "totalCost", "tags", "archived")
_LAYOUT_KEYS = ("name", "description", "project", "created", "updated", "labels", "parent", "branch", "archived")
"""What a session says with keys of its own."""
_LONGEST_NAME, _LONGEST_DESCRIPTION, _LONGEST_LABEL, _MOST_LABELS = 100, 2_000, 50, 50


# Reading


def read(folder: Path) -> ForeignFolder:
    """The sessions below a project's folder, its `.apex`, or the folder of the sessions itself; raises NotFoundError
    where it is none of them."""
    opened = files.open_folder(folder, ".apex")
    base = next((at for at in (".apex/sessions/", "sessions/") if opened.below(at.rstrip("/"))), "")
    known = listing.read_index(opened, base)
    if known is None:
        return ForeignFolder((), opened.files())
    if not base and not opened.has(INDEX) and not opened.names("*.json") and not opened.below("archive"):
        raise NotFoundError(f"there are no sessions in {folder}", "A session is a file in .apex/sessions.")
    held = listing.without_duplicates(opened, listing.read_session_files(opened, base))
    ids = frozenset(one.id for one in held)
    around = SessionContext(ids, known, *listing.active_session(opened, base + ACTIVE, ids))
    sessions, told = dict[str, ForeignSession](), dict[str, ParsedMessages]()
    for one in listing.sort_parents_first(held):
        found, own = _make_session(one, sessions, told, around)
        if not one.document["messages"] and not found.name:
            opened.note(one.path, "empty", "it has no messages", one.id)
            continue
        others = listing.exported_files(opened, f"{base}kept/{one.id}/", one.id)
        sessions[one.id], told[one.id] = replace(found, kept={**others, **found.kept}), own
        odd = sum(not isinstance(message, dict) for message in one.document["messages"])
        why = (
            f"{humanize.format_count(odd, 'message')} of it {'is not an object' if odd == 1 else 'are not objects'}"
            if odd
            else ""
        )
        opened.note(one.path, "imported", why, one.id)
    listing.note_index(opened, base + INDEX, known, ids)
    return ForeignFolder(tuple(sessions.values()), opened.files())


def _make_session(
    one: SessionFile, sessions: Mapping[str, ForeignSession], told: Mapping[str, ParsedMessages], around: SessionContext
) -> tuple[ForeignSession, ParsedMessages]:
    document = one.document
    facts = _session_metadata(document)
    opening = facts.name or canonical.one_line(facts.description, _LONGEST_NAME) or f"Session {one.id}"
    found = messages.parse_messages(document["messages"], one.id, opening)
    # Who goes round in a circle, or left a session without messages, begins by itself.
    parent = facts.parent if facts.parent in sessions or facts.parent not in around.held else ""
    shared = _count_shared(found, told.get(parent), document.get("branchPoint")) if parent else None
    keys = [turn.key for turn in told[parent].turns] if parent in told else _shared_keys(document)
    same = [replace(turn, key=key) for turn, key in zip(found.turns[: shared or 0], keys, strict=False)]
    found = replace(found, turns=(*same, *found.turns[len(same) :]))
    theirs = sessions[parent].turns[: shared or 0] if parent in sessions else ()
    entry = around.entries.get(one.id, {})
    marked = {key: value for key, value in files.dict_or_empty(document.get(own_keys.KEY)).items() if key != "keys"}
    plain = {key: value for key, value in document.items() if key != own_keys.KEY}
    rest = {
        "session": {**plain, "messages": [], **({own_keys.KEY: marked} if marked else {})},
        "branch": shared,
        "entry": {key: value for key, value in entry.items() if key not in _ENTRY_KEYS},
        "messages": json.loads(canonical.dumps(found.rest)),
    }
    is_active = around.active == one.id
    more = own_keys.apply_own_object(facts, document.get(own_keys.KEY), *_LAYOUT_KEYS)
    others = {KEPT_ACTIVE: around.reference} if is_active else {}
    session = replace(
        more,
        name="" if more.title == more.name else more.name,
        state="active" if is_active else more.state.replace("active", "ended"),
        archived=one.archived,
        parent=parent,
        branch=shared,
        turns=(*theirs, *_with_times(found.turns[len(theirs) :], facts)),
        kept=others,
    )
    if own_keys.KEY in document and _session_document(session, one.id, {}, {}, is_same=False) == document:
        return session, found  # an export of a session that came from elsewhere: nothing is left
    return replace(session, kept={KEPT_PATH: _encode_json(rest), **others}), found


def _with_times(turns: Iterable[GivenTurn], facts: ForeignSession) -> Iterator[GivenTurn]:
    """The turns; those whose messages say no time are as old as the session."""
    start = canonical.seconds(facts.created or facts.updated)
    for turn in turns:
        yield replace(turn, time=turn.time if turn.time is not None else start)


def _count_shared(found: ParsedMessages, parent: ParsedMessages | None, point: object) -> int:
    """How many turns a session shares with its parent: whole ones, up to the message at which it branched."""
    last = point if type(point) is int else max(found.ends, default=0)
    mine = [turn for turn, end in zip(found.turns, found.ends, strict=True) if end <= last]
    if parent is None and type(point) is not int:
        return 0
    if parent is None:
        return len(mine)
    pairs = zip(mine, parent.turns, strict=False)
    return next(
        (n for n, (one, other) in enumerate(pairs) if one != replace(other, key=one.key)),
        min(len(mine), len(parent.turns)),
    )


def _shared_keys(document: Mapping[str, Any]) -> list[str]:
    """The keys of the turns that the session shares with its parent, which has them, as an export noted them."""
    keys = files.nonempty_texts(files.dict_or_empty(document.get(own_keys.KEY)).get("keys"))
    try:
        return [str(uuid.UUID(key)) for key in keys] if len(set(keys)) == len(keys) else []
    except ValueError:
        return []


def _session_metadata(document: Mapping[str, Any]) -> ForeignSession:
    """What a session says of itself beside its messages."""
    state = files.dict_or_empty(document.get("state"))
    labels = dict.fromkeys(map(_clean_label, files.nonempty_texts(document.get("tags"))))
    return ForeignSession(
        id=files.text_or_empty(document.get("id")),
        name=_clean_line(files.text_or_empty(document.get("name")), _LONGEST_NAME),
        description=_clean_text(files.text_or_empty(document.get("description"))),
        project=files.text_or_empty(document.get("projectPath")) or files.text_or_empty(state.get("workingDirectory")),
        created=files.format_time(document.get("createdAt")),
        updated=files.format_time(document.get("updatedAt")),
        labels=tuple(sorted(label for label in labels if label))[:_MOST_LABELS],
        parent=files.text_or_empty(document.get("parentSessionId")),
    )


def _clean_text(text: str) -> str:
    lines = canonical.printable(text.replace("\r\n", "\n").expandtabs(4)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()[:_LONGEST_DESCRIPTION].rstrip()


def _clean_label(text: str) -> str:
    return _clean_line(text.replace(",", " "), _LONGEST_LABEL).lstrip("+- ")


def _clean_line(text: str, longest: int) -> str:
    return canonical.one_line(canonical.without_sequences(text), longest)


# Writing


def write(session: ForeignSession) -> Mapping[str, bytes]:
    """The files of the session below a project's folder: its own, and an index that has only this one."""
    rest = _kept_leftovers(session)
    was = dict(files.dict_or_empty(rest.get("session")))
    is_same = agent_id(SYSTEM, files.text_or_empty(was.get("id"))) == agent_id(SYSTEM, session.id)
    own = files.text_or_empty(was.get("id")) if is_same else session.id
    if not ID.fullmatch(own) or f"{own}.json" in (INDEX, ACTIVE):
        own = agent_id(SYSTEM, own)
    document = _session_document(session, own, was, rest, is_same=is_same)
    data = _encode_json(document)
    path = f"archive/{own}.json.gz" if session.archived else f"{own}.json"
    out = {path: _gzip(data) if session.archived else data}
    entry = {
        **{key: document.get(key) for key in ("id", "name", "projectPath", *_TIME_KEYS)},
        "messageCount": len(document["messages"]),
        "totalCost": files.dict_or_empty(document.get("state")).get("totalCost", 0),
        "tags": document.get("tags"),
        "archived": session.archived,
        **files.dict_or_empty(rest.get("entry")),
    }
    entry = {key: value for key, value in entry.items() if value is not None}
    out[INDEX] = _encode_json({"version": VERSION, "sessions": [entry], "lastUpdated": document.get("updatedAt")})
    if session.state == "active" and not session.archived:
        reference = session.kept.get(KEPT_ACTIVE, b"") if is_same else b""
        out[ACTIVE] = reference or _encode_json({"sessionId": own})
    out |= {f"kept/{own}/{path}": data for path, data in session.kept.items() if path not in (KEPT_PATH, KEPT_ACTIVE)}
    return {f".apex/sessions/{name}": content for name, content in sorted(out.items())}


def _kept_leftovers(session: ForeignSession) -> dict[str, Any]:
    """What was kept of the session where it came from here."""
    try:
        found = files.parse_json(session.kept[KEPT_PATH]) if KEPT_PATH in session.kept else None
    except DamagedFileError:
        found = None
    return found if isinstance(found, dict) else {}


def _session_document(
    session: ForeignSession, own: str, was: Mapping[str, Any], rest: Mapping[str, Any], *, is_same: bool
) -> dict[str, Any]:
    """The session as apex has it: what it says of itself stays as it was where nothing of it has changed since."""
    noted = files.dict_or_empty(rest.get("messages"))
    made = [turn for turn in session.turns if turn.key not in files.dict_or_empty(noted.get("turns"))]
    old = {key: value for key, value in was.items() if is_same or key not in ("childSessionIds", *_TIME_KEYS)}
    document: dict[str, Any] = {
        **dict.fromkeys(was),
        "id": own,
        "name": None,
        "projectPath": "",
        **dict.fromkeys(_TIME_KEYS),
        **old,
    }
    document |= {"id": own, "messages": messages.format_messages(session.turns, noted)}
    document |= _changed_metadata(session, _session_metadata(was)) | _branch_values(session, was, rest, is_same=is_same)
    if not is_same or made:
        document |= _time_values(session, was if is_same else {})
    if not is_same or made or "state" not in was:
        document["state"] = _state_values(files.dict_or_empty(was.get("state")), made)
    if not is_same or made or "inputHistory" not in was:
        document["inputHistory"] = [*files.list_or_empty(was.get("inputHistory")), *(turn.prompt for turn in made)]
    more = own_keys.own_object(session, *_LAYOUT_KEYS, *_implied_keys(session, was, is_same=is_same))
    if session.state == "active" and not session.archived:
        more.pop("state")
    keys = [turn.key for turn in session.turns[: session.branch or 0] if session.parent]
    document[own_keys.KEY] = {**more, **({"keys": keys} if keys else {})} or None
    return {
        key: value
        for key, value in document.items()
        if value is not None or (is_same and key in was and key != own_keys.KEY)
    }


def _changed_metadata(session: ForeignSession, facts: ForeignSession) -> dict[str, Any]:
    """What a person says of the session, where it is another than before."""
    found: dict[str, Any] = {}
    if not _is_same_name(session.name or session.title, facts.name):
        found["name"] = session.name or session.title or None
    if session.project != facts.project:
        found["projectPath"] = session.project
    if session.description != facts.description:
        found["description"] = session.description or None
    if sorted(session.labels) != sorted(facts.labels):
        found["tags"] = list(session.labels) or None
    return found


def _is_same_name(name: str, other: str) -> bool:
    """Whether two names are one; in one of them there can be no signs that mean something in an address."""
    return bool(name) == bool(other) and _addressable_name(name) == _addressable_name(other)


def _addressable_name(name: str) -> str:
    return name.replace("/", "-").replace("@", " ").strip()


def _implied_keys(session: ForeignSession, was: Mapping[str, Any], *, is_same: bool) -> list[str]:
    """What apex has no key for, and need not be told: a session that came from there has it from its import."""
    told = files.dict_or_empty(was.get(own_keys.KEY))
    is_named = is_same and "title" not in told and _is_same_name(session.title, _session_metadata(was).name)
    return [
        *(["ended"] if is_same and "ended" not in told else []),
        *(["title"] if is_named or _is_same_name(session.title, session.name) else []),
    ]


def _time_values(session: ForeignSession, was: Mapping[str, Any]) -> dict[str, Any]:
    """When the session was made and changed."""
    moments = [moment for turn in session.turns for moment in (turn.time, turn.ended) if moment is not None]
    created = session.created or canonical.rfc3339(min(moments, default=0))
    updated = max(session.updated, canonical.rfc3339(max(moments, default=0)), created)
    return {"createdAt": was.get("createdAt", created), "updatedAt": updated, "lastAccessedAt": updated}


def _branch_values(
    session: ForeignSession, was: Mapping[str, Any], rest: Mapping[str, Any], *, is_same: bool
) -> dict[str, Any]:
    """What the session branched from, and at which message, where that is another than before."""
    before = files.text_or_empty(was.get("parentSessionId"))
    known = bool(before) and agent_id(SYSTEM, before) == agent_id(SYSTEM, session.parent)
    if is_same and (not session.parent or (known and session.branch == rest.get("branch"))):
        return {}
    shared = session.turns[: session.branch or 0] if session.parent else ()
    place = len(messages.format_messages(shared, files.dict_or_empty(rest.get("messages")))) - 1
    parent = before if known else session.parent or None
    return {"parentSessionId": parent, "branchPoint": place if shared else None}


def _state_values(was: Mapping[str, Any], made: Iterable[GivenTurn]) -> dict[str, Any]:
    """The state with what the turns used that came since."""
    used = files.dict_or_empty(was.get("totalTokens"))
    total = {
        kind: files.count_or_zero(used.get(kind)) + sum(files.count_or_zero(turn.tokens.get(kind)) for turn in made)
        for kind in ("input", "output")
    }
    start = {"totalTokens": total, "totalCost": 0, "tasksCreated": [], "tasksCompleted": []}
    return {**start, **was, **({"totalTokens": total} if any(total.values()) else {})}


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"


def _gzip(data: bytes) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
        file.write(data)
    return out.getvalue()
