"""The frame of `make bench`: goals, medians, ratios, the table, the page, the JSON. Nothing is timed."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def load(name: str) -> ModuleType:
    """A file of `bench/`, which is no package, under a name that no test has."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", ROOT / "bench" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


frame = load("frame")
starter = load("starter")

LOG = "log (goal 200 ms)"
PLAIN = "python -c pass"


def one(name: str, *seconds: float, **more: object) -> object:
    return frame.figure(name, seconds, **more)


def run(**more: object) -> object:
    tables = (
        frame.table("whole commands", {PLAIN: [0.010, 0.012, 0.030], LOG: [0.3, 0.1, 0.24]}, PLAIN),
        frame.table("memory", {"import | it (goal 100 MB)": [12.0]}, peaks={"import | it (goal 100 MB)": 64.2}),
    )
    made = frame.Run(
        taken="02 Mar 2026",
        quick=False,
        code="commit 0123456789",
        machine=frame.Machine(2, 7.8, "Linux x86_64", "3.11.7", "2.39.5"),
        busy=frame.Busy(0.5, 1.25, (0.010, 0.012, 0.030)),
        groups={"session": tables},
        took={"session": 4.0},
        absent={"agentsview 0.46.1": "it does not install here (no such version)"},
        failed={},
    )
    return replace(made, **more)


# Goals


@pytest.mark.parametrize(
    ("name", "plain", "goal", "told"),
    [
        ("log", "log", None, ""),
        (LOG, "log", ("value", 200), "≤ 200 ms"),
        ("stub (goal .5 x, at most 1 x)", "stub", ("bound", 1), "≤ .5, at most 1 ×"),
        ("import (goal at least 1,700 turns/s)", "import", ("least", True), "≥ 1,700 turns/s"),
        ("import (goal 400 MB)", "import", ("unit", "MB"), "≤ 400 MB"),
        ("fork (of all) (goal 2.5 ms)", "fork (of all)", ("value", 2.5), "≤ 2.5 ms"),
    ],
)
def test_the_goal_stands_in_the_name(name: str, plain: str, goal: tuple[str, object] | None, told: str) -> None:
    found, read = frame.split(name)
    assert found == plain
    assert (read is None) == (goal is None)
    if goal is not None:
        assert getattr(read, goal[0]) == goal[1]
        assert str(read) == told


@pytest.mark.parametrize(
    "name", ["log (goal soon)", "log (goal 5 m)", "(goal 5 ms) log", "log (goal 5 ms, at most 2 x)"]
)
def test_a_goal_that_nobody_can_read_is_refused(name: str) -> None:
    with pytest.raises(frame.BenchError, match="nobody can read"):
        frame.split(name)


def test_every_goal_of_the_suite_can_be_read() -> None:
    found = 0
    for path in sorted((ROOT / "bench").glob("*.py")):
        for goal in re.findall(r" \(goal [^)]*\)(?=\")", path.read_text("utf-8")):
            assert frame.split(f"x{goal}")[1] is not None
            found += 1
    assert found > 30


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (one("x", 1), ""),
        (one("x (goal 200 ms)", 0.2), "met"),
        (one("x (goal 200 ms)", 0.2001), "missed"),
        (one("x (goal .5 x, at most 1 x)", 1, base=2), "met"),
        (one("x (goal .5 x, at most 1 x)", 2, base=2), "bound"),
        (one("x (goal .5 x, at most 1 x)", 2.1, base=2), "missed"),
        (one("x (goal .5 x)", 1), ""),  # beside nothing
        (one("x (goal .8 x)", 0.7, unit="x"), "met"),
        (one("x (goal 100 MB)", 9, peak=101), "missed"),
        (one("x (goal 100 MB)", 9), ""),  # where the system does not tell
        (one("x (goal at least 1,700 turns/s)", 1_700, unit="turns/s"), "met"),
        (one("x (goal at least 1,700 turns/s)", 1_699, unit="turns/s"), "missed"),
    ],
)
def test_a_figure_is_held_against_its_goal(figure: object, verdict: str) -> None:
    assert figure.verdict == verdict  # type: ignore[attr-defined]


# Arithmetic


