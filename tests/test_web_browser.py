"""`sessgit web` in a real browser: what a person does with the page, and what a transcript cannot do to it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import browser as chromium
import hostile
import pytest
from shell import Shell
from test_recorder import Recorded
from test_web import Page, serving
from transcripts import OTHER, SESSION, Talk
from waiting import PATIENCE, until

pytestmark = [*chromium.needed, pytest.mark.xdist_group("web")]


class Tab:
    """A tab that has entered the page: what it says on the console, and the hosts that it asks."""

    def __init__(self, program: Any, server: Page, **features: Any) -> None:
        self.context = program.new_context(**features)
        self.context.set_default_timeout(PATIENCE * 1000)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(request.url.split("/")[2]))
        self.address = server.access.address
        self.page.goto(server.access.link())
        self.page.wait_for_selector("main .node")

    def goto(self, path: str) -> None:
        self.page.goto(self.address + path)

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())


def told(sessgit: Shell) -> Talk:
    talk = sessgit.talk().prompt("first prompt").tool("Bash", {"command": "ls -l"}, "a listing").answer("done")
    return talk.stop_lines().turns("second prompt", "third prompt")


@pytest.fixture
def server(sessgit: Shell) -> Iterator[Page]:
    sessgit.recorded(told(sessgit))
    with serving(sessgit) as running:
        yield running


@pytest.fixture
def tab(program: Any, server: Page) -> Iterator[Tab]:
    entered = Tab(program, server)
    yield entered
    entered.context.close()
    assert entered.said == []
    assert entered.asked == {f"127.0.0.1:{server.port}"}


def test_from_the_forest_to_a_turn_by_keys(tab: Tab) -> None:
    assert tab.page.url == f"{tab.address}/"
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#row-3")
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#row-1 .turn")
    assert tab.page.locator("#row-1 .prompt").inner_text().strip() == "first prompt"
    tab.page.keyboard.press("?")
    assert "copy the resume command" in tab.page.locator("dialog[open]").inner_text()
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector("dialog", state="detached")
    tab.page.keyboard.type("/listing")
    tab.page.locator(".hits a mark").wait_for()
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".call.asked[open]")
    assert tab.page.url == f"{tab.address}/s/{SESSION}@1.2?q=listing"


def test_a_change_elsewhere_shows_and_folds_nothing(tab: Tab, sessgit: Shell) -> None:
    tab.goto(f"/s/{SESSION}@1")
    tab.page.locator("#row-1 .call > summary").click()
    tab.page.locator("#row-2 .head").focus()
    sessgit.out("rename", SESSION, "a new name")
    tab.page.locator("h1", has_text="a new name").wait_for()
    sessgit.recorded(told(sessgit).turns("fourth prompt"))
    tab.page.wait_for_selector("#row-4.new")
    assert tab.count("#row-1 .call[open]") == 1
    assert tab.page.evaluate("document.activeElement.dataset.turn") == "2"


def test_twenty_tabs_follow_a_burst_of_hooks(tab: Tab, sessgit: Shell) -> None:
    """A browser opens six connections to a server at most, and a tab that follows must not keep one to itself."""
    sessgit.out("install")
    pages = [tab.page, *(tab.context.new_page() for _ in range(19))]
    for page in pages[1:]:
        page.goto(f"{tab.address}/s/{SESSION}", wait_until="commit")
    focused = tab.page
    tab.goto(f"/s/{SESSION}@1")
    focused.bring_to_front()
    focused.locator("#row-1 .call > summary").click()
    focused.locator("#row-2 .head").focus()
    at = focused.evaluate("scrollTo(0, 90), scrollY")
    for page in pages:
        page.wait_for_selector("#row-3")
    recorded, talk, hooks, most = Recorded(sessgit.store), told(sessgit), [], 0
    for number in range(4, 54):
        path = sessgit.keep(talk.turns(f"prompt {number}"))
        event = {"session_id": SESSION, "transcript_path": str(path), "cwd": "/", "hook_event_name": "Stop"}
        hook = subprocess.Popen(["sh", str(sessgit.store / "hook")], stdin=subprocess.PIPE)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(event | {"last_assistant_message": f"About prompt {number}."}).encode())
        hook.stdin.close()
        hooks.append(hook)
        most = max(most, len(recorded.recorders()))
    assert [hook.wait() for hook in hooks] == [0] * 50
    until(recorded.is_quiet)
    assert (recorded.turns(SESSION), recorded.log()) == (53, "")
    assert most <= 12
    for page in pages:
        page.wait_for_selector("#row-53", state="attached", timeout=10_000)
    assert focused.evaluate("scrollY") == at
    assert focused.evaluate("document.querySelectorAll('#row-1 .call[open]').length") == 1
    assert [page.locator(".row.open").count() for page in pages] == [1] + [0] * 19
    assert focused.evaluate("document.activeElement.dataset.turn") == "2"
    show = """isHidden => {
        Object.defineProperty(document, "hidden", {value: isHidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    focused.evaluate(show, True)  # another tab follows now
    sessgit.out("rename", SESSION, "a new name")
    for page in pages[1:]:
        page.locator("h1", has_text="a new name").wait_for()
    assert focused.locator("h1").inner_text() == "first prompt"
    focused.evaluate(show, False)
    focused.locator("h1", has_text="a new name").wait_for()


def test_a_tab_whose_stream_is_refused_leaves_it_to_another(program: Any, server: Page, sessgit: Shell) -> None:
    """As that of a tab with the cookie of a server that has ended."""
    tab = Tab(program, server)
    tab.page.route("**/api/events", lambda route: route.fulfill(status=401))
    with tab.page.expect_response("**/api/events"):
        tab.goto(f"/s/{SESSION}")
    other = tab.context.new_page()
    other.goto(f"{tab.address}/s/{SESSION}")
    other.wait_for_selector("#row-3")
    sessgit.out("rename", SESSION, "a new name")
    for page in (other, tab.page):
        page.locator("h1", has_text="a new name").wait_for()
    tab.context.close()


def test_a_fork_by_the_page_and_its_undo(tab: Tab, sessgit: Shell) -> None:
    tab.goto(f"/s/{SESSION}@2")
    tab.page.locator("#row-2 [data-fork]").click()
    assert tab.page.locator("dialog .command code").inner_text() == "sessgit fork 5e551011 --at 2"
    tab.page.locator("dialog .primary").click()
    tab.page.locator("dialog .outcome-of a").wait_for()
    assert "claude --resume" in tab.page.locator("dialog .outcome-of .command").inner_text()
    assert [one["turns"] for one in sessgit.json("ls")["sessions"]] == [3, 2]
    tab.page.locator("dialog button", has_text="Undo").click()
    tab.page.locator("dialog .outcome-of b", has_text="Nothing is changed yet.").wait_for()
    tab.page.locator("dialog .primary", has_text="Undo").click()
    tab.page.locator("dialog .outcome-of b", has_text="Done.").wait_for()
    assert [one["turns"] for one in sessgit.json("ls")["sessions"]] == [3]
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector("dialog", state="detached")


def test_a_filter_that_finds_nothing_leads_to_the_search(tab: Tab) -> None:
    tab.page.locator("main input[type=search]").fill("a listing")
    tab.page.get_by_text("Search what was said").click()
    tab.page.locator(".hits a mark").first.wait_for()
    assert tab.page.url == f"{tab.address}/search?q=a+listing"


def test_the_conversations_that_wrote_a_file_have_names(program: Any, sessgit: Shell) -> None:
    for session, title in ((SESSION, "the first"), (OTHER, "the second")):
        talk = sessgit.talk(session).prompt("go").tool("Write", {"file_path": "/code/a.py", "content": "x\n"})
        sessgit.recorded(talk.answer("done").stop_lines().title(title))
    with serving(sessgit) as server:
        tab = Tab(program, server)
        tab.goto("/why?file=a.py")
        tab.page.wait_for_selector(".steps")
        names = tab.page.locator(".facts a, .steps + .quiet a")
        names.filter(has_text="the second").wait_for()
        assert sorted(names.all_inner_texts()) == ["the first", "the second"]
        tab.goto(f"/why?of={SESSION}")
        tab.page.wait_for_selector("section")
        assert tab.page.locator("section :is(h2, code)").all_inner_texts() == ["Written", "/code/a.py"]
        tab.context.close()


def test_no_lane_crosses_another(tab: Tab, sessgit: Shell) -> None:
    """The forks that leave a conversation last are next to it."""
    late = sessgit.json("fork", SESSION, "--at", "2", "--name", "late")["id"]
    sessgit.out("fork", SESSION, "--at", "1", "--name", "early")
    sessgit.out("fork", late, "--at", "2", "--name", "of a fork")
    tab.page.locator(".title", has_text="of a fork").wait_for()
    titles = tab.page.locator(".node .title").all_text_contents()
    assert (titles[0], titles[-1]) == ("first prompt", "early")


def test_no_merge_covers_another(tab: Tab, sessgit: Shell) -> None:
    for _ in range(2):
        sessgit.out("merge", SESSION, "--into", sessgit.json("fork", SESSION, "--at", "2")["id"])
    arcs = tab.page.locator(".lanes .merge")
    arcs.nth(1).wait_for(state="attached")
    assert len({arc.get_attribute("d").split()[1] for arc in arcs.all()}) == 2


def test_a_merge_from_the_comparison(tab: Tab, sessgit: Shell) -> None:
    fork = sessgit.json("fork", SESSION, "--at", "2", "--name", "a fork")["id"]
    sessgit.out("edit", SESSION, "--label", "+draft", "--label", "+review")
    tab.goto(f"/s/{fork}")
    assert tab.page.locator("#row-2 + .between").text_content() == "↳ Forked here from 5e551011 first prompt · compare"
    tab.goto(f"/d/{SESSION}/{fork}")
    tab.page.locator("[data-merge]").click()  # only this side lacks turns
    command = f"sessgit merge 5e551011 --into {fork[:8]} --mode summary"
    assert tab.page.locator("dialog .command code").inner_text() == command
    tab.page.locator("dialog .primary").click()
    tab.page.locator("dialog .decisions").wait_for()
    assert tab.page.locator("dialog .decisions tbody tr").all_inner_texts() == [
        "turns\t0\t1\t1 turn of theirs appended",
        "labels\t\tdraft, review\tdraft, review",
    ]
    tab.page.locator("dialog .primary", has_text="Merge").click()
    tab.page.locator("dialog b", has_text="Done.").wait_for()
    assert tab.page.locator("dialog .primary:focus").inner_text() == "Close"
    tab.page.locator("dialog button", has_text="Undo").click()
    tab.page.locator("dialog .outcome-of").wait_for()
    assert command in tab.page.locator("dialog").inner_text()
    tab.page.keyboard.press("Escape")


def test_a_label_by_keys(tab: Tab) -> None:
    tab.goto(f"/s/{SESSION}")
    tab.page.wait_for_selector("#row-3")
    tab.page.keyboard.press("l")
    tab.page.wait_for_selector("dialog input:focus")
    tab.page.keyboard.type("draft")
    tab.page.locator("dialog code", has_text="sessgit edit 5e551011 --label=+draft").wait_for()
    tab.page.keyboard.press("Enter")
    tab.page.locator("dialog b", has_text="Done.").wait_for()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("dialog", state="detached")
    tab.page.locator(".facts .tag").wait_for()  # the page reads the conversation again meanwhile
    assert tab.page.locator(".facts .tag").all_inner_texts() == ["#draft"]


def test_a_result_shows_where_it_was_said(program: Any, sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("where is the needle?").tool("Bash", {"command": "ls"}, "hay\n")
    sessgit.recorded(talk.answer("no\n\n" * 80 + "A needle.").stop_lines())
    with serving(sessgit) as server:
        tab = Tab(program, server)
        tab.goto("/search?q=needle&in=answers")
        tab.page.locator(".hits a").click()
        tab.page.wait_for_selector(".prose.asked")
        assert 0 < tab.page.locator(".prose.asked p").last.bounding_box()["y"] < 720
        tab.context.close()


def test_it_fits_a_phone(program: Any, server: Page, sessgit: Shell) -> None:
    fork = sessgit.json("fork", SESSION, "--at", "2", "--name", "n" * 80)["id"]
    labels = ("draft", "needs-a-second-look", "waiting-for-review", "v2")
    sessgit.out("edit", fork, *(f"--label=+{label}" for label in labels))
    tab = Tab(program, server, viewport={"width": 420, "height": 800})
    views = {
        "/": ".node",
        f"/s/{SESSION}@1": "#row-1 .turn",
        f"/d/{SESSION}/{fork}": ".sides-of",
        f"/s/{fork}": ".relatives .tag",
        "/search?q=prompt": ".hits",
        "/stats": ".numbers",
    }
    for path, part in views.items():
        tab.goto(path)
        tab.page.wait_for_selector(part)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 420, path
    tab.context.close()


def test_a_hostile_transcript_runs_nothing(program: Any, sessgit: Shell) -> None:
    talk = sessgit.talk().title("<img src=x onerror=alert(1)>")
    for text in (hostile.MARKDOWN, "<script>document.title='ran'</script><svg onload=alert(1)>"):
        talk.prompt(text).tool("Bash", {"command": text}, text).answer(text).stop_lines()
    sessgit.recorded(talk)
    with serving(sessgit) as server:
        tab = Tab(program, server)
        tab.page.on("dialog", lambda dialog: tab.said.append("a dialog"))
        for number in (1, 2):
            tab.goto(f"/s/{SESSION}@{number}")
            tab.page.wait_for_selector(f"#row-{number} .turn")
            assert tab.page.title() == "<img src=x onerror=alert(1)> · sessgit"
            assert tab.count("main :is(script, img, iframe, object, embed, form, style, [onload], [onerror])") == 0
            assert tab.count("main a:not([href^='/'], [href^='#'], [href^='http'], [href^='mailto'])") == 0
        assert tab.said == []
        assert tab.asked == {f"127.0.0.1:{server.port}"}
        tab.context.close()


def test_only_the_turns_near_the_screen_are_drawn(program: Any, sessgit: Shell) -> None:
    """So that a conversation of thousands of turns opens at once."""
    sessgit.recorded(sessgit.talk().turns(*(f"prompt {number}" for number in range(1, 601))))
    with serving(sessgit) as server:
        tab = Tab(program, server)
        tab.goto(f"/s/{SESSION}")
        tab.page.wait_for_selector("#row-600", state="attached")
        assert tab.count(".row") == 75  # the first fifty, which are near the screen, and the last
        tab.page.keyboard.press("G")
        assert tab.page.evaluate("document.activeElement.dataset.turn") == "600"
        while tab.page.evaluate("document.activeElement.dataset.turn") != "540":
            before = tab.page.evaluate("document.activeElement.dataset.turn")
            tab.page.keyboard.press("k")
            now = tab.page.evaluate("document.activeElement.dataset.turn")
            assert int(before) - int(now) in (0, 1)  # no turn is passed over
        tab.goto(f"/s/{SESSION}@300")
        tab.page.wait_for_selector("#row-300 .turn")
        assert tab.count(".row") <= 150
        assert tab.said == []
        tab.context.close()
