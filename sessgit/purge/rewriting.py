"""The history of a store written anew without the values that must go, and which commit became which.

A commit is a function of the commit that it was, of the values, and of what became of its parents: two stores that
have the same history have the same one afterwards too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import reassemble
from sessgit.model import canonical, ids
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.purge import states, turn_folders
from sessgit.purge.turn_folders import Changed, Entry, Folders
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import layout
from sessgit.store.backend import Commit
from sessgit.store.store import Store, join_lines

_OID = re.compile(r"[0-9a-f]{40}")
_LONGEST_PROMPT = 200
_MOST_PLACES = 200_000


@dataclass(frozen=True, slots=True)
class _CommitTurn:
    """Of a commit the turn that it holds, how many values went out of that turn, and out of all up to it."""

    key: str = ""
    turn: int = 0
    added: int = 0


@dataclass
class Rewriter:
    """Commits of a store and what becomes of them. `hits` are all objects that hold a value."""

    store: Store
    matcher: ValueMatcher
    values: Sequence[str]
    hits: Collection[str]
    commits: dict[str, str] = field(default_factory=dict)
    """By each commit that was changed the one that took its place."""
    keys: dict[str, str] = field(default_factory=dict)
    """By each key of a turn that followed from its words the one that it has now."""
    prompts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folders = Folders(self.store, self.matcher)
        self._seen = set[str]()
        self._own: dict[str, _CommitTurn] = {}
        self._held: dict[str, bool] = {}
        self._trees: dict[str, Entry | None] = {}
        self._prefixes: dict[tuple[str, str], str] = {}
        self._forks: dict[str, str] = {}

    def rewrite(self, tips: Iterable[str], progress: Callable[[int], None]) -> None:
        """Writes anew what of the histories of the tips has to be, parents and fork points first."""
        for tip in tips:
            waiting = [tip]
            while waiting:
                oid = waiting[-1]
                if oid in self._seen:
                    waiting.pop()
                    continue
                commit = self.store.repo.commit(oid)
                needed = [one for one in self._needed(commit) if one not in self._seen]
                if needed:
                    waiting += needed
                    continue
                waiting.pop()
                self._seen.add(oid)
                self._one(commit)
                progress(len(self._seen))

    def holds(self, tree: str) -> bool:
        """Whether a tree, or anything below it, holds a value."""
        if tree not in self._held:
            entries = self.store.repo.tree(tree).values()
            found = tree in self.hits or any(
                self.holds(oid) if is_tree else oid in self.hits for oid, is_tree in entries
            )
            self._held[tree] = found
        return self._held[tree]

    def now(self, oid: str) -> str:
        """The commit that stands for it now."""
        return self.commits.get(oid, oid)

    # One commit

    def _needed(self, commit: Commit) -> list[str]:
        """The commits that are written before this one: its parents, and what its state and message name."""
        origin = states.origin_of(self._state(commit))
        point = origin.get("commit")
        named = [point] if isinstance(point, str) and _OID.fullmatch(point) else []
        named += [tip for tip in messages.parse_message(commit.message).all("Tip") if _OID.fullmatch(tip)]
        named += self._fork_beginning(commit) if origin.get("prefix") else []
        return [*commit.parents, *filter(self._is_commit, named)]

    def _fork_beginning(self, commit: Commit) -> list[str]:
        """The first commit of the fork that it is of: after a rewind to before it no parent leads there."""
        try:
            first = self._first_fork_commit(commit, self.store.state(commit.id))
        except SessgitError:
            return []
        return [first] if first != commit.id else []

    def _is_commit(self, oid: str) -> bool:
        try:
            return self.store.repo.has(oid) and bool(self.store.repo.commit(oid).tree)
        except SessgitError:
            return False

    def _state(self, commit: Commit) -> bytes:
        entry = self.store.repo.tree(commit.tree).get(layout.STATE)
        return self.store.repo.blob(entry[0]) if entry and not entry[1] else b""

    def _one(self, commit: Commit) -> None:
        message = messages.parse_message(commit.message)
        new, own = self._message(commit, message)
        self._own[commit.id] = own
        text = (
            messages.format_message(new)
            if messages.format_message(message) == commit.message
            else self._words(commit.message)
        )
        tips = message.all("Tip")
        named = any(self.now(one) != one for one in [*commit.parents, *tips, *self._origins(commit)])
        if not named and not own.added and text == commit.message and not self.holds(commit.tree):
            return
        # The file can hold other words now before these lines, and not all of it is at hand.
        text = re.sub(rf"^{messages.FILE_HASH}: .*\n", "", text, flags=re.MULTILINE)
        parents = [self.now(one) for one in commit.parents]
        tree = self._tree(commit, own.added, lambda tree: self._written(tree, parents, text, commit.time))
        made = self._written(tree, parents, text, commit.time)
        if made != commit.id:
            self.commits[commit.id] = made

    def _origins(self, commit: Commit) -> list[str]:
        found = states.origin_of(self._state(commit)).get("commit")
        return [found] if isinstance(found, str) else []

    def _written(self, tree: str, parents: Sequence[str], text: str, time: int) -> str:
        return self.store.repo.write_commit(tree, list(parents), text, time)

    def _agent(self, commit: Commit) -> Agent:
        """The agent whose turns the commit holds."""
        return agents.named(self.store.agent(messages.parse_message(commit.message).get("Session"), commit.id))

    # Trees

    def _tree(self, commit: Commit, added: int, draft: Callable[[str], str]) -> str:
        """The tree of a commit; `draft` makes a commit of one, which a fork's beginning is read from."""
        entries = self.store.repo.tree(commit.tree)
        changes: dict[str, Entry | None] = {}
        for name, entry in entries.items():
            if name in (layout.STATE, layout.FORMAT_FILE):
                continue
            called = turn_folders.file_name(name, self.matcher)
            new = self._part(commit, name, entry)
            if (called, new) != (name, entry):
                changes |= {name: None, called: new} if called != name else {name: new}
        data = self._state(commit)
        if data:
            changes[layout.STATE] = self._new_state(data, "", added)
            prefix = self._prefix(commit, data, changes, draft)
            if prefix:
                changes[layout.STATE] = self._new_state(data, prefix, added)
        return self.store.repo.edit_tree(commit.tree, changes) if changes else commit.tree

    def _part(self, commit: Commit, name: str, entry: Entry) -> Entry | None:
        oid, is_tree = entry
        if not (self.holds(oid) if is_tree else oid in self.hits):
            return entry
        key = f"{name}/{oid}"
        if key not in self._trees:
            if name == layout.TURNS and is_tree:
                self._trees[key] = (self._turns(commit, oid, 0), True)
            elif name == layout.PAD and is_tree:
                self._trees[key] = states.rewrite_pad(self.store, oid, self.matcher)
            else:
                self._trees[key] = turn_folders.blob(self.store, entry, self.matcher)
        return self._trees[key]

    def _turns(self, commit: Commit, tree: str, depth: int) -> str:
        key = f"{depth}/{tree}"
        if key not in self._trees:
            changes: dict[str, Entry | None] = {}
            for name, (oid, is_tree) in self.store.repo.tree(tree).items():
                if is_tree and self.holds(oid):
                    changes[name] = (
                        self._turns(commit, oid, 1) if not depth else self.folders.rewritten(self._agent(commit), oid),
                        True,
                    )
            self._trees[key] = (self.store.repo.edit_tree(tree, changes), True) if changes else (tree, True)
        found = self._trees[key]
        assert found is not None
        return found[0]

    def _new_state(self, data: bytes, prefix: str, added: int) -> Entry:
        made = states.rewrite_state(
            data, self.matcher, self.values, self.now, states.StateChanges(added, self.prompts, prefix)
        )
        return self.store.repo.write_blob(made), False

    def _prefix(
        self, commit: Commit, data: bytes, changes: Mapping[str, Entry | None], draft: Callable[[str], str]
    ) -> str:
        """The hash of the beginning that a fork of ours wrote, as it is now; ``""`` where there is none."""
        origin = states.origin_of(data)
        was = origin.get("prefix_sha256")
        if not origin.get("prefix") or not isinstance(was, str) or not was:
            return ""
        state = self.store.state(commit.id)
        if state.origin is None:
            return ""
        key = (state.id, was)
        if key not in self._prefixes:
            first = self._first_fork_commit(commit, state)
            self._prefixes[key] = was
            try:
                if states.bytes_hash(reassemble.fork_prefix(self.store, state, state.origin, first)) != was:
                    return was  # it never could be written anew
                drafted = draft(self.store.repo.edit_tree(commit.tree, changes)) if first == commit.id else ""
                moved = replace(state.origin, commit=self.now(state.origin.commit))
                made = reassemble.fork_prefix(
                    self.store, replace(state, origin=moved), moved, drafted or self.now(first)
                )
                self._prefixes[key] = states.bytes_hash(made)
            except SessgitError:  # what the fork left is not here: its beginning cannot be written anew either way
                pass
        return self._prefixes[key]

    def _first_fork_commit(self, commit: Commit, state: Session) -> str:
        """The commit with which a fork of ours began."""
        if state.id not in self._forks:
            tips = {state.id: commit.id}
            with suppress(NotFoundError):  # it was deleted
                tips = reassemble.session_branches(self.store, state.id) | tips
            self._forks[state.id] = reassemble.fork_commit(self.store, state.id, tips)
        return self._forks[state.id]

    # Messages

    def _message(self, commit: Commit, message: Message) -> tuple[Message, _CommitTurn]:
        before = self._own.get(commit.parents[0], _CommitTurn()) if commit.parents else _CommitTurn()
        number, key = message.number("Turn"), message.get("Prompt")
        lines, count = self._lines(commit, message, number if key else None)
        own = before if lines is None else replace(before, added=before.added + count)
        if number and key:
            start = before.added - before.turn if before.key == key else before.added
            own = _CommitTurn(key, count, start + count)
        trailers = [(name, self._trailer(name, value)) for name, value in message.trailers]
        subject = value_match.cut_short(self._words(message.subject), self.values)
        if lines is not None and lines.old != lines.new:
            trailers = _proof_trailers(trailers, message, lines)
            if number and key:
                subject, key = self._told(commit, message, lines, subject, key)
                trailers = [(name, key if name == "Prompt" else value) for name, value in trailers]
        return Message(subject, tuple(trailers)), own

    def _lines(self, commit: Commit, message: Message, number: int | None) -> tuple[Changed | None, int]:
        """The lines that the extents of a commit are of, and how many values went out of them; None for none."""
        event = message.get("Event")
        if number:
            found = self.store.repo.entry(commit.tree, layout.turn_folder(number))
            if found is None or not self.holds(found[0]):
                return None, 0
            lines = self.folders.lines(self._agent(commit), found[0])
        elif event in ("compact", "end"):
            entry = self.store.repo.entry(commit.tree, layout.TAIL)
            if entry is None or entry[0] not in self.hits:
                return None, 0
            tail = [line.removesuffix(b"\n") for line in turn_folders.lines_of(self.store.repo.blob(entry[0]))]
            lines = turn_folders.changed(self._agent(commit), (tail, []), self.matcher)
        elif event == "fork" and message.extents:
            lines = self._taken_over(commit)
        else:
            return None, 0
        count = sum(extent.lines for extent in message.extents) or len(lines.old)
        # A tail stands in the next turn's folder once more, and what a fork took over is counted where it was recorded.
        return lines, sum(lines.counts[-count:]) if number and event != "fork" else 0

    def _taken_over(self, commit: Commit) -> Changed:
        """The lines of all turns that a fork of the agent's shares, as its own file has them."""
        state = self.store.state(commit.id)
        turns = range(1, state.origin.turn + 1) if state.origin else ()
        try:
            old = [line for n in turns for line in reassemble.turn_lines(self.store, commit.id, state, n)]
        except SessgitError:
            return Changed(0, (), (), ())
        return turn_folders.changed(self._agent(commit), ([], old), self.matcher)

    def _told(self, commit: Commit, message: Message, lines: Changed, subject: str, key: str) -> tuple[str, str]:
        """The subject and the key of a turn in its new words."""
        agent = self._agent(commit)
        old, new = (agent.lines.parsed(every[lines.first :]) for every in (lines.old, lines.new))
        said = [canonical.one_line(agent.cells.describe(body).prompt, _LONGEST_PROMPT) for body in (old, new)]
        self.prompts[said[0]] = said[1]
        if message.subject == canonical.one_line(f"turn {message.get('Turn')}: {said[0]}", messages.SUBJECT_WIDTH):
            subject = f"turn {message.get('Turn')}: {said[1]}"
        if key in self.keys:
            return subject, self.keys[key]
        if old and not agent.lines.is_name(old[0].uuid) and old[0].raw != new[0].raw:
            places = (
                at for one in message.extents for at in range(one.offset, min(one.end, one.offset + _MOST_PLACES))
            )
            at = next((at for at in places if ids.line_id(old[0].raw, at) == key), None)
            if at is not None:
                self.keys[key] = key = ids.line_id(new[0].raw, at)
        return subject, key

    def _trailer(self, name: str, value: str) -> str:
        if name == "Tip":
            return self.now(value)
        return value if name in ("Session", "Lines-SHA256", "Original-HMAC", "Extent", "Turn") else self._words(value)

    def _words(self, text: str) -> str:
        clean, count = value_match.clean_text(text.encode("utf-8", "surrogatepass"), self.matcher)
        return clean.decode("utf-8", "replace") if count else text


def _proof_trailers(trailers: list[tuple[str, str]], message: Message, lines: Changed) -> list[tuple[str, str]]:
    """The trailers with the hash of the lines as they are stored now, and how many secrets stand replaced in them."""
    many = sum(extent.lines for extent in message.extents)
    if not many or not message.get("Lines-SHA256"):
        return trailers
    own = join_lines(lines.new[-many:])
    secrets = (message.number("Redacted") or 0) + sum(lines.counts[-many:])
    out = list[tuple[str, str]]()
    for name, value in trailers:
        if name == "Lines-SHA256":
            out.append((name, hashlib.sha256(own).hexdigest()))
            out += [("Redacted", str(secrets))] if secrets else []
        elif name != "Redacted":
            out.append((name, value))
    return out
