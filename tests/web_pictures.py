"""Makes the pictures of docs/pictures: `.venv/bin/python tests/web_pictures.py`, where Chromium is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import browser
from playwright.sync_api import sync_playwright
from web_world import MAIN, World

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
CONVERSATIONS = 14
VIEWS = {
    "forest": ("/", ".node", 1200, 620, "light"),
    "conversation": (f"/s/{MAIN}@3.2", "#row-3 .call[open]", 1200, 1120, "light"),
    "difference": (f"/d/{MAIN}/FORK", ".sides-of", 1200, 560, "light"),
    "dark": (f"/s/{MAIN}", "#row-6", 1200, 700, "dark"),
}
"""Of each picture the address, what it waits for, its size, and its colours."""


class Home:
    """A temporary home, in which the program runs."""

    def __init__(self, root: Path) -> None:
        self.root, self.project = root, root / "code" / "parser"
        self.project.mkdir(parents=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(root), "LC_ALL": "C.UTF-8"}

    def run(self, name: str, *arguments: str) -> Any:
        command = [sys.executable, "-m", "sessgit", name, *([] if name == "import" else ["--json"]), *arguments]
        done = subprocess.run(command, env=self.env, cwd=self.project, capture_output=True, text=True, check=True)
        return None if name == "import" else json.loads(done.stdout)

    def serve(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "sessgit", "web", "--no-open", "--all", "--keep"]
        return subprocess.Popen(command, env=self.env, cwd=self.project, stdout=subprocess.PIPE, text=True)


def main() -> None:
    """Make all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ada-") as folder:
        place = Home(Path(folder))
        World(place.root, place.run, datetime.now(UTC)).build(CONVERSATIONS)
        (fork,) = (one["id"] for one in place.run("ls", "--all")["sessions"] if one["name"] == "tokens as a trie")
        with place.serve() as server, sync_playwright() as playwright:
            assert server.stdout is not None
            link = server.stdout.readline().strip()
            driven = playwright.chromium.launch(executable_path=browser.program(), args=["--no-sandbox"])
            page = driven.new_page(reduced_motion="reduce")
            page.goto(link)
            page.wait_for_selector("main .node")
            for name, (path, part, width, height, scheme) in VIEWS.items():
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                page.goto(link.split("/open")[0] + path.replace("FORK", fork))
                page.wait_for_selector(part)
                page.evaluate("scrollTo(0, 0)")
                page.wait_for_timeout(500)
                page.screenshot(path=str(FOLDER / f"{name}.png"))
            driven.close()
            server.terminate()


if __name__ == "__main__":
    main()
