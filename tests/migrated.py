"""The files of a new database: to migrate one takes longer than all else in the start of a server."""

import functools
import tempfile
from pathlib import Path

from postroom.storage.data_folder import DATABASE_NAME
from postroom.storage.engines import sqlite_index
from postroom.storage.engines.sqlite import SqliteSession
from postroom.storage.migrate import migrate
from tests.doubles import START


@functools.cache
def migrated_sqlite() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE_NAME
        session = SqliteSession(path)
        migrate(session, START)
        session.close()
        sqlite_index.prepare(sqlite_index.path_beside(path))
        return {each.name: each.read_bytes() for each in Path(folder).iterdir()}


def put_migrated_sqlite(folder: Path) -> None:
    for name, content in migrated_sqlite().items():
        (folder / name).write_bytes(content)
