"""Every ref and every path of a store, in the repository's trees and next to it."""

from __future__ import annotations

import hashlib
from pathlib import Path

FORMAT = 1

HEADS = "refs/heads/"
ARCHIVE = "refs/archive/"
TAGS = "refs/tags/"
KEEP = "refs/keep/"
DELETED = "refs/deleted/"
REMOTES = "refs/remotes/"
BRANCH_SPACES = (HEADS, ARCHIVE)
"""The refs of live and of archived branches."""
REF_SPACES = (*BRANCH_SPACES, DELETED, TAGS)
"""The refs that are exchanged with remotes."""

FORMAT_FILE = "format"
STATE = "session.json"
KEPT = "kept"
LIVE = "live"
PAD = "pad"
CARRIED = (PAD, KEPT)
"""The parts of a tree that belong to the session, not to its turns: a rewind keeps them."""
TAIL = "tail.jsonl"
TURNS = "turns"

BEFORE = "before.jsonl"
BODY = "transcript.jsonl"
TEXTS = "texts"
CELLS = "cells.jsonl"
SUBAGENTS = "subagents"
FILES = "files"

FAN_OUT = 100


def head_ref(branch: str) -> str:
    """Return the ref of a live session or one of its side branches."""
    return HEADS + branch


def archive_ref(branch: str) -> str:
    """Return the ref of an archived session or one of its side branches."""
    return ARCHIVE + branch


def tombstone_ref(session: str) -> str:
    """Return the ref that marks a session as deleted, so that it is not recorded again."""
    return DELETED + session


def kept_ref(operation: str, number: int) -> str:
    """Return the ref that keeps a tip which an operation made unreachable."""
    return f"{KEEP}{operation}-{number}"


def tracking_ref(remote: str, ref: str) -> str:
    """Return the tracking ref for `ref` of a remote, or for ``""`` the prefix of all tracking refs."""
    return f"{REMOTES}{remote}/{ref.removeprefix('refs/')}"


def split_ref(ref: str) -> tuple[str, str]:
    """Return the space of a ref and its name there; for a tracking ref those of the remote's ref."""
    rest, _, name = ref.rpartition("/")
    before, _, kind = rest.rpartition("/")
    return (f"refs/{kind}/", name) if before == "refs" or before.startswith("refs/remotes/") else ("", ref)


def session_of(branch: str) -> str:
    """Return the session that a branch belongs to: `a41f.r-9c02` and `a41f.m-5d1e` belong to `a41f`."""
    return branch.partition(".")[0]


def session_of_ref(ref: str) -> str:
    """Return the session of a branch's ref or a tombstone, here or at a remote."""
    return session_of(split_ref(ref)[1])


def is_rewound_branch(branch: str) -> bool:
    """Return whether the branch holds turns that a rewind of the session's own file left behind."""
    return ".r-" in branch


def is_other_version(branch: str) -> bool:
    """Return whether the branch is another version of the session: of another machine, or of an older file."""
    return ".m-" in branch


def is_side_branch(branch: str) -> bool:
    """Return whether the branch is not its session's head."""
    return is_rewound_branch(branch) or is_other_version(branch)


def short_name(branch: str) -> str:
    """Return the branch's name with a short session id: `a41f9c02`, `a41f9c02.m-5d1e77aa`."""
    session, dot, side = branch.partition(".")
    return f"{session[:8]}{dot}{side}"


def turn_folder(number: int) -> str:
    """Return the folder of a turn: `turns/0000/000007`."""
    return f"{TURNS}/{number // FAN_OUT:04d}/{number:06d}"


class _Path:
    """A path in the store, joined when it is first read: a command creates many `StorePaths` and reads few paths."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __set_name__(self, owner: type[StorePaths], name: str) -> None:
        self.name = name

    def __get__(self, paths: StorePaths, owner: type[StorePaths]) -> Path:
        joined = paths.__dict__[self.name] = paths.store / self.path
        return joined


class StorePaths:
    """The paths next to the repository's own files, which are never pushed."""

    config = _Path("config.toml")
    index = _Path("index.sqlite3")
    text = _Path("text.sqlite3")
    spool = _Path("spool")
    waiting = _Path("spool/waiting")
    state = _Path("state")
    locks = _Path("state/locks")
    key = _Path("key")
    hook = _Path("hook")
    log = _Path("log")
    latest = _Path("latest.json")
    journal = _Path("operations.jsonl")
    ignore = _Path(".gitignore")
    packing = _Path("state/packing")
    repacking = _Path("state/repacking")
    archiving = _Path("state/archiving")
    forbidden = _Path("state/forbidden")
    forbidden_lost = _Path("state/forbidden-lost")
    purging = _Path("state/purging")
    rewritten = _Path("state/rewritten")
    refs = _Path("state/refs")
    web = _Path("state/web")

    def __init__(self, store: Path) -> None:
        self.store = store

    def cursor(self, session: str) -> Path:
        """Return the path of the session's cursor."""
        return self.state / f"{session}.json"

    def agreement_file(self, url: str) -> Path:
        """Return the path of what this store and the remote at this URL last agreed on."""
        return self.state / f"remote-{hashlib.sha256(url.encode()).hexdigest()[:16]}.json"

    def append_intent(self, session: str) -> Path:
        """Return the path of the session's append intent."""
        return self.state / f"{session}.append"

    def waiting_cells(self, session: str) -> Path:
        """Return the path of the lines of programs that wait to be recorded outside the session's transcript."""
        return self.state / f"{session}.cells"

    def beginning(self, session: str) -> Path:
        """Return the path of the file that is locked while the session is created in several steps."""
        return self.state / f"{session}.begun"

    def lock(self, name: str) -> Path:
        """Return the file of the lock of this name."""
        return self.locks / f"{name}.lock"
