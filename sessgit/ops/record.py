"""Bringing the store level with one transcript.

A pass reads what the file holds beyond the cursor, cuts it into turns, writes objects for each turn that got its
last line, at the end for those that are still open, and then moves the refs: rewound branches first, the head last.
A pass that finds a ref moved by someone else starts again from what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit.agents.claude import cells, sidefiles
from sessgit.agents.claude import lines as transcript_lines
from sessgit.agents.claude.cutter import Cutter, Node
from sessgit.agents.claude.facts import Facts
from sessgit.agents.claude.lines import Line, is_prompt
from sessgit.agents.claude.reader import Opened, Reader, Redact, no_redaction, opened
from sessgit.agents.claude.sidefiles import Subagents
from sessgit.errors import MovedError, StoreError
from sessgit.model import ids, secrets
from sessgit.model import message as messages
from sessgit.model import session as sessions
from sessgit.model.session import Session
from sessgit.ops import commits, family
from sessgit.ops.commits import Content
from sessgit.ops.history import Recorded
from sessgit.store import cursor as cursors
from sessgit.store import layout, refs
from sessgit.store.cursor import Cursor
from sessgit.store.index import Index
from sessgit.store.store import Store

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Source:
    """A transcript and what is known of it besides its lines.

    `final` says that the agent has let go of the file, so that its last lines are recorded too; `live` that the
    agent is at work now, so that plan, todos and tasks are those of its last turn; `prompting` that a prompt has only
    just been given, which is then left to the next pass; `head` is the project's own commit; `config` the agent's
    folder.
    """

    path: Path
    agent_id: str
    config: Path
    final: bool = False
    live: bool = False
    prompting: bool = False
    head: str = ""

    @property
    def session(self) -> str:
        return ids.session_id(self.agent_id)


@dataclass(frozen=True, slots=True)
class Rules:
    granularity: str = "turn"
    redact: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What a pass did: the turns that it wrote, by number, and whether any ref moved."""

    session: str
    turns: tuple[int, ...] = ()
    changed: bool = False
    head: str = ""


def record(store: Store, index: Index, source: Source, rules: Rules) -> Result:
    """Records all that the transcript holds. The caller holds the session's lock, or risks double work."""
    for _ in range(_TRIES):
        try:
            with opened(source.path) as file:
                return _Pass(store, index, source, rules, file).run()
        except MovedError:
            cursors.forget(store.beside, source.session)
    raise StoreError(f"the branch of {source.session} kept moving while it was recorded", "Try again.")


