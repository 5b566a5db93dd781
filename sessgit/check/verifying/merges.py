"""Commits with two parents, made once more of what the two say: a join is a function of them, a merge but for what a
person decided."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sessgit.branch.merging import pads
from sessgit.branch.merging.sides import MergeSides, base_state
from sessgit.check.verifying import ref_checks
from sessgit.check.verifying.forms import Seen
from sessgit.errors import SessgitError, StoreError
from sessgit.history import merge_base
from sessgit.model import canonical, ids, merge_decisions, unified_state
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.finding import Finding
from sessgit.model.merge_decisions import Base, Choice
from sessgit.record import tip_join
from sessgit.store import journal, layout, refs
from sessgit.store.backend import Commit, Entry, Repository
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store

_BROUGHT = ("turn", "cell", "graft", "compact")
_WHOLE = ("end", "edit", "merge")
"""The events of commits that are no turn's own: theirs' tip was merged, and not one of its turns."""
_SIDES = Choice("ours"), Choice("theirs")
_NAMED = {layout.STATE: "state", layout.PAD: "pad", layout.KEPT: "kept files"}
_MADE_OF = "the merge of its two sides"


def check(store: Store, seen: Seen) -> Iterator[Finding]:
    """What of a commit with two parents does not follow from them; nothing where they cannot be read, which is told of
    them."""
    if len(seen.commit.parents) != 2:
        return
    with suppress(SessgitError):
        yield from _joined(store, seen) if seen.event == "edit" else _merged(store, seen)


# A join


def _joined(store: Store, seen: Seen) -> Iterator[Finding]:
    main, other = seen.commit.parents
    if tip_join.has_own_turns(store, other, main):
        what = "it leaves out turns of the side that it joins"
        yield seen.where.found("damage", "join", what)
        return
    repo = _Unwritten(store.repo)
    made = tip_join.joined_commit(Store(store.path, cast(Repository, repo)), main, other)
    tree, time = repo.commits[made]
    times = [store.commit(tip).time for tip in (main, other)]
    if seen.commit.time != time:
        yield seen.wrong("date", "its date is not the later one of its parents'")
    wrong = _differing(repo.entries(tree), store.repo.tree(seen.commit.tree))
    if wrong and times[0] != times[1]:
        yield seen.wrong("join", f"its {' and '.join(wrong)} is not {_MADE_OF}")
    elif wrong:  # Of two of one time the greater id is the later one, and a purge gives other ids.
        yield seen.where.found("note", "join", f"its {' and '.join(wrong)} is not {_MADE_OF}")


def _differing(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> list[str]:
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return sorted(_NAMED.get(name, name) for name in names)


# A merge


def _merged(store: Store, seen: Seen) -> Iterator[Finding]:
    ours, theirs = seen.commit.parents
    top, state = store.state(ours), seen.state
    before = list(_before(store, seen, ours))
    own = replace(
        state, description=top.description, labels=top.labels, stage=top.stage, confidence=top.confidence,
        unified=top.unified, state=top.state, ended=top.ended,
    )  # fmt: skip
    if own != top:
        yield seen.wrong("merge", "it changes more of its first parent's state than the authored fields")
    ends = [(one.state, max(top.updated, one.ended) if one.ended else "") for _, one in before]
    if (state.state, state.ended) not in ends:
        yield seen.wrong("merge", "it changes whether, or when, the session ended")
    if store.commit(seen.commit.id).time != max(store.commit(tip).time for tip in (ours, theirs)):
        yield seen.wrong("date", "its date is not the later one of its parents'")
    if not _is_of_theirs(store, seen):
        yield seen.wrong("merge", "its Origin names a session that does not contain its second parent")
    others, first = _meant(store, theirs), before[-1][0]
    wrong = _least(_not_made(store, seen, ours, top, other) for other in others)
    is_fork = store.message(first).get("Event") == "fork"
    if wrong and not is_fork:
        yield seen.wrong("merge", f"its {' and '.join(wrong)} is not {_MADE_OF}")
    if not is_fork or not (wrong or _is_new(store, seen.state.id)):
        return
    # Into a new session: decided as of the one that it was made of, of which somebody may have taken edits back since.
    left = list(_left(store, store.state(first).origin, store.commit(first).time))
    wrong = _least(_not_made(store, seen, tip, store.state(tip), other) for tip in left for other in others)
    if wrong:
        what = f"its {' and '.join(wrong)} is not {_MADE_OF}, nor of the session that it began with"
        yield seen.where.found("note", "merge", what)


def _is_new(store: Store, session: str) -> bool:
    """Whether a merge made the session, as far as that is written down."""
    with suppress(StoreError):
        moves = ((one.command, move) for one in journal.read(store.beside) for move in one.moves)
        return any((told, move.ref, move.old) == ("merge", layout.head_ref(session), None) for told, move in moves)
    return False


def _least(found: Iterable[list[str]]) -> list[str]:
    return min(found, key=len, default=[])


def _is_of_theirs(store: Store, seen: Seen) -> bool:
    """Whether the second parent is a commit of the session that was brought back, as far as that is here."""
    named = layout.session_of(seen.message.get("Origin").partition("@")[0])
    theirs = seen.commit.parents[1]
    if store.message(theirs).get("Session") == named:
        return True
    tips = [tip for tip, _ in refs.branches(store.path, named).values()] if ids.is_branch(named) else []
    return not tips or any(commit.id == theirs for tip in tips for commit in store.repo.first_parents(tip))


def _meant(store: Store, theirs: str) -> list[Session]:
    """What people may have said of theirs when it was merged: as of its tip, or of any commit that goes on from there,
    where it was merged up to a turn."""
    state = store.state(theirs)
    if store.message(theirs).get("Event") in _WHOLE:
        return [state]
    found = {_said(state): state}
    held = refs.branches(store.path, state.id)
    tips = [tip for tip, _ in held.values()] + list(ref_checks.tips(store).get(state.id, {}).values())
    for commit in store.repo.since([tip for tip in tips if store.repo.is_ancestor(theirs, tip)], [theirs]):
        if store.message(commit.id).get("Session") == state.id:
            later = store.state(commit.id)
            found.setdefault(_said(later), replace(state, labels=later.labels, unified=later.unified))
    return list(found.values())


def _said(state: Session) -> tuple[object, ...]:
    return state.labels, canonical.compact(unified_state.state_document(state.unified))


def _before(store: Store, seen: Seen, tip: str) -> Iterator[tuple[str, Session]]:
    """The first parent and its state; then each commit before it behind which only turns stand that were brought."""
    for commit in store.repo.first_parents(tip):
        yield commit.id, store.state(commit.id)
        message = store.message(commit.id)
        is_brought = message.get("Origin") or message.get("Event") == "compact"
        if message.get("Session") != seen.state.id or message.get("Event") not in _BROUGHT or not is_brought:
            return


def _left(store: Store, origin: Origin | None, made: int) -> Iterator[str]:
    """What the session that a new one was made of may have stood at then: the last of the fork point and what people
    said behind it before a turn followed; several where they were of the same second, or taken back since; nothing
    where it is gone."""
    session = layout.session_of(origin.session) if origin else ""
    held = refs.branches(store.path, session) if session else {}
    if origin is None or session not in held:
        return
    tips = [tip for tip, _ in held.values()] + list(ref_checks.tips(store).get(session, {}).values())
    standing = {commit.id for commit in store.repo.since([tip for tip, _ in held.values()], [origin.commit])}
    after = dict[str, list[Commit]]()
    for commit in store.repo.since(tips, [origin.commit]):
        after.setdefault(commit.parents[0] if commit.parents else "", []).append(commit)
    last, waiting = {origin.commit}, [origin.commit]
    until = max(made, store.commit(origin.commit).time)
    while waiting:
        above = waiting.pop()
        for commit in after.get(above, ()):
            if commit.time <= until and store.message(commit.id).get("Event") in _WHOLE:
                waiting.append(commit.id)
                last.add(commit.id)
                if commit.time < made and commit.id in standing:
                    last.discard(above)
    yield from last


def _not_made(store: Store, seen: Seen, ours: str, top: Session, other: Session) -> list[str]:
    """What of the merge is not what comes of theirs and of ours as it stood at a commit; nothing where the two have
    turns in common and no history."""
    theirs = seen.commit.parents[1]
    base = merge_base.merge_base(store, ours, theirs)
    if not base and _first_key(store, ours) == _first_key(store, theirs):
        return []
    began = Base(*(base_state(store, tip, base) for tip in (ours, theirs)))
    results = [
        merge_decisions.resolve_state(top, merge_decisions.decide_all(began, top, other, choice)) for choice in _SIDES
    ]
    return [*_decided(seen.state, results), *_carried(store, seen, ours, top, other, base)]


def _first_key(store: Store, tip: str) -> str:
    """The key of the first turn that a commit leads to."""
    return next(
        (key for one in reversed(list(store.repo.first_parents(tip))) if (key := store.message(one.id).get("Prompt"))),
        "",
    )


def _decided(state: Session, results: Sequence[Session]) -> Iterator[str]:
    """What of the state no decision of a person's could have made."""
    if state.labels != results[0].labels:
        yield "labels"
    of_programs = [one.unified for one in results]
    said = {
        path: [unified_state.value_at(one, path) for one in of_programs]
        for path in (*unified_state.SCALARS, *unified_state.COUNTERS)
    }
    if any(unified_state.value_at(state.unified, path) not in values for path, values in said.items()):
        yield "values of programs"
    held, sides = state.unified.working_memory, [one.working_memory for one in of_programs]
    keys = {*held, *(key for one in sides for key in one)}
    if any(not any(_same_at(held, one, key) for one in sides) for key in keys):
        yield "working memory"


