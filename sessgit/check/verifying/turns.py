"""A turn's folder against its own lines: every file of it is a function of them, and is made once more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sessgit.agents import turn_folder
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.agents.values import PLAIN
from sessgit.model import canonical, long_strings
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding, Severity
from sessgit.model.line_list import split_lines
from sessgit.store import layout
from sessgit.store.store import Store, lines_hash

_OWN = (layout.BEFORE, layout.BODY, layout.CELLS)
_FOLDERS = (layout.TEXTS, layout.SUBAGENTS, layout.FILES)
_Files = dict[str, list[bytes]]
"""By name what `split` makes of a file at its newlines."""
REPAIR = "`sessgit repair {session}` searches the conversation's file and remotes."


@dataclass
class Folder:
    """What a turn's folder holds: its lines and what they say, None where they cannot be read."""

    before: list[Line] = field(default_factory=list)
    body: list[Line] = field(default_factory=list)
    told: Turn | None = None

    @property
    def raw(self) -> list[bytes]:
        return [line.raw for line in (*self.before, *self.body)]


class Where:
    """The address that findings are told of, and the command that looks for what is missing."""

    def __init__(self, branch: str, number: int | None = None) -> None:
        self.branch, self.number = branch, number

    def __str__(self) -> str:
        return self.branch if self.number is None else f"{self.branch}@{self.number}"

    def found(self, severity: Severity, kind: str, what: str, mend: str = "", *objects: str) -> Finding:
        return Finding(severity, kind, str(self), what, mend, objects)

    def lost(self, store: Store, oid: str, what: str) -> Finding:
        """An object that cannot be read."""
        how = f"is {store.repo.read_problem(oid) or 'of another kind'}"
        mend = REPAIR.format(session=layout.session_of(self.branch))
        return self.found("damage", "object", f"{what} {how}: object {oid}", mend, oid)


def check(agent: Agent, store: Store, oid: str, where: Where, *, cut: int) -> tuple[Folder, list[Finding]]:
    """The folder with the id `oid`, and what is wrong with it. With `cut`, a version of the rules that
    this program knows, its files are made anew of its lines. Raises StoreError where one cannot be read."""
    entries = store.repo.tree(oid)
    found = [
        where.found("wrong", "file", f"a turn's folder has no file {canonical.one_line(name, 60)}")
        for name in sorted(entries.keys() - {*_OWN, *_FOLDERS})
    ]
    if layout.BODY not in entries:
        return Folder(), [*found, where.found("damage", "tree", f"it has no {layout.BODY}")]
    files = {name: store.repo.lines(entries[name][0]) for name in _OWN if name in entries}
    texts = store.repo.tree(entries[layout.TEXTS][0]) if layout.TEXTS in entries else {}
    long = {name: store.repo.blob(text) for name, (text, is_tree) in texts.items() if not is_tree}
    for name in (name for name in (layout.SUBAGENTS, layout.FILES) if name in entries):
        found += _named(agent, store, name, entries[name][0], where)
    if len(long) < len(texts):
        found.append(where.found("wrong", "tree", f"{layout.TEXTS} holds a folder"))
    found += _torn(files, where)
    if any(finding.severity == "damage" for finding in found):
        return Folder(), found
    made = _filled(agent, files, long)
    if not made.body:
        return Folder(), [*found, where.found("damage", "tree", f"{layout.BODY} is empty")]
    made.told = agent.cells.describe(made.body)
    if cut:
        found += _recomputed(agent, files, long, made, where, cut)
    return made, found


def check_key(agent: Agent, made: Folder, key: str, where: Where) -> Iterator[Finding]:
    """The key that a commit gives the turn: its prompt's uuid, where that can be one."""
    uuid = made.body[0].uuid if made.body else ""
    if agent.lines.is_name(uuid) and uuid != key:
        yield where.found("wrong", "trailer", f"its prompt is {uuid}, but the commit says {key}")


