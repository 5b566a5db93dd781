"""A store that its owner may not write, or not even enter, as a process that is not root meets it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from shell import Shell
from transcripts import OTHER, SESSION

pytestmark = pytest.mark.xdist_group("modes")  # the folders whose modes are changed are those of all workers

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
