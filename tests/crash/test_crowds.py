"""Many at once: nothing is lost, nobody sees a half state, nobody waits for ever."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable

from crashchild import Job
from crashstories import hub, installed
from crashworld import LONG, World
from plain import run_git

from sessgit.cli import app

_SECONDS = 60.0 if LONG else 3.0
_ROUNDS, _RECORDERS = (20, 50) if LONG else (2, 10)
_LONGEST = 30.0
"""Seconds that nobody waits, in a crowd on a machine of two cores."""
SESSIONS = [f"{n}{n}{n}{n}{n}{n}{n}{n}-0000-4000-8000-000000000000" for n in range(1, 9)]
QUIET = "9a9a9a9a-0000-4000-8000-000000000000"


def turns(world: World, session: str) -> list[str]:
    """The prompts of a session as its commits have them, first to last."""
    words = run_git(
        world.store, "log", "--first-parent", "--format=%(trailers:key=Prompt,valueonly)", f"refs/heads/{session}"
    )
    return list(dict.fromkeys(reversed(words.split())))


def test_many_recorders_on_one_session(world: World) -> None:
    installed(world)
    talk = world.talk()
    waits = list[float]()

    def one() -> None:
        begun = time.monotonic()
        world.event("Stop", talk)
        ended = world.run(world.recorder())
        waits.append(time.monotonic() - begun)
        assert (ended.code, ended.said) == (0, "")

    for number in range(_ROUNDS):
        talk.turns(f"prompt {number}")
        talk.save(world.transcripts)
        threads = [threading.Thread(target=one) for _ in range(_RECORDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(waits) == _ROUNDS * _RECORDERS
    assert turns(world, talk.session) == talk.prompts
    assert not list(world.spool.glob("*.json"))
    assert not (world.store / "log").exists()
    assert world.fsck() == ""
    print(f"{_RECORDERS} recorders on one session, {_ROUNDS} times: the worst waited {max(waits):.1f} s")


class Crowd:
    """Threads that do something again and again until the time is over; each counts, and notes its longest wait."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.until = time.monotonic() + _SECONDS
        self.count = Counter[str]()
        self.worst = defaultdict[str, float](float)
        self.failures = list[str]()

    def run(self, name: str, job: Job, *codes: int) -> str:
        begun = time.monotonic()
        ended = self.world.run(job)
        self.worst[name] = max(self.worst[name], time.monotonic() - begun)
        self.count[name] += 1
        if ended.code not in (0, *codes):
            self.failures.append(f"{name}: {job.words}: {ended.code}: {ended.said}")
        return ended.said

    def go(self, *works: Callable[[], None]) -> None:
        def loop(work: Callable[[], None]) -> None:
            try:
                while time.monotonic() < self.until:
                    work()
            except Exception as error:
                self.failures.append(repr(error))

        threads = [threading.Thread(target=loop, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


PROGRAM = """
import sys, time
from sessgit import Store
store = Store.open()
session = store.load_session("programs") if any(s.name == "programs" for s in store.sessions()) else None
session = session or store.create_session(name="programs")
for number in range(3):
    with session.turn("program"):
        cell = session.begin_cell(type="repl", operation="peek")
        session.complete_cell(cell, number)
seen = [turn.number for turn in store.load_session("programs")]
assert seen == list(range(1, len(seen) + 1)), seen
"""


def test_everything_at_once(world: World) -> None:  # noqa: PLR0915 - one crowd
    """Eight sessions grow and are recorded, while all else that writes goes on, and readers look."""
    installed(world)
    hub(world)
    talks = {session: world.talk(session) for session in SESSIONS}
    for talk in [*talks.values(), world.talk(QUIET)]:
        talk.turns("zebra-4711" if talk.session == QUIET else "first").save(world.transcripts)
    world.done(world.cli("import"))
    program = world.root / "program.py"
    program.write_text(PROGRAM)
    crowd = Crowd(world)
    seen = dict.fromkeys(SESSIONS, 0)

    def recording(session: str) -> Callable[[], None]:
        def work() -> None:
            talk = talks[session]
            talk.turns(f"prompt {len(talk.prompts)}")
            with (world.transcripts / f"{session}.jsonl").open("ab") as file:
                file.write(talk.data[file.tell() :])
            world.event("Stop", talk)
            crowd.run("recorder", world.recorder())

        return work

    def reading() -> None:
        for session, least in list(seen.items()):
            said = crowd.run("log", world.cli("log", session, "--json"))
            if said.startswith("{"):
                document, _ = json.JSONDecoder().raw_decode(
                    said
                )  # that somebody records just now may be told behind it
                numbers = sorted({turn["turn"] for turn in document["turns"]})
                if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < least:
                    crowd.failures.append(f"{session}: {numbers}, after {least}")
                seen[session] = len(numbers)
        said = crowd.run("ls", world.cli("ls", "--all"))
        if any(session[:8] not in said for session in SESSIONS):
            crowd.failures.append(f"ls: {said}")
        crowd.run("search", world.cli("search", "prompt"))
        crowd.run("show", world.cli("show", f"{SESSIONS[0]}@1"))

    def keeping() -> None:
        crowd.run("archive", world.cli("archive", QUIET), 3, 7)
        crowd.run("unarchive", world.cli("unarchive", QUIET), 3, 7)
        crowd.run("rename", world.cli("rename", QUIET, f"n{crowd.count['rename']}"), 3, 7)
        crowd.run("undo", world.cli("undo"), 3, 4, 7)
        crowd.run("delete", world.cli("delete", QUIET, "--yes"), 3, 4, 7)
        crowd.run("undo", world.cli("undo"), 3, 4, 7)
        crowd.run("gc", world.cli("gc", now=0), 3)
        crowd.run("gc --prune", world.cli("gc", "--prune", "--yes", now=0), 3)
        if "purge" in app.COMMANDS:
            crowd.run("purge", world.cli("purge", "zebra-4711", "--yes"), 1, 3, 4, 7)

    def moving() -> None:
        crowd.run("import", world.cli("import"))
        crowd.run("push", world.cli("push", "hub", *SESSIONS[:4]), 3, 7)
        crowd.run("pull", world.cli("pull", "hub"), 3, 7)

    def programming() -> None:
        crowd.run("program", world.program(program))

    crowd.go(*map(recording, SESSIONS), reading, reading, keeping, moving, programming)
    for name, count in crowd.count.items():
        print(f"{name:12} {count:5} times, the worst took {crowd.worst[name]:.1f} s")
    assert crowd.failures == []
    assert max(crowd.worst.values()) < _LONGEST
    for session, talk in talks.items():
        world.next_event(talk)
        assert turns(world, session) == talk.prompts, session
        world.done(world.cli("restore", session, "--verify"))
    assert not list(world.spool.glob("*.json"))
    world.done(world.cli("gc", now=0))
    assert [name for name in world.leftovers() if not name.endswith(".append")] == []
    assert world.fsck() == ""
    log = world.store / "log"
    assert not log.exists() or "a bug" not in log.read_text()
