"""The first screen of README.md is what `make try` prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
VARYING = re.compile(r"\b[0-9a-f]{7,8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{7,8}\b|\d\d \w{3} \d\d:\d\d")


def plain(text: str) -> list[str]:
    """The lines without ids and times, which are others each time."""
    return [VARYING.sub("#", line).rstrip() for line in text.splitlines()]


def test_the_first_screen_is_real() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    screen = [line[4:] for line in readme[: readme.index("## Install")].splitlines() if line.startswith("    ")]
    done = subprocess.run([sys.executable, ROOT / "examples" / "try.py"], capture_output=True, text=True, check=True)
    shown = plain(done.stdout)
    missing = [line for line in plain("\n".join(screen)) if line not in shown]
    assert missing == []
    assert len(screen) > 15
