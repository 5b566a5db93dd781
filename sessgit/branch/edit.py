"""Edits what people say of a session: its name, description, labels, stage, confidence and tags.

A change, except of a tag, is one commit on the session's head with the same tree, except for the state. Recording
continues from the commit before it, and a rewind takes the state along.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Literal

from sessgit.errors import ConflictError, MovedError, NotFoundError, UsageError
from sessgit.history import resolve
from sessgit.history.resolve import CallerContext, ResolvedTarget, Tag
from sessgit.model import canonical, humanize
from sessgit.model.conversation.session import STAGES, Session
from sessgit.model.frozen import frozen
from sessgit.model.ids import check_name, check_tag
from sessgit.record import edit_commit
from sessgit.record.edit_commit import StateEdit
from sessgit.store import layout, locks, operations, refs, secret_filter
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.operations import Move
from sessgit.store.store import Store

_LONGEST_LABEL = 50
_LONGEST_DESCRIPTION = 2000
MOST_LABELS = 50


@frozen
class EditChanges:
    """What shall be different: None leaves a field as it is, ``""`` takes it away. Each value is checked already."""

    name: str | None = None
    description: str | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    stage: str | None = None
    confidence: float | Literal[""] | None = None


@frozen
class EditResult:
    """The state before and after an edit; `commit` is ``""`` where nothing changed.

    `absent` are labels that should go and were not there, `secrets` counts what was replaced in the new words.
    """

    before: Session
    after: Session
    commit: str = ""
    absent: tuple[str, ...] = ()
    secrets: int = 0


# Values as a person types them


def parse_labels(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels to add and those to remove, given as `x`, `+x` and `-x`; for a label named twice the last word
    counts."""
    wanted: dict[str, bool] = {}
    for word in words:
        sign = word[:1] if word[:1] in ("+", "-") else ""
        wanted[label(word.removeprefix(sign))] = sign != "-"
    return tuple(one for one, add in wanted.items() if add), tuple(one for one, add in wanted.items() if not add)


def parse_description(text: str) -> str:
    """Return the text, stripped; raises UsageError if it is too long or contains control characters."""
    text = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n")).strip()
    if len(text) > _LONGEST_DESCRIPTION:
        raise UsageError(
            f"the description has {len(text):,} characters", f"At most {_LONGEST_DESCRIPTION:,} are allowed."
        )
    if not canonical.is_printable(text.replace("\n", "")):
        raise UsageError("a description cannot hold control characters", "Only line breaks are allowed.")
    return text


def parse_stage(word: str) -> str:
    """One of the stages, or ``""`` for `none`; raises UsageError."""
    if word == "none":
        return ""
    if word not in STAGES:
        raise UsageError(f"“{word}” is not a stage", f"The stages are {', '.join(STAGES)}; none removes it.")
    return word


def parse_confidence(word: str) -> float | Literal[""]:
    """Return a number from 0 to 1, or ``""`` for `none`; raises UsageError."""
    if word == "none":
        return ""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise UsageError(f"“{word}” is not a confidence", "Use a number from 0 to 1, or none to remove it.")
    return abs(value)


def label(text: str) -> str:
    """Return the text, stripped; raises UsageError if it cannot be a label."""
    word = text.strip()
    if not word or len(word) > _LONGEST_LABEL or word[0] in "+-" or "," in word or not canonical.is_printable(word):
        raise UsageError(
            f"“{canonical.printable(word)}” cannot be a label" if word else "the label is empty",
            f"A label has 1 to {_LONGEST_LABEL} characters, no comma or control character, and does not start "
            f"with + or -.",
        )
    return word


# Changes


def addressed_session(target: ResolvedTarget) -> str:
    """Return the session of an address, also of a side branch; raises UsageError if the address names a turn."""
    if target.turn is not None:
        raise UsageError(
            f"only a whole conversation can be edited, not turn {target.turn}",
            f"Leave out the turn: {target.session[:8]}. To mark a turn: `sessgit "
            f"tag NAME {target.session[:8]}@{target.turn}`",
        )
    return target.session


