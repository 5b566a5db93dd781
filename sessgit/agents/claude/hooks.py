"""The hooks in Claude Code's settings file, and the plugin that runs them in its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sessgit.agents import hook_settings
from sessgit.agents.hook_settings import entries
from sessgit.agents.values import Document, Installation
from sessgit.errors import ConflictError

PLUGIN = "sessgit"

CLEANUP_DAYS = 30
"""What the client takes where its settings do not say."""
_LONGEST = 365_000


def installed(settings: Mapping[str, Any]) -> Installation:
    """Return where our entries are; what lacks the client's shape is passed over."""
    plugins = settings.get("enabledPlugins")
    enabled = plugins.items() if isinstance(plugins, dict) else ()
    plugin = next((key for key, on in enabled if on and key.partition("@")[0] == PLUGIN), "")
    return Installation(entries(settings), plugin, _is_our_status_line(settings.get("statusLine")))


def refusal(settings: Mapping[str, Any], folder: Path) -> str:
    """Return why the client runs none of our entries, or "" if it does."""
    return (
        "the client's settings disable all hooks (disableAllHooks)" if settings.get("disableAllHooks") is True else ""
    )


def untrusted(settings: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Return no event: the client runs every entry of the user's own settings."""
    return ()


def trust(settings: Mapping[str, Any], folder: Path, env: Mapping[str, str]) -> None:
    """Do nothing."""


def distrust(settings: Mapping[str, Any], folder: Path) -> None:
    """Do nothing."""


def settings_file(folder: Path) -> Path:
    """Return the file with the hooks in the client's folder."""
    return folder / "settings.json"


def with_status_line(settings: Mapping[str, Any], command: str) -> Document:
    """Return the settings with our status line. Raises ConflictError if they have another one."""
    if "statusLine" in settings and not _is_our_status_line(settings["statusLine"]):
        raise ConflictError(
            "the settings have another status line",
            "remove it first, or have it run `sessgit prompt --statusline` with its standard input",
        )
    return {**settings, "statusLine": {"type": "command", "command": command}}


def without_status_line(settings: Mapping[str, Any]) -> Document:
    """Return the settings without our status line; another one stays."""
    ours = _is_our_status_line(settings.get("statusLine"))
    return {key: value for key, value in settings.items() if key != "statusLine" or not ours}


def _is_our_status_line(line: object) -> bool:
    return isinstance(line, dict) and hook_settings.is_status_line_command(line.get("command"))


def cleanup_days(settings: Mapping[str, Any]) -> float:
    """Return after how many days without a change the client deletes a transcript, when it starts."""
    days = settings.get("cleanupPeriodDays")
    if not isinstance(days, int | float) or isinstance(days, bool) or not days >= 0:
        return CLEANUP_DAYS
    return min(days, _LONGEST)
