"""Follows what happens to a store: turns, forks, rewinds, merges, names and tags, whatever process makes them.

It watches the refs and reads the commits that they lead to, so it needs no help from recorders, commands or git.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.errors import SessgitError, StoreError
from sessgit.history import pad_lists
from sessgit.history.client_files import LocalPath
from sessgit.model import canonical, dependency_graph
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message, parse_tools
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens
from sessgit.model.frozen import frozen
from sessgit.model.pad import Entry
from sessgit.store import layout, operations, project, refs
from sessgit.store.index import Row
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Operation

if TYPE_CHECKING:
    from sessgit.store.objects import Commit
    from sessgit.store.store import Store

INTERVAL = 0.25
"""Seconds between two looks at the store."""
_MOST_LOOKS = 4
"""Looks after which a store that does not come back counts as gone, and refs that keep moving are read anyway."""
_TIMESTAMP_SECONDS = 2.0
"""Seconds after which another change gets another modification time on any disk."""

_TURN_EVENTS = ("turn", "cell", "graft")
_EARLY_EVENTS = ("rewind", "elsewhere", "unarchive", "back")
"""What comes before the new turns of its session; other moves of refs come after all commits."""

Stamp = tuple[int, int, int]


@frozen
class RefState:
    """The content of the refs: for each branch the tip and whether it is archived, for each tag its object, and the
    sessions with a tombstone."""

    branches: Mapping[str, tuple[str, bool]]
    tags: Mapping[str, str]
    stones: frozenset[str]


@frozen
class WatchEvent:
    """Something that happened. `event` is that of a commit, or what became of a ref, as the schema of `watch --json`
    lists them.

    `time` is RFC 3339, or empty if unknown; `origin` the address that a fork left or a merge brought turns from;
    `grown` says that the turn was there before and has more now; `entries` are those of a scratchpad that were added or
    changed.
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
    entries: tuple[Entry, ...] = ()

    @property
    def session(self) -> str:
        """The session of the branch."""
        return layout.session_of(self.branch)


@frozen
class WatchProblem:
    """A branch that cannot be read, or with ``""`` for its name a problem of the store; watching goes on."""

    branch: str
    error: SessgitError


@frozen
class WatchFilter:
    """Which events to select: of these sessions, of the project at a folder, or of all if both are None."""

    sessions: frozenset[str] | None = None
    folder: str | None = None

    def holds(self, event: WatchEvent) -> bool:
        """Return whether an event fits; a fork also fits if the session that it left does."""
        if self.sessions is not None:
            left = layout.session_of(event.origin.partition("@")[0]) if event.event == "fork" else ""
            return event.session in self.sessions or left in self.sessions
        if self.folder is None:
            return True
        return bool(event.project) and project.project_key(event.project) == project.project_key(self.folder)


def read_ref_state(path: Path) -> RefState:
    """Return the content of the store's refs, read at once."""
    every = refs.read_all(path)
    archived, live, tags, stones = (
        {ref.removeprefix(space): oid for ref, oid in every.items() if ref.startswith(space)}
        for space in (layout.ARCHIVE, layout.HEADS, layout.TAGS, layout.DELETED)
    )
    branches = {name: (tip, name not in live) for name, tip in (archived | live).items()}
    return RefState(branches, tags, frozenset(stones))


def follow_store(
    path: Path, open_store: Callable[[], Store], wait: Callable[[], None], local_path: LocalPath = str
) -> Iterator[list[WatchEvent] | WatchProblem | None]:
    """Yield what happens to the store at `path` from now on, without end. `wait` is called before each look; None comes
    first, once the present state is known.

    Events are reported when the refs have come to rest, so all refs of one operation together. Raises StoreError if the
    store is gone or cannot be read any more. pygit2 is loaded once something has changed.
    """
    poller, identity, start = RefPoller(path), store_identity(path), _file_stamp(StorePaths(path).journal)[2]
    poller.may_have_moved()
    known = last = read_ref_state(path)
    missing = restless = 0
    yield None
    while True:
        wait()
        current = store_identity(path)
        missing = 0 if current else missing + 1
        if missing > _MOST_LOOKS:
            raise StoreError(f"the store at {path} is gone", "`sessgit status` shows the state.")
        if current is None:
            continue
        if current != identity:
            poller, identity, start = RefPoller(path), current, _file_stamp(StorePaths(path).journal)[2]
            poller.may_have_moved()
            known = last = read_ref_state(path)
            yield WatchProblem("", StoreError("another store is in its place: watching that one from now on"))
            continue
        if not poller.may_have_moved() and last == known:
            continue
        new = read_ref_state(path)
        if store_identity(path) != identity:
            continue
        is_at_rest, last = new == last, new
        restless = 0 if is_at_rest else restless + 1
        if new == known or (not is_at_rest and restless < _MOST_LOOKS):
            continue
        restless = 0
        events, problems = changes_between(
            open_store(), known, new, operations.read(StorePaths(path), start), local_path
        )
        known = new
        if events:
            yield events
        yield from problems


