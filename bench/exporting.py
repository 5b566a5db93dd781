"""A session back as files: `restore` beside `cp` of the transcript, a page beside that of claude-code-log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import competitors
import sessions
import timing
from frame import Table
from timing import PASS, PASS_COMMAND, SESSGIT, Place, Scale, Took

LONG, SHORT = "b0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002"
PAGE_TURNS = 350
"""Of one page, 4.2 MB of transcript: the length of a day's work."""


def measure(scale: Scale) -> Iterator[Table]:
    """Each beside what does the same."""
    with timing.folder() as home:
        project, transcripts = home / "project", home / ".claude" / "projects" / "bench"
        project.mkdir()
        place = timing.here(home, project, more=competitors.QUIET)
        long, short = (transcripts / f"{name}.jsonl" for name in (LONG, SHORT))
        sessions.write(long, project, scale.turns)
        sessions.write(short, project, PAGE_TURNS, seed=2)
        place.run([*SESSGIT, "import", str(transcripts)])
        yield _restored(place, long, scale)
        yield from _page(place, short, scale)


def _restored(place: Place, path: Path, scale: Scale) -> Table:
    rows = {
        "cp": ["cp", str(path), "copy.jsonl"],
        PASS: PASS_COMMAND,
        "restore -o FILE": [*SESSGIT, "restore", LONG, "-o", "restored.jsonl"],
        "restore --verify": [*SESSGIT, "restore", LONG, "--verify"],
        "export jsonl": [*SESSGIT, "export", "jsonl", LONG, "-o", "exported.jsonl", "--force"],
    }
    size = f"{path.stat().st_size / 1e6:.0f} MB, {scale.turns:,} turns"
    return timing.of(f"a transcript of {size}, written back", _rounds(place, rows, scale.rounds), "cp")


def _page(place: Place, path: Path, scale: Scale) -> Iterator[Table]:
    program, other = competitors.command("claude-code-log"), competitors.named("claude-code-log")
    rows = {"export html": [*SESSGIT, "export", "html", SHORT, "-o", "page.html", "--force"]}
    title = f"a page of a transcript of {path.stat().st_size / 1e6:.1f} MB"
    if not program:
        yield timing.table(title, rows, place, scale.rounds)
        return
    rows = {
        other: [program, "convert", str(path), "-o", "other.html", "--no-cache"],
        "export html (goal 1 x)": rows["export html"],
        "export html --full": [*rows["export html"], "--full"],
        "export markdown": [*SESSGIT, "export", "markdown", SHORT, "-o", "page.md", "--force"],
    }
    yield timing.of(title, _rounds(place, rows, scale.rounds), other)


def _rounds(place: Place, rows: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[Took]]:
    took: dict[str, list[Took]] = {name: [] for name in rows}
    for _ in range(rounds):
        for name, command in rows.items():
            took[name].append(place.run(command))
            (place.cwd / "restored.jsonl").unlink(missing_ok=True)
    return took


if __name__ == "__main__":
    timing.run_alone(measure)
