"""Lines in the making: what is known of each while a chain is mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sessgit.agents.claude.lines import ClaudeLine, blocks
from sessgit.agents.claude.writer.transcript import compact
from sessgit.agents.line import Line
from sessgit.model import canonical
from sessgit.model.conversation.message import Extent

NOWHERE = Extent(0, 0)


@dataclass(eq=False, slots=True)
class Item:
    """A line in the making; `parent` is where it will hang, ``""`` at a beginning."""

    turn: int
    place: int
    raw: bytes
    data: dict[str, Any]
    uuid: str = ""
    parent: str = ""
    changed: bool = False
    out: bool = False

    @property
    def line(self) -> Line:
        """The line as it was read, at no place."""
        return ClaudeLine(self.raw, NOWHERE, self.data)

    @property
    def is_chained(self) -> bool:
        """Whether other lines may hang on it."""
        return bool(self.uuid) and not self.data.get("isSidechain")

    @property
    def written(self) -> bytes:
        """Its bytes, byte for byte the old ones where nothing was changed."""
        if not self.changed:
            return self.raw
        parts = {"uuid": self.uuid, "parentUuid": self.parent or None} if self.uuid else {}
        return compact(self.data | parts)


def objects(raw: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The lines that stand on one: objects that only a whole line can be, what is torn between them passed over. In the
    place of bytes that are no UTF-8 stands U+FFFD."""
    text = raw.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = text.find('{"')
    while at >= 0:
        try:
            data, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find('{"', at + 1)
            continue
        if isinstance(data, dict) and isinstance(data.get("type"), str) and ("uuid" in data or "sessionId" in data):
            yield text[at:end].encode(), data
            at = text.find('{"', end)
        else:
            at = text.find('{"', at + 1)


def cycle(by_uuid: dict[str, Item]) -> list[Item]:
    """The items of one cycle of parents, or none."""
    done: set[str] = set()
    for start in by_uuid:
        path: dict[str, None] = {}
        at = start
        while at in by_uuid and at not in done and at not in path:
            path[at] = None
            at = by_uuid[at].parent
        if at in path:
            names = list(path)
            return [by_uuid[name] for name in names[names.index(at) :]]
        done.update(path)
    return []


def said(item: Item) -> tuple[Any, ...]:
    """What tells two lines of one uuid apart."""
    return item.line.type, item.data.get("message"), item.data.get("attachment"), item.data.get("subtype")


def calls(item: Item) -> list[str]:
    """The ids of the calls that the line makes."""
    found = (block.get("id") for block in blocks(item.line) if block.get("type") == "tool_use")
    return [name for name in found if isinstance(name, str) and name]


def results(item: Item) -> list[str]:
    """The ids of the calls that the line has results of."""
    if item.line.type != "user" or not item.is_chained:
        return []
    found = (block.get("tool_use_id") for block in blocks(item.line) if block.get("type") == "tool_result")
    return [name for name in found if isinstance(name, str)]


def tool(item: Item, call: str) -> str:
    """The tool that a call of the line runs, on one line; `tool` where it does not say."""
    named = next((block.get("name") for block in blocks(item.line) if block.get("id") == call), None)
    return canonical.one_line(named, 40) if isinstance(named, str) and named else "tool"


def message_id(item: Item) -> str:
    """The id of the model's message that the line is a part of, or ``""``."""
    message = item.data.get("message")
    found = message.get("id") if isinstance(message, dict) and item.line.type == "assistant" else None
    return found if isinstance(found, str) else ""
