"""Side files out of the store: what lies beside a transcript as of a turn, and how it is put back.

What a subagent said is stored in pieces, with the turns in which they came. They are laid out in the order in which
they stood in the agent's file, those that a rewind left behind included. Of a long line there is one copy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from sessgit import agents
from sessgit.agents import new_file
from sessgit.agents.base import Agent, SidecarPlace
from sessgit.agents.line import parse
from sessgit.agents.reader import Redact, no_redaction, opened
from sessgit.agents.values import PLAN, RESULT, SUBAGENT, TASK, TODO, SideFile
from sessgit.errors import ConflictError, SessgitError
from sessgit.model import line_list
from sessgit.model.conversation.session import Session
from sessgit.model.line_list import Bytes, lines_of, pieces, whole
from sessgit.store import layout
from sessgit.store.files.large import steps
from sessgit.store.secrets import secret_filter
from sessgit.store.store import Store

WRITTEN, ALREADY, LEFT = "written", "already", "left"

_SECRET = re.compile(rb"\[redacted:[a-z0-9-]{1,60}\]")
_LIVE = {"tasks": TASK, "todos": TODO, "plans": PLAN}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file and what became of it: `written`, `already` there with the same bytes, or another one that was `left`.

    `kind` is one of `values.KINDS`, or `transcript` or `index`; `redacted` counts the secrets that stand replaced
    in it; `counts` says whether a person would count it.
    """

    path: Path
    kind: str
    outcome: str
    redacted: int = 0
    counts: bool = True


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn's folder and where it comes in the agent's file; `taken_over` is one of the session that was left."""

    order: tuple[int, int, int]
    commit: str
    number: int
    taken_over: bool = False


def of_session(store: Store, session: str, tips: Mapping[str, str]) -> list[SideFile]:
    """All that the session had beside its transcript: of all its turns, and plan, todos and tasks as of its head.

    `tips` are those of its branches.
    """
    head = tips[session]
    state = store.state(head)
    turns: dict[str, _Turn] = {}
    for _, tip in sorted(tips.items(), key=lambda item: (layout.is_rewound(item[0]), item[0])):
        _note_turns(store, session, tip, state, turns)
    ordered = sorted(turns.values(), key=lambda turn: turn.order)
    files = _joined((_pieces(store, turn), turn.taken_over) for turn in ordered)
    return [_own(agents.of(state), parts, state) for parts in files] + _live(store, head)


def as_of(store: Store, commit: str, turns: int) -> list[SideFile]:
    """What lies beside the turns 1 to `turns` of a commit, in the words of the session that recorded it."""
    return of_turns(store, commit, range(1, turns + 1)) + _live(store, commit)


def of_turns(store: Store, commit: str, turns: Iterable[int]) -> list[SideFile]:
    """What is recorded with these turns of a commit, in the words of the session that recorded it."""
    pieces = ((_pieces(store, _Turn((0, n, 0), commit, n)), False) for n in turns)
    return [_joined_parts(parts) for parts in _joined(pieces)]


def of_lines(store: Store, commit: str, number: int, lines: Sequence[bytes]) -> dict[str, tuple[str, bool]]:
    """The entries beside the lines of a turn whose names these lines hold, by path in its folder."""
    folder, out = store.folder(commit, number), dict[str, tuple[str, bool]]()
    for top in (layout.SUBAGENTS, layout.FILES):
        for path, entry in (store.repo.files(folder[top][0], top) if top in folder else {}).items():
            named = path.rpartition("/")[2].removeprefix("agent-").partition(".")[0].encode()
            if any(named in line for line in lines):
                out[path] = entry
    return out


def taken_over(agent: Agent, files: Iterable[SideFile], agent_id: str, version: str) -> list[SideFile]:
    """The files of one session as those of another; a subagent's that both find in one place stays as it is."""
    own = agent.sidecars
    return [file if own.is_flat(file, version) else own.as_own(file, agent_id) for file in files]


def write(
    agent: Agent, files: Iterable[SideFile], place: SidecarPlace, rules: Redact = no_redaction
) -> list[WrittenFile]:
    """Puts each file where the client looks for it, and never over one that is there.

    One that holds the words which stand replaced in ours counts as the same; `rules` are those that replaced them.
    """
    out = []
    for file in files:
        path = place.of(file)
        if path is not None:
            outcome = _put(agent, path, file, rules)
            out.append(WrittenFile(path, file.kind, outcome, secrets(file.data), file.counts))
    return out


def unredacted(agent: Agent, files: Iterable[SideFile], place: SidecarPlace, rules: Redact) -> list[SideFile]:
    """The files with the words that the agent's own files at `place` still hold, where these prove to be the same."""
    return [_original(agent, file, place.of(file), rules) if secrets(file.data) else file for file in files]


def rules_of(store: Store, state: Session) -> Redact:
    """The redaction that the session is recorded with."""
    return secret_filter.line(store.beside, state.rules, agents.of(state).protected_keys)


def secrets(data: Bytes) -> int:
    """How many secrets stand replaced in it."""
    return sum(len(_SECRET.findall(piece)) for piece in pieces(data))


