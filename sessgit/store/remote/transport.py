"""git as a child that talks to other machines: what it is given, what it says, and how it ends."""

from __future__ import annotations

import re
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from sessgit.errors import RemoteDamageError, StoreError
from sessgit.model import canonical, humanize
from sessgit.store import git
from sessgit.store.files import private

_SETTINGS = {
    # Packing is our own, and waits for recorders.
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    # Of what a remote held nothing is lost that it cannot tell again: thousands of tracking refs need no disk each.
    # Objects do: refs will lead here to what a fetch leaves loose, which git does not sync by itself.
    "core.fsync": "loose-object,-reference",
    "core.bigFileThreshold": git.LARGE,
    # What comes is checked before it is kept.
    "fetch.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    # Only what is named goes, and what is here stays.
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.useForceIfIncludes": "false",
    "fetch.prune": "false",
    "fetch.pruneTags": "false",
    # No program runs because of a URL or a ref, but those that carry.
    "protocol.ext.allow": "never",
    "protocol.fd.allow": "never",  # it would wait for us
    "core.hooksPath": "/dev/null",
}
_KEPT_LINES = 6
"""So many lines of what git says are kept for an error."""
_LONGEST_MESSAGE = 400
_CHUNK = 65536
_LINE_BREAK = re.compile(rb"[\r\n]")
_PROGRESS = re.compile(r"\d+% \(\d+/\d+\)|: \d+(, done\.)?$|^remote: Total ")
_URL_LOGIN = re.compile(r"\b([a-z][a-z0-9+.-]*)://([^\s/]*)@", re.IGNORECASE)
"""It ends at the last @ before a slash: who did not write %40 for one in a password has it in there."""
_REMOTE_PREFIX = "remote: "
_ACCESS_ERRORS = ("ermission denied", "could not read", "uthentication", "askpass", "error: 401", "error: 403")
_DAMAGE_ERRORS = ("fsck error", "corruption on the remote side", "upload-pack: not our ref", "unpack-objects failed",
            "did not send all necessary objects")  # fmt: skip
"""What git says where the remote holds what is damaged or must not be, in one of many refs."""
_UNSAFE_REF = "packed refname is dangerous"
_NOISE_LINES = ("Please make sure you have the correct access rights", "and the repository exists")
"""What git says of whatever went wrong."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """How git ended: its exit code, what it printed, and the last lines that it said, without control characters."""

    code: int
    out: bytes
    said: str
    secrets: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What git says is wrong, on one line."""
        lines = [line for line in self.said.splitlines() if line.strip(".") not in _NOISE_LINES]
        own = [line for line in lines if line.startswith(("fatal: ", "error: ")) and "failed to push" not in line]
        plain = [line for line in lines if not line.startswith(("fatal: ", "error: ", "hint: ", "warning: "))]
        # What ssh or the other side says comes first and tells more than git's own end of the story.
        chosen = [*plain[-2:], *own[:1]] or lines[-1:] or [f"git ended with {self.code}"]
        return "; ".join(dict.fromkeys(_without_prefix(line) for line in chosen))[:_LONGEST_MESSAGE]

    @property
    def met_unsafe_ref(self) -> bool:
        """Whether git ended at a ref whose name would lead out of `refs/`."""
        return _UNSAFE_REF in self.said

    @property
    def remarks(self) -> str:
        """What the other side's own programs say, in brackets, or ``""``."""
        lines = [_without_prefix(line) for line in self.said.splitlines() if line.startswith(_REMOTE_PREFIX)]
        found = "; ".join(dict.fromkeys(line for line in lines if line))[:_LONGEST_MESSAGE]
        return f" ({found})" if found else ""

    def without_secrets(self, text: str) -> str:
        """Another text of git's without passwords and control characters."""
        return _without_secrets(text, self.secrets)


