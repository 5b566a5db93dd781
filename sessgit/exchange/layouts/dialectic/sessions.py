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
from sessgit.exchange.layouts.dialectic.documents import KEPT, STATE, SYSTEM
from sessgit.exchange.layouts.dialectic.notes import LISTS, Frame, Item, Known, Noted, Pairs
from sessgit.exchange.layouts.files import DamagedFileError, Folder
from sessgit.exchange.layouts.kept_files import keep
from sessgit.model import canonical, humanize, ids
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES
from sessgit.model.foreign_session import Foreign, Found, agent_id
from sessgit.model.pad import Entry, Pad
from sessgit.model.program_input import GivenTurn

FOLDER = ".dialectic"
_NAMESPACE = uuid.UUID("9d7e1c52-1d0d-5a6e-8a57-5f1a1e9c4b21")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LONGEST_TITLE = 200
_OWN = ("title", "created", "updated", "stage", "confidence", "pad", "project")
"""What a session says with keys of its own; its project is where it lies."""
_UNSAID = "unsaid"
_NEARLY = 1.0
"""Seconds by which the times of recorded turns may differ from those that were given."""


@dataclass(frozen=True, slots=True)
class _File:
    """A session as its folder has it: where that is, and what session.json says."""

    at: str
    id: str
    document: dict[str, Any]


# Reading


def read(folder: Path) -> Found:
    """The sessions below a project's folder, its `.dialectic`, or the folder of one session; raises NotFoundError where
    it is none of them."""
    root = Path(os.path.normpath(folder.absolute()))
    opened = files.opened(folder, FOLDER)
    base = f"{FOLDER}/" if opened.below(FOLDER) else ""
    places = [path.removesuffix(STATE) for path in (*opened.names(base + STATE), *opened.names(f"{base}*/{STATE}"))]
    if not base and not places:
        raise NotFoundError(f"there are no sessions in {folder}", f"A session is a folder with {STATE} in {FOLDER}.")
    held = _alone(opened, [one for at in places if (one := _held(opened, at)) is not None])
    inside = root if base else root.parent if root.name == FOLDER else None
    if inside is None and root.parent.name == FOLDER and places == [""]:
        inside = root.parent.parent
    at = {one.at: f"{(root.relative_to(inside) / one.at).as_posix()}/" if inside else "" for one in held}
    found = [_session(opened, one, str(inside or ""), at[one.at]) for one in held]
    return Found(tuple(found), opened.files())


def _held(opened: Folder, at: str) -> _File | None:
    path = at + STATE
    try:
        document = opened.object(path)
    except DamagedFileError as error:
        opened.note(path, "damaged", str(error))
        return None
    own = document.get("id", at.rstrip("/").rpartition("/")[2] or Path(os.path.normpath(opened.root.absolute())).name)
    if not isinstance(own, str) or not _ID.fullmatch(own):
        opened.note(path, "damaged", "its id cannot be one")
        return None
    return _File(at, own, document)


def _alone(opened: Folder, held: Iterable[_File]) -> list[_File]:
    """Those that are alone with their id here."""
    by_id = dict[str, list[_File]]()
    for one in held:
        by_id.setdefault(agent_id(SYSTEM, one.id), []).append(one)
    for group in by_id.values():
        for one in group if len(group) > 1 else ():
            other = next(other for other in group if other is not one)
            why = f"{files.shown(other.at + STATE)} is another session with the same id"
            opened.note(one.at + STATE, "damaged", why, one.id)
    return [group[0] for group in by_id.values() if len(group) == 1]


