"""What recording makes of a transcript: commits, branches, files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pictures import branches, joined, log, rewound, state, text, tree
from plain import Git, Keep, objects
from strategies import SECRET
from transcripts import SESSION, Talk

from sessgit.check import verify
from sessgit.errors import NotFoundError, SessgitError
from sessgit.record import commits
from sessgit.record.file_pass import RecordingResult
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import recorder_state
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

TURN_1 = "turns/0000/000001"
TURN_2 = "turns/0000/000002"


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
        f"File-Hash: {commits.hash_lines(line for line in body)}\n"
        "sessgit <sessgit@localhost> 1772359201\n"
    )
    tip = branches(store)[SESSION]
    assert result == RecordingResult(SESSION, (1,), True, tip)
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
        "rules": {"cut": 2, "redact": 1, "redacted": 0},
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
    assert keep(talk) == RecordingResult(SESSION)
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
    store.paths.cursor(SESSION).write_bytes(damage)
    assert not keep(talk).changed
    assert recorder_state.load_cursor(store.paths, SESSION) is not None
    keep(talk.turns("three"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "turn 3: three"]


def test_no_file_and_no_regular_file(store: Store, index: Index, tmp_path: Path) -> None:
    def try_(path: Path) -> None:
        record(Context(index), TranscriptSource(path, SESSION, tmp_path))

    with pytest.raises(NotFoundError, match="there is no file"):
        try_(tmp_path / "none.jsonl")
    with pytest.raises(SessgitError, match="not a regular file") as refused:
        try_(tmp_path)
    assert refused.value.hint == "Name a file, or move that one away."
    (tmp_path / "link.jsonl").symlink_to(Talk().turns("one").save(tmp_path))
    with pytest.raises(SessgitError, match="cannot read"):
        try_(tmp_path / "link.jsonl")
    assert branches(store) == {}


# Secrets


def test_a_secret_is_not_stored(keep: Keep, store: Store, git: Git) -> None:
    talk = Talk().prompt(f"use {SECRET}").tool("Bash", {"command": f"curl -H {SECRET}"}, "ok").answer("Used.")
    keep(talk)
    keep(talk.stop_lines().turns("next"), final=True)
    assert SECRET.encode() not in everything(store)
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


def everything(store: Store) -> bytes:
    """The contents of every object of the store."""
    return b"".join(data for _, kind, data in objects(store.path) if kind in ("blob", "commit"))


def test_a_session_of_older_redaction_rules_goes_on(keep: Keep, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they left stays, the state keeps their version, and new lines are redacted by the rules of now."""
    secret = "Zk3fP9qLw8Xv2Nn5" + "Rt7Yb1Cd4Gh6Jm0K"
    talk = Talk().prompt(f"NEXTCLOUD_TOKEN={secret}").answer("Read.")
    with monkeypatch.context() as then:
        then.setattr("sessgit.record.source.RULES_VERSION", 7)
        then.setattr("sessgit.redact.engine.scan", lambda text: None)
        keep(talk)
    talk.prompt(f"STATUSPAGE_API_KEY={secret}").answer("Read.")
    keep(talk)
    tip = branches(store)[SESSION]
    assert state(store, SESSION)["rules"] == {"cut": 2, "redact": 7, "redacted": 1}
    first, second = (b"".join(store.lines(tip, number).body) for number in (1, 2))
    assert f"NEXTCLOUD_TOKEN={secret}".encode() in first
    assert b"STATUSPAGE_API_KEY=[redacted:api-key]" in second
    assert verify.verify_session(store, SESSION, deep=True).findings == ()


def test_a_session_stays_with_the_rules_that_it_was_begun_by(
    keep: Keep, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "\n".join(f"{number:>6}→line {number} of a file" for number in range(1, 400))
    talk = Talk().prompt("Read it").tool("Read", {"file_path": "/p/a.py"}, shown).answer("Read.")
    with monkeypatch.context() as then:
        then.setattr("sessgit.model.json_strings.RULES_VERSION", 1)
        keep(talk)
    talk.prompt("Once more").tool("Read", {"file_path": "/p/a.py"}, shown).answer("Read.")
    keep(talk)
    tip = branches(store)[SESSION]
    assert state(store, SESSION)["rules"]["cut"] == 1
    for number in (1, 2):
        texts = store.repo.tree(store.folder(tip, number)["texts"][0])
        assert all(store.repo.blob(oid).startswith(b"     1") for oid, _ in texts.values())
        assert not any(".w" in name for name in texts)
