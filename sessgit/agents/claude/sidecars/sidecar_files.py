"""What the client keeps beside a transcript: subagents, large tool results, plans, todos and tasks.

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
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from sessgit.agents.claude import home
from sessgit.agents.claude.lines import make
from sessgit.agents.line import Line, parse
from sessgit.agents.reader import Reader, Redact, no_redaction, opened
from sessgit.agents.values import PLAIN
from sessgit.errors import SessgitError
from sessgit.model import long_strings
from sessgit.model.conversation.message import Extent
from sessgit.model.line_list import Bytes, file_of_lines, file_of_split, split_lines
from sessgit.store import layout

AGENT = re.compile(r"agent-[A-Za-z0-9_-]{1,80}\.(jsonl|meta\.json)")
_CHUNK = 8 << 20
_FIRST_LINE = 64 << 10
"""So many bytes are read at once for the first line: it is asked of files that may be others'."""
_STEP = 1 << 20
_END = 4
"""So many bytes of a name's beginning or end are looked for."""
_SETTLED = 2.0
"""Seconds after which nothing more can have the time of the last change."""
T = TypeVar("T")
_PLAN = re.compile(r"[a-z]{1,30}-[a-z]{1,30}-[a-z]{1,30}")
_ADJECTIVES = (
    "amber", "brisk", "candid", "dappled", "earnest", "fabled", "gilded", "humble", "inky", "jaunty", "keen", "lucid",
    "mellow", "nimble", "oaken", "plucky", "quaint", "rustic", "sunlit", "tidy", "upbeat", "vivid", "woven", "zesty",
)  # fmt: skip
_VERBS = (
    "baking", "carving", "darning", "etching", "folding", "grafting", "humming", "jotting", "kneading", "lacing",
    "mending", "nesting", "orbiting", "pacing", "quilting", "rowing", "sketching", "tuning", "untying", "venturing",
    "whittling", "yawning",
)  # fmt: skip
_NOUNS = (
    "acorn", "badger", "cedar", "dune", "estuary", "fern", "gable", "heron", "inlet", "juniper", "kettle", "lantern",
    "mill", "nutmeg", "orchard", "pebble", "quarry", "rampart", "spindle", "thicket", "urn", "viola", "willow",
)  # fmt: skip


_NOT_DONE = ("", 0, 0)


