"""The index, the text index and the cursors against what they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sessgit import agents
from sessgit.check.verifying.turns import Where
from sessgit.errors import SessgitError, StoreError
from sessgit.history.fulltext_update import TurnTexts
from sessgit.history.reassemble import Piece
from sessgit.model import humanize
from sessgit.model.finding import Finding
from sessgit.record.recorded_turns import matches_cursor
from sessgit.store.fulltext import checking
from sessgit.store.fulltext.index import Texts
from sessgit.store.index import Index
from sessgit.store.recorder import cursor as cursors
from sessgit.store.sqlite import rebuild
from sessgit.store.store import Store

_DELETE = "Delete it: the next command rebuilds it."


def check_index(index: Index) -> Iterator[Finding]:
    """The rows of the index against what a new one would have."""
    try:
        wrong = rebuild.differing_branches(index)
    except SessgitError as error:
        yield Finding("wrong", "index", "index.sqlite3", str(error), error.hint or "sessgit doctor --fix")
        return
    if wrong:
        branches = humanize.format_count(len(wrong), "branch", "branches")
        what = f"its rows of {branches} differ from the commits, {wrong[0]} first"
        yield Finding("wrong", "index", "index.sqlite3", what, _DELETE)


def check_texts(store: Store, index: Index) -> Iterator[Finding]:
    """The text index, where there is one, against the lines of the turns that it has."""
    tips = {name: tip for name, (tip, _) in index.tips().items()}
    place = store.beside.text.name

    def commits(name: str) -> dict[int, str]:
        return {row.turn: row.commit for row in index.turns(name)}

    def lines(commit: str, number: int) -> Sequence[Texts] | None:
        try:
            return TurnTexts(agents.of_commit(store, commit), store, commit, number).lines()
        except (SessgitError, ValueError):
            return None  # told where it was met

    try:
        wrong = checking.differing_branches(store.path, tips, commits, lines)
    except StoreError as error:
        yield Finding("wrong", "index", place, str(error), _DELETE)
        return
    if wrong:
        branches = humanize.format_count(len(wrong), "branch", "branches")
        what = f"its words of {branches} differ from their turns, {wrong[0]} first"
        yield Finding("wrong", "index", place, what, _DELETE)


def check_cursor(store: Store, session: str, own: Mapping[str, str], pieces: Sequence[Piece]) -> Iterator[Finding]:
    """A cursor that a recorder would go on from stands where what is recorded or pending ends, and not behind that."""
    known = cursors.load_cursor(store.beside, session)
    if known is None or known.current is None or not matches_cursor(store, session, own, known):
        return
    ends = [piece.extent.end for piece in pieces if piece.file == known.file]
    ends += [extent.end for extent in known.pending]
    if known.offset > max(ends, default=0):
        behind = humanize.format_count(known.offset - max(ends, default=0), "byte")
        what = f"its cursor is {behind} after the last recorded or pending line"
        mend = "Delete the cursor, then run `sessgit import FILE` to read its transcript from the beginning."
        yield Where(session).found("note", "cursor", what, mend)
