"""Packs that an import made quickly, and the process that makes them smaller when nobody waits for it.

`state/repacking` names these packs, one on a line. It goes when they are packed again: where the process is killed, the
next import or recorder starts another one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from sessgit.store.files import private
from sessgit.store.layout import StorePaths

LEAST_BYTES = 1 << 20
"""Bytes of packs for which a process is started."""
_PACK_NAME = re.compile(r"pack-[0-9a-f]{40}", re.ASCII)
_INHERITED_ENV = ("HOME", "PATH", "LANG", "TMPDIR")
_DETACH_SCRIPT = '"$@" &'
"""The shell ends at once, so that the process is no child of a program that goes on and would have to wait for it."""


def note_packs(store: Path, names: Iterable[str]) -> None:
    """Notes packs that an import made. The caller holds the maintenance lock."""
    with suppress(OSError), private.files(), StorePaths(store).repacking.open("a", encoding="ascii") as file:
        file.writelines(f"{name}\n" for name in names)


def noted_packs(store: Path) -> set[str]:
    """Return the names of the noted packs that are there."""
    try:
        noted = StorePaths(store).repacking.read_text("ascii", "replace").split("\n")
    except OSError:
        return set()
    return {name for name in noted if _PACK_NAME.fullmatch(name) and _pack_path(store, name).exists()}


def is_due(store: Path) -> bool:
    """Return whether there is enough to pack again."""
    try:
        return sum(_pack_path(store, name).stat().st_size for name in noted_packs(store)) >= LEAST_BYTES
    except OSError:  # it is being packed
        return False


def start_repack(store: Path, env: Mapping[str, str]) -> bool:
    """Start the process if there is enough to pack again; returns whether it did. The process outlives this one and
    gets only some variables of `env`."""
    if not is_due(store):
        return False
    try:
        command = [sys.executable, "-P", "-m", "sessgit.recorder.packer", str(store.absolute())]
        path = os.pathsep.join(filter(None, sys.path))
        subprocess.run(
            ["/bin/sh", "-c", _DETACH_SCRIPT, "sh", *command], cwd="/", check=True, start_new_session=True,
            env={key: env[key] for key in _INHERITED_ENV if key in env} | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):  # the store is larger for it, and whole
        return False
    return True


def _pack_path(store: Path, name: str) -> Path:
    return store / "objects" / "pack" / f"{name}.pack"
