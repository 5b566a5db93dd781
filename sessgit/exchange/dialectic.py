"""The layout of dialectic: a folder for each session below `.dialectic/`, with session.json and the files that it read,
claimed and concluded.

The format has no conversation. Each pass becomes a turn, everything else an entry of the scratchpad.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from sessgit.errors import NotFoundError
from sessgit.exchange import files, mapping, values
from sessgit.exchange.files import Folder, SessionFile
from sessgit.exchange.mapping import OWN_KEY, Field
from sessgit.exchange.values import Document
from sessgit.model import canonical, humanize, ids
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES
from sessgit.model.foreign_session import ForeignFolder, ForeignSession, agent_id
from sessgit.model.frozen import frozen
from sessgit.model.pad import Entry, Pad
from sessgit.model.program_input import GivenTurn

SYSTEM = "dialectic"
FOLDER = ".dialectic"
_STATE = "session.json"
_KEPT_STATE = f"{SYSTEM}/{_STATE}"
_NAMESPACE = uuid.UUID("9d7e1c52-1d0d-5a6e-8a57-5f1a1e9c4b21")
_TIME_TOLERANCE = 1.0
"""Seconds by which the times of recorded turns may differ from those in the source."""
_DOCUMENT_FOLDERS = {"claim": "claims", "tension": "tensions"}
_THESES, _CONTEXT = "thesis", "context"
_THESIS_FILE = re.compile(r"thesis_v([0-9]{1,6})\.md")
_STEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_MOST_FILES = 200
"""Files that can become entries although session.json does not name them."""


def _stage(value: object) -> str:
    return str(value) if value in STAGES else ""


def _confidence(value: object) -> float | None:
    """Return a confidence from 0 to 1, also of a percentage."""
    number = values.to_number(value)
    number = number / 100 if number is not None and 1 < number <= 100 else number
    return round(number, 6) if number is not None and 0 <= number <= 1 else None


def _is_recent(document: Document, session: ForeignSession) -> bool:
    """Return whether the session has not changed since the document was written, or one of them does not say when."""
    if not session.updated or document.get("updated") is None:
        return not session.updated
    latest = values.seconds(document, "updated")
    return latest is None or (canonical.seconds(session.updated) or 0) <= latest + _TIME_TOLERANCE


def _title(session: ForeignSession) -> str:
    """Return the required title: that of the session, or the beginning of its first prompt."""
    prompts = (canonical.one_line(turn.prompt, mapping.LONGEST_TITLE) for turn in session.turns)
    return session.title or session.name or next(filter(None, prompts), "")


FIELDS = (
    Field("title", "title", mapping.to_line, _title,
          lambda d, s: "title" in d and mapping.to_line(d["title"]) == (s.title or s.name)),
    Field("status", "stage", _stage, lambda s: s.stage or STAGES[0],
          lambda d, s: "status" in d and _stage(d["status"]) == s.stage),
    Field("created", "created", values.to_time, lambda s: s.created, lambda d, s: "created" in d),
    Field("updated", "updated", values.to_time, lambda s: s.updated, _is_recent),
    Field("current_confidence", "confidence", _confidence, lambda s: s.confidence or 0,
          lambda d, s: (_confidence(d.get("current_confidence")) or 0) == (s.confidence or 0)),
)  # fmt: skip


def _with_document(session: ForeignSession, document: Document) -> ForeignSession:
    session = replace(session, **mapping.read_fields(FIELDS, document))
    is_said = session.confidence or values.items(document, "confidence_history")
    return session if is_said else replace(session, confidence=None)  # 0 is the default


# Reading


def read(folder: Path) -> ForeignFolder:
    """Return the sessions below a project, its `.dialectic`, or the folder of one session; raises NotFoundError if it
    is none of them."""
    source, base, project = files.open_layout(folder, FOLDER)
    root = Path(os.path.normpath(folder.absolute()))
    paths = [*source.names(base + _STATE), *source.names(f"{base}*/{_STATE}")]
    if not base and not paths:
        raise NotFoundError(f"there are no sessions in {folder}", f"A session is a folder with {_STATE} in {FOLDER}.")
    if project is None and root.parent.name == FOLDER and paths == [_STATE]:
        project = root.parent.parent
    candidates = list[SessionFile]()
    for path in paths:
        document = source.load_object(path)
        if document is None:
            continue
        own = document.get("id", (root / path).parent.name)
        if isinstance(own, str) and mapping.ID.fullmatch(own):
            candidates.append(SessionFile(path, own, document))
        else:
            source.note(path, "damaged", "its id cannot be one")
    sessions = [_read_session(source, file, project) for file in files.without_duplicates(source, SYSTEM, candidates)]
    return ForeignFolder(tuple(sessions), source.files())


@frozen
class _Parsed:
    """What a document and the files next to it have for a scratchpad.

    `notes` are the lists by kind, `names` the ids of entries by the paths of their files. Entries that did not fit are
    in neither.
    """

    frame: Frame
    notes: dict[str, Notes]
    names: dict[str, str]
    pad: dict[str, bytes]
    why: list[str]


def _parse(own: str, document: Document, kept: Mapping[str, bytes], place: str) -> _Parsed:
    known = KnownEntries()
    start = values.seconds(document, "created", "updated") or 0
    cycle = min(max(values.count(document, "cycle"), 1), pads.LATEST_CYCLE)
    gained = tuple(values.count({"gained": one}, "gained") for one in values.items(document, "cycle_insights"))
    context = reversed(_paths_below(kept, _CONTEXT)) if place else ()
    places = {_file_name(path): clean_text(place + path) for path in context}
    frame = Frame(ids.session_id(agent_id(SYSTEM, own)), start, cycle, gained, places)
    stored = values.mapping(document, f"{OWN_KEY}.pad")  # what an export stored because the lists lack it
    for kind, name in pads.LISTS.items():
        for line in pads.split_list(values.text(stored, name).encode()):
            if entry := pads.parse_entry(kind, line):
                known.setdefault(entry_identity(entry), []).append(entry)
    notes, claims = dict[str, Notes](), dict[str, str]()
    for kind, key in LIST_KEYS.items():
        value = document.get(key) if _is_list(document, key) else []
        own_notes = [value] if isinstance(value, str | dict) else list(value or [])
        notes[kind] = parse_notes(kind, own_notes, frame, claims, known)
        if kind == "claim":
            claims = claim_ids(notes[kind].pairs)
    more, names, unread = _read_documents(kept, notes, frame, known)
    entries = [entry for one in notes.values() for entry in one.entries] + more
    cycles = list[Entry]()
    for number in range(max(2, frame.cycle - pads.MOST + 1), frame.cycle + 1):  # the latest, if there are many
        time = canonical.rfc3339(frame.start + number / 1000 + 0.0005)
        cycles.append(known_entry(Entry("", "cycle", "", time, frame.session, cycle=number), known))
    cycles += [entry for left in known.values() for entry in left if entry.kind == "cycle"]
    pad, ids_on_pad = fit_entries([*entries, *cycles])
    why = [reason for one in notes.values() for reason in one.why] + unread
    if left := len({entry.id for entry in entries} - ids_on_pad):
        why.append(f"{humanize.format_count(left, 'entry', 'entries')} did not fit on the scratchpad")
    for kind, one in notes.items():
        pairs = [(note, entry if entry and entry.id in ids_on_pad else None) for note, entry in one.pairs]
        notes[kind] = Notes(pairs)
    names = {path: id for path, id in names.items() if id in ids_on_pad}
    return _Parsed(frame, notes, names, pad, why)


def _read_session(source: Folder, file: SessionFile, project: Path | None) -> ForeignSession:
    document, at = file.document, file.path.removesuffix(_STATE)
    place = f"{(source.root / at).relative_to(project).as_posix()}/" if project else ""
    kept = {_KEPT_STATE: b""}  # no file may take its place
    for path in source.below(at):
        name = path.removeprefix(at)
        if name != _STATE:
            kept_name = _kept_name(name)
            why = "kept as it is" if kept_name == f"{SYSTEM}/{name}" else f"kept as {kept_name}"
            source.keep(path, kept_name, file.id, kept, why)
    del kept[_KEPT_STATE]
    parsed = _parse(file.id, document, kept, place)
    source.note(file.path, "imported", "; ".join(parsed.why), file.id)
    session = _with_document(ForeignSession(file.id, project=str(project or "")), document)
    turns = tuple(_make_turns(session, document, parsed.frame))
    session = mapping.with_own_values(session, {**values.mapping(document, OWN_KEY), "pad": {}})
    facts = {"cycle_insights": ", ".join(map(str, values.items(document, "cycle_insights")))}
    facts = {key: value for key, value in facts.items() if value} | mapping.facts_at(document, "thesis.confidence")
    session = replace(session, turns=turns, pad=parsed.pad, kept=kept, facts=facts)
    # A parent is only in the document, because sessions share no passes.
    export = None if session.parent else _as_export(session, document, f"{FOLDER}/{file.id}/")
    original = files.json_document({"id": file.id, "place": place, "session": document})
    return export or replace(session, kept={**kept, _KEPT_STATE: original})


def _as_export(session: ForeignSession, document: Document, at: str) -> ForeignSession | None:
    """Return the session without the files that an export makes of it, if the document is one of our exports of a
    session that came from elsewhere; else None."""
    if OWN_KEY not in document:
        return None
    others = {path: data for path, data in session.kept.items() if not path.startswith(f"{SYSTEM}/")}
    written = write(replace(session, kept=others))
    if files.parse_json(written.get(at + _STATE, b"{}")) != document:
        return None
    own = {
        path: data
        for path, data in session.kept.items()
        if path not in others and written.get(at + path.removeprefix(f"{SYSTEM}/")) != data
    }
    return replace(session, kept={**others, **own})


def _is_list(document: Document, key: str) -> bool:
    """Return whether entries are made of what a key has."""
    return key in LIST_KEYS.values() and isinstance(document.get(key), str | dict if key == "thesis" else list)


def _make_turns(session: ForeignSession, document: Document, frame: Frame) -> Iterator[GivenTurn]:
    """Yield a turn that says what the session is about, and a turn for each pass."""
    yield GivenTurn(session.title or f"Session {session.id}", time=frame.start or None, key=_turn_key(session.id, 0))
    number, latest = 0, frame.start
    for note in values.items(document, "passes"):
        text = note_text(note)
        if not text:
            continue
        number += 1
        time = latest = note_time(note) or latest + 0.001
        form = f"{pass_form(note)} pass, cycle {note_cycle(note) or 1}".lstrip()
        prompt = note_text(note, ("prompt",)) or form[:1].upper() + form[1:]
        model = canonical.one_line(values.text(note, "model"), 100)
        yield GivenTurn(prompt, (), text, model, time, time, _turn_key(session.id, number))


def _turn_key(session: str, number: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{session} {number}"))


def _kept_name(path: str) -> str:
    """Return where a file is kept; a file that an export put into `kept/` returns to its old place."""
    own, other = files.storable_path(path), files.storable_path(path.removeprefix("kept/"))
    return f"{SYSTEM}/{own}" if own == other or other.startswith(f"{SYSTEM}/") else other


# Files that are claims, tensions, theses and context


def _read_documents(
    kept: Mapping[str, bytes], notes: Mapping[str, Notes], frame: Frame, known: KnownEntries
) -> tuple[list[Entry], dict[str, str], list[str]]:
    """Return the entries that only the files of a session have, the ids of entries by the paths of their files, and
    what did not fit."""
    new_entries, names = list[tuple[str, Entry]](), dict[str, str]()

    def add(path: str, kind: str, text: str, number: int, version: int = 0) -> None:
        time = canonical.rfc3339(frame.start + 1 + number / 1000 + 0.0005)
        source = "" if kind in ("file", "thesis") else path
        cut = cut_text(text, longest_text(kind))
        new_entries.append(
            (path, Entry("", kind, cut, time, frame.session, cycle=frame.cycle, source=source, version=version))
        )

    for kind, folder in _DOCUMENT_FOLDERS.items():
        for number, path in enumerate(_paths_below(kept, folder)):
            text = _document_text(kept[f"{SYSTEM}/{path}"])
            # It is of the entry with its id, or with its text.
            stem, own, words = _file_name(path).removesuffix(".md"), notes[kind].pairs, pads.text_key(text)
            known_ones = [entry for note, entry in own if entry and values.text(note, "id") == stem]
            known_ones += [entry for _, entry in own if entry and pads.text_key(entry.text) in words]
            if known_ones:
                names[path] = known_ones[0].id
            else:
                add(path, kind, text, number)
    theses = sorted(
        (int(match[1]), path)
        for path in _paths_below(kept, _THESES)
        if (match := _THESIS_FILE.fullmatch(_file_name(path)))
    )
    if theses and notes["thesis"].entries:
        names[theses[-1][1]] = notes["thesis"].entries[-1].id
    elif theses:
        version, path = theses[-1]
        add(path, "thesis", _document_text(kept[f"{SYSTEM}/{path}"]), 0, version)
    listed = {_file_name(entry.text) for entry in notes["file"].entries}
    for number, path in enumerate(_paths_below(kept, _CONTEXT)):
        if _file_name(path) not in listed:
            add(path, "file", clean_text(frame.places.get(_file_name(path), path)), number)
    entries, left = dict[str, Entry](), 0
    for path, new in new_entries:
        if new.text and len(entries) < _MOST_FILES:
            entry = known_entry(new, known)
            if entry.id not in entries:
                entries[entry.id], names[path] = entry, entry.id
        else:
            left += bool(new.text)
    return list(entries.values()), names, [f"{left} files are not on the pad"] if left else []


def _updated_files(
    kept: Mapping[str, bytes], pairs: Mapping[str, Pairs], pad: Pad, before: _Parsed
) -> dict[str, bytes]:  # fmt: skip
    """Return the files again, without those of removed entries, and with a file for each new one. Files of earlier
    theses stay."""
    present = {entry.id for entry in pad.entries}
    present |= {entry.id for entry in before.notes["thesis"].entries} if pad.of("thesis") else set()
    own = {path.removeprefix(f"{SYSTEM}/"): data for path, data in kept.items() if path.startswith(f"{SYSTEM}/")}
    out = {path: data for path, data in own.items() if path != _STATE and before.names.get(path, "") in ("", *present)}
    for kind in (*_DOCUMENT_FOLDERS, "thesis"):
        known = {entry.id for entry in before.notes[kind].entries} | set(before.names.values())
        for number, (note, entry) in enumerate(pairs[kind], start=1):
            if entry is not None and entry.id not in known:
                id = values.text(note, "id")
                stem = id if _STEM.fullmatch(id) else f"{kind}_{number:03d}"
                folder = _DOCUMENT_FOLDERS.get(kind)
                path = f"{folder}/{stem}.md" if folder else f"{_THESES}/thesis_v{entry.version or 1}.md"
                out[path] = entry.text.encode("utf-8", "replace") + b"\n"
    return out


def _paths_below(kept: Mapping[str, bytes], folder: str) -> list[str]:
    return sorted(path.removeprefix(f"{SYSTEM}/") for path in kept if path.startswith(f"{SYSTEM}/{folder}/"))


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _document_text(data: bytes) -> str:
    """Return the text of a document without its front matter."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return clean_text(_FRONT_MATTER.sub("", text))


