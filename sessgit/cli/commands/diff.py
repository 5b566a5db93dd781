"""`sessgit diff`: compare two conversations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, session_argument
from sessgit.cli.arguments import completion
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.history.code.difference import CodeDiff
    from sessgit.history.resolve import ResolvedTarget


@frame.command("diff", reads=True)
def run(
    here: Invocation,
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="SESSION[@TURN] (default: the current session).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    b: Annotated[
        str,
        typer.Argument(
            metavar="B",
            help="SESSION[@TURN] (default: the conversation A was forked from).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    code: Annotated[bool, typer.Option("--code", help="Also compare the project's code.")] = False,
    patch: Annotated[bool, typer.Option("--patch", "-p", help="With --code: show the patch.")] = False,
) -> Answer:
    """Compare two conversations.

    The turns that both share are one line; then come the turns, files and cost that only one of them has. --code also
    compares the commits and files of the project, as recorded after the last turn of A and of B.
    """
    from sessgit.cli.pages import diff as page
    from sessgit.errors import UsageError
    from sessgit.history import diff as diffs

    if patch and not code:
        raise UsageError("--patch needs --code.", "`sessgit diff A B --code --patch`.")
    left = session_argument.target(here, a)
    if b:
        right = session_argument.target(here, b)
    elif left.state.origin is not None:
        left, right = session_argument.target(here, left.state.origin.session), left
    else:
        raise UsageError(
            f"{here.ident(left.branch.name)} is not a fork.",
            "Name two conversations: `sessgit diff A B`. `sessgit ls` lists them.",
        )
    found = diffs.diff_branches(here.store, here.index, (left.branch, left.turn), (right.branch, right.turn))

    def document() -> dict[str, object]:
        value = diffs.diff_json(here.store, found, here.settings.prices)
        return value | (_code_json(here, left, right, patch) if code else {})

    return Answer(document, chain(page.full(here, found), _code_lines(here, left, right, patch) if code else ()))


def _code_json(here: Invocation, left: ResolvedTarget, right: ResolvedTarget, patch: bool) -> dict[str, object]:
    from sessgit.history.code import difference

    found = _compared(here, left, right)
    value = difference.code_json(found)
    return {"code": value | {"patch": difference.code_patch(found, os.environ)} if patch else value}


def _code_lines(here: Invocation, left: ResolvedTarget, right: ResolvedTarget, patch: bool) -> Iterator[str]:
    from sessgit.cli.pages import code_diff as page
    from sessgit.history.code import difference

    found = _compared(here, left, right)
    yield from page.section(here, found)
    shown = difference.code_patch(found, os.environ) if patch else ""
    if shown:
        yield ""
        yield from page.patch(here, shown)


def _compared(here: Invocation, left: ResolvedTarget, right: ResolvedTarget) -> CodeDiff:
    from sessgit.history.code import difference

    ends = [(one.branch, one.state.turns if one.turn is None else one.turn) for one in (left, right)]
    return difference.compare_code(here.store, here.index, ends[0], ends[1], os.environ)
