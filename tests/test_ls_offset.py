"""What the list says of more conversations than it shows, where it begins further down."""

from __future__ import annotations

import pytest
from shell import Shell
from transcripts import OTHER, SESSION


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--offset 1", "Showing 1 of 2 conversations."),
        ("--offset 9", "Showing 0 of 2 conversations."),
        ("--offset 1 --order name", "Showing 1 of 2 conversations."),
        ("-n 1", "Showing the 1 most recent of 2."),
    ],
)
def test_more_is_offered_only_where_there_is_more(sessgit: Shell, options: str, told: str) -> None:
    sessgit.recorded(sessgit.talk(SESSION).turns("one"), sessgit.talk(OTHER).turns("two"))
    assert sessgit.out("ls", *options.split()).splitlines()[-1] == told
