"""What is stored, held against every promise of the format: a session or the whole store.

Each session is checked for itself, so damage in one leaves all others told. What sessions share is checked once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from sessgit.check.verifying import caches, client_files, cutting, history, ref_checks
from sessgit.check.verifying.checked_commits import Memory, unsaid
from sessgit.check.verifying.turns import REPAIR, Where
from sessgit.errors import DamageError, NewerStoreError, NotFoundError, SessgitError, StoreError
from sessgit.history import reassemble
from sessgit.model import ids
from sessgit.model.finding import Finding, is_sound, sorted_by_severity
from sessgit.model.progress import Progress
from sessgit.store import layout, refs
from sessgit.store.damage import objects
from sessgit.store.index import Index
from sessgit.store.store import Store

_MANY = 400
"""So many turns are worth a second process: to start one takes as long as to check some dozens."""
_FSCK = "To restore it from a file or a remote, run `sessgit repair` with the conversation's id."


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found of a session: `turns` that were read, `proved` hashes of laid-out lines that hold, and whether its
    file was `cut` once more. Of no session it is what was found of commits that are kept for undo, or tagged."""

    session: str
    turns: int
    proved: int
    cut: bool
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check found. `turns` that were read, a shared one once; `proved` counts hashes; `cut` the sessions that
    were cut once more, None where nobody asked for it; `findings` the worst first."""

    sessions: int
    turns: int
    proved: int
    cut: int | None
    findings: tuple[Finding, ...] = ()
    damaged: tuple[str, ...] = ()
    """The sessions that anything is wrong with."""

    @property
    def is_sound(self) -> bool:
        return is_sound(self.findings)


@dataclass(frozen=True, slots=True)
class _Task:
    """A session to check: the tips of its branches, the commits that only undo or a tag leads to by their refs, and how
    much work it is, in turns."""

    session: str
    tips: Mapping[str, str]
    kept: Mapping[str, str]
    weight: int


def one(store: Store, session: str, *, deep: bool = False) -> Verified:
    """Checks a session, with all of its branches."""
    tips = {branch: tip for branch, (tip, _) in refs.branches(store.path, session).items()}
    return _added([_session(store, session, tips, Memory(), deep=deep)], (), deep=deep)


def everything(store: Store, index: Index | None, progress: Progress, *, deep: bool = False, jobs: int = 0) -> Verified:
    """Checks the whole store; `progress` is told the turns that are done. `jobs` is how many processes share the work:
    as many as there are processors, two at most, where the store is large.

    With `deep` each session's file is cut once more, and what is remembered is held against what it was made of.
    """
    groups = _planned(store, index)
    found = list(ref_checks.check(store))
    if deep and index is not None:
        found += caches.check_index(index)
        found += caches.check_texts(store, index)
    checked = list(_run(store, groups, progress, deep=deep, jobs=jobs))
    return _added(checked, found, deep=deep)


def every_object(store: Store, known: Verified, progress: Progress) -> Verified:
    """The same with what git finds of all objects that was not told yet."""
    told = {oid for finding in known.findings for oid in finding.objects}
    told_refs = any(finding.where == refs.PACKED for finding in known.findings)
    more = [
        Finding("damage", "git", "objects", complaint.what, _FSCK if complaint.objects else "", complaint.objects)
        for complaint in objects.fsck(store.path, progress)
        if not told & set(complaint.objects) and not (told_refs and "packed-refs" in complaint.what)
    ]
    return replace(known, findings=tuple(sorted_by_severity([*known.findings, *more])))


# A session


def _session(store: Store, session: str, tips: Mapping[str, str], memory: Memory, *, deep: bool) -> Checked:
    """What is found of a session: of the commits of its branches, which others may share, and of its file."""
    before = memory.turns
    found: list[Finding] = []
    for branch, tip in sorted(tips.items()):
        try:
            found += history.check(store, branch, tip, memory)
        except NewerStoreError as error:
            found.append(Where(branch).found("note", "newer", str(error), error.hint))
    found += unsaid(memory, session)
    own = {branch: tip for branch, tip in tips.items() if not layout.is_other_version(branch)}
    is_readable = not any(finding.severity == "damage" or finding.kind == "shared" for finding in found)
    file = _file(store, session, own, deep=deep) if session in own and is_readable else _File()
    every = tuple(dict.fromkeys((*found, *file.findings)))
    return Checked(session, memory.turns - before, file.proved, file.cut, every)


@dataclass
class _File:
    """What was found of a session's file, as it is laid out."""

    proved: int = 0
    cut: bool = False
    findings: list[Finding] = field(default_factory=list)


