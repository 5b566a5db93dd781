"""A store that a program has open: what all its sessions share."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sessgit.errors import NotFoundError
from sessgit.store.context import Homes
from sessgit.store.layout import StorePaths

if TYPE_CHECKING:
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.store.context import Context
    from sessgit.store.settings import Config, Privacy


class OpenStore:
    """One open store with its index and its current settings, for several threads and for children of `os.fork`."""

    def __init__(
        self, path: Path, homes: Homes, home: Path, *, off: bool = False, now: Callable[[], float] = time.time
    ) -> None:
        self.path, self.homes, self.home, self.now = path, homes, home, now
        self._off = off
        self.keeps_index = False
        """Whether the client's index of each project's sessions is kept up to date, as some clients do."""
        self.lock = threading.RLock()
        """The lock that a caller of `context` holds; threads take turns with it."""
        self.waiting: dict[str, Callable[[], object]] = {}
        """What records the cells of a session that are in its file alone, by its id."""
        self._opened: Context | None = None
        self._settings_version: tuple[int, ...] = ()
        _open_stores.add(self)

    def close(self) -> None:
        """Record what waits and close the files; later use opens them again."""
        with self.lock:
            self._record_waiting()
            if self._opened is not None:
                self._opened.index.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def context(self) -> Context:
        """The open store with its current settings, in which nothing waits. The caller holds `lock`."""
        self._record_waiting()
        return self.current()

    def _record_waiting(self) -> None:
        while self.waiting:
            self.waiting.popitem()[1]()

    def current(self) -> Context:
        """Return the open store with its current settings. The caller holds `lock`."""
        version = _file_version(StorePaths(self.path).config)
        if self._opened is None or version != self._settings_version:
            self._opened = self._open()
            self._settings_version = version
        return self._opened

    def read_settings(self) -> tuple[Config, Privacy]:
        """Return the current settings, and what may be recorded; the store need not exist."""
        from sessgit.store import settings
        from sessgit.store.settings import Privacy

        config = settings.load_settings(StorePaths(self.path))
        return config, Privacy(config.record, str(self.home), self._off)

    def _open(self) -> Context:
        """Open the store unless it is open, and read its settings."""
        # Not loaded with `from sessgit import Store`, which is to be quick.
        from sessgit.history import client_files
        from sessgit.store.context import Context
        from sessgit.store.index import Index
        from sessgit.store.store import Store

        config, privacy = self.read_settings()
        if self._opened is None:
            store = Store(self.path, fsync=config.record.fsync)
            index = Index(self.path, lambda: store)
            index.sync()
            opened = Context(index, self.homes, privacy, dict(os.environ), self.now, config.prices)
        else:
            opened = replace(self._opened, privacy=privacy, prices=config.prices)
        opened.index.local_path = client_files.local_path_map(config.project.map, str(self.home), opened.index.remotes)
        return opened

    def target(self, text: str, at: str | None = None) -> ResolvedTarget:
        """Return what an address names, after recording new lines of the session's transcript, or all of it if nothing
        is recorded and the address is an id."""
        from sessgit.history import resolve
        from sessgit.record import catch_up

        with self.lock:
            context = self.context
            context.index.sync()
            if not text.partition("@")[0]:
                raise NotFoundError("an address names a session", "Use an id, its beginning, or a name.")
            caller = resolve.CallerContext(self.homes, "/", os.getpid())
            address = resolve.resolve_address(context.index, text, at)
            catch_up.find_session(context, address.session, caller)
            return resolve.resolve_target(context.index, address, caller)


_open_stores = weakref.WeakSet[OpenStore]()
_abandoned = list[Any]()


def _reset_in_child() -> None:
    """Make a forked child open everything again: a thread that it lacks may have held a lock, and it must not even
    close a database that its parent opened."""
    for store in _open_stores:
        store.lock = threading.RLock()
        store.waiting.clear()
        if store._opened is not None:
            _abandoned.append(store._opened)
            store._opened = None


os.register_at_fork(after_in_child=_reset_in_child)


def _file_version(path: Path) -> tuple[int, ...]:
    """Return a value that changes with the file."""
    try:
        info = path.stat()
    except OSError:
        return ()
    return (info.st_mtime_ns, info.st_size, info.st_ino)
