"""Replaces secrets in what is about to be stored, and nothing else.

A line of a transcript stays the JSON document it was, byte for byte, except for the strings that held a secret:
those are written anew as the client would write them. Nearly every line holds none: a few searches over its raw
bytes say so, and which rules are worth trying on the others.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from sessgit.model.cutting.jsonscan import Token, decode, encode, string_tokens
from sessgit.model.secrets import torn, views
from sessgit.model.secrets.cues import NAME_CUES, NAME_CUES_4, NAME_CUES_5, compiled, cues_of, has_cue
from sessgit.model.secrets.names import (
    Naming,
    find_assigned,
    is_made_up,
    is_password,
    is_secret_literal,
    is_words,
    naming_of,
)
from sessgit.model.secrets.rules import RULES, RULES_VERSION, Rule
from sessgit.model.secrets.views import Span

__all__ = ["PROTECTED_KEYS", "RULES_VERSION", "Secret", "redact_line", "redact_text", "secrets_of_line"]

PROTECTED_KEYS = frozenset(
    (
        # Identities: aligning, forking and restoring a session compare them byte for byte.
        *("id", "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "sessionId", "session_id"),
        *("messageId", "message_id", "requestId", "request_id", "promptId", "agentId", "agent_id", "taskId", "task_id"),
        *("tool_use_id", "toolUseId", "toolUseID", "parentToolUseID", "parent_tool_use_id"),
        *("sourceToolAssistantUUID", "sourceToolUseID"),
        # Only the service can make these again, and it refuses changed ones.
        "signature",
    )
)
"""Keys whose values are never changed, whatever they look like."""

_IMAGE_KEYS = frozenset(("data", "base64"))
_IMAGE_LENGTH = 256
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_SHORTEST = 8  # quotes included: no rule matches less
_LONGEST_NAME = 64
_MARK = b"[redacted:%s]"
_PASSES = 8
_KEPT = 256
"""For so many choices of cues their rules are remembered."""
_LISTS = 3
"""The version of the rules with which strings beside each other are looked at together."""
_VIEWS = 4
"""The version of the rules with which values are found that ends of lines and escapes stand in."""
_ARGUMENTS = 5
"""The version of the rules with which commands are found that stand in lists."""
_LONG_LISTS = 6
"""The version of the rules with which such lists may be as long as they like."""
_LINES = ("lines", "source")
_SAME_LIST = 40
_MANIFEST = re.compile(rb"(?i)kind[\"'\\]{0,16}: ?[\"'\\]{0,16}Secret(?![A-Za-z])")

# A token is often glued to what is before it: by an escape of a nested language, a URL's, or a terminal colour.
_BOUNDARY = re.compile(rb"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=[0-9;\[]m)")


@dataclass(frozen=True, slots=True)
class Secret:
    """What the rules take for a secret, and of which kind."""

    kind: str
    value: bytes


def redact_line(raw: bytes, version: int = RULES_VERSION) -> tuple[bytes, int]:
    """A transcript's line without its secrets, and how many were replaced; the same object if there were none.

    A valid JSON line stays valid and keeps every byte outside the strings that changed. Values of
    `PROTECTED_KEYS` and base64 images stay. Any other line is treated as text. The rules are those of a version.
    """
    return _line(raw, _Rules(version))


def redact_text(text: bytes, version: int = RULES_VERSION) -> tuple[bytes, int]:
    """A text without its secrets, and how many were replaced; any bytes are accepted."""
    return _Rules(version).redact(text) if has_cue(text, version) else (text, 0)


def secrets_of_line(raw: bytes) -> list[Secret]:
    """What the rules of now replace in a line, in the order in which they find it."""
    rules = _Rules(RULES_VERSION)
    _line(raw, rules)
    return rules.found


def _line(raw: bytes, rules: _Rules) -> tuple[bytes, int]:
    if not has_cue(raw, rules.version):
        return raw, 0
    rules.beside_key = rules.version >= _VIEWS and torn.names_key(raw)
    try:
        json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return rules.redact(raw)
    pieces, done, total = list[bytes](), 0, 0
    tokens = list(string_tokens(raw, min_length=_SHORTEST))
    listed = _listed(raw, tokens, rules) if rules.version >= _LISTS else {}
    listed |= _arguments(raw, rules) if rules.version >= _ARGUMENTS and _FLAG.search(raw) else {}
    called: Naming | None = None
    for token in tokens:
        before, called = called, _called(raw, token, rules.version)
        replaced, count = listed.get(token.start) or _redact_token(raw, token, rules, before)
        if count:
            pieces += (raw[done : token.start], replaced)
            done = token.end
            total += count
    if not total:
        return raw, 0
    pieces.append(raw[done:])
    return b"".join(pieces), total


def _called(raw: bytes, token: Token, version: int) -> Naming | None:
    """What the value beside this string is, where this one is the name of it: `{"name": …, "value": …}`."""
    if version < _LISTS or token.is_key or token.key.lower() not in ("name", "key"):
        return None
    return naming_of(raw[token.start + 1 : token.end - 1][-_LONGEST_NAME:], version)


def _listed(raw: bytes, tokens: list[Token], rules: _Rules) -> dict[int, tuple[bytes, int]]:
    """The lines of files that are strings of a list, without secrets that stand in several of them."""
    out: dict[int, tuple[bytes, int]] = {}
    runs: list[list[Token]] = []
    for token in tokens:
        if not token.is_key and token.key in _LINES:
            if runs and token.start - runs[-1][-1].end < _SAME_LIST and b"]" not in raw[runs[-1][-1].end : token.start]:
                runs[-1].append(token)
            else:
                runs.append([token])
    for run in (run for run in runs if len(run) > 1):
        found = [decode(raw[token.start : token.end]) or "" for token in run]
        at = 1 if all(text[:1] in ("", " ", "+", "-", "\\") for text in found) else 0
        whole = "\n".join(text[at:].rstrip("\n") for text in found).encode("utf-8", "surrogatepass")
        every = rules.found_in(whole)
        for token, text in zip(run, found, strict=True):
            data = text.encode("utf-8", "surrogatepass")
            clean, count = _without(data[at:], every)
            if count:
                clean, more = rules.redact(data[:at] + clean)
                out[token.start] = encode(clean.decode("utf-8", "surrogatepass")), count + more
    return out


def _arguments(raw: bytes, rules: _Rules) -> dict[int, tuple[bytes, int]]:
    """The arguments of commands that are strings of a list, without what is a secret only behind another one."""
    out: dict[int, tuple[bytes, int]] = {}
    run: list[Token] = []
    for token in [*string_tokens(raw, min_length=2), None]:
        if run and (token is None or token.is_key or raw[run[-1].end : token.start].strip() != b","):
            out |= _of_command(raw, run, rules)
            run = []
        if token is not None and not token.is_key:
            run.append(token)
    return out


def _of_command(raw: bytes, run: list[Token], rules: _Rules) -> dict[int, tuple[bytes, int]]:
    out: dict[int, tuple[bytes, int]] = {}
    words = [(decode(raw[one.start : one.end]) or "").encode("utf-8", "surrogatepass") for one in run]
    parts = views.commands(words) if any(word[:1] == b"-" for word in words) else []
    parts = parts if len(parts) == 1 or rules.version >= _LONG_LISTS else []
    every = list(dict.fromkeys(one for part in parts for one in rules.found_in(part)))
    for token, word in zip(run, words, strict=True) if every else ():
        clean, count = _without(word, every)
        if count and not _is_protected(raw, token):
            rules.found += [one for one in every if one.value in word]
            out[token.start] = encode(clean.decode("utf-8", "surrogatepass")), count
    return out


def _without(line: bytes, every: list[Secret]) -> tuple[bytes, int]:
    """A line of a text without the secrets that were found in the whole, or what of them stands in it."""
    total = 0
    for one in every:
        for part in {part.strip() for part in one.value.split(b"\n")}:
            if part in line and (len(part) >= _SHORTEST or part == line.strip() != b""):
                line, total = line.replace(part, _MARK % one.kind.encode("ascii")), total + 1
    return line, total


def _redact_token(line: bytes, token: Token, rules: _Rules, called: Naming | None) -> tuple[bytes, int]:
    """A string of a JSON line without its secrets, or nothing where it holds none; `called` is what it is by the name
    that stands beside it.

    One string may be as long as all others together, so no copy of it is kept longer than it is needed.
    """
    named = not token.is_key and len(token.key) <= _LONGEST_NAME
    naming = naming_of(token.key.encode("utf-8", "replace"), rules.version) if named else None
    naming = called if called and named and token.key.lower() == "value" else naming
    where = slice(token.start, token.end)
    if _is_protected(line, token) or not (naming or rules.beside_key or has_cue(line[where], rules.version)):
        return b"", 0
    text = decode(line[where])
    if text is None:
        return b"", 0
    data = text.encode("utf-8", "surrogatepass")
    del text
    clean, count = rules.redact(data)
    if not count and naming is not None and is_secret_literal(data, naming, rules.version):
        rules.found.append(Secret(naming.kind, data))
        clean, count = _MARK % naming.kind.encode(), 1
    if not count:
        return b"", 0
    del data
    text = clean.decode("utf-8", "surrogatepass")
    del clean
    return encode(text), count


def _is_protected(line: bytes, token: Token) -> bool:
    if token.is_key:
        return False
    if token.key in PROTECTED_KEYS:
        return True
    is_long = token.end - token.start >= _IMAGE_LENGTH
    return token.key in _IMAGE_KEYS and is_long and not line[token.start + 1 : token.end - 1].translate(None, _BASE64)


_TOKEN_CUES = frozenset(("_", "-", "."))
_KEY_CUES = frozenset(("A", "."))


class _Rules:
    """The rules of a version, and what they found so far."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.name_cues = (NAME_CUES_5 if version >= _ARGUMENTS else NAME_CUES_4) if version >= _VIEWS else NAME_CUES
        self.found: list[Secret] = []
        self.beside_key = False
        """Whether the line that a text is from names a file that holds a private key."""

    def redact(self, data: bytes) -> tuple[bytes, int]:
        """A text without its secrets. A replacement can bare another secret, so rules run until none finds one."""
        total = 0
        for _ in range(_PASSES):
            cues = cues_of(data, self.version)
            data, count = self._unwrapped(data, cues) if self.version >= _VIEWS else (data, 0)
            for rule in self._rules(cues):
                data, found = self._replace(data, self._matches(rule, data))
                count += found
            if cues & self.name_cues:
                data, found = self._replace(data, self._named(data))
                count += found
            if not count and self.version >= _VIEWS:
                data, count = self._seen_otherwise(data, cues)
            if not count:
                break
            total += count
        return data, total

    def _unwrapped(self, data: bytes, cues: set[str]) -> tuple[bytes, int]:
        """A text without tokens that were broken at the end of a line."""
        view = views.unwrapped(data, narrow=self.version >= _ARGUMENTS) if cues & _TOKEN_CUES else None
        if view is None:
            return data, 0
        rules = (rule for rule in self._rules(cues & _TOKEN_CUES) if rule.check == "token")
        found = [span for rule in rules for span in self._matches(rule, view.data) if view.bridges(*span[:2])]
        return self._replace(data, view.spans(found))

    def _seen_otherwise(self, data: bytes, cues: set[str]) -> tuple[bytes, int]:
        """A text without the secrets that only another view of it shows, and those that only their place tells."""
        total = 0
        for look in (views.shallow, views.continued, *((views.listed,) if self.version >= _ARGUMENTS else ())):
            view = look(data)
            if view is not None:
                shown = cues_of(view.data, self.version)
                found = [span for rule in self._rules(shown) for span in self._matches(rule, view.data)]
                found += self._named(view.data) if shown & self.name_cues else []
                data, count = self._replace(data, view.spans(found))
                total += count
        if self.beside_key or cues & _KEY_CUES:
            named = self.beside_key or torn.names_key(data)
            spans = torn.key_lines(data, named=named)
            data, count = self._replace(data, [(*span, "private-key") for span in spans])
            total += count
        return data, total

    def _rules(self, cues: set[str]) -> tuple[Rule, ...]:
        return _rules_of(frozenset(cues), self.version)

    def _named(self, data: bytes) -> list[Span]:
        return [(at.start, at.end, at.kind) for at in find_assigned(data, self.version)]

    def found_in(self, data: bytes) -> list[Secret]:
        """What would be replaced in a text."""
        inner = _Rules(self.version)
        if has_cue(data, self.version):
            inner.redact(data)
        return inner.found

    def _matches(self, rule: Rule, data: bytes) -> list[Span]:
        found: list[Span] = []
        if rule.sign not in data or (rule.check == "manifest" and not _MANIFEST.search(data)):
            return found
        pattern = compiled(rule.pattern)
        group = "secret" if "secret" in pattern.groupindex else 0
        for match in pattern.finditer(data):
            if data[match.start() : match.start() + 1].isalnum() and not _BOUNDARY.match(data, match.start()):
                continue
            if self.version >= _LISTS and _DIGEST.search(data[max(0, match.start() - _LONGEST_DIGEST) : match.start()]):
                continue
            if self.version >= _LISTS and rule.cue == "@" and _PORT.match(match[group]):
                continue
            if _CHECKS[rule.check](match[group]):
                found.append((*match.span(group), rule.kind))
        return found

    def _replace(self, data: bytes, found: list[Span]) -> tuple[bytes, int]:
        if not found:
            return data, 0
        pieces, done = list[bytes](), 0
        for start, end, kind in found:
            self.found.append(Secret(kind, data[start:end]))
            pieces += (data[done:start], _MARK % kind.encode("ascii"))
            done = end
        pieces.append(data[done:])
        return b"".join(pieces), len(found)


