"""What somebody is told who begins with `import`."""

from __future__ import annotations

import pytest
from shell import Shell

KEPT = """\
Prompts, answers and tool output go to ~/.claude/session-store.
Only you can read it. It is not encrypted; common secrets are redacted.
To exclude a project: sessgit off
"""


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    shell.keep(shell.talk().turns("one", "two"))
    return shell


def test_install_says_what_is_kept_also_behind_an_import(sessgit: Shell) -> None:
    assert sessgit.out("import") == "1 conversation, 2 turns imported\n"
    assert KEPT in sessgit.out("install")
    assert KEPT not in sessgit.out("install")
    sessgit.out("uninstall")
    assert KEPT in sessgit.out("install")
