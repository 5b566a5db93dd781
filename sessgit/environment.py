"""The folders of this machine and the current session, as the environment of a process names them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sessgit import agents
from sessgit.model.frozen import frozen
from sessgit.store.context import Homes


@frozen
class Environment:
    """The user's home, the client's folder, the store, the current session, and whether recording is turned off."""

    home: Path
    homes: Homes
    store: Path
    session: str
    """The agent's id of the session whose client runs this process, or ""."""
    off: bool


def read(env: Mapping[str, str]) -> Environment:
    """Read the variables; the store is `SESSGIT_STORE`, else `session-store` in the folder of the default client."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    homes = agents.homes(env, home)
    store = Path(env.get("SESSGIT_STORE") or agents.client(homes).folder / "session-store").absolute()
    session = next(filter(None, (agent.current_session(env) for agent in agents.every())), "")
    return Environment(home, homes, store, session, env.get("SESSGIT_OFF") == "1")
