"""`sessgit why`: which calls wrote a file, what each had read before, who read it then."""

from __future__ import annotations

import pytest
from kept import begins
from lexing import lexer_talk
from shell import Shell
from transcripts import SESSION


@begins
def lexer(shell: Shell) -> None:
    shell.recorded(lexer_talk(shell))


def test_the_story_of_a_file(lexer: Shell) -> None:
    assert (
        lexer.out("why", "lexer.py", "5e55")
        == """\
lexer.py  ·  2 writes, 1 read
5e551011  write the lexer

● 1.4  Write  +2 −0  “write the lexer”                                     10:00
       had read    spec.md (1.2)
       read by     2.2
? 2.8  Bash   python -m pytest lexer.py                                    10:00
● 3.5  Edit   +1 −1  “yield tokens one by one”                             10:00
       had read    lexer.py (2.2, by 1.4)  parser.py (3.2, by 2.6)
       had run     Bash  Grep

Shell commands, searches and subagents are not traced; ? marks commands that
mention the file.
"""
    )


def test_a_file_of_no_conversation_in_a_folder_without_any(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    done = lexer("why", "lexr.py")
    assert (done.code, done.out) == (4, "")
    assert done.err == (
        "Error: no tool read or wrote “lexr.py” in any conversation.\n"
        "Hint: `sessgit show ID` lists the files of a conversation.\n"
    )


def test_the_story_of_another_one(lexer: Shell) -> None:
    assert (
        lexer.out("why", "parser.py", "5e55", "--full")
        == """\
parser.py  ·  1 write, 1 read
5e551011  write the lexer

✗ 2.4  Edit   failed                                                       10:00
● 2.6  Write  +1 −0  “parse with it”                                       10:00
       had read    spec.md (1.2)  lexer.py (2.2, by 1.4)
       read by     3.2
"""
    )


def test_the_story_of_a_file_that_was_only_read_and_up_to_a_turn(lexer: Shell) -> None:
    assert lexer.out("why", "spec.md", "5e55") == (
        "spec.md  ·  0 writes, 1 read\n5e551011  write the lexer\n\n"
        "○ 1.2  Read  before any write                                              10:00\n"
        "No tool wrote this file here.\n"
    )
    assert lexer.out("why", "lexer.py", "5e55@1").splitlines()[0] == "lexer.py  ·  1 write, 0 reads"
    assert lexer.out("why", "lexer.py", "5e55", "-n", "1").splitlines()[3:5] == [
        "(2 earlier steps not shown: -n shows more)",
        "● 3.5  Edit  +1 −1  “yield tokens one by one”                              10:00",
    ]


def test_the_story_at_60_columns(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        lexer.out("why", "lexer.py", "5e55", "--full")
        == """\
lexer.py  ·  2 writes, 1 read
5e551011  write the lexer

● 1.4  Write  +2 −0  “write the lexer”
       had read    spec.md (1.2)
       read by     2.2
? 2.8  Bash   python -m pytest lexer.py
● 3.5  Edit   +1 −1  “yield tokens one by one”
       had read    lexer.py (2.2, by 1.4)
                   parser.py (3.2, by 2.6)
       earlier     spec.md (1.2)
       had run     Bash  Grep

Shell commands, searches and subagents are not traced; ?
marks commands that mention the file.
"""
    )


def test_a_file_by_any_name(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    story = lexer.out("why", "lexer.py", "5e55")
    (lexer.project / "src").mkdir()
    for folder, name in (
        (lexer.project, "./lexer.py"),
        (lexer.project / "src", "../lexer.py"),
        (lexer.project / "src", "lexer.py"),
        (lexer.home, str(lexer.project / "lexer.py")),
        (lexer.home, "shop/lexer.py"),
        (lexer.home / "..", "shop/lexer.py"),
    ):
        monkeypatch.chdir(folder)
        assert lexer.out("why", name, "5e55") == story


def test_several_files_that_end_alike(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("go")
    for name in ("/a/x/one.py", "/b/x/one.py", "b/x/two.py"):
        talk.tool("Read", {"file_path": name}, "x")
    sessgit.recorded(talk)
    done = sessgit("why", "x/one.py", "5e55")
    assert (done.code, done.err) == (
        4, "Error: “x/one.py” matches 2 files:\n  /a/x/one.py\n  /b/x/one.py\nHint: Give more of the path.\n"
    )  # fmt: skip
    assert sessgit.json("why", "b/x/one.py", "5e55")["file"] == "/b/x/one.py"
    # What is not absolute lies in the folder that the line names.
    assert sessgit.json("why", "two.py", "5e55")["file"] == str(sessgit.project / "b/x/two.py")


def test_the_story_for_programs(lexer: Shell) -> None:
    found = lexer.json("why", "lexer.py", "5e55")
    file, spec, parser = (str(lexer.project / name) for name in ("lexer.py", "spec.md", "parser.py"))
    assert (found["session_id"], found["file"]) == (SESSION, file)
    assert [(step["what"], step["cell"]["address"]) for step in found["steps"]] == [
        ("wrote", "1.4"), ("named", "2.8"), ("wrote", "3.5")
    ]  # fmt: skip
    first, _, last = found["steps"]
    assert [(read["address"], read["file"], read["writer"]) for read in first["reads"]] == [("1.2", spec, None)]
    assert [(read["address"], read["file"], read["writer"]) for read in last["reads"]] == [
        ("2.2", file, "1.4"), ("3.2", parser, "2.6")
    ]  # fmt: skip
    assert [read["address"] for read in last["behind"]] == ["1.2"]
    assert [node["operation"] for node in last["others"]] == ["Bash", "Grep"]
    assert [node["address"] for node in first["readers"]] == ["2.2"]
    assert (last["prompt"], last["readers"]) == ("yield tokens one by one", [])
    assert last["changes"] == [{"path": file, "diff": ["@@ -1 +1 @@", "-yield text", "+yield from text"]}]


def test_a_prompt_without_a_uuid_and_several_calls_on_a_line(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt_without_uuid("go")
    blocks = [
        {"type": "tool_use", "id": f"t{number}", "name": "Write", "input": {"file_path": f"/{number}.py"}}
        for number in range(3)
    ]
    talk.chain("assistant", message={"id": "m1", "role": "assistant", "model": "m", "content": blocks})
    for number in range(3):
        talk.result(f"t{number}", "ok")
    sessgit.recorded(talk)
    steps = sessgit.json("why", "/1.py", "5e55")["steps"]
    assert [(step["what"], step["cell"]["address"]) for step in steps] == [("wrote", "1.3")]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("cat x.py", True), ("./x.py; ls", True), ("sed -i s/a/b/ src/x.py:1", True), ("mv 'x.py' y", True),
        ("cat xx.py", False), ("cat x.py.bak", False), ("cat a-x.py", False), ("cat x_py", False),
    ],
)  # fmt: skip
def test_which_commands_name_a_file(sessgit: Shell, command: str, named: bool) -> None:
    talk = sessgit.talk().prompt("go").tool("Write", {"file_path": "/x.py", "content": ""}, "ok")
    sessgit.recorded(talk.tool("Bash", {"command": command}, "ok"))
    steps = sessgit.json("why", "/x.py", "5e55")["steps"]
    assert [step["what"] for step in steps] == ["wrote", *["named"] * named]


def test_what_a_file_was_written_with(sessgit: Shell) -> None:
    """All tools that change files; one that failed and one without a result changed nothing that is known."""
    path, notebook = str(sessgit.project / "a.py"), str(sessgit.project / "b.ipynb")
    edit = {"file_path": path, "old_string": "a", "new_string": "b"}
    talk = sessgit.talk().prompt("go").tool("Edit", edit, "no", error=True).tool("Write", {"file_path": path}, "ok")
    talk.tool("MultiEdit", {"file_path": path, "edits": [edit]}, "ok")
    talk.tool("NotebookEdit", {"notebook_path": notebook, "new_source": "x"}, "ok")
    talk.tool("NotebookRead", {"notebook_path": notebook}, "x").tool("Grep", {"path": path, "pattern": "b"}, "1")
    sessgit.recorded(talk.call_only("Write", {"file_path": path, "content": "z"}))
    steps = sessgit.json("why", "a.py", "5e55")["steps"]
    assert [(step["what"], step["cell"]["address"]) for step in steps] == [
        ("failed", "1.2"), ("wrote", "1.4"), ("wrote", "1.6"), ("failed", "1.14")
    ]  # fmt: skip
    edges = sessgit.json("deps", "5e55@1.10")["cell"]["depends_on"]
    assert [(edge["address"], edge["kinds"]) for edge in edges] == [("1.9", ["causal"]), ("1.8", ["data"])]


def test_a_file_that_was_written_again_and_again(sessgit: Shell) -> None:
    """What lies behind each write is told so far and no farther."""
    talk = sessgit.talk().prompt("go")
    for number in range(400):
        talk.tool("Read", {"file_path": "/a.py"}, "x").tool("Edit", {"file_path": "/a.py", "new_string": str(number)})
    sessgit.recorded(talk)
    steps = sessgit.json("why", "/a.py", "5e55")["steps"]
    assert len([step for step in steps if step["what"] == "wrote"]) == 400
    assert max(len(step["behind"]) for step in steps) == 200


def test_a_file_that_only_another_project_has(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (lexer.home / "other").mkdir()
    monkeypatch.chdir(lexer.home / "other")
    done = lexer("why", "parser.py")
    assert done.err == "(using 5e551011, the most recent conversation that read or wrote parser.py)\n"
    assert done.out == lexer.out("why", "parser.py", "5e55")