# Writing


def write(session: ForeignSession) -> Mapping[str, bytes]:
    """Return the files of the session below a project's folder. Of a conversation they have only the passes."""
    rest = mapping.kept_object(session, _KEPT_STATE)
    was, known = values.mapping(rest, "session"), values.text(rest, "id")
    own, is_same = mapping.source_id(SYSTEM, session, known)
    here, pad = ids.session_id(agent_id(SYSTEM, own)), pads.read_pad(session.pad)
    before = _parse(known or own, was, session.kept, values.text(rest, "place"))
    original = {key: value for key, value in was.items() if is_same or key not in ("created", "updated")}
    if not is_same:
        original.setdefault("current_confidence", 0)
    document = mapping.write_fields(FIELDS, session, original)
    document["id"], cycle = own, pads.current_cycle(pad, here)
    if not is_same or pads.current_cycle(pads.read_pad(before.pad), before.frame.session) != cycle:
        document["cycle"] = cycle
    in_files, pairs, names = set(before.names.values()), dict[str, Pairs](), dict[str, str]()
    for kind, key in LIST_KEYS.items():
        listed = {entry.id for entry in before.notes[kind].entries}
        entries = [entry for entry in pad.of(kind) if entry.id in listed or entry.id not in in_files]
        pairs[kind] = format_notes(kind, entries, before.notes[kind].pairs, names)
        if kind == "claim":
            names = {id: name for name, id in reversed(claim_ids(pairs[kind]).items())}  # what tensions call claims
        if _is_list(was, key) or pairs[kind] or not was:
            notes = [note for note, _ in pairs[kind]]
            document[key] = notes if kind != "thesis" else notes[-1] if notes else None
    counted = {entry.id for kind in pads.COUNTED for entry in before.notes[kind].entries}
    if not was or {entry.id for entry in pad.of(*pads.COUNTED)} - in_files != counted - in_files:
        document["cycle_insights"] = pads.gains_by_cycle(pad, here)
    documents = _updated_files(session.kept, pairs, pad, before)
    own_before = values.mapping(was, OWN_KEY)
    relation = {
        key: own_before[key] for key in ("parent", "branch") if key in own_before and is_same and not session.parent
    }
    # A session that came from there has its end from the import.
    omit = ["created", "updated", "project", "pad", *(["ended"] if is_same and "ended" not in own_before else [])]
    own_values = mapping.own_values(session, _with_document(ForeignSession(session.id), document), omit)
    # The entries of the pad that reading the document and the files would not give back.
    kept = {f"{SYSTEM}/{path}": data for path, data in documents.items()}
    again = _parse(own, {**document, OWN_KEY: None}, kept, f"{FOLDER}/{own}/")
    lines = {entry.line for entry in pads.read_pad(again.pad).entries}
    unread = {entry_identity(entry) for entry in pad.entries if entry.line not in lines}
    lists, _ = fit_entries(entry for entry in pad.entries if entry_identity(entry) in unread)
    texts = {name: data.decode("utf-8", "replace") for name, data in sorted(lists.items())}
    document[OWN_KEY] = ({"pad": texts} if texts else {}) | relation | own_values
    if not document[OWN_KEY]:
        del document[OWN_KEY]
    others = {f"kept/{path}": data for path, data in session.kept.items() if not path.startswith(f"{SYSTEM}/")}
    out = {**others, **documents, _STATE: files.json_document(document)}
    return {f"{FOLDER}/{own}/{name}": data for name, data in sorted(out.items())}


