"""`purge`: removes values from all history, as if they had been redacted when they were recorded.

Every history with a value is rewritten, everything that names commits names the new ones, and the old ones are deleted.
Afterwards the store knows the values by keyed hashes only, and keeps them out of whatever is stored later.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from sessgit.branch import lost_refs
from sessgit.errors import ConflictError, DamageError, UsageError
from sessgit.model import canonical, ids, stored_fields
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count
from sessgit.model.progress import Progress, no_progress
from sessgit.purge import rewriting, scan
from sessgit.purge.rewriting import Rewriter
from sessgit.purge.scan import SessionHit
from sessgit.record import scratch_store
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher, clean_lines, clean_text, cut_short
from sessgit.store import layout, locks, maintenance, operations, refs, secret_filter, tempdirs
from sessgit.store.context import Context, Homes
from sessgit.store.index import remove_cache
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move, Operation
from sessgit.store.private_files import write_private
from sessgit.store.store import Store

_LOCK_WAIT = 10.0
_MOST_ROUNDS = 4
_LONGEST_REGEX = 1000
_MOST_VALUES = 1000


@frozen
class PurgeProgress:
    """The progress of a purge: `reading` and `proving` count objects, `writing` counts commits."""

    reading: Progress = no_progress
    writing: Progress = no_progress
    proving: Progress = no_progress


@frozen
class PurgeResult:
    """What a purge did, or would do.

    `sessions` held a value, `commits` counts the rewritten commits and `objects` those searched at the end. `tags` are
    renamed tags. `client` are files of the client that hold a value and stay, `remotes` those that hold one. `loose`
    counts objects with a value outside of any branch, `lines` long lines of a value that also occur on their own
    elsewhere, and stay. `operation` is ``""`` for a dry run, and if nothing held a value or is newly denied.
    `completed` says that an interrupted purge was completed.
    """

    values: int
    sessions: tuple[SessionHit, ...]
    commits: int
    tags: tuple[tuple[str, str], ...]
    client: tuple[Path, ...]
    remotes: tuple[str, ...]
    loose: int
    lines: int
    objects: int = 0
    operation: str = ""
    completed: bool = False

    @property
    def had_value(self) -> bool:
        """Whether the store held a value."""
        return bool(self.commits or self.sessions or self.tags or self.loose)


# Values


def literal_value(text: str) -> tuple[str, ...]:
    """Return the value alone; raises UsageError if it is too short to tell from other text, or too long."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size < value_match.SHORTEST or not text.strip():
        raise UsageError(
            f"a value of {format_count(size, 'byte')} is too short to purge",
            f"The minimum is {value_match.SHORTEST} bytes. Nothing was changed.",
        )
    if size > value_match.LONGEST:
        raise UsageError(f"the value has {size:,} bytes", f"The maximum is {value_match.LONGEST:,}.")
    return (text,)


