"""A session's file laid out and cut once more: turns, lines and cells are a function of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sessgit.agents.claude.cutter import Cutter, Node, line_of
from sessgit.agents.claude.reader import make, no_redaction
from sessgit.errors import SessgitError
from sessgit.model.finding import Finding
from sessgit.model.message import Extent
from sessgit.model.session import Session
from sessgit.ops.files.laying import Laid
from sessgit.ops.recording import family
from sessgit.ops.recording.history import Recorded
from sessgit.ops.verifying.turns import Where
from sessgit.store.store import Store


def can_be(state: Session, laid: Laid) -> bool:
    """Whether the file says all: one file, of which nothing is missing, cut by rules that this program knows.

    What was cut shorter, brought by another machine or cut by a fork inside of a turn follows from more than that.
    """
    origin = state.origin
    return not laid.missing and laid.file == 1 and not (origin and (origin.cell or (origin.prefix and state.redacted)))


def check(store: Store, session: str, tips: Mapping[str, str], laid: Laid) -> Iterator[Finding]:
    """What another cut of the same bytes says otherwise than what is recorded."""
    state = store.state(tips[session])
    prefix = state.origin.prefix if state.origin else 0
    cutter = Cutter(family.Nothing(), session=session)
    for piece in laid.pieces:
        at = piece.extent.offset
        for raw in piece.lines:
            whole = raw.removesuffix(b"\n")
            line = make(whole, Extent(at, len(raw)), no_redaction)
            at += len(raw)
            if raw.endswith(b"\n") and (line.uuid or line.extent.offset >= prefix):
                cutter.feed(line)
    made = {node.key: node for tip in (cutter.head, *cutter.rewound.values()) for node in line_of(tip)}
    recorded = Recorded(store, dict(tips))
    shared = state.origin.turn if state.origin else 0
    yield from _heads(cutter, recorded, tips, session)
    seen: set[Node] = set()
    for branch, tip in tips.items():
        for node in line_of(recorded.node_at(tip)):
            if node not in seen:
                seen.add(node)
                yield from _turn(recorded, node, made.get(node.key), Where(branch, node.number), node.number <= shared)


def _heads(cutter: Cutter, recorded: Recorded, tips: Mapping[str, str], session: str) -> Iterator[Finding]:
    head = recorded.node_at(tips[session])
    led = cutter.head.key if cutter.head else ""
    if (head.key if head else "") != led:
        yield Where(session).found("note", "cut", f"its file leads to another turn than its head: {led or 'none'}")


def _turn(recorded: Recorded, node: Node, again: Node | None, where: Where, is_shared: bool) -> Iterator[Finding]:
    if again is None:
        yield where.found("wrong", "cut", "cut once more, its file has no such turn")
        return
    mine, theirs = (one.parent.key if one.parent else "" for one in (node, again))
    if node.number != again.number or mine != theirs:
        yield where.found("wrong", "cut", f"cut once more, it is turn {again.number}, or stands on another one")
    if is_shared:
        return
    try:
        before, body = recorded.lines(node)
    except SessgitError:
        return  # told where it was met
    if [line.raw for line in before] != [line.raw for line in again.before]:
        yield where.found("wrong", "cut", "cut once more, other lines stand before its prompt")
    if [line.raw for line in body] != [line.raw for line in again.body]:
        yield where.found("wrong", "cut", "cut once more, its body has other lines")
