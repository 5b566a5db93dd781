"""The layouts of RLM: flat files and folders of sessions, read; folders with a transcript, written."""

from __future__ import annotations

import gzip
import json
import shutil
import string
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from foreigners import BORN, RLM, cell, contents, put, rlm
from hypothesis import given
from hypothesis import strategies as st
from merging import authored
from plain import run_git
from shell import Shell

from sessgit.errors import NotFoundError
from sessgit.exchange import rlm as layout
from sessgit.exchange import values
from sessgit.model import ids
from sessgit.model.foreign_session import ForeignSession
from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Reason, Step, Task

A, B = "cell_a1b2c3d4", "cell_e5f6g7h8"


def only(folder: Path) -> ForeignSession:
    (session,) = layout.read(folder).sessions
    return session


def outcomes(folder: Path) -> dict[str, tuple[str, str]]:
    return {file.path: (file.outcome, file.why) for file in layout.read(folder).files}


def flat(at: Path, name: str, **more: Any) -> None:
    """The flat files of a session."""
    put(at / f"{name}.json", {
        "session_id": name, "created_at": BORN, "updated_at": BORN + 9, "rlm_active": True, "current_depth": 1,
        "working_memory": {"plan": "x"}, "total_tokens_used": 1234, "total_recursive_calls": 3,
        "trajectory_events_count": 0, "trajectory_path": "/x/t.json",
    })  # fmt: skip
    said = [("user", "hello", 1), ("assistant", "hi", 2), ("user", "again", 3)]
    put(at / f"{name}_context.json", {
        "messages": [{"role": role, "content": words, "timestamp": BORN + n} for role, words, n in said],
        "files": {"a.py": "print()"}, "working_memory": {},
        "tool_outputs": [{"tool_name": "Bash", "content": "ok", "exit_code": 1, "timestamp": BORN + 1.5},
                         {"tool_name": "Bash", "content": "when?", "exit_code": 0}],
        **more,
    })  # fmt: skip


def test_flat_files_with_all_that_lies_beside_them(tmp_path: Path) -> None:
    state = tmp_path / "rlm-state"
    flat(state, "s1")
    put(state / "session-metadata.json", {"session_id": "s1", "cwd": "/home/ada", "started_at": BORN})
    put(state / "context.json", {"conversation": [], "files": {}, "tool_outputs": [], "working_memory": {}})
    put(state / "file-access-s1.jsonl", [{"file": "a.py"}])
    (state / "current-transcript.jsonl").symlink_to("/elsewhere/x.jsonl")
    put(tmp_path / "rlm-externalized" / "s1" / "1.json", {"a": 1})
    put(tmp_path / "rlm-trajectories" / "s1_summary.json", {"b": 1})
    put(tmp_path / "rlm-trajectories" / "zz_summary.json", {})
    put(tmp_path / "rlm-config.json", {})
    put(tmp_path / "rlm-memory.db", b"SQLite")
    put(tmp_path / "rlm-memory.db-wal", b"SQLite")
    put(tmp_path / "settings.json", {})
    found = only(tmp_path)
    assert (found.id, found.project, found.state) == ("s1", "/home/ada", "active")
    assert found.turns == (
        GivenTurn(
            "hello",
            (
                Step(
                    Task("tool", "Bash", source="tool", id=ids.cell_id("s1", "output 1"), created=BORN + 1.5),
                    Outcome(error="Exit code 1\nok"),
                ),
            ),
            "hi",
            time=BORN + 1,
            ended=BORN + 2,
        ),
        GivenTurn("again", time=BORN + 3),
    )
    assert found.unified == {
        "metadata": {"rlm_version": "0.1.0"},
        "activation": {"rlm_active": True, "activation_mode": "complexity", "current_depth": 1, "max_depth": 3},
        "budget": {"max_recursive_calls": 10, "total_recursive_calls": 3},
        "context": {"working_memory": {"plan": "x"}},
        "trajectory": {"export_path": "/x/t.json"},
    }
    assert sorted(found.kept) == [
        "rlm/externalized/1.json", "rlm/file-access.jsonl", "rlm/session.json", "rlm/trajectories/s1_summary.json",
    ]  # fmt: skip
    said = json.loads((state / "s1_context.json").read_text())
    assert json.loads(found.kept["rlm/session.json"]) == {
        "context": {
            "conversation": said["messages"], "files": {"a.py": "print()"}, "tool_outputs": said["tool_outputs"],
        },
        "budget": {"total_tokens_used": 1234},
        "trajectory": {"events_count": 0},
        "metadata": {"created_at": BORN, "updated_at": BORN + 9, "started_at": BORN},
    }  # fmt: skip
    assert outcomes(tmp_path) == {
        "rlm-config.json": ("left", "it has the settings of the other system"),
        "rlm-externalized/s1/1.json": ("imported", "kept as it is"),
        "rlm-memory.db": ("left", "it is a database of the other system"),
        "rlm-memory.db-wal": ("left", "it belongs to a database of the other system"),
        "rlm-state/context.json": ("empty", "another file has the same contents"),
        "rlm-state/current-transcript.jsonl": ("left", "it is a link to /elsewhere/x.jsonl; links are not followed"),
        "rlm-state/file-access-s1.jsonl": ("imported", "kept as it is"),
        "rlm-state/s1.json": ("imported", ""),
        "rlm-state/s1_context.json": ("imported", ""),
        "rlm-state/session-metadata.json": ("imported", ""),
        "rlm-trajectories/s1_summary.json": ("imported", "kept as it is"),
        "rlm-trajectories/zz_summary.json": ("left", "unknown kind of file"),
    }
    alone = only(state)
    assert (alone.turns, alone.unified) == (found.turns, found.unified)


