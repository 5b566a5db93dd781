"""What a store can be given anew: packs that git cannot use, and a session of which only its file can be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit.check.repairing import lost_objects as sources
from sessgit.check.verifying import history
from sessgit.check.verifying.checked_commits import Memory
from sessgit.errors import SessgitError, StoreError
from sessgit.model import ids
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.record import fork_detection
from sessgit.record.context import RecordContext
from sessgit.record.recording import record
from sessgit.record.source import RecordRules, TranscriptSource
from sessgit.store import layout, locks, operations, refs
from sessgit.store.damage import objects, packed_refs, packs
from sessgit.store.files import tempdirs
from sessgit.store.recorder import cursor as cursors
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class Mended:
    """A pack that is of use again, or what could be had of it: the objects that are back, and in words from where."""

    objects: int
    source: str


def mend_packs(store: Store) -> Iterator[Mended]:
    """Makes indexes that are missing or damaged anew, and takes out of packs that were cut what is whole in them; what
    git cannot use then lies in `state/damaged/`. Raises StoreError where the disk does not take that."""
    for broken in packs.broken_packs(store.path):
        if broken.fault == "index":
            try:
                yield Mended(packs.make_index(store.path, broken.path), "a pack whose index was rebuilt")
            except StoreError:
                continue  # the pack is damaged, too: what was in it is looked for elsewhere
        elif broken.fault == "cut":
            with tempdirs.make_folder("repair-", store.beside.state) as folder:
                found = packs.salvage_objects(store.path, broken.path, folder / "store")
            back = {oid: one for oid, one in found.items() if store.repo.read_problem(oid)}
            for oid, (kind, data) in back.items():
                objects.write_loose_object(store.path, oid, kind, data, store.beside.state / "damaged")
            packs.quarantine_pack(store.path, broken.path)
            yield Mended(len(back), "a truncated pack")
    store.repo.forget()


def has_file(world: RecordContext, branch: str) -> bool:
    """Whether there is a file of the session out of which it could be recorded anew."""
    session = layout.session_of(branch)
    path = sources.file_of(world, Session(session, session)) if branch == session else None
    return path is not None and _holds_anything(path)


def recorded_anew(world: RecordContext, branch: str, tip: str) -> str:
    """The session's new tip, recorded out of its file in the place of a commit that nobody has any more; ``""`` where
    no file of it is there, or it holds nothing. Written down as an operation."""
    store, session, now = world.store, layout.session_of(branch), world.now()
    path = sources.file_of(world, Session(session, session)) if branch == session else None
    ref = layout.head_ref(session)
    if path is None or (store.ref(ref) or "") != tip or not _holds_anything(path):
        return ""
    with locks.session_lock(store.beside, session, _WAIT) as is_held:
        if not is_held:
            raise StoreError("a recorder is writing it", "Try again later.")
        said = f"{session[:8]}: recorded again from its file, without what cannot be read"
        first = operations.perform_operation(store, "repair", said, [Move(ref, tip, None)], now).id if tip else ""
        if ref in packed_refs.refs_without_id(store.path):
            packed_refs.quarantine_ref(store.path, ref)
        cursors.delete_cursor(store.beside, session)
        world.index.sync()
        agent_id = path.stem if ids.session_id(path.stem) == session else session
        source = TranscriptSource(path, agent_id, world.config, final=True)
        head = record(store, world.index, source, RecordRules(world.rules.granularity, world.rules.redact)).head
        if head:
            done = [Move(ref, tip or None, head)]
            operations.perform_operation(store, "repair", said, done, now, held={ref: head}, completes=first)
            with suppress(SessgitError):  # nothing before it can be read either
                _keep_what_is_whole(store, session, tip)
    world.index.sync()
    return head


def _keep_what_is_whole(store: Store, session: str, tip: str) -> None:
    """Keeps for undo the last commit before a tip that can be read with all that it holds: git packs nothing while a
    ref leads to what is missing."""
    kept = [name for name, oid in refs.read_all(store.path, layout.KEEP).items() if oid == tip]
    for commit in store.repo.first_parents(tip) if kept else ():
        if commit.id != tip and not any(one.severity == "damage" for one in _wrong(store, session, commit.id)):
            for name in kept:
                store.repo.move(name, tip, commit.id)
            return


def _wrong(store: Store, session: str, commit: str) -> Iterator[Finding]:
    return history.check(store, session, commit, Memory())


def _holds_anything(path: Path) -> bool:
    try:
        return bool(fork_detection.first_prompt(path))
    except (OSError, SessgitError):
        return False
