"""`sessgit fork`: a conversation that begins where another one was."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.branch import fork as forks
from sessgit.branch.fork import ForkResult
from sessgit.cli import client_notes, frame, operands, text
from sessgit.cli.frame import ADDRESS, Answer, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import UsageError
from sessgit.history import client_files, resolve
from sessgit.history.resolve import ForkPoint

if TYPE_CHECKING:
    from sessgit.branch.worktree import Worktree


@frame.command(
    "fork",
    reads=True,
    excludes={"--run": "--no-restore", "--worktree": "--project", "--at-message": "--at"},
    requires={"--branch": "--worktree"},
)
def fork(
    cli: Invocation,
    address: str = ADDRESS,
    at: str | None = option("--at N[.C]", "Keep turns up to N, or up to cell C of turn N."),
    at_message: int | None = option("--at-message N", "Keep messages up to N, counted from 0."),
    name: str = option("--name NAME", "Name the fork."),
    no_restore: bool = option("--no-restore", "Do not write a transcript for the client."),
    project: Path | None = option("--project DIR", "Continue the fork in DIR."),
    worktree: str | None = option("--worktree [PATH]", "Also make a git worktree with the code as of turn N."),
    branch: str = option("--branch NAME", "Make this git branch in the worktree."),
    run: bool = option("--run", "Start the client on the fork."),
) -> Answer:
    """Fork a conversation at a turn.

    The fork has the turns up to N (default: all). Its transcript and sidecar files are written for the client as of
    turn N, so that the client's `resume` continues it. The original does not change. --at 7.3 keeps turn 7 up to its
    third cell. --at-message counts prompts and messages of the model, as programs do that know no turns.

    --worktree also makes a git worktree of the project, at PATH or next to the project, at the commit that the project
    had at the end of turn N, and continues the fork there. With --at 7.3 it is the last commit recorded before that
    cell, or else the one at the end of turn 6. It is on no branch, except with --branch. Changes that were uncommitted
    then are not restored.
    """
    if worktree and not address:
        _check_is_path(cli, worktree)
    source = operands.target(cli, address, at, changes=True)
    if at_message is not None:
        source = resolve.at_message(cli.context, source, at_message)
    folder = str(project.resolve()) if project else ""
    if name:
        from sessgit.branch.edit import check_name_free

        name = check_name_free(cli.index, name, "", folder or source.state.project or cli.cwd)
    point = resolve.fork_point(cli.context, source)
    plan = forks.ForkPlan(str(uuid.uuid4()), name, cli.now, None if no_restore else cli.env.homes, folder)
    tree: Worktree | None = None
    if worktree is None:
        result = forks.fork_session(cli.store, source.state, point, plan)
    else:
        from sessgit.branch import worktree as worktrees
        from sessgit.history import project_git

        head = project_git.head_at(cli.context, source.branch, point.turn, point.cell)
        path = Path(worktree).expanduser().resolve() if worktree else None
        tree = worktrees.plan_worktree(source.state.project, head, path, plan.id[:8], os.environ, branch)
        result = worktrees.fork_into_worktree(cli.store, source.state, point, plan, tree, os.environ)
    state = client_files.localize_state(result.state, cli.local_path)
    command, next_step = client_notes.continuation(cli, state)
    can_continue = resolve.chain_is_closed(cli.store, result.commit, point.turn)
    remarks = client_notes.redacted(result.missing, "the fork")
    if result.dropped_calls:
        remarks.append(f"Left out: {text.counted(result.dropped_calls, 'tool call')} without a result.")
    if result.transcript and not command:
        remarks.append(f"The project's folder is gone: {cli.short(state.project)}.")
    if not can_continue:
        remarks.append(
            "The client would send none of these turns to the model: their lines are not linked to each other."
        )
        command, next_step = "", f"The client cannot continue it. Repair it: sessgit repair {cli.ident(state.id)}"
    document = {
        "id": result.state.id,
        "parent": point.session,
        "turn": point.turn,
        **frame.attributes(result, "commit", "transcript"),
        "resume": command or None,
        "files": client_notes.as_json(result.files),
        "worktree": tree.as_json() if tree else None,
    }
    lines = _page(cli, result, point, tree, next_step)
    return Answer(
        document, lines, remarks, then=lambda: run and can_continue and client_notes.start_client(state, cli.cwd)
    )


def _check_is_path(cli: Invocation, word: str) -> None:
    """Raise UsageError if the word after --worktree names a conversation: it would be taken for a path."""
    name = word.partition("@")[0]
    if "/" not in word and (resolve.branches_by_name(cli.index, name, cli.where) or name in cli.index.tags()):
        hint = f"`sessgit fork {word} --worktree`, or `--worktree ./{word}` for a folder with that name."
        raise UsageError(f"--worktree expects a path, but “{word}” is a conversation.", hint)


def _page(
    cli: Invocation, result: ForkResult, point: ForkPoint, tree: Worktree | None, next_step: str
) -> Iterator[str]:
    origin, ident = result.state.origin, cli.ident(result.state.id)
    name = f"{result.state.name}  ·  " if result.state.name else ""
    at = origin.cell if origin and origin.cell else point.turn
    line = f"{name}{text.counted(result.state.turns, 'turn')}, from {cli.ident(point.session)}@{at}"
    room = cli.width - len(ident) - text.width(line) - 5
    row = cli.index.turn(point.session, point.turn)
    if row is not None and room > 8:
        line += f" “{text.cut(text.clean(cli.index.title(row)), room)}”"
    yield f"{cli.paint('yellow', ident)}  {text.cut(line, cli.width - len(ident) - 2)}"
    yield from client_notes.written(result.files, count_secrets=False)
    if tree is not None:
        yield from _worktree(cli, tree)
    yield next_step if result.transcript else f"Continue it:  sessgit resume {ident}"


def _worktree(cli: Invocation, tree: Worktree) -> Iterator[str]:
    commit = tree.head.commit[:8] + (f" ({text.clean(tree.head.branch)})" if tree.head.branch else "")
    branch = f"its new branch {text.clean(tree.branch)}" if tree.branch else "no branch"
    missing = [
        "uncommitted changes" * tree.head.dirty,
        "untracked files (.env, node_modules)",
        "submodules" * tree.has_submodules,
        "anything outside the repository",
    ]
    for paragraph in (
        f"Worktree: {cli.shown(tree.path)} at {commit}, on {branch}.",
        f"Not included: {', '.join(filter(None, missing))}.",
        f"Earlier turns name files in {cli.shown(tree.source)}: tell the agent the new folder.",
        *([] if tree.branch else ["To make a branch:  git switch -c NAME, in the worktree"]),
    ):
        yield from text.paragraph(cli, paragraph)
