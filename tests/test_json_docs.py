"""`docs/json.md` is true: what every command prints with --json has the keys of its table, no more and no fewer."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from beside import helped, lay_beside, wipe
from clones import bare
from coded import Coded
from foreigners import log as logged
from foreigners import put, went
from hooked import hooked
from lexing import lexer_talk
from machines import arrived, on_another
from plain import run_git
from shell import NOW, Shell
from shown import parser_rewrite
from strategies import SECRET
from test_verify import loose, unpack
from transcripts import MODEL, OTHER, SESSION

from sessgit.api.bridge import OPERATIONS
from sessgit.api.state import session_state
from sessgit.api.state.session_state import Wanted
from sessgit.cli import app
from sessgit.model.foreign_session import agent_id
from sessgit.store import locks, log
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.recorder import last_turn
from sessgit.store.recorder.last_turn import Latest
from sessgit.store.store import Store

pytestmark = pytest.mark.xdist_group("json")  # what all commands print is made once in a process
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "json.md").read_text("utf-8")
DAMAGED = "5e551011-0000-4000-8000-000000000003"
CODED = "c0de0000-0000-4000-8000-00000000c0de"
REPLAYED = "5e551011-0000-4000-8000-000000000007"
LEFT, WATCHED, BROKEN = (f"5e551011-0000-4000-8000-00000000000{n}" for n in (5, 6, 8))
PURGED = "5e551011-0000-4000-8000-000000000009"
SILENT = "5e551011-0000-4000-8000-00000000000a"
LEXED = "5e551011-0000-4000-8000-000000000004"
PRICE = "{input = 5, output = 25, cache_read = 0.5, cache_write = 6.25}"
WITHOUT_JSON = {"resume"}
"""The commands that print nothing for programs."""
ALWAYS_JSON = {"bridge"}
"""Those that print nothing else, each answer in a shape of its own."""
ANSWERS = {f"the-answer-to-{operation}" for operation in OPERATIONS}
NEVER_PRINTED = {f"sessgittreev1: families[].nodes[].merged_into[].{key}" for key in ("session", "turn")}
"""The keys that this world has nothing for: no command makes a merge."""


# What the page says


@dataclass
class Key:
    """What is known of a key: its row, if it has one, the keys below it, and the tables whose keys it has as well."""

    name: str
    meaning: str = ""
    inner: dict[str, Key] = field(default_factory=dict)
    as_in: tuple[str, ...] = ()

    @property
    def may_be_missing(self) -> bool:
        return "if known" in self.meaning or "only in" in self.meaning

    def shapes(self) -> list[dict[str, Key]]:
        """The keys that an object here can have: one shape, or several where the table names several others."""
        return [table(name).shapes()[0] | self.inner for name in self.as_in] or [self.inner]


@cache
def tables() -> dict[str, list[tuple[str, str]]]:
    """The rows of the first table below each heading, by the heading as a link names it."""
    out: dict[str, list[tuple[str, str]]] = {}
    for part in re.split(r"\n##+ ", PAGE)[1:]:
        heading, _, body = part.partition("\n")
        rows = re.findall(r"^\| (.*?) \| (.*?) ?\|$", body, re.MULTILINE)
        assert heading not in out
        out[re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-")] = rows[2:]
    return out


@cache
def table(name: str) -> Key:
    """The keys of a table as a tree."""
    top = Key(name)
    for keys, meaning in tables()[name]:
        paths = re.findall(r"`([^`]+)`", keys)
        links = tuple(re.findall(r"as in \[[^]]+\]\(#([^)]+)\)|or \[[^]]+\]\(#([^)]+)\)", keys + meaning))
        as_in = tuple(a or b for a, b in links)
        if keys.startswith("as in"):
            top.as_in = as_in
            continue
        assert paths, (name, keys)
        for path in paths:
            at = top
            for step in re.finditer(r"\[\]|[^.\[\]]+", path):
                at = at.inner.setdefault(step[0], Key(f"{name}: {path[: step.end()]}"))
            at.meaning, at.as_in = meaning, as_in
    return top


def documented(key: Key) -> Iterator[str]:
    """The names of all keys of a table that have a row."""
    for below in key.inner.values():
        if below.meaning:
            yield below.name
        yield from documented(below)


# What is printed


def wrong(value: Any, key: Key, seen: set[str]) -> list[str]:
    """What is not as the page says; `seen` is told which of its keys are there."""
    seen.add(key.name)
    if value is None:
        return [] if "null" in key.meaning else [f"{key.name} is null"]
    if "any JSON" in key.meaning:
        return []
    if isinstance(value, dict):
        tried = []
        for shape in key.shapes():
            met: set[str] = set()
            tried.append((_wrong_keys(value, shape, key, met), met))
        least, met = min(tried, key=lambda one: len(one[0]))
        seen |= met
        return least
    if isinstance(value, list):
        item = key.inner.get("[]", Key(key.name))
        return [problem for one in value for problem in wrong(one, item, seen)]
    return [f"{key.name} is {value!r}"] if key.inner or key.as_in else []


def _wrong_keys(value: dict[str, Any], shape: dict[str, Key], key: Key, seen: set[str]) -> list[str]:
    if not shape and value:
        return [f"{key.name} has keys: {', '.join(value)}"]
    whole = shape.keys() - {"*", "[]"}
    missing = [shape[name].name for name in sorted(whole - value.keys()) if not shape[name].may_be_missing]
    problems = [f"{name} is missing" for name in missing]
    for name, below in value.items():
        known = shape.get(name) or shape.get("*")
        problems += wrong(below, known, seen) if known else [f"{key.name} has {name}"]
    return problems


@dataclass(frozen=True)
class Printed:
    """What a command printed, and the table that it must fit."""

    command: str
    text: str
    table: str

    @property
    def value(self) -> Any:
        ((_, value),) = json.loads(self.text).items()
        return value


class Printer:
    """Runs commands and keeps what they print; `name` is that of the document, `form` a table of its own for it."""

    def __init__(self, sessgit: Shell) -> None:
        self.sessgit = sessgit
        self.printed: list[Printed] = []

    def __call__(self, name: str, *arguments: str, form: str = "", code: int = 0) -> Any:
        is_export = name == "export"
        done = self.sessgit(*arguments, *([] if is_export else ["--json"]))
        assert done.code == code, (arguments, done)
        assert list(json.loads(done.out)) == [f"sessgit.{name}/v1"]
        self.printed.append(Printed(arguments[0], done.out, form or f"sessgit{name}v1"))
        return self.printed[-1].value


PRINTED: list[Printed] = []


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> list[Printed]:
    """What all commands print in one world, which is made once."""
    if not PRINTED:
        world = Printer(Shell(monkeypatch, capsys))
        try:
            with monkeypatch.context() as elsewhere:
                elsewhere.setenv("TZ", "Asia/Kathmandu")
                time.tzset()
                record(world)
                look(world)
                say(world)
                go_on(world, tmp_path)
                with_code(world, elsewhere)
                away(world, tmp_path)
                left(world)
                watched(world, elsewhere)
                purged(world)
                checked(world)
                world("uninstall", "uninstall")
        finally:
            time.tzset()
        PRINTED.extend(world.printed)
    return PRINTED


def record(world: Printer) -> None:
    """Three conversations: one with all that a turn can hold and a rewind, one with all that can lie beside it, and
    one that will not come back."""
    sessgit = world.sessgit
    world("status", "status")
    world("install", "install")
    sessgit.keep(parser_rewrite(sessgit))
    talk = helped(sessgit.talk(OTHER).turns("Zählung ☃ LONE", f"the key is {SECRET}"))
    talk.lines[:] = [
        line.replace(b"LONE", rb"\ud83d").replace(b"2026-03-01T10:00:01.000Z", b"2026-03-01T15:45:01+05:45")
        for line in talk.lines
    ]
    lay_beside(sessgit.keep(talk).parent, talk, words=SECRET)
    bad = sessgit.home / "bad.jsonl"
    bad.write_text("{}\n")
    world("import", "import", "--from", "claude", str(sessgit.config))
    world("import", "import", str(bad), code=1)
    old = sessgit.recorded(single := sessgit.talk(DAMAGED).turns("two"))
    theirs = on_another(single).turns("three")
    arrived(sessgit, theirs, theirs.prompts[-1])
    os.utime(old, (sessgit.now - 29 * 86_400,) * 2)
    sessgit.out("config", f"prices.{MODEL}", PRICE)
    sessgit.out("config", "record.exclude", '["/nowhere"]')
    world("config", "config")
    world("off", "off")
    world("on", "on")


def look(world: Printer) -> None:
    sessgit = world.sessgit
    store = Store(sessgit.store)
    with closing(Index(store.path, lambda: store)) as index:
        wanted = Wanted({"activation": {"max_depth": 2}, "budget": {"max_recursive_calls": 9}})
        session_state.change(store, index, OTHER, wanted, sessgit.now)
    by_turn = world("fork", "fork", SESSION, "--at", "2", "--name", "by hand ☃")["id"]
    by_cell = world("fork", "fork", SESSION, "--at", "2.3", "--no-restore")["id"]
    world("fork", "fork", OTHER)
    beside = StorePaths(sessgit.store)
    log.write(beside.log, sessgit.now, "something went wrong")
    with beside.log.open("a") as file:
        file.write("yesterday 0.1 it went wrong as well\n")
    last_turn.save(beside, Latest(SESSION, 4, sessgit.now, 84))
    sessgit.out("tag", "here", f"{OTHER}@1")
    sessgit.out("tag", "start", f"{OTHER}@0")
    run_git(sessgit.store, "tag", "nowhere", f"{SESSION}^{{tree}}")
    world("ls", "ls", "--all")
    world("tree", "tree")
    world("log", "log", SESSION, "--rewound")
    last = sessgit.json("ops")[0]["id"]
    world("tree", "tree", "--at-op", last)
    world("log", "log", SESSION, "--at-op", last)
    world("diff", "diff", SESSION, by_turn)
    world("diff", "diff", SESSION, by_cell)
    world("diff", "diff", SESSION, OTHER)
    for address in (SESSION, OTHER, by_cell, f"{SESSION}.r-a000", DAMAGED):
        world("session", "show", address)
    for address in (f"{SESSION}@1", f"{SESSION}@2", f"{SESSION}@4", f"{by_cell}@2", f"{OTHER}@3"):
        world("turn", "show", address)
    for address in (SESSION, by_cell):
        world("turn", "show", f"{address}@0", form="turn-0")
    for cell in ("1.1", "1.2", "2.3", "2.7", "2.8", "4.4"):
        world("cell", "show", f"{SESSION}@{cell}")
    for cell in ("2.7", "4.1"):
        world("cell", "cell", f"{SESSION}@{cell}")
    world("cells", "cells", SESSION)
    world("cells", "cells", by_cell, "-n", "2")
    world("cell-index", "cells", SESSION, "--index")
    world("deps", "deps", f"{SESSION}@4.2")
    world("deps", "deps", f"{SESSION}@1.2", "--down")
    world("why", "why", "grammar.md", SESSION)
    sessgit.recorded(lexer_talk(sessgit, LEXED))
    world("why", "why", "lexer.py", LEXED)
    world("bisect", "bisect", f"{LEXED}@2", "--cell-fails", "Read|Edit")
    for cell in ask(world, "cells", type="tool")["cells"]:
        ask(world, "cell", cell_id=cell["cell_id"])
    ask(world, "cell", cell_id=(last := ask(world, "cells")["execution_order"][-2]))
    ask(world, "dependency_chain", cell_id=last)
    ask(world, "session")
    for words in (["tokenizer OR generator OR pytest"], ["ambiguous"], ["rewrite"]):
        world("search", "search", *words)
    world("search", "search", "nothing-like-this", code=1)
    world("stats", "stats")
    for by in ("day", "project", "model", "session", "tool"):
        world("stats", "stats", "--by", by, "--since", "2026-03-01")
    status(world, beside.spool / "1-0.json")
    world("id", "id", OTHER)
    world("tags", "tag")


def status(world: Printer, event: Path) -> None:
    """`status` while an event waits; it starts a recorder, which may have discarded it afterwards."""
    said = {"hook_event_name": "Stop", "session_id": "x", "transcript_path": "/nowhere/x.jsonl", "cwd": "/nowhere"}
    event.write_text(json.dumps(said))
    os.utime(event, (world.sessgit.now - 60,) * 2)
    world("status", "status", OTHER)
    event.unlink(missing_ok=True)


def ask(world: Printer, operation: str, **args: str) -> Any:
    """What the bridge says, behind a key as all that is printed here."""
    said = world.sessgit.out("bridge", LEXED, "--op", operation, "--args", json.dumps(args)).strip()
    world.printed.append(Printed("bridge", f'{{"answer": {said}}}\n', f"the-answer-to-{operation}"))
    return world.printed[-1].value


def say(world: Printer) -> None:
    world("rename", "rename", OTHER, "Zähler")
    world("rename", "rename", OTHER, "Zähler")
    world("edit", "edit", OTHER)
    world("edit", "edit", OTHER, "--confidence", "0.5", "--label", "good", "--stage", "shaping")
    world("tag", "tag", "there", f"{OTHER}@2")
    world("tag", "tag", "-d", "there")
    world("tag", "tag", "-d", "nowhere")
    note(world)
    world("undo", "undo", "--dry-run")
    world("undo", "undo")
    put_away(world)
    world("ops", "ops")
    bring(world)


def note(world: Printer) -> None:
    """What stands on a pad: one thing of each kind that has keys of its own."""
    world("pad", "pad", OTHER)
    for words in (("claim", "it holds", "--source", "a.py"), ("pass", "critique", "seen"), ("confidence", "0.7")):
        world("pad", "pad", "--into", OTHER, *words)
    world("pad", "pad", "--into", OTHER, "thesis", "all of it")
    question = world("pad", "pad", "--into", OTHER, "question", "why?")["entries"][0]["id"]
    world("pad", "pad", "--into", OTHER, "resolve", question, "so")
    world("brief", "pad", "brief", OTHER)
    world("compact", "pad", "compact", OTHER)


def put_away(world: Printer) -> None:
    """A fork that has a tag is archived, brought back and deleted; what it left is passed over."""
    sessgit = world.sessgit
    fork = sessgit.json("fork", OTHER, "--at", "1", "--no-restore")["id"]
    further = sessgit.json("fork", fork, "--no-restore")["id"]
    sessgit.out("edit", OTHER, "--label", "keep")
    world("archive", "archive", fork)
    world("archive", "archive", fork)
    world("archive", "archive", "--older-than", "1h", "--dry-run")
    world("unarchive", "unarchive", fork)
    sessgit.out("tag", "gone", f"{fork}@0")
    world("delete", "delete", "--yes", fork, further)
    world("gc", "gc")
    world("gc", "gc", "--prune", "--yes")
    world("import", "import")


def purged(world: Printer) -> None:
    """A value that a tag is named after and the client's files and a remote hold, and a likely secret."""
    world.sessgit("config", "record.redact", "false")
    world.sessgit.recorded(world.sessgit.talk(PURGED).turns(f"it is {SECRET}, says tiger-lily-47"))
    world("likely", "purge", "--find")
    world.sessgit.out("tag", "tiger-lily-47", f"{PURGED}@1")
    world.sessgit.out("push", PURGED, "--unredacted")
    world("purge", "purge", "tiger-lily-47", "--dry-run")
    world("purge", "purge", "tiger-lily-47", "--yes")
    (one,) = world("forbidden", "purge", "--list")
    world("lifted", "purge", "--lift", one["id"])


