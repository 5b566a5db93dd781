"""The hooks of Codex: `hooks.json` in the form of Claude Code's settings, and the trust in them in `config.toml`.

Since 0.169 (`[features] hooks`, on by default) the client runs a hook of the user only if `config.toml` has the hash of
its normalized form under the key `PATH:EVENT:GROUP:HOOK`; it says nothing of the others. 0.118 knows no trust, and runs
hooks only with `[features] codex_hooks = true`, which newer versions call deprecated at each start.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sessgit.agents import hook_settings
from sessgit.agents.values import Document, Installation
from sessgit.errors import ConflictError
from sessgit.store.settings import Commented, Key, edited_toml

_DEFAULT_TIMEOUT, _AT_END = 600, 1
"""Seconds that the client gives a hook, and one of SessionEnd, if the entry names none."""
_OLD_FLAG = "codex_hooks"
_ADDED = "added by sessgit"
_ADDED_FLAG = re.compile(rf"^(?:features\.)?{_OLD_FLAG} = true # {_ADDED}(?:\r?\n|\Z)", re.MULTILINE)
_ADDED_TABLE = re.compile(
    rf"(?:^[ \t]*\r?\n)?^\[features\]\r?\n{_OLD_FLAG} = true # {_ADDED}, with its table(?:\r?\n|\Z)", re.MULTILINE
)
_SECONDS = 10.0


def settings_file(folder: Path) -> Path:
    """Return the file with the hooks in the client's folder."""
    return folder / "hooks.json"


def installed(settings: Mapping[str, Any]) -> Installation:
    """Return where our entries are."""
    return Installation(hook_settings.entries(settings))


def refusal(settings: Mapping[str, Any], folder: Path) -> str:
    """Return why the client runs none of our entries, or "" if it does: all hooks are off, or ours are not trusted."""
    features = _config(folder).get("features")
    if isinstance(features, dict) and (features.get("hooks") is False or features.get(_OLD_FLAG) is False):
        return f"{_config_file(folder)} turns all hooks off ([features])"
    return "you have not trusted the hooks in Codex" if untrusted(settings, folder) else ""


def untrusted(settings: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Return the events whose entry of ours the client does not run until the user trusts it."""
    known = _trusted(_config(folder))
    return tuple(event for event, key, digest in _hashes(settings, folder) if known.get(key) != digest)


def trust(settings: Mapping[str, Any], folder: Path, env: Mapping[str, str]) -> None:
    """Write the hashes of our entries into `config.toml`, as the client does when the user trusts them there, and turn
    hooks on for a version that has them off. Raises ConflictError, StoreError."""
    changes: dict[Key, object | None] = {
        ("hooks", "state", key, "trusted_hash"): digest for _, key, digest in _hashes(settings, folder)
    }
    features = _config(folder).get("features")
    if _needs_old_flag(env) and not (isinstance(features, dict) and _OLD_FLAG in features):
        changes["features", _OLD_FLAG] = Commented(
            True, _ADDED if features is not None else f"{_ADDED}, with its table"
        )
    _edit_config(folder, changes)


def distrust(settings: Mapping[str, Any], folder: Path) -> None:
    """Remove from `config.toml` what `trust` added: the hashes of our entries, and the feature."""
    config = _config(folder)
    known = _trusted(config)
    keys = [key for _, key, digest in _hashes(settings, folder) if known.get(key) == digest]
    if keys or "features" in config:
        _edit_config(folder, {("hooks", "state", key): None for key in keys}, _without_flag)


def with_status_line(settings: Mapping[str, Any], command: str) -> Document:
    """Raise ConflictError: the client runs no command for its status line."""
    raise ConflictError("Codex runs no command for its status line", "Leave out --statusline.")


def without_status_line(settings: Mapping[str, Any]) -> Document:
    """Return the settings as they are."""
    return dict(settings)


def cleanup_days(settings: Mapping[str, Any]) -> float:
    """Return infinity: the client deletes no rollouts."""
    return float("inf")


def _config_file(folder: Path) -> Path:
    return folder / "config.toml"


def _config(folder: Path) -> Document:
    """Return the client's configuration; empty if there is none that can be read."""
    try:
        return tomllib.loads(_config_file(folder).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _edit_config(folder: Path, changes: Mapping[Key, object | None], edit: Callable[[str], str] = str) -> None:
    """Change the client's configuration, its text before the values."""
    snapshot = hook_settings.read_file(_config_file(folder))
    try:
        before = (snapshot.content or b"").decode()
        text = edit(before)
        if text == before and not changes:
            return
        text = edited_toml(text, changes)
    except (ConflictError, UnicodeDecodeError) as error:
        hint = getattr(error, "hint", "") or "Nothing was changed. Fix the file first."
        raise ConflictError(f"{snapshot.path}: {error}", hint) from error
    content = text.rstrip()  # a removed table leaves its blank line
    end = "\n" if snapshot.content is None else before[len(before.rstrip()) :]
    if content or snapshot.content is not None:
        is_ours = not content and end == "\n"
        hook_settings.replace_file(snapshot, None if is_ours else f"{content}{end}".encode())


def _without_flag(text: str) -> str:
    return _ADDED_FLAG.sub("", _ADDED_TABLE.sub("", text))


def _trusted(config: Document) -> dict[str, str]:
    """Return the trusted hash by the key of each hook."""
    hooks = config.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    entries = state.items() if isinstance(state, dict) else ()
    return {key: str(each.get("trusted_hash", "")) for key, each in entries if isinstance(each, dict)}


def _hashes(settings: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the event, the key and the hash of each entry of ours.

    The client hashes canonical JSON of the event and the hook with its defaults filled in (measured with 0.169.0).
    """
    hooks = settings.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, place, hook in hook_settings.own_hooks(groups):
            handler = {
                "async": False,
                "command": hook["command"],
                "timeout": hook.get("timeout", _AT_END if event == "SessionEnd" else _DEFAULT_TIMEOUT),
                "type": "command",
            }
            document = json.dumps(
                {"event_name": label, "hooks": [handler]}, ensure_ascii=False, separators=(",", ":"), sort_keys=True
            )
            key = f"{settings_file(folder)}:{label}:{number}:{place}"
            yield event, key, f"sha256:{hashlib.sha256(document.encode()).hexdigest()}"


def _needs_old_flag(env: Mapping[str, str]) -> bool:
    """Return whether the client on the PATH has hooks only as the feature that 0.118 has."""
    program = shutil.which("codex", path=env.get("PATH"))
    if program is None:
        return False
    try:
        done = subprocess.run(
            [program, "features", "list"], env=dict(env), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return any(line.split()[:1] == [_OLD_FLAG] for line in done.stdout.splitlines())
