"""git as a child process that works in the store."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sessgit.errors import ROOM, StoreError
from sessgit.model.progress import Progress
from sessgit.store import refs
from sessgit.store.files import private

DAMAGED = "Nothing was changed. `sessgit verify` shows what is missing or damaged."
"""The hint where git finds something that it cannot read."""
LARGE = "64m"
"""git reads what is larger piece by piece, and looks for nothing that is like it: that takes several times as much
memory."""
_COMPRESSING_PROGRESS = re.compile(rb"Compressing objects: +[0-9]+% \(([0-9]+)/([0-9]+)\)")
_PROGRESS_PHASE = re.compile(rb"[A-Z][a-z]+ [a-z ]+: +[0-9]+|Delta compression using|Total [0-9]+|$")
_MISSING_OBJECT = re.compile(r"missing|corrupt|bad (object|tree|sha1)|unable to read|could not parse|does not match")


def env() -> dict[str, str]:
    """The environment for git children: none of `GIT_*`, whoever set it."""
    return {"PATH": os.defpath, "LC_ALL": "C", "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}


def find_git(path: str | None = None) -> str:
    """git, as it is found in `path`, by default in that of this process; raises StoreError where there is none."""
    found = shutil.which("git", path=path)
    if found is None:
        raise StoreError("git is missing", "Install git 2.30 or later.")
    return found


def git_start_error(error: OSError) -> StoreError:
    """What a caller is told where git is there and cannot be started."""
    return StoreError(f"cannot run git: {error.strerror or error}", "Check that `git --version` works.")


def run(
    store: Path,
    arguments: Sequence[str],
    locks: Sequence[int] = (),
    *,
    given: IO[bytes] | None = None,
    told: IO[bytes] | None = None,
) -> str:
    """What git prints, if it does not go to the file `told`; it reads the file `given`, and holds the locks of these
    descriptors on where this process is killed. Raises StoreError where it fails or is missing."""
    try:
        done = subprocess.run(
            _git_command(store, arguments), env=env(), check=True, cwd="/",
            stdin=given or subprocess.DEVNULL, stdout=told or subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=[lock for lock in locks if lock], umask=private.UMASK,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise _pack_error(error.stderr, error.returncode) from error
    except OSError as error:
        raise git_start_error(error) from error
    return (done.stdout or b"").decode("utf-8", "replace")


def pack_objects(
    store: Path, arguments: Sequence[str], locks: Sequence[int], given: IO[bytes] | None, progress: Progress
) -> list[str]:
    """The names of the packs that `git pack-objects` makes, which says meanwhile how far it is. Raises StoreError as
    `run` does."""
    try:
        with subprocess.Popen(
            _git_command(store, arguments), env=env(), cwd="/", stdin=given or subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[lock for lock in locks if lock],
            umask=private.UMASK,
        ) as child:  # fmt: skip
            assert child.stdout is not None
            assert child.stderr is not None
            said, rest = list[bytes](), b""
            while chunk := child.stderr.read1(65536):  # type: ignore[attr-defined]
                *pieces, rest = re.split(rb"[\r\n]", rest + chunk)
                for piece in pieces:
                    if found := _COMPRESSING_PROGRESS.match(piece):
                        progress(int(found[1]), int(found[2]))
                    elif not _PROGRESS_PHASE.match(piece):
                        said.append(piece)
            names = child.stdout.read().decode("ascii", "replace").split()
    except OSError as error:
        raise git_start_error(error) from error
    if child.returncode:
        raise _pack_error(b"\n".join([*said, rest]), child.returncode)
    return names


@contextmanager
def run_with_progress(
    store: Path, arguments: Sequence[str], locks: Sequence[int], given: IO[bytes]
) -> Iterator[IO[bytes]]:
    """What git says meanwhile, for as long as the context lasts; it reads the file `given`. Raises StoreError as `run`
    does, once all is read."""
    try:
        child = subprocess.Popen(
            _git_command(store, arguments), env=env(), cwd="/", stdin=given, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, pass_fds=[lock for lock in locks if lock], umask=private.UMASK,
        )  # fmt: skip
    except OSError as error:
        raise git_start_error(error) from error
    with child:
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            yield child.stdout
        except BaseException:
            child.kill()
            raise
        said = child.stderr.read()
    if child.returncode:
        raise _pack_error(said, child.returncode)


def _git_command(store: Path, arguments: Sequence[str]) -> list[str]:
    return [find_git(), "--git-dir", str(store), "-c", f"core.bigFileThreshold={LARGE}", *arguments]


def _pack_error(stderr: bytes, code: int) -> StoreError:
    said = stderr.decode("utf-8", "replace").strip() or f"it ended with {code}"
    return StoreError(f"git could not pack the store: {said}", _error_hint(said))


def _error_hint(said: str) -> str:
    if ".lock" in said and not refs.is_denied(said):
        return refs.LOCK_HINT
    return DAMAGED if _MISSING_OBJECT.search(said) else refs.move_error_hint(said, ROOM)
