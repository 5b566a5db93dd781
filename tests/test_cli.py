"""The program as a whole: help, usage, exit codes, pipes, terminals, completion."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plain import run_git
from preloaded import PROGRAM, Started
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit import __version__
from sessgit.cli import app, completion, frame, invocation
from sessgit.errors import ROOM, SessgitError

EVERY_SESSION = ("log", "fork", "diff", "restore", "resume", "id")


def start(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "sessgit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


ON_TERMINAL = f"""
import os, sys
ended, terminal = os.dup(1), os.open(os.environ.pop("TEST_TERMINAL"), os.O_RDWR | os.O_NOCTTY)
os.write(ended, b"opened\\n")
for number, mode in enumerate("rww"):
    os.dup2(terminal, number)
os.close(terminal)
before = sys.stdin, sys.stdout, sys.stderr  # which would close the terminal
sys.stdin, sys.stdout, sys.stderr = (open(number, mode, encoding="utf-8") for number, mode in enumerate("rww"))
try:
    {PROGRAM}
except SystemExit as end:
    sys.stdout.flush()
    os.write(ended, str(end.code or 0).encode())
"""
"""Runs the program on the terminal that `TEST_TERMINAL` names, and prints its exit code where it printed before."""


def on_terminal(columns: int, *arguments: str, **more: str) -> str:
    """What the program prints on a terminal of so many columns and 24 lines."""
    main, side = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "24", **more}
    with Started(ON_TERMINAL, *arguments, env={**env, "TEST_TERMINAL": os.ttyname(side)}) as process:
        opened = process.stdout.readline()
        os.close(side)
        assert opened == "opened\n"
        said = b""
        while True:
            try:
                piece = os.read(main, 65_536)
            except OSError:  # what Linux says when the other side is closed
                break
            if not piece:
                break
            said += piece
        os.close(main)
        assert process.stdout.read() == "0", said
    return said.decode().replace("\r\n", "\n")


# Words


def test_help_names_every_command_and_every_exit_code(sessgit: Shell) -> None:
    help_ = sessgit.out("--help")
    for name in app.COMMANDS:
        assert f"\n  {name} " in help_
    classes = [SessgitError]
    for known in classes:
        classes += known.__subclasses__()
    for code in {known.exit_code for known in classes} | {0, 70}:
        assert f" {code} " in help_.replace("\n", " ")
    assert "…" not in help_ and help_.count("...") == 1, "a first sentence that is cut"
    assert max(map(len, help_.splitlines())) <= 80


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_has_help(sessgit: Shell, name: str) -> None:
    help_ = sessgit.out(name, "-h")
    assert help_.startswith(f"Usage: sessgit {name} ")
    assert max(map(len, help_.splitlines())) <= 80
    assert "-\n" not in help_, "an option that is cut at a line's end"
    assert ("--json" in help_) == (name not in ("resume", "bridge", "web", "mcp", "prompt"))


def test_the_first_screen_has_the_first_sentence_of_each_help(sessgit: Shell) -> None:
    summaries = {name: summary for commands in app.GROUPS.values() for name, summary in commands.items()}
    for name, summary in summaries.items():
        first = " ".join(sessgit.out(name, "--help").split("\n\n")[1].split()).partition(". ")[0]
        assert first.rstrip(".") == summary


def test_the_first_screen_imports_no_command_and_no_agent() -> None:
    code = (
        "import atexit, sys; sys.argv = ['sessgit', '--help']\n"
        "large = ('sessgit.cli.commands.', 'sessgit.agents', 'sessgit.store')\n"
        "atexit.register(lambda: print([name for name in sys.modules if name.startswith(large)]))\n"
        "from sessgit.cli import app; app.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version(sessgit: Shell) -> None:
    assert sessgit.out("--version") == f"sessgit {__version__}\n"


@pytest.mark.parametrize("verb", ["add", "branch", "checkout", "cherry-pick", "clone", "commit", "rebase",
                                  "reset", "stash", "switch"])  # fmt: skip
def test_verbs_of_git_name_the_one_to_use(sessgit: Shell, verb: str) -> None:
    done = sessgit(verb, "-b", "x")
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert error == f"Error: sessgit has no command “{verb}”."
    assert hint == f"Hint: {app.OTHER_WORDS[verb]}"


def test_a_word_that_is_no_command(sessgit: Shell) -> None:
    assert sessgit("lgo").err == "Error: sessgit has no command “lgo”.\nHint: Did you mean `sessgit log`?\n"
    assert sessgit("one").err.endswith("Hint: Did you mean `sessgit on`?\n")
    done = sessgit("frobnicate")
    assert (done.code, done.err) == (
        2,
        "Error: sessgit has no command “frobnicate”.\nHint: `sessgit --help` lists all commands.\n",
    )
    done = sessgit("log", "--frobnicate")
    assert (done.code, done.err) == (
        2,
        "Error: No such option: --frobnicate.\nHint: `sessgit log --help` explains it.\n",
    )


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("open", "resume"),
        ("rm", "delete"),
        ("label", "edit"),
        ("view", "show"),
        ("find", "search"),
        ("list", "ls"),
        ("redo", "undo"),
    ],
)
def test_a_word_of_other_programs_names_the_command_to_use(sessgit: Shell, word: str, command: str) -> None:
    for arguments in ((word,), (word, "x"), ("help", word)):
        done = sessgit(*arguments)
        assert (done.code, done.err.splitlines()[0]) == (2, f"Error: sessgit has no command “{word}”.")
        assert done.err.splitlines()[1].startswith((f"Hint: `sessgit {command} ", f"Hint: `sessgit {command}`"))


def test_a_hint_names_commands_that_there_are() -> None:
    for hint in app.OTHER_WORDS.values():
        assert set(re.findall(r"sessgit ([a-z]+)", hint)) <= set(app.COMMANDS), hint
    assert not app.OTHER_WORDS.keys() & set(app.COMMANDS)


def test_the_first_screen_is_short_and_in_words_of_anybody(sessgit: Shell) -> None:
    listed = [line for line in sessgit.out("--help").splitlines() if line[2:].split(" ")[0] in app.COMMANDS]
    assert len(listed) == len(app.COMMANDS) and max(map(len, listed)) <= 60
    assert len(app.GROUPS["Everyday"]) == 12
    assert not {"stage", "thesis", "tension", "repl"} & set(re.findall(r"[a-z]+", " ".join(listed).lower()))


def test_help_and_version_as_words(sessgit: Shell) -> None:
    assert sessgit.out("version") == sessgit.out("--version")
    assert sessgit.out("help") == sessgit.out("--help")
    assert sessgit.out("help", "fork") == sessgit.out("fork", "--help")
    assert sessgit("help", "frobnicate").err.startswith("Error: sessgit has no command “frobnicate”.\n")
    assert not sessgit.store.exists()


def test_all_where_a_command_shows_one_conversation_or_all_as_it_is(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert sessgit("log", "--all").err == (
        "Error: log shows one conversation.\n"
        "Hint: `sessgit ls --all` lists all conversations, `sessgit tree --all` draws them.\n"
    )
    assert sessgit.out("stats", "--all") == sessgit.out("stats")
    for more, word in ((("5e55",), "ADDRESS"), (("--project", "."), "--project")):
        assert sessgit("stats", "--all", *more).err.startswith(f"Error: --all and {word} cannot be combined.\n")


# Without a store, and with one that is out of reach


@pytest.mark.parametrize("command", [("ls",), *((name, "a41f") for name in EVERY_SESSION)])
def test_without_a_store_two_lines_say_what_to_do(sessgit: Shell, command: tuple[str, ...]) -> None:
    done = sessgit(*command)
    assert (done.code, done.out, done.err) == (
        4,
        "",
        "Error: nothing is recorded yet: there is no store at ~/.claude/session-store.\n"
        "Hint: `sessgit install` starts recording, `sessgit import` imports older conversations.\n",
    )
    assert not sessgit.store.exists()


def test_the_store_is_where_the_environment_says(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    assert invocation.read().env.store == tmp_path / "config" / "session-store"
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "store"))
    assert invocation.read().env.store == tmp_path / "store"


def test_a_store_that_cannot_be_made(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "file" / "store"))
    done = sessgit("import")
    assert (done.code, done.err[:45]) == (7, f"Error: cannot create a store at {tmp_path}"[:45])


def test_a_newer_store_is_refused(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    path.unlink()
    blob = run_git(sessgit.store, "rev-parse", f"{SESSION}:session.json").strip()
    (sessgit.home / "two").write_text("2\n")
    two = run_git(sessgit.store, "hash-object", "-w", str(sessgit.home / "two")).strip()
    (sessgit.home / "tree").write_text(f"100644 blob {two}\tformat\n100644 blob {blob}\tsession.json\n")
    with (sessgit.home / "tree").open() as listing:
        made = subprocess.run(
            ["git", "-C", str(sessgit.store), "mktree"], stdin=listing, capture_output=True, text=True, check=True
        )
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    commit = run_git(sessgit.store, *identity, "commit-tree", made.stdout.strip(), "-m", "later").strip()
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", commit)
    done = sessgit("ls")
    assert (done.code, done.err) == (
        5,
        "Error: the store is in format 2, this sessgit knows format 1.\nHint: Install a newer sessgit.\n",
    )
    told = sessgit("doctor").out.split("\n\n")[0].splitlines()
    assert told[told.index("~/.claude/session-store  wrong") + 1 :][:2] == [
        "    cannot open the store: the store is in format 2, this sessgit knows format 1",
        "    Install a newer sessgit.",
    ]
    newer = run_git(sessgit.store, "rev-parse", f"refs/heads/{SESSION}").strip()
    run_git(sessgit.store, "update-ref", "-d", f"refs/heads/{SESSION}")
    sessgit.recorded(sessgit.talk(OTHER).turns("else"))
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", newer)
    done = sessgit("ls")
    assert done.out == "  5e551011  else          1 turn  2h ago\n1 conversation.\n"
    assert done.err == (
        f"{SESSION} cannot be read: the store is in format 2, this sessgit knows format 1. Install a newer sessgit.\n"
    )


def test_a_bug_says_how_to_report_it(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("of the house")

    monkeypatch.setattr(invocation, "read", broken)
    done = sessgit("ls")
    assert (done.code, done.err) == (
        70,
        f"Error: a bug in sessgit {__version__}: ZeroDivisionError: of the house.\n"
        "Hint: Run it again with SESSGIT_DEBUG=1 and report the output.\n",
    )
    monkeypatch.setenv("SESSGIT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        sessgit("ls")


@pytest.mark.parametrize(("path", "where"), [(None, ""), ("/x/y", "/x/y: ")])
def test_what_the_disk_refuses_is_said_in_words(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, path: str | None, where: str
) -> None:
    def refused() -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(invocation, "read", refused)
    done = sessgit("ls")
    assert (done.code, done.err) == (7, f"Error: {where}Read-only file system.\nHint: {ROOM}\n")


def test_an_interrupt_leaves_in_silence(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(invocation, "read", interrupted)
    done = sessgit("ls")
    assert (done.code, done.out, done.err) == (130, "", "")


def test_a_folder_that_is_gone(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert sessgit.out("log", "5e55", "--oneline") == "5e551011@1 one\n"


# Pipes and terminals


def test_a_pipe_that_nobody_reads_any_more(sessgit: Shell) -> None:
    """It has room for 64 kB, so that the program is still writing when the reader ends."""
    long = "a line of words\n" * 10_000
    sessgit.recorded(sessgit.talk().prompt("say much").answer(long).stop_lines())
    command = f"{sys.executable} -m sessgit show --full 5e55@1 | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 141)
    assert (done.stdout.count("\n"), done.stdout[:10], done.stderr) == (1, "5e551011@1", "")


def test_colours_only_on_a_terminal(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one").title("parser"))
    shown = on_terminal(80, "log", "5e55")
    assert shown.splitlines()[0] == (
        "\x1b[33m5e551011\x1b[0m\x1b[1m  parser  ·  ~/shop  ·  claude-test-1  ·  1 turn, 160 tokens\x1b[0m"
    )
    assert "\x1b" not in on_terminal(80, "log", "5e55", NO_COLOR="1")
    assert "\x1b" not in on_terminal(80, "log", "5e55", TERM="dumb")
    assert "\x1b" not in start("log", "5e55").stdout


def test_the_sides_of_a_diff_differ_without_colours(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk, talk.branch("0b2d7f10-0000-4000-8000-00000000000b").turns("two"))
    shown = on_terminal(80, "diff", "0b2d", "5e55", NO_COLOR="1")
    assert "\n− 2  two\n" in shown


def test_long_outputs_go_through_the_pager_of_a_terminal(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns(*(f"prompt {n}" for n in range(30))))
    assert on_terminal(80, "log", "5e55", SESSGIT_PAGER="sed s/^/paged:/").count("paged:") == 32
    assert on_terminal(80, "log", "5e55", PAGER="sed s/^/paged:/").count("paged:") == 32
    assert on_terminal(80, "log", "5e55", "-n", "3", PAGER="sed s/^/paged:/").count("paged:") == 0
    assert on_terminal(80, "log", "5e55", SESSGIT_PAGER="", PAGER="sed s/^/paged:/").count("paged:") == 0
    assert on_terminal(80, "log", "5e55", PAGER="/nowhere/pager").count("●") == 30


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal(sessgit: Shell, columns: int) -> None:
    long = "a prompt that goes on and on, with 漢字 and more of the same until the line is surely full"
    talk = sessgit.talk().turns(long, "short").title(long)
    talk.prompt(long).tool("mcp__a_server__with_a_long_name", {"path": "/s/" + "x" * 90}).answer(long * 3)
    sessgit.recorded(talk, talk.branch("0b2d7f10-0000-4000-8000-00000000000b").turns(long, long))
    for arguments in (("log", "5e55"), ("log", "0b2d", "--graph"), ("ls",), ("ls", "--all"), ("status",),
                      ("diff", "0b2d"), ("log", "5e55", "--oneline")):  # fmt: skip
        for line in on_terminal(columns, *arguments, NO_COLOR="1").splitlines():
            from sessgit.cli import text

            assert text.width(line) <= columns, (arguments, line)


def test_the_environment_of_who_started_the_client_does_not_matter(sessgit: Shell) -> None:
    """`GIT_DIR` and its like are set inside of git's own hooks."""
    sessgit.keep(sessgit.talk().turns("one"))
    env = {**os.environ, "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_OBJECT_DIRECTORY": "/nowhere"}
    assert start("import", env=env).stdout == "1 conversation, 1 turn imported\n"


