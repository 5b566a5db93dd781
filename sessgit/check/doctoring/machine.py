"""The machine around the store: git, its settings, the disk, the clock, remotes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.check import status
from sessgit.check.doctoring.context import DoctorContext
from sessgit.errors import SessgitError
from sessgit.model import canonical, humanize
from sessgit.model.finding import Finding
from sessgit.store import git, recorder_state, remotes, settings
from sessgit.store.store import missing_parts

OLDEST_GIT = (2, 30)
_INSTALL = "Install git 2.30 or later."
_MOST_SESSIONS = 40
"""Sessions whose client's version is looked at."""
_NAMED = 3
_LITTLE = 1 << 30
_AHEAD = 86_400.0
_VERSION = re.compile(r"(\d+)\.(\d+)(\.\d+)?")


def check(context: DoctorContext) -> Iterator[Finding]:
    """Return findings about what keeps the store from working, now or soon."""
    yield from _git(context)
    yield from _disk(context)
    if context.index is not None:
        yield from _clients(context)
        yield from _clock(context)
        yield from _remotes(context)


def git_version(context: DoctorContext) -> str:
    """Return the version of git, or ``""`` without git."""
    program = shutil.which("git", path=context.env.get("PATH"))
    if program is None:
        return ""
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, env=git.PLAIN_ENV, cwd="/"
        ).stdout
    except OSError:
        return ""
    version = _VERSION.search(said)
    return version[0] if version else ""


def client_versions(context: DoctorContext) -> list[str]:
    """Return the versions of the clients that wrote the latest sessions, the newest first."""
    return sorted({version for _, version in _clients_seen(context)}, key=_order, reverse=True)


def _clients_seen(context: DoctorContext) -> set[tuple[Agent, str]]:
    """Return the agents of the latest sessions, each with the versions of its client that wrote them."""
    if context.index is None:
        return set()
    names = [outline.name for outline in context.index.outlines()[:_MOST_SESSIONS]]
    states = [branch.state for branch in context.index.branches_named(names)]
    return {(agents.of(one), canonical.one_line(one.agent_version, 40)) for one in states if one.agent_version}


def _git(context: DoctorContext) -> Iterator[Finding]:
    version = git_version(context)
    if not version:
        yield Finding("damage", "git", "git", "git is missing: nothing can be packed, pulled or pushed", _INSTALL)
        return
    if _order(version)[:2] < OLDEST_GIT:
        yield Finding("wrong", "git", "git", f"git {version} is too old", _INSTALL)
    if context.error and not _is_explained(context):
        yield _open_error(context)


def _is_explained(context: DoctorContext) -> bool:
    """Return whether another finding says why the store cannot be opened."""
    try:
        settings.load_settings(context.paths)
    except SessgitError:
        return True
    return bool(missing_parts(context.store) or status.blocked_folders(context.store))


def _open_error(context: DoctorContext) -> Finding:
    """Return why libgit2 cannot open the store; often it rejects settings of the user that git itself ignores."""
    for path in (context.home / ".gitconfig", context.home / ".config" / "git" / "config"):
        if complaint := _complaint(context, path):
            what = f"cannot read git's settings, so the store cannot be opened: {complaint}"
            return Finding("damage", "git", str(path), what, f"Correct that line, or move {path} away.")
    what = f"cannot open the store: {context.error}"
    return Finding("damage", "store", str(context.store), what, "`git fsck` in it may show more.")


def _complaint(context: DoctorContext, path: Path) -> str:
    program = shutil.which("git", path=context.env.get("PATH"))
    if program is None or not path.exists():
        return ""
    done = subprocess.run(
        [program, "config", "--file", str(path), "--list"], capture_output=True, text=True, check=False, cwd="/",
        errors="replace", env=git.PLAIN_ENV,
    )  # fmt: skip
    return canonical.one_line(done.stderr.removeprefix("fatal: "), 200) if done.returncode else ""


def _disk(context: DoctorContext) -> Iterator[Finding]:
    folder = context.store
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    if free < _LITTLE:
        what = f"only {humanize.format_size(free)} free: recording stops when the disk is full, and packing needs space"
        yield Finding("wrong", "disk", str(folder), what, "Free some space. `sessgit gc` makes the store smaller.")


def _clients(context: DoctorContext) -> Iterator[Finding]:
    seen = _clients_seen(context)
    for agent in sorted({agent for agent, _ in seen}, key=lambda agent: agent.name):
        oldest, newest = agent.tested
        versions = sorted((version for other, version in seen if other is agent), key=_order, reverse=True)
        unknown = [one for one in versions if not _order(oldest)[:2] <= _order(one)[:2] <= _order(newest)[:2]]
        if unknown:
            more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
            which = f"clients of version {', '.join(unknown[:_NAMED])}{more}"
            what = f"{which}: sessgit was tested with {oldest} to {newest} of {agent.title}"
            yield Finding("note", "client", "clients", what, "`sessgit verify` checks what was recorded.")


def _clock(context: DoctorContext) -> Iterator[Finding]:
    note = recorder_state.load_latest(context.paths)
    times = [("the last turn", note.time)] if note else []
    assert context.index is not None
    first = next(iter(context.index.outlines()), None)
    if first is not None and (moment := canonical.seconds(first.updated)) is not None:
        times.append((f"the session {first.name[:8]}", moment))
    ahead = [(what, moment) for what, moment in times if moment > context.now + _AHEAD]
    if ahead:
        day = canonical.rfc3339(min(ahead[0][1], 4e9))[:10]
        what = f"{ahead[0][0]} is dated {day}, in the future: is the clock right?"
        yield Finding("note", "clock", "clock", what)


def _remotes(context: DoctorContext) -> Iterator[Finding]:
    try:
        every = remotes.list_remotes(context.store)
    except SessgitError as error:
        yield Finding("wrong", "remotes", str(context.store / "config"), str(error))
        return
    for remote in every:
        is_near = remote.url.startswith("file://") or remotes.is_path(remote.url)
        if is_near and not Path(remote.url.removeprefix("file://")).exists():
            what = f"the remote {remote.name} is gone: there is nothing at {remote.shown}"
            hint = f"`sessgit remote remove {remote.name}`, or restore it."
            yield Finding("wrong", "remotes", remote.name, what, hint)


def _order(version: str) -> tuple[int, ...]:
    parts = _VERSION.match(version)
    return tuple(int(part.lstrip(".")) for part in parts.groups("0")) if parts else (0, 0, 0)