def check_lines(message: Message, lines: Sequence[bytes], where: Where, *, unended: bool) -> Iterator[Finding]:
    """The hash and the extents of a commit against the lines that they are of: the last ones of the folder. The length
    of an extent is only known where none of its lines was redacted; `unended` says that the last line has no newline.
    """
    extents, expected = message.extents, message.get("Lines-SHA256")
    count = sum(extent.lines for extent in extents)
    own = lines[len(lines) - count :]
    if len(extents) != len(message.all("Extent")):
        yield where.found("wrong", "extent", "an Extent cannot be read")
    if extents != messages.join_extents(extents, unended=message.is_unended and bool(extents)):
        yield where.found("wrong", "extent", "two adjacent extents are not joined")
    placed = sorted((extent.offset, extent.end) for extent in extents)
    if any(end > start for (_, end), (start, _) in pairwise(placed)):
        yield where.found("wrong", "extent", "two of its extents overlap")
    if bool(count) != bool(expected):
        yield where.found("wrong", "extent", "only one of Extent and Lines-SHA256 is present")
    if count > len(lines):
        yield where.found("damage", "extent", f"there are {len(lines)} lines, but the extents cover {count}")
        return
    if count and expected and lines_hash(own) != expected:
        yield where.found(
            "damage", "hash", "its lines differ from the recorded ones: Lines-SHA256 does not match",
            REPAIR.format(session=layout.session_of(where.branch)),
        )  # fmt: skip
    at = 0
    for extent in extents if not message.get("Redacted") else ():
        held, at = own[at : at + extent.lines], at + extent.lines
        if extent.length != sum(map(len, held)) + len(held) - (unended and at == count):
            yield where.found("wrong", "extent", f"the extent {extent} is not as long as its lines")
            return


# Inside


def _named(agent: Agent, store: Store, name: str, oid: str, where: Where) -> Iterator[Finding]:
    """What is beside the lines has names that the client gives."""
    for path in store.repo.files(oid, name):
        folder, _, last = path.rpartition("/")
        fits = agent.sidecars.is_subagent(last) if folder == layout.SUBAGENTS else bool(PLAIN.fullmatch(last))
        if folder not in (layout.SUBAGENTS, f"{layout.FILES}/tool-results") or not fits:
            yield where.found("wrong", "tree", f"{canonical.one_line(path, 80)} is not a file of the client")


def _torn(files: _Files, where: Where) -> Iterator[Finding]:
    for name in _OWN:
        if name in files and files[name][-1]:
            yield where.found("damage", "tree", f"{name} does not end with a newline")


def _filled(agent: Agent, files: _Files, long: Mapping[str, bytes]) -> Folder:
    before, body = (files.get(name, [])[:-1] for name in (layout.BEFORE, layout.BODY))
    if long:
        before, body = long_strings.fill_long_strings(before, long), long_strings.fill_long_strings(body, long)
    return Folder(agent.lines.parsed(before), agent.lines.parsed(body))


def _recomputed(
    agent: Agent, files: _Files, long: Mapping[str, bytes], made: Folder, where: Where, cut: int
) -> Iterator[Finding]:
    """Return a finding for each file of the folder that the turn's lines do not make."""
    assert made.told is not None
    every = turn_folder.files(agent, made.before, made.body, made.told, cut)
    wanted = {name: split_lines(data) if name in _OWN else data for name, data in every.items()}
    held = {**files, **{f"{layout.TEXTS}/{name}": data for name, data in long.items()}}
    wrong = sorted(name for name in wanted.keys() | held.keys() if wanted.get(name) != held.get(name))
    texts = [name for name in wrong if name != layout.CELLS]
    if layout.CELLS in wrong:
        yield where.found("wrong", "cells", f"{layout.CELLS} does not follow from the lines")
    if not texts:
        return
    # Where each name has its text, the lines are the same all the same.
    lines = [line for name in (layout.BEFORE, layout.BODY) for line in files.get(name, ())]
    named = set(long_strings.referenced_names(lines))
    if lost := sorted(named - long.keys()):
        yield where.found("damage", "text", f"{layout.TEXTS}/{lost[0]} is missing, but the lines name it")
    elif long.keys() - named:
        yield where.found("wrong", "text", f"{texts[0]} does not follow from the lines")
    else:
        yield Where(where.branch).found("note", "text", "its texts are cut by other rules than it says")
