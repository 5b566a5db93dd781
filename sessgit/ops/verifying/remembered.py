"""What is remembered so that nobody must read all again: rows of the index, and how far transcripts are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sessgit.errors import SessgitError
from sessgit.model import words
from sessgit.model.finding import Finding
from sessgit.ops.files.laying import Piece
from sessgit.ops.recording.history import goes_on
from sessgit.ops.verifying.turns import Where
from sessgit.store.index import Index
from sessgit.store.indexed import anew
from sessgit.store.recorder import cursor as cursors
from sessgit.store.store import Store


def check_index(index: Index) -> Iterator[Finding]:
    """The rows of the index against what a new one would have."""
    try:
        wrong = anew.differing(index)
    except SessgitError as error:
        yield Finding("wrong", "index", "index.sqlite3", str(error), error.hint or "sessgit doctor --fix")
        return
    if wrong:
        branches = words.counted(len(wrong), "branch", "branches")
        what = f"its rows of {branches} are not what the commits say, {wrong[0]} first"
        yield Finding("wrong", "index", "index.sqlite3", what, "Delete it: the next command makes it anew.")


def check_cursor(store: Store, session: str, own: Mapping[str, str], pieces: Sequence[Piece]) -> Iterator[Finding]:
    """A cursor that a recorder would go on from stands where what is recorded or pending ends, and not behind that."""
    known = cursors.load(store.beside, session)
    if known is None or known.current is None or not goes_on(store, session, own, known):
        return
    ends = [piece.extent.end for piece in pieces if piece.file == known.file]
    ends += [extent.end for extent in known.pending]
    if known.offset > max(ends, default=0):
        behind = words.counted(known.offset - max(ends, default=0), "byte")
        what = f"its cursor stands {behind} behind the last line that is recorded or pending"
        mend = "sessgit import FILE reads its transcript from the beginning once the cursor is deleted."
        yield Where(session).found("note", "cursor", what, mend)
