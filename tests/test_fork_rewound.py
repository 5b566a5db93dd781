"""What is said of forks once they, or what they left, were rewound to before the fork point."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kept import begins
from plain import run_git
from shell import Shell
from transcripts import SESSION, Talk

FORK = "f0000001-0000-4000-8000-ffffffffffff"
PRICE = "{input = 1000, output = 1000, cache_read = 0, cache_write = 0}"


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(beginning(shell))
    shell.out("config", "prices.claude-test", PRICE)


def beginning(sessgit: Shell) -> Talk:
    return sessgit.talk().turns("one", "two", "three")


def in_fork(sessgit: Shell, session: str = FORK) -> Talk:
    """A client that has resumed the fork that sessgit wrote."""
    talk = beginning(sessgit)._copy(session)
    talk.file.lines += next(sessgit.config.glob(f"projects/*/{session}.jsonl")).read_bytes().splitlines()
    return talk


def go_on(sessgit: Shell, talk: Talk) -> None:
    sessgit.keep(talk)
    sessgit("import")


@pytest.fixture
def back(sessgit: Shell) -> Shell:
    """A fork at turn 3 with a turn of its own, rewound to turn 2 and gone on."""
    sessgit.out("fork", SESSION, "--at", "3", "--name", "other way")
    go_on(sessgit, in_fork(sessgit).turns("own four").rewind(2).turns("own three"))
    return sessgit


@pytest.fixture
def parent(sessgit: Shell) -> Shell:
    """A fork at turn 3, whose parent was rewound to turn 1 afterwards and went on."""
    sessgit.out("fork", SESSION, "--at", "3", "--name", "other way")
    go_on(sessgit, in_fork(sessgit).turns("own four"))
    go_on(sessgit, beginning(sessgit).rewind(1).turns("new two", "new three"))
    return sessgit


def card(sessgit: Shell, session: str) -> Any:
    return json.loads(sessgit.out("show", "--json", session))["session"]


def costs(sessgit: Shell) -> tuple[float, float]:
    """What the nodes of the tree used themselves, and what stats count, each turn once."""
    nodes = [node for found in sessgit.json("tree")["families"] for node in found["nodes"]]
    return round(sum(node["own_cost_usd"] for node in nodes), 6), sessgit.json("stats")["total"]["cost_usd"]


def test_the_tree_counts_what_the_fork_still_shares(back: Shell) -> None:
    assert (
        back.out("tree")
        == """\
● 5e551011  “one”                                   3 turns    2h ago  $0.33
└─ f0000001  @2  other way  “own three”        1 of 3 turns    1h ago  $0.11
  └┄ f0000001.r-a0000003  @2  left behind: 2 turns           just now  $0.11
2 conversations in 1 family.
"""
    )
    assert costs(back) == (0.55, 0.55)


def test_the_log_says_where_the_fork_leaves_now(back: Shell) -> None:
    assert back.out("log", FORK).splitlines()[1] == "          from 5e551011@2"
    assert (
        back.out("log", SESSION)
        == """\
5e551011  one  ·  ~/shop  ·  claude-test-1  ·  3 turns, 480 tokens, $0.33

● 3  10:00  three                                                            160
            About three.
├─   13:00  ↳ f0000001  other way
● 2  10:00  two                                                              160
            About two.
● 1  10:00  one                                                              160
            About one.
"""
    )


def test_cards_lists_and_pages_say_the_same(back: Shell) -> None:
    assert "Family      forked from 5e551011@2  one\n" in back.out("show", FORK)
    assert "Family      fork f0000001  other way, after turn 2\n" in back.out("show", SESSION)
    assert "f0000001  └ other way   3 turns  1h ago  $0.33  from turn 2\n" in back.out("ls")
    assert "**other way**, 3 turns, forked at turn 2 (this one)\n" in back.out("export", "markdown", FORK, "-o", "-")
    point = card(back, FORK)["family"]["origin"]["commit"]
    assert (
        back.out("show", f"{FORK}@0")
        == f"""\