class RefPoller:
    """Tells whether refs may have moved without reading them, by the modification times of their folders: git writes a
    ref next to its place and renames it."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._folders: list[str] = []
        self._known: list[Stamp] = []
        self._certain = False

    def may_have_moved(self) -> bool:
        """Return whether a ref may have moved since the last call: True the first time, and for two seconds after a
        change, in which a second one might not show. Refs that are read after this call have all that it reports."""
        if self._certain and self._stamps() == self._known:
            return False
        self._folders = _folders_below(self._store / "refs")
        self._known = self._stamps()
        newest = max((modified for _, modified, _ in self._known), default=0) / 1e9
        self._certain = newest + _TIMESTAMP_SECONDS < time.time()
        return True

    def _stamps(self) -> list[Stamp]:
        return [_file_stamp(path) for path in (*self._folders, f"{self._store}/packed-refs")]


def store_identity(store: Path) -> tuple[Stamp, ...] | None:
    """Return what distinguishes a store from another one at the same path, or None if there is none."""
    try:
        folder = store.stat()
    except OSError:
        return None
    if not (store / "HEAD").is_file() or not (store / "objects").is_dir():
        return None
    return ((folder.st_dev, folder.st_ino, 0), _file_stamp(StorePaths(store).key))


def _file_stamp(path: Path | str) -> Stamp:
    """Return the inode, the modification time and the size of a file or folder; zeros if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - of ten paths, four times a second
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _folders_below(top: Path) -> list[str]:
    """Return the folder and all below it; those that are deleted meanwhile are left out."""
    folders = [str(top)]
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
    return folders


# What happened between two states


def changes_between(
    store: Store, old: RefState, new: RefState, operations: Sequence[Operation], local_path: LocalPath = str
) -> tuple[list[WatchEvent], list[WatchProblem]]:
    """Return what happened between two states, in the order in which it was done as far as commits tell it, and the
    branches that cannot be read. `operations` are those that may have moved the refs."""
    comparison = _StateComparison(store, old, new, operations, local_path)
    moved = {name for name in {*old.branches, *new.branches} if old.branches.get(name) != new.branches.get(name)}
    for name in sorted(moved, key=lambda name: (layout.is_side_branch(name), name)):
        comparison.read(name, comparison.read_branch)
    for name in sorted({tag for tag in {*old.tags, *new.tags} if old.tags.get(tag) != new.tags.get(tag)}):
        comparison.read(name, comparison.read_tag)
    return comparison.in_order(), comparison.problems


