"""Sessions of apex: read from its folder, and written so that it reads them again."""

from __future__ import annotations

import gzip
import json
import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreigners import laid
from hypothesis import given
from hypothesis import strategies as st

from sessgit.exchange import apex
from sessgit.model import canonical
from sessgit.model.foreign_session import ForeignSession, SourceFile
from sessgit.model.program_input import GivenTurn, Outcome, Part, Reason, Saying, Step, Task, ToolCall

A, B, C = (str(uuid.UUID(int=n)) for n in (0xA, 0xB, 0xC))
START = 1772370000.0
SESSIONS = ".apex/sessions"


def stamp(n: int) -> str:
    return canonical.rfc3339(START + n)


def message(n: int, role: str, content: str, **more: Any) -> dict[str, Any]:
    made = {"id": str(uuid.UUID(int=1000 + n)), "index": n, "role": role, "content": content, "timestamp": stamp(n)}
    return made | more


CALL = {
    "toolName": "readFile", "input": {"path": "lexer.ts"}, "output": "let x", "duration": 12, "status": "success"
}  # fmt: skip
MESSAGES = [
    message(0, "system", "You are careful."),
    message(1, "user", "Why is it slow?"),
    message(2, "assistant", "I look.", agent="planner", toolCalls=[CALL], tokens={"input": 90, "output": 10}),
    message(3, "assistant", "It reads twice.", agent="planner", stage="review", tokens={"input": 5, "output": 7}),
    message(4, "user", "Make it fast."),
    message(5, "tool", "3 tests passed", metadata={"toolName": "runTests"}),
    message(6, "assistant", "Done.", codeBlocks=[{"language": "ts", "code": "read()", "filename": "a.ts"}]),
]


def session(own: str = A, messages: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": own, "name": "slow lexer", "projectPath": "/home/ada/shop", "createdAt": stamp(0),
        "updatedAt": stamp(9), "lastAccessedAt": stamp(10), "messages": MESSAGES if messages is None else messages,
        "inputHistory": ["/status"],
        "state": {"totalTokens": {"input": 95, "output": 17}, "totalCost": 0.02, "tasksCreated": ["t1"],
                  "tasksCompleted": [], "lastGitBranch": "main"},
        "tags": ["speed", "lexer"], "description": "Why the lexer reads twice.",
    } | more  # fmt: skip


def outcomes(root: Path) -> dict[str, tuple[str, str]]:
    return {file.path: (file.outcome, file.why) for file in apex.read(root).files}


def only(root: Path) -> ForeignSession:
    (found,) = apex.read(root).sessions
    return found


# What is read


def test_a_session_is_read_with_its_turns_and_calls(tmp_path: Path) -> None:
    index = {"version": 1, "sessions": [{"id": A}], "lastUpdated": stamp(9)}
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(), f"{SESSIONS}/index.json": index})
    found = apex.read(tmp_path)
    (one,) = found.sessions
    assert replace(one, kept={}) == ForeignSession(
        id=A,
        name="slow lexer",
        description="Why the lexer reads twice.",
        project="/home/ada/shop",
        created=stamp(0),
        updated=stamp(9),
        labels=("lexer", "speed"),
        turns=(
            GivenTurn(
                "Why is it slow?",
                (ToolCall("readFile", {"path": "lexer.ts"}, "let x", time=START + 2),
                 Saying("I look.", "", START + 2)),
                "It reads twice.", "apex", START + 1, START + 3, MESSAGES[1]["id"], {"input": 95, "output": 17},
            ),
            GivenTurn(
                "Make it fast.",
                (ToolCall("runTests", output="3 tests passed", time=START + 5),),
                "Done.\n\n**a.ts**\n```ts\nread()\n```", "", START + 4, START + 6, MESSAGES[4]["id"],
            ),
        ),
    )  # fmt: skip
    assert found.files == (
        SourceFile(f"{SESSIONS}/{A}.json", "imported", "", A),
        SourceFile(f"{SESSIONS}/index.json", "imported"),
    )


