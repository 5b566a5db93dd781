"""`sessgit show --json`: a session, a turn and a cell for programs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shell import Shell
from shown import document
from transcripts import SESSION

NUMBER, TEXT, WHOLE = (int, float), str, int
MAYBE_NUMBER, MAYBE_TEXT = (int, float, type(None)), (str, type(None))
SCHEMA: dict[str, Any] = {
    "metadata!": {
        "session_id!": TEXT, "created_at!": NUMBER, "updated_at!": NUMBER, "ended_at": MAYBE_NUMBER, "cwd!": TEXT,
        "claude_transcript_path": TEXT, "rlm_version": TEXT,
    },
    "activation!": {
        "rlm_active!": bool, "activation_mode!": {"complexity", "manual", "always", "never"},
        "activation_reason": MAYBE_TEXT, "complexity_score": MAYBE_NUMBER, "current_depth!": WHOLE, "max_depth": WHOLE,
    },
    "context!": {
        "files": {"*": {"hash": TEXT, "size_bytes": WHOLE, "first_access": NUMBER, "last_access": NUMBER}},
        "tool_outputs": [{
            "tool_name": TEXT, "content_preview": TEXT, "exit_code": (int, type(None)), "timestamp": NUMBER,
            "cell_id": MAYBE_TEXT,
        }],
        "working_memory": dict,
    },
    "budget!": {
        "total_tokens_used": WHOLE, "total_recursive_calls": WHOLE, "max_recursive_calls": WHOLE, "cost_usd": NUMBER,
        "by_model": {"*": {"calls": WHOLE, "tokens": WHOLE, "cost_usd": NUMBER}},
    },
    "cells": {
        "count": WHOLE, "index_path": TEXT, "version": TEXT, "session_id": TEXT,
        "cells": {"*": {"type!": TEXT, "dependencies!": [TEXT], "dependents!": [TEXT]}},
        "roots": [TEXT], "leaves": [TEXT], "execution_order": [TEXT],
    },
    "trajectory": {"events_count": WHOLE, "export_path": MAYBE_TEXT},
}  # fmt: skip
"""The shape of a session: a key with ! must be there, * stands for any key, others may be missing."""
CELL: dict[str, Any] = {
    "cell_id!": TEXT, "created_at!": NUMBER, "type!": {"repl", "tool", "llm_call", "map_reduce", "verification"},
    "input!": {"source": TEXT, "operation": TEXT, "args": dict},
    "output!": {"result": (dict, str, int, float, bool, type(None)), "error": MAYBE_TEXT, "execution_time_ms": NUMBER},
    "dependencies": [TEXT], "dependents": [TEXT],
    "metadata": {"depth": WHOLE, "model": MAYBE_TEXT, "tokens_used": WHOLE},
}  # fmt: skip


def check(value: Any, shape: Any, where: str = "") -> None:
    """Fails where a value has not its shape; keys that the shape does not know are passed over."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        for key, inner in shape.items():
            name = key.removesuffix("!")
            assert name in value or not key.endswith("!"), f"{where}.{name} is missing"
            for found in value if key == "*" else [name] if name in value else []:
                check(value[found], inner, f"{where}.{found}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for one in value:
            check(one, shape[0], f"{where}[]")
    elif isinstance(shape, set):
        assert value in shape, where
    else:
        assert isinstance(value, shape), f"{where} is {value!r}"
        assert not isinstance(value, bool) or shape is bool or bool in (shape if isinstance(shape, tuple) else ()), (
            where
        )


def test_a_session_for_programs(parser: Shell) -> None:
    for address in ("5e55", "by hand", "by cell", "5e55.r-a000"):
        check(document(parser, address), SCHEMA)
    found = document(parser, "5e55")
    lexer, grammar = (str(parser.project / name) for name in ("lexer.py", "grammar.md"))
    written = b"def lex(text):\n    yield from text\n"
    assert found["context"]["files"] == {
        lexer: {
            "hash": hashlib.sha256(written).hexdigest(), "size_bytes": len(written),
            "first_access": 1772359202.0, "last_access": found["context"]["files"][lexer]["last_access"],
        },
        grammar: {"first_access": 1772359208.0, "last_access": 1772359209.0},
    }  # fmt: skip
    assert found["metadata"]["created_at"] == 1772359201.0
    outputs = found["context"]["tool_outputs"]
    assert [(one["tool_name"], one["exit_code"]) for one in outputs] == [
        ("Write", None), ("Read", None), ("Bash", 0), ("Grep", None), ("Bash", 1), ("Edit", None),
    ]  # fmt: skip
    index = found["cells"]
    assert index["count"] == len(index["cells"]) == 16
    assert index["execution_order"] == list(index["cells"])
    for name, cell in index["cells"].items():
        assert all(name in index["cells"][other]["dependents"] for other in cell["dependencies"])
        assert (name in index["roots"]) == (not cell["dependencies"])
        assert (name in index["leaves"]) == (not cell["dependents"])
    assert found["budget"]["by_model"]["claude-test-1"] == {
        "calls": 9, "tokens": 10490,
        "by_kind": {"input": 900, "output": 140, "cache_read": 9000, "cache_write": 450},
    }  # fmt: skip
    assert found["family"]["forks"][1]["turn"] == 2
    assert found["family"]["rewound"] == [{"branch": f"{SESSION}.r-a0000003", "turn": 2, "turns": 1, "brought_back": 0}]
    assert document(parser, "by hand")["family"]["origin"]["session"] == SESSION


def test_no_more_than_a_hundred_outputs_of_a_thousand_characters(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("go")
    for number in range(120):
        talk.tool("Bash", {"command": "x"}, f"{number} " + "y" * 2000)
    sessgit.recorded(talk)
    outputs = document(sessgit, "5e55")["context"]["tool_outputs"]
    assert (len(outputs), outputs[0]["content_preview"][:3], outputs[-1]["content_preview"][:4]) == (100, "20 ", "119 ")
    assert {len(one["content_preview"]) for one in outputs} == {1000}


def test_a_turn_for_programs(parser: Shell) -> None:
    found = document(parser, "5e55@2")
    log = json.loads(parser.out("log", "5e55", "--json"))["sessgit.log/v1"]["turns"][1]
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
    for number in range(1, 9):
        check(document(parser, f"5e55@2.{number}"), CELL)
    found = document(parser, "5e55@2.7")
    assert found["output"] == {"result": None, "error": "Exit code 1\nno", "execution_time_ms": 1000.0}
    assert (found["ok"], found["exit_code"], found["dependency_ordinals"], found["dependent_ordinals"]) == (
        False,
        1,
        [6],
        [8],
    )
    message = document(parser, "5e55@2.8")
    assert (message["output"]["result"], message["thinking"]) == ("It binds both ways.", "Left or right?\nBoth.")
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
    assert cell["input"]["args"]["n"] is None
    assert "…" in json.dumps(cell["input"], ensure_ascii=False)
    assert "…" in sessgit.out("show", "5e55@1.2")
