"""Sessions of dialectic, a folder each below `.dialectic/`: session.json, and what was read, claimed and concluded.

Nothing of a conversation is in it. What was said are the passes: each is a turn, and all else is on the pad.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sessgit.errors import NotFoundError
from sessgit.exchange.layouts import files, own_keys
from sessgit.exchange.layouts.dialectic import documents, notes
from sessgit.exchange.layouts.dialectic.documents import KEPT_FOLDER, STATE_FILE, SYSTEM
from sessgit.exchange.layouts.dialectic.notes import (
    LIST_KEYS,
    Item,
    KnownEntries,
    ParsedNotes,
    SessionFrame,
    ValueEntryPairs,
)
from sessgit.exchange.layouts.files import DamagedFileError, Folder
from sessgit.exchange.layouts.kept_files import keep_file
from sessgit.model import canonical, humanize, ids
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES
from sessgit.model.foreign_session import ForeignFolder, ForeignSession, agent_id
from sessgit.model.pad import Entry, Pad
from sessgit.model.program_input import GivenTurn

FOLDER = ".dialectic"
_NAMESPACE = uuid.UUID("9d7e1c52-1d0d-5a6e-8a57-5f1a1e9c4b21")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LONGEST_TITLE = 200
_LAYOUT_KEYS = ("title", "created", "updated", "stage", "confidence", "pad", "project")
"""What a session says with keys of its own; its project is where it lies."""
_UNSAID_KEY = "unsaid"
_TIME_TOLERANCE = 1.0
"""Seconds by which the times of recorded turns may differ from those that were given."""


@dataclass(frozen=True, slots=True)
class _SessionFolder:
    """A session as its folder has it: where that is, and what session.json says."""

    at: str
    id: str
    document: dict[str, Any]


# Reading


def read(folder: Path) -> ForeignFolder:
    """The sessions below a project's folder, its `.dialectic`, or the folder of one session; raises NotFoundError where
    it is none of them."""
    root = Path(os.path.normpath(folder.absolute()))
    opened = files.open_folder(folder, FOLDER)
    base = f"{FOLDER}/" if opened.below(FOLDER) else ""
    places = [
        path.removesuffix(STATE_FILE)
        for path in (*opened.names(base + STATE_FILE), *opened.names(f"{base}*/{STATE_FILE}"))
    ]
    if not base and not places:
        raise NotFoundError(
            f"there are no sessions in {folder}", f"A session is a folder with {STATE_FILE} in {FOLDER}."
        )
    held = _without_duplicates(opened, [one for at in places if (one := _read_folder(opened, at)) is not None])
    inside = root if base else root.parent if root.name == FOLDER else None
    if inside is None and root.parent.name == FOLDER and places == [""]:
        inside = root.parent.parent
    at = {one.at: f"{(root.relative_to(inside) / one.at).as_posix()}/" if inside else "" for one in held}
    found = [_make_session(opened, one, str(inside or ""), at[one.at]) for one in held]
    return ForeignFolder(tuple(found), opened.files())


def _read_folder(opened: Folder, at: str) -> _SessionFolder | None:
    path = at + STATE_FILE
    try:
        document = opened.object(path)
    except DamagedFileError as error:
        opened.note(path, "damaged", str(error))
        return None
    own = document.get("id", at.rstrip("/").rpartition("/")[2] or Path(os.path.normpath(opened.root.absolute())).name)
    if not isinstance(own, str) or not _ID.fullmatch(own):
        opened.note(path, "damaged", "its id cannot be one")
        return None
    return _SessionFolder(at, own, document)


def _without_duplicates(opened: Folder, held: Iterable[_SessionFolder]) -> list[_SessionFolder]:
    """Those that are alone with their id here."""
    by_id = dict[str, list[_SessionFolder]]()
    for one in held:
        by_id.setdefault(agent_id(SYSTEM, one.id), []).append(one)
    for group in by_id.values():
        for one in group if len(group) > 1 else ():
            other = next(other for other in group if other is not one)
            why = f"{files.printable_path(other.at + STATE_FILE)} is another session with the same id"
            opened.note(one.at + STATE_FILE, "damaged", why, one.id)
    return [group[0] for group in by_id.values() if len(group) == 1]


def _make_session(opened: Folder, one: _SessionFolder, project: str, place: str) -> ForeignSession:
    document = one.document
    facts = replace(_session_metadata(document), id=one.id, project=project)
    kept = _kept_files(opened, one)
    known, frame = _known_entries(document), _session_frame(one.id, document, kept, place)
    noted = _parsed_notes(document, frame, known)
    lying = documents.read_documents(kept, noted, _value_entry_pairs(document, noted), frame, known)
    cycles = list(_cycle_entries(frame, known))
    others = [entry for left in known.values() for entry in left if entry.kind == "cycle"]
    every = [entry for kind in LIST_KEYS for entry in noted[kind].entries]
    lists, on = notes.fit_entries([*every, *lying.entries, *cycles, *others])
    rest = {
        "id": one.id,
        "cycle": pads.current_cycle(pads.read_pad(lists), frame.session),
        "session": {key: None if _is_list(document, key) else value for key, value in document.items()},
        "lists": {
            kind: [
                item if item.get("entry") in on else {"whole": value}
                for item, value in _items_with_values(document, noted, kind)
            ]
            for kind, key in LIST_KEYS.items()
            if _is_list(document, key)
        },
        "files": {path: ident for path, ident in lying.names.items() if ident in on},
    }
    why = [told for found in noted.values() for told in found.why] + list(lying.why)
    left = len({entry.id for entry in (*every, *lying.entries)} - on)
    if left:
        why.append(f"{humanize.format_count(left, 'entry', 'entries')} did not fit on the scratchpad")
    opened.note(one.at + STATE_FILE, "imported", "; ".join(why), one.id)
    session = own_keys.apply_own_object(facts, document.get(own_keys.KEY), *_LAYOUT_KEYS)
    unsaid = files.dict_or_empty(files.dict_or_empty(document.get(own_keys.KEY)).get(_UNSAID_KEY))
    is_titled = session.name != session.title and unsaid.get("title") != session.title
    whole = replace(
        session,
        title=session.title if is_titled else "",
        stage=session.stage if unsaid.get("status") != session.stage else "",
        turns=tuple(_make_turns(facts, document, frame)),
        pad=lists,
        kept=kept,
    )
    # Whom it left, nothing says but the document, since passes are no turns that two share.
    alone = None if session.parent else _without_views(whole, document, f"{FOLDER}/{one.id}/")
    return alone or replace(whole, kept={**kept, f"{KEPT_FOLDER}/{STATE_FILE}": files.json_document(rest)})


def _without_views(session: ForeignSession, document: Mapping[str, Any], at: str) -> ForeignSession | None:
    """The session without the files that an export makes of it, where the document is one of a session that came from
    elsewhere; else None."""
    if own_keys.KEY not in document:
        return None
    others = {path: data for path, data in session.kept.items() if not path.startswith(f"{KEPT_FOLDER}/")}
    made = write(replace(session, kept=others))
    if files.parse_json(made.get(at + STATE_FILE, b"{}")) != document:
        return None
    own = {path: data for path, data in session.kept.items() if path not in others}
    more = {path: data for path, data in own.items() if made.get(at + path.removeprefix(f"{KEPT_FOLDER}/")) != data}
    return replace(session, kept={**others, **more})


def _session_metadata(document: Mapping[str, Any]) -> ForeignSession:
    """What a session says of itself beside what it noted."""
    sure = files.number_or_none(document.get("current_confidence"))
    sure = sure / 100 if sure is not None and 1 < sure <= 100 else sure
    is_said = sure is not None and 0 <= sure <= 1 and (sure or files.list_or_empty(document.get("confidence_history")))
    stage = files.text_or_empty(document.get("status"))
    return ForeignSession(
        id=files.text_or_empty(document.get("id")),
        title=canonical.one_line(
            canonical.without_sequences(files.text_or_empty(document.get("title"))), _LONGEST_TITLE
        ),
        created=files.format_time(document.get("created")),
        updated=files.format_time(document.get("updated")),
        stage=stage if stage in STAGES else "",
        confidence=round(sure, 6) if sure is not None and is_said else None,
    )


def _session_frame(own: str, document: Mapping[str, Any], kept: Mapping[str, bytes], place: str) -> SessionFrame:
    """What holds for all that the session notes; `place` is its folder from the project's, ``""`` where that is not
    known."""
    start = files.parse_seconds(document.get("created")) or files.parse_seconds(document.get("updated")) or 0
    cycle = min(max(files.count_or_zero(document.get("cycle")), 1), pads.LATEST_CYCLE)
    gained = tuple(files.count_or_zero(one) for one in files.list_or_empty(document.get("cycle_insights")))
    places = documents.file_places(kept, place) if place else {}
    return SessionFrame(ids.session_id(agent_id(SYSTEM, own)), start, cycle, gained, places)


def _known_entries(document: Mapping[str, Any]) -> KnownEntries:
    """The entries that an export noted, because the lists do not say all of them."""
    lines = files.dict_or_empty(files.dict_or_empty(document.get(own_keys.KEY)).get("pad"))
    out: KnownEntries = {}
    for kind, name in pads.LISTS.items():
        for line in pads.split_list(files.text_or_empty(lines.get(name)).encode()):
            entry = pads.parse_entry(kind, line)
            if entry is not None:
                out.setdefault(notes.entry_identity(entry), []).append(entry)
    return out


def _parsed_notes(document: Mapping[str, Any], frame: SessionFrame, known: KnownEntries) -> dict[str, ParsedNotes]:
    """What the session noted, by kind."""
    out, claims = dict[str, ParsedNotes](), dict[str, str]()
    for kind in LIST_KEYS:
        values = _list_values(document, kind)
        out[kind] = notes.parse_notes(kind, values, frame, claims, known)
        if kind == "claim":
            claims = notes.claim_ids_by_name(notes.pair_with_entries(values, out[kind]))
    return out


def _value_entry_pairs(document: Mapping[str, Any], noted: Mapping[str, ParsedNotes]) -> ValueEntryPairs:
    return {kind: notes.pair_with_entries(_list_values(document, kind), one) for kind, one in noted.items()}


def _items_with_values(
    document: Mapping[str, Any], noted: Mapping[str, ParsedNotes], kind: str
) -> Iterable[tuple[Item, Any]]:
    return zip(noted[kind].items, _list_values(document, kind), strict=True)


def _is_list(document: Mapping[str, Any], key: str) -> bool:
    """Whether entries are read from what a key says."""
    return key in LIST_KEYS.values() and isinstance(document.get(key), str | dict if key == "thesis" else list)


def _list_values(document: Mapping[str, Any], kind: str) -> list[Any]:
    value = document.get(LIST_KEYS[kind])
    return [] if not _is_list(document, LIST_KEYS[kind]) else [value] if kind == "thesis" else list(value or [])


def _make_turns(facts: ForeignSession, document: Mapping[str, Any], frame: SessionFrame) -> Iterator[GivenTurn]:
    """What it is about, and then each pass."""
    yield GivenTurn(facts.title or f"Session {facts.id}", time=frame.start or None, key=_turn_key(facts.id, 0))
    number, latest = 0, frame.start
    for value in _list_values(document, "pass"):
        text = notes.full_note_text(value)
        if not text:
            continue
        number += 1
        time = latest = notes.note_time(value) or latest + 0.001
        asked = notes.full_note_text(value, "prompt")
        name = notes.pass_form(value)
        told = f"{name} pass, cycle {notes.note_cycle(value) or 1}".lstrip()
        model = canonical.one_line(files.text_or_empty(value.get("model")), 100) if isinstance(value, dict) else ""
        prompt = asked or told[:1].upper() + told[1:]
        yield GivenTurn(prompt, (), text, model, time, time, _turn_key(facts.id, number))


def _turn_key(session: str, number: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{session} {number}"))


def _cycle_entries(frame: SessionFrame, known: KnownEntries) -> Iterator[Entry]:
    """That the cycles began which the session has had: the latest, where there are many."""
    for number in range(max(2, frame.cycle - pads.MOST + 1), frame.cycle + 1):
        time = canonical.rfc3339(frame.start + number / 1000 + 0.0005)
        yield notes.known_entry(Entry("", "cycle", "", time, frame.session, cycle=number), known)


def _kept_files(opened: Folder, one: _SessionFolder) -> dict[str, bytes]:
    """The files of a session beside what it says of itself, by the paths at which they are kept."""
    ours = f"{KEPT_FOLDER}/{STATE_FILE}"  # what the document says that has no other place is kept there
    out = {ours: b""}
    for path in opened.below(one.at.rstrip("/")):
        if path == one.at + STATE_FILE:
            continue
        name = _kept_name(path.removeprefix(one.at))
        is_same = name == f"{KEPT_FOLDER}/{path.removeprefix(one.at)}"
        keep_file(opened, path, name, one.id, out, "kept as it is" if is_same else f"kept as {name}")
    return {path: data for path, data in out.items() if path != ours}


def _kept_name(path: str) -> str:
    """Where a file is kept; what an export laid into `kept` is kept where it was."""
    own, other = files.storable_path(path), files.storable_path(path.removeprefix("kept/"))
    return f"{KEPT_FOLDER}/{own}" if own == other or other.startswith(f"{KEPT_FOLDER}/") else other


# Writing


def write(session: ForeignSession) -> Mapping[str, bytes]:
    """The files of the session below a project's folder. Of a conversation there is nothing in it but the passes."""
    rest = _kept_leftovers(session)
    was = dict(files.dict_or_empty(rest.get("session")))
    is_same = agent_id(SYSTEM, files.text_or_empty(rest.get("id"))) == agent_id(SYSTEM, session.id)
    own = files.text_or_empty(rest.get("id")) if is_same else session.id
    if not _ID.fullmatch(own):
        own = agent_id(SYSTEM, own)
    pad = pads.read_pad(session.pad)
    noted = {kind: files.objects_of(one) for kind, one in files.dict_or_empty(rest.get("lists")).items()}
    named = {path: files.text_or_empty(one) for path, one in files.dict_or_empty(rest.get("files")).items()}
    pairs = _listed_pairs(pad, noted, set(named.values()))
    document = _session_document(session, own, was, rest.get("cycle") if is_same else None)
    for kind, one in pairs.items():
        if kind in noted or one or not was:
            values: Any = [value for value, _ in one]
            document[LIST_KEYS[kind]] = values if kind != "thesis" else values[-1] if values else None
    if not was or not _are_entries_unchanged(pad, noted, named):
        document["cycle_insights"] = pads.gains_by_cycle(pad, ids.session_id(agent_id(SYSTEM, own)))
    beside = documents.updated_files(session.kept, pairs, pad, noted, named)
    # A session that came from there has its end from the import.
    ended = ["ended"] if is_same and "ended" not in files.dict_or_empty(was.get(own_keys.KEY)) else []
    kin = _parent_values(was) if is_same and not session.parent else {}
    told = kin | own_keys.own_object(session, *_LAYOUT_KEYS, *ended) | _required_values(session, document, was)
    document[own_keys.KEY] = _unstable_entries(pad, own, document, beside) | told
    out = {STATE_FILE: files.json_document({k: v for k, v in document.items() if k != own_keys.KEY or v}), **beside}
    others = {f"kept/{path}": data for path, data in session.kept.items() if not path.startswith(f"{KEPT_FOLDER}/")}
    return {f"{FOLDER}/{own}/{name}": data for name, data in sorted({**others, **out}.items())}


