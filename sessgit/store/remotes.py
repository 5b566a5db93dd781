"""Remotes: git's own, in the repository's `config`, and transfers with them.

git itself transfers everything, with the user's own configuration and credentials. What a remote held when it was last
contacted is in the tracking refs, which mirror the spaces of `layout.REF_SPACES`: `refs/heads/a41f` of `origin` is
`refs/remotes/origin/heads/a41f`.

git compares each ref that is named with every ref on both sides, which takes minutes for ten thousand; a
pattern is looked up. So a fetch of many refs names patterns and what must not come. A push goes from a repository of
its own, which holds exactly the refs to be pushed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path

from sessgit.errors import ROOM, ConflictError, MovedError, NotFoundError, RefusedError, StoreError, UsageError
from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.model.ids import is_tag
from sessgit.store import git, layout, locks, object_scan, operations, refs, tempdirs
from sessgit.store import store as stores
from sessgit.store.git import GitResult, execute, shown_url, unreachable_error, url_secrets
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move
from sessgit.store.private_files import rewrite_locked

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,60}[A-Za-z0-9_-])?")
_REMOTE_SETTING = re.compile(r"remote\.(.+)\.([a-z]+)", re.DOTALL)
_LS_REMOTE_LINE = re.compile(r"([0-9a-f]{40})\t(refs/[^\n]+)")
_TRACED_REF = re.compile(r"packet: .*< [0-9a-f]{40} (refs/\S+)")
_REJECTED_LINE = re.compile(r"^!\t[^\t\n]*\t(.*)$", re.MULTILINE)
_PEELED = "^{}"
_ZERO_ID = "0" * 40
"""git's answer for a ref whose name it takes for broken."""
_REMOTE_FAILURES = ("unpacker error", "remote failure")
"""git's messages about refs that were not refused, but could not be written."""
_UNCHANGED = "Nothing was changed, here or there."
_FEW_REFS = 300
"""Up to this number refs are fetched by their names."""
_TRIES = 6
_WAIT = 0.05
_LOST_RACE = ("cannot lock ref", "unable to update local ref")
"""git's messages about a ref that another process moves at the same moment."""
_SAFE_REF = re.compile(r"(?!.*\.lock(?:/|$))refs(?:/[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)+")
"""The name of another program's ref that every version of git accepts."""


@frozen
class Remote:
    """A remote by its name. The URL is as the user typed it, with passwords."""

    name: str
    url: str = field(repr=False)

    @property
    def shown(self) -> str:
        """The URL without what must not be shown."""
        return shown_url(self.url)


@frozen
class Connection:
    """A remote and how to reach it: the environment for git, and the receiver of git's messages."""

    remote: Remote
    env: Mapping[str, str]
    say: Callable[[str], None]
    unserved: set[str] = field(default_factory=set)
    """The refs of the remote, as far as they were met, whose names keep git from serving it."""


# The table of remotes


def list_remotes(store: Path) -> list[Remote]:
    """Return all remotes by name, except those that git accepts and an address could not name."""
    return list(_remotes(_remote_settings(store)).values())


def find_remote(store: Path, name: str) -> Remote:
    """Return the remote of this name, or the only one for ``""``. Raises NotFoundError.

    Raises ConflictError if it was set up by other means, in a way that would push or fetch something else.
    """
    settings_by_name = _remote_settings(store)
    remotes = _remotes(settings_by_name)
    missing = f"there is no remote {name}" if name else "there is no remote"
    if not remotes:
        raise NotFoundError(missing, "Add one: `sessgit remote add NAME URL`")
    if not name and len(remotes) > 1:
        raise UsageError(f"there are {len(remotes)} remotes: {', '.join(remotes)}", "Name one of them.")
    if name and name not in remotes:
        raise NotFoundError(missing, f"The remotes are {', '.join(remotes)}.")
    remote = remotes[name or next(iter(remotes))]
    settings = settings_by_name[remote.name]
    if settings.get("fetch") != mirror_refspecs(remote.name) or settings.keys() & {"push", "mirror", "pushurl"}:
        raise ConflictError(
            f"the remote {remote.name} is not set up for conversations in the config of the store",
            f"`sessgit remote remove {remote.name}`, then `sessgit remote add {remote.name} URL`.",
        )
    _check_url(remote.url)
    return remote


