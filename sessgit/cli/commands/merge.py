"""`sessgit merge`, `sessgit pick`: turns of other conversations copied into this one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from sessgit.branch import edit
from sessgit.cli import client_notes, completion, frame, session_argument
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import DRY_RUN, INTO, NEW, argument, option
from sessgit.errors import UsageError
from sessgit.model.address import check_name
from sessgit.model.merge_decisions import Choice

if TYPE_CHECKING:
    from sessgit.branch.merge import MergeResult, NewSession
    from sessgit.branch.merge_plan import MergeRequest
    from sessgit.history.resolve import ResolvedTarget

_PARSERS: dict[str, Callable[[str], object]] = {
    "description": edit.parse_description,
    "stage": edit.parse_stage,
    "confidence": lambda value: None if value == "none" else edit.parse_confidence(value),
}


@frame.command("merge", reads=True, excludes={"--ours": "--theirs"})
def merge(
    here: Invocation,
    theirs: str = argument(
        "THEIRS",
        "The conversation to merge: SESSION[@TURN], up to TURN.",
        required=True,
        complete=completion.addresses,
    ),
    into: str = INTO,
    mode: Literal["summary", "graft", "pick"] | None = option(
        "--mode", "Append one summary turn, replay all their turns, or some."
    ),
    turns: str = option("--turns 4,6-8", "The turns to pick."),
    rewriter: str = option("--with COMMAND", "Pipe the summary through COMMAND."),
    ours_wins: bool = option("--ours", "Resolve conflicts with our value."),
    theirs_wins: bool = option("--theirs", "Resolve conflicts with their value."),
    values: list[str] = option("--set KEY=VALUE", "Set the merged value; may be repeated."),
    new: str | None = NEW,
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Merge another conversation into this one.

    --mode summary, the default, appends one turn: what was asked and answered there since the fork, the files, the
    cost. It needs no model; --with pipes it through a command, as in --with "claude -p 'Shorten this'". --mode graft
    replays all their turns after ours, --mode pick some of them. If ours has no new turns since the fork, the merge is
    a fast-forward: all their turns are appended.

    The turns are appended to the client's file, which no client may have open; --new creates a new conversation
    instead. Labels and scratchpads of both are combined; a field that both changed is a conflict.
    """
    from sessgit.branch import merge as merges
    from sessgit.branch import merge_plan
    from sessgit.cli.pages import merge as page

    choice = Choice("ours" if ours_wins else "theirs" if theirs_wins else "", dict(map(_parse_value, values)))
    mode = mode or ("pick" if turns else "summary" if rewriter else None)
    if (mode == "pick") != bool(turns):
        wrong = "--turns works only with --mode pick." if turns else "--mode pick needs --turns."
        raise UsageError(wrong, "For example: `--mode pick --turns 4,6-8`.")
    if rewriter and mode != "summary":
        raise UsageError(f"--with rewrites a summary, but --mode {mode} makes none.", "Use one of the two.")
    ours = session_argument.target(here, into, changes=not dry_run)
    other = session_argument.target(here, theirs)
    merge_plan.check_sides(ours, other)
    request = _request(here, other, mode, turns, choice, rewriter)
    if dry_run:
        plan = merges.plan_merge(here.context, ours, other, request)
        return Answer({**plan.as_json(), "commit": None, "session_id": None}, page.full(here, plan))
    result = merges.merge_sessions(here.context, ours, other, request, _new_session(here, ours, new))
    assert result.plan is not None
    document = {**result.plan.as_json(), "commit": result.commit or None, "session_id": result.state.id}
    if not result.commit:
        return Answer(document, notes=[page.nothing_to_do(here, result.plan)])
    return _merged(here, result, document, [other])


def _parse_value(pair: str) -> tuple[str, object]:
    key, equals, value = pair.partition("=")
    if key not in _PARSERS or not equals:
        raise UsageError(f"--set “{pair}” is not KEY=VALUE with a known KEY", f"The keys are {', '.join(_PARSERS)}.")
    return key, _PARSERS[key](value)


def _request(
    here: Invocation,
    theirs: ResolvedTarget,
    mode: Literal["summary", "graft", "pick"] | None,
    turns: str,
    choice: Choice,
    rewriter: str,
) -> MergeRequest:
    from sessgit.branch import merge
    from sessgit.branch.merge_plan import MergeRequest
    from sessgit.history.export import parse_ranges

    def rewrite(written: str) -> str:
        return merge.run_retell_command(rewriter, written, here.cwd, os.environ)

    last, name = theirs.turn or theirs.state.turns, here.ident(theirs.branch.name)
    numbers = tuple(parse_ranges(turns, last, name)) if turns else ()
    return MergeRequest(mode, numbers, choice, rewrite if rewriter else None)


def _new_session(here: Invocation, ours: ResolvedTarget, name: str | None) -> NewSession | None:
    """Return the new session that --new asks for; raise UsageError or ConflictError if it cannot have the name."""
    from sessgit.branch.merge import NewSession

    if name is None:
        return None
    if name:
        name = check_name(name)
        edit.check_name_free(here.index, name, "", ours.state.project or here.cwd)
    return NewSession(str(uuid.uuid4()), name)


def _merged(
    here: Invocation, result: MergeResult, document: dict[str, object], sources: Sequence[ResolvedTarget]
) -> Answer:
    from sessgit.cli.pages import merge as page

    _, next_step = client_notes.continuation(here, result.state)
    names = list(dict.fromkeys(source.branch.name for source in sources))
    remarks = client_notes.redacted(result.secrets, "the merged turns")
    return Answer(document, page.merged(here, result, names, next_step), remarks)


@frame.command("pick", reads=True)
def pick(
    here: Invocation,
    addresses: list[str] = argument("ADDRESS", "The turns to copy, in order: SESSION@TURN.", required=True),
    into: str = INTO,
    new: str | None = NEW,
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Copy turns of other conversations into this one.

    The turns are appended to the client's file, which no client may have open; --new creates a new conversation
    instead. The conversations are not merged: a later merge brings the rest.
    """
    from sessgit.branch import merge as merges
    from sessgit.branch import merge_plan
    from sessgit.cli.pages import merge as page

    ours = session_argument.target(here, into, changes=not dry_run)
    merge_plan.check_ours(ours)
    sources = [session_argument.target(here, address) for address in addresses]
    result = None if dry_run else merges.pick_turns(here.context, ours, sources, _new_session(here, ours, new))
    plan = result.picked if result else merges.plan_pick(here.context, ours, sources)
    assert plan is not None
    document = {
        **plan.as_json(),
        "turns": plan.numbers,
        "picked": [{"session_id": source.session, "turn": source.turn} for source in sources],
        "session_id": result.state.id if result else None,
        "commit": result.commit if result else None,
    }
    return _merged(here, result, document, sources) if result else Answer(document, page.picked(here, ours, plan))
