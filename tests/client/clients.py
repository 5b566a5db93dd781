"""The real client, in several versions: installs it, runs it on a sealed home, reads what it wrote.

Claude Code is proprietary: npm fetches it into a cache folder of this machine, the project never ships it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

PACKAGE = "@anthropic-ai/claude-code"
VERSIONS = ("2.0.46", "2.1.197", "latest")
ENDS = pytest.mark.parametrize("client", (VERSIONS[0], VERSIONS[-1]), indirect=True, scope="session")
"""For what does not differ in between: the oldest version and the newest."""
CACHE_VARIABLE = "SESSGIT_TEST_CLIENT_CACHE"
INSTALL_SECONDS = 600
API_KEY = "sk-ant-dummy-key-of-the-client-tests"
# Tools run without asking, also as root: IS_SANDBOX is what the client wants to hear for that.
# The tasks are off in newer ones unless they are named.
UNASKED = ("--permission-mode", "bypassPermissions", "--allowedTools=TaskCreate,TaskUpdate")


class UnavailableError(Exception):
    """The client cannot be had here; the message says why."""


# Installing


def cache_folder() -> Path:
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sessgit-test-clients"


def install(version: str) -> Client:
    """The client of that version, from the cache or else from npm. "latest" asks npm which one that is."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f".{version}.lock", timeout=INSTALL_SECONDS):
        exact = _latest(cache) if version == "latest" else version
        folder = cache / exact
        if not folder.is_dir():
            _npm_install(exact, folder)
    return Client(exact, _command(folder))


def _latest(cache: Path) -> str:
    try:
        return run_npm("view", PACKAGE, "version", timeout=60).strip()
    except UnavailableError:
        # Offline: the newest that is here, if it is newer than those that are pinned.
        have = [path.name for path in cache.iterdir() if path.name[0].isdigit()]
        newest = max(have, key=_order, default="0")
        if _order(newest) > max(_order(version) for version in VERSIONS if version != "latest"):
            return newest
        raise


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def _npm_install(version: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".install-") as temporary:
        made = Path(temporary) / "client"
        made.mkdir()
        (made / "package.json").write_text('{"private": true}\n')
        # --force: newer ones ask for a newer Node, and bring a native binary that needs none.
        run_npm("install", "--force", "--no-audit", "--no-fund", f"{PACKAGE}@{version}", cwd=made)
        _command(made)
        made.rename(folder)


def run_npm(*arguments: str, cwd: Path | None = None, timeout: float = INSTALL_SECONDS) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("npm is not installed")
    try:
        done = subprocess.run([npm, *arguments], cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"npm {arguments[0]} took more than {timeout:.0f} s") from None
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if "error" in line.lower() or "ERR!" in line]
        why = told[0] if told else f"exit code {done.returncode}"
        raise UnavailableError(f"npm {arguments[0]} failed (no network?): {why.strip()}")
    return done.stdout


def _command(folder: Path) -> tuple[str, ...]:
    scope = folder / "node_modules" / "@anthropic-ai"
    for native in sorted(scope.glob("claude-code-*/claude")):
        return (str(native),)
    script = scope / "claude-code" / "cli.js"
    node = shutil.which("node")
    if not script.is_file():
        raise UnavailableError(f"npm installed no client for this platform in {folder}")
    if node is None:
        raise UnavailableError("node is not installed, and this version has no native binary")
    return (node, str(script))


# Running


@dataclass
class Result:
    """What `claude -p --output-format json` gave."""

    returncode: int
    stdout: str
    stderr: str
    json: dict[str, Any] = field(default_factory=dict)

    @property
    def session_id(self) -> str:
        return str(self.json["session_id"])

    @property
    def answer(self) -> str:
        return str(self.json.get("result", ""))


@dataclass(frozen=True)
class Client:
    version: str  # the exact one, for "latest" as well
    command: tuple[str, ...]

    @property
    def release(self) -> tuple[int, ...]:
        """(2, 1, 197): to compare with."""
        return _order(self.version)

    def run(
        self,
        prompt: str,
        *,
        home: Path,
        cwd: Path,
        base_url: str,
        resume: str | None = None,
        fork_session: bool = False,
        resume_at: str | None = None,
        extra: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = 120,
        check: bool = True,
    ) -> Result:
        """One headless turn. With `check` a failure of the client raises an AssertionError that shows it.

        `resume_at` is the uuid of an assistant line: the prompt follows that one, in the same file (a rewind).
        """
        done = subprocess.run(
            self._print_command(prompt, resume, fork_session, [*_at(resume_at), *extra]),
            cwd=cwd,
            env=environment(home, base_url, env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        result = Result(done.returncode, done.stdout, done.stderr, _last_object(done.stdout))
        if check and (done.returncode or result.json.get("is_error", True)):
            raise AssertionError(f"claude {self.version} failed ({done.returncode}): {done.stdout}\n{done.stderr}")
        return result

    def start(
        self,
        prompt: str,
        *,
        home: Path,
        cwd: Path,
        base_url: str,
        resume: str | None = None,
        fork_session: bool = False,
        resume_at: str | None = None,
        extra: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """The same without waiting, in a process group of its own: see kill()."""
        return subprocess.Popen(
            self._print_command(prompt, resume, fork_session, [*_at(resume_at), *extra]),
            cwd=cwd,
            env=environment(home, base_url, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _print_command(self, prompt: str, resume: str | None, fork_session: bool, extra: Sequence[str]) -> list[str]:
        command = [*self.command, *UNASKED, "--output-format", "json"]
        if resume is not None:
            command += ["--resume", resume]
        if fork_session:
            command.append("--fork-session")
        return [*command, *extra, "-p", prompt]


def kill(process: subprocess.Popen[Any]) -> None:
    """kill -9 for a client that start() made, and for what it started itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def environment(home: Path, base_url: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the user's own: no settings, no keys, and no way to anything but the mock model."""
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return {
        "PATH": os.pathsep.join(path),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": API_KEY,
        "HTTPS_PROXY": base_url,
        "NO_PROXY": "127.0.0.1,localhost",
        "IS_SANDBOX": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **(extra or {}),
    }


def seal_home(home: Path, *projects: Path) -> None:
    """Make a home in which the client asks none of its first questions (theme, trust, key, permissions)."""
    (home / ".claude").mkdir(parents=True, exist_ok=True)
    (home / "tmp").mkdir(exist_ok=True)
    answered = {
        "hasTrustDialogAccepted": True,
        "hasCompletedProjectOnboarding": True,
        "projectOnboardingSeenCount": 1,
    }
    state = {
        "hasCompletedOnboarding": True,
        "lastOnboardingVersion": "99.0.0",
        "lastReleaseNotesSeen": "99.0.0",
        "theme": "dark",
        "numStartups": 5,
        "bypassPermissionsModeAccepted": True,  # 2.1 moves this into settings.json when it starts
        "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
        "projects": {os.path.realpath(project): answered for project in projects},
    }
    (home / ".claude.json").write_text(json.dumps(state, indent=2))


def _at(uuid: str | None) -> list[str]:
    return ["--resume-session-at", uuid] if uuid else []


def _last_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    if isinstance(value, list):
        value = value[-1] if value else {}
    return value if isinstance(value, dict) else {}
