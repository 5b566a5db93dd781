"""What an import looks at: the folders with transcripts, what it passes over there, and files of one name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.ops.bulk.families import Failure, File
from sessgit.ops.recording import catchup, family
from sessgit.store.index import Index
from sessgit.store.layout import Beside
from sessgit.store.recorder import cursor as cursors


@dataclass(frozen=True, slots=True)
class PassedOver:
    """How many links to transcripts or folders nobody followed, and how many files are empty."""

    links: int = 0
    empty: int = 0


def below(path: Path) -> list[Path]:
    """The folder and all below that can have transcripts of sessions; no link is followed."""
    return [path, *sorted(p for p in path.rglob("*") if p.name != "subagents" and _is_folder(p))]


def of_client(config: Path) -> list[Path]:
    """The folder of all projects of a client and that of each; no link is followed."""
    top = config / "projects"
    try:
        return [top, *sorted(p for p in top.iterdir() if _is_folder(p))]
    except OSError:
        return []


def passed_over(folders: Iterable[Path]) -> PassedOver:
    """What lies in these folders, of which nothing is read."""
    links = empty = 0
    for folder in folders:
        for entry in _entries(folder):
            is_transcript = entry.name.endswith(".jsonl") and not entry.name.startswith("agent-")
            with suppress(OSError):  # it may not be looked at, or is gone
                if entry.is_symlink():
                    links += is_transcript or entry.is_dir()
                elif is_transcript and entry.is_file():
                    empty += not entry.stat().st_size
    return PassedOver(links, empty)


def _is_folder(path: Path) -> bool:
    """Whether it is a folder and no link, of which nobody knows whether where it leads may be looked at."""
    try:
        return not path.is_symlink() and path.is_dir()
    except OSError:
        return False


def distinct(files: Sequence[File], index: Index, errors: list[Failure]) -> list[File]:
    """The files without those that only have a name in common with another one, which are told.

    A file whose lines do not say whose they are has its session's id from its name. If another file or the store has
    that session, and not one prompt of it is in both, they are two.
    """
    seen: dict[str, set[str]] = {}
    kept = list[File]()
    for file in files:
        if not file.by_name:
            kept.append(file)
            continue
        try:
            prompts = set(family.outline(file.path).prompts)
        except SessgitError as error:
            errors.append(Failure(file.path, str(error)))
            continue
        if file.session not in seen:
            seen[file.session] = set() if _is_known(index, file) else _prompts(index, file.session)
        if seen[file.session] and not prompts & seen[file.session]:
            what = f"another conversation is called {file.agent_id} too, and no line of this one says which it is"
            errors.append(Failure(file.path, f"{what}: give the file another name"))
            continue
        seen[file.session] |= prompts
        kept.append(file)
    return kept


def has_more(index: Index, session: str, path: Path) -> bool:
    """Whether a transcript has anything that the store has not; a copy of the one that was recorded has not."""
    beside = Beside(index.path)
    if catchup.is_level(beside, session, path):
        return False
    known = cursors.load(beside, session)
    if known is not None and (known.path == str(path) or known.offset < path.stat().st_size):
        return True
    return not set(family.outline(path).prompts) <= _prompts(index, session)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _is_known(index: Index, file: File) -> bool:
    """Whether this very file was recorded."""
    known = cursors.load(Beside(index.path), file.session)
    return known is not None and known.path == str(file.path)


def _prompts(index: Index, session: str) -> set[str]:
    """Those of all turns of a session that are in the store."""
    return {row.prompt for branch in index.branches(session) for row in index.turns(branch.name)}
