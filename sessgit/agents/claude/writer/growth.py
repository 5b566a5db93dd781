"""A session that is here already, and what its source has by now: the same, more of it, or another one.

What a line says is compared, not when it was said or what it used: a source may count the tokens of a turn as a whole,
so that they stand with the last answer, and the last answer may be another one now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sessgit.agents.claude.cells import message_of
from sessgit.agents.claude.lines import ClaudeLine, is_prompt, said, tool_results
from sessgit.agents.claude.writer import marks
from sessgit.agents.claude.writer.program_lines import call_id
from sessgit.agents.line import Line, parse
from sessgit.model import canonical
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import plausible_count

_WORDS = {"words": True}
_STAND_IN, _LATER, _CALL = b'"running":true', b'"result_of"', call_id("")
_KINDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def goes_on(here: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Whether the new lines say what those here do, and perhaps more."""
    return len(new) >= len(here) and all(map(_says_same, here, new))


def grown(here: Sequence[bytes], new: Sequence[bytes]) -> bytes:
    """The lines here, and behind them what the new ones say more, as a transcript."""
    more = [line(raw) for raw in new[len(here) :]]
    excess = dict.fromkeys(_KINDS, 0)
    latest = 0
    for ours, theirs in zip(map(line, here), map(line, new), strict=False):
        if is_prompt(ours):
            excess = dict.fromkeys(_KINDS, 0)
        for kind in _KINDS:
            excess[kind] += _usage(ours, kind) - _usage(theirs, kind)
        latest = max(latest, _moment(ours))
    out = list(here)
    for one in more:
        if is_prompt(one):
            excess = dict.fromkeys(_KINDS, 0)
        latest = max(latest + 1, _moment(one))
        out.append(_later(one, latest, excess))
    return b"".join(raw + b"\n" for raw in out)


def same_prompts(here: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Whether the prompts that both have say the same, whatever was done about them."""
    ours, theirs = ({one.uuid: said(one) for one in map(line, lines) if is_prompt(one)} for lines in (here, new))
    return all(ours[key] == theirs[key] for key in ours.keys() & theirs.keys())


def waiting(here: Sequence[bytes]) -> dict[str, bool]:
    """The cells that had no result when other lines were written behind them, by their ids, and whether each has got
    it since."""
    lines = [line(raw) for raw in here if _STAND_IN in raw or _LATER in raw]
    found = {_cell_of(one): False for one in lines if marks.is_stand_in(one)}
    return found | {mark.result_of: True for mark in map(marks.of, lines) if mark.result_of in found}


def line(raw: bytes) -> Line:
    """A line that stands nowhere."""
    return ClaudeLine(raw, Extent(0, 0), parse(raw))


def _says_same(one: bytes, other: bytes) -> bool:
    return one == other or (_said(line(one)) == _said(line(other)) is not None)


def _said(one: Line) -> tuple[Any, ...] | None:
    if one.data is None or not one.uuid:
        return None
    mark = one.data.get(marks.KEY)
    mark = None if mark == _WORDS else mark  # who said it is known of an answer, and may not be of what came before
    return one.uuid, one.data.get("parentUuid"), one.type, message_of(one).get("content"), mark


def _later(one: Line, at: int, excess: dict[str, int]) -> bytes:
    """The line, so many milliseconds after 1970 at least, without the tokens that are counted already."""
    usage = message_of(one).get("usage")
    taken = {kind: min(_usage(one, kind), excess[kind]) for kind in _KINDS}
    if one.data is None or (at == _moment(one) and not any(taken.values())):
        return one.raw
    data = {**one.data, "timestamp": canonical.rfc3339(at / 1000 + 0.0005)}
    if isinstance(usage, Mapping) and any(taken.values()):
        less = {kind: _usage(one, kind) - number for kind, number in taken.items() if kind in usage}
        data["message"] = {**one.data["message"], "usage": {**usage, **less}}
        for kind, number in taken.items():
            excess[kind] -= number
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _cell_of(one: Line) -> str:
    return str(tool_results(one)[0].get("tool_use_id")).removeprefix(_CALL)


def _usage(one: Line, kind: str) -> int:
    usage = message_of(one).get("usage") if one.type == "assistant" else None
    return plausible_count(usage.get(kind)) if isinstance(usage, dict) else 0


def _moment(one: Line) -> int:
    return round((canonical.seconds(one.text("timestamp")) or 0) * 1000)
