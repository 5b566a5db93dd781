"""Sessions of apex and of dialectic brought in and told again, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shell import Shell
from strategies import REDACTED, SECRET
from test_apex import MESSAGES, SESSIONS, A, B, branched, message
from test_apex import session as apex_session
from test_dialectic import AT, FILES, laid
from test_dialectic import session as dialectic_session


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
    sources = {f"{SESSIONS}/{A}.json": apex_session(), f"{SESSIONS}/{B}.json": {**branch, "name": "trie"}}
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
