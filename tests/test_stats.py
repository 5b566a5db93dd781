"""`sessgit stats`: what conversations used, each turn counted once."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Git, Keep
from shell import Shell
from strategies import Transcript, transcripts
from test_cold import loaded
from transcripts import MODEL, OTHER, SESSION, Talk, subagent

from sessgit.agents.claude import home
from sessgit.history import stats
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

PARSER, LEXER, UPLOAD = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abc")
PRICE = "{input = 1000, output = 10000, cache_read = 1, cache_write = 10}"
"""A plain turn of a `Talk` then costs $0.2015."""


@pytest.fixture
def family(sessgit: Shell) -> Talk:
    """A conversation with tools and a rewind, a fork of it by the client, and another one; prices are known."""
    parser = sessgit.talk(PARSER).title("parser rewrite")
    parser.prompt("write the tokenizer").parallel(("Read", {}, "x"), ("Bash", {}, "y")).tool("Edit").answer("Done.")
    parser.turns("try a Pratt parser").rewind(1).turns("by hand")
    lexer = parser.branch(LEXER)
    lexer.prompt("measure").tool("Bash").answer("Faster.")
    sessgit.recorded(parser, lexer, sessgit.talk(UPLOAD).turns("fix flaky upload"))
    assert sessgit("config", "prices.claude-test", PRICE).code == 0
    return parser


def by_session(sessgit: Shell) -> dict[str, tuple[int, int, int]]:
    """For each session its turns, calls and tool calls."""
    rows = sessgit.json("stats", "--by", "session")["rows"]
    return {row["key"]: (row["turns"], row["calls"], sum(row["tools"].values())) for row in rows}


# What it looks like


def test_the_summary(sessgit: Shell, family: Talk) -> None:
    assert (
        sessgit.out("stats")
        == """\
                 turns  input  output  cache  calls  tools   cost  left behind
  total              5    800     110     8k      8      4  $1.91       1 turn
  last 7 days        5    800     110     8k      8      4  $1.91       1 turn
  today              5    800     110     8k      8      4  $1.91       1 turn
  of which left behind by rewinds: 1 turn, 160 tokens, $0.20

models
  claude-test-1      5    800     110     8k      8         $1.91       1 turn

tools
  Bash 2  Edit 1  Read 1
"""
    )


def test_by_session_the_dearest_first(sessgit: Shell, family: Talk) -> None:
    assert (
        sessgit.out("stats", "--by", "session")
        == """\
  session                     turns  input  output  cache  calls  tools   cost
  aaaaaaaa  parser rewrite        3    500      70     5k      5      3  $1.21
  bbbbbbbb  Branched              1    200      30     2k      2      1  $0.50
  cccccccc  fix flaky upload      1    100      10     1k      1      0  $0.20
  total                           5    800     110     8k      8      4  $1.91
  of which left behind by rewinds: 1 turn, 160 tokens, $0.20
"""
    )
    assert sessgit.out("stats", "--by", "session", "-n", "1").splitlines()[-1] == "1 of 3 sessions; all: -n 3"


def test_a_wide_terminal_shows_bars_and_what_was_left_behind(
    sessgit: Shell, family: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert (
        sessgit.out("stats", "--by", "session", "-n", "2")
        == """\
  session                   turns  input  output  cache  calls  tools   cost  left behind
  aaaaaaaa  parser rewrite      3    500      70     5k      5      3  $1.21       1 turn  ██████████
  bbbbbbbb  Branched            1    200      30     2k      2      1  $0.50               ████
  total                         5    800     110     8k      8      4  $1.91       1 turn
  of which left behind by rewinds: 1 turn, 160 tokens, $0.20
2 of 3 sessions; all: -n 3
"""
    )


def test_a_narrow_one_leaves_out_columns(sessgit: Shell, family: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    assert (
        sessgit.out("stats", "--by", "session", "-n", "1")
        == """\
  session                turns  input   cost
  aaaaaaaa  parser rew…      3    500  $1.21
  total                      5    800  $1.91
  of which left behind by rewinds: 1 turn
    160 tokens, $0.20
