"""Two agents in one store: Claude Code, and a tiny one with other lines, another home and no ids."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kept import begins
from shell import Shell
from transcripts import SESSION

from sessgit import agents, environment
from sessgit.model.conversation.session import Session
from sessgit.recorder import drain
from sessgit.store import layout
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

CHAT = "7e0c4a11-0000-4000-8000-00000000000a"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tiny agent known, before the one that takes every file."""
    monkeypatch.setattr(agents, "PACKAGES", {"tiny": "tiny_agent", **agents.PACKAGES})


def place(sessgit: Shell, chat: str = CHAT) -> Path:
    return sessgit.home / ".tiny" / "chats" / "monday" / f"chat-{chat}.jsonl"


def write(sessgit: Shell, *turns: tuple[str, str]) -> Path:
    """Write a chat of the tiny client, with a line a minute."""
    path = place(sessgit)
    lines: list[dict[str, str]] = [{"chat": CHAT, "cwd": str(sessgit.project)}]
    for number, (ask, reply) in enumerate(turns):
        lines.append({"at": f"2026-03-01T11:{number:02}:00.000Z", "ask": ask})
        lines.append({"at": f"2026-03-01T11:{number:02}:30.000Z", "reply": reply})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return path


@begins
def both(shell: Shell) -> None:
    """A store with a session of each agent."""
    shell.keep(shell.talk().turns("mend the roof", "paint it"))
    write(shell, ("how high is the tower", "ninety metres"), ("and the bridge", "twelve metres"))
    done = shell("import")
    assert (done.code, done.out) == (0, "2 conversations, 4 turns imported\n"), done


def state(sessgit: Shell, session: str) -> Session:
    store = Store(sessgit.store)
    return store.state(store.ref(layout.head_ref(session)) or "")


def test_the_state_names_the_agent(both: Shell) -> None:
    assert (state(both, SESSION).agent, state(both, CHAT).agent) == ("claude", "tiny")
    assert state(both, CHAT).transcript == str(place(both))
    listed = both.out("ls")
    assert "how high is the tower" in listed
    assert "mend the roof" in listed


def test_an_agent_of_a_newer_version_has_the_default_home() -> None:
    homes = environment.read(os.environ).homes
    unknown = Session(CHAT, CHAT, "of a newer version")
    assert homes.of(unknown) == homes.of(Session(CHAT, CHAT)) == homes.folders["claude"]
    assert homes.of(Session(CHAT, CHAT, "tiny")) == homes.folders["tiny"]


def test_what_it_holds_is_read(both: Shell) -> None:
    log = both.out("log", CHAT[:8])
    assert "how high is the tower" in log
    assert "and the bridge" in log
    assert "ninety metres" in both.out("show", f"{CHAT[:8]}@1")
    assert CHAT[:8] in both.out("search", "twelve")
    assert "ninety metres" in both.out("export", "markdown", CHAT[:8])
    assert both.json("diff", f"{CHAT[:8]}@1", f"{SESSION[:8]}@1")
    assert both("verify", "--deep").code == 0


def test_new_lines_are_recorded_after_an_event(both: Shell) -> None:
    path = write(both, ("how high is the tower", "ninety metres"), ("and the bridge", "twelve metres"), ("why", "wind"))
    payload = {"hook_event_name": "Stop", "session_id": CHAT, "transcript_path": str(path), "cwd": str(both.project)}
    spool = StorePaths(both.store).spool
    spool.mkdir(exist_ok=True)
    (spool / "1-1.json").write_text(json.dumps(payload), "utf-8")
    place_of = environment.read(os.environ)
    drain.drain_spool(both.store, place_of.homes, {"HOME": str(both.home), "PATH": os.environ["PATH"]})
    assert state(both, CHAT).turns == 3
    assert "wind" in both.out("show", f"{CHAT[:8]}@3")


