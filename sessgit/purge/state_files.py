"""What lies beside the repository without the values: cursors, operations, what was agreed on, events and logs.

Each file is put in its place in one step, and a file that is right already stays: so it can be done again at any time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessgit.model import ids
from sessgit.purge import turn_folders
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import journal
from sessgit.store.files import tempdirs
from sessgit.store.fulltext import forget
from sessgit.store.index import Index
from sessgit.store.journal import Operation
from sessgit.store.layout import StorePaths
from sessgit.store.packing import quarantine
from sessgit.store.secrets.denylist import sync
from sessgit.store.store import write_private

_OID = re.compile(rb'"([0-9a-f]{40})"')
_TRIES = 5


@dataclass(frozen=True, slots=True)
class RewrittenNames:
    """What is named otherwise now, commits and keys of turns by what they were, and the values, as far as they are
    known: what was cut short tells them by their beginnings."""

    commits: Mapping[str, str]
    keys: Mapping[str, str]
    values: Sequence[str] = ()


def update_state_files(store: Path, matcher: ValueMatcher, news: RewrittenNames) -> None:
    """Cursors, notes and agreements name the commits and turns of now, and nothing holds a value."""
    beside = StorePaths(store)
    for path in (*beside.state.glob("*.json"), *beside.state.glob("*.append")):
        _rewrite_file(
            path, lambda data: _replace_ids(value_match.clean_lines(data, matcher)[0], news.commits, news.keys)
        )
    _rewrite_file(beside.latest, lambda data: value_match.clean_lines(data, matcher)[0])
    for path in (beside.log, beside.log.with_name(f"{beside.log.name}.1")):
        _rewrite_file(path, lambda data: value_match.clean_text(data, matcher)[0])
    beside.refs.unlink(missing_ok=True)  # tags may be called by it
    for path in (store / "logs", *beside.state.glob("damaged/*")):
        if path.is_dir():  # what refs were before: git keeps objects for it
            shutil.rmtree(path, ignore_errors=True)
        elif _may_hold(path, matcher):
            path.unlink(missing_ok=True)
    for path in store.glob("*_HEAD"):  # of commands of git's own
        path.unlink(missing_ok=True)
    tempdirs.delete_stale_folders(beside.state)
    quarantine.delete_stale_folders(beside)
    for path in beside.state.glob("push-*"):
        shutil.rmtree(path, ignore_errors=True)
    redact_events(store, matcher)


def _may_hold(path: Path, matcher: ValueMatcher) -> bool:
    """Whether a damaged object or ref that was set aside holds a value, or cannot be looked into."""
    try:
        data = path.read_bytes()
        return matcher.holds(zlib.decompress(data) if data[:1] == b"x" else data)
    except (OSError, zlib.error):
        return True


def redact_events(store: Path, matcher: ValueMatcher) -> None:
    """No event that waits holds a value; what is no event of a client and holds one goes."""
    for path in StorePaths(store).spool.glob("*"):
        with suppress(OSError):
            state, data = path.lstat(), path.read_bytes()
            if not matcher.holds(data):
                continue
            clean = value_match.clean_lines(data, matcher)[0]
            if path.suffix != ".json" or matcher.holds(clean):
                path.unlink()
                continue
            write_private(path, clean)
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # events are read in the order of their times


def rewrite_operations(store: Path, matcher: ValueMatcher, news: RewrittenNames, done: Operation, since: str) -> str:
    """The operations name the commits of now, without a value in their words; the purge itself comes last, once.

    Returns its id.
    """
    beside = StorePaths(store)
    _rewrite_file(
        beside.journal, lambda data: b"".join(_rewrite_operation(line, matcher, news) for line in data.splitlines(True))
    )
    written = [one.id for one in journal.read(beside) if one.command == done.command and one.time >= since]
    return written[-1] if written else journal.append(beside, done).id


def reset_indexes(store: Path, index: Index) -> None:
    """Both indexes begin anew: SQLite leaves what was deleted where it stood."""
    forget.reset_index(index)
    forget.remove_fulltext_index(store)


def _rewrite_operation(line: bytes, matcher: ValueMatcher, news: RewrittenNames) -> bytes:
    try:
        document: dict[str, Any] = json.loads(line)
        refs = document["refs"]
        document["refs"] = {
            turn_folders.side_name(turn_folders.file_name(ref, matcher), news.keys): [
                news.commits.get(one, one) if one else one for one in moved
            ]
            for ref, moved in refs.items()
        }
        document["summary"] = value_match.cut_short(document["summary"], news.values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return value_match.clean_text(line, matcher)[0]
    made = json.dumps(document).encode()
    clean = value_match.clean_lines(made, matcher)[0]
    return line if clean == line.rstrip(b"\n") else clean + (b"\n" if line.endswith(b"\n") else b"")


def _replace_ids(data: bytes, commits: Mapping[str, str], keys: Mapping[str, str]) -> bytes:
    data = _OID.sub(lambda one: b'"%s"' % commits.get(one[1].decode(), one[1].decode()).encode(), data)
    for old, new in keys.items():
        data = data.replace(b'"%s"' % old.encode(), b'"%s"' % new.encode())
        for kind in (b".r-", b".m-"):
            data = data.replace(kind + ids.short_id(old).encode() + b'"', kind + ids.short_id(new).encode() + b'"')
    return data


def _rewrite_file(path: Path, change: Callable[[bytes], bytes]) -> None:
    try:
        data = path.read_bytes()
    except OSError:
        return
    new = change(data)
    if new != data:
        write_private(path, new)
        sync(path)
