"""What an operation works on, made once at the edge of the program and passed down: a store, and the folders in which
the agents' clients keep their files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.errors import NotFoundError
from sessgit.model.frozen import frozen
from sessgit.model.prices import Price
from sessgit.store.settings import Privacy

if TYPE_CHECKING:
    from sessgit.model.conversation.session import Session
    from sessgit.store.index import Branch, Index
    from sessgit.store.store import Store

DEFAULT_AGENT = "claude"
"""The agent of a state that names none, and in whose form programs and other systems write sessions."""


@frozen
class Homes:
    """The folder of each agent's client on this machine, such as `~/.claude`, by the name of the agent."""

    folders: Mapping[str, Path] = field(default_factory=dict)

    def of(self, state: Session) -> Path:
        """Return the folder of the client that a session was held with, or of the default client if a newer version
        recorded it with an agent that is unknown here; `/`, where a client has no files, if no folder is known."""
        return self.folders.get(state.agent) or self.folders.get(DEFAULT_AGENT, Path("/"))

    def at(self, agent: str, folder: Path) -> Homes:
        """Return the same folders but for one agent's, which is `folder`."""
        return Homes({**self.folders, agent: folder})

    def hold(self, path: Path) -> bool:
        """Return whether a path from a document leads into one of the folders, whether or not it exists."""
        return any(path.is_relative_to(folder) for folder in self.folders.values()) and ".." not in path.parts


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