# Completion


def complete_bash(monkeypatch: pytest.MonkeyPatch, sessgit: Shell, *words: str) -> list[str]:
    monkeypatch.setenv("_SESSGIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(("sessgit", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    done = sessgit()
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()


def test_completion(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit("fork", "5e55", "--name", "other")
    for words, answer in {
        ("re",): ["resume", "restore", "recover", "rename", "replay", "remote", "repair"],
        ("log", ""): ["f0000001", "5e551011", "other"],
        ("log", "5e"): ["5e551011"],
        ("log", "5e551011-"): [SESSION],
        ("log", "5e55", "@"): ["@1", "@2"],
        ("log", "5e55", "@", "2"): ["@2"],
        ("log", "5e55@2"): ["5e55@2"],
        ("diff", "5e55", "@", "2", "ot"): ["other"],
        ("fork", "@"): ["@1", "@2"],
        ("fork", "--at", "@"): [],
        ("log", "zzzz"): [],
        ("log", "--re"): ["--reverse", "--rewound"],
    }.items():
        assert complete_bash(monkeypatch, sessgit, *words) == answer, words


def test_completion_never_fails(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete_bash(monkeypatch, sessgit, "log", "5e") == []
    assert complete_bash(monkeypatch, sessgit, "branch", "5e") == []
    sessgit.store.mkdir(parents=True)
    (sessgit.store / "HEAD").write_text("nonsense")
    (sessgit.store / "objects").write_text("nonsense")
    assert complete_bash(monkeypatch, sessgit, "log", "5e", "@") == []
    monkeypatch.delenv("COMP_CWORD")
    monkeypatch.setenv("_SESSGIT_COMPLETE", "complete_nothing")
    assert sessgit().err == ""


def test_completion_tells_what_an_id_is(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two").title("parser"))
    assert completion.addresses("5e") == [("5e551011", "parser")]
    assert completion.addresses("5e55@") == [("5e55@1", "one"), ("5e55@2", "two")]


def test_each_named_completion_is_there() -> None:
    sources = (Path(app.__file__).parent / "frame.py", *(Path(app.__file__).parent / "commands").glob("*.py"))
    named = {name for path in sources for name in re.findall(r'complete="(\w+)"', path.read_text("utf-8"))}
    assert {"addresses", "cells", "files", "tags", "destinations"} <= named
    for name in named | {*frame._COMPLETIONS.values()}:
        assert getattr(completion, name)("no such word") == []


def test_completion_offers_titles_as_the_shell_needs_them(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two").title("Let's fix `rm` now"))
    assert completion.addresses("let") == [], "of a shell that is not known, nothing it would run"
    for typed, answer in {
        "let": ["let\\'s\\ fix\\ \\`rm\\`\\ now"],
        "Let\\'s\\ f": ["Let\\'s\\ fix\\ \\`rm\\`\\ now"],
        "\"Let's f": ["Let's fix \\`rm\\` now"],
        "'Let": [],
        "Lex": [],
    }.items():
        assert complete_bash(monkeypatch, sessgit, "log", typed) == answer, typed
    monkeypatch.delenv("_SESSGIT_COMPLETE")
    sessgit("rename", "5e55", "the parser")
    assert complete_bash(monkeypatch, sessgit, "log", "the") == ["the\\ parser"]
    assert complete_bash(monkeypatch, sessgit, "log", "The") == ["The\\ parser"]
    assert complete_bash(monkeypatch, sessgit, "log", "'the p") == ["the parser"]
    assert complete_bash(monkeypatch, sessgit, "log", "let") == [], "its name is what it is called"


@pytest.fixture
def on_path(sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A conversation with two turns, and `sessgit` as a program that shells find."""
    sessgit.recorded(sessgit.talk().turns("one", "two").title("Let's fix `rm` now"))
    program = tmp_path / "sessgit"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m sessgit "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return sessgit


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_script_for_bash_works(on_path: Shell) -> None:
    script = """
    source <(sessgit --show-completion bash)
    COMP_WORDS=(sessgit log 5e55 @) COMP_CWORD=3
    _sessgit_completion sessgit
    echo "${COMPREPLY[*]}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("@1 @2\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("log 5e55@", "5e55@1\tone\n5e55@2\ttwo\n"),
        ("log let", "let\\'s\\ fix\\ `rm`\\ now\t5e551011\n"),
        ("log let\\'s\\ f", "let\\'s\\ fix\\ `rm`\\ now\t5e551011\n"),
        ("log \"let's f", '"let\'s fix `rm` now"\t5e551011\n'),
        ("unar", "unarchive\tTake conversations out of the archive.\n"),
    ],
)
def test_fish_completes_addresses_and_titles(on_path: Shell, line: str, found: str) -> None:
    script = 'sessgit --show-completion fish | source; complete --escape --do-complete "$argv[1]"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, f"sessgit {line}"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (found, "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("log 5e551011@2", "log 5e551011@2 "),
        ("log let", "log let\\'s\\ fix\\ \\`rm\\`\\ now "),
        ("log let\\'s\\ f", "log let\\'s\\ fix\\ \\`rm\\`\\ now "),
        ("log \"let's f", 'log "let\'s fix \\`rm\\` now" '),
        ("unar", "unarchive "),
    ],
)
def test_zsh_completes_addresses_and_titles(on_path: Shell, line: str, completed: str) -> None:
    """What stands on its command line after a tab is written into a file by a key of the test's own."""
    setup = """
    autoload -Uz compinit; compinit -u -D
    source <(sessgit --show-completion zsh)
    write-line() { print -r -- "$BUFFER" >$HOME/line; exit }
    zle -N write-line; bindkey '^X' write-line
    zle-line-init() { print ready }; zle -N zle-line-init
    """
    (on_path.home / ".zshrc").write_text(setup)
    main, side = pty.openpty()
    env = {**os.environ, "TERM": "dumb", "COLUMNS": "200", "ZDOTDIR": str(on_path.home)}
    process = subprocess.Popen(["zsh", "-i"], stdin=side, stdout=side, stderr=side, env=env, start_new_session=True)
    os.close(side)
    said = b""
    with contextlib.suppress(OSError):  # what Linux says when the other side is closed
        while b"ready" not in said:
            said += os.read(main, 65_536)
        os.write(main, f"sessgit {line}\t\x18".encode())
        while piece := os.read(main, 65_536):
            said += piece
    os.close(main)
    process.wait()
    assert (on_path.home / "line").read_text() == f"sessgit {completed}\n", said


def test_json_is_all_there_is_on_standard_output(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("ein Wort: „Grüße“ \u202e\x9b"))
    for arguments in (("ls",), ("log",), ("status",), ("config",), ("id",), ("import",), ("diff", "5e55", "5e55"),
                      ("restore", "5e55"), ("fork", "5e55"), ("install",), ("uninstall",)):  # fmt: skip
        out = sessgit(*arguments, "--json").out
        assert out.isascii()
        assert json.loads(out)["schema"] == f"sessgit.{arguments[0]}/v1"
