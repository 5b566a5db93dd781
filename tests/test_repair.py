"""`sessgit repair`: a broken conversation mended in one of its own, and a store that lacks objects made whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clones import bare
from plain import run_git
from shell import Done, Shell
from test_verify import loose, unpack
from transcripts import OTHER, SESSION, Talk

MENDED = "f0000001-0000-4000-8000-ffffffffffff"
NOWHERE = b"ffffffff-0000-4000-8000-000000000000"


def broken(sessgit: Shell) -> Talk:
    """Turn 1 is whole; turn 2 has a call without its result; the prompt of turn 4 hangs on nothing, and the fifth one
    stands on a line with what came before it."""
    talk = sessgit.talk().turns("one").prompt("two").call_only("Bash", {"command": "ls"}).turns("three")
    talk.prompt("four")
    talk.lines[-2] = replaced(talk.lines[-2], parentUuid=NOWHERE.decode())
    talk.answer("yes").stop_lines().prompt("five").answer("no")
    answer, snapshot, prompt = talk.lines.pop(), talk.lines.pop(), talk.lines.pop()
    return talk.raw(prompt + snapshot + answer).stop_lines()


def replaced(line: bytes, **values: Any) -> bytes:
    return json.dumps(json.loads(line) | values, separators=(",", ":")).encode()


def said(path: Path) -> list[tuple[str, str, str]]:
    """Of each chained line its type, its uuid and what it hangs on, by their beginnings."""
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [(one["type"], one["uuid"][:8], (one["parentUuid"] or "")[:8]) for one in found if one.get("uuid")]


def report(done: Done) -> Any:
    return json.loads(done.out)


def test_a_healthy_conversation_is_left_alone(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    before = run_git(sessgit.store, "for-each-ref")
    assert sessgit.out("repair", "5e55") == (
        "5e551011 needs no repair: 2 turns, all lines intact. Nothing was changed.\n"
    )
    found = sessgit.json("repair", "5e55")
    assert (found["sound"], found["id"], found["repairs"]) == (True, None, [])
    assert run_git(sessgit.store, "for-each-ref") == before
    assert sessgit("undo").code == 4


def test_what_would_be_done(sessgit: Shell) -> None:
    path = sessgit.recorded(broken(sessgit))
    before = run_git(sessgit.store, "for-each-ref"), path.read_bytes()
    assert (
        sessgit.out("repair", "5e55", "--dry-run")
        == """\
  @2:8          the result of its call (Bash) is missing: added a line that says
                so
  @4:6          its parent is missing: linked to the line before it
  end:6         3 lines stood glued to another line: separated
