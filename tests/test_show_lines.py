"""`sessgit show`: lines as they were recorded, and nothing that steers a terminal."""

from __future__ import annotations

import re
import subprocess
import sys

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell import Shell, on_terminal
from shown import document
from transcripts import OTHER, SESSION

from sessgit.cli import invocation, text
from sessgit.cli.text import duration, plain, wrap
from sessgit.store import store as stores
from sessgit.store.index import remove_cache
from sessgit.store.layout import StorePaths

# As it was recorded


def raw(sessgit: Shell, *arguments: str) -> bytes:
    """What a process of its own writes into a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "sessgit", "show", *arguments, "--raw"], capture_output=True, check=True
    )
    assert done.stderr == b""
    return done.stdout


def test_lines_byte_for_byte(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").title("between").prompt("two \udce9".encode("utf-8", "replace").decode())
    talk.raw(b'{"type":"user","torn \xff\xfe\x1b[2J').tool("Bash", {"command": "x"}, "long\n" * 2000).answer("Done.")
    sessgit.recorded(talk)
    second = next(n for n, line in enumerate(talk.lines) if b'"stop_hook_summary"' in line)
    lines = [line + b"\n" for line in talk.lines]
    assert raw(sessgit, "5e55@2") == b"".join(lines[second:])
    assert raw(sessgit, "5e55") == b"".join(lines)
    assert raw(sessgit, "5e55@2.2") == lines[-3] + lines[-2]
    assert raw(sessgit, "5e55@0") == b""


def test_lines_of_a_fork_have_its_own_id(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    copy = talk.fork_session(OTHER).turns("three")
    sessgit.recorded(talk, copy)
    found = raw(sessgit, OTHER)
    assert found == copy.data[: len(found)]
    assert b"About three." in found.splitlines()[-1]
    assert SESSION.encode() not in raw(sessgit, f"{OTHER}@1")


def test_lines_on_a_terminal_steer_nothing(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().prompt("go").raw(b"\x1b[2J\xff").answer("Done."))
    read = invocation.read
    monkeypatch.setattr(invocation, "read", lambda: on_terminal(read(), shows_output=True, height=9999))
    shown = sessgit.out("show", "5e55", "--raw")
    assert "\x1b" not in shown
    assert "\ufffd[2J\ufffd\n" in shown


# Harmless, and quick


def test_nothing_from_a_transcript_steers_the_terminal(sessgit: Shell) -> None:
    evil = "\x1b]0;owned\x07red \x1b[31m\u202egnp.exe\r\x9b2J \x08"
    talk = sessgit.talk().prompt(evil).answer(evil).tool(evil, {evil: evil, "command": evil}, evil)
    talk.tool("Edit", {"file_path": evil, "old_string": evil, "new_string": evil + "x"}, evil)
    talk.tool("Bash", {"command": evil, "description": evil}, evil, error=True).user(evil, isMeta=True).title(evil)
    sessgit.recorded(talk)
    for address in ("5e55", "5e55@0", "5e55@1", *(f"5e55@1.{n}" for n in range(1, 8))):
        for more in ((), ("--full",)):
            said = sessgit("show", address, *more)
            assert said.code == 0, said
            assert not {"\x1b", "\x07", "\u202e", "\r", "\x9b", "\x08"} & set(said.out + said.err), address


def test_on_a_terminal_with_colours(parser: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    read = invocation.read
    monkeypatch.setattr(invocation, "read", lambda: on_terminal(read(), colour=True))
    screen = pyte.Screen(80, 30)
    pyte.Stream(screen).feed(parser.out("show", "5e55@1").replace("\n", "\r\n"))
    lines = [line.rstrip() for line in screen.display]
    place = lines.index("1.2  Write  lexer.py                                                    ok  1.0s")
    assert lines[place : place + 8] == [
        lines[place],
        "     @@ -0,0 +1,2 @@",
        "     +def lex(text):",
        "     +    yield text",
        "",
        "1.3  It is written.",
        "",
        "      • lex yields one token",
    ]
    assert screen.buffer[place + 2][6].fg == "green"
    assert screen.buffer[place + 7][8].fg == "cyan"
    plain_again = re.sub(r"\x1b\[[0-9;]*m", "", parser.out("show", "5e55@2.4"))
    assert plain_again.splitlines()[3] == "pytest -q"


def test_a_damaged_turn_is_told(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    store = stores.Store(sessgit.store)
    tip = document(sessgit, "5e55@1")["commit"]
    commit = store.commit(tip)
    tree = store.repo.edit_tree(commit.tree, {"turns/0000/000001/transcript.jsonl": None})
    head = f"refs/heads/{SESSION}"
    old = document(sessgit, "5e55")["commit"]
    store.repo.move(head, old, store.repo.write_commit(tree, list(commit.parents), commit.message, commit.time))
    done = sessgit("show", "5e55@1")
    assert (done.code, done.err.splitlines()[0]) == (6, f"Error: turn 1 of {SESSION} has no lines.")
    assert sessgit("log", "5e55", "-p") == done
    other = sessgit.talk("0b2d7f10-0000-4000-8000-00000000000b").prompt("two").tool("Read", {"file_path": "/a.py"})
    sessgit.out("import", str(sessgit.keep(other.answer("Read."))))
    remove_cache(StorePaths(sessgit.store).index)
    assert [found["id"] for found in sessgit.json("ls", "--", "/a.py")["sessions"]] == [
        "0b2d7f10-0000-4000-8000-00000000000b"
    ]


# Texts


@given(st.text(max_size=200), st.integers(8, 60))
def test_wrapped_lines_fit_and_lose_nothing(said: str, columns: int) -> None:
    line = " ".join(plain(said))
    parts = list(wrap(line, columns))
    assert all(text.width(part) <= columns for part in parts)
    assert "".join("".join(parts).split()) == "".join(line.split())


def test_wrapping() -> None:
    assert list(wrap("  a b c", 5)) == ["  a b", "  c"]
    assert list(wrap("abcdefgh ij", 4)) == ["abcd", "efgh", "ij"]
    assert list(wrap("最新の状態に", 5)) == ["最新", "の状", "態に"]
    assert list(wrap("", 5)) == [""]


def test_durations() -> None:
    assert [duration(n) for n in (None, 0.04, 9.96, 61.2, 3599, 7500)] == [
        "",
        "0.0s",
        "10s",
        "1m 1s",
        "59m 59s",
        "2h 5m",
    ]