def without_secrets(store: Store, text: str, state: Session) -> tuple[str, int]:
    """Return the text as it is stored for the session, and the number of redactions in it."""
    data, count = secret_filter.text_cleaner(store.paths, state.rules)(text.encode())
    return data.decode(), count


def edit_session(context: Context, session_id: str, changes: EditChanges) -> EditResult:
    """Change the state of a session, even if other processes write it meanwhile; a new name is checked first.

    Raises ConflictError where the name is another one's, UsageError where there would be too many labels.
    """

    store = context.store
    index = context.index

    def made(tip: str) -> tuple[StateEdit | None, EditResult]:
        done = changed_state(store, store.state(tip), changes)
        if done.after == done.before:
            return None, done
        if changes.name:
            index.sync()
            check_name_free(index, done.after.name, session_id, index.local_path(done.after.project))
        return StateEdit(_changes_summary(done), done.after), done

    naming = locks.names_lock(store.paths, edit_commit.LOCK_TIMEOUT) if changes.name else nullcontext()
    with naming:
        done, commit = edit_commit.commit_on_head(context, session_id, "edit", made)
    return replace(done, commit=commit)


def check_name_free(index: Index, name: str, session_id: str, project: str) -> str:
    """Return the name as `check_name` does; raise ConflictError if an address of it could mean another session.

    `session_id` is empty for one that is still to be made; `project` is its folder.
    """
    name = check_name(name)
    for one in index.branch_outlines():
        if layout.is_side_branch(one.name) != ("." in name):
            continue
        is_abbreviation = len(name) >= resolve.SHORTEST_PREFIX and resolve.abbreviates(one.name, name)
        if name in (one.name, one.agent_id) or is_abbreviation:
            raise ConflictError(f"the id of {one.name} begins with “{name}”", "An address could mean either one.")
    for other in resolve.outlines_in_project(index.outlines(), project):
        if other.authored_name == name and other.name != session_id:
            free = (
                f"Names are unique in a project: choose another name, or rename the other one first: `sessgit "
                f"rename {other.name[:8]} OTHER`"
            )
            raise ConflictError(f"{other.name[:8]} is already called “{name}”", free)
    if name in refs.tags(index.path):
        gone = f"`sessgit tag -d {humanize.quote_for_shell(name)}`"
        raise ConflictError(f"there is a tag “{name}”", f"Choose another name, or delete the tag first: {gone}")
    return name


def changed_state(store: Store, before: Session, changes: EditChanges) -> EditResult:
    """Return the state with the changes, redacted by the rules of the session."""
    secrets = 0

    def clean(text: str) -> str:
        nonlocal secrets
        clean, count = without_secrets(store, text, before)
        secrets += count
        return clean

    kept = set(before.labels) - set(changes.remove)
    added = {clean(label) for label in changes.add}
    if added - kept and len(kept | added) > MOST_LABELS:
        raise UsageError(f"it would have {len(kept | added)} labels", f"At most {MOST_LABELS} are allowed.")
    confidence = before.confidence if changes.confidence is None else changes.confidence
    after = replace(
        before,
        name=before.name if changes.name is None else clean(changes.name and check_name(changes.name)),
        description=before.description if changes.description is None else clean(changes.description),
        labels=tuple(sorted(kept | added)) if kept | added != set(before.labels) else before.labels,
        stage=before.stage if changes.stage is None else changes.stage,
        confidence=None if confidence == "" else confidence,
    )
    absent = tuple(label for label in changes.remove if label not in before.labels)
    return EditResult(before, after, absent=absent, secrets=secrets)


