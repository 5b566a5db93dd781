"""A value out of all that the store holds, as if it had been redacted when it was recorded.

Every history that holds it is written anew, what names commits names those of now, and what was is deleted at once.
Afterwards the value is known by keyed hashes alone, and whatever is stored later is held against them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessgit.branch import lost_refs
from sessgit.errors import ConflictError, DamageError, UsageError
from sessgit.model import canonical
from sessgit.model.humanize import format_count
from sessgit.model.progress import Progress, no_progress
from sessgit.purge import scan, state_files, turn_folders
from sessgit.purge.rewriting import Rewriter
from sessgit.purge.scan import SessionHit
from sessgit.record import scratch_store
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import journal, layout, locks, maintenance, operations, refs, transaction
from sessgit.store.index import Index
from sessgit.store.journal import Operation
from sessgit.store.secrets import commit_map, denylist
from sessgit.store.secrets.denylist import sync
from sessgit.store.store import Store, write_private
from sessgit.store.transaction import Move

_VERSION = 1
_LOCK_WAIT = 10.0
_MOST_ROUNDS = 4
_LONGEST_REGEX = 1000
_MOST_VALUES = 1000


@dataclass(frozen=True, slots=True)
class PurgeProgress:
    """Who is told how far a purge is: `reading` what is stored and `proving` what came of it in objects, and between
    them `writing` the history anew in commits."""

    reading: Progress = no_progress
    writing: Progress = no_progress
    proving: Progress = no_progress


@dataclass(frozen=True, slots=True)
class PurgeValues:
    """The values that are to go; of a purge that was interrupted nobody knows them, and the store finds them itself."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a purge did, or would do.

    `held` are the sessions that held a value, `commits` counts the commits that were written anew and `objects` those
    that were looked through at the end. `tags` are tags that have another name now. `client` are files of the client's
    that hold a value and stay, `remotes` those that hold it. `inexact` counts turns whose files no recording would make
    so. `operation` is empty for a dry run, and where nothing held a value and each was kept out before. `completed`
    says that an earlier purge, which was interrupted, was brought to its end.
    """

    values: int
    held: tuple[SessionHit, ...] = ()
    commits: int = 0
    objects: int = 0
    tags: tuple[tuple[str, str], ...] = ()
    client: tuple[Path, ...] = ()
    remotes: tuple[str, ...] = ()
    inexact: int = 0
    operation: str = ""
    completed: bool = False
    loose: int = 0
    """How many objects held a value to which no branch leads."""
    lines: int = 0
    """How many long lines of a value stand somewhere without the others, and stay."""

    @property
    def found(self) -> bool:
        """Whether the store held a value."""
        return bool(self.commits or self.held or self.tags or self.loose)


# What is to go


def literal_value(text: str) -> PurgeValues:
    """The one value; raises UsageError for one that is too short to be told from other text, or too long."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size < value_match.SHORTEST or not text.strip():
        raise UsageError(
            f"a value of {format_count(size, 'byte')} is too short to purge",
            f"The minimum is {value_match.SHORTEST} bytes. Nothing was changed.",
        )
    if size > value_match.LONGEST:
        raise UsageError(f"the value has {size:,} bytes", f"The maximum is {value_match.LONGEST:,}.")
    return PurgeValues((text,))


def compile_expression(pattern: str) -> re.Pattern[str]:
    """The regular expression; raises UsageError where it is none."""
    if len(pattern) > _LONGEST_REGEX:
        raise UsageError("the regular expression is too long", f"The maximum is {_LONGEST_REGEX:,} characters.")
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"invalid regular expression: {error}", "Without --regex, PATTERN is taken literally."
        ) from None


def matching_values(store: Path, config: Path, pattern: str, progress: Progress) -> PurgeValues:
    """All that a regular expression matches in the store, what waits there, and the client's files.

    Raises UsageError where it is none, or matches what is too short or too much.
    """
    wanted = compile_expression(pattern)
    found = scan.find_matches(store, config, wanted, progress)
    if len(found) > _MOST_VALUES:
        raise UsageError(f"it matches {len(found):,} different values", f"The maximum is {_MOST_VALUES:,}.")
    return PurgeValues(tuple(value for one in sorted(found) for value in literal_value(one).values))


# The purge


def preview_purge(store: Store, wanted: PurgeValues, config: Path, watch: PurgeProgress) -> PurgeResult:
    """What a purge would do. Raises ConflictError where it could not be done."""
    matcher = denylist.matcher(store.beside, ()).extended_with(wanted.values)
    scan.check_settings(store.path, matcher)
    with scratch_store.scratch_store(store.path) as made:
        work = _PurgeRun(made, wanted.values, matcher, watch)
        work.read()
        return _purge_result(work, store, config)


