"""Codex: its rollouts are recorded, read, restored, forked and merged beside Claude Code's conversations."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import branches, conversation
from plain import run_git
from rollouts import THREAD, Rollout
from shell import Shell
from test_verify import loose, unpack
from transcripts import SESSION

from sessgit.agents import processes
from sessgit.branch.restore import rebuild_file
from sessgit.check import session_checks
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import layout, recorder_state
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

FORMS = pytest.mark.parametrize("paginated", [False, True], ids=["older", "paginated"])
OTHER = "01a20000-0000-7000-8000-000000000002"


def rollout(sessgit: Shell, thread: str = THREAD, *, paginated: bool = False) -> Rollout:
    return Rollout(thread, cwd=str(sessgit.project), paginated=paginated)


def keep(sessgit: Shell, made: Rollout) -> Path:
    return made.save(sessgit.home / ".codex")


def imported(sessgit: Shell, made: Rollout) -> Path:
    path = keep(sessgit, made)
    assert sessgit("import").code == 0
    return path


def worked(sessgit: Shell, *, paginated: bool) -> Rollout:
    made = rollout(sessgit, paginated=paginated).turns("write the parser")
    made.start("run it").think("I run it.").call("python parser.py", "ok\n").call("false", "", 1).end("it runs")
    return made.start("add a page").patch("page.md", "# Page", "text").end("added").turns("thanks")


def sound(sessgit: Shell) -> None:
    done = sessgit("verify", "--deep")
    assert (done.code, "no damage" in done.out) == (0, True), done


def test_only_the_conversations_with_one_agent(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("mend the roof"))
    imported(sessgit, rollout(sessgit).turns("write the parser"))
    assert {row["agent"] for row in sessgit.json("ls")["sessions"]} == {"claude", "codex"}
    assert [row["id"] for row in sessgit.json("ls", "--agent", "codex")["sessions"]] == [THREAD]
    assert [row["id"] for row in sessgit.json("ls", "--agent", "claude")["sessions"]] == [SESSION]
    hits = sessgit.json("search", "the", "--agent", "codex")["hits"]
    assert [hit["address"].partition("@")[0] for hit in hits] == [THREAD]
    assert sessgit.json("stats", "--agent", "codex")["total"]["turns"] == 1
    rows = sessgit.json("stats", "--by", "agent")["rows"]
    assert {row["key"]: row["turns"] for row in rows} == {"claude": 1, "codex": 1}
    for command in (["ls"], ["stats"], ["search", "the"]):
        assert sessgit(*command, "--agent", "gemini").code == 2


@FORMS
def test_a_conversation_is_read(sessgit: Shell, *, paginated: bool) -> None:
    sessgit.keep(sessgit.talk().turns("mend the roof"))
    imported(sessgit, worked(sessgit, paginated=paginated))
    rows = {row["id"]: row for row in sessgit.json("ls")["sessions"]}
    row = rows[THREAD]
    assert {rows[SESSION]["agent"], row["agent"]} == {"claude", "codex"}
    assert (row["turns"], row["git_branch"], row["headless"]) == (4, "main", False)
    assert row["tokens"] == {"input": 630, "output": 35, "cache_read": 70, "cache_write": 0}
    turns = sessgit.json("log", THREAD)["turns"]
    assert [turn["prompt"] for turn in turns] == ["write the parser", "run it", "add a page", "thanks"]
    assert [turn["model"] for turn in turns] == ["gpt-5.1-codex"] * 4
    assert turns[2]["files"] == [str(sessgit.project / "page.md")]
    shown = sessgit.out("show", f"{THREAD}@2")
    assert "thinking: I run it." in shown
    assert "exec_command  python parser.py" in shown
    cells = sessgit.json("cells", f"{THREAD}@2")["cells"]
    assert [(cell["operation"], cell["ok"]) for cell in cells if cell["type"] == "tool"] == [
        ("exec_command", True),
        ("exec_command", False),
    ]
    assert [hit["address"] for hit in sessgit.json("search", "parser.py")["hits"]] == [f"{THREAD}@2.2"]
    assert "+# Page" in sessgit.out("show", f"{THREAD}@3")
    sound(sessgit)


@FORMS
def test_it_is_restored_byte_for_byte(sessgit: Shell, *, paginated: bool) -> None:
    path = imported(sessgit, worked(sessgit, paginated=paginated))
    data = path.read_bytes()
    path.unlink()
    assert "byte for byte" in sessgit.out("restore", THREAD)
    assert path.read_bytes() == data


@FORMS
def test_a_fork_is_the_beginning_under_a_new_id(sessgit: Shell, *, paginated: bool) -> None:
    made = worked(sessgit, paginated=paginated)
    imported(sessgit, made)
    done = sessgit("fork", THREAD, "--at", "2")
    (path,) = (sessgit.home / ".codex").glob("sessions/*/*/*/rollout-*-f0*.jsonl")
    fork = path.stem[-36:]
    assert f"codex resume {fork}" in done.out
    first, *others = made.lines[: made.ends[1]]
    assert path.read_bytes().splitlines() == [first.replace(THREAD.encode(), fork.encode()), *others]
    more = Rollout(fork, cwd=str(sessgit.project), paginated=paginated)
    more.lines, more.ends = path.read_bytes().splitlines(), [0, 0]
    path.write_bytes(more.turns("in the fork").data)
    assert [turn["prompt"] for turn in sessgit.json("log", fork)["turns"]][1:] == ["run it", "in the fork"]
    assert {row["id"]: row["parent"] for row in sessgit.json("ls")["sessions"]} == {THREAD: None, fork: THREAD}
    sound(sessgit)


@FORMS
@pytest.mark.parametrize("mode", ["summary", "graft"])
def test_a_fork_is_merged_back(sessgit: Shell, mode: str, *, paginated: bool) -> None:
    made = worked(sessgit, paginated=paginated)
    path = imported(sessgit, made)
    sessgit("fork", THREAD, "--at", "2")
    (forked,) = (sessgit.home / ".codex").glob("sessions/*/*/*/rollout-*-f0*.jsonl")
    more = Rollout(forked.stem[-36:], cwd=str(sessgit.project), paginated=paginated)
    more.lines, more.ends = forked.read_bytes().splitlines(), [0] * 7
    forked.write_bytes(more.start("in the fork").call("ls", "page.md\n").end("seen").data)
    done = sessgit("merge", forked.stem[-36:], "--into", THREAD, "--mode", mode)
    assert done.code == 0, done
    assert path.read_bytes().startswith(made.data)
    added = [json.loads(line) for line in path.read_bytes().removeprefix(made.data).splitlines()]
    assert "in the fork" in json.dumps(added)
    assert added[-1]["payload"]["type"] == "task_complete"
    if paginated:  # the client refuses a rollout whose last line has none
        assert [line["ordinal"] for line in added] == list(range(len(made.lines), len(made.lines) + len(added)))
    assert sessgit.json("log", THREAD)["turns"][-1]["turn"] == 5
    sound(sessgit)
    assert sessgit("undo").code == 0
    assert path.read_bytes() == made.data


def test_a_rollback_leaves_turns_behind(sessgit: Shell) -> None:
    made = rollout(sessgit).turns("one", "two", "three").roll_back(2).turns("otherwise")
    path = imported(sessgit, made)
    assert [turn["prompt"] for turn in sessgit.json("log", THREAD)["turns"]] == ["one", "otherwise"]
    assert "2 turns left behind by a rewind" in sessgit.out("log", THREAD)
    sessgit("fork", THREAD)
    (forked,) = (sessgit.home / ".codex").glob("sessions/*/*/*/rollout-*-f0*.jsonl")
    for word, is_there in ((b"answer to one", True), (b"answer to three", False), (b"rolled_back", False)):
        assert (word in forked.read_bytes()) == is_there
    path.unlink()
    sessgit("restore", THREAD)
    assert path.read_bytes() == made.data
    sound(sessgit)


def test_all_turns_are_rolled_back(sessgit: Shell) -> None:
    imported(sessgit, rollout(sessgit).turns("one", "two").roll_back(9).turns("anew"))
    assert [turn["prompt"] for turn in sessgit.json("log", THREAD)["turns"]] == ["anew"]
    sound(sessgit)


def test_a_copy_that_the_client_made_is_a_fork(sessgit: Shell) -> None:
    keep(sessgit, made := rollout(sessgit).turns("one", "two"))
    copy = rollout(sessgit, OTHER)
    meta = json.loads(copy.lines[0])
    meta["payload"]["forked_from_id"] = THREAD
    copy.lines = [json.dumps(meta).encode(), *(line.replace(b"T10:", b"T11:") for line in made.lines)]
    copy.ends = [0] * 8
    imported(sessgit, copy.turns("in the copy"))
    row = next(row for row in sessgit.json("ls")["sessions"] if row["id"] == OTHER)
    assert (row["parent"], row["fork_turn"], row["turns"]) == (THREAD, 2, 3)
    sound(sessgit)


def test_what_only_the_service_reads_is_not_redacted(sessgit: Shell) -> None:
    made = rollout(sessgit).start("my key is AKIAIOSFODNN7EXAMPLQ").think("secret").end("ok")
    path = imported(sessgit, made)
    path.unlink()
    sessgit("restore", THREAD)
    redacted = made.data.replace(b"AKIAIOSFODNN7EXAMPLQ", b"[redacted:aws-access-key]")
    assert path.read_bytes() == redacted
    assert redacted != made.data


def test_a_segment_belongs_to_its_thread(sessgit: Shell) -> None:
    made = rollout(sessgit, OTHER, paginated=True).turns("otherwise")
    meta = json.loads(made.lines[0])
    meta["payload"] |= {"id": THREAD, "history_base": {"thread_id": THREAD, "end_ordinal_exclusive": 9}}
    made.lines[0] = json.dumps(meta).encode()
    path = keep(sessgit, made)
    segment = path.rename(path.with_name(f"rollout-2026-03-01T11-00-00-{THREAD}_{OTHER}.jsonl"))
    sessgit("import")
    data = segment.read_bytes()
    segment.unlink()
    assert f"codex resume {THREAD}" in sessgit.out("restore", OTHER, "--json") + sessgit.out("resume", OTHER, "--print")
    assert segment.read_bytes() == data


@settings(max_examples=10)
@given(st.data())
def test_however_it_is_recorded_it_ends_the_same(data: st.DataObject) -> None:
    """In steps, cut anywhere, with the cursor lost in between, or all at once: every branch has the same turns."""
    made = Rollout(cwd="/home/ada/shop", paginated=data.draw(st.booleans()))
    for number, step in enumerate(data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=8))):
        if step == "roll back":
            made.roll_back(data.draw(st.integers(1, 3)))
        elif step == "stop":
            made.start(f"prompt {number}").put("event_msg", {"type": "turn_aborted", "turn_id": made.turn})
        elif step == "compact":
            made.put("compacted", {"message": "so far", "replacement_history": []})
        else:
            made.start(f"prompt {number}").call("ls", "a\n").end()
    places = sorted(data.draw(st.lists(st.integers(0, len(made.data)), max_size=4)))
    lost = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        tips = [
            _recorded(Path(folder) / "once", made.data, []),
            _recorded(Path(folder) / "steps", made.data, places, lost),
        ]
    assert tips[0] == tips[1]


STEPS = ("turn", "turn", "turn", "roll back", "stop", "compact")


def _recorded(folder: Path, data: bytes, places: Sequence[int], lost: bool = False) -> object:
    """Return the turns of each branch of a store that saw the rollout grow to these lengths, and then as a whole."""
    path = Rollout(cwd="/home/ada/shop").save(folder / "codex")
    path.write_bytes(b"")
    stores.create_store(folder / "store")
    store = Store(folder / "store")
    index = Index(store.path, lambda: store)
    for place in (*places, len(data)):
        with path.open("ab") as file:
            file.write(data[file.tell() : place])
        source = TranscriptSource(path, THREAD, folder / "codex", client="codex", final=place == len(data))
        record(Context(index), source)
        if lost:
            recorder_state.delete_cursor(store.paths, THREAD)
    index.close()
    return conversation(store)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_rollout_that_is_cut_anywhere_is_restored(data: st.DataObject) -> None:
    """Also one with bytes in it that are no lines of the client, and with lines doubled, swapped or left out."""
    made = Rollout(cwd="/home/ada/shop", paginated=data.draw(st.booleans()))
    made.start("one").think("so").call("ls", "a\n").patch("page.md", "# Page").end().turns("two", "three")
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(made.lines) - 1))
        to = data.draw(st.integers(0, len(made.lines) - 1))
        change = data.draw(st.sampled_from(["double", "swap", "leave out", "junk"]))
        if change == "double":
            made.lines.insert(to, made.lines[at])
        elif change == "swap":
            made.lines[at], made.lines[to] = made.lines[to], made.lines[at]
        elif change == "leave out":
            del made.lines[at]
        else:
            made.lines.insert(at, data.draw(st.binary(max_size=9)).replace(b"\n", b""))
    written = made.data[: data.draw(st.integers(0, len(made.data)))]
    with tempfile.TemporaryDirectory() as folder:
        _recorded(Path(folder), written, [])
        store = Store(Path(folder) / "store")
        if store.ref(layout.head_ref(THREAD)):
            assert rebuild_file(store, THREAD).data == written
            report, _, _ = session_checks.check_transcript(store, THREAD, store.branches(THREAD), deep=True)
            assert report.findings == []
        else:
            assert not written.count(b"\n")


@FORMS
def test_what_the_store_lost_comes_back_from_the_rollout(sessgit: Shell, *, paginated: bool) -> None:
    imported(sessgit, worked(sessgit, paginated=paginated))
    unpack(sessgit.store)
    oid = run_git(sessgit.store, "rev-parse", f"{THREAD}:turns/0000/000002/transcript.jsonl").strip()
    loose(sessgit.store, oid).unlink()
    done = sessgit("repair", THREAD)
    assert done.out.startswith("1 object restored from the client's file.\n"), done
    sound(sessgit)


def test_lines_that_are_not_as_expected(sessgit: Shell) -> None:
    """Two first lines, none of an event's fields, ordinals that are doubled and out of order, other programs' lines."""
    made = rollout(sessgit, paginated=True).turns("one")
    made.lines.insert(1, made.lines[0])
    made.lines[3:3] = [b'{"type":"event_msg","payload":null}', b'{"type":7}', b"[]", b"no JSON", b"{}", b""]
    made.put("event_msg", {"type": "thread_rolled_back", "num_turns": "many"})
    made.put("event_msg", {"type": "token_count", "info": {"total_token_usage": 7}})
    made.put("response_item", {"type": "function_call", "arguments": "{", "call_id": 5})
    made.put("response_item", {"type": "function_call_output", "output": [1]})
    made.turns("two")
    path = imported(sessgit, made)
    assert [turn["prompt"] for turn in sessgit.json("log", THREAD)["turns"]] == ["one", "two"]
    assert sessgit("show", f"{THREAD}@1", "--full").code == 0
    path.unlink()
    sessgit("restore", THREAD)
    assert path.read_bytes() == made.data
    sound(sessgit)


def test_the_home_is_named_by_the_environment(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(sessgit.home / "elsewhere"))
    rollout(sessgit).turns("one").save(sessgit.home / "elsewhere")
    assert sessgit.out("import") == "1 conversation, 1 turn imported\n"
    store = Store(sessgit.store)
    state = store.state(store.ref(layout.head_ref(THREAD)) or "")
    assert state.transcript.startswith(f"{sessgit.home}{os.sep}elsewhere")


@pytest.mark.parametrize("into_codex", [False, True])
def test_a_summary_goes_from_one_client_to_the_other(sessgit: Shell, *, into_codex: bool) -> None:
    claude = sessgit.keep(sessgit.talk().turns("mend the roof"))
    codex = imported(sessgit, rollout(sessgit, paginated=True).turns("write the parser"))
    theirs, ours, path = (SESSION, THREAD, codex) if into_codex else (THREAD, SESSION, claude)
    before = path.read_bytes()
    done = sessgit("merge", theirs, "--into", ours)
    assert done.code == 0, done
    asked = "mend the roof" if into_codex else "write the parser"
    assert path.read_bytes().startswith(before)
    assert asked.encode() in path.read_bytes().removeprefix(before)
    sound(sessgit)
    assert sessgit("undo").code == 0
    assert path.read_bytes() == before
    grafted = sessgit("merge", theirs, "--into", ours, "--mode", "graft")
    assert (grafted.code, path.read_bytes()) == (3, before), grafted
    assert f"A summary can be merged: `sessgit merge {theirs} --into {ours}`." in grafted.err
    picked = sessgit("pick", f"{theirs}@1", "--into", ours)
    assert (picked.code, path.read_bytes()) == (3, before), picked


def test_a_thread_that_a_client_has_open(sessgit: Shell) -> None:
    """Since 0.169 the client holds a lock; the file stays when it ends."""
    imported(sessgit, rollout(sessgit, paginated=True).turns("one", "two"))
    sessgit.out("fork", THREAD, "--at", "1")
    lock = sessgit.home / ".codex" / "thread-writer-locks" / f"{THREAD}.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = sessgit("delete", THREAD, "--yes")
        assert (done.code, "is open in a client" in done.err) == (3, True), done
        if sys.platform == "linux":  # which tells that it is this process
            assert sessgit.out("id") == f"{THREAD}\n"
    assert sessgit("delete", THREAD, "--yes").code == 0


def test_a_lock_on_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There fcntl(2) tells of locks of flock(2); here it does not, so its answer is made up."""
    path, types = tmp_path / "a.lock", iter([fcntl.F_WRLCK, fcntl.F_UNLCK])
    path.touch()

    def answer(_: object, command: int, query: bytes) -> bytes:
        assert (command, query) == (fcntl.F_GETLK, struct.pack("=qqihh", 0, 0, 0, fcntl.F_WRLCK, 0))
        return struct.pack("=qqihh", 0, 0, -1, next(types), 0)

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "fcntl", answer)
    found = [processes.flock_holders([path, tmp_path / "none.lock"]) for _ in range(2)]
    assert found == [{path: processes.UNKNOWN_PID}, {}]