@pytest.mark.parametrize("start", ["", ".apex", SESSIONS])
def test_the_folder_can_be_the_project_apex_or_the_sessions(tmp_path: Path, start: str) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(), "src/lexer.ts": b"let x"})
    found = apex.read(tmp_path / start)
    assert [one.id for one in found.sessions] == [A]
    assert [file.path for file in found.files] == [f"{SESSIONS}/{A}.json".removeprefix(start).lstrip("/")]


def test_archived_sessions_and_the_active_one_are_told_apart(tmp_path: Path) -> None:
    laid(tmp_path, {
        f"{SESSIONS}/archive/{A}.json.gz": gzip.compress(json.dumps(session()).encode()),
        f"{SESSIONS}/{B}.json": session(B),
        f"{SESSIONS}/active.json": {"sessionId": B},
    })  # fmt: skip
    assert [(one.id, one.archived, one.state) for one in apex.read(tmp_path).sessions] == [
        (B, False, "active"),
        (A, True, "ended"),
    ]


def branched(own: str, parent: str, point: int, more: list[dict[str, Any]], of: list[Any]) -> dict[str, Any]:
    copies = [{**one, "id": str(uuid.uuid4()), "index": n} for n, one in enumerate(of[: point + 1])]
    return session(own, [*copies, *more], parentSessionId=parent, branchPoint=point)


def test_a_branch_shares_the_turns_that_its_parent_has_whole(tmp_path: Path) -> None:
    later = [message(20, "user", "Or otherwise?"), message(21, "assistant", "Yes.")]
    whole = branched(B, A, 3, later, MESSAGES)
    half = branched(C, B, 4, [message(30, "user", "Or not?")], whole["messages"])
    laid(tmp_path, {f"{SESSIONS}/{own['id']}.json": own for own in (half, whole, session())})
    parent, first, second = apex.read(tmp_path).sessions
    keys = [[turn.key for turn in one.turns] for one in (parent, first, second)]
    assert [(one.id, one.parent, one.branch) for one in (first, second)] == [(B, A, 1), (C, B, 1)]
    assert keys[0][0] == keys[1][0] == keys[2][0]
    assert len({key for one in keys for key in one}) == 5
    assert first.turns[0] == parent.turns[0]


def test_a_branch_without_its_parent_says_how_much_it_shares(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{B}.json": branched(B, A, 3, [message(20, "user", "Or?")], MESSAGES)})
    assert (only(tmp_path).parent, only(tmp_path).branch) == (A, 1)


def test_a_branch_that_was_written_alone_shares_the_same_turns(tmp_path: Path) -> None:
    both = laid(
        tmp_path / "both", {f"{SESSIONS}/{B}.json": branched(B, A, 3, [], MESSAGES), f"{SESSIONS}/{A}.json": session()}
    )
    parent, branch = apex.read(both).sessions
    alone = only(laid(tmp_path / "alone", apex.write(branch)))
    assert (alone.parent, alone.branch, alone.turns) == (A, 1, parent.turns[:1])


def test_sessions_that_branch_from_each_other_begin_by_themselves(tmp_path: Path) -> None:
    laid(tmp_path, {
        f"{SESSIONS}/{A}.json": session(A, parentSessionId=B, branchPoint=3),
        f"{SESSIONS}/{B}.json": session(B, parentSessionId=A, branchPoint=3),
        f"{SESSIONS}/{C}.json": session(C, parentSessionId=C, branchPoint=3),
    })  # fmt: skip
    assert {one.id: one.parent for one in apex.read(tmp_path).sessions} == {A: B, B: "", C: ""}


def test_what_the_agent_says_before_anybody_asks_is_a_turn_too(tmp_path: Path) -> None:
    greeting = [message(0, "assistant", "Task t1 is done."), message(1, "user", "Thanks."), message(2, "user", "  ")]
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(messages=greeting)})
    assert [(turn.prompt, turn.answer) for turn in only(tmp_path).turns] == [
        ("slow lexer", "Task t1 is done."),
        ("Thanks.", ""),
    ]


