"""What recording makes of a transcript's lines, the same for every agent: turns and branches, the folder of each turn,
and the facts of the session.

Lines become turns by the chain of what they name as their parents, and by their order in the file where they name none.
The result is a function of the lines alone: fed at once or in pieces, by one process or by many, it ends the
same. So every decision here rests on the lines fed so far and on what `History` answers, and `History` answers
the same whether the lines are still in memory or long recorded. See `docs/format.md`, "Cutting: Claude Code".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any, Protocol

from sessgit.agents import Agent
from sessgit.agents.line import CHOSEN, Line
from sessgit.model import canonical, ids, json_strings, stored_fields
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session, Unified
from sessgit.model.conversation.turn import Turn
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes, file_of_lines
from sessgit.store import layout

_CHAIN_LIMIT = 100_000


@dataclass(eq=False, slots=True)
class Node:
    """A turn in the making, or one that is recorded already; `parent` is the turn before it, None at the start.

    `before` and `body` hold the lines met in this pass. Of a recorded turn that this pass has not met they are
    empty, and `History` knows its lines.
    """

    key: str
    number: int
    find_parent: Callable[[], Node | None]
    before: list[Line] = field(default_factory=list)
    body: list[Line] = field(default_factory=list)
    copied: int = 0
    """So many lines of `before` come before another turn's prompt as well: the chain of this prompt passes there."""
    commit: str = ""
    """The commit that holds the turn as it is recorded, or empty."""
    is_in_file: bool = False
    """Whether this pass met the prompt, so that `before` and `body` hold all lines so far, and not new ones alone."""
    has_new_lines: bool = False
    """Whether lines came that may not be recorded yet."""

    @property
    def parent(self) -> Node | None:
        """Return the turn before it, or None for the first one."""
        return self.find_parent()


@frozen
class Place:
    """Where a line is kept: in the body of a turn, or among the lines before its prompt (`line` is then given)."""

    node: Node
    line: Line | None = None


class History(Protocol):
    """What is recorded of the session already."""

    def turn(self, key: str) -> Node | None:
        """Return the recorded turn with this prompt uuid, on whatever branch."""

    def find(self, uuid: str) -> Place | None:
        """Return where the line with this uuid is recorded; the newest place, if several."""

    def is_closed(self, node: Node, line: Line) -> bool:
        """Return whether the turn takes no such line though no turn follows it: another session recorded it for a
        fork."""


def line_of(tip: Node | None) -> Iterator[Node]:
    """Yield the turn and all before it, newest first."""
    while tip is not None:
        yield tip
        tip = tip.parent


@frozen
class _Anchor:
    """What the chain upwards from a line leads to."""

    node: Node | None
    known: bool = True
    compacting: bool = False
    copied: tuple[Line, ...] = ()
    """Lines on the way that come before another turn's prompt."""


class Waiting:
    """Lines that belong to no body yet. The first `stuck` of them came before the body that was fed last: they wait for
    the next prompt."""

    def __init__(self, lines: Iterable[Line] = (), stuck: int = 0) -> None:
        self.lines, self.by_uuid = list[Line](), dict[str, Line]()
        self.stuck = stuck
        self.is_rolled_back = False
        """Whether they say that the next prompt leaves turns behind: none of these grows any more."""
        for line in lines:
            self.add(line)

    def add(self, line: Line) -> None:
        """Let one more line wait."""
        self.lines.append(line)
        self.is_rolled_back = self.is_rolled_back or bool(line.turns_rolled_back)
        if line.uuid:
            self.by_uuid[line.uuid] = line


