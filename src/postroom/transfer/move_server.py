"""Moves the database of a SQLite server to PostgreSQL: table by table, then both are compared row by row.

A batch of rows and its progress are one transaction, so a move that was killed can continue.
Files stay where they are: the new server uses the data folder with large emails, journals and certificate.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from msgspec import Struct, field
from psycopg import sql

from postroom.storage.database import StorageError
from postroom.storage.database_copy import (
    CLAIMS,
    PostgresRows,
    columns_of,
    go_on_counting,
    list_tables,
    make_schema,
)
from postroom.storage.engines.postgres import UNFINISHED_MOVE, in_one_line
from postroom.storage.engines.sqlite import SqliteSession, connect
from postroom.storage.migrate import migrate

BATCH_ROWS = 2_000
BATCH_BYTES = 8 * 1024 * 1024
MOVE_LOCK = 0x6D6F7665  # any number that all moves into one database share
OF_THE_INDEX = "search_"  # rebuilt from the messages: its words are stored in another form
OF_SQLITE = "sqlite_"
OF_THE_SCHEMA = "schema_versions"
BEFORE_ALL = -(1 << 62)
HASH_BYTES = 16
NUL, IN_ITS_PLACE = "\0", "\ufffd"

Values = tuple[Any, ...]
OnProgress = Callable[[int], None]  # each row twice: when it is copied, and when it is compared


class Table(Struct, frozen=True):
    """As it is in both databases."""

    name: str
    columns: list[str]
    types: list[str]


class Moved(Struct):
    """`without_nul` counts values that PostgreSQL could not store unchanged."""

    tables: int = 0
    rows: int = 0
    without_nul: int = 0


class Finished(Struct, frozen=True):
    """All rows are there, and equal."""

    origin: str
    moved: Moved


class Fingerprint(Struct):
    """A hash of rows in any order: their number, and the sum of their hashes."""

    count: int = 0
    total: int = 0

    def add(self, row: Values) -> None:
        hashed = hashlib.blake2b(msgspec.msgpack.encode(row), digest_size=HASH_BYTES).digest()
        self.count += 1
        self.total = (self.total + int.from_bytes(hashed)) % (1 << 8 * HASH_BYTES)


class ServerMove(Struct):
    source: sqlite3.Connection
    target: PostgresRows
    origin: str
    report: OnProgress
    moved: Moved = field(default_factory=Moved)


def move_rows(path: Path, url: str, now: int, report: OnProgress) -> Moved:
    """Move the rows. The caller holds the lock of the data folder.

    Raises StorageError, and can be repeated.
    """
    with closing(open_source(path, now)) as source, closing(open_target(url)) as target, errors_in_one_line():
        move = ServerMove(source, target, origin_of(path), report)
        if (finished := find_finished(target, move.origin)) is not None:
            report(2 * finished.rows)
            return finished
        tables = begin_or_go_on(move, url, now)
        for table in tables:
            copy_table(move, table)
        for table in tables:
            compare_table(move, table)
        finish(move)
        return move.moved


def count_rows(path: Path) -> int:
    """Count all rows that a move copies, however far it has come."""
    with closing(connect(path)) as source:
        tables = [row[0] for row in source.execute("select name from sqlite_schema where type = 'table'")]
        counted = [
            source.execute(f'select count(*) from "{table}"').fetchone()[0]
            for table in tables
            if is_moved(table) and not table.startswith(OF_SQLITE)
        ]
    return sum(counted)


def open_source(path: Path, now: int) -> sqlite3.Connection:
    """Open the source in this version's schema, locked against changes."""
    if not path.is_file():
        raise StorageError(f"POSTROOM_DATA_DIR: there is no SQLite database in {path.parent.absolute()}.")
    session = SqliteSession(path)
    migrate(session, now)
    session.close()
    source = connect(path)
    source.execute("pragma wal_checkpoint(truncate)")
    source.execute("begin immediate")
    return source


def origin_of(path: Path) -> str:
    """Changes whenever something was written there."""
    found = path.stat()
    return f"{found.st_size}-{found.st_mtime_ns}"


