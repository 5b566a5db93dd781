"""The scratchpad of a session, as a program uses it."""

from __future__ import annotations

from collections.abc import Collection

from sessgit.api.opened import OpenStore
from sessgit.api.values import check_word
from sessgit.branch import edit as edits
from sessgit.branch import pad_changes
from sessgit.branch.pad_changes import EntryPlace, MakeChange
from sessgit.history import pad_lists
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES
from sessgit.model.conversation.session import Session as SessionState
from sessgit.model.pad import Entry
from sessgit.model.pad import Pad as Lists


class Pad:
    """The entries of a session's scratchpad. Each change is one commit, which `sessgit undo` reverts.

    An entry is named by its id, or the beginning of it. Errors are those of `sessgit pad`: UsageError for text that is
    empty or too long, NotFoundError for an unknown entry.
    """

    def __init__(self, store: OpenStore, session: str) -> None:
        self._store, self._session = store, session

    def entries(self, *kinds: str) -> list[Entry]:
        """Return the entries of these kinds, or all, in their order.

        The kinds are insight, evidence, risk, counter, pattern, question, claim, tension, thesis, pass, confidence,
        cycle and file.
        """
        pad = self._read()[0]
        return pad.of(*kinds) if kinds else list(pad.entries)

    def add(
        self, kind: str, text: str, *, turn: int | None = None, source: str = "", between: Collection[str] = ()
    ) -> Entry:
        """Add an entry, unless one with the same text exists. `between` names the claims of a tension."""
        check_word("kind of entry", kind, pads.DOUBLED)
        return self._add(pad_changes.add_entry(kind, text, EntryPlace(turn, source), tuple(between)))

    def thesis(self, text: str) -> Entry:
        """Replace the thesis."""
        return self._add(pad_changes.set_thesis(text, EntryPlace(None)))

    def passed(self, form: str, text: str) -> Entry:
        """Add a pass over the material: expansion, compression, critique or synthesis."""
        check_word("pass", form, pads.PASSES)
        return self._add(pad_changes.add_pass(form, text, EntryPlace(None)))

    def resolve(self, entry: str, answer: str = "") -> Entry:
        """Resolve a tension, or answer a question."""
        return self._add(pad_changes.resolve_entry(entry, answer))

    def drop(self, *entries: str) -> None:
        """Remove entries; the history keeps them."""
        self._perform(pad_changes.drop_entries(entries))

    def stage(self, stage: str) -> None:
        """Set the stage: gathering, shaping, critiquing or synthesized."""
        check_word("stage", stage, STAGES)
        self._perform(pad_changes.change_stage(stage))

    def confidence(self, value: float, why: str = "") -> None:
        """Set the confidence in the result, from 0 to 1."""
        self._perform(pad_changes.change_confidence(edits.parse_confidence(f"{value!r}"), why, EntryPlace(None)))

    def cycle(self) -> None:
        """Begin the next cycle."""
        self._perform(pad_changes.begin_cycle())

    def compact(self) -> None:
        """Merge duplicates and remove passes of old cycles."""
        self._perform(pad_changes.compact_pad())

    def next_step(self) -> pads.Step:
        """Return the next step that the stage and the entries suggest."""
        pad, state = self._read()
        return pads.next_step(pad, state)

    def brief(self) -> str:
        """Return the scratchpad as text for a model that continues, ``""`` if it is empty."""
        pad, state = self._read()
        return pads.pad_brief(pad, state)

    def _read(self) -> tuple[Lists, SessionState]:
        with self._store.lock:
            context = self._store.context
            branch = context.branch(self._session)
            return pad_lists.read_pad(context.store, branch.tip), branch.state

    def _add(self, change: MakeChange) -> Entry:
        return self._perform(change).change.entries[0]

    def _perform(self, change: MakeChange) -> pad_changes.PadResult:
        with self._store.lock:
            context = self._store.context
            return pad_changes.perform_change(context, self._session, change)
