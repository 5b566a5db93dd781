"""How a command was called: folders, session and terminal, read once; and the store, opened when it is needed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.errors import NewerStoreError, NotFoundError, SessgitError, StoreError
from sessgit.model import canonical, ids
from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.api.store import Store as LibraryStore
    from sessgit.environment import Environment
    from sessgit.history.client_files import LocalPath
    from sessgit.history.resolve import CallerContext
    from sessgit.model.prices import Price
    from sessgit.store.context import Context
    from sessgit.store.index import Index
    from sessgit.store.settings import Config, Privacy
    from sessgit.store.store import Store

_PIPE_WIDTH = 80
_SHORT = 8
"""Characters of an id that are shown; more if they are not unique, as in ids that are no uuids."""
_WIDEST = 160
"""A wider line is hard to read."""
_CODES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip


class Paint:
    """`paint("bold", text)`: the text in a style, or as it is without a style or where there are no colours."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, style: str, text: str) -> str:
        if not self._on or not style or not text.strip():
            return text
        codes = ";".join(_CODES[word] for word in style.split())
        return f"\033[{codes}m{text}\033[0m"


@frozen
class Terminal:
    """Where a command prints."""

    shows_output: bool
    """Whether standard output is a terminal."""
    shows_errors: bool
    colour: bool
    width: int
    height: int
    pager: str
    """The command that shows what is longer than the screen, or ""."""


