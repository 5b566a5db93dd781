"""The commands that the page runs, to change the store or to ask it: each as typed by a person, in its own process.

The page sends values, never a command line. What it shows is what runs, but for --json.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sessgit.errors import UsageError
from sessgit.model.frozen import frozen
from sessgit.model.humanize import quote_for_shell

Values = Mapping[str, object]

_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}(@[0-9]{1,9}(\.[0-9]{1,9})?)?")
_CELL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_OPERATION = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{3,63}")
_LABEL = re.compile(r"[+-]?[^\s+,-][^\s,]{0,99}")
_MODES = ("summary", "graft")
_LONGEST = 2000


@frozen
class Outcome:
    """How a command ended: its exit code, the document that it printed, and what it said on standard error."""

    exit_code: int
    document: Mapping[str, Any]
    remarks: str


def arguments(name: str, values: Values, *, dry_run: bool = False) -> list[str]:
    """Return the words of a command line after `sessgit`; raises UsageError for values that the command cannot have."""
    if name not in _COMMANDS:
        raise UsageError(f"the page has no command “{name[:40]}”.", "")
    if dry_run and name not in DRY_RUNS:
        raise UsageError(f"{name} has no dry run.", "")
    return [name, *_COMMANDS[name](values), *(["--dry-run"] if dry_run else [])]


def question(name: str, values: Values) -> list[str]:
    """Return the words of a command that only reads; raises UsageError for values that the command cannot have."""
    if name not in _QUESTIONS:
        raise UsageError(f"the page does not ask “{name[:40]}”.", "")
    return [name, *_QUESTIONS[name](values)]


def command_line(words: Sequence[str]) -> str:
    """Return a command as a person types it in a shell."""
    return " ".join(["sessgit", *map(quote_for_shell, words)])


async def run(words: Sequence[str], cwd: str, env: Mapping[str, str]) -> Outcome:
    """Run a command and return how it ended. It cannot ask anything, and modules in `cwd` are not imported."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "sessgit", *words, "--json",
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    try:
        document = json.loads(out)
    except ValueError:
        document = {}
    return Outcome(process.returncode or 0, document, err.decode("utf-8", "replace"))


def _fork(values: Values) -> list[str]:
    at, name = _text(values, "at", _CELL), _free_text(values, "name")
    return [_address(values, "address"), *(["--at", at] if at else []), *([f"--name={name}"] if name else [])]


def _merge(values: Values) -> list[str]:
    mode = _text(values, "mode", re.compile("|".join(_MODES)))
    sides = {"ours": ["--ours"], "theirs": ["--theirs"], "": []}
    conflicts = _text(values, "conflicts", re.compile("ours|theirs"))
    return [
        _address(values, "theirs"), "--into", _address(values, "into"), *(["--mode", mode] if mode else []),
        *sides[conflicts], *_new(values),
    ]  # fmt: skip


def _pick(values: Values) -> list[str]:
    return [_address(values, "address"), "--into", _address(values, "into"), *_new(values)]


def _new(values: Values) -> list[str]:
    """Return --new with its optional name."""
    name = _free_text(values, "name")
    return [f"--new={name}" if name else "--new"] if values.get("new") is True else []


def _rename(values: Values) -> list[str]:
    name = _free_text(values, "name")
    if name.startswith("-"):
        raise UsageError("a name does not start with -.", "Choose another name.")
    return [_address(values, "address"), *([name] if name else ["--clear"])]


def _edit(values: Values) -> list[str]:
    labels = str(values.get("labels") or "").split()
    if not labels or not all(_LABEL.fullmatch(label) for label in labels):
        raise UsageError("no labels to add or to remove.", "LABEL adds one, -LABEL removes one.")
    return [_address(values, "address"), *(f"--label={label if label[0] in '+-' else f'+{label}'}" for label in labels)]


def _undo(values: Values) -> list[str]:
    operation = _text(values, "operation", _OPERATION)
    if not operation:
        raise UsageError("no operation to undo.", "")
    return [operation]


def _why(values: Values) -> list[str]:
    file = _free_text(values, "file")
    if not file or file.startswith("-"):
        raise UsageError("no file selected.", "Enter a path, or the end of one.")
    return [file, *_optional_address(values)]


def _stats(values: Values) -> list[str]:
    by = _text(values, "by", re.compile("day|project|agent|model|session|tool"))
    return [*_optional_address(values), *(["--by", by] if by else [])]


def _one_address(values: Values) -> list[str]:
    return [_address(values, "address")]


def _optional_address(values: Values) -> list[str]:
    return _one_address(values) if values.get("address") else []


_QUESTIONS: Mapping[str, Callable[[Values], list[str]]] = {
    "show": _one_address,
    "why": _why,
    "pad": _one_address,
    "stats": _stats,
}
_COMMANDS: Mapping[str, Callable[[Values], list[str]]] = {
    "fork": _fork,
    "merge": _merge,
    "pick": _pick,
    "rename": _rename,
    "edit": _edit,
    "archive": _one_address,
    "unarchive": _one_address,
    "undo": _undo,
}
DRY_RUNS = frozenset({"merge", "pick", "archive", "undo"})
"""The commands that have --dry-run."""


def _address(values: Values, key: str) -> str:
    text = _text(values, key, _ADDRESS)
    if not text:
        raise UsageError("no conversation selected.", "Choose one from the list.")
    return text


def _text(values: Values, key: str, pattern: re.Pattern[str]) -> str:
    text = values.get(key) or ""
    if not isinstance(text, str) or (text and not pattern.fullmatch(text)):
        raise UsageError(f"“{str(text)[:60]}” cannot be the {key}.", "")
    return text


def _free_text(values: Values, key: str) -> str:
    text = values.get(key) or ""
    if not isinstance(text, str) or len(text) > _LONGEST or not text.isprintable():
        raise UsageError(f"the {key} is no text of one line.", "")
    return text.strip()
