"""Databases for the tests: copies of a migrated one, emptied after a test and used again.

To empty one takes a tenth of the time of a new copy. Tables that a test has made are
dropped; one whose schema it has changed in another way is never used again.
"""

import contextlib
import secrets
from collections.abc import Iterator

import psycopg
from psycopg.rows import scalar_row

from postroom.storage.engines.postgres import PostgresSession
from postroom.storage.migrate import migrate
from tests import kept_connections
from tests.doubles import START
from tests.waiting import wait_until

MIGRATED = "migrated"  # the database that those of the tests are copies of
MOST_USES = 100  # what was deleted stays in the indexes
FIRST_USER_OID = 16384

# What changes a table or a column writes its row of the catalogue anew.
FINGERPRINT = f"""
select
  (select (count(*), max(xmin::text::bigint))::text from pg_class where oid >= {FIRST_USER_OID}),
  (select (count(*), max(xmin::text::bigint))::text from pg_attribute where attrelid >= {FIRST_USER_OID}),
  (select count(*) from pg_constraint),
  (select count(*) from pg_proc),
  (select count(*) from pg_statistic where starelid >= {FIRST_USER_OID})
"""
# Rows that the migrations wrote are put back from the copy in the schema `migrated`.
# A function empties all tables: it keeps its plans.
KEEP_ROWS = """
create schema migrated;
do $make$ declare name text; filled bool; body text := ''; begin
  for name in select tablename from pg_tables where schemaname = 'public' loop
    body := body || format('if exists (select from public.%1$I) then delete from public.%1$I; end if;', name);
    execute format('select exists (select from public.%I)', name) into filled;
    if filled then
      execute format('create table migrated.%I as table public.%I', name, name);
      body := body || format('insert into public.%I table migrated.%I;', name, name);
    end if;
  end loop;
  body := 'begin ' || body || 'end';
  execute format('create function migrated.empty() returns void language plpgsql as %L', body);
end $make$
"""
NO_CHECKS = "-c session_replication_role=replica"  # of foreign keys: tables are emptied in any order
OTHERS = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"

NEW_TABLES = """
select oid::regclass::text from pg_class
where relkind = 'r' and relnamespace = 'public'::regnamespace and oid > 'migrated'::regnamespace
"""

Fingerprint = tuple[object, ...]


def make_migrated_database(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {MIGRATED}")
    session = PostgresSession(url_of(server, MIGRATED))
    migrate(session, START)
    session.close()
    with psycopg.connect(url_of(server, MIGRATED), autocommit=True) as connection:
        connection.execute(KEEP_ROWS)


def url_of(server: str, database: str) -> str:
    return server.replace("/postgres?", f"/{database}?")


@contextlib.contextmanager
def new_database(server: str, template: str) -> Iterator[str]:
    with psycopg.connect(server, autocommit=True) as connection:
        name = create(connection, template)
        yield url_of(server, name)
        drop(connection, name)


def create(connection: "psycopg.Connection[object]", template: str) -> str:
    name = f"test_{secrets.token_hex(8)}"
    connection.execute(f"create database {name} template {template} strategy file_copy")
    return name


def drop(connection: "psycopg.Connection[object]", name: str) -> None:
    connection.execute(f"drop database {name} with (force)")


class Databases:
    """Those of one process of the run.

    The connection that empties one stays for the next time: a new one would have to read all names anew.
    """

    def __init__(self) -> None:
        self._empty: dict[str, int] = {}  # the names, and how often each was used
        self._fingerprints: dict[str, Fingerprint] = {}
        self._cleaners: dict[str, psycopg.Connection[object]] = {}

    @contextlib.contextmanager
    def borrow(self, server: str) -> Iterator[str]:
        name, uses = self._empty.popitem() if self._empty else (self._create(server), 0)
        yield url_of(server, name)
        if uses + 1 < MOST_USES and self._is_emptied(server, name):
            self._empty[name] = uses + 1
        else:
            self._drop(server, name)

    def close(self) -> None:
        for name, connection in self._cleaners.items():
            kept_connections.end(name)
            connection.close()

    def _create(self, server: str) -> str:
        with psycopg.connect(server, autocommit=True) as connection:
            name = create(connection, MIGRATED)
        self._fingerprints[name] = fingerprint(self._cleaner(server, name))
        kept_connections.begin(name)
        return name

    def _cleaner(self, server: str, name: str) -> "psycopg.Connection[object]":
        """A test may have sent it away with all others."""
        with contextlib.suppress(KeyError, psycopg.OperationalError):
            self._cleaners[name].execute("select 1")
            return self._cleaners[name]
        self._cleaners[name] = psycopg.connect(url_of(server, name), autocommit=True, options=NO_CHECKS)
        return self._cleaners[name]

    def _is_emptied(self, server: str, name: str) -> bool:
        connection = self._cleaner(server, name)
        send_others_away(connection, kept_connections.processes_of(name))
        if fingerprint(connection) != self._fingerprints[name]:
            kept_connections.close_all(name)  # their plans are of other tables
            drop_new_tables(connection)
            if fingerprint(connection) != self._fingerprints[name]:
                return False
        connection.execute("select migrated.empty()", prepare=True)
        return True

    def _drop(self, server: str, name: str) -> None:
        kept_connections.end(name)
        del self._fingerprints[name]
        self._cleaners.pop(name).close()
        with psycopg.connect(server, autocommit=True) as connection:
            drop(connection, name)


def fingerprint(connection: "psycopg.Connection[object]") -> Fingerprint:
    found = connection.execute(FINGERPRINT, prepare=True).fetchone()
    assert isinstance(found, tuple)
    return found


def drop_new_tables(connection: "psycopg.Connection[object]") -> None:
    """Made by a test: what it needs beside the schema, as a table of counters."""
    for name in connection.cursor(row_factory=scalar_row).execute(NEW_TABLES).fetchall():
        connection.execute(f"drop table {name} cascade")


def send_others_away(connection: "psycopg.Connection[object]", kept: list[int]) -> None:
    """Until none is left: one that was committing when it was asked to go has committed."""
    question = f"select pg_terminate_backend(pid) {OTHERS} and pid <> all(%s)"
    wait_until(lambda: not connection.execute(question, [kept]).fetchall())
