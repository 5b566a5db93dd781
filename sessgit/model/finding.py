"""A finding of a check: what is wrong, where, how severe it is, what to do next, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Literal

from sessgit.model.frozen import frozen

Severity = Literal["damage", "wrong", "note"]
SEVERITIES: tuple[Severity, ...] = ("damage", "wrong", "note")
"""Lost or changed data; readable data that breaks a rule; a remark about something that breaks no rule."""


@frozen
class Finding:
    """`where` is an address, a ref or a path; `kind` a word for programs; `next` the next command, or ``""``.

    `objects` are the ids of unreadable objects. `fix` fixes the problem without losing anything, and returns what it
    did; it raises SessgitError if that fails, and is None for a problem that only the user can fix.
    """

    severity: Severity
    kind: str
    where: str
    what: str
    next: str = ""
    objects: tuple[str, ...] = ()
    fix: Callable[[], str] | None = field(default=None, compare=False, repr=False)


def sorted_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once, the most severe first."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITIES.index(finding.severity))


def is_sound(findings: Iterable[Finding]) -> bool:
    """Return whether nothing is damaged or wrong."""
    return all(finding.severity == "note" for finding in findings)
