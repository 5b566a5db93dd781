"""Paths that a document names, perhaps one that somebody else wrote."""

from __future__ import annotations

from pathlib import Path


def is_there(path: Path | str) -> bool:
    """Whether there is such a file or folder; there is none where the text can be no path, as a state may say."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long, or with NUL or half a character in it
        return False


def is_inside(folder: Path, path: Path) -> bool:
    """Whether a path that was noted, perhaps by somebody else, leads into the folder, whatever is there."""
    return path.is_relative_to(folder) and ".." not in path.parts
