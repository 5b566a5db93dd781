"""What subagents said and did in a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.history import views
from sessgit.model.conversation.content import Call, Piece
from sessgit.model.conversation.story import Subagent
from sessgit.store.index import Row

if TYPE_CHECKING:
    from sessgit.store.store import Store


def read_subagents(store: Store, row: Row, pieces: Iterable[Piece]) -> Iterator[Subagent]:
    """Yield the subagents of a turn with these pieces, each with the call that started it or went on with it."""
    agent = agents.of_turn(store, row)
    started = _subagent_calls(agent, pieces)
    for file, data in sorted(views.subagent_files(store, row.commit, row.turn).items()):
        name = file.removeprefix("agent-").removesuffix(".jsonl")
        calls = [ordinal for ordinal, result in started if name in result]
        lines = agent.sidecars.own_lines(data)
        said = agent.content.parse_turn(lines)[1] if lines else []
        yield Subagent(name, calls[-1] if calls else 0, tuple(said))


def _subagent_calls(agent: Agent, pieces: Iterable[Piece]) -> list[tuple[int, str]]:
    """Return the ordinals of the calls that start subagents, and their results, which name the subagent."""
    return [
        (piece.ordinal, f"{piece.output}{json.dumps(piece.result)}")
        for piece in pieces
        if isinstance(piece, Call) and agent.cells.kind(piece.tool) == "subagent"
    ]
