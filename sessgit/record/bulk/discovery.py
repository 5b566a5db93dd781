"""What an import looks at: the folders with transcripts, what it passes over there, and files of one name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.agents.reader import opened
from sessgit.errors import SessgitError
from sessgit.model import ids
from sessgit.record import catch_up, fork_detection
from sessgit.record.bulk.families import ImportFailure, TranscriptFile
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.recorder import cursor as cursors

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LARGE_HEAD = 1 << 20
_SMALL_HEAD = 1 << 13
"""So many bytes nearly always hold a whole line."""


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """How many links to transcripts or folders were not followed, how many files are empty, and how many files of
    subagents belong to no transcript that was looked at."""

    links: int = 0
    empty: int = 0
    subagents: int = 0


def folders_below(path: Path) -> list[Path]:
    """The folder and all below that can have transcripts of sessions; no link is followed."""
    return [path, *sorted(p for p in path.rglob("*") if p.name != "subagents" and _is_folder(p))]


def client_folders(config: Path) -> list[Path]:
    """The folder of all projects of a client and that of each; no link is followed."""
    top = config / "projects"
    try:
        return [top, *sorted(p for p in top.iterdir() if _is_folder(p))]
    except OSError:
        return []


def skipped_files(folders: Sequence[Path], files: Iterable[TranscriptFile] | None) -> SkippedFiles:
    """What lies in these folders, of which nothing is read; files of subagents only where it is given which transcripts
    are read."""
    links = empty = 0
    for folder in folders:
        for entry in _scan_folder(folder):
            is_transcript = entry.name.endswith(".jsonl") and not entry.name.startswith("agent-")
            with suppress(OSError):  # it may not be looked at, or is gone
                if entry.is_symlink():
                    links += is_transcript or entry.is_dir()
                elif is_transcript and entry.is_file():
                    empty += not entry.stat().st_size
    known = None if files is None else {(file.path.parent, file.agent_id) for file in files}
    return SkippedFiles(links, empty, 0 if known is None else _count_stray_subagents(folders, known))


def _count_stray_subagents(folders: Iterable[Path], known: Collection[tuple[Path, str]]) -> int:
    """How many files of subagents lie where no transcript has its own: these are found by its folder and its id."""
    count = 0
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        flat = (path for path in _transcripts_in(folder) if path.name.startswith("agent-"))
        count += sum((folder, agents.of_file(path).sidecars.session_of(path)) not in known for path in flat)
        if (folder.parent, folder.name) not in known:
            count += len(_transcripts_in(folder / layout.SUBAGENTS))
    return count


def _transcripts_in(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _scan_folder(folder) if entry.name.endswith(".jsonl")]


def _is_folder(path: Path) -> bool:
    """Whether it is a folder and no link, of which nobody knows whether where it leads may be looked at."""
    try:
        return not path.is_symlink() and path.is_dir()
    except OSError:
        return False


def is_named_by_id(path: Path) -> bool:
    """Whether the file has the id of a session for its name, as the client names it."""
    return _UUID.fullmatch(path.stem) is not None


def agent_id(path: Path) -> tuple[str, bool]:
    """The session's own id: the file's name where that is a uuid, else what its first lines say, else the name.

    Whether it is that last one comes with it.
    """
    if is_named_by_id(path):
        return path.stem, False
    said = next(filter(None, map(agents.of_file(path).lines.session_of, _first_lines(path, _LARGE_HEAD))), "")
    return said or path.stem, not said


def has_lines(path: Path) -> bool:
    """Whether the file begins with anything that a client could have written."""
    return any(line.type for size in (_SMALL_HEAD, _LARGE_HEAD) for line in _first_lines(path, size))


def is_new(path: Path, known: Collection[str]) -> bool:
    """Whether an import would bring in a file of the client: not where the session that it holds is one of these, nor
    where nobody can read a line of a transcript in it."""
    try:
        if ids.session_id(path.stem) in known or (
            not is_named_by_id(path) and ids.session_id(agent_id(path)[0]) in known
        ):
            return False
        return has_lines(path) or bool(fork_detection.first_prompt(path))
    except SessgitError:
        return False


def _first_lines(path: Path, size: int) -> list[Line]:
    """The lines that the first bytes of a file hold."""
    with opened(path) as source:
        first = source.file.read(size).split(b"\n")
    return agents.of_file(path).lines.parsed(first)


def distinct_files(files: Sequence[TranscriptFile], index: Index, errors: list[ImportFailure]) -> list[TranscriptFile]:
    """The files without those that only have a name in common with another one, which are told.

    A file whose lines do not say whose they are has its session's id from its name. If another file or the store has
    that session, and not one prompt of it is in both, they are two.
    """
    seen: dict[str, set[str]] = {}
    kept = list[TranscriptFile]()
    for file in files:
        if not file.by_name:
            kept.append(file)
            continue
        try:
            prompts = set(fork_detection.read_outline(file.path).prompts)
        except SessgitError as error:
            errors.append(ImportFailure(file.path, str(error)))
            continue
        if file.session not in seen:
            seen[file.session] = set() if _is_known(index, file) else _recorded_prompts(index, file.session)
        if seen[file.session] and not prompts & seen[file.session]:
            what = f"another conversation is also called {file.agent_id}, and no line of this file names its id"
            errors.append(ImportFailure(file.path, f"{what}: give the file another name"))
            continue
        seen[file.session] |= prompts
        kept.append(file)
    return kept


def has_unrecorded(index: Index, session: str, path: Path) -> bool:
    """Whether a transcript has anything that the store has not; a copy of the one that was recorded has not."""
    beside = StorePaths(index.path)
    if catch_up.is_level(beside, session, path):
        return False
    known = cursors.load_cursor(beside, session)
    if known is not None and (known.path == str(path) or known.offset < path.stat().st_size):
        return True
    return not set(fork_detection.read_outline(path).prompts) <= _recorded_prompts(index, session)


def _scan_folder(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _is_known(index: Index, file: TranscriptFile) -> bool:
    """Whether this very file was recorded."""
    known = cursors.load_cursor(StorePaths(index.path), file.session)
    return known is not None and known.path == str(file.path)


def _recorded_prompts(index: Index, session: str) -> set[str]:
    """Those of all turns of a session that are in the store."""
    return {row.prompt for branch in index.branches(session) for row in index.turns(branch.name)}
