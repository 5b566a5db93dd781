"""Reassembles a session's file: the recorded lines in the order in which they were in it.

Offsets are those of the file that was read. A session may have had several files, one after another, with other
offsets: a restored one in which secrets are replaced, one on another machine. Each commit names the file by number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.line import Base
from sessgit.errors import DamageError, NotFoundError
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Extent, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.frozen import frozen
from sessgit.model.line_list import LineFile, file_lines
from sessgit.store import layout, refs
from sessgit.store.store import Store, lines_hash


@frozen
class Piece:
    """Adjacent lines of a file: the file's number, their extent in it, the lines as stored, the `key` of their turn.

    The lines are without their newlines; `unended` says that the last one had none. `key` is ``""`` for lines of no
    turn or of several; `is_tail` says that they came after the last turn, and `leads` that they did or are of the
    head's last turn.
    """

    file: int
    extent: Extent
    lines: tuple[bytes, ...]
    key: str = ""
    is_tail: bool = False
    unended: bool = False
    leads: bool = False

    @property
    def ended(self) -> list[tuple[bytes, bytes]]:
        """Each line, and its newline or nothing."""
        ends = [b"\n"] * (len(self.lines) - 1) + [b"" if self.unended else b"\n"]
        return list(zip(self.lines, ends, strict=False))


@dataclass
class Pieces:
    """The recorded pieces of a session's file; `redacted` counts secrets, `checked` matching hashes, and `rewritten`
    says that a fork's beginning was written again with other bytes."""

    found: list[Piece] = field(default_factory=list)
    redacted: int = 0
    checked: int = 0
    rewritten: bool = False
    hashes: list[tuple[int, int, str]] = field(default_factory=list)
    """The hashes that commits have of the beginning of a file: the file's number, the length in bytes, the hash."""


@frozen
class LaidOutFile:
    """The pieces in order, each without the lines that an earlier piece has, the number of bytes missing between them,
    the number of the last file, and the offset at which the last piece ends in it.

    `glued` are the keys of the turns whose last line had no newline, and is part of another line in the file now.
    """

    pieces: tuple[Piece, ...]
    missing: int
    file: int
    end: int
    glued: frozenset[str] = frozenset()

    @property
    def data(self) -> LineFile:
        """The file with the lines of all pieces."""
        lines = [line for piece in self.pieces for line in piece.lines]
        return LineFile(lines, bool(self.pieces) and self.pieces[-1].unended)


def base(agent: Agent, file: LineFile) -> Base | None:
    """Return what a session's file goes on from, or None if it has all its lines itself."""
    return agent.lines.make(file.lines[0]).base if file.lines else None


def file_pieces(store: Store, session: str, tips: dict[str, str]) -> Pieces:
    """Return the pieces of the session's file; `tips` are those of its head and its rewound branches, by name."""
    head = tips[session]
    state = store.state(head)
    out = Pieces()
    if state.origin is not None and state.origin.prefix:
        data = fork_prefix(store, state, state.origin, fork_commit(store, session, tips))
        out.rewritten = hashlib.sha256(data).hexdigest() != state.origin.prefix_sha256
        out.checked += not out.rewritten
        out.redacted += count_secrets(store, state.origin.commit, state.origin.turn)
        *lines, rest = data.split(b"\n")
        lines += [rest] if rest else []
        out.found.append(Piece(1, Extent(0, state.origin.prefix), tuple(lines), unended=bool(rest)))
    collector = _Collector(store, session, state, out)
    for branch, tip in sorted(tips.items(), key=lambda item: layout.is_rewound_branch(item[0])):
        collector.collect(tip, is_head=branch == session)
    return out