class _StateComparison:
    def __init__(
        self, store: Store, old: RefState, new: RefState, operations: Sequence[Operation], local_path: LocalPath
    ) -> None:
        self.store, self.old, self.new, self.operations, self.local_path = store, old, new, operations, local_path
        self.problems: list[WatchProblem] = []
        self.moves: list[WatchEvent] = []
        self.commits: dict[str, tuple[Commit, WatchEvent]] = {}

    def read(self, name: str, read: Callable[[str], None]) -> None:
        try:
            read(name)
        except SessgitError as error:
            self.problems.append(WatchProblem(name, error))

    def read_branch(self, name: str) -> None:
        before, after = self.old.branches.get(name), self.new.branches.get(name)
        is_side = layout.is_side_branch(name)
        if after is None:
            assert before is not None
            if not is_side:
                is_deleted = name in self.new.stones
                ref = layout.tombstone_ref(name) if is_deleted else layout.head_ref(name)
                self._add_move("delete" if is_deleted else "gone", name, before[0], ref)
            return
        tip, is_archived = after
        ref = layout.archive_ref(name) if is_archived else layout.head_ref(name)
        state = self.store.state(tip)
        if before is None and self._operation(ref, tip, command="undo"):
            if not is_side:
                self._add_move("back", name, tip, ref, turn=state.turns, value=tip)
            return
        is_new = self._add_commits(name, tip, state)
        new = self.new.branches.keys() - self.old.branches.keys()
        is_rewound = any(layout.is_rewound_branch(other) and layout.session_of(other) == name for other in new)
        was_archived = before is not None and before[1]
        if was_archived != is_archived and not is_side:
            self._add_move("archive" if is_archived else "unarchive", name, tip, ref, value=tip)
        if before is None and layout.is_rewound_branch(name):
            self._add_rewind(name, tip)
        elif before is None and layout.is_other_version(name):
            self._add_move("elsewhere", name, tip)
        elif before is not None and before[0] != tip and not is_new and not is_rewound:
            self._add_move("back", name, tip, ref, turn=state.turns, value=tip)

    def read_tag(self, name: str) -> None:
        oid = self.new.tags.get(name)
        commit = self.store.repo.peel(oid or self.old.tags[name])
        if commit is None:
            return
        branch, state = self.store.message(commit).get("Session"), self._state(commit)
        turn = state.turns if state else None
        self._add_move(
            "tag" if oid else "untag", branch, commit, f"{layout.TAGS}{name}", turn=turn, text=name, value=oid
        )

    def _add_commits(self, name: str, tip: str, state: Session) -> bool:
        """Add the commits of the session that it did not have before, and return whether there are any."""
        session, repo = layout.session_of(name), self.store.repo
        known = {at for branch, (at, _) in self.old.branches.items() if layout.session_of(branch) == session}
        is_back = bool(known) and not any(repo.is_ancestor(at, tip) for at in known)
        is_new = False
        for commit in repo.first_parents(tip):
            message = messages.parse_message(commit.message)
            if commit.id in known or commit.id in self.commits or message.get("Session") != session:
                break
            if is_back and any(repo.is_ancestor(commit.id, at) for at in known):
                break
            self.commits[commit.id] = (commit, self._commit_event(name, commit, message, state))
            is_new = True
        return is_new

    def _commit_event(self, name: str, commit: Commit, message: Message, state: Session) -> WatchEvent:
        event, turn = message.get("Event"), message.number("Turn")
        change = self._with_session(
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
            if event != "edit" or not commit.parents:
                return change
            pads = [pad_lists.read_pad(self.store, one).entries for one in (commit.parents[0], commit.id)]
            known = {entry.line for entry in pads[0]}
            return replace(change, entries=tuple(entry for entry in pads[1] if entry.line not in known))
        row = Row(name, turn, (commit.id,), message.get("Prompt"), commit.time, commit.message)
        before = self.store.message(commit.parents[0]) if commit.parents else None
        grown = before is not None and before.get("Prompt") == row.prompt != ""
        text = row.title
        if event == "cell":  # its subject has not the prompt
            agent = agents.of_commit(self.store, commit.id)
            body = agent.parsed(self.store.lines(commit.id, turn).body)
            prompt = agent.cells.describe(body).prompt if body else ""
            text = canonical.one_line(prompt, messages.SUBJECT_WIDTH)
        return replace(
            change,
            text=text,
            grown=grown,
            model=message.get("Model"),
            tools=parse_tools(message.get("Tools")),
            tokens=row.tokens,
        )

    def _add_rewind(self, name: str, tip: str) -> None:
        """Add how many turns the head left on a rewound branch, and the turn from which it went on."""
        head = self.new.branches.get(layout.session_of(name))
        left, at = set[int](), 0
        for commit, message in self.store.history(tip):
            turn = message.number("Turn")
            if head is not None and self.store.repo.is_ancestor(commit, head[0]):
                at = turn or 0
                break
            left |= {turn} if turn else set()
        self._add_move("rewind", name, tip, turn=at, text=str(len(left - {at})))

    def _add_move(  # noqa: PLR0913 - the parts of an event
        self, event: str, name: str, commit: str, ref: str = "", *, turn: int | None = None, text: str = "",
        value: str | None = None,
    ) -> None:  # fmt: skip
        """Add what became of a ref, which holds `value` now, at the time of the operation that did it."""
        operation = self._operation(ref, value, anything=event == "delete") if ref else None
        change = WatchEvent(event, name, operation.time if operation else "", turn, commit, text)
        self.moves.append(self._with_session(change, self._state(commit)))

    def _operation(self, ref: str, value: str | None, *, command: str = "", anything: bool = False) -> Operation | None:
        """Return the last operation, of that command if one is named, that set a ref to this value or to `anything`."""
        return next(
            (
                operation
                for operation in reversed(self.operations)
                if command in ("", operation.command)
                and any(move.ref == ref and (anything or move.new == value) for move in operation.moves)
            ),
            None,
        )

    def _state(self, commit: str) -> Session | None:
        try:
            return self.store.state(commit)
        except SessgitError:  # of a session that was deleted and pruned
            return None

    def _with_session(self, event: WatchEvent, state: Session | None) -> WatchEvent:
        if state is None:
            return event
        return replace(event, title=state.display_title, project=self.local_path(state.project))

    def in_order(self) -> list[WatchEvent]:
        """Return the events of commits after those of their parents and else by time, then what became of refs."""
        early = [move for move in self.moves if move.event in _EARLY_EVENTS]
        late = [move for move in self.moves if move.event not in _EARLY_EVENTS]
        out: list[WatchEvent] = []
        by_time = sorted(self.commits.items(), key=lambda item: (item[1][0].time, item[0]))
        order = dependency_graph.topological_order({name: commit.parents for name, (commit, _) in by_time})
        for event in _merge_turn_events(self.commits[name][1] for name in order):
            out += [move for move in early if move.session == event.session]
            early = [move for move in early if move.session != event.session]
            out.append(event)
        return [*out, *sorted([*early, *late], key=lambda move: move.time or "~")]


def _merge_turn_events(events: Iterable[WatchEvent]) -> Iterator[WatchEvent]:
    """Yield the last event of each turn, which is new if the first is; the start of a session is no event."""
    every = [event for event in events if event.event not in ("start", "")]
    last = {(event.branch, event.turn): number for number, event in enumerate(every) if event.event == "turn"}
    first: dict[tuple[str, int | None], WatchEvent] = {}
    for number, event in enumerate(every):
        if event.event != "turn":
            yield event
            continue
        key = (event.branch, event.turn)
        first.setdefault(key, event)
        if last[key] == number:
            yield replace(event, grown=first[key].grown)


def _rfc3339(seconds: int) -> str:
    try:
        return canonical.rfc3339(seconds)
    except (ValueError, OverflowError, OSError):  # in no calendar
        return ""