def test_what_was_moved_to_a_folder_is_not_read_twice(tmp_path: Path) -> None:
    flat(tmp_path / "rlm-state", RLM)
    rlm(tmp_path)
    assert only(tmp_path).turns[0].prompt == "count words"
    assert outcomes(tmp_path)[f"rlm-state/{RLM}.json"] == ("left", "rlm-sessions has the session")


def test_a_folder_of_a_session(tmp_path: Path) -> None:
    folder = rlm(tmp_path, said=("count words", "42", "and lines", "7"))
    bad = {**cell(B, 12), "type": "llm_call", "dependencies": [A],
           "output": {"result": None, "error": "no", "execution_time_ms": 0.0},
           "metadata": {"depth": 1, "model": "small", "tokens_used": 55}}  # fmt: skip
    put(folder / "cells" / f"{A}.json", cell(A, 1))
    put(folder / "cells" / f"{B}.json", {**bad, "created_at": BORN + 22})
    put(folder / "cells" / "odd.json", cell("cell_odd"))
    put(folder / "cells" / "torn.json", "{")
    put(folder / "cells" / "index.json", {"version": "1.0", "cells": {}})
    put(folder / "reasoning" / "traces.jsonl", [{"thought": "hm", "timestamp": BORN + 2}])
    put(folder / "reasoning" / "decisions.jsonl", [{
        "question": "which", "options": ["a", "b"], "choice": "a", "confidence": 0.8, "evidence": [A],
        "timestamp": BORN + 23,
    }])  # fmt: skip
    put(folder / "file-access.jsonl", [{"file": "a"}])
    put(folder / "memory-snapshot.json", {"m": 1})
    (folder / "transcript.jsonl").symlink_to("/elsewhere/x.jsonl")
    (folder.parent / "current").symlink_to(RLM)
    found = only(tmp_path)
    first = Task("repl", "peek", {"n": 3}, "repl", (), A, BORN + 1)
    second = Task("llm_call", "peek", {"n": 3}, "repl", (A,), B, BORN + 22, Metadata(1, "small", 55))
    assert found.turns == (
        GivenTurn(
            "count words",
            (Step(first, Outcome({"rows": [1, 2]}, None, 1.5)), Reason("trace", "hm", time=BORN + 2)),
            "42", time=BORN, ended=BORN + 10,
        ),
        GivenTurn(
            "and lines",
            (Step(second, Outcome(None, "no")), Reason("decision", "which", (A,), ("a", "b"), "a", 0.8, BORN + 23)),
            "7", time=BORN + 20, ended=BORN + 30,
        ),
    )  # fmt: skip
    assert (found.state, found.ended) == ("ended", "2025-11-03T10:01:40.500Z")
    assert found.unified["metadata"] == {"rlm_version": "0.1.0"}
    said = json.loads((folder / "session.json").read_text())["context"]["conversation"]
    assert json.loads(found.kept["rlm/session.json"]) == {
        "metadata": {key: BORN + 100 * (key != "created_at") for key in ("created_at", "updated_at", "ended_at")},
        "context": {"conversation": said}, "budget": {"total_tokens_used": 10}, "trajectory": {"events_count": 0},
    }  # fmt: skip
    assert {path for path in found.kept if path != "rlm/session.json"} == {
        "rlm/cells/odd.json", "rlm/cells/torn.json", "rlm/file-access.jsonl", "rlm/memory-snapshot.json",
        "rlm/parts.json",
    }  # fmt: skip
    told = outcomes(tmp_path)
    at = f"rlm-sessions/{RLM}"
    assert told[f"{at}/cells/odd.json"][0] == told[f"{at}/cells/torn.json"][0] == "damaged"
    assert told[f"{at}/cells/index.json"] == ("imported", "derived from the cells")
    assert told["rlm-sessions/current"][0] == told[f"{at}/transcript.jsonl"][0] == "left"


