"""The stub, run the way the client runs it, under each shell that is there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sessgit.agents.hook_settings import stub_command
from sessgit.errors import UsageError
from sessgit.store.stub import remove_stub, stub_template, write_stub

PAYLOAD = b'{"hook_event_name":"Stop","session_id":"s","transcript_path":"/t.jsonl","cwd":"/"}'
HUGE = b'{"prompt":"' + b"x" * (3 << 20) + b'"}'

RECORDER = """#!{python} -IS
import json, os, sys, time
store = sys.argv[-1]
end = time.monotonic() + 60
while os.path.exists(store + "/../hold") and time.monotonic() < end:
    time.sleep(0.01)
seen = dict(argv=sys.argv[1:], env=dict(os.environ), cwd=os.getcwd(), ppid=os.getppid(), pid=os.getpid(),
            std=[os.path.realpath(f"/dev/fd/{{fd}}") for fd in range(3)])
name = f"{{store}}/../started/{{os.getpid()}}"
with open(name + ".tmp", "w") as file:
    json.dump(seen, file)
os.rename(name + ".tmp", name + ".json")
"""


class Place:
    """A store with a stub whose interpreter writes down how it was started."""

    def __init__(self, root: Path, shell: str) -> None:
        self.root = root
        self.store = root / 'it\'s a "store" $HOME'
        self.spool = self.store / "spool"
        self.started = root / "started"
        self.bin = root / "bin"
        for folder in (self.spool, self.started, self.bin, root / "cwd"):
            folder.mkdir(parents=True)
        self.python = root / "py ' thon"
        self.python.write_text(RECORDER.format(python=sys.executable))
        self.python.chmod(0o755)
        self.begin_write = root / "hold"
        """While it is there, a recorder goes no further."""
        # The client's command says `sh`: here that is the shell to be tested.
        (self.bin / "sh").symlink_to(shell)
        self.stub = write_stub(self.store, str(self.python))
        self.env = {"HOME": str(root / "home"), "PATH": f"{self.bin}:/usr/bin:/bin", "LANG": "C.UTF-8"}

    def run(self, payload: bytes = PAYLOAD, /, *, command: str = "", **env: str) -> None:
        """Runs the hook; fails if it says anything, ends otherwise than well, or leaves its input unread."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", command or stub_command(self.stub)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.root / "cwd",
            env=self.env | env,
        )
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(payload)
        finally:
            process.stdin.close()
            output = process.stdout.read()
            process.stdout.close()
            process.wait(60)
        assert (process.returncode, output) == (0, b"")

    def run_both(self, *, command: str = "", **env: str) -> None:
        """The same with an event that would be saved, and with one that no pipe holds, were it left unread."""
        self.run(PAYLOAD, command=command, **env)
        self.run(HUGE, command=command, **env)

    def saved(self) -> list[bytes]:
        """What is in the spool, but for the marker of a recorder that was started."""
        return [path.read_bytes() for path in sorted(self.spool.iterdir()) if path.name != "waiting"]

    def starts(self, count: int) -> list[dict[str, object]]:
        """How the recorders were started, once all that were have told it; fails if they are not `count`."""
        end, quiet, found = time.monotonic() + 60, 0, list[Path]()
        while (quiet < 3 or len(found) < count) and time.monotonic() < end:
            # A process that is just becoming another program has no words.
            quiet = 0 if running(self.store) else quiet + 1
            time.sleep(0.01)
            found = list(self.started.glob("*"))
        assert len(found) == count
        return [json.loads(path.read_text()) for path in found]


