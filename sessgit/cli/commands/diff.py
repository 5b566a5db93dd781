"""`sessgit diff`: compare two conversations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from sessgit.cli import completion, frame, session_argument
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import argument, option
from sessgit.cli.pages import diff as page
from sessgit.errors import UsageError
from sessgit.history import diff as diffs

if TYPE_CHECKING:
    from sessgit.history.code.difference import CodeDiff


@frame.command("diff", reads=True, requires={"--patch": "--code"})
def run(
    here: Invocation,
    a: str = argument("A", "SESSION[@TURN] (default: the current session).", complete=completion.addresses),
    b: str = argument(
        "B", "SESSION[@TURN] (default: the conversation A was forked from).", complete=completion.addresses
    ),
    code: bool = option("--code", "Also compare the project's code."),
    patch: bool = option("-p, --patch", "With --code: show the patch."),
) -> Answer:
    """Compare two conversations.

    The turns that both share are one line; then come the turns, files and cost that only one of them has. --code also
    compares the commits and files of the project, as recorded after the last turn of A and of B.
    """
    left = session_argument.target(here, a)
    if b:
        right = session_argument.target(here, b)
    elif left.state.origin is not None:
        left, right = session_argument.target(here, left.state.origin.session), left
    else:
        hint = "Name two conversations: `sessgit diff A B`. `sessgit ls` lists them."
        raise UsageError(f"{here.ident(left.branch.name)} is not a fork.", hint)
    difference = diffs.diff_branches(here.context, (left.branch, left.turn), (right.branch, right.turn))

    def compared() -> CodeDiff:
        from sessgit.history.code.difference import compare_code

        ends = [(each.branch, each.state.turns if each.turn is None else each.turn) for each in (left, right)]
        return compare_code(here.context, ends[0], ends[1], os.environ)

    def document() -> dict[str, object]:
        value = diffs.diff_json(here.store, difference, here.settings.prices)
        return value | ({"code": _code_json(compared(), patch)} if code else {})

    code_lines = _code_page(here, compared, patch) if code else ()
    return Answer(document, chain(page.full(here, difference), code_lines))


def _code_json(diff: CodeDiff, patch: bool) -> dict[str, object]:
    from sessgit.history.code import difference

    document = difference.code_json(diff)
    return document | {"patch": difference.code_patch(diff, os.environ)} if patch else document


def _code_page(here: Invocation, compare: Callable[[], CodeDiff], patch: bool) -> Iterator[str]:
    from sessgit.cli.pages import code_diff
    from sessgit.history.code import difference

    diff = compare()
    yield from code_diff.section(here, diff)
    text = difference.code_patch(diff, os.environ) if patch else ""
    if text:
        yield ""
        yield from code_diff.patch(here, text)
