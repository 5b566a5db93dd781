"""Pages on a narrow terminal, what is near to what was misspelt, and what is said of secrets that stand replaced."""

from __future__ import annotations

import json

import pytest
from kept import begins
from shell import NOW, Shell
from transcripts import SESSION

from sessgit.cli import invocation, text
from sessgit.cli.commands import watch
from sessgit.history.watch import WatchEvent

LEXER, UPLOAD = "0b2d7f10-0000-4000-8000-00000000000b", "c13d6a5e-0000-4000-8000-00000000000c"


@begins
def several(shell: Shell) -> None:
    shell.recorded(*(shell.talk(session).turns("one") for session in (SESSION, LEXER, UPLOAD)))
    shell.out("rename", UPLOAD, "upload")


@pytest.mark.parametrize(
    ("said", "near"),
    [
        ("0b2d7f11-0000-4000-8000-00000000000b", "similar: 0b2d7f10 (one)"),
        ("0b2f7d10", "similar: 0b2d7f10 (one)"),
        ("0b3d", "similar: 0b2d7f10 (one)"),
        ("uplaod", "similar: c13d6a5e (upload)"),
        ("load", "similar: c13d6a5e (upload)"),
        ("0f9e8d7c-6b5a-4039-8271-655443322110", "`sessgit ls --all` lists all conversations."),
        ("cccc", "`sessgit ls --all` lists all conversations."),
        ("other", "`sessgit ls --all` lists all conversations."),
    ],
)
def test_near_ones_are_near(several: Shell, said: str, near: str) -> None:
    assert several("log", said).err == f"Error: no conversation starts with “{said}”.\nHint: {near}\n"


def test_verify_at_40_columns(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    monkeypatch.setenv("COLUMNS", "40")
    shown = sessgit.out("restore", SESSION, "--verify")
    assert (
        shown
        == f"""\
{SESSION}: 1
turn, no damage.
Hashes     2 hashes of lines match
           (Lines-SHA256, taken when
           they were recorded)
File       {text.size(path.stat().st_size)}, byte for byte as the
           client wrote it.
Compared   equal to ~/{path.relative_to(sessgit.home)}
"""
    )


def test_a_call_with_a_long_name_at_40_columns(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "mcp__files__read_many_files_with_their_long_histories"
    talk = sessgit.talk().prompt("one").tool(name, {"path": "/home/ada/shop/parser.py"}).tool(name)
    sessgit.recorded(talk.answer("Read.").stop_lines())
    monkeypatch.setenv("COLUMNS", "40")
    lines = sessgit.out("show", f"{SESSION}@1").splitlines()
    assert [line for line in lines if "read" in line] == [
        "1.2  read_many_file…  …rser.py  ok  1.0s",
        "1.4  read_many_files_with_t…    ok  1.0s",
    ]
    assert all(text.width(line) <= 40 for line in lines)


def test_watch_keeps_its_columns() -> None:
    time = "2026-03-01T12:59:00.000Z"
    changes = [
        WatchEvent("turn", SESSION, time=time, turn=12, text="go on"),
        WatchEvent("turn", f"{SESSION}.r-a0000002", time=time, turn=3, text="another way"),
        WatchEvent("tag", f"{SESSION}.r-a0000002", time=time, turn=3, text="good"),
        WatchEvent("rewind", f"{SESSION}.r-a0000002", time=time, turn=1, text="2"),
    ]
    lines = [line.rstrip() for line in watch.full(invocation.read(), changes, NOW)]
    assert [line[line.index("5e55") :] for line in lines] == [
        "5e551011@12    go on",
        "5e551011@3     .r-a0000002: another way",
        "5e551011@3     .r-a0000002: tagged good",
        "5e551011       rewound to turn 1, 2 turns left behind: .r-a0000002",
    ]


def test_what_was_purged_later_stands_replaced_as_well(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("the word is heliotrope-4711"))
    sessgit.out("purge", "heliotrope-4711", "--yes")
    said = sessgit.out("restore", SESSION, "--verify")
    count = json.loads(sessgit.out("restore", SESSION, "--verify", "--json"))["redacted"]
    assert count > 1
    assert f", as the client wrote it except for {count} secrets that are redacted.\n" in said.replace(
        "\n           ", " "
    )
