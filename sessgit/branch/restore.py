"""A session back as the files that the agent wrote, byte for byte, save what was redacted.

The sidecar files are written first and the transcript last: the client, `resume` and `restore_session` look for that.
So after a kill a transcript that exists is whole and has its sidecar files, and doing it again completes the rest. No
existing file is overwritten. A file of a session that was continued elsewhere gets the lines of later turns after its
last one. Lines are known by their uuids: a file may hold the words that the store has replaced, and so bytes, lengths
and places differ.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from sessgit import agents
from sessgit.agents import Agent, agent_files
from sessgit.agents.cutter import Cutter, Node, line_of
from sessgit.agents.line import Base, Line, Opened, Reader, opened
from sessgit.agents.values import PLAN
from sessgit.branch import file_append, sidecars
from sessgit.branch.sidecars import LEFT, WrittenFile
from sessgit.errors import ConflictError, DamageError, NotFoundError, SessgitError, StoreError
from sessgit.history import client_files, reassemble
from sessgit.history.client_files import LocalPath
from sessgit.history.reassemble import LaidOutFile, Piece
from sessgit.model import ids
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes, LineFile, file_lines, split_lines
from sessgit.model.progress import Progress, counted
from sessgit.record import catch_up, commits, edit_commit, fork_detection
from sessgit.record.edit_commit import StateEdit
from sessgit.record.source import RecordedTurns
from sessgit.store import recorder_state, settings
from sessgit.store.context import Context, Homes
from sessgit.store.index import Branch, Index
from sessgit.store.layout import StorePaths
from sessgit.store.objects import chunks
from sessgit.store.private_files import path_exists, write_private
from sessgit.store.recorder_state import AppendIntent
from sessgit.store.store import Store


@frozen
class RebuiltFile:
    """An agent's file as the store has it, and its pieces, `laid` out in order.

    `missing` counts bytes of the file that were never recorded, as far as the store can tell; `redacted` the
    redactions in it; `checked` the hashes that were recomputed and found right. `rewritten` says that
    a fork's beginning could be written anew, though not to the same bytes. `same` says whether it has the hash of the
    whole file that was stored when it was recorded, None where there is none.
    """

    file: LineFile
    laid: LaidOutFile
    redacted: int
    missing: int
    checked: int
    rewritten: bool
    same: bool | None

    @property
    def data(self) -> bytes:
        """Return its bytes."""
        return bytes(self.file)

    @property
    def exact(self) -> bool:
        """Return whether these are the bytes that the agent wrote."""
        return bool(self.same) and not (self.redacted or self.missing or self.rewritten)


@frozen
class RestoreResult:
    """What `restore_session` did: `already` says that the transcript was there with the same lines.

    `files` are the side files; `named` says that a line with the session's name follows what the client wrote.
    """

    path: Path
    restored: RebuiltFile
    already: bool = False
    files: tuple[WrittenFile, ...] = ()
    named: bool = False
    project: str = ""
    """The folder from which the client finds it."""
    moved: bool = False
    """Whether the transcript lay in the client's folder for a project that is gone, and was moved from there."""
    appended: int = 0
    """How many turns the transcript lacked, and got."""
    same: bool = True
    """Whether it holds the bytes that the store has, or is another file with the same turns, which was there."""
    stands_for: str = ""
    """The folder of another machine that is `project` here from now on."""
    bases: tuple[Path, ...] = ()
    """The transcripts from which it goes on, and which were restored for it."""


@frozen
class RestoreTarget:
    """The folder to restore a session for, the index to update, and the time in seconds since 1970."""

    project: str
    index: Index
    now: float


