"""Every ref and every path of a store, in the repository's trees and beside them."""

from __future__ import annotations

from pathlib import Path

FORMAT = 1

HEADS = "refs/heads/"
ARCHIVE = "refs/archive/"
TAGS = "refs/tags/"
KEEP = "refs/keep/"
DELETED = "refs/deleted/"

FORMAT_FILE = "format"
STATE = "session.json"
LIVE = "live"
PAD = "pad"
TAIL = "tail.jsonl"
TURNS = "turns"

BEFORE = "before.jsonl"
BODY = "transcript.jsonl"
TEXTS = "texts"
CELLS = "cells.jsonl"
SUBAGENTS = "subagents"
FILES = "files"

FAN_OUT = 100


def head(branch: str) -> str:
    """The ref of a live session or of one of its rewound branches."""
    return HEADS + branch


def archived(branch: str) -> str:
    """The ref of an archived session or of one of its rewound branches."""
    return ARCHIVE + branch


def tombstone(session: str) -> str:
    """The ref that says that a session was deleted and is not to be recorded again."""
    return DELETED + session


def kept(operation: str, number: int) -> str:
    """The ref that keeps a tip which an operation made unreachable otherwise."""
    return f"{KEEP}{operation}-{number}"


def session_of(branch: str) -> str:
    """The session that a branch belongs to: `a41f.r-9c02` belongs to `a41f`."""
    return branch.partition(".")[0]


def is_rewound(branch: str) -> bool:
    return ".r-" in branch


def turn(number: int) -> str:
    """The folder of a turn: `turns/0000/000007`."""
    return f"{TURNS}/{number // FAN_OUT:04d}/{number:06d}"


class Beside:
    """The paths beside the repository's own files; none of them is ever pushed."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.config = store / "config.toml"
        self.index = store / "index.sqlite3"
        self.text = store / "text.sqlite3"
        self.spool = store / "spool"
        self.state = store / "state"
        self.locks = store / "state" / "locks"
        self.key = store / "key"
        self.hook = store / "hook"
        self.log = store / "log"
        self.latest = store / "latest.json"
        self.journal = store / "operations.jsonl"
        self.ignore = store / ".gitignore"
        self.packing = store / "state" / "packing"
        self.archiving = store / "state" / "archiving"

    def cursor(self, session: str) -> Path:
        return self.state / f"{session}.json"

    def appending(self, session: str) -> Path:
        """What is just being appended to the session's file."""
        return self.state / f"{session}.append"

    def lock(self, name: str) -> Path:
        return self.locks / f"{name}.lock"
