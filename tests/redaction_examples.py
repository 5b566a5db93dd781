"""Texts out of the templates of the rules: `<36>` becomes 36 random letters and digits, `«…»` is the secret."""

from __future__ import annotations

import base64
import random
import re
import string
from typing import NamedTuple

DIGITS, LOWER, UPPER = string.digits, string.ascii_lowercase, string.ascii_uppercase
ALPHABETS = {
    "": string.ascii_letters + DIGITS,
    "hex": DIGITS + "abcdef",
    "HEX": DIGITS + "ABCDEF",
    "upper": UPPER + DIGITS,
    "lower": LOWER + DIGITS,
    "letters": string.ascii_letters,
    "digits": DIGITS,
    "base32": UPPER + "234567",
    "base64": string.ascii_letters + DIGITS + "+/",
    "url": string.ascii_letters + DIGITS + "-_",
}
_PLACE = re.compile(r"<(?:(?P<length>[0-9]{1,3})(?: (?P<name>[a-zA-Z0-9]+))?|(?P<made>uuid|password|basic))>")
_MARKS = "#!&-=+~^"


class Example(NamedTuple):
    """A text with a secret in it: what stands before, the secret, and what stands behind."""

    before: str
    secret: str
    after: str

    @property
    def text(self) -> str:
        return self.before + self.secret + self.after


def example(template: str, rng: random.Random) -> Example:
    """Return a template's text with random values."""
    text = filled(template, rng)
    if "«" not in text:
        return Example("", text, "")
    before, _, rest = text.partition("«")
    secret, _, after = rest.partition("»")
    return Example(before, secret, after)


def filled(template: str, rng: random.Random) -> str:
    """Return a template with random characters in its places; what is marked stays marked."""

    def value(place: re.Match[str]) -> str:
        if place["made"] == "uuid":
            return "-".join(chosen("hex", n, rng) for n in (8, 4, 4, 4, 12))
        if place["made"] == "password":
            return password(rng)
        if place["made"] == "basic":
            return base64.b64encode(f"me:{password(rng)}".encode()).decode().rstrip("=")
        return chosen(place["name"] or "", int(place["length"]), rng)

    return _PLACE.sub(value, template)


def chosen(alphabet: str, length: int, rng: random.Random) -> str:
    return "".join(rng.choice(ALPHABETS[alphabet]) for _ in range(length))


def password(rng: random.Random) -> str:
    """Return a password as people make them: letters of both cases, a mark, digits."""
    letters = "".join(rng.choice(string.ascii_letters) for _ in range(5))
    return letters.capitalize() + rng.choice(_MARKS) + chosen("digits", 3, rng) + chosen("letters", 3, rng)
