"""What `sessgit` says without a command: how the recording goes, and the commands to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessgit.check.status import Status
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import status as status_page
from sessgit.cli.render import Paint
from sessgit.history.resolve import ResolvedTarget

COMMANDS = (
    ("sessgit log", "the turns of this conversation; sessgit ls lists all of this project"),
    ("sessgit search WORDS", "search what was said in all conversations"),
    ("sessgit fork --at N", "continue from turn N in a new conversation"),
    ("sessgit diff A B", "compare two conversations"),
    ("sessgit restore ID", "restore the client's file, even if the client deleted it"),
)
_ALL = "sessgit --help lists all commands."


def full(here: Invocation, found: Status, session: ResolvedTarget | None) -> Iterator[str]:
    """The page; where nothing is recorded yet, the two commands that change that."""
    if found.contents is None:
        yield from status_page.recording(here, found)
        older = f": {found.older:,} {'is' if found.older == 1 else 'are'} here" if found.older else ""
        commands: Sequence[tuple[str, str]] = (
            ("sessgit install", "record every conversation with Claude Code from now on"),
            ("sessgit import", f"import the conversations that you had before{older}"),
        )
    else:
        yield from status_page.full(here, found, session)
        commands = COMMANDS
    yield ""
    yield from _table(here, commands)
    yield ""
    yield Paint(here.colour)("dim", _ALL)


def _table(here: Invocation, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    paint = Paint(here.colour)
    wide = max(text.width(command) for command, _ in rows)
    for command, what in rows:
        head, *more = text.wrapped(what, here.width - wide - 4)
        yield f"  {paint('bold', command.ljust(wide))}  {head}"
        yield from (f"{' ' * (wide + 4)}{line}" for line in more)
