"""Globs of paths: `*` stands for any characters, `/` too, and what fits a folder fits everything below it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePosixPath

_MAGIC = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[([*?[])\]")


def escape(path: str) -> str:
    """Return the glob that fits this path, and no other but those below it."""
    return _MAGIC.sub(r"[\g<0>]", path)


def literal_path(glob: str) -> str | None:
    """Return the one path that a glob was made from, or None where it may fit several."""
    return None if _MAGIC.search(_ESCAPED.sub("", glob)) else _ESCAPED.sub(r"\1", glob)


def matches(glob: str, path: str) -> bool:
    """Return whether the absolute path, or a folder above it, fits the glob."""
    fit = _compile_glob(glob.rstrip("/") or "/")
    return any(fit(str(above)) for above in (PurePosixPath(path), *PurePosixPath(path).parents))


@lru_cache(maxsize=256)
def _compile_glob(glob: str) -> Callable[[str], object]:
    return re.compile(fnmatch.translate(glob)).match
