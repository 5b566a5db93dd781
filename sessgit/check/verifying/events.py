"""What a commit of each event holds beside what every commit does: a start, a fork, a compaction, a turn, a cell, an
end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessgit.agents.claude import cells
from sessgit.agents.claude.lines import Line
from sessgit.check.verifying.forms import TURNS, Seen, is_ours
from sessgit.check.verifying.turns import Folder
from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding
from sessgit.record.commits import counts
from sessgit.store import layout
from sessgit.store.store import Store

_FIRST = {layout.FORMAT_FILE, layout.STATE, layout.PAD, layout.KEPT}
_REDACTED = "[redacted"


def check_start(store: Store, seen: Seen) -> Iterator[Finding]:
    """The commit before all turns: nothing is counted yet."""
    state = seen.state
    if held := sorted(store.repo.tree(seen.commit.tree).keys() - _FIRST):
        yield seen.wrong("tree", f"a start has {canonical.one_line(held[0], 40)}")
    told = (state.turns, state.messages, state.cells, state.redacted, state.first_prompt)
    if (
        any(told)
        or state.updated not in ("", state.created)
        or any(state.calls.values())
        or any(one.total for one in state.tokens.values())
    ):
        yield seen.wrong("counts", f"{layout.STATE} counts what stands in turns, and there is none yet")
    subject = _subject(f"start: {state.project or state.agent_id}")
    if seen.message.subject != subject and _REDACTED not in seen.message.subject:
        yield seen.wrong("trailer", "the subject of a start does not name its project")


def check_fork(store: Store, seen: Seen, number: int) -> Iterator[Finding]:
    """A fork stands where its origin says, after the turn `number`, and begins with what it takes over."""
    state, origin, before = seen.state, seen.state.origin, seen.before
    if origin is None or seen.parent is None:
        return
    if origin.commit != seen.parent.id:
        yield seen.wrong("fork", "its origin names another commit than the one that it stands on")
    elif origin.turn != number:
        yield seen.wrong("fork", f"its origin says {origin.turn} shared turns, the fork point is turn {number}")
    address = f"{origin.session}@{origin.cell or origin.turn}"
    if seen.message.get("Fork-Point") != address:
        yield seen.wrong("trailer", f"Fork-Point is not {address}")
    is_own = is_ours(origin)
    agents, ours = f"{origin.session} at turn {origin.turn}", f"{state.name or state.id} from {address}"
    subject = _subject(f"fork: {ours if is_own else agents}")
    if seen.message.subject != subject and _REDACTED not in seen.message.subject:
        yield seen.wrong("trailer", "the subject of a fork does not say where it left")
    if is_own and seen.message.all("Extent"):
        yield seen.wrong("trailer", "a fork whose beginning was written here has places of lines")
    if not is_own and layout.LIVE in store.repo.tree(seen.commit.tree):
        yield seen.wrong("tree", f"a fork of the agent's has {layout.LIVE}")
    if state.description or (state.title if is_own else state.name):
        yield seen.wrong("fork", f"it begins with a description, or with a {'title' if is_own else 'name'}")
    if before is not None and state.redacted != before.redacted:
        yield seen.wrong("counts", "rules.redacted is not that of the fork point")
    if before is not None and not is_own and origin.replaced not in ((), _ids(before)):
        yield seen.wrong("fork", "its origin replaces other ids than those of the session that it left")


def check_compaction(store: Store, seen: Seen, made: Folder) -> Iterator[Finding]:
    """A compaction before a prompt has a commit of its own right before the turn, with the lines that stand there."""
    if seen.parent is None or seen.event == "graft":
        return
    own = max(sum(extent.lines for extent in seen.message.extents) - len(made.body), 0)
    above = messages.loads(seen.parent.message)
    if above.get("Event") == "compact":
        entry = store.repo.entry(seen.parent.tree, layout.TAIL)
        told = store.repo.blob(entry[0]).split(b"\n")[:-1] if entry else []
        if not told or [line.raw for line in made.before[-len(told) :]] != told:
            yield seen.wrong("cut", "the compaction before it has other lines than stand before its prompt")
    elif own and any(line.is_boundary for line in made.before[-own:]):
        yield seen.wrong("history", "a compaction stands before its prompt, and no commit before it tells of that")


def check_told(seen: Seen, told: Turn, number: int) -> Iterator[Finding]:
    """The trailers and the subject that the turn's lines decide."""
    for key, value in counts(told):
        if seen.message.get(key) != canonical.one_line(value, 500):
            yield seen.wrong("trailer", f"{key} is “{seen.message.get(key)}”, the lines say “{value}”")
    if seen.event in ("turn", "graft"):
        subject = _subject(f"turn {number}: {canonical.one_line(told.prompt, 200) or '(no text)'}")
        if seen.message.subject != subject:
            yield seen.wrong("trailer", "the subject is not what the prompt says")
    if seen.event == "turn" and seen.message.get("Origin") and told.model:
        yield seen.wrong("trailer", "it was brought by a merge, and is no summary")


def check_secrets(seen: Seen, made: Folder, base: Session) -> Iterator[Finding]:
    """How many secrets the state counts, by those in its commit's lines; of lines without a place nobody counts."""
    more = seen.state.redacted - base.redacted - (seen.message.number("Redacted") or 0)
    placed = sum(extent.lines for extent in seen.message.extents)
    if seen.event in TURNS and (more < 0 or (more and placed == len(made.raw))):
        yield seen.wrong("counts", "rules.redacted is not what its commits say that was replaced")


def check_cell(seen: Seen, told: Turn) -> Iterator[Finding]:
    """The cell that a commit of one names, and its number and operation in the subject."""
    name = seen.message.get("Cell")
    at = next((n for n, one in enumerate(told.cells, start=1) if one.id == name), None)
    if at is None:
        shown = canonical.one_line(name, 40) or "none"
        yield seen.wrong("trailer", f"Cell names {shown}, which the turn does not have")
        return
    if seen.message.subject != _subject(f"cell {seen.message.get('Turn')}.{at}: {told.cells[at - 1].operation}"):
        yield seen.wrong("trailer", "the subject is not what its cell says")


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


# Inside


def _subject(text: str) -> str:
    return messages.dumps(Message(text)).partition("\n")[0]


def _ids(state: Session) -> tuple[str, ...]:
    """The agent's ids that may stand in the lines of a session."""
    return state.agent_id, *(state.origin.replaced if state.origin else ())
