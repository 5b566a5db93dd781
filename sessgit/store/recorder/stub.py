"""The stub that the client runs: a copy beside the repository, with the interpreter's path written in."""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
from pathlib import Path

from sessgit.errors import ROOM, StoreError, UsageError
from sessgit.store.layout import StorePaths

PLACEHOLDER = "@PYTHON@"


def write_stub(store: Path, python: str) -> Path:
    """The path of the store's stub, which starts `python`; in one step, since clients run it meanwhile."""
    if not Path(python).is_absolute() or "\0" in python:
        raise UsageError(f"the interpreter needs an absolute path, not {python!r}")
    content = _stub_content(python)
    target = StorePaths(store).hook
    try:
        if not _has_content(target, content):
            _replace_stub(target, content)
    except OSError as error:
        raise StoreError(f"cannot write the hook: {error.strerror or error}", ROOM) from error
    return target


def is_current(store: Path, python: str) -> bool:
    """Whether the store's stub is the one that this version writes for the interpreter."""
    return _has_content(StorePaths(store).hook, _stub_content(python))


def remove_stub(store: Path) -> bool:
    """Whether there was a stub; there is none now."""
    try:
        StorePaths(store).hook.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot remove the hook: {error.strerror or error}", "Is the folder yours?") from error
    return True


def stub_interpreter(store: Path) -> str:
    """The program that the store's stub starts, or ``""`` where it says none."""
    try:
        lines = StorePaths(store).hook.read_text(encoding="utf-8", errors="replace").splitlines()
        words = next((shlex.split(line) for line in lines if line.startswith("python=")), [])
    except (OSError, ValueError):
        return ""
    return words[0].removeprefix("python=") if words else ""


def stub_template() -> Path:
    """The stub without an interpreter: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[2]
    for folder in (package, package.parent):
        if (found := folder / "hooks" / "hook").is_file():
            return found
    raise StoreError("this installation of sessgit lacks hooks/hook", "install sessgit again")


def _stub_content(python: str) -> bytes:
    line = f"python={PLACEHOLDER}\n"
    source = stub_template().read_text(encoding="utf-8")
    if source.count(line) != 1:
        raise StoreError(f"{stub_template()} is not the stub of this version", "install sessgit again")
    return os.fsencode(source.replace(line, f"python={shlex.quote(python)}\n"))


def _has_content(target: Path, content: bytes) -> bool:
    try:
        state = target.lstat()
        return state.st_mode == 0o100700 and state.st_size == len(content) and target.read_bytes() == content
    except OSError:
        return False


def _replace_stub(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".hook.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o700)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
