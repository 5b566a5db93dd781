"""Refs of a remote at whose names git ends, or that it serves to nobody: they are skipped and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from clones import bare
from kept import begins
from plain import run_git
from servers import PASSWORD, USER, http
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.store import refs, remotes

UNSAFE = (
    "refs/heads/../../e-vil",
    "refs/heads/a//b",
    "refs/heads/",
    "refs/tags/../x",
    "refs/zz/../x",
    "refs/heads/5e/./x",
)


@begins
def sessgit(shell: Shell) -> None:
    """Two conversations and two tags, and a remote that has them."""
    made = bare(shell.home / "remote")
    shell.recorded(shell.talk().turns("one"), shell.talk(OTHER).turns("two"))
    shell.out("tag", "here", f"{SESSION}@1")
    run_git(shell.store, "-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "-m", "x", "noted", SESSION)
    shell.out("remote", "add", "origin", str(made))
    assert shell("push", "--all").code == 0
    run_git(made, "pack-refs", "--all")


@pytest.fixture
def remote(sessgit: Shell) -> Path:
    return sessgit.home / "remote"


def spoil(remote: Path, name: str) -> None:
    path = remote / "packed-refs"
    lines = path.read_text().splitlines()
    tip = refs.read(remote, f"refs/heads/{SESSION}")
    at = next((n for n, line in enumerate(lines) if not line.startswith(("#", "^")) and line[41:] > name), len(lines))
    path.write_text("\n".join([*lines[:at], f"{tip} {name}", *lines[at:]]) + "\n")


def left(remote: str, name: str) -> dict[str, str]:
    hint = f"Delete it in {remote}: its line in packed-refs, or its file."
    return {"what": name, "reason": "git does not serve a ref with that name", "hint": hint}


SSH = "ssh://host{}"
REFUSED = ("refs/heads/a..b", "refs/heads/x.lock")


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ssh that runs the command on this machine."""
    program = tmp_path / "ssh"
    program.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    program.chmod(0o700)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(program))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")


@pytest.mark.usefixtures("ssh")
@pytest.mark.parametrize(
    ("form", "name"),
    [(form, name) for form in ("{}", "file://{}", SSH) for name in (*UNSAFE, *REFUSED)],
)
def test_a_ref_of_such_a_name_keeps_no_other_from_coming(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path, name: str, form: str
) -> None:
    spoil(remote, name)
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "second"))
    url = form.format(remote)
    sessgit.out("remote", "add", "origin", url)
    for _ in range(2):
        done = sessgit.json("pull")
        assert done["skipped"] == [left(url, name)]
        held = refs.read_all(tmp_path / "second")
        assert {ref for ref in held if not ref.startswith("refs/remotes/")} == {
            f"refs/heads/{SESSION}", f"refs/heads/{OTHER}", "refs/tags/here", "refs/tags/noted",
        }  # fmt: skip
    assert f"Skipped: {name}: git does not serve a ref with that name." in sessgit("pull").out
    assert list((tmp_path / "second" / "objects" / "info").glob("alternates")) == []


def test_what_is_new_there_comes_too(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path
) -> None:
    first = sessgit.store
    second = tmp_path / "second"
    monkeypatch.setenv("SESSGIT_STORE", str(second))
    sessgit.out("remote", "add", "origin", str(remote))
    assert sessgit("pull").code == 0
    monkeypatch.setenv("SESSGIT_STORE", str(first))
    sessgit.recorded(sessgit.talk().turns("one", "three"))
    assert sessgit("push", "--all").code == 0
    spoil(remote, UNSAFE[0])
    monkeypatch.setenv("SESSGIT_STORE", str(second))
    assert [one["turns"] for one in sessgit.json("pull")["changes"]] == [1]
    assert refs.read(second, f"refs/heads/{SESSION}") == refs.read(first, f"refs/heads/{SESSION}")


@pytest.mark.usefixtures("ssh")
@pytest.mark.parametrize("name", REFUSED)
def test_nor_where_refs_are_fetched_by_patterns(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path, name: str
) -> None:
    monkeypatch.setattr(remotes, "_FEW_REFS", 0)
    spoil(remote, name)
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "second"))
    sessgit.out("remote", "add", "origin", SSH.format(remote))
    done = sessgit.json("pull")
    assert (len(done["changes"]), done["skipped"]) == (2, [left(SSH.format(remote), name)])


