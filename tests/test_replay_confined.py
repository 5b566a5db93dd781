"""What runs again is confined: it sees and writes nothing else, does not run away, and leaves nothing behind.

Each of it is done for real.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

import pytest
from coded import Coded
from hypothesis import given
from hypothesis import strategies as st
from replaying import CONFINED, alive, commands, outcomes, program, replayed, step, value
from shell import Shell
from strategies import SECRET
from test_cells_hostile import put, rewrite
from transcripts import SESSION, Talk

from sessgit import Store
from sessgit.agents.values import DeclinedError
from sessgit.api.replaying import Executors
from sessgit.replay import run
from sessgit.replay.sandbox import processes
from sessgit.replay.sandbox.processes import Confinement, ProcessResult
from sessgit.replay.sandbox.supervisor import Limits
from sessgit.store import layout

pytestmark = CONFINED
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
_DEEP = """import os
for one in range(3, 999):
    try: os.write(one, b'[' * 50_000 + b'\\n')
    except OSError: pass"""
"""Code that answers in place of the process in which it runs, with what no function can read."""


@pytest.fixture
def coded(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> Coded:
    return Coded(sessgit, monkeypatch)


@pytest.fixture
def box(tmp_path: Path) -> Confinement:
    """A folder to write in, beside one that is not."""
    for name in ("box", "tmp", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside/file").write_text("mine")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "box"), "TMPDIR": str(tmp_path / "tmp")}
    return Confinement(
        (str(tmp_path / "box"), str(tmp_path / "tmp")), env, Limits(seconds=20, memory=512 << 20, output=1 << 20)
    )


def shell(box: Confinement, command: str) -> ProcessResult:
    return processes.run_process(["/bin/bash", "-c", command], box.writable[0], box)


# The cage


@LINUX
@pytest.mark.parametrize(
    "command",
    [
        "echo x > ../outside/file",
        "echo x > ../outside/new",
        "echo x > $OUT/file",
        "rm ../outside/file",
        "mv ../outside/file .",
        "ln -s $OUT/file link && echo x > link",
        "ln ../outside/file hard && echo x > hard",
        "mkdir ../outside/new",
        "chmod 777 ../outside/file",
        "touch -d 2001-01-01 ../outside/file",
        "truncate -s 0 ../outside/file",
        "mkfifo ../outside/pipe",
        "mv ../outside ../elsewhere",
        "cp /bin/true tool && cd ../outside && ../box/tool && echo x > file",
        "python3 -c \"import os; os.chmod('$OUT/file', 0)\"",
        "exec 3<>$OUT/file && echo x >&3",
        "unshare -Ur sh -c 'echo x > $OUT/file'",
        "unshare -Urm sh -c 'mount -o remount,rw / ; echo x > $OUT/file'",
        "setsid sh -c 'echo x > $OUT/file'; sleep 0.2; false",
    ],
)
@pytest.mark.parametrize("seen", [False, True], ids=["hidden", "seen"])
def test_nothing_outside_can_be_changed(box: Confinement, tmp_path: Path, command: str, seen: bool) -> None:
    outside = tmp_path / "outside"
    box = replace(box, readable=(str(outside),) if seen else ())
    before = (outside / "file").lstat()
    done = shell(replace(box, env={**box.env, "OUT": str(outside)}), command)
    assert done.code not in (0, None), done
    after = (outside / "file").lstat()
    assert (outside / "file").read_text() == "mine"
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (before.st_mode, before.st_mtime_ns, before.st_ino)
    assert sorted(one.name for one in outside.iterdir()) == ["file"]
    assert not (tmp_path / "elsewhere").exists()


@LINUX
def test_inside_all_can_be_done(box: Confinement) -> None:
    command = (
        "mkdir -p a/b && echo x > a/b/c && chmod 700 a/b/c && ln -s a/b/c link && ln a/b/c hard && mv a d && "
        'cat hard && echo y > "$TMPDIR/y" && cat <<< z && rm -r d && mkfifo p && git init -q . && '
        "touch -d 2001-01-01 hard && echo gone > /dev/null && echo $HOME | sed 's,.*/,,'"
    )
    assert shell(box, command) == ProcessResult(0, b"x\nz\nbox\n")


@LINUX
def test_what_is_outside_cannot_be_ended(box: Confinement) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        done = shell(box, f"kill -9 {other.pid}; echo $?")
        assert done.output.endswith(b"1\n")
        assert other.poll() is None
        other.kill()


@LINUX
def test_there_is_no_network_unless_it_is_asked_for(box: Confinement) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"{sys.executable} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
        assert shell(box, connect).code == 1
        assert shell(replace(box, network=True), connect).code == 0


@LINUX
@pytest.mark.parametrize("network", [False, True])
def test_nobody_who_listens_by_a_path_is_reached(box: Confinement, tmp_path: Path, network: bool) -> None:
    """What a process may not do itself, it could ask another one for."""
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(tmp_path):  # a socket's name has room for 100 bytes
        server.bind("listens")
        server.listen()
        code = 'import os, socket, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).connect("listens")'
        connect = f"{sys.executable} -c '{code}' {quote(str(tmp_path))}"
        assert shell(replace(box, network=network), connect).code == 1
    pair = f"{sys.executable} -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'"
    assert shell(box, pair).output == b"b'x'\n"


@LINUX
@pytest.mark.parametrize("is_system", [False, True], ids=["anywhere", "in a folder of the system"])
def test_the_home_folder_is_not_visible(box: Confinement, monkeypatch: pytest.MonkeyPatch, is_system: bool) -> None:
    with TemporaryDirectory(dir="/var/tmp") as top:
        home = Path(top, "person")
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh/id").write_text("private")
        (home / "bin").mkdir()
        if is_system:
            monkeypatch.setattr(processes, "_SYSTEM_FOLDERS", (*processes._SYSTEM_FOLDERS, top))
        path = f"{home}/bin:{top}:{home}/.ssh:{os.environ['PATH']}"
        box = replace(box, env={**box.env, "PATH": path}, hidden=(str(home),))
        done = shell(box, f"cat {home}/.ssh/id; ls -A {home}; find / -name id -path '*ssh*' 2>/dev/null; cd ~ && pwd")
        assert b"private" not in done.output
        assert done.output.splitlines()[-1] == os.fsencode(box.writable[0])
        assert done.output.count(b"\n") == (2 if is_system else 3), done
        assert shell(box, f"touch {home}/new").code not in (0, None)


@LINUX
def test_folders_that_all_may_write_in_are_its_own(box: Confinement) -> None:
    name = f"sessgit-test-{os.getpid()}"
    write = f"for d in /tmp /dev/shm; do echo x > $d/{name}$(basename $d); done; ls $TMPDIR; echo x > /dev/{name}"
    shell(box, write)
    with TemporaryDirectory(dir="/var/tmp") as folder:
        box = replace(box, writable=(folder,), env={**box.env, "HOME": folder, "TMPDIR": folder})
        done = shell(box, write)
    assert done.code == 1
    assert [f"{name}{one}".encode() in done.output for one in ("tmp", "shm")] == [True, True]
    assert not [*Path("/tmp").glob(f"{name}*"), *Path("/dev").glob(f"{name}*"), *Path("/dev/shm").glob(f"{name}*")]


@LINUX
@pytest.mark.parametrize("nested", [False, True])
def test_a_link_that_one_command_leaves_does_not_lead_the_next_one_out(box: Confinement, nested: bool) -> None:
    with TemporaryDirectory(dir="/var/tmp") as top:
        for name in ("outside", "box/tmp", "tmp"):
            Path(top, name).mkdir(parents=True)
        (root, own, away) = (f"{top}/{name}" for name in ("box", "box/tmp" if nested else "tmp", "outside"))
        env = {**box.env, "HOME": root, "TMPDIR": own}
        box = replace(box, env=env, writable=(root,) if nested else (root, own))
        shell(box, f"cd /; for d in {root} {own}; do rm -rf $d; ln -sfn {away} $d; ln -s {away} $d/l; done")
        shell(box, f"for d in /tmp /dev/shm {own} {own}/l {root} {root}/l; do echo x > $d/new; done")
        assert not any(Path(away).iterdir())


@LINUX
def test_other_processes_are_not_seen(box: Confinement) -> None:
    """It shares memory with processes of its own alone, where nothing that it may write lies beside that memory."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        box = replace(box, writable=(folder,), env={**box.env, "HOME": folder, "TMPDIR": folder})
        done = shell(box, f"cat /proc/{os.getpid()}/environ; ls -d /proc/[0-9]* | wc -l; {sys.executable} -c "
                     "'import multiprocessing; print(multiprocessing.Pool(2).map(abs, [-1]))'")  # fmt: skip
    assert b"No such file" in done.output
    assert int(done.output.splitlines()[-2]) < 8
    assert done.output.endswith(b"[1]\n")