def _kept_leftovers(session: ForeignSession) -> Mapping[str, Any]:
    """What was kept of the session where it came from here."""
    try:
        return files.dict_or_empty(files.parse_json(session.kept.get(f"{KEPT_FOLDER}/{STATE_FILE}", b"{}")))
    except DamagedFileError:
        return {}


def _listed_pairs(pad: Pad, noted: Mapping[str, Sequence[Mapping[str, Any]]], lying: set[str]) -> ValueEntryPairs:
    """What the lists say, with the entries; without those that only files say."""
    pairs: ValueEntryPairs = {}
    claims = dict[str, str]()
    for kind in LIST_KEYS:
        items = noted.get(kind, ())
        there = {item.get("entry") for item in items}
        entries = [entry for entry in pad.of(kind) if entry.id in there or entry.id not in lying]
        pairs[kind] = notes.format_notes(kind, entries, items, claims)
        if kind == "claim":
            claims = notes.claim_names_by_id(notes.claim_ids_by_name(pairs[kind]))
    return pairs


def _session_document(session: ForeignSession, own: str, was: Mapping[str, Any], cycle: object) -> dict[str, Any]:
    """What the session says of itself, as it was where nothing of it has changed since; `cycle` is the one that it was
    in, None where it is another session."""
    is_same = cycle is not None
    facts = _session_metadata(was)
    latest = pads.current_cycle(pads.read_pad(session.pad), ids.session_id(agent_id(SYSTEM, own)))
    document: dict[str, Any] = {
        "id": own,
        "title": session.title or session.name or _first_line(session),
        "status": session.stage or STAGES[0],
        "created": session.created,
        "updated": session.updated or session.created,
        "cycle": latest,
        "current_confidence": session.confidence or 0,
    }
    is_level = (canonical.seconds(session.updated) or 0) <= (canonical.seconds(facts.updated) or 0) + _TIME_TOLERANCE
    same = {
        "id": is_same,
        "title": facts.title == (session.title or session.name),
        "status": facts.stage == session.stage,
        "created": is_same,
        "updated": is_same and is_level,
        "cycle": cycle == latest,
        "current_confidence": facts.confidence == session.confidence,
    }
    new = {key: value for key, value in document.items() if not same[key] or (not is_same and key not in was)}
    return {**was, **new}


