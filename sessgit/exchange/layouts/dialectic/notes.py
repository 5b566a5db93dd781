"""What a dialectic session notes as entries of a scratchpad, and entries as it notes them.

It says of a claim, a tension, a thesis and a pass only that they are there: each is taken as a text, or as an object
with one of the usual keys. What an entry has no place for is the rest: with it a list comes back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.difference import apply_difference, object_difference
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.pad import Entry

LIST_KEYS = {
    "claim": "claims", "tension": "tensions", "thesis": "thesis", "pass": "passes", "insight": "insights",
    "evidence": "evidence", "risk": "risks", "counter": "counters", "pattern": "patterns", "question": "questions",
    "confidence": "confidence_history", "file": "context_files",
}  # fmt: skip
"""The key of each kind of entry in session.json; a session has one thesis, which is no list."""
_OBJECT_KINDS = ("claim", "tension", "thesis", "pass")
"""What is an object where nothing else is known."""
_TEXT_KEYS = ("text", "content", "claim", "tension", "question", "statement", "summary", "output", "result",
    "description",
          "path", "file", "title", "name")  # fmt: skip
_TIME_KEYS = ("created", "created_at", "createdAt", "timestamp", "time", "date")
_FORM_KEYS = ("type", "pass", "form", "kind", "mode", "name")
_REFERENCE_KEYS = ("between", "claims", "claim_ids", "claimIds", "positions")
_SINGLE_REFERENCE_KEYS = ("claim_a", "claim_b", "a", "b", "left", "right")
_RESOLVED_STATES = ("resolved", "closed", "settled", "answered", "synthesized")
_ANSWER_KEYS = ("resolution", "answer", "resolved_by", "synthesis")
_RESOLUTION_KEYS = ("resolved", "status", "resolved_at", *_ANSWER_KEYS)
"""What of an object says whether it is settled."""

FIRST_PASS = 2
"""The turn of the first pass: the one before it says what it is all about."""

KnownEntries = dict[str, list[Entry]]
"""Entries as an export noted them, by `entry_identity`."""
ValueEntryPairs = dict[str, list[tuple[Any, Entry | None]]]
"""Each value of a list with its entry, where it has one, by kind."""
Item = dict[str, Any]
"""What of one thing in a list an entry does not say: `entry` is the entry's id, without one it is all of it."""


