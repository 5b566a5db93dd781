"""A transcript, line by line, into turns and branches.

The result is a function of the lines alone: fed at once or in pieces, by one process or by many, it ends the
same. So every decision here rests on the lines fed so far and on what `History` answers, and `History` answers
the same whether the lines are still in memory or long recorded. The rules are in `docs/format.md`, "Cutting".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sessgit.agents.claude.lines import BODY_TYPES, Line, is_prompt, prompt_uuid
from sessgit.model import ids

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
    """So many lines of `before` stand before another turn's prompt as well: the chain of this prompt passes there."""
    commit: str = ""
    """The commit that holds the turn as it is recorded, or empty."""
    met: bool = False
    """Whether this pass met the prompt, so that `before` and `body` hold all lines so far."""
    grown: bool = False
    """Whether lines came that may not be recorded yet."""

    @property
    def parent(self) -> Node | None:
        return self.find_parent()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line is kept: in the body of a turn, or among the lines before its prompt (`line` is then given)."""

    node: Node
    line: Line | None = None


class History(Protocol):
    """What is recorded of the session already."""

    def turn(self, key: str) -> Node | None:
        """The recorded turn with this prompt uuid, on whatever branch."""

    def find(self, uuid: str) -> Place | None:
        """Where the line with this uuid is recorded; the newest place, if several."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """What the chain upwards from a line leads to."""

    node: Node | None
    known: bool = True
    compacting: bool = False
    copied: tuple[Line, ...] = ()
    """Lines on the way that stand before another turn's prompt."""


class Cutter:
    """Takes lines in the order of the file; `head`, `rewound`, `current` and `pending` are the state between two.

    With `replay`, recorded turns are met once more, since the file is read from its beginning.
    """

    def __init__(
        self,
        history: History,
        head: Node | None = None,
        rewound: dict[str, Node] | None = None,
        *,
        session: str,
        replay: bool = True,
    ) -> None:
        self.history = history
        self.head = head
        self.rewound = rewound or {}
        self.session = session
        self.current: Node | None = None if replay else head
        self.pending: list[Line] = []
        self.stuck = 0
        """So many of the pending lines stand before the body that was fed last: they wait for the next prompt."""
        self.finished: list[Node] = []
        """Turns that got their last line; whoever records them takes them from here."""
        self._replay = replay
        self._nodes: dict[str, Node] = {}
        self._places: dict[str, Place] = {}
        self._waiting: dict[str, Line] = {}

    def resume(self, current: Node | None, uuids: Iterable[str], pending: list[Line], stuck: int) -> None:
        """Goes on where an earlier pass stopped; `uuids` are those of the current turn's body."""
        self.current = current
        if current is not None:
            self._nodes[current.key] = current
            self._places.update(dict.fromkeys(uuids, Place(current)))
        self.pending, self.stuck = pending, stuck
        self._waiting = {line.uuid: line for line in pending if line.uuid}

    def uuids(self) -> list[str]:
        """The uuids of the current turn's body, for `resume`."""
        return [uuid for uuid, place in self._places.items() if place.node is self.current and place.line is None]

    def feed(self, line: Line) -> None:
        if is_prompt(line) and self._is_new(prompt_uuid(line)):
            self._open(line)
        elif line.type in BODY_TYPES:
            self._place(line)
        else:
            self._wait(line)

    def is_open(self, node: Node) -> bool:
        """Whether no turn follows the node yet, so that it may still grow."""
        return node is self.head or any(node is tip for tip in self.rewound.values())

    # A prompt

    def _is_new(self, key: str) -> bool:
        """Whether the prompt opens a turn; a line that stands in the file a second time opens none."""
        if key in self._nodes:
            return False
        return self._replay or self.history.turn(key) is None

    def _open(self, line: Line) -> None:
        key = prompt_uuid(line)
        anchor = self._anchor_of_prompt(line)
        node = self.history.turn(key) if self._replay else None
        if node is None:
            parent = anchor.node
            node = Node(key, parent.number + 1 if parent else 1, lambda: parent)
            self._move_head(node, parent)
        self._leave()
        self._nodes[key] = self.current = node
        node.before = [*anchor.copied, *self.pending]
        node.body = [line]
        node.copied = len(anchor.copied)
        node.met = node.grown = True
        self._places.update((b.uuid, Place(node, b)) for b in self.pending if b.uuid)
        if line.uuid:
            self._places[line.uuid] = Place(node)
        self.pending, self.stuck, self._waiting = [], 0, {}

    def _leave(self) -> None:
        """Lets go of the lines of a recorded turn that was only met again."""
        left = self.current
        if left is not None and left.commit and not self.is_open(left):
            left.before, left.body, left.grown = [], [], False

    def _anchor_of_prompt(self, line: Line) -> _Anchor:
        if line.uuid and line.is_root:
            return _Anchor(None)
        anchor = self._anchor(line.parent) if line.parent else _Anchor(None, known=False)
        if anchor.known:
            return anchor
        here = self.current if self.current is not None and self.is_open(self.current) else self.head
        return _Anchor(here, copied=anchor.copied)

    def _move_head(self, node: Node, parent: Node | None) -> None:
        """Makes the new turn the head; the turns that it leaves behind become a rewound branch."""
        old = self.head
        if old is not None and old is not parent:
            self.rewound[self._free_name(old, parent)] = old
        self.rewound = {name: tip for name, tip in self.rewound.items() if tip is not parent}
        self.head = node
        if parent is not None and parent.grown:
            self.finished.append(parent)

    def _free_name(self, tip: Node, kept: Node | None) -> str:
        """Named after the first prompt left behind after which no other branch is named yet."""
        names = [ids.rewound_name(self.session, node.key) for node in reversed(left_behind(tip, kept))]
        free = (name for name in names if name not in self.rewound)
        return next(free, ids.rewound_name(self.session, f"{tip.key} again"))

    # Any other line

    def _wait(self, line: Line) -> None:
        self.pending.append(line)
        if line.uuid:
            self._waiting[line.uuid] = line

    def _place(self, line: Line) -> None:
        anchor = self._anchor(line.parent) if line.parent else _Anchor(None, known=False)
        if anchor.compacting and not line.is_work:
            self._wait(line)
            return
        target = anchor.node
        if target is None or anchor.compacting or not self.is_open(target):
            target = self.current
        if target is None:
            self._wait(line)
            return
        if target is self.current:
            target.body += self.pending[self.stuck :]
            for absorbed in self.pending[self.stuck :]:
                self._waiting.pop(absorbed.uuid, None)
                if absorbed.uuid:
                    self._places[absorbed.uuid] = Place(target)
            del self.pending[self.stuck :]
        else:
            self.current, self.stuck = target, len(self.pending)
            self._nodes.setdefault(target.key, target)
        target.body.append(line)
        target.grown = True
        if line.uuid:
            self._places[line.uuid] = Place(target)

    # The chain

    def _anchor(self, uuid: str) -> _Anchor:
        copied: list[Line] = []
        seen: set[str] = set()
        while uuid not in seen and len(seen) < _CHAIN_LIMIT:
            seen.add(uuid)
            line = self._waiting.get(uuid)
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
        """The anchor of a chain that ends, at a line before a prompt or among those that wait for one."""
        if not line.is_boundary:
            return _Anchor(None, copied=copied)
        if place is None:
            return _Anchor(self.current, compacting=True, copied=copied)
        return _Anchor(place.node.parent, copied=copied)


def left_behind(tip: Node, kept: Node | None) -> list[Node]:
    """The turns from `tip` back to where its line and that of `kept` part, newest first."""
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
