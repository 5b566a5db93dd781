"""What the systems that sessgit replaces did: cleaning up, merging into a new session, following a scratchpad."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from foreigners import BORN, RLM, cell, log, put, rlm, went
from shell import Shell
from test_migrating import dialectic

from sessgit import Store
from sessgit.history import watch
from sessgit.store import store as stores


def states(sessgit: Shell) -> dict[str, str]:
    return {row["title"]: row["state"] for row in sessgit.json("ls", "--all")["sessions"]}


def test_an_active_session_whose_process_is_gone_is_interrupted(sessgit: Shell, tmp_path: Path) -> None:
    log(tmp_path, "GONE-1", went("in", "one"), status="active", pid=2**31 - 1)
    log(tmp_path, "HERE-2", went("in", "two"), status="active", pid=os.getpid())
    sessgit.out("import", "--from", "io-log", str(tmp_path))
    assert states(sessgit) == {"the task of GONE-1": "interrupted", "the task of HERE-2": "active"}
    (gone,) = sessgit.json("recover", "--all")["sessions"]
    assert (gone["title"], gone["state"], gone["cut"]) == ("the task of GONE-1", "interrupted", "answer")
    assert sessgit.out("recover", "--all").splitlines()[-1] == f"          {gone['command']}"
    with Store.open() as store, store.load_session("GONE-1") as session:
        session.record_turn("go on", "Done.")
    assert sessgit.out("recover", "--all") == "Nothing needs to be recovered.\n"


def test_folders_whose_sessions_have_one_id_are_named(sessgit: Shell, tmp_path: Path) -> None:
    for name in ("DEV-1", "DEV-2"):
        log(tmp_path, name, went("in", name), session_id="DEV")
    report = json.loads(sessgit("import", "--from", "io-log", str(tmp_path), "--json").out)
    logs = " and ".join(f".claude-man/sessions/{name}/io.log" for name in ("DEV-1", "DEV-2"))
    assert [one["reason"] for one in report["conversations"]] == [f"two of them have this id: {logs}"] * 2


def test_old_sessions_in_a_state_are_deleted_but_for_managers(sessgit: Shell, tmp_path: Path) -> None:
    for name, more in (
        ("DEV-1", {"status": "failed"}), ("DEV-2", {}), ("MAN-3", {"status": "failed", "role": "MANAGER"}),
        ("DEV-4", {"status": "aborted"}), ("DEV-5", {"status": "interrupted"}),
    ):  # fmt: skip
        log(tmp_path, name, went("in", name), **more)
    sessgit.out("import", "--from", "io-log", str(tmp_path))
    for state in ("failed", "aborted", "interrupted"):
        listed = {row["title"] for row in sessgit.json("ls", "--all", "--state", state)["sessions"]}
        names = {"failed": ["DEV-1", "MAN-3"], "aborted": ["DEV-4"], "interrupted": ["DEV-5"]}[state]
        assert listed == {f"the task of {name}" for name in names}
    words = ("delete", "--older-than", "30d", "--state", "failed", "--all")
    planned = sessgit("delete", "--json", *words[1:], "--dry-run")
    assert (planned.code, len(states(sessgit))) == (0, 5)
    done = sessgit(*words, "--yes")
    assert (done.code, done.err) == (0, "Skipped: 1 managing others\n")
    assert set(states(sessgit)) == {f"the task of {name}" for name in ("DEV-2", "MAN-3", "DEV-4", "DEV-5")}
    assert sessgit.out("delete", "--older-than", "30d", "--state", "active", "--all") == "Nothing to delete.\n"
    sessgit.out("undo")
    assert len(states(sessgit)) == 5


def test_two_sessions_merge_into_a_new_one_whatever_their_stages(sessgit: Shell, tmp_path: Path) -> None:
    for name, stage, confidence in (("sess_1", "shaping", 0.4), ("sess_2", "critiquing", 0.7)):
        passes = [{"type": "expansion", "content": f"A look at {name}."}]
        document = {"id": name, "title": name, "status": stage, "current_confidence": confidence, "passes": passes}
        put(tmp_path / ".dialectic" / name / "session.json", document)
    sessgit.out("import", "--from", "dialectic", str(tmp_path))
    sessgit.out("merge", "sess_2", "--into", "sess_1", "--new", "both")
    state = sessgit.json("show", "both")["session"]
    assert (state["stage"], state["confidence"]) == ("shaping", 0.4)
    assert sessgit("merge", "sess_2", "--into", "sess_1").code == 3


def watched(sessgit: Shell, act: Any) -> list[Any]:
    """The events of what `act` does."""
    before = watch.read_ref_state(sessgit.store)
    act()
    events, problems = watch.changes_between(
        stores.Store(sessgit.store), before, watch.read_ref_state(sessgit.store), ()
    )
    assert problems == []
    return events


def test_an_event_of_the_scratchpad_has_the_entry(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.out("import", "--from", "dialectic", str(dialectic(tmp_path)))
    address = "sess_1762164000"
    (event,) = watched(sessgit, lambda: sessgit.out("pad", "claim", "Both do.", "--into", address))
    assert [(one.kind, one.text, one.resolved) for one in event.entries] == [("claim", "Both do.", "")]
    (tension,) = [one["id"] for one in sessgit.json("pad", address)["entries"] if one["kind"] == "tension"]
    (event,) = watched(sessgit, lambda: sessgit.out("pad", "resolve", tension, "--into", address))
    assert [(one.kind, bool(one.resolved)) for one in event.entries] == [("tension", True)]


def rlm_with_outputs(at: Path, **more: Any) -> Path:
    said = [{"role": role, "content": role, "timestamp": BORN + n} for role, n in (("user", 0), ("assistant", 50))]
    outputs = [
        {"tool_name": "Bash", "content_preview": "no", "exit_code": 2, "timestamp": BORN + 5, "cell_id": None},
        {"tool_name": "Grep", "content_preview": "yes", "exit_code": 0, "timestamp": BORN + 6, "cell_id": None},
    ]
    files = {"/home/ada/shop/a.py": {"hash": "9f", "size_bytes": 3, "first_access": BORN, "last_access": BORN}}
    context = {"conversation": said, "files": files, "tool_outputs": outputs, "working_memory": {}}
    folder = rlm(at, context=context, **more)
    put(folder / "cells" / "cell_aaaaaaaa.json", cell("cell_aaaaaaaa", 3))
    put(folder / "file-access.jsonl", [{"file_path": "/home/ada/shop/b.py", "action": "read", "timestamp": BORN + 3}])
    return at


def test_outputs_of_tools_depend_on_nothing_and_keep_their_exit_codes(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.out("import", "--from", "rlm", str(rlm_with_outputs(tmp_path)))
    index = json.loads(sessgit.out("cells", RLM, "--index"))
    assert {tuple(one[key]) for one in index["cells"].values() for key in ("dependencies", "dependents")} == {()}
    cells = sessgit.json("cells", RLM)["cells"]
    assert [(one["operation"], one["ok"]) for one in cells] == [("peek", True), ("Bash", False), ("Grep", True)]
    shown = sessgit.json("show", f"{RLM}@1.2")["cell"]
    assert (shown["type"], shown["error"]) == ("tool", "Exit code 2\nno")


@pytest.mark.parametrize(("path", "found"), [("a.py", 1), ("b.py", 1), (".", 1), ("*.py", 1), ("c.py", 0)])
def test_files_that_another_system_noted_are_found(sessgit: Shell, tmp_path: Path, path: str, found: int) -> None:
    sessgit.out("import", "--from", "rlm", str(rlm_with_outputs(tmp_path)))
    assert len(sessgit.json("ls", "--all", "--", f"/home/ada/shop/{path}")["sessions"]) == found


def test_the_active_session_is_linked_as_the_current_one(sessgit: Shell, tmp_path: Path) -> None:
    active = {"session_id": RLM, "created_at": BORN, "updated_at": BORN + 100, "ended_at": None, "cwd": "/home/ada"}
    sessgit.out("import", "--from", "rlm", str(rlm_with_outputs(tmp_path / "from", metadata=active)))
    for _ in range(2):
        sessgit.out("export", "rlm", RLM, "--output", str(tmp_path / "to"))
        link = tmp_path / "to" / "rlm-sessions" / "current"
        assert link.readlink() == Path(RLM)
    assert sessgit.json("import", "--from", "rlm", str(tmp_path / "to"), "--dry-run")["refs"] == {}
