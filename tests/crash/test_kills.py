"""Killed before every call that changes a file: what comes next finds all, and nobody has to mend anything."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from crashstories import STORIES, Story
from crashworld import LONG, Snapshot, World
from gate import Call, Gate

_DERIVED = ("index.sqlite3", "text.sqlite3")
_STEP = 5
"""Of the calls on derived files one in so many is tried."""
_SHORT = 2
"""So many kills of each story in the short form, which has only some of the stories."""
_STORIES = list(STORIES) if LONG else [
    "the first event", "an event after rewinds", "import", "a program", "fork with files beside", "merge, graft",
    "archive", "gc --prune", "push",
]  # fmt: skip


def points(calls: Sequence[Call], how: str) -> list[int]:
    """The numbers of the calls at which it is killed: where one is torn, writes of what is not derived."""
    of_derived = {n for n, call in enumerate(calls, 1) if any(name in call.path for name in _DERIVED)}
    found = [n for n in range(1, len(calls) + 1) if n not in of_derived]
    if how == "tear":
        return [n for n in found if calls[n - 1].kind == "write" and "/objects/" not in calls[n - 1].path]
    return sorted([*found, *sorted(of_derived)[::_STEP]])


def _few(numbers: Sequence[int], calls: Sequence[Call]) -> list[int]:
    """Some of them, those first where refs and files move: there a kill costs most."""
    chance = random.Random(len(calls))
    telling = [n for n in numbers if calls[n - 1].kind in ("rename", "link") and "/objects/" not in calls[n - 1].path]
    return sorted({chance.choice(telling or numbers), *chance.sample(numbers, _SHORT - 1)})


@pytest.fixture
def killed(world: World, request: pytest.FixtureRequest) -> Killing:
    return Killing(world, STORIES[request.param])


class Killing:
    def __init__(self, world: World, story: Story) -> None:
        self.world, self.story = world, story
        self.job = story.make(world)
        self.roots = [str(world.config if story.ours else world.root)]
        self.start: Snapshot = world.snapshot()
        self.picture = world.turns if story.grows else world.picture
        self.before = self.picture()
        self.world.reset(self.start)
        gate = Gate(self.roots)
        ended = world.run(self.job, gate)
        assert ended.code == 0, ended.said
        self.calls = ended.calls
        story.then(world)
        self.after = self.picture()
        self.codes = Counter[int]()

    def at(self, number: int, how: str) -> None:
        """Killed at a call; then what comes next."""
        world, story = self.world, self.story
        world.reset(self.start)
        place = str(self.calls[number - 1]).replace(str(world.root), "") if number <= len(self.calls) else "the end"
        told = f"{how} at {number} of {len(self.calls)}: {place}"
        gate = Gate(self.roots, lambda n, call: how if n == number else None, with_data=how == "tear")
        ended = world.run(self.job, gate)
        assert ended.code in (-9, 0), (told, ended)
        assert world.fsck() == "", told
        world.a_while_passes()
        story.then(world)
        found = self.picture()
        strange = list(self._strange(found))
        assert not strange or story.grows, (told, strange)
        ended = world.run(replace(self.job, seed="e") if story.new else self.job)
        assert ended.code in story.again, (told, ended)
        assert "Traceback" not in ended.said, (told, ended)
        self.codes[ended.code] += 1
        world.a_while_passes()
        world.done(world.cli("gc", now=0))
        if not story.new:
            assert difference(self.picture(), self.after) == {}, told
        # What is noted of a merge that nobody went on with stays: whoever does is told by it.
        left = [name for name in world.leftovers() if not (story.new and name.endswith(".append"))]
        assert left == [], told
        assert world.fsck() == "", told

    def _strange(self, found: dict[str, str]) -> Iterator[tuple[str, str, str]]:
        """What is neither as the job leaves it nor, where it is not complete, as it was before."""
        for key in {*found, *self.before, *self.after}:
            now, before, after = (each.get(key, "") for each in (found, self.before, self.after))
            if now != after and (self.story.complete or now != before):
                yield key, after, now


def difference(a: dict[str, str], b: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {key: (a.get(key, ""), b.get(key, "")) for key in {*a, *b} if a.get(key) != b.get(key)}


@pytest.mark.parametrize("killed", _STORIES, indirect=True)
def test_killed_at_every_call(killed: Killing) -> None:
    numbers = points(killed.calls, "kill")
    for number in numbers if LONG else _few(numbers, killed.calls):
        killed.at(number, "kill")
    for number in points(killed.calls, "tear") if LONG else []:
        killed.at(number, "tear")
