"""The folders in which the agents' clients keep their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.model.conversation.session import Session


DEFAULT = "claude"
"""The agent of a state that names none, and in whose form programs and other systems write sessions."""


@frozen
class Homes:
    """The folder of each agent's client on this machine, such as `~/.claude`, by the name of the agent."""

    folders: Mapping[str, Path] = field(default_factory=dict)

    def of(self, state: Session) -> Path:
        """Return the folder of the client that a session was held with, or of the default client if a newer version
        recorded it with an agent that is unknown here; `/`, where a client has no files, if no folder is known."""
        return self.folders.get(state.agent) or self.folders.get(DEFAULT, Path("/"))

    def at(self, agent: str, folder: Path) -> Homes:
        """Return the same folders but for one agent's, which is `folder`."""
        return Homes({**self.folders, agent: folder})

    def hold(self, path: Path) -> bool:
        """Return whether a path from a document leads into one of the folders, whether or not it exists."""
        return any(path.is_relative_to(folder) for folder in self.folders.values()) and ".." not in path.parts
