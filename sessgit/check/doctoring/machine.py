"""The machine around the store: git, its settings, the disk, the clock, remotes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sessgit.check.doctoring import damage
from sessgit.check.doctoring.context import Ailment, Patient
from sessgit.errors import SessgitError
from sessgit.model import canonical, humanize
from sessgit.model.finding import Finding
from sessgit.store import git, settings
from sessgit.store.recorder import last_turn
from sessgit.store.remote import remotes
from sessgit.store.store import missing_parts

OLDEST_GIT = (2, 30)
_SEEN = 40
"""So many sessions are asked for the version of their client."""
_NAMED = 3
_TESTED = (1, 0), (2, 1)
_LITTLE = 1 << 30
_AHEAD = 86_400.0
_VERSION = re.compile(r"(\d+)\.(\d+)(\.\d+)?")


def check(patient: Patient) -> Iterator[Ailment]:
    """What around the store keeps it from working, now or soon."""
    yield from _git(patient)
    yield from _disk(patient)
    if patient.index is not None:
        yield from _clients(patient)
        yield from _clock(patient)
        yield from _remotes(patient)


def git_version(patient: Patient) -> str:
    """The version of git that is found, or ``""``."""
    program = shutil.which("git", path=patient.env.get("PATH"))
    if program is None:
        return ""
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, env=git.env(), cwd="/"
        ).stdout
    except OSError:
        return ""
    found = _VERSION.search(said)
    return found[0] if found else ""


def clients(patient: Patient) -> list[str]:
    """The versions of the client that the latest sessions were held with, the newest first."""
    if patient.index is None:
        return []
    names = [outline.name for outline in patient.index.outlines()[:_SEEN]]
    found = {branch.state.agent_version for branch in patient.index.branches_named(names)} - {""}
    return sorted((canonical.one_line(one, 40) for one in found), key=_order, reverse=True)


def _git(patient: Patient) -> Iterator[Ailment]:
    version = git_version(patient)
    if not version:
        yield Ailment(
            Finding(
                "damage",
                "git",
                "git",
                "git is missing: nothing can be packed, pulled or pushed",
                "Install git 2.30 or later.",
            )
        )
        return
    if _order(version)[:2] < OLDEST_GIT:
        yield Ailment(Finding("wrong", "git", "git", f"git {version} is too old", "Install git 2.30 or later."))
    if patient.why and not _is_told(patient):
        yield Ailment(_unopened(patient))


def _is_told(patient: Patient) -> bool:
    """Whether what keeps the store shut are its settings, or what it lacks: that is told of them."""
    try:
        settings.load_settings(patient.beside)
    except SessgitError:
        return True
    return bool(missing_parts(patient.store) or damage.shut(patient))


def _unopened(patient: Patient) -> Finding:
    """Why the library cannot open the store: most often for settings of the user's that git itself passes over."""
    for path in (patient.home / ".gitconfig", patient.home / ".config" / "git" / "config"):
        said = _complaint(patient, path)
        if said:
            what = f"cannot read git's settings, so the store cannot be opened: {said}"
            return Finding("damage", "git", str(path), what, f"Correct that line, or move {path} away.")
    what = f"cannot open the store: {patient.why}"
    return Finding("damage", "store", str(patient.store), what, "`git fsck` in it may show more.")


def _complaint(patient: Patient, path: Path) -> str:
    program = shutil.which("git", path=patient.env.get("PATH"))
    if program is None or not path.exists():
        return ""
    done = subprocess.run(
        [program, "config", "--file", str(path), "--list"], capture_output=True, text=True, check=False, cwd="/",
        errors="replace", env=git.env(),
    )  # fmt: skip
    return canonical.one_line(done.stderr.removeprefix("fatal: "), 200) if done.returncode else ""


def _disk(patient: Patient) -> Iterator[Ailment]:
    folder = patient.store
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    if free < _LITTLE:
        what = f"only {humanize.format_size(free)} free: recording stops when the disk is full, and packing needs space"
        yield Ailment(
            Finding("wrong", "disk", str(folder), what, "Free some space. `sessgit gc` makes the store smaller.")
        )


def _clients(patient: Patient) -> Iterator[Ailment]:
    unknown = [one for one in clients(patient) if not _TESTED[0] <= _order(one)[:2] <= _TESTED[1]]
    if unknown:
        more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
        what = f"clients of version {', '.join(unknown[:_NAMED])}{more}: sessgit was tested with 1.0 to 2.1"
        yield Ailment(Finding("note", "client", "clients", what, "`sessgit verify` checks what was recorded."))


def _clock(patient: Patient) -> Iterator[Ailment]:
    note = last_turn.load(patient.beside)
    times = [("the last turn", note.time)] if note else []
    assert patient.index is not None
    first = next(iter(patient.index.outlines()), None)
    if first is not None and (moment := canonical.seconds(first.updated)) is not None:
        times.append((f"the session {first.name[:8]}", moment))
    ahead = [(what, moment) for what, moment in times if moment > patient.now + _AHEAD]
    if ahead:
        day = canonical.rfc3339(min(ahead[0][1], 4e9))[:10]
        what = f"{ahead[0][0]} is dated {day}, in the future: is the clock right?"
        yield Ailment(Finding("note", "clock", "clock", what))


def _remotes(patient: Patient) -> Iterator[Ailment]:
    try:
        every = remotes.list_remotes(patient.store)
    except SessgitError as error:
        yield Ailment(Finding("wrong", "remotes", str(patient.store / "config"), str(error)))
        return
    for remote in every:
        is_near = remote.url.startswith("file://") or remotes.is_path(remote.url)
        if is_near and not Path(remote.url.removeprefix("file://")).exists():
            what = f"the remote {remote.name} is gone: there is nothing at {remote.shown}"
            yield Ailment(
                Finding("wrong", "remotes", remote.name, what, f"`sessgit remote remove {remote.name}`, or restore it.")
            )


def _order(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return tuple(int(part.lstrip(".")) for part in found.groups("0")) if found else (0, 0, 0)
