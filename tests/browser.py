"""A headless Chromium that opens a page from a file, and a server that nobody is to ask anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=2000",
    "--enable-logging=stderr",
)  # fmt: skip
_TIME = 60


def program() -> str:
    """The browser's program, or ``""`` where there is none."""
    named = os.environ.get("SESSGIT_TEST_BROWSER", "")
    return named or next((found for name in NAMES if (found := shutil.which(name))), "")


needed = [
    pytest.mark.browser,
    pytest.mark.skipif(not program(), reason="no Chromium: SESSGIT_TEST_BROWSER names one, or install chromium"),
]


@dataclass
class Opened:
    """A page as the browser has it: its DOM as HTML, and what was said on the console."""

    dom: str
    console: list[str]


def opened(page: Path, profile: Path) -> Opened:
    """Opens the page in a fresh profile, and gives its scripts two seconds."""
    done = subprocess.run(
        [program(), *_FLAGS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()],
        capture_output=True,
        timeout=_TIME,
        check=True,
    )
    said = done.stderr.decode("utf-8", "replace").splitlines()
    return Opened(done.stdout.decode("utf-8", "replace"), [line for line in said if "CONSOLE" in line])


def printed_pages(page: Path, profile: Path) -> int:
    """On how many sheets the page is printed."""
    target = profile.with_suffix(".pdf")
    command = [program(), *_FLAGS, f"--user-data-dir={profile}", f"--print-to-pdf={target}", page.as_uri()]
    subprocess.run(command, capture_output=True, timeout=_TIME, check=True)
    return len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))


@dataclass
class Asked:
    """A server on this machine, and the paths that it was asked for."""

    port: int
    paths: list[str] = field(default_factory=list)


@contextmanager
def server() -> Iterator[Asked]:
    """A server that notes what it is asked, and has nothing."""
    asked = Asked(0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.paths.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        asked.port = listening.server_port
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            listening.shutdown()
            thread.join()


class Elements(HTMLParser):
    """The elements of a page, `("a", {"href": "#turn-1"})`, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.found if name == tag]
