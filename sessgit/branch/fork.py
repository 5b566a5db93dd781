"""Forks a session: a new session that begins with turns of another one, and its files for the client."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from sessgit import agents
from sessgit.agents import Agent, agent_files
from sessgit.agents.base import SidecarPlace
from sessgit.agents.cutter import folder_files
from sessgit.agents.line import Line, Reader, opened
from sessgit.agents.values import SideFile, Written
from sessgit.branch import sidecars
from sessgit.branch.sidecars import WrittenFile
from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import pad_lists, session_files, turn_log
from sessgit.history.client_files import check_folder, client_place, transcript_place
from sessgit.history.reassemble import lines_of_turns
from sessgit.history.resolve import PROMPT, ForkPoint
from sessgit.model import canonical, humanize
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.frozen import frozen
from sessgit.store import layout, operations, refs, secret_filter
from sessgit.store.context import Homes
from sessgit.store.operations import FileWrites, Move, Operation
from sessgit.store.store import Store, with_newlines


@frozen
class ForkPlan:
    """What the new session shall be: its id, its name or ``""``, the time, and the clients' folders if its
    files are to be written; `project` is the folder to continue it in, if that is another one, and `whole_pad` says
    whether the whole scratchpad goes along."""

    id: str
    name: str
    now: float
    homes: Homes | None
    project: str = ""
    whole_pad: bool = False


@frozen
class ForkResult:
    """What `fork_session` made. `missing` counts redactions in the written files, `dropped_calls` tool
    calls of a running turn that had no result yet; `files` are the side files."""

    state: Session
    commit: str
    transcript: Path | None
    operation: Operation
    missing: int
    dropped_calls: int
    files: tuple[WrittenFile, ...]


def fork_session(store: Store, head: Session, point: ForkPoint, plan: ForkPlan) -> ForkResult:
    """Make a session that begins with the turns of `point`; `head` is the state of the session that is forked.

    The branch is made before the files, and the transcript last: after a kill, `restore` can write what is missing,
    and a transcript that exists has all its sidecar files.
    """
    check_folder(plan.project)
    store.repo.begin_write()  # the name must not have a value that is being purged
    try:
        with store.still_there():
            return _make_fork(store, head, point, plan)
    finally:
        store.repo.release()


def _make_fork(store: Store, head: Session, point: ForkPoint, plan: ForkPlan) -> ForkResult:
    if plan.homes is not None:
        head = replace(head, transcript=str(transcript_place(plan.homes, head, store.paths) or head.transcript))
    if plan.name:
        name, _ = secret_filter.text_cleaner(store.paths, head.rules)(plan.name.encode())
        plan = replace(plan, name=name.decode())
    cut = _cut_after_cell(store, point) if point.cell else None
    stored, written, missing = _beginning(store, head, point, cut, plan)
    target, base = _transcript_target(head, plan), point.base if cut else point.commit
    cell = f"{point.turn}.{cut.ordinal}" if cut else ""
    origin = Origin(
        point.session, point.turn - bool(cut), base, prefix=written.size, prefix_sha256=stored.sha256, cell=cell
    )
    # The branch may have been moved to another project since the turns were recorded, or share them with a parent.
    project = plan.project or store.state(_present_tip(store, point)).project
    state = replace(
        _first_state(store, base, cut, plan, project),
        unified=sessions.inherited_state(store.state(point.pad or base).unified),
        origin=origin,
        transcript=str(target or ""),
    )
    commit = _commit_fork(store, point, cut, state, plan)
    hashes, side_files, place = dict[str, str](), list[SideFile](), None
    if target is not None:
        side_files, place = _fork_sidecars(store, head, state, commit, plan, target)
        new = {path: file for file in side_files if (path := place(file)) and not os.path.lexists(path)}
        hashes = {str(target): written.sha256}
        hashes |= {str(path): sidecars.bytes_hash(file.data) for path, file in new.items()}
    summary = f"{plan.id[:8]}: fork of {point.session[:8]}@{cell or point.turn}"
    moves = [Move(layout.head_ref(plan.id), None, commit)]
    operation = operations.perform_operation(store, "fork", summary, moves, plan.now, wrote=FileWrites(hashes))
    files = list[WrittenFile]()
    if target is not None and place is not None:
        try:
            files = sidecars.write_sidecars(store, head, side_files, place)
            agent_files.write(target, *written.parts)
        except SessgitError as error:
            hint = f"The fork exists without its files. Write them: `sessgit restore {plan.id[:8]}`"
            raise type(error)(str(error), hint) from error
    missing += sum(file.redacted for file in files if file.outcome == sidecars.WRITTEN)
    return ForkResult(state, commit, target, operation, missing, written.dropped_calls, tuple(files))


def _beginning(
    store: Store, head: Session, point: ForkPoint, cut: _CutTurn | None, plan: ForkPlan
) -> tuple[Written, Written, int]:
    """Return the beginning of the fork's transcript, made from the lines as they are stored, and again with the
    original text of redacted ones, if the agent's file has it; and the number of redactions that are left."""
    writer, last = agents.of(head).writer, [cut.lines] if cut else []
    turns = lines_of_turns(store, point.commit, head, range(1, point.turn + 1 - bool(cut)))
    if not store.state(point.commit).redacted:
        written = writer.resumable(chain(turns, last), plan.id, plan.name)
        return written, written, 0
    stored, commits = list(turns), dict[int | None, str]()
    for commit, message in store.history(point.commit):
        commits.setdefault(message.number("Turn"), commit)
    original, missing = list[list[bytes]](), 0
    for number, lines in enumerate(stored, start=1):
        commit = commits.get(number, "")
        redacted = store.message(commit).number("Redacted") or 0 if commit else 0
        own = _original_lines(store, head, commit, lines) if redacted else None
        missing += redacted if own is None else 0
        original.append(lines if own is None else own)
    return (
        writer.resumable([*stored, *last], plan.id, plan.name),
        writer.resumable([*original, *last], plan.id, plan.name),
        missing,
    )


