"""Transcripts that may have been copied from each other, and who comes first among them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.model import ids
from sessgit.record import fork_detection
from sessgit.record.fork_detection import TranscriptOutline
from sessgit.record.source import TranscriptSource


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A transcript to bring in; `root` is the uuid of its first prompt, or empty."""

    path: Path
    agent_id: str
    size: int
    root: str
    folder: Path | None = None
    """The client's folder that it is a part of, where what lies beside it is imported too."""
    by_name: bool = False
    """Whether the session's id is the file's name, since no line says it and the name is no uuid."""

    @property
    def session(self) -> str:
        return ids.session_id(self.agent_id)

    def source(self, config: Path, live: Collection[str]) -> TranscriptSource:
        """What the recorder takes it for, where these are the sessions that clients have open."""
        is_live = self.agent_id in live
        return TranscriptSource(
            self.path,
            self.agent_id,
            self.folder or config,
            final=not is_live,
            at_rest=self.folder is not None and not is_live,
            own=config,
            imported=True,
        )


@dataclass(frozen=True, slots=True)
class ImportFailure:
    path: Path
    reason: str


def group_by_prompt(files: Sequence[TranscriptFile]) -> list[list[TranscriptFile]]:
    """The files that begin with the same prompt, together."""
    found: dict[str, list[TranscriptFile]] = {}
    for file in files:
        found.setdefault(file.root or str(file.path), []).append(file)
    return list(found.values())


def sort_parents_first(members: Sequence[TranscriptFile], errors: list[ImportFailure]) -> Iterator[TranscriptFile]:
    """By birth, but what a copy's lines name as its origin comes before it in any case. What cannot be read is told."""
    if len(members) == 1:
        yield from members
        return
    seen = dict[TranscriptFile, TranscriptOutline]()
    for file in members:
        try:
            seen[file] = fork_detection.read_outline(file.path)
        except SessgitError as error:
            errors.append(ImportFailure(file.path, str(error)))
    waiting = {file.agent_id: file for file in sorted(seen, key=lambda file: _birth_order(seen[file]), reverse=True)}
    alike = [file for file in seen if waiting[file.agent_id] is not file]
    while waiting:
        chain = [waiting.popitem()[1]]
        while (named := seen[chain[-1]].forked_from) in waiting:
            chain.append(waiting.pop(named))
        yield from reversed(chain)
    yield from alike


def _birth_order(seen: TranscriptOutline) -> tuple[str, tuple[str, ...]]:
    """A copy stamps its first lines anew; where it does not, the one whose own prompts come first is the parent."""
    return seen.born, (*seen.times, "9999")