def restore_session(
    store: Store, session: str, homes: Homes, into: RestoreTarget | None = None, *, local_path: LocalPath = str
) -> RestoreResult:
    """Write the session's files where the agent looks for them, never over a file with other contents. A transcript
    that ends at an earlier point of the session gets the turns that it lacks.

    `homes` are the clients' folders. With `into` they are written for the agent started in that folder, and the session
    is of that project from then on; but if its own is one of another machine, which continues there, a setting says
    that it is this folder here. `local_path` maps folders of other machines to those of this one.
    """
    project = into.project if into else ""
    recorded = store.state(_head_tip(store, session))
    state = client_files.localize_state(recorded, local_path)
    target = client_files.transcript_target(homes, state, project, store.paths)
    moved = into is not None and client_files.move_transcript(homes, state, target)
    client_files.check_no_copies(homes, state, target)
    restored = rebuild_file(store, session)
    is_there, rest = _read_beyond(target, restored.file)
    appended = append_missing_turns(store, session, homes, target) if is_there and rest is None else 0
    name = _name_line(state, restored.file)
    there = _existing_file(store, state, restored.laid, target)
    stands_for = ""
    if into is not None and client_files.is_elsewhere(homes, recorded, local_path):
        state = replace(state, project=project)
        if local_path(recorded.project) != project:  # the folder of another machine is this project here from now on
            settings.change_setting(store.paths, f"project.map.{recorded.project}", project)
            stands_for = recorded.project
    elif into is not None:
        state = _move_project(store, session, into, target)
    files, bases = _write_sidecars(store, state, homes, target), tuple[Path, ...]()
    named, same = there or (len(name), True)
    if there is None:
        restored, bases = _with_bases(store, state, restored, homes, local_path)
        agent_files.write(target, *restored.file.pieces(), name)
    else:  # a line that an earlier restoring added counts as missing until it is recorded
        restored = replace(restored, missing=max(0, restored.missing - named))
    return RestoreResult(
        target, restored, there is not None, tuple(files), bool(named), state.project, moved, appended, same,
        stands_for, bases,
    )  # fmt: skip


def _with_bases(
    store: Store, state: Session, restored: RebuiltFile, homes: Homes, local_path: LocalPath
) -> tuple[RebuiltFile, tuple[Path, ...]]:
    """Return the file as the client can resume it, and the transcripts that were restored for it.

    A file that goes on from others stays as it is if these can be the bytes that the client expects. Otherwise it gets
    the turns of the others, too.
    """
    agent, origin = agents.of(state), state.origin
    base = reassemble.base(agent, restored.file)
    if base is None or origin is None:
        return restored, ()
    missing = _missing_bases(store, state, base, homes)
    if missing is not None:
        return restored, tuple(
            restore_session(store, session, homes, local_path=local_path).path for session in missing
        )
    tip = _head_tip(store, state.id)
    turns = reassemble.lines_of_turns(store, tip, state, range(1, state.turns + 1))
    written = agent.writer.resumable([*turns, store.tail_lines(tip)[:-1]], state.agent_id, state.name)
    redacted = restored.redacted + reassemble.count_secrets(store, origin.commit, origin.turn)
    file = LineFile(written.data.split(b"\n")[:-1])
    return replace(restored, file=file, redacted=redacted, rewritten=True, same=False), ()


def _missing_bases(store: Store, state: Session, base: Base | None, homes: Homes) -> list[str] | None:
    """Return the sessions from which a file goes on and whose transcripts have to be restored for it, the oldest first;
    None if one of them cannot be the bytes that it was."""
    agent, missing, passed = agents.of(state), list[str](), {state.agent_id}
    while base is not None:
        session = ids.session_id(base.agent_id)
        path = next(iter(agent.home.copies(homes.of(state), base.agent_id)), None)
        try:
            if path is None:
                missing.insert(0, session)
                data = rebuild_file(store, session).data
            else:
                data = path.read_bytes()
        except (OSError, SessgitError):
            return None
        shared = data[: base.length]
        last = agent.lines.make(shared.removesuffix(b"\n").rpartition(b"\n")[2])
        if not shared.endswith(b"\n") or last.ordinal != base.ordinal - 1 or base.agent_id in passed:
            return None
        passed.add(base.agent_id)
        base = agent.lines.make(data.partition(b"\n")[0]).base
    return missing


