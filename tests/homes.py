"""The folders of clients, as operations take them."""

from __future__ import annotations

from pathlib import Path

from sessgit import agents
from sessgit.agents import Client
from sessgit.store.context import Homes


def claude_homes(folder: Path) -> Homes:
    """Return the folders of a machine on which Claude Code keeps its files in `folder`."""
    return Homes({"claude": folder})


def claude_client(folder: Path) -> Client:
    """Return Claude Code with its files in `folder`."""
    return agents.client(claude_homes(folder))
