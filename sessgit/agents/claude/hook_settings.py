"""The hooks in the client's settings file, which people and the client itself edit too.

What is not ours stays as it is, byte for byte: foreign hooks, unknown keys, the layout. An entry is ours by the form of
its command, so that what another version or another store has left is recognised as well.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import shlex
import stat
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessgit.agents.claude import json_edit
from sessgit.agents.values import Document, Installation, Snapshot
from sessgit.errors import ROOM, ConflictError, StoreError, UsageError
from sessgit.store.files import private

# One name that a client does not know disables all hooks in some versions; these are known to every version.
HOOK_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd")
CELL_EVENTS = (*HOOK_EVENTS, "PostToolUse")

# A store on a disk that hangs, or a client that never ends the hook's input (some versions), costs five
# seconds and not the client's own limit of 30 to 600. SessionEnd gets none: its limit of 1.5 seconds is
# tighter, and a timeout there raises it for the hooks of everybody.
TIMEOUT = 5
_WITHOUT_TIMEOUT = ("SessionEnd",)

PLUGIN = "sessgit"

CLEANUP_DAYS = 30
"""What the client takes where its settings do not say."""
_LONGEST = 365_000
_STALE = 600.0

_COMMAND = re.compile(r"\[ -r (?P<stub>.+) \] && sh (?P=stub)( \|\| cat >/dev/null)?; exit 0", re.DOTALL)
"""Also in the form of older versions, which leaves the event unread where there is no stub."""


def stub_command(stub: Path) -> str:
    """The command that runs the stub while it is there, and succeeds in any case.

    Where there is no stub it reads the event all the same: a client that cannot write all of it may die of that.
    """
    if not stub.is_absolute():
        raise UsageError(f"the stub needs an absolute path, not {str(stub)!r}")
    quoted = shlex.quote(str(stub))
    return f"[ -r {quoted} ] && sh {quoted} || cat >/dev/null; exit 0"


def stub_of(command: object) -> str | None:
    """The stub that a command runs in the form above, or None for any other command."""
    if not isinstance(command, str) or not (match := _COMMAND.fullmatch(command)):
        return None
    try:
        words = shlex.split(match["stub"])
    except ValueError:
        return None
    return words[0] if len(words) == 1 and re.match(r"/(.*/)?hook\Z", words[0], re.DOTALL) else None


def with_hooks(settings: Mapping[str, Any], command: str, events: Iterable[str] = HOOK_EVENTS) -> Document:
    """The settings with exactly one entry of ours for each of `events` and none for others.

    An entry that is there already keeps its place; one that runs another stub is turned to this one.
    """
    wanted = tuple(events)
    result = dict(settings)
    hooks = _hooks(settings)
    for event in list(hooks):
        if event in wanted:
            hooks[event] = _pointed(hooks[event], command)
        elif rest := _without(hooks[event]):
            hooks[event] = rest
        elif hooks[event]:
            del hooks[event]
    for event in wanted:
        groups = hooks.setdefault(event, [])
        if not any(stub_of(hook.get("command")) for hook in _commands(groups)):
            hooks[event] = [*groups, {"hooks": [_entry(event, command)]}]
    if hooks or "hooks" in settings:
        result["hooks"] = hooks
    return result


def without_hooks(settings: Mapping[str, Any]) -> Document:
    """The settings without our entries, and without the lists and objects that were empty but for them."""
    result = dict(settings)
    before = settings.get("hooks")
    if not isinstance(before, dict):
        return result
    hooks = {event: rest for event, groups in before.items() if (rest := _without(groups)) or not groups}
    if hooks or not before:
        result["hooks"] = hooks
    else:
        del result["hooks"]
    return result


def installed(settings: Mapping[str, Any]) -> Installation:
    """Where our entries are; what lacks the client's shape is passed over."""
    hooks = settings.get("hooks")
    entries = tuple(
        (event, stub)
        for event, groups in (hooks.items() if isinstance(hooks, dict) else ())
        for hook in _commands(groups)
        if (stub := stub_of(hook.get("command")))
    )
    plugins = settings.get("enabledPlugins")
    enabled = plugins.items() if isinstance(plugins, dict) else ()
    plugin = next((key for key, on in enabled if on and key.partition("@")[0] == PLUGIN), "")
    return Installation(entries, settings.get("disableAllHooks") is True, plugin)


def cleanup_days(settings: Mapping[str, Any]) -> float:
    """After how many days without a change the client deletes a transcript, when it starts."""
    days = settings.get("cleanupPeriodDays")
    if not isinstance(days, int | float) or isinstance(days, bool) or not days >= 0:
        return CLEANUP_DAYS
    return min(days, _LONGEST)


def _entry(event: str, command: str) -> Document:
    entry: Document = {"type": "command", "command": command}
    if event not in _WITHOUT_TIMEOUT:
        entry["timeout"] = TIMEOUT
    return entry