def test_cells_without_a_conversation_have_a_turn_of_their_own(tmp_path: Path) -> None:
    folder = rlm(tmp_path, said=())
    put(folder / "cells" / f"{B}.json", {**cell(B, 5), "dependencies": [A]})
    put(folder / "cells" / f"{A}.json", cell(A, 1))
    (turn,) = only(tmp_path).turns
    assert (turn.prompt, turn.time) == (layout.CELLS_PROMPT, BORN + 1)
    assert [part.task.id for part in turn.parts if isinstance(part, Step)] == [A, B]


def test_cells_from_before_the_first_prompt_come_before_it() -> None:
    builder = layout.TurnBuilder()
    builder.messages([{"role": "user", "content": "hello", "timestamp": BORN + 5}])
    builder.cells([layout.parse_step(cell(A, 1))])
    assert [turn.prompt for turn in builder.turns()] == [layout.CELLS_PROMPT, "hello"]


def test_a_time_of_0_is_none() -> None:
    times = [values.to_time(value) for value in (0, 0.0, 1, -1, True, "", None)]
    assert times == ["", "", "1970-01-01T00:00:01.000Z", "", "", "", ""]


def test_the_archive_packed_or_not(tmp_path: Path) -> None:
    folder = rlm(tmp_path, "old")
    data = (folder / "session.json").read_bytes()
    shutil.rmtree(folder)
    archive = tmp_path / "rlm-sessions" / "archive"
    put(archive / "old" / "session.json.gz", gzip.compress(data))
    put(archive / "older.tar.gz", b"x")
    found = only(tmp_path / "rlm-sessions")
    assert (found.id, found.archived, found.turns[0].answer) == ("old", True, "42")
    assert outcomes(tmp_path)["rlm-sessions/archive/older.tar.gz"] == (
        "left", "it is compressed: decompress it, and import the result",
    )  # fmt: skip


@pytest.mark.parametrize("version", [2, "2.0", "17.3-beta"])
def test_a_version_that_nobody_knows_yet(tmp_path: Path, version: object) -> None:
    rlm(tmp_path, version=version)
    rlm(tmp_path, "good")
    assert only(tmp_path).id == "good"
    assert outcomes(tmp_path)[f"rlm-sessions/{RLM}/session.json"] == (
        "damaged", f"it has version {version}, which this sessgit does not know",
    )  # fmt: skip


