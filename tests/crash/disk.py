"""What a disk holds when the power goes: the calls of a job done again in memory, and what was not yet safe left out.

A file's bytes are safe once it was synced; before that it may be empty, or as it was. The names in a folder are safe
once the folder was synced, or any file was: the journals of file systems keep the order of what they write down. The
stricter `without` says what a disk may leave out that keeps no order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from crashworld import Snapshot
from gate import Call

_NAMING = ("link", "unlink", "rename", "mkdir", "rmdir")


@dataclass
class _Node:
    data: bytearray
    safe: bytes = b""


@dataclass
class Disk:
    """Files and folders by path, as the running system sees them; `lost_power` is what remains of that."""

    files: dict[str, _Node] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Disk:
        found = cls()
        for path, file in snapshot.items():
            found.folders.add(str(PurePath(path).parent))
            if file is None:
                found.folders.add(path)
            else:
                found.files[path] = _Node(bytearray(file.data), file.data)
        return found

    def changes(self, call: Call) -> bool:
        """Whether something is otherwise after the call than before it, as long as the power stays."""
        if call.kind == "fsync":
            return False
        if call.kind == "mkdir":
            return call.path not in self.folders
        if call.kind == "rmdir":
            return call.path in self.folders
        if call.kind in ("unlink", "link"):
            return call.path in self.files
        if call.kind == "open":
            node = self.files.get(call.path)
            return bool(call.flags & os.O_CREAT) if node is None else bool(call.flags & os.O_TRUNC and node.data)
        return True

    def do(self, call: Call) -> None:
        """What the call changes; one that fails changes nothing."""
        node = self.files.get(call.path)
        if call.to and str(PurePath(call.to).parent) not in self.folders:
            return
        if call.kind == "mkdir":
            self.folders.add(call.path)
        elif call.kind == "rmdir":
            if not any(path.startswith(f"{call.path}/") for path in (*self.files, *self.folders)):
                self.folders.discard(call.path)
        elif call.kind == "open":
            self._open(call, node)
        elif node is None:
            return
        elif call.kind == "write":
            place = len(node.data) if call.flags & os.O_APPEND else call.offset
            node.data.extend(bytes(max(0, place - len(node.data))))
            node.data[place : place + len(call.data)] = call.data
        elif call.kind == "truncate":
            node.data[:] = node.data[: call.offset].ljust(call.offset, b"\0")
        elif call.kind == "fsync":
            node.safe = bytes(node.data)
        elif call.kind == "link":
            self.files.setdefault(call.to, node)
        elif call.kind == "rename":
            self.files[call.to] = self.files.pop(call.path)
        elif call.kind == "unlink":
            del self.files[call.path]

    def _open(self, call: Call, node: _Node | None) -> None:
        if node is None and call.flags & os.O_CREAT:
            self.files[call.path] = _Node(bytearray())
        elif node is not None and call.flags & os.O_TRUNC and not call.flags & os.O_EXCL:
            node.data.clear()

    def lost_power(self) -> dict[str, bytes | None]:
        """What is found after that: every name, and of each file what was safe; None is a folder."""
        return {**dict.fromkeys(self.folders), **{path: node.safe for path, node in self.files.items()}}


def _is_safe(calls: Sequence[Call], number: int, until: int) -> bool:
    """Whether the folder in which a call makes or removes a name was synced after it, before the call `until`."""
    folder = str(PurePath(calls[number].to or calls[number].path).parent)
    return any(call.kind == "fsync" and call.path == folder for call in calls[number + 1 : until])


def remains(start: Snapshot, calls: Sequence[Call], until: int, without: str = "") -> dict[str, bytes | None]:
    """What is found where the power goes before the call `until`; of the names below the folder `without` those are as
    they were that were not synced there."""
    disk = Disk.of(start)
    for number, call in enumerate(calls[:until]):
        left_out = without and call.kind in _NAMING and call.path.startswith(without)
        # What a temporary file or folder holds is nothing to anybody: what counts are the names that are missing.
        left_out = left_out and call.kind != "mkdir" and "/tmp_" not in (call.to or call.path)
        if left_out and not _is_safe(calls, number, until):
            continue
        disk.do(call)
    return disk.lost_power()


def moments(calls: Sequence[Call]) -> Iterator[int]:
    """The numbers of the calls after which something else is on the disk than before."""
    return (n for n, call in enumerate(calls, 1) if call.kind in (*_NAMING, "fsync", "open"))
