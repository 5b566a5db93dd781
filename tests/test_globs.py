"""Which projects are recorded: what a glob fits, and which folders are one project."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git

from sessgit.record import privacy
from sessgit.record.privacy import Privacy, Verdict
from sessgit.store import project
from sessgit.store.settings import RecordConfig, parse_config


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/b/c/d", True),
        ("/a/b", "/a/bc", False),
        ("/a/b", "/a", False),
        ("/a/b/", "/a/b/c", True),
        ("/a/*", "/a", False),
        ("/a/*", "/a/b/c", True),
        ("/a/*/c", "/a/x/y/c/d", True),
        ("*/secret", "/a/b/secret/c", True),
        ("*/secret", "/a/b/secrets", False),
        ("*", "/", True),
        ("/", "/a", True),
        ("/a?c", "/abc", True),
        ("/a[bc]d", "/abd", True),
        ("/a[[]b]", "/a[b]", True),
        ("/a[b]", "/a[b]", False),
        ("/a", "/a\nb", False),
        ("/a*", "/a\nb", True),
    ],
)
def test_what_a_glob_fits(glob: str, path: str, fits: bool) -> None:
    assert privacy.matches_glob(glob, path) == fits


paths = st.lists(st.text("ab*?[]!-. é", min_size=1, max_size=4).filter(lambda part: part != "."), max_size=3).map(
    lambda parts: "/" + "/".join(parts)
)


@given(paths, paths)
def test_an_escaped_path_fits_itself_and_what_is_below_alone(one: str, other: str) -> None:
    glob = privacy.escape_glob(one)
    assert privacy.literal_path(glob) == one
    assert parse_config({"record": {"exclude": [glob]}}, "x").record.exclude == (glob,)
    assert privacy.matches_glob(glob, other) == (one in ("/", other) or other.startswith(f"{one}/"))


def rules(*exclude: str, include: tuple[str, ...] = (), home: str = "/home/ada") -> Privacy:
    return Privacy(RecordConfig(exclude=exclude, include=include), home)


def test_who_is_recorded() -> None:
    assert privacy.verdict(rules(), "/x") == Verdict(True)
    assert privacy.verdict(rules("~/private/*"), "/home/ada/private/x/y") == Verdict(False, "~/private/*")
    assert privacy.verdict(rules("~/private/*"), "/home/ada/private") == Verdict(True)
    assert privacy.verdict(rules("~"), "/home/ada/private") == Verdict(False, "~")
    assert privacy.verdict(rules("~/private"), "/home/adam/private") == Verdict(True)
    assert privacy.verdict(rules("~/a", home="/"), "/a/b") == Verdict(False, "~/a")
    assert privacy.verdict(rules("~/a[*]", home="/home/[x]"), "/home/[x]/a*") == Verdict(False, "~/a[*]")
    only = rules(include=("/srv", "~/open/*"))
    assert [privacy.verdict(only, f).recorded for f in ("/srv/x", "/home/ada/open/x", "/home/ada")] == [
        True,
        True,
        False,
    ]
    assert privacy.verdict(only, "/tmp").why == "record.include does not include it"
    assert privacy.verdict(rules("/srv/x", include=("/srv",)), "/srv/x") == Verdict(False, "/srv/x")


@pytest.mark.parametrize("nowhere", ["", "shop", "../shop", "\0", "/a\0b"])
def test_a_folder_that_is_none(nowhere: str) -> None:
    assert privacy.verdict(rules("*"), nowhere) == Verdict(False, "*")
    assert privacy.verdict(rules("/home"), nowhere) == Verdict(True)
    assert privacy.verdict(rules(include=("/home",)), nowhere) == Verdict(False)


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")
    run_git(folder, *identity, *arguments)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """`code/calc` with a worktree beside it, a submodule and a subfolder."""
    made = tmp_path / "code" / "calc"
    for folder in (made / "sub" / "folder", tmp_path / "part"):
        folder.mkdir(parents=True)
    for folder in (tmp_path / "part", made):
        git(folder, "init", "-q")
        git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    git(made, "worktree", "add", "-q", str(tmp_path / "elsewhere" / "tree"))
    git(made, "submodule", "--quiet", "add", str(tmp_path / "part"), "part")
    return made


def test_a_repository_is_one_project(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "elsewhere" / "tree"
    (tree / "deep").mkdir()
    (repository.parent / "link").symlink_to(repository / "sub")
    for folder in (repository, repository / "sub" / "folder", tree, tree / "deep", repository.parent / "link"):
        assert project.project_root(str(folder)) == str(repository)
        assert not privacy.verdict(rules(str(repository)), str(folder)).recorded
    assert privacy.verdict(rules(str(tree)), str(repository)).recorded
    assert not privacy.verdict(rules(str(tree)), str(tree / "deep")).recorded
    assert project.project_root(str(repository / "part")) == str(repository / "part")
    assert project.project_root(str(tmp_path)) == str(tmp_path)


def test_the_worktrees_of_a_bare_repository_are_one_project(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "calc.git"
    run_git(tmp_path, "clone", "-q", "--bare", str(repository), str(bare))
    run_git(bare, "worktree", "add", "-q", str(tmp_path / "w1"))
    assert project.project_root(str(tmp_path / "w1")) == str(bare)
    assert not privacy.verdict(rules(str(bare)), str(tmp_path / "w1")).recorded


def test_links_lead_to_the_same_project(tmp_path: Path) -> None:
    real = tmp_path / "disk" / "ada" / "private" / "x"
    real.mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    seen = tmp_path / "home" / "ada"
    for glob in ("~/private", "~/private/*", f"{seen}/private/*", f"{seen}/pri*"):
        assert not privacy.verdict(rules(glob, home=str(seen)), str(real)).recorded, glob
    assert not privacy.verdict(rules(str(real)), str(seen / "private" / "x")).recorded
