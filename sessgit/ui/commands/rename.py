"""`sessgit rename`: what a person calls a conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.ui import context, named, render, text
from sessgit.ui.arguments import options


def run(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="What to call it; unique in a project.", show_default=False)
    ] = None,
    address: options.Address = "",
    clear: Annotated[bool, typer.Option("--clear", help="Take the name away; give no NAME.")] = False,
    as_json: options.Json = False,
) -> None:
    """Give a conversation a name.

    The name can stand in every ADDRESS. The client's own title is kept, and shown again once the name is taken away.
    """
    from sessgit.errors import UsageError
    from sessgit.model.address import check_name
    from sessgit.ops import edit as edits
    from sessgit.ops.finding.resolve import title

    if clear and name is not None:
        if address:
            raise UsageError("--clear takes the name away, it needs no new one.", f"sessgit rename --clear {address}")
        address, name = name, None
    if not clear and not (name or "").strip():
        raise UsageError("a name is needed.", "sessgit rename NAME gives one, sessgit rename --clear takes it away.")
    changes = edits.Changes(name=check_name(name) if name else "")
    here = context.read()
    found = named.target(here, address, changes=True)
    done = edits.edit(here.store, here.index, edits.session(found), changes, here.now)
    if done.secrets:
        render.tell(f"{text.counted(done.secrets, 'secret')} replaced in what is stored.")
    if as_json:
        value = {"id": found.session, "name": done.after.name, "was": done.before.name, "commit": done.commit or None}
        render.document("rename/v1", value)
        return
    paint = render.Paint(here.colour)
    ident = here.ident(found.session)
    note = f"was: {text.clean(title(done.before), 100)}"
    if not done.commit:
        note = "that is its name already" if done.after.name else "it has no name"
    room = here.width - text.width(ident) - 2
    called = text.cut(text.clean(title(done.after)), room)
    line = text.fold([called, f"({note})"], room, "  ")
    render.lines(here, (f"{paint('yellow', ident) if not n else ' ' * len(ident)}  {s}" for n, s in enumerate(line)))
