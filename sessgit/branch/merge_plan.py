"""What a merge will do, decided before anything is written: where the two sides diverged, which turns of theirs ours
lacks, and what becomes of values that both changed. Scratchpads are lists of lines, which unite: each entry says whose
it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Any, Literal

from sessgit import agents
from sessgit.branch.edit import MOST_LABELS
from sessgit.errors import ConflictError, NotFoundError, UsageError
from sessgit.history import diff, pad_lists, session_files, turn_log
from sessgit.history.diff import is_same_turn
from sessgit.history.resolve import ResolvedTarget, row_of
from sessgit.history.turn_log import turn_gists
from sessgit.model import canonical, humanize, ids, merge_decisions
from sessgit.model import pad as pads
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.merge_decisions import Base, Choice, Decision, Mode
from sessgit.model.pad import Entry
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, Row
from sessgit.store.store import Store

_LIST_SUFFIX = ".jsonl"
_LONGEST_VALUE = 60


@frozen
class MergeSides:
    """`base` is the commit where the sides diverged, ``""`` where they have no common ancestor, and `shared` so many
    turns of theirs lie before it.

    `new` are theirs' turns since then that ours lacks, `own` those of ours that theirs lacks; `grown` is a turn that
    both have and of which theirs has more. `merged` says that theirs is part of ours' history already; `copied` are
    the numbers of theirs' turns since they diverged that ours has.
    """

    ours: Branch
    theirs: Branch
    tip: str
    base: str
    shared: int
    new: tuple[Row, ...]
    own: tuple[Row, ...]
    grown: Row | None
    merged: bool
    copied: tuple[int, ...]
    related: bool = True
    """Whether the base is part of the history of both, and not only a turn that they have in common."""

    @property
    def forward(self) -> bool:
        """Return whether ours has no new turns since the sides diverged."""
        return bool(self.base) and not self.own and self.grown is None


def check_sides(ours: ResolvedTarget, theirs: ResolvedTarget) -> None:
    """Raise UsageError or ConflictError if the two cannot be the sides of a merge."""
    name = theirs.branch.short
    if ours.branch.name == theirs.branch.name:
        raise UsageError(
            f"both addresses name {name}",
            "Name two conversations: `sessgit merge THEIRS --into OURS`",
        )
    if theirs.cell:
        raise UsageError(
            "only whole turns can be merged",
            f"Leave out the cell: {name}@{theirs.turn}.",
        )
    check_ours(ours)
    if not theirs.state.turns or theirs.turn == 0:
        raise UsageError(f"{name} has no turns to merge", "`sessgit log` lists turns.")


def check_ours(ours: ResolvedTarget) -> None:
    """Raise UsageError or ConflictError if nothing can be merged into the branch."""
    name = ours.branch.name
    if ours.turn is not None:
        raise UsageError(
            f"a merge appends after the last turn of {name[:8]}, not after turn {ours.turn}",
            f"`sessgit fork {name[:8]} --at {ours.turn}` makes a conversation that ends there.",
        )
    if layout.is_side_branch(name):
        what = (
            "a branch left behind by a rewind"
            if layout.is_rewound_branch(name)
            else "another version of the conversation"
        )
        raise UsageError(
            f"{layout.short_name(name)} is {what}: you cannot merge into it",
            f"`sessgit fork {layout.short_name(name)}` makes it a conversation.",
        )
    if ours.branch.archived:
        raise ConflictError(f"{name[:8]} is archived", f"`sessgit unarchive {name[:8]}` unarchives it.")
    if not ours.state.turns:
        raise UsageError(f"{name[:8]} has no turns to continue from", "Name another conversation with `--into`.")


def _merge_sides(context: Context, ours: Branch, theirs: Branch, turn: int | None = None) -> MergeSides:
    """Return the sides, theirs up to a turn if one is given."""
    store = context.store
    mine, rows = context.index.turns(ours.name), context.index.turns(theirs.name, last=turn)
    tip = theirs.tip if turn is None else rows[-1].commit
    by_prompt = {row.prompt: row for row in mine}
    pairs = {row.turn: one for row in rows if (one := by_prompt.get(row.prompt)) and _is_one(store, one, row)}
    paired = {one.turn for one in pairs.values()}
    our_history, their_history = _ancestors(store, ours.tip), _ancestors(store, tip)
    both = our_history.keys() & their_history.keys()
    newest = both - {parent for commit in both for parent in our_history[commit]}
    base = diff.newest_commit(store, newest)
    known = _count_reached(rows, our_history)
    new = [row for row in rows[known:] if row.trailer("Origin").partition("@")[0] != ours.name]  # not copied from ours
    lacking = [row for row in new if row.turn not in pairs]
    own = [row for row in mine[_count_reached(mine, their_history) :] if row.turn not in paired]
    grown = next(
        (row for row in new if row.turn in pairs and _has_more(store, tip, row, ours.tip, pairs[row.turn])), None
    )
    shared = known
    is_shared = [row is not grown and pairs.get(row.turn) is one for row, one in zip(rows, mine, strict=False)]
    while is_shared[shared : shared + 1] == [True]:
        shared += 1
    began = base or (mine[shared - 1].commit if shared else "")
    return MergeSides(
        ours, theirs, tip, began, shared, tuple(lacking), tuple(own), grown, tip in our_history,
        tuple(row.turn for row in new if base and row.turn in pairs), began in our_history and began in their_history,
    )  # fmt: skip


def _is_one(store: Store, mine: Row, theirs: Row) -> bool:
    """Return whether a turn of ours is this one of theirs with the same prompt uuid."""
    is_copy = mine.trailer("Origin") == turn_address(theirs)  # maybe with other uuids in it
    return is_copy or is_same_turn(store, mine, theirs)


def _ancestors(store: Store, tip: str) -> dict[str, tuple[str, ...]]:
    """Return a commit and all its ancestors, with their parents; the result serves all questions about the history."""
    parents, waiting = dict[str, tuple[str, ...]](), [tip]
    while waiting:
        commit = waiting.pop()
        if commit not in parents:
            parents[commit] = store.repo.commit(commit).parents
            waiting += parents[commit]
    return parents


def _base_states(store: Store, sides: MergeSides) -> Base:
    """Return the states with which the sides began when they diverged."""
    return Base(*(base_state(store, tip, sides.base) for tip in (sides.ours.tip, sides.tip)))


def base_state(store: Store, tip: str, base: str) -> Session:
    """Return the state with which a side began, an empty one if it has no base."""
    commit = _base_commit(store, tip, base)
    return store.state(commit) if commit else Session(store.state(tip).id, "")


def _base_commit(store: Store, tip: str, base: str) -> str:
    """Return the commit with which a side began: the base, or the first commit of a session that was forked from
    another one there."""
    first, session = "", store.state(tip).id
    for commit, message in store.history(tip):
        if commit == base or message.get("Session") != session:
            break
        first = commit
    is_fork = bool(first) and store.message(first).get("Event") == "fork"
    return first if is_fork and (not base or store.repo.is_ancestor(base, first)) else base


def _count_reached(rows: list[Row], history: Collection[str]) -> int:
    """Return how many turns, from the first, are part of a history."""
    return next((number for number, row in enumerate(rows) if row.commit not in history), len(rows))


def _has_more(store: Store, tip: str, row: Row, ours: str, mine: Row) -> bool:
    """Return whether theirs has more lines of a turn that both have: a fork may have been made in the middle of it."""
    if store.folder(tip, row.turn).get(layout.BODY) == store.folder(ours, mine.turn).get(layout.BODY):
        return False
    agent = agents.of_turn(store, mine)
    theirs, own = (
        agent.writer.complete(agent.parsed(store.lines(*at).body)) for at in ((tip, row.turn), (ours, mine.turn))
    )
    return len(theirs) > len(own)


@frozen
class MergedPad:
    """The lists that get lines and the files that are taken over, by path in the tree, and what was decided."""

    lists: dict[str, bytes]
    taken: dict[str, tuple[str, bool]]
    decisions: list[Decision]

    def changes(self, store: Store) -> pad_lists.Changes:
        """Return the changes of the tree."""
        lists = {path: (store.repo.write_blob(data), False) if data else None for path, data in self.lists.items()}
        return {**self.taken, **lists}


def merge_pads(store: Store, sides: MergeSides, choice: Choice) -> MergedPad:
    """Unite the lists of both sides, ours first, without lines that one side removed since they diverged. Of another
    file theirs is taken if only they changed it, and files that only they keep are added."""
    base, ours, theirs = (_pad_files(store, commit) for commit in (sides.base, sides.ours.tip, sides.tip))
    # Sides that share turns but no history began with no pad.
    tips = (sides.ours.tip, sides.tip) if sides.base and sides.related else ()
    began = [_pad_files(store, _base_commit(store, tip, sides.base)) for tip in tips] or [{}, {}]
    lists, taken, decisions = dict[str, bytes](), dict[str, tuple[str, bool]](), list[Decision]()
    for name in sorted({*theirs, *ours}):
        path, mine, entry = f"{layout.PAD}/{name}", ours.get(name), theirs.get(name)
        if name.endswith(_LIST_SUFFIX):
            if entry in (mine, began[1].get(name)):
                continue
            left, right = (_pad_lines(store, one) for one in (mine, entry))
            start = [_pad_lines(store, side.get(name)) for side in began]
            both = pads.merge_lists(name.removesuffix(_LIST_SUFFIX), start[0], start[1], left, right)
            if both != left:
                lists[path] = canonical.join_lines(both)
                decisions.append(Decision(path, "unite", len(left), len(right), len(both)))
        elif entry in (None, mine, base.get(name)):
            continue
        elif mine == base.get(name) or choice.side == "theirs":
            taken[path] = entry
            decisions.append(Decision(path, "theirs"))
        elif choice.side == "ours":
            decisions.append(Decision(path, "ours"))
        else:
            decisions.append(Decision(path, "conflict"))
    return MergedPad(lists, taken | session_files.missing_files(store, sides.ours.tip, sides.tip), decisions)


def new_pad_lines(store: Store, sides: MergeSides) -> dict[str, list[str]]:
    """Return the lines of their lists that ours lack, by the list's name; of entries the texts."""
    ours, out = _pad_files(store, sides.ours.tip), dict[str, list[str]]()
    for name, entry in sorted(_pad_files(store, sides.tip).items()):
        called, known = name.removesuffix(_LIST_SUFFIX), set(_pad_lines(store, ours.get(name)))
        kind = next((kind for kind, one in pads.LISTS.items() if one == called), "")
        new = [line for line in _pad_lines(store, entry) if line not in known]
        entries = [(line, pads.parse_entry(kind, line)) for line in new]
        lines = [_entry_summary(one) if one else line.decode("utf-8", "replace") for line, one in entries]
        if name.endswith(_LIST_SUFFIX) and any(lines):
            out[called] = [line for line in lines if line]
    return out


