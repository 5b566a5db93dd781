"""What is wrong with the lines of a branch, and the transcript that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessgit import agents
from sessgit.agents.values import Mend
from sessgit.errors import SessgitError
from sessgit.history import reassemble
from sessgit.model.conversation.session import Session
from sessgit.store import layout, refs
from sessgit.store.store import Store

_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a branch that can be read: by turn, as they stand in the session's file; `last` is the last turn,
    and what follows it counts as one more. `lost` are the turns from the first one on that cannot be read."""

    branch: str
    commit: str
    state: Session
    turns: tuple[tuple[int, tuple[bytes, ...]], ...]
    last: int
    lost: int = 0
    known: tuple[str, ...] = ()
    """The agent's ids of the sessions that it comes from, which may stand in the lines that it shares."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What mending a branch means: `shared` turns stay as they are, the lines of the others become `rest`."""

    lines: Lines
    mends: tuple[Mend, ...]
    shared: int
    rest: tuple[tuple[bytes, ...], ...]

    @property
    def is_needed(self) -> bool:
        return bool(self.mends or self.lines.lost)

    @property
    def is_conversation(self) -> bool:
        """Whether there is a line left that anybody said."""
        every = (raw for turn in (*self.beginning(), *self.rest) for raw in turn)
        return any(line.is_said for line in agents.of(self.lines.state).lines.parsed(every))

    def beginning(self) -> list[Sequence[bytes]]:
        """The lines of the turns that are shared."""
        return [lines for number, lines in self.lines.turns if number <= self.shared]


def plan(lines: Lines, strange: Sequence[Mend] = (), *, alone: bool = False) -> Plan:
    """What is to be done about the lines; `alone` says that no turn can be shared, `strange` what of the session's file
    stands on other branches and is another session's."""
    made = agents.of(lines.state).repair.mend(lines.turns, lines.state.agent_id, lines.known)
    first = min((mend.turn for mend in made.mends), default=lines.last + 1)
    shared = 0 if alone else min(first - 1, lines.last)
    rest = tuple(tuple(made.turns.get(number, ())) for number, _ in lines.turns if number > shared)
    return Plan(lines, (*made.mends, *strange), shared, rest)


def read(store: Store, branch: str, commit: str) -> Lines:
    """The lines of a branch as of a commit, as far as they can be read from the first turn on."""
    state = store.state(commit)
    known = origins(store, state)
    turns: list[tuple[int, tuple[bytes, ...]]] = []
    for number in range(1, state.turns + 1):
        try:
            turns.append((number, tuple(reassemble.turn_lines(store, commit, state, number))))
        except SessgitError:
            return Lines(branch, commit, state, tuple(turns), len(turns), state.turns - len(turns), known)
    try:
        tail = store.tail(commit)
    except SessgitError:
        tail = b""
    turns.append((state.turns + 1, tuple(line for line in tail.split(b"\n") if line)))
    return Lines(branch, commit, state, tuple(turns), state.turns, known=known)


def put_in_order(store: Store, branch: str, commit: str) -> tuple[Lines, Mend] | None:
    """All lines of a session's file behind their parents, as those of one turn, where most of them stood before; else
    None. What was cut out of such a file says nothing of the conversation."""
    session = layout.session_of(branch)
    try:
        laid = reassemble.lay_out(
            reassemble.file_pieces(store, session, reassemble.session_branches(store, session)).found
        )
        state = store.state(commit)
    except SessgitError:
        return None
    raw = [line for piece in laid.pieces for line in piece.lines]
    ordered, early = agents.of(state).repair.in_order(raw)
    if not early or laid.file > 1:
        return None
    what = f"{early:,} of {len(raw):,} lines of its file came before the line that they follow: moved after it"
    lines = Lines(branch, commit, state, ((1, tuple(ordered)),), state.turns, known=origins(store, state))
    return lines, Mend("order", 1, 1, what)


def origins(store: Store, state: Session) -> tuple[str, ...]:
    """The agent's ids of the sessions that this one left, and of those that these left."""
    found: dict[str, None] = {}
    while (origin := state.origin) is not None and len(found) < _DEEPEST:
        found.update(dict.fromkeys((*origin.replaced, origin.session)))
        try:
            state = store.state(origin.commit)
        except SessgitError:
            break
        found[state.agent_id] = None
    return tuple(found)


def basis(store: Store, branch: str) -> str:
    """The branch to mend: the one that is named; for a head in which every prompt is another session's the rewound
    branch that has the session's own."""
    tips = {name: tip for name, (tip, _) in refs.branches(store.path, layout.session_of(branch)).items()}
    if layout.is_side_branch(branch) or branch not in tips or _is_own(store, tips[branch]):
        return branch
    others = (name for name in sorted(tips) if layout.is_rewound_branch(name) and _is_own(store, tips[name]))
    return next(others, branch)


def strangers(store: Store, branch: str) -> list[Mend]:
    """The branches that hold lines of another session, which were written into the same file."""
    found = []
    for name, (tip, _) in sorted(refs.branches(store.path, layout.session_of(branch)).items()):
        if name == branch or layout.is_other_version(name) or _is_own(store, tip):
            continue
        state = store.state(tip)
        named = min(map(min, _named(state, store.lines(tip, state.turns).body)))
        what = f"turns of another session, {named[:8]}, in its file, on {layout.short_name(name)}: left out"
        found.append(Mend("writer", state.turns, 1, what))
    return found


def _is_own(store: Store, tip: str) -> bool:
    """Whether any line of the last turn is the session's own, or none says whose it is."""
    try:
        state = store.state(tip)
        stored = store.lines(tip, state.turns).body if state.turns else []
    except SessgitError:
        return True
    named = _named(state, stored)
    own = {state.agent_id, *origins(store, state)}
    return not named or any(names & own for names in named)


def _named(state: Session, stored: Sequence[bytes]) -> list[set[str]]:
    """The sessions that each of the lines names as its own, for those that name any."""
    agent = agents.of(state)
    return [names for line in agent.lines.parsed(stored) if (names := agent.writer.session_ids(line))]
