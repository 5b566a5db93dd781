"""A check-up of all that is no conversation: whether events are recorded, what lies about, the machine around it.

What is wrong is told with what to do. The cures that lose nothing can be had at once; none deletes what is recorded.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass

from sessgit import __version__
from sessgit.check.doctoring import damage, machine, recording, storing
from sessgit.check.doctoring.context import Ailment, Patient
from sessgit.errors import SessgitError
from sessgit.model.finding import SEVERITIES, Finding, is_sound

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Treated:
    """A finding that was mended, in what words; or why it could not be."""

    finding: Finding
    done: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong, what of it was mended, and which versions are at work; `curable` are those that `--fix` mends."""

    findings: tuple[Finding, ...]
    curable: tuple[Finding, ...]
    treated: tuple[Treated, ...]
    version: str
    python: str
    git: str
    clients: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return is_sound(self.findings)


def examine(patient: Patient, *, fix: bool = False) -> Diagnosis:
    """What is wrong; with `fix` after what can be mended safely was."""
    found = _sorted(_every(patient))
    treated: list[Treated] = []
    for _ in range(_ROUNDS if fix else 0):
        known = {one.finding for one in treated}
        now = [ailment for ailment in found if ailment.cure is not None and ailment.finding not in known]
        if not now:
            break
        treated += [_treated(ailment) for ailment in now]
        found = _sorted(_every(patient))  # what is mended may show what else is wrong
    return Diagnosis(
        tuple(ailment.finding for ailment in found),
        tuple(ailment.finding for ailment in found if ailment.cure is not None),
        tuple(treated),
        __version__,
        platform.python_version(),
        machine.git_version(patient),
        tuple(machine.clients(patient)) if not patient.why else (),
    )


def _every(patient: Patient) -> Iterator[Ailment]:
    if patient.store in damage.shut(patient) and not os.access(patient.store, os.R_OK | os.X_OK):
        yield from damage.may_not(patient)  # nothing in it can be looked at
        return
    yield from recording.check(patient)
    yield from damage.bones(patient)
    if (patient.store / "HEAD").is_file():
        yield from damage.check(patient)
        if all(os.access(folder, os.R_OK | os.X_OK) for folder in damage.shut(patient)):
            yield from storing.check(patient)
    yield from machine.check(patient)


def _sorted(every: Iterator[Ailment]) -> list[Ailment]:
    return sorted(every, key=lambda ailment: SEVERITIES.index(ailment.finding.severity))


def _treated(ailment: Ailment) -> Treated:
    assert ailment.cure is not None
    try:
        return Treated(ailment.finding, ailment.cure())
    except SessgitError as error:
        return Treated(ailment.finding, error=f"{error}. {error.hint}".strip())
