"""git as a child process that works in a store, alone or with other machines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from urllib.parse import unquote

from sessgit.errors import ROOM, RemoteDamageError, StoreError
from sessgit.model import canonical, humanize
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress
from sessgit.store import refs
from sessgit.store.private_files import UMASK

DAMAGED = "Nothing was changed. `sessgit verify` shows what is missing or damaged."
"""The hint if git cannot read an object."""
_UNTRANSLATED = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
PLAIN_ENV = {"PATH": os.defpath, "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1", **_UNTRANSLATED}
"""An environment in which git sees no settings but the store's own, and its messages are not translated."""
_LARGE_FILES = "core.bigFileThreshold=64m"
"""git streams larger files and searches no deltas for them: that would take several times their size in memory."""
_CHUNK = 65536
_LINE_BREAK = re.compile(rb"[\r\n]")
_COMPRESSING = re.compile(rb"Compressing objects: +[0-9]+% \(([0-9]+)/([0-9]+)\)")
_PACKING_PHASE = re.compile(rb"[A-Z][a-z]+ [a-z ]+: +[0-9]+|Delta compression using|Total [0-9]+|$")
_MISSING_OBJECT = re.compile(r"missing|corrupt|bad (object|tree|sha1)|unable to read|could not parse|does not match")


def find_git(path: str | None = None) -> str:
    """Return the path of git, searched in `path`, by default in that of this process. Raises StoreError."""
    program = shutil.which("git", path=path)
    if program is None:
        raise StoreError("git is missing", "Install git 2.30 or later.")
    return program


def start_error(error: OSError) -> StoreError:
    """Return the error for a git that cannot be started."""
    return StoreError(f"cannot run git: {error.strerror or error}", "Check that `git --version` works.")


