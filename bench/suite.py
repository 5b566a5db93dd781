"""`make bench`: how fast sessgit is, and how much memory it needs, beside goals and beside other programs.

    python bench/suite.py [GROUP…] [--quick] [--json FILE] [--write PAGE] [--transcripts DIR] [--from FILE]

Each group is a file beside this one and can be run alone; here each runs in a process of its own, so that none pays for
what another left in memory, and one that fails costs only its own figures. Nothing here passes or fails: work counts
are what tests check. A file system without a journal, as some virtual machines have one, makes files slower the more
were deleted in the last minutes: `TMPDIR=/dev/shm make bench` is free of that.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import competitors
import frame
import timing
from frame import BenchError, Busy, Machine, Run, Table
from timing import FULL, QUICK, Scale

GROUPS = {
    "hook": ("hook",),
    "session": ("long", "graph"),
    "programs": ("programs",),
    "recording": ("recording", "redaction"),
    "import": ("agentsview",),
    "export": ("exporting",),
    "merge": ("merging",),
    "many": ("many",),
    "size": ("packing", "size"),
    "sync": ("syncing",),
    "codex": ("codex",),
    "web": ("web",),
}
"""The files of each group."""

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / ".cache" / "bench.json"
BUSY = 1.0
"""Load for each core above which a machine is called busy."""


def main(given: list[str]) -> int:
    asked = _arguments(given)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # gigabytes lie in temporary folders
    try:
        run = frame.read(asked.from_file) if asked.from_file else _measure(asked)
        if asked.write is not None:
            _check(run)
            asked.write.write_text(frame.page(run, asked.write.read_text("utf-8")), "utf-8")
            print(f"the figures are in {asked.write}")
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 1 if run.failed else 0


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="how fast sessgit is, beside goals and other programs")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"all if left out: {', '.join(GROUPS)}")
    parser.add_argument("--quick", action="store_true", help="smaller cases and fewer rounds, about three minutes")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="where the figures are kept")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables of a whole run into that page")
    parser.add_argument("--from", dest="from_file", type=Path, metavar="FILE", help="measure nothing, take these")
    parser.add_argument("--transcripts", type=Path, metavar="DIR", help="real transcripts to import as well")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    unknown = [name for name in asked.groups if name not in GROUPS]
    if unknown:
        parser.error(f"no group {unknown[0]}: there are {', '.join(GROUPS)}")
    if asked.write is not None and not asked.from_file and (asked.quick or asked.groups):
        parser.error("--write takes all groups, and no quick run")
    return asked


def _check(run: Run) -> None:
    left_out = [name for name in GROUPS if name not in run.groups]
    if run.quick or left_out:
        raise BenchError(f"no whole run: {'a quick one' if run.quick else 'without ' + ', '.join(left_out)}")


def _measure(asked: argparse.Namespace) -> Run:
    groups = asked.groups or list(GROUPS)
    scale = QUICK if asked.quick else FULL
    if asked.transcripts is not None:
        scale = replace(scale, transcripts=asked.transcripts.resolve())
    if not asked.part:
        _greet(asked.quick)
    run = _group(groups[0], scale, asked.quick) if len(groups) == 1 else _all(groups, asked)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(frame.dumps(run), "utf-8")
    if not asked.part:
        print("\n".join(frame.summary(run)))
        print(f"kept in {asked.json}")
    return run


def _greet(quick: bool) -> None:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > BUSY * cores:
        print(f"the machine is busy: load {load:.1f} on {cores} cores; ratios say more than times\n", flush=True)
    if quick:
        print("a quick run: smaller cases than those that goals are for\n", flush=True)


def _all(groups: list[str], asked: argparse.Namespace) -> Run:
    """Each group by a process that runs it alone."""
    run = _empty(asked.quick)
    with tempfile.TemporaryDirectory() as folder:
        for name in groups:
            print(f"── {name} ──\n", flush=True)
            result = Path(folder) / f"{name}.json"
            command = [sys.executable, str(Path(__file__)), name, "--part", "--json", str(result)]
            command += ["--quick"] if asked.quick else []
            command += ["--transcripts", str(asked.transcripts)] if asked.transcripts else []
            subprocess.run(command, check=False)
            run = frame.joined(run, frame.read(result)) if result.exists() else frame.without(run, name)
    return replace(run, busy=replace(run.busy, load_after=os.getloadavg()[0]))


def _group(name: str, scale: Scale, quick: bool) -> Run:
    run = _empty(quick)
    tables: list[Table] = []
    failed: dict[str, str] = {}
    started = time.perf_counter()
    timing.here(ROOT).known()
    for file in GROUPS[name]:
        if not Path(__file__).with_name(f"{file}.py").exists():
            continue
        try:
            for found in importlib.import_module(file).measure(scale):
                print(frame.shown(found), end="\n\n", flush=True)
                tables.append(found)
        except Exception as error:
            failed[f"{name} ({file})"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            print(f"bench: {file}: {type(error).__name__}: {error}\n", file=sys.stderr, flush=True)
    for other, why in competitors.absent.items():
        print(f"not compared with {other}: {why}\n", flush=True)
    took = time.perf_counter() - started
    print(f"{name}: {took:.0f} s\n", flush=True)
    busy = Busy(run.busy.load_before, os.getloadavg()[0], tuple(timing.passes))
    run = replace(run, busy=busy, absent=dict(competitors.absent), failed=failed)
    return replace(run, groups={name: tuple(tables)}, took={name: took})


def _empty(quick: bool) -> Run:
    load = os.getloadavg()[0]
    taken = datetime.now(UTC).strftime("%d %b %Y")
    return Run(taken, quick, _code(), _machine(), Busy(load, load, ()), {}, {}, {}, {})


def _machine() -> Machine:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    git = subprocess.check_output(["git", "--version"], text=True).split()[2]
    system = f"{platform.system()} {platform.machine()}"
    return Machine(os.cpu_count() or 1, memory, system, platform.python_version(), git)


def _code() -> str:
    """The commit that is measured, and whether files differ from it."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.check_output([*git, "rev-parse", "--short=10", "HEAD"], text=True).strip()
        changed = subprocess.check_output([*git, "status", "--porcelain", "--", "sessgit", "hooks"], text=True)
    except (OSError, subprocess.CalledProcessError):
        return "code without a commit"
    return f"commit {commit}" + (" and what is changed since" if changed else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
