"""The store as it was after an operation.

The later operations are reverted from the present refs on: each one's journal entry has the former values. Recording
turns is no operation, so each branch then goes back to its last commit that existed at that time: a commit that an
operation made is as old as the operation, any other as old as its lines say. What a rewind moved since is put back: of
the session's commits that existed, those without descendants among them are the tips of its branches, and its head is
the one that was written last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sessgit.errors import ConflictError, DamageError, NewerStoreError, SessgitError
from sessgit.history.reassemble import own_commits
from sessgit.model import canonical, ids
from sessgit.model.frozen import frozen
from sessgit.store import layout, operations, refs
from sessgit.store.context import Context
from sessgit.store.index import Tips
from sessgit.store.operations import ListedOperation, Move, Operation
from sessgit.store.store import Store

_BRANCH_SPACES = ((layout.ARCHIVE, True), (layout.HEADS, False))
"""A live branch takes precedence over an archived one of the same name."""
_MERGE_EVENTS = ("graft", "turn")
_TIME_FIELDS = {
    "start": "created",
    "fork": "created",
    "end": "ended",
    **dict.fromkeys(("turn", "cell", "graft"), "updated"),
}
"""By the event of a commit, the field of its state with the commit's time; for other events it is the commit's own."""


@frozen
class PastStore:
    """The branches and tags after an operation, and the number of later operations. `lost` are the sessions that
    existed then and cannot be restored."""

    listed: ListedOperation
    later: int
    tips: Tips
    tags: Mapping[str, str]
    lost: tuple[str, ...]

    @property
    def operation(self) -> Operation:
        return self.listed.operation


def as_of_operation(context: Context, operation_id: str) -> PastStore:
    """Return the store as of the operation whose id begins so, even if it was undone since. The index must be up to
    date.

    Raises NotFoundError if none or several operations match, ConflictError if the operation was never completed.
    """
    store = context.store
    held = refs.read_all(store.path)
    every = operations.list_operations(store)
    found = operations.find_operation(every, operation_id)
    if found.standing == "not done":
        raise ConflictError(f"“{found.operation.summary}” was never completed", "`sessgit ops` lists all operations.")
    moment = canonical.seconds(found.operation.time)
    if moment is None:
        raise DamageError(
            f"operation {found.operation.id} does not say when it was done", "`sessgit ops` lists others."
        )
    place = every.index(found)
    since, until = (
        [one.operation for one in part if one.standing != "not done"] for part in (every[:place], every[place:])
    )
    values = _refs_before(store, held, since, {move.new for one in every for move in one.operation.moves})
    then = _PastBranches(store, moment, values, held, since, until)
    tips, lost = dict[str, tuple[str, bool]](), list[str]()
    for session in then.found:
        try:
            tips |= then.branches(session)
        except (DamageError, NewerStoreError):  # it is as little to be read as now
            tips |= then.found[session]
        except SessgitError:
            lost.append(session)
    tags = context.index.tags()  # which has the commits of annotated ones
    for ref, tip in values.items():
        if ref.startswith(layout.TAGS) and tip != held.get(ref):
            tags.pop(ref.removeprefix(layout.TAGS), None)
            if tip is not None and canonical.is_printable(ref):
                tags[ref.removeprefix(layout.TAGS)] = tip
    return PastStore(found, len(since), tips, tags, tuple(sorted(lost)))


def _refs_before(
    store: Store, held: Mapping[str, str], since: Sequence[Operation], left: Collection[str | None]
) -> dict[str, str | None]:
    """Return the value of each ref before the first of the operations that moved it; `since` are the newest first,
    `left` the values that operations set."""
    values: dict[str, str | None] = dict(held)
    own: dict[str, set[str]] = {}
    for ref in values:
        own.setdefault(_session_of_ref(ref), set()).add(ref)
    for operation in since:
        for session in _tombstone_sessions(operation):  # the operation moved all branches that the session had
            for ref in own.pop(session, ()):
                values[ref] = None
        for move in operation.moves:
            own.setdefault(_session_of_ref(move.ref), set()).add(move.ref)
            values[move.ref] = move.old
            if operation.command == "merge" and move.old is not None and move.new is not None:
                values[move.ref] = _before_merged_turns(store, move.old, move.new, left)
    return values


def _before_merged_turns(store: Store, tip: str, merge: str, left: Collection[str | None]) -> str:
    """Return the commit before the turns of a merge: they may be recorded before the operation moves the ref."""
    try:
        theirs = store.message(merge).get("Origin").partition("@")[0]
        for commit, message in store.history(tip):
            is_theirs = message.get("Origin").partition("@")[0] == theirs
            is_merged = is_theirs and message.get("Event") in _MERGE_EVENTS
            if not is_merged or not theirs or commit in left:
                return commit
    except SessgitError:  # then what is missing shows where the branch is read
        pass
    return tip


def _branch_moves(operation: Operation) -> Iterator[Move]:
    return (move for move in operation.moves if move.ref.startswith(layout.BRANCH_SPACES))


class _PastBranches:
    """The branches of sessions as they were at `moment`.

    `values` is what each ref held since, before operations moved it on, `held` what it holds now. `there` are the
    commits that existed after the operation according to the journal, `made` those that later operations made; by ref,
    `exact` has the value that the operation set, and `left` the value that it or the last one before it set, with the
    time; `deleted` are the sessions that were deleted or restored since.
    """

    def __init__(
        self, store: Store, moment: float, values: Mapping[str, str | None], held: Mapping[str, str],
        since: Sequence[Operation], until: Sequence[Operation],
    ) -> None:  # fmt: skip
        self.store, self.moment = store, moment
        self.found, self.now = _branches_by_session(values), _branches_by_session(held)
        self.there, self.made = set[str](), set[str]()
        self.left = dict[str, tuple[str | None, float]]()
        for operation in reversed(until):
            time = _seconds(operation.time)
            self.left |= {move.ref: (move.new, time) for move in operation.moves}
            self.there |= {tip for move in _branch_moves(operation) for tip in (move.old, move.new) if tip is not None}
        met = set(self.there)
        for operation in reversed(since):
            moves = list(_branch_moves(operation))
            met |= {move.old for move in moves if move.old is not None}
            self.made |= {move.new for move in moves if move.new is not None} - met
            met |= self.made
        self.exact = {move.ref: move.new for move in _branch_moves(until[0])}
        self.deleted = {session for operation in since for session in _tombstone_sessions(operation)}

    def branches(self, session: str) -> dict[str, tuple[str, bool]]:
        """Return the branches of a session; raises StoreError if a commit of them is gone."""
        found = self.found[session]
        if session not in found:
            return {}
        archived = found[session][1]
        return {name: (tip, archived) for name, tip in self._ends(session).items()}

    def _left(self, session: str) -> list[tuple[str | None, float]]:
        """Return the values that operations until then set the refs of the session's head to, and when."""
        refs = (layout.archive_ref(session), layout.head_ref(session))
        return [self.left[ref] for ref in refs if ref in self.left]

    def _gone_at(self, session: str) -> float | None:
        """Return when the last of these operations deleted the session, if none allowed recording it again."""
        left = self._left(session)
        if layout.tombstone_ref(session) in self.left:
            return None
        return max(time for _, time in left) if left and not any(tip for tip, _ in left) else None

    def _ends(self, session: str) -> dict[str, str]:
        """Return the tips of the session's branches that existed, by name."""
        # The operation itself may have set the head.
        head = self.exact.get(layout.head_ref(session)) or self.exact.get(layout.archive_ref(session))
        found = {name: tip for name, (tip, _) in self.found[session].items()}
        cut = {name: self._cut(session, tip) for name, tip in found.items()}
        tips = {tip for name, tip in cut.items() if tip is not None and not layout.is_other_version(name)}
        # A branch that went on since has taken its place on the head; but after a deletion all is recorded anew.
        for name, (tip, _) in () if session in self.deleted else self.now.get(session, {}).items():
            if tip not in found.values() and not layout.is_other_version(name):
                end = self._cut(session, tip, whole=True)
                tips |= {end} if end is not None else set()
        tips |= self._set_apart(session, cut, tips)
        ends = sorted(tip for tip in tips if not any(self._history_has(other, tip) for other in tips - {tip}))
        if head is None and ends:
            head = found[session] if cut[session] == found[session] else max(ends, key=self._written)
            gone = self._gone_at(session)
            if gone is not None and self._written(head) <= gone:
                return {}
        if head is None:
            return {}
        out, taken = {session: head}, self._turns(head)
        others = sorted((name, end) for name, end in cut.items() if layout.is_other_version(name) and end is not None)
        out |= {name: end for name, end in others if self._turns(end).keys() - taken.keys()}
        moment = self._written(head)
        for end in ends:
            # A head is written last. What is later was said before the operation, and recorded after it.
            own = (commit for commit, _ in own_commits(self.store, session, end))
            left = next((commit for commit in own if self._written(commit) <= moment), None)
            if left is None or any(self._history_has(other, left) for other in out.values()):
                continue
            if self._turns(left).keys() - taken.keys():
                # Its present name, else that of its first turn that was not kept when the session left it.
                own_names = [name for name, tip in cut.items() if tip == left and layout.is_rewound_branch(name)]
                kept = self._followed_by(left, {head, *ends})
                behind = [key for key in reversed(self._turns(left)) if key not in kept]
                names = [*own_names, *(ids.rewound_name(session, key) for key in behind)]
                name = next((name for name in names if name not in out), f"{session}.r-{left[:8]}")
                out[name] = left
        return out

    def _set_apart(self, session: str, cut: Mapping[str, str | None], tips: Collection[str]) -> set[str]:
        """Return the tip of the former head, if it came from another machine and this one's file continued without."""
        left = [tip for tip, _ in self._left(session) if tip is not None]
        if not left or any(self._history_has(tip, left[0]) for tip in tips):
            return set()
        return {
            end
            for name, end in cut.items()
            if end and layout.is_other_version(name) and self._history_has(end, left[0])
        }

    def _cut(self, session: str, tip: str, *, whole: bool = False) -> str | None:
        """The last commit of the session's own on the line to `tip` that was there, None if none was.

        With `whole` there is none either where an operation since made a part of the line.
        """
        for commit, message in own_commits(self.store, session, tip):
            if whole and commit in self.made:
                return None
            if self._was_there(commit, message.get("Event")):
                return commit
        return None

    def _was_there(self, commit: str, event: str) -> bool:
        if commit in self.there:
            return True
        time = self.store.commit(commit).time
        if commit in self.made or time > self.moment:
            return False
        field = _TIME_FIELDS.get(event)
        written = canonical.seconds(getattr(self.store.state(commit), field)) if field else None
        return (time if written is None else written) <= self.moment

    def _written(self, commit: str) -> float:
        return _seconds(self.store.state(commit).updated)

    def _turns(self, tip: str) -> dict[str, None]:
        """Return the keys of the turns on the line to a commit, the newest first."""
        return dict.fromkeys(key for _, message in self.store.history(tip) if (key := message.get("Prompt")))

    def _history_has(self, tip: str, commit: str) -> bool:
        """Return whether the line to `tip`, without what was merged into it, has the commit."""
        if not self.store.repo.is_ancestor(commit, tip):
            return False
        return any(one.id == commit for one in self.store.repo.first_parents(tip))

    def _followed_by(self, end: str, tips: Iterable[str]) -> dict[str, None]:
        """Return the turns that the session kept when it left `end`: those of the commit written next, on another
        line."""
        left = self._written(end)
        commits = (commit.id for tip in tips if tip != end for commit in self.store.repo.first_parents(tip))
        later = [(time, commit) for commit in commits if (time := self._written(commit)) > left]
        return self._turns(min(later)[1]) if later else {}


def _branches_by_session(values: Mapping[str, str | None]) -> dict[str, dict[str, tuple[str, bool]]]:
    """Return the branches of each session by name, their tips and whether they are archived."""
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for space, archived in _BRANCH_SPACES:
        for ref, tip in values.items():
            name = ref.removeprefix(space)
            if tip is not None and ref.startswith(space) and canonical.is_printable(name):
                found.setdefault(layout.session_of(name), {})[name] = tip, archived
    return found


def _tombstone_sessions(operation: Operation) -> set[str]:
    """Return the sessions that the operation deleted or restored."""
    return {move.ref.removeprefix(layout.DELETED) for move in operation.moves if move.ref.startswith(layout.DELETED)}


def _session_of_ref(ref: str) -> str:
    """Return the session of a branch's ref, ``""`` for any other ref."""
    return layout.session_of_ref(ref) if ref.startswith(layout.BRANCH_SPACES) else ""


def _seconds(time: str) -> float:
    return canonical.seconds(time) or 0.0
