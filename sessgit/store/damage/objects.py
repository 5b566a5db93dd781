"""Objects of the repository, looked at by git itself."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.errors import ROOM, DamageError, StoreError
from sessgit.store import store as stores
from sessgit.store.maintenance import git_env
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


def fsck(
    store: Path, progress: Callable[[int, int], None] = lambda done, total: None, *, git: str | None = None
) -> list[Complaint]:
    """What `git fsck --strict` finds: it reads and hashes every object, packed or not. Raises StoreError where git
    cannot be run."""
    git = git or shutil.which("git")
    if git is None:
        raise StoreError("git is missing", "Install git 2.30 or later.")
    command = [
        git,
        "--git-dir",
        str(store),
        "fsck",
        "--full",
        "--strict",
        "--no-dangling",
        "--no-reflogs",
        "--progress",
    ]
    try:
        with subprocess.Popen(
            command, env=git_env(), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as child:
            assert child.stdout is not None
            said: list[str] = []
            rest = b""
            while chunk := child.stdout.read1(65536):  # type: ignore[attr-defined]
                *pieces, rest = re.split(rb"[\r\n]", rest + chunk)
                said += _heard(pieces, progress)
            said += _heard([rest], progress)
    except OSError as error:
        raise StoreError(f"git could not be run: {error}") from error
    found = [_complaint(line) for line in dict.fromkeys(said) if not _HARMLESS.search(line)]
    if child.returncode and not found:
        found = [Complaint(f"git fsck ended with {child.returncode}", ())]
    return found[:_MOST]


def read(store: Path, oid: str, *, git: str | None = None) -> tuple[str, bytes] | None:
    """The kind and the content of an object, None where the repository does not have it whole."""
    return next((found for _, found in read_all(store, [oid], git=git)), None)


def read_all(store: Path, wanted: Iterable[str], *, git: str | None = None) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Those of the objects that a repository has whole, each by its id with its kind and its content."""
    git = git or shutil.which("git") or "git"
    command = [git, "--git-dir", str(store), "cat-file", "--batch"]
    oids = list(dict.fromkeys(wanted))
    for start in range(0, len(oids), _TOGETHER):
        part = oids[start : start + _TOGETHER]
        try:
            said = subprocess.run(
                command, input="".join(f"{oid}\n" for oid in part).encode(), env=git_env(), cwd="/",
                capture_output=True, check=False,
            ).stdout  # fmt: skip
        except OSError as error:
            raise StoreError(f"git could not be run: {error}") from error
        place = 0
        for number, oid in enumerate(part):
            end = said.find(b"\n", place)
            if end < 0:  # git stops at one that is damaged
                yield from read_all(store, part[number + 1 :], git=git)
                break
            words = said[place:end].decode("ascii", "replace").split()
            place = end + 1
            if len(words) != 3 or words[1] not in _KINDS or not words[2].isdigit():
                continue
            data = said[place : place + int(words[2])]
            place += int(words[2]) + 1
            if _name(words[1], data) == oid:
                yield oid, (words[1], data)


def closure(store: Path, wanted: Collection[str], *, git: str | None = None) -> list[str]:
    """Those of the objects that a repository has, and all that they lead to there."""
    git = git or shutil.which("git") or "git"
    command = [git, "--git-dir", str(store)]
    try:
        said = subprocess.run(
            [*command, "cat-file", "--batch-check"], input="".join(f"{oid}\n" for oid in sorted(wanted)).encode(),
            env=git_env(), cwd="/", capture_output=True, check=False,
        ).stdout.decode("ascii", "replace")  # fmt: skip
        there = [line.split()[0] for line in said.splitlines() if line.split()[1:2] and line.split()[1] in _KINDS]
        if not there:
            return []
        listed = subprocess.run(
            [*command, "rev-list", "--objects", "--no-object-names", "--stdin"],
            input="".join(f"{oid}\n" for oid in there).encode(), env=git_env(), cwd="/", capture_output=True,
            check=False,
        ).stdout.decode("ascii", "replace")  # fmt: skip
    except OSError as error:
        raise StoreError(f"git could not be run: {error}") from error
    return list(dict.fromkeys((*there, *_OID.findall(listed))))


def put(store: Path, oid: str, kind: str, data: bytes, aside: Path) -> None:
    """Writes an object where git looks for it, also where a pack has it damaged; what lies there goes to `aside`.

    Raises DamageError where the content does not have that name.
    """
    if kind not in _KINDS or _name(kind, data) != oid:
        raise DamageError(f"what was found is not the object {oid}")
    path = store / "objects" / oid[:2] / oid[2:]
    beside = path.with_name(f"tmp_obj_{uuid.uuid4().hex[:12]}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(_header(kind, data) + data))
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            aside.mkdir(mode=0o700, exist_ok=True)
            path.rename(aside / oid)
        beside.rename(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StoreError(f"the object {oid} cannot be written: {error}", ROOM) from error


def fetch(scratch: Path, link: Link, sessions: Collection[str]) -> None:
    """Brings all branches that a remote has of sessions into a store of their own, which is made."""
    stores.create(scratch)
    specs = [f"+refs/{space}/{name}*:refs/{space}/{name}*" for name in sessions for space in ("heads", "archive")]
    flags = ["--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"]
    url = link.remote.url
    ended = run(scratch, ["fetch", "--quiet", *flags, "--", url, *specs], link.env, link.say, secrets=secrets_of(url))
    if ended.code:
        raise unreachable(link.remote.name, link.remote.shown, ended)


def _header(kind: str, data: bytes) -> bytes:
    return f"{kind} {len(data)}\0".encode()


def _name(kind: str, data: bytes) -> str:
    return hashlib.sha1(_header(kind, data) + data, usedforsecurity=False).hexdigest()


def _heard(pieces: list[bytes], progress: Callable[[int, int], None]) -> Iterator[str]:
    for piece in pieces:
        percent = _PERCENT.search(piece)
        if percent:
            progress(int(percent[2]), int(percent[3]))
        elif (line := piece.decode("utf-8", "replace").strip()) and not any(known in line for known in _ENTIRE):
            yield line


def _complaint(line: str) -> Complaint:
    named = [*_OID.findall(line), *(a + b for a, b in _LOOSE.findall(line))]
    return Complaint(line[:_LONGEST], tuple(dict.fromkeys(named)))
