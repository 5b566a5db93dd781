"""How small a packed store is, beside what whole lines would take: part of `make bench`, or alone.

    python bench/size.py FOLDER [WINDOW...]

FOLDER holds transcripts, best real ones: made-up ones have no shared turns as files and their versions have. Each
transcript is recorded as it is everywhere, with long strings as files of their own; once more with whole lines, all
else alike; and once more as lines alone, a blob for each turn, without states, cells and commits of turns. What is
stored is packed as `gc` does it, the others with `git repack -adfF`, all at the windows of git's choice (10) and
others. Without FOLDER the conversations of `sessions.py` stand in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import frame
import sessions
import timing
from frame import Figure, Table
from timing import Scale, Took

from sessgit.agents.line import parse
from sessgit.model import canonical, ids, json_strings
from sessgit.model.progress import no_progress
from sessgit.record import fork_detection
from sessgit.record.import_files import TranscriptFile
from sessgit.record.imports import ImportRun
from sessgit.store import maintenance
from sessgit.store import store as stores
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.store import Store

WINDOWS = (10, 50, 250)
WHOLE = "whole lines, all else alike"
_STORED = "as stored"
_NO_LIMIT = 1 << 60


def main() -> None:
    windows = [int(given) for given in sys.argv[2:]] or list(WINDOWS)
    with timing.folder() as root:
        source = Path(sys.argv[1]) if sys.argv[1:] else _made_up(root / "transcripts")
        for found in sizes(root, source, windows, timing.FULL, real=bool(sys.argv[1:])):
            print(frame.shown(found), end="\n\n")


def measure(scale: Scale) -> Iterator[Table]:
    """Sizes at each window, of real transcripts where there are any."""
    real = scale.transcripts is not None
    with timing.folder() as root:
        yield from sizes(root, scale.transcripts or _made_up(root / "transcripts"), list(WINDOWS), scale, real=real)


def sizes(root: Path, source: Path, windows: list[int], scale: Scale, *, real: bool) -> Iterator[Table]:
    """Packed sizes at each window beside those of whole lines, and what cutting costs. The goals of sizes are for real
    transcripts."""
    files = [_file(path) for path in sorted(source.rglob("*.jsonl")) if _is_transcript(path)]
    raw = sum(file.size for file in files)
    yield from _recording(root, files, windows[0], scale)
    yield from _restoring(root, sorted(files, key=lambda file: file.size), scale)
    reading = _reading(root, scale)
    _lines(root / "lines", Store(root / "cut"))
    title = f"{len(files)} {'real' if real else 'made-up'} transcripts, {raw / 1e6:.0f} MB, packed"
    rows = {WHOLE: "whole", "lines alone, a blob a turn": "lines", f"{_STORED}{' (goal .8 x)' if real else ''}": "cut"}
    for window in windows:
        pack = dict.fromkeys(rows.values(), _packed_by_git) | {"cut": _packed}
        packed = {name: pack[place](root / place, window) / 1e6 for name, place in rows.items()}
        known = [
            frame.figure(name, [size], unit="MB", base=packed[WHOLE], competitor=WHOLE) for name, size in packed.items()
        ]
        share = Figure(f"{_STORED}, over the transcripts", packed[list(rows)[-1]] * 1e6 / raw, "x")
        yield Table(f"{title} at window {window}", (*known, share))
    yield frame.table("reading all turns back, seconds of the processor", reading, WHOLE)


def _recording(root: Path, files: list[TranscriptFile], window: int, scale: Scale) -> Iterator[Table]:
    """What it takes to record the transcripts, and to pack what was recorded; leaves a store of each kind."""
    recording: dict[str, list[float]] = {WHOLE: [], _STORED: []}
    packing: dict[str, list[float]] = {WHOLE: [], _STORED: []}
    for _ in range(scale.few):
        for name, place, limit, pack in (
            (WHOLE, root / "whole", _NO_LIMIT, _packed_by_git),
            (_STORED, root / "cut", json_strings.LIMIT, _packed),
        ):
            shutil.rmtree(place, ignore_errors=True)
            recording[name].append(_recorded(place, files, limit))
            packing[name].append(recording[name][-1] + _working(partial(pack, place, window)))
    yield frame.table("recording them, seconds of the processor", recording, WHOLE)
    packed = {WHOLE: packing[WHOLE], f"{_STORED} (goal 1 x)": packing[_STORED]}
    yield frame.table("recording and packing them, seconds of all processors", packed, WHOLE)


def _restoring(root: Path, files: list[TranscriptFile], scale: Scale) -> Iterator[Table]:
    """What `restore -o` takes for each of the conversations, one after the other, and for the last of them alone. A
    hundredth is what rounds are apart."""
    largest = f"restore -o of the largest, {files[-1].size / 1e6:.1f} MB"
    yield timing.of(largest, _restored(root, files[-1:], scale.rounds * 3, ""), WHOLE)
    every = _restored(root, files, scale.few * 2, " (goal 1 x, at most 1.01 x)")
    yield timing.of(f"restore -o of {len(files)} conversations, one command each", every, WHOLE)


def _restored(root: Path, files: list[TranscriptFile], rounds: int, goal: str) -> dict[str, list[Took]]:
    """What a round takes, restored in turn from the store of whole lines and from the other one."""
    took: dict[str, list[Took]] = {WHOLE: [], f"{_STORED}{goal}": []}
    places = [timing.here(root, more={"SESSGIT_STORE": str(root / name)}) for name in ("whole", "cut")]
    restored = root / "restored.jsonl"
    for _ in range(rounds):
        every: list[list[Took]] = [[], []]
        for number, file in enumerate(files):
            command = [*timing.SESSGIT, "restore", ids.session_id(file.agent_id), "-o", str(restored)]
            for at in (number % 2, 1 - number % 2):
                every[at].append(places[at].run(command))
                restored.unlink()
        for measured, runs in zip(took.values(), every, strict=True):
            measured.append(Took(sum(each.seconds for each in runs), max(each.peak for each in runs),
                                 sum(each.work for each in runs)))  # fmt: skip
    return took


def _reading(root: Path, scale: Scale) -> dict[str, list[float]]:
    """What it takes the processor to read all turns of both stores."""
    took: dict[str, list[float]] = {WHOLE: [], _STORED: []}
    for _ in range(scale.rounds):
        took[WHOLE].append(_read(root / "whole"))
        took[_STORED].append(_read(root / "cut"))
    return took


def _made_up(folder: Path) -> Path:
    for number in range(20):
        name = f"b0000000-0000-4000-8000-0000000000{number:02}"
        sessions.write(folder / f"{name}.jsonl", Path("/home/ada/project"), 50, seed=number)
    return folder


def _is_transcript(path: Path) -> bool:
    with path.open("rb") as file:
        return any(data and isinstance(data.get("type"), str) for data in map(parse, file.read(1 << 20).split(b"\n")))


def _file(path: Path) -> TranscriptFile:
    path = path.resolve()
    return TranscriptFile(path, path.stem if len(path.stem) > 30 else str(path.relative_to("/")).replace("/", "-"),
                path.stat().st_size, fork_detection.first_prompt(path))  # fmt: skip


def _recorded(place: Path, files: list[TranscriptFile], limit: int) -> float:
    """Records the transcripts in a store at `place`, strings cut from so many bytes on; the seconds of this process."""
    stores.create_store(place)
    store = Store(place)
    index = Index(place, lambda: store)
    usual, json_strings.LIMIT = json_strings.LIMIT, limit
    began = time.process_time()
    try:
        ImportRun(Context(index, Homes({"claude": place})), no_progress, [], processes=0).run(files)
    finally:
        json_strings.LIMIT = usual
        index.close()
    return time.process_time() - began


def _lines(place: Path, store: Store) -> None:
    """The turns of a store in another one: of each session a commit with a file of lines for each turn."""
    stores.create_store(place)
    bare = Store(place).repo
    index = Index(store.path, lambda: store)
    index.sync()
    for branch in index.branches():
        found: dict[str, tuple[str, bool] | None] = {}
        for row in index.turns(branch.name):
            lines = store.lines(branch.tip, row.turn)
            found[f"{row.turn:06d}.jsonl"] = bare.write_blob(canonical.join_lines([*lines.before, *lines.body])), False
        bare.move(f"refs/heads/{branch.name}", None, bare.write_commit(bare.edit_tree(None, found), [], branch.name, 1))
    index.close()


def _packed(place: Path, window: int) -> int:
    maintenance.pack_everything(place, search=[*maintenance.FULL_SEARCH, f"--window={window}"])
    return _size(place)


def _working(task: Callable[[], object]) -> float:
    """The seconds that processors worked at it, for this process and those that it started."""
    began = sum(os.times()[:4])
    task()
    return sum(os.times()[:4]) - began


def _packed_by_git(place: Path, window: int) -> int:
    plain = ["git", "-C", str(place), "-c", "pack.compression=9", "repack", "-q", "-a", "-d", "-f", "-F"]
    subprocess.run([*plain, f"--window={window}"], check=True, capture_output=True)
    return _size(place)


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in (place / "objects" / "pack").glob("*.pack"))


def _read(place: Path) -> float:
    store = Store(place)
    index = Index(place, lambda: store)
    index.sync()
    began = time.process_time()
    for branch in index.branches():
        for row in index.turns(branch.name):
            store.lines(branch.tip, row.turn)
    index.close()
    return time.process_time() - began


if __name__ == "__main__":
    main()
