"""`sessgit new`: a conversation without turns, which a person or a program fills."""

from __future__ import annotations

import uuid
from pathlib import Path

from sessgit.api import new_session
from sessgit.cli import frame, operands, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import option
from sessgit.errors import UsageError


@frame.command("new", requires={"--inherit": "--parent"})
def run(
    cli: Invocation,
    title: str = option("--title TEXT", "Its title."),
    parent: str = option("--parent ADDRESS", "Make it a child of this conversation."),
    role: str = option("--role ROLE", "Its role, such as manager."),
    inherit: bool = option("--inherit", "Take over the parent's thesis, claims and tensions."),
    project: Path | None = option("--project DIR", "The project (default: this folder)."),
) -> Answer:
    """Start a conversation without turns.

    Fill it with `sessgit pad`, `sessgit merge --into`, a program, or the client. A child shares no turns with its
    parent, but `sessgit tree` and `sessgit ls` draw it there. A manager, which is a conversation with that role or with
    children, is never archived because of its age.
    """
    above = operands.target(cli, parent, changes=True) if parent else None
    if above is not None and above.turn is not None:
        raise UsageError("a child has a conversation as its parent, not a turn.", "Leave out @ and what follows.")
    state = new_session.create_session(
        cli.context, str(uuid.uuid4()), cli.folder(project), title=title, parent=above.session if above else "",
        role=role, inherits=inherit,
    )  # fmt: skip
    ident = cli.ident(state.id)
    child = f"  child of {cli.ident(above.session)}" if above else ""
    lines = [
        f"{cli.paint('yellow', ident)}  {text.clean(state.title, 100) or '(no title)'}{child}",
        f"Add to its scratchpad: sessgit pad claim TEXT --into {ident}",
    ]
    document = {
        "id": state.id,
        "title": state.title,
        "child_of": above.session if above else None,
        "role": role or None,
    }
    return Answer(document, lines)