def add_remote(store: Path, name: str, url: str) -> Remote:
    """Add a remote without contacting it. Raises UsageError if the name or URL is invalid, ConflictError if the name is
    used."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
        raise UsageError(
            f"“{name}” cannot be the name of a remote" if name else "the name of the remote is empty",
            "Use letters, digits, dots, - and _, with a letter, digit or _ first and last, such as origin.",
        )
    _check_url(url)
    with _config_change(store):
        settings = _remote_settings(store).get(name, {})
        if "url" in settings:
            shown = shown_url(settings["url"][0])
            raise ConflictError(f"the remote {name} already exists: {shown}", "Choose another name.")
        if settings:
            _change_config(store, "--remove-section", f"remote.{name}")
        entries = [("fetch", spec) for spec in mirror_refspecs(name)]
        # Without followRemoteHEAD, newer versions of git make refs/remotes/<name>/HEAD.
        entries += [("tagOpt", "--no-tags"), ("followRemoteHEAD", "never"), ("url", url)]
        section = b'\n[remote "%s"]\n' % name.encode()
        section += b"".join(b'\t%s = "%s"\n' % (key.encode(), _escape(value.encode())) for key, value in entries)
        try:
            rewrite_locked(store / "config", lambda before: before.rstrip() + section)
        except OSError as error:
            raise _config_error(store, error.strerror or str(error)) from error
    return Remote(name, url)


def remove_remote(store: Path, name: str) -> Remote:
    """Remove a remote and its tracking refs, and return it."""
    with _config_change(store):
        remote = next((remote for remote in list_remotes(store) if remote.name == name), None)
        if remote is None:
            raise NotFoundError(f"there is no remote {name}", "`sessgit remote` lists all remotes.")
        _change_config(store, "--remove-section", f"remote.{name}")
        tracked = refs.read_all(store, layout.tracking_ref(name, ""))
        operations.move_refs(store, [Move(ref, oid, None) for ref, oid in tracked.items()])
    return remote


def is_path(url: str) -> bool:
    """Return whether git takes the URL for a folder of this machine, not for `scheme://` or `host:path`."""
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


def _remotes(settings: Mapping[str, Mapping[str, list[str]]]) -> dict[str, Remote]:
    """Return the remotes of these settings by name, sorted."""
    return {name: Remote(name, keys["url"][0]) for name, keys in sorted(settings.items()) if "url" in keys}


def _remote_settings(store: Path) -> dict[str, dict[str, list[str]]]:
    """Return the settings of each remote in the repository's own `config`, by the last part of their keys."""
    _, output, _ = git.call(store, ["config", "--local", "--null", "--get-regexp", r"^remote\."])
    settings: dict[str, dict[str, list[str]]] = {}
    for entry in output.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        match = _REMOTE_SETTING.fullmatch(key)
        if match and _NAME.fullmatch(match[1]):
            settings.setdefault(match[1], {}).setdefault(match[2], []).append(value)
    return settings


def _change_config(store: Path, *words: str) -> None:
    code, _, message = git.call(store, ["config", "--local", *words])
    if code:
        raise _config_error(store, message)


def _config_error(store: Path, reason: str) -> StoreError:
    return StoreError(f"cannot change the store's git config: {reason}", f"Is {store} yours and writable?")


@contextmanager
def _config_change(store: Path) -> Iterator[None]:
    with locks.settings_lock(StorePaths(store)):
        refs.delete_stale_locks(store, ["config"])
        yield


def _setting(entry: bytes) -> bytes:
    """Return a setting, which git lists as its key and its value, as git's config file has it."""
    key, equals, value = entry.partition(b"\n")
    section, _, name = key.rpartition(b".")
    section, dot, subsection = section.partition(b".")
    head = b'[%s "%s"]' % (section, _escape(subsection)) if dot else b"[%s]" % section
    return b"%s\n\t%s%s\n" % (head, name, b' = "%s"' % _escape(value) if equals else b"")


