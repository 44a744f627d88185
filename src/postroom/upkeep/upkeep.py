"""Upkeep: removes what has expired and what deleted inboxes left behind, in steps too small to be felt."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from typing import TypeVar

from postroom import ids
from postroom.accounts import audit
from postroom.clock import DAY, SECOND
from postroom.mailbox import drafts, inboxes, labels, raw_mails, related
from postroom.processes import pools
from postroom.queue import duties, idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx, one_of
from postroom.upkeep import account_removal, deletion, retention

T = TypeVar("T")

ROUND_SECONDS = 60.0
DUTY = "upkeep"
DUTY_HELD = 180 * SECOND
LEAVE_SECONDS = 2.0
EVENT_LIFETIME = 30 * DAY
HANDOVER_LIFETIME = 5 * DAY
CREATION_LIFETIME = 2 * DAY
ORPHAN_AGE_SECONDS = 3600.0
SWEPT_AT_ONCE = 200
TERMS_AT_ONCE, TERMS_IN_A_ROUND = 100, 2_000
SWEPT_IN_A_ROUND = 10_000

# Whoever writes waits for a step under way, so a step that took long is followed by a smaller one.
STEP_SECONDS = 0.010
FEWEST_ROWS, MOST_ROWS = 10, 500
STEP_BYTES = 2 * 1024 * 1024

EXPIRING = (
    ("events", "id", "created_at", EVENT_LIFETIME),
    ("inbox_creations", "inbox_id", "created_at", CREATION_LIFETIME),
    ("handovers", "inbox_id, content_hash", "received_at", HANDOVER_LIFETIME),
    ("idempotency_keys", "account_id, idempotency_key", "created_at", idempotency.LIFETIME),
    ("sessions", "id", "expires_at", 0),
    ("login_links", "token_hash", "expires_at", 0),
    ("audit", "id", "created_at", audit.LIFETIME),
    ("policy_audit", "id", "created_at", audit.LIFETIME),
)
# What a deleted inbox leaves beside its mail, with the key of the table.
OF_A_SCOPE = ("policies", "policy_rules", "pauses")
OF_AN_INBOX = (("handovers", "content_hash"), ("correspondents", "address"))


async def keep_up(resources: Resources) -> None:
    """Runs until cancelled. One node keeps up the database and a common store; each sweeps its own folder."""
    steps, sweep, me = Steps(resources), Sweep(resources), ids.trace()
    try:
        while True:
            now = resources.now()
            await resources.db.write(duties.show_presence, me, where(resources), now + DUTY_HELD, now)
            is_mine = await resources.db.write(duties.take, DUTY, me, now + DUTY_HELD, now)
            if is_mine:
                await steps.one_round()
            if is_mine or not resources.blobs.is_shared:
                await sweep.go_on()
            await asyncio.sleep(ROUND_SECONDS)
    finally:
        with contextlib.suppress(Exception):  # else another node waits until it is free
            async with asyncio.timeout(LEAVE_SECONDS):
                await resources.db.write(duties.leave, DUTY, me)
                await resources.db.write(duties.leave, duties.NODE + me, where(resources))


def where(resources: Resources) -> str:
    """Of several nodes on one machine each listens at a place of its own."""
    return f"{socket.gethostname()} at {resources.config.http}"


async def one_round(resources: Resources) -> None:
    await Steps(resources).one_round()


async def sweep_orphans(resources: Resources) -> None:
    """From the first blob to the last, whatever it takes."""
    sweep = Sweep(resources)
    while not await sweep.take_page():
        pass


class Steps:
    """Many short transactions instead of a long one; their size follows the time they take."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._rows = FEWEST_ROWS
        self._kept_to = ""

    async def one_round(self) -> None:
        now = self._resources.now()
        for expire in (expire_rows, expire_deliveries):
            while await self._step(expire, now):
                pass
        while await self._step(account_removal.go_on, now):
            self._resources.db.ring(inboxes.GONE)
        while (blobs := await self._step(empty_removed_inbox, now)) is not None:
            await remove_blobs(self._resources, blobs)
        await self._apply_retention(now)

    async def _apply_retention(self, now: int) -> None:
        """Goes on with the inboxes where the last round stopped, and begins anew behind the last."""
        for _ in range(TERMS_IN_A_ROUND // TERMS_AT_ONCE):
            terms = await self._resources.db.read(retention.list_terms, self._kept_to, TERMS_AT_ONCE)
            for term in terms:
                while (blobs := await self._step(partial(retention.expire, term=term), now)) is not None:
                    await remove_blobs(self._resources, blobs)
            self._kept_to = terms[-1].inbox_id if terms else ""
            if not terms:
                return

    async def _step(self, work: Callable[[Tx, int, int], T], now: int) -> T:
        """Those who wait go first: one turn of the loop lets them hand in what they write."""
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


class Sweep:
    """Blobs that no mail names, since their process died in between: page by page, over many rounds."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._names: Iterator[str] | None = None

    async def go_on(self) -> None:
        for _ in range(SWEPT_IN_A_ROUND // SWEPT_AT_ONCE):
            if await self.take_page():
                return

    async def take_page(self) -> bool:
        """True at the end; the next page is the first again."""
        names = await pools.FILES.run(self._next_names)
        if not names:
            self._names = None
            return True
        used = await self._resources.db.read(find_used_blobs, names)
        await remove_blobs(self._resources, [name for name in names if name not in used])
        return False

    def _next_names(self) -> list[str]:
        if self._names is None:
            self._names = iter(self._resources.blobs.names(ORPHAN_AGE_SECONDS))
        return list(islice(self._names, SWEPT_AT_ONCE))


def find_used_blobs(tx: Tx, names: Sequence[str]) -> set[str]:
    """Those that a mail or a draft names."""
    return raw_mails.find_used_blobs(tx, names) | drafts.find_used_blobs(tx, names)


async def remove_blobs(resources: Resources, names: Sequence[str]) -> None:
    for name in names:
        await pools.FILES.run(resources.blobs.remove, name)


def expire_deliveries(tx: Tx, now: int, rows: int) -> int:
    """The log of webhooks lasts as long as its events; mail keeps its deliveries while it is there."""
    found = tx.all(
        "select id from deliveries where kind = 'webhook' and finished_at < :limit limit :rows",
        limit=now - EVENT_LIFETIME,
        rows=rows,
    )
    delivery_ids = [row["id"] for row in found]
    delete_all(tx, "attempts", "delivery_id", delivery_ids)
    return delete_all(tx, "deliveries", "id", delivery_ids)


def expire_rows(tx: Tx, now: int, rows: int) -> int:
    """How many rows went: 0 when nothing is left to do."""
    removed = 0
    for table, key, moment, lifetime in EXPIRING:
        removed += tx.run(
            f"delete from {table} where ({key}) in"
            f" (select {key} from {table} where {moment} < :limit order by {moment} limit :rows)",
            limit=now - lifetime,
            rows=rows,
        )
    return removed


def delete_all(tx: Tx, table: str, column: str, values: Sequence[str]) -> int:
    if not values:
        return 0
    is_wanted, wanted = one_of(column, values)
    return tx.run(f"delete from {table} where {is_wanted}", **wanted)


def empty_removed_inbox(tx: Tx, now: int, rows: int) -> list[str] | None:
    """Removes some of what one deleted inbox left; gives the blobs that nobody needs any more.

    None when there is no deleted inbox left.
    """
    removed = tx.one("select inbox_id from removed_inboxes order by removed_at limit 1")
    if removed is None:
        return None
    inbox_id = removed["inbox_id"]
    if message_ids := _some_messages(tx, inbox_id, rows):
        return deletion.erase_all(tx, message_ids)
    if (blobs := drafts.remove_of_inbox(tx, inbox_id, rows)) is not None:
        return blobs
    if not _remove_threads(tx, inbox_id, rows) and not _remove_rest(tx, inbox_id, rows):
        tx.run("delete from webhooks where owner = :inbox_id", inbox_id=inbox_id)
        for table in OF_A_SCOPE:
            tx.run(f"delete from {table} where scope_id = :inbox_id", inbox_id=inbox_id)
        tx.run("delete from removed_inboxes where inbox_id = :inbox_id", inbox_id=inbox_id)
    return []


def _some_messages(tx: Tx, inbox_id: str, rows: int) -> list[str]:
    """At most so many, and of large ones fewer: bytes that are freed cost time too."""
    found = tx.all(
        "select messages.id, raw_mails.size_bytes from messages left join raw_mails"
        " on raw_mails.message_id = messages.id where messages.inbox_id = :inbox_id limit :rows",
        inbox_id=inbox_id,
        rows=rows,
    )
    sizes = accumulate(row["size_bytes"] or 0 for row in found)
    return [row["id"] for row, size in zip(found, sizes, strict=True) if size <= STEP_BYTES] or [
        row["id"] for row in found[:1]
    ]


def _remove_threads(tx: Tx, inbox_id: str, rows: int) -> int:
    found = tx.all(
        "select id from threads where inbox_id = :inbox_id limit :rows", inbox_id=inbox_id, rows=rows
    )
    thread_ids = [row["id"] for row in found]
    labels.remove_all_of_threads(tx, thread_ids)
    if thread_ids:
        related.forget_threads(tx, thread_ids)
    delete_all(tx, "participants", "thread_id", thread_ids)
    return delete_all(tx, "threads", "id", thread_ids)


def _remove_rest(tx: Tx, inbox_id: str, rows: int) -> int:
    removed = 0
    for table, key in OF_AN_INBOX:
        removed += tx.run(
            f"delete from {table} where inbox_id = :inbox_id and {key} in"
            f" (select {key} from {table} where inbox_id = :inbox_id limit :rows)",
            inbox_id=inbox_id,
            rows=rows,
        )
    return removed
