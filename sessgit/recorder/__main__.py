"""Drains the spool of one store: `python -m sessgit.recorder STORE`, started by the stub, never by a person.

It prints nothing and no process waits for it. Errors are written to the store's log. It imports little until
it knows that it is the one to do the work: of a burst of events most recorders leave at once.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.store import locks, log, owner
from sessgit.store.layout import StorePaths
from sessgit.store.spool import Claim

_MOST_SECONDS = 60
"""Seconds after which a recorder ends, whatever it does: objects come first and the ref last, so nothing is torn."""


def main(store: Path, claim: Claim) -> None:
    gc.set_threshold(50_000)  # it loads and makes many values, and few cycles
    detach()
    signal.alarm(_MOST_SECONDS)
    try:
        owner.check_owner(store)
    except SessgitError:  # it is another user's
        return
    if not claim.take(time.time()):
        return
    with suppress(SessgitError):  # the store is read-only
        locks.recorder_lock(StorePaths(store))
    from sessgit import environment
    from sessgit.recorder import drain

    place = environment.read(os.environ)
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR")} | {"HOME": str(place.home)}
    drain.drain_spool(store, place.homes, env, claim)


def detach() -> None:
    """Leave the caller's process session and close the files inherited from it."""
    with suppress(OSError):  # it leads a process session already
        os.setsid()
    os.closerange(3, 256)
    os.umask(0o077)


if __name__ == "__main__":
    _store = Path(sys.argv[1])
    _claim = Claim(StorePaths(_store))
    try:
        main(_store, _claim)
    except Exception as error:
        log.write(StorePaths(_store).log, time.time(), f"recorder: {type(error).__name__}: {error}")
        _claim.give_up()
    # At once: the stub may take a process that is still alive for a recorder that has yet to read the spool.
    os._exit(0)
