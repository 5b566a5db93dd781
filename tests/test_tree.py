"""`sessgit tree`: families as a drawing."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from kept import begins
from plain import run_git
from shell import NOW, Shell
from test_cold import loaded
from transcripts import Talk

from sessgit.cli import text
from sessgit.cli.commands import tree as tree_command
from sessgit.cli.invocation import Invocation, Terminal
from sessgit.environment import Environment
from sessgit.history import tree
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.store import layout
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.store import Store

PARSER, LEXER, UPLOAD, TRIE = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abcd")
HAND, CELL = (f"f000000{n}-0000-4000-8000-{'f' * 12}" for n in (1, 3))
LEFT = f"{PARSER}.r-a0000003"
PRICE = "{input = 1000, output = 1000, cache_read = 0, cache_write = 0}"


def beginning(sessgit: Shell) -> Talk:
    talk = sessgit.talk(PARSER).prompt("write the tokenizer").tool("Write").answer("Written.").stop_lines()
    return talk.turns("why is it ambiguous?")


@begins
def family(shell: Shell) -> None:
    """A conversation with a rewind, four forks of it and of each other, and a conversation by itself."""
    parser = beginning(shell).turns("try recursion", "measure it").rewind(2).turns("try a Pratt parser", "go on")
    lexer = beginning(shell).branch(LEXER).turns("write the lexer by hand", "it fails on 1..2")
    trie = beginning(shell).branch(LEXER).turns("write the lexer by hand").branch(TRIE).turns("put them into a trie")
    upload = shell.talk(UPLOAD).turns("fix flaky upload")
    shell.recorded(parser.title("parser rewrite"), lexer.title("with a hand lexer"), trie.title(""), upload)
    shell.out("config", "prices.claude-test", PRICE)
    shell.out("fork", PARSER, "--at", "2", "--name", "a generated parser that is made of tables")
    shell.out("fork", PARSER, "--at", "1.3")


def test_the_page(family: Shell) -> None:
    assert (
        family.out("tree")
        == """\
● aaaaaaaa  parser rewrite  “write the tokenizer”       4 turns    2h ago  $0.56
├─ f0000003  @1.3  nothing new yet                  0 of 1 turn  just now
├┄ aaaaaaaa.r-a0000003  @2  left behind: 2 turns  “try recurs…”    2h ago  $0.22
├─ bbbbbbbb  @2  with a hand lexer  “write the…”   2 of 4 turns    1h ago  $0.22
│ └─ dddddddd  @3  Branched  “put them into a t…”  1 of 4 turns   59m ago  $0.11
└─ f0000001  @2  a generated parser that is made…  0 of 2 turns  just now

● cccccccc  “fix flaky upload”                           1 turn    2h ago  $0.11
6 conversations in 2 families.
"""
    )


def test_at_60_columns(family: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        family.out("tree")
        == """\
● aaaaaaaa  parser rewrite                 4 turns    2h ago
├─ f0000003  @1.3  nothing new yet     0 of 1 turn  just now
├┄ aaaaaaaa.r-a0000003  @2  left behind: 2 turns      2h ago
├─ bbbbbbbb  @2  with a hand lexer    2 of 4 turns    1h ago
│ └─ dddddddd  @3  Branched           1 of 4 turns   59m ago
└─ f0000001  @2  a generated parser…  0 of 2 turns  just now