def _hooks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the hooks that can be added to, or a refusal: the client ignores what has another shape."""
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise ConflictError('"hooks" in the settings is not an object', "fix it by hand first")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise ConflictError(f'"hooks.{event}" in the settings is not a list', "fix it by hand first")
    return dict(hooks)


def _commands(groups: object) -> list[Document]:
    """The hooks of an event's groups, as far as they have the client's shape."""
    return [
        hook
        for group in (groups if isinstance(groups, list) else ())
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        for hook in group["hooks"]
        if isinstance(hook, dict)
    ]


def _ours(hook: object) -> bool:
    return isinstance(hook, dict) and stub_of(hook.get("command")) is not None


def _without(groups: Any) -> Any:
    """An event's groups without our entries, and without groups in which nothing else was."""
    if not isinstance(groups, list) or not any(_ours(hook) for hook in _commands(groups)):
        return groups
    rest = []
    for group in groups:
        if isinstance(group, dict) and isinstance(group.get("hooks"), list) and group["hooks"]:
            hooks = [hook for hook in group["hooks"] if not _ours(hook)]
            if not hooks:
                continue
            if len(hooks) < len(group["hooks"]):
                rest.append({**group, "hooks": hooks})
                continue
        rest.append(group)
    return rest


def _pointed(groups: list[Any], command: str) -> list[Any]:
    """An event's groups in which the first entry of ours runs `command` and any further one is gone."""
    result = []
    seen = False
    for group in groups:
        if not any(_ours(hook) for hook in _commands([group])):
            result.append(group)
            continue
        hooks = []
        for hook in group["hooks"]:
            if not _ours(hook):
                hooks.append(hook)
            elif not seen:
                seen = True
                hooks.append({**hook, "command": command})
        if hooks:
            result.append({**group, "hooks": hooks})
    return result


def read(path: Path) -> Snapshot:
    """The settings, empty if there is no file; a file that cannot be written back unharmed is refused."""
    try:
        target = path.resolve()
        if target.is_symlink():  # from Python 3.13 on a circle of symlinks is resolved as far as that goes
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        content = target.read_bytes() if target.is_file() else None
        if content is None and target.exists():
            raise ConflictError(f"{path} is not a file", "move it away first")
    except (OSError, RuntimeError) as error:  # RuntimeError: symlinks in a circle
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StoreError(f"cannot read {path}: {why}", "Is the file yours?") from error
    return Snapshot(path, target, content, _parse(path, content or b""))


def replace(snapshot: Snapshot, document: Mapping[str, Any], *, keep_empty: bool = True) -> bool:
    """Whether the file had to change; it then holds `document`, put there in one step. What has not changed keeps its
    layout.

    Whoever has written to it since it was read wins: ConflictError, and nothing is changed. A file that holds
    equal settings is left alone, however it is laid out. Without `keep_empty` a file that would hold nothing
    is removed, unless a symlink leads to it: that one belongs to somebody's collection.
    """
    if document == snapshot.document:
        return False
    try:
        if not document and not keep_empty and not snapshot.path.is_symlink():
            _unchanged(snapshot)
            snapshot.target.unlink()
            return True
        content = _layout(snapshot, document)
        private.folder(snapshot.target.parent)
        _swap(snapshot, content)
    except FileNotFoundError as error:
        raise ConflictError(f"{snapshot.path} was just removed", "try again") from error
    except OSError as error:
        raise StoreError(f"cannot write {snapshot.path}: {error.strerror or error}", ROOM) from error
    return True


def _parse(path: Path, content: bytes) -> Document:
    hint = "nothing was changed; fix the file by hand first (JSON has no comments)"
    if not content.strip(b" \t\r\n"):
        return {}
    try:
        document = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_unique,
            parse_constant=_refuse,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise ConflictError(f"{path} is not valid JSON: {error}", hint) from error
    if not isinstance(document, dict):
        raise ConflictError(f"{path} is not a JSON object", hint)
    return document


def _unique(pairs: list[tuple[str, Any]]) -> Document:
    """The client takes the last of two equal keys; writing the file back would lose the first."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("an object has a duplicate key")
    return document


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(text: str) -> float:
    if (number := float(text)) in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large a number")
    return number


def _layout(snapshot: Snapshot, document: Mapping[str, Any]) -> bytes:
    """The file's text with what has changed; where there is none to change, a new one."""
    before = snapshot.content or b""
    mark = codecs.BOM_UTF8 if before.startswith(codecs.BOM_UTF8) else b""
    text, new = before[len(mark) :].decode(), json_edit.written(document) + "\n"
    if text.strip():
        with suppress(ValueError, RecursionError):  # where it cannot be changed in its places
            new = json_edit.changed(text, snapshot.document, document)
    return mark + new.encode()


def _swap(snapshot: Snapshot, content: bytes) -> None:
    target = snapshot.target
    for left in target.parent.glob(f".{target.name}.????????"):  # by one that was killed
        with suppress(OSError):
            if abs(time.time() - left.stat().st_mtime) > _STALE:
                left.unlink()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if snapshot.content is not None:
                state = target.stat()
                os.fchmod(handle, stat.S_IMODE(state.st_mode))
                if (state.st_uid, state.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(handle, state.st_uid, state.st_gid)
            file.flush()
            os.fsync(handle)
        _unchanged(snapshot)
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _unchanged(snapshot: Snapshot) -> None:
    if (snapshot.target.read_bytes() if snapshot.target.exists() else None) != snapshot.content:
        raise ConflictError(f"another program just changed {snapshot.path}", "try again")
