"""Processes that gather sessions side by side.

Each is a bare interpreter that gets tasks over a socket and hands back what it gathered. It does not hear the
keyboard, and ends with the process that started it: what it made until then lies in that one's folder.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from sessgit.errors import SessgitError, StoreError
from sessgit.record.bulk.gathering import RecordedTask, RecordTask, ReportBytes, record_families

_BOOT_CODE = (
    "import sys; fd = int(sys.argv[1]); sys.path[:] = sys.argv[2:];"
    "from sessgit.record.bulk.workers import serve; serve(fd)"
)
_MOST_AHEAD = 3
"""So many tasks more than there are workers are handed out before the first one is taken: each may hold some MB."""
_GC_THRESHOLD = 50_000
"""So many new objects of Python are looked through for cycles at once: nearly none of a parsed line is in one."""
_READ, _DONE, _FAILED, _BROKEN = "read", "done", "failed", "broken"


def useful_workers() -> int:
    """So many workers are worth it on this machine."""
    with suppress(AttributeError, OSError):  # not on every system
        return min(8, len(os.sched_getaffinity(0)))
    return min(8, os.cpu_count() or 1)


def run_tasks(tasks: Sequence[RecordTask], count: int, told: ReportBytes) -> Generator[RecordedTask]:
    """What becomes of the tasks, in their order, by so many workers, which end with it; with none of them it is this
    process itself.

    Raises what a worker raised, StoreError where one was killed.
    """
    if not count or not tasks:
        yield from (record_families(task, told) for task in tasks)
        return
    workers = [_Worker() for _ in range(min(count, len(tasks)))]
    try:
        yield from _results_in_order(workers, tasks, told)
    finally:
        for worker in workers:
            worker.end()


def _results_in_order(
    workers: Sequence[_Worker], tasks: Sequence[RecordTask], told: ReportBytes
) -> Iterator[RecordedTask]:
    waiting = deque(enumerate(tasks))
    done: dict[int, RecordedTask] = {}
    busy: dict[Connection, _Worker] = {}
    for number in range(len(tasks)):
        ahead = number + len(workers) + _MOST_AHEAD
        _assign_tasks(workers, busy, waiting, ahead)  # all may be idle: they were as far ahead as they may be
        while number not in done:
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                answer = worker.answer()
                if isinstance(answer, int):
                    told(answer)
                    continue
                done[worker.number] = answer
                del busy[worker.connection]
            _assign_tasks(workers, busy, waiting, ahead)
        yield done.pop(number)


def _assign_tasks(
    workers: Sequence[_Worker], busy: dict[Connection, _Worker], waiting: deque[tuple[int, RecordTask]], ahead: int
) -> None:
    """Gives those that have nothing to do a task each, of those below the number `ahead`."""
    for worker in workers:
        if worker.connection not in busy and waiting and waiting[0][0] < ahead and worker.take(waiting):
            busy[worker.connection] = worker


class _Worker:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-I", "-c", _BOOT_CODE, str(theirs.fileno()), *(p for p in sys.path if p)]
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                    pass_fds=[theirs.fileno()], start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                ours.close()
                raise StoreError(f"cannot start a process: {error.strerror or error}") from error
        self.connection = Connection(ours.detach())
        self.number = -1

    def take(self, waiting: deque[tuple[int, RecordTask]]) -> bool:
        """Whether there is a task for it, which it then has."""
        if not waiting:
            return False
        self.number, task = waiting.popleft()
        try:
            self.connection.send(task)
        except OSError as error:
            raise _worker_killed_error() from error
        return True

    def answer(self) -> int | RecordedTask:
        """The bytes of one file that is done, or what was gathered."""
        try:
            kind, value = self.connection.recv()
        except (EOFError, OSError) as error:
            raise _worker_killed_error() from error
        if kind == _FAILED:
            made, message, hint = value
            raise made(message, hint)
        if kind == _BROKEN:
            raise RuntimeError(value)
        found: int | RecordedTask = value
        return found

    def end(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.wait()


def serve(handle: int) -> None:
    """Gathers what comes over a socket, until nobody is at its other end."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    with Connection(handle) as connection, suppress(EOFError, OSError):
        while True:
            task: RecordTask = connection.recv()
            connection.send(_run_task(task, lambda size: connection.send((_READ, size))))


def _run_task(task: RecordTask, told: ReportBytes) -> tuple[str, Any]:
    try:
        return _DONE, record_families(task, told)
    except SessgitError as error:
        return _FAILED, (type(error), str(error), error.hint)
    except OSError:
        raise  # nobody listens any more
    except Exception:
        return _BROKEN, traceback.format_exc()


def _worker_killed_error() -> StoreError:
    return StoreError(
        "a process of the import was killed", "Imported conversations stay. Run import again to continue."
    )
