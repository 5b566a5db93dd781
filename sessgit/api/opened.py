"""A store that a program has open: what all its sessions share."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sessgit.errors import NotFoundError
from sessgit.history import client_files, resolve
from sessgit.history.resolve import CallerContext, ResolvedTarget
from sessgit.model.config import Config
from sessgit.record import catch_up
from sessgit.record.context import RecordContext
from sessgit.record.privacy import Privacy
from sessgit.store import settings
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store as Objects


class OpenStore:
    """One open store with its index and its settings as they are now, for several threads and for children of
    `os.fork`."""

    def __init__(self, path: Path, config: Path, home: Path, *, off: bool = False) -> None:
        self.path, self.config, self.home = path, config, home
        self._off = off
        self._lock = threading.RLock()
        self._opened: RecordContext | None = None
        self._settings: tuple[tuple[int, ...], Config] = ((), Config())
        _open_stores.add(self)

    def close(self) -> None:
        """Lets go of files; what is used after that opens them again. Nothing waits to be written."""
        with self.lock:
            if self._opened is not None:
                self._opened.index.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def lock(self) -> threading.RLock:
        """Held by whoever uses `world`; threads take turns with it."""
        return self._lock

    @property
    def world(self) -> RecordContext:
        """The open store, with the settings as they are now; whoever uses it holds `lock`."""
        beside = StorePaths(self.path)
        version = _file_version(beside.config)
        if self._opened is None:
            config = settings.load_settings(beside)
            objects = Objects(self.path, fsync=config.record.fsync)
            index = Index(self.path, lambda: objects)
            index.sync()
            self._settings = version, config
            self._opened = RecordContext(objects, index, self.config, self._privacy(), dict(os.environ), time.time)
            index.here = self._here()
        elif version != self._settings[0]:
            self._settings = version, settings.load_settings(beside)
            self._opened = replace(self._opened, privacy=self._privacy())
            self._opened.index.here = self._here()
        return self._opened

    def target(self, text: str, at: str | None = None) -> ResolvedTarget:
        """What an address names, once all that the session's transcript holds is recorded."""
        with self.lock:
            self.world.index.sync()
            if not text.partition("@")[0]:
                raise NotFoundError("an address names a session", "Use an id, its beginning, or a name.")
            where = CallerContext(self.config, "/", os.getpid())
            address = resolve.resolve_address(self.world.index, text, at)
            self._catch_up(resolve.resolve_target(self.world.index, address, where))
            return resolve.resolve_target(self.world.index, address, where)

    def _catch_up(self, found: ResolvedTarget) -> None:
        world = self.world
        catch_up.catch_up(lambda: world.store, world.index, found.state, self.config, world.privacy, world.now())
        world.index.sync(found.session)

    @property
    def prices(self) -> Mapping[str, Any]:
        """What tokens cost, where the settings say."""
        _ = self.world
        return self._settings[1].prices

    def _here(self) -> client_files.LocalPath:
        return client_files.local_path_map(self._settings[1].project.map, str(self.home))

    def _privacy(self) -> Privacy:
        return Privacy(self._settings[1].record, str(self.home), self._off)


_open_stores = weakref.WeakSet[OpenStore]()
_abandoned = list[RecordContext]()


def _reset_in_child() -> None:
    """A child opens everything anew: a lock may have been held by a thread that it has not, and of a database it may
    not even close what its parent opened."""
    for store in _open_stores:
        store._lock = threading.RLock()
        if store._opened is not None:
            _abandoned.append(store._opened)
            store._opened = None


os.register_at_fork(after_in_child=_reset_in_child)


def _file_version(path: Path) -> tuple[int, ...]:
    """Another one when the file has changed."""
    try:
        info = path.stat()
    except OSError:
        return ()
    return (info.st_mtime_ns, info.st_size, info.st_ino)
