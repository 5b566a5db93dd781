"""`sessgit search`: what was said and done, in all conversations, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sessgit.cli import frame, render
from sessgit.cli.arguments import choices, completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.history.search import SearchScope

_MOST = 20
_LENGTH = 160
"""Characters of a snippet in JSON."""
_JOINS = ("OR", "AND")


@frame.command("search", needs="conversations", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    words: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for.", show_default=False)],
    everything: Annotated[
        bool, typer.Option("--all", help="Search all projects (the default).")
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="Only the project at DIR.", show_default=False),
    ] = None,
    session: Annotated[
        str,
        typer.Option(
            "--session", metavar="ADDRESS", help="Only this conversation.", show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    label: Annotated[
        str, typer.Option("--label", metavar="LABEL", help="Only conversations with this label.", show_default=False)
    ] = "",
    place: Annotated[
        Literal["prompts", "answers", "tools"] | None,
        typer.Option("--in", help="Only prompts, answers, or tool calls.", show_default=False),
    ] = None,
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="Only calls of this tool.", show_default=False)
    ] = "",
    since: options.Since = "",
    limit: options.Limit = None,
) -> Answer:  # fmt: skip
    """Search what was said and done.

    All words must occur in the same turn, or in a conversation's name, title, labels and description. Words match as a
    whole, in upper or lower case. beginn* finds words with that beginning, '"a phrase"' a phrase, this OR that one of
    two words, and 'words -without' excludes a word. Prints the best 20 turns, or N, with their best line; `sessgit show
    ADDRESS` opens one. Exit code 1 if nothing is found.
    """
    from sessgit.cli.pages import search as page
    from sessgit.errors import UsageError
    from sessgit.history import search

    if everything and (project or session):
        raise UsageError("--all cannot be combined with --project or --session.", "Use one of them.")
    if tool and place not in (None, "tools"):
        raise UsageError("--tool searches tool calls", f"Leave out --tool, or --in {place}.")
    where = search.SearchScope(
        session=_branch(here, session) if session else "",
        folder=str(project.absolute()) if project else "",
        label=label,
        place=place or "",
        tool=tool,
        since=choices.since(here, since),
    )
    most = _MOST if limit is None else limit
    length = _LENGTH if here.json else page.room(here)
    with render.progress(here, "Indexing", unit="conversations") as progress:
        results = search.search(here.index, " ".join(words), where, most, length, progress)
    remarks = [f"({results.behind})"] if results.behind else []
    if results.is_empty and not here.json:
        remarks += ["Nothing found.", *_begun(here, words, where)]
    lines = () if results.is_empty else page.full(here, results)
    return Answer(lambda: page.as_json(" ".join(words), results), lines, remarks, int(results.is_empty))


def _begun(here: Invocation, said: list[str], where: SearchScope) -> Iterator[str]:
    """Says of words that were looked for whole how many turns have words that begin so, if any has."""
    from sessgit.cli import text
    from sessgit.history import search
    from sessgit.model import humanize
    from sessgit.model.progress import no_progress

    asked = " ".join(said).split()
    begun = " ".join(word if word in _JOINS or word.startswith("-") else f"{word.rstrip('*')}*" for word in asked)
    if '"' in begun or begun == " ".join(asked):
        return
    found = search.search(here.index, begun, where, 1, _LENGTH, no_progress)
    if not found.is_empty:
        turns = f"{'' if found.exact else 'more than '}{text.counted(found.total, 'turn')}"
        finds = f"finds {text.counted(found.total_called, 'conversation') if not found.total else turns}."
        yield (f"Words match as a whole; {humanize.quote_for_shell(begun)} {finds}")


def _branch(here: Invocation, address: str) -> str:
    from sessgit.cli import session_argument

    return session_argument.target(here, address).branch.name
