"""The index and the full-text index, against what they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessgit import agents
from sessgit.errors import SessgitError, StoreError
from sessgit.history.fulltext_update import TurnTexts
from sessgit.model import humanize
from sessgit.model.finding import Finding
from sessgit.store import fulltext
from sessgit.store.context import Context
from sessgit.store.fulltext import Texts
from sessgit.store.index import Index

_DELETE = "Delete it: the next command rebuilds it."


def check_index(index: Index) -> Iterator[Finding]:
    """Return a finding if rows of the index differ from those of a new one."""
    try:
        wrong = index.differing_branches()
    except SessgitError as error:
        yield Finding("wrong", "index", "index.sqlite3", str(error), error.hint or "sessgit doctor --fix")
        return
    if wrong:
        branches = humanize.format_count(len(wrong), "branch", "branches")
        what = f"its rows of {branches} differ from the commits, {wrong[0]} first"
        yield Finding("wrong", "index", "index.sqlite3", what, _DELETE)


def check_texts(context: Context) -> Iterator[Finding]:
    """Return a finding if the full-text index, if there is one, differs from the lines of its turns."""
    store = context.store
    tips = {name: tip for name, (tip, _) in context.index.tips().items()}
    place = store.paths.text.name

    def commits(name: str) -> dict[int, str]:
        return {row.turn: row.commit for row in context.index.turns(name)}

    def lines(commit: str, number: int) -> Sequence[Texts] | None:
        try:
            return TurnTexts(agents.of_commit(store, commit), store, commit, number).lines()
        except (SessgitError, ValueError):
            return None  # reported with its commit

    try:
        wrong = fulltext.differing_branches(store.path, tips, commits, lines)
    except StoreError as error:
        yield Finding("wrong", "index", place, str(error), _DELETE)
        return
    if wrong:
        branches = humanize.format_count(len(wrong), "branch", "branches")
        what = f"its words of {branches} differ from their turns, {wrong[0]} first"
        yield Finding("wrong", "index", place, what, _DELETE)