def _entry_summary(entry: Entry) -> str:
    """`- Speed stands against clear errors. (resolved: both, in two passes)`; nothing of a cycle, which is theirs."""
    if entry.kind == "cycle":
        return ""
    value = "" if entry.value is None else f"{entry.value:g}"
    words = ": ".join(part for part in (entry.form or value, entry.text.replace("\n", "\n  ")) if part)
    answer = f": {entry.answer}" if entry.answer else ""
    return f"- {words}{f' (resolved{answer})' if entry.resolved else ''}"


def _pad_files(store: Store, commit: str) -> dict[str, tuple[str, bool]]:
    """Return the files of a scratchpad; not those of programs' cells, which belong to turns."""
    files = store.files(commit, layout.PAD).items()
    return {name: file for name, file in files if not turn_log.is_program_file(name)}


def _pad_lines(store: Store, entry: tuple[str, bool] | None) -> list[bytes]:
    data = store.repo.blob(entry[0]) if entry else b""
    return pads.split_list(data)


MergeState = Literal["open", "merged", "nothing", "unfinished"]
"""Whether there is something to do: `merged` and `nothing` say no, `unfinished` that an interrupted merge brought the
turns already and lacks its commit."""


@frozen
class MergeRequest:
    """What the user asks for. No mode means a summary, or forward if ours has no new turns; `turns` are the numbers of
    theirs' turns to pick; `retell` returns another text for the summary."""

    mode: Mode | None = None
    turns: tuple[int, ...] = ()
    choice: Choice = field(default_factory=Choice)
    retell: Callable[[str], str] | None = None


