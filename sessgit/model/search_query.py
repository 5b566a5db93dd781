"""What a person searches for: words, phrases and beginnings of words; and where a text holds them.

A word is a run of letters and digits, whatever its case and accents. Scripts that put no spaces between words
(Chinese, Japanese; also Korean) count each character as a word, and a run of them as a phrase.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from sessgit.errors import UsageError
from sessgit.model import canonical
from sessgit.model.frozen import frozen

MOST_TERMS = 32
_SINGLE_CHAR_WORDS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""The characters that are words of their own."""
_TERM_PATTERN = re.compile(r'(-?)(?:"([^"]*)(?:"|$)(\*?)|([^\s"]+))')
_WORD_PATTERN = re.compile(r"[^\W_]+")
_BEFORE, _AFTER = f"(?<![^\\W_{_SINGLE_CHAR_WORDS}])", f"(?![^\\W_{_SINGLE_CHAR_WORDS}])"
_SYNTAX_HINT = 'All words must match; "a phrase", begin*, -without and this OR that work too.'

Span = tuple[int, int]
"""A part of a text, from its first character to behind its last."""


@frozen
class Term:
    """A word or several that follow each other; of the last one only the beginning is given if `prefix`."""

    text: str
    prefix: bool = False


@dataclass(frozen=True)
class Query:
    """Of each group one term must be there, and none of `without`."""

    groups: tuple[tuple[Term, ...], ...]
    without: tuple[Term, ...] = ()

    @property
    def terms(self) -> list[Term]:
        """Return all terms that may be there."""
        return [term for group in self.groups for term in group]

    @cached_property
    def patterns(self) -> list[re.Pattern[str]]:
        """Return for each of the terms what finds it in a folded text."""
        return [pattern for pattern in map(_term_pattern, self.terms) if pattern]

    def found(self, text: str) -> list[Span]:
        """Return where the text holds the terms, from left to right; of those that overlap the first one."""
        spans = sorted(match.span() for pattern in self.patterns for match in pattern.finditer(fold_text(text)))
        out: list[Span] = []
        for span in spans:
            if not out or span[0] >= out[-1][1]:
                out.append(span)
        return out

    def fits(self, texts: Sequence[str]) -> bool:
        """Return whether these texts together have a term of each group, and none of them one of `without`."""
        whole = fold_text("\n".join(texts))

        def holds(term: Term) -> bool:
            pattern = _term_pattern(term)
            if not pattern or not all(word in whole for word in _term_words(term)):
                return False
            return any(pattern.search(fold_text(text)) for text in texts)

        return all(any(map(holds, group)) for group in self.groups) and not any(map(holds, self.without))

    def held(self, text: str) -> int:
        """Return how many of the terms the text holds."""
        folded = fold_text(text)
        return sum(pattern.search(folded) is not None for pattern in self.patterns)


def parse_query(text: str) -> Query:
    """Return the query that a person typed. Raises UsageError where it has no word to look for, or too many."""
    groups: list[list[Term]] = []
    without: list[Term] = []
    either = False
    for position, (minus, phrase, star, word) in enumerate(_TERM_PATTERN.findall(text)):
        if word in ("OR", "AND") and not minus and position and groups:
            either = word == "OR"
            continue
        term = Term(phrase, bool(star)) if phrase else Term(word.rstrip("*"), word.endswith("*"))
        if not any(char.isalnum() for char in term.text):
            continue
        if minus:
            without.append(term)
        elif either:
            groups[-1].append(term)
        else:
            groups.append([term])
        either = False
    if not groups:
        wrong = "the query has only excluded words" if without else f"“{text}” contains no word"
        raise UsageError(wrong, _SYNTAX_HINT)
    if len(without) + sum(map(len, groups)) > MOST_TERMS:
        raise UsageError(f"the query has more than {MOST_TERMS} words", "Leave out the frequent words.")
    return Query(tuple(map(tuple, groups)), tuple(without))