def purge_values(
    store: Store, index: Index, wanted: PurgeValues, config: Path, now: float, watch: PurgeProgress
) -> PurgeResult:
    """Takes the values out of the store, and brings to its end what an interrupted purge has begun.

    Raises ConflictError, with nothing changed, where somebody else is at work in the store or the values cannot be
    taken out, and DamageError where they are found in it at the end.
    """
    store.repo.release()
    if lost_refs.lost_refs(store):
        raise ConflictError(
            "refs are missing that no command removed, and their data would be lost",
            "Nothing was changed. `sessgit doctor --fix` restores them.",
        )
    with (
        locks.maintenance_lock(store.beside, _LOCK_WAIT) as lock,
        locks.prune_lock(store.beside, _LOCK_WAIT if lock else 0) as alone,
    ):
        if not lock or not alone:
            raise ConflictError("a recorder or a command is writing", "Nothing was changed. Try again later.")
        with store.repo.alone():
            return _run_purge(store, index, wanted, config, now, watch, (lock, alone))


def is_pending(store: Path) -> bool:
    """Whether a purge was interrupted, and has to be brought to its end."""
    return layout.StorePaths(store).purging.exists()


@dataclass
class _PurgeRun:
    """A purge as far as it has come."""

    store: Store
    values: tuple[str, ...]
    matcher: ValueMatcher
    watch: PurgeProgress
    rewriter: Rewriter = field(init=False)
    held: list[SessionHit] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    tags: list[tuple[str, str]] = field(default_factory=list)
    remotes: set[str] = field(default_factory=set)
    loose: int = 0
    lines: int = 0

    def read(self) -> None:
        """Finds what holds a value, and writes the history anew; no ref is moved."""
        seen = scan.ScanResult()
        for _ in range(_MOST_ROUNDS):
            seen = scan.scan_objects(self.store.path, self.matcher, self.values, self.watch.reading)
            more = seen.beginnings - set(self.values)
            if not more:
                break
            # What a title was cut off from is a value by itself.
            self.values = (*self.values, *sorted(more))
            self.matcher = self.matcher.extended_with(more)
        self.rewriter = Rewriter(self.store, self.matcher, self.values, frozenset(seen.hits))
        if seen.hits:
            self.held = scan.sessions_with_value(self.store, self.rewriter.holds, seen.hits)
        self._write(bool(seen.hits))
        self.lines = scan.count_lines_apart(self.store.path, self.matcher, self.values, self.watch.reading)
        self.loose = len(seen.hits) if not (self.rewriter.commits or self.moves) else 0

    def _write(self, needed: bool) -> None:
        held = refs.read_all(self.store.path)
        tips = {ref: self.store.repo.peel(oid) for ref, oid in held.items()} if needed else {}
        total = len(tips)
        self.rewriter.rewrite(
            [tip for tip in dict.fromkeys(tips.values()) if tip],
            lambda done: self.watch.writing(done, max(done, total)),
        )
        for ref, oid in held.items():
            tip = tips.get(ref)
            new = self.rewriter.now(tip) if tip else oid
            new = oid if new == tip and oid not in self.rewriter.hits else new
            called = turn_folders.file_name(ref, self.matcher)
            side = turn_folders.side_name(ref, self.rewriter.keys)
            if called == ref and side != ref and side not in held.keys() | {move.ref for move in self.moves}:
                self.moves += [Move(ref, oid, None), Move(side, None, new)]
            elif called == ref and new != oid:
                self.moves.append(Move(ref, oid, new))
            elif called != ref:
                self._renamed(ref, called, oid, new, held)
            if (called, new) != (ref, oid) and ref.startswith(layout.REMOTES):
                self.remotes.add(ref.removeprefix(layout.REMOTES).partition("/")[0])

    def _renamed(self, ref: str, called: str, oid: str, new: str, held: Mapping[str, str]) -> None:
        self.moves.append(Move(ref, oid, None))
        if not ref.startswith(layout.TAGS):
            return  # what a remote calls so is known there
        taken = held.keys() | {move.ref for move in self.moves if move.new}
        free = next(name for n in range(1, 1 << 20) if (name := called if n == 1 else f"{called}-{n}") not in taken)
        self.moves.append(Move(free, None, new))
        self.tags.append((ref.removeprefix(layout.TAGS), free.removeprefix(layout.TAGS)))