@lru_cache(_KEPT)
def _rules_of(cues: frozenset[str], version: int) -> tuple[Rule, ...]:
    """The rules of a version that are worth trying on texts with these cues."""
    return tuple(rule for rule in RULES if rule.cue in cues and rule.since <= version)


def _is_issued(value: bytes) -> bool:
    """Whether a token in a service's own format was issued by it and not typed as an example."""
    return _EXAMPLE.search(value) is None


def _is_random_word(value: bytes) -> bool:
    return not is_words(value) and not is_made_up(value) and any(48 <= byte <= 57 for byte in value)


def _is_user_and_password(value: bytes) -> bool:
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


def _is_armored(value: bytes) -> bool:
    """Whether what stands between the ends of a key is mostly base64, whatever a tool put around its lines."""
    runs = sum(len(run) for run in _BASE64_RUN.findall(value))
    return runs >= 40 and 2 * runs >= len(value.translate(None, b" \t\r\n"))


def _is_mixed(value: bytes) -> bool:
    """Whether a token with a short prefix is random, and not words."""
    body = value.partition(b"-")[2] or value
    digits = sum(48 <= byte <= 57 for byte in body)
    return digits >= 2 and body.upper() != body.lower() and not is_words(body) and len(set(body)) >= 10


def _is_base64_text(value: bytes) -> bool:
    if value == value.lower():
        return False
    try:
        plain = base64.b64decode(value, validate=True).decode("utf-8")
    except ValueError:
        return False
    return plain.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable()


_FLAG = re.compile(rb"\"--?[A-Za-z][A-Za-z0-9-]*\"\s{0,8},")
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/=]{20,}")
_PORT = re.compile(rb"[0-9]{2,5},[A-Za-z0-9.-]+:")
"""What follows the first of several hosts of an address, and is no password."""
_LONGEST_DIGEST = 100
_DIGEST = re.compile(rb"sha(?:1|256|384|512)[=:-][A-Za-z0-9_+/=-]{0,90}\Z")
_EXAMPLE = re.compile(rb"(?i)x{5}|your[-_]|example[-_]|placeholder|redacted")
_CHECKS: dict[str, Callable[[bytes], bool]] = {
    "token": _is_issued,
    "password": is_password,
    "word": _is_random_word,
    "basic": _is_user_and_password,
    "armor": _is_armored,
    "mixed": _is_mixed,
    "manifest": _is_base64_text,
    "jwk": _is_random_word,
}
