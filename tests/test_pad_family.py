"""Scratchpads of conversations that come from each other, and of those that come from elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from merging import NEW, THEIRS, diverged, git, lines
from pictures import log
from plain import Keep, run_git
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.branch import pad_changes
from sessgit.branch.pad_changes import EntryPlace
from sessgit.history import pad_lists
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.conversation.message import Message
from sessgit.model.pad import Entry
from sessgit.record import tip_delivery
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

NOW = 1772370000.0
Said = list[tuple[str, str, str]]


@pytest.fixture
def sides(sessgit: Shell) -> Shell:
    return diverged(sessgit)


def say(shell: Shell, session: str, *words: str) -> str:
    """What is noted, at a moment of its own; its id."""
    before = {one["id"] for one in shell.json("pad", session)["entries"]}
    shell.now += 1
    after = shell.json("pad", "--into", session, *words)["entries"]
    return next((str(one["id"]) for one in after if one["id"] not in before), "")


def on_pad(shell: Shell, session: str) -> Said:
    return [(one["kind"], one["text"], one["session_id"][:8]) for one in shell.json("pad", session)["entries"]]


def tree(shell: Shell, session: str, changes: dict[str, bytes | dict[str, bytes]], *, whole: bool = False) -> None:
    """Puts anything where a pad is, as another program would."""
    store = Store(shell.store)
    tip = git(shell, "rev-parse", session)
    made: dict[str, Any] = {}
    for path, data in changes.items():
        if isinstance(data, bytes):
            made[path] = (store.repo.write_blob(data), False)
        else:
            made[path] = (store.write_folder(data), True)
    if whole:
        made = {layout.PAD: made[layout.PAD]}
    message = Message("edit: pad", (("Session", session), ("Event", "edit")))
    commit = store.write_commit(tip, made, store.state(tip), message, [tip], int(shell.now))
    store.repo.move(layout.head_ref(session), tip, commit)


# Children


def test_a_fork_takes_over_thesis_claims_and_open_tensions(sides: Shell) -> None:
    for words in (
        ("thesis", "t"), ("claim", "c"), ("insight", "i"), ("question", "q"), ("pass", "critique", "p"), ("cycle",),
        ("confidence", "0.5"), ("file", "f"), ("tension", "open"),
    ):  # fmt: skip
        say(sides, SESSION, *words)
    settled = say(sides, SESSION, "tension", "settled")
    say(sides, SESSION, "resolve", settled)
    tree(sides, SESSION, {"pad/insights.jsonl": b'"no entry"\n', "pad/plan.md": b"a plan"})
    made = sides.json("fork", SESSION)["id"]
    assert on_pad(sides, made) == [
        ("claim", "c", "5e551011"),
        ("tension", "open", "5e551011"),
        ("thesis", "t", "5e551011"),
    ]
    assert git(sides, "ls-tree", "-r", "--name-only", made, "pad").split() == [
        "pad/claims.jsonl", "pad/insights.jsonl", "pad/plan.md", "pad/tensions.jsonl", "pad/thesis.jsonl"
    ]  # fmt: skip
    found = sides.json("pad", made)
    assert (found["cycle"], found["history"], found["found"]) == (1, [], [0])
    shown = sides.out("pad", made)
    assert "\nThesis (turn 3, from 5e551011)\n" in shown
    assert "  c (turn 3, from 5e551011)\n" in shown
    assert "- c (from 5e551011)\n" in sides.out("pad", "brief", made)


def test_a_fork_at_a_turn_takes_over_what_was_said_by_then(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk)
    say(sessgit, SESSION, "claim", "after one")
    sessgit.recorded(talk.turns("two"))
    say(sessgit, SESSION, "claim", "after two")
    for turn, claims in (("1", ["after one"]), ("2", ["after one", "after two"]), ("2.1", ["after one"])):
        made = sessgit.json("fork", SESSION, "--at", turn, "--no-restore")["id"]
        assert [text for _, text, _ in on_pad(sessgit, made)] == claims


def test_a_fork_of_the_client_takes_over_the_same(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk)
    for words in (("claim", "c"), ("insight", "i")):
        say(sessgit, SESSION, *words)
    sessgit.recorded(talk.turns("two"))
    sessgit.recorded(talk.fork_session(THEIRS).turns("three"))
    assert on_pad(sessgit, THEIRS) == [("claim", "c", "5e551011")]
    assert len(on_pad(sessgit, SESSION)) == 2


# Merges


def test_a_merge_keeps_the_claims_of_both_and_whose_they_are(sides: Shell) -> None:
    say(sides, SESSION, "claim", "ours")
    say(sides, THEIRS, "claim", "theirs")
    say(sides, THEIRS, "thesis", "A trie.")
    tension = say(sides, THEIRS, "tension", "speed or words")
    say(sides, THEIRS, "resolve", tension, "both")
    say(sides, THEIRS, "cycle")
    say(sides, THEIRS, "confidence", "0.5")
    plan = sides.out("merge", THEIRS, "--into", SESSION, "--dry-run").splitlines()
    assert plan[2:] == [
        "  union        files 0 + 2 → 2 · claims 1 + 1 → 2 · confidence 0 + 1 → 1",
        "               cycles 0 + 1 → 1 · tensions 0 + 1 → 1 · thesis 0 + 1 → 1",
        "  take         confidence 0.5 (theirs)",
    ]
    sides.out("merge", THEIRS, "--into", SESSION)
    shown = sides.out("pad", SESSION)
    assert "  ours (turn 3)\n" in shown
    assert "  theirs (turn 4, from e90c55aa)\n" in shown
    assert "\nThesis (turn 4, from e90c55aa)\n" in shown
    found = sides.json("pad", SESSION)
    assert (found["cycle"], found["history"], found["found"]) == (1, [0.5], [1])
    told = lines(sides)[-2]["message"]["content"]
    assert "Scratchpad, claims:\n- theirs\n" in told
    assert "Scratchpad, confidence:\n- 0.5\n" in told
    assert "Scratchpad, tensions:\n- speed or words (resolved: both)\n" in told
    assert "Scratchpad, cycles" not in told
    assert sides("merge", THEIRS, "--into", SESSION).err == "e90c55aa is already merged into 5e551011.\n"


def test_what_a_fork_took_off_or_said_otherwise_stays_so(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    for text in ("stays", "goes", "changes"):
        say(sessgit, SESSION, "claim", text)
    say(sessgit, SESSION, "insight", "ours alone")
    say(sessgit, SESSION, "thesis", "before")
    question = say(sessgit, SESSION, "tension", "open")
    made = sessgit.json("fork", SESSION)["id"]
    ids = {one["text"]: one["id"] for one in sessgit.json("pad", made)["entries"]}
    say(sessgit, made, "drop", ids["goes"])
    say(sessgit, made, "edit", ids["changes"], "has changed")
    say(sessgit, made, "resolve", question, "so")
    say(sessgit, made, "thesis", "after")
    say(sessgit, SESSION, "claim", "meanwhile")
    sessgit.out("merge", made, "--into", SESSION)
    assert on_pad(sessgit, SESSION) == [
        ("insight", "ours alone", "5e551011"), ("claim", "stays", "5e551011"), ("claim", "meanwhile", "5e551011"),
        ("claim", "has changed", "5e551011"), ("tension", "open", "5e551011"), ("thesis", "after", made[:8]),
    ]  # fmt: skip
    assert [one["answer"] for one in sessgit.json("pad", SESSION)["entries"] if one["kind"] == "tension"] == ["so"]
    assert log(Store(sessgit.store), SESSION)[-1] == f"merge: what was said of {made}"


def test_what_both_said_otherwise_is_there_twice(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    claim = say(sessgit, SESSION, "claim", "it")
    say(sessgit, SESSION, "thesis", "it")
    made = sessgit.json("fork", SESSION)["id"]
    for session, text in ((SESSION, "ours"), (made, "theirs")):
        say(sessgit, session, "edit", claim, text)
        say(sessgit, session, "thesis", text)
    sessgit.out("merge", made, "--into", SESSION)
    assert [(kind, text) for kind, text, _ in on_pad(sessgit, SESSION)] == [
        ("claim", "ours"), ("claim", "theirs"), ("thesis", "ours"), ("thesis", "theirs")
    ]  # fmt: skip
    say(sessgit, SESSION, "thesis", "both")
    assert [text for kind, text, _ in on_pad(sessgit, SESSION) if kind == "thesis"] == ["both"]


def test_a_new_conversation_has_what_a_merge_would_have_made(sides: Shell) -> None:
    say(sides, SESSION, "claim", "ours")
    say(sides, SESSION, "insight", "ours, too")
    say(sides, THEIRS, "claim", "theirs")
    say(sides, THEIRS, "insight", "theirs, too")
    sides.out("merge", THEIRS, "--into", SESSION, "--new")
    assert on_pad(sides, NEW) == [
        ("insight", "ours, too", "5e551011"), ("insight", "theirs, too", "e90c55aa"),
        ("claim", "ours", "5e551011"), ("claim", "theirs", "e90c55aa"),
    ]  # fmt: skip
    assert on_pad(sides, SESSION) == [("insight", "ours, too", "5e551011"), ("claim", "ours", "5e551011")]


def test_doubles_of_a_merge_become_one(sides: Shell) -> None:
    for session in (THEIRS, SESSION):
        say(sides, session, "claim", "the same")
    sides.out("merge", THEIRS, "--into", SESSION)
    assert len(on_pad(sides, SESSION)) == 2
    sides.out("pad", "compact", SESSION)
    assert on_pad(sides, SESSION) == [("claim", "the same", "e90c55aa")]


# Two machines


def test_two_machines_that_note_something_each_have_both(keep: Keep, store: Store, index: Index) -> None:
    keep(Talk().turns("one"))
    ref = layout.head_ref(SESSION)
    for number, text in enumerate(("stays", "goes")):
        pad_changes.perform_change(
            Context(index, now=lambda at=NOW + number: at), SESSION, pad_changes.add_entry("claim", text, EntryPlace())
        )
    base = store.repo.ref(ref) or ""
    drop = next(one.id for one in pad_lists.read_pad(store, base).entries if one.text == "goes")
    here = pad_changes.perform_change(
        Context(index, now=lambda: NOW + 9), SESSION, pad_changes.add_entry("claim", "here", EntryPlace())
    ).commit
    store.repo.move(ref, here, base)
    pad_changes.perform_change(Context(index, now=lambda: NOW + 10), SESSION, pad_changes.drop_entries([drop]))
    there = pad_changes.perform_change(
        Context(index, now=lambda: NOW + 11), SESSION, pad_changes.add_entry("claim", "there", EntryPlace())
    ).commit
    joined = tip_delivery.reconcile_tips(store, here, there)
    assert joined == tip_delivery.reconcile_tips(store, there, here)
    assert {one.text for one in pad_lists.read_pad(store, joined.tip).entries} == {"stays", "here", "there"}


# Elsewhere

MOMENT = canonical.rfc3339(1772370000.0)
FOREIGN = "x\x1b]0;owned\x07\u202ereversed\nsecond \x9b2J line @/etc/passwd"


def _line(kind: str, ident: str, **more: object) -> bytes:
    said = {"id": ident, "kind": kind, "text": "", "time": MOMENT, "session": "evil"}
    return json.dumps(said | more).encode() + b"\n"


HOSTILE: dict[str, bytes | dict[str, bytes]] = {
    "pad/claims.jsonl": pads.entry_with_line(Entry("", "claim", FOREIGN, MOMENT,
        "evil")).line + b"\n{\n\xff\xfe\x00\n[[[[\n",
    "pad/insights.jsonl": b"[" * 100_000,
    "pad/risks.jsonl": {"inside": b"a folder"},
    "pad/patterns.jsonl": b"\0" * 10_000,
    "pad/thesis.jsonl": _line(
        "thesis", "a0000000", text="\ud800" + "y" * 100_000, turn=-1, cycle=10**30, version="x", between=[{}],
        resolved=7, source=["a"], value=True,
    ),
    "pad/questions.jsonl": b"\n".join(
        pads.entry_with_line(Entry(f"{n:08x}", "question", "z" * 30, MOMENT, "evil")).line for n in range(3000)
    ),
    "pad/confidence.jsonl": _line("confidence", "a0000001", value=1e999),
    "pad/cycles.jsonl": _line("cycle", "a0000002", session=SESSION, cycle=9999),
}  # fmt: skip


def test_whatever_lies_there_is_shown_harmless(sides: Shell) -> None:
    tree(sides, SESSION, HOSTILE)
    shown = sides.out("pad", SESSION)
    assert canonical.is_printable(shown.replace("\n", ""))
    assert max(map(len, shown.splitlines())) <= 80
    assert "6 lines of the scratchpad could not be read.\n" in shown
    found = sides.json("pad", SESSION)
    assert (found["unreadable_lines"], found["cycle"], len(found["found"])) == (6, 9999, 9999)
    brief = sides.out("pad", "brief", SESSION)
    assert canonical.is_printable(brief.replace("\n", ""))
    assert len(brief) < 33_000
    assert "@/" not in brief


def test_whatever_lies_there_goes_on_and_stays(sides: Shell) -> None:
    tree(sides, SESSION, HOSTILE)
    before = git(sides, "rev-parse", f"{SESSION}:pad/insights.jsonl")
    say(sides, SESSION, "claim", "ours")
    assert git(sides, "rev-parse", f"{SESSION}:pad/insights.jsonl") == before
    strange = b"\n{\n\xff\xfe\x00\n[[[[\n"
    assert strange in pad_lists.read_lists(Store(sides.store), git(sides, "rev-parse", SESSION))["claims"]
    sides.out("pad", "compact", SESSION)
    assert strange in pad_lists.read_lists(Store(sides.store), git(sides, "rev-parse", SESSION))["claims"]
    assert sides("pad", "cycle", "--into", SESSION).code == 2
    done = sides("pad", "risk", "r", "--into", SESSION)
    assert (done.code, done.err) == (
        3,
        "Error: pad/risks.jsonl in the store is not a list.\nHint: It came from elsewhere and was not changed.\n",
    )
    sides.json("fork", SESSION)
    sides.out("merge", SESSION, "--into", THEIRS)
    assert run_git(sides.store, "fsck", "--strict", "--no-dangling") == ""


def test_a_file_where_the_pad_should_be(sides: Shell) -> None:
    tree(sides, SESSION, {"pad": b"a file"}, whole=True)
    assert "Its scratchpad is empty" in sides.out("pad", SESSION)
    done = sides("pad", "claim", "c", "--into", SESSION)
    assert (done.code, done.err.splitlines()[0]) == (3, "Error: pad in the store is not a list.")
    made = sides.json("fork", SESSION)["id"]
    assert run_git(sides.store, "show", f"{made}:pad") == "a file"
    sides.out("merge", SESSION, "--into", THEIRS)
