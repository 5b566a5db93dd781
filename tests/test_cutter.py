"""Lines into turns, without a store."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from pytest import param
from strategies import Transcript, transcripts
from transcripts import SESSION, Talk

from sessgit.agents.claude.lines import make
from sessgit.agents.cutter import Cutter, Node, Place, line_of
from sessgit.agents.line import Line, no_redaction, parse, split
from sessgit.model.conversation.message import Extent


class Nothing:
    """A history in which nothing is recorded."""

    def turn(self, key: str) -> Node | None:
        return None

    def find(self, uuid: str) -> Place | None:
        return None

    def is_closed(self, node: Node, line: Line) -> bool:
        return False


def cut(data: bytes) -> Cutter:
    cutter = Cutter(Nothing(), session=SESSION)
    for raw, extent in split(data, 0):
        cutter.feed(make(raw, extent, no_redaction))
    return cutter


def shape(cutter: Cutter) -> dict[str, list[str]]:
    """Of each branch, the head's under ``head``, the words of its prompts."""
    tips = {"head": cutter.head, **{name.partition(".r-")[2]: tip for name, tip in cutter.rewound.items()}}
    return {name: [node.body[0].message_text for node in line_of(tip)][::-1] for name, tip in tips.items()}


def summary(lines: list[Line]) -> str:
    """The types of lines: p for a prompt, u, a, t for attachments, s for system, - for others."""
    letters = {"user": "u", "assistant": "a", "attachment": "t", "system": "s"}
    return "".join("p" if line.is_prompt else letters.get(line.type, "-") for line in lines)


def parts(cutter: Cutter) -> list[tuple[str, str]]:
    """Of each turn of the head what stands before and in its body, and at last what waits."""
    nodes = [] if cutter.head is None else list(line_of(cutter.head))[::-1]
    return [*((summary(node.before), summary(node.body)) for node in nodes), (summary(cutter.pending.lines), "")]


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        (b'{"a":1}', {"a": 1}),
        (b' \t{"a":1}\r', {"a": 1}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"a":1}', None),
        (b'{"a":"\xed\xa0\x80"}', {"a": "\ud800"}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":1} 2', None),
        (b'{"a":1}{"b":2}', None),
        (b'{"a":1', None),
        (b'[{"a":1}]', None),
        (b"null", None),
        (b"", None),
        (b"\xff{}", None),
        (b'{"a":1}\x00', None),
        (b'{"a":' * 100_000, None),
    ],
)
def test_what_is_a_line(raw: bytes, data: dict[str, Any] | None) -> None:
    assert parse(raw) == data


def test_turns() -> None:
    cutter = cut(Talk().bare("mode").turns("one").queue("two").prompt("two").tool("Bash").answer("Two.").data)
    assert shape(cutter) == {"head": ["one", "two"]}
    assert parts(cutter) == [("-", "p-a"), ("ss----", "p-aua"), ("", "")]


def test_lines_between_those_of_a_body_belong_to_it() -> None:
    talk = Talk().prompt("one").answer("First.").stop_lines().title("T").answer("After all.").stop_lines()
    assert parts(cut(talk.data)) == [("", "p-ass----a"), ("ss---", "")]


def test_old_transcripts_are_one_chain() -> None:
    talk = Talk(style="2.0").prompt("one").parallel(("A", {}, "a"), ("B", {}, "b")).answer("Both.").prompt("two")
    assert shape(cut(talk.data)) == {"head": ["one", "two"]}
    assert parts(cut(talk.data))[0] == ("--", "paauua")


def test_results_of_parallel_tools_are_no_rewinds() -> None:
    calls = [(name, {}, name) for name in "ABC"]
    cutter = cut(Talk().prompt("one").parallel(*calls).answer("All.").turns("two").data)
    assert shape(cutter) == {"head": ["one", "two"]}


@pytest.mark.parametrize(
    ("to", "shape_"),
    [
        (0, {"head": ["new"], "a0000001": ["one", "two", "three"]}),
        (1, {"head": ["one", "new"], "a0000002": ["one", "two", "three"]}),
        (2, {"head": ["one", "two", "new"], "a0000003": ["one", "two", "three"]}),
        (3, {"head": ["one", "two", "three", "new"]}),
    ],
)
def test_a_rewind(to: int, shape_: dict[str, list[str]]) -> None:
    assert shape(cut(Talk().turns("one", "two", "three").rewind(to).turns("new").data)) == shape_


