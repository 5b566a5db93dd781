"""What `sessgit` says without a command: how the recording goes, and the commands to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessgit.check.status import Status
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import status as status_page
from sessgit.cli.render import Paint
from sessgit.history.resolve import Target

COMMANDS = (
    ("sessgit log", "the turns of this conversation; sessgit ls shows all of this project"),
    ("sessgit search WORDS", "find what was said, in every conversation"),
    ("sessgit fork --at N", "a new conversation that begins with the first N turns"),
    ("sessgit diff A B", "what two conversations have in common, and what each did on its own"),
    ("sessgit restore ID", "the client's file back, byte for byte, even if it has deleted it"),
)
_ALL = "sessgit --help shows all commands."


def full(here: Invocation, found: Status, session: Target | None) -> Iterator[str]:
    """The page; where nothing is recorded yet, the two commands that change that."""
    if found.contents is None:
        yield from status_page.recording(here, found)
        older = f": {found.older:,} {'is' if found.older == 1 else 'are'} here" if found.older else ""
        commands: Sequence[tuple[str, str]] = (
            ("sessgit install", "record every conversation with Claude Code from now on"),
            ("sessgit import", f"bring in the conversations that you had before{older}"),
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
