"""What a check found: where, what, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.model import canonical, ids
from sessgit.model.finding import Finding
from sessgit.store.layout import session_of

_WORDS = {"damage": ("red", "damaged"), "wrong": ("yellow", "wrong"), "note": ("dim", "note")}
_INDENT = 4
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOST = 200
"""So many are shown; JSON has all."""


def lines(here: Invocation, findings: Iterable[Finding]) -> Iterator[str]:
    """A line with the place for each, and what is wrong there below it."""
    paint, every = Paint(here.colour), list(findings)
    for finding in every[:_MOST]:
        style, word = _WORDS[finding.severity]
        where = canonical.printable(_short(here, finding.where))
        yield f"{paint('bold', text.cut(where, here.width - 12))}  {paint(style, word)}"
        yield from indented(here, finding.what)
        if finding.next:
            yield from indented(here, finding.next)
    if len(every) > _MOST:
        yield f"and {len(every) - _MOST:,} more: --json lists all"


def indented(here: Invocation, said: str) -> Iterator[str]:
    """The words below a head, folded."""
    room = here.width - _INDENT
    yield from (" " * _INDENT + line for line in text.wrapped(said, room))


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The findings for programs."""
    return [
        {
            "severity": one.severity, "kind": one.kind, "where": one.where, "message": one.what,
            "hint": one.next or None, "objects": list(one.objects),
        }
        for one in findings
    ]  # fmt: skip


def _short(here: Invocation, where: str) -> str:
    """An address as it is shown: of the id as much as tells it from others."""
    name, sign, turn = where.partition("@")
    if not ids.is_branch(name) or not _UUID.fullmatch(session_of(name)):
        return where
    return here.ident(name) + sign + turn
