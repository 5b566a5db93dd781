"""A number with a fraction is read without pydantic, which takes longer to load than the rest of the command."""

from __future__ import annotations

import pytest
from shell import Shell
from test_cold import loaded


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    shell.recorded(shell.talk().turns("one", "two"))
    return shell


def test_what_replay_would_run_loads_no_pydantic(sessgit: Shell) -> None:
    assert loaded("sessgit", "replay", "5e55", "--timeout", "1.5") <= {"pygit2"}


@pytest.mark.parametrize("said", ["abc", "", "1,5"])
def test_what_is_no_number(sessgit: Shell, said: str) -> None:
    done = sessgit("replay", "5e55", "--timeout", said)
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        f"Error: Invalid value for '--timeout': {said!r} is not a number.",
    )


@pytest.mark.parametrize("said", ["0", "-1", "nan", "inf", "1e400"])
def test_what_is_no_time(sessgit: Shell, said: str) -> None:
    done = sessgit("replay", "5e55", f"--timeout={said}")
    assert (done.code, done.err.splitlines()[0]) == (2, "Error: --timeout and --memory must be more than 0.")