● cccccccc  “fix flaky upload”              1 turn    2h ago
6 conversations in 2 families.
"""
    )


def test_for_programs(family: Shell) -> None:
    (found,) = family.json("tree", "dddd")["families"]
    assert found["root"] == PARSER
    keys = ("id", "parent", "fork_turn", "cell", "own_turns", "turns", "own_cost_usd", "first_words", "rewound_of")
    assert [tuple(node[key] for key in keys) for node in found["nodes"]] == [
        (PARSER, None, None, None, 4, 4, 0.56, "write the tokenizer", None),
        (CELL, PARSER, 0, "1.3", 0, 1, 0.0, "", None),
        (LEFT, PARSER, 2, None, 2, 4, 0.22, "try recursion", PARSER),
        (LEXER, PARSER, 2, None, 2, 4, 0.22, "write the lexer by hand", None),
        (TRIE, LEXER, 3, None, 1, 4, 0.11, "put them into a trie", None),
        (HAND, PARSER, 2, None, 0, 2, 0.0, "", None),
    ]
    assert found["nodes"][3] == {
        "id": LEXER,
        "parent": PARSER,
        "child_of": None,
        "role": None,
        "fork_turn": 2,
        "cell": None,
        "name": "",
        "title": "with a hand lexer",
        "turns": 4,
        "own_turns": 2,
        "updated": "2026-03-01T11:00:16.000Z",
        "cost_usd": 0.56,
        "own_cost_usd": 0.22,
        "first_words": "write the lexer by hand",
        "kind": "session",
        "rewound_of": None,
        "merged_into": [],
        "archived": False,
        "live": False,
    }


def test_own_costs_are_those_of_stats(family: Shell) -> None:
    """What the nodes used themselves is what all used, each turn counted once."""
    nodes = [node for found in family.json("tree")["families"] for node in found["nodes"]]
    assert round(sum(node["own_cost_usd"] for node in nodes), 6) == family.json("stats")["total"]["cost_usd"]


def test_without_a_price_nothing_is_said_of_cost(family: Shell) -> None:
    family.out("config", "--unset", "prices.claude-test")
    assert "$" not in family.out("tree")
    assert {node["own_cost_usd"] for node in family.json("tree", PARSER)["families"][0]["nodes"]} == {None, 0.0}


def test_git_is_loaded_only_for_turns_of_which_nothing_is_remembered(family: Shell) -> None:
    assert "pygit2" in loaded("sessgit", "tree")
    assert loaded("sessgit", "tree") == set()


def test_the_family_of_one_wherever_it_was_held(family: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = family.out("tree").split("\n\n")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    assert [family.out("tree", name).splitlines() for name in (PARSER, LEFT, "dddd")] == [whole] * 3
    assert family.out("tree") == "No conversations here; 6 in other projects: sessgit tree --all\n"
    assert family.json("tree") == {"families": [], "at_op": None}
    assert family.out("tree", "--project", str(family.project)).startswith("\n".join(whole))
    everything = family.out("tree", "--all").splitlines()
    assert (everything[0], everything[1:7]) == ("~/shop", whole)
    assert everything[-1] == "6 conversations in 2 families."


def test_a_limit_counts_families(family: Shell) -> None:
    assert family.out("tree", "-n", "1").splitlines()[-1] == "Showing the 1 most recent of 2 families."
    assert len(family.json("tree", "-n", "1")["families"]) == 1
    assert family.out("tree", "-n", "0") == "Showing the 0 most recent of 2 families.\n"


def test_what_cannot_be_drawn(family: Shell) -> None:
    assert family("tree", PARSER, "--all").err == (
        "Error: ADDRESS and --all cannot be combined.\nHint: Use one of the two.\n"
    )
    assert family("tree", "-n", "-1").code == 2
    assert family("tree", "zzzz").code == 4


def test_archived_and_open_ones_are_marked(family: Shell) -> None:
    run_git(family.store, "update-ref", f"refs/archive/{LEXER}", f"refs/heads/{LEXER}")
    run_git(family.store, "update-ref", "-d", f"refs/heads/{LEXER}")
    family.config.joinpath("sessions").mkdir(parents=True)
    alive = {"pid": os.getpid(), "sessionId": TRIE, "cwd": str(family.project)}
    (family.config / "sessions" / f"{os.getpid()}.json").write_text(json.dumps(alive))
    lines = family.out("tree").splitlines()
    assert lines[3].endswith("  archived")
    assert lines[4].endswith("  ● live")
    assert [(n["archived"], n["live"]) for n in family.json("tree", PARSER)["families"][0]["nodes"]][3:5] == [
        (True, False),
        (False, True),
    ]


def test_a_family_of_archived_ones_is_not_drawn(family: Shell) -> None:
    run_git(family.store, "update-ref", f"refs/archive/{UPLOAD}", f"refs/heads/{UPLOAD}")
    run_git(family.store, "update-ref", "-d", f"refs/heads/{UPLOAD}")
    assert family.out("tree").splitlines()[-1] == "5 conversations in 1 family."
    assert family.out("tree", UPLOAD) == "● cccccccc  “fix flaky upload”  1 turn  2h ago  $0.11  archived\n"


def test_a_fork_of_what_a_rewind_left_behind_stands_under_it(family: Shell) -> None:
    family.out("fork", LEFT, "--at", "3", "--name", "recursion after all")
    lines = family.out("tree").splitlines()
    assert [line[:50].rstrip() for line in lines[2:4]] == [
        "├┄ aaaaaaaa.r-a0000003  @2  left behind: 2 turns",
        "│ └─ f0000005  @3  recursion after all",
    ]
    run_git(family.store, "update-ref", "-d", f"refs/heads/{LEFT}")
    lines = family.out("tree").splitlines()  # its third turn stands nowhere else any more
    assert any(line.startswith("└─ f0000005  @2  recursion after all") for line in lines)


def test_a_fork_whose_parent_is_gone_says_where_it_came_from(family: Shell) -> None:
    run_git(family.store, "update-ref", "-d", f"refs/heads/{LEXER}")
    lines = family.out("tree", TRIE).splitlines()
    assert lines == ["● dddddddd  Branched  “put them into a trie”  1 of 4 turns  59m ago  $0.11", "  from bbbbbbbb@3"]
    (node,) = family.json("tree", TRIE)["families"][0]["nodes"]
    assert (node["parent"], node["fork_turn"], node["own_turns"]) == (None, 3, 1)


def merge(sessgit: Shell, ours: str, theirs: str) -> None:
    """Brings a turn of theirs into ours, and makes the commit with two parents."""
    store = Store(sessgit.store)
    old, other = (store.repo.ref(layout.head_ref(name)) for name in (ours, theirs))
    assert old and other
    state, key = store.state(old), "eeeeeeee-0000-4000-8000-eeeeeeeeeeee"
    number = state.turns + 1
    folder = store.repo.entry(store.tree(old), layout.turn_folder(state.turns))
    origin = ("Origin", f"{theirs}@4")
    graft = Message("turn 5", (("Session", ours), ("Turn", str(number)), ("Event", "graft"), ("Prompt", key), origin))
    state = replace(state, turns=number)
    turn = store.write_commit(old, {layout.turn_folder(number): folder}, state, graft, [old], int(NOW))
    message = Message(f"merge: 1 turn of {theirs}", (("Session", ours), ("Event", "merge"), origin))
    made = store.write_commit(turn, {}, state, message, [turn, other], int(NOW))
    store.repo.move(layout.head_ref(ours), old, made)


def test_merges(family: Shell) -> None:
    merge(family, PARSER, TRIE)
    family.out("fork", PARSER, "--name", "after the merge")  # which shares the turn, and merged nothing
    assert family.out("tree").splitlines()[4:7] == [
        "│ └─ dddddddd  @3  Branched  “put them into a t…”  1 of 4 turns   59m ago  $0.11",
        "│     merged into aaaaaaaa at turn 5",
        "├─ f0000001  @2  a generated parser that is made…  0 of 2 turns  just now",
    ]
    nodes = {node["id"]: node for node in family.json("tree", PARSER)["families"][0]["nodes"]}
    assert nodes[TRIE]["merged_into"] == [{"session_id": PARSER, "turn": 5}]
    assert [name for name, node in nodes.items() if node["merged_into"]] == [TRIE]
    assert (nodes[PARSER]["own_turns"], nodes[PARSER]["own_cost_usd"]) == (5, 0.56)  # theirs paid for the fifth


# Many


def test_quiet_forks_and_single_ones_fold(family: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(36):
        family.now += 60
        named = ("--name", f"way {number}") if number % 20 == 0 else ()
        family.out("fork", PARSER, "--at", "2" if number < 2 else "4", "--no-restore", *named)
    family.recorded(*(family.talk(f"{n:08x}-0000-4000-8000-{n:012x}").turns("hello") for n in range(1, 60)))
    assert (
        family.out("tree")
        == """\
