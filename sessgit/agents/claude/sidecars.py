"""What the client keeps next to a transcript: subagents, large tool results, plans, todos and tasks.

A file of a subagent grows while the session goes on, and a finished turn's folder never changes: so the bytes
that come later are recorded with the turn that runs when they come. The pieces, in the order of the turns, are
the file. What the client notes about a subagent in a file of its own, it writes anew: that one is recorded whole
again, and the last is the file.

Of a line there is one copy, as of one of a transcript: it may be as long as all else in memory together.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sessgit.agents.base import SidecarPlace
from sessgit.agents.claude import home
from sessgit.agents.claude.cells import describe
from sessgit.agents.claude.lines import message_key, parsed
from sessgit.agents.claude.writer import as_session
from sessgit.agents.line import Line, Redact, complete_lines, opened, parse
from sessgit.agents.values import PLAIN, SUBAGENT, SideFile
from sessgit.errors import SessgitError
from sessgit.model import json_strings
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Gist
from sessgit.model.line_list import Bytes, file_lines, file_of_lines, file_of_split, split_lines
from sessgit.model.stored_fields import string
from sessgit.store import layout

AGENT = re.compile(r"agent-[A-Za-z0-9_-]{1,80}\.(jsonl|meta\.json)")
_CHUNK = 64 << 10
"""So many bytes are read at once where few lines are looked at."""
_FILE_NAME = re.compile(rb"(?:\\[nrt])?([A-Za-z0-9][A-Za-z0-9._-]*)")
"""A word that can be a file's name; the escape of a line break in front of it is no part of it."""
_SETTLED = 2.0
"""Seconds after which nothing more can have the time of the last change."""
T = TypeVar("T")
_SLUG = re.compile(rb'"slug":"([^"\\]+)"')
_PLAN = re.compile(r"[a-z]{1,30}-[a-z]{1,30}-[a-z]{1,30}")
_WORDS = (
    "amber brisk candid dappled earnest fabled gilded humble inky jaunty keen lucid mellow nimble oaken plucky quaint"
    " rustic sunlit tidy upbeat vivid woven zesty",
    "baking carving darning etching folding grafting humming jotting kneading lacing mending nesting orbiting pacing"
    " quilting rowing sketching tuning untying venturing whittling yawning",
    "acorn badger cedar dune estuary fern gable heron inlet juniper kettle lantern mill nutmeg orchard pebble quarry"
    " rampart spindle thicket urn viola willow",
)
"""The words of a plan's name: adjectives, verbs and nouns."""
_NOT_DONE = ("", 0, 0)


