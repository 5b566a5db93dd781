"""Starting a recorder without a hook: a command does so where events wait and the recorder that was to come is dead."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_INHERITED_ENV = ("HOME", "PATH", "CLAUDE_CONFIG_DIR", "TMPDIR", "LANG")
"""The variables that a recorder gets, as from the stub: others may hold API keys."""
_BACKGROUND_SCRIPT = "trap '' HUP; cd /; \"$@\" &"


def recorder_command(store: Path, python: str) -> list[str]:
    """Return the command that runs a recorder."""
    return [python, "-P", "-m", "sessgit.recorder", str(store)]


def recorder_environment(store: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that a recorder gets."""
    return {key: env[key] for key in _INHERITED_ENV if key in env} | {"SESSGIT_STORE": str(store)}


def start_if_needed(store: Path, python: str, env: Mapping[str, str]) -> None:
    """Start a recorder in the background if events wait. It exits at once where another one is about to read them.

    It is no child of this process, which need not reap it. Where it cannot be started, the events wait for a hook.
    """
    with suppress(OSError):
        if any(name.endswith(".json") for name in os.listdir(store / "spool")):  # noqa: PTH208 - without a Path for each
            nowhere = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in range(3)]
            shell = ["sh", "-c", _BACKGROUND_SCRIPT, "sh", *recorder_command(store, python)]
            child = os.posix_spawn("/bin/sh", shell, recorder_environment(store, env), file_actions=nowhere)
            os.waitpid(child, 0)