def restore_transcript_to(store: Store, session: str, path: Path) -> RestoreResult:
    """Write only the session's transcript, to `path`; never over a file with other contents."""
    if not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", "Create it first, or name another place.")
    restored = rebuild_file(store, session)
    is_there, rest = _read_beyond(path, restored.file)
    if not is_there:
        agent_files.write(path, *restored.file.pieces())
    elif rest != b"":
        raise _other_file_error(path) if rest is None else _gone_on_error(path)
    return RestoreResult(path, restored, is_there)


def _existing_file(store: Store, state: Session, laid: LaidOutFile, target: Path) -> tuple[int, bool] | None:
    """Return how many bytes of lines with a name follow all that is recorded in the existing file, and whether it has
    the same bytes, or is another file of the session, with other words or more lines in it; None if there is no file.

    Raises ConflictError where it holds anything else.
    """
    is_there, rest = _read_beyond(target, laid.data)
    if not is_there:
        return None
    if rest is not None and (not rest or agents.of(state).is_titles(rest, state.agent_id)):
        return len(rest), True
    if rest is not None:
        raise _gone_on_error(target)
    comparison = _compare_file(store, state.id, laid, target)
    if comparison is None:
        raise _other_file_error(target)
    if comparison.torn:
        raise _torn_file_error(target)
    if comparison.ahead or comparison.missing:
        raise _gone_on_error(target)
    return 0, False


def _read_beyond(path: Path, data: LineFile) -> tuple[bool, bytes | None]:
    """Return whether there is a file, and what follows these bytes in it, None if it does not begin with them."""
    try:
        with opened(path) as source:
            for piece in chunks(data.pieces()):
                if source.file.read(len(piece)) != bytes(piece):
                    return True, None
            return True, source.file.read()
    except NotFoundError:
        return False, None


def _gone_on_error(path: Path) -> ConflictError:
    return ConflictError(
        f"{path} exists, and holds more than is recorded",
        "Nothing needs to be restored. To record the rest, use `sessgit import FILE`.",
    )


def _other_file_error(path: Path) -> ConflictError:
    return ConflictError(
        f"{path} already exists with other contents",
        "It was not changed. To write elsewhere, use `--output FILE`.",
    )


def _name_line(state: Session, file: LineFile) -> bytes:
    """Return the line that tells the client the session's name, empty if its own lines do.

    A last line without a newline is left alone: what came behind it would be a part of it.
    """
    if not state.name or not file.lines or file.unended:
        return b""
    if next(filter(None, map(agents.of(state).writer.title_of, reversed(file.lines))), "") == state.name:
        return b""
    line = agents.of(state).writer.title_line(state.name, state.agent_id)
    return line + b"\n" if line else b""


def _move_project(store: Store, session: str, into: RestoreTarget, target: Path) -> Session:
    """Commit another project for the session; return the state."""

    def made(tip: str) -> tuple[StateEdit | None, Session]:
        before = store.state(tip)
        state = replace(before, project=into.project, transcript=str(target))
        return StateEdit(f"project {into.project}", state) if state != before else None, state

    return edit_commit.commit_on_head(Context(into.index, now=lambda: into.now), session, "restore", made)[0]


def rebuild_file(store: Store, session: str) -> RebuiltFile:
    """Return the session's file, put together from all its branches."""
    pieces = reassemble.file_pieces(store, session, reassemble.session_branches(store, session))
    laid, known = reassemble.lay_out(pieces.found), recorder_state.load_cursor(store.paths, session)
    file, missing, same = laid.data, laid.missing, None
    # A cursor with others alone is of a file that another version has.
    if known is not None and (known.current is not None or not known.others):
        if known.file == laid.file:
            missing += max(0, known.offset - laid.end)
        elif not known.final:
            missing += sum(extent.length for extent in known.pending)
    if pieces.hashes:
        *_, stored = max(pieces.hashes)
        same = commits.hash_lines(file.lines) == stored if stored else None
    elif pieces.checked and not pieces.rewritten:  # it can be what a fork wrote, whose hash was compared
        same = True
    return RebuiltFile(file, laid, pieces.redacted, missing, pieces.checked, pieces.rewritten, same)


