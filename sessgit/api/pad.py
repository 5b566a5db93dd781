"""The scratchpad of a session, as a program uses it."""

from __future__ import annotations

from collections.abc import Collection

from sessgit.api.recorded import RecordedSession
from sessgit.branch import edit as edits
from sessgit.branch import pad_changes
from sessgit.branch.pad_changes import EntryPlace, MakeChange
from sessgit.errors import UsageError
from sessgit.history import pad_lists
from sessgit.history.resolve import session_title
from sessgit.model import pad as pads
from sessgit.model import pad_steps
from sessgit.model.conversation.session import STAGES
from sessgit.model.pad import Entry
from sessgit.model.pad import Pad as Lists


class Pad:
    """What is noted on a session. Each change is one commit, which `sessgit undo` takes back.

    Everywhere an entry is named by its id, or by the beginning of it. Errors are those of `sessgit pad`: UsageError
    for words that are too long or empty, NotFoundError for an entry that is not there.
    """

    def __init__(self, session: RecordedSession) -> None:
        self._session = session

    def entries(self, *kinds: str) -> list[Entry]:
        """The entries of these kinds, or of all, in their order.

        The kinds are insight, evidence, risk, counter, pattern, question, claim, tension, thesis, pass, confidence,
        cycle and file.
        """
        found = self._read()
        return found.of(*kinds) if kinds else list(found.entries)

    def add(
        self, kind: str, text: str, *, turn: int | None = None, source: str = "", between: Collection[str] = ()
    ) -> Entry:
        """Notes something; what is there already in the same words is left as it is. `between` are claims that a
        tension is between."""
        _check_word("kind of entry", kind, pads.DOUBLED)
        return self._one(pad_changes.add_entry(kind, text, EntryPlace(turn, source), tuple(between)))

    def thesis(self, text: str) -> Entry:
        """The thesis, in the place of the one before."""
        return self._one(pad_changes.set_thesis(text, EntryPlace(None)))

    def passed(self, form: str, text: str) -> Entry:
        """A pass over the material: expansion, compression, critique or synthesis."""
        _check_word("pass", form, pads.PASSES)
        return self._one(pad_changes.add_pass(form, text, EntryPlace(None)))

    def resolve(self, entry: str, answer: str = "") -> Entry:
        """A tension is settled, or a question answered."""
        return self._one(pad_changes.resolve_entry(entry, answer))

    def drop(self, *entries: str) -> None:
        """Takes entries off; the history keeps them."""
        self._perform(pad_changes.drop_entries(entries))

    def stage(self, stage: str) -> None:
        """How far it has come: gathering, shaping, critiquing or synthesized."""
        _check_word("stage", stage, STAGES)
        self._perform(pad_changes.change_stage(stage))

    def confidence(self, value: float, why: str = "") -> None:
        """How sure the result is, from 0 to 1."""
        self._perform(pad_changes.change_confidence(edits.parse_confidence(f"{value!r}"), why, EntryPlace(None)))

    def cycle(self) -> None:
        """Begins the next cycle."""
        self._perform(pad_changes.begin_cycle())

    def compact(self) -> None:
        """Unites doubles and leaves passes of cycles long past to the history."""
        self._perform(pad_changes.compact_pad())

    def next_step(self) -> pad_steps.Step:
        """What the stage and the entries suggest to do next."""
        state = self._session.state
        return pad_steps.next_step(self._read(), state.id, state.stage, state.confidence)

    def brief(self) -> str:
        """All of it as a text for whoever goes on; ``""`` where nothing is noted."""
        state = self._session.state
        return pad_steps.pad_brief(self._read(), state.id, session_title(state), state.stage, state.confidence)

    def _read(self) -> Lists:
        tip = self._session.tip
        with self._session.store.lock:
            return pad_lists.read_pad(self._session.store.world.store, tip)

    def _one(self, change: MakeChange) -> Entry:
        return self._perform(change).wanted.entries[0]

    def _perform(self, change: MakeChange) -> pad_changes.PadResult:
        store = self._session.store
        with store.lock:
            world = store.world
            return pad_changes.perform_change(world.store, world.index, self._session.id, change, world.now())


def _check_word(what: str, word: str, known: Collection[str]) -> None:
    if word not in known:
        raise UsageError(f"“{word}” is not a {what}", f"Use one of {', '.join(known)}. Nothing was changed.")
