"""Importing beside the first sync of agentsview, and searching what both took in.

The transcripts are made up, with words as frequent as those of people and programs are (`many.py`). Real ones can be
given, `make bench TRANSCRIPTS=DIR`: they are then taken as well, each file once.
"""

from __future__ import annotations

import hashlib
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import competitors
import frame
import many
import rewording
import timing
from conversation import Conversation
from frame import BenchError, Figure, Table
from timing import PASS, PASS_COMMAND, SESSGIT, Place, Scale, Took

from sessgit.store import locks, maintenance
from sessgit.store.layout import StorePaths

OTHER = competitors.named("agentsview")
_POLL = 0.1
TURNS = 60
"""Of each made-up session, 0.4 MB."""
SMALL = 20_000
"""Small turns, a prompt and an answer of some 30 words each, in sessions of 200."""


def measure(scale: Scale) -> Iterator[Table]:
    """Imports of several kinds of transcripts, and searches."""
    with timing.folder() as root:
        words = many.Texts(1)
        made = Both(root / "made")
        write(made.projects, words, scale.megabytes)
        yield from made.take_in(f"importing {made.size} of made-up transcripts", scale.few)
        yield from _searched(made, words, scale.rounds)
        small = Both(root / "small")
        yield _rate(small, _write_small(small.projects, words, SMALL if scale.sessions > 1_000 else 2_000), scale.few)
        if scale.transcripts is not None:
            real = Both(root / "real", real=True)
            _copy(scale.transcripts, real.projects)
            yield from real.take_in(f"importing {real.size} of real transcripts", scale.few)
            many_real = Both(root / "reworded", real=True)
            rewording.write(real.files, many_real.projects, scale.megabytes)
            title = f"importing {many_real.size} of real transcripts, each several times in other words"
            yield from many_real.take_in(title, scale.few)


class Both:
    """The same transcripts for both programs, each with a home and a store of its own."""

    def __init__(self, root: Path, *, real: bool = False) -> None:
        self.real = real
        self.root, self.projects = root, root / "own" / ".claude" / "projects"
        self.projects.mkdir(parents=True)
        self.other_home = root / "other"
        (self.other_home / ".claude").mkdir(parents=True)
        (self.other_home / ".claude" / "projects").symlink_to(self.projects)
        self.store = root / "store"
        self.own = timing.here(root / "own", more={"SESSGIT_STORE": str(self.store)})
        self.other = timing.here(self.other_home, more=competitors.QUIET)
        self.program = competitors.command("agentsview")
        self.objects: tuple[int, ...] = ()
        """The bytes of objects right after the last import, and once they are packed again."""

    @property
    def files(self) -> list[Path]:
        return sorted(self.projects.rglob("*.jsonl"))

    @property
    def size(self) -> str:
        return f"{sum(path.stat().st_size for path in self.files) / 1e6:,.0f} MB ({len(self.files):,} sessions)"

    def take_in(self, title: str, rounds: int) -> Iterator[Table]:
        """Both from nothing, in turn; the stores of the last round stay."""
        own = "sessgit import (goal 1.2 x)" if self.program else "sessgit import"
        rows = {OTHER: self.sync, own: self.import_} if self.program else {own: self.import_}
        took: dict[str, list[Took]] = {name: [] for name in rows}
        for _ in range(rounds):
            for name, run in rows.items():
                took[name].append(run())
        found = timing.of(title, took, OTHER if self.program else "")
        raw = sum(path.stat().st_size for path in self.files)
        sizes = {OTHER: self.other_home / ".agentsview", "the store, both indexes included": self.store}
        parts = timing.of("", self._parts(), "").figures if self.store.exists() else ()
        right, later = (" (goal .125 x)", " (goal .115 x)") if self.real else ("", "")
        names = f"objects right after the import{right}", f"once packed again in the background{later}"
        objects = tuple(
            frame.figure(name, [size / raw], unit="x") for name, size in zip(names, self.objects, strict=True)
        )
        disk = (Figure(f"on disk, {name}", _bytes(path) / raw, "x") for name, path in sizes.items() if path.exists())
        yield Table(found.title, (*found.figures, *parts, *objects, *disk), "memory is that of all processes at once")

    def _parts(self) -> dict[str, list[Took]]:
        """What git's packing of the last import takes, and the text index that follows it."""
        packing = self.own.run([*SESSGIT, "gc"], whole=True)
        StorePaths(self.store).text.unlink()
        indexing = self.own.run([*SESSGIT, "search", "nothing"], whole=True, good=1)
        return {"of that, packing all once": [packing], "after that, indexing the words": [indexing]}

    def import_(self) -> Took:
        """All of the client's transcripts into a new store; the text index of many follows in the background."""
        shutil.rmtree(self.store, ignore_errors=True)
        took = self.own.run([*SESSGIT, "import"], whole=True, good=1 if self.real else 0)
        sizes = [_objects(self.store)]
        while locks.is_repack_running(StorePaths(self.store)) or maintenance.is_repack_due(self.store):
            time.sleep(_POLL)
        self.objects = *sizes, _objects(self.store)
        return took

    def sync(self, *, anew: bool = True) -> Took:
        """The same by agentsview, without a server that stays; or only what is new."""
        if anew:
            shutil.rmtree(self.other_home / ".agentsview", ignore_errors=True)
        alone = Place(self.other.cwd, {**self.other.env, "AGENTSVIEW_NO_DAEMON": "1"})
        return alone.run([self.program, "sync"], whole=True)

    @contextmanager
    def serving(self) -> Iterator[bool]:
        """Whether agentsview searches: it asks a server of its own, which runs until the end."""
        try:
            if self.program:
                self.other.run([self.program, "daemon", "start"])
        except BenchError as error:
            competitors.absent[f"{OTHER} in searches"] = f"its server does not start ({error})".splitlines()[0][:200]
            self.program = ""
        try:
            yield bool(self.program)
        finally:
            if self.program:
                self.other.run([self.program, "daemon", "stop"])


