"""Migrations: each applied once, under a lock, and never on a database of another age."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import postroom
from postroom.storage.database import StorageError, Tx
from postroom.storage.engines.postgres import PostgresSession
from postroom.storage.engines.sqlite import SqliteSession, connect
from postroom.storage.migrate import (
    FIRST,
    Migration,
    all_migrations,
    apply_missing,
    current_version,
    migrate,
)
from postroom.storage.opening import open_database
from postroom.storage.write_jobs import WriteSession
from tests.conftest import new_postgres_database, settings
from tests.doubles import START

LATEST = all_migrations("sqlite")[-1].number


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty database."""
    with new_postgres_database("template1") as url:
        yield url


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_gaps(engine: str) -> None:
    assert [migration.number for migration in all_migrations(engine)] == list(range(FIRST, LATEST + 1))


def open_session(database_url: str, folder: Path) -> WriteSession:
    return PostgresSession(database_url) if database_url else SqliteSession(folder / "postroom.db")


def test_a_new_sqlite_database_is_the_one_that_the_migrations_make(tmp_path: Path) -> None:
    whole, migrated = SqliteSession(tmp_path / "whole.db"), SqliteSession(tmp_path / "migrated.db")
    migrate(whole, START)
    migrate(migrated, START, up_to=LATEST)
    for session in (whole, migrated):
        session.close()
    assert dump_of(tmp_path / "whole.db") == dump_of(tmp_path / "migrated.db")


def dump_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return sorted(
            "\n".join(line.rstrip() for line in statement.splitlines()) for statement in connection.iterdump()
        )


async def test_a_later_migration_is_applied_once_and_keeps_the_rows(
    database_url: str, tmp_path: Path
) -> None:
    session = open_session(database_url, tmp_path)
    migrate(session, START)
    session.begin()
    session.tx.run("insert into accounts (id, name, plan, created_at) values ('acc_1', 'default', 'free', 1)")
    later = Migration(
        LATEST + 1,
        f"{LATEST + 1:04}_colour.sql",
        "-- What it is painted in.\nalter table accounts add column colour text;\n\n"
        "update accounts set colour = 'green';\n",
    )
    for _ in range(2):
        apply_missing(session.tx, [*all_migrations(session.engine), later], START)
    assert current_version(session.tx) == LATEST + 1
    assert [row["colour"] for row in session.tx.all("select colour from accounts")] == ["green"]
    session.commit()
    session.close()


async def test_a_database_from_before_the_first_release_is_refused_and_left_alone(
    database_url: str, tmp_path: Path
) -> None:
    session = open_session(database_url, tmp_path)
    session.begin()
    session.tx.run("create table schema_versions (number integer primary key, applied_at bigint not null)")
    session.tx.run("insert into schema_versions (number, applied_at) values (21, 0)")
    session.commit()
    with pytest.raises(
        StorageError,
        match=r"schema 21, of an early build of Postroom 1\.0\.0.*build that made it.*postroom import",
    ):
        await open_database(settings(tmp_path, DATABASE_URL=database_url), START)
    session.begin()
    assert current_version(session.tx) == 21
    with pytest.raises(Exception, match="accounts"):
        session.tx.one("select * from accounts")
    session.rollback()
    session.close()


async def test_a_database_whose_first_schema_was_another_is_refused_with_what_to_do(
    database_url: str, tmp_path: Path
) -> None:
    """As builds between releases made it, before schema files were never changed."""
    session = open_session(database_url, tmp_path)
    migrate(session, START, up_to=FIRST)
    session.begin()
    session.tx.run("drop table deliveries")
    session.tx.run("create table deliveries (id text primary key)")
    session.commit()
    with pytest.raises(
        StorageError, match=r"schema 100\) is not as Postroom 1\.0\.0 made it.*accounts export"
    ):
        migrate(session, START)
    session.begin()
    assert current_version(session.tx) == FIRST
    session.rollback()
    session.close()


async def test_opening_twice_changes_nothing(database_url: str, tmp_path: Path) -> None:
    for _ in range(2):
        db = await open_database(settings(tmp_path, DATABASE_URL=database_url), START)
        rows = await db.read(lambda tx: tx.all("select number from schema_versions order by number"))
        await db.close()
    assert [row["number"] for row in rows] == list(range(FIRST, LATEST + 1))


async def test_nodes_that_start_together_wait_for_each_other(postgres_url: str, tmp_path: Path) -> None:
    config = settings(tmp_path, DATABASE_URL=postgres_url)
    databases = await asyncio.gather(*(open_database(config, START) for _ in range(4)))
    assert await databases[0].read(current_version) == LATEST
    for db in databases:
        await db.close()


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(
    database_url: str, tmp_path: Path
) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url)
    db = await open_database(config, START)
    await db.write(
        lambda tx: tx.run("insert into schema_versions (number, applied_at) values (:n, 0)", n=LATEST + 1)
    )
    await db.close()
    with pytest.raises(StorageError, match="written by a newer Postroom"):
        await open_database(config, START)


async def test_a_migration_that_fails_leaves_nothing_behind(database_url: str, tmp_path: Path) -> None:
    session = open_session(database_url, tmp_path)
    session.begin()
    session.tx.run("create table keys (id text)")
    session.commit()
    with pytest.raises(Exception, match="already exists"):
        migrate(session, START)
    session.begin()
    with pytest.raises(Exception, match="accounts"):
        session.tx.one("select * from accounts")
    session.rollback()
    session.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postroom.db").write_bytes(b"these are not the bytes of a database" * 100)
    with pytest.raises(StorageError, match="cannot be opened"):
        SqliteSession(tmp_path / "postroom.db")


def test_every_sqlite_connection_is_synchronous_full_in_wal_mode(tmp_path: Path) -> None:
    connection = connect(tmp_path / "postroom.db")
    assert connection.execute("pragma synchronous").fetchone()[0] == 2
    assert connection.execute("pragma journal_mode").fetchone()[0] == "wal"
    connection.close()


def test_no_sqlite_connection_is_opened_but_by_that_one_function_and_the_one_of_the_index() -> None:
    """What is in the index can be made anew from the database."""
    package = Path(postroom.__file__).parent
    openers = [path for path in package.rglob("*.py") if "sqlite3.connect(" in path.read_text()]
    assert sorted(path.name for path in openers) == ["sqlite.py", "sqlite_index.py"]
    assert openers[0].read_text().count("sqlite3.connect(") == 1


def test_a_file_system_that_cannot_keep_the_promise_is_refused() -> None:
    with pytest.raises(StorageError, match="synchronous=FULL"):
        connect(Path(":memory:"))


async def test_texts_are_compressed_by_lz4_where_the_server_has_it(postgres_url: str, tmp_path: Path) -> None:
    db = await open_database(settings(tmp_path, DATABASE_URL=postgres_url), START)

    def read(tx: Tx) -> tuple[bool, set[str]]:
        known = tx.one("select enumvals from pg_settings where name = 'default_toast_compression'")
        rows = tx.all(
            "select attcompression::text as way from pg_attribute where (attrelid, attname) in"
            " (('messages'::regclass, 'document'), ('raw_mails'::regclass, 'content'),"
            " ('search_words'::regclass, 'words'))"
        )
        return known is not None and "lz4" in known["enumvals"], {row["way"] for row in rows}

    has_lz4, ways = await db.read(read)
    await db.close()
    assert ways == ({"l"} if has_lz4 else {""})
