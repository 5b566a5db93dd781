"""`sessgit archive`, `unarchive`, `delete`: conversations hidden, shown again and deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from sessgit.branch import archive as archives
from sessgit.branch import delete as deletes
from sessgit.branch import edit
from sessgit.branch.archive import ArchiveResult, OldSessions
from sessgit.branch.delete import DeletionPlan
from sessgit.cli import frame, operands, render, text
from sessgit.cli.commands.ls import moved_lines
from sessgit.cli.frame import ADDRESSES, DRY_RUN, YES, Answer, option, parse_time
from sessgit.cli.invocation import Invocation
from sessgit.errors import UsageError
from sessgit.history import ls

_LISTED = 20
"""The most conversations that are listed if they were not named one by one."""
_OLD = "--older-than"
_State = Literal["active", "ended", "interrupted", "failed", "aborted"]
_STATE = option("--state", "With --older-than: only in this state.")
_EVERYTHING = option("--all", "With --older-than: all projects, with headless and empty ones.")


@frame.command(
    "archive",
    needs="conversations",
    excludes={_OLD: "ADDRESS"},
    requires={"--label": _OLD, "--state": _OLD, "--all": _OLD, "--project": _OLD},
)
def archive(
    cli: Invocation,
    addresses: list[str] = ADDRESSES,
    older_than: str = option("--older-than WHEN", "Archive those last used before: 30d, 12w, 2026-03-01."),
    label: list[str] = option("--label LABEL", "With --older-than: only with this label."),
    state: _State | None = _STATE,
    everything: bool = _EVERYTHING,
    project: Path | None = option("--project DIR", "With --older-than: the project at DIR."),
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Hide conversations without deleting them.

    `sessgit ls` lists them only with --archived. Everything else works as before, and a conversation that continues
    leaves the archive. --older-than archives the old ones of this project, except those that are open, labelled keep,
    or manage others. The setting archive.after = "90d" does this automatically in all projects.
    """
    hint = "`sessgit archive ADDRESS`, or `sessgit archive --older-than 30d`."
    named = [edit.addressed_session(operands.target(cli, each, changes=True)) for each in addresses]
    chosen = _chosen(cli, named, older_than, hint, state, project, label, everything=everything)
    sessions = chosen.sessions
    if dry_run:
        already = tuple(branch.name for branch in cli.index.branches_named(sessions) if branch.archived)
        result = ArchiveResult(tuple(name for name in sessions if name not in already), already)
    else:
        result = archives.archive(cli.context, sessions)
    document = {
        "archived": list(result.sessions),
        "already": list(result.already),
        "skipped": [{"id": name, "reason": why} for name, why in chosen.passed_over.items()],
        "operation_id": result.operation.id if result.operation else None,
        "dry_run": dry_run,
    }
    listed = sessions if addresses or dry_run or len(result.sessions) <= _LISTED else ()
    lines = list(_moved(cli, listed, result, "already archived"))
    count = text.counted(len(result.sessions), "conversation")
    if dry_run:
        lines.append(f"{count} would be archived.")
    elif result.operation:
        lines.append(f"{count} archived (undo: sessgit undo)")
    elif not result.already:
        lines.append("Nothing to archive.")
    if chosen.passed_over:
        lines += text.fold([_skipped(chosen.passed_over)], cli.width, "")
    return Answer(document, lines)


def _chosen(
    cli: Invocation, named: Iterable[str], older_than: str, hint: str, state: _State | None,
    project: Path | None = None, labels: Sequence[str] = (), *, everything: bool,
) -> OldSessions:  # fmt: skip
    """Return the named sessions, else those last used before a time; raise UsageError, with a hint, without both."""
    if not older_than:
        sessions = tuple(dict.fromkeys(named))
        if not sessions:
            raise UsageError("no conversations selected.", hint)
        return OldSessions(sessions)
    query = ls.SessionFilter(
        folder=None if everything else cli.folder(project),
        labels=tuple(labels),
        state=state,
        before=parse_time(older_than, cli.now),
        headless=everything,
        empty=everything,
    )
    return archives.old_sessions(cli.index, query, cli.env.homes)


def _skipped(skipped: Mapping[str, str]) -> str:
    return f"Skipped: {', '.join(f'{count:,} {why}' for why, count in sorted(Counter(skipped.values()).items()))}"


def _moved(cli: Invocation, sessions: Sequence[str], result: ArchiveResult, note: str) -> Iterator[str]:
    branches = {branch.name: branch for branch in cli.index.branches_named(sessions)}
    return moved_lines(cli, [branches[name] for name in sessions], dict.fromkeys(result.already, note))