def test_two_files_of_one_thread(sessgit: Shell) -> None:
    """The one that was written last is the conversation; what only the other one has stays as another version."""
    path = imported(sessgit, rollout(sessgit, paginated=True).turns("one", "two"))
    other = rollout(sessgit, paginated=True).put("world_state", {}).turns("one", "otherwise")
    other.lines = [line.replace(b"T10:", b"T12:") for line in other.lines]
    path.with_name(path.name.replace("03-01", "03-02")).write_bytes(other.data)
    sessgit.out("import")
    versions = {branch: sessgit.json("log", branch)["turns"] for branch in branches(Store(sessgit.store))}
    assert {branch: [turn["prompt"] for turn in turns] for branch, turns in versions.items()} == {
        THREAD: ["one", "otherwise"],
        f"{THREAD}.m-01a20001": ["one", "two"],
    }
    sound(sessgit)


def test_a_rollout_without_its_first_line(sessgit: Shell) -> None:
    made = rollout(sessgit, paginated=True).turns("one", "two")
    del made.lines[0]
    path = imported(sessgit, made)
    (row,) = sessgit.json("ls")["sessions"]
    assert (row["turns"], row["project"]) == (2, str(sessgit.project))
    path.unlink()
    sessgit.out("restore", THREAD)
    assert path.read_bytes() == made.data
    sound(sessgit)


