"""What of a history is known once its commits were checked, so that what sessions share is checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sessgit.check.verifying.states import AUTHORED, values
from sessgit.check.verifying.turns import Where
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.store.backend import Entry

_SAYING = ("start", "fork", "edit", "merge")
"""The events with which what people and programs say changes."""


@dataclass(frozen=True, slots=True)
class Known:
    """A checked commit: the last turn that it leads to, the state as of it and as of the turn before, and whether
    anything up to here is damaged."""

    commit: str
    session: str
    event: str = ""
    number: int = 0
    key: str = ""
    state: Session | None = None
    base: Session | None = None
    is_damaged: bool = False
    is_cut_short: bool | None = None
    """Whether the turn was interrupted, None where it could not be read."""
    carried: tuple[Entry | None, ...] = ()
    """Its pad and its kept files."""

    @property
    def said(self) -> tuple[object, ...] | None:
        """What people and programs said, None where the state cannot be read."""
        return None if self.state is None else (values(self.state, AUTHORED), self.carried)


@dataclass
class Memory:
    """What a process has checked already: what sessions share is checked once."""

    commits: dict[str, Known] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    """The ids of trees and files of which it is known whether they can be read."""
    said: dict[str, list[object]] = field(default_factory=dict)
    """By session what was said with each commit that changed it, and that can say it."""
    carriers: list[Known] = field(default_factory=list)
    """The commits of turns that say otherwise than the commit before them, as after a rewind."""
    prompts: set[str] = field(default_factory=set)
    """The keys of the turns that were checked: a turn that grew or was merged has several commits."""

    @property
    def turns(self) -> int:
        """How many turns were checked."""
        return len(self.prompts)

    def note(self, known: Known, before: Known | None) -> None:
        """Takes what was checked, and the commit before it."""
        self.commits[known.commit] = known
        is_first = before is None or before.session != known.session
        if known.said is None or not (is_first or (before is not None and before.said != known.said)):
            return
        if known.event in _SAYING or is_first:
            self.said.setdefault(known.session, []).append(known.said)
        elif before is not None and before.said is not None:
            self.carriers.append(known)


def unsaid(memory: Memory, session: str) -> Iterator[Finding]:
    """The turns of a session with which it changed what people and programs said, where no other commit says it: a
    turn after a rewind has it from the head of then."""
    for known in memory.carriers:
        if known.session == session and known.said not in memory.said.get(session, ()):
            what = "authored fields changed with it, but no commit of its session changed them"
            yield Where(session, known.number).found("note", "state", what)
