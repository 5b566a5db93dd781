"""What another system says and a session here has no room for: told, kept, and given back."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from foreigners import BORN, RLM, cell, log, put, rlm, went
from plain import run_git
from shell import Shell

from sessgit.model import pad as pads
from sessgit.model.conversation import session as sessions
from sessgit.model.foreign_session import agent_id

A, B = "cell_a1b2c3d4", "cell_e5f6g7h8"


def imported(sessgit: Shell, system: str, folder: Path) -> dict[str, str]:
    """Brings in the folder; what there is to say of each file."""
    done = sessgit.json("import", "--from", system, str(folder))
    return {file["path"]: file["reason"] for file in done["files"] if file["reason"]}


def exported(sessgit: Shell, system: str, session: str, to: Path) -> Path:
    sessgit.out("export", system, session, "--output", str(to))
    return to


def shown(sessgit: Shell, address: str) -> Any:
    return json.loads(sessgit.out("show", "--json", address))["session"]


def cells(sessgit: Shell, address: str = RLM) -> dict[str, Any]:
    return {one["id"]: (one["turn"], one["ok"]) for one in sessgit.json("cells", address)["cells"]}


@pytest.mark.parametrize("is_flat", [False, True])
def test_a_working_memory_that_is_too_large(sessgit: Shell, tmp_path: Path, is_flat: bool) -> None:
    memory = {"notes": "x" * sessions.LARGEST_MEMORY, "plan": ["ü", 1, None]}
    if is_flat:
        path = f"rlm-state/{RLM}.json"
        put(tmp_path / "s" / path, {"session_id": RLM, "created_at": BORN, "rlm_active": True,
                                    "current_depth": 0, "working_memory": memory})  # fmt: skip
    else:
        path = f"rlm-sessions/{RLM}/session.json"
        rlm(tmp_path / "s", context={"conversation": [{"role": "user", "content": "go"}], "working_memory": memory})
    why = "its working memory has 65.6 kB, but at most 65.5 kB are allowed: kept as a file"
    assert imported(sessgit, "rlm", tmp_path / "s") == {path: why}
    assert " ".join(sessgit.out("import", "--from", "rlm", str(tmp_path / "s")).split()).endswith(
        f"1 file: 1 imported imported {path} {why}"
    )
    kept = run_git(sessgit.store, "show", f"refs/heads/{RLM}:kept/rlm/working-memory.json")
    assert json.loads(kept) == memory
    out = exported(sessgit, "rlm", RLM, tmp_path / "out")
    state = json.loads((out / "rlm-sessions" / RLM / "session.json").read_bytes())
    assert state["context"]["working_memory"] == memory
    tree = run_git(sessgit.store, "rev-parse", f"refs/heads/{RLM}:kept/rlm/working-memory.json")
    shutil.rmtree(sessgit.store)
    imported(sessgit, "rlm", out)
    assert run_git(sessgit.store, "rev-parse", f"refs/heads/{RLM}:kept/rlm/working-memory.json") == tree
    assert shown(sessgit, RLM)["program"]["memory"] == {}


def test_entries_for_which_the_pad_has_no_room(sessgit: Shell, tmp_path: Path) -> None:
    many = pads.LARGEST // 2_100
    insights = [f"{n} " + "x" * 1_990 for n in range(many)]

    def laid(insights: list[str]) -> None:
        put(tmp_path / ".dialectic/s/session.json", {"id": "s", "title": "a lot", "created": "2026-03-01T10:00:00Z",
                                                     "status": "gathering", "insights": insights})  # fmt: skip

    laid(insights[: many // 2])
    own = agent_id("dialectic", "s")
    imported(sessgit, "dialectic", tmp_path)
    for number in range(4):  # what a person writes here takes the room that the others need
        for kind in ("thesis", "pass"):
            sessgit.out("pad", kind, *(("expansion",) if kind == "pass" else ()), f"{number} " + "y" * 19_900,
                        "--into", own)  # fmt: skip
    laid(insights)
    said = imported(sessgit, "dialectic", tmp_path)
    (why,) = said.values()
    assert re.fullmatch(
        "[0-9]+ entries did not fit on the scratchpad; [0-9]+ entries of its insights did not fit on the scratchpad: "
        "kept as a file",
        why,
    )
    kept = run_git(sessgit.store, "show", f"refs/heads/{own}:kept/dialectic/pad/insights.jsonl").splitlines()
    held = [one["text"] for one in sessgit.json("pad", own)["entries"] if one["kind"] == "insight"]
    assert [*held, *(json.loads(line)["text"] for line in kept)] == insights[: len(held) + len(kept)]
    out = exported(sessgit, "dialectic", own, tmp_path / "out")
    assert (out / ".dialectic/s/pad/insights.jsonl").read_text().splitlines() == kept
    assert imported(sessgit, "dialectic", tmp_path) == said  # as long as they have no room


def test_files_and_a_task_of_io_log_that_are_too_many_and_too_long(sessgit: Shell, tmp_path: Path) -> None:
    paths = [f"f{n}.md" for n in range(pads.MOST + 3)]
    task = "Do it.\n" + "and that, " * 300
    log(tmp_path / "s", "DEV-1", went("in", "go"), context_files=["x" * 2_001, *paths], task=task)
    assert imported(sessgit, "io-log", tmp_path / "s") == {
        ".claude-man/sessions/DEV-1/metadata.json":
            "4 context files did not fit on the scratchpad: kept; its task has more than 2,000 characters: cut, "
            "and kept",
    }  # fmt: skip
    own = agent_id("io-log", "DEV-1")
    assert [one["text"] for one in sessgit.json("pad", own)["entries"]] == paths[: pads.MOST]
    out = exported(sessgit, "io-log", own, tmp_path / "out")
    meta = json.loads((out / ".claude-man/sessions/DEV-1/metadata.json").read_bytes())
    assert meta["context_files"] == ["x" * 2_001, *paths]
    assert meta["task"] == task
    assert sessgit.json("import", "--from", "io-log", str(out), "--dry-run")["refs"] == {}


def test_a_name_that_is_taken_already(sessgit: Shell, tmp_path: Path) -> None:
    for one in "ab":
        put(tmp_path / f".apex/sessions/{one}.json", {
            "id": one, "name": "lexer", "projectPath": "/p", "createdAt": "2026-03-01T10:00:00Z",
            "messages": [{"id": one, "index": 0, "role": "user", "content": f"go {one}"}],         })  # fmt: skip
    assert imported(sessgit, "apex", tmp_path) == {
        ".apex/sessions/b.json": "another conversation is already called “lexer”: imported without a name",
    }  # fmt: skip
    authored = [shown(sessgit, agent_id("apex", one))["name"] for one in "ab"]
    assert authored == ["lexer", ""]
    out = exported(sessgit, "apex", agent_id("apex", "b"), tmp_path / "out")
    assert json.loads((out / ".apex/sessions/b.json").read_bytes())["name"] == "lexer"


# Cells without a result


def _pending(ident: str, at: float, **more: Any) -> dict[str, Any]:
    return cell(ident, at, output={"result": None, "error": None, "execution_time_ms": 0}, **more)


def test_a_pending_cell_stays_pending(sessgit: Shell, tmp_path: Path) -> None:
    folder = rlm(tmp_path / "s")
    put(folder / "cells" / f"{A}.json", _pending(A, 2))
    put(folder / "cells" / f"{B}.json", cell(B, 3, output={"result": None, "error": None, "execution_time_ms": 0.5}))
    imported(sessgit, "rlm", tmp_path / "s")
    before = cells(sessgit)
    assert [before[one] for one in (A, B)] == [(1, None), (1, True)]
    out = exported(sessgit, "rlm", RLM, tmp_path / "out")
    told = json.loads((out / "rlm-sessions" / RLM / "cells" / f"{A}.json").read_bytes())["output"]
    assert (told["result"], told["error"]) == (None, None)
    shutil.rmtree(sessgit.store)
    imported(sessgit, "rlm", out)
    assert cells(sessgit) == before


def test_a_pending_cell_gets_its_result_and_the_session_goes_on(sessgit: Shell, tmp_path: Path) -> None:
    said = ("count words", "42")
    folder = rlm(tmp_path, said=said)
    state = json.loads((folder / "session.json").read_bytes())
    for ident, at in ((A, 2), (B, 12)):  # one in the middle of the turn, one at its end
        put(folder / "cells" / f"{ident}.json", _pending(ident, at))
    outcomes = []

    def again(*more: str) -> None:
        rlm(tmp_path, said=(*said, *more), metadata={**state["metadata"], "ended_at": None})
        (one,) = sessgit.json("import", "--from", "rlm", str(tmp_path))["conversations"]
        outcomes.append((one["outcome"], *(cells(sessgit)[ident][1] for ident in (A, B))))

    again()
    put(folder / "cells" / f"{A}.json", cell(A, 2))
    again()
    again()
    again("more?", "yes")
    put(folder / "cells" / f"{B}.json", cell(B, 12))  # too late: its turn has ended here
    again("more?", "yes")
    again("more?", "yes", "and?", "no")
    assert outcomes == [
        ("new", None, None), ("grown", True, None), ("unchanged", True, None), ("grown", True, None),
        ("unchanged", True, None), ("grown", True, None),
    ]  # fmt: skip
    assert [turn["prompt"] for turn in sessgit.json("log", RLM)["turns"]] == ["count words", "more?", "and?"]
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_turns_without_times_are_as_old_as_the_session(sessgit: Shell, tmp_path: Path) -> None:
    log(tmp_path, "DEV-1", {"direction": "in", "content": "go"}, {"direction": "out", "content": "went"},
        created_at="2025-11-03T10:00:00Z")  # fmt: skip
    imported(sessgit, "io-log", tmp_path)
    (turn,) = sessgit.json("log", agent_id("io-log", "DEV-1"))["turns"]
    assert turn["time"] == "2025-11-03T10:00:00.000Z"


def test_what_is_wrong_with_files_is_said_once(sessgit: Shell, tmp_path: Path) -> None:
    put(rlm(tmp_path) / "cells" / "broken.json", "{nope")
    done = sessgit("import", "--from", "rlm", str(tmp_path))
    assert (done.code, done.err) == (1, "")
    assert done.out.count("broken.json") == 1
    done = sessgit("import", "--from", "rlm", str(tmp_path), "--json")
    assert (done.code, done.err) == (1, f"rlm-sessions/{RLM}/cells/broken.json: it is not JSON\n")
