"""Sessions as files in the layout of another system, in a folder where none of them lies over another one's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sessgit.api.state import cell_document, unified
from sessgit.branch import restore, sidecars
from sessgit.errors import ConflictError, SessgitError, StoreError
from sessgit.exchange import session_view, systems
from sessgit.exchange.layouts import shared_documents
from sessgit.history.cells import graph as cell_graph
from sessgit.history.cells import index as cell_index
from sessgit.history.views import Prices
from sessgit.model.foreign_session import ForeignSession
from sessgit.model.progress import Progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store, write_private


@dataclass(frozen=True, slots=True)
class Exported:
    """How many sessions and files the folder has, and how many of those were there already."""

    sessions: int
    files: int
    already: int


@dataclass(frozen=True, slots=True)
class ExportContext:
    """What an export reads: a store, its index, and what tokens cost."""

    store: Store
    index: Index
    prices: Prices


def export_sessions(
    world: ExportContext, system: str, branches: Sequence[Branch], folder: Path, progress: Progress
) -> Exported:
    """Writes the sessions of these branches in the system's layout, each whole.

    Raises ConflictError, with nothing written, where a file in the folder holds something else.
    """
    names = dict.fromkeys(layout.session_of(branch.name) for branch in branches)
    heads = [head for name in names if (head := world.index.branch(name)) is not None]
    laid = dict[str, bytes]()
    for head in heads:
        for path, data in _session_files(world, system, head, progress).items():
            both = shared_documents.merge_documents(path, laid[path], data) if path in laid else data
            if both is None:
                raise SessgitError(f"two of them would have the file {path}", "Export them into separate folders.")
            laid[path] = both
    planned = [_plan_file(folder, path, data) for path, data in laid.items()]
    already = sum(_write_file(one) for one in planned)
    return Exported(len(heads), len(planned), already)


def _session_files(world: ExportContext, system: str, head: Branch, progress: Progress) -> Mapping[str, bytes]:
    store, index = world.store, world.index
    session: ForeignSession = session_view.session_view(store, index, head, system, progress)
    if system != "rlm":
        return systems.write(system, session)
    from sessgit.exchange.layouts.rlm import sessions as rlm

    session = session_view.with_transcript(session, restore.rebuild_file(store, head.name).data)
    document = unified.unified_document(store, index, head, world.prices)
    graph = cell_graph.read_graph(store, index, head)
    own = cell_index.index_document(head.name, graph)
    document["cells"] = {**document["cells"], **own, "count": document["cells"]["count"]}
    return rlm.write(session, document, list(cell_document.all_cell_documents(store, index, head, graph)))


@dataclass(frozen=True, slots=True)
class _PlannedFile:
    """A file and the bytes that it shall have; `unites` says that it has those of another session already."""

    place: Path
    data: bytes
    unites: bool = False


def _plan_file(folder: Path, path: str, data: bytes) -> _PlannedFile:
    """What is to be written; raises ConflictError where another file is there."""
    place = folder / path
    above = [place.parents[n] for n in range(path.count("/") + 1)]
    odd = next((one for one in above if one.is_symlink() or (one.exists() and not one.is_dir())), None)
    if odd is not None and odd != folder:
        raise ConflictError(f"{odd} is not a folder", "Nothing was written. Name another folder.")
    if not place.exists() and not place.is_symlink():
        return _PlannedFile(place, data)
    found = sidecars.read_file(place)
    if found == data:
        return _PlannedFile(place, data)
    both = shared_documents.merge_documents(path, found, data) if found is not None else None
    if both is None:
        raise ConflictError(
            f"{place} already exists with other contents",
            "Nothing was written. Name another folder.",
        )
    return _PlannedFile(place, both, unites=True)


def _write_file(file: _PlannedFile) -> bool:
    """Makes a file, or of a document that sessions share one that has all of them; returns whether it was there."""
    outcome = sidecars.put_file(file.place, file.data)
    if outcome == sidecars.LEFT and not file.unites:
        raise ConflictError(f"{file.place} now exists with other contents", "It was not changed.")
    if outcome == sidecars.LEFT:
        try:
            write_private(file.place, file.data)
        except StoreError as error:
            raise SessgitError(str(error), error.hint) from error
    return outcome == sidecars.ALREADY
