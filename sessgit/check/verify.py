"""`verify`: one session or the whole store, against what `docs/format.md` promises.

Each session is checked by itself, so damage in one hides no other. What sessions share is checked once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from sessgit import agents
from sessgit.check import session_checks, store_checks
from sessgit.check.session_checks import Cache, Report
from sessgit.errors import NewerStoreError, SessgitError
from sessgit.history.search import TurnTexts
from sessgit.model import humanize, ids
from sessgit.model.finding import Finding, is_sound, sorted_by_severity
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress
from sessgit.store import fulltext, layout, object_scan, refs
from sessgit.store.context import Context
from sessgit.store.fulltext import Texts
from sessgit.store.index import Index
from sessgit.store.store import Store

_MANY_TURNS = 400
"""Turns from which on a second process is worth its start, which takes as long as checking some dozens."""
_FSCK_HINT = "To restore it from a file or a remote, run `sessgit repair` with the conversation's id."


_DELETE = "Delete it: the next command rebuilds it."


@frozen
class Verified:
    """The result of a check: counts of sessions, turns (a shared one once) and hashes of lines; `cut` counts the files
    that were cut again, None without `--deep`; `damaged` are the sessions with findings that are not notes."""

    sessions: int
    turns: int
    proved: int
    cut: int | None
    findings: tuple[Finding, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return is_sound(self.findings)


@frozen
class _Task:
    """A session to check: the tips of its branches, the commits that undo or tags keep by their refs, and its turns."""

    session: str
    tips: Mapping[str, str]
    kept: Mapping[str, str]
    turns: int = 0


@frozen
class _Result:
    """The findings about a session, or, without a session, about commits that undo or a tag keeps."""

    session: str
    findings: tuple[Finding, ...]
    turns: int = 0
    proved: int = 0
    cut: bool = False


def verify_session(store: Store, session: str, *, deep: bool = False) -> Verified:
    """Check a session with all of its branches."""
    tips = {branch: tip for branch, (tip, _) in refs.branches(store.path, session).items()}
    return _total([_check_session(store, session, tips, Cache(store), deep=deep)], [], deep=deep)


def verify_store(
    store: Store, index: Index | None, progress: Progress, *, deep: bool = False, jobs: int = 0
) -> Verified:
    """Check the whole store. `progress` gets the number of checked turns. `jobs` is the number of processes: by default
    one per processor, at most two, if the store is large. With `deep`, each session's file is cut into turns again, and
    the indexes are compared with what they were made of."""
    findings = list(store_checks.shared_findings(store))
    if deep and index is not None:
        findings += _differences("index.sqlite3", "its rows of {} differ from the commits", index.differing_branches)
        findings += _check_texts(Context(index))
    groups = _groups(store, index)
    turns = {task.session: task.turns for group in groups for task in group}
    done, total, results = 0, sum(turns.values()), []
    jobs = jobs or (min(2, os.cpu_count() or 1) if total > _MANY_TURNS and len(groups) > 1 else 1)
    for result in _results(store, groups, deep=deep, jobs=jobs):
        done += turns.get(result.session, 0)
        progress(done, total)
        results.append(result)
    return _total(results, findings, deep=deep)


def verify_objects(store: Store, verified: Verified, progress: Progress) -> Verified:
    """Return the result with what git finds in all objects and is not among the findings yet."""
    known = {oid for finding in verified.findings for oid in finding.objects}
    has_packed_refs = any(finding.where == refs.PACKED for finding in verified.findings)
    more = [
        Finding("damage", "git", "objects", problem.what, _FSCK_HINT if problem.objects else "", problem.objects)
        for problem in object_scan.fsck(store.path, progress)
        if not known & set(problem.objects) and not (has_packed_refs and "packed-refs" in problem.what)
    ]
    return replace(verified, findings=tuple(sorted_by_severity([*verified.findings, *more])))


# A session


def _check_session(store: Store, session: str, tips: Mapping[str, str], cache: Cache, *, deep: bool) -> _Result:
    before, findings = len(cache.prompts), list[Finding]()
    for branch, tip in sorted(tips.items()):
        findings += _check_branch(store, branch, tip, cache)
    findings += session_checks.check_carriers(cache, session)
    turns = len(cache.prompts) - before
    own = {branch: tip for branch, tip in tips.items() if not layout.is_other_version(branch)}
    if session not in own or any(one.severity == "damage" or one.kind == "shared" for one in findings):
        return _Result(session, tuple(findings), turns)
    report, proved, cut = session_checks.check_transcript(store, session, own, deep=deep)
    return _Result(session, tuple(dict.fromkeys((*findings, *report.findings))), turns, proved, cut)


def _check_branch(store: Store, branch: str, tip: str, cache: Cache) -> list[Finding]:
    try:
        return session_checks.check_branch(store, branch, tip, cache)
    except NewerStoreError as error:
        report = Report(branch)
        report.add("note", "newer", str(error), error.hint)
        return report.findings


# The whole store


def _groups(store: Store, index: Index | None) -> list[list[_Task]]:
    """Return the sessions to check; those with the same first turn are one group, so that a shared turn is checked
    once."""
    tips: dict[str, dict[str, str]] = {}
    for branch, (tip, _) in sorted(refs.branches(store.path).items()):
        if ids.is_branch(branch):
            tips.setdefault(layout.session_of(branch), {})[branch] = tip
    kept = store_checks.kept_tips(store)
    names = sorted({*tips, *kept})
    roots, counts = dict[str, str](), dict[str, int]()
    if index is not None:
        with suppress(SessgitError):
            roots = {name: rows[0].prompt for name in names if (rows := index.turns(name, 1, 1))}
            counts = {outline.name: outline.turns for outline in index.outlines()}
    groups: dict[str, list[_Task]] = {}
    for name in names:
        turns = counts.get(name, 1) + 1 if name in tips else 0
        groups.setdefault(roots.get(name, name), []).append(_Task(name, tips.get(name, {}), kept.get(name, {}), turns))
    return list(groups.values())


def _results(store: Store, groups: Sequence[Sequence[_Task]], *, deep: bool, jobs: int) -> Iterator[_Result]:
    """Yield the results of all groups. If a process of the pool dies, this one checks the rest."""
    if jobs == 1:
        waiting: Iterable[Sequence[_Task]] = groups
    else:
        largest_first = sorted(groups, key=lambda group: -sum(task.turns for task in group))
        finished = 0
        try:
            with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
                for results in pool.map(partial(_check_group_at, store.path, deep=deep), largest_first):
                    finished += 1
                    yield from results
        except (BrokenProcessPool, OSError):
            pass
        waiting = largest_first[finished:]
    for group in waiting:
        yield from _check_group(store, group, deep=deep)


def _check_group_at(path: Path, group: Sequence[_Task], *, deep: bool) -> list[_Result]:
    return _check_group(Store(path), group, deep=deep)


def _check_group(store: Store, group: Sequence[_Task], *, deep: bool) -> list[_Result]:
    cache = Cache(store)
    results = [_check_session(store, task.session, task.tips, cache, deep=deep) for task in group if task.tips]
    kept = list[Finding]()
    for task in group:
        for ref, tip in task.kept.items():
            if tip not in cache.commits:  # else it is on a branch
                about = _check_branch(store, task.session, tip, cache)
                # No command searches for lost objects of these.
                found = (replace(one, where=ref, next=one.next if one.kind == "newer" else "") for one in about)
                kept += dict.fromkeys(one for one in found if one.kind != "shared")
    return [*results, _Result("", tuple(kept))] if kept else results


def _total(results: Sequence[_Result], findings: Sequence[Finding], *, deep: bool) -> Verified:
    sessions = {result.session for result in results if result.session}
    lost = {_session_of(finding.where) for finding in findings if finding.severity == "damage"} - sessions - {""}
    damaged = [one.session for one in results if one.session and any(two.severity != "note" for two in one.findings)]
    return Verified(
        len(sessions) + len(lost),
        sum(result.turns for result in results),
        sum(result.proved for result in results),
        sum(result.cut for result in results) if deep else None,
        tuple(sorted_by_severity([*findings, *(finding for result in results for finding in result.findings)])),
        tuple(dict.fromkeys((*damaged, *sorted(lost)))),
    )


def _session_of(ref: str) -> str:
    """Return the session of a branch's ref, ``""`` for other places."""
    space, name = layout.split_ref(ref)
    is_own = space in layout.BRANCH_SPACES and ref == f"{space}{name}"
    return layout.session_of(name) if is_own and ids.is_branch(name) else ""


