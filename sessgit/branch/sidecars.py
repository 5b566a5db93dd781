"""Sidecar files from the store: those of a transcript as of a turn, and how they are written for the client.

Lines of subagents are stored in pieces, in the turns in which they came. They are joined in the order in which they
were in the agent's file, including those of rewound turns. Of a long line there is one copy in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from sessgit import agents
from sessgit.agents import Agent, agent_files
from sessgit.agents.base import SidecarPlace
from sessgit.agents.line import Redact, complete_lines, opened, parse
from sessgit.agents.values import PLAN, RESULT, SUBAGENT, TASK, TODO, SideFile
from sessgit.errors import ConflictError, SessgitError
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes, file_lines, file_of_lines, file_of_split, file_pieces, split_lines
from sessgit.store import layout, secret_filter
from sessgit.store.context import Homes
from sessgit.store.objects import Entry, chunks
from sessgit.store.store import Store

WRITTEN, ALREADY, LEFT = "written", "already", "left"

_REDACTION_MARK = re.compile(rb"\[redacted:[a-z0-9-]{1,60}\]")
_KIND_BY_FOLDER = {"tasks": TASK, "todos": TODO, "plans": PLAN}


@frozen
class WrittenFile:
    """A file and what became of it: `written`, `already` there with the same bytes, or another one that was `left`.

    `kind` is one of `values.KINDS`; `redacted` counts the redactions in it;
    `counts` says whether a person would count it.
    """

    path: Path
    kind: str
    outcome: str
    redacted: int
    counts: bool


@frozen
class _TurnFolder:
    """A turn's folder and where it comes in the agent's file; `taken_over` is one of the session that was left."""

    order: tuple[int, int, int]
    commit: str
    number: int
    taken_over: bool = False


def session_sidecars(store: Store, session: str, tips: Mapping[str, str]) -> list[SideFile]:
    """Return all sidecar files of the session: of all its turns, and plan, todos and tasks as of its head.

    `tips` are those of its branches.
    """
    head = tips[session]
    state = store.state(head)
    turns: dict[str, _TurnFolder] = {}
    for _, tip in sorted(tips.items(), key=lambda item: (layout.is_rewound_branch(item[0]), item[0])):
        _collect_turns(store, session, tip, state, turns)
    ordered = sorted(turns.values(), key=lambda turn: turn.order)
    files = _pieces_by_file(
        (_turn_pieces(store, store.folder(turn.commit, turn.number)), turn.taken_over) for turn in ordered
    )
    as_own, own = agents.of(state).sidecars.as_own, (state.agent_id, state.agent_version)
    # Those that it shares with its parent get this session's id.
    renamed = ([(as_own(piece, *own) if taken else piece, taken) for piece, taken in parts] for parts in files)
    return [*map(_join_pieces, renamed), *_live_files(store, head)]


def sidecars_as_of(store: Store, commit: str, turns: int) -> list[SideFile]:
    """Return the sidecar files of the turns 1 to `turns` of a commit, as the session that recorded them has them."""
    return turn_sidecars(store, commit, range(1, turns + 1)) + _live_files(store, commit)


def turn_sidecars(store: Store, commit: str, turns: Sequence[int]) -> list[SideFile]:
    """Return the sidecar files of these turns of a commit, as the session that recorded them has them."""
    pieces = ((_turn_pieces(store, folder), False) for folder in store.folders(commit, turns))
    return [_join_pieces(parts) for parts in _pieces_by_file(pieces)]


def entries_named_in(store: Store, commit: str, number: int, lines: Sequence[bytes]) -> dict[str, tuple[str, bool]]:
    """Return the entries of the sidecar files of a turn that these lines name, by path in its folder."""
    out = dict[str, tuple[str, bool]]()
    for path, entry in store.side_files(store.folder(commit, number)).items():
        named = path.rpartition("/")[2].removeprefix("agent-").partition(".")[0].encode()
        if any(named in line for line in lines):
            out[path] = entry
    return out


def rename_session(agent: Agent, files: Iterable[SideFile], agent_id: str, version: str) -> list[SideFile]:
    """Return the files of one session as those of another; a subagent's file that both share stays as it is."""
    return [agent.sidecars.as_own(file, agent_id, version) for file in files]


def place_of(state: Session, homes: Homes, transcript: Path) -> SidecarPlace:
    """Return where the client looks for the sidecar files of the session's transcript."""
    return agents.of(state).sidecars.place(homes.of(state), transcript.parent, state.agent_id, state.agent_version)


def write_sidecars(store: Store, state: Session, files: Iterable[SideFile], place: SidecarPlace) -> list[WrittenFile]:
    """Write each file where the client looks for it, never over an existing one.

    A file with the original text of what is redacted in ours, by the rules of the session, counts as the same.
    """
    out, rules = [], session_redaction(store, state)
    for file in files:
        path = place(file)
        if path is not None:
            secrets, outcome = count_secrets(file.data), put_file(path, file.data)
            if outcome == LEFT and secrets and _matches_recorded(file, _existing_bytes(file, path), rules):
                outcome = ALREADY
            out.append(WrittenFile(path, file.kind, outcome, secrets, file.counts))
    return out


def unredacted_sidecars(
    store: Store, state: Session, files: Iterable[SideFile], place: SidecarPlace
) -> Iterator[SideFile]:
    """Yield the files with the original text of the agent's own files at `place`, where these match what was recorded
    by the rules of the session."""
    rules = session_redaction(store, state)
    for file in files:
        path = place(file) if count_secrets(file.data) else None
        data = _existing_bytes(file, path, may_go_on=True) if path is not None else b""
        yield replace(file, data=data) if path and _matches_recorded(file, data, rules) else file


