"""What the index remembers of the turns that a recording wrote: all of it is at hand then."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessgit.agents.claude.cutter import Node
from sessgit.model.turn import Gist
from sessgit.ops.cells import turns
from sessgit.ops.recording import commits
from sessgit.ops.recording.commits import Content
from sessgit.store import layout
from sessgit.store.cells import remembered
from sessgit.store.cells.remembered import Known
from sessgit.store.index import Index
from sessgit.store.store import Store


@dataclass
class Noted:
    """The gists and the cells of turns by their commits."""

    gists: dict[str, Gist] = field(default_factory=dict)
    cells: dict[str, Known] = field(default_factory=dict)

    def take(self, store: Store, commit: str, node: Node, content: Content, *, is_last: bool) -> None:
        """Notes a turn that was just written, before its node names the commit; of one that is written cell by cell
        the cells as of the last commit: all of them each time would be more and more work."""
        self.gists[commit] = commits.gist(content, whole=not node.commit)
        entry = store.repo.entry(store.tree(commit), layout.turn(node.number)) if is_last else None
        if entry is not None:
            body = content.stored[layout.BODY].split(b"\n")[:-1]
            self.cells[commit] = turns.known(entry[0], content.told.cells, body, node.key)

    def keep(self, index: Index) -> None:
        """Tells the index, which is level with the refs."""
        index.remember(self.gists)
        remembered.remember(index, self.cells)
