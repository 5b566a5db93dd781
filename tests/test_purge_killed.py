"""A purge that is killed at any step: the store is no worse for it, and the same command brings it to its end."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from homes import claude_homes
from purging import SESSION, VALUE, git, holders, refs, told, whole
from shell import NOW, Shell

from sessgit.purge import purge as purges
from sessgit.store import layout, secret_filter, stub
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

KILLS = int(os.environ.get("SESSGIT_TEST_KILLS") or 5)
"""At so many points a purge is killed; in its long form at all that there are."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_STEPS = ("os.rename", "os.remove", "os.rmdir", "os.utime", "os.truncate", "shutil.rmtree", "subprocess.Popen")


@pytest.fixture
def held(sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a store with forks, rewinds, an archive, operations, packs, events and a log that hold the value.

    No command starts a recorder for the events: it would take them out of the next copy, which has fewer steps then.
    """
    monkeypatch.setattr(stub, "start_recorder", lambda *_: None)
    told(sessgit)
    sessgit.out("fork", SESSION, "--at", "2", "--name", "by hand")
    sessgit.out("edit", SESSION, "--description", f"with {VALUE}")
    sessgit.out("tag", "good", f"{SESSION}@1")
    sessgit.out("gc")
    sessgit.out("edit", SESSION, "--description", "without")
    (sessgit.store / "spool" / "1-1.json").write_text(f'{{"last": "{VALUE}"}}')
    (sessgit.store / "log").write_text(f"2026-03-01T10:00:00.000Z 1.0 failed: {VALUE}\n")
    for path in sessgit.config.glob("projects/*/*.jsonl"):
        os.utime(path, (time.time() + 1e6,) * 2)  # nobody takes a file for finished, however long this lasts
    shutil.copytree(sessgit.store, tmp_path / "held", symlinks=True)
    return tmp_path / "held"


def test_a_purge_can_be_killed_at_every_step(sessgit: Shell, held: Path) -> None:
    assert sessgit("purge", VALUE, "--yes").code == 0
    expected = refs(sessgit.store)
    steps = _killed(sessgit, held, 1 << 30)
    assert refs(sessgit.store) == expected
    assert steps > 30
    for point in sorted({1 + round(n * (steps - 1) / max(1, KILLS - 1)) for n in range(KILLS)}):
        assert _killed(sessgit, held, point) < 0, point
        _no_worse(sessgit)
        done = sessgit("purge", VALUE, "--yes")
        assert done.code == 0, (point, done)
        assert refs(sessgit.store) == expected, point
        assert holders(sessgit.store) == [], point
        assert [one["command"] for one in sessgit.json("ops")["operations"]].count("purge") == 1, point
        assert not layout.StorePaths(sessgit.store).purging.exists()
    whole(sessgit)


def test_recording_goes_on_between_a_kill_and_the_end(sessgit: Shell, held: Path) -> None:
    """Whoever records while a purge waits to be completed brings nothing back."""
    steps = _killed(sessgit, held, 1 << 30)
    for part in (10, 2):
        assert _killed(sessgit, held, steps - steps // part) < 0
        sessgit.recorded(sessgit.talk(f"5e551011-0000-4000-8000-00000000aa0{part}").turns(f"more {VALUE}"))
        assert sessgit("purge", VALUE, "--yes").code == 0
        assert holders(sessgit.store) == []
        whole(sessgit)


def test_another_purge_brings_the_killed_one_to_its_end(sessgit: Shell, held: Path) -> None:
    """Nobody has to know the value for that."""
    steps = _killed(sessgit, held, 1 << 30)
    ended = set()
    for point in (steps // 4, steps // 2, steps * 9 // 10):
        assert _killed(sessgit, held, point) < 0, point
        is_known = bool(secret_filter.denied_values(layout.StorePaths(sessgit.store)))
        done = sessgit("purge", "some other value", "--yes")
        assert done.code == 0, done
        assert (done.out.startswith("Finished an interrupted purge\n")) == is_known
        assert (holders(sessgit.store) == []) == is_known
        whole(sessgit)
        ended.add(is_known)
        sessgit("purge", VALUE, "--yes")
        assert holders(sessgit.store) == []
    assert ended == {False, True}


def test_a_purge_that_is_killed_at_any_moment(sessgit: Shell, held: Path) -> None:
    """Also while git is at work for it."""
    begun = time.monotonic()
    _killed(sessgit, held, 1 << 30)
    took = time.monotonic() - begun
    for n in range(1, 3 if KILLS < 100 else 40):
        _fresh(sessgit, held)
        child = os.fork()
        if not child:
            os.setsid()
            _purge(sessgit)
            os._exit(0)
        time.sleep(took * n / (3 if KILLS < 100 else 40))
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _no_worse(sessgit)
        assert sessgit("purge", VALUE, "--yes").code == 0
        assert holders(sessgit.store) == []


def test_one_that_nothing_holds_is_killed(sessgit: Shell, tmp_path: Path) -> None:
    """Wherever that was: the value is kept out in the end, and one operation says so."""
    sessgit.recorded(sessgit.talk().turns("one"))
    shutil.copytree(sessgit.store, tmp_path / "held", symlinks=True)
    steps = _killed(sessgit, tmp_path / "held", 1 << 30)
    assert steps > 4
    for point in range(1 if KILLS > 99 else steps - 3, steps + 1):
        assert _killed(sessgit, tmp_path / "held", point) < 0, point
        assert sessgit("purge", VALUE, "--yes").code == 0
        assert [one["command"] for one in sessgit.json("ops")["operations"]] == ["purge"], point
        assert len(secret_filter.denied_values(layout.StorePaths(sessgit.store))) == 1
    assert sessgit.json("verify")["findings"] == []


def _no_worse(sessgit: Shell) -> None:
    """Every conversation can be read and restored, and nothing has gone."""
    whole(sessgit)
    assert len(sessgit.json("ls", "--all")["sessions"]) == 4
    assert git(sessgit.store, "rev-parse", f"{SESSION}:turns/0000/000002")


def _fresh(sessgit: Shell, held: Path) -> None:
    """Put a copy of `held` in the place of the store."""
    shutil.rmtree(sessgit.store)
    shutil.copytree(held, sessgit.store, symlinks=True)


def _killed(sessgit: Shell, held: Path, point: int) -> int:
    """Purges a copy of the store in a child that ends without a word before its `point`th step; how many steps it made,
    -1 where it was killed."""
    _fresh(sessgit, held)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            os.write(writing, b"%d" % _counted(sessgit, point))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        said = told.read()
    os.waitpid(child, 0)
    return int(said) if said else -1


def _counted(sessgit: Shell, point: int) -> int:
    steps = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal steps
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if writes or event in _STEPS:
            steps += 1
            if steps == point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    _purge(sessgit)
    return steps


def _purge(sessgit: Shell) -> None:
    store = Store(sessgit.store)
    index = Index(sessgit.store, lambda: store)
    purges.purge_values(
        Context(index, homes=claude_homes(sessgit.config), now=lambda: NOW),
        purges.literal_value(VALUE),
        purges.PurgeProgress(),
    )
