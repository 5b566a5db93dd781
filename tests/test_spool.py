"""The spool as a recorder reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.store import spool
from sessgit.store.spool import Event, UnreadableEvent, discard_event, waiting_events

NOW = 1_800_000_000.0
STOP: dict[str, object] = {
    "hook_event_name": "Stop",
    "session_id": "2222",
    "transcript_path": "/h/.claude/projects/-w/2222.jsonl",
    "cwd": "/w",
}


def put(folder: Path, name: str, content: object = STOP, age: float = 1) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    os.utime(path, (NOW - age, NOW - age))
    return path


def only(folder: Path) -> Event | UnreadableEvent:
    (event,) = waiting_events(folder, NOW)
    return event


def why(folder: Path) -> str:
    event = only(folder)
    assert isinstance(event, UnreadableEvent)
    return event.why


def test_an_event(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        "7-0.json",
        STOP
        | {
            "last_assistant_message": "Grüße \ud800",
            "agent_transcript_path": "/a.jsonl",
            "reason": "clear",
            "source": "fork",
            "permission_mode": "default",
            "background_tasks": [{"id": "x"}],
        },
    )
    assert only(tmp_path) == Event(
        path=path,
        received=NOW - 1,
        name="Stop",
        session_id="2222",
        transcript_path="/h/.claude/projects/-w/2222.jsonl",
        cwd="/w",
        last_assistant_message="Grüße \ud800",
        source="fork",
        reason="clear",
        agent_transcript_path="/a.jsonl",
    )


def test_what_an_event_lacks_is_empty(tmp_path: Path) -> None:
    put(tmp_path, "7-0.json", STOP | {"reason": None})
    event = only(tmp_path)
    assert isinstance(event, Event)
    assert event.last_assistant_message is None
    assert (event.source, event.reason, event.agent_transcript_path) == ("", "", "")


def test_no_spool_no_events(tmp_path: Path) -> None:
    assert waiting_events(tmp_path / "spool", NOW) == []


def test_the_order_is_that_of_arrival(tmp_path: Path) -> None:
    put(tmp_path, "1.json", age=1)
    put(tmp_path, "3.json", age=3)
    put(tmp_path, "22.json", age=2)
    put(tmp_path, "20.json", age=2)
    assert [event.path.name for event in waiting_events(tmp_path, NOW)] == ["3.json", "20.json", "22.json", "1.json"]


def test_only_old_halves_are_removed(tmp_path: Path) -> None:
    put(tmp_path, "1-0.tmp", b"{", age=599)
    put(tmp_path, "2-0.tmp", b"{", age=601)
    put(tmp_path, "waiting", b"1", age=9999)
    (tmp_path / "folder.json").mkdir()
    assert waiting_events(tmp_path, NOW) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1-0.tmp", "folder.json", "waiting"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"\0" * 10, "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "not JSON"),
        (b"x" * (spool.MAX_BYTES + 1), "too long"),
        ([STOP], "not an object"),
        ("Stop", "not an object"),
        ({}, "no hook_event_name"),
        (STOP | {"session_id": 7}, "no session_id"),
        (STOP | {"session_id": ""}, "no session_id"),
        (STOP | {"transcript_path": None}, "no transcript_path"),
        (STOP | {"cwd": ["/"]}, "no cwd"),
        (STOP | {"source": 1}, "source is not a text"),
        (STOP | {"reason": {}}, "reason is not a text"),
        (STOP | {"agent_transcript_path": []}, "agent_transcript_path is not a text"),
        (STOP | {"last_assistant_message": False}, "last_assistant_message is not a text"),
        (STOP | {"transcript_path": "/a\0b"}, "a text that cannot be a path"),
        (STOP | {"cwd": "/\ud800"}, "a text that cannot be a path"),
        (STOP | {"transcript_path": "a.jsonl"}, "transcript_path is relative"),
        (STOP | {"agent_transcript_path": "a.jsonl"}, "agent_transcript_path is relative"),
    ],
)
def test_what_is_no_event_is_unreadable(tmp_path: Path, content: object, reason: str) -> None:
    put(tmp_path, "1.json", content)
    assert why(tmp_path) == reason


@given(st.binary(max_size=40))
def test_no_bytes_do_harm(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("spool")
    put(folder, "1.json", content)
    assert discard_event(only(folder))
    assert waiting_events(folder, NOW) == []


def test_no_link_and_no_pipe_is_followed(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    secret = put(tmp_path, "secret", STOP)
    link = tmp_path / "spool" / "1.json"
    link.symlink_to(secret)
    found = only(tmp_path / "spool")
    assert isinstance(found, UnreadableEvent)
    assert discard_event(found)
    assert secret.exists()
    os.mkfifo(link)
    assert why(tmp_path / "spool") == "not a regular file"


def test_discard_says_whether_it_is_gone(tmp_path: Path) -> None:
    put(tmp_path, "1.json")
    event = only(tmp_path)
    assert discard_event(event)
    assert discard_event(event)
    event.path.mkdir()
    assert not discard_event(event)


def test_no_heavy_module_is_loaded() -> None:
    program = "import sys, sessgit.store.spool, sessgit.store.spool; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    heavy = {"pygit2", "pydantic", "subprocess", "tempfile", "typing", "sqlite3", "logging"}
    assert heavy.isdisjoint(loaded)