def _same_at(one: Mapping[str, Any], other: Mapping[str, Any], key: str) -> bool:
    return (key in one) == (key in other) and unified_state.is_same_json(one.get(key), other.get(key))


def _carried(store: Store, seen: Seen, at: str, top: Session, other: Session, base: str) -> Iterator[str]:
    """Which of the folders that commits carry along the two do not give; ours is read as of a commit."""
    ours, theirs = seen.commit.parents
    found = MergeSides(
        Branch(top.id, at, top), Branch(other.id, theirs, other), theirs, base, 0, (), (), None, False, ()
    )  # fmt: skip
    held, repo = store.repo.tree(seen.commit.tree), _Unwritten(store.repo)
    unwritten = Store(store.path, cast(Repository, repo))
    made = [
        repo.entries(repo.edit_tree(store.commit(ours).tree, pads.merge_pads(store, found, choice).changes(unwritten)))
        for choice in _SIDES
    ]
    yield from (_NAMED[name] for name in layout.CARRIED if held.get(name) not in [one.get(name) for one in made])


# What is made of them


@dataclass
class _Unwritten:
    """A repository in which nothing is written: what would be gets its name, and is forgotten."""

    repo: Repository
    commits: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The tree and the date of each commit that was made."""
    trees: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.repo, name)

    def write_blob(self, data: bytes) -> str:
        return _named("blob", data)

    def edit_tree(self, base: str | None, changes: Mapping[str, Entry | None]) -> str:
        entries = dict(self.entries(base)) if base else {}
        nested: dict[str, dict[str, Entry | None]] = {}
        for path, value in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                nested.setdefault(name, {})[rest] = value
            elif value is None:
                entries.pop(name, None)
            else:
                entries[name] = value
        for name, inner in nested.items():
            below = entries.pop(name, None)
            oid = self.edit_tree(below[0] if below and below[1] else None, inner)
            if self.trees[oid]:
                entries[name] = (oid, True)
        written = sorted((name.encode() + b"/" * is_tree, oid, is_tree) for name, (oid, is_tree) in entries.items())
        data = b"".join(
            b"%s %s\0%s" % (b"40000" if is_tree else b"100644", name.removesuffix(b"/"), bytes.fromhex(oid))
            for name, oid, is_tree in written
        )
        oid = _named("tree", data)
        self.trees[oid] = entries
        return oid

    def write_commit(self, tree: str, parents: list[str], message: str, time: int) -> str:
        name = _named("commit", repr((tree, parents, message, time)).encode())
        self.commits[name] = (tree, time)
        return name

    def entries(self, tree: str) -> Mapping[str, Entry]:
        return self.trees[tree] if tree in self.trees else self.repo.tree(tree)


def _named(kind: str, data: bytes) -> str:
    return hashlib.sha1(b"%s %d\0%s" % (kind.encode(), len(data), data), usedforsecurity=False).hexdigest()
