"""The shell script that the client runs as a hook, and the start of a recorder without it.

The stub is a copy of `hooks/hook` next to the repository, with the interpreter's path written in.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sessgit.errors import StoreError, UsageError
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private

_PLACEHOLDER = "@PYTHON@"
_INHERITED_ENV = ("HOME", "PATH", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "TMPDIR", "LANG")
"""The variables that a recorder gets, as from the stub: others may hold API keys."""
_BACKGROUND_SCRIPT = "trap '' HUP; cd /; \"$@\" &"


def write_stub(store: Path, python: str) -> Path:
    """Write the store's stub, which starts `python`, in one step, since clients run it meanwhile; return its path."""
    if not Path(python).is_absolute() or "\0" in python:
        raise UsageError(f"the interpreter needs an absolute path, not {python!r}")
    content, path = _stub_content(python), StorePaths(store).hook
    if not _has_content(path, content):
        write_private(path, content, durable=True, mode=0o700)
    return path


def is_current(store: Path, python: str) -> bool:
    """Return whether the store's stub is the one that this version writes for the interpreter."""
    return _has_content(StorePaths(store).hook, _stub_content(python))


def remove_stub(store: Path) -> None:
    """Delete the stub, if there is one."""
    try:
        StorePaths(store).hook.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot remove the hook: {error.strerror or error}", f"Is {store} yours and writable?"
        ) from error


def stub_interpreter(store: Path) -> str:
    """Return the program that the store's stub starts, or ``""``."""
    try:
        lines = StorePaths(store).hook.read_text(encoding="utf-8", errors="replace").splitlines()
        words = next((shlex.split(line) for line in lines if line.startswith("python=")), [""])
    except (OSError, ValueError):
        return ""
    return words[0].removeprefix("python=")


def stub_template() -> Path:
    """Return the path of `hooks/hook`: inside the package in a wheel, next to it in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package, package.parent):
        if (path := folder / "hooks" / "hook").is_file():
            return path
    raise StoreError("this installation of sessgit lacks hooks/hook", "install sessgit again")


def recorder_command(store: Path, python: str) -> list[str]:
    """Return the command that runs a recorder."""
    return [python, "-P", "-m", "sessgit.recorder", str(store)]


def recorder_environment(store: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that a recorder gets."""
    return {key: env[key] for key in _INHERITED_ENV if key in env} | {"SESSGIT_STORE": str(store)}


def start_recorder(store: Path, python: str, env: Mapping[str, str]) -> None:
    """Start a recorder in the background, as after one was killed.

    It is not a child of this process, so that need not wait for it. It exits at once if another recorder is about to
    read the events. If none can be started, the events wait for the next hook.
    """
    with suppress(OSError):
        devnull = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in range(3)]
        shell = ["sh", "-c", _BACKGROUND_SCRIPT, "sh", *recorder_command(store, python)]
        child = os.posix_spawn("/bin/sh", shell, recorder_environment(store, env), file_actions=devnull)
        os.waitpid(child, 0)


def _stub_content(python: str) -> bytes:
    line = f"python={_PLACEHOLDER}\n"
    source = stub_template().read_text(encoding="utf-8")
    if source.count(line) != 1:
        raise StoreError(f"{stub_template()} is not the stub of this version", "install sessgit again")
    return os.fsencode(source.replace(line, f"python={shlex.quote(python)}\n"))


def _has_content(path: Path, content: bytes) -> bool:
    try:
        return path.lstat().st_mode == 0o100700 and path.read_bytes() == content
    except OSError:
        return False
