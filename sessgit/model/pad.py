"""The scratchpad of a session: entries in lists, and how they are read, written, united and made few.

A list is the lines of a file. What is no entry is passed over, and stays where it is whatever is changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessgit.errors import AmbiguousError, NotFoundError, UsageError
from sessgit.model import canonical, humanize, ids
from sessgit.model.conversation.session import STAGES, Session
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import Rate, read_field, string

MARKERS = ("insight", "evidence", "risk", "counter", "pattern", "question")
"""What is noted as it turns up."""
LISTS = {
    "insight": "insights", "evidence": "evidence", "risk": "risks", "counter": "counters", "pattern": "patterns",
    "question": "questions", "claim": "claims", "tension": "tensions", "thesis": "thesis", "pass": "passes",
    "confidence": "confidence", "cycle": "cycles", "file": "files",
}  # fmt: skip
"""The list of each kind of entry."""
PASSES = ("expansion", "compression", "critique", "synthesis")
INHERITED = ("thesis", "claim", "tension")
"""What a session takes over from the one that it left; of the tensions those that are open."""
COUNTED = (*MARKERS, "claim", "tension")
"""What a cycle can find."""
RESOLVABLE = ("tension", "question")
DOUBLED = (*COUNTED, "file")

LONGEST = 2_000
LONGEST_DOCUMENT = 20_000
"""Characters that a thesis or a pass may have, and any other text before."""
MOST = 500
"""So many entries a list may have."""
LARGEST = 1 << 20
"""Bytes of all lists together, beyond which nothing is added."""

_SHORTEST_ID = 4
LATEST_CYCLE = 9_999
_LARGEST_READ = 4 << 20
_MOST_READ = 10_000
_LONGEST_LINE = 256 << 10
_KEPT_CYCLES = 2
_LITTLE_GAIN_FACTOR = 4
"""Two cycles bring little where each brings no more than this part of the best one."""

_ID_PATTERN = re.compile(r"[0-9a-f]{8}")
_SESSION_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

Lists = Mapping[str, bytes]
"""The lines of each list, by its name."""


@frozen
class Entry:
    """Something on a scratchpad: `session` says whose it is, `turn` and `cycle` when it was said.

    `between` are the ids of claims that a tension is between, `resolved` the time at which a tension or a question was
    settled, with `answer`; `form` is the kind of a pass, `version` that of a thesis, `value` a confidence.
    """

    id: str
    kind: str
    text: str
    time: str
    session: str
    turn: int | None = None
    cycle: int = 1
    source: str = ""
    between: tuple[str, ...] = ()
    resolved: str = ""
    answer: str = ""
    form: str = ""
    version: int = 0
    value: Rate | None = None
    line: bytes = b""

    @property
    def is_open(self) -> bool:
        """Return whether it is of a kind that can be resolved, and is not."""
        return self.kind in RESOLVABLE and not self.resolved


@frozen
class Pad:
    """The entries of all lists, in their order; `passed` counts the lines that are none."""

    entries: tuple[Entry, ...] = ()
    passed: int = 0

    def of(self, *kinds: str) -> list[Entry]:
        """Return the entries of these kinds, in their order."""
        return [entry for entry in self.entries if entry.kind in kinds]


# Lines


def read_pad(lists: Lists) -> Pad:
    """Return the entries of the lists. Of several with one id the settled one counts, and those that say otherwise
    do not."""
    entries, passed = dict[str, Entry](), 0
    for kind, name in LISTS.items():
        lines = split_list(lists.get(name, b""))
        if len(lists.get(name, b"")) > _LARGEST_READ:
            passed += len(lines)
            continue
        for number, line in enumerate(lines):
            entry = parse_entry(kind, line) if number < _MOST_READ else None
            known = entries.get(entry.id) if entry else None
            if entry is None or (known and _entry_key(known) != _entry_key(entry)):
                passed += 1
            elif known is None or (entry.resolved, entry.line) > (known.resolved, known.line):
                entries[entry.id] = entry
    return Pad(tuple(entries.values()), passed)


def parse_entry(kind: str, line: bytes) -> Entry | None:
    """Return the entry that a line of the kind's list holds, or None."""
    if len(line) > _LONGEST_LINE:
        return None
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.get("kind") != kind:
        return None
    settled = data.get("resolved") if kind in RESOLVABLE else None
    resolved, answer = (string(settled, key) for key in ("time", "text"))
    entry = Entry(
        string(data, "id"),
        kind,
        string(data, "text"),
        string(data, "time"),
        string(data, "session"),
        turn=_count(data.get("turn"), 1 << 31),
        cycle=_count(data.get("cycle"), LATEST_CYCLE) or 1,
        source=string(data, "source"),
        between=tuple(filter(_is_id, between)) if isinstance(between := data.get("between"), list) else (),
        resolved=resolved if canonical.seconds(resolved) is not None else "",
        answer=answer,
        form=form if (form := string(data, "pass")) in PASSES else "",
        version=_count(data.get("version"), 1 << 31) or 0,
        value=read_field(Entry, "value", data.get("value")),
        line=line,
    )
    is_whole = (
        isinstance(data.get("text"), str)
        and _is_id(entry.id)
        and _SESSION_PATTERN.fullmatch(entry.session)
        and canonical.seconds(entry.time) is not None
        and (entry.text.strip() or kind in ("confidence", "cycle"))
        and (kind == "confidence") == (entry.value is not None)
    )
    return entry if is_whole else None