class Subagents:
    """The files of a session's subagents, and how much of each is recorded with which turn."""

    def __init__(self, transcript: Path, agent_id: str, redact: Redact) -> None:
        nested = [(transcript.parent / agent_id / "subagents", False)] if PLAIN.fullmatch(agent_id) else []
        self._folders = [*nested, (transcript.parent, True)]
        self._agent_id = agent_id
        self._redact = redact
        self.done: dict[str, tuple[str, int, int]] = {}
        """By file name the key of the turn that last got a piece of it, and the first and last byte of that."""

    def pass_over(self, key: str, recorded: Callable[[], Mapping[str, int]]) -> None:
        """Take so many lines of each file, by its name, as recorded with the turn."""
        if not self._files:
            return
        for name, lines in recorded().items():
            if name in self._files:
                path, start = self._files[name][0], self._end(name)
                end = _behind(path, start, lines) if name.endswith(".jsonl") else _size(path)
                self.done[name] = (key, start, end)

    def has(self, path: str) -> bool:
        """Return whether a path in a turn's folder is that of a subagent's file that lies here."""
        folder, _, name = path.rpartition("/")
        return folder == layout.SUBAGENTS and name in self._files

    def has_more(self) -> bool:
        """Return whether a file that is known, or lies in the session's own folder, holds what is recorded with no
        turn."""
        for folder, flat in self._folders:
            known = filter(Path.exists, map(folder.joinpath, self.done)) if flat else _entries(folder, "agent-")
            for path in known:
                end, size = self._end(path.name), _size(path)
                if not AGENT.fullmatch(path.name) or self._belongs(path, flat) is None:
                    continue
                if size in (0, end):
                    continue
                # What cannot be read has nothing to be recorded, however long it seems.
                if _behind(path, end, 1) > end if path.suffix == ".jsonl" else self._whole(path)[1] not in (0, end):
                    return True
        return False

    def of_turn(self, key: str, lines: Sequence[Line], *, is_last: bool) -> dict[str, Bytes]:
        """Return the pieces that belong to the turn by path in its folder; to the last turn also what others left
        over."""
        prompts = {line.text("promptId") for line in lines} if self._files else ()
        out: dict[str, Bytes] = {}
        for name, (path, prompt) in self._files.items():
            turn, start, end = self.done.get(name, _NOT_DONE)
            grows = name.endswith(".jsonl")
            if turn == key or (not turn and (is_last or (prompt in prompts if prompt else mentions(lines, name)))):
                start = start if grows else 0
            elif turn and is_last and (grows or _size(path) != end):
                start = end if grows else 0
            else:
                continue
            piece, end = self._piece(path, start) if grows else self._whole(path)
            if end > start:
                self.done[name] = (key, start, end)
                out[f"{layout.SUBAGENTS}/{name}"] = piece
        return out

    def _piece(self, path: Path, start: int) -> tuple[Bytes, int]:
        """Return the file's lines from a place on, as they are stored, and where the last one ends: behind its
        newline, also where that is still to come.

        Where the client took lines off its end and went on, a place may be inside of a line: that one is new.
        """
        lines, end, unended = list[bytes](), start, False
        for raw, extent in complete_lines(path, _beginning(path, start)):
            lines.append(self._redact(raw)[0])
            unended = extent.length == len(raw)
            end = extent.end + unended
        return file_of_lines(lines, unended=unended), end

    def _whole(self, path: Path) -> tuple[bytes, int]:
        """Return the file as it is stored, and how long it was."""
        data = _read(path) or b""
        return self._redact(data)[0], len(data)

    def _end(self, name: str) -> int:
        """To which byte the file is recorded."""
        return self.done.get(name, _NOT_DONE)[2]

    @cached_property
    def _files(self) -> dict[str, tuple[Path, str]]:
        """Return each file's path and the prompt id that its first line names."""
        files = dict[str, tuple[Path, str]]()
        for folder, flat in self._folders:
            # Thousands of transcripts may be there, and of other sessions' subagents.
            for path in _of_session(folder, self._agent_id) if flat else _entries(folder, "agent-"):
                if AGENT.fullmatch(path.name) and (prompt := self._belongs(path, flat)) is not None:
                    files[path.name] = (path, prompt)
        return files

    def _belongs(self, path: Path, flat: bool) -> str | None:
        """Return the prompt id, "" where the file has none, or None where it is another session's."""
        if path.name.endswith(".meta.json"):
            lines = path.with_name(path.name.removesuffix(".meta.json") + ".jsonl")
            return self._belongs(lines, flat) if lines.exists() else None
        if path.name in self.done and not flat:  # there another session may have one of the same name
            return ""
        first = _first(path) or {}
        if flat and first.get("sessionId") != self._agent_id:
            return None
        return string(first, "promptId")


def first_fields(piece: Bytes) -> dict[str, Any] | None:
    """Return the fields of the first line of a subagent's file, or a piece of it, or None if it has none; for
    lines that are too long to be read the next one speaks."""
    return _parsed_first(split_lines(piece))


def is_subagent(name: str) -> bool:
    """Return whether a subagent's file can have the name."""
    return AGENT.fullmatch(name) is not None


def session_of(path: Path) -> str:
    """Return the session that the first line of a subagent's file names, or ``""``."""
    return string(_first(path), "sessionId")


def results(transcript: Path, agent_id: str, lines: Sequence[Line], redact: Redact) -> Iterator[tuple[str, bytes]]:
    """Yield the large tool results that the lines name, which the client keeps in files of their own, by path in the
    turn's folder; one after another, since there can be many. One that cannot be read is left out: it may be
    recorded."""
    folder = transcript.parent / agent_id / "tool-results"
    files = _looked_at(_names, folder) if PLAIN.fullmatch(agent_id) else frozenset()
    for name in sorted(set[str]().union(*(named_files(line.raw, files) for line in lines)) if files else ()):
        data = _read(folder / name)
        if data is not None:
            yield f"{layout.FILES}/tool-results/{name}", redact(data)[0]


