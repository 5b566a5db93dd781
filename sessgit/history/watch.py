"""What happens to a store, told as it happens: turns, forks, rewinds, merges, names, tags, whoever makes them.

The refs are what is watched, and the commits that they lead to say what was done. So recorders, commands and plain git
are all seen, and nobody has to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.errors import SessgitError, StoreError
from sessgit.history import ref_poller, resolve
from sessgit.history.client_files import LocalPath
from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens
from sessgit.store import journal, layout, project, refs
from sessgit.store.journal import Operation
from sessgit.store.sqlite.rows import Row

if TYPE_CHECKING:
    from sessgit.store.backend import Commit
    from sessgit.store.store import Store

INTERVAL = 0.25
"""Seconds between two looks at the store."""

_MOST_MISSING = 4
"""So many looks a store that is gone is waited for, and one that does not come to rest."""

_TURN_EVENTS = ("turn", "cell", "graft")
_EARLY_EVENTS = ("rewind", "elsewhere", "unarchive", "back")
"""What comes before the new turns of its session; other moves of refs come after all commits."""


@dataclass(frozen=True, slots=True)
class RefState:
    """What the refs hold: of each branch the tip and whether it is archived, of each tag its object, and which
    sessions have a tombstone."""

    branches: Mapping[str, tuple[str, bool]]
    tags: Mapping[str, str]
    stones: frozenset[str]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something that happened. `event` is that of the commit, or what became of a ref, as the schema of
    `watch --json` lists them.

    `time` is RFC 3339, or empty where nobody noted it; `origin` the address that a fork left or a merge brought turns
    from; `grown` says of a turn that it was there before and got more.
    """

    event: str
    branch: str
    time: str = ""
    turn: int | None = None
    commit: str = ""
    text: str = ""
    origin: str = ""
    grown: bool = False
    model: str = ""
    tools: Mapping[str, int] = field(default_factory=dict)
    tokens: Tokens | None = None
    title: str = ""
    project: str = ""

    @property
    def session(self) -> str:
        """The session that the branch is of."""
        return layout.session_of(self.branch)


@dataclass(frozen=True, slots=True)
class WatchProblem:
    """A branch that cannot be read, or with ``""`` for its name what is wrong with the store; watching goes on."""

    branch: str
    error: SessgitError


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """What is told: of certain sessions, of the project at a folder, or with None for both of all."""

    sessions: frozenset[str] | None = None
    folder: str | None = None

    def holds(self, change: WatchEvent) -> bool:
        """Whether it is one of those; a fork also where the session that it left is."""
        if self.sessions is not None:
            left = layout.session_of(change.origin.partition("@")[0]) if change.event == "fork" else ""
            return change.session in self.sessions or left in self.sessions
        if self.folder is None:
            return True
        return bool(change.project) and project.project_key(change.project) == project.project_key(self.folder)


def read_ref_state(path: Path) -> RefState:
    """What the refs of the store hold now, read at once."""
    every = refs.read_all(path)
    branches = {ref[len(layout.ARCHIVE) :]: (tip, True) for ref, tip in every.items() if ref.startswith(layout.ARCHIVE)}
    branches |= {ref[len(layout.HEADS) :]: (tip, False) for ref, tip in every.items() if ref.startswith(layout.HEADS)}
    tags = {ref[len(layout.TAGS) :]: oid for ref, oid in every.items() if ref.startswith(layout.TAGS)}
    stones = frozenset(ref[len(layout.DELETED) :] for ref in every if ref.startswith(layout.DELETED))
    return RefState(branches, tags, stones)


def follow_store(
    path: Path, open_store: Callable[[], Store], wait: Callable[[], None], here: LocalPath = str
) -> Iterator[list[WatchEvent] | WatchProblem | None]:
    """What happens to the store at `path` from now on; never ends. `wait` is called before each look, and None comes
    once, when it is known what is there by now.

    What is told has come to rest, so that the several refs of one operation are told together. Raises StoreError where
    the store is gone, or cannot be read any more. The library of git is loaded once something has changed.
    """
    watched = ref_poller.RefPoller(path)
    who, start = ref_poller.store_identity(path), _journal_size(path)
    watched.may_have_moved()
    known = last = read_ref_state(path)
    missing = restless = 0
    yield None
    while True:
        wait()
        now = ref_poller.store_identity(path)
        if now is None:
            missing += 1
            if missing > _MOST_MISSING:
                raise StoreError(f"the store at {path} is gone", "`sessgit status` shows the state.")
            continue
        missing = 0
        if now != who:
            who, start, watched = now, _journal_size(path), ref_poller.RefPoller(path)
            watched.may_have_moved()
            known = last = read_ref_state(path)
            yield WatchProblem("", StoreError("another store is in its place: watching that one from now on"))
            continue
        if not watched.may_have_moved() and last == known:
            continue
        new = read_ref_state(path)
        if ref_poller.store_identity(path) != who:
            continue
        is_at_rest, last = new == last, new
        restless = 0 if is_at_rest else restless + 1
        if new == known or (not is_at_rest and restless < _MOST_MISSING):
            continue
        restless = 0
        found, troubles = changes_between(open_store(), known, new, journal.read(layout.StorePaths(path), start), here)
        known = new
        if found:
            yield found
        yield from troubles


