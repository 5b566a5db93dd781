"""Waiting until the client has written what its hook tells of."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from inotify import opens
from waiting import PATIENCE, until

from sessgit.agents import claude
from sessgit.recorder import drain
from sessgit.recorder.drain import wait_for_answer

ANSWER = 'It says "no".\nÜber \u2028 all \\ of it.'


def line(answer: str) -> bytes:
    return json.dumps({"message": {"content": [{"text": answer}]}}, ensure_ascii=False).encode() + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.jsonl"
    made.write_bytes(line("hello"))
    return made


@pytest.mark.parametrize("answer", [ANSWER, "x" * 5000, "hello"])
def test_an_answer_that_is_there_is_not_waited_for(path: Path, answer: str) -> None:
    with path.open("ab") as file:
        file.write(line(answer) + line("more"))
    with opens(path) as reads:
        assert wait_for_answer(claude.AGENT, path, 0, answer, time.time())
        assert reads.count == 1


def test_an_answer_is_there_once_its_line_is_complete(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "ANSWER_SECONDS", PATIENCE)
    data = line(ANSWER)
    told: list[bool] = []
    waiting = threading.Thread(target=lambda: told.append(wait_for_answer(claude.AGENT, path, 0, ANSWER, time.time())))
    with path.open("ab", buffering=0) as file, opens(path) as reads:
        waiting.start()
        for part in (data[:9], data[9:-2], data[-2:-1]):  # with or without a newline
            seen = reads.count
            until(lambda: reads.count >= seen + 3 or told != [])  # noqa: B023 - called here
            assert told == []
            file.write(part)
        waiting.join()
    assert told == [True]


@pytest.mark.parametrize("offset", [0, 1])
def test_an_answer_of_an_earlier_turn_is_another_one(path: Path, offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "ANSWER_SECONDS", 0.05)
    assert wait_for_answer(claude.AGENT, path, offset * path.stat().st_size, "hello", time.time()) == (not offset)


def test_a_file_that_is_gone_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "ANSWER_SECONDS", 0.05)
    assert not wait_for_answer(claude.AGENT, tmp_path / "gone", 0, "hello", time.time())


def test_where_no_answer_is_told_the_file_is_to_rest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older clients tell none."""
    monkeypatch.setattr(drain, "ANSWER_SECONDS", PATIENCE)
    long_ago = time.time() - 60
    os.utime(path, (long_ago, long_ago))
    began = time.time()
    assert wait_for_answer(claude.AGENT, path, 0, None, long_ago)
    assert wait_for_answer(claude.AGENT, path, 0, "", began)
    assert time.time() - began > drain.QUIET_SECONDS
    os.utime(path)
    began = path.stat().st_mtime
    assert wait_for_answer(claude.AGENT, path, 0, None, long_ago)
    assert time.time() - began > drain.QUIET_SECONDS


def test_a_file_that_never_rests_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "ANSWER_SECONDS", 0.05)
    os.utime(path, (time.time() + 60,) * 2)
    assert not wait_for_answer(claude.AGENT, path, 0, None, 0)
