"""Files of a session that are kept as they are, since nothing else here could hold what they say."""

from __future__ import annotations

from sessgit.exchange.layouts import files
from sessgit.exchange.layouts.files import DamagedFileError, Folder

_MOST_BYTES = 64 << 20
"""Bytes of all that is kept of a session."""


def keep_file(
    source: Folder, path: str, name: str, session: str, kept: dict[str, bytes], told: str = "kept as it is"
) -> None:
    """Adds a file to those that are kept of a session, by its name as any system can have it, and notes that.

    One that cannot be read, has a name that is taken, or makes it too much, is noted as that and not added.
    """
    try:
        data = source.data(path)
    except DamagedFileError as error:
        source.note(path, "damaged", str(error), session)
        return
    place = files.storable_path(name)
    if place in kept:
        source.note(path, "left", "another file has its name", session)
    elif sum(map(len, kept.values())) + len(data) > _MOST_BYTES:
        source.note(path, "left", f"the session has more than {_MOST_BYTES >> 20} MB of files", session)
    else:
        kept[place] = data
        source.note(path, "imported", told, session)