Nothing was changed. This would create a new conversation that keeps turn 1 of
5e551011; the original stays.
"""
    )
    assert (run_git(sessgit.store, "for-each-ref"), path.read_bytes()) == before
    assert len(list(path.parent.iterdir())) == 1


def test_a_mended_conversation(sessgit: Shell) -> None:
    path = sessgit.recorded(broken(sessgit))
    original = path.read_bytes()
    assert sessgit.out("repair", "5e55").splitlines()[4:] == [
        "f0000001 is the repaired conversation: 5 turns, 1 of them shared with 5e551011.",
        "5e551011 did not change; sessgit undo removes the new one.",
        f"Continue it:  claude --resume {MENDED}",
    ]
    made = path.with_name(f"{MENDED}.jsonl")
    lost = json.loads(made.read_bytes().splitlines()[10])
    assert lost["message"]["content"] == [
        {
            "type": "tool_result", "tool_use_id": "toolu_0001", "is_error": True,
            "content": "The result of this call was not recorded.",
        }
    ]  # fmt: skip
    assert [one for one in said(made) if one[0] != "system"] == [
        ("user", "a0000001", ""),
        ("assistant", "b0000001", "a0000001"),
        ("user", "a0000002", "d0000002"),
        ("assistant", "b0000002", "a0000002"),
        ("user", lost["uuid"][:8], "b0000002"),
        ("user", "a0000003", lost["uuid"][:8]),
        ("assistant", "b0000003", "a0000003"),
        ("user", "a0000004", "d0000004"),
        ("assistant", "b0000004", "a0000004"),
        ("user", "a0000005", "d0000006"),
        ("assistant", "b0000005", "a0000005"),
    ]
    last = json.loads(made.read_bytes().splitlines()[-1])
    assert (last["type"], last["leafUuid"][:8], last["sessionId"]) == ("last-prompt", "b0000005", MENDED)
    assert path.read_bytes() == original
    turns = sessgit.json("log", MENDED)["turns"]
    assert [turn["prompt"] for turn in turns] == ["one", "two", "three", "four", "five"]
    assert sessgit.json("repair", MENDED)["sound"]
    assert sessgit.json("verify", "--deep")["findings"] == []
    assert sessgit.json("restore", MENDED, "--verify")["same"]


def test_what_the_commit_says(sessgit: Shell) -> None:
    sessgit.recorded(broken(sessgit))
    sessgit.out("repair", "5e55")
    log = run_git(sessgit.store, "log", "--reverse", "--format=%s", MENDED).splitlines()
    assert [subject[:27] for subject in log[1:5]] == [
        "turn 1: one", "fork: f0000001-0000-4000-80", "repair: 3 mends of 5e551011", "turn 2: two",
    ]  # fmt: skip
    repair = run_git(sessgit.store, "log", "--grep=^repair:", "--format=%b", MENDED)
    assert repair.strip().splitlines() == [
        f"Session: {MENDED}",
        "Event: repair",
        f"Origin: {SESSION}@2-4",
        "Mended: 2:8 call: the result of its call (Bash) is missing: added a line that says so",
        "Mended: 4:6 parent: its parent is missing: linked to the line before it",
        "Mended: 5:6 glued: 3 lines stood glued to another line: separated",
    ]


def test_undo_takes_it_back(sessgit: Shell) -> None:
    path = sessgit.recorded(broken(sessgit))
    refs = run_git(sessgit.store, "for-each-ref", "refs/heads")
    sessgit.out("repair", "5e55")
    (operation,) = [one for one in sessgit.json("ops")["operations"] if one["command"] == "repair"]
    assert operation["summary"] == "f0000001: 3 mends of 5e551011"
    sessgit.out("undo")
    assert run_git(sessgit.store, "for-each-ref", "refs/heads") == refs
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert sessgit.json("verify")["sound"]


def test_from_the_first_turn_on(sessgit: Shell) -> None:
    """Nothing can be shared: the new conversation stands on the beginning of the old one."""
    sessgit.recorded(sessgit.talk().prompt("one").call_only("Bash").turns("two"))
    done = sessgit.json("repair", "5e55")
    assert (done["shared"], done["turns"], [one["kind"] for one in done["repairs"]]) == (0, 2, ["call"])
    assert len(sessgit.json("log", done["id"])["turns"]) == 2
    assert sessgit.json("verify", "--deep")["findings"] == []
    assert sessgit.json("repair", done["id"])["sound"]


def test_what_lies_beside_goes_along(sessgit: Shell) -> None:
    from transcripts import subagent

    talk = sessgit.talk().turns("one").prompt("two").tool("Task", {"prompt": "x"}).call_only("Bash")
    path = sessgit.keep(talk)
    subagent(path.parent, talk, "7c2d", "found")
    sessgit.out("import")
    done = sessgit.json("repair", "5e55")
    assert [(Path(file["path"]).name, file["outcome"]) for file in done["files"]] == [("agent-7c2d.jsonl", "written")]
    names = run_git(sessgit.store, "ls-tree", "-r", "--name-only", done["id"]).splitlines()
    assert "turns/0000/000002/subagents/agent-7c2d.jsonl" in names
    assert sessgit.json("verify", "--deep")["findings"] == []


def test_a_branch_of_its_own_can_be_mended(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").prompt("two").call_only("Bash").rewind(1).turns("other")
    sessgit.recorded(talk)
    assert sessgit.json("repair", "5e55")["sound"]
    (left,) = (
        one for one in run_git(sessgit.store, "for-each-ref", "--format=%(refname:short)").split() if ".r-" in one
    )
    done = sessgit.json("repair", left.rpartition("/")[2])
    assert (done["shared"], len(done["repairs"])) == (1, 1)


def test_another_sessions_turns_are_left_out(sessgit: Shell) -> None:
    """Two clients wrote one file: what the other one said stands on a branch, and is in no mended file."""
    talk, strange = sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("strange")
    talk.lines.extend(strange.lines)
    talk.turns("two")
    sessgit.recorded(talk)
    done = sessgit.json("repair", "5e55")
    assert [(one["kind"], one["message"]) for one in done["repairs"]] == [
        ("writer", "2 lines of another session, 5e551011, left out"),
        ("writer", "turns of another session, 5e551011, in its file, on 5e551011.r-3b02aa3d: left out"),
    ]
    assert b"strange" not in Path(done["transcript"]).read_bytes()
    assert [turn["prompt"] for turn in sessgit.json("log", done["id"])["turns"]] == ["one", "two"]


def test_secrets_stay_replaced_and_are_told(sessgit: Shell) -> None:
    from strategies import SECRET

    sessgit.recorded(sessgit.talk().prompt(f"the key is {SECRET}").call_only("Bash"))
    done = sessgit("repair", "5e55")
    assert done.err == "1 secret is redacted in it.\n"
    assert SECRET.encode() not in next(sessgit.config.glob(f"projects/*/{MENDED}.jsonl")).read_bytes()


# Objects


@pytest.fixture
def lacking(sessgit: Shell) -> Shell:
    """A store of loose objects: three turns, and the second one's lines are gone."""
    sessgit.recorded(sessgit.talk().turns("one", "two", "three"))
    unpack(sessgit.store)
    lose(sessgit, "turns/0000/000002/transcript.jsonl")
    return sessgit


