"""A client in whose form no program writes: every line is the client's own."""

from __future__ import annotations

from pathlib import Path

from sessgit.agents.line import Line
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell
from sessgit.model.program_input import Reason


def give_up(path: Path, state: Session) -> bool:
    """Return that no cell of a program is pending."""
    return False


def call_of(line: Line, key: str, cell: Cell) -> str:
    """Return that the call has no id."""
    return ""


def model_of(line: Line) -> str:
    """Return that no model is known."""
    return ""


def reason(line: Line) -> Reason | None:
    """Return that no program gave a reason."""
    return None
