"""A store whose key was lost: what holds a secret is not recorded until there is one, and all else works."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.errors import StoreError
from sessgit.store.store import Store

_SECRET = "export DB_PASSWORD=Tr0ub4dor-and-3"
_HINT = "sessgit doctor --fix makes a new one where it is gone."


@pytest.fixture
def lost(sessgit: Shell) -> Shell:
    """One recorded conversation, which goes on with a secret."""
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk, sessgit.talk(OTHER).turns("else"))
    (sessgit.store / "key").unlink()
    sessgit.keep(talk.turns(_SECRET))
    return sessgit


def test_what_is_recorded_is_shown_and_why_no_more_is(lost: Shell) -> None:
    done = lost("log", SESSION)
    assert (done.code, "one" in done.out) == (0, True)
    assert "cannot read the store's key: No such file or directory" in done.err


def test_an_import_says_what_to_do(lost: Shell) -> None:
    done = lost("import")
    assert (done.code, done.out) == (7, "")
    assert done.err == f"Error: cannot read the store's key: No such file or directory.\nHint: {_HINT}\n"
    lost("doctor", "--fix")
    assert lost("import").code == 0
    assert "[redacted:password]" in lost.out("show", f"{SESSION}@2")


def test_a_key_that_is_none(sessgit: Shell) -> None:
    sessgit.out("install")
    key: Path = sessgit.store / "key"
    key.unlink()
    key.mkdir()
    with pytest.raises(StoreError, match="cannot read the store's key: Is a directory"):
        Store(sessgit.store).hmac([b"x"])