@LINUX
def test_the_report_of_the_cage_is_its_own(box: Confinement) -> None:
    """A process that claims to have ended well by other descriptors than its own is not believed."""
    lie = 'for n in /proc/self/fd/*; do echo \'{"code": 0, "why": ""}\' >&${n##*/} ; done 2>/dev/null; exit 3'
    assert shell(box, lie).code == 3


@LINUX
def test_the_environment_is_empty_and_secrets_of_it_are_not_there(
    box: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    names = {line.partition("=")[0] for line in shell(box, "env").output.decode().splitlines()}
    assert names - {"_", "PWD", "SHLVL", "OLDPWD"} == {"PATH", "HOME", "TMPDIR"}


@LINUX
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("while :; do :; done", "it took longer than 1 s"),
        ("sleep 60", "it took longer than 1 s"),
        ("trap '' TERM INT HUP; sleep 60 & wait; sleep 60", "it took longer than 1 s"),
        ("yes", "it printed more than 1.0 MB"),
        ("head -c 100000000 /dev/zero", "it printed more than 1.0 MB"),
        ("for i in {1..40}; do sleep 60 & done; wait", "it started more than 20 processes"),
        (f"{sys.executable} -c \"import os\nfor _ in range(40): os.fork() or __import__('time').sleep(60)\nos.wait()\"",
         "it started more than 20 processes"),
        (f"for i in 1 2 3; do {sys.executable} -c \"x = bytearray(90 << 20); input()\" < <(sleep 60) & done; wait",
         "it used more than 210 MB of memory"),
        ("for i in {1..30}; do head -c 20000000 /dev/zero > $i; done; sleep 60", "it wrote more than 210 MB"),
    ],
)  # fmt: skip
def test_what_runs_away_is_ended(box: Confinement, command: str, why: str) -> None:
    seconds = 1 if "longer" in why else 20
    limits = Limits(seconds, 200 << 20, 20, 200 << 20, 100 << 20, 1 << 20)
    began = time.monotonic()
    done = shell(replace(box, limits=limits), command)
    assert (done.code, done.why) == (None, why)
    assert time.monotonic() - began < 15
    assert len(done.output) <= 1 << 20


