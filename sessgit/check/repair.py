"""A session that is broken, mended: objects that its store lacks are brought back where they can be had, and lines that
no client could go on from become those of a new session.

Nothing that is recorded is changed. Objects have the names of their content, so bringing one back can only make whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit.agents import reader
from sessgit.agents.values import Mend
from sessgit.branch import lost_refs
from sessgit.check import verify
from sessgit.check.repairing import line_mends, lost_objects, mended_session, rebuild
from sessgit.check.repairing.line_mends import Lines
from sessgit.check.repairing.mended_session import Made
from sessgit.errors import DamageError, SessgitError, StoreError, UnreadableError
from sessgit.model import humanize, ids
from sessgit.model.finding import Finding
from sessgit.record.context import RecordContext
from sessgit.store import layout, locks, maintenance, refs
from sessgit.store.damage import packs
from sessgit.store.recorder import cursor as cursors
from sessgit.store.remote.remotes import Connection
from sessgit.store.store import Store

_WAIT = 30.0
_ROUNDS = 8
"""So often objects are looked for: those that are back may lead to others."""
_ELSEWHERE = (
    "To search another copy of its transcript: `sessgit repair {} --from FILE`. A remote may have it too. "
    "To give it up: `git -C {} update-ref -d {}`"
)


@dataclass(frozen=True, slots=True)
class Brought:
    """Objects that are back, or can be had: how many, and from where in words."""

    objects: int
    source: str


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done about a session, or would be.

    `branch` is what was looked at, `lost` the objects that are nowhere, `findings` what is wrong with the store all the
    same. `mends` are the lines that a new session, `made`, has otherwise than this one; `shared` is the last turn that
    needed nothing, `turns` how many were read, `unread` how many cannot be, `redacted` the secrets that stand replaced.
    """

    branch: str
    turns: int
    brought: tuple[Brought, ...] = ()
    lost: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    mends: tuple[Mend, ...] = ()
    shared: int = 0
    unread: int = 0
    redacted: int = 0
    made: Made | None = None
    is_needed: bool = False
    """Whether a new session is made, or would be."""
    refs: int = 0
    """How many refs were put back, or would be."""
    anew: bool = False
    """Whether what nobody has any more gave way to what the session's file holds."""

    @property
    def was_sound(self) -> bool:
        return not (self.brought or self.lost or self.findings or self.is_needed or self.refs or self.anew)


def repair(  # noqa: PLR0913 - where to look, and how
    world: RecordContext,
    branch: str,
    new_id: str,
    links: Sequence[Connection] = (),
    *,
    copy: Path | None = None,
    dry_run: bool = False,
    rounds: int = _ROUNDS,
) -> Repaired:
    """Mends a branch; with `dry_run` it is only told what would be done. `links` are the remotes that may have what is
    missing here, and `copy` is a file of its lines that lies anywhere. Objects that are back may lead to others that
    are not: it is looked again, `rounds` times at most.

    Raises DamageError where nothing of it can be read, and NotFoundError or SessgitError where `copy` cannot be.
    """
    if copy is not None:
        _check_copy(copy)
    store, session = world.store, layout.session_of(branch)
    count = len(lost_refs.lost_refs(store, session)) if dry_run else lost_refs.restore_lost(store, session)
    if count:
        if dry_run:
            return Repaired(branch, 0, refs=count)
        world.index.sync()
    found = verify.one(store, session).findings
    looked = _looked(world, session, _lost(store, session, found), links, copy, dry_run=dry_run)
    brought, lost = looked.brought, looked.lost
    if brought and not dry_run and rounds > 1:
        # They lead to others, which nobody could ask for before.
        again = repair(world, branch, new_id, links, copy=copy, rounds=rounds - 1)
        return replace(again, brought=_by_source((*brought, *again.brought)), refs=again.refs + count)
    wrong = tuple(finding for finding in found if finding.severity != "note")
    if brought:
        wrong = tuple(finding for finding in wrong if not finding.objects or lost & set(finding.objects))
        return Repaired(branch, 0, brought, tuple(sorted(lost)), wrong, refs=count)
    if fresh := _anew(world, branch, looked.out_of_reach, dry_run=dry_run):
        return replace(fresh, refs=count)
    done = _mended(world, line_mends.basis(store, branch), new_id, tuple(sorted(lost)), wrong, dry_run=dry_run)
    return replace(done, refs=count)