class Cutter:
    """Takes lines in the order of the file; `head`, `rewound`, `current` and `pending` are the state between two.

    From the file's beginning everything is cut once more as if nothing were recorded, since a turn that has long
    been closed was open when its lines came; `History` then only says what is recorded already.
    """

    def __init__(self, history: History, *, session: str) -> None:
        self.history = history
        self.session = session
        self.head: Node | None = None
        self.rewound: dict[str, Node] = {}
        self.current: Node | None = None
        self.pending = Waiting()
        self.finished: list[Node] = []
        """Turns that got their last line; the recorder takes them from here."""
        self.is_behind = False
        """Whether the head is a recorded one to which the file does not lead, but only to `file_head`, before it."""
        self.file_head: Node | None = None
        self._resumed = False
        self._nodes: dict[str, Node] = {}
        self._places: dict[str, Place] = {}

    def resume(self, head: Node | None, rewound: dict[str, Node], current: Node | None, uuids: Iterable[str]) -> None:
        """Continue where an earlier pass stopped; `uuids` are those of the current turn's body."""
        self._resumed = True
        self.head, self.rewound, self.current = head, rewound, current
        if current is not None:
            self._nodes[current.key] = current
            self._places.update(dict.fromkeys(uuids, Place(current)))

    def keep(self, head: Node | None, rewound: dict[str, Node], *, has_grown: bool = False) -> None:
        """Keep the recorded branches that a file which was cut shorter or written anew does not lead to any more.

        `has_grown` says that the file's last turn got lines that are not recorded: then no head continues from there.
        """
        reached = {node for tip in (self.head, *self.rewound.values()) for node in line_of(tip)}
        lost = {name: tip for name, tip in rewound.items() if tip not in reached}
        left = head if head is not None and head not in reached else None
        if left is not None and not has_grown and (self.head is None or self.head in line_of(left)):
            self.is_behind, self.file_head = True, self.head
            self.head, left = left, None
        tips = (tip for tip in (self.head, left, *lost.values()) if tip is not None)
        passed = {node for tip in tips for node in line_of(tip.parent)}
        self.rewound = {name: tip for name, tip in self.rewound.items() if tip not in passed}
        for name, tip in lost.items():
            self.rewound[self._free_name(tip, self.head) if name in self.rewound else name] = tip
        if left is not None:
            self.rewound[self._free_name(left, self.head)] = left

    def uuids(self) -> list[str]:
        """Return the uuids of the current turn's body, for `resume`."""
        return [uuid for uuid, place in self._places.items() if place.node is self.current and place.line is None]

    def feed(self, line: Line) -> None:
        """Put the next line of the file where it belongs; turns that got their last line go to `finished`."""
        if line.is_prompt and self._is_new(line.prompt_id):
            self._open(line)
        elif line.is_body:
            self._place(line)
        else:
            self.pending.add(line)

    def is_open(self, node: Node) -> bool:
        """Return whether no turn follows the node yet, so that it may still grow."""
        return node is self.head or any(node is tip for tip in self.rewound.values())

    # A prompt

    def _is_new(self, key: str) -> bool:
        """Return whether the prompt opens a turn; a second copy of a line opens none."""
        return key not in self._nodes and not (self._resumed and self.history.turn(key) is not None)

    def _open(self, line: Line) -> None:
        key = line.prompt_id
        anchor = self._anchor_of_prompt(line)
        node = None if self._resumed else self.history.turn(key)
        if node is None:
            parent = anchor.node
            node = Node(key, parent.number + 1 if parent else 1, lambda: parent)
        self._move_head(node, node.parent)
        self._nodes[key] = self.current = node
        node.before = [*anchor.copied, *self.pending.lines]
        node.body = [line]
        node.copied = len(anchor.copied)
        node.is_in_file = node.has_new_lines = True
        self._places.update((uuid, Place(node, before)) for uuid, before in self.pending.by_uuid.items())
        if line.uuid:
            self._places[line.uuid] = Place(node)
        self.pending = Waiting()

    def _anchor_of_prompt(self, line: Line) -> _Anchor:
        if line.uuid and line.is_root:
            return _Anchor(None)
        anchor = self._anchor(line.parent) if line.parent else _Anchor(None, known=False)
        if anchor.known:
            return anchor
        here = self.current if self.current is not None and self.is_open(self.current) else self.head
        for waiting in self.pending.lines:
            for _ in range(min(waiting.turns_rolled_back, here.number if here is not None else 0)):
                here = here.parent if here is not None else None
        return _Anchor(here, copied=anchor.copied)

    def _move_head(self, node: Node, parent: Node | None) -> None:
        """Make the new turn the head; the turns that it leaves behind become a rewound branch."""
        old = self.head
        if old is not None and old is not parent:
            self.rewound[self._free_name(old, parent)] = old
        self.rewound = {name: tip for name, tip in self.rewound.items() if tip is not parent}
        self.head = node
        if parent is not None and parent.has_new_lines:
            self.finished.append(parent)

    def _free_name(self, tip: Node, kept: Node | None) -> str:
        """Return a name after the first prompt left behind after which no other branch is named yet.

        Two names meet where a turn is left behind a second time, or where two uuids begin alike.
        """
        names = [ids.rewound_name(self.session, node.key) for node in reversed(left_behind(tip, kept))]
        more = (ids.rewound_name(self.session, ids.line_id(tip.key.encode(), number)) for number in count())
        return next(name for name in chain(names, more) if self.rewound.get(name, tip) is tip)

    # Any other line

    def _place(self, line: Line) -> None:
        anchor = self._anchor(line.parent) if line.parent else _Anchor(None, known=False)
        if anchor.compacting and not line.is_work:
            self.pending.add(line)
            return
        target = anchor.node
        if target is None or anchor.compacting or not self.is_open(target):
            target = self.current
        if target is None or self.pending.is_rolled_back or self.history.is_closed(target, line):
            self.pending.add(line)
            return
        if target is self.current:
            self._absorb(target)
        else:
            self.current, self.pending.stuck = target, len(self.pending.lines)
            self._nodes.setdefault(target.key, target)
        target.body.append(line)
        target.has_new_lines = True
        if line.uuid:
            self._places[line.uuid] = Place(target)

    def _absorb(self, target: Node) -> None:
        """Put the lines that came since the last one of the body into it: the turn went on after them."""
        stuck = self.pending.stuck
        absorbed = self.pending.lines[stuck:]
        if absorbed:
            target.body += absorbed
            self._places.update((line.uuid, Place(target)) for line in absorbed if line.uuid)
            self.pending = Waiting(self.pending.lines[:stuck], stuck)

    # The chain

    def _anchor(self, uuid: str) -> _Anchor:
        copied: list[Line] = []
        passed: set[str] = set()
        while uuid not in passed and len(passed) < _CHAIN_LIMIT:
            passed.add(uuid)
            line = self.pending.by_uuid.get(uuid)
            place = None if line else self._places.get(uuid) or self.history.find(uuid)
            if place is not None:
                line = place.line
                if line is None:
                    return _Anchor(place.node, copied=tuple(reversed(copied)))
                copied.append(line)
            if line is None:
                return _Anchor(None, known=False, copied=tuple(reversed(copied)))
            if not line.parent:
                return self._root(line, place, tuple(reversed(copied)))
            uuid = line.parent
        return _Anchor(None, known=False)

    def _root(self, line: Line, place: Place | None, copied: tuple[Line, ...]) -> _Anchor:
        """Return the anchor of a chain that ends, at a line before a prompt or among those that wait for one."""
        if not line.is_boundary:
            return _Anchor(None, copied=copied)
        if place is None:
            return _Anchor(self.current, compacting=True, copied=copied)
        return _Anchor(place.node.parent, copied=copied)