def test_nothing_of_rlm(tmp_path: Path) -> None:
    put(tmp_path / "package.json", {"name": "x"})
    with pytest.raises(NotFoundError):
        layout.read(tmp_path)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(string.ascii_lowercase, min_size=1, max_size=8)
sessions = st.builds(
    ForeignSession, names, title=words, name=words, description=words, project=words, created=words, updated=words,
    ended=words, state=st.sampled_from(["active", "ended", "interrupted"]),
    labels=st.lists(names, max_size=3).map(tuple), stage=st.sampled_from(["", "gathering"]),
    confidence=st.none() | st.floats(0, 1), archived=st.booleans(), parent=names | st.just(""),
    branch=st.none() | st.integers(0, 3), transcript=st.binary(max_size=20),
    pad=st.dictionaries(st.sampled_from(["claims", "files"]), words.filter(bool).map(str.encode), max_size=2),
    unified=st.dictionaries(st.sampled_from(["activation", "budget"]), st.dictionaries(names, words), max_size=2),
    kept=st.dictionaries(
        st.sampled_from(["rlm/session.json", "rlm/cells/x.json", "rlm/file-access.jsonl", "rlm/kept/a", "apex/b", "c"]),
        st.binary(max_size=9), max_size=4,
    ),
)  # fmt: skip


@given(sessions)
def test_reading_what_was_written_gives_the_same(session: ForeignSession) -> None:
    with TemporaryDirectory() as folder:
        for path, data in layout.write(session, {}, []).items():
            if isinstance(data, bytes):  # the other one is the link `current`
                put(Path(folder) / path, data)
        found = layout.read(Path(folder))
    assert found.sessions == (session,)
    assert {file.outcome for file in found.files} <= {"imported", "empty"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["metadata", "context", "messages", "role", "content", "input", "timestamp",
                                       "cell_id", "output", "activation", "session_id", "sessgit", "version", "cells"]),
                      inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(st.tuples(
    st.sampled_from(["rlm-state/a.json", "rlm-state/a_context.json", "rlm-state/session-metadata.json",
                     "rlm-state/context.json", "rlm-sessions/b/session.json", "rlm-sessions/b/cells/x.json",
                     "rlm-sessions/b/cells/index.json", "rlm-sessions/b/reasoning/traces.jsonl"]),
    VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30)), max_size=6))  # fmt: skip
def test_no_folder_breaks_it(written: list[tuple[str, bytes]]) -> None:
    with TemporaryDirectory() as folder:
        put(Path(folder) / "rlm-config.json", "{}")
        for path, data in written:
            put(Path(folder) / path, data)
        found = layout.read(Path(folder))
    assert {file.path for file in found.files} == {"rlm-config.json", *(path for path, _ in written)}


def test_a_conversation_of_the_client_there_and_back(parser: Shell, tmp_path: Path) -> None:
    """With rewound turns, compactions, and a fork: all lines, and so all turns."""
    session = "5e551011-0000-4000-8000-000000000001"
    parser.out("edit", session, "--label", "+good", "--stage", "shaping", "--description", "two\nlines")
    parser.out("pad", "claim", "it is fast", "--into", session)
    out = tmp_path / "out"
    parser.out("export", "rlm", session, "--output", str(out))
    files = contents(out)
    at = f"rlm-sessions/{session}"
    index = json.loads(files[f"{at}/cells/index.json"])
    assert sorted(index["cells"]) == sorted(
        path.rpartition("/")[2].removesuffix(".json") for path in files if "/cells/cell_" in path
    )
    assert parser.out("export", "rlm", session, "--output", str(out)).startswith("Written: ")
    assert contents(out) == files
    assert parser.json("import", "--from", "rlm", str(out), "--dry-run")["refs"] == {}
    turns = run_git(parser.store, "rev-parse", f"refs/heads/{session}:turns")
    branches = run_git(parser.store, "for-each-ref", "--format=%(refname)", f"refs/heads/{session}*")
    pad = run_git(parser.store, "show", f"refs/heads/{session}:pad/claims.jsonl")
    said = authored(parser, session)
    shutil.rmtree(parser.config)
    parser.out("import", "--from", "rlm", str(out))
    assert run_git(parser.store, "rev-parse", f"refs/heads/{session}:turns") == turns
    assert run_git(parser.store, "for-each-ref", "--format=%(refname)", f"refs/heads/{session}*") == branches
    assert run_git(parser.store, "show", f"refs/heads/{session}:pad/claims.jsonl") == pad
    assert authored(parser, session) == said