def _searched(both: Both, words: many.Texts, rounds: int) -> Iterator[Table]:
    """Whole commands: agentsview's asks its server, which has all open; sessgit opens its index."""
    asked = {"a rare word": words.words[40_000], "a frequent word": words.words[3]}
    with both.serving() as served:
        for name, word in asked.items():
            title = f"searching them, whole commands: {name}"
            own = [*SESSGIT, "search", word]
            if not served:
                yield timing.table(title, {"sessgit search": own}, both.own, rounds)
                continue
            search = [both.program, "session", "search", word, "--limit", "20"]
            everywhere = f"{OTHER}, in all it has"
            rows = {everywhere: search, f"{OTHER}, words of messages only": [*search, "--fts"]}
            took: dict[str, list[Took]] = {name: [] for name in (*rows, PASS, "sessgit search (goal 1 x)")}
            for _ in range(rounds):
                took[PASS].append(both.own.run(PASS_COMMAND))
                took["sessgit search (goal 1 x)"].append(both.own.run(own))
                for key, command in rows.items():
                    took[key].append(both.other.run(command))
            yield timing.of(title, took, everywhere)


def _rate(both: Both, turns: int, rounds: int) -> Table:
    took = [both.import_() for _ in range(rounds)]
    rates = [turns / each.seconds for each in took]
    row = frame.figure(
        "sessgit import (goal at least 1,700 turns/s)", rates, unit="turns/s", peak=max(each.peak for each in took)
    )
    return Table(f"importing {turns:,} small turns, {both.size}", (row,))


def write(projects: Path, words: many.Texts, megabytes: int) -> None:
    """So many megabytes of made-up sessions."""
    written = number = 0
    while written < megabytes * 1e6:
        talk = _talk(projects, number)
        for _ in range(TURNS):
            talk.turn(*many.one_turn(words))
        written += talk.path.stat().st_size
        number += 1


def _write_small(projects: Path, words: many.Texts, turns: int) -> int:
    for number in range(turns // 200):
        talk = _talk(projects, number)
        for _ in range(200):
            talk.turn(words.sentence(), [], " ".join((words.sentence(), words.sentence())))
    return turns


def _talk(projects: Path, number: int) -> Conversation:
    name = str(uuid.uuid5(many.SPACE, f"talk {number}"))
    cwd = Path(f"/home/ada/project-{number % 40}")
    return Conversation(name, cwd, projects / str(cwd).replace("/", "-") / f"{name}.jsonl")


def _copy(transcripts: Path, projects: Path) -> None:
    """Every transcript of a folder, laid as the client does: a session's file has its id as its name."""
    for path in sorted(transcripts.rglob("*.jsonl")):
        named = hashlib.sha256(str(path.relative_to(transcripts)).encode()).digest()[:16]
        folder = projects / f"-{path.relative_to(transcripts).parts[0]}"
        folder.mkdir(exist_ok=True)
        shutil.copyfile(path, folder / f"{uuid.UUID(bytes=named, version=4)}.jsonl")


def _objects(store: Path) -> int:
    return sum(path.stat().st_size for path in (store / "objects").rglob("*") if path.is_file())


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    timing.run_alone(measure)
