"""What a command knows of the world it was called in, read once, and the store it works on, opened when needed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit import environment
from sessgit.errors import NewerStoreError, NotFoundError, SessgitError, StoreError
from sessgit.model import canonical, ids

if TYPE_CHECKING:
    from sessgit.history.client_files import LocalPath
    from sessgit.history.resolve import CallerContext
    from sessgit.model.config import Config
    from sessgit.record.context import RecordContext
    from sessgit.record.privacy import Privacy
    from sessgit.store.index import Index
    from sessgit.store.store import Store

_PIPE_WIDTH = 80
_SHORT = 8
"""So much of an id is shown: a person reads no more, and it is enough but for ids that are no uuids."""
_WIDEST = 160
"""Beyond this the eye loses the line on its way to the columns at its end."""


@dataclass
class Invocation:
    """The caller's folders, session and terminal."""

    store_path: Path
    config: Path
    home: Path
    cwd: str
    told_session: str
    terminal: bool
    """Whether a person reads standard output, rather than a program."""
    error_terminal: bool
    colour: bool
    width: int
    height: int
    pager: str
    off: bool = False
    """Whether the environment says that nothing is recorded because of what runs in it."""
    json: bool = False
    """Whether --json is given."""
    now: float = field(default_factory=time.time)

    @cached_property
    def store(self) -> Store:
        """The store; raises NotFoundError where there is none."""
        from sessgit.store.store import Store

        self.check_store()
        return Store(self.store_path, fsync=self.settings.record.fsync)

    @cached_property
    def index(self) -> Index:
        """The index, level with the refs."""
        from sessgit.store.index import Index

        self.check_store()
        found = Index(self.store_path, lambda: self.store)
        found.here = self.here
        found.sync()
        newer = [why for why in found.damaged.values() if isinstance(why, NewerStoreError)]
        if newer and not found.counts()[0]:
            raise newer[0]
        return found

    @cached_property
    def here(self) -> LocalPath:
        """The folder on this machine that stands for one of a project; settings that are wrong name none."""
        from sessgit.history import client_files

        try:
            return client_files.local_path_map(self.settings.project.map, str(self.home))
        except SessgitError:
            return str

    @cached_property
    def settings(self) -> Config:
        """The settings; raises SessgitError where the file cannot be read, or says nonsense."""
        from sessgit.store import settings
        from sessgit.store.layout import StorePaths

        return settings.load_settings(StorePaths(self.store_path))

    @cached_property
    def privacy(self) -> Privacy:
        """What may be recorded because a command asks."""
        from sessgit.record.privacy import Privacy

        return Privacy(self.settings.record, str(self.home), self.off)

    @cached_property
    def world(self) -> RecordContext:
        """What those operations work on that write turns of their own."""
        from sessgit.record.context import RecordContext

        return RecordContext(self.store, self.index, self.config, self.privacy, os.environ, lambda: self.now)

    @cached_property
    def where(self) -> CallerContext:
        """What tells which session is the current one."""
        from sessgit.history.resolve import CallerContext

        return CallerContext(self.config, self.cwd, os.getpid(), self.told_session)

    def ident(self, branch: str) -> str:
        """`a41f9c02`, `a41f9c02.r-5d1e77aa`: as much of a branch's name as tells its session from all others."""
        from sessgit.store.layout import session_of

        session = session_of(branch)
        others = [name for name in self.index.sessions_beginning(session[:_SHORT]) if name != session]
        return ids.shortest_unique(session, others, _SHORT) + branch[len(session) :]

    @property
    def has_store(self) -> bool:
        """Whether there is a store; raises StoreError where it cannot be read, or belongs to someone else."""
        from sessgit.store.files import owner
        from sessgit.store.store import store_exists

        try:
            if not store_exists(self.store_path):
                return False
        except OSError as error:
            raise StoreError(f"cannot read the store at {self.store_path}: {error.strerror}", "Is it yours?") from error
        owner.check_owner(self.store_path)
        return True

    def check_store(self) -> None:
        """Raises NotFoundError with what to do where there is no store yet."""
        if not self.has_store:
            self._check_torn()
            raise NotFoundError(
                f"nothing is recorded yet: there is no store at {self.short(self.store_path)}.",
                "`sessgit install` starts recording, `sessgit import` imports older conversations.",
            )

    def _check_torn(self) -> None:
        """Raises StoreError where there is a store, and git would take it for none."""
        from sessgit.store.store import missing_parts

        lacks = missing_parts(self.store_path)
        if lacks:
            what = " and ".join("the folder objects" if name == "objects" else name for name in lacks)
            hint = "`sessgit doctor --fix` restores it." if lacks == ["HEAD"] else "`sessgit doctor` shows what to do."
            raise StoreError(f"the store at {self.short(self.store_path)} is damaged: it lacks {what}", hint)

    def check_recorded(self) -> None:
        """Raises NotFoundError with what to do where no conversation is recorded yet, or why none can be read."""
        self.check_store()
        if not self.index.counts()[0]:
            for damage in self.index.damaged.values():
                raise damage
            raise NotFoundError(
                "nothing is recorded yet.",
                "`sessgit import` imports older conversations, `sessgit status` shows whether recording is on.",
            )

    def create_store(self) -> None:
        """Create the store if there is none: settings are in it, and hold for the first thing that is recorded."""
        if not self.has_store:
            from sessgit.store import store as stores

            self._check_torn()
            stores.create_store(self.store_path)

    def record_waiting(self) -> None:
        """Start a recorder if events wait: the one that they were left to may have been killed."""
        from sessgit.store.recorder import launch

        if not self.off and sys.executable:
            launch.start_if_needed(self.store_path, sys.executable, os.environ)

    def folder(self, named: str) -> str:
        """The absolute path of a folder as it was typed; the working folder where none was."""
        return os.path.normpath(Path(self.cwd) / named)

    def shown(self, path: str) -> str:
        """The path as a person writes it, safe to be shown."""
        return canonical.printable(self.short(path))

    def short(self, path: Path | str) -> str:
        """The path as a person writes it, with `~` for the home."""
        text, home = str(path), str(self.home)
        return f"~{text[len(home) :]}" if home != "/" and (text == home or text.startswith(f"{home}/")) else text


def read() -> Invocation:
    """The context of this process."""
    env = os.environ
    said = environment.read(env)
    terminal, dumb = sys.stdout.isatty(), env.get("TERM", "dumb") == "dumb"
    size = shutil.get_terminal_size((_PIPE_WIDTH, 24))
    return Invocation(
        store_path=said.store,
        config=said.config,
        home=said.home,
        cwd=_working_folder(),
        told_session=env.get("CLAUDE_CODE_SESSION_ID", ""),
        terminal=terminal,
        error_terminal=sys.stderr.isatty(),
        colour=terminal and not dumb and not env.get("NO_COLOR"),
        width=max(40, min(size.columns, _WIDEST)),
        height=size.lines,
        pager=env.get("SESSGIT_PAGER", env.get("PAGER", "less")) if terminal and not dumb else "",
        off=said.off,
    )


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return os.environ.get("PWD") or "/"
