"""The cut of the code: imports go one way, one module imports each large library, the core is mute."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sessgit
from sessgit.model import program_input

ROOT = Path(__file__).parents[1] / "sessgit"
FLOORS = (
    ("errors",), ("model",), ("redact", "formats"), ("store",), ("agents",), ("history",), ("record",), ("branch",),
    ("purge",), ("sync", "check", "replay"), ("environment",), ("api",), ("exchange", "web"), ("recorder", "cli"),
)  # fmt: skip
"""The rooms, floor by floor: imports go down only, and rooms on one floor do not import each other."""
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

ONE_IMPORTER = {
    "pygit2": "store/backend.py", "pydantic": "model/program_values.py", "rich": "cli/render.py",
    "jinja2": "formats/template.py", "markdown_it": "formats/markup.py", "pygments": "formats/markup.py",
    "re2": "redact/engine.py", "filelock": "store/locks.py", "msgspec": "agents/line.py", "starlette": "web/",
    "uvicorn": "web/server.py",
}  # fmt: skip
EDGES = ("recorder", "cli", "api")
SPEAKING = {"print", "input", "breakpoint"}
OF_THE_EDGE = {("sys", "exit"), ("sys", "stdout"), ("sys", "stderr"), ("sys", "stdin"), ("sys", "argv"),
               ("os", "environ"), ("os", "getenv"), ("os", "_exit"), ("os", "getcwd"), ("Path", "cwd"),
               ("Path", "home")}  # fmt: skip
"""What a function below the edge is given by its caller."""

FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def room(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


@functools.cache
def parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text("utf-8"))


@functools.cache
def nodes(file: str) -> tuple[ast.AST, ...]:
    """Return every node of a file's syntax tree."""
    return tuple(ast.walk(parsed(file)))


@functools.cache
def imported(file: str) -> tuple[str, ...]:
    """Return every module that a file imports, at its top or inside a function."""
    names: list[str] = []
    for node in nodes(file):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: a relative import hides where it leads"
            assert node.module is not None
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def test_imports_go_down() -> None:
    for file in FILES:
        own = room(file)
        if own in ("__init__", "__main__"):
            continue
        assert own in FLOOR, f"{file} is in no room"
        used = {name.split(".")[1] for name in imported(file) if name.startswith("sessgit.")} - {own, "__version__"}
        used = {"api" if name in sessgit.__all__ else name for name in used}
        assert {other for other in used if FLOOR[other] >= FLOOR[own]} == set(), file


def test_exchange_is_a_client_of_the_library() -> None:
    """It uses what any program can use: the names in `sessgit`, errors, and values."""
    names = {f"sessgit.{name}" for name in sessgit.__all__}
    for file in (file for file in FILES if room(file) == "exchange"):
        own = [name for name in imported(file) if name.startswith("sessgit.") and name not in names]
        assert {name.split(".")[1] for name in own} <= {"errors", "model", "exchange"}, file


def test_no_import_leads_back() -> None:
    """Also of what is imported for its type alone, or where a function runs: else neither is read without the other."""
    modules = {"sessgit." + file.removesuffix(".py").replace("/", "."): file for file in FILES}
    graphlib.TopologicalSorter(
        {name: {module for module in imported(file) if module in modules} for name, file in modules.items()}
    ).prepare()


@pytest.mark.parametrize(("library", "file"), ONE_IMPORTER.items())
def test_one_module_imports_it(library: str, file: str) -> None:
    found = [name for name in FILES if any(module.split(".")[0] == library for module in imported(name))]
    assert {name[: len(file)] if file.endswith("/") else name for name in found} == {file}


def test_the_core_is_mute() -> None:
    for file in FILES:
        if room(file) in (*EDGES, "__main__"):
            continue
        for node in nodes(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in SPEAKING, f"{file}:{node.lineno}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in OF_THE_EDGE, f"{file}:{node.lineno}"


AGENTS = sorted(path.parent.name for path in (ROOT / "agents").glob("*/__init__.py"))
OUTSIDE = [file for file in FILES if room(file) != "agents"]
OF_OTHER_SYSTEMS = ("exchange/",)
"""Modules that hold the documents of other systems, which have keys of their own."""
NOT_OF_LINES = ("hooks.py", "stream.py")
"""Modules of an agent that deal with other files, or with its output."""
OF_LINES = re.compile(r"[a-z]+(?:[A-Z][A-Za-z]*)+|[a-z]+(?:[_-][a-z]+)+")
"""Words that a client's line format has, and that are no English: `parentUuid`, `tool_result`, `ai-title`."""


def literals(file: str) -> Iterator[tuple[str, int]]:
    """Return every string of a file that is a word, and every quoted word in another one, with its line."""
    bodies = (node.body for node in nodes(file) if isinstance(getattr(node, "body", None), list))
    docs = {id(line.value) for body in bodies for line in body if isinstance(line, ast.Expr)}
    for node in nodes(file):
        if isinstance(node, ast.Constant) and id(node) not in docs and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            words = [text] if re.fullmatch(r"[A-Za-z_-]+", text) else re.findall(r'"([A-Za-z_-]+)"', text)
            yield from ((word, node.lineno) for word in words)


def line_types(file: str) -> Iterator[tuple[str, int]]:
    """Return every string that a file compares a line's type with."""
    for node in nodes(file):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "type":
            found = (one for other in node.comparators for one in ast.walk(other) if isinstance(one, ast.Constant))
            yield from ((one.value, node.lineno) for one in found if isinstance(one.value, str))


def test_one_agents_modules_are_imported_by_itself_alone() -> None:
    for file in FILES:
        own = file.split("/")[1] if file.startswith("agents/") else ""
        others = tuple(f"sessgit.agents.{agent}" for agent in AGENTS if agent != own)
        assert [name for name in imported(file) if name.startswith(others)] == [], file


def test_one_agents_lines_are_known_to_itself_alone() -> None:
    inside = [file for file in FILES if file.startswith("agents/") and file.split("/")[1] in AGENTS]
    inside = [file for file in inside if Path(file).name not in NOT_OF_LINES]
    own = [file for file in FILES if room(file) == "model" or file == "history/show.py"]
    vocabulary = {word for file in own for word, _ in literals(file)}
    words = {word for file in inside for word, _ in literals(file) if OF_LINES.fullmatch(word)} - vocabulary
    types = {word for file in inside for word, _ in line_types(file)} - set(program_input.TYPES)
    assert {"parentUuid", "isSidechain", "tool_result", "tool_use", "toolUseResult", "promptId"} <= words
    assert {"user", "assistant"} <= types
    for file in OUTSIDE:
        if not file.startswith(OF_OTHER_SYSTEMS):
            assert [one for one in literals(file) if one[0] in words] == [], file
            assert [one for one in line_types(file) if one[0] in types] == [], file


def test_one_agents_variables_are_read_by_itself_alone() -> None:
    # The first passes on what the stub, a shell script, passes on; the second has no time to import the agents.
    exempt = ("store/stub.py", "cli/prompt.py")
    for file in OUTSIDE:
        named = [one for one in literals(file) if one[0].startswith(("CLAUDE_", "CODEX_"))]
        assert named == [] or file in exempt, file


def test_one_agent_is_named_by_itself_alone() -> None:
    """But the default, greetings, and the name of an export for another Claude Code."""
    exempt = (
        "store/context.py",
        "model/conversation/session.py",
        "cli/commands/export.py",
    )
    for file in OUTSIDE:
        assert [one for one in literals(file) if one[0] in AGENTS] == [] or file in exempt, file