def bring(world: Printer) -> None:
    """What merges say of two conversations that people said something of; the result is a third one."""
    world("merge", "merge", OTHER, "--into", SESSION, "--dry-run")
    world("merge", "merge", OTHER, "--into", SESSION, "--set", "description=both", "--new")
    world("pick", "pick", f"{OTHER}@1", "--into", SESSION, "--new", "--dry-run")
    world("pick", "pick", f"{OTHER}@1", "--into", SESSION, "--new")
    fork = world.sessgit.json("fork", OTHER, "--no-restore")["id"]
    world.sessgit.json("pick", f"{fork}@1", "--into", SESSION, "--new")
    world("delete", "delete", "--yes", fork)


def away(world: Printer, folder: Path) -> None:
    """All goes to a remote, which has another tag of one name then, and comes from it."""
    sessgit = world.sessgit
    world("remote", "remote", "add", "origin", str(bare(folder / "hub")))
    world("remotes", "remote")
    world("push", "push", "--all")
    sessgit.out("tag", "here", f"{OTHER}@2", "--force")
    world("push", "push", "--all", "--dry-run")
    world("pull", "pull")
    sessgit.out("config", "sync.include", '["label:good"]')
    world("sync", "sync")


def go_on(world: Printer, folder: Path) -> None:
    """What writes files, and at last what brings the client's back when it has deleted all of them."""
    sessgit = world.sessgit
    world("export", "export", "json", SESSION)
    world("export", "export", "json", SESSION, "--turns", "1-2", "--no-tools")
    world("exported", "export", "markdown", OTHER, "--output", str(folder / "page.md"))
    world("exported", "export", "claude", OTHER, "--output", str(folder / "along"), form="a-folder")
    come_and_go(world, folder)
    world("restore", "restore", SESSION)
    world("restore", "restore", OTHER, "--verify")
    world("restore", "restore", OTHER, "--output", str(folder / "out.jsonl"))
    wipe(sessgit.config)
    world("restore", "restore", OTHER, "--verify")
    world("restore", "restore", OTHER)
    tree = run_git(sessgit.store, "rev-parse", f"{DAMAGED}^{{tree}}").strip()
    message = run_git(sessgit.store, "log", "-1", "--format=%B", DAMAGED).strip().replace("SHA256: ", "SHA256: 00")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    commit = run_git(sessgit.store, *identity, "commit-tree", tree, "-p", f"{DAMAGED}^", "-m", message).strip()
    run_git(sessgit.store, "update-ref", f"refs/heads/{DAMAGED}", commit)
    world("restore", "restore", "--all-lost", form="all-that-is-lost", code=1)