def bring_back(world: RecordContext, sessions: Iterable[str]) -> tuple[int, int]:
    """Brings back what the sessions lack, out of their files: the number of objects, and of sessions that lack some
    still."""
    store, count, torn = world.store, 0, 0
    for session in sessions:
        for _ in range(_ROUNDS):
            lost = _lost(store, session, verify.one(store, session).findings)
            every = lost_objects.look(world, lost_objects.family(store, session, _tips(world, session)), lost, ())
            places = [place for place in every if place.found]
            for place in places:
                lost_objects.put(store, place.found)
                count += len(place.found)
            store.repo.forget()
            if not places:
                torn += bool(lost)
                break
    world.index.sync()
    return count, torn


@dataclass(frozen=True, slots=True)
class _Looked:
    """What is back of the objects that were lost, or can be had, those that are nowhere, and who could not be asked."""

    brought: tuple[Brought, ...] = ()
    lost: frozenset[str] = frozenset()
    out_of_reach: tuple[str, ...] = ()


def _looked(
    world: RecordContext, session: str, lost: Set[str], links: Sequence[Connection], copy: Path | None, *, dry_run: bool
) -> _Looked:
    """Looks for lost objects wherever they may be, and puts back what is found, but for a dry run."""
    if not lost:
        return _Looked()
    store, brought, out_of_reach = world.store, list[Brought](), list[str]()
    _check_open(store)
    if not dry_run:
        brought += [Brought(one.objects, one.source) for one in rebuild.mend_packs(store)]
        lost = {oid for oid in lost if store.repo.read_problem(oid)}
    for source in lost_objects.look(
        world, lost_objects.family(store, session, _tips(world, session)), lost, links, copy
    ):
        if not source.found:
            out_of_reach.append(source.name)
            continue
        brought.append(Brought(len(source.found), source.name))
        lost = lost - source.found.keys()
        if not dry_run:
            lost_objects.put(store, source.found)
    if brought and not dry_run:
        _pack(store)
        store.repo.forget()
        world.index.sync()
    return _Looked(tuple(brought), frozenset(lost), tuple(out_of_reach))


def _by_source(brought: Iterable[Brought]) -> tuple[Brought, ...]:
    """The same with one count for each source, in the order in which they were found."""
    counts: dict[str, int] = {}
    for one in brought:
        counts[one.source] = counts.get(one.source, 0) + one.objects
    return tuple(Brought(count, source) for source, count in counts.items())


def _lost(store: Store, session: str, findings: Iterable[Finding]) -> set[str]:
    """The objects of a session that cannot be read, as far as a check met them."""
    return {oid for one in findings for oid in one.objects} | _missing_tips(store, session)


def _check_copy(copy: Path) -> None:
    """Raises SessgitError for a name that was mistyped: a repair without the copy would not be what was asked for."""
    try:
        with reader.opened(copy):
            return
    except SessgitError as error:
        raise type(error)(str(error), "--from needs a copy of the conversation's transcript.") from error


def _check_open(store: Store) -> None:
    """Raises StoreError where packs may not be read: then nothing is known to be lost."""
    closed = packs.unreadable_packs(store.path)
    if closed:
        what = f"no permission to read {closed[0]}, whose contents may be intact"
        raise StoreError(what, "`sessgit doctor` shows how to make it readable.")


def _anew(world: RecordContext, branch: str, out_of_reach: Sequence[str], *, dry_run: bool) -> Repaired | None:
    """What its file gave where nobody has the tip of a branch any more; None where it can be read, or no file is there.

    Raises DamageError where somebody could not be asked.
    """
    if not _is_nowhere(world.store, branch) or not rebuild.has_file(world, branch):
        return None
    if out_of_reach:
        what = f"cannot read {layout.short_name(branch)}, nor reach {out_of_reach[0]}"
        raise DamageError(what, "Try again when it is reachable.")
    if dry_run:
        return Repaired(branch, 0, anew=True)
    head = rebuild.recorded_anew(world, branch, _tip(world.store, branch))
    return Repaired(branch, world.store.state(head).turns, anew=True) if head else None


def _tip(store: Store, branch: str) -> str:
    """The id that the branch holds, ``""`` where there is no such branch."""
    return refs.branches(store.path, layout.session_of(branch)).get(branch, ("", False))[0]