class Subagents:
    """The files of a session's subagents, and how much of each is recorded with which turn."""

    def __init__(self, transcript: Path, agent_id: str, redact: Redact) -> None:
        nested = [(transcript.parent / agent_id / "subagents", False)] if PLAIN.fullmatch(agent_id) else []
        self._folders = [*nested, (transcript.parent, True)]
        self._agent_id = agent_id
        self._redact = redact
        self._done: dict[str, tuple[str, int, int]] = {}
        self._files: dict[str, tuple[Path, str]] | None = None

    def resume(self, done: Mapping[str, tuple[str, int, int]]) -> None:
        """Goes on from what an earlier pass recorded."""
        self._done = dict(done)

    @property
    def done(self) -> dict[str, tuple[str, int, int]]:
        """By file name the prompt uuid of the turn it was last recorded with, and from and to which byte."""
        return self._done

    def pass_over(self, key: str, recorded: Callable[[], Mapping[str, int]]) -> None:
        """Takes so many lines of each file, by its name, as recorded with the turn."""
        if not self._found():
            return
        for name, lines in recorded().items():
            if name in self._found():
                path, start = self._found()[name][0], self._end(name)
                end = _behind(path, start, lines) if name.endswith(".jsonl") else _size(path)
                self._done[name] = (key, start, end)

    def has(self, path: str) -> bool:
        """Return whether a path in a turn's folder is that of a subagent's file that lies here."""
        folder, _, name = path.rpartition("/")
        return folder == layout.SUBAGENTS and name in self._found()

    def has_more(self) -> bool:
        """Whether a file that is known, or lies in the session's own folder, holds what is recorded with no turn."""
        for folder, flat in self._folders:
            known = filter(Path.exists, map(folder.joinpath, self._done)) if flat else _entries(folder, "agent-")
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
        """The pieces that belong to the turn by path in its folder; to the last turn also what others left over."""
        files = self._found()
        if not files:
            return {}
        prompts = begun_by(lines)
        out: dict[str, Bytes] = {}
        for name, (path, prompt) in files.items():
            turn, start, end = self._done.get(name, _NOT_DONE)
            grows = name.endswith(".jsonl")
            if turn == key or (not turn and (is_last or self._is_of(name, prompt, prompts, lines))):
                start = start if grows else 0
            elif turn and is_last and (grows or _size(path) != end):
                start = end if grows else 0
            else:
                continue
            piece, end = self._piece(path, start) if grows else self._whole(path)
            if end > start:
                self._done[name] = (key, start, end)
                out[f"{layout.SUBAGENTS}/{name}"] = piece
        return out

    def _is_of(self, name: str, prompt: str, prompts: Collection[str], lines: Sequence[Line]) -> bool:
        """Whether the file was begun in a turn with these prompt ids and lines."""
        return prompt in prompts if prompt else mentions((line.raw for line in lines), name)

    def _piece(self, path: Path, start: int) -> tuple[Bytes, int]:
        """The file's lines from a place on, as they are stored, and where the last one ends: behind its newline, also
        where that is still to come.

        Where the client took lines off its end and went on, a place may be inside of a line: that one is new.
        """
        lines, end, unended = list[bytes](), start, False
        for raw, extent in complete(path, _beginning(path, start)):
            lines.append(self._redact(raw)[0])
            unended = extent.length == len(raw)
            end = extent.end + unended
        return file_of_lines(lines, unended=unended), end

    def _whole(self, path: Path) -> tuple[bytes, int]:
        """The file as it is stored, and how long it was."""
        data = _read(path) or b""
        return self._redact(data)[0], len(data)

    def _end(self, name: str) -> int:
        """To which byte the file is recorded."""
        return self._done.get(name, _NOT_DONE)[2]

    def _found(self) -> dict[str, tuple[Path, str]]:
        """Each file's path and the prompt id that its first line names."""
        if self._files is None:
            self._files = {}
            for folder, flat in self._folders:
                # Thousands of transcripts may lie there, and of other sessions' subagents.
                for path in _of_session(folder, self._agent_id) if flat else _entries(folder, "agent-"):
                    if AGENT.fullmatch(path.name) and (prompt := self._belongs(path, flat)) is not None:
                        self._files[path.name] = (path, prompt)
        return self._files

    def _belongs(self, path: Path, flat: bool) -> str | None:
        """The prompt id, ``""`` where the file has none, or None where it is another session's."""
        if path.name.endswith(".meta.json"):
            lines = path.with_name(path.name.removesuffix(".meta.json") + ".jsonl")
            return self._belongs(lines, flat) if lines.exists() else None
        if path.name in self._done and not flat:  # there another session may have one of the same name
            return ""
        first = _first(path) or {}
        if flat and first.get("sessionId") != self._agent_id:
            return None
        prompt = first.get("promptId")
        return prompt if isinstance(prompt, str) else ""


def complete(path: Path, start: int = 0, chunk: int = _CHUNK) -> Iterator[tuple[bytes, Extent]]:
    """The lines of a file from a place on, read so many bytes at once, each with its place; none where the file is gone
    or no regular one, since what lies beside may go at any time. A last line without a newline is one if it is a
    complete JSON object."""
    with suppress(SessgitError), opened(path) as source:
        for raw, extent in Reader(source, start, no_redaction, make).raw(start, source.size, chunk):
            if extent.length > len(raw) or parse(raw) is not None:
                yield raw, extent


def of_complete(found: Iterable[tuple[bytes, Extent]]) -> Bytes:
    """The file of these lines, the last one with a newline if it had one at its place."""
    lines, unended = list[bytes](), False
    for raw, extent in found:
        lines.append(raw)
        unended = extent.length == len(raw)
    return file_of_lines(lines, unended=unended)


def clean(name: str, data: Bytes, redact: Redact) -> Bytes:
    """The file, or a piece of it, as it is stored."""
    if not name.endswith(".jsonl"):
        return redact(bytes(data))[0]
    *lines, rest = split_lines(data)
    return file_of_split([*(redact(raw)[0] for raw in lines), redact(rest)[0] if rest else rest])


