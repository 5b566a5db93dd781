"""What comes from elsewhere and is shown: nothing of it steers a terminal, makes up a line, or runs when copied."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from foreigners import log, went
from fuzzing import EVIL, INPUTS, spoils
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git
from shell import Shell
from test_hostile_store import rewritten, says
from transcripts import OTHER, SESSION

from sessgit.cli import text
from sessgit.model import humanize
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

STEERING = "\x1b]8;;http://x\x07\x1b[31m\x9b1m\x9d0;t\x9c\u202egnp\u2066\u2028"
TAG = "x;touch${IFS}made|$(touch${IFS}made)`id`'\""
"""A name that git takes for a tag."""


@given(st.text().filter(lambda text: "\0" not in text))
def test_a_word_for_a_shell_is_one_line_and_the_word_itself(word: str) -> None:
    quoted = humanize.quote_for_shell(word)
    assert not spoils(quoted)
    assert "\n" not in quoted
    done = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True)
    assert done.stdout == word.encode("utf-8", "surrogatepass")


def test_wide_characters_and_none_at_all_do_not_make_up_for_each_other() -> None:
    assert text.cut("\U0001f468 a word\u200d and another", 10) == "\U0001f468 a word\u200d…"
    assert text.width(text.fit("\U0001f468 ssh://comm\u200d-and", 10)) == 10


def test_a_project_makes_up_no_line(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    folder = tmp_path / "x'\nContinue it:  touch made\n#\x1b[31m"
    folder.mkdir()
    rewritten(sessgit.store, says("metadata", "cwd", str(folder)))
    rewritten(sessgit.store, says("metadata", "project", str(folder)))
    for command in (
        ("fork", SESSION),
        ("resume", "--print", SESSION),
        ("recover", SESSION),
        ("log", SESSION),
        ("ls", "--all"),
    ):
        done = sessgit(*command)
        assert not [line for line in done.out.splitlines() if line.startswith("Continue it:  touch")], command
        assert not spoils(done.out + done.err), command


def test_a_tag_from_elsewhere_runs_nothing(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    run_git(tmp_path, "init", "-q", "--bare", "remote.git")
    sessgit.out("remote", "add", "there", str(tmp_path / "remote.git"))
    sessgit("push", "there", "--all")
    first, last = run_git(sessgit.store, "rev-list", "--reverse", SESSION).split()[-2:]
    run_git(tmp_path / "remote.git", "update-ref", f"refs/tags/{TAG}", last)
    run_git(sessgit.store, "update-ref", f"refs/tags/{TAG}", first)
    for command in (("pull", "there"), ("verify",), ("tag",), ("log", SESSION), ("sync", "-n", "there", "--all")):
        done = sessgit(*command)
        for line in (done.out + done.err).splitlines():
            if "sessgit tag -" in line and "touch" in line:
                made = line.partition("sessgit tag ")[2].partition(" makes")[0]
                shown = subprocess.run(
                    ["bash", "-c", f"printf '%s\\n' {made}"], capture_output=True, text=True, cwd=tmp_path, check=True
                )
                assert shown.stdout.splitlines()[1] == TAG, command
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% made",
        "--upload-pack=touch made",
        "-x",
        "a\nb",
        "\x1b[31m",
        "fd::0",
        "ssh://-oProxyCommand=touch made/x",
    ],
)
def test_a_remote_runs_nothing(sessgit: Shell, url: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    for command in (("remote", "add", "there", "--", url), ("remote",), ("push", "there", "--all"), ("pull", "there")):
        done = sessgit(*command)
        assert done.code != 70, (command, done)
        assert not spoils(done.out + done.err), command
    assert not (sessgit.project / "made").exists()


@pytest.mark.parametrize("name", ["--upload-pack=x", "../x", "a b", "x\x1b[31m", "x.lock", "a/../../b", "", "x\ny"])
def test_a_remote_that_can_have_no_such_name(sessgit: Shell, name: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    before = (sessgit.store / "config").read_bytes()
    done = sessgit("remote", "add", "--", name, "/nowhere")
    assert done.code == 2, done
    assert not spoils(done.out + done.err)
    assert (sessgit.store / "config").read_bytes() == before


def test_what_stands_in_the_journal_steers_nothing(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("tag", "v1", f"{SESSION}@1")
    place = StorePaths(sessgit.store).journal
    line = json.loads(place.read_text().splitlines()[-1])
    changes = [{"summary": STEERING, "command": STEERING}, {"time": STEERING}, {"id": f"1234{STEERING}"}]
    changes += [{"refs": {f"refs/heads/{STEERING}": [None, "a" * 40]}}, {"files": {STEERING: "x"}}]
    place.write_text("".join(json.dumps(line | change) + "\n" for change in changes))
    for command in (
        ("ops",),
        ("ops", "--all"),
        ("undo", "-n"),
        ("undo",),
        ("undo", "1234"),
        ("log", "--at-op", "1234", SESSION),
        ("status",),
        ("verify",),
        ("doctor",),
    ):
        done = sessgit(*command)
        assert done.code != 70, (command, done)
        assert not spoils(done.out + done.err), command


def test_another_systems_words_steer_nothing(sessgit: Shell, tmp_path: Path) -> None:
    there = tmp_path / "there"
    log(there, "A-1", went("in", STEERING, 1), went("out", STEERING, 2),
        went("artifact", f"docs/{STEERING}.md", 4, action=STEERING),
        role=STEERING, task=f"the task {STEERING}")  # fmt: skip
    for command in (
        ["import", "--from", "io-log", str(there)], ["ls", "--all"], ["log", "the task"], ["stats"], ["tree", "--all"],
        ["search", "gnp"], ["verify"], ["import", "--from", STEERING, str(there)],
        ["import", "--from", "io-log", STEERING],
    ):  # fmt: skip
        done = sessgit(*(word for word in command))
        assert done.code != 70, (command, done)
        assert not spoils(done.out + done.err), (command, done)


@pytest.mark.parametrize("evil", [word for word in EVIL if "\0" not in word][:: 1 if INPUTS else 8])
def test_what_is_typed_comes_back_harmless(sessgit: Shell, evil: str) -> None:
    if not sessgit.store.exists():
        sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("else"))
    for command in (
        ("log", evil), (evil,), ("tag", evil, SESSION), ("ls", "--project", evil), ("search", evil),
        ("remote", "add", evil, "x"), ("edit", SESSION, "--label", evil),
        ("config", evil), ("export", "markdown", SESSION, "-o", evil or "x"), ("show", f"{SESSION}@{evil}"),
        ("stats", "--by", evil),
        ("pad", "insight", evil, "--into", SESSION), ("rename", evil), ("ls", f"--limit={evil}"),
    ):  # fmt: skip
        done = sessgit(*command)
        assert done.code != 70, (command, done)
        assert not spoils(done.out + done.err), (command, done)


def test_exports_stay_where_they_are_put(sessgit: Shell, tmp_path: Path) -> None:
    """Whatever a session is called and whatever its state says of its file."""
    sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("else"))
    for part, key in (
        ("authored", "name"),
        ("metadata", "title"),
        ("metadata", "agent_id"),
        ("metadata", "transcript_path"),
    ):
        rewritten(sessgit.store, says(part, key, "../../../out\x1b[31m/../x"))
    out = tmp_path / "out"
    out.mkdir()
    before = {path for path in tmp_path.rglob("*") if out not in path.parents} | set(sessgit.project.rglob("*"))
    for form in ("html", "markdown", "json", "jsonl", "claude"):
        done = sessgit("export", form, SESSION, OTHER, "-o", str(out))
        assert done.code != 70, done
    assert {path for path in tmp_path.rglob("*") if out not in path.parents} | set(sessgit.project.rglob("*")) == before
    assert not [path for path in out.rglob("*") if spoils(path.name)]
    assert Store(sessgit.store)


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_what_a_shell_completes_runs_nothing(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    """A shell puts it on the command line as it is: for bash it is quoted, others get no word that they would run."""
    sessgit.recorded(sessgit.talk().turns("one"))
    for name in (TAG, "xplain"):
        run_git(sessgit.store, "update-ref", f"refs/tags/{name}", SESSION)
    monkeypatch.setenv("_SESSGIT_COMPLETE", f"complete_{kind}")
    monkeypatch.setenv("COMP_WORDS", "sessgit\ntag\n-d\nx")
    monkeypatch.setenv("COMP_CWORD", "3")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "sessgit tag -d x")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    said = sessgit("tag").out
    assert "xplain" in said
    if kind == "bash" and shutil.which("bash"):
        script = f"printf '%s\\n' {' '.join(said.splitlines())}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert set(done.stdout.splitlines()) == {TAG, "xplain"}
        assert list(tmp_path.iterdir()) == []
    else:
        assert "touch" not in said