def lay_out(found: Sequence[Piece]) -> LaidOutFile:
    """Return the pieces by file and by offset; those that lead to the head come last, even if of an earlier file. Only
    lines that are already present are left out."""
    out: list[Piece] = []
    glued = set[str]()
    missing, number, position = 0, 1, 0
    # Of two pieces with one offset the longer one comes first, since lines can precede two turns.
    order = sorted(found, key=lambda piece: (piece.file, piece.extent.offset, -piece.extent.length))
    for number, group in groupby(order, key=lambda piece: piece.file):
        # The offsets of the lines of earlier files in this one are unknown.
        position = 0 if number == 1 else -1
        near: list[Piece] = []
        for piece in group:
            start, rest = piece.extent.offset, piece
            near = [one for one in near if one.extent.end > start]
            if near and was_continued_without_newline(piece, near):
                glued.add(piece.key)
                continue
            if near:
                rest = _without_laid(piece, [line for one in near for line in one.ended])
            elif position >= 0:
                # The newline of a line that had none came with what follows.
                missing += start - position - bool(out and out[-1].unended and start > position)
            if rest.lines:
                out.append(rest)
                near.append(rest)
            position = max(position, piece.extent.end)
    if max((piece.file for piece in out if piece.leads), default=number) < number:
        # Files of one session that continued separately: the agent continues from the last lines.
        out.sort(key=lambda piece: piece.leads)
    out[:-1] = [replace(piece, unended=False) for piece in out[:-1]]
    return LaidOutFile(tuple(out), missing, number, position, frozenset(glued))


def was_continued_without_newline(piece: Piece, others: Iterable[Piece]) -> bool:
    """Return whether a piece is a line without a newline that the client continued: then another piece has the longer
    line at its offset."""
    return piece.unended and any(
        one.file == piece.file and one.extent.offset <= piece.extent.offset and one.extent.end > piece.extent.end
        for one in others
    )


def session_branches(store: Store, session: str) -> dict[str, str]:
    """Return the tips of the session's head and its rewound branches, live or archived; raises NotFoundError if it has
    none.

    Branches of other machines are not among them: they have files of their own.
    """
    tips = refs.branches(store.path, session)
    own = {name: tip for name, (tip, _) in tips.items() if name == session or layout.is_rewound_branch(name)}
    if session not in own:
        raise NotFoundError(f"{session} has no branch", "`sessgit ls --all` lists all conversations.")
    return own


def own_commits(store: Store, session: str, tip: str) -> Iterator[tuple[str, Message]]:
    """Yield the commits of the session itself, from a tip backwards."""
    for commit, message in store.history(tip):
        if message.get("Session") != session:
            return
        yield commit, message


def fork_commit(store: Store, session: str, tips: Mapping[str, str]) -> str:
    """Return the first commit of a fork that sessgit made, or its fork point if that commit is gone: a rewind to before
    it leaves it on a branch of its own."""
    for tip in tips.values():
        for commit, message in own_commits(store, session, tip):
            if message.get("Event") == "fork":
                return commit
    origin = store.state(tips[session]).origin
    assert origin is not None
    return origin.commit


def is_parent_folder(store: Store, commit: str, state: Session, number: int) -> bool:
    """Return whether the folder of a turn of a client's fork is that of the session that it left. Its lines then name
    that session, and the fork's own file has the fork's id in its place."""
    origin = state.origin
    if origin is None or not origin.replaced or number > origin.turn:
        return False
    path = layout.turn_folder(number)
    return store.entry(commit, path) == store.entry(origin.commit, path)


def own_line(raw: bytes, state: Session) -> bytes:
    """Return a line of such a folder as the fork's own file has it."""
    if state.origin is None:
        return raw
    return agents.of(state).lines.with_session(raw, state.origin.replaced, state.agent_id)


def turn_lines(store: Store, commit: str, state: Session, number: int) -> list[bytes]:
    """Return the lines of a turn as the session's own file has them."""
    return next(lines_of_turns(store, commit, state, [number]))


def lines_of_turns(store: Store, commit: str, state: Session, numbers: Sequence[int]) -> Iterator[list[bytes]]:
    """Yield the lines of each of these turns as the session's own file has them."""
    for number, lines in zip(numbers, store.lines_of_turns(commit, numbers), strict=True):
        if is_parent_folder(store, commit, state, number):
            yield [own_line(raw, state) for raw in lines.whole]
        else:
            yield lines.whole


def fork_prefix(store: Store, state: Session, origin: Origin, first: str) -> bytes:
    """Return the beginning of a fork's file, written again as sessgit wrote it for the fork; `first` is the result of
    `fork_commit`, from which the turns are read: the fork point has the shared ones, the first commit also one that was
    cut at a cell.
    """
    parent = store.state(origin.commit)
    turns = origin.turn + bool(origin.cell and first != origin.commit)
    lines = lines_of_turns(store, first, parent, range(1, turns + 1))
    return agents.of(state).writer.resumable(lines, state.agent_id, store.state(first).name).data


