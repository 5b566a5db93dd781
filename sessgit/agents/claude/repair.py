"""A broken chain of lines, repaired so that every version of the client resumes it.

The lines of a branch come in and go out in their order: glued ones are separated, those of another session left out;
each uuid is there once, each parent before its line, each call with one result after it. A note of the client that no
message leads to may have its parent on a branch that a rewind left: the conversation is whole without it. A line that
needs no repair keeps its bytes. Every change is reported by line, and a second repair changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from sessgit.agents.claude.lines import (
    BODY_TYPES,
    ClaudeLine,
    blocks,
    call_ids,
    compact,
    message_id,
    objects_on,
    parsed,
    result_ids,
)  # fmt: skip
from sessgit.agents.claude.writer import session_ids
from sessgit.agents.line import NOWHERE, Line, parse
from sessgit.agents.values import Kind, Mend, Mended
from sessgit.model import canonical, ids
from sessgit.model.dependency_graph import find_cycle
from sessgit.model.stored_fields import string

LOST = "The result of this call was not recorded."
"""What replaces a missing result; it counts as an error."""
JUMP = 60.0
"""Seconds by which the last line may be earlier than another one: clients write some out of order."""

_CHAINED = (*BODY_TYPES, "system")
_TAKEN_OVER = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")
"""What an added line copies from the line that it belongs to."""


def mend(turns: Iterable[tuple[int, Sequence[bytes]]], agent_id: str, known: Sequence[str] = ()) -> Mended:
    """Return the lines of a session's turns, repaired. Its lines may also name the sessions `known`, which it was
    copied from."""
    return _Mender(turns, {agent_id, *known}).run()


@dataclass(eq=False, slots=True)
class Item:
    """A line under repair; `parent` is the uuid that it will name, "" at a beginning."""

    turn: int
    place: int
    raw: bytes
    data: dict[str, Any]
    uuid: str = ""
    parent: str = ""
    changed: bool = False
    out: bool = False

    @property
    def line(self) -> Line:
        """Return the line with its present data."""
        return ClaudeLine(self.raw, NOWHERE, self.data)

    @property
    def is_chained(self) -> bool:
        """Return whether other lines may name it as their parent."""
        return bool(self.uuid) and not self.data.get("isSidechain")

    @property
    def results(self) -> list[str]:
        """Return the ids of the calls whose results the line has."""
        return result_ids(self.line) if self.line.type == "user" and self.is_chained else []

    @property
    def message_id(self) -> str:
        """Return the id of the model's message that the line is a part of, or ""."""
        return message_id(self.line) if self.line.type == "assistant" else ""

    @property
    def content(self) -> tuple[Any, ...]:
        """Return what distinguishes two lines with one uuid."""
        return self.line.type, self.data.get("message"), self.data.get("attachment"), self.data.get("subtype")

    @property
    def written(self) -> bytes:
        """Return its bytes, the old ones if nothing was changed."""
        if not self.changed:
            return self.raw
        return compact(self.data | ({"uuid": self.uuid, "parentUuid": self.parent or None} if self.uuid else {}))

    def link(self, parent: str) -> None:
        self.parent, self.changed = parent, True


