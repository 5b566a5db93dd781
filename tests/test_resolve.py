"""Addresses: what a person types, and the conversation and turn that it names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kept import begins
from plain import run_git
from shell import Shell

from sessgit.errors import UsageError
from sessgit.model.ids import Address, check_name, parse_address

PARSER, LEXER, UPLOAD = (f"{c}-0000-4000-8000-{c}0000" for c in ("a41f9c02", "a41fd00d", "0b2d7f10"))


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(
        shell.talk(PARSER).turns("write the tokenizer", "go on").title("parser rewrite"),
        shell.talk(LEXER).turns("lex"),
        shell.talk(UPLOAD).turns("fix flaky upload").title("upload"),
    )


@pytest.mark.parametrize(
    ("text", "at", "address"),
    [
        ("", None, Address()),
        ("@", None, Address()),
        ("@7", None, Address("", 7)),
        ("a41f", None, Address("a41f")),
        ("a41f@-1", None, Address("a41f", -1)),
        ("a41f@7.3", None, Address("a41f", 7, "3")),
        ("a41f@7.cell_0a1b2c3d", None, Address("a41f", 7, "cell_0a1b2c3d")),
        ("parser rewrite", "4", Address("parser rewrite", 4)),
    ],
)
def test_words_and_what_they_mean(text: str, at: str | None, address: Address) -> None:
    assert parse_address(text, at) == address


@pytest.mark.parametrize("text", ["a@x", "a@1.", "a@1.2.3", "a@@1", "a@1@2", "a@ 1", "a@99999999999", "a@-"])
def test_words_that_mean_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text)


@pytest.mark.parametrize("name", ["", " ", "-x", "a/b", "a@b", "a\nb", "a\x1bb", "x" * 101])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError):
        check_name(name)


@pytest.mark.parametrize(
    "name", ["a\u202eb", "a\x9bb", "a\u2028b", "\ud800", "0" * 40, "A" * 8 + "-0000" * 3 + "-" + "b" * 12]
)
def test_names_that_would_deceive(name: str) -> None:
    with pytest.raises(UsageError):
        check_name(name)


def found(sessgit: Shell, *address: str) -> str:
    return sessgit.out("id", *address).strip()


def test_ids_prefixes_names_and_titles(sessgit: Shell) -> None:
    made = sessgit.json("fork", "a41f9", "--name", "other way")["id"]
    for address, session in {
        PARSER: PARSER,
        "a41f9": PARSER,
        "a41f9c02@1": PARSER,
        "other way": made,
        "parser rewrite": PARSER,
        "upload": UPLOAD,
    }.items():
        assert found(sessgit, address) == session


def test_a_name_goes_before_a_title_and_a_session_before_a_rewound_branch(sessgit: Shell) -> None:
    made = sessgit.json("fork", "0b2d", "--name", "parser rewrite")["id"]
    assert found(sessgit, "parser rewrite") == made
    sessgit.recorded(sessgit.talk("77be01d3-0000-4000-8000-77be01d30000").turns("one", "two").rewind(1).turns("new"))
    assert found(sessgit, "77be") == "77be01d3-0000-4000-8000-77be01d30000"
    assert found(sessgit, "77be.r-a000") == "77be01d3-0000-4000-8000-77be01d30000.r-a0000002"


def test_a_tag_and_a_commit_name_a_turn(sessgit: Shell) -> None:
    commit = sessgit.json("log", PARSER)["turns"][0]["commit"]
    run_git(sessgit.store, "tag", "before-it-broke", commit)
    assert sessgit.out("log", "before-it-broke", "--oneline") == "a41f9c02@1 write the tokenizer\n"
    assert sessgit.out("log", commit, "--oneline") == "a41f9c02@1 write the tokenizer\n"


@pytest.mark.parametrize(
    ("address", "error"),
    [
        (
            "a41f",
            "Error: “a41f” matches 2 conversations:\n"
            f"  {PARSER}  parser rewrite\n"
            f"  {LEXER}  lex\n"
            "Hint: Type more of the id.\n",
        ),
        (
            "b4",
            "Error: no conversation starts with “b4”.\nHint: `sessgit ls --all` lists all conversations.\n",
        ),
        (
            "0b2",
            "Error: “0b2” is too short for an id.\nHint: similar: 0b2d7f10 (upload)\n",
        ),
        (
            "0b2d7f11",
            "Error: no conversation starts with “0b2d7f11”.\nHint: similar: 0b2d7f10 (upload)\n",
        ),
        (
            "a41f9c02@3",
            "Error: a41f9c02 has no turn 3; it has 2 turns.\nHint: `sessgit log a41f9c02` lists them.\n",
        ),
        (
            "0b2d@-3",
            "Error: 0b2d7f10 has no turn -3; it has 1 turn.\nHint: `sessgit log 0b2d7f10` lists them.\n",
        ),
    ],
)
def test_what_names_nothing_or_too_much(sessgit: Shell, address: str, error: str) -> None:
    done = sessgit("log", address)
    assert (done.code, done.out, done.err) == (4, "", error)


# Titles


@pytest.mark.parametrize(
    ("address", "session"),
    [
        ("parser rew", PARSER),
        ("PARSER", PARSER),
        ("write the tok…", PARSER),  # as a narrow list cuts it
        ("fix fl", UPLOAD),
        ("lex", LEXER),  # all of it
        ("upload", UPLOAD),
    ],
)
def test_the_beginning_of_a_title_or_of_a_first_prompt(sessgit: Shell, address: str, session: str) -> None:
    assert found(sessgit, address) == session
    assert sessgit.out("log", f"{address}@1", "--oneline").startswith(f"{session[:8]}@1 ")


@pytest.mark.parametrize("address", ["l", "fix", "up"])
def test_a_beginning_of_less_than_four_characters_names_nothing(sessgit: Shell, address: str) -> None:
    done = sessgit("delete", address, "--yes")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(f"Error: no conversation starts with “{address}”")


def test_several_titles_begin_alike(sessgit: Shell) -> None:
    sessgit.recorded(*(sessgit.talk(f"{n:08x}-0000-4000-8000-{n:012}").turns(f"fix the {n}th bug") for n in range(22)))
    made = sessgit.json("fork", "fix the 7", "--name", "other way")["id"]
    assert found(sessgit, "fix the 7") == f"{7:08x}-0000-4000-8000-{7:012}"
    assert found(sessgit, "other") == made
    assert sessgit("id", "fix the 1").err == "".join((
        "Error: “fix the 1” matches 11 conversations:\n",
        *(f"  {n:08x}-0000-4000-8000-{n:012}  fix the {n}th bug\n" for n in (1, *range(10, 20))),
        "Hint: Type more of the title, or an id.\n",
    ))  # fmt: skip
    assert sessgit("id", "fix the").err.splitlines()[-2:] == [
        "  and 2 more", "Hint: Type more of the title, or an id.",
    ]  # fmt: skip
    assert found(sessgit, "fix fl") == UPLOAD


def test_a_whole_title_goes_before_one_that_begins_so(sessgit: Shell) -> None:
    longer = "00000000-0000-4000-8000-000000000000"
    sessgit.recorded(sessgit.talk(longer).turns("lex it all"))
    assert found(sessgit, "lex") == LEXER
    assert found(sessgit, "lex ") == LEXER
    assert found(sessgit, "lex i") == longer


def test_titles_of_this_project_go_first(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = sessgit.home / "elsewhere"
    elsewhere.mkdir()
    other = "00000000-0000-4000-8000-000000000000"
    sessgit.recorded(sessgit.talk(other, cwd=str(elsewhere)).turns("fix flaky upload", "two"))
    assert found(sessgit, "fix flaky") == UPLOAD
    monkeypatch.chdir(elsewhere)
    assert found(sessgit, "fix flaky") == other
    assert found(sessgit, "parser") == PARSER


def test_a_tag_and_an_id_go_before_the_beginning_of_a_title(sessgit: Shell) -> None:
    words = "00000000-0000-4000-8000-000000000000"
    sessgit.recorded(sessgit.talk(words).turns("a41f9 is an id, works is a tag"))
    sessgit.out("tag", "a41", "0b2d@1")
    assert found(sessgit, "a41f9") == PARSER
    assert found(sessgit, "a41") == UPLOAD
    assert found(sessgit, "a41f9 ") == words


@pytest.mark.parametrize("address", ["mail bob@example.com", "mail bob@", "mail bob@1", "mail bob@example.com and@1"])
def test_a_title_with_an_at_sign(sessgit: Shell, address: str) -> None:
    mail = "00000000-0000-4000-8000-000000000000"
    sessgit.recorded(sessgit.talk(mail).turns("Mail bob@example.com and ann@example.com"))
    assert found(sessgit, address) == mail
    assert sessgit("fork", "mail bob@example.com", "--at", "1").code == 0


def test_titles_in_any_script(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk("00000000-0000-4000-8000-000000000000").turns("修复解析器的错误\n\nund so weiter"))
    assert found(sessgit, "修复") == "00000000-0000-4000-8000-000000000000"
    assert sessgit("id", "修解").err.startswith("Error: no conversation starts with “修解”.\n")
    assert sessgit("id", "…").code == sessgit("id", " ").code == 4


def test_the_current_session_is_the_one_that_the_client_tells(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", UPLOAD)
    assert sessgit.out("log", "--oneline") == "0b2d7f10@1 fix flaky upload\n"
    assert sessgit.out("log", "@1", "--oneline") == "0b2d7f10@1 fix flaky upload\n"
    assert found(sessgit) == UPLOAD


def test_the_client_among_the_ancestors(sessgit: Shell) -> None:
    sessions = sessgit.config / "sessions"
    sessions.mkdir(parents=True)
    document = {"pid": os.getppid(), "sessionId": UPLOAD, "cwd": "/"}
    (sessions / f"{os.getppid()}.json").write_text(json.dumps(document))
    assert found(sessgit) == UPLOAD


def test_a_guess_is_told(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk("c0ffee00-0000-4000-8000-c0ffee000000").turns("one", "two", "three", "four"))
    done = sessgit("log", "--oneline", "-n", "1")
    assert (done.out, done.err) == (
        "c0ffee00@4 four\n",
        "(using c0ffee00, the most recent conversation in this project)\n",
    )


def test_two_open_clients_and_a_command_that_changes_something(sessgit: Shell) -> None:
    sessions = sessgit.config / "sessions"
    sessions.mkdir(parents=True)
    for pid, session in ((os.getpid(), PARSER), (os.getppid(), UPLOAD)):
        # Neither is an ancestor as far as the file tells: the process that began at another time is another one.
        document = {"pid": pid, "sessionId": session, "cwd": str(sessgit.project)}
        (sessions / f"{pid}.json").write_text(json.dumps(document))
    sessgit_above = sessgit("fork")
    assert sessgit_above.code == 0  # the nearest ancestor is told, not guessed


def test_in_a_project_without_conversations(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = sessgit("log")
    assert (done.code, done.err) == (
        4,
        "Error: no conversation of this project is recorded.\n"
        "Hint: `sessgit ls --all` lists those of other projects, `sessgit import` imports older ones.\n",
    )


def test_what_nobody_recorded_is_recorded_when_it_is_named(sessgit: Shell) -> None:
    talk = sessgit.talk("5ca1ab1e-0000-4000-8000-5ca1ab1e0000").turns("one")
    sessgit.keep(talk)
    assert sessgit.out("log", "5ca1", "--oneline") == "5ca1ab1e@1 one\n"
    sessgit.keep(talk.turns("two"))
    assert sessgit.out("log", "5ca1@2", "--oneline", "-n", "1") == "5ca1ab1e@2 two\n"


def test_a_current_session_that_cannot_be_recorded(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "5ca1ab1e-0000-4000-8000-5ca1ab1e0000")
    assert found(sessgit) == "5ca1ab1e-0000-4000-8000-5ca1ab1e0000"
    done = sessgit("log")
    assert (done.code, done.err) == (
        4,
        "Error: the current conversation, 5ca1ab1e, is not recorded.\n"
        "Hint: `sessgit status` shows whether recording is on.\n",
    )


def test_a_view_that_is_older_is_told(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from sessgit.record import catch_up
    from sessgit.store import locks
    from sessgit.store.layout import StorePaths

    monkeypatch.setattr(catch_up, "LOCK_TIMEOUT", 0.05)
    path = sessgit.keep(sessgit.talk(UPLOAD).turns("fix flaky upload", "again"))
    with locks.session_lock(StorePaths(sessgit.store), UPLOAD) as held:
        assert held
        done = sessgit("log", "0b2d", "--oneline")
    assert (done.out, done.err) == (
        "0b2d7f10@1 fix flaky upload\n",
        "0b2d7f10: a recorder is writing it; this may be an older state\n",
    )
    assert path.exists()
    assert sessgit.out("log", "0b2d", "--oneline", "-n", "1") == "0b2d7f10@2 again\n"
