"""Changes of a scratchpad by a person or a program: its entries, the stage and the confidence.

Each change is an `edit` commit, as those of `sessgit edit` are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Concatenate, Literal, ParamSpec

from sessgit.branch import edit as edits
from sessgit.errors import ConflictError, NotFoundError, UsageError
from sessgit.history import pad_lists
from sessgit.model import canonical, humanize
from sessgit.model import pad as pads
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.pad import Entry, Lists, Pad
from sessgit.record import edit_commit
from sessgit.record.edit_commit import StateEdit
from sessgit.store.context import Context
from sessgit.store.store import Store

P = ParamSpec("P")
_LONGEST_QUOTE = 50


@frozen
class PadChange:
    """A session's state and its lists, with the entries in them; and after a change, what it was about.

    A change without a `summary`, which is that of its commit, changes nothing. `entries` are those that it is about,
    `secrets` counts the redactions in the text.
    """

    store: Store
    state: Session
    lists: Lists
    time: str
    summary: str = ""
    entries: tuple[Entry, ...] = ()
    secrets: int = 0
    compacted: pads.CompactedPad | None = None

    @property
    def pad(self) -> Pad:
        return pads.read_pad(self.lists)


MakeChange = Callable[[PadChange], PadChange]


@frozen
class PadResult:
    """What a change did: the state before it, and after it all else; `commit` is ``""`` if there was nothing to do."""

    before: Session
    change: PadChange
    commit: str = ""

    @property
    def pad(self) -> Pad:
        return self.change.pad


@frozen
class EntryPlace:
    """Where an entry comes from: the number of a turn, None for the last one, and words of a person's own."""

    turn: int | None = None
    source: str = ""


def perform_change(context: Context, session_id: str, change: MakeChange) -> PadResult:
    """Make the change on the session's head, even if other processes write it meanwhile; it is one operation.

    Raises what the change raises, with nothing changed.
    """

    store = context.store

    def made(tip: str) -> tuple[StateEdit | None, PadResult]:
        now = PadChange(store, store.state(tip), pad_lists.read_lists(store, tip), canonical.rfc3339(context.now()))
        after = change(now)
        if not after.summary:
            return None, PadResult(now.state, replace(after, lists=now.lists))
        old, new = (sum(map(len, one.values())) for one in (now.lists, after.lists))
        if new > max(old, pads.LARGEST):  # the lists may always get smaller
            raise UsageError(
                f"the scratchpad would have {humanize.format_size(new)}, "
                f"but at most {humanize.format_size(pads.LARGEST)} are allowed",
                "`sessgit pad compact` makes it smaller, `sessgit pad drop ID` removes an entry.",
            )
        changed = pad_lists.list_changes(store, tip, now.lists, after.lists)
        return StateEdit(after.summary, after.state, changed), PadResult(now.state, after)

    done, commit = edit_commit.commit_on_head(context, session_id, "pad", made)
    return replace(done, commit=commit)


def _change(make: Callable[Concatenate[PadChange, P], PadChange]) -> Callable[P, MakeChange]:
    """Make of a function that changes a pad one that takes the other arguments and returns the change."""

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> MakeChange:
        return lambda now: make(now, *args, **kwargs)

    return made


# Entries


@_change
def add_entry(now: PadChange, kind: str, text: str, place: EntryPlace, between: Sequence[str] = ()) -> PadChange:
    """Add an entry, unless one has the same text."""
    text, secrets = _redact_text(now, text, pads.LONGEST, kind)
    source, more = _redact_text(now, place.source, pads.LONGEST, "source") if place.source else ("", 0)
    known = next((one for one in now.pad.of(kind) if pads.text_key(one.text) == pads.text_key(text)), None)
    if known is not None:
        return replace(now, entries=(known,))
    claims = tuple(dict.fromkeys(_find_claim(now.pad, ref).id for ref in between))
    entry = replace(_make_entry(now, kind, text, place.turn), source=source, between=claims)
    return _with_entry(now, entry, f"{kind} {_quote(text)}", secrets + more)


