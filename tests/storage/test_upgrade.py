"""Upgrades from the schema of 1.0.0 on: rows of every table survive; older versions refuse newer data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom.storage.database import StorageError, Tx
from postroom.storage.engines.postgres import PostgresSession
from postroom.storage.engines.sqlite import SqliteSession
from postroom.storage.migrate import FIRST, all_migrations, migrate, require_known
from postroom.storage.write_jobs import WriteSession
from tests.conftest import new_postgres_database
from tests.doubles import START

FIRST_NAMED = ("accounts", "inboxes")  # other tables name their rows
# What can be made anew from other rows may be dropped by an upgrade.
DERIVED = "search_"
LABELS_OF_THREADS = 128  # the last schema in which the folder of a label showed whole threads
BEFORE_IMPORTED = 139  # the last schema in which imported mail looked like received mail
RENAMED = {"checks": "examinations"}


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty database."""
    with new_postgres_database("template1") as url:
        yield url


def tables(tx: Tx, engine: str) -> list[str]:
    listed = (
        "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'"
        if engine == "sqlite"
        else "select table_name as name from information_schema.tables where table_schema = current_schema()"
    )
    names = sorted(row["name"] for row in tx.all(listed))
    return [*FIRST_NAMED, *(name for name in names if name not in FIRST_NAMED)]


def columns(tx: Tx, engine: str, table: str) -> dict[str, str]:
    if engine == "sqlite":
        return {row["name"]: row["type"].lower() for row in tx.all(f'pragma table_info("{table}")')}
    rows = tx.all(
        "select column_name, data_type from information_schema.columns"
        " where table_schema = current_schema() and table_name = :table order by ordinal_position",
        table=table,
    )
    return {row["column_name"]: row["data_type"] for row in rows}


def value_for(kind: str) -> object:
    if kind in ("text", "tsvector"):
        return "x"
    return b"x" if kind in ("bytea", "blob") else 1


def fill(tx: Tx, engine: str) -> dict[str, dict[str, Any]]:
    """A row in every table that has none: each text is x, so that rows name each other."""
    filled = {}
    for table in tables(tx, engine):
        if table.startswith((DERIVED, "schema_versions", "sqlite_")):
            continue
        row = {name: value_for(kind) for name, kind in columns(tx, engine, table).items()}
        named, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        tx.run(f"insert into {table} ({named}) values ({places})", **row)
        filled[table] = row
    return filled


def open_session(database_url: str, folder: Path) -> WriteSession:
    return PostgresSession(database_url) if database_url else SqliteSession(folder / "postroom.db")


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview | bytes) else value


def test_every_row_of_the_first_release_is_there_after_an_upgrade(database_url: str, tmp_path: Path) -> None:
    session = open_session(database_url, tmp_path)
    migrate(session, START, up_to=FIRST)
    session.begin()
    filled = fill(session.tx, session.engine)
    session.commit()
    assert len(filled) > 25
    migrate(session, START)
    session.begin()
    now = set(tables(session.tx, session.engine))
    for table, row in ((RENAMED.get(table, table), row) for table, row in filled.items()):
        assert table in now, f"{table} is gone with its rows"
        found = session.tx.all(f"select * from {table}")
        kept = {
            name: plain(found[0][name]) for name in row.keys() & columns(session.tx, session.engine, table)
        }
        assert len(found) == 1, table
        assert kept == {name: row[name] for name in kept}, table
    session.rollback()
    session.close()


def add(tx: Tx, engine: str, table: str, **values: object) -> None:
    kinds = columns(tx, engine, table)
    row = {name: value_for(kind) for name, kind in kinds.items()} | values
    named, places = ", ".join(row), ", ".join(f":{name}" for name in row)
    tx.run(f"insert into {table} ({named}) values ({places})", **row)


