"""`sessgit bisect --run`: a command at the commits of turns, in a worktree of which nothing stays."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from coded import Coded, begins
from plain import run_git
from shell import Done, Shell
from transcripts import OTHER, SESSION
from waiting import PATIENCE

from sessgit.store import layout, owner

CHECK = "grep -q two src/lexer.py"
TURNS = 8
BROKEN = 6


@pytest.fixture
def coded(eight: Coded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Coded:
    """The same with a temporary folder of its own."""
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    return eight


@begins
def eight(made: Coded) -> None:
    """Eight turns with a commit each; the sixth takes away a line. Nobody was there for the third."""
    talk = made.talk(SESSION)
    for number in range(1, TURNS + 1):
        path = str(made.project / "src" / "lexer.py")
        talk.prompt(f"step {number}").tool("Write", {"file_path": path, "content": "…"}).answer("Done.").stop_lines()
        lines = f"one\n{'two' if number < BROKEN else 'three'}\n{number}\n"
        made.commit(f"Step {number}", {"src/lexer.py": lines})
        made.record(talk, live=number != 3)


def kept(coded: Coded) -> dict[str, str]:
    """Every file of the project, git's own among them, with what is in it."""
    files = [path for path in coded.project.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def bisect(coded: Coded, *arguments: str) -> Done:
    """Runs it, and looks whether anything is left or changed in the project and in the temporary folder."""
    before = kept(coded)
    done = coded.shell("bisect", *arguments)
    assert kept(coded) == before
    assert not [*Path(tempfile.gettempdir()).iterdir()]
    return done


def found(coded: Coded, *arguments: str) -> dict[str, Any]:
    done = bisect(coded, SESSION, "--json", *arguments)
    assert (done.code, done.err) == (0, ""), done
    value: dict[str, Any] = json.loads(done.out)
    return value


def steps(value: dict[str, Any]) -> str:
    """`1+ 8- 5+`: the turns in the order in which they were tested."""
    return " ".join(f"{step['turn']}{ {'good': '+', 'bad': '-'}.get(step['verdict'], '?') }" for step in value["steps"])


def short(coded: Coded, turn: int) -> str:
    return coded.git("rev-parse", f"main~{TURNS - turn}")[:8]


def test_the_page(coded: Coded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    done = bisect(coded, "5e55", "--run", f"echo looking; {CHECK}")
    assert (done.code, done.err) == (0, "")
    assert (
        done.out
        == f"""\
5e551011  step 1

Turn 6 is the first bad turn.

✓ 5  {short(coded, 5)}  step 5                                               exit 0  0.0s
✗ 6  {short(coded, 6)}  step 6                                               exit 1  0.0s

═══ code of ~/shop, since {short(coded, 5)} ═════════════════════════════════════════════
− {short(coded, 5)}  main
+ {short(coded, 6)}  main  ·  1 commit
    {short(coded, 6)}  Step 6
  1 file  +2 −2
    M src/lexer.py  +2 −2

Output of the command:
  looking

Tested 5 turns, at 5 commits: 1✓ 5✓ 6✗ 7✗ 8✗
Skipped 3: no commit recorded.

sessgit show 5e551011@6              what was said and done
sessgit fork 5e551011 --at 5         continue from before it
sessgit why src/lexer.py 5e551011@6  how the file was written
"""
    )


def test_as_json(coded: Coded) -> None:
    value = found(coded, "--run", CHECK)
    assert steps(value) == "1+ 8- 5+ 7- 6-"
    assert (value["exact"], value["between"], value["from"], value["to"]) == (True, [6], 1, 8)
    assert value["skipped"] == [{"turn": 3, "reason": "no commit recorded"}]
    assert (value["first_bad"]["turn"], value["first_bad"]["exit_code"]) == (6, 1)
    assert (value["last_good"]["turn"], value["last_good"]["prompt"]) == (5, "step 5")
    assert value["code"]["b"]["commit"] == value["first_bad"]["head"] == coded.git("rev-parse", "main~2")
    assert value["files"] == [str(coded.project / "src" / "lexer.py")]
    assert value["next"]["fork"] == f"sessgit fork {SESSION} --at 5"


def test_what_the_command_is_told(coded: Coded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    note = tmp_path / "note"
    words = "$SESSGIT_BISECT_TURN $SESSGIT_BISECT_SESSION $SESSGIT_BISECT_COMMIT $SESSGIT_OFF $(git rev-parse HEAD)"
    value = found(coded, "--run", f'echo "{words} $(pwd)" >> {quote(str(note))}; {CHECK}')
    said = [line.split(maxsplit=5) for line in note.read_text().splitlines()]
    heads = [(str(step["turn"]), SESSION, step["head"], "1", step["head"]) for step in value["steps"]]
    assert [tuple(line[:5]) for line in said] == heads
    assert len({line[5] for line in said}) == 1
    assert Path(said[0][5]).name == "shop" and not Path(said[0][5]).exists()


def test_a_conversation_in_a_subfolder_is_tried_there(coded: Coded) -> None:
    talk = coded.talk(OTHER, cwd=str(coded.project / "src"))
    coded.record(talk.turns("one"))
    coded.commit("Broken", {"src/broken": ""})
    coded.record(talk.turns("two"))
    done = bisect(coded, OTHER, "--json", "--run", "test ! -e broken -a -e lexer.py")
    assert json.loads(done.out)["first_bad"]["turn"] == 2


def test_a_part_of_the_conversation(coded: Coded) -> None:
    assert steps(found(coded, "--run", CHECK, "--good", "4", "--bad", "7")) == "4+ 7- 6- 5+"
    assert steps(found(coded, "--run", CHECK, "--good", "5", "--bad=-3")) == "5+ 6-"
    done = bisect(coded, "5e55@6", "--json", "--run", CHECK, "--good", "3")
    assert steps(json.loads(done.out)) == "4+ 6- 5+"


def test_turns_that_cannot_be_told_make_the_answer_a_range(coded: Coded) -> None:
    value = found(coded, "--run", f"case $SESSGIT_BISECT_TURN in 5|6) exit 125; esac; {CHECK}")
    assert (value["exact"], value["between"]) == (False, [5, 6, 7])
    assert [step["turn"] for step in value["steps"] if step["verdict"] == "skip"] == [5, 6]
    said = bisect(coded, "5e55", "--run", f"case $SESSGIT_BISECT_TURN in 5|6) exit 125; esac; {CHECK}").out
    assert "The first bad turn is one of 5 to 7: those before 7 cannot be tested.\n" in said
    assert "Skipped 3: no commit recorded.\nSkipped 5-6: exit 125.\n" in said
    said = bisect(coded, "5e55", "--run", f"test $SESSGIT_BISECT_TURN != 6 || exit 125; {CHECK}").out
    assert "The first bad turn is 6 or 7: 6 cannot be tested.\n" in said


def test_turns_at_one_commit_are_tried_once(coded: Coded, tmp_path: Path) -> None:
    talk = coded.talk(OTHER)
    for number in range(12):
        if number in (4, 9):
            coded.commit(f"At {number}", {"number": str(number)})
        coded.record(talk.turns(f"turn {number + 1}"))
    note = tmp_path / "note"
    check = "grep -qv 9 number 2>/dev/null || test ! -e number"
    done = bisect(coded, OTHER, "--json", "--run", f"echo >> {quote(str(note))}; {check}")
    value = json.loads(done.out)
    assert (value["last_good"]["turn"], value["first_bad"]["turn"], value["exact"]) == (9, 10, True)
    assert len(note.read_text()) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--run", "false"], 1, "turn 1, the first that can be tested, is already bad (exit 1)"),
        (["--run", "echo why; exit 3", "--good", "3"], 1,
         "turn 4, the first that can be tested, is already bad (exit 3): why."),
        (["--run", "true"], 1, "turn 8, the last that can be tested, is good (exit 0)"),
        (["--run", "exit 125"], 4, "none of the turns can be tested: exit 125."),
        (["--run", "echo oh; exit 130"], 1, "the command ended with 130 at turn 1 (HEAD), which means to stop: oh."),
        (["--run", "kill -9 $$"], 1, "the command ended with 137 at turn 1 (HEAD), which means to stop."),
        (["--run", "exit 255"], 1, "the command ended with 255 at turn 1 (HEAD), which means to stop."),
        (["--run", "true", "--good", "5", "--bad", "5"], 2,
         "the good turn must come before the bad one, but 5 does not come before 5."),
        (["--run", "true", "--good", "0"], 2, "the good turn must come before the bad one, but 0 does not come "
        "before 8."),
        (["--run", "true", "--bad", "9"], 4, "5e551011 has no turn 9; it has 8 turns."),
        (["--run", "true", "--timeout", "soon"], 2, "“soon” is not a duration."),
        (["--run", "true", "--timeout", "0"], 2, "“0” is not a duration."),
        (["--run", " "], 2, "bisect needs either --run COMMAND or --cell-fails REGEX."),
    ],
)  # fmt: skip
def test_what_cannot_be_answered(coded: Coded, arguments: Sequence[str], code: int, message: str) -> None:
    done = bisect(coded, SESSION, *arguments)
    first, hint = done.err.splitlines()
    assert (done.code, done.out, first) == (code, "", f"Error: {message.replace('HEAD', short(coded, 1))}"), done
    assert hint.startswith("Hint: ")


def test_a_command_that_is_not_there_is_told_of(coded: Coded) -> None:
    done = bisect(coded, SESSION, "--run", "no-such-program")
    assert done.code == 1
    assert "is already bad (exit 127): " in done.err and "no-such-program" in done.err
    assert "The shell could not run the command" in done.err


def test_what_takes_too_long_is_bad(coded: Coded) -> None:
    value = found(coded, "--run", f"{CHECK} || sleep 60", "--timeout", "1s", "--good", "5", "--bad", "6")
    assert (value["first_bad"]["turn"], value["first_bad"]["exit_code"]) == (6, None)
    assert [step["reason"] for step in value["steps"]] == ["exit 0", "stopped after 1s"]


def test_nothing_that_it_left_running_goes_on(coded: Coded, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    began = time.monotonic()
    found(coded, "--run", f"sleep 600 & echo $! >> {quote(str(pids))}; {CHECK}")
    assert time.monotonic() - began < PATIENCE
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(_living(pid)), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody adopts what left its group")
def test_what_left_the_group_spoils_no_later_run(coded: Coded) -> None:
    spoiler = "setsid sh -c 'while :; do echo bad > spoiled; done' >/dev/null 2>&1 &"
    value = found(coded, "--run", f"test ! -e spoiled && {CHECK} || exit 1; {spoiler}")
    assert (value["first_bad"]["turn"], value["exact"]) == (BROKEN, True)


def test_a_command_may_open_as_many_files_as_the_person(coded: Coded) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    value = found(coded, "--run", f"test \"$(ulimit -Sn) $(ulimit -Hn)\" = '{most[0]} {most[1]}' || exit 128; {CHECK}")
    assert value["exact"]


def test_what_runs_too_long_may_end_itself(coded: Coded, tmp_path: Path) -> None:
    told = tmp_path / "told"
    end = quote(f"echo ended > {quote(str(told))}; exit")
    found(coded, "--run", f"{CHECK} || {{ trap {end} TERM; sleep 60 & wait; }}",
          "--timeout", "1s", "--good", "5", "--bad", "6")  # fmt: skip
    assert told.read_text() == "ended\n"


def _living(pid: str) -> str:
    """The pid, or one that nobody has where its process is dead and only waits to be looked at."""
    try:
        dead = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return pid
    return str(1 << 22) if dead else pid


def test_each_commit_is_tried_as_it_is(coded: Coded) -> None:
    """What a run made or changed is not there in the next one, but for what git ignores; nor what it committed."""
    left = (
        'test ! -e made && test -z "$(git status --porcelain)" && test "$(git log -1 --format=%s)" != Mine || exit 200'
    )
    make = "echo x > made; mkdir -p a/b .env; echo y >> src/lexer.py; git init -q nested"
    mine = "git -c user.name=x -c user.email=x commit -qam Mine"
    done = coded.shell("bisect", SESSION, "--run", f"{left}; {CHECK}; code=$?; {make}; {mine}; exit $code")
    assert "Turn 6 is the first bad turn." in done.out
    assert not [*Path(tempfile.gettempdir()).iterdir()]


def test_what_nobody_may_delete_is_deleted_too(coded: Coded) -> None:
    assert found(coded, "--run", f"mkdir -p .env/in; chmod 500 .env/in .env; {CHECK}")["first_bad"]["turn"] == BROKEN


def test_no_hook_is_run(coded: Coded, tmp_path: Path) -> None:
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = coded.project / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {quote(str(tmp_path / 'ran'))}\n")
        hook.chmod(0o755)
    assert found(coded, "--run", CHECK)["first_bad"]["turn"] == BROKEN
    assert not (tmp_path / "ran").exists()


def test_a_worktree_that_the_command_takes_away(coded: Coded) -> None:
    done = bisect(coded, SESSION, "--run", "rm -rf .git")
    assert (done.code, done.err.splitlines()[0]) == (1, "Error: the command deleted the worktree it ran in.")


def test_a_commit_that_is_gone(coded: Coded) -> None:
    coded.git("checkout", "-q", "--orphan", "other")
    coded.commit("Anew", {})
    coded.git("branch", "-qD", "main")
    coded.git("reflog", "expire", "--expire=now", "--all")
    coded.git("gc", "-q", "--prune=now")
    done = bisect(coded, SESSION, "--run", CHECK)
    assert done.code == 4
    assert "no longer exists" in done.err
    assert "Hint: `git fetch` restores commits that another clone still has.\n" in done.err


def test_without_any_commit(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    done = sessgit("bisect", "5e55", "--run", "true")
    assert (done.code, done.err.splitlines()) == (
        4,
        [
            "Error: no turn of 5e551011 has a recorded commit of the project.",
            "Hint: Commits are recorded only while a conversation runs in a git repository, not by "
            "import. `--cell-fails` checks "
            "what the conversation itself ran.",
        ],
    )
    sessgit.recorded(sessgit.talk(OTHER).turns("alone"))
    assert "has fewer than two turns" in sessgit("bisect", OTHER, "--run", "true").err


def test_git_is_missing(coded: Coded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = coded.shell("bisect", "5e55", "--run", "true")
    assert (done.code, done.err) == (7, "Error: git is missing.\nHint: Install git 2.30 or later.\n")


def test_a_project_that_is_gone(coded: Coded) -> None:
    coded.project.rename(coded.project.parent / "moved")
    done = coded.shell("bisect", SESSION, "--run", "true")
    assert (done.code, done.err.splitlines()[0]) == (4, f"Error: the project's folder is gone: {coded.project}.")


def test_what_was_never_committed_cannot_be_tested(coded: Coded) -> None:
    talk = coded.talk(OTHER)
    for number in range(3):
        coded.write({"src/lexer.py": str(number)})
        coded.record(talk.turns(f"turn {number}"))
    done = coded.shell("bisect", OTHER, "--run", "true")
    assert done.err.splitlines() == [
        "Error: turn 3, the last that can be tested, is good (exit 0), at the same commit as turn 1.",
        "Hint: Uncommitted changes cannot be tested.",
    ]


def test_of_long_output_the_end_is_kept(coded: Coded) -> None:
    value = found(coded, "--run", f"seq 100000; printf '\\033[31mred\\n'; {CHECK}", "--good", "5", "--bad", "6")
    assert len(value["first_bad"]["output"]) <= 16_384
    assert value["first_bad"]["output"].endswith("99999\n100000\n\x1b[31mred\n")
    said = bisect(coded, SESSION, "--run", f"seq 100000; printf '\\033[31mred\\n'; {CHECK}").out
    assert "Output of the command:\n  99992\n" in said and "  100000\n  red\n" in said


def test_verbose_shows_it_as_it_comes(coded: Coded) -> None:
    done = start(coded, "bisect", SESSION, "-v", "--run", f"echo looking; {CHECK}")
    out, err = done.communicate()
    assert (done.returncode, err) == (0, b"looking\n" * 5)
    assert b"Turn 6 is the first bad turn." in out


def start(coded: Coded, *arguments: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    command = [sys.executable, "-m", "sessgit", *arguments]
    return subprocess.Popen(command, cwd=coded.project, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_is_stopped_leaves_nothing(coded: Coded, tmp_path: Path, number: signal.Signals) -> None:
    before, pid, new = kept(coded), tmp_path / "pid", tmp_path / "pid.new"
    process = start(coded, "bisect", SESSION, "--run", f"trap '' HUP; sleep 60 & echo $! > {quote(str(new))}; "
                    f"mv {quote(str(new))} {quote(str(pid))}; wait")  # fmt: skip
    deadline = time.monotonic() + 60
    while not pid.exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130 if number is signal.SIGINT else 128 + number, b"")
    assert kept(coded) == before
    assert not [*Path(tempfile.gettempdir()).iterdir()]
    with pytest.raises(ProcessLookupError):
        os.kill(int(_living(pid.read_text().strip())), 0)


def test_the_store_is_left_alone(coded: Coded) -> None:
    coded.shell("log", SESSION)  # a transcript that is a minute old is taken for closed, and its end recorded
    refs = run_git(coded.shell.store, "for-each-ref")
    bisect(coded, SESSION, "--run", CHECK)
    assert run_git(coded.shell.store, "for-each-ref") == refs
    assert owner.store_exists(coded.shell.store)
    assert layout.short_name(SESSION) in coded.shell.out("log", SESSION)


def test_the_next_commands_work(coded: Coded) -> None:
    value = found(coded, "--run", CHECK)["next"]
    assert [shlex.split(command)[1] for command in value.values()] == ["show", "fork", "why"]
    for command in value.values():
        assert coded.shell(*shlex.split(command)[1:]).code == 0
