"""Objects of the repository, looked at by git itself."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.errors import ROOM, DamageError, StoreError
from sessgit.model.progress import Progress, unseen
from sessgit.store import git
from sessgit.store import store as stores
from sessgit.store.remote.transport import run, secrets_of, unreachable

if TYPE_CHECKING:
    from sessgit.store.remote.remotes import Link

_OID = re.compile(r"[0-9a-f]{40}")
_LOOSE = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})")
_PERCENT = re.compile(rb"(\d+)% \((\d+)/(\d+)\)")
_HARMLESS = re.compile(
    r"^(notice:|dangling |unreachable |warning: garbage found|Checking )|: unable to read sha1 file of"
)
_ENTIRE = ("refs/heads/HEAD-stays-unborn", "HEAD points to an unborn branch")
_KINDS = ("blob", "tree", "commit")
_MOST = 1000
_LONGEST = 300
_TOGETHER = 256
"""So many objects are asked for at once."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What git says of an object or a ref: in its own words, with the objects that it names."""

    what: str
    objects: tuple[str, ...]


def fsck(store: Path, progress: Progress = unseen) -> list[Complaint]:
    """What `git fsck --strict` finds: it reads and hashes every object, packed or not. Raises StoreError where git
    cannot be run."""
    flags = ["--full", "--strict", "--no-dangling", "--no-reflogs", "--progress"]
    command = [git.program(), "--git-dir", str(store), "fsck", *flags]
    try:
        with subprocess.Popen(
            command, env=git.env(), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as child:
            assert child.stdout is not None
            said: list[str] = []
            rest = b""
            while chunk := child.stdout.read1(65536):  # type: ignore[attr-defined]
                *pieces, rest = re.split(rb"[\r\n]", rest + chunk)
                said += _heard(pieces, progress)
            said += _heard([rest], progress)
    except OSError as error:
        raise git.not_run(error) from error
    found = [_complaint(line) for line in dict.fromkeys(said) if not _HARMLESS.search(line)]
    if child.returncode and not found:
        found = [Complaint(f"git fsck ended with {child.returncode}", ())]
    return found[:_MOST]


def read(store: Path, oid: str) -> tuple[str, bytes] | None:
    """The kind and the content of an object, None where the repository does not have it whole."""
    return next((found for _, found in read_all(store, [oid])), None)


def read_all(store: Path, wanted: Iterable[str]) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Those of the objects that a repository has whole, each by its id with its kind and its content."""
    oids = list(dict.fromkeys(wanted))
    for start in range(0, len(oids), _TOGETHER):
        part = oids[start : start + _TOGETHER]
        said, place = _asked(store, ["cat-file", "--batch"], part), 0
        for number, oid in enumerate(part):
            end = said.find(b"\n", place)
            if end < 0:  # git stops at one that is damaged
                yield from read_all(store, part[number + 1 :])
                break
            words = said[place:end].decode("ascii", "replace").split()
            place = end + 1
            if len(words) != 3 or words[1] not in _KINDS or not words[2].isdigit():
                continue
            data = said[place : place + int(words[2])]
            place += int(words[2]) + 1
            if _name(words[1], data) == oid:
                yield oid, (words[1], data)


def closure(store: Path, wanted: Collection[str]) -> list[str]:
    """Those of the objects that a repository has, and all that they lead to there."""
    said = _asked(store, ["cat-file", "--batch-check"], sorted(wanted)).decode("ascii", "replace")
    there = [words[0] for words in map(str.split, said.splitlines()) if len(words) > 1 and words[1] in _KINDS]
    if not there:
        return []
    listed = _asked(store, ["rev-list", "--objects", "--no-object-names", "--stdin"], there)
    return list(dict.fromkeys((*there, *_OID.findall(listed.decode("ascii", "replace")))))


def put(store: Path, oid: str, kind: str, data: bytes, aside: Path) -> None:
    """Writes an object where git looks for it, also where a pack has it damaged; what lies there goes to `aside`.

    Raises DamageError where the content does not have that name.
    """
    if kind not in _KINDS or _name(kind, data) != oid:
        raise DamageError(f"found data is not the object {oid}")
    path = store / "objects" / oid[:2] / oid[2:]
    beside = None
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="tmp_obj_", dir=path.parent)
        beside = Path(name)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o400)
            file.write(zlib.compress(_header(kind, data) + data))
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            aside.mkdir(mode=0o700, exist_ok=True)
            path.rename(aside / oid)
        beside.rename(path)
    except OSError as error:
        if beside is not None:
            beside.unlink(missing_ok=True)
        raise StoreError(f"cannot write the object {oid}: {error.strerror or error}", ROOM) from error


def fetch(scratch: Path, link: Link, sessions: Collection[str]) -> None:
    """Brings all branches that a remote has of sessions into a store of their own, which is made."""
    stores.create(scratch)
    specs = [f"+refs/{space}/{name}*:refs/{space}/{name}*" for name in sessions for space in ("heads", "archive")]
    flags = ["--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"]
    url = link.remote.url
    ended = run(scratch, ["fetch", "--quiet", *flags, "--", url, *specs], link.env, link.say, secrets=secrets_of(url))
    if ended.code:
        raise unreachable(link.remote.name, link.remote.shown, ended)


def _asked(store: Path, arguments: Sequence[str], oids: Sequence[str]) -> bytes:
    """What git prints of the objects."""
    given = "".join(f"{oid}\n" for oid in oids).encode()
    command = [git.program(), "--git-dir", str(store), *arguments]
    try:
        return subprocess.run(command, input=given, env=git.env(), cwd="/", capture_output=True, check=False).stdout
    except OSError as error:
        raise git.not_run(error) from error


def _header(kind: str, data: bytes) -> bytes:
    return f"{kind} {len(data)}\0".encode()


def _name(kind: str, data: bytes) -> str:
    return hashlib.sha1(_header(kind, data) + data, usedforsecurity=False).hexdigest()


def _heard(pieces: list[bytes], progress: Progress) -> Iterator[str]:
    for piece in pieces:
        percent = _PERCENT.search(piece)
        if percent:
            progress(int(percent[2]), int(percent[3]))
        elif (line := piece.decode("utf-8", "replace").strip()) and not any(known in line for known in _ENTIRE):
            yield line


def _complaint(line: str) -> Complaint:
    named = [*_OID.findall(line), *(a + b for a, b in _LOOSE.findall(line))]
    return Complaint(line[:_LONGEST], tuple(dict.fromkeys(named)))