def test_messages_without_times_are_as_old_as_their_session(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Well?"}, {"role": "assistant", "content": "Well."}]
    laid(tmp_path, {
        f"{SESSIONS}/{A}.json": session(messages=said),
        f"{SESSIONS}/{B}.json": session(B, said, createdAt=stamp(70), parentSessionId=A, branchPoint=1),
    })  # fmt: skip
    parent, branch = apex.read(tmp_path).sessions
    assert (parent.turns[0].time, branch.branch, branch.turns) == (START, 1, parent.turns)
    assert json.loads(apex.write(parent)[f"{SESSIONS}/{A}.json"])["messages"] == said


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(messages=[message(0, "user", "hi", id="m1")])})
    assert apex.read(tmp_path) == apex.read(tmp_path)
    assert uuid.UUID(only(tmp_path).turns[0].key)


# What is wrong with files


def test_every_file_is_accounted_for(tmp_path: Path) -> None:
    deep = b'{"a":' * 100_000
    laid(tmp_path, {
        f"{SESSIONS}/{A}.json": session(),
        f"{SESSIONS}/{B}.json": b'{"id": "' + B.encode(),
        f"{SESSIONS}/other.json": session(C),
        f"{SESSIONS}/deep.json": deep,
        f"{SESSIONS}/list.json": [1, 2],
        f"{SESSIONS}/none.json": session("none", [], name=""),
        f"{SESSIONS}/string.json": session("string", "all of it"),  # type: ignore[arg-type]
        f"{SESSIONS}/odd.json": session("odd", ["hi", 7, *MESSAGES]),
        f"{SESSIONS}/archive/bomb.json.gz": gzip.compress(b" " * (65 << 20)),
        f"{SESSIONS}/archive/cut.json.gz": gzip.compress(json.dumps(session("cut")).encode())[:-9],
        f"{SESSIONS}/named.json": session("named", []),
        f"{SESSIONS}/notes.txt": b"mine",
        f"{SESSIONS}/index.json": {"version": 1, "sessions": [{"id": A}, {"id": "gone"}, 7]},
        f"{SESSIONS}/active.json": {"sessionId": "gone"},
        "outside.json": session("link"),
    })  # fmt: skip
    (tmp_path / SESSIONS / "link.json").symlink_to(tmp_path / "outside.json")
    os.mkfifo(tmp_path / SESSIONS / "pipe.json")
    assert outcomes(tmp_path) == {
        f"{SESSIONS}/{A}.json": ("imported", ""),
        f"{SESSIONS}/{B}.json": ("damaged", "it is not JSON"),
        f"{SESSIONS}/active.json": ("left", "it names no readable session"),
        f"{SESSIONS}/archive/bomb.json.gz": ("damaged", "it holds more than 64 MB, unpacked"),
        f"{SESSIONS}/archive/cut.json.gz": ("damaged", "it is compressed and truncated"),
        f"{SESSIONS}/deep.json": ("damaged", "its values are nested too deeply"),
        f"{SESSIONS}/index.json": ("imported", "it names 1 session without a readable file"),
        f"{SESSIONS}/link.json": ("left", f"it is a link to {tmp_path}/outside.json; links are not followed"),
        f"{SESSIONS}/list.json": ("damaged", "it is not an object"),
        f"{SESSIONS}/named.json": ("imported", ""),
        f"{SESSIONS}/none.json": ("empty", "it has no messages"),
        f"{SESSIONS}/notes.txt": ("left", "unknown kind of file"),
        f"{SESSIONS}/odd.json": ("imported", "2 messages of it are not objects"),
        f"{SESSIONS}/other.json": ("damaged", f"it says that it is session {C}, and its name does not"),
        f"{SESSIONS}/pipe.json": ("left", "it is not a regular file"),
        f"{SESSIONS}/string.json": ("damaged", "it is not a session: it has no id or no messages"),
    }