def left_behind(tip: Node, kept: Node | None) -> list[Node]:
    """Return the turns from `tip` back to where its line and that of `kept` part, newest first."""
    path: list[Node] = []
    left: Node | None = tip
    while left is not None and left is not kept:
        if kept is not None and kept.number > left.number:
            kept = kept.parent
        else:
            if kept is not None and kept.number == left.number:
                kept = kept.parent
            path.append(left)
            left = left.parent
    return path


# The folder of a turn


def folder_files(
    agent: Agent, before: Sequence[Line], body: Sequence[Line], turn: Turn, cut: int = json_strings.RULES_VERSION
) -> dict[str, Bytes]:
    """Return the files of a turn's folder by path: a function of the turn's lines and of the version of the rules by
    which its session is cut."""
    lines = [*before, *body]
    labels = list[tuple[str, str]]()

    def label(index: int, _: str) -> tuple[str, str]:
        if not labels:  # few turns have strings that are cut out
            labels.extend(agent.cells.label(lines))
        return labels[index]

    valid = {index for index, line in enumerate(lines) if line.data is not None}
    stored, long = json_strings.cut_long_strings([line.raw for line in lines], label, cut, valid)
    out = {layout.BODY: file_of_lines(stored[len(before) :])}
    if before:
        out[layout.BEFORE] = file_of_lines(stored[: len(before)])
    if turn.cells:
        out[layout.CELLS] = canonical.join_lines(canonical.compact(stored_fields.to_json(cell)) for cell in turn.cells)
    out.update((f"{layout.TEXTS}/{name}", text) for name, text in long.items())
    return out


