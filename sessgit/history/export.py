"""Exports a session: as a story for documents that people read, as JSON, and as lines that the client can resume."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.errors import ROOM, ConflictError, NotFoundError, SessgitError, UsageError
from sessgit.history import show, turn_log
from sessgit.history.reassemble import lines_of_turns
from sessgit.history.resolve import row_of
from sessgit.history.tree import TreeFamily
from sessgit.history.turn_log import Prices, read_pieces, sum_tokens, turn_gists
from sessgit.model import canonical, humanize, ids, prices
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.story import Heading, IndexEntry, Relative, Story, StoryTurn
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, counted
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, Row
from sessgit.store.store import Store

_RANGE = re.compile(r"([0-9]{1,9})?(-)?([0-9]{1,9})?")
_MOST_FAMILY = 100
_LONGEST_SLUG = 40
_SHORT_ID = 8
_FILE_SUFFIXES = {"markdown": ".md", "html": ".html", "json": ".json"}


@frozen
class ExportChoice:
    """The turns of a branch up to `end`, or those of them that `turns` lists, as in `2,4-6`; without `tools` only the
    words of user and model."""

    branch: Branch
    end: int | None = None
    turns: str = ""
    tools: bool = True


@frozen
class ExportedLines:
    """A transcript that the client can resume under `agent_id`; `left_out` says which lines it lacks, and why."""

    data: bytes
    agent_id: str
    left_out: tuple[str, ...] = ()


def chosen_rows(index: Index, choice: ExportChoice) -> list[Row]:
    """Return the turns to export, in order; raises NotFoundError if one of them does not exist."""
    branch, name = choice.branch, choice.branch.short
    end = branch.state.turns if choice.end is None else choice.end
    if not end:
        hint = f"`sessgit log {name}` lists its turns." if branch.state.turns else "`sessgit ls` lists others."
        raise UsageError(f"{name} has no turns to export", hint)
    wanted = parse_ranges(choice.turns, end, name) if choice.turns else range(1, end + 1)
    rows = {row.turn: row for row in index.turns(branch.name, 1, end)}
    return [rows.get(number) or row_of(index, branch, number) for number in wanted]


def parse_ranges(text: str, end: int, name: str = "") -> list[int]:
    """Return the turns that `2,4-6`, `3-` or `-9` lists, in order and each once; `name` has turns 1 to `end`.

    Raises UsageError, and NotFoundError for a turn that does not exist.
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or not (match[1] or match[3]) or bool(match[3]) > bool(match[2]):
            raise UsageError(
                f"“{text}” is not a turn or a range of turns", "Use 3, 3-9, 3-, -9, or several, such as 2,4-6."
            )
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else (end if match[2] else first)
        outside = next((number for number in (first, last) if not 1 <= number <= end), None)
        if outside is not None:
            turns = humanize.format_count(end, "turn")
            raise NotFoundError(
                f"{name} has {turns} here, there is no turn {outside}", f"`sessgit log {name}` lists them."
            )
        if first > last:
            raise UsageError(f"“{part.strip()}” counts backwards", f"Use {last}-{first}.")
        found.update(range(first, last + 1))
    return sorted(found)


def count_redacted(store: Store, rows: Sequence[Row]) -> int:
    """Return the number of secrets that were redacted in the turns."""
    return sum(store.message(commit).number("Redacted") or 0 for row in rows for commit in row.commits)


# The story


def export_story(
    context: Context, choice: ExportChoice, rows: Sequence[Row], overrides: Prices, families: Families | None = None
) -> Story:
    """Return what a document says of the session as a whole; `rows` are the exported turns. The documents of
    several sessions share `families`."""
    index = context.index
    branch = choice.branch
    whole = len(rows) == branch.state.turns
    tokens = dict(branch.state.tokens) if whole else sum_tokens(turn_gists(context, branch, rows))
    family, relatives = (families or Families(index)).relatives(branch, rows)
    left = [one for several in turn_log.branch_log(index, branch, limit=0).left.values() for one in several]
    return Story(
        branch=branch.name,
        commit=branch.tip,
        title=_session_title(branch.state, rows),
        state=branch.state,
        contents=tuple(Heading(row.turn, index.title(row)) for row in rows),
        family=family,
        relatives=relatives,
        tokens=tokens,
        cost=prices.token_cost(tokens, overrides),
        redacted=count_redacted(context.store, rows),
        rewound=sum(one.open for one in left if one.rewound),
        elsewhere=sum(one.open for one in left if not one.rewound),
        tools=choice.tools,
    )