class _Pass:
    def __init__(self, store: Store, index: Index, source: Source, rules: Rules, file: Opened) -> None:
        self.store, self.index, self.source, self.rules, self.file = store, index, source, rules, file
        self.session = source.session
        self.tips = refs.of_session(store.path, self.session)
        self.old_head = self.tips.get(self.session, "")
        self.state = store.state(self.old_head) if self.old_head else None
        redact: Redact = secrets.redact_line if rules.redact else no_redaction
        self.reader = Reader(file, 0, redact)
        self.redact = redact
        self.agents = Subagents(source.path, source.agent_id, redact)
        self.facts = Facts(self.state)
        self.lineage: family.Lineage | None = None
        self.tops: dict[str, str] = {}
        """For the last turn of each branch, by its prompt, the branch's tip; for the start, by ``""``."""
        self.written: list[int] = []

    def run(self) -> Result:
        cutter = self._resume() or self._from_the_start()
        for line in self._lines():
            self.facts.note(line)
            cutter.feed(line)
            while cutter.finished:
                self._write(cutter, cutter.finished.pop(0))
        if not self.old_head and cutter.head is None and not (self.source.final and self.file.size):
            return Result(self.session)
        for node in [*cutter.rewound.values(), cutter.head]:
            if node is not None and node.grown:
                self._write(cutter, node)
        tips = {name: self._top(node) for name, node in cutter.rewound.items()}
        tips[self.session] = self._head(cutter)
        self._move(tips)
        self._remember(cutter, tips)
        return Result(self.session, tuple(self.written), tips != self.tips, tips[self.session])

    def _lines(self) -> Iterator[Line]:
        """The lines that the file holds; a prompt that nothing was done about is left for later where it is new.

        Else a turn would be committed twice, once with its prompt alone.
        """
        if not self.source.prompting:
            yield from self.reader.lines()
            return
        held: list[Line] = []
        for line in self.reader.lines():
            if is_prompt(line):
                yield from held
                held = [line]
            elif held and not line.is_work:
                held.append(line)
            else:
                yield from held
                yield line
                held = []
        if held:
            self.reader.offset = held[0].extent.offset

    # Where to begin

    def _resume(self) -> Cutter | None:
        """A cutter that goes on from the cursor, or None where the cursor does not fit."""
        known = cursors.load(self.store.beside, self.session)
        branch = (known.current if known else "") or self.session
        if known is None or not self.old_head or known.commit != self.old_head or branch not in self.tips:
            return None
        if not cursors.fits(known, self.source.path, self.file.file, self.file.inode, self.file.size):
            return None
        pending = [line for extent in known.pending for line in self.reader.again(extent)]
        self.reader.offset = known.offset
        self.agents.resume(known.agents)
        cutter = self._cutter(replay=False)
        current = self.recorded.node_at(self.tips[branch])
        cutter.resume(current, known.uuids, pending, known.stuck)
        return cutter

    def _from_the_start(self) -> Cutter:
        if not self.old_head:
            self.lineage = family.of(self.store, self.index, self.source.path, self.session)
        return self._cutter(replay=True)

    def _cutter(self, *, replay: bool) -> Cutter:
        def commit_of(key: str) -> str | None:
            return self.index.commit_of(self.session, key)

        self.recorded = Recorded(self.store, self.tips, None if replay else commit_of)
        nodes = {branch: self.recorded.node_at(tip) for branch, tip in self.tips.items()}
        self.tops = {node.key if node else "": self.tips[branch] for branch, node in nodes.items()}
        rewound = {b: n for b, n in nodes.items() if n is not None and layout.is_rewound(b)}
        return Cutter(self.recorded, nodes.get(self.session), rewound, session=self.session, replay=replay)

    # Turns

    def _write(self, cutter: Cutter, node: Node) -> None:
        """Commits what of the turn is not recorded yet."""
        node.grown = False
        is_open = cutter.is_open(node)
        if self.lineage is not None and not node.commit and self.lineage.take(node, self.source.agent_id):
            return
        before, body = self._whole(node)
        if not body or (node.commit and not is_open):
            return
        state = self.store.state(self._base(node.parent))
        on = self.tops[node.key] if node.key in self.tops else self._base(node.parent)
        if not node.commit and any(line.is_boundary for line in before[node.copied :]):
            on = commits.compact(self.store, on, before[node.copied :], self.session)
        for length, complete in self._points(node, body):
            content = self._content(node, before, body[:length], complete=complete, is_last=node is cutter.head)
            on = self._commit(node, on, content, state)
        self.tops[node.key] = node.commit = on
        self.written.append(node.number)
        if not is_open:
            node.before, node.body = [], []

    def _base(self, parent: Node | None) -> str:
        """The commit that what follows `parent` stands on."""
        if self.lineage is not None and self.lineage.is_fork_point(parent):
            assert parent is not None
            return self.tops.setdefault(parent.key, self._fork())
        return self._top(parent)

    def _top(self, node: Node | None) -> str:
        if node is not None:
            return self.tops.get(node.key) or node.commit
        if "" not in self.tops:
            self.tops[""] = self._root() if self.old_head else self._start()
        return self.tops[""]

    def _whole(self, node: Node) -> tuple[list[Line], list[Line]]:
        """All lines of the turn, or none where every line that was met is recorded."""
        if not node.commit:
            return node.before, node.body
        before, body = self._lines_again(node)
        if not node.met:
            return before, body + node.body
        known = {line.uuid or line.raw for line in body}
        new = [line for line in node.body if (line.uuid or line.raw) not in known]
        return (before, body + new) if new else ([], [])

    def _lines_again(self, node: Node) -> tuple[list[Line], list[Line]]:
        """The recorded lines, out of the agent's file where it still holds them, so that their places are known."""
        before, body = self.recorded.lines(node)
        message = self.store.message(node.commit)
        if message.get("Session") == self.session:
            placed = [line for extent in message.extents for line in self.reader.again(extent)]
            lines = [*before, *body]
            if placed and [line.raw for line in placed] == [line.raw for line in lines[-len(placed) :]]:
                lines[-len(placed) :] = placed
                return lines[: len(before)], lines[len(before) :]
        return before, body

    def _points(self, node: Node, body: list[Line]) -> list[tuple[int, bool]]:
        """The lengths of the body that are committed one after another, and whether the turn is told as whole."""
        if self.rules.granularity != "cell":
            return [(len(body), True)]
        recorded = len(self.recorded.lines(node)[1]) if node.commit else 0
        ends = [n for n in range(recorded + 1, len(body) + 1) if transcript_lines.tool_results(body[n - 1])]
        return [(n, False) for n in ends] + ([] if ends and ends[-1] == len(body) else [(len(body), True)])

    def _content(self, node: Node, before: list[Line], body: list[Line], *, complete: bool, is_last: bool) -> Content:
        if not complete:
            return Content(before, body, {}, complete=False)
        lines = [*before, *body]
        side = self.agents.of_turn(node.key, lines, is_last=is_last)
        side |= sidefiles.results(self.source.path, self.source.agent_id, lines, self.redact)
        return Content(before, body, side, project_head=self.source.head)

    def _commit(self, node: Node, on: str, content: Content, before: Session) -> str:
        told = cells.describe(content.body)
        found = sum(line.secrets for line in (*content.before, *content.body))
        state = sessions.after_turn(before, told, node.number)
        state = self._identified(replace(state, redacted=before.redacted + found))
        return commits.turn(self.store, on, node, content, state, self._changes(on, content))

    def _changes(self, on: str, content: Content) -> commits.Changes:
        """What changes beside the turn: what only a live recorder sees, and what a rewind carries over."""
        changes: dict[str, tuple[str, bool] | None] = {}
        if content.complete and self.source.live:
            found = sidefiles.live(self.source.config, self.source.agent_id, self.facts.slug, self.redact)
            changes[layout.LIVE] = (self.store.write_folder(found), True) if found else None
        if self.old_head and on not in self.tops.values():
            changes[layout.PAD] = self.store.repo.entry(self.store.tree(self.old_head), layout.PAD)
        return changes

    def _identified(self, state: Session) -> Session:
        """The state as this session's: its id, what was authored, what its lines say."""
        if self.state is not None:
            state = sessions.carry(self.state, state)
        state = replace(state, id=self.session, agent_id=self.source.agent_id, transcript=str(self.source.path))
        return self.facts.apply(state)

    # The first commit

    def _start(self) -> str:
        state = Session(self.session, self.source.agent_id, created=self.facts.born)
        return commits.start(self.store, self._identified(state))

    def _root(self) -> str:
        """The commit that the session began with, for a rewind to before its first turn."""
        last = self.old_head
        for commit in self.store.repo.first_parents(self.old_head):
            if self.store.message(commit.id).get("Session") != self.session:
                break
            last = commit.id
        return last

    def _fork(self) -> str:
        assert self.lineage is not None
        point = self.lineage.commit
        parent = self.store.state(point)
        state = self.lineage.state(parent, self.session, self.source.agent_id)
        state = self._identified(replace(state, created=self.facts.born or state.created))
        changes = {**self.lineage.changes(), layout.TAIL: None, layout.LIVE: None}
        message = self.lineage.message(self.session)
        time = self.store.commit(point).time
        return self.store.write_commit(point, changes, state, message, [point], time)

    # The end

    def _head(self, cutter: Cutter) -> str:
        """The tip of the session, with the file's last lines if the agent has let go of it."""
        top = self._base(cutter.head)
        if not self.source.final:
            return top
        torn = self.reader.tail()
        lines = [*cutter.pending, *torn]
        state = self.store.state(top)
        tail = commits.tail_bytes(lines, torn=bool(torn))
        if state.state != "active" and tail == self.store.tail(top):
            return top
        body = cutter.head.body if cutter.head is not None and cutter.head.met else []
        state = commits.ended(self._identified(state), body, self.facts.last_time)
        return commits.end(self.store, top, lines, state, torn=bool(torn))

    def _move(self, tips: dict[str, str]) -> None:
        """Moves what has changed: rewound branches first, then the head, then what the head took over goes."""
        for branch in sorted({*tips, *self.tips}, key=lambda b: (b not in tips, b == self.session, b)):
            old, new = self.tips.get(branch), tips.get(branch)
            if old != new:
                self.store.repo.move(layout.head(branch), old, new)

    def _remember(self, cutter: Cutter, tips: dict[str, str]) -> None:
        current = next((name for name, node in cutter.rewound.items() if node is cutter.current), "")
        cursor = Cursor(
            path=str(self.source.path),
            inode=self.file.inode,
            offset=self.reader.offset,
            proof=cursors.proof(self.file.file, self.reader.offset),
            commit=tips[self.session],
            current=current,
            uuids=cutter.uuids(),
            pending=messages.join(line.extent for line in cutter.pending),
            stuck=cutter.stuck,
            agents=self.agents.done,
        )
        cursors.save(self.store.beside, self.session, cursor)
        self.index.sync(self.session)
