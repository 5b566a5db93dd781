"""The programs that sessgit is compared with, each in a virtual environment of its own in a cache folder.

The folder is `$SESSGIT_BENCH_CACHE`, else `sessgit-bench` where caches lie. What does not install is told and left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from frame import BenchError

VERSIONS = {"agent-strace": "0.103.0", "agentsview": "0.46.1", "claude-code-log": "1.7.0"}
QUIET = {"DO_NOT_TRACK": "1", "AGENT_STRACE_TELEMETRY": "0", "AGENTSVIEW_TELEMETRY_ENABLED": "0"}
"""Environment in which none of them reports to its makers."""

absent: dict[str, str] = {}
"""Those that could not be had in this run, and why."""

_SECONDS = 300


def named(name: str) -> str:
    """The name with its version, as a table has it."""
    return f"{name} {VERSIONS[name]}"


@cache
def command(name: str) -> str:
    """The program's path, or an empty text if it does not install here; `absent` then says why."""
    folder = _cache() / f"{name}-{VERSIONS[name]}"
    program = folder / "bin" / name
    try:
        if not program.exists():
            _install(name, folder)
    except (OSError, subprocess.SubprocessError, BenchError) as error:
        said = getattr(error, "stderr", "") or str(error)
        absent[named(name)] = (
            f"it does not install here ({said.strip().splitlines()[-1][:200] if said.strip() else error})"
        )
        return ""
    return str(program)


def _cache() -> Path:
    given = os.environ.get("SESSGIT_BENCH_CACHE")
    if given:
        return Path(given).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sessgit-bench"


def _install(name: str, folder: Path) -> None:
    """Into a folder that gets its name when all is there: a virtual environment knows its own path, so what is left of
    an installation that failed is taken away."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run(sys.executable, "-m", "venv", str(folder))
        pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*pip, f"{name}=={VERSIONS[name]}")
        if not (folder / "bin" / name).exists():
            raise BenchError(f"{name} installs no program of that name")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(*arguments: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(arguments, cwd=folder, check=True, capture_output=True, text=True, timeout=_SECONDS)