def read_story_turns(
    context: Context, choice: ExportChoice, rows: Sequence[Row], overrides: Prices, progress: Progress
) -> Iterator[StoryTurn]:
    """Yield the turns in full, each read when it is needed."""
    log = turn_log.branch_log(context.index, choice.branch, limit=0)
    for row in counted(rows, progress):
        forks = tuple(_make_relative(fork.branch, rows, fork.turn) for fork in log.forks.get(row.turn, ()))
        sides = [side for side in log.left.get(row.turn, ()) if side.open]
        left, elsewhere = (
            {one.branch.name: one.open for one in sides if one.rewound == kind} for kind in (True, False)
        )
        turn, found = read_pieces(context.store, choice.branch, row)
        pieces = [replace(one, input=canonical.bounded(one.input)) if isinstance(one, Call) else one for one in found]
        summary = ""
        if row.compacted and choice.tools:
            agent = agents.of(choice.branch.state)
            summary = agent.writer.summary(agent.parsed(context.store.lines(choice.branch.tip, row.turn).before))
        yield StoryTurn(
            number=row.turn,
            turn=turn if turn.time else replace(turn, time=canonical.rfc3339(row.time)),
            pieces=tuple(piece for piece in pieces if choice.tools or _is_conversation(piece)),
            cost=prices.token_cost(turn.tokens, overrides),
            compacted=row.compacted,
            summary=summary,
            forks=forks,
            left=left,
            elsewhere=elsewhere,
        )


def _is_conversation(piece: Piece) -> bool:
    """Return whether it is words of the user or the model to the other."""
    return isinstance(piece, Words) and not piece.thinking and piece.by != "client"


class Families:
    """The families of exported sessions. Each is read once: a page for each of its members lists it again."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._families: dict[str, list[tuple[Branch, int]]] = {}

    def relatives(self, branch: Branch, rows: Sequence[Row]) -> tuple[tuple[Relative, ...], int]:
        """Return the first sessions of the branch's family, every session before its forks, and the number of the
        others; none if it is alone."""
        session = branch.session
        if session not in self._families:
            family = turn_log.session_family(self.index, branch)
            self._families |= {member.name: family for member, _ in family} | {session: family}
        family = self._families[session]
        listed = family[:_MOST_FAMILY] if len(family) > 1 else []
        relatives = []
        for member, depth in listed:
            at = self.index.fork_place(member) if depth else None
            left = turn_log.last_shared_turn(self.index, layout.session_of(at.branch), at) if at else None
            relative = _make_relative(member, rows, left)
            relatives.append(replace(relative, depth=depth, cell=at.cell if at else "", own=member.name == session))
        return tuple(relatives), max(0, len(family) - _MOST_FAMILY)


def _make_relative(branch: Branch, rows: Sequence[Row], left: int | None) -> Relative:
    return Relative(branch.name, _session_title(branch.state, rows), branch.state.turns, left=left)


def _session_title(state: Session, rows: Sequence[Row]) -> str:
    """Return the title of the session; its first prompt only if the exported turns begin with it."""
    return state.display_title if state.name or state.title or rows[0].turn == 1 else state.id[:_SHORT_ID]


def index_entries(family: TreeFamily) -> Iterator[IndexEntry]:
    """Yield the members of a family for the index of their project, each before those below it."""
    depths = {"": -1}
    for node in family.nodes:
        state = node.branch.state
        depths[node.branch.name] = depths[node.parent] + 1
        notes = ((state.unified.metadata.role or "child") * node.is_child, "archived" * node.branch.archived)
        yield IndexEntry(
            node.branch.name,
            node.title or node.first_words or state.display_title,
            state.turns,
            depth=depths[node.branch.name],
            left=node.turn if node.parent and not node.is_child else None,
            cell=node.cell,
            own_turns=node.own_turns,
            updated=state.updated,
            cost=node.own_cost,
            first_words=node.first_words,
            notes=notes,
        )


# The JSON


def export_document(
    context: Context, choice: ExportChoice, rows: Sequence[Row], overrides: Prices, progress: Progress
) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the session as `show --json` prints it, and its turns, each read when it is needed, with the client's
    notes on calls.

    If only a part is exported, the session's document has nothing from other turns, or from tools.
    """
    branch = choice.branch
    session = show.session_document(context, branch, overrides, progress)
    if not choice.tools or len(rows) != branch.state.turns:
        session["files"], session["program"]["memory"] = {}, {}
        if rows[0].turn != 1:
            session["first_prompt"] = ""
    return session, (_turn_document(context, choice, row, overrides) for row in rows)


def _turn_document(context: Context, choice: ExportChoice, row: Row, overrides: Prices) -> dict[str, Any]:
    shown = show.show_turn(context, choice.branch, row.turn)
    if not choice.tools:
        shown = replace(shown, pieces=[piece for piece in shown.pieces if _is_conversation(piece)], subagents={})
    out = show.turn_document(shown, overrides)
    if not choice.tools:
        out |= {"tools": {}, "cells": [], "files": [], "files_read": [], "files_changed": []}
    notes = {one.ordinal: canonical.bounded(one.result) for one in shown.pieces if isinstance(one, Call)}
    for piece in out["pieces"]:
        if piece["kind"] == "call":
            piece["client_note"] = notes[piece["ordinal"]]
    return out


