"""What holds of every scratchpad: lists that unite, are made few, and are read whatever lies in them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.errors import AmbiguousError, NotFoundError, UsageError
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES, Session
from sessgit.model.pad import LISTS, Entry

OWN, OTHER = "5e551011", "e90c55aa"
TIME = 1772370000.0

WORDS = st.sampled_from(["a", "b", "a  b", "a b", " a\nb", "é☃", "\ud83d", "\x1b[2J", "x" * 300])


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    kind = draw(st.sampled_from(sorted(LISTS)))
    made = Entry(
        "",
        kind,
        "" if kind == "cycle" else draw(WORDS),
        canonical.rfc3339(TIME + draw(st.integers(0, 5))),
        draw(st.sampled_from([OWN, OTHER])),
        draw(st.none() | st.integers(0, 9)),
        draw(st.integers(1, 6)),
        source=draw(st.sampled_from(["", "lexer.py"])),
        between=tuple(draw(st.lists(st.sampled_from(["0" * 8, "f" * 8]), max_size=2))) if kind == "tension" else (),
        form=draw(st.sampled_from(pads.PASSES)) if kind == "pass" else "",
        value=draw(st.sampled_from([0.0, 0.5, 1.0])) if kind == "confidence" else None,
    )
    if kind in pads.RESOLVABLE and draw(st.booleans()):
        made = replace(made, resolved=canonical.rfc3339(TIME + 9), answer=draw(st.sampled_from(["", "so"])))
    return pads.entry_with_line(made)


STRANGE = st.sampled_from(
    [
        b"", b"\xff\xfe", b"[]", b"null", b'"a"', b"{}", b"{" * 5000, b'{"kind":"claim"}', b"9" * 5000, b"\x00",
        b'{"kind":"claim","id":"00000000","text":7,"time":"2026-03-01T10:00:00Z","session":"a"}',
        b'{"kind":"claim","id":"00000000","text":"a","time":"yesterday","session":"a"}',
        b'{"kind":"claim","id":"x","text":"a","time":"2026-03-01T10:00:00Z","session":"a"}',
        b'{"kind":"claim","id":"00000000","text":"a","time":"2026-03-01T10:00:00Z","session":"../a"}',
    ]
)  # fmt: skip


@st.composite
def lists(draw: st.DrawFn) -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    for entry in draw(st.lists(entries(), max_size=12)):
        out = pads.add_entry(out, entry)
    for name in draw(st.lists(st.sampled_from(sorted(LISTS.values())), max_size=3)):
        out[name] = out.get(name, b"") + draw(STRANGE) + b"\n"
    return out


def texts(found: dict[str, bytes], *kinds: str) -> set[tuple[str, str]]:
    return {(one.kind, pads.text_key(one.text)) for one in pads.read_pad(found).of(*kinds)}


@given(entries())
def test_an_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert pads.parse_entry(entry.kind, entry.line) == entry
    assert pads.entry_with_line(entry) == entry
    assert json.loads(entry.line)["kind"] == entry.kind
    assert all(pads.parse_entry(kind, entry.line) is None for kind in LISTS if kind != entry.kind)


def test_what_a_later_version_wrote_in_an_entry_is_kept() -> None:
    line = (
        b'{"id":"00000000","kind":"question","mood":["dim"],"session":"a","text":"why?","time":"2026-03-01T10:00:00Z"}'
    )
    entry = pads.parse_entry("question", line)
    assert entry is not None
    after = pads.entry_with_line(replace(entry, resolved="2026-03-01T11:00:00.000Z", answer="so"))
    assert json.loads(after.line) == json.loads(line) | {
        "cycle": 1, "resolved": {"time": "2026-03-01T11:00:00.000Z", "text": "so"}
    }  # fmt: skip


@given(lists())
def test_making_it_few_twice_is_making_it_few_once(found: dict[str, bytes]) -> None:
    once = pads.compact_lists(found)
    twice = pads.compact_lists(once.lists)
    assert (twice.lists, twice.doubles) == (once.lists, ())


@given(lists())
def test_making_it_few_loses_no_text(found: dict[str, bytes]) -> None:
    less = pads.compact_lists(found)
    assert texts(less.lists, *pads.DOUBLED) == texts(found, *pads.DOUBLED)
    assert texts(less.lists, "thesis", "confidence", "cycle") == texts(found, "thesis", "confidence", "cycle")
    before, after = pads.read_pad(found), pads.read_pad(less.lists)
    passes = {one.id for one in before.of("pass")}
    assert passes - {one.id for one in after.of("pass")} == {one.id for one in less.passes}
    assert len(texts(less.lists, *pads.DOUBLED)) == len(after.of(*pads.DOUBLED))
    assert after.passed == before.passed


@given(lists())
def test_making_it_few_keeps_what_is_said_of_the_doubles(found: dict[str, bytes]) -> None:
    def settled(lists: dict[str, bytes]) -> set[tuple[str, str]]:
        return {(one.kind, pads.text_key(one.text)) for one in pads.read_pad(lists).entries if one.resolved}

    assert settled(pads.compact_lists(found).lists) == settled(found)


@given(lists(), lists(), lists())
def test_both_ways_of_uniting_have_the_same_lines(
    base: dict[str, bytes], ours: dict[str, bytes], theirs: dict[str, bytes]
) -> None:
    for name in LISTS.values():
        b, o, t = (pads.split_list(one.get(name, b"")) for one in (base, ours, theirs))
        both = pads.merge_lists(name, b, b, o, t)
        assert set(both) == set(pads.merge_lists(name, b, b, t, o))
        assert pads.merge_lists(name, b, b, o, o) == list(dict.fromkeys(o))
        assert pads.merge_lists(name, b, b, o, b) == list(dict.fromkeys(o))
        assert set(pads.merge_lists(name, [], [], o, t)) == {*o, *t}
        assert len(both) == len(set(both))


@given(lists())
def test_a_child_has_no_other_entries_than_it_inherits(found: dict[str, bytes]) -> None:
    before, after = pads.read_pad(found), pads.read_pad(pads.inherited_lists(found))
    assert list(after.entries) == [one for one in before.entries if one.kind in pads.INHERITED and not one.resolved]
    assert pads.inherited_lists(pads.inherited_lists(found)) == pads.inherited_lists(found)


@given(lists())
def test_whatever_is_on_it_has_a_next_step_and_a_brief(found: dict[str, bytes]) -> None:
    read = pads.read_pad(found)
    for stage in ("", "nonsense", *STAGES):
        for sure in (None, 0.0, 1.0):
            state = Session(OWN, OWN, title="title", stage=stage, confidence=sure)
            assert pads.next_step(read, state).what
            brief = pads.pad_brief(read, state)
            assert bool(brief) == bool(read.entries)
            assert len(brief) <= pads.LONGEST_BRIEF + 100
            assert canonical.is_printable(brief.replace("\n", ""))
            brief.encode()
    assert len(pads.gains_by_cycle(read, OWN)) == pads.current_cycle(read, OWN)
    assert sum(pads.gains_by_cycle(read, OWN)) == len({
        (one.kind, pads.text_key(one.text)) for one in read.of(*pads.COUNTED) if one.session == OWN
    })  # fmt: skip


@given(lists())
def test_a_short_id_names_one_entry(found: dict[str, bytes]) -> None:
    read = pads.read_pad(found)
    shown = pads.shown_ids(read)
    assert [pads.find_entry(read, shown[one.id]) for one in read.entries] == list(read.entries)
    assert all(len(short) >= 4 for short in shown.values())


def test_an_id_that_names_none_or_several() -> None:
    entries = [Entry("0" * 7 + end, "claim", end, canonical.rfc3339(TIME), OWN) for end in "12"]
    lines = [pads.entry_with_line(entry).line for entry in entries]
    read = pads.read_pad({"claims": canonical.join_lines(lines)})
    assert pads.shown_ids(read) == {"00000001": "00000001", "00000002": "00000002"}
    with pytest.raises(AmbiguousError, match="could be any of 00000001, 00000002"):
        pads.find_entry(read, "0000")
    for nothing in ("1", ""):
        with pytest.raises(NotFoundError):
            pads.find_entry(read, nothing)


# Rules


def noted(*numbers: int, passed: bool = True) -> pads.Pad:
    """A pad with so many new insights in each cycle, and a pass in the last one."""
    made = [
        Entry(f"{cycle}{n:07}", "insight", f"{cycle}.{n}", "", OWN, None, cycle)
        for cycle, many in enumerate(numbers, start=1)
        for n in range(many)
    ]
    last = [Entry("p", "pass", "seen", "", OWN, None, len(numbers))] if passed else []
    begun = [Entry("c", "cycle", "", "", OWN, None, len(numbers))]
    return pads.Pad((*made, *last, *begun))


@pytest.mark.parametrize(
    ("numbers", "little"),
    [
        ((8,), False),
        ((8, 2), False),
        ((8, 2, 2), True),
        ((8, 3, 2), False),
        ((8, 2, 3), False),
        ((1, 1, 1), False),
        ((4, 1, 1), True),
        ((4, 1, 0, 5), False),
        ((0, 0), True),
        ((0,), False),
    ],
)
def test_returns_diminish(numbers: tuple[int, ...], little: bool) -> None:
    assert pads.has_diminishing_returns(noted(*numbers), OWN) is little


def test_a_cycle_without_a_pass_is_not_over() -> None:
    assert pads.finished_gains(noted(8, 2, 0, passed=False), OWN) == [8, 2]
    assert not pads.has_diminishing_returns(noted(8, 2, 0, passed=False), OWN)


def test_what_was_known_is_not_new_and_what_others_found_is_not_ours() -> None:
    def insight(text: str, cycle: int, session: str = OWN) -> Entry:
        return Entry("", "insight", text, "", session, None, cycle)

    found = pads.Pad((insight("a", 2), insight(" a ", 1), insight("b", 2), insight("c", 3, OTHER)))
    assert pads.gains_by_cycle(found, OWN) == [1, 1]
    assert pads.gains_by_cycle(found, OTHER) == [0, 0, 1]


def test_the_next_step_from_the_beginning_to_the_end() -> None:
    """Each step is done, and the one after it comes."""
    read, stage, told = pads.Pad(), "", []

    def note(kind: str, **more: object) -> None:
        nonlocal read
        ident = f"{len(read.entries):08x}"
        entry = Entry(ident, kind, ident, canonical.rfc3339(TIME), OWN, None, pads.current_cycle(read, OWN))
        read = pads.Pad((*read.entries, replace(entry, **more)))  # type: ignore[arg-type]

    while len(told) < 30:
        step = pads.next_step(read, Session(OWN, OWN, stage=stage))
        told.append(step.command)
        words = step.command.split()[2:]
        if not words or told[-2:] == [step.command] * 2:
            break
        if words[0] == "stage":
            pads.check_stage(stage, words[1])
            stage = words[1]
        elif words[0] == "resolve":
            read = pads.Pad(
                tuple(replace(one, resolved="now") if one.id.startswith(words[1]) else one for one in read.entries)
            )
        elif words[0] == "cycle":
            note("pass")
            note("cycle", cycle=pads.current_cycle(read, OWN) + 1)
        else:
            note(words[-2])
        if told[-1:] == ["sessgit pad stage shaping"]:
            note("claim")
            note("question")
            for _ in range(8):
                note("insight")
    assert told == [
        "sessgit pad add insight TEXT", "sessgit pad add claim TEXT", "sessgit pad stage shaping",
        "sessgit pad add tension TEXT", "sessgit pad thesis TEXT", "sessgit pad stage critiquing",
        "sessgit pad resolve 0000000c TEXT",
        *["sessgit pad add counter TEXT", "sessgit pad cycle"] * 3,
        "sessgit pad add counter TEXT", "sessgit pad stage synthesized", "sessgit fork",
    ]  # fmt: skip


@pytest.mark.parametrize("before", ["", *STAGES])
def test_a_stage_follows_the_one_before_it_and_going_back_is_free(before: str) -> None:
    allowed = []
    for after in STAGES:
        try:
            pads.check_stage(before, after)
        except UsageError as error:
            assert error.hint == f"To set it anyway: `sessgit edit --stage {after}`"
        else:
            allowed.append(after)
    assert allowed == list(STAGES[: (STAGES.index(before) if before else 0) + 2])


def test_stages_are_in_order() -> None:
    assert list(pairwise(STAGES)) == [
        ("gathering", "shaping"),
        ("shaping", "critiquing"),
        ("critiquing", "synthesized"),
    ]


def test_no_file_is_named_as_the_client_reads_it() -> None:
    line = pads.entry_with_line(Entry("", "claim", "see @/etc/passwd", canonical.rfc3339(TIME), OTHER)).line
    brief = pads.pad_brief(pads.read_pad({"claims": line}), Session(OWN, OWN, title="@~/.ssh/id"))
    assert "@/" not in brief
    assert "@~" not in brief
