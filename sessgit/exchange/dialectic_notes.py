"""Converts the notes of a dialectic session to entries of a scratchpad, and entries to notes.

The format does not say what a claim, a tension, a thesis or a pass looks like: a text, or an object with one of the
usual keys, is accepted. An import keeps the notes; an export writes them again as they were, unless their entries were
resolved or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.exchange import values
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.pad import Entry

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


@dataclass(frozen=True, slots=True)
class Frame:
    """What all notes of a session share: the session's id here, its start in seconds, and its current cycle.

    `gained` counts the insights of each cycle; `places` maps names of files in `context/` to their paths.
    """

    session: str
    start: float
    cycle: int
    gained: tuple[int, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
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


def claim_names(claims: Mapping[str, str]) -> dict[str, str]:
    """Return what tensions call claims, by the ids of their entries."""
    return {id: name for name, id in reversed(list(claims.items()))}


def fit_entries(entries: Iterable[Entry]) -> tuple[dict[str, bytes], set[str]]:
    """Return the lists of a pad with as many of the entries as fit, and the ids of these."""
    lists, size, ids = dict[str, list[bytes]](), 0, set[str]()
    for entry in entries:
        if size + len(entry.line) + 1 <= pads.LARGEST:
            size += len(entry.line) + 1
            lists.setdefault(pads.LISTS[entry.kind], []).append(entry.line)
            ids.add(entry.id)
    return {name: pads.join_list(lines) for name, lines in lists.items()}, ids


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
        source = ", ".join(values.to_texts(source))
    entry = replace(entry, source=cut_text(clean_text(note_text(source)), pads.LONGEST))
    if kind == "tension":
        entry = replace(entry, between=_claims_of(note, claims))
    if kind in pads.RESOLVABLE and _is_resolved(note):
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


def _is_resolved(note: Mapping[str, Any]) -> bool:
    resolved = note.get("resolved")
    is_set = resolved is True or bool(values.to_text(resolved))
    return is_set or values.text(note, "status").lower() in _RESOLVED_STATES


def _claims_of(note: Mapping[str, Any], claims: Mapping[str, str]) -> tuple[str, ...]:
    references = [reference for key in _REFERENCE_LISTS for reference in values.items(note, key)]
    references += [note.get(key) for key in _REFERENCE_KEYS]
    names = [one.get("id") or clean_text(note_text(one)) if isinstance(one, dict) else one for one in references]
    return tuple(dict.fromkeys(claims[str(name)] for name in names if str(name) in claims))


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
    if values.to_text(note.get("status")):
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
