"""The agent's file of a session that went on elsewhere: what it lacks, and how it gets it.

What the file holds is never touched. It gets the lines of later turns behind its last one, as they are stored, where
it is level with an earlier point of the session. Lines are known by their uuids: a file may hold the words that the
store has replaced, and so bytes, lengths and places differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents import file_end
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.agents.reader import Reader, opened
from sessgit.agents.values import Node, SideFile, line_of
from sessgit.branch import sidecars
from sessgit.errors import ConflictError, SessgitError, StoreError
from sessgit.history import reassemble
from sessgit.history.reassemble import LaidOutFile, Piece
from sessgit.model.conversation.session import Session
from sessgit.record import catch_up, fork_detection
from sessgit.store import locks
from sessgit.store.files import paths
from sessgit.store.layout import StorePaths
from sessgit.store.recorder import append_intent
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.append_intent import AppendIntent
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store

_LOCK_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class FileStanding:
    """How a file stands to what is recorded of its session.

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


def is_level(files: StorePaths, branch: Branch, path: Path) -> bool:
    """Whether the session's file is as it was when it was recorded up to the branch's tip; False where that is not
    known. Loads no git library."""
    known = cursors.load_cursor(files, branch.name)
    if known is None or known.current is None or known.commit != branch.tip:
        return False
    return catch_up.is_level(files, branch.name, path)


def bring_level(store: Store, session: str, config: Path, path: Path) -> int:
    """Appends to the session's file the turns that it lacks; returns how many, 0 where it is no file.

    Raises ConflictError, with nothing changed, where it cannot get them. What else it holds is not looked at.
    """
    if not paths.is_there(path):
        return 0
    with locks.session_lock(store.beside, session, _LOCK_WAIT) as held:
        if not held:
            raise StoreError(f"a recorder is writing {session[:8]}", "Try again.")
        tips = reassemble.session_branches(store, session)
        state = store.state(tips[session])
        if append_intent.load_intent(store.beside, session) is not None:
            _check_closed(config, state)
            _finish_append(store, session, path)
        found = file_standing(
            store, session, reassemble.lay_out(reassemble.file_pieces(store, session, tips).found), path
        )
        if not found.lacks:
            return 0
        _check_can_append(found, config, state, path)
        place = agents.of(state).sidecars.place(config, path.parent, state.agent_id, state.agent_version)
        sidecars.write_sidecars(
            agents.of(state), recorded_sidecars(store, session), place, sidecars.session_redaction(store, state)
        )
        data = b"\n" * found.unended + b"".join(found.lacks)
        append_intent.save_intent(store.beside, session, AppendIntent(str(path), found.size, data))
        try:
            _check_closed(config, state)  # writing beside it took a while
            file_end.append(path, found.size, data)
        except SessgitError:  # it is as it was
            append_intent.delete_intent(store.beside, session)
            raise
        append_intent.delete_intent(store.beside, session)
        return found.turns


def recorded_sidecars(store: Store, session: str) -> list[SideFile]:
    """What lay beside the session's transcript."""
    return sidecars.session_sidecars(store, session, reassemble.session_branches(store, session))


def file_standing(store: Store, session: str, laid: LaidOutFile, path: Path) -> FileStanding:
    """How the file at a path stands to what is recorded, which is `laid`."""
    tips = reassemble.session_branches(store, session)
    state = store.state(tips[session])
    agent = agents.of(state)
    with opened(path) as source:
        reader = Reader(source, 0, sidecars.session_redaction(store, state), agent.lines.make)
        lines, size = list(reader.lines()), source.size
    chain = _turn_keys(store, tips[session])
    recorded = {key for tip in tips.values() for key in _turn_keys(store, tip)}
    file = _ParsedFile(agent, lines)
    if not file.nodes or next(iter(file.nodes)) not in recorded:
        return FileStanding(False, size=size)
    names = {_line_name(line) for piece in laid.pieces for line in agent.lines.parsed(piece.lines)}
    own = {piece.key for piece in laid.pieces}
    parted = bool(file.nodes.keys() - recorded) or any(
        line.is_body and _line_name(line) not in names
        for key in file.nodes.keys() & own
        for line in file.nodes[key].body
    )
    ahead = parted or bool(reader.torn) or file.holds_more_than(names, state.agent_id)
    every = file.lacks(laid.pieces)
    if not any(piece.key in chain for piece in every):
        return FileStanding(True, ahead, parted, size=size)
    # Where a branch left behind by a rewind cannot come with the rest, it stays out.
    for lacks in (every, [piece for piece in every if piece.key in chain or piece.is_tail]):
        found = file.new(lacks)
        turns = len({piece.key for piece in lacks if piece.key})
        fits = not reader.torn and _ends_with_chain(agent, lines, found, chain, names)
        if fits:
            break
    return FileStanding(True, ahead, parted, tuple(found), turns, size, reader.unended, fits)


