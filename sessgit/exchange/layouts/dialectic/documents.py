"""The files of a dialectic session beside session.json: what was read, and claims, tensions and theses as documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.dialectic import notes
from sessgit.exchange.layouts.dialectic.notes import KnownEntries, ParsedNotes, SessionFrame, ValueEntryPairs
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.pad import Entry, Pad

SYSTEM = "dialectic"
KEPT_FOLDER = "dialectic"
STATE_FILE = "session.json"
_FOLDERS = {"claim": "claims", "tension": "tensions"}
_THESES, _CONTEXT = "thesis", "context"
_THESIS_FILE = re.compile(r"thesis_v([0-9]{1,6})\.md")
_STEM_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_MOST_FILES = 200
"""So many entries come from files that session.json does not name."""


@dataclass(frozen=True, slots=True)
class FileEntries:
    """Entries that only files say; by the paths of files the entries that they hold; and what did not fit."""

    entries: tuple[Entry, ...]
    names: dict[str, str]
    why: tuple[str, ...] = ()


def read_documents(
    kept: Mapping[str, bytes],
    noted: Mapping[str, ParsedNotes],
    pairs: ValueEntryPairs,
    frame: SessionFrame,
    known: KnownEntries,
) -> FileEntries:
    """What the files of a session say beside what it noted."""
    out, names, left = list[Entry](), dict[str, str](), 0

    def add(path: str, kind: str, text: str, number: int, version: int = 0) -> None:
        nonlocal left
        if not text or len(out) >= _MOST_FILES:
            left += bool(text)
            return
        time = canonical.rfc3339(frame.start + 1 + number / 1000 + 0.0005)
        source = "" if kind in ("file", "thesis") else path
        cut = notes.cut_text(text, notes.longest_text(kind))
        entry = Entry("", kind, cut, time, frame.session, cycle=frame.cycle, source=source, version=version)
        entry = notes.known_entry(entry, known)
        if all(entry.id != other.id for other in out):
            out.append(entry)
            names[path] = entry.id

    for kind, folder in _FOLDERS.items():
        for number, path in enumerate(_paths_below(kept, folder)):
            text = _document_text(kept[f"{KEPT_FOLDER}/{path}"])
            held = _entry_of_file(path, text, pairs[kind])
            if held is not None:
                names[path] = held.id
            else:
                add(path, kind, text, number)
    theses = sorted(
        (int(found[1]), path)
        for path in _paths_below(kept, _THESES)
        if (found := _THESIS_FILE.fullmatch(_file_name(path)))
    )
    if theses and noted["thesis"].entries:
        names[theses[-1][1]] = noted["thesis"].entries[-1].id
    elif theses:
        version, path = theses[-1]
        add(path, "thesis", _document_text(kept[f"{KEPT_FOLDER}/{path}"]), 0, version)
    listed = {_file_name(entry.text) for entry in noted["file"].entries}
    for number, path in enumerate(_paths_below(kept, _CONTEXT)):
        if _file_name(path) not in listed:
            add(path, "file", notes.entry_text(frame.places.get(_file_name(path), path)), number)
    return FileEntries(tuple(out), names, (f"{left} files are not on the pad",) if left else ())


def updated_files(
    kept: Mapping[str, bytes], pairs: ValueEntryPairs, pad: Pad, noted: Mapping[str, Sequence[Mapping[str, Any]]],
    names: Mapping[str, str],
) -> dict[str, bytes]:  # fmt: skip
    """The files again, without those whose entries are gone, and with one for each that is new."""
    there = {entry.id for entry in pad.entries}
    out = {
        path: data
        for path, data in (
            (name.removeprefix(f"{KEPT_FOLDER}/"), one)
            for name, one in kept.items()
            if name.startswith(f"{KEPT_FOLDER}/")
        )
        if path != STATE_FILE and names.get(path, "") in ("", *there)
    }
    for kind in (*_FOLDERS, "thesis"):
        was = {files.text_or_empty(item.get("entry")) for item in noted.get(kind, ())}
        for number, (value, entry) in enumerate(pairs[kind], start=1):
            if entry is None or entry.id in was or entry.id in names.values():
                continue
            own = files.text_or_empty(value.get("id")) if isinstance(value, dict) else ""
            stem = own if _STEM_PATTERN.fullmatch(own) else f"{kind}_{number:03d}"
            path = f"{_FOLDERS[kind]}/{stem}.md" if kind in _FOLDERS else f"{_THESES}/thesis_v{entry.version or 1}.md"
            out[path] = entry.text.encode("utf-8", "replace") + b"\n"
    return out


def file_places(kept: Mapping[str, bytes], at: str) -> dict[str, str]:
    """Where the files lie that were read, from the project's folder, by their names; `at` is the session's folder."""
    return {_file_name(path): notes.entry_text(at + path) for path in reversed(_paths_below(kept, _CONTEXT))}


def _paths_below(kept: Mapping[str, bytes], folder: str) -> list[str]:
    start = f"{KEPT_FOLDER}/{folder}/"
    return sorted(path.removeprefix(f"{KEPT_FOLDER}/") for path in kept if path.startswith(start))


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _document_text(data: bytes) -> str:
    """The words of a document, without what stands about it in front."""
    return notes.entry_text(_FRONT_MATTER.sub("", data.decode("utf-8", "replace").replace("\r\n", "\n")))


def _entry_of_file(path: str, text: str, pairs: Sequence[tuple[Any, Entry | None]]) -> Entry | None:
    """The entry whose document a file is: by the name of the claim or tension, or by its words."""
    stem = _file_name(path).removesuffix(".md")
    words = pads.text_key(text)
    by_name = (entry for value, entry in pairs if entry is not None and _own_id(value) == stem)
    by_words = (entry for _, entry in pairs if entry is not None and pads.text_key(entry.text) in words)
    return next(by_name, None) or next(by_words, None)


def _own_id(value: Any) -> str:
    return files.text_or_empty(value.get("id")) if isinstance(value, dict) else ""
