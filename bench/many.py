"""A store of many sessions, and how fast it is listed and searched: part of `make bench`, or alone.

The store is written by `git fast-import`, since recording so many sessions one by one would take minutes. Its
words are made up: 60,000 of them, the n-th about n times rarer than the first, as words of people and programs are.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import frame
import timing
from conversation import Call, Conversation
from frame import BenchError, Figure, Table
from timing import SESSGIT, Place, Scale, Took

from sessgit import agents
from sessgit.agents.claude import cells
from sessgit.agents.claude.lines import parsed
from sessgit.agents.cutter import folder_files
from sessgit.branch import fork as forks
from sessgit.history import search
from sessgit.history.resolve import ForkPoint
from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as states
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.progress import no_progress
from sessgit.store import layout, refs
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

_VOCABULARY = 60_000
SPACE = uuid.UUID("6a2f7c11-1f0e-4d2c-8b3a-9f8e7d6c5b4a")
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ai", "or", "en")]


@dataclass(frozen=True)
class Made:
    """A store that was made: the bytes of its transcripts, and words of it by how often they occur."""

    raw: int
    frequent: str
    middling: str
    rare: str


class Texts:
    """Made-up prose and code, joined from passages so that gigabytes of it cost little."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.words = self._vocabulary()
        weights = list(itertools.accumulate(1 / (n + 3) for n in range(len(self.words))))
        choose = self.chance.choices
        self.passages = [
            " ".join(choose(self.words, cum_weights=weights, k=self.chance.randint(8, 60))) for _ in range(20_000)
        ]

    def _vocabulary(self) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < _VOCABULARY:
            word = "".join(self.chance.choices(_SYLLABLES, k=self.chance.choice((1, 2, 2, 3, 3, 4))))
            shape = self.chance.random()
            if shape < 0.1:
                word += f"_{self.chance.choice(_SYLLABLES)}{self.chance.randint(0, 99)}"
            elif shape < 0.15:
                word += self.chance.choice((".py", ".rs", ".md"))
            found[word] = None
        return list(found)

    def text(self, passages: int) -> str:
        return ".\n".join(self.chance.choices(self.passages, k=passages))

    def sentence(self) -> str:
        return " ".join(self.chance.choice(self.passages).split()[:12])


def make(path: Path, sessions: int, *, seed: int = 1) -> Made:
    """Makes a store of so many sessions at `path`, of 35 KB each on the average."""
    stores.create_store(path)
    words = Texts(seed)
    process = subprocess.Popen(
        ["git", "-C", str(path), "fast-import", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    raw = 0
    for number in range(sessions):
        for data, size in _session(words, number, path):
            process.stdin.write(data)
            raw += size
    process.stdin.close()
    if process.wait():
        raise BenchError("git fast-import failed")
    _fork(path, sessions)
    subprocess.run(["git", "-C", str(path), "pack-refs", "--all"], check=True)
    return Made(raw, words.words[0], words.words[400], words.words[40_000])


def _fork(path: Path, sessions: int) -> None:
    """Forks each fortieth session, for `tree`."""
    store = Store(path)
    for number in range(0, sessions, 40):
        ident = str(uuid.uuid5(SPACE, str(number)))
        tip = store.repo.ref(layout.head_ref(ident)) or ""
        state = store.state(tip)
        plan = forks.ForkPlan(str(uuid.uuid5(SPACE, f"fork {number}")), "", time.time(), None)
        forks.fork_session(store, state, ForkPoint(ident, state.turns, tip), plan)


def _session(words: Texts, number: int, path: Path) -> Iterator[tuple[bytes, int]]:
    """The commands that make one session, turn by turn, and the bytes of its transcript."""
    chance = words.chance
    ident = str(uuid.uuid5(SPACE, str(number)))
    project = Path(f"/home/ada/project-{number % 40}")
    talk = Conversation(ident, project, path, clock=Conversation.clock.replace(day=1 + number % 28))
    state = Session(ident, ident, project=str(project), title=words.sentence(), rules={"cut": 1, "redact": 1})
    for turn in range(1, min(40, 1 + int(chance.expovariate(0.45))) + 1):
        raws = [json.dumps(line, separators=(",", ":")).encode() for line in talk.lines(*one_turn(words))]
        body = parsed(raws)
        told = cells.describe(body)
        state = states.after_turn(state, told, turn)
        files = {
            f"{layout.turn_folder(turn)}/{name}": bytes(data)
            for name, data in folder_files(agents.of_programs(), [], body, told).items()
        }
        files[layout.STATE], files[layout.FORMAT_FILE] = states.dumps(state), b"1\n"
        trailers = (("Session", ident), ("Turn", str(turn)), ("Event", "turn"), ("Prompt", told.prompt_uuid))
        message = messages.format_message(Message(f"turn {turn}: {canonical.one_line(told.prompt, 200)}", trailers))
        when = int(canonical.seconds(told.time) or 0)
        yield _commit(ident, message, when, files), sum(len(data) + 1 for data in raws)


def one_turn(words: Texts) -> tuple[str, list[Call], str]:
    """A prompt, one to five calls, and an answer, of some 10 KB."""
    chance = words.chance
    calls: list[Call] = []
    for _ in range(chance.randint(1, 5)):
        file, old, new = f"src/{chance.choice(words.words)}.py", words.text(2), words.text(2)
        kinds: list[Call] = [
            ("Read", {"file_path": file}, words.text(chance.randint(4, 30))),
            ("Bash", {"command": f"pytest {words.sentence()}"}, words.text(chance.randint(1, 20))),
            ("Edit", {"file_path": file, "old_string": old, "new_string": new}, "The file was updated"),
        ]
        calls.append(chance.choice(kinds))
    return words.sentence(), calls, words.text(2)


def _commit(ident: str, message: str, when: int, files: Mapping[str, bytes]) -> bytes:
    text = message.encode()
    parts = [b"commit refs/heads/%s\ncommitter sessgit <sessgit@localhost> %d +0000\n" % (ident.encode(), when)]
    parts.append(b"data %d\n%s\n" % (len(text), text))
    for name, data in files.items():
        parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data))
    return b"".join(parts)