@frozen
class _CutTurn:
    """A turn up to a cell, with all results of the message that the cell belongs to; cell 0 is the prompt."""

    agent: Agent
    ordinal: int
    key: str
    before: list[Line]
    body: list[Line]

    @property
    def turn(self) -> Turn:
        return self.agent.cells.describe(self.body)

    @property
    def lines(self) -> list[bytes]:
        return [line.raw for line in (*self.before, *self.body)]


def _cut_after_cell(store: Store, point: ForkPoint) -> _CutTurn:
    stored = store.lines(point.commit, point.turn)
    agent = agents.of_commit(store, point.commit)
    before, body = agent.parsed(stored.before), agent.parsed(stored.body)
    cells = agent.cells.describe(body).cells
    ordinal = next((n for n, cell in enumerate(cells, start=1) if point.cell in (cell.id, str(n))), 0)
    if not ordinal and point.cell != PROMPT:
        raise NotFoundError(
            f"turn {point.turn} has no cell {point.cell}; it has {humanize.format_count(len(cells), 'cell')}",
            f"`sessgit cells {point.session}` lists them.",
        )
    if ordinal:
        end = agent.writer.cell_end(body, cells, cells[ordinal - 1])
    elif cells:
        end = cells[0].lines[0] - 1
    else:  # an answer that no model gave is no cell
        prompt = agent.cells.describe(body).prompt
        end = next(n for n in range(1, len(body) + 1) if agent.cells.describe(body[:n]).prompt == prompt)
    return _CutTurn(agent, ordinal, store.message(point.commit).get("Prompt"), before, body[:end])


def _present_tip(store: Store, point: ForkPoint) -> str:
    return (refs.session_head(store.path, point.session) or ("", point.commit))[1]


def _first_state(store: Store, base: str, cut: _CutTurn | None, plan: ForkPlan, project: str) -> Session:
    """Return the state of the shared turns, with the labels as of then and the fork's own name and id."""
    state = store.state(base)
    if cut is not None:
        state = sessions.after_turn(state, cut.turn, state.turns + 1)
    moment = canonical.rfc3339(plan.now)
    return replace(
        state,
        id=plan.id,
        agent_id=plan.id,
        project=project,
        name=plan.name,
        description="",
        title="",
        state="active",
        created=moment,
        updated=max(state.updated, moment),  # a turn of a machine whose clock is ahead is later
        ended="",
        headless=False,
    )


