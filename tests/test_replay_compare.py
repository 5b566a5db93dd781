"""What counts when a cell's result is held against what is recorded, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SECRET

from sessgit import agents
from sessgit.model.conversation.content import Call, Change
from sessgit.model.conversation.turn import Cell
from sessgit.model.program_input import Outcome
from sessgit.replay import compare
from sessgit.replay.sandbox.processes import is_below
from sessgit.replay.sandbox.workspace import path_replacer

TOOLS = agents.of_programs().tools
ANY = st.text(st.sampled_from("ab\n \t→1:/.-\0é\u202e"), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)


def call(output: str, tool: str = "Bash", *, ok: bool = True, **more: Any) -> Call:
    return Call(Cell("cell_00000000", "tool", tool, (1, 2), (), ok), 1, {}, output, **more)


@given(ANY)
def test_a_text_is_equal_to_itself(text: str) -> None:
    found = compare.compare_texts(text, text + "\n")
    assert found.equal and found.diff == ()
    assert compare.compare_shell(TOOLS, call(text, exit_code=0), 0, text).equal


@given(ANY, ANY)
def test_texts_that_differ_say_how(a: str, b: str) -> None:
    found = compare.compare_texts(a, b)
    assert found.equal == (a.rstrip() == b.rstrip())
    assert bool(found.diff) == (not found.equal)


@given(JSON, JSON)
def test_values_are_equal_as_json(a: Any, b: Any) -> None:
    recorded = call("", outcome=Outcome(a))
    assert compare.compare_values(recorded, a, (repr(a),), is_value=True).equal
    if type(a) is not str and compare.as_text(a) != compare.as_text(b):
        assert not compare.compare_values(recorded, b, (repr(b),), is_value=True).equal


@pytest.mark.parametrize(
    ("recorded", "code", "now", "exit_code", "equal"),
    [
        ("a\n", 0, "a", 0, True),
        ("(Bash completed with no output)", 0, "", 0, True),
        ("", 0, "\n\n", 0, True),
        ("a", 0, "a\nb", 0, False),
        ("Exit code 2\na", 2, "a", 2, True),
        ("Error: Exit code 2\na", 2, "a", 2, True),
        ("Exit code 2\na", 1, "a", 2, False),
        ("Exit code 2\nerr\n\nout", 2, "out\nerr\n", 2, True),
        ("err\nout", 0, "out\nerr", 0, False),
        ("no match", 1, "no match", None, True),
        ("a\nShell cwd was reset to /home/ada/shop", 0, "a", 0, True),
        ("a\n<system-reminder>\nRemember.\n</system-reminder>\n", 0, "a", 0, True),
        ("start\n\n... [12 lines truncated] ...\n\nend", 0, "start\n1\n2\n3\nend", 0, True),
        ("start\n\n... [12 lines truncated] ...\n\nend", 0, "start\n1\nend.", 0, False),
        ("ab\n\n... [1 characters truncated] ...\n\nba", 0, "aba", 0, False),
        ("<persisted-output>\nOutput too large (48KB). Full output saved to: /x\n\nPreview (first 2KB):\nab\ncd\n...\n"
         "</persisted-output>", 0, "ab\ncd\nef", 0, True),
        ("<persisted-output>\nOutput too large (48KB). Full output saved to: /x\n\nPreview (first 2KB):\nab\ncd\n...\n"
         "</persisted-output>", 0, "ab\nxx\nef", 0, False),
        ("token [redacted:github-token].", 0, f"token {SECRET}.", 0, True),
    ],
)  # fmt: skip
def test_commands(recorded: str, code: int, now: str, exit_code: int | None, equal: bool) -> None:
    found = compare.compare_shell(TOOLS, call(recorded, ok=code == 0, exit_code=exit_code), code, now)
    assert found.equal is equal, found


def test_lines_of_files_in_either_form_of_the_client() -> None:
    lines = [(7, "a"), (8, ""), (9, "\tb → c")]
    old = "     7→a\n     8→\n     9→\tb → c\n    10→\n\n<system-reminder>\nWhenever\n</system-reminder>\n"
    for recorded in (old, "7\ta\n8\t\n9\t\tb → c\n10\t"):
        assert compare.compare_read(TOOLS, call(recorded, "Read"), lines).equal
    assert not compare.compare_read(TOOLS, call(old, "Read"), [(8, "a"), (9, ""), (10, "\tb → c")]).equal
    empty = "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
    assert compare.compare_read(TOOLS, call(empty, "Read"), []).equal


def test_files_that_were_written() -> None:
    known = call("ok", "Edit", result={"originalFile": "a\nb\n"}, files=("/p/x",))
    edit = Call(known.cell, 1, {"old_string": "b", "new_string": "c"}, "ok", {"originalFile": "a\nb\n"}, ("/p/x",))
    assert is_same(edit, "a\nb\n", "a\nc\n")
    assert not is_same(edit, "x\nb\n", "x\nc\n")
    patch = {"structuredPatch": [{"lines": ["-b", "+c"]}]}
    noted = call("ok", "Edit", result=patch, changes=(Change("/p/x", ("@@ -2 +2 @@", " a", "-b", "+c")),))
    assert is_same(noted, "x\nb\n", "x\nc\n")
    assert not is_same(noted, "x\nb\n", "x\nd\n")
    assert is_same(call("ok", "Edit"), "x", "y")


def is_same(call: Call, before: str, after: str) -> bool:
    return compare.compare_written(agents.of_programs(), call, {"/p/x": before}, {"/p/x": after}).equal


def test_errors_are_equal_by_their_last_line() -> None:
    then = call("Traceback\n  x\nKeyError: 'a'", ok=False)
    assert compare.compare_errors(then, "KeyError: 'a'").equal
    assert not compare.compare_errors(then, "KeyError: 'b'").equal
    assert not compare.compare_errors(then, "").equal


def test_what_is_kept_is_bounded_and_without_secrets() -> None:
    assert len(compare.bounded_text("x" * 1_000_000)) < compare.LONGEST_TEXT + 100
    assert SECRET not in compare.bounded_text(f"token {SECRET}")
    many = compare.compare_texts("\n".join(map(str, range(100_000))), "\n".join(map(str, range(1, 100_001))))
    assert not many.equal and len(many.diff) <= 41
    far = compare.compare_texts("x\n" * 5000 + "a", "x\n" * 5000 + "b")
    assert far.diff == ("… they differ further on",)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("cat /home/ada/shop/a.py", "cat /S/a.py"),
        ("cd /home/ada/shop && ls", "cd /S && ls"),
        ("'/home/ada/shop':/x", "'/S':/x"),
        (
            "/home/ada/shop2 /home/ada/shop-old /home/ada/shop.bak",
            "/home/ada/shop2 /home/ada/shop-old /home/ada/shop.bak",
        ),
        ("/mnt/home/ada/shop/a", "/mnt/home/ada/shop/a"),
        ("gcc -I/home/ada/shop/include x", "gcc -I/S/include x"),
        ("--file=/home/ada/shop", "--file=/S"),
        ("In /home/ada/shop.", "In /S."),
    ],
)
def test_the_sandbox_stands_for_the_project(text: str, inside: str) -> None:
    inward, outward = path_replacer("/home/ada/shop", "/S"), path_replacer("/S", "/home/ada/shop")
    assert inward(text) == inside
    assert outward(inside) == text


def test_nothing_lies_in_a_folder_that_is_not_known() -> None:
    assert is_below("/a/b", "/a") and is_below("/a", "/a") and is_below("/a/b", "/a/")
    assert not is_below("/ab", "/a") and not is_below("/a", "") and not is_below("/a", "/")