def start(  # noqa: PLR0913, PLR0917 - the streams of a process
    store: Path,
    arguments: Sequence[str],
    env: Mapping[str, str] | None = None,
    locks: Sequence[int] = (),
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    stdout: IO[bytes] | int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Start git in a store, by default in `PLAIN_ENV`. Raises StoreError.

    git inherits the descriptors `locks`, and so keeps these locks if this process is killed.
    """
    program = find_git(env.get("PATH") if env else None)
    try:
        return subprocess.Popen(
            [program, "--git-dir", str(store), "-c", _LARGE_FILES, *arguments], cwd="/", umask=UMASK,
            env={**(env or PLAIN_ENV), **_UNTRANSLATED},
            stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=[lock for lock in locks if lock],
        )  # fmt: skip
    except OSError as error:
        raise start_error(error) from error


def call(store: Path, arguments: Sequence[str], stdin_data: bytes = b"") -> tuple[int, bytes, str]:
    """Run git with this input; return its exit code, its output and its messages. Raises StoreError."""
    with start(store, arguments, stdin=subprocess.PIPE) as child:
        output, messages = child.communicate(stdin_data)
    return child.returncode, output, messages.decode("utf-8", "replace").strip()


def run(
    store: Path,
    arguments: Sequence[str],
    locks: Sequence[int] = (),
    *,
    stdout: IO[bytes] | None = None,
) -> str:
    """Run git, and return its output unless that goes to a file. Raises StoreError if git is missing or fails."""
    with start(store, arguments, None, locks, stdout=stdout or subprocess.PIPE) as child:
        output, messages = child.communicate()
    if child.returncode:
        raise _failure(messages, child.returncode)
    return (output or b"").decode("utf-8", "replace")


@contextmanager
def reading(store: Path, arguments: Sequence[str]) -> Iterator[IO[bytes]]:
    """Yield git's output while it runs. Raises StoreError at the end if git failed."""
    with start(store, arguments, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        try:
            yield child.stdout
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise StoreError(f"git cannot read the store: it ended with {child.returncode}", DAMAGED)


def pack_objects(
    store: Path, arguments: Sequence[str], locks: Sequence[int], stdin: IO[bytes] | None, progress: Progress
) -> list[str]:
    """Run `git pack-objects`, and return the names of the packs that it makes. Raises StoreError as `run` does."""
    messages = list[bytes]()
    with start(store, arguments, None, locks, stdin or subprocess.DEVNULL) as child:
        for message in pieces(child.stderr):
            if count := _COMPRESSING.match(message):
                progress(int(count[1]), int(count[2]))
            elif not _PACKING_PHASE.match(message):
                messages.append(message)
        assert child.stdout is not None
        names = child.stdout.read().decode("ascii", "replace").split()
    if child.returncode:
        raise _failure(b"\n".join(messages), child.returncode)
    return names


def pieces(stream: Any) -> Iterator[bytes]:
    """Yield the lines of a stream, and progress messages, which end with a carriage return, as they come."""
    rest = b""
    while chunk := stream.read1(_CHUNK):
        *complete, rest = _LINE_BREAK.split((rest + chunk)[-_CHUNK:])
        yield from complete
    yield rest


def _failure(stderr: bytes, code: int) -> StoreError:
    message = stderr.decode("utf-8", "replace").strip() or f"it ended with {code}"
    if ".lock" in message and not refs.is_denied(message):
        hint = refs.LOCK_HINT
    else:
        hint = DAMAGED if _MISSING_OBJECT.search(message) else refs.move_error_hint(message, ROOM)
    return StoreError(f"git could not pack the store: {message}", hint)


# With other machines

_SETTINGS = {
    # The store packs itself, and waits for recorders.
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    # Tracking refs can be fetched again, so thousands of them need no sync each. Objects need one: refs will lead here
    # to what a fetch leaves loose, which git does not sync by default.
    "core.fsync": "loose-object,-reference",
    # Objects are checked before they are kept.
    "fetch.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    # Only the named refs are pushed, and refs here stay.
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.useForceIfIncludes": "false",
    "fetch.prune": "false",
    "fetch.pruneTags": "false",
    # No URL or ref runs a program other than transports.
    "protocol.ext.allow": "never",
    "protocol.fd.allow": "never",  # it would wait for us
    "core.hooksPath": "/dev/null",
}
_KEPT_LINES = 6
"""Number of git's last messages that are kept for an error."""
_LONGEST_MESSAGE = 400
_PROGRESS = re.compile(r"\d+% \(\d+/\d+\)|: \d+(, done\.)?$|^remote: Total ")
_URL_LOGIN = re.compile(r"\b([a-z][a-z0-9+.-]*)://([^\s/]*)@", re.IGNORECASE)
"""Up to the last @ before a slash: a password may hold an @ that is not written as %40."""
_REMOTE_PREFIX = "remote: "
_ACCESS_ERRORS = ("ermission denied", "could not read", "uthentication", "askpass", "error: 401", "error: 403")
_DAMAGE_ERRORS = ("fsck error", "corruption on the remote side", "upload-pack: not our ref", "unpack-objects failed",
                  "did not send all necessary objects")  # fmt: skip
"""git's messages if the remote has damaged or forbidden objects."""
_UNSAFE_REF = "packed refname is dangerous"
_CUT_LISTING = "expected flush after ref listing"
_NOISE_LINES = ("Please make sure you have the correct access rights", "and the repository exists")
"""git's messages after every failure."""


@frozen
class GitResult:
    """git's exit code, its output, and its last messages without control characters."""

    code: int
    out: bytes
    messages: str
    secrets: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why git failed, on one line."""
        lines = [line for line in self.messages.splitlines() if line.strip(".") not in _NOISE_LINES]
        own = [line for line in lines if line.startswith(("fatal: ", "error: ")) and "failed to push" not in line]
        plain = [line for line in lines if not line.startswith(("fatal: ", "error: ", "hint: ", "warning: "))]
        # Messages of ssh or of the other side come first and explain more than git's own.
        chosen = [*plain[-2:], *own[:1]] or lines[-1:] or [f"git ended with {self.code}"]
        return "; ".join(dict.fromkeys(_without_prefix(line) for line in chosen))[:_LONGEST_MESSAGE]

    @property
    def met_unsafe_ref(self) -> bool:
        """Whether git stopped at a ref whose name would lead out of `refs/`."""
        return _UNSAFE_REF in self.messages

    @property
    def met_end_of_listing(self) -> bool:
        """Whether git at the remote ended before it had listed all refs."""
        return _CUT_LISTING in self.reason

    @property
    def remarks(self) -> str:
        """The messages of the other side's own programs, in brackets, or ``""``."""
        lines = [_without_prefix(line) for line in self.messages.splitlines() if line.startswith(_REMOTE_PREFIX)]
        text = "; ".join(dict.fromkeys(filter(None, lines)))[:_LONGEST_MESSAGE]
        return f" ({text})" if text else ""

    def without_secrets(self, text: str) -> str:
        """Return another text of git without passwords and control characters."""
        return _without_secrets(text, self.secrets)


def execute(
    store: Path,
    arguments: Sequence[str],
    env: Mapping[str, str],
    say: Callable[[str], None] = lambda message: None,
    *,
    stdin_data: bytes = b"",
    secrets: Sequence[str] = (),
) -> GitResult:
    """Run git with this input and the user's environment, if any, and pass its messages to `say` as they come.

    Raises StoreError if git cannot be run. git does not inherit locks: an ssh connection that it leaves open would
    hold them for minutes.
    """
    settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    last = deque[str](maxlen=_KEPT_LINES)
    # Files instead of pipes, so that neither side waits for the other.
    with TemporaryFile() as stdin, TemporaryFile() as stdout:
        stdin.write(stdin_data)
        stdin.seek(0)
        with start(store, [*settings, *arguments], env, (), stdin, stdout) as child:
            try:
                for piece in pieces(child.stderr):
                    if message := _without_secrets(piece.decode("utf-8", "replace"), secrets).strip():
                        say(message)
                        if not _PROGRESS.search(message):
                            last.append(message)
            except BaseException:
                # A git that is terminated deletes its unfinished files and locks.
                child.terminate()
                with suppress(subprocess.TimeoutExpired):
                    child.wait(5)
                child.kill()
                raise
        stdout.seek(0)
        return GitResult(child.returncode, stdout.read(), "\n".join(last), tuple(secrets))


def unreachable_error(name: str, shown: str, result: GitResult) -> StoreError:
    """Return the error that tells why a transfer with a remote failed, in git's own words."""
    reason = result.reason
    if result.met_unsafe_ref:
        return StoreError(
            f"git at {name} refuses a dangerous ref name: {reason}",
            f"Delete the line of that ref from the file packed-refs in {shown}.",
        )
    if any(words in result.messages for words in _DAMAGE_ERRORS):
        return RemoteDamageError(f"git rejects the data of {name}: {reason}", "Ask the person who pushed it.")
    if any(words in reason for words in ("not appear to be a git repository", "not found", "No such", "not exist")):
        hint = f"Is {shown} a git repository? `git init --bare` creates one."
    elif any(words in reason for words in _ACCESS_ERRORS):
        hint = f"Check that git has access: `git ls-remote {humanize.quote_for_shell(shown)}`"
    else:
        hint = "Try again: nothing was changed here, and what arrived is not sent twice."
    return StoreError(f"cannot reach {name}: {reason}", hint)


def shown_url(url: str) -> str:
    """Return the URL without its password, and without the user if that may be a token."""
    return canonical.printable(_URL_LOGIN.sub(_without_login, url))


def url_secrets(url: str) -> tuple[str, ...]:
    """Return the parts of a URL that must never be shown, as written and decoded."""
    match = _URL_LOGIN.search(url)
    if not match:
        return ()
    user, _, password = match[2].partition(":")
    secrets = [password, user if _hides_user(match[1], password) else ""]
    return tuple(dict.fromkeys(form for secret in secrets if secret for form in (secret, unquote(secret))))


def _without_login(match: re.Match[str]) -> str:
    user, _, password = match[2].partition(":")
    if _hides_user(match[1], password):
        return f"{match[1]}://***@"
    return f"{match[1]}://{user}:***@" if password else f"{match[1]}://{user}@"


def _hides_user(scheme: str, password: str) -> bool:
    """With https a user without a password is a token, and with one either may be."""
    return scheme.lower().startswith("http") and not (password and password != "x-oauth-basic")


def _without_secrets(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return shown_url(canonical.without_sequences(text))


def _without_prefix(line: str) -> str:
    for prefix in ("fatal: ", "error: ", _REMOTE_PREFIX):
        line = line.removeprefix(prefix)
    return line.strip().rstrip(".")
