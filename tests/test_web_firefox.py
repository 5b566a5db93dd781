"""`sessgit web` in Firefox: from the list to a turn, a search, a command, and a change of another process."""

from __future__ import annotations

from pathlib import Path

import firefox
import pytest
import web_world
from firefox import ENTER, ESCAPE
from shell import Shell
from test_web import serving
from transcripts import SESSION
from waiting import until

pytestmark = [*firefox.needed, pytest.mark.xdist_group("web")]


def test_a_visit(sessgit: Shell, tmp_path: Path) -> None:
    talk = sessgit.talk().prompt([web_world.image(web_world.png(64, 100)), {"type": "text", "text": "first prompt"}])  # type: ignore[arg-type]
    talk.tool("Bash", {"command": "ls -l"}, "a listing").answer("done").stop_lines().turns("second prompt")
    sessgit.recorded(talk)
    with serving(sessgit) as server, firefox.started(tmp_path / "profile") as tab:
        tab.goto(server.access.link())
        tab.wait("main .node")
        assert tab.evaluate("location.href") == f"{server.access.address}/"
        tab.press("j" + ENTER)
        tab.wait("#row-2")
        tab.press("j" + ENTER)
        tab.wait("#row-1 .turn img")
        until(lambda: tab.evaluate("document.images[0].naturalWidth") == 64)
        tab.press("f")
        tab.wait("dialog[open] .command")
        assert tab.evaluate("document.querySelector('dialog code').innerText") == "sessgit fork 5e551011 --at 1"
        tab.press(ESCAPE)
        until(lambda: tab.evaluate("!document.querySelector('dialog')"))
        sessgit.out("rename", SESSION, "a new name")
        until(lambda: tab.evaluate("document.querySelector('h1').innerText") == "a new name")
        assert tab.evaluate("document.querySelector('#row-1 .turn') !== null")
        tab.press("/")
        tab.wait("main input[type=search]")
        tab.press("listing")
        tab.wait(".hits mark")
        tab.press(ENTER + ENTER)
        tab.wait(".call.asked[open]")
        assert tab.evaluate("CSS.highlights.get('found').size") > 0