@_change
def set_thesis(now: PadChange, text: str, place: EntryPlace) -> PadChange:
    """Replace the thesis: the history keeps the earlier ones."""
    text, secrets = _redact_text(now, text, pads.LONGEST_DOCUMENT, "thesis")
    before = now.pad.of("thesis")
    if [one.text for one in before] == [text]:
        return replace(now, entries=tuple(before))
    version = 1 + max((one.version for one in before), default=0)
    emptied = replace(now, lists=pads.replace_entries(now.lists, [(one, None) for one in before]))
    entry = replace(_make_entry(now, "thesis", text, place.turn), version=version)
    return _with_entry(emptied, entry, f"thesis {_quote(text)}", secrets)


@_change
def add_pass(now: PadChange, form: str, text: str, place: EntryPlace) -> PadChange:
    """Add a pass over the material, with its result."""
    text, secrets = _redact_text(now, text, pads.LONGEST_DOCUMENT, "pass")
    entry = replace(_make_entry(now, "pass", text, place.turn), form=form)
    return _with_entry(now, entry, f"{form} {_quote(text)}", secrets)


@_change
def resolve_entry(now: PadChange, ref: str, text: str) -> PadChange:
    """Resolve a tension, or answer a question."""
    entry = pads.find_entry(now.pad, ref)
    if entry.kind not in pads.RESOLVABLE:
        raise UsageError(
            f"{entry.id[:4]} is neither a tension nor a question", "Only tensions and questions can be resolved."
        )
    answer, secrets = _redact_text(now, text, pads.LONGEST, "answer") if text else ("", 0)
    if entry.resolved and entry.answer == answer:
        return replace(now, entries=(entry,))
    after = pads.entry_with_line(replace(entry, resolved=now.time, answer=answer))
    return _with_replaced(now, [(entry, after)], f"{entry.kind} {_quote(entry.text)} resolved", (after,), secrets)


@_change
def reword_entry(now: PadChange, ref: str, text: str) -> PadChange:
    """Give an entry another text, and so another id: for a merge it is another entry."""
    entry = pads.find_entry(now.pad, ref)
    if entry.kind == "cycle":
        raise UsageError("a cycle has no text", "`sessgit pad cycle` starts the next one.")
    longest = pads.LONGEST_DOCUMENT if entry.kind in ("thesis", "pass") else pads.LONGEST
    text, secrets = _redact_text(now, text, longest, entry.kind)
    if text == entry.text:
        return replace(now, entries=(entry,))
    after = pads.entry_with_line(replace(entry, id="", text=text))
    if any(one.id == after.id for one in now.pad.entries):
        raise ConflictError("the scratchpad already has this entry", f"Remove this one: `sessgit pad drop {entry.id}`")
    changes: list[tuple[Entry, Entry | None]] = [(entry, after)]
    for tension in now.pad.of("tension"):
        if entry.id in tension.between:
            between = tuple(after.id if claim == entry.id else claim for claim in tension.between)
            changes.append((tension, pads.entry_with_line(replace(tension, between=between))))
    return _with_replaced(now, changes, f"{entry.kind} {_quote(text)}", (after,), secrets)


@_change
def drop_entries(now: PadChange, refs: Sequence[str]) -> PadChange:
    """Remove entries; the history keeps them."""
    if not refs:
        raise UsageError("no entries selected", "Name their ids. Nothing was changed.")
    gone = tuple(dict.fromkeys(pads.find_entry(now.pad, ref) for ref in refs))
    first = f"no {gone[0].kind} {_quote(gone[0].text)}".rstrip()
    summary = first if len(gone) == 1 else f"{humanize.format_count(len(gone), 'entry', 'entries')} less on the pad"
    return _with_replaced(now, [(one, None) for one in gone], summary, gone)


@_change
def compact_pad(now: PadChange) -> PadChange:
    """Merge duplicates, and remove passes of old cycles."""
    compacted = pads.compact_lists(now.lists)
    parts = [(compacted.doubles, "double", "doubles"), (compacted.passes, "pass", "passes")]
    less = [f"{len(one)} {name if len(one) == 1 else many}" for one, name, many in parts if one]
    changed = any(compacted.lists[name] != data for name, data in now.lists.items())
    summary = f"pad compacted: {' and '.join(less) or 'duplicate lines'}" if changed else ""
    removed = (*compacted.doubles, *compacted.passes)
    return replace(now, lists=compacted.lists, summary=summary, entries=removed, compacted=compacted)


