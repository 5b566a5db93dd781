"""The transcripts of an import: where they are, whose they are, and which of them may be copies of each other."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sessgit import agents
from sessgit.agents.agent_files import is_real_folder
from sessgit.agents.line import Reader, opened
from sessgit.errors import SessgitError
from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.record import catch_up, fork_detection
from sessgit.record.fork_detection import TranscriptOutline
from sessgit.record.source import TranscriptSource
from sessgit.store import layout, recorder_state
from sessgit.store.context import DEFAULT_AGENT, Homes
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MOST_READ = 1 << 20
"""The number of bytes in which a line that says the session's id is sought."""


@frozen
class TranscriptFile:
    """A transcript to import; `root` is the uuid of its first prompt, or empty, `base` the agent's id of the session
    that it goes on from, or empty."""

    path: Path
    agent_id: str
    size: int
    root: str
    folder: Path | None = None
    """The client's folder that it is a part of, whose sidecar files are imported too."""
    agent: str = DEFAULT_AGENT
    by_name: bool = False
    """Whether the session's id is the file's name, since no line says it and the name is no uuid."""
    base: str = ""

    @property
    def session(self) -> str:
        return ids.session_id(self.agent_id)

    def source(self, homes: Homes, live: Collection[str]) -> TranscriptSource:
        """Return what to record, given the sessions that clients have open."""
        is_live, own = self.agent_id in live, homes.folders[self.agent]
        return TranscriptSource(
            self.path,
            self.agent_id,
            self.folder or own,
            final=not is_live,
            at_rest=self.folder is not None and not is_live,
            own=own,
            client=self.agent,
            imported=True,
        )


@frozen
class ImportFailure:
    path: Path
    reason: str


@frozen
class SkippedFiles:
    """The numbers of links to transcripts or folders, of empty files, and of subagents' files without a transcript; and
    the names of plans that no transcript names."""

    links: int
    empty: int
    subagents: int
    plans: tuple[str, ...] = ()


# Folders


def folders_below(path: Path) -> list[Path]:
    """Return the folder and all below that can have transcripts of sessions; links are not followed."""
    return [path, *sorted(p for p in path.rglob("*") if p.name != layout.SUBAGENTS and is_real_folder(p))]


def skipped_files(folders: Sequence[Path], files: Iterable[TranscriptFile] | None) -> SkippedFiles:
    """Count what is not read in these folders; subagents' files only if the transcripts that are read are given."""
    links = empty = 0
    for folder in folders:
        for entry in _scan_folder(folder):
            is_transcript = entry.name.endswith(".jsonl") and not entry.name.startswith("agent-")
            with suppress(OSError):  # it is unreadable or gone
                if entry.is_symlink():
                    links += is_transcript or entry.is_dir()
                elif is_transcript and entry.is_file():
                    empty += not entry.stat().st_size
    known = None if files is None else {(file.path.parent, file.agent_id) for file in files}
    return SkippedFiles(links, empty, 0 if known is None else _count_stray_subagents(folders, known))


def _count_stray_subagents(folders: Iterable[Path], known: Collection[tuple[Path, str]]) -> int:
    count = 0
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        flat = (path for path in _transcripts_in(folder) if path.name.startswith("agent-"))
        count += sum((folder, agents.of_file(path).sidecars.session_of(path)) not in known for path in flat)
        if (folder.parent, folder.name) not in known:
            count += len(_transcripts_in(folder / layout.SUBAGENTS))
    return count


def _transcripts_in(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _scan_folder(folder) if entry.name.endswith(".jsonl")]


