"""Homes that many tests begin with: each is made once, and every test finds it as it was made, at the same path."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shell import Shell

Begin = Callable[[Shell], object]
"""Does in a new home what tests begin with. It depends on nothing else."""


def begins(begin: Begin) -> Any:
    """A fixture of this name: the command line in a home as `begin` leaves it, which is done once in each file."""

    @pytest.fixture(name=begin.__name__)
    def fixture(begun: Callable[[Begin], Shell]) -> Shell:
        return begun(begin)

    return fixture


class KeptHome:
    """A home as `begin` left it, and where its command line stood.

    A cursor notes the inode of a transcript: a transcript that is laid again has the same one. All other files are new,
    so that nothing that a test still holds open is what the next one opens.
    """

    def __init__(self, shell: Shell) -> None:
        self.home, self.ids, self.now = shell.home, shell.ids, shell.now
        self._transcripts = self.home.with_name(f"{self.home.name}.kept")
        self._transcripts.mkdir()
        self._folders = list[tuple[str, os.stat_result]]()
        self._links = list[tuple[str, str]]()
        self._files = list[tuple[str, os.stat_result, bytes, str]]()
        self._keep(str(self.home))

    def lay(self) -> None:
        """Makes the home as it was."""
        shutil.rmtree(self.home)
        for path, _ in self._folders:
            os.mkdir(path)  # noqa: PTH102 - each test that begins with a home makes it
        for path, target in self._links:
            os.symlink(target, path)  # noqa: PTH211
        for path, info, data, transcript in self._files:
            if transcript:
                os.chmod(transcript, info.st_mode)  # noqa: PTH101
                os.link(transcript, path)
            with open(path, "wb", buffering=0) as file:  # noqa: PTH123
                file.write(data)
                os.fchmod(file.fileno(), info.st_mode)
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        for path, info in reversed(self._folders):
            os.chmod(path, info.st_mode)  # noqa: PTH101
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def _keep(self, folder: str) -> None:
        self._folders.append((folder, os.stat(folder)))  # noqa: PTH116
        for entry in os.scandir(folder):
            if entry.is_symlink():
                self._links.append((entry.path, os.readlink(entry.path)))  # noqa: PTH115
            elif entry.is_dir():
                self._keep(entry.path)
            else:
                transcript = str(self._transcripts / str(len(self._files))) if entry.name.endswith(".jsonl") else ""
                if transcript:
                    os.link(entry.path, transcript)
                self._files.append((entry.path, entry.stat(), Path(entry.path).read_bytes(), transcript))
