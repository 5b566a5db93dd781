"""`sessgit blame`: the turn that wrote each line of a file, else its commit."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from blame_histories import Figures, figures
from plain import run_git
from shell import Shell
from transcripts import BIRTH, OTHER, SESSION, Talk

LEXER = "def lex(text):\n    yield from split_words(text)\n\n\ndef split_words(text):\n    return text.split()\n"
SKIP = "\n\ndef skip_blanks(text):\n    return text.strip()\n"
PARSER = "def parse(tokens):\n    return Tree(tokens)\n"


class Repo:
    """The project `~/shop` as a git repository, with the clock of the conversations."""

    def __init__(self, sessgit: Shell, patch: pytest.MonkeyPatch) -> None:
        self.shell, self.top, self.patch = sessgit, sessgit.project, patch
        run_git(self.top, "init", "-q", "-b", "main")
        self.at(-60)
        self.first = self.commit("Start", {"README.md": "# Shop\n"})

    def at(self, seconds: int, who: str = "Ada") -> Repo:
        moment = (BIRTH + timedelta(seconds=seconds)).isoformat()
        for role in ("AUTHOR", "COMMITTER"):
            for what, value in (("NAME", who), ("EMAIL", f"{who.lower()}@example.org"), ("DATE", moment)):
                self.patch.setenv(f"GIT_{role}_{what}", value)
        return self

    def write(self, files: dict[str, str | bytes]) -> None:
        for name, data in files.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def commit(self, subject: str, files: dict[str, str | bytes] | None = None) -> str:
        self.write(files or {})
        run_git(self.top, "add", "-A")
        run_git(self.top, "commit", "-q", "-m", subject)
        return run_git(self.top, "rev-parse", "HEAD").strip()

    def file(self, name: str) -> str:
        return str(self.top / name)


@pytest.fixture
def repo(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> Repo:
    return Repo(sessgit, monkeypatch)


def written(talk: Talk, file: str, content: str, **more: Any) -> Talk:
    """A call that creates a file, as the client notes it."""
    talk.tool("Write", {"file_path": file, "content": content}, **more)
    return noted(talk, type="create", originalFile=None, structuredPatch=[])


def noted(talk: Talk, **result: Any) -> Talk:
    """Replace what the client noted with the last result."""
    line = json.loads(talk.lines[-1])
    line["toolUseResult"] = result
    talk.lines[-1] = json.dumps(line, separators=(",", ":")).encode()
    return talk


def lexer_talk(repo: Repo) -> Talk:
    talk = repo.shell.talk().prompt("write the lexer")
    return written(talk, repo.file("lexer.py"), LEXER).answer("Done.").stop_lines()


@pytest.fixture
def lexer(repo: Repo) -> Repo:
    """A file by a turn, a colleague and somebody else, the last without a commit."""
    repo.shell.recorded(lexer_talk(repo))
    repo.at(60).commit("Add the lexer", {"lexer.py": LEXER})
    repo.at(120, "Grace").commit("Skip blanks", {"lexer.py": LEXER + SKIP})
    repo.write({"lexer.py": LEXER + SKIP + "# nothing more here\n"})
    return repo


def authors(repo: Repo, file: str, *more: str) -> list[str]:
    """Return for each line of a file its address with a short id, or the subject of its commit, or what is said."""
    document = repo.shell.json("blame", file, *more)
    subjects = {commit["commit"]: commit["subject"] for commit in document["commits"]}
    named = [(line["address"] or "", line["commit"], line["certainty"]) for line in document["lines"]]
    return [
        f"{address[:8]}{address[36:]}{'~' if certainty == 'run' else ''}" or subjects.get(commit, "not recorded")
        for address, commit, certainty in named
    ]


def test_turns_commits_and_what_is_not_recorded(lexer: Repo) -> None:
    grace = run_git(lexer.top, "rev-parse", "HEAD")[:8]
    assert lexer.shell.out("blame", "lexer.py") == (
        f"""\
