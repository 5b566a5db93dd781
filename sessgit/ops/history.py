"""What is recorded of a session already, as the cutter asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sessgit.agents.claude.cutter import Node, Place
from sessgit.agents.claude.lines import Line
from sessgit.agents.claude.reader import make, no_redaction
from sessgit.model.message import Extent
from sessgit.store import layout
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class _Stored:
    node: Node
    before: bool
    index: int


class Recorded:
    """The turns of the branches `tips`, read as far back as a question needs.

    `find_turn` answers from the index which commits hold the turn of a prompt; without it all branches are walked.
    """

    def __init__(
        self, store: Store, tips: dict[str, str], find_turn: Callable[[str], str | None] | None = None
    ) -> None:
        self._store = store
        self._tips = tips
        self._find_turn = find_turn
        self._nodes: dict[str, Node] = {}
        self._walked = False
        self._uuids: dict[str, _Stored] = {}
        self._unread = self._newest_first()

    def node_at(self, commit: str | None) -> Node | None:
        """The turn that a commit holds, or the nearest one before it."""
        while commit is not None:
            message = self._store.message(commit)
            number, key = message.number("Turn"), message.get("Prompt")
            if number and key:
                return self._nodes.get(key) or self._make(commit, number, key)
            commit = self._first_parent(commit)
        return None

    def turn(self, key: str) -> Node | None:
        known = self._nodes.get(key)
        if known is None and self._find_turn is not None:
            commit = self._find_turn(key)
            return self.node_at(commit) if commit else None
        if known is None and not self._walked:
            self._walk_all()
            known = self._nodes.get(key)
        return known

    def find(self, uuid: str) -> Place | None:
        while uuid not in self._uuids:
            node = next(self._unread, None)
            if node is None:
                return None
            self._read(node)
        stored = self._uuids[uuid]
        if not stored.before:
            return Place(stored.node)
        return Place(stored.node, self.lines(stored.node)[0][stored.index])

    def lines(self, node: Node) -> tuple[list[Line], list[Line]]:
        """The lines of a recorded turn, before and body apart; they do not say where they stood in the file."""
        stored = self._store.lines(node.commit, node.number)
        made = [make(raw, Extent(0, 0), no_redaction) for raw in stored.before + stored.body]
        return made[: len(stored.before)], made[len(stored.before) :]

    def _make(self, commit: str, number: int, key: str) -> Node:
        first = commit
        while (parent := self._first_parent(first)) is not None and self._store.message(parent).get("Prompt") == key:
            first = parent
        before = self._first_parent(first)
        node = Node(key, number, lambda: self.node_at(before), commit=commit)
        self._nodes[key] = node
        return node

    def _first_parent(self, commit: str) -> str | None:
        parents = self._store.commit(commit).parents
        return parents[0] if parents else None

    def _walk_all(self) -> None:
        self._walked = True
        for tip in self._tips.values():
            node = self.node_at(tip)
            while node is not None:
                node = node.parent

    def _newest_first(self) -> Iterator[Node]:
        """Each recorded turn once: the head's from its tip backwards, then those of rewound branches."""
        seen: set[str] = set()
        for branch in sorted(self._tips, key=layout.is_rewound):
            node = self.node_at(self._tips[branch])
            while node is not None and node.key not in seen:
                seen.add(node.key)
                yield node
                node = node.parent

    def _read(self, node: Node) -> None:
        lines = self._store.lines(node.commit, node.number)
        for before, part in ((False, lines.body), (True, lines.before)):
            for index, raw in enumerate(part):
                if b'"uuid"' in raw and (uuid := make(raw, Extent(0, 0), no_redaction).uuid):
                    self._uuids.setdefault(uuid, _Stored(node, before, index))
