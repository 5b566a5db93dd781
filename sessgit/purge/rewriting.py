"""The history of a store, rewritten without the values that are purged.

A rewritten commit follows from the old one, the values, and its rewritten parents: two stores with the same history
have the same one afterwards. Trees are walked once; each part is rewritten by what it holds: plain files line by line,
turns, states and scratchpads as recording would have written them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from typing import Any

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.cutter import folder_files
from sessgit.errors import ConflictError, NotFoundError, SessgitError
from sessgit.history import reassemble
from sessgit.history.pad_lists import SUFFIX
from sessgit.model import canonical, ids, json_strings
from sessgit.model import pad as pads
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session, prompt_title
from sessgit.model.frozen import frozen
from sessgit.model.line_list import file_lines
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import layout
from sessgit.store.objects import Commit, Entry
from sessgit.store.store import Store, lines_hash

_OID = re.compile(r"[0-9a-f]{40}")
_FILE_HASH_LINE = re.compile(rf"^{messages.FILE_HASH}: .*\n", re.MULTILINE)
_SIDE_REF = re.compile(r"((?:refs/(?:heads|archive)/)?[^/.]+\.[rm]-)([0-9a-f]{8})")
_LONGEST_PROMPT = 200
_MOST_PLACES = 200_000
_MOST_CACHED = 32
_CUT_RULES = range(json_strings.RULES_VERSION, 0, -1)
_LINE_FILES = (layout.BEFORE, layout.BODY)
_TURN_FILES = (*_LINE_FILES, layout.CELLS, layout.TEXTS)
"""What of a turn's folder follows from its lines."""
_KEPT_TRAILERS = ("Session", "Lines-SHA256", "Original-HMAC", "Extent", "Turn")


@frozen
class RewrittenLines:
    """Lines as they were and as they are now, with how many values were replaced in each; the first `before` of them
    come before the prompt."""

    before: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    counts: tuple[int, ...]


@frozen
class _Counts:
    """How many values were replaced in the turn of a commit, `key`, and in all turns up to it."""

    key: str = ""
    turn: int = 0
    total: int = 0


# Names


def side_branch_name(ref: str, keys: Mapping[str, str]) -> str:
    """Return the name of a side branch, which follows from the key of a turn, with the keys of now."""
    match = _SIDE_REF.fullmatch(ref)
    short = {ids.short_id(old): ids.short_id(new) for old, new in keys.items()} if match else {}
    return match[1] + short.get(match[2], match[2]) if match else ref


# History


