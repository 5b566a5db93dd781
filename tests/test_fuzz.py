"""Whatever comes in, nothing crashes, nothing leaves the store, and nothing but text reaches the terminal.

`make fuzz` gives all of it together 100,000 inputs; here each test gets a few.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fuzzing import EVIL, batch, broken, changed, dumped, lines_of, runs, spoils, talk, took
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import home, lines
from sessgit.agents.claude.lines import make
from sessgit.agents.line import no_redaction
from sessgit.cli import frame, text
from sessgit.cli.commands import watch
from sessgit.errors import SessgitError
from sessgit.model import canonical, humanize, ids, json_strings, search_query, stored_fields
from sessgit.model import pad as pads
from sessgit.model.conversation import message, session
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import Cell
from sessgit.record import privacy
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.recorder import drain
from sessgit.store import operations, recorder_state, secret_filter, settings
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store
from sessgit.store.stub import write_stub

BUG = 70
EVENT = {
    "hook_event_name": "Stop", "session_id": SESSION, "transcript_path": "/home/ada/t.jsonl", "cwd": "/home/ada",
    "last_assistant_message": "done", "source": "startup", "reason": "exit",
    "agent_transcript_path": "/home/ada/a.jsonl",
}  # fmt: skip


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    """A client's folder with a store in it."""
    (tmp_path / "claude").mkdir()
    stores.create_store(tmp_path / "claude" / "session-store")
    return tmp_path / "claude"


# What a hook is given

THERE = b"/home/ada/t.jsonl"
"""Stands for a transcript that is there."""
PAYLOAD = st.one_of(changed([EVENT]).map(dumped), broken(dumped(EVENT)), st.binary(max_size=200))
SHELLS = [words for words in (["dash"], ["bash"], ["busybox", "sh"]) if shutil.which(words[0])] or [["sh"]]


@runs(25, 3, each=20)
@given(payloads=batch(PAYLOAD, 20))
def test_the_recorder_takes_any_payload_in_silence(
    quiet: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, payloads: list[bytes]
) -> None:
    monkeypatch.setattr(drain, "ANSWER_SECONDS", 0)  # else it waits a second for each answer that never comes
    there = bytes(Talk().turns("one").answer("done").save(quiet / "projects" / "-p"))
    store = quiet / "session-store"
    for number, payload in enumerate(payloads):
        (store / "spool" / f"{number}-0.json").write_bytes(payload.replace(THERE, there))
    drain.drain_spool(store, claude_homes(quiet), {"HOME": str(quiet), "PATH": os.environ["PATH"]})
    said_nothing(store)
    assert capsys.readouterr() == ("", "")
    took(len(payloads))


def said_nothing(store: Path) -> None:
    """No event is left, and the log holds neither bugs nor what steers a terminal."""
    assert list((store / "spool").glob("*.json")) == []
    log = store / "log"
    said = log.read_text() if log.exists() else ""
    assert "a bug" not in said
    assert not spoils(said)
    log.unlink(missing_ok=True)


@runs(5, 1, each=50)
@given(payloads=batch(PAYLOAD, 50), shell=st.sampled_from(SHELLS))
def test_stub_and_recorder_as_processes_take_any_payload_in_silence(
    quiet: Path, payloads: list[bytes], shell: list[str]
) -> None:
    store = quiet / "session-store"
    there = bytes(Talk().turns("one").answer("done").save(quiet / "projects" / "-p"))
    stub = write_stub(store, "/bin/true")  # one event in sixteen would start a recorder, and one is enough
    env = {"PATH": os.environ["PATH"], "HOME": str(quiet), "CLAUDE_CONFIG_DIR": str(quiet)}
    clear(store / "spool")
    waiting = store / "spool" / "waiting"
    waiting.write_text(f"{os.getpid()}\n")
    given = [payload.replace(THERE, there) for payload in payloads]
    for payload in given:
        silent([*shell, str(stub)], env, payload)
    waiting.unlink()
    events = list((store / "spool").glob("*.json"))
    assert sorted(event.read_bytes() for event in events) == sorted(filter(None, given))
    StorePaths(store).cursor(SESSION).unlink(missing_ok=True)  # else it waits a second for an answer that was recorded
    silent([sys.executable, "-P", "-m", "sessgit.recorder", str(store)], env, b"")
    said_nothing(store)
    took(len(payloads))


