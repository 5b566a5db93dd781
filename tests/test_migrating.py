"""Each field of another system's files, and where it comes back when its session is imported and exported again."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from foreigners import BORN, RLM, put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shell import Shell

from sessgit import Store
from sessgit.exchange import rlm, systems
from sessgit.model import canonical
from sessgit.model.progress import no_progress

PAGE = Path(__file__).parent.parent / "docs" / "migrating.md"
APEX, BRANCH = "7f0c9f0e-31f4-4a2b-9d6e-0b7c5a1e2d3f", "8a1d0e1f-42a5-4b3c-8e7f-1c8d6b2f3e4a"
A, B = "cell_k3v9w2m1", "cell_p7q4r8s5"

NOT_BACK = {
    ("rlm-sessions/<id>/session.json", "cells.count"): "computed from the cells",
    (".apex/sessions/index.json", "sessions[].messageCount"): "computed from the messages",
    (".apex/sessions/index.json", "lastUpdated"): "not kept: replaced by the latest `updatedAt` of the sessions",
}
"""Why a field does not come back."""


class Leaf(NamedTuple):
    """A value of a document, which is neither an object nor a list with anything in it."""

    file: str
    path: str
    value: Any

    @property
    def key(self) -> str:
        return self.path.rpartition(".")[2].removesuffix("[]")


# The examples: each key of the systems' schemas, with a value that no other key has


def rlm_flat(at: Path) -> Path:
    folder = at / "rlm-state"
    put(folder / "n1.json", {
        "session_id": "n1", "created_at": BORN + 0.000001, "updated_at": BORN + 90.25, "rlm_active": True,
        "current_depth": 2, "working_memory": {"goal": "a faster parser"}, "total_tokens_used": 48213,
        "total_recursive_calls": 6, "trajectory_path": "/home/ada/t/n1.json", "trajectory_events_count": 17,
    })  # fmt: skip
    put(folder / "n1_context.json", {
        "messages": [{"role": "user", "content": "why is it slow?", "timestamp": BORN + 1},
                     {"role": "assistant", "content": "the scanner copies", "timestamp": BORN + 2}],
        "files": {"/home/ada/shop/scan.py": {"hash": "9f2c", "size_bytes": 812, "first_access": BORN + 3,
                                             "last_access": BORN + 4}},
        "tool_outputs": [
            {"tool_name": "Bash", "content": "3.2 s", "exit_code": 1, "timestamp": BORN + 5, "cell_id": A},
            {"tool_name": "Grep", "content": "scan.py:7", "exit_code": 0, "timestamp": BORN + 6, "cell_id": None},
        ],
        "working_memory": {"seen": ["scan.py"]},
    })  # fmt: skip
    put(folder / "session-metadata.json", {
        "session_id": "n1", "transcript_path": "/home/ada/.claude/projects/x/n1.jsonl", "cwd": "/home/ada/shop",
        "started_at": BORN - 1,
    })  # fmt: skip
    put(folder / "file-access-n1.jsonl", [{"file_path": "/home/ada/shop/scan.py", "action": "read"}])
    put(at / "rlm-externalized" / "n1" / "1762164011.json", {"conversation": ["why is it slow?"]})
    put(at / "rlm-trajectories" / "n1_summary.json", {"events": 17})
    return at


def rlm_folder(at: Path) -> Path:
    folder = at / "rlm-sessions" / RLM
    put(folder / "session.json", {
        "metadata": {"session_id": RLM, "created_at": BORN + 0.000001, "updated_at": BORN + 90.25,
                     "ended_at": BORN + 91.75, "cwd": "/home/ada/shop",
                     "claude_transcript_path": "/home/ada/.claude/projects/x/y.jsonl", "rlm_version": "0.1.7"},
        "activation": {"rlm_active": True, "activation_mode": "manual", "activation_reason": "asked for it",
                       "complexity_score": 0.625, "current_depth": 1, "max_depth": 2},
        "context": {
            "files": {"/home/ada/shop/scan.py": {"hash": "9f2c", "size_bytes": 812, "first_access": BORN + 3,
                                                 "last_access": BORN + 4}},
            "tool_outputs": [{"tool_name": "Bash", "content_preview": "3.2 s", "exit_code": 1, "timestamp": BORN + 5,
                              "cell_id": A}],
            "working_memory": {"goal": "a faster parser"},
        },
        "budget": {"total_tokens_used": 48213, "total_recursive_calls": 6, "max_recursive_calls": 12,
                   "cost_usd": 0.75, "by_model": {"small": {"calls": 5, "tokens": 48000, "cost_usd": 0.5}}},
        "cells": {"count": 2, "index_path": "cells/index.json"},
        "trajectory": {"events_count": 17, "export_path": "/home/ada/t/y.json"},
    })  # fmt: skip
    put(folder / "cells" / f"{A}.json", {
        "cell_id": A, "created_at": BORN + 7, "type": "repl",
        "input": {"source": "repl", "operation": "peek", "args": {"lines": 30}},
        "output": {"result": {"text": "def scan"}, "error": None, "execution_time_ms": 2.5},
        "dependencies": [], "dependents": [B], "metadata": {"depth": 0, "model": None, "tokens_used": 0},
    })  # fmt: skip
    put(folder / "cells" / f"{B}.json", {
        "cell_id": B, "created_at": BORN + 8, "type": "llm_call",
        "input": {"source": "sub", "operation": "summarize", "args": {"words": 40}},
        "output": {"result": None, "error": "no room", "execution_time_ms": 812.5},
        "dependencies": [A], "dependents": [], "metadata": {"depth": 1, "model": "small", "tokens_used": 513},
    })  # fmt: skip
    put(folder / "cells" / "index.json", {
        "version": "1.0", "session_id": RLM,
        "cells": {A: {"type": "repl", "dependencies": [], "dependents": [B]},
                  B: {"type": "llm_call", "dependencies": [A], "dependents": []}},
        "roots": [A], "leaves": [B], "execution_order": [A, B],
    })  # fmt: skip
    put(folder / "reasoning" / "traces.jsonl", [{"timestamp": BORN + 9, "text": "it copies each line"}])
    put(folder / "reasoning" / "decisions.jsonl", [{
        "timestamp": BORN + 10, "text": "which way", "evidence": [A], "options": ["views", "slices"],
        "chosen": "views", "confidence": 0.875,
    }])  # fmt: skip
    put(folder / "file-access.jsonl", [{"file_path": "/home/ada/shop/scan.py", "action": "read"}])
    put(folder / "memory-snapshot.json", {"facts": ["scan copies"]})
    return at


def apex(at: Path) -> Path:
    folder = at / ".apex" / "sessions"

    def when(minute: int) -> str:
        return f"2025-11-03T10:{minute:02d}:00.500Z"

    def message(index: int, role: str, content: str, **more: Any) -> dict[str, Any]:
        return {
            "id": f"m{index}",
            "index": index,
            "role": role,
            "content": content,
            "timestamp": when(10 + index),
            **more,
        }

    said = [
        message(0, "system", "be brief"),
        message(1, "user", "make the scanner faster"),
        message(2, "assistant", "with views", codeBlocks=[{"language": "python", "code": "x = y", "filename": "v.py"}],
                toolCalls=[{"toolName": "edit", "input": {"path": "scan.py"}, "output": "edited", "duration": 41,
                            "status": "success"},
                           {"toolName": "test", "input": {"only": "scan"}, "output": "red", "duration": 42,
                            "status": "error"}],
                agent="developer", stage="implementation", taskId="task-9", tokens={"input": 811, "output": 77},
                metadata={"temperature": 0.25}),
        message(3, "tool", "3 passed"),
        message(4, "user", "and the tests?"),
        message(5, "assistant", "they pass", tokens={"input": 902, "output": 33}),
    ]  # fmt: skip
    session = {
        "id": APEX, "name": "faster scanner", "projectPath": str(at), "createdAt": when(1), "updatedAt": when(31),
        "lastAccessedAt": when(32), "messages": said, "inputHistory": ["make the scanner faster", "and the tests?"],
        "state": {"totalTokens": {"input": 1713, "output": 110}, "totalCost": 0.0625, "tasksCreated": ["task-9"],
                  "tasksCompleted": ["task-8"], "currentTaskId": "task-10", "lastGitBranch": "faster",
                  "workingDirectory": f"{at}/work"},
        "childSessionIds": [BRANCH], "tags": ["parser", "speed"], "description": "half the time",
    }  # fmt: skip
    branch = {
        **session, "id": BRANCH, "name": "with slices", "createdAt": when(40), "updatedAt": when(41),
        "lastAccessedAt": when(42), "messages": [{**one, "id": f"b{n}"} for n, one in enumerate(said[:4])],
        "parentSessionId": APEX, "branchPoint": 3, "childSessionIds": [], "tags": ["slices"], "description": "or so",
    }  # fmt: skip
    entries = [
        {"id": one["id"], "name": one["name"], "projectPath": str(at), "createdAt": one["createdAt"],
         "updatedAt": one["updatedAt"], "lastAccessedAt": one["lastAccessedAt"],
         "messageCount": len(one["messages"]), "totalCost": 0.0625, "tags": one["tags"], "archived": False}
        for one in (session, branch)
    ]  # fmt: skip
    put(folder / f"{APEX}.json", session)
    put(folder / f"{BRANCH}.json", branch)
    put(folder / "index.json", {"version": 1, "sessions": entries, "lastUpdated": when(43)})
    put(folder / "active.json", {"sessionId": APEX})
    return at


def dialectic(at: Path) -> Path:
    folder = at / ".dialectic" / "sess_1762164000"
    put(folder / "session.json", {
        "id": "sess_1762164000", "title": "Who sets prices?", "status": "shaping",
        "created": "2025-11-03T10:00:00.500Z", "updated": "2025-11-03T11:00:00.250Z",
        "cycle": 2, "context_files": ["context/chips.md"],
        "claims": ["Demand does.", {"id": "claim_002", "text": "Supply does.", "source": "chips.md"}],
        "tensions": [{"id": "tension_001", "between": ["Demand does.", "Supply does."], "text": "Both cannot lead.",
                      "status": "open"}],
        "thesis": {"id": "thesis_v1", "text": "They take turns.", "confidence": 0.375},
        "passes": [{"type": "expansion", "content": "A long look.", "cycle": 1},
                   {"type": "compression", "content": "In short.", "cycle": 2}],
        "insights": ["Turns are long."], "evidence": ["Two cycles in ten years."], "risks": ["A war."],
        "counters": ["One firm is slow."], "patterns": ["Up, then down."], "questions": ["And memory?"],
        "confidence_history": [0.25, 0.5], "current_confidence": 0.5, "cycle_insights": [3, 1],
    })  # fmt: skip
    put(folder / "context" / "chips.md", "# Chips\n")
    put(folder / "claims" / "claim_001.md", "Demand does.\n")
    put(folder / "claims" / "claim_002.md", "Supply does.\n")
    put(folder / "tensions" / "tension_001.md", "Both cannot lead.\n")
    put(folder / "thesis" / "thesis_v1.md", "They take turns.\n")
    return at


def io_log(at: Path) -> Path:
    folder = at / ".claude-man" / "sessions"

    def line(second: int, direction: str, **more: str) -> dict[str, str]:
        return {"timestamp": f"2025-11-03T10:15:{second:02d}.123Z", "direction": direction, **more}

    put(folder / "MANAGER-main" / "io.log", [line(1, "in", content="plan the login")])
    put(folder / "MANAGER-main" / "metadata.json", {
        "session_id": "MANAGER-main", "role": "MANAGER", "status": "active", "created_at": "2025-11-03T10:15:00.123Z",
    })  # fmt: skip
    put(folder / "ARCH-003" / "io.log", [
        line(30, "in", content="design the login"), line(31, "out", content="with tokens"),
        line(32, "artifact", path="docs/login.md", action="created"), line(33, "out", content="it is written"),
    ])  # fmt: skip
    put(folder / "ARCH-003" / "metadata.json", {
        "session_id": "ARCH-003", "role": "ARCHITECT", "status": "failed", "created_at": "2025-11-03T10:15:29.123Z",
        "completed_at": "2025-11-03T10:15:34.123Z", "parent_session": "MANAGER-main", "task": "Design the login",
        "context_files": ["docs/needs.md"], "artifacts_produced": ["docs/login.md", "docs/api.md"], "pid": 4711,
        "exit_code": 3,
    })  # fmt: skip
    put(folder / "ARCH-003" / "artifacts" / "login.md", "# Login\n")
    return at


SYSTEMS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "rlm, flat files": ("rlm", rlm_flat),
    "rlm, folders": ("rlm", rlm_folder),
    "apex": ("apex", apex),
    "dialectic": ("dialectic", dialectic),
    "io-log": ("io-log", io_log),
}


# Where they come back


def leaves(folder: Path) -> Iterator[Leaf]:
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        yield from walked_file(folder, path)


def walked_file(folder: Path, path: Path) -> Iterator[Leaf]:
    name = str(path.relative_to(folder))
    if path.suffix == ".json":
        yield from walked(name, "", json.loads(path.read_text()))
    elif path.suffix in (".jsonl", ".log") and path.name != "transcript.jsonl":
        for line in lined(path):
            yield from walked(name, "", line)


def walked(file: str, path: str, value: Any) -> Iterator[Leaf]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            shown = "*" if key in (A, B, "small") or key.startswith("/") else key
            yield from walked(file, f"{path}.{shown}".lstrip("."), inner)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from walked(file, f"{path}[]", inner)
    else:
        yield Leaf(file, path, value)


def found(leaf: Leaf, out: list[Leaf]) -> Leaf | None:
    """Where the value stands in the export: best in the same place, else under the same key, else anywhere, but not
    in what only an import of ours reads."""
    is_truth = isinstance(leaf.value, bool)
    same = [one for one in out if isinstance(one.value, bool) == is_truth and one.value == leaf.value]
    same = [one for one in same if "/kept/" not in one.file and not one.path.startswith("sessgit.")]
    ways: tuple[Callable[[Leaf], bool], ...] = (
        lambda one: (one.file, one.path) == (leaf.file, leaf.path),
        lambda one: (Path(one.file).name, one.path) == (Path(leaf.file).name, leaf.path),
        lambda one: one.key == leaf.key,
        lambda one: True,
    )
    return next((one for way in ways for one in same if way(one)), None)


def brought_back(shell: Shell, name: str, at: Path) -> tuple[Path, Path]:
    """The example of a system, and the folder into which what was imported from it is exported."""
    system, make = SYSTEMS[name]
    source, out = make(at / "source"), at / "out"
    shell.out("import", "--from", system, str(source))
    shell.out("export", system, *(row["id"] for row in shell.json("ls", "--all")["sessions"]), "--output", str(out))
    return source, out


def rows(source: Path, out: Path) -> list[tuple[str, str, str]]:
    """Each file and field of an example, and the file and field of the export in which its value stands."""
    exported = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    every, found_in = list(leaves(out)), list[tuple[str, str, str]]()
    for path in (path for path in sorted(source.rglob("*")) if path.is_file()):
        file = str(path.relative_to(source))
        whole = next(
            (name for name, data in exported.items() if data == path.read_bytes() and "/kept/" not in name), ""
        )
        if whole and path.name not in ("io.log", "metadata.json", "active.json"):
            found_in.append((file, "all of it", whole))
            continue
        for leaf in walked_file(source, path):
            there = found(leaf, every)
            found_in.append((file, leaf.path, f"{there.file}: {there.path}" if there else ""))
    return found_in


Pages = list[tuple[str, list[Leaf], set[bytes]]]


def pages(shell: Shell) -> Pages:
    """Return what commands show of the imported sessions: the command, the values that it prints, and whole files."""
    out = Pages()
    sessions = [row["id"] for row in shell.json("ls", "--all")["sessions"]]

    def shown(command: str, *documents: Any, texts: Sequence[bytes] = ()) -> None:
        out.append((command, [leaf for one in documents for leaf in walked("", "", one)], set(texts)))

    every = {own: shell.json("cells", own)["cells"] for own in sessions}
    turns = [f"{own}@{n + 1}" for own in sessions for n in range(shell.json("show", own)["session"]["turns"])]
    kept = [(own, one["path"]) for own in sessions for one in shell.json("show", own, "--kept")["kept"]]
    files = [shell.out("show", own, "--kept", path) for own, path in kept]
    shown("show", *(shell.json("show", own) for own in sessions))
    shown("show @TURN", *(shell.json("show", turn) for turn in turns))
    cells = [(own, cell["address"]) for own in sessions for cell in every[own]]
    shown("show @TURN.CELL", *(shell.json("show", f"{own}@{at}") for own, at in cells))
    shown("pad", *(shell.json("pad", own) for own in sessions))
    shown("show --kept", *map(parsed, files), texts=[file.encode() for file in files])
    return out


def parsed(text: str) -> Any:
    """Return the value of JSON, or the values of JSON lines; nothing for another text."""
    try:
        return json.loads(text)
    except ValueError:
        lines = text.splitlines()
    return [parsed(line) for line in lines] if len(lines) > 1 else []


def shown_by(value: Any, key: str, every: Pages) -> str:
    """Return the first command that prints a value: under its own key, else a value that stands for nothing else, else
    in a text; the kept files come last."""
    said, name = comparable(value), plain_key(key)
    is_distinct = len(str(value)) > 3 and not isinstance(value, bool)
    ways: tuple[Callable[[Leaf], bool], ...] = (
        lambda leaf: comparable(leaf.value) == said and is_same_key(plain_key(leaf.key), name),
        lambda leaf: is_distinct and comparable(leaf.value) == said,
        lambda leaf: len(said) > 8 and isinstance(leaf.value, str) and said in leaf.value,
    )
    order = [(page, way) for pages in (every[:-1], every[-1:]) for way in ways for page in pages]
    return next((command for (command, inside, _), way in order if any(map(way, inside))), "")


def is_same_key(one: str, other: str) -> bool:
    """Return whether two keys are the same, or one has words before it, as `rlm_active` and `active`."""
    return bool(one and other) and (one.endswith(other) or other.endswith(one))


def plain_key(key: str) -> str:
    return re.sub("[^a-z]", "", key.lower()).removesuffix("s")


def comparable(value: Any) -> str:
    """Return a value so that equal ones are equal: a time in any form as that of RFC 3339."""
    is_time = type(value) in (int, float) and 1e9 < value < 1e10
    return (
        canonical.rfc3339(round(value, 3)) if is_time else f"{value}" if isinstance(value, str) else json.dumps(value)
    )


def fields_shown(source: Path, every: Pages) -> dict[tuple[str, str], str]:
    """Return for each file and field of an example the command that shows it."""
    out = dict[tuple[str, str], str]()
    for path in (path for path in sorted(source.rglob("*")) if path.is_file()):
        file, data = str(path.relative_to(source)), path.read_bytes()
        whole = next((command for command, _, files in every if data in files), "")
        out[anonymous(file), "all of it"] = whole
        for leaf in walked_file(source, path):
            command = shown_by(leaf.value, leaf.key, every) if leaf.value not in (None, [], {}, "") else ""
            out[anonymous(file), leaf.path] = out.get((anonymous(file), leaf.path)) or command
    return out


def table(name: str, found_in: list[tuple[str, str, str]], commands: Mapping[tuple[str, str], str]) -> str:
    """Return the same as a table of the page: a row for the fields of a file that one command shows, and that come back
    in one file."""
    grouped = dict[tuple[str, str, str], list[str]]()
    for row in dict.fromkeys(tuple(map(anonymous, row)) for row in found_in):
        file, field, place = row
        there, _, key = place.partition(": ")
        if field == "all of it":
            shown = field
        elif not place:
            there, shown = NOT_BACK[file, field], f"`{field}`"
        else:
            shown = f"`{field}`" if key == field else f"`{field}` → `{key}`"
        grouped.setdefault((file, commands.get((file, field), ""), there), []).append(shown)
    heads = "| file | fields | shown by | come back in |"
    lines = [f"### {name.replace('rlm', 'RLM')}", "", heads, "| --- | --- | --- | --- |"]
    for (file, command, there), fields in grouped.items():
        place = "the same place" if there == file else there if there in NOT_BACK.values() else f"`{there}`"
        lines.append(f"| `{file}` | {', '.join(fields)} | {f'`{command}`' if command else '—'} | {place} |")
    return "\n".join(lines)


def anonymous(line: str) -> str:
    for pattern, instead in (
        (rf"{A}|{B}", "<cell>"),
        (rf"{RLM}|{APEX}|{BRANCH}|\bn1(?![a-z0-9])|sess_1762164000|MANAGER-main|ARCH-003", "<id>"),
        (r"1762164011|login(?=\.md)|chips(?=\.md)|(claim|tension)_\d+(?=\.md)|thesis_v1(?=\.md)", "<name>"),
    ):
        line = re.sub(pattern, instead, line)
    return line


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_field_comes_back_where_the_page_says(sessgit: Shell, tmp_path: Path, name: str) -> None:
    """SESSGIT_TEST_WRITE_FIELDS=1 writes the table."""
    source, out = brought_back(sessgit, name, tmp_path)
    made = table(name, rows(source, out), fields_shown(source, pages(sessgit)))
    page = PAGE.read_text()
    start = page.index(made.partition("\n")[0] + "\n")
    end = next((at for at in (page.find("\n\n###", start + 1), page.find("\n\n## ", start + 1)) if at > 0), len(page))
    if os.environ.get("SESSGIT_TEST_WRITE_FIELDS") == "1":
        PAGE.write_text(f"{page[:start]}{made}{page[end:]}".rstrip() + "\n")
        return
    assert page[start:end].strip() == made


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "rlm, flat files"])
def test_documents_come_back_as_they_were(sessgit: Shell, tmp_path: Path, name: str) -> None:
    """Also lists, in their order; an export may say more."""
    source, out = brought_back(sessgit, name, tmp_path)
    for path in (path for path in sorted(source.rglob("*")) if path.is_file()):
        file = str(path.relative_to(source))
        if path.suffix == ".json" and path.name != "index.json":
            assert lacking(json.loads(path.read_text()), json.loads((out / file).read_text())) == [], file
        elif path.name != "index.json":
            assert (out / file).read_bytes() == path.read_bytes() or lines_lacking(path, out / file) == [], file


def lacking(there: Any, here: Any, at: str = "") -> list[str]:
    """Where a document does not say what another one says."""
    if isinstance(there, dict) and isinstance(here, dict):
        return [what for key, value in there.items() for what in lacking(value, here.get(key), f"{at}.{key}")]
    is_same = there == here and isinstance(there, bool) == isinstance(here, bool)
    return [] if is_same else [f"{at}: {here!r} for {there!r}"]


def lines_lacking(there: Path, here: Path) -> list[str]:
    return [what for one, other in zip(lined(there), lined(here), strict=True) for what in lacking(one, other)]


def lined(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_flat_files_of_rlm_come_back_as_a_state_in_a_folder(sessgit: Shell, tmp_path: Path) -> None:
    """As the system itself moves them there."""
    source, out = brought_back(sessgit, "rlm, flat files", tmp_path)
    state, said, meta = (
        json.loads((source / "rlm-state" / f"{name}.json").read_text())
        for name in ("n1", "n1_context", "session-metadata")
    )
    found_here = json.loads((out / "rlm-sessions" / "n1" / "session.json").read_text())
    expected = {
        "metadata": {
            "session_id": "n1", "created_at": state["created_at"], "updated_at": state["updated_at"], "ended_at": None,
            "cwd": meta["cwd"], "claude_transcript_path": meta["transcript_path"], "rlm_version": "0.1.0",
        },
        "activation": {
            "rlm_active": True, "activation_mode": "complexity", "activation_reason": None, "complexity_score": None,
            "current_depth": 2, "max_depth": 3,
        },
        "context": {
            "conversation": said["messages"], "files": said["files"], "tool_outputs": said["tool_outputs"],
            "working_memory": state["working_memory"],
        },
        "budget": {
            "total_tokens_used": 48213, "total_recursive_calls": 6, "max_recursive_calls": 10, "cost_usd": 0.0,
            "by_model": {},
        },
        "trajectory": {"events_count": 17, "export_path": "/home/ada/t/n1.json"},
    }  # fmt: skip
    assert lacking(expected, found_here) == []


def test_what_comes_later_is_added(sessgit: Shell, tmp_path: Path) -> None:
    """Turns that the client adds to a session of RLM: their files, outputs, tokens and messages follow its own."""
    _, _ = brought_back(sessgit, "rlm, flat files", tmp_path)
    own = sessgit.json("ls", "--all")["sessions"][0]["id"]
    assert sessgit("restore", own).code == 0
    (path,) = sessgit.config.glob(f"projects/*/{own}.jsonl")
    talk = sessgit.talk(own).prompt("and now?").tool("Bash", {"command": "ls"}, "scan.py").answer("Faster.")
    talk.file.lines = [line.replace(b'"parentUuid":null', b'"parentUuid":"%s"' % leaf(path), 1) for line in talk.lines]
    path.write_bytes(path.read_bytes() + talk.data)
    sessgit.out("import")
    sessgit.out("export", "rlm", own, "--output", str(tmp_path / "later"))
    found_here = json.loads((tmp_path / "later" / "rlm-sessions" / "n1" / "session.json").read_text())
    context, budget = found_here["context"], found_here["budget"]
    assert [one["content"] for one in context["conversation"]] == [
        "why is it slow?", "the scanner copies", "and now?", "Faster.",
    ]  # fmt: skip
    assert [one.get("content", one.get("content_preview")) for one in context["tool_outputs"]] == [
        "3.2 s", "scan.py:7", "scan.py",
    ]  # fmt: skip
    used = sessgit.json("log", own)["turns"][-1]["tokens"]
    assert budget["total_tokens_used"] == 48213 + sum(used.values())
    again = tmp_path / "again"
    shutil.copytree(tmp_path / "later", again)
    assert sessgit.json("import", "--from", "rlm", str(again), "--dry-run")["refs"] == {}


NUMBERS = st.integers(0, 1 << 40) | st.floats(0, 1e9, allow_nan=False)
TIMES = st.integers(1, 1 << 32) | st.floats(1, 1e9)
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cs", "Cc"]), max_size=9)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=2)


def keys(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with some of these keys, and others."""
    others = st.dictionaries(st.sampled_from(["seq", "x y", "nested"]), VALUES.filter(bool), max_size=2)
    return st.builds(lambda found, more: {**more, **found}, st.fixed_dictionaries({}, optional=known), others)