@dataclass
class Rewriter:
    """Rewrites commits of a store; `hits` are all objects that hold a value."""

    store: Store
    matcher: ValueMatcher
    values: Sequence[str]
    hits: Collection[str]
    commits: dict[str, str] = field(default_factory=dict)
    """The new commit of each one that was rewritten."""
    keys: dict[str, str] = field(default_factory=dict)
    """The new key of each turn whose key followed from its text."""

    def __post_init__(self) -> None:
        self._counts: dict[str, _Counts] = {}
        """The counts of each commit that was looked at."""
        self._prompts: dict[str, str] = {}
        self._held: dict[str, bool] = {}
        self._trees: dict[tuple[str, str], str] = {}
        self._lines: dict[str, RewrittenLines] = {}
        self._prefixes: dict[tuple[str, str], str] = {}
        self._fork_commits: dict[str, str] = {}

    def rewrite(self, tips: Iterable[str], progress: Callable[[int], None]) -> None:
        """Rewrite the histories of the tips as far as needed, parents and fork points first."""
        for tip in tips:
            waiting = [tip]
            while waiting:
                if waiting[-1] in self._counts:
                    waiting.pop()
                    continue
                commit = self.store.repo.commit(waiting[-1])
                if needed := [oid for oid in self._needed(commit) if oid not in self._counts]:
                    waiting += needed
                else:
                    self._rewrite_commit(commit)
                    progress(len(self._counts))

    def holds(self, tree: str) -> bool:
        """Return whether a tree, or anything below it, holds a value."""
        if tree not in self._held:
            entries = self.store.repo.tree(tree).values()
            self._held[tree] = tree in self.hits or any(map(self._entry_holds, entries))
        return self._held[tree]

    def _entry_holds(self, entry: Entry) -> bool:
        return self.holds(entry[0]) if entry[1] else entry[0] in self.hits

    def now(self, oid: str) -> str:
        """Return the commit that replaced a commit, or that commit itself."""
        return self.commits.get(oid, oid)

    def _needed(self, commit: Commit) -> Iterator[str]:
        """Yield the commits to rewrite before this one: its parents, and what its state and message name."""
        yield from commit.parents
        origin, named = self._origin(commit), messages.parse_message(commit.message).all("Tip")
        named += [origin["commit"]] if isinstance(origin.get("commit"), str) else []
        if origin.get("prefix"):  # after a rewind to before it, no parent leads to the fork's first commit
            with suppress(SessgitError):
                named += {self._fork_commit(commit, self.store.state(commit.id))} - {commit.id}
        for oid in named:
            with suppress(SessgitError):
                if _OID.fullmatch(oid) and self.store.repo.has(oid) and self.store.repo.commit(oid).tree:
                    yield oid

    def _rewrite_commit(self, commit: Commit) -> None:
        old = messages.parse_message(commit.message)
        new, counts = self._rewrite_message(commit, old)
        self._counts[commit.id] = counts
        is_standard = messages.format_message(old) == commit.message
        text = messages.format_message(new) if is_standard else self._clean_text(commit.message)
        named = [*commit.parents, *old.all("Tip"), self._origin(commit).get("commit")]
        is_moved = any(isinstance(one, str) and self.now(one) != one for one in named)
        if not is_moved and not counts.total and text == commit.message and not self.holds(commit.tree):
            return
        # The hash covers lines of the file that may have held a value, and are not all at hand.
        text = _FILE_HASH_LINE.sub("", text)

        def write(tree: str) -> str:
            return self.store.repo.write_commit(tree, list(map(self.now, commit.parents)), text, commit.time)

        made = write(self._rewrite_top(commit, counts.total, write))
        if made != commit.id:
            self.commits[commit.id] = made

    def _agent(self, commit: Commit) -> Agent:
        return agents.named(self.store.agent(messages.parse_message(commit.message).get("Session"), commit.id))

    # Trees and files

    def _rewrite_tree(self, tree: str, kind: str, rewrite: Callable[[str, Entry], Entry]) -> str:
        """Return a tree in which each entry that holds a value, and its name, are rewritten, once for each `kind`."""
        if (kind, tree) not in self._trees:
            changes: dict[str, Entry | None] = {}
            for name, entry in self.store.repo.tree(tree).items():
                new = rewrite(name, entry) if self._entry_holds(entry) else entry
                called = value_match.clean_name(name, self.matcher)
                if (called, new) != (name, entry):
                    changes |= {name: None, called: new}
            self._trees[kind, tree] = self.store.repo.edit_tree(tree, changes) if changes else tree
        return self._trees[kind, tree]

    def _rewrite_plain(self, _: str, entry: Entry) -> Entry:
        oid, is_tree = entry
        if is_tree:
            return self._rewrite_tree(oid, "plain", self._rewrite_plain), True
        clean, count = value_match.clean_lines(self.store.repo.blob(oid), self.matcher)
        self._check_gone(clean)
        return (self.store.repo.write_blob(clean), False) if count else entry

    def _rewrite_top(self, commit: Commit, added: int, write: Callable[[str], str]) -> str:
        """Return the tree of a commit; `write` makes a commit of one, from which a fork's beginning can be read."""
        agent = cache(lambda: self._agent(commit))

        def rewrite_hundred(_: str, entry: Entry) -> Entry:
            return self._rewrite_tree(entry[0], "hundred", rewrite_turn), True

        def rewrite_turn(_: str, entry: Entry) -> Entry:
            return self._rewrite_turn(agent(), entry[0]), True

        def rewrite_part(name: str, entry: Entry) -> Entry:
            if name in (layout.STATE, layout.FORMAT_FILE):
                return entry
            if name == layout.TURNS and entry[1]:
                return self._rewrite_tree(entry[0], "turns", rewrite_hundred), True
            if name == layout.PAD and entry[1]:
                return self._rewrite_pad(entry[0]), True
            return self._rewrite_plain(name, entry)

        tree = self._rewrite_tree(commit.tree, "top", rewrite_part)
        if data := self._state_data(commit):
            tree = self._with_state(tree, data, added, "")
            if prefix := self._prefix_hash(commit, lambda: write(tree)):
                tree = self._with_state(tree, data, added, prefix)
        return tree

    def _check_gone(self, clean: bytes) -> None:
        """Raise ConflictError if a value is still there: it begins in one string or line and ends in another."""
        if self.matcher.holds(clean):
            raise ConflictError(
                "the value spans several strings or lines",
                "Nothing was changed. Purge the part inside one string.",
            )

    # Turns

    def _rewrite_turn(self, agent: Agent, oid: str) -> str:
        if ("turn", oid) not in self._trees:
            tree, lines = self._rewrite_tree(oid, "folder", self._rewrite_side_file), self._turn_lines(agent, oid)
            if lines.old != lines.new:
                old, new = self.store.repo.tree(oid), self.store.repo.tree(self._write_turn(agent, oid, lines))
                changes = {name: new.get(name) for name in _TURN_FILES if name in new or name in old}
                tree = self.store.repo.edit_tree(tree, changes)
            self._trees["turn", oid] = tree
        return self._trees["turn", oid]

    def _rewrite_side_file(self, name: str, entry: Entry) -> Entry:
        return entry if name in _TURN_FILES else self._rewrite_plain(name, entry)

    def _write_turn(self, agent: Agent, oid: str, lines: RewrittenLines) -> str:
        """Write the files that follow from the lines of a turn, by the rules that made the old ones, or else by the
        newest ones."""
        entries = self.store.repo.tree(oid)
        old = {name: self._blob(entries, name) for name in (*_LINE_FILES, layout.CELLS) if name in entries}
        old |= {f"{layout.TEXTS}/{name}": data for name, data in self._texts(entries).items()}
        own = (rules for rules in _CUT_RULES if _turn_files(agent, lines.before, lines.old, rules) == old)
        files = _turn_files(agent, lines.before, lines.new, next(own, json_strings.RULES_VERSION))
        return self.store.write_folder(files)

    def _turn_lines(self, agent: Agent, oid: str) -> RewrittenLines:
        """Return the lines of a turn's folder."""
        if oid not in self._lines:
            if len(self._lines) > _MOST_CACHED:
                self._lines.clear()
            entries = self.store.repo.tree(oid)
            texts = self._texts(entries)
            before, body = (
                json_strings.fill_long_strings(file_lines(self._blob(entries, name).split(b"\n")), texts)
                for name in _LINE_FILES
            )
            self._lines[oid] = self._clean_lines(agent, before, body)
        return self._lines[oid]

    def _clean_lines(self, agent: Agent, before: Sequence[bytes], body: Sequence[bytes]) -> RewrittenLines:
        """Return the lines without the values; raises ConflictError if an id is one of them."""
        identity = partial(agent.lines.identity, protected=agent.protected_keys)
        old = (*before, *body)
        clean = [value_match.clean_lines(line, self.matcher) for line in old]
        if any(count and identity(line) != identity(new) for line, (new, count) in zip(old, clean, strict=True)):
            raise ConflictError(
                "the value is part of ids or types that link the lines of a conversation",
                "Nothing was changed. To delete a whole conversation, use `sessgit delete`.",
            )
        self._check_gone(b"\n".join(line for line, _ in clean))
        return RewrittenLines(len(before), old, tuple(line for line, _ in clean), tuple(count for _, count in clean))

    def _blob(self, entries: Mapping[str, Entry], name: str) -> bytes:
        return self.store.repo.blob(entries[name][0]) if name in entries and not entries[name][1] else b""

    def _texts(self, entries: Mapping[str, Entry]) -> dict[str, bytes]:
        oid, is_tree = entries.get(layout.TEXTS, ("", False))
        texts = self.store.repo.tree(oid) if is_tree else {}
        return {name: self.store.repo.blob(oid) for name, (oid, is_tree) in texts.items() if not is_tree}

    # Scratchpads

    def _rewrite_pad(self, tree: str) -> str:
        """Return a scratchpad: an entry with another text has another id, and entries that name it follow."""
        kinds = {f"{name}{SUFFIX}": kind for kind, name in pads.LISTS.items()}
        lists: dict[str, tuple[str, list[bytes]]] = {}
        new_ids: dict[str, str] = {}

        def rewrite(name: str, entry: Entry) -> Entry:
            return entry if name in kinds and not entry[1] else self._rewrite_plain(name, entry)

        made, entries = self._rewrite_tree(tree, "pad", rewrite), self.store.repo.tree(tree)
        for name, kind in kinds.items():
            if not entries.get(name, ("", True))[1]:
                lines = self._blob(entries, name).split(b"\n")
                lists[name] = kind, [self._rewrite_entry(kind, line, new_ids) for line in lines]
        changes: dict[str, Entry | None] = {}
        for name, (kind, lines) in lists.items():
            data = b"\n".join(_with_new_references(kind, line, new_ids) for line in lines)
            changes[name] = self.store.repo.write_blob(data), False
        return self.store.repo.edit_tree(made, changes) if changes else made

    def _rewrite_entry(self, kind: str, line: bytes, new_ids: dict[str, str]) -> bytes:
        clean, count = value_match.clean_lines(line, self.matcher)
        old, new = (pads.parse_entry(kind, line), pads.parse_entry(kind, clean)) if count else (None, None)
        if old is None or new is None or pads.entry_with_line(replace(old, id="")).id != old.id:
            return clean
        made = pads.entry_with_line(replace(new, id=""))
        new_ids[old.id] = made.id
        return made.line

    # States

    def _state_data(self, commit: Commit) -> bytes:
        return self._blob(self.store.repo.tree(commit.tree), layout.STATE)

    def _origin(self, commit: Commit) -> dict[str, Any]:
        """Return the origin in the state of a commit, or an empty object."""
        data = self._state_data(commit)
        with suppress(ValueError, RecursionError):
            document = json.loads(data) if b'"origin": null' not in data else {}
            origin = document.get("origin") if isinstance(document, dict) else None
            return origin if isinstance(origin, dict) else {}
        return {}

    def _with_state(self, tree: str, data: bytes, added: int, prefix: str) -> str:
        state = self.store.repo.write_blob(self._rewrite_state(data, added, prefix))
        return self.store.repo.edit_tree(tree, {layout.STATE: (state, False)})

    def _rewrite_state(self, data: bytes, added: int, prefix: str) -> bytes:
        """Return a `session.json` without the values, with the commits of now, `added` more redacted secrets, and
        another hash of the fork's beginning, if `prefix` is given."""
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return value_match.clean_text(data, self.matcher)[0]
        if not isinstance(document, dict):
            return value_match.clean_lines(data, self.matcher)[0]
        meta, origin, rules = (document.get(key) for key in ("metadata", "origin", "rules"))
        if isinstance(meta, dict) and isinstance(first := meta.get("first_prompt"), str):
            meta["first_prompt"] = self._prompts.get(first, first)
        if isinstance(origin, dict) and isinstance(origin.get("commit"), str):
            origin["commit"] = self.now(origin["commit"])
            origin |= {"prefix_sha256": prefix} if prefix else {}
        if added and isinstance(rules, dict):
            known = rules.get("redacted")
            rules["redacted"] = (known if type(known) is int else 0) + added
        return canonical.dumps(self._clean_value(document))

    def _clean_value(self, value: Any) -> Any:
        if isinstance(value, str):
            text = self._clean_text(value)
            return value_match.cut_short(text, self.values) if "…" in text else text
        if isinstance(value, list):
            return [self._clean_value(one) for one in value]
        if isinstance(value, dict):
            return {self._clean_value(key): self._clean_value(one) for key, one in value.items()}
        return 0 if type(value) in (int, float) and self.matcher.holds(str(value).encode()) else value

    def _prefix_hash(self, commit: Commit, write: Callable[[], str]) -> str:
        """Return the new hash of the beginning that a fork of ours wrote, ``""`` if there is none."""
        origin = self._origin(commit)
        old = origin.get("prefix_sha256")
        if not origin.get("prefix") or not isinstance(old, str) or not old:
            return ""
        state = self.store.state(commit.id)
        if state.origin is None:
            return ""
        key = (state.id, old)
        if key not in self._prefixes:
            first = self._fork_commit(commit, state)
            self._prefixes[key] = old
            # Without the fork point, or if other bytes were written, the beginning cannot be made again either way.
            with suppress(SessgitError):
                if _sha256(reassemble.fork_prefix(self.store, state, state.origin, first)) != old:
                    return old
                point = replace(state.origin, commit=self.now(state.origin.commit))
                at = write() if first == commit.id else self.now(first)
                made = reassemble.fork_prefix(self.store, replace(state, origin=point), point, at)
                self._prefixes[key] = _sha256(made)
        return self._prefixes[key]

    def _fork_commit(self, commit: Commit, state: Session) -> str:
        """Return the commit with which a fork of ours began."""
        if state.id not in self._fork_commits:
            tips = {state.id: commit.id}
            with suppress(NotFoundError):  # it was deleted
                tips = reassemble.session_branches(self.store, state.id) | tips
            self._fork_commits[state.id] = reassemble.fork_commit(self.store, state.id, tips)
        return self._fork_commits[state.id]

    # Messages

    def _rewrite_message(self, commit: Commit, message: Message) -> tuple[Message, _Counts]:
        above = self._counts.get(commit.parents[0], _Counts()) if commit.parents else _Counts()
        number, key = message.number("Turn"), message.get("Prompt")
        lines = self._commit_lines(commit, message, number if key else None)
        counts = above
        if number and key:
            # A tail is in the next turn's folder again, and what a fork shares is counted where it was recorded.
            is_own = lines is not None and message.get("Event") != "fork"
            own = sum(extent.lines for extent in message.extents)
            count = (
                sum(lines.counts[-own:]) if lines is not None and is_own else 0
            )  # all lines if no extent says how many
            start = above.total - above.turn if above.key == key else above.total
            counts = _Counts(key, count, start + count)
        subject = value_match.cut_short(self._clean_text(message.subject), self.values)
        trailers = [
            (name, self.now(value) if name == "Tip" else value if name in _KEPT_TRAILERS else self._clean_text(value))
            for name, value in message.trailers
        ]
        if lines is not None and lines.old != lines.new:
            trailers = _with_proof(trailers, message, lines)
            if number and key:
                subject, key = self._rewrite_prompt(commit, message, lines, subject, key)
                trailers = [(name, key if name == "Prompt" else value) for name, value in trailers]
        return Message(subject, tuple(trailers)), counts

    def _commit_lines(self, commit: Commit, message: Message, number: int | None) -> RewrittenLines | None:
        """Return the lines that the extents of a commit describe, None if no value is in them."""
        event = message.get("Event")
        if number:
            entry = self.store.repo.entry(commit.tree, layout.turn_folder(number))
            return self._turn_lines(self._agent(commit), entry[0]) if entry and self.holds(entry[0]) else None
        if event in ("compact", "end"):
            entry = self.store.repo.entry(commit.tree, layout.TAIL)
            if entry is None or entry[0] not in self.hits:
                return None
            lines = file_lines(self.store.repo.blob(entry[0]).split(b"\n"))
            return self._clean_lines(self._agent(commit), lines, [])
        if event != "fork" or not message.extents:
            return None
        state = self.store.state(commit.id)
        turns = range(1, state.origin.turn + 1) if state.origin else ()
        try:
            old = [*chain.from_iterable(reassemble.lines_of_turns(self.store, commit.id, state, turns))]
        except SessgitError:
            old = []
        return self._clean_lines(self._agent(commit), [], old)

    def _rewrite_prompt(
        self, commit: Commit, message: Message, lines: RewrittenLines, subject: str, key: str
    ) -> tuple[str, str]:
        """Return the subject and the key of a turn that follow from its new text."""
        agent, turn = self._agent(commit), f"turn {message.get('Turn')}: "
        old, new = (agent.parsed(every[lines.before :]) for every in (lines.old, lines.new))
        whole = [agent.cells.describe(body).prompt for body in (old, new)]
        prompts = [canonical.one_line(prompt, _LONGEST_PROMPT) for prompt in whole]
        self._prompts[prompt_title(whole[0])] = prompt_title(whole[1])
        if message.subject == canonical.one_line(turn + prompts[0], messages.SUBJECT_WIDTH):
            subject = turn + prompts[1]
        if key not in self.keys and old and not ids.is_turn_key(old[0].uuid) and old[0].raw != new[0].raw:
            ranges = (range(one.offset, min(one.end, one.offset + _MOST_PLACES)) for one in message.extents)
            place = next((at for places in ranges for at in places if ids.line_id(old[0].raw, at) == key), None)
            if place is not None:
                self.keys[key] = ids.line_id(new[0].raw, place)
        return subject, self.keys.get(key, key)

    def _clean_text(self, text: str) -> str:
        clean, count = value_match.clean_text(text.encode("utf-8", "surrogatepass"), self.matcher)
        return clean.decode("utf-8", "surrogatepass") if count else text