def _run_purge(  # noqa: PLR0913, PLR0917 - what goes out of what, and under which locks
    store: Store, index: Index, wanted: PurgeValues, config: Path, now: float, watch: PurgeProgress, held: Sequence[int]
) -> PurgeResult:
    left = _load_note(store)
    every = denylist.denied_values(store.beside)
    before = [one for one in every if one.id in left.values]
    matcher = denylist.matcher(store.beside, before).extended_with(wanted.values)
    scan.check_settings(store.path, matcher)
    work = _PurgeRun(store, wanted.values, matcher, watch)
    work.read()
    told = _purge_result(work, store, config)
    since = left.since or canonical.rfc3339(now)
    outside = any(scan.files_with_value(store.path, work.matcher, [store.path / "objects"]))
    begun = _PurgeNote(
        since, frozenset((*left.values, *(denylist.value_id(store.beside, value) for value in work.values)))
    )
    if not told.found and not left.since and not outside:
        return replace(told, operation=_deny_unstored(store, work.values, begun, now))
    store.repo.flush()
    _save_note(store, begun)
    commit_map.add_commits(store.beside, work.rewriter.commits)
    # Right before the refs: what is recorded in between would not be what the other one is compared with.
    denylist.deny_values(store.beside, work.values, now)
    transaction.move_all(store.path, work.moves)
    # Of a purge that never came so far the commits are still there.
    commits = commit_map.forget_existing(store.beside, _reachable_commits(store) if left.since else ())
    news = state_files.RewrittenNames(commits, work.rewriter.keys, work.values)
    state_files.update_state_files(store.path, work.matcher, news)
    summary = f"{format_count(len(wanted.values), 'value')} purged"
    done = Operation(canonical.rfc3339(now), operations.PURGE, summary, ())
    operation = state_files.rewrite_operations(store.path, work.matcher, news, done, since)
    state_files.reset_indexes(store.path, index)
    maintenance.delete_all_leftovers(store.path)
    maintenance.prune(store.path, held)
    store.repo.refresh_packs()
    index.sync()
    objects = _check_store(store, work)
    store.beside.purging.unlink(missing_ok=True)
    return replace(told, objects=objects, operation=operation, completed=bool(before))


def _deny_unstored(store: Store, values: Sequence[str], begun: _PurgeNote, now: float) -> str:
    """Forbids values that nothing holds, and returns the operation that says so, if any of them is new."""
    known = {one.id for one in denylist.denied_values(store.beside)}
    new = begun.values - known
    if not new:
        return ""
    _save_note(store, begun)  # else a value that is forbidden already would never get its operation
    denylist.deny_values(store.beside, values, now)
    summary = f"{format_count(len(new), 'value')} blocked, which nothing held"
    done = journal.append(store.beside, Operation(canonical.rfc3339(now), operations.PURGE, summary, ())).id
    store.beside.purging.unlink(missing_ok=True)
    return done


def _reachable_commits(store: Store) -> set[str]:
    """All commits that refs lead to."""
    tips = {store.repo.peel(oid) for oid in refs.read_all(store.path).values()}
    return {commit.id for commit in store.repo.since([tip for tip in tips if tip], ())}


def _check_store(store: Store, work: _PurgeRun) -> int:
    """How many objects were looked through; raises DamageError where one, or a file, still holds a value."""
    for _ in range(_MOST_ROUNDS):
        state_files.redact_events(store.path, work.matcher)  # one that came meanwhile may hold it
        objects, found = scan.find_remaining(store.path, work.matcher, work.watch.proving)
        if not all(path.startswith("spool/") for path in found):
            break
        if not found:
            return objects
    named = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    raise DamageError(f"the value is still in the store: {named}", "Run the same command again to continue.")


def _purge_result(work: _PurgeRun, store: Store, config: Path) -> PurgeResult:
    client = scan.client_files(config, store.beside, work.matcher)
    return PurgeResult(
        len(work.values), tuple(work.held), len(work.rewriter.commits), 0, tuple(work.tags), tuple(client),
        tuple(sorted(work.remotes)), len(work.rewriter.folders.inexact), loose=work.loose, lines=work.lines,
    )  # fmt: skip


# What was begun


@dataclass(frozen=True, slots=True)
class _PurgeNote:
    """A purge that has not come to its end: since when, and of which values, by their ids."""

    since: str = ""
    values: frozenset[str] = frozenset()


def _load_note(store: Store) -> _PurgeNote:
    try:
        document = json.loads(store.beside.purging.read_bytes())
        return _PurgeNote(str(document["since"]), frozenset(map(str, document["values"])))
    except FileNotFoundError:
        return _PurgeNote()
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        # That it was begun is known, and of which values the list says.
        return _PurgeNote(canonical.rfc3339(0), frozenset(one.id for one in denylist.denied_values(store.beside)))


def _save_note(store: Store, begun: _PurgeNote) -> None:
    document = {"version": _VERSION, "since": begun.since, "values": sorted(begun.values)}
    write_private(store.beside.purging, json.dumps(document).encode())
    sync(store.beside.purging)
