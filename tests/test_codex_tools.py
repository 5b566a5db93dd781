"""What Codex's tools did: who wrote a line, why, and the same again in a sandbox."""

from __future__ import annotations

import json

import pytest
from plain import run_git
from replaying import CONFINED
from rollouts import THREAD, Rollout
from shell import Shell

from sessgit.agents.codex import tools
from sessgit.agents.values import DeclinedError
from sessgit.model.conversation.content import Call
from sessgit.model.conversation.turn import Cell

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
    made.start("in lower case").call("cat lexer.py", LEXER).apply(UPDATE).end("done")
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
    assert (turn["files"], turn["tools"]) == ([str(sessgit.project / "a.py")], {"apply_patch": 1})
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
        (
            "Command: /bin/bash -lc 'cat <<E\nExit code: 3\nE'\nChunk ID: 1\nProcess exited with code 0\nOutput:\nx\n",
            "x",
        ),
        ("Wall time: 0.0 seconds\nOutput:\nExit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n", "Success."),
        ("no header", "no header"),
    ],
)
def test_what_a_command_printed(said: str, printed: str) -> None:
    assert tools.output(said) == printed


MOVED = "2 is said in a way of its own"
SEVERAL = (
    "*** Add File: docs/new.md\n+hello\n+world\n"
    "*** Update File: edit.md\n@@\n alpha\n-beta\n+BETA\n"
    "*** Delete File: gone.md\n"
    f"*** Update File: old.md\n*** Move to: docs/moved.md\n@@\n one\n-two\n+{MOVED}\n"
)
DECLINED = "*** Add File: a.md\n+a\n*** Update File: edit.md\n@@\n-delta\n+DELTA\n"
FILES = {"edit.md": "alpha\nbeta\ngamma\n", "gone.md": "bye\n", "old.md": "one\ntwo\nthree\n"}
PATHS = ["docs/new.md", "edit.md", "gone.md", "old.md", "docs/moved.md"]
FORMS = pytest.mark.parametrize("paginated", [False, True], ids=["0.118", "0.169"])


def patched(sessgit: Shell, *, paginated: bool) -> Rollout:
    """A conversation that adds, updates, deletes and moves a file by one patch, declined before by the client."""
    run_git(sessgit.project, "init", "-q", "-b", "main")
    for name, content in FILES.items():
        (sessgit.project / name).write_text(content)
    run_git(sessgit.project, "add", "-A")
    run_git(sessgit.project, "-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit", "-q", "-m", "Start")
    made = Rollout(cwd=str(sessgit.project), paginated=paginated).start("tidy up")
    made.apply(DECLINED, "no such lines").apply(SEVERAL).end("tidied").turns("thanks")
    made.save(sessgit.home / ".codex")
    sessgit.out("import")
    return made


@FORMS
def test_each_file_of_a_patch_is_found(sessgit: Shell, *, paginated: bool) -> None:
    patched(sessgit, paginated=paginated)
    for path in [name for base in PATHS for name in (base, str(sessgit.project / base))]:
        assert [row["id"] for row in sessgit.json("ls", "--", path)["sessions"]] == [THREAD]
        hits = sessgit.json("search", "--file", path)["hits"]
        assert [hit["address"] for hit in hits] == [f"{THREAD}@1"], path
    steps = {path: sessgit.json("why", path, THREAD)["steps"] for path in PATHS}
    assert {path: [(one["what"], one["changes"]) for one in of] for path, of in steps.items()} == {
        path: [*failed, ("wrote", [{"path": str(sessgit.project / path), "diff": diff}])]
        for path, failed, diff in [
            ("docs/new.md", [], ["+hello", "+world"]),
            ("edit.md", [("failed", [])], ["@@", " alpha", "-beta", "+BETA"]),
            ("gone.md", [], ["deleted file"]),
            ("old.md", [], ["rename to docs/moved.md"]),
            (
                "docs/moved.md",
                [],
                ["rename from old.md", "@@", " one", "-two", f"+{MOVED}"],
            ),
        ]
    }
    assert "deleted file  “tidy up”" in sessgit.out("why", "gone.md", THREAD)
    assert "rename from old.md  +1 −1  “tidy up”" in sessgit.out("why", "docs/moved.md", THREAD)
    (cell,) = (one for one in sessgit.json("cells", THREAD)["cells"] if one["address"] == "1.4")
    assert cell["about"] == ", ".join(PATHS)
    shown = sessgit.out("show", f"{THREAD}@1")
    assert shown.count("deleted file") == 1 and "docs/moved.md\n" in shown
    assert sessgit.json("log", THREAD)["turns"][0]["files"][-1] == str(sessgit.project / "docs/moved.md")


@FORMS
def test_who_wrote_the_lines_of_several_files(sessgit: Shell, *, paginated: bool) -> None:
    patched(sessgit, paginated=paginated)
    (sessgit.project / "docs").mkdir()
    (sessgit.project / "docs" / "moved.md").write_text(f"one\n{MOVED}\nthree\n")
    (sessgit.project / "a.md").write_text("a\n")
    lines = sessgit.json("blame", "docs/moved.md")["lines"]
    assert [line["address"] for line in lines] == [None, f"{THREAD}@1.4", None]
    assert [line["address"] for line in sessgit.json("blame", "a.md")["lines"]] == [None]


