"""Resolves addresses: from what the user types to a branch, a turn and a cell, and to the commit at which a fork leaves
its session."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from sessgit import agents
from sessgit.errors import AmbiguousError, ConflictError, NotFoundError, UsageError
from sessgit.model import canonical, humanize, ids
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.ids import Address, parse_address
from sessgit.store import layout, project
from sessgit.store.context import Context, Homes
from sessgit.store.index import Branch, Index, Outline, Row
from sessgit.store.store import Store

SHORTEST_PREFIX = 4
_ID_LENGTH = 8
"""Characters of an id that are shown, and compared with a misspelt one."""
_NEAR_ID, _NEAR_NAME = 0.7, 0.5
"""Ratios of similarity from which on an id, or a name, is suggested."""
_LONGEST_TITLE = 500
_LISTED_TITLE_LENGTH = 38
"""Characters of a title that fit after a whole id."""
_MOST_LISTED = 20
"""Conversations that an ambiguous address matches which are listed."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@frozen
class CallerContext:
    """The client's folder, the working folder, this process, and the session id in its environment, which the client
    sets for its children, or ``""``."""

    homes: Homes
    cwd: str
    pid: int
    told_session: str = ""


@frozen
class ResolvedTarget:
    """A branch, a turn of it counted from 1 and a cell, if the address names them; `guess` says how the current session
    was determined if the address names none."""

    branch: Branch
    turn: int | None = None
    cell: str = ""
    guess: str = ""

    @property
    def state(self) -> Session:
        return self.branch.state

    @property
    def end(self) -> int:
        """The number of the turn, or of the branch's last one if the address names none."""
        return self.state.turns if self.turn is None else self.turn

    @property
    def session(self) -> str:
        """The id of the session, also for a side branch."""
        return self.branch.session


@frozen
class Tag:
    """A tag and the turn that it names; 0 is the start, and `branch` is ``""`` if it leads to no conversation here.

    `commit` is the tagged commit, or the tag object of an annotated tag that git has not packed.
    """

    name: str
    commit: str
    branch: str = ""
    turn: int = 0


def resolve_target(index: Index, address: Address, where: CallerContext, *, changes: bool = False) -> ResolvedTarget:
    """Return what the address names. For a command that `changes` something, an uncertain guess is an error.

    Raises NotFoundError with similar names, AmbiguousError with all that match.
    """
    guess = ""
    turn, cell = address.turn, address.cell
    if address.session:
        name, tagged = _resolve_branch_name(index, address.session, where)
        turn = tagged if turn is None else turn
    else:
        name, guess = current_branch(index, where, changes=changes)
    branch = index.branch(name)
    if branch is None:
        raise NotFoundError(
            f"the current conversation, {name[:8]}, is not recorded", "`sessgit status` shows whether recording is on."
        )
    return ResolvedTarget(branch, _checked_turn_number(branch, turn), cell, guess)


def current_branch(index: Index, where: CallerContext, *, changes: bool = False) -> tuple[str, str]:
    """Return the branch of the current session, and how it was guessed, or ``""`` if the client names it."""
    if where.told_session:
        return ids.session_id(where.told_session), ""
    above = agents.client_above(where.homes, where.pid)
    if above is not None:
        return ids.session_id(above.agent_id), ""
    here = project.project_key(where.cwd)
    clients = agents.live_clients(where.homes)
    live = [client for client in clients if client.cwd and project.project_key(client.cwd) == here]
    if changes and len(live) > 1:
        names = ", ".join(ids.session_id(client.agent_id)[:8] for client in live)
        raise ConflictError(f"several conversations are open here: {names}", "Name one of them.")
    sessions = sessions_of_project(index, where.cwd)
    if not sessions:
        raise NotFoundError(
            "no conversation of this project is recorded",
            "`sessgit ls --all` lists those of other projects, `sessgit import` imports older ones.",
        )
    latest = sessions[0].name
    return latest, f"using {latest[:8]}, the most recent conversation in this project"


def outlines_in_project(outlines: Iterable[Outline], folder: str) -> list[Outline]:
    """Return the sessions whose project is that of a folder, in their order."""
    here = project.project_key(folder)
    same = cache(lambda other: project.project_key(other) == here)
    return [outline for outline in outlines if outline.project and same(outline.project)]


