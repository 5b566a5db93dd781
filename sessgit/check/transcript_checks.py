"""A session's file, laid out again from its commits: places and hashes of lines, and with `--deep` its turns, which are
cut again, and the client's own file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.cutter import Cutter, Node, line_of
from sessgit.agents.line import Line, Reader, no_redaction, opened
from sessgit.check.stored_forms import REDACTED, Report
from sessgit.errors import DamageError, NewerStoreError, NotFoundError, SessgitError, StoreError
from sessgit.history import reassemble
from sessgit.history.reassemble import LaidOutFile, Piece, Pieces, own_commits, was_continued_without_newline
from sessgit.model import humanize
from sessgit.model.conversation.message import Extent, Message
from sessgit.model.conversation.session import Origin
from sessgit.record import fork_detection
from sessgit.record.source import RecordedTurns
from sessgit.store import recorder_state, secret_filter
from sessgit.store.store import Store, lines_hash, with_newlines


def check(store: Store, session: str, tips: Mapping[str, str], *, deep: bool) -> tuple[Report, int, bool]:
    """Return the findings about the file of a session's own branches, how many hashes of lines were checked, and
    whether the file was cut into turns again."""
    report, checked, is_cut = Report(session), 0, False
    try:
        pieces = reassemble.file_pieces(store, session, dict(tips))
        laid, checked = reassemble.lay_out(pieces.found), pieces.checked
        _check_prefix(store, tips[session], pieces, report)
        _check_places(pieces.found, laid.missing, report)
        if pieces.rewritten:
            report.add("note", "prefix", "rebuilding the beginning of the fork gives different bytes")
        if deep:
            _check_turns(store, tips, laid, report)
            with suppress(SessgitError):  # unreadable objects are reported with their commits
                _check_proofs(store, tips, report)
            is_cut = True
    except NewerStoreError:
        pass  # reported for its branch
    except DamageError as error:
        report.add("damage", "hash", str(error), report.repair_hint)
    except (StoreError, NotFoundError) as error:
        report.add("damage", "object", str(error), report.repair_hint)
    return report, checked, is_cut


# Places of lines


def _check_prefix(store: Store, tip: str, pieces: Pieces, report: Report) -> None:
    """Report a wrong length of the beginning that a fork wrote, if nothing in it was redacted."""
    origin = store.state(tip).origin
    if origin is None or not origin.prefix or pieces.rewritten:
        return
    prefix = next((one for one in pieces.found if one.file == 1 and not one.extent.offset and not one.key), None)
    if prefix is None or any(REDACTED in line for line in prefix.lines):
        return
    if sum(len(line) + 1 for line in prefix.lines) - prefix.unended != origin.prefix:
        report.wrong("fork", "its origin has another length than the beginning that the fork wrote")


def _check_places(pieces: Sequence[Piece], missing: int, report: Report) -> None:
    """Report gaps between lines, and different lines at one place, by their extents."""
    if missing:
        what = f"{humanize.format_count(missing, 'byte')} of its file were never recorded, or its extents are wrong"
        report.add("note", "extent", what)
    placed = sorted(pieces, key=lambda piece: (piece.file, piece.extent.offset, -piece.extent.length))
    overlapping = (
        (one, other) for one, other in pairwise(placed)
        if one.file == other.file and one.extent.end > other.extent.offset
        and not was_continued_without_newline(other, [one])
    )  # fmt: skip
    if not all(_continues(one.lines, other.lines) for one, other in overlapping):
        report.add("note", "extent", "two different lines have the same place in its file, by their extents")


def _continues(first: Sequence[bytes], second: Sequence[bytes]) -> bool:
    """Return whether lines are among others, or begin with the end of these."""
    count = len(second)
    is_part = any(first[at : at + count] == second for at in range(len(first) - count + 1))
    return is_part or any(first[-n:] == second[:n] for n in range(1, min(count, len(first)) + 1))


# The file, cut again


class _SharedTurns(fork_detection.EmptyHistory):
    """The history of a fork of ours, in which only the last shared turn is recorded."""

    def __init__(self, recorded: RecordedTurns, tips: Iterable[str]) -> None:
        turns = (node for tip in tips for node in line_of(recorded.node_at(tip)))
        self._shared = {node.key: recorded.shared(node) for node in turns}

    def is_closed(self, node: Node, line: Line) -> bool:
        shared = self._shared.get(node.key)
        return bool(shared) and line.uuid not in (shared or ())


def _check_turns(store: Store, tips: Mapping[str, str], laid: LaidOutFile, report: Report) -> None:
    """Cut the file into turns again, and report each recorded turn that is not among them. A file does not tell
    everything if bytes of it are missing, if it was cut back into a turn, or if it is one of several."""
    state = store.state(tips[report.branch])
    origin = state.origin or Origin("", 0, "")
    recorded = RecordedTurns(store, dict(tips), agents.of(state), fork_point=origin.turn if origin.prefix else 0)
    nodes = {(node.key, node.commit): (branch, node) for branch, tip in tips.items()
        for node in line_of(recorded.node_at(tip))}  # fmt: skip
    is_unique = len({key for key, _ in nodes}) == len(nodes)
    if laid.missing or laid.glued or laid.file > 1 or not is_unique:
        return
    cutter = Cutter(_SharedTurns(recorded, tips.values()), session=report.branch)
    if reassemble.base(agents.of(state), laid.data) is not None:
        cutter.head = recorded.base(state)
    turns = _cut(cutter, agents.of(state), laid, origin.prefix)
    for branch, node in nodes.values():
        again = turns.get(node.key)
        with suppress(SessgitError):  # unreadable lines are reported with their commits
            before, body = recorded.lines(node)
            if node.number <= origin.turn + bool(origin.cell) or not body[0].uuid:
                continue  # a fork may have left out lines of it, or redaction changed the place that is its key
            if again is None or node.number != again.number or _raw(before, body) != _raw(again.before, again.body):
                what = "cut again, its file has no such turn, or one with other lines"
                report.at(branch, node.number).wrong("cut", what)


def _cut(cutter: Cutter, agent: Agent, laid: LaidOutFile, prefix: int) -> dict[str, Node]:
    """Return the turns of a file by their keys. Its first `prefix` bytes were written by sessgit: lines without an id
    there are not the client's."""
    for piece in laid.pieces:
        at = piece.extent.offset
        is_prefix = at < prefix
        for raw, end in piece.ended:
            line = agent.lines.make(raw, Extent(at, len(raw) + len(end)), no_redaction)
            at = line.extent.end
            if (line.uuid or not is_prefix) and not (line.is_unended and line.data is None):
                cutter.feed(line)
    return {node.key: node for tip in (cutter.head, *cutter.rewound.values()) for node in line_of(tip)}


