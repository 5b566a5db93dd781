"""What the client keeps beside a transcript, recorded with the turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pictures import branches, log, text, tree
from plain import Keep
from strategies import SECRET
from transcripts import SESSION, Talk, subagent

from sessgit.store import recorder_state
from sessgit.store.store import Store


def agents(store: Store) -> dict[int, list[str]]:
    """By turn what the pieces of the subagents' files say."""
    tip = branches(store)[SESSION]
    found: dict[int, list[str]] = {}
    for path in tree(store, tip):
        if "/subagents/" in path and path.endswith(".jsonl"):
            lines = text(store, tip, path).splitlines()
            found[int(path.split("/")[2])] = [json.loads(line)["message"]["content"][0]["text"] for line in lines]
    return found


def test_a_subagent_belongs_to_the_turn_that_started_it(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().prompt("one").tool("Task", {}, "found")
    subagent(claude, talk, "abc", "looking", "found")
    keep(talk.answer("One.").turns("two"))
    assert agents(store) == {1: ["looking", "found"]}


@pytest.mark.parametrize("lose_cursor", [False, True])
def test_what_a_background_agent_says_later_goes_with_the_turn_that_runs(
    keep: Keep, store: Store, claude: Path, lose_cursor: bool
) -> None:
    talk = Talk().prompt("one").tool("Task", {}, "started")
    path = subagent(claude, talk, "abc", "a", f"b {SECRET}")
    keep(talk.answer("One."))
    for number, words in enumerate((["c\rd"], [], ["e", "f"]), start=2):
        subagent(claude, talk_of_first_turn(talk), "abc", *words)
        if lose_cursor:
            recorder_state.delete_cursor(store.paths, SESSION)
        keep(talk.prompt(str(number)).answer("Well."))
    assert agents(store) == {1: ["a", "b [redacted:github-token]"], 2: ["c\rd"], 4: ["e", "f"]}
    assert len(path.read_bytes().splitlines()) == 5


def talk_of_first_turn(talk: Talk) -> Talk:
    first = Talk(file=talk.file)
    first.prompt_id = f"e0000001-0000-4000-8000-{talk.session[-12:]}"
    return first


def test_a_file_that_the_client_deleted_stays(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().prompt("one").tool("Task", {}, "started")
    path = subagent(claude, talk, "abc", "a")
    keep(talk)
    path.unlink()
    keep(talk.answer("One."))
    assert agents(store) == {1: ["a"]}


def test_a_large_result_in_a_file_of_its_own(keep: Keep, store: Store, claude: Path) -> None:
    folder = claude / SESSION / "tool-results"
    folder.mkdir(parents=True)
    (folder / "toolu_0001.txt").write_text("a lot of output\n")
    (folder / "toolu_0002.txt").write_text("of the next turn\n")
    (folder / "..hidden").write_text("no")
    talk = Talk().prompt("one").tool("Bash", {}, "saved to tool-results/toolu_0001.txt").answer("Long.")
    keep(talk.prompt("two").tool("Bash", {}, "saved to tool-results/toolu_0002.txt"))
    tip = branches(store)[SESSION]
    assert [path for path in tree(store, tip) if "/files/" in path] == [
        "turns/0000/000001/files/tool-results/toolu_0001.txt",
        "turns/0000/000002/files/tool-results/toolu_0002.txt",
    ]
    assert text(store, tip, "turns/0000/000001/files/tool-results/toolu_0001.txt") == "a lot of output\n"


def test_plan_todos_and_tasks_as_of_a_live_turn(keep: Keep, store: Store, claude: Path) -> None:
    config = claude.parents[1]
    for path, words in {
        f"todos/{SESSION}-agent-{SESSION}.json": "[1]",
        "todos/someone-else-agent-x.json": "[2]",
        f"tasks/{SESSION}/3.json": "{}",
        "plans/calm-river.md": f"Plan with {SECRET}\n",
    }.items():
        (config / path).parent.mkdir(parents=True, exist_ok=True)
        (config / path).write_text(words)
    talk = Talk().turns("zero").prompt("one", slug="calm-river").answer("One.")
    keep(talk, live=True)
    tip = branches(store)[SESSION]
    assert [path for path in tree(store, tip) if path.startswith("live/")] == [
        "live/plans/calm-river.md",
        "live/tasks/3.json",
        f"live/todos/{SESSION}-agent-{SESSION}.json",
    ]
    assert text(store, tip, "live/plans/calm-river.md") == "Plan with [redacted:github-token]\n"
    (config / "tasks" / SESSION / "3.json").unlink()
    keep(talk.turns("two"), live=True)
    assert [path for path in tree(store, branches(store)[SESSION]) if path.startswith("live/")] == [
        "live/plans/calm-river.md",
        f"live/todos/{SESSION}-agent-{SESSION}.json",
    ]


def test_an_import_makes_up_no_plan(keep: Keep, store: Store, claude: Path) -> None:
    (claude.parents[1] / "plans").mkdir(parents=True)
    (claude.parents[1] / "plans" / "calm-river.md").write_text("As of today.\n")
    keep(Talk().prompt("one", slug="calm-river").answer("One."))
    assert log(store, SESSION)[1:] == ["turn 1: one"]
    assert not [path for path in tree(store, branches(store)[SESSION]) if path.startswith("live/")]
