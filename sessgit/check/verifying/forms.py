"""A commit against what its event, its parent and its lines make of it: author, message, date, and the top of its
tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.check.verifying.turns import Folder, Where
from sessgit.history import session_files
from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import EVENTS, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding
from sessgit.model.line_list import file_lines
from sessgit.record.commits import usage_trailers
from sessgit.store import layout
from sessgit.store.backend import AUTHOR, Commit
from sessgit.store.store import Store

TURNS = ("turn", "cell", "graft")
TAILS = ("end", "compact")
_FORMAT = "d00491fd7e5bb6fa28c517a0bb32b8b506539d4d"
"""The id of the file that `format` is: `1` and a newline."""
_USED = ("Model", "Tools", "Tokens-In", "Tokens-Out", "Tokens-Cache-Read", "Tokens-Cache-Write")
_PLACES = ("File", "Extent", "Final-Newline", "Lines-SHA256", messages.FILE_HASH, "Redacted", "Original-HMAC")
_OF_TURNS = ("Session", "Turn", "Event", "Prompt", "Cell", "Origin", *_USED, "Project-Head", *_PLACES)
_TRAILERS = {
    **dict.fromkeys(TURNS, _OF_TURNS),
    **dict.fromkeys(TAILS, ("Session", "Event", *_PLACES)),
    **dict.fromkeys(("start", "edit"), ("Session", "Event")),
    "fork": ("Session", "Event", "Fork-Point", "Turn", "Prompt", *_USED, *_PLACES),
    "merge": ("Session", "Event", "Origin"),
    "repair": ("Session", "Event", "Origin", "Mended"),
}
"""The trailers that a commit of each event can have, in their order."""
_SEVERAL = ("Extent", "Mended")
_NEEDED = {"graft": "Origin", "merge": "Origin", "repair": "Origin", "fork": "Fork-Point", "cell": "Cell"}
_SUBJECTS = {
    "edit": r"edit: .+",
    "merge": r"merge: (?:(?:a summary of )?[0-9,]+ turns?|what was said|what was brought back) of .+",
    "repair": r"repair: .+ of .+",
}
_SHAPES = {
    "Original-HMAC": r"[0-9a-f]{64}",
    "Lines-SHA256": r"[0-9a-f]{64}",
    messages.FILE_HASH: r"[0-9a-f]{64}",
    "Project-Head": r"[0-9a-f]{40}(?:[0-9a-f]{24})? \(.*\)",
    "Redacted": r"[1-9][0-9]{0,14}",
    "File": r"[2-9]|[1-9][0-9]{1,14}",
    "Final-Newline": "no",
    "Origin": r"[a-z0-9][a-z0-9-]{0,63}(?:\.[rm]-[0-9a-f]{8})?(?:@[1-9][0-9]{0,8}(?:-[1-9][0-9]{0,8})?)?",
    "Mended": r"[0-9]+:[0-9]+ .+|and [0-9]+ more",
}
_MENDED = 41
_REDACTED = "[redacted"
_CHANGES = {
    **dict.fromkeys(TURNS, (layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED)),
    **dict.fromkeys(("edit", "merge"), (layout.STATE, *layout.CARRIED)),
    "fork": (layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED),
    "end": (layout.STATE, layout.TAIL),
    "compact": (layout.TAIL,),
    "repair": (),
    "start": (layout.FORMAT_FILE, layout.STATE, *layout.CARRIED),
}
"""What a commit of each event may change at the top of the tree."""
_TOP = (layout.FORMAT_FILE, layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED)


@dataclass(frozen=True, slots=True)
class Seen:
    """A commit, its message and its state; `parent` and `before` are the commit before it and the state there, where
    these can be read."""

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

    def is_imported(self, store: Store) -> bool:
        """Return whether the session came from another system, which says more of it than lines do."""
        return store.repo.entry(self.commit.tree, f"{layout.KEPT}/{session_files.SOURCE}") is not None


def check(store: Store, seen: Seen, entries: Mapping[str, tuple[str, bool]]) -> Iterator[Finding]:
    """Return findings for a commit whatever its lines are; `entries` are those of its tree."""
    if not is_signed(store, seen.commit):
        yield seen.wrong("commit", "its author or committer is not sessgit's, at one time in UTC")
    yield from _values(seen)
    yield from _parents(store, seen)
    yield from _tree(store, seen, entries)


def is_signed(store: Store, commit: Commit) -> bool:
    """Whether a commit has the author and committer of all that are written here, at one time in UTC."""
    name, address = AUTHOR
    return store.repo.signatures(commit.id) == [f"{name} <{address}> {commit.time} +0000".encode()] * 2


def is_ours(origin: Origin) -> bool:
    """Whether a fork was made here, and not by the agent: then its beginning was written, or it has none."""
    return bool(origin.prefix or not origin.turn)


def tail_lines(agent: Agent, data: bytes) -> list[Line]:
    """The lines of a `tail.jsonl`, the last one also where it has no newline."""
    return agent.lines.parsed(file_lines(data.split(b"\n")))


def check_message(seen: Seen, told: Turn | None) -> Iterator[Finding]:
    """Compare the message with the one that the event, the state and the turn's lines make; values that neither gives
    are taken from the message itself."""
    message = seen.message
    if seen.event not in EVENTS:
        return
    derived = {"Session": seen.state.id or message.get("Session")}
    if told is not None:
        derived |= {key: canonical.one_line(value, 500) for key, value in usage_trailers(told)}
    if seen.event == "fork" and seen.state.origin is not None:
        derived["Fork-Point"] = _address(seen.state.origin)
        if ("Turn" in dict(message.trailers)) != bool(seen.state.origin.cell):
            yield seen.wrong("trailer", "a fork names its own turn if and only if it was made at a cell")
    trailers = list[tuple[str, str]]()
    for key in _TRAILERS[seen.event]:
        if key != "Cell" or seen.event == "cell":
            values = message.all(key) if key in _SEVERAL else [derived.get(key, message.get(key))]
            trailers += [(key, value) for value in values if value]
    wanted = Message(_subject(seen, told), tuple(trailers))
    if messages.format_message(wanted) != seen.commit.message:
        both = {*message.trailers} ^ {*trailers}
        wrong = [*(["subject"] if _line(wanted.subject) != message.subject else []), *sorted({key for key, _ in both})]
        what = ", ".join(wrong) or "the order of its trailers, or a line that is not a trailer"
        yield seen.wrong("trailer", f"its message does not match its event and its lines: {what}")
    if told is not None and seen.event == "cell" and not _cell(message, told):
        yield seen.wrong("trailer", "Cell names a cell that the turn does not have")
    if told is not None and seen.event == "turn" and message.get("Origin") and told.model:
        yield seen.wrong("trailer", "it came from a merge, but is not a summary")


def check_time(seen: Seen, told: Turn | None, tail: Sequence[Line]) -> Iterator[Finding]:
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
        expected = _seconds(seen.state.created) if is_ours(seen.state.origin) else above
    elif seen.event in ("edit", "merge", "repair"):
        least = above
    if (expected is not None and time != expected) or time < least:
        yield seen.wrong(
            "date", f"its date is {canonical.rfc3339(time)}, which does not follow from its lines or parents"
        )


def check_compaction(seen: Seen, made: Folder) -> Iterator[Finding]:
    """A compaction before a prompt has a commit of its own right before the turn."""
    if seen.parent is None or seen.event == "graft":
        return
    own = max(sum(extent.lines for extent in seen.message.extents) - len(made.body), 0)
    is_told = messages.parse_message(seen.parent.message).get("Event") == "compact"
    if own and not is_told and any(line.is_boundary for line in made.before[-own:]):
        yield seen.wrong("history", "a compaction precedes its prompt, but no earlier commit records it")


# Inside


def _subject(seen: Seen, told: Turn | None) -> str:
    """The subject that the event, the state and the lines give, else the one that is there, where it can be one."""
    message, state, event, origin = seen.message, seen.state, seen.event, seen.state.origin
    said, number = message.subject, message.get("Turn")
    if told is not None and event in ("turn", "graft"):
        return f"turn {number}: {canonical.one_line(told.prompt, 200) or '(no text)'}"
    if told is not None and event == "cell" and (at := _cell(message, told)):
        return f"cell {number}.{at}: {told.cells[at - 1].operation}"
    if event == "compact":
        return "compact: the conversation so far into a summary"
    if event == "end":
        return f"end: {state.turns} turn{'' if state.turns == 1 else 's'}"
    if event == "edit" and len(seen.commit.parents) == 2:
        return f"edit: joined with {seen.commit.parents[1][:12]}"
    if event == "start" and _REDACTED not in said:
        return f"start: {state.project or state.agent_id}"
    if event == "fork" and origin is not None and _REDACTED not in said:
        ours = f"{state.name or state.id} from {_address(origin)}"
        return f"fork: {ours if is_ours(origin) else f'{origin.session} at turn {origin.turn}'}"
    return said if re.fullmatch(_SUBJECTS.get(event, r".*"), said) else f"{event}: "


def _line(subject: str) -> str:
    return messages.format_message(Message(subject)).partition("\n")[0]


def _address(origin: Origin) -> str:
    return f"{origin.session}@{origin.cell or origin.turn}"


def _cell(message: Message, told: Turn) -> int:
    """The ordinal of the cell that a commit of one names, 0 for none."""
    return next((n for n, one in enumerate(told.cells, start=1) if one.id == message.get("Cell")), 0)


def _values(seen: Seen) -> Iterator[Finding]:
    """What stands in the message that no line gives."""
    held = dict(seen.message.trailers)
    for key, shape in _SHAPES.items():
        odd = [value for value in seen.message.all(key) if not re.fullmatch(shape, value)]
        yield from (seen.wrong("trailer", f"{key} is “{value}”") for value in odd[:1])
    if (needed := _NEEDED.get(seen.event, "Event")) not in held:
        yield seen.wrong("trailer", f"it has no trailer {needed}")
    if "Original-HMAC" in held and "Redacted" not in held:
        yield seen.wrong("trailer", "it has proofs of original lines, but says that none was redacted")
    if len(seen.message.all("Mended")) > _MENDED:
        yield seen.wrong("trailer", f"it has more than {_MENDED} trailers Mended")
    if "File" in held and "Extent" not in held:
        yield seen.wrong("trailer", "it names a file, but no extent in it")
    if seen.event == "fork" and seen.state.origin is None:
        yield seen.wrong("fork", "the state of a fork names no origin")
    elif seen.event == "fork" and "Extent" in held and seen.state.origin and is_ours(seen.state.origin):
        yield seen.wrong("trailer", "a fork whose beginning sessgit wrote has extents")


def _parents(store: Store, seen: Seen) -> Iterator[Finding]:
    above, event = seen.commit.parents, seen.event
    if len(above) > (2 if event in ("merge", "edit") else 1) or (event == "merge" and len(above) == 1):
        yield seen.wrong("history", f"a commit of the event {event} has {len(above)} parents")
    for parent in above[1:]:
        if store.repo.read_problem(parent):
            yield seen.where.lost(store, parent, "what was merged here")


def _tree(store: Store, seen: Seen, entries: Mapping[str, tuple[str, bool]]) -> Iterator[Finding]:
    if entries.get(layout.FORMAT_FILE, ("", False))[0] != _FORMAT:
        yield seen.wrong("tree", f"{layout.FORMAT_FILE} is not 1 and a newline")
    if unknown := sorted(entries.keys() - set(_TOP)):
        shown = canonical.one_line(unknown[0], 60)
        yield seen.where.found("note", "tree", f"unknown entry {shown} in a commit; it is ignored")
    if seen.parent is not None and seen.event in (*TURNS, "end") and seen.commit.tree == seen.parent.tree:
        yield seen.wrong("history", f"a commit of the event {seen.event} changes nothing")
    if seen.event not in _CHANGES or (seen.parent is None and seen.event != "start"):
        return
    old = store.repo.tree(seen.parent.tree) if seen.parent is not None else {}
    may = _CHANGES[seen.event]
    if seen.event == "compact" and seen.before is not None and seen.before.id != seen.state.id:
        may = (*may, layout.STATE)  # of a fork that was taken back to before the point at which it left
    if seen.event == "edit" and len(seen.commit.parents) == 1 and not seen.is_imported(store):
        may = (layout.STATE, layout.PAD)
    for name in _TOP:
        if entries.get(name) != old.get(name) and name not in may:
            yield seen.wrong("tree", f"a commit of the event {seen.event} changes {name}")
    if seen.event == "fork" and seen.state.origin and not is_ours(seen.state.origin) and layout.LIVE in entries:
        yield seen.wrong("tree", f"a fork of the agent's has {layout.LIVE}")


def _seconds(text: str) -> int:
    return int(canonical.seconds(text) or 0)
