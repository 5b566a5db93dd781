"""`sessgit config`: the settings of a store."""

from __future__ import annotations

import pytest
from shell import Shell


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    shell.recorded(shell.talk().turns("one"))
    return shell


def test_the_defaults(sessgit: Shell) -> None:
    assert (
        sessgit.out("config")
        == """\
record.granularity  turn  (default)
record.redact       true  (default)
record.fsync        true  (default)
"""
    )


def test_set_and_unset(sessgit: Shell) -> None:
    (sessgit.store / "config.toml").write_text("# mine\n")
    assert sessgit.out("config", "record.fsync", "false") == ""
    assert sessgit.out("config", "record.fsync") == "false\n"
    assert sessgit.out("config").splitlines()[2] == "record.fsync        false"
    assert (sessgit.store / "config.toml").read_text().startswith("# mine\n")
    assert sessgit.json("config")["record.fsync"] == {"value": False, "default": False}
    assert sessgit.out("config", "--unset", "record.fsync") == ""
    assert sessgit.out("config", "record.fsync") == "true\n"


def test_cells_need_a_hook_more(sessgit: Shell) -> None:
    done = sessgit("config", "record.granularity", "cell")
    assert (done.code, done.err) == (
        0,
        "The hooks follow with sessgit install: a commit for each cell needs one hook more.\n",
    )
    assert sessgit.out("install").splitlines()[0] == (
        "Recording is on: 7 hooks in ~/.claude/settings.json (undo: sessgit uninstall)"
    )


def test_prices(sessgit: Shell) -> None:
    price = "{input = 5, output = 25, cache_read = 0.5, cache_write = 6.25}"
    assert sessgit.out("config", "prices.claude-next", price) == ""
    assert sessgit.out("config", "prices.claude-next.output") == "25.0\n"


@pytest.mark.parametrize(
    "arguments", [("record.granularity", "line"), ("record.nothing", "1"), ("prices.x.input", "1")]
)
def test_nonsense_changes_nothing(sessgit: Shell, arguments: tuple[str, str]) -> None:
    before = sessgit.out("config")
    done = sessgit("config", *arguments)
    assert done.code == 2
    assert done.err.startswith(f"Error: {sessgit.store}/config.toml: ")
    assert sessgit.out("config") == before


def test_an_unknown_key(sessgit: Shell) -> None:
    done = sessgit("config", "record.nothing")
    assert (done.code, done.err) == (
        2,
        "Error: there is no setting record.nothing.\nHint: sessgit config shows all of them.\n",
    )
