"""What Codex's tools did: who wrote a line, why, and the same again in a sandbox."""

from __future__ import annotations

import json

import pytest
from plain import run_git
from replaying import CONFINED
from rollouts import THREAD, Rollout
from shell import Shell

from sessgit.agents.codex import tools

LEXER = "def lex(text):\n    text = text.strip()\n    text = text.expandtabs()\n    return text.split()\n"
UPDATE = "*** Update File: lexer.py\n@@\n     text = text.expandtabs()\n"
UPDATE += "-    return text.split()\n+    return text.lower().split()\n"


@pytest.fixture
def made(sessgit: Shell) -> Rollout:
    run_git(sessgit.project, "init", "-q", "-b", "main")
    (sessgit.project / "README.md").write_text("# Shop\n")
    run_git(sessgit.project, "add", "-A")
    run_git(sessgit.project, "-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit", "-q", "-m", "Start")
    made = Rollout(cwd=str(sessgit.project), paginated=True)
    made.start("write a lexer").patch("lexer.py", *LEXER.splitlines()).end("written")
    made.start("in lower case").call("cat lexer.py", LEXER).apply(UPDATE, "lexer.py").end("done")
    made.start("look").call("cat lexer.py; exit 3", LEXER.replace(".split", ".lower().split"), 3).end("seen")
    (sessgit.project / "lexer.py").write_text(LEXER.replace(".split", ".lower().split"))
    made.save(sessgit.home / ".codex")
    sessgit.out("import")
    return made


def test_the_turn_that_wrote_a_line(sessgit: Shell, made: Rollout) -> None:
    lines = sessgit.json("blame", str(sessgit.project / "lexer.py"))["lines"]
    assert [(line["text"], line["address"].partition("@")[2].partition(".")[0]) for line in lines] == [
        ("def lex(text):", "1"),
        ("    text = text.strip()", "1"),
        ("    text = text.expandtabs()", "1"),
        ("    return text.lower().split()", "2"),
    ]


def test_a_patch_by_a_shell_command(sessgit: Shell) -> None:
    """Models without a tool for patches run `apply_patch`, which the client applies itself."""
    added = "+def parse(tokens):\n+    return Tree(tokens)\n"
    patch = f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.py\n{added}*** End Patch\nEOF"
    made = Rollout(cwd=str(sessgit.project), paginated=True).start("add it")
    made.call(patch, "Success. Updated the following files:\nA a.py\n").end()
    made.save(sessgit.home / ".codex")
    sessgit.out("import")
    (turn,) = sessgit.json("log", THREAD)["turns"]
    assert (turn["files"], turn["tools"]) == (["a.py"], {"apply_patch": 1})
    assert "+def parse(tokens):" in sessgit.out("show", f"{THREAD}@1")
    (sessgit.project / "a.py").write_text("def parse(tokens):\n    return Tree(tokens)\n")
    assert f"{THREAD[:8]}@1" in sessgit("blame", str(sessgit.project / "a.py")).out


def test_why_a_file_is_as_it_is(sessgit: Shell, made: Rollout) -> None:
    shown = sessgit.out("why", "lexer.py", THREAD)
    assert "in lower case" in shown and "write a lexer" in shown


@CONFINED
def test_its_calls_run_again(sessgit: Shell, made: Rollout) -> None:
    done = sessgit("replay", THREAD, "--execute", "--json", "--no-keep")
    results = [(cell["operation"], cell["outcome"]) for cell in json.loads(done.out)["cells"] if cell["type"] == "tool"]
    assert results == [
        ("apply_patch", "equal"), ("exec_command", "equal"), ("apply_patch", "equal"), ("exec_command", "equal"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        (
            "Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code 0\nOriginal token count: 4\nOutput:\nhi\n",
            "hi",
        ),
        (
            "Command: ls\nChunk ID: 1\nProcess exited with code 0\nOriginal token count: 4\nOutput:\n",
            "",
        ),
        ("Wall time: 0.0 seconds\nOutput:\nExit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n", "Success."),
        ("no header", "no header"),
    ],
)
def test_what_a_command_printed(said: str, printed: str) -> None:
    assert tools.output(said) == printed


@pytest.mark.parametrize(
    ("changes", "before", "after"),
    [
        ("*** Add File: a\n+one\n+\n+two\n", None, "one\n\ntwo\n"),
        ("*** Update File: a\n@@\n one\n-two\n+2\n", "one\ntwo\nthree\n", "one\n2\nthree\n"),
        ("*** Update File: a\n@@ def b\n-x\n+y\n", "def a\nx\ndef b\nx\n", "def a\nx\ndef b\ny\n"),
        ("*** Update File: a\n@@\n+end\n", "one\n", "one\nend\n"),
        ("*** Update File: a\n@@\n-one\n@@\n-three\n+3\n*** End of File\n", "one\ntwo\nthree\n", "two\n3\n"),
    ],
)
def test_what_a_patch_makes_of_a_file(changes: str, before: str | None, after: str) -> None:
    given = {"input": f"*** Begin Patch\n{changes}*** End Patch"}
    assert tools.written("apply_patch", given, before) == after