def come_and_go(world: Printer, folder: Path) -> None:
    """Conversations of another system: one that left another one, and one that keeps a file and has a damaged one."""
    sessgit, there = world.sessgit, folder / "there"
    fork = sessgit.json("fork", SESSION, "--at", "1", "--no-restore")["id"]
    world("exported", "export", "io-log", SESSION, fork, "--output", str(there), form="a-folder")
    session = logged(there, "DEV-1", went("in", "build it"))
    put(session / "artifacts" / "a.md", "a")
    put(session / "metadata.json", "{")
    world("import", "import", "--from", "io-log", str(there), form="from-another-system", code=1)
    world("session", "show", agent_id("io-log", "DEV-1"))
    sessgit.out("undo")


def with_code(world: Printer, patch: pytest.MonkeyPatch) -> None:
    """A conversation in a git repository, and a fork of it in a worktree, each with a commit of its own."""
    coded = Coded(world.sessgit, patch)
    path = coded.project.parent / "side"
    talk = coded.talk(CODED).turns("one")
    coded.record(talk)
    fork = world("fork", "fork", CODED, "--worktree", str(path))
    coded.record(talk.turns("nobody is there"), live=False)
    coded.commit("Ours", {"moved.py": "a\nb\nc\n", "picture": b"\0"})
    coded.record(talk.turns("two"))
    other = talk.branch(fork["id"])
    other.file.cwd = str(path)
    coded.git("mv", "src/lexer.py", "src/renamed.py", at=path)
    coded.commit("Theirs", {}, at=path)
    coded.record(other.turns("three"), at=path)
    world("diff", "diff", CODED, fork["id"], "--code", "--patch")
    world("diff", "diff", CODED, OTHER, "--code")
    world("bisect", "bisect", CODED, "--run", "test ! -e moved.py")
    talk = coded.talk(REPLAYED).prompt("run it").tool("Bash", {"command": "cat moved.py"}, "a\nb\nd")
    coded.record(talk.answer("Done.").stop_lines())
    world("replay", "replay", REPLAYED)
    world("replay", "replay", REPLAYED, "--execute", code=6)
    sent = world("inputs", "replay", REPLAYED, "--inputs", "--to", "cat", code=6)
    world("diff", "diff", REPLAYED, sent["kept"]["session"])


