"""What the checks of `doctor` look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sessgit.model.config import Privacy
from sessgit.model.homes import Homes
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths


@dataclass(frozen=True)
class DoctorContext:
    """The store and the client's folder, which may not exist. `index` is None without a store, or if the store cannot
    be opened for the reason `error`. `env` is the environment for git, `python` the interpreter that runs this."""

    store: Path
    homes: Homes
    home: Path
    privacy: Privacy
    index: Index | None
    env: Mapping[str, str]
    python: str
    now: float
    error: str = ""

    @property
    def paths(self) -> StorePaths:
        return StorePaths(self.store)

    def of_store(self, index: Index) -> Context:
        """Return what an operation on the store works on."""
        return Context(index, self.homes, self.privacy, self.env, lambda: self.now)