@frozen
class MergePlan:
    """The decisions of a merge, and the turns of theirs that it appends."""

    sides: MergeSides
    standing: MergeState
    mode: Mode
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]
    pad: MergedPad

    @property
    def conflicts(self) -> list[Decision]:
        """Return the decisions that the user must make."""
        return [decision for decision in self.decisions if decision.conflict]

    @property
    def is_open(self) -> bool:
        """Return whether there is something to merge."""
        return self.standing in ("open", "unfinished")

    @property
    def authored(self) -> Session:
        """Our state with what was decided."""
        return merge_decisions.resolve_state(self.sides.ours.state, [d for d in self.decisions if not d.conflict])

    def key(self, what: str) -> str:
        """Return the uuid of a line that this merge appends."""
        return ids.merged_id(self.mode, self.sides.ours.tip, self.sides.tip, what)

    def as_json(self) -> dict[str, Any]:
        sides = self.sides
        return {
            "base": sides.base or None,
            "ours": sides.ours.tip,
            "theirs": sides.tip,
            "decisions": [decision.as_json() for decision in self.decisions],
        }


@frozen
class PickPlan:
    """Single turns to append to ours, and the decisions about them."""

    ours: Branch
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]

    @property
    def numbers(self) -> list[int]:
        """Return the numbers that the turns get."""
        first = self.ours.state.turns + 1
        return list(range(first, first + len(self.rows)))

    def as_json(self) -> dict[str, Any]:
        return {"ours": self.ours.tip, "decisions": [decision.as_json() for decision in self.decisions]}


