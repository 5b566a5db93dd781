"""How the recording goes: whether it is on, what is in the store, what needs attention."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sessgit.agents.claude import home, settings
from sessgit.errors import SessgitError
from sessgit.model import ids
from sessgit.store import layout, log, stub
from sessgit.store.index import Branch, Index
from sessgit.store.layout import Beside
from sessgit.store.log import Entry


@dataclass(frozen=True, slots=True)
class Recording:
    """Whether events of the client reach the store; `why` not, or what is odd, in words for a person."""

    on: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in the store; `only_here` counts sessions whose transcript the client has deleted."""

    sessions: int
    turns: int
    size: int
    last: Branch | None
    only_here: int


@dataclass(frozen=True, slots=True)
class Status:
    """`contents` is None where there is no store; `older` counts the client's transcripts that are not recorded."""

    recording: Recording
    contents: Contents | None
    older: int
    errors: tuple[Entry, ...]


def status(store: Path, config: Path, index: Index | None) -> Status:
    """The state of the recording into the store at a path, whether there is one or not."""
    heads = [branch for branch in index.branches() if not layout.is_rewound(branch.name)] if index else []
    contents = _contents(store, heads, index) if index else None
    recorded = {branch.name for branch in heads}
    older = sum(ids.session_id(path.stem) not in recorded for path in home.transcripts(config))
    return Status(recording(store, config), contents, older, tuple(log.entries(Beside(store).log)))


def recording(store: Path, config: Path) -> Recording:
    """Whether the client's settings run a stub of this store that can start its recorder."""
    try:
        found = settings.installed(settings.read(config / "settings.json").document)
    except SessgitError as error:
        return Recording(False, f"the client's settings cannot be read: {error}")
    hook = Beside(store).hook
    others = sorted(path for path in found.stubs if Path(path) != hook)
    if not found.entries and not found.plugin:
        return Recording(False, "no hooks are installed: sessgit install")
    if found.hooks_disabled:
        return Recording(False, "the client's settings disable all hooks (disableAllHooks)")
    if found.entries and str(hook) not in found.stubs:
        return Recording(False, f"the hooks record into another store: {Path(others[0]).parent}")
    if not Beside(store).spool.is_dir():
        return Recording(False, f"{Beside(store).spool} is missing, so events are dropped: sessgit install")
    if not hook.is_file():
        return Recording(False, f"{hook} is missing: sessgit install")
    python = stub.interpreter(store)
    if not os.access(python, os.X_OK):
        return Recording(False, f"the hook starts {python or 'no program'}, which is gone: sessgit install")
    missing = [event for event in settings.HOOK_EVENTS if found.entries and event not in found.events]
    if missing:
        return Recording(True, f"no hook for {', '.join(missing)}: sessgit install")
    if found.entries and found.plugin:
        return Recording(True, f"twice: the hooks run from the settings and from the plugin {found.plugin}")
    return Recording(True)


def _contents(store: Path, heads: list[Branch], index: Index) -> Contents:
    _, turns = index.counts()
    last = max((b for b in heads if b.state.turns), key=lambda b: b.state.updated, default=None)
    gone = sum(bool(b.state.turns and b.state.transcript) and not Path(b.state.transcript).exists() for b in heads)
    return Contents(len(heads), turns, sum(_sizes(store)), last, gone)


def _sizes(folder: Path) -> Iterator[int]:
    pending = [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False).st_size
            except OSError:  # deleted meanwhile
                continue
