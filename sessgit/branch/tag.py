"""Tags, which are git's own: each marks a turn that a person wants to find again."""

from __future__ import annotations

import difflib

from sessgit.branch.edit import without_secrets
from sessgit.errors import ConflictError, MovedError, NotFoundError, UsageError
from sessgit.history import resolve
from sessgit.history.resolve import CallerContext, ResolvedTarget, Tag
from sessgit.model.frozen import frozen
from sessgit.model.ids import check_tag
from sessgit.store import layout, operations, refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.transaction import Move


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
