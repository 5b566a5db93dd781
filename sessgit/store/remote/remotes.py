"""Remotes: git's own, kept in the repository's `config`, and what goes to them and comes from them.

git itself carries everything, with the user's own configuration and credentials. What a remote held when it was last
seen stands in the tracking refs, which mirror the four spaces of `layout.REF_SPACES`: `refs/heads/a41f` of `origin` is
`refs/remotes/origin/heads/a41f`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessgit.errors import ConflictError, MovedError, NotFoundError, RefusedError, StoreError, UsageError
from sessgit.model import ids
from sessgit.model.address import check_tag
from sessgit.store import layout, locks, maintenance, refs, transaction
from sessgit.store.files import private
from sessgit.store.layout import StorePaths
from sessgit.store.remote import incoming, outgoing, unserved
from sessgit.store.remote.transport import GitResult, run_git, shown_url, unreachable_error, url_secrets
from sessgit.store.transaction import Move

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,60}[A-Za-z0-9_-])?")
_REMOTE_SETTING = re.compile(r"remote\.(.+)\.([a-z]+)", re.DOTALL)
_LS_REMOTE_LINE = re.compile(r"([0-9a-f]{40})\t(refs/[^\n]+)")
_REJECTED_LINE = re.compile(r"^!\t[^\t\n]*\t(.*)$", re.MULTILINE)
_PEELED = "^{}"
_ZERO_ID = "0" * 40
"""What git tells that a ref holds whose name it takes for broken."""
_REMOTE_FAILURES = ("unpacker error", "remote failure")
"""What git says of refs that were not refused, but could not be written."""
_UNCHANGED = "Nothing was changed, here or there."
_FEW_REFS = 300
"""So many refs are fetched by their names. Of more of them git is told patterns, once it was asked what is there."""
_TRIES = 6
_WAIT = 0.05
_LOST_RACE = ("cannot lock ref", "unable to update local ref")
"""What git says of a ref that somebody else moves at the same moment."""
_MANY_REFS = 1000
"""So many refs that were moved are packed at once: each is a file of its own before, and every command reads them."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote by its name. The URL is as the user gave it, passwords and all: `shown` is what may be seen."""

    name: str
    url: str = field(repr=False)

    @property
    def shown(self) -> str:
        """The URL without what must not be seen."""
        return shown_url(self.url)


@dataclass(frozen=True, slots=True)
class Connection:
    """A remote and how to reach it: the environment for git, and who is told how it gets on, piece by piece."""

    remote: Remote
    env: Mapping[str, str]
    say: Callable[[str], None]
    unserved: set[str] = field(default_factory=set)
    """The refs of the remote, as far as they were met, whose names keep git from serving it."""


# The table of remotes


def list_remotes(store: Path) -> list[Remote]:
    """All remotes by name. One that git could know and an address could not name is left out."""
    return [Remote(name, found["url"][0]) for name, found in sorted(_remote_settings(store).items()) if "url" in found]


def find_remote(store: Path, name: str) -> Remote:
    """The remote of this name, or with ``""`` the only one; raises NotFoundError that tells what there is.

    Raises ConflictError where it was set up by other means, in a way that would push or fetch something else.
    """
    settings = _remote_settings(store)
    known = sorted(name for name, found in settings.items() if "url" in found)
    if not known:
        raise NotFoundError(
            f"there is no remote {name}" if name else "there is no remote", "Add one: `sessgit remote add NAME URL`"
        )
    if not name and len(known) > 1:
        raise UsageError(f"there are {len(known)} remotes: {', '.join(known)}", "Name one of them.")
    if name and name not in known:
        raise NotFoundError(f"there is no remote {name}", f"The remotes are {', '.join(known)}.")
    name = name or known[0]
    found = settings[name]
    if found.get("fetch") != incoming.mirror_refspecs(name) or found.keys() & {"push", "mirror", "pushurl"}:
        raise ConflictError(
            f"the remote {name} is not set up for conversations in the config of the store",
            f"`sessgit remote remove {name}`, then `sessgit remote add {name} URL`.",
        )
    _check_url(found["url"][0])
    return Remote(name, found["url"][0])


