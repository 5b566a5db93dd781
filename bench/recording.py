"""The next turn recorded, beside what one would do by hand, `git add -A && git commit`; and what a large transcript
needs of memory.

Both are whole processes, Python's start included. The recorder reads the event, waits for the disk, brings both indexes
level and packs where it is time; git takes the whole transcript in again, and nothing more.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import sessions
import timing
from frame import Table
from timing import SESSGIT, Place, Scale, Took

from sessgit import agents
from sessgit.record.install import install
from sessgit.store.context import Homes

SESSION = "b0000000-0000-4000-8000-000000000001"
BY_HAND = "git add -A && git commit"
_MEGABYTES_OF_TURN = 0.0122


def measure(scale: Scale) -> Iterator[Table]:
    """The next turn of transcripts of two lengths, and memory for a large one."""
    for turns in (scale.turns // 5, scale.turns):
        with timing.folder() as folder:
            yield _beside_git(Desk(folder, turns), scale.rounds)
    with timing.folder() as folder:
        yield _memory(Desk(folder, int(scale.large / _MEGABYTES_OF_TURN)), scale)


class Desk:
    """A client's folder with one transcript, and a store."""

    def __init__(self, home: Path, turns: int) -> None:
        project, config = home / "project", home / ".claude"
        project.mkdir()
        self.place, self.turns = timing.here(home, project), turns
        self.store, self.projects = config / "session-store", config / "projects"
        self.talk = sessions.write(self.projects / "bench" / f"{SESSION}.jsonl", project, turns)
        self.chance = random.Random(3)
        install(self.store, agents.client(Homes({"claude": config})), python=sys.executable)

    @property
    def megabytes(self) -> float:
        return self.talk.path.stat().st_size / 1e6

    def take_in(self) -> Took:
        """The whole transcript, for the first time."""
        return self.place.run([*SESSGIT, "import", str(self.talk.path)], whole=True)

    def record(self, *, whole: bool = False) -> Took:
        """One more turn, as the stub leaves it to a recorder."""
        self.turns += 1
        turn = sessions.turn(self.turns, self.chance)
        self.talk.turn(*turn)
        event = {"session_id": SESSION, "transcript_path": str(self.talk.path), "cwd": str(self.place.cwd)}
        event |= {"hook_event_name": "Stop", "last_assistant_message": turn[2]}
        (self.store / "spool" / "1-0.json").write_text(json.dumps(event))
        took = self.place.run([sys.executable, "-P", "-m", "sessgit.recorder", str(self.store)], whole=whole)
        assert not list((self.store / "spool").glob("*.json"))
        return took


def _beside_git(desk: Desk, rounds: int) -> Table:
    title = f"one more turn of a transcript of {desk.megabytes:.0f} MB, {desk.turns:,} turns"
    desk.take_in()
    git = Place(desk.projects, desk.place.env)
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    by_hand = ["sh", "-c", f"git add -A && git {' '.join(who)} commit -qm turn"]
    subprocess.run(["git", "init", "-q"], cwd=desk.projects, check=True)
    git.run(by_hand)
    desk.record()  # the index meets the session's newest turns once
    took: dict[str, list[Took]] = {BY_HAND: [], "the recorder (goal 1 x)": []}
    for _ in range(rounds):
        took["the recorder (goal 1 x)"].append(desk.record())
        took[BY_HAND].append(git.run(by_hand))
    return timing.of(title, took, BY_HAND)


def _memory(desk: Desk, scale: Scale) -> Table:
    title = f"memory for a transcript of {desk.megabytes:.0f} MB, {desk.turns:,} turns"
    took = {"importing it (goal 400 MB)": [desk.take_in()], "recording its next turn (goal 100 MB)": []}
    for _ in range(scale.few):
        took["recording its next turn (goal 100 MB)"].append(desk.record(whole=True))
    return timing.of(title, took, "")


if __name__ == "__main__":
    timing.run_alone(measure)
