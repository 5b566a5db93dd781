"""Rewinds, two writers and compactions: what becomes of the branches."""

from __future__ import annotations

from pictures import branches, joined, log, prompts, rewound, state, text, tree
from plain import Keep
from transcripts import SESSION, Talk

from sessgit.model.conversation.message import Message
from sessgit.store import layout
from sessgit.store.store import Store

TURN_1 = "turns/0000/000001"
TURN_2 = "turns/0000/000002"

# Rewinds


def test_a_rewind_leaves_a_branch(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two", "three")
    keep(talk)
    old = branches(store)[SESSION]
    keep(talk.rewind(1).turns("two again"))
    assert branches(store) == {SESSION: branches(store)[SESSION], rewound(2): old}
    assert log(store, SESSION) == ["start: /home/ada/shop", "turn 1: one", "turn 2: two again"]
    assert log(store, rewound(2)) == ["start: /home/ada/shop", "turn 1: one", "turn 2: two", "turn 3: three"]
    assert tree(store, branches(store)[SESSION])[-3:] == [
        f"{TURN_2}/before.jsonl",
        f"{TURN_2}/cells.jsonl",
        f"{TURN_2}/transcript.jsonl",
    ]


def test_a_rewind_to_the_start(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one", "two").rewind(0).turns("anew"))
    assert {name: log(store, name) for name in branches(store)} == {
        SESSION: ["start: /home/ada/shop", "turn 1: anew"],
        rewound(1): ["start: /home/ada/shop", "turn 1: one", "turn 2: two"],
    }


def test_a_rewind_to_the_start_of_what_is_recorded(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk, final=True)
    keep(talk.rewind(0).turns("anew"))
    assert log(store, SESSION) == ["start: /home/ada/shop", "turn 1: anew"]


def test_going_on_with_a_rewound_branch_exchanges_the_names(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two", "three").rewind(1).turns("two again")
    keep(talk)
    keep(talk.rewind(3).turns("four"))
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: [talk.prompts[n] for n in (0, 1, 2, 4)],
        rewound(4): [talk.prompts[n] for n in (0, 3)],
    }
    keep(talk.rewind(4).turns("three at last"))
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: [talk.prompts[n] for n in (0, 3, 5)],
        rewound(2): [talk.prompts[n] for n in (0, 1, 2, 4)],
    }


def test_two_rewinds_from_one_line_of_turns(keep: Keep, store: Store) -> None:
    """The second leaves the same first turn behind as the first did: its branch has the next turn's name."""
    talk = Talk().turns("one", "two", "three").rewind(1).turns("aside").rewind(2).turns("three again")
    keep(talk.rewind(1).turns("enough"))
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: [talk.prompts[n] for n in (0, 5)],
        rewound(2): [talk.prompts[n] for n in (0, 1, 2)],
        rewound(4): [talk.prompts[n] for n in (0, 3)],
        rewound(5): [talk.prompts[n] for n in (0, 1, 4)],
    }


def test_a_rewind_into_the_middle_of_a_turn_comes_after_that_turn(keep: Keep, store: Store) -> None:
    talk = Talk().prompt("one").tool("Bash", {}, "a")
    middle = talk.leaf
    talk.answer("Done.").turns("two")
    talk.leaf = middle
    keep(talk.turns("two again"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two again"]


def test_the_state_follows_the_session_through_a_rewind(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two").title("Kept")
    keep(talk, final=True)
    keep(talk.rewind(1).turns("again"))
    found = state(store, SESSION)
    assert (found["metadata"]["title"], found["trajectory"]) == ("Kept", {"turns": 2, "messages": 4})
    assert found["metadata"]["created_at"] == "2026-03-01T10:00:01.000Z"


def test_the_pad_follows_the_session(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two").rewind(1).turns("two again")
    keep(talk)
    put_pad(store, "Look at the lexer.\n")
    keep(talk.rewind(2).turns("three"))
    assert text(store, branches(store)[SESSION], "pad/insights.md") == "Look at the lexer.\n"
    keep(talk.rewind(1).turns("two at last"))
    assert text(store, branches(store)[SESSION], "pad/insights.md") == "Look at the lexer.\n"


def put_pad(store: Store, words: str) -> None:
    tip = branches(store)[SESSION]
    blob = store.repo.write_blob(words.encode())
    commit = store.write_commit(
        tip,
        {"pad/insights.md": (blob, False)},
        store.state(tip),
        Message("edit: pad", (("Session", SESSION), ("Event", "edit"))),
        [tip],
        1772359300,
    )
    store.repo.move(layout.head_ref(SESSION), tip, commit)


def test_two_writers_give_two_branches_however_often_they_alternate(keep: Keep, store: Store) -> None:
    left = Talk().turns("base")
    right = left.writer()
    for number in range(3):
        left.prompt(f"left {number}")
        right.prompt(f"right {number}")
        right.answer("Right.")
        left.answer("Left.").stop_lines()
        keep(left)
        right.stop_lines()
    assert {name: log(store, name)[1:] for name in branches(store)} == {
        SESSION: ["turn 1: base", "turn 2: right 0", "turn 3: right 1", "turn 4: right 2"],
        rewound(2): ["turn 1: base", "turn 2: left 0", "turn 3: left 1", "turn 4: left 2"],
    }
    for name, word in ((SESSION, "Left."), (rewound(2), "Right.")):
        for number in (2, 3, 4):
            body = text(store, branches(store)[name], f"turns/0000/{number:06d}/transcript.jsonl")
            assert word not in body


# Compaction


def test_a_compaction_between_turns(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one")
    first = len(talk.lines)
    talk.compact()
    last = len(talk.lines)
    keep(talk)
    assert log(store, SESSION)[1:] == ["turn 1: one"]
    keep(talk.turns("two"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "compact: the conversation so far into a summary", "turn 2: two"]
    tip = branches(store)[SESSION]
    assert text(store, tip, f"{TURN_2}/before.jsonl") == joined(talk.lines[3:last])
    compact = store.commit(tip).parents[0]
    assert text(store, compact, "tail.jsonl") == joined(talk.lines[3:last])
    assert talk.lines[first] in talk.lines[3:last]
    assert "tail.jsonl" not in tree(store, tip)


def test_a_compaction_in_mid_turn_belongs_to_the_turn(keep: Keep, store: Store) -> None:
    talk = Talk().prompt("one").tool("Bash", {}, "x").compact(auto=True).answer("On.").stop_lines().turns("two")
    keep(talk)
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two"]
    assert "compact_boundary" in text(store, branches(store)[SESSION], f"{TURN_1}/transcript.jsonl")


def test_a_rewind_to_a_compaction_has_its_lines_too(keep: Keep, store: Store) -> None:
    """Both turns hang on the summary, and each is to be read without the other."""
    talk = Talk().turns("one").compact()
    summary = talk.leaf
    talk.turns("two")
    keep(talk)
    talk.leaf = summary
    keep(talk.turns("two again"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two again"]
    before = text(store, branches(store)[SESSION], f"{TURN_2}/before.jsonl")
    assert before.count("compact_boundary") == 1
    assert before.startswith(joined(talk.lines[8:14]))
