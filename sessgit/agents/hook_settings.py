"""The hooks in a client's settings file, which people and the client itself edit too.

What is not ours stays as it is, byte for byte: foreign hooks, unknown keys, the layout. An entry is ours by the form of
its command, so that what another version or another store has left is recognised as well.
"""

from __future__ import annotations

import codecs
import difflib
import errno
import json
import os
import re
import shlex
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any, NamedTuple

from sessgit.agents.values import Document, Snapshot
from sessgit.errors import ROOM, ConflictError, StoreError, UsageError
from sessgit.store import private_files

# A store on a disk that hangs, or a client that never ends the hook's input (some versions), costs five
# seconds and not the client's own limit of 30 to 600. SessionEnd gets none: its limit of 1.5 seconds is
# tighter, and a timeout there raises it for the hooks of everybody.
TIMEOUT = 5
_WITHOUT_TIMEOUT = ("SessionEnd",)

# One name that a client does not know disables all hooks in some versions of Claude Code; these are known to every
# version. Codex 0.118 runs the first three and passes over names that it does not know.
HOOK_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd")
CELL_EVENTS = (*HOOK_EVENTS, "PostToolUse")

_STALE = 600.0

_COMMAND = re.compile(r"\[ -r (?P<stub>.+) \] && sh (?P=stub)( \|\| cat >/dev/null)?; exit 0", re.DOTALL)
"""Also in the form of older versions, which leaves the event unread where there is no stub."""


_STATUS_LINE = " -P -m sessgit prompt --statusline"


def stub_command(stub: Path) -> str:
    """Return the command that runs the stub while it is there, and succeeds in any case.

    Where there is no stub it reads the event all the same: a client that cannot write all of it may die of that.
    """
    if not stub.is_absolute():
        raise UsageError(f"the stub needs an absolute path, not {str(stub)!r}")
    quoted = shlex.quote(str(stub))
    return f"[ -r {quoted} ] && sh {quoted} || cat >/dev/null; exit 0"


def status_line_command(store: Path, python: str) -> str:
    """Return the command that prints the status line while the interpreter is there, and succeeds in any case."""
    program = f"SESSGIT_STORE={shlex.quote(str(store))} {shlex.quote(python)}{_STATUS_LINE} 2>/dev/null"
    return f"[ -x {shlex.quote(python)} ] && {program} || cat >/dev/null; exit 0"


def is_status_line_command(command: object) -> bool:
    """Return whether a command has the form above, for any store and interpreter."""
    return isinstance(command, str) and command.startswith("[ -x ") and f"{_STATUS_LINE} 2>/dev/null ||" in command


def stub_of(hook: object) -> str | None:
    """Return the stub that the command of a hook runs in the form above, or None for any other hook."""
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str) or not (match := _COMMAND.fullmatch(command)):
        return None
    try:
        words = shlex.split(match["stub"])
    except ValueError:
        return None
    return words[0] if len(words) == 1 and re.match(r"/(.*/)?hook\Z", words[0], re.DOTALL) else None


def with_hooks(settings: Mapping[str, Any], command: str, events: Iterable[str]) -> Document:
    """Return the settings with exactly one entry of ours for each of `events` and none for others.

    An entry that is there already keeps its place; one that runs another stub is turned to this one.
    """
    own_events = tuple(events)
    result = dict(settings)
    hooks = _hooks(settings)
    for event in list(hooks):
        if event in own_events:
            hooks[event] = _pointed(hooks[event], command)
        elif rest := _pointed(hooks[event], None):
            hooks[event] = rest
        elif hooks[event]:
            del hooks[event]
    for event in own_events:
        groups = hooks.setdefault(event, [])
        if not any(map(stub_of, _commands(groups))):
            hooks[event] = [*groups, {"hooks": [_entry(event, command)]}]
    if hooks or "hooks" in settings:
        result["hooks"] = hooks
    return result


def without_hooks(settings: Mapping[str, Any]) -> Document:
    """Return the settings without our entries, and without the lists and objects that were empty but for them."""
    result = dict(settings)
    before = settings.get("hooks")
    if not isinstance(before, dict):
        return result
    hooks = {event: rest for event, groups in before.items() if (rest := _pointed(groups, None)) or not groups}
    if hooks or not before:
        result["hooks"] = hooks
    else:
        del result["hooks"]
    return result