def _commit_fork(store: Store, point: ForkPoint, cut: _CutTurn | None, state: Session, plan: ForkPlan) -> str:
    """Write the first commit of the fork, with the cut turn if there is one; return it."""
    assert state.origin is not None
    pad = pad_lists.inherited_changes(store, point.pad or state.origin.commit, whole=plan.whole_pad)
    kept = session_files.inherited_changes(store, point.session)
    changes: pad_lists.Changes = {layout.TAIL: None, **pad, **kept}
    address = f"{point.session}@{state.origin.cell or state.origin.turn}"
    trailers = [("Session", state.id), ("Event", "fork"), ("Fork-Point", address)]
    if cut is not None:
        named = sidecars.entries_named_in(store, point.commit, point.turn, cut.lines)
        tree = store.write_folder(
            folder_files(cut.agent, cut.before, cut.body, cut.turn, state.rules.get("cut", 0)), named
        )
        changes[layout.turn_folder(point.turn)] = (tree, True)
        if added := turn_log.program_lines(store, _present_tip(store, point), cut.key):
            end = cut.body[-1].time
            data = b"".join(line.raw + b"\n" for line in cut.agent.parsed(added) if line.time < end)
            if data:
                changes[f"{layout.PAD}/{turn_log.program_file_name(cut.key)}"] = (store.repo.write_blob(data), False)
        trailers += [("Turn", str(point.turn)), ("Prompt", cut.key), *messages.usage_trailers(cut.turn)]
    message = Message(f"fork: {state.name or state.id} from {address}", tuple(trailers))
    time = int(plan.now)
    return store.write_commit(state.origin.commit, changes, state, message, [state.origin.commit], time)


def _transcript_target(head: Session, plan: ForkPlan) -> Path | None:
    """Return the path of the new transcript: next to the parent's, else in the client's folder for the project."""
    if plan.homes is None:
        return None
    home = agents.of(head).home
    if plan.project:
        return home.new_place(plan.homes.of(head), plan.id, plan.project)
    place = client_place(plan.homes, head, head.transcript, head.project)
    if place is None:
        hint = "Name a folder with `--project DIR`, or fork without a file with `--no-restore`."
        raise SessgitError(f"the folder of {head.id} is unknown", hint)
    return home.new_place(plan.homes.of(head), plan.id, head.project, place)


def _fork_sidecars(
    store: Store, head: Session, state: Session, commit: str, plan: ForkPlan, target: Path
) -> tuple[list[SideFile], SidecarPlace]:
    """Return the sidecar files of the fork's turns under the fork's id, with the words that the agent's own files still
    have, and their places."""
    assert plan.homes is not None
    files: Iterable[SideFile] = sidecars.sidecars_as_of(store, commit, state.turns)
    parent = client_place(plan.homes, head, head.transcript, head.project)
    if parent is not None:
        own = replace(head, agent_version=state.agent_version)
        files = sidecars.unredacted_sidecars(store, head, files, sidecars.place_of(own, plan.homes, parent))
    renamed = sidecars.rename_session(agents.of(head), files, plan.id, state.agent_version)
    return renamed, sidecars.place_of(state, plan.homes, target)


def _original_lines(store: Store, head: Session, commit: str, lines: list[bytes]) -> list[bytes] | None:
    """Return the lines as the agent wrote them, if its file still has them and the proof matches; else None."""
    message = store.message(commit)
    if message.get("Session") != head.id or not head.transcript:
        return None
    try:
        with opened(Path(head.transcript)) as file:
            reader = Reader(file, agents.of(head).lines.make)
            original = [line for extent in message.extents for line in reader.again(extent)]
    except SessgitError:
        return None
    if store.hmac(with_newlines(line.written for line in original)) != message.get("Original-HMAC"):
        return None
    without_purged = secret_filter.line_cleaner(store.paths, {}, agents.of(head).protected_keys)
    return [*lines[: len(lines) - len(original)], *(without_purged(line.written)[0] for line in original)]
