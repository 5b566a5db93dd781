"""`sessgit export`: what is exported, where it is written, and what comes of it when it is brought in again."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import hostile
import pytest
from browser import Elements
from hypothesis import given
from hypothesis import strategies as st
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import writer as transcript
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import export
from sessgit.history.export import ExportChoice
from sessgit.history.turn_log import read_pieces
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

SHARE = "It contains what tools read and printed: check it before you share it.\n"
SECRET = "sk-ant-api03-" + "A1b2C3d4E5" * 9 + "AAAA"


def working(talk: Talk) -> Talk:
    """Four turns with all that a turn can have."""
    talk.turns("write the tokenizer")
    talk.prompt("why?").answer("Let me see.").parallel(("Read", {"file_path": "/a.py"}, "x"), ("Bash", {}, "y"))
    talk.chain("assistant", message={
        "id": "think", "role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
    })  # fmt: skip
    talk.attachment().steer("be quick").answer("Since.").stop_lines()
    talk.prompt("now fix it").tool("Edit", {"file_path": "/a.py", "old_string": "a", "new_string": "b"}).stop_lines()
    talk.compact()
    return talk.prompt("thanks").answer("Gladly.").stop_lines()


# What is exported


def test_to_a_file(sessgit: Shell) -> None:
    sessgit.recorded(working(sessgit.talk()))
    target = sessgit.project / "page.html"
    out = sessgit.out("export", "html", "5e55", "--output", str(target))
    assert out == f"Written: ~/shop/page.html, 4 turns, {target.stat().st_size / 1000:.1f} kB\n{SHARE}"
    assert (target.stat().st_mode & 0o777) == 0o644
    assert [path.name for path in sessgit.project.iterdir()] == ["page.html"]
    assert sessgit.out("export", "html", "5e55") == target.read_text("utf-8")


def test_jsonl_says_which_lines_it_leaves_out(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").prompt("two")
    for kind, content in (("user", "look"), ("assistant", [{"type": "text", "text": "seen"}])):
        talk.chain(kind, isSidechain=True, message={"role": kind, "content": content})
    talk.answer("Done.").stop_lines().bare("system", uuid="d999", parentUuid="nowhere", content="x")
    sessgit.recorded(talk.prompt("three").call_only("Bash"))
    told = (
        "Left out: 1 tool call without a result.\n"
        "Left out: 2 lines of subagents, which the client does not resume.\n"
        "Left out: 1 line whose parent is missing.\n"
    )
    for place in ("-", "lines.jsonl"):
        done = sessgit("export", "jsonl", "5e55", "-o", place)
        assert (done.code, done.err) == (0, told)
    assert '"isSidechain":true' not in (sessgit.project / "lines.jsonl").read_text("utf-8")
    assert sessgit("export", "markdown", "5e55").err == ""


def test_the_words_alone(sessgit: Shell) -> None:
    sessgit.recorded(working(sessgit.talk()))
    out = sessgit.out("export", "markdown", "5e55", "--no-tools", "-o", "-")
    said = [line for line in out.partition("## Turn 1")[2].split("\n") if line and line[0] not in "#*<"]
    assert said[:-1] == [
        "> write the tokenizer", "About write the tokenizer.", "> why?", "Let me see.", "> be quick", "Since.",
        "> now fix it", "> thanks", "Gladly.",
    ]  # fmt: skip
    done = sessgit.out("export", "markdown", "5e55", "--no-tools", "-o", "words.md")
    assert done.startswith("Written: ~/shop/words.md, 4 turns, ")
    assert SHARE not in done


@pytest.mark.parametrize(
    ("turns", "numbers"),
    [
        ("2", [2]), ("2-3", [2, 3]), ("3-", [3, 4]), ("-2", [1, 2]), ("4,1-2,2", [1, 2, 4]), (" 1 , 3 ", [1, 3]),
        ("2-2", [2]), ("1-", [1, 2, 3, 4]),
    ],
)  # fmt: skip
def test_numbers_of_turns(turns: str, numbers: list[int]) -> None:
    assert export.parse_ranges(turns, 4) == numbers


@pytest.mark.parametrize(
    ("turns", "error", "message"),
    [
        ("5", NotFoundError, "a41f has 4 turns here, there is no turn 5"),
        ("0", NotFoundError, "a41f has 4 turns here, there is no turn 0"),
        ("2-9", NotFoundError, "a41f has 4 turns here, there is no turn 9"),
        ("3-2", UsageError, "“3-2” counts backwards"),
        ("-", UsageError, "“-” is not a turn or a range of turns"),
        ("a", UsageError, "“a” is not a turn or a range of turns"),
        ("1,,2", UsageError, "“1,,2” is not a turn or a range of turns"),
        ("1-2-3", UsageError, "“1-2-3” is not a turn or a range of turns"),
        ("9999999999", UsageError, "“9999999999” is not a turn or a range of turns"),
        ("٣", UsageError, "“٣” is not a turn or a range of turns"),
    ],
)
def test_turns_that_are_none(turns: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        export.parse_ranges(turns, 4, "a41f")


def test_chosen_turns(sessgit: Shell) -> None:
    sessgit.recorded(working(sessgit.talk()))
    out = sessgit.out("export", "html", "5e55", "--turns", "4,-2")
    assert [link["id"] for link in Elements(out).all("article")] == ["turn-1", "turn-2", "turn-4"]
    value = json.loads(sessgit.out("export", "json", "5e55", "--turns", "-2"))
    assert [turn["turn"] for turn in value["turns"]] == [1, 2]
    done = sessgit("export", "html", "5e55", "--turns", "9")
    assert (done.code, done.out) == (4, "")
    assert done.err == (
        "Error: 5e551011 has 4 turns here, there is no turn 9.\nHint: `sessgit log 5e551011` lists them.\n"
    )


def test_an_address_ends_it(sessgit: Shell) -> None:
    sessgit.recorded(working(sessgit.talk()))
    value = json.loads(sessgit.out("export", "json", "5e55@-2", "--turns", "2-"))
    assert [turn["turn"] for turn in value["turns"]] == [2, 3]
    assert sessgit("export", "html", "5e55@2", "--turns", "3").code == 4
    assert sessgit("export", "html", "5e55@0").err.startswith("Error: 5e551011 has no turns to export.\n")
    assert sessgit("export", "html", "5e55@2.1").code == 2


@pytest.mark.parametrize("format_", ["html", "markdown", "json", "jsonl"])
def test_what_is_left_out_stands_in_no_title(sessgit: Shell, format_: str) -> None:
    talk = sessgit.talk().turns("the zebra thing", "two", "three")
    sessgit.recorded(talk, talk.fork_session(OTHER).turns("a fork's own"))
    assert "zebra" not in sessgit.out("export", format_, SESSION, "--turns", "2-")
    assert "zebra" not in sessgit.out("export", format_, SESSION, "--turns", "2-", "-o", ".")
    assert "zebra" in sessgit.out("export", format_, SESSION, "--turns", "1,3")


def test_the_json_is_what_show_gives(sessgit: Shell) -> None:
    sessgit.recorded(working(sessgit.talk()))
    value = json.loads(sessgit.out("export", "json", "5e55"))
    assert value["session"] == json.loads(sessgit.out("show", "5e55", "--json"))["session"]
    for turn in value["turns"]:
        noted = [piece.pop("client_note") for piece in turn["pieces"] if piece["kind"] == "call"]
        assert turn == json.loads(sessgit.out("show", f"5e55@{turn['turn']}", "--json"))["turn"]
        assert noted == [{"stdout": text} for text in {2: ["x", "y"], 3: ["done"]}.get(turn["turn"], [])]


def test_a_part_as_json_says_nothing_of_the_rest(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    talk.prompt("two").tool("Bash", {"command": "cat hidden"}, "the hidden thing").answer("done").stop_lines()
    sessgit.recorded(talk.turns("three"))
    for options in (("--turns", "1,3"), ("--no-tools",)):
        out = sessgit.out("export", "json", "5e55", *options)
        assert "hidden" not in out
        assert json.loads(out)["session"]["id"] == SESSION
    assert "hidden" in sessgit.out("export", "json", "5e55")


def test_secrets_that_were_replaced_are_told(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", f"the key is {SECRET}", "three"))
    done = sessgit.out("export", "markdown", "5e55", "-o", "a.md")
    assert done.endswith(f"{SHARE}2 secrets are redacted in it.\n")
    assert "[redacted:" in (sessgit.project / "a.md").read_text("utf-8").replace("\\", "")
    assert sessgit.out("export", "markdown", "5e55", "--turns", "3", "-o", "b.md").endswith(SHARE)
    value = json.loads(sessgit.out("export", "jsonl", "5e55", "-o", "c.jsonl", "--json"))
    assert value == {
        "schema": "sessgit.export/v1",
        "format": "jsonl", "path": str(sessgit.project / "c.jsonl"), "id": SESSION, "turns": [1, 2, 3], "tools": True,
        "bytes": (sessgit.project / "c.jsonl").stat().st_size, "redacted": 2,
    }  # fmt: skip


def test_a_fork_at_a_cell_names_it(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one").prompt("run it").tool("Bash", {"command": "x"}, "ok").answer("Done."))
    fork = sessgit.json("fork", f"{SESSION}@2.2", "--name", "stopped")["id"]
    out = sessgit.out("export", "markdown", fork)
    assert f"- `{fork[:8]}` **stopped**, 2 turns, forked at 2.2 (this one)\n" in out


def test_the_family_and_what_left(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    fork = talk.fork_session(OTHER).turns("a fork's own")
    sessgit.recorded(talk.turns("tried").rewind(2).turns("three"), fork)
    sessgit("edit", SESSION, "--name", "the first", "--label", "parser", "--description", "What it is about.")
    out = sessgit.out("export", "markdown", "the first")
    assert "> What it is about.\n" in out
    assert "| Labels | #parser |\n| Left behind | 1 turn, by rewinds |\n" in out
    assert "- `5e551011` **the first**, 3 turns (this one)\n  - `5e551011` one, 3 turns, forked at turn 2\n" in out
    after = out.partition("## Turn 2")[2].partition("## Turn 3")[0]
    assert after.endswith("*↳ `5e551011` one was forked here, 3 turns*\n\n*1 turn left behind by a rewind*\n\n")
    assert (
        "- `5e551011` the first, 3 turns\n  - `5e551011` **one**, 3 turns, forked at turn 2 (this one)"
        in sessgit.out("export", "markdown", OTHER)
    )


def test_what_is_nested_deeply_is_cut(sessgit: Shell) -> None:
    deep: Any = "at the bottom"
    for _ in range(400):
        deep = [deep]
    sessgit.recorded(sessgit.talk().prompt("go").tool("Odd", {"deep": deep, "n": float("nan")}, "x").answer("Done."))
    for format_, cut in {"html": "&#34;…&#34;]", "markdown": '"…"\n', "json": '"\\u2026"]'}.items():
        out = sessgit.out("export", format_, "5e55")
        assert "at the bottom" not in out
        assert cut in out
    assert "NaN" not in sessgit.out("export", "json", "5e55")


# Where it is written


def test_never_over_a_file(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    target = sessgit.project / "page.html"
    target.write_text("mine")
    done = sessgit("export", "html", "5e55", "-o", "page.html")
    assert (done.code, done.out, target.read_text()) == (3, "", "mine")
    assert done.err == (f"Error: {target} already exists.\nHint: It was not changed. Overwrite it with `--force`.\n")
    assert sessgit("export", "html", "5e55", "-o", "page.html", "--force").code == 0
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")
    target.unlink()
    target.symlink_to("nowhere")
    assert sessgit("export", "html", "5e55", "-o", "page.html").code == 3
    assert not (sessgit.project / "nowhere").exists()


def test_what_is_no_file_is_not_replaced(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    pipe, link = sessgit.project / "pipe", sessgit.project / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link):
        done = sessgit("export", "html", "5e55", "-o", target.name, "--force")
        assert (done.code, done.out, pipe.is_fifo(), link.is_symlink()) == (3, "", True, True)
        assert done.err == (
            f"Error: {target} is not a regular file.\nHint: It was not changed. `-o -` writes to standard output.\n"
        )


def test_into_a_folder(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("Write: the/tokenizer\x1b[1m… for “calc”, then one, two, three, four, five!"))
    sessgit.out("export", "html", "5e55", "-o", ".")
    sessgit.out("export", "jsonl", "5e55", "-o", str(sessgit.project))
    sessgit.out("export", "jsonl", "5e55", "-o", ".", "--no-tools")
    names = {path.name for path in sessgit.project.iterdir()}
    page = "5e551011-write-the-tokenizer-1m-for-calc-then-one.html"
    assert names >= {page, f"{SESSION}.jsonl"}
    (words,) = names - {page, f"{SESSION}.jsonl"}
    assert re.fullmatch(r"[0-9a-f-]{36}\.jsonl", words)
    for name in ("none/", "none/page.html"):
        done = sessgit("export", "html", "5e55", "-o", name)
        assert (done.code, done.err.splitlines()[0]) == (4, f"Error: there is no folder {sessgit.project}/none.")


def test_a_file_that_cannot_be_written_leaves_nothing(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))

    def fails(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", fails)
    done = sessgit("export", "html", "5e55", "-o", "page.html")
    assert (done.code, done.err) == (
        1,
        f"Error: cannot write {sessgit.project}/page.html: No space left on device.\n"
        "Hint: Is there room on the disk, and may you write there?\n",
    )
    assert list(sessgit.project.iterdir()) == []


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    assert export.write_export(tmp_path / "a", [b"one", b"two"]) == 6
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"onetwo")]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("html", "5e55", "5e55"), "html exports one conversation at a time."),
        (("jsonl", "5e55", "--full"), "jsonl is never shortened."),
        (("html", "5e55", "--json"), "--json describes a written file, and needs --output."),
        (("claude", "5e55"), "claude writes a folder, and needs --output."),
        (("claude", "5e55", "-o", "x", "--turns", "1"), "claude exports only whole conversations."),
        (("claude", "5e55@1", "-o", "x"), "claude exports only whole conversations."),
    ],
)
def test_what_does_not_fit_together(sessgit: Shell, arguments: tuple[str, ...], error: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    done = sessgit("export", *arguments)
    assert (done.code, done.err.splitlines()[0]) == (2, f"Error: {error}")
    if "--json" in arguments:
        assert json.loads(done.out)["error"]["message"] == error
    else:
        assert done.out == ""
    assert list(sessgit.project.iterdir()) == []


def test_a_format_that_is_none(sessgit: Shell) -> None:
    assert sessgit("export", "docx", "5e55").code == 2


@pytest.mark.parametrize("format_", ["html", "jsonl"])
def test_a_terminal_gets_no_page(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, format_: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    done = sessgit("export", format_, "5e55")
    assert (done.code, done.err) == (
        2,
        f"Error: {format_} cannot be shown on a terminal.\nHint: Use `--output FILE`, or a pipe.\n",
    )


def test_nothing_steers_a_terminal(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(hostile.talk(1))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("PAGER", "cat")
    for format_ in ("markdown", "json"):
        assert not set(sessgit.out("export", format_, SESSION)) & set("\x00\x1b\x9b\u202e\r")


def test_as_a_folder_of_the_client(sessgit: Shell) -> None:
    path = sessgit.recorded(working(sessgit.talk()), sessgit.talk(OTHER).turns("other"))
    out = sessgit.out("export", "claude", SESSION, OTHER, "-o", "folder")
    assert out.startswith("Written: ~/shop/folder, 2 conversations, ")
    copy = sessgit.project / "folder" / path.relative_to(sessgit.config)
    assert copy.read_bytes() == path.read_bytes()


# Lines in the client's own form


def told(store: Store, index: Index, name: str) -> list[Any]:
    """Of each turn its prompt, and what was said and done."""
    branch = index.branch(name)
    assert branch is not None
    out = []
    for row in index.turns(name):
        turn, pieces = read_pieces(store, branch, row)
        out.append((turn.prompt_uuid, turn.prompt, turn.answer, turn.tools, [vars_of(piece) for piece in pieces]))
    return out


def vars_of(piece: Any) -> Any:
    return getattr(piece, "text", None) or (piece.tool, dict(piece.input), piece.output)


def again(lines: export.ExportedLines, folder: Path) -> tuple[Store, Index]:
    """A new store that has the exported lines."""
    path = folder / "claude" / "projects" / "-p" / f"{lines.agent_id}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines.data)
    stores.create_store(folder / "again")
    store = Store(folder / "again")
    index = Index(store.path, lambda: store)
    record(Context(index), TranscriptSource(path, lines.agent_id, folder / "claude", final=True))
    index.sync()
    return store, index


def exported(store: Store, index: Index, name: str, turns: str = "", *, tools: bool = True) -> export.ExportedLines:
    branch = index.branch(name)
    assert branch is not None
    choice = ExportChoice(branch, None, turns, tools)
    return export.export_lines(store, choice, export.chosen_rows(index, choice))


@pytest.mark.parametrize("style", ["2.0", "2.1"])
@pytest.mark.parametrize("turns", ["", "2-3", "1,4"])
def test_lines_that_are_imported_again(
    store: Store, index: Index, keep: Any, tmp_path: Path, style: str, turns: str
) -> None:
    keep(working(Talk(style=style)))
    chosen = {"": [0, 1, 2, 3], "2-3": [1, 2], "1,4": [0, 3]}[turns]
    lines = exported(store, index, SESSION, turns)
    assert (lines.agent_id == SESSION) is (not turns)
    was = told(store, index, SESSION)
    assert told(*again(lines, tmp_path), lines.agent_id) == [was[number] for number in chosen]
    check_chain(lines)


@pytest.mark.parametrize("style", ["2.0", "2.1"])
def test_words_alone_that_are_imported_again(store: Store, index: Index, keep: Any, tmp_path: Path, style: str) -> None:
    keep(working(Talk(style=style)))
    lines = exported(store, index, SESSION, tools=False)
    assert lines.agent_id != SESSION
    said = [pieces for *_, pieces in told(*again(lines, tmp_path), lines.agent_id)]
    assert said == [
        ["write the tokenizer", "About write the tokenizer."],
        ["why?", "Let me see.", "be quick", "Since."],
        ["now fix it"],
        ["thanks", "Gladly."],
    ]
    for word in (b"tool_use", b"tool_result", b"toolUseResult", b"thinking", b"/a.py"):
        assert word not in lines.data
    check_chain(lines)


def check_chain(lines: export.ExportedLines) -> None:
    """Every parent is an earlier line, every result has its call and every call its result, ids are unique."""
    seen: set[str] = set()
    calls: set[str] = set()
    results: set[str] = set()
    for line in map(json.loads, lines.data.splitlines()):
        assert line.get("sessionId") == lines.agent_id
        if "uuid" not in line:
            continue
        assert line["parentUuid"] is None or line["parentUuid"] in seen
        assert line["uuid"] not in seen
        seen.add(line["uuid"])
        content = line.get("message", {}).get("content")
        for block in content if isinstance(content, list) else ():
            calls |= {block["id"]} if block["type"] == "tool_use" else set()
            results |= {block["tool_use_id"]} if block["type"] == "tool_result" else set()
    assert calls == results


def test_a_part_has_the_same_id_each_time(store: Store, index: Index, keep: Any) -> None:
    keep(working(Talk()))
    ids = [exported(store, index, SESSION, turns).agent_id for turns in ("2-3", "2,3", "2", "1-4")]
    assert ids[0] == ids[1] != ids[2]
    assert ids[3] == SESSION


def test_what_a_rewind_left_behind_has_an_id_of_its_own(store: Store, index: Index, keep: Any) -> None:
    keep(Talk().turns("one", "two").rewind(1).turns("three"))
    left = next(branch.name for branch in index.branches(SESSION) if branch.name != SESSION)
    assert exported(store, index, left).agent_id not in (SESSION, left)


@given(st.lists(st.sampled_from(["say", "think", "tool", "both", "steer", "meta", "prompt", "note"]), max_size=12))
def test_nothing_of_tools_is_left_and_every_word_is(steps: list[str]) -> None:
    talk, said = Talk().prompt("one"), ["one"]
    for number, step in enumerate(steps):
        word = f"word {number}"
        text, tool = {"type": "text", "text": word}, {"type": "tool_use", "id": f"t{number}", "name": "B", "input": {}}
        content = {"say": [text], "both": [text, tool], "think": [{"type": "thinking", "thinking": "hm"}]}.get(step)
        said += [word] if step in ("say", "both", "steer", "prompt") else []
        if content:
            talk.chain("assistant", message={"id": f"m{number}", "role": "assistant", "content": content})
            if step == "both":
                talk.result(f"t{number}", "out")
        elif step == "tool":
            talk.tool("Bash", {"command": "x"}, "out")
        elif step == "steer":
            talk.steer(word)
        elif step == "meta":
            talk.user("hidden", isMeta=True)
        elif step == "prompt":
            talk.prompt(word)
        else:
            talk.attachment()
    kept = [json.loads(line) for line in transcript.spoken(talk.lines)]
    assert [word for line in kept for word in words_of(line)] == said
    assert not any("toolUseResult" in line for line in kept)
    known = {None, *(line["uuid"] for line in kept)}
    assert all(line["parentUuid"] in known for line in kept)
    assert [line["parentUuid"] for line in kept] == [None, *(line["uuid"] for line in kept[:-1])]
    assert transcript.resumable([transcript.spoken(talk.lines)], SESSION).dropped_calls == 0


def words_of(line: dict[str, Any]) -> list[str]:
    if line["type"] == "attachment":
        return [line["attachment"]["prompt"]]
    content = line["message"]["content"]
    return [content] if isinstance(content, str) else [block["text"] for block in content]


# A long conversation


def test_the_turns_are_read_one_after_another(store: Store, index: Index, keep: Any) -> None:
    """What is exported is never held as a whole: a turn is read when the one before it is written."""
    keep(Talk().turns(*map(str, range(30))))
    branch = index.branch(SESSION)
    assert branch is not None
    choice, reports = ExportChoice(branch), list[tuple[int, int]]()
    rows = export.chosen_rows(index, choice)
    turns = export.read_story_turns(Context(index), choice, rows, {}, lambda done, total: reports.append((done, total)))
    assert next(turns).number == 1
    assert reports == [(0, 30)]
    assert [turn.number for turn in turns] == list(range(2, 31))
    assert reports == [(done, 30) for done in range(31)]