def run_git(
    store: Path,
    arguments: Sequence[str],
    env: Mapping[str, str],
    say: Callable[[str], None] = lambda piece: None,
    *,
    given: bytes = b"",
    secrets: Sequence[str] = (),
) -> GitResult:
    """Runs git in the store until it ends, and hands on what it says about its progress as it comes.

    `env` is the environment for what talks to others; with none git sees nothing of the user. Raises StoreError where
    git cannot be run. The child does not inherit our locks: ssh may leave a connection open behind it that would hold
    them for minutes.
    """
    program = git.find_git(env.get("PATH"))
    chosen = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    # Words that are looked for below must not be translated; without LANGUAGE no other setting can ask for that.
    surroundings = {**(env or git.env()), "LC_ALL": "C.UTF-8", "LANGUAGE": ""}
    try:
        child = subprocess.Popen(
            [program, *chosen, "--git-dir", str(store), *arguments], env=surroundings, cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, umask=private.UMASK,
        )  # fmt: skip
    except OSError as error:
        raise git.git_start_error(error) from error
    printed: list[bytes] = []
    helpers = [
        threading.Thread(target=_write_stdin, args=(child.stdin, given), daemon=True),
        threading.Thread(target=_read_stdout, args=(child.stdout, printed), daemon=True),
    ]
    with child:
        try:
            for helper in helpers:
                helper.start()
            said = _read_stderr(child.stderr, say, secrets)
            for helper in helpers:
                helper.join()
        except BaseException:
            # Its end is waited for: a git that is told to stop takes its unfinished files and locks with it.
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(5)
            child.kill()
            raise
    return GitResult(child.returncode, b"".join(printed), "\n".join(said), tuple(secrets))


def unreachable_error(name: str, shown: str, ended: GitResult) -> StoreError:
    """git's own words for why nothing could be had from a remote, or sent to it."""
    said = ended.words
    if ended.met_unsafe_ref:
        return StoreError(
            f"git at {name} refuses a dangerous ref name: {said}",
            f"Delete the line of that ref from the file packed-refs in {shown}.",
        )
    if any(word in ended.said for word in _DAMAGE_ERRORS):
        return RemoteDamageError(f"git rejects the data of {name}: {said}", "Ask the person who pushed it.")
    if any(word in said for word in ("not appear to be a git repository", "not found", "No such", "not exist")):
        hint = f"Is {shown} a git repository? `git init --bare` creates one."
    elif any(word in said for word in _ACCESS_ERRORS):
        hint = f"Check that git has access: `git ls-remote {humanize.quote_for_shell(shown)}`"
    else:
        hint = "Try again: nothing was changed here, and what arrived is not sent twice."
    return StoreError(f"cannot reach {name}: {said}", hint)


def shown_url(url: str) -> str:
    """The URL as it may be seen: without its password, and without the user where that may be a token."""
    return canonical.printable(_URL_LOGIN.sub(_without_login, url))


def url_secrets(url: str) -> tuple[str, ...]:
    """What of a URL must never be shown, as it is written and as it is meant."""
    match = _URL_LOGIN.search(url)
    if not match:
        return ()
    user, _, password = match[2].partition(":")
    found = [password, user if _hides_user(match[1], password) else ""]
    return tuple(dict.fromkeys(form for secret in found if secret for form in (secret, unquote(secret))))


def _without_login(match: re.Match[str]) -> str:
    user, _, password = match[2].partition(":")
    if _hides_user(match[1], password):
        return f"{match[1]}://***@"
    return f"{match[1]}://{user}:***@" if password else f"{match[1]}://{user}@"


def _hides_user(scheme: str, password: str) -> bool:
    """With https a user alone is a token, and one with a password may be either."""
    return scheme.lower().startswith("http") and not (password and password != "x-oauth-basic")


def _write_stdin(stream: IO[bytes], data: bytes) -> None:
    with suppress(BrokenPipeError, ValueError):  # git ended, and says why
        stream.write(data)
    with suppress(BrokenPipeError):
        stream.close()


def _read_stdout(stream: IO[bytes], into: list[bytes]) -> None:
    with suppress(ValueError):  # it was closed, since nobody waits for it any more
        into.extend(iter(lambda: stream.read(_CHUNK), b""))


def _read_stderr(stream: Any, say: Callable[[str], None], secrets: Sequence[str]) -> list[str]:
    """Hands on each piece of what git says, progress too, and returns the last lines of all else."""
    last = deque[str](maxlen=_KEPT_LINES)
    rest = b""
    while chunk := stream.read1(_CHUNK):
        *pieces, rest = _LINE_BREAK.split((rest + chunk)[-_CHUNK:])
        for piece in pieces:
            _handle_message(piece, say, secrets, last)
    _handle_message(rest, say, secrets, last)
    return list(last)


def _handle_message(piece: bytes, say: Callable[[str], None], secrets: Sequence[str], last: deque[str]) -> None:
    said = _without_secrets(piece.decode("utf-8", "replace"), secrets).strip()
    if said:
        say(said)
        if not _PROGRESS.search(said):
            last.append(said)


def _without_secrets(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return shown_url(canonical.without_sequences(text))


def _without_prefix(line: str) -> str:
    for word in ("fatal: ", "error: ", _REMOTE_PREFIX):
        line = line.removeprefix(word)
    return line.strip().rstrip(".")