1 of 3 sessions; all: -n 3
"""
    )


def test_by_tool_and_model_and_project_and_day(sessgit: Shell, family: Talk) -> None:
    assert sessgit.out("stats", "--by", "tool").splitlines()[:3] == [
        "  tool  turns  tools",
        "  Bash      2      2  ██████████",
        "  Edit      1      1  █████",
    ]
    assert sessgit.out("stats", "--by", "model").splitlines()[1].split()[:2] == ["claude-test-1", "5"]
    assert sessgit.out("stats", "--by", "project").splitlines()[1].split()[:2] == ["~/shop", "5"]
    assert sessgit.out("stats", "--by", "day").splitlines()[1].split()[:2] == ["2026-03-01", "5"]


def test_the_day_is_that_of_the_prompt_where_the_person_is(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    talk = sessgit.talk()
    talk.file.seconds = 13 * 3600 + 3590  # 23:59:50
    talk.prompt("late").answer("On the next day.").answer("Still.")
    talk.file.seconds += 60
    talk.prompt("later").answer("Yes.")
    sessgit.recorded(talk)
    assert [(row["key"], row["turns"]) for row in sessgit.json("stats", "--by", "day")["rows"]] == [
        ("2026-03-02", 1),
        ("2026-03-01", 1),
    ]
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        assert [row["key"] for row in sessgit.json("stats", "--by", "day")["rows"]] == ["2026-03-02"]
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()


def test_for_programs(sessgit: Shell, family: Talk) -> None:
    found = sessgit.json("stats", "--by", "session", "-n", "1", "--since", "2026-03-01")
    nothing = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
    part = {"cost_usd_at_least": 0.2015, "unpriced_models": [], "cost_usd": 0.2015, "calls": 1, "tools": {}}
    assert found["since"] == "2026-03-01T00:00:00.000Z"
    assert (found["by"], found["total"]["turns"], found["total"]["cost_usd"]) == ("session", 5, 1.912)
    assert found["rows"] == [
        {
            "key": PARSER,
            "title": "parser rewrite",
            "project": str(sessgit.project),
            "turns": 3,
            "tokens": {"input": 500, "output": 70, "cache_read": 5000, "cache_write": 250},
            "cost_usd": 1.2075,
            "cost_usd_at_least": 1.2075,
            "unpriced_models": [],
            "calls": 5,
            "tools": {"Bash": 1, "Edit": 1, "Read": 1},
            "left_behind": {
                "turns": 1,
                "tokens": {"input": 100, "output": 10, "cache_read": 1000, "cache_write": 50},
                **part,
            },
            "subagents": {"turns": 0, "tokens": nothing, **part, "cost_usd": 0, "cost_usd_at_least": 0, "calls": 0},
        }
    ]


# Each turn once


def test_a_fork_counts_only_what_it_added(sessgit: Shell, family: Talk) -> None:
    before = by_session(sessgit)
    assert before == {PARSER: (3, 5, 3), LEXER: (1, 2, 1), UPLOAD: (1, 1, 0)}
    forked = sessgit.out("fork", PARSER, "--at", "2").partition(" ")[0]
    assert by_session(sessgit) == before
    assert sessgit.out("stats", forked).splitlines()[1:] == [
        "Not counted: 2 turns from the conversation it was forked from.",
        "Nothing yet.",
    ]


def test_a_fork_cut_at_a_cell_leaves_the_turn_to_its_parent(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").prompt("two").tool("Bash").tool("Edit").answer("Done.")
    sessgit.recorded(talk)
    assert sessgit("fork", SESSION, "--at", "2.2").code == 0
    assert by_session(sessgit) == {SESSION: (2, 4, 2)}
    (fork,) = [s["id"] for s in sessgit.json("ls")["sessions"] if s["parent"]]
    assert sessgit.json("stats", fork)["total"]["turns"] == 0


def test_what_a_cut_turn_grew_by_counts_where_it_grew(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one").tool("Bash")
    copy = talk.fork_session(OTHER).tool("Grep").answer("Another end.")
    sessgit.recorded(copy)
    sessgit.recorded(talk)
    assert by_session(sessgit) == {SESSION: (1, 1, 1), OTHER: (0, 2, 1)}
    assert sessgit.json("stats")["total"]["turns"] == 1


def test_so_does_what_the_client_added_to_the_last_turn_of_a_fork(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").prompt("two").tool("Bash")
    sessgit.recorded(talk)
    sessgit.recorded(talk.fork_session(OTHER).tool("Grep").answer("Another end."))
    assert by_session(sessgit) == {SESSION: (2, 2, 1), OTHER: (0, 2, 1)}


def test_a_copy_that_was_recorded_first_still_counts_second(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk.fork_session(OTHER).turns("three"))
    assert by_session(sessgit) == {OTHER: (3, 3, 0)}
    sessgit.recorded(talk)
    assert by_session(sessgit) == {SESSION: (2, 2, 0), OTHER: (1, 1, 0)}


def test_what_a_rewind_left_in_one_session_and_another_still_has_is_not_lost(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    copy = talk.branch(OTHER)
    sessgit.recorded(talk.rewind(1).turns("two, otherwise"))
    assert sessgit.json("stats")["total"]["left_behind"]["turns"] == 1
    sessgit.recorded(copy)
    total = sessgit.json("stats")["total"]
    assert (total["turns"], total["left_behind"]["turns"]) == (3, 0)


def test_turns_that_only_have_the_same_ids_count_each(sessgit: Shell) -> None:
    """Programs number their messages alike in every session."""
    talk, other = sessgit.talk().turns("one", "two"), sessgit.talk(OTHER)
    for text in ("uno", "two"):
        other.prompt(text).tool("Bash").answer("Otherwise.")
    sessgit.keep(talk)
    path = sessgit.keep(other)
    alike = path.read_bytes().replace(OTHER[-12:].encode(), SESSION[-12:].encode())
    path.write_bytes(alike.replace(b'"sessionId":"%s"' % SESSION.encode(), b'"sessionId":"%s"' % OTHER.encode()))
    assert sessgit("import").code == 0
    assert by_session(sessgit) == {SESSION: (2, 2, 0), OTHER: (2, 4, 2)}
    assert sessgit.json("status")["turns"] == 4


def test_one_conversation_one_branch_and_a_turn(sessgit: Shell, family: Talk) -> None:
    rewound = next(b for b in Index(sessgit.store, lambda: Store(sessgit.store)).branches(PARSER) if "." in b.name)
    counted = {
        address: sessgit.json("stats", address)["total"]["turns"]
        for address in (PARSER, f"{PARSER}@1", f"{PARSER}@-1", f"{PARSER}@0", LEXER, rewound.name)
    }
    assert counted == {PARSER: 3, f"{PARSER}@1": 1, f"{PARSER}@-1": 2, f"{PARSER}@0": 0, LEXER: 1, rewound.name: 2}
    assert sessgit.out("stats", f"{LEXER}@3").splitlines()[:2] == [
        "bbbbbbbb@3  Branched",
        "Not counted: 2 turns from the conversation it was forked from.",
    ]


# Subagents


def agent_line(uuid: str, parent: str | None, message_id: str, tool: str = "") -> dict[str, Any]:
    usage = {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}
    content = [{"type": "tool_use", "id": f"toolu_{uuid}", "name": tool, "input": {}}] if tool else []
    message = {"id": message_id, "role": "assistant", "model": "claude-small-1", "content": content, "usage": usage}
    return {"type": "assistant", "isSidechain": True, "uuid": uuid, "parentUuid": parent, "message": message}


def append(path: Path, *lines: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_what_subagents_used_is_counted_and_told_apart(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("ask around").tool("Task").answer("Asked.")
    folder = home.project_folder(sessgit.config, str(sessgit.project))
    file = subagent(folder, talk, "scout")
    append(file, agent_line("s1", None, "m1", "Grep"), agent_line("s2", "s1", "m1", "Read"))
    sessgit.recorded(talk)
    first = sessgit.json("stats")["total"]
    assert (first["calls"], first["tools"]) == (3, {"Grep": 1, "Read": 1, "Task": 1})
    assert first["subagents"]["tokens"] == {"input": 7, "output": 3, "cache_read": 2, "cache_write": 1}
    assert first["subagents"]["tools"] == {"Grep": 1, "Read": 1}
    assert first["unpriced_models"] == ["claude-small-1", "claude-test-1"]

    # The file goes on, even in the middle of a message, while the next turn runs.
    append(file, agent_line("s3", "s2", "m1", "Bash"), agent_line("s4", "s3", "m2"))
    sessgit.keep(talk.turns("and now?"))
    sessgit.out("log", "5e55")  # which records it
    then = sessgit.json("stats")["total"]
    assert (then["turns"], then["subagents"]["turns"], then["subagents"]["calls"]) == (2, 2, 2)
    assert then["subagents"]["tokens"]["input"] == 14
    assert {row["key"]: row["turns"] for row in sessgit.json("stats", "--by", "model")["rows"]} == {
        "claude-test-1": 2,
        "claude-small-1": 2,
    }
    assert "  of which by subagents: 2 turns, 22 tokens, cost unknown" in sessgit.out("stats").splitlines()


def test_subagents_of_the_first_clients_stand_in_the_transcript(sessgit: Shell) -> None:
    talk = sessgit.talk(style="2.0").prompt("ask around").tool("Task")
    for line in (agent_line("s1", None, "m1", "Grep"), agent_line("s2", "s1", "m2")):
        talk.raw(json.dumps(line).encode())
    sessgit.recorded(talk.answer("Asked."))
    total = sessgit.json("stats")["total"]
    assert (total["calls"], total["subagents"]["calls"], total["subagents"]["tools"]) == (4, 2, {"Grep": 1})


def test_what_was_read_once_is_remembered(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))

    def opened() -> Store:
        raise AssertionError("the store was opened")

    def index() -> Index:
        return Index(sessgit.store, opened)

    first = Index(sessgit.store, lambda: Store(sessgit.store))
    expected = stats.all_shares(first)
    first.close()
    assert stats.all_shares(index()) == [s._replace(own=s.own) for s in expected]
    with closing(sqlite3.connect(sessgit.store / "index.sqlite3")) as db, db:
        db.execute("DELETE FROM gists")
    with pytest.raises(AssertionError, match="opened"):
        stats.all_shares(index())


def test_reading_tells_how_far_it_is(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two", "three"))
    for file in sessgit.store.glob("index.sqlite3*"):
        file.unlink()
    steps: list[tuple[int, int]] = []
    index = Index(sessgit.store, lambda: Store(sessgit.store))
    index.sync()
    stats.all_shares(index, lambda done, total: steps.append((done, total)))
    again: list[tuple[int, int]] = []
    stats.all_shares(index, lambda done, total: again.append((done, total)))
    assert (steps, again) == ([(0, 3), (1, 3), (2, 3), (3, 3)], [])


def test_a_damaged_turn_is_counted_as_its_commit_tells(keep: Keep, store: Store, index: Index, git: Git) -> None:
    talk = Talk().prompt("one").tool("Bash").answer("Done.").turns("two")
    keep(talk)
    before = stats.tally_shares(stats.all_shares(index)).whole
    blob = git("rev-parse", f"{SESSION}:turns/0000/000001/transcript.jsonl").strip()
    path = store.path / "objects" / blob[:2] / blob[2:]
    data = path.read_bytes()
    path.unlink()
    with closing(sqlite3.connect(store.path / "index.sqlite3")) as db, db:
        db.execute("DELETE FROM gists")
    after = stats.tally_shares(stats.all_shares(index)).whole
    before.counts["calls", MODEL, ""] = 1
    assert after == before
    path.write_bytes(data)


def test_what_is_known_loads_no_git_library(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    for arguments in (["stats"], ["stats", "--by", "session", "--json"]):
        sessgit.out(*arguments)
        assert loaded("sessgit", *arguments) == set()


# What is chosen


def test_since_and_project(sessgit: Shell, family: Talk, tmp_path: Path) -> None:
    (sessgit.project / ".git").mkdir()
    (sessgit.project / "src").mkdir()
    sessgit.recorded(sessgit.talk(OTHER, cwd=str(sessgit.project / "src")).turns("below"))
    assert [(r["key"], r["turns"]) for r in sessgit.json("stats", "--by", "project")["rows"]] == [
        (str(sessgit.project), 6)
    ]
    assert sessgit.json("stats", "--project", str(sessgit.project / "src"))["total"]["turns"] == 6
    assert sessgit.json("stats", "--project", str(tmp_path))["total"]["turns"] == 0
    assert sessgit.out("stats", "--project", str(tmp_path)) == f"Nothing in {tmp_path} yet.\n"
    assert sessgit.json("stats", "--since", "2026-03-01T10:59")["total"]["turns"] == 1
    assert sessgit.out("stats", "--since", "1h") == "Nothing since 1 Mar 2026 12:00.\n"


def test_nothing_recorded(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().bare("mode", mode="normal"))
    assert sessgit.out("stats") == "Nothing yet.\n"
    assert sessgit.json("stats", "--by", "model") == {
        "since": None,
        "by": "model",
        "rows": [],
        "total": sessgit.json("stats")["total"],
        "imported": {"sessions": 0, "tokens": 0, "cost_usd": 0},
    }


def test_wrong_words(sessgit: Shell, family: Talk) -> None:
    assert sessgit("stats", "--by", "week").code == 2
    assert sessgit("stats", "--since", "once").code == 2
    assert sessgit("stats", "-n", "-1").code == 2
    assert sessgit("stats", "zzzz").code == 4


# What is odd


def said(model: str, message_id: str, tool: str = "") -> dict[str, Any]:
    line = agent_line("", "", message_id, tool)["message"]
    return {**line, "model": model}


def test_a_turn_of_several_models_is_split(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one")
    for model in ("claude-opus-4-8", "claude-haiku-4-5", "unheard-of", "<synthetic>"):
        talk.chain("assistant", message=said(model, f"msg-{model}", "Bash"))
    sessgit.recorded(talk)
    found = sessgit.json("stats", "--by", "model")
    assert {r["key"]: (r["turns"], r["calls"], r["cost_usd"], r["tools"]) for r in found["rows"]} == {
        "claude-opus-4-8": (1, 1, 0.000117, None),
        "claude-haiku-4-5": (1, 1, 2.3e-05, None),
        "unheard-of": (1, 1, None, None),
    }
    total = found["total"]
    assert (total["turns"], total["calls"], total["cost_usd"]) == (1, 3, None)
    assert (total["cost_usd_at_least"], total["unpriced_models"]) == (0.000141, ["unheard-of"])


def test_bars_that_follow_no_column_say_what_they_follow(
    sessgit: Shell, family: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    by_cost = sessgit.out("stats", "--by", "session").splitlines()
    assert by_cost[0].endswith("  left behind")
    sessgit.out("config", "--unset", "prices.claude-test")
    for by in ("session", "day", "project"):
        head, *lines = sessgit.out("stats", "--by", by).splitlines()
        assert head.endswith("  new tokens") == any("█" in line for line in lines), by
    assert sessgit.out("stats", "--by", "session").splitlines()[0].endswith("  left behind  new tokens")
    assert "new tokens" not in sessgit.out("stats", "--by", "tool")


def test_a_cost_that_lacks_a_price_says_so(sessgit: Shell, family: Talk) -> None:
    talk = sessgit.talk(OTHER).prompt("one").chain("assistant", message=said("unheard-of", "m"))
    sessgit.recorded(talk)
    assert sessgit.out("stats").splitlines()[1].split()[-4:-2] == ["≥", "$1.91"]


def test_names_reach_no_terminal_as_they_are(sessgit: Shell) -> None:
    talk = sessgit.talk(cwd="/tmp/\x1b[2Jevil").title("a\x1b]0;b")
    talk.prompt("one").tool("To\x1b[31mol").chain("assistant", message=said("mo\x07del\n\x1b[0m", "m"))
    sessgit.recorded(talk)
    for more in ([], *(["--by", word] for word in ("model", "project", "tool", "session", "day"))):
        out = sessgit.out("stats", *more)
        assert not {c for c in out if ord(c) < 32} - {"\n"}, more


def test_turns_of_unknown_time(sessgit: Shell) -> None:
    talk = sessgit.talk()
    line = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"content": "when?"}, "sessionId": SESSION}
    sessgit.recorded(talk.raw(json.dumps(line).encode()))
    assert [row["key"] for row in sessgit.json("stats", "--by", "day")["rows"]] == [""]
    assert sessgit.out("stats", "--by", "day").splitlines()[1].startswith("  (unknown day) ")


# The law: all files' messages, each once


def in_files(files: list[bytes]) -> tuple[Counter[str], Counter[str]]:
    """The tokens by kind and tool calls by name, straight from the lines: each message of the model counts once,
    whatever files it was copied to, from the first prompt on."""
    usage: dict[tuple[str, str], dict[str, int]] = {}
    calls: dict[tuple[str, str], str] = {}
    for data in files:
        begun = False
        for raw in data.splitlines():
            line = json.loads(raw)
            writer = (line.get("uuid") or "")[-12:]
            begun = begun or (line.get("uuid") or "").startswith("a")
            if line["type"] != "assistant" or not begun:
                continue
            usage[writer, line["message"]["id"]] = line["message"]["usage"]
            for block in line["message"]["content"]:
                if block["type"] == "tool_use":
                    calls[writer, block["id"]] = block["name"]
    tokens: Counter[str] = Counter()
    for one in usage.values():
        tokens.update(one)
    return tokens, Counter(calls.values())


@settings(max_examples=40)
@given(original=transcripts(broken=False), share=st.floats(0, 1), own=st.integers(0, 2), copy_first=st.booleans())
def test_all_that_files_hold_is_counted_once(
    original: Transcript, share: float, own: int, copy_first: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("law")
    data = original.data[: original.ends[-1]] if original.ends else b""
    kept = data[: ([0, *original.ends])[round(share * len(original.ends))]]
    copy = Talk(OTHER)
    copy.leaf = None
    copied = kept.replace(SESSION.encode(), OTHER.encode())
    # The uuids of what was copied stay.
    copied = copied.replace(OTHER[-12:].encode(), SESSION[-12:].encode()).replace(
        b'"sessionId":"%s"' % SESSION.encode(), b'"sessionId":"%s"' % OTHER.encode()
    )
    for number in range(own):
        copy.prompt(f"own {number}").tool("Bash").answer("Mine.")
    files = {SESSION: data, OTHER: copied + copy.data}
    stores.create_store(folder / "store")
    store = Store(folder / "store")
    index = Index(store.path, lambda: store)
    for session in sorted(files, reverse=copy_first):
        path = folder / "claude" / "projects" / "p" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[session])
        record(
            Context(index, privacy=Privacy(RecordConfig("turn", True))),
            TranscriptSource(path, session, folder / "claude"),
        )
    index.sync()
    found = stats.all_shares(index)
    total = stats.tally_shares(found).whole
    tokens, tools = in_files(list(files.values()))
    assert (total.total.input, total.total.output) == (tokens["input_tokens"], tokens["output_tokens"])
    assert Counter(total.tools) == tools
    for what in ("day", "project", "session"):
        parts = stats.tally_by(found, what).values()
        assert sum(part.whole.turns for part in parts) == total.turns == len({share.row.prompt for share in found})
        assert sum(part.whole.total.total for part in parts) == total.total.total


@pytest.mark.parametrize("columns", [60, 80])
def test_projects_are_told_apart_by_the_ends_of_their_paths(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    above = sessgit.home / "a" / "long" / "path" / "that" / "all" / "of" / "the" / "projects" / "have" / "in" / "common"
    for number, name in enumerate(("lexer", "parser")):
        folder, session = str(above / name), f"0000000{number}-0000-4000-8000-00000000000{number}"
        Talk(session, cwd=folder).turns("one").save(home.project_folder(sessgit.config, folder))
    sessgit("import")
    for arguments in (("--by", "project"), ()):
        lines = sessgit.out("stats", *arguments).splitlines()
        assert max(map(len, lines)) <= columns
        shown = [line.split()[0] for line in lines if line.startswith("  …")]
        assert [name.rpartition("/")[2] for name in shown] == ["lexer", "parser"]
