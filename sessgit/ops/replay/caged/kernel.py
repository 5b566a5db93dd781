"""What the kernel offers to keep a process inside of some folders: Landlock, namespaces, a filter of system calls.

It stands alone, for `cage.py`: a bare interpreter loads it, which knows nothing of this package. Each function says
whether it did what it is named after; where the kernel refuses, nothing is raised.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSCALL = getattr(_LIBC, "syscall", None)
_PRCTL = getattr(_LIBC, "prctl", None)

_PARENT_DIES, _NO_NEW_PRIVS, _SECCOMP, _SUBREAPER = 1, 38, 22, 36

_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_BIND, _RECURSIVE, _PRIVATE, _PLAIN = 1 << 12, 1 << 14, 1 << 18, 0b1110
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 1

SHARED = "/dev/shm"
"""Where processes share memory: who is `read_only` has one of its own, or cannot write there."""

_LANDLOCK, _ADD_RULE, _RESTRICT = 444, 445, 446
_WRITES = (1 << 1) | sum(1 << bit for bit in range(4, 13))
"""Write to a file, remove and make files of any kind: the rights of the first version."""
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = (1 << 1) | _TRUNCATE | _IOCTL_DEV
_TCP = 0b11
_SCOPES = 0b11
"""Abstract sockets and signals of processes outside."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_GENERIC = (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, 452, 463, 466)
_MACHINES = {
    "x86_64": (
        0xC000003E,
        41,
        (90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280, *_GENERIC[-3:]),
    ),
    "aarch64": (0xC00000B7, 198, _GENERIC),
    "riscv64": (0xC00000F3, 198, _GENERIC),
}  # fmt: skip
"""By machine its number for the kernel, the call that makes a socket, and those that change modes, owners, times and
attributes of files."""
_IO_URING = 425
"""By it a process could do the same in other ways."""


def die_with_parent(signal: int) -> None:
    """Lets this process get a signal when the one that started it ends."""
    if _PRCTL is not None:
        _PRCTL(_PARENT_DIES, signal, 0, 0, 0)


def adopt() -> bool:
    """Lets processes whose parents end become children of this one."""
    return _PRCTL is not None and _PRCTL(_SUBREAPER, 1, 0, 0, 0) == 0


def no_new_rights() -> bool:
    """Whether no program that is started from here on gets rights of its own."""
    return _PRCTL is not None and _PRCTL(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


# Namespaces


def apart(*, network: bool) -> bool:
    """Whether this process is in namespaces of its own: of users, for its children of processes, and where there shall
    be no `network`, one with nothing but a loopback."""
    unshare = getattr(_LIBC, "unshare", None)
    if unshare is None:
        return False
    uid, gid = os.getuid(), os.getgid()
    if unshare(_NEWUSER | _NEWPID | (0 if network else _NEWNET)):
        return False
    with suppress(OSError):
        _write("/proc/self/setgroups", "deny")
    with suppress(OSError):
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    if not network:
        with suppress(OSError):
            _loopback_up()
    return True


def read_only(writable: Sequence[str]) -> bool:
    """Whether all that is mounted is read-only now but for some folders, for this process; for who is `apart`, as the
    first process of its namespace. It sees no other processes then, where it may mount that."""
    mount, unshare = _LIBC.mount, _LIBC.unshare
    if unshare(_NEWNS) or mount(None, b"/", None, _RECURSIVE | _PRIVATE, None):
        return False
    mount(b"proc", b"/proc", b"proc", _PLAIN, None)
    shared = os.fsencode(SHARED)
    places = [os.fsencode(folder) for folder in writable]
    # One that is mounted hides what lies there.
    is_free = not any(place.startswith(shared + b"/") for place in places)
    is_own = is_free and mount(b"tmpfs", shared, b"tmpfs", _PLAIN, b"size=256m") == 0
    if any(mount(place, place, None, _BIND, None) for place in places):
        return False
    if not _set(b"/", _AT_RECURSIVE, _RDONLY, 0):
        return False
    return all(_set(place, 0, 0, _RDONLY) for place in [*places, *([shared] if is_own else [])])


def at_most(processes: int) -> None:
    """Lets the kernel number no more processes and threads than so many, for the first process of a namespace; since
    Linux 6.14. Nothing else stops those of the superuser."""
    with suppress(OSError):
        _write("/proc/sys/kernel/pid_max", str(max(400, processes)))


def drop_rights() -> bool:
    """Whether this process has given up all capabilities."""
    capset = getattr(_LIBC, "capset", None)
    if capset is None:
        return False
    header = struct.pack("=Ii", 0x20080522, 0)
    return bool(capset(header, bytes(24)) == 0)


def _set(place: bytes, flags: int, more: int, less: int) -> bool:
    attributes = struct.pack("=QQQQ", more, less, 0, 0)
    return _call(_MOUNT_SETATTR, _AT_FDCWD, place, flags, attributes, len(attributes)) == 0


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sh", b"lo", 1).ljust(40, b"\0"))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123 - the bare interpreter is faster without pathlib
        file.write(text)


# Landlock


def landlock_version() -> int:
    """The version of Landlock that the kernel speaks, 0 for none."""
    return max(0, _call(_LANDLOCK, None, 0, 1))


def landlock(writable: Sequence[str], *, network: bool) -> bool:
    """Whether this process and all that it starts can write below these folders only, wherever links lead.

    From version 4 on there are no TCP connections without `network`, from 6 on no signals to processes outside.
    """
    version = landlock_version()
    if version < 1:
        return False
    handled = _WRITES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    handled |= _IOCTL_DEV if version >= 5 else 0
    rules = struct.pack("=QQQ", handled, 0 if network else _TCP, _SCOPES)
    rules = rules[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _call(_LANDLOCK, rules, len(rules), 0)
    if ruleset < 0:
        return False
    try:
        allowed = [_allow(ruleset, folder, handled) for folder in writable]
        for device in _DEVICES:
            _allow(ruleset, device, handled & _OF_FILES)
        return all(allowed) and _call(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> bool:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _call(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0) == 0
    finally:
        os.close(place)


# A filter of system calls


def filtered(*, metadata: bool, sockets: bool) -> bool:
    """Whether the kernel refuses some calls from now on.

    Those to change modes, owners, times and attributes of files, which Landlock does not guard, are refused for
    `metadata`. For `sockets` those that lead to other processes of this machine by a path: what a process may not do,
    it could ask such a one for.
    """
    known = _MACHINES.get(os.uname().machine)
    if known is None or _PRCTL is None:
        return False
    machine, socket_call, of_files = known
    calls = [_IO_URING, *(of_files if metadata else ())]
    # Load the machine's number, refuse any other; load the call's number, refuse those of x32 and those listed; of
    # sockets load which kind it is. The last two steps allow and refuse.
    last = [(0x15, 0, 2, socket_call), (0x20, 0, 0, 16), (0x15, 1, 0, socket.AF_UNIX)] if sockets else []
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, machine), (0x06, 0, 0, 0x00050001), (0x20, 0, 0, 0)]
    program += [(0x35, len(calls) + len(last) + 1, 0, 0x40000000)]
    program += [(0x15, len(calls) + len(last) - place, 0, number) for place, number in enumerate(calls)]
    program += [*last, (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
    data = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(data, len(data))

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    found = _Program(len(program), ctypes.addressof(buffer))
    return bool(_PRCTL(_SECCOMP, 2, ctypes.byref(found), 0, 0) == 0)


def _call(number: int, *arguments: int | bytes | None) -> int:
    if _SYSCALL is None or os.uname().sysname != "Linux":
        return -1
    return int(_SYSCALL(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))
