"""`sessgit bisect --cell-fails`: what the recorded calls say, read from as few turns as can be."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from plain import Keep
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.replay import bisect
from sessgit.replay.bisect import TurnRange
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

PYTEST = {"command": "python -m pytest"}


def trials(talk: Talk, outcomes: str) -> Talk:
    """A turn for each letter: `+` for tests that pass, `-` for such that fail, `.` for another call, `?` for one
    without a result, ` ` for none."""
    for number, outcome in enumerate(outcomes, start=1):
        talk.prompt(f"step {number}")
        if outcome in "+-":
            talk.tool("Bash", PYTEST, "2 passed" if outcome == "+" else "Exit code 1\n1 failed", error=outcome == "-")
        elif outcome == ".":
            talk.tool("Read", {"file_path": "/home/ada/shop/a.py"}, "x = 1", error=True)
        elif outcome == "?":
            talk.call_only("Bash", PYTEST).interrupt()
            continue
        talk.answer("Done.").stop_lines()
    return talk


def test_the_page(sessgit: Shell) -> None:
    sessgit.recorded(trials(sessgit.talk(), "++ .+++---"))
    assert (
        sessgit.out("bisect", "5e55", "--cell-fails", "^Bash .*pytest$")
        == """\
5e551011  step 1

Turn 8 is the first bad turn.

✓ 7  step 7
     7.2  Bash  python -m pytest                                        ok  1.0s
✗ 8  step 8
     8.2  Bash  python -m pytest                                    exit 1  1.0s

Tested 5 turns: 1✓ 6✓ 7✓ 8✗ 10✗

