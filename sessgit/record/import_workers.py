"""New sessions recorded into a store of their own, by this process or by several, for an import to take over.

The objects of such a store are one pack. A bare interpreter loads the program and forks the workers, which get tasks
over sockets. They do not get signals of the keyboard, and end at once with the process that started them.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path

from sessgit.errors import ROOM, SessgitError, StoreError
from sessgit.model.frozen import frozen
from sessgit.record import import_files
from sessgit.record.file_pass import RecordingResult
from sessgit.record.import_files import ImportFailure, TranscriptFile
from sessgit.record.recording import record
from sessgit.store import layout, refs
from sessgit.store import store as stores
from sessgit.store.backend import PackedRepository
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.pack_file import Pack
from sessgit.store.settings import Privacy
from sessgit.store.store import Store

PACK_NAME = "gathered.pack"
"""The pack in a task's folder, next to its index, before it has its name."""
_BOOT_CODE = (
    "import sys; fds = map(int, sys.argv[1].split(',')); sys.path[:] = sys.argv[2:];"
    "from sessgit.record.import_workers import serve; serve(*fds)"
)
_MOST_AHEAD = 3
"""The number of tasks beyond one per worker that start before the first result is taken: each may hold some MB."""
_GC_THRESHOLD = 50_000
"""The number of new Python objects between searches for cycles: nearly none of a parsed line is in one."""

ReportBytes = Callable[[int], None]
"""Called with the size of a file that is recorded."""


@frozen
class RecordTask:
    """Families of transcripts of which the store has nothing; they are recorded into a new store in `folder`."""

    store: Path
    folder: Path
    families: Sequence[Sequence[TranscriptFile]]
    homes: Homes
    privacy: Privacy

    @property
    def size(self) -> int:
        """The bytes of all transcripts."""
        return sum(file.size for members in self.families for file in members)


@frozen
class RecordedTask:
    """What was recorded into a task's store: the name of its pack, or empty, the likeness of texts in it, and the refs.

    `asked` are the prompts for which the recorder looked up other sessions: it only saw those of this store.
    """

    task: RecordTask
    pack: str
    likeness: dict[str, int]
    refs: dict[str, str]
    asked: frozenset[str]
    results: tuple[RecordingResult, ...]
    errors: tuple[ImportFailure, ...]


def record_families(task: RecordTask, report: ReportBytes) -> RecordedTask:
    """Record the families one after the other; raises StoreError if nothing can be written."""
    pack = _create_store(task)
    store = Store(task.folder, PackedRepository(task.folder, pack))
    index = Index(task.folder, lambda: store)
    errors, results = list[ImportFailure](), list[RecordingResult]()
    try:
        for members in task.families:
            for file in import_files.sort_parents_first(members, errors):
                try:
                    results.append(record(Context(index, privacy=task.privacy), file.source(task.homes, ())))
                except StoreError:
                    raise  # the next file would fail as well
                except SessgitError as error:
                    errors.append(ImportFailure(file.path, str(error)))
                report(file.size)
        index.sync()
        first = {row.prompt for branch in index.branches() for row in index.turns(branch.name, 1, 1)}
        asked = first | {file.root for members in task.families for file in members}
        tips = refs.read_all(task.folder, layout.HEADS)
        return RecordedTask(
            task, pack.finish(), pack.likeness, tips, frozenset(asked - {""}), tuple(results), tuple(errors)
        )
    finally:
        pack.close()
        index.close()


def _create_store(task: RecordTask) -> Pack:
    """Create a store with the key and the purged values of the task's store; return the pack for its objects."""
    own, other = StorePaths(task.folder), StorePaths(task.store)
    try:
        stores.create_store(task.folder)
        own.key.unlink()
        for path, copy in ((other.key, own.key), (other.forbidden, own.forbidden)):
            with suppress(FileNotFoundError):  # a missing key is an error only where it is needed
                shutil.copyfile(path, copy)
    except OSError as error:
        raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
    return Pack(task.folder / PACK_NAME)


# Processes