def test_keys_that_no_session_has_are_named_in_one_harmless_line(tmp_path: Path) -> None:
    index = {"version": 1, "sessions": [{"id": A}], "a\x1b[2J\nkey": 1}
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(), f"{SESSIONS}/index.json": index})
    why = "not imported, because they belong to no session: a�[2J�key"
    assert outcomes(tmp_path)[f"{SESSIONS}/index.json"] == ("imported", why)


def test_two_sessions_with_one_id_are_both_named(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(session(name="another")).encode())
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(), f"{SESSIONS}/archive/{A}.json.gz": packed})
    live, archived = f"{SESSIONS}/{A}.json", f"{SESSIONS}/archive/{A}.json.gz"
    assert apex.read(tmp_path).sessions == ()
    assert outcomes(tmp_path) == {
        archived: ("damaged", f"{live} is another session with the same id"),
        live: ("damaged", f"{archived} is another session with the same id"),
    }


def test_a_session_that_lies_in_the_archive_too_is_read_once(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(), f"{SESSIONS}/archive/{A}.json": session()})
    assert not only(tmp_path).archived
    assert outcomes(tmp_path)[f"{SESSIONS}/archive/{A}.json"] == (
        "left",
        f"it has the same contents as {SESSIONS}/{A}.json",
    )


def test_nothing_is_read_of_a_layout_of_the_future(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(), f"{SESSIONS}/index.json": {"version": 2, "sessions": []}})
    found = apex.read(tmp_path)
    assert found.sessions == ()
    assert {file.why for file in found.files} == {"the index has version 2, but 1 is the latest known version"}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.just(stamp(1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
WRONG_MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "robot"]) | VALUES},
    optional={
        "id": st.sampled_from([A, "m1"]) | VALUES, "index": VALUES, "content": st.text(max_size=9) | VALUES,
        "timestamp": VALUES, "codeBlocks": st.just([{"code": "x``` y"}]) | VALUES, "metadata": VALUES, "agent": VALUES,
        "toolCalls": st.lists(st.just(CALL) | VALUES, max_size=2) | VALUES, "tokens": st.just({"input": 3}) | VALUES,
        "new": VALUES,
    },
)  # fmt: skip
WRONG = st.fixed_dictionaries(
    {"id": st.just(A), "messages": st.lists(st.sampled_from(MESSAGES) | WRONG_MESSAGES | VALUES, max_size=6)},
    optional=dict.fromkeys(
        ["name", "projectPath", "createdAt", "updatedAt", "state", "tags", "description", "inputHistory",
         "lastAccessedAt", "parentSessionId", "branchPoint", "new"],
        VALUES,
    ),
)  # fmt: skip


@given(st.data())
def test_whatever_a_file_says_comes_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    root = tmp_path_factory.mktemp("apex")
    given_ = json.loads(json.dumps(data.draw(WRONG)))
    laid(root, {f"{SESSIONS}/{A}.json": given_})
    for found in apex.read(root).sessions:
        written = apex.write(found)
        document = json.loads(written[f"{SESSIONS}/{A}.json"])
        assert {key: document[key] for key in given_} == given_
        again = laid(tmp_path_factory.mktemp("apex"), written)
        assert only(again) == replace(found, kept=only(again).kept)
        assert apex.write(only(again)) == written


# What is written


WORDS = st.sampled_from(["a", "Well, then.", "x\ny", "é☃", "`" * 4, "  spaced  ", "\x1b[2J"])
CALLS = st.builds(
    ToolCall, st.sampled_from(["Read", "a-b"]), st.just({}) | st.just({"path": "x"}), st.just("") | WORDS, st.booleans()
)