def sessions_of_project(index: Index, folder: str) -> list[Outline]:
    """Return the sessions of the project at a folder, the newest first, without archived ones."""
    return outlines_in_project((outline for outline in index.outlines() if not outline.archived), folder)


def _resolve_branch_name(index: Index, text: str, where: CallerContext) -> tuple[str, int | None]:
    """Return the branch that a word names, and the turn if the word is a tag or a commit; raises the damage of a branch
    that cannot be read."""
    names = branches_by_name(index, text, where)
    if names:
        return _only_one(text, names, index, "Type more of the id."), None
    oid = text if _COMMIT.fullmatch(text) else index.tags().get(text)
    if oid and (point := commit_places(index, [oid]).get(oid)):
        return point
    for name, damage in index.damaged.items():
        if len(text) >= SHORTEST_PREFIX and abbreviates(name, text):
            raise damage
    names = sessions_by_title(index, text, where)
    if names:
        return _only_one(text, names, index, "Type more of the title, or an id."), None
    short = len(text) < SHORTEST_PREFIX and any(one.name.startswith(text) for one in index.branch_outlines())
    wrong = f"“{text}” is too short for an id" if short else f"no conversation starts with “{text}”"
    raise NotFoundError(wrong, _suggestions(index, text))


def resolve_address(index: Index, text: str, at: str | None = None) -> Address:
    """Return the address in `text`, with `at` as its turn if that is given; a title may contain an ``@``.

    Raises UsageError.
    """
    try:
        return parse_address(text, at)
    except UsageError:
        every = index.outlines()
        if _sessions_titled(every, text):
            return replace(parse_address("", at), session=text)
        session, _, turn = text.rpartition("@")
        if at is not None or not _sessions_titled(every, session):
            raise
        return replace(parse_address("", turn), session=session)


def branches_by_name(index: Index, text: str, where: CallerContext) -> list[str]:
    """Return the branches that a word names by an id, here or in the system that they were imported from, by a name or
    by a title."""
    if index.branch(text) is not None:
        return [text]
    every = index.branch_outlines()
    heads = [one for one in every if not layout.is_side_branch(one.name)]
    by_agent = [head.name for head in heads if head.agent_id == text]
    if by_agent:
        return by_agent[:1]
    named = [head for head in heads if head.authored_name == text]
    if named:
        return [head.name for head in outlines_in_project(named, where.cwd) or named]
    imported = index.sessions_from(text)
    if imported:
        return imported
    titled = [head.name for head in heads if head.title == text]
    if titled:
        return titled
    if len(text) < SHORTEST_PREFIX:
        return []
    fitting = [one.name for one in every if abbreviates(one.name, text)]
    return [name for name in fitting if "." in text or not layout.is_side_branch(name)]


def sessions_by_title(index: Index, text: str, where: CallerContext) -> list[str]:
    """Return the sessions with this title, as `ls` prints it, or with one that begins so.

    Sessions of this project take precedence, and titles over first prompts that `ls` does not print. A beginning must
    have as many bytes as an abbreviated id.
    """
    every = index.outlines()
    return _sessions_titled(outlines_in_project(every, where.cwd), text) or _sessions_titled(every, text)


def _sessions_titled(every: Sequence[Outline], text: str) -> list[str]:
    title = _fold_title(text.removesuffix("…"))  # a title that was copied from a narrow list
    if not title:
        return []
    shown = [(one.name, _fold_title(one.authored_name or one.title or one.first_prompt)) for one in every]
    whole = [name for name, other in shown if other == title]
    if whole or len(title.encode()) < SHORTEST_PREFIX:  # bytes: two Chinese characters are enough
        return whole
    begun = [name for name, other in shown if other.startswith(title)]
    own = (one for one in every if not one.parent)  # the first prompt of a fork is that of another session
    return begun or [one.name for one in own if _fold_title(one.first_prompt).startswith(title)]


def _fold_title(text: str) -> str:
    """Return the form of a title that is compared: its first line, without case."""
    return canonical.one_line(text, _LONGEST_TITLE).casefold()


