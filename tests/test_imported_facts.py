"""What other systems say of their sessions is shown: totals, costs, exit codes, roles, artifacts, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreigners import BORN, log, put, rlm, went
from shell import Shell
from test_migrating import SYSTEMS


def facts(sessgit: Shell, address: str) -> dict[str, Any]:
    source = json.loads(sessgit.out("show", "--json", address))["session"]["source"]
    assert source["id"] == address
    return dict(source["facts"])


def test_of_a_log_exit_code_pid_role_and_artifacts(sessgit: Shell, tmp_path: Path) -> None:
    log(tmp_path, "DEV-7", went("in", "build"), status="failed", pid=4711, exit_code=3, artifacts_produced=["a.md"])
    sessgit.out("import", "--from", "io-log", str(tmp_path))
    assert facts(sessgit, "DEV-7") == {
        "role": "DEVELOPER", "status": "failed", "pid": 4711, "exit_code": 3, "artifacts_produced": ["a.md"],
    }  # fmt: skip
    assert (
        "Imported    from io-log, there DEV-7\n"
        "            artifacts produced a.md  ·  exit code 3  ·  pid 4711\n"
        "            role DEVELOPER  ·  status failed\n"
    ) in sessgit.out("show", "DEV-7")


def test_totals_of_others_are_in_stats(sessgit: Shell, tmp_path: Path) -> None:
    message = {"id": "1", "index": 0, "role": "user", "content": "go"}
    state = {"totalTokens": {"input": 1713, "output": 110}, "totalCost": 0.0625, "tasksCreated": ["t-9"]}
    document = {"id": "abc123", "projectPath": "/p", "messages": [message], "state": state}
    put(tmp_path / "a/.apex/sessions/abc123.json", document)
    sessgit.out("import", "--from", "apex", str(tmp_path / "a"))
    files = {"/p/scan.py": {"hash": "9f", "size_bytes": 8}}
    context = {"conversation": [{"role": "user", "content": "why", "timestamp": BORN}], "files": files}
    rlm(tmp_path / "r", "r-1", context={**context, "tool_outputs": [{"tool_name": "Bash"}]})
    sessgit.out("import", "--from", "rlm", str(tmp_path / "r"))
    assert facts(sessgit, "abc123") == {"tokens": 1823, "cost_usd": 0.0625, "tasksCreated": ["t-9"]}
    assert facts(sessgit, "r-1") == {"tokens": 10, "cost_usd": 0.5, "files": ["/p/scan.py"], "tool_outputs": 1}
    assert sessgit.json("stats")["imported"] == {"sessions": 2, "tokens": 1833, "cost_usd": 0.5625}
    assert sessgit.out("stats").endswith(
        "According to their systems, 2 imported conversations used 2k tokens, $0.56.\n"
    )
    assert sessgit.json("stats", "abc123")["imported"]["sessions"] == 1


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_was_kept_aside_is_listed_and_printed(sessgit: Shell, tmp_path: Path, name: str) -> None:
    system, make = SYSTEMS[name]
    sessgit.out("import", "--from", system, str(make(tmp_path / "source")))
    for row in sessgit.json("ls", "--all")["sessions"]:
        every = sessgit.json("show", row["id"], "--kept=")["kept"]
        listed = sessgit("show", row["id"], "--kept=").out
        for file in every:
            text = sessgit.json("show", row["id"], "--kept", file["path"])["text"]
            assert file["path"] in listed and len(text.encode()) == file["bytes"]
            assert sessgit.out("show", row["id"], "--kept", file["path"]) == text
    assert sessgit("show", row["id"], "--kept", "nothing").code == 4
