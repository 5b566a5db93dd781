"""`sessgit search`: what is found, where, and how it is shown."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from homes import claude_homes
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import begins
from plain import Keep
from shell import Shell
from strategies import Transcript, transcripts
from transcripts import SESSION, Talk

from sessgit.errors import UsageError
from sessgit.history import search
from sessgit.history.search import SearchScope
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.recorder import drain
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.fulltext import TextIndex
from sessgit.store.index import Index
from sessgit.store.store import Store

PARSER, UPLOAD, ELSEWHERE = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abc")


def parser(shell: Shell) -> Talk:
    talk = shell.talk(PARSER).turns("write the tokenizer")
    talk.prompt("the grammar is ambiguous, why?").tool("Read", {"file_path": "grammar.txt"}, "expr: expr '-' expr")
    talk.answer("`1 - 2 - 3` has two trees: the rule for expr recurses on both sides.").stop_lines()
    talk.prompt("try it with a Pratt parser").tool("Bash", {"command": "pytest -q tests/test_parser.py"}, "17 passed")
    return talk.answer("Binding powers settle it.").stop_lines().title("parser rewrite")


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(parser(shell), shell.talk(UPLOAD).turns("fix the flaky upload of the grammar"))


def addresses(shell: Shell, *arguments: str) -> list[str]:
    """The addresses of what is found, the best one first, with a letter for each session."""
    done = shell("search", *arguments, "--json")
    assert (done.code, done.err) in ((0, ""), (1, "")), done
    document = json.loads(done.out)
    assert (done.code == 1) == (document["total"] == 0)
    return [re.sub(r"(.)\1{7}[^@]*", r"\1", hit["address"]) for hit in document["hits"]]


def test_the_page(sessgit: Shell) -> None:
    assert (
        sessgit.out("search", "grammar")
        == """\
aaaaaaaa@2  parser rewrite                       prompt  2h ago
    the grammar is ambiguous, why?
cccccccc@1  fix the flaky upload of the grammar  prompt  2h ago
    fix the flaky upload of the grammar
2 turns.
""".replace("cccccccc", "bbbbbbbb")
    )


def test_fewer_than_there_are(sessgit: Shell) -> None:
    assert sessgit.out("search", "grammar", "-n", "1").splitlines()[-1] == "1 of 2 turns."


def test_a_tool_and_a_long_line_at_60_columns(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    long = "so " * 60 + "the answer was wrong " + "and so on " * 60
    sessgit.recorded(
        sessgit.talk(UPLOAD)
        .turns("fix the flaky upload of the grammar")
        .prompt("go on")
        .tool("mcp__hub__find", {"what": long}, "none")
    )
    assert (
        sessgit.out("search", "wrong")
        == """\
bbbbbbbb@2.2  fix the flaky upload of the gra…  find  2h ago
    …so so so the answer was wrong and so on and so on and
    so on and so on and so on and so on and so on…