def _turn_files(agent: Agent, before: int, lines: Sequence[bytes], rules: int) -> dict[str, bytes]:
    parsed = agent.parsed(lines)
    body = parsed[before:]
    files = folder_files(agent, parsed[:before], body, agent.cells.describe(body), rules)
    return {name: bytes(data) for name, data in files.items()}


def _with_new_references(kind: str, line: bytes, new_ids: Mapping[str, str]) -> bytes:
    entry = pads.parse_entry(kind, line) if new_ids and kind == "tension" else None
    if entry is None or not new_ids.keys() & set(entry.between):
        return line
    return pads.entry_with_line(replace(entry, between=tuple(new_ids.get(one, one) for one in entry.between))).line


def _with_proof(trailers: Sequence[tuple[str, str]], message: Message, lines: RewrittenLines) -> list[tuple[str, str]]:
    """Return the trailers with the hash of the new lines and the number of secrets replaced in them."""
    count = sum(extent.lines for extent in message.extents)
    if not count or not message.get("Lines-SHA256"):
        return list(trailers)
    secrets = (message.number("Redacted") or 0) + sum(lines.counts[-count:])
    proof = [("Lines-SHA256", lines_hash(lines.new[-count:]))]
    proof += [("Redacted", str(secrets))] if secrets else []
    others = [(name, value) for name, value in trailers if name != "Redacted"]
    return [new for name, value in others for new in (proof if name == "Lines-SHA256" else [(name, value)])]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