@dataclass
class Invocation:
    """The caller's environment and terminal, and what a command needs of them."""

    env: Environment
    cwd: str
    terminal: Terminal
    json: bool = False
    """Whether --json is given."""
    dry_run: bool = False
    """Whether --dry-run is given, of a command that has it."""
    now: float = field(default_factory=time.time)

    @property
    def width(self) -> int:
        """How many columns a line can have."""
        return self.terminal.width

    @cached_property
    def paint(self) -> Paint:
        """Colours texts for standard output, if it shows colours."""
        return Paint(self.terminal.colour)

    @cached_property
    def store(self) -> Store:
        """The store; raises NotFoundError if there is none."""
        from sessgit.store.store import Store

        self.check_store()
        return Store(self.env.store, fsync=self.settings.record.fsync)

    @cached_property
    def index(self) -> Index:
        """The index, synced with the refs."""
        from sessgit.store.index import Index

        self.check_store()
        index = Index(self.env.store, lambda: self.store)
        index.local_path = self.local_path
        index.sync()
        newer = [problem for problem in index.damaged.values() if isinstance(problem, NewerStoreError)]
        if newer and not index.count_sessions():
            raise newer[0]
        return index

    @cached_property
    def local_path(self) -> LocalPath:
        """Maps the folder of a project to one of this machine, by project.map or its remote; an invalid setting maps
        none."""
        from sessgit.history import client_files

        try:
            return client_files.local_path_map(
                self.settings.project.map, str(self.env.home), self._recorded_remotes, self.cwd
            )
        except SessgitError:
            return str

    def _recorded_remotes(self) -> list[tuple[str, str]]:
        return self.index.remotes()

    @cached_property
    def settings(self) -> Config:
        """The settings; raises SessgitError if the file cannot be read or is invalid."""
        from sessgit.store import settings
        from sessgit.store.layout import StorePaths

        return settings.load_settings(StorePaths(self.env.store))

    @property
    def prices(self) -> dict[str, Price]:
        """The prices of models."""
        return self.settings.prices

    @cached_property
    def privacy(self) -> Privacy:
        """What a command may record."""
        from sessgit.store.settings import Privacy

        return Privacy(self.settings.record, str(self.env.home), self.env.off)

    @cached_property
    def context(self) -> Context:
        """What operations work on."""
        from sessgit.store.context import Context

        return Context(self.index, self.env.homes, self.privacy, os.environ, lambda: self.now, self.settings.prices)

    @property
    def where(self) -> CallerContext:
        """What determines the current session."""
        from sessgit.history.resolve import CallerContext

        return CallerContext(self.env.homes, self.cwd, os.getpid(), self.env.session)

    def ident(self, branch: str) -> str:
        """Return `a41f9c02` or `a41f9c02.r-5d1e77aa`: as much of a branch's name as is unique."""
        from sessgit.store.layout import session_of

        session = session_of(branch)
        others = [name for name in self.index.sessions_beginning(session[:_SHORT]) if name != session]
        return ids.shortest_unique(session, others, _SHORT) + branch[len(session) :]

    @property
    def has_store(self) -> bool:
        """Whether there is a store; raises StoreError if it cannot be read, or belongs to another user."""
        from sessgit.store.owner import check_owner, store_exists

        try:
            if not store_exists(self.env.store):
                return False
        except OSError as error:
            raise StoreError(f"cannot read the store at {self.env.store}: {error.strerror}", "Is it yours?") from error
        check_owner(self.env.store)
        return True

    def check_store(self) -> None:
        """Raise NotFoundError, with what to do, if there is no store yet."""
        if not self.has_store:
            self._check_torn()
            raise NotFoundError(
                f"nothing is recorded yet: there is no store at {self.short(self.env.store)}.",
                "`sessgit install` starts recording, `sessgit import` imports older conversations.",
            )

    def _check_torn(self) -> None:
        """Raise StoreError if there is a store that git does not recognize."""
        from sessgit.store.owner import missing_parts

        lacks = missing_parts(self.env.store)
        if lacks:
            what = " and ".join("the folder objects" if name == "objects" else name for name in lacks)
            hint = "`sessgit doctor --fix` restores it." if lacks == ["HEAD"] else "`sessgit doctor` shows what to do."
            raise StoreError(f"the store at {self.short(self.env.store)} is damaged: it lacks {what}", hint)

    def check_recorded(self) -> None:
        """Raise NotFoundError if no conversation is recorded yet, or the error that says why none can be read."""
        self.check_store()
        if not self.index.count_sessions():
            for damage in self.index.damaged.values():
                raise damage
            raise NotFoundError(
                "nothing is recorded yet.",
                "`sessgit import` imports older conversations, `sessgit status` shows whether recording is on.",
            )

    def create_store(self) -> None:
        """Create the store if there is none."""
        if not self.has_store:
            from sessgit.store import store as stores

            self._check_torn()
            stores.create_store(self.env.store)

    def library(self) -> LibraryStore:
        """Return the store as programs use it."""
        from sessgit.api.store import Store

        return Store(self.env.store, self.env.homes, self.env.home, off=self.env.off, now=lambda: self.now)

    def record_waiting(self) -> None:
        """Start a recorder if events wait: the one that was started for them may have been killed."""
        if self.env.off or not sys.executable or not _events_wait(self.env.store):
            return
        from sessgit.store import stub

        stub.start_recorder(self.env.store, sys.executable, os.environ)

    def folder(self, typed: Path | str | None) -> str:
        """Return the absolute path of a folder as it was typed, or the working folder if none was."""
        return os.path.normpath(Path(self.cwd) / (typed or ""))

    def shown(self, path: Path | str) -> str:
        """Return the path with `~` for the home, safe to be printed."""
        return canonical.printable(self.short(path))

    def short(self, path: Path | str) -> str:
        """Return the path with `~` for the home."""
        text, home = str(path), str(self.env.home)
        return f"~{text[len(home) :]}" if home != "/" and (text == home or text.startswith(f"{home}/")) else text


def read() -> Invocation:
    """Return the invocation of this process."""
    from sessgit import environment  # which loads the agents, and --help needs none

    env = os.environ
    shows_output, is_dumb = sys.stdout.isatty(), env.get("TERM", "dumb") == "dumb"
    size = shutil.get_terminal_size((_PIPE_WIDTH, 24))
    terminal = Terminal(
        shows_output,
        sys.stderr.isatty(),
        colour=shows_output and not is_dumb and not env.get("NO_COLOR"),
        width=max(40, min(size.columns, _WIDEST)),
        height=size.lines,
        pager=env.get("SESSGIT_PAGER", env.get("PAGER", "less")) if shows_output and not is_dumb else "",
    )
    return Invocation(environment.read(env), _working_folder(), terminal)


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return os.environ.get("PWD") or "/"


def _events_wait(store: Path) -> bool:
    """Return whether events wait for a recorder: the modules that start one are loaded only then."""
    try:
        return any(name.endswith(".json") for name in os.listdir(store / "spool"))  # noqa: PTH208 - there may be many
    except OSError:
        return False
