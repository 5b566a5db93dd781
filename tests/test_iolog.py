"""The layout of io-log: what is read of it, what is written, and that both are the same."""

from __future__ import annotations

import gzip
import json
import os
import string
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from foreigners import log, put, went
from hypothesis import given
from hypothesis import strategies as st

from sessgit.exchange import iolog
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.foreign_session import ForeignSession, SourceFile
from sessgit.model.program_input import GivenTurn, Part, Saying, ToolCall

AT = ".claude-man/sessions"


def only(folder: Path) -> ForeignSession:
    (session,) = iolog.read(folder).sessions
    return session


def test_a_whole_session(tmp_path: Path) -> None:
    folder = log(
        tmp_path, "ARCH-1", went("in", "design", 1), went("in", "and fast", 2), went("out", "a", 3),
        went("artifact", "docs/a.md", 4, action="created"), went("artifact", "b", 5, action="deleted"),
        went("out", "<session_complete>done</session_complete>", 6),
        role="ARCHITECT", status="failed", created_at="2025-11-03T10:15:00Z", completed_at="2025-11-03T10:16:00Z",
        parent_session="MANAGER-main", task="Design it\nwell", context_files=["docs/spec.md"], pid=7, exit_code=1,
    )  # fmt: skip
    put(folder / "artifacts" / "a.md", b"# a\n")
    found = only(tmp_path)
    born = 1762164901.123
    assert found.turns == (
        GivenTurn("design", time=born),
        GivenTurn(
            "and fast",
            (
                Saying("a", time=born + 2),
                ToolCall("Write", {"file_path": "docs/a.md", "action": "created"}, time=born + 3),
                ToolCall("artifact", {"file_path": "b", "action": "deleted"}, time=born + 4),
            ),
            "<session_complete>done</session_complete>", time=born + 1, ended=born + 5,
        ),
    )  # fmt: skip
    assert (found.id, found.title, found.description) == ("ARCH-1", "Design it", "Design it\nwell")
    assert (found.state, found.parent, found.branch) == ("interrupted", "MANAGER-main", None)
    assert (found.created, found.ended) == ("2025-11-03T10:15:00.000Z", "2025-11-03T10:16:00.000Z")
    assert (found.labels, found.project) == (("architect",), str(tmp_path))
    assert found.unified == {"metadata": {"role": "architect"}}
    assert [entry.text for entry in pads.read_pad(found.pad).of("file")] == ["docs/spec.md"]
    assert found.kept["io-log/artifacts/a.md"] == b"# a\n"
    assert json.loads(found.kept["io-log/metadata.json"]) == {
        "status": "failed", "created_at": "2025-11-03T10:15:00Z", "completed_at": "2025-11-03T10:16:00Z",
        "parent_session": "MANAGER-main", "pid": 7, "exit_code": 1,
    }  # fmt: skip
    again = iolog.write(found)
    assert sorted(again) == [f"{AT}/ARCH-1/{name}" for name in ("artifacts/a.md", "io.log", "metadata.json")]
    meta = json.loads(again[f"{AT}/ARCH-1/metadata.json"])
    theirs = json.loads((folder / "metadata.json").read_text())
    assert {key: meta[key] for key in theirs if key != "artifacts_produced"} == theirs
    assert meta["artifacts_produced"] == ["docs/a.md", "b"]
    assert again[f"{AT}/ARCH-1/io.log"].replace(b" ", b"") == (folder / "io.log").read_bytes().replace(b" ", b"")


@pytest.mark.parametrize(
    ("error", "state"), [(None, "active"), (PermissionError, "active"), (ProcessLookupError, "interrupted")]
)
def test_a_session_is_active_as_long_as_its_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError] | None, state: str
) -> None:
    """Also one of another user, which may not be signalled."""

    def kill(pid: int, signal: int, real: Callable[[int, int], None] = os.kill) -> None:
        if pid != 4711:  # git, of an object of an earlier test
            return real(pid, signal)
        assert signal == 0
        if error is not None:
            raise error
        return None

    log(tmp_path, "a", went("in", "one"), status="active", pid=4711)
    monkeypatch.setattr(os, "kill", kill)
    assert only(tmp_path).state == state


def test_any_of_the_folders_will_do(tmp_path: Path) -> None:
    log(tmp_path, "a", went("in", "one"))
    put(tmp_path / "src" / "main.py", "")
    folders = (tmp_path, tmp_path / ".claude-man", tmp_path / AT)
    assert [(only(folder).id, only(folder).project) for folder in folders] == [("a", str(tmp_path))] * 3
    assert [next(file.path for file in iolog.read(folder).files) for folder in folders] == [
        f"{AT}/a/io.log", "sessions/a/io.log", "a/io.log",
    ]  # fmt: skip


