"""What a person or program puts on a scratchpad, takes off it, and says of how far it has come.

Each change is an `edit` commit, as those of `sessgit edit` are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sessgit.branch import edit as edits
from sessgit.errors import ConflictError, NotFoundError, UsageError
from sessgit.history import pad_lists
from sessgit.model import canonical, humanize, pad_steps
from sessgit.model import pad as pads
from sessgit.model.conversation.session import Session
from sessgit.model.pad import Entry, Lists, Pad
from sessgit.record import edit_commit
from sessgit.record.edit_commit import StateEdit
from sessgit.store import locks
from sessgit.store.context import Context
from sessgit.store.store import Store

_LONGEST_QUOTE = 50


@dataclass(frozen=True, slots=True)
class PadContext:
    """What a change begins with: the session's state, its lists with the entries in them, the time, and where."""

    state: Session
    lists: Lists
    pad: Pad
    time: str
    store: Store


@dataclass(frozen=True, slots=True)
class PadChange:
    """What a change comes to: the state and lists then, the entries that it is about, and the summary of the
    commit; without one nothing changes. `secrets` counts the redactions in the text."""

    state: Session
    lists: Lists
    summary: str
    entries: tuple[Entry, ...] = ()
    secrets: int = 0
    compacted: pads.CompactedPad | None = None


MakeChange = Callable[[PadContext], PadChange]


@dataclass(frozen=True, slots=True)
class PadResult:
    """What a change did: `commit` is ``""`` where there was nothing to do."""

    before: Session
    pad: Pad
    wanted: PadChange
    commit: str = ""


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """Where an entry comes from: the number of a turn, None for the last one, and words of a person's own."""

    turn: int | None = None
    source: str = ""


def perform_change(context: Context, session_id: str, change: MakeChange) -> PadResult:
    """Makes the change on the session's head, whatever else is at work on it; it is one operation.

    Raises what the change raises, with nothing changed.
    """

    store = context.store

    def made(tip: str) -> tuple[StateEdit | None, PadResult]:
        state, held = store.state(tip), pad_lists.read_lists(store, tip)
        wanted = change(PadContext(state, held, pads.read_pad(held), canonical.rfc3339(context.now()), store))
        if not wanted.summary:
            return None, PadResult(state, pads.read_pad(held), wanted)
        _check_size(held, wanted.lists)
        changed = pad_lists.list_changes(store, tip, held, wanted.lists)
        return StateEdit(wanted.summary, wanted.state, changed), PadResult(state, pads.read_pad(wanted.lists), wanted)

    with locks.session_lock(store.paths, session_id, edits.LOCK_TIMEOUT):
        done, commit = edit_commit.commit_on_head(context, session_id, "pad", made)
    return replace(done, commit=commit)


# Entries


def add_entry(kind: str, text: str, place: EntryPlace, between: Sequence[str] = ()) -> MakeChange:
    """An entry more; one that says the same already is left as it is."""

    def change(now: PadContext) -> PadChange:
        said, secrets = _redact_text(now, text, pads.LONGEST, kind)
        source, more = _redact_text(now, place.source, pads.LONGEST, "source") if place.source else ("", 0)
        known = next((one for one in now.pad.of(kind) if pads.text_key(one.text) == pads.text_key(said)), None)
        if known is not None:
            return PadChange(now.state, now.lists, "", (known,))
        claims = tuple(dict.fromkeys(_find_claim(now.pad, ref).id for ref in between))
        made = replace(_make_entry(now, kind, said, place.turn), source=source, between=claims)
        return _with_entry(now, made, f"{kind} {_quote(said)}", secrets + more)

    return change


