"""`repair`: lost objects and refs of a session are restored where they can be found, and lines that no client could
continue from become those of a new session.

Nothing recorded is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents import reader
from sessgit.agents.values import Mend
from sessgit.branch import lost_refs
from sessgit.check.repairing import line_repair, lost_objects
from sessgit.check.repairing.line_repair import Lines, RepairedSession
from sessgit.check.verifying import commits
from sessgit.errors import DamageError, SessgitError, StoreError, UnreadableError
from sessgit.model import humanize, ids
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.record import fork_detection
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource, rules_from_settings
from sessgit.store import layout, locks, operations, packed_refs, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.remotes import Connection
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_WAIT = 30.0
_HINT = (
    "To search another copy of its transcript: `sessgit repair {} --from FILE`. A remote may have it too. "
    "To give it up: `git -C {} update-ref -d {}`"
)


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done about a branch, or would be.

    `restored` counts objects by their source, `lost` are those found nowhere, `refs` counts restored refs, `findings`
    remain. `rerecorded` says that what was lost gave way to what the session's file holds. `mends` are the lines that
    differ in a new session, `made`; `is_needed` says that there is one, or would be. `shared` is the last turn that
    needed no repair, `turns` counts the turns that were read, `unread` those that cannot be, `redacted` the replaced
    secrets.
    """

    branch: str
    turns: int = 0
    restored: tuple[tuple[str, int], ...] = ()
    lost: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    mends: tuple[Mend, ...] = ()
    shared: int = 0
    unread: int = 0
    redacted: int = 0
    made: RepairedSession | None = None
    is_needed: bool = False
    refs: int = 0
    rerecorded: bool = False

    @property
    def was_sound(self) -> bool:
        return not (self.restored or self.lost or self.findings or self.is_needed or self.refs or self.rerecorded)


def repair(
    context: Context,
    branch: str,
    new_id: str,
    links: Sequence[Connection] = (),
    *,
    copy: Path | None = None,
    dry_run: bool = False,
) -> Repaired:
    """Repair a branch, or with `dry_run` return what would be done. `links` are the remotes to search, `copy` is
    another file of the session. Raises DamageError if nothing of it can be read, and NotFoundError or SessgitError if
    `copy` cannot be."""
    if copy is not None:
        _check_copy(copy)
    store, session = context.store, layout.session_of(branch)
    if dry_run and (lost := lost_refs.lost_refs(store, session)):
        return Repaired(branch, refs=len(lost))
    count = 0 if dry_run else lost_refs.restore_lost(store, session)
    if count:
        context.index.sync()
    search = lost_objects.restore_objects(context, session, links, copy, dry_run=dry_run)
    if search.restored and not dry_run:
        count += lost_refs.restore_lost(store, session)  # what they held may be there again
        context.index.sync()
    findings = [one for one in search.findings if one.severity != "note"]
    if search.restored and dry_run:
        findings = [one for one in findings if not one.objects or search.lost & set(one.objects)]
    restored = tuple((name, number) for name, number in search.restored.items() if number)
    result = Repaired(branch, 0, restored, tuple(sorted(search.lost)), tuple(findings), refs=count)
    if search.restored and dry_run:
        return result
    if _is_unreadable(store, branch) and (path := _usable_transcript(context, branch)):
        if search.unreachable:
            what = f"cannot read {layout.short_name(branch)}, nor reach {search.unreachable[0]}"
            raise DamageError(what, "Try again when it is reachable.")
        head = "" if dry_run else _record_again(context, branch, path)
        if dry_run or head:
            return Repaired(branch, store.state(head).turns if head else 0, refs=count, rerecorded=True)
    return _repair_lines(context, line_repair.branch_to_repair(store, branch), new_id, result, dry_run=dry_run)


def _check_copy(copy: Path) -> None:
    """Raise SessgitError if the file cannot be read: the user asked to search it."""
    try:
        with reader.opened(copy):
            return
    except SessgitError as error:
        raise type(error)(str(error), "--from needs a copy of the conversation's transcript.") from error


# A branch that cannot be read


def _tip(store: Store, branch: str) -> str:
    """Return the id that the branch holds, ``""`` if there is no such branch."""
    return refs.branches(store.path, layout.session_of(branch)).get(branch, ("", False))[0]


def _is_unreadable(store: Store, branch: str) -> bool:
    """Return whether the tip of a branch or its state cannot be read."""
    tip = _tip(store, branch)
    try:
        return not tip or not store.state(tip)
    except UnreadableError:
        return True
    except SessgitError:
        return False


def _usable_transcript(context: Context, branch: str) -> Path | None:
    """Return the file from which a head can be recorded again, if it holds a prompt."""
    path = None if layout.is_side_branch(branch) else lost_objects.find_transcript(context, Session(branch, branch))
    with suppress(OSError, SessgitError):
        return path if path is not None and fork_detection.first_prompt(path) else None
    return None


