"""Folders of other systems that somebody made to do harm: nothing outside of them is read, nothing at all is changed,
and what comes of them is told in plain text."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import signal
import socket
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import foreigners
import pytest
import test_apex
import test_dialectic
from fuzzing import EVIL, broken, changed, dumped, listing, runs, spoils, took
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git
from shell import Shell
from test_fuzz import as_before, check, tried

from sessgit.exchange import apex, dialectic, iolog, rlm

CANARY = "nobody-may-read-this"
LONGEST = 30
"""Seconds that one input may take."""
MAKERS: dict[str, Callable[[Path, str], object]] = {}
READERS: dict[str, Any] = {"rlm": rlm, "rlm-state": rlm, "apex": apex, "dialectic": dialectic, "io-log": iolog}


def maker(name: str) -> Callable[[Callable[[Path, str], object]], None]:
    def known(make: Callable[[Path, str], object]) -> None:
        MAKERS[name] = make

    return known


@maker("rlm")
def of_rlm(at: Path, said: str) -> None:
    folder = foreigners.rlm(at, said=(said, "42", "again", "43"))
    foreigners.put(folder / "cells" / "cell_a.json", foreigners.cell("cell_a"))
    foreigners.put(folder / "cells" / "cell_b.json", foreigners.cell("cell_b", 2, dependencies=["cell_a"]))
    foreigners.put(folder / "cells" / "index.json", {"cells": ["cell_a", "cell_b"], "note": said})
    foreigners.put(folder / "trajectory.jsonl", [{"type": "x", "content": said, "timestamp": foreigners.BORN}])


@maker("rlm-state")
def of_flat(at: Path, said: str) -> None:
    state = at / "rlm-state"
    foreigners.put(state / "s1.json", {"session_id": "s1", "created_at": foreigners.BORN, "rlm_active": True,
                                       "working_memory": {"plan": said}})  # fmt: skip
    foreigners.put(state / "s1_context.json", {
        "messages": [{"role": "user", "content": said, "timestamp": foreigners.BORN + 1}], "files": {"a.py": said},
        "tool_outputs": [{"tool_name": "Bash", "content": said, "exit_code": 1, "timestamp": foreigners.BORN + 1.5}],
    })  # fmt: skip
    foreigners.put(state / "session-metadata.json", {"session_id": "s1", "cwd": "/home/ada"})
    foreigners.put(at / "rlm-trajectories" / "s1_summary.json", {"b": said})


@maker("apex")
def of_apex(at: Path, said: str) -> None:
    base = f"{test_apex.SESSIONS}/"
    packed = gzip.compress(json.dumps(test_apex.session(test_apex.B, name=said)).encode(), mtime=0)
    test_apex.laid(at, {
        f"{base}{test_apex.A}.json": test_apex.session(name=said), f"{base}archive/{test_apex.B}.json.gz": packed,
        f"{base}index.json": {"version": 1, "sessions": [{"id": test_apex.A, "name": said}]},
        f"{base}active.json": {"sessionId": test_apex.A},
    })  # fmt: skip


@maker("dialectic")
def of_dialectic(at: Path, said: str) -> None:
    test_dialectic.laid(at, {f"{test_dialectic.AT}/session.json": test_dialectic.session(title=said),
                             **{path: f"# {said}\n".encode() for path in test_dialectic.FILES}})  # fmt: skip


@maker("io-log")
def of_iolog(at: Path, said: str) -> None:
    lines = (foreigners.went("in", said, 1), foreigners.went("artifact", "docs/a.md", 2, action="created"),
             foreigners.went("out", said, 3))  # fmt: skip
    foreigners.log(at, "A-1", *lines, task=said)
    foreigners.log(at, "A-2", *lines, parent_session="A-1", task=said)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder of each system, and beside them what nobody may read."""
    for name, make in MAKERS.items():
        make(tmp_path / "kept" / name, "the task")
        make(tmp_path / "outside" / name, CANARY)
    return tmp_path


NAMES = [word for word in (*EVIL, "\udcff\udcfe", "a" * 250, "index.json.", "CON", ".git", "con:x", "session.json ",
                           "active.json", "x.json.gz", "\u00e9.json", "e\u0301.json")
         if 0 < len(os.fsencode(word) if "\ud800" not in word else b"") < 256 and not {"\0", "/"} & set(word)
         and word not in (".", "..")]  # fmt: skip
CONTENTS = (b"", b"[" * 100_000, b'{"a":' * 5000, b"9" * 5000, b"\xff\xfe\0", gzip.compress(bytes(1 << 20)),
            b"\x1f\x8b\x08", b'{"id":1e999}', b"[]", b"null", b'"x"', b"\n" * 5000, b"---\n" * 500)  # fmt: skip