f0000001@0  ·  the start  ·  13:00  ·  ~/shop
Its first 2 turns are shared with 5e551011: forked at turn 3, commit
{point[:12]}, and rewound since.
"""
    )
    assert card(back, SESSION)["family"]["forks"] == [{"id": FORK, "turn": 2, "cell": None}]


def test_a_fork_that_went_back_to_its_start_shares_nothing(sessgit: Shell) -> None:
    sessgit.out("fork", SESSION, "--at", "2.1", "--name", "other way")
    go_on(sessgit, in_fork(sessgit).rewind(0).turns("own one"))
    assert (
        sessgit.out("tree")
        == """\
● 5e551011  “one”                                 3 turns    2h ago  $0.33
└─ f0000001  @0  other way  “own one”              1 turn    1h ago  $0.11
  └┄ f0000001.r-a0000001  @0  left behind: 2 turns         just now  $0.00
2 conversations in 1 family.
"""
    )
    assert sessgit.out("log", SESSION).endswith("About one.\n├─   13:00  ↳ f0000001  other way\n")


def test_a_fork_of_a_fork_that_went_back(back: Shell) -> None:
    """It was made before that: what it left is the rewound branch now."""
    made = back.json("fork", "f0000001.r-a0000003", "--at", "4")
    assert (
        back.out("tree", SESSION)
        == f"""\
● 5e551011  “one”                                   3 turns    2h ago  $0.33
└─ f0000001  @2  other way  “own three”        1 of 3 turns    1h ago  $0.11
  └┄ f0000001.r-a0000003  @2  left behind: 2 turns           just now  $0.11
    └─ {made["id"][:8]}  @4  nothing new yet           0 of 4 turns  just now
"""
    )


def test_what_was_left_went_back_itself(parent: Shell) -> None:
    assert (
        parent.out("tree")
        == """\
● 5e551011  “one”                               3 turns    2h ago  $0.33
└┄ 5e551011.r-a0000002  @1  left behind: 2 turns           2h ago  $0.22
  └─ f0000001  @3  other way               1 of 4 turns  just now  $0.11
2 conversations in 1 family.
"""
    )
    assert costs(parent) == (0.66, 0.66)
    assert (
        parent.out("log", SESSION)
        == """\
5e551011  one  ·  ~/shop  ·  claude-test-1  ·  3 turns, 480 tokens, $0.33

● 3  10:00  new three                                                        160
● 2  10:00  new two                                                          160
┊    2 turns left behind by a rewind: 5e551011.r-a0000002
├─   13:00  ↳ f0000001  other way  (from 5e551011.r-a0000002@3)
● 1  10:00  one                                                              160
            About one.
"""
    )
    assert parent.out("log", FORK).splitlines()[1] == "          from 5e551011.r-a0000002@3"


def test_the_log_draws_it_at_the_turn_left_behind_where_it_shows_that(parent: Shell) -> None:
    found = """\
5e551011  one  ·  ~/shop  ·  claude-test-1  ·  3 turns, 480 tokens, $0.33

● 3  10:00  new three                                                        160
● 2  10:00  new two                                                          160
┊    2 turns left behind by a rewind: 5e551011.r-a0000002
├─   13:00  ↳ f0000001  other way
○ 3  10:00  three                                                            160
○ 2  10:00  two                                                              160
● 1  10:00  one                                                              160
            About one.
"""
    assert parent.out("log", SESSION, "--rewound") == found
    head, _, *turns = found.splitlines()
    turned = [turns[6], turns[7], turns[2], turns[5], turns[4], turns[3], turns[1], turns[0]]
    assert parent.out("log", SESSION, "--rewound", "--reverse").splitlines() == [head, "", *turned]


def test_the_log_of_the_branch_left_behind(parent: Shell) -> None:
    assert (
        parent.out("log", "5e551011.r-a0000002")
        == """\
5e551011.r-a0000002  one  ·  ~/shop  ·  claude-test-1
                     3 turns, 480 tokens, $0.33

├─   13:00  ↳ f0000001  other way
● 3  10:00  three                                                            160
            About three.
● 2  10:00  two                                                              160
            About two.
● 1  10:00  one                                                              160
            About one.