def lose(sessgit: Shell, path: str, rev: str = SESSION) -> str:
    oid = run_git(sessgit.store, "rev-parse", f"{rev}:{path}" if path else rev).strip()
    loose(sessgit.store, oid).unlink()
    return oid


def test_objects_come_back_from_the_clients_file(lacking: Shell) -> None:
    assert lacking("verify").code == 6
    assert lacking.out("repair", "5e55", "--dry-run") == (
        "1 object can be restored from the client's file.\nOther problems show once they are restored.\n"
    )
    assert lacking("verify").code == 6
    assert lacking.out("repair", "5e55") == (
        "1 object restored from the client's file.\n5e551011 is repaired: 3 turns.\n"
    )
    assert lacking.json("verify", "--deep")["sound"]
    assert run_git(lacking.store, "fsck", "--strict", "--no-dangling") == ""
    assert lacking.json("repair", "5e55")["sound"]


@pytest.mark.parametrize("path", ["", "session.json", "turns/0000/000001", "turns", "turns/0000/000003/before.jsonl"])
def test_whatever_is_lost_comes_back(sessgit: Shell, path: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two", "three"))
    head = run_git(sessgit.store, "rev-parse", SESSION).strip()
    unpack(sessgit.store)
    lose(sessgit, path)
    done = report(sessgit("repair", SESSION, "--json"))
    assert [one["source"] for one in done["recovered"]] == ["the client's file"]
    assert (done["id"], done["lost"]) == (None, [])
    assert run_git(sessgit.store, "rev-parse", SESSION).strip() == head
    assert sessgit.json("verify", "--deep")["sound"]


def test_a_damaged_object_in_a_pack(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    oid = run_git(sessgit.store, "rev-parse", f"{SESSION}:turns/0000/000002/transcript.jsonl").strip()
    (index,) = (sessgit.store / "objects" / "pack").glob("*.idx")
    listed = [line.split() for line in run_git(sessgit.store, "verify-pack", "-v", str(index)).splitlines()]
    (place,) = (int(words[4]) for words in listed if words[0] == oid)
    pack = index.with_suffix(".pack")
    pack.chmod(0o600)
    data = bytearray(pack.read_bytes())
    data[place + 40] ^= 0xFF
    pack.write_bytes(data)
    # By processes of their own: this one remembers the pack as it was.
    assert alone("verify").returncode == 6
    done = alone("repair", SESSION)
    assert (done.returncode, done.stderr) == (0, "")
    assert "restored from the client's file." in done.stdout
    assert alone("verify", "--deep").returncode == 0


def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sessgit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_objects_come_back_from_a_remote(lacking: Shell) -> None:
    box = bare(lacking.home / "box")
    lacking.out("remote", "add", "box", str(box))
    whole = run_git(lacking.store, "rev-parse", SESSION).strip()
    lacking.out("repair", SESSION)
    lacking.out("push", "box", "--all")
    unpack(lacking.store)
    lose(lacking, "turns/0000/000002/transcript.jsonl")
    next(lacking.config.glob("projects/*/*.jsonl")).unlink()
    done = report(lacking("repair", SESSION, "--json"))
    assert done["recovered"] == [{"objects": 1, "source": "the remote box"}]
    assert run_git(lacking.store, "rev-parse", SESSION).strip() == whole
    assert lacking.json("verify", "--deep")["sound"]


def test_what_can_be_read_becomes_a_conversation(lacking: Shell) -> None:
    next(lacking.config.glob("projects/*/*.jsonl")).unlink()
    done = lacking("repair", SESSION)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "1 object could not be found in any of its files or on a remote."
    assert "2 turns from turn 2 on cannot be read and are left out." in done.out
    assert "f0000001 is the repaired conversation: 1 turn." in done.out
    assert [turn["prompt"] for turn in lacking.json("log", MENDED)["turns"]] == ["one"]
    assert lacking("verify", MENDED).code == 0
    assert lacking("verify").code == 6
    lacking.out("undo")
    assert lacking("log", MENDED).code == 4


def test_a_commit_in_the_middle_is_lost(sessgit: Shell) -> None:
    """Each commit holds all turns: none of them is lost."""
    sessgit.recorded(sessgit.talk().turns("one", "two", "three"))
    unpack(sessgit.store)
    lose(sessgit, "", f"{SESSION}~2")
    next(sessgit.config.glob("projects/*/*.jsonl")).unlink()
    done = report(sessgit("repair", SESSION, "--json"))
    assert (done["turns"], done["unread"], len(done["lost"])) == (3, 0, 1)
    assert [turn["prompt"] for turn in sessgit.json("log", done["id"])["turns"]] == ["one", "two", "three"]


def test_a_file_in_another_encoding(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk().turns("one"))
    wide = path.read_bytes().decode().encode("utf-16")
    path.write_bytes(wide)
    assert "  it has no transcript lines" in sessgit("import").err
    path.write_bytes(b'{"type":"mode","mode":"normal","sessionId":"%s"}\n' % SESSION.encode() + wide)
    sessgit.out("import", str(path))
    done = sessgit("repair", "5e55")
    assert (done.code, done.err) == (
        6,
        "Error: 5e551011 has no line that a client could continue from.\n"
        "Hint: If its file is not UTF-8, convert it and import it again.\n",
    )


def test_nothing_of_it_is_left(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    (sessgit.store / "refs" / "heads" / "a41f9c02").write_text("1" * 40 + "\n")
    done = sessgit("repair", "a41f")
    assert (done.code, done.out) == (6, "")
    assert done.err.startswith("Error: cannot read a41f9c02")
    assert sessgit("verify", SESSION).code == 0


def test_a_file_that_was_turned_around(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").prompt("two").tool("Bash").answer("ok").stop_lines().turns("three")
    whole = list(talk.lines)
    talk.lines.reverse()
    path = sessgit.recorded(talk)
    before = run_git(sessgit.store, "for-each-ref", "refs/heads")
    (mend,) = sessgit.json("repair", "5e55", "--dry-run")["repairs"]
    assert (mend["kind"], mend["turn"], mend["line"]) == ("order", 1, 1)
    assert mend["message"] == "13 of 26 lines of its file came before the line that they follow: moved after it"
    done = sessgit.json("repair", "5e55")
    path.write_bytes(b"".join(line + b"\n" for line in whole))
    assert said(Path(done["transcript"])) == said(path)
    assert [turn["prompt"] for turn in sessgit.json("log", done["id"])["turns"]] == ["one", "two", "three"]
    assert sessgit.json("repair", done["id"])["sound"]
    assert sessgit.json("verify", "--deep")["findings"] == []
    sessgit.out("undo")
    assert run_git(sessgit.store, "for-each-ref", "refs/heads") == before


def test_a_project_that_is_gone_is_no_place_to_go_on_in(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(cwd="/gone").turns("one").prompt("two").call_only("Bash", {}).turns("three"))
    assert sessgit.json("repair", "5e55")["resume"] is None
    assert sessgit("repair", "5e55").out.splitlines()[-1] == (
        "Its folder is gone. Continue it in another:  sessgit fork f0000003 --project DIR"
    )
    forked = json.loads(sessgit("fork", "5e55", "--at", "1", "--json").out)
    assert (forked["resume"], forked["turn"]) == (None, 1)


@pytest.mark.parametrize("path", ["session.json", "turns/0000/000001/transcript.jsonl"])
def test_an_import_says_what_to_do(sessgit: Shell, path: str) -> None:
    """Of a session whose commits it cannot read, and whose file went on: typed as it says, it helps."""
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk)
    unpack(sessgit.store)
    lose(sessgit, path)
    sessgit.keep(talk.rewind(1).turns("three"))
    words = sessgit("import").err.replace("`", "").split()
    assert words[-7:-5] == ["repair", SESSION]
    sessgit.out(*words[-7:-5])
    sessgit.out("import")
    assert [turn["prompt"] for turn in sessgit.json("log", SESSION)["turns"]] == ["one", "three"]
    assert sessgit.json("verify", "--deep")["findings"] == []
