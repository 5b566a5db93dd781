from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sessgit.agents.line import Line
from sessgit.agents.values import ToolKind, Use
from sessgit.model import ids
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import Cell, Tokens, Turn


def kind(tool: str) -> ToolKind | None:
    return None


def describe(body: Sequence[Line]) -> Turn:
    key = replace(body[0], extent=Extent(0, 0)).prompt_id
    replies = {number: line for number, line in enumerate(body, start=1) if line.type == "reply"}
    cells = tuple(Cell(ids.cell_id(key, str(number)), "llm_call", "tiny-1", (number,), ok=True) for number in replies)
    return Turn(
        key, body[0].message_text, next((line.message_text for line in reversed(body) if line.is_work), ""),
        body[0].time,
        max(line.time for line in body), "tiny-1" if cells else "", cells,
        tokens={"tiny-1": Tokens(1, 1)} if cells else {}, messages=len(body), interrupted=not body[-1].is_work,
    )  # fmt: skip


def label(lines: Sequence[Line]) -> list[tuple[str, str]]:
    return [(line.type or "line", "") for line in lines]


def uses(body: Sequence[bytes], cells: Sequence[Cell], key: str) -> dict[int, Use]:
    return {}
