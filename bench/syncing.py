"""`sessgit push` and `pull` beside `git push` and `fetch`: part of `make bench`, or alone with a number of sessions.

    python bench/syncing.py [SESSIONS]

All talk to an empty bare repository on this disk, so that what is measured is work and no network. The second time
there is nothing new to send or to bring.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import many
from timing import SESSGIT, Place, show

from sessgit.store import store as stores

SESSIONS = 1_000
ROUNDS = 3
_VERBS = {"sending": ("git push", "sessgit push"), "bringing": ("git fetch", "sessgit pull")}
_REFS = ("refs/heads", "refs/archive", "refs/deleted", "refs/tags")


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    with tempfile.TemporaryDirectory(prefix="sessgit-bench-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        made = many.make(root / "store", sessions)
        print(f"{sessions:,} sessions, {made.raw / 1e6:.0f} MB of transcripts")
        times: dict[str, list[float]] = {}
        for number in range(ROUNDS):
            for name, seconds in _round(root, number).items():
                times.setdefault(name, []).append(seconds)
        for verb, (git, own) in _VERBS.items():
            for more in ("", ", nothing new"):
                names = (f"{git}{more}", f"{own}{more}")
                show(f"{verb}{more}", {name: times[name] for name in names}, names[0])


def _round(root: Path, number: int) -> dict[str, float]:
    """Both once, each to a repository and into a store that nobody has used."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
    remotes = {name: root / f"{name}-remote-{number}" for name in ("git", "sessgit")}
    for remote in remotes.values():
        subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=env)
    here = Place(root, {**env, "SESSGIT_STORE": str(root / "store")})
    there = Place(root, {**env, "SESSGIT_STORE": str(root / f"second-{number}")})
    stores.create(root / f"second-{number}")
    copy = root / f"copy-{number}"
    subprocess.run(["git", "init", "-q", "--bare", copy], check=True, env=env)
    origin = f"origin{number}"
    for place in (here, there):
        place.seconds([*SESSGIT, "remote", "add", origin, str(remotes["sessgit"])])
    push = ["git", "-C", str(root / "store"), "push", "-q", str(remotes["git"]), *(f"{ref}/*:{ref}/*" for ref in _REFS)]
    fetch = ["git", "-C", str(copy), "fetch", "-q", str(remotes["git"]), *(f"{ref}/*:{ref}/*" for ref in _REFS)]
    times: dict[str, float] = {}
    for more in ("", ", nothing new"):
        times[f"git push{more}"] = here.seconds(push)
        times[f"sessgit push{more}"] = here.seconds([*SESSGIT, "push", origin, "--all"])
    for more in ("", ", nothing new"):
        times[f"git fetch{more}"] = there.seconds(fetch)
        times[f"sessgit pull{more}"] = there.seconds([*SESSGIT, "pull", origin])
    return times


if __name__ == "__main__":
    main()
