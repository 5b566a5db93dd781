"""The findings of a check: where, what is wrong, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from sessgit.cli import blocks, text
from sessgit.cli.invocation import Invocation
from sessgit.model import canonical, ids
from sessgit.model.finding import Finding
from sessgit.store.layout import session_of

_SEVERITIES = {"damage": ("red", "damaged"), "wrong": ("yellow", "wrong"), "note": ("dim", "note")}
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LIMIT = 200


def lines(cli: Invocation, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the first findings; JSON has all of them."""
    every = list(findings)
    for finding in every[:_LIMIT]:
        style, word = _SEVERITIES[finding.severity]
        name, at, turn = finding.where.partition("@")
        is_address = ids.is_branch(name) and _UUID.fullmatch(session_of(name))
        where = cli.ident(name) + at + turn if is_address else finding.where
        yield from block(cli, where, cli.paint(style, word), finding.what, finding.next)
    if len(every) > _LIMIT:
        yield f"and {len(every) - _LIMIT:,} more: --json lists all"


def block(cli: Invocation, where: str, outcome: str, *sentences: str) -> Iterator[str]:
    """Yield a place with a word about it, and sentences below."""
    place = text.cut(canonical.printable(where), cli.width - 2 - text.width(outcome))
    yield f"{cli.paint('bold', place)}  {outcome}"
    for sentence in filter(None, sentences):
        yield from blocks.paragraph(cli, sentence, indent=4)


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as documents have them."""
    return [finding_json(finding) | {"objects": list(finding.objects)} for finding in findings]


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return a finding without the damaged objects."""
    return {
        "severity": finding.severity, "kind": finding.kind, "where": finding.where, "message": finding.what,
        "hint": finding.next or None,
    }  # fmt: skip
