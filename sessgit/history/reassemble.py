"""A session's file laid out again: the recorded lines in the order in which they stood in it.

Places are those of the file that was read. Of one session there can be several, one after another, in which a line
has different places: a restored one in which words stand replaced, one on another machine. Commits say which it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from sessgit import agents
from sessgit.errors import DamageError, NotFoundError
from sessgit.history import shared_prefix
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Extent, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.line_list import LineFile, file_lines
from sessgit.store import layout, refs
from sessgit.store.store import Store, lines_hash


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines that stood together: in which file, where in it, and as they are stored; `key` is that of their turn.

    The lines are without their newlines; `unended` says that the last one had none. `key` is ``""`` for what belongs to
    no turn or to several; `is_tail` says that they stood behind the last turn, and `leads` that they are that or of the
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
    """What is recorded of a session's file; `redacted` counts secrets, `checked` hashes, and `rewritten` says that a
    fork's beginning could be written anew, though not to the same bytes."""

    found: list[Piece] = field(default_factory=list)
    redacted: int = 0
    checked: int = 0
    rewritten: bool = False
    hashes: list[tuple[int, int, str]] = field(default_factory=list)
    """For each commit that says it the hash of the file up to a place: which file, the place, the hash."""


@dataclass(frozen=True, slots=True)
class LaidOutFile:
    """The lines in order, each piece without what stands before it already, how many bytes between them are missing,
    the last file, and where the last one ends in it.

    `glued` are the keys of the turns whose last line had no newline, and is part of another line in the file now.
    """

    pieces: tuple[Piece, ...]
    missing: int
    file: int
    end: int
    glued: frozenset[str] = frozenset()

    @property
    def data(self) -> LineFile:
        """The file of all of them."""
        lines = [line for piece in self.pieces for line in piece.lines]
        return LineFile(lines, bool(self.pieces) and self.pieces[-1].unended)


def file_pieces(store: Store, session: str, tips: dict[str, str]) -> Pieces:
    """The pieces of the session's file; `tips` are its head and what rewinds left."""
    head = tips[session]
    state = store.state(head)
    out = Pieces()
    if state.origin is not None and state.origin.prefix:
        _put_prefix(store, state, state.origin, fork_commit(store, session, tips), out)
    collector = _Collector(store, session, state, out)
    for branch, tip in sorted(tips.items(), key=lambda item: layout.is_rewound_branch(item[0])):
        collector.collect(tip, is_head=branch == session)
    return out


def lay_out(found: Sequence[Piece]) -> LaidOutFile:
    """The pieces by file and by offset; what leads to the head comes last, where that is of an earlier file than
    others. No line is left out that does not stand there already."""
    out: list[Piece] = []
    glued = set[str]()
    missing, number, position = 0, 1, 0
    for number, group in groupby(sorted(found, key=_piece_order), key=lambda piece: piece.file):
        # Where the lines of earlier files stand in this one, nothing says.
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
        # Files of one session that went on apart: the agent goes on from what stands last.
        out.sort(key=lambda piece: piece.leads)
    out[:-1] = [replace(piece, unended=False) for piece in out[:-1]]
    return LaidOutFile(tuple(out), missing, number, position, frozenset(glued))


def was_continued_without_newline(piece: Piece, others: Iterable[Piece]) -> bool:
    """Return whether a piece is a line that had no newline and that the client went on in without one: then another
    piece has the longer line that stands in its place."""
    return piece.unended and any(
        one.file == piece.file and one.extent.offset <= piece.extent.offset and one.extent.end > piece.extent.end
        for one in others
    )


def session_branches(store: Store, session: str) -> dict[str, str]:
    """The session's head and what rewinds left, live or archived, and their tips; raises NotFoundError for none.

    What another machine added is not among them: it stands in a file of its own.
    """
    own: dict[str, str] = {}
    for space in (layout.ARCHIVE, layout.HEADS):
        for ref, tip in refs.read_all(store.path, space + session).items():
            name = ref.removeprefix(space)
            if name == session or (layout.is_rewound_branch(name) and layout.session_of(name) == session):
                own[name] = tip
    if session not in own:
        raise NotFoundError(f"{session} has no branch", "`sessgit ls --all` lists all conversations.")
    return own


def own_commits(store: Store, session: str, tip: str) -> Iterator[tuple[str, Message]]:
    """The commits of the session itself, from a tip backwards."""
    for commit in store.repo.first_parents(tip):
        message = store.message(commit.id)
        if message.get("Session") != session:
            return
        yield commit.id, message


def fork_commit(store: Store, session: str, tips: Mapping[str, str]) -> str:
    """The first commit of a fork of ours, or its fork point where that is not here any more: a rewind to before it
    leaves it on a branch of its own."""
    for tip in tips.values():
        for commit, message in own_commits(store, session, tip):
            if message.get("Event") == "fork":
                return commit
    origin = store.state(tips[session]).origin
    assert origin is not None
    return origin.commit


def turn_lines(store: Store, commit: str, state: Session, number: int) -> list[bytes]:
    """The lines of a turn as the session's own file has them."""
    stored = store.lines(commit, number)
    lines = [*stored.before, *stored.body]
    return (
        [shared_prefix.own_line(raw, state) for raw in lines]
        if shared_prefix.is_shared_folder(store, commit, state, number)
        else lines
    )