def _escape(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


# Refs of a remote


def remote_refs(store: Path, link: Connection) -> dict[str, str]:
    """Return the commit that each ref of the remote leads to, by its full name there; only refs of our spaces."""
    raw, peeled = _read_remote_refs(store, link)
    return {**raw, **peeled}


def tracked_refs(store: Path, remote: str) -> dict[str, str]:
    """Return what the remote held when it was last contacted, as `remote_refs` does."""
    prefix = layout.tracking_ref(remote, "")
    form = "--format=%(refname)%09%(objectname)%09%(*objectname)"
    code, output, message = git.call(store, ["for-each-ref", form, prefix.rstrip("/")])
    if code:
        raise StoreError(f"cannot read the refs of the store: {message}", "`sessgit doctor` shows why.")
    rows = (line.split("\t") for line in output.decode("utf-8", "replace").splitlines())
    tracked = {f"refs/{ref.removeprefix(prefix)}": peeled or oid for ref, oid, peeled in rows}
    return {ref: oid for ref, oid in tracked.items() if _is_sessgit_ref(ref)}


def _read_remote_refs(store: Path, link: Connection) -> tuple[dict[str, str], dict[str, str]]:
    """Return the objects that refs hold there, and the commits that annotated tags lead to."""
    raw: dict[str, str] = {}
    peeled: dict[str, str] = {}
    for ref, oid in _list_remote_refs(store, link).items():
        name = ref.removesuffix(_PEELED)
        if _is_sessgit_ref(name):
            (raw if name == ref else peeled)[name] = oid
    return raw, peeled


def _list_remote_refs(store: Path, link: Connection) -> dict[str, str]:
    """Return all refs that the remote lists, of whatever program."""
    result = _run_reading(store, link, ["ls-remote", "--quiet"])
    if result.code:
        raise _listing_error(store, link, result)
    listed = {ref: oid for oid, ref in _LS_REMOTE_LINE.findall(result.out.decode("utf-8", "replace"))}
    link.unserved.update(ref for ref, oid in listed.items() if oid == _ZERO_ID)
    return {ref: oid for ref, oid in listed.items() if oid != _ZERO_ID}


def _listing_error(store: Path, link: Connection, result: GitResult) -> StoreError:
    """Return why the refs cannot be listed. If git there ends at a ref with a dangerous name, a web server keeps its
    message to itself: then the packets tell which ref was the last one before it.

    A narrower listing would not help: `git ls-remote` sends no `ref-prefix` for patterns, and where `git fetch` does,
    git there reads one ref past the prefix, so the ref before the dangerous one cannot even be fetched by its name.
    """
    if not result.met_end_of_listing:
        return unreachable_error(link.remote.name, link.remote.shown, result)
    traced = replace(link, env={**link.env, "GIT_TRACE_PACKET": "1"}, say=lambda message: None)
    listed = _TRACED_REF.findall(_run_reading(store, traced, ["ls-remote", "--quiet"]).messages)
    where = f"after {listed[-1]}" if listed else "at the first one"
    return StoreError(
        f"git at {link.remote.name} stopped while it listed its refs, {where}",
        "If the next line in its file packed-refs has a dangerous name, such as refs/heads/../x, delete that line. "
        "The log of its web server says why.",
    )


def _is_sessgit_ref(ref: str) -> bool:
    space, name = layout.split_ref(ref)
    if space == layout.TAGS:
        return is_tag(name)
    if space == layout.DELETED:
        return ids.SESSION_ID.fullmatch(name) is not None
    return space in layout.REF_SPACES and ids.is_branch(name)


# Fetching


def mirror_refspecs(remote: str) -> list[str]:
    """Return the refspecs by which the tracking refs follow the remote."""
    return [f"+{space}*:{layout.tracking_ref(remote, space)}*" for space in layout.REF_SPACES]


def refspecs_for(remote: str, ref_names: Iterable[str]) -> list[str]:
    """Return the refspecs that fetch these refs into the tracking refs."""
    return [f"+{ref}:{layout.tracking_ref(remote, ref)}" for ref in ref_names]


def pattern_refspecs(
    remote: str, ref_names: Collection[str], listed: Mapping[str, str], known: Mapping[str, str]
) -> list[str]:
    """Return refspecs that fetch the wanted refs, and of all others that are `listed` only those that are here already.

    `known` are the tracking refs. A ref that is created meanwhile may be fetched too. If git might refuse the name of
    another ref, each wanted one is named.
    """
    spaces = tuple(sorted({layout.split_ref(ref)[0] for ref in ref_names}))
    ref_names = set(ref_names)
    others = [
        ref
        for ref, oid in listed.items()
        if ref.startswith(spaces) and ref not in ref_names and not ref.endswith(_PEELED)
        and known.get(layout.tracking_ref(remote, ref)) != oid
    ]  # fmt: skip
    if not all(map(_SAFE_REF.fullmatch, others)):
        return refspecs_for(remote, sorted(ref_names))
    return [*(f"+{space}*:{layout.tracking_ref(remote, space)}*" for space in spaces), *(f"^{ref}" for ref in others)]


def fetch_branches(scratch: Path, link: Connection, sessions: Collection[str]) -> None:
    """Create a store at `scratch`, and fetch all branches of these sessions into it. Raises StoreError."""
    stores.create_store(scratch)
    specs = [f"+refs/{space}/{name}*:refs/{space}/{name}*" for name in sessions for space in ("heads", "archive")]
    flags = ["--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"]
    command = ["fetch", "--quiet", *flags, "--", link.remote.url, *specs]
    result = execute(scratch, command, link.env, link.say, secrets=url_secrets(link.remote.url))
    if result.code:
        raise unreachable_error(link.remote.name, link.remote.shown, result)


def fetch_refs(store: Path, link: Connection, ref_names: Collection[str]) -> None:
    """Fetch refs of the remote, by their full names there, into the tracking refs, and delete those that it lacks.

    Each ref moves once all objects are here, so an interrupted fetch leaves some of them, each whole.
    """
    ref_names = sorted(filter(_is_sessgit_ref, ref_names))
    lock = locks.hold_off_prune(StorePaths(store))
    try:
        result, race = _fetch_once(store, link, ref_names, ask=len(ref_names) > _FEW_REFS)
        for tries in range(1, _TRIES):
            if not result.code or not (race or "couldn't find remote ref" in result.reason):
                break
            if race:
                refs.delete_stale_locks(store, [layout.tracking_ref(link.remote.name, ref) for ref in ref_names])
                time.sleep(tries * _WAIT)
            result, race = _fetch_once(store, link, ref_names, ask=True)
    finally:
        locks.release(lock)
    if result.code and race:
        raise StoreError(f"cannot record what came from {link.remote.name}: {race}", "Try again.")
    if result.code:
        raise unreachable_error(link.remote.name, link.remote.shown, result)
    operations.pack_moved_refs(store, len(ref_names))


def _fetch_once(store: Path, link: Connection, ref_names: Sequence[str], *, ask: bool) -> tuple[GitResult, str]:
    """Return git's result, and its message about a ref that another process moved, or ``""``.

    With `ask` the remote lists its refs first, and only what is missing is fetched.
    """
    name = link.remote.name
    specs = refspecs_for(name, ref_names)
    if ask:
        listed = _list_remote_refs(store, link)
        _delete_tracking_refs(store, name, [ref for ref in ref_names if ref not in listed])
        known = refs.read_all(store, layout.tracking_ref(name, ""))
        missing = [
            ref for ref in ref_names if ref in listed and known.get(layout.tracking_ref(name, ref)) != listed[ref]
        ]
        is_many = len(missing) > _FEW_REFS
        specs = pattern_refspecs(name, missing, listed, known) if is_many else refspecs_for(name, missing)
    if not specs:
        return GitResult(0, b"", ""), ""
    flags = ["--no-tags", "--no-prune", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"]
    # Without --refmap git would look each of thousands up in the configuration as well.
    command = ["fetch", "--progress", *flags, "--refmap=", "--stdin"]
    races = list[str]()

    def say(message: str) -> None:
        if any(words in message for words in _LOST_RACE):  # the result keeps only the last messages
            races.append(message.removeprefix("error: "))
        link.say(message)

    stdin_data = "".join(f"{spec}\n" for spec in specs).encode()
    return _run_reading(store, replace(link, say=say), command, stdin_data=stdin_data), next(iter(races), "")


def _delete_tracking_refs(store: Path, remote: str, names: Sequence[str]) -> None:
    """Delete the tracking refs of refs that the remote no longer has, even if another process deletes them too."""
    names = [layout.tracking_ref(remote, ref) for ref in names]
    for tries_left in reversed(range(_TRIES)):
        known = refs.read_all(store, layout.tracking_ref(remote, "")) if names else {}
        try:
            return operations.move_refs(store, [Move(name, known[name], None) for name in names if name in known])
        except MovedError:
            if not tries_left:
                raise


# Pushing

_FOLDER_INCLUDE = r"^includeif\.gitdir"
_COPIED_SETTINGS = ("proxy", "proxyauthmethod", "receivepack")
"""Settings of a remote besides its URL that are copied: how it is reached, never what is pushed."""
_INCLUDE = b"[include]\n\tpath = ../../config\n"


def push_refs(store: Path, link: Connection, moves: Sequence[Move]) -> None:
    """Move refs of the remote, by their full names there: all of them or none, each from its old value.

    Raises MovedError if one holds something else there, RefusedError if the remote refuses, StoreError on failures. The
    tracking refs follow at the end; after an interruption they are as the remote was.
    """
    moves = [move for move in moves if move.old != move.new]
    if not moves:
        return
    for move in moves:
        if not _is_sessgit_ref(move.ref):
            raise UsageError(f"{move.ref} is no ref that goes to a remote")
    expected, leases = _expected_refs(store, link, moves)
    with push_repository(store, link, moves, expected) as folder:
        flags = ["--porcelain", "--progress", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed"]
        command = ["push", *flags, "--recurse-submodules=no", "--force-with-lease", *leases, folder.name]
        result = _run_connected(folder, link, command)
    if result.code:
        raise _rejection_error(store, link, moves, result)
    known = refs.read_all(store, layout.tracking_ref(link.remote.name, ""))
    tracking = ((layout.tracking_ref(link.remote.name, move.ref), move.new) for move in moves)
    changed = [Move(ref, known.get(ref), new) for ref, new in tracking if known.get(ref) != new]
    with suppress(StoreError):  # the push is done, and the next pull updates them
        operations.move_refs(store, changed, durable=False)
    operations.pack_moved_refs(store, len(moves))


def _expected_refs(store: Path, link: Connection, moves: Sequence[Move]) -> tuple[dict[str, str], list[str]]:
    """Return the tracking refs with the old values, and git's options for the others.

    git compares the remote's refs with its tracking refs, so thousands need no option. Refs whose old object is not
    here need one, and annotated tags, whose own object differs from what `remote_refs` returns.
    """
    has_tags = any(move.old and move.ref.startswith(layout.TAGS) for move in moves)
    raw, peeled = _read_remote_refs(store, link) if has_tags else ({}, {})
    existing = set(object_scan.existing_objects(store, {move.old for move in moves if move.old}))
    expected = dict[str, str]()
    leases = list[str]()
    for move in moves:
        if move.old is None:
            continue
        old = raw[move.ref] if peeled.get(move.ref) == move.old else move.old
        if old in existing and old == move.old:
            expected[layout.tracking_ref(link.remote.name, move.ref)] = old
        else:
            leases.append(f"--force-with-lease={move.ref}:{old}")
    return expected, leases


@contextmanager
def push_repository(
    store: Path, link: Connection, moves: Sequence[Move], expected: Mapping[str, str]
) -> Iterator[Path]:
    """Yield a repository from which `git push` moves these refs of the remote and no others.

    It borrows the store's objects and settings. The remote has the name of its folder, which no settings know: with
    `mirror` or `push` for remotes of the real name git would push more, and delete the rest. `expected` are tracking
    refs of the remote. Raises StoreError.
    """
    remote = link.remote.name
    pushed = {move.ref: move.new for move in moves if move.new}
    spaces = [space for space in layout.REF_SPACES if any(ref.startswith(space) for ref in pushed)]
    entries = [("url", link.remote.url), *(("fetch", spec) for spec in mirror_refspecs(remote))]
    entries += [("push", spec) for spec in (*(f"{space}*:{space}*" for space in spaces),
                                            *(f":{move.ref}" for move in moves if not move.new))]  # fmt: skip
    with tempdirs.make_folder("push-", StorePaths(store).state) as folder:
        try:
            _make_borrower(folder, {**pushed, **expected})
            config = folder / "config"
            if execute(store, ["config", "--get-regexp", _FOLDER_INCLUDE], link.env).code == 0:
                inherited = _list_settings(folder, link.env)
                others = [entry for entry in _list_settings(store, link.env) if entry not in inherited]
                config.write_bytes(b"".join(map(_setting, others)) + _INCLUDE)
            prefix = f"remote.{remote}.".encode()
            settings = [f"{key}\n{value}".encode() for key, value in entries]
            for entry in _list_settings(folder, link.env):
                setting = entry.removeprefix(prefix)
                if setting != entry and setting.partition(b"\n")[0].decode("utf-8", "replace") in _COPIED_SETTINGS:
                    settings.append(setting)
            with config.open("ab") as file:
                file.writelines(_setting(b"remote.%s.%s" % (folder.name.encode(), entry)) for entry in settings)
        except OSError as error:
            raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
        yield folder


def _list_settings(path: Path, env: Mapping[str, str]) -> list[bytes]:
    """Return all settings that git uses in a repository, each as its key, a newline and its value."""
    return [entry for entry in execute(path, ["config", "--null", "--list"], env).out.split(b"\0") if entry]


def _rejection_error(store: Path, link: Connection, moves: Sequence[Move], result: GitResult) -> Exception:
    """Return why a push failed, after reading the refs of the remote again."""
    reasons = _REJECTED_LINE.findall(result.out.decode("utf-8", "replace"))
    if not reasons:
        return unreachable_error(link.remote.name, link.remote.shown, result)
    now = remote_refs(store, link)
    if any(now.get(move.ref) != move.old for move in moves):
        return MovedError(f"{link.remote.name} was changed meanwhile", "Try again.")
    reason = next((reason for reason in reasons if "atomic" not in reason), reasons[0])
    words = result.without_secrets(reason.removeprefix("[remote rejected] ").removeprefix("[rejected] ").strip("()"))
    if any(failure in reason for failure in _REMOTE_FAILURES):
        return StoreError(f"{link.remote.name} could not write the data: {words}{result.remarks}", _UNCHANGED)
    return RefusedError(
        f"{link.remote.name} refused the push: {words}{result.remarks}",
        f"{_UNCHANGED} Ask the owner of {link.remote.shown}.",
    )


# Running git


def _run_reading(store: Path, link: Connection, command: Sequence[str], *, stdin_data: bytes = b"") -> GitResult:
    """Run a git that reads from the remote. If git there ends at a ref of an unsafe name, read from the remote without
    such refs, if it has a shell for us: as a folder of this machine, or by ssh."""
    result = _run_connected(store, link, [*command, link.remote.name], stdin_data=stdin_data)
    if not result.code or not result.met_unsafe_ref:
        return result

    skipped = set[str]()

    def say(message: str) -> None:
        if message.startswith(_SKIPPED):
            skipped.add(message.removeprefix(_SKIPPED))
        else:
            link.say(message)

    verb, *options = command
    command = [verb, f"--upload-pack={_SERVE_SAFE_REFS}", *options, link.remote.name]
    again = _run_connected(store, replace(link, say=say), command, stdin_data=stdin_data)
    link.unserved.update(skipped)
    return again if skipped else result


def _run_connected(store: Path, link: Connection, command: Sequence[str], *, stdin_data: bytes = b"") -> GitResult:
    urls = execute(store, ["config", "--null", "--get-all", f"remote.{link.remote.name}.url"], link.env).out
    if urls.split(b"\0") != [link.remote.url.encode(), b""]:
        raise ConflictError(
            f"git has more than one URL for the remote {link.remote.name}, or another than the store",
            f"To find where: `git config --show-origin --get-all remote.{link.remote.name}.url`",
        )
    return execute(store, command, link.env, link.say, stdin_data=stdin_data, secrets=url_secrets(link.remote.url))


def _make_borrower(folder: Path, held: Mapping[str, str]) -> None:
    """Make a bare repository with these refs in a folder of the store's `state` that borrows the store's objects and
    settings. Raises OSError."""
    (folder / "refs").mkdir()
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "objects" / "info" / "alternates").write_text("../../../objects\n")
    (folder / "HEAD").write_bytes(stores.HEAD)
    (folder / "packed-refs").write_text("".join(f"{oid} {ref}\n" for ref, oid in sorted(held.items())))
    (folder / "config").write_bytes(_INCLUDE)


# Remotes with refs of unsafe names
#
# A name is unsafe if it would lead out of `refs/` were it a path. git writes none, but reads them in `packed-refs`: it
# ends at the first, and serves no other ref either. A repository that borrows everything but these lines can serve the
# others: the shell that starts git there makes one first.

_SKIPPED = "skipped unsafe ref "
_SERVE_SAFE_REFS = rf"""sh -c '
    case $1 in "~/"*) top=$HOME/${{1#??}};; *) top=$1;; esac
    for source in "$top/.git" "$top" "$top.git"; do test -f "$source/packed-refs" && break; done
    cd "$source" && folder=$(mktemp -d) || exit
    trap "rm -rf \"$folder\"" 0
    trap "exit 1" 1 2 15
    export LC_ALL=C
    unsafe="//|/[.][.]?(/|\$)|/\$"
    cp HEAD config "$folder" && ln -s "$PWD/objects" "$PWD/refs" "$folder" || exit
    sed -E "\#$unsafe#d; /^[#^]/d" packed-refs > "$folder/packed-refs"
    sed -nE "\#$unsafe#s/^[^ ]* /{_SKIPPED}/p" packed-refs >&2
    git upload-pack "$folder"
' sh"""
"""The program for git to start at the remote in the place of its own."""
