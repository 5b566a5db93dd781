"""One reading of a transcript: its new lines cut into turns, and the objects and refs that come of them.

A pass reads what the file holds beyond the cursor, cuts it into turns, writes objects for each turn that got its
last line, at the end for those that are still open, and then moves the refs: rewound branches first, the head last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from sessgit.agents import Agent
from sessgit.agents.base import Subagents
from sessgit.agents.cutter import Cutter, Facts, Node, Waiting, begin_facts, load_facts
from sessgit.agents.line import CHOSEN, Line, Opened, Reader
from sessgit.errors import MovedError
from sessgit.history import reassemble
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell, Gist
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes, file_lines
from sessgit.record import commits, fork_detection
from sessgit.record.commits import FileHash, TurnContent
from sessgit.record.source import (
    RecordedSession,
    RecordedTurns,
    TranscriptSource,
    base_of,
    commit_finder,
    given_names,
    is_at_commit,
    matches_cursor,
    session_tips,
)
from sessgit.store import layout, operations, project, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.objects import Entry
from sessgit.store.recorder_state import Cursor
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.store.index import CachedTurn

SkipReason = Literal["", "archived", "deleted"]
_MOST_WAITING = 1 << 20
"""The bytes of bodies that are processed only after the refs have moved; a long transcript has hundreds of times as
many."""
_LONGEST_BODY = 32 << 20
"""A longer body is read again when its cells are needed: copies of it may not fit in memory."""


@frozen
class RecordingResult:
    """The numbers of the turns that were written, and whether any ref moved.

    `skipped` says why nothing was recorded: the session is archived, or was deleted here.
    """

    session: str
    turns: tuple[int, ...] = ()
    changed: bool = False
    head: str = ""
    skipped: SkipReason = ""


@dataclass
class _FileReading:
    """How far a pass has read which of the session's files."""

    reader: Reader
    agents: Subagents
    """The files of subagents, and how much of them is recorded."""
    facts: Facts
    """What the lines so far say of the session as a whole."""
    prefix: int = 0
    """The number of bytes that a fork wrote: what they hold is recorded where the fork came from."""
    number: int = 1
    """Which of the session's files this is."""
    hash: FileHash = field(default_factory=FileHash)
    resumed: Cursor | None = None
    """The cursor, if it fits and the pass goes on from it."""
    ended: str = ""
    """The commit at which all of the file was recorded, if it ended otherwise elsewhere since then."""

    @property
    def opened(self) -> Opened:
        """The file as it was when the pass began."""
        return self.reader.source


@dataclass
class _IndexUpdates:
    """The gists of turns by their commits; and of each the folder's tree, the cells, the body and the prompt's key."""

    gists: dict[str, Gist] = field(default_factory=dict)
    cells: dict[str, tuple[Agent, str, Sequence[Cell], list[bytes], str]] = field(default_factory=dict)
    known: dict[str, CachedTurn] = field(default_factory=dict)
    """What follows from them, once they are many bytes."""
    size: int = 0

    def take(self, store: Store, commit: str, node: Node, content: TurnContent, *, is_last: bool) -> None:
        """Add a turn that was just written, before its node names the commit. Only the last commit of a turn that is
        written cell by cell adds its cells: adding them each time would be quadratic."""
        self.gists[commit] = commits.turn_gist(content, whole=not node.commit)
        entry = store.entry(commit, layout.turn_folder(node.number)) if is_last else None
        if entry is None or len(content.stored[layout.BODY]) > _LONGEST_BODY:
            return
        body = bytes(content.stored[layout.BODY]).split(b"\n")[:-1]
        self.cells[commit] = content.agent, entry[0], content.turn.cells, body, node.key
        self.size += len(content.stored[layout.BODY])
        if self.size > _MOST_WAITING:
            self._release_bodies()

    def keep(self, index: Index) -> None:
        """Write the rows to the index, which is up to date with the refs."""
        index.remember(self.gists)
        self._release_bodies()
        index.store_cells(self.known)

    def _release_bodies(self) -> None:
        """Compute the rows of the bodies, and drop the bodies."""
        from sessgit.history.cells import cached_turn  # loaded here: the refs have moved, so no user waits

        self.known |= {commit: cached_turn(*cells) for commit, cells in self.cells.items()}
        self.cells, self.size = {}, 0


