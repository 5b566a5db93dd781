"""The commits that a recording makes: turns, cells, and those that are no turn.

Each function writes objects and returns the id of a commit that no ref points to yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from sessgit.agents import Agent
from sessgit.agents.cutter import Node, folder_files
from sessgit.agents.line import Line
from sessgit.model import canonical, json_strings
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Extent, Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell, Gist, Turn
from sessgit.model.line_list import Bytes, file_of_lines
from sessgit.record.source import Head
from sessgit.store import layout
from sessgit.store.objects import Entry, object_id
from sessgit.store.store import Store, lines_hash, with_newlines

Changes = Mapping[str, Entry | None]
Trailers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class TurnContent:
    """What a turn's commit holds: its lines, and its sidecar files by path in its folder."""

    agent: Agent
    before: Sequence[Line]
    body: Sequence[Line]
    subagents: Mapping[str, Bytes]
    """The new bytes of subagents' files."""
    results: Mapping[str, Entry]
    """The entries of large tool results, which are written one by one: all of them may be more than memory holds."""
    complete: bool
    """False for a commit of one cell, after which the same turn goes on."""
    project_head: Head
    event: str
    origin: str
    """The address from which a merge brought the turn."""
    provenance: Trailers
    """Where the lines are in the file, from `provenance_trailers`."""
    rules: Mapping[str, int]
    """The versions of the rules by which the session is recorded, as its state names them."""

    @cached_property
    def turn(self) -> Turn:
        """What the lines say."""
        return self.agent.cells.describe(self.body)

    @cached_property
    def stored(self) -> dict[str, Bytes]:
        """The files that the lines become."""
        cut = self.rules.get("cut", json_strings.RULES_VERSION)
        return folder_files(self.agent, self.before, self.body, self.turn, cut)


def commit_turn(store: Store, on: str, node: Node, content: TurnContent, state: Session, changes: Changes) -> str:
    """Write the commit of a turn, or of a turn so far, on the commit `on`."""
    turn = content.turn
    # A file that the agent has deleted since it was recorded stays.
    kept = store.side_files(store.folder(node.commit, node.number)) if node.commit else {}
    tree = store.write_folder({**content.stored, **content.subagents}, {**kept, **content.results})
    message = _turn_message(node, turn, content, state.id)
    time = _seconds(turn.time) or store.commit(on).time
    every = {**changes, layout.turn_folder(node.number): (tree, True), layout.TAIL: None}
    return store.write_commit(on, every, state, message, [on], time)


def turn_gist(content: TurnContent, *, whole: bool) -> Gist:
    """Return the turn's gist; with its subagents only if all of their lines are in memory: in the turn's first commit
    (`whole`), with files that begin in this turn."""
    files = [data for name, data in content.subagents.items() if name.endswith(".jsonl")]
    if not whole or any(map(content.agent.sidecars.goes_on, files)):
        return content.turn.gist
    return replace(content.turn.gist, subagents=content.agent.sidecars.gist(content.body, files))


def commit_start(store: Store, state: Session, files: Changes = MappingProxyType({})) -> str:
    """Write the first commit of a session that comes from no other. It has no turn yet; `files` are its parent's."""
    where = state.project or state.agent_id
    message = Message(f"start: {where}", (("Session", state.id), ("Event", "start")))
    return store.write_commit(None, files, state, message, [], _seconds(state.created))


def commit_compaction(store: Store, on: str, lines: Sequence[Line], state: Session, provenance: Trailers) -> str:
    """Write a commit for a compaction before a prompt, so that the history shows it; `state` is that of the commit
    `on`, as this session's."""
    moment = next((line.text("timestamp") for line in lines if line.is_boundary), "")
    trailers = (("Session", state.id), ("Event", "compact"), *provenance)
    message = Message("compact: the conversation so far into a summary", trailers)
    return _commit_tail(store, on, lines, state, message, moment)


