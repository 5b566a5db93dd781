"""Bringing in conversations that nobody recorded while they were held."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessgit.agents.claude import home
from sessgit.agents.claude.beside import folders, sidefiles
from sessgit.agents.claude.lines import parse
from sessgit.agents.claude.reader import opened
from sessgit.errors import AmbiguousError, NotFoundError, SessgitError, StoreError, UsageError
from sessgit.model import ids
from sessgit.ops import delete
from sessgit.ops import privacy as private
from sessgit.ops.privacy import Privacy
from sessgit.ops.recording import catchup, family
from sessgit.ops.recording.family import Outline
from sessgit.ops.recording.record import Aside, record
from sessgit.ops.recording.source import Rules, Source
from sessgit.store import layout, locks, maintenance, refs
from sessgit.store.index import Index
from sessgit.store.store import Store

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FIRST_LINES = 1 << 20
_LOCK_WAIT = 30.0
_LOOSE_REFS = 250
"""So many sessions after which refs are packed: each is a file of its own before, and each recording reads them."""

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""


@dataclass(frozen=True, slots=True)
class Failure:
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """How many sessions were brought in or grew, how many turns were recorded, how many sessions were level.

    `unpacked` says why the store could not be packed, which leaves it larger and slower but whole; `excluded` counts
    the files of projects that are off, which were left out. `archived` counts the sessions that have gone on since
    they were archived, and were left as they are; `deleted` those that were deleted here, and were left out.
    """

    sessions: int
    turns: int
    unchanged: int
    errors: tuple[Failure, ...]
    unpacked: str = ""
    excluded: int = 0
    archived: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    agent_id: str
    size: int
    root: str
    folder: Path | None = None
    """The client's folder that it is a part of, where what lies beside it is imported too."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The transcripts to record, and what cannot be."""

    files: list[_File] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)


def run(
    store: Store, index: Index, paths: Sequence[Path], config: Path, privacy: Privacy, progress: Progress
) -> Imported:
    """Imports the transcripts at `paths` (files, or folders with all below), or all of the client's.

    Parents come before their forks. A file that cannot be read is named in the result and the others go on. Raises
    UsageError where nothing may be recorded because a command asks.
    """
    private.check_on(off=privacy.off)
    seen = _Seen()
    seen.files.extend(_examined(_found(paths, config), seen.errors))
    return _record(store, index, seen, config, privacy, progress)


def run_one(  # noqa: PLR0913, PLR0917 - what `run` takes, and which one
    store: Store,
    index: Index,
    session: str,
    paths: Sequence[Path],
    config: Path,
    privacy: Privacy,
    progress: Progress,
    now: float,
) -> Imported:
    """Imports the one transcript whose session's id begins so, even if that session was deleted here.

    Raises NotFoundError where there is none at `paths`, AmbiguousError where there are several.
    """
    private.check_on(off=privacy.off)
    seen = _Seen()
    near = (path for path in _found(paths, config) if path.stem.startswith(session) or not _UUID.fullmatch(path.stem))
    seen.files.extend(f for f in _examined(near, seen.errors) if ids.session_id(f.agent_id).startswith(session))
    found = sorted({ids.session_id(file.agent_id) for file in seen.files})
    if len(found) > 1:
        raise AmbiguousError(f"“{session}” fits {', '.join(found)}", "Give more of the id.")
    if not found:
        raise NotFoundError(
            f"there is no transcript of a conversation “{session}”", "sessgit import --id ID PATH names its file."
        )
    if _recorded(index, seen.files, privacy):
        delete.recorded_again(store, found[0], now)
    return _record(store, index, _Seen(seen.files), config, privacy, progress)


