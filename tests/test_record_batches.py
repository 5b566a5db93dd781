"""Several events of one session that a recorder finds at once: the last of them says whether the agent has let go."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from homes import claude_homes
from pictures import log
from transcripts import SESSION, Talk

from sessgit.recorder import drain
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store


@pytest.mark.parametrize(
    ("names", "last"),
    [
        (("Stop", "SessionEnd"), "end: 2 turns"),
        (("SessionEnd", "SessionStart"), "turn 2: two"),  # it was resumed at once
        (("UserPromptSubmit", "SessionEnd"), "end: 2 turns"),
        (("UserPromptSubmit", "Stop"), "turn 2: two"),
        (("SessionStart", "UserPromptSubmit"), "turn 1: one"),
    ],
)
def test_what_they_come_to(store: Store, claude: Path, names: tuple[str, ...], last: str) -> None:
    path = Talk().turns("one").prompt("two").save(claude)
    spool = StorePaths(store.path).spool
    for number, name in enumerate(names):
        payload = {"hook_event_name": name, "session_id": SESSION, "transcript_path": str(path), "cwd": str(claude)}
        event = spool / f"1-{number}.json"
        event.write_text(json.dumps(payload))
        os.utime(event, (1_800_000_000 + number,) * 2)
    drain.drain_spool(store.path, claude_homes(claude.parents[1]), {"PATH": os.environ["PATH"], "HOME": str(claude)})
    assert log(store, SESSION)[-1] == last
    assert list(spool.iterdir()) == []
    assert not StorePaths(store.path).log.exists()
