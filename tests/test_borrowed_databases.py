"""A test never sees what another left in the database that both used."""

import contextlib
import os
from collections.abc import Iterator

import psycopg
import pytest

from tests import kept_connections
from tests.conftest import POSTGRES_URL
from tests.postgres_databases import OTHERS, Databases

SERVER = os.environ[POSTGRES_URL]
SEEDED = "select count(*) from search_state"


@pytest.fixture
def databases() -> Iterator[Databases]:
    with contextlib.closing(Databases()) as databases:
        yield databases


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        (answer,) = connection.execute(question).fetchone() or (None,)
        return answer


def change(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def test_a_used_database_comes_back_with_the_rows_of_its_migrations_alone(databases: Databases) -> None:
    with databases.borrow(SERVER) as first:
        seeded = ask(first, SEEDED)
        change(first, "insert into secrets (name, value) values ('left', 'behind')")
        change(first, "delete from search_state")
    with databases.borrow(SERVER) as second:
        assert second == first
        assert ask(second, "select count(*) from secrets") == 0
        assert ask(second, SEEDED) == seeded != 0


def test_whoever_is_still_connected_is_sent_away(databases: Databases) -> None:
    with databases.borrow(SERVER) as url:
        forgotten = psycopg.connect(url)
        forgotten.execute("insert into secrets (name, value) values ('not', 'committed')")
    with pytest.raises(psycopg.OperationalError, match="terminating connection"):
        forgotten.commit()
    assert forgotten.closed
    with databases.borrow(SERVER) as url:
        assert ask(url, "select count(*) from secrets") == 0


def test_a_test_may_send_everybody_away(databases: Databases) -> None:
    with databases.borrow(SERVER) as first:
        change(first, "insert into secrets (name, value) values ('left', 'behind')")
        change(first, f"select pg_terminate_backend(pid, 60000) {OTHERS}")
    with databases.borrow(SERVER) as second:
        assert second == first
        assert ask(second, "select count(*) from secrets") == 0


def test_tables_that_a_test_made_are_gone(databases: Databases) -> None:
    with databases.borrow(SERVER) as first:
        change(
            first,
            "create table jottings (account_id text references accounts (id), note text)",
        )
        change(first, "insert into secrets (name, value) values ('left', 'behind')")
    with databases.borrow(SERVER) as second:
        assert second == first
        assert ask(second, "select to_regclass('jottings')") is None
        assert ask(second, "select count(*) from secrets") == 0


def test_a_database_with_another_schema_or_with_statistics_is_not_used_again(
    databases: Databases,
) -> None:
    seen = set()
    for statement in (
        "alter table accounts rename to hidden",
        "alter table secrets add column note text",
        "create function one() returns int return 1",
        "analyze",
        "select 1",
    ):
        with databases.borrow(SERVER) as url:
            assert url not in seen
            seen.add(url)
            change(url, statement)


def test_a_connection_that_was_closed_is_as_new_for_the_next_test(databases: Databases) -> None:
    with databases.borrow(SERVER) as url:
        first = kept_connections.connect(url)
        first.execute("select set_config('lock_timeout', '30ms', false), pg_advisory_lock(7)")
        first.execute("listen bells")
        first.close()
        assert first.closed
    with databases.borrow(SERVER) as url:
        second = kept_connections.connect(url)
        assert second.info.backend_pid == first.info.backend_pid
        assert not second.closed
        found = second.execute(
            "select current_setting('lock_timeout') as patience, (select count(*) from pg_locks"
            " where locktype = 'advisory' and pid = pg_backend_pid()) as locks,"
            " (select count(*) from pg_listening_channels()) as channels"
        ).fetchone()
        assert found == {"patience": "0", "locks": 0, "channels": 0}
        second.close()


def test_a_connection_that_was_sent_away_or_left_in_a_transaction_is_not_used_again(
    databases: Databases,
) -> None:
    with databases.borrow(SERVER) as url:
        unfinished, sent_away = kept_connections.connect(url), kept_connections.connect(url)
        used = {unfinished.info.backend_pid, sent_away.info.backend_pid}
        unfinished.execute("begin")
        unfinished.close()
        sent_away.close()
        change(url, f"select pg_terminate_backend(pid, 60000) {OTHERS}")
        third = kept_connections.connect(url)
        assert third.info.backend_pid not in used
        assert third.execute("select 1 as one").fetchone() == {"one": 1}
        third.close()