def _is_nowhere(store: Store, branch: str) -> bool:
    """Whether the tip of a branch cannot be read, nor what it says of the session."""
    tip = _tip(store, branch)
    try:
        return not tip or not store.state(tip)
    except UnreadableError:
        return True
    except SessgitError:
        return False


def _mended(
    world: RecordContext,
    branch: str,
    new_id: str,
    lost: tuple[str, ...],
    findings: tuple[Finding, ...],
    *,
    dry_run: bool,
) -> Repaired:
    lines = _readable(world, branch)
    held = _tip(world.store, branch)
    is_torn = bool(lines.lost) or lines.commit != held or not _is_whole(world.store, held)
    strange = [] if is_torn or layout.is_side_branch(branch) else line_mends.strangers(world.store, branch)
    turned = (
        None if is_torn or layout.is_side_branch(branch) else line_mends.put_in_order(world.store, branch, lines.commit)
    )
    if turned is not None:
        lines, strange = turned[0], [turned[1]]
    plan = line_mends.plan(lines, strange, alone=is_torn or turned is not None)
    if is_torn and not lines.last:
        raise DamageError(f"cannot read {layout.short_name(branch)}", _elsewhere(world.store, branch))
    if plan.is_needed and not plan.is_conversation:
        raise DamageError(
            f"{layout.short_name(branch)} has no line that a client could continue from",
            "If its file is not UTF-8, convert it and import it again.",
        )
    made = mended_session.make(world, plan, new_id) if (is_torn or plan.mends) and not dry_run else None
    return Repaired(
        branch, lines.last, (), lost, findings, plan.mends, plan.shared, lines.lost, lines.state.redacted, made,
        is_needed=is_torn or bool(plan.mends),
    )  # fmt: skip


def _elsewhere(store: Store, branch: str) -> str:
    """What is left to do where nothing of a branch can be read."""
    spaces = (space for space in (layout.HEADS, layout.ARCHIVE) if store.ref(f"{space}{branch}"))
    ref = f"{next(spaces, layout.HEADS)}{branch}"
    return _ELSEWHERE.format(*map(humanize.quote_for_shell, (layout.short_name(branch), str(store.path), ref)))


def _is_whole(store: Store, tip: str) -> bool:
    """Whether every commit of a history can be read."""
    try:
        for _ in store.repo.first_parents(tip):
            pass
    except SessgitError:
        return False
    return True


def _readable(world: RecordContext, branch: str) -> Lines:
    """The lines of the branch as of its tip; where that cannot be read, of the latest commit that can be."""
    store = world.store
    error: SessgitError | None = None
    for commit in dict.fromkeys((*_of_branch(store, branch), *_remembered(world, branch))):
        try:
            return line_mends.read(store, branch, commit)
        except SessgitError as wrong:
            error = error or wrong
    raise DamageError(f"cannot read {layout.short_name(branch)}: {error}", _elsewhere(world.store, branch))


def _of_branch(store: Store, branch: str) -> list[str]:
    """The commits of a branch, the latest first; the tip alone where no commit can be read."""
    tip = _tip(store, branch)
    found: list[str] = []
    with suppress(SessgitError):
        found += (commit.id for commit in store.repo.first_parents(tip)) if tip else ()
    return found or ([tip] if tip else [])


def _remembered(world: RecordContext, branch: str) -> list[str]:
    """The commits of the branch's turns that the index and the cursor remember, the latest first."""
    rows = world.index.turns(branch)
    known = cursors.load_cursor(world.store.beside, layout.session_of(branch))
    return [*([known.commit] if known else ()), *(commit for row in reversed(rows) for commit in reversed(row.commits))]


def _tips(world: RecordContext, session: str) -> list[str]:
    tips = [tip for tip, _ in refs.branches(world.store.path, session).values()]
    for commit in _remembered(world, session):
        with suppress(SessgitError):
            world.store.state(commit)
            return [*tips, commit]
    return tips


def _missing_tips(store: Store, session: str) -> set[str]:
    """The ids that branches hold, and no object has."""
    return {
        tip for branch, (tip, _) in refs.branches(store.path, session).items()
        if ids.is_branch(branch) and store.repo.read_problem(tip)
    }  # fmt: skip


def _pack(store: Store) -> None:
    """Puts what is back into a pack without the damaged one; where that fails, it is read all the same."""
    store.repo.release()
    try:
        with locks.maintenance_lock(store.beside, _WAIT) as lock:
            if lock:
                maintenance.pack_store(store.path, lock, full=True)
    except SessgitError:
        return
