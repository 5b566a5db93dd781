"""Where in a row something went bad, asked of as few places as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "bad", "skip"]
_LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class TestResult:
    """What a turn was found to be, and `why` in words for a person.

    Of a command there are the `commit` that it ran at, its exit code (None where it was stopped), how many seconds it
    took and the end of what it printed. `cells` are the calls that fitted, by their ordinals in the turn; where any of
    them failed only those.
    """

    verdict: Verdict
    why: str = ""
    commit: str = ""
    exit_code: int | None = None
    seconds: float | None = None
    output: str = ""
    cells: tuple[int, ...] = ()

    @property
    def last_words(self) -> str:
        """The last line of the output that is not empty, cut where it is long."""
        return last_words(self.output)


def last_words(output: str) -> str:
    """The last line that is not empty, cut where it is long."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:_LONGEST_WORDS] if lines else ""


def find_boundary(row: Sequence[int], ask: Callable[[int, int], Verdict]) -> tuple[int, int]:
    """A good place and a bad one of the row behind it, with none between them that could be asked.

    The first of the row is good and the last bad, as the caller knows. `ask` is given the place, and how many there are
    left with it; of a row without skips it is asked a logarithm of times. Where one is skipped, the next to be asked
    lies far from it: what cannot be tested often comes in clumps.
    """
    good, bad, left, skips = row[0], row[-1], list(row[1:-1]), 0
    while left:
        at = int(len(left) * _bisection_fraction(skips + 1))
        place = left[at]
        match ask(place, len(left)):
            case "good":
                good, left, skips = place, left[at + 1 :], 0
            case "bad":
                bad, left, skips = place, left[:at], 0
            case _:
                del left[at]
                skips += 1
    return good, bad


def _bisection_fraction(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8, …: the bits of the number behind the point, mirrored."""
    found, part = 0.0, 0.5
    while number:
        found += part * (number & 1)
        number >>= 1
        part /= 2
    return found
