"""`sessgit web` for everyone: axe finds nothing in any view, and the keyboard reaches everything."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import browser as chromium
import pytest
import web_world
from shell import Shell
from test_web import Page, serving
from test_web_browser import Tab
from waiting import until
from web_world import IMAGES, MAIN, World

axe = pytest.importorskip("axe_playwright_python", reason="no axe: install the group dev")

pytestmark = [*chromium.needed, pytest.mark.xdist_group("web")]

CHECKS = (Path(axe.__path__[0]) / "axe.min.js").read_text("utf-8")
OUTLINES = """() => [...document.querySelectorAll("a, button, input, select, summary, textarea, [tabindex]")]
  .filter((one) => one.checkVisibility() && !one.disabled && one.id !== "main")
  .filter((one) => (one.focus({ focusVisible: true }), document.activeElement !== one
    || getComputedStyle(one).outlineStyle === "none"))
  .map((one) => one.outerHTML)"""


def built(sessgit: Shell) -> str:
    """A home with a family that has everything; the id of one of its forks."""
    world = World(sessgit.home, lambda *a: sessgit(*a) if a[0] == "import" else sessgit.json(*a), datetime.now(UTC))
    world.build(5)
    forks = [one["id"] for one in sessgit.json("ls", "--all")["sessions"] if one["name"] == "tokens as a trie"]
    return str(forks[0])


@pytest.fixture
def everything(sessgit: Shell) -> Iterator[tuple[Page, dict[str, str]]]:
    fork = built(sessgit)
    views = {
        "/": ".node",
        "/?q=nothing+fits": ".filters",
        f"/s/{MAIN}": "#row-6",
        f"/s/{MAIN}@3": "#row-3 .turn",
        f"/s/{IMAGES}@1": "#row-1 img",
        f"/d/{MAIN}/{fork}": ".sides-of",
        "/search?q=trie": ".hits mark",
        "/search?q=nothing+like+it": ".quiet[role=status]",
        f"/why?of={MAIN}": ".plain a",
        f"/why?of={MAIN}&file=parser.py": ".steps details",
        "/why?file=nothing.py": ".problem",
        f"/pad/{MAIN}": ".facts + .quiet",
        "/stats": "tfoot",
        f"/stats?of={MAIN}&by=tool": "tbody",
        "/s/nope": ".problem",
    }
    with serving(sessgit) as running:
        yield running, views


def violations(tab: Tab) -> list[Any]:
    """What axe finds, in the light and in the dark."""
    tab.page.evaluate(CHECKS)
    found = tab.page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    tab.page.emulate_media(color_scheme="dark")
    found += tab.page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    tab.page.emulate_media(color_scheme="light")
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


def test_axe_finds_nothing_and_the_focus_is_visible(program: Any, everything: tuple[Page, dict[str, str]]) -> None:
    server, views = everything
    tab = Tab(program, server, color_scheme="light", reduced_motion="reduce")
    for path, part in views.items():
        tab.goto(path)
        tab.page.wait_for_selector(part)
        assert tab.page.evaluate(OUTLINES) == [], path
        tab.page.evaluate("document.querySelectorAll('main details').forEach((one) => (one.open = true))")
        assert violations(tab) == [], path
    tab.goto(f"/s/{MAIN}@3")
    for keys, part in (("?", ".keys"), ("z", ".operations li"), ("m", "dialog .problem, dialog input"), ("r", "input")):
        tab.page.wait_for_selector("#row-3 .turn")
        tab.page.keyboard.press(keys)
        tab.page.wait_for_selector(f"dialog[open] {part}".replace(", dialog", ", dialog[open]"))
        assert violations(tab) == [], keys
        tab.page.keyboard.press("Escape")
        tab.page.wait_for_selector("dialog", state="detached")
    tab.context.close()


def test_the_keyboard_reaches_every_command(program: Any, everything: tuple[Page, dict[str, str]]) -> None:
    tab = Tab(program, everything[0])
    tab.goto(f"/s/{MAIN}@3")
    tab.page.wait_for_selector("#row-3 .turn")
    heads = {"m": "Merge", "r": "Rename", "l": "Label", "f": "Fork", "z": "Operations", "?": "Keys"}
    for key, head in heads.items():
        tab.page.locator("#row-3 .head").focus()
        tab.page.keyboard.press(key)
        assert tab.page.locator("dialog[open] h2").inner_text() == head
        tab.page.keyboard.press("Escape")
        tab.page.wait_for_selector("dialog", state="detached")
    seen = set[str]()
    tab.page.locator("body").evaluate("() => document.activeElement.blur()")
    for _ in range(120):
        tab.page.keyboard.press("Tab")
        seen.add(tab.page.evaluate("document.activeElement.innerText || document.activeElement.tagName"))
    assert {"Archive…", "Pick…", "Copy link", "Fork here…", "Copy resume command", "compare"} <= seen
    tab.context.close()


def test_nothing_moves_for_those_who_want_less_of_it(program: Any, sessgit: Shell) -> None:
    talk = sessgit.talk().turns("first prompt")
    sessgit.recorded(talk)
    with serving(sessgit) as server:
        moving = {}
        for wish in ("reduce", "no-preference"):
            tab = Tab(program, server, reduced_motion=wish)
            tab.goto(f"/s/{talk.session}")
            tab.page.wait_for_selector("#row-1")
            tab.page.evaluate(f"localStorage.setItem('seen {talk.session}', 0)")
            tab.page.reload()
            tab.page.wait_for_selector("#row-1.new")
            moving[wish] = tab.page.evaluate("document.getAnimations().length") > 0
            tab.context.close()
    assert moving == {"reduce": False, "no-preference": True}


def test_images_are_shown_from_this_server(program: Any, sessgit: Shell) -> None:
    talk = sessgit.talk()
    svg = web_world.image(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "image/png")
    talk.prompt([web_world.image(web_world.png(64, 100)), svg, {"type": "text", "text": "look"}])  # type: ignore[arg-type]
    talk.tool("Read", {"file_path": "/p/a.png"}, [web_world.image(web_world.png(80, 120), "text/html")])
    sessgit.recorded(talk.answer("seen").stop_lines())
    with serving(sessgit) as server:
        tab = Tab(program, server)
        tab.goto(f"/s/{talk.session}@1")
        until(lambda: tab.page.evaluate("document.images[0]?.naturalWidth") == 64)  # it moves what is below
        tab.page.locator("#row-1 .call > summary").click()
        until(lambda: tab.page.evaluate("[...document.images].map((one) => one.naturalWidth)") == [64, 80])
        assert "[1 image, not shown]" in tab.page.locator("#row-1 .prompt").inner_text()
        assert (tab.said, tab.asked) == ([], {f"127.0.0.1:{server.port}"})
        tab.context.close()
        for number, status in ((0, 200), (1, 404), (2, 200), (3, 404)):
            answer = server.get(f"/api/image?address={talk.session}&turn=1&number={number}")
            assert answer.status == status
            assert answer.headers["content-type"] == ("image/png" if status == 200 else "application/json")
