"""`sessgit tag`: points that a person wants to find again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, session_argument, text
from sessgit.cli.arguments import completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch.tag import Tag
    from sessgit.store.sqlite.rows import Row

_NARROWEST = 16
"""Columns that the title of a turn needs at least."""


@frame.command("tag", reads=True)
def run(
    here: Invocation,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The tag, a single word.", show_default=False)
    ] = None,
    address: options.Address = "",
    delete: Annotated[
        str,
        typer.Option(
            "-d",
            "--delete",
            metavar="NAME",
            help="Delete a tag.",
            show_default=False,
            autocompletion=completion.tags,
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", "-f", help="Move an existing tag.")] = False,
    listed: Annotated[bool, typer.Option("--list", "-l", help="List the tags (the default without NAME).")] = False,
) -> Answer:
    """Tag a turn, or list the tags.

    Without ADDRESS, tags the last turn of the current session. A tag is a git tag in the store and can be used as an
    ADDRESS; it stays at its turn when the conversation goes on.
    """
    from sessgit.branch import tag as tags
    from sessgit.errors import UsageError

    if sum((name is not None, bool(delete), listed)) > 1:
        raise UsageError("NAME, -d NAME and --list cannot be combined.", "Use one of them.")
    if delete:
        gone = tags.delete_tag(here.store, here.index, delete, here.now)
        return _changed(here, gone, f"was: {tags.tag_address(gone)}", deleted=True)
    if name is None:
        found = tags.list_tags(here.index)
        return Answer(lambda: {"tags": [_json(here, tag, _row(here, tag)) for tag in found]}, _table(here, found))
    target = session_argument.target(here, address, changes=True)
    if target.cell:
        raise UsageError("only a whole turn can be tagged.", f"`sessgit tag {name} {here.ident(target.branch.name)}@N`")
    done = tags.tag_turn(here.store, here.index, name, target, here.where, here.now, force=force)
    note = "already there" if not done.changed else f"was: {tags.tag_address(done.before)}" if done.before else ""
    return _changed(here, done.tag, note)


def _changed(here: Invocation, tag: Tag, note: str, *, deleted: bool = False) -> Answer:
    """The tag as it is now, in a line; of one that is gone where it was."""
    row = _row(here, tag)
    parts = [text.clean(tag.name), *([] if deleted else [_address(here, tag)]), *([f"({note})"] if note else [])]
    line = "  ".join(parts)
    room = here.width - text.width(line) - 2
    if not deleted and row is not None and room >= _NARROWEST:
        parts.insert(2, text.cut(text.clean(here.index.title(row)), room))
    return Answer(lambda: _json(here, tag, row) | {"deleted": deleted}, text.fold(parts, here.width, "  ", "  "))


def _row(here: Invocation, tag: Tag) -> Row | None:
    return here.index.turn(tag.branch, tag.turn) if tag.turn else None


def _json(here: Invocation, tag: Tag, row: Row | None) -> dict[str, object]:
    from sessgit.model import canonical

    return {
        "name": tag.name, "branch": tag.branch or None, "turn": tag.turn if tag.branch else None,
        "commit": tag.commit, "title": here.index.title(row) if row else None,
        "time": canonical.rfc3339(row.time) if row else None,
    }  # fmt: skip


def _address(here: Invocation, tag: Tag) -> str:
    return f"{here.ident(tag.branch)}@{tag.turn}" if tag.branch else tag.commit[:12]


def _table(here: Invocation, tags: list[Tag]) -> Iterator[str]:
    """A line a tag: its name, its address, what was asked there, and when; the title takes what the others leave."""
    if not tags:
        yield "No tags yet: sessgit tag NAME [ADDRESS]"
        return
    paint = render.Paint(here.colour)
    rows = [(tag, _row(here, tag)) for tag in tags]
    clock = text.clock(here.now, [row.time for _, row in rows if row])
    cells = [
        (
            text.clean(tag.name),
            _address(here, tag),
            _title(here, tag, row),
            text.at(clock, row.time) if row else "",
        )
        for tag, row in rows
    ]
    widths = [max(text.width(cell[n]) for cell in cells) for n in range(4)]
    names = min(widths[0], max(_NARROWEST, here.width - widths[1] - widths[3] - _NARROWEST - 6))
    room = here.width - names - widths[1] - widths[3] - 6
    for name, address, title, when in cells:
        shown = f"{text.fit(name, names)}  {paint('yellow', text.fit(address, widths[1]))}"
        if room >= _NARROWEST // 2:
            shown += f"  {text.fit(title, min(room, widths[2]))}  {paint('dim', when)}"
        yield shown


def _title(here: Invocation, tag: Tag, row: Row | None) -> str:
    if row is not None:
        return text.clean(here.index.title(row))
    return "(the start)" if tag.branch else "(no conversation here)"
