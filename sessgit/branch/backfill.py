"""The agent's file of a session that went on elsewhere: what it lacks, and how it gets it.

What the file holds is never touched. It gets the lines of later turns behind its last one, as they are stored, where
it is level with an earlier point of the session. Lines are known by their uuids: a file may hold the words that the
store has replaced, and so bytes, lengths and places differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.cutter import Cutter
from sessgit.agents.line import Line
from sessgit.agents.reader import Opened, Reader, opened
from sessgit.agents.values import Node, SideFile, line_of
from sessgit.branch import file_append, sidecars
from sessgit.errors import ConflictError
from sessgit.history import reassemble
from sessgit.history.reassemble import LaidOutFile, Piece
from sessgit.model.conversation.session import Session
from sessgit.model.homes import Homes
from sessgit.model.line_list import LineFile
from sessgit.record import catch_up, fork_detection
from sessgit.store import recorder_state
from sessgit.store.index import Branch
from sessgit.store.layout import StorePaths
from sessgit.store.objects import chunks
from sessgit.store.private_files import path_exists
from sessgit.store.recorder_state import AppendIntent
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class FileStanding:
    """How a file compares with what is recorded of its session.

    `known` is False where it is not of that session at all; `ahead` says that it holds lines that are not recorded,
    `parted` that there are turns or parts of turns among them. `lacks` are the lines that it needs to be level, each
    with its newline but for a last one that had none, and `turns` is how many turns they are of. `size` is how long the
    file is, `unended` says that its own last line has no newline.
    """

    known: bool
    ahead: bool = False
    parted: bool = False
    lacks: tuple[bytes, ...] = ()
    turns: int = 0
    size: int = 0
    unended: bool = False
    fits: bool = True
    """Whether the agent would go on from the session's last turn, if the file had what it lacks."""
    torn: bool = False
    """Whether it ends in the middle of a line that is not recorded. If all of the file is recorded, the rest of that
    line is the first of `lacks`."""


def is_level(files: StorePaths, branch: Branch, path: Path) -> bool:
    """Whether the session's file is as it was when it was recorded up to the branch's tip; False where that is not
    known. Loads no git library."""
    known = recorder_state.load_cursor(files, branch.name)
    if known is None or known.current is None or known.commit != branch.tip:
        return False
    return catch_up.is_level(files, branch.name, path)


def bring_level(store: Store, session: str, homes: Homes, path: Path) -> int:
    """Appends to the session's file the turns that it lacks; returns how many, 0 where it is no file.

    Raises ConflictError, with nothing changed, where it cannot get them. What else it holds is not looked at.
    """
    if not path_exists(path):
        return 0
    with file_append.writable_session(store.paths, session):
        tips = reassemble.session_branches(store, session)
        state = store.state(tips[session])
        if recorder_state.load_intent(store.paths, session) is not None:
            _check_closed(homes, state)
            _finish_append(store.paths, session, path)
        found = file_standing(
            store, session, reassemble.lay_out(reassemble.file_pieces(store, session, tips).found), path
        )
        if not found.lacks:
            return 0
        _check_can_append(found, homes, state, path)
        place = agents.of(state).sidecars.place(homes.of(state), path.parent, state.agent_id, state.agent_version)
        sidecars.write_sidecars(recorded_sidecars(store, session), place, sidecars.session_redaction(store, state))
        data = b"\n" * found.unended + b"".join(found.lacks)
        _check_closed(homes, state)  # writing the sidecar files took a while
        file_append.append_lines(store.paths, session, path, AppendIntent(str(path), found.size, data))
        recorder_state.delete_intent(store.paths, session)
        return found.turns


def recorded_sidecars(store: Store, session: str) -> list[SideFile]:
    """Return the sidecar files of the session's transcript."""
    return sidecars.session_sidecars(store, session, reassemble.session_branches(store, session))


def file_standing(store: Store, session: str, laid: LaidOutFile, path: Path) -> FileStanding:
    """Return how the file at a path compares with what is recorded, which is `laid`."""
    tips = reassemble.session_branches(store, session)
    state = store.state(tips[session])
    agent = agents.of(state)
    with opened(path) as source:
        reader = Reader(source, 0, sidecars.session_redaction(store, state), agent.lines.make)
        lines, size = list(reader.lines()), source.size
        rest = _rest_of(laid.data, source)
    chain = _turn_keys(store, tips[session])
    recorded = {key for tip in tips.values() for key in _turn_keys(store, tip)}
    file = _ParsedFile(agent, lines)
    if not file.nodes or next(iter(file.nodes)) not in recorded:
        return FileStanding(False, size=size)
    names = {_line_name(line) for piece in laid.pieces for line in agent.parsed(piece.lines)}
    own = {piece.key for piece in laid.pieces}
    parted = bool(file.nodes.keys() - recorded) or any(
        line.is_body and _line_name(line) not in names
        for key in file.nodes.keys() & own
        for line in file.nodes[key].body
    )
    every = file.lacks(laid.pieces)
    is_torn = bool(reader.torn) and not rest
    ahead = parted or is_torn or file.holds_more_than(names, state.agent_id)
    if not any(piece.key in chain for piece in every) and not (reader.torn and rest):
        return FileStanding(True, ahead, parted, size=size, torn=is_torn)
    if rest:
        turns = len({piece.key for piece in every if piece.key})
        return FileStanding(True, lacks=rest, turns=turns, size=size)
    # Where a branch left behind by a rewind cannot come with the rest, it stays out.
    for lacks in (every, [piece for piece in every if piece.key in chain or piece.is_tail]):
        found = file.new(lacks)
        turns = len({piece.key for piece in lacks if piece.key})
        fits = not is_torn and _ends_with_chain(agent, lines, found, chain, names)
        if fits:
            break
    return FileStanding(True, ahead, parted, tuple(found), turns, size, reader.unended, fits, is_torn)


