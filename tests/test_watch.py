"""`sessgit watch`: a process of its own looks on while recorders, commands and git are at work."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hooked import hooked
from machines import arrived, on_another
from plain import run_git
from shell import Shell
from test_cold import LARGE
from transcripts import OTHER, SESSION
from waiting import PATIENCE

from sessgit.history import watch
from sessgit.history.watch import WatchEvent, WatchProblem
from sessgit.store import refs
from sessgit.store.layout import session_of
from sessgit.store.store import Store

_ALONE = f"""
import runpy, sys
sys.argv = ["sessgit", "watch", "--all"]
try:
    runpy.run_module("sessgit", run_name="__main__")
except SystemExit as left:
    code = left.code
loaded = {{name.split(".")[0] for name in sys.modules}} & set({LARGE!r})
print(code, *sorted(loaded))
"""


class Watching:
    """A process that watches; `line()` waits for its next line."""

    def __init__(self, *arguments: str, code: str = "", place: str = "~/shop") -> None:
        command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "sessgit", "watch", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.out, self.err = self._read(self.process.stdout), self._read(self.process.stderr)
        assert self.remark() == f"(watching {place}; Ctrl-C ends)"

    def _read(self, stream: IO[str] | None) -> queue.Queue[str]:
        found: queue.Queue[str] = queue.Queue()
        assert stream is not None

        def read() -> None:
            with stream:
                for line in stream:
                    found.put(line.rstrip("\n"))
            found.put("")

        self.readers = [*getattr(self, "readers", []), threading.Thread(target=read)]
        self.readers[-1].start()
        return found

    def line(self) -> str:
        return self.out.get(timeout=PATIENCE)

    def remark(self) -> str:
        return self.err.get(timeout=PATIENCE)

    def event(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.line())
        assert document.pop("schema") == "sessgit.watch/v1"
        return document

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        """Ends it; nothing must be left that nobody has read."""
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        assert (self.line(), self.remark()) == ("", "")
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join()


Starts = Callable[..., Watching]


def starting() -> Iterator[Starts]:
    """What starts a watch; each is closed in the end."""
    started: list[Watching] = []

    def start(*arguments: str, code: str = "", place: str = "~/shop") -> Watching:
        started.append(Watching(*arguments, code=code, place=place))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def watching(sessgit: Shell) -> Iterator[Starts]:
    """Starts a watch of a store with one conversation in it."""
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    yield from starting()


def test_a_turn_is_a_line(sessgit: Shell, watching: Starts) -> None:
    seen = watching()
    talk = sessgit.talk().turns("one", "two").prompt("now the error recovery")
    talk.tool("Edit", {"file_path": "/p/a.py"}).tool("Bash", {"command": "make"}).answer("Done.").stop_lines()
    hooked(sessgit, talk)
    line = seen.line()
    assert line[line.index("5e551011") :] == "5e551011@3     now the error recovery     Bash Edit            500"
    hooked(sessgit, talk.prompt("a \x1b[31mred\x07\u202e word"))
    shown = seen.line()
    assert shown.isprintable()
    assert len(shown) <= 80
    assert seen.end() == 130


def test_what_a_program_reads_of_a_turn(sessgit: Shell, watching: Starts) -> None:
    seen = watching("--json")
    talk = sessgit.talk().turns("one", "two").prompt("three").answer("Thr")
    hooked(sessgit, talk)
    first = seen.event()
    assert first == {
        "event": "turn", "time": "2026-03-01T10:00:09.000Z", "id": SESSION, "turn": 3,
        "commit": refs.read(sessgit.store, f"refs/heads/{SESSION}"), "text": "three", "from": None, "new": True,
        "model": "claude-test-1", "tools": {}, "title": "one", "project": str(sessgit.project), "entries": [],
        "tokens": {"input": 100, "output": 10, "cache_read": 1000, "cache_write": 50},
    }  # fmt: skip
    hooked(sessgit, talk.tool("Bash", {}, "ok").stop_lines())
    second = seen.event()
    assert (second["turn"], second["new"], second["tools"]) == (3, False, {"Bash": 1})
    assert seen.end() == 130


def test_what_commands_do_is_told(sessgit: Shell, watching: Starts) -> None:
    seen = watching("--json")

    def told(*command: str) -> list[Any]:
        sessgit(*command)
        one = seen.event()
        return [one["event"], one["id"], one["turn"], one["text"], one["from"]]

    fork = "f0000001-0000-4000-8000-ffffffffffff"
    assert told("fork", SESSION, "--at", "1", "--name", "by hand")[:1] == ["fork"]
    assert told("rename", SESSION, "a parser") == ["edit", SESSION, None, "edit: name “a parser”", None]
    assert told("tag", "here", f"{SESSION}@1") == ["tag", SESSION, 1, "here", None]
    assert told("tag", "-d", "here") == ["untag", SESSION, 1, "here", None]
    assert told("archive", fork) == ["archive", fork, None, "", None]
    assert told("unarchive", fork) == ["unarchive", fork, None, "", None]
    assert told("delete", "--yes", fork) == ["delete", fork, None, "", None]
    assert told("undo") == ["back", fork, 1, "", None]
    assert told("fork", SESSION)[0] == "fork"
    assert told("undo")[0] == "gone"
    sessgit.out("remote", "add", "hub", str(sessgit.home / "nowhere.git"))
    assert seen.end() == 130


def test_a_rewind_comes_before_the_turn_that_it_made_room_for(sessgit: Shell, watching: Starts) -> None:
    talk = sessgit.talk().turns("one", "two", "three")
    hooked(sessgit, talk)
    seen = watching()
    hooked(sessgit, talk.rewind(1).turns("instead"))
    lines = [seen.line(), seen.line()]
    assert "5e551011       rewound to turn 1, 2 turns left behind: .r-a0000002  ·" in lines[0]
    assert "5e551011@2     instead" in lines[1]
    assert seen.end() == 130


def test_several_changes_come_in_the_order_in_which_they_were_made(sessgit: Shell, watching: Starts) -> None:
    seen = watching("--json")
    seen.process.send_signal(signal.SIGSTOP)
    other = sessgit.talk(OTHER)
    other.file.seconds = 5000
    other.turns("later")
    hooked(sessgit, other)
    hooked(sessgit, sessgit.talk().turns("one", "two", "three", "four"))
    sessgit.out("rename", SESSION, "a parser")
    sessgit.out("archive", OTHER)
    run_git(sessgit.store, "pack-refs", "--all")
    seen.process.send_signal(signal.SIGCONT)
    found = [seen.event() for _ in range(6)]
    assert [(one["event"], one["id"], one["turn"]) for one in found] == [
        ("turn", SESSION, 3),
        ("turn", SESSION, 4),
        ("turn", OTHER, 1),
        ("end", OTHER, None),
        ("edit", SESSION, None),
        ("archive", OTHER, None),
    ]
    assert seen.end() == 130


def test_of_this_project_of_one_conversation_or_of_all(sessgit: Shell, watching: Starts) -> None:
    here, one = watching("--json"), watching("--json", SESSION, place="5e551011")
    every = watching("--json", "--all", place="all projects")
    hooked(sessgit, sessgit.talk(OTHER, cwd="/elsewhere").turns("far"))
    assert every.event()["text"] == "far"
    hooked(sessgit, sessgit.talk("5e551011-0000-4000-8000-000000000003").turns("near"))
    fork = sessgit.json("fork", SESSION)["id"]
    sessgit.out("rename", fork, "by hand")
    assert [seen.event()["text"] for seen in (here, every)] == ["near"] * 2
    assert [(found["event"], found["id"]) for found in (one.event(), here.event())] == [("fork", fork)] * 2
    assert (here.event()["event"], every.event()["event"], every.event()["event"]) == ("edit", "fork", "edit")
    assert [seen.end() for seen in (here, one, every)] == [130] * 3


def test_plain_git_is_seen(sessgit: Shell, watching: Starts) -> None:
    hooked(sessgit, sessgit.talk(OTHER).turns("other"))
    seen = watching()
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    run_git(sessgit.store, *identity, "tag", "-a", "-m", "words", "v1", SESSION)
    assert seen.line().endswith("5e551011@2     tagged v1  ·  one")
    run_git(sessgit.store, "update-ref", "-d", f"refs/heads/{OTHER}")
    assert seen.line().endswith("5e551011       branch gone  ·  other")
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", f"{SESSION}^^")
    assert "back at turn 1" in seen.line()
    assert seen.end() == 130


def test_another_machine(sessgit: Shell, watching: Starts) -> None:
    seen = watching("--json")
    theirs = on_another(sessgit.talk().turns("one")).turns("there")
    name = arrived(sessgit, theirs, theirs.prompts[-1])
    assert [(one["event"], one["id"], one["turn"]) for one in (seen.event(), seen.event())] == [
        ("elsewhere", name, None),
        ("turn", name, 2),
    ]
    assert seen.end() == 130


def test_a_turn_of_many_commits_is_one_line(sessgit: Shell, watching: Starts) -> None:
    seen = watching("--json")
    talk = sessgit.talk(OTHER).prompt("work").tool("Bash", {}, "a").tool("Read", {}, "b").tool("Edit", {}, "c")
    hooked(sessgit, talk, "cell")
    one = seen.event()
    assert (one["turn"], one["text"], one["new"], sorted(one["tools"])) == (1, "work", True, ["Bash", "Edit", "Read"])
    assert seen.end() == 130


# What goes wrong meanwhile


def test_a_store_that_is_gone_ends_it(sessgit: Shell, watching: Starts) -> None:
    seen = watching()
    shutil.rmtree(sessgit.store)
    assert seen.process.wait(PATIENCE) == 7
    assert seen.remark() == f"Error: the store at {sessgit.store} is gone."
    assert seen.line() == ""


def test_another_store_in_its_place_is_told(sessgit: Shell, watching: Starts, tmp_path: Path) -> None:
    seen = watching()
    shutil.copytree(sessgit.store, tmp_path / "copy")
    talk = sessgit.talk().turns("one", "two")
    seen.process.send_signal(signal.SIGSTOP)
    sessgit.store.rename(tmp_path / "old")
    (tmp_path / "copy").rename(sessgit.store)
    hooked(sessgit, talk.turns("three"))
    seen.process.send_signal(signal.SIGCONT)
    assert seen.remark() == "another store is in its place: watching that one from now on"
    hooked(sessgit, talk.turns("four"))
    assert "5e551011@4     four" in seen.line()
    assert seen.end() == 130


def test_what_is_damaged_is_told_and_the_rest_goes_on(sessgit: Shell, watching: Starts) -> None:
    hooked(sessgit, sessgit.talk(OTHER).turns("other"))
    seen = watching()
    bad = sessgit.store / "refs" / "heads" / f"{OTHER}.lock"
    bad.write_text("0123456789" * 4 + "\n")
    bad.rename(bad.with_suffix(""))
    assert seen.remark().startswith("5e551011: the store lacks the object 0123456789")
    hooked(sessgit, sessgit.talk().turns("one", "two", "three"))
    assert "5e551011@3     three" in seen.line()
    assert seen.end() == 130


def test_it_ends_when_nobody_reads_any_more(sessgit: Shell, watching: Starts) -> None:
    """As in `sessgit watch | head -1`: at once, not with the next change."""
    script = f"{sys.executable} -m sessgit watch --json | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.stdout is not None
    assert done.stderr is not None
    with done:
        assert "Ctrl-C" in done.stderr.readline()
        hooked(sessgit, sessgit.talk().turns("one", "two", "three"))
        assert json.loads(done.stdout.readline())["text"] == "three"
        assert done.wait(PATIENCE) == 141
        assert done.stderr.read() == ""


def test_what_cannot_be_watched(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert sessgit("watch", "--all", SESSION).code == 2
    assert sessgit("watch", "nothing-like-this").code == 4


# What it costs


def test_while_nothing_happens_nothing_large_is_loaded(sessgit: Shell, watching: Starts) -> None:
    seen = watching(code=_ALONE, place="all projects")
    time.sleep(3 * watch.INTERVAL)
    seen.process.send_signal(signal.SIGINT)
    assert seen.line() == "130"


def old(store: Path) -> None:
    """The folders of the refs as if nobody had been there for an hour."""
    for folder in (store / "refs", *(store / "refs").rglob("*"), store / "packed-refs"):
        if folder.exists():
            os.utime(folder, (time.time() - 3600,) * 2)


def test_refs_are_read_only_when_one_may_have_moved(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    old(sessgit.store)
    reads, looks, made = list[str](), list[int](), []
    read_all = refs.read_all
    monkeypatch.setattr(refs, "read_all", lambda *arguments: (reads.append(""), read_all(*arguments))[1])

    def wait() -> None:
        looks.append(len(reads))
        if len(looks) == 50:
            run_git(sessgit.store, "tag", "v1", SESSION)
        if len(looks) == 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made += list(watch.follow_store(sessgit.store, lambda: Store(sessgit.store), wait))
    assert looks[:50] == [1] * 50


def test_every_way_to_move_a_ref_stirs(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    store = sessgit.store
    beat = watch.RefPoller(store)
    assert beat.may_have_moved()
    for command in (
        ("tag", "v1", SESSION),
        ("update-ref", f"refs/heads/{SESSION}", f"{SESSION}^"),
        ("update-ref", "refs/archive/x", SESSION),
        ("pack-refs", "--all"),
        ("update-ref", "-d", "refs/tags/v1"),
        ("update-ref", "refs/heads/a/b", SESSION),
        ("update-ref", "refs/heads/a/b", f"{SESSION}^"),
    ):
        old(store)
        beat.may_have_moved()
        assert not beat.may_have_moved()
        run_git(store, *command)
        assert beat.may_have_moved(), command


def test_two_changes_at_one_time_are_both_seen(sessgit: Shell) -> None:
    """The time of a folder is as coarse as the disk has it: so one that is new is not believed."""
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    beat = watch.RefPoller(sessgit.store)
    run_git(sessgit.store, "tag", "v1", SESSION)
    assert beat.may_have_moved()
    folder = sessgit.store / "refs" / "tags"
    when = folder.stat().st_mtime_ns
    (folder / "v1").write_text((folder / "v1").read_text())
    os.utime(folder, ns=(when, when))
    assert beat.may_have_moved()


# Whatever happens: what is told adds up


def test_each_commit_is_told_once(sessgit: Shell) -> None:
    """Between any two moments of a store: each new turn of it, once, after the turn before it."""
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk)
    moments = [watch.read_ref_state(sessgit.store)]
    for step in (
        lambda: hooked(sessgit, talk.turns("two", "three")),
        lambda: hooked(sessgit, talk.rewind(2).turns("four")),
        lambda: sessgit.out("fork", SESSION, "--at", "2"),
        lambda: hooked(sessgit, talk.rewind(1).turns("five", "six")),
        lambda: sessgit.out("archive", "f000"),
        lambda: sessgit.out("delete", "--yes", SESSION),
        lambda: sessgit.out("undo"),
    ):
        step()
        moments.append(watch.read_ref_state(sessgit.store))
    store = Store(sessgit.store)
    for first in range(len(moments)):
        for last in range(first, len(moments)):
            found, troubles = watch.changes_between(store, moments[first], moments[last], [])
            assert troubles == []
            _check(store, moments[first], moments[last], found)


def _check(store: Store, old: watch.RefState, new: watch.RefState, found: list[WatchEvent]) -> None:
    def turns(seen: watch.RefState) -> set[tuple[str, str]]:
        """The turns of sessions that are there: those that only a fork still has are none."""
        out = set()
        for name, (tip, _) in seen.branches.items():
            messages = [store.message(commit.id) for commit in store.repo.first_parents(tip)]
            own = [m for m in messages if m.get("Session") == session_of(name) and m.get("Prompt")]
            out |= {(m.get("Session"), m.get("Prompt")) for m in own}
        return out

    told = [change for change in found if change.event == "turn"]
    keys = [(change.session, store.message(change.commit).get("Prompt")) for change in told]
    assert len(keys) == len(set(keys))
    assert set(keys) == turns(new) - turns(old)
    places = {change.commit: place for place, change in enumerate(found) if change.event not in ("rewind", "back")}
    for commit, place in places.items():
        assert all(places.get(parent, -1) < place for parent in store.commit(commit).parents)


def test_a_trouble_is_no_change(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    now = watch.read_ref_state(sessgit.store)
    bad = watch.RefState({**now.branches, "bad": ("1" * 40, False)}, {**now.tags, "odd": "2" * 40}, now.stones)
    found, troubles = watch.changes_between(Store(sessgit.store), now, bad, [])
    assert found == []
    assert [type(trouble) for trouble in troubles] == [WatchProblem]
    assert troubles[0].branch == "bad"
