"""Killed before every call that changes a file, in the middle of writes, and at any moment: what comes next finds all,
and nobody has to mend anything."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from crashstories import STORIES, Story
from crashworld import LONG, Ended, Snapshot, World
from disk import Disk
from gate import Call, Gate

_DERIVED = ("index.sqlite3", "text.sqlite3", "/tmp/sessgit-", "/repair-")
_STEP = 5
"""Of the calls on derived files, and in folders that are there for a moment, one in so many is tried. So it is with
those that make an object ready and clear up after it: each one that writes it or gives it its name is tried."""
_SHORT = 2
"""So many kills of each story in the short form, which has only some of the stories."""
_PARTS = 4 if LONG else 1
"""In so many parts each story is told, so that several processes share it."""
_MOMENTS = 2
"""So many kills at a moment that nothing chose, in each part."""
_ONCE_IN = 3
"""After one in so many kills it is seen that the next event is recorded, where the story itself does not show that."""
_LATER = "5e551011-0000-4000-8000-00000000000c"
_STORIES = list(STORIES) if LONG else [
    "the first event", "an event after rewinds", "import", "a program", "fork with files beside", "merge, graft",
    "archive", "gc --prune", "push",
]  # fmt: skip
_TORN = "the first event"
"""The story in which the short form tears a write."""

Kill = Callable[[], Ended]


def points(start: Snapshot, calls: Sequence[Call], how: str) -> list[int]:
    """The numbers of the calls at which it is killed: of those that change something all, and of what is derived some;
    where one is torn, the writes of what is not derived."""
    disk, found, of_derived = Disk.of(start), list[int](), list[int]()
    for n, call in enumerate(calls, 1):
        if disk.changes(call):
            (of_derived if _is_one_of_many(call) else found).append(n)
        disk.do(call)
    if how == "tear":
        return [n for n in found if calls[n - 1].kind == "write" and "/objects/" not in calls[n - 1].path]
    return sorted([*found, *of_derived[::_STEP]])


def _is_one_of_many(call: Call) -> bool:
    is_ready = "/objects/" in call.path and call.kind in ("open", "mkdir", "unlink", "rmdir")
    return is_ready or any(name in call.path for name in _DERIVED)


def _few(numbers: Sequence[int], calls: Sequence[Call]) -> list[int]:
    """Some of them, those first where refs and files move: there a kill costs most."""
    chance = random.Random(len(calls))
    telling = [n for n in numbers if calls[n - 1].kind in ("rename", "link") and "/objects/" not in calls[n - 1].path]
    return sorted({chance.choice(telling or numbers), *chance.sample(numbers, _SHORT - 1)})


@pytest.fixture
def killed(world: World, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Killing:
    found = Killing(world, STORIES[request.param])
    request.addfinalizer(lambda: record_property("kills", dict(found.kills)))
    return found


class Killing:
    def __init__(self, world: World, story: Story) -> None:
        self.world, self.story = world, story
        self.job = story.make(world)
        self.roots = [str(world.config if story.ours else world.root)]
        self.start: Snapshot = world.snapshot()
        self.picture = world.turns if story.grows else world.picture
        self.before = self.picture()
        self.world.reset(self.start)
        self.took = world.done(self.job).took
        self.world.reset(self.start)
        gate = Gate(self.roots)
        ended = world.run(self.job, gate)
        assert ended.code == 0, ended.said
        self.calls = ended.calls
        story.then(world)
        self.after = self.picture()
        self.kills = Counter[str]()

    def at(self, number: int, how: str) -> None:
        """Killed at a call; then what comes next."""
        place = (
            str(self.calls[number - 1]).replace(str(self.world.root), "") if number <= len(self.calls) else "the end"
        )
        gate = Gate(self.roots, lambda n, call: how if n == number else None, with_data=how == "tear")
        self._told(lambda: self.world.run(self.job, gate), how, f"{how} at {number} of {len(self.calls)}: {place}")

    def after_a_while(self, seconds: float) -> None:
        """Killed at a moment; then what comes next."""
        self._told(lambda: self.world.run(self.job, for_so_long=seconds), "moment", f"after {seconds * 1000:.1f} ms")

    def _told(self, kill: Kill, how: str, told: str) -> None:
        world, story = self.world, self.story
        world.reset(self.start)
        ended = kill()
        assert ended.code in (-9, 0), (told, ended)
        self.kills[how] += ended.code == -9
        assert not story.whole or world.fsck() == "", told
        world.a_while_passes()
        story.then(world)
        found = self.picture()
        strange = list(self._strange(found))
        assert not strange or story.grows, (told, strange)
        ended = world.run(replace(self.job, seed="e") if story.new else self.job)
        assert ended.code in story.again, (told, ended)
        assert "Traceback" not in ended.said, (told, ended)
        world.a_while_passes()
        world.done(world.cli("gc", now=0))
        if not story.new:
            assert difference(self.picture(), self.after) == {}, told
        assert world.leftovers() == [], told
        assert world.fsck() == "", told
        story.proof(world)
        if not self.kills.total() % _ONCE_IN:
            self._goes_on(told)

    def _goes_on(self, told: str) -> None:
        """The next event is recorded as if nothing had been."""
        self.world.talk(_LATER).turns("later").save(self.world.transcripts)
        self.world.next_event(self.world.talk(_LATER))
        assert f"refs/heads/{_LATER}" in self.world.picture(), told

    def _strange(self, found: dict[str, str]) -> Iterator[tuple[str, str, str]]:
        """What is neither as the job leaves it nor, where it is not complete, as it was before."""
        for key in {*found, *self.before, *self.after}:
            now, before, after = (each.get(key, "") for each in (found, self.before, self.after))
            if now != after and (self.story.complete or now != before):
                yield key, after, now


def difference(a: dict[str, str], b: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {key: (a.get(key, ""), b.get(key, "")) for key in {*a, *b} if a.get(key) != b.get(key)}


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("killed", _STORIES, indirect=True)
def test_killed_at_every_call(killed: Killing, part: int) -> None:
    numbers = points(killed.start, killed.calls, "kill")
    for number in numbers[part::_PARTS] if LONG else _few(numbers, killed.calls):
        killed.at(number, "kill")


@pytest.mark.parametrize("killed", _STORIES if LONG else [_TORN], indirect=True)
def test_killed_in_the_middle_of_a_write(killed: Killing) -> None:
    numbers = points(killed.start, killed.calls, "tear")
    for number in numbers if LONG else numbers[-1:]:
        killed.at(number, "tear")


if LONG:

    @pytest.mark.parametrize("killed", _STORIES, indirect=True)
    def test_killed_at_any_moment(killed: Killing) -> None:
        chance = random.Random(killed.job.words[0])
        for _ in range(_MOMENTS * _PARTS):
            killed.after_a_while(chance.uniform(0, killed.took))
