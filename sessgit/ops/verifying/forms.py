"""The form of a commit: who made it and when, what it says of itself, and what it may change in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sessgit.agents.claude import cells
from sessgit.agents.claude.lines import Line
from sessgit.agents.claude.writing.transcript import parsed
from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import EVENTS, Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding
from sessgit.ops.verifying.turns import Where
from sessgit.store import layout
from sessgit.store.backend import AUTHOR, Commit
from sessgit.store.store import Store

TURNS = ("turn", "cell", "graft")
TAILS = ("end", "compact")
_FORMAT = "d00491fd7e5bb6fa28c517a0bb32b8b506539d4d"
"""The id of the file that `format` is: `1` and a newline."""
_SUBJECTS = {
    "start": r"start:.*",
    "compact": r"compact: the conversation so far into a summary",
    "fork": r"fork: .+",
    "edit": r"edit: .+",
    "merge": r"merge: .+",
    "repair": r"repair: .+",
}
_SINGLE = {
    **dict.fromkeys(("Turn", "Prompt", "Model", "Tools"), (*TURNS, "fork")),
    **dict.fromkeys(("Tokens-In", "Tokens-Out", "Tokens-Cache-Read", "Tokens-Cache-Write"), (*TURNS, "fork")),
    **dict.fromkeys(("File", "Lines-SHA256", "Redacted"), (*TURNS, *TAILS, "fork")),
    "Cell": ("cell",),
    "Project-Head": ("turn", "cell", "graft"),
    "Fork-Point": ("fork",),
    "Origin": ("turn", "graft", "merge", "repair"),
    "Original-HMAC": (*TURNS, *TAILS),
}
_SEVERAL = {"Extent": (*TURNS, *TAILS, "fork"), "Mended": ("repair",), "Tip": ()}
_SHAPES = {
    "Original-HMAC": r"[0-9a-f]{64}",
    "Lines-SHA256": r"[0-9a-f]{64}",
    "Project-Head": r"[0-9a-f]{40}(?:[0-9a-f]{24})? \(.*\)",
    "Redacted": r"[1-9][0-9]{0,14}",
    "File": r"[2-9]|[1-9][0-9]{1,14}",
}
_MENDED = 41
_CHANGES = {
    **dict.fromkeys(TURNS, (layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED)),
    **dict.fromkeys(("edit", "merge"), (layout.STATE, *layout.CARRIED)),
    "fork": (layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED),
    "end": (layout.STATE, layout.TAIL),
    "compact": (layout.TAIL,),
    "repair": (),
}
"""What a commit of each event may change at the top of the tree."""
_HELD = (layout.FORMAT_FILE, layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED)


@dataclass(frozen=True, slots=True)
class Seen:
    """A commit, what it says, and the state in it; `parent` and `before` are those of the commit that it stands on,
    where that can be read."""

    commit: Commit
    message: Message
    state: Session
    parent: Commit | None
    before: Session | None
    where: Where

    @property
    def event(self) -> str:
        return self.message.get("Event")

    def wrong(self, kind: str, what: str) -> Finding:
        return self.where.found("wrong", kind, what)


def check(store: Store, seen: Seen, entries: Mapping[str, tuple[str, bool]]) -> Iterator[Finding]:
    """What of the commit is not as its event demands; `entries` are those of its tree."""
    yield from _written(store, seen)
    yield from _trailers(seen)
    yield from _parents(store, seen)
    yield from _tree(store, seen, entries)
    yield from _carried(seen)


def is_signed(store: Store, commit: Commit) -> bool:
    """Whether a commit has the author and committer of all that are written here, at one time in UTC."""
    name, address = AUTHOR
    return store.repo.signatures(commit.id) == [f"{name} <{address}> {commit.time} +0000".encode()] * 2


def check_times(seen: Seen, told: Turn | None, tail: Sequence[Line]) -> Iterator[Finding]:
    """The date, which follows from lines wherever nobody's clock made it."""
    if seen.parent is None and seen.event != "start":
        return
    above = seen.parent.time if seen.parent else 0
    time, expected, least = seen.commit.time, None, 0
    if seen.event in TURNS and told is not None:
        expected = _seconds(told.time) or above
    elif seen.event == "start":
        expected = _seconds(seen.state.created)
    elif seen.event == "compact":
        boundary = next((line for line in tail if line.is_boundary), None)
        expected = (_seconds(boundary.text("timestamp")) if boundary else 0) or above
    elif seen.event == "end":
        expected = _seconds(seen.state.ended) or above
    elif seen.event == "fork" and seen.state.origin is not None:
        is_ours = seen.state.origin.prefix or not seen.state.origin.turn
        expected = _seconds(seen.state.created) if is_ours else above
    elif seen.event in ("edit", "merge", "repair"):
        least = above
    if (expected is not None and time != expected) or time < least:
        yield seen.wrong("date", f"its date is {canonical.rfc3339(time)}, which its lines or parents do not say")


