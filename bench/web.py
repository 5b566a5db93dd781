"""The page of `sessgit web` beside agentsview's: the same transcripts, in turn, in one Chromium.

Both have taken in everything before they start. A round starts one server, looks at its page as a person does, and ends
it; then the other.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import agentsview
import browser
import frame
import many
import sessions
import starter
import timing
from agentsview import OTHER, Both
from frame import BenchError, Table
from playwright import sync_api
from sessions import Conversation
from timing import SESSGIT, Place, Scale

from sessgit import agents
from sessgit.record.install import install
from sessgit.store.context import Homes

LONG = "b0000000-0000-4000-8000-000000000001"
LIVE = "b0000000-0000-4000-8000-000000000002"
MEGABYTES = 25
"""Of other conversations."""
PATIENCE = 20
"""Seconds after which something counts as not shown."""
ANSWERS, VIEW, OPENED, LIVE_TURN = "first answer", "first view", "longest opened", "new turn shown"
CODE, MEMORY = "code sent", "memory of the server"
MEASURES = {ANSWERS: "s", VIEW: "s", OPENED: "s", LIVE_TURN: "s", CODE: "kB", MEMORY: "MB"}
NOTE = (
    "first answer: from the command, all is taken in before; first view: from the address to the list; longest opened: "
    "from a click to prompts and answers; new turn: from its last byte to the page; code: scripts, styles and HTML"
)


def measure(scale: Scale) -> Iterator[Table]:
    """One table of both pages."""
    if not browser.program():
        raise BenchError("no Chromium: install chromium, or name one in SESSGIT_TEST_BROWSER")
    with timing.folder() as root, sync_api.sync_playwright() as playwright:
        both = Both(root)
        agentsview.write(both.projects, many.Texts(1), MEGABYTES)
        sessions.write(both.projects / "-home-ada-long" / f"{LONG}.jsonl", Path("/home/ada/long"), scale.turns)
        size = both.size
        live = Conversation(LIVE, Path("/home/ada/live"), both.projects / "-home-ada-live" / f"{LIVE}.jsonl")
        for number in range(20):
            live.turn(f"short prompt {number}", [], "short answer")
        both.import_()
        install(both.store, agents.client(Homes({"claude": both.projects.parent})), python=sys.executable)
        pages = [_own(both), _other(both)] if both.program else [_own(both)]
        flags = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        chromium = playwright.chromium.launch(executable_path=browser.program(), args=flags)
        for number in range(scale.rounds):
            timing.here(root).known()
            for page in pages:
                page.take_in()
                _Visit(page, chromium, live, f"answer {number} on {page.name}").run()
        chromium.close()
    own, other = pages[0], pages[1] if len(pages) > 1 else None
    theirs = (other.name, other.measured, other.problems) if other else None
    yield frame.compared(f"pages of {size}, the longest of {scale.turns:,} turns", MEASURES, own.measured, theirs, NOTE)


@dataclass
class Page:
    """A program's page, where its parts are, and what was measured."""

    name: str
    command: list[str]
    place: Place
    take_in: Callable[[], object]
    """Takes in what is new, before the server starts."""
    first: str
    """The path of the page's HTML, which the server answers without a cookie."""
    listed: str
    """The selector of a conversation in the list."""
    opened: str
    """The selector of an answer in a conversation."""
    session: str
    """The path of a conversation, before its id."""
    to_latest: Callable[[sync_api.Page], object]
    """Goes to the last turns."""
    recorded: Callable[[Path], object] = lambda path: None
    """What the client does at the end of a turn, besides writing it."""
    is_own: bool = False
    """The server prints the address by which a browser enters, and the page must show everything."""
    measured: dict[str, list[float]] = field(default_factory=lambda: {what: [] for what in MEASURES})
    problems: dict[str, str] = field(default_factory=dict)