def named_files(raw: bytes, files: frozenset[str]) -> set[str]:
    """Return those of the files whose names are words of a line. A period may end the sentence with a name."""
    words = {word.decode("ascii") for word in _FILE_NAME.findall(raw)}
    return (words | {word.rstrip(".") for word in words}) & files


def live(config: Path, agent_id: str, slug: str, redact: Redact) -> Iterator[tuple[str, bytes]]:
    """Yield the plan, todos and tasks as they are now, by path in `live/`; one after another as well."""
    if not PLAIN.fullmatch(agent_id):
        return
    files = [(f"todos/{path.name}", path) for path in _entries(config / "todos", f"{agent_id}-agent-")]
    files += [(f"tasks/{p.name}", p) for p in _entries(config / "tasks" / agent_id) if p.suffix == ".json"]
    if slug and PLAIN.fullmatch(slug):
        # An exported folder has it under a name of three words, if its own has another form.
        named = (config / "plans" / name for name in (f"{slug}.md", plan_name(slug)))
        files += [(f"plans/{slug}.md", p) for p in named if p.is_file()][:1]
    for name, path in files:
        data = _read(path) if PLAIN.fullmatch(name.partition("/")[2]) else None
        if data is not None:
            yield name, redact(data)[0]


def plan_name(name: str) -> str:
    """Return the file name of a plan in the form `{adjective}-{verb}-{noun}.md`: its own where it has it, else made
    of it."""
    stem = name.removesuffix(".md")
    if _PLAN.fullmatch(stem):
        return f"{stem}.md"
    number = int.from_bytes(hashlib.sha256(stem.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    words = []
    for choice in map(str.split, _WORDS):
        number, at = divmod(number, len(choice))
        words.append(choice[at])
    return f"{'-'.join(words)}.md"


def unnamed_plans(config: Path, transcripts: Iterable[Path]) -> list[str]:
    """Return the file names of plans that are recorded with none of the transcripts: the last line with a slug names
    the one that is."""
    left = {path.name for path in _entries(config / "plans") if path.suffix == ".md"}
    for path in transcripts:
        if not left:
            break
        slug = ""
        with suppress(OSError), path.open("rb") as file:
            for match in (_SLUG.search(line) for line in file):
                slug = match[1].decode("utf-8", "replace") if match else slug
        left -= {f"{slug}.md", plan_name(slug)}
    return sorted(left)


def mentions(lines: Iterable[Line], name: str) -> bool:
    """Return whether any of the lines names a subagent, by the name of its file."""
    token = json.dumps(name.removeprefix("agent-").partition(".")[0]).encode()
    return any(token in line.raw for line in lines)


def _parsed_first(lines: Iterable[bytes]) -> dict[str, Any] | None:
    return parse(next((raw for raw in lines if len(raw) <= json_strings.LONGEST_LINE), b""))


def _entries(folder: Path, start: str = "") -> list[Path]:
    """Return what lies in a folder under names that begin so, by name; nothing where a link leads to it."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.startswith(start))
    except OSError:
        return []
    return [folder / name for name in names] if names and home.link_above(folder / "file") is None else []


def _read(path: Path) -> bytes | None:
    """Return the file's bytes, or None where it is gone, no regular file, or not ours to read."""
    with suppress(SessgitError), opened(path) as source:
        return source.at(0, source.size)
    return None


def _looked_at(look: Callable[[Path, int], T], folder: Path) -> T:
    """Return what a look at a folder tells, which remembers it while the number that it is given stays the same."""
    try:
        changed = folder.stat().st_mtime_ns
    except OSError:
        changed = 0
    # A second change may have the same time as one just now.
    is_settled = abs(time.time() - changed / 1e9) > _SETTLED
    return look(folder, changed if is_settled else time.time_ns())


@lru_cache(maxsize=8)
def _names(folder: Path, _changed: int) -> frozenset[str]:
    """Return the names of the files in a folder."""
    return frozenset(path.name for path in _entries(folder) if PLAIN.fullmatch(path.name))


@lru_cache(maxsize=8)
def _by_session(folder: Path, _changed: int) -> tuple[dict[str, list[Path]], list[Path]]:
    """Return the files of subagents in a folder by the session that their first line names, and those without such a
    line."""
    known, unread = dict[str, list[Path]](), list[Path]()
    for path in _entries(folder, "agent-"):
        if AGENT.fullmatch(path.name) and path.suffix == ".jsonl":
            session = (_first(path) or {}).get("sessionId")
            (known.setdefault(session, []) if isinstance(session, str) else unread).append(path)
    return known, unread


def _of_session(folder: Path, agent_id: str) -> list[Path]:
    """Return what may be of a session's subagents in a folder that is that of others, too; each session asks for it."""
    known, unread = _looked_at(_by_session, folder)
    files = [*known.get(agent_id, ()), *unread]  # the line may come
    notes = [path.with_suffix(".meta.json") for path in files]
    return sorted((*files, *filter(Path.exists, notes)))


def _first(path: Path) -> dict[str, Any] | None:
    """Return the fields of the first line of a subagent's file."""
    return _parsed_first(raw for raw, _ in complete_lines(path, chunk=_CHUNK))


def _behind(path: Path, start: int, lines: int) -> int:
    """Return the place behind so many lines from a place on, or behind all where there are fewer; behind the newline
    of the last one, also where that is still to come."""
    end = start
    for raw, extent in islice(complete_lines(path, start, _CHUNK), lines):
        end = extent.end + (extent.length == len(raw))
    return end


def _beginning(path: Path, place: int) -> int:
    """Return where the line begins that a place in a file is in."""
    with suppress(SessgitError), opened(path) as source:
        end = place
        while 0 < end <= source.size:
            start = max(0, end - _CHUNK)
            newline = source.at(start, end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return end
    return place


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


INDEX = "sessions-index.json"

_NESTED_SINCE = (2, 1, 2)
_TODO = re.compile(r"([A-Za-z0-9-]{1,80}?)-agent-([A-Za-z0-9-]{1,80})\.json")


def place(config: Path, folder: Path, agent_id: str, version: str = "") -> SidecarPlace:
    """Return where the side files of a session lie: `folder` is that of its transcript, `config` the client's own.

    `version` is the client's, which counts where a file does not say by which one it was written.
    """
    own = folder / agent_id

    def path_of(file: SideFile) -> Path | None:
        match file.kind:
            case "subagent" if AGENT.fullmatch(file.name):
                return folder / file.name if is_flat(file, version) else own / "subagents" / file.name
            case "large tool result" if PLAIN.fullmatch(file.name):
                return own / "tool-results" / file.name
            case "task" if PLAIN.fullmatch(file.name) and file.name.endswith(".json"):
                return config / "tasks" / agent_id / file.name
            case "plan" if PLAIN.fullmatch(file.name) and file.name.endswith(".md"):
                return config / "plans" / file.name
            case "todo list" if named := _TODO.fullmatch(file.name):
                whose = agent_id if named[2] == named[1] else named[2]
                return config / "todos" / f"{agent_id}-agent-{whose}.json"
        return None

    return path_of


def is_flat(file: SideFile, version: str) -> bool:
    """Return whether a subagent's file is next to the transcript, as the client left it that wrote its first line."""
    if not file.name.endswith(".jsonl"):
        return False
    numbers = re.findall(r"\d{1,9}", string(first_fields(file.data), "version") or version)[:3]
    return bool(numbers) and tuple(map(int, numbers)) < _NESTED_SINCE


def as_own(file: SideFile, agent_id: str, version: str) -> SideFile:
    """Return the file, or a piece of it, with the session's id in the place of another's where a subagent's lines
    name one; a line that is too long to be read names none. A file next to the transcript stays as it is: sessions
    share it."""
    if file.kind != SUBAGENT or not file.name.endswith(".jsonl") or is_flat(file, version):
        return file
    *lines, rest = split_lines(file.data)
    own = (as_session(raw, agent_id) for raw in lines)
    return replace(file, data=file_of_split([*own, as_session(rest, agent_id) if rest else rest]))


def folder_name(recorded: str, project: str) -> str:
    """Return the name of the project's folder below `projects/`: as the session's own transcript had it, if it can
    be so."""
    named, slug = Path(recorded).parent.name, home.slug(project)[:200]
    return named if slug and named.startswith(slug) and re.fullmatch(r"[A-Za-z0-9-]{1,255}", named) else slug or "-"


def merged(index: bytes | None, states: Mapping[Path, Session], path: Path) -> bytes:
    """Return the index of a project's sessions with these transcripts, each in the place of the one with its
    `sessionId`.

    Other content is kept; the same bytes where nothing changes. Raises SessgitError where it is none.
    """
    document: dict[str, Any] = {"version": 1, "entries": []} if index is None else _index(index, path)
    places = {entry.get("sessionId"): number for number, entry in enumerate(document["entries"])}
    out = [dict(entry) for entry in document["entries"]]
    for file, state in states.items():
        entry = _entry(file, state)
        number = places.get(entry["sessionId"])
        if number is None:
            out.append(entry)
        else:
            out[number] = {**out[number], **entry}
    if index is not None and out == document["entries"]:
        return index
    return json.dumps({**document, "entries": out}, indent=2).encode() + b"\n"


def _entry(path: Path, state: Session) -> dict[str, Any]:
    """Return what the client notes of a session in the index of its project."""
    return {
        "sessionId": state.agent_id,
        "fullPath": str(path),
        "fileMtime": path.stat().st_mtime_ns // 1_000_000,
        "firstPrompt": state.first_prompt,
        "messageCount": state.messages,
        "created": state.created,
        "modified": state.updated,
        "gitBranch": state.git_branch,
        "projectPath": state.project,
        "isSidechain": False,
    }


def links(config: Path, transcript: Path, agent_id: str) -> Iterator[Path]:
    """Yield the links among the folders that a recording of the transcript would read below the client's folder."""
    own = transcript.parent / agent_id
    places = [config / name for name in ("projects", "todos", "tasks", "plans")]
    places += [config / "tasks" / agent_id, transcript.parent, own, own / "subagents", own / "tool-results"]
    yield from (place for place in places if place.is_symlink())


def _index(data: bytes, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    entries = document.get("entries") if isinstance(document, dict) else None
    is_list = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    if not isinstance(document, dict) or not is_list or document.get("version", 1) != 1:
        raise SessgitError(
            f"{path} is not a session index of version 1", "It was not changed: name another folder, or delete it."
        )
    return document


_INLINE = ("1.", "2.0.")


def may_be_inline(version: str) -> bool:
    """Return whether a client of this version, or one before it, may have written subagents' lines into the
    transcript."""
    return not version or version.startswith(_INLINE)


def goes_on(piece: Bytes) -> bool:
    """Return whether a piece of a subagent's file has another one before it, or may have: a first line that is too
    long to be read does not say."""
    first = first_fields(piece)
    return first is not None and first.get("parentUuid") is not None


def messages(piece: Bytes) -> set[str]:
    """Return the ids of the model's messages in a piece of a subagent's file."""
    return {message_key(line, 0) for line in _lines(piece) if line.type == "assistant"}


def gist(body: Sequence[Line], pieces: Iterable[Bytes], counted: Collection[str] = ()) -> Gist:
    """Return what the side chains in a turn's body and the pieces of subagents' files hold, each message counted
    once.

    `counted` are the ids of messages that are counted elsewhere.
    """
    lines = [line for line in body if line.is_sidechain]
    lines += [line for piece in pieces for line in _lines(piece) if message_key(line, 0) not in counted]
    return describe(_as_main(lines)).gist if lines else Gist()


def own_lines(piece: Bytes) -> list[Line]:
    """Return the lines in a piece of a subagent's file as if they were the conversation's own."""
    return _as_main(_lines(piece))


def _as_main(lines: Iterable[Line]) -> list[Line]:
    """Return lines of a side chain as if they were the conversation's own."""
    return [replace(line, data={**(line.data or {}), "isSidechain": False}) for line in lines]


def _lines(piece: Bytes) -> list[Line]:
    return parsed(file_lines(split_lines(piece)))


subagents = Subagents