@dataclass
class _Mender:
    given: Iterable[tuple[int, Sequence[bytes]]]
    own: set[str]
    items: list[Item] = field(default_factory=list)
    mends: list[Mend] = field(default_factory=list)
    off: Collection[Item] = ()
    """The items off the chain, whose parents are not among them."""

    def run(self) -> Mended:
        for turn, lines in self.given:
            for place, raw in enumerate(lines, start=1):
                self.items += self._separated(turn, place, raw)
        self._leave_out_writers()
        self._make_uuids_unique()
        self._link_to_parents()
        self._open_cycles()
        self._pair_calls()
        self._open_cycles()  # an added line may have closed one
        self._check_sessions()
        self._set_times()
        turns: dict[int, list[bytes]] = {}
        for item in self.items:
            turns.setdefault(item.turn, []).append(item.written)
        return Mended(turns, tuple(sorted(self.mends, key=lambda mend: (mend.turn, mend.line))))

    def _say(self, kind: Kind, item: Item, what: str) -> None:
        self.mends.append(Mend(kind, item.turn, item.place, what))

    @property
    def chained(self) -> list[Item]:
        return [item for item in self.items if item.is_chained]

    def _by_uuid(self) -> dict[str, Item]:
        return {item.uuid: item for item in self.chained}

    # Lines

    def _separated(self, turn: int, place: int, raw: bytes) -> Iterator[Item]:
        """Yield the items of a line: one, several that were glued, or none."""
        data = parse(raw)
        objects = [(raw, data)] if data is not None else list(objects_on(raw))
        rest = raw.strip(b" \t\r\n\0")
        if data is None and rest:
            item = Item(turn, place, raw, {})
            torn = len(rest) - sum(len(piece) for piece, _ in objects)
            left = f"; {torn:,} bytes of a torn line are left out" if torn > len(objects) else ""
            if len(objects) == 1 and rest != objects[0][0] == rest.decode("utf-8", "replace").encode():
                self._say("unreadable", item, "it had bytes that are not UTF-8: replaced by “\ufffd”")
            elif objects:
                many = "a line stood" if len(objects) == 1 else f"{len(objects)} lines stood"
                self._say("glued", item, f"{many} glued to another line: separated{left}")
            else:
                self._say("unreadable", item, f"{len(rest):,} bytes that are no line of a transcript are left out")
        for piece, one in objects:
            yield Item(turn, place, piece, one, string(one, "uuid"), string(one, "parentUuid"))

    def _leave_out(self) -> None:
        """Remove the items that are left out, and link their children to their parents."""
        gone = {item.uuid: item.parent for item in self.items if item.out and item.uuid}
        self.items = [item for item in self.items if not item.out]
        left = {item.uuid for item in self.items}
        for item in self.items:
            passed = set[str]()
            while item.parent in gone and item.parent not in left | passed:
                passed.add(item.parent)
                item.link(gone[item.parent])

    # Another session's lines

    def _leave_out_writers(self) -> None:
        """Leave out chains of which every line is another session's, if they begin after the session's own first."""
        chained, roots = self.chained, self._roots()
        named = {item: session_ids(item.line) for item in chained}
        own = {roots[item] for item in chained if named[item] & self.own or not named[item]}
        first = next((number for number, item in enumerate(chained) if roots[item] in own), len(chained))
        kept = own | {roots[item] for item in chained[:first]}
        strangers: dict[Item, list[Item]] = {}
        for item in chained[first:]:
            if roots[item] not in kept:
                item.out = True
                strangers.setdefault(roots[item], []).append(item)
        for members in strangers.values():
            lines = "line" if len(members) == 1 else "lines"
            session = min(named[members[0]])[:8]
            self._say("writer", members[0], f"{len(members)} {lines} of another session, {session}, left out")
        gone = {name for item in chained if item.out for name in named[item]}
        for item in self.items:
            item.out = item.out or (not item.uuid and bool(session_ids(item.line) & gone))
        self._leave_out()

    def _roots(self) -> dict[Item, Item]:
        """Return for each chained item the first one of its chain."""
        by_uuid, roots = self._by_uuid(), dict[Item, Item]()
        for item in self.chained:
            path = dict[Item, None]()
            above: Item | None = item
            while above and above not in roots and above not in path:
                path[above] = None
                above = by_uuid.get(above.parent or above.line.text("logicalParentUuid"))
            if path:
                first = next(reversed(path))
                roots.update(dict.fromkeys(path, roots.get(above, first) if above else first))
        return roots

    def _make_uuids_unique(self) -> None:
        """Leave out a line that is there already; give another line with the same uuid a new one."""
        known: dict[str, Item] = {}
        renamed: dict[str, str] = {}
        for number, item in enumerate(self.items):
            if item.data.get("isSidechain"):
                continue
            if item.parent in renamed:
                item.link(renamed[item.parent])
            if not item.uuid and item.line.type in BODY_TYPES:
                item.uuid, item.changed = ids.line_id(item.raw, number), True
                self._say("uuid", item, "it had no uuid")
            if not item.uuid or item.uuid not in known:
                known[item.uuid] = item
            elif known[item.uuid].content == item.content:
                item.out, item.uuid = True, ""  # its children are those of the first one
                self._say("duplicate", item, "it is already in the file: left out")
            else:
                old, item.uuid, item.changed = item.uuid, ids.line_id(item.raw, number), True
                renamed[old] = item.uuid
                self._say("duplicate", item, "another line had its uuid: it has a new one")
        self._leave_out()

    # The chain

    def _link_to_parents(self) -> None:
        """Link each line whose parent is missing to the line before it. What is off the chain stays there."""
        known = self._by_uuid()
        self.off = self._off_the_chain(known)
        last: Item | None = None
        prompted = False
        for item in self.chained:
            if item in self.off:
                continue
            lost = bool(item.parent) and item.parent not in known
            rootless = not item.parent and prompted and not item.line.is_boundary
            if last is not None and (lost or rootless):
                item.link(last.uuid)
                why = "missing" if lost else "not given"
                self._say("parent", item, f"its parent is {why}: linked to the line before it")
            elif lost:
                item.link("")  # the file continues another one: that breaks nothing
            prompted = prompted or item.line.is_prompt
            if item.line.type in _CHAINED:
                last = item

    def _off_the_chain(self, known: Mapping[str, Item]) -> set[Item]:
        """Return the items that no message leads to and whose parents are missing: notes of the client at the end of a
        turn that a rewind then left, before the next prompt. After the last message one of them may be the end that a
        client continues from."""
        led, last = set[Item](), -1
        for number, item in enumerate(self.items):
            if item.is_chained and item.line.type in BODY_TYPES:
                last = number
                above: Item | None = item
                while above is not None and above not in led:
                    led.add(above)
                    above = known.get(above.parent)
        off, uuids = set[Item](), set[str]()
        for item in self.items[: last + 1]:
            lost = bool(item.parent) and item.parent not in known
            if item.is_chained and item not in led and (lost or item.parent in uuids):
                off.add(item)
                uuids.add(item.uuid)
        return off

    def _open_cycles(self) -> None:
        """Link lines that lead to themselves to the line before them, if their parents come later."""
        places = {item.uuid: number for number, item in enumerate(self.items) if item.is_chained}
        chained = [item for item in self.chained if item not in self.off]
        before = {item.uuid: last.uuid for last, item in pairwise(chained)}
        by_uuid = {item.uuid: item for item in chained}
        while cycle := find_cycle({item.uuid: [item.parent] for item in chained}):
            for item in map(by_uuid.__getitem__, dict.fromkeys(cycle)):
                if places.get(item.parent, -1) >= places[item.uuid]:
                    item.link(before.get(item.uuid, ""))
                    self._say("cycle", item, "it was its own ancestor: linked to the line before it")

    # Calls

    def _pair_calls(self) -> None:
        """Put each result after its call, leave out second ones, and add those that are missing."""
        self._move_early_results()
        calls: dict[str, Item] = {}
        answered = set[str]()
        for item in self.chained:
            if item.line.type == "assistant":
                for call in call_ids(item.line):
                    calls.setdefault(call, item)
            elif item.line.type == "user":
                self._check_results(item, calls, answered)
        self._leave_out()
        for call, item in calls.items():
            if call not in answered:
                self._add_result(call, item)

    def _move_early_results(self) -> None:
        """Move lines of results that come before their calls."""
        first: dict[str, int] = {}
        for number, item in enumerate(self.items):
            if item.is_chained and item.line.type == "assistant":
                for call in call_ids(item.line):
                    first.setdefault(call, number)
        moved: dict[Item, list[Item]] = {}
        early = set[Item]()
        for number, item in enumerate(self.items):
            if item.results and all(first.get(call, -1) > number for call in item.results):
                asked = self.items[max(first[call] for call in item.results)]
                moved.setdefault(asked, []).append(item)
                early.add(item)
                self._say("result", item, "it came before its call: moved after it")
                item.turn = asked.turn
                if item.parent != asked.uuid and not self._leads_to(item, asked):
                    item.link(asked.uuid)
        rest = [item for item in self.items if item not in early]
        self.items = [one for item in rest for one in (item, *moved.get(item, ()))]

    def _check_results(self, item: Item, calls: Collection[str], answered: set[str]) -> None:
        kept, wrong = list[dict[str, Any]](), ""
        for block in blocks(item.line):
            call = block.get("tool_use_id") if block.get("type") == "tool_result" else None
            if not isinstance(call, str):
                kept.append(block)
            elif call in calls and call not in answered:
                answered.add(call)
                kept.append(block)
            else:
                wrong = "a second result of its call" if call in calls else "the result of a missing call"
        if not wrong:
            return
        self._say("result", item, f"{wrong}: left out")
        if kept:
            item.data = {**item.data, "message": {**item.data["message"], "content": kept}}
            item.changed = True
        else:
            item.out = True

    def _add_result(self, call: str, item: Item) -> None:
        """Add a line that says that the result is lost, after all that belongs to the call's message."""
        name = item.message_id
        together = [other for other in self.items if other is item or (name and other.message_id == name)]
        own_calls = {one for other in together for one in call_ids(other.line)}
        at = max(
            number
            for number, other in enumerate(self.items)
            if other in together or own_calls.intersection(other.results)
        )
        last = self.items[at]
        parent = last if self._leads_to(last, item) else item
        uuid = ids.line_id(item.raw, at)
        content = [{"type": "tool_result", "tool_use_id": call, "content": LOST, "is_error": True}]
        data = {
            "parentUuid": parent.uuid,
            **{key: item.data[key] for key in _TAKEN_OVER if key in item.data},
            "type": "user", "message": {"role": "user", "content": content}, "uuid": uuid,
            "timestamp": last.data.get("timestamp"),
        }  # fmt: skip
        for other in self.items[at + 1 :]:
            if other.is_chained and other.parent in (last.uuid, item.uuid):
                other.link(uuid)
        self.items.insert(at + 1, Item(last.turn, last.place, compact(data), data, uuid, parent.uuid))
        name = next((string(block, "name") for block in blocks(item.line) if block.get("id") == call), "")
        tool = canonical.one_line(name or "tool", 40)
        self._say("call", item, f"the result of its call ({tool}) is missing: added a line that says so")

    def _leads_to(self, item: Item, target: Item) -> bool:
        return target in islice(_ancestors(item, self._by_uuid()), 1000)

    # The rest

    def _check_sessions(self) -> None:
        for item in self.items:
            wrong = session_ids(item.line) - self.own
            if wrong and item.uuid:
                self._say("session", item, f"it names the session {canonical.one_line(min(wrong), 40)[:8]}: ours now")

    def _set_times(self) -> None:
        """Make times rise if the last line is not the latest: some clients take the latest for the end."""
        times = {item: canonical.seconds(item.line.text("timestamp")) for item in self.chained}
        known = [moment for moment in times.values() if moment is not None]
        fell = bool(known) and known[-1] < max(known) - JUMP
        latest = 0.0
        for item, moment in times.items():
            if moment is not None and (not fell or moment >= latest - JUMP):
                latest = max(latest, moment)
            elif moment is not None or item.line.type in BODY_TYPES:
                latest += 0.001
                item.data = {**item.data, "timestamp": canonical.rfc3339(latest)}
                item.changed = True
                backwards = "its time went backwards: set to just after the latest"
                self._say("time", item, "it had no time" if moment is None else backwards)


