"""`sessgit replay`: cells run again in a copy of the project, held against what is recorded, and kept as a fork."""

from __future__ import annotations

import shutil
from shlex import quote

import pytest
from coded import Coded
from plain import run_git
from replaying import CONFINED, commands, outcomes, program, read_result, replayed, step, value
from shell import Shell
from transcripts import SESSION, Talk

pytestmark = CONFINED


@pytest.fixture
def coded(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> Coded:
    return Coded(sessgit, monkeypatch)


def talk(coded: Coded) -> Talk:
    """Two turns with a call of each tool, whose results are what they would be again."""
    top = coded.project
    lexer = str(top / "src/lexer.py")
    made = coded.talk(SESSION)
    coded.record(made.turns("look around"))
    made.prompt("what is there?")
    said = "Exit code 3\none\ntwo\nthree\noops"
    command = f"cat src/lexer.py; ls {quote(lexer)} >/dev/null; echo oops >&2; exit 3"
    made.tool("Bash", {"command": command}, said, error=True)
    made.tool("Read", {"file_path": lexer, "limit": 2}, read_result("one", "two"))
    made.tool("Grep", {"pattern": "t[wh]", "output_mode": "content"}, "src/lexer.py:3:three\nsrc/lexer.py:2:two")
    made.tool("Grep", {"pattern": "one", "path": lexer}, f"Found 1 file\n{lexer}")
    made.tool("Glob", {"pattern": "**/*.{py,md}"}, f"{lexer}\n{top}/README.md")
    made.tool("LS", {"path": str(top)}, f"- {top}/\n  - README.md\n  - src/\n    - lexer.py")
    made.tool("WebFetch", {"url": "https://example.org"}, "Example")
    coded.record(made.answer("Three lines.").stop_lines())
    made.prompt("change it")
    made.tool("Edit", {"file_path": lexer, "old_string": "two", "new_string": "TWO"}, "updated")
    made.tool("Bash", {"command": "cat src/lexer.py"}, "one\nTWO\nthree")
    made.tool("Write", {"file_path": str(top / "new/a.txt"), "content": "a\n"}, "created")
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c"}]
    made.tool("MultiEdit", {"file_path": str(top / "new/a.txt"), "edits": edits}, "Applied 2 edits")
    where = f'cd new && test "$(pwd)" = {quote(str(top / "new"))} && echo there'
    made.tool("Bash", {"command": f"cat new/a.txt; git status --short; {where}"},
              "c\n M src/lexer.py\n?? new/\nthere")  # fmt: skip
    coded.record(made.answer("Done.").stop_lines())
    return made


# What would run


def test_shows_what_would_run(coded: Coded) -> None:
    talk(coded)
    command = f"cat src/lexer.py; ls {quote(str(coded.project))}"[:56].rstrip() + "…"
    assert replayed(coded.shell, "5e55@2").out == (
        f"""\
5e551011  look around  ·  2 cells would run, 5 not

2.2   Bash      {command:57}  shell
2.4   Read      src/lexer.py                                     built-in reader
2.6   Grep      t[wh]                                                    skipped
    Grep cannot be run here
2.8   Grep      one                                                      skipped
    Grep cannot be run here
2.10  Glob      **/*.{{py,md}}                                             skipped
    Glob cannot be run here
2.12  LS        ~/shop                                                   skipped
    LS cannot be run here
2.14  WebFetch  https://example.org                                      skipped
    WebFetch cannot be run here
Not replayed: 8 messages of the model. To send the prompts again, use --inputs.

To run them in a sandbox and compare the results, use --execute.
"""
    )


def test_cells_are_chosen_and_brought_with_all_they_depend_on(coded: Coded) -> None:
    talk(coded)

    def asked(*arguments: str) -> list[str]:
        return [one["address"] for one in value(coded.shell, *arguments)["cells"] if one["asked"]]

    def shown(*arguments: str) -> list[str]:
        return [one["address"] for one in value(coded.shell, *arguments)["cells"]]

    cell = value(coded.shell, "5e55@2")["cells"][1]["id"]
    for one in (["5e55@2.2"], ["5e55@2", "--cell", "2"], ["5e55", "--cell", "2.2"], ["5e55", "--cell", cell],
                [f"5e55@.{cell}"], [cell]):  # fmt: skip
        assert shown(*one) == ["2.2"], one
    assert shown("5e55", "--cell", "3.4", "--cell", "2.2") == ["2.2", "3.4"]
    chained = ("5e55@3.4", "--chain")
    assert asked(*chained) == ["3.4"]
    assert shown(*chained)[-3:] == ["3.2", "3.3", "3.4"]
    assert shown(*chained)[0] == "1.1"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["5e55", "--cell", "9.9"], 4, "5e551011 has no cell “9.9”"),
        (["5e55", "--cell", "2"], 4, "5e551011 has no cell “2”"),
        (["5e55@2.99"], 4, "5e551011 has no cell “2.99”"),
        (["5e55@2.2", "--cell", "1"], 2, "the address already names a cell"),
        (["5e55", "--timeout", "0"], 2, "--timeout and --memory must be more than 0"),
        (["5e55", "--timeout", "nan"], 2, "--timeout and --memory must be more than 0"),
        (["5e55", "--memory", "99999999999"], 2, "--timeout and --memory must be more than 0"),
        (["5e55", "--to", "cat"], 2, "--to needs --inputs"),
        (["5e55", "--inputs"], 2, "--inputs needs --to"),
        (["5e55", "--inputs", "--to", "cat", "--chain"], 2, "--inputs and --chain cannot be combined"),
    ],
)
def test_words_that_do_not_fit(coded: Coded, arguments: list[str], code: int, said: str) -> None:
    talk(coded)
    done = replayed(coded.shell, *arguments, code=code)
    assert said in done.err and "Hint:" in done.err
    assert done.out == ""