def _session(opened: Folder, one: _File, project: str, place: str) -> Foreign:
    document = one.document
    facts = replace(_facts(document), id=one.id, project=project)
    kept = _kept(opened, one)
    known, frame = _known(document), _frame(one.id, document, kept, place)
    noted = _noted(document, frame, known)
    lying = documents.read(kept, noted, _pairs(document, noted), frame, known)
    cycles = list(_cycles(frame, known))
    others = [entry for left in known.values() for entry in left if entry.kind == "cycle"]
    every = [entry for kind in LISTS for entry in noted[kind].entries]
    lists, on = notes.fitting([*every, *lying.entries, *cycles, *others])
    rest = {
        "id": one.id,
        "cycle": pads.cycle(pads.read(lists), frame.session),
        "session": {key: None if _is_list(document, key) else value for key, value in document.items()},
        "lists": {
            kind: [
                item if item.get("entry") in on else {"whole": value} for item, value in _itemed(document, noted, kind)
            ]
            for kind, key in LISTS.items()
            if _is_list(document, key)
        },
        "files": {path: ident for path, ident in lying.names.items() if ident in on},
    }
    why = [told for found in noted.values() for told in found.why] + list(lying.why)
    left = len({entry.id for entry in (*every, *lying.entries)} - on)
    if left:
        why.append(f"{humanize.counted(left, 'entry', 'entries')} did not fit on the scratchpad")
    opened.note(one.at + STATE, "imported", "; ".join(why), one.id)
    session = own_keys.read(facts, document.get(own_keys.KEY), *_OWN)
    unsaid = files.mapping(files.mapping(document.get(own_keys.KEY)).get(_UNSAID))
    is_titled = session.name != session.title and unsaid.get("title") != session.title
    whole = replace(
        session,
        title=session.title if is_titled else "",
        stage=session.stage if unsaid.get("status") != session.stage else "",
        turns=tuple(_turns(facts, document, frame)),
        pad=lists,
        kept=kept,
    )
    # Whom it left, nothing says but the document, since passes are no turns that two share.
    alone = None if session.parent else _without_views(whole, document, f"{FOLDER}/{one.id}/")
    return alone or replace(whole, kept={**kept, f"{KEPT}/{STATE}": files.document(rest)})


def _without_views(session: Foreign, document: Mapping[str, Any], at: str) -> Foreign | None:
    """The session without the files that an export makes of it, where the document is one of a session that came from
    elsewhere; else None."""
    if own_keys.KEY not in document:
        return None
    others = {path: data for path, data in session.kept.items() if not path.startswith(f"{KEPT}/")}
    made = write(replace(session, kept=others))
    if files.parsed(made.get(at + STATE, b"{}")) != document:
        return None
    own = {path: data for path, data in session.kept.items() if path not in others}
    more = {path: data for path, data in own.items() if made.get(at + path.removeprefix(f"{KEPT}/")) != data}
    return replace(session, kept={**others, **more})


def _facts(document: Mapping[str, Any]) -> Foreign:
    """What a session says of itself beside what it noted."""
    sure = files.number(document.get("current_confidence"))
    sure = sure / 100 if sure is not None and 1 < sure <= 100 else sure
    is_said = sure is not None and 0 <= sure <= 1 and (sure or files.items(document.get("confidence_history")))
    stage = files.text(document.get("status"))
    return Foreign(
        id=files.text(document.get("id")),
        title=canonical.one_line(canonical.without_sequences(files.text(document.get("title"))), _LONGEST_TITLE),
        created=files.time(document.get("created")),
        updated=files.time(document.get("updated")),
        stage=stage if stage in STAGES else "",
        confidence=round(sure, 6) if sure is not None and is_said else None,
    )


def _frame(own: str, document: Mapping[str, Any], kept: Mapping[str, bytes], place: str) -> Frame:
    """What holds for all that the session notes; `place` is its folder from the project's, ``""`` where that is not
    known."""
    start = files.seconds(document.get("created")) or files.seconds(document.get("updated")) or 0
    cycle = min(max(files.whole(document.get("cycle")), 1), pads.LATEST_CYCLE)
    gained = tuple(files.whole(one) for one in files.items(document.get("cycle_insights")))
    places = documents.places(kept, place) if place else {}
    return Frame(ids.session_id(agent_id(SYSTEM, own)), start, cycle, gained, places)


def _known(document: Mapping[str, Any]) -> Known:
    """The entries that an export noted, because the lists do not say all of them."""
    lines = files.mapping(files.mapping(document.get(own_keys.KEY)).get("pad"))
    out: Known = {}
    for kind, name in pads.LISTS.items():
        for line in pads.split(files.text(lines.get(name)).encode()):
            entry = pads.parsed(kind, line)
            if entry is not None:
                out.setdefault(notes.same(entry), []).append(entry)
    return out


def _noted(document: Mapping[str, Any], frame: Frame, known: Known) -> dict[str, Noted]:
    """What the session noted, by kind."""
    out, claims = dict[str, Noted](), dict[str, str]()
    for kind in LISTS:
        values = _values(document, kind)
        out[kind] = notes.read(kind, values, frame, claims, known)
        if kind == "claim":
            claims = notes.called(notes.paired(values, out[kind]))
    return out


def _pairs(document: Mapping[str, Any], noted: Mapping[str, Noted]) -> Pairs:
    return {kind: notes.paired(_values(document, kind), one) for kind, one in noted.items()}


