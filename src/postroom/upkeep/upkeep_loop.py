"""The loop that removes what has expired or was deleted, in transactions too short to be noticed."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from postroom.clock import SECOND
from postroom.mailbox import contact_counting, documents, inboxes, thread_digests
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom.upkeep import account_removal, expiry, inbox_removal, mail_retention, orphans

T = TypeVar("T")

ROUND_SECONDS = 60.0
LEASE = "upkeep"
LEASE_HELD = 180 * SECOND
LEAVE_SECONDS = 2.0
INBOXES_AT_ONCE, INBOXES_IN_A_ROUND = 100, 2_000
DIGESTS_IN_A_ROUND = 5_000  # of threads from before an upgrade, or with deleted messages
OLDER_MAIL_IN_A_ROUND = 10_000  # of contacts from before an upgrade
OUTLINES_IN_A_ROUND = 500  # of large messages from before an upgrade

# Other writers wait for a step under way, so a step that took long is followed by a smaller one.
STEP_SECONDS = 0.010
FEWEST_ROWS, MOST_ROWS = 10, 500


async def run_upkeep(resources: Resources) -> None:
    """Runs until cancelled. One node maintains database and common store; each sweeps its own folder."""
    steps, sweep = Steps(resources), orphans.Sweep(resources)
    try:
        await show_presence(resources)
        await asyncio.sleep(leader_leases.FIRST_SECONDS)
        while True:
            await show_presence(resources)
            is_mine = await leader_leases.hold(resources, LEASE, LEASE_HELD)
            if is_mine:
                await steps.one_round()
            if is_mine or not resources.blobs.is_shared:
                await sweep.sweep_pages()
            await asyncio.sleep(ROUND_SECONDS)
    finally:
        with contextlib.suppress(Exception):  # then another node waits until the lease expires
            async with asyncio.timeout(LEAVE_SECONDS):
                await resources.db.write(leave, resources.node, where(resources))


async def show_presence(resources: Resources) -> None:
    await leader_leases.announce_node(resources, where(resources), LEASE_HELD)


def leave(tx: Tx, me: str, place: str) -> None:
    leader_leases.leave(tx, LEASE, me)
    leader_leases.leave(tx, leader_leases.NODE + me, place)


def where(resources: Resources) -> str:
    """Return host and port: several nodes may run on one machine."""
    return f"{socket.gethostname()} at {resources.config.http}"


async def one_round(resources: Resources) -> None:
    await Steps(resources).one_round()


class Steps:
    """Many short transactions instead of a long one; their size follows the time they take."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._rows = FEWEST_ROWS
        self._last_inbox_id = ""

    async def one_round(self) -> None:
        now = self._resources.now()
        for expire in (expiry.expire_rows, expiry.expire_deliveries):
            while await self._step(expire, now):
                pass
        while await self._step(account_removal.remove_some, now):
            self._resources.db.ring(inboxes.GONE)
        while (blobs := await self._step(inbox_removal.remove_some, now)) is not None:
            await orphans.remove_blobs(self._resources, blobs)
        await self._apply_retention(now)
        for _ in range(OUTLINES_IN_A_ROUND):
            if not await self._resources.db.write(documents.add_due_outline):
                break
        for _ in range(DIGESTS_IN_A_ROUND // thread_digests.FILLED_AT_ONCE):
            if not await self._resources.db.write(thread_digests.fill_some):
                break
        for _ in range(OLDER_MAIL_IN_A_ROUND // contact_counting.OLDER_AT_ONCE):
            if not await self._resources.db.write(contact_counting.count_some_older):
                break

    async def _apply_retention(self, now: int) -> None:
        """Continues after the last inbox of the round before, and starts again at the end."""
        for _ in range(INBOXES_IN_A_ROUND // INBOXES_AT_ONCE):
            rules = await self._resources.db.read(
                mail_retention.list_rules, self._last_inbox_id, INBOXES_AT_ONCE
            )
            for rule in rules:
                while (blobs := await self._step(partial(mail_retention.expire, rule=rule), now)) is not None:
                    await orphans.remove_blobs(self._resources, blobs)
            self._last_inbox_id = rules[-1].inbox_id if rules else ""
            if not rules:
                return

    async def _step(self, work: Callable[[Tx, int, int], T], now: int) -> T:
        """Run a step after other writers: yields one turn of the loop, so that they can queue."""
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = await self._resources.db.write(work, now, self._rows)
        took = loop.time() - started
        if took > STEP_SECONDS:
            self._rows = max(FEWEST_ROWS, self._rows // 2)
        elif took < STEP_SECONDS / 2:  # the next may take twice as long
            self._rows = min(MOST_ROWS, self._rows * 2)
        return result
