"""The guide's commands do what the guide shows.

They are run from its top to its bottom in one sealed home. With SESSGIT_TEST_WRITE_GUIDE=1 what they print is written
into the guide.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from shell import Shell

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from conversation import OTHER_WAY, PARSER, UPLOAD, Conversation  # noqa: E402 - the folder is no package

from sessgit.agents.claude import home  # noqa: E402

GUIDE = ROOT / "docs" / "guide.md"
CALC = "a41f9c02-5b7e-4c1d-9e0a-6d2f8b3c4e5f"
SHOP = "0b2d7f10-7c1e-4b57-8f2e-1d9a4c3b5e6f"
NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
# Sizes depend on git, on zlib and on the length of the home's path, a commit's id on that path.
_VARYING = re.compile(r"\d+(\.\d+)? [kMG]?B\b|commit `[0-9a-f]{12}`")


@dataclass
class Step:
    """A command as the guide shows it, and what it prints."""

    command: str
    shown: list[str]


def steps(text: str) -> Iterator[Step]:
    """The commands of the guide in their order; what one prints goes on to the next one, or to the block's end."""
    step = None
    for line in text.splitlines():
        if not line.startswith("    "):
            # A blank line may stand inside of an output: a block ends at the first line of text.
            if line and step is not None:
                yield _trimmed(step)
                step = None
            elif step is not None:
                step.shown.append("")
        elif line.startswith("    $ "):
            if step is not None:
                yield _trimmed(step)
            step = Step(line[6:], [])
        elif step is not None:
            step.shown.append(line[4:])
    if step is not None:
        yield _trimmed(step)


def _trimmed(step: Step) -> Step:
    while step.shown and not step.shown[-1]:
        step.shown.pop()
    return step


class World:
    """A home with two projects, in each of which a conversation was held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.shell = Shell(monkeypatch, capsys)
        self.shell.now = NOW.timestamp()
        self._patch, self._capsys = monkeypatch, capsys
        monkeypatch.setenv("COLUMNS", "80")
        for project, session, turns in (("calc", CALC, PARSER), ("shop", SHOP, UPLOAD)):
            folder = self.shell.home / "code" / project
            (folder / ".git").mkdir(parents=True)
            path = home.project_folder(self.shell.config, str(folder)) / f"{session}.jsonl"
            talk = Conversation(session, folder, path)
            for turn in turns:
                talk.turn(*turn)
            os.utime(path, (NOW.timestamp() - 3600,) * 2)
        monkeypatch.chdir(self.shell.home / "code" / "calc")

    def run(self, command: str) -> list[str]:
        """What a command prints, on both streams; `cd` and what is none of ours go to the shell."""
        if command.startswith("cd "):
            self._patch.chdir(Path(command[3:]).expanduser())
            return []
        if command.startswith("claude --resume "):
            self._go_on(command.split()[2])
            return []
        if command.startswith("sessgit") and "|" not in command:
            done = self.shell(*(str(Path(w).expanduser()) if w[:2] == "~/" else w for w in shlex.split(command)[1:]))
            return self._placed(done.out + done.err)
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done_by_shell = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
        return self._placed(done_by_shell.stdout + done_by_shell.stderr)

    def _go_on(self, session: str) -> None:
        """Plays the client, which goes on with a conversation."""
        folder = self.shell.home / "code" / "calc"
        path = home.project_folder(self.shell.config, str(folder)) / f"{session}.jsonl"
        leaf = json.loads(path.read_bytes().splitlines()[-1])["leafUuid"]
        talk = Conversation(session, folder, path, parent=leaf, clock=NOW)
        for turn in OTHER_WAY:
            talk.turn(*turn)

    def _placed(self, text: str) -> list[str]:
        """The lines with the home at a place of its own, as a path and in the names of the client's folders."""
        for mine, theirs in ((str(self.shell.home), "/home/ada"), (home.slug(str(self.shell.home)), "-home-ada")):
            text = text.replace(mine, theirs)
        return text.splitlines()


def written(text: str, outputs: list[list[str]]) -> str:
    """The guide with each command's output replaced."""
    lines, found, skipping = list[str](), iter(outputs), False
    for line in text.splitlines():
        if line.startswith("    $ "):
            lines += [line, *(f"    {shown}".rstrip() for shown in next(found))]
            skipping = True
        elif skipping and (line.startswith("    ") or not line):
            continue
        else:
            if skipping:
                lines.append("")
            skipping = False
            lines.append(line)
    return "\n".join(lines) + "\n"


def test_the_guide_is_true(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text, world = GUIDE.read_text("utf-8"), World(monkeypatch, capsys)
    wanted = list(steps(text))
    outputs = [world.run(step.command) for step in wanted]
    for output in outputs:
        while output and not output[-1].strip():
            output.pop()
    if os.environ.get("SESSGIT_TEST_WRITE_GUIDE"):
        GUIDE.write_text(written(text, outputs), "utf-8")
        return
    assert len(wanted) > 30
    for step, output in zip(wanted, outputs, strict=True):
        assert [_plain(line) for line in output] == [_plain(line) for line in step.shown], step.command


def _plain(line: str) -> str:
    return _VARYING.sub("#", line).rstrip()
