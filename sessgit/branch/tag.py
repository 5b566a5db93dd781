"""Tags: git's own, each at a point of a conversation that a person wants to find again."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from sessgit.branch.edit import without_secrets
from sessgit.errors import ConflictError, MovedError, NotFoundError, StoreError, UsageError
from sessgit.history import resolve
from sessgit.history.resolve import CallerContext, ResolvedTarget
from sessgit.model.address import check_tag
from sessgit.store import layout, operations, refs
from sessgit.store.index import Index
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag and where it stands: `branch` is ``""`` where it leads to no conversation here; turn 0 is the start.

    `commit` is the tagged one, of an annotated tag that git has not packed the tag's own object.
    """

    name: str
    commit: str
    branch: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True)
class TagResult:
    """What was done: `before` is where the tag stood, None if it is new; `changed` says whether it moved."""

    tag: Tag
    before: Tag | None
    changed: bool


def list_tags(index: Index) -> list[Tag]:
    """All tags by name. Loads a git library only for one that is at no turn."""
    found = index.tags()
    points = resolve.commit_places(index, list(found.values())) if found else {}
    return [Tag(name, oid, *points.get(oid, ("", 0))) for name, oid in sorted(found.items())]


def tags_by_commit(index: Index) -> dict[str, list[str]]:
    """The names of the tags by the commit of the turn that they stand at, as `Row.commit` has it.

    One at the start of a conversation, before turn 1, is by the commit that is tagged.
    """
    out: dict[str, list[str]] = {}
    for tag in list_tags(index):
        row = index.turn(tag.branch, tag.turn) if tag.turn else None
        out.setdefault(row.commit if row else tag.commit, []).append(tag.name)
    return out


def tag_turn(  # noqa: PLR0913 - what is tagged how, and where it was said
    store: Store,
    index: Index,
    name: str,
    found: ResolvedTarget,
    where: CallerContext,
    now: float,
    *,
    force: bool = False,
) -> TagResult:
    """Tags the turn of an address, by default the last one of its branch.

    Raises ConflictError where the tag stands elsewhere and is not to be moved, or where an address of that name
    means a conversation; UsageError where git takes no such name.
    """
    name = check_tag(name)
    branch, turn = found.branch.name, found.state.turns if found.turn is None else found.turn
    commit = _commit_to_tag(store, index, found, turn)
    _check_reachable(index, name, where)
    ref = layout.TAGS + name
    for _ in range(_TRIES):
        store.repo.begin_write()  # a value that is purged just now must be known
        try:
            if without_secrets(store, name, found.state)[1]:
                raise UsageError("the tag looks like a secret", "Choose a readable word.")
            old = refs.read(store.path, ref)
            before = None if old is None else Tag(name, old, *resolve.commit_places(index, [old]).get(old, ("", 0)))
            new = Tag(name, commit, *resolve.commit_places(index, [commit]).get(commit, (branch, turn)))
            if old is not None and before is not None:
                if store.repo.peel(old) == commit:
                    return TagResult(new, before, changed=False)
                if not force:
                    raise ConflictError(
                        f"the tag “{name}” is already at {tag_address(before)}", "To move it, use `--force`."
                    )
            operations.perform_operation(
                store, "tag", f"tag {name} at {tag_address(new)}", [Move(ref, old, commit)], now
            )
        except MovedError:
            continue
        finally:
            store.repo.release()
        return TagResult(new, before, changed=True)
    raise StoreError(f"the tag “{name}” kept changing", "Try again.")


def delete_tag(store: Store, index: Index, name: str, now: float) -> Tag:
    """Takes a tag away and returns where it stood; raises NotFoundError with near ones."""
    known = refs.tags(store.path)
    old = refs.read(store.path, layout.TAGS + name) if name in known else None
    if old is None:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        raise NotFoundError(
            f"there is no tag “{name}”", f"similar: {', '.join(near)}" if near else "`sessgit tag` lists all tags."
        )
    gone = Tag(name, old, *resolve.commit_places(index, [old]).get(old, ("", 0)))
    try:
        operations.perform_operation(store, "tag", f"tag {name} deleted", [Move(layout.TAGS + name, old, None)], now)
    except MovedError as error:
        raise ConflictError(f"another process just moved the tag “{name}”", "It was not changed.") from error
    return gone


def tag_address(tag: Tag) -> str:
    """The address that a tag stands for, in short; the commit where it leads to no conversation."""
    if not tag.branch:
        return f"{tag.commit[:12]}, which is not a conversation here"
    return f"{layout.short_name(tag.branch)}@{tag.turn}"


def _commit_to_tag(store: Store, index: Index, found: ResolvedTarget, turn: int) -> str:
    if turn:
        return resolve.row_of(index, found.branch, turn).commit
    return [commit.id for commit in store.repo.first_parents(found.branch.tip)][-1]


def _check_reachable(index: Index, name: str, where: CallerContext) -> None:
    meant = resolve.branches_by_name(index, name, where)
    if meant:
        raise ConflictError(
            f"the address “{name}” already means the conversation {meant[0]}",
            "Choose another word.",
        )
