"""What stands around the sessions: refs and tags, and the files beside the repository that hold more than can be made
anew."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sessgit.branch import lost_refs
from sessgit.check.verifying import forms, sidecar_state
from sessgit.errors import SessgitError, StoreError
from sessgit.model import canonical, humanize, ids
from sessgit.model.address import check_tag
from sessgit.model.conversation.message import EVENTS
from sessgit.model.finding import Finding
from sessgit.store import journal, layout, object_verify, refs
from sessgit.store.damage import packed_refs, packs
from sessgit.store.store import Store

_KEPT = re.compile(r"[0-9a-f]{8}-[1-9][0-9]{0,9}")
_MOST = 20
_FIX = "sessgit doctor --fix"
_TOLD = {"index": "its index is missing or damaged", "cut": "it is truncated", "lost": "only its index is there"}


def check(store: Store) -> Iterator[Finding]:
    """What is wrong with the refs as a whole, and with what lies beside the repository."""
    held = refs.read_all(store.path)
    known = dict[str, set[str]]()
    yield from _packs(store.path)
    yield from _broken(store.path)
    with suppress(StoreError):  # of a journal that cannot be read it is told below
        yield from lost_refs.lost_ref_findings(store)
        known = {one.id: {move.old for move in one.moves if move.old} for one in journal.read(store.beside)}
    heads = {
        name.removeprefix(space) for space in (layout.HEADS, layout.ARCHIVE) for name in held if name.startswith(space)
    }
    for ref, oid in sorted(held.items()):
        yield from _ref(store, ref, oid, heads, known)
        live = held.get(ref.replace(layout.ARCHIVE, layout.HEADS, 1), oid) if ref.startswith(layout.ARCHIVE) else oid
        if live != oid:
            yield Finding("note", "ref", ref, "a live branch has another last commit, which takes precedence")
    yield from _names(store, held)
    yield from sidecar_state.check(store)


def tips(store: Store) -> dict[str, dict[str, str]]:
    """By session the commits of it that are kept or tagged, by their refs. One that cannot be read is left out: of a
    ref that leads nowhere `check` tells."""
    found: dict[str, dict[str, str]] = {}
    held = {**refs.read_all(store.path, layout.KEEP), **refs.read_all(store.path, layout.TAGS)}
    for ref, oid in sorted(held.items()):
        try:
            commit = store.repo.peel(oid)
            session = store.message(commit).get("Session") if commit else ""
        except SessgitError:
            continue
        if commit and session:
            found.setdefault(session, {})[ref] = commit
    return found


def _ref(store: Store, ref: str, oid: str, heads: Collection[str], known: Mapping[str, set[str]]) -> Iterator[Finding]:
    if ref.startswith((layout.HEADS, layout.ARCHIVE)):
        name = ref.removeprefix(layout.HEADS).removeprefix(layout.ARCHIVE)
        if not ids.is_branch(name):
            yield Finding("wrong", "ref", ref, "not a valid name for a branch of a session")
        elif layout.session_of(name) not in heads:
            yield Finding(
                "wrong",
                "ref",
                ref,
                "a side branch whose session has no head",
                f"sessgit repair {humanize.quote_for_shell(layout.session_of(name))}",
            )
    elif ref.startswith(layout.TAGS):
        yield from _tag(store, ref, oid)
    elif ref.startswith(layout.DELETED):
        yield from _tombstone(store, ref, oid)
    elif ref.startswith(layout.KEEP):
        yield from _keep(store, ref, oid, known)
    elif ref.startswith(layout.REMOTES):
        yield from _remote(store, ref, oid)
    else:
        yield Finding("note", "ref", ref, "unknown ref; it is ignored")


def _keep(store: Store, ref: str, oid: str, known: Mapping[str, set[str]]) -> Iterator[Finding]:
    name = ref.removeprefix(layout.KEEP)
    if not _KEPT.fullmatch(name):
        yield Finding("wrong", "ref", ref, "not a valid name for a kept tip")
    elif store.repo.read_problem(oid):
        yield Finding("damage", "object", ref, f"its undo data is missing: object {oid}", "", (oid,))
    elif name.partition("-")[0] not in known:
        yield Finding("note", "ref", ref, "it keeps a tip for an operation that the journal does not have")
    elif not any(_is_kept(store, oid, old) for old in known[name.partition("-")[0]]):
        yield Finding("note", "ref", ref, "it keeps a tip that its operation did not remove")


def _is_kept(store: Store, oid: str, old: str) -> bool:
    """Whether a commit is what a ref held, or what a repair could leave of it."""
    return oid == old or bool(store.repo.read_problem(old)) or store.repo.is_ancestor(oid, old)


def _remote(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    if layout.split_ref(ref)[0] not in layout.REF_SPACES:
        yield Finding("note", "ref", ref, "it belongs to no remote")
    elif store.repo.read_problem(oid):
        folder, name = humanize.quote_for_shell(str(store.path)), humanize.quote_for_shell(ref)
        mend = f"`git -C {folder} update-ref -d {name}`, then `sessgit pull`"
        yield Finding("damage", "object", ref, f"an object of a remote is missing here: object {oid}", mend, (oid,))


def _tag(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    name = ref.removeprefix(layout.TAGS)
    try:
        check_tag(name)
    except SessgitError:
        yield Finding(
            "wrong",
            "tag",
            ref,
            "an address cannot name this tag",
            f"sessgit tag --delete {humanize.quote_for_shell(name)}",
        )
    commit = store.repo.peel(oid)
    if commit is None:
        yield Finding(
            "damage",
            "tag",
            ref,
            f"it does not point to a commit: object {oid}",
            "It is restored with its conversation: `sessgit doctor --fix`. "
            f"To give it up: `sessgit tag --delete {humanize.quote_for_shell(name)}`",
            (oid,),
        )
        return
    try:
        message = store.message(commit)
        is_one = bool(message.get("Session")) and message.get("Event") in EVENTS
    except SessgitError:
        is_one = False
    if not is_one:
        yield Finding("wrong", "tag", ref, "it points to a commit of no session")


def _tombstone(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    try:
        commit, message = store.commit(oid), store.message(oid)
    except SessgitError:
        yield Finding("damage", "object", ref, f"the tombstone is missing: object {oid}", "", (oid,))
        return
    tips = message.all("Tip")
    is_one = not commit.parents and commit.tree == object_verify.EMPTY_TREE and message.subject == "deleted"
    if not is_one or message.get("Session") != ref.removeprefix(layout.DELETED):
        yield Finding("wrong", "ref", ref, "it is not a tombstone of that session")
    elif not tips or any(not re.fullmatch("[0-9a-f]{40}", tip) for tip in tips) or not forms.is_signed(store, commit):
        yield Finding("wrong", "ref", ref, "its tombstone is not in the standard form")


def _names(store: Store, held: Mapping[str, str]) -> Iterator[Finding]:
    """Names are unique in a project; two machines may each have given one."""
    found = dict[tuple[str, str], list[str]]()
    for ref, oid in sorted(held.items()):
        session = ref.removeprefix(layout.HEADS).removeprefix(layout.ARCHIVE)
        if not ref.startswith((layout.HEADS, layout.ARCHIVE)) or layout.is_side_branch(session):
            continue
        try:
            state = store.state(oid)
        except SessgitError:
            continue  # told of the session
        if state.name:
            found.setdefault((state.project, state.name), []).append(session)
    for (_, name), sessions in found.items():
        for session in sorted(set(sessions))[1:]:
            what = f"another conversation of its project is also named {canonical.one_line(name, 60)}"
            yield Finding("note", "name", session, what, f"sessgit rename {humanize.quote_for_shell(session)} NAME")


def _packs(store: Path) -> Iterator[Finding]:
    """Packs that git cannot use: what is in them seems to be missing."""
    for path in packs.unreadable_packs(store):
        where, mend = path.relative_to(store).as_posix(), f"chmod u+rX {humanize.quote_for_shell(str(path))}"
        yield Finding(
            "damage", "permissions", where, "no permission to read it, so its contents seem to be missing", mend
        )
    for broken in packs.broken_packs(store):
        if broken.fault != "closed":
            where = broken.path.relative_to(store).as_posix()
            yield Finding("damage", "pack", where, f"git cannot use it: {_TOLD[broken.fault]}", _FIX)


def _broken(store: Path) -> Iterator[Finding]:
    """Loose refs that hold no object's id: git stumbles over them."""
    for ref in packed_refs.refs_without_id(store):
        yield Finding("damage", "ref", ref, "the ref has no object id", _FIX)
    for number in packed_refs.invalid_lines(store)[:_MOST]:
        yield Finding("damage", "ref", "packed-refs", f"line {number} is not a ref", _FIX)
