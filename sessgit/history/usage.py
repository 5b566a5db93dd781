"""What was used in each turn of the store: out of the index, or read from the turn's folder where it does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.errors import SessgitError
from sessgit.model.conversation.turn import Gist
from sessgit.model.line_list import Bytes, file_of_split
from sessgit.model.progress import Progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Outline, Row

if TYPE_CHECKING:
    from sessgit.store.store import Store

_GRAFT_EVENT = "\nEvent: graft\n"
_BATCH_SIZE = 500
"""So many turns are read before what they hold is remembered: an interruption loses no more."""


class TurnUsage(NamedTuple):
    """A turn as a session held it, and what was used in it; of its subagents too."""

    session: str
    row: Row
    gist: Gist


def all_turn_usage(index: Index, outlines: Mapping[str, Outline], progress: Progress) -> Iterator[TurnUsage]:
    """The turns of the store, those with bytes of their own in two sessions for each of these.

    A turn is held by the session that its commit was made for, or by one that has it where that session is gone. What
    a merge brought from elsewhere was used there.
    """
    reader = _GistReader(index, outlines)
    found = [(row, gist) for row, gist in index.every_turn() if _GRAFT_EVENT not in row.text]
    unknown = [(row, gist) for row, gist in found if gist is None or gist.subagents is None]
    read = reader.read(unknown, progress) if unknown else {}
    for row, gist in found:
        yield TurnUsage(_session_of_row(row, outlines), row, read.get(row.commit) or gist or Gist())
    yield from reader.grown_in_forks()


def _session_of_row(row: Row, outlines: Mapping[str, Outline]) -> str:
    named = row.text.rpartition("\nSession: ")[2].partition("\n")[0]
    return named if named in outlines else layout.session_of(row.branch)


class _GistReader:
    def __init__(self, index: Index, outlines: Mapping[str, Outline]) -> None:
        self.index, self.outlines = index, outlines
        self.version = cache(self._version)

    def read(self, unknown: list[tuple[Row, Gist | None]], progress: Progress) -> dict[str, Gist]:
        """What is used in the turns, by their last commits; the index remembers it from now on."""
        read: dict[str, Gist] = {}
        new: dict[str, Gist] = {}
        for done, (row, gist) in enumerate(unknown):
            progress(done, len(unknown))
            try:
                whole = self.index.gists([row.commit]).get(row.commit) if gist else None
                read[row.commit] = new[row.commit] = self._gist(row, row.commit, whole)
            except SessgitError:  # a damaged turn does not stop the count of all others
                read[row.commit] = gist or _gist_from_trailers(row)
            if len(new) == _BATCH_SIZE:
                self.index.remember(new)
                new = {}
        self.index.remember(new)
        return read

    def grown_in_forks(self) -> Iterator[TurnUsage]:
        """The last turn that each fork of the agent's shares, where the fork's own file holds it with other bytes.

        The turn's commit is the one of the session that was left: that of the fork tells of no turn.
        """
        for name in (outline.name for outline in self.outlines.values() if outline.parent):
            branch = self.index.branch(name)
            origin = branch.state.origin if branch else None
            row = self.index.turn(name, origin.turn) if origin and not origin.prefix else None
            if branch is None or origin is None or row is None or _session_of_row(row, self.outlines) == name:
                continue
            store, folder = self.index.open_store(), layout.turn_folder(row.turn)
            try:
                if len({store.repo.entry(store.tree(commit), folder) for commit in (branch.tip, row.commit)}) > 1:
                    yield TurnUsage(name, row, self._gist(row, branch.tip, None))
            except SessgitError:
                continue  # what is damaged adds nothing that could be told

    def _gist(self, row: Row, commit: str, known: Gist | None) -> Gist:
        """What the turn holds as of a commit, its subagents included; all but those where that is known."""
        # Not loaded where all is known.

        store = self.index.open_store()
        agent = agents.of_turn(store, row)
        body: list[Line] = []
        if known is None or agent.sidecars.may_be_inline(self.version(_session_of_row(row, self.outlines))):
            body = agent.lines.parsed(store.lines(commit, row.turn).body)
        own = known or (agent.cells.describe(body).gist if body else _gist_from_trailers(row))
        files = _subagent_files(store, commit, row.turn)
        counted = {
            message
            for name, piece in files.items()
            if agent.sidecars.goes_on(piece)
            for message in agent.sidecars.messages(_piece_before(store, commit, row.turn, name))
        }
        return replace(own, subagents=agent.sidecars.gist(body, files.values(), counted))

    def _version(self, session: str) -> str:
        branch = self.index.branch(session)
        return branch.state.agent_version if branch else ""


def _subagent_files(store: Store, commit: str, turn: int) -> dict[str, Bytes]:
    entry = store.folder(commit, turn).get(layout.SUBAGENTS)
    files = store.repo.files(entry[0]) if entry else {}
    return {name: file_of_split(store.repo.lines(oid)) for name, (oid, _) in files.items() if name.endswith(".jsonl")}


def _piece_before(store: Store, commit: str, turn: int, name: str) -> Bytes:
    """The piece of a subagent's file that was recorded with the last turn before this one which has one."""
    earlier = (_subagent_files(store, commit, number) for number in range(turn - 1, 0, -1))
    return next((files[name] for files in earlier if name in files), b"")


def _gist_from_trailers(row: Row) -> Gist:
    model = row.message.get("Model")
    return Gist(tokens={model: row.tokens} if model else {}, tools=row.message.tools)
