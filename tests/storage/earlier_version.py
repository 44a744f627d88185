"""Databases as earlier versions left them: their rows were written by the servers of those times."""

import base64
import json
from pathlib import Path
from typing import Any

from postroom.storage.database import Tx
from postroom.storage.engines.postgres import PostgresSession
from postroom.storage.engines.sqlite import SqliteSession
from postroom.storage.migrate import migrate
from postroom.storage.write_jobs import WriteSession
from tests.doubles import START

HERE = Path(__file__).parent
ROWS = HERE / "rows_of_schema_5.json"
WITH_ANSWERS = HERE / "rows_of_schema_16.json"  # also what the interface said of them then


def open_session(database_url: str, folder: Path) -> WriteSession:
    return PostgresSession(database_url) if database_url else SqliteSession(folder / "postroom.db")


def rows_of(table: str) -> list[dict[str, Any]]:
    return [
        {column: _value(stored) for column, stored in row.items()}
        for row in json.loads(ROWS.read_text())[table]
    ]


def _value(stored: Any) -> Any:
    return base64.b64decode(stored["bytes"]) if isinstance(stored, dict) else stored


def write_rows(tx: Tx, rows: dict[str, list[dict[str, Any]]]) -> None:
    for table, found in rows.items():
        for row in found:
            values = {column: _value(stored) for column, stored in row.items()}
            names = ", ".join(f":{column}" for column in values)
            tx.run(f"insert into {table} ({', '.join(values)}) values ({names})", **values)


def make_database(database_url: str, folder: Path) -> None:
    _make(database_url, folder, 5, json.loads(ROWS.read_text()))


def make_database_with_answers(database_url: str, folder: Path) -> dict[str, Any]:
    """Of schema 16. Gives what was said: `said` by path, and the bytes of each mail in `raw`."""
    found: dict[str, Any] = json.loads(WITH_ANSWERS.read_text())
    _make(database_url, folder, 16, found.pop("rows"))
    return found


def _make(database_url: str, folder: Path, version: int, rows: dict[str, list[dict[str, Any]]]) -> None:
    session = open_session(database_url, folder)
    migrate(session, START, up_to=version)
    session.begin()
    write_rows(session.tx, rows)
    session.commit()
    session.close()
