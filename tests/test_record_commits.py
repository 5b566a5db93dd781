"""The commits of a recording: when each was, and where one ends."""

from __future__ import annotations

import json

from pictures import branches, log
from plain import Keep
from transcripts import SESSION, Talk

from sessgit.model import canonical
from sessgit.store.store import Store


def test_a_compaction_and_an_end_are_when_the_client_wrote_them(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one").compact().turns("two")
    keep(talk, final=True)
    lines = [json.loads(line) for line in talk.lines]
    boundary = next(line["timestamp"] for line in lines if line.get("subtype") == "compact_boundary")
    last = max(line["timestamp"] for line in lines if "timestamp" in line)
    commits = store.repo.first_parents(branches(store)[SESSION])
    times = {commit.message.partition(":")[0]: commit.time for commit in commits}
    assert (times["compact"], times["end"]) == (canonical.seconds(boundary), canonical.seconds(last))


def test_a_session_with_nothing_behind_its_last_turn_ends_once(keep: Keep, store: Store) -> None:
    talk = Talk().prompt("one").answer("One.")
    keep(talk, final=True)
    assert not keep(talk, final=True).changed
    assert log(store, SESSION)[1:] == ["turn 1: one", "end: 1 turn"]


def test_a_turn_that_ends_with_a_result_is_whole_with_that_cell(keep: Keep, store: Store) -> None:
    keep(Talk().prompt("build").tool("Bash").tool("Read"), granularity="cell")
    assert log(store, SESSION)[1:] == ["cell 1.2: Bash", "cell 1.4: Read"]


def test_results_on_one_line_are_one_commit_of_the_last_of_their_cells(keep: Keep, store: Store) -> None:
    talk = Talk().prompt("build").call_only("Read").call_only("LS")
    calls = [json.loads(line)["message"]["content"][0]["id"] for line in talk.lines[-2:]]
    talk.user([{"type": "tool_result", "tool_use_id": call, "content": "done"} for call in calls])
    keep(talk, granularity="cell")
    assert log(store, SESSION)[1:] == ["cell 1.4: LS"]
