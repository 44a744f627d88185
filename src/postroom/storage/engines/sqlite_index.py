"""The file of the search index: next to the database, with its own writer that nobody waits for.

It is rarely synced. What a crash loses is made again, since it stores how far it has come.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from importlib.resources import files
from pathlib import Path

from postroom import log
from postroom.errors import Unavailable

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
    """Attach the index to a connection that reads: one that writes would lock this file too."""
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
        if not is_damage(error):
            raise
        log.get().error("the search index is damaged and is rebuilt", reason=str(error))
    replace(path)


def replace(path: Path) -> None:
    """Puts an empty index in place of the file, also while others use it.

    A connection to the old file keeps it until it sees another `identity`. SQLite leaves the log of the new
    file alone when such a connection closes: it notices that its own file has moved.
    """
    fresh = path.with_name(f"{NAME}.new")
    fresh.unlink(missing_ok=True)
    _make(fresh)
    for end in ("-wal", "-shm"):
        path.with_name(NAME + end).unlink(missing_ok=True)
    fresh.replace(path)


def identity(path: Path) -> int:
    """Changes when the file is replaced; 0 if it is gone."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def is_damage(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and _code(error) & PRIMARY_CODE in DAMAGED


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0)  # errors of the module itself have none


def find_damage(path: Path) -> str:
    """Return what is wrong with the file, or an empty string. Reads all of it."""
    if not path.exists():
        return "it is missing"
    try:
        with closing(connect(path)) as connection:
            found = str(connection.execute("pragma quick_check(1)").fetchone()[0])
            connection.execute("select count(*) from search_state").fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error) and "no such table" not in str(error):
            raise
        found = str(error)
    return "" if found == "ok" else found


class SuspectedDamage:
    """A read found damage, in the index or in the database itself: the message of SQLite does not say."""

    def __init__(self) -> None:
        self.error: sqlite3.Error | None = None
        self._is_of_database = False

    def check(self, error: sqlite3.Error) -> None:
        """Raises Unavailable instead of an error that shows damage."""
        if is_damage(error) or "no such table: search" in str(error):
            self.error = error
            what = "Stored data cannot be read: a file is damaged. The log says which."
            raise Unavailable(what, retry_after=5) from error

    def find_cause(self, path: Path, of_database: Callable[[], str]) -> str:
        """Return the damage if the index is to blame, else an empty string."""
        error, self.error = self.error, None
        if error is None:
            return ""
        if not is_damage(error) or _code(error) == sqlite3.SQLITE_CORRUPT_VTAB:
            return str(error)
        if self._is_of_database:  # known: the files are not read again for each error
            return ""
        if found := find_damage(path):
            return found
        self._is_of_database = bool(of_database())
        return "" if self._is_of_database else str(error)


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
    """Sync the file: everything committed before is on disk on return."""
    with closing(connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(passive)").fetchall()
