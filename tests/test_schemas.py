"""The JSON Schemas in `docs/schemas`: they are what the code says, and what is recorded fits them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import stored_schemas
from foreigners import log, went
from jsonschema import Draft202012Validator
from merging import THEIRS, diverged
from plain import run_git
from shell import Shell
from transcripts import SESSION, Talk
from unifying import EVERYTHING

from sessgit.agents.claude.programs import Chain
from sessgit.api import documents as programs
from sessgit.api import program_state
from sessgit.api.program_state import StateRequest
from sessgit.history import cell_graph
from sessgit.model import canonical
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens
from sessgit.model.program_input import Metadata, Outcome, Reason, Task
from sessgit.store import layout, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.recorder_state import AppendIntent, LatestTurn
from sessgit.store.store import Store

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
NAMES = (
    "session", "cell", "pad-entry", "kept-source", "cursor", "operation", "append-note", "latest", "remote-state",
    "purged-values", "program-mark", "unified-session", "unified-cell", "unified-index",
)  # fmt: skip
WRITE = os.environ.get("SESSGIT_TEST_WRITE_SCHEMAS") == "1"

NUMBER, TEXT, INTEGER = {"type": "number"}, {"type": "string"}, {"type": "integer"}
MAYBE_TEXT = {"type": ["string", "null"]}
OTHERS_SESSION: dict[str, Any] = {
    "$schema": stored_schemas.DIALECT,
    "type": "object",
    "properties": {
        "metadata": {
            "type": "object",
            "properties": {
                "session_id": TEXT, "created_at": NUMBER, "updated_at": NUMBER, "cwd": TEXT, "rlm_version": TEXT,
                "ended_at": {"type": ["number", "null"]}, "claude_transcript_path": TEXT,
            },
            "required": ["session_id", "created_at", "updated_at", "cwd"],
        },
        "activation": {
            "type": "object",
            "properties": {
                "rlm_active": {"type": "boolean"},
                "activation_mode": {"type": "string", "enum": ["complexity", "manual", "always", "never"]},
                "activation_reason": MAYBE_TEXT,
                "complexity_score": {"type": ["number", "null"]},
                "current_depth": {"type": "integer", "minimum": 0},
                "max_depth": {"type": "integer", "minimum": 1, "maximum": 3},
            },
            "required": ["rlm_active", "activation_mode", "current_depth"],
        },
        "context": {
            "type": "object",
            "properties": {
                "files": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {
                            "hash": TEXT, "size_bytes": INTEGER, "first_access": NUMBER, "last_access": NUMBER
                        },
                    },
                },
                "tool_outputs": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "tool_name": TEXT, "content_preview": {"type": "string", "maxLength": 1000},
                            "exit_code": {"type": ["integer", "null"]}, "timestamp": NUMBER, "cell_id": MAYBE_TEXT,
                        },
                    },
                    "maxItems": 100,
                },
                "working_memory": {"type": "object", "additionalProperties": True},
            },
        },
        "budget": {
            "type": "object",
            "properties": {
                "total_tokens_used": INTEGER, "total_recursive_calls": INTEGER, "max_recursive_calls": INTEGER,
                "cost_usd": NUMBER,
                "by_model": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object", "properties": {"calls": INTEGER, "tokens": INTEGER, "cost_usd": NUMBER}
                    },
                },
            },
        },
        "cells": {"type": "object", "properties": {"count": INTEGER, "index_path": TEXT}},
        "trajectory": {"type": "object", "properties": {"events_count": INTEGER, "export_path": MAYBE_TEXT}},
    },
    "required": ["metadata", "activation", "context", "budget"],
}  # fmt: skip
"""The schema of a whole state as those other programs have it, word for word but for what is said of it."""


def validator(name: str) -> Draft202012Validator:
    found = json.loads((FOLDER / f"{name}.schema.json").read_bytes())
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def check(name: str, value: object) -> None:
    problems = [f"{problem.json_path}: {problem.message}" for problem in validator(name).iter_errors(value)]
    assert not problems, problems


def test_the_files_are_what_the_code_says() -> None:
    found = stored_schemas.schemas()
    assert set(found) == set(NAMES)
    if WRITE:
        FOLDER.mkdir(exist_ok=True)
        for name, data in found.items():
            (FOLDER / f"{name}.schema.json").write_bytes(data)
    there = {path.name.removesuffix(".schema.json"): path.read_bytes() for path in FOLDER.glob("*.schema.json")}
    assert there == found, "SESSGIT_TEST_WRITE_SCHEMAS=1 writes them anew"


def test_the_shapes_have_the_keys_of_the_values() -> None:
    """What is validated is what is stored: neither has a key that the other lacks."""
    assert sessions.KEYS["activation"] == tuple(one.name for one in fields(sessions.Activation))
    assert sessions.KEYS["budget"] == tuple(one.name for one in fields(sessions.Budget))
    every = {f"{part}.{key}" for part, keys in sessions.KEYS.items() for key in keys}
    assert every == {*sessions.SCALARS, *sessions.COUNTERS, *sessions.OWN, sessions.MEMORY}
    assert set(stored_schemas.UnifiedActivation.__annotations__) == set(sessions.KEYS["activation"])


def test_the_shape_of_a_state_has_every_key_that_is_written() -> None:
    whole = Session(
        "a", "a", remote="a.example/b", tokens={"m": Tokens(1, 2, 3, 4)}, unified=sessions.parse_state(EVERYTHING)
    )
    document = json.loads(sessions.dumps(whole))
    shapes = {
        "metadata": stored_schemas.Metadata, "budget": stored_schemas.Used, "cells": stored_schemas.CellCount,
        "authored": stored_schemas.Authored, "trajectory": stored_schemas.Trajectory,
        "activation": stored_schemas.Activation, "context": stored_schemas.Memory,
    }  # fmt: skip
    for part, shape in shapes.items():
        assert set(document[part]) == set(shape.__annotations__), part
    assert set(document) == set(stored_schemas.Session.__annotations__)
    assert set(document["budget"]["by_model"]["m"]) == set(stored_schemas.Kinds.__annotations__)


@pytest.mark.parametrize("has_program", [True, False])
def test_what_is_recorded_fits(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, has_program: bool) -> None:
    """States, cells and pads of sessions and a fork, as they lie in the store, and the whole states of them."""
    diverged(sessgit)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
    sessgit.out("fork", SESSION, "--at", "2.1", "--name", "by cell")
    for words in (["thesis", "Tries."], ["add", "claim", "It is fast."], ["cycle"], ["pass", "critique", "Not yet."]):
        sessgit.out("pad", *words)
    sessgit.out("pad", "confidence", "0.5", "half")
    store = Store(sessgit.store)
    index = Index(store.path, lambda: store)
    index.sync()
    if has_program:
        program_state.change_state(Context(index, now=lambda: 1.8e9), SESSION, StateRequest(EVERYTHING))
    counts = dict.fromkeys(("session", "cell", "pad-entry"), 0)
    for tip in refs.read_all(store.path).values():
        for commit in store.repo.first_parents(tip):
            for path, (oid, _) in store.repo.files(store.tree(commit.id)).items():
                name = {layout.STATE: "session", layout.CELLS: "cell"}.get(path.rpartition("/")[2], "")
                name = "pad-entry" if path.startswith(f"{layout.PAD}/") else name
                data = store.repo.blob(oid)
                for one in [data] if name == "session" else data.split(b"\n")[:-1] if name else []:
                    check(name, json.loads(one))
                    counts[name] += 1
    assert all(counts.values()), counts
    for branch in index.branches():
        document = json.loads(json.dumps(programs.state_document(Context(index), branch, {})))
        check("unified-session", document)
        Draft202012Validator(OTHERS_SESSION).validate(document)
        check("unified-index", cell_graph.index_document(branch.name, cell_graph.read_graph(Context(index), branch)))
    index.close()


def kept_and_local(sessgit: Shell, at: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the documents of a store in which every kind of them is: each with the name of its schema."""
    log(at, "ARCH-001", went("in", "Count the words"), went("out", "42", 1))
    sessgit.out("import", "--from", "io-log", str(at))
    (imported,) = (row["id"] for row in sessgit.json("ls", "--all")["sessions"])
    yield "kept-source", json.loads(run_git(sessgit.store, "cat-file", "blob", f"{imported}:kept/source.json"))
    diverged(sessgit)
    sessgit.out("merge", THEIRS, "--into", SESSION)
    run_git(at, "init", "--quiet", "--bare", "remote.git")
    sessgit.out("remote", "add", "origin", str(at / "remote.git"))
    sessgit.out("push", SESSION)
    sessgit.out("purge", "--yes", "put the tokens")
    paths = layout.StorePaths(sessgit.store)
    for line in paths.journal.read_bytes().splitlines():
        yield "operation", json.loads(line)
    yield "cursor", json.loads(paths.cursor(SESSION).read_bytes())
    yield "purged-values", json.loads(paths.forbidden.read_bytes())
    (remote,) = paths.state.glob("remote-*.json")
    yield "remote-state", json.loads(remote.read_bytes())
    recorder_state.save_intent(
        paths, "s", AppendIntent("/s.jsonl", 9, b"{}", "c", "merge", {"k": ("graft", "o@1")}, {"/f": "0" * 64})
    )
    yield "append-note", json.loads(paths.append_intent("s").read_bytes())
    recorder_state.save_latest(paths, LatestTurn(SESSION, 1, 1.8e9, 40))
    yield "latest", json.loads(paths.latest.read_bytes())