def _finish_append(store: Store, session: str, path: Path) -> None:
    """Completes what a kill left half appended; what a merge left it completes itself."""
    note = append_intent.load_intent(store.beside, session)
    if note is not None and not note.brought:
        from sessgit.branch.merging import writing

        writing.finish_append(store, session, path)
        append_intent.delete_intent(store.beside, session)


def _check_can_append(found: FileStanding, config: Path, state: Session, path: Path) -> None:
    short = state.id[:8]
    if found.parted or not found.fits:
        raise ConflictError(
            f"{short} was continued elsewhere, and its file {path} here: neither has all turns",
            f"`sessgit fork {short}` continues the recorded turns in a new conversation.",
        )
    _check_closed(config, state)


def _check_closed(config: Path, state: Session) -> None:
    short = state.id[:8]
    if agents.of(state).home.is_open(config, state.agent_id):
        raise ConflictError(
            f"{short} was continued elsewhere, and is open in a client here that would not see the new turns",
            f"Close it first, then run `sessgit resume {short}`.",
        )


class _ParsedFile:
    """The turns of a file, cut as the recorder cuts them, and what it holds by uuid or, without one, as it is."""

    def __init__(self, agent: Agent, lines: Sequence[Line]) -> None:
        self.agent = agent
        self.cutter = agent.cutter(fork_detection.EmptyHistory(), session="file")
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
            lines = self.agent.lines.parsed(piece.lines)
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
        lines = self.agent.lines.parsed(line + end for piece in pieces for line, end in piece.ended)
        waiting = [line.raw for line in self.cutter.pending]
        same = max((_common_prefix_length(waiting[at:], lines) for at in range(len(waiting))), default=0)
        new = [line for line in lines[same:] if line.uuid not in self.there]
        return [line.raw for line in new if line.raw.endswith(b"\n") or line.data is not None]

    def holds_more_than(self, names: Collection[str | bytes], agent_id: str) -> bool:
        """Whether lines stand behind its last turn that are not recorded; those with a name are from `restore`."""
        return any(
            _line_name(line) not in names and not self.agent.writer.is_titles(line.raw + b"\n", agent_id)
            for line in self.cutter.pending
        )


def _line_name(line: Line) -> str | bytes:
    return line.uuid or line.raw.removesuffix(b"\n")


def _turn_keys(store: Store, tip: str) -> list[str]:
    """The keys of all turns up to a commit, in their order."""
    keys = (store.message(commit.id).get("Prompt") for commit in store.repo.first_parents(tip))
    return list(dict.fromkeys(key for key in keys if key))[::-1]


def _common_prefix_length(waiting: Sequence[bytes], lines: Sequence[Line]) -> int:
    """How many lines both begin with."""
    same = (one == line.raw.removesuffix(b"\n") for one, line in zip(waiting, lines, strict=False))
    return next((n for n, alike in enumerate(same) if not alike), min(len(waiting), len(lines)))


def _ends_with_chain(
    agent: Agent, lines: Sequence[Line], more: Sequence[bytes], chain: Sequence[str], names: Collection[str | bytes]
) -> bool:
    """Whether a file with these lines and more behind them has the turns of a chain as its head, each new prompt
    hanging on a line that is there; not one that hangs on a line that nobody has."""
    there = {line.uuid for line in lines}
    cutter = agent.cutter(fork_detection.EmptyHistory(), session="file")
    for line in lines:
        cutter.feed(line)
    for line in agent.lines.parsed(raw.removesuffix(b"\n") for raw in more):
        if line.is_prompt and line.parent in names and line.parent not in there:
            return False
        there.add(line.uuid)
        cutter.feed(line)
    return [node.key for node in line_of(cutter.head)][::-1] == list(chain)