def silent(command: list[str], env: dict[str, str], payload: bytes) -> None:
    done = subprocess.run(command, check=False, input=payload, env=env, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), payload


# Transcripts


LINES = lines_of(talk())


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """The bytes of a conversation of which some lines were changed."""
    out = [json.dumps(line).encode() for line in LINES]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(out) - 1))
        out[place] = draw(st.one_of(changed(LINES[place : place + 1]).map(dumped), broken(out[place])))
    return b"\n".join(out) + draw(st.sampled_from([b"\n", b""]))


READING = tuple(line.split() for line in (
    f"log {SESSION}", f"show {SESSION}", f"show {SESSION}@3 --full --thinking", f"cells {SESSION}", f"deps {SESSION}@3",
    f"log -p {SESSION}", f"diff {SESSION}@1 {SESSION}", f"export markdown {SESSION}", f"export html {SESSION}",
    f"export json {SESSION}", "tree --all", "ls --all", "search one", "stats --by tool", f"restore {SESSION} --verify",
    f"log --oneline {SESSION}", "why a.py", f"verify {SESSION}", f"resume --print {SESSION}",
    f"cell {SESSION}@3.2",
    f"pad {SESSION}", f"replay {SESSION}", f"resume --brief {SESSION}",
))  # fmt: skip


@runs(1, 4)
@given(data=files(), commands=st.lists(st.sampled_from(READING), min_size=4, max_size=4))
def test_any_transcript_can_be_recorded_and_looked_at(sessgit: Shell, data: bytes, commands: list[list[str]]) -> None:
    shutil.rmtree(sessgit.config, ignore_errors=True)
    folder = home.project_folder(sessgit.config, str(sessgit.project))
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(data)
    for command in (["import"], *commands):
        check(sessgit, *command)
    clear(sessgit.project)
    took()


def check(sessgit: Shell, *words: str) -> str:
    """Runs a command that may fail as long as it is no bug, and says only what a terminal may see."""
    done = sessgit(*words)
    assert done.code not in (BUG, None), (words, done)
    assert not spoils(done.out + done.err), (words, done)
    return done.out


def clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@runs(17, 6, each=10)
@given(every=batch(changed([{"cell": {"id": "cell_a", "type": "repl", "source": "x", "dependencies": ["b"],
                               "operation": "peek",
                               "metadata": {"depth": 0, "model": None, "tokens_used": 3}}},
                     {"outcome": {"json": True, "error": "x", "execution_time_ms": 1.5}},
                     {"reason": {"kind": "trace", "text": "x", "confidence": 0.5, "inputs": ["x"]}}]), 10))  # fmt: skip
def test_marks_that_are_none(every: list[Any]) -> None:
    for said in every:
        marks_of(said)
    took(len(every))


