"""The scratchpad of a conversation: noted, shown, taken back, and carried along."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from kept import begins
from plain import Git, Keep, run_git
from shell import Shell
from strategies import REDACTED, SECRET
from transcripts import SESSION, Talk

from sessgit.branch import pad_changes
from sessgit.branch.pad_changes import EntryPlace
from sessgit.errors import MovedError, UsageError
from sessgit.history import pad_lists
from sessgit.model import pad as pads
from sessgit.store import layout
from sessgit.store.backend import Repository
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

NOW = 1772370000.0
LONG = "the grammar is ambiguous in one place only, where a minus follows a newline and nothing else does"


@begins
def recorded(shell: Shell) -> None:
    """A conversation of two turns."""
    shell.recorded(shell.talk().turns("write the lexer", "go on"))


@pytest.fixture
def talked(recorded: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The same, which is the current one."""
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
    return recorded


def noted(sessgit: Shell, *words: str) -> str:
    """The id of what a command notes."""
    before = {one["id"] for one in sessgit.json("pad", SESSION)["entries"]}
    sessgit.now += 1
    (made,) = [one for one in sessgit.json("pad", *words)["entries"] if one["id"] not in before]
    return str(made["id"])


def kinds(sessgit: Shell, address: str = SESSION) -> list[tuple[str, str]]:
    return [(one["kind"], one["text"]) for one in sessgit.json("pad", address)["entries"]]


def subject(sessgit: Shell, session: str = SESSION) -> str:
    return run_git(sessgit.store, "log", "-1", "--format=%s", session).rstrip("\n")


# From the beginning to the end


def test_an_empty_one_says_how_to_begin(talked: Shell) -> None:
    assert talked.out("pad") == (
        "5e551011  write the lexer\nIts scratchpad is empty. Begin with: sessgit pad add insight TEXT\n"
    )
    done = talked("pad", "brief")
    assert (done.code, done.out, done.err) == (0, "", "The scratchpad is empty.\n")


def test_what_is_noted_is_shown(talked: Shell) -> None:
    first = noted(talked, "add", "claim", "A hand-written lexer", "is enough")
    second = noted(talked, "claim", "A trie is faster", "--turn", "1")
    noted(talked, "tension", "Speed stands against clear errors", "--between", f"{first[:4]},{second}")
    noted(talked, "insight", LONG)
    noted(talked, "evidence", "41 tests pass", "--source", "tests/test_lexer.py")
    noted(talked, "question", "What about Windows?")
    noted(talked, "file", "src/lexer.py")
    for words in (("stage", "shaping"), ("confidence", "0.4"), ("confidence", "0.7", "tests agree")):
        talked.now += 1
        assert talked("pad", *words).code == 0
    noted(talked, "thesis", "Use a hand-written lexer.\nA trie for keywords.")
    noted(talked, "pass", "critique", "two weak spots")
    talked.out("pad", "cycle")
    noted(talked, "risk", "unicode identifiers")
    ids = iter(one["id"][:4] for one in talked.json("pad")["entries"] if one["kind"] not in ("confidence", "cycle"))
    insight, evidence, risk, question, claim, other, tension, thesis, a_pass, file = ids
    assert (
        talked.out("pad")
        == f"""\
5e551011  write the lexer
Stage        shaping  ·  cycle 2
Confidence   0.7  (was 0.4)

Thesis (turn 2)
  {thesis}  Use a hand-written lexer.
        A trie for keywords.

Claims
  {claim}  A hand-written lexer is enough (turn 2)
  {other}  A trie is faster (turn 1)

Tensions
  {tension}  Speed stands against clear errors (between {claim} and {other}, turn 2)

Insights
  {insight}  the grammar is ambiguous in one place only, where a minus follows a
        newline and nothing else does (turn 2)

Evidence
  {evidence}  41 tests pass (turn 2, tests/test_lexer.py)

Risks
  {risk}  unicode identifiers (turn 2)

Questions
  {question}  What about Windows? (turn 2)

Passes
  {a_pass}  two weak spots (critique, cycle 1, turn 2)

Files
  {file}  src/lexer.py (turn 2)

New          6, 1 in each cycle
Next         Continue with critiquing: sessgit pad stage critiquing
"""
    )
    assert (
        talked.out("pad", "brief")
        == """\
We continue “write the lexer”. This is what we have noted so far.

Current state: stage shaping, cycle 2, confidence 0.7.

Thesis:
Use a hand-written lexer.
A trie for keywords.

Claims:
- A hand-written lexer is enough
- A trie is faster

Evidence:
- 41 tests pass [tests/test_lexer.py]

Insights:
- the grammar is ambiguous in one place only, where a minus follows a newline and nothing else does

Risks:
- unicode identifiers

Open tensions:
- Speed stands against clear errors
  - A hand-written lexer is enough
  - A trie is faster

Open questions:
- What about Windows?

Files to look at:
- src/lexer.py

Suggested next: Continue with critiquing.
"""
    )