LIST_KEYS = {
    "claim": "claims", "tension": "tensions", "thesis": "thesis", "pass": "passes", "insight": "insights",
    "evidence": "evidence", "risk": "risks", "counter": "counters", "pattern": "patterns", "question": "questions",
    "confidence": "confidence_history", "file": "context_files",
}  # fmt: skip
"""The key of each kind of entry in session.json; a session has one thesis, not a list."""
_OBJECT_KINDS = ("claim", "tension", "thesis", "pass")
"""Kinds whose new notes are objects; the others are texts, and numbers for the confidence."""
_TEXT_KEYS = (
    "text", "content", "claim", "tension", "question", "statement", "summary", "output", "result", "description",
    "path", "file", "title", "name",
)  # fmt: skip
_TIME_KEYS = ("created", "created_at", "createdAt", "timestamp", "time", "date")
_FORM_KEYS = ("type", "pass", "form", "kind", "mode", "name")
_REFERENCE_LISTS = ("between", "claims", "claim_ids", "claimIds", "positions")
_REFERENCE_KEYS = ("claim_a", "claim_b", "a", "b", "left", "right")
_RESOLVED_STATES = ("resolved", "closed", "settled", "answered", "synthesized")
_ANSWER_KEYS = ("resolution", "answer", "resolved_by", "synthesis")
_RESOLUTION_KEYS = ("resolved", "status", "resolved_at", *_ANSWER_KEYS)
_FIRST_PASS = 2
"""The turn of the first pass: turn 1 says what the session is about."""