def write_copy(store: Store, state: Session, folder: Path) -> Path:
    """Write the session's transcript into a temporary client's folder, and return its path."""
    path = agents.of(state).home.new_place(folder, state.agent_id, "/copy")
    path.parent.mkdir(parents=True)
    agent_files.write(path, *rebuild_file(store, state.id).file.pieces())
    return path


def _head_tip(store: Store, session: str) -> str:
    return reassemble.session_branches(store, session)[session]


@frozen
class VerifiedFile:
    """A file rebuilt with every hash proved; `same` says whether the agent's own file, if it is there, holds it."""

    restored: RebuiltFile
    turns: int
    file: Path | None
    same: bool | None


def verify_file(store: Store, session: str, homes: Homes, *, local_path: LocalPath = str) -> VerifiedFile:
    """Rebuild the session's file; raises DamageError if a hash is not the recorded one.

    `homes` and `local_path` are as for `restore_session`: a home can have moved since the file was recorded.
    """
    state = store.state(_head_tip(store, session))
    try:
        restored = rebuild_file(store, session)
    except StoreError as error:
        raise DamageError(f"{session} is damaged: {error}", error.hint) from error
    path = client_files.transcript_file(homes, client_files.localize_state(state, local_path), store.paths)
    if path is None:
        return VerifiedFile(restored, state.turns, None, None)
    return VerifiedFile(restored, state.turns, path, _read_beyond(path, restored.file)[1] == b"")


@frozen
class RestoreAllResult:
    """The sessions that are back, and those that could not be written, and why."""

    back: list[tuple[str, RestoreResult]]
    errors: list[tuple[str, SessgitError]]


def restore_all(
    store: Store, sessions: Sequence[str], homes: Homes, progress: Progress, local_path: LocalPath = str
) -> RestoreAllResult:
    """Restore each session, as `restore_session` does; failures are part of the result and stop no other session."""
    result = RestoreAllResult([], [])
    for session in counted(sessions, progress):
        try:
            result.back.append((session, restore_session(store, session, homes, local_path=local_path)))
        except SessgitError as error:
            result.errors.append((session, error))
    return result


@frozen
class _FileComparison:
    """How a session's file of `size` bytes compares with what is recorded.

    `ahead` says that it holds lines that are not recorded, `torn` that it ends in the middle of such a line. `missing`
    is what has to be appended to it, which is of `turns` turns. If all of the file is recorded, and its last line is
    not whole, the rest of that line comes first. `fits` says whether the agent would then continue from the session's
    last turn, and the file holds no turns, or parts of turns, that are not recorded.
    """

    ahead: bool
    torn: bool
    size: int
    missing: bytes = b""
    turns: int = 0
    fits: bool = True


def is_up_to_date(files: StorePaths, branch: Branch, path: Path) -> bool:
    """Return whether the session's file is unchanged since it was recorded up to the branch's tip; False if that is
    unknown."""
    known = recorder_state.load_cursor(files, branch.name)
    if known is None or known.current is None or known.commit != branch.tip:
        return False
    return catch_up.is_level(files, branch.name, path)


