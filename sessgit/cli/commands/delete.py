"""`sessgit delete`: conversations that a person wants to be rid of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, text
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch.delete import DeletionPlan
    from sessgit.store.journal import Operation


@frame.command("delete", needs="conversations")
def run(
    here: Invocation,
    addresses: options.Addresses = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> Answer:
    """Delete conversations.

    Also deletes their tags, the turns left behind by rewinds, and other versions. Forks keep the turns they share. The
    client's own files stay, but are not recorded again unless `sessgit import --id` names them. `sessgit undo` brings
    the conversations back until `sessgit gc --prune` makes the deletion final.
    """
    from sessgit.branch import delete as deletes
    from sessgit.branch import edit
    from sessgit.cli import session_argument
    from sessgit.errors import UsageError

    if not addresses:
        raise UsageError("no conversations selected.", "`sessgit delete ADDRESS`.")
    sessions = [edit.addressed_session(session_argument.recorded(here, each)) for each in addresses]
    if not yes:
        render.check_can_ask(here, "Pass --yes.")
    going = deletes.plan_deletion(here.index, sessions, here.config)
    if not yes:
        render.remarks(_question(here, going))
        if not render.ask("Delete?" if len(going) == 1 else f"Delete all {len(going)}?"):
            render.tell("Nothing was deleted.")
            raise typer.Exit(1)
    done = deletes.delete_sessions(here.store, here.index, going, here.now)
    return Answer(lambda: _json(going, done), _told(here, going))


def _question(here: Invocation, going: Sequence[DeletionPlan]) -> Iterator[str]:
    """What goes, and what stays."""
    from sessgit.cli.pages import moved_sessions

    for one in going:
        yield from moved_sessions.lines(here, [one.branch], {})
        for part in _of(here, one):
            yield from (f"  {line}" for line in text.wrapped(part, here.width - 2))
        if one.transcript is not None:  # a path is never broken
            yield "  not deleted, the client's transcript:"
            yield f"  {here.shown(str(one.transcript))}"


def _of(here: Invocation, one: DeletionPlan) -> Iterator[str]:
    if one.rewound:
        yield f"{text.counted(one.rewound, 'branch', 'branches')} left behind by rewinds"
    if one.elsewhere:
        yield f"{text.counted(one.elsewhere, 'branch', 'branches')} of other versions"
    if one.tags:
        yield f"tags: {', '.join(text.clean(name) for name in one.tags)}"
    if one.is_lost:
        yield "only this store has it: the client deleted its transcript"
    if one.forks:
        yield f"forks that keep the shared turns: {', '.join(map(here.ident, one.forks))}"
    for into, turns in one.merged:
        were, stay = ("was", "stays") if turns == 1 else ("were", "stay")
        yield f"{text.counted(turns, 'turn')} of it {were} merged into {here.ident(into)} and {stay} there"


def _told(here: Invocation, going: Sequence[DeletionPlan]) -> Iterator[str]:
    for one in going:
        yield f"{render.Paint(here.colour)('yellow', here.ident(one.session))}  deleted"
        if one.transcript is not None:
            yield "The client's transcript stays, but is not recorded again:"
            yield f"  {here.shown(str(one.transcript))}"
    yield "Undo: sessgit undo, until sessgit gc --prune"


def _json(going: Sequence[DeletionPlan], done: Operation) -> dict[str, object]:
    return {
        "deleted": [
            {
                "id": one.session,
                "turns": one.branch.state.turns,
                "rewound": one.rewound,
                "other_versions": one.elsewhere,
                "tags": list(one.tags),
                "forks": list(one.forks),
                "merged": [{"session_id": into, "turns": turns} for into, turns in one.merged],
                "transcript": str(one.transcript) if one.transcript else None,
            }
            for one in going
        ],
        "operation_id": done.id,
    }