def add_remote(store: Path, name: str, url: str) -> Remote:
    """Adds a remote, and connects to nothing. Raises UsageError for a name or URL that none can have, ConflictError
    for a name that is taken."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
        raise UsageError(
            f"“{name}” cannot be the name of a remote" if name else "the name of the remote is empty",
            "Use letters, digits, dots, - and _, with a letter, digit or _ first and last, such as origin.",
        )
    _check_url(url)
    with _settings_change(store):
        found = _remote_settings(store).get(name, {})
        if "url" in found:
            raise ConflictError(
                f"the remote {name} already exists: {shown_url(found['url'][0])}", "Choose another name."
            )
        if found:
            _git_config(store, "--remove-section", f"remote.{name}")
        # Without followRemoteHEAD, a later git makes refs/remotes/<name>/HEAD.
        settings = [("url", url), *(("fetch", spec) for spec in incoming.mirror_refspecs(name)),
            ("tagOpt", "--no-tags"),
                    ("followRemoteHEAD", "never")]  # fmt: skip
        _append(store, f'[remote "{name}"]\n' + "".join(f"\t{key} = {_quoted(value)}\n" for key, value in settings))
    return Remote(name, url)


def remove_remote(store: Path, name: str) -> Remote:
    """Removes the remote and its tracking refs; nothing of one's own depends on those. Returns what it was."""
    with _settings_change(store):
        found = next((remote for remote in list_remotes(store) if remote.name == name), None)
        if found is None:
            raise NotFoundError(f"there is no remote {name}", "`sessgit remote` lists all remotes.")
        _git_config(store, "--remove-section", f"remote.{name}")
        held = refs.read_all(store, layout.tracking_ref(name, ""))
        transaction.move_all(store, [Move(ref, oid, None) for ref, oid in held.items()])
    return found


def is_path(url: str) -> bool:
    """Whether git takes it for a folder of this machine, rather than for `scheme://` or `host:path`."""
    colon, slash = url.find(":"), url.find("/")
    return colon < 0 or 0 <= slash < colon


def _check_url(url: str) -> None:
    if not url.strip() or url.startswith("-") or not url.isprintable() or url.casefold().startswith("ext::"):
        raise UsageError(
            f"“{shown_url(url)}” cannot be the URL of a remote" if url.strip() else "the URL of a remote is missing",
            "Use what git clone accepts: a folder, host:path, ssh://… or https://…",
        )
    if is_path(url) and not url.startswith("/"):
        raise UsageError(f"“{url}” is not an absolute path", "Use the full path.")


def _remote_settings(store: Path) -> dict[str, dict[str, list[str]]]:
    """What the repository's own `config` says of each remote, by the last word of the key in lower case."""
    ended = run_git(store, ["config", "--local", "--null", "--get-regexp", r"^remote\."], {})
    found: dict[str, dict[str, list[str]]] = {}
    for entry in ended.out.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        match = _REMOTE_SETTING.fullmatch(key)
        if match and _NAME.fullmatch(match[1]):
            found.setdefault(match[1], {}).setdefault(match[2], []).append(value)
    return found


def _git_config(store: Path, *words: str) -> None:
    ended = run_git(store, ["config", "--local", *words], {})
    if ended.code:
        raise _unchanged(ended.words)


def _unchanged(why: str) -> StoreError:
    return StoreError(f"cannot change the store's git config: {why}", "Is the folder yours?")


def _append(store: Path, section: str) -> None:
    """Append a section to the config of the store under the lock that git takes, in one step: git itself would start a
    process for each setting."""
    config, lock = store / "config", store / "config.lock"
    try:
        with private.files(), lock.open("xb") as file:
            try:
                old = config.read_bytes()
                file.write(old + b"\n" * (old[-1:] not in (b"", b"\n")) + section.encode())
                file.flush()
                os.fsync(file.fileno())
                lock.replace(config)
            except OSError:
                lock.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise _unchanged(error.strerror or str(error)) from error


