"""All objects of a store, whether refs lead to them or not, as git itself reads them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from sessgit.errors import StoreError
from sessgit.model.progress import Progress, no_progress
from sessgit.store import git


class GitObject(NamedTuple):
    """An object: `kind` is blob, tree, commit or tag, `data` what git hashes behind its header."""

    id: str
    kind: str
    data: bytes


def all_objects(store: Path, progress: Progress) -> Iterator[GitObject]:
    """Every object, loose or packed, each once, in the order that is read fastest; raises StoreError for one that
    cannot be read. `progress` is called with how many were read, of how many."""
    names = _git_output(store, ["cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)"])
    yield from _read_objects(store, names.split(), progress)


def new_objects(store: Path, tips: Sequence[str], known: Sequence[str]) -> Iterator[GitObject]:
    """The objects that the histories of the tips hold and those of the known commits lack."""
    given = "".join(f"{tip}\n" for tip in (*tips, *(f"^{one}" for one in known)))
    names = _git_output(store, ["rev-list", "--objects", "--no-object-names", "--stdin"], given.encode())
    yield from _read_objects(store, names.split(), no_progress)


def _read_objects(store: Path, names: Sequence[str], progress: Progress) -> Iterator[GitObject]:
    with tempfile.TemporaryFile() as asked:  # a pipe would fill up while git waits for somebody to read
        asked.write("".join(f"{name}\n" for name in names).encode())
        asked.seek(0)
        command = [git.find_git(), "--git-dir", str(store), "cat-file", "--batch", "--buffer"]
        child = subprocess.Popen(
            command, env=git.env(), stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
        )
        assert child.stdout is not None
        try:
            for number, name in enumerate(names, start=1):
                yield _parse_object(child.stdout, name)
                progress(number, len(names))
        finally:
            child.stdout.close()
            child.kill()
            child.wait()


def _parse_object(answers: IO[bytes], name: str) -> GitObject:
    words = answers.readline().split()
    if len(words) != 3 or not words[2].isdigit():
        raise StoreError(f"git cannot read the object {name}", git.DAMAGED)
    length = int(words[2])
    data = answers.read(length)
    if len(data) != length or answers.read(1) != b"\n":
        raise StoreError(f"git cannot read the object {name}", git.DAMAGED)
    return GitObject(name, words[1].decode(), data)


def _git_output(store: Path, arguments: Sequence[str], given: bytes = b"") -> str:
    try:
        done = subprocess.run(
            [git.find_git(), "--git-dir", str(store), *arguments], env=git.env(), input=given, capture_output=True,
            check=True, cwd="/",
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip()
        raise StoreError(f"git cannot read the store: {said}", git.DAMAGED) from error
    return done.stdout.decode("ascii", "replace")
