"""What somebody is told who begins with `import`."""

from __future__ import annotations

import pytest
from shell import Shell

KEPT = """\
All that is said is kept in ~/.claude/session-store, readable by you alone,
not encrypted; common secrets are replaced first. sessgit off skips a project.
"""


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    shell.keep(shell.talk().turns("one", "two"))
    return shell


def test_install_says_what_is_kept_also_behind_an_import(sessgit: Shell) -> None:
    assert sessgit.out("import") == "1 conversation, 2 turns brought in\n"
    assert KEPT in sessgit.out("install")
    assert KEPT not in sessgit.out("install")
    sessgit.out("uninstall")
    assert KEPT in sessgit.out("install")