def entry_with_line(entry: Entry) -> Entry:
    """Return the entry with its line, and with an id if it has none: a function of what is said, in whatever cycle.

    What its old line held besides is kept.
    """
    cycle = entry.cycle if entry.kind == "cycle" else 1
    content = (entry.kind, entry.session, entry.time, entry.text, cycle, entry.value)
    entry = replace(entry, id=entry.id or hashlib.sha256(canonical.compact(content)).hexdigest()[:8])
    optional = {
        "turn": entry.turn, "source": entry.source or None, "between": list(entry.between) or None,
        "pass": entry.form or None, "version": entry.version or None, "value": entry.value,
        "resolved": {"time": entry.resolved, "text": entry.answer} if entry.resolved else None,
    }  # fmt: skip
    data: dict[str, Any] = json.loads(entry.line) if entry.line else {}
    data |= optional | {key: getattr(entry, key) for key in ("id", "kind", "text", "time", "session", "cycle")}
    line = canonical.compact({key: value for key, value in data.items() if value is not None or key not in optional})
    return replace(entry, line=line)


def add_entry(lists: Lists, entry: Entry) -> dict[str, bytes]:
    """Return the lists with an entry more."""
    name = LISTS[entry.kind]
    return {**lists, name: canonical.join_lines([*split_list(lists.get(name, b"")), entry.line])}


def replace_entries(lists: Lists, changes: Iterable[tuple[Entry, Entry | None]]) -> dict[str, bytes]:
    """Return the lists with other entries, or none, in the place of some."""
    by_list = dict[str, dict[str, tuple[Entry, Entry | None]]]()
    for old, new in changes:
        by_list.setdefault(old.kind, {})[old.id] = (old, new)
    out = dict(lists)
    for kind, replacements in by_list.items():
        lines, replaced = list[bytes](), set[str]()
        for line in split_list(lists.get(LISTS[kind], b"")):
            entry = parse_entry(kind, line)
            change = replacements.get(entry.id) if entry else None
            if entry is None or change is None or _entry_key(entry) != _entry_key(change[0]):
                lines.append(line)
            elif change[1] is not None and entry.id not in replaced:
                lines.append(change[1].line)
                replaced.add(entry.id)
        out[LISTS[kind]] = canonical.join_lines(lines)
    return out


def split_list(data: bytes) -> list[bytes]:
    """Return the lines of a list, without those that hold nothing."""
    return [line for line in data.split(b"\n") if line]


def merge_lists(
    name: str,
    base_ours: Sequence[bytes],
    base_theirs: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
) -> list[bytes]:
    """Return the lines of ours in the list of that name, and then those of theirs that it lacks, but for those that
    one side took away since its beginning and the other only kept.

    As sets, both ways of it are the same. An entry is nothing that two sides begin to have each by itself.
    """
    kind = next((kind for kind, called in LISTS.items() if called == name), "")
    gone_here, gone_there = set(base_ours) - set(ours), set(base_theirs) - set(theirs)
    gone = gone_here & set(base_theirs) | gone_there & set(base_ours)
    gone |= {line for line in gone_here | gone_there if parse_entry(kind, line)}
    return [line for line in dict.fromkeys([*ours, *theirs]) if line not in gone]


