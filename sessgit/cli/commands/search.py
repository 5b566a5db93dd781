"""`sessgit search`: what was said and done, in all conversations, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from sessgit import agents
from sessgit.cli import frame, render, text
from sessgit.cli.frame import AGENT, LIMIT, PROJECT, SINCE, Answer, argument, option, parse_time
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.errors import UsageError
from sessgit.history import search
from sessgit.history.search import MetadataHit, SearchHit, SearchResults
from sessgit.model.humanize import quote_for_shell
from sessgit.model.search_query import Snippet
from sessgit.store import layout

_MOST = 20
_SNIPPET_LENGTH = 160
"""Characters of a snippet in JSON."""


@frame.command("search", needs="conversations", reads=True, excludes={"--all": "--project --session"})
def run(
    cli: Invocation,
    words: list[str] = argument("QUERY", "What to look for."),
    everything: bool = option("--all", "Search all projects (the default)."),
    project: Path | None = PROJECT,
    session: str = option("--session ADDRESS", "Only this conversation."),
    without: str = option("--without ADDRESS", "Not this conversation."),
    label: str = option("--label LABEL", "Only conversations with this label."),
    agent: str = AGENT,
    place: Literal["prompts", "answers", "tools"] | None = option("--in", "Only prompts, answers, or tool calls."),
    tool: str = option("--tool NAME", "Only calls of this tool."),
    file: str = option("--file PATH", "Only turns that read or changed PATH, with or without QUERY."),
    since: str = SINCE,
    limit: int | None = LIMIT,
) -> Answer:
    """Search what was said and done.

    All words must occur in the same turn, or in a conversation's name, title, labels, description, scratchpad and id in
    the system that it was imported from. Words match as a whole, in upper or lower case; if nothing matches, also words
    that begin so. begin* finds words with that prefix, '"a phrase"' a phrase, this OR that one of two words, and
    'words -without' excludes a word. Prints the best 20 turns, or N, with their best line; `sessgit show
    ADDRESS` shows one. Exit code 1 if nothing is found.
    """
    if tool and place not in (None, "tools"):
        raise UsageError("--tool searches tool calls", f"Leave out --tool, or --in {place}.")
    if not words and not file:
        raise UsageError("Missing argument QUERY.", "Enter words to search for, or name a file with --file.")
    if not words and (tool or place):
        raise UsageError("--tool and --in need a QUERY.", "Enter words to search for.")
    branch = left_out = ""
    commits = None
    if file or session or without:
        from sessgit.cli import operands  # what catches up with a transcript is not needed else

        commits = operands.commits(cli, [file]) if file else None
        branch = operands.target(cli, session).branch.name if session else ""
        left_out = operands.target(cli, without).session if without else ""
    scope = search.SearchScope(
        session=branch,
        without=left_out,
        folder=cli.folder(project) if project else "",
        label=label,
        agent=agents.check_name(agent),
        place=place or "",
        tool=tool,
        since=parse_time(since, cli.now),
        commits=commits,
    )
    query = " ".join(words)
    length = _SNIPPET_LENGTH if cli.json else _LINES * (cli.width - _INDENT) - 12
    most = _MOST if limit is None else limit
    if query:
        results = search.search(
            cli.index, query, scope, most, length, render.progress(cli, "Indexing", "conversations")
        )
    else:
        results = search.turns_at(cli.index, scope, most, length)
    if results.is_empty:
        notes = ["Nothing found."]
    else:
        notes = (
            [f"No match for whole words; found with {quote_for_shell(results.searched)}:"] if results.searched else []
        )
    return Answer(
        lambda: search.results_json(query, results),
        () if results.is_empty else _result_lines(cli, results),
        [f"({results.behind})"] if results.behind else [],
        int(results.is_empty),
        notes,
    )


_INDENT = 4
_LINES = 2
_TITLE = 12
_COLUMNS = (Column("yellow"), Column(least=_TITLE), Column(), Column("dim", right=True))


def _result_lines(cli: Invocation, results: SearchResults) -> Iterator[str]:
    """Yield the whole page, with how many matches there are at its end."""
    hits: list[MetadataHit | SearchHit] = [*results.conversations, *results.turns]
    rows = [_row(cli, hit) for hit in hits]
    for hit, line in zip(hits, text.table(cli, _COLUMNS, rows), strict=True):
        yield line
        if not isinstance(hit, MetadataHit) or f"  {hit.snippet.text} " not in text.without_colours(line):
            yield from _snippet(cli, hit.snippet)
    yield cli.paint("dim", _footer(results))


def _row(cli: Invocation, hit: MetadataHit | SearchHit) -> tuple[str, ...]:
    name, state = cli.ident(hit.branch.name), hit.branch.state
    if isinstance(hit, MetadataHit):
        return name, text.title(state).ljust(_TITLE), ", ".join(hit.matched), text.ago(cli, state.updated)
    kind = text.clean(hit.tool.rpartition("__")[2] or hit.tool, 16) if hit.kind == "tool" else hit.kind
    if hit.left_behind:
        kind += ", left behind"
    elif layout.is_other_version(hit.branch.name):
        kind += ", another version"
    return f"{name}@{hit.place}", text.title(state).ljust(_TITLE), kind, text.ago(cli, hit.row.time)


def _snippet(cli: Invocation, snippet: Snippet) -> Iterator[str]:
    """Yield the snippet in two lines at most, with the matches in bold."""
    lines = list(_folded(snippet.text, cli.width - _INDENT))
    for number, (start, end) in enumerate(lines[:_LINES], start=1):
        out, at = " " * _INDENT, start
        for match_start, match_end in snippet.matches:
            if match_start < end and match_end > at:
                first, last = max(match_start, at), min(match_end, end)
                out += snippet.text[at:first] + cli.paint("bold", snippet.text[first:last])
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
