"""What the index remembers of the turns that a recording wrote: all of it is at hand then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.agents.values import Node
from sessgit.model.conversation.turn import Cell, Gist
from sessgit.record import commits
from sessgit.record.commits import TurnContent
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.store.sqlite.cell_cache import CachedTurn

_MOST_WAITING = 1 << 20
"""So many bytes of bodies wait until nobody waits any more; a long transcript has hundreds of times as many."""
_LONGEST_BODY = 32 << 20
"""A longer body is read again by whoever asks for its cells: copies of it may be more than there is room."""

WordSink = Callable[[str, str, Sequence[Line]], None]
"""Called with the commit that a turn ends with, the id of its body's blob, and the lines of the body."""


@dataclass
class IndexUpdates:
    """The gists of turns by their commits; and of each the folder's tree, the cells, the body and the prompt's key.
    Whoever asked for it is told of each turn."""

    word_sink: WordSink | None = None
    gists: dict[str, Gist] = field(default_factory=dict)
    cells: dict[str, tuple[Agent, str, Sequence[Cell], list[bytes], str]] = field(default_factory=dict)
    known: dict[str, CachedTurn] = field(default_factory=dict)
    """What follows from them, once they are many bytes."""
    size: int = 0

    def take(self, store: Store, commit: str, node: Node, content: TurnContent, *, is_last: bool) -> None:
        """Notes a turn that was just written, before its node names the commit; of one that is written cell by cell
        the cells as of the last commit: all of them each time would be more and more work."""
        self.gists[commit] = commits.turn_gist(content, whole=not node.commit)
        entry = store.repo.entry(store.tree(commit), layout.turn_folder(node.number)) if is_last else None
        if entry is None or len(content.stored[layout.BODY]) > _LONGEST_BODY:
            return
        if self.word_sink is not None:
            self.word_sink(commit, store.repo.tree(entry[0])[layout.BODY][0], content.body)
        body = bytes(content.stored[layout.BODY]).split(b"\n")[:-1]
        self.cells[commit] = content.agent, entry[0], content.told.cells, body, node.key
        self.size += len(content.stored[layout.BODY])
        if self.size > _MOST_WAITING:
            self._release_bodies()

    def keep(self, index: Index) -> None:
        """Tells the index, which is level with the refs."""
        # Loaded here: nobody waits any more once the refs have moved.
        from sessgit.store.sqlite import cell_cache

        index.remember(self.gists)
        self._release_bodies()
        cell_cache.store_turns(index, self.known)

    def _release_bodies(self) -> None:
        """Lets go of the bodies."""
        from sessgit.history.cells import turns

        self.known |= {commit: turns.cached_turn(*told) for commit, told in self.cells.items()}
        self.cells, self.size = {}, 0