def test_a_line_that_is_too_long_to_be_read(sessgit: Shell) -> None:
    made = rollout(sessgit, paginated=True).start("one").call("ls", "a\n")
    made.put("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABo" * (9 << 20)})
    path = imported(sessgit, made.end("done").turns("two"))
    assert [turn["prompt"] for turn in sessgit.json("log", THREAD)["turns"]] == ["one", "two"]
    path.unlink()
    sessgit.out("restore", THREAD)
    assert path.read_bytes() == made.data


def test_archiving_moves_a_rollout(sessgit: Shell) -> None:
    """And back: it goes on in either folder."""
    made = rollout(sessgit, paginated=True).turns("one")
    path = imported(sessgit, made)
    archived = sessgit.home / ".codex" / "archived_sessions" / path.name
    archived.parent.mkdir()
    for number, (old, new) in enumerate(((path, archived), (archived, path)), start=2):
        old.rename(new)
        assert "byte for byte" in sessgit.out("restore", THREAD)
        new.write_bytes(made.turns(f"turn {number}").data)
        assert sessgit.json("log", THREAD)["turns"][-1]["prompt"] == f"turn {number}"
        assert list((sessgit.home / ".codex").rglob("*.jsonl")) == [new]
    sound(sessgit)


@pytest.mark.skipif(sys.version_info < (3, 14) and not shutil.which("zstd"), reason="nothing unpacks zstd here")
def test_a_compressed_rollout(sessgit: Shell) -> None:
    """The client reads it, and lays it out again when it goes on with it."""
    sessgit.keep(sessgit.talk().turns("mend the roof"))
    made = rollout(sessgit, paginated=True).turns("one", "two")
    path = keep(sessgit, made)
    packed = path.with_name(f"{path.name}.zst")
    subprocess.run(["zstd", "-q", "--rm", path], check=True)
    data = packed.read_bytes()
    assert sessgit.out("import") == "2 conversations, 3 turns imported\n"
    assert "byte for byte as the client wrote it" in " ".join(sessgit.out("restore", THREAD).split())
    assert sessgit.json("fork", THREAD, "--at", "1")["turn"] == 1
    merged = sessgit("merge", SESSION, "--into", THREAD)
    assert (merged.code, "is compressed" in merged.err) == (3, True), merged
    assert packed.read_bytes() == data and not path.exists()
    packed.unlink()
    path.write_bytes(made.turns("three").data)
    assert [turn["prompt"] for turn in sessgit.json("log", THREAD)["turns"]] == ["one", "two", "three"]
    sound(sessgit)