STATES = keys(
    created_at=TIMES, updated_at=TIMES, ended_at=TIMES, rlm_active=st.booleans(), current_depth=st.integers(0, 3),
    max_depth=st.integers(1, 3), working_memory=OBJECTS, total_tokens_used=NUMBERS, total_recursive_calls=NUMBERS,
    trajectory_path=WORDS, trajectory_events_count=NUMBERS, activation_mode=WORDS, activation_reason=WORDS,
    complexity_score=NUMBERS,
)  # fmt: skip
MESSAGE = keys(role=st.sampled_from(["user", "assistant", "system", "tool"]), content=VALUES, timestamp=TIMES)
OUTPUT = keys(tool_name=WORDS, content=WORDS, exit_code=st.integers(-1, 2), timestamp=TIMES, cell_id=WORDS)
CONTEXTS = keys(
    messages=st.lists(MESSAGE, max_size=4), files=st.dictionaries(WORDS, OBJECTS | WORDS, max_size=2),
    tool_outputs=st.lists(OUTPUT, max_size=3), working_memory=OBJECTS,
)  # fmt: skip


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=STATES, said=CONTEXTS, meta=keys(transcript_path=WORDS, cwd=WORDS, started_at=TIMES))
def test_nothing_of_flat_files_is_lost(
    sessgit: Shell, tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any], said: dict[str, Any],
    meta: dict[str, Any],
) -> None:  # fmt: skip
    """Whatever a state, what was said and the metadata say, under whatever key."""
    folder = tmp_path_factory.mktemp("law")
    name = f"n{folder.name.removeprefix('law')}"
    for file, value in ((name, state), (f"{name}_context", said), ("session-metadata", {"session_id": name, **meta})):
        put(folder / "rlm-state" / f"{file}.json", value)
    done = sessgit("import", "--json", "--from", "rlm", str(folder))
    assert done.code == 0, done
    ((own,),) = [[one["id"] for one in json.loads(done.out)["conversations"]]]
    sessgit.out("export", "rlm", own, "--output", str(folder / "out"))
    here = json.loads((folder / "out" / "rlm-sessions" / name / "session.json").read_text())
    assert [
        what for what in lacking(rlm.migrated_state(name, state, said, meta), here) if not what.endswith(NOTHING)
    ] == []


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "rlm, flat files"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_an_unknown_key_at_any_level_comes_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    """Or the report names it."""
    system, make = SYSTEMS[name]
    at = tmp_path_factory.mktemp("law")
    source = make(at / "source")
    paths = [path for path in sorted(source.rglob("*")) if path.suffix in (".json", ".jsonl", ".log")]
    for path in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3, unique=True)):
        documents = lined(path) if path.suffix != ".json" else [json.loads(path.read_text())]
        inside = data.draw(st.sampled_from([one for document in documents for one in objects(document)]))
        inside[data.draw(st.sampled_from(["seq", "x y", "nested"]))] = data.draw(VALUES.filter(bool))
        put(path, documents if path.suffix != ".json" else documents[0])
    with Store.temporary() as store:
        report = systems.import_folder(store, system, source, no_progress)
        every = [store.load_session(session.id) for session in report.sessions]
        systems.export_sessions(system, every, at / "out", no_progress)
    named = {file.path for file in report.files if file.why and not file.why.startswith("kept")}
    for path in (path for path in paths if str(path.relative_to(source)) not in named):
        file = str(path.relative_to(source))
        here = at / "out" / file
        if (at / "out" / file).exists():
            lost = lines_lacking(path, here) if path.suffix != ".json" else lacking(
                json.loads(path.read_text()), json.loads(here.read_text())
            )  # fmt: skip
            assert [what for what in lost if not what.startswith(".lastUpdated")] == [], file
        else:
            assert path.read_bytes() in [one.read_bytes() for one in (at / "out").rglob("*") if one.is_file()], file