# What comes of it


def test_all_is_equal_again_and_kept_as_a_fork(coded: Coded) -> None:
    talk(coded)
    done = replayed(coded.shell, "5e55", "--execute")
    assert done.out.startswith("5e551011  look around  ·  7 equal, 5 skipped\n")
    head = coded.git("rev-parse", "--short=8", "HEAD")
    assert done.out.endswith(
        f"""\
Ran in a copy of the project at {head} (main), its commit after turn 1. Not
included: untracked files.
Kept: f0000001  replay of 5e551011
List the results:  sessgit cells f0000001@4 --type verification
"""
    )
    listed = coded.shell.json("cells", "f0000001", "--type", "verification")["cells"]
    assert [one["operation"] for one in listed][-2:] == ["MultiEdit", "Bash"] and len(listed) == 7
    shown = coded.shell("show", "f0000001@4.7", "--json")
    assert '"outcome": "equal"' in shown.out.replace("\\", "")
    original = coded.shell.json("cells", "5e55")["cells"]
    edge = coded.shell.json("deps", "f0000001@4.1")["cell"]["depends_on"]
    assert [one["cell_id"] for one in edge] == [original[2]["id"]]
    assert "replay of 5e551011" in coded.shell.out("ls")


def test_undo_takes_it_back_whole(coded: Coded) -> None:
    talk(coded)
    before = run_git(coded.shell.store, "for-each-ref")
    replayed(coded.shell, "5e55@2", "--execute")
    assert "replay of 5e551011, 2" in coded.shell.out("ls")
    assert coded.shell.out("ops").count("\n") == 1
    coded.shell.out("undo")
    refs = run_git(coded.shell.store, "for-each-ref")
    assert [line for line in refs.splitlines() if "refs/keep" not in line] == before.splitlines()


def test_two_replays_have_two_names_and_no_keep_leaves_nothing(coded: Coded) -> None:
    talk(coded)
    before = run_git(coded.shell.store, "for-each-ref")
    out = replayed(coded.shell, "5e55@2", "--execute", "--no-keep").out
    assert "Kept" not in out and run_git(coded.shell.store, "for-each-ref") == before
    replayed(coded.shell, "5e55@2.2", "--execute")
    assert value(coded.shell, "5e55@2.2", "--execute")["kept"]["name"] == "replay of 5e551011, 2.2 (2)"


def test_the_code_is_that_of_before_the_first_cell(coded: Coded) -> None:
    made = coded.talk(SESSION)
    coded.record(made.turns("one"))
    made.prompt("commit").tool("Bash", {"command": "cat src/lexer.py"}, "one\ntwo\nthree")
    coded.commit("Later", {"src/lexer.py": "later\n"})
    coded.record(made.answer("Done.").stop_lines())
    found = value(coded.shell, "5e55@2", "--execute")
    assert [one["outcome"] for one in found["cells"]] == ["skipped", "equal", "skipped"]
    assert found["sandbox"]["turn"] == 1


def test_git_can_be_used_and_reaches_nothing(coded: Coded) -> None:
    commands(
        coded,
        ("git log --oneline | wc -l; git branch --show-current; git remote", "1\nmain"),
        ("echo x > x && git add x && git -c user.name=a -c user.email=b commit -qm x && git status --short", ""),
        ("git log --oneline | wc -l", "2"),
    )
    assert {one[1] for one in outcomes(coded.shell, "5e55", "--execute")} == {"equal"}
    assert coded.git("log", "--oneline").count("\n") == 0


