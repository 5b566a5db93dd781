"""What recording makes of a transcript: commits, branches, files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pictures import branches, log, prompts, state, text, tree
from plain import Git, Keep
from strategies import SECRET
from transcripts import SESSION, Talk

from sessgit.errors import NotFoundError, SessgitError
from sessgit.ops.record import Result, Rules, Source, record
from sessgit.store import cursor as cursors
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.store import Store

TURN_1 = "turns/0000/000001"
TURN_2 = "turns/0000/000002"


def rewound(number: int) -> str:
    """The branch that is named after the file's prompt of that number."""
    return f"{SESSION}.r-a{number:07d}"


def joined(lines: list[bytes]) -> str:
    return b"".join(line + b"\n" for line in lines).decode()


def sha256(lines: list[bytes]) -> str:
    return hashlib.sha256(joined(lines).encode()).hexdigest()


# A turn


def test_a_plain_turn(keep: Keep, store: Store, git: Git) -> None:
    talk = Talk().prompt("Write the parser\nand test it").tool("Write", {"file_path": "/p/a.py", "content": "x"})
    talk.answer("Written.").stop_lines()
    body = talk.lines[:5]
    result = keep(talk)
    assert git("log", "--reverse", "--format=%B%an <%ae> %at", SESSION) == (
        "start: /home/ada/shop\n"
        "\n"
        f"Session: {SESSION}\n"
        "Event: start\n"
        "sessgit <sessgit@localhost> 1772359201\n"
        "turn 1: Write the parser\n"
        "\n"
        f"Session: {SESSION}\n"
        "Turn: 1\n"
        "Event: turn\n"
        "Prompt: a0000001-0000-4000-8000-000000000001\n"
        "Model: claude-test-1\n"
        "Tools: Write 1\n"
        "Tokens-In: 200\n"
        "Tokens-Out: 30\n"
        "Tokens-Cache-Read: 2000\n"
        "Tokens-Cache-Write: 100\n"
        f"Extent: 0+{len(joined(body).encode())}/5\n"
        f"Lines-SHA256: {sha256(body)}\n"
        "sessgit <sessgit@localhost> 1772359201\n"
    )
    tip = branches(store)[SESSION]
    assert result == Result(SESSION, (1,), True, tip)
    assert tree(store, tip) == ["format", "session.json", f"{TURN_1}/cells.jsonl", f"{TURN_1}/transcript.jsonl"]
    assert text(store, tip, "format") == "1\n"
    assert text(store, tip, f"{TURN_1}/transcript.jsonl") == joined(body)
    assert text(store, tip, f"{TURN_1}/cells.jsonl") == (
        '{"depends":[],"id":"cell_3x4g5j8u","lines":[3],"ok":true,"operation":"claude-test-1","type":"llm_call"}\n'
        '{"depends":["cell_3x4g5j8u"],"id":"cell_nid7fy42","lines":[3,4],"ok":true,"operation":"Write","type":"tool"}\n'
        '{"depends":["cell_nid7fy42"],"id":"cell_4foheb53","lines":[5],"ok":true,"operation":"claude-test-1",'
        '"type":"llm_call"}\n'
    )


def test_the_state(keep: Keep, store: Store, claude: Path) -> None:
    keep(Talk().title("Parsers").turns("Write the parser", "Test it"))
    assert state(store, SESSION) == {
        "metadata": {
            "session_id": SESSION,
            "agent": "claude",
            "agent_id": SESSION,
            "agent_version": "2.1.7",
            "title": "Parsers",
            "cwd": "/home/ada/shop",
            "transcript_path": str(claude / f"{SESSION}.jsonl"),
            "git_branch": "main",
            "first_prompt": "Write the parser",
            "created_at": "2026-03-01T10:00:01.000Z",
            "updated_at": "2026-03-01T10:00:06.000Z",
            "ended_at": None,
            "headless": False,
            "state": "active",
        },
        "origin": None,
        "budget": {
            "total_tokens_used": 2320,
            "by_model": {
                "claude-test-1": {"calls": 2, "input": 200, "output": 20, "cache_read": 2000, "cache_write": 100}
            },
        },
        "cells": {"count": 2},
        "trajectory": {"turns": 2, "messages": 4},
        "rules": {"cut": 1, "redact": 1, "redacted": 0},
        "authored": {"name": "", "description": "", "labels": [], "stage": "", "confidence": None},
    }