def _changes_summary(done: EditResult) -> str:
    """`name “parser rewrite”, labels +parser -draft, stage shaping`: what changed, for the commit's subject."""
    before, after = done.before, done.after
    parts = []
    if after.name != before.name:
        parts.append(f"name “{after.name}”" if after.name else "no name")
    if after.labels != before.labels:
        added = [f"+{label}" for label in after.labels if label not in before.labels]
        parts.append(
            f"labels {' '.join(added + [f'-{label}' for label in before.labels if label not in after.labels])}"
        )
    if after.stage != before.stage:
        parts.append(f"stage {after.stage}" if after.stage else "no stage")
    if after.confidence != before.confidence:
        parts.append("no confidence" if after.confidence is None else f"confidence {after.confidence:g}")
    if after.description != before.description:
        parts.append(
            f"description “{canonical.one_line(after.description, 60)}”" if after.description else "no description"
        )
    return ", ".join(parts)


# Tags, which are git's own: each marks a turn that a person wants to find again


@frozen
class TagResult:
    """What was done: `before` is where the tag was, None if it is new; `changed` says whether it moved."""

    tag: Tag
    before: Tag | None
    changed: bool


def tag_turn(
    context: Context,
    name: str,
    target: ResolvedTarget,
    where: CallerContext,
    *,
    force: bool = False,
) -> TagResult:
    """Tag the turn of an address, by default the last one of its branch.

    Raises ConflictError where the tag is at another commit and is not to be moved, or where an address of that name
    means a conversation; UsageError where git takes no such name.
    """
    index = context.index
    store = context.store
    name = check_tag(name)
    branch, turn = target.branch.name, target.end
    if turn:
        commit = resolve.row_of(index, target.branch, turn).commit
    else:
        commit = [one.id for one in store.repo.first_parents(target.branch.tip)][-1]
    if meant := resolve.branches_by_name(index, name, where):
        raise ConflictError(f"the address “{name}” already means the conversation {meant[0]}", "Choose another word.")
    ref = layout.TAGS + name

    def attempt() -> TagResult:
        if without_secrets(store, name, target.state)[1]:
            raise UsageError("the tag looks like a secret", "Choose a readable word.")
        old = refs.read(store.path, ref)
        before = None if old is None else Tag(name, old, *_place(context.index, old))
        new = Tag(name, commit, *_place(context.index, commit, (branch, turn)))
        if old is not None and before is not None:
            if store.repo.peel(old) == commit:
                return TagResult(new, before, changed=False)
            if not force:
                raise ConflictError(
                    f"the tag “{name}” is already at {tag_address(before)}", "To move it, use `--force`."
                )
        summary = f"tag {name} at {tag_address(new)}"
        operations.perform_operation(store, "tag", summary, [Move(ref, old, commit)], context.now())
        return TagResult(new, before, changed=True)

    return operations.retry_moved(store, f"the tag “{name}” kept changing", attempt)


def _place(index: Index, commit: str, default: tuple[str, int] = ("", 0)) -> tuple[str, int]:
    return resolve.commit_places(index, [commit]).get(commit, default)


def delete_tag(context: Context, name: str) -> Tag:
    """Delete a tag and return it; raises NotFoundError with similar names."""
    store = context.store
    known = refs.tags(store.path)
    old = refs.read(store.path, layout.TAGS + name) if name in known else None
    if old is None:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        raise NotFoundError(
            f"there is no tag “{name}”", f"similar: {', '.join(near)}" if near else "`sessgit tag` lists all tags."
        )
    gone = Tag(name, old, *_place(context.index, old))
    try:
        operations.perform_operation(
            store, "tag", f"tag {name} deleted", [Move(layout.TAGS + name, old, None)], context.now()
        )
    except MovedError as error:
        raise ConflictError(f"another process just moved the tag “{name}”", "It was not changed.") from error
    return gone


def tag_address(tag: Tag) -> str:
    """Return the address of a tag, in short; the commit where it leads to no conversation."""
    if not tag.branch:
        return f"{tag.commit[:12]}, which is not a conversation here"
    return f"{layout.short_name(tag.branch)}@{tag.turn}"
