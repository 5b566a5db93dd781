"""The form of a commit: who made it and when, what it says of itself, and what it may change in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sessgit.agents.claude.lines import Line
from sessgit.agents.claude.writer.transcript import parsed
from sessgit.check.verifying.turns import Where
from sessgit.history import session_files
from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import EVENTS, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding
from sessgit.model.line_list import whole
from sessgit.store import layout
from sessgit.store.backend import AUTHOR, Commit
from sessgit.store.store import Store

TURNS = ("turn", "cell", "graft")
TAILS = ("end", "compact")
_NOBODY = Session("", "")
_FORMAT = "d00491fd7e5bb6fa28c517a0bb32b8b506539d4d"
"""The id of the file that `format` is: `1` and a newline."""
_SUBJECTS = {
    "start": r"start:.*",
    "compact": r"compact: the conversation so far into a summary",
    "fork": r"fork: .+",
    "edit": r"edit: .+",
    "merge": r"merge: (?:(?:a summary of )?[0-9,]+ turns?|what was said|what was brought back) of .+",
    "repair": r"repair: .+ of .+",
}
_SINGLE = {
    **dict.fromkeys(("Turn", "Prompt", "Model", "Tools"), (*TURNS, "fork")),
    **dict.fromkeys(("Tokens-In", "Tokens-Out", "Tokens-Cache-Read", "Tokens-Cache-Write"), (*TURNS, "fork")),
    **dict.fromkeys(("File", "Final-Newline", "Lines-SHA256", "Redacted"), (*TURNS, *TAILS, "fork")),
    "Cell": ("cell",),
    "Project-Head": ("turn", "cell", "graft"),
    "Fork-Point": ("fork",),
    "Origin": ("turn", "cell", "graft", "merge", "repair"),
    "Original-HMAC": (*TURNS, *TAILS),
    messages.FILE_HASH: (*TURNS, "end", "fork"),
}
_SEVERAL = {"Extent": (*TURNS, *TAILS, "fork"), "Mended": ("repair",), "Tip": ()}
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
_NEEDED = {
    **dict.fromkeys(("graft", "merge"), ("Origin",)), "repair": ("Origin",), "fork": ("Fork-Point",),
    "cell": ("Cell",),
}  # fmt: skip
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
    is_imported = store.repo.entry(seen.commit.tree, f"{layout.KEPT}/{session_files.SOURCE}") is not None
    yield from _carried(seen, is_imported=is_imported)
    is_edit = seen.event == "edit" and len(seen.commit.parents) == 1 and not is_imported
    if is_edit and seen.parent and entries.get(layout.KEPT) != store.repo.tree(seen.parent.tree).get(layout.KEPT):
        yield seen.wrong("tree", f"an edit that no import made changes {layout.KEPT}")
    if seen.event in (*TURNS, "start", "fork") and (seen.state.state != "active" or seen.state.ended):
        yield seen.wrong("state", f"after a commit of the event {seen.event} it says that the session has ended")


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
        expected = _seconds(seen.state.created) if is_ours(seen.state.origin) else above
    elif seen.event in ("edit", "merge", "repair"):
        least = above
    if (expected is not None and time != expected) or time < least:
        yield seen.wrong("date", f"its date is {canonical.rfc3339(time)}, which its lines or parents do not say")


def is_ours(origin: Origin) -> bool:
    """Whether a fork was made here, and not by the agent: then its beginning was written, or it has none."""
    return bool(origin.prefix or not origin.turn)


def tail_lines(data: bytes) -> list[Line]:
    """The lines of a `tail.jsonl`, the last one also where it has no newline."""
    return parsed(whole(data.split(b"\n")))


def check_places(message: Message, lines: Sequence[bytes], where: Where, *, unended: bool) -> Iterator[Finding]:
    """The extents against the bytes of the lines that they speak of, where none of these was redacted: as long, and
    neighbours joined."""
    extents = message.extents
    if extents != messages.join(extents, unended=message.is_unended and bool(extents)):
        yield where.found("wrong", "extent", "two of its extents touch, and are not one")
    if message.get("Redacted") or sum(extent.lines for extent in extents) > len(lines):
        return
    at = len(lines) - sum(extent.lines for extent in extents)
    for extent in extents:
        own = lines[at : at + extent.lines]
        at += extent.lines
        if extent.length != sum(map(len, own)) + len(own) - (unended and at == len(lines)):
            yield where.found("wrong", "extent", f"the extent {extent} is not as long as its lines")
            return


def authored(state: Session) -> Session:
    """What people and programs said, and nothing else."""
    return replace(
        _NOBODY, name=state.name, description=state.description, labels=state.labels, stage=state.stage,
        confidence=state.confidence, unified=state.unified,
    )  # fmt: skip


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
        elif key in _SHAPES:
            odd = [value for value in message.all(key) if not re.fullmatch(_SHAPES[key], value)]
            yield from (seen.wrong("trailer", f"{key} is “{value}”") for value in odd[:1])
    yield from (seen.wrong("trailer", f"it has no trailer {key}") for key in _NEEDED.get(event, ()) if key not in held)
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
    if unknown := sorted(entries.keys() - set(_HELD)):
        shown = canonical.one_line(unknown[0], 60)
        yield seen.where.found("note", "tree", f"sessgit knows no {shown} in a commit; it is left alone")
    if seen.parent is not None and seen.event in (*TURNS, "end") and seen.commit.tree == seen.parent.tree:
        yield seen.wrong("history", f"a commit of the event {seen.event} changes nothing")
    if seen.parent is None or seen.event not in _CHANGES:
        return
    old, may = store.repo.tree(seen.parent.tree), _CHANGES[seen.event]
    if seen.event == "compact" and seen.before is not None and seen.before.id != seen.state.id:
        may = (*may, layout.STATE)  # of a fork that was taken back to before the point at which it left
    for name in _HELD:
        if entries.get(name) != old.get(name) and name not in may:
            yield seen.wrong("tree", f"a commit of the event {seen.event} changes {name}")


def _carried(seen: Seen, *, is_imported: bool) -> Iterator[Finding]:
    """What belongs to the session and changes with none of its turns; what another system said of one that
    `is_imported` counts too."""
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
    if seen.event in TAILS and authored(state) != authored(before):
        yield seen.wrong("state", f"a commit of the event {seen.event} changes what people or programs said")
    if seen.event == "edit" and not is_imported and _kept(state) != _kept(before):
        what = "it says otherwise what no edit changes: its agent, title, times, or whether it has ended"
        yield seen.wrong("state", what)


def _said(state: Session) -> tuple[str, str, bool]:
    return state.agent_version, state.git_branch, state.headless


def _kept(state: Session) -> tuple[str, ...]:
    return state.agent, state.agent_id, state.title, state.created, state.updated, state.ended, state.state


def _seconds(text: str) -> int:
    return int(canonical.seconds(text) or 0)
