"""The pages are true: what `docs/format.md` shows comes out of what it says goes in, and no name is left out.

The page's transcript is recorded here, and the page's other blocks are compared with what the store then holds. A
block is found by the word behind its language: ```` ```json session-example ````.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from plain import run_git
from redacting import PROTECTED_KEYS, redact_line

from sessgit import errors
from sessgit.agents.claude import lines as transcript_lines
from sessgit.errors import SessgitError
from sessgit.model import canonical, ids, json_strings
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Activation, Budget, Memory, Metadata, Trajectory, Unified
from sessgit.model.stored_fields import State
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import layout
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.recorder_state import Cursor
from sessgit.store.store import Store

ROOT = Path(__file__).parents[1]
FORMAT, ARCHITECTURE, GLOSSARY = (
    (ROOT / "docs" / name).read_text("utf-8") for name in ("format.md", "architecture.md", "glossary.md")
)
BLOCK = re.compile(r"^```\w+ ([a-z-]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TRAILER = re.compile(r"[A-Z][A-Za-z0-9]*(?:-[A-Z][A-Za-z0-9]*)*")

SESSION = "0d7c3a1e-5b42-4f8e-9a61-c2f4e8b7d905"
FORK = "f02b7c55-9d1e-4a6b-8c3f-1e2d3c4b5a69"
PROJECT_HEAD = "8f1d2c3b4a5968778695a4b3c2d1e0f9a8b7c6d5 (main)"
LONG = "x = 1\n" * 800


def blocks(page: str) -> dict[str, str]:
    """The marked blocks of a page by their names."""
    found = BLOCK.findall(page)
    assert len({name for name, _ in found}) == len(found), "two blocks have one name"
    return dict(found)


PAGE = blocks(FORMAT)


def rows(page: str, heading: str) -> Iterator[list[str]]:
    """The cells of the tables below a heading, without the tables' own heads."""
    below = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for table in re.findall(r"(?:^\|.*\n)+", below, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def quoted(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


# The examples


class Example:
    """A store that has recorded the page's transcript, then a rewind in it, then a copy of it by the client."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "claude"
        self.project = self.config / "projects" / "-home-ada-calc"
        self.project.mkdir(parents=True)
        stores.create_store(folder / "store")
        self.store = Store(folder / "store")
        self.store.paths.key.write_bytes(bytes(32))
        self.index = Index(self.store.path, lambda: self.store)

    def write_sidecars(self) -> None:
        """A subagent's file and the tasks, as the client keeps them."""
        agents = self.project / SESSION / "subagents"
        agents.mkdir(parents=True)
        (agents / "agent-7c2d.jsonl").write_text(PAGE["subagent-example"])
        tasks = self.config / "tasks" / SESSION
        tasks.mkdir(parents=True)
        (tasks / "1.json").write_text('{"subject":"recover"}')

    def record(self, session: str, text: str, *, final: bool = False) -> str:
        """Records a file of that text and returns the session's head."""
        path = self.project / f"{session}.jsonl"
        with path.open("ab") as file:
            file.write(text.replace("LONG", json_strings.encode_string(LONG).decode()).encode()[file.tell() :])
        source = TranscriptSource(path, session, self.config, final=final, live=session == SESSION, head=PROJECT_HEAD)
        return record(Context(self.index), source).head

    def text(self, commit: str, path: str) -> str:
        """A file of a commit, with the paths that the page has."""
        data = run_git(self.store.path, "cat-file", "blob", f"{commit}:{path}")
        return data.replace(str(self.config), "/home/ada/.claude")

    def message(self, commit: str) -> str:
        return run_git(self.store.path, "log", "-1", "--format=%B", commit).rstrip("\n") + "\n"


def examples(folder: Path) -> dict[str, str]:
    """Every block of the page that must come out of its transcript."""
    example = Example(folder)
    example.write_sidecars()
    git = example.store.path
    transcript = PAGE["transcript-example"]
    head = example.record(SESSION, transcript, final=True)
    turn = f"{head}~1"
    stored = example.text(head, "turns/0000/000001/transcript.jsonl").splitlines(keepends=True)
    out = {
        "tree-example": run_git(git, "ls-tree", "-r", "--name-only", head),
        "session-example": example.text(head, layout.STATE),
        "turn-message-example": example.message(turn),
        "end-message-example": example.message(head),
        "cells-example": example.text(head, "turns/0000/000002/cells.jsonl"),
        "before-example": example.text(head, "turns/0000/000002/before.jsonl"),
        "tail-example": example.text(head, layout.TAIL),
        "text-example": stored[2],
    }
    example.record(SESSION, transcript + PAGE["rewind-example"])
    copied = transcript.partition('{"parentUuid":"b4"')[0].replace(SESSION, FORK)
    fork = example.record(FORK, copied + PAGE["fork-lines-example"])
    state = json.loads(example.text(fork, layout.STATE))
    fork_point = state["origin"]["commit"]
    out["origin-example"] = canonical.dumps({"origin": state["origin"]}).decode().replace(fork_point, "<fork point>")
    out["fork-message-example"] = example.message(f"{fork}~1")
    out["refs-example"] = run_git(git, "for-each-ref", "--format=%(refname)")
    graph = run_git(git, "log", "--graph", "--all", "--topo-order", "--format=%s")
    out["graph-example"] = "".join(line.rstrip() + "\n" for line in graph.splitlines())
    example.index.close()
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return examples(tmp_path_factory.mktemp("docs"))


INPUTS = ("transcript-example", "subagent-example", "rewind-example", "fork-lines-example")
OWN_TESTS = ("vectors", "redaction-example", "canonical-example", "program-example", "program-cells-example")


def test_every_block_is_checked(made: dict[str, str]) -> None:
    assert sorted(PAGE) == sorted([*made, *INPUTS, *OWN_TESTS])


@pytest.mark.parametrize("name", [name for name in PAGE if name not in (*INPUTS, *OWN_TESTS)])
def test_example_is_what_comes_out(made: dict[str, str], name: str) -> None:
    assert PAGE[name] == made[name]


def test_test_vectors() -> None:
    prompt = "c94d0b17-77aa-4b19-a2d4-0e6f5c3b2a18"
    line = b'{"type":"user","message":{"content":"hello"}}'
    expected = {
        "session of the agent's id `Session 7`": ids.session_id("Session 7"),
        "rewound branch of `s1` at that prompt": ids.rewound_name("s1", prompt),
        "rewound branch of `s1` at the prompt `P-9`": ids.rewound_name("s1", "P-9"),
        "cell `toolu_3` of that prompt": ids.cell_id(prompt, "toolu_3"),
        "key of that line at offset 120": ids.line_id(line, 120),
    }
    assert PAGE["vectors"] == "".join(f"{what}\n    {value}\n" for what, value in expected.items())
    assert f"`{prompt}`" in FORMAT
    assert f"`{line.decode()}`" in FORMAT


def test_redaction_example(store: Store) -> None:
    before, after, count, proof = PAGE["redaction-example"].splitlines()
    assert redact_line(before.encode()) == (after.encode(), int(count.removeprefix("Redacted: ")))
    store.paths.key.write_bytes(bytes(32))
    digest = store.hmac([before.encode() + b"\n"])
    assert proof == f"Original-HMAC: {digest}"


def test_canonical_example() -> None:
    assert PAGE["canonical-example"].encode() == canonical.dumps({"b": [1, "ü"], "a": {"d": None, "c": 0.5}})


# Nothing is left out


def test_every_key_of_the_state_is_described() -> None:
    origin = sessions.Origin("s", 1, "c")
    own = Unified(
        Metadata("2.1"), Activation(True, "manual", "why", 1.0, 0, 3), Memory({"plan": 1}), Budget(1, 0, 0.5),
        Trajectory("/out"),
    )  # fmt: skip
    whole = sessions.Session("s", "s", origin=origin, rules={"cut": 1, "redact": 1}, unified=own)
    document = json.loads(sessions.dumps(whole))
    assert "(schemas/session.schema.json)" in FORMAT
    schema = json.loads((ROOT / "docs" / "schemas" / "session.schema.json").read_text("utf-8"))
    assert set(document.pop("rules")) <= set(re.findall(r"\w+", schema["properties"]["rules"]["description"]))
    for top, inner in document.items():
        shape = schema["properties"][top]
        (ref,) = (kind["$ref"] for kind in (shape, *shape.get("anyOf", ())) if "$ref" in kind)
        properties = schema["$defs"][ref.rpartition("/")[2]]["properties"]
        assert {key for key in inner if properties.get(key, {}).get("description")} == set(inner), top


def test_every_trailer_is_described() -> None:
    described = {key for row in rows(FORMAT, "Trailers") for key in quoted(row[0])}
    assert described == set(_written_trailers())


def _written_trailers() -> Iterator[str]:
    """The keys in pairs `("Key", value)`, which is how the code writes trailers."""
    rooms = ("model/conversation", "record", "branch", "purge", "sync", "check", "replay", "api", "exchange")
    for path in sorted(path for room in rooms for path in (ROOT / "sessgit" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Constant):
                key = node.elts[0].value
                if isinstance(key, str) and TRAILER.fullmatch(key):
                    yield key


def test_every_event_is_described() -> None:
    assert {event for event in messages.EVENTS if f"`{event}`" not in FORMAT} == set()


def test_every_rule_for_prompts_is_told() -> None:
    cutting = FORMAT.split("\n## Cutting: Claude Code\n")[1].split("\n## ")[0]
    prefixes = transcript_lines._NO_PROMPT
    assert [prefix for prefix in prefixes if f"`{prefix}`" not in cutting] == []


def test_every_key_that_is_never_redacted_is_told() -> None:
    redaction = FORMAT.split("\n## Redaction\n")[1].split("\n## ")[0]
    assert PROTECTED_KEYS - set(quoted(redaction)) == set()


def test_every_schema_of_a_stored_document_is_linked() -> None:
    folder = ROOT / "docs" / "schemas"
    names = {path.name for path in folder.glob("*.json") if not path.name.startswith("unified-")}
    assert names == set(re.findall(r"\(schemas/([a-z-]+\.schema\.json)\)", FORMAT))
    keys = json.loads((folder / "cursor.schema.json").read_text("utf-8"))["properties"]
    assert set(keys) == {"version", *(field.name for field in dataclasses.fields(Cursor))}


def test_every_ref_and_path_is_told() -> None:
    names = [value for key, value in vars(layout).items() if key.isupper() and isinstance(value, str)]
    paths = [path.name for key, path in vars(layout.StorePaths(Path("/s"))).items() if key != "store"]
    assert [name for name in names + paths if name not in FORMAT] == []


def test_every_package_has_its_row() -> None:
    named = [path for row in rows(ARCHITECTURE, "Packages") for path in quoted(row[0])]
    parts = [path for path in (ROOT / "sessgit").iterdir() if not path.name.startswith("__")]
    assert sorted(named) == sorted(f"{path.name}/" if path.is_dir() else path.name for path in parts)


def test_every_module_that_is_named_exists() -> None:
    named = [path for path in quoted(ARCHITECTURE) if path.endswith(".py") and "/" in path]
    assert len(named) > 40
    assert [path for path in named if not (ROOT / "sessgit" / path).exists() and not (ROOT / path).exists()] == []


def test_every_error_has_its_exit_code() -> None:
    table = {}
    for code, classes, _ in rows(ARCHITECTURE, "Exit codes"):
        table.update({name: int(code) for name in quoted(classes)})
    found: dict[str, Any] = {
        name: value.exit_code
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, SessgitError)
    }
    assert table == found


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split(r"[^a-z0-9_-]", entry)[0] for entry in project["dependencies"]}
    assert {name for row in rows(ARCHITECTURE, "Dependencies") for name in quoted(row[0])} >= needed


def test_the_glossary_is_in_order_and_knows_the_words() -> None:
    """Each term is one line; states and stages of a session are listed."""
    *_, text = GLOSSARY.partition("\n\n- ")
    entries = [re.fullmatch(r"\*\*([^*]+)\*\*.*: .+\.", line) for line in f"{text}".rstrip("\n").split("\n- ")]
    terms = [entry[1] for entry in entries if entry is not None]
    assert len(terms) == len(entries)
    assert terms == sorted(terms, key=str.lower)
    wanted = {*get_args(State), *sessions.STAGES}
    assert {"session", "turn", "cell", "store", "fork point"} <= set(terms)
    assert wanted <= set(quoted(GLOSSARY))
