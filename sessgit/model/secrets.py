"""Replaces secrets in what is about to be stored, and nothing else.

A line of a transcript stays the JSON document it was, byte for byte, except for the strings that held a secret:
those are written anew as the client would write them. Nearly every line holds none, so a few searches over the
raw bytes decide whether a line is looked at closely. Each begins with one rare literal character, which the
expression engine seeks several times faster than it tries an alternation of prefixes.
"""

import base64
import binascii
import json
import re
from functools import cache

from sessgit.model.jsonscan import Token, decode, encode, string_tokens
from sessgit.model.secret_names import (
    NAME_TAIL,
    find_assigned,
    is_made_up,
    is_password,
    is_secret_literal,
    is_words,
    naming_of,
)
from sessgit.model.secret_rules import RULES, RULES_VERSION, Rule, compiled

__all__ = ["PROTECTED_KEYS", "RULES_VERSION", "redact_line", "redact_text"]

PROTECTED_KEYS = frozenset(
    # Identities: aligning, forking and restoring a session compare them byte for byte.
    "id uuid parentUuid logicalParentUuid leafUuid sessionId session_id messageId message_id requestId request_id "
    "promptId agentId agent_id tool_use_id toolUseId toolUseID parentToolUseID parent_tool_use_id "
    "sourceToolAssistantUUID sourceToolUseID taskId task_id "
    # Only the service can make these again, and it refuses changed ones.
    "signature".split()
)
"""Keys whose values are never changed, whatever they look like."""

_IMAGE_KEYS = frozenset(("data", "base64"))
_IMAGE_LENGTH = 256
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_SHORTEST = 8  # no rule matches a string with fewer bytes between its quotes
_MARK = b"[redacted:%s]"
_PASSES = 8

# A token is often glued to what is before it: by an escape of a nested language, a URL's, or a terminal colour.
_BOUNDARY = re.compile(
    rb"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=[0-9;\[]m)"
)


def redact_line(raw: bytes) -> tuple[bytes, int]:
    """A transcript's line without its secrets, and how many were replaced; the same object if there were none.

    A valid JSON line stays valid and keeps every byte outside the strings that changed. Values of
    `PROTECTED_KEYS` and base64 images stay. Any other line is treated as text.
    """
    if not may_hold_secret(raw):
        return raw, 0
    try:
        json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return _redact(raw)
    pieces: list[bytes] = []
    done = total = 0
    for token in string_tokens(raw, min_length=_SHORTEST):
        replaced, count = _redact_token(raw[token.start : token.end], token)
        if count:
            pieces += (raw[done : token.start], replaced)
            done = token.end
            total += count
    if not total:
        return raw, 0
    pieces.append(raw[done:])
    return b"".join(pieces), total


def redact_text(text: bytes) -> tuple[bytes, int]:
    """A text without its secrets, and how many were replaced; any bytes are accepted."""
    return _redact(text) if may_hold_secret(text) else (text, 0)


def may_hold_secret(raw: bytes) -> bool:
    """False only if no rule matches a text, nor any string of a JSON line as `JSON.stringify` writes it."""
    for search in _searches():
        if search.search(raw):
            return True
    if any(part in raw for part in (b"dapi", b"cio")) and _RARE.search(raw):
        return True
    ...