def test_folders_of_labels_show_labelled_messages_and_no_mail_is_left_in_none(
    database_url: str, tmp_path: Path
) -> None:
    session = open_session(database_url, tmp_path)
    migrate(session, START, up_to=LABELS_OF_THREADS)
    session.begin()
    tx, engine = session.tx, session.engine
    for table in FIRST_NAMED:
        add(tx, engine, table)
    add(tx, engine, "folders", folder="label:big", shown="Big")
    for message_id, folders in {
        "labelled": ["inbox", "label:big"],
        "beside": ["inbox", "label:big"],
        "moved": ["label:big"],
    }.items():
        add(tx, engine, "messages", id=message_id, was_labelled=0)
        for folder in folders:
            add(tx, engine, "folder_mails", folder=folder, message_id=message_id, uid=len(message_id))
    add(tx, engine, "message_labels", message_id="labelled", label="big", shown="Big")
    session.commit()
    migrate(session, START)
    session.begin()
    in_folder = "select message_id from folder_mails where folder = :folder order by message_id"
    shown = tx.all(in_folder, folder="label:big")
    assert [row["message_id"] for row in shown] == ["labelled", "moved"]
    labels = tx.all("select message_id, shown from message_labels where label = 'big' order by message_id")
    assert [(row["message_id"], row["shown"]) for row in labels] == [("labelled", "Big"), ("moved", "Big")]
    marked = tx.all("select id from messages where was_labelled = 1 order by id")
    assert {row["id"] for row in marked} >= {"moved"}
    assert "beside" not in {row["id"] for row in marked}
    session.rollback()
    session.close()


def test_mail_that_was_imported_before_is_marked_and_makes_nobody_known(
    database_url: str, tmp_path: Path
) -> None:
    session = open_session(database_url, tmp_path)
    migrate(session, START, up_to=BEFORE_IMPORTED)
    session.begin()
    tx, engine = session.tx, session.engine
    for table in FIRST_NAMED:
        add(tx, engine, table)
    mails = [
        ("received", "inbound", "ann@x.example", "both", 40),
        ("appended", "inbound", "ceo@x.example", "both", 0),
        ("older", "inbound", "ann@x.example", "old", 0),
        ("sent", "outbound", "x@x.example", "out", 0),
        ("filed", "outbound", "x@x.example", "old", 0),
    ]
    for message_id, direction, sender, thread_id, trace_bytes in mails:
        row = {"direction": direction, "from_address": sender, "thread_id": thread_id, "status": "sent"}
        add(tx, engine, "messages", id=message_id, **row)
        add(tx, engine, "raw_mails", message_id=message_id, trace_bytes=trace_bytes)
    add(tx, engine, "deliveries", message_id="sent")
    for thread_id in ("both", "old", "out"):
        add(tx, engine, "threads", id=thread_id)
    for address in ("ann@x.example", "ceo@x.example", "gone@x.example"):
        add(tx, engine, "correspondents", address=address)
    session.commit()
    migrate(session, START)
    session.begin()
    marked = tx.all("select id from messages where is_imported = 1 order by id")
    assert [row["id"] for row in marked] == ["appended", "filed", "older"]
    assert [row["id"] for row in tx.all("select id from threads where is_imported = 1")] == ["old"]
    known = tx.all("select address from correspondents order by address")
    assert [row["address"] for row in known] == ["ann@x.example", "gone@x.example"]
    session.rollback()
    session.close()


def test_a_newer_database_is_refused_by_every_earlier_version() -> None:
    numbers = [migration.number for migration in all_migrations("sqlite")]
    for latest_known in range(FIRST, numbers[-1]):
        for current in range(latest_known + 1, numbers[-1] + 1):
            with pytest.raises(StorageError, match="newer Postroom"):
                require_known(current, latest_known)
    for current in [0, *numbers]:
        require_known(current, numbers[-1])
    with pytest.raises(StorageError, match=r"early build of Postroom 1\.0\.0"):
        require_known(FIRST - 1, numbers[-1])