def test_a_compressed_rollout_that_is_damaged(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = keep(sessgit, rollout(sessgit).turns("one"))
    packed = path.rename(path.with_name(f"{path.name}.zst"))
    done = sessgit("import")
    assert done.code == 1
    assert "cannot read: what is compressed in it is damaged" in done.err or "is compressed with zstd" in done.err
    assert packed.exists()


def test_the_name_of_a_thread(sessgit: Shell) -> None:
    """The client keeps names in a file of their own; the last one counts, and a name that sessgit gave comes first."""
    names = sessgit.home / ".codex" / "session_index.jsonl"
    made = rollout(sessgit, paginated=True).turns("one")
    path = keep(sessgit, made)
    lines = [{"id": OTHER, "thread_name": "not this"}, {"id": THREAD, "thread_name": "use AKIAIOSFODNN7EXAMPLQ"}]
    names.write_text("".join(json.dumps(line) + "\n" for line in lines) + "no JSON " + THREAD)
    sessgit.out("import")
    assert "use [redacted:aws-access-key]" in sessgit.out("ls")
    with names.open("a") as file:
        file.write("\n" + json.dumps({"id": THREAD, "thread_name": "the parser"}) + "\n")
    path.write_bytes(made.turns("two").data)
    assert sessgit.out("log", THREAD).startswith("01a20000  the parser  ·")
    sessgit.out("edit", THREAD, "--name", "ours")
    assert "ours" in sessgit.out("ls")
    sound(sessgit)


def test_a_copy_of_the_folder(sessgit: Shell, tmp_path: Path) -> None:
    rollout(sessgit).turns("one").save(tmp_path / "copy")
    (tmp_path / "copy" / "session_index.jsonl").write_text(json.dumps({"id": THREAD, "thread_name": "parser"}) + "\n")
    assert sessgit("import", "--from", "codex", str(tmp_path)).code == 4
    assert sessgit("import", "--from", "codex", str(tmp_path / "copy")).code == 0
    (row,) = sessgit.json("ls", "--all")["sessions"]
    assert (row["id"], row["agent"], row["title"]) == (THREAD, "codex", "parser")


@pytest.mark.parametrize("parent_first", [True, False])
def test_a_subagent_is_a_child(sessgit: Shell, *, parent_first: bool) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1, "agent_nickname": "Erdos"}}}
    child = Rollout(OTHER, cwd=str(sessgit.project), paginated=True, source=spawned).turns("say hi")
    for made in (rollout(sessgit).turns("ask a helper"), child)[:: 1 if parent_first else -1]:
        imported(sessgit, made)
    rows = {row["id"]: row for row in sessgit.json("ls", "--all")["sessions"]}
    assert (rows[OTHER]["child_of"], rows[OTHER]["parent"], rows[OTHER]["headless"]) == (THREAD, None, True)
    assert rows[THREAD]["child_of"] is None
    assert "child" in sessgit.out("show", THREAD)
    sound(sessgit)


