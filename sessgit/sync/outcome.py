"""What a pull or a push did, told in values."""

from __future__ import annotations

from dataclasses import dataclass

from sessgit.record.tip_delivery import BranchChange
from sessgit.store.journal import Operation


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """What was left as it is: a session, a branch or a tag, why, and what to do about it."""

    what: str
    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class PullResult:
    """What came from a remote; `operation` is None where nothing moved, and `behind` are the sessions whose files here
    lack turns that came."""

    remote: str
    changes: tuple[BranchChange, ...] = ()
    tags: tuple[str, ...] = ()
    left: tuple[SkippedItem, ...] = ()
    operation: Operation | None = None
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PushResult:
    """What went to a remote; `carried` are other sessions whose turns go along, since a fork or a merge holds them."""

    remote: str
    changes: tuple[BranchChange, ...] = ()
    tags: tuple[str, ...] = ()
    left: tuple[SkippedItem, ...] = ()
    carried: tuple[str, ...] = ()