class FilePass:
    """One reading of a transcript, and what it writes."""

    def __init__(
        self,
        context: Context,
        source: TranscriptSource,
        known: RecordedSession,
        file: Opened,
        lineage: fork_detection.Lineage | None = None,
    ) -> None:
        self.context, self.store, self.known = context, context.store, known
        origins = source.origins or recorder_state.load_origins(self.store.paths, source.session)
        self.source = replace(source, origins=origins)
        origin = known.state.origin if known.state else None
        self.file = _FileReading(
            Reader(file, source.agent.lines.make, known.redact),
            source.agent.sidecars.subagents(source.path, source.agent_id, known.redact),
            begin_facts(known.state),
            origin.prefix if origin else 0,
        )
        self.lineage = lineage
        self.tops: dict[str, str] = {}
        """The tip of each branch by the prompt of its last turn; by ``""`` the start."""
        self.written: list[tuple[Node, str, bool]] = []
        """Each turn that was written, its commit, and whether it was interrupted."""
        self.index_updates = _IndexUpdates()

    @property
    def session(self) -> str:
        """The id of the transcript's session."""
        return self.source.session

    @property
    def agent(self) -> Agent:
        """The agent that wrote the transcript."""
        return self.source.agent

    @property
    def file_cursor(self) -> Cursor | None:
        """The cursor, if it is of this file."""
        return self.known.cursor if self.known.cursor and self.known.cursor.path == str(self.source.path) else None

    def finish(self, cutter: Cutter, *, is_known: bool) -> RecordingResult:
        """Record what the cutter reads. `is_known` says that all lines of the file are recorded, and more: then no
        branch moves."""
        tips, cursor = self.cut(cutter), self.known.cursor
        if not tips:
            return RecordingResult(self.session)
        tips = self.known.tips if is_known else self._split_versions(cutter, tips)
        self.move(self.known.tips, tips)
        copies, others = (cursor.copies, cursor.others) if cursor else ([], [])
        self.save_cursor(cutter, tips, copies, others, is_known=is_known)
        if not self.known.head and self.lineage is None and fork_detection.link_copies(self.context, self.session):
            self.context.index.sync()
        turns = tuple(node.number for node, _, _ in self.written)
        return RecordingResult(self.session, turns, tips != self.known.tips, tips[self.session])

    def cut(self, cutter: Cutter) -> dict[str, str]:
        """Write the commits; return the new tips of the branches, none if there is nothing to record."""
        since = [self.known.head] if self.file.resumed else self.known.tips.values()
        self.file.facts.learn(
            given_names(self.store, self.session, since, self.file.resumed.commit if self.file.resumed else "")
        )
        title = self.agent.home.title(self.source.folder, self.source.path)
        self.file.facts.note_title(self.known.redact(title.encode())[0].decode(), CHOSEN)
        # A prompt without an answer yet would be committed twice, once alone.
        for line in self.file.reader.settled() if self.source.prompting else self.file.reader.lines():
            self.file.facts.note(line)
            self.file.hash.add(line)
            if line.uuid or line.extent.offset >= self.file.prefix:
                cutter.feed(line)
            while cutter.finished:
                self._write(cutter, cutter.finished.pop(0))
        for node in filter(None, [*cutter.rewound.values(), cutter.head]):
            if node.has_new_lines:
                self._write(cutter, node)
            node.before, node.body = [], []  # the node stays longer than this pass
        if not self.file.resumed:
            has_grown = bool(self.written) and self.written[-1][0] is cutter.head
            cutter.keep(self.head, self.rewound, has_grown=has_grown)
        if not self.known.head and cutter.head is None and not (self.source.final and self.file.opened.size):
            return {}
        self._write_leftover(cutter)
        tips = {name: self._base(node) for name, node in cutter.rewound.items()}
        tips[self.session] = self._head(cutter)
        return tips

    def _split_versions(self, cutter: Cutter, tips: dict[str, str]) -> dict[str, str]:
        """Return the branches, the old head as another version's if another machine added turns to it.

        It did if the file never had the head's last turn, and the head's history has the commit that the file led to
        when it was read last.
        """
        rewound = cutter.rewound.items()
        name = next((branch for branch, node in rewound if node is self.head and not node.is_in_file), "")
        cursor = self.file_cursor
        if not name or cursor is None or tips[name] != self.known.head:
            return tips
        if is_at_commit(self.store, self.known.head, cursor.commit):  # edits since are no turns from elsewhere
            return tips
        if not self.store.repo.is_ancestor(cursor.commit, self.known.head):
            return tips
        from sessgit.record.tip_delivery import Delivery  # loaded here: it is rare

        own = {branch: tip for branch, tip in tips.items() if branch != name}
        known = refs.session_tips(self.store.path, self.session).items()
        others = {branch: tip for branch, tip in known if layout.is_other_version(branch)}
        delivery = Delivery(self.store, self.session, {**others, **own}, has_file=True)
        delivery.deliver({self.session: self.known.head})
        for branch, tip in delivery.branches.items():
            if layout.is_other_version(branch) and others.get(branch) != tip:
                self.store.repo.move(layout.head_ref(branch), others.get(branch), tip)
        return {branch: tip for branch, tip in delivery.branches.items() if not layout.is_other_version(branch)}

    # Where to begin

    def resume(self) -> Cutter | None:
        """Return a cutter that goes on from the cursor, or None if the cursor does not fit."""
        cursor, file = self.known.cursor, self.file.opened
        if (
            cursor is None
            or cursor.current is None
            or not matches_cursor(self.store, self.session, self.known.tips, cursor)
        ):
            return None
        branch = cursor.current or self.session
        if branch not in self.known.tips:
            return None
        known = load_facts(cursor.facts)
        if known is None or not recorder_state.matches_file(cursor, self.source.path, file.file, file.inode, file.size):
            return None
        if not self.file.reader.resume(cursor.offset, unended=cursor.unended):
            return None
        self.file.resumed, self.file.facts, self.file.number = cursor, known, cursor.file
        self.file.prefix = min(self.file.prefix, cursor.offset)
        self.file.agents.done = dict(cursor.agents)
        self.file.hash = FileHash.loads(cursor.hash, cursor.offset)
        cutter = self._cutter(commit_finder(self.context.index, self.session, self.known.tips))
        last = self.turns.node_at(self.known.tips[branch])
        cutter.resume(self.head, self.rewound, last, cursor.uuids)
        waiting = (line for extent in cursor.pending for line in self.file.reader.again(extent))
        cutter.pending = Waiting(waiting, cursor.stuck)
        if cutter.current is not None and self.file.reader.offset > cursor.offset:
            cutter.current.has_new_lines = True  # its last line may have got its newline
        return cutter

    def begin(self, different: Collection[str] | None = None) -> Cutter:
        """Return a cutter that reads the file from its beginning. `different` are the commits of turns of other
        sessions that have other lines; without them, it is a copy of no other session."""
        base = base_of(self.agent, self.file.opened)
        if not self.known.head and different is not None:
            context, source, rules = self.context, self.source, self.known.rules
            if base is None:
                self.lineage = fork_detection.find_lineage(context, source, rules, different)
            elif not different:
                self.lineage = fork_detection.base_lineage(context, source, rules, base)
        if (state := self.known.state) is not None:
            self.file.prefix = _fork_prefix_length(self.store, state, self.known.tips, self.file.opened)
            self.file.number = _file_number(self.store, state, self.known.tips, self.file)
        cutter = self._cutter(None)
        if base is not None:
            cutter.head = self.turns.node_at(self.lineage.commit) if self.lineage else self.turns.base(state)
        return cutter

    def _cutter(self, find_turn: Callable[[str], str | None] | None) -> Cutter:
        tips = {} if self.lineage else self.known.tips  # a fork's branches without a head are what a killed pass left
        origin = self.known.state.origin if self.known.state else None
        turns = RecordedTurns(self.store, tips, self.agent, find_turn, origin.turn if origin and origin.prefix else 0)
        nodes = {branch: turns.node_at(tip) for branch, tip in tips.items()}
        self.tops = {node.key if node else "": self.known.tips[branch] for branch, node in nodes.items()}
        self.turns, self.head = turns, nodes.pop(self.session, None)
        self.rewound = {branch: node for branch, node in nodes.items() if node is not None}
        return Cutter(turns, session=self.session)

    # Turns

    def _write(self, cutter: Cutter, node: Node) -> None:
        """Commit what is not recorded of the turn."""
        node.has_new_lines = False
        is_open = cutter.is_open(node)
        if self.lineage is not None and not node.commit and self.lineage.take(node, self.source.agent_id):
            return
        before, body = self._unrecorded_lines(cutter, node)
        if not is_open:
            node.before, node.body = [], []
        if body:
            self._write_lines(cutter, node, before, body, is_open=is_open)

    def _write_leftover(self, cutter: Cutter) -> None:
        """Commit the session's own last turn again, with what subagents wrote since then, if the agent has closed the
        file: no other turn will hold that."""
        node = cutter.head
        if not self.source.final or node is None or cutter.is_behind or not self.tops.get(node.key):
            return
        message = self.store.message(node.commit)
        if message.get("Session") == self.session and self.file.agents.has_more():
            origins = {node.key: commits.event_and_origin(message), **self.source.origins}
            self.source = replace(self.source, origins=origins)
            self._write_lines(cutter, node, *self._lines_again(node), is_open=True)

    def _write_lines(self, cutter: Cutter, node: Node, before: list[Line], body: list[Line], *, is_open: bool) -> None:
        state = self.store.state(self._base(node.parent))
        on = self.tops[node.key] if node.key in self.tops else self._base(node.parent)
        if not node.commit and any(line.is_boundary for line in before[node.copied :]):
            own = state if state.id == self.session else self._identified(state)
            lines = before[node.copied :]
            on = commits.commit_compaction(self.store, on, lines, own, self._provenance(lines))
        for length, complete in self._commit_points(node, body):
            side = self._turn_sidecars(cutter, node, [*before, *body]) if length == len(body) else ({}, {})
            file_hash = self.file.hash.at(body[length - 1])
            event, origin = self.source.origins.get(node.key, ("turn", ""))
            provenance = self._provenance([*before[node.copied :], *body[:length]], file_hash)
            content = TurnContent(
                self.agent, before, body[:length], *side, complete, self.source.head, event, origin, provenance,
                self.known.rules,
            )  # fmt: skip
            is_last = self.source.at_rest and is_open and node is cutter.head
            on = self._commit(node, on, content, state, live=self.source.live or is_last)
            self.index_updates.take(self.store, on, node, content, is_last=length == len(body))
        self.tops[node.key] = node.commit = on
        self.written.append((node, on, content.turn.interrupted))

    def _base(self, parent: Node | None) -> str:
        """Return the parent commit of what follows a turn."""
        if self.lineage is not None and self.lineage.is_fork_point(parent):
            assert parent is not None
            if parent.key not in self.tops:
                self.tops[parent.key] = self._fork()
        if parent is not None:
            return self.tops.get(parent.key) or parent.commit
        if "" not in self.tops:
            self.tops[""] = self._start()
        return self.tops[""]

    def _unrecorded_lines(self, cutter: Cutter, node: Node) -> tuple[list[Line], list[Line]]:
        """Return all lines of the turn, or none if every line that was met is recorded, or if the turn is closed: a
        recorded turn follows it in this file."""
        if not node.commit:
            return node.before, node.body
        if node.is_in_file:
            self.file.agents.pass_over(node.key, lambda: self._subagent_lines(node))
        if node.key not in self.tops and node is not cutter.head and (cutter.head is None or cutter.head.commit):
            return [], []
        before, body = self._lines_again(node)
        new = node.body
        last = body[-1] if body else None  # a damaged turn has none
        if last and last.is_unended and any(n.uuid and n.uuid == last.uuid and n.raw != last.raw for n in new):
            body = body[:-1]  # it was not all of that line
        if node.is_in_file and [line.raw for line in new[: len(body)]] == [line.raw for line in body]:
            new = new[len(body) :]
        elif node.is_in_file:
            known, others = {line.uuid or line.raw for line in body}, {line.raw for line in new}
            if len(body) > 1 and all(line.is_anonymous and line.raw not in others for line in body[1:]):
                return [], []  # the client wrote the turn again in another form
            new = [n for n in new if n.extent.offset >= self.file.prefix and (n.uuid or n.raw) not in known]
        if new:
            self.tops.setdefault(node.key, node.commit)
        return (before, body + new) if new or self._got_newline(node, body) else ([], [])

    def _got_newline(self, node: Node, body: list[Line]) -> bool:
        """Return whether the file ends with the newline of a line that was recorded without it."""
        if not body or body[-1].is_unended or body[-1].extent.end != self.file.opened.size:
            return False
        return self.store.message(node.commit).is_unended

    def _lines_again(self, node: Node) -> tuple[list[Line], list[Line]]:
        """Return the recorded lines, read from the agent's file if it has them, so that their places are known."""
        tip, message = self.tops.get(node.key, node.commit), self.store.message(node.commit)
        is_shared = self.known.state is not None and reassemble.is_parent_folder(
            self.store, tip, self.known.state, node.number
        )
        is_here = message.get("Session") == self.session and message.file == self.file.number
        placed = [line for extent in message.extents for line in self.file.reader.again(extent)] if is_here else []
        own = partial(reassemble.own_line, state=self.known.state) if is_shared and self.known.state else None
        return self.turns.lines_again(node, tip, placed, own)

    def _commit_points(self, node: Node, body: list[Line]) -> list[tuple[int, bool]]:
        """Return the lengths of the body to commit one after another, and whether each is a whole turn."""
        if self.context.privacy.rules.granularity != "cell":
            return [(len(body), True)]
        return commits.commit_points(
            self.agent,
            body,
            len(self.turns.lines(node, self.tops[node.key])[1]) if node.commit else 0,
        )

    def _turn_sidecars(
        self, cutter: Cutter, node: Node, lines: list[Line]
    ) -> tuple[dict[str, Bytes], dict[str, Entry]]:
        """Return the new bytes of subagents' files, and the entries of large tool results, by path in the folder."""
        agents = self.file.agents.of_turn(node.key, lines, is_last=node is cutter.head)
        named = self.agent.sidecars.results(self.source.path, self.source.agent_id, lines, self.known.redact)
        results = {path: (self.store.repo.write_blob(data), False) for path, data in named}
        if self.known.sides is not None:
            recorded = self.known.sides.get(node.key, {})
            results = {path: entry for path, entry in recorded.items() if not self.file.agents.has(path)} | results
        return agents, results

    def _subagent_lines(self, node: Node) -> dict[str, int]:
        """Return how many lines of each subagent's file are recorded with the turn."""
        entry = self.store.folder(node.commit, node.number).get(layout.SUBAGENTS)
        files = self.store.repo.tree(entry[0]) if entry else {}
        return {name: len(file_lines(self.store.repo.lines(oid, 0))) for name, (oid, _) in files.items()}

    def _commit(self, node: Node, on: str, content: TurnContent, before: Session, *, live: bool) -> str:
        lines = [*content.before[node.copied :], *content.body]
        secrets = sum(line.secrets for line in lines)
        if node.commit and not all(line.extent.length for line in lines):  # those without a place are not counted
            secrets += self.store.message(node.commit).number("Redacted") or 0
        state = self._identified(sessions.after_turn(before, content.turn, node.number, secrets))
        return commits.commit_turn(self.store, on, node, content, state, self._changes(content, live=live))

    def _changes(self, content: TurnContent, *, live: bool) -> commits.Changes:
        """Return the changes outside the turn: what only a live recorder sees, and what a rewind carries over."""
        changes: dict[str, Entry | None] = {}
        if content.complete and live:
            folder, slug = self.source.folder, self.file.facts.slug
            live_files = self.agent.sidecars.live(folder, self.source.agent_id, slug, self.known.redact)
            files = {path: (self.store.repo.write_blob(data), False) for path, data in live_files}
            changes[layout.LIVE] = (self.store.repo.edit_tree(None, files), True) if files else None
        if self.known.head:
            changes |= {at: self.store.repo.entry(self.store.tree(self.known.head), at) for at in layout.CARRIED}
        return changes

    def _identified(self, state: Session) -> Session:
        """Return the state with this session's id, authored fields, and what its lines say."""
        if self.known.state is not None:
            state = sessions.carry_over(self.known.state, state)
        return self.file.facts.apply(
            state,
            id=self.session,
            agent_id=self.source.agent_id,
            transcript=self._place,
            rules=self.known.rules,
            remote=self._remote or state.remote,
        )

    @cached_property
    def _remote(self) -> str:
        """The remote of the project on this machine, or empty."""
        known = self.known.state
        return project.project_remote(self.file.facts.project or (known.project if known else ""))

    @cached_property
    def _place(self) -> str:
        """The path of the transcript, as the state names it."""
        if self.source.place is not None:
            return self.source.place
        if self.source.is_in_place:
            return str(self.source.path)
        return self.known.state.transcript if self.known.state else ""

    # The first commit

    def _start(self) -> str:
        """Return the commit before all turns: for a rewind to the start the first one of the history."""
        known = self.known.head or (self.lineage.commit if self.lineage else "")
        if known:
            return [commit.id for commit in self.store.repo.first_parents(known)][-1]
        state = Session(self.session, self.source.agent_id, self.source.client, created=self.file.facts.created)
        return commits.commit_start(self.store, self._identified(state))

    def _fork(self) -> str:
        assert self.lineage is not None
        file_hash = self.file.hash.furthest(self.lineage.extents)
        return self.lineage.fork(self.session, self.source.agent_id, file_hash, self._identified)

    # The end

    def _head(self, cutter: Cutter) -> str:
        """Return the tip of the session, with the file's last lines if the agent has closed it and it leads there."""
        top = self._base(cutter.head)
        if not self.source.final or cutter.is_behind:
            return top
        torn = self.file.reader.tail()
        lines = [*cutter.pending.lines, *torn]
        state = self.store.state(top)
        if state.state != "active" and commits.has_tail(self.store, top, lines):
            return top
        if top == self.known.head and not self.file.resumed and not torn:
            self.file.ended = self._last_end_commit(top)
        if self.file.ended:
            return top
        state = commits.ended_state(self._identified(state), lines, cut_short=self._is_cut_short(cutter.head, top))
        for line in torn:
            self.file.hash.add(line)
        file_hash = self.file.hash.at(lines[-1]) if lines else ""
        return commits.commit_end(self.store, top, lines, state, self._provenance(lines, file_hash))

    def _provenance(self, lines: Sequence[Line], file_hash: str = "") -> commits.Trailers:
        return commits.provenance_trailers(self.store, lines, self.file.number, file_hash)

    def _last_end_commit(self, head: str) -> str:
        """Return the commit that ended the file as it is, if the head comes from elsewhere since then, else ``""``.

        Two machines whose files end in other lines would else end the session in turn for ever.
        """
        cursor, file = self.file_cursor, self.file.opened
        if cursor is None or not cursor.final or cursor.offset != self.file.reader.offset or cursor.commit == head:
            return ""
        if not recorder_state.matches_file(cursor, self.source.path, file.file, file.inode, file.size):
            return ""
        return cursor.commit if self.store.repo.is_ancestor(cursor.commit, head) else ""

    def _is_cut_short(self, head: Node | None, top: str) -> bool:
        """Return whether the last turn, as of the commit `top`, was interrupted."""
        if self.written and self.written[-1][0] is head:
            return self.written[-1][2]
        body = self.turns.lines(head, top)[1] if head is not None else []
        return bool(body) and self.agent.cells.describe(body).interrupted

    def move(self, before: Mapping[str, str], tips: Mapping[str, str]) -> None:
        """Move the branches that changed: rewound ones, then the head; then delete those that the head took over."""
        # The index may have answered for other tips: then not even the first of several refs may move.
        if session_tips(self.store, self.session) != self.known.tips:
            raise MovedError(f"another process moved the branches of {self.session}")
        if gone := before.keys() - tips.keys():  # forgotten first: after a kill in between the ref is there
            operations.forget_refs(self.store.path, map(layout.head_ref, gone))
        for branch in sorted({*tips, *before}, key=lambda b: (b not in tips, b == self.session, b)):
            old, new = before.get(branch), tips.get(branch)
            if old != new and not (old and self.lineage and branch != self.session):
                self.store.repo.move(layout.head_ref(branch), old, new)

    def save_cursor(
        self, cutter: Cutter, tips: dict[str, str], copies: list[str], others: list[str], *, is_known: bool = False
    ) -> None:
        """Save how far the file is recorded, with the copies that the branches follow from, and the branches of other
        versions; then update the index."""
        names: dict[Node | None, str] = {**{node: name for name, node in cutter.rewound.items()}, cutter.head: ""}
        commit = self.file.ended or tips[self.session]
        if cutter.is_behind:
            commit, known = self._base(cutter.file_head), self.file_cursor
            if known and self.store.repo.is_ancestor(commit, known.commit):  # the file may have been cut shorter
                commit = known.commit
        proof = recorder_state.prefix_proof(self.file.opened.file, self.file.reader.offset)
        cursor = Cursor(
            path=str(self.source.path),
            inode=self.file.opened.inode,
            offset=self.file.reader.offset,
            proof=proof if self.file.reader.is_as_read() else "",  # asked last: else it may prove what nobody has read
            commit=commit,
            current=None if is_known else names.get(cutter.current),
            uuids=cutter.uuids(),
            pending=messages.join_extents(line.extent for line in cutter.pending.lines),
            stuck=cutter.pending.stuck,
            final=self.source.final,
            agents=self.file.agents.done,
            facts=vars(self.file.facts),
            file=self.file.number,
            unended=self.file.reader.unended,
            torn=len(self.file.reader.torn),
            hash=self.file.hash.dumps(),
            copies=copies,
            others=others,
        )
        recorder_state.save_cursor(self.store.paths, self.session, cursor)
        self.context.index.sync(self.session)
        self.index_updates.keep(self.context.index)