def abbreviates(branch: str, text: str) -> bool:
    """Return whether a word abbreviates a branch's name, as `a41f` or, for a side branch, `a41f.r-9c02`."""
    session, _, left = text.partition(".")
    own, _, rest = branch.partition(".")
    return branch.startswith(text) or (bool(left) and own.startswith(session) and rest.startswith(left))


def commit_places(index: Index, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return the branch and turn of each commit or annotated tag that is in a conversation here.

    A commit that belongs to no turn stands for the turn before it; 0 is the start.
    """
    found = index.turns_of_commits(oids)
    for oid in set(oids) - found.keys():
        point = _commit_place(index, oid)
        if point is not None:
            found[oid] = point
    return found


def list_tags(index: Index) -> list[Tag]:
    """Return all tags by name. Loads pygit2 only for a tag that is at no turn."""
    tags = index.tags()
    places = commit_places(index, list(tags.values())) if tags else {}
    return [Tag(name, oid, *places.get(oid, ("", 0))) for name, oid in sorted(tags.items())]


def tags_by_commit(index: Index) -> dict[str, list[str]]:
    """Return the names of the tags by the last commit of the turn that they name; tags of a start, before turn 1, by
    the commit that is tagged."""
    names: dict[str, list[str]] = {}
    for tag in list_tags(index):
        row = index.turn(tag.branch, tag.turn) if tag.turn else None
        names.setdefault(row.commit if row else tag.commit, []).append(tag.name)
    return names


def _commit_place(index: Index, oid: str) -> tuple[str, int] | None:
    store = index.open_store()
    tip = store.repo.peel(oid)
    if tip is None:
        return None
    session = store.message(tip).get("Session")
    for commit, message in store.history(tip):
        if number := message.number("Turn"):
            row = index.turn(session, number)
            return (session, number) if row and commit in row.commits else index.turn_of_commit(commit)
    return (session, 0) if index.branch(session) else None


def _only_one(text: str, names: Iterable[str], index: Index, hint: str) -> str:
    found = sorted(names)
    if len(found) == 1:
        return found[0]
    lines = [
        f"{name}  {canonical.one_line(_title_of_branch(index, name), _LISTED_TITLE_LENGTH)}"
        for name in found[:_MOST_LISTED]
    ]
    lines += [f"and {len(found) - _MOST_LISTED:,} more"] if len(found) > _MOST_LISTED else []
    raise AmbiguousError(f"“{text}” matches {len(found)} conversations:\n  " + "\n  ".join(lines), hint)


def _title_of_branch(index: Index, name: str) -> str:
    branch = index.branch(name)
    return branch.state.display_title if branch else ""


def row_of(index: Index, branch: Branch, number: int) -> Row:
    """Return a turn of a branch; raises NotFoundError if the store has none of that number."""
    row = index.turn(branch.name, number)
    if row is None:
        raise NotFoundError(f"{branch.name} has no turn {number} in the store", "`sessgit restore --verify` checks it.")
    return row


def _suggestions(index: Index, text: str) -> str:
    heads = [one for one in index.branch_outlines() if not layout.is_side_branch(one.name)]
    start, named = text[:_ID_LENGTH], {head.authored_name: head.name for head in heads if head.authored_name}
    alike = difflib.get_close_matches(start, {head.name[: len(start)] for head in heads}, n=3, cutoff=_NEAR_ID)
    close = [named[word] for word in named if text and word.startswith(text)]
    close += [head.name for one in alike for head in heads if head.name.startswith(one)]
    close += [named[word] for word in difflib.get_close_matches(text, named, n=3, cutoff=_NEAR_NAME)]
    close += [named[word] for word in named if text and text in word]
    if not close:
        return "`sessgit ls --all` lists all conversations."
    shown = list(dict.fromkeys(close))[:3]
    return "similar: " + ", ".join(f"{name[:_ID_LENGTH]} ({_title_of_branch(index, name)[:40]})" for name in shown)


def _checked_turn_number(branch: Branch, turn: int | None) -> int | None:
    """Return the turn counted from 1; 0 is the start. Raises NotFoundError if the branch has no such turn."""
    if turn is None:
        return None
    count = branch.state.turns
    number = count + 1 + turn if turn < 0 else turn
    if not 0 <= number <= count:
        name = branch.short
        turns = humanize.format_count(count, "turn")
        raise NotFoundError(f"{name} has no turn {turn}; it has {turns}", f"`sessgit log {name}` lists them.")
    return number


# Fork points

PROMPT = "0"
"""The place of a turn's prompt among its cells."""


@frozen
class ForkPoint:
    """Where to fork: after turn `turn` of a session, at `commit`.

    For a fork at a cell, `cell` is its ordinal in the turn or its id, or `PROMPT`, and `base` the commit before the
    turn's first. `pad` is the last commit before the next turn, with the scratchpad as it was then.
    """

    session: str
    turn: int
    commit: str
    cell: str = ""
    base: str = ""
    pad: str = ""


def fork_point(context: Context, target: ResolvedTarget) -> ForkPoint:
    """Return the point of the target's turn, or of the last one; raises UsageError if the fork would be empty."""
    branch = target.branch
    number = target.end
    if not number:
        what = f"{branch.short} has no turns yet, so there is nothing to fork"
        if branch.state.turns:
            what = f"a fork of {branch.short} before its first turn would be empty"
        raise UsageError(what, "A fork keeps at least turn 1.")
    row = row_of(context.index, branch, number)
    session = branch.name if layout.is_side_branch(branch.name) else target.session
    if not target.cell:
        return ForkPoint(session, number, row.commit, pad=last_commit_before_next(context, branch, number))
    parents = context.store.commit(row.commits[0]).parents
    if not parents:
        raise NotFoundError(f"nothing comes before turn {number} of {branch.name}")
    return ForkPoint(session, number, row.commit, _transcript_cell(context, branch, row, target.cell), parents[0])


def _transcript_cell(context: Context, branch: Branch, row: Row, name: str) -> str:
    """Return the cell of the transcript after which to cut a turn: the one of that name, or the last one before a cell
    that a program added outside it."""
    from sessgit.history import turn_log
    from sessgit.history.cells import cell_at
    from sessgit.history.turn_log import read_turn

    if name == PROMPT or not turn_log.program_lines(context.store, branch.tip, row.prompt):
        return name
    place = cell_at(context, branch, row.turn, name).ordinal
    every = read_turn(context.store, branch.tip, row).cells
    body = agents.of(branch.state).parsed(context.store.lines(branch.tip, row.turn).body)
    own = {cell.id for cell in agents.of(branch.state).cells.describe(body).cells}
    kept = [cell.id for cell in every[:place] if cell.id in own]
    if not kept:
        raise UsageError(f"nothing of the model comes before cell {row.turn}.{place}", "Fork at a later cell.")
    return kept[-1]


def at_message(context: Context, target: ResolvedTarget, number: int) -> ResolvedTarget:
    """Return the target with the turn and the cell of a message, see `cells.message_places`; raises NotFoundError."""
    from sessgit.history.cells import message_places

    name = target.branch.short
    if target.turn is not None:
        raise UsageError("the address already names a turn", "Use either @TURN or --at-message N.")
    places = message_places(context, target.branch)
    if not 0 <= number < len(places):
        raise NotFoundError(
            f"{name} has no message {number}; it has {len(places)}, counted from 0",
            f"`sessgit cells {name} --json` has the number of each.",
        )
    turn, place = places[number]
    is_last = all(other != turn for other, _ in places[number + 1 : number + 2])
    return replace(target, turn=turn, cell="" if is_last else str(place))


def chain_is_closed(store: Store, commit: str, number: int) -> bool:
    """Return whether the parents of a turn's last line lead back to its first one."""
    agent = agents.of_commit(store, commit)
    return agent.writer.leads_back(agent.parsed(store.lines(commit, number).body))


def last_commit_before_next(context: Context, branch: Branch, number: int) -> str:
    """Return the last commit before the next turn, which has the edits in between."""
    if number == branch.state.turns:
        return branch.tip
    following = row_of(context.index, branch, number + 1).commits[0]
    return next(iter(context.store.commit(following).parents), following)