def _file(store: Store, session: str, own: dict[str, str], *, deep: bool) -> _File:
    """The file of the session's own branches, laid out with every hash proved, and with `deep` cut once more."""
    where, done = Where(session), _File()
    found = done.findings
    try:
        pieces = reassemble.file_pieces(store, session, own)
        laid, done.proved = reassemble.lay_out(pieces.found), pieces.checked
        found += caches.check_cursor(store, session, own, pieces.found)
        found += client_files.check_prefix(store, session, own[session], pieces)
        found += client_files.check_places(session, pieces.found, laid.missing)
        if pieces.rewritten:
            found.append(where.found("note", "prefix", "rebuilding the beginning of the fork gives different bytes"))
        if deep:
            found += cutting.check(store, session, own, laid)
            found += client_files.check(store, session, own)
            done.cut = True
    except NewerStoreError:
        pass  # told of its branch
    except DamageError as error:
        found.append(where.found("damage", "hash", str(error), REPAIR.format(session=session)))
    except (StoreError, NotFoundError) as error:
        found.append(where.found("damage", "object", str(error), REPAIR.format(session=session)))
    return done


def _kept(store: Store, session: str, kept: Mapping[str, str], memory: Memory) -> Iterator[Finding]:
    """What is wrong with commits of a session that only undo or a tag leads to, told of these refs."""
    for ref, tip in kept.items():
        if tip in memory.commits:
            continue  # told of a branch
        try:
            found = list(history.check(store, session, tip, memory))
        except NewerStoreError as error:
            yield Finding("note", "newer", ref, str(error), error.hint)
            continue
        # No command looks for what is missing there.
        yield from dict.fromkeys(replace(one, where=ref, next="") for one in found if one.kind != "shared")


# The whole store


def _planned(store: Store, index: Index | None) -> list[list[_Task]]:
    """The sessions, those with the same first turn together: what they share is checked once."""
    tips: dict[str, dict[str, str]] = {}
    for branch, (tip, _) in sorted(refs.branches(store.path).items()):
        if ids.is_branch(branch):
            tips.setdefault(layout.session_of(branch), {})[branch] = tip
    kept = ref_checks.tips(store)
    names = sorted({*tips, *kept})
    turns: dict[str, tuple[str, int]] = {}
    if index is not None:
        with suppress(SessgitError):
            roots = {name: rows[0].prompt for name in names if (rows := index.turns(name, 1, 1))}
            turns = {one.name: (roots.get(one.name, one.name), one.turns) for one in index.outlines()}
    groups: dict[str, list[_Task]] = {}
    for name in names:
        first, count = turns.get(name, (name, 1))
        task = _Task(name, tips.get(name, {}), kept.get(name, {}), count + 1 if name in tips else 0)
        groups.setdefault(first, []).append(task)
    return list(groups.values())


def _run(
    store: Store, groups: Sequence[Sequence[_Task]], progress: Progress, *, deep: bool, jobs: int
) -> Iterator[Checked]:
    weights = {task.session: task.weight for group in groups for task in group}
    done, total = 0, sum(weights.values())
    many = jobs or (min(2, os.cpu_count() or 1) if total > _MANY and len(groups) > 1 else 1)
    every = _shared(store, groups, deep=deep, jobs=many) if many > 1 else _alone(store, groups, deep=deep)
    for checked in every:
        done += weights.get(checked.session, 0)
        progress(done, total)
        yield checked


def _alone(store: Store, groups: Iterable[Sequence[_Task]], *, deep: bool) -> Iterator[Checked]:
    for group in groups:
        memory = Memory()
        yield from (_session(store, task.session, task.tips, memory, deep=deep) for task in group if task.tips)
        kept = [one for task in group for one in _kept(store, task.session, task.kept, memory)]
        if kept:
            yield Checked("", 0, 0, cut=False, findings=tuple(kept))


def _shared(store: Store, groups: Sequence[Sequence[_Task]], *, deep: bool, jobs: int) -> Iterator[Checked]:
    """The same by several processes, the largest groups first; where one process dies, the rest is done here."""
    waiting = sorted(groups, key=lambda group: -sum(task.weight for task in group))
    finished = 0
    try:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for found in pool.map(_group, [(store.path, group, deep) for group in waiting]):
                finished += 1
                yield from found
    except (BrokenProcessPool, OSError):
        yield from _alone(store, waiting[finished:], deep=deep)


def _group(given: tuple[Path, Sequence[_Task], bool]) -> list[Checked]:
    """What a process of its own does."""
    path, group, deep = given
    return list(_alone(Store(path), [group], deep=deep))


def _added(checked: Sequence[Checked], found: Sequence[Finding], *, deep: bool) -> Verified:
    every = [*found, *(finding for one in checked for finding in one.findings)]
    sessions = [one for one in checked if one.session]
    names = {one.session for one in sessions}
    told = [(_session_of(one.where), one) for one in found]
    gone = {session for session, one in told if session and session not in names and one.severity == "damage"}
    torn = [one.session for one in sessions if any(finding.severity != "note" for finding in one.findings)]
    return Verified(
        len(sessions) + len(gone),
        sum(one.turns for one in checked),
        sum(one.proved for one in checked),
        sum(one.cut for one in checked) if deep else None,
        tuple(sorted_by_severity(every)),
        tuple(dict.fromkeys((*torn, *sorted(gone)))),
    )


def _session_of(ref: str) -> str:
    """The session that a ref is of, ``""`` where it is of none."""
    space = next((space for space in (layout.HEADS, layout.ARCHIVE) if ref.startswith(space)), "")
    name = ref.removeprefix(space)
    return layout.session_of(name) if space and ids.is_branch(name) else ""