def commit_end(store: Store, on: str, lines: Sequence[Line], state: Session, provenance: Trailers) -> str:
    """Write the commit that ends the session, with the lines after the last turn's body."""
    turns = f"{state.turns} turn{'' if state.turns == 1 else 's'}"
    message = Message(f"end: {turns}", (("Session", state.id), ("Event", "end"), *provenance))
    return _commit_tail(store, on, lines, state, message, state.ended)


def _commit_tail(store: Store, on: str, lines: Sequence[Line], state: Session, message: Message, moment: str) -> str:
    """Write a commit with these lines behind the last turn's body."""
    data, time = _tail_bytes(lines), _seconds(moment) or store.commit(on).time
    changes = {layout.TAIL: (store.repo.write_blob(data), False) if data else None}
    return store.write_commit(on, changes, state, message, [on], time)


def _tail_bytes(lines: Sequence[Line]) -> Bytes:
    """Return the lines as `tail.jsonl` holds them; a last line without a newline has none there either."""
    return file_of_lines([line.raw for line in lines], unended=bool(lines) and lines[-1].is_unended)


def has_tail(store: Store, on: str, lines: Sequence[Line]) -> bool:
    """Return whether a commit has exactly these lines after its last turn's body."""
    data, entry = _tail_bytes(lines), store.entry(on, layout.TAIL)
    return (entry[0] if entry else "") == (object_id("blob", data) if data else "")


def turn_subject(number: int, prompt: str) -> str:
    """Return the subject of the commit of a turn with this prompt."""
    return canonical.one_line(
        f"turn {number}: {canonical.one_line(prompt, 200) or '(no text)'}", messages.SUBJECT_WIDTH
    )


def _turn_message(node: Node, turn: Turn, content: TurnContent, session: str) -> Message:
    subject = turn_subject(node.number, turn.prompt)
    cell = None
    if not content.complete:
        ordinal, cell = _finished_cell(content)
        subject = f"cell {node.number}.{ordinal}: {cell.operation if cell else ''}"
    head = content.project_head
    trailers = (
        ("Session", session),
        ("Turn", str(node.number)),
        ("Event", content.event if content.complete else "cell"),
        ("Prompt", node.key),
        ("Cell", cell.id if cell else ""),
        ("Origin", content.origin),
        *messages.usage_trailers(turn),
        ("Project-Head", head if isinstance(head, str) else head()),
        *content.provenance,
    )
    return Message(subject, trailers)


def _finished_cell(content: TurnContent) -> tuple[int, Cell | None]:
    """Return the ordinal of the cell whose result is the body's last line, and the cell, or 0 and None."""
    last, cells = len(content.body), enumerate(content.turn.cells, start=1)
    return max(((n, cell) for n, cell in cells if result_line(cell) == last), default=(0, None), key=lambda one: one[0])


def commit_points(agent: Agent, body: Sequence[Line], recorded: int) -> list[tuple[int, bool]]:
    """Return the lengths of a body to commit one after another if each cell is a commit, and whether each is the whole
    turn; `recorded` is the number of its lines that are recorded."""
    ends = sorted({end for cell in agent.cells.describe(body).cells if (end := result_line(cell)) > recorded})
    return [(n, False) for n in ends] + ([] if ends and ends[-1] == len(body) else [(len(body), True)])


def event_and_origin(message: Message) -> tuple[str, str]:
    """Return the event and the origin for another commit of a turn, given the message of its last one."""
    return "graft" if message.get("Event") == "graft" else "turn", message.get("Origin")


def result_line(cell: Cell) -> int:
    """Return the number of the line with the result of a tool or a program's cell, 0 if there is none (yet)."""
    has_result = cell.type == "tool" or cell.program
    return cell.lines[-1] if has_result and cell.ok is not None else 0


