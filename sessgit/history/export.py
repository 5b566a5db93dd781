"""A session as a story, for documents that people read and share, and as lines in the client's own form."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.errors import ROOM, ConflictError, NotFoundError, SessgitError, UsageError
from sessgit.history import documents, show
from sessgit.history import log as logs
from sessgit.history.reassemble import turn_lines
from sessgit.history.resolve import row_of, session_title
from sessgit.history.views import Prices, turn_gists
from sessgit.model import canonical, humanize, ids, prices
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.story import Heading, Relative, Story, StoryTurn
from sessgit.model.conversation.turn import Tokens, add_by_model
from sessgit.model.progress import Progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite import ancestry
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

_RANGE = re.compile(r"([0-9]{1,9})?(-)?([0-9]{1,9})?")
_MOST_FAMILY = 100
_LONGEST_SLUG = 40
_SHORT_ID = 8
_FILE_SUFFIXES = {"markdown": ".md", "html": ".html", "json": ".json"}


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """What of a branch is exported: the turns up to `end`, or those of them that `turns` spells, as in `2,4-6`;
    without `tools` only what person and model said."""

    branch: Branch
    end: int | None = None
    turns: str = ""
    tools: bool = True


@dataclass(frozen=True, slots=True)
class ExportedLines:
    """Lines in the client's own form, as a file that it resumes under `agent_id`."""

    data: bytes
    agent_id: str


def chosen_rows(index: Index, choice: ExportChoice) -> list[Row]:
    """The turns that are exported, in order; raises NotFoundError where one of them is not there."""
    branch, name = choice.branch, layout.short_name(choice.branch.name)
    end = branch.state.turns if choice.end is None else choice.end
    if not end:
        hint = f"`sessgit log {name}` lists its turns." if branch.state.turns else "`sessgit ls` lists others."
        raise UsageError(f"{name} has no turns to export", hint)
    wanted = parse_ranges(choice.turns, end, name) if choice.turns else range(1, end + 1)
    rows = {row.turn: row for row in index.turns(branch.name, 1, end)}
    return [rows.get(number) or row_of(index, branch, number) for number in wanted]


