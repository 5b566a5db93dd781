"""The hooks in Claude Code's settings file, and the plugin that runs them in its place."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sessgit.agents import hook_settings
from sessgit.agents.hook_settings import entries
from sessgit.agents.values import Document, Installation, PluginQuestion
from sessgit.errors import ConflictError
from sessgit.model.stored_fields import string

PLUGIN = "sessgit"
_ANSWERED = {f"/{PLUGIN}:{name}": name for name in ("log", "search")}

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


# The plugin of this repository, in the place of hooks in the settings


def disabled(settings: Mapping[str, Any], key: str) -> Document:
    """Return the settings with the plugin disabled, as `claude plugin disable` leaves them."""
    return {**settings, "enabledPlugins": {**settings["enabledPlugins"], key: False}}


def folder(config: Path, key: str) -> Path | None:
    """Return the folder of an enabled plugin in its marketplace, or None if the client does not know the marketplace.

    All versions write where a marketplace is into `plugins/known_marketplaces.json`; it may be gone since.
    """
    try:
        place = _object(config / "plugins" / "known_marketplaces.json")[key.partition("@")[2]]["installLocation"]
        return Path(place) / "hooks" if isinstance(place, str) and "\0" not in place else None
    except (KeyError, TypeError):
        return None


def version(plugin: Path) -> str | None:
    """Return the version in the manifest of a plugin's folder, or None where there is no manifest."""
    manifest = _object(plugin / ".claude-plugin" / "plugin.json")
    return str(manifest.get("version", "")) if manifest else None


def question(event: Mapping[str, Any]) -> PluginQuestion | None:
    """Return the command of `/sessgit:log` or `/sessgit:search`, with its arguments split as a shell does."""
    name, _, rest = string(event, "prompt").strip().partition(" ")
    if name not in _ANSWERED:
        return None
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()
    session = {"CLAUDE_CODE_SESSION_ID": string(event, "session_id")}  # which 2.0 does not give to its hooks
    return PluginQuestion((_ANSWERED[name], *words), string(event, "cwd"), session)


def answer(text: str) -> str:
    """Return the decision that blocks a prompt, with the text as its reason."""
    return json.dumps({"decision": "block", "reason": f"\n{text}"})


def _object(path: Path) -> Document:
    """Return the object that a file of the client's holds, empty if it is unreadable or holds none."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
