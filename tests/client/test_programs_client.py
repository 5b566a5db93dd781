"""Sessions that a program holds, in the hands of the real client.

The proof is what the model received: the words and cells as the program wrote them, every call with its result.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import ENDS
from model_server import FILLERS, REMINDER
from world import World

from sessgit import Outcome, Session, Store, Task, ToolCall

pytestmark = [pytest.mark.client, ENDS]

Sent = list[tuple[str, str, Any]]


@pytest.fixture
def store(world: World) -> Iterator[Store]:
    with Store.open(config=world.home / ".claude") as made:
        yield made
    subprocess.run(["git", "-C", str(made.path), "fsck", "--strict"], check=True, capture_output=True)


def sent(world: World, session: str) -> Sent:
    """What the last request sent: texts, calls with their arguments, results with their texts.

    Fails where the model's service would refuse it: a call without a result in the next message of the user.
    """
    shown: Sent = []
    waiting: set[str] = set()
    names: dict[str, str] = {}
    last = ""
    for message in world.model.main(session)[-1].body["messages"]:
        role, content = message["role"], message["content"]
        if role == "system":
            continue
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                assert not waiting or last == "tool_use", block
                waiting.add(block["id"])
                names[block["id"]] = block["name"]
                shown.append((role, block["name"], block["input"]))
            elif block["type"] == "tool_result":
                waiting.remove(block["tool_use_id"])
                said = block.get("content") or ""
                text = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
                mark = "!" if block.get("is_error") else ""
                shown.append((role, f"{mark}{names[block['tool_use_id']]}", text))
            elif block["type"] == "text":
                text = REMINDER.sub("", block["text"]).strip()
                if text and text not in FILLERS:
                    assert not waiting
                    shown.append((role, "text", text))
            last = block["type"]
    assert not waiting
    return shown


def asked(world: World, session: Session, prompt: str) -> Sent:
    """What the client sends with a prompt; the prompt comes last."""
    world.model.clear()
    world.run(prompt, resume=session.id)
    found = sent(world, session.id)
    assert found[-1] == ("user", "text", prompt)
    return found[:-1]


def work(session: Session) -> Sent:
    """A turn with everything in it, and what the client must make of it."""
    with session.turn("map it") as turn:
        first = session.begin_cell(type="repl", operation="peek at", args={"file": "lex.py"})
        session.complete_cell(first, {"lines": [1, 2]})
        outer = session.begin_cell(type="map_reduce", operation="all", dependencies=[first])
        for number in range(2):
            with session.cell("part", args={"n": number}, dependencies=[outer]) as cell:
                cell.result = number
        session.record_reasoning("They fit.", evidence=[outer])
        session.complete_cell(outer, "two parts")
        left, right = session.begin_cells([Task("tool", "left"), Task("tool", "right")])
        session.complete_cells({right: Outcome(error="no"), left: Outcome("")})
        turn.add(ToolCall("Bash", {"command": "ls"}, "a\nb"))
        turn.answer("Done.")
    found: Sent = [
        ("user", "text", "map it"),
        ("assistant", "peek_at", {"file": "lex.py"}), ("user", "peek_at", '{"lines":[1,2]}'),
        ("assistant", "all", {}), ("assistant", "part", {"n": 0}), ("user", "part", "0"),
        ("user", "all", "No result yet: it comes below."),
        ("assistant", "part", {"n": 1}), ("user", "part", "1"),
        ("assistant", "text", "They fit.\nEvidence: " + outer.id),
        ("assistant", "all", {"cell": outer.id}), ("user", "all", "two parts"),
        ("assistant", "left", {}), ("assistant", "right", {}), ("user", "!right", "no"), ("user", "left", ""),
        ("assistant", "Bash", {"command": "ls"}), ("user", "Bash", "a\nb"),
        ("assistant", "text", "Done."),
    ]  # fmt: skip
    return found


def unordered(found: Sent) -> list[tuple[str, str, str]]:
    """Results of one message may come in another order."""
    return sorted((role, name, json.dumps(what)) for role, name, what in found)


def test_the_client_sends_what_the_program_wrote(world: World, store: Store) -> None:
    session = store.create_session(world.project, name="program")
    wanted = work(session)
    session.record_turn("and then?", "Nothing.", model="claude-test-1", tokens={"input": 3, "output": 1})
    wanted += [("user", "text", "and then?"), ("assistant", "text", "Nothing.")]
    found = asked(world, session, "hello")
    assert unordered(found) == unordered(wanted)
    places = [n for n, one in enumerate(found) if one[0] == "assistant"]
    assert [found[n] for n in places] == [one for one in wanted if one[0] == "assistant"]


def test_the_client_and_the_program_take_turns(world: World, store: Store) -> None:
    session = store.create_session(world.project)
    session.record_turn("one", "1")
    wanted: Sent = [("user", "text", "one"), ("assistant", "text", "1")]
    world.run("bash: echo two", resume=session.id)
    wanted += [
        ("user", "text", "bash: echo two"), ("assistant", "text", "Step 1."),
        ("assistant", "Bash", {"command": "echo two", "description": "mock"}), ("user", "Bash", "two"),
        ("assistant", "text", "Echo: bash: echo two"),
    ]  # fmt: skip
    cell = session.begin_cell(type="repl", operation="three", args={"n": 3})
    session.complete_cell(cell, 33)
    wanted += [("user", "text", "repl: three"), ("assistant", "three", {"n": 3}), ("user", "three", "33")]
    assert asked(world, session, "four") == wanted
    wanted += [("user", "text", "four"), ("assistant", "text", "Echo: four")]
    with session.turn("five") as turn:
        turn.answer("5")
    wanted += [("user", "text", "five"), ("assistant", "text", "5")]
    assert asked(world, session, "six") == wanted
    again = store.load_session(session.id)
    assert [turn.prompt for turn in again] == ["one", "bash: echo two", "repl: three", "four", "five", "six"]
    assert again.cells(turn=3)[0].id == cell.id
    heads = subprocess.run(
        ["git", "-C", str(store.path), "for-each-ref", "--format=%(refname:short)", "refs/heads"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert heads.stdout.split() == [session.id]


def test_a_fork_at_a_cell(world: World, store: Store) -> None:
    session = store.create_session(world.project)
    wanted = work(session)
    fork = session.fork(at="1.3", name="aside")
    found = asked(world, fork, "hello")
    assert unordered(found) == unordered(wanted[:7])
    fork = store.load_session("aside")
    assert [turn.prompt for turn in fork] == ["map it", "hello"]
    with fork.turn("goes on"), fork.cell("again") as cell:
        cell.result = 1
    assert asked(world, fork, "bye")[-3:] == [
        ("user", "text", "goes on"), ("assistant", "again", {}), ("user", "again", "1"),
    ]  # fmt: skip


CRASH = """
import os, sys
from sessgit import Store
session = Store.open(config=sys.argv[1]).load_session(sys.argv[2])
with session.turn("crashes"):
    with session.cell("good") as cell:
        cell.result = 1
    session.begin_cell(type="repl", operation="bad")
    os._exit(9)
