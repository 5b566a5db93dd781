"""A text as it would read without what was put into its values: escapes upon escapes, and ends of lines.

A secret that only such a view shows is replaced in the text itself, with all that was put into it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sessgit.redact.checks import is_words

Span = tuple[int, int, str]
"""Where a secret stands, and of which kind it is."""
_DEEP = re.compile(rb"\\\\+(?=\\[\"'])")
_CONTINUED = re.compile(rb"\\(?:\\\\n|\r?\n)[ \t]*")
_WRAP = re.compile(rb"\n(?<=[A-Za-z0-9_.-]{12}\n)(?=[A-Za-z0-9_.-]{4})")
_REST = re.compile(
    rb"(?!(?:[a-z0-9]{1,12}|[A-Z0-9]{1,12})[_.-]|eyJ|[A-Z]{4}|-)"
    rb"(?P<word>[A-Za-z0-9_.-]{4,})(?=[\s\"'`,;)\]}<]|\Z)"
)
"""What may be the rest of a value, and begins none."""
_NARROWEST = 24
"""So many columns at least has a terminal or a page that values are wrapped at: shorter lines end where they end."""
# Begins with one literal character, which the expression engine seeks several times faster than two.
_FLAG = re.compile(rb"-(?:[A-Za-z][A-Za-z-]{0,40}\\{0,16}[\"'],|(?<=[\"']-)p)")
_ARGUMENTS = re.compile(
    rb"(?P<before>\\{0,16}[\"']),[ \t\n]{0,40}(?P=before)(?=-)"
    rb"|(?<![\w-])--?[A-Za-z][A-Za-z-]{0,40}(?P<after>\\{0,16}[\"']),[ \t\n]{0,40}(?P=after)"
)
_MOST_ARGUMENTS = 100
_SHARED = 20


@dataclass(frozen=True, slots=True)
class View:
    """A text without some parts of it: `ends` are the places in it where they were, `removed` how many bytes of the
    text are gone before each."""

    data: bytes
    ends: tuple[int, ...]
    removed: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text a part of the view stands, from its first byte to its last."""
        return self._place(start), self._place(end - 1) + 1

    def contains_removed(self, start: int, end: int) -> bool:
        """Whether something was taken out of this part."""
        return bisect_right(self.ends, start) < bisect_right(self.ends, end - 1)

    def spans(self, found: Iterable[Span]) -> list[Span]:
        """Where in the text stands what was found in the view: the leftmost first, none in another."""
        out = list[Span]()
        for start, end, kind in sorted(((*self.span(*one[:2]), one[2]) for one in found), key=lambda one: one[:2]):
            if not out or start >= out[-1][1]:
                out.append((start, end, kind))
        return out

    def _place(self, at: int) -> int:
        return at + self.removed[bisect_right(self.ends, at) - 1]


def without_backslashes(data: bytes) -> View | None:
    """Without all backslashes but one before a quote; None where that is the text."""
    return _remove_parts(data, (found.span() for found in _DEEP.finditer(data)))


def joined_continuations(data: bytes) -> View | None:
    """With lines that end in a backslash joined to those after them; None where that is the text."""
    return _remove_parts(data, (found.span() for found in _CONTINUED.finditer(data)))


def joined_arguments(data: bytes) -> View | None:
    """With the arguments of a command that stand in a list as a shell would have them; None where there are none."""
    if _FLAG.search(data) is None:
        return None
    plain, parts = bytearray(data), list[tuple[int, int]]()
    for found in _ARGUMENTS.finditer(data):
        plain[found.end() - 1 : found.end()] = b" "
        parts.append((found.start("before" if found["after"] is None else "after"), found.end() - 1))
    return _remove_parts(bytes(plain), parts)


def shell_arguments(words: Sequence[bytes]) -> list[bytes]:
    """The arguments of a command as a shell would have them; many of them in several parts, of which each begins with
    the last ones of that before it."""
    begins = range(0, max(1, len(words) - _SHARED), _MOST_ARGUMENTS - _SHARED)
    return [b" ".join(words[at : at + _MOST_ARGUMENTS]) for at in begins]


def without_wraps(data: bytes) -> View | None:
    """With lines joined that a terminal seems to have broken within a random value; None where none is."""
    return _remove_parts(data, _find_wraps(data))


def _find_wraps(data: bytes) -> Iterator[tuple[int, int]]:
    for found in _WRAP.finditer(data):
        width = found.start() - (data.rfind(b"\n", 0, found.start()) + 1)
        after = data.find(b"\n", found.end())
        if width < _NARROWEST or (len(data) if after < 0 else after) - found.end() > width + 1:
            continue
        rest = _REST.match(data, found.end())
        if rest is not None and not is_words(rest["word"]):
            yield found.span()


def _remove_parts(data: bytes, parts: Iterable[tuple[int, int]]) -> View | None:
    pieces, ends, removed, done = list[bytes](), [0], [0], 0
    for start, end in parts:
        pieces.append(data[done:start])
        ends.append(start - removed[-1])
        removed.append(removed[-1] + end - start)
        done = end
    if not done:
        return None
    return View(b"".join([*pieces, data[done:]]), tuple(ends), tuple(removed))