def _quoted(value: str) -> str:
    """Return a value as git reads it from its config."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextmanager
def _settings_change(store: Path) -> Iterator[None]:
    with locks.settings_lock(StorePaths(store)) as held:
        if not held:
            raise StoreError("another command is changing the settings", "Try again.")
        refs.delete_stale_locks(store, ["config"])
        yield


# What is there


def remote_refs(store: Path, link: Connection) -> dict[str, str]:
    """What each ref of the remote holds, by its full name there: a tag's commit, not the tag's own object.

    Only refs of our spaces, with names that they can have: whatever else lies in the repository is none of ours.
    """
    raw, peeled = _read_remote_refs(store, link)
    return {**raw, **peeled}


def tracked_refs(store: Path, remote: str) -> dict[str, str]:
    """What the remote held when it was last seen, as `remote_refs` returns it."""
    below = layout.tracking_ref(remote, "")
    ended = run_git(
        store, ["for-each-ref", "--format=%(refname)%09%(objectname)%09%(*objectname)", below.rstrip("/")], {}
    )  # fmt: skip
    if ended.code:
        raise StoreError(f"cannot read the refs of the store: {ended.words}", "`sessgit doctor` shows why.")
    rows = (line.split("\t") for line in ended.out.decode("utf-8", "replace").splitlines())
    found = {f"refs/{ref.removeprefix(below)}": peeled or oid for ref, oid, peeled in rows}
    return {ref: oid for ref, oid in found.items() if _is_sessgit_ref(ref)}


def _read_remote_refs(store: Path, link: Connection) -> tuple[dict[str, str], dict[str, str]]:
    """The objects that refs hold there, and the commits that annotated tags lead to."""
    raw: dict[str, str] = {}
    peeled: dict[str, str] = {}
    for ref, oid in _list_remote_refs(store, link).items():
        name = ref.removesuffix(_PEELED)
        if _is_sessgit_ref(name):
            (raw if name == ref else peeled)[name] = oid
    return raw, peeled


def _list_remote_refs(store: Path, link: Connection) -> dict[str, str]:
    """All that the remote tells of its refs, whosever they are."""
    ended = _run_reading(store, link, ["ls-remote", "--quiet"])
    if ended.code:
        raise unreachable_error(link.remote.name, link.remote.shown, ended)
    found = {ref: oid for oid, ref in _LS_REMOTE_LINE.findall(ended.out.decode("utf-8", "replace"))}
    link.unserved.update(ref for ref, oid in found.items() if oid == _ZERO_ID)
    return {ref: oid for ref, oid in found.items() if oid != _ZERO_ID}


def _is_sessgit_ref(ref: str) -> bool:
    space, name = layout.split_ref(ref)
    if space == layout.TAGS:
        try:
            return check_tag(name) == name
        except UsageError:
            return False
    if space == layout.DELETED:
        return ids.SESSION_ID.fullmatch(name) is not None
    return space in layout.REF_SPACES and ids.is_branch(name)


# What comes and what goes


def fetch_refs(store: Path, link: Connection, wanted: Collection[str]) -> None:
    """Brings refs of the remote, by their full names there, into the tracking refs; those of refs that it lacks go.

    A ref moves by itself, each once all objects are here: who is interrupted has some of them, all of them whole.
    """
    coming = sorted(filter(_is_sessgit_ref, wanted))
    lock = locks.hold_off_prune(StorePaths(store))
    try:
        ended, beaten = _fetch_once(store, link, coming, ask=len(coming) > _FEW_REFS)
        for tries in range(1, _TRIES):
            if not ended.code or not (beaten or "couldn't find remote ref" in ended.words):
                break
            if beaten:
                refs.delete_stale_locks(store, [layout.tracking_ref(link.remote.name, ref) for ref in coming])
                time.sleep(tries * _WAIT)
            ended, beaten = _fetch_once(store, link, coming, ask=True)
    finally:
        locks.release(lock)
    if ended.code and beaten:
        raise StoreError(f"cannot record what came from {link.remote.name}: {beaten}", "Try again.")
    if ended.code:
        raise unreachable_error(link.remote.name, link.remote.shown, ended)
    _pack_refs(store, len(coming))


def _fetch_once(store: Path, link: Connection, coming: Sequence[str], *, ask: bool) -> tuple[GitResult, str]:
    """How git ended, and what it said of a ref that others were moving. Who asks first fetches only what is missing."""
    name = link.remote.name
    specs = incoming.refspecs_for(name, coming)
    if ask:
        there = _list_remote_refs(store, link)
        _delete_gone_tracking_refs(store, name, [ref for ref in coming if ref not in there])
        known = refs.read_all(store, layout.tracking_ref(name, ""))
        missing = [ref for ref in coming if ref in there and known.get(layout.tracking_ref(name, ref)) != there[ref]]
        many = len(missing) > _FEW_REFS
        specs = incoming.pattern_refspecs(name, missing, there, known) if many else incoming.refspecs_for(name, missing)
    if not specs:
        return GitResult(0, b"", ""), ""
    flags = ["--no-tags", "--no-prune", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"]
    # Without --refmap git would look for each of thousands in what is configured as well.
    command = ["fetch", "--progress", *flags, "--refmap=", "--stdin"]
    beaten = list[str]()

    def hear(piece: str) -> None:
        # Of thousands of lines the last few are kept, and this may be none of them.
        if any(word in piece for word in _LOST_RACE):
            beaten.append(piece.removeprefix("error: "))
        link.say(piece)

    given = "".join(f"{spec}\n" for spec in specs).encode()
    ended = _run_reading(store, replace(link, say=hear), command, given=given)
    return ended, next(iter(beaten), "")


def _delete_gone_tracking_refs(store: Path, remote: str, gone: Sequence[str]) -> None:
    """Takes away the tracking refs of refs that the remote has no more, whoever else does."""
    names = [layout.tracking_ref(remote, ref) for ref in gone]
    for tries_left in reversed(range(_TRIES)):
        known = refs.read_all(store, layout.tracking_ref(remote, "")) if names else {}
        try:
            return transaction.move_all(store, [Move(name, known[name], None) for name in names if name in known])
        except MovedError:
            if not tries_left:
                raise


def push_refs(store: Path, link: Connection, moves: Sequence[Move]) -> None:
    """Moves refs of the remote, by their full names there: all of them or none, each from its old value.

    Where one of them holds something else there, that is a MovedError. RefusedError is what the remote says no to, a
    StoreError what could not be done. The tracking refs follow once all is done there; who is interrupted before finds
    them as the remote was.
    """
    moves = [move for move in moves if move.old != move.new]
    if not moves:
        return
    _check_names(moves)
    held, leases = _expected_refs(store, link, moves)
    with outgoing.push_repository(store, link.remote.name, link.remote.url, link.env, moves, held) as folder:
        flags = ["--porcelain", "--progress", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed"]
        command = ["push", *flags, "--recurse-submodules=no", "--force-with-lease", *leases, folder.name]
        ended = _run_connected(folder, link, command)
    if ended.code:
        raise _rejection_error(store, link, moves, ended)
    _update_tracking_refs(store, link, moves)
    _pack_refs(store, len(moves))


def _check_names(moves: Iterable[Move]) -> None:
    for move in moves:
        if not _is_sessgit_ref(move.ref):
            raise UsageError(f"{move.ref} is no ref that goes to a remote")


def _expected_refs(store: Path, link: Connection, moves: Sequence[Move]) -> tuple[dict[str, str], list[str]]:
    """The tracking refs with the old values, which is what git holds the remote's refs against where nothing else is
    said: of thousands none needs a word in the command. And the words that the others need.

    Those are refs whose old object is not here, and annotated tags, whose own object differs from what `remote_refs`
    says.
    """
    raw, peeled = (
        _read_remote_refs(store, link)
        if any(move.old and move.ref.startswith(layout.TAGS) for move in moves)
        else ({}, {})
    )
    here = outgoing.existing_objects(store, {move.old for move in moves if move.old})
    held = dict[str, str]()
    words = list[str]()
    for move in moves:
        if move.old is None:
            continue
        old = raw[move.ref] if peeled.get(move.ref) == move.old else move.old
        if old in here and old == move.old:
            held[layout.tracking_ref(link.remote.name, move.ref)] = old
        else:
            words.append(f"--force-with-lease={move.ref}:{old}")
    return held, words


def _update_tracking_refs(store: Path, link: Connection, moves: Iterable[Move]) -> None:
    """Moves the tracking refs to what is there now. Where they cannot be moved, they are as they were: all is done
    there, and the next pull sees it."""
    now = refs.read_all(store, layout.tracking_ref(link.remote.name, ""))
    names = ((layout.tracking_ref(link.remote.name, move.ref), move.new) for move in moves)
    changed = [Move(ref, now.get(ref), new) for ref, new in names if now.get(ref) != new]
    with suppress(StoreError):
        transaction.move_all(store, changed, lasting=False)


def _pack_refs(store: Path, count: int) -> None:
    if count > _MANY_REFS:
        with locks.maintenance_lock(StorePaths(store)) as lock:
            if lock:
                maintenance.pack_refs(store, lock)


def _run_reading(store: Path, link: Connection, command: Sequence[str], *, given: bytes = b"") -> GitResult:
    """How a git ended that reads from the remote; where git there ends at a ref of an unsafe name, one that reads from
    the remote without such refs, if that is a folder of this machine."""
    ended = _run_connected(store, link, [*command, link.remote.name], given=given)
    if ended.code and ended.met_unsafe_ref:
        with unserved.serve_without_unsafe_refs(link.remote.url) as (folder, unsafe):
            link.unserved.update(unsafe)
            if unsafe:
                return _run_connected(store, link, [*command, str(folder)], given=given)
    return ended


def _run_connected(store: Path, link: Connection, command: Sequence[str], *, given: bytes = b"") -> GitResult:
    urls = run_git(store, ["config", "--null", "--get-all", f"remote.{link.remote.name}.url"], link.env).out
    if urls.split(b"\0") != [link.remote.url.encode(), b""]:
        raise ConflictError(
            f"git has more than one URL for the remote {link.remote.name}, or another than the store",
            f"To find where: `git config --show-origin --get-all remote.{link.remote.name}.url`",
        )
    return run_git(store, command, link.env, link.say, given=given, secrets=url_secrets(link.remote.url))


def _rejection_error(store: Path, link: Connection, moves: Sequence[Move], ended: GitResult) -> Exception:
    """Why the push failed, as far as the remote tells: whatever was not moved is looked at once more."""
    reasons = _REJECTED_LINE.findall(ended.out.decode("utf-8", "replace"))
    if not reasons:
        return unreachable_error(link.remote.name, link.remote.shown, ended)
    there = remote_refs(store, link)
    if any(there.get(move.ref) != move.old for move in moves):
        return MovedError(f"{link.remote.name} was changed meanwhile", "Try again.")
    said = next((reason for reason in reasons if "atomic" not in reason), reasons[0])
    words = ended.without_secrets(said.removeprefix("[remote rejected] ").removeprefix("[rejected] ").strip("()"))
    remark = ended.remarks
    if any(word in said for word in _REMOTE_FAILURES):
        return StoreError(f"{link.remote.name} could not write the data: {words}{remark}", _UNCHANGED)
    return RefusedError(
        f"{link.remote.name} refused the push: {words}{remark}",
        f"{_UNCHANGED} Ask the owner of {link.remote.shown}.",
    )