def left(world: Printer) -> None:
    """What killed clients left, in a call and in the middle of being recorded; of one nobody knows whether it lives."""
    talk = world.sessgit.talk(LEFT).prompt("run it").tool("Bash", {"command": "make"})
    talk.lines.pop()
    hooked(world.sessgit, talk)
    hooked(world.sessgit, world.sessgit.talk(WATCHED).turns("one"))
    hooked(world.sessgit, world.sessgit.talk(SILENT, style="2.0").turns("one"))
    with locks.session(StorePaths(world.sessgit.store), WATCHED) as held:
        assert held
        world("recover", "recover", "--all")


def watched(world: Printer, patch: pytest.MonkeyPatch) -> None:
    """A turn, and a tag, which says nothing of turns."""
    talk = world.sessgit.talk(WATCHED).turns("one").prompt("two").tool("Bash", {"command": "make"})
    steps = iter((
        lambda: hooked(world.sessgit, talk),
        lambda: run_git(world.sessgit.store, "tag", "seen", WATCHED),
        *[lambda: None] * 4,
    ))  # fmt: skip

    def wait() -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    patch.setattr("sessgit.cli.commands.watch._waiting", lambda: wait)
    done = world.sessgit("watch", "--all", "--json")
    assert done.code == 130
    world.printed += [Printed("watch", line, "sessgitwatchv1") for line in done.out.splitlines(keepends=True)]


