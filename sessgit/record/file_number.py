"""Which of a session's files this is: the one in which what is recorded stands where it did, or another one.

A file that `restore` wrote, with other words in the place of secrets, or one on another machine has the same lines at
other places. The places of what is recorded out of it are told apart by its number.
"""

from __future__ import annotations

import hashlib

from sessgit.agents.reader import Reader
from sessgit.history import reassemble
from sessgit.model.conversation.message import Extent, Message
from sessgit.model.conversation.session import Session
from sessgit.store.store import Store


def last_file_number(store: Store, state: Session, tips: dict[str, str], reader: Reader, prefix: int) -> int:
    """The number of the last file that anything was recorded out of, if the last lines recorded stand in this one where
    they did in that one; else the next number. 1 where nothing is recorded yet.

    `prefix` is how much of this file a fork wrote.
    """
    last: tuple[int, int, str, Message] | None = None
    seen = set[str]()
    for tip in tips.values():
        for commit, message in reassemble.own_commits(store, state.id, tip):
            if commit in seen:
                break
            seen.add(commit)
            is_fork = message.get("Event") == "fork" and state.origin is not None and not state.origin.prefix
            if not is_fork and not (message.number("Turn") and message.get("Prompt")):
                continue
            end = max((extent.end for extent in message.extents), default=0)
            if end and (last is None or (message.file, end) > last[:2]):
                last = message.file, end, commit, message
    if last is None:
        return 1 if state.origin is None or prefix == state.origin.prefix else 2
    file, end, commit, message = last
    turn = message.number("Turn") or (state.origin.turn if state.origin else 0)
    extent = max(message.extents, key=lambda one: one.end)
    return file if _extent_matches(store, state, commit, turn, extent, reader) else file + 1


def fork_prefix_length(store: Store, state: Session, tips: dict[str, str], reader: Reader) -> int:
    """So many bytes at the beginning of this file were written by a fork, perhaps anew."""
    origin = state.origin
    if origin is None or not origin.prefix:
        return 0
    if hashlib.sha256(reader.at(0, origin.prefix)).hexdigest() == origin.prefix_sha256:
        return origin.prefix
    data = reassemble.fork_prefix(store, state, origin, reassemble.fork_commit(store, state.id, tips))
    return len(data) if reader.at(0, len(data)) == data else origin.prefix


def _extent_matches(store: Store, state: Session, commit: str, turn: int, extent: Extent, reader: Reader) -> bool:
    """Whether the last lines of a turn are those that the file has in an extent, which may hold others before them."""
    recorded = reassemble.turn_lines(store, commit, state, turn)[-extent.lines :]
    there = [line.raw for line in reader.again(extent)]
    return bool(there) and there[-len(recorded) :] == recorded
