"""What subagents did in a turn, which the turn's own counts leave out.

The client keeps their lines in files of their own; its first versions wrote them into the transcript, marked as side
chains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sessgit.agents.claude import cells
from sessgit.agents.claude.lines import parsed
from sessgit.agents.claude.sidecars.sidecar_files import first_fields
from sessgit.agents.line import Line
from sessgit.model.conversation.turn import Gist
from sessgit.model.line_list import Bytes, file_lines, split_lines

_INLINE = ("1.", "2.0.")


def may_be_inline(version: str) -> bool:
    """Whether a client of this version, or one before it, may have written subagents' lines into the transcript."""
    return not version or version.startswith(_INLINE)


def goes_on(piece: Bytes) -> bool:
    """Whether a piece of a subagent's file has another one before it, or may have: a first line that is too long to be
    read does not say."""
    first = first_fields(piece)
    return first is not None and first.get("parentUuid") is not None


def messages(piece: Bytes) -> set[str]:
    """The ids of the model's messages in a piece of a subagent's file."""
    return {cells.message_key(line, 0) for line in _lines(piece) if line.type == "assistant"}


def gist(body: Sequence[Line], pieces: Iterable[Bytes], counted: Collection[str] = ()) -> Gist:
    """What the side chains in a turn's body and the pieces of subagents' files hold, each message counted once.

    `counted` are the ids of messages that are counted elsewhere.
    """
    lines = [line for line in body if line.data and line.data.get("isSidechain")]
    lines += [line for piece in pieces for line in _lines(piece) if cells.message_key(line, 0) not in counted]
    own = [replace(line, data={**(line.data or {}), "isSidechain": False}) for line in lines]
    return cells.describe(own).gist if own else Gist()


def _lines(piece: Bytes) -> list[Line]:
    return parsed(file_lines(split_lines(piece)))