def measure(scale: Scale) -> Iterator[Table]:
    """The indexes from nothing, questions in one process, whole commands, and the archive."""
    with timing.folder() as name:
        path, home = name / "store", name / "home"
        home.mkdir()
        made = make(path, scale.sessions)
        size = f"{scale.sessions:,} sessions"
        yield _build(path, made, f"{size}, {made.raw / 1e6:.0f} MB of transcripts")
        yield _questions(path, made, scale.rounds)
        place = timing.here(home, more={"SESSGIT_STORE": str(path)})
        yield _commands(place, made, scale.rounds, size)
        yield _archive(path, place, size)


def _build(path: Path, made: Made, title: str) -> Table:
    """The index and the text index from nothing."""
    started = time.perf_counter()
    with _opened(path) as index:
        index.sync()
        synced = time.perf_counter()
        search.update_fulltext(index)
    done = time.perf_counter()
    size = StorePaths(path).text.stat().st_size
    times = {"the index, from nothing": [synced - started], "the text index, from nothing": [done - synced]}
    rate = Figure("its rate, of transcripts", made.raw / 1e6 / (done - synced), "MB/s")
    return Table(title, (*frame.table("", times).figures, rate, Figure("its size over theirs", size / made.raw, "x")))


def _questions(path: Path, made: Made, rounds: int) -> Table:
    """A search as `sessgit search` asks it, with its snippets, in a process that asked before."""
    queries = {
        "a rare word": made.rare,
        "a word in a quarter of the turns": made.middling,
        "a word in all turns": made.frequent,
        "both of these": f"{made.middling} {made.frequent}",
        "as a phrase": f'"{made.middling} {made.frequent}"',
        "a beginning": f"{made.middling[:4]}*",
        "a rare word or another": f"{made.rare} OR {made.middling}",
        "a frequent word, without another": f"{made.frequent} -{made.middling}",
    }
    figures = []
    with _opened(path) as index:
        index.sync()
        for name, query in queries.items():
            times = []
            for _ in range(rounds):
                started = time.perf_counter()
                found = search.search(index, query, search.SearchScope(), 20, 160, no_progress)
                times.append(time.perf_counter() - started)
            figures.append(frame.figure(f"{name} (goal 50 ms)", times, turns=found.total))
    return Table(
        "searches in one process, with 20 snippets",
        tuple(figures),
        "the count ends early where there are very many turns",
    )


def _commands(place: Place, made: Made, rounds: int, size: str) -> Table:
    """Whole commands, Python's start included."""
    rows = {
        "sessgit --version": ["--version"],
        "ls --all -n 20 (goal 250 ms)": ["ls", "--all", "-n", "20"],
        "ls --all --json": ["ls", "--all", "--json"],
        "tree --all (goal 250 ms)": ["tree", "--all"],
        "status": ["status"],
        "stats": ["stats"],
        "search, rare (goal 250 ms)": ["search", made.rare],
        "search, frequent (goal 250 ms)": ["search", made.frequent],
        "search, two words (goal 250 ms)": ["search", made.middling, made.frequent],
    }
    commands = {name: [*SESSGIT, *arguments] for name, arguments in rows.items()}
    return timing.table(f"whole commands, {size}", commands, place, rounds)


def _archive(path: Path, place: Place, size: str) -> Table:
    """All sessions in one transaction, and back; once each, and what of it is git's own, on a copy."""
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    names = {oid: ref.removeprefix(layout.HEADS) for ref, oid in refs.read_all(copy, layout.HEADS).items()}
    moves = (f"create {layout.archive_ref(n)} {oid}\ndelete {layout.head_ref(n)} {oid}\n" for oid, n in names.items())
    update = ["git", "--git-dir", str(copy), "update-ref", "--stdin"]
    took: dict[str, list[Took]] = {"git update-ref of the same refs": [place.run(update, "".join(moves))]}
    for name, arguments in {
        "archive all of them": ["archive", "--all", "--older-than", "1d"],
        "ls, once they are": ["ls", "--all", "--archived", "-n", "20"],
        "undo of that": ["undo"],
        "ls, once it is undone": ["ls", "--all", "-n", "20"],
    }.items():
        took[name] = [place.run([*SESSGIT, *arguments])]
    return timing.of(f"the archive, {size}, once each", took, next(iter(took)))


@contextmanager
def _opened(path: Path) -> Iterator[Index]:
    store = Store(path)
    index = Index(path, lambda: store)
    try:
        yield index
    finally:
        index.close()


if __name__ == "__main__":
    timing.run_alone(measure)