def session_redaction(store: Store, state: Session) -> Redact:
    """Return the redaction with which the session is recorded."""
    return secret_filter.line_cleaner(store.paths, state.rules, agents.of(state).protected_keys)


def count_secrets(data: Bytes) -> int:
    """Return the number of redactions in it."""
    return sum(len(_REDACTION_MARK.findall(piece)) for piece in file_pieces(data))


def bytes_hash(data: Bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    for piece in file_pieces(data):
        digest.update(piece)
    return digest.hexdigest()


def put_file(path: Path, data: Bytes) -> str:
    """Write a file unless one exists, and return the outcome; raises SessgitError if it cannot be written."""
    same = has_bytes(path, data)
    if same is not None:
        return ALREADY if same else LEFT
    try:
        agent_files.write(path, *file_pieces(data))
    except ConflictError:  # it came just now, or it is a link or a folder
        return LEFT
    return WRITTEN


def _existing_bytes(file: SideFile, path: Path, *, may_go_on: bool = False) -> Bytes:
    """Return the bytes of the file at the path: of a file of lines the complete ones, and with `may_go_on` no more than
    ours has."""
    if not file.name.endswith(".jsonl"):
        return read_file(path) or b""
    most = len(file_lines(split_lines(file.data))) if may_go_on else None
    lines, unended = list[bytes](), False
    for raw, extent in islice(complete_lines(path), most):
        lines.append(raw)
        unended = extent.length == len(raw)
    return file_of_lines(lines, unended=unended)


def _redacted(name: str, data: Bytes, redact: Redact) -> Bytes:
    """Return the file as it is stored."""
    if not name.endswith(".jsonl"):
        return redact(bytes(data))[0]
    *lines, rest = split_lines(data)
    return file_of_split([*(redact(raw)[0] for raw in lines), redact(rest)[0] if rest else rest])


def _matches_recorded(file: SideFile, data: Bytes, rules: Redact) -> bool:
    """Return whether an existing file is what ours was recorded from."""
    stored = _redacted(file.name, data, rules)
    if isinstance(stored, bytes) and isinstance(file.data, bytes):
        return stored == file.data
    return split_lines(stored) == split_lines(file.data)


def has_bytes(path: Path, data: Bytes) -> bool | None:
    """Return whether a file has these bytes, or None if no file can be read; no link is followed."""
    try:
        with opened(path) as source:
            return source.size == len(data) and all(
                source.file.read(len(step)) == bytes(step) for step in chunks(file_pieces(data))
            )
    except SessgitError:
        return None


def read_file(path: Path) -> bytes | None:
    """Return the bytes of a file, or None if no file can be read; no link is followed."""
    try:
        with opened(path) as source:
            return source.file.read()
    except SessgitError:
        return None


def _collect_turns(store: Store, session: str, tip: str, state: Session, turns: dict[str, _TurnFolder]) -> None:
    """Collect the turns of a branch, each from the commit that has most of it.

    Turns of the session that it left are its own only where this program wrote its beginning, side files included.
    """
    ours = state.origin is not None and bool(state.origin.prefix)
    for commit, message in store.history(tip):
        number, key = message.number("Turn"), message.get("Prompt")
        own = message.get("Session") == session
        if not own and not ours:
            return
        if not number or not key:
            continue
        if own and message.get("Event") != "fork":
            end = max((extent.end for extent in message.extents), default=0)
            turn = _TurnFolder((1, end, number), commit, number)
        else:
            turn = _TurnFolder((0, number, 0), commit, number, taken_over=True)
        if key not in turns or turns[key].order < turn.order:
            turns[key] = turn


def _turn_pieces(store: Store, folder: Mapping[str, Entry]) -> Iterator[SideFile]:
    for path, (oid, _) in store.side_files(folder).items():
        top, _, name = path.partition("/")
        data = file_of_split(store.repo.lines(oid)) if path.endswith(".jsonl") else store.repo.blob(oid)
        yield SideFile(SUBAGENT if top == layout.SUBAGENTS else RESULT, name.removeprefix("tool-results/"), data)


def _pieces_by_file(pieces: Iterable[tuple[Iterable[SideFile], bool]]) -> list[list[tuple[SideFile, bool]]]:
    """Return the pieces of each file, in order, each with whether another session recorded it."""
    pieces_of: dict[tuple[str, str], list[tuple[SideFile, bool]]] = {}
    for parts, taken_over in pieces:
        for part in parts:
            pieces_of.setdefault((part.kind, part.name), []).append((part, taken_over))
    return list(pieces_of.values())


def _join_pieces(parts: Sequence[tuple[SideFile, bool]]) -> SideFile:
    """Return the file of these pieces: of subagents' lines all of them, of any other file, which is stored whole, the
    last."""
    first, whole = parts[0][0], parts[-1][0]
    if first.kind == SUBAGENT and first.name.endswith(".jsonl"):
        # The newline of a last line that had none came with the next piece.
        *earlier, last = [split_lines(part.data) for part, _ in parts if part.data] or [[b""]]
        return replace(first, data=file_of_split([*(line for one in earlier for line in file_lines(one)), *last]))
    if first.kind == SUBAGENT:  # a store may hold the end alone of what the client had written anew
        return next((part for part, _ in reversed(parts) if parse(bytes(part.data)) is not None), whole)
    return whole


def _live_files(store: Store, commit: str) -> list[SideFile]:
    files = sorted(store.files(commit, layout.LIVE).items())
    named = ((path.partition("/"), oid) for path, (oid, _) in files)
    return [
        SideFile(_KIND_BY_FOLDER[top], name, store.repo.blob(oid))
        for (top, _, name), oid in named
        if top in _KIND_BY_FOLDER
    ]
