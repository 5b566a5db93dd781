"""`sessgit new`, `edit`, `rename`, `tag`: what the user says of a conversation and of its turns."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from sessgit.branch import edit as edits
from sessgit.branch.edit import EditChanges
from sessgit.cli import frame, operands, text
from sessgit.cli.frame import ADDRESS, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.errors import AmbiguousError, NotFoundError, UsageError
from sessgit.history import resolve
from sessgit.history.resolve import Tag
from sessgit.model import canonical
from sessgit.model.conversation.session import Session
from sessgit.model.humanize import quote_for_shell
from sessgit.model.ids import check_name

_LABEL_WIDTH = 13
_NARROWEST = 16
"""Columns that the title of a turn needs at least."""


@frame.command("new", requires={"--inherit": "--parent"})
def new(
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
    from sessgit.api import new_session

    above, child = "", ""
    if parent:
        target = operands.target(cli, parent, changes=True)
        if target.turn is not None:
            raise UsageError("a child has a conversation as its parent, not a turn.", "Leave out @ and what follows.")
        above, child = target.session, f"  child of {cli.ident(target.session)}"
    state = new_session.create_session(
        cli.context, str(uuid.uuid4()), cli.folder(project), title=title, parent=above, role=role, inherits=inherit
    )
    ident = cli.ident(state.id)
    lines = [
        f"{cli.paint('yellow', ident)}  {text.clean(state.title, 100) or '(no title)'}{child}",
        f"Add to its scratchpad: sessgit pad claim TEXT --into {ident}",
    ]
    document = {"id": state.id, "title": state.title, "child_of": above or None, "role": role or None}
    return Answer(document, lines)


@frame.command("edit")
def edit(
    cli: Invocation,
    address: str = ADDRESS,
    name: str | None = option("--name NAME", "The new name."),
    description: str | None = option("--description TEXT", 'A description; "" removes it.'),
    label: list[str] = option("--label [+|-]LABEL", "Add a label, or remove it; may be repeated."),
    stage: Literal["gathering", "shaping", "critiquing", "synthesized", "none"] | None = option(
        "--stage", "Its stage."
    ),
    confidence: str | None = option("--confidence 0..1", "How sure its result is, 0 to 1, or none."),
) -> Answer:
    """Edit a conversation's description and labels.

    Also its name, stage and confidence. Each change is a commit. Without options, prints the current values.
    """
    if name is not None and not name.strip():
        raise UsageError("the name is empty.", "`sessgit rename --clear` removes the name.")
    add, remove = edits.parse_labels(label)
    changes = EditChanges(
        name=None if name is None else check_name(name),
        description=None if description is None else edits.parse_description(description),
        add=add,
        remove=remove,
        stage=None if stage is None else edits.parse_stage(stage),
        confidence=None if confidence is None else edits.parse_confidence(confidence),
    )
    is_change = changes != EditChanges()
    target = operands.target(cli, address, changes=is_change)
    session = edits.addressed_session(target)
    head, commit, remarks = cli.index.branch(session), "", list[str]()
    state = head.state if head else target.state
    if is_change:
        result = edits.edit_session(cli.context, session, changes)
        state, commit = result.after, result.commit
        remarks += _redacted(result.secrets)
        remarks += [f"It had no label {absent}." for absent in result.absent]
        remarks += [] if commit else ["Nothing changed."]
    document = {
        **frame.attributes(state, "id", "name", "title", "description", "stage", "confidence"),
        "labels": sorted(state.labels),
        "commit": commit or None,
    }
    return Answer(document, _values(cli, state), remarks)


def _values(cli: Invocation, state: Session) -> Iterator[str]:
    ident = cli.ident(state.id)
    yield f"{cli.paint('yellow', ident)}  {text.cut(text.title(state), cli.width - text.width(ident) - 2)}"
    values = {
        "Title": [text.clean(state.title)] if state.name else [],
        "Description": [state.description],
        "Labels": map(text.label, sorted(state.labels)),
        "Stage": [text.clean(state.stage)],
        "Confidence": [] if state.confidence is None else [f"{state.confidence:g}"],
    }
    lines = [
        line
        for label, parts in values.items()
        for line in text.field(cli, label, parts, least=_LABEL_WIDTH, between=", ")
    ]
    if not lines and not state.name:
        lines = ["Nothing is set yet: sessgit edit --help"]
    yield from lines


def _redacted(secrets: int) -> list[str]:
    return [f"{text.counted(secrets, 'secret')} redacted."] if secrets else []


@frame.command("rename")
def rename(
    cli: Invocation,
    address: str | None = argument("ADDRESS", "The conversation (default: the current session)."),
    name: str | None = argument("NAME", "The new name, unique in its project."),
    clear: bool = option("--clear", "Remove the name."),
) -> Answer:
    """Give a conversation a name.

    You can use the name as an ADDRESS. The client's own title is kept; --clear shows it again.
    """
    if clear and name is not None:
        raise UsageError("--clear takes no NAME.", f"`sessgit rename --clear {quote_for_shell(address or '')}`")
    if not clear:
        if name is None:
            address, name = None, address
            _check_is_name(cli, name or "")
        if not name or not name.strip():
            hint = "`sessgit rename NAME` names the current conversation, `sessgit rename ADDRESS NAME` any other."
            if address:
                word = quote_for_shell(address)
                hint = f"`sessgit rename {word} NAME` names it, `sessgit rename --clear {word}` removes its name."
            raise UsageError("the new name is missing.", hint)
    changes = EditChanges(name=check_name(name) if name else "")
    try:
        target = operands.target(cli, address or "", changes=True)
    except AmbiguousError:
        raise
    except NotFoundError as error:
        if not address or not cli.has_store or not resolve.branches_by_name(cli.index, name or "", cli.where):
            raise
        swapped = f"sessgit rename {quote_for_shell(name or '')} {quote_for_shell(address)}"
        raise NotFoundError(str(error), f"The conversation comes first: `{swapped}`") from None
    result = edits.edit_session(cli.context, edits.addressed_session(target), changes)
    note = f"was: {text.title(result.before, 100)}"
    if not result.commit:
        note = "already its name" if result.after.name else "it has no name"
    document = {
        "id": target.session,
        "name": result.after.name,
        "was": result.before.name,
        "commit": result.commit or None,
    }
    ident = cli.ident(target.session)
    room = cli.width - text.width(ident) - 2
    facts = [text.cut(text.clean(result.after.display_title), room), f"({note})"]
    lines = text.hanging_indent(cli.paint("yellow", ident) + "  ", text.fold(facts, room, "  "))
    return Answer(document, lines, _redacted(result.secrets))


def _check_is_name(cli: Invocation, name: str) -> None:
    """Raise UsageError if the only word is the id of a conversation, or the beginning of one."""
    word = name.strip()
    if not cli.has_store or len(word) < resolve.SHORTEST_PREFIX:
        return
    outlines = cli.index.branch_outlines()
    if any(resolve.abbreviates(one.name, word) or one.agent_id == word for one in outlines):
        hint = f"`sessgit rename {quote_for_shell(name)} NAME`"
        raise UsageError(f"“{name}” is a conversation, but its new name is missing.", hint)


@frame.command("tag", reads=True, excludes={"--delete": "NAME --list", "--list": "NAME"})
def tag(
    cli: Invocation,
    name: str | None = argument("NAME", "The tag, a single word."),
    address: str = ADDRESS,
    delete: str = option("-d, --delete NAME", "Delete a tag.", complete="tags"),
    force: bool = option("-f, --force", "Move an existing tag."),
    listed: bool = option("-l, --list", "List the tags (the default without NAME)."),
) -> Answer:
    """Tag a turn, or list the tags.

    Without ADDRESS, tags the last turn of the current session. A tag is a git tag in the store and can be used as an
    ADDRESS; it stays at its turn when the conversation goes on.
    """
    if delete:
        deleted = edits.delete_tag(cli.context, delete)
        return _changed(cli, deleted, f"was: {edits.tag_address(deleted)}", is_deleted=True)
    if name is None:
        known = resolve.list_tags(cli.index)
        return Answer(lambda: {"tags": [_tag_json(cli, each) for each in known]}, _tag_table(cli, known))
    target = operands.whole_turn(cli, address, f"tag {name}", changes=True)
    result = edits.tag_turn(cli.context, name, target, cli.where, force=force)
    before = f"was: {edits.tag_address(result.before)}" if result.before else ""
    return _changed(cli, result.tag, before if result.changed else "already there")


def _changed(cli: Invocation, changed: Tag, note: str, *, is_deleted: bool = False) -> Answer:
    parts = [text.clean(changed.name), *([] if is_deleted else [_tagged(cli, changed)]), f"({note})" if note else ""]
    parts = list(filter(None, parts))
    room = cli.width - text.width("  ".join(parts)) - 2
    title, _ = _turn(cli, changed)
    if title and not is_deleted and room >= _NARROWEST:
        parts.insert(2, text.cut(title, room))
    document = _tag_json(cli, changed) | {"deleted": is_deleted}
    return Answer(document, text.fold(parts, cli.width, "  ", "  "))


def _turn(cli: Invocation, tagged: Tag) -> tuple[str, float]:
    """Return the title of the tagged turn, and its time."""
    row = cli.index.turn(tagged.branch, tagged.turn) if tagged.turn else None
    return (text.clean(cli.index.title(row)), row.time) if row else ("", 0.0)


def _tag_json(cli: Invocation, tagged: Tag) -> dict[str, object]:
    row = cli.index.turn(tagged.branch, tagged.turn) if tagged.turn else None
    return {
        **frame.attributes(tagged, "name", "commit"),
        "branch": tagged.branch or None,
        "turn": tagged.turn if tagged.branch else None,
        "title": cli.index.title(row) if row else None,
        "time": canonical.rfc3339(row.time) if row else None,
    }


def _tagged(cli: Invocation, tagged: Tag) -> str:
    return f"{cli.ident(tagged.branch)}@{tagged.turn}" if tagged.branch else tagged.commit[:12]


def _tag_table(cli: Invocation, known: list[Tag]) -> Iterator[str]:
    if not known:
        yield "No tags yet: sessgit tag NAME [ADDRESS]"
        return
    turns = [_turn(cli, each) for each in known]
    clock = text.Clock(cli.now, [time for _, time in turns])
    rows = [
        (
            text.clean(each.name),
            _tagged(cli, each),
            title or ("" if each.turn else "(the start)" if each.branch else "(no conversation here)"),
            clock(time),
        )
        for each, (title, time) in zip(known, turns, strict=True)
    ]
    columns = (
        Column(least=_NARROWEST), Column("yellow"), Column(least=_NARROWEST // 2, optional=True),
        Column("dim", optional=True),
    )  # fmt: skip
    yield from text.table(cli, columns, rows)
