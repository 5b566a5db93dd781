"""`sessgit restore` of a conversation with a name: the client's own list shows it, and no byte is lost."""

from __future__ import annotations

import os

import pytest
from homes import claude_homes
from shell import Shell
from transcripts import SESSION

from sessgit.agents.claude import writer as transcript
from sessgit.branch import restore
from sessgit.cli import text
from sessgit.store.store import Store


def name_line(name: str) -> bytes:
    return f'{{"type":"custom-title","customTitle":"{name}","sessionId":"{SESSION}"}}\n'.encode()


def test_a_line_with_a_name_that_is_not_recorded_yet_is_nothing_else(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    path.unlink()
    sessgit.out("rename", "5e55", "parser rewrite")
    first, again = (
        restore.restore_session(Store(sessgit.store), SESSION, claude_homes(sessgit.config)) for _ in range(2)
    )
    assert (first.already, first.named) == (False, True)
    assert (again.already, again.named, again.restored.missing) == (True, True, 0)


def test_the_name_reaches_the_clients_list(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one").title("Theirs"))
    data = path.read_bytes()
    path.unlink()
    sessgit.out("rename", "5e55", "parser rewrite")
    shown = f"~/{path.relative_to(sessgit.home)}"
    quality = f"{text.size(len(data))}, byte for byte as the client wrote it"
    assert sessgit.out("restore", "5e55") == (
        f"{shown} was restored:\n{quality},\nplus one line with its name for the client's list.\n"
    )
    assert path.read_bytes() == data + name_line("parser rewrite")
    again = f"{text.size(path.stat().st_size)}, byte for byte as the client wrote it"
    # The line is recorded as what it is: again at once, nothing is missing, nothing is written.
    assert sessgit.out("restore", "5e55") == f"{shown} already exists:\n{again}.\n"
    sessgit.out("rename", "5e55", "pratt")
    assert sessgit.json("restore", "5e55")["already"] is True
    assert sessgit.json("restore", "5e55", "--output", str(sessgit.home / "out"))["named"] is False

    # It comes back with all the rest; the later name follows.
    assert sessgit.json("restore", "5e55", "--verify")["same"] is True
    path.unlink()
    assert sessgit.json("restore", "5e55")["named"] is True
    assert path.read_bytes() == data + name_line("parser rewrite") + name_line("pratt")
    os.utime(path, (path.stat().st_mtime - 120,) * 2)
    whole = path.read_bytes()
    assert sessgit("import").code == 0
    path.unlink()
    assert sessgit.json("restore", "5e55")["named"] is False
    assert path.read_bytes() == whole

    # The client goes on behind it.
    talk = sessgit.talk().turns("one").title("Theirs")
    before = len(talk.data)
    talk.turns("two")
    with path.open("ab") as file:
        file.write(talk.data[before:])
    assert [turn["prompt"] for turn in sessgit.json("log", "5e55")["turns"]] == ["one", "two"]
    os.utime(path, (path.stat().st_mtime - 120,) * 2)
    whole = path.read_bytes()
    assert sessgit("import").code == 0
    path.unlink()
    assert sessgit.json("restore", "5e55")["exact"] is True
    assert path.read_bytes() == whole


def test_no_line_is_glued_to_a_torn_one(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    path = sessgit.keep(talk)
    with path.open("ab") as file:
        file.write(b'{"type":"last-pro')
    assert sessgit("import").code == 0
    sessgit.out("rename", "5e55", "parser rewrite")
    data = path.read_bytes()
    path.unlink()
    assert sessgit.json("restore", "5e55")["named"] is False
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (b"", ""),
        (b'{"type":"custom-title","customTitle":"a"}\n', "a"),
        (b'{"type":"custom-title","customTitle":"a"}\n{"type": "custom-title", "customTitle": "b"}\n{"x":1}\n', "b"),
        (b'{"type":"custom-title","customTitle":"a"}\n{"type":"user","message":"\\"custom-title\\""}\n', "a"),
        (
            b'{"type":"custom-title","customTitle":"a"}\n{"type":"custom-title","customTitle":7}\n{"type":"custom-title"',
            "a",
        ),
    ],
)
def test_the_title_that_a_transcript_gives(data: bytes, title: str) -> None:
    assert next(filter(None, map(transcript.title_of, reversed(data.split(b"\n")))), "") == title
