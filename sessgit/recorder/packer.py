"""Make imports searchable and their packs smaller: `python -m sessgit.recorder.packer STORE`, started by an import or a
recorder.

It prints nothing, and packs with the lowest priority. A process that waits for the maintenance lock ends it, by
SIGKILL: a packing that is killed leaves the store whole, and `state/repacking` says what is left to do.
"""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.recorder import drain
from sessgit.recorder.__main__ import detach
from sessgit.store import locks, log, maintenance, owner
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

_NICENESS = 19
_TRIES = 10
_RETRY_SECONDS = 1.0
_POLL_SECONDS = 0.05


def main(store: Path) -> None:
    """Update the full-text index and repack the packs of imports, unless another process does."""
    paths = StorePaths(store)
    owner.check_owner(store)
    with locks.repack_lock(paths) as is_locked:
        if not is_locked:
            return
        threading.Thread(target=_exit_when_lock_wanted, args=(paths,), daemon=True).start()
        _update_fulltext(store)
        os.nice(_NICENESS)
        for _ in range(_TRIES):
            with locks.maintenance_lock(paths) as lock:
                if lock:
                    maintenance.repack_imported(store, lock)
                    return
            time.sleep(_RETRY_SECONDS)


def _update_fulltext(store: Path) -> None:
    """Make all turns searchable; a search that needs them meanwhile goes on where this stands."""
    index = Index(store, lambda: Store(store))
    try:
        index.sync()
        drain.update_fulltext(index, math.inf)
    except (SessgitError, sqlite3.Error) as error:  # the next search tries again, and says why not
        log.write(StorePaths(store).log, time.time(), f"full-text index: {error}")
    finally:
        index.close()


def _exit_when_lock_wanted(paths: StorePaths) -> None:
    """Kill this process and its git once another process waits for the lock."""
    while not locks.is_maintenance_wanted(paths):
        time.sleep(_POLL_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _store = Path(sys.argv[1])
    detach()
    try:
        main(_store)
    except (SessgitError, OSError) as error:
        log.write(StorePaths(_store).log, time.time(), f"packing in the background: {error}")