def check_end(seen: Seen, tail: Sequence[Line], *, is_cut_short: bool | None) -> Iterator[Finding]:
    """The state of a session that ended: how, and when."""
    last = max((cells.time_of(line) for line in tail), default="")
    if is_cut_short is not None and seen.state.state != ("interrupted" if is_cut_short else "ended"):
        yield seen.wrong("state", f"it says that the session is {seen.state.state}, which its last turn does not")
    if seen.state.ended != max(seen.state.updated, last):
        yield seen.wrong("state", "metadata.ended_at is not the latest time of its turns and its last lines")
    turns = f"{seen.state.turns} turn{'' if seen.state.turns == 1 else 's'}"
    if seen.message.subject != f"end: {turns}":
        yield seen.wrong("trailer", f"its subject is not “end: {turns}”")


def check_cell(seen: Seen, told: Turn) -> Iterator[Finding]:
    """The cell that a commit of one names, and its number and operation in the subject."""
    name = seen.message.get("Cell")
    at = next((n for n, one in enumerate(told.cells, start=1) if one.id == name), None)
    if at is None:
        shown = canonical.one_line(name, 40) or "none"
        yield seen.wrong("trailer", f"Cell names {shown}, which the turn does not have")
        return
    subject = f"cell {seen.message.get('Turn')}.{at}: {told.cells[at - 1].operation}"
    if seen.message.subject != messages.dumps(Message(subject)).partition("\n")[0]:
        yield seen.wrong("trailer", "the subject is not what its cell says")


def tail_lines(data: bytes) -> list[Line]:
    """The lines of a `tail.jsonl`, a torn one too."""
    *whole, torn = data.split(b"\n")
    return parsed([*whole, torn] if torn else whole)


def check_places(message: Message, lines: Sequence[bytes], where: Where, *, torn: bool = False) -> Iterator[Finding]:
    """The extents against the bytes of the lines that they speak of, where none of these was redacted: as long, and
    neighbours joined."""
    extents = message.extents
    if extents != messages.join(extents):
        yield where.found("wrong", "extent", "two of its extents touch, and are not one")
    if message.get("Redacted") or sum(extent.lines for extent in extents) > len(lines):
        return
    at = len(lines) - sum(extent.lines for extent in extents)
    for extent in extents:
        own = lines[at : at + extent.lines]
        at += extent.lines
        if extent.length != sum(map(len, own)) + len(own) - (torn and at == len(lines)):
            yield where.found("wrong", "extent", f"the extent {extent} is not as long as its lines")
            return


# Inside


def _written(store: Store, seen: Seen) -> Iterator[Finding]:
    if not is_signed(store, seen.commit):
        yield seen.wrong("commit", "its author or committer is not the one of every commit here, at one time in UTC")
    if messages.dumps(seen.message) != seen.commit.message:
        yield seen.wrong("trailer", "the message is not a subject, an empty line and trailers, as they are written")
    shape = _SUBJECTS.get(seen.event)
    if shape and not re.fullmatch(shape, seen.message.subject):
        yield seen.wrong("trailer", f"the subject is not that of a commit of the event {seen.event}")