def compile_expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression; raises UsageError if it is not valid."""
    if len(pattern) > _LONGEST_REGEX:
        raise UsageError("the regular expression is too long", f"The maximum is {_LONGEST_REGEX:,} characters.")
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"invalid regular expression: {error}", "Without --regex, PATTERN is taken literally."
        ) from None


def matching_values(store: Path, homes: Homes, pattern: str, progress: Progress) -> tuple[str, ...]:
    """Return all that a regular expression matches in the store, its spool, and the client's files. Raises UsageError
    if it is not valid, or matches what is too short, or too much."""
    matches = scan.find_matches(store, homes, compile_expression(pattern), progress)
    if len(matches) > _MOST_VALUES:
        raise UsageError(f"it matches {len(matches):,} different values", f"The maximum is {_MOST_VALUES:,}.")
    return tuple(value for match in sorted(matches) for value in literal_value(match))


# The purge


def preview_purge(store: Store, values: Sequence[str], homes: Homes, progress: PurgeProgress) -> PurgeResult:
    """Return what a purge would do. Raises ConflictError if it would."""
    matcher = secret_filter.matcher(store.paths, ()).extended_with(values)
    scan.check_settings(store.path, matcher)
    with scratch_store.scratch_store(store.path) as scratch:
        plan = _Plan(scratch, values, matcher, progress)
        return plan.result(store, homes)


def purge_values(context: Context, values: Sequence[str], progress: PurgeProgress) -> PurgeResult:
    """Remove values from the store, and complete an interrupted purge, whose values the store knows.

    Raises ConflictError, with nothing changed, if another process writes to the store or a value cannot be removed, and
    DamageError if a value is still there at the end.
    """
    store = context.store
    store.repo.release()
    if lost_refs.lost_refs(store):
        raise ConflictError(
            "refs are missing that no command removed, and their data would be lost",
            "Nothing was changed. `sessgit doctor --fix` restores them.",
        )
    with (
        locks.maintenance_lock(store.paths, _LOCK_WAIT) as lock,
        locks.prune_lock(store.paths, _LOCK_WAIT if lock else 0) as alone,
    ):
        if not lock or not alone:
            raise ConflictError("a recorder or a command is writing", "Nothing was changed. Try again later.")
        with store.repo.exclusive():
            return _purge(context, values, progress, (lock, alone))


def is_pending(store: Path) -> bool:
    """Return whether a purge was interrupted and has to be completed."""
    return layout.StorePaths(store).purging.exists()


class _Plan:
    """A rewritten history, and the moves of refs to it, of which none is made."""

    def __init__(self, store: Store, values: Sequence[str], matcher: ValueMatcher, progress: PurgeProgress) -> None:
        self.store, self.values, self.matcher, self.progress = store, tuple(values), matcher, progress
        self.moves = list[Move]()
        self.tags = list[tuple[str, str]]()
        self.remotes = set[str]()
        hits = self._find_hits()
        self.rewriter = Rewriter(store, self.matcher, self.values, hits)
        self.sessions = scan.sessions_with_value(store, self.rewriter.holds, hits) if hits else []
        self.refs = refs.read_all(store.path)
        tips = {ref: store.repo.peel(oid) for ref, oid in self.refs.items()} if hits else {}
        total, writing = len(tips), self.progress.writing
        self.rewriter.rewrite(
            [tip for tip in dict.fromkeys(tips.values()) if tip], lambda done: writing(done, max(done, total))
        )
        for ref, oid in self.refs.items():
            tip = tips.get(ref)
            new = self.rewriter.now(tip) if tip else oid
            self._plan_ref(ref, oid, oid if new == tip and oid not in hits else new)
        self.lines = scan.count_lines_apart(store.path, self.matcher, self.values, self.progress.reading)
        self.loose = len(hits) if not (self.rewriter.commits or self.moves) else 0

    def _find_hits(self) -> frozenset[str]:
        """Return the objects with a value. The beginning of a value, with which a title was cut off, is added to the
        values."""
        hits = set[str]()
        for _ in range(_MOST_ROUNDS):
            seen = scan.scan_objects(self.store.path, self.matcher, self.values, self.progress.reading)
            hits, more = seen.hits, seen.beginnings - set(self.values)
            if not more:
                break
            self.values = (*self.values, *sorted(more))
            self.matcher = self.matcher.extended_with(more)
        return frozenset(hits)

    def _plan_ref(self, ref: str, oid: str, new: str) -> None:
        name = value_match.clean_name(ref, self.matcher)
        side = rewriting.side_branch_name(ref, self.rewriter.keys)
        taken = self.refs.keys() | {move.ref for move in self.moves if move.new}
        if name != ref:
            self.moves.append(Move(ref, oid, None))
            if ref.startswith(layout.TAGS):  # other refs with a value in their names are a remote's
                names = (name if n == 1 else f"{name}-{n}" for n in range(1, 1 << 20))
                free = next(one for one in names if one not in taken)
                self.moves.append(Move(free, None, new))
                self.tags.append((ref.removeprefix(layout.TAGS), free.removeprefix(layout.TAGS)))
        elif side != ref and side not in taken:
            self.moves += [Move(ref, oid, None), Move(side, None, new)]
        elif new != oid:
            self.moves.append(Move(ref, oid, new))
        if (name, new) != (ref, oid) and ref.startswith(layout.REMOTES):
            self.remotes.add(ref.removeprefix(layout.REMOTES).partition("/")[0])

    def result(self, store: Store, homes: Homes) -> PurgeResult:
        files = scan.all_client_files(homes, store.paths)
        client = tuple(path for path in files if scan.file_holds(path, self.matcher))
        return PurgeResult(
            len(self.values), tuple(self.sessions), len(self.rewriter.commits), tuple(self.tags), client,
            tuple(sorted(self.remotes)), self.loose, self.lines,
        )  # fmt: skip


def _purge(context: Context, values: Sequence[str], progress: PurgeProgress, held: Sequence[int]) -> PurgeResult:
    store, paths, now = context.store, context.store.paths, context.now()
    interrupted = _load_note(store)
    before = [one for one in secret_filter.denied_values(paths) if one.id in interrupted.values]
    matcher = secret_filter.matcher(paths, before).extended_with(values)
    scan.check_settings(store.path, matcher)
    plan = _Plan(store, values, matcher, progress)
    result = plan.result(store, context.homes)
    added = {secret_filter.value_id(paths, value) for value in plan.values}
    note = _Note(interrupted.since or canonical.rfc3339(now), sorted({*interrupted.values, *added}))
    is_outside = any(scan.files_with_value(store.path, plan.matcher, [store.path / "objects"]))
    if not result.had_value and not interrupted.since and not is_outside:
        return replace(result, operation=_deny_only(store, plan.values, note, now))
    store.repo.flush()
    _save_note(store, note)
    secret_filter.add_commits(paths, plan.rewriter.commits)
    # Right before the refs move, so that whatever is recorded in between is compared with the same list.
    secret_filter.deny_values(paths, plan.values, now)
    operations.move_refs(store.path, plan.moves)
    # The commits of a purge that was interrupted before its refs moved are still there.
    commits = secret_filter.forget_existing(paths, _reachable_commits(store) if interrupted.since else ())
    files = _StateRewriter(paths, plan.matcher, plan.values, commits, plan.rewriter.keys, result.client)
    files.rewrite_files()
    operation = files.rewrite_journal(_operation(f"{format_count(len(values), 'value')} purged", now), note.since)
    context.index.reset()  # SQLite leaves deleted data in its files
    remove_cache(paths.text)
    maintenance.delete_all_leftovers(store.path)
    maintenance.prune(store.path, held)
    store.repo.refresh_packs()
    context.index.sync()
    objects = _prove(store, plan)
    paths.purging.unlink(missing_ok=True)
    return replace(result, objects=objects, operation=operation, completed=bool(before))


def _operation(summary: str, now: float) -> Operation:
    return Operation(canonical.rfc3339(now), operations.PURGE, summary, {})


def _deny_only(store: Store, values: Sequence[str], note: _Note, now: float) -> str:
    """Forbid values that nothing holds; return the operation that says so, ``""`` if none of them is new."""
    new = set(note.values) - {one.id for one in secret_filter.denied_values(store.paths)}
    if not new:
        return ""
    _save_note(store, note)  # else a forbidden value might never get its operation
    secret_filter.deny_values(store.paths, values, now)
    summary = f"{format_count(len(new), 'value')} blocked, which nothing held"
    operation = operations.append(store.paths, _operation(summary, now)).id
    store.paths.purging.unlink(missing_ok=True)
    return operation


def _reachable_commits(store: Store) -> set[str]:
    tips = {store.repo.peel(oid) for oid in refs.read_all(store.path).values()}
    return {commit.id for commit in store.repo.since([tip for tip in tips if tip], ())}


def _prove(store: Store, plan: _Plan) -> int:
    """Return the number of objects searched; raises DamageError if one, or a file, still holds a value."""
    remaining = list[str]()
    for _ in range(_MOST_ROUNDS):
        _redact_events(store.paths, plan.matcher)  # new events may hold a value
        objects, remaining = scan.find_remaining(store.path, plan.matcher, plan.progress.proving)
        if not remaining:
            return objects
        if not all(path.startswith("spool/") for path in remaining):
            break
    named = ", ".join(remaining[:3]) + (f" and {len(remaining) - 3} more" if len(remaining) > 3 else "")
    raise DamageError(f"the value is still in the store: {named}", "Run the same command again to continue.")


# The note of a purge that is not complete


@frozen
class _Note:
    """The file state/purging: when the purge began, and the ids of its values."""

    since: str = ""
    values: list[str] = field(default_factory=list)
    version: Literal[1] = 1


def _load_note(store: Store) -> _Note:
    try:
        return stored_fields.load(_Note, json.loads(store.paths.purging.read_bytes()))
    except FileNotFoundError:
        return _Note()
    except (OSError, ValueError, TypeError, RecursionError):
        # A purge did begin; its values are in the list.
        return _Note(canonical.rfc3339(0), [one.id for one in secret_filter.denied_values(store.paths)])


def _save_note(store: Store, note: _Note) -> None:
    write_private(store.paths.purging, stored_fields.dumps(note), durable=True)


# The files next to the repository: cursors, operations, agreements, events and logs
#
# Each is replaced in one step, and one that is right already stays, so this can be repeated at any time.

_OID = re.compile(rb'"([0-9a-f]{40})"')
_INVALID = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What a document raises that is not what its file should hold."""


def _redact_events(paths: StorePaths, matcher: ValueMatcher) -> None:
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


@frozen
class _StateRewriter:
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
        _redact_events(paths, self.matcher)

    def rewrite_journal(self, purge: Operation, since: str) -> str:
        """Rewrite the operations, and append the purge unless it was appended `since` it began; return its id."""
        _rewrite(self.paths.journal, lambda data: b"".join(map(self._rewrite_operation, data.splitlines(True))))
        ids = [one.id for one in operations.read(self.paths) if one.command == purge.command and one.time >= since]
        return ids[-1] if ids else operations.append(self.paths, purge).id

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
                rewriting.side_branch_name(value_match.clean_name(ref, self.matcher), self.keys): [
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
