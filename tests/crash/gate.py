"""A gate before every system call that changes files: it counts them, logs them, lets one fail, or kills there.

A filter in the kernel (seccomp(2), user notification) stops a process and all that it starts, git too, at each such
call, and asks the process at the gate what to do. Nothing has to be compiled or loaded into the program.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_NUMBERS = {
    "x86_64": {
        "write": 1, "pwrite": 18, "writev": 20, "pwritev": 296, "pwritev2": 328, "fsync": 74, "fdatasync": 75,
        "truncate": 76, "ftruncate": 77, "fallocate": 285, "rename": 82, "renameat": 264, "renameat2": 316, "link": 86,
        "linkat": 265, "symlink": 88, "symlinkat": 266, "unlink": 87, "unlinkat": 263, "mkdir": 83, "mkdirat": 258,
        "rmdir": 84, "open": 2, "openat": 257, "creat": 85, "sendfile": 40, "copy_file_range": 326,
    },
    "aarch64": {
        "write": 64, "pwrite": 68, "writev": 66, "pwritev": 70, "pwritev2": 287, "fsync": 82, "fdatasync": 83,
        "truncate": 45, "ftruncate": 46, "fallocate": 47, "renameat": 38, "renameat2": 276, "linkat": 37,
        "symlinkat": 36, "unlinkat": 35, "mkdirat": 34, "openat": 56, "sendfile": 71, "copy_file_range": 285,
    },
}  # fmt: skip
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_MACHINE = platform.machine()
_NAMES = {number: name for name, number in _NUMBERS.get(_MACHINE, {}).items()}
_FLAGS_AT = {"open": 1, "openat": 2}
"""Which argument says how a file is opened: only who makes or empties one is stopped."""

_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND, _GOES_ON = 0xC0502100, 0xC0182101, 1
_NOTICE = struct.Struct("=QII iIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_AT_FDCWD = -100
_REMOVE_DIR, _CREATES = 0x200, os.O_CREAT | os.O_TRUNC

_TWO_PATHS = {"rename": (None, 0, None, 1), "renameat": (0, 1, 2, 3), "renameat2": (0, 1, 2, 3),
              "link": (None, 0, None, 1), "linkat": (0, 1, 2, 3)}  # fmt: skip
_ONE_PATH = {"open": (None, 0), "creat": (None, 0), "openat": (0, 1), "unlink": (None, 0), "unlinkat": (0, 1),
             "mkdir": (None, 0), "mkdirat": (0, 1), "rmdir": (None, 0), "truncate": (None, 0), "symlink": (None, 1),
             "symlinkat": (1, 2)}  # fmt: skip
_KINDS = {"pwrite": "write", "writev": "write", "pwritev": "write", "pwritev2": "write", "sendfile": "write",
          "copy_file_range": "write", "fdatasync": "fsync", "ftruncate": "truncate", "openat": "open", "creat": "open",
          "renameat": "rename", "renameat2": "rename", "linkat": "link", "unlinkat": "unlink", "mkdirat": "mkdir",
          "symlinkat": "symlink"}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One call below the watched folders; of writes the bytes and where they go, if they were asked for."""

    kind: str
    path: str
    to: str = ""
    flags: int = 0
    offset: int = 0
    data: bytes = b""


