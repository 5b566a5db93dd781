"""`sessgit show --json`: a session, a turn and a cell for programs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shell import Shell
from shown import document
from transcripts import SESSION


def test_a_session_for_programs(parser: Shell) -> None:
    found = document(parser, "5e55")
    lexer, grammar = (str(parser.project / name) for name in ("lexer.py", "grammar.md"))
    written = b"def lex(text):\n    yield from text\n"
    last = found["files"][lexer]["last"]
    assert found["files"] == {
        lexer: {
            "sha256": hashlib.sha256(written).hexdigest(), "bytes": len(written), "first": "2026-03-01T10:00:02.000Z",
            "last": last,
        },
        grammar: {
            "sha256": None, "bytes": None, "first": "2026-03-01T10:00:08.000Z", "last": "2026-03-01T10:00:09.000Z",
        },
    }  # fmt: skip
    listed = next(one for one in parser.json("ls", "--all")["sessions"] if one["id"] == SESSION)
    assert {key: found[key] for key in listed if key in found} == {key: listed[key] for key in listed if key in found}
    assert (found["created"], found["cells"], found["subagent_calls"]) == ("2026-03-01T10:00:01.000Z", 16, 0)
    assert found["models"]["claude-test-1"]["calls"] == 9
    assert found["models"]["claude-test-1"]["tokens"] == {
        "input": 900, "output": 140, "cache_read": 9000, "cache_write": 450,
    }  # fmt: skip
    assert found["program"].pop("memory") == {}
    assert set(found["program"].values()) == {None}
    assert found["family"]["forks"][1]["turn"] == 2
    assert found["family"]["rewound"] == [{"branch": f"{SESSION}.r-a0000003", "turn": 2, "turns": 1, "brought_back": 0}]
    assert document(parser, "by hand")["family"]["origin"]["session_id"] == SESSION


def test_a_turn_for_programs(parser: Shell) -> None:
    found = document(parser, "5e55@2")
    log = json.loads(parser.out("log", "5e55", "--json"))["turns"][1]
    assert {key: found[key] for key in log} == log
    assert (found["seconds"], found["interrupted"], found["compacted"], found["cut"]) == (13.0, False, False, None)
    said = [(one["kind"], one.get("by") or one["tool"], one["ordinal"]) for one in found["pieces"]]
    assert said == [
        ("words", "person", None), ("call", "Read", 2), ("call", "Bash", 4), ("call", "Grep", 5), ("call", "Bash", 7),
        ("words", "person", None), ("words", "model", 8), ("words", "model", 8),
    ]  # fmt: skip
    assert found["pieces"][4]["exit_code"] == 1
    assert found["pieces"][2]["output"] == "\x1b[31m1 failed\x1b[0m"
    assert document(parser, "by cell@2")["cut"] == "2.3"
    start = document(parser, "by cell@0")
    assert (start["turn"], start["parent"], start["fork_turn"], start["fork_cell"]) == (0, SESSION, 1, "2.3")


def test_a_cell_for_programs(parser: Shell) -> None:
    found = document(parser, "5e55@2.7")
    assert (found["output"], found["error"], found["seconds"]) == (None, "Exit code 1\nno", 1.0)
    assert (found["ok"], found["exit_code"], found["dependency_ordinals"], found["dependent_ordinals"]) == (
        False,
        1,
        [6],
        [8],
    )
    message = document(parser, "5e55@2.8")
    assert (message["output"], message["thinking"]) == ("It binds both ways.", "Left or right?\nBoth.")
    assert message["tokens"] == {"input": 100, "output": 10, "cache_read": 1000, "cache_write": 50}
    assert document(parser, "5e55@4.2")["changes"][0]["diff"] == [
        "@@ -1 +1 @@",
        "-    yield text",
        "+    yield from text",
    ]


def test_what_is_nested_too_deeply_or_no_number(sessgit: Shell) -> None:
    deep: Any = "end"
    for _ in range(300):
        deep = [deep]
    sessgit.recorded(sessgit.talk().prompt("go").tool("Odd", {"deep": deep, "n": float("nan")}))
    cell = document(sessgit, "5e55@1.2")
    assert cell["input"]["n"] is None
    assert "…" in json.dumps(cell["input"], ensure_ascii=False)
    assert "…" in sessgit.out("show", "5e55@1.2")