def fork_prefix(store: Store, state: Session, origin: Origin, first: str) -> bytes:
    """The beginning that this program wrote when it made the fork, written anew; `first` is what `fork_commit` says.

    The turns are read from there: the fork point has the shared ones, the first commit also one cut at a cell.
    """
    parent = store.state(origin.commit)
    turns = origin.turn + bool(origin.cell and first != origin.commit)
    lines = (turn_lines(store, first, parent, number) for number in range(1, turns + 1))
    return agents.of(state).writer.resumable(lines, state.agent_id, store.state(first).name).data


def _piece_order(piece: Piece) -> tuple[int, int, int]:
    """Of two that begin at the same place the longer one comes first: lines can stand before two turns."""
    return piece.file, piece.extent.offset, -piece.extent.length


def _without_laid(piece: Piece, laid: list[tuple[bytes, bytes]]) -> Piece:
    """A piece that begins among lines which are laid out, without those of its lines that are among them."""
    lines = piece.ended
    count = len(lines)
    if any(laid[at : at + count] == lines for at in range(len(laid) - count + 1)):
        return replace(piece, lines=())
    same = next((n for n in range(min(count, len(laid)), 0, -1) if laid[-n:] == lines[:n]), 0)
    return replace(piece, lines=piece.lines[same:])


def _put_prefix(store: Store, state: Session, origin: Origin, first: str, out: Pieces) -> None:
    data = fork_prefix(store, state, origin, first)
    if hashlib.sha256(data).hexdigest() == origin.prefix_sha256:
        out.checked += 1
    else:
        out.rewritten = True
    out.redacted += _count_secrets(store, origin.commit, origin.turn)
    *lines, rest = data.split(b"\n")
    out.found.append(Piece(1, Extent(0, origin.prefix), (*lines, rest) if rest else tuple(lines), unended=bool(rest)))


def _count_secrets(store: Store, tip: str, turns: int) -> int:
    """How many secrets stand replaced in the first turns as of a commit, as the last commit of each says."""
    found: dict[int, int] = {}
    for commit in store.repo.first_parents(tip):
        message = store.message(commit.id)
        if number := message.number("Turn"):
            found.setdefault(number, message.number("Redacted") or 0)
    return sum(count for number, count in found.items() if number <= turns)


class _Collector:
    """Takes the lines of every commit of the session, from tips backwards."""

    def __init__(self, store: Store, session: str, state: Session, out: Pieces) -> None:
        self.store, self.session, self.state, self.out = store, session, state, out
        self.seen: set[str] = set()
        self.open: dict[str, int] = {}
        """For each turn how many of its first lines have no place yet."""
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
                    stored = self.store.lines(commit, number)
                    self._take(message, [*stored.before, *stored.body], key)
            elif event == "end" and is_head and only_edits:
                self._take_tail(commit, message)
            elif event == "fork" and self.state.origin is not None and not self.state.origin.prefix:
                turns = range(1, self.state.origin.turn + 1)
                shared = (line for n in turns for line in turn_lines(self.store, commit, self.state, n))
                self._take(message, list(shared), "")
            only_edits = only_edits and event in ("edit", "merge")

    def _take(self, message: Message, lines: list[bytes], key: str) -> None:
        """Lays the last lines of the folder where the extents say; those before them stand elsewhere as well, or
        where the turn's commit before this one says."""
        extents = message.extents
        count = sum(extent.lines for extent in extents)
        if count > len(lines):
            raise DamageError(f"turn {message.get('Turn')} has {len(lines)} lines, its extents speak of {count}")
        first = len(lines) - count
        placed = lines[first:]
        most = self.open.get(key, len(lines)) - first if key else count
        self.open[key] = min(first, self.open.get(key, first))
        if most > 0:
            self._put(message, placed[:most], placed, key, unended=message.is_unended)

    def _take_tail(self, commit: str, message: Message) -> None:
        found = self.store.tail_lines(commit)
        lines = file_lines(found)
        self._put(message, lines, lines, "", is_tail=True, unended=bool(found[-1]))

    def _put(
        self, message: Message, lines: Sequence[bytes], every: Sequence[bytes], key: str, *, is_tail: bool = False,
        unended: bool = False,
    ) -> None:  # fmt: skip
        """Puts those of the lines that the message speaks of where it says; a line that begins none stands nowhere."""
        self._check(message, every)
        if message.extents:
            end = max(extent.end for extent in message.extents)
            self.out.hashes.append((message.file, end, message.get(messages.FILE_HASH)))
        self.out.redacted += message.number("Redacted") or 0
        extents = message.extents
        for number, extent in enumerate(extents, start=1):
            own, lines = tuple(lines[: extent.lines]), lines[extent.lines :]
            if own:
                leads = is_tail or (bool(key) and key == self.leading)
                is_last = unended and number == len(extents)
                self.out.found.append(Piece(message.file, extent, own, key, is_tail, is_last, leads))

    def _check(self, message: Message, lines: Sequence[bytes]) -> None:
        expected = message.get("Lines-SHA256")
        if not expected or not lines:
            return
        if lines_hash(lines) != expected:
            raise DamageError(
                f"the lines of turn {message.get('Turn') or '@0'} are not those that were recorded",
                "`sessgit verify` shows what is damaged.",
            )
        self.out.checked += 1