# How far it has come


@_change
def change_stage(now: PadChange, word: str) -> PadChange:
    """Set the stage, to the next one or an earlier one."""
    pads.check_stage(now.state.stage, word)
    summary = f"stage {word}" if word != now.state.stage else ""
    return replace(now, state=replace(now.state, stage=word), summary=summary)


@_change
def change_confidence(now: PadChange, value: float | Literal[""], why: str, place: EntryPlace) -> PadChange:
    """Set the confidence in the result, and add it to the entries; ``""`` removes it."""
    if value == "":
        summary = "no confidence" if now.state.confidence is not None else ""
        return replace(now, state=replace(now.state, confidence=None), summary=summary)
    why, secrets = _redact_text(now, why, pads.LONGEST, "reason") if why else ("", 0)
    entry = replace(_make_entry(now, "confidence", why, place.turn), value=value)
    after = replace(now, state=replace(now.state, confidence=value))
    return _with_entry(after, entry, f"confidence {value:g}", secrets)


@_change
def begin_cycle(now: PadChange) -> PadChange:
    """Begin the next cycle."""
    number = pads.current_cycle(now.pad, now.state.id) + 1
    if number > pads.LATEST_CYCLE:
        raise UsageError(f"there are already {number - 1:,} cycles", "That is the maximum.")
    return _with_entry(now, replace(_make_entry(now, "cycle", "", None), cycle=number), f"cycle {number}", 0)


# What they share


def _make_entry(now: PadChange, kind: str, text: str, turn: int | None) -> Entry:
    state = now.state
    if turn is not None and not 1 <= turn <= state.turns:
        raise NotFoundError(
            f"{state.id[:8]} has no turn {turn}; it has {humanize.format_count(state.turns, 'turn')}",
            f"`sessgit log {state.id[:8]}` lists them.",
        )
    number = pads.current_cycle(now.pad, state.id)
    return Entry("", kind, text, now.time, state.id, turn if turn is not None else state.turns or None, number)


def _with_entry(now: PadChange, entry: Entry, summary: str, secrets: int) -> PadChange:
    many = len(now.pad.of(entry.kind))
    if many >= pads.MOST:
        raise UsageError(
            f"the list “{pads.LISTS[entry.kind]}” already has {many} entries",
            "`sessgit pad compact` merges duplicates, `sessgit pad drop ID` removes one.",
        )
    entry = pads.entry_with_line(entry)
    if any(one.id == entry.id for one in now.pad.entries):
        raise ConflictError("the same was added just now", "Nothing was changed.")
    return replace(now, lists=pads.add_entry(now.lists, entry), summary=summary, entries=(entry,), secrets=secrets)


def _with_replaced(
    now: PadChange,
    changes: Sequence[tuple[Entry, Entry | None]],
    summary: str,
    entries: tuple[Entry, ...],
    secrets: int = 0,
) -> PadChange:
    lists = pads.replace_entries(now.lists, changes)
    return replace(now, lists=lists, summary=summary, entries=entries, secrets=secrets)


def _find_claim(pad: Pad, ref: str) -> Entry:
    entry = pads.find_entry(pad, ref)
    if entry.kind != "claim":
        raise UsageError(f"{ref} is not a claim", "A tension is between claims.")
    return entry


def _redact_text(now: PadChange, text: str, longest: int, what: str) -> tuple[str, int]:
    """Return the text as it is stored, and the number of redactions in it; raises UsageError."""
    text = "\n".join(line.rstrip().expandtabs(4) for line in text.replace("\r\n", "\n").split("\n")).strip()
    if not text:
        raise UsageError(f"the text of the {what} is missing", "`sessgit pad --help` lists the actions.")
    if len(text) > longest:
        raise UsageError(f"the {what} has {len(text):,} characters", f"At most {longest:,} are allowed.")
    if not canonical.is_printable(text.replace("\n", "")):
        raise UsageError(f"the {what} contains control characters", "Only line breaks are allowed.")
    return edits.without_secrets(now.store, text, now.state)


def _quote(text: str) -> str:
    return f"“{canonical.one_line(text, _LONGEST_QUOTE)}”" if text else ""
