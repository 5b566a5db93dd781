"""The rows that a recording adds to the index for the turns that it wrote, from the values that it has in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessgit.agents.base import Agent
from sessgit.agents.values import Node
from sessgit.model.conversation.turn import Cell, Gist
from sessgit.record import commits
from sessgit.record.commits import TurnContent
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.store.index import CachedTurn

_MOST_WAITING = 1 << 20
"""The bytes of bodies that are processed only after the refs have moved; a long transcript has hundreds of times as
many."""
_LONGEST_BODY = 32 << 20
"""A longer body is read again when its cells are needed: copies of it may not fit in memory."""


@dataclass
class IndexUpdates:
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
        entry = store.repo.entry(store.tree(commit), layout.turn_folder(node.number)) if is_last else None
        if entry is None or len(content.stored[layout.BODY]) > _LONGEST_BODY:
            return
        body = bytes(content.stored[layout.BODY]).split(b"\n")[:-1]
        self.cells[commit] = content.agent, entry[0], content.turn.cells, body, node.key
        self.size += len(content.stored[layout.BODY])
        if self.size > _MOST_WAITING:
            self._release_bodies()

    def keep(self, index: Index) -> None:
        """Write the rows to the index, which is up to date with the refs."""
        # Loaded here: the refs have moved, so no user waits.

        index.remember(self.gists)
        self._release_bodies()
        index.store_cells(self.known)

    def _release_bodies(self) -> None:
        """Compute the rows of the bodies, and drop the bodies."""
        from sessgit.history.cells import cached_turn

        self.known |= {commit: cached_turn(*cells) for commit, cells in self.cells.items()}
        self.cells, self.size = {}, 0
