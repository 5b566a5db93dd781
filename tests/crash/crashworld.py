"""A client's folder with a store, put back as it was as often as needed, and what is run in it."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import crashchild
from crashchild import Job
from gate import Call, Gate
from plain import WITHOUT_CACHES, run_git
from preloaded import SERVER, serve
from shell import NOW
from transcripts import SESSION, Talk

from sessgit.agents.claude import home
from sessgit.store import refs
from sessgit.store.layout import StorePaths

LONG = os.environ.get("SESSGIT_TEST_CRASH", "") == "long"
"""Whether all is tried, rather than some of it."""
PATIENCE = 60.0
_MARKS = (".lock", ".tmp", ".append", ".keep", ".new", ".begun")
_MADE = ("tmp_", ".tmp", "stale.", "push-", "repair-", "importing-", ".hook.", "_git2_", ".settings.json.")
_TRIED = re.compile("[a-z0-9_]{8}")
_LOST = 255
"""What the server of processes tells where it lost the exit code of one."""


def _kill(process: BaseProcess) -> None:
    assert process.pid is not None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it is no group of its own yet
        process.kill()
    process.join()


@dataclass(frozen=True)
class Ended:
    """How a job ended: its exit code, negative for a signal, what it said, the calls that the gate saw, and how many
    seconds it took once it had begun, where there was no gate."""

    code: int
    said: str
    calls: list[Call]
    took: float


@dataclass(frozen=True)
class _File:
    inode: int
    mode: int
    changed: int
    data: bytes


Snapshot = dict[str, _File | None]
"""Every file below the root by its path; None is a folder."""


class World:
    """A home with a project, the client's folder and a store, on the fastest disk there is."""

    def __init__(self, root: Path, said: Path | None = None) -> None:
        self.root = root
        self.said = said or root.parent
        """Where what is said is kept, beside the world."""
        self.home = root / "home"
        self.config = self.home / ".claude"
        self.store = self.config / "session-store"
        self.project = self.home / "shop"
        self.project.mkdir(parents=True)
        self._runs = itertools.count()
        self.tmp = self.root / "tmp"
        self.tmp.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.tmp), "TZ": "UTC",
                    "LC_ALL": "C.UTF-8", "GIT_CONFIG_GLOBAL": os.devnull,
                    "GIT_CONFIG_SYSTEM": os.devnull}  # fmt: skip
        self.transcripts = home.project_folder(self.config, str(self.project))
        self.spool = StorePaths(self.store).spool

    # What is run

    def cli(self, *words: str, now: float = NOW, seed: str = "f") -> Job:
        return Job("cli", words, self.env, str(self.project), now, seed)

    def recorder(self) -> Job:
        return Job("recorder", (str(self.store),), self.env)

    def program(self, path: Path, *words: str) -> Job:
        return Job("program", (str(path), *words), self.env, str(self.project))

    def run(self, job: Job, gate: Gate | None = None, for_so_long: float = PATIENCE) -> Ended:
        """Runs the job to its end, behind a gate where there is one, or kills it and all that it started after so many
        seconds. Several threads may run several at once."""
        serve()
        said = self.said / f"said-{next(self._runs)}"
        address = f"\0sessgit-{os.getpid()}-{secrets.token_hex(8)}" if gate else ""
        process = SERVER.Process(target=crashchild.run, args=(job, str(said), address))
        if gate is None:
            process.start()
        else:
            with socket.socket(socket.AF_UNIX) as door:
                door.bind(address)
                door.listen(1)
                door.settimeout(PATIENCE)
                process.start()
                way, _ = door.accept()
                with way:
                    _, (listener,), _, _ = socket.recv_fds(way, 1, 1)
            assert process.pid is not None
            gate.watch(listener, process.pid, PATIENCE)
        while gate is None and process.exitcode is None and not said.exists():
            time.sleep(0.0005)  # until then it has not begun
        begun = time.monotonic()
        process.join(for_so_long)
        took = time.monotonic() - begun
        if process.exitcode is None:
            _kill(process)
            if for_so_long == PATIENCE:
                raise TimeoutError(f"{job.words} did not end")
        words = said.read_text("utf-8", "replace")
        said.unlink()
        noted = Path(f"{said}.code")
        code = int(noted.read_text()) if process.exitcode == _LOST and noted.exists() else process.exitcode
        return Ended(code, words, gate.calls if gate else [], took)

    def done(self, job: Job, *codes: int) -> Ended:
        """Runs a job that ends well, or with one of these codes."""
        ended = self.run(job)
        assert ended.code in (codes or (0,)), (job.words, ended.code, ended.said)
        return ended

    def event(self, name: str, talk: Talk, **more: Any) -> None:
        """Saves an event in the spool, as the stub does."""
        path = self.transcripts / f"{talk.session}.jsonl"
        payload = {"session_id": talk.session, "transcript_path": str(path), "cwd": str(self.project)}
        payload |= {"hook_event_name": name, **more}
        saved = self.spool / f"9-{next(self._runs)}.tmp"
        saved.write_text(json.dumps(payload))
        saved.rename(saved.with_suffix(".json"))

    def next_event(self, talk: Talk, name: str = "SessionStart") -> None:
        """An event, and the recorder that it starts."""
        self.event(name, talk)
        self.done(self.recorder())

    def talk(self, session: str = SESSION, **more: Any) -> Talk:
        return Talk(session, cwd=str(self.project), **more)

    # Back to how it was

    def snapshot(self) -> Snapshot:
        found: Snapshot = {}
        for folder, names, files in os.walk(self.root):
            for name in names:
                found[f"{folder}/{name}"] = None
            for name in files:
                path = Path(folder, name)
                state = path.lstat()
                if stat.S_ISREG(state.st_mode):
                    data = path.read_bytes()
                    found[str(path)] = _File(state.st_ino, stat.S_IMODE(state.st_mode), state.st_mtime_ns, data)
        return found

    def reset(self, snapshot: Snapshot) -> None:
        """Everything as it was; files that are still the same ones keep their inodes, which cursors hold."""
        for folder, names, files in os.walk(self.root, topdown=False):
            for name in files:
                if f"{folder}/{name}" not in snapshot:
                    Path(folder, name).unlink()
            for name in names:
                if snapshot.get(f"{folder}/{name}", "") is not None:
                    shutil.rmtree(f"{folder}/{name}")
        for path, file in sorted(snapshot.items()):
            if file is None:
                Path(path).mkdir(exist_ok=True)
                continue
            try:
                state = Path(path).lstat()
                same = (state.st_ino, state.st_mtime_ns, state.st_size) == (file.inode, file.changed, len(file.data))
            except FileNotFoundError:
                same = False
            if not same:
                if Path(path).exists():
                    Path(path).chmod(0o600)
                Path(path).write_bytes(file.data)
                Path(path).chmod(file.mode)
                os.utime(path, ns=(file.changed, file.changed))
                snapshot[path] = replace(file, inode=Path(path).stat().st_ino)

    def lay(self, found: Mapping[str, bytes | None]) -> None:
        """Everything as it is found: files of these bytes, and folders."""
        state = {path: None if data is None else _File(0, 0o600, 0, data) for path, data in found.items()}
        self.reset(state)

    # What is there

    def fsck(self) -> str:
        """What git finds wrong with the store; ``""`` where it is whole, or where there is none yet."""
        if not (self.store / "HEAD").exists():
            return ""
        command = ["git", "-C", str(self.store), *WITHOUT_CACHES, "fsck", "--strict", "--no-dangling", "--no-progress"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.env)
        said = "".join(line for line in done.stderr.splitlines(True) if not line.startswith("notice: "))
        return done.stdout + said + (f"exit {done.returncode}" if done.returncode else "")

    def picture(self) -> dict[str, str]:
        """All refs but those that keep what operations took away, and the files of the client, by their hashes."""
        found = {name: oid for name, oid in refs.read_all(self.store).items() if not name.startswith("refs/keep/")}
        for path in sorted((self.config / "projects").rglob("*")):
            if path.is_file() and not path.name.endswith(".tmp"):
                name = str(path.relative_to(self.config))
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for remote in sorted(self.root.glob("*.git")):
            listed = run_git(remote, "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
            found |= {f"{remote.name}:{line.partition(' ')[0]}": line.partition(" ")[2] for line in listed if line}
        return found

    def turns(self) -> dict[str, str]:
        """The same, with the turns of each head and its parents in the place of its commit: a session's state also says
        whether somebody knew that it has ended."""
        found = self.picture()
        for ref in [name for name in found if name.startswith("refs/heads/")]:
            parents = run_git(self.store, "log", "-1", "--format=%p", ref).split()
            found[ref] = f"{run_git(self.store, 'ls-tree', ref, 'turns').strip()}, {len(parents)}"
        return found

    def leftovers(self) -> list[str]:
        """What somebody wrote only for a moment, and what waits for nobody."""
        paths = StorePaths(self.store)
        found = [path for path in (paths.packing, paths.purging) if path.exists()]
        for path in self.config.rglob("*"):
            made = path.name.endswith(_MARKS) or path.name.startswith(_MADE)
            if made and paths.locks not in path.parents:
                found.append(path)
        # Python itself tries with a file of such a name whether it can write there.
        found += [path for path in self.tmp.iterdir() if not _TRIED.fullmatch(path.name)]
        return sorted(str(path.relative_to(self.root)) for path in found)

    def a_while_passes(self) -> None:
        """What is left lies there for as long as nobody writes such a file."""
        old = time.time() - 2 * 24 * 3600
        for name in self.leftovers():
            os.utime(self.root / name, (old, old), follow_symlinks=False)


@contextmanager
def worlds(folder: Path) -> Iterator[World]:
    """A world of its own, in memory where that can be: what a kill leaves is the same there."""
    memory = Path("/dev/shm")
    place = tempfile.mkdtemp(prefix="sessgit-test-", dir=memory if os.access(memory, os.W_OK) else folder)
    try:
        yield World(Path(place).resolve() / "w")
    finally:
        shutil.rmtree(place, ignore_errors=True)