def running(store: Path) -> list[tuple[str, list[bytes]]]:
    """The processes that work for a store, each by its pid and its words: from the fork on, one started by the stub has
    those of the stub until it has those of the recorder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if {os.fsencode(store), os.fsencode(store / "hook")} & set(words):
                found.append((folder.name, words))
    return found


def shells() -> list[object]:
    found: list[object] = []
    for name in ("dash", "bash", "busybox"):
        path = shutil.which(name)
        skip = () if path else (pytest.mark.skip(f"no {name} here"),)
        found.append(pytest.param(path, id=name, marks=skip))
    return found


@pytest.fixture(params=shells())
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


@pytest.fixture
def one(tmp_path: Path) -> Place:
    """For what no shell does differently."""
    return Place(tmp_path, shutil.which("sh") or "/bin/sh")


def test_an_event_is_saved_and_the_recorder_started(place: Place) -> None:
    place.run()
    assert place.saved() == [PAYLOAD]
    (event,) = place.spool.glob("*.json")
    assert event.suffix == ".json"
    assert event.stat().st_mode & 0o777 == 0o600
    (seen,) = place.starts(1)
    assert seen["argv"] == ["-P", "-m", "sessgit.recorder", str(place.store)]
    assert seen["cwd"] == "/"
    assert seen["std"] == ["/dev/null"] * 3
    assert seen["ppid"] != os.getpid()


def test_the_recorder_gets_six_variables_and_no_other(place: Place) -> None:
    given = {"HOME": "/a b'c", "CLAUDE_CONFIG_DIR": "/$(id)", "TMPDIR": '"', "LANG": "C.UTF-8"}
    secret = {"ANTHROPIC_API_KEY": "sk-ant-1", "GIT_DIR": "/x", "PYTHONPATH": "/x", "CLAUDECODE": "1"}
    place.env |= given | secret
    place.run()
    assert place.starts(1)[0]["env"] == given | {"PATH": place.env["PATH"], "SESSGIT_STORE": str(place.store)}


def test_what_is_not_set_stays_so(place: Place) -> None:
    del place.env["HOME"], place.env["LANG"]
    place.run()
    env = place.starts(1)[0]["env"]
    assert isinstance(env, dict)
    # LC_CTYPE is what Python itself sets where there is no locale.
    assert set(env) - {"LC_CTYPE"} == {"PATH", "SESSGIT_STORE"}


def test_the_client_is_not_held(place: Place) -> None:
    place.begin_write.touch()
    # The client's pipe at a descriptor of its own: whoever inherits it holds up the reading of it in run().
    place.run(command=f"exec 9>&1; {stub_command(place.stub)}")
    assert list(place.started.glob("*.json")) == []
    place.begin_write.unlink()
    place.starts(1)


@pytest.mark.parametrize("payload", [b"\0\xff\n\n no JSON", b"\n", b"x" * 300_000], ids=["NUL", "line", "long"])
def test_input_is_saved_as_it_is(place: Place, payload: bytes) -> None:
    place.run(payload)
    assert place.saved() == [payload]
    place.starts(1)


@pytest.mark.parametrize("payload", [b"", HUGE], ids=["empty", "huge"])
def test_input_that_is_not_saved_leaves_nothing(place: Place, payload: bytes) -> None:
    place.run(payload)
    assert place.saved() == []
    place.starts(0)


def test_no_core_is_dumped_for_a_huge_payload(one: Place) -> None:
    one.run(HUGE, command=f"ulimit -c unlimited; {stub_command(one.stub)}")
    assert list((one.root / "cwd").iterdir()) == []


def test_closed_input_is_no_event(place: Place) -> None:
    place.run(b"", command=f"exec <&-; {stub_command(place.stub)}")
    assert place.saved() == []


def test_off_means_nothing_at_all(place: Place) -> None:
    place.run_both(SESSGIT_OFF="1")
    assert place.saved() == []
    place.starts(0)
    place.run(SESSGIT_OFF="0")
    assert place.saved() == [PAYLOAD]
    place.starts(1)


def without_interpreter(place: Place) -> None:
    place.python.unlink()


def without_spool(place: Place) -> None:
    place.spool.rmdir()


def with_a_file_for_a_spool(place: Place) -> None:
    place.spool.rmdir()
    place.spool.write_text("")


@pytest.mark.parametrize("damage", [without_interpreter, without_spool, with_a_file_for_a_spool])
def test_half_a_program_harms_nobody(place: Place, damage: Callable[[Place], None]) -> None:
    damage(place)
    place.run_both()
    assert not place.spool.is_dir() or place.saved() == []
    place.starts(0)


def test_a_removed_store_harms_nobody(place: Place) -> None:
    shutil.rmtree(place.store)
    place.run_both()
    assert not place.store.exists()


def test_a_stub_that_is_not_called_by_its_full_path_does_nothing(one: Place) -> None:
    for name in ("hook", "./hook"):
        one.run_both(command=f'cd "$STORE"; sh {name}', STORE=str(one.store))
    assert one.saved() == []
    one.starts(0)


def test_a_thousand_wait(place: Place) -> None:
    for number in range(1001):
        (place.spool / f"{number}.json").write_text("")
    place.run_both()
    assert len(place.saved()) == 1001
    place.starts(0)
    (place.spool / "0.json").unlink()
    place.run()
    assert len(place.saved()) == 1001
    place.starts(1)


def test_a_limit_on_file_sizes_is_a_full_disk(place: Place) -> None:
    place.run_both(command=f"ulimit -f 0; {stub_command(place.stub)}")
    assert place.saved() == []
    place.starts(0)


@pytest.fixture
def full(place: Place) -> Iterator[Place]:
    """A place whose spool is a disk of one page, taken by another file."""
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=9", "none", str(place.spool)],
        capture_output=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip("mount is not allowed here")
    try:
        (place.spool / "other").write_bytes(b"x" * 4096)
        yield place
    finally:
        subprocess.run(["umount", str(place.spool)], check=True)


def test_a_full_disk(full: Place) -> None:
    full.run_both()
    assert [path.name for path in full.spool.iterdir()] == ["other"]
    full.starts(0)


def test_a_disk_that_is_read_only(full: Place) -> None:
    (full.spool / "other").unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(full.spool)], check=True)
    full.run_both()
    assert full.saved() == []
    full.starts(0)


def test_a_name_that_is_taken_is_left_alone(place: Place) -> None:
    aside = place.root / "aside"
    place.run(
        command=f"""cd "$SPOOL"; echo old >$$-0.json; ln -s '{aside}' $$-1.tmp; exec sh "$STUB" """,
        SPOOL=str(place.spool),
        STUB=str(place.stub),
    )
    names = sorted(path.name.partition("-")[2] for path in place.spool.iterdir() if path.name != "waiting")
    assert names == ["0.json", "1.tmp", "2.json"]
    assert sorted(path.read_bytes() for path in place.spool.glob("*.json")) == sorted([b"old\n", PAYLOAD])
    assert not aside.exists()
    place.starts(1)


def test_one_recorder_that_has_yet_to_read_is_enough(place: Place) -> None:
    place.begin_write.touch()
    place.run()
    (recorder,) = recorders(place)
    for _ in range(20):
        place.run()
    assert recorders(place) == [recorder]
    assert (place.spool / "waiting").read_text() == f"{recorder}\n"
    assert len(list(place.spool.glob("*.json"))) == 21
    place.begin_write.unlink()
    place.starts(1)


def recorders(place: Place) -> list[str]:
    """The pids of the recorders of this place, once there is one."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = [pid for pid, words in running(place.store) if b"sessgit.recorder" in words]
        if found:
            return found
    raise AssertionError("no recorder was started")