def test_what_is_kept_and_local_fits(sessgit: Shell, tmp_path: Path) -> None:
    """Every key that is written is one of the schema."""
    met = set[str]()
    for name, document in kept_and_local(sessgit, tmp_path / "source"):
        check(name, document)
        assert document.keys() <= validator(name).schema["properties"].keys(), name
        met.add(name)
    assert met == {name for name in NAMES if not name.startswith(("unified", "session", "cell", "pad", "program"))}


def test_the_marks_of_programs_fit() -> None:
    """Those of the format page's example, and of everything that a program can say."""
    chain = Chain(SESSION)
    task = Task("repl", "two words", {}, "bench", ("cell_00000000",), "cell_k3v9x0qa", 1.8e9, Metadata(1, "m", 5))
    done = Outcome([1], "it failed", 1.5, "m", {"input": 3})
    said = Reason("decision", "Take it.", ("cell_k3v9x0qa",), ("it", "that"), "it", 0.5)
    page = (
        (FOLDER.parent / "format.md").read_text("utf-8").partition("```json program-example\n")[2].partition("```")[0]
    )
    lines = [*page.encode().splitlines(), *chain.prompt("?", None), *chain.call(task, None)]
    lines += [*chain.reason(said, None), *chain.outcome(task.id, done, None, task.operation)]
    every = [mark for line in lines if (mark := json.loads(line).get("sessgit"))]
    shapes = validator("program-mark").schema
    for mark in every:
        check("program-mark", mark)
        for key, value in mark.items():
            name = shapes["properties"][key].get("$ref", "").rpartition("/")[2]
            assert not name or value.keys() <= shapes["$defs"][name]["properties"].keys()
    assert {key for mark in every for key in mark} == shapes["properties"].keys()