def parse_ranges(text: str, end: int, name: str = "") -> list[int]:
    """The turns that `2,4-6`, `3-` or `-9` spells, in order, each once, where `name` has turns 1 to `end`.

    Raises UsageError, and NotFoundError for a turn that is not there.
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
    """The secrets that stand replaced in the turns."""
    return sum(store.message(commit).number("Redacted") or 0 for row in rows for commit in row.commits)


# The story


def export_story(store: Store, index: Index, choice: ExportChoice, rows: Sequence[Row], overrides: Prices) -> Story:
    """What is told of the session as a whole; `rows` are the turns that are told."""
    branch = choice.branch
    whole = len(rows) == branch.state.turns
    tokens = dict(branch.state.tokens) if whole else _tokens_by_model(store, index, branch, rows)
    family = _family_relatives(index, logs.session_family(index, branch), layout.session_of(branch.name), rows)
    left = [one for several in logs.branch_log(index, branch, limit=0).left.values() for one in several]
    return Story(
        branch=branch.name,
        commit=branch.tip,
        title=_session_title(branch.state, rows),
        state=branch.state,
        contents=tuple(Heading(row.turn, index.title(row)) for row in rows),
        family=tuple(family[:_MOST_FAMILY]),
        relatives=max(0, len(family) - _MOST_FAMILY),
        tokens=tokens,
        cost=prices.token_cost(tokens, overrides),
        redacted=count_redacted(store, rows),
        rewound=sum(one.open for one in left if one.rewound),
        elsewhere=sum(one.open for one in left if not one.rewound),
        tools=choice.tools,
    )


def read_story_turns(
    store: Store, index: Index, choice: ExportChoice, rows: Sequence[Row], overrides: Prices, progress: Progress
) -> Iterator[StoryTurn]:
    """The turns in full, one after another, each read when it is asked for."""
    log = logs.branch_log(index, choice.branch, limit=0)
    for done, row in enumerate(rows):
        progress(done, len(rows))
        forks = tuple(_make_relative(fork.branch, rows, fork.turn) for fork in log.forks.get(row.turn, ()))
        asides = [one for one in log.left.get(row.turn, ()) if one.open]
        left, elsewhere = ({one.branch.name: one.open for one in asides if one.rewound == is_} for is_ in (True, False))
        yield replace(_read_story_turn(store, choice, row, overrides), forks=forks, left=left, elsewhere=elsewhere)
    progress(len(rows), len(rows))


def _read_story_turn(store: Store, choice: ExportChoice, row: Row, overrides: Prices) -> StoryTurn:
    turn, found = show.read_pieces(store, choice.branch, row)
    pieces = [replace(one, input=canonical.bounded(one.input)) if isinstance(one, Call) else one for one in found]
    return StoryTurn(
        number=row.turn,
        turn=turn if turn.time else replace(turn, time=canonical.rfc3339(row.time)),
        pieces=tuple(piece for piece in pieces if choice.tools or _is_conversation(piece)),
        about={piece.ordinal: piece.about for piece in pieces if isinstance(piece, Call)},
        cost=prices.token_cost(turn.tokens, overrides),
        compacted=row.compacted,
        summary=_compaction_summary(store, choice.branch, row) if row.compacted and choice.tools else "",
    )


def _compaction_summary(store: Store, branch: Branch, row: Row) -> str:
    """What a compaction before the turn made of the conversation so far."""
    agent = agents.of(branch.state)
    return agent.writer.summary(agent.lines.parsed(store.lines(branch.tip, row.turn).before))


def _is_conversation(piece: Piece) -> bool:
    """Whether a person or the model said it to the other."""
    return isinstance(piece, Words) and not piece.thinking and piece.by != "client"


def _tokens_by_model(store: Store, index: Index, branch: Branch, rows: Sequence[Row]) -> dict[str, Tokens]:
    out: dict[str, Tokens] = {}
    for gist in turn_gists(store, index, branch, rows):
        out = add_by_model(out, dict(gist.tokens))
    return out


def _family_relatives(index: Index, members: Sequence[Branch], own: str, rows: Sequence[Row]) -> list[Relative]:
    """The members with each fork behind the one it left; a session on its own has no family."""
    if len(members) < 2:
        return []
    forks: dict[str, list[Branch]] = {}
    for member in members[1:]:
        assert member.state.origin is not None
        forks.setdefault(layout.session_of(member.state.origin.session), []).append(member)
    out, waiting = [], [(members[0], 0)]
    while waiting:
        member, depth = waiting.pop()
        at = ancestry.fork_place(index, member) if depth else None
        left = logs.last_shared_turn(index, layout.session_of(at.branch), at) if at else None
        out.append(replace(_make_relative(member, rows, left), depth=depth, own=member.name == own))
        waiting += [(fork, depth + 1) for fork in reversed(forks.pop(member.name, []))]
    return out


def _make_relative(branch: Branch, rows: Sequence[Row], left: int | None) -> Relative:
    return Relative(branch.name, _session_title(branch.state, rows), branch.state.turns, left=left)


def _session_title(state: Session, rows: Sequence[Row]) -> str:
    """What a person calls the session; by its first prompt only where the turns that are told begin with that one."""
    return session_title(state) if state.name or state.title or rows[0].turn == 1 else state.id[:_SHORT_ID]


# The JSON


def export_document(
    store: Store, index: Index, choice: ExportChoice, rows: Sequence[Row], overrides: Prices, progress: Progress
) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The session as `show --json` gives it, and each turn, read when it is asked for, with what the client noted
    beside its calls.

    Of a part of the conversation the session has nothing that other turns, or tools, said.
    """
    branch = choice.branch
    session = documents.session_document(store, index, branch, overrides, progress)
    if not choice.tools or len(rows) != branch.state.turns:
        session["files"], session["program"]["memory"] = {}, {}
        if rows[0].turn != 1:
            session["first_prompt"] = ""
    return session, (_turn_document(store, index, choice, row, overrides) for row in rows)


