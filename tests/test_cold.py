"""What a command does not load: start-up is what people wait for."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import pytest
from kept import begins
from shell import Shell

import sessgit as program
from sessgit.store.layout import StorePaths
from sessgit.store.spool import Claim

LARGE = ("pygit2", "pydantic", "rich", "tomlkit", "starlette", "uvicorn")

_RUN = """
import sys, runpy
sys.argv = {arguments!r}
try:
    runpy.run_module({module!r}, run_name="__main__")
except SystemExit as left:
    assert not left.code, left.code
loaded = {{*sys.modules, *(name.split(".")[0] for name in sys.modules)}}
sys.stderr.write(" ".join(sorted(loaded & set({names!r}))))
"""


def loaded(module: str, *arguments: str, names: Collection[str] = LARGE) -> set[str]:
    """Which of these modules and libraries a program loads, started in a process of its own."""
    code = _RUN.format(arguments=[module, *arguments], module=module, names=[*names])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {word for word in done.stderr.splitlines()[-1].split() if word in names} if done.stderr else set()


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("part one", "part two"))


def test_help_loads_nothing_large(sessgit: Shell) -> None:
    assert loaded("sessgit", "--help") == set()
    assert loaded("sessgit", "log", "--help") == set()
    assert loaded("sessgit", "--version") == set()


@pytest.mark.parametrize(
    "command",
    [
        ("log", "5e55"),
        ("log", "5e55", "-n", "1", "--oneline"),
        ("log", "5e55", "--graph"),
        ("ls",),
        ("ls", "--all", "--json"),
        ("id", "5e55"),
        ("status", "5e55"),
        ("status", "--json"),
        ("resume", "5e55", "--print"),
        ("recover", "--all"),
    ],
)
def test_a_level_session_needs_nothing_large(sessgit: Shell, command: tuple[str, ...]) -> None:
    assert loaded("sessgit", *command) == set()


def test_what_reads_a_few_turns_loads_nothing_large(sessgit: Shell) -> None:
    assert loaded("sessgit", "search", "two") <= {"pygit2"}  # which adds the turns to the full-text index
    cells = (("cells", "5e55"), ("show", "5e55@1.1", "--deps"), ("deps", "5e55@1.1", "--graph"), ("show", "5e55"))
    other = (("pad", "5e55"), ("resume", "5e55", "--brief", "--print"), ("search", "two"))
    for command in (("log", "5e55", "--json"), ("log", "5e55", "-p"), ("diff", "5e55", "5e55"), *cells, *other):
        assert loaded("sessgit", *command) == set(), command


def test_what_writes_objects_loads_git_alone(sessgit: Shell) -> None:
    for command in (("fork", "5e55"), ("pad", "--into", "5e55", "claim", "c"), ("edit", "5e55", "--label", "a")):
        assert loaded("sessgit", *command) == {"pygit2"}


def test_log_and_search_define_no_classes_that_only_annotations_name(sessgit: Shell) -> None:
    """A frozen class takes a tenth of a millisecond: these modules have 23."""
    values = {"sessgit.agents.values", "sessgit.model.program_input", "sessgit.model.conversation.content"}
    assert loaded("sessgit", "log", "5e55", names=values) == set()
    assert loaded("sessgit", "search", "two", names={"sessgit.record.catch_up"}) == set()
    assert loaded("sessgit", "deps", "5e55@1.1", names={"sessgit.history.show"}) == set()


MODULES = {
    ".".join(path.relative_to(Path(program.__file__).parents[1]).with_suffix("").parts).removesuffix(".__init__")
    for path in Path(program.__file__).parent.rglob("*.py")
}
"""All modules of the program."""


@pytest.mark.parametrize(
    ("command", "most"),
    [
        (("--version",), 18),
        (("ls",), 64),
        (("log", "5e55"), 63),
        (("diff", "5e55", "5e55"), 67),
        (("search", "two"), 71),
        (("status",), 78),
        (("show", "5e55@1"), 80),
        (("fork", "5e55"), 88),
    ],
)
def test_how_much_of_the_program_a_command_loads(sessgit: Shell, command: tuple[str, ...], most: int) -> None:
    """Each module takes a third of a millisecond: one that only some runs need is imported where they need it."""
    sessgit("search", "two")  # which writes the full-text index
    names = loaded("sessgit", *command, names=MODULES)
    assert len(names) <= most, sorted(names)


def test_without_settings_no_parser_of_settings_is_loaded(sessgit: Shell) -> None:
    assert loaded("sessgit", "log", "5e55", names={"tomllib"}) == set()


def test_only_a_shell_loads_what_completes(sessgit: Shell) -> None:
    assert loaded("sessgit", "log", "5e55", names={"sessgit.cli.completion"}) == set()


def test_completion_loads_nothing_large(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SESSGIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sessgit\nlog\n5e")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert loaded("sessgit") == set()


def test_a_recorder_that_has_nothing_to_record_loads_nothing_large(sessgit: Shell) -> None:
    """Also if another one has claimed the spool: of a burst of events most recorders leave at once."""
    claim = Claim(StorePaths(sessgit.store))
    assert claim.take(time.time())
    assert loaded_by_recorder(sessgit.store) == set()
    claim.give_up()
    assert loaded_by_recorder(sessgit.store) == set()


def loaded_by_recorder(store: Path) -> set[str]:
    """Which of the large libraries a recorder loads until it is done. As a program it ends without a word."""
    code = (
        "import sys; from pathlib import Path; from sessgit.recorder.__main__ import main\n"
        "from sessgit.store.layout import StorePaths; from sessgit.store.spool import Claim\n"
        f"main(Path({str(store)!r}), Claim(StorePaths(Path({str(store)!r}))))\n"
        f"print(*set({LARGE!r}) & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_recorder_loads_neither_what_tells_secrets_nor_a_search() -> None:
    """Until a line may hold a secret: most sessions hold none."""
    names = {"sessgit.redact.replacer", "sessgit.history.search"}
    code = f"import sys, sessgit.recorder.drain; print({names!r} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_page_reaches_its_first_view_without_what_shows_a_turn(sessgit: Shell) -> None:
    names = {"jinja2", "markdown_it", "pygments", "pygit2", "sessgit.history.export", "sessgit.branch.fork"}
    code = (
        "import asyncio, os, sys; from sessgit import environment; from sessgit.web import server\n"
        "from sessgit.web.reads import Place, Reader; reader = Reader(Place(environment.read(os.environ), {}, '/'))\n"
        "print(len(asyncio.run(reader.read(reader.forest))['sessions']))\n"
        f"print({names!r} & sys.modules.keys())"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\nset()\n"
    )


def test_the_page_is_opened_before_its_server_is_imported() -> None:
    names = {"asyncio", "starlette", "uvicorn"}
    code = f"import sys, sessgit.cli.commands.web, sessgit.web.access; print({names!r} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_command_lets_go_of_the_index(sessgit: Shell) -> None:
    """Though nobody looks for cycles at the end: what SQLite keeps beside its file while it is open is gone."""
    gc.collect()  # those of this process
    done = subprocess.run([sys.executable, "-m", "sessgit", "ls"], capture_output=True, text=True, check=True)
    assert "1 conversation" in done.stdout
    assert [path.name for path in sessgit.store.glob("index.sqlite3*")] == ["index.sqlite3"]


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, sessgit; print(sorted(name for name in sys.modules if name.startswith('sessgit')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['sessgit']\n"
    assert Path(__file__).exists()
