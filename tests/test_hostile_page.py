"""The page of `sessgit web` against other pages in the same browser, hostile transcripts and sizes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import browser as chromium
import hostile
import pytest
from shell import Shell
from test_web import serving
from test_web_browser import Tab
from transcripts import SESSION
from waiting import until

pytestmark = [*chromium.needed, pytest.mark.xdist_group("web")]

LONG = bool(os.environ.get("SESSGIT_TEST_FUZZ"))
MANY = 10_000 if LONG else 500
MEGABYTES = 200 if LONG else 70
"""More than the longest line that is read as JSON."""


ATTACK = """<!DOCTYPE html><title>attack</title><form id=form method=post enctype=text/plain action="TARGET/api/run" target=sink>
<input name='{"command":"archive","mode":"run","values":{"address":"SESSION"},"x":"' value='"}'></form>
<iframe name=sink></iframe><iframe id=page src="TARGET/"></iframe><img id=image src="TARGET/api/image?address=SESSION&turn=1&number=0">
<script src="TARGET/api/forest"></script>
<script>
const body = JSON.stringify({command: "archive", mode: "run", values: {address: "SESSION"}});
const tries = {
  read: () => fetch("TARGET/api/forest", {credentials: "include"}).then((r) => r.text()),
  write: () => fetch("TARGET/api/run", {method: "POST", credentials: "include", body,
    headers: {"Content-Type": "application/json", "X-Sessgit": "1"}}).then((r) => r.text()),
  simple: () => fetch("TARGET/api/run", {method: "POST", mode: "no-cors", credentials: "include", body}).then((r) => r.type),
  blind: () => fetch("TARGET/api/forest", {mode: "no-cors", credentials: "include"}).then((r) => r.type),
  events: () => new Promise((yes, no) => Object.assign(new EventSource("TARGET/api/events", {withCredentials: true}),
    {onmessage: yes, onopen: yes, onerror: () => no(new Error("no stream"))})),
  window: () => { const other = open("TARGET/"); return new Promise((yes) => setTimeout(yes, 500)).then(() => other.document.title); },
};
document.getElementById("form").submit();
window.found = (async () => {
  const found = {};
  for (const [name, run] of Object.entries(tries)) found[name] = await run().catch((error) => `refused`);
  found.image = document.getElementById("image").naturalWidth;
  try { found.frame = document.getElementById("page").contentDocument?.title ?? "refused"; } catch { found.frame = "refused"; }
  return found;
})();
</script>"""  # noqa: E501


@contextmanager
def other_site(text: str) -> Iterator[int]:
    """Another server of this machine, which serves one page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield listening.server_port
        listening.shutdown()
        thread.join()


@pytest.fixture
def told(sessgit: Shell) -> Shell:
    sessgit.recorded(sessgit.talk().turns("first prompt", "second prompt"))
    return sessgit


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_another_page_of_the_browser_reads_and_changes_nothing(program: Any, told: Shell, host: str) -> None:
    """A page of another port of this host is of the same site, so that the browser sends it the cookie."""
    with serving(told) as server:
        tab = Tab(program, server)
        target = f"http://{host}:{server.port}"
        with other_site(ATTACK.replace("TARGET", target).replace("SESSION", SESSION)) as port:
            tab.page.goto(f"http://127.0.0.1:{port}/")
            found = tab.page.evaluate("window.found")
        assert found == {
            "read": "refused",
            "write": "refused",
            "simple": "refused",
            "blind": "refused",
            "events": "refused",
            "window": "refused",
            "image": 0,
            "frame": "refused",
        }
        tab.context.close()
        assert server.get("/api/here").status == 200
    assert told.json("ls")["sessions"][0]["archived"] is False
    assert told.json("ops") == {"operations": []}


def test_a_name_that_leads_to_this_machine_is_refused(program: Any, told: Shell) -> None:
    """As a site does that points its own name here after it was loaded."""
    rules = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    with serving(told) as server:
        driven = program.browser_type.launch(executable_path=chromium.program(), args=["--no-sandbox", rules])
        tab = driven.new_page()
        for path in ("/", "/api/forest", "/static/app.js", server.access.link().removeprefix(server.access.address)):
            answer = tab.goto(f"http://evil.example:{server.port}{path}")
            assert answer is not None
            assert (answer.status, answer.json()["error"]["message"]) == (403, "unknown host"), path
        driven.close()


def test_a_hostile_conversation_is_text_in_every_view(program: Any, sessgit: Shell) -> None:
    with chromium.server() as asked:
        talk = hostile.talk(asked.port, cwd=str(sessgit.project))
        sessgit.recorded(talk)
        fork = json.loads(sessgit("fork", "--json", SESSION, "--at", "1").out)["id"]
        with serving(sessgit) as server:
            tab = Tab(program, server, reduced_motion="reduce")
            tab.page.on("dialog", lambda dialog: tab.said.append("a dialog"))
            views = ("/?project=", f"/s/{SESSION}@1", f"/s/{SESSION}@2", f"/d/{SESSION}/{fork}")
            for path in (*views, "/search?q=script"):
                tab.goto(path)
                tab.page.wait_for_selector("main :is(.node, .turn, .sides-of, .hits)")
                tab.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
                assert (
                    tab.count("main :is(script, iframe, object, embed, base, link, meta, style, math, [onload])") == 0
                )
                assert tab.count("main a:not([href^='/'], [href^='#'], [href^='http'], [href^='mailto'])") == 0
                assert tab.count("main :is(img, image):not([src^='/api/image'])") == 0
                text = tab.page.locator("#app").inner_text()
                assert not {"\x1b", "\u202e", "\u2066", "\x07", "\0"} & {*text}, path
                assert "ran" not in (tab.page.title(), tab.page.evaluate("document.documentElement.dataset.ran"))
            assert tab.said == []
            assert tab.asked == {f"127.0.0.1:{server.port}"}
            tab.context.close()
    assert asked.paths == []


def test_a_huge_line_is_shown_cut(program: Any, sessgit: Shell) -> None:
    talk = (
        sessgit.talk().prompt("print it").tool("Bash", {"command": "yes"}, "y " * (MEGABYTES * 500_000)).answer("done")
    )
    sessgit.recorded(talk.stop_lines().turns("the next prompt"))
    with serving(sessgit) as server:
        tab = Tab(program, server)
        tab.goto(f"/s/{SESSION}@1")
        tab.page.wait_for_selector("#row-1 .turn")
        assert tab.page.evaluate("document.documentElement.outerHTML.length") < 200_000
        until(lambda: tab.page.locator("#row-2 .title").inner_text() == "the next prompt")
        tab.context.close()


def test_many_conversations(program: Any, sessgit: Shell) -> None:
    for number in range(MANY):
        sessgit.keep(sessgit.talk(f"5e551011-0000-4000-8000-{number:012}").turns(f"prompt {number}"))
    assert sessgit("import").code == 0
    with serving(sessgit) as server:
        tab = Tab(program, server)
        assert tab.page.locator(".filters .quiet").inner_text() == f"{MANY:,} conversations"
        assert tab.count(".node") < MANY
        tab.page.locator("main input[type=search]").fill(f"prompt {MANY - 1}")
        until(lambda: tab.count(".node") == 1)
        assert tab.page.locator(".node .title").text_content() == f"prompt {MANY - 1}"
        tab.page.locator("main input[type=search]").fill("")
        until(lambda: tab.count(".node") > 1)
        tab.page.keyboard.press("Escape")
        tab.page.keyboard.press("G")
        until(lambda: tab.count(".node") > 300)
        tab.context.close()