● aaaaaaaa  parser rewrite  “write the tokenizer”       4 turns    3h ago  $0.56
├┄ aaaaaaaa.r-a0000003  @2  left behind: 2 turns  “try recurs…”    3h ago  $0.22
├─ bbbbbbbb  @2  with a hand lexer  “write the…”   2 of 4 turns    2h ago  $0.22
│ └─ dddddddd  @3  Branched  “put them into a t…”  1 of 4 turns    1h ago  $0.11
├─ f0000001  @2  a generated parser that is made…  0 of 2 turns   36m ago
├─ f0000005  @2  way 0                             0 of 2 turns   35m ago
├─ f0000019  @4  way 20                            0 of 4 turns   15m ago
├─ f0000025  @4  nothing new yet                   0 of 4 turns    3m ago
├─ f0000026  @4  nothing new yet                   0 of 4 turns    2m ago
├─ f0000027  @4  nothing new yet                   0 of 4 turns    1m ago
├─ f0000028  @4  nothing new yet                   0 of 4 turns  just now
└─ … 31 more forks at turns 1.3 to 4: sessgit ls --forks-of aaaaaaaa

● 00000001  “hello”                                      1 turn    3h ago  $0.11
● 00000002  “hello”                                      1 turn    3h ago  $0.11
● 00000003  “hello”                                      1 turn    3h ago  $0.11
● 00000004  “hello”                                      1 turn    3h ago  $0.11
● 00000005  “hello”                                      1 turn    3h ago  $0.11
● 00000006  “hello”                                      1 turn    3h ago  $0.11
● 00000007  “hello”                                      1 turn    3h ago  $0.11
● 00000008  “hello”                                      1 turn    3h ago  $0.11
… 52 more without forks: sessgit ls
101 conversations in 61 families.
"""
    )
    assert sum(len(found["nodes"]) for found in family.json("tree")["families"]) == 102
    monkeypatch.setenv("COLUMNS", "60")
    assert family.out("tree").splitlines()[11:13] == [
        "└─ … 31 more forks at turns 1.3 to 4",
        "     sessgit ls --forks-of aaaaaaaa",
    ]


# Hostile stores


@dataclass(frozen=True)
class Made:
    """A session as another machine may have left it in the store."""

    parent: int
    turn: int
    cell: str
    name: str
    label: bool
    turns: int
    headless: bool
    archived: bool


SESSIONS = st.builds(
    Made,
    st.integers(-1, 13),
    st.sampled_from([0, 1, 1, 1, 2, 9, 1 << 40]),
    st.sampled_from(["", "", "", "2.1", "\x1b[31m", "x.\ud800"]),
    st.sampled_from(["", "", "", "", "a name\x07", "名前"]),
    st.booleans() | st.just(False),
    st.integers(0, 9),
    st.booleans() | st.just(False),
    st.booleans() | st.just(False),
)


def ident(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def write(store: Store, number: int, made: Made) -> None:
    name = ident(number)
    rewound = ".r-00000000" if made.turn == 9 else ""
    origin = None if made.parent < 0 else Origin(ident(made.parent) + rewound, made.turn, "0" * 40, cell=made.cell)
    state = Session(
        name, name, origin=origin, name=made.name, labels=("x",) * made.label, turns=made.turns, project="/shop",
        headless=made.headless, updated=f"2026-03-01T10:{number:02d}:00.000Z",
    )  # fmt: skip
    commit = store.write_commit(None, {}, state, Message("start", (("Session", name), ("Event", "start"))), [], 1)
    store.repo.move((layout.ARCHIVE if made.archived else layout.HEADS) + name, None, commit)


def check_order(found: tree.TreeFamily) -> None:
    seen = set[str]()
    for node in found.nodes:
        assert node.parent in seen if seen else not node.parent
        seen.add(node.branch.name)
    assert found.folds.keys() <= seen


@given(st.lists(SESSIONS, max_size=14), st.sampled_from([40, 60, 80]))
def test_every_session_stands_once_whatever_the_store_says(made: list[Made], width: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        stores.create_store(path)
        store = Store(path)
        for number, one in enumerate(made):
            write(store, number, one)
        env = Environment(path, claude_homes(path), path, "", off=False)
        here = Invocation(env, "/shop", Terminal(False, False, False, width, 24, ""), now=NOW)
        everything = tree.build_forest(here.index, tree.TreeFilter(everything=True, fold=False), {})
        drawn = [node.branch.name for found in everything.families for node in found.nodes]
        assert max(Counter(drawn).values(), default=1) == 1
        listed = {ident(number) for number, one in enumerate(made) if not one.archived}
        assert listed <= set(drawn)
        for found in everything.families:
            check_order(found)
            assert any(node.branch.name in listed for node in found.nodes)
            assert tree.build_forest(
                here.index, tree.TreeFilter(found.nodes[-1].branch.name, fold=False), {}
            ).families == [found]

        folded = tree.build_forest(here.index, tree.TreeFilter(everything=True), {})
        assert sum(found.sessions for found in folded.families) + folded.quiet == len(drawn) == folded.sessions
        for found in folded.families:
            check_order(found)
        lines = list(tree_command.full(here, folded, tree.TreeFilter(everything=True)))
        assert all(line.isprintable() and text.width(line) <= width for line in lines)
        json.dumps(tree.forest_json(everything, frozenset(), {}))
        here.index.close()


def test_a_chain_of_a_thousand_forks(store: Store, index: Index) -> None:
    for number in range(1000):
        write(store, number, Made(number - 1, 1, "", "", False, 2, False, False))
    index.sync()
    (found,) = tree.build_forest(index, tree.TreeFilter(everything=True), {}).families
    assert [node.branch.name for node in found.nodes] == [ident(number) for number in range(1000)]
