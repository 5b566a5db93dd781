"""The diff of two conversations: a list of edits that turns the one into the other.

The laws, which tests hold it to: `patch(a, diff(a, b)) == b`, `diff(a, a)` changes nothing, and `diff(b, a)` is
`diff(a, b)` with its sides swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import Generic, TypeVar

from sessgit.model import ids
from sessgit.model.frozen import frozen

Turn = TypeVar("Turn")
Same = Callable[[Turn, Turn], bool]
"""Whether two corresponding turns are the same."""


@frozen
class Edit(Generic[Turn]):
    """A turn of a, and the corresponding turn of b; None on the side that has no such turn."""

    a: Turn | None
    b: Turn | None
    same: bool = False
    """Whether both sides have the turn, and it is the same."""

    @property
    def changed(self) -> bool:
        """Return whether both sides have a turn there, and the two differ."""
        return self.a is not None and self.b is not None and not self.same


def diff(a: Sequence[Turn], b: Sequence[Turn], key: Callable[[Turn], Hashable], same: Same[Turn]) -> list[Edit[Turn]]:
    """Return the edits for two conversations that have a common ancestor.

    Turns correspond up to the first ones that have another key; then come those of each side.
    """
    together = ids.common_prefix_length(map(key, a), map(key, b))
    return _edits(a, b, [(0, 0, together), (len(a), len(b), 0)], same)


def diff_unrelated(
    a: Sequence[Turn], b: Sequence[Turn], key: Callable[[Turn], str], same: Same[Turn]
) -> list[Edit[Turn]]:
    """Return the edits for two conversations without a common ancestor: turns with the same key, in order, stand for
    each other."""
    keys = list(map(key, a)), list(map(key, b))
    if (len(a), *keys[0]) > (len(b), *keys[1]):  # the matcher finds something else the other way round
        blocks = [(i, j, size) for j, i, size in _matching_blocks(keys[1], keys[0])]
    else:
        blocks = _matching_blocks(*keys)
    return _edits(a, b, blocks, same)


def _edits(
    a: Sequence[Turn], b: Sequence[Turn], blocks: Iterable[tuple[int, int, int]], same: Same[Turn]
) -> list[Edit[Turn]]:
    """Return the edits for two conversations whose turns correspond in these blocks alone."""
    edits: list[Edit[Turn]] = []
    start, other = 0, 0
    for i, j, size in blocks:
        edits += [*(Edit(one, None) for one in a[start:i]), *(Edit(None, one) for one in b[other:j])]
        start, other = i + size, j + size
        edits += [Edit(left, right, same(left, right)) for left, right in zip(a[i:start], b[j:other], strict=True)]
    return edits


def _matching_blocks(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return where the same keys are in both, and how many; the last one is empty and at both ends."""
    return [
        (block.a, block.b, block.size) for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    ]