"""


def crashed(world: World, session: Session) -> None:
    command = [sys.executable, "-c", CRASH, str(world.home / ".claude"), session.id]
    assert subprocess.run(command, check=False).returncode == 9


def test_a_cell_that_a_crash_left(world: World, store: Store) -> None:
    """The client goes on behind it in its own way, and the program after the client."""
    session = store.create_session(world.project)
    session.record_turn("one", "1")
    crashed(world, session)
    assert [(cell.operation, cell.state) for cell in session.pending()] == [("bad", "interrupted")]
    kept = [
        ("user", "text", "one"), ("assistant", "text", "1"), ("user", "text", "crashes"), ("assistant", "good", {}),
        ("user", "good", "1"),
    ]  # fmt: skip
    assert asked(world, session, "hello")[: len(kept)] == kept
    again = store.load_session(session.id)
    assert again.pending() == []
    assert again.record_turn("three", "3") == 4
    assert [turn.prompt for turn in again] == ["one", "crashes", "hello", "three"]
    assert asked(world, again, "bye")[-2:] == [("user", "text", "three"), ("assistant", "text", "3")]


def test_a_crash_that_the_program_goes_on_from(world: World, store: Store) -> None:
    session = store.create_session(world.project)
    crashed(world, session)
    session.record_turn("on", "we go")
    error = "interrupted: the session went on without a result"
    assert asked(world, session, "hello") == [
        ("user", "text", "crashes"), ("assistant", "good", {}), ("user", "good", "1"), ("assistant", "bad", {}),
        ("user", "!bad", error), ("user", "text", "on"), ("assistant", "text", "we go"),
    ]  # fmt: skip


def test_merged_and_restored(world: World, store: Store, tmp_path: Path) -> None:
    """A summary of theirs, a fork and a restored file: what holds of conversations holds of a program's."""
    session = store.create_session(world.project)
    session.record_turn("one", "1")
    fork = session.fork()
    fork.record_turn("found", "a way")
    session.record_turn("two", "2")
    assert store.merge(fork, into=session, mode="graft").turns == (3,)
    path = next((world.home / ".claude" / "projects").glob(f"*/{session.id}.jsonl"))
    whole = path.read_bytes()
    path.rename(tmp_path / "away")
    session.record_turn("three", "3")
    assert path.read_bytes().startswith(whole)
    texts = [what for _, name, what in asked(world, session, "hello") if name == "text"]
    assert texts == ["one", "1", "two", "2", "found", "a way", "three", "3"]
