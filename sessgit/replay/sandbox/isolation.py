"""The isolation of a process that runs again: bubblewrap on Linux, `sandbox-exec` on macOS.

On Linux the process sees only the folders of the system, Python and what it is given; on macOS it sees the other files
but for those in the home folder. It can write in its own folders alone, and without `network` it reaches nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.model.frozen import frozen
from sessgit.replay.sandbox.supervisor import Limits

PACKAGE = str(Path(__file__).parents[2])
_SYSTEM_FOLDERS = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/run/current-system", "/home/linuxbrew/.linuxbrew",
)  # fmt: skip
_RESOLVER_FOLDER = "/run/systemd/resolve"
"""Where `/etc/resolv.conf` leads on many systems."""
_UNSHARE_OPTIONS = (
    "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
    "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev",
)  # fmt: skip
_SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_PROFILE = """(version 1)(allow default)(deny file-write*)(deny file-read-data {hidden})
(allow file-read-data {readable})(allow file-write* {writable} (literal "/dev/null") (literal "/dev/zero"))"""
UNCONFINED_HINT = "Or use `--unconfined` to run them without a sandbox."


@frozen
class Confinement:
    """Where processes may write, what they may read besides the system, which folders are hidden from them; `env` is
    their whole environment. `unconfined` processes see and change what the user can. A process that must be ended gets
    `grace` seconds to end by itself."""

    writable: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    network: bool = False
    unconfined: bool = False
    grace: float = 0
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def isolation_tool(path: str) -> str:
    """Return the program that isolates processes here; raises SessgitError, which says what to install, if there is
    none. `path` is the PATH to look in."""
    if sys.platform == "darwin":
        if Path(_SANDBOX_EXEC).exists():
            return _SANDBOX_EXEC
        raise SessgitError(f"cannot run commands in a sandbox: {_SANDBOX_EXEC} is missing", UNCONFINED_HINT)
    program = shutil.which("bwrap", path=path) if sys.platform == "linux" else None
    if program is None:
        raise SessgitError(
            "cannot run commands in a sandbox: bubblewrap is not installed",
            f"Install it with your package manager, such as apt-get install bubblewrap. {UNCONFINED_HINT}",
        )
    return program


def isolated_command(command: Sequence[str], cwd: str, confinement: Confinement) -> list[str]:
    """Return the command that runs `command` in isolation, in the folder `cwd`.

    No folder of `writable` may lie in another one: what runs could put a link in its place, and the next command would
    be given what that leads to.
    """
    writable, network = confinement.writable, confinement.network
    path, apart = confinement.env.get("PATH", os.defpath), [os.path.realpath(place) for place in confinement.hidden]
    programs = map(os.path.realpath, filter(os.path.isabs, path.split(os.pathsep)))
    shown = [place for place in programs if not any(is_below(place, one) for one in apart)]
    shown += [sys.prefix, sys.base_prefix, PACKAGE, *confinement.readable]
    shown = [place for place in shown if place != "/" and not any(is_below(one, place) for one in apart)]
    if sys.platform == "darwin":
        hidden, readable, written = (  # of several rules that fit, the last one holds
            " ".join(f"(subpath {json.dumps(place)})" for place in places) or '(literal "/nowhere")'
            for places in (apart, [*shown, *writable], writable)
        )
        profile = _PROFILE.format(hidden=hidden, readable=readable, writable=written)
        return [isolation_tool(path), "-p", profile if network else f"{profile}(deny network*)", *command]
    walls = [isolation_tool(path), *_UNSHARE_OPTIONS]
    if network:
        shown.append(_RESOLVER_FOLDER)
    else:
        walls.append("--unshare-net")
    for place in _SYSTEM_FOLDERS:
        walls += ("--ro-bind-try", place, place)
    covered = [place for place in apart if any(is_below(place, system) for system in _SYSTEM_FOLDERS)]
    for place in covered:
        walls += ("--tmpfs", place)
    # What is bound there must not be replaceable by a link from inside, nor hold the places where the others are bound.
    own = confinement.env.get("TMPDIR", "")
    for place in ("/tmp", "/dev/shm") if own in writable else ():
        if not any(is_below(other, place) for other in (*shown, *writable)):
            walls += ("--bind", own, place)
    for place in shown:
        walls += ("--ro-bind-try", place, place)
    for place in writable:
        walls += ("--bind", place, place)
    for place in (*covered, "/dev", "/"):
        walls += ("--remount-ro", place)
    return [*walls, "--chdir", cwd, "--", *command]


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is the folder or lies in it; False for the root and an unknown folder, which no sandbox can
    replace."""
    return bool(folder.strip("/")) and (path == folder or path.startswith(f"{folder.rstrip('/')}/"))
