"""What subagents said and did in a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.model.conversation.content import Call, Piece
from sessgit.model.conversation.story import Subagent
from sessgit.model.line_list import Bytes, file_of_split
from sessgit.store import layout
from sessgit.store.index import Row

if TYPE_CHECKING:
    from sessgit.store.store import Store


def subagent_files(store: Store, commit: str, turn: int) -> dict[str, Bytes]:
    """Return what was recorded of subagents' files with a turn, by the files' names."""
    entry = store.folder(commit, turn).get(layout.SUBAGENTS)
    files = store.objects.files(entry[0]) if entry else {}
    return {
        name: file_of_split(store.objects.lines(oid)) for name, (oid, _) in files.items() if name.endswith(".jsonl")
    }


def read_subagents(store: Store, row: Row, pieces: Iterable[Piece]) -> Iterator[Subagent]:
    """Yield the subagents of a turn with these pieces, each with the call that started it or went on with it."""
    agent = agents.of_turn(store, row)
    started = _subagent_calls(agent, pieces)
    for file, data in sorted(subagent_files(store, row.commit, row.turn).items()):
        name = file.removeprefix("agent-").removesuffix(".jsonl")
        calls = [ordinal for ordinal, result in started if name in result]
        yield Subagent(name, calls[-1] if calls else 0, tuple(agent.sidecars.said(data)))


def _subagent_calls(agent: Agent, pieces: Iterable[Piece]) -> list[tuple[int, str]]:
    """Return the ordinals of the calls that start subagents, and their results, which name the subagent."""
    return [
        (piece.ordinal, f"{piece.output}{json.dumps(piece.result)}")
        for piece in pieces
        if isinstance(piece, Call) and agent.cells.kind(piece.tool) == "subagent"
    ]
