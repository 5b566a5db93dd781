"""Checks that tell a secret from what only has its form: an example, an identifier, a hash, words.

Each check takes the bytes that a rule's pattern found and returns whether they are a secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from math import log2

# Letters that follow a letter in 99.5 % of the letter pairs of words in source code and English documentation.
_FOLLOWERS = {
    "a": "abcdefghijklmnprstuvwxyz", "b": "abcdefijlmoprstuy", "c": "abcdefhiklmoprstuwy", "d": "abcdefgijlmnoprstuvy",
    "e": "abcdefghijklmnopqrstuvwxy", "f": "abcdefilnorstuy", "g": "aeghilmnorstuy", "h": "aeilmnorstuy",
    "i": "abcdefgiklmnopqrstvxz", "j": "aeosu", "k": "adegilnostuw", "l": "abcdefgiklmnoprstuvwy",
    "m": "abcdeiklmnoprstuy", "n": "abcdefghijklmnoprstuvy", "o": "abcdefgijklmnoprstuvwxyz", "p": "acdefghiklmoprstuy",
    "q": "u", "r": "abcdefgiklmnoprstuvwy", "s": "acdefghiklmnopqrstuvwy", "t": "abcdefghilmnoprstuvwxy",
    "u": "abcdefgilmnoprstx", "v": "aeios", "w": "adehilnorsw", "x": "acdeimpty", "y": "abcegilmnoprstw", "z": "aeio",
}  # fmt: skip
_PAIRS = frozenset((one + other).encode() for one, others in _FOLLOWERS.items() for other in others)
_PIECES = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_RANDOM = 0.18
"""So many odd places for each byte: 99 % of random tokens of 24 bytes have more, 90 % of identifiers half of it."""
_RANDOM_LETTERS = 0.12
_RANDOM_PATH = 0.35

_EXAMPLE = re.compile(rb"(?i)x{5}|your[-_]|example[-_]|(?-i:EXAMPLE)|placeholder|redacted")
_SEPARATORS = re.compile(rb"[^A-Za-z0-9]+")
_WORD = re.compile(rb"[A-Za-z]*[0-9]{0,4}|[0-9]+")
_PATH = re.compile(rb"[~.]{0,2}(?:/[\w.@+-]+)+/?|[\w.@+-]+(?:/[\w.@+-]+)*\.[a-z]{2,5}")
_MADE_UP = re.compile(
    rb"(?i)x{4}|\*{3}|\.{3}|\$\{|\{\{|\$\(|%[sd]\b|^[<\[{$]|redacted|placeholder|changeme|process\.env|os\.environ"
    rb"|getenv|(?-i:EXAMPLE)|(?:^|[^a-z])(?:your|example|change[-_]me|dummy|insert|replace|todo)(?:[^a-z]|$)"
)
_COMMON_PASSWORDS = frozenset(
    b"password pass passwd pwd secret user username root admin guest token test example postgres mysql mongo redis "
    b"rabbitmq localhost hunter changeme string null none true false undefined".split()
)
_ABOUT_SECRETS = re.compile(rb"(?i)passw|secret|token|key|field|input|label")
_SPECIAL = frozenset(b"!@#$%^&*?+=~")
_PORT = re.compile(rb"[0-9]{2,5},[A-Za-z0-9.-]+:|[0-9]{2,5}/")
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/=]{20,}")


def is_issued(value: bytes) -> bool:
    """Return whether a token in a service's own format is not a typed example."""
    return _EXAMPLE.search(value) is None


def is_random_token(value: bytes) -> bool:
    """Return whether a token is issued and random: an identifier may begin as a token does."""
    return is_issued(value) and is_random(value, _RANDOM_LETTERS)


def is_random_with_uuid(value: bytes) -> bool:
    """Return whether the part of a token before the colon is random: the part after it is a UUID."""
    return is_random(value.partition(b":")[0])


def is_mixed_token(value: bytes) -> bool:
    """Return whether a token has digits, letters, ten different bytes or more, and is random."""
    digits = sum(48 <= byte <= 57 for byte in value)
    return digits >= 2 and value.upper() != value.lower() and len(set(value)) >= 10 and is_random(value)