def _rest_of(recorded: LineFile, source: Opened) -> tuple[bytes, ...]:
    """Return the recorded lines that a file lacks, the first perhaps in part, if it is the beginning of what is
    recorded, byte for byte; else none."""
    source.file.seek(0)
    pieces = chunks(recorded.pieces())
    for piece in pieces:
        known = source.file.read(len(piece))
        if known != piece[: len(known)]:
            return ()
        if len(known) < len(piece):
            return tuple(BytesIO(b"".join([piece[len(known) :], *pieces])))
    return ()


def _finish_append(paths: StorePaths, session: str, path: Path) -> None:
    """Complete what a kill left half appended; a merge completes its own."""
    intent = recorder_state.load_intent(paths, session)
    if intent is not None and not intent.brought:
        file_append.finish_append(paths, session, path)
        recorder_state.delete_intent(paths, session)


def _check_can_append(found: FileStanding, homes: Homes, state: Session, path: Path) -> None:
    short = state.id[:8]
    if found.torn:
        raise torn_file_error(path)
    if found.parted or not found.fits:
        raise ConflictError(
            f"{short} was continued elsewhere, and its file {path} here: neither has all turns",
            f"`sessgit fork {short}` continues the recorded turns in a new conversation.",
        )
    _check_closed(homes, state)


def torn_file_error(path: Path) -> ConflictError:
    """Return the error that a file ends in the middle of a line that is not recorded."""
    return ConflictError(
        f"{path} ends in the middle of a line that is not recorded",
        "It was not changed. To write the recorded lines elsewhere, use `sessgit restore --output FILE`.",
    )


def _check_closed(homes: Homes, state: Session) -> None:
    short = state.id[:8]
    if agents.is_open(homes, state.agent_id):
        raise ConflictError(
            f"{short} was continued elsewhere, and is open in a client here that would not see the new turns",
            f"Close it first, then run `sessgit resume {short}`.",
        )


class _ParsedFile:
    """The turns of a file, cut as the recorder cuts them, and what it holds by uuid or, without one, as it is."""

    def __init__(self, agent: Agent, lines: Sequence[Line]) -> None:
        self.agent = agent
        self.cutter = Cutter(fork_detection.EmptyHistory(), session="file")
        self.nodes: dict[str, Node] = {}
        for line in lines:
            self.cutter.feed(line)
            if self.cutter.head is not None:
                self.nodes.setdefault(self.cutter.head.key, self.cutter.head)
        self.there = {_line_name(line) for line in lines}

    def lacks(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces of turns and of the tail, or the ends of pieces, that the file does not hold."""
        out = list[Piece]()
        begun = set[str]()
        for piece in pieces:
            lines = self.agent.parsed(piece.lines)
            if piece.key in self.nodes and piece.key not in begun:
                last = max((n for n, line in enumerate(lines, start=1) if _line_name(line) in self.there), default=0)
                lines = lines[last:]
            if not lines or not (piece.key or piece.is_tail):
                continue
            begun.add(piece.key)
            out.append(replace(piece, lines=tuple(line.raw for line in lines)))
        return out

    def new(self, pieces: Sequence[Piece]) -> list[bytes]:
        """The lines of pieces that it lacks, but for those that wait behind its last turn for the next one already."""
        lines = self.agent.parsed(line + end for piece in pieces for line, end in piece.ended)
        waiting = [line.raw for line in self.cutter.pending]
        same = max((_common_prefix_length(waiting[at:], lines) for at in range(len(waiting))), default=0)
        new = [line for line in lines[same:] if line.uuid not in self.there]
        return [line.raw for line in new if line.raw.endswith(b"\n") or line.data is not None]

    def holds_more_than(self, names: Collection[str | bytes], agent_id: str) -> bool:
        """Return whether lines after its last turn are not recorded; those with a name are from `restore`."""
        return any(
            _line_name(line) not in names and not self.agent.is_titles(line.raw + b"\n", agent_id)
            for line in self.cutter.pending
        )


def _line_name(line: Line) -> str | bytes:
    return line.uuid or line.raw.removesuffix(b"\n")


def _turn_keys(store: Store, tip: str) -> list[str]:
    """The keys of all turns up to a commit, in their order."""
    keys = (message.get("Prompt") for _, message in store.history(tip))
    return list(dict.fromkeys(key for key in keys if key))[::-1]


def _common_prefix_length(waiting: Sequence[bytes], lines: Sequence[Line]) -> int:
    """How many lines both begin with."""
    same = (one == line.raw.removesuffix(b"\n") for one, line in zip(waiting, lines, strict=False))
    return next((n for n, alike in enumerate(same) if not alike), min(len(waiting), len(lines)))


def _ends_with_chain(
    agent: Agent, lines: Sequence[Line], more: Sequence[bytes], chain: Sequence[str], names: Collection[str | bytes]
) -> bool:
    """Whether a file with these lines and more behind them has the turns of a chain as its head, each new prompt
    whose parent is a line of the file, and none whose parent is a recorded line that the file lacks."""
    there = {line.uuid for line in lines}
    cutter = Cutter(fork_detection.EmptyHistory(), session="file")
    for line in lines:
        cutter.feed(line)
    for line in agent.parsed(raw.removesuffix(b"\n") for raw in more):
        if line.is_prompt and line.parent in names and line.parent not in there:
            return False
        there.add(line.uuid)
        cutter.feed(line)
    return [node.key for node in line_of(cutter.head)][::-1] == list(chain)