def changes_between(
    store: Store, old: RefState, new: RefState, operations: Sequence[Operation], here: LocalPath = str
) -> tuple[list[WatchEvent], list[WatchProblem]]:
    """What happened between the two, in the order in which it was done as far as commits tell it; and what cannot be
    read. `operations` are those that may have been at work."""
    between = _StateComparison(store, old, new, operations, here)
    moved = sorted(
        {name for name in {*old.branches, *new.branches} if old.branches.get(name) != new.branches.get(name)},
        key=lambda name: (layout.is_side_branch(name), name),
    )
    for name in moved:
        between.take(name, between.branch)
    for name in sorted({tag for tag in {*old.tags, *new.tags} if old.tags.get(tag) != new.tags.get(tag)}):
        between.take(name, between.tag)
    return between.in_order(), between.troubles


class _StateComparison:
    def __init__(
        self, store: Store, old: RefState, new: RefState, operations: Sequence[Operation], here: LocalPath
    ) -> None:
        self.store, self.old, self.new, self.operations, self.here = store, old, new, operations, here
        self.troubles: list[WatchProblem] = []
        self.moves: list[WatchEvent] = []
        self.commits: dict[str, tuple[Commit, WatchEvent]] = {}
        self.states: dict[str, Session | None] = {}

    def take(self, name: str, look: Callable[[str], None]) -> None:
        try:
            look(name)
        except SessgitError as error:
            self.troubles.append(WatchProblem(name, error))

    # Branches

    def branch(self, name: str) -> None:
        before, after = self.old.branches.get(name), self.new.branches.get(name)
        if after is None:
            assert before is not None
            self._gone(name, before[0])
            return
        tip, is_archived = after
        state = self.store.state(tip)
        if before is None and self._operation(_branch_ref(name, archived=is_archived), tip, "undo"):
            if not layout.is_side_branch(name):
                self._move("back", name, tip, turn=state.turns, ref=_branch_ref(name, archived=is_archived))
            return
        is_new = self._commits(name, tip, state)
        if (before is not None and before[1]) != is_archived and not layout.is_side_branch(name):
            self._move(
                "archive" if is_archived else "unarchive", name, tip, ref=_branch_ref(name, archived=is_archived)
            )
        if before is None and layout.is_rewound_branch(name):
            self._rewind(name, tip)
        elif before is None and layout.is_other_version(name):
            self._move("elsewhere", name, tip)
        elif before is not None and before[0] != tip and not is_new and not self._is_rewound(name):
            self._move("back", name, tip, turn=state.turns, ref=_branch_ref(name, archived=is_archived))

    def _gone(self, name: str, tip: str) -> None:
        if layout.is_side_branch(name):
            return
        if name in self.new.stones:
            self._move("delete", name, tip, ref=layout.tombstone_ref(name))
        else:
            self._move("gone", name, tip, ref=layout.head_ref(name))

    def _commits(self, name: str, tip: str, state: Session) -> bool:
        """Notes the commits of the session that it had not before, and says whether there are any."""
        session = layout.session_of(name)
        known = {at for branch, (at, _) in self.old.branches.items() if layout.session_of(branch) == session}
        repo = self.store.repo
        is_back = bool(known) and not any(repo.is_ancestor(at, tip) for at in known)
        found = False
        for commit in repo.first_parents(tip):
            message = messages.parse_message(commit.message)
            if commit.id in known or commit.id in self.commits or message.get("Session") != session:
                break
            if is_back and any(repo.is_ancestor(commit.id, at) for at in known):
                break
            self.commits[commit.id] = (commit, self._of_commit(name, commit, message, state))
            found = True
        return found

    def _of_commit(self, name: str, commit: Commit, message: Message, state: Session) -> WatchEvent:
        event, turn = message.get("Event"), message.number("Turn")
        change = self._told(
            WatchEvent(
                event="turn" if event in _TURN_EVENTS else event,
                branch=name,
                time=_rfc3339(commit.time),
                turn=turn,
                commit=commit.id,
                text=message.subject,
                origin=message.get("Fork-Point") or message.get("Origin"),
            ),
            state,
        )
        if event not in _TURN_EVENTS or turn is None:
            return change
        row = Row(name, turn, (commit.id,), message.get("Prompt"), commit.time, commit.message)
        above = self.store.message(commit.parents[0]) if commit.parents else None
        grown = above is not None and above.get("Prompt") == row.prompt != ""
        text = self._prompt(commit.id, turn) if event == "cell" else row.title
        return replace(
            change, text=text, grown=grown, model=message.get("Model"), tools=message.tools, tokens=row.tokens
        )

    def _prompt(self, commit: str, turn: int) -> str:
        """The first line of the turn's prompt, which the commit of a cell does not have in its subject."""
        agent = agents.of_commit(self.store, commit)
        body = agent.lines.parsed(self.store.lines(commit, turn).body)
        return canonical.one_line(agent.cells.describe(body).prompt, messages.SUBJECT_WIDTH) if body else ""

    def _rewind(self, name: str, tip: str) -> None:
        """How many turns the head has left there, and at which one it went on."""
        head = self.new.branches.get(layout.session_of(name))
        left, at = set[int](), 0
        for commit in self.store.repo.first_parents(tip):
            turn = messages.parse_message(commit.message).number("Turn")
            if head is not None and self.store.repo.is_ancestor(commit.id, head[0]):
                at = turn or 0
                break
            left |= {turn} if turn else set()
        self._move("rewind", name, tip, turn=at, text=str(len(left - {at})))

    def _is_rewound(self, name: str) -> bool:
        new = self.new.branches.keys() - self.old.branches.keys()
        return any(layout.is_rewound_branch(other) and layout.session_of(other) == name for other in new)

    # Tags

    def tag(self, name: str) -> None:
        oid = self.new.tags.get(name)
        commit = self.store.repo.peel(oid or self.old.tags[name])
        if commit is None:
            return
        message = self.store.message(commit)
        branch = message.get("Session")
        event, ref = ("tag" if oid else "untag"), f"{layout.TAGS}{name}"
        state = self._state(commit)
        self._move(event, branch, commit, turn=state.turns if state else None, text=name, ref=ref, value=oid)

    # What is told

    def _move(  # noqa: PLR0913 - what is known of it
        self, event: str, name: str, commit: str, *, turn: int | None = None, text: str = "", ref: str = "",
        value: str | None = None,
    ) -> None:  # fmt: skip
        """Notes what became of a ref; `value` is what it holds now, the commit where that is not said."""
        if event in ("archive", "unarchive", "back"):
            value = commit
        done = self._operation(ref, value, "", anything=event == "delete") if ref else None
        change = WatchEvent(event, name, done.time if done else "", turn, commit, text)
        self.moves.append(self._told(change, self._state(commit)))

    def _operation(self, ref: str, value: str | None, command: str, *, anything: bool = False) -> Operation | None:
        """The last operation that left the ref so, of that command if one is named."""
        for operation in reversed(self.operations):
            if command and operation.command != command:
                continue
            if any(move.ref == ref and (anything or move.new == value) for move in operation.moves):
                return operation
        return None

    def _state(self, commit: str) -> Session | None:
        if commit not in self.states:
            try:
                self.states[commit] = self.store.state(commit)
            except SessgitError:  # of a session that was deleted for good
                self.states[commit] = None
        return self.states[commit]

    def _told(self, change: WatchEvent, state: Session | None) -> WatchEvent:
        if state is None:
            return change
        return replace(change, title=resolve.session_title(state), project=self.here(state.project))

    def in_order(self) -> list[WatchEvent]:
        """Commits after their parents and else by time, a turn once; then what became of refs."""
        told = _merge_turn_changes(
            change for _, change in _sort_parents_first([commit for commit, _ in self.commits.values()], self.commits)
        )
        first = [move for move in self.moves if move.event in _EARLY_EVENTS]
        out: list[WatchEvent] = []
        for change in told:
            out += [move for move in first if move.session == change.session]
            first = [move for move in first if move.session != change.session]
            out.append(change)
        rest = [*first, *(move for move in self.moves if move.event not in _EARLY_EVENTS)]
        return [*out, *sorted(rest, key=lambda move: move.time or "~")]