def _scan_folder(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


# Sessions


def is_named_by_id(path: Path) -> bool:
    """Return whether the file's name has the id of a session, as the client names it."""
    return _UUID.fullmatch(agents.of_file(path).home.agent_id(path)) is not None


def examine(path: Path) -> TranscriptFile:
    """Return a transcript to import. Its session's own id is the file's name if that is a uuid, else what its first
    lines say, else the name.

    Raises SessgitError for a file that cannot be read, or has no line that a client could have written.
    """
    agent = agents.of_file(path)
    name, is_named = agent.home.agent_id(path), is_named_by_id(path)
    root, said, base, is_transcript = "", "", "", False
    with opened(path) as source:
        for line in Reader(source, agent.lines.make).head():
            is_transcript = is_transcript or line.is_known
            base = base or (line.base.agent_id if line.base and not line.extent.offset else "")
            said = said or line.session
            root = root or (line.prompt_id if line.is_prompt else "")
            if root and (is_named or said or line.extent.offset > _MOST_READ):
                break
    if not root and not is_transcript:
        raise SessgitError("it has no transcript lines" if source.size else "it is empty")
    agent_id = name if is_named or not said else said
    by_name = not is_named and not said
    return TranscriptFile(path, agent_id, source.size, root, agent=agent.name, by_name=by_name, base=base)


def is_new(path: Path, known: Collection[str]) -> bool:
    """Return whether an import would record a file of the client: not if its session is known, nor if it has no
    readable line of a transcript."""
    if ids.session_id(agents.of_file(path).home.agent_id(path)) in known:
        return False
    try:
        return examine(path).session not in known
    except SessgitError:
        return False


def distinct_files(files: Sequence[TranscriptFile], index: Index, errors: list[ImportFailure]) -> list[TranscriptFile]:
    """Return the files without those that only share a name with another session; these become errors.

    A file whose lines do not name their session has the session's id from its name. If another file or the store has
    that session, and not one prompt of it is in both, they are two sessions.
    """
    prompts_by_session: dict[str, set[str]] = {}
    distinct = list[TranscriptFile]()
    for file in files:
        if file.by_name:
            try:
                prompts = set(fork_detection.read_outline(file.path).prompts)
            except SessgitError as error:
                errors.append(ImportFailure(file.path, str(error)))
                continue
            if file.session not in prompts_by_session:
                cursor = recorder_state.load_cursor(StorePaths(index.path), file.session)
                is_this = cursor is not None and cursor.path == str(file.path)
                prompts_by_session[file.session] = set() if is_this else _recorded_prompts(index, file.session)
            known = prompts_by_session[file.session]
            if known and not prompts & known:
                what = f"another conversation is also called {file.agent_id}, and no line of this file names its id"
                errors.append(ImportFailure(file.path, f"{what}: give the file another name"))
                continue
            known |= prompts
        distinct.append(file)
    return distinct


def has_unrecorded(index: Index, session: str, path: Path) -> bool:
    """Return whether a transcript has anything that the store lacks; a copy of the recorded one has not."""
    paths = StorePaths(index.path)
    if catch_up.is_level(paths, session, path):
        return False
    cursor = recorder_state.load_cursor(paths, session)
    if cursor is not None and (cursor.path == str(path) or cursor.offset < path.stat().st_size):
        return True
    return not set(fork_detection.read_outline(path).prompts) <= _recorded_prompts(index, session)


def _recorded_prompts(index: Index, session: str) -> set[str]:
    return {row.prompt for branch in index.branches(session) for row in index.turns(branch.name)}


# Families


def group_by_prompt(files: Sequence[TranscriptFile]) -> list[list[TranscriptFile]]:
    """Return the families: the files that begin with the same prompt, and those that go on from one of these."""
    families: dict[str, list[TranscriptFile]] = {}
    by_id = {file.agent_id: file for file in files}
    for file in files:
        first, passed = file, set[str]()
        while first.base in by_id and first.base not in passed:
            passed.add(first.base)
            first = by_id[first.base]
        families.setdefault(first.root or str(first.path), []).append(file)
    return list(families.values())


def sort_parents_first(members: Sequence[TranscriptFile], errors: list[ImportFailure]) -> Iterator[TranscriptFile]:
    """Yield the files by birth, but always after the file that they name as their origin; unreadable ones become
    errors."""
    if len(members) == 1:
        yield from members
        return
    outlines = dict[TranscriptFile, TranscriptOutline]()
    for file in members:
        try:
            outlines[file] = fork_detection.read_outline(file.path)
        except SessgitError as error:
            errors.append(ImportFailure(file.path, str(error)))
    # A copy stamps its first lines anew; if it does not, the one whose own prompts come first is the parent.
    born = {file: (outline.created, (*outline.times, "9999")) for file, outline in outlines.items()}
    waiting = {file.agent_id: file for file in sorted(outlines, key=born.__getitem__, reverse=True)}
    same_session = [file for file in outlines if waiting[file.agent_id] is not file]
    while waiting:
        chain = [waiting.popitem()[1]]
        while (origin := outlines[chain[-1]].forked_from) in waiting:
            chain.append(waiting.pop(origin))
        yield from reversed(chain)
    yield from same_session