def _without_laid(piece: Piece, laid: list[tuple[bytes, bytes]]) -> Piece:
    """Return a piece without those of its lines that are already in the file; it begins among them."""
    lines = piece.ended
    count = len(lines)
    if any(laid[at : at + count] == lines for at in range(len(laid) - count + 1)):
        return replace(piece, lines=())
    same = next((n for n in range(min(count, len(laid)), 0, -1) if laid[-n:] == lines[:n]), 0)
    return replace(piece, lines=piece.lines[same:])


def count_secrets(store: Store, tip: str, turns: int) -> int:
    """Return the number of redacted secrets in the first turns as of a commit, from the last commit of each turn."""
    found: dict[int, int] = {}
    for _, message in store.history(tip):
        if number := message.number("Turn"):
            found.setdefault(number, message.number("Redacted") or 0)
    return sum(count for number, count in found.items() if number <= turns)


class _Collector:
    """Collects the lines of every commit of the session, from tips backwards."""

    def __init__(self, store: Store, session: str, state: Session, out: Pieces) -> None:
        self.store, self.session, self.state, self.out = store, session, state, out
        self.seen: set[str] = set()
        self.open: dict[str, int] = {}
        """By turn the number of its first lines that have no offset yet."""
        self.leading: str | None = ""
        """The key of the head's last turn, while its branch is walked; None before that is met."""

    def collect(self, tip: str, *, is_head: bool) -> None:
        self.open, self.leading, only_edits = {}, None if is_head else "", True
        for commit, message in own_commits(self.store, self.session, tip):
            if commit in self.seen:  # another branch shares it, and all before it
                return
            self.seen.add(commit)
            number, key, event = message.number("Turn"), message.get("Prompt"), message.get("Event")
            if number and key:
                self.leading = key if self.leading is None else self.leading
                if self.open.get(key, 1):
                    self._take(message, self.store.lines(commit, number).whole, key)
            elif event == "end" and is_head and only_edits:
                found = self.store.tail_lines(commit)
                lines = file_lines(found)
                self._put(message, lines, lines, "", is_unended=bool(found[-1]))
            elif event == "fork" and self.state.origin is not None and not self.state.origin.prefix:
                turns = range(1, self.state.origin.turn + 1)
                shared = lines_of_turns(self.store, commit, self.state, turns)
                self._take(message, [*chain.from_iterable(shared)], "")
            only_edits = only_edits and event in ("edit", "merge")

    def _take(self, message: Message, lines: list[bytes], key: str) -> None:
        """Add the last lines of the turn at the commit's extents; the lines before them are at those of the turn's
        earlier commits, or elsewhere as well."""
        extents = message.extents
        count = sum(extent.lines for extent in extents)
        if count > len(lines):
            raise DamageError(f"turn {message.get('Turn')} has {len(lines)} lines, its extents speak of {count}")
        first = len(lines) - count
        placed = lines[first:]
        most = self.open.get(key, len(lines)) - first if key else count
        self.open[key] = min(first, self.open.get(key, first))
        if most > 0:
            self._put(message, placed[:most], placed, key, is_unended=message.is_unended)

    def _put(
        self, message: Message, lines: Sequence[bytes], every: Sequence[bytes], key: str, *, is_unended: bool
    ) -> None:
        """Add those of the lines for which the message has extents; raises DamageError if the hash of `every` line is
        not the recorded one."""
        expected, extents = message.get("Lines-SHA256"), message.extents
        if expected and every:
            if lines_hash(every) != expected:
                raise DamageError(
                    f"the lines of turn {message.get('Turn') or '@0'} are not those that were recorded",
                    "`sessgit verify` shows what is damaged.",
                )
            self.out.checked += 1
        if extents:
            end = max(extent.end for extent in extents)
            self.out.hashes.append((message.file, end, message.get(messages.FILE_HASH)))
        self.out.redacted += message.number("Redacted") or 0
        is_tail = not key and message.get("Event") == "end"
        leads = is_tail or (bool(key) and key == self.leading)
        for extent in extents:
            own, lines = tuple(lines[: extent.lines]), lines[extent.lines :]
            if own:
                is_last = is_unended and extent is extents[-1]
                self.out.found.append(Piece(message.file, extent, own, key, is_tail, is_last, leads))
