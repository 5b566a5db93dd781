"""What a dialectic session notes as entries of a scratchpad, and entries as it notes them.

It says of a claim, a tension, a thesis and a pass only that they are there: each is taken as a text, or as an object
with one of the usual keys. What an entry has no place for is the rest: with it a list comes back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.difference import less, more
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.pad import Entry

LISTS = {
    "claim": "claims", "tension": "tensions", "thesis": "thesis", "pass": "passes", "insight": "insights",
    "evidence": "evidence", "risk": "risks", "counter": "counters", "pattern": "patterns", "question": "questions",
    "confidence": "confidence_history", "file": "context_files",
}  # fmt: skip
"""The key of each kind of entry in session.json; a session has one thesis, which is no list."""
_OBJECTS = ("claim", "tension", "thesis", "pass")
"""What is an object where nothing else is known."""
_TEXTS = ("text", "content", "claim", "tension", "question", "statement", "summary", "output", "result", "description",
          "path", "file", "title", "name")  # fmt: skip
_TIMES = ("created", "created_at", "createdAt", "timestamp", "time", "date")
_FORMS = ("type", "pass", "form", "kind", "mode", "name")
_REFERENCES = ("between", "claims", "claim_ids", "claimIds", "positions")
_SINGLE = ("claim_a", "claim_b", "a", "b", "left", "right")
_SETTLED = ("resolved", "closed", "settled", "answered", "synthesized")
_ANSWERS = ("resolution", "answer", "resolved_by", "synthesis")
_SETTLING = ("resolved", "status", "resolved_at", *_ANSWERS)
"""What of an object says whether it is settled."""

FIRST_PASS = 2
"""The turn of the first pass: the one before it says what it is all about."""

Known = dict[str, list[Entry]]
"""Entries as an export noted them, by `same`."""
Pairs = dict[str, list[tuple[Any, Entry | None]]]
"""Each value of a list with its entry, where it has one, by kind."""
Item = dict[str, Any]
"""What of one thing in a list an entry does not say: `entry` is the entry's id, without one it is all of it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What holds for all that a session notes: whose it is, its first moment in seconds, and its cycle now.

    `gained` counts the insights of each cycle, `places` says where files lie of which only the name is noted.
    """

    session: str
    start: float
    cycle: int
    gained: tuple[int, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Noted:
    """Entries in the order of their list with what is left, and words for what did not fit."""

    entries: tuple[Entry, ...] = ()
    items: tuple[Item, ...] = ()
    why: tuple[str, ...] = ()


# Reading


def read(kind: str, values: Sequence[Any], frame: Frame, claims: Mapping[str, str], known: Known) -> Noted:
    """The entries that a list says. `claims` are ids of entries by what a tension calls them; of `known` those that it
    says too are taken away."""
    entries, items, ids = list[Entry](), list[Item](), set[str]()
    many, turn = 0, FIRST_PASS - 1
    scale = _scale(values) if kind == "confidence" else 1
    for number, value in enumerate(values):
        entry = _entry(kind, value, number, frame, claims, scale)
        if entry is None:
            items.append({"whole": value})
            continue
        turn += 1
        entry = as_known(replace(entry, turn=turn) if kind == "pass" else entry, known)
        if entry.id in ids:
            items.append({"whole": value})
            continue
        many += len(words(value)) > longest(kind)
        ids.add(entry.id)
        entries.append(entry)
        items.append(_item(entry, value, number, claims))
    name = pads.LISTS[kind]
    why = [f"{name} has {many} that are longer than {longest(kind):,} characters: cut"] if many else []
    if len(entries) > pads.MOST:
        why.append(f"{name} has {len(entries):,} entries: the last {pads.MOST} are on the pad")
        gone = {entry.id for entry in entries[: -pads.MOST]}
        items = [
            {"whole": value} if item.get("entry") in gone else item for item, value in zip(items, values, strict=True)
        ]
        entries = entries[-pads.MOST :]
    return Noted(tuple(entries), tuple(items), tuple(why))


def same(entry: Entry) -> str:
    """What an entry has in common with the one that it is read as again."""
    said = {"cycle": entry.cycle, "confidence": entry.value}.get(entry.kind, entry.text)
    return f"{entry.kind} {said}"


def as_known(entry: Entry, known: Known) -> Entry:
    """The entry with its line, as an export noted it where one did, which is taken away then."""
    found = known.get(same(entry))
    if found:
        return found.pop(0)
    if entry.kind == "cycle":
        return pads.written(entry)
    # What says no cycle is in the one of now, and has its id still when another one has begun.
    return pads.written(replace(pads.written(replace(entry, cycle=1)), cycle=entry.cycle))


def words(value: Any) -> str:
    """The text of something noted as an entry can have it, or ``""``."""
    return sayable(whole(value))


def whole(value: Any, *keys: str) -> str:
    """The text of something noted, or of the first of the keys that has one; else ``""``."""
    if isinstance(value, dict):
        return next((value[key] for key in keys or _TEXTS if files.text(value.get(key)).strip()), "")
    return value if isinstance(value, str) and not keys else ""


def sayable(text: str) -> str:
    """The text as an entry can have it."""
    plain = canonical.without_sequences(text).replace("\r\n", "\n").expandtabs(4)
    lines = canonical.printable(plain).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()


def form(value: Any) -> str:
    """What kind of pass it was, as it says, or ``""``."""
    found = next((value[key] for key in _FORMS if files.text(value.get(key))), "") if isinstance(value, dict) else ""
    return canonical.one_line(found, 40).lower()


def moment(value: Any) -> float | None:
    """When something was noted, as it says itself, in seconds since 1970."""
    found = (files.seconds(value.get(key)) for key in _TIMES) if isinstance(value, dict) else iter(())
    return next((time for time in found if time is not None), None)


def cycle(value: Any) -> int | None:
    """The cycle in which something was noted, as it says itself."""
    found = files.whole(value.get("cycle")) if isinstance(value, dict) else 0
    return found if 1 <= found <= pads.LATEST_CYCLE else None


def called(pairs: Iterable[tuple[Any, Entry | None]]) -> dict[str, str]:
    """The ids of the entries of claims by what tensions call them: their own ids, their places as `claim_001`, their
    words."""
    out = dict[str, str]()
    for number, (value, entry) in enumerate(pairs):
        own = value.get("id") if isinstance(value, dict) else None
        if entry is not None:
            for name in (str(own) if isinstance(own, str | int) else "", _name("claim", number), entry.text):
                out.setdefault(name, entry.id)
    out.pop("", None)
    return out


def names(claims: Mapping[str, str]) -> dict[str, str]:
    """What tensions call claims, by the ids of their entries."""
    return {ident: name for name, ident in reversed(list(claims.items()))}


def paired(values: Sequence[Any], noted: Noted) -> list[tuple[Any, Entry | None]]:
    """Each value with its entry, where it has one."""
    by_id = {entry.id: entry for entry in noted.entries}
    return [(value, by_id.get(item.get("entry", ""))) for value, item in zip(values, noted.items, strict=True)]


def fitting(entries: Iterable[Entry]) -> tuple[dict[str, bytes], set[str]]:
    """The lists of a pad with as many of the entries as it takes, and the ids of these."""
    lists, size, on = dict[str, list[bytes]](), 0, set[str]()
    for entry in entries:
        if size + len(entry.line) + 1 <= pads.LARGEST:
            size += len(entry.line) + 1
            lists.setdefault(pads.LISTS[entry.kind], []).append(entry.line)
            on.add(entry.id)
    return {name: pads.joined(lines) for name, lines in lists.items()}, on


def _entry(
    kind: str, value: Any, number: int, frame: Frame, claims: Mapping[str, str], scale: float
) -> Entry | None:  # fmt: skip
    text = words(value)
    if kind == "file":
        text = frame.places.get(text.rpartition("/")[2], text)
    # A list says no times: by its place each entry has another one, and keeps it when the list grows.
    at = moment(value)
    time = canonical.rfc3339(frame.start + number / 1000 + 0.0005 if at is None else at)
    entry = Entry(
        "", kind, cut(text, longest(kind)), time, frame.session, cycle=cycle(value) or _cycle(kind, number, frame)
    )
    if kind == "confidence":
        found = files.number(value.get("value", value.get("confidence")) if isinstance(value, dict) else value)
        if found is None or not 0 <= found / scale <= 1:
            return None
        return replace(entry, value=round(found / scale, 6))
    if not text:
        return None
    if not isinstance(value, dict):
        return replace(entry, version=number + 1) if kind == "thesis" else entry
    source = value.get("source", value.get("sources"))
    if isinstance(source, list):
        source = ", ".join(files.texts(source))
    entry = replace(entry, source=cut(words(source), pads.LONGEST))
    if kind == "tension":
        entry = replace(entry, between=_between(value, claims))
    if kind in pads.RESOLVABLE and _is_settled(value):
        answer = next((words(value[key]) for key in _ANSWERS if words(value.get(key))), "")
        settled = files.time(value.get("resolved_at")) or entry.time
        entry = replace(entry, resolved=settled, answer=cut(answer, pads.LONGEST))
    if kind == "pass":
        entry = replace(entry, form=form(value) if form(value) in pads.PASSES else "")
    if kind == "thesis":
        entry = replace(entry, version=files.whole(value.get("version")) or number + 1)
    return entry


def _cycle(kind: str, number: int, frame: Frame) -> int:
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
    return found is True or bool(files.text(found)) or files.text(value.get("status")).lower() in _SETTLED


def _between(value: Mapping[str, Any], claims: Mapping[str, str]) -> tuple[str, ...]:
    refs = [ref for key in _REFERENCES for ref in files.items(value.get(key))] + [value.get(key) for key in _SINGLE]
    names = [ref.get("id") or words(ref) if isinstance(ref, dict) else ref for ref in refs]
    return tuple(dict.fromkeys(claims[str(name)] for name in names if str(name) in claims))


def _scale(values: Sequence[Any]) -> float:
    """What stands for sure: 1, or 100 where confidence is in percent."""
    return 100 if any(type(value) in (int, float) and 1 < value <= 100 for value in values) else 1


def longest(kind: str) -> int:
    """How many characters an entry of a kind may have."""
    return pads.LONGEST_DOCUMENT if kind in ("thesis", "pass") else pads.LONGEST


def cut(text: str, longest: int) -> str:
    """The text with no more than so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _name(kind: str, number: int) -> str:
    return f"{kind}_{number + 1:03d}"


