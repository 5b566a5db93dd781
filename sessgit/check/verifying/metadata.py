"""What a state says of the session as a whole, against the lines of its file: title, version, project, birth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sessgit.agents.base import Agent, Facts
from sessgit.agents.line import Line
from sessgit.check.verifying.turns import Where
from sessgit.errors import SessgitError
from sessgit.history.reassemble import LaidOutFile, own_commits
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.record.recorded_turns import matches_cursor
from sessgit.store import layout
from sessgit.store.recorder import cursor as cursors
from sessgit.store.store import Store

_FIELDS = {
    "title": "title", "agent_version": "version", "git_branch": "git_branch", "project": "project", "created": "born",
}  # fmt: skip
"""By the field of a state the one of the facts that lines give."""
_LATEST = ("title", "agent_version", "git_branch")
"""Those that are compared where a session has several files: of the others the first file counts, which is gone."""
_STATED = ("edit", "merge", "fork", "repair")


@dataclass
class Sayings:
    """The facts of the lines of a session's files, as a recorder notes them: with a title that is one of the session's
    `names`, which `restore` writes, and without."""

    agent: Agent
    names: list[str]
    plain: Facts
    named: Facts
    ever: dict[str, set[object]] = field(default_factory=lambda: {name: set() for name in _FIELDS})
    """By field each value that was so after any of the lines."""
    people: set[int] = field(default_factory=set)
    programs: set[int] = field(default_factory=set)
    """The files in which a line says that a person, or a program, holds the session."""

    def note(self, line: Line, file: int) -> None:
        """Takes what a line says."""
        self.named.learn(self.names)
        alone = self.agent.facts()
        for facts in (self.plain, self.named, alone):
            facts.note(line)
        if alone.headless or alone.held:
            (self.programs if alone.headless else self.people).add(file)
        self.ever["title"] |= {alone.title}
        for name, fact in _FIELDS.items():
            self.ever[name].add(getattr(self.plain, fact))

    def allowed(self, name: str, *, is_level: bool) -> set[object]:
        """Return the values that lines give a field: where `is_level`, after the last of them."""
        if not is_level:
            return {*self.ever[name], *(self.names if name == "title" else ())}
        return {getattr(facts, _FIELDS[name]) for facts in (self.plain, self.named)}

    def is_headless(self, last: int, *, told: bool) -> bool:
        """Return whether the lines allow what is told of who holds the session, whose `last` file counts most."""
        if told:
            return bool(self.programs) and last not in self.people
        return last not in self.programs or bool(self.people)


def begun(agent: Agent, store: Store, session: str, tips: Iterable[str]) -> Sayings:
    """For the lines of a session's file; nothing is noted yet."""
    try:
        names = [name for name in dict.fromkeys(state.name for state in _stated(store, session, tips)) if name]
    except SessgitError:
        names = []  # told where it was met
    return Sayings(agent, names, agent.facts(), agent.facts())


def check(store: Store, session: str, tips: Mapping[str, str], laid: LaidOutFile, said: Sayings) -> Iterator[Finding]:
    """Return a finding for what the state at the head says, and neither the lines do nor a commit that edited it.

    Only where each line that was read is recorded. Of one file the last line counts; of several, or of one that was cut
    shorter and went on otherwise, any line.
    """
    try:
        if laid.missing or not _is_level(store, session, tips):
            return
        head, stated = store.state(tips[session]), list(_stated(store, session, tips.values()))
        first = store.state([commit for commit, _ in own_commits(store, session, tips[session])][-1])
    except SessgitError:
        return  # told where it was met
    is_one = laid.file == 1
    is_level = is_one and not any(map(layout.is_rewound_branch, tips))
    wrong = [
        name
        for name in (_FIELDS if is_one else _LATEST)
        if getattr(head, name) not in said.allowed(name, is_level=is_level) | {getattr(one, name) for one in stated}
        and (is_one or getattr(head, name))
        and not (name == "created" and head.created == first.created)  # when a program made it
    ]
    if not said.is_headless(laid.file, told=head.headless) and head.headless not in [one.headless for one in stated]:
        wrong.append("headless")
    if wrong:
        what = f"its {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not what its lines say"
        yield Where(session).found("wrong" if is_one else "note", "state", what)


def _stated(store: Store, session: str, tips: Iterable[str]) -> Iterator[Session]:
    """The states of the session that came of no lines: of its edits, and of what it began with."""
    is_repaired = False
    for tip in tips:
        for commit, message in own_commits(store, session, tip):
            is_repaired = is_repaired or message.get("Event") == "repair"
            if message.get("Event") in _STATED or (is_repaired and message.get("Event") == "start"):
                yield store.state(commit)


def _is_level(store: Store, session: str, tips: Mapping[str, str]) -> bool:
    """Whether every line that was read for the state at the head is recorded."""
    events = (message.get("Event") for _, message in own_commits(store, session, tips[session]))
    last = next((event for event in events if event not in ("edit", "merge")), "")
    if last == "end":
        return True
    known = cursors.load_cursor(store.beside, session)
    return last in ("turn", "cell", "graft") and (
        known is not None and not known.pending and matches_cursor(store, session, tips, known)
    )
