"""Secrets of every kind, put together at run time so that no scanner of this repository fires."""

import random
import string

from anchoring import NAMES, RULES, SOURCE
from redaction_examples import Example, example

HEX = "0123456789abcdef"
WORD = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits


def body(length: int, alphabet: str = WORD) -> str:
    """A random text, the same in every run, with a letter and a digit at its start."""
    made = random.Random(length * 31 + len(alphabet))
    head = [next(c for c in alphabet if c.isalpha()), next((c for c in alphabet[::-1] if c.isdigit()), "x")]
    return "".join(head + [made.choice(alphabet) for _ in range(length - 2)])


def pem(name: str) -> str:
    lines = "\n".join(body(64, WORD + "+/") for _ in range(4))
    return f"-----BEGIN {name}-----" + f"\n{lines}\n" + f"-----END {name}-----"


def hidden(kind: str, secret: str) -> str:
    """What must not be seen of a secret: of a key in several lines one of them, else the first line."""
    lines = secret.strip("\n").replace("\\n", "\n").split("\n")
    return lines[-1].strip() if kind == "private-key" else lines[0]


PASSWORD = "s3" + "cr3t-Pa!" + "w0rd"
JWT = "eyJ" + body(20) + ".eyJ" + body(40) + "." + body(43, WORD + "-_")

TEMPLATES = [
    *((rule["kind"], template) for rule in (*RULES, *NAMES) for template in rule["examples"]),
    *((vendor["kind"], vendor["example"]) for vendor in SOURCE["vendors"]),
]
"""The kinds and examples of the table."""
CASES: list[tuple[str, Example]] = [
    (kind, example(template, random.Random(number))) for number, (kind, template) in enumerate(TEMPLATES)
]
