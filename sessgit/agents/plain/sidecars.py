"""A client that keeps all of a session in its transcript."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sessgit.agents.line import Line, Redact
from sessgit.agents.values import SideFile
from sessgit.model.conversation.turn import Gist
from sessgit.model.line_list import Bytes


class Nowhere:
    """The place of sidecar files that the client does not have."""

    def of(self, file: SideFile) -> Path | None:
        return None


class NoSubagents:
    """The files of no subagents."""

    def __init__(self) -> None:
        self.done: dict[str, tuple[str, int, int]] = {}

    def pass_over(self, key: str, recorded: Callable[[], Mapping[str, int]]) -> None:
        pass

    def has(self, path: str) -> bool:
        return False

    def has_more(self) -> bool:
        return False

    def of_turn(self, key: str, lines: Sequence[Line], *, is_last: bool) -> dict[str, Bytes]:
        return {}


def place(config: Path, folder: Path, agent_id: str, version: str = "") -> Nowhere:
    return Nowhere()


def subagents(transcript: Path, agent_id: str, redact: Redact) -> NoSubagents:
    return NoSubagents()


def is_subagent(name: str) -> bool:
    return False


def session_of(path: Path) -> str:
    return ""


def results(transcript: Path, agent_id: str, lines: Sequence[Line], redact: Redact) -> Iterator[tuple[str, bytes]]:
    return iter(())


def live(config: Path, agent_id: str, slug: str, redact: Redact) -> Iterator[tuple[str, bytes]]:
    return iter(())


def plan_name(name: str) -> str:
    return name


def unnamed_plans(config: Path, transcripts: Iterable[Path]) -> list[str]:
    return []


def may_be_inline(version: str) -> bool:
    return False


def goes_on(piece: Bytes) -> bool:
    return False


def messages(piece: Bytes) -> set[str]:
    return set()


def gist(body: Sequence[Line], pieces: Iterable[Bytes], counted: Collection[str] = ()) -> Gist:
    return Gist()


def own_lines(piece: Bytes) -> list[Line]:
    return []


def as_own(file: SideFile, agent_id: str, version: str) -> SideFile:
    return file


def links(config: Path, transcript: Path, agent_id: str) -> Iterator[Path]:
    return iter(())
