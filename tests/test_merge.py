"""`sessgit merge`: what it brings back and what it says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from kept import begins
from merging import NEW, THEIRS, THIRD, assert_whole, authored, diverged, git, lines, prompts, tip, transcript
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.model.conversation.message import Message
from sessgit.store.store import Store


@begins
def sessgit(shell: Shell) -> None:
    diverged(shell)


# What is brought back


SUMMARY = """\
Merged from e90c55aa, “one”: 2 turns since turn 2

It shares its first 2 turns with this conversation, then continued separately.

Turn 3. Asked:
> put the tokens into a trie

Answered:
The trie is 2.3× faster.

Turn 4. Asked:
> measure both
> on the large file

Answered:
Measured.

Files it changed:
- /p/trie.py

Files it read:
- /p/a.py

It used 490 tokens."""


def test_a_summary(sessgit: Shell) -> None:
    before = transcript(sessgit).read_bytes()
    assert (
        sessgit.out("merge", "e90c", "--into", "5e55")
        == f"""\
5e551011  added turn 4 from e90c55aa, a summary of 2 turns
Continue it:  claude --resume {SESSION}
"""
    )
    assert transcript(sessgit).read_bytes().startswith(before)
    asked, answered = lines(sessgit)[-2:]
    assert asked["message"] == {"role": "user", "content": SUMMARY}
    assert answered["message"]["model"] == "<synthetic>"
    assert answered["parentUuid"] == asked["uuid"]
    turn = sessgit.json("log", SESSION)["turns"][-1]
    assert (turn["event"], turn["prompt"], turn["cost_usd"]) == ("turn", SUMMARY, 0)
    assert_whole(sessgit)
    subject, _, trailers = git(sessgit, "show", "-s", "--format=%B", SESSION).partition("\n\n")
    assert subject == f"merge: a summary of 2 turns of {THEIRS}"
    assert trailers == f"Session: {SESSION}\nEvent: merge\nOrigin: {THEIRS}@3-4"
    parents = git(sessgit, "show", "-s", "--format=%P", SESSION).split()
    assert parents == [turn["commit"], tip(sessgit, THEIRS)]


def test_one_turn_in_common_is_a_turn(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one").branch("0ff00000-0000-4000-8000-0ff000000000").turns("aside"))
    sessgit.out("merge", "0ff0", "--into", "5e55")
    said = sessgit.json("log", SESSION)["turns"][-1]["prompt"]
    assert "\n\nIt shares its first turn with this conversation, then continued separately.\n\n" in said


def test_a_graft(sessgit: Shell) -> None:
    tokens = sessgit.json("log", SESSION)["session"]["tokens"]["output"]
    assert (
        sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft").splitlines()[0]
        == "5e551011  added turns 4 to 5 from e90c55aa"
    )
    assert prompts(sessgit) == ["one", "two", "three", "put the tokens into a trie", "measure both"]
    log = sessgit.json("log", SESSION)
    assert [turn["event"] for turn in log["turns"]] == ["turn"] * 3 + ["graft"] * 2
    assert log["session"]["tokens"]["output"] == tokens + 20 + 10 + 10
    origins = git(sessgit, "log", "--first-parent", "--format=%(trailers:key=Origin,valueonly)", "-3", SESSION, "--")
    assert origins.split() == [f"{THEIRS}@3-4", f"{THEIRS}@4", f"{THEIRS}@3"]
    assert {line["sessionId"] for line in lines(sessgit)} == {SESSION}
    assert_whole(sessgit)


def test_some_turns(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", "--turns", "4")
    assert prompts(sessgit) == ["one", "two", "three", "measure both"]
    assert git(sessgit, "show", "-s", "--format=%P", SESSION).split()[1] == tip(sessgit, THEIRS)
    assert_whole(sessgit)


def test_up_to_a_turn_and_then_the_rest(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c@3", "--into", "5e55")
    assert prompts(sessgit)[3:] == ["Merged from e90c55aa, “one”: 1 turn since turn 2"]
    sessgit.out("merge", "e90c", "--into", "5e55")
    assert prompts(sessgit)[4:] == ["Merged from e90c55aa, “one”: 1 turn since turn 3"]
    assert_whole(sessgit)


def test_where_ours_has_not_gone_on_it_moves_forward(sessgit: Shell) -> None:
    fork = sessgit.json("fork", SESSION, "--at", "3")["id"]
    path = transcript(sessgit, fork)
    line = {"type": "user", "uuid": "a0000042", "message": {"role": "user", "content": "on"}, "sessionId": fork}
    leaf = json.loads(path.read_bytes().splitlines()[-1])["leafUuid"]
    with path.open("a") as file:
        file.write(json.dumps({**line, "parentUuid": leaf, "timestamp": "2026-03-01T12:00:00.000Z"}) + "\n")
    said = sessgit.out("merge", fork, "--into", SESSION, "--dry-run")
    assert said.splitlines()[1] == "  append       1 turn, as turn 4 (fast-forward)"
    sessgit.out("merge", fork, "--into", SESSION)
    assert prompts(sessgit) == ["one", "two", "three", "on"]
    assert sessgit.json("diff", SESSION, fork)["shared_turns"] == 4
    assert lines(sessgit)[-1]["uuid"] == "a0000042"
    assert_whole(sessgit)


def test_without_a_common_ancestor(sessgit: Shell) -> None:
    talk = Talk(THIRD, cwd=str(sessgit.project))
    talk.file.counts["a"] = 50
    sessgit.recorded(talk.turns("something else"))
    said = sessgit.out("merge", THIRD, "--into", SESSION, "--dry-run")
    assert said.splitlines()[0].startswith("base   none   ours  5e551011 (+")
    sessgit.out("merge", THIRD, "--into", SESSION)
    assert "shares no turn with this one" in lines(sessgit)[-2]["message"]["content"]
    assert_whole(sessgit)


def test_what_a_rewind_left_behind_comes_back(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(THIRD).turns("a", "b").rewind(1).turns("c"))
    sessgit.out("merge", f"{THIRD}.r-a0000002", "--into", THIRD, "--mode", "graft")
    assert prompts(sessgit, THIRD) == ["a", "c", "b"]
    uuids = [line["uuid"] for line in lines(sessgit, THIRD) if line.get("uuid")]
    assert len(set(uuids)) == len(uuids)
    assert sessgit.json("restore", THIRD, "--verify")["same"]
    assert (
        sessgit("merge", f"{THIRD}.r-a0000002", "--into", THIRD).err
        == "77be01d3.r-a0000002 is already merged into 77be01d3.\n"
    )


def test_a_new_conversation(sessgit: Shell) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    made = sessgit.json("merge", "e90c", "--into", "5e55", "--mode", "graft", "--new", "both")
    assert (made["session_id"], transcript(sessgit).read_bytes(), tip(sessgit)) == (NEW, before, head)
    assert prompts(sessgit, NEW) == ["one", "two", "three", "put the tokens into a trie", "measure both"]
    assert {line["sessionId"] for line in lines(sessgit, NEW)} == {NEW}
    assert sessgit.json("ls", "--forks-of", SESSION)["sessions"][0]["name"] == "both"
    assert_whole(sessgit, NEW)
    transcript(sessgit, NEW).unlink()
    sessgit.out("restore", NEW)
    assert_whole(sessgit, NEW)


def test_a_new_conversation_without_a_name(sessgit: Shell) -> None:
    done = sessgit.out("merge", "e90c", "--into", "5e55", "--new")
    assert done.startswith("f0000001  added turn 4 from e90c55aa, a summary of 2 turns\n")
    assert_whole(sessgit, NEW)


def test_a_file_that_is_gone_comes_back_whole(sessgit: Shell) -> None:
    path = transcript(sessgit)
    before = path.read_bytes()
    path.unlink()
    assert sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft").splitlines()[1] == (
        "Continue it:  sessgit resume 5e551011"
    )
    sessgit.out("restore", SESSION)
    assert path.read_bytes().startswith(before)
    assert next(line["parentUuid"] for line in lines(sessgit)[len(before.splitlines()) :]) in before.decode()
    head = tip(sessgit)
    assert_whole(sessgit)
    sessgit.out("import")
    assert tip(sessgit) == head


def test_a_gone_file_with_secrets_comes_back_as_it_is_stored(sessgit: Shell) -> None:
    token = "ghp_" + "Zk3vQ8yT1mXw7LrB5nCd9PsJ2hFg6AuEtR4W"
    talk = sessgit.talk(THIRD).prompt(f"use {token}").answer("No.").stop_lines().title(token)
    sessgit.recorded(talk)
    transcript(sessgit, THIRD).unlink()
    sessgit("merge", "e90c", "--into", THIRD)
    done = sessgit("restore", THIRD)
    assert done.code == 0, done
    found = lines(sessgit, THIRD)
    assert found[-2]["message"]["content"].startswith("Merged from e90c55aa")
    assert len(found) == len(talk.lines) + 2
    assert sessgit.json("restore", THIRD, "--verify")["missing"] == 0


def test_recording_goes_on_behind_it(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    last = lines(sessgit)[-1]
    line = {
        "type": "user", "uuid": "a0000099", "parentUuid": last["uuid"], "sessionId": SESSION,
        "timestamp": "2026-03-01T12:30:00.000Z", "message": {"role": "user", "content": "and on"},
    }  # fmt: skip
    with transcript(sessgit).open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert prompts(sessgit)[-1] == "and on"
    parent = git(sessgit, "log", "--format=%(trailers:key=Event,valueonly)", "--first-parent", SESSION, "--").split()
    assert parent[:3] == ["turn", "merge", "turn"]
    assert_whole(sessgit)


def test_an_import_into_an_empty_store_finds_the_same_turns(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    keys = [turn["prompt_uuid"] for turn in sessgit.json("log", SESSION)["turns"]]
    trees = git(sessgit, "rev-parse", f"{SESSION}:turns")
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "other"))
    sessgit("import")
    assert [turn["prompt_uuid"] for turn in sessgit.json("log", SESSION)["turns"]] == keys
    command = ["git", "-C", str(tmp_path / "other"), "rev-parse", f"{SESSION}:turns"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == trees


def test_side_files_come_along(sessgit: Shell) -> None:
    talk = sessgit.talk(THIRD).prompt("count").tool("Bash", {"command": "x"}, "see toolu_big.txt").answer("Done.")
    talk.stop_lines()
    folder = transcript(sessgit).parent / THIRD
    (folder / "tool-results").mkdir(parents=True)
    (folder / "tool-results" / "toolu_big.txt").write_text("much")
    (folder / "subagents").mkdir()
    agent = {"isSidechain": True, "promptId": talk.prompt_id, "agentId": "7c2d", "type": "user", "sessionId": THIRD}
    (folder / "subagents" / "agent-7c2d.jsonl").write_text(json.dumps(agent, separators=(",", ":")) + "\n")
    sessgit.recorded(talk)
    sessgit("pick", f"{THIRD}@1", "--into", "e90c")
    own = transcript(sessgit).parent / THEIRS
    assert (own / "tool-results" / "toolu_big.txt").read_text() == "much"
    assert THEIRS in (own / "subagents" / "agent-7c2d.jsonl").read_text()


# Twice, and what people said


@pytest.mark.parametrize("mode", [(), ("--mode", "graft"), ("--turns", "3")])
def test_twice_is_once(sessgit: Shell, mode: tuple[str, ...]) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", *mode)
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("merge", "e90c", "--into", "5e55", *mode)
    assert (done.code, done.out, done.err) == (0, "", "e90c55aa is already merged into 5e551011.\n")
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)
    assert sessgit.json("merge", "e90c", "--into", "5e55", *mode)["commit"] is None


def test_a_turn_that_lacks_only_an_open_call_has_nothing_new(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one").prompt("two").answer("Hm.").call_only("Bash"))
    sessgit.out("fork", SESSION, "--at", "2.1")
    assert "\n  append       nothing" in sessgit.out("merge", "f0000001", "--into", SESSION, "--dry-run")


def test_theirs_that_ours_went_on_from_is_there_already(sessgit: Shell) -> None:
    fork = sessgit.json("fork", SESSION, "--at", "2")["id"]
    assert sessgit("merge", SESSION + "@2", "--into", fork).err == "5e551011 is already merged into f0000001.\n"
    assert sessgit("merge", fork, "--into", SESSION).err == "f0000001 has no turns that 5e551011 lacks.\n"


def test_back_and_forth_brings_nothing_twice(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    sessgit.out("merge", "5e55", "--into", "e90c")
    assert prompts(sessgit, THEIRS)[4:] == ["three"]
    assert sessgit("merge", "e90c", "--into", "5e55").err == "e90c55aa has no turns that 5e551011 lacks.\n"


def test_dry_run_shows_the_decisions(sessgit: Shell) -> None:
    sessgit.out("edit", SESSION, "--description", "Pratt", "--label", "parser")
    sessgit.out("edit", THEIRS, "--description", "trie", "--label", "parser", "--label", "fast", "--stage", "shaping")
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    assert (
        sessgit.out("merge", "e90c", "--into", "5e55", "--dry-run")
        == """\
