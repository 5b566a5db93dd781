"""What the client keeps beside a transcript: subagents, large tool results, plans, todos and tasks.

A file of a subagent grows while the session goes on, and a finished turn's folder never changes: so the bytes
that come later are recorded with the turn that runs when they come. The pieces, in the order of the turns, are
the file. What the client notes about a subagent in a file of its own, it writes anew: that one is recorded whole
again, and the last is the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from sessgit.agents.claude import home
from sessgit.agents.claude.lines import Line, parse
from sessgit.agents.claude.reader import Redact, opened
from sessgit.errors import SessgitError
from sessgit.model.cutting.texts import LONGEST_LINE
from sessgit.store import layout

AGENT = re.compile(r"agent-[A-Za-z0-9_-]{1,80}\.(jsonl|meta\.json)")
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_FIRST_LINE = 1 << 20
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
                start = self._done.get(name, ("", 0, 0))[2]
                data = self._read(self._found()[name][0], start)
                length = sum(len(raw) + 1 for raw in data.split(b"\n")[:lines])
                end = start + length if name.endswith(".jsonl") else self._size(name)
                self._done[name] = (key, start, end)

    def of_turn(self, key: str, lines: Sequence[Line], *, is_last: bool) -> dict[str, bytes]:
        """The pieces that belong to the turn by path in its folder; to the last turn also what others left over."""
        files = self._found()
        if not files:
            return {}
        prompts = {line.text("promptId") for line in lines} - {""}
        out: dict[str, bytes] = {}
        for name, (path, prompt) in files.items():
            turn, start, end = self._done.get(name, ("", 0, 0))
            mine = prompt in prompts if prompt else mentions((line.raw for line in lines), name)
            if turn == key or (not turn and (mine or is_last)):
                start = start if name.endswith(".jsonl") else 0
                piece = self._read(path, start)
            elif turn and is_last and name.endswith(".jsonl"):
                start, piece = end, self._read(path, end)
            elif turn and is_last and self._size(name) != end:
                start, piece = 0, self._read(path, 0)
            else:
                continue
            if piece:
                self._done[name] = (key, start, start + len(piece))
                out[f"{layout.SUBAGENTS}/{name}"] = clean(name, piece, self._redact)
        return out

    def _found(self) -> dict[str, tuple[Path, str]]:
        """Each file's path and the prompt id that its first line names."""
        if self._files is None:
            self._files = {}
            for folder, flat in self._folders:
                for path in _entries(folder, "agent-"):  # thousands of transcripts may lie there
                    if AGENT.fullmatch(path.name) and (prompt := self._belongs(path, flat)) is not None:
                        self._files[path.name] = (path, prompt)
        return self._files

    def _belongs(self, path: Path, flat: bool) -> str | None:
        """The prompt id, ``""`` where the file has none, or None where it is another session's."""
        if path.name.endswith(".meta.json"):
            lines = path.with_name(path.name.removesuffix(".meta.json") + ".jsonl")
            return self._belongs(lines, flat) if lines.exists() else None
        if path.name in self._done:
            return ""
        first = parse(self._read(path, 0, _FIRST_LINE).partition(b"\n")[0]) or {}
        if flat and first.get("sessionId") != self._agent_id:
            return None
        prompt = first.get("promptId")
        return prompt if isinstance(prompt, str) else ""

    def _read(self, path: Path, start: int, most: int | None = None) -> bytes:
        """The file's complete lines from `start` on; a file that is no JSONL as a whole."""
        data = _read(path, start, most)
        if path.suffix == ".jsonl" and most is None:
            return data[: data.rfind(b"\n") + 1]
        return data

    def _size(self, name: str) -> int:
        try:
            return self._found()[name][0].stat().st_size
        except OSError:
            return 0


def clean(name: str, data: bytes, redact: Redact) -> bytes:
    """The file, or a piece of it, as it is stored."""
    if not name.endswith(".jsonl"):
        return redact(data)[0]
    return b"".join(redact(raw)[0] + b"\n" for raw in data.split(b"\n")[:-1])


def results(transcript: Path, agent_id: str, lines: Sequence[Line], redact: Redact) -> dict[str, bytes]:
    """The large tool results that the lines name, which the client keeps in files of their own."""
    folder = transcript.parent / agent_id / "tool-results"
    if not PLAIN.fullmatch(agent_id):
        return {}
    names = [path.name for path in _entries(folder) if PLAIN.fullmatch(path.name)]
    named = [n for n in names if any(n.encode() in line.raw for line in lines)]
    return {f"{layout.FILES}/tool-results/{name}": redact(_read(folder / name, 0))[0] for name in named}


def live(config: Path, agent_id: str, slug: str, redact: Redact) -> dict[str, bytes]:
    """Plan, todos and tasks as they are now, by path in `live/`."""
    if not PLAIN.fullmatch(agent_id):
        return {}
    todos = [(p.name, p) for p in _entries(config / "todos", f"{agent_id}-agent-")]
    tasks = [(p.name, p) for p in _entries(config / "tasks" / agent_id) if p.suffix == ".json"]
    found = [(f"todos/{name}", p) for name, p in todos] + [(f"tasks/{name}", p) for name, p in tasks]
    if slug and PLAIN.fullmatch(slug):
        # An exported folder has it under a name of three words, if its own has another form.
        named = (config / "plans" / name for name in (f"{slug}.md", plan_name(slug)))
        found += [(f"plans/{slug}.md", p) for p in named if p.is_file()][:1]
    return {name: redact(_read(path, 0))[0] for name, path in found if PLAIN.fullmatch(name.partition("/")[2])}


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


def _entries(folder: Path, start: str = "") -> list[Path]:
    """What lies in a folder under names that begin so, by name; nothing where a link leads to it."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.startswith(start))
    except OSError:
        return []
    return [folder / name for name in names] if names and home.link_above(folder / "file") is None else []


def _read(path: Path, start: int, most: int | None = None) -> bytes:
    """The file's bytes; none where it is gone or no regular file, since what lies beside may go at any time."""
    try:
        with opened(path) as source:
            source.file.seek(start)
            return source.file.read(min(source.size - start, most or LONGEST_LINE) if source.size > start else 0)
    except SessgitError:
        return b""
