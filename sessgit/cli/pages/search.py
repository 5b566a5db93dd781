"""What a search found: two or three lines a turn, the address first."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.cli import blocks, text
from sessgit.cli.blocks import Column
from sessgit.cli.invocation import Invocation
from sessgit.history.search import MetadataHit, SearchHit, SearchResults
from sessgit.model.search_query import Snippet
from sessgit.store import layout

_INDENT = 4
_LINES = 2
_TITLE = 12
_COLUMNS = (Column("yellow"), Column(), Column(), Column("dim", right=True))


def snippet_length(here: Invocation) -> int:
    """Return how many characters of a snippet are shown."""
    return _LINES * (here.width - _INDENT) - 12


def full(here: Invocation, results: SearchResults) -> Iterator[str]:
    """Yield the whole page, with how many matches there are at its end."""
    hits: list[MetadataHit | SearchHit] = [*results.conversations, *results.turns]
    rows = [_row(here, hit) for hit in hits]
    for hit, line in zip(hits, blocks.table(here, _COLUMNS, rows, [(1, _TITLE)]), strict=True):
        yield line
        if not isinstance(hit, MetadataHit) or f"  {hit.snippet.text} " not in text.without_colours(line):
            yield from _snippet(here, hit.snippet)
    yield here.paint("dim", _footer(results))


def _row(here: Invocation, hit: MetadataHit | SearchHit) -> tuple[str, ...]:
    name, state = here.ident(hit.branch.name), hit.branch.state
    if isinstance(hit, MetadataHit):
        return name, blocks.title(state).ljust(_TITLE), ", ".join(hit.matched), blocks.ago(here, state.updated)
    kind = text.clean(hit.tool.rpartition("__")[2] or hit.tool, 16) if hit.kind == "tool" else hit.kind
    if hit.left_behind:
        kind += ", left behind"
    elif layout.is_other_version(hit.branch.name):
        kind += ", another version"
    return f"{name}@{hit.place}", blocks.title(state).ljust(_TITLE), kind, text.ago(hit.row.time, here.now)


def _snippet(here: Invocation, snippet: Snippet) -> Iterator[str]:
    """Yield the snippet in two lines at most, with the matches in bold."""
    lines = list(_folded(snippet.text, here.width - _INDENT))
    for number, (start, end) in enumerate(lines[:_LINES], start=1):
        out, at = " " * _INDENT, start
        for match_start, match_end in snippet.matches:
            if match_start < end and match_end > at:
                first, last = max(match_start, at), min(match_end, end)
                out += snippet.text[at:first] + here.paint("bold", snippet.text[first:last])
                at = last
        yield out + snippet.text[at:end] + ("…" if number == _LINES < len(lines) else "")


def _folded(line: str, columns: int) -> Iterator[tuple[int, int]]:
    """Yield where each part of the line that fits begins and ends; parts end at spaces if possible."""
    start = 0
    while text.width(line[start:]) > columns:
        end = start + max(1, len(text.cut(line[start:], columns).removesuffix("…")))
        space = line.rfind(" ", start + columns // 3, end + 1)
        yield start, space if space > 0 else end
        start = space + 1 if space > 0 else end
    if start < len(line):
        yield start, len(line)


def _footer(results: SearchResults) -> str:
    shown, total = len(results.turns), text.counted(results.total, "turn")
    turns = _shown_of(shown, results.total, "turn") if results.exact else f"the newest {shown} of more than {total}"
    conversations = _shown_of(len(results.conversations), results.total_conversations, "conversation")
    return f"{', '.join(filter(None, [conversations, turns]))}."


def _shown_of(shown: int, total: int, noun: str) -> str:
    if not total:
        return ""
    return text.counted(total, noun) if shown == total else f"{shown} of {text.counted(total, noun)}"