@pytest.mark.parametrize("edited", [False, True])
def test_a_rollout_that_the_client_rewrote(sessgit: Shell, *, edited: bool) -> None:
    """`codex migrate-rollouts` writes every line again. Where people changed the conversation, its turns stay as they
    are, and new ones follow."""
    made = rollout(sessgit).turns("one", "two")
    path = imported(sessgit, made)
    if edited:
        sessgit.out("edit", THREAD, "--label", "review")
    older = made.data
    made.paginated = True
    made.lines = [json.dumps(json.loads(line) | {"ordinal": number}).encode() for number, line in enumerate(made.lines)]
    path.write_bytes(made.data)
    assert [turn["tokens"]["input"] for turn in sessgit.json("log", THREAD)["turns"]] == [90, 90]
    versions = branches(Store(sessgit.store))
    assert versions.keys() == {THREAD} if edited else {THREAD, f"{THREAD}.m-01a20001"}
    path.write_bytes(made.turns("three").data)
    assert [turn["prompt"] for turn in sessgit.json("log", THREAD)["turns"]] == ["one", "two", "three"]
    path.unlink()
    sessgit.out("restore", THREAD)
    if edited:
        assert path.read_bytes().startswith(older)
    else:
        assert path.read_bytes() == made.data
    sound(sessgit)