def _ancestors(item: Item | None, by_uuid: Mapping[str, Item]) -> Iterator[Item]:
    """Yield an item and those that it leads to; a cycle is repeated without end."""
    while item is not None:
        yield item
        item = by_uuid.get(item.parent)


def in_order(raw: Sequence[bytes]) -> tuple[list[bytes], int]:
    """Return the lines, each after its parent, and how many came before it; those as they are, and 0, where that
    is not most of them: clients too write some lines out of order."""
    lines = parsed(raw)
    early, linked = _early(lines)
    if early * 2 <= linked:
        return list(raw), 0
    turned = lines[::-1]
    base = turned if _early(turned)[0] < early else lines
    return [line.raw for line in _behind_parents(base)], early


def _early(lines: Sequence[Line]) -> tuple[int, int]:
    """Return how many lines come before their parents, and how many have one in the file."""
    places: dict[str, int] = {}
    for place, line in enumerate(lines):
        if line.uuid:
            places.setdefault(line.uuid, place)
    linked = [(place, places[line.parent]) for place, line in enumerate(lines) if line.uuid and line.parent in places]
    return sum(above > place for place, above in linked), len(linked)


def _behind_parents(lines: Sequence[Line]) -> list[Line]:
    """Return the same lines in their order, but that the parent of a line comes first."""
    by_uuid: dict[str, Line] = {}
    for line in lines:
        if line.uuid:
            by_uuid.setdefault(line.uuid, line)
    placed, out = set[int](), list[Line]()
    for line in lines:
        path, at = list[Line](), line
        while id(at) not in placed:
            placed.add(id(at))
            path.append(at)
            at = by_uuid.get(at.parent, at)
        out += reversed(path)
    return out