@st.composite
def turns(draw: st.DrawFn) -> GivenTurn:
    """A turn that the layout can hold."""
    model = draw(st.sampled_from(["", "claude-opus-4-8"]))
    parts = draw(st.lists(CALLS | st.builds(Saying, WORDS, st.sampled_from(["", "m"])), max_size=4))
    answer = draw(WORDS) if not parts or isinstance(parts[-1], Saying) or draw(st.booleans()) else ""
    spent = draw(st.sampled_from([{}, {"input": 3}, {"input": 1, "output": 2}])) if model else {}
    time = START + draw(st.integers(0, 10**6)) / 1000
    key = str(draw(st.uuids()))
    told, at = list[Part](), time + 0.125
    for part in parts:  # calls are told with the words behind them, at one time
        told.append(replace(part, time=at))
        at += 0.125 if isinstance(part, Saying) else 0
    return GivenTurn(draw(WORDS), tuple(told), answer, model, time, at, key, spent)


@st.composite
def sessions(draw: st.DrawFn) -> ForeignSession:
    made = draw(st.lists(turns(), min_size=1, max_size=4, unique_by=lambda turn: turn.key))
    return ForeignSession(
        id=str(draw(st.uuids())),
        name=draw(st.sampled_from(["", "slow lexer"])),
        description=draw(st.sampled_from(["", "One.\nTwo."])),
        project=draw(st.sampled_from(["", "/home/ada"])),
        created=stamp(0),
        updated=stamp(5000),
        labels=tuple(sorted(draw(st.sets(st.sampled_from(["a", "b c"]))))),
        state=draw(st.sampled_from(["active", "ended", "interrupted"])),
        turns=tuple(made),
        title=draw(st.sampled_from(["", "Lexers"])),
        ended=draw(st.sampled_from(["", stamp(6000)])),
        stage=draw(st.sampled_from(["", "shaping"])),
        confidence=draw(st.sampled_from([None, 0.5])),
        pad=draw(st.sampled_from([{}, {"claims": b'{"kind":"claim"}\n'}])),
        unified=draw(st.sampled_from([{}, {"activation": {"a": 1}}])),
        parent=(parent := draw(st.sampled_from(["", B]))),
        branch=draw(st.integers(0, len(made))) if parent else None,
        kept=draw(st.sampled_from([{}, {"rlm/a.json": b"\xff", "note": b"mine"}])),
    )


@given(sessions())
def test_what_was_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, made: ForeignSession) -> None:
    root = laid(tmp_path_factory.mktemp("apex"), apex.write(made))
    found = only(root)
    others = {path: data for path, data in found.kept.items() if not path.startswith("apex/")}
    assert replace(found, kept=others) == made


def test_an_export_is_the_session_its_index_and_what_is_active(tmp_path: Path) -> None:
    one = session(childSessionIds=[B])
    laid(tmp_path, {f"{SESSIONS}/{A}.json": one, f"{SESSIONS}/active.json": {"current": 1, "sessionId": A}})
    written = apex.write(only(tmp_path))
    assert {name: json.loads(data) for name, data in written.items()} == {
        f"{SESSIONS}/{A}.json": one,
        f"{SESSIONS}/active.json": {"current": 1, "sessionId": A},
        f"{SESSIONS}/index.json": {
            "version": 1,
            "sessions": [
                {"id": A, "name": "slow lexer", "projectPath": "/home/ada/shop", "createdAt": stamp(0),
                 "updatedAt": stamp(9), "lastAccessedAt": stamp(10), "messageCount": 7, "totalCost": 0.02,
                 "tags": ["speed", "lexer"], "archived": False}
            ],
            "lastUpdated": stamp(9),
        },
    }  # fmt: skip


def test_a_value_that_was_removed_is_removed_from_the_document(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session()})
    document = json.loads(apex.write(replace(only(tmp_path), description="", labels=()))[f"{SESSIONS}/{A}.json"])
    assert (document["description"], document["tags"]) == (None, None)


