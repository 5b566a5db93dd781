"""Files that end in the middle of a line, and what `restore` makes of them."""

from __future__ import annotations

import pytest
from shell import Shell


@pytest.mark.parametrize("part", [0.3, 0.55, 0.8, 0.99])
def test_a_recorded_file_that_was_cut_gets_the_rest_of_its_last_line_and_all_after_it(
    sessgit: Shell, part: float
) -> None:
    talk = sessgit.talk().turns("one", "two").tool("Bash", {"command": "ls"}).answer("Done.").stop_lines()
    path = sessgit.keep(talk)
    assert sessgit("import").code == 0
    whole = path.read_bytes()
    cut = whole[: int(len(whole) * part)]
    assert not cut.endswith((b"\n", b"}"))

    path.write_bytes(cut)
    assert sessgit("restore", "5e55").code == 0
    assert path.read_bytes() == whole

    # The cut file is imported as well: it is a copy, of which the beginning of the last line is recorded.
    path.write_bytes(cut)
    assert sessgit("import").code == 0
    assert sessgit("restore", "5e55").code == 0
    assert path.read_bytes() == whole
    assert sessgit("verify", "--deep").code == 0


def test_the_rest_of_a_line_that_was_imported_cut_is_not_called_newer_turns(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk().turns("one"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert sessgit("import").code == 0
    path.write_bytes(whole)
    done = sessgit("restore", "5e55")
    assert done.code == 3
    assert "holds more than is recorded" in done.err
    assert path.read_bytes() == whole


def test_a_line_that_is_not_recorded_and_cut_is_named(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    path = sessgit.keep(talk)
    first = path.read_bytes()
    path.write_bytes(talk.turns("two").data)
    assert sessgit("import").code == 0
    path.write_bytes(first + b'{"another":"li')
    done = sessgit("restore", "5e55")
    assert done.code == 3
    assert "ends in the middle of a line that is not recorded" in done.err
    assert path.read_bytes() == first + b'{"another":"li'