# The session as a whole


@dataclass
class Facts:
    """Collects from line after line; the last wins, but for the birth and the project, where the first does.

    A pass that commits nothing still learns: so these go from pass to pass in the cursor.
    """

    created: str = ""
    project: str = ""
    title: str = ""
    title_rank: int = 0
    git_branch: str = ""
    version: str = ""
    slug: str = ""
    headless: bool = False
    had_person: bool = False
    """Whether a person held any part of it, so that it is not headless whatever a program added."""
    parent: str = ""
    """The agent's id of the session that began this one as a subagent, or empty."""
    names: list[str] = field(default_factory=list)
    """The names that the session was ever given here: a chosen title that is one of them may be our own line."""

    def note(self, line: Line) -> None:
        """Take what the line says."""
        if line.data is None:
            return
        self.created = self.created or line.time
        self.project = self.project or line.cwd
        self.git_branch = line.git_branch or self.git_branch
        self.version = line.version or self.version
        self.slug = line.slug or self.slug
        self.parent = self.parent or line.began_by
        if line.title is not None:
            self.note_title(*line.title)
        elif line.is_headless is not None:
            self.had_person = self.had_person or not line.is_headless
            self.headless = not self.had_person

    def note_title(self, text: str, rank: int) -> None:
        """Take a title of the session, unless it has one of a higher rank."""
        title = canonical.one_line(text, 200)
        if rank == CHOSEN and title in self.names:
            rank = 0
        if title and rank >= self.title_rank:
            self.title, self.title_rank = title, rank

    def learn(self, names: Iterable[str]) -> None:
        """Take names that the session was given."""
        self.names += [name for name in dict.fromkeys(names) if name and name not in self.names]

    def apply(self, state: Session, **own: Any) -> Session:
        """Return the state with what the lines said; `own` are other fields of it that change in the same step."""
        return replace(
            state,
            created=self.created or state.created,
            agent_version=self.version or state.agent_version,
            title=self.title if self.title_rank else state.title or self.title,
            project=self.project or state.project,
            git_branch=self.git_branch or state.git_branch,
            headless=self.headless,
            unified=self._unified(state),
            **own,
        )

    def _unified(self, state: Session) -> Unified:
        """Return what is set of the state, with the session that began this one if nothing else is said of it."""
        if not self.parent or state.unified.metadata.parent:
            return state.unified
        return sessions.with_values(state.unified, {"metadata.parent": ids.session_id(self.parent)})


def load_facts(document: Mapping[str, Any]) -> Facts | None:
    """Return the facts of a document with these fields, or None if a value is of another kind."""
    kinds = {key: type(value) for key, value in vars(Facts()).items()}
    if any(kinds.get(key) is not type(value) for key, value in document.items()):
        return None
    return Facts(**document) if all(isinstance(name, str) for name in document.get("names", [])) else None


def begin_facts(state: Session | None = None) -> Facts:
    """Return the facts before the first line: where the session began does not change."""
    return Facts(created=state.created, project=state.project, headless=state.headless) if state else Facts()
