"""`sessgit diff --code`: what differs in the project between the ends of two conversations."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from coded import Coded, begins
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import run_git
from shell import on_terminal
from transcripts import OTHER, SESSION

from sessgit.cli import invocation, text
from sessgit.cli.commands import diff as page
from sessgit.history import code_comparison

ONE, TWO = SESSION, OTHER
THIRD = "00000000-0000-4000-8000-000000000003"
BASE = "one\ntwo\nthree\nfour\nfive\n"


@begins
def coded(made: Coded) -> None:
    """Two conversations that share a turn, each with commits on a branch of its own; one ended with a dirty file."""
    made.commit("The base", {"old.py": BASE, "both.py": BASE, "gone.py": "gone\n"})
    talk = made.talk(ONE)
    made.record(talk.turns("write the tokenizer"))
    other = talk.branch(TWO)
    made.git("checkout", "-qb", "lexer")
    made.commit("Change both", {"both.py": BASE.replace("two", "zwei")})
    made.write({"both.py": "dirty\n"})
    made.record(talk.turns("by hand"))
    made.git("checkout", "-qfb", "trie", "main")
    made.git("mv", "old.py", "new.py")
    made.git("rm", "-q", "gone.py")
    made.commit("Move it", {"new.py": BASE + "six\n"})
    made.commit("Draw it", {"logo.png": b"\0\1\2" * 40, "odd\x1b[31m\nname": "q\n"})
    made.record(other.turns("as a trie"))


def section(said: str) -> str:
    return said[said.index("═══ code") :]


def test_below_the_page_of_the_conversations(coded: Coded) -> None:
    base, lexer, trie = (coded.git("rev-parse", "--short=8", name) for name in ("main", "lexer", "trie"))
    moved = coded.git("rev-parse", "--short=8", "trie^")
    said = coded.shell.out("diff", ONE, TWO, "--code")
    assert said.startswith(coded.shell.out("diff", ONE, TWO))
    assert (
        section(said)
        == f"""\
═══ code of ~/shop, since {base} ═════════════════════════════════════════════
− {lexer}  lexer, dirty  ·  1 commit
    {lexer}  Change both
