"""Replaces secrets in what is about to be stored, and nothing else.

A line of a transcript stays the JSON document it was, byte for byte, except for the strings that held a secret:
those are written anew as the client would write them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

from sessgit.model.frozen import frozen
from sessgit.model.json_strings import Token, decode_string, encode_string, string_tokens
from sessgit.redact import checks, key_lines, views
from sessgit.redact.assignments import Naming, find_assigned, is_secret_literal, naming_of
from sessgit.redact.engine import RULES, Hits, scan
from sessgit.redact.views import View, is_json, replace_parts

_IMAGE_KEYS = frozenset(("data", "base64"))
_IMAGE_LENGTH = 256
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_SHORTEST = 8  # quotes included: no rule matches less
_LONGEST_NAME = 64
_MARK = b"[redacted:%s]"
_PASSES = 8
Span = tuple[int, int, str]
"""The start and the end of a secret, and its kind."""
_LINES = ("lines", "source")
"""Keys of lists of which each string is a line of one file."""
_SAME_LIST = 40
_FLAG = re.compile(rb"\"--?[A-Za-z][A-Za-z0-9-]*\"\s{0,8},")
# A token is often glued to what is before it: by an escape of a nested language, a URL's, or a terminal colour.
_BOUNDARY = re.compile(rb"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=[0-9;\[]m)")
_LONGEST_DIGEST = 100
_DIGEST = re.compile(rb"sha(?:1|256|384|512)[=:-][A-Za-z0-9_+/=-]{0,90}\Z")
_WRAPPED = frozenset(
    number for number, rule in enumerate(RULES) if "secret" not in rule.pattern and rule.kind != "private-key"
)
"""Rules of which the whole match is a token: one that a terminal broke is put together for them."""


@frozen
class Secret:
    """What the rules take for a secret, and of which kind."""

    kind: str
    value: bytes


def redact_line(raw: bytes, hits: Hits | None = None, protected: Collection[str] = ()) -> tuple[bytes, int]:
    """Return a transcript's line without its secrets, and how many were replaced; the same object if there were none.

    A valid JSON line stays valid and keeps every byte outside the strings that changed. Values of `protected`
    keys and base64 images stay. Any other line is treated as text. `hits` is what `scan` said of the line, if it was
    asked.
    """
    return _Search(protected).line(raw, hits)


def redact_text(text: bytes, hits: Hits | None = None) -> tuple[bytes, int]:
    """Return a text without its secrets, and how many were replaced; any bytes are accepted."""
    return _Search().text(text, hits)


def secrets_of_line(raw: bytes, protected: Collection[str] = ()) -> list[Secret]:
    """Return what would be replaced in a line, in the order of the search."""
    search = _Search(protected)
    search.line(raw)
    return search.secrets


class _Search:
    """One search: the secrets so far, and whether the line names a file that holds a private key."""

    def __init__(self, protected: Collection[str] = ()) -> None:
        self.protected = protected
        self.secrets: list[Secret] = []
        self.names_key_file = False

    def line(self, raw: bytes, hits: Hits | None = None) -> tuple[bytes, int]:
        hits = hits or scan(raw)
        if hits is None:
            return raw, 0
        self.names_key_file = hits.key_lines and key_lines.names_key_file(raw)
        if not is_json(raw):
            return self.text(raw, hits)
        tokens = list(string_tokens(raw, min_length=_SHORTEST))
        known = self._file_lines(raw, tokens)
        known |= self._arguments(raw) if hits.options and _FLAG.search(raw) else {}
        pieces, done, total = list[bytes](), 0, 0
        sibling: Naming | None = None
        for token in tokens:
            named_before, sibling = sibling, _sibling_name(raw, token)
            replaced, count = known.get(token.start) or self._token(raw, token, named_before)
            if count:
                pieces += (raw[done : token.start], replaced)
                done = token.end
                total += count
        return (b"".join([*pieces, raw[done:]]), total) if total else (raw, 0)

    def text(self, data: bytes, hits: Hits | None = None) -> tuple[bytes, int]:
        """Replace the secrets of a text, of which `hits` may match, where that is known.

        A replacement can bare another secret, so this runs until none is found.
        """
        total = 0
        for attempt in range(_PASSES):
            hits = hits if hits is not None and attempt == 0 else scan(data)
            if hits is None and not self.names_key_file:
                break
            hits = hits or Hits()
            data, count = self._replace_wrapped(data, hits)
            for number in hits.rules:
                data, more = self._replace(data, _rule_spans(number, data))
                count += more
            if hits.names:
                data, more = self._replace(data, _assigned_spans(data))
                count += more
            if not count:
                data, count = self._in_views(data, hits)
            if not count:
                break
            total += count
        return data, total

    def _replace_wrapped(self, data: bytes, hits: Hits) -> tuple[bytes, int]:
        """Replace tokens that were broken at the end of a line."""
        numbers = [number for number in hits.rules if number in _WRAPPED]
        text = View(data)
        view = views.without_wraps(text) if numbers else text
        if view is text:
            return data, 0
        spans = [span for number in numbers for span in _rule_spans(number, view.data)]
        broken = [(start, end, kind) for start, end, kind in spans if _length(view.place(start, end)) > end - start]
        return self._replace(data, _spans_in_text(view, broken))

    def _in_views(self, data: bytes, hits: Hits) -> tuple[bytes, int]:
        """Replace what only another view of the text shows, and lines of keys, which only their place tells."""
        total = 0
        for make_view in (
            views.without_backslashes,
            views.joined_continuations,
            *((views.joined_arguments,) if hits.options else ()),
        ):
            text = View(data)
            view = make_view(text)
            shown = scan(view.data) if view is not text else None
            if shown is not None:
                spans = [span for number in shown.rules for span in _rule_spans(number, view.data)]
                spans += _assigned_spans(view.data) if shown.names else []
                data, count = self._replace(data, _spans_in_text(view, spans))
                total += count
        if self.names_key_file or hits.key_lines:
            named = self.names_key_file or key_lines.names_key_file(data)
            lines = key_lines.key_lines(data, named=named)
            data, count = self._replace(data, [(*line, "private-key") for line in lines])
            total += count
        return data, total

    def _token(self, line: bytes, token: Token, sibling: Naming | None) -> tuple[bytes, int]:
        """Return a string of a JSON line without its secrets, or nothing where it holds none.

        `sibling` is what the name next to it says of it: `{"name": …, "value": …}`. One string may be as long as all
        others together, so no copy of it is kept longer than it is needed.
        """
        # A replaced secret made the key shorter than it was: then it was no name before, so it is none.
        named = not token.is_key and len(token.key) <= _LONGEST_NAME and "[redacted:" not in token.key
        naming = naming_of(token.key.encode("utf-8", "replace")) if named else None
        naming = sibling if sibling and named and token.key.lower() == "value" else naming
        where = slice(token.start, token.end)
        if self._is_protected(line, token):
            return b"", 0
        hits = scan(line[where])
        if hits is None and naming is None and not self.names_key_file:
            return b"", 0
        text = decode_string(line[where])
        if text is None:
            return b"", 0
        data = text.encode("utf-8", "surrogatepass")
        del text
        clean, count = self.text(data, hits or Hits())
        if not count and naming is not None and is_secret_literal(data, naming):
            self.secrets.append(Secret(naming.kind, data))
            clean, count = _MARK % naming.kind.encode(), 1
        if not count:
            return b"", 0
        del data
        text = clean.decode("utf-8", "surrogatepass")
        del clean
        return encode_string(text), count

    def _is_protected(self, line: bytes, token: Token) -> bool:
        if token.is_key:
            return False
        if token.key in self.protected:
            return True
        is_long = token.end - token.start >= _IMAGE_LENGTH
        return (
            token.key in _IMAGE_KEYS and is_long and not line[token.start + 1 : token.end - 1].translate(None, _BASE64)
        )

    def _file_lines(self, raw: bytes, tokens: list[Token]) -> dict[int, tuple[bytes, int]]:
        """Return the lines of files that are strings of a list, without secrets that span several of them."""
        out: dict[int, tuple[bytes, int]] = {}
        runs: list[list[Token]] = []
        for token in tokens:
            if not token.is_key and token.key in _LINES:
                last = runs[-1][-1].end if runs else 0
                if runs and token.start - last < _SAME_LIST and b"]" not in raw[last : token.start]:
                    runs[-1].append(token)
                else:
                    runs.append([token])
        for run in (run for run in runs if len(run) > 1):
            texts = [decode_string(raw[token.start : token.end]) or "" for token in run]
            at = 1 if all(text[:1] in ("", " ", "+", "-", "\\") for text in texts) else 0
            whole = "\n".join(text[at:].rstrip("\n") for text in texts).encode("utf-8", "surrogatepass")
            every = _find_secrets(whole)
            for token, text in zip(run, texts, strict=True) if every else ():
                data = text.encode("utf-8", "surrogatepass")
                clean, count = _line_without(data[at:], every)
                if count:
                    clean, more = self.text(data[:at] + clean)
                    out[token.start] = encode_string(clean.decode("utf-8", "surrogatepass")), count + more
        return out

    def _arguments(self, raw: bytes) -> dict[int, tuple[bytes, int]]:
        """Return the arguments of commands in lists, without what is a secret only behind another argument."""
        out: dict[int, tuple[bytes, int]] = {}
        run: list[Token] = []
        for token in [*string_tokens(raw, min_length=2), None]:
            if run and (token is None or token.is_key or raw[run[-1].end : token.start].strip() != b","):
                out |= self._of_command(raw, run)
                run = []
            if token is not None and not token.is_key:
                run.append(token)
        return out

    def _of_command(self, raw: bytes, run: list[Token]) -> dict[int, tuple[bytes, int]]:
        out: dict[int, tuple[bytes, int]] = {}
        words = [(decode_string(raw[one.start : one.end]) or "").encode("utf-8", "surrogatepass") for one in run]
        parts = views.shell_arguments(words) if any(word[:1] == b"-" for word in words) else []
        every = list(dict.fromkeys(one for part in parts for one in _find_secrets(part)))
        for token, word in zip(run, words, strict=True) if every else ():
            clean, count = _line_without(word, every)
            if count and not self._is_protected(raw, token):
                self.secrets += [one for one in every if one.value in word]
                out[token.start] = encode_string(clean.decode("utf-8", "surrogatepass")), count
        return out

    def _replace(self, data: bytes, spans: list[Span]) -> tuple[bytes, int]:
        if not spans:
            return data, 0
        self.secrets += [Secret(kind, data[start:end]) for start, end, kind in spans]
        return replace_parts(data, [(start, end, _MARK % kind.encode("ascii")) for start, end, kind in spans]), len(
            spans
        )


def _sibling_name(raw: bytes, token: Token) -> Naming | None:
    """Return what this string says of the value next to it, if it is its name: `{"name": …, "value": …}`."""
    if token.is_key or token.key.lower() not in ("name", "key"):
        return None
    return naming_of(raw[token.start + 1 : token.end - 1][-_LONGEST_NAME:])


def _find_secrets(data: bytes) -> list[Secret]:
    search = _Search()
    search.text(data)
    return search.secrets


def _line_without(line: bytes, every: list[Secret]) -> tuple[bytes, int]:
    """Return a line of a text without the secrets of the whole text, or the parts of them that it holds."""
    total = 0
    for one in every:
        for part in {part.strip() for part in one.value.split(b"\n")}:
            if part in line and (len(part) >= _SHORTEST or part == line.strip() != b""):
                line, total = line.replace(part, _MARK % one.kind.encode("ascii")), total + 1
    return line, total


def _spans_in_text(view: View, spans: Iterable[Span]) -> list[Span]:
    """Return the spans of a view as spans of the text, the leftmost first, none within another."""
    out = list[Span]()
    for start, end, kind in sorted(((*view.place(*span[:2]), span[2]) for span in spans), key=lambda one: one[:2]):
        if not out or start >= out[-1][1]:
            out.append((start, end, kind))
    return out


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


def _assigned_spans(data: bytes) -> list[Span]:
    return [(at.start, at.end, at.kind) for at in find_assigned(data)]


def _rule_spans(number: int, data: bytes) -> list[Span]:
    rule, spans = RULES[number], list[Span]()
    if not _compiled(rule.near).search(data):
        return spans
    pattern, check = _compiled(rule.pattern), getattr(checks, rule.check)
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(data):
        if data[match.start() : match.start() + 1].isalnum() and not _BOUNDARY.match(data, match.start()):
            continue
        if _DIGEST.search(data[max(0, match.start() - _LONGEST_DIGEST) : match.start()]):
            continue
        if check(match[group]):
            spans.append((*match.span(group), rule.kind))
    return spans


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("ascii"))
