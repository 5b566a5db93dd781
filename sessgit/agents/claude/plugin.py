"""The plugin of this repository in Claude Code."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sessgit.agents.values import Document, PluginQuestion
from sessgit.model.stored_fields import string

_ANSWERED = {f"/sessgit:{name}": name for name in ("log", "search")}


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
