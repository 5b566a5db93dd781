"""From an address to the branch and turn that it names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sessgit import agents
from sessgit.errors import AmbiguousError, ConflictError, NotFoundError, UsageError
from sessgit.model import canonical, humanize, ids
from sessgit.model.address import Address, parse_address
from sessgit.model.conversation.session import Session
from sessgit.store import layout, project
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Outline, Row
from sessgit.store.sqlite.titles import Titles, first_prompts, titles

SHORTEST_PREFIX = 4
_ID_LENGTH = 8
"""So much of an id is shown, and so much of one that was misspelt is compared."""
_NEAR_ID, _NEAR_NAME = 0.7, 0.5
"""From which likeness on two are near, of 1: of four characters of an id three."""
_LONGEST_TITLE = 500
_LISTED_TITLE_LENGTH = 38
"""So much of a title fits behind a whole id."""
_MOST_LISTED = 20
"""So many of the conversations that an address matches are listed."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class CallerContext:
    """Where and by whom a command was called: the client's folder, the working folder, this process, and the
    session's id that the client told its children, or ``""``."""

    config: Path
    cwd: str
    pid: int
    told_session: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A branch, and a turn of it where the address names one, counted from 1; `guess` says how the current session
    was found where nobody named it."""

    branch: Branch
    turn: int | None = None
    cell: str = ""
    guess: str = ""

    @property
    def state(self) -> Session:
        return self.branch.state

    @property
    def session(self) -> str:
        """The id of the session, also where the address names a side branch."""
        return layout.session_of(self.branch.name)


def resolve_target(index: Index, address: Address, where: CallerContext, *, changes: bool = False) -> ResolvedTarget:
    """What the address names. For a command that `changes` something a doubtful guess is refused.

    Raises NotFoundError with near ones, AmbiguousError with all that match.
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
    """The branch of the current session, and how it was guessed, or ``""`` if the client itself told."""
    if where.told_session:
        return ids.session_id(where.told_session), ""
    above = agents.at(where.config).home.client_above(where.config, where.pid)
    if above is not None:
        return ids.session_id(above.agent_id), ""
    here = project.project_key(where.cwd)
    live = [
        c
        for c in agents.at(where.config).home.live_clients(where.config)
        if c.cwd and project.project_key(c.cwd) == here
    ]
    if changes and len(live) > 1:
        names = ", ".join(ids.session_id(client.agent_id)[:8] for client in live)
        raise ConflictError(f"several conversations are open here: {names}", "Name one of them.")
    known = sessions_of_project(index, where.cwd)
    if not known:
        raise NotFoundError(
            "no conversation of this project is recorded",
            "`sessgit ls --all` lists those of other projects, `sessgit import` imports older ones.",
        )
    latest = known[0]
    return latest.name, f"using {latest.name[:8]}, the most recent conversation in this project"


def outlines_in_project(outlines: Iterable[Outline], folder: str) -> list[Outline]:
    """The sessions whose project is that of a folder, in their order."""
    here = project.project_key(folder)
    same = cache(lambda other: project.project_key(other) == here)
    return [outline for outline in outlines if outline.project and same(outline.project)]


def sessions_of_project(index: Index, folder: str) -> list[Outline]:
    """The sessions of the project at a folder, the one written last first; archived ones are left out."""
    return outlines_in_project((outline for outline in index.outlines() if not outline.archived), folder)


def _resolve_branch_name(index: Index, text: str, where: CallerContext) -> tuple[str, int | None]:
    """The branch that a word names, and the turn if the word is a tag or a commit."""
    found = branches_by_name(index, text, where)
    if found:
        return _only_one(text, found, index, "Type more of the id."), None
    point = _resolve_tag_or_commit(index, text)
    if point is not None:
        return point
    found = sessions_by_title(index, text, where)
    if found:
        return _only_one(text, found, index, "Type more of the title, or an id."), None
    raise _unknown_error(index, text)


def resolve_address(index: Index, text: str, at: str | None = None) -> Address:
    """The address that `text` spells, with `at` as its turn where that is given; a title may hold an ``@``.

    Raises UsageError.
    """
    try:
        return parse_address(text, at)
    except UsageError:
        every, prompts = titles(index), first_prompts(index)
        if _sessions_titled(every, prompts, text):
            return replace(parse_address("", at), session=text)
        session, _, turn = text.rpartition("@")
        if at is not None or not _sessions_titled(every, prompts, session):
            raise
        return replace(parse_address("", turn), session=session)


def branches_by_name(index: Index, text: str, where: CallerContext) -> list[str]:
    """The branches that a word names before it would be taken for a tag or a commit; several where it fits several."""
    if index.branch(text) is not None:
        return [text]
    rows = index.names()
    heads = [row for row in rows if not layout.is_side_branch(row[0])]
    by_agent = [name for name, agent_id, *_ in heads if agent_id == text]
    if by_agent:
        return by_agent[:1]
    here = project.project_key(where.cwd)
    named = [row for row in heads if row[2] == text]
    named = [row for row in named if project.project_key(row[4]) == here] or named
    if named:
        return [row[0] for row in named]
    titled = [name for name, _, _, title, _ in heads if title == text]
    if titled:
        return titled
    if len(text) < SHORTEST_PREFIX:
        return []
    fitting = [row[0] for row in rows if abbreviates(row[0], text)]
    return [name for name in fitting if not layout.is_side_branch(name)] or fitting