def _item(entry: Entry, value: Any, number: int, claims: Mapping[str, str]) -> Item:
    item: Item = {"entry": entry.id}
    if isinstance(value, dict):
        settled = {"settled": True} if entry.resolved else {}
        return {**item, "object": True, **settled, **less(value, _object(entry, number, names(claims)))}
    plain = _plain(entry)
    return item if type(value) is type(plain) and value == plain else {**item, "value": value}


# Writing


def written(
    kind: str, entries: Sequence[Entry], items: Sequence[Mapping[str, Any]], claims: Mapping[str, str]
) -> list[tuple[Any, Entry | None]]:
    """The list again, with the entry of each value. `claims` are the names of claims by the ids of entries."""
    by_id, out = {entry.id: entry for entry in entries}, list[tuple[Any, Entry | None]]()
    for item in items:
        if "whole" in item:
            out.append((item["whole"], None))
            continue
        entry = by_id.pop(files.text(item.get("entry")), None)
        if entry is not None:
            out.append((_value(entry, item, len(out), claims), entry))
    for entry in entries:
        if entry.id in by_id:
            value = _object(entry, len(out), claims) if kind in _OBJECTS else _plain(entry)
            out.append((value, entry))
    return out


def _value(entry: Entry, item: Mapping[str, Any], number: int, claims: Mapping[str, str]) -> Any:
    if item.get("object") is not True:
        return item.get("value", _plain(entry))
    found = _object(entry, number, claims)
    if bool(entry.resolved) == (item.get("settled") is True):
        return more(found, item)
    kept = {key: one for key, one in files.mapping(item.get("set")).items() if key not in _SETTLING}
    gone = [key for key in files.texts(item.get("unset")) if key not in _SETTLING]
    return more(found, {"set": kept, "unset": gone})


def _plain(entry: Entry) -> Any:
    return entry.value if entry.kind == "confidence" else entry.text


def _object(entry: Entry, number: int, claims: Mapping[str, str]) -> Item:
    """An entry as an object, with the keys that say most."""
    out: Item = {"id": _name(entry.kind, number)} if entry.kind in ("claim", "tension") else {}
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