def _parent_values(was: Mapping[str, Any]) -> dict[str, Any]:
    """Which session it left, as an export noted it."""
    return {
        key: value for key, value in files.dict_or_empty(was.get(own_keys.KEY)).items() if key in ("parent", "branch")
    }


def _required_values(session: ForeignSession, document: Mapping[str, Any], was: Mapping[str, Any]) -> dict[str, Any]:
    """What the layout cannot be without, and nobody said of the session."""
    said_here = {"title": session.title or session.name, "status": session.stage}
    before = files.dict_or_empty(files.dict_or_empty(was.get(own_keys.KEY)).get(_UNSAID_KEY))
    new = {key for key in said_here if key not in was or (key in before and before[key] == document.get(key))}
    found = {key: document[key] for key, value in said_here.items() if not value and key in new & document.keys()}
    return {_UNSAID_KEY: found} if found else {}


def _first_line(session: ForeignSession) -> str:
    return next((line for turn in session.turns if (line := canonical.one_line(turn.prompt, _LONGEST_TITLE))), "")


def _are_entries_unchanged(
    pad: Pad, noted: Mapping[str, Sequence[Mapping[str, Any]]], named: Mapping[str, str]
) -> bool:
    """Whether the entries that a cycle can find are those that were read."""
    there = {item["entry"] for kind in pads.COUNTED for item in noted.get(kind, ()) if "entry" in item}
    return {entry.id for entry in pad.of(*pads.COUNTED)} - set(named.values()) == there - set(named.values())


def _unstable_entries(pad: Pad, own: str, document: Mapping[str, Any], beside: Mapping[str, bytes]) -> dict[str, Any]:
    """The entries of the pad that would be others when they are read again."""
    kept = {f"{KEPT_FOLDER}/{path}": data for path, data in beside.items()}
    frame = _session_frame(own, document, kept, f"{FOLDER}/{own}/")
    noted = _parsed_notes(document, frame, {})
    lying = documents.read_documents(kept, noted, _value_entry_pairs(document, noted), frame, {})
    again = [*(entry for one in noted.values() for entry in one.entries), *lying.entries, *_cycle_entries(frame, {})]
    lines = {entry.line for entry in again}
    others = {notes.entry_identity(entry) for entry in pad.entries if entry.line not in lines}
    lists, _ = notes.fit_entries(entry for entry in pad.entries if notes.entry_identity(entry) in others)
    return {"pad": {name: data.decode("utf-8", "replace") for name, data in sorted(lists.items())}} if lists else {}