def _fork_prefix_length(store: Store, state: Session, tips: Mapping[str, str], file: Opened) -> int:
    """Return how many bytes at the beginning of this file a fork wrote, perhaps anew."""
    origin = state.origin
    if origin is None or not origin.prefix:
        return 0
    if hashlib.sha256(file.at(0, origin.prefix)).hexdigest() == origin.prefix_sha256:
        return origin.prefix
    data = reassemble.fork_prefix(store, state, origin, reassemble.fork_commit(store, state.id, tips))
    return len(data) if file.at(0, len(data)) == data else origin.prefix


def _file_number(store: Store, state: Session, tips: Mapping[str, str], file: _FileReading) -> int:
    """Return which of the session's files this is: the last recorded one if the last recorded lines are in the same
    place in both, else the next one.

    The same lines are in other places in a file that `restore` wrote with redactions, or on another machine.
    """
    origin = state.origin
    last = max(_line_commits(store, state, tips), key=lambda one: (one[1].file, _end(one[1])), default=None)
    if last is None:
        return 1 if origin is None or file.prefix == origin.prefix else 2
    commit, message = last
    extent = max(message.extents, key=lambda extent: extent.end)
    turn = message.number("Turn") or (origin.turn if origin else 0)
    recorded = reassemble.turn_lines(store, commit, state, turn)[-extent.lines :]
    lines = [line.raw for line in file.reader.again(extent)]  # others may come before the recorded ones
    return message.file if lines and lines[-len(recorded) :] == recorded else message.file + 1


def _line_commits(store: Store, state: Session, tips: Mapping[str, str]) -> Iterator[tuple[str, Message]]:
    """Yield the session's commits with turns, or with a fork by the client, whose lines are at known places."""
    seen, origin = set[str](), state.origin
    for tip in tips.values():
        for commit, message in reassemble.own_commits(store, state.id, tip):
            if commit in seen:
                break
            seen.add(commit)
            is_fork = message.get("Event") == "fork" and origin is not None and not origin.prefix
            if _end(message) and (is_fork or (message.number("Turn") and message.get("Prompt"))):
                yield commit, message


def _end(message: Message) -> int:
    return max((extent.end for extent in message.extents), default=0)
