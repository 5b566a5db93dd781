"""What a program cannot write: told at once, with nothing changed; and what it can, however odd it is."""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from programs import Place, raises

from sessgit import Metadata, Outcome, Reason, Saying, SessgitError, Step, Store, Task, ToolCall
from sessgit.errors import ConflictError, NewerStoreError, NotFoundError, UsageError

CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)
NO_JSON = [{1, 2}, math.nan, math.inf, CIRCULAR, object(), b"bytes", {"deep": [{3}]}, {(1, 2): 3}]
TYPES = "A type is one of repl, tool, llm_call, map_reduce, verification."


@pytest.mark.parametrize("value", NO_JSON, ids=lambda value: type(value).__name__)
def test_what_is_no_json_is_refused(place: Place, value: Any) -> None:
    session = place.begin()
    with session.turn("try") as turn:
        cell = session.begin_cell(type="repl", operation="x")
        before = place.transcript(session).read_bytes()
        for act in (
            lambda: session.complete_cell(cell, value),
            lambda: session.begin_cell(type="repl", operation="x", args={"value": value}),
            lambda: turn.add(ToolCall("Bash", {"value": value})),
            lambda: turn.add(Step(Task("repl", "x"), Outcome(value))),
            lambda: session.record_turn("x", tool_calls=[ToolCall("Bash", {"value": value})]),
            lambda: session.update_state(remember={"value": value}),
        ):
            with pytest.raises(UsageError, match="cannot be written as JSON"):
                act()
        with pytest.raises(UsageError), session.cell("broken") as opened:
            opened.result = value
        assert place.transcript(session).read_bytes().startswith(before)
        session.complete_cell(cell, "still open")
    assert [one.operation for one in session.cells()] == ["x", "broken"]
    assert session.cells()[1].state == "failed"


def test_one_text_where_there_are_several(place: Place) -> None:
    """Each of its letters would be one."""
    with pytest.raises(UsageError, match="labels are several, and “abc” is one text") as refused:
        place.begin(labels="abc")
    assert refused.value.hint == "labels=['abc']. Nothing was changed."
    assert place.store.sessions() == []
    session = place.begin()
    for act in (
        lambda: session.edit(add_labels="abc"),
        lambda: session.edit(remove_labels="abc"),
        lambda: session.update_state(forget="abc"),
        lambda: session.record_reasoning("so", kind="decision", options="abc"),
        lambda: session.record_reasoning("so", evidence="abc"),
        lambda: session.begin_cell(type="repl", operation="x", dependencies="cell_k3v9x0qa"),
    ):
        with pytest.raises(UsageError, match="is one text"):
            act()
    session.edit(add_labels={"abc"})
    assert place.store.sessions()[0].labels == ("abc",)


