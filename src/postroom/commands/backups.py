"""`postroom backup` and `postroom restore`: the whole server in one file, and back."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands.output import done
from postroom.commands.transfer import progress, with_resources
from postroom.config import Config, load
from postroom_client.cli import app
from postroom_client.cli.command import Json

if TYPE_CHECKING:
    from postroom.resources import Resources
    from postroom.storage.database_copy import DatabaseCopy
    from postroom.transfer.backup_file import Manifest

Archive = Annotated[Path, typer.Argument(help="The backup, one file.")]


@app.command("backup")
def backup(file: Archive, as_json: Json = None) -> None:
    """Back up database, files and certificate into one file; the server may run (on its machine)."""
    if file.exists():
        raise typer.BadParameter("already exists", param_hint="file")
    manifest = with_resources(lambda resources: _back_up(resources, file))
    done(
        {"file": str(file), "files": len(manifest.hashes), "damaged": list(manifest.damaged)},
        f"{file} holds {len(manifest.hashes)} files and is complete: it was read back.",
        as_json,
    )
    for name in manifest.damaged:
        print(f"postroom: the large email {name} is damaged, also in the backup", file=sys.stderr)
    if manifest.damaged:
        raise typer.Exit(1)


async def _back_up(resources: "Resources", path: Path) -> "Manifest":
    import asyncio

    from postroom import __version__
    from postroom.clock import to_iso
    from postroom.inward.journal import positions
    from postroom.processes import pools
    from postroom.transfer import backup_file
    from postroom.upkeep.orphans import find_used_blobs

    loop = asyncio.get_running_loop()
    created_at = to_iso(resources.now())

    def is_named_now(name: str) -> bool:
        asked = asyncio.run_coroutine_threadsafe(resources.db.read(find_used_blobs, [name]), loop)
        return bool(asked.result())

    def work() -> "Manifest":
        database = copy_of(resources.config)
        folder = resources.config.data_dir
        source = backup_file.Source(
            database, resources.blobs, folder / "tls", is_named_now, folder / positions.FOLDER
        )
        try:
            with progress("files", None) as report:
                return backup_file.write(source, path, __version__, created_at, report)
        finally:
            database.close()

    return await pools.ONCE.run(work)


@app.command("restore")
def restore(file: Archive, as_json: Json = None) -> None:
    """Restore a backup into an empty data folder or PostgreSQL database; the server must not run."""
    from postroom.storage.data_folder import FolderLock, make_folder
    from postroom.transfer import backup_file

    config = load(os.environ)
    manifest = backup_file.verify(file)
    make_folder(config.data_dir)
    lock = FolderLock(config.data_dir)
    try:
        _restore(config, file, manifest)
    finally:
        lock.release()
    with_resources(lambda resources: _delete_gone(resources, manifest.gone))
    sentence = f"The backup of {manifest.created_at} is restored. Start the server: postroom serve"
    done({"file": str(file), "createdAt": manifest.created_at}, sentence, as_json)


def _restore(config: Config, file: Path, manifest: "Manifest") -> None:
    from postroom.clock import SystemClock
    from postroom.storage.database import StorageError
    from postroom.storage.database_copy import make_schema
    from postroom.storage.migrate import FIRST, all_migrations
    from postroom.storage.opening import open_blobs
    from postroom.transfer import backup_file
    from postroom.transfer.move_server import drop_unfinished

    database = copy_of(config)
    try:
        if manifest.engine != database.engine:
            raise StorageError(
                f"The backup is from {manifest.engine}, but the settings use {database.engine}."
            )
        if manifest.schema < FIRST:
            raise StorageError(
                "The backup was made before Postroom 1.0.0. Restore it with the version that made it."
            )
        if manifest.schema > all_migrations(database.engine)[-1].number:
            raise StorageError("The backup was made by a newer Postroom. Restore it with that version.")
        if config.database_url and drop_unfinished(config.database_url):
            print("postroom: an unfinished move into this database is dropped", file=sys.stderr)
        database.require_empty()
        if config.database_url:
            make_schema(config.database_url, SystemClock().now(), manifest.schema)
            if database.schema_version() != manifest.schema:
                raise StorageError(
                    "The database has tables already, of another version. Restore into an empty one."
                )
        with progress("files", sum(name.startswith(backup_file.BLOBS) for name in manifest.hashes)) as report:
            backup_file.restore(file, database, open_blobs(config), config.data_dir / "tls", report)
    finally:
        database.close()


async def _delete_gone(resources: "Resources", blobs: list[str]) -> None:
    from postroom.upkeep import deletion

    for blob in blobs:
        await resources.db.write(deletion.remove_of_blob, blob, resources.now())


def copy_of(config: Config) -> "DatabaseCopy":
    from postroom.storage.database_copy import SQLITE_FILE, PostgresCopy, SqliteCopy

    if config.database_url:
        return PostgresCopy(config.database_url)
    return SqliteCopy(config.data_dir / SQLITE_FILE)