def test_an_export_lies_over_nothing(parser: Shell, tmp_path: Path) -> None:
    out = tmp_path / "out"
    at = out / "rlm-sessions" / "5e551011-0000-4000-8000-000000000001"
    put(at / "session.json", "mine")
    done = parser("export", "rlm", "5e55", "--output", str(out))
    assert done.code == 3
    assert f"{at}/session.json already exists" in done.err
    assert contents(out) == {str((at / "session.json").relative_to(out)): b"mine"}
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "rlm-sessions").symlink_to(tmp_path)
    assert parser("export", "rlm", "5e55", "--output", str(tmp_path / "b")).code == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("5e55",), "rlm writes a folder, and needs --output."),
        (("5e55@1", "-o", "x"), "rlm exports only whole conversations."),
        (("5e55", "-o", "x", "--no-tools"), "rlm exports only whole conversations."),
    ],
)
def test_words_that_do_not_fit_together(parser: Shell, arguments: tuple[str, ...], said: str) -> None:
    done = parser("export", "rlm", *arguments)
    assert (done.code, said in done.err) == (2, True), done


def test_what_rlm_said_is_here_as_it_was(sessgit: Shell, tmp_path: Path) -> None:
    folder = rlm(tmp_path)
    put(folder / "cells" / f"{A}.json", cell(A, 1))
    put(folder / "cells" / f"{B}.json", {**cell(B, 2), "dependencies": [A]})
    sessgit.out("import", "--from", "rlm", str(tmp_path))
    sessgit.out("export", "rlm", RLM, "--output", str(tmp_path / "out"))
    there = tmp_path / "out" / "rlm-sessions" / RLM
    found, was = (json.loads((at / "session.json").read_text()) for at in (there, folder))
    assert found["metadata"].items() >= {k: was["metadata"][k] for k in ("session_id", "created_at", "cwd")}.items()
    assert found["activation"] == was["activation"]
    assert found["context"]["working_memory"] == was["context"]["working_memory"]
    assert found["budget"]["cost_usd"] == was["budget"]["cost_usd"]
    mine, theirs = (json.loads((at / "cells" / f"{B}.json").read_text()) for at in (there, folder))
    assert {**mine, "dependents": []} == theirs
    assert json.loads((there / "cells" / f"{A}.json").read_text())["dependents"] == [B]


def test_a_folder_has_what_lies_outside_of_it(tmp_path: Path) -> None:
    put(rlm(tmp_path) / "externalized" / "2.json", {"b": 1})
    for number in (1, 2):
        put(tmp_path / "rlm-externalized" / RLM / f"{number}.json", {"a": number})
    put(tmp_path / "rlm-trajectories" / f"{RLM}_summary.json", {})
    put(tmp_path / "rlm-state" / f"{RLM}.json", {"rlm_active": True})
    put(tmp_path / "rlm-state" / "context.json", {"conversation": []})
    assert json.loads(only(tmp_path).kept["rlm/externalized/1.json"]) == {"a": 1}
    assert {path: said for path, said in outcomes(tmp_path).items() if not path.startswith("rlm-sessions")} == {
        f"rlm-externalized/{RLM}/1.json": ("imported", "kept as it is"),
        f"rlm-externalized/{RLM}/2.json": ("left", "another file has its name"),
        f"rlm-trajectories/{RLM}_summary.json": ("imported", "kept as it is"),
        f"rlm-state/{RLM}.json": ("left", "rlm-sessions has the session"),
        "rlm-state/context.json": ("left", "no session-metadata.json names its session"),
    }
