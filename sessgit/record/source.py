"""What is recorded, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.agents import Client
from sessgit.agents.base import Agent
from sessgit.model import ids, long_strings
from sessgit.model.homes import DEFAULT
from sessgit.redact import RULES_VERSION

if TYPE_CHECKING:
    from sessgit.model.config import RecordConfig

Head = str | Callable[[], str]
"""What a project is at, or the function that waits for whoever looks."""


@dataclass(frozen=True, slots=True)
class TranscriptSource:
    """A transcript and what is known of it besides its lines.

    `final` says that the agent has let go of the file, so that its last lines are recorded too; `live` that the agent
    is at work now, so that plan, todos and tasks are those of its last turn; `prompting` that a prompt has only just
    been given, which is then left to the next pass; `head` is the project's own commit; `folder` the client's, whose
    sidecar files are recorded too, and `client` the name of the agent. `at_rest` says that nobody has been at work
    since the last turn, so that plan, todos and tasks are those of it; `own` is the folder in which the client itself
    works, where that is another one than `folder`. `origins` says of turns, by the uuids of their prompts, by which
    event and from where a merge brought them. `place` is where the file belongs, for a state that would name this one
    otherwise, which is gone soon. `imported` says that the file is one of several copies, which are recorded as if all
    had come at once.
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
    client: str = DEFAULT
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
        """Whether the file is to be recorded with all other copies of the session's: one that is imported, or one that
        the client has let go of."""
        return self.imported or (self.final and self.is_in_place and not self.live)

    @property
    def is_in_place(self) -> bool:
        """Whether the file lies where the agent itself looks for it."""
        return agents.is_place(Client(self.agent, self.own or self.folder), self.path)


@dataclass(frozen=True, slots=True)
class RecordRules:
    """How to record. Whether a session is redacted is decided when its recording begins, and stays so."""

    granularity: str = "turn"
    redact: bool = True

    @property
    def stored(self) -> dict[str, int]:
        """The versions of the rules, as the state of a new session names them; 0 is none."""
        return {"cut": long_strings.RULES_VERSION, "redact": RULES_VERSION if self.redact else 0}


def rules_from_settings(settings: RecordConfig) -> RecordRules:
    """The rules that the settings name."""
    return RecordRules(settings.granularity, settings.redact)
