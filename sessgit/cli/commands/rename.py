"""`sessgit rename`: what a person calls a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, session_argument, text
from sessgit.cli.arguments import completion
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.errors import UsageError
    from sessgit.history.resolve import ResolvedTarget


@frame.command("rename")
def run(
    here: Invocation,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="ADDRESS",
            help="The conversation (default: the current session).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The new name, unique in its project.", show_default=False)
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the name.")] = False,
) -> Answer:
    """Give a conversation a name.

    You can use the name as an ADDRESS. The client's own title is kept; --clear shows it again.
    """
    from sessgit.branch import edit as edits
    from sessgit.errors import UsageError
    from sessgit.history.resolve import session_title
    from sessgit.model import humanize
    from sessgit.model.address import check_name

    if clear and name is not None:
        hint = f"`sessgit rename --clear {humanize.quote_for_shell(address or '')}`"
        raise UsageError("--clear takes no NAME.", hint)
    is_current = name is None and not clear
    if is_current:
        address, name = None, address
    if not clear and not (name or "").strip():
        raise _nameless(address)
    if is_current:
        _check_is_name(here, name or "")
    changes = edits.EditChanges(name=check_name(name) if name else "")
    found = _target(here, address or "", name or "")
    done = edits.edit_session(here.store, here.index, edits.addressed_session(found), changes, here.now)
    remarks = [f"{text.counted(done.secrets, 'secret')} redacted."] if done.secrets else []
    value = {"id": found.session, "name": done.after.name, "was": done.before.name, "commit": done.commit or None}
    paint = render.Paint(here.colour)
    ident = here.ident(found.session)
    note = f"was: {text.clean(session_title(done.before), 100)}"
    if not done.commit:
        note = "already its name" if done.after.name else "it has no name"
    room = here.width - text.width(ident) - 2
    called = text.cut(text.clean(session_title(done.after)), room)
    line = text.fold([called, f"({note})"], room, "  ")
    lines = (f"{paint('yellow', ident) if not n else ' ' * len(ident)}  {s}" for n, s in enumerate(line))
    return Answer(lambda: value, lines, remarks)


def _nameless(address: str | None) -> UsageError:
    from sessgit.errors import UsageError
    from sessgit.model import humanize

    hint = "`sessgit rename NAME` names the current conversation, `sessgit rename ADDRESS NAME` any other."
    if address:
        it = humanize.quote_for_shell(address)
        hint = f"`sessgit rename {it} NAME` names it, `sessgit rename --clear {it}` removes its name."
    return UsageError("the new name is missing.", hint)


def _check_is_name(here: Invocation, name: str) -> None:
    """Raises UsageError where the only word is the id of a conversation, or the beginning of one."""
    from sessgit.errors import UsageError
    from sessgit.history import resolve
    from sessgit.model import humanize

    word = name.strip()
    if not here.has_store or len(word) < resolve.SHORTEST_PREFIX:
        return
    if any(resolve.abbreviates(branch, word) or agent_id == word for branch, agent_id, *_ in here.index.names()):
        raise UsageError(
            f"“{name}” is a conversation, but its new name is missing.",
            f"`sessgit rename {humanize.quote_for_shell(name)} NAME`",
        )


def _target(here: Invocation, address: str, name: str) -> ResolvedTarget:
    """The conversation; the error for an unknown one says so where the name is that of a conversation."""
    from sessgit.errors import AmbiguousError, NotFoundError
    from sessgit.history import resolve
    from sessgit.model import humanize

    try:
        return session_argument.target(here, address, changes=True)
    except AmbiguousError:
        raise
    except NotFoundError as error:
        if not address or not here.has_store or not resolve.branches_by_name(here.index, name, here.where):
            raise
        swapped = f"sessgit rename {humanize.quote_for_shell(name)} {humanize.quote_for_shell(address)}"
        raise NotFoundError(str(error), f"The conversation comes first: `{swapped}`") from None