def test_what_comes_after_a_turn_stands_before_the_next(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one")
    after = talk.lines[3:]
    talk.queue("two").prompt("two").answer("Two.")
    keep(talk)
    tip = branches(store)[SESSION]
    assert tree(store, tip) == [
        "format",
        "session.json",
        f"{TURN_1}/cells.jsonl",
        f"{TURN_1}/transcript.jsonl",
        f"{TURN_2}/before.jsonl",
        f"{TURN_2}/cells.jsonl",
        f"{TURN_2}/transcript.jsonl",
    ]
    assert text(store, tip, f"{TURN_1}/transcript.jsonl") == joined(talk.lines[:3])
    assert text(store, tip, f"{TURN_2}/before.jsonl") == joined([*after, talk.lines[8]])
    assert text(store, tip, f"{TURN_2}/transcript.jsonl") == joined(talk.lines[9:])


def test_long_strings_are_files_of_their_own(keep: Keep, store: Store) -> None:
    code = 'print("naïve")\n' * 300
    keep(Talk().prompt("show it").tool("Read", {"file_path": "/p/a b.py"}, code).answer("There."))
    tip = branches(store)[SESSION]
    blob = hashlib.sha1(b"blob %d\0" % len(code.encode()) + code.encode()).hexdigest()
    name = f"{blob[:8]}-Read-a_b.py"
    assert [path for path in tree(store, tip) if "texts" in path] == [f"{TURN_1}/texts/{name}"]
    assert text(store, tip, f"{TURN_1}/texts/{name}") == code
    assert text(store, tip, f"{TURN_1}/transcript.jsonl").count(f'{{"$text":"{name}"}}') == 2
    assert store.repo.entry(store.tree(tip), f"{TURN_1}/texts/{name}") == (blob, False)


def test_an_odd_prompt(keep: Keep, store: Store) -> None:
    keep(Talk().turns("  \n\x1b[31mred\u2028line\n", "", "x" * 100, "Turn: 7"))
    assert log(store, SESSION)[1:] == [
        "turn 1: [31mred",
        "turn 2: (no text)",
        f"turn 3: {'x' * 63}…",
        "turn 4: Turn: 7",
    ]
    assert store.message(branches(store)[SESSION]).get("Turn") == "4"


def test_an_id_that_can_be_no_ref_becomes_a_uuid(keep: Keep, store: Store) -> None:
    keep(Talk("Ångström.lock").turns("one"))
    (name,) = branches(store)
    assert name == "28447768-04fd-5ce0-9af6-a0478677e238"
    assert state(store, name)["metadata"]["agent_id"] == "Ångström.lock"


def test_a_file_without_a_prompt_is_recorded_when_it_ends(keep: Keep, store: Store) -> None:
    talk = Talk().bare("mode", mode="normal").title("Nothing yet")
    assert keep(talk) == Result(SESSION)
    assert branches(store) == {}
    keep(talk, final=True)
    assert log(store, SESSION) == [f"start: {SESSION}", "end: 0 turns"]
    assert text(store, branches(store)[SESSION], "tail.jsonl") == joined(talk.lines)
    keep(talk.turns("one"))
    assert log(store, SESSION) == [f"start: {SESSION}", "end: 0 turns", "turn 1: one"]
    assert text(store, branches(store)[SESSION], f"{TURN_1}/before.jsonl") == joined(talk.lines[:2])


def test_a_prompt_that_was_only_just_given_is_left_for_later(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one").prompt("two")
    keep(talk, prompting=True)
    assert log(store, SESSION)[1:] == ["turn 1: one"]
    keep(talk.answer("Two."), prompting=True)
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two"]


# Growing


def test_an_open_turn_grows_by_commits_of_the_same_number(keep: Keep, store: Store, index: Index) -> None:
    talk = Talk().turns("one").prompt("two").answer("Started in the background.").stop_lines()
    keep(talk)
    talk.user("<task-notification>done</task-notification>", origin={"kind": "task"}).answer("It is done.")
    keep(talk.stop_lines())
    assert keep(talk.turns("three")).turns == (3,)
    assert log(store, SESSION) == [
        "start: /home/ada/shop",
        "turn 1: one",
        "turn 2: two",
        "turn 2: two",
        "turn 3: three",
    ]
    assert [len(row.commits) for row in index.turns(SESSION)] == [1, 2, 1]
    assert text(store, branches(store)[SESSION], f"{TURN_2}/transcript.jsonl") == joined(talk.lines[8:18])


def test_a_finished_turn_never_changes(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    before = store.repo.entry(store.tree(branches(store)[SESSION]), TURN_1)
    late = talk.writer()
    late.rewind(1)
    late.answer("A late word on one.")
    keep(talk)
    tip = branches(store)[SESSION]
    assert store.repo.entry(store.tree(tip), TURN_1) == before
    assert "A late word on one." in text(store, tip, f"{TURN_2}/transcript.jsonl")


def test_a_turn_that_grew_unseen_before_the_next_prompt_came(keep: Keep, store: Store) -> None:
    talk = Talk().prompt("one")
    keep(talk)
    keep(talk.answer("One.").stop_lines().turns("two"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 1: one", "turn 2: two"]
    assert "One." in text(store, branches(store)[SESSION], f"{TURN_1}/transcript.jsonl")


def test_end_and_resume(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one")
    keep(talk, final=True)
    tip = branches(store)[SESSION]
    assert text(store, tip, "tail.jsonl") == joined(talk.lines[3:])
    assert state(store, SESSION)["metadata"]["state"] == "ended"
    assert state(store, SESSION)["metadata"]["ended_at"] == "2026-03-01T10:00:04.000Z"
    assert not keep(talk, final=True).changed

    keep(talk.turns("two"), final=True)
    tip = branches(store)[SESSION]
    assert log(store, SESSION) == ["start: /home/ada/shop", "turn 1: one", "end: 1 turn", "turn 2: two", "end: 2 turns"]
    assert text(store, tip, f"{TURN_2}/before.jsonl") == joined(talk.lines[3:8])
    assert text(store, tip, "tail.jsonl") == joined(talk.lines[-5:])


def test_a_turn_that_grows_after_the_end(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk, final=True)
    keep(talk.answer("One thing more."))
    keep(talk.rewind(1).turns("two again"))
    assert log(store, rewound(2))[2:] == ["turn 2: two", "end: 2 turns", "turn 2: two"]
    assert log(store, SESSION)[2:] == ["turn 2: two again"]


def test_a_torn_last_line_is_kept_at_the_end_and_read_again(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().turns("one").prompt("two")
    whole = talk.lines.pop()
    talk.lines.append(whole[:50])
    path = talk.save(claude)
    path.write_bytes(talk.data[:-1])
    keep(path, final=True)
    tip = branches(store)[SESSION]
    assert text(store, tip, "tail.jsonl") == talk.lines[-1].decode()
    talk.lines[-1] = whole
    path.write_bytes(talk.data)
    keep(path)
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "end: 2 turns"]


def test_an_interrupted_turn(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one").prompt("two").answer("Let me").interrupt().stop_lines(), final=True)
    assert state(store, SESSION)["metadata"]["state"] == "interrupted"


def test_a_killed_turn_is_interrupted_however_it_was_recorded(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one").prompt("two").call_only("Bash", {"command": "sleep 9"})
    keep(talk)
    keep(talk, final=True)
    assert state(store, SESSION)["metadata"]["state"] == "interrupted"
    assert '"ok":null' in text(store, branches(store)[SESSION], f"{TURN_2}/cells.jsonl")


def test_a_commit_for_each_cell(keep: Keep, store: Store, git: Git) -> None:
    talk = Talk().prompt("build").answer("I look.").parallel(("Read", {}, "a"), ("LS", {}, "b"))
    talk.tool("Bash", {"command": "make"}).answer("Built.").stop_lines()
    keep(talk, granularity="cell")
    assert log(store, SESSION)[1:] == ["cell 1.3: Read", "cell 1.4: LS", "cell 1.6: Bash", "turn 1: build"]
    assert git("log", "--format=%(trailers:key=Event,valueonly,separator=)", SESSION).split() == [
        "turn",
        "cell",
        "cell",
        "cell",
        "start",
    ]


# Rewinds


def test_a_rewind_leaves_a_branch(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two", "three")
    keep(talk)
    old = branches(store)[SESSION]
    keep(talk.rewind(1).turns("two again"))
    assert branches(store) == {SESSION: branches(store)[SESSION], rewound(2): old}
    assert log(store, SESSION) == ["start: /home/ada/shop", "turn 1: one", "turn 2: two again"]
    assert log(store, rewound(2)) == ["start: /home/ada/shop", "turn 1: one", "turn 2: two", "turn 3: three"]
    assert tree(store, branches(store)[SESSION])[-3:] == [
        f"{TURN_2}/before.jsonl",
        f"{TURN_2}/cells.jsonl",
        f"{TURN_2}/transcript.jsonl",
    ]


def test_a_rewind_to_the_start(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one", "two").rewind(0).turns("anew"))
    assert {name: log(store, name) for name in branches(store)} == {
        SESSION: ["start: /home/ada/shop", "turn 1: anew"],
        rewound(1): ["start: /home/ada/shop", "turn 1: one", "turn 2: two"],
    }


def test_a_rewind_to_the_start_of_what_is_recorded(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk, final=True)
    keep(talk.rewind(0).turns("anew"))
    assert log(store, SESSION) == ["start: /home/ada/shop", "turn 1: anew"]


def test_going_on_with_a_rewound_branch_exchanges_the_names(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two", "three").rewind(1).turns("two again")
    keep(talk)
    keep(talk.rewind(3).turns("four"))
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: [talk.prompts[n] for n in (0, 1, 2, 4)],
        rewound(4): [talk.prompts[n] for n in (0, 3)],
    }
    keep(talk.rewind(4).turns("three at last"))
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: [talk.prompts[n] for n in (0, 3, 5)],
        rewound(2): [talk.prompts[n] for n in (0, 1, 2, 4)],
    }


def test_two_rewinds_from_one_line_of_turns(keep: Keep, store: Store) -> None:
    """The second leaves the same first turn behind as the first did: its branch has the next turn's name."""
    talk = Talk().turns("one", "two", "three").rewind(1).turns("aside").rewind(2).turns("three again")
    keep(talk.rewind(1).turns("enough"))
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: [talk.prompts[n] for n in (0, 5)],
        rewound(2): [talk.prompts[n] for n in (0, 1, 2)],
        rewound(4): [talk.prompts[n] for n in (0, 3)],
        rewound(5): [talk.prompts[n] for n in (0, 1, 4)],
    }


def test_a_rewind_into_the_middle_of_a_turn_comes_after_that_turn(keep: Keep, store: Store) -> None:
    talk = Talk().prompt("one").tool("Bash", {}, "a")
    middle = talk.leaf
    talk.answer("Done.").turns("two")
    talk.leaf = middle
    keep(talk.turns("two again"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two again"]


def test_the_state_follows_the_session_through_a_rewind(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two").title("Kept")
    keep(talk, final=True)
    keep(talk.rewind(1).turns("again"))
    found = state(store, SESSION)
    assert (found["metadata"]["title"], found["trajectory"]) == ("Kept", {"turns": 2, "messages": 4})
    assert found["metadata"]["created_at"] == "2026-03-01T10:00:01.000Z"


def test_the_pad_follows_the_session(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two").rewind(1).turns("two again")
    keep(talk)
    put_pad(store, "Look at the lexer.\n")
    keep(talk.rewind(2).turns("three"))
    assert text(store, branches(store)[SESSION], "pad/insights.md") == "Look at the lexer.\n"
    keep(talk.rewind(1).turns("two at last"))
    assert text(store, branches(store)[SESSION], "pad/insights.md") == "Look at the lexer.\n"


def put_pad(store: Store, words: str) -> None:
    tip = branches(store)[SESSION]
    blob = store.repo.write_blob(words.encode())
    message = store.message(tip)
    commit = store.write_commit(
        tip,
        {"pad/insights.md": (blob, False)},
        store.state(tip),
        type(message)("edit: pad", (("Session", SESSION), ("Event", "edit"))),
        [tip],
        1772359300,
    )
    store.repo.move(layout.head(SESSION), tip, commit)


def test_two_writers_give_two_branches_however_often_they_alternate(keep: Keep, store: Store) -> None:
    left = Talk().turns("base")
    right = left.writer()
    for number in range(3):
        left.prompt(f"left {number}")
        right.prompt(f"right {number}")
        right.answer("Right.")
        left.answer("Left.").stop_lines()
        keep(left)
        right.stop_lines()
    assert {name: log(store, name)[1:] for name in branches(store)} == {
        SESSION: ["turn 1: base", "turn 2: right 0", "turn 3: right 1", "turn 4: right 2"],
        rewound(2): ["turn 1: base", "turn 2: left 0", "turn 3: left 1", "turn 4: left 2"],
    }
    for name, word in ((SESSION, "Left."), (rewound(2), "Right.")):
        for number in (2, 3, 4):
            body = text(store, branches(store)[name], f"turns/0000/{number:06d}/transcript.jsonl")
            assert word not in body


# Compaction


def test_a_compaction_between_turns(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one")
    first = len(talk.lines)
    talk.compact()
    last = len(talk.lines)
    keep(talk)
    assert log(store, SESSION)[1:] == ["turn 1: one"]
    keep(talk.turns("two"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "compact: the conversation so far into a summary", "turn 2: two"]
    tip = branches(store)[SESSION]
    assert text(store, tip, f"{TURN_2}/before.jsonl") == joined(talk.lines[3:last])
    compact = store.commit(tip).parents[0]
    assert text(store, compact, "tail.jsonl") == joined(talk.lines[3:last])
    assert talk.lines[first] in talk.lines[3:last]
    assert "tail.jsonl" not in tree(store, tip)


def test_a_compaction_in_mid_turn_belongs_to_the_turn(keep: Keep, store: Store) -> None:
    talk = Talk().prompt("one").tool("Bash", {}, "x").compact(auto=True).answer("On.").stop_lines().turns("two")
    keep(talk)
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two"]
    assert "compact_boundary" in text(store, branches(store)[SESSION], f"{TURN_1}/transcript.jsonl")


def test_a_rewind_to_a_compaction_has_its_lines_too(keep: Keep, store: Store) -> None:
    """Both turns hang on the summary, and each is to be read without the other."""
    talk = Talk().turns("one").compact()
    summary = talk.leaf
    talk.turns("two")
    keep(talk)
    talk.leaf = summary
    keep(talk.turns("two again"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two again"]
    before = text(store, branches(store)[SESSION], f"{TURN_2}/before.jsonl")
    assert before.count("compact_boundary") == 1
    assert before.startswith(joined(talk.lines[8:14]))


# Odd files


@pytest.mark.parametrize("left", [8, 9, 11, 16])
def test_a_file_that_was_cut_shorter_takes_nothing_back(keep: Keep, store: Store, left: int) -> None:
    talk = Talk().turns("one", "two", "three")
    keep(talk)
    before = branches(store)
    del talk.lines[left:]
    assert not keep(talk).changed
    assert branches(store) == before
    keep(talk.rewind(1).turns("otherwise"))
    assert {name: log(store, name)[1:] for name in branches(store)} == {
        SESSION: ["turn 1: one", "turn 2: otherwise"],
        rewound(2): ["turn 1: one", "turn 2: two", "turn 3: three"],
    }


def test_a_file_that_was_written_anew_takes_nothing_back(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one", "two"))
    other = Talk()
    other.file.counts["a"] = 10
    keep(other.turns("three"))
    first = f"{SESSION}.r-a0000001"
    assert {name: log(store, name)[1:] for name in branches(store)} == {
        SESSION: ["turn 1: three"],
        first: ["turn 1: one", "turn 2: two"],
    }
    assert not keep(other).changed
    keep(other.turns("four"))
    assert log(store, SESSION)[1:] == ["turn 1: three", "turn 2: four"]


def test_an_empty_file_takes_nothing_back(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().turns("one", "two")
    path = talk.save(claude)
    keep(talk)
    before = branches(store)
    path.write_bytes(b"")
    keep(path)
    assert branches(store) == before


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 99}'])
def test_a_cursor_that_cannot_be_read(keep: Keep, store: Store, damage: bytes) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    store.beside.cursor(SESSION).write_bytes(damage)
    assert not keep(talk).changed
    assert cursors.load(store.beside, SESSION) is not None
    keep(talk.turns("three"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "turn 3: three"]


def test_no_file_and_no_regular_file(store: Store, index: Index, tmp_path: Path) -> None:
    def try_(path: Path) -> None:
        record(store, index, Source(path, SESSION, tmp_path), Rules())

    with pytest.raises(NotFoundError, match="there is no file"):
        try_(tmp_path / "none.jsonl")
    with pytest.raises(SessgitError, match="not a regular file"):
        try_(tmp_path)
    (tmp_path / "link.jsonl").symlink_to(Talk().turns("one").save(tmp_path))
    with pytest.raises(SessgitError, match="cannot read"):
        try_(tmp_path / "link.jsonl")
    assert branches(store) == {}


# Secrets


def test_a_secret_is_not_stored(keep: Keep, store: Store, git: Git) -> None:
    talk = Talk().prompt(f"use {SECRET}").tool("Bash", {"command": f"curl -H {SECRET}"}, "ok").answer("Used.")
    keep(talk)
    keep(talk.stop_lines().turns("next"), final=True)
    assert SECRET.encode() not in everything(store, git)
    first = next(c for c in store.repo.first_parents(branches(store)[SESSION]) if "Turn: 1\n" in c.message)
    message = store.message(first.id)
    assert (message.get("Redacted"), message.get("Original-HMAC")) == (
        "2",
        store.hmac(line + b"\n" for line in talk.lines[:5]),
    )
    assert state(store, SESSION)["rules"]["redacted"] == 2


def test_redaction_can_be_left_out(keep: Keep, store: Store) -> None:
    keep(Talk().turns(f"use {SECRET}"), redact=False)
    assert SECRET in text(store, branches(store)[SESSION], f"{TURN_1}/transcript.jsonl")


def everything(store: Store, git: Git) -> bytes:
    """The contents of every object of the store."""
    found = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").splitlines()
    data = [git("cat-file", kind, oid) for oid, kind in map(str.split, found) if kind in ("blob", "commit")]
    return "".join(data).encode()
