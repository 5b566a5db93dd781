"""What a check found: what is wrong, where, how bad that is, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["damage", "wrong", "note"]
SEVERITIES: tuple[Severity, ...] = ("damage", "wrong", "note")
"""Bytes that are gone or changed; what can be read and breaks a rule; what is worth knowing, and breaks nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`where` is an address, a ref or a path; `kind` a word for programs; `next` the next command, or ``""``.

    `objects` are the ids of those that cannot be read.
    """

    severity: Severity
    kind: str
    where: str
    what: str
    next: str = ""
    objects: tuple[str, ...] = ()


def sorted_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once, the worst first, else in the order in which they were found."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITIES.index(finding.severity))


def is_sound(findings: Iterable[Finding]) -> bool:
    """Whether nothing is damaged or wrong."""
    return all(finding.severity == "note" for finding in findings)