@FORMS
def test_a_call_reads_what_a_patch_of_several_files_wrote(sessgit: Shell, *, paginated: bool) -> None:
    made = Rollout(cwd=str(sessgit.project), paginated=paginated).start("begin")
    made.apply("*** Add File: a.md\n+a\n*** Add File: b.md\n+b\n").apply("*** Add File: c.md\n+c\n")
    made.apply("*** Update File: c.md\n@@\n-c\n+C\n*** Delete File: b.md\n").end()
    made.save(sessgit.home / ".codex")
    sessgit.out("import")
    depends = sessgit.json("deps", f"{THREAD}@1.6")["cell"]["depends_on"]
    by_data = [(one["address"], one["file"]) for one in depends if "data" in one["kinds"]]
    assert by_data == [("1.4", str(sessgit.project / "c.md")), ("1.2", str(sessgit.project / "b.md"))]


@pytest.mark.parametrize(
    ("called", "output", "item", "shown"),
    [
        (
            {"name": "mcp__shop__find"}, '[{"type":"text","text":"Exit code: 3"}]', None,
            ("mcp__shop__find", True, None, "Exit code: 3"),
        ),
        (
            {"name": "shell", "namespace": "mcp__shop"}, [{"type": "input_text", "text": "no such shelf"}],
            {"type": "McpToolCall", "status": "failed"}, ("mcp__shop__shell", False, None, "no such shelf"),
        ),
        (
            {"name": "exec_command"},
            "Command: /bin/bash -lc 'cat <<E\nExit code: 3\nE'\nChunk ID: 1\nProcess exited with code 0\nOutput:\nx\n",
            {"type": "CommandExecution", "status": "completed"}, ("exec_command", True, 0, None),
        ),
    ],
    ids=["0.118", "0.169", "command"],
)  # fmt: skip
def test_how_a_call_ended(
    sessgit: Shell, called: dict[str, str], output: object, item: dict[str, str] | None, shown: tuple[object, ...]
) -> None:
    """Of a server's tool the client says so, and only since 0.169."""
    made = Rollout(cwd=str(sessgit.project), paginated=item is not None).start("find it")
    made.put("response_item", {"type": "function_call", **called, "arguments": "{}", "call_id": "c"})
    if item:
        made.put("event_msg", {"type": "item_completed", "item": {"id": "c", **item}})
    made.put("response_item", {"type": "function_call_output", "call_id": "c", "output": output}).end()
    made.save(sessgit.home / ".codex")
    sessgit.out("import")
    cell = sessgit.json("show", f"{THREAD}@1.2")["cell"]
    assert (cell["operation"], cell["ok"], cell["exit_code"], shown[3] and (cell["output"] or cell["error"])) == shown


def test_a_patch_in_another_folder(sessgit: Shell) -> None:
    made = Rollout(cwd=str(sessgit.project), paginated=True).start("add it")
    made.apply("*** Add File: in.md\n+s\n", folder="sub").end().save(sessgit.home / ".codex")
    sessgit.out("import")
    assert sessgit.json("log", THREAD)["turns"][0]["files"] == [str(sessgit.project / "sub" / "in.md")]
    assert sessgit.json("why", "sub/in.md", THREAD)["steps"][0]["what"] == "wrote"


@CONFINED
@FORMS
def test_a_patch_of_several_files_runs_again(sessgit: Shell, *, paginated: bool) -> None:
    """One that the client declined is declined again, and leaves no file changed."""
    made = Rollout(cwd=str(sessgit.project), paginated=paginated).start("begin")
    adds = (f"*** Add File: {name}\n+" + "\n+".join(text.splitlines()) + "\n" for name, text in FILES.items())
    made.apply("".join(adds)).end().start("tidy up").apply(DECLINED, "no such lines").apply(SEVERAL).end()
    left = ["docs", "edit.md", "hello", "world", "alpha", "BETA", "gamma", "one", MOVED, "three", ""]
    made.start("look").call("ls; cat docs/new.md edit.md docs/moved.md", "\n".join(left)).end()
    made.save(sessgit.home / ".codex")
    sessgit.out("import")
    done = sessgit("replay", THREAD, "--execute", "--json", "--no-keep")
    results = [(cell["operation"], cell["outcome"]) for cell in json.loads(done.out)["cells"] if cell["type"] == "tool"]
    assert results == [*[("apply_patch", "equal")] * 3, ("exec_command", "equal")], done.out


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
    assert tools.written(call(changes), {"/p/a": before}) == {"/p/a": after}


def call(changes: str) -> Call:
    cell = Cell("cell_1", "tool", "apply_patch", (1, 2), (), ok=True)
    return Call(cell, 1, {"input": f"*** Begin Patch\n{changes}*** End Patch"})


def test_what_a_patch_makes_of_several_files() -> None:
    before = {"/p/new.md": None, "/p/edit.md": FILES["edit.md"], "/p/gone.md": "", "/p/old.md": FILES["old.md"]}
    assert tools.written(call(SEVERAL), before | {"/p/docs/moved.md": "what was there"}) == {
        "/p/new.md": "hello\nworld\n", "/p/edit.md": "alpha\nBETA\ngamma\n", "/p/gone.md": None, "/p/old.md": None,
        "/p/docs/moved.md": f"one\n{MOVED}\nthree\n",
    }  # fmt: skip
    with pytest.raises(FileNotFoundError):
        tools.written(call(SEVERAL), before | {"/p/gone.md": None, "/p/docs/moved.md": None})
    for odd in ("*** Update File: a\n*** Move to: b\n", "*** Add File: a\n+a\n*** Update File: ./a\n@@\n-a\n+b\n"):
        with pytest.raises(DeclinedError):
            tools.written(call(odd), {"/p/a": "a\n"} | ({"/p/b": None} if "Move" in odd else {}))