def test_an_archived_session_is_written_packed_and_always_the_same(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/archive/{A}.json.gz": gzip.compress(json.dumps(session()).encode())})
    written = apex.write(only(tmp_path))
    assert sorted(written) == [f"{SESSIONS}/archive/{A}.json.gz", f"{SESSIONS}/index.json"]
    assert json.loads(gzip.decompress(written[f"{SESSIONS}/archive/{A}.json.gz"])) == session()
    assert apex.write(only(tmp_path)) == written


def test_what_came_since_is_written_behind_what_was_there(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session()})
    found = only(tmp_path)
    turn = GivenTurn("And now?", (), "Ship it.", "m", START + 50, START + 60, C, {"input": 1, "output": 2})
    document = json.loads(apex.write(replace(found, name="fast", turns=(*found.turns, turn)))[f"{SESSIONS}/{A}.json"])
    assert document["messages"][:7] == MESSAGES
    assert [(one["index"], one["role"], one["content"]) for one in document["messages"][7:]] == [
        (7, "user", "And now?"),
        (8, "assistant", "Ship it."),
    ]
    assert document["name"] == "fast"
    assert document["updatedAt"] == stamp(60)
    assert document["inputHistory"] == ["/status", "And now?"]
    assert document["state"]["totalTokens"] == {"input": 96, "output": 19}
    assert document["state"]["lastGitBranch"] == "main"


def test_a_fork_is_written_as_a_branch_of_its_own(tmp_path: Path) -> None:
    laid(tmp_path, {f"{SESSIONS}/{A}.json": session(childSessionIds=[B]), f"{SESSIONS}/active.json": {"id": A}})
    found = only(tmp_path)
    fork = replace(found, id=C, parent=A, branch=1, turns=found.turns[:1], created=stamp(70), state="ended")
    written = apex.write(fork)
    document = json.loads(written[f"{SESSIONS}/{C}.json"])
    assert (document["id"], document["parentSessionId"], document["branchPoint"]) == (C, A, 3)
    assert document["messages"] == MESSAGES[:4]
    assert "childSessionIds" not in document
    assert document["createdAt"] == stamp(70)
    assert f"{SESSIONS}/active.json" not in written


def test_cells_and_reasons_of_programs_are_told_as_calls_and_words() -> None:
    parts: tuple[Part, ...] = (
        Step(Task("repl", "peek", {"n": 1}, "repl", id="cell_00000001"), Outcome({"found": 2}, None, 3.5)),
        Step(Task("tool", "grep", id="cell_00000002"), Outcome(None, "no such file")),
        Reason("trace", "So it is the lexer."),
        Step(Task("tool", "sleep", id="cell_00000003")),
    )
    made = ForeignSession("no uuid/../", turns=(GivenTurn("Look", parts, "", "", START, START + 1, A),))
    (path, document), *_ = [(k, json.loads(v)) for k, v in apex.write(made).items() if "index" not in k]
    assert path == f"{SESSIONS}/{document['id']}.json"
    assert uuid.UUID(document["id"])
    assert [(one["content"], one.get("toolCalls")) for one in document["messages"]] == [
        ("Look", None),
        ("So it is the lexer.", [
            {"toolName": "peek", "input": {"n": 1}, "output": '{"found": 2}', "duration": 3.5, "status": "success"},
            {"toolName": "grep", "input": {}, "output": "no such file", "status": "error"},
            {"toolName": "sleep", "input": {}, "status": "error"},
        ]),
    ]  # fmt: skip


@given(st.binary(max_size=40) | VALUES.map(lambda value: json.dumps({"session": value, "messages": value}).encode()))
def test_what_was_kept_may_be_anything(kept: bytes) -> None:
    made = ForeignSession(A, name="n", created=stamp(0), turns=(GivenTurn("hi", (), "ho", "", START, START, B),))
    document = json.loads(apex.write(replace(made, kept={apex.KEPT_PATH: kept}))[f"{SESSIONS}/{A}.json"])
    assert [one["content"] for one in document["messages"]] == ["hi", "ho"]
