"""A session with which another machine went on too: its machine branch in everything that reads, shows and moves."""

from __future__ import annotations

import json

import pytest
from homes import claude_homes
from kept import begins
from machines import MACHINE, arrived, on_another, went_apart, went_on
from merging import THEIRS, assert_whole, git, prompts, transcript
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.cli import completion
from sessgit.history import client_files
from sessgit.store.index import Index
from sessgit.store.store import Store

FORK = "f0000001-0000-4000-8000-ffffffffffff"
HEADS = "for-each-ref", "--format=%(refname) %(objectname)"


@begins
def apart(shell: Shell) -> None:
    """Two turns that both machines have, then one of ours and two of the other machine's."""
    went_apart(shell)


def longer(shell: Shell, *texts: str) -> None:
    """The other machine went on, and its branch comes again from a store that shares no commit with ours."""
    theirs = went_on(shell, *texts)
    git(shell, "update-ref", "-d", f"refs/heads/{MACHINE}")
    assert arrived(shell, theirs, theirs.prompts[2], alone=True) == MACHINE


# Shown


def test_the_log(apart: Shell) -> None:
    head = "5e551011  one  ·  ~/shop  ·  claude-test-1  ·  3 turns, 480 tokens\n\n"
    three = (
        "● 3  10:00  three                                                            160\n            About three.\n"
    )
    note = "┊    2 turns in another version: 5e551011.m-a0005003\n"
    aside = """\
○ 4  10:30  measure both                                                     160
○ 3  10:30  put the tokens into a trie                                       330
"""
    rest = """\
● 2  10:00  two                                                              160
            About two.
● 1  10:00  one                                                              160
            About one.
"""
    assert apart.out("log", SESSION) == head + three + note + rest
    assert apart.out("log", SESSION, "--rewound") == head + three + note + aside + rest
    assert apart.out("log", SESSION, "--graph", "--rewound") == (
        "●  4  measure both  5e551011.m-a0005003\n●  3  put the tokens into a trie\n"
        "│ ●  3  three  5e551011 one\n├─╯\n●  2  two\n●  1  one\n"
    )
    turns = apart.json("log", SESSION, "--rewound")["turns"]
    expected = [(SESSION, 1), (SESSION, 2), (SESSION, 3), (MACHINE, 3), (MACHINE, 4)]
    assert [(turn["branch"], turn["turn"]) for turn in turns] == expected
    assert "┊" not in apart.out("log", MACHINE)


def test_the_tree(apart: Shell) -> None:
    assert (
        apart.out("tree")
        == """\
● 5e551011  “one”                                                3 turns  2h ago
└┄ 5e551011.m-a0005003  @2  another version: 2 turns  “put the tokens…”   2h ago
1 conversation.
"""
    )
    (family,) = apart.json("tree")["families"]
    keys = ("id", "kind", "parent", "fork_turn", "own_turns", "rewound_of", "live", "merged_into")
    assert [tuple(node[key] for key in keys) for node in family["nodes"]] == [
        (SESSION, "session", None, None, 3, None, False, []),
        (MACHINE, "machine", SESSION, 2, 2, None, False, []),
    ]


def test_beside_what_a_rewind_left_behind(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk)
    theirs = on_another(talk).turns("theirs")
    arrived(sessgit, theirs, theirs.prompts[2])
    sessgit.recorded(talk.turns("tried").rewind(2).turns("three"))
    log = sessgit.out("log", SESSION)
    assert "┊    1 turn in another version: 5e551011.m-a0005003\n" in log
    assert "┊    1 turn left behind by a rewind: 5e551011.r-a0000003\n" in log
    (family,) = sessgit.json("tree")["families"]
    assert [(node["kind"], node["rewound_of"]) for node in family["nodes"]] == [
        ("session", None), ("machine", None), ("rewound", SESSION)
    ]  # fmt: skip
    said = json.loads(sessgit.out("show", SESSION, "--json"))["session"]["family"]
    assert said["rewound"] == [{"branch": f"{SESSION}.r-a0000003", "turn": 2, "turns": 1, "brought_back": 0}]
    assert said["other_versions"] == [{"branch": MACHINE, "turn": 2, "turns": 1, "brought_back": 0}]
    page = sessgit.out("export", "markdown", SESSION)
    assert "| Left behind | 1 turn, by rewinds |\n| Elsewhere | 1 turn, in other versions |\n" in page
    assert "*1 turn left behind by a rewind*\n\n*1 turn in another version*\n" in page
    assert sessgit.json("stats")["total"]["left_behind"]["turns"] == 1


