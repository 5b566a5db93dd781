"""`sessgit push` and `pull` beside `git push` and `fetch`: part of `make bench`, or alone.

All talk to an empty bare repository on this disk, so that what is measured is work and no network. The second time
there is nothing new to send or to bring.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import many
import timing
from frame import Table
from timing import SESSGIT, Scale, Took

from sessgit.store import store as stores

_VERBS = {"sending": ("git push", "sessgit push"), "bringing": ("git fetch", "sessgit pull")}
_REFS = ("refs/heads", "refs/archive", "refs/deleted", "refs/tags")


def measure(scale: Scale) -> Iterator[Table]:
    """Both ways, with all to do and with nothing."""
    sessions = scale.sessions // 10
    with timing.folder() as root:
        made = many.make(root / "store", sessions)
        size = f"{sessions:,} sessions, {made.raw / 1e6:.0f} MB of transcripts"
        times: dict[str, list[Took]] = {}
        for number in range(scale.few):
            for name, took in _round(root, number).items():
                times.setdefault(name, []).append(took)
        for verb, (git, own) in _VERBS.items():
            for more in ("", ", nothing new"):
                names = (f"{git}{more}", f"{own}{more}")
                title = f"{verb} {size}" if not more else f"{verb}{more}"
                yield timing.of(title, {name: times[name] for name in names}, names[0])


def _round(root: Path, number: int) -> dict[str, Took]:
    """Both once, each to a repository and into a store that nobody has used."""
    remotes = {name: root / f"{name}-remote-{number}" for name in ("git", "sessgit")}
    for remote in remotes.values():
        subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    here = timing.here(root, more={"SESSGIT_STORE": str(root / "store")})
    there = timing.here(root, more={"SESSGIT_STORE": str(root / f"second-{number}")})
    stores.create_store(root / f"second-{number}")
    copy = root / f"copy-{number}"
    subprocess.run(["git", "init", "-q", "--bare", copy], check=True)
    origin = f"origin{number}"
    for place in (here, there):
        place.seconds([*SESSGIT, "remote", "add", origin, str(remotes["sessgit"])])
    push = ["git", "-C", str(root / "store"), "push", "-q", str(remotes["git"]), *(f"{ref}/*:{ref}/*" for ref in _REFS)]
    fetch = ["git", "-C", str(copy), "fetch", "-q", str(remotes["git"]), *(f"{ref}/*:{ref}/*" for ref in _REFS)]
    times: dict[str, Took] = {}
    for more in ("", ", nothing new"):
        times[f"git push{more}"] = here.run(push)
        times[f"sessgit push{more}"] = here.run([*SESSGIT, "push", origin, "--all"])
    for more in ("", ", nothing new"):
        times[f"git fetch{more}"] = there.run(fetch)
        times[f"sessgit pull{more}"] = there.run([*SESSGIT, "pull", origin])
    return times


if __name__ == "__main__":
    timing.run_alone(measure)
