"""Bringing the store level with one transcript.

A pass reads what the file holds beyond the cursor, cuts it into turns, writes objects for each turn that got its
last line, at the end for those that are still open, and then moves the refs: rewound branches first, the head last.
A pass that finds a ref moved by someone else starts again from what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sessgit.agents.base import Cutter
from sessgit.agents.line import Line
from sessgit.agents.reader import Opened, Reader, opened
from sessgit.agents.values import Node
from sessgit.errors import ConflictError, MovedError, StoreError
from sessgit.history import shared_prefix
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.record import commits, file_number, fork_detection, sidecars
from sessgit.record.commits import TurnContent
from sessgit.record.divergence import branches_after_divergence, last_end_commit, last_read_commit
from sessgit.record.file_hash import FileHash
from sessgit.record.index_updates import IndexUpdates, WordSink
from sessgit.record.recorded_turns import (
    RecordedTurns,
    check_tips,
    commit_finder,
    given_names,
    matches_cursor,
    session_tips,
)
from sessgit.record.sidecars import TurnSidecars
from sessgit.record.source import IsolatedRecording, RecordRules, TranscriptSource
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.recorder import append_intent
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.cursor import Cursor
from sessgit.store.secrets import secret_filter
from sessgit.store.store import Store

_TRIES = 5

SetAside = Literal["", "archived", "deleted"]


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """What a pass did: the turns that it wrote, by number, and whether any ref moved.

    `aside` says why nothing was recorded: the session is archived, or was deleted here.
    """

    session: str
    turns: tuple[int, ...] = ()
    changed: bool = False
    head: str = ""
    aside: SetAside = ""


def record(
    store: Store, index: Index, source: TranscriptSource, rules: RecordRules, heard: WordSink | None = None
) -> RecordingResult:
    """Records all that the transcript holds, but of a session that is archived or was deleted nothing. The caller holds
    the session's lock, or risks double work; `heard` is told of each turn."""
    moved, most = 0, dict[str, int]()
    while moved < _TRIES:
        try:
            store.repo.begin_write()  # a value that is purged just now must be known to all that is written
            with opened(source.path) as file:
                found = Recording(store, index, source, rules, file)
                found.most, found.noted.word_sink = most, heard
                aside = found.aside()
                return RecordingResult(source.session, aside=aside) if aside else found.run(anew=moved > 0)
        except MovedError:
            moved += 1  # and the cursor stays: it tells which turns came from elsewhere meanwhile
        except fork_detection.DifferentTurnError as turn:
            most[turn.branch] = turn.number - 1
        finally:
            store.repo.release()
    raise StoreError(f"the branch of {source.session} kept changing while it was recorded", "Try again.")