@LINUX
def test_a_fork_bomb_is_ended(box: Confinement) -> None:
    if not Path("/proc/sys/kernel/pid_max").exists():
        pytest.skip("this kernel numbers no processes")
    # It doubles three times a second: on a busy machine a faster one takes all processes that there are before anyone
    # looks again, and the tests that run next to this one cannot start theirs.
    bomb = ":(){ sleep 0.3; :|:& };:; sleep 60"
    began = time.monotonic()
    done = shell(replace(box, limits=Limits(seconds=15, processes=60)), bomb)
    assert (done.code, done.why) == (None, "it started more than 60 processes")
    assert time.monotonic() - began < 20


@LINUX
def test_one_process_gets_no_more_memory_and_no_larger_file(box: Confinement) -> None:
    limits = box.limits._replace(file=1 << 20)
    done = shell(replace(box, limits=limits), f"{sys.executable} -c 'x = bytearray(1 << 30)' 2>&1 | tail -1; "
                 "head -c 3000000 /dev/zero > big 2>/dev/null; stat -c %s big")  # fmt: skip
    assert done.output == b"MemoryError\n1048576\n"


@LINUX
def test_nothing_is_left_of_what_hid_itself(box: Confinement) -> None:
    marker = f"6{os.getpid()}{time.monotonic_ns() % 10_000}"
    hidden = f"(setsid sh -c '(setsid sleep {marker} &) ; sleep {marker}' >/dev/null 2>&1 &) ; sleep 0.2; echo done"
    assert shell(box, hidden).output == b"done\n"
    assert alive(marker) == []