def marks_of(said: Any) -> None:
    use = {"type": "tool_use", "id": "t", "name": "peek", "input": {"n": 3}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": '{"a": 1}'}
    for kind, block in (("assistant", use), ("user", result), ("assistant", {"type": "text", "text": "x"})):
        raw = json.dumps(
            {"type": kind, "uuid": "u", "message": {"id": "m", "content": [block]}, "sessgit": said}
        ).encode()
        line = make(raw, Extent(0, len(raw), 1), no_redaction)
        lines.mark_of(line)
        lines.noted_outcome(line)
        lines.is_stand_in(line)


# Documents of a store


STATE: dict[str, Any] = {}


@pytest.fixture
def one(sessgit: Shell) -> Shell:
    """A store with two sessions that go on."""
    sessgit.recorded(talk(str(sessgit.project)), sessgit.talk(OTHER).turns("else"))
    sessgit.out("tag", "v1", f"{SESSION}@1")
    sessgit.out("fork", SESSION, "--at", "1", "--name", "forked")
    return sessgit


@runs(0.75, 3)
@given(data=st.data())
def test_any_state_can_be_looked_at(
    one: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    as_before(one, tmp_path / "before")
    store = Store(one.store)
    tip = store.repo.ref(f"refs/heads/{SESSION}") or ""
    document = json.loads(store.repo.blob((store.repo.entry(store.tree(tip), "session.json") or ("", False))[0]))
    wanted = data.draw(changed([document]))
    blob = store.repo.write_blob(dumped(wanted))
    tree = store.repo.edit_tree(store.tree(tip), {"session.json": (blob, False)})
    commit = store.repo.write_commit(tree, [tip], f"edit: x\n\nSession: {SESSION}\n", 1)
    seen = itertools.count()

    def moved() -> None:
        if next(seen):
            raise KeyboardInterrupt
        store.repo.move(f"refs/heads/{SESSION}", tip, commit)

    monkeypatch.setattr(watch, "_waiting", lambda: moved)
    assert one("watch", "--all").code == 130
    commands = data.draw(st.lists(st.sampled_from(READING), min_size=3, max_size=3))
    for command in (["ls", "--all"], *commands, ["fork", SESSION], ["status"]):
        check(one, *command)
    took()


def as_before(shell: Shell, kept: Path) -> None:
    """Makes the client's folder, with the store, what it was at the first call, and empties the project."""
    if kept.exists():
        while shell.config.exists():
            with suppress(FileNotFoundError):  # a connection that nobody holds any more takes its files away by itself
                shutil.rmtree(shell.config)
        shutil.copytree(kept, shell.config, symlinks=True)
    else:
        shutil.copytree(shell.config, kept, symlinks=True)
    clear(shell.project)


def tried(read: Callable[[], Any]) -> Any:
    """What it reads, or None where that can be read by nobody, as it says."""
    try:
        return read()
    except SessgitError as error:
        assert str(error)
        return None


MESSAGE = """turn 3: do it

Session: 5e551011-0000-4000-8000-000000000001
Turn: 3
Prompt: p1
Event: turn
Extent: 0+120/3
Tools: Bash=2 Read=1
Tokens-In: 3
Lines-SHA256: abcd
"""
CELL = {"depends": ["cell_a"], "id": "cell_unp3ufoj", "lines": [2, 3], "ok": True, "operation": "m", "type": "tool"}
ENTRY = {
    "id": "e1",
    "text": "x",
    "time": "2026-03-01T10:00:00.000Z",
    "turn": 3,
    "source": "s",
    "cycle": 1,
    "session": "s",
}


WORD = st.sampled_from(EVIL) | st.text(max_size=30)
PADS = ("insights", "claims", "cycles", "passes")
WORD_READERS: tuple[Callable[[str], Any], ...] = (
    ids.parse_address, ids.check_name, ids.check_tag, search_query.parse_query,
    lambda word: frame.parse_time(word, 1e9),
    lambda word: privacy.matches_glob(word, "/home/ada/x.py"), humanize.quote_for_shell,
)  # fmt: skip


@runs(10, 4, each=20)
@given(given=batch(WORD, 20))
def test_words_that_come_from_elsewhere(given: list[str]) -> None:
    for word in given:
        for read in WORD_READERS:
            tried(lambda read=read, word=word: read(word))  # type: ignore[misc]
        for made in (
            text.clean(word),
            canonical.printable(word),
            canonical.one_line(word, 80),
            humanize.quote_for_shell(word),
        ):
            assert not spoils(made), word
        assert text.width(text.fit(text.clean(word), 20)) == 20
    took(len(given))


@runs(20, 20, each=5)
@given(data=st.data())
def test_values_that_come_from_elsewhere(data: st.DataObject) -> None:
    tried(lambda: session.loads(data.draw(changed([STATE or session_document()]))))
    tried(lambda: message.parse_message(data.draw(broken(MESSAGE.encode())).decode("utf-8", "replace")))
    found = pads.parse_entry(data.draw(st.sampled_from(PADS) | WORD), dumped(data.draw(changed([ENTRY]))))
    assert found is None or not spoils(found.id)
    lines = [data.draw(broken(b'{"x":{"$text":"aaaaaaaa-x-y"}}'))]
    json_strings.fill_long_strings(lines, {"aaaaaaaa-x-y": b"long"})
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        stored_fields.load(Cell, data.draw(changed([CELL])))
    took(5)


def session_document() -> dict[str, Any]:
    STATE.update(json.loads(session.dumps(session.loads({"id": SESSION, "metadata": {"title": "x"}, "turns": 3}))))
    return STATE


NOTES: dict[str, tuple[Any, Callable[[StorePaths], Any]]] = {
    "state/x.json": ({"version": 1, "path": "/x", "inode": 1, "offset": 3, "proof": "x", "commit": "c", "current": "",
                      "uuids": ["u"], "pending": [[0, 3, 1]], "stuck": 0, "final": False,
                      "agents": {"a": ["u", 0, 3]}, "facts": {}, "file": 1},
                     lambda at: recorder_state.load_cursor(at, "x")),
    "state/x.append": ({"path": "/x", "offset": 3, "data": "eA==", "head": "h", "command": "merge",
                        "brought": {"u": ["graft", "a@1"]}, "files": {"/y": "z"}},
                       lambda at: recorder_state.load_intent(at, "x")),
    "latest.json": ({"version": 1, "session": "x", "turn": 1, "time": 1.5, "delay": None}, recorder_state.load_latest),
    "operations.jsonl": ({"time": "t", "command": "c", "summary": "s", "refs": {"refs/heads/x": [None, "a" * 40]},
                          "files": {"/x": "y"}, "undoes": "", "id": "12345678", "completes": "",
                          "appended": {"/x": [0, 3, "h"]}, "cut": {}}, operations.read),
    "state/forbidden": ({"version": 1, "values": [{"id": "x", "time": "t", "forms": [
                         {"length": 9, "tail": "abc", "hash": "00ff", "base64": False}]}]},
                        secret_filter.denied_values),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTES)
@runs(3.35, 3, each=10)
@given(data=st.data())
def test_notes_beside_the_repository(quiet: Path, name: str, data: st.DataObject) -> None:
    paths = StorePaths(quiet / "session-store")
    document, read = NOTES[name]
    path = paths.store / name
    for content in data.draw(batch(st.one_of(changed([document]).map(dumped), broken(dumped(document))), 10)):
        path.write_bytes(content)
        tried(lambda: read(paths))
        took()
    path.unlink()


CONFIG = b"""[record]
exclude = ["~/private"]
redact = true
granularity = "turn"
[archive]
after = "90d"
[prices."claude-x"]
input = 3.0
[project.map]
"/home/ada" = "/Users/ada"
"""


@runs(8, 3, each=10)
@given(every=batch(st.one_of(broken(CONFIG), st.binary(max_size=60)), 10))
def test_settings(quiet: Path, every: list[bytes]) -> None:
    paths = StorePaths(quiet / "session-store")
    for data in every:
        paths.config.write_bytes(data)
        tried(lambda: settings.load_settings(paths))
        tried(lambda: settings.load_or_default(paths))
    took(len(every))


@pytest.fixture
def recorded(quiet: Path) -> tuple[Path, bytes]:
    """A recorded transcript, and its cursor."""
    path = Talk().turns("one", "two").save(quiet / "projects" / "-p")
    taken(quiet, path)
    return path, StorePaths(quiet / "session-store").cursor(SESSION).read_bytes()


def taken(folder: Path, path: Path) -> str:
    """Records the transcript; the session's tip."""
    store = Store(folder / "session-store")
    index = Index(store.path, lambda: store)
    tried(
        lambda: record(
            Context(index, privacy=Privacy(RecordConfig("turn", False))), TranscriptSource(path, path.stem, folder)
        )
    )
    index.close()
    return store.repo.ref(f"refs/heads/{SESSION}") or ""


@runs(1.5, 8)
@given(data=st.data())
def test_a_cursor_that_lies_changes_nothing(quiet: Path, recorded: tuple[Path, bytes], data: st.DataObject) -> None:
    path, cursor_bytes = recorded
    honest = json.loads(cursor_bytes)
    place = StorePaths(quiet / "session-store").cursor(SESSION)
    place.write_bytes(cursor_bytes)
    tip = taken(quiet, path)
    untold = {key: value for key, value in honest.items() if key not in ("path", "inode", "proof", "commit")}
    said = data.draw(changed([untold]))
    place.write_bytes(dumped({**honest, **said} if isinstance(said, dict) else said))
    assert taken(quiet, path) == tip
    took()


def test_a_cursor_that_asks_for_a_terabyte_is_given_the_file(quiet: Path, recorded: tuple[Path, bytes]) -> None:
    path, honest = recorded
    place = StorePaths(quiet / "session-store").cursor(SESSION)
    tip = taken(quiet, path)
    place.write_bytes(dumped(json.loads(honest) | {"pending": [[3400, 1 << 40, 5]]}))
    assert taken(quiet, path) == tip
