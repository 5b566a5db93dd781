"""The objects of a store in the order of its history, each under the name by which git finds what it is like.

git compares an object with few others: those of its kind whose names end like its own, the larger ones first
(`pack_name_hash` in git's pack-objects.h). In a store the folders of turns, the states and the cells of all sessions
have the same names, and those of one size, each of another session, would stand side by side: of a hundred sessions no
folder would ever meet the one that it grew from. So what lies that high in a commit's tree is named by its line of
history too. Texts keep their names alone: the same file may be read in any session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

REV_LIST: Final = (
    "rev-list", "--all", "--objects", "--in-commit-order", "--topo-order", "--parents", "--left-right",
)  # fmt: skip
"""What git is asked for: each commit behind an arrow with its parents, and then what it has that no commit before it
had, each with its path."""

_SIDE_MARKERS = b"<>"
_DEEP_LEVEL = 3
"""So many slashes has the path of a file that lies in a turn's folder itself: `turns/0000/000001/cells.jsonl`."""


def pack_objects_lines(listed: Iterable[bytes]) -> Iterator[bytes]:
    """The lines for `git pack-objects`, out of what git lists."""
    lines: dict[bytes, bytes] = {}
    count, line = 0, b""
    for entry in listed:
        oid, _, path = entry.rstrip(b"\n").partition(b" ")
        if oid[:1] in _SIDE_MARKERS:
            commit, parents = oid[1:], path.split(b" ")
            known = lines.pop(commit, None)
            if known is None:
                count += 1
            line = known or b"%d" % count
            if parents[0]:
                lines.setdefault(parents[0], line)
            yield commit + b"\n"
        elif path.count(b"/") > _DEEP_LEVEL:
            yield oid + b" " + path + b"\n"
        else:
            yield oid + b" " + path.rpartition(b"/")[2] + b"." + line + b"\n"