def picked_turn(index: Index, one: ResolvedTarget) -> Row:
    """Return the turn at an address; raises UsageError if it names no whole turn, NotFoundError if there is none."""
    short = one.branch.short
    if one.turn is None or one.turn == 0 or one.cell:
        raise UsageError(f"{short} does not name a turn", f"Name one: {short}@{one.turn or one.state.turns}.")
    return row_of(index, one.branch, one.turn)


def _check_agent(ours: Branch, theirs: Session) -> None:
    """Raise ConflictError if the turns of another client's session would be appended: ours could not read them."""
    if theirs.agent != ours.state.agent:
        what = f"the turns are of {agents.of(theirs).title}, and {agents.of(ours.state).title} could not read them"
        raise ConflictError(what, f"A summary can be merged: `sessgit merge {theirs.id} --into {ours.name}`.")


def check_picks(context: Context, ours: Branch, rows: Sequence[Row]) -> None:
    """Raise UsageError if a turn is named twice or is in ours already, ConflictError if it is of another client."""
    turns = context.index.turns(ours.name)
    origins, own_turns = {row.trailer("Origin") for row in turns}, {row.prompt: row for row in turns}
    seen = dict[str, Row]()
    for row in rows:
        _check_agent(ours, context.store.state(row.commit))
        if row.prompt in seen and is_same_turn(context.store, seen[row.prompt], row):
            raise UsageError(
                f"turn {row.turn} of {layout.short_name(row.branch)} is named twice", "Name each turn once."
            )
        if turn_address(row) in origins or (
            row.prompt in own_turns and is_same_turn(context.store, own_turns[row.prompt], row)
        ):
            hint = (
                f"Name another conversation with `--into`, or continue from that turn: `sessgit fork "
                f"{ours.short} --at {row.turn}`"
            )
            raise _present_error(ours, layout.short_name(row.branch), row.turn, hint if row.branch == ours.name else "")
        seen[row.prompt] = row


def _present_error(ours: Branch, theirs: str, turn: int, hint: str = "") -> UsageError:
    hint = hint or f"`sessgit diff {ours.short} {theirs}` shows what is not."
    return UsageError(f"turn {turn} of {theirs} is already in {ours.short}", hint)


def turn_address(row: Row) -> str:
    """Return the address of a turn, with the whole id."""
    return f"{row.branch}@{row.turn}"


def plan_pick(context: Context, ours: Branch, rows: Sequence[Row]) -> PickPlan:
    """Return what picking these turns decides."""
    appended = Decision("turns", "bring", value=[turn_address(row) for row in rows])
    branches = {branch.name: branch for branch in context.index.branches_named(sorted({row.branch for row in rows}))}
    named = [path for row in rows for path in turn_gists(context, branches[row.branch], [row])[0].files]
    files = [Decision("files", "unite", [], list(dict.fromkeys(named)), list(dict.fromkeys(named)))] if named else []
    return PickPlan(ours, tuple(rows), (appended, *files))


def plan_merge(context: Context, ours: Branch, theirs: Branch, turn: int | None, request: MergeRequest) -> MergePlan:
    """Decide a merge of theirs, up to a turn if one is given, into ours.

    Raises UsageError if turns cannot be picked, ConflictError if there would be too many labels, or if turns are of
    another client than ours.
    """
    store = context.store
    sides = _merge_sides(context, ours, theirs, turn)
    mode: Mode = request.mode or ("forward" if sides.forward else "summary")
    # A summary also tells of a turn that both have and of which theirs has more.
    grown = (sides.grown,) if mode == "summary" and sides.grown else ()
    rows: tuple[Row, ...] = (
        () if sides.merged else _picked_rows(sides, request.turns) if mode == "pick" else (*grown, *sides.new)
    )
    if mode in ("graft", "pick"):
        _check_agent(ours, theirs.state)
    standing = _merge_state(store, sides, mode, rows)
    if standing == "nothing" and _has_authored_changes(store, sides):
        standing = "open"
    if standing in ("merged", "nothing"):
        return MergePlan(sides, standing, mode, (), (), MergedPad({}, {}, []))
    pad = merge_pads(store, sides, request.choice)
    authored = merge_decisions.decide_all(_base_states(store, sides), ours.state, theirs.state, request.choice)
    labels = max((len(d.value) for d in authored if d.path == "labels"), default=0)
    if labels > MOST_LABELS:
        raise ConflictError(
            f"there would be {labels} labels, but at most {MOST_LABELS} are allowed",
            "Remove one: `sessgit edit --label -LABEL`",
        )
    known = [sessions.memory_size(one.state.unified.working_memory) for one in (ours, theirs)]
    size = max((sessions.memory_size(d.value) for d in authored if d.path == sessions.MEMORY), default=0)
    if size > max(sessions.LARGEST_MEMORY, *known):
        raise ConflictError(
            f"the working memory would have {humanize.format_size(size)}, but at most "
            f"{humanize.format_size(sessions.LARGEST_MEMORY)} are allowed",
            "The program that owns it can remove something from one of the two.",
        )
    appended = Decision("turns", "bring", len(sides.own), len(sides.new), [turn_address(row) for row in rows])
    files = _file_decisions(context, sides, rows)
    return MergePlan(sides, standing, mode, rows, (appended, *files, *authored, *pad.decisions), pad)


