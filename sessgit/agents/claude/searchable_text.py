"""A line of a turn as plain text, by who says it: what can be searched.

What a tool printed in colours is searched as it was read, without the sequences that set them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessgit.agents.claude.cells import display_prompt, message_of
from sessgit.agents.claude.content import text_of
from sessgit.agents.claude.lines import Line, blocks
from sessgit.model import canonical


@dataclass(frozen=True, slots=True)
class Said:
    """One text of a line. `kind` is prompt, answer, thinking, tool or notice; `call` the agent's id of a tool's call
    whose input or output it is, `tool` that tool's name where the line itself tells it."""

    kind: str
    text: str
    call: str = ""
    tool: str = ""


def said(line: Line, number: int) -> Iterator[Said]:
    """The texts of the `number`th line of a turn's body, from 1, in their order; lines of subagents have none."""
    if line.data is None or line.data.get("isSidechain"):
        return
    if line.type == "assistant":
        yield from _answer(line)
    elif line.type == "user":
        yield from _user(line, number)
    elif line.type == "attachment":
        attached = line.data.get("attachment")
        if isinstance(attached, dict) and attached.get("type") == "queued_command":
            kind = "notice" if attached.get("commandMode") == "task-notification" else "prompt"
            yield Said(kind, display_prompt(text_of(attached.get("prompt"))[0]))


def _answer(line: Line) -> Iterator[Said]:
    for block in blocks(line):
        kind = block.get("type")
        if kind in ("text", "thinking") and isinstance(block.get(kind), str):
            yield Said("answer" if kind == "text" else "thinking", block[kind])
        elif kind == "tool_use":
            tool = block.get("name")
            given = "\n".join(_strings(block.get("input")))
            yield Said("tool", given, str(block.get("id")), tool if isinstance(tool, str) else "")


def _user(line: Line, number: int) -> Iterator[Said]:
    results = [block for block in blocks(line) if block.get("type") == "tool_result"]
    for block in results:
        printed = canonical.without_sequences(text_of(block.get("content"))[0])
        yield Said("tool", printed, str(block.get("tool_use_id")))
    if not results:
        text = text_of(message_of(line).get("content"))[0]
        yield Said("prompt" if number == 1 else "notice", display_prompt(text))


def _strings(value: object) -> Iterator[str]:
    """All strings in a JSON value but the keys, in their order."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending += reversed(item.values())
        elif isinstance(item, list):
            pending += reversed(item)