def sessions_by_title(index: Index, text: str, where: CallerContext) -> list[str]:
    """The sessions with this title, as `ls` prints it, or with one that begins so; several where it fits several.

    Those of this project go before all others, and titles before first prompts that `ls` does not print. A beginning
    has as many bytes as that of an id at least.
    """
    every, prompts, here = titles(index), first_prompts(index), project.project_key(where.cwd)
    same = cache(lambda folder: project.project_key(folder) == here)
    near = [one for one in every if same(one.project)]
    return _sessions_titled(near, prompts, text) or _sessions_titled(every, prompts, text)


def _sessions_titled(every: Sequence[Titles], prompts: Mapping[str, str], text: str) -> list[str]:
    wanted = _fold_title(text.removesuffix("…"))  # a title that was copied from a narrow list
    if not wanted:
        return []
    shown = [(one.session, _fold_title(one.name or one.title or prompts.get(one.session, ""))) for one in every]
    whole = [name for name, said in shown if said == wanted]
    if whole or len(wanted.encode()) < SHORTEST_PREFIX:  # bytes: two characters of Chinese say enough
        return whole
    begun = [name for name, said in shown if said.startswith(wanted)]
    own = (one.session for one in every if not one.is_fork)  # the first prompt of a fork is that of another session
    return begun or [name for name in own if _fold_title(prompts.get(name, "")).startswith(wanted)]


def _fold_title(text: str) -> str:
    """The text as titles are compared: its first line, whatever the case of its letters."""
    return canonical.one_line(text, _LONGEST_TITLE).casefold()


def abbreviates(branch: str, text: str) -> bool:
    """Whether a word abbreviates a branch's name, as `a41f` or, of a side branch, `a41f.r-9c02`."""
    session, _, left = text.partition(".")
    own, _, rest = branch.partition(".")
    return branch.startswith(text) or (bool(left) and own.startswith(session) and rest.startswith(left))


def _resolve_tag_or_commit(index: Index, text: str) -> tuple[str, int] | None:
    """The branch and turn at which a tag or a commit stands; raises the damage of a branch that cannot be read."""
    oid = text if _COMMIT.fullmatch(text) else index.tags().get(text)
    found = commit_places(index, [oid]).get(oid) if oid else None
    if found is None:
        for name, damage in index.damaged.items():
            if len(text) >= SHORTEST_PREFIX and abbreviates(name, text):
                raise damage
    return found


def _unknown_error(index: Index, text: str) -> NotFoundError:
    short = len(text) < SHORTEST_PREFIX and any(name.startswith(text) for name, *_ in index.names())
    wrong = f"“{text}” is too short for an id" if short else f"no conversation starts with “{text}”"
    return NotFoundError(wrong, _suggestions(index, text))


def commit_places(index: Index, oids: Sequence[str]) -> dict[str, tuple[str, int]]:
    """The branch and turn that each commit stands for; the others lead nowhere here.

    A commit that is no turn's stands for the turn before it; 0 is the start. An annotated tag stands for its commit.
    """
    found = index.turns_of_commits(oids)
    for oid in set(oids) - found.keys():
        point = _commit_place(index, oid)
        if point is not None:
            found[oid] = point
    return found


def _commit_place(index: Index, oid: str) -> tuple[str, int] | None:
    store = index.open_store()
    tip = store.repo.peel(oid)
    if tip is None:
        return None
    session = store.message(tip).get("Session")
    for commit in store.repo.first_parents(tip):
        number = store.message(commit.id).number("Turn")
        if number:
            row = index.turn(session, number)
            return (session, number) if row and commit.id in row.commits else index.turn_of_commit(commit.id)
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
    return session_title(branch.state) if branch else ""


def row_of(index: Index, branch: Branch, number: int) -> Row:
    """The turn of a branch; raises NotFoundError where the store has none of that number."""
    row = index.turn(branch.name, number)
    if row is None:
        raise NotFoundError(f"{branch.name} has no turn {number} in the store", "`sessgit restore --verify` checks it.")
    return row


def session_title(state: Session) -> str:
    """What a person calls the session: its name, else the client's title, else its first prompt."""
    return state.name or state.title or state.first_prompt or "(no prompt yet)"


def _suggestions(index: Index, text: str) -> str:
    rows = [row for row in index.names() if not layout.is_side_branch(row[0])]
    start, named = text[:_ID_LENGTH], {row[2]: row[0] for row in rows if row[2]}
    alike = difflib.get_close_matches(start, {row[0][: len(start)] for row in rows}, n=3, cutoff=_NEAR_ID)
    close = [named[word] for word in named if text and word.startswith(text)]
    close += [row[0] for one in alike for row in rows if row[0].startswith(one)]
    close += [named[word] for word in difflib.get_close_matches(text, named, n=3, cutoff=_NEAR_NAME)]
    close += [named[word] for word in named if text and text in word]
    if not close:
        return "`sessgit ls --all` lists all conversations."
    shown = list(dict.fromkeys(close))[:3]
    return "similar: " + ", ".join(f"{name[:_ID_LENGTH]} ({_title_of_branch(index, name)[:40]})" for name in shown)


def _checked_turn_number(branch: Branch, turn: int | None) -> int | None:
    """The turn counted from 1, checked against how many there are; 0 is the start."""
    if turn is None:
        return None
    count = branch.state.turns
    number = count + 1 + turn if turn < 0 else turn
    if not 0 <= number <= count:
        name = layout.short_name(branch.name)
        turns = humanize.format_count(count, "turn")
        raise NotFoundError(f"{name} has no turn {turn}; it has {turns}", f"`sessgit log {name}` lists them.")
    return number
