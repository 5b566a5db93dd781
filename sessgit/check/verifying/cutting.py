"""A session's file rebuilt and cut into turns again: turns, lines and cells are a function of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.agents.reader import no_redaction
from sessgit.agents.values import History, Node, line_of
from sessgit.check.verifying import metadata
from sessgit.check.verifying.metadata import Sayings
from sessgit.check.verifying.turns import Where
from sessgit.errors import SessgitError
from sessgit.history.reassemble import LaidOutFile, own_commits
from sessgit.model.conversation.message import Extent
from sessgit.model.finding import Finding
from sessgit.record import fork_detection
from sessgit.record.recorded_turns import RecordedTurns
from sessgit.store import layout
from sessgit.store.store import Store


def check(store: Store, session: str, tips: Mapping[str, str], laid: LaidOutFile) -> Iterator[Finding]:
    """What another cut of the same bytes says otherwise than what is recorded.

    What a file does not say is not held against it: of one of which bytes are missing or that was cut back into a turn,
    or of several of one session, where a turn stands, and of a turn that a fork cut, which lines were left out.
    """
    state = store.state(tips[session])
    origin = state.origin
    said = metadata.begun(agents.of(state), store, session, tips.values())
    recorded = RecordedTurns(
        store, dict(tips), agents.of(state), fork_point=origin.turn if origin and origin.prefix else 0
    )
    made = _cut(agents.of(state), session, laid, origin.prefix if origin else 0, said, _Shared(recorded, tips.values()))
    yield from metadata.check(store, session, tips, laid, said)
    apart = _apart(store, session, tips)
    is_whole = not laid.missing and laid.file == 1 and not apart and not laid.glued
    if is_whole:
        yield from _heads(made.head, recorded, tips, session)
    shared = origin.turn if origin else 0
    cut = shared + 1 if origin and origin.cell else 0
    seen: set[Node] = set()
    for branch, tip in tips.items():
        for node in line_of(recorded.node_at(tip)):
            if node in seen:
                continue
            seen.add(node)
            where = Where(branch, node.number)
            again = made.by_key.get(node.key) or made.by_prompt.get(_prompt(recorded, node))
            if again is None and node.key in laid.glued:
                continue
            if again is None:
                yield where.found("wrong", "cut", "cut again, its file has no such turn")
                continue
            if is_whole:
                yield from _place(node, again, where)
            if node.number > shared:
                yield from _lines(recorded, node, again, where, apart, is_whole=is_whole and node.number != cut)


@dataclass
class _Made:
    """The turns of a file that was cut once more, by their keys and by their prompts."""

    head: Node | None
    by_key: dict[str, Node]
    by_prompt: dict[bytes, Node]


class _Shared(fork_detection.EmptyHistory):
    """The history of a fork of ours of which nothing is recorded but the last turn that it shares."""

    def __init__(self, recorded: RecordedTurns, tips: Iterable[str]) -> None:
        turns = (node for tip in tips for node in line_of(recorded.node_at(tip)))
        self._shared = {node.key: recorded.shared(node) for node in turns}

    def is_closed(self, node: Node, line: Line) -> bool:
        shared = self._shared.get(node.key)
        return bool(shared) and line.uuid not in (shared or ())


def _cut(agent: Agent, session: str, laid: LaidOutFile, prefix: int, said: Sayings, history: History) -> _Made:
    cutter = agent.cutter(history, session=session)
    for piece in laid.pieces:
        at = piece.extent.offset
        is_written = piece.file == 1 and at < prefix
        for raw, end in piece.ended:
            line = agent.lines.make(raw, Extent(at, len(raw) + len(end)), no_redaction)
            at = line.extent.end
            if line.is_unended and line.data is None:
                continue
            said.note(line, piece.file)
            if line.uuid or not is_written:
                cutter.feed(line)
    nodes = [node for tip in (cutter.head, *cutter.rewound.values()) for node in line_of(tip)]
    # Where words were redacted, places differ, and so does a key that was made of one.
    by_prompt = {node.body[0].raw: node for node in nodes if node.body and not node.body[0].uuid}
    return _Made(cutter.head, {node.key: node for node in nodes}, by_prompt)


def _prompt(recorded: RecordedTurns, node: Node) -> bytes:
    try:
        return recorded.lines(node)[1][0].raw
    except (SessgitError, IndexError):
        return b""  # told where it was met


def _apart(store: Store, session: str, tips: Mapping[str, str]) -> set[str]:
    """The uuids of the lines of turns that branches have with other bodies: the file was cut back into such a turn and
    went on there, and no file ever held all of these lines."""
    held: dict[str, dict[str, tuple[str, int]]] = {}
    for tip in tips.values() if len(tips) > 1 else ():
        met = set[str]()
        for commit, message in own_commits(store, session, tip):
            number, key = message.number("Turn"), message.get("Prompt")
            if number and key and key not in met:
                met.add(key)
                with suppress(SessgitError, KeyError):  # told where it was met
                    body, _ = store.folder(commit, number)[layout.BODY]
                    held.setdefault(key, {}).setdefault(body, (commit, number))
    several = [at for found in held.values() if len(found) > 1 for at in found.values()]
    return {
        line.uuid for at in several for line in agents.of_commit(store, at[0]).lines.parsed(store.lines(*at).body)
    } - {""}


def _heads(led: Node | None, recorded: RecordedTurns, tips: Mapping[str, str], session: str) -> Iterator[Finding]:
    head = recorded.node_at(tips[session])
    if (head.number if head else 0) != (led.number if led else 0) or (head and led and not _same(head, led)):
        key = led.key if led else "none"
        yield Where(session).found("note", "cut", f"its file ends at another turn than its head: {key}")


def _place(node: Node, again: Node, where: Where) -> Iterator[Finding]:
    mine, theirs = node.parent, again.parent
    if node.number != again.number or not (mine is theirs or (mine and theirs and _same(mine, theirs))):
        yield where.found("wrong", "cut", f"cut again, it is turn {again.number}, or follows another turn")


def _same(one: Node, other: Node) -> bool:
    """Whether two are the same turn; a key that was made of a place is passed over."""
    return one.key == other.key or (bool(other.body) and not other.body[0].uuid)


def _lines(
    recorded: RecordedTurns, node: Node, again: Node, where: Where, apart: Collection[str], *, is_whole: bool
) -> Iterator[Finding]:
    """The lines of a turn; of one of which not all is known, those that were found are among those recorded, and in
    the same order."""
    try:
        before, body = ([line.raw for line in lines] for lines in recorded.lines(node))
    except SessgitError:
        return  # told where it was met
    before_again, body_again = ([line.raw for line in lines] for lines in (again.before, again.body))
    if is_whole and before != before_again:
        yield where.found("wrong", "cut", "cut again, other lines come before its prompt")
    if is_whole and body != body_again:
        yield where.found("wrong", "cut", "cut again, its body has other lines")
    if not is_whole:
        named = [[line.uuid for line in lines if line.uuid] for lines in (again.body, recorded.lines(node)[1])]
        held = iter(named[1])
        if not all(uuid in held for uuid in named[0] if uuid not in apart):
            yield where.found("wrong", "cut", "cut again, its body has lines that are not recorded with it")