def _raw(*parts: Sequence[Line]) -> list[list[bytes]]:
    return [[line.raw for line in lines] for lines in parts]


# The client's own file


def _check_proofs(store: Store, tips: Mapping[str, str], report: Report) -> None:
    """Compare the proofs of redacted lines with the client's file, if it still has these lines."""
    session = report.branch
    cursor = recorder_state.load_cursor(store.paths, session)
    commits = {commit: message for tip in tips.values() for commit, message in own_commits(store, session, tip)}
    proved = [one for one in commits.values() if one.get("Original-HMAC") and cursor and one.file == cursor.file]
    if cursor is None or not proved:
        return
    state, path = store.state(tips[session]), Path(cursor.path)
    agent = agents.of(state)
    redact = secret_filter.line_cleaner(store.paths, state.rules, agent.protected_keys)
    with opened(path) as file:
        if not recorder_state.matches_file(cursor, path, file.file, file.inode, file.size):
            return
        reader = Reader(file, agent.lines.make, redact)
        count = sum(not _is_proved(store, reader, message) for message in proved)
    if count:
        subject = "the proof of a commit is" if count == 1 else f"the proofs of {count:,} commits are"
        what = f"{subject} not what its file and this store's key give: they are wrong, or from another key"
        report.add("note", "proof", what)


def _is_proved(store: Store, reader: Reader, message: Message) -> bool:
    """Return whether the file's lines give the proof of a commit, or are other lines by now."""
    lines = [line for extent in message.extents for line in reader.again(extent)]
    is_stored = lines_hash(line.raw for line in lines) == message.get("Lines-SHA256")
    if not is_stored or not any(line.secrets for line in lines):
        return True
    return store.hmac(with_newlines(line.written for line in lines)) == message.get("Original-HMAC")