def append_missing_turns(store: Store, session: str, homes: Homes, path: Path) -> int:
    """Append to the session's file the turns that it lacks; return how many, 0 if there is no file.

    Raises ConflictError, with nothing changed, where it cannot get them. What else it holds is not looked at.
    """
    if not path_exists(path):
        return 0
    with file_append.writable_session(store.paths, session):
        tips = reassemble.session_branches(store, session)
        state = store.state(tips[session])
        intent = recorder_state.load_intent(store.paths, session)
        if intent is not None and not intent.brought:  # a merge completes its own
            _check_closed(homes, state)
            file_append.finish_append(store.paths, session, path)
            recorder_state.delete_intent(store.paths, session)
        laid = reassemble.lay_out(reassemble.file_pieces(store, session, tips).found)
        comparison = _compare_file(store, session, laid, path)
        if comparison is None or not comparison.missing:
            return 0
        if comparison.torn:
            raise _torn_file_error(path)
        if not comparison.fits:
            short = state.id[:8]
            raise ConflictError(
                f"{short} was continued elsewhere, and its file {path} here: neither has all turns",
                f"`sessgit fork {short}` continues the recorded turns in a new conversation.",
            )
        _check_closed(homes, state)
        _write_sidecars(store, state, homes, path)
        _check_closed(homes, state)  # writing the sidecar files took a while
        intent = AppendIntent(str(path), comparison.size, comparison.missing)
        file_append.append_lines(store.paths, session, path, intent)
        recorder_state.delete_intent(store.paths, session)
        return comparison.turns


def _write_sidecars(store: Store, state: Session, homes: Homes, transcript: Path) -> list[WrittenFile]:
    """Write the session's sidecar files for its transcript at that path."""
    files = sidecars.session_sidecars(store, state.id, reassemble.session_branches(store, state.id))
    return sidecars.write_sidecars(store, state, files, sidecars.place_of(state, homes, transcript))


def _compare_file(store: Store, session: str, laid: LaidOutFile, path: Path) -> _FileComparison | None:
    """Return how the file at a path compares with what is recorded, which is `laid`; None if it is not of the
    session."""
    tips = reassemble.session_branches(store, session)
    state = store.state(tips[session])
    agent = agents.of(state)
    with opened(path) as source:
        reader = Reader(source, agent.lines.make, sidecars.session_redaction(store, state))
        lines, size = list(reader.lines()), source.size
        rest = _rest_of(laid.data, source)
    chain = _turn_keys(store, tips[session])
    recorded = {key for tip in tips.values() for key in _turn_keys(store, tip)}
    start = RecordedTurns(store, tips, agent).base(state) if lines and lines[0].base else None
    file = _ParsedFile(agent, lines, start)
    if not file.nodes or next(iter(file.nodes)) not in recorded:
        return None
    names = {_line_name(line) for piece in laid.pieces for line in agent.parsed(piece.lines)}
    own = {piece.key for piece in laid.pieces}
    diverged = bool(file.nodes.keys() - recorded) or any(
        line.is_body and _line_name(line) not in names
        for key in file.nodes.keys() & own
        for line in file.nodes[key].body
    )
    is_torn = bool(reader.torn) and not rest
    ahead = diverged or is_torn
    ahead |= any(  # those with a name are from `restore`
        _line_name(line) not in names and not agent.is_titles(line.raw + b"\n", state.agent_id)
        for line in file.cutter.pending.lines
    )
    lacks = file.lacks(laid.pieces)
    if not any(piece.key in chain for piece in lacks) and not (reader.torn and rest):
        return _FileComparison(ahead, is_torn, size)
    if rest:
        return _FileComparison(ahead, is_torn, size, rest, _count_turns(lacks))
    missing = file.new(lacks)
    fits = file.continues_to(chain, missing, names)
    if not fits:  # a branch left behind by a rewind, which cannot come with the rest, stays out
        lacks = [piece for piece in lacks if piece.key in chain or piece.is_tail]
        missing = file.new(lacks)
        fits = file.continues_to(chain, missing, names)
    data = b"\n" * bool(reader.unended and missing) + b"".join(missing)
    return _FileComparison(ahead, is_torn, size, data, _count_turns(lacks), fits and not (is_torn or diverged))


def _count_turns(pieces: Sequence[Piece]) -> int:
    return len({piece.key for piece in pieces if piece.key})


def _rest_of(recorded: LineFile, source: Opened) -> bytes:
    """Return the recorded bytes that a file lacks, if it is the beginning of what is recorded, byte for byte; else
    none."""
    source.file.seek(0)
    pieces = chunks(recorded.pieces())
    for piece in pieces:
        known = source.file.read(len(piece))
        if known != piece[: len(known)]:
            return b""
        if len(known) < len(piece):
            return b"".join([piece[len(known) :], *pieces])
    return b""