def dead_pid() -> str:
    process = subprocess.Popen(["true"])
    process.wait()
    return str(process.pid)


@pytest.mark.parametrize("holder", ["", "0", "00", "-1", "x", "1 2", "9" * 30, "$(id)", "dead", "another"])
def test_a_file_that_names_no_living_recorder_claims_nothing(place: Place, holder: str) -> None:
    """`another`: a process that got the pid of a recorder that is gone."""
    pids = {"dead": dead_pid(), "another": str(os.getpid())}
    (place.spool / "waiting").write_text(pids.get(holder, holder) + "\n")
    place.env |= {"pid": "1", "command": f"x sessgit.recorder {place.store}"}
    place.run()
    place.starts(1)


def test_a_recorder_that_was_killed_and_not_reaped_claims_nothing(place: Place) -> None:
    place.begin_write.touch()
    child = subprocess.Popen([place.python, "-P", "-m", "sessgit.recorder", place.store])
    recorders(place)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    os.kill(child.pid, 0)
    (place.spool / "waiting").write_text(f"{child.pid}\n")
    place.begin_write.unlink()
    place.run()
    place.starts(1)
    child.wait()


def test_where_there_is_no_proc_ps_tells_what_a_process_runs(place: Place) -> None:
    """As on macOS: `ps` says what it says of a living recorder, of a defunct one, and of another process."""
    ps = place.bin / "ps"
    (place.spool / "waiting").write_text("7\n")
    for said, count in (
        (f"/usr/bin/python3 -P -m sessgit.recorder {place.store}", 0),
        ("(python3.11)", 1),
        ("[python3] <defunct>", 2),
        (f"vi {place.store}", 3),
    ):
        ps.write_text(f"#!/bin/sh\n[ \"$*\" = '-ww -o args= -p 7' ] && cat <<'END'\n{said}\nEND\n")
        ps.chmod(0o755)
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec sh "$0"', place.stub],
            input=PAYLOAD, env=place.env, check=False, capture_output=True,
        )  # fmt: skip
        if b"ermitted" in done.stderr:
            pytest.skip("mount is not allowed here")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        place.starts(count)


