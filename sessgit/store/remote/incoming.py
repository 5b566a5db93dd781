"""What a fetch asks for, in git's own words.

git compares each ref that it is told by its name with every ref of the remote, which takes half a minute for ten
thousand. What it is told by a pattern it looks up, and names of what must not come cost next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sessgit.store import layout

_SAFE_REF = re.compile(r"(?!.*\.lock(?:/|$))refs(?:/[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)+")
"""The name of somebody else's ref that git takes, whatever its version."""
_PEELED = "^{}"


def mirror_refspecs(remote: str) -> list[str]:
    """The refspecs by which the tracking refs follow what the remote holds, wherever that goes."""
    return [f"+{space}*:{layout.tracking_ref(remote, space)}*" for space in layout.REF_SPACES]


def refspecs_for(remote: str, coming: Sequence[str]) -> list[str]:
    """The refspecs that bring these refs, by their full names there, into the tracking refs."""
    return [f"+{ref}:{layout.tracking_ref(remote, ref)}" for ref in coming]


def pattern_refspecs(
    remote: str, coming: Sequence[str], there: Mapping[str, str], known: Mapping[str, str]
) -> list[str]:
    """The refspecs that bring these refs, and of all others that are `there` only those that are here already.

    `known` are the tracking refs. What others make there meanwhile may come along, and is known then as what was seen
    there, no more. Where a name of the others is one that git might not take, each is named that comes.
    """
    spaces = tuple(sorted({layout.split_ref(ref)[0] for ref in coming}))
    wanted = set(coming)
    others = [
        ref
        for ref, oid in there.items()
        if ref.startswith(spaces) and ref not in wanted and not ref.endswith(_PEELED)
        and known.get(layout.tracking_ref(remote, ref)) != oid
    ]  # fmt: skip
    if not all(map(_SAFE_REF.fullmatch, others)):
        return refspecs_for(remote, coming)
    return [*(f"+{space}*:{layout.tracking_ref(remote, space)}*" for space in spaces), *(f"^{ref}" for ref in others)]
