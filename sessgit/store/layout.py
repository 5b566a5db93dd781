"""Every ref and every path of a store, in the repository's trees and beside them."""

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
REF_SPACES = (HEADS, ARCHIVE, DELETED, TAGS)
"""What stores have in common: these refs come from remotes and go to them, and no others."""

FORMAT_FILE = "format"
STATE = "session.json"
KEPT = "kept"
LIVE = "live"
PAD = "pad"
CARRIED = (PAD, KEPT)
"""What belongs to the session and not to its turns: a rewind takes it along."""
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
    """The ref of a live session or of one of its side branches."""
    return HEADS + branch


def archive_ref(branch: str) -> str:
    """The ref of an archived session or of one of its side branches."""
    return ARCHIVE + branch


def tombstone_ref(session: str) -> str:
    """The ref that says that a session was deleted and is not to be recorded again."""
    return DELETED + session


def kept_ref(operation: str, number: int) -> str:
    """The ref that keeps a tip which an operation made unreachable otherwise."""
    return f"{KEEP}{operation}-{number}"


def tracking_ref(remote: str, ref: str) -> str:
    """The ref that holds here what `ref` held at a remote when that was last seen; with ``""`` the beginning of all."""
    return f"{REMOTES}{remote}/{ref.removeprefix('refs/')}"


def split_ref(ref: str) -> tuple[str, str]:
    """The space of a ref and its name there: of a tracking ref those that it has at the remote."""
    rest, _, name = ref.rpartition("/")
    before, _, kind = rest.rpartition("/")
    return (f"refs/{kind}/", name) if before == "refs" or before.startswith("refs/remotes/") else ("", ref)


def session_of(branch: str) -> str:
    """The session that a branch belongs to: `a41f.r-9c02` and `a41f.m-5d1e` belong to `a41f`."""
    return branch.partition(".")[0]


def session_of_ref(ref: str) -> str:
    """The session that the branch, live or archived, or the tombstone at a ref belongs to, here or at a remote."""
    return session_of(split_ref(ref)[1])


def is_rewound_branch(branch: str) -> bool:
    """Whether the branch holds turns that a rewind of the session's own file left behind."""
    return ".r-" in branch


def is_other_version(branch: str) -> bool:
    """Return whether the branch is another version of the session: of another machine, or of an older file."""
    return ".m-" in branch


def is_side_branch(branch: str) -> bool:
    """Whether the branch belongs to a session whose head is another branch."""
    return is_rewound_branch(branch) or is_other_version(branch)


def short_name(branch: str) -> str:
    """`a41f9c02`, `a41f9c02.m-5d1e77aa`: the branch's name with the first eight characters of its session's id."""
    session, dot, side = branch.partition(".")
    return f"{session[:8]}{dot}{side}"


def turn_folder(number: int) -> str:
    """The folder of a turn: `turns/0000/000007`."""
    return f"{TURNS}/{number // FAN_OUT:04d}/{number:06d}"


class _Path:
    """A path in the store, joined when it is first read: a command makes many `StorePaths` and reads few paths."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __set_name__(self, owner: type[StorePaths], name: str) -> None:
        self.name = name

    def __get__(self, paths: StorePaths, owner: type[StorePaths]) -> Path:
        joined = paths.__dict__[self.name] = paths.store / self.path
        return joined


class StorePaths:
    """The paths beside the repository's own files; none of them is ever pushed."""

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

    def __init__(self, store: Path) -> None:
        self.store = store

    def cursor(self, session: str) -> Path:
        """How far the session's transcript is recorded."""
        return self.state / f"{session}.json"

    def agreement_file(self, url: str) -> Path:
        """What this store and the remote at that address were last seen to agree on."""
        return self.state / f"remote-{hashlib.sha256(url.encode()).hexdigest()[:16]}.json"

    def append_intent(self, session: str) -> Path:
        """What is just being appended to the session's file."""
        return self.state / f"{session}.append"

    def beginning(self, session: str) -> Path:
        """Says, while it is locked, that the session is just being made out of several steps."""
        return self.state / f"{session}.begun"

    def lock(self, name: str) -> Path:
        """The file that whoever holds the lock of that name has locked."""
        return self.locks / f"{name}.lock"