def from_claude(
    store: Store, index: Index, paths: Sequence[Path], config: Path, privacy: Privacy, progress: Progress
) -> Imported:
    """Imports folders of the client as they lie somewhere, with plan, todos and tasks as of the last turn of each.

    Nothing outside of a folder is read, and no link in it is followed. `config` is the folder of the client that
    works here: no other one counts as the place of a transcript. Raises UsageError as `run` does.
    """
    private.check_on(off=privacy.off)
    if not paths:
        raise UsageError("--from claude needs the folder to import", "sessgit import --from claude DIR")
    seen = _Seen()
    for path in paths:
        if not (path / "projects").is_dir():
            raise NotFoundError(f"{path} has no folder projects", "A folder of the client has one, as ~/.claude has.")
        folder = config if path.resolve() == config.resolve() else path.absolute()
        for file in _examined(home.transcripts(folder), seen.errors):
            if _is_sound(folder, file, seen.errors):
                seen.files.append(replace(file, folder=folder))
    return _record(store, index, seen, config, privacy, progress)


Importer = Callable[[Store, Index, Sequence[Path], Path, Privacy, Progress], Imported]

SOURCES: dict[str, Importer] = {"claude": from_claude}
"""By the name of a system what imports its files."""


def source_named(name: str) -> Importer:
    """What imports the files of a system; raises UsageError where it is none of `SOURCES`."""
    if name not in SOURCES:
        raise UsageError(f"nothing can be imported from “{name}”", f"There is: {', '.join(sorted(SOURCES))}.")
    return SOURCES[name]


def _is_sound(folder: Path, file: _File, errors: list[Failure]) -> bool:
    """Whether all that a recording of the file reads lies in the folder itself."""
    if not sidefiles.PLAIN.fullmatch(file.agent_id):
        errors.append(Failure(file.path, "the session's id in it cannot be the name of a file"))
        return False
    found = next(folders.links(folder, file.path, file.agent_id), None)
    if found is not None:
        errors.append(Failure(file.path, f"{found} is a link, and none is followed"))
    return found is None