@pytest.mark.parametrize("columns", [40, 60])
def test_it_folds(talked: Shell, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    talked.out("pad", "insight", LONG, "--source", "x" * 100)
    talked.out("pad", "thesis", "T" * 100)
    talked.out("pad", "stage", "shaping")
    monkeypatch.setenv("COLUMNS", str(columns))
    assert max(map(len, talked.out("pad").splitlines())) <= columns
    assert max(map(len, talked.out("pad", "claim", LONG).splitlines())) <= columns


def test_what_a_change_says(talked: Shell) -> None:
    def said(*words: str) -> str:
        talked.now += 1
        return talked.out("pad", *words)

    claim = said("claim", "a")[:4]
    assert said("claim", "b\nc").endswith("  claim  b\n")
    tension = said("tension", "a or b", "--between", claim)[:4]
    assert said("resolve", tension, "both") == f"{tension}  tension resolved  a or b\n"
    assert said("stage", "shaping") == "5e551011  stage shaping\n"
    assert said("stage", "gathering") == "5e551011  stage gathering  (was: shaping)\n"
    assert said("confidence", "0.5") == "5e551011  confidence 0.5\n"
    assert said("confidence", "1") == "5e551011  confidence 1  (was: 0.5)\n"
    assert said("confidence", "none") == "5e551011  no confidence  (was: 1)\n"
    assert said("cycle") == "5e551011  cycle 2\n"
    assert said("pass", "expansion", "long words").endswith("  expansion  long words\n")
    renamed = said("edit", claim, "a", "lexer")
    assert renamed.endswith("  claim  a lexer\n")
    assert talked.json("pad")["entries"][-1]["kind"] == "cycle"
    (between,) = [one["between"] for one in talked.json("pad")["entries"] if one["kind"] == "tension"]
    assert between[0][:4] == renamed[:4] != claim
    assert said("drop", renamed[:4]) == f"{renamed[:4]}  no claim  a lexer\n"
    assert said("compact") == "5e551011  nothing to compact\n"
    shown = said()
    assert "\n  " + tension + "  a or b (between " in shown
    assert "\n        resolved: both\n" in shown


def test_each_change_is_a_commit_that_undo_takes_back(talked: Shell) -> None:
    tips = [run_git(talked.store, "rev-parse", SESSION)]
    told = []
    steps = [
        ("insight", "a"), ("thesis", "b\nc"), ("pass", "critique", "d"), ("cycle",), ("confidence", ".5"),
        ("stage", "shaping"), ("question", "why?"),
    ]  # fmt: skip
    for words in steps:
        talked.now += 1
        talked.out("pad", *words)
        told.append(subject(talked))
        tips.append(run_git(talked.store, "rev-parse", SESSION))
    ident = talked.json("pad")["entries"][1]["id"]
    assert told == [
        "edit: insight “a”", "edit: thesis “b”", "edit: critique “d”", "edit: cycle 2", "edit: confidence 0.5",
        "edit: stage shaping", "edit: question “why?”",
    ]  # fmt: skip
    talked.out("pad", "resolve", ident)
    assert subject(talked) == "edit: question “why?” resolved"
    changed = run_git(talked.store, "diff", "--name-only", f"{SESSION}~1", SESSION)
    assert changed == "pad/questions.jsonl\n"
    message = run_git(talked.store, "log", "-1", "--format=%b", SESSION).strip()
    assert message == f"Session: {SESSION}\nEvent: edit"
    assert [one["command"] for one in talked.json("ops")["operations"][:8]] == ["pad"] * 8
    for tip in reversed(tips):
        assert talked.out("undo").startswith("Undone: 5e551011: ")
        assert run_git(talked.store, "rev-parse", SESSION) == tip
    assert run_git(talked.store, "ls-tree", SESSION, "pad") == ""
    assert run_git(talked.store, "fsck", "--strict", "--no-dangling") == ""


def test_a_confidence_that_was_said_elsewhere_is_part_of_its_history(talked: Shell) -> None:
    for words in (("pad", "confidence", "0.4"), ("edit", "--confidence", "0.6"), ("pad", "confidence", "0.9")):
        talked.now += 1
        talked.out(*words)
        if words[0] == "edit":
            assert "\nConfidence   0.6  (was 0.4)\n" in talked.out("pad")
    assert talked.json("pad")["history"] == [0.4, 0.9]
    talked.out("edit", "--confidence", "none")
    assert "\nConfidence   none  (was 0.4, 0.9)\n" in talked.out("pad")


def test_dropping_the_last_entry_leaves_no_empty_list(talked: Shell) -> None:
    ident, other = noted(talked, "insight", "a"), noted(talked, "risk", "b")
    told = talked.out("pad", "drop", ident, other, ident)
    assert told == f"{ident[:4]}  no insight  a\n{other[:4]}  no risk  b\n"
    assert subject(talked) == "edit: 2 entries less on the pad"
    assert run_git(talked.store, "ls-tree", SESSION, "pad") == ""


def test_a_thesis_takes_the_place_of_the_one_before(talked: Shell) -> None:
    noted(talked, "thesis", "first")
    noted(talked, "thesis", "second")
    (one,) = talked.json("pad")["entries"]
    assert (one["text"], one["version"]) == ("second", 2)
    assert "\nThesis (v2, turn 2)\n" in talked.out("pad")
    assert "first" in run_git(talked.store, "show", f"{SESSION}~1:pad/thesis.jsonl")


def test_it_is_shown_as_of_a_turn(talked: Shell) -> None:
    talked.out("pad", "insight", "after two")
    talked.recorded(sessgit_goes_on := talked.talk().turns("write the lexer", "go on", "finish"))
    assert sessgit_goes_on.session == SESSION
    talked.out("pad", "insight", "after three")
    assert [text for _, text in kinds(talked, "5e55@3")] == ["after two", "after three"]
    assert [text for _, text in kinds(talked, "5e55@2")] == ["after two"]
    assert kinds(talked, "5e55@1") == kinds(talked, "5e55@0") == []
    done = talked("pad", "5e55@2.1")
    assert (done.code, done.err) == (
        2,
        "Error: pad needs a whole turn, but the address names a cell.\n"
        "Hint: `sessgit pad 5e551011@2`, or `sessgit show 5e551011@2.1` for the cell.\n",
    )


def test_an_entry_as_it_is_stored(talked: Shell) -> None:
    talked.out("pad", "evidence", "41 ☃", "--source", "tests", "--turn", "1")
    assert run_git(talked.store, "show", f"{SESSION}:pad/evidence.jsonl") == (
        '{"cycle":1,"id":"60b12fc4","kind":"evidence","session":"5e551011-0000-4000-8000-000000000001",'
        '"source":"tests","text":"41 \\u2603","time":"2026-03-01T13:00:00.000Z","turn":1}\n'
    )


def test_as_json(talked: Shell) -> None:
    done = talked.json("pad", "question", "why?")
    commit = run_git(talked.store, "rev-parse", SESSION).strip()
    (entry,) = done["entries"]
    assert entry == {
        "id": entry["id"], "kind": "question", "text": "why?", "time": "2026-03-01T13:00:00.000Z",
        "session_id": SESSION, "turn": 2, "cycle": 1, "source": "", "between": [], "resolved": None, "answer": "",
        "pass": "", "version": None, "value": None,
    }  # fmt: skip
    assert done == {
        "id": SESSION, "stage": "", "cycle": 1, "confidence": None, "history": [], "found": [1], "diminishing": False,
        "next": {"what": "Write down what follows from it", "command": "sessgit pad add claim TEXT"},
        "entries": [entry], "unreadable_lines": 0, "commit": commit,
    }  # fmt: skip
    assert talked.json("pad") == done | {"commit": None}
    told = json.loads(talked.out("pad", "brief", "--json"))
    assert (told["id"], told["text"].splitlines()[-1]) == (SESSION, "Suggested next: Write down what follows from it.")


def test_doubles_become_one_and_old_passes_go(talked: Shell) -> None:
    store = Store(talked.store)
    noted(talked, "pass", "expansion", "much")
    for _ in range(3):
        talked.now += 1
        talked.out("pad", "cycle")
    noted(talked, "pass", "critique", "little")
    first = noted(talked, "claim", "A trie is faster")
    tip = run_git(talked.store, "rev-parse", SESSION).strip()
    (one,) = pad_lists.read_pad(store, tip).of("claim")
    other = pads.entry_with_line(
        pads.Entry("", "claim", "A  trie\nis faster", "2026-03-01T13:30:00.000Z", "e90c55aa", source="bench.py")
    )
    put(store, tip, "claims", one.line + b"\n" + other.line + b"\n" + b'"no entry"\n' + one.line + b"\n")
    assert "2 lines" not in talked.out("pad")
    assert talked.out("pad", "compact", "5e55") == (
        "5e551011  1 duplicate merged, 1 pass removed\n"
        f"  {other.id[:4]}  claim  A  trie\n"
        f"  {pad_lists.read_pad(store, tip).of('pass')[0].id[:4]}  expansion  much\n"
    )
    assert subject(talked) == "edit: pad compacted: 1 double and 1 pass"
    found = talked.json("pad")
    assert [(e["kind"], e["text"], e["source"]) for e in found["entries"] if e["kind"] in ("claim", "pass")] == [
        ("claim", "A trie is faster", "bench.py"), ("pass", "little", "")
    ]  # fmt: skip
    assert first in {e["id"] for e in found["entries"]}
    assert found["unreadable_lines"] == 1
    assert run_git(talked.store, "show", f"{SESSION}:pad/claims.jsonl").splitlines()[1:] == ['"no entry"']
    again = json.loads(talked.out("pad", "compact", "--json"))
    assert again == {
        "schema": "sessgit.pad/v1", "id": SESSION, "doubles": [], "passes": [], "commit": None,
    }  # fmt: skip


def put(store: Store, tip: str, name: str, data: bytes, *, head: str = SESSION) -> None:
    """Writes a list as somebody else would."""
    from sessgit.model.conversation.message import Message

    message = Message("edit: pad", (("Session", head), ("Event", "edit")))
    changes: Any = {f"pad/{name}.jsonl": (store.repo.write_blob(data), False)}
    store.repo.move(
        layout.head_ref(head), tip, store.write_commit(tip, changes, store.state(tip), message, [tip], int(NOW))
    )


# Words


def test_words_from_standard_input(talked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    given = "two lines  \r\nof\ttext\n\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode() + b"\xff")))
    talked.out("pad", "thesis", "-")
    assert kinds(talked) == [("thesis", "two lines\nof  text\n\n\ufffd")]


def test_secrets_are_replaced(talked: Shell) -> None:
    done = talked("pad", "insight", f"use {SECRET}", "--source", SECRET)
    assert (done.code, done.err) == (0, "2 secrets redacted.\n")
    assert REDACTED in done.out
    assert SECRET not in run_git(talked.store, "log", "--all", "-p", "--format=%B")
    assert all(SECRET.encode() not in path.read_bytes() for path in talked.store.rglob("*") if path.is_file())
    talked("config", "record.redact", "false")


def test_what_says_the_same_changes_nothing(talked: Shell) -> None:
    talked.out("pad", "claim", "a  b")
    talked.out("pad", "thesis", "t")
    talked.out("pad", "stage", "shaping")
    ident = talked.json("pad")["entries"][0]["id"][:4]
    tip = run_git(talked.store, "rev-parse", SESSION)
    for words in (("claim", "a b"), ("thesis", "t"), ("stage", "shaping"), ("edit", ident, "a  b"), ("compact",)):
        done = talked("pad", *words)
        assert (done.code, done.err) == (0, "" if words == ("compact",) else "Nothing changed.\n")
        assert done.out
    assert run_git(talked.store, "rev-parse", SESSION) == tip


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (
            ("add",),
            2,
            "Error: cannot understand: pad add.\nHint: The kinds are insight, evidence, risk, counter, pattern, "
            "question, claim, tension, file.\n",
        ),
        (
            ("add", "joke", "x"),
            2,
            "Error: cannot understand: pad add joke x.\nHint: The kinds are insight, evidence, risk, counter, "
            "pattern, question, claim, tension, file.\n",
        ),
        (
            ("claim",),
            2,
            "Error: cannot understand: pad claim.\nHint: `sessgit pad --help` lists the actions.\n",
        ),
        (
            ("claim", " "),
            2,
            "Error: the text of the claim is missing.\nHint: `sessgit pad --help` lists the actions.\n",
        ),
        (
            ("claim", "x" * 2001),
            2,
            "Error: the claim has 2,001 characters.\nHint: At most 2,000 are allowed.\n",
        ),
        (
            ("thesis", "x" * 20_001),
            2,
            "Error: the thesis has 20,001 characters.\nHint: At most 20,000 are allowed.\n",
        ),
        (
            ("claim", "a\x1b[2Jb"),
            2,
            "Error: the claim contains control characters.\nHint: Only line breaks are allowed.\n",
        ),
        (
            ("claim", "a", "--turn", "3"),
            4,
            "Error: 5e551011 has no turn 3; it has 2 turns.\nHint: `sessgit log 5e551011` lists them.\n",
        ),
        (
            ("claim", "a", "--between", "00"),
            2,
            "Error: cannot understand: pad claim a.\nHint: `sessgit pad --help` lists the actions.\n",
        ),
        (
            ("tension", "a", "--between", "zz"),
            4,
            "Error: no entry of the scratchpad has an id that starts with “zz”.\nHint: `sessgit pad` lists them.\n",
        ),
        (
            ("drop", "zz"),
            4,
            "Error: no entry of the scratchpad has an id that starts with “zz”.\nHint: `sessgit pad` lists them.\n",
        ),
        (
            ("pass", "nap", "x"),
            2,
            "Error: cannot understand: pad pass nap x.\n"
            "Hint: `sessgit pad pass KIND TEXT`; KIND is expansion, compression, critique, synthesis.\n",
        ),
        (
            ("stage", "critiquing"),
            2,
            "Error: shaping comes before critiquing.\nHint: To set it anyway: `sessgit edit --stage critiquing`\n",
        ),
        (
            ("confidence", "2"),
            2,
            "Error: “2” is not a confidence.\nHint: Use a number from 0 to 1, or none to remove it.\n",
        ),
        (
            ("claim", "a", "--into", "5e55@1"),
            2,
            "Error: only a whole conversation can be edited, not turn 1.\n"
            "Hint: Leave out the turn: 5e551011. To mark a turn: `sessgit tag NAME 5e551011@1`\n",
        ),
        (
            ("5e55", "5e55"),
            2,
            "Error: cannot understand: pad 5e55 5e55.\nHint: `sessgit pad --help` lists the actions.\n",
        ),
    ],
)
def test_what_is_refused_changes_nothing(talked: Shell, words: tuple[str, ...], code: int, error: str) -> None:
    before = run_git(talked.store, "for-each-ref")
    done = talked("pad", *words)
    assert (done.code, done.out, done.err) == (code, "", error)
    assert run_git(talked.store, "for-each-ref") == before


