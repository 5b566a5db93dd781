"""The texts inside an unfolded tool call, the same in every document for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from sessgit.formats import code, phrases
from sessgit.formats.texts import one_line
from sessgit.model.conversation.content import Call

_SHORT_TEXT = 120


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A text, not yet escaped, with its name and its language, which may be ``""``; a `short` one has no own line."""

    name: str
    text: str
    language: str = ""
    short: bool = False


def call_blocks(call: Call, about: str) -> Iterator[CallBlock]:
    """Yield the call's arguments, its changes and its result, without those that `about` shows already."""
    if isinstance(call.input.get("command"), str):
        yield CallBlock("", call.input["command"], "bash")
    for key, value in call.input.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        if key == "command" or (call.changes and key in call.in_changes) or text in (call.file, about):
            continue
        short = len(text) <= _SHORT_TEXT and "\n" not in text
        language = "" if isinstance(value, str) else "json"
        yield CallBlock(one_line(key, 40), text, code.language_of(call.file) if key == "content" else language, short)
    for change in call.changes:
        yield CallBlock("", "\n".join(change.diff), "diff")
    if call.output.strip() and not (call.changes and call.cell.ok):
        yield CallBlock("result", call.output, _guess_language(call.output))
    if call.images:
        yield CallBlock("images", phrases.images_note(call.images), short=True)


def _guess_language(output: str) -> str:
    """Return the language of a tool's output, if its beginning shows it."""
    if output.startswith("diff --git "):
        return "diff"
    return "json" if output.lstrip()[:1] == "{" else ""
