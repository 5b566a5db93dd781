"""Transcripts that may have been copied from each other, and who comes first among them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.model import ids
from sessgit.record import fork_detection
from sessgit.record.fork_detection import Outline
from sessgit.record.source import Source


@dataclass(frozen=True, slots=True)
class File:
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

    def source(self, config: Path, live: Collection[str]) -> Source:
        """What the recorder takes it for, where these are the sessions that clients have open."""
        is_live = self.agent_id in live
        return Source(
            self.path,
            self.agent_id,
            self.folder or config,
            final=not is_live,
            at_rest=self.folder is not None and not is_live,
            own=config,
            imported=True,
        )


@dataclass(frozen=True, slots=True)
class Failure:
    path: Path
    reason: str


def families(files: Sequence[File]) -> list[list[File]]:
    """The files that begin with the same prompt, together."""
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.root or str(file.path), []).append(file)
    return list(found.values())


def parents_first(members: Sequence[File], errors: list[Failure]) -> Iterator[File]:
    """By birth, but what a copy's lines name as its origin comes before it in any case. What cannot be read is told."""
    if len(members) == 1:
        yield from members
        return
    seen = dict[File, Outline]()
    for file in members:
        try:
            seen[file] = fork_detection.outline(file.path)
        except SessgitError as error:
            errors.append(Failure(file.path, str(error)))
    waiting = {file.agent_id: file for file in sorted(seen, key=lambda file: _birth(seen[file]), reverse=True)}
    alike = [file for file in seen if waiting[file.agent_id] is not file]
    while waiting:
        chain = [waiting.popitem()[1]]
        while (named := seen[chain[-1]].forked_from) in waiting:
            chain.append(waiting.pop(named))
        yield from reversed(chain)
    yield from alike


def _birth(seen: Outline) -> tuple[str, tuple[str, ...]]:
    """A copy stamps its first lines anew; where it does not, the one whose own prompts come first is the parent."""
    return seen.born, (*seen.times, "9999")
