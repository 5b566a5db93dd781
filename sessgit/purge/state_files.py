"""The files next to the repository, rewritten without the values: cursors, operations, agreements, events and logs.

Each file is replaced in one step, and one that is right already stays, so this can be repeated at any time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit.model import ids
from sessgit.purge import rewriting
from sessgit.redact.value_match import ValueMatcher, clean_lines, clean_text, cut_short
from sessgit.store import journal, tempdirs
from sessgit.store.journal import Operation
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private

_OID = re.compile(rb'"([0-9a-f]{40})"')
_INVALID = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What a document raises that is not what its file should hold."""


def redact_events(paths: StorePaths, matcher: ValueMatcher) -> None:
    """Redact the events that wait in the spool, and delete other files with a value there."""
    for path in paths.spool.glob("*"):
        with suppress(OSError):
            state, data = path.lstat(), path.read_bytes()
            if not matcher.holds(data):
                continue
            clean = clean_lines(data, matcher)[0]
            if path.suffix != ".json" or matcher.holds(clean):
                path.unlink()
                continue
            write_private(path, clean)
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # events are read in the order of their times


@dataclass(frozen=True, slots=True)
class StateRewriter:
    """Rewrites these files with the commits and keys of turns by their old names. `values` are the known ones, of which
    a short text may hold only the beginning, and `client` the client's files with a value."""

    paths: StorePaths
    matcher: ValueMatcher
    values: Sequence[str]
    commits: Mapping[str, str]
    keys: Mapping[str, str]
    client: Collection[Path]

    def rewrite_files(self) -> None:
        paths = self.paths
        for path in (*paths.state.glob("*.json"), *paths.state.glob("*.append")):
            _rewrite(path, self._rewrite_state)
        for path in paths.state.glob("*.cells"):
            _rewrite(path, lambda data: clean_lines(data, self.matcher)[0])
        _rewrite(paths.latest, lambda data: clean_lines(data, self.matcher)[0])
        for path in (paths.log, paths.log.with_name(f"{paths.log.name}.1")):
            _rewrite(path, lambda data: clean_text(data, self.matcher)[0])
        paths.refs.unlink(missing_ok=True)  # the names of tags may hold a value
        shutil.rmtree(paths.store / "logs", ignore_errors=True)  # git keeps objects that reflogs name
        for path in paths.state.glob("damaged/*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif self._may_hold(path):
                path.unlink(missing_ok=True)
        for path in paths.store.glob("*_HEAD"):  # of git's own commands
            path.unlink(missing_ok=True)
        tempdirs.delete_stale_folders(paths.state)
        redact_events(paths, self.matcher)

    def rewrite_journal(self, purge: Operation, since: str) -> str:
        """Rewrite the operations, and append the purge unless it was appended `since` it began; return its id."""
        _rewrite(self.paths.journal, lambda data: b"".join(map(self._rewrite_operation, data.splitlines(True))))
        ids = [one.id for one in journal.read(self.paths) if one.command == purge.command and one.time >= since]
        return ids[-1] if ids else journal.append(self.paths, purge).id

    def _may_hold(self, path: Path) -> bool:
        """Return whether a quarantined object or ref holds a value, or cannot be read."""
        try:
            data = path.read_bytes()
            return self.matcher.holds(zlib.decompress(data) if data[:1] == b"x" else data)
        except (OSError, zlib.error):
            return True

    def _rewrite_operation(self, line: bytes) -> bytes:
        try:
            document = json.loads(line)
            document["refs"] = {
                rewriting.side_branch_name(rewriting.clean_name(ref, self.matcher), self.keys): [
                    self.commits.get(oid, oid) if oid else oid for oid in oids
                ]
                for ref, oids in document["refs"].items()
            }
            document["summary"] = cut_short(document["summary"], self.values)
        except _INVALID:
            return clean_text(line, self.matcher)[0]
        clean = clean_lines(json.dumps(document).encode(), self.matcher)[0]
        return line if clean == line.rstrip(b"\n") else clean + (b"\n" if line.endswith(b"\n") else b"")

    def _rewrite_state(self, data: bytes) -> bytes:
        new = clean_lines(data, self.matcher)[0]
        new = _OID.sub(lambda one: b'"%s"' % self.commits.get(one[1].decode(), one[1].decode()).encode(), new)
        for old_key, key in self.keys.items():
            new = new.replace(b'"%s"' % old_key.encode(), b'"%s"' % key.encode())
            for kind in (b".r-", b".m-"):
                old_name, name = (kind + ids.short_id(one).encode() + b'"' for one in (old_key, key))
                new = new.replace(old_name, name)
        return self._without_file_hash(data, new)

    def _without_file_hash(self, old: bytes, new: bytes) -> bytes:
        """Return a cursor without the hash of its file if that covers lines which held a value: the stored lines do not
        give it any more, nor any hash that continues it."""
        with suppress(*_INVALID):  # not a cursor
            document = json.loads(new)
            was_rewritten = json.loads(old)["commit"] in self.commits or Path(document["path"]) in self.client
            if was_rewritten and document["hash"]:
                return json.dumps({**document, "hash": ""}).encode()
        return new


def _rewrite(path: Path, rewrite: Callable[[bytes], bytes]) -> None:
    try:
        data = path.read_bytes()
    except OSError:
        return
    new = rewrite(data)
    if new != data:
        write_private(path, new, durable=True)