def entries(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the event and the stub of each of our entries; what lacks the client's shape is passed over."""
    hooks = settings.get("hooks")
    return tuple(
        (event, stub)
        for event, groups in (hooks.items() if isinstance(hooks, dict) else ())
        for hook in _commands(groups)
        if (stub := stub_of(hook))
    )


def _entry(event: str, command: str) -> Document:
    entry: Document = {"type": "command", "command": command}
    if event not in _WITHOUT_TIMEOUT:
        entry["timeout"] = TIMEOUT
    return entry


def _hooks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the hooks that can be added to, or a refusal: the client ignores what has another shape."""
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise ConflictError('"hooks" in the settings is not an object', "fix it by hand first")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise ConflictError(f'"hooks.{event}" in the settings is not a list', "fix it by hand first")
    return dict(hooks)


def own_hooks(groups: object) -> Iterator[tuple[int, int, Document]]:
    """Yield our entries of an event: the number of the group, the place in it, and the entry."""
    for number, group in enumerate(groups if isinstance(groups, list) else ()):
        for place, hook in enumerate(_commands([group])):
            if stub_of(hook):
                yield number, place, hook


def _commands(groups: object) -> list[Document]:
    """Return the hooks of an event's groups, as far as they have the client's shape."""
    return [
        hook
        for group in (groups if isinstance(groups, list) else ())
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        for hook in group["hooks"]
        if isinstance(hook, dict)
    ]


def _pointed(groups: Any, command: str | None) -> Any:
    """Return an event's groups in which the first entry of ours runs `command`, and any further one is gone, as are
    groups in which nothing else was; without a command every entry of ours is gone."""
    if not isinstance(groups, list):
        return groups
    result = []
    has_own = command is None
    for group in groups:
        if not any(map(stub_of, _commands([group]))):
            result.append(group)
            continue
        hooks = []
        for hook in group["hooks"]:
            if not stub_of(hook):
                hooks.append(hook)
            elif not has_own:
                has_own = True
                hooks.append({**hook, "command": command})
        if hooks:
            result.append({**group, "hooks": hooks})
    return result


def read(path: Path) -> Snapshot:
    """Return the settings, empty if there is no file; a file that cannot be written back unharmed is refused."""
    snapshot = read_file(path)
    return replace_fields(snapshot, document=_parse(path, snapshot.content or b""))


def read_file(path: Path) -> Snapshot:
    """Return a file of the client's, with an empty document. Raises StoreError, ConflictError."""
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
    return Snapshot(path, target, content, {})


def replace(snapshot: Snapshot, document: Mapping[str, Any], *, keep_empty: bool = True) -> bool:
    """Return whether the file had to change; it then holds `document`, put there in one step. What has not changed
    keeps its layout.

    A program that wrote to it since it was read wins: ConflictError, and nothing is changed. A file that holds
    equal settings is left alone, however it is laid out. Without `keep_empty` a file that would hold nothing
    is removed, unless a symlink leads to it: it belongs to a collection of settings.
    """
    if document == snapshot.document:
        return False
    is_empty = not document and not keep_empty and not snapshot.path.is_symlink()
    replace_file(snapshot, None if is_empty else _layout(snapshot, document))
    return True


def replace_file(snapshot: Snapshot, content: bytes | None) -> None:
    """Give a file new content in one step, or remove it if that is None. Raises ConflictError if another program wrote
    to it since it was read, StoreError."""
    try:
        if content is None:
            _unchanged(snapshot)
            snapshot.target.unlink()
            return
        private_files.make_folder(snapshot.target.parent)
        _swap(snapshot, content)
    except FileNotFoundError as error:
        raise ConflictError(f"{snapshot.path} was just removed", "try again") from error
    except OSError as error:
        raise StoreError(f"cannot write {snapshot.path}: {error.strerror or error}", ROOM) from error


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
    """Return the client takes the last of two equal keys; writing the file back would lose the first."""
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
    """Return the file's text with what has changed; if there is none to change, a new one."""
    before = snapshot.content or b""
    mark = codecs.BOM_UTF8 if before.startswith(codecs.BOM_UTF8) else b""
    text, new = before[len(mark) :].decode(), json_text(document) + "\n"
    if text.strip():
        with suppress(ValueError, RecursionError):  # where it cannot be changed in its places
            new = edited_json(text, snapshot.document, document)
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


_BLANK = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


def edited_json(text: str, before: Any, after: Any) -> str:
    """Return a text of `after`, made of one of `before`: what stays the same keeps its bytes, however it is laid out.

    Raises ValueError if that is impossible, for example because keys have changed places.
    """
    start = _skip_blanks(text, 0)
    new = text[:start] + _Editor(text).edited(start, before, after) + text[_end(text, start) :]
    if json.dumps(json.loads(new)) != json.dumps(after):
        raise ValueError("the text cannot be changed in its places")
    return new


def json_text(value: Any, indent: str = "  ", newline: str = "\n") -> str:
    """Return a new text of a value; a lone surrogate, which UTF-8 cannot hold, is an escape."""
    text = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, indent=indent, ensure_ascii=False))
    return text.replace("\n", newline)


