"""The files of a turn's folder, from its lines."""

from __future__ import annotations

from collections.abc import Sequence

from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.model import canonical, long_strings, stored_fields
from sessgit.model.conversation.turn import Turn
from sessgit.model.line_list import Bytes, file_of_lines
from sessgit.store import layout


def files(
    agent: Agent, before: Sequence[Line], body: Sequence[Line], turn: Turn, cut: int = long_strings.RULES_VERSION
) -> dict[str, Bytes]:
    """Return the folder's files by path: a function of the turn's lines and of the version of the rules by which its
    session is cut."""
    lines = [*before, *body]
    labels = list[tuple[str, str]]()

    def label(index: int, _: str) -> tuple[str, str]:
        if not labels:  # few turns have strings that are cut out
            labels.extend(agent.cells.label(lines))
        return labels[index]

    valid = {index for index, line in enumerate(lines) if line.data is not None}
    stored, long = long_strings.cut_long_strings([line.raw for line in lines], label, cut, valid)
    out = {layout.BODY: file_of_lines(stored[len(before) :])}
    if before:
        out[layout.BEFORE] = file_of_lines(stored[: len(before)])
    if turn.cells:
        out[layout.CELLS] = canonical.join_lines(canonical.compact(stored_fields.to_json(cell)) for cell in turn.cells)
    out.update((f"{layout.TEXTS}/{name}", text) for name, text in long.items())
    return out
