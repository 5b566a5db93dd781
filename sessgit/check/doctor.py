"""`doctor`: whether recording works, and what is wrong with the store's files and the machine around them.

The contents of conversations are checked by `verify`. A fix never deletes recorded data.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sessgit import __version__
from sessgit.check import status
from sessgit.check.doctoring import machine, recording, storage
from sessgit.check.doctoring.context import DoctorContext
from sessgit.errors import SessgitError
from sessgit.model.finding import Finding, is_sound, sorted_by_severity

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Fixed:
    """A finding with what its fix did, or the `error` that it raised."""

    finding: Finding
    done: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings that remain, those that were fixed, and the versions of the programs."""

    findings: tuple[Finding, ...]
    fixed: tuple[Fixed, ...]
    version: str
    python: str
    git: str
    clients: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return is_sound(self.findings)


def diagnose(context: DoctorContext, *, fix: bool = False) -> Diagnosis:
    """Return all findings; with `fix`, those that remain after every fix was tried."""
    findings = sorted_by_severity(_findings(context))
    fixed = list[Fixed]()
    for _ in range(_ROUNDS if fix else 0):
        tried = {one.finding for one in fixed}
        fixable: dict[Callable[[], str], Finding] = {}
        for finding in findings:
            if finding.fix and finding not in tried:
                fixable.setdefault(finding.fix, finding)  # several findings may have the same fix
        if not fixable:
            break
        fixed += map(_apply_fix, fixable.values())
        findings = sorted_by_severity(_findings(context))  # a fix may reveal another problem
    clients = machine.client_versions(context) if not context.error else []
    git = machine.git_version(context)
    return Diagnosis(tuple(findings), tuple(fixed), __version__, platform.python_version(), git, tuple(clients))


def _findings(context: DoctorContext) -> Iterator[Finding]:
    blocked = status.blocked_folders(context.store)
    yield from storage.check_access(context, blocked)
    if context.store in blocked and not os.access(context.store, os.R_OK | os.X_OK):
        return
    yield from recording.check(context)
    yield from storage.check(context, blocked)
    yield from machine.check(context)


def _apply_fix(finding: Finding) -> Fixed:
    assert finding.fix is not None
    try:
        return Fixed(finding, finding.fix())
    except SessgitError as error:
        return Fixed(finding, error=f"{error}. {error.hint}".strip())
