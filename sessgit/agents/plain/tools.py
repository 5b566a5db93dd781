"""A client of whose tools none can be run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessgit.agents.values import FileEdit, ToolKind
from sessgit.model.conversation.content import Call


def kind(tool: str) -> ToolKind | None:
    """Return that the tool cannot be run again."""
    return None


def path(arguments: Mapping[str, Any]) -> str:
    """Return that no file is known to be named."""
    return ""


def edits(lines: Sequence[bytes]) -> Iterator[FileEdit]:
    """Yield nothing."""
    yield from ()


def was_refused(call: Call) -> bool:
    """Return that no call is known to have been refused."""
    return False
