"""Every test is sealed: a home, a git configuration, a clock zone and an environment of its own."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import browser
import fuzzing
import pytest
from hypothesis import HealthCheck, settings
from kept import Begin, KeptHome, begins
from plain import Git, Keep, run_git
from programs import Place
from shell import Shell
from shown import parser_rewrite
from transcripts import Talk

from sessgit import Store as ProgramsStore
from sessgit.record.file_pass import RecordingResult
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

# A function-scoped fixture stays the same for all examples of a test; those that need fresh folders make them.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("default", max_examples=60, **_COMMON)
settings.register_profile("ci", max_examples=60, derandomize=True, **_COMMON)
settings.register_profile("long", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))

_FOREIGN = ("CLAUDE", "SESSGIT_", "ANTHROPIC_", "GIT_")
_OURS = ("SESSGIT_TEST_",)
_SHOWN = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PAGER", "LANGUAGE")
"""How people like what programs print; by LANGUAGE gettext goes first, whatever LC_ALL says but for C itself."""
_SET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "TZ": "UTC", "LC_ALL": "C.UTF-8"}

_LEAST_HOME = 48
"""Characters of the sealed home's path: what is shown wraps where a path is long, and shall not where that depends on
the folder in which tests run."""
_HOMES = count()

_SLOW = {
    "api_laws", "bisect", "blame", "cold", "copies", "crowds", "damage", "export_browser", "faults", "gc",
    "gc_disk", "hostile_page", "hostile_requests", "import_bulk", "json_docs", "kills", "layers", "long_sidecars",
    "merge_laws", "purge_elsewhere", "recorder_killed", "redaction_stored", "remotes", "repacking",
    "replay_confined", "rescue", "schemas", "steps", "sync_two_endings", "syncing", "syncing_deleted",
    "syncing_laws", "tree", "value_match", "walks", "watch", "web_access", "web_browser", "why", "work",
}  # fmt: skip
"""The files that take longest: `make test` gives each to one worker, and none is left with a long one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _SLOW)


# By default Python looks for cycles after every 700 values. A command of the program sets a higher threshold too.
gc.set_threshold(10_000)


def pytest_collection_finish() -> None:
    """Keep what the tests have loaded by now out of every garbage collection: to go through it takes half a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    fuzzing.Taken.count = 0
    try:
        return (yield)
    finally:
        if fuzzing.Taken.count:
            item.user_properties.append((fuzzing.PROPERTY, fuzzing.Taken.count))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """In the long form, how many inputs each fuzzer took, and all of them together."""
    reports = [one for some in terminalreporter.stats.values() for one in some if getattr(one, "when", "") == "call"]
    for line in fuzzing.told({one.nodeid: dict(one.user_properties).get(fuzzing.PROPERTY, 0) for one in reports}):
        terminalreporter.write_line(line)


@pytest.fixture(scope="module")
def program() -> Iterator[Any]:
    """A headless Chromium that tests drive."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: install the group dev")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser.program(), args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="session", autouse=True)
def sealed_session() -> Iterator[None]:
    """What several tests share is sealed too, but for the home and the network: npm keeps clients there."""
    with pytest.MonkeyPatch.context() as patch:
        _seal(patch)
        yield


@pytest.fixture(autouse=True)
def seal(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The sealed home; nothing of the person who runs the tests is read or written."""
    _seal(monkeypatch)
    for name in list(os.environ):
        if name.startswith("XDG_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    home = _new_home(tmp_path_factory)
    _enter(monkeypatch, home)
    mask = os.umask(0o022)
    yield home
    os.umask(mask)


def _new_home(factory: pytest.TempPathFactory) -> Path:
    # Not by mktemp, which goes through all folders that it made before, for each further one.
    home = factory.getbasetemp() / "h" / str(next(_HOMES))
    home.mkdir(parents=True, mode=0o700)
    if len(str(home)) < _LEAST_HOME:
        home /= "x" * (_LEAST_HOME - len(str(home)))
        home.mkdir()
    return home


def _enter(patch: pytest.MonkeyPatch, home: Path) -> None:
    for name, value in {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
    }.items():
        patch.setenv(name, value)


def _seal(patch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name in _SHOWN or (name.startswith(_FOREIGN) and not name.startswith(_OURS)):
            patch.delenv(name)
    for name, value in _SET.items():
        patch.setenv(name, value)


@pytest.fixture
def place(seal: Path) -> Iterator[Place]:
    """The folder of a program in the sealed home, and the store there as programs open it."""
    (seal / "calc").mkdir()
    made = Place(ProgramsStore.open(), seal / "calc")
    yield made
    made.check()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    stores.create_store(tmp_path / "store")
    return Store(tmp_path / "store")


@pytest.fixture
def index(store: Store) -> Iterator[Index]:
    found = Index(store.path, lambda: store)
    yield found
    found.close()


@pytest.fixture
def git(store: Store) -> Git:
    """Plain git in the store: `git("log", "--oneline", "main")` is what it prints."""
    return lambda *arguments: run_git(store.path, *arguments)


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    """The folder in which the client keeps the project's transcripts."""
    return tmp_path / "claude" / "projects" / "-home-ada-shop"


@pytest.fixture
def keep(store: Store, index: Index, claude: Path, git: Git) -> Iterator[Keep]:
    """Saves a conversation as it is now and records it, or a file as it lies there.

    At the end git must find the store whole.
    """

    def keep(what: Talk | Path, *, granularity: str = "turn", redact: bool = True, **how: Any) -> RecordingResult:
        path = what if isinstance(what, Path) else what.save(claude)
        source = TranscriptSource(path, path.stem, claude.parents[1], **how)
        return record(Context(index, privacy=Privacy(RecordConfig(granularity, redact))), source)

    yield keep
    assert git("fsck", "--strict", "--no-dangling") == ""


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """The command line in a sealed home of which nothing is recorded yet."""
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def kept_homes() -> dict[Begin, KeptHome]:
    return {}


@pytest.fixture
def begun(
    seal: Path,
    kept_homes: dict[Begin, KeptHome],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[Begin], Shell]:
    """`begun(begin)` is the command line in a home as `begin` leaves it."""

    def begun(begin: Begin) -> Shell:
        kept = kept_homes.get(begin)
        _enter(monkeypatch, kept.home if kept else _new_home(tmp_path_factory))
        if kept:
            kept.lay()
            shell = Shell(monkeypatch, capsys)
            shell.ids, shell.now = kept.ids, kept.now
        else:
            begin(shell := Shell(monkeypatch, capsys))
            kept_homes[begin] = KeptHome(shell)
        return shell

    return begun


@begins
def parser(shell: Shell) -> None:
    """A conversation that was rewound, compacted, and forked at a turn and at a cell."""
    shell.recorded(parser_rewrite(shell))
    shell.out("fork", "5e55", "--at", "2", "--name", "by hand")
    shell.out("fork", "5e55", "--at", "2.3", "--name", "by cell")
