"""New sessions recorded into a pack of their own, which nobody sees before it is brought into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import ROOM, SessgitError, StoreError
from sessgit.ops.bulk import families
from sessgit.ops.bulk.families import Failure, File
from sessgit.ops.bulk.spoken import Places, Writer
from sessgit.ops.recording.record import Aside, record
from sessgit.ops.recording.source import Rules
from sessgit.store.packing.gathering import GatheringIndex, GatheringStore, Rows

_WORDS = "words"

Told = Callable[[int], None]
"""Called with the bytes of a file that is done."""


@dataclass(frozen=True, slots=True)
class Task:
    """Families of transcripts of which the store has nothing, and how to record them; `folder` is where that is
    done, and is made for it."""

    store: Path
    folder: Path
    families: Sequence[Sequence[File]]
    config: Path
    rules: Rules


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: the numbers of how many turns were recorded, whether a ref moved, and why nothing was
    recorded."""

    file: File
    turns: int
    changed: bool
    aside: Aside = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was recorded, ready to be brought in: the pack and what the recorder keeps lie in `folder`.

    `pack` is its name or empty, `refs` are those to make, `rows` what the index gets. `asked` are the prompts of
    which the recorder asked whether other sessions begin with them: it was told of those in here alone. `spoken` says
    where in `words` the words of each turn lie.
    """

    folder: Path
    pack: str
    refs: dict[str, str]
    rows: Rows
    asked: frozenset[str]
    outcomes: tuple[Outcome, ...]
    errors: tuple[Failure, ...]
    spoken: Places

    @property
    def words(self) -> Path:
        """The file of what was said."""
        return self.folder / _WORDS


def gather(task: Task, told: Told) -> Gathered:
    """Records the families one after the other; raises StoreError where nothing can be written."""
    try:
        task.folder.mkdir(mode=0o700)
    except OSError as error:
        raise StoreError(f"cannot write to the store: {error.strerror or error}", ROOM) from error
    store = GatheringStore(task.store, task.folder)
    index = GatheringIndex(store)
    spoken = Writer(task.folder / _WORDS)
    errors, outcomes = list[Failure](), list[Outcome]()
    try:
        for members in task.families:
            for file in families.parents_first(members, errors):
                try:
                    done = record(store, index, file.source(task.config, ()), task.rules, spoken.put)
                except StoreError:
                    raise  # it is not the file's fault, and the next one would fare no better
                except SessgitError as error:
                    errors.append(Failure(file.path, str(error)))
                else:
                    outcomes.append(Outcome(file, len(done.turns), done.changed, done.aside))
                told(file.size)
        asked = index.first_prompts() | {file.root for members in task.families for file in members}
        pack = store.repo.finish()
        spoken.close()
        return Gathered(
            task.folder, pack, store.repo.branches, index.rows(), frozenset(asked - {""}), tuple(outcomes),
            tuple(errors), spoken.places,
        )  # fmt: skip
    finally:
        spoken.close()
        index.close()
