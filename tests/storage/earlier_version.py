"""A database as schema 5 left it: its rows were written by the server of that time."""

import base64
import json
from pathlib import Path
from typing import Any

from postroom.storage.database import Tx
from postroom.storage.migrate import migrate
from postroom.storage.postgres import PostgresSession
from postroom.storage.sqlite import SqliteSession
from postroom.storage.writing import WriteSession
from tests.doubles import START

ROWS = Path(__file__).parent / "rows_of_schema_5.json"


def open_session(database_url: str, folder: Path) -> WriteSession:
    return PostgresSession(database_url) if database_url else SqliteSession(folder / "postroom.db")


def rows_of(table: str) -> list[dict[str, Any]]:
    return [
        {column: _value(stored) for column, stored in row.items()}
        for row in json.loads(ROWS.read_text())[table]
    ]


def _value(stored: Any) -> Any:
    return base64.b64decode(stored["bytes"]) if isinstance(stored, dict) else stored


def write_rows(tx: Tx) -> None:
    for table in json.loads(ROWS.read_text()):
        for row in rows_of(table):
            names = ", ".join(f":{column}" for column in row)
            tx.run(f"insert into {table} ({', '.join(row)}) values ({names})", **row)


def make_database(database_url: str, folder: Path) -> None:
    session = open_session(database_url, folder)
    migrate(session, START, up_to=5)
    session.begin()
    write_rows(session.tx)
    session.commit()
    session.close()