def test_settings_of_the_shell_from_outside_change_nothing(one: Place) -> None:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash here")
    (one.bin / "sh").unlink()
    (one.bin / "sh").symlink_to(bash)
    # Not through a `sh -c`, which would obey them too.
    process = subprocess.run(
        [one.bin / "sh", one.stub],
        input=PAYLOAD,
        capture_output=True,
        env=one.env | {"SHELLOPTS": "noglob:errexit:nounset:noclobber"},
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")
    assert one.saved() == [PAYLOAD]
    one.starts(1)


def test_fifty_at_once(place: Place) -> None:
    payloads = [b'{"n":%d}' % number for number in range(50)]
    with ThreadPoolExecutor(50) as pool:
        list(pool.map(place.run, payloads))
    assert sorted(place.saved()) == sorted(payloads)


# Installing it


def test_writing_the_stub_again_changes_nothing(tmp_path: Path) -> None:
    stub = write_stub(tmp_path, "/usr/bin/python3")
    before = stub.stat()
    assert write_stub(tmp_path, "/usr/bin/python3").stat().st_ino == before.st_ino
    assert before.st_mode & 0o777 == 0o700
    assert stub.read_text() == stub_template().read_text().replace("@PYTHON@", "/usr/bin/python3")
    assert write_stub(tmp_path, "/opt/python").stat().st_ino != before.st_ino
    assert [path.name for path in tmp_path.iterdir()] == ["hook"]


def test_a_lost_mode_is_restored(tmp_path: Path) -> None:
    write_stub(tmp_path, "/usr/bin/python3").chmod(0o644)
    assert write_stub(tmp_path, "/usr/bin/python3").stat().st_mode & 0o777 == 0o700


def test_an_interpreter_needs_an_absolute_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_stub(tmp_path, "python3")
    assert list(tmp_path.iterdir()) == []


def test_removing_the_stub(tmp_path: Path) -> None:
    write_stub(tmp_path, "/usr/bin/python3")
    remove_stub(tmp_path)
    assert list(tmp_path.iterdir()) == []
    remove_stub(tmp_path)  # as a second `uninstall` does
