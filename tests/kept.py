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

    A cursor notes the inode of a transcript: a transcript that is laid again has the same one. All else is copied, so
    that nothing that a test still holds open is what the next one opens.
    """

    def __init__(self, shell: Shell) -> None:
        self.home, self.ids, self.now = shell.home, shell.ids, shell.now
        self._copy = self.home.with_name(f"{self.home.name}.kept")
        self._transcripts = dict[Path, tuple[bytes, os.stat_result]]()
        shutil.copytree(self.home, self._copy, symlinks=True, copy_function=self._keep)

    def lay(self) -> None:
        """Makes the home as it was."""
        shutil.rmtree(self.home)
        shutil.copytree(self._copy, self.home, symlinks=True, copy_function=self._lay)

    def _keep(self, source: str, target: str) -> None:
        path = Path(source)
        if path.suffix == ".jsonl":
            os.link(source, target)
            self._transcripts[Path(target)] = path.read_bytes(), path.stat()
        else:
            shutil.copy2(source, target)

    def _lay(self, source: str, target: str) -> None:
        if was := self._transcripts.get(path := Path(source)):
            data, info = was
            path.chmod(info.st_mode)
            path.write_bytes(data)
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
            os.link(path, target)
        else:
            shutil.copy2(source, target)
