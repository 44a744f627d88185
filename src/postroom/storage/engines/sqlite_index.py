"""The file of the search index: beside the database, with its own writer that nobody waits for.

It is rarely synced. What a crash loses is made again, since it stores how far it has come.
"""

import sqlite3
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path

from postroom import log

NAME = "search.db"
SCHEMA = files("postroom.storage").joinpath("schema", "sqlite", "search_index.sql")
VERSION = 3  # as in the schema
CACHE_KILOBYTES = 8_000
CHECKPOINT_PAGES = 4_000
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
PRIMARY_CODE = 0xFF


def path_beside(database: Path) -> Path:
    return database.with_name(NAME)


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=128, timeout=30
    )
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute(f"pragma cache_size = -{CACHE_KILOBYTES}")
    connection.execute("pragma temp_store = memory")
    connection.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("pragma secure_delete = fast")  # else a merge also writes zeros where it read from
    return connection


def attach(connection: sqlite3.Connection, database: Path) -> sqlite3.Connection:
    """Only for a connection that reads: one that writes would lock this file too."""
    connection.execute("attach database ? as search", (str(path_beside(database)),))
    connection.execute(f"pragma search.cache_size = -{CACHE_KILOBYTES}")
    return connection


def attach_prepared(connection: sqlite3.Connection, database: Path) -> None:
    """Creates the file first if it is missing or not of this version; the check needs no other connection."""
    path = path_beside(database)
    if not (path.exists() and _is_attached_whole(connection, database)):
        prepare(path)
        attach(connection, database)


def _is_attached_whole(connection: sqlite3.Connection, database: Path) -> bool:
    with suppress(sqlite3.DatabaseError):
        attach(connection, database)
        (version,) = connection.execute("pragma search.user_version").fetchone()
        connection.execute("select count(*) from search.search_state").fetchone()
        if version == VERSION:
            return True
    with suppress(sqlite3.DatabaseError):  # it may not even have been attached
        connection.execute("detach database search")
    return False


def prepare(path: Path) -> None:
    """Creates the file, or creates it again if it is unreadable or of an earlier version."""
    try:
        if _make(path):
            return
        log.get().info("the search index is of an earlier version and is rebuilt")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & PRIMARY_CODE not in DAMAGED:
            raise
        log.get().error("the search index is damaged and is rebuilt", reason=str(error))
    for each in (path, path.with_name(f"{NAME}-wal"), path.with_name(f"{NAME}-shm")):
        with suppress(FileNotFoundError):
            each.unlink()
    _make(path)


def _make(path: Path) -> bool:
    """Creates what is missing, in one transaction; changes nothing in a file of an earlier version."""
    path.touch(mode=0o600)
    with closing(connect(path)) as connection:
        if _is_of_earlier_version(connection):
            return False
        connection.executescript(f"begin;\n{SCHEMA.read_text()}\ncommit;")
    return True


def _is_of_earlier_version(connection: sqlite3.Connection) -> bool:
    (version,) = connection.execute("pragma user_version").fetchone()
    (tables,) = connection.execute("select count(*) from sqlite_schema").fetchone()
    return bool(tables) and int(version) != VERSION


def sync(path: Path) -> None:
    """On return everything committed before is on disk."""
    with closing(connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(passive)").fetchall()
