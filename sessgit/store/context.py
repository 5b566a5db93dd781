"""What an operation works on, made once at the edge of the program and passed down."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from sessgit.errors import NotFoundError
from sessgit.model.config import Price, Privacy
from sessgit.model.frozen import frozen
from sessgit.model.homes import Homes

if TYPE_CHECKING:
    from sessgit.store.index import Branch, Index
    from sessgit.store.store import Store


@frozen
class Context:
    """A store with its index, the folder of each agent's client, what may be recorded, the environment for git in the
    project, the clock, in seconds since 1970, and the prices of models that the user set."""

    index: Index
    homes: Homes = field(default_factory=Homes)
    privacy: Privacy = field(default_factory=Privacy)
    env: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time.time
    prices: Mapping[str, Price] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """The store, opened when it is first needed: what the index answers needs none."""
        return self.index.open_store()

    def branch(self, session: str) -> Branch:
        """Return the session's branch as it is now; raises NotFoundError if it is gone, and if it cannot be read the
        error that says why."""
        self.index.sync(session)
        branch = self.index.branch(session)
        if branch is None:
            gone = NotFoundError(f"{session[:8]} no longer exists", "`sessgit ls --all` lists all conversations.")
            raise self.index.damaged.get(session, gone)
        return branch
