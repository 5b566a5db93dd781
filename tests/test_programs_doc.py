"""The page for programs is true: its Python runs and prints what is shown, and its tables name everything there is."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import sessgit
from sessgit import errors
from sessgit.api.pad import Pad
from sessgit.api.session import OpenCell, OpenTurn

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "programs.md").read_text("utf-8")
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_page_is_true(seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (seal / "calc").mkdir()
    monkeypatch.chdir(seal)
    space: dict[str, Any] = {}
    printed = io.StringIO()
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) >= 18
    for (kind, code), (following, shown) in zip(blocks[::2], blocks[1::2], strict=True):
        assert (kind, following) == ("python", "text")
        printed.truncate(0)
        printed.seek(0)
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/programs.md", "exec"), space)
        assert printed.getvalue() == shown
    space["store"].close()


def test_the_page_about_fixtures_is_true(seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(seal)
    (_, code), (_, shown) = BLOCK.findall((DOCS / "fixtures.md").read_text("utf-8"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/fixtures.md", "exec"), {})
    assert printed.getvalue() == shown
    assert not (seal / ".claude").exists()


def test_lines_name_the_branch_that_is_checked_out(seal: Path) -> None:
    (seal / "calc" / ".git").mkdir(parents=True)
    head = seal / "calc" / ".git" / "HEAD"
    with sessgit.Store.temporary() as store:
        session = store.create_session(seal / "calc")
        for text in ("ref: refs/heads/main\n", "ref: refs/heads/fix/lexer\n", "0" * 40):
            head.write_text(text)
            session.record_turn("one")
        lines = [json.loads(line) for line in session.transcript().splitlines()]
        assert [line.get("gitBranch") for line in lines] == ["main", "fix/lexer", None]
        assert session.state.git_branch == "fix/lexer"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_name_is_told() -> None:
    reference = PAGE.partition("# Reference")[2]
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", reference))))
    beneath = {
        "lock",
        "context",
        "current",
        "target",
        "prices",
        "path",
        "config",
        "home",
        "store",
        "outcome",
        "fail",
        "now",
        "read_settings",
    }
    told = public(sessgit.Store) | public(sessgit.Session) | public(Pad) | public(OpenTurn) | public(OpenCell)
    assert told - beneath - words == set()
    values = [getattr(sessgit, name) for name in sessgit.__all__ if name != "__version__"]
    for value in values:
        assert value.__name__ in words
        if dataclasses.is_dataclass(value):
            row = re.search(rf"^\| `{value.__name__}` \| (.*)\|$", reference, re.MULTILINE)
            assert row, value.__name__
            assert [field.name for field in dataclasses.fields(value) if f"`{field.name}`" not in row[1]] == []
    for name in re.findall(r"`(\w+Error)`", reference):
        assert hasattr(errors, name)


def test_every_public_name_says_what_it_does() -> None:
    for kind in (sessgit.Store, sessgit.Session, Pad, OpenTurn):
        for name in public(kind):
            member = getattr(kind, name)
            if callable(member) or isinstance(member, property):
                assert member.__doc__ or name == "name", f"{kind.__name__}.{name}"