def _turn_document(store: Store, index: Index, choice: ExportChoice, row: Row, overrides: Prices) -> dict[str, Any]:
    shown = show.show_turn(store, index, choice.branch, row.turn)
    if not choice.tools:
        shown = replace(shown, pieces=[piece for piece in shown.pieces if _is_conversation(piece)], subagents=[])
    out = documents.turn_document(shown, overrides)
    if not choice.tools:
        out |= {"tools": {}, "cells": [], "files": [], "files_read": [], "files_changed": []}
    noted = {one.ordinal: canonical.bounded(one.result) for one in shown.pieces if isinstance(one, Call)}
    for piece in out["pieces"]:
        if piece["kind"] == "call":
            piece["client_note"] = noted[piece["ordinal"]]
    return out


# Lines


def export_lines(store: Store, choice: ExportChoice, rows: Sequence[Row]) -> ExportedLines:
    """The turns as lines in the client's own form, in one chain that it resumes."""
    branch = choice.branch
    stored = [turn_lines(store, branch.tip, branch.state, row.turn) for row in rows]
    if not choice.tools:
        stored = [agents.of(branch.state).writer.spoken(turn) for turn in stored]
    agent_id = _exported_agent_id(choice, rows)
    written = agents.of(branch.state).writer.resumable(stored, agent_id, branch.state.name or branch.state.title)
    return ExportedLines(written.data, agent_id)


def _exported_agent_id(choice: ExportChoice, rows: Sequence[Row]) -> str:
    """The session's own id for the whole of it; a part has one of its own, the same each time, so that nothing
    takes it for the whole."""
    agent_id = choice.branch.state.agent_id
    if choice.tools and len(rows) == choice.branch.state.turns and not layout.is_side_branch(choice.branch.name):
        return agent_id
    numbers = ",".join(str(row.turn) for row in rows)
    return ids.session_id(f"{choice.branch.name} {agent_id} {numbers} {'all' if choice.tools else 'words'}")


# Files


def file_name(choice: ExportChoice, rows: Sequence[Row], format_: str) -> str:
    """`a41f9c02-parser-rewrite.html`; for lines the name by which the client resumes them."""
    branch = choice.branch
    if format_ == "jsonl":
        return f"{ids.session_id(_exported_agent_id(choice, rows))}.jsonl"
    called = canonical.printable(_session_title(branch.state, rows)).lower()
    slug = re.sub(r"[\W_]+", "-", called)[:_LONGEST_SLUG].strip("-")
    parts = dict.fromkeys((branch.name[:_SHORT_ID], *([slug] if slug else [])))
    return f"{'-'.join(parts)}{_FILE_SUFFIXES[format_]}"


def output_path(output: Path, name: str, *, is_folder: bool) -> Path:
    """The file that `output` means: itself, or one called `name` in it where it is, or must be, a folder."""
    if output.is_dir():
        return output / name
    folder = output if is_folder else output.parent
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}", "Create it first, or name another place.")
    return output


def write_export(path: Path, data: Iterable[bytes], *, replacing: bool = False) -> int:
    """Puts a file at `path`, whole or not at all, and over another one only if `replacing`; its size in bytes.

    Whoever may read it is as for any new file of the user's.
    """
    if not replacing:
        _check_output_free(path)
    elif path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConflictError(f"{path} is {what}", "It was not changed. `-o -` writes to standard output.")
    beside = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex[:8]}.tmp")
    size = 0
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            for piece in data:
                size += file.write(piece)
        _link_or_replace(beside, path, replacing=replacing)
    except OSError as error:
        raise SessgitError(f"cannot write {path}: {error.strerror or error}", ROOM) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return size


def _link_or_replace(beside: Path, path: Path, *, replacing: bool) -> None:
    if replacing:
        beside.replace(path)
        return
    try:
        path.hardlink_to(beside)  # and not a rename: it fails where a file is, however late that came
    except FileExistsError:
        _check_output_free(path)
        raise
    except OSError:  # a file system without links
        _check_output_free(path)
        beside.replace(path)


def _check_output_free(path: Path) -> None:
    if os.path.lexists(path):
        raise ConflictError(f"{path} already exists", "It was not changed. Overwrite it with `--force`.")