def test_the_list_and_the_card(apart: Shell) -> None:
    assert apart.out("ls") == "  5e551011  one           3 turns  2h ago  2 unmerged turns\n1 conversation.\n"
    (listed,) = apart.json("ls")["sessions"]
    assert (listed["missing_turns"], listed["merged_into"]) == (2, [])
    assert "Family      2 turns in another version after turn 2: 5e551011.m-a0005003\n" in apart.out("show", SESSION)
    card = apart.out("show", MACHINE)
    assert "Time        10:00 – 10:30\n" in card
    assert "Family      another version of 5e551011\n" in card
    assert "only in this store" not in card


def test_what_it_used_counts_once_and_is_not_left_behind(apart: Shell) -> None:
    total = apart.json("stats")["total"]
    assert (total["turns"], total["left_behind"]["turns"]) == (5, 0)
    by_session = apart.json("stats", "--by", "session")
    assert [(row["key"], row["turns"]) for row in by_session["rows"]] == [(SESSION, 5)]
    assert apart.json("stats", MACHINE)["total"]["turns"] == 4
    assert apart.json("stats", f"{MACHINE}@3")["total"]["turns"] == 3


def test_recorded_alone_it_counts_once_as_well(apart: Shell) -> None:
    """Of one transcript that two machines imported, the commits differ where the folders do; the prompts do not."""
    longer(apart, "and once more")
    assert apart.json("stats")["total"]["turns"] == 6
    assert "┊    3 turns in another version: 5e551011.m-a0005003\n" in apart.out("log", SESSION)


def test_a_search_tells_where_it_is_from(apart: Shell) -> None:
    assert (
        apart.out("search", "trie")
        == """\
5e551011.m-a0005003@3  one           prompt, another version  2h ago
    put the tokens into a trie
1 turn.
"""
    )
    (hit,) = apart.json("search", "trie")["hits"]
    assert (hit["address"], hit["session_id"], hit["left_behind"]) == (f"{MACHINE}@3", SESSION, False)
    assert [hit["address"].partition("@")[0] for hit in apart.json("search", "two")["hits"]] == [SESSION]
    git(apart, "update-ref", f"refs/heads/{SESSION}.r-a0005003", MACHINE)
    (hit,) = apart.json("search", "trie")["hits"]
    assert (hit["session_id"], hit["left_behind"]) == (SESSION, False)


def test_addresses(apart: Shell) -> None:
    for word in (MACHINE, "5e551011.m-a0005003", "5e55.m-a0", "5e55.m"):
        assert apart.json("log", word)["session"]["id"] == MACHINE
    assert apart.json("log", "5e55")["session"]["id"] == SESSION
    assert apart("log", "5e55.m-ffff").code == 4
    assert "5e551011.m-a0005003 has no turn 9; it has 4 turns" in apart("show", "5e55.m@9").err
    told = [("5e55.m-a0005003", "another version")]
    assert completion.addresses("5e55.") == completion.addresses("5e55.m-a") == told
    assert completion.addresses("5e55.r") == completion.addresses("5e5.") == []
    assert completion.addresses("5e55") == [("5e551011", "one")]
    assert completion.addresses("5e55.m@4") == [("5e55.m@4", "measure both")]