def _itemed(document: Mapping[str, Any], noted: Mapping[str, Noted], kind: str) -> Iterable[tuple[Item, Any]]:
    return zip(noted[kind].items, _values(document, kind), strict=True)


def _is_list(document: Mapping[str, Any], key: str) -> bool:
    """Whether entries are read from what a key says."""
    return key in LISTS.values() and isinstance(document.get(key), str | dict if key == "thesis" else list)


def _values(document: Mapping[str, Any], kind: str) -> list[Any]:
    value = document.get(LISTS[kind])
    return [] if not _is_list(document, LISTS[kind]) else [value] if kind == "thesis" else list(value or [])


def _turns(facts: Foreign, document: Mapping[str, Any], frame: Frame) -> Iterator[GivenTurn]:
    """What it is about, and then each pass."""
    yield GivenTurn(facts.title or f"Session {facts.id}", time=frame.start or None, key=_key(facts.id, 0))
    number, latest = 0, frame.start
    for value in _values(document, "pass"):
        text = notes.whole(value)
        if not text:
            continue
        number += 1
        time = latest = notes.moment(value) or latest + 0.001
        asked = notes.whole(value, "prompt")
        name = notes.form(value)
        told = f"{name} pass, cycle {notes.cycle(value) or 1}".lstrip()
        model = canonical.one_line(files.text(value.get("model")), 100) if isinstance(value, dict) else ""
        prompt = asked or told[:1].upper() + told[1:]
        yield GivenTurn(prompt, (), text, model, time, time, _key(facts.id, number))