5e551011@1.2 (write the lexer        10:00  1) def lex(text):
5e551011@1.2 (write the lexer        10:00  2)     yield from split_words(text)
5e551011@1.2 (write the lexer        10:00  3)
5e551011@1.2 (write the lexer        10:00  4)
5e551011@1.2 (write the lexer        10:00  5) def split_words(text):
5e551011@1.2 (write the lexer        10:00  6)     return text.split()
{grace}     (Grace                  10:02  7)
{grace}     (Grace                  10:02  8)
{grace}     (Grace                  10:02  9) def skip_blanks(text):
{grace}     (Grace                  10:02 10)     return text.strip()
--------     (not recorded                 11) # nothing more here
"""
    )
    assert lexer.shell.out("show", "5e551011@1.2").startswith("5e551011@1.2  Write")


def test_lines_without_authors_and_reasons(lexer: Repo) -> None:
    grace = run_git(lexer.top, "rev-parse", "HEAD")[:8]
    assert lexer.shell.out("blame", "-s", "-L", "6,+2", "lexer.py") == (
        f"5e551011@1.2 6)     return text.split()\n{grace}     7)\n"
    )
    assert lexer.shell.out("blame", "--explain", "-L", "8,", "lexer.py") == (
        f"""\
{grace} (too short to tell      10:02  8)
{grace} (no recorded edit       10:02  9) def skip_blanks(text):
{grace} (no recorded edit       10:02 10)     return text.strip()
-------- (no recorded edit             11) # nothing more here
"""
    )


def test_the_form_of_git(lexer: Repo) -> None:
    out = lexer.shell.out("blame", "--porcelain", "-L", "6,7", "lexer.py").splitlines()
    turn = lexer.shell.json("log", "5e55")["turns"][0]["commit"]
    grace = run_git(lexer.top, "rev-parse", "HEAD").strip()
    assert out == [
        f"{turn} 6 6 1", "author claude-test-1", f"author-mail <{SESSION}>", "author-time 1772359201",
        "author-tz +0000", "committer claude-test-1", f"committer-mail <{SESSION}>", "committer-time 1772359201",
        "committer-tz +0000", "summary write the lexer", f"sessgit-address {SESSION}@1.2", "sessgit-certainty exact",
        "filename lexer.py", "\t    return text.split()",
        f"{grace} 7 7 1", "author Grace", "author-mail <grace@example.org>", "author-time 1772359320",
        "author-tz +0000", "committer Grace", "committer-mail <grace@example.org>", "committer-time 1772359320",
        "committer-tz +0000", "summary Skip blanks", "filename lexer.py", "\t",
    ]  # fmt: skip


def test_as_json(lexer: Repo) -> None:
    document = lexer.shell.json("blame", "lexer.py", "-L", "5,5")
    (commit,) = document.pop("commits")
    assert (commit["author"], commit["subject"]) == ("Ada", "Add the lexer")
    assert document == {
        "file": lexer.file("lexer.py"),
        "revision": None,
        "tracked": True,
        "lines": [
            {
                "line": 5, "text": "def split_words(text):", "address": f"{SESSION}@1.2", "certainty": "exact",
                "commit": commit["commit"], "silence": None,
            }
        ],
        "turns": [
            {
                "address": f"{SESSION}@1.2", "session_id": SESSION, "turn": 1, "cell": 2, "subagent": None,
                "prompt": "write the lexer", "model": "claude-test-1", "time": "2026-03-01T10:00:03.000Z",
            }
        ],
    }  # fmt: skip


def test_a_file_as_it_was(lexer: Repo) -> None:
    assert authors(lexer, "lexer.py", "HEAD~1") == ["5e551011@1.2"] * 6
    assert authors(lexer, "lexer.py", "HEAD")[6:] == ["Skip blanks"] * 4


def test_an_edit_takes_only_the_lines_that_it_added(repo: Repo) -> None:
    talk = lexer_talk(repo).prompt("strip first")
    new = "def split_words(text):\n    stripped = text.strip()\n    return stripped.split()"
    old = "def split_words(text):\n    return text.split()"
    repo.shell.recorded(talk.tool("Edit", {"file_path": repo.file("lexer.py"), "old_string": old, "new_string": new}))
    repo.write({"lexer.py": LEXER.replace(old, new)})
    assert authors(repo, "lexer.py") == ["5e551011@1.2"] * 5 + ["5e551011@2.2"] * 2


def test_a_line_between_other_lines(repo: Repo) -> None:
    """It was moved, unless a line next to it came with its commit: then a person may have typed both."""
    others = [f"entry = add(entry, {n})" for n in range(12)]
    repo.at(-30, "Grace").commit("Add entries", {"lexer.py": "".join(f"{line}\n" for line in others)})
    repo.shell.recorded(lexer_talk(repo))
    _, uses, _, _, defines, _ = LEXER.splitlines()
    moved = [others[0], defines, *others[1:11], uses, others[11]]
    repo.at(60).commit("Move it", {"lexer.py": "\n".join([*moved, ""])})
    assert authors(repo, "lexer.py", "-L", "12,14") == ["Add entries", "5e551011@1.2~", "Add entries"]
    run_git(repo.top, "reset", "-q", "--hard", "HEAD~1")
    typed = [*others[:3], uses, "typed = by_hand(entry)", *others[3:11], defines, *others[11:]]
    repo.commit("Type it", {"lexer.py": "\n".join([*typed, ""])})
    assert authors(repo, "lexer.py", "-L", "4,6") == ["Type it"] * 2 + ["Add entries"]


def test_part_of_a_line_where_the_text_before_is_known(repo: Repo) -> None:
    talk = lexer_talk(repo).prompt("rename it")
    for everywhere in (False, True):
        change = {"old_string": "split_words", "new_string": "split_at_blanks", "replace_all": everywhere}
        talk.tool("Edit", {"file_path": repo.file("lexer.py"), **change}, error=not everywhere)
    noted(talk, originalFile=LEXER)
    repo.shell.recorded(talk)
    repo.write({"lexer.py": LEXER.replace("split_words", "split_at_blanks")})
    names = authors(repo, "lexer.py")
    assert [names[n] for n in (0, 1, 4, 5)] == ["5e551011@1.2", "5e551011@2.4~", "5e551011@2.4~", "5e551011@1.2"]


def test_failed_calls_and_redacted_texts_write_nothing(repo: Repo) -> None:
    secret = f'token = "ghp_{"a1B2c3D4e5F6g7H8i9J0"[:18]}{"k1L2m3N4o5P6q7R8s9T0"[:18]}"\n'
    talk = written(repo.shell.talk().prompt("go"), repo.file("refused.py"), LEXER, error=True)
    written(talk, repo.file("secret.py"), f"{secret}# the lexer needs it\n")
    repo.shell.recorded(talk)
    repo.write({"refused.py": LEXER, "secret.py": 'token = "[redacted:github-token]"\n# the lexer needs it\n'})
    assert set(authors(repo, "refused.py")) == {"not recorded"}
    assert "[redacted:" in repo.shell.out("show", "5e55@1.4")
    assert authors(repo, "secret.py")[0] == "not recorded"


def test_line_ends_and_renames_do_not_matter(repo: Repo) -> None:
    repo.shell.recorded(lexer_talk(repo))
    repo.at(60).commit("Add the lexer", {"lexer.py": LEXER.replace("\n", "\r\n")})
    (repo.top / "words").mkdir()
    run_git(repo.top, "mv", "lexer.py", "words/split.py")
    repo.at(90).commit("Move it")
    assert authors(repo, "words/split.py") == ["5e551011@1.2"] * 6


def test_rewound_archived_and_forked_conversations_and_worktrees(repo: Repo) -> None:
    tree = repo.top / ".claude" / "worktrees" / "tidy"
    talk = written(repo.shell.talk().prompt("write the parser"), str(tree / "parser.py"), PARSER)
    talk.stop_lines().rewind(0).turns("something else")
    repo.shell.recorded(talk, talk.branch())
    repo.shell.out("archive", "5e551011-0000-4000-8000-000000000001")
    repo.write({"parser.py": PARSER})
    assert authors(repo, "parser.py") == ["5e551011.r-a0000001@1.2"] * 2


def test_a_subagent(repo: Repo) -> None:
    talk = repo.shell.talk().prompt("have it written").tool("Task", {"prompt": "write it"}, "agentId: abc")
    helper = Talk(SESSION, cwd=str(repo.top)).prompt("write it")
    written(helper, repo.file("parser.py"), PARSER)
    path = repo.shell.keep(talk.answer("Done."))
    side = path.parent / SESSION / "subagents" / "agent-abc.jsonl"
    side.parent.mkdir(parents=True)
    side.write_bytes(helper.data.replace(b'"isSidechain":false', b'"isSidechain":true'))
    repo.shell.recorded(talk)
    repo.write({"parser.py": PARSER})
    assert authors(repo, "parser.py") == ["5e551011@1"] * 2
    assert repo.shell.json("blame", "parser.py")["turns"][0]["subagent"] == "agent-abc"


def test_a_file_that_git_does_not_know(repo: Repo) -> None:
    repo.shell.recorded(lexer_talk(repo))
    repo.write({"lexer.py": LEXER})
    done = repo.shell("blame", "-s", "lexer.py")
    assert (done.code, done.err) == (0, "(lexer.py is not tracked by git: only recorded edits are compared.)\n")
    assert done.out.splitlines()[0] == "5e551011@1.2 1) def lex(text):"


def test_a_file_in_no_repository(sessgit: Shell) -> None:
    file = sessgit.project / "notes.md"
    sessgit.recorded(written(sessgit.talk().prompt("take notes"), str(file), "# Plans for the shop\n"))
    file.write_text("# Plans for the shop\nand a line by hand\n")
    done = sessgit("blame", "-s", "notes.md")
    assert (done.code, done.err) == (
        0, f"({file} is not in a git repository: only recorded edits are compared.)\n",
    )  # fmt: skip
    assert done.out == "5e551011@1.2~ 1) # Plans for the shop\n--------      2) and a line by hand\n"
    assert sessgit("blame", "notes.md", "HEAD").err == (
        f"Error: {file} is not in a git repository, so it has no revisions.\nHint: Leave out REV.\n"
    )


def test_what_cannot_be_blamed(lexer: Repo) -> None:
    lexer.write({"picture.png": b"\x89PNG\0\0"})

    def error(*arguments: str) -> tuple[int, str]:
        done = lexer.shell("blame", *arguments)
        assert done.out == ""
        return done.code, done.err.removeprefix("Error: ").partition("\nHint: ")[0].strip().removesuffix(".")

    top = lexer.top
    assert error("picture.png") == (2, f"{top}/picture.png is a binary file")
    assert error("gone.py") == (4, f"cannot read {top}/gone.py: No such file or directory")
    assert error("gone/gone.py") == (4, f"there is no folder {top}/gone")
    assert error("lexer.py", "v9") == (4, f"“v9” names no commit of the repository {top}")
    assert error("lexer.py", "HEAD~2") == (4, f"lexer.py is not in commit {lexer.first[:8]}")
    assert error("lexer.py", "-L", "12,20") == (2, "the file has 11 lines, so it has no lines 12,20")
    assert error("lexer.py", "-L", "4,2") == (2, "the file has 11 lines, so it has no lines 4,2")
    assert error("lexer.py", "-L", "a,b") == (2, "“a,b” is not a range of lines")
    assert error(".") == (2, f"{top} is a folder")
    os.mkfifo(top / "pipe")
    assert error("pipe") == (2, f"{top}/pipe is not a regular file")


def test_the_turns_that_led_to_a_commit(lexer: Repo) -> None:
    talk = lexer.shell.talk("7e0c4a11-0000-4000-8000-00000000000a").prompt("write the parser too")
    talk.file.counts["toolu"] = 50
    lexer.shell.recorded(written(talk, lexer.file("parser.py"), PARSER))
    lexer.at(200).commit("Add a parser", {"parser.py": PARSER})
    commit = run_git(lexer.top, "rev-parse", "HEAD")
    assert lexer.shell.out("log", "--commit", "HEAD") == (
        f"{commit[:8]}  ·  lines by 1 turn\n7e0c4a11@1  10:00  write the parser too  2 lines in parser.py\n"
    )
    document = lexer.shell.json("log", "--commit", "HEAD")
    assert [turn["project_lines"] for turn in document["turns"]] == [[{"path": "parser.py", "lines": 2}]]
    assert lexer.shell.out("log", "--commit", "HEAD~1").splitlines()[1:] == []
    assert lexer.shell("log", "--commit", "v9").code == 4


def test_turns_with_a_file_are_found_and_why_looks_across_the_project(lexer: Repo) -> None:
    lexer.shell.recorded(lexer.shell.talk(OTHER).turns("about something else"))
    out = lexer.shell.out("search", "--file", "lexer.py")
    assert ("write the lexer" in out, out.splitlines()[-1]) == (True, "1 turn.")
    assert lexer.shell.json("search", "--file", "lexer.py", "lexer")["total"] == 1
    latest = max(hit["time"] for hit in lexer.shell.json("search", "--file", "lexer.py")["hits"])
    assert lexer.shell.json("search", "--file", "lexer.py", "--since", latest)["total"] == 1
    assert lexer.shell("search", "--file", "lexer.py", "something").code == 1
    assert lexer.shell("search", "--file", "other.py").code == 1
    assert lexer.shell("search").code == 2
    assert lexer.shell("why", "lexer.py").out.splitlines()[0] == "lexer.py  ·  1 write, 0 reads"


def test_a_long_file(repo: Repo) -> None:
    lines = "".join(f"entry number {n}\n" for n in range(100_000))
    repo.shell.recorded(lexer_talk(repo))
    repo.at(60).commit("Add data", {"lexer.py": lines + LEXER})
    assert authors(repo, "lexer.py", "-L", "99999,100002") == ["Add data"] * 2 + ["5e551011@1.2"] * 2


def test_a_long_file_of_which_each_second_line_changed(repo: Repo) -> None:
    """Each line has to be found by itself: the time must not grow with the square of the file's length."""
    lines = [f"entry number {n} of the file" for n in range(30_000)]
    talk = written(repo.shell.talk().prompt("add entries"), repo.file("entries.txt"), "\n".join([*lines, ""]))
    repo.shell.recorded(talk.answer("Done.").stop_lines())
    repo.write({"entries.txt": "".join(f"{line}\n" if n % 2 else "changed by hand\n" for n, line in enumerate(lines))})
    start = time.process_time()
    assert authors(repo, "entries.txt") == ["not recorded", "5e551011@1.2"] * 15_000
    assert time.process_time() - start < 3


def test_random_histories(tmp_path: Path) -> None:
    found = sum((figures(tmp_path / str(seed), seed, 100, 0.2) for seed in (8, 9)), Figures())
    assert found.mistakes == ()
    assert found.recall >= 0.8, found.summary