def harm(data: st.DataObject, at: Path, outside: Path) -> None:
    """Changes one thing below a folder."""
    files = sorted(path for path in at.rglob("*") if path.is_file() and not path.is_symlink())
    every = sorted(path for path in at.rglob("*") if not path.is_symlink() and (path.is_file() or path.is_dir()))
    if not files:
        return
    place = data.draw(st.sampled_from(files))
    match data.draw(st.sampled_from(["change"] * 5 + ["bytes", "content", "name", "link", "links", "pipe", "folder"])):
        case "change":
            place.write_bytes(anew(data, place))
        case "bytes":
            place.write_bytes(data.draw(broken(place.read_bytes())))
        case "content":
            place.write_bytes(data.draw(st.sampled_from(CONTENTS)))
        case "name":
            target = place.with_name(data.draw(st.sampled_from(NAMES)))
            if not target.exists():
                place.rename(target)
        case "link":
            same = outside / place.relative_to(at)
            place.unlink()
            place.symlink_to(
                data.draw(st.sampled_from([same, outside, place, at, Path("/nowhere"), Path("/dev/zero")]))
            )
        case "links":
            place = data.draw(st.sampled_from(every))
            same = outside / place.relative_to(at)
            shutil.rmtree(place) if place.is_dir() else place.unlink()
            place.symlink_to(data.draw(st.sampled_from([same, at, Path(".."), Path()])))
        case "pipe":
            place.unlink()
            if data.draw(st.booleans()):
                os.mkfifo(place)
            else:
                with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(place.parent):
                    one.bind(os.fsencode(place.name)[:100])
        case "folder":
            place.unlink()
            place.mkdir()
            (place / "x.json").write_text("{}")


def anew(data: st.DataObject, place: Path) -> bytes:
    """What the file holds with something else in places of it, as far as it holds JSON."""
    was = place.read_bytes()
    packed = place.suffix == ".gz"
    try:
        plain = gzip.decompress(was) if packed else was
        if place.suffix in (".log", ".jsonl"):
            lines = [json.loads(line) for line in plain.splitlines()]
            whole = data.draw(changed([lines]))
            plain = b"".join(dumped(line) + b"\n" for line in whole) if isinstance(whole, list) else dumped(whole)
        else:
            plain = dumped(data.draw(changed([json.loads(plain)])))
    except (ValueError, EOFError, OSError, RecursionError, zlib.error):
        return data.draw(broken(was))
    return gzip.compress(plain, mtime=0) if packed else plain


@contextmanager
def in_time() -> Iterator[None]:
    """Nothing is waited for: no pipe, no endless file, no circle."""

    def late(*_: object) -> None:
        raise AssertionError(f"it took more than {LONGEST} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def harmed(data: st.DataObject, world: Path) -> tuple[str, Path]:
    """A system, and a folder of it with something wrong in it."""
    name = data.draw(st.sampled_from(sorted(MAKERS)))
    folder = world / "given"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(world / "kept" / name, folder)
    for _ in range(data.draw(st.integers(1, 3))):
        harm(data, folder, world / "outside" / name)
    return name, folder


@runs(6, 15)
@given(data=st.data())
def test_any_folder_of_another_system_is_read(
    world: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    monkeypatch.chdir(world)
    name, folder = harmed(data, world)
    before = listing(world)
    with in_time():
        found = tried(lambda: READERS[name].read(folder))
    assert listing(world) == before
    if found is not None:
        assert CANARY not in repr(found)
        assert not [file for file in found.files if spoils(file.path + file.why)]
        names = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
        assert len(found.files) >= len({one for one in names if one.parts[0] in top(found)})
    took()


def top(found: Any) -> set[str]:
    """The folders that were looked through."""
    return {Path(file.path).parts[0] for file in found.files}


@runs(0.5, 2)
@given(data=st.data())
def test_any_folder_of_another_system_is_imported(sessgit: Shell, world: Path, data: st.DataObject) -> None:
    if not sessgit.store.exists():
        sessgit.recorded(sessgit.talk().turns("one"))
    as_before(sessgit, world / "client")
    name, folder = harmed(data, world)
    system = "rlm" if name == "rlm-state" else name
    before = listing(world)
    with in_time():
        for words in (["import", "--from", system, str(folder), "--dry-run"], ["import", "--from", system, str(folder)],
                      ["ls", "--all"], ["tree", "--all"], ["import", "--from", system, str(folder)]):  # fmt: skip
            check(sessgit, *words)
    assert listing(world) == before
    for session in sessgit.json("ls", "--all")["sessions"]:
        for words in (("log", session["id"]), ("export", "json", session["id"]), ("pad", "--into", session["id"])):
            assert CANARY not in check(sessgit, *words)
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""
    took()