+ {trie}  trie  ·  2 commits
    {trie}  Draw it
    {moved}  Move it
  5 files  +3 −2
    M both.py          +1 −1
    D gone.py          −1
    A logo.png         binary
    R old.py → new.py  +1
    A odd�[31m�name    +1
Not compared: uncommitted changes on the − side.
"""
    )


def test_for_programs(coded: Coded) -> None:
    value = coded.shell.json("diff", ONE, TWO, "--code")["code"]
    lexer, trie, main = (coded.git("rev-parse", name) for name in ("lexer", "trie", "main"))
    assert value == {
        "folder": str(coded.project),
        "a": {"turn": 2, "commit": lexer, "branch": "lexer", "dirty": True},
        "b": {"turn": 2, "commit": trie, "branch": "trie", "dirty": False},
        "base": main,
        "ahead": {"a": 1, "b": 2},
        "commits": {
            "a": [{"commit": lexer, "subject": "Change both"}],
            "b": [
                {"commit": trie, "subject": "Draw it"},
                {"commit": coded.git("rev-parse", "trie^"), "subject": "Move it"},
            ],
        },
        "files": [
            changed("both.py", "M", 1, 1),
            changed("gone.py", "D", 0, 1),
            changed("logo.png", "A", None, None),
            changed("new.py", "R", 1, 0, old="old.py"),
            changed("odd\x1b[31m\nname", "A", 1, 0),
        ],
        "added": 3,
        "removed": 2,
        "problem": "",
    }
    assert "code" not in coded.shell.json("diff", ONE, TWO)
    with_patch = coded.shell.json("diff", ONE, TWO, "--code", "-p")["code"]
    assert with_patch.pop("patch") == coded.git("diff", "-M", "lexer", "trie") + "\n"
    assert with_patch == value


def changed(path: str, status: str, added: int | None, removed: int | None, *, old: str | None = None) -> object:
    return {
        "path": path, "old_path": old, "status": status, "added": added, "removed": removed, "submodule": False
    }  # fmt: skip


def test_the_patch(coded: Coded) -> None:
    whole = coded.shell.out("diff", ONE, TWO, "--code")
    said = coded.shell.out("diff", ONE, TWO, "--code", "--patch")
    assert said == f"{whole}\n{coded.git('diff', '-M', 'lexer', 'trie')}\n"


def test_what_a_patch_holds_steers_no_terminal(coded: Coded) -> None:
    coded.commit("Red", {"both.py": "\x1b[31mred\x1b]0;title\x07\r\nlast\r\n"})
    coded.record(coded.talk(THIRD).turns("red"))
    said = coded.shell.out("diff", ONE, "00000000", "--code", "--patch")
    assert "+�[31mred�]0;title�\n+last\n" in said
    assert not set(said) & {"\x1b", "\x07", "\r"}


def test_on_a_terminal_it_is_coloured_as_by_git() -> None:
    here = on_terminal(invocation.read(), colour=True)
    data = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ def f():\n-- a\n+\x1b[1m\n same\n\\ No newline\n"
    assert list(page.patch_lines(here, data)) == [
        "\033[1mdiff --git a/x b/x\033[0m",
        "\033[1m--- a/x\033[0m",
        "\033[1m+++ b/x\033[0m",
        "\033[36m@@ -1,2 +1,2 @@\033[0m def f():",
        "\033[31m-- a\033[0m",
        "\033[32m+�[1m\033[0m",
        " same",
        "\\ No newline",
    ]


def test_up_to_a_turn_and_where_nothing_differs(coded: Coded) -> None:
    main = coded.git("rev-parse", "--short=8", "main")
    assert (
        section(coded.shell.out("diff", f"{ONE}@1", f"{TWO}@1", "--code"))
        == f"""\
═══ code of ~/shop, since {main} ═════════════════════════════════════════════
− {main}  main
+ {main}  main
No files differ.
"""
    )
    ahead = section(coded.shell.out("diff", f"{ONE}@1", ONE, "--code")).splitlines()
    assert ahead[1] == f"− {main}  main"
    assert ahead[2].endswith("lexer, dirty  ·  1 commit")


def test_many_commits_and_files_are_folded(coded: Coded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for number in range(12):
        coded.git("commit", "-q", "--allow-empty", "-m", f"Commit {number} " + "long " * 20)
    coded.commit("Many", {f"deep/{'folder/' * 9}{number:02}.py": "x\n" * 5000 for number in range(40)})
    talk = coded.talk(THIRD)
    coded.record(talk.turns("many"))
    said = section(coded.shell.out("diff", ONE, "00000000", "--code"))
    assert "    … and 7 more\n" in said  # of 15 commits
    assert "  45 files  +200,003 −2\n" in said
    assert "    … and 15 more\n" in said
    assert f"    A …{('folder/' * 9 + '00.py')[-45:]}  +5,000\n" in said
    assert all(text.width(line) <= 60 for line in said.splitlines())
    assert coded.shell.json("diff", ONE, "00000000", "--code")["code"]["ahead"] == {"a": 1, "b": 15}


def test_no_commit_in_common(coded: Coded) -> None:
    coded.git("checkout", "-q", "--orphan", "new")
    coded.commit("Anew", {})
    coded.record(coded.talk(THIRD).turns("anew"))
    said = section(coded.shell.out("diff", ONE, "00000000", "--code"))
    assert said.startswith("═══ code of ~/shop, no common commit ═")
    assert coded.shell.json("diff", ONE, "00000000", "--code")["code"]["base"] is None


def test_submodules(coded: Coded, tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "-b", "main", "lib")
    run_git(tmp_path / "lib", "commit", "-q", "--allow-empty", "-m", "Lib")
    coded.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    coded.git("commit", "-qam", "With a library")
    coded.git("config", "diff.submodule", "log")
    coded.record(coded.talk(THIRD).turns("lib"))
    said = section(coded.shell.out("diff", TWO, "00000000", "--code", "-p"))
    assert "    A lib          submodule\n" in said
    assert "+Subproject commit " in said


# What cannot be compared


def problem(coded: Coded, *arguments: str) -> str:
    """Why the code was not compared; the conversations are all the same."""
    said = coded.shell.out("diff", *arguments, "--code", "--patch")
    assert said.startswith(coded.shell.out("diff", *arguments))
    value = coded.shell.json("diff", *arguments, "--code", "--patch")["code"]
    assert (value["folder"], value["files"], value["patch"]) == (None, [], "")
    told = " ".join(section(said).split("\n", 1)[1].split())
    assert told == f"Not compared: {value['problem']}"
    return str(value["problem"])


def test_a_side_of_which_nothing_is_noted(coded: Coded) -> None:
    coded.shell.recorded(coded.talk(THIRD).turns("imported"))
    assert problem(coded, TWO, THIRD) == (
        "the project's commit at turn 1 of 00000000 is unknown. "
        "Commits are recorded only while a conversation runs in a git repository, not by import."
    )
    talk = coded.talk("11111111-0000-4000-8000-000000000004")
    coded.record(talk.turns("seen"))
    coded.record(talk.turns("not seen"), live=False)
    assert problem(coded, "11111111", THIRD) == (
        "the project's commit at turn 2 of 11111111 is unknown; the project's commit at turn 1 of "
        "00000000 is unknown. The nearest turn with a commit is 11111111@1. "
        "Commits are recorded only while a conversation runs in a git repository, not by import."
    )
    assert problem(coded, "11111111@0", TWO) == (
        "nothing is recorded before turn 1. The nearest turn with a commit is 11111111@1."
    )


def test_a_commit_that_is_gone(coded: Coded) -> None:
    head = coded.git("rev-parse", "--short=8", "lexer")
    coded.git("branch", "-qD", "lexer")
    coded.git("reflog", "expire", "--all", "--expire=now")
    coded.git("gc", "-q", "--prune=now")
    assert problem(coded, ONE, TWO) == (
        f"commit {head} of {ONE[:8]} is not in {coded.project}. `git fetch` brings it if another clone still has it."
    )


def test_a_project_that_is_gone(coded: Coded) -> None:
    coded.project.rename(coded.project.parent / "moved")
    assert problem(coded, ONE, TWO) == (
        f"the project's folder is gone: {coded.project}. If it moved: `sessgit restore ID --project DIR`."
    )


def test_two_repositories(coded: Coded, tmp_path: Path) -> None:
    other = tmp_path / "other"
    run_git(tmp_path, "init", "-q", "-b", "main", "other")
    coded.commit("Elsewhere", {"x": "x"}, at=other)
    coded.record(coded.talk(THIRD, cwd=str(other)).turns("x"), at=other)
    assert problem(coded, ONE, "00000000") == (
        f"the conversations belong to different repositories: {coded.project} and {other}"
    )


def test_a_clone_that_has_both_commits_will_do(coded: Coded, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", "-q", str(coded.project), "clone")
    coded.commit("In the clone", {"x": "x"}, at=clone)
    coded.record(coded.talk(THIRD, cwd=str(clone)).turns("x"), at=clone)
    assert coded.shell.json("diff", ONE, "00000000", "--code")["code"]["folder"] == str(clone)


def test_a_worktree_that_was_removed(coded: Coded) -> None:
    fork = coded.shell.json("fork", f"{ONE}@1", "--worktree", "../side")["id"]
    shutil.rmtree(coded.project.parent / "side")
    assert coded.shell.json("diff", TWO, fork, "--code")["code"]["ahead"] == {"a": 2, "b": 0}


def test_git_in_its_own_words(coded: Coded) -> None:
    (coded.project / ".git" / "config").write_text("[core\n")
    said = problem(coded, ONE, TWO)
    assert said.startswith("git: bad config line 1 in file ")
    (coded.project / ".git" / "config").unlink()
    assert section(coded.shell.out("diff", ONE, TWO, "--code")).startswith("═══ code of ~/shop")


def test_a_patch_without_code(coded: Coded) -> None:
    done = coded.shell("diff", ONE, TWO, "-p")
    assert (done.code, done.err) == (
        2,
        "Error: --patch needs --code.\nHint: `sessgit diff --help` explains both.\n",
    )


def test_no_program_of_the_project_is_run(coded: Coded, tmp_path: Path) -> None:
    ran, spy = tmp_path / "ran", tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\necho $0 >> {shlex.quote(str(ran))}\necho said\n")
    spy.chmod(0o755)
    for key in (
        "diff.external",
        "diff.spy.command",
        "diff.spy.textconv",
        "core.fsmonitor",
        "core.pager",
        "gpg.program",
    ):
        coded.git("config", key, str(spy))
    coded.git("config", "log.showSignature", "true")
    coded.git("config", "diff.relative", "true")
    (coded.project / ".git" / "info" / "attributes").write_text("* diff=spy\n")
    said = coded.shell.out("diff", ONE, TWO, "--code", "--patch")
    assert not ran.exists()
    assert "+six\n" in said


# Laws

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name.lower() not in (".", "..", ".git") and len(name.encode()) < 200
)
LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=6).map(lambda lines: "".join(f"{x}\n" for x in lines))
TREES = st.dictionaries(NAMES, LINES, max_size=5)


@settings(max_examples=20)
@given(TREES, TREES)
def test_files_and_lines_are_those_of_git(a: dict[str, str], b: dict[str, str]) -> None:
    """Names of any kind; the files that are named, and no others, are what is not the same in both."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = (_commit(Path(folder), tree) for tree in (a, b))
        found = code_comparison._changed_files(folder, os.environ, old, new)
        assert code_comparison._changed_files(folder, os.environ, new, new) == ()
    before = {file.old or file.path for file in found if file.status != "A"}
    after = {file.path for file in found if file.status != "D"}
    assert before == {name for name in a if b.get(name) != a[name]}
    assert after == {name for name in b if a.get(name) != b[name]}
    lines = [sum(data.count("\n") for data in tree.values()) for tree in (a, b)]
    assert sum(file.added or 0 for file in found) - sum(file.removed or 0 for file in found) == lines[1] - lines[0]


def _commit(folder: Path, tree: dict[str, str]) -> str:
    """A commit with these files, without a checkout."""
    if not (folder / ".git").exists():
        run_git(folder, "init", "-q")
    entries = []
    for name, data in tree.items():
        (folder / "data").write_text(data)
        blob = run_git(folder, "hash-object", "-w", "data").strip()
        entries.append(f"100644 blob {blob}\t{name}\0".encode())
    done = subprocess.run(["git", "mktree", "-z"], cwd=folder, input=b"".join(entries), capture_output=True, check=True)
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return run_git(folder, *identity, "commit-tree", "-m", "x", done.stdout.decode().strip()).strip()
