"""SQLite files that are derived from the repository: opened, and recreated if they are damaged or of another version.

Such a file may be deleted at any time, and if it cannot be written it lives in memory as long as the command runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessgit.model.frozen import frozen
from sessgit.store import private_files

_DAMAGE_CODES = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)
"""The program's statements are valid, so one that SQLite cannot parse or execute shows a damaged table. An I/O error is
what it reports if another process deletes its files at the moment in which they are opened."""


class _DamageError(sqlite3.DatabaseError):
    """Damage that SQLite does not notice: a well-formed page with nonsense in it."""


DAMAGE_ERROR = _DamageError("a value that cannot be read")


@frozen
class Schema:
    """The names of the tables, the statements that create them, and their version."""

    version: int
    tables: Sequence[str]
    statements: Sequence[str]


def connect(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open the file at `path`, with empty tables if it has none of this version."""
    for is_retry in (False, True):
        try:
            return _open_file(path, schema)
        except sqlite3.Error as error:
            if is_retry or not is_damage(error):
                break
            remove_file(path)
    return connect_in_memory(schema)


def connect_in_memory(schema: Schema) -> sqlite3.Connection:
    """Return a connection with empty tables that are gone with it."""
    return _prepare_tables(sqlite3.connect(":memory:", check_same_thread=False), schema)


def remove_file(path: Path) -> None:
    """Delete the file and SQLite's other files for it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def sqlite_text(value: str) -> str:
    """Return the text with halves of characters, as in a title that the client cut, replaced: SQLite refuses them."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error means that the file is damaged, not locked or gone."""
    if isinstance(error, _DamageError) or "Could not decode to UTF-8" in str(error):
        return True
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE_CODES


class _Connection(sqlite3.Connection):
    """Reports damage as such even if SQLite's message holds a damaged name that cannot be decoded."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except UnicodeDecodeError as error:
            raise DAMAGE_ERROR from error


def _open_file(path: Path, schema: Schema) -> sqlite3.Connection:
    if path.is_symlink():
        path.unlink(missing_ok=True)
    with suppress(OSError):  # SQLite gives its other files the mode of this one
        private_files.open_append(path).close()
    # Programs with several threads use it under a lock of theirs.
    db = sqlite3.connect(path, timeout=10, check_same_thread=False, factory=_Connection)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        return _prepare_tables(db, schema)
    except sqlite3.Error:
        db.close()
        raise


def _prepare_tables(db: sqlite3.Connection, schema: Schema) -> sqlite3.Connection:
    if _schema_version(db) == schema.version:
        return db
    db.execute("BEGIN IMMEDIATE")
    with db:
        if _schema_version(db) != schema.version:  # another process may have done it meanwhile
            for table in schema.tables:
                db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in schema.statements:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {schema.version}")
    return db


def _schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
