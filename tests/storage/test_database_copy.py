"""A copy of PostgreSQL, put into another database: what the database counts by itself goes on counting.

A database that goes away meanwhile is a reason in one line, and never waited for.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from postroom.storage.database import StorageError
from postroom.storage.database_copy import SQLITE_FILE, PostgresCopy, SqliteCopy
from postroom.storage.engines.postgres_connections import TCP
from tests.conftest import new_postgres_database
from tests.postgres_databases import MIGRATED

ADD = "insert into search_changes (message_id) values (%s) returning number"


def add(url: str, *message_ids: str) -> list[int]:
    """Messages that have to be put into the index: the one table whose numbers the database gives."""
    with psycopg.connect(url) as connection:
        found = [connection.execute(ADD, (each,)).fetchone() for each in message_ids]
    return [row[0] for row in found if row is not None]


def copy_into(target: str, source: str, folder: Path) -> None:
    taking, putting = PostgresCopy(source), PostgresCopy(target)
    putting.put(taking.take(folder))
    putting.finish()
    for copy in (taking, putting):
        copy.close()


@pytest.mark.parametrize("waiting", [0, 3])
def test_what_the_database_numbers_goes_on_behind_what_was_restored(
    postgres_url: str, tmp_path: Path, waiting: int
) -> None:
    numbers = add(postgres_url, *(f"msg_{number}" for number in range(waiting)))
    with new_postgres_database(MIGRATED) as target:
        copy_into(target, postgres_url, tmp_path)
        [given] = add(target, "msg_after")
        assert given == max(numbers, default=0) + 1


def test_every_sequence_of_the_schema_is_of_a_column_that_a_restore_sets(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        sequences = connection.execute("select count(*) from pg_sequences").fetchone()
        columns = connection.execute(
            "select count(*) from information_schema.columns where is_identity = 'YES'"
            " and table_schema = current_schema()"
        ).fetchone()
    assert sequences == columns
    assert sequences != (0,)


def test_a_copy_notices_a_database_that_is_gone(postgres_url: str, tmp_path: Path) -> None:
    copy = PostgresCopy(postgres_url)
    watched = copy._connection.info.get_parameters()
    assert {name: watched[name] for name in TCP} == {
        **{name: str(value) for name, value in TCP.items()},
        "application_name": "postroom backup",
    }
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid, 60000) from pg_stat_activity"
            " where application_name = 'postroom backup' and datname = current_database()"
        )
    with pytest.raises(StorageError, match="cannot be copied"):
        copy.take(tmp_path)
    copy.close()


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("content", [b"\0" * 4096, b"\xaa" * 4096])
def test_a_damaged_page_of_a_sqlite_file_is_told_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / SQLITE_FILE
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma page_size = 4096")
        database.execute("create table mails (raw text)")
        database.executemany("insert into mails values (?)", [("x" * 1_000,)] * 20)
        database.commit()
    with path.open("r+b") as file:
        file.seek(4096)  # the root of the table
        file.write(content)
    (tmp_path / "copy").mkdir()
    with pytest.raises(StorageError, match="The database is damaged"):
        SqliteCopy(path).take(tmp_path / "copy")
