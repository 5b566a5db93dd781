"""`sessgit prompt`: a word for a shell prompt, which runs it before each command line: it imports next to nothing."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from urllib.parse import quote

from sessgit.store.project import project_key

_NEWEST_FIRST = """SELECT name, project, turns FROM branches
    WHERE name = session AND NOT archived AND turns AND NOT headless ORDER BY updated DESC"""


def address(folder: str) -> str:
    """Return the last turn of the newest conversation in the folder's project, such as `a41f9c02@4`, or ``""``.

    It reads the index as it is: recorders and commands keep it up to date.
    """
    config = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")  # noqa: PTH111
    store = os.environ.get("SESSGIT_STORE") or os.path.join(config, "session-store")  # noqa: PTH118
    own, keys = project_key(folder), dict[str, str]()
    try:
        with closing(sqlite3.connect(f"file:{quote(store)}/index.sqlite3?mode=ro", uri=True, timeout=0)) as index:
            for name, project, turns in index.execute(_NEWEST_FIRST):
                if project not in keys:
                    keys[project] = project_key(project)
                if keys[project] == own:
                    return f"{name[:8]}@{turns}"
    except (sqlite3.Error, UnicodeError):
        pass
    return ""


def main() -> None:
    """Print the word, or nothing."""
    try:
        word = address(os.getcwd())  # noqa: PTH109
    except OSError:  # the folder was deleted
        return
    if word.isprintable():
        sys.stdout.write(f"{word}\n" if word else "")