def test_a_cell_as_it_is_shown_fits(sessgit: Shell) -> None:
    sessgit.recorded(Talk().prompt("Look").tool("Bash", {"command": "ls"}, "a\n").answer("There is a."))
    for name in ("1.1", "1.2", "1.3"):
        asked = json.dumps({"cell_id": sessgit.json("show", f"{SESSION}@{name}")["cell"]["id"]})
        check("unified-cell", json.loads(sessgit.out("bridge", SESSION, "--op", "cell", "--args", asked)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("session", {}),
        ("session", json.loads(sessions.dumps(Session("a", "a"))) | {"activation": {"max_depth": 4}}),
        ("session", json.loads(sessions.dumps(Session("a", "a"))) | {"context": {"working_memory": []}}),
        ("cell", {"id": "cell_1", "type": "tool", "operation": "x", "lines": [1], "depends": [], "ok": True}),
        ("cell", {"id": "cell_12345678", "type": "x", "operation": "x", "lines": [1], "depends": [], "ok": True}),
        ("pad-entry", {"id": "12345678", "kind": "rumour", "text": "", "time": "", "session": "a", "cycle": 1}),
        ("unified-cell", {"cell_id": "cell_12345678"}),
        ("unified-index", {"version": "2.0"}),
        ("unified-session", {"metadata": {}, "activation": {}, "context": {}, "budget": {}}),
    ],
)
def test_what_is_wrong_does_not_fit(name: str, value: object) -> None:
    assert list(validator(name).iter_errors(value))


def test_they_agree_with_that_of_other_programs() -> None:
    """Of our own schema of a whole state, what is said of it and names of its parts left out, theirs is what stays."""
    own = json.loads(stored_schemas.schemas()["unified-session"])
    named = own.pop("$defs")

    def bare(said: dict[str, Any]) -> dict[str, Any]:
        found = {**said, **named[said["$ref"].rpartition("/")[2]]} if "$ref" in said else dict(said)
        for key in ("$ref", "title", "description"):
            found.pop(key, None)
        if "anyOf" in found:
            found["type"] = [kind["type"] for kind in found.pop("anyOf")]
        for key in found.keys() & {"items", "additionalProperties"}:
            found[key] = bare(found[key]) if isinstance(found[key], dict) else found[key]
        for name, below in found.get("properties", {}).items():
            found["properties"][name] = bare(below)
        return found

    assert canonical.dumps(bare(own)) == canonical.dumps(OTHERS_SESSION)
