"""What a search found: two or three lines a turn, the address first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.resolve import session_title
from sessgit.history.search import MetadataHit, SearchHit, SearchResults
from sessgit.model import canonical
from sessgit.model.search_query import Snippet
from sessgit.store import layout

_INDENT = 4
_LINES = 2
_ELSEWHERE = "another version"


def room(here: Invocation) -> int:
    """How many characters of a snippet are shown."""
    return _LINES * (here.width - _INDENT) - 12


def full(here: Invocation, results: SearchResults) -> Iterator[str]:
    """The whole page, with how many there are at its end."""
    paint = Paint(here.colour)
    called = [_called_cells(here, one) for one in results.called]
    rows = [*called, *(_cells(here, result) for result in results.found)]
    widths = [max((text.width(row[n]) for row in rows), default=0) for n in range(4)]
    room = max(12, min(widths[1], here.width - 6 - widths[0] - widths[2] - widths[3]))
    every: list[MetadataHit | SearchHit] = [*results.called, *results.found]
    for result, (address, name, kind, ago) in zip(every, rows, strict=True):
        line = f"{paint('yellow', text.fit(address, widths[0]))}  {text.fit(name, room)}  {text.fit(kind, widths[2])}"
        yield f"{line}  {paint('dim', ago.rjust(widths[3]))}"
        if not isinstance(result, MetadataHit) or not _is_shown(result, room):
            yield from _snippet(paint, result.snippet, here.width - _INDENT)
    yield paint("dim", _footer(results))


def as_json(query: str, results: SearchResults) -> dict[str, Any]:
    """Return what `search --json` prints."""
    return {
        "query": query,
        "total": results.total,
        "exact": results.exact and not results.behind,
        "hits": [_hit(result) for result in results.found],
        "total_conversations": results.total_called,
        "conversations": [_conversation(one) for one in results.called],
    }


def _conversation(one: MetadataHit) -> dict[str, Any]:
    state = one.branch.state
    return {
        "id": one.branch.name,
        "updated": state.updated or None,
        "project": state.project,
        "title": session_title(state),
        "matched": list(one.matched),
        "snippet": one.snippet.text,
        "matches": [list(span) for span in one.snippet.matches],
    }


def _hit(result: SearchHit) -> dict[str, Any]:
    return {
        "address": f"{result.branch.name}@{result.place}",
        "session_id": layout.session_of(result.branch.name),
        "turn": result.row.turn,
        "cell": result.cell or None,
        "line": result.line,
        "time": canonical.rfc3339(result.row.time),
        "project": result.branch.state.project,
        "title": session_title(result.branch.state),
        "kind": result.kind,
        "tool": result.tool or None,
        "left_behind": result.left_behind,
        "snippet": result.snippet.text,
        "matches": [list(span) for span in result.snippet.matches],
    }


def _cells(here: Invocation, result: SearchHit) -> tuple[str, str, str, str]:
    kind = text.clean(result.tool.rpartition("__")[2] or result.tool, 16) if result.kind == "tool" else result.kind
    is_other = layout.is_other_version(result.branch.name)
    return (
        f"{here.ident(result.branch.name)}@{result.place}",
        text.clean(session_title(result.branch.state), 200),
        f"{kind}, left behind" if result.left_behind else f"{kind}, {_ELSEWHERE}" if is_other else kind,
        text.ago(result.row.time, here.now),
    )


def _called_cells(here: Invocation, one: MetadataHit) -> tuple[str, str, str, str]:
    state = one.branch.state
    ago = text.ago(canonical.seconds(state.updated), here.now)
    return here.ident(one.branch.name), text.clean(session_title(state), 200), ", ".join(one.matched), ago


def _is_shown(one: MetadataHit, columns: int) -> bool:
    """Whether the line above shows the whole text that holds the words."""
    shown = text.clean(session_title(one.branch.state), 200)
    return one.snippet.text == shown and text.width(shown) <= columns


def _snippet(paint: Paint, snippet: Snippet, columns: int) -> Iterator[str]:
    """The snippet in two lines at most, what was found in bold."""
    lines = list(_folded(snippet.text, columns))
    for number, (start, end) in enumerate(lines[:_LINES], start=1):
        out, at = " " * _INDENT, start
        for a, b in snippet.matches:
            if a < end and b > at:
                first, behind = max(a, at), min(b, end)
                out += snippet.text[at:first] + paint("bold", snippet.text[first:behind])
                at = behind
        yield out + snippet.text[at:end] + ("…" if number == _LINES < len(lines) else "")


def _folded(line: str, columns: int) -> Iterator[tuple[int, int]]:
    """Where each part of a line that fits begins and ends, parted at spaces where there are any."""
    start = 0
    while text.width(line[start:]) > columns:
        end = start + max(1, len(text.cut(line[start:], columns).removesuffix("…")))
        space = line.rfind(" ", start + columns // 3, end + 1)
        yield start, space if space > 0 else end
        start = space + 1 if space > 0 else end
    if start < len(line):
        yield start, len(line)


def _footer(results: SearchResults) -> str:
    parts = [_some(len(results.called), text.counted(results.total_called, "conversation"), results.total_called)]
    shown, total = len(results.found), text.counted(results.total, "turn")
    if results.exact:
        parts.append(_some(shown, total, results.total))
    else:
        parts.append(f"the newest {shown} of more than {total}")
    return f"{', '.join(filter(None, parts))}."


def _some(shown: int, total: str, count: int) -> str:
    if not count:
        return ""
    return total if shown == count else f"{shown} of {total}"