def check_conflicts(plan: MergePlan) -> None:
    """Raise ConflictError if both sides changed the same."""
    if not plan.conflicts:
        return
    lines = [
        f"{canonical.one_line(d.path, _LONGEST_VALUE)}: ours {_shown_value(d.ours)}, theirs {_shown_value(d.theirs)}"
        for d in plan.conflicts
    ]
    settable = next((d.path for d in plan.conflicts if d.path in merge_decisions.SCALARS), "")
    hint = "Use `--ours` or `--theirs` for all of them" + (
        f", or `--set {settable}=VALUE` for one." if settable else "."
    )
    raise ConflictError("both sides changed:\n  " + "\n  ".join(lines), f"{hint} Nothing was changed.")


def _shown_value(value: object) -> str:
    """One side's value as a message has it."""
    if isinstance(value, dict | list):
        return canonical.one_line(canonical.compact(value).decode(), _LONGEST_VALUE)
    return "none" if value in (None, "") else f"“{value}”" if isinstance(value, str) else str(value)


def _picked_rows(sides: MergeSides, numbers: Sequence[int]) -> tuple[Row, ...]:
    by_number = {row.turn: row for row in sides.new}
    if set(numbers) <= set(sides.copied):
        return ()
    name, last = sides.theirs.short, sides.theirs.state.turns
    for number in numbers:
        if not 1 <= number <= last:
            raise NotFoundError(
                f"{name} has no turn {number}; it has {humanize.format_count(last, 'turn')}",
                f"`sessgit log {name}` lists them.",
            )
        if number not in by_number:
            raise _present_error(sides.ours, name, number)
    return tuple(by_number[number] for number in sorted(set(numbers)))


def _merge_state(store: Store, sides: MergeSides, mode: Mode, rows: Sequence[Row]) -> MergeState:
    if sides.merged:
        return "merged"
    if mode == "summary" and rows and _has_summary(store, sides):
        return "unfinished"
    if rows:
        return "open"
    return "unfinished" if sides.copied and (mode == "pick" or not sides.new) else "nothing"


def _has_authored_changes(store: Store, sides: MergeSides) -> bool:
    """Return whether theirs has authored state, or something on its pad, that ours lacks."""
    ours = sides.ours.state
    authored = merge_decisions.decide_all(_base_states(store, sides), ours, sides.theirs.state, Choice())
    return (
        any(decision.conflict or decision.path == sessions.MEMORY for decision in authored)
        or merge_decisions.resolve_state(ours, authored) != ours
        or bool(merge_pads(store, sides, Choice()).decisions)
    )


def _has_summary(store: Store, sides: MergeSides) -> bool:
    """Return whether a turn of ours is the summary of this merge: the id of its prompt is made from the merged
    commits."""
    after = ""
    for commit, message in store.history(sides.ours.tip):
        if after and after == ids.merged_id("summary", commit, sides.tip, "prompt"):
            return True
        after = message.get("Prompt") or after
    return False


def _file_decisions(context: Context, sides: MergeSides, rows: Sequence[Row]) -> list[Decision]:
    """Return the files that each side used since they diverged, and their union."""
    mine, theirs = (
        list(dict.fromkeys(path for gist in turn_gists(context, branch, chosen) for path in gist.files))
        for branch, chosen in ((sides.ours, sides.own), (sides.theirs, rows))
    )
    if not mine and not theirs:
        return []
    return [Decision("files", "unite", mine, theirs, list(dict.fromkeys([*mine, *theirs])))]