sessgit show 5e551011@8       what was said and done
sessgit fork 5e551011 --at 7  continue from before it
"""
    )


@pytest.mark.parametrize("columns", [40, 60])
def test_it_folds(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    sessgit.recorded(trials(sessgit.talk(), "++ .+++---" * 3 + "-"))
    monkeypatch.setenv("COLUMNS", str(columns))
    said = sessgit.out("bisect", "5e55", "--cell-fails", "pytest")
    assert max(map(len, said.splitlines())) <= columns
    assert "ok" in said and "exit 1" in said


@pytest.mark.parametrize(
    ("outcomes", "good", "bad"),
    [
        ("+-", 1, 2),
        (" +  - ", 2, 5),
        ("+?.-", 1, 4),
        ("..+..+..-..-..", 6, 9),
        ("+" * 30 + "-", 30, 31),
        ("+" + "-" * 30, 1, 2),
        ("+" + "." * 20 + "-", 1, 22),
    ],
)
def test_what_is_found(sessgit: Shell, outcomes: str, good: int, bad: int) -> None:
    sessgit.recorded(trials(sessgit.talk(), outcomes))
    value = sessgit.json("bisect", "5e55", "--cell-fails", "pytest")
    assert (value["last_good"]["turn"], value["first_bad"]["turn"]) == (good, bad)
    assert value["between"] == list(range(good + 1, bad + 1))
    assert value["exact"] == (bad == good + 1)
    assert [cell["address"] for cell in value["first_bad"]["cells"]] == [f"{bad}.2"]
    assert (value["first_bad"]["head"], value["code"], value["command"], value["pattern"]) == (
        None,
        None,
        None,
        "pytest",
    )


def test_a_call_that_fails_makes_the_turn_bad_whatever_came_after(sessgit: Shell) -> None:
    talk = trials(sessgit.talk(), "+").prompt("step 2")
    talk.tool("Bash", PYTEST, "Exit code 2", error=True).tool("Bash", PYTEST).answer("Done.").stop_lines()
    sessgit.recorded(talk)
    value = sessgit.json("bisect", "5e55", "--cell-fails", "pytest")
    assert [cell["address"] for cell in value["first_bad"]["cells"]] == ["2.2"]
    assert [cell["exit_code"] for cell in value["first_bad"]["cells"]] == [2]


def test_what_the_pattern_is_looked_for_in(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one").tool("Bash", {"command": "make\ntest"}, "ok").stop_lines()
    talk.prompt("two").tool("Bash", {"command": "make test"}, "no", error=True).stop_lines()
    sessgit.recorded(talk)
    for pattern in ("^Bash make test$", "(?i)MAKE", "B.*t", "."):
        assert sessgit.json("bisect", "5e55", "--cell-fails", pattern)["first_bad"]["turn"] == 2
    for pattern in ("MAKE", "^make", "Read"):
        assert sessgit("bisect", "5e55", "--cell-fails", pattern).code == 4


@pytest.mark.parametrize(
    ("outcomes", "arguments", "code", "message"),
    [
        ("-+", ["pytest"], 1, "turn 1, the first that can be tested, is already bad: call 1.2 failed."),
        (" -+", ["pytest"], 1, "turn 2, the first that can be tested, is already bad: call 2.2 failed."),
        ("+-+ ", ["pytest"], 1, "turn 3, the last that can be tested, is good: call 3.2 worked."),
        ("..", ["pytest"], 4, "none of the turns can be tested: no call matches."),
        (".+?", ["pytest"], 1, "only turn 2 can be tested, and it is good: call 2.2 worked."),
        ("+-", ["a{99999999999}"], 2, "“a{99999999999}” is not a regular expression: the repetition number is too "
        "large."),
        ("+-", ["("], 2, "“(” is not a regular expression: missing ), unterminated subpattern at position 0."),
        ("+-", ["pytest", "--timeout", "3s"], 2, "--timeout needs --run."),
        ("+-", ["pytest", "--run", "true"], 2,
         "bisect needs either --run COMMAND or --cell-fails REGEX."),
    ],
)  # fmt: skip
def test_what_cannot_be_answered(
    sessgit: Shell, outcomes: str, arguments: Sequence[str], code: int, message: str
) -> None:
    sessgit.recorded(trials(sessgit.talk(), outcomes))
    done = sessgit("bisect", "5e55", "--cell-fails", *arguments)
    first, hint = done.err.splitlines()
    assert (done.code, done.out, first) == (code, "", f"Error: {message}")
    assert hint.startswith("Hint: ")


def test_a_cell_is_no_place_to_look_up_to(sessgit: Shell) -> None:
    sessgit.recorded(trials(sessgit.talk(), "+-"))
    done = sessgit("bisect", "5e55@1.2", "--cell-fails", "x")
    assert (done.code, done.err.splitlines()[1]) == (
        2,
        "Hint: `sessgit bisect 5e551011@1`, or `sessgit show 5e551011@1.2` for the cell.",
    )


def test_a_fork_is_looked_at_as_a_whole(sessgit: Shell) -> None:
    sessgit.recorded(trials(sessgit.talk(), "++--"))
    fork = sessgit.json("fork", SESSION, "--no-restore")["id"]
    assert sessgit.json("bisect", fork, "--cell-fails", "pytest")["first_bad"]["turn"] == 3


def test_what_steers_a_terminal_is_harmless(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one \x1b[31mred").tool("Bash", {"command": "a \x1b]0;x\x07"}, "ok").stop_lines()
    talk.prompt("two\x07").tool("Bash", {"command": "a \x1b[2J"}, "no", error=True).stop_lines()
    sessgit.recorded(talk)
    said = sessgit.out("bisect", "5e55", "--cell-fails", "Bash")
    assert not {"\x1b", "\x07"} & set(said)


def test_only_turns_that_are_asked_are_read(
    store: Store, index: Index, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(trials(Talk(OTHER), "+" * 200 + "-" * 100))
    index.sync()
    branch = index.branch(OTHER)
    assert branch is not None
    read = list[int]()
    lines = store.lines
    monkeypatch.setattr(store, "lines", lambda commit, number: read.append(number) or lines(commit, number))
    found = bisect.bisect_by_cells(
        Context(index), branch, TurnRange(1, 300), re.compile("pytest"), lambda turn, left, answer: None
    )
    assert (found.good.turn, found.bad.turn) == (200, 201)
    assert len(read) <= 2 + (298).bit_length() + 1, "the ends, the search, and the turn that it is"


def test_each_step_is_told(store: Store, index: Index, keep: Keep) -> None:
    keep(trials(Talk(OTHER), "+++---"))
    index.sync()
    branch = index.branch(OTHER)
    assert branch is not None
    told = list[tuple[int, int, str]]()
    bisect.bisect_by_cells(
        Context(index), branch, TurnRange(1, 6), re.compile("pytest"),
        lambda turn, left, answer: told.append((turn, left, answer.verdict if answer else "")),
    )  # fmt: skip
    assert told == [
        (1, 6, ""), (1, 6, "good"), (6, 5, ""), (6, 5, "bad"), (4, 4, ""), (4, 4, "bad"), (3, 2, ""), (3, 2, "good"),
    ]  # fmt: skip