class Recording:
    """One reading of a transcript, and what it writes."""

    def __init__(
        self,
        store: Store,
        index: Index,
        source: TranscriptSource,
        rules: RecordRules,
        file: Opened,
        alone: IsolatedRecording | None = None,
    ) -> None:
        self.store, self.index, self.source, self.rules, self.file = store, index, source, rules, file
        self.alone = alone
        self.session = source.session
        self.tips = {} if alone else session_tips(store, self.session)
        self.old_head = self.tips.get(self.session, "")
        self.state = store.state(self.old_head) if self.old_head else None
        self.agent = source.agent
        self.stored_rules = alone.rules if alone else self.state.rules if self.state else rules.stored
        self.redact = (
            alone.redact
            if alone
            else secret_filter.line_cleaner(store.beside, self.stored_rules, self.agent.protected_keys)
        )
        self.reader = Reader(file, 0, self.redact, self.agent.lines.make)
        self.agents = self.agent.sidecars.subagents(source.path, source.agent_id, self.redact)
        self.facts = self.agent.facts(self.state)
        self.number = 1
        """Which of the session's files this is."""
        self.prefix = self.state.origin.prefix if self.state and self.state.origin else 0
        """So many bytes of the file were written by a fork: what they hold is recorded where the fork came from."""
        self.brought = source.brought or append_intent.load_origins(store.beside, self.session)
        self.lineage: fork_detection.Lineage | None = None
        self.most: Mapping[str, int] = {}
        self.tops: dict[str, str] = {}
        """For the last turn of each branch, by its prompt, the branch's tip; for the start, by ``""``."""
        self.committed: list[tuple[int, str]] = []
        """The number of each turn that was written, and its commit."""
        self.last: tuple[Node, bool] | None = None  # the turn that was written last, and whether it was interrupted
        self.noted = IndexUpdates()
        self.resumed = False
        known = cursors.load_cursor(store.beside, self.session)
        self.others = known.others if known else []
        """The branches of other versions of the file that were recorded here."""
        self.is_known = False
        """Whether all lines of the file are recorded, and more: then no branch moves."""
        self.hash: FileHash | None = FileHash()
        """That of all lines read so far, or None where it is not known."""
        self.known_commit = ""
        """The commit that the cursor names, if there is one that fits."""
        self.ended = ""
        """The commit at which all of the file was recorded, if it ended otherwise elsewhere since then."""

    def aside(self) -> SetAside:
        """Asked once the tips are read: who moves them away makes the other ref first."""
        if self.old_head:
            return ""
        if self.store.ref(layout.tombstone_ref(self.session)):
            return "deleted"
        return "archived" if self.store.ref(layout.archive_ref(self.session)) else ""

    def run(self, *, anew: bool) -> RecordingResult:
        cutter = None if anew else self._resume()
        if self.old_head and (cutter is None or (self.source.imported and self.reader.offset < self.file.size)):
            from sessgit.record import reassembly  # loaded here: it is rare

            if done := reassembly.record_copies(self):
                return RecordingResult(self.session, done.turns, done.changed, done.tips[self.session])
        cutter = cutter or self.begun()
        tips = self.cut(cutter)
        if not tips:
            return RecordingResult(self.session)
        self.move(self.tips, tips)
        self.remember(cutter, tips)
        if (
            not self.old_head
            and self.lineage is None
            and fork_detection.link_copies(self.store, self.index, self.session)
        ):
            self.index.sync()
        turns = tuple(number for number, _ in self.committed)
        return RecordingResult(self.session, turns, tips != self.tips, tips[self.session])

    def apart(self, source: TranscriptSource, file: Opened, alone: IsolatedRecording) -> Recording:
        """Returns a pass over another file, as if nothing of its session were recorded."""
        made = Recording(self.store, self.index, source, self.rules, file, alone)
        made.noted.word_sink = self.noted.word_sink
        return made

    def cut(self, cutter: Cutter) -> dict[str, str]:
        """Writes the commits; returns the branches as they must be then, none where there is nothing to record."""
        since = [self.old_head] if self.known_commit else self.tips.values()
        self.facts.learn(given_names(self.store, self.session, since, self.known_commit))
        # A prompt that nothing was done about would be committed twice, once alone.
        for line in self.reader.settled() if self.source.prompting else self.reader.lines():
            self.facts.note(line)
            if self.hash:
                self.hash.add(line)
            if line.uuid or line.extent.offset >= self.prefix:
                cutter.feed(line)
            while cutter.finished:
                self._write(cutter, cutter.finished.pop(0))
        for node in filter(None, [*cutter.rewound.values(), cutter.head]):
            if node.grown:
                self._write(cutter, node)
            node.before, node.body = [], []  # the node stays longer than this pass
        if not self.resumed:
            has_grown = self.last is not None and self.last[0] is cutter.head
            cutter.keep(self.recorded_head, self.recorded_rewound, has_grown=has_grown)
        if not self.old_head and cutter.head is None and not (self.source.final and self.file.size):
            return {}
        self._write_leftover(cutter)
        tips = {name: self._base(node) for name, node in cutter.rewound.items()}
        tips[self.session] = self._head(cutter)
        if self.is_known:
            return self.tips
        return branches_after_divergence(
            self.store, self.source, self.old_head, cutter.rewound, self.recorded_head, tips
        )

    # Where to begin

    def _resume(self) -> Cutter | None:
        """A cutter that goes on from the cursor, or None where the cursor does not fit."""
        known = cursors.load_cursor(self.store.beside, self.session)
        if known is None or known.current is None or not matches_cursor(self.store, self.session, self.tips, known):
            return None
        branch = known.current or self.session
        if branch not in self.tips:
            return None
        learnt, file = self.agent.kept_facts(known.facts), self.file
        if learnt is None or not cursors.matches_file(known, self.source.path, file.file, file.inode, file.size):
            return None
        if not self.reader.resume(known.offset, unended=known.unended):
            return None
        self.resumed = True
        self.number = known.file
        self.prefix = min(self.prefix, known.offset)
        self.agents.resume(known.agents)
        self.facts = learnt
        self.known_commit = known.commit
        self.hash = FileHash.loads(known.hash, known.offset)
        cutter = self._cutter(commit_finder(self.index, self.session, self.tips))
        cutter.resume(self.recorded_head, self.recorded_rewound, self.recorded.node_at(self.tips[branch]), known.uuids)
        cutter.await_prompt([line for extent in known.pending for line in self.reader.again(extent)], known.stuck)
        if cutter.current is not None and self.reader.offset > known.offset:
            cutter.current.grown = True  # its last line may have got its newline
        return cutter

    def begun(self) -> Cutter:
        """Returns a cutter that reads the file from its beginning."""
        if not self.old_head and not self.alone:
            self.lineage = fork_detection.find_lineage(
                self.store, self.index, self.source, self.stored_rules, self.most
            )
        if self.state is not None:
            self.prefix = file_number.fork_prefix_length(self.store, self.state, self.tips, self.reader)
            self.number = file_number.last_file_number(self.store, self.state, self.tips, self.reader, self.prefix)
        return self._cutter(None)

    def _cutter(self, find_turn: Callable[[str], str | None] | None) -> Cutter:
        tips = {} if self.lineage else self.tips  # a fork's branches without a head are what a killed pass left
        origin = self.state.origin if self.state else None
        self.recorded = RecordedTurns(
            self.store, tips, self.agent, find_turn, origin.turn if origin and origin.prefix else 0
        )
        nodes = {branch: self.recorded.node_at(tip) for branch, tip in tips.items()}
        self.tops = {node.key if node else "": self.tips[branch] for branch, node in nodes.items()}
        self.recorded_head = nodes.pop(self.session, None)
        self.recorded_rewound = {branch: node for branch, node in nodes.items() if node is not None}
        return self.agent.cutter(self.recorded, session=self.session)

    # Turns

    def _write(self, cutter: Cutter, node: Node) -> None:
        """Commits what of the turn is not recorded yet."""
        node.grown = False
        is_open = cutter.is_open(node)
        if self.lineage is not None and not node.commit and self.lineage.take(node, self.source.agent_id):
            return
        before, body = self._unrecorded_lines(cutter, node)
        if not is_open:
            node.before, node.body = [], []
        if body:
            self._write_lines(cutter, node, before, body, is_open=is_open)

    def _write_leftover(self, cutter: Cutter) -> None:
        """Commits the last turn again, where it is the session's own, with what subagents wrote since it was recorded,
        if the agent has let go of the file: no other turn will come for that."""
        node = cutter.head
        if not self.source.final or node is None or cutter.is_behind or not self.tops.get(node.key):
            return
        message = self.store.message(node.commit)
        if message.get("Session") == self.session and self.agents.has_more():
            self.brought = {node.key: commits.event_and_origin(message), **self.brought}
            self._write_lines(cutter, node, *self._lines_again(node), is_open=True)

    def _write_lines(self, cutter: Cutter, node: Node, before: list[Line], body: list[Line], *, is_open: bool) -> None:
        state = self.store.state(self._base(node.parent))
        on = self.tops[node.key] if node.key in self.tops else self._base(node.parent)
        if not node.commit and any(line.is_boundary for line in before[node.copied :]):
            own = state if state.id == self.session else self._identified(state)
            on = commits.commit_compaction(self.store, on, before[node.copied :], own, self.number)
        for length, complete in self._commit_points(node, body):
            side = self._turn_sidecars(cutter, node, [*before, *body]) if length == len(body) else TurnSidecars()
            file_hash = self.hash.at(body[length - 1]) if self.hash else ""
            of = (*self.brought.get(node.key, ("turn", "")), self.number, self.stored_rules, file_hash)
            content = TurnContent(self.agent, before, body[:length], side, complete, self.source.head, *of)
            is_last = self.source.at_rest and is_open and node is cutter.head
            on = self._commit(node, on, content, state, live=self.source.live or is_last)
            self.noted.take(self.store, on, node, content, is_last=length == len(body))
        self.tops[node.key] = node.commit = on
        self.last = node, content.told.interrupted
        self.committed.append((node.number, on))

    def _base(self, parent: Node | None) -> str:
        """The commit that what follows `parent` stands on."""
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
        """All lines of the turn, or none where every line that was met is recorded or the turn is closed: a recorded
        turn follows it in this file. One that is only followed elsewhere has gone on here."""
        if not node.commit:
            return node.before, node.body
        if node.met:
            self.agents.pass_over(node.key, lambda: sidecars.recorded_subagent_lines(self.store, node))
        if node.key not in self.tops and node is not cutter.head and (cutter.head is None or cutter.head.commit):
            return [], []
        before, body = self._lines_again(node)
        new = node.body
        last = body[-1] if body else None  # a damaged turn has none
        if last and last.is_unended and any(n.uuid and n.uuid == last.uuid and n.raw != last.raw for n in new):
            body = body[:-1]  # it was not all of that line
        if node.met and [line.raw for line in new[: len(body)]] == [line.raw for line in body]:
            new = new[len(body) :]
        elif node.met:
            known = {line.uuid or line.raw for line in body}
            new = [n for n in new if n.extent.offset >= self.prefix and (n.uuid or n.raw) not in known]
        if new:
            self.tops.setdefault(node.key, node.commit)
        return (before, body + new) if new or self._got_newline(node, body) else ([], [])

    def _got_newline(self, node: Node, body: list[Line]) -> bool:
        """Whether the file ends with the newline of a line that was recorded without it."""
        if not body or body[-1].is_unended or body[-1].extent.end != self.file.size:
            return False
        return self.store.message(node.commit).is_unended

    def _lines_again(self, node: Node) -> tuple[list[Line], list[Line]]:
        """The recorded lines, out of the agent's file where it still holds them, so that their places are known."""
        tip, message = self.tops.get(node.key, node.commit), self.store.message(node.commit)
        is_shared = self.state is not None and shared_prefix.is_shared_folder(self.store, tip, self.state, node.number)
        is_here = message.get("Session") == self.session and message.file == self.number
        placed = [line for extent in message.extents for line in self.reader.again(extent)] if is_here else []
        own = partial(shared_prefix.own_line, state=self.state) if is_shared and self.state else None
        return self.recorded.lines_again(node, tip, placed, own)

    def _commit_points(self, node: Node, body: list[Line]) -> list[tuple[int, bool]]:
        """The lengths of the body that are committed one after another, and whether the turn is told as whole."""
        if self.rules.granularity != "cell":
            return [(len(body), True)]
        return commits.commit_points(
            self.agent, body, len(self.recorded.lines(node, self.tops[node.key])[1]) if node.commit else 0
        )

    def _turn_sidecars(self, cutter: Cutter, node: Node, lines: list[Line]) -> TurnSidecars:
        agents = self.agents.of_turn(node.key, lines, is_last=node is cutter.head)
        results = sidecars.write_results(self.store, self.source, lines, self.redact)
        if self.alone:
            held = self.alone.sides.get(node.key, {})
            results = {path: entry for path, entry in held.items() if not self.agents.has(path)} | results
        return TurnSidecars(agents, results)

    def _commit(self, node: Node, on: str, content: TurnContent, before: Session, *, live: bool) -> str:
        lines = [*content.before[node.copied :], *content.body]
        found = sum(line.secrets for line in lines)
        if node.commit and not all(line.extent.length for line in lines):  # of those without a place nobody counts
            found += self.store.message(node.commit).number("Redacted") or 0
        state = self._identified(sessions.after_turn(before, content.told, node.number, found))
        return commits.commit_turn(self.store, on, node, content, state, self._changes(content, live=live))

    def _changes(self, content: TurnContent, *, live: bool) -> commits.Changes:
        """What changes beside the turn: what only a live recorder sees, and what a rewind carries over."""
        changes: dict[str, tuple[str, bool] | None] = {}
        if content.complete and live:
            changes[layout.LIVE] = sidecars.write_live_files(self.store, self.source, self.facts.slug, self.redact)
        if self.old_head:
            changes |= {at: self.store.repo.entry(self.store.tree(self.old_head), at) for at in layout.CARRIED}
        return changes

    def _identified(self, state: Session) -> Session:
        """The state as this session's: its id, what was authored, what its lines say."""
        if self.state is not None:
            state = sessions.carry_over(self.state, state)
        place = self.source.place
        if place is None:
            place = str(self.source.path) if self.source.is_in_place else self.state.transcript if self.state else ""
        return self.facts.apply(
            state, id=self.session, agent_id=self.source.agent_id, transcript=place, rules=self.stored_rules
        )

    # The first commit

    def _start(self) -> str:
        """The commit before all turns: for a rewind to the very start the one that the history begins with."""
        known = self.old_head or (self.lineage.commit if self.lineage else "")
        if known:
            return [commit.id for commit in self.store.repo.first_parents(known)][-1]
        state = Session(self.session, self.source.agent_id, created=self.facts.born)
        return commits.commit_start(self.store, self._identified(state))

    def _fork(self) -> str:
        assert self.lineage is not None
        file_hash = self.hash.furthest(self.lineage.extents) if self.hash else ""
        return self.lineage.fork(self.session, self.source.agent_id, file_hash, self._identified)

    # The end

    def _head(self, cutter: Cutter) -> str:
        """The tip of the session, with the file's last lines if the agent has let go of it, and if it leads there."""
        top = self._base(cutter.head)
        if not self.source.final or cutter.is_behind:
            return top
        torn = self.reader.tail()
        lines = [*cutter.pending, *torn]
        state = self.store.state(top)
        if state.state != "active" and commits.has_tail(self.store, top, lines):
            return top
        if top == self.old_head and not self.resumed and not torn:
            self.ended = last_end_commit(self.store, self.source, self.file, self.reader.offset, top)
        if self.ended:
            return top
        state = commits.ended_state(self._identified(state), lines, cut_short=self._is_cut_short(cutter.head, top))
        if self.hash and torn:
            self.hash.add(torn[0])
        file_hash = self.hash.at(lines[-1]) if self.hash and lines else ""
        return commits.commit_end(self.store, top, lines, state, self.number, file_hash)

    def _is_cut_short(self, head: Node | None, top: str) -> bool:
        """Whether the last turn, as the commit `top` has it, was interrupted."""
        if self.last and self.last[0] is head:
            return self.last[1]
        return head is not None and commits.is_cut_short(self.agent, self.recorded.lines(head, top)[1])

    def move(self, before: Mapping[str, str], tips: Mapping[str, str]) -> None:
        """Moves what has changed: rewound branches first, then the head, then what the head took over goes."""
        check_tips(self.store, self.session, self.tips)
        for branch in sorted({*tips, *before}, key=lambda b: (b not in tips, b == self.session, b)):
            old, new = before.get(branch), tips.get(branch)
            if old != new and not (old and self.lineage):
                self.store.repo.move(layout.head_ref(branch), old, new)

    def remember(self, cutter: Cutter, tips: dict[str, str]) -> None:
        """Keeps how far the file is recorded."""
        names: dict[Node | None, str] = {**{node: name for name, node in cutter.rewound.items()}, cutter.head: ""}
        behind = last_read_commit(self.store, self.source, self._base(cutter.file_head)) if cutter.is_behind else ""
        proof = cursors.prefix_proof(self.file.file, self.reader.offset)
        cursor = Cursor(
            path=str(self.source.path),
            inode=self.file.inode,
            offset=self.reader.offset,
            proof=proof if self.reader.is_as_read() else "",  # asked last: else it may prove what nobody has read
            commit=behind or self.ended or tips[self.session],
            current=names.get(cutter.current) if not self.is_known else None,
            uuids=cutter.uuids(),
            pending=messages.join_extents(line.extent for line in cutter.pending),
            stuck=cutter.stuck,
            final=self.source.final,
            agents=self.agents.done,
            facts=self.facts.kept(),
            file=self.number,
            unended=self.reader.unended,
            torn=len(self.reader.torn),
            hash=self.hash.dumps() if self.hash else "",
            others=self.others,
        )
        cursors.save_cursor(self.store.beside, self.session, cursor)
        self.index.sync(self.session)
        self.noted.keep(self.index)


_SET_ASIDE_HINTS: dict[SetAside, str] = {
    "archived": "`sessgit unarchive` unarchives it.",
    "deleted": "`sessgit undo` restores it, until `sessgit gc --prune`.",
}


def set_aside_error(session: str, why: SetAside) -> ConflictError:
    """The error that nothing of a session is recorded, since it is out of the way."""
    return ConflictError(f"{session[:8]} is {why}, so it is not recorded", _SET_ASIDE_HINTS[why])
