"""Documents that tell a story in commands: they are run from top to bottom in a sealed home, and print what is shown.

With SESSGIT_TEST_WRITE_GUIDE=1 what they print is written into the document instead.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from shell import Shell

from sessgit.store.context import Context

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from conversation import Call, Conversation  # noqa: E402 - the folder is no package

from sessgit.agents.claude import home  # noqa: E402
from sessgit.history import project_git  # noqa: E402
from sessgit.record.recording import record  # noqa: E402
from sessgit.record.source import TranscriptSource  # noqa: E402
from sessgit.store import operations  # noqa: E402
from sessgit.store.index import Index  # noqa: E402
from sessgit.store.layout import StorePaths  # noqa: E402
from sessgit.store.store import Store  # noqa: E402

Turn = tuple[str, list[Call], str]
"""A prompt, the calls of tools with their results, and the answer."""

# Sizes depend on git, on zlib and on the length of the home's path, a commit's id on that path.
_VARYING = re.compile(r"\d+(\.\d+)? [kMG]?B\b|commit `[0-9a-f]{12}`")


@dataclass
class Step:
    """A command as the document shows it, and what it prints."""

    command: str
    shown: list[str]


class World:
    """A sealed home in which the commands of a document are run; `play` is told of each command of the client."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], now: float, play: Callable[..., None]
    ) -> None:
        self.shell = Shell(monkeypatch, capsys)
        self.shell.now = now
        self._patch, self._play = monkeypatch, play
        monkeypatch.setenv("COLUMNS", "80")

    def transcript(self, session: str, folder: Path) -> Path:
        """Where the client keeps a conversation that is held in a folder."""
        return home.project_folder(self.shell.config, str(folder)) / f"{session}.jsonl"

    def enter(self, folder: Path) -> None:
        self._patch.chdir(folder)

    def run(self, command: str) -> list[str]:
        """What a command prints, on both streams; `cd` and what is none of ours go to the shell."""
        if command.startswith("cd ") and "&&" not in command:
            self.enter(Path(command[3:]).expanduser())
            return []
        if command.split(maxsplit=1)[0] == "claude":
            self._play(self, *command.split()[1:])
            return []
        if command.startswith("sessgit") and "|" not in command:
            real = {told: found for found, told in self._operations().items()}
            words = (str(Path(w).expanduser()) if w[:2] == "~/" else real.get(w, w) for w in shlex.split(command)[1:])
            done = self.shell(*words)
            return self._placed(done.out + done.err)
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done_by_shell = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
        return self._placed(done_by_shell.stdout + done_by_shell.stderr)

    def going_on(self, session: str, folder: Path, **more: object) -> Conversation:
        """A conversation of which there is a file, at its end."""
        path = self.transcript(session, folder)
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        leaf = lines[-1].get("leafUuid") or next(line["uuid"] for line in reversed(lines) if "uuid" in line)
        # No two lines may have one uuid.
        return Conversation(session, folder, path, parent=leaf, _count=10 * len(lines), **more)  # type: ignore[arg-type]

    def record(self, talk: Conversation, *, live: bool = True) -> None:
        """Brings the store level with a transcript, as the recorder does for a running client."""
        store = Store(self.shell.store)
        index = Index(store.path, lambda: store)
        head = project_git.project_head(str(talk.cwd), dict(os.environ)) if live else ""
        source = TranscriptSource(talk.path, talk.session, self.shell.config, live=live, head=head)
        record(Context(index), source)
        index.close()

    def _placed(self, text: str) -> list[str]:
        """The lines with the home at a place of its own, as a path and in the names of the client's folders."""
        mine = str(self.shell.home)
        text = unquoted(text, mine)
        told = {mine: "/home/ada", home.slug(mine): "-home-ada", **self._operations()}
        for ours, theirs in told.items():
            text = text.replace(ours, theirs)
        return text.splitlines()

    def _operations(self) -> dict[str, str]:
        """The ids of the operations so far, which depend on the home's path, and those that the document tells."""
        done = operations.read(StorePaths(self.shell.store))
        return {operation.id: f"0e{number:06x}" for number, operation in enumerate(done, start=1)}


def unquoted(text: str, home: str) -> str:
    """The text without the quotes that a shell needs around paths in such a home: what is shown needs none."""
    return re.sub(rf"'({re.escape(home)}[\w./-]*)'", r"\1", text) if shlex.quote(home) != home else text


def holds(document: Path, world: World, at_least: int) -> None:
    """Fails where a command of the document prints anything else than is shown, or there are fewer of them."""
    text = document.read_text("utf-8")
    wanted = list(_steps(text))
    outputs = [world.run(step.command) for step in wanted]
    for output in outputs:
        while output and not output[-1].strip():
            output.pop()
    if os.environ.get("SESSGIT_TEST_WRITE_GUIDE"):
        document.write_text(_written(text, outputs), "utf-8")
        return
    assert len(wanted) >= at_least
    for step, output in zip(wanted, outputs, strict=True):
        assert [_plain(line) for line in output] == [_plain(line) for line in step.shown], step.command


def _steps(text: str) -> Iterator[Step]:
    """The commands in their order; what one prints goes on to the next one, or to the block's end."""
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


def _written(text: str, outputs: list[list[str]]) -> str:
    """The document with each command's output replaced."""
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


def _plain(line: str) -> str:
    return _VARYING.sub("#", line).rstrip()
