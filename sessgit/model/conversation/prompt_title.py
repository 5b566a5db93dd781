"""The line of a prompt by which a conversation is listed if nobody has named it."""

from __future__ import annotations

import re

from sessgit.model import canonical

_WIDTH = 200
_SHORT_WORD = 12
_GREETINGS = frozenset(["hi", "hello", "hey", "there", "claude", "codex", "good", "morning", "afternoon", "evening"])
_WORDS = re.compile(r"\w+")
_BARE_COMMAND = re.compile(r"/[\w:.-]+")


def prompt_title(prompt: str) -> str:
    """Return the first line of a prompt, or the heading that follows it if it is a lead-in such as `Implement the
    following plan:`."""
    first = canonical.one_line(prompt, _WIDTH)
    if first.endswith(":"):
        following = canonical.one_line(prompt[prompt.find(first) + len(first) :], _WIDTH)
        if following.startswith("#"):
            return following.lstrip("# ") or first
    return first


def better_title(known: str, new: str) -> str:
    """Return the first of two titles that says something, else the first that is not empty."""
    return new if new and (not known or (not _says_something(known) and _says_something(new))) else known


def is_terse(title: str) -> bool:
    """Return whether a prompt's line is one short word, such as `ok`, or a greeting, and says little about its turn. A
    long one is a path, or a sentence of a language without spaces."""
    return (len(title) <= _SHORT_WORD and len(title.split()) < 2) or not _says_something(title)


def _says_something(title: str) -> bool:
    """Return whether a title is more than a greeting, one character or a command without arguments."""
    words = _WORDS.findall(title.casefold())
    return sum(map(len, words)) > 1 and not _GREETINGS.issuperset(words) and not _BARE_COMMAND.fullmatch(title)
