"""What a state says of the session as a whole, against the lines of its file: title, version, project, birth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sessgit.agents.claude.facts import Facts
from sessgit.agents.claude.lines import Line
from sessgit.check.verifying.turns import Where
from sessgit.errors import SessgitError
from sessgit.history.reassemble import Laid, own_commits
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.record.recorded_turns import goes_on
from sessgit.store import layout
from sessgit.store.recorder import cursor as cursors
from sessgit.store.store import Store

_PARTS = ("title", "agent_version", "git_branch", "cwd", "created_at", "headless")
_LAST = ("title", "agent_version", "git_branch")
"""Those of which the last line counts that says anything."""
_STATED = ("edit", "merge", "fork", "repair")
_ASIDE = ("edit", "merge")

Values = tuple[object, ...]
"""The value of each of the parts."""


@dataclass
class Sayings:
    """What the lines of a file say in their order, as a recorder notes it: with a title that is a name which the
    session was ever given here, and without."""

    names: list[str]
    plain: Facts = field(default_factory=Facts)
    named: Facts = field(default_factory=Facts)
    every: list[Values] = field(default_factory=list)
    """What was so after any of the lines."""
    titles: set[str] = field(default_factory=set)
    """The titles that any of the lines gave, whatever their rank."""
    holders: set[tuple[int, bool]] = field(default_factory=set)
    """In which file a line says who holds the session, and whether that is a program."""

    def note(self, line: Line, file: int) -> None:
        self.named.names = self.names
        if line.type == "user" and line.text("entrypoint"):
            self.holders.add((file, line.text("entrypoint").startswith("sdk")))
        if line.type not in ("user", "assistant"):
            alone = Facts()
            alone.note(line)
            self.titles.add(alone.title)
        for facts in (self.plain, self.named) if self.names else (self.plain,):
            facts.note(line)
            if not self.every or self.every[-1] != _of_facts(facts):
                self.every.append(_of_facts(facts))

    @property
    def last(self) -> list[Values]:
        return [_of_facts(facts) for facts in ((self.plain, self.named) if self.names else (self.plain,))]


def begun(store: Store, session: str, tips: Iterable[str]) -> Sayings:
    """For the lines of a session's file; nothing is noted yet."""
    try:
        return Sayings([name for name in dict.fromkeys(state.name for state in _stated(store, session, tips)) if name])
    except SessgitError:
        return Sayings([])  # told where it was met


def check(store: Store, session: str, tips: Mapping[str, str], laid: Laid, said: Sayings) -> Iterator[Finding]:
    """What the state at the head says, and neither the lines do nor who edited it.

    Only of a file of which all is recorded: what else a recorder has read nobody can ask any more. Of several files
    nobody knows which lines stood in each of them: there it is asked whether any line, or anybody, said it at all.
    """
    try:
        if laid.missing or not _is_level(store, session, tips):
            return
        if laid.file != 1:
            yield from _several(store, session, tips, said, laid.file)
            return
        held = _of_state(store.state(tips[session]))
        known = [*said.last, *map(_of_state, _stated(store, session, tips.values()))]
        known.append(_started(store, session, tips[session]))
    except SessgitError:
        return  # told where it was met
    if any(map(layout.is_rewound, tips)):
        # Where a file was cut shorter and went on otherwise, lines that it lost stand behind those that it has.
        known += said.every
    wrong = [name for at, name in enumerate(_PARTS) if held[at] not in [values[at] for values in known]]
    if wrong:
        what = f"its {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not what its lines say"
        yield Where(session).found("wrong", "state", what)


def _several(store: Store, session: str, tips: Mapping[str, str], said: Sayings, last: int) -> Iterator[Finding]:
    """What of the state at the head no line of any file ever said; a title also where it is a name that was given.
    Who held it, lines of the `last` file say, and what stood in it before is among those of all files."""
    head = store.state(tips[session])
    held = _of_state(head)
    known = [*said.every, *map(_of_state, _stated(store, session, tips.values()))]
    ever = {name: {values[at] for values in known} for at, name in enumerate(_PARTS)}
    ever["title"] |= {*said.titles, *said.names}
    wrong = [name for at, name in enumerate(_PARTS) if name in _LAST and held[at] and held[at] not in ever[name]]
    by_person, by_program = ({file for file, is_program in said.holders if is_program is one} for one in (False, True))
    if last in by_person if head.headless else (last in by_program and not by_person):
        wrong.append("headless")
    if wrong:
        what = f"its {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not what any line of its files says"
        yield Where(session).found("note", "state", what)


def _of_facts(facts: Facts) -> Values:
    return facts.title, facts.version, facts.git_branch, facts.project, facts.born, facts.headless


def _of_state(state: Session) -> Values:
    return state.title, state.agent_version, state.git_branch, state.project, state.created, state.headless


def _stated(store: Store, session: str, tips: Iterable[str]) -> Iterator[Session]:
    """The states of the session that came of no lines: of its edits, and of what it began with."""
    is_repaired = False
    for tip in tips:
        for commit, message in own_commits(store, session, tip):
            is_repaired = is_repaired or message.get("Event") == "repair"
            if message.get("Event") in _STATED or (is_repaired and message.get("Event") == "start"):
                yield store.state(commit)


def _started(store: Store, session: str, tip: str) -> Values:
    """What the first commit of a session says alone: when a program made it."""
    first = [commit for commit, _ in own_commits(store, session, tip)][-1]
    return None, None, None, None, store.state(first).created, None


def _is_level(store: Store, session: str, tips: Mapping[str, str]) -> bool:
    """Whether every line that was read for the state at the head is recorded."""
    events = (message.get("Event") for _, message in own_commits(store, session, tips[session]))
    last = next((event for event in events if event not in _ASIDE), "")
    if last == "end":
        return True
    known = cursors.load(store.beside, session)
    return last in ("turn", "cell", "graft") and (
        known is not None and not known.pending and goes_on(store, session, tips, known)
    )