def checked(world: Printer) -> None:
    """A conversation to mend, then one of which an object is gone, and a stub that is."""
    sessgit = world.sessgit
    talk = helped(sessgit.talk(BROKEN).turns("one")).prompt("two").call_only("Bash").turns("three")
    lay_beside(sessgit.keep(talk).parent, talk)
    path = sessgit.recorded(talk)
    world("verify", "verify", "--deep")
    world("repair", "repair", BROKEN, "--dry-run")
    mended = world("repair", "repair", BROKEN)["id"]
    world("repair", "repair", mended)
    log.write(StorePaths(sessgit.store).log, sessgit.now, "something went wrong")
    (sessgit.store / "hook").unlink(missing_ok=True)
    world("doctor", "doctor", code=1)
    world("doctor", "doctor", "--fix")
    unpack(sessgit.store)
    oid = run_git(sessgit.store, "rev-parse", f"{BROKEN}:turns/0000/000003/transcript.jsonl").strip()
    loose(sessgit.store, oid).unlink()
    world("verify", "verify", BROKEN, code=6)
    world("repair", "repair", BROKEN, "--dry-run")
    path.unlink()
    world("repair", "repair", BROKEN)


# The tests


def test_every_document_has_a_section() -> None:
    named: set[str] = set()
    for path in (ROOT / "sessgit").rglob("*.py"):
        source = path.read_text("utf-8")
        calls, names = source.count("render.document("), re.findall(r"render\.document\(\s*\"([^\"]+)\"", source)
        assert calls == len(names), path
        named |= {*names, *re.findall(r"\{\"sessgit\.([^\"]+)\"", source)}
    sections = re.findall(r"^## `sessgit\.(.+)`$", PAGE, re.MULTILINE)
    assert (sorted(sections), len(named)) == (sorted(named), len(sections))
    linked = re.findall(r"\[`sessgit\.([^`]+)`\]", PAGE.partition("\n## ")[0])
    assert sorted(linked) == sorted(sections)