def _check_texts(context: Context) -> Iterator[Finding]:
    """Return a finding if the full-text index, if there is one, differs from the lines of its turns."""
    store, before = context.store, context.index.tips()
    tips = {name: tip for name, (tip, _) in before.items()}

    def commits(name: str) -> dict[int, str]:
        return {row.turn: row.commit for row in context.index.turns(name)}

    def lines(commit: str, number: int) -> Sequence[Texts] | None:
        try:
            return TurnTexts(agents.of_commit(store, commit), store, commit, number).lines()
        except (SessgitError, ValueError):
            return None  # reported with its commit

    def find() -> list[str]:
        differing = fulltext.differing_branches(store.path, tips, commits, lines)
        after = context.index.tips()  # `commits` answers for another tip once a branch has moved
        return [name for name in differing if before[name] == after.get(name)]

    return _differences(store.paths.text.name, "its words of {} differ from their turns", find)


def _differences(place: str, what: str, find: Callable[[], Sequence[str]]) -> Iterator[Finding]:
    """Return a finding if an index of branches differs from what it was made of, or cannot be compared."""
    try:
        wrong = find()
    except SessgitError as error:
        yield Finding("wrong", "index", place, str(error), error.hint or "sessgit doctor --fix")
        return
    if wrong:
        branches = humanize.format_count(len(wrong), "branch", "branches")
        yield Finding("wrong", "index", place, f"{what.format(branches)}, {wrong[0]} first", _DELETE)