def first_fields(piece: Bytes) -> dict[str, Any] | None:
    """The fields of the first line of a subagent's file, or a piece of it, or None where it has none; for lines that
    are too long to be read the next one speaks."""
    return _parsed_first(split_lines(piece))


def is_subagent(name: str) -> bool:
    """Whether a subagent's file can have the name."""
    return AGENT.fullmatch(name) is not None


def prompt_of(piece: Bytes) -> str:
    """The id of the prompt that the first line of a subagent's file names, or ``""``."""
    named = (first_fields(piece) or {}).get("promptId")
    return named if isinstance(named, str) else ""


def begun_by(lines: Iterable[Line]) -> set[str]:
    """The ids by which the files of subagents name one of these lines as what began them."""
    return {line.text("promptId") for line in lines} - {""}


def session_of(path: Path) -> str:
    """Return the session that the first line of a subagent's file names, or ``""``."""
    named = (_first(path) or {}).get("sessionId")
    return named if isinstance(named, str) else ""


def results(transcript: Path, agent_id: str, lines: Sequence[Line], redact: Redact) -> Iterator[tuple[str, bytes]]:
    """The large tool results that the lines name, which the client keeps in files of their own, by path in the turn's
    folder; one after another, since there can be many. One that cannot be read is left out: it may be recorded."""
    folder = transcript.parent / agent_id / "tool-results"
    names = _looked_at(_names, folder) if PLAIN.fullmatch(agent_id) else Names(())
    for name in sorted({name for line in lines for name in names.within(line.raw)}):
        data = _read(folder / name.decode("ascii"))
        if data is not None:
            yield f"{layout.FILES}/tool-results/{name.decode('ascii')}", redact(data)[0]


def live(config: Path, agent_id: str, slug: str, redact: Redact) -> Iterator[tuple[str, bytes]]:
    """Plan, todos and tasks as they are now, by path in `live/`; one after another as well."""
    if not PLAIN.fullmatch(agent_id):
        return
    todos = [(p.name, p) for p in _entries(config / "todos", f"{agent_id}-agent-")]
    tasks = [(p.name, p) for p in _entries(config / "tasks" / agent_id) if p.suffix == ".json"]
    found = [(f"todos/{name}", p) for name, p in todos] + [(f"tasks/{name}", p) for name, p in tasks]
    if slug and PLAIN.fullmatch(slug):
        # An exported folder has it under a name of three words, if its own has another form.
        named = (config / "plans" / name for name in (f"{slug}.md", plan_name(slug)))
        found += [(f"plans/{slug}.md", p) for p in named if p.is_file()][:1]
    for name, path in found:
        data = _read(path) if PLAIN.fullmatch(name.partition("/")[2]) else None
        if data is not None:
            yield name, redact(data)[0]


