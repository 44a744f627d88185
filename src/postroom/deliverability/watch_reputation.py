"""Checks inboxes whose mail bounced or had complaints, by one node at a time."""

import asyncio

from postroom.clock import HOUR, MINUTE, SECOND
from postroom.deliverability import reputation
from postroom.queue import leader_leases
from postroom.resources import Resources

PAUSE_SECONDS = 5.0
LOOK_BACK = 10 * SECOND  # an event may become visible after a later one
LEASE = "reputation"
LEASE_HELD = 2 * MINUTE


async def watch_reputation(resources: Resources) -> None:
    """Runs until cancelled. Begins an hour back, as no server may have run meanwhile."""
    since = resources.now() - HOUR
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        now = resources.now()
        if await leader_leases.hold(resources, LEASE, LEASE_HELD):
            await look_since(resources, since)
            since = now - LOOK_BACK


async def look_since(resources: Resources, since: int) -> None:
    for inbox_id in await resources.db.read(reputation.list_harmed, since):
        await resources.db.write(reputation.check_inbox, inbox_id, resources.config, resources.now())