def test_only_what_is_open_is_resolved_and_only_claims_stand_against_each_other(talked: Shell) -> None:
    ident = noted(talked, "insight", "a")
    done = talked("pad", "resolve", ident)
    assert (done.code, done.err) == (
        2,
        f"Error: {ident[:4]} is neither a tension nor a question.\n"
        f"Hint: Only tensions and questions can be resolved.\n",
    )
    done = talked("pad", "tension", "b", "--between", ident)
    assert (done.code, done.err) == (2, f"Error: {ident} is not a claim.\nHint: A tension is between claims.\n")


# Limits


def test_a_list_has_an_end(keep: Keep, store: Store, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(Talk().turns("one"))
    monkeypatch.setattr(pads, "MOST", 2)
    for number in range(2):
        pad_changes.perform_change(
            Context(index, now=lambda at=NOW + number: at),
            SESSION,
            pad_changes.add_entry("claim", f"c{number}", EntryPlace()),
        )
    with pytest.raises(UsageError, match="the list “claims” already has 2 entries") as refused:
        pad_changes.perform_change(
            Context(index, now=lambda: NOW + 2), SESSION, pad_changes.add_entry("claim", "c2", EntryPlace())
        )
    assert "sessgit pad compact" in refused.value.hint
    pad_changes.perform_change(
        Context(index, now=lambda: NOW + 3), SESSION, pad_changes.add_entry("risk", "r", EntryPlace())
    )


def test_a_pad_has_an_end_and_can_be_made_smaller(
    keep: Keep, store: Store, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(Talk().turns("one"))
    made = pad_changes.perform_change(
        Context(index, now=lambda: NOW), SESSION, pad_changes.add_entry("claim", "c", EntryPlace())
    )
    monkeypatch.setattr(pads, "LARGEST", 10)
    with pytest.raises(UsageError, match="at most 10 B are allowed"):
        pad_changes.perform_change(
            Context(index, now=lambda: NOW + 1), SESSION, pad_changes.add_entry("claim", "d", EntryPlace())
        )
    (entry,) = made.pad.entries
    assert (
        pad_changes.perform_change(
            Context(index, now=lambda: NOW + 2), SESSION, pad_changes.drop_entries([entry.id])
        ).pad.entries
        == ()
    )


# In nobody's way


def test_recording_goes_on_over_it_and_a_rewind_carries_it_along(
    keep: Keep, store: Store, index: Index, git: Git
) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    pad_changes.perform_change(
        Context(index, now=lambda: NOW), SESSION, pad_changes.add_entry("claim", "a", EntryPlace())
    )
    keep(talk.turns("three"))
    pad_changes.perform_change(
        Context(index, now=lambda: NOW + 1), SESSION, pad_changes.change_confidence(0.5, "", EntryPlace())
    )
    keep(talk.rewind(1).turns("two again"))
    tip = git("rev-parse", SESSION).strip()
    assert [one.kind for one in pad_lists.read_pad(store, tip).entries] == ["claim", "confidence"]
    assert (store.state(tip).turns, store.state(tip).confidence) == (2, 0.5)


def test_a_branch_that_moves_meanwhile_is_read_anew(
    keep: Keep, store: Store, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine's process, which holds no lock here, was faster."""
    keep(Talk().turns("one"))
    pad_changes.perform_change(
        Context(index, now=lambda: NOW), SESSION, pad_changes.add_entry("claim", "a", EntryPlace())
    )
    move, raced = Repository.move, list[str]()

    def late(self: Repository, name: str, old: str | None, new: str | None) -> None:
        if not raced and old:
            raced.append(name)
            state = store.state(old)
            from sessgit.model.conversation.message import Message

            message = Message("edit: other", (("Session", SESSION), ("Event", "edit")))
            data = pad_lists.read_lists(store, old)["claims"] + pads.entry_with_line(
                pads.Entry("", "claim", "raced", "2026-03-01T13:00:00.000Z", "other")
            ).line + b"\n"  # fmt: skip
            changes: Any = {"pad/claims.jsonl": (store.repo.write_blob(data), False)}
            move(self, name, old, store.write_commit(old, changes, state, message, [old], int(NOW)))
            raise MovedError("it moved")
        move(self, name, old, new)

    monkeypatch.setattr(Repository, "move", late)
    done = pad_changes.perform_change(
        Context(index, now=lambda: NOW + 1), SESSION, pad_changes.add_entry("claim", "b", EntryPlace())
    )
    assert [one.text for one in done.pad.entries] == ["a", "raced", "b"]


def test_an_archived_session_is_noted_on_where_it_is(talked: Shell) -> None:
    talked.out("archive", "5e55")
    talked.out("pad", "claim", "late", "--into", "5e55")
    assert kinds(talked, "5e55") == [("claim", "late")]
    assert run_git(talked.store, "for-each-ref", "refs/heads") == ""


def test_resume_hands_it_over(talked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []

    def execvp(program: str, arguments: list[str]) -> None:
        ran.append(arguments)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execvp", execvp)
    done = talked("resume", "5e55", "--brief")
    assert done.err == "Its scratchpad is empty: starting without a brief.\n"
    talked.out("pad", "thesis", "it's done")
    brief = talked.out("pad", "brief").rstrip("\n")
    talked("resume", "5e55", "--brief")
    assert ran == [["claude", "--resume", SESSION], ["claude", "--resume", SESSION, brief]]
    printed = talked.out("resume", "5e55", "--brief", "--print")
    assert printed.startswith(f"claude --resume {SESSION} 'We continue “write the lexer”.")
    assert "it'\"'\"'s done" in printed
    assert Path(talked.store).exists()