base   5e551011@2   ours  5e551011 (+1 turn)   theirs  e90c55aa (+2 turns)
  append       a summary of 2 turns, as turn 4
  union        files 0 + 2 → 2 · labels #fast, #parser
  take         stage “shaping” (theirs)
  conflict     description   ours “Pratt”   theirs “trie”
               --ours | --theirs | --set description=…
"""
    )
    done = sessgit("merge", "e90c", "--into", "5e55")
    assert (done.code, done.out, done.err) == (
        3,
        "",
        "Error: both sides changed:\n  description: ours “Pratt”, theirs “trie”\n"
        "Hint: Use `--ours` or `--theirs` for all of them, or `--set description=VALUE` for one. Nothing was "
        "changed.\n",
    )
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--ours",), "Pratt"),
        (("--theirs",), "trie"),
        (("--set", "description=both", "--set", "confidence=0.5"), "both"),
    ],
)
def test_a_conflict_is_decided(sessgit: Shell, option: tuple[str, ...], said: str) -> None:
    sessgit.out("edit", SESSION, "--description", "Pratt", "--name", "mine")
    sessgit.out("edit", THEIRS, "--description", "trie", "--name", "trie way", "--label", "fast")
    sessgit.out("merge", "e90c", "--into", "5e55", *option)
    found = authored(sessgit)
    assert (found["description"], found["name"], found["labels"]) == (said, "mine", ["fast"])
    assert found["confidence"] == (0.5 if said == "both" else None)


def test_for_programs(sessgit: Shell) -> None:
    plan = sessgit.json("merge", "e90c", "--into", "5e55", "--dry-run")
    assert (plan["commit"], plan["session_id"]) == (None, None)
    assert (plan["ours"], plan["theirs"]) == (tip(sessgit), tip(sessgit, THEIRS))
    assert plan["base"] == git(sessgit, "merge-base", SESSION, THEIRS)
    assert [(d["path"], d["action"], d["conflict"]) for d in plan["decisions"]] == [
        ("turns", "bring", False),
        ("files", "unite", False),
    ]
    done = sessgit.json("merge", "e90c", "--into", "5e55")
    assert (done["commit"], done["session_id"], done["base"]) == (tip(sessgit), SESSION, plan["base"])


def test_a_command_retells_the_summary(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", "--with", 'grep -c . ; echo "off: $SESSGIT_OFF"')
    said = lines(sessgit)[-2]["message"]["content"]
    assert said.startswith("Merged from e90c55aa, “one”: 2 turns since turn 2\n\n")
    assert said.splitlines()[2:] == [str(len([x for x in SUMMARY.splitlines()[2:] if x])), "off: 1"]
    assert_whole(sessgit)


@pytest.mark.parametrize("new", [(), ("--new",)])
@pytest.mark.parametrize(
    ("command", "why"), [("exit 3", "“exit 3” exited with code 3"), ("true", "“true” printed nothing")]
)
def test_a_command_that_fails_changes_nothing(sessgit: Shell, command: str, why: str, new: tuple[str, ...]) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("merge", "e90c", "--into", "5e55", "--with", command, *new)
    assert len(sessgit.json("ls")["sessions"]) == 2
    assert done.code == 1
    assert done.err.startswith(f"Error: {why}.\n")
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)


def test_stored_text_is_said_to_lack_words(sessgit: Shell) -> None:
    talk = sessgit.talk(THIRD)
    talk.file.counts["a"] = 50
    sessgit.recorded(talk.prompt("which token?").answer("It is ghp_" + "Zk3vQ8yT1mXw7LrB5nCd9PsJ2hFg6AuEtR4W"))
    done = sessgit("merge", THIRD, "--into", SESSION)
    assert done.err == "1 secret is redacted in the merged turns.\n"
    assert "[redacted:github-token]" in lines(sessgit)[-2]["message"]["content"]


def test_a_turn_that_was_cut_is_told_whole(sessgit: Shell) -> None:
    fork = sessgit.json("fork", THEIRS, "--at", "3.3")["id"]
    assert sessgit.out("merge", THEIRS, "--into", fork, "--dry-run").splitlines()[:2] == [
        "base   e90c55aa@2   ours  f0000001 (+0 turns)   theirs  e90c55aa (+1 turn)",
        "  append       a summary of 2 turns, as turn 4",
    ]
    sessgit.out("merge", THEIRS, "--into", fork)
    assert "The trie is 2.3× faster." in lines(sessgit, fork)[-2]["message"]["content"]
    assert_whole(sessgit, fork)


def test_of_several_bases_the_one_with_the_most_turns_counts(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c@3", "--into", "5e55")
    sessgit.out("merge", "5e55@3", "--into", "e90c", "--mode", "graft")
    bases = git(sessgit, "merge-base", "--all", SESSION, THEIRS).split()
    assert len(bases) == 2
    turns = {base: len(git(sessgit, "ls-tree", f"{base}:turns/0000").splitlines()) for base in bases}
    assert sorted(turns.values()) == [3, 3]
    plan = sessgit.json("merge", "e90c", "--into", "5e55", "--dry-run")
    assert plan["base"] == max(bases, key=lambda base: (turns[base], base))
    assert plan["decisions"][0]["value"] == [f"{THEIRS}@4"]


def test_lists_of_the_pad_unite(sessgit: Shell) -> None:
    store = Store(sessgit.store)

    def pad(session: str, name: str, data: bytes) -> None:
        ref, head = f"refs/heads/{session}", tip(sessgit, session)
        entry = (store.repo.write_blob(data), False)
        message = Message("edit: pad", (("Session", session), ("Event", "edit")))
        changes = {f"pad/{name}": entry}
        store.repo.move(ref, head, store.write_commit(head, changes, store.state(head), message, [head], 1))

    pad(SESSION, "insights.jsonl", b'"a"\n"b"\n')
    pad(THEIRS, "insights.jsonl", b'"b"\n"c"\n')
    pad(THEIRS, "plan.md", b"theirs")
    said = sessgit.out("merge", "e90c", "--into", "5e55", "--dry-run").splitlines()
    assert said[2:] == [
        "  union        files 0 + 2 → 2 · insights 2 + 2 → 3",
        "  take         pad/plan.md (theirs)",
    ]
    sessgit.out("merge", "e90c", "--into", "5e55")
    assert git(sessgit, "show", f"{SESSION}:pad/insights.jsonl") == '"a"\n"b"\n"c"'
    assert git(sessgit, "show", f"{SESSION}:pad/plan.md") == "theirs"
    assert 'Scratchpad, insights:\n"c"' in lines(sessgit)[-2]["message"]["content"]


@pytest.mark.parametrize("changed", ["ours", "theirs", "both"])
def test_another_file_of_the_pad_is_that_of_the_side_that_changed_it(sessgit: Shell, changed: str) -> None:
    talk = Talk(THIRD).turns("one")
    sessgit.recorded(talk)
    note(sessgit, THIRD, "as it began")
    sessgit.recorded(talk.turns("two"))
    fork = sessgit.json("fork", THIRD, "--name", "other way", "--no-restore")["id"]
    sessgit.out("edit", fork, "--description", "trie")
    for side, session in (("ours", THIRD), ("theirs", fork)):
        if changed in (side, "both"):
            note(sessgit, session, side)
    done = sessgit("merge", fork, "--into", THIRD)
    assert (done.code, "pad/notes" in done.err) == ((3, True) if changed == "both" else (0, False))
    if changed == "both":
        sessgit.out("merge", fork, "--into", THIRD, "--theirs")
    assert git(sessgit, "show", f"{THIRD}:pad/notes") == ("ours" if changed == "ours" else "theirs")


def note(sessgit: Shell, session: str, text: str) -> None:
    """Puts a file on the scratchpad that is no list, as only a program does."""
    store = Store(sessgit.store)
    before, message = tip(sessgit, session), Message("edit: noted", (("Session", session), ("Event", "edit")))
    files = {"pad/notes": (store.repo.write_blob(text.encode()), False)}
    after = store.write_commit(before, files, store.state(before), message, [before], store.commit(before).time)
    store.repo.move(f"refs/heads/{session}", before, after)


def test_the_log_tells_what_was_merged(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    shown = sessgit.out("log", SESSION).splitlines()
    assert shown[2] == "○─┐  merged e90c55aa  one (2 turns)"
    assert shown[3].startswith("● 5  ")
    assert sessgit.out("merge", "5e55", "--into", "e90c").startswith("e90c55aa  added turn 5 from 5e551011\n")
    assert "○─┐  merged 5e551011  one (1 turn)" in sessgit.out("log", THEIRS)
