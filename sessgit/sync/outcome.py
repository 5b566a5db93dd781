"""The results of a pull and of a push."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessgit.record.tip_delivery import BranchChange, Relation
from sessgit.store.journal import Operation
from sessgit.store.transaction import Move
from sessgit.sync.agreement import Agreement


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """What was left as it is: a session, a branch or a tag, why, and what to do about it."""

    what: str
    why: str
    hint: str


@dataclass
class SyncPart:
    """Moves that a side makes all or none, what they change, and what both sides agree on afterwards."""

    moves: list[Move] = field(default_factory=list)
    changes: list[BranchChange] = field(default_factory=list)
    agreed: Agreement = field(default_factory=Agreement)
    if_refused: list[SkippedItem] = field(default_factory=list)
    """What to report if a remote refuses the part, besides its sessions."""

    def note(self, session: str, what: Relation, turns: int = 0) -> None:
        """Add a change of a session as a whole."""
        self.changes.append(BranchChange(session, what, turns, session))


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
