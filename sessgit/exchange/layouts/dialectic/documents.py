"""The files of a dialectic session beside session.json: what was read, and claims, tensions and theses as documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.dialectic import notes
from sessgit.exchange.layouts.dialectic.notes import Frame, Known, Noted, Pairs
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.pad import Entry, Pad

SYSTEM = "dialectic"
KEPT = "dialectic"
STATE = "session.json"
_FOLDERS = {"claim": "claims", "tension": "tensions"}
_THESES, _CONTEXT = "thesis", "context"
_VERSION = re.compile(r"thesis_v([0-9]{1,6})\.md")
_STEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_MOST = 200
"""So many entries come from files that session.json does not name."""


@dataclass(frozen=True, slots=True)
class Lying:
    """Entries that only files say; by the paths of files the entries that they hold; and what did not fit."""

    entries: tuple[Entry, ...]
    names: dict[str, str]
    why: tuple[str, ...] = ()


def read(kept: Mapping[str, bytes], noted: Mapping[str, Noted], pairs: Pairs, frame: Frame, known: Known) -> Lying:
    """What the files of a session say beside what it noted."""
    out, names, left = list[Entry](), dict[str, str](), 0

    def add(path: str, kind: str, text: str, number: int, version: int = 0) -> None:
        nonlocal left
        if not text or len(out) >= _MOST:
            left += bool(text)
            return
        time = canonical.rfc3339(frame.start + 1 + number / 1000 + 0.0005)
        source = "" if kind in ("file", "thesis") else path
        cut = notes.cut(text, notes.longest(kind))
        entry = Entry("", kind, cut, time, frame.session, cycle=frame.cycle, source=source, version=version)
        entry = notes.as_known(entry, known)
        if all(entry.id != other.id for other in out):
            out.append(entry)
            names[path] = entry.id

    for kind, folder in _FOLDERS.items():
        for number, path in enumerate(_below(kept, folder)):
            text = _text(kept[f"{KEPT}/{path}"])
            held = _holding(path, text, pairs[kind])
            if held is not None:
                names[path] = held.id
            else:
                add(path, kind, text, number)
    theses = sorted(
        (int(found[1]), path) for path in _below(kept, _THESES) if (found := _VERSION.fullmatch(_name(path)))
    )
    if theses and noted["thesis"].entries:
        names[theses[-1][1]] = noted["thesis"].entries[-1].id
    elif theses:
        version, path = theses[-1]
        add(path, "thesis", _text(kept[f"{KEPT}/{path}"]), 0, version)
    listed = {_name(entry.text) for entry in noted["file"].entries}
    for number, path in enumerate(_below(kept, _CONTEXT)):
        if _name(path) not in listed:
            add(path, "file", notes.sayable(frame.places.get(_name(path), path)), number)
    return Lying(tuple(out), names, (f"{left} files are not on the pad",) if left else ())


def written(
    kept: Mapping[str, bytes], pairs: Pairs, pad: Pad, noted: Mapping[str, Sequence[Mapping[str, Any]]],
    names: Mapping[str, str],
) -> dict[str, bytes]:  # fmt: skip
    """The files again, without those whose entries are gone, and with one for each that is new."""
    there = {entry.id for entry in pad.entries}
    out = {
        path: data
        for path, data in (
            (name.removeprefix(f"{KEPT}/"), one) for name, one in kept.items() if name.startswith(f"{KEPT}/")
        )
        if path != STATE and names.get(path, "") in ("", *there)
    }
    for kind in (*_FOLDERS, "thesis"):
        was = {files.text(item.get("entry")) for item in noted.get(kind, ())}
        for number, (value, entry) in enumerate(pairs[kind], start=1):
            if entry is None or entry.id in was or entry.id in names.values():
                continue
            own = files.text(value.get("id")) if isinstance(value, dict) else ""
            stem = own if _STEM.fullmatch(own) else f"{kind}_{number:03d}"
            path = f"{_FOLDERS[kind]}/{stem}.md" if kind in _FOLDERS else f"{_THESES}/thesis_v{entry.version or 1}.md"
            out[path] = entry.text.encode("utf-8", "replace") + b"\n"
    return out


def places(kept: Mapping[str, bytes], at: str) -> dict[str, str]:
    """Where the files lie that were read, from the project's folder, by their names; `at` is the session's folder."""
    return {_name(path): notes.sayable(at + path) for path in reversed(_below(kept, _CONTEXT))}


def _below(kept: Mapping[str, bytes], folder: str) -> list[str]:
    start = f"{KEPT}/{folder}/"
    return sorted(path.removeprefix(f"{KEPT}/") for path in kept if path.startswith(start))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _text(data: bytes) -> str:
    """The words of a document, without what stands about it in front."""
    return notes.sayable(_FRONT.sub("", data.decode("utf-8", "replace").replace("\r\n", "\n")))


def _holding(path: str, text: str, pairs: Sequence[tuple[Any, Entry | None]]) -> Entry | None:
    """The entry whose document a file is: by the name of the claim or tension, or by its words."""
    stem = _name(path).removesuffix(".md")
    words = pads.same(text)
    by_name = (entry for value, entry in pairs if entry is not None and _own(value) == stem)
    by_words = (entry for _, entry in pairs if entry is not None and pads.same(entry.text) in words)
    return next(by_name, None) or next(by_words, None)


def _own(value: Any) -> str:
    return files.text(value.get("id")) if isinstance(value, dict) else ""
