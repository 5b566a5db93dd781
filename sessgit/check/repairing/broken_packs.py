"""Packs that git cannot use: their objects are read again, as far as they are intact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from sessgit.errors import StoreError
from sessgit.store import object_scan, pack_repair, tempdirs
from sessgit.store.object_scan import GitObject
from sessgit.store.store import Store


def mend_packs(store: Store) -> Counter[str]:
    """Make missing and damaged pack indexes again, and write the intact objects of truncated packs to the store;
    unusable packs go to `state/damaged/`. Return the number of objects restored from each kind of source."""
    restored = Counter[str]()
    for broken in pack_repair.broken_packs(store.path):
        if broken.fault == "index":
            with suppress(StoreError):  # the pack is damaged, too: its objects are searched elsewhere
                restored["a pack whose index was rebuilt"] += pack_repair.make_index(store.path, broken.path)
        elif broken.fault == "cut":
            with tempdirs.make_folder("repair-", store.paths.state) as folder:
                intact = list(pack_repair.salvage_objects(broken.path, folder / "store"))
            missing = [one for one in intact if store.repo.read_problem(one.id)]
            write_objects(store, missing)
            pack_repair.quarantine_pack(store.path, broken.path)
            restored["a truncated pack"] += len(missing)
    store.repo.refresh_packs()
    return restored


def write_objects(store: Store, objects: Sequence[GitObject]) -> None:
    """Write objects to the store, where damaged ones of their names make room."""
    for one in objects:
        object_scan.write_loose_object(store.path, one, store.paths.state / "damaged")