def open_target(url: str, setting: str = "--to") -> PostgresRows:
    try:
        target = psycopg.connect(url, autocommit=True, application_name="postroom move")
    except psycopg.Error as error:
        raise StorageError(f"{setting}: PostgreSQL cannot be reached: {in_one_line(error)}") from error
    row = target.execute("select pg_try_advisory_lock(%s)", (MOVE_LOCK,)).fetchone()
    if row is None or not row[0]:
        target.close()
        raise StorageError(f"{setting}: another move into this database is running. Wait until it ends.")
    target.execute("set synchronous_commit = off")  # the last commit, which counts, waits for all before it
    return target


def drop_unfinished(url: str) -> bool:
    """Removes what an unfinished move left; its source has all of it. False if there is nothing."""
    with closing(open_target(url, "POSTROOM_DATABASE_URL")) as target:
        tables = list_tables(target)
        if UNFINISHED_MOVE not in tables:
            return False
        names = sql.SQL(", ").join(sql.Identifier(table) for table in tables if is_moved(table))
        with target.transaction():
            target.execute(sql.SQL("truncate {}").format(names))
            target.execute(f"drop table {UNFINISHED_MOVE}")
    return True


def begin_or_go_on(move: ServerMove, url: str, now: int) -> list[Table]:
    """Removes rows of another origin first: an earlier state, or another server."""
    require_room(move.target)
    move.target.execute(
        f"create table if not exists {UNFINISHED_MOVE} (name text primary key, origin text not null,"
        " reached bigint not null, rows bigint not null)"
    )
    make_schema(url, now)
    tables = [describe(move, name) for name in list_tables(move.target) if is_moved(name)]
    begun = move.target.execute(f"select distinct origin from {UNFINISHED_MOVE}").fetchall()
    if begun != [(move.origin,)]:
        names = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
        with move.target.transaction():
            move.target.execute(sql.SQL("truncate {}").format(names))
            move.target.execute(f"delete from {UNFINISHED_MOVE}")
    return tables


def require_room(target: PostgresRows) -> None:
    tables = list_tables(target)
    if UNFINISHED_MOVE in tables or not tables:
        return
    if "accounts" not in tables:
        raise StorageError(f"--to: the database has other tables ({tables[0]}). Move into an empty one.")
    if target.execute("select 1 from accounts limit 1").fetchone() is not None:
        raise StorageError("--to: the database already has accounts. Move into an empty one.")


def is_moved(table: str) -> bool:
    return table not in (CLAIMS, OF_THE_SCHEMA, UNFINISHED_MOVE) and not table.startswith(OF_THE_INDEX)


def describe(move: ServerMove, name: str) -> Table:
    columns = columns_of(move.target, name)
    here = {row[1] for row in move.source.execute(f'pragma table_info("{name}")')}
    if here != {column for column, _ in columns}:
        raise StorageError(f"--to: the table {name} is of another version. Move into an empty one.")
    return Table(name, [column for column, _ in columns], [kind for _, kind in columns])


def copy_table(move: ServerMove, table: Table) -> None:
    reached, done = find_place(move, table)
    move.report(done)
    rows = read_rows(move.source, table, reached)
    while batch := take_batch(rows):
        done += len(batch)
        with move.target.transaction():
            put_batch(move, table, batch)
            record_place(move, table, batch[-1][0], done)
        move.report(len(batch))
    move.moved.tables += 1
    move.moved.rows += done


def find_place(move: ServerMove, table: Table) -> tuple[int, int]:
    row = move.target.execute(
        f"select reached, rows from {UNFINISHED_MOVE} where name = %s", (table.name,)
    ).fetchone()
    return (BEFORE_ALL, 0) if row is None else (row[0], row[1])


def record_place(move: ServerMove, table: Table, reached: int, rows: int) -> None:
    move.target.execute(
        f"insert into {UNFINISHED_MOVE} (name, origin, reached, rows) values (%s, %s, %s, %s)"
        " on conflict (name) do update set reached = excluded.reached, rows = excluded.rows",
        (table.name, move.origin, reached, rows),
    )


