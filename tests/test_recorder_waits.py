"""A recorder that finds somebody at work on a session waits a moment: a command does not read the spool afterwards."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from inotify import Opens, opens
from test_recorder import SESSIONS, Place, talk
from waiting import until

from sessgit.store import locks
from sessgit.store.layout import StorePaths

_GIT = """#!/bin/sh
# Waits before it packs, so that something can happen meanwhile.
case " $* " in
*' pack-objects '*) : >'{waits}'; while [ ! -e '{go}' ]; do sleep 0.02; done ;;
esac
exec {git} "$@"
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@contextmanager
def waited_for(place: Place, session: str) -> Iterator[Opens]:
    """Holds a session's lock, and counts how often others try to get it."""
    paths = StorePaths(place.store)
    with locks.session_lock(paths, session) as held, opens(paths.lock(f"session-{session}")) as tries:
        assert held
        yield tries


def test_an_event_that_comes_while_a_command_has_the_session_is_recorded(place: Place) -> None:
    path = talk(SESSIONS[0], "one").save(place.projects)
    with waited_for(place, SESSIONS[0]) as tries:
        place.event("Stop", path, last_assistant_message="done: one")
        until(lambda: tries.count >= 3)
        assert len(list((place.store / "spool").glob("*.json"))) == 1
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    assert place.log() == ""


def is_stopped_with_claim(place: Place, recorder: str) -> bool:
    """Stop the recorder while it has the claim to read the spool; return whether it had it, else it goes on."""
    waiting = StorePaths(place.store).waiting
    os.kill(int(recorder), signal.SIGSTOP)
    until(lambda: Path(f"/proc/{recorder}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    if waiting.exists() and waiting.read_text().strip() == recorder:
        return True
    os.kill(int(recorder), signal.SIGCONT)
    return False


def test_while_one_waits_events_start_no_others(place: Place) -> None:
    paths = [talk(session, "one").save(place.projects) for session in SESSIONS]
    with waited_for(place, SESSIONS[0]) as tries:
        place.event("SessionStart", paths[0])
        until(lambda: tries.count >= 3)
        (recorder,) = place.recorders()
        until(lambda: is_stopped_with_claim(place, recorder))
        for path in paths:
            place.event("Stop", path, last_assistant_message="done: one")
        assert place.recorders() == [recorder]
        os.kill(int(recorder), signal.SIGCONT)
        until(lambda: [place.turns(session) for session in SESSIONS] == [0, 1, 1, 1, 1])
    place.event("SessionStart", paths[0])  # it may have waited long enough while it was stopped
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)


def test_what_took_a_busy_recorder_for_one_that_is_yet_to_read_is_found(place: Place, tmp_path: Path) -> None:
    """A stub that was held up may name a recorder that has read the spool long ago, and is packing by now."""
    waits, go, late = tmp_path / "waits", tmp_path / "go", talk(SESSIONS[1], "late").save(place.projects)
    (tmp_path / "bin").mkdir()
    git = tmp_path / "bin" / "git"
    git.write_text(_GIT.format(waits=waits, go=go, git=shutil.which("git")))
    git.chmod(0o755)
    place.env["PATH"] = f"{git.parent}:{place.env['PATH']}"
    many = talk(SESSIONS[0], *(f"prompt {number}" for number in range(60))).save(place.projects)
    place.event("Stop", many, last_assistant_message="done: prompt 59")
    until(waits.exists)
    (recorder,) = place.recorders()
    marker = StorePaths(place.store).waiting
    assert not marker.exists()
    marker.write_text(f"{recorder}\n")
    place.event("Stop", late, last_assistant_message="done: late")
    assert place.recorders() == [recorder]
    go.touch()
    until(lambda: place.turns(SESSIONS[1]) == 1)
    until(place.is_quiet)
    assert not marker.exists()
    assert place.log() == ""


def test_a_session_that_cannot_be_locked_keeps_no_other_one_waiting(place: Place) -> None:
    lock = StorePaths(place.store).lock(f"session-{SESSIONS[0]}")
    lock.mkdir()
    paths = [talk(session, "one").save(place.projects) for session in SESSIONS[:2]]
    for path in paths:
        place.event("Stop", path, last_assistant_message="done: one")
    until(lambda: place.turns(SESSIONS[1]) == 1)
    until(place.is_quiet)
    assert f"{SESSIONS[0]}: cannot lock session-{SESSIONS[0]}: Is a directory" in place.log()
    assert place.turns(SESSIONS[0]) == 0
    lock.rmdir()
    place.event("SessionStart", paths[0])
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