def is_said_secret(value: bytes) -> bool:
    """Return whether a value that a sentence calls a key is one: random, with digits."""
    letters, digits, _ = count_classes(value)
    return letters > 0 and digits >= 2 and not is_made_up(value) and not is_path(value) and is_random(value)


def is_said_password(value: bytes) -> bool:
    """Return whether a value that a sentence calls a password is one: letters and digits, and marks or both cases."""
    letters, digits, special = count_classes(value)
    mixed = value.lower() != value != value.upper()
    return letters > 1 and digits > 0 and is_password(value) and (special > 0 or (mixed and not is_words(value)))


def is_random_word(value: bytes) -> bool:
    """Return whether a value has a digit and is neither words nor a placeholder."""
    return not is_words(value) and not is_made_up(value) and any(48 <= byte <= 57 for byte in value)


def is_password(value: bytes) -> bool:
    """Return whether a value in the place of a password is likely to be one, and no placeholder, path or word."""
    if len(value) < 6 or is_made_up(value) or b"://" in value or is_path(value):
        return False
    if is_words(value) and _ABOUT_SECRETS.search(value):
        return False
    letters, digits, special = count_classes(value)
    return letters > 0 and (digits > 0 or special > 0)


def is_url_password(value: bytes) -> bool:
    """Return whether a value between a colon and the @ of a URL is a password; it may be all digits, but no port."""
    if _PORT.match(value):
        return False
    return is_password(value) or (len(value) >= 5 and value.isdigit())


def is_user_and_password(value: bytes) -> bool:
    """Return whether a value is the base64 of printable text with a colon in it."""
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


def is_base64_text(value: bytes) -> bool:
    """Return whether a value is the base64 of printable text."""
    if value == value.lower():
        return False
    try:
        plain = base64.b64decode(value, validate=True).decode("utf-8")
    except ValueError:
        return False
    return plain.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable()


def is_armored(value: bytes) -> bool:
    """Return whether the text between the ends of a key is mostly base64, whatever a tool put around its lines."""
    runs = sum(len(run) for run in _BASE64_RUN.findall(value))
    return runs >= 40 and 2 * runs >= len(value.translate(None, b" \t\r\n"))


def is_random(value: bytes, least: float = _RANDOM) -> bool:
    """Return whether a value looks random: by letters that seldom follow each other, short runs of letters, digits."""
    odd = 0
    for piece in _PIECES.findall(value):
        if piece.isdigit():
            odd += 1
        else:
            lower = piece.lower()
            odd += len(lower) <= 2
            odd += sum(lower[at : at + 2] not in _PAIRS for at in range(len(lower) - 1))
    return odd >= least * len(value)


def is_words(value: bytes) -> bool:
    """Return whether a value is words, perhaps with short numbers after them: a name, and nothing random."""
    return all(_WORD.fullmatch(part) for part in _SEPARATORS.split(value)) and not (
        len(value) >= 16 and is_random(value)
    )


def is_made_up(value: bytes) -> bool:
    """Return whether a value is a placeholder or a template, and nothing that anybody could use."""
    return _MADE_UP.search(value) is not None or value.lower().rstrip(b"?") in _COMMON_PASSWORDS


def is_path(value: bytes) -> bool:
    """Return whether a value is the path of a file."""
    return _PATH.fullmatch(value) is not None and not is_random(value, _RANDOM_PATH)


def count_classes(value: bytes) -> tuple[int, int, int]:
    """Return how many letters, digits and marks that no identifier has a value holds."""
    digits = sum(48 <= byte <= 57 for byte in value)
    letters = sum(65 <= byte & 0xDF <= 90 for byte in value)
    return letters, digits, sum(byte in _SPECIAL for byte in value)


def entropy(value: bytes) -> float:
    """Return the bits for a byte of the value, by its own frequencies."""
    return -sum(n / len(value) * log2(n / len(value)) for n in Counter(value).values())
