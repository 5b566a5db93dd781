"""`sessgit edit`: what a person says of a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sessgit.cli import frame, render, session_argument, text
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch.edit import EditChanges
    from sessgit.model.conversation.session import Session


@frame.command("edit")
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    address: options.Address = "",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The new name.", show_default=False)
    ] = None,
    description: Annotated[
        str | None,
        typer.Option("--description", metavar="TEXT", help='A description; "" removes it.', show_default=False),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="[+|-]LABEL", help="Add a label, or remove it; may be repeated."),
    ] = None,
    stage: Annotated[
        Literal["gathering", "shaping", "critiquing", "synthesized", "none"] | None,
        typer.Option("--stage", help="Its stage.", show_default=False),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            "--confidence", metavar="0..1", help="How sure its result is, 0 to 1, or none.", show_default=False
        ),
    ] = None,
) -> Answer:
    """Edit a conversation's description and labels.

    Also its name and its confidence. Each change is a commit. Without options, prints the current values.
    """
    from sessgit.branch import edit as edits

    changes = _changes(name, description, label or [], stage, confidence)
    found = session_argument.target(here, address, changes=changes != edits.EditChanges())
    session = edits.addressed_session(found)
    head, commit = here.index.branch(session), ""
    after = head.state if head else found.state
    if changes != edits.EditChanges():
        done = edits.edit_session(here.store, here.index, session, changes, here.now)
        after, commit = done.after, done.commit
        if done.secrets:
            render.tell(f"{text.counted(done.secrets, 'secret')} redacted.")
        for absent in done.absent:
            render.tell(f"It had no label {absent}.")
        if not commit:
            render.tell("Nothing changed.")
    return Answer(lambda: _json(after) | {"commit": commit or None}, _page(here, after))


def _changes(
    name: str | None, description: str | None, label: list[str], stage: str | None, confidence: str | None
) -> EditChanges:
    from sessgit.branch import edit as edits
    from sessgit.errors import UsageError
    from sessgit.model.address import check_name

    if name is not None and not name.strip():
        raise UsageError("the name is empty.", "`sessgit rename --clear` removes the name.")
    add, remove = edits.parse_labels(label)
    return edits.EditChanges(
        name=None if name is None else check_name(name),
        description=None if description is None else edits.parse_description(description),
        add=add,
        remove=remove,
        stage=None if stage is None else edits.parse_stage(stage),
        confidence=None if confidence is None else edits.parse_confidence(confidence),
    )


def _json(state: Session) -> dict[str, object]:
    return {
        "id": state.id, "name": state.name, "title": state.title, "description": state.description,
        "labels": sorted(state.labels), "stage": state.stage, "confidence": state.confidence,
    }  # fmt: skip


def _page(here: Invocation, state: Session) -> Iterator[str]:
    from sessgit.history.resolve import session_title

    paint = render.Paint(here.colour)
    ident = here.ident(state.id)
    yield f"{paint('yellow', ident)}  {text.cut(text.clean(session_title(state)), here.width - text.width(ident) - 2)}"
    said = [
        ("Title", text.fold([text.clean(state.title)], here.width - 13, "") if state.name and state.title else []),
        ("Description", text.wrapped(state.description, here.width - 13) if state.description else []),
        ("Labels", text.fold([text.clean(label) for label in sorted(state.labels)], here.width - 13, ", ")),
        ("Stage", [text.clean(state.stage)] if state.stage else []),
        ("Confidence", [] if state.confidence is None else [f"{state.confidence:g}"]),
    ]
    if not any(lines for what, lines in said if what != "Title") and not state.name:
        yield "Nothing is set yet: sessgit edit --help"
    for what, lines in said:
        for number, line in enumerate(lines):
            yield f"{'' if number else what:<13}{line}"
