"""A JSON document changed in its text: what stays the same keeps its bytes, however a person has laid it out."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Part:
    """A member of an object or an item of a list: where it begins and ends, and where its value begins. A member is
    known by its key, an item by its place."""

    start: int
    value: int
    end: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def changed(text: str, before: Any, after: Any) -> str:
    """Return a text of `after`, made of one of `before` with as few changes as may be.

    Raises ValueError where that cannot be had, as where keys have changed places.
    """
    edits = sorted(_Writer(text).edits(_blank(text, 0), before, after), key=lambda edit: (edit.start, edit.end))
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    if json.dumps(json.loads(text)) != json.dumps(after):
        raise ValueError("the text cannot be changed in its places")
    return text


def written(value: Any, indent: str = "  ", newline: str = "\n") -> str:
    """Return a new text of a value; a lone surrogate, which UTF-8 cannot hold, is an escape."""
    text = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, indent=indent, ensure_ascii=False))
    return text.replace("\n", newline)


class _Writer:
    """What is common to all changes of one text: its line ends and its indentation."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        found = _INDENT.search(text)
        self.indent = found[1] if found else "  "

    def edits(self, at: int, before: Any, after: Any) -> Iterator[_Edit]:
        """The changes of the value that begins at `at`."""
        if before == after:
            return
        if isinstance(before, dict) and isinstance(after, dict):
            old = list(self._members(at))
            pairs = [(n, part.key) for n, part in enumerate(old) if part.key in after]
            for n, key in pairs:
                yield from self.edits(old[n].value, before[key], after[key])
            new = [f"{written(key)}: {self._value(at, after[key])}" for key in after if key not in before]
            yield from self._parts(at, old, {n for n, _ in pairs}, new)
        elif isinstance(before, list) and isinstance(after, list):
            old = list(self._items(at))
            kept, new = set[int](), list[str]()
            for source, place in _aligned(before, after):
                if source is None:
                    new.append(self._value(at, after[place]))
                else:
                    kept.add(source)
                    yield from self.edits(old[source].value, before[source], after[place])
            yield from self._parts(at, old, kept, new)
        else:
            yield _Edit(at, self._end(at), self._value(at, after))

    def _parts(self, at: int, old: Sequence[_Part], kept: set[int], new: Sequence[str]) -> Iterator[_Edit]:
        """What is not kept goes, with one comma each and the blanks at it; what is new comes to the end."""
        close = self._end(at) - 1
        if not kept:
            if old or new:
                yield _Edit(at + 1, close, self._filled(at, new))
            return
        gone = [n for n in range(len(old)) if n not in kept]
        first = min(kept)
        if first:
            yield _Edit(old[0].start, old[first].start, "")
        yield from (_Edit(old[n - 1].end, old[n].end, "") for n in gone if n > first)
        blank = self.text[at + 1 : old[0].start] or (" " if len(old) < 2 or self.text[old[1].start - 1] == " " else "")
        end = old[max(kept)].end
        if new:
            yield _Edit(end, end, "".join(f",{blank}{one}" for one in new))

    def _filled(self, at: int, new: Sequence[str]) -> str:
        """What goes between the brackets of a list or object that is empty otherwise."""
        if not new:
            return ""
        around = self._margin(at)
        inner = f"{self.newline}{around}{self.indent}"
        return f"{inner}{f',{inner}'.join(new)}{self.newline}{around}"

    def _value(self, at: int, value: Any) -> str:
        """A new value in the list or object at `at`: over several lines, indented as its neighbours, where that is."""
        text = written(value, self.indent, self.newline)
        return text.replace(self.newline, f"{self.newline}{self._margin(at)}{self.indent}")

    def _margin(self, at: int) -> str:
        """The blanks at the beginning of the line."""
        start = self.text.rfind("\n", 0, at) + 1
        return self.text[start : min(at, _blank(self.text, start))]

    def _members(self, at: int) -> Iterator[_Part]:
        for start in self._starts(at):
            key, end = _DECODER.raw_decode(self.text, start)
            value = self._blank(self._blank(end) + 1)  # over the colon
            yield _Part(start, value, self._end(value), key)

    def _items(self, at: int) -> Iterator[_Part]:
        return (_Part(start, start, self._end(start)) for start in self._starts(at))

    def _starts(self, at: int) -> Iterator[int]:
        """Where the members or items of the object or list at `at` begin."""
        is_object = self.text[at] == "{"
        place = self._blank(at + 1)
        while self.text[place] not in "}]":
            yield place
            if is_object:
                place = self._blank(self._blank(self._end(place)) + 1)
            place = self._blank(self._end(place))
            if self.text[place] == ",":
                place = self._blank(place + 1)

    def _blank(self, at: int) -> int:
        return _blank(self.text, at)

    def _end(self, at: int) -> int:
        end: int = _DECODER.raw_decode(self.text, at)[1]
        return end


def _blank(text: str, at: int) -> int:
    """Where the blanks at a place end."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _aligned(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[int | None, int]]:
    """Which item of the one list each item of the other one is, or is made of; None where it is new."""
    old, new = ([json.dumps(item) for item in some] for some in (before, after))
    for _, n, n_end, m, m_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for offset in range(m_end - m):
            yield (n + offset if n + offset < n_end else None), m + offset
