"""What a check-up found, what was mended, and the versions at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sessgit.check.doctor import Diagnosis
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import findings
from sessgit.cli.render import Paint
from sessgit.model import canonical
from sessgit.model.finding import Finding

_FIX = "`sessgit doctor --fix` fixes {} of them."
_CLIENTS = 4
"""So many versions are shown."""


def full(here: Invocation, found: Diagnosis) -> Iterator[str]:
    """The whole page."""
    paint = Paint(here.colour)
    for one in found.treated:
        head, style = ("mended", "green") if one.done else ("not fixed", "yellow")
        yield f"{paint('bold', text.cut(_where(here, one.finding.where), here.width - 14))}  {paint(style, head)}"
        yield from findings.indented(here, _short(here, one.finding).what)
        yield from findings.indented(here, f"→ {one.done or one.error}")
    shown = [_short(here, finding) for finding in found.findings]
    yield from findings.lines(here, shown)
    if found.treated or found.findings:
        yield ""
    if found.is_sound:
        notes = f"; {text.counted(len(found.findings), 'note')}" if found.findings else ""
        yield f"No problems found{notes}."
    else:
        wrong = sum(finding.severity != "note" for finding in found.findings)
        said = f"{text.counted(wrong, 'problem')} found."
        curable = sum(finding.severity != "note" for finding in found.curable)
        yield from text.wrapped(f"{said} {_FIX.format(curable)}" if curable else said, here.width)
    versions = [f"sessgit {found.version}", f"Python {found.python}", f"git {found.git or 'missing'}"]
    clients = text.wrapped(_clients(found.clients), here.width) if found.clients else []
    yield from text.fold([*versions, *clients[:1]], here.width, " · ")
    yield from clients[1:]
    yield from text.wrapped("Run `sessgit verify` to check the store.", here.width)


def as_json(found: Diagnosis) -> dict[str, Any]:
    """Return what `doctor --json` prints."""
    curable = set(found.curable)
    return {
        "sound": found.is_sound,
        "findings": [
            {"severity": one.severity, "kind": one.kind, "where": one.where, "message": one.what,
             "hint": one.next or None, "fixable": one in curable}
            for one in found.findings
        ],
        "fixed": [
            {"kind": one.finding.kind, "where": one.finding.where, "message": one.finding.what,
             "done": one.done or None, "error": one.error or None}
            for one in found.treated
        ],
        "version": found.version, "python": found.python, "git": found.git or None, "clients": list(found.clients),
    }  # fmt: skip


def _clients(versions: Sequence[str]) -> str:
    """The first versions of the client, and how many more there are."""
    more = f" and {len(versions) - _CLIENTS:,} more" if len(versions) > _CLIENTS else ""
    return f"clients {', '.join(versions[:_CLIENTS])}{more}"


def _short(here: Invocation, finding: Finding) -> Finding:
    home = f"{here.home}/"
    what, mend = (said.replace(home, "~/") for said in (finding.what, finding.next))
    return replace(finding, where=_where(here, finding.where), what=what, next=mend)


def _where(here: Invocation, where: str) -> str:
    return canonical.printable(here.short(where))
