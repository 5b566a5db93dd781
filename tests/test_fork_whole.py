"""`sessgit fork` with what lay beside the turns as of then, and into another folder."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from homes import claude_homes
from plain import Keep, run_git
from shell import Shell
from sidecar_files import PLAN, helped, lay_beside, side_files, wipe
from strategies import SECRET
from transcripts import SESSION, Talk, subagent

from sessgit.agents.claude import home
from sessgit.branch import fork as forks
from sessgit.branch import restore
from sessgit.branch.fork import ForkPlan
from sessgit.history.resolve import ForkPoint
from sessgit.store import refs
from sessgit.store.store import Store

FORK = "f0000001-0000-4000-8000-ffffffffffff"


def recorded_whole(sessgit: Shell, *, words: str = "") -> tuple[Talk, dict[str, bytes]]:
    talk = helped(sessgit.talk().turns("one"))
    path = sessgit.keep(talk)
    beside = lay_beside(path.parent, talk, words=words)
    assert sessgit("import", "--from", "claude", str(sessgit.config)).code == 0
    return talk, beside


def of_fork(beside: dict[str, bytes]) -> dict[str, bytes]:
    """The same files as the fork's, but for the plan, which both have in one place."""
    return {
        name.replace(SESSION, FORK): data.replace(SESSION.encode(), FORK.encode())
        for name, data in beside.items()
        if not name.startswith("plans/")
    }


def test_all_that_lay_beside_comes_along(sessgit: Shell) -> None:
    _, beside = recorded_whole(sessgit)
    assert (
        sessgit.out("fork", "5e55")
        == f"""\
f0000001  2 turns, from 5e551011@2 “look around”
Also written: a subagent, a large tool result, 2 tasks, 2 todo lists and a plan.
Continue it:  claude --resume {FORK}
"""
    )
    assert side_files(sessgit.config) == beside | of_fork(beside)
    run_git(sessgit.store, "fsck", "--strict", "--no-dangling")


def test_as_of_the_turn_it_was_cut_at(sessgit: Shell) -> None:
    _, beside = recorded_whole(sessgit)
    found = sessgit.json("fork", "5e55@1")
    assert (found["files"], side_files(sessgit.config)) == ([], beside)