@dataclass
class Gate:
    """What to do at the calls below `roots`: `choose` gets the number of the call, from 1, and the call.

    It answers None (go on), an errno (fail), or "kill", "tear": the whole group ends before the call, or with half of
    the bytes written.
    """

    roots: Sequence[str]
    choose: Callable[[int, Call], int | str | None] = lambda number, call: None
    with_data: bool = False
    calls: list[Call] = field(default_factory=list)

    def watch(self, listener: int, group: int, longest: float) -> None:
        """Answers until all who were stopped are gone; raises TimeoutError after so many seconds, with all killed."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        deadline = time.monotonic() + longest
        try:
            while True:
                if time.monotonic() > deadline:
                    os.killpg(group, signal.SIGKILL)
                    raise TimeoutError("a process did not end")
                for _, event in poll.poll(200):
                    if event & select.POLLIN:
                        self._answer(listener, group)
                    elif event & (select.POLLHUP | select.POLLERR):
                        return
        finally:
            os.close(listener)

    def _answer(self, listener: int, group: int) -> None:
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, notice, True)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):  # it was killed while it waited
                return
            raise
        number, pid, _, nr, _, _, *arguments = _NOTICE.unpack(notice)
        try:
            call = self._call(pid, _NAMES[nr], arguments)
        except OSError:  # it was killed while it waited
            call = None
        what = None
        if call is not None:
            self.calls.append(call)
            what = self.choose(len(self.calls), call)
        if isinstance(what, str):
            if what == "tear" and call is not None and call.kind == "write":
                _tear(pid, arguments[2 if _NAMES[nr] == "copy_file_range" else 0], call)
            os.killpg(group, signal.SIGKILL)
            return
        # A kill keeps what the kernel has: waiting for the disk would take most of the time.
        skipped = call is not None and call.kind == "fsync" and not what
        answer = _ANSWER.pack(number, 0, -(what or 0), 0 if what or skipped else _GOES_ON)
        try:
            fcntl.ioctl(listener, _SEND, answer)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    def _call(self, pid: int, name: str, arguments: Sequence[int]) -> Call | None:
        kind = _KINDS.get(name, name)
        if name in _TWO_PATHS:
            a, b, c, d = _TWO_PATHS[name]
            path, to = _path(pid, arguments, a, b), _path(pid, arguments, c, d)
            return Call(kind, path, to) if self._ours(path) or self._ours(to) else None
        if name in _ONE_PATH:
            path = _path(pid, arguments, *_ONE_PATH[name])
            if not self._ours(path):
                return None
            if kind == "unlink" and name == "unlinkat" and arguments[2] & _REMOVE_DIR:
                kind = "rmdir"
            flags = arguments[_FLAGS_AT[name]] if name in _FLAGS_AT else _CREATES
            return Call(kind, path, flags=flags & 0xFFFFFFFF if kind == "open" else 0,
                        offset=arguments[1] if name == "truncate" else 0)  # fmt: skip
        handle = arguments[2] if name == "copy_file_range" else arguments[0]
        path = str(Path(f"/proc/{pid}/fd/{handle & 0xFFFFFFFF}").readlink())
        if not self._ours(path):
            return None
        if kind == "truncate":
            return Call(kind, path, offset=arguments[1])
        if kind != "write" or not self.with_data:
            return Call(kind, path)
        offset, flags = _position(pid, handle)
        return Call(kind, path, flags=flags, offset=arguments[3] if name == "pwrite" else offset,
                    data=_data(pid, name, arguments))  # fmt: skip

    def _ours(self, path: str) -> bool:
        return any(path == root or path.startswith(f"{root}/") for root in self.roots)


def _path(pid: int, arguments: Sequence[int], folder: int | None, place: int) -> str:
    text = os.fsdecode(_text(pid, arguments[place]))
    if text.startswith("/"):
        return os.path.normpath(text)
    handle = ctypes.c_int(arguments[folder] & 0xFFFFFFFF).value if folder is not None else _AT_FDCWD
    at = Path(f"/proc/{pid}/cwd" if handle == _AT_FDCWD else f"/proc/{pid}/fd/{handle}").readlink()
    return os.path.normpath(f"{at}/{text}")


def _text(pid: int, address: int) -> bytes:
    found = b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123
        while b"\0" not in found:
            memory.seek(address + len(found))
            found += memory.read(256 - (address + len(found)) % 256)
    return found.partition(b"\0")[0]


def _data(pid: int, name: str, arguments: Sequence[int]) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123

        def read(address: int, length: int) -> bytes:
            memory.seek(address)
            return memory.read(length) if length else b""

        if name in ("write", "pwrite"):
            return read(arguments[1], arguments[2])
        if name == "writev":
            parts = struct.iter_unpack("=QQ", read(arguments[1], 16 * arguments[2]))
            return b"".join(read(*part) for part in parts)
        if name in ("sendfile", "copy_file_range"):
            given, place, length = (1, 2, 3) if name == "sendfile" else (0, 1, 4)
            at = struct.unpack("=q", read(arguments[place], 8))[0] if arguments[place] else None
            start = _position(pid, arguments[given])[0] if at is None else at
            with open(f"/proc/{pid}/fd/{arguments[given]}", "rb", buffering=0) as source:  # noqa: PTH123
                return os.pread(source.fileno(), arguments[length], start)
    raise NotImplementedError(name)


def _position(pid: int, handle: int) -> tuple[int, int]:
    """Where the next write goes, and how the file was opened."""
    lines = Path(f"/proc/{pid}/fdinfo/{handle}").read_text().split("\n")
    said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return int(said["pos"]), int(said["flags"], 8)


def _tear(pid: int, handle: int, call: Call) -> None:
    """Writes half of the bytes, as a kill in the middle of the call does."""
    offset, flags = _position(pid, handle)
    with open(f"/proc/{pid}/fd/{handle}", "ab" if flags & os.O_APPEND else "r+b", buffering=0) as file:  # noqa: PTH123
        file.seek(offset)
        file.write(call.data[: len(call.data) // 2])


# In the process that is watched


def _filter() -> list[tuple[int, int, int, int]]:
    """Berkeley packet filter: (code, jump if so, jump if not, value)."""
    load, equal, bits, give = 0x20, 0x15, 0x45, 0x06
    program = [(load, 0, 0, 4), (equal, 1, 0, _ARCHITECTURE[_MACHINE]), (give, 0, 0, _ALLOW), (load, 0, 0, 0)]
    for name, number in _NUMBERS[_MACHINE].items():
        if name in _FLAGS_AT:
            at = 16 + 8 * _FLAGS_AT[name]
            program += [(equal, 0, 4, number), (load, 0, 0, at), (bits, 0, 1, _CREATES), (give, 0, 0, _ASK),
                        (give, 0, 0, _ALLOW)]  # fmt: skip
        else:
            program += [(equal, 0, 1, number), (give, 0, 0, _ASK)]
    return [*program, (give, 0, 0, _ALLOW)]


def enter() -> int:
    """Puts this process behind a gate, and all that it starts; returns the descriptor at which is asked.

    Raises OSError where the kernel has no such thing, or does not allow it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    lines = b"".join(struct.pack("=HBBI", *line) for line in _filter())
    kept = ctypes.create_string_buffer(lines, len(lines))
    program = struct.pack("@HP", len(lines) // 8, ctypes.addressof(kept))
    if libc.prctl(38, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    # SECCOMP_SET_MODE_FILTER, and a listener for what it says.
    listener = int(libc.syscall(_SECCOMP[_MACHINE], 1, 8, program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def why_not() -> str:
    """Why there can be no gate on this machine; ``""`` where there can."""
    if platform.system() != "Linux" or _MACHINE not in _NUMBERS:
        return f"no gate before system calls on {platform.system()} {_MACHINE}"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if not pid:
            try:
                listener = enter()
                socket.send_fds(theirs, [b"+"], [listener])
                os._exit(7 if os.open("/dev/null", os.O_WRONLY | os.O_CREAT) else 1)
            except OSError as error:
                theirs.send(f"-{error}".encode())
            finally:
                os._exit(1)
        said, handles, _, _ = socket.recv_fds(ours, 200, 1)
        problem = "" if said == b"+" else f"the kernel allows no gate before system calls: {said[1:].decode()}"
        if handles:
            met = Gate(["/dev/null"])
            met.watch(handles[0], pid, 10)
            problem = "" if [call.path for call in met.calls] == ["/dev/null"] else "a gate that nobody comes to"
        os.waitpid(pid, 0)
        return problem


if __name__ == "__main__":
    print(why_not())  # in a process of its own: the one that tests has threads