LINE = "is not one line of at most 200 characters"
ID = "is not a cell id: cell_ and eight of a-z0-9"
TIME = "is not a time in seconds since 1970"
BAD: list[tuple[Callable[[Any], object], str]] = [
    (lambda s: s.begin_cell(type="message", operation="x"),
     "type: “message” is not a type of cells: repl, tool, llm_call, map_reduce, verification"),
    (lambda s: s.begin_cell(type="repl", operation=""), "operation: “” is not an operation, such as 'peek'"),
    (lambda s: s.begin_cell(type="repl", operation="a\nb"), f"operation: 'a\\nb' {LINE}"),
    (lambda s: s.begin_cell(type="repl", operation="x" * 201), f"operation: “{'x' * 58}… {LINE}"),
    (lambda s: s.begin_cell(type="repl", operation="x", source="\x1b[31m"), f"source: '\\x1b[31m' {LINE}"),
    (lambda s: s.begin_cell(type="repl", operation="x", source=3), f"source: 3 {LINE}"),
    (lambda s: s.begin_cell(type="repl", operation="x", id="mine"), f"id: “mine” {ID}"),
    (lambda s: s.begin_cell(type="repl", operation="x", dependencies=["cell_X"]), f"dependencies: “cell_X” {ID}"),
    (lambda s: s.begin_cell(type="repl", operation="x", args=[1]), "args: [1] is not an object"),
    (lambda s: s.begin_cell(type="repl", operation="x", args={1: 2}), "args: 1 is not a text"),
    (lambda s: s.begin_cell(type="repl", operation="x", args={"a": math.nan}),
     "args: cannot be written as JSON: Out of range float values are not JSON compliant"),
    (lambda s: s.record_turn("  "), "the prompt of a turn is empty"),
    (lambda s: s.record_turn(3), "the prompt of a turn is empty"),
    (lambda s: s.record_turn("<command-name>x"),
     "“<command-name>x” cannot start a turn: the client's own notes start like that"),
    (lambda s: s.record_turn("x", 3), "answer: 3 is not a text"),
    (lambda s: s.record_turn("x", model="a\nb"), f"model: 'a\\nb' {LINE}"),
    (lambda s: s.record_turn("x", tokens={"all": 3}),
     "tokens: “all” is not a kind of tokens: input, output, cache_read, cache_write"),
    (lambda s: s.record_turn("x", tokens={"input": -1}), "tokens: -1 is not a count"),
    (lambda s: s.record_turn("x", tokens={"input": True}), "tokens: True is not a count"),
    (lambda s: s.record_turn("x", tokens={"input": 1.5}), "tokens: 1.5 is not a count"),
    (lambda s: s.record_turn("x", tool_calls=[ToolCall("no name")]),
     "parts: name: “no name” is not at most 128 letters, digits, _ and -"),
    (lambda s: s.record_turn("x", tool_calls=[ToolCall("")]), "parts: name: “” is not the name of a tool"),
    (lambda s: s.record_turn("x", tool_calls=[ToolCall("Bash", [1])]), "parts: input: [1] is not an object"),
    (lambda s: s.record_turn("x", tool_calls=[ToolCall("Bash", {}, b"x")]), "parts: output: b'x' is not a text"),
    (lambda s: s.record_turn("x", tool_calls=[ToolCall("Bash", id="a b")]),
     "parts: id: “a b” is not at most 128 letters, digits, _ and -"),
    (lambda s: s.record_turn("x", tool_calls=[ToolCall("Bash", id=3)]),
     "parts: id: 3 is not at most 128 letters, digits, _ and -"),
    (lambda s: s.record_turn("x", tool_calls=[ToolCall("Bash", time=math.nan)]), f"parts: time: nan {TIME}"),
    (lambda s: s.record_turn("x", tool_calls=["ls"]), "parts: “ls” is not Step or ToolCall or Reason or Saying"),
    (lambda s: s.record_reasoning(" "), "text: “ ” is not a text that says something"),
    (lambda s: s.record_reasoning("x", kind="guess"), "kind: “guess” is none of trace, decision"),
    (lambda s: s.record_reasoning("x", confidence=1.5), "confidence: 1.5 is not a number from 0 to 1"),
    (lambda s: s.record_reasoning("x", confidence=math.nan), "confidence: nan is not a number from 0 to 1"),
    (lambda s: s.record_reasoning("x", options=[3]), "options: 3 is not a text"),
    (lambda s: s.write_todos([{"content": " "}]), "a todo has a content and a status"),
    (lambda s: s.write_todos([{"content": "x", "status": "later"}]), "a todo has a content and a status"),
    (lambda s: s.write_todos(["x"]), "a todo has a content and a status"),
    (lambda s: s.create_plan("\n"), "a plan needs words"),
    (lambda s: s.edit(name="a\ud800b"), "“a\ufffdb” cannot be a name"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_cannot_be_written(place: Place, act: Callable[[Any], object], message: str) -> None:
    session = place.begin()
    before = place.git("rev-parse", session.id)
    raises(UsageError, message, lambda: act(session))
    assert not place.transcript(session).exists()
    assert place.git("rev-parse", session.id) == before
    assert not list((place.config).glob("todos/*")) + list((place.config).glob("plans/*"))
    assert session.record_turn("goes on") == 1


@pytest.mark.parametrize(
    "outcome",
    [Outcome(error=ValueError("x")), Outcome(execution_time_ms=-1), Outcome(execution_time_ms=math.nan),  # type: ignore[arg-type]
     Outcome(execution_time_ms=True), Outcome(model="\n"), Outcome(tokens={"x": 1})],
)  # fmt: skip
def test_outcomes_that_cannot_be(place: Place, outcome: Outcome) -> None:
    session = place.begin()
    first, second = session.begin_cells([Task("repl", "a"), Task("repl", "b")])
    with pytest.raises(UsageError):
        session.complete_cells({first: Outcome(1), second: outcome})
    assert len(session.pending()) == 2
    session.complete_cells({first: Outcome(1), second: Outcome(2)})


def test_errors_of_ends(place: Place) -> None:
    session = place.begin()
    nothing = f"cell_aaaaaaaa is not a cell of the last turn of {session.id[:8]}"
    raises(NotFoundError, nothing, lambda: session.complete_cell("cell_aaaaaaaa", 1))
    cell = session.begin_cell(type="repl", operation="x")
    raises(NotFoundError, nothing, lambda: session.complete_cells({cell: Outcome(1), "cell_aaaaaaaa": Outcome(1)}))
    assert [one.id for one in session.pending()] == [cell.id]
    session.complete_cell(cell, 1)
    raises(ConflictError, f"{cell} already has a result", lambda: session.complete_cell(cell, 2))
    raises(
        NotFoundError, f"{session.id[:8]} has no cell cell_aaaaaaaa", lambda: session.dependency_chain("cell_aaaaaaaa")
    )
    with pytest.raises(NotFoundError):
        session.cell_document("cell_aaaaaaaa")
    turn = session.turn("t")
    opened = turn.__enter__()
    opened.end()
    raises(UsageError, "no turn is open", lambda: opened.say("late"))


def test_odd_words(place: Place) -> None:
    """Half characters, control characters, everything that a line could end with: all of it comes back."""
    odd = "a\ud800b \u2028 \x1b[31m \0 \r\n \ufeff ü 😀"
    session = place.begin()
    session.record_turn(odd, odd, [ToolCall("Bash", {"command": odd, odd: [odd]}, odd)])
    with session.turn(odd):
        cell = session.begin_cell(type="repl", operation="ü 😀", source="🐍", args={odd: odd})
        session.complete_cell(cell, {odd: odd})
        with pytest.raises(ValueError, match="a"), session.cell("fails"):
            raise ValueError(odd)
        session.record_reasoning(odd, evidence=[odd], options=[odd], chosen=odd, kind="decision")
    assert [turn.prompt for turn in session] == [odd, odd]
    assert session.turns()[0].answer == odd
    document = session.cell_document(cell)
    assert document["input"]["args"] == {odd: odd}
    assert document["output"]["result"] == {odd: odd}
    assert session.reasoning() == [(2, Reason("decision", odd, (odd,), (odd,), odd))]
    assert session.cells()[-2].operation == "ü 😀"


def test_large_things(place: Place) -> None:
    session = place.begin()
    large = "line of words\n" * 400_000
    with session.turn("large"):
        cell = session.begin_cell(type="repl", operation="read", args={"text": large[:10_000]})
        session.complete_cell(cell, {"text": large})
    assert session.cell_document(cell)["input"]["args"]["text"] == large[:10_000]
    assert str(session.cell_document(cell)["output"]["result"])[:9] == "{'text': "
    needs = session.begin_cells([Task("repl", f"n{number}", id=f"cell_{number:08d}") for number in range(10_000)])
    session.complete_cells({one: Outcome(None) for one in needs})
    last = session.begin_cell(type="map_reduce", operation="all", dependencies=needs)
    session.complete_cell(last, 1)
    assert session.dependency_chain(last) == [one.id for one in needs]
    too_many = [f"cell_{number:08d}" for number in range(10_001)]
    some = "'cell_00000000', 'cell_00000001', 'cell_00000002', 'cell_0…"
    message = f"dependencies: ({some} is not a list of at most 10,000 cells"
    raises(UsageError, message, lambda: session.begin_cell(type="repl", operation="x", dependencies=too_many))
    assert len(session.cells()) == 10_002


def test_metadata_and_times(place: Place) -> None:
    session = place.begin()
    task = Task("llm_call", "ask", {"q": 1}, "rlm", (), "", 1_700_000_000.0, Metadata(2, "small-1", 99))
    (cell,) = session.begin_cells([task])
    session.complete_cell(cell, "a", execution_time_ms=12)
    document = session.cell_document(cell)
    assert document["metadata"] == {"depth": 2, "model": "small-1", "tokens_used": 99}
    assert document["created_at"] == 1_700_000_000.0
    with session.turn("words") as turn:
        turn.add(Saying("a", "m"), Saying("b", time=1.0))


def test_an_id_stands_for_one_call(place: Place) -> None:
    """Of two with one id the client would send neither."""
    session = place.begin()
    cell = session.begin_cell(type="repl", operation="peek")
    session.complete_cell(cell, 1)
    one, two = ToolCall("Bash", {"command": "ls"}, "a", id="toolu_1"), ToolCall("Bash", id="toolu_2")
    session.record_turn("one", "done", [one])
    path = place.transcript(session)
    before = path.read_bytes()
    named_as_a_cell = ToolCall("Bash", id=f"toolu_{cell.id}")
    for calls in ([two, two], [two, replace(two, name="Read")], [one], [two, one], [named_as_a_cell]):
        with pytest.raises(UsageError, match=r"the call toolu_\w+ already exists") as refused:
            session.record_turn("two", "", calls)
        assert refused.value.hint == "Each call needs its own id. Nothing was recorded."
        assert path.read_bytes() == before
    with session.turn("two") as turn:
        turn.add(two)
        for call in (one, two, named_as_a_cell):
            with pytest.raises(UsageError, match="already exists"):
                turn.add(call)
    other = place.again().load_session(session.id)
    with pytest.raises(UsageError, match="the call toolu_2 already exists"):
        other.record_turn("three", "", [two])
    assert other.record_turn("three", "", [ToolCall("Bash", id="toolu_3"), ToolCall("Bash"), ToolCall("Bash")]) == 4
    assert [len(turn.cells) for turn in other] == [1, 1, 1, 3]


# The world


def test_a_full_disk(place: Place) -> None:
    """Nothing is half written, and it goes on when there is room."""
    session = place.begin()
    session.record_turn("one")
    path = place.transcript(session)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for room in (0, 1, 300):
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
            with pytest.raises(SessgitError) as refused:
                session.record_turn("two" * 2000)
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert refused.value.hint
            assert path.read_bytes() == before
        with pytest.raises(SessgitError), session.turn("two") as turn:
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, limits[1]))
            turn.answer("no room for it")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert session.record_turn("three") == 3
    assert [turn.prompt for turn in session] == ["one", "two", "three"]


