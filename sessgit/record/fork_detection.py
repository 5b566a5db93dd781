"""Forks that the client made: which session a transcript was copied from, and how much of it they share.

The client names the parent in `forkedFrom` or not at all; what always holds is that a copy keeps the uuids. So the
parent is the session with the longest common beginning of prompts, and the original is the file that was born first.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import takewhile
from pathlib import Path

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.cutter import Cutter, Node, Place, begin_facts, folder_files
from sessgit.agents.line import Base, Line, Reader, opened
from sessgit.errors import MovedError, SessgitError
from sessgit.history import session_files
from sessgit.history.diff import LineComparison, body_relation
from sessgit.model import ids
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Extent, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.frozen import frozen
from sessgit.record import commits
from sessgit.record.edit_commit import StateEdit, write_edit
from sessgit.record.source import RecordedSession, TranscriptSource
from sessgit.store import layout, refs
from sessgit.store.context import Context
from sessgit.store.index import Branch, Relatives, Row
from sessgit.store.store import Store, with_newlines

_EVENTS_OF_STATE = ("start", "turn", "compact", "edit", "end")
"""The events of commits that change nothing but turns and the state, which are written again."""


@frozen
class TranscriptOutline:
    """What a quick reading of a transcript tells: the prompts of its head, oldest first, and when it was born.

    `created` is the time of the first line that has one; a copy stamps its first lines anew.
    """

    prompts: tuple[str, ...]
    times: tuple[str, ...]
    created: str
    forked_from: str


class EmptyHistory:
    """The history of a session of which nothing is recorded."""

    def turn(self, key: str) -> Node | None:
        return None

    def find(self, uuid: str) -> Place | None:
        return None

    def is_closed(self, node: Node, line: Line) -> bool:
        return False


def first_prompt(path: Path) -> str:
    """Return the uuid of the first prompt in a transcript, or ``""``."""
    line = _first_prompt_line(path)
    return line.prompt_id if line is not None else ""


def _first_prompt_line(path: Path) -> Line | None:
    agent = agents.of_file(path)
    with opened(path) as source:
        lines = Reader(source, agent.lines.make).head()
        return next((line for line in lines if line.is_prompt), None)


def read_outline(path: Path) -> TranscriptOutline:
    """Return the outline of a transcript, which is read once.

    An import asks twice: to put parents first, and to record.
    """
    with opened(path) as source:
        return _cached_outline(path, source.inode, source.size, source.modified)


@lru_cache(maxsize=1024)
def _cached_outline(path: Path, _inode: int, _size: int, _modified: float) -> TranscriptOutline:
    """Return the outline of a file; the other arguments tell whether it has changed."""
    agent = agents.of_file(path)
    cutter, facts = Cutter(EmptyHistory(), session="outline"), begin_facts()
    times: dict[str, str] = {}
    forked_from = ""
    with opened(path) as source:
        for line in Reader(source, agent.lines.make).lines():
            facts.note(line)
            cutter.feed(line)
            forked_from = forked_from or line.forked_from
            if line.is_prompt:
                times.setdefault(line.prompt_id, line.time)
            if cutter.current is not None:
                cutter.current.before, cutter.current.body = [], []
    prompts, node = list[str](), cutter.head
    while node is not None:
        prompts.append(node.key)
        node = node.parent
    prompts.reverse()
    return TranscriptOutline(tuple(prompts), tuple(times.get(p, "") for p in prompts), facts.created, forked_from)


class DifferentTurnError(SessgitError):
    """A transcript was taken for a copy of a session whose turn, recorded by `commit`, has other lines."""

    def __init__(self, commit: str) -> None:
        super().__init__(f"the transcript has only the message id of a turn: {commit}")
        self.commit = commit


def find_lineage(
    context: Context, source: TranscriptSource, rules: Mapping[str, int], different: Collection[str]
) -> Lineage | None:
    """Return the lineage of a transcript that is not recorded yet, or None if it is no copy of a recorded one.

    `rules` are those by which it is recorded; `different` are commits of turns that have other lines than it.
    """
    index = context.index
    root = _first_prompt_line(source.path)
    if root is None:
        return None
    if not different:  # else it was done for this file already
        index.sync()
    prompt = source.agent.cells.describe([root]).prompt
    relatives = Relatives(index, root.prompt_id, commits.turn_subject(1, prompt) if prompt else "")
    if not relatives.are_copies(root.prompt_id, 1):
        return None
    rows = _shared_parent_turns(relatives, read_outline(source.path), source.session, different)
    return Lineage(context.store, layout.session_of(rows[0].branch), rows, rules, source.agent) if rows else None


def base_lineage(context: Context, source: TranscriptSource, rules: Mapping[str, int], base: Base) -> Lineage | None:
    """Return the lineage of a transcript that is not recorded yet and goes on from another session's, or None if that
    one is not recorded."""
    index, store, agent = context.index, context.store, source.agent
    index.sync()
    parent = index.branch(ids.session_id(base.agent_id))
    if parent is None or parent.name == source.session or parent.state.agent != agent.name:
        return None

    def first_ordinal(row: Row) -> int:
        ordinal = next(iter(agent.parsed(store.lines(row.commit, row.turn).body[:1]))).ordinal
        return -1 if ordinal is None else ordinal

    every = index.turns(parent.name)
    rows = every[: bisect_left(every, base.ordinal, key=first_ordinal)]
    if not rows:
        return None
    lineage = Lineage(store, parent.name, rows, rules, agent)
    lineage.cut(base)
    return lineage


def late_lineage(context: Context, source: TranscriptSource, known: RecordedSession, base: Base) -> Lineage | None:
    """Return the lineage of a transcript that goes on from another session's and was recorded before that, or None if
    that still is not recorded, or if something depends on what is recorded: a copy of its turns, a tag, a remote."""
    store, session = context.store, source.session
    lineage = base_lineage(context, source, known.rules, base)
    if lineage is None:
        return None
    history = dict(store.history(known.head))
    others = {ref: tip for ref, tip in refs.read_all(store.path).items() if ref != layout.head_ref(session)}
    copies = (row for own in context.index.turns(session) for row in context.index.with_prompt(own.prompt))
    is_free = history.keys().isdisjoint(others.values()) and all(row.branch == session for row in copies)
    only_state = all(message.get("Event") in _EVENTS_OF_STATE for message in history.values())
    return lineage if is_free and only_state else None


def _shared_parent_turns(
    relatives: Relatives, seen: TranscriptOutline, session: str, different: Collection[str]
) -> list[Row]:
    """Return the turns that a transcript shares with its parent, or none if that is none of the relatives.

    The parent is the session that it names, else one with which it shares the most, preferably one that is no fork.
    There may be hundreds of relatives, so the index is asked which of them has each prompt, the last prompt first.
    """

    def shared_rows(name: str, most: int) -> list[Row]:
        rows = relatives.index.turns(name, 1, most) if relatives.has(name) and name != session else []
        rows = rows[: ids.common_prefix_length(seen.prompts, (row.prompt for row in rows))]
        return list(takewhile(lambda row: row.commit not in different, rows))

    named = ids.session_id(seen.forked_from) if seen.forked_from else ""
    if named and (rows := shared_rows(named, len(seen.prompts))):
        return rows
    for number in range(len(seen.prompts), 0, -1):
        prompt = seen.prompts[number - 1]
        for name in relatives.names(prompt, number, seen.created) if relatives.are_copies(prompt, number) else ():
            if len(rows := shared_rows(name, number)) == number:
                return rows
    return []


def link_copies(context: Context, session: str) -> list[str]:
    """Link the sessions that were recorded before the one that they were copied from; return their ids.

    Only their state changes, by a commit of its own: what is recorded of them stays.
    """
    index = context.index
    store = context.store
    rows = index.turns(session)
    own = index.branch(session)
    if not rows or own is None:
        return []
    relatives = Relatives(index, rows[0].prompt, rows[0].text.partition("\n")[0])
    if not relatives.are_copies(rows[0].prompt, 1):
        return []
    linked = []
    for relative in relatives.unlinked(own.state.created):
        branch = index.branch(relative)
        if branch is None:
            continue
        length = _count_same_turns(store, (branch, index.turns(relative)), (own, rows))
        if not length:
            continue
        state = replace(store.state(branch.tip), origin=Origin(session, length, rows[length - 1].commit))
        edit = StateEdit(f"forked from {session} at turn {length}", state)
        commit = write_edit(store, relative, branch.tip, edit, store.commit(branch.tip).time)
        try:
            ref = layout.archive_ref(relative) if branch.archived else layout.head_ref(relative)
            store.repo.move(ref, branch.tip, commit)
        except MovedError:
            continue  # its own recorder is at work
        linked.append(relative)
    return linked


def _count_same_turns(store: Store, a: tuple[Branch, Sequence[Row]], b: tuple[Branch, Sequence[Row]]) -> int:
    """Return how many turns two branches share from the first one on; the last of them may be cut short on one side."""
    together = ids.common_prefix_length((row.prompt for row in a[1]), (row.prompt for row in b[1]))
    turns = LineComparison(store, (a[0].tip, a[1]), (b[0].tip, b[1]))
    pairs = zip(a[1][:together], b[1], strict=False)
    return next((n for n, pair in enumerate(pairs) if turns.relation(*pair) == "different"), together)


@dataclass
class Lineage:
    """A fork in the making: the parent's turns that the transcript shares, and those whose bytes are its own."""

    store: Store
    parent: str
    rows: list[Row]
    rules: Mapping[str, int]
    agent: Agent
    own: dict[int, str] = field(default_factory=dict)
    extents: list[list[Extent]] = field(default_factory=lambda: [[]])
    """In runs: lines that come before another turn as well are in a run of their own."""
    secrets: int = 0
    unended: bool = False
    """Whether the last of the shared lines had no newline."""
    _lines: hashlib._Hash = field(default_factory=hashlib.sha256)
    _replaced: bool | None = None
    _cut: Turn | None = None
    """The last shared turn, if only a part of it is shared."""

    def cut(self, base: Base) -> None:
        """Leave out the lines of the last turn that no longer belong to the base: the client forks open turns, too."""
        row = self.rows[-1]
        stored = self.store.lines(row.commit, row.turn)
        before, body = self.agent.parsed(stored.before), self.agent.parsed(stored.body)
        shared = [line for line in body if line.ordinal is None or line.ordinal < base.ordinal]
        while len(shared) > 1 and not shared[-1].is_body:
            shared.pop()
        if len(shared) < len(body):
            self._cut = self.agent.cells.describe(shared)
            self.own[row.turn] = self.store.write_folder(folder_files(self.agent, before, shared, self._cut))

    @property
    def commit(self) -> str:
        """The fork point."""
        return self.rows[-1].commit

    @property
    def origin(self) -> Origin:
        """The origin of a session that has the turns."""
        return Origin(self.parent, len(self.rows), self.commit)

    def take(self, node: Node, agent_id: str) -> bool:
        """Return whether the turn is a shared one; then its node gets the parent's commit, and its lines are counted.

        Raises DifferentTurnError if only its prompt uuid is that of the parent's turn.
        """
        row = self.rows[node.number - 1] if node.number <= len(self.rows) else None
        if row is None or row.prompt != node.key:
            return False
        lines = [*node.before, *node.body]
        if not self._has_parent_lines(row, node, agent_id):
            content = folder_files(self.agent, node.before, node.body, self.agent.cells.describe(node.body))
            self.own[node.number] = self.store.write_folder(content)
        if node.copied:
            self.extents += [[line.extent for line in lines[: node.copied]], []]
        self.extents[-1] += [line.extent for line in lines[node.copied :]]
        self.secrets += sum(line.secrets for line in lines)
        self.unended = lines[-1].is_unended
        for part in with_newlines(line.raw for line in lines):
            self._lines.update(part)
        node.commit = row.commit
        node.before, node.body = [], []
        return True

    def is_fork_point(self, node: Node | None) -> bool:
        """Return whether it is the last turn that is shared."""
        return node is not None and node.key == self.rows[-1].prompt

    def fork(self, session: str, agent_id: str, file_hash: str, identified: Callable[[Session], Session]) -> str:
        """Write the fork's first commit, its state as `identified` makes it the session's, and return its id."""
        state = identified(self._state(self._shared_state(), session, agent_id))
        changes = {**self._changes(), layout.TAIL: None, layout.LIVE: None}
        time = self.store.commit(self.commit).time
        message = self._message(session, file_hash)
        return self.store.write_commit(self.commit, changes, state, message, [self.commit], time)

    def _changes(self) -> commits.Changes:
        """Return the turns' folders with the fork's own bytes, and what it takes over of the scratchpad."""
        own = {layout.turn_folder(number): (tree, True) for number, tree in self.own.items()}
        from sessgit.history import pad_lists  # what few recordings need, and takes a while to load

        return {
            **own,
            **pad_lists.inherited_changes(self.store, self.commit),
            **session_files.inherited_changes(self.store, self.parent),
        }

    def _shared_state(self) -> Session:
        """Return the parent's state as of the shared turns."""
        state = self.store.state(self.commit)
        if self._cut is None:
            return state
        first = [commit.id for commit in self.store.repo.first_parents(self.commit)][-1]
        before = self.store.state(self.rows[-2].commit if len(self.rows) > 1 else first)
        return sessions.after_turn(before, self._cut, len(self.rows))

    def _state(self, parent: Session, session: str, agent_id: str) -> Session:
        """Return the first state of the fork: the parent's counts and labels as of the fork point, and no name yet."""
        return replace(
            parent,
            id=session,
            agent_id=agent_id,
            origin=replace(self.origin, replaced=self._ids(parent) if self._replaced else ()),
            state="active",
            ended="",
            name="",
            description="",
            title="",
            unified=sessions.inherited_state(parent.unified),
        )

    def _message(self, session: str, file_hash: str) -> Message:
        """Return the message of the fork's first commit; its extents are those of all shared turns, in their order."""
        trailers = [
            ("Session", session),
            ("Event", "fork"),
            ("Fork-Point", f"{self.parent}@{len(self.rows)}"),
        ]
        trailers += [place for run in self.extents[:-1] for place in commits.extent_trailers(run, unended=False)]
        trailers += commits.extent_trailers(self.extents[-1], unended=self.unended)
        trailers += [("Lines-SHA256", self._lines.hexdigest())] if any(self.extents) else []
        trailers += [("File-Hash", file_hash)] if file_hash else []
        trailers += [("Redacted", str(self.secrets))] if self.secrets else []
        return Message(f"fork: {self.parent} at turn {len(self.rows)}", tuple(trailers))

    def _ids(self, parent: Session) -> tuple[str, ...]:
        return (parent.agent_id, *(parent.origin.replaced if parent.origin else ()))

    @cached_property
    def _parent_ids(self) -> tuple[str, ...]:
        """The ids that may be in the parent's lines."""
        return self._ids(self.store.state(self.commit))

    def _has_parent_lines(self, row: Row, node: Node, agent_id: str) -> bool:
        """Return whether the lines are the parent's, perhaps with the session's id in place of the parent's."""
        stored = self.store.lines(self.commit, row.turn)
        theirs, ours = [*stored.before, *stored.body], [line.raw for line in (*node.before, *node.body)]
        if theirs == ours:
            self._replaced = self._replaced or False
            return self._replaced is False
        if (
            self._replaced is not False
            and [self.agent.lines.with_session(raw, self._parent_ids, agent_id) for raw in theirs] == ours
        ):
            self._replaced = True
            return True
        rules = self.rules, self.store.state(row.commit).rules
        if body_relation(self.agent, self.store, node.body, self.agent.parsed(stored.body), *rules) == "different":
            raise DifferentTurnError(row.commit)
        return False
