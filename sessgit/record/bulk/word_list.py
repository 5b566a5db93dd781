"""The words of turns that are gathered, put aside for whoever indexes them: nobody reads those turns again for that.

They are never missed: a turn that is not here is read from the store.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.history.fulltext_update import line_texts
from sessgit.store.fulltext.index import Words, words_of

_MOST_BYTES = 512 << 20
"""So many bytes are put aside at most, of all that is gathered: they are on the disk until the words are indexed."""

WordOffsets = Mapping[str, tuple[int, int]]
"""By the commit with which a turn ends where it begins in a file, and how many bytes it takes."""


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What is indexed of a turn, and the id of its body's blob."""

    blob: str
    held: Words

    def words(self) -> Words:
        """What is indexed of it."""
        return self.held


class WordWriter:
    """Puts words aside in a file that grows with each turn, at `path`; where it cannot be written, it holds nothing."""

    def __init__(self, path: Path) -> None:
        self.places: dict[str, tuple[int, int]] = {}
        self._path, self._length = path, 0
        self._file: IO[bytes] | None = None
        with suppress(OSError):
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")

    def put(self, agent: Agent, commit: str, blob: str, body: Sequence[Line]) -> None:
        """Puts aside the words of a turn, by the commit that ends with it."""
        if self._file is None:
            return
        words = words_of(line_texts(agent.content.texts(line, number) for number, line in enumerate(body, start=1)))
        data = pickle.dumps((blob, words.hashes, words.rows), pickle.HIGHEST_PROTOCOL)
        try:
            self._file.write(data)
        except OSError:
            self._give_up()
            return
        self.places[commit] = self._length, len(data)
        self._length += len(data)

    def close(self) -> None:
        """Lets go of the file, which is written then."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError:
                self._give_up()

    def _give_up(self) -> None:
        """Leaves what room there is to what must be written."""
        self.places.clear()
        file, self._file = self._file, None
        with suppress(OSError):
            if file is not None:
                file.close()
        with suppress(OSError):
            self._path.unlink()


class WordLists:
    """All that was put aside, in many files."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[Path, int, int]] = {}
        self._size = 0

    def take(self, path: Path, places: WordOffsets) -> None:
        """Knows of what lies in a file, or deletes it where enough lies aside."""
        size = sum(length for _, length in places.values())
        if self._size + size > _MOST_BYTES:
            with suppress(OSError):
                path.unlink()
            return
        self._size += size
        self._places.update((commit, (path, *place)) for commit, place in places.items())

    def at(self, commit: str) -> TurnWords | None:
        """The turn that a commit ends with, or None where it was not put aside or cannot be read."""
        if commit not in self._places:
            return None
        path, start, length = self._places[commit]
        try:
            with path.open("rb") as file:
                file.seek(start)
                # A process of this import wrote it, into a folder of the store that nobody else may enter.
                blob, hashes, rows = pickle.loads(file.read(length))
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return TurnWords(blob, Words(hashes, rows))
