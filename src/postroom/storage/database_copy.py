"""A consistent copy of a whole database as files, made while others write; and its restore.

SQLite: a copy of its file. PostgreSQL: every table by COPY, in one snapshot.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from postroom.storage.data_folder import sync_folder
from postroom.storage.database import StorageError
from postroom.storage.engines.postgres import PostgresSession, require_unicode
from postroom.storage.engines.postgres_connections import TCP
from postroom.storage.engines.sqlite import connect
from postroom.storage.migrate import migrate

SQLITE_FILE = "postroom.db"
CLAIMS = "duties"  # of running nodes; they mean nothing later
OF_COPIES = TCP | {"application_name": "postroom backup"}  # keepalives end a copy if the database is gone
BLOB_TABLES = ("raw_mails", "draft_files", "file_links")
PostgresRows = psycopg.Connection[tuple[Any, ...]]


class DatabaseCopy(Protocol):
    """Copies one database into files, or files into an empty database."""

    engine: str

    def take(self, folder: Path) -> list[Path]:
        """Writes all of it to files, from one snapshot."""
        ...

    def blobs(self) -> Iterator[str]:
        """Yield the blobs that the snapshot names. Call after `take`."""
        ...

    def schema_version(self) -> int:
        """Return the schema version of the snapshot. Call after `take`."""
        ...

    def require_empty(self) -> None: ...
    def put(self, files: Sequence[Path]) -> None:
        """Put the files, invisible to others before `finish`."""
        ...

    def finish(self) -> None: ...
    def close(self) -> None: ...


class SqliteCopy:
    engine = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._restored: Path | None = None
        self._copy: sqlite3.Connection | None = None

    def take(self, folder: Path) -> list[Path]:
        """Take the snapshot in one step.

        With several, SQLite would restart whenever the server writes in between.
        """
        path = folder / SQLITE_FILE
        path.touch(mode=0o600, exist_ok=False)
        try:
            self._copy = connect(path)
            with closing(connect(self._path)) as source:
                source.backup(self._copy)
            self._copy.execute("pragma journal_mode = delete")
        except sqlite3.Error as error:
            raise StorageError(f"The database cannot be copied: {error}.") from error
        try:
            found = self._copy.execute("pragma quick_check").fetchone()[0]
        except sqlite3.DatabaseError as error:  # so damaged that the check itself ends
            found = f"{error}. Run: postroom verify"
        if found != "ok":
            raise StorageError(f"The database is damaged: {found}")
        return [path]

    def blobs(self) -> Iterator[str]:
        for table in BLOB_TABLES:
            yield from (row[0] for row in self._taken().execute(_NAMED.format(table)))

    def schema_version(self) -> int:
        return int(self._taken().execute("select max(number) from schema_versions").fetchone()[0])

    def require_empty(self) -> None:
        if self._path.exists():
            raise StorageError(f"{self._path} already exists. Restore into an empty data folder.")

    def put(self, files: Sequence[Path]) -> None:
        (self._restored,) = files

    def finish(self) -> None:
        assert self._restored is not None, "put first"
        self._restored.rename(self._path)
        sync_folder(self._path.parent)

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()

    def _taken(self) -> sqlite3.Connection:
        assert self._copy is not None, "take first"
        return self._copy


class PostgresCopy:
    engine = "postgres"

    def __init__(self, url: str) -> None:
        try:
            self._connection = psycopg.connect(make_conninfo("", **(OF_COPIES | conninfo_to_dict(url))))
        except psycopg.Error as error:
            raise StorageError(f"POSTROOM_DATABASE_URL: PostgreSQL cannot be reached: {error}") from error

    def take(self, folder: Path) -> list[Path]:
        self._connection.read_only = True
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            tables = [table for table in list_tables(self._connection) if table != CLAIMS]
            return [self._take_table(folder, table) for table in tables]
        except psycopg.Error as error:
            raise StorageError(f"The database cannot be copied: {error}") from error

    def _take_table(self, folder: Path, table: str) -> Path:
        path = folder / f"{table}.copy"
        path.touch(mode=0o600, exist_ok=False)
        with path.open("wb") as file, self._connection.cursor() as cursor:
            names = ", ".join(name for name, _ in columns_of(self._connection, table)).encode()
            file.write(names + b"\n")
            with cursor.copy(self._statement("copy {}({}) to stdout (format binary)", table, names)) as rows:
                for part in rows:
                    file.write(part)
        return path

    def blobs(self) -> Iterator[str]:
        for table in BLOB_TABLES:
            with self._connection.cursor(f"blobs_of_{table}") as cursor:
                cursor.execute(_NAMED.format(table).encode())
                yield from (row[0] for row in cursor)

    def schema_version(self) -> int:
        row = self._connection.execute("select max(number) from schema_versions").fetchone()
        assert row is not None
        return int(row[0])

    def require_empty(self) -> None:
        with suppress(psycopg.errors.UndefinedTable):
            if self._connection.execute("select 1 from accounts limit 1").fetchone() is not None:
                raise StorageError("The database already has accounts. Restore into an empty one.")
        self._connection.rollback()

    def put(self, files: Sequence[Path]) -> None:
        """Put the rows, referenced tables first. Remove rows that the schema itself inserted."""
        by_table = {path.stem: path for path in files}
        tables = list_tables(self._connection)
        if missing := sorted(by_table.keys() - set(tables)):
            raise StorageError(f"The schema lacks tables of the backup: {', '.join(missing)}.")
        try:
            self._put_all(tables, by_table)
        except psycopg.Error as error:
            raise StorageError(f"The backup cannot be restored: {error}") from error

    def _put_all(self, tables: Sequence[str], by_table: dict[str, Path]) -> None:
        names = sql.SQL(", ").join(map(sql.Identifier, tables))
        self._connection.execute(sql.SQL("truncate {}").format(names))
        for table in tables:
            if table in by_table:
                self._put_table(table, by_table[table])
        go_on_counting(self._connection)

    def _put_table(self, table: str, path: Path) -> None:
        with path.open("rb") as file, self._connection.cursor() as cursor:
            names = file.readline().strip()
            with cursor.copy(self._statement("copy {}({}) from stdin (format binary)", table, names)) as rows:
                while part := file.read(1 << 20):
                    rows.write(part)

    def finish(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()

    def _statement(self, text: Any, table: str, columns: bytes) -> sql.Composed:
        names = sql.SQL(", ").join(sql.Identifier(name) for name in columns.decode().split(", "))
        return sql.SQL(text).format(sql.Identifier(table), names)


def make_schema(url: str, now: int, version: int | None = None) -> None:
    """Create the schema, for a backup up to its version: later migrations run when all rows are there."""
    session = PostgresSession(url)
    try:
        require_unicode(session.tx)
        migrate(session, now, up_to=version)
    finally:
        session.close()


def columns_of(connection: PostgresRows, table: str) -> list[tuple[str, str]]:
    """Names and types."""
    return connection.execute(
        "select column_name, udt_name from information_schema.columns where table_schema = current_schema()"
        " and table_name = %s order by ordinal_position",
        (table,),
    ).fetchall()


def list_tables(connection: PostgresRows) -> list[str]:
    """List the tables, referenced ones first."""
    rows = connection.execute(
        "select table_name from information_schema.tables where table_schema = current_schema()"
        " and table_type = 'BASE TABLE' order by table_name"
    )
    names = connection.execute(
        "select conrelid::regclass::text, confrelid::regclass::text from pg_constraint"
        " where contype = 'f' and connamespace = current_schema()::regnamespace"
    )
    return in_order([row[0] for row in rows], {(row[0], row[1]) for row in names})


def go_on_counting(connection: PostgresRows) -> None:
    """Sets sequences to continue after the restored rows."""
    counted = connection.execute(
        "select table_name, column_name from information_schema.columns"
        " where table_schema = current_schema() and is_identity = 'YES'"
    ).fetchall()
    for table, column in counted:
        connection.execute(
            sql.SQL(
                "select setval(pg_get_serial_sequence(%s, %s), coalesce(max({}), 0) + 1, false) from {}"
            ).format(sql.Identifier(column), sql.Identifier(table)),
            (table, column),
        )


def in_order(tables: Sequence[str], names: set[tuple[str, str]]) -> list[str]:
    """Sort the tables so that referenced ones come first.

    `names` are pairs of a table and one that it references.
    """
    ordered: list[str] = []
    while rest := [table for table in tables if table not in ordered]:
        free = [each for each in rest if not any((each, other) in names for other in rest if other != each)]
        if not free:
            raise StorageError("The tables reference each other in a circle.")
        ordered += free
    return ordered


_NAMED = "select blob from {} where blob is not null"
