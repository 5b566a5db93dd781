"""A store that its owner may not write, or not even enter, as a process that is not root meets it.

Some tests open folders that all workers share: only those of one file never run at the same time.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import Place
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.errors import StoreError
from sessgit.store import locks
from sessgit.store.layout import StorePaths

RUN = """\
import os, sys
from pathlib import Path
from sessgit.cli import app

def run(*arguments):
    sys.argv = ["sessgit", *arguments]
    try:
        app.main()
    except SystemExit as left:
        sys.stdout.flush()
        return left.code or 0

store, mode = Path(sys.argv[1]), int(sys.argv[2], 8)
commands = [command.split() for command in sys.argv[3:]]
before = os.dup(1), os.dup(2)
with open(os.devnull, "w") as nowhere:
    os.dup2(nowhere.fileno(), 1), os.dup2(nowhere.fileno(), 2)
    for command in [["archive", "other"], ["doctor"]]:
        run(*command)  # loads what it needs
os.dup2(before[0], 1), os.dup2(before[1], 2)
if not os.geteuid():
    for path in [store, *store.rglob("*")]:
        os.chown(path, 12345, -1)
    os.setuid(12345)
store.chmod(mode)
for command in commands:
    print(run(*command), file=sys.stderr)
store.chmod(0o700)
"""


def told(sessgit: Shell, mode: str, *commands: str) -> tuple[str, str]:
    """What is said where the store has this mode, and on the other side, with the exit codes, what is wrong."""
    sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("two"))
    sessgit.out("rename", OTHER, "other")
    above = [path for path in sessgit.home.parents if len(path.parts) > 2 and path.stat().st_uid == os.geteuid()]
    modes = {path: path.stat().st_mode for path in (sessgit.config, sessgit.home, *above)}
    for path, before in modes.items():
        path.chmod(before | 0o055)
    command = [sys.executable, "-c", RUN, str(sessgit.store), mode, *commands]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        for path, before in modes.items():
            path.chmod(before)
    return done.stdout, done.stderr


@pytest.mark.parametrize("command", [f"archive {SESSION}", f"delete {SESSION} --yes"])
def test_what_may_not_be_written_is_not_locked(sessgit: Shell, command: str) -> None:
    out, err = told(sessgit, "500", command)
    error, hint, code = err.splitlines()
    assert (out, code, error.endswith("Permission denied.")) == ("", "7", True)
    assert hint == "Hint: `sessgit doctor` shows what is not writable."


@pytest.mark.parametrize("mode", ["500", "000"])
def test_the_check_up_says_it(sessgit: Shell, mode: str) -> None:
    out, err = told(sessgit, mode, "doctor")
    assert out.startswith(
        "~/.claude/session-store  damaged\n"
        "    no permission to read and write there, so nothing is recorded\n"
        "    chmod -R u+rwX ~/.claude/session-store\n"
    ), err
    assert err == "1\n"


def test_the_status_and_the_installation_say_it(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modes are read as for their owner, also if root runs the tests."""
    sessgit.out("install")
    (sessgit.store / "objects").chmod(0o500)
    monkeypatch.setattr(os, "access", lambda path, wanted: not wanted & ~(Path(path).stat().st_mode >> 6))
    status, recording = sessgit.out("status"), sessgit.json("status")["recording"]
    installed, on = sessgit.out("install"), sessgit.out("on")
    (sessgit.store / "objects").chmod(0o700)
    why = f"no permission to read and write in the store: chmod -R u+rwX {sessgit.store}"
    assert recording == {"on": False, "reason": why, "plugin": None}
    assert status.startswith("Recording   off\n            no permission to read and write in the store:")
    assert installed == (
        f"Nothing can be recorded: {why}\nThere are 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)\n"
    )
    assert on.endswith(f"But nothing is recorded: {why}\n")
    assert sessgit.json("status")["recording"] == {"on": True, "reason": None, "plugin": None}


def test_a_lock_that_may_not_be_made_names_its_folder(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.out("install")
    opened, folder = os.open, StorePaths(sessgit.store).locks

    def refuse(path: str | Path, *more: int, **named: int) -> int:
        if Path(path).parent == folder:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError) as error:
        locks.hold_off_prune(StorePaths(sessgit.store))
    assert str(error.value) == "cannot lock objects: Permission denied"
    assert error.value.hint == f"Is {folder} yours and writable?"


READER = """
import os, sys
from sessgit import SessgitError, Store

def read():
    own = Store.open().load_session(sys.argv[1])
    cell = own.cells()[0]
    return own, [[turn.answer for turn in own], own.cell_document(cell)["output"]["result"], own.execution_order()]

read()  # loads what it needs
if not os.geteuid():  # root may write everywhere; and git reads only what is one's own
    for path in [Store.open().path, *Store.open().path.rglob("*")]:
        os.chown(path, 12345, -1)
    os.setuid(12345)
own, told = read()
print(told)
try:
    own.record_turn("two")
except SessgitError as error:
    print(bool(str(error)), bool(error.hint))
"""


def test_a_store_that_cannot_be_written_is_read(place: Place) -> None:
    session = place.begin()
    session.record_turn("one", "1")
    cell = session.begin_cell(type="repl", operation="x")
    session.complete_cell(cell, 1)
    home = place.config.parent
    above = [home, *(path for path in home.parents if path.stat().st_uid == os.geteuid() and len(path.parts) > 2)]
    paths = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in (*above, *paths)}
    for path in above:
        path.chmod(modes[path] | 0o055)
    for path in paths:
        path.chmod((modes[path] | 0o555) & ~0o222)
    try:
        done = subprocess.run([sys.executable, "-c", READER, session.id], capture_output=True, text=True, check=False)
    finally:
        for path, mode in modes.items():
            os.chown(path, os.geteuid(), -1)
            path.chmod(mode)
    assert done.stdout.splitlines() == [f"[['1', ''], 1, ['{cell}']]", "True True"], done.stderr
    assert session.record_turn("two") == 3
