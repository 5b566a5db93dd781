"""A turn and a cell that are open: what a block of a program writes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sessgit.api import validation
from sessgit.api.writer import Writer
from sessgit.errors import SessgitError
from sessgit.model.program_input import Outcome, Part, Saying


class OpenTurn:
    """A turn while its block runs; `number` is its number once it has ended and is recorded, 0 before."""

    def __init__(self, writer: Callable[[], Writer], key: str) -> None:
        self.key = key
        self.number = 0
        self._writer = writer
        self._is_over = False
        self._answer: tuple[str, str, Mapping[str, int]] = ("", "", {})

    def answer(self, text: str, *, model: str = "", tokens: Mapping[str, int] | None = None) -> None:
        """What the turn ends with; `tokens` are what it took of `model`, by kind. The last answer counts.

        Raises UsageError, with the one before left, where these are none.
        """
        validation.check_words(text, model, tokens or {})
        self._answer = (text, model, tokens or {})

    def say(self, text: str, *, model: str = "") -> None:
        """Words on the way to the answer."""
        self.add(Saying(text, model))

    def add(self, *parts: Part, model: str = "") -> None:
        """Calls of tools, whole cells, reasons and words: `ToolCall`, `Step`, `Reason`, `Saying`.

        Raises UsageError, with nothing added, where one of them is none.
        """
        self._writer().add(parts, model)

    def end(self) -> None:
        """Ends the turn and records it; a block does that by itself."""
        if not self._is_over:
            self._is_over = True
            self.number = self._writer().end_turn(*self._answer)

    def fail(self, error: BaseException) -> None:
        """Ends the turn with a note of what ended it behind the answer; what goes wrong with that is passed over."""
        text, model, _ = self._answer
        with suppress(SessgitError):
            if not self._is_over and text.strip():
                self.say(text, model=model)
        self._answer = (f"Ended by {type(error).__name__}: {error}".removesuffix(": "), "", {})
        with suppress(SessgitError):
            self.end()


class OpenCell:
    """A cell while its block runs; `result` is what it comes to."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.result: Any = None
        self.model = ""
        self.tokens: Mapping[str, int] = {}

    def __str__(self) -> str:
        return self.id

    def outcome(self, taken: float) -> Outcome:
        """What the cell came to; `taken` are milliseconds."""
        return Outcome(self.result, None, taken, self.model, self.tokens)