def test_a_cell_without_a_time_keeps_what_it_depends_on(sessgit: Shell, tmp_path: Path) -> None:
    folder = rlm_folder(tmp_path / "source") / "rlm-sessions" / RLM
    document = json.loads((folder / "cells" / f"{B}.json").read_text())
    del document["created_at"]
    put(folder / "cells" / f"{B}.json", document)
    sessgit.out("import", "--from", "rlm", str(tmp_path / "source"))
    sessgit.out("export", "rlm", RLM, "--output", str(tmp_path / "out"))
    cells = tmp_path / "out" / "rlm-sessions" / RLM / "cells"
    assert json.loads((cells / f"{B}.json").read_text())["dependencies"] == [A]
    assert json.loads((cells / "index.json").read_text())["execution_order"] == [A, B]


def test_values_of_unexpected_types_come_back(sessgit: Shell, tmp_path: Path) -> None:
    source = io_log(rlm_folder(tmp_path / "source"))
    state = source / "rlm-sessions" / RLM / "session.json"
    document = json.loads(state.read_text())
    document["context"]["working_memory"], document["budget"]["by_model"] = 2.5, True
    put(state, document)
    log = source / ".claude-man" / "sessions" / "ARCH-003" / "metadata.json"
    metadata = json.loads(log.read_text()) | {"artifacts_produced": [{"path": "docs/api.md"}], "context_files": 7}
    put(log, metadata)
    for system, own in (("rlm", RLM), ("io-log", "ARCH-003")):
        sessgit.out("import", "--from", system, str(source))
        sessgit.out("export", system, own, "--output", str(tmp_path / "out"))
    shown = json.loads((tmp_path / "out" / state.relative_to(source)).read_text())
    assert (shown["context"]["working_memory"], shown["budget"]["by_model"]) == (2.5, True)
    assert lacking(metadata, json.loads((tmp_path / "out" / log.relative_to(source)).read_text())) == [
        ".artifacts_produced: [{'path': 'docs/api.md'}, 'docs/login.md'] for [{'path': 'docs/api.md'}]"
    ]


NOTHING = (" for None", " for ''", " for []", " for {}")


def leaf(path: Path) -> bytes:
    """The uuid of the last line of a transcript that has one."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return next(line["uuid"] for line in reversed(lines) if "uuid" in line).encode()