# Entries


def shown_ids(pad: Pad) -> dict[str, str]:
    """Return as much of each id as tells it from all others: four digits at least."""
    every = sorted(entry.id for entry in pad.entries)
    neighbours = zip(["", *every], every, [*every[1:], ""], strict=False)
    return {one: ids.shortest_unique(one, (before, after), _SHORTEST_ID) for before, one, after in neighbours}


def find_entry(pad: Pad, prefix: str) -> Entry:
    """Return the entry whose id begins so; raises NotFoundError or AmbiguousError."""
    matching = [entry for entry in pad.entries if prefix and entry.id.startswith(prefix.lower())]
    if not matching:
        raise NotFoundError(
            f"no entry of the scratchpad has an id that starts with “{prefix}”", "`sessgit pad` lists them."
        )
    if len(matching) > 1:
        every = ", ".join(entry.id for entry in matching)
        raise AmbiguousError(f"“{prefix}” could be any of {every}", "Type more of the id.")
    return matching[0]


def text_key(text: str) -> str:
    """Return what two equal texts have in common: their words."""
    return " ".join(text.split())


def current_cycle(pad: Pad, session: str) -> int:
    """Return the cycle that a session is in, from 1."""
    return max((entry.cycle for entry in pad.entries if entry.session == session), default=1)


def confidence_history(pad: Pad, session: str, now: float | None) -> list[float]:
    """Return how sure a session's result was, from the first time that it was said to now."""
    values = [entry.value for entry in pad.of("confidence") if entry.session == session and entry.value is not None]
    return values if now is None or values[-1:] == [now] else [*values, now]


def gains_by_cycle(pad: Pad, session: str) -> list[int]:
    """Return how much each cycle of a session found that none had found before, the first cycle first."""
    first = dict[tuple[str, str], int]()
    for entry in pad.of(*COUNTED):
        if entry.session == session:
            key = (entry.kind, text_key(entry.text))
            first[key] = min(entry.cycle, first.get(key, entry.cycle))
    out = [0] * current_cycle(pad, session)
    for number in first.values():
        out[number - 1] += 1
    return out


def finished_gains(pad: Pad, session: str) -> list[int]:
    """Return the same of the cycles that can be judged: the current one only once there is a pass in it."""
    now = current_cycle(pad, session)
    passed = any(entry.session == session and entry.cycle == now for entry in pad.of("pass"))
    return gains_by_cycle(pad, session)[: now if passed else now - 1]


def has_diminishing_returns(pad: Pad, session: str) -> bool:
    """Return whether returns diminish: each of the last two cycles found a quarter of the best one's at most."""
    gains = finished_gains(pad, session)
    return len(gains) > 1 and all(_LITTLE_GAIN_FACTOR * number <= max(gains) for number in gains[-2:])


# Less


def inherited_lists(lists: Lists) -> dict[str, bytes]:
    """Return what a session that leaves another one takes over: thesis, claims, open tensions, and what is no entry."""
    gone = {entry.id for entry in read_pad(lists).entries if entry.kind not in INHERITED or entry.resolved}
    out = dict(lists)
    for kind, name in LISTS.items():
        if name in lists:
            lines = ((line, parse_entry(kind, line)) for line in split_list(lists[name]))
            out[name] = canonical.join_lines(line for line, entry in lines if entry is None or entry.id not in gone)
    return out


@frozen
class CompactedPad:
    """The lists made few: `doubles` are entries whose words another one has, `passes` those of cycles long past."""

    lists: dict[str, bytes]
    doubles: tuple[Entry, ...]
    passes: tuple[Entry, ...]


