"""A session's file, laid out again from its commits: places and hashes of lines, and with `--deep` its turns, which are
cut again, and the client's own file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import inf
from pathlib import Path

from sessgit import agents
from sessgit.agents.cutter import Cutter
from sessgit.agents.facts import begin as begin_facts
from sessgit.agents.line import Line
from sessgit.agents.reader import Reader, no_redaction, opened
from sessgit.agents.values import Node, line_of
from sessgit.check.verifying.folders import REDACTED
from sessgit.check.verifying.report import Report
from sessgit.errors import DamageError, NewerStoreError, NotFoundError, SessgitError, StoreError
from sessgit.history import reassemble
from sessgit.history.reassemble import LaidOutFile, Piece, Pieces, own_commits, was_continued_without_newline
from sessgit.model import canonical, humanize
from sessgit.model.conversation.message import FILE_HASH, Extent, Message
from sessgit.model.conversation.session import Session
from sessgit.record import fork_detection
from sessgit.record.file_hash import INITIAL_HASH, next_hash
from sessgit.record.recorded_turns import RecordedTurns, matches_cursor
from sessgit.store import recorder_state, secret_filter
from sessgit.store.store import Store, lines_hash, with_newlines

_FACTS = {
    "title": "title", "agent_version": "version", "git_branch": "git_branch", "project": "project", "created": "born",
    "headless": "headless",
}  # fmt: skip
"""The attribute of a state, and that of the facts that lines give."""
_FACTS_OF_SEVERAL_FILES = ("title", "agent_version", "git_branch", "headless")
"""Those compared for a session with several files: the others come from the first file, which is gone."""
_EDITS = ("edit", "merge", "fork", "repair")


def check(store: Store, session: str, tips: Mapping[str, str], *, deep: bool) -> tuple[Report, int, bool]:
    """Return the findings about the file of a session's own branches, how many hashes of lines were checked, and
    whether the file was cut into turns again."""
    report, checked, is_cut = Report(session), 0, False
    try:
        pieces = reassemble.file_pieces(store, session, dict(tips))
        laid, checked = reassemble.lay_out(pieces.found), pieces.checked
        _check_cursor(store, tips, pieces.found, report)
        _check_prefix(store, tips[session], pieces, report)
        _check_places(pieces.found, laid.missing, report)
        if pieces.rewritten:
            report.add("note", "prefix", "rebuilding the beginning of the fork gives different bytes")
        if deep:
            _CutCheck(store, tips, laid, report).run(pieces.hashes)
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


def _check_cursor(store: Store, tips: Mapping[str, str], pieces: Sequence[Piece], report: Report) -> None:
    """Report a cursor from which a recorder would continue after lines that are neither recorded nor pending."""
    cursor = recorder_state.load_cursor(store.paths, report.branch)
    if cursor is None or cursor.current is None or not matches_cursor(store, report.branch, tips, cursor):
        return
    ends = [piece.extent.end for piece in pieces if piece.file == cursor.file]
    if not ends and any(piece.file < cursor.file for piece in pieces):
        return  # an earlier file had all its lines, as after a restore with secrets redacted
    end = max((*ends, *(extent.end for extent in cursor.pending)), default=0)
    if cursor.offset > end:
        distance = humanize.format_count(cursor.offset - end, "byte")
        what = f"its cursor is {distance} after the last recorded or pending line"
        hint = "Delete the cursor, then run `sessgit import FILE` to read its transcript from the beginning."
        report.add("note", "cursor", what, hint)


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


class _CutCheck:
    """Compares the turns and the facts of a file that is cut again with the recorded ones."""

    def __init__(self, store: Store, tips: Mapping[str, str], laid: LaidOutFile, report: Report) -> None:
        self.store, self.session, self.tips, self.laid, self.report = store, report.branch, tips, laid, report
        self.state = store.state(tips[self.session])
        self.agent, self.origin = agents.of(self.state), self.state.origin
        fork_point = self.origin.turn if self.origin and self.origin.prefix else 0
        self.recorded = RecordedTurns(store, dict(tips), self.agent, fork_point=fork_point)
        self.values: dict[str, set[object]] = {name: set() for name in _FACTS}
        """By attribute of a state, each value that it had after any of the lines."""

    def run(self, hashes: Sequence[tuple[int, int, str]]) -> None:
        nodes = self._cut()
        with suppress(SessgitError):  # unreadable objects are reported with their commits
            self._check_facts()
        # A file does not tell everything if bytes of it are missing, it was cut back into a turn, or is one of several.
        recorded = {(node.key, node.commit): (branch, node) for branch, tip in self.tips.items()
            for node in line_of(self.recorded.node_at(tip))}  # fmt: skip
        is_whole = not self.laid.missing and self.laid.file == 1 and not self.laid.glued
        if not is_whole or len({key for key, _ in recorded}) < len(recorded):
            return
        self._check_file_hashes(hashes)
        shared, is_cut = (self.origin.turn, bool(self.origin.cell)) if self.origin else (0, False)
        for branch, node in recorded.values():
            again = nodes.get(node.key)
            with suppress(SessgitError):  # unreadable lines are reported with their commits
                before, body = self.recorded.lines(node)
                if node.number <= shared + is_cut or not body[0].uuid:
                    continue  # a fork may have left out lines of it, or redaction changed the place that is its key
                if again is None or node.number != again.number or _raw(before, body) != _raw(again.before, again.body):
                    what = "cut again, its file has no such turn, or one with other lines"
                    self.report.at(branch, node.number).wrong("cut", what)

    def _cut(self) -> dict[str, Node]:
        """Return the turns of the file by their keys, and note the values that its lines give to the state."""
        cutter = Cutter(_SharedTurns(self.recorded, self.tips.values()), session=self.session)
        prefix, last = self.origin.prefix if self.origin else 0, 1
        self.facts = begin_facts()
        for piece in self.laid.pieces:
            at = piece.extent.offset
            is_prefix = piece.file == 1 and at < prefix
            if piece.file != last:
                self.facts, last = begin_facts(self.facts.apply(Session("", ""))), piece.file
            for raw, end in piece.ended:
                line = self.agent.lines.make(raw, Extent(at, len(raw) + len(end)), no_redaction)
                at = line.extent.end
                if line.is_unended and line.data is None:
                    continue
                self.facts.note(line)
                for name, fact in _FACTS.items():
                    self.values[name].add(getattr(self.facts, fact))
                self.values["title"] |= {canonical.one_line(line.title[0], 200)} if line.title else set()
                if line.uuid or not is_prefix:
                    cutter.feed(line)
        return {node.key: node for tip in (cutter.head, *cutter.rewound.values()) for node in line_of(tip)}

    def _check_file_hashes(self, hashes: Sequence[tuple[int, int, str]]) -> None:
        """Report a wrong File-Hash, up to the first turn without one: a purge replaced lines there, and what other
        branches hold of the file's later hashes counts the former lines."""
        by_end = _hashes_by_end(self.laid)
        purged = min((end for _, end, stored in hashes if not stored), default=inf)
        if any(stored and stored != by_end.get(end, stored) and end < purged for _, end, stored in hashes):
            self.report.wrong("hash", f"a {FILE_HASH} is not the hash of the file up to its lines")

    # What lines say about the session

    def _check_facts(self) -> None:
        """Report values of the head's state that neither a line nor an edit gave, if all lines that were read for it
        are recorded."""
        if self.laid.missing or not self._is_up_to_date():
            return
        head, edited = self.state, list(self._edited_states())
        *_, (first, _) = own_commits(self.store, self.session, self.tips[self.session])
        self.values["title"] |= {state.name for state in edited}
        self.values["created"].add(self.store.state(first).created)  # a program may have made it earlier
        self.values["headless"] = {self.facts.headless}
        is_one_file = self.laid.file == 1
        wrong = [
            name
            for name in (self.values if is_one_file else _FACTS_OF_SEVERAL_FILES)
            if getattr(head, name) not in self.values[name] | {getattr(state, name) for state in edited}
            and (is_one_file or name == "headless" or getattr(head, name))
        ]
        if wrong:
            what = f"its {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not what its lines say"
            self.report.add("wrong" if is_one_file else "note", "state", what)

    def _edited_states(self) -> Iterator[Session]:
        """Yield the states of the session's edits, and those that it began with."""
        is_repaired = False
        for tip in self.tips.values():
            for commit, message in own_commits(self.store, self.session, tip):
                is_repaired = is_repaired or message.get("Event") == "repair"
                if message.get("Event") in _EDITS or (is_repaired and message.get("Event") == "start"):
                    yield self.store.state(commit)

    def _is_up_to_date(self) -> bool:
        """Return whether every line that was read for the state at the head is recorded."""
        commits = own_commits(self.store, self.session, self.tips[self.session])
        last = next((event for _, one in commits if (event := one.get("Event")) not in ("edit", "merge")), "")
        if last == "end":
            return True
        cursor = recorder_state.load_cursor(self.store.paths, self.session)
        if last not in ("turn", "cell", "graft") or cursor is None or cursor.pending:
            return False
        return matches_cursor(self.store, self.session, self.tips, cursor)


def _raw(*parts: Sequence[Line]) -> list[list[bytes]]:
    return [[line.raw for line in lines] for lines in parts]


def _hashes_by_end(laid: LaidOutFile) -> dict[int, str]:
    """Return the hash of the file up to each place at which a line is known to end; none if two lines have one
    place."""
    hashes, position, digest = dict[int, str](), 0, INITIAL_HASH
    for piece in laid.pieces:
        extent, at = piece.extent, piece.extent.offset
        is_complete = len(piece.lines) == extent.lines
        if at < position and is_complete:
            return {}
        is_exact = is_complete and sum(map(len, piece.lines)) + len(piece.lines) - piece.unended == extent.length
        for line in piece.lines:
            digest, at = next_hash(digest, line), at + len(line) + 1
            if is_exact:
                hashes[at] = digest.hex()
        hashes[extent.end] = digest.hex()
        position = max(position, extent.end)
    return hashes


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
        reader = Reader(file, 0, redact, agent.lines.make)
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
