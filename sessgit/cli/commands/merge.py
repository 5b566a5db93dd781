"""`sessgit merge`, `sessgit pick`: turns of other conversations brought into this one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sessgit.cli import frame, session_argument, text
from sessgit.cli.arguments import completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch.merging.merge import MergeContext, MergeResult, NewSession
    from sessgit.branch.merging.plan import MergeRequest, PickPlan
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.model.merge_decisions import Choice

_SETTABLE = ("description", "stage", "confidence")


@frame.command("merge", reads=True)
def merge(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    theirs: Annotated[
        str,
        typer.Argument(
            metavar="THEIRS",
            help="The conversation to merge: SESSION[@TURN], up to TURN.",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ],
    into: options.Into = "",
    mode: Annotated[
        Literal["summary", "graft", "pick"] | None,
        typer.Option("--mode", help="Append one summary turn, all turns, or some.", show_default=False),
    ] = None,
    turns: Annotated[str, typer.Option("--turns", metavar="4,6-8", help="The turns to pick.", show_default=False)] = "",
    with_command: Annotated[
        str,
        typer.Option("--with", metavar="COMMAND", help="Pipe the summary through COMMAND.", show_default=False),
    ] = "",
    ours_wins: Annotated[bool, typer.Option("--ours", help="Resolve conflicts with our value.")] = False,
    theirs_wins: Annotated[bool, typer.Option("--theirs", help="Resolve conflicts with their value.")] = False,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set the merged value; may be repeated.")
    ] = None,
    new: options.New = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")] = False,
) -> Answer:
    """Merge another conversation into this one.

    --mode summary, the default, appends one turn: what was asked and answered there since the fork, the files, the
    cost. It needs no model; --with pipes it through a command, as in --with "claude -p 'Shorten this'". --mode graft
    replays all their turns after ours, --mode pick some of them. If ours has no new turns since the fork, the merge is
    a fast-forward: all their turns are appended.

    The turns are appended to the client's file, which no client may have open; --new creates a new conversation
    instead. Labels and scratchpads of both are combined; a field that both changed is a conflict.
    """
    from sessgit.branch import fork as forks
    from sessgit.branch.merging import merge as merges
    from sessgit.branch.merging import sides
    from sessgit.cli import client_launch
    from sessgit.cli.pages import merge as page
    from sessgit.history import client_files

    wish = _wish(mode, turns, with_command, ours_wins, theirs_wins, values or [])
    ours = session_argument.target(here, into, changes=not dry_run)
    other = session_argument.target(here, theirs)
    sides.check_sides(ours, other)
    if dry_run:
        plan = merges.plan_merge(here.store, here.index, ours, other, wish)
        return Answer(lambda: {**plan.as_json(), "commit": None, "session_id": None}, page.full(here, plan))
    done = merges.merge_sessions(world(here), ours, other, wish, created(here, ours.state.project, new))
    assert done.plan is not None
    value = {**done.plan.as_json(), "commit": done.commit or None, "session_id": done.state.id}
    if not done.commit:
        return Answer(lambda: value, remarks=[] if here.json else [page.standing(here, done.plan)])
    state = client_files.localize_state(done.state, here.here)
    way_on = client_launch.way_on(here, state, forks.resume_command(state, here.cwd))
    return Answer(lambda: value, page.done(here, done, [other.branch.name], way_on), secrets(done))


def world(here: Invocation) -> MergeContext:
    """Where a merge or a pick of this process takes place."""
    from sessgit.branch.merging.merge import MergeContext

    return MergeContext(here.store, here.index, here.config, here.privacy, here.now, here.settings.prices)


def created(here: Invocation, project: str, name: str | None) -> NewSession | None:
    """The new session that `--new` asks for; raises where it cannot have the name."""
    import uuid

    from sessgit.branch.edit import check_name_free
    from sessgit.branch.merging.merge import NewSession
    from sessgit.model.address import check_name

    if name is None:
        return None
    if name:
        name = check_name(name)
        check_name_free(here.index, name, "", project or here.cwd)
    return NewSession(str(uuid.uuid4()), name)


def secrets(done: MergeResult) -> Iterator[str]:
    """Says that what was brought back is what the store holds, where that lacks words."""
    if done.secrets:
        stand = "is" if done.secrets == 1 else "are"
        yield (f"{text.counted(done.secrets, 'secret')} in the merged turns {stand} redacted.")


def _wish(
    mode: Literal["summary", "graft", "pick"] | None, turns: str, command: str, ours: bool, theirs: bool,
    values: list[str],
) -> MergeRequest:  # fmt: skip
    from sessgit.branch.merging import summary
    from sessgit.branch.merging.plan import MergeRequest
    from sessgit.errors import UsageError

    if turns and mode is None:
        mode = "pick"
    if (mode == "pick") != bool(turns):
        raise UsageError(
            "--turns works only with --mode pick." if turns else "--mode pick needs --turns.",
            "For example: `--mode pick --turns 4,6-8`.",
        )
    if command and mode not in (None, "summary"):
        raise UsageError(f"--with rewrites a summary, but --mode {mode} makes none.", "Use one of the two.")
    if ours and theirs:
        raise UsageError("--ours and --theirs cannot be combined.", "Use one of the two, or `--set KEY=VALUE`.")

    def retell(given: str) -> str:
        return summary.run_retell_command(command, given, os.getcwd(), os.environ)  # noqa: PTH109 - the words of subprocess

    return MergeRequest(
        "summary" if command else mode, _numbers(turns), _choice(ours, theirs, values), retell if command else None
    )


def _numbers(turns: str) -> tuple[int, ...]:
    """The turns in `4,6-8`."""
    from sessgit.errors import UsageError

    found: list[int] = []
    for part in turns.split(",") if turns else ():
        first, dash, last = part.strip().partition("-")
        ends = [first, last if dash else first]
        if not all(end.isascii() and end.isdigit() and len(end) < 7 for end in ends) or int(ends[0]) > int(ends[1]):
            raise UsageError(f"“{part}” is not a turn or a range of turns", "Use numbers and ranges, such as 4,6-8.")
        found += range(int(ends[0]), int(ends[1]) + 1)
    return tuple(found)


def _choice(ours: bool, theirs: bool, values: list[str]) -> Choice:
    from sessgit.branch import edit
    from sessgit.errors import UsageError
    from sessgit.model.merge_decisions import Choice

    said: dict[str, Any] = {}
    read = {"description": edit.parse_description, "stage": edit.parse_stage, "confidence": edit.parse_confidence}
    for one in values:
        key, equals, value = one.partition("=")
        if key not in read or not equals:
            raise UsageError(
                f"--set “{one}” is not KEY=VALUE with a known KEY", f"The keys are {', '.join(_SETTABLE)}."
            )
        found = read[key](value)
        said[key] = None if key == "confidence" and found == "" else found
    return Choice("ours" if ours else "theirs" if theirs else "", said)


@frame.command("pick", reads=True)
def pick(
    here: Invocation,
    addresses: Annotated[
        list[str],
        typer.Argument(
            metavar="ADDRESS", help="The turns to copy, in order: SESSION@TURN.", autocompletion=completion.addresses
        ),
    ],
    into: options.Into = "",
    new: options.New = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")] = False,
) -> Answer:
    """Copy turns of other conversations into this one.

    The turns are appended to the client's file, which no client may have open; --new creates a new conversation
    instead. The conversations are not merged: a later merge brings the rest.
    """
    from sessgit.branch import fork as forks
    from sessgit.branch.merging import merge as merges
    from sessgit.branch.merging import sides
    from sessgit.cli import client_launch
    from sessgit.cli.pages import merge as page
    from sessgit.history import client_files

    ours = session_argument.target(here, into, changes=not dry_run)
    sides.check_ours(ours)
    chosen = [session_argument.target(here, address) for address in addresses]
    if dry_run:
        plan = merges.plan_pick(here.store, here.index, ours, chosen)
        return Answer(
            lambda: {**_pick_json(chosen, plan), "session_id": None, "commit": None}, page.picked(here, ours, plan)
        )
    done = merges.pick_turns(world(here), ours, chosen, created(here, ours.state.project, new))
    assert done.picked is not None
    names = list(dict.fromkeys(one.branch.name for one in chosen))
    state = client_files.localize_state(done.state, here.here)
    way_on = client_launch.way_on(here, state, forks.resume_command(state, here.cwd))
    value = {**_pick_json(chosen, done.picked), "session_id": done.state.id, "commit": done.commit}
    return Answer(lambda: value, page.done(here, done, names, way_on), secrets(done))


def _pick_json(chosen: Sequence[ResolvedTarget], plan: PickPlan) -> dict[str, object]:
    return {
        **plan.as_json(),
        "turns": plan.numbers,
        "picked": [{"session_id": one.session, "turn": one.turn} for one in chosen],
    }