"""
    )


def test_cards_and_pages_of_what_was_left(parent: Shell) -> None:
    assert (
        "Family      fork f0000001  other way, after turn 1 (from 5e551011.r-a0000002@3)\n"
        "            2 turns left behind by a rewind after turn 1: 5e551011.r-a0000002\n"
    ) in parent.out("show", SESSION)
    assert "Family      forked from 5e551011.r-a0000002@3  one\n" in parent.out("show", FORK)
    assert card(parent, SESSION)["family"]["forks"] == [{"id": FORK, "turn": 1, "cell": None}]
    page = parent.out("export", "markdown", SESSION, "-o", "-")
    assert "\n  - `f0000001` other way, 4 turns, forked at turn 1\n" in page
    assert page.index("f0000001` other way", page.index("## Turn 1")) < page.index("## Turn 2")


def test_before_the_parent_has_a_turn_of_that_number_again(sessgit: Shell) -> None:
    sessgit.out("fork", SESSION, "--at", "3", "--name", "other way")
    go_on(sessgit, beginning(sessgit).rewind(1).turns("new two"))
    assert (
        sessgit.out("log", SESSION)
        == """\
5e551011  one  ·  ~/shop  ·  claude-test-1  ·  2 turns, 320 tokens, $0.22

● 2  10:00  new two                                                          160
┊    2 turns left behind by a rewind: 5e551011.r-a0000002
├─   13:00  ↳ f0000001  other way  (from 5e551011.r-a0000002@3)
● 1  10:00  one                                                              160
            About one.
"""
    )


def test_without_the_parent_in_the_store(back: Shell) -> None:
    assert back("delete", SESSION, "--yes").code == 0
    assert back.out("log", FORK).splitlines()[1] == "          from 5e551011@2"


def test_where_the_turns_left_behind_are_lost(parent: Shell) -> None:
    run_git(parent.store, "update-ref", "-d", f"refs/heads/{SESSION}.r-a0000002")
    assert (
        parent.out("tree")
        == """\
● 5e551011  “one”                       3 turns    2h ago  $0.33
└─ f0000001  @1  other way         3 of 4 turns  just now  $0.33
2 conversations in 1 family.
"""
    )
    assert costs(parent) == (0.66, 0.66)
    assert parent.out("log", SESSION).splitlines()[-3] == "├─   13:00  ↳ f0000001  other way"


def test_a_fork_in_a_turn_that_was_left_behind(sessgit: Shell) -> None:
    """Its parent went back to just before that turn, and has another one in its place."""
    sessgit.out("fork", SESSION, "--at", "3.1", "--name", "other way")
    assert sessgit.out("log", FORK).splitlines()[1] == "          from 5e551011@3.1"
    go_on(sessgit, beginning(sessgit).rewind(2).turns("new three"))
    assert sessgit.out("log", FORK).splitlines()[1] == "          from 5e551011.r-a0000003@3.1"
    assert (
        sessgit.out("tree")
        == """\
● 5e551011  “one”                                3 turns    2h ago  $0.33
└┄ 5e551011.r-a0000003  @2  left behind: 1 turn             2h ago  $0.11
  └─ f0000001  @3.1  other way              0 of 3 turns  just now
2 conversations in 1 family.
"""
    )
    assert "├─   13:00  ↳ f0000001  other way  (from 5e551011.r-a0000003@3.1)\n" in sessgit.out("log", SESSION)
    shown = sessgit.out("show", SESSION)
    assert "fork f0000001  other way, after turn 2 (from\n            5e551011.r-a0000003@3.1)\n" in shown
    assert "├─   13:00  ↳ f0000001  other way  (at 3.1)\n" in sessgit.out("log", "5e551011.r-a0000003")


def test_a_fork_in_a_turn_that_it_went_back_from(sessgit: Shell) -> None:
    sessgit.out("fork", SESSION, "--at", "3.1", "--name", "other way")
    go_on(sessgit, in_fork(sessgit).rewind(2).turns("own three"))
    assert sessgit.out("log", FORK).splitlines()[1] == "          from 5e551011@2"
    assert costs(sessgit) == (0.44, 0.44)