@pytest.mark.usefixtures("ssh")
def test_the_remote_may_have_a_work_tree_below_its_users_home(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path
) -> None:
    spoil(remote, UNSAFE[0])
    run_git(remote, "update-ref", "refs/tags/loose", SESSION)
    home, temp = tmp_path / "her home", tmp_path / "temporary files"
    (home / "far").mkdir(parents=True)
    temp.mkdir()
    remote.rename(home / "far" / ".git")
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "second"))
    monkeypatch.setenv("TMPDIR", str(temp))
    (tmp_path / "ssh").write_text(f'#!/bin/sh\nfor last; do :; done\nHOME="{home}" exec sh -c "$last"\n')
    sessgit.out("remote", "add", "far", "host:~/far")
    done = sessgit.json("pull")
    assert (len(done["changes"]), [one["what"] for one in done["skipped"]]) == (2, [UNSAFE[0]])
    assert refs.tags(tmp_path / "second").keys() == {"here", "noted", "loose"}
    assert list(temp.iterdir()) == []


@pytest.mark.usefixtures("ssh")
@pytest.mark.parametrize("name", UNSAFE)
def test_a_name_at_which_git_ends_is_reported_by_a_machine_without_a_shell(
    sessgit: Shell, tmp_path: Path, remote: Path, name: str
) -> None:
    """git there lists no ref after that one, and packs no objects while the name is among or right after its tags."""
    spoil(remote, name)
    (tmp_path / "ssh").write_text('#!/bin/sh\nfor last; do :; done\nexec git shell -c "$last"\n')
    sessgit.out("remote", "add", "far", SSH.format(remote))
    done = sessgit("pull", "far")
    assert done.code == 7
    assert done.err.splitlines() == [
        f"Error: git at far refuses a dangerous ref name: packed refname is dangerous: {name}.",
        f"Hint: Delete the line of that ref from the file packed-refs in {SSH.format(remote)}.",
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_a_ref_that_git_refuses_keeps_no_other_from_coming_by_http(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: Path, name: str
) -> None:
    spoil(remote, name)
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "second"))
    with http(remote.parent) as host:
        sessgit.out("remote", "add", "origin", f"http://{USER}:{PASSWORD}@{host}/remote")
        done = sessgit.json("pull")
    assert (len(done["changes"]), done["skipped"]) == (2, [left(f"http://{USER}:***@{host}/remote", name)])


@pytest.mark.parametrize("name", UNSAFE)
def test_where_git_ends_at_a_name_by_http_the_ref_before_it_is_named(
    sessgit: Shell, tmp_path: Path, remote: Path, name: str
) -> None:
    """A web server keeps git's message for its log."""
    spoil(remote, name)
    before = [ref for ref in sorted(refs.read_all(remote)) if ref < name]
    where = f"after {before[-1]}" if before else "at the first one"
    with http(remote.parent) as host:
        sessgit.out("remote", "add", "far", f"http://{USER}:{PASSWORD}@{host}/remote")
        done = sessgit("pull", "far")
    assert done.code == 7
    assert done.err.splitlines() == [
        f"Error: git at far stopped while it listed its refs, {where}.",
        "Hint: If the next line in its file packed-refs has a dangerous name, such as refs/heads/../x, delete that "
        "line. The log of its web server says why.",
    ]


def test_nothing_goes_where_git_ends_at_a_name(sessgit: Shell, remote: Path) -> None:
    spoil(remote, UNSAFE[0])
    before = (remote / "packed-refs").read_text()
    sessgit.recorded(sessgit.talk().turns("one", "three"))
    done = sessgit("push", "--all")
    assert (done.code, done.err.splitlines()) == (
        7,
        [
            f"Error: git at origin refuses a dangerous ref name: packed refname is dangerous: {UNSAFE[0]}.",
            f"Hint: Delete the line of that ref from the file packed-refs in {remote}.",
        ],
    )
    assert (remote / "packed-refs").read_text() == before