def test_pieces_up_to_the_turn(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().prompt("one").tool("Agent", {}, "agentId: abc")
    path = subagent(claude, talk, "abc", "a", "b")
    keep(talk.answer("One."))
    for number, text in enumerate(("c", "d"), start=2):
        early = Talk(file=talk.file)
        early.prompt_id = "e0000001-0000-4000-8000-000000000001"
        subagent(claude, early, "abc", text)
        keep(talk.prompt(str(number)).answer("Well."))
    tip = refs.session_tips(store.path, SESSION)[SESSION]
    second = next(c.id for c in store.repo.first_parents(tip) if store.message(c.id).number("Turn") == 2)
    made = forks.fork_session(
        store, store.state(tip), ForkPoint(SESSION, 2, second), ForkPlan(FORK, "", 0.0, claude_homes(claude.parents[1]))
    )
    lines = path.read_bytes().replace(SESSION.encode(), FORK.encode()).splitlines(keepends=True)
    theirs = claude / FORK / "subagents" / path.name
    assert theirs.read_bytes() == b"".join(lines[:3])

    # The agent goes on in the fork: its own lines are recorded once, and all comes back.
    with theirs.open("ab") as file:
        file.write(lines[3].replace(b'"d"', b'"e"'))
    transcript = claude / f"{FORK}.jsonl"
    leaf = made.state.agent_id and json.loads(transcript.read_bytes().splitlines()[-1])["leafUuid"]
    more = Talk(FORK).turns("ignored")
    more.file.lines.clear()
    more.leaf = leaf
    more.prompt("go on").answer("Gone on.")
    with transcript.open("ab") as file:
        file.write(more.data)
    keep(transcript, final=True)
    whole = {p: p.read_bytes() for p in (theirs, transcript, path)}
    wipe(claude.parents[1])
    restore.restore_session(store, FORK, claude_homes(claude.parents[1]))
    restore.restore_session(store, SESSION, claude_homes(claude.parents[1]))
    whole[path] = b"".join(line.replace(FORK.encode(), SESSION.encode()) for line in lines)
    assert {p: p.read_bytes() for p in whole} == whole


def test_without_files_restore_writes_them(sessgit: Shell) -> None:
    _, beside = recorded_whole(sessgit)
    sessgit.out("fork", "5e55", "--no-restore")
    assert side_files(sessgit.config) == beside
    assert sessgit("resume", FORK, "--print").code == 0
    assert side_files(sessgit.config) == beside | of_fork(beside)


def test_a_fork_of_a_fork(sessgit: Shell) -> None:
    _, beside = recorded_whole(sessgit)
    sessgit.out("fork", "5e55")
    second = sessgit.json("fork", FORK)["id"]
    expected = {n.replace(FORK, second): d.replace(FORK.encode(), second.encode()) for n, d in of_fork(beside).items()}
    assert side_files(sessgit.config) == beside | of_fork(beside) | expected


def test_at_a_cell_what_the_lines_up_to_there_name(sessgit: Shell) -> None:
    recorded_whole(sessgit)
    made = sessgit.json("fork", "5e55@2.2")  # up to the agent, before the large result
    kinds = [file["kind"] for file in made["files"]]
    assert kinds == ["subagent", "subagent"]
    listing = run_git(sessgit.store, "ls-tree", "-r", "--name-only", FORK, "turns/0000/000002/")
    assert "turns/0000/000002/subagents/agent-a1.jsonl" in listing
    assert "tool-results" not in listing


def test_words_that_the_clients_own_files_still_hold(sessgit: Shell) -> None:
    _, beside = recorded_whole(sessgit, words=SECRET)
    assert sessgit("fork", "5e55").err == ""
    assert side_files(sessgit.config) == beside | of_fork(beside)
    wipe(sessgit.config)
    done = sessgit("fork", "5e55")
    assert done.err == "4 secrets are redacted in the fork.\n"
    assert not any(SECRET.encode() in data for data in side_files(sessgit.config).values())


def test_a_plan_that_has_changed_since_is_left(sessgit: Shell) -> None:
    recorded_whole(sessgit)
    plan = sessgit.config / "plans" / f"{PLAN}.md"
    plan.write_text("A later plan.\n")
    said = sessgit.out("fork", "5e55").splitlines()
    assert said[1:3] == [
        "Also written: a subagent, a large tool result, 2 tasks and 2 todo lists.",
        "Not overwritten, because the contents differ: a plan.",
    ]
    assert plan.read_text() == "A later plan.\n"


def test_the_folder_of_an_older_client(keep: Keep, store: Store, claude: Path) -> None:
    """There a subagent's file is found by the subagent's id alone: both sessions have the same one."""
    talk = Talk(style="2.0").prompt("one").tool("Task", {}, "found")
    nested = subagent(claude, talk, "c0ffee11", "looking")
    flat = claude / nested.name
    flat.write_text(json.dumps({**json.loads(nested.read_bytes()), "promptId": None, "version": "2.0.46"}) + "\n")
    nested.unlink()
    keep(talk.answer("One."), final=True)
    tip = refs.session_tips(store.path, SESSION)[SESSION]
    point, plan = ForkPoint(SESSION, 1, tip), ForkPlan(FORK, "", 0.0, claude_homes(claude.parents[1]))
    made = forks.fork_session(store, store.state(tip), point, plan)
    assert [(file.path, file.outcome) for file in made.files] == [(flat, "already")]
    data = flat.read_bytes()
    wipe(claude.parents[1])
    assert restore.restore_session(store, FORK, claude_homes(claude.parents[1])).files[0].outcome == "written"
    assert restore.restore_session(store, SESSION, claude_homes(claude.parents[1])).files[0].outcome == "already"
    assert flat.read_bytes() == data


def test_into_another_folder(sessgit: Shell, tmp_path: Path) -> None:
    recorded_whole(sessgit)
    other = tmp_path / "other"
    other.mkdir()
    made = sessgit.json("fork", "5e55", "--project", str(other))
    there = home.project_folder(sessgit.config, str(other)) / f"{FORK}.jsonl"
    assert made["transcript"] == str(there)
    assert made["resume"] == f"cd {shlex.quote(str(other))} && claude --resume {FORK}"
    assert there.exists()
    assert (there.parent / FORK / "subagents" / "agent-a1.jsonl").exists()
    there.unlink()
    assert sessgit.json("restore", FORK)["path"] == str(there)
    nowhere = sessgit("fork", "5e55", "--project", str(tmp_path / "nowhere"))
    assert (nowhere.code, nowhere.err.splitlines()[0]) == (4, f"Error: there is no folder {tmp_path / 'nowhere'}.")
    assert len(sessgit.json("ls", "--all")["sessions"]) == 2
