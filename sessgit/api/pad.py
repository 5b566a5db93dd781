"""The scratchpad of a session, as a program uses it."""

from __future__ import annotations

from collections.abc import Collection

from sessgit.api.recorded import Recorded
from sessgit.branch import edit as edits
from sessgit.branch import pad_changes
from sessgit.branch.pad_changes import Change, Place
from sessgit.errors import UsageError
from sessgit.history import pad_lists
from sessgit.history.resolve import title
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

    def __init__(self, session: Recorded) -> None:
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
        _check("kind of entry", kind, pads.DOUBLED)
        return self._one(pad_changes.add(kind, text, Place(turn, source), tuple(between)))

    def thesis(self, text: str) -> Entry:
        """The thesis, in the place of the one before."""
        return self._one(pad_changes.thesis(text, Place(None)))

    def passed(self, form: str, text: str) -> Entry:
        """A pass over the material: expansion, compression, critique or synthesis."""
        _check("pass", form, pads.PASSES)
        return self._one(pad_changes.passed(form, text, Place(None)))

    def resolve(self, entry: str, answer: str = "") -> Entry:
        """A tension is settled, or a question answered."""
        return self._one(pad_changes.resolve(entry, answer))

    def drop(self, *entries: str) -> None:
        """Takes entries off; the history keeps them."""
        self._perform(pad_changes.drop(entries))

    def stage(self, stage: str) -> None:
        """How far it has come: gathering, shaping, critiquing or synthesized."""
        _check("stage", stage, STAGES)
        self._perform(pad_changes.stage(stage))

    def confidence(self, value: float, why: str = "") -> None:
        """How sure the result is, from 0 to 1."""
        self._perform(pad_changes.confidence(edits.confidence(f"{value!r}"), why, Place(None)))

    def cycle(self) -> None:
        """Begins the next cycle."""
        self._perform(pad_changes.cycle())

    def compact(self) -> None:
        """Unites doubles and leaves passes of cycles long past to the history."""
        self._perform(pad_changes.compact())

    def next_step(self) -> pad_steps.Step:
        """What the stage and the entries suggest to do next."""
        state = self._session.state
        return pad_steps.next_step(self._read(), state.id, state.stage, state.confidence)

    def brief(self) -> str:
        """All of it as a text for whoever goes on; ``""`` where nothing is noted."""
        state = self._session.state
        return pad_steps.brief(self._read(), state.id, title(state), state.stage, state.confidence)

    def _read(self) -> Lists:
        tip = self._session.tip
        with self._session.store.lock:
            return pad_lists.pad(self._session.store.world.store, tip)

    def _one(self, change: Change) -> Entry:
        return self._perform(change).wanted.entries[0]

    def _perform(self, change: Change) -> pad_changes.Done:
        store = self._session.store
        with store.lock:
            world = store.world
            return pad_changes.perform(world.store, world.index, self._session.id, change, world.now())


def _check(what: str, word: str, known: Collection[str]) -> None:
    if word not in known:
        raise UsageError(f"“{word}” is not a {what}", f"Use one of {', '.join(known)}. Nothing was changed.")