def _torn_file_error(path: Path) -> ConflictError:
    """Return the error that a file ends in the middle of a line that is not recorded."""
    return ConflictError(
        f"{path} ends in the middle of a line that is not recorded",
        "It was not changed. To write the recorded lines elsewhere, use `sessgit restore --output FILE`.",
    )


def _check_closed(homes: Homes, state: Session) -> None:
    short = state.id[:8]
    if agents.is_open(homes, state.agent_id):
        raise ConflictError(
            f"{short} was continued elsewhere, and is open in a client here that would not see the new turns",
            f"Close it first, then run `sessgit resume {short}`.",
        )


class _ParsedFile:
    """The turns of a file, cut as the recorder cuts them, and what it holds by uuid or, without one, as it is; `start`
    is the turn that it goes on from."""

    def __init__(self, agent: Agent, lines: Sequence[Line], start: Node | None) -> None:
        self.agent, self.lines, self.start = agent, lines, start
        self.cutter = Cutter(fork_detection.EmptyHistory(), session="file")
        self.cutter.head = start
        self.nodes: dict[str, Node] = {}
        for line in lines:
            self.cutter.feed(line)
            if self.cutter.head is not None and self.cutter.head is not start:
                self.nodes.setdefault(self.cutter.head.key, self.cutter.head)
        self.there = {_line_name(line) for line in lines}

    def lacks(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Return the pieces of turns and of the tail, or the ends of pieces, that the file does not have."""
        out = list[Piece]()
        begun = set[str]()
        for piece in pieces:
            lines = self.agent.parsed(piece.lines)
            if piece.key in self.nodes and piece.key not in begun:
                last = max((n for n, line in enumerate(lines, start=1) if _line_name(line) in self.there), default=0)
                lines = lines[last:]
            if not lines or not (piece.key or piece.is_tail):
                continue
            begun.add(piece.key)
            out.append(replace(piece, lines=tuple(line.raw for line in lines)))
        return out

    def new(self, pieces: Sequence[Piece]) -> list[bytes]:
        """Return the lines of pieces that the file lacks, except those that already wait after its last turn for the
        next prompt."""
        lines = self.agent.parsed(line + end for piece in pieces for line, end in piece.ended)
        waiting = [line.raw for line in self.cutter.pending.lines]
        given = [line.raw.removesuffix(b"\n") for line in lines]
        same = max((ids.common_prefix_length(waiting[at:], given) for at in range(len(waiting))), default=0)
        new = [line for line in lines[same:] if line.uuid not in self.there]
        return [line.raw for line in new if line.raw.endswith(b"\n") or line.data is not None]

    def continues_to(self, chain: Sequence[str], more: Sequence[bytes], names: Collection[str | bytes]) -> bool:
        """Return whether the file with `more` after its lines has the turns of the chain as its head. The parent of
        each new prompt must be in the file, unless it is not one of the recorded `names` either."""
        there = {line.uuid for line in self.lines}
        new = self.agent.parsed(raw.removesuffix(b"\n") for raw in more)
        for line in new:
            if line.is_prompt and line.parent in names and line.parent not in there:
                return False
            there.add(line.uuid)
        head = _ParsedFile(self.agent, [*self.lines, *new], self.start).cutter.head
        return [node.key for node in line_of(head)][::-1] == list(chain)


def _line_name(line: Line) -> str | bytes:
    return line.uuid or line.raw.removesuffix(b"\n")


def _turn_keys(store: Store, tip: str) -> list[str]:
    """Return the keys of all turns up to a commit, in order."""
    keys = (message.get("Prompt") for _, message in store.history(tip))
    return list(dict.fromkeys(key for key in keys if key))[::-1]


# Export of sessions as a folder of the client, as it would find them in its own
#
# All files are made and compared with those in the folder before anything is written: a file with other contents stops
# the export with nothing changed. No file is overwritten, except the index of a project's sessions, in which entries
# are added or updated.


@frozen
class FolderExport:
    """The files of the exported folder, and the number of sessions in it."""

    files: list[Path]
    sessions: int


def export_folder(context: Context, branches: Sequence[Branch], folder: Path) -> FolderExport:
    """Write the sessions of these branches as a folder of the client, each whole, with its sidecar files.

    Raises ConflictError, with nothing written, where a file in the folder holds something else; SessgitError for a
    session of a client whose folder has another form.
    """
    folder = folder.absolute()
    files, transcripts = dict[Path, Bytes](), dict[Path, Session]()
    names = dict.fromkeys(branch.session for branch in branches)
    heads = sorted(
        (b for name in names if (b := context.index.branch(name)) is not None), key=lambda b: b.state.updated
    )
    for head in heads:
        if not (agent := agents.of(head.state)).has("sidecars"):
            raise SessgitError(
                f"{head.name} is a conversation with {agent.title}. Nothing was written.",
                f"`sessgit restore {head.name} --output FILE` writes its transcript.",
            )
        _lay_out(context.store, head, folder, files, transcripts)
    for path, data in files.items():
        if os.path.lexists(path) and not sidecars.has_bytes(path, data):
            raise ConflictError(
                f"{path} already exists with other contents", "Nothing was written. Name another folder."
            )
    indexes = {path.parent / agents.of(state).sidecars.INDEX: agents.of(state) for path, state in transcripts.items()}
    old = {path: _existing_index(agent, path) for path, agent in sorted(indexes.items(), key=lambda item: item[0])}
    for path, data in files.items():
        if sidecars.put_file(path, data) == LEFT:
            raise ConflictError(f"{path} now exists with other contents", "It was not changed.")
    for path, before in old.items():
        _write_index(indexes[path], path, before, transcripts)
    return FolderExport([*files, *old], len(heads))


def _lay_out(
    store: Store, head: Branch, folder: Path, files: dict[Path, Bytes], transcripts: dict[Path, Session]
) -> None:
    """Add a session's files, and its state by the path of its transcript. If two sessions have a file in common, a plan
    or a subagent's, the one written later is taken."""
    state = head.state
    agent = agents.of(state)
    project = folder / "projects" / agent.sidecars.folder_name(state.transcript, state.project)
    path = agent.home.transcript_place(folder, str(project / f"{state.agent_id}.jsonl"), state.agent_id, "")
    if path is None:
        raise SessgitError(f"the id of {head.name} cannot be a file name: {state.agent_id!r}")
    place = agent.sidecars.place(folder, project, state.agent_id, state.agent_version)
    for file in sidecars.session_sidecars(store, head.name, reassemble.session_branches(store, head.name)):
        name = agent.sidecars.plan_name(file.name) if file.kind == PLAN else file.name
        where = place(replace(file, name=name))
        if where is not None and not (where in files and where.suffix == ".jsonl" and _begins(files[where], file.data)):
            files[where] = file.data
    files[path] = rebuild_file(store, head.name).file
    transcripts[path] = state


def _begins(data: Bytes, lines: Bytes) -> bool:
    """Return whether a file begins with the lines of another one, which has then not grown as much."""
    ours = file_lines(split_lines(lines))
    return split_lines(data)[: len(ours)] == ours


def _existing_index(agent: Agent, path: Path) -> bytes | None:
    """Return the bytes of the existing index, or None; raises SessgitError if it is not an index."""
    try:
        with opened(path) as source:
            data = source.file.read()
    except NotFoundError:
        return None
    agent.sidecars.merged(data, {}, path)
    return data


def _write_index(agent: Agent, path: Path, old: bytes | None, transcripts: dict[Path, Session]) -> None:
    states = {file: state for file, state in transcripts.items() if file.parent == path.parent}
    data = agent.sidecars.merged(old, states, path)
    if data == old:
        return
    try:
        write_private(path, data)
    except StoreError as error:
        raise SessgitError(str(error)) from error