@LINUX
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_all_ends_with_the_command_itself(sessgit: Shell, tmp_path: Path, how: signal.Signals) -> None:
    marker = f"7{os.getpid()}{time.monotonic_ns() % 10_000}"
    talk = Talk(SESSION, cwd=str(sessgit.project)).prompt("go")
    talk.tool("Bash", {"command": f"(setsid sleep {marker} &) ; sleep {marker}"}, "")
    sessgit.recorded(talk.answer("Done.").stop_lines())
    command = [sys.executable, "-m", "sessgit", "replay", "5e55", "--execute", "--no-keep"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while len(alive(marker)) < 2:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        process.send_signal(how)
        process.wait(60)
    deadline = time.monotonic() + 60
    while alive(marker):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if how != signal.SIGKILL:
        assert process.returncode == 128 + how and list(tmp_path.glob("sessgit-replay-*")) == []


@LINUX
def test_without_bubblewrap_the_command_says_what_to_install(
    coded: Coded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands(coded, ("echo 1", "1"))
    for name in ("git", "bash", "sh"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = coded.shell("replay", "5e55", "--execute")
    assert (done.code, done.out) == (1, "")
    assert "cannot run commands in a sandbox: bubblewrap is not installed" in done.err
    assert "apt-get install bubblewrap" in " ".join(done.err.split())
    assert outcomes(coded.shell, "5e55", "--execute", "--unconfined") == [("Bash", "equal", None)]


@LINUX
def test_a_bubblewrap_that_cannot_run_is_quoted(coded: Coded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands(coded, ("echo 1", "1"))
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    done = coded.shell("replay", "5e55", "--execute")
    assert (done.code, done.out) == (1, "")
    assert "bwrap: No permissions to create new namespace" in " ".join(done.err.split())


@LINUX
def test_git_works_in_the_copy_of_a_project(coded: Coded) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    commands(coded, (f"git log --format=%s | head -1; git status --short; {commit} && echo done", "Start\ndone"))
    assert outcomes(coded.shell, "5e55", "--execute") == [("Bash", "equal", None)]


def test_the_profile_for_macos_hides_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(processes, "_isolation_tool", lambda path: "/usr/bin/sandbox-exec")
    hidden, objects = ("/home/ada",), ("/home/ada/code/.git/objects",)
    confinement = Confinement(("/box",), {"PATH": "/usr/bin"}, readable=objects, hidden=hidden)
    command = processes._isolated_command(["true"], "/", confinement)
    assert (command[:2], command[3:]) == (["/usr/bin/sandbox-exec", "-p"], ["true"])
    rules = command[2]
    assert rules.index('(deny file-read-data (subpath "/home/ada"))') < rules.index("(allow file-read-data")
    assert '(subpath "/home/ada/code/.git/objects") (subpath "/box"))' in rules
    assert rules.endswith("(deny network*)")


# Cells that do such things


@LINUX
def test_cells_that_must_not_are_told_apart_and_change_nothing(coded: Coded) -> None:
    home, shop = coded.shell.home, coded.project
    (home / "mine").write_text("mine")
    denied = "Exit code 1"
    commands(
        coded,
        (f"echo x > {quote(str(home))}/mine", denied),
        ("echo x > ../mine", denied),
        ("echo x > ~/mine; cat ~/mine", "x"),
        (f"rm -rf {quote(str(shop))}/.git; ls {quote(str(shop))}/.git", denied),
        ("while :; do :; done", ""),
        ("yes", ""),
        ("echo $SESSGIT_OFF $API_TOKEN", "1"),
    )
    found = outcomes(coded.shell, "5e55", "--execute", "--timeout", "2", code=6)
    assert [one[1] for one in found] == ["differs", "differs", "equal", "differs", "failed", "failed", "equal"]
    assert found[4][2] == "it took longer than 2 s" and found[5][2] == "it printed more than 8.4 MB"
    assert (home / "mine").read_text() == "mine" and (shop / ".git/HEAD").exists()


@LINUX
def test_files_are_not_written_through_links(coded: Coded) -> None:
    home, top = coded.shell.home, coded.project
    (home / "mine").write_text("mine")
    talk = coded.talk(SESSION).prompt("go")
    away = quote(str(home))
    talk.tool("Bash", {"command": f"ln -s {away} out; ln -s {away}/mine file; ln -s . in; mkfifo pipe"}, "")
    for path in ("out/mine", "file", "out/new/deep", "in/in/ok", "pipe", "src"):
        talk.tool("Write", {"file_path": str(top / path), "content": "x"}, "ok")
    talk.tool("Edit", {"file_path": str(top / "file"), "old_string": "mine", "new_string": "x"}, "ok")
    talk.tool("Read", {"file_path": str(top / "file")}, "1\tmine").tool(
        "Read", {"file_path": str(top / "pipe")}, "1\tx"
    )
    coded.record(talk.answer("Done.").stop_lines())
    found = outcomes(coded.shell, "5e55", "--execute", code=6)
    out = f"refused: a link leads out of the sandbox, to {home}"
    assert [one[1:] for one in found] == [
        ("equal", None),
        ("failed", f"{out}/mine"),
        ("failed", f"{out}/mine"),
        ("failed", f"{out}/new/deep"),
        ("equal", None),
        ("differs", None),
        ("differs", None),
        ("failed", f"{out}/mine"),
        ("failed", f"{out}/mine"),
        ("differs", None),
    ]
    assert (home / "mine").read_text() == "mine"


@LINUX
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True: pass", ("failed", "it took longer than 2 s")),
        ("import os; os._exit(3)", ("failed", "it exited with code 3 before it answered")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", ("failed", "it took longer than 2 s")),
        ("x = bytearray(1 << 30)", ("failed", "it exceeded the memory limit")),
        ("while True: print('x' * 1000)", ("failed", "it took longer than 2 s")),
        ("import os; os.closerange(3, 5000)", None),
        (_DEEP, ("failed", f"it printed a line that is not a JSON object: {'[' * 99}…")),
        ("open('/etc/new', 'w')", ("differs", None)),
        ("import os; os.system('yes > /dev/stdout & sleep 60')", ("failed", "it took longer than 2 s")),
        ("'x' * 10_000_000", ("differs", None)),
        ("input()", ("differs", None)),
        ("(", ("differs", None)),
    ],
)
def test_code_that_does_what_it_should_not(sessgit: Shell, code: str, said: tuple[str, str | None] | None) -> None:
    program(sessgit, step(1, "repl", "eval", {"code": code}, "x"), step(2, "repl", "eval", {"code": "1"}, 1))
    limit = "2" if said == ("failed", "it took longer than 2 s") else "60"
    arguments = ("5e55", "--execute", "--timeout", limit, "--memory", "300")
    first, second = outcomes(sessgit, *arguments, code=6)
    if said is None:
        assert first[1] == "failed"
    else:
        assert first[1:] == said
    if first[1] == "failed" and "memory" not in str(first[2]):
        assert second[1] == "failed" and str(second[2]).startswith("the Python process with the variables is gone")
    else:
        assert second[1] == "equal"


def test_a_damaged_turn_is_told_and_the_rest_runs(coded: Coded) -> None:
    talk = coded.talk(SESSION)
    for number in (1, 2):
        talk.prompt(f"go {number}").tool("Bash", {"command": f"echo {number}"}, f"{number}")
        coded.record(talk.answer("Done.").stop_lines())
    put(coded.shell, 1, layout.BODY, b"{\n")
    found = outcomes(coded.shell, "5e55", "--execute")
    assert found == [("Bash", "skipped", "its lines do not describe the call"), ("Bash", "equal", None)]
    put(coded.shell, 1, layout.BODY, None)
    found = outcomes(coded.shell, "5e55", "--execute")
    assert "its turn is damaged" in str(found[0][2]) and found[-1][1] == "equal"
    assert "its turn is damaged" in replayed(coded.shell, "5e55").out


def test_cells_that_cannot_be(coded: Coded) -> None:
    commands(coded, ("echo 1", "1"))
    rewrite(coded.shell, 1, lambda cells: [{**cells[0], "depends": [cells[1]["id"]]}, *cells[1:]])
    done = replayed(coded.shell, "5e55", "--execute")
    assert "in a circle: 1.1 → 1.2 → 1.1" in done.err and "1 equal" in done.out
    odd = {
        "id": "\x9b\u202e",
        "type": "tool",
        "operation": "\x1b[31m\x9b" * 99,
        "lines": [0, -7],
        "depends": [],
        "ok": True,
    }
    rewrite(coded.shell, 1, lambda cells: [odd, *cells])
    done = replayed(coded.shell, "5e55", "--execute")
    assert not any(char in done.out + done.err for char in "\x1b\x9b\u202e")
    assert "its lines do not describe the call" in done.out


def test_what_is_printed_is_harmless_and_bounded(coded: Coded) -> None:
    commands(coded, (r"printf '\033[31m\233red\u202e\000\n'; yes x | head -100000", "other"))
    done = replayed(coded.shell, "5e55", "--execute", code=6)
    assert not any(char in done.out for char in "\x1b\x9b\u202e\0")
    assert len(done.out) < 3000
    found = value(coded.shell, "5e55", "--execute", code=6)["cells"][1]
    assert len(found["now"]) < 21_000 and len(found["diff"]) == 41
    kept = coded.shell("show", "f0000001@2.1", "--json").out
    assert len(kept) < 60_000


def test_secrets_that_are_printed_are_not_kept(coded: Coded) -> None:
    commands(coded, (f"echo {SECRET[:9]}''{SECRET[9:]}", "other"))
    assert SECRET not in replayed(coded.shell, "5e55", "--execute", code=6).out
    assert SECRET not in str(value(coded.shell, "5e55", "--execute", code=6))
    for kept in ("f0000001", "f0000002"):
        assert SECRET not in coded.shell("show", f"{kept}@2.1", "--json").out


def test_a_function_of_a_program_is_called_with_the_arguments(sessgit: Shell) -> None:
    program(
        sessgit,
        step(1, "tool", "peek", {"start": 1, "end": 3}, "bc"),
        step(2, "tool", "add", {"a": 1, "b": 2}, {"sum": 3}),
        step(3, "tool", "fail", {}, error="KeyError: 'x'"),
        step(4, "tool", "stop", {"why": 1}, 1),
        step(5, "repl", "peek", {"code": "1 + 1"}, 2),
    )

    def fail() -> None:
        raise KeyError("x")

    functions: Executors = {
        "peek": lambda start, end: "abcd"[start:end],
        ("tool", "add"): lambda a, b: {"sum": a + b},
        "fail": fail,
        "stop": lambda: 1,
        ("repl", "peek"): lambda code: 2,
    }
    with Store.open(sessgit.store) as store:
        results = store.load_session(SESSION).replay(functions)
    assert [one.outcome for one in results] == ["equal", "equal", "equal", "differs", "equal"]
    assert "unexpected keyword argument 'why'" in results[3].now


# Files


@given(
    st.lists(st.sampled_from(["..", ".", "a", "out", "up", "in", "file", "loop"]), min_size=1, max_size=6),
    st.sampled_from(["x", None]),
)
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str], text: str | None) -> None:
    """Whatever a path is made of, what is outside stays as it is."""
    top = tmp_path_factory.mktemp("box")
    (top / "outside").mkdir()
    (top / "outside/file").write_text("mine")
    root = top / "root"
    (root / "a").mkdir(parents=True)
    for name, target in (
        ("out", "../outside"),
        ("up", ".."),
        ("in", "."),
        ("file", "../outside/file"),
        ("loop", "loop"),
    ):
        (root / name).symlink_to(target)
    path = os.path.join(root, *parts)  # noqa: PTH118 - as a tool gives it
    with suppress(DeclinedError, OSError):
        run.apply_write(str(root), {"a": path}, lambda before: {"a": text})
    assert [one.name for one in (top / "outside").iterdir()] == ["file"]
    assert (top / "outside/file").read_text() == "mine"
    assert sorted(one.name for one in top.iterdir()) == ["outside", "root"]
