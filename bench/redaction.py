"""What it costs that secrets are replaced before anything is written, and that purged values are kept out: the next
turn recorded, and transcripts recorded for the first time, with and without.

The rest of a recording stands in both, and Python's start too: it is what somebody waits for.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import sessions
import timing
from frame import Table
from recording import Desk
from timing import SESSGIT, Place, Scale, Took

from sessgit import agents
from sessgit.record.install import install
from sessgit.store import secret_filter, settings
from sessgit.store.context import Homes
from sessgit.store.layout import StorePaths

WITHOUT = "record, nothing replaced"
_GOAL = " (goal 1.15 x)"
_MEGABYTES_OF_TURN = 0.0122
_PURGED = ("tiger-" + "Lily/4711", "correct horse " + "battery", "x" + "9Kq-22801-zz")
_PART = 8
"""So much of what is imported elsewhere is enough here."""


def measure(scale: Scale) -> Iterator[Table]:
    """The next turn, and a first recording, as it is by itself, without redaction, and with values that were purged."""
    yield _next_turn(scale)
    with timing.folder() as home:
        project = home / "project"
        project.mkdir()
        place = timing.here(home, project)
        files, size = _files(scale, home, project)
        took: dict[str, list[Took]] = {WITHOUT: [], f"redacted{_GOAL}": [], "and three values purged": []}
        for _ in range(scale.rounds):
            for name, found in took.items():
                found.append(_recorded(place, home, files, redact=name != WITHOUT, purged=name.startswith("and")))
        yield timing.of(f"{size / 1e6:.0f} MB recorded for the first time", took, WITHOUT)


def _next_turn(scale: Scale) -> Table:
    with timing.folder() as plain, timing.folder() as usual:
        desks = {name: Desk(home, scale.turns // 5) for name, home in ((WITHOUT, plain), (f"redacted{_GOAL}", usual))}
        settings.change_setting(StorePaths(desks[WITHOUT].store), "record.redact", False)
        for desk in desks.values():
            desk.take_in()
            desk.record()
        took: dict[str, list[Took]] = {name: [] for name in desks}
        for _ in range(scale.rounds):
            for name, desk in desks.items():
                took[name].append(desk.record())
        return timing.of("the next turn, by the recorder", took, WITHOUT)


def _files(scale: Scale, home: Path, project: Path) -> tuple[Path, int]:
    if scale.transcripts is not None:
        return scale.transcripts, sum(path.stat().st_size for path in scale.transcripts.rglob("*.jsonl"))
    turns = int(scale.megabytes / _PART / _MEGABYTES_OF_TURN)
    path = sessions.write(home / "given" / "b0000000-0000-4000-8000-000000000001.jsonl", project, turns).path
    return path, path.stat().st_size


def _recorded(place: Place, home: Path, files: Path, *, redact: bool, purged: bool) -> Took:
    store = home / ".claude" / "session-store"
    shutil.rmtree(store, ignore_errors=True)
    install(store, agents.client(Homes({"claude": home / ".claude"})), python=sys.executable)
    if not redact:
        settings.change_setting(StorePaths(store), "record.redact", False)
    if purged:
        secret_filter.deny_values(StorePaths(store), _PURGED, 0)
    command = " ".join(map(shlex.quote, [*SESSGIT, "import", str(files)]))
    return place.run(["sh", "-c", f"{command} || test $? = 1"])  # a folder may hold files that are no transcripts


if __name__ == "__main__":
    timing.run_alone(measure)