def as_beginnings(text: str) -> str:
    """Return the query with each word as the beginning of one, ``""`` if it is so already or has a phrase."""
    words = text.split()
    out = " ".join(word if word in ("OR", "AND") or word.startswith("-") else f"{word.rstrip('*')}*" for word in words)
    return "" if '"' in out or out == " ".join(words) else out


def space_single_char_words(text: str) -> str:
    """Return the text with spaces around each character that is a word of its own."""
    return text if text.isascii() else _single_char_pattern().sub(r" \g<0> ", text)


@cache
def _single_char_pattern() -> re.Pattern[str]:
    """Find such a character: compiled when a text is not plain ASCII, since that takes as long as to record a turn."""
    return re.compile(f"[{_SINGLE_CHAR_WORDS}]")


def fold_text(text: str) -> str:
    """Return the text in small letters without accents, character by character: places in it are those in the text."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_char, text))


def _fold_char(char: str) -> str:
    if char < "\x80":
        return char.lower()
    parts = unicodedata.normalize("NFD", char)
    accented = len(parts) > 1 and all(map(unicodedata.combining, parts[1:]))
    small = (parts[0] if accented else char).lower()
    return small if len(small) == 1 else char


@cache
def _term_words(term: Term) -> list[str]:
    """Return the words of a term, each of which a text must hold."""
    return _WORD_PATTERN.findall(space_single_char_words(fold_text(term.text)))


@cache
def _term_pattern(term: Term) -> re.Pattern[str] | None:
    """Return what finds a term in a folded text, or None for a term without words."""
    words = _term_words(term)
    if not words:
        return None
    alone = [not word.isascii() and bool(_single_char_pattern().fullmatch(word)) for word in words]
    out = "" if alone[0] else _BEFORE
    for place, word in enumerate(words):
        if place:
            out += r"[\W_]*" if alone[place] or alone[place - 1] else r"[\W_]+"
        out += re.escape(word)
    if not alone[-1]:
        out += f"[^\\W_{_SINGLE_CHAR_WORDS}]*" if term.prefix else _AFTER
    return re.compile(out)


@frozen
class Snippet:
    """A part of a text on one line, with an ellipsis where something was left out; `matches` are places in it."""

    text: str
    matches: tuple[Span, ...] = ()


def make_snippet(text: str, query: Query, length: int) -> Snippet:
    """Return about `length` characters of a text around the place that holds most of the query; where nothing is found,
    its beginning. Control characters are made harmless."""
    spans = query.found(text)
    start = _snippet_start(text, spans, length)
    end = min(len(text), start + length)
    shown = [(max(a, start), min(b, end)) for a, b in spans if a < end and b > start]
    parts = ["…"] if text[:start].strip() else []
    size, matches = len("".join(parts)), list[Span]()
    for piece, is_match in _marked_pieces(text, shown, start, end):
        clean = canonical.printable(" ".join(f"|{piece}|".split()))[1:-1]
        if not size or (parts[-1].endswith((" ", "…")) and not is_match):
            clean = clean.lstrip()
        if is_match:
            matches.append((size, size + len(clean)))
        parts.append(clean)
        size += len(clean)
    out = "".join(parts).rstrip()
    return Snippet(out + "…" if text[end:].strip() else out, tuple(matches))


def _snippet_start(text: str, spans: Sequence[Span], length: int) -> int:
    """Return where to begin: a little before the match from which on most matches fit, at the start of a word."""
    if not spans or len(text) <= length:
        return 0
    ends = [end for _, end in spans]
    matching = [bisect_right(ends, first + length * 3 // 4) - n for n, (first, _) in enumerate(spans[:500])]
    best = spans[matching.index(max(matching))]
    start = max(0, best[0] - length // 4)
    if start:
        space = re.compile(r"\s+").search(text, start, best[0])
        start = space.end() if space else start
    return start


def _marked_pieces(text: str, spans: Iterable[Span], start: int, end: int) -> Iterator[tuple[str, bool]]:
    for a, b in spans:
        if a > start:
            yield text[start:a], False
        yield text[a:b], True
        start = b
    if end > start:
        yield text[start:end], False
