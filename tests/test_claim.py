"""The claim of the recorder that reads the spool next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from sessgit.store.layout import StorePaths
from sessgit.store.spool import Claim

HOLDER = """
import sys, time
from pathlib import Path
from sessgit.store.layout import StorePaths
from sessgit.store.spool import Claim
claim = Claim(StorePaths(Path(sys.argv[1])))
print(claim.take(time.time()), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    made = StorePaths(tmp_path)
    made.spool.mkdir()
    return made


def start(paths: StorePaths) -> subprocess.Popen[str]:
    """A process that takes the claim, says whether it got it, and lives until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(paths.store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def holder(paths: StorePaths) -> Iterator[subprocess.Popen[str]]:
    process = start(paths)
    assert answer(process) == "True"
    yield process
    process.kill()
    process.communicate()


def test_a_claim_is_there_until_it_is_given_up(paths: StorePaths) -> None:
    claim = Claim(paths)
    assert claim.take(time.time()) and claim.take(time.time())
    assert paths.waiting.read_text() == f"{os.getpid()}\n"
    assert paths.waiting.stat().st_mode & 0o777 == 0o600
    assert not Claim(paths).take(time.time())
    claim.give_up()
    assert not paths.waiting.exists()
    claim.give_up()
    assert Claim(paths).take(time.time())


def test_the_claim_of_another_process_is_respected(paths: StorePaths, holder: subprocess.Popen[str]) -> None:
    claim = Claim(paths)
    assert not claim.take(time.time())
    claim.give_up()
    assert paths.waiting.read_text() == f"{holder.pid}\n"


def test_a_killed_process_holds_no_claim_before_it_is_reaped(paths: StorePaths, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    until(lambda: os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT) is not None)
    os.kill(holder.pid, 0)
    assert Claim(paths).take(time.time())
    assert paths.waiting.read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("age", [61, -61])
def test_the_claim_of_a_stopped_process_counts_for_a_minute(
    paths: StorePaths, holder: subprocess.Popen[str], age: float
) -> None:
    holder.send_signal(signal.SIGSTOP)
    now = time.time()
    assert not Claim(paths).take(now)
    os.utime(paths.waiting, (now - age,) * 2)
    assert Claim(paths).take(now)


@pytest.mark.parametrize("left", [str(os.getppid()), "", "0", "-1", "x", "9" * 40, "²", None])
def test_what_the_file_says_claims_nothing(paths: StorePaths, left: str | None) -> None:
    if left is not None:
        paths.waiting.write_text(left)
    assert Claim(paths).take(time.time())
    assert paths.waiting.read_text() == f"{os.getpid()}\n"


def test_a_file_that_names_this_process_goes_before_the_spool_is_read_again(paths: StorePaths) -> None:
    """A stub that was held up writes it after the claim was given up."""
    paths.waiting.write_text(f"{os.getpid()}\n")
    Claim(paths).give_up()
    assert not paths.waiting.exists()
    paths.waiting.write_text(f"{os.getppid()}\n")
    Claim(paths).give_up()
    assert paths.waiting.exists()


def test_a_claim_that_cannot_be_announced_or_locked_keeps_nobody_from_recording(paths: StorePaths) -> None:
    paths.waiting.mkdir()
    claim = Claim(paths)
    assert claim.take(time.time())
    claim.give_up()
    paths.lock("spool").unlink()
    paths.lock("spool").mkdir()
    assert Claim(paths).take(time.time())


def test_of_many_claims_at_once_one_is_granted(paths: StorePaths) -> None:
    racers = [start(paths) for _ in range(8)]
    answers = [answer(racer) for racer in racers]
    for racer in racers:
        racer.communicate()
    assert sorted(answers) == ["False"] * 7 + ["True"]