def test_differences_are_shown(coded: Coded) -> None:
    commands(
        coded, ("echo 1; echo now", "1\nthen"), ("exit 4", "Exit code 5"), ("true", "(Bash completed with no output)")
    )
    done = replayed(coded.shell, "5e55", "--execute", code=6)
    assert done.out.startswith(
        """\
5e551011  go  ·  1 equal, 2 differs

1.2  Bash  echo 1; echo now"""
    )
    assert "      1\n    − then\n    + now\n" in done.out
    assert "    − Exit code 5\n    + Exit code 4\n" in done.out
    found = value(coded.shell, "5e55", "--execute", code=6)["cells"][1]
    assert (found["recorded"], found["now"]) == ("1\nthen", "1\nnow")
    assert found["diff"] == ["@@ -1,2 +1,2 @@", " 1", "-then", "+now"]


@pytest.mark.parametrize("how", ["no repository", "no commit noted", "commit gone", "folder gone"])
def test_without_code_the_folder_is_empty_and_that_is_said(coded: Coded, how: str) -> None:
    made = coded.talk(SESSION).prompt("go").tool("Bash", {"command": "ls -A"}, "")
    coded.record(made.answer("Nothing.").stop_lines(), live=how != "no commit noted")
    said = {
        "no repository": "is not in a git repository",
        "no commit noted": "the project's commit is unknown",
        "commit gone": "is not in ",
        "folder gone": "the project's folder is gone",
    }
    if how == "no repository":
        shutil.rmtree(coded.project / ".git")
    elif how == "commit gone":
        shutil.rmtree(coded.project / ".git")
        coded.git("init", "-q")
    elif how == "folder gone":
        shutil.rmtree(coded.project)
    found = value(coded.shell, "5e55", "--execute")
    assert [one["outcome"] for one in found["cells"]] == ["skipped", "equal", "skipped"]
    assert said[how] in found["sandbox"]["empty_reason"]
    assert found["sandbox"]["head"] is None


def test_a_project_in_a_folder_of_its_repository(coded: Coded) -> None:
    top, inner = coded.project, coded.project / "src"
    made = Talk(SESSION, cwd=str(inner)).prompt("go")
    command = f"pwd; cat {quote(str(top))}/README.md lexer.py"
    made.tool("Bash", {"command": command}, f"{inner}\n# Shop\none\ntwo\nthree")
    made.tool("Read", {"file_path": str(top / "README.md")}, "1\t# Shop\n2\t")
    coded.record(made.answer("Done.").stop_lines(), at=inner)
    assert {one[1] for one in outcomes(coded.shell, "5e55", "--execute")} == {"equal"}


# What is skipped


def test_what_nothing_runs_is_skipped_with_its_reason(coded: Coded) -> None:
    made = coded.talk(SESSION).prompt("go")
    made.tool("mcp__x__y", {}, "z").tool("PowerShell", {"command": "ls"}, "x").tool("Task", {"prompt": "p"}, "q")
    made.tool("Bash", {"command": "sleep 9", "run_in_background": True}, "Command running in background with ID: 1")
    made.tool("Bash", {"command": "curl -H [redacted:token]"}, "ok")
    made.tool("Edit", {"file_path": "a"}, "<tool_use_error>File has not been read yet.</tool_use_error>", error=True)
    made.tool("Read", {"file_path": "/etc/passwd"}, "1\troot").tool("Glob", {"pattern": "*", "path": "/etc"}, "x")
    made.tool("Write", {"file_path": "/etc/new", "content": "x"}, "ok").tool("Write", {"file_path": "../x"}, "ok")
    made.call_only("Bash", {"command": "sleep 1"})
    coded.record(made)
    found = outcomes(coded.shell, "5e55", "--execute")
    up = coded.project.parent
    assert found == [
        ("mcp__x__y", "skipped", "mcp__x__y cannot be run here"),
        ("PowerShell", "skipped", "there is no PowerShell here"),
        ("Task", "skipped", "Task cannot be run here"),
        ("Bash", "skipped", "it ran in the background"),
        ("Bash", "skipped", "a secret in its arguments is redacted"),
        ("Edit", "skipped", "it did not run: the client refused it"),
        ("Read", "skipped", "/etc/passwd is outside of the project"),
        ("Glob", "skipped", "Glob cannot be run here"),
        ("Write", "skipped", "refused: /etc/new is outside of the project"),
        ("Write", "skipped", f"refused: {up}/x is outside of the project"),
        ("Bash", "skipped", "no result is recorded: there is nothing to compare with"),
    ]
    assert value(coded.shell, "5e55", "--execute")["kept"] is None