def test_a_rewind_to_what_the_client_wrote_behind_a_turn_copies_it_in_its_order() -> None:
    talk = Talk().turns("one", "two").rewind(1).turns("two again")
    head = cut(talk.data).head
    assert head is not None
    assert [line.raw for line in head.before[: head.copied]] == talk.lines[3:5]


def test_a_branch_is_named_by_a_free_name() -> None:
    """Two prompts whose uuids begin alike would have one name."""
    talk = Talk().turns("one")
    for number in range(3):
        talk.file.counts["a"] = 0xBEEF
        talk.rewind(1).prompt(f"same start {number}")
        talk.lines[-2] = talk.lines[-2].replace(b'-8000-000000000001","time', b'-8000-%012d","time' % number)
        talk.leaf = (talk.leaf or "").replace("-8000-000000000001", f"-8000-{number:012d}")
        talk.answer(f"{number}")
    found = shape(cut(talk.data))
    assert len(found) == 3
    assert found["head"] == ["one", "same start 2"]
    assert found["a0048880"] == ["one", "same start 0"]
    assert found["20f8a4cf"] == ["one", "same start 1"]


def test_two_writers() -> None:
    left = Talk().turns("base")
    right = left.writer()
    left.prompt("l1")
    right.prompt("r1")
    left.answer("L.")
    right.answer("R.").attachment()
    left.attachment().prompt("l2")
    right.prompt("r2").answer("R.")
    left.answer("L.")
    cutter = cut(left.data)
    assert shape(cutter) == {"head": ["base", "r1", "r2"], "a0000002": ["base", "l1", "l2"]}
    left_tip = next(iter(cutter.rewound.values()))
    words = [line.message_text for node in line_of(left_tip) for line in node.body if line.type == "assistant"]
    assert words == ["L.", "L.", "About base."]


def test_a_compaction_waits_for_the_next_prompt() -> None:
    cutter = cut(Talk().turns("one").compact().data)
    assert parts(cutter) == [("", "p-a"), ("ss---suuuut", "")]
    cutter = cut(Talk().turns("one").compact().turns("two").data)
    assert parts(cutter)[1] == ("ss---suuuut", "p-a")


def test_a_compaction_in_mid_turn_belongs_to_it() -> None:
    talk = Talk().prompt("one").tool("Bash").compact(auto=True).tool("Bash").answer("Done.")
    assert parts(cut(talk.data)) == [("", "p-ausutaua"), ("", "")]


def test_a_file_that_begins_with_a_compaction() -> None:
    cutter = cut(Talk().compact().turns("one").data)
    assert parts(cutter)[0] == ("suuuut", "p-a")


def test_a_rewind_to_just_behind_a_compaction_copies_its_lines() -> None:
    talk = Talk().turns("one").compact()
    leaf = talk.leaf
    talk.turns("two")
    talk.leaf = leaf
    cutter = cut(talk.turns("two again").data)
    head = cutter.head
    assert head is not None
    assert shape(cutter)["head"] == ["one", "two again"]
    assert (summary(head.before), head.copied) == ("suuuutss---", 6)


