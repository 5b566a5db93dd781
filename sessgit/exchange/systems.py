"""The systems whose sessions can be brought in and told in their layout, by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from sessgit.errors import UsageError
from sessgit.model.foreign_session import ForeignFolder, ForeignSession

SYSTEMS = {"rlm": "rlm.sessions", "dialectic": "dialectic.sessions", "apex": "apex.sessions", "io-log": "iolog"}
"""By name the module of `exchange.layouts` that reads and writes its layout."""


def read(system: str, folder: Path) -> ForeignFolder:
    """What a folder of the system holds; raises NotFoundError where it is none, UsageError for a name of no system."""
    found: ForeignFolder = _module(system).read(folder)
    return found


def write(system: str, session: ForeignSession) -> Mapping[str, bytes]:
    """The files of a session in the layout of a system that takes nothing but the session itself."""
    files: Mapping[str, bytes] = _module(system).write(session)
    return files


def _module(system: str) -> Any:
    if system not in SYSTEMS:
        raise UsageError(f"unknown system “{system}”", f"SYSTEM is one of {', '.join(sorted(SYSTEMS))}.")
    return import_module(f"sessgit.exchange.layouts.{SYSTEMS[system]}")
