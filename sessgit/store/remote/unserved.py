"""A remote with refs of unsafe names: git there ends when it comes to one of them, and serves no other ref either.

A name is unsafe if it would lead out of `refs/` were it a path. git writes none, but it reads what is in `packed-refs`.
Where the remote is a folder of this machine, a repository that borrows its objects can serve the other refs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from sessgit.errors import ROOM, StoreError
from sessgit.store import refs
from sessgit.store.files import tempdirs

_FILE_SCHEME = "file://"
_PACKED_REF_LINE = re.compile(r"^[0-9a-f]{40} (refs/.*)$", re.MULTILINE)
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"


@contextmanager
def serve_without_unsafe_refs(url: str) -> Iterator[tuple[Path, Collection[str]]]:
    """Yield a repository that serves what the one at the URL would serve without the refs of unsafe names, and these
    names. Where the URL names no folder of this machine that has any, there are no names, and no repository."""
    source = _repository_path(url)
    unsafe = _unsafe_refs(source) if source else []
    if not source or not unsafe:
        yield Path(), ()
        return
    try:
        with tempdirs.make_folder("sessgit-") as folder:
            (folder / "refs").mkdir()
            (folder / "objects" / "info").mkdir(parents=True)
            (folder / "objects" / "info" / "alternates").write_text(f"{source / 'objects'}\n")
            (folder / "HEAD").write_text("ref: refs/heads/HEAD-stays-unborn\n")
            (folder / "config").write_text(_CONFIG)
            safe = sorted((ref, oid) for ref, oid in refs.read_all(source).items() if not _is_unsafe_name(ref))
            (folder / "packed-refs").write_text("".join(f"{oid} {ref}\n" for ref, oid in safe))
            yield folder, unsafe
    except OSError as error:
        raise StoreError(f"cannot read the remote: {error.strerror or error}", ROOM) from error


def _repository_path(url: str) -> Path | None:
    path = unquote(url.removeprefix(_FILE_SCHEME)) if url.startswith(_FILE_SCHEME) else url
    if not path.startswith("/"):
        return None
    places = (Path(path, ".git"), Path(path), Path(f"{path}.git"))  # in git's order
    return next((place for place in places if (place / "HEAD").is_file() and (place / "objects").is_dir()), None)


def _unsafe_refs(repository: Path) -> list[str]:
    try:
        packed = (repository / refs.PACKED).read_text("utf-8", "replace")
    except OSError:
        return []
    return [name for name in _PACKED_REF_LINE.findall(packed) if _is_unsafe_name(name)]


def _is_unsafe_name(ref: str) -> bool:
    return not {"", ".", ".."}.isdisjoint(ref.split("/"))