def _record(store: Store, index: Index, found: _Seen, config: Path, privacy: Privacy, progress: Progress) -> Imported:
    files, errors = _recorded(index, found.files, privacy), found.errors
    total, done = sum(file.size for file in files), 0
    folders = {config, *(file.folder for file in files if file.folder)}
    live = {client.agent_id for folder in folders for client in home.live_clients(folder)}
    before, seen, turns = refs.read_all(store.path, layout.HEADS), set[str](), 0
    grown: set[str] = set()
    moved = 0
    aside: dict[str, Aside] = {}
    for file in _in_order(files):
        progress(done, total)
        try:
            source = Source(
                file.path,
                file.agent_id,
                file.folder or config,
                final=file.agent_id not in live,
                at_rest=file.folder is not None and file.agent_id not in live,
                own=config,
            )
            with locks.session(store.beside, source.session, _LOCK_WAIT) as held:
                if not held:
                    errors.append(Failure(file.path, "a recorder has been at work on it for half a minute"))
                    continue
                result = record(store, index, source, Rules(privacy.rules.granularity, privacy.rules.redact))
            seen.add(result.session)
            turns += len(result.turns)
            moved += result.changed
            if result.changed and moved % _LOOSE_REFS == 0:
                _pack_refs(store)
            # A few lines more behind the last turn are nothing that a person would call brought in.
            if result.turns or layout.head(result.session) not in before:
                grown.add(result.session)
            if result.aside == "deleted" or (
                result.aside and not catchup.is_level(store.beside, source.session, file.path)
            ):
                aside[result.session] = result.aside
        except StoreError:
            raise  # it is not the file's fault, and the next one would fare no better
        except SessgitError as error:
            errors.append(Failure(file.path, str(error)))
        done += file.size
    progress(total, total)
    changed = _changed(before, refs.read_all(store.path, layout.HEADS)) & seen
    unpacked = _pack(store) if changed else ""
    excluded, left = len(found.files) - len(files), list(aside.values())
    archived, deleted = left.count("archived"), left.count("deleted")
    brought = changed & grown
    unchanged = len(seen - brought) - deleted
    return Imported(len(brought), turns, unchanged, tuple(errors), unpacked, excluded, archived, deleted)


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The sessions of which a branch moved: two files of one session may have moved it there and back."""
    moved = {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}
    return {layout.session_of(ref.removeprefix(layout.HEADS)) for ref in moved}


def _pack(store: Store) -> str:
    try:
        with locks.maintenance(store.beside, _LOCK_WAIT) as held:
            if held:
                maintenance.pack(store.path, held, full=True)
    except StoreError as error:
        return f"{error}. {error.hint}".strip()
    return ""


def _pack_refs(store: Store) -> None:
    with suppress(StoreError), locks.maintenance(store.beside) as held:
        if held:
            maintenance.pack_refs(store.path, held)


def _found(paths: Sequence[Path], config: Path) -> Iterator[Path]:
    if not paths:
        yield from home.transcripts(config)
    for path in paths:
        if path.is_dir():
            folders = sorted(p for p in path.rglob("*") if p.is_dir() and not p.is_symlink() and p.name != "subagents")
            for folder in [path, *folders]:
                yield from home.transcripts_in(folder)
        else:
            yield path


def _examined(paths: Iterable[Path], errors: list[Failure]) -> Iterator[_File]:
    for path in dict.fromkeys(path.absolute() for path in paths):
        try:
            with opened(path) as source:
                size = source.size
            root = family.first_prompt(path)
            if not root and not _has_lines(path):
                errors.append(Failure(path, "it holds no line of a transcript"))
                continue
            yield _File(path, _agent_id(path), size, root)
        except SessgitError as error:
            errors.append(Failure(path, str(error)))


def _recorded(index: Index, files: list[_File], privacy: Privacy) -> list[_File]:
    """Those whose projects are recorded."""
    if privacy.is_everything:
        return files
    is_recorded = private.filtered(privacy, {name: project for name, *_, project in index.names()})
    return [file for file in files if is_recorded(file.path, ids.session_id(file.agent_id))]


def _has_lines(path: Path) -> bool:
    """Whether the file begins with anything that a client could have written."""
    with opened(path) as source:
        first = source.file.read(_FIRST_LINES).split(b"\n")
    return any(data is not None and isinstance(data.get("type"), str) for data in map(parse, first))


def _agent_id(path: Path) -> str:
    """The session's own id: the file's name where that is a uuid, else what its first lines say, else the name."""
    if _UUID.fullmatch(path.stem):
        return path.stem
    with opened(path) as source:
        first = source.file.read(_FIRST_LINES).split(b"\n")
    named = (data.get("sessionId") for data in map(parse, first) if data)
    return next((name for name in named if isinstance(name, str) and name), path.stem)


def _in_order(files: Sequence[_File]) -> Iterator[_File]:
    """Families together, the file that was born first before its copies."""
    families: dict[str, list[_File]] = {}
    for file in files:
        families.setdefault(file.root or str(file.path), []).append(file)
    for members in families.values():
        yield from members if len(members) == 1 else _parents_first(members)


def _parents_first(members: Sequence[_File]) -> Iterator[_File]:
    """By birth, but what a copy's lines name as its origin comes before it in any case."""
    seen = {file: family.outline(file.path) for file in members}
    waiting = {file.agent_id: file for file in sorted(members, key=lambda file: _birth(seen[file]), reverse=True)}
    alike = [file for file in members if waiting[file.agent_id] is not file]
    while waiting:
        chain = [waiting.popitem()[1]]
        while (named := seen[chain[-1]].forked_from) in waiting:
            chain.append(waiting.pop(named))
        yield from reversed(chain)
    yield from alike


def _birth(seen: Outline) -> tuple[str, tuple[str, ...]]:
    """A copy stamps its first lines anew; where it does not, the one whose own prompts come first is the parent."""
    return seen.born, (*seen.times, "9999")