def _key(session: str, number: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{session} {number}"))


def _cycles(frame: Frame, known: Known) -> Iterator[Entry]:
    """That the cycles began which the session has had: the latest, where there are many."""
    for number in range(max(2, frame.cycle - pads.MOST + 1), frame.cycle + 1):
        time = canonical.rfc3339(frame.start + number / 1000 + 0.0005)
        yield notes.as_known(Entry("", "cycle", "", time, frame.session, cycle=number), known)


def _kept(opened: Folder, one: _File) -> dict[str, bytes]:
    """The files of a session beside what it says of itself, by the paths at which they are kept."""
    ours = f"{KEPT}/{STATE}"  # what the document says that has no other place is kept there
    out = {ours: b""}
    for path in opened.below(one.at.rstrip("/")):
        if path == one.at + STATE:
            continue
        name = _kept_name(path.removeprefix(one.at))
        is_same = name == f"{KEPT}/{path.removeprefix(one.at)}"
        keep(opened, path, name, one.id, out, "kept as it is" if is_same else f"kept as {name}")
    return {path: data for path, data in out.items() if path != ours}


def _kept_name(path: str) -> str:
    """Where a file is kept; what an export laid into `kept` is kept where it was."""
    own, other = files.keepable(path), files.keepable(path.removeprefix("kept/"))
    return f"{KEPT}/{own}" if own == other or other.startswith(f"{KEPT}/") else other


# Writing


def write(session: Foreign) -> Mapping[str, bytes]:
    """The files of the session below a project's folder. Of a conversation there is nothing in it but the passes."""
    rest = _rest(session)
    was = dict(files.mapping(rest.get("session")))
    is_same = agent_id(SYSTEM, files.text(rest.get("id"))) == agent_id(SYSTEM, session.id)
    own = files.text(rest.get("id")) if is_same else session.id
    if not _ID.fullmatch(own):
        own = agent_id(SYSTEM, own)
    pad = pads.read(session.pad)
    noted = {kind: files.objects(one) for kind, one in files.mapping(rest.get("lists")).items()}
    named = {path: files.text(one) for path, one in files.mapping(rest.get("files")).items()}
    pairs = _listed(pad, noted, set(named.values()))
    document = _document(session, own, was, rest.get("cycle") if is_same else None)
    for kind, one in pairs.items():
        if kind in noted or one or not was:
            values: Any = [value for value, _ in one]
            document[LISTS[kind]] = values if kind != "thesis" else values[-1] if values else None
    if not was or not _is_as_noted(pad, noted, named):
        document["cycle_insights"] = pads.gained(pad, ids.session_id(agent_id(SYSTEM, own)))
    beside = documents.written(session.kept, pairs, pad, noted, named)
    # A session that came from there has its end from the import.
    ended = ["ended"] if is_same and "ended" not in files.mapping(was.get(own_keys.KEY)) else []
    kin = _kin(was) if is_same and not session.parent else {}
    told = kin | own_keys.written(session, *_OWN, *ended) | _unsaid(session, document, was)
    document[own_keys.KEY] = _others(pad, own, document, beside) | told
    out = {STATE: files.document({k: v for k, v in document.items() if k != own_keys.KEY or v}), **beside}
    others = {f"kept/{path}": data for path, data in session.kept.items() if not path.startswith(f"{KEPT}/")}
    return {f"{FOLDER}/{own}/{name}": data for name, data in sorted({**others, **out}.items())}


def _rest(session: Foreign) -> Mapping[str, Any]:
    """What was kept of the session where it came from here."""
    try:
        return files.mapping(files.parsed(session.kept.get(f"{KEPT}/{STATE}", b"{}")))
    except DamagedFileError:
        return {}


def _listed(pad: Pad, noted: Mapping[str, Sequence[Mapping[str, Any]]], lying: set[str]) -> Pairs:
    """What the lists say, with the entries; without those that only files say."""
    pairs: Pairs = {}
    claims = dict[str, str]()
    for kind in LISTS:
        items = noted.get(kind, ())
        there = {item.get("entry") for item in items}
        entries = [entry for entry in pad.of(kind) if entry.id in there or entry.id not in lying]
        pairs[kind] = notes.written(kind, entries, items, claims)
        if kind == "claim":
            claims = notes.names(notes.called(pairs[kind]))
    return pairs


def _document(session: Foreign, own: str, was: Mapping[str, Any], cycle: object) -> dict[str, Any]:
    """What the session says of itself, as it was where nothing of it has changed since; `cycle` is the one that it was
    in, None where it is another session."""
    is_same = cycle is not None
    facts = _facts(was)
    latest = pads.cycle(pads.read(session.pad), ids.session_id(agent_id(SYSTEM, own)))
    document: dict[str, Any] = {
        "id": own,
        "title": session.title or session.name or _first(session),
        "status": session.stage or STAGES[0],
        "created": session.created,
        "updated": session.updated or session.created,
        "cycle": latest,
        "current_confidence": session.confidence or 0,
    }
    is_level = (canonical.seconds(session.updated) or 0) <= (canonical.seconds(facts.updated) or 0) + _NEARLY
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


def _kin(was: Mapping[str, Any]) -> dict[str, Any]:
    """Which session it left, as an export noted it."""
    return {key: value for key, value in files.mapping(was.get(own_keys.KEY)).items() if key in ("parent", "branch")}


def _unsaid(session: Foreign, document: Mapping[str, Any], was: Mapping[str, Any]) -> dict[str, Any]:
    """What the layout cannot be without, and nobody said of the session."""
    said_here = {"title": session.title or session.name, "status": session.stage}
    before = files.mapping(files.mapping(was.get(own_keys.KEY)).get(_UNSAID))
    new = {key for key in said_here if key not in was or (key in before and before[key] == document.get(key))}
    found = {key: document[key] for key, value in said_here.items() if not value and key in new & document.keys()}
    return {_UNSAID: found} if found else {}


def _first(session: Foreign) -> str:
    return next((line for turn in session.turns if (line := canonical.one_line(turn.prompt, _LONGEST_TITLE))), "")


def _is_as_noted(pad: Pad, noted: Mapping[str, Sequence[Mapping[str, Any]]], named: Mapping[str, str]) -> bool:
    """Whether the entries that a cycle can find are those that were read."""
    there = {item["entry"] for kind in pads.COUNTED for item in noted.get(kind, ()) if "entry" in item}
    return {entry.id for entry in pad.of(*pads.COUNTED)} - set(named.values()) == there - set(named.values())


def _others(pad: Pad, own: str, document: Mapping[str, Any], beside: Mapping[str, bytes]) -> dict[str, Any]:
    """The entries of the pad that would be others when they are read again."""
    kept = {f"{KEPT}/{path}": data for path, data in beside.items()}
    frame = _frame(own, document, kept, f"{FOLDER}/{own}/")
    noted = _noted(document, frame, {})
    lying = documents.read(kept, noted, _pairs(document, noted), frame, {})
    again = [*(entry for one in noted.values() for entry in one.entries), *lying.entries, *_cycles(frame, {})]
    lines = {entry.line for entry in again}
    others = {notes.same(entry) for entry in pad.entries if entry.line not in lines}
    lists, _ = notes.fitting(entry for entry in pad.entries if notes.same(entry) in others)
    return {"pad": {name: data.decode("utf-8", "replace") for name, data in sorted(lists.items())}} if lists else {}
