"""The files beside the repository that hold more than can be made anew, and what they say of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.model import ids
from sessgit.model.finding import Finding
from sessgit.purge import denied_values
from sessgit.store import journal, settings
from sessgit.store.layout import StorePaths
from sessgit.store.recorder import append_intent, cursor
from sessgit.store.secrets import denylist
from sessgit.store.store import Store

_KEY = 32
_HEAD = b"ref: refs/heads/HEAD-stays-unborn"
_CONFIG = ("bare=true", "auto=0", "logallrefupdates=false", "denydeletes=true")
_FIX = "sessgit doctor --fix"


def check(store: Store) -> Iterator[Finding]:
    """What is wrong with what lies beside the objects and refs."""
    beside = store.beside
    yield from _repository(store.path)
    yield from _key(beside)
    try:
        settings.load_settings(beside)
    except SessgitError as error:
        yield Finding("wrong", "settings", "config.toml", str(error), "`sessgit config` lists the valid settings.")
    yield from _journal(beside)
    yield from _states(beside)
    yield from _purged(store)


def _repository(path: Path) -> Iterator[Finding]:
    """What git itself goes by."""
    if _read(path / "HEAD").strip() != _HEAD:
        yield Finding("wrong", "store", "HEAD", "it does not name the branch that must never exist", _FIX)
    held = _read(path / "config").decode("utf-8", "replace").lower()
    said = [re.sub(r"\s", "", line) for line in held.split("\n")]
    if lacking := [one for one in _CONFIG if one not in said]:
        yield Finding("wrong", "store", "config", f"git's settings lack {', '.join(lacking)}", _FIX)


def _key(beside: StorePaths) -> Iterator[Finding]:
    if (length := len(_read(beside.key))) != _KEY:
        said = "is missing" if not length else "is not 32 bytes long"
        what = f"the key {said}: redacted lines can no longer be proved"
        mend = "Restore it from a copy of the store. `sessgit doctor --fix` creates a new one for later secrets."
        yield Finding("damage", "key", "key", what, mend)


def _journal(beside: StorePaths) -> Iterator[Finding]:
    try:
        journal.read(beside)
    except SessgitError as error:
        yield Finding("damage", "operations", beside.journal.name, str(error), "Move it aside: a new one is created.")
    name, lines = beside.journal.name, [line for line in _read(beside.journal).split(b"\n") if line]
    torn = sum(journal.parse_line(line) is None for line in lines)
    if torn:
        which = "a line" if torn == 1 else f"{torn} lines"
        yield Finding("note", "operations", name, f"{which} cannot be read, so those operations cannot be undone")
    done = [one for one in map(journal.parse_line, lines) if one is not None]
    wrong = [one for one in done if not re.fullmatch("[0-9a-f]{8}", one.id)]
    twice = [name for name, count in Counter(one.id for one in done).items() if count > 1]
    if wrong or twice:
        yield Finding(
            "wrong", "operations", name, "operations have no id, or the same id: undo may revert the wrong one"
        )
    held = [oid for one in done for move in one.moves for oid in (move.old, move.new) if oid is not None]
    if any(not re.fullmatch("[0-9a-f]{40}", oid) for oid in held):
        yield Finding("wrong", "operations", name, "an operation moved a ref from or to an object that is not a commit")


def _states(beside: StorePaths) -> Iterator[Finding]:
    """Cursors, notes of what is being appended, and what was agreed on with remotes: all of them memory aids."""
    for path in sorted(beside.state.glob("*.json")):
        place, session = f"state/{path.name}", path.stem
        if re.fullmatch("remote-[0-9a-f]{16}", session):
            if not _is_object(_read(path), version=1):
                yield Finding(
                    "note", "agreement", place, "it cannot be read: the next push or pull compares everything"
                )
        elif ids.is_branch(session) and cursor.load_cursor(beside, session) is None:
            yield Finding("note", "cursor", place, "it cannot be read: the transcript is read from the start again")
    for path in sorted(beside.state.glob("*.append")):
        if append_intent.load_intent(beside, path.stem) is None:
            what = "it cannot be read: an interrupted merge cannot be completed"
            yield Finding("note", "appending", f"state/{path.name}", what)
    if beside.latest.exists() and not _is_object(_read(beside.latest), version=1):
        yield Finding("note", "latest", beside.latest.name, "it cannot be read: the next turn rewrites it")


def _purged(store: Store) -> Iterator[Finding]:
    """What was purged is known, and is not there again."""
    beside = store.beside
    try:
        denylist.denied_values(beside)
    except SessgitError as error:
        yield Finding("wrong", "purge", f"state/{beside.forbidden.name}", str(error), error.hint)
    yield from denied_values.denied_value_findings(beside)
    if beside.purging.exists():
        what = "a purge was interrupted: the value may still be stored"
        yield Finding("wrong", "purge", f"state/{beside.purging.name}", what, "The next `sessgit purge` completes it.")
    lines = _read(beside.rewritten).decode("ascii", "replace").splitlines()
    pairs = [re.fullmatch("([0-9a-f]{40}) ([0-9a-f]{40})", line) for line in lines]
    if not all(pairs):
        what = "a line is not a pair of commits: purged values may return from a remote"
        yield Finding("wrong", "purge", f"state/{beside.rewritten.name}", what)
    back = [pair[1] for pair in pairs if pair and store.repo.has(pair[1])]
    if back:
        what = f"{len(back)} of the commits that a purge removed {'is' if len(back) == 1 else 'are'} back"
        yield Finding("wrong", "purge", back[0], what, "`sessgit gc --prune` removes unreachable objects.")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _is_object(data: bytes, *, version: int) -> bool:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("version") == version