KnownEntries = dict[str, list[Entry]]
"""Entries that an export stored, by `entry_identity`."""
Pairs = list[tuple[Any, Entry | None]]
"""The notes of a list, each with its entry if it has one."""


@frozen
class Frame:
    """What all notes of a session share: the session's id here, its start in seconds, and its current cycle.

    `gained` counts the insights of each cycle; `places` maps names of files in `context/` to their paths.
    """

    session: str
    start: float
    cycle: int
    gained: tuple[int, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


@frozen
class Notes:
    """The notes of a list, each with its entry if it has one, and what did not fit."""

    pairs: Pairs = field(default_factory=list)
    why: tuple[str, ...] = ()

    @property
    def entries(self) -> list[Entry]:
        """The entries, in order."""
        return [entry for _, entry in self.pairs if entry is not None]


# Reading


def parse_notes(
    kind: str, notes: Sequence[Any], frame: Frame, claims: Mapping[str, str], known: KnownEntries
) -> Notes:  # fmt: skip
    """Return the entries of a list. `claims` are ids of entries by what tensions call them; entries in `known` are used
    instead of equal new ones, and removed there."""
    pairs, ids, cut, turn = Pairs(), set[str](), 0, _FIRST_PASS
    is_percent = kind == "confidence" and any(type(note) in (int, float) and 1 < note <= 100 for note in notes)
    for number, note in enumerate(notes):
        entry = _make_entry(kind, note, number, frame, claims)
        if kind == "confidence" and entry is not None:
            value = (entry.value or 0) / (100 if is_percent else 1)
            entry = replace(entry, value=round(value, 6)) if 0 <= value <= 1 else None
        if entry is not None:
            entry = known_entry(replace(entry, turn=turn) if kind == "pass" else entry, known)
            turn += 1
        if entry is None or entry.id in ids:
            pairs.append((note, None))
            continue
        ids.add(entry.id)
        cut += len(clean_text(note_text(note))) > longest_text(kind)
        pairs.append((note, entry))
    name, why = pads.LISTS[kind], []
    if cut:
        why.append(f"{name} has {cut} that are longer than {longest_text(kind):,} characters: cut")
    if (over := len(ids) - pads.MOST) > 0:
        why.append(f"{name} has {len(ids):,} entries: the last {pads.MOST} are on the pad")
        old = {entry.id for entry in [entry for _, entry in pairs if entry is not None][:over]}
        pairs = [(note, None if entry is not None and entry.id in old else entry) for note, entry in pairs]
    return Notes(pairs, tuple(why))


def entry_identity(entry: Entry) -> str:
    """Return what an entry shares with the one that is read again after an export."""
    return f"{entry.kind} {({'cycle': entry.cycle, 'confidence': entry.value}).get(entry.kind, entry.text)}"


def known_entry(entry: Entry, known: KnownEntries) -> Entry:
    """Return the entry as an export stored it, and remove that from `known`; else the entry with its id and line."""
    if stored := known.get(entry_identity(entry)):
        return stored.pop(0)
    return pads.entry_with_line(entry)


def note_text(note: Any, keys: Sequence[str] = _TEXT_KEYS) -> str:
    """Return the text of a note, or of the first of the keys that has one; else ``""``."""
    if isinstance(note, dict):
        return next((text for key in keys if (text := values.text(note, key)).strip()), "")
    return note if isinstance(note, str) and keys is _TEXT_KEYS else ""


def clean_text(text: str) -> str:
    """Return the text as an entry can have it."""
    plain = canonical.without_sequences(text).replace("\r\n", "\n").expandtabs(4)
    return "\n".join(line.rstrip() for line in canonical.printable(plain).split("\n")).strip()


def pass_form(note: Any) -> str:
    """Return the kind of a pass as the note names it, or ``""``."""
    return canonical.one_line(values.text(note, *_FORM_KEYS), 40).lower()


def note_time(note: Any) -> float | None:
    """Return the time that a note has, in seconds since 1970."""
    return values.seconds(note, *_TIME_KEYS)


def note_cycle(note: Any) -> int | None:
    """Return the cycle that a note has."""
    cycle = values.count(note, "cycle")
    return cycle if 1 <= cycle <= pads.LATEST_CYCLE else None


def claim_ids(pairs: Pairs) -> dict[str, str]:
    """Return the ids of the entries of claims by what tensions call them: own id, place as `claim_001`, text."""
    out = dict[str, str]()
    for number, (note, entry) in enumerate(pairs):
        own = values.value_at(note, "id")
        if entry is not None:
            for name in (str(own) if isinstance(own, str | int) else "", _default_name("claim", number), entry.text):
                out.setdefault(name, entry.id)
    out.pop("", None)
    return out


def fit_entries(entries: Iterable[Entry]) -> tuple[dict[str, bytes], set[str]]:
    """Return the lists of a pad with as many of the entries as fit, and the ids of these."""
    lists, size, ids = dict[str, list[bytes]](), 0, set[str]()
    for entry in entries:
        if size + len(entry.line) + 1 <= pads.LARGEST:
            size += len(entry.line) + 1
            lists.setdefault(pads.LISTS[entry.kind], []).append(entry.line)
            ids.add(entry.id)
    return {name: canonical.join_lines(lines) for name, lines in lists.items()}, ids


def longest_text(kind: str) -> int:
    """Return how many characters an entry of a kind may have."""
    return pads.LONGEST_DOCUMENT if kind in ("thesis", "pass") else pads.LONGEST


def cut_text(text: str, longest: int) -> str:
    """Return the text with at most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _make_entry(kind: str, note: Any, number: int, frame: Frame, claims: Mapping[str, str]) -> Entry | None:
    """Return the entry of a note, without id and line, None if the note is not one."""
    text = clean_text(note_text(note))
    if kind == "file":
        text = frame.places.get(text.rpartition("/")[2], text)
    # A list without times: by its place each entry has a time of its own, which stays when the list grows.
    at = note_time(note)
    time = canonical.rfc3339(frame.start + number / 1000 + 0.0005 if at is None else at)
    cycle = note_cycle(note) or _default_cycle(kind, number, frame)
    entry = Entry("", kind, cut_text(text, longest_text(kind)), time, frame.session, cycle=cycle)
    if kind == "confidence":
        value = values.to_number(note.get("value", note.get("confidence")) if isinstance(note, dict) else note)
        return None if value is None else replace(entry, value=value)
    if not text:
        return None
    if kind == "thesis":
        entry = replace(entry, version=values.count(note, "version") or number + 1)
    if not isinstance(note, dict):
        return entry
    source = note.get("source", note.get("sources"))
    if isinstance(source, list):
        source = ", ".join(values.texts(source))
    entry = replace(entry, source=cut_text(clean_text(note_text(source)), pads.LONGEST))
    if kind == "tension":
        references = [reference for key in _REFERENCE_LISTS for reference in values.items(note, key)]
        references += [note.get(key) for key in _REFERENCE_KEYS]
        names = [one.get("id") or clean_text(note_text(one)) if isinstance(one, dict) else one for one in references]
        between = dict.fromkeys(claims[str(name)] for name in names if str(name) in claims)
        entry = replace(entry, between=tuple(between))
    is_resolved = note.get("resolved") is True or bool(values.text(note, "resolved"))
    is_resolved |= values.text(note, "status").lower() in _RESOLVED_STATES
    if kind in pads.RESOLVABLE and is_resolved:
        answers = (clean_text(note_text(note.get(key))) for key in _ANSWER_KEYS)
        answer = cut_text(next(filter(None, answers), ""), pads.LONGEST)
        entry = replace(entry, resolved=values.to_time(note.get("resolved_at")) or entry.time, answer=answer)
    if kind == "pass" and pass_form(note) in pads.PASSES:
        entry = replace(entry, form=pass_form(note))
    return entry


def _default_cycle(kind: str, number: int, frame: Frame) -> int:
    """Return the cycle of a note that has none."""
    if kind in ("confidence", "pass"):
        return 1
    if kind == "insight":
        for cycle, gained in enumerate(frame.gained[: frame.cycle], start=1):
            number -= gained
            if number < 0:
                return cycle
    return frame.cycle


def _default_name(kind: str, number: int) -> str:
    return f"{kind}_{number + 1:03d}"


# Writing


def format_notes(
    kind: str, entries: Sequence[Entry], original: Pairs, names: Mapping[str, str]
) -> Pairs:  # fmt: skip
    """Return the list again: the original notes whose entries are still there or that never had one, and new ones.
    `names` are the names of claims by the ids of entries."""
    by_id, out = {entry.id: entry for entry in entries}, Pairs()
    for note, old in original:
        if old is None:
            out.append((note, None))
        elif entry := by_id.pop(old.id, None):
            out.append((_updated_note(note, old, entry), entry))
    for entry in by_id.values():
        note = _entry_object(entry, len(out), names) if kind in _OBJECT_KINDS else _plain_note(entry)
        out.append((note, entry))
    return out


def _updated_note(note: Any, old: Entry, entry: Entry) -> Any:
    """Return the note; as the entry has it if it was resolved or reopened since."""
    if not isinstance(note, dict) or bool(old.resolved) == bool(entry.resolved):
        return note
    resolution = {key: value for key, value in _entry_object(entry, 0, {}).items() if key in _RESOLUTION_KEYS}
    if values.text(note.get("status")):
        resolution["status"] = "resolved" if entry.resolved else "open"
    return {key: value for key, value in note.items() if key not in _RESOLUTION_KEYS} | resolution


def _plain_note(entry: Entry) -> Any:
    return entry.value if entry.kind == "confidence" else entry.text


def _entry_object(entry: Entry, number: int, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry as an object with the usual keys."""
    kind = entry.kind
    out: dict[str, Any] = {"id": _default_name(kind, number)} if kind in ("claim", "tension") else {}
    if kind == "thesis":
        out = {"id": f"thesis_v{entry.version or 1}"}
    if entry.form:
        out["type"] = entry.form
    if kind == "thesis":
        out["version"] = entry.version
    key = "value" if kind == "confidence" else "content" if kind in ("thesis", "pass") else "text"
    out[key] = _plain_note(entry)
    if entry.source:
        out["source"] = entry.source
    if kind == "tension":
        out["between"] = [names[one] for one in entry.between if one in names]
    if kind in pads.RESOLVABLE:
        out["resolved"] = bool(entry.resolved)
        out |= {"resolved_at": entry.resolved} if entry.resolved else {}
        out |= {"resolution": entry.answer} if entry.answer else {}
    return {**out, "cycle": entry.cycle, "created": entry.time}
