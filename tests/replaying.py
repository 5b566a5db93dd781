"""Conversations whose cells can be run again, in a project with code, and what running them must leave alone."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from coded import Coded
from programs import transcript
from shell import Done, Shell
from transcripts import SESSION, Talk

from sessgit.agents.claude import home
from sessgit.errors import SessgitError
from sessgit.model.program_input import GivenTurn, Outcome, Step, Task
from sessgit.replay.sandbox import processes
from sessgit.replay.sandbox.processes import Confinement


def why_not_confined() -> str:
    """Why nothing here confines a process, or `""`."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            processes.check_can_run(Confinement((folder,), {"PATH": os.environ["PATH"]}))
        except SessgitError as error:
            return f"{error}"
    return ""


_WHY = why_not_confined()
CONFINED = pytest.mark.skipif(bool(_WHY), reason=_WHY)


def read_result(*lines: str, first: int = 1) -> str:
    """What the client says when it has read a file."""
    return "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, start=first))


def untouched(shell: Shell) -> dict[str, Any]:
    """What a replay must leave as it is: all of the home but the store, and no sandbox is left."""
    files = {
        str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(shell.home.rglob("*"))
        if shell.store not in (path, *path.parents)
    }
    return files | {"left": sorted(Path(tempfile.gettempdir()).glob("sessgit-*"))}


def replayed(shell: Shell, *arguments: str, code: int = 0) -> Done:
    """A replay that changes nothing but the store."""
    own = shell.home.with_name(f"{shell.home.name}-tmp")
    own.mkdir(exist_ok=True)
    with mock.patch.object(tempfile, "tempdir", str(own)):  # other tests run beside this one
        before = untouched(shell)
        done = shell("replay", *arguments)
        assert done.code == code, done
        assert untouched(shell) == before
    return done


def value(shell: Shell, *arguments: str, code: int = 0) -> Any:
    """What a replay says to programs."""
    found = json.loads(replayed(shell, *arguments, "--json", code=code).out)
    return found


def outcomes(shell: Shell, *arguments: str, code: int = 0) -> list[tuple[str, str, str | None]]:
    """The operation of each call, what came of it, and why."""
    found = value(shell, *arguments, code=code)["cells"]
    return [
        (one["operation"], one["outcome"], one["reason"]) for one in found if one["reason"] != "a message of the model"
    ]


def commands(coded: Coded, *calls: tuple[str, str]) -> Talk:
    """One turn with a command and its result for each."""
    talk = coded.talk(SESSION).prompt("go")
    for command, result in calls:
        talk.tool("Bash", {"command": command}, result, error=result.startswith("Exit code"))
    coded.record(talk.answer("Done.").stop_lines())
    return talk


def program(shell: Shell, *steps: Step, session: str = SESSION, prompt: str = "compute") -> Path:
    """A session of a program with one turn of these cells, imported."""
    numbers = iter(range(1, 1000))
    names = lambda word: f"ab{next(numbers):06d}-0000-4000-8000-{session[-12:]}"  # noqa: E731
    turn = GivenTurn(prompt, steps, "done", time=1_772_359_200.0)
    data = transcript(session, [turn], names, {"cwd": str(shell.project), "version": "2.1.7"})
    path = home.project_folder(shell.config, str(shell.project)) / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    done = shell("import")
    assert done.code == 0, done
    return path


def step(
    number: int, kind: str, operation: str, args: dict[str, Any], result: Any = None, *, error: str | None = None,
    needs: tuple[int, ...] = (),
) -> Step:  # fmt: skip
    """A cell `cell_0000000N` with what came of it."""
    task = Task(kind, operation, args, "repl", tuple(f"cell_0000000{n}" for n in needs), f"cell_0000000{number}")
    return Step(task, Outcome(result, error))


def script(folder: Path, name: str, text: str) -> str:
    """A program in Python that a command line starts."""
    path = folder / name
    path.write_text(text)
    return shlex.join((sys.executable, str(path)))


def alive(marker: str) -> list[str]:
    """The command lines of all processes that have the marker in theirs."""
    if Path("/proc/self").exists():
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it is gone meanwhile
                lines.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    else:
        lines = subprocess.run(["ps", "-axo", "args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if marker in line and "pytest" not in line]
