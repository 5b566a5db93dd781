"""What of a history is known once its commits were checked, so that what sessions share is checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sessgit.check.verifying.forms import authored
from sessgit.check.verifying.turns import Where
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.store.backend import Entry


@dataclass(frozen=True, slots=True)
class Known:
    """What a checked commit leads to: its last turn, the state as of it and as of the turn before, and whether
    anything up to here is damaged."""

    commit: str
    session: str
    number: int = 0
    key: str = ""
    state: Session | None = None
    base: Session | None = None
    is_damaged: bool = False
    cells: frozenset[str] = frozenset()
    """The ids of the turn's cells."""
    is_cut_short: bool | None = None
    """Whether the turn was interrupted, None where it could not be read."""
    carried: tuple[Entry | None, ...] = ()
    """Its pad and its kept files."""
    earlier: Known | None = None
    """The commit before it; None at the start, and where that cannot be read."""
    depth: int = 0
    """How many commits are known before it."""
    skip: Known | None = None
    """One further back, so that any of them is reached in few steps."""

    def on(self, before: Known | None) -> Known:
        """The same, standing on another commit."""
        skip = before.skip if before is not None else None
        if before is None:
            return replace(self, earlier=None, depth=0, skip=None)
        is_even = skip is not None and skip.skip is not None and before.depth + skip.skip.depth == 2 * skip.depth
        return replace(self, earlier=before, depth=before.depth + 1, skip=skip.skip if skip and is_even else before)

    def holds(self, other: Known) -> bool:
        """Whether the other one is this commit or one before it."""
        at: Known | None = self
        while at is not None and at.depth > other.depth:
            at = at.skip if at.skip is not None and at.skip.depth >= other.depth else at.earlier
        return at is other


@dataclass
class Memory:
    """What a process has checked already: what sessions share is checked once."""

    commits: dict[str, Known] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)
    cells: dict[str, list[Known]] = field(default_factory=dict)
    """By its id the commits that brought a cell."""
    said: list[Known] = field(default_factory=list)
    """The commits of turns with which it changed what people and programs said, as after a rewind."""
    prompts: set[str] = field(default_factory=set)
    """The keys of the turns that were checked: a turn that grew or was merged has several commits."""

    @property
    def turns(self) -> int:
        """How many turns were checked."""
        return len(self.prompts)

    def note(self, known: Known) -> None:
        """Takes what was checked."""
        self.commits[known.commit] = known
        before = known.earlier
        is_same = before is not None and (before.number, before.key) == (known.number, known.key)
        for cell in known.cells - (before.cells if before is not None and is_same else frozenset()):
            self.cells.setdefault(cell, []).append(known)

    def nearest(self, cell: str, known: Known | None) -> Known | None:
        """The last commit up to that one that brought a cell with this id, None for none."""
        found = [one for one in self.cells.get(cell, ()) if known is not None and known.holds(one)]
        return max(found, key=lambda one: one.depth, default=None)


def unsaid(memory: Memory, session: str) -> Iterator[Finding]:
    """The turns of a session with which it changed what people and programs said, where no other commit says it: a
    turn after a rewind has it from the head of then."""
    own = [one for one in memory.commits.values() if one.session == session and one.state is not None]
    for known in (one for one in memory.said if one.session == session and one.state is not None):
        if not any(is_said(known, other) and not other.holds(known) for other in own):
            what = "what people or programs said changed with it, and no commit of its session says that"
            yield Where(session, known.number).found("note", "state", what)


def is_said(one: Known, other: Known) -> bool:
    """Whether two commits have the same of people and programs, where their states can be read."""
    if one.state is None or other.state is None:
        return False
    return authored(one.state) == authored(other.state) and one.carried == other.carried
