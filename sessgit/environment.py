"""Where things lie on this machine, as the environment of a process says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Environment:
    """The user's home, the client's folder, the store, and whether the environment says that nothing is recorded."""

    home: Path
    config: Path
    store: Path
    off: bool


def read(env: Mapping[str, str]) -> Environment:
    """What the variables say: `SESSGIT_STORE`, else `session-store` in `CLAUDE_CONFIG_DIR`, else in `~/.claude`."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    config = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude").absolute()
    store = Path(env.get("SESSGIT_STORE") or config / "session-store").absolute()
    return Environment(home, config, store, env.get("SESSGIT_OFF") == "1")
