"""What a check-up is given, and what it finds: each finding with what may mend it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sessgit.model.finding import Finding
from sessgit.record.privacy import Privacy
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths

Cure = Callable[[], str]
"""Mends something, loses nothing, and says what it did; raises SessgitError where it cannot."""


@dataclass(frozen=True, slots=True)
class Ailment:
    """A finding, and what mends it where that is safe."""

    finding: Finding
    cure: Cure | None = None


@dataclass(frozen=True)
class Patient:
    """The store and the client's folder, whether they are there or not; `index` is None where there is no store or it
    cannot be opened. `env` is what git is given, `python` the interpreter that runs this."""

    store: Path
    config: Path
    home: Path
    privacy: Privacy
    index: Index | None
    env: Mapping[str, str]
    python: str
    now: float
    why: str = ""
    """Why the store cannot be opened."""
    beside: StorePaths = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "beside", StorePaths(self.store))
