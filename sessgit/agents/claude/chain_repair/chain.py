"""A broken chain of lines made one that every version of the client resumes.

The lines of a branch come in, in their order, and go out in it: glued ones apart, those of another session out, each
uuid once, each parent there and before its line, each call with one result and each result behind its call. A note of
the client that nothing said leads to may hang on a line of another branch, which a rewind left: what goes on without it
is whole. Whatever needs no mending keeps its bytes. What was done is told, line by line. Doing it again does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sessgit.agents.claude.chain_repair import items
from sessgit.agents.claude.chain_repair.items import NOWHERE, Item
from sessgit.agents.claude.lines import BODY_TYPES, ClaudeLine, blocks, is_prompt
from sessgit.agents.claude.writer.transcript import compact, session_ids
from sessgit.agents.line import parse
from sessgit.agents.values import Kind, Mend, Mended
from sessgit.model import canonical, ids

LOST = "The result of this call was not recorded."
"""What stands in for a result that is nowhere; it counts as an error."""
JUMP = 60.0
"""Seconds by which the last line may be earlier than another one: clients write some out of order."""

_CHAINED = (*BODY_TYPES, "system")
_TAKEN_OVER = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")
"""What a line of ours has of the line that it belongs to."""


def mend(turns: Iterable[tuple[int, Sequence[bytes]]], agent_id: str, known: Sequence[str] = ()) -> Mended:
    """The lines of the turns of a session, mended. `known` are ids of sessions that it was copied from: these may stand
    in its lines."""
    return _Mender(turns, {agent_id, *known}).run()


@dataclass
class _Mender:
    given: Iterable[tuple[int, Sequence[bytes]]]
    own: set[str]
    items: list[Item] = field(default_factory=list)
    mends: list[Mend] = field(default_factory=list)
    off: set[int] = field(default_factory=set)
    """The ids of the items off the chain, whose parents are not among them."""

    def run(self) -> Mended:
        for turn, lines in self.given:
            for place, raw in enumerate(lines, start=1):
                self.items += self._apart(turn, place, raw)
        self._leave_out_writers()
        self._name()
        self._hang()
        self._open_cycles()
        self._pair()
        self._open_cycles()  # a line of ours may have closed one over a line that hung on a later one
        self._check_sessions()
        self._set_times()
        out: dict[int, list[bytes]] = {}
        for item in self.items:
            out.setdefault(item.turn, []).append(item.written)
        places = {id(mend): number for number, mend in enumerate(self.mends)}
        return Mended(out, tuple(sorted(self.mends, key=lambda one: (one.turn, one.line, places[id(one)]))))

    def _say(self, kind: Kind, item: Item, what: str) -> None:
        self.mends.append(Mend(kind, item.turn, item.place, what))

    # Lines

    def _apart(self, turn: int, place: int, raw: bytes) -> Iterator[Item]:
        """The items of a line: one, several that were glued, or none."""
        data = parse(raw)
        found = [(raw, data)] if data is not None else list(items.objects(raw))
        rest = raw.strip(b" \t\r\n\0")
        if data is None and rest:
            item = Item(turn, place, raw, {})
            torn = len(rest) - sum(len(piece) for piece, _ in found)
            left = f"; {torn:,} bytes of a torn line are left out" if torn > len(found) else ""
            if len(found) == 1 and rest != found[0][0] == rest.decode("utf-8", "replace").encode():
                self._say("unreadable", item, "it had bytes that are not UTF-8: replaced by “\ufffd”")
            elif found:
                many = "a line stood" if len(found) == 1 else f"{len(found)} lines stood"
                self._say("glued", item, f"{many} glued to another line: separated{left}")
            else:
                self._say("unreadable", item, f"{len(rest):,} bytes that are no line of a transcript are left out")
        for piece, one in found:
            line = ClaudeLine(piece, NOWHERE, one)
            yield Item(turn, place, piece, one or {}, line.uuid, line.parent)

    def _keep(self) -> None:
        """Takes those out that are left out; who hung on one hangs on what that hung on."""
        gone = {item.uuid: item.parent for item in self.items if item.out and item.uuid}
        self.items = [item for item in self.items if not item.out]
        there = {item.uuid for item in self.items}
        for item in self.items:
            seen = set[str]()
            while item.parent in gone and item.parent not in there and item.parent not in seen:
                seen.add(item.parent)
                item.parent, item.changed = gone[item.parent], True

    # Another session's lines

    def _leave_out_writers(self) -> None:
        """Chains of which every line is another session's, and that begin after the session's own first line."""
        chains = self._chains()
        own = {id(root) for root, item in chains if session_ids(item.line) & self.own or not session_ids(item.line)}
        first = next((n for n, (root, _) in enumerate(chains) if id(root) in own), None)
        if first is None:
            return
        strangers: dict[int, list[Item]] = {}
        for root, item in chains[first:]:
            if id(root) not in own:
                strangers.setdefault(id(root), []).append(item)
        begun = {id(root) for root, _ in chains[:first]}
        for root_id, members in strangers.items():
            if root_id in begun:
                continue
            for item in members:
                item.out = True
            named = min(session_ids(members[0].line))
            lines = "line" if len(members) == 1 else "lines"
            self._say("writer", members[0], f"{len(members)} {lines} of another session, {named[:8]}, left out")
        gone = {name for item in self.items if item.out for name in session_ids(item.line)}
        for item in self.items:
            item.out = item.out or (not item.uuid and bool(session_ids(item.line) & gone))
        self._keep()

    def _chains(self) -> list[tuple[Item, Item]]:
        """Each chained item, behind the first one of its chain."""
        by_uuid = {item.uuid: item for item in self.items if item.is_chained}
        roots: dict[int, Item] = {}
        for item in self.items:
            path, met = list[Item](), set[int]()
            at: Item | None = item if item.is_chained else None
            while at is not None and id(at) not in roots and id(at) not in met:
                path.append(at)
                met.add(id(at))
                above = at.parent or at.line.text("logicalParentUuid")
                at = by_uuid.get(above)
            if path:
                root = roots.get(id(at), path[-1]) if at is not None else path[-1]
                roots.update((id(one), root) for one in path)
        return [(roots[id(item)], item) for item in self.items if item.is_chained]

    # Names

    def _name(self) -> None:
        """Each uuid once: the same line a second time goes, another line gets a uuid of its own."""
        seen: dict[str, Item] = {}
        renamed: dict[str, str] = {}
        for number, item in enumerate(self.items):
            if item.data.get("isSidechain"):
                continue
            if item.parent in renamed:
                item.parent, item.changed = renamed[item.parent], True
            if not item.uuid and item.line.type in BODY_TYPES:
                item.uuid, item.changed = ids.line_id(item.raw, number), True
                self._say("uuid", item, "it had no uuid")
            known = seen.get(item.uuid) if item.uuid else None
            if known is None:
                seen[item.uuid] = item
            elif items.said(known) == items.said(item):
                item.out = True
                self._say("duplicate", item, "it is already in the file: left out")
            else:
                old, item.uuid, item.changed = item.uuid, ids.line_id(item.raw, number), True
                renamed[old] = item.uuid
                self._say("duplicate", item, "another line had its uuid: it has a new one")
        doubles = [item for item in self.items if item.out]
        for item in doubles:
            item.uuid = ""  # whoever hangs on it hangs on the first one
        self._keep()

    # The chain

    def _hang(self) -> None:
        """Each line on one that is there; where none is, on the line before it. What is off the chain stays there."""
        there = {item.uuid for item in self.items if item.is_chained}
        self.off = self._off_the_chain(there)
        last: Item | None = None
        prompted = False
        for item in self.items:
            if not item.is_chained or id(item) in self.off:
                continue
            lost = bool(item.parent) and item.parent not in there
            rootless = not item.parent and prompted and not item.line.is_boundary
            if last is not None and (lost or rootless):
                item.parent, item.changed = last.uuid, True
                self._say(
                    "parent", item, f"its parent is {'missing' if lost else 'not given'}: linked to the line before it"
                )
            elif lost:
                item.parent, item.changed = "", True  # the file goes on from another one: that breaks nothing
            prompted = prompted or is_prompt(item.line)
            if item.line.type in _CHAINED:
                last = item

    def _off_the_chain(self, there: Collection[str]) -> set[int]:
        """The ids of items that nothing said leads to, and that come from nowhere: what a client notes at the end of a
        turn that a rewind then left, which stands before the next prompt. Not behind all that was said, where one of
        them may be the end that a client goes on from."""
        by_uuid = {item.uuid: item for item in self.items if item.is_chained}
        led, last = set[int](), -1
        for number, item in enumerate(self.items):
            at = item if item.is_chained and item.line.type in BODY_TYPES else None
            last = number if at is not None else last
            while at is not None and id(at) not in led:
                led.add(id(at))
                at = by_uuid.get(at.parent)
        off, uuids = set[int](), set[str]()
        for item in self.items[: last + 1]:
            lost = bool(item.parent) and item.parent not in there
            if item.is_chained and id(item) not in led and (lost or item.parent in uuids):
                off.add(id(item))
                uuids.add(item.uuid)
        return off

    def _open_cycles(self) -> None:
        """Lines that lead to themselves hang on the line before them, where they hung on a later one."""
        places = {item.uuid: number for number, item in enumerate(self.items) if item.is_chained}
        chained = [item for item in self.items if item.is_chained and id(item) not in self.off]
        before: dict[str, str] = {}
        for last, item in pairwise(chained):
            before[item.uuid] = last.uuid
        by_uuid = {item.uuid: item for item in chained}
        while cycle := items.cycle(by_uuid):
            for item in cycle:
                if places.get(item.parent, -1) >= places[item.uuid]:
                    item.parent, item.changed = before.get(item.uuid, ""), True
                    self._say("cycle", item, "it was its own ancestor: linked to the line before it")

    # Calls

    def _pair(self) -> None:
        """Each result behind its call and once, each call with one."""
        self._put_behind()
        calls: dict[str, Item] = {}
        answered: dict[str, Item] = {}
        for item in self.items:
            if item.is_chained and item.line.type == "assistant":
                calls.update({call: item for call in items.calls(item) if call not in calls})
            elif item.is_chained and item.line.type == "user":
                self._check_results(item, calls, answered)
        self._keep()
        for call, item in calls.items():
            if call not in answered:
                self._answer(call, item)

    def _put_behind(self) -> None:
        """Lines of results that stand before their calls, right behind these."""
        first: dict[str, int] = {}
        for number, item in enumerate(self.items):
            if item.is_chained and item.line.type == "assistant":
                for call in items.calls(item):
                    first.setdefault(call, number)
        early = {
            id(item): max(first[name] for name in items.results(item))
            for number, item in enumerate(self.items)
            if items.results(item) and all(first.get(name, -1) > number for name in items.results(item))
        }
        moved: dict[int, list[Item]] = {}
        for item in (item for item in self.items if id(item) in early):
            asked = self.items[early[id(item)]]
            moved.setdefault(id(asked), []).append(item)
            self._say("result", item, "it came before its call: moved after it")
            item.turn = asked.turn
            if item.parent != asked.uuid and not self._leads_to(item, asked):
                item.parent, item.changed = asked.uuid, True
        if moved:
            rest = [item for item in self.items if id(item) not in early]
            self.items = [one for item in rest for one in (item, *moved.get(id(item), ()))]

    def _check_results(self, item: Item, calls: dict[str, Item], answered: dict[str, Item]) -> None:
        kept, wrong = list[dict[str, Any]](), ""
        for block in blocks(item.line):
            name = block.get("tool_use_id") if block.get("type") == "tool_result" else None
            if not isinstance(name, str):
                kept.append(block)
            elif name in calls and name not in answered:
                answered[name] = item
                kept.append(block)
            else:
                wrong = "a second result of its call" if name in calls else "the result of a missing call"
        if not wrong:
            return
        self._say("result", item, f"{wrong}: left out")
        if kept:
            item.data = {**item.data, "message": {**item.data["message"], "content": kept}}
            item.changed = True
        else:
            item.out = True

    def _answer(self, call: str, item: Item) -> None:
        """A line that says that the result is lost, behind all that belongs to the call's message."""
        name = items.message_id(item)
        mine = {
            one
            for other in self.items
            if (name and items.message_id(other) == name) or other is item
            for one in items.calls(other)
        }
        at = max(
            number
            for number, other in enumerate(self.items)
            if other is item or (name and items.message_id(other) == name) or mine & set(items.results(other))
        )
        last = self.items[at]
        parent = last if self._leads_to(last, item) else item
        uuid = ids.line_id(item.raw, at)
        content = [{"type": "tool_result", "tool_use_id": call, "content": LOST, "is_error": True}]
        taken = {key: item.data[key] for key in _TAKEN_OVER if key in item.data}
        data = {
            "parentUuid": parent.uuid, **taken, "type": "user", "message": {"role": "user", "content": content},
            "uuid": uuid, "timestamp": last.data.get("timestamp"),
        }  # fmt: skip
        for other in self.items[at + 1 :]:
            if other.is_chained and other.parent in (last.uuid, item.uuid):
                other.parent, other.changed = uuid, True
        made = Item(last.turn, last.place, compact(data), data, uuid, parent.uuid)
        self.items.insert(at + 1, made)
        self._say(
            "call", item, f"the result of its call ({items.tool(item, call)}) is missing: added a line that says so"
        )

    def _leads_to(self, item: Item, wanted: Item) -> bool:
        by_uuid = {one.uuid: one for one in self.items if one.is_chained}
        at: Item | None = item
        for _ in range(1000):
            if at is None or at is wanted:
                break
            at = by_uuid.get(at.parent)
        return at is wanted

    # What is left

    def _check_sessions(self) -> None:
        for item in self.items:
            wrong = session_ids(item.line) - self.own
            if wrong and item.uuid:
                self._say("session", item, f"it names the session {canonical.one_line(min(wrong), 40)[:8]}: ours now")

    def _set_times(self) -> None:
        """Times that rise where the last line is not the latest: some clients take the latest for the end."""
        times = [canonical.seconds(item.line.text("timestamp")) for item in self.items if item.is_chained]
        known = [moment for moment in times if moment is not None]
        fell = bool(known) and known[-1] < max(known) - JUMP
        latest = 0.0
        for item in self.items:
            if not item.is_chained:
                continue
            moment = canonical.seconds(item.line.text("timestamp"))
            if moment is not None and (not fell or moment >= latest - JUMP):
                latest = max(latest, moment)
                continue
            if moment is None and item.line.type not in BODY_TYPES:
                continue
            latest += 0.001
            item.data = {**item.data, "timestamp": canonical.rfc3339(latest)}
            item.changed = True
            self._say(
                "time",
                item,
                "its time went backwards: set to just after the latest" if moment is not None else "it had no time",
            )
