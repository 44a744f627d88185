"""Opens the database and the blobs that the settings name, without the rest of the server."""

from postroom.config import Config
from postroom.storage.blobs import Blobs, LocalBlobs
from postroom.storage.data_folder import DATABASE_NAME, make_folder, require_no_lost_database
from postroom.storage.database import Database


async def open_database(config: Config, now: int, may_create: bool = True) -> Database:
    """Migrates the schema to this version. Raises StorageError if there is none and it may not be made."""
    if config.database_url:
        from postroom.storage.engines.postgres import open_postgres

        return await open_postgres(config.database_url, now, may_create)
    from postroom.storage.engines.sqlite import open_sqlite

    if may_create:
        make_folder(config.data_dir)
    require_no_lost_database(config.data_dir)
    return open_sqlite(config.data_dir / DATABASE_NAME, now, may_create)


def open_blobs(config: Config) -> Blobs:
    if config.blob_url:
        from postroom.storage.s3_blobs import S3Blobs

        return S3Blobs(config.blob_url)
    return LocalBlobs(config.data_dir / "blobs")
