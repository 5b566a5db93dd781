"""What stands around the sessions: refs and tags, and the files beside the repository that hold more than can be made
anew."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from sessgit.errors import SessgitError
from sessgit.model import canonical, ids, words
from sessgit.model.address import check_tag
from sessgit.model.finding import Finding
from sessgit.store import layout, refs, settings
from sessgit.store.layout import Beside
from sessgit.store.store import Store

_KEPT = re.compile(r"[0-9a-f]{8}-[1-9][0-9]{0,9}")
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_KEY = 32


def check(store: Store) -> Iterator[Finding]:
    """What is wrong with the refs as a whole, and with what lies beside the repository."""
    held = refs.read_all(store.path)
    yield from _broken(store.path, held)
    heads = {
        name.removeprefix(space) for space in (layout.HEADS, layout.ARCHIVE) for name in held if name.startswith(space)
    }
    for ref, oid in sorted(held.items()):
        yield from _ref(store, ref, oid, heads)
    yield from _beside(store.beside)


def _ref(store: Store, ref: str, oid: str, heads: Collection[str]) -> Iterator[Finding]:
    if ref.startswith((layout.HEADS, layout.ARCHIVE)):
        name = ref.removeprefix(layout.HEADS).removeprefix(layout.ARCHIVE)
        if not ids.is_branch(name):
            yield Finding("wrong", "ref", ref, "no branch of a session is named so")
        elif layout.session_of(name) not in heads:
            yield Finding(
                "wrong",
                "ref",
                ref,
                "a side branch whose session has no head",
                f"sessgit repair {words.shell(layout.session_of(name))}",
            )
    elif ref.startswith(layout.TAGS):
        yield from _tag(store, ref, oid)
    elif ref.startswith(layout.DELETED):
        yield from _tombstone(store, ref, oid)
    elif ref.startswith(layout.KEEP):
        if not _KEPT.fullmatch(ref.removeprefix(layout.KEEP)):
            yield Finding("wrong", "ref", ref, "no operation keeps a tip under such a name")
        elif store.repo.trouble(oid):
            yield Finding("damage", "object", ref, f"what it keeps for undo is missing: object {oid}", "", (oid,))
    elif not ref.startswith(layout.REMOTES):
        yield Finding("note", "ref", ref, "sessgit knows no such ref; it is left alone")


def _tag(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    name = ref.removeprefix(layout.TAGS)
    try:
        check_tag(name)
    except SessgitError:
        yield Finding(
            "wrong", "tag", ref, "no address can name such a tag", f"sessgit tag --delete {words.shell(name)}"
        )
    commit = store.repo.peel(oid)
    if commit is None:
        yield Finding(
            "damage",
            "tag",
            ref,
            f"it leads to no commit: object {oid}",
            f"sessgit tag --delete {words.shell(name)}",
            (oid,),
        )
        return
    try:
        session = store.message(commit).get("Session")
    except SessgitError:
        session = ""
    if not session:
        yield Finding("wrong", "tag", ref, "it leads to a commit that is none of a session")


def _tombstone(store: Store, ref: str, oid: str) -> Iterator[Finding]:
    try:
        commit, message = store.commit(oid), store.message(oid)
    except SessgitError:
        yield Finding("damage", "object", ref, f"the tombstone is missing: object {oid}", "", (oid,))
        return
    if commit.parents or commit.tree != _EMPTY_TREE or message.get("Session") != ref.removeprefix(layout.DELETED):
        yield Finding("wrong", "ref", ref, "it is no tombstone of that session")


def _broken(store: Path, held: Collection[str]) -> Iterator[Finding]:
    """Loose refs that hold no object's id: nothing reads them, and git stumbles over them."""
    for folder, _, names in os.walk(store / "refs"):
        for name in names:
            path = Path(folder) / name
            ref = path.relative_to(store).as_posix()
            if ref in held or name.endswith(".lock") or not canonical.is_printable(ref):
                continue
            yield Finding(
                "damage",
                "ref",
                ref,
                "the ref holds no id of an object",
                f"sessgit repair {words.shell(layout.session_of(name))}",
            )
    try:
        lines = (store / "packed-refs").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, start=1):
        if not re.fullmatch(r"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/\S+", line):
            yield Finding("damage", "ref", "packed-refs", f"line {number} is no ref")


def _beside(beside: Beside) -> Iterator[Finding]:
    try:
        length = beside.key.stat().st_size
    except OSError:
        length = 0
    if length != _KEY:
        said = "is missing" if not length else "is not 32 bytes long"
        yield Finding("damage", "key", "key", f"the key {said}: words that were redacted cannot be proved any more")
    try:
        settings.load(beside)
    except SessgitError as error:
        yield Finding("wrong", "settings", "config.toml", str(error), "sessgit config shows what may stand there.")
    torn = [number for number, line in enumerate(_lines(beside.journal), start=1) if not _is_object(line)]
    if torn:
        lines = f"line {torn[0]}" if len(torn) == 1 else f"{len(torn)} lines"
        yield Finding(
            "note", "operations", "operations.jsonl", f"{lines} cannot be read: that cannot be undone any more"
        )


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().split(b"\n") if line]
    except OSError:
        return []


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