def test_a_figure_is_the_median_of_its_runs_beside_that_of_another() -> None:
    plain, log = frame.table("t", {PLAIN: [0.030, 0.010, 0.012], LOG: [0.3, 0.1, 0.24]}, PLAIN).figures
    assert (log.name, log.median, log.best, log.worst, log.runs) == ("log", 0.24, 0.1, 0.3, 3)
    assert (log.base, log.competitor, log.ratio) == (0.012, PLAIN, pytest.approx(20))
    assert plain.ratio == 1


def test_the_best_of_a_rate_is_its_highest() -> None:
    rate = frame.figure("x (goal at least 5 turns/s)", [3, 9, 6], unit="turns/s")
    assert (rate.median, rate.best, rate.worst) == (6, 9, 3)


def test_a_table_beside_nothing_has_no_ratios() -> None:
    (row,) = frame.table("t", {"cp": [0.5]}).figures
    assert (row.ratio, row.competitor) == (None, "")


def test_the_base_has_a_goal_of_its_own() -> None:
    table = frame.table("t", {LOG: [0.1], "show": [0.2]}, LOG)
    assert table.beside == "log"
    assert [figure.ratio for figure in table.figures] == [1, 2]


def test_ours_should_be_half_of_the_others_or_says_why_it_is_not_compared() -> None:
    own = {"start": [0.2, 0.1, 0.3], "code": [80.0], "live": [0.5]}
    problems = {"live": "Timeout 30000ms exceeded.", "code": "no answer"}
    other = ("other 1.0", {"start": [0.3, 0.3, 0.3], "code": [160.0], "live": []}, problems)
    table = frame.compared("pages", {"start": "s", "code": "kB", "live": "s"}, own, other)
    assert [(row.name, row.median, row.unit, row.verdict) for row in table.figures] == [
        ("start, other 1.0", 0.3, "s", ""),
        ("start", 0.2, "s", "missed"),
        ("code, other 1.0; not in every round: no answer", 160, "kB", ""),
        ("code", 80, "kB", "met"),
        ("live, not compared with other 1.0: Timeout 30000ms exceeded.", 0.5, "s", ""),
    ]
    with pytest.raises(frame.BenchError, match="nothing was measured"):
        frame.compared("pages", {"live": "s"}, {"live": []}, other)


def test_what_was_not_measured_is_no_figure() -> None:
    with pytest.raises(frame.BenchError, match="nothing was measured"):
        frame.figure("x", [])


def test_how_evenly_the_machine_worked() -> None:
    assert frame.Busy(0, 0, (0.010, 0.012, 0.030)).spread == pytest.approx(3)
    assert frame.Busy(0, 0, ()).spread == 1


def test_parts_of_a_run_come_together() -> None:
    first = run()
    more = run(
        groups={"import": ()}, took={"import": 2.0}, busy=frame.Busy(8, 9, (0.05,)), absent={}, failed={"x": "y"}
    )
    both = frame.without(frame.joined(first, more), "sync")
    assert list(both.groups) == ["session", "import"]
    assert both.took == {"session": 4.0, "import": 2.0}
    assert both.busy == frame.Busy(0.5, 9, (0.010, 0.012, 0.030, 0.05))
    assert both.failed == {"x": "y", "sync": "it ended without a figure"}
    assert list(both.absent) == ["agentsview 0.46.1"]


# Shown


SHOWN = """\
whole commands  (warm)
                                                   median              goal × python -c pass processors     peak
  python -c pass                                    12 ms                                1 ×
  log                                              240 ms          ≤ 200 ms             20 ×                      missed
  import                                           12.0 s           ≤ 10 ms          1,000 ×                      missed
  ls                                               .81 ms                              .07 ×     .45 ms    24 MB\
"""


def test_the_table_for_a_terminal() -> None:
    rows = {PLAIN: [0.012], "log (goal 200 ms)": [0.24], "import (goal 10 ms)": [12.0], "ls": [0.00081]}
    table = frame.table("whole commands", rows, PLAIN, peaks={"ls": 23.6}, work={"ls": 0.00045}, note="warm")
    assert frame.shown(table) == SHOWN


PAGE = f"""# Performance

words

{frame.BEGIN}
old figures
{frame.END}

more words
"""

