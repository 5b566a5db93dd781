"""Sessions that a program holds: what it says on lines where the client's form has no place for it."""

from __future__ import annotations

from sessgit.agents.claude.cells import message_of
from sessgit.agents.claude.lines import blocks
from sessgit.agents.claude.writer import marks
from sessgit.agents.claude.writer.growth import goes_on, grown, same_prompts, waiting
from sessgit.agents.claude.writer.program_lines import GONE, SYNTHETIC, Chain, call_id
from sessgit.agents.claude.writer.transcript_end import give_up
from sessgit.agents.claude.writer.transcript_end import of as end
from sessgit.agents.line import Line
from sessgit.model import ids
from sessgit.model.conversation.turn import Cell
from sessgit.model.program_input import Reason

__all__ = [
    "GONE", "call_id", "call_of", "chain", "end", "give_up", "goes_on", "grown", "model_of", "reason", "same_prompts",
    "waiting",
]  # fmt: skip


def chain(agent_id: str, project: str) -> Chain:
    """Writes the lines of a session from its beginning on."""
    return Chain(agent_id, {"cwd": project} if project else {})


def call_of(line: Line, key: str, cell: Cell) -> str:
    """The client's id for the call on a line that is the cell of the turn `key`, or ``""``."""
    names = (str(block["id"]) for block in blocks(line) if isinstance(block.get("id"), str))
    return next((name for name in names if ids.cell_id(key, name) == cell.id), "")


def model_of(line: Line) -> str:
    """The model that wrote the line, or ``""`` where none did."""
    name = message_of(line).get("model") if line.type == "assistant" else None
    return name if isinstance(name, str) and name != SYNTHETIC else ""


def reason(line: Line) -> Reason | None:
    """The reason that a line says, if a program said one there."""
    return marks.of(line).reason if line.type == "assistant" else None