def provenance_trailers(store: Store, lines: Sequence[Line], file: int, file_hash: str = "") -> Trailers:
    """Return the trailers that say where the lines are in which file, the hash of what is stored, and a proof of the
    original bytes if they differ.

    Only lines whose place in the file is known count.
    """
    lines = [line for line in lines if line.extent.length]
    if not lines:
        return []
    out = [("File", str(file))] if file > 1 else []
    out += extent_trailers([line.extent for line in lines], unended=lines[-1].is_unended)
    out.append(("Lines-SHA256", lines_hash(line.raw for line in lines)))
    if file_hash:
        out.append(("File-Hash", file_hash))
    secrets = sum(line.secrets for line in lines)
    if secrets:
        out.append(("Redacted", str(secrets)))
    if secrets and all(line.written != line.raw for line in lines if line.secrets):
        out.append(("Original-HMAC", store.hmac(with_newlines(line.written for line in lines))))
    return out


def extent_trailers(extents: Iterable[Extent], *, unended: bool) -> list[tuple[str, str]]:
    """Return the trailers that say where lines are in the file; `unended` is of the last one."""
    trailers = [("Extent", str(extent)) for extent in messages.join_extents(extents, unended=unended)]
    return [*trailers, ("Final-Newline", "no")] if unended else trailers


def ended_state(state: Session, tail: Sequence[Line], *, cut_short: bool) -> Session:
    """Return the state at the end of a session; `cut_short` says that its last turn was interrupted."""
    last = max((line.time for line in tail), default="")
    return replace(state, state="interrupted" if cut_short else "ended", ended=max(state.updated, last))


def _seconds(text: str) -> int:
    return int(canonical.seconds(text) or 0)


# The hash of an agent's file, line by line
#
# It tells a file that is recorded later from what it was. It begins with 32 zero bytes; each line, redacted and without
# its newline, makes SHA-256 of the hash so far and the line. So a recorder that continues from its cursor needs no line
# before that.

_INITIAL_HASH = bytes(32)


class FileHash:
    """The hash of the lines added so far, and of the file up to each of them."""

    def __init__(self, start: bytes = _INITIAL_HASH, end: int = 0) -> None:
        self._start = self._last = start
        self._end = end
        self._places: dict[int, bytes] = {}

    @classmethod
    def loads(cls, text: str, end: int) -> FileHash:
        """Return what goes on from the hash of the file up to `end`; if a cursor has none, each hash is ``""``."""
        try:
            start = bytes.fromhex(text)
        except ValueError:
            start = b""
        return cls(start if len(start) == len(_INITIAL_HASH) else b"", end)

    def dumps(self) -> str:
        """Return the hash of all lines, for a cursor."""
        return self._last.hex()

    def add(self, line: Line) -> None:
        """Take the next line of the file."""
        if self._last:
            self._last = self._places[line.extent.offset] = _next_hash(self._last, line.raw)

    def at(self, line: Line) -> str:
        """Return the hash of the file up to the end of a line, or ``""`` for one that was not added."""
        if not line.extent.length:
            return ""
        # The newline of the last line that was read before may have come since.
        before = self._start if self._end in (line.extent.end, line.extent.end - 1) else b""
        return self._places.get(line.extent.offset, before).hex()

    def furthest(self, runs: Iterable[Sequence[Extent]]) -> str:
        """Return the hash of the file up to the end of the last of the lines at these places."""
        last = max((extent.offset for run in runs for extent in run), default=-1)
        return self._places[last].hex() if last in self._places else ""


def hash_lines(lines: Iterable[bytes]) -> str:
    """Return the hash of a file of these lines."""
    digest = _INITIAL_HASH
    for line in lines:
        digest = _next_hash(digest, line)
    return digest.hex()


def _next_hash(before: bytes, line: bytes) -> bytes:
    """Return the hash of a file up to a line, given the hash up to the line before it."""
    digest = hashlib.sha256(before)
    digest.update(line)
    return digest.digest()