def useful_workers() -> int:
    """Return how many workers are useful on this machine."""
    with suppress(AttributeError, OSError):  # not on every system
        return min(8, len(os.sched_getaffinity(0)))
    return min(8, os.cpu_count() or 1)


def run_tasks(tasks: Sequence[RecordTask], workers: Workers, report: ReportBytes) -> Generator[RecordedTask]:
    """Yield the results of the tasks in their order, made by the workers, or by this process if none were started.

    Raises what a worker raised, and StoreError if one was killed.
    """
    if not workers.connections:
        yield from (record_families(task, report) for task in tasks)
        return
    idle, busy = list(workers.connections), dict[Connection, int]()
    """The numbers of the tasks that are under way."""
    waiting, results = deque(enumerate(tasks)), dict[int, RecordedTask]()
    for number in range(len(tasks)):
        limit = number + len(workers.connections) + _MOST_AHEAD
        while True:
            while idle and waiting and waiting[0][0] < limit:
                connection = idle.pop()
                busy[connection], task = waiting.popleft()
                with _killed_is_error():
                    connection.send(task)
            if number in results:
                break
            for connection in [one for one in wait(list(busy)) if isinstance(one, Connection)]:
                with _killed_is_error():
                    answer: int | RecordedTask | Exception = connection.recv()
                if isinstance(answer, Exception):
                    raise answer
                if isinstance(answer, int):
                    report(answer)
                else:
                    results[busy.pop(connection)] = answer
                    idle.append(connection)
        yield results.pop(number)


@contextmanager
def _killed_is_error() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        hint = "Imported conversations stay. Run import again to continue."
        raise StoreError("a process of the import was killed", hint) from error


class Workers:
    """The workers of an import, none until they are started. They take a while to load the program, so an import of
    much starts them before it looks at what there is."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, count: int) -> None:
        """Start as many workers, unless they are started already. Raises StoreError."""
        if self._process is not None or not count:
            return
        pairs = [socket.socketpair() for _ in range(count)]
        life, self._life = os.pipe()
        handles = [life, *(theirs.fileno() for _, theirs in pairs)]
        command = [sys.executable, "-I", "-c", _BOOT_CODE, ",".join(map(str, handles)), *(p for p in sys.path if p)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                pass_fds=handles, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise StoreError(f"cannot start a process: {error.strerror or error}") from error
        finally:
            os.close(life)
            for _, theirs in pairs:
                theirs.close()
        self.connections = [Connection(ours.detach()) for ours, _ in pairs]

    def close(self) -> None:
        """End the workers; none of them writes any more then."""
        if self._process is None:
            return
        os.close(self._life)
        for connection in self.connections:
            with connection, suppress(EOFError, OSError):
                while True:  # what it sent before its end is dropped
                    connection.recv_bytes()
        self._process.wait()
        self.connections, self._process = [], None


def serve(life: int, *handles: int) -> None:
    """Fork a worker for each of these sockets, and wait until all have ended. `life` is the end of a pipe whose other
    end is closed when they are to end."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    for handle in handles:
        if not os.fork():
            os.setsid()  # or systems that schedule by sessions would give all workers the time of one
            threading.Thread(target=_end_with, args=(life,), daemon=True).start()
            for other in set(handles) - {handle}:
                os.close(other)
            _serve_one(handle)
            return
    for handle in handles:
        os.close(handle)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _end_with(life: int) -> None:
    """Kill this process once the other end of a pipe is closed."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _serve_one(handle: int) -> None:
    """Run the tasks that come over a socket, until its other end is closed."""
    with Connection(handle) as connection, suppress(EOFError, OSError):
        while True:
            task: RecordTask = connection.recv()
            connection.send(_run_task(task, connection.send))


def _run_task(task: RecordTask, report: ReportBytes) -> RecordedTask | Exception:
    try:
        return record_families(task, report)
    except OSError:
        raise  # the other end is closed
    except SessgitError as error:
        return error
    except Exception:
        return RuntimeError(traceback.format_exc())
