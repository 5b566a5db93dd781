"""Sessions of apex and of dialectic brought in and told again, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreigners import log, went
from shell import Shell
from strategies import REDACTED, SECRET
from test_apex import MESSAGES, SESSIONS, A, B, branched, message
from test_apex import session as apex_session
from test_dialectic import AT, FILES, laid
from test_dialectic import session as dialectic_session

from sessgit import Store, ToolCall


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def held(root: Path, names: dict[str, Any]) -> dict[str, Any]:
    """What lies there now of the files of these names: values of JSON, and bytes."""
    return {
        name: (root / name).read_bytes() if isinstance(was, bytes) else json.loads((root / name).read_bytes())
        for name, was in names.items()
    }


# apex


def test_apex_gets_back_what_it_had(shell: Shell, tmp_path: Path) -> None:
    branch = branched(B, A, 3, [message(20, "user", "Or a trie?"), message(21, "assistant", "A trie.")], MESSAGES)
    sources = {
        f"{SESSIONS}/{A}.json": apex_session(childSessionIds=[B]),
        f"{SESSIONS}/{B}.json": {**branch, "name": "trie"},
    }
    laid(tmp_path / "from", sources)
    shell.out("import", "--from", "apex", str(tmp_path / "from"))
    shell.out("export", "apex", A, B, "-o", str(tmp_path / "to"))
    told = held(tmp_path / "to", sources)
    keys = told[f"{SESSIONS}/{B}.json"].pop("sessgit")["keys"]
    assert keys == [MESSAGES[1]["id"]]
    assert told == sources
    index = json.loads((tmp_path / "to" / SESSIONS / "index.json").read_bytes())
    assert [(one["id"], one["messageCount"]) for one in index["sessions"]] == [(A, 7), (B, 6)]
    assert shell.out("import", "--from", "apex", str(tmp_path / "to")).startswith("0 conversations")
    assert f"↳ {B}  trie" in shell.out("log", A)


def test_a_branch_of_apex_finds_the_parent_that_came_before_it(shell: Shell, tmp_path: Path) -> None:
    later = [message(20, "user", "Or a trie?"), message(21, "assistant", "A trie.")]
    both = {f"{SESSIONS}/{A}.json": apex_session(), f"{SESSIONS}/{B}.json": branched(B, A, 3, later, MESSAGES)}
    laid(tmp_path / "both", both)
    shell.out("import", "--from", "apex", str(tmp_path / "both"))
    for number, one in enumerate((A, B)):
        shell.out("export", "apex", one, "-o", str(tmp_path / f"alone{number}"))
    shell.out("undo")
    for number in range(2):
        shell.out("import", "--from", "apex", str(tmp_path / f"alone{number}"))
    assert shell.out("log", A).count(f"↳ {B[:8]}") == 1


def test_turns_that_apex_goes_on_with_are_added(shell: Shell, tmp_path: Path) -> None:
    path = laid(tmp_path, {f"{SESSIONS}/{A}.json": apex_session()}) / SESSIONS / f"{A}.json"
    shell.out("import", "--from", "apex", str(tmp_path))
    more = [*MESSAGES, message(7, "user", "And now?"), message(8, "assistant", "Ship it.")]
    path.write_text(json.dumps(apex_session(messages=more, tags=["fast"])))
    assert "grown" in shell.out("import", "--from", "apex", str(tmp_path))
    shell.out("export", "apex", A, "-o", str(tmp_path / "to"))
    assert json.loads((tmp_path / "to" / SESSIONS / f"{A}.json").read_bytes()) == apex_session(
        messages=more, tags=["fast"]
    )


def test_a_fork_of_an_apex_session_has_totals_of_its_own(shell: Shell, tmp_path: Path) -> None:
    said = [{**one, "taskId": "t2"} if one["index"] == 6 else one for one in MESSAGES]
    state = {"totalTokens": {"input": 190, "output": 34}, "totalCost": 0.04, "tasksCreated": ["t1", "t2"],
             "tasksCompleted": ["t1", "t2"], "currentTaskId": "t1", "lastGitBranch": "main"}  # fmt: skip
    laid(tmp_path, {f"{SESSIONS}/{A}.json": apex_session(messages=said, state=state, projectPath=str(tmp_path))})
    shell.out("import", "--from", "apex", str(tmp_path))
    shell.out("fork", A, "--at", "1", "--name", "half")
    shell.out("fork", A, "--name", "whole")
    half, whole = (shell.json("show", name)["session"]["id"] for name in ("half", "whole"))
    shell.out("export", "apex", A, half, whole, "-o", str(tmp_path / "to"))
    parent, half_one, whole_one = (
        json.loads((tmp_path / "to" / SESSIONS / f"{one}.json").read_bytes()) for one in (A, half, whole)
    )
    assert (parent["state"], parent["childSessionIds"]) == (state, sorted([half, whole]))
    same = {"totalTokens": {"input": 95, "output": 17}, "totalCost": 0.02, "lastGitBranch": "main"}
    assert half_one["state"] == {**same, "tasksCreated": [], "tasksCompleted": []}
    assert half_one["inputHistory"] == ["Why is it slow?"]
    assert whole_one["state"] == {**same, "tasksCreated": ["t2"], "tasksCompleted": ["t2"]}
    assert whole_one["inputHistory"] == ["Why is it slow?", "Make it fast."]
    again = shell.json("import", "--from", "apex", str(tmp_path / "to"))["conversations"]
    assert {one["id"]: one["outcome"] for one in again}[A] == "unchanged"


def test_a_fork_within_a_turn_keeps_the_messages_as_they_were(shell: Shell, tmp_path: Path) -> None:
    messages = [{**one, "metadata": {"model": "m"}} if one["role"] == "assistant" else one for one in MESSAGES]
    laid(tmp_path, {f"{SESSIONS}/{A}.json": apex_session(messages=messages, projectPath=str(tmp_path))})
    shell.out("import", "--from", "apex", str(tmp_path))
    said = [cell["address"] for cell in shell.json("cells", A)["cells"] if cell["turn"] == 1]
    shell.out("fork", A, "--at", said[2], "--name", "part")
    part = shell.json("show", "part")["session"]["id"]
    shell.out("export", "apex", A, part, "-o", str(tmp_path / "to"))
    document = json.loads((tmp_path / "to" / SESSIONS / f"{part}.json").read_bytes())
    assert document["messages"] == messages[:3]
    assert (document["parentSessionId"], document["branchPoint"]) == (A, 2)
    assert document["state"]["totalTokens"] == {"input": 90, "output": 10}


def test_a_new_turn_of_an_apex_session_adds_its_cost(shell: Shell, tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": apex_session()})
    shell.out("import", "--from", "apex", str(tmp_path))
    with Store.open() as store:
        calls = [ToolCall("Read", {"file_path": "a.ts"}, "x"), ToolCall("Bash", {"command": "ls"}, "a.ts")]
        used = {"input": 1_000_000, "output": 0}
        store.load_session(A).record_turn("And now?", "Ship it.", calls, model="claude-opus-4-5", tokens=used)
    cost = shell.json("log", A)["turns"][-1]["cost_usd"]
    shell.out("export", "apex", A, "-o", str(tmp_path / "to"))
    document = json.loads((tmp_path / "to" / SESSIONS / f"{A}.json").read_bytes())
    assert cost > 0
    assert document["state"]["totalCost"] == 0.02 + cost
    assert [(one["role"], one["content"], len(one.get("toolCalls", ()))) for one in document["messages"][7:]] == [
        ("user", "And now?", 0), ("assistant", "Ship it.", 2)
    ]  # fmt: skip


def test_no_secret_of_apex_is_stored(shell: Shell, tmp_path: Path) -> None:
    said = [message(0, "system", f"key {SECRET}"), message(1, "user", SECRET), message(2, "assistant", f"No {SECRET}")]
    laid(tmp_path, {f"{SESSIONS}/{A}.json": apex_session(messages=said, description=SECRET, inputHistory=[SECRET])})
    shell.out("import", "--from", "apex", str(tmp_path))
    shell.out("export", "apex", A, "-o", str(tmp_path / "to"))
    told = (tmp_path / "to" / SESSIONS / f"{A}.json").read_text()
    assert SECRET not in told
    assert [one["content"] for one in json.loads(told)["messages"]] == [f"key {REDACTED}", REDACTED, f"No {REDACTED}"]


# dialectic


def test_dialectic_gets_back_what_it_had(shell: Shell, tmp_path: Path) -> None:
    sources = {f"{AT}/session.json": dialectic_session(), **FILES}
    laid(tmp_path / "from", sources)
    shell.out("import", "--from", "dialectic", str(tmp_path / "from"))
    shell.out("export", "dialectic", "Who leads in chips?", "-o", str(tmp_path / "to"))
    assert held(tmp_path / "to", sources) == sources
    assert shell.out("import", "--from", "dialectic", str(tmp_path / "to")).startswith("0 conversations")


def test_the_pad_of_a_dialectic_session_goes_on(shell: Shell, tmp_path: Path) -> None:
    laid(tmp_path, {f"{AT}/session.json": dialectic_session(), **FILES})
    shell.out("import", "--from", "dialectic", str(tmp_path))
    name = shell.json("ls", "--all")["sessions"][0]["id"]
    assert "Next         Settle 1 open tension" in shell.out("pad", name)
    assert shell.out("pad", "brief", name).splitlines()[:3] == [
        "We continue “Who leads in chips?”. This is what we have noted so far.",
        "",
        "Current state: stage critiquing, cycle 2, confidence 0.6.",
    ]
    assert "We continue “Who leads in chips?”." in shell("resume", "--brief", "--print", name).out
    shell.out("fork", name, "--name", "child")
    assert [(one["kind"], one["text"]) for one in shell.json("pad", "child")["entries"]] == [
        ("claim", "Debt comes in cycles"), ("claim", "Engineers lead"), ("claim", "Tools are scarce"),
        ("claim", "Water is scarcer"), ("tension", "Debt against engineers"), ("thesis", "Institutions lead."),
    ]  # fmt: skip


def test_what_dialectic_notes_and_settles_later_is_taken_over(shell: Shell, tmp_path: Path) -> None:
    laid(tmp_path, {f"{AT}/session.json": dialectic_session()})
    shell.out("import", "--from", "dialectic", str(tmp_path))
    name = shell.json("ls", "--all")["sessions"][0]["id"]
    shell.out("pad", "add", "risk", "drought", "--into", name)
    tensions = [
        {**dialectic_session()["tensions"][0], "status": "resolved", "resolution": "Both"},
        dialectic_session()["tensions"][1],
    ]
    later = dialectic_session(
        insights=["one", "two", "three", "four"], tensions=tensions, cycle=3, status="synthesized"
    )
    laid(tmp_path, {f"{AT}/session.json": later})
    shell.out("import", "--from", "dialectic", str(tmp_path))
    shown = shell.json("pad", name)
    texts = [one["text"] for one in shown["entries"] if one["kind"] in ("insight", "risk")]
    assert texts == ["one", "two", "three", "four", "war", "drought"]
    (settled,) = [one for one in shown["entries"] if one["text"] == "Debt against engineers"]
    assert settled["answer"] == "Both"
    assert (shown["stage"], shown["cycle"]) == ("synthesized", 3)
    shell.out("export", "dialectic", name, "-o", str(tmp_path / "to"))
    told = json.loads((tmp_path / "to" / AT / "session.json").read_bytes())
    assert "drought" in told.pop("sessgit")["pad"]["risks"]
    assert told == later | {"risks": ["war", "drought"], "cycle_insights": told["cycle_insights"]}


# io-log


def test_a_fork_of_an_io_log_session_has_no_process_of_its_own(shell: Shell, tmp_path: Path) -> None:
    said = (went("in", "one", 1), went("artifact", "a.md", 2, action="created"), went("in", "two", 3),
            went("artifact", "b.md", 4, action="created"))  # fmt: skip
    made = ["a.md", "b.md", "c.md"]
    log(tmp_path, "DEV-1", *said, pid=4711, exit_code=3, artifacts_produced=made)
    shell.out("import", "--from", "io-log", str(tmp_path))
    shell.out("fork", "DEV-1", "--at", "1", "--name", "half")
    half = shell.json("show", "half")["session"]["id"]
    shell.out("export", "io-log", "DEV-1", half, "-o", str(tmp_path / "to"))
    parent, fork = (
        json.loads((tmp_path / "to" / ".claude-man" / "sessions" / one / "metadata.json").read_bytes())
        for one in ("DEV-1", half)
    )
    assert (parent["pid"], parent["exit_code"], parent["artifacts_produced"]) == (4711, 3, made)
    assert (fork["parent_session"], fork["artifacts_produced"]) == ("DEV-1", ["a.md"])
    assert not fork.keys() & {"pid", "exit_code"}


def test_a_fork_of_an_rlm_session_has_its_files(shell: Shell, tmp_path: Path) -> None:
    """Those that were accessed before it, and after it those of its own turns."""
    said = [("user", "One?", 100.0), ("assistant", "Yes.", 110.0), ("user", "Two?", 200.0), ("assistant", "No.", 210.0)]
    files = {"/a.py": {"hash": "aa", "first_access": 105.0}, "/b.py": {"first_access": 205.5}, "/c.py": {"hash": "cc"}}
    talk = [{"role": role, "content": text, "timestamp": time} for role, text, time in said]
    document = {"metadata": {"session_id": "abc123", "created_at": 100.0, "cwd": str(tmp_path)}}
    document |= {"context": {"conversation": talk, "files": files}}
    laid(tmp_path, {"rlm-sessions/abc123/session.json": document})
    shell.out("import", "--from", "rlm", str(tmp_path))

    def exported(fork: str) -> dict[str, Any]:
        own = shell.json("show", fork)["session"]["id"]
        shell.out("export", "rlm", fork, "-o", str(tmp_path / fork))
        state = json.loads((tmp_path / fork / f"rlm-sessions/{own}/session.json").read_bytes())
        kept: dict[str, Any] = state["context"]["files"]
        return kept

    shell.out("fork", "abc123", "--at", "1", "--name", "early", "--no-restore")
    shell.out("fork", "abc123", "--name", "late")
    shell.out("fork", "early", "--name", "again", "--no-restore")
    early = {"/a.py": files["/a.py"], "/c.py": files["/c.py"]}
    assert (exported("early"), exported("again")) == (early, early)
    with Store.open() as store:
        store.load_session("late").record_turn("And?", "So.", [ToolCall("Read", {"file_path": "/d.py"}, "x")])
    later = exported("late")
    assert "/d.py" in later
    assert {path: file for path, file in later.items() if path != "/d.py"} == files