def test_every_command_is_run(printed: list[Printed]) -> None:
    modules = {
        name: importlib.import_module(f"sessgit.cli.commands.{name.replace('import', 'import_')}")
        for name in app.COMMANDS
    }
    speaking = {name for name, module in modules.items() if "as_json" in inspect.signature(module.run).parameters}
    assert speaking == set(app.COMMANDS) - WITHOUT_JSON - ALWAYS_JSON
    assert speaking | ALWAYS_JSON == {one.command for one in printed}
    forms = {"turn-0", "all-that-is-lost", "a-folder", "from-another-system"}
    named = {name for name in tables() if name.startswith("sessgit")}
    assert {one.table for one in printed} == named | forms | ANSWERS


def test_every_key_is_as_the_page_says(printed: list[Printed]) -> None:
    seen: set[str] = set()
    problems = {f"{one.command}: {what}" for one in printed for what in wrong(one.value, table(one.table), seen)}
    assert sorted(problems) == []
    known = {name for heading in tables() for name in documented(table(heading))}
    assert known - seen == NEVER_PRINTED


def test_what_holds_of_all(printed: list[Printed]) -> None:
    for one in printed:
        assert one.text.isascii(), one.command
        assert one.text.endswith("}\n"), one.command
        found = json.loads(one.text, parse_constant=pytest.fail, object_pairs_hook=_unique)
        assert len(found) == 1, one.command
        for path, value in _leaves(found):
            _check_leaf(path, value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, path)
    else:
        yield path, value


def _check_leaf(path: tuple[str, ...], value: Any) -> None:
    """A time is in UTC with milliseconds, and so not one that is still to come, as local times of this world would be.
    A cost is a number; a duration is in seconds but in the cell, which has a foreign schema."""
    name = path[-1]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]", value):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value), path
        assert datetime.fromisoformat(value).timestamp() <= NOW or path[-2:] == ("deleting", "first"), path
    if name.endswith("_usd"):
        assert value is None or (isinstance(value, int | float) and value >= 0), path
    if name in ("seconds", "delay"):
        assert value is None or 0 <= value < 3600, path
    assert not name.endswith("_ms") or path[1:2] == ("output",), path