1 turn.
"""
    )


def test_what_is_found_is_bold_on_a_terminal(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("SESSGIT_PAGER", "cat")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "    the \033[1mgrammar\033[0m is \033[1mambiguous\033[0m, why?\n" in sessgit.out(
        "search", "grammar ambiguous"
    )


def test_json(sessgit: Shell) -> None:
    assert sessgit.json("search", "recurses") == {
        "query": "recurses",
        "searched": "recurses",
        "total": 1,
        "exact": True,
        "hits": [
            {
                "address": f"{PARSER}@2.3",
                "session_id": PARSER,
                "turn": 2,
                "cell": 3,
                "line": 5,
                "time": "2026-03-01T10:00:05.000Z",
                "project": str(sessgit.project),
                "title": "parser rewrite",
                "kind": "answer",
                "tool": None,
                "left_behind": False,
                "snippet": "`1 - 2 - 3` has two trees: the rule for expr recurses on both sides.",
                "matches": [[45, 53]],
            }
        ],
        "total_conversations": 0,
        "conversations": [],
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (["tokenizer"], ["a@1"]),
        (["TOKENIZER"], ["a@1"]),
        (["token"], ["a@1"]),
        (["token*"], ["a@1"]),
        (["grammar"], ["a@2", "b@1"]),
        (["grammar", "flaky"], ["b@1"]),
        (["grammar flaky"], ["b@1"]),
        (["grammar -flaky"], ["a@2"]),
        (["grammar -flaky -trees"], []),
        (["grammar", "trees"], ["a@2.3"]),
        (['"the grammar"'], ["a@2", "b@1"]),
        (['"grammar the"'], []),
        (["tokenizer OR flaky"], ["a@1", "b@1"]),
        (["test_parser.py"], ["a@3.2"]),
        (["tests/test_parser.py"], ["a@3.2"]),
        (["expr"], ["a@2.2"]),
        (["expr", "--in", "tools"], ["a@2.2"]),
        (["grammar", "--in", "prompts"], ["a@2", "b@1"]),
        (["grammar", "--in", "answers"], ["b@1.1"]),
        (["grammar", "--tool", "Read"], ["a@2.2"]),
        (["grammar", "--tool", "Bash"], []),
        (["grammar", "--session", "aaaa"], ["a@2"]),
        (["grammar", "--since", "2026-03-01T10:00:05"], ["a@2"]),
        (["grammar", "--since", "1h"], []),
        (["grammar", "--since", "today"], ["a@2", "b@1"]),
    ],
)
def test_queries(sessgit: Shell, query: list[str], found: list[str]) -> None:
    assert sorted(addresses(sessgit, *query)) == sorted(found)


def test_since_the_very_second_of_a_turn(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one grammar", "two grammars"))
    (second,) = sessgit.json("log", SESSION, "-n", "1")["turns"]
    hits = sessgit.json("search", "grammar*", "--since", second["time"], "--session", SESSION)["hits"]
    assert [hit["address"] for hit in hits] == [f"{SESSION}@2"]


def test_one_project_and_one_label(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk(ELSEWHERE, cwd=str(tmp_path)).turns("another grammar"))
    assert len(addresses(sessgit, "grammar")) == 3
    assert addresses(sessgit, "grammar", "--project", str(tmp_path)) == ["c@1"]
    assert addresses(sessgit, "grammar", "--all") == addresses(sessgit, "grammar")
    assert sessgit("search", "grammar", "--all", "--project", ".").code == 2
    assert sorted(addresses(sessgit, "grammar", "--project", ".")) == ["a@2", "b@1"]
    assert addresses(sessgit, "grammar", "--label", "odd") == []
    assert sessgit("edit", "bbbb", "--label", "odd").code == 0
    assert addresses(sessgit, "grammar", "--label", "odd") == ["b@1"]


def test_what_person_said_comes_before_what_tools_did(sessgit: Shell) -> None:
    talk = sessgit.talk(ELSEWHERE).prompt("look").tool("Bash", {"command": "grep trie"}, "trie").stop_lines()
    sessgit.recorded(talk.turns("use a trie"))
    assert addresses(sessgit, "trie") == ["c@2", "c@1.2"]


def test_all_words_in_one_line_come_first(sessgit: Shell) -> None:
    apart = sessgit.talk(ELSEWHERE).prompt("the trie").answer("It is slow.").stop_lines()
    sessgit.recorded(apart.prompt("is the trie slow").answer("No.").stop_lines())
    assert addresses(sessgit, "trie slow") == ["c@2", "c@1"]


def test_the_state_of_a_conversation_is_read_once_for_all_its_hits(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessgit.recorded(sessgit.talk(SESSION).turns("needle one", "needle two", "needle three"))
    sessgit.out("search", "needle")  # updates the index
    loads, read = sessions.loads, list[object]()

    def counted(state: Any) -> Session:
        read.append(state)
        return loads(state)

    monkeypatch.setattr(sessions, "loads", counted)
    monkeypatch.setattr(Store, "cells", None)  # a prompt is in no cell
    assert len(sessgit.json("search", "needle")["hits"]) == 3
    assert len(read) == 2  # the index's, and that of the commit, which names the agent


def test_a_fork_cut_at_a_cell_holds_what_it_took_over(sessgit: Shell) -> None:
    done = sessgit("fork", "aaaa", "--at", "2.2", "--no-restore", "--json")
    fork = json.loads(done.out)["id"]
    assert addresses(sessgit, "ambiguous") == ["a@2"]
    assert len(addresses(sessgit, "ambiguous", "--session", fork)) == 1
    assert len(addresses(sessgit, "expr", "--session", fork)) == 1
    assert addresses(sessgit, "recurses", "--session", fork) == []
    assert addresses(sessgit, "tokenizer", "--session", fork) != []


def test_nothing_found(sessgit: Shell) -> None:
    done = sessgit("search", "nothingofthekind")
    assert (done.code, done.out, done.err) == (1, "", "Nothing found.\n")
    done = sessgit("search", "nothingofthekind", "--json")
    assert (done.code, done.err) == (1, "")
    assert json.loads(done.out) == {
        "schema": "sessgit.search/v1", "query": "nothingofthekind", "searched": "nothingofthekind",
        "total": 0, "exact": True, "hits": [], "total_conversations": 0, "conversations": [],
    }  # fmt: skip


def test_what_cannot_be_asked(sessgit: Shell) -> None:
    done = sessgit("search", "=>")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "Error: “=>” contains no word.\n"
        'Hint: All words must match; "a phrase", begin*, -without and this OR that work too.\n'
    )
    assert sessgit("search", "x", "--tool", "Bash", "--in", "prompts").code == 2
    assert sessgit("search", "x", "--since", "soon").err == (
        "Error: “soon” is not a time.\nHint: Use 2d, 3h, 1w, today, yesterday, 2026-03-01 or 2026-03-01T10:00.\n"
    )
    assert sessgit("search").code == 2


def test_without_a_store(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    done = Shell(monkeypatch, capsys)("search", "x")
    assert done.code == 4
    assert done.err == (
        "Error: nothing is recorded yet: there is no store at ~/.claude/session-store.\n"
        "Hint: `sessgit install` starts recording, `sessgit import` imports older conversations.\n"
    )


def test_control_characters_stay_away(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(ELSEWHERE).turns("evil \x1b]0;owned\x07 \u202e trie"))
    out = sessgit.out("search", "evil")
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\u202e" not in out


def test_what_a_tool_printed_in_colours_is_found(sessgit: Shell) -> None:
    """With its sequences a word would begin with the number of its colour."""
    talk = sessgit.talk(ELSEWHERE).prompt("test it").tool("Bash", {"command": "make"}, "\x1b[31mFAILEDTEST\x1b[0m here")
    sessgit.recorded(talk.answer("No."))
    assert "FAILEDTEST here" in sessgit.out("search", "failedtest")


def test_an_import_leaves_nothing_to_index(sessgit: Shell) -> None:
    store = Store(sessgit.store)
    index, text = Index(sessgit.store, lambda: store), TextIndex(sessgit.store)
    assert search.is_up_to_date(index, text)
    index.close()
    text.close()


def test_the_recorder_leaves_nothing_to_index(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk(ELSEWHERE).turns("alpha"))
    payload = {"session_id": ELSEWHERE, "transcript_path": str(path), "cwd": "/", "hook_event_name": "SessionEnd"}
    (sessgit.store / "spool" / "1.json").write_text(json.dumps(payload))
    drain.drain_spool(sessgit.store, claude_homes(sessgit.config), {})
    text = TextIndex(sessgit.store)
    store = Store(sessgit.store)
    index = Index(sessgit.store, lambda: store)
    assert search.is_up_to_date(index, text)
    index.close()
    text.close()
    assert addresses(sessgit, "alpha") == ["c@1"]


def test_characters_without_spaces_between_words(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(ELSEWHERE).turns("设定を変更してください", "Größe und naïve"))
    for query in ("設定", "定设"):
        assert addresses(sessgit, query) == []
    for query in ("设定", "変更", "更して", "ください"):
        assert addresses(sessgit, query) == ["c@1"]
    for query in ("grosse", "größe", "GROSSE"):
        assert addresses(sessgit, query) == (["c@2"] if "ö" in query else [])
    assert addresses(sessgit, "naive") == addresses(sessgit, "große OR naïve") == ["c@2"]


# What holds for all


def recorded(folder: Path, data: bytes) -> Index:
    stores.create_store(folder / "store")
    store = Store(folder / "store")
    path = folder / "claude" / "projects" / "p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    index = Index(store.path, lambda: store)
    record(Context(index), TranscriptSource(path, SESSION, folder / "claude"))
    index.sync()
    return index


def asked(index: Index, query: str, **where: Any) -> set[tuple[str, int, str]]:
    """The branches, turns and prompts in which something is found."""
    results = search.search(index, query, SearchScope(**where), 10_000, 80, lambda done, all_: None)
    assert results.total == len(results.turns)
    return {(result.branch.name, result.row.turn, result.row.prompt) for result in results.turns}


@settings(max_examples=25)
@given(transcripts(broken=True))
def test_every_word_of_every_prompt_is_found(tmp_path_factory: pytest.TempPathFactory, transcript: Transcript) -> None:
    index = recorded(tmp_path_factory.mktemp("words"), transcript.data)
    store = index.open_store()
    rows = {(b.name, row.turn, row.prompt): row for b in index.branches() for row in index.turns(b.name)}
    for place, row in rows.items():
        first = json.loads(store.lines(row.commit, row.turn).body[0].removeprefix(b"\xef\xbb\xbf"))
        said = first["message"]["content"]
        text = said if isinstance(said, str) else " ".join(block.get("text", "") for block in said)
        for word in set(re.findall(r"[a-zA-Z0-9]+", text)):
            found = asked(index, word, place="prompts")
            assert found <= rows.keys()
            assert place[2] in {prompt for _, _, prompt in found}
    index.close()


HOSTILE = st.text(max_size=40) | st.text(alphabet='a*"-+:^(){}[]\\NEAR OT,.~\0é设\ud800', max_size=40)


@given(query=HOSTILE, place=st.sampled_from(["", "prompts"]), tool=HOSTILE)
def test_no_query_is_too_odd(
    tmp_path_factory: pytest.TempPathFactory, query: str, place: str, tool: str, request: pytest.FixtureRequest
) -> None:
    index = getattr(request.config, "_odd", None)
    if index is None:
        index = recorded(tmp_path_factory.mktemp("odd"), Talk().turns("NEAR a OR b", 'say "é" 设').data)
        request.config._odd = index  # type: ignore[attr-defined]
    with suppress(UsageError):
        asked(index, query, place=place, tool="" if place else tool)


def test_frequent_words(keep: Keep, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all words are in more lines than are ranked, the newest turns come first and the rest is not counted."""
    keep(Talk().turns(*("alpha gamma" if n < 15 else "alpha beta" for n in range(29)), "alpha 7"))
    monkeypatch.setattr("sessgit.history.search._MOST_ROWS", 10)

    def turns(query: str, limit: int, **where: Any) -> tuple[list[int], int | None]:
        results = search.search(index, query, SearchScope(**where), limit, 80, lambda done, all_: None)
        return [result.row.turn for result in results.turns], results.total if results.exact else None

    assert turns("alpha about", 3) == ([30, 29, 28], None)
    assert turns("alpha about -7", 3) == ([29, 28, 27], None)
    assert turns("alpha -beta", 3) == ([30, 15, 14], 16)
    assert turns("alpha gamma", 3) == ([15, 14, 13], 15)
    assert turns("beta gamma", 3) == ([], 0)
    assert turns("alpha", 50) == (list(range(30, 0, -1)), 30)
    assert turns("alpha 7", 3) == ([30], 1)
    assert turns("alpha about", 3, session=SESSION) == ([30, 29, 28], 30)
    assert turns("alpha", 3, place="answers") == ([30, 29, 28], None)


def test_sessions_with(sessgit: Shell) -> None:
    store = Store(sessgit.store)
    index = Index(sessgit.store, lambda: store)
    both, behind = search.sessions_with(index, "grammar")
    assert (set(both), behind) == ({PARSER, UPLOAD}, "")
    assert search.sessions_with(index, "flaky") == ([UPLOAD], "")
    assert search.sessions_with(index, "nothingofthekind") == ([], "")
    index.close()