def compact_lists(lists: Lists) -> CompactedPad:
    """Unite entries of one kind with equal texts, and leaves out passes older than two cycles.

    The one said first stays, with the source, the answer and the claims of all.
    """
    pad = read_pad(lists)
    groups = dict[tuple[str, str], list[Entry]]()
    for entry in pad.of(*DOUBLED):
        groups.setdefault((entry.kind, text_key(entry.text)), []).append(entry)
    ordered = [sorted(group, key=lambda one: (canonical.seconds(one.time), one.id)) for group in groups.values()]
    united = {entry.id: group[0].id for group in ordered for entry in group}
    doubles = [entry for group in ordered for entry in group[1:]]
    passes = [one for one in pad.of("pass") if current_cycle(pad, one.session) - one.cycle > _KEPT_CYCLES]
    changes: list[tuple[Entry, Entry | None]] = [(entry, None) for entry in (*doubles, *passes)]
    changes += [(group[0], _merge_entries(group, united)) for group in ordered]
    return CompactedPad(replace_entries(lists, changes), tuple(doubles), tuple(passes))


def _merge_entries(group: Sequence[Entry], united: Mapping[str, str]) -> Entry:
    """Return the first entry of some that say the same, with what the others say besides."""
    first = group[0]
    settled = min((one for one in group if one.resolved), key=lambda one: (one.resolved, one.id), default=first)
    both = replace(
        first,
        source=next((one.source for one in group if one.source), ""),
        between=tuple(dict.fromkeys(united.get(ref, ref) for one in group for ref in one.between)),
        resolved=settled.resolved,
        answer=settled.answer,
    )
    return first if both == first else entry_with_line(both)


def _entry_key(entry: Entry) -> tuple[str, str, str]:
    return entry.kind, entry.session, entry.text


def _count(value: object, most: int) -> int | None:
    return value if type(value) is int and 0 <= value <= most else None


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID_PATTERN.fullmatch(value) is not None


SURE = 0.8
"""A result that is so sure can be written down."""
LONGEST_BRIEF = 32_000
_LISTS = (
    ("claim", "Claims"), ("evidence", "Evidence"), ("counter", "Counterarguments"), ("insight", "Insights"),
    ("pattern", "Patterns"), ("risk", "Risks"),
)  # fmt: skip
_INERT_AT_SIGN = "@ "
"""The sign with which the client's prompts name a file to be read, and a space: what cannot be seen it takes out."""
_LONGEST_PART, _LONGEST_SOURCE = 2_000, 200
_MOST_LISTED = 30


@frozen
class Step:
    """What to do next, and the command that notes it or does it; the command can be ``""``."""

    what: str
    command: str = ""


def check_stage(before: str, after: str) -> None:
    """Raise UsageError where a stage is left out; going back is free."""
    place = STAGES.index(before) if before in STAGES else 0
    if STAGES.index(after) > place + 1:
        raise UsageError(
            f"{STAGES[place + 1]} comes before {after}",
            f"To set it anyway: `sessgit edit --stage {after}`",
        )


def next_step(pad: Pad, state: Session) -> Step:
    """Return what the stage and what is on the pad suggest."""
    if state.stage == "shaping":
        return _shaping_step(pad)
    if state.stage == "critiquing":
        return _critiquing_step(pad, state)
    if state.stage == "synthesized":
        return _synthesized_step(pad)
    if not pad.of(*MARKERS, "claim"):
        return Step("Note what you find", "sessgit pad add insight TEXT")
    if not pad.of("claim"):
        return Step("Write down what follows from it", "sessgit pad add claim TEXT")
    return Step("Continue with shaping", "sessgit pad stage shaping")


def _shaping_step(pad: Pad) -> Step:
    claims = len(pad.of("claim"))
    if not claims:
        return Step("Write down what follows from what you found", "sessgit pad add claim TEXT")
    if claims > 1 and not pad.of("tension"):
        return Step(f"Look for tensions between the {claims} claims", "sessgit pad add tension TEXT")
    if not pad.of("thesis"):
        return Step("Write the thesis", "sessgit pad thesis TEXT")
    return Step("Continue with critiquing", "sessgit pad stage critiquing")


