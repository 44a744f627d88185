"""All nodes of a database keep large emails in one blob store: a node with another store is refused."""

import asyncio
from collections.abc import Callable, Iterator

from postroom.clock import SECOND
from postroom.processes import pools
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.blobs import UNFINISHED, Blobs, DamagedBlob
from postroom.storage.database import StorageError

LEASE = "store of large mails"  # held by a blob store, for all nodes that use it
HELD = 30 * SECOND
RENEWAL_SECONDS = 10.0


async def require_one_store(resources: Resources) -> None:
    """Require one store for all nodes. With SQLite there is one node, and nothing to check."""
    if resources.blobs.is_shared:
        await _require_writable(resources)
    if resources.config.database_url and not await _hold(resources):
        raise StorageError(
            "POSTROOM_BLOB_URL: other nodes of this database keep large emails in another store. Give all the"
            " same s3://… (postroom blobs move copies files there), or stop the others half a minute before."
        )


async def keep_store(resources: Resources) -> None:
    """Runs until cancelled."""
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        if resources.config.database_url and not await _hold(resources):
            raise StorageError("Another node of this database keeps large emails in another store.")


def move(source: Blobs, target: Blobs, removes: bool, report_damaged: Callable[[str], None]) -> Iterator[str]:
    """Yields each name once its copy in the target was read back and compared. Damaged ones stay."""
    for name in source.names(older_than_seconds=0):
        if name.endswith(UNFINISHED):
            continue
        try:
            content = source.get(name)
        except FileNotFoundError:  # its email was deleted meanwhile
            continue
        except DamagedBlob:
            report_damaged(name)
            continue
        target.put_as(name, content)
        if target.get_unchecked(name) != content:
            raise StorageError(f"{name} differs in the other store. Nothing was removed.")
        if removes:
            source.remove(name)
        yield name


async def _hold(resources: Resources) -> bool:
    store_id, now = await pools.FILES.run(resources.blobs.store_id), resources.now()
    return await resources.db.write(leader_leases.take, LEASE, store_id, now + HELD, now)


async def _require_writable(resources: Resources) -> None:
    try:
        await pools.FILES.run(resources.blobs.check)
    except Exception as error:
        reason = " ".join(str(error.__cause__ or error).split())[:300]
        raise StorageError(f"POSTROOM_BLOB_URL: the store cannot be written: {reason}") from error