@frame.command("unarchive", needs="conversations")
def unarchive(cli: Invocation, addresses: list[str] = ADDRESSES) -> Answer:
    """Take conversations out of the archive."""
    if not addresses:
        hint = "`sessgit ls --only-archived` lists archived conversations."
        raise UsageError("no conversations selected.", hint)
    sessions = list(dict.fromkeys(_recorded(cli, addresses)))
    result = archives.unarchive(cli.context, sessions)
    lines = list(_moved(cli, sessions, result, "not archived"))
    if result.operation:
        lines.append(f"{text.counted(len(result.sessions), 'conversation')} unarchived (undo: sessgit undo)")
    operation = result.operation.id if result.operation else None
    document = {"unarchived": list(result.sessions), "already": list(result.already), "operation_id": operation}
    return Answer(document, lines)


@frame.command("delete", needs="conversations", excludes={_OLD: "ADDRESS"}, requires={"--state": _OLD, "--all": _OLD})
def delete(
    cli: Invocation,
    addresses: list[str] = ADDRESSES,
    older_than: str = option("--older-than WHEN", "Delete those last used before: 30d, 12w, 2026-03-01."),
    state: _State | None = _STATE,
    everything: bool = _EVERYTHING,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
) -> Answer:
    """Delete conversations.

    Also deletes their tags, the turns left behind by rewinds, and other versions. Forks keep the turns they share. The
    client's own files stay, but are not recorded again unless `sessgit import --id` names them. `sessgit undo` brings
    the conversations back until `sessgit gc --prune` makes the deletion final. --older-than deletes the old ones of
    this project, except those that are open, labelled keep, or manage others.
    """
    hint = "`sessgit delete ADDRESS`, or `sessgit delete --older-than 90d`."
    chosen = _chosen(cli, _recorded(cli, addresses), older_than, hint, state, everything=everything)
    notes = [_skipped(chosen.passed_over)] if chosen.passed_over else []
    must_ask = chosen.sessions and not (dry_run or yes)
    if must_ask:
        render.check_can_ask(cli, "Pass --yes.")
    plans = deletes.plan_deletion(cli.index, chosen.sessions, cli.env.homes)
    if must_ask:
        question = "Delete?" if len(plans) == 1 else f"Delete all {len(plans)}?"
        frame.confirm(_before_deletion(cli, plans), question, "Nothing was deleted.")
    operation = deletes.delete_sessions(cli.context, plans) if plans and not dry_run else None
    document = {
        "deleted": [
            {
                "id": plan.session,
                "turns": plan.branch.state.turns,
                "other_versions": plan.elsewhere,
                **frame.attributes(plan, "rewound", "tags", "forks", "children"),
                "merged": [{"session_id": into, "turns": turns} for into, turns in plan.merged],
                **frame.attributes(plan, "transcript"),
            }
            for plan in plans
        ],
        "operation_id": operation.id if operation else None,
        "dry_run": dry_run,
    }
    if operation:
        return Answer(document, _deleted(cli, plans), notes=notes)
    count = f"{text.counted(len(plans), 'conversation')} would be deleted." if plans else "Nothing to delete."
    return Answer(document, [*_before_deletion(cli, plans), count], notes=notes)


def _before_deletion(cli: Invocation, plans: Sequence[DeletionPlan]) -> Iterator[str]:
    for plan in plans:
        yield from moved_lines(cli, [plan.branch], {})
        for part in _consequences(cli, plan):
            yield from (f"  {line}" for line in text.wrapped(part, cli.width - 2))
        if plan.transcript is not None:  # a path is never broken
            yield "  not deleted, the client's transcript:"
            yield f"  {cli.shown(plan.transcript)}"


def _consequences(cli: Invocation, plan: DeletionPlan) -> Iterator[str]:
    if plan.rewound:
        yield f"{text.counted(plan.rewound, 'branch', 'branches')} left behind by rewinds"
    if plan.elsewhere:
        yield f"{text.counted(plan.elsewhere, 'branch', 'branches')} of other versions"
    if plan.tags:
        yield f"tags: {', '.join(text.clean(name) for name in plan.tags)}"
    if plan.is_lost:
        yield "only this store has it: the client deleted its transcript"
    if plan.forks:
        yield f"forks that keep the shared turns: {', '.join(map(cli.ident, plan.forks))}"
    if plan.children:
        yield f"it manages others, which lose their parent: {', '.join(map(cli.ident, plan.children))}"
    elif plan.branch.state.unified.metadata.role == "manager":
        yield "it is a manager"
    for into, turns in plan.merged:
        were, stay = ("was", "stays") if turns == 1 else ("were", "stay")
        yield f"{text.counted(turns, 'turn')} of it {were} merged into {cli.ident(into)} and {stay} there"


def _deleted(cli: Invocation, plans: Sequence[DeletionPlan]) -> Iterator[str]:
    for plan in plans:
        yield f"{cli.paint('yellow', cli.ident(plan.session))}  deleted"
        if plan.transcript is not None:
            yield "The client's transcript stays, but is not recorded again:"
            yield f"  {cli.shown(plan.transcript)}"
    yield "Undo: sessgit undo, until sessgit gc --prune"


def _recorded(cli: Invocation, addresses: Sequence[str]) -> list[str]:
    """Return the sessions that addresses name, as they are recorded."""
    return [edit.addressed_session(operands.recorded(cli, address)) for address in addresses]
