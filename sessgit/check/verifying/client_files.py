"""The agent's own file against what is recorded: the places of lines, and proofs of those that were redacted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from sessgit import agents
from sessgit.agents.reader import Reader, opened
from sessgit.check.verifying.commit_extras import REDACTED
from sessgit.check.verifying.turns import Where
from sessgit.errors import SessgitError
from sessgit.history.reassemble import Piece, Pieces, own_commits, was_continued_without_newline
from sessgit.model import humanize
from sessgit.model.conversation.message import Message
from sessgit.model.finding import Finding
from sessgit.store.recorder import cursor as cursors
from sessgit.store.secrets import secret_filter
from sessgit.store.store import Store, lines_hash, with_newlines


def check(store: Store, session: str, tips: Mapping[str, str]) -> Iterator[Finding]:
    """What is recorded otherwise than the agent has it; nothing where its file is gone, or is another one."""
    with suppress(SessgitError):  # what cannot be read was told where it was met
        yield from _proofs(store, session, tips)


def check_prefix(store: Store, session: str, tip: str, pieces: Pieces) -> Iterator[Finding]:
    """The length of what a fork wrote at the beginning of its file, where no word of it was replaced."""
    origin = store.state(tip).origin
    if origin is None or not origin.prefix or pieces.rewritten:
        return
    written = next((one for one in pieces.found if one.file == 1 and not one.extent.offset and not one.key), None)
    if written is None or any(REDACTED in line for line in written.lines):
        return
    if sum(len(line) + 1 for line in written.lines) - written.unended != origin.prefix:
        what = "its origin has another length than the beginning that the fork wrote"
        yield Where(session).found("wrong", "fork", what)


def check_places(session: str, found: Sequence[Piece], missing: int) -> Iterator[Finding]:
    """Whether lines stand one after another in their file, as their extents say."""
    where = Where(session)
    if missing:
        what = f"{humanize.format_count(missing, 'byte')} of its file were never recorded, or its extents are wrong"
        yield where.found("note", "extent", what)
    placed = sorted(found, key=lambda one: (one.file, one.extent.offset, -one.extent.length))
    both = [(one, other) for one, other in pairwise(placed) if one.file == other.file]
    over = [(one, other) for one, other in both if one.extent.end > other.extent.offset]
    over = [(one, other) for one, other in over if not was_continued_without_newline(other, [one])]
    if not all(_is_among(list(one.lines), list(other.lines)) for one, other in over):
        yield where.found("note", "extent", "two different lines have the same place in its file, by their extents")


def _is_among(held: list[bytes], lines: list[bytes]) -> bool:
    """Whether lines that begin at a place where others are held are among these, or go on from their end."""
    count = len(lines)
    is_part = any(held[at : at + count] == lines for at in range(len(held) - count + 1))
    return is_part or any(held[-n:] == lines[:n] for n in range(1, min(count, len(held)) + 1))


def _proofs(store: Store, session: str, tips: Mapping[str, str]) -> Iterator[Finding]:
    """The proofs of lines that the file still has as they were: redacted they are what is stored."""
    known = cursors.load_cursor(store.beside, session)
    commits = {commit: message for tip in tips.values() for commit, message in own_commits(store, session, tip)}
    proved = [one for one in commits.values() if one.get("Original-HMAC") and known and one.file == known.file]
    if known is None or not proved:
        return
    state = store.state(tips[session])
    agent, path = agents.of(state), Path(known.path)
    make, redact = agent.lines.make, secret_filter.line_cleaner(store.beside, state.rules, agent.protected_keys)
    with opened(path) as file:
        if not cursors.matches_file(known, path, file.file, file.inode, file.size):
            return
        wrong = sum(not _is_proof(store, Reader(file, 0, redact, make), message) for message in proved)
    if wrong:
        many = (
            "the proof of a commit is" if wrong == 1 else f"the proofs of {humanize.format_count(wrong, 'commit')} are"
        )
        what = f"{many} not what its file and this store's key give: they are wrong, or from another key"
        yield Where(session).found("note", "proof", what)


def _is_proof(store: Store, reader: Reader, message: Message) -> bool:
    """Whether a commit proves the lines that stand in the file at its places; also where other lines stand there."""
    lines = [line for extent in message.extents for line in reader.again(extent)]
    is_stored = lines_hash(line.raw for line in lines) == message.get("Lines-SHA256")
    if not is_stored or not any(line.secrets for line in lines):
        return True
    return store.hmac(with_newlines(line.written for line in lines)) == message.get("Original-HMAC")
