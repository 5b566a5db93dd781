"""What lies beside a turn's lines, on its way into the store, and what of it is there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sessgit.agents.line import Line
from sessgit.agents.reader import Redact
from sessgit.agents.values import Node
from sessgit.model.line_list import Bytes, file_lines
from sessgit.record.source import TranscriptSource
from sessgit.store import layout
from sessgit.store.store import Store

Entry = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TurnSidecars:
    """The files beside the lines of a turn by path in its folder: what is new of subagents' files, and the entries of
    large tool results, which are written one by one, since all of them may be more than there is room for."""

    agents: dict[str, Bytes] = field(default_factory=dict)
    results: dict[str, Entry] = field(default_factory=dict)


def write_results(store: Store, source: TranscriptSource, lines: Sequence[Line], redact: Redact) -> dict[str, Entry]:
    """The large tool results that the lines of a turn name, written."""
    found = source.agent.sidecars.results(source.path, source.agent_id, lines, redact)
    return {path: (store.repo.write_blob(data), False) for path, data in found}


def write_live_files(store: Store, source: TranscriptSource, slug: str, redact: Redact) -> Entry | None:
    """Plan, todos and tasks as they are now, written; None where there are none."""
    found = source.agent.sidecars.live(source.config, source.agent_id, slug, redact)
    entries: dict[str, Entry | None] = {path: (store.repo.write_blob(data), False) for path, data in found}
    return (store.repo.edit_tree(None, entries), True) if entries else None


def recorded_subagent_lines(store: Store, node: Node) -> dict[str, int]:
    """How many lines of each subagent's file are recorded with the turn."""
    entry = store.folder(node.commit, node.number).get(layout.SUBAGENTS)
    files = store.repo.tree(entry[0]) if entry else {}
    return {name: len(file_lines(store.repo.lines(oid, 0))) for name, (oid, _) in files.items()}