def _record_again(context: Context, session: str, path: Path) -> str:
    """Record a session from its file in place of its unreadable head, as an operation; return the new tip, ``""`` if
    nothing was recorded."""
    store, now, ref = context.store, context.now(), layout.head_ref(session)
    tip = _tip(store, session)
    if (store.ref(ref) or "") != tip:
        return ""
    with locks.session_lock(store.paths, session, _WAIT) as is_locked:
        if not is_locked:
            raise StoreError("a recorder is writing it", "Try again later.")
        summary = f"{session[:8]}: recorded again from its file, without what cannot be read"
        first = operations.perform_operation(store, "repair", summary, [Move(ref, tip, None)], now).id if tip else ""
        if ref in packed_refs.refs_without_id(store.path):
            packed_refs.quarantine_ref(store.path, ref)
        recorder_state.delete_cursor(store.paths, session)
        context.index.sync()
        agent = agents.of_file(path)
        named = agent.home.agent_id(path)
        agent_id = named if ids.session_id(named) == session else session
        folder = context.homes.folders[agent.name]
        source = TranscriptSource(path, agent_id, folder, client=agent.name, final=True)
        head = record(context, source, rules_from_settings(context.privacy.rules)).head
        if head:
            moves = [Move(ref, tip or None, head)]
            operations.perform_operation(store, "repair", summary, moves, now, held={ref: head}, completes=first)
            with suppress(SessgitError):  # nothing before it can be read either
                _keep_intact_commit(store, session, tip)
    context.index.sync()
    return head


def _keep_intact_commit(store: Store, session: str, tip: str) -> None:
    """Keep for undo the last intact commit before an unreadable tip: git packs nothing while a ref leads to a missing
    object."""
    kept = [name for name, oid in refs.read_all(store.path, layout.KEEP).items() if oid == tip]
    for commit in store.repo.first_parents(tip) if kept else ():
        findings = commits.check_branch(store, session, commit.id, commits.Cache(store)) if commit.id != tip else []
        if commit.id != tip and not any(finding.severity == "damage" for finding in findings):
            for name in kept:
                store.repo.move(name, tip, commit.id)
            return


# Lines


def _repair_lines(context: Context, branch: str, new_id: str, result: Repaired, *, dry_run: bool) -> Repaired:
    store, lines = context.store, _readable_lines(context, branch)
    tip = _tip(store, branch)
    is_incomplete = bool(lines.unread) or lines.commit != tip or not _has_whole_history(store, tip)
    strange, ordered = list[Mend](), None
    if not is_incomplete and not layout.is_side_branch(branch):
        strange = line_repair.foreign_branches(store, branch)
        ordered = line_repair.order_lines(store, branch, lines.commit)
    if ordered is not None:
        lines, strange = ordered[0], [ordered[1]]
    plan = line_repair.plan_repair(lines, strange, alone=is_incomplete or ordered is not None)
    name = layout.short_name(branch)
    if is_incomplete and not lines.last:
        raise DamageError(f"cannot read {name}", _hint(store, branch))
    if (plan.mends or lines.unread) and not plan.is_conversation:
        hint = "If its file is not UTF-8, convert it and import it again."
        raise DamageError(f"{name} has no line that a client could continue from", hint)
    is_needed = is_incomplete or bool(plan.mends)
    made = line_repair.write_session(context, plan, new_id) if is_needed and not dry_run else None
    return replace(
        result, branch=branch, turns=lines.last, mends=plan.mends, shared=plan.shared, unread=lines.unread,
        redacted=lines.state.redacted, made=made, is_needed=is_needed,
    )  # fmt: skip


def _readable_lines(context: Context, branch: str) -> Lines:
    """Return the lines of the branch as of its tip, or else of the latest readable commit."""
    store, tip, error = context.store, _tip(context.store, branch), None
    known = [tip] if tip else []
    with suppress(SessgitError):
        known += (commit.id for commit in store.repo.first_parents(tip)) if tip else ()
    for commit in dict.fromkeys((*known, *lost_objects.known_commits(context, branch))):
        try:
            return line_repair.read_lines(store, branch, commit)
        except SessgitError as wrong:
            error = error or wrong
    raise DamageError(f"cannot read {layout.short_name(branch)}: {error}", _hint(store, branch))


def _hint(store: Store, branch: str) -> str:
    """Return what the user can do about a branch of which nothing can be read."""
    spaces = (space for space in (layout.HEADS, layout.ARCHIVE) if store.ref(f"{space}{branch}"))
    ref = f"{next(spaces, layout.HEADS)}{branch}"
    return _HINT.format(*map(humanize.quote_for_shell, (layout.short_name(branch), str(store.path), ref)))


def _has_whole_history(store: Store, tip: str) -> bool:
    try:
        return bool(list(store.repo.first_parents(tip)))
    except SessgitError:
        return False