def plan_name(name: str) -> str:
    """The file name of a plan in the form `{adjective}-{verb}-{noun}.md`: its own where it has it, else made of it."""
    stem = name.removesuffix(".md")
    if _PLAN.fullmatch(stem):
        return f"{stem}.md"
    number = int.from_bytes(hashlib.sha256(stem.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    words = []
    for choice in (_ADJECTIVES, _VERBS, _NOUNS):
        number, at = divmod(number, len(choice))
        words.append(choice[at])
    return f"{'-'.join(words)}.md"


def mentions(lines: Iterable[bytes], name: str) -> bool:
    """Whether any of the lines names a subagent, by the name of its file."""
    agent = name.removeprefix("agent-").partition(".")[0]
    token = json.dumps(agent).encode()
    return any(token in line for line in lines)


class Names:
    """Finds names in texts, wherever they stand: of a thousand that begin or end alike, only that is looked for."""

    def __init__(self, names: Iterable[bytes]) -> None:
        self._names = frozenset(names)
        ends = Counter(end for name in self._names for end in _ends(name))
        self._lengths: dict[tuple[bytes, bool], set[int]] = {}
        for name in self._names:
            self._lengths.setdefault(max(_ends(name), key=lambda end: ends[end]), set()).add(len(name))

    def within(self, text: bytes) -> set[bytes]:
        """Those that stand in a text."""
        found = set[bytes]()
        for (end, is_last), lengths in self._lengths.items():
            place = text.find(end)
            while place >= 0:
                starts = ((place + len(end) - length if is_last else place, length) for length in lengths)
                found.update(text[start : start + length] for start, length in starts if start >= 0)
                place = text.find(end, place + 1)
        return found & self._names


def _ends(name: bytes) -> tuple[tuple[bytes, bool], tuple[bytes, bool]]:
    """What a name begins with and what it ends with, and which is which."""
    return (name[:_END], False), (name[-_END:], True)


def _parsed_first(lines: Iterable[bytes]) -> dict[str, Any] | None:
    return parse(next((raw for raw in lines if len(raw) <= long_strings.LONGEST_LINE), b""))


def _entries(folder: Path, start: str = "") -> list[Path]:
    """What lies in a folder under names that begin so, by name; nothing where a link leads to it."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.startswith(start))
    except OSError:
        return []
    return [folder / name for name in names] if names and home.link_above(folder / "file") is None else []


def _read(path: Path) -> bytes | None:
    """The file's bytes, or None where it is gone, no regular file, or not ours to read."""
    with suppress(SessgitError), opened(path) as source:
        return Reader(source, 0, no_redaction, make).at(0, source.size)
    return None


def _looked_at(look: Callable[[Path, int], T], folder: Path) -> T:
    """What a look at a folder tells, which remembers it while the number that it is given stays the same."""
    try:
        changed = folder.stat().st_mtime_ns
    except OSError:
        changed = 0
    # A second change may have the same time as one just now.
    is_settled = abs(time.time() - changed / 1e9) > _SETTLED
    return look(folder, changed if is_settled else time.time_ns())


@lru_cache(maxsize=8)
def _names(folder: Path, _changed: int) -> Names:
    """The names of the files in a folder."""
    return Names(path.name.encode("ascii") for path in _entries(folder) if PLAIN.fullmatch(path.name))


@lru_cache(maxsize=8)
def _by_session(folder: Path, _changed: int) -> tuple[dict[str, list[Path]], list[Path]]:
    """The files of subagents in a folder by the session that their first line names, and those without such a line."""
    known, unread = dict[str, list[Path]](), list[Path]()
    for path in _entries(folder, "agent-"):
        if AGENT.fullmatch(path.name) and path.suffix == ".jsonl":
            session = (_first(path) or {}).get("sessionId")
            (known.setdefault(session, []) if isinstance(session, str) else unread).append(path)
    return known, unread


def _of_session(folder: Path, agent_id: str) -> list[Path]:
    """What may be of a session's subagents in a folder that is that of others, too; each session asks for it."""
    known, unread = _looked_at(_by_session, folder)
    files = [*known.get(agent_id, ()), *unread]  # the line may come
    notes = [path.with_suffix(".meta.json") for path in files]
    return sorted((*files, *filter(Path.exists, notes)))


def _first(path: Path) -> dict[str, Any] | None:
    """The fields of the first line of a subagent's file."""
    return _parsed_first(raw for raw, _ in complete(path, chunk=_FIRST_LINE))


def _behind(path: Path, start: int, lines: int) -> int:
    """The place behind so many lines from a place on, or behind all where there are fewer; behind the newline of the
    last one, also where that is still to come."""
    end = at = start
    with suppress(SessgitError), opened(path) as source:
        reader = Reader(source, start, no_redaction, make)
        while lines > 0 and (data := reader.at(at, _STEP)):
            found = data.count(b"\n")
            if found > lines:
                data = b"\n".join(data.split(b"\n", lines)[:lines]) + b"\n"
            end = at + data.rfind(b"\n") + 1 if found else end
            at, lines = at + len(data), lines - found
        rest = source.size - end
        if lines > 0 and 0 < rest <= long_strings.LONGEST_LINE and parse(reader.at(end, rest)) is not None:
            return source.size + 1
    return end


def _beginning(path: Path, place: int) -> int:
    """Where the line begins that a place in a file is in."""
    with suppress(SessgitError), opened(path) as source:
        reader, end = Reader(source, 0, no_redaction, make), place
        while 0 < end <= source.size:
            start = max(0, end - _FIRST_LINE)
            newline = reader.at(start, end - start).rfind(b"\n")
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
