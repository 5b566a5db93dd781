"""`sessgit search`: what was said and done, in all conversations, and what they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sessgit.cli import frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import LIMIT, PROJECT, SINCE, argument, option, parse_time
from sessgit.cli.pages import search as page
from sessgit.errors import UsageError
from sessgit.history import search
from sessgit.model.humanize import quote_for_shell

_MOST = 20
_SNIPPET_LENGTH = 160
"""Characters of a snippet in JSON."""


@frame.command("search", needs="conversations", reads=True, excludes={"--all": "--project --session"})
def run(
    here: Invocation,
    words: list[str] = argument("QUERY", "What to look for."),
    everything: bool = option("--all", "Search all projects (the default)."),
    project: Path | None = PROJECT,
    session: str = option("--session ADDRESS", "Only this conversation."),
    without: str = option("--without ADDRESS", "Not this conversation."),
    label: str = option("--label LABEL", "Only conversations with this label."),
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
        raise UsageError("Missing argument QUERY.", "Say what to look for, or name a file with --file.")
    if not words and (tool or place):
        raise UsageError("--tool and --in need a QUERY.", "Say what to look for.")
    branch = left_out = ""
    commits = None
    if file:
        from sessgit.cli import paths_argument

        commits = paths_argument.commits(here, [file])
    if session or without:
        from sessgit.cli import session_argument

        branch = session_argument.target(here, session).branch.name if session else ""
        left_out = session_argument.target(here, without).session if without else ""
    scope = search.SearchScope(
        session=branch,
        without=left_out,
        folder=here.folder(project) if project else "",
        label=label,
        place=place or "",
        tool=tool,
        since=parse_time(since, here.now),
        commits=commits,
    )
    query = " ".join(words)
    length = _SNIPPET_LENGTH if here.json else page.snippet_length(here)
    most = _MOST if limit is None else limit
    with render.progress(here, "Indexing", unit="conversations") as progress:
        if query:
            results = search.search(here.index, query, scope, most, length, progress)
        else:
            results = search.turns_at(here.index, scope, most, length)
    if results.is_empty:
        notes = ["Nothing found."]
    else:
        notes = (
            [f"No match for whole words; found with {quote_for_shell(results.searched)}:"] if results.searched else []
        )
    return Answer(
        lambda: search.results_json(query, results),
        () if results.is_empty else page.full(here, results),
        [f"({results.behind})"] if results.behind else [],
        int(results.is_empty),
        notes,
    )