def _sort_parents_first(
    commits: Sequence[Commit], known: Mapping[str, tuple[Commit, WatchEvent]]
) -> Iterator[tuple[Commit, WatchEvent]]:
    """Parents first, and of what does not depend on each other the older one."""
    waits = {commit.id: sum(parent in known for parent in commit.parents) for commit in commits}
    children: dict[str, list[Commit]] = {}
    for commit in commits:
        for parent in commit.parents:
            children.setdefault(parent, []).append(commit)
    ready = [(commit.time, commit.id) for commit in commits if not waits[commit.id]]
    ready.sort()
    while ready:
        _, ident = heappop(ready)
        yield known[ident]
        for child in children.get(ident, ()):
            waits[child.id] -= 1
            if not waits[child.id]:
                heappush(ready, (child.time, child.id))


def _merge_turn_changes(found: Iterable[WatchEvent]) -> Iterator[WatchEvent]:
    """Of the commits of one turn the last, which is new where the first is; what begins a session without a word is
    none."""
    every = [change for change in found if change.event not in ("start", "")]
    last = {(change.branch, change.turn): place for place, change in enumerate(every) if change.event == "turn"}
    began: dict[tuple[str, int | None], WatchEvent] = {}
    for place, change in enumerate(every):
        if change.event != "turn":
            yield change
            continue
        key = (change.branch, change.turn)
        first = began.setdefault(key, change)
        if last[key] == place:
            yield replace(change, grown=first.grown)


def _branch_ref(name: str, *, archived: bool) -> str:
    return layout.archive_ref(name) if archived else layout.head_ref(name)


def _rfc3339(seconds: int) -> str:
    try:
        return canonical.rfc3339(seconds)
    except (ValueError, OverflowError, OSError):  # in no calendar
        return ""


def _journal_size(path: Path) -> int:
    return ref_poller.file_stamp(layout.StorePaths(path).journal)[2]
