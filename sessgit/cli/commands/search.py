"""`sessgit search`: what was said and done, in all conversations, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import LIMIT, PROJECT, SINCE, argument, option, parse_time
from sessgit.cli.pages import search as page
from sessgit.errors import UsageError
from sessgit.history import search
from sessgit.history.search import SearchScope
from sessgit.model import humanize
from sessgit.model.progress import no_progress

_MOST = 20
_SNIPPET_LENGTH = 160
"""Characters of a snippet in JSON."""
_JOINS = ("OR", "AND")


@frame.command("search", needs="conversations", reads=True, excludes={"--all": "--project --session"})
def run(
    here: Invocation,
    words: list[str] = argument("QUERY", "What to look for.", required=True),
    everything: bool = option("--all", "Search all projects (the default)."),
    project: Path | None = PROJECT,
    session: str = option("--session ADDRESS", "Only this conversation."),
    label: str = option("--label LABEL", "Only conversations with this label."),
    place: Literal["prompts", "answers", "tools"] | None = option("--in", "Only prompts, answers, or tool calls."),
    tool: str = option("--tool NAME", "Only calls of this tool."),
    since: str = SINCE,
    limit: int | None = LIMIT,
) -> Answer:
    """Search what was said and done.

    All words must occur in the same turn, or in a conversation's name, title, labels and description. Words match as a
    whole, in upper or lower case. begin* finds words with that prefix, '"a phrase"' a phrase, this OR that one of two
    words, and 'words -without' excludes a word. Prints the best 20 turns, or N, with their best line; `sessgit show
    ADDRESS` shows one. Exit code 1 if nothing is found.
    """
    if tool and place not in (None, "tools"):
        raise UsageError("--tool searches tool calls", f"Leave out --tool, or --in {place}.")
    branch = ""
    if session:
        from sessgit.cli import session_argument

        branch = session_argument.target(here, session).branch.name
    scope = search.SearchScope(
        session=branch,
        folder=here.folder(project) if project else "",
        label=label,
        place=place or "",
        tool=tool,
        since=parse_time(since, here.now),
    )
    query = " ".join(words)
    length = _SNIPPET_LENGTH if here.json else page.snippet_length(here)
    with render.progress(here, "Indexing", unit="conversations") as progress:
        results = search.search(here.index, query, scope, _MOST if limit is None else limit, length, progress)
    return Answer(
        lambda: search.results_json(query, results),
        () if results.is_empty else page.full(here, results),
        [f"({results.behind})"] if results.behind else [],
        int(results.is_empty),
        _nothing_found(here, query, scope) if results.is_empty else (),
    )


def _nothing_found(here: Invocation, query: str, scope: SearchScope) -> Iterator[str]:
    """Say so, and how many turns have words that begin like those of the query, if any has."""
    yield "Nothing found."
    words = query.split()
    prefixes = " ".join(word if word in _JOINS or word.startswith("-") else f"{word.rstrip('*')}*" for word in words)
    if '"' in prefixes or prefixes == " ".join(words):
        return
    results = search.search(here.index, prefixes, scope, 1, _SNIPPET_LENGTH, no_progress)
    if not results.is_empty:
        turns = f"{'' if results.exact else 'more than '}{text.counted(results.total, 'turn')}"
        count = turns if results.total else text.counted(results.total_conversations, "conversation")
        yield f"Words match as a whole; {humanize.quote_for_shell(prefixes)} finds {count}."