def test_a_store_of_a_later_format(place: Place) -> None:
    session = place.begin()
    session.record_turn("one")
    blob = subprocess.run(
        ["git", "-C", str(place.store.path), "hash-object", "-w", "--stdin"], input="2\n", text=True,
        capture_output=True, check=True,
    ).stdout.strip()  # fmt: skip
    tree = place.git("ls-tree", session.id).splitlines()
    listing = "\n".join(f"100644 blob {blob}\tformat" if line.endswith("\tformat") else line for line in tree)
    made = subprocess.run(
        ["git", "-C", str(place.store.path), "mktree"], input=listing, text=True, capture_output=True, check=True
    ).stdout.strip()
    message = place.git("log", "-1", "--format=%B", session.id)
    env = {**os.environ, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a"}  # fmt: skip
    commit = subprocess.run(
        ["git", "-C", str(place.store.path), "commit-tree", made, "-p", session.id, "-m", message], text=True,
        capture_output=True, check=True, env=env,
    ).stdout.strip()  # fmt: skip
    place.git("update-ref", f"refs/heads/{session.id}", commit)
    again = place.again()
    for act in (lambda: again.load_session(session.id).turns(), lambda: session.record_turn("two")):
        with pytest.raises(NewerStoreError) as refused:
            act()
        assert refused.value.hint
    assert place.git("rev-parse", session.id).strip() == commit


def test_folders_that_are_no_store(seal: Path) -> None:
    (seal / "repo").mkdir()
    subprocess.run(["git", "init", "-q", str(seal / "repo")], check=True)
    with pytest.raises(ConflictError, match="is a git repository, but not a store"):
        Store.open(seal / "repo")
    (seal / "file").write_text("x")
    with pytest.raises(SessgitError):
        Store.open(seal / "file")


def test_a_transcript_that_cannot_be_one(place: Place, tmp_path: Path) -> None:
    session = place.begin()
    session.record_turn("one")
    path = place.transcript(session)
    kept = path.read_bytes()
    path.unlink()
    (tmp_path / "elsewhere").write_bytes(kept)
    path.symlink_to(tmp_path / "elsewhere")
    for act in (lambda: session.record_turn("two"), lambda: session.begin_cell(type="repl", operation="x")):
        with pytest.raises(SessgitError) as refused:
            act()
        assert str(path) in str(refused.value)
    assert (tmp_path / "elsewhere").read_bytes() == kept
    path.unlink()
    path.mkdir()
    with pytest.raises(SessgitError):
        session.record_turn("two")
    path.rmdir()
    assert session.record_turn("two") == 2


def test_words_that_a_pad_and_a_merge_do_not_know(place: Place) -> None:
    session = place.begin()
    session.record_turn("one", "1")
    other = session.fork(name="other")
    other.record_turn("two", "2")
    kinds = "insight, evidence, risk, counter, pattern, question, claim, tension, file"
    words: Any = "idea"
    raises(UsageError, "“idea” is not a kind of entry", lambda: session.pad.add(words, "x"),
           f"Use one of {kinds}. Nothing was changed.")  # fmt: skip
    raises(UsageError, "“idea” is not a pass", lambda: session.pad.passed(words, "x"),
           "Use one of expansion, compression, critique, synthesis. Nothing was changed.")  # fmt: skip
    raises(UsageError, "“idea” is not a mode of a merge", lambda: place.store.merge(other, session, mode=words),
           "Use one of summary, graft, pick. Nothing was changed.")  # fmt: skip
    raises(UsageError, "“idea” is not a side of a merge", lambda: place.store.merge(other, session, favour=words),
           "Use one of ours, theirs. Nothing was changed.")  # fmt: skip
    said = 'Use mode="pick", turns=(4, 6). Nothing was changed.'
    raises(UsageError, "a pick needs turns", lambda: place.store.merge(other, session, mode="pick"), said)
    raises(UsageError, "a graft takes no turns", lambda: place.store.merge(other, session, mode="graft", turns=[2]),
           said)  # fmt: skip
    assert (session.pad.entries(), len(session.turns())) == ([], 1)
