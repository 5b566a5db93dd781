"""A transcript to record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.agents import Client
from sessgit.agents.base import Agent
from sessgit.model import ids, long_strings
from sessgit.model.frozen import frozen
from sessgit.redact import RULES_VERSION
from sessgit.store.context import DEFAULT_AGENT

if TYPE_CHECKING:
    from sessgit.store.settings import RecordConfig

Head = str | Callable[[], str]
"""The project's commit, or a function that waits for the process that looks for it."""


@frozen
class TranscriptSource:
    """A transcript and what is known of it besides its lines.

    `final` says that the agent has closed the file, so that its last lines are recorded too; `live` that the agent is
    at work now, so that plan, todos and tasks are those of its last turn; `prompting` that a prompt has only just been
    given, which is then left to the next event; `head` is the project's own commit; `folder` the client's, whose
    sidecar files are recorded too, and `client` the name of the agent. `at_rest` says that the agent has not worked
    since the last turn, so that plan, todos and tasks are those of it; `own` is the client's own folder if `folder` is
    another one. `origins` gives the event and the origin of merged turns, by the uuids of their prompts. `place` is the
    path that the state names, if this file is a temporary one. `imported` says that the file is one of several copies,
    which are recorded as if all had come at once.
    """

    path: Path
    agent_id: str
    folder: Path
    final: bool = False
    live: bool = False
    prompting: bool = False
    head: Head = ""
    at_rest: bool = False
    own: Path | None = None
    client: str = DEFAULT_AGENT
    origins: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    place: str | None = None
    imported: bool = False

    @property
    def agent(self) -> Agent:
        """The agent that wrote the transcript."""
        return agents.named(self.client)

    @property
    def session(self) -> str:
        return ids.session_id(self.agent_id)

    @property
    def is_copy(self) -> bool:
        """Return whether the file is recorded with all other copies of the session's: an imported one, or one that the
        client has closed."""
        return self.imported or (self.final and self.is_in_place and not self.live)

    @property
    def is_in_place(self) -> bool:
        """Return whether the file is where the agent itself looks for it."""
        return agents.is_place(Client(self.agent, self.own or self.folder), self.path)


def stored_rules(settings: RecordConfig) -> dict[str, int]:
    """Return the versions of the rules, as the state of a new session names them; 0 is none. Whether a session is
    redacted is decided when its recording begins, and stays so."""
    return {"cut": long_strings.RULES_VERSION, "redact": RULES_VERSION if settings.redact else 0}