def _own(both: Both) -> Page:
    def hook(path: Path) -> None:
        payload = {"session_id": path.stem, "transcript_path": str(path), "cwd": str(both.root)}
        command, given = ["sh", str(both.store / "hook")], json.dumps(payload | {"hook_event_name": "Stop"}).encode()
        subprocess.run(command, input=given, env=dict(both.own.env), check=True)

    def take_in() -> None:
        both.own.run([*SESSGIT, "import"])
        while list((both.store / "spool").iterdir()):
            time.sleep(0.01)  # the recorder is still at work

    return Page(
        "sessgit",
        [*SESSGIT, "web", "--no-open", "--all", "--port"],
        both.own,
        take_in,
        first="/static/page.html",
        listed="main .node a",
        opened=".row .words:not(:empty)",
        session="/s/",
        to_latest=lambda tab: tab.keyboard.press("G"),
        recorded=hook,
        is_own=True,
    )


def _other(both: Both) -> Page:
    return Page(
        OTHER,
        [both.program, "serve", "--no-browser", "--no-update-check", "--port"],
        both.other,
        lambda: both.sync(anew=False),
        first="/",
        listed=".sidebar .session-item",
        opened=".message:not(.is-user) .text-content",
        session="/sessions/",
        to_latest=lambda tab: tab.get_by_label("Follow latest messages").click(),
    )


class _Visit:
    """One start of a server, and a look at its page."""

    def __init__(self, page: Page, chromium: sync_api.Browser, live: Conversation, answer: str) -> None:
        self.page, self.live, self.answer = page, live, answer
        self.context = chromium.new_context()
        self.context.set_default_timeout(PATIENCE * 1000)
        self.tab = self.context.new_page()
        self.code: set[str] = set()
        self.tab.on("request", self._asked)

    def run(self) -> None:
        """Measure everything; raises BenchError if our own page does not show something."""
        with _serving(self.page) as (server, address, entrance):
            looks: dict[str, Callable[[], float]] = {
                VIEW: lambda: self._view(entrance),
                OPENED: self._open_longest,
                LIVE_TURN: lambda: self._add_turn(f"{address}{self.page.session}{LIVE}"),
                CODE: lambda: sum(len(self.context.request.get(one).body()) for one in self.code) / 1e3,
                MEMORY: lambda: starter.tree(server.pid) / 1e6,
            }
            for what, look in looks.items():
                try:
                    self.page.measured[what].append(look())
                except sync_api.Error as error:
                    problem = error.message.splitlines()[0]
                    if self.page.is_own:
                        raise BenchError(f"{what}: {problem}") from error
                    self.page.problems[what] = problem
        self.context.close()

    def _asked(self, request: sync_api.Request) -> None:
        if request.resource_type in ("document", "script", "stylesheet") and "//127.0.0.1:" in request.url:
            self.code.add(request.url)

    def _view(self, entrance: str) -> float:
        started = time.perf_counter()
        self.tab.goto(entrance, wait_until="commit")
        return self._until(self.page.listed, started)

    def _open_longest(self) -> float:
        longest = self.tab.locator(self.page.listed, has_text="prompt 0:").first
        started = time.perf_counter()
        longest.click()
        return self._until(self.page.opened, started)

    def _add_turn(self, address: str) -> float:
        """Add a turn to a conversation whose end is on the screen."""
        self.tab.goto(address)
        self.tab.locator(self.page.opened).first.wait_for()
        self.page.to_latest(self.tab)
        self.tab.wait_for_timeout(1000)
        self.live.turn(f"prompt to {self.page.name}", [], self.answer)
        started = time.perf_counter()
        self.page.recorded(self.live.path)
        return self._until(f"text={self.answer}", started)

    def _until(self, shown: str, started: float) -> float:
        """Seconds until something is painted."""
        self.tab.locator(shown).first.wait_for()
        self.tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.perf_counter() - started


@contextmanager
def _serving(page: Page) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server that has answered: its process, its address, and the address by which a browser enters."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started = time.perf_counter()
    server = subprocess.Popen(
        [*page.command, str(port)],
        cwd=page.place.cwd,
        env=dict(page.place.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        while not _answers(port, page.first):
            if server.poll() is not None or time.perf_counter() - started > PATIENCE:
                raise BenchError(f"the server of {page.name} does not answer")
            time.sleep(0.002)
        page.measured[ANSWERS].append(time.perf_counter() - started)
        assert server.stdout is not None
        address = f"http://127.0.0.1:{port}"
        yield server, address, server.stdout.readline().strip() if page.is_own else f"{address}/"
    finally:
        server.terminate()
        server.communicate()


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    timing.run_alone(measure)
