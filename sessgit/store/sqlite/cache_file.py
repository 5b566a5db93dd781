"""SQLite files that are derived from the repository: opened, made anew where they are damaged or of another version.

Nothing in such a file is the truth, so it may be thrown away at any time, and where it cannot be written it lives in
memory for as long as the command runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessgit.store.files import private

_DAMAGE_CODES = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Statements are right, so where SQLite can make no sense of one, a table or a value is not what it was made as."""


class _DamageError(sqlite3.DatabaseError):
    """What SQLite itself does not notice: a damaged page that is well formed, and holds nonsense."""


DAMAGE_ERROR = _DamageError("a value that cannot be read")


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables by name with the statements that make them, and their version."""

    version: int
    tables: Sequence[str]
    statements: Sequence[str]


def connect(path: Path, schema: Schema) -> sqlite3.Connection:
    """The file at `path` with the tables of the schema, empty ones where it had none of this version."""
    for attempt in (0, 1):
        try:
            return _open_file(path, schema)
        except sqlite3.Error as error:
            if attempt or not is_damage(error):
                break
            remove_file(path)
    return connect_in_memory(schema)


def connect_in_memory(schema: Schema) -> sqlite3.Connection:
    """Empty tables of the schema that go with the connection."""
    return _prepare_tables(sqlite3.connect(":memory:", check_same_thread=False), schema)


def remove_file(path: Path) -> None:
    """Deletes the file and what SQLite keeps beside it."""
    for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        name.unlink(missing_ok=True)


def sqlite_text(value: str) -> str:
    """The text as SQLite takes it: halves of characters are replaced, as titles have them that a client cut."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error says that the file is damaged, rather than locked or gone."""
    if isinstance(error, _DamageError) or "Could not decode to UTF-8" in str(error):
        return True
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE_CODES


class _Connection(sqlite3.Connection):
    """Tells damage as such also where SQLite's own words for it cannot be read: a name in it may be damaged."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except UnicodeDecodeError as error:
            raise DAMAGE_ERROR from error


def _open_file(path: Path, schema: Schema) -> sqlite3.Connection:
    # Programs with several threads take turns with it, under a lock of theirs.
    if path.is_symlink():
        path.unlink(missing_ok=True)
    with private.files():
        db = sqlite3.connect(path, timeout=10, check_same_thread=False, factory=_Connection)
    try:
        path.chmod(0o600)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        return _prepare_tables(db, schema)
    except (sqlite3.Error, OSError) as error:
        db.close()
        if isinstance(error, OSError):
            raise sqlite3.OperationalError(str(error)) from error
        raise


def _prepare_tables(db: sqlite3.Connection, schema: Schema) -> sqlite3.Connection:
    if _schema_version(db) == schema.version:
        return db
    db.execute("BEGIN IMMEDIATE")
    with db:
        if _schema_version(db) != schema.version:  # another process may just have done it
            for table in schema.tables:
                db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in schema.statements:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {schema.version}")
    return db


def _schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
