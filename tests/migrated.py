"""The file of a new database: to migrate one takes longer than all else in the start of a server."""

import functools
import tempfile
from pathlib import Path

from postroom.storage.engines.sqlite import SqliteSession
from postroom.storage.migrate import migrate
from tests.doubles import START


@functools.cache
def migrated_sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "postroom.db"
        session = SqliteSession(path)
        migrate(session, START)
        session.close()
        return path.read_bytes()