def test_a_title_that_both_have_means_the_head(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").title("parser")
    sessgit.recorded(talk)
    theirs = on_another(talk).turns("theirs")
    assert arrived(sessgit, theirs, theirs.prompts[1])
    sessgit.recorded(talk.turns("ours"))
    assert prompts(sessgit, "parser") == ["one", "ours"]


def test_a_name_that_would_hide_it_is_refused(apart: Shell) -> None:
    done = apart("rename", SESSION, "5e55.m")
    assert (done.code, "begins with “5e55.m”" in done.err) == (3, True), done


def test_a_tag_in_it(apart: Shell) -> None:
    assert apart.out("tag", "there", "5e55.m@4") == "there  5e551011.m-a0005003@4  measure both\n"
    assert apart.out("show", "there").startswith("5e551011.m-a0005003@4  ·")
    assert "measure both  (there)" in apart.out("log", MACHINE)


def test_a_diff_with_it(apart: Shell) -> None:
    found = apart.json("diff", SESSION, MACHINE)
    assert (found["shared_turns"], found["base"]["turn"]) == (2, 2)
    assert [len(found[side]) for side in ("only_a", "only_b")] == [1, 2]


# What goes on from it


def test_a_fork_of_it_stands_under_it(apart: Shell) -> None:
    apart.out("fork", MACHINE)
    assert prompts(apart, FORK) == ["one", "two", "put the tokens into a trie", "measure both"]
    assert (
        apart.out("tree")
        == """\
● 5e551011  “one”                                              3 turns    2h ago
└┄ 5e551011.m-a0005003  @2  another version: 2 turns  “put the token…”    2h ago
  └─ f0000001  @4  nothing new yet                        0 of 4 turns  just now
2 conversations in 1 family.
"""
    )
    assert apart.out("log", SESSION).splitlines()[4:6] == [
        "┊    2 turns in another version: 5e551011.m-a0005003",
        "├─   13:00  ↳ f0000001  one  (from 5e551011.m-a0005003@4)",
    ]
    assert "├─   13:00  ↳ f0000001  one\n● 4" in apart.out("log", MACHINE)
    assert "from 5e551011.m-a0005003@4" in apart.out("ls")
    assert_whole(apart, FORK)


def test_a_fork_of_the_head_in_the_log_of_the_branch(apart: Shell) -> None:
    """It left after a turn that the branch lacks."""
    apart.out("fork", SESSION)
    assert "├─   13:00  ↳ f0000001  one  (from 5e551011@3)\n● 2" in apart.out("log", MACHINE)
    assert "├─   13:00  ↳ f0000001  one\n● 3" in apart.out("log", SESSION)


def test_it_is_continued_as_a_fork_alone(apart: Shell) -> None:
    resumed, merged = apart("resume", MACHINE, "--print"), apart("merge", SESSION, "--into", MACHINE)
    assert (resumed.code, resumed.out, merged.code, merged.out) == (2, "", 2, "")
    hint = "`sessgit fork 5e551011.m-a0005003 --run` makes it a conversation of its own."
    assert resumed.err.endswith(f"\nHint: {hint}\n")
    assert merged.err.endswith("\nHint: `sessgit fork 5e551011.m-a0005003` makes it a conversation.\n")


def test_its_lines_have_an_id_of_their_own(apart: Shell) -> None:
    apart.out("export", "jsonl", MACHINE, "-o", "theirs.jsonl")
    apart.out("export", "jsonl", SESSION, "-o", "ours.jsonl")
    ids = [
        {json.loads(line)["sessionId"] for line in (apart.project / f"{name}.jsonl").read_bytes().splitlines()}
        for name in ("ours", "theirs")
    ]
    assert (ids[0], SESSION in ids[1]) == ({SESSION}, False)


def test_it_is_no_conversation_that_the_client_lost(apart: Shell) -> None:
    transcript(apart).unlink()
    index = Index(apart.store, lambda: Store(apart.store))
    index.sync()
    assert client_files.lost_sessions(index, claude_homes(apart.config)) == [SESSION]
    index.close()
    apart.out("restore", SESSION)
    assert_whole(apart)


# Brought back


def test_merged_it_is_drawn_as_merged(apart: Shell) -> None:
    apart.out("merge", MACHINE, "--into", SESSION, "--mode", "graft")
    assert prompts(apart) == ["one", "two", "three", "put the tokens into a trie", "measure both"]
    log = apart.out("log", SESSION)
    assert "┊    2 turns in another version, merged: 5e551011.m-a0005003\n" in log
    assert "○─┐  merged 5e551011.m-a0005003  one (2 turns)\n● 5" in log
    tree = apart.out("tree").splitlines()
    assert tree[1].startswith("└┄ 5e551011.m-a0005003  @2  another version: 2 turns")
    assert tree[2] == "    merged into 5e551011 at turn 5"
    assert "elsewhere" not in apart.out("ls")
    (listed,) = apart.json("ls")["sessions"]
    assert listed["missing_turns"] == 0
    assert "another version after turn 2, merged:" in apart.out("show", SESSION)
    page = apart.out("export", "markdown", SESSION)
    assert "another version" not in page
    assert "Elsewhere" not in page
    assert apart.json("stats")["total"]["turns"] == 5
    again = apart("merge", MACHINE, "--into", SESSION)
    assert (again.code, again.out) == (0, "")
    assert "already" in again.err
    assert_whole(apart)


def test_a_summary_of_it_brings_all_back(apart: Shell) -> None:
    apart.out("merge", MACHINE, "--into", SESSION)
    told = apart.out("show", f"{SESSION}@4")
    assert "Merged from 5e551011.m-a0005003, “one”: 2 turns since turn 2" in told
    assert "another version of this conversation: both have the first 2 turns," in " ".join(told.split())
    assert "2 turns in another version, merged: 5e551011.m-a0005003" in apart.out("log", SESSION)
    assert_whole(apart)


def test_what_came_later_is_still_open(apart: Shell) -> None:
    apart.out("merge", MACHINE, "--into", SESSION, "--mode", "graft")
    longer(apart, "and once more")
    assert "3 turns in another version, 2 of them merged: 5e551011.m-a0005003" in apart.out("log", SESSION)
    assert "1 unmerged turn" in apart.out("ls")
    apart.out("merge", MACHINE, "--into", SESSION, "--mode", "graft")
    assert prompts(apart)[3:] == ["put the tokens into a trie", "measure both", "and once more"]
    assert "elsewhere" not in apart.out("ls")
    assert_whole(apart)


def test_a_picked_turn_that_has_the_same_number_there(apart: Shell) -> None:
    """Turn 4 of both is the same one then; what stands before it is not."""
    apart.out("pick", f"{MACHINE}@4", "--into", SESSION)
    assert prompts(apart)[3:] == ["measure both"]
    assert "2 turns in another version, 1 of them merged: 5e551011.m-a0005003" in apart.out("log", SESSION)
    refused = apart("pick", f"{MACHINE}@4", "--into", SESSION)
    assert refused.code == 2
    assert "Error: turn 4 of 5e551011.m-a0005003 is already in 5e551011." in refused.err
    assert_whole(apart)


def test_undoing_the_merge(apart: Shell) -> None:
    before = apart.out("log", SESSION)
    apart.out("merge", MACHINE, "--into", SESSION, "--mode", "graft")
    assert apart.out("log", SESSION) != before
    apart.out("undo")
    assert apart.out("log", SESSION) == before


# Moved


def test_it_goes_where_its_session_goes(apart: Shell) -> None:
    before = git(apart, *HEADS)
    apart.out("archive", SESSION)
    assert git(apart, *HEADS) == before.replace("refs/heads/", "refs/archive/")
    assert prompts(apart, MACHINE)[2:] == ["put the tokens into a trie", "measure both"]
    assert "2 unmerged turns" in apart.out("ls", "--only-archived")
    apart.out("undo")
    assert git(apart, *HEADS) == before
    told = apart.json("delete", SESSION, "--yes")["deleted"]
    assert [(one["rewound"], one["other_versions"]) for one in told] == [(0, 1)]
    assert [ref.split()[0] for ref in git(apart, *HEADS, "refs/heads").splitlines()] == []
    apart.out("undo")
    assert git(apart, *HEADS, "refs/heads") == before
    apart.out("gc", "--prune", "--yes")
    assert prompts(apart, MACHINE)[2:] == ["put the tokens into a trie", "measure both"]


def test_what_goes_with_it_is_asked(apart: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sessgit.cli.render.ask", lambda question: False)
    done = apart("delete", MACHINE)
    assert (done.code, "  1 branch of other versions\n" in done.err) == (1, True), done


# Recorded


def test_the_recorder_leaves_it_alone(apart: Shell) -> None:
    there = git(apart, "rev-parse", MACHINE)
    talk = apart.talk().turns("one", "two", "three")
    apart.recorded(talk.turns("four"))
    assert prompts(apart) == ["one", "two", "three", "four"]
    apart.recorded(talk.rewind(2).turns("again"))
    assert prompts(apart) == ["one", "two", "again"]
    assert git(apart, "rev-parse", MACHINE) == there
    assert prompts(apart, f"{SESSION}.r-a0000003")[2:] == ["three", "four"]
    assert_whole(apart)


def test_the_other_machines_file_in_the_place_of_ours(apart: Shell) -> None:
    """What its file says is the head's now; what ours said is left behind, and nothing counts twice."""
    apart.recorded(went_on(apart, "on"))
    assert prompts(apart) == ["one", "two", "put the tokens into a trie", "measure both", "on"]
    assert prompts(apart, f"{SESSION}.r-a0000003") == ["one", "two", "three"]
    log = apart.out("log", SESSION)
    assert "1 turn left behind by a rewind: 5e551011.r-a0000003" in log
    assert "another version" not in log
    assert "elsewhere" not in apart.out("ls")
    assert apart.json("stats")["total"]["turns"] == 6


def test_a_prompt_on_a_line_that_only_the_other_machine_has(apart: Shell) -> None:
    """No line of the file has this uuid: the turn follows the one that the file ends with."""
    there = git(apart, "rev-parse", MACHINE)
    talk = apart.talk().turns("one", "two", "three")
    talk.leaf = "b0005003-0000-4000-8000-000000000001"
    apart.recorded(talk.turns("on"))
    assert prompts(apart) == ["one", "two", "three", "on"]
    assert git(apart, "rev-parse", MACHINE) == there
    assert "2 turns in another version: 5e551011.m-a0005003" in apart.out("log", SESSION)


def test_a_session_that_a_fork_is_linked_to_later(sessgit: Shell) -> None:
    """Only the fork's head is linked: its machine branch is not ours to write."""
    fork = sessgit.talk().turns("one", "two").fork_session(OTHER).turns("on")
    theirs = on_another(fork).turns("theirs")
    sessgit.recorded(fork)
    name = arrived(sessgit, theirs, theirs.prompts[-1])
    there = git(sessgit, "rev-parse", name)
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    assert {one["id"]: one["parent"] for one in sessgit.json("ls")["sessions"]} == {SESSION: None, OTHER: SESSION}
    assert git(sessgit, "rev-parse", name) == there


# Lists of what was merged


def test_a_fork_that_was_merged_is_marked(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    fork = talk.fork_session(THEIRS).turns("tried", "measured")
    sessgit.recorded(talk.turns("three"), fork)
    assert "merged" not in sessgit.out("ls")
    sessgit.out("pick", f"{THEIRS}@3", "--into", SESSION)
    assert "merged" not in sessgit.out("ls")
    sessgit.out("merge", THEIRS, "--into", SESSION, "--mode", "graft")
    assert "from turn 2, merged\n" in sessgit.out("ls")
    assert {one["id"]: one["merged_into"] for one in sessgit.json("ls")["sessions"]} == {SESSION: [], THEIRS: [SESSION]}
    sessgit.recorded(fork.turns("and on"))
    assert "merged" not in sessgit.out("ls")