def test_a_fork_goes_on_in_its_own_home(both: Shell) -> None:
    done = both("fork", CHAT[:8], "--at", "1")
    assert done.code == 0, done
    (made,) = both.home.glob(".tiny/chats/*/chat-f0*.jsonl")
    fork = made.stem.removeprefix("chat-")
    assert f"tiny continue {fork}" in done.out
    head, *lines = place(both).read_bytes().splitlines(keepends=True)
    assert made.read_bytes() == head.replace(CHAT.encode(), fork.encode()) + lines[0] + lines[1]
    with made.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": "2026-03-01T12:00:00.000Z", "ask": "and the well"}) + "\n")
        file.write(json.dumps({"at": "2026-03-01T12:00:10.000Z", "reply": "thirty"}) + "\n")
    assert [turn["prompt"] for turn in both.json("log", fork)["turns"]] == ["how high is the tower", "and the well"]
    assert state(both, fork).agent == "tiny"
    assert not list(both.config.glob(f"projects/*/{fork}.jsonl"))
    assert both("verify", "--deep").code == 0


@pytest.mark.parametrize("mode", ["summary", "graft"])
def test_a_fork_is_merged_back(both: Shell, mode: str) -> None:
    assert both("fork", CHAT[:8], "--at", "1").code == 0
    (made,) = both.home.glob(".tiny/chats/*/chat-f0*.jsonl")
    with made.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": "2026-03-01T12:00:00.000Z", "ask": "and the well"}) + "\n")
        file.write(json.dumps({"at": "2026-03-01T12:00:10.000Z", "reply": "thirty"}) + "\n")
    before = place(both).read_bytes()
    done = both("merge", made.stem.removeprefix("chat-"), "--into", CHAT, "--mode", mode)
    assert done.code == 0, done
    assert place(both).read_bytes().startswith(before)
    assert b"and the well" in place(both).read_bytes().removeprefix(before)
    assert both.json("log", CHAT)["turns"][-1]["turn"] == 3
    assert both("undo").code == 0
    assert place(both).read_bytes() == before


@pytest.mark.parametrize("session", [SESSION, CHAT])
def test_each_is_restored_to_its_own_place(both: Shell, session: str) -> None:
    path = Path(state(both, session).transcript)
    data = path.read_bytes()
    path.unlink()
    assert both("restore", session).code == 0
    assert path.read_bytes() == data


def test_all_that_is_lost_comes_back(both: Shell) -> None:
    paths = [Path(state(both, session).transcript) for session in (SESSION, CHAT)]
    data = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    assert both("restore", "--all-lost").code == 0
    assert [path.read_bytes() for path in paths] == data


def test_a_second_import_finds_nothing_new(both: Shell) -> None:
    assert both.out("import") == "0 conversations, 0 turns imported; 2 were already imported\n"


def test_the_store_is_in_order(both: Shell) -> None:
    assert both("status").code == 0
    assert both("archive", CHAT[:8]).code == 0
    assert both("unarchive", CHAT[:8]).code == 0
    assert both("gc").code == 0
    assert both("delete", "--yes", CHAT[:8]).code == 0
    assert both("undo").code == 0
    assert "how high is the tower" in both.out("log", CHAT[:8])


def test_a_client_without_hooks_gets_none(both: Shell) -> None:
    done = both("install", "--agent", "tiny")
    assert (done.code, done.err) == (
        2, "Error: Tiny runs no hooks.\nHint: `sessgit import` records its conversations.\n",
    )  # fmt: skip


def test_a_folder_of_claudes_holds_no_other_agents_conversations(both: Shell) -> None:
    done = both("export", "claude", SESSION, CHAT, "--output", str(both.home / "along"))
    assert (done.code, done.err) == (
        1,
        f"Error: {CHAT} is a conversation with Tiny. Nothing was written.\n"
        f"Hint: `sessgit restore {CHAT} --output FILE` writes its transcript.\n",
    )
    assert not (both.home / "along").exists()
