"""The places of lines in files that changed underneath: after a restore with words replaced, on another machine."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import given, settings
from hypothesis import strategies as st
from pingpong import pair, uuids
from plain import Git, Keep, run_git
from shell import Shell
from strategies import SECRET
from transcripts import OTHER, SESSION, Talk

from sessgit.branch import restore
from sessgit.history import reassemble
from sessgit.history.reassemble import Piece
from sessgit.model.conversation.message import Extent
from sessgit.model.line_list import LineFile
from sessgit.store import recorder_state
from sessgit.store.store import Store

SHORT = "export DB_PASSWORD=Tr0ub4dor3"
LONG = f"{SECRET} and {SECRET}, or {SECRET}"
"""One is shorter than what replaces it, the other longer."""


def of_talk(talk: Talk) -> list[str]:
    return [uuid for uuid in (json.loads(line).get("uuid", "") for line in talk.lines) if uuid]


def adopt(talk: Talk, path: Path) -> None:
    """The talk goes on in the file that lies there now."""
    talk.lines[:] = path.read_bytes().split(b"\n")[:-1]


def back(store: Store, claude: Path) -> Path:
    """The transcript deleted and restored."""
    path = claude / f"{SESSION}.jsonl"
    path.unlink()
    restore.restore_session(store, SESSION, claude_homes(claude.parents[1]))
    return path


@pytest.mark.parametrize("words", [SHORT, LONG, f"{LONG} {SHORT}"])
def test_a_restored_file_in_which_words_stand_replaced_goes_on(
    words: str, keep: Keep, store: Store, claude: Path
) -> None:
    talk = Talk().turns("one", f"use {words}", "three")
    keep(talk, final=True)
    for number in range(4):
        path = back(store, claude)
        assert uuids(path.read_bytes()) == of_talk(talk)
        adopt(talk, path)
        keep(talk.turns(f"more {number}", f"{words} again"), final=True)
    every = of_talk(talk)
    assert uuids(back(store, claude).read_bytes()) == every
    assert not keep(claude / f"{SESSION}.jsonl", final=True).changed


def test_the_last_turn_goes_on_in_the_restored_file(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().turns("one", f"use {LONG}").prompt(f"and {SHORT}").answer("Well.")
    keep(talk)
    adopt(talk, back(store, claude))
    keep(talk.answer("And more.").stop_lines(), final=True)
    path = back(store, claude)
    assert uuids(path.read_bytes()) == of_talk(talk)
    assert path.read_bytes() == talk.data
    adopt(talk, path)
    keep(talk.turns("after"), final=True)
    assert back(store, claude).read_bytes() == talk.data


def test_a_rewind_in_the_restored_file(keep: Keep, store: Store, claude: Path, git: Git) -> None:
    talk = Talk().turns("one", f"use {LONG}", "three")
    keep(talk, final=True)
    adopt(talk, back(store, claude))
    keep(talk.rewind(1).turns("other two"), final=True)
    adopt(talk, back(store, claude))
    keep(talk.rewind(3).turns(f"four with {SHORT}"), final=True)
    path = back(store, claude)
    assert uuids(path.read_bytes()) == of_talk(talk)
    refs = git("for-each-ref")
    recorder_state.delete_cursor(store.paths, SESSION)
    assert not keep(path, final=True).changed
    assert git("for-each-ref") == refs


def test_a_fork_of_ours_whose_beginning_has_words_replaced_goes_on(sessgit: Shell) -> None:
    for words in (SHORT, LONG):
        talk = sessgit.talk(OTHER if words == LONG else SESSION).turns("one", f"use {words}")
        sessgit.recorded(talk)
        fork = sessgit.json("fork", talk.session, "--at", "2")
        path = Path(fork["transcript"])
        path.unlink()
        sessgit("restore", fork["id"])
        copy = Talk(fork["id"], cwd=str(sessgit.project))
        copy.file.counts = dict.fromkeys("abcd", 500)
        copy.file.seconds = 20_000
        for number in range(3):
            copy.lines[:] = path.read_bytes().split(b"\n")[:-1]
            copy.leaf = uuids(path.read_bytes())[-1]
            copy.bare("mode", mode="normal").turns(f"{number} {words}")
            data = copy.data
            path.write_bytes(data)
            os.utime(path, (path.stat().st_mtime - 120,) * 2)
            sessgit.out("log", fork["id"])
            path.unlink()
            sessgit("restore", fork["id"])
            assert uuids(path.read_bytes()) == uuids(data)
            assert path.read_bytes().count(b'"type":"mode"') == data.count(b'"type":"mode"')
            assert path.read_bytes().count(b'"type":"last-prompt"') == data.count(b'"type":"last-prompt"')


def test_a_copy_by_the_client_with_words_replaced_goes_on(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().turns("one", f"use {LONG} {SHORT}")
    keep(talk, final=True)
    copy = talk.fork_session().turns("two of the copy")
    keep(copy, final=True)
    path = claude / f"{OTHER}.jsonl"
    for number in range(3):
        path.unlink()
        restore.restore_session(store, OTHER, claude_homes(claude.parents[1]))
        assert uuids(path.read_bytes()) == of_talk(copy)
        adopt(copy, path)
        keep(copy.turns(f"{number} {LONG}"), final=True)


def test_a_merge_into_a_file_that_is_gone_comes_last(sessgit: Shell) -> None:
    """Its lines get places behind those of the last of several files."""
    ours = sessgit.talk().turns("one", f"use {LONG}")
    theirs = ours.fork_session(OTHER).turns("theirs")
    path = sessgit.recorded(ours, theirs)
    path.unlink()
    sessgit("restore", SESSION)
    adopt(ours, path)
    path = sessgit.recorded(ours.turns(f"three {SHORT}"))
    every = uuids(path.read_bytes())
    path.unlink()
    assert sessgit("merge", OTHER, "--into", SESSION, "--mode", "graft").code == 0
    sessgit("restore", SESSION)
    found = uuids(path.read_bytes())
    assert found[: len(every)] == every
    assert len(found) == len(every) + 2


MOVES = ("turn", "secret", "secret", "long", "grow", "rewind", "keep", "wipe", "wipe", "other", "other")


@settings(max_examples=25)
@given(st.data())
def test_no_line_is_ever_lost(data: st.DataObject) -> None:
    """Whatever is said, rewound, deleted and restored, on two machines by turns: all of it comes back, in order."""
    with tempfile.TemporaryDirectory() as folder:
        here, there = pair(Path(folder), Talk().turns(f"one {SHORT}"))
        talk = here.talk
        for move in data.draw(st.lists(st.sampled_from(MOVES), max_size=12)):
            if move in ("turn", "secret", "long"):
                talk.turns({"turn": "go on", "secret": f"use {SHORT}", "long": f"use {LONG}"}[move])
            elif move == "grow":
                talk.answer("And more.")
            elif move == "rewind":
                talk.rewind(data.draw(st.integers(0, len(talk.prompts)))).turns("otherwise")
            elif move == "keep":
                here.keep(final=data.draw(st.booleans()))
            else:
                here.keep()
                if move == "wipe":
                    here.path.unlink()
                else:
                    here, there = there, here
                    here.take(there)
                every = of_talk(talk)
                here.restore()
                assert here.uuids == every
                here.adopt()
        here.keep()
        refs = here.refs()
        recorder_state.delete_cursor(here.store.paths, SESSION)
        assert not here.record().changed
        assert here.refs() == refs
        assert uuids(restore.rebuild_file(here.store, SESSION).data) == of_talk(talk)
        assert run_git(here.store.path, "fsck", "--strict", "--no-dangling") == ""


# Pieces laid out


def piece(offset: int, *lines: bytes, file: int = 1) -> Piece:
    """Lines that stand there in a file."""
    return Piece(file, Extent(offset, sum(len(line) + 1 for line in lines), len(lines)), lines)


def test_bytes_between_pieces_are_missing_but_for_those_before_the_first_of_a_later_file() -> None:
    laid = reassemble.lay_out(
        [piece(24, b"two"), piece(10, b"one"), piece(7, b"three", file=2), piece(20, b"4", file=2)]
    )
    assert laid.data == LineFile([b"one", b"two", b"three", b"4"], False)
    assert (laid.missing, laid.file, laid.end) == (10 + 10 + 7, 2, 22)


@pytest.mark.parametrize(
    ("second", "there"),
    [
        (piece(4, b"two"), [b"one", b"two", b"six"]),
        (piece(8, b"six", b"ten"), [b"one", b"two", b"six", b"ten"]),
        (piece(4, b"two", b"six", b"ten"), [b"one", b"two", b"six", b"ten"]),
        (piece(8, b"ten"), [b"one", b"two", b"six", b"ten"]),
    ],
)
def test_lines_that_stand_there_already_are_not_laid_again(second: Piece, there: list[bytes]) -> None:
    laid = reassemble.lay_out([second, piece(0, b"one", b"two", b"six")])
    assert laid.data == LineFile(there, False)
    assert laid.missing == 0