def _critiquing_step(pad: Pad, state: Session) -> Step:
    now, tensions = current_cycle(pad, state.id), [entry for entry in pad.of("tension") if entry.is_open]
    if not pad.of("thesis"):
        return Step("Write a thesis to question", "sessgit pad thesis TEXT")
    if tensions:
        which = "" if len(tensions) == 1 else ", beginning with the first"
        name = shown_ids(pad)[tensions[0].id]
        return Step(
            f"Settle {humanize.format_count(len(tensions), 'open tension')}{which}", f"sessgit pad resolve {name} TEXT"
        )
    if not any(entry.cycle == now and entry.session == state.id for entry in pad.of("counter", "risk")):
        return Step("Look for arguments against the thesis", "sessgit pad add counter TEXT")
    if has_diminishing_returns(pad, state.id) or (state.confidence or 0) >= SURE:
        return Step("Write down the result", "sessgit pad stage synthesized")
    return Step("Start another cycle", "sessgit pad cycle")


def _synthesized_step(pad: Pad) -> Step:
    if not pad.of("thesis"):
        return Step("Write the thesis", "sessgit pad thesis TEXT")
    questions = sum(entry.is_open for entry in pad.of("question"))
    if questions:
        return Step(
            f"{humanize.format_count(questions, 'question')} left: fork a conversation for them", "sessgit fork"
        )
    return Step("Nothing left to do")


def pad_brief(pad: Pad, state: Session) -> str:
    """Return what a conversation that goes on should know; "" where nothing is on the pad.

    It is safe to be a prompt, whatever the pad says: it has a bounded length and no control characters, does not begin
    as a command of the client, and names no file in the way that makes the client read it.
    """
    if not pad.entries:
        return ""
    session, step = state.id, next_step(pad, state)
    parts = [
        f"We continue “{canonical.one_line(state.display_title, 100)}”. This is what we have noted so far.",
        _status_line(pad, state),
        *(
            f"Thesis{_origin_note(one, session)}:\n{_indented_text(one.text, LONGEST_DOCUMENT)}"
            for one in pad.of("thesis")
        ),
        *(part for kind, called in _LISTS for part in _list_sections(called, pad.of(kind), session)),
        *_list_sections("Open tensions", [one for one in pad.of("tension") if one.is_open], session, pad.of("claim")),
        *_list_sections("Open questions", [one for one in pad.of("question") if one.is_open], session),
        *_list_sections("Files to look at", pad.of("file"), session),
        f"Suggested next: {step.what}.",
    ]
    text = "\n\n".join(part for part in parts if part).replace("@", _INERT_AT_SIGN)
    return text if len(text) <= LONGEST_BRIEF else f"{text[:LONGEST_BRIEF].rstrip()}…\n\n`sessgit pad` shows all of it."


def _status_line(pad: Pad, state: Session) -> str:
    cycle = current_cycle(pad, state.id)
    parts = [
        f"stage {canonical.one_line(state.stage, 40)}" if state.stage else "",
        f"cycle {cycle}" if cycle > 1 else "",
        "" if state.confidence is None else f"confidence {state.confidence:g}",
    ]
    line = ", ".join(part for part in parts if part)
    return f"Current state: {line}." if line else ""


def _list_sections(
    called: str, entries: Sequence[Entry], session: str, claims: Sequence[Entry] = ()
) -> Iterator[str]:  # fmt: skip
    """Yield the section of a list, if it has entries; a tension is followed by those of the claims that it is about."""
    if not entries:
        return
    lines = list[str]()
    for entry in entries[-_MOST_LISTED:]:
        source = f" [{canonical.one_line(entry.source, _LONGEST_SOURCE)}]" if entry.source else ""
        lines.append(f"- {_indented_text(entry.text, _LONGEST_PART, '  ')}{source}{_origin_note(entry, session)}")
        lines += [f"  - {canonical.one_line(one.text, _LONGEST_SOURCE)}" for one in claims if one.id in entry.between]
    more = [f"- ({len(entries) - _MOST_LISTED} earlier ones: sessgit pad)"] if len(entries) > _MOST_LISTED else []
    yield "\n".join([f"{called}:", *more, *lines])


def _origin_note(entry: Entry, session: str) -> str:
    return "" if entry.session == session else f" (from {entry.session[:8]})"


def _indented_text(text: str, longest: int, indent: str = "") -> str:
    text = canonical.printable(canonical.without_sequences(text)).strip()
    text = text if len(text) <= longest else f"{text[:longest].rstrip()}…"
    return text.replace("\n", f"\n{indent}")
