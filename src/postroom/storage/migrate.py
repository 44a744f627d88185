"""Brings the schema to this version: numbered files, each applied once, all in one transaction.

SQL for one engine only is in a file of the same name in the folder of that engine. A new SQLite database is
made from `sqlite/whole.sql`, where they all are together: one by one they take ten times as long.
"""

import functools
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from msgspec import Struct

from postroom.errors import Unavailable
from postroom.storage.database import StorageError, Tx
from postroom.storage.write_jobs import WriteSession

FIRST = 100  # lower numbers are of early builds of 1.0.0, with other tables
RECORD_VERSION = "insert into schema_versions (number, applied_at) values (:number, :now)"
EXPORT_FIRST = (
    "Export its email with the build that made it (postroom accounts export), start this version on an empty "
    "database, and import the mail there (postroom import); nothing was changed."
)


class Migration(Struct, frozen=True):
    number: int
    name: str
    sql: str

    def statements(self) -> list[str]:
        return statements_of(self.sql)


def statements_of(sql: str) -> list[str]:
    """Split SQL into statements. Each ends with a semicolon at the end of a line."""
    return [statement for part in sql.split(";\n") if (statement := part.strip())]


@functools.cache
def all_migrations(engine: str) -> tuple[Migration, ...]:
    folder = files("postroom.storage").joinpath("schema")
    found = [
        Migration(int(file.name[:4]), file.name, _read(file) + _read(folder.joinpath(engine, file.name)))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def _read(file: Traversable) -> str:
    return file.read_text() if file.is_file() else ""


def migrate(session: WriteSession, now: int, up_to: int | None = None) -> None:
    """Apply the migrations.

    The session's begin(), or a lock its owner took before, makes a second starting node wait.
    """
    session.begin()
    try:
        migrations = all_migrations(session.engine)
        if session.engine == "sqlite" and up_to is None and _is_empty(session.tx):
            _make_whole(session.tx, migrations, now)
        else:
            apply_missing(session.tx, migrations, now, up_to)
        session.commit()
    except BaseException:
        session.rollback()
        raise


def _is_empty(tx: Tx) -> bool:
    return tx.one("select 1 as found from sqlite_master limit 1") is None


def _make_whole(tx: Tx, migrations: Sequence[Migration], now: int) -> None:
    for statement in statements_of(files("postroom.storage").joinpath("schema/sqlite/whole.sql").read_text()):
        tx.run(statement)
    for migration in migrations:
        tx.run(RECORD_VERSION, number=migration.number, now=now)


def apply_missing(tx: Tx, migrations: Sequence[Migration], now: int, up_to: int | None = None) -> None:
    tx.run(
        "create table if not exists schema_versions (number integer primary key, applied_at bigint not null)"
    )
    current = current_version(tx)
    require_known(current, migrations[-1].number)
    for migration in migrations:
        if current < migration.number <= (up_to or migration.number):
            _apply(tx, migration, current)
            tx.run(RECORD_VERSION, number=migration.number, now=now)


def _apply(tx: Tx, migration: Migration, current: int) -> None:
    """Apply a migration.

    If its schema file changed since the database was built, say so instead of naming a column.
    """
    try:
        for statement in migration.statements():
            tx.run(statement)
    except (Unavailable, OSError):
        raise
    except Exception as error:
        if not current:
            raise
        reason = " ".join(str(error).split())[:200]
        raise StorageError(
            f"This database (schema {current}) is not as Postroom 1.0.0 made it: {migration.name} cannot be "
            f"applied ({reason}). It is of a build between releases. {EXPORT_FIRST}"
        ) from error


def require_known(current: int, latest: int) -> None:
    """Require a known schema version. `current` is 0 for a database without tables."""
    if 0 < current < FIRST:
        raise StorageError(
            f"This database has schema {current}, of an early build of Postroom 1.0.0 (before 2026-11-16), "
            f"and cannot be upgraded. {EXPORT_FIRST}"
        )
    if current > latest:
        raise StorageError(
            f"This database was written by a newer Postroom (schema {current}; this one knows {latest}). "
            "Start that version; nothing was changed."
        )


def current_version(tx: Tx) -> int:
    row = tx.one("select coalesce(max(number), 0) as number from schema_versions")
    assert row is not None
    return int(row["number"])
