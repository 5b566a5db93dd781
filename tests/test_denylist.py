"""What is kept out after a purge: listed, lifted, and told when it is not kept out any more. And what a purge says."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from purging import SESSION, VALUE, git, holders
from secret_samples import pem
from shell import Done, Shell
from transcripts import OTHER

from sessgit.store import secret_filter
from sessgit.store import store as stores
from sessgit.store.layout import StorePaths

SECRET = "ghp" + "_" + "a1B2" * 9


def listed(sessgit: Shell, option: str = "--list", name: str = "denied") -> list[dict[str, Any]]:
    found = json.loads(sessgit.out("purge", option, "--json"))[name]
    assert isinstance(found, list)
    return found


def typed(monkeypatch: pytest.MonkeyPatch, sessgit: Shell, value: str, *options: str) -> Done:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(value.encode())))
    return sessgit("purge", "-", *options)


def test_a_value_is_listed_by_its_id_and_lifted(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert sessgit.out("purge", "--list") == "No purged values\n"
    sessgit.out("purge", VALUE, "--yes")
    (one,) = listed(sessgit)
    assert (one["time"], one["lost"]) == ("2026-03-01T13:00:00.000Z", False)
    assert sessgit.out("purge", "--list").startswith(f"{one['id']}  2026-03-01T13:00:00.000Z\n")
    sessgit.recorded(sessgit.talk().turns("one", f"now {VALUE}"))
    assert holders(sessgit.store) == []
    assert sessgit.out("purge", "--lift", one["id"][:5]) == f"{one['id']} is allowed again\n"
    assert listed(sessgit) == []
    sessgit.recorded(sessgit.talk(OTHER).turns(f"now {VALUE}"))
    assert holders(sessgit.store)
    assert sessgit("purge", "--lift", one["id"]).code == 4
    assert sessgit("verify").code == 0


def test_a_new_key_is_not_made_in_silence(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", f"see {VALUE}"))
    sessgit.out("purge", VALUE, "--yes")
    before = listed(sessgit)
    (sessgit.store / "key").unlink()
    assert "sessgit doctor --fix" in sessgit("import").err
    assert not (sessgit.store / "key").exists()
    fixed = sessgit("doctor", "--fix")
    assert "the store has a new key: 1 value must be purged again" in fixed.out
    for command in ("doctor", "verify"):
        said = sessgit(command)
        assert said.code != 0
        assert "    1 value that was purged can be stored again: the key that recognized it is" in said.out
    assert listed(sessgit) == [one | {"lost": True} for one in before]
    sessgit.out("purge", VALUE, "--yes")
    assert [one["lost"] for one in listed(sessgit)] == [True, False]
    sessgit.out("purge", "--lift", before[0]["id"])
    assert [one["lost"] for one in listed(sessgit)] == [False]
    assert sessgit("verify").code == 0


def test_a_key_that_cannot_be_read_is_told_in_words(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", f"see {VALUE}"))
    key = sessgit.store / "key"
    key.unlink()
    key.mkdir()
    done = sessgit("purge", VALUE, "--yes")
    assert done.code == 7
    assert done.err.startswith(f"Error: cannot read {key}: Is a directory.\nHint: ")


@pytest.mark.parametrize("gone", ["state/forbidden", "state"])
def test_a_list_that_is_gone_is_told(sessgit: Shell, gone: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one", f"see {VALUE}"))
    sessgit.out("purge", VALUE, "--yes")
    path = sessgit.store / gone
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    for command in ("doctor", "verify"):
        said = " ".join(sessgit(command).out.split())
        assert "a purge was made, the first on 2026-03-01, and the list of purged values is gone" in said
    sessgit.out("purge", VALUE, "--yes")
    assert sessgit("verify").code == 0


def test_a_purge_that_was_killed_is_told_everywhere(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    (sessgit.store / "state" / "purging").write_text("{}")
    for command in ("status", "verify", "doctor"):
        assert "a purge was" in sessgit(command).out, command
    assert sessgit("purge", "--lift", "abcd").code == 3


@pytest.mark.parametrize("redact", ["true", "false"])
@pytest.mark.parametrize("before", ["{:6d}\u2192", "{}\t", "k2:{}:", "/home/ada/.ssh/k2-{}-", "{}:"])
def test_a_key_that_a_tool_numbered_is_redacted_or_goes_as_a_whole(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, before: str, redact: str
) -> None:
    key = pem("OPENSSH PRIVATE KEY")
    rows = key.split("\n")
    text = "\n".join(before.format(n) + row for n, row in enumerate(rows, 1))
    stores.create_store(sessgit.store)
    sessgit("config", "record.redact", redact)
    one = sessgit.talk().prompt("read").tool("Read", {"file_path": "/k2"}, f"{text}\n").answer("ok").stop_lines()
    sessgit.recorded(one)
    assert bool(holders(sessgit.store, rows[2])) == (redact == "false")
    assert [found["kind"] for found in listed(sessgit, "--find", "secrets")] == ["private-key"] * (redact == "false")
    said = typed(monkeypatch, sessgit, key, "--dry-run").out
    assert said.startswith("1 conversation holds it:" if redact == "false" else "Nothing in the store holds it\n")
    typed(monkeypatch, sessgit, key, "--yes")
    assert holders(sessgit.store, rows[2]) == []


def test_lines_of_a_key_that_stand_apart_are_told(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    key = pem("RSA PRIVATE KEY")
    sessgit.recorded(sessgit.talk().turns(f"just {key.split(chr(10))[2]} of it"))
    done = typed(monkeypatch, sessgit, key, "--dry-run")
    assert done.out.startswith(
        "Nothing in the store holds it\n1 long line of it also occurs on its own elsewhere, and stays. "
    )


def test_a_line_of_a_value_is_long_from_24_characters_on(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns(f"{'long' * 6} and {'short' * 4}..."))
    said = typed(monkeypatch, sessgit, f"{'long' * 6}\n{'short' * 4}...", "--dry-run").out
    assert "\n1 long line of it also occurs on its own elsewhere" in said


def test_a_commit_that_was_rewritten_twice_leads_to_the_last_one(tmp_path: Path) -> None:
    paths = StorePaths(tmp_path)
    paths.state.mkdir()
    first, second, third = ("1" * 40, "2" * 40, "3" * 40)
    secret_filter.add_commits(paths, {first: second})
    secret_filter.add_commits(paths, {second: third})
    assert secret_filter.load_map(paths) == {first: third, second: third}


def test_likely_secrets_have_addresses(sessgit: Shell) -> None:
    stores.create_store(sessgit.store)
    sessgit("config", "record.redact", "false")
    sessgit.recorded(sessgit.talk().turns("none", f"see {SECRET}", "nothing", f"and {SECRET}"))
    sessgit.out("archive", SESSION)
    (found,) = listed(sessgit, "--find", "secrets")
    assert found["addresses"] == [f"{SESSION}@2", f"{SESSION}@4"]
    assert "\n          5e551011@2, 5e551011@4\n" in sessgit.out("purge", "--find")


def test_what_stays_is_named_before_anybody_is_asked(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = sessgit.home / "copied"
    elsewhere.mkdir()
    imported = sessgit.talk(OTHER).turns(f"see {VALUE}").save(elsewhere)
    own = sessgit.recorded(sessgit.talk().turns(f"see {VALUE}"))
    sessgit.out("import", str(elsewhere))
    head = git(sessgit.store, "rev-parse", SESSION).strip()
    git(sessgit.store, "config", "remote.far.url", "/nowhere")
    git(sessgit.store, "update-ref", f"refs/remotes/far/{SESSION}", head)
    assert json.loads(sessgit.out("purge", VALUE, "-n", "--json"))["client_files"] == [
        str(own),
        str(imported),
    ]
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: "n\n")
    asked = sessgit("purge", VALUE)
    assert asked.code == 1
    said, question = asked.err.split("Purge it for good? [y/N]")
    assert "These files of the client hold it, and are not changed:" in said
    assert "~/copied/" in said
    assert "A remote holds it too: far. sessgit push replaces its branches; the old objects" in said
    assert "Nothing was changed." in question


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--regex", "("], "invalid regular expression: missing )"),
        (["--secret", "zz"], "“zz” is not an id."),
        (["--lift", "zz"], "“zz” is not an id."),
        (["x"], "a value of 1 byte is too short to purge."),
        (["--secret", "abcd", "--find"], "--find and --secret cannot be combined."),
        (["something", "--list", "--find"], "--find and PATTERN cannot be combined."),
        ([], "no value given: name PATTERN or --secret ID."),
        (["something"], "cannot ask for confirmation: stdin is not a terminal."),
    ],
)
def test_arguments_are_looked_at_before_anybody_is_asked(sessgit: Shell, arguments: list[str], said: str) -> None:
    stores.create_store(sessgit.store)
    done = sessgit("purge", *arguments)
    assert done.code == 2
    assert done.err.startswith(f"Error: {said}")