@pytest.mark.parametrize(
    ("message", "extra", "prompt"),
    [
        param("hello", {}, True, id="text"),
        param([{"type": "text", "text": "hello"}], {}, True, id="blocks"),
        param([{"type": "image", "source": {}}], {}, True, id="image"),
        param("", {}, True, id="empty"),
        param("<command-message>init</command-message>", {}, True, id="custom command"),
        param("hello", {"origin": {"kind": "human"}}, True, id="human"),
        param("hello", {"origin": {}}, True, id="origin unknown"),
        param("hello", {"origin": {"kind": "task-notification"}}, False, id="other origin"),
        param("hello", {"isMeta": True}, False, id="meta"),
        param("hello", {"isSidechain": True}, False, id="sidechain"),
        param("hello", {"isCompactSummary": True}, False, id="summary"),
        param([{"type": "tool_result", "tool_use_id": "x"}], {}, False, id="result"),
        param("[Request interrupted by user]", {}, False, id="interrupted"),
        param([{"type": "text", "text": "[Request interrupted by user for tool use]"}], {}, False, id="in blocks"),
        param("  <command-name>/clear</command-name>", {}, False, id="command"),
        param("<local-command-stdout>x</local-command-stdout>", {}, False, id="stdout"),
        param("<bash-input>ls</bash-input>", {}, False, id="bash"),
        param("<task-notification>x</task-notification>", {}, False, id="notification"),
        param("hello", {"type": "assistant"}, False, id="assistant"),
        param("hello", {"message": "hello"}, False, id="no message"),
    ],
)
def test_what_is_a_prompt(message: Any, extra: dict[str, Any], prompt: bool) -> None:
    line = {"type": "user", "uuid": "u", "message": {"role": "user", "content": message}, **extra}
    assert make(json.dumps(line).encode(), Extent(0, 1), no_redaction).is_prompt is prompt


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"1", b'"x"', b"{", b"\x00", b"\xff", b'{"a":1}{"b":2}', b"[" * 100_000, b"1" * 10_000]
)
def test_what_cannot_be_read_is_a_line_all_the_same(raw: bytes) -> None:
    talk = Talk().turns("one").raw(raw).turns("two")
    assert shape(cut(talk.data)) == {"head": ["one", "two"]}
    assert parts(cut(talk.data))[1] == ("ss----", "p-a")


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b" "])
def test_bom_and_crlf(prefix: bytes) -> None:
    data = prefix + Talk().turns("one", "two").data.replace(b"\n", b"\r\n")
    assert shape(cut(data)) == {"head": ["one", "two"]}


def test_duplicates_are_no_turns() -> None:
    talk = Talk().turns("one", "two")
    talk.file.lines += talk.lines
    assert shape(cut(talk.turns("three").data)) == {"head": ["one", "two", "three"]}


def test_a_dangling_parent_goes_on_where_the_file_stands() -> None:
    talk = Talk().turns("one")
    talk.leaf = "gone"
    assert shape(cut(talk.turns("two").data)) == {"head": ["one", "two"]}


def test_a_cycle_ends() -> None:
    talk = Talk().turns("one").chain("system", uuid="c1", parentUuid="c2").chain("system", uuid="c2", parentUuid="c1")
    assert shape(cut(talk.turns("two").data)) == {"head": ["one", "two"]}


def test_prompts_without_a_uuid_are_told_apart_by_their_place() -> None:
    talk = Talk().prompt_without_uuid("again").prompt_without_uuid("again")
    assert shape(cut(talk.data.replace(b"10:00:02", b"10:00:01"))) == {"head": ["again", "again"]}


@pytest.mark.parametrize("uuid", ["", "a b", "a\nb", "ä", "x" * 101, "\ud800"])
def test_a_uuid_that_is_no_name_is_none(uuid: str) -> None:
    line = make(json.dumps({"uuid": uuid}).encode(), Extent(3, 1), no_redaction)
    assert line.prompt_id not in ("", uuid)


def test_an_answer_without_a_prompt_waits() -> None:
    cutter = cut(Talk().answer("Hello?").data)
    assert (cutter.head, summary(cutter.pending.lines)) == (None, "a")


@given(transcripts())
def test_no_line_is_lost_and_none_is_twice(transcript: Transcript) -> None:
    cutter = cut(transcript.data)
    nodes = {node for tip in (cutter.head, *cutter.rewound.values()) for node in line_of(tip)}
    kept = [line for node in nodes for line in (*node.before[node.copied :], *node.body)] + cutter.pending.lines
    places = [extent for _, extent in split(transcript.data, 0)]
    assert sorted((line.extent for line in kept), key=lambda extent: extent.offset) == places


@given(transcripts())
def test_branches_end_in_turns_that_nothing_follows(transcript: Transcript) -> None:
    cutter = cut(transcript.data)
    tips = [tip for tip in (cutter.head, *cutter.rewound.values()) if tip is not None]
    followed = {node.parent for tip in tips for node in line_of(tip)}
    assert not followed & set(tips)
    for tip in tips:
        assert [node.number for node in line_of(tip)] == list(range(tip.number, 0, -1))
