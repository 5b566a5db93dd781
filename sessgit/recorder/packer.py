"""Make the packs of imports smaller: `python -m sessgit.recorder.packer STORE`, started by an import or a recorder.

It prints nothing and has the lowest priority. A process that waits for the maintenance lock ends it, by SIGKILL: a
packing that is killed leaves the store whole, and `state/repacking` says what is left to do.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.recorder.__main__ import detach
from sessgit.store import locks, log, maintenance, owner
from sessgit.store.layout import StorePaths

_NICENESS = 19
_TRIES = 10
_RETRY_SECONDS = 1.0
_POLL_SECONDS = 0.05


def main(store: Path) -> None:
    """Repack the packs of imports, unless another process does."""
    paths = StorePaths(store)
    owner.check_owner(store)
    with locks.repack_lock(paths) as is_locked:
        for _ in range(_TRIES * is_locked):
            with locks.maintenance_lock(paths) as lock:
                if lock:
                    threading.Thread(target=_exit_when_lock_wanted, args=(paths,), daemon=True).start()
                    maintenance.repack_imported(store, lock)
                    return
            time.sleep(_RETRY_SECONDS)


def _exit_when_lock_wanted(paths: StorePaths) -> None:
    """Kill this process and its git once another process waits for the lock."""
    while not locks.is_maintenance_wanted(paths):
        time.sleep(_POLL_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _store = Path(sys.argv[1])
    detach()
    os.nice(_NICENESS)
    try:
        main(_store)
    except (SessgitError, OSError) as error:
        log.write(StorePaths(_store).log, time.time(), f"packing in the background: {error}")