class _Part(NamedTuple):
    """A member of an object or an item of a list: the blanks around it, its key, and where its value begins."""

    lead: str
    head: str
    key: str
    value: int
    trail: str


class _Editor:
    """Edits one text with its own line ends and indentation."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        match = _INDENT.search(text)
        self.indent = match[1] if match else "  "

    def edited(self, at: int, before: Any, after: Any) -> str:
        """Return the text of a value, made of that of another one which begins at `at`."""
        end = _end(self.text, at)
        if before == after:
            return self.text[at:end]
        parts = list(self._parts(at)) if isinstance(before, dict | list) else []
        if isinstance(before, dict) and isinstance(after, dict):
            kept = [(part, before[part.key], after[part.key]) for part in parts if part.key in after]
            new = [f"{json_text(key)}: {self._new(at, after[key])}" for key in after if key not in before]
        elif isinstance(before, list) and isinstance(after, list):
            pairs = list(_aligned(before, after))
            kept = [(parts[source], before[source], after[place]) for source, place in pairs if source is not None]
            new = [self._new(at, after[place]) for source, place in pairs if source is None]
        else:
            return self._new(at, after)
        inner = self._joined(parts, kept, new) if kept else self._filled(at, new)
        return f"{self.text[at]}{inner}{self.text[end - 1]}"

    def _joined(self, parts: Sequence[_Part], kept: Sequence[tuple[_Part, Any, Any]], new: Sequence[str]) -> str:
        """Return the kept parts with their blanks, and the new ones after them."""
        blank = parts[0].lead or (" " if len(parts) < 2 or parts[1].lead.endswith(" ") else "")
        pieces = [f"{part.lead}{part.head}{self.edited(part.value, *values)}{part.trail}" for part, *values in kept]
        first, last = kept[0][0], kept[-1][0]
        pieces[0] = parts[0].lead + pieces[0][len(first.lead) :]
        pieces[-1] = pieces[-1][: len(pieces[-1]) - len(last.trail)]
        return ",".join([*pieces, *(blank + one for one in new)]) + parts[-1].trail

    def _filled(self, at: int, new: Sequence[str]) -> str:
        """Return what goes between the brackets of a list or object that is empty otherwise."""
        if not new:
            return ""
        margin = self._margin(at)
        inner = f"{self.newline}{margin}{self.indent}"
        return f"{inner}{f',{inner}'.join(new)}{self.newline}{margin}"

    def _new(self, at: int, value: Any) -> str:
        """Return a new value in the list or object at `at`, indented as its neighbours."""
        text = json_text(value, self.indent, self.newline)
        return text.replace(self.newline, f"{self.newline}{self._margin(at)}{self.indent}")

    def _margin(self, at: int) -> str:
        """Return the blanks at the beginning of the line."""
        start = self.text.rfind("\n", 0, at) + 1
        return self.text[start : min(at, _skip_blanks(self.text, start))]

    def _parts(self, at: int) -> Iterator[_Part]:
        """Yield the members or items of the object or list at `at`."""
        text, place = self.text, at + 1
        while text[start := _skip_blanks(text, place)] not in "}]":
            key, value = "", start
            if text[at] == "{":
                key, end = _DECODER.raw_decode(text, start)
                value = _skip_blanks(text, _skip_blanks(text, end) + 1)  # over the colon
            end = _end(text, value)
            after = _skip_blanks(text, end)
            yield _Part(text[place:start], text[start:value], key, value, text[end:after])
            place = after + (text[after] == ",")


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _end(text: str, at: int) -> int:
    end: int = _DECODER.raw_decode(text, at)[1]
    return end


def _aligned(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[int | None, int]]:
    """Yield for each item of a list the item of the old one that it is, or is made of, or None if it is new."""
    old, new = ([json.dumps(item) for item in items] for items in (before, after))
    for _, n, n_end, m, m_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for offset in range(m_end - m):
            yield (n + offset if n + offset < n_end else None), m + offset