def _trailers(seen: Seen) -> Iterator[Finding]:
    message, event = seen.message, seen.event
    if event not in EVENTS:
        return
    held = [key for key, _ in message.trailers]
    for key, events in {**_SINGLE, **_SEVERAL}.items():
        if key in held and event not in events:
            yield seen.wrong("trailer", f"a commit of the event {event} has a trailer {key}")
        elif key in _SINGLE and held.count(key) > 1:
            yield seen.wrong("trailer", f"it has the trailer {key} several times")
        elif key in held and key in _SHAPES and not re.fullmatch(_SHAPES[key], message.get(key)):
            yield seen.wrong("trailer", f"{key} is “{message.get(key)}”")
    needed = {"graft": ("Origin",), "repair": ("Origin",), "fork": ("Fork-Point",), "cell": ("Cell",)}.get(event, ())
    yield from (seen.wrong("trailer", f"it has no trailer {key}") for key in needed if key not in held)
    if "Original-HMAC" in held and "Redacted" not in held:
        yield seen.wrong("trailer", "it proves original lines, and says that none was redacted")
    if held.count("Mended") > _MENDED:
        yield seen.wrong("trailer", f"it has more than {_MENDED} trailers Mended")
    if "File" in held and "Extent" not in held:
        yield seen.wrong("trailer", "it names a file, and no place in it")
    origin = seen.state.origin
    if event == "fork" and origin is None:
        yield seen.wrong("fork", "the state of a fork names no origin")
    if event == "fork" and origin is not None and ("Turn" in held) != bool(origin.cell):
        yield seen.wrong("trailer", "a fork names a turn of its own exactly where it was made at a cell")


def _parents(store: Store, seen: Seen) -> Iterator[Finding]:
    above, event = seen.commit.parents, seen.event
    if len(above) > 1 and event not in ("merge", "edit"):
        yield seen.wrong("history", f"a commit of the event {event} has several parents")
    elif len(above) > 2 or (event == "merge" and len(above) == 1):
        yield seen.wrong("history", f"a commit of the event {event} has {len(above)} parents")
    elif len(above) == 2 and event == "edit" and seen.message.subject != f"edit: joined with {above[1][:12]}":
        yield seen.wrong("trailer", "its subject does not name the side that it joins")
    for parent in above[1:]:
        if store.repo.trouble(parent):
            yield seen.where.lost(store, parent, "what was merged here")


def _tree(store: Store, seen: Seen, entries: Mapping[str, tuple[str, bool]]) -> Iterator[Finding]:
    if entries.get(layout.FORMAT_FILE, ("", False))[0] != _FORMAT:
        yield seen.wrong("tree", f"{layout.FORMAT_FILE} is not 1 and a newline")
    if seen.parent is None or seen.event not in _CHANGES:
        return
    old = store.repo.tree(seen.parent.tree)
    for name in _HELD:
        if entries.get(name) != old.get(name) and name not in _CHANGES[seen.event]:
            yield seen.wrong("tree", f"a commit of the event {seen.event} changes {name}")


def _carried(seen: Seen) -> Iterator[Finding]:
    """What belongs to the session and changes with none of its turns."""
    before, state = seen.before, seen.state
    if before is None or before.id != state.id or len(seen.commit.parents) != 1:
        return
    if state.rules != before.rules:
        yield seen.wrong("state", "the versions of the rules are others than in the commit before")
    if before.origin is not None and state.origin != before.origin:
        yield seen.wrong("fork", "its origin is another one than in the commit before")
    if seen.event not in TURNS and seen.event != "fork" and state.redacted != before.redacted:
        yield seen.wrong("counts", "rules.redacted changed, and no turn did")
    if seen.event == "edit" and _said(state) != _said(before):
        yield seen.wrong("state", "it says otherwise what only lines say: version, branch, or whether it is headless")


def _said(state: Session) -> tuple[str, str, bool]:
    return state.agent_version, state.git_branch, state.headless


def _seconds(text: str) -> int:
    return int(canonical.seconds(text) or 0)