# Cells of programs


def test_code_runs_in_one_process_with_one_set_of_names(sessgit: Shell) -> None:
    program(
        sessgit,
        step(1, "repl", "exec", {"code": "x = [1, 2]\nprint('made')"}, "made\n"),
        step(2, "repl", "eval", {"expression": "[n * 2 for n in x]"}, [2, 4], needs=(1,)),
        step(3, "repl", "eval", {"source": "x.append({3}); x"}, "[1, 2, {3}]", needs=(2,)),
        step(4, "repl", "eval", {"code": "y"}, error="NameError: name 'y' is not defined"),
        step(5, "repl", "eval", {"code": "1"}, True),
        step(6, "repl", "eval", {"code": "import sys; sys.exit(3)"}, error="SystemExit: 3"),
        step(7, "repl", "eval", {"code": "len(x)"}, 4),
        step(8, "repl", "look", {"at": "x"}, 1),
        step(9, "verification", "check", {}, True),
    )
    found = outcomes(sessgit, "5e55", "--execute", code=6)
    assert [one[1] for one in found] == [
        "equal", "equal", "equal", "equal", "differs", "equal", "differs", "skipped", "skipped"
    ]  # fmt: skip
    assert found[7][2] == "none of its arguments is code: code, source, expression"
    assert found[8][2] == "only a function registered by a program can run check, or --exec check=COMMAND"
    alone = outcomes(sessgit, "5e55@1.2", "--execute", code=6)
    assert alone == [("eval", "differs", None)]
    assert [one[1] for one in outcomes(sessgit, "5e55@1.2", "--chain", "--execute")] == ["equal", "equal"]


def test_an_operation_is_run_by_a_command(sessgit: Shell) -> None:
    program(
        sessgit,
        step(1, "repl", "count", {"words": ["a", "b"]}, {"words": 2}),
        step(2, "repl", "count", {"words": ["a"]}, {"words": 2}),
        step(3, "repl", "other", {"words": []}, 0),
    )
    command = """count=python3 -c 'import json; print(json.dumps({"words": len(json.load(open(0))["words"])}))'"""
    found = outcomes(sessgit, "5e55", "--execute", "--exec", command, code=6)
    assert [one[:2] for one in found] == [("count", "equal"), ("count", "differs"), ("other", "skipped")]
    failed = outcomes(sessgit, "5e55@1.1", "--execute", "--exec", "count=exit 7", code=6)
    assert failed == [("count", "failed", "“exit 7” exited with code 7")]
    assert "--exec count names no command" in sessgit("replay", "5e55", "--exec", "count").err


def test_a_model_is_asked_by_a_command(sessgit: Shell) -> None:
    program(
        sessgit,
        step(1, "llm_call", "ask", {"prompt": "abc"}, "ABC"),
        step(2, "llm_call", "ask", {"prompt": "abc"}, "abc"),
        step(3, "map_reduce", "sum", {"parts": [1, 2]}, {"PARTS": [1, 2]}),
    )
    assert outcomes(sessgit, "5e55", "--execute")[0] == (
        "ask",
        "skipped",
        "a model wrote it: ask one with --llm COMMAND",
    )
    found = outcomes(sessgit, "5e55", "--execute", "--llm", "tr a-z A-Z", code=6)
    assert found == [("ask", "equal", None), ("ask", "differs", None), ("sum", "equal", None)]
    failed = outcomes(sessgit, "5e55@1.1", "--execute", "--llm", "exit 7", code=6)
    assert failed == [("ask", "failed", "“exit 7” exited with code 7")]
    slow = outcomes(sessgit, "5e55@1.1", "--execute", "--llm", "sleep 60", "--timeout", "0.3", code=6)
    assert slow == [("ask", "failed", "it took longer than 0.3 s")]


def test_what_is_off_is_not_kept_and_said_before_anything_runs(coded: Coded) -> None:
    commands(coded, ("echo 1", "1"))
    coded.shell.out("off")
    done = replayed(coded.shell, "5e55", "--execute", code=3)
    assert (
        "is not recorded: it is off" in done.err
        and "Or use `--no-keep` to run it without keeping the results." in done.err
    )
    replayed(coded.shell, "5e55", "--execute", "--no-keep")
