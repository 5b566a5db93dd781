"""The agents whose conversations can be recorded: one package each, which holds all that knows the client."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.store.layout import session_of

if TYPE_CHECKING:
    from sessgit.agents.base import Agent
    from sessgit.model.conversation.session import Session
    from sessgit.store.sqlite.rows import Row
    from sessgit.store.store import Store

PACKAGES = {"claude": "sessgit.agents.claude"}
"""The package of each agent by the name that the state of a session has; each is loaded when it is asked for."""
DEFAULT = "claude"
"""The agent of a state that names none, and in whose form programs and other systems write sessions."""


@cache
def named(name: str) -> Agent:
    """The agent with a name."""
    agent: Agent = importlib.import_module(PACKAGES.get(name) or PACKAGES[DEFAULT]).AGENT
    return agent


def every() -> list[Agent]:
    """All agents."""
    return [named(name) for name in PACKAGES]


def of_programs() -> Agent:
    """The agent in whose form programs and other systems write sessions."""
    return named(DEFAULT)


def of(state: Session) -> Agent:
    """The agent that a session was held with."""
    return named(state.agent)


def of_turn(store: Store, row: Row) -> Agent:
    """The agent that a turn was held with."""
    return named(store.agent(session_of(row.branch), row.commit))


def of_commit(store: Store, commit: str) -> Agent:
    """The agent whose turns a commit holds."""
    return of(store.state(commit))


def of_file(path: Path) -> Agent:
    """The agent that wrote a transcript, wherever that lies: the first one that takes the file for its own."""
    return next((agent for agent in every() if agent.is_own(path)), named(DEFAULT))


def at(folder: Path) -> Agent:
    """The agent that keeps its files in a folder: the first one that takes the folder for its own."""
    return next((agent for agent in every() if agent.is_home(folder)), named(DEFAULT))
