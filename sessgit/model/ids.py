"""Ids that are functions of what they name, so that two machines arrive at the same ones; and names and addresses,
`SESSION[@TURN[.CELL]]`, as a person types them."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Iterable
from itertools import takewhile

from sessgit.errors import UsageError
from sessgit.model import canonical
from sessgit.model.frozen import frozen

SESSION_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
BRANCH = re.compile(rf"{SESSION_ID.pattern}(\.[rm]-[0-9a-f]{{8}})?")
_NAMESPACE = "6f9c2d0e-5c0a-5e55-9b7e-2f6f1f1f7a11"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def session_id(agent_id: str) -> str:
    """Return the session's id for the agent's own: itself where it can be a ref name, else a uuid5 of it."""
    if SESSION_ID.fullmatch(agent_id):
        return agent_id
    return stable_uuid(agent_id.encode("utf-8", "surrogatepass").hex())


def line_id(line: bytes, offset: int) -> str:
    """Return a uuid5 for a prompt that has no uuid of its own: of its bytes and their place."""
    return stable_uuid(f"{offset}:{hashlib.sha256(line).hexdigest()}")


def merged_id(mode: str, ours: str, theirs: str, what: str) -> str:
    """Return a uuid5 for a line that a merge of two commits brings: the same on every machine."""
    name = f"merge:{mode}:{ours}:{theirs}:{what}"
    return stable_uuid(name.encode("utf-8", "surrogatepass").hex())


def short_id(prompt_uuid: str) -> str:
    """Eight characters of `0-9a-f` for a prompt's uuid: its own first eight where it has them."""
    head = prompt_uuid[:8]
    if re.fullmatch(r"[0-9a-f]{8}", head):
        return head
    return hashlib.sha256(prompt_uuid.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def shortest_unique(one: str, others: Iterable[str], least: int) -> str:
    """Return as much of an id as tells it from all others, `least` characters where it has them."""
    return one[: max([least, *(1 + common_prefix_length(one, other) for other in others)])]


def rewound_name(session: str, prompt_uuid: str) -> str:
    """Return the branch for the turns that a rewind left behind, of which `prompt_uuid` is the first."""
    return f"{session}.r-{short_id(prompt_uuid)}"


def other_name(session: str, prompt_uuid: str) -> str:
    """Return the branch for another version's turns, of which `prompt_uuid` is the first that is not shared."""
    return f"{session}.m-{short_id(prompt_uuid)}"


def is_turn_key(key: str) -> bool:
    """Return whether a turn can have this key."""
    return re.fullmatch(r"[!-~]{1,100}", key) is not None


def is_branch(name: str) -> bool:
    """Return whether a branch can have this name: a session's id, or that with the end of a side branch."""
    return BRANCH.fullmatch(name) is not None


def cell_id(prompt_uuid: str, key: str) -> str:
    """`cell_` and eight of `a-z0-9`, a function of the turn and of the agent's id for the call or message."""
    digest = hashlib.sha256(f"{prompt_uuid}\0{key}".encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:8], "big")
    letters = []
    for _ in range(8):
        number, digit = divmod(number, 36)
        letters.append(_DIGITS[digit])
    return "cell_" + "".join(letters)


def common_prefix_length(a: Iterable[object], b: Iterable[object]) -> int:
    """Return how many items at the beginning of both are equal."""
    return sum(takewhile(bool, map(operator.eq, a, b)))


def stable_uuid(name: str) -> str:
    """Return a uuid5 of the name: the same on every machine."""
    import uuid  # which few names need, and takes longer to load than all of this package's own values

    return str(uuid.uuid5(uuid.UUID(_NAMESPACE), name))


# Names and addresses

_TURN_PATTERN = re.compile(r"(-?\d{1,9})(?:\.([A-Za-z0-9_]{1,40}))?")
_NAME_FORBIDDEN = re.compile(r"[@/]|^-")
_TAG_FORBIDDEN = re.compile(r"[\s@/~^:?*\[\\]|\.\.|^[-.]|\.$|\.lock$|^HEAD$", re.IGNORECASE)
_ID_PATTERN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""What a commit or a session is called: a name like that would hide it."""
_LONGEST_FILE = 240
"""Bytes: a tag is a file, next to which git writes another one with a longer name."""


@frozen
class Address:
    """`session` is empty for the current one; `turn` counts from the end where it is negative."""

    session: str = ""
    turn: int | None = None
    cell: str = ""

    def __str__(self) -> str:
        if self.turn is None:
            return self.session
        return f"{self.session}@{self.turn}{'.' if self.cell else ''}{self.cell}"


def parse_address(text: str, at: str | None = None) -> Address:
    """Return the address that `text` spells, with `at` as its turn (and cell) where that is given; raises
    UsageError."""
    session, sign, rest = text.partition("@")
    if at is not None and sign:
        raise UsageError(f"{text} already names a turn", "Use either @TURN or --at TURN.")
    rest = at if at is not None else rest
    if not rest:
        return Address(session)
    match = _TURN_PATTERN.fullmatch(rest)
    if match is None:
        raise UsageError(f"“{rest}” is not a turn", "A turn is a number, a cell is 7.3; -1 is the last turn.")
    return Address(session, int(match[1]), match[2] or "")


def check_name(name: str) -> str:
    """Return the name without white space around it, if it can be part of an address; raises UsageError."""
    name = name.strip()
    if not name or len(name) > 100 or _NAME_FORBIDDEN.search(name) or not canonical.is_printable(name):
        raise UsageError(
            f"“{canonical.printable(name)}” cannot be a name" if name else "the name is empty",
            "A name has at most 100 characters, no @, / or control characters, and does not start with -.",
        )
    if _ID_PATTERN.fullmatch(name):
        raise UsageError(f"“{name}” cannot be a name: it looks like an id", "Choose a descriptive name.")
    return name


def check_tag(name: str) -> str:
    """Return the name, if git takes it for a tag and it can be part of an address; raises UsageError."""
    bad = (
        _TAG_FORBIDDEN.search(name)
        or not name
        or len(name) > 100
        or len(name.encode("utf-8", "replace")) > _LONGEST_FILE
    )
    if bad or not canonical.is_printable(name) or _ID_PATTERN.fullmatch(name):
        raise UsageError(
            f"“{canonical.printable(name)}” cannot be a tag" if name else "the tag is empty",
            "A tag is one word that git allows, at most 100 characters, without @ and /, and not an id, such as "
            "before-merge.",
        )
    return name


def is_tag(name: str) -> bool:
    """Return whether a tag can have this name."""
    try:
        check_tag(name)
    except UsageError:
        return False
    return True
