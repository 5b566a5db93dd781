"""The diff of two conversations: a list of edits that turns the one into the other.

The laws, which tests hold it to: `patch(a, diff(a, b)) == b`, `diff(a, a)` changes nothing, and `diff(b, a)` is
`diff(a, b)` with its sides swapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Side = Literal["both", "a", "b"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A turn by what identifies it (a prompt's uuid, or its text): in both conversations, or only in one."""

    side: Side
    key: str


def diff(a: Sequence[str], b: Sequence[str]) -> list[Edit]:
    """The edits for two conversations that have a common ancestor: shared turns first, then those of each."""
    shared = common(a, b)
    kept = [Edit("both", key) for key in a[:shared]]
    return kept + [Edit("a", key) for key in a[shared:]] + [Edit("b", key) for key in b[shared:]]


def diff_unrelated(a: Sequence[str], b: Sequence[str]) -> list[Edit]:
    """The edits for two conversations without a common ancestor, whose turns are told by what was asked."""
    swapped = (len(a), *a) > (len(b), *b)
    first, second = (b, a) if swapped else (a, b)
    sides: tuple[Side, Side] = ("b", "a") if swapped else ("a", "b")
    edits: list[Edit] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "equal":
            edits += [Edit("both", key) for key in first[i:i_end]]
        else:
            own = [Edit(sides[0], key) for key in first[i:i_end]]
            other = [Edit(sides[1], key) for key in second[j:j_end]]
            edits += other + own if swapped else own + other
    return edits


def patch(a: Sequence[str], edits: Sequence[Edit]) -> list[str]:
    """The conversation that the edits make of `a`; raises ValueError if they were not made for it."""
    if [edit.key for edit in edits if edit.side != "b"] != list(a):
        raise ValueError("these edits are for another conversation")
    return [edit.key for edit in edits if edit.side != "a"]


def common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many turns both begin with."""
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count
