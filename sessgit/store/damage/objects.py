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
from sessgit.model.progress import Progress, no_progress
from sessgit.store import git
from sessgit.store import store as stores
from sessgit.store.remote.transport import run_git, unreachable_error, url_secrets

if TYPE_CHECKING:
    from sessgit.store.remote.remotes import Connection

_OID = re.compile(r"[0-9a-f]{40}")
_LOOSE_PATH = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})")
_PERCENT = re.compile(rb"(\d+)% \((\d+)/(\d+)\)")
_HARMLESS_MESSAGE = re.compile(
    r"^(notice:|dangling |unreachable |warning: garbage found|Checking )|: unable to read sha1 file of"
)
_IGNORED_MESSAGES = ("refs/heads/HEAD-stays-unborn", "HEAD points to an unborn branch")
_KINDS = ("blob", "tree", "commit")
_MOST_MESSAGES = 1000
_LONGEST_MESSAGE = 300
_BATCH_SIZE = 256
"""So many objects are asked for at once."""


@dataclass(frozen=True, slots=True)
class FsckMessage:
    """What git says of an object or a ref: in its own words, with the objects that it names."""

    what: str
    objects: tuple[str, ...]


def fsck(store: Path, progress: Progress = no_progress) -> list[FsckMessage]:
    """What `git fsck --strict` finds: it reads and hashes every object, packed or not. Raises StoreError where git
    cannot be run."""
    flags = ["--full", "--strict", "--no-dangling", "--no-reflogs", "--progress"]
    command = [git.find_git(), "--git-dir", str(store), "fsck", *flags]
    try:
        with subprocess.Popen(
            command, env=git.env(), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as child:
            assert child.stdout is not None
            said: list[str] = []
            rest = b""
            while chunk := child.stdout.read1(65536):  # type: ignore[attr-defined]
                *pieces, rest = re.split(rb"[\r\n]", rest + chunk)
                said += _message_lines(pieces, progress)
            said += _message_lines([rest], progress)
    except OSError as error:
        raise git.git_start_error(error) from error
    found = [_parse_message(line) for line in dict.fromkeys(said) if not _HARMLESS_MESSAGE.search(line)]
    if child.returncode and not found:
        found = [FsckMessage(f"git fsck ended with {child.returncode}", ())]
    return found[:_MOST_MESSAGES]


def read(store: Path, oid: str) -> tuple[str, bytes] | None:
    """The kind and the content of an object, None where the repository does not have it whole."""
    return next((found for _, found in read_all(store, [oid])), None)


def read_all(store: Path, wanted: Iterable[str]) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Those of the objects that a repository has whole, each by its id with its kind and its content."""
    oids = list(dict.fromkeys(wanted))
    for start in range(0, len(oids), _BATCH_SIZE):
        part = oids[start : start + _BATCH_SIZE]
        said, place = _git_output(store, ["cat-file", "--batch"], part), 0
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
            if _object_id(words[1], data) == oid:
                yield oid, (words[1], data)


def reachable_objects(store: Path, wanted: Collection[str]) -> list[str]:
    """Those of the objects that a repository has, and all that they lead to there."""
    said = _git_output(store, ["cat-file", "--batch-check"], sorted(wanted)).decode("ascii", "replace")
    there = [words[0] for words in map(str.split, said.splitlines()) if len(words) > 1 and words[1] in _KINDS]
    if not there:
        return []
    listed = _git_output(store, ["rev-list", "--objects", "--no-object-names", "--stdin"], there)
    return list(dict.fromkeys((*there, *_OID.findall(listed.decode("ascii", "replace")))))


def write_loose_object(store: Path, oid: str, kind: str, data: bytes, aside: Path) -> None:
    """Writes an object where git looks for it, also where a pack has it damaged; what lies there goes to `aside`.

    Raises DamageError where the content does not have that name.
    """
    if kind not in _KINDS or _object_id(kind, data) != oid:
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


def fetch(scratch: Path, link: Connection, sessions: Collection[str]) -> None:
    """Brings all branches that a remote has of sessions into a store of their own, which is made."""
    stores.create_store(scratch)
    specs = [f"+refs/{space}/{name}*:refs/{space}/{name}*" for name in sessions for space in ("heads", "archive")]
    flags = ["--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"]
    url = link.remote.url
    ended = run_git(
        scratch, ["fetch", "--quiet", *flags, "--", url, *specs], link.env, link.say, secrets=url_secrets(url)
    )
    if ended.code:
        raise unreachable_error(link.remote.name, link.remote.shown, ended)


def _git_output(store: Path, arguments: Sequence[str], oids: Sequence[str]) -> bytes:
    """What git prints of the objects."""
    given = "".join(f"{oid}\n" for oid in oids).encode()
    command = [git.find_git(), "--git-dir", str(store), *arguments]
    try:
        return subprocess.run(command, input=given, env=git.env(), cwd="/", capture_output=True, check=False).stdout
    except OSError as error:
        raise git.git_start_error(error) from error


def _header(kind: str, data: bytes) -> bytes:
    return f"{kind} {len(data)}\0".encode()


def _object_id(kind: str, data: bytes) -> str:
    return hashlib.sha1(_header(kind, data) + data, usedforsecurity=False).hexdigest()


def _message_lines(pieces: list[bytes], progress: Progress) -> Iterator[str]:
    for piece in pieces:
        percent = _PERCENT.search(piece)
        if percent:
            progress(int(percent[2]), int(percent[3]))
        elif (line := piece.decode("utf-8", "replace").strip()) and not any(
            known in line for known in _IGNORED_MESSAGES
        ):
            yield line


def _parse_message(line: str) -> FsckMessage:
    named = [*_OID.findall(line), *(a + b for a, b in _LOOSE_PATH.findall(line))]
    return FsckMessage(line[:_LONGEST_MESSAGE], tuple(dict.fromkeys(named)))