def read_rows(source: sqlite3.Connection, table: Table, after: int) -> Iterator[Values]:
    """Yield the number of each row, then its columns. Rows that SQLite does not number are ordered by key."""
    names = ", ".join(f'"{column}"' for column in table.columns)
    key = key_in_place_of_numbers(source, table)
    if not key:
        return source.execute(
            f'select rowid, {names} from "{table.name}" where rowid > ? order by rowid', (after,)
        )
    passed = max(after, 0)
    rows = source.execute(
        f'select {names} from "{table.name}" order by {", ".join(key)} limit -1 offset ?', (passed,)
    )
    return ((number, *row) for number, row in enumerate(rows, passed + 1))


def key_in_place_of_numbers(source: sqlite3.Connection, table: Table) -> list[str]:
    (sql,) = source.execute("select sql from sqlite_schema where name = ?", (table.name,)).fetchone()
    if not sql.lower().endswith("without rowid"):
        return []
    columns = source.execute(f'pragma table_info("{table.name}")').fetchall()
    return [name for place, name in sorted((row[5], row[1]) for row in columns) if place]


def take_batch(rows: Iterator[Values]) -> list[Values]:
    batch: list[Values] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes | str))
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            break
    return batch


def put_batch(move: ServerMove, table: Table, batch: list[Values]) -> None:
    with move.target.cursor() as cursor, cursor.copy(_copy("copy {} from stdin", table)) as copy:
        copy.set_types(table.types)
        for row in batch:
            move.moved.without_nul += sum(NUL in value for value in row if isinstance(value, str))
            copy.write_row(as_there(table, row[1:]))


def as_there(table: Table, row: Values) -> Values:
    """Convert a row.

    SQLite stores any value in a column; PostgreSQL has one type each, and no NUL in texts.
    """
    return tuple(map(_as_there, table.types, row))


def _as_there(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "text":
        return str(value).replace(NUL, IN_ITS_PLACE)
    if kind == "bytea":
        return value.encode() if isinstance(value, str) else bytes(value)
    return int(value)


def compare_table(move: ServerMove, table: Table) -> None:
    here, there = Fingerprint(), Fingerprint()
    for row in read_rows(move.source, table, BEFORE_ALL):
        here.add(as_there(table, row[1:]))
    with move.target.cursor() as cursor, cursor.copy(_copy("copy {} to stdout", table)) as copy:
        copy.set_types(table.types)
        for row in copy.rows():
            there.add(row)
    if here != there:
        move.target.execute(f"update {UNFINISHED_MOVE} set origin = ''")
        raise StorageError(
            f"--to: the table {table.name} is not there as it is here ({there.count} rows of {here.count})."
            " Something else has written into the database. Run the command again: it starts over."
        )
    move.report(here.count)


def _copy(text: Any, table: Table) -> sql.Composed:
    names = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    of_table = sql.SQL("{}({})").format(sql.Identifier(table.name), names)
    return sql.SQL(text + " (format binary)").format(of_table)


def finish(move: ServerMove) -> None:
    """Complete the move: from this commit on the server may be started.

    A second call finds what was moved.
    """
    target, moved = move.target, Finished(move.origin, move.moved)
    target.execute("set synchronous_commit = on")
    with target.transaction():
        go_on_counting(target)
        note = sql.Literal(msgspec.json.encode(moved).decode())
        target.execute(sql.SQL("comment on table {} is {}").format(sql.Identifier(OF_THE_SCHEMA), note))
        target.execute(f"drop table {UNFINISHED_MOVE}")
    target.execute("analyze")


def find_finished(target: PostgresRows, origin: str) -> Moved | None:
    """Return what an earlier call moved from the same state of the same database, or None."""
    row = target.execute("select obj_description(to_regclass(%s), 'pg_class')", (OF_THE_SCHEMA,)).fetchone()
    try:
        finished = msgspec.json.decode((row[0] if row else "") or "", type=Finished)
    except msgspec.MsgspecError:
        return None
    return finished.moved if finished.origin == origin else None


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise StorageError(
            f"--to: {in_one_line(error)}. Run the command again: it continues where it stopped."
        ) from error
    except sqlite3.Error as error:
        raise StorageError(f"POSTROOM_DATA_DIR: the database cannot be read: {error}.") from error
