"""Chains of lines, mended: what each kind of damage becomes, and the laws that hold of all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import repair as chain
from sessgit.agents.claude import repair as order
from sessgit.agents.claude.repair import LOST
from sessgit.agents.values import Mended

Lines = list[bytes]


def mend(*turns: Lines, session: str = SESSION) -> Mended:
    return chain.mend(enumerate(turns, start=1), session)


def out(made: Mended) -> list[dict[str, Any]]:
    return [json.loads(line) for lines in made.turns.values() for line in lines]


def kinds(made: Mended) -> list[tuple[str, int, int]]:
    return [(one.kind, one.turn, one.line) for one in made.mends]


def changed(line: bytes, **values: Any) -> bytes:
    return json.dumps(json.loads(line) | values, separators=(",", ":")).encode()


def chained(made: Mended) -> list[tuple[str, str]]:
    """Of each line with a uuid that and its parent, by their beginnings."""
    return [(one["uuid"][:8], (one["parentUuid"] or "")[:8]) for one in out(made) if one.get("uuid")]


@pytest.mark.parametrize("style", ["2.0", "2.1"])
def test_what_a_client_writes_needs_nothing(style: str) -> None:
    talk = Talk(style=style).turns("one").prompt("two").parallel(("Bash", {}, "a"), ("Read", {}, "b")).answer("ok")
    talk.steer("go on").interrupt().stop_lines().compact().prompt("three").tool("Bash").compact(auto=True).answer("ok")
    made = mend(talk.lines)
    assert made.mends == ()
    assert made.turns == {1: talk.lines}


def test_lines_that_stand_on_one() -> None:
    talk = Talk().prompt("one").answer("yes", "no")
    first, *_ = whole = talk.lines
    torn = b'{"type":"user","message":{"content":[{"type":"text","te'
    made = mend([first + whole[1], torn + whole[2], b"\0\0" + whole[3], b"what?", b"", torn])
    assert [line for lines in made.turns.values() for line in lines] == whole
    assert kinds(made) == [
        ("glued", 1, 1),
        ("glued", 1, 2),
        ("glued", 1, 3),
        ("unreadable", 1, 4),
        ("unreadable", 1, 6),
    ]
    assert f"{len(torn):,} bytes of a torn line are left out" in made.mends[1].what


def test_parents_that_are_nowhere() -> None:
    talk = Talk().prompt("one").answer("yes").turns("two")
    talk.lines[2] = changed(talk.lines[2], parentUuid="gone")
    talk.lines[3] = changed(talk.lines[3], parentUuid=None)
    made = mend(talk.lines)
    assert chained(made)[:3] == [("a0000001", ""), ("b0000001", "a0000001"), ("a0000002", "b0000001")]
    assert kinds(made) == [("parent", 1, 3), ("parent", 1, 4)]


def test_a_file_that_goes_on_from_another_one() -> None:
    """Its first line hangs on one of that: no client minds."""
    talk = Talk().turns("one")
    talk.lines[0] = changed(talk.lines[0], parentUuid="in-another-file")
    assert mend(talk.lines).mends == ()


def test_circles() -> None:
    talk = Talk().turns("one", "two")
    numbers = [n for n, line in enumerate(talk.lines) if b'"uuid"' in line]
    talk.lines[numbers[0]] = changed(talk.lines[numbers[0]], parentUuid=json.loads(talk.lines[numbers[-1]])["uuid"])
    talk.lines[numbers[2]] = changed(talk.lines[numbers[2]], parentUuid=json.loads(talk.lines[numbers[2]])["uuid"])
    made = mend(talk.lines)
    assert sorted(kind for kind, *_ in kinds(made)) == ["cycle", "cycle"]
    assert chained(made) == chained(mend(Talk().turns("one", "two").lines))


def test_a_call_without_its_result() -> None:
    talk = Talk().prompt("one").call_only("Bash", {"command": "ls"}).prompt("two").answer("ok")
    made = mend(talk.lines)
    call, lost, prompt = (next(one for one in out(made) if wanted(one)) for wanted in (is_call, is_lost, is_second))
    assert (lost["parentUuid"], prompt["parentUuid"]) == (call["uuid"], lost["uuid"])
    assert lost["message"]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_0001", "content": LOST, "is_error": True}
    ]
    assert (lost["sessionId"], lost["timestamp"], lost["version"]) == (SESSION, call["timestamp"], call["version"])
    assert kinds(made) == [("call", 1, 3)]


def is_call(one: dict[str, Any]) -> bool:
    return "tool_use" in json.dumps(one)


def is_lost(one: dict[str, Any]) -> bool:
    return LOST in json.dumps(one)


def is_second(one: dict[str, Any]) -> bool:
    return one.get("message", {}).get("content") == "two"


@pytest.mark.parametrize("style", ["2.0", "2.1"])
@pytest.mark.parametrize("lost", [0, 1])
def test_one_of_several_results_is_lost(style: str, lost: int) -> None:
    """In a tree of calls the line stands where its own would have stood, in a chain behind the others."""
    talk = Talk(style=style).prompt("one").parallel(("Bash", {}, "a"), ("Read", {}, "b")).answer("ok")
    results = [n for n, line in enumerate(talk.lines) if b'"tool_result"' in line]
    gone = json.loads(talk.lines.pop(results[lost]))
    talk.lines[:] = [
        changed(line, parentUuid=gone["parentUuid"]) if gone["uuid"].encode() in line else line for line in talk.lines
    ]
    made = mend(talk.lines)
    assert [kind for kind, *_ in kinds(made)] == ["call"]
    answers(made)
    assert mend(*made.turns.values()).mends == ()


def answers(made: Mended) -> None:
    """Each call of a message is answered before the next message, once."""
    waiting: set[str] = set()
    for one in out(made):
        content = one.get("message", {}).get("content") if isinstance(one.get("message"), dict) else None
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                waiting.add(block["id"])
            if block["type"] == "tool_result":
                waiting.remove(block["tool_use_id"])
    assert not waiting


def test_results_without_a_call() -> None:
    talk = Talk().prompt("one").tool("Bash").result("toolu_9999", "whose?").result("toolu_0001", "again").answer("ok")
    made = mend(talk.lines)
    assert kinds(made) == [("result", 1, 5), ("result", 1, 6)]
    assert chained(made)[-1] == ("b0000002", "c0000001")
    answers(made)


def test_bytes_that_are_no_text() -> None:
    lines = Talk().turns("one", "two").lines
    wrong = [line.replace(b"About two.", b"About \xe9\xff.") for line in lines]
    made = mend(wrong)
    assert kinds(made) == [("unreadable", 1, next(n for n, one in enumerate(wrong, 1) if one not in lines))]
    assert next(one for one in made.turns[1] if one not in lines).count("About \ufffd\ufffd.".encode()) == 1
    assert mend(made.turns[1]).mends == ()


def test_a_result_that_stands_before_its_call() -> None:
    lines = Talk().turns("one").prompt("two").tool("Bash").answer("Done.").lines
    at = next(n for n, line in enumerate(lines) if b'"tool_result"' in line)
    early = [*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :]]
    made = mend(early)
    assert made.turns == {1: lines}
    assert [one.what for one in made.mends] == ["it came before its call: moved after it"]


def test_a_line_with_one_good_result() -> None:
    talk = Talk().prompt("one").call_only("Bash")
    block = {"type": "tool_result", "tool_use_id": "toolu_0001", "content": "x"}
    talk.user([block, {**block, "tool_use_id": "toolu_9999"}])
    made = mend(talk.lines)
    assert kinds(made) == [("result", 1, 4)]
    assert out(made)[-1]["message"]["content"] == [block]


def test_lines_that_stand_there_twice() -> None:
    talk = Talk().turns("one")
    again = [*talk.lines, *talk.lines]
    made = mend(again)
    assert [one for one in out(made) if one.get("uuid")] == [
        one for one in map(json.loads, talk.lines) if one.get("uuid")
    ]
    assert {kind for kind, *_ in kinds(made)} == {"duplicate"}


def test_two_lines_with_one_uuid() -> None:
    talk = Talk().prompt("one").answer("yes").answer("no")
    first, second = (json.loads(line)["uuid"] for line in talk.lines[2:4])
    talk.lines[3] = talk.lines[3].replace(second.encode(), first.encode())
    talk.leaf = first
    talk.prompt("two")
    made = mend(talk.lines)
    uuids = [one["uuid"] for one in out(made) if one.get("uuid")]
    assert len(set(uuids)) == len(uuids) == 4
    assert next(one for one in out(made) if is_second(one))["parentUuid"] == uuids[2]
    assert [kind for kind, *_ in kinds(made)] == ["duplicate"]


def test_lines_without_a_uuid() -> None:
    talk = Talk().prompt_without_uuid("one").answer("yes")
    made = mend(talk.lines)
    assert kinds(made) == [("uuid", 1, 1), ("parent", 1, 2)]
    (first, none), (second, parent) = chained(made)
    assert (none, second, parent) == ("", "b0000001", first)


def test_another_sessions_lines() -> None:
    """Those that hang on nothing of ours go; those that do are ours under a wrong name."""
    talk, strange = Talk().turns("one"), Talk(OTHER).prompt("x").answer("strange").stop_lines()
    talk.lines.extend(strange.lines)
    talk.prompt("two").answer("yes")
    talk.lines[-1] = changed(talk.lines[-1], sessionId=OTHER)
    made = mend(talk.lines)
    assert "strange" not in json.dumps(out(made))
    assert [(kind, line) for kind, _, line in kinds(made)] == [("writer", 9), ("session", len(talk.lines))]
    assert chain.mend([(1, talk.lines[-3:])], SESSION, [OTHER]).mends == ()


def test_a_history_that_comes_from_another_session_stays() -> None:
    """Old clients leave the ids of a conversation that was gone on with."""
    old, talk = Talk(OTHER).turns("one"), Talk().turns("two")
    made = mend([*old.lines, *talk.lines])
    assert "one" in [one.get("message", {}).get("content") for one in out(made)]


def test_a_clock_that_was_put_back() -> None:
    talk = Talk().turns("one", "two")
    late = [n for n, line in enumerate(talk.lines) if b"timestamp" in line][-4:]
    for n in late:
        talk.lines[n] = changed(talk.lines[n], timestamp="2020-01-01T00:00:00.000Z")
    made = mend(talk.lines)
    assert [kind for kind, *_ in kinds(made)] == ["time"] * len(late)
    times = [one["timestamp"] for one in out(made) if one.get("uuid")]
    assert times == sorted(times)


def test_a_time_that_is_early_in_the_middle_harms_nothing() -> None:
    talk = Talk().turns("one", "two")
    talk.lines[2] = changed(talk.lines[2], timestamp="2020-01-01T00:00:00.000Z")
    assert mend(talk.lines).mends == ()


# Laws

LINES = Talk().turns("one").prompt("two").parallel(("Bash", {}, "a"), ("Read", {}, "b")).answer("ok").stop_lines()
WHOLE = LINES.prompt("three").tool("Bash").answer("yes").stop_lines().lines
Harm = Callable[[Lines, int, int], None]


@pytest.mark.parametrize("style", ["2.0", "2.1"])
def test_a_file_that_was_turned_around(style: str) -> None:
    talk = Talk(style=style).turns("one").prompt("two").tool("Bash").parallel(("Read", {}, "a"), ("Read", {}, "b"))
    whole = talk.answer("ok").stop_lines().compact().turns("three").rewind(1).turns("aside").lines
    assert order.in_order(whole) == (whole, 0)
    made, early = order.in_order(whole[::-1])
    assert made == whole
    assert early > len(whole) // 4
    again, early = order.in_order([*whole[5:], *whole[:5]])
    assert (again, early) == ([*whole[5:], *whole[:5]], 0)


def test_no_line_is_lost_in_whatever_order() -> None:
    named = [f'{{"uuid":"{n}","parentUuid":"{n + 1 if n < 3 else 0}"}}'.encode() for n in range(4)]
    made, early = order.in_order([*named, b"torn", named[0]])
    assert (sorted(made), early) == (sorted([*named, b"torn", named[0]]), 3)
    assert order.in_order([]) == ([], 0)


def drop(lines: Lines, a: int, b: int) -> None:
    del lines[a]


def repeat(lines: Lines, a: int, b: int) -> None:
    lines.insert(b, lines[a])


def glue(lines: Lines, a: int, b: int) -> None:
    lines[a - 1 : a + 1] = [b"".join(lines[a - 1 : a + 1])]


def tear(lines: Lines, a: int, b: int) -> None:
    lines[a] = lines[a][: b * 7]


def hang(lines: Lines, a: int, b: int) -> None:
    parent = (
        json.loads(lines[b]).get("uuid", "nowhere") if lines[b].startswith(b"{") and lines[b].endswith(b"}") else ""
    )
    lines[a] = lines[a].replace(b'"parentUuid":"', b'"parentUuid":"%s","old":"' % parent.encode())


def swap(lines: Lines, a: int, b: int) -> None:
    lines[a], lines[b] = lines[b], lines[a]


def rename(lines: Lines, a: int, b: int) -> None:
    lines[a] = lines[a].replace(SESSION.encode(), OTHER.encode())


HARMS: list[Harm] = [drop, repeat, glue, tear, hang, swap, rename]


@given(st.lists(st.tuples(st.sampled_from(HARMS), st.integers(1, 20), st.integers(1, 20)), max_size=6))
def test_whatever_happens_it_ends_mended(harms: list[tuple[Harm, int, int]]) -> None:
    lines = list(WHOLE)
    for harm, a, b in harms:
        if max(a, b) < len(lines):
            try:
                harm(lines, a, b)
            except ValueError:  # a line that is none any more
                continue
    made = mend(lines)
    every = [one for one in out(made) if one.get("uuid")]
    uuids = [one["uuid"] for one in every]
    assert len(set(uuids)) == len(uuids)
    assert all(one["parentUuid"] is None or one["parentUuid"] in uuids for one in every if leads_on(one, every))
    assert is_a_tree({one["uuid"]: one["parentUuid"] for one in every})
    answers_in_order(every)
    again = mend(*made.turns.values())
    assert again.mends == tuple(one for one in again.mends if one.kind == "session")
    assert {line for lines in again.turns.values() for line in lines} == {
        line for lines in made.turns.values() for line in lines
    }


def leads_on(one: dict[str, Any], every: list[dict[str, Any]]) -> bool:
    """Whether it is said, what is said hangs on it, or it comes behind all that is said."""
    if one.get("type") != "system" or all(other.get("type") == "system" for other in every[every.index(one) :]):
        return True
    return any(leads_on(other, every) for other in every if other.get("parentUuid") == one["uuid"])


def is_a_tree(parents: dict[str, str | None]) -> bool:
    for start in parents:
        at: str | None = start
        for _ in range(len(parents) + 1):
            if at is None:
                break
            at = parents.get(at)  # of what is off the chain, the parent is on another branch
        if at is not None:
            return False
    return True


def answers_in_order(every: list[dict[str, Any]]) -> None:
    """Each result has its call before it, and each call one result."""
    asked, answered = set[str](), list[str]()
    for one in every:
        content = one.get("message", {}).get("content")
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                asked.add(block["id"])
            if block["type"] == "tool_result":
                assert block["tool_use_id"] in asked
                answered.append(block["tool_use_id"])
    assert sorted(answered) == sorted(asked)