def render_json(session: Mapping[str, Any], turns: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what `export json` prints, in ASCII; each turn has its own line."""
    empty = {"schema": "sessgit.export/v1", "session": session, "turns": []}
    head, _, tail = json.dumps(empty, indent=2).rpartition("[]")
    yield f"{head}["
    for number, turn in enumerate(turns):
        yield f"{',' if number else ''}\n{json.dumps(turn)}"
    yield f"\n  ]{tail}\n"


# Lines


def export_lines(store: Store, choice: ExportChoice, rows: Sequence[Row]) -> ExportedLines:
    """Return the turns as a transcript that the client can resume."""
    branch = choice.branch
    stored = [*lines_of_turns(store, branch.tip, branch.state, [row.turn for row in rows])]
    if not choice.tools:
        stored = [agents.of(branch.state).writer.spoken(turn) for turn in stored]
    agent_id = _exported_agent_id(choice, rows)
    written = agents.of(branch.state).writer.resumable(stored, agent_id, branch.state.name or branch.state.title)
    is_prefix = len(rows) == rows[-1].turn  # else lines at the start of a turn belong to the turn before it
    counts = (
        (written.dropped_calls, "tool call", "without a result"),
        (written.sidechain_lines, "line", "of subagents, which the client does not resume"),
        (written.unlinked_lines if is_prefix else 0, "line", "whose parent is missing"),
    )
    left_out = tuple(f"{humanize.format_count(count, what)} {why}" for count, what, why in counts if count)
    return ExportedLines(written.data, agent_id, left_out)


def _exported_agent_id(choice: ExportChoice, rows: Sequence[Row]) -> str:
    """Return the session's own id for the whole session. A part has another id, the same each time, so that it is not
    taken for the whole."""
    agent_id = choice.branch.state.agent_id
    if choice.tools and len(rows) == choice.branch.state.turns and not layout.is_side_branch(choice.branch.name):
        return agent_id
    numbers = ",".join(str(row.turn) for row in rows)
    return ids.session_id(f"{choice.branch.name} {agent_id} {numbers} {'all' if choice.tools else 'words'}")


# Files


def file_name(choice: ExportChoice, rows: Sequence[Row], format_: str) -> str:
    """Return a name such as `a41f9c02-parser-rewrite.html`; for lines the name that the client expects."""
    branch = choice.branch
    if format_ == "jsonl":
        return f"{ids.session_id(_exported_agent_id(choice, rows))}.jsonl"
    called = canonical.printable(_session_title(branch.state, rows)).lower()
    slug = re.sub(r"[\W_]+", "-", called)[:_LONGEST_SLUG].strip("-")
    parts = dict.fromkeys((branch.name[:_SHORT_ID], *([slug] if slug else [])))
    return f"{'-'.join(parts)}{_FILE_SUFFIXES[format_]}"


def create_folder(folder: Path, *, replacing: bool) -> None:
    """Create a folder for files of an export; raises ConflictError if it has files and they may not be replaced."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise SessgitError(f"cannot write {folder}: {error.strerror or error}", ROOM) from error
    if not is_empty and not replacing:
        raise ConflictError(f"{folder} is not empty", "It was not changed. Write into it with `--force`.")


def output_path(output: Path, name: str, *, is_folder: bool) -> Path:
    """Return `output`, or the file `name` in it if it is, or must be, a folder."""
    if output.is_dir():
        return output / name
    folder = output if is_folder else output.parent
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}", "Create it first, or name another place.")
    return output


def write_export(path: Path, data: Iterable[bytes], *, replacing: bool = False) -> int:
    """Write a file, whole or not at all, over another one only if `replacing`; returns its size in bytes.

    It has the permissions of any new file of the user's.
    """
    if not replacing:
        _check_output_free(path)
    elif path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConflictError(f"{path} is {what}", "It was not changed. `-o -` writes to standard output.")
    temporary = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex[:8]}.tmp")
    size = 0
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            for piece in data:
                size += file.write(piece)
        _link_or_replace(temporary, path, replacing=replacing)
    except OSError as error:
        raise SessgitError(f"cannot write {path}: {error.strerror or error}", ROOM) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return size


def _link_or_replace(temporary: Path, path: Path, *, replacing: bool) -> None:
    if replacing:
        temporary.replace(path)
        return
    try:
        path.hardlink_to(temporary)  # and not a rename: it fails where a file is, however late that came
    except FileExistsError:
        _check_output_free(path)
        raise
    except OSError:  # a file system without links
        _check_output_free(path)
        temporary.replace(path)


def _check_output_free(path: Path) -> None:
    if os.path.lexists(path):
        raise ConflictError(f"{path} already exists", "It was not changed. Overwrite it with `--force`.")
