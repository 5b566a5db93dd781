"""`sessgit fork --worktree`: the code that a turn ended with comes back beside the project, or nothing is made."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest
from coded import Coded, begins
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git
from shell import Done
from transcripts import OTHER, SESSION

from sessgit.agents.claude import home
from sessgit.errors import SessgitError
from sessgit.history import project_git
from sessgit.history.project_git import Head

FIRST = "f0000001-0000-4000-8000-ffffffffffff"


@begins
def coded(made: Coded) -> None:
    """A conversation of four turns: a commit, a commit with more that was not committed, one nobody was there for."""
    talk = made.talk(SESSION)
    made.record(talk.turns("write the lexer"))
    made.commit("Four lines", {"src/lexer.py": "one\ntwo\nthree\nfour\n"})
    made.write({"src/lexer.py": "not committed\n", ".env": "PORT=1\n"})
    made.record(talk.turns("add a line"))
    made.record(talk.turns("say goodbye"), live=False)
    made.git("checkout", "-q", "--detach")
    made.commit("Five", {"five": "5\n"})
    made.record(talk.turns("and five"))


def worktrees(coded: Coded) -> list[str]:
    return [line[9:] for line in coded.git("worktree", "list", "--porcelain").splitlines() if line[:9] == "worktree "]


def refused(coded: Coded, *arguments: str) -> Done:
    """A fork that makes nothing at all."""
    branches = run_git(coded.shell.store, "for-each-ref")
    files = sorted(coded.shell.config.glob("projects/*/*"))
    before, beside = worktrees(coded), sorted(coded.project.parent.iterdir())
    done = coded.shell("fork", *arguments)
    assert (done.out, worktrees(coded), sorted(coded.project.parent.iterdir())) == ("", before, beside)
    assert run_git(coded.shell.store, "for-each-ref") == branches
    assert sorted(coded.shell.config.glob("projects/*/*")) == files
    return done


def test_beside_the_project(coded: Coded) -> None:
    head = coded.git("rev-parse", "main")
    path = coded.project.parent / "shop-f0000001"
    assert (
        coded.shell.out("fork", "5e55", "--at", "2", "--worktree")
        == f"""\