@dataclass(frozen=True, slots=True)
class SessionFrame:
    """What holds for all that a session notes: whose it is, its first moment in seconds, and its cycle now.

    `gained` counts the insights of each cycle, `places` says where files lie of which only the name is noted.
    """

    session: str
    start: float
    cycle: int
    gained: tuple[int, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedNotes:
    """Entries in the order of their list with what is left, and words for what did not fit."""

    entries: tuple[Entry, ...] = ()
    items: tuple[Item, ...] = ()
    why: tuple[str, ...] = ()


# Reading


def parse_notes(
    kind: str, values: Sequence[Any], frame: SessionFrame, claims: Mapping[str, str], known: KnownEntries
) -> ParsedNotes:
    """The entries that a list says. `claims` are ids of entries by what a tension calls them; of `known` those that it
    says too are taken away."""
    entries, items, ids = list[Entry](), list[Item](), set[str]()
    many, turn = 0, FIRST_PASS - 1
    scale = _confidence_scale(values) if kind == "confidence" else 1
    for number, value in enumerate(values):
        entry = _make_entry(kind, value, number, frame, claims, scale)
        if entry is None:
            items.append({"whole": value})
            continue
        turn += 1
        entry = known_entry(replace(entry, turn=turn) if kind == "pass" else entry, known)
        if entry.id in ids:
            items.append({"whole": value})
            continue
        many += len(note_text(value)) > longest_text(kind)
        ids.add(entry.id)
        entries.append(entry)
        items.append(_leftover_item(entry, value, number, claims))
    name = pads.LISTS[kind]
    why = [f"{name} has {many} that are longer than {longest_text(kind):,} characters: cut"] if many else []
    if len(entries) > pads.MOST:
        why.append(f"{name} has {len(entries):,} entries: the last {pads.MOST} are on the pad")
        gone = {entry.id for entry in entries[: -pads.MOST]}
        items = [
            {"whole": value} if item.get("entry") in gone else item for item, value in zip(items, values, strict=True)
        ]
        entries = entries[-pads.MOST :]
    return ParsedNotes(tuple(entries), tuple(items), tuple(why))


def entry_identity(entry: Entry) -> str:
    """What an entry has in common with the one that it is read as again."""
    said = {"cycle": entry.cycle, "confidence": entry.value}.get(entry.kind, entry.text)
    return f"{entry.kind} {said}"


def known_entry(entry: Entry, known: KnownEntries) -> Entry:
    """The entry with its line, as an export noted it where one did, which is taken away then."""
    found = known.get(entry_identity(entry))
    if found:
        return found.pop(0)
    if entry.kind == "cycle":
        return pads.entry_with_line(entry)
    # What says no cycle is in the one of now, and has its id still when another one has begun.
    return pads.entry_with_line(replace(pads.entry_with_line(replace(entry, cycle=1)), cycle=entry.cycle))


def note_text(value: Any) -> str:
    """The text of something noted as an entry can have it, or ``""``."""
    return entry_text(full_note_text(value))


def full_note_text(value: Any, *keys: str) -> str:
    """The text of something noted, or of the first of the keys that has one; else ``""``."""
    if isinstance(value, dict):
        return next((value[key] for key in keys or _TEXT_KEYS if files.text_or_empty(value.get(key)).strip()), "")
    return value if isinstance(value, str) and not keys else ""


def entry_text(text: str) -> str:
    """The text as an entry can have it."""
    plain = canonical.without_sequences(text).replace("\r\n", "\n").expandtabs(4)
    lines = canonical.printable(plain).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()


def pass_form(value: Any) -> str:
    """What kind of pass it was, as it says, or ``""``."""
    found = (
        next((value[key] for key in _FORM_KEYS if files.text_or_empty(value.get(key))), "")
        if isinstance(value, dict)
        else ""
    )
    return canonical.one_line(found, 40).lower()


def note_time(value: Any) -> float | None:
    """When something was noted, as it says itself, in seconds since 1970."""
    found = (files.parse_seconds(value.get(key)) for key in _TIME_KEYS) if isinstance(value, dict) else iter(())
    return next((time for time in found if time is not None), None)


def note_cycle(value: Any) -> int | None:
    """The cycle in which something was noted, as it says itself."""
    found = files.count_or_zero(value.get("cycle")) if isinstance(value, dict) else 0
    return found if 1 <= found <= pads.LATEST_CYCLE else None


def claim_ids_by_name(pairs: Iterable[tuple[Any, Entry | None]]) -> dict[str, str]:
    """The ids of the entries of claims by what tensions call them: their own ids, their places as `claim_001`, their
    words."""
    out = dict[str, str]()
    for number, (value, entry) in enumerate(pairs):
        own = value.get("id") if isinstance(value, dict) else None
        if entry is not None:
            for name in (str(own) if isinstance(own, str | int) else "", _default_name("claim", number), entry.text):
                out.setdefault(name, entry.id)
    out.pop("", None)
    return out


def claim_names_by_id(claims: Mapping[str, str]) -> dict[str, str]:
    """What tensions call claims, by the ids of their entries."""
    return {ident: name for name, ident in reversed(list(claims.items()))}


def pair_with_entries(values: Sequence[Any], noted: ParsedNotes) -> list[tuple[Any, Entry | None]]:
    """Each value with its entry, where it has one."""
    by_id = {entry.id: entry for entry in noted.entries}
    return [(value, by_id.get(item.get("entry", ""))) for value, item in zip(values, noted.items, strict=True)]


def fit_entries(entries: Iterable[Entry]) -> tuple[dict[str, bytes], set[str]]:
    """The lists of a pad with as many of the entries as it takes, and the ids of these."""
    lists, size, on = dict[str, list[bytes]](), 0, set[str]()
    for entry in entries:
        if size + len(entry.line) + 1 <= pads.LARGEST:
            size += len(entry.line) + 1
            lists.setdefault(pads.LISTS[entry.kind], []).append(entry.line)
            on.add(entry.id)
    return {name: pads.join_list(lines) for name, lines in lists.items()}, on


def _make_entry(
    kind: str, value: Any, number: int, frame: SessionFrame, claims: Mapping[str, str], scale: float
) -> Entry | None:  # fmt: skip
    text = note_text(value)
    if kind == "file":
        text = frame.places.get(text.rpartition("/")[2], text)
    # A list says no times: by its place each entry has another one, and keeps it when the list grows.
    at = note_time(value)
    time = canonical.rfc3339(frame.start + number / 1000 + 0.0005 if at is None else at)
    entry = Entry(
        "",
        kind,
        cut_text(text, longest_text(kind)),
        time,
        frame.session,
        cycle=note_cycle(value) or _default_cycle(kind, number, frame),
    )
    if kind == "confidence":
        found = files.number_or_none(value.get("value", value.get("confidence")) if isinstance(value, dict) else value)
        if found is None or not 0 <= found / scale <= 1:
            return None
        return replace(entry, value=round(found / scale, 6))
    if not text:
        return None
    if not isinstance(value, dict):
        return replace(entry, version=number + 1) if kind == "thesis" else entry
    source = value.get("source", value.get("sources"))
    if isinstance(source, list):
        source = ", ".join(files.nonempty_texts(source))
    entry = replace(entry, source=cut_text(note_text(source), pads.LONGEST))
    if kind == "tension":
        entry = replace(entry, between=_claim_ids(value, claims))
    if kind in pads.RESOLVABLE and _is_settled(value):
        answer = next((note_text(value[key]) for key in _ANSWER_KEYS if note_text(value.get(key))), "")
        settled = files.format_time(value.get("resolved_at")) or entry.time
        entry = replace(entry, resolved=settled, answer=cut_text(answer, pads.LONGEST))
    if kind == "pass":
        entry = replace(entry, form=pass_form(value) if pass_form(value) in pads.PASSES else "")
    if kind == "thesis":
        entry = replace(entry, version=files.count_or_zero(value.get("version")) or number + 1)
    return entry


def _default_cycle(kind: str, number: int, frame: SessionFrame) -> int:
    """The cycle of what says none."""
    if kind in ("confidence", "pass"):
        return 1
    if kind == "insight":
        for place, gained in enumerate(frame.gained[: frame.cycle], start=1):
            number -= gained
            if number < 0:
                return place
    return frame.cycle


def _is_settled(value: Mapping[str, Any]) -> bool:
    found = value.get("resolved")
    return (
        found is True
        or bool(files.text_or_empty(found))
        or files.text_or_empty(value.get("status")).lower() in _RESOLVED_STATES
    )


def _claim_ids(value: Mapping[str, Any], claims: Mapping[str, str]) -> tuple[str, ...]:
    refs = [ref for key in _REFERENCE_KEYS for ref in files.list_or_empty(value.get(key))] + [
        value.get(key) for key in _SINGLE_REFERENCE_KEYS
    ]
    names = [ref.get("id") or note_text(ref) if isinstance(ref, dict) else ref for ref in refs]
    return tuple(dict.fromkeys(claims[str(name)] for name in names if str(name) in claims))


def _confidence_scale(values: Sequence[Any]) -> float:
    """What stands for sure: 1, or 100 where confidence is in percent."""
    return 100 if any(type(value) in (int, float) and 1 < value <= 100 for value in values) else 1


def longest_text(kind: str) -> int:
    """How many characters an entry of a kind may have."""
    return pads.LONGEST_DOCUMENT if kind in ("thesis", "pass") else pads.LONGEST


def cut_text(text: str, longest: int) -> str:
    """The text with no more than so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _default_name(kind: str, number: int) -> str:
    return f"{kind}_{number + 1:03d}"


def _leftover_item(entry: Entry, value: Any, number: int, claims: Mapping[str, str]) -> Item:
    item: Item = {"entry": entry.id}
    if isinstance(value, dict):
        settled = {"settled": True} if entry.resolved else {}
        return {
            **item,
            "object": True,
            **settled,
            **object_difference(value, _entry_object(entry, number, claim_names_by_id(claims))),
        }
    plain = _plain_value(entry)
    return item if type(value) is type(plain) and value == plain else {**item, "value": value}


# Writing


def format_notes(
    kind: str, entries: Sequence[Entry], items: Sequence[Mapping[str, Any]], claims: Mapping[str, str]
) -> list[tuple[Any, Entry | None]]:
    """The list again, with the entry of each value. `claims` are the names of claims by the ids of entries."""
    by_id, out = {entry.id: entry for entry in entries}, list[tuple[Any, Entry | None]]()
    for item in items:
        if "whole" in item:
            out.append((item["whole"], None))
            continue
        entry = by_id.pop(files.text_or_empty(item.get("entry")), None)
        if entry is not None:
            out.append((_restored_value(entry, item, len(out), claims), entry))
    for entry in entries:
        if entry.id in by_id:
            value = _entry_object(entry, len(out), claims) if kind in _OBJECT_KINDS else _plain_value(entry)
            out.append((value, entry))
    return out


def _restored_value(entry: Entry, item: Mapping[str, Any], number: int, claims: Mapping[str, str]) -> Any:
    if item.get("object") is not True:
        return item.get("value", _plain_value(entry))
    found = _entry_object(entry, number, claims)
    if bool(entry.resolved) == (item.get("settled") is True):
        return apply_difference(found, item)
    kept = {key: one for key, one in files.dict_or_empty(item.get("set")).items() if key not in _RESOLUTION_KEYS}
    gone = [key for key in files.nonempty_texts(item.get("unset")) if key not in _RESOLUTION_KEYS]
    return apply_difference(found, {"set": kept, "unset": gone})


def _plain_value(entry: Entry) -> Any:
    return entry.value if entry.kind == "confidence" else entry.text


def _entry_object(entry: Entry, number: int, claims: Mapping[str, str]) -> Item:
    """An entry as an object, with the keys that say most."""
    out: Item = {"id": _default_name(entry.kind, number)} if entry.kind in ("claim", "tension") else {}
    if entry.kind == "pass":
        out |= {"type": entry.form} if entry.form else {}
    if entry.kind == "thesis":
        out["version"] = entry.version
    if entry.kind == "confidence":
        out["value"] = entry.value
    else:
        out["content" if entry.kind in ("thesis", "pass") else "text"] = entry.text
    if entry.source:
        out["source"] = entry.source
    if entry.kind == "tension":
        out["between"] = [claims[one] for one in entry.between if one in claims]
    if entry.kind in pads.RESOLVABLE:
        out["resolved"] = bool(entry.resolved)
        out |= {"resolved_at": entry.resolved} if entry.resolved else {}
        out |= {"resolution": entry.answer} if entry.answer else {}
    return {**out, "cycle": entry.cycle, "created": entry.time}