def set_thesis(text: str, place: EntryPlace) -> MakeChange:
    """The thesis in the place of all that are there: the history keeps those."""

    def change(now: PadContext) -> PadChange:
        said, secrets = _redact_text(now, text, pads.LONGEST_DOCUMENT, "thesis")
        before = now.pad.of("thesis")
        if [one.text for one in before] == [said]:
            return PadChange(now.state, now.lists, "", tuple(before))
        version = 1 + max((one.version for one in before), default=0)
        emptied = replace(now, lists=pads.replace_entries(now.lists, [(one, None) for one in before]))
        made = replace(_make_entry(now, "thesis", said, place.turn), version=version)
        return _with_entry(emptied, made, f"thesis {_quote(said)}", secrets)

    return change


def add_pass(form: str, text: str, place: EntryPlace) -> MakeChange:
    """A pass over the material, with what it found."""

    def change(now: PadContext) -> PadChange:
        said, secrets = _redact_text(now, text, pads.LONGEST_DOCUMENT, "pass")
        made = replace(_make_entry(now, "pass", said, place.turn), form=form)
        return _with_entry(now, made, f"{form} {_quote(said)}", secrets)

    return change


def resolve_entry(ref: str, text: str) -> MakeChange:
    """A tension is settled, or a question answered."""

    def change(now: PadContext) -> PadChange:
        entry = pads.find_entry(now.pad, ref)
        if entry.kind not in pads.RESOLVABLE:
            raise UsageError(
                f"{entry.id[:4]} is neither a tension nor a question", "Only tensions and questions can be resolved."
            )
        said, secrets = _redact_text(now, text, pads.LONGEST, "answer") if text else ("", 0)
        if entry.resolved and entry.answer == said:
            return PadChange(now.state, now.lists, "", (entry,))
        after = pads.entry_with_line(replace(entry, resolved=now.time, answer=said))
        what = f"{entry.kind} {_quote(entry.text)} resolved"
        return PadChange(now.state, pads.replace_entries(now.lists, [(entry, after)]), what, (after,), secrets)

    return change


def reword_entry(ref: str, text: str) -> MakeChange:
    """An entry in other words. Its id becomes another one: what a merge meets elsewhere is another entry."""

    def change(now: PadContext) -> PadChange:
        entry = pads.find_entry(now.pad, ref)
        if entry.kind == "cycle":
            raise UsageError("a cycle has no text", "`sessgit pad cycle` starts the next one.")
        longest = pads.LONGEST_DOCUMENT if entry.kind in ("thesis", "pass") else pads.LONGEST
        said, secrets = _redact_text(now, text, longest, entry.kind)
        if said == entry.text:
            return PadChange(now.state, now.lists, "", (entry,))
        after = pads.entry_with_line(replace(entry, id="", text=said))
        if any(one.id == after.id for one in now.pad.entries):
            raise ConflictError(
                "the scratchpad already has this entry", f"Remove this one: `sessgit pad drop {entry.id}`"
            )
        named = [one for one in now.pad.of("tension") if entry.id in one.between]
        renamed = [
            (
                one,
                pads.entry_with_line(
                    replace(one, between=tuple(after.id if i == entry.id else i for i in one.between))
                ),
            )
            for one in named
        ]
        what = f"{entry.kind} {_quote(said)}"
        return PadChange(
            now.state, pads.replace_entries(now.lists, [(entry, after), *renamed]), what, (after,), secrets
        )

    return change


def drop_entries(refs: Sequence[str]) -> MakeChange:
    """Entries taken off; the history keeps them."""
    if not refs:
        raise UsageError("no entries selected", "Name their ids. Nothing was changed.")

    def change(now: PadContext) -> PadChange:
        gone = tuple(dict.fromkeys(pads.find_entry(now.pad, ref) for ref in refs))
        first = f"no {gone[0].kind} {_quote(gone[0].text)}".rstrip()
        summary = first if len(gone) == 1 else f"{humanize.format_count(len(gone), 'entry', 'entries')} less on the pad"
        return PadChange(now.state, pads.replace_entries(now.lists, [(one, None) for one in gone]), summary, gone)

    return change