def test_what_is_damaged_and_the_rest(tmp_path: Path) -> None:
    torn = log(tmp_path, "torn", went("in", "one"))
    with (torn / "io.log").open("a") as file:
        file.write('{"timestamp":"2025')
    odd = log(tmp_path, "odd", went("in", "one"))
    with (odd / "io.log").open("a") as file:
        file.write('no\n{"direction":"sideways"}\n{"direction":"out","content":"yes"}\n')
    put(odd / "metadata.json", "{")
    log(tmp_path, "none")
    put(tmp_path / AT / "notes.txt", "")
    found = iolog.read(tmp_path)
    assert [(one.id, len(one.turns)) for one in found.sessions] == [("none", 0), ("odd", 1), ("torn", 1)]
    assert found.sessions[1].turns[0].answer == "yes"
    assert found.files == (
        SourceFile(f"{AT}/none/io.log", "empty", "", "none"),
        SourceFile(f"{AT}/none/metadata.json", "imported", "", "none"),
        SourceFile(f"{AT}/notes.txt", "left", "unknown kind of file"),
        SourceFile(f"{AT}/odd/io.log", "damaged", "line 2 is not JSON; 1 of its lines are not used", "odd"),
        SourceFile(f"{AT}/odd/metadata.json", "damaged", "it is not JSON", "odd"),
        SourceFile(f"{AT}/torn/io.log", "imported", "its last line is torn", "torn"),
        SourceFile(f"{AT}/torn/metadata.json", "imported", "", "torn"),
    )
    assert set(found.sessions[1].kept) == {"io-log/damaged/io.log", "io-log/damaged/metadata.json"}


def test_of_two_files_that_would_have_one_name_the_first_is_kept(tmp_path: Path) -> None:
    folder = log(tmp_path, "a", went("in", "one"))
    put(folder / "artifacts" / "x:y", "first")
    put(folder / "artifacts" / "x_y", "second")
    found = iolog.read(tmp_path)
    assert found.sessions[0].kept["io-log/artifacts/x_y"] == b"first"
    told = {file.path.rpartition("/")[2]: (file.outcome, file.why) for file in found.files}
    assert told["x:y"] == ("imported", "kept as it is")
    assert told["x_y"] == ("left", "another file has its name")


def test_a_packed_log_and_what_came_out_first(tmp_path: Path) -> None:
    folder = log(tmp_path, "a")
    (folder / "io.log").unlink()
    put(folder / "io.log.gz", gzip.compress(b'{"direction":"out","content":"hello"}\n'))
    assert only(tmp_path).turns == (GivenTurn(iolog.NO_INPUT_PROMPT, answer="hello"),)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
said = words.filter(str.strip)
times = st.none() | st.integers(1_000_000_000_000, 2_000_000_000_000).map(lambda ms: ms / 1000)
names = st.text(string.ascii_lowercase, min_size=1, max_size=8)
artifacts = st.builds(
    lambda path, action, ident, time: ToolCall(
        "Write" if action in iolog.CHANGING_ACTIONS else "artifact", {"file_path": path, "action": action}, id=ident,
        time=time
    ),
    said, st.sampled_from([*iolog.CHANGING_ACTIONS, "deleted", "moved"]), names, times,
)  # fmt: skip
parts: st.SearchStrategy[Part] = artifacts | st.builds(Saying, said, time=times)


@st.composite
def turns(draw: st.DrawFn) -> GivenTurn:
    answer = draw(said | st.just(""))
    done = tuple(draw(st.lists(parts, max_size=3)))
    if not answer:  # what came out last is the answer
        done = tuple(part for part in done if isinstance(part, ToolCall))
    ended = draw(times) if answer else None
    return GivenTurn(draw(words), done, answer, "", draw(times), ended, draw(names))


moments = times.map(lambda at: "" if at is None else canonical.rfc3339(at))
sessions = st.builds(
    ForeignSession, names, title=said.map(lambda text: canonical.one_line(text, 200)), name=names | st.just(""),
    description=said.map(str.strip) | st.just(""), project=st.just("/p"), created=moments.filter(bool), updated=moments,
    ended=moments, state=st.sampled_from(["active", "ended", "interrupted"]),
    labels=st.lists(names, max_size=3, unique=True).map(tuple), stage=st.sampled_from(["", "gathering", "shaping"]),
    confidence=st.none() | st.floats(0, 1), archived=st.booleans(), parent=names | st.just(""),
    branch=st.integers(0, 3), turns=st.lists(turns(), max_size=4).map(tuple),
    unified=st.just({}) | st.just({"activation": {"rlm_active": True}}),
    kept=st.dictionaries(names.map(lambda name: f"io-log/artifacts/{name}") | names, st.binary(max_size=9), max_size=3),
)  # fmt: skip


@given(sessions)
def test_reading_what_was_written_gives_the_same(session: ForeignSession) -> None:
    with TemporaryDirectory() as folder:
        for path, data in iolog.write(session).items():
            put(Path(folder) / path, data)
        found = iolog.read(Path(folder))
    assert found.sessions == (session,)
    assert {file.outcome for file in found.files} <= {"imported", "empty"}


@given(
    st.lists(
        st.binary(max_size=60)
        | st.builds(
            lambda direction, rest: json.dumps({"direction": direction, **rest}).encode(),
            st.sampled_from(["in", "out", "artifact", 1]),
            st.dictionaries(
                st.sampled_from(["content", "path", "timestamp", "uuid", "action"]),
                st.none() | st.integers() | words | st.lists(words, max_size=1),
                max_size=4,
            ),
        ),
        max_size=6,
    ),
    st.dictionaries(
        st.sampled_from(["session_id", "role", "status", "created_at", "task", "context_files", "sessgit"]),
        st.none()
        | st.integers()
        | words
        | st.lists(words, max_size=2)
        | st.dictionaries(st.sampled_from(["pad", "unified", "labels", "branch"]), words),
        max_size=5,
    ),
)
def test_no_folder_breaks_it(lines: list[bytes], meta: dict[str, object]) -> None:
    with TemporaryDirectory() as folder:
        put(Path(folder) / AT / "a" / "io.log", b"\n".join(lines))
        put(Path(folder) / AT / "a" / "metadata.json", meta)
        found = iolog.read(Path(folder))
    assert len(found.files) == 2
    assert len(found.sessions) == 1
