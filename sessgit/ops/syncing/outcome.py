"""What a pull or a push did, told in values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sessgit.store.journal import Operation

What = Literal[
    "new", "forward", "parted", "merged", "joined", "rewound", "archived", "brought back", "deleted", "kept",
    "purged",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a session, or of a branch of it, where the turns came to; `turns` says how many came.

    `new`: it was not there. `forward`: it went on. `parted`: both sides went on, and `branch` holds the other one.
    `merged`: it went forward to where all of it was merged, and `branch` holds what was its own.
    `joined`: what people said of it on both sides is one now. `rewound`: `branch` holds what a rewind left behind.
    `kept`: it was deleted elsewhere, but `turns` turns here were not in what was deleted.
    `purged`: it held a value there that was purged here, and does no more.
    """

    session: str
    what: What
    turns: int
    branch: str


@dataclass(frozen=True, slots=True)
class Left:
    """What was left as it is: a session, a branch or a tag, why, and what to do about it."""

    what: str
    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class Pulled:
    """What came from a remote; `operation` is None where nothing moved, and `behind` are the sessions whose files here
    lack turns that came."""

    remote: str
    changes: tuple[Change, ...] = ()
    tags: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    operation: Operation | None = None
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pushed:
    """What went to a remote; `carried` are other sessions whose turns go along, since a fork or a merge holds them."""

    remote: str
    changes: tuple[Change, ...] = ()
    tags: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    carried: tuple[str, ...] = ()