f0000001  2 turns, from 5e551011@2 “add a line”
Worktree: ~/shop-f0000001 at {head[:8]} (main), on no branch.
Not included: uncommitted changes, untracked files (.env, node_modules),
anything outside the repository.
Earlier turns name files in ~/shop: tell the agent the new folder.
To make a branch:  git switch -c NAME, in the worktree
Continue it:  cd {quote(str(path))} && claude --resume {FIRST}
"""
    )
    assert (path / "src" / "lexer.py").read_text() == "one\ntwo\nthree\nfour\n"
    assert not (path / ".env").exists()
    assert run_git(path, "status", "--porcelain=v2", "--branch").splitlines() == [
        f"# branch.oid {head}",
        "# branch.head (detached)",
    ]
    assert (home.project_folder(coded.shell.config, str(path)) / f"{FIRST}.jsonl").is_file()
    assert (coded.project / "src" / "lexer.py").read_text() == "not committed\n"
    assert coded.shell.json("log", FIRST)["session"]["project"] == str(path)


def test_where_it_was_clean_nothing_is_said_of_what_was_not_committed(coded: Coded) -> None:
    said = coded.shell.out("fork", "5e55@1", "--worktree=../old/shop")
    assert "uncommitted" not in said
    assert (coded.project.parent / "old" / "shop" / "src" / "lexer.py").read_text() == "one\ntwo\nthree\n"


def test_where_no_branch_was_checked_out(coded: Coded) -> None:
    made = coded.shell.json("fork", "5e55@4", "--worktree", "../new")
    head = coded.git("rev-parse", "HEAD")
    path = coded.project.parent / "new"
    assert made["worktree"] == {"path": str(path), "commit": head, "branch": None, "dirty": False, "new_branch": None}
    assert made["resume"] == f"cd {quote(str(path))} && claude --resume {FIRST}"
    assert coded.shell.json("fork", "5e55@4")["worktree"] is None
    assert f" at {head[:8]}, on no branch.\n" in coded.shell.out("fork", "5e55", "--worktree")


def test_a_fork_of_a_fork_lies_beside_the_project_too(coded: Coded) -> None:
    coded.shell.out("fork", "5e55@1", "--worktree", "--name", "old lexer")
    further = coded.shell.json("fork", "old lexer", "--worktree")["id"][:8]
    assert worktrees(coded) == [str(coded.project.parent / f"shop{end}") for end in ("", "-f0000001", f"-{further}")]
    done = refused(coded, "5e55", "--worktree", "--name", "old lexer")
    assert (done.code, done.err.splitlines()[0]) == (3, "Error: f0000001 is already called “old lexer”.")


def test_in_a_subfolder_of_the_repository(coded: Coded, monkeypatch: pytest.MonkeyPatch) -> None:
    coded.record(coded.talk(OTHER, cwd=str(coded.project / "src")).turns("one"))
    made = coded.shell.json("fork", OTHER, "--worktree", "../below")
    assert made["resume"].startswith(f"cd {quote(str(coded.project.parent / 'below' / 'src'))} && ")
    coded.commit("No folder", {"other": ""})
    coded.git("rm", "-qr", "src")
    coded.git("commit", "-qm", "Gone")
    coded.write({"src/left": ""})
    coded.record(coded.talk(FIRST, cwd=str(coded.project / "src")).turns("two"))
    made = coded.shell.json("fork", FIRST, "--worktree", "../above")
    assert made["resume"].startswith(f"cd {quote(str(coded.project.parent / 'above'))} && ")


def test_submodules_are_not_in_it(coded: Coded, tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "-b", "main", "lib")
    run_git(tmp_path / "lib", "commit", "-q", "--allow-empty", "-m", "Lib")
    coded.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    coded.git("commit", "-qam", "With a library")
    coded.record(coded.talk(OTHER).turns("one"))
    said = " ".join(coded.shell.out("fork", OTHER, "--worktree").split())
    assert "Not included: untracked files (.env, node_modules), submodules, anything outside the repository." in said


def test_a_cell_has_the_code_of_the_turn_before(coded: Coded) -> None:
    coded.write({"src/lexer.py": "one\n"})
    start = coded.commit("One line", {})
    talk = coded.talk(OTHER)
    coded.record(talk.turns("one"))
    talk.prompt("two").tool("Bash", {"command": "a"}).tool("Bash", {"command": "b"}).answer("Done.").stop_lines()
    coded.commit("Two lines", {"src/lexer.py": "one\ntwo\n"})
    coded.record(talk)
    assert coded.shell.json("fork", OTHER, "--at", "2.2", "--worktree")["worktree"]["commit"] == start
    done = refused(coded, OTHER, "--at", "1.1", "--worktree")
    assert (done.code, done.err) == (
        4,
        f"Error: nothing is recorded before turn 1.\nHint: The nearest turn with a commit is {OTHER[:8]}@1.\n",
    )


def test_a_cell_has_the_code_of_then_where_cells_are_recorded(coded: Coded) -> None:
    talk = coded.talk(OTHER).prompt("one")
    commits = []
    for number in (1, 2, 3):
        commits.append(coded.commit(f"Commit {number}", {"number": str(number)}))
        coded.record(talk.tool("Bash", {"command": "git commit"}), granularity="cell")
    coded.commit("Last", {"number": "4"})
    coded.record(talk.answer("Done.").stop_lines(), granularity="cell")
    cells = coded.shell.json("log", OTHER)["turns"][0]["cells"]
    assert [cell["type"] for cell in cells] == ["llm_call", "tool", "llm_call", "tool", "llm_call", "tool", "llm_call"]
    for at, wanted in (("1.2", commits[0]), ("1.4", commits[1]), (f"1.{cells[5]['id']}", commits[2])):
        made = coded.shell.json("fork", OTHER, "--at", at, "--worktree")
        assert made["worktree"]["commit"] == wanted, at


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ("5e55@3", "--worktree"),
            4,
            "Error: the project's commit at turn 3 of 5e551011 is unknown.\n"
            "Hint: The nearest turn with a commit is 5e551011@2.\n",
        ),
        (
            ("5e55@1", "--worktree", "--project", "."),
            2,
            "Error: --worktree and --project cannot be combined.\nHint: Use one of the two.\n",
        ),
        (
            ("--worktree", "5e55"),
            2,
            "Error: --worktree expects a path, but “5e55” is a conversation.\n"
            "Hint: `sessgit fork 5e55 --worktree`, or `--worktree ./5e55` for a folder with that name.\n",
        ),
        (
            ("5e55@1", "--worktree", "src"),
            3,
            "Error: {project}/src already exists.\nHint: Choose another place with `--worktree PATH`.\n",
        ),
        (
            ("5e55@1", "--worktree", "README.md/below"),
            1,
            "Error: cannot create {project}/README.md/below in {project}/README.md.\n"
            "Hint: Is there room on the disk, and may you write there?\n",
        ),
    ],
)
def test_what_is_refused(coded: Coded, arguments: tuple[str, ...], code: int, error: str) -> None:
    done = refused(coded, *arguments)
    assert (done.code, done.err) == (code, error.replace("{project}", str(coded.project)))


def test_a_path_that_is_there(coded: Coded) -> None:
    beside = coded.project.parent
    (beside / "shop-f0000001").write_text("a file")
    assert refused(coded, "5e55@1", "--worktree").code == 3
    (beside / "link").symlink_to("shop")
    assert refused(coded, "5e55@1", "--worktree", "../link").code == 3
    (beside / "empty").mkdir()
    coded.shell.out("fork", "5e55@1", "--worktree", "../empty")
    assert (beside / "empty" / "README.md").is_file()


def test_a_commit_that_is_gone(coded: Coded) -> None:
    head = coded.git("rev-parse", "main")
    for command in (("branch", "-f", "main", "main^"), ("checkout", "-qf", "main"), ("reflog", "expire", "--all")):
        coded.git(*command, *(["--expire=now"] if command[0] == "reflog" else []))
    coded.git("gc", "-q", "--prune=now")
    done = refused(coded, "5e55@2", "--worktree")
    assert (done.code, done.err) == (
        4,
        f"Error: the project's commit {head[:8]} is not in {coded.project}.\n"
        "Hint: `git fetch` brings it if another clone still has it. Without --worktree, the fork needs no commit.\n",
    )


def test_a_project_that_is_gone_or_no_repository_any_more(coded: Coded) -> None:
    shutil.rmtree(coded.project / ".git")
    done = coded.shell("fork", "5e55@1", "--worktree")
    assert (done.code, done.out, done.err) == (
        4,
        "",
        f"Error: {coded.project} is not in a git repository.\nHint: Its code at that time is unknown.\n",
    )
    coded.project.rename(coded.project.parent / "moved")
    done = coded.shell("fork", "5e55@1", "--worktree")
    assert (done.code, done.out, done.err) == (
        4,
        "",
        f"Error: the project's folder is gone: {coded.project}.\n"
        "Hint: If it moved: `sessgit restore ID --project DIR`.\n",
    )


def test_an_imported_conversation_has_no_commits(coded: Coded) -> None:
    coded.shell.recorded(coded.talk(OTHER).turns("one"))
    done = refused(coded, OTHER, "--worktree")
    assert (done.code, done.err) == (
        4,
        f"Error: the project's commit at turn 1 of {OTHER[:8]} is unknown.\n"
        "Hint: Commits are recorded only while a conversation runs in a git repository, not by import.\n",
    )


def test_a_worktree_of_a_fork_that_failed_is_taken_away(coded: Coded) -> None:
    journal = coded.shell.store / "operations.jsonl"
    journal.mkdir()  # a fork that cannot be written down is not made
    assert refused(coded, "5e55@1", "--worktree").code == 7
    journal.rmdir()
    coded.shell.out("fork", "5e55@1", "--worktree")


def test_a_worktree_stays_where_the_fork_is_there_and_only_its_file_is_not(coded: Coded) -> None:
    path = coded.project.parent / "shop-f0000001"
    folder = home.project_folder(coded.shell.config, str(path))
    folder.write_text("in the way")
    done = coded.shell("fork", "5e55@1", "--worktree")
    assert (done.code, "without its files. Write them: `sessgit restore f0000001`" in done.err) == (3, True), done
    assert worktrees(coded)[-1] == str(path)
    folder.unlink()
    assert coded.shell("restore", FIRST).code == 0
    assert (folder / f"{FIRST}.jsonl").is_file()


def test_an_undo_leaves_it_and_says_how_it_goes(coded: Coded) -> None:
    coded.shell.out("fork", "5e55@1", "--worktree", "../other way")
    path = coded.project.parent / "other way"
    said = coded.shell.out("undo").splitlines()
    assert said[0] == "Undone: f0000001: fork of 5e551011@1"
    assert said[2:4] == [
        "Kept: the worktree ~/other way",
        f"Remove it:  git -C {quote(str(coded.project))} worktree remove '{path}'",
    ]
    assert (path / "README.md").is_file()
    coded.git("worktree", "remove", str(path))
    assert not path.exists()
    coded.shell.out("fork", "5e55@1")
    assert "worktree" not in coded.shell.out("undo")


def test_no_program_of_the_project_is_run(coded: Coded, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = coded.project / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {quote(str(ran))}\necho said\n")
        hook.chmod(0o755)
    coded.git("config", "core.fsmonitor", str(coded.project / ".git" / "hooks" / "post-checkout"))
    coded.shell.out("fork", "5e55@1", "--worktree")
    assert not ran.exists()


def test_git_of_the_caller_leads_nowhere_else(coded: Coded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    assert coded.shell.json("fork", "5e55@1", "--worktree")["worktree"]["branch"] == "main"
    monkeypatch.undo()


def test_run_becomes_the_client_in_the_worktree(coded: Coded, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []

    def execvp(program: str, arguments: list[str]) -> None:
        ran.extend((program, arguments, str(Path.cwd())))
        raise SystemExit(0)

    monkeypatch.setattr(os, "execvp", execvp)
    assert coded.shell("fork", "5e55@1", "--worktree", "--run").code == 0
    assert ran == ["claude", ["claude", "--resume", FIRST], str(coded.project.parent / "shop-f0000001")]


def test_an_interruption_leaves_nothing(coded: Coded, tmp_path: Path) -> None:
    """The filter keeps git at work until the interruption came; it gets that as well, as on a terminal."""
    coded.write({".gitattributes": "*.py filter=slow\n"})
    coded.commit("With a filter", {})
    coded.record(coded.talk(OTHER).turns("one"))
    began = tmp_path / "began"
    coded.git("config", "filter.slow.smudge", f"touch {quote(str(began))}; sleep 60; cat")
    with subprocess.Popen(
        [sys.executable, "-m", "sessgit", "fork", OTHER, "--worktree", "../slow"],
        cwd=coded.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        while not began.exists():
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    assert worktrees(coded) == [str(coded.project)]
    assert not (coded.project.parent / "slow").exists()
    assert not list(coded.shell.config.glob("projects/*slow*"))


def test_git_is_missing(coded: Coded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = coded.shell("fork", "5e55@1", "--worktree")
    assert (done.code, done.err) == (7, "Error: git is missing.\nHint: Install git 2.30 or later.\n")


def test_a_store_of_another_machine_leads_git_nowhere() -> None:
    for folder in ("", "relative", "/nowhere/at/all", "/\0", "/\ud800", "/" + "x" * 5000, os.devnull):
        with pytest.raises(SessgitError):
            project_git.find_checkout(folder, os.environ)


@given(st.sampled_from(["a" * 40, "0" * 64]), st.from_regex(r"[^\s]{1,20}", fullmatch=True), st.booleans())
def test_what_is_noted_is_read_back(commit: str, branch: str, dirty: bool) -> None:
    noted = f"{commit} ({branch}{', dirty' if dirty else ''})"
    assert project_git.parse_head(noted) == Head(commit, branch if branch != "(detached)" else "", dirty)


@given(st.text())
def test_what_is_no_head_is_none(text: str) -> None:
    assert project_git.parse_head(text) is None
    assert project_git.parse_head(f"--output=x ({text})") is None


def test_a_branch_in_the_worktree(coded: Coded) -> None:
    said = coded.shell.out("fork", "5e55@1", "--worktree", "../tried", "--branch", "tried/regex")
    assert " on its new branch tried/regex.\n" in said and "To make a branch" not in said
    assert coded.git("branch", "--show-current", at=coded.project.parent / "tried") == "tried/regex"
    before = worktrees(coded)
    done = refused(coded, "5e55@1", "--worktree", "../again", "--branch", "tried/regex")
    assert done.err.startswith("Error: the project already has a branch tried/regex.\n")
    done = refused(coded, "5e55@1", "--worktree", "../again", "--branch", "a..b")
    assert done.err.startswith("Error: “a..b” is not a valid name for a branch.\n")
    assert coded.shell("fork", "5e55@1", "--branch", "x").code == 2
    assert worktrees(coded) == before