def proof(data: Bytes) -> str:
    """The SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    for piece in pieces(data):
        digest.update(piece)
    return digest.hexdigest()


def put(path: Path, data: Bytes) -> str:
    """Makes a file, or says what is there; raises SessgitError where it cannot be made."""
    found = holds(path, data)
    if found is not None:
        return ALREADY if found else LEFT
    try:
        new_file.write(path, *pieces(data))
    except ConflictError:  # it came just now, or it is a link or a folder
        return LEFT
    return WRITTEN


def _put(agent: Agent, path: Path, file: SideFile, rules: Redact) -> str:
    outcome = put(path, file.data)
    if outcome == LEFT and secrets(file.data) and _is_stored_as(agent, file, _there(agent, file, path), rules):
        return ALREADY
    return outcome


def _original(agent: Agent, file: SideFile, path: Path | None, rules: Redact) -> SideFile:
    found = _there(agent, file, path, may_go_on=True) if path is not None else b""
    return replace(file, data=found) if _is_stored_as(agent, file, found, rules) else file


def _there(agent: Agent, file: SideFile, path: Path, *, may_go_on: bool = False) -> Bytes:
    """What stands at the path in the place of a file: of one of lines those that are complete, and where it may go on,
    no more than ours has."""
    if not file.name.endswith(".jsonl"):
        return read(path) or b""
    most = len(whole(lines_of(file.data))) if may_go_on else None
    return agent.sidecars.of_complete(islice(agent.sidecars.complete(path), most))


def _is_stored_as(agent: Agent, file: SideFile, found: Bytes, rules: Redact) -> bool:
    """Whether what was found is what the file was recorded from."""
    stored = agent.sidecars.clean(file.name, found, rules)
    if isinstance(stored, bytes) and isinstance(file.data, bytes):
        return stored == file.data
    return lines_of(stored) == lines_of(file.data)


def holds(path: Path, data: Bytes) -> bool | None:
    """Whether a file has just these bytes, or None where there is none that can be read; no link is followed."""
    try:
        with opened(path) as source:
            return source.size == len(data) and all(
                source.file.read(len(step)) == bytes(step) for step in steps(pieces(data))
            )
    except SessgitError:
        return None


def read(path: Path) -> bytes | None:
    """The bytes of a file, or None where there is none that can be read; no link is followed."""
    try:
        with opened(path) as source:
            return source.file.read()
    except SessgitError:
        return None


def _note_turns(store: Store, session: str, tip: str, state: Session, turns: dict[str, _Turn]) -> None:
    """Takes the turns of a branch, those of its own as of the commit that holds most of them.

    Turns of the session that it left are its own only where this program wrote its beginning, side files included.
    """
    ours = state.origin is not None and bool(state.origin.prefix)
    for commit in store.repo.first_parents(tip):
        message = store.message(commit.id)
        number, key = message.number("Turn"), message.get("Prompt")
        own = message.get("Session") == session
        if not own and not ours:
            return
        if not number or not key:
            continue
        if own and message.get("Event") != "fork":
            end = max((extent.end for extent in message.extents), default=0)
            turn = _Turn((1, end, number), commit.id, number)
        else:
            turn = _Turn((0, number, 0), commit.id, number, taken_over=True)
        if key not in turns or turns[key].order < turn.order:
            turns[key] = turn


def _pieces(store: Store, turn: _Turn) -> Iterator[SideFile]:
    folder = store.folder(turn.commit, turn.number)
    for top, kind in ((layout.SUBAGENTS, SUBAGENT), (layout.FILES, RESULT)):
        if top not in folder:
            continue
        for path, (oid, _) in sorted(store.repo.files(folder[top][0]).items()):
            data = line_list.of_split(store.repo.lines(oid)) if path.endswith(".jsonl") else store.repo.blob(oid)
            yield SideFile(kind, path.removeprefix("tool-results/"), data)


def _joined(pieces: Iterable[tuple[Iterable[SideFile], bool]]) -> list[list[tuple[SideFile, bool]]]:
    """The pieces of each file, in their order, and of each whether another session recorded it."""
    found: dict[tuple[str, str], list[tuple[SideFile, bool]]] = {}
    for parts, taken_over in pieces:
        for part in parts:
            found.setdefault((part.kind, part.name), []).append((part, taken_over))
    return list(found.values())


def _joined_parts(parts: Sequence[tuple[SideFile, bool]]) -> SideFile:
    """The file of these pieces: of subagents' lines all of them, of any other file, which is stored whole, the last."""
    first, last = parts[0][0], parts[-1][0]
    if first.kind == SUBAGENT and first.name.endswith(".jsonl"):
        return replace(first, data=_one_after_another([part.data for part, _ in parts]))
    if first.kind == SUBAGENT:  # a store may hold the end alone of what the client had written anew
        last = next((part for part, _ in reversed(parts) if parse(bytes(part.data)) is not None), last)
    return last


def _one_after_another(parts: Sequence[Bytes]) -> Bytes:
    # The newline of a last line that had none came with the next piece.
    *earlier, last = [lines_of(part) for part in parts if part] or [[b""]]
    return line_list.of_split([*(line for lines in earlier for line in whole(lines)), *last])


def _own(agent: Agent, parts: Sequence[tuple[SideFile, bool]], state: Session) -> SideFile:
    """The file of these pieces with this session's id in those that it took over."""
    if agent.sidecars.is_flat(parts[0][0], state.agent_version):
        return _joined_parts(parts)
    return _joined_parts([(agent.sidecars.as_own(p, state.agent_id) if taken else p, taken) for p, taken in parts])


def _live(store: Store, commit: str) -> list[SideFile]:
    entry = store.repo.entry(store.tree(commit), layout.LIVE)
    found = sorted(store.repo.files(entry[0]).items()) if entry and entry[1] else []
    named = ((path.partition("/"), oid) for path, (oid, _) in found)
    return [SideFile(_LIVE[top], name, store.repo.blob(oid)) for (top, _, name), oid in named if top in _LIVE]