def compact_pad() -> MakeChange:
    """Doubles united, passes of cycles long past left to the history."""

    def change(now: PadContext) -> PadChange:
        found = pads.compact_lists(now.lists)
        parts = [(found.doubles, "double", "doubles"), (found.passes, "pass", "passes")]
        less = [f"{len(one)} {name if len(one) == 1 else many}" for one, name, many in parts if one]
        changed = any(found.lists[name] != data for name, data in now.lists.items())
        summary = f"pad compacted: {' and '.join(less) or 'duplicate lines'}" if changed else ""
        return PadChange(now.state, found.lists, summary, (*found.doubles, *found.passes), compacted=found)

    return change


# How far it has come


def change_stage(word: str) -> MakeChange:
    """The stage, the next one or an earlier one."""

    def change(now: PadContext) -> PadChange:
        pad_steps.check_stage(now.state.stage, word)
        summary = f"stage {word}" if word != now.state.stage else ""
        return PadChange(replace(now.state, stage=word), now.lists, summary)

    return change


def change_confidence(value: float | Literal[""], why: str, place: EntryPlace) -> MakeChange:
    """How sure the result is, kept with what was said before."""

    def change(now: PadContext) -> PadChange:
        if value == "":
            summary = "no confidence" if now.state.confidence is not None else ""
            return PadChange(replace(now.state, confidence=None), now.lists, summary)
        said, secrets = _redact_text(now, why, pads.LONGEST, "reason") if why else ("", 0)
        made = replace(_make_entry(now, "confidence", said, place.turn), value=value)
        after = replace(now, state=replace(now.state, confidence=value))
        return _with_entry(after, made, f"confidence {value:g}", secrets)

    return change


def begin_cycle() -> MakeChange:
    """The next cycle begins."""

    def change(now: PadContext) -> PadChange:
        number = pads.current_cycle(now.pad, now.state.id) + 1
        if number > pads.LATEST_CYCLE:
            raise UsageError(f"there are already {number - 1:,} cycles", "That is the maximum.")
        return _with_entry(now, replace(_make_entry(now, "cycle", "", None), cycle=number), f"cycle {number}", 0)

    return change


# What they share


def _make_entry(now: PadContext, kind: str, text: str, turn: int | None) -> Entry:
    state = now.state
    if turn is not None and not 1 <= turn <= state.turns:
        raise NotFoundError(
            f"{state.id[:8]} has no turn {turn}; it has {humanize.format_count(state.turns, 'turn')}",
            f"`sessgit log {state.id[:8]}` lists them.",
        )
    number = pads.current_cycle(now.pad, state.id)
    return Entry("", kind, text, now.time, state.id, turn if turn is not None else state.turns or None, number)


def _with_entry(now: PadContext, made: Entry, summary: str, secrets: int) -> PadChange:
    many = len(now.pad.of(made.kind))
    if many >= pads.MOST:
        raise UsageError(
            f"the list “{pads.LISTS[made.kind]}” already has {many} entries",
            "`sessgit pad compact` merges duplicates, `sessgit pad drop ID` removes one.",
        )
    made = pads.entry_with_line(made)
    if any(one.id == made.id for one in now.pad.entries):
        raise ConflictError("the same was added just now", "Nothing was changed.")
    return PadChange(now.state, pads.add_entry(now.lists, made), summary, (made,), secrets)


def _check_size(before: Lists, after: Lists) -> None:
    """Raises UsageError where the lists would get too large; what makes them smaller is always right."""
    old, new = (sum(map(len, one.values())) for one in (before, after))
    if new > max(old, pads.LARGEST):
        raise UsageError(
            f"the scratchpad would have {humanize.format_size(new)}, "
            f"but at most {humanize.format_size(pads.LARGEST)} are allowed",
            "`sessgit pad compact` makes it smaller, `sessgit pad drop ID` removes an entry.",
        )


def _find_claim(pad: Pad, ref: str) -> Entry:
    entry = pads.find_entry(pad, ref)
    if entry.kind != "claim":
        raise UsageError(f"{ref} is not a claim", "A tension is between claims.")
    return entry


def _redact_text(now: PadContext, text: str, longest: int, what: str) -> tuple[str, int]:
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