WRITTEN = f"""# Performance

words

{frame.BEGIN}

Taken 02 Mar 2026, of commit 0123456789.

- machine: 2 cores, 8 GB of memory, Linux x86_64
- Python 3.11.7, git 2.39.5
- load 0.5 at the beginning and 1.2 at the end; `python -c pass` took 12.0 ms in the middle, at worst 3 times its best
- **not compared with agentsview 0.46.1**: it does not install here (no such version)

Goals: 1 of 2 met, 1 missed (in **bold**).

### session

| figure | median | goal |
| --- | ---: | ---: |
| *whole commands* | | |
| log | **240 ms** | ≤ 200 ms |
| *memory* | | |
| import \\| it | 12.0 s, 64 MB | ≤ 100 MB |

{frame.END}

more words
"""


def test_the_page_gets_the_tables_between_its_marks() -> None:
    assert frame.page(run(), PAGE) == WRITTEN
    assert frame.page(run(), WRITTEN) == WRITTEN


@pytest.mark.parametrize("text", ["", frame.BEGIN, frame.END, f"{frame.END}\n{frame.BEGIN}"])
def test_a_page_without_marks_is_left_alone(text: str) -> None:
    with pytest.raises(frame.BenchError, match="no place for figures"):
        frame.page(run(), text)


def test_the_projects_page_has_a_place_for_figures() -> None:
    text = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert frame.page(run(), text).count("### session") == 1


def test_what_was_left_out_or_failed_is_told() -> None:
    told = "\n".join(frame.summary(run(failed={"import": "BenchError: no room"})))
    assert "- not compared with agentsview 0.46.1: it does not install here (no such version)" in told
    assert "- not measured, import: BenchError: no room" in told


# Kept


def test_what_is_kept_is_read_again() -> None:
    known = run()
    assert frame.loads(frame.dumps(known)) == known
    assert '"ratio": 20.0' in frame.dumps(known)
    assert '"verdict": "missed"' in frame.dumps(known)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "sessgit.bench/v0"}', '{"format": "sessgit.bench/v1"}'])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(frame.BenchError):
        frame.loads(text)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(frame.BenchError, match=r"no figures in none\.json"):
        frame.read(tmp_path / "none.json")


# Commands


def test_a_command_is_run_where_and_with_what_was_asked(tmp_path: Path) -> None:
    asked = {"command": ["sh", "-c", 'cat > "$NAME"; echo told >&2; exit 3'], "cwd": str(tmp_path), "whole": True}
    told = starter.run({**asked, "env": {"PATH": "/usr/bin:/bin", "NAME": "out"}, "given": "words"})
    assert (tmp_path / "out").read_text() == "words"
    assert (told["code"], told["said"]) == (3, "told\n")
    assert told["seconds"] > 0 and told["peak"] > 0


HOLD = """
import os, sys, time
held = bytearray(b"x") * 40_000_000
open(sys.argv[1], "w").close()
while not all(map(os.path.exists, ("a", "b", "seen"))):
    time.sleep(0.01)
"""


def test_memory_is_that_of_the_command_and_of_all_that_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of 40 MB each at once, whatever started them."""
    measure = starter.tree
    (tmp_path / "hold.py").write_text(HOLD)
    hold = f"{sys.executable} hold.py"
    asked = {"cwd": str(tmp_path), "env": {"PATH": "/usr/bin:/bin"}, "given": ""}
    both = {**asked, "command": ["sh", "-c", f"{hold} a & {hold} b; wait"]}
    (tmp_path / "seen").touch()
    largest = starter.run({**both, "whole": False})["peak"]
    assert largest > 40e6
    for name in ("a", "b", "seen"):
        (tmp_path / name).unlink()

    looks = list[int]()

    def seen(pid: int) -> int:
        """Measure both while they hold their memory; they end after that."""
        looks.append(pid)
        both_run = pid == looks[0] and all((tmp_path / name).exists() for name in "ab")
        used: int = measure(pid)
        if both_run:
            (tmp_path / "seen").touch()
        return used

    monkeypatch.setattr(starter, "tree", seen)
    if Path("/proc/self/smaps_rollup").exists():
        assert starter.run({**both, "whole": True})["peak"] > 80e6
