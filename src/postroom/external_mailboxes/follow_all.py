"""Follows every external mailbox, each by one node over one connection."""

import asyncio

from postroom import log
from postroom.clock import MINUTE, SECOND
from postroom.errors import ApiError
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import Connection
from postroom.external_mailboxes.follow_mailbox import Follower, follow_once, pause_seconds
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.mailbox.search.index_upkeep import holder_of

LOOK_SECONDS = 5.0
LEASE = 30 * SECOND
LEASE_ALONE = 10 * MINUTE  # with SQLite there is no other node
STEADY_SECONDS = 300.0


async def follow_all(follower: Follower) -> None:
    """Checks which there are, whenever one is created or changed, and every few seconds."""
    resources = follower.resources
    node = holder_of(resources.config.data_dir)  # after a crash it regains its mailboxes at once
    is_alone = not resources.config.database_url
    lease = LEASE_ALONE if is_alone else LEASE
    subscription = resources.db.listen(connections.BELL)
    running: dict[str, tuple[Connection, asyncio.Task[None]]] = {}
    try:
        while True:
            mine = await resources.db.write(
                connections.lease_mailboxes, node, resources.now(), lease, is_alone
            )
            for connection_id in [*running]:
                known, task = running[connection_id]
                if not is_same(known, mine.get(connection_id)) or task.done():
                    task.cancel()
                    del running[connection_id]
            for connection in mine.values():
                if connection.id not in running:
                    running[connection.id] = (
                        connection,
                        asyncio.create_task(keep_following(follower, connection)),
                    )
            await subscription.wait(LOOK_SECONDS)
    finally:
        subscription.close()
        for _, task in running.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in running.values()), return_exceptions=True)


def is_same(known: Connection, found: Connection | None) -> bool:
    return found is not None and (known.settings, known.hidden) == (found.settings, found.hidden)


async def keep_following(follower: Follower, connection: Connection) -> None:
    """Signs in again after a failure, at growing intervals."""
    resources, failures = follower.resources, 0
    while True:
        started = asyncio.get_running_loop().time()
        found = await resources.db.read(connections.find, connection.id)
        if found is None:
            return
        try:
            await follow_once(follower, found)
        except (ImapError, ApiError) as error:
            reason, is_refused = str(error), isinstance(error, ImapError) and error.is_refused
            log.get().seldom("a mailbox cannot be read", connection=connection.id, reason=reason)
        except Exception as error:
            reason, is_refused = f"An error on this server: {type(error).__name__}.", False
            log.get().exception("following a mailbox failed", connection=connection.id)
        if asyncio.get_running_loop().time() - started > STEADY_SECONDS:
            failures = 0
        await resources.db.write(connections.record_state, found, connections.FAILING, reason)
        await asyncio.sleep(pause_seconds(failures, is_refused))
        failures += 1
