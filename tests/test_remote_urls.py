"""What is shown of the address of a remote whose password or user has an @ that nobody escaped."""

from __future__ import annotations

import pytest
from shell import Shell

from sessgit.store import git
from sessgit.store.remotes import Remote


@pytest.mark.parametrize(
    ("url", "shown", "secrets"),
    [
        ("https://ada:tiger@lily@host/hub", "https://ada:***@host/hub", ("tiger@lily",)),
        ("https://tiger@lily@host/hub", "https://***@host/hub", ("tiger@lily",)),
        ("https://ada:@tiger@host", "https://ada:***@host", ("@tiger",)),
        ("ssh://ada@calc.example@host/hub", "ssh://ada@calc.example@host/hub", ()),
        ("ssh://host/hub@2", "ssh://host/hub@2", ()),
        ("https://host/hub@2/a@b", "https://host/hub@2/a@b", ()),
    ],
)
def test_all_of_it_is_hidden(url: str, shown: str, secrets: tuple[str, ...]) -> None:
    assert Remote("origin", url).shown == shown
    assert git.url_secrets(url) == secrets


def test_nothing_of_it_is_printed(sessgit: Shell) -> None:
    url = "http://ada:tiger@lily@127.0.0.1:9/hub"
    sessgit.recorded(sessgit.talk().turns("one"))
    said = [sessgit(*words) for words in (("remote", "add", "origin", url), ("remote",), ("pull",), ("push", "--all"))]
    assert [done.code for done in said] == [0, 0, 7, 7]
    assert not any(word in done.out + done.err for done in said for word in ("tiger", "lily"))
