"""The session that holds what was mended: a fork at the last turn that needed nothing, with the mended turns behind it.

It is written as a file for the client and recorded out of that, so it is what any session is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents import new_file
from sessgit.agents.values import Mend
from sessgit.branch import sidecars
from sessgit.branch.sidecars import WrittenFile
from sessgit.check.repairing.line_mends import Plan
from sessgit.errors import SessgitError
from sessgit.history import pad_lists, session_files
from sessgit.history.client_files import transcript_place
from sessgit.model import canonical, humanize, unified_state
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.record import commits
from sessgit.record.context import RecordContext
from sessgit.record.recording import record
from sessgit.record.source import RecordRules, TranscriptSource
from sessgit.store import layout, locks, operations, refs
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_MOST = 40
"""So many mends are named in the commit."""
_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class Made:
    """The repaired session, its file, and what lies beside that."""

    state: Session
    commit: str
    transcript: Path
    files: tuple[WrittenFile, ...] = ()


def make(world: RecordContext, plan: Plan, new_id: str) -> Made:
    """Makes the session: its branch, then the side files, then the transcript, then the mended turns out of that."""
    store, lines, now = world.store, plan.lines, world.now()
    world.check_on(lines.state.project)
    target = _target(world, lines.state, new_id)
    beginning, more = agents.of(plan.lines.state).writer.continued(plan.beginning(), plan.rest, new_id)
    base = _base(store, plan)
    state = _first_state(world, plan, base, new_id, beginning.data, target)
    first = _fork(store, plan, base, state, int(now)) if base else commits.commit_start(store, state)
    tip = _repair(store, plan, first, state, int(now))
    ref = layout.head_ref(new_id)
    told = f"{new_id[:8]}: {_summary(plan)} of {layout.short_name(lines.branch)}"
    begun = operations.perform_operation(store, "repair", told, [Move(ref, None, tip)], now)
    data = beginning.data + more
    try:
        files = _beside(world, plan, state, target)
        new_file.write(target, data)
        with locks.session_lock(store.beside, new_id, _WAIT):
            source = TranscriptSource(target, new_id, world.config, final=True)
            record(
                store, world.index, source, RecordRules(world.rules.granularity, bool(lines.state.rules.get("redact")))
            )
    except SessgitError as error:
        hint = f"To remove the incomplete one: `sessgit undo {begun.id}`"
        raise type(error)(str(error), hint) from error
    head = refs.read(store.path, ref) or tip
    operations.perform_operation(
        store, "repair", told, [Move(ref, None, head)], now, {str(target): data}, held={ref: head}, completes=begun.id
    )
    world.index.sync(new_id)
    return Made(store.state(head), head, target, tuple(files))


def _summary(plan: Plan) -> str:
    parts = [humanize.format_count(len(plan.mends), "mend")] if plan.mends else []
    return " and ".join([*parts, "what can be read"] if plan.lines.lost or not parts else parts)


def _target(world: RecordContext, state: Session, new_id: str) -> Path:
    place = transcript_place(world.config, state, world.store.beside)
    if place is None:
        raise SessgitError(
            f"the folder of {state.id} is unknown",
            f"Choose one: `sessgit restore {layout.short_name(state.id)} --project DIR`",
        )
    return place.with_name(f"{new_id}.jsonl")


def _base(store: Store, plan: Plan) -> str:
    """The commit to stand on: the last one of the last shared turn, or the first of the history; ``""`` where the
    history cannot be read."""
    found = last = ""
    try:
        for commit in store.repo.first_parents(plan.lines.commit):
            message = store.message(commit.id)
            number = message.number("Turn")
            if not found and plan.shared and number == plan.shared and message.get("Prompt"):
                found = commit.id
            last = commit.id
    except SessgitError:
        return ""
    return found or last


def _first_state(world: RecordContext, plan: Plan, base: str, new_id: str, data: bytes, target: Path) -> Session:
    """The state of the turns that are shared, as a fork begins."""
    lines, moment = plan.lines, canonical.rfc3339(world.now())
    if base:
        held = world.store.state(base)
        origin = Origin(
            lines.branch, plan.shared, base, prefix=len(data),
            prefix_sha256=hashlib.sha256(data).hexdigest() if data else "",
        )  # fmt: skip
        latest = max(held.updated, moment) if plan.shared else moment
        held = replace(
            held, unified=unified_state.inherited_state(held.unified), origin=origin, created=moment, updated=latest
        )
    else:
        held = Session(new_id, new_id, project=lines.state.project, created=lines.state.created)
    return replace(
        held, id=new_id, agent_id=new_id, rules={**lines.state.rules}, transcript=str(target), name="", description="",
        title="", state="active", ended="", headless=False,
    )  # fmt: skip


def _fork(store: Store, plan: Plan, base: str, state: Session, time: int) -> str:
    """The first commit, as that of any fork."""
    address = f"{plan.lines.branch}@{plan.shared}"
    changes = {
        layout.TAIL: None, **pad_lists.inherited_changes(store, base),
        **session_files.inherited_changes(store, plan.lines.branch),
    }  # fmt: skip
    trailers = (("Session", state.id), ("Event", "fork"), ("Fork-Point", address))
    message = Message(f"fork: {state.id} from {address}", trailers)
    return store.write_commit(base, changes, state, message, [base], time)


def _repair(store: Store, plan: Plan, on: str, state: Session, time: int) -> str:
    """The commit that says what the turns after it are mended of, and how."""
    lines = plan.lines
    trailers = [
        ("Session", state.id),
        ("Event", "repair"),
        ("Origin", f"{lines.branch}@{plan.shared + 1}-{lines.last}"),
    ]
    if plan.shared >= lines.last:
        trailers[-1] = ("Origin", lines.branch)
    trailers += [("Mended", told(mend)) for mend in plan.mends[:_MOST]]
    if len(plan.mends) > _MOST:
        trailers.append(("Mended", f"and {len(plan.mends) - _MOST} more"))
    subject = f"repair: {_summary(plan)} of {layout.short_name(lines.branch)}"
    return store.write_commit(on, {}, state, Message(subject, tuple(trailers)), [on], max(time, store.commit(on).time))


def told(mend: Mend) -> str:
    """A mend on one line: where, what was wrong, what was done."""
    return f"{mend.turn}:{mend.line} {mend.kind}: {mend.what}"


def _beside(world: RecordContext, plan: Plan, state: Session, target: Path) -> Sequence[WrittenFile]:
    """What lies beside the turns that were read, under the new session's id."""
    lines = plan.lines
    try:
        files = sidecars.sidecars_as_of(world.store, lines.commit, lines.last)
    except SessgitError:
        return ()  # of a damaged session as much as its lines
    agent = agents.of(lines.state)
    place = agent.sidecars.place(world.config, target.parent, state.id, lines.state.agent_version)
    return sidecars.write_sidecars(
        agent, sidecars.rename_session(agent, files, state.id, lines.state.agent_version), place
    )
