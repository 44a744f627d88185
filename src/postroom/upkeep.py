"""Upkeep: removes what has expired and what deleted inboxes left behind, in steps too small to be felt."""

import asyncio

from postroom import deletion, log
from postroom.accounts import audit
from postroom.clock import DAY
from postroom.mailbox import drafts, labels, raw_mails, related
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx

ROUND_SECONDS = 60.0
STEP_ROWS = 500
EVENT_LIFETIME = 30 * DAY
HANDOVER_LIFETIME = 5 * DAY
CREATION_LIFETIME = 2 * DAY
ORPHAN_AGE_SECONDS = 3600.0

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


async def keep_up(resources: Resources) -> None:
    """Runs until cancelled."""
    await sweep_orphans(resources)
    while True:
        try:
            await one_round(resources)
        except Exception as error:
            log.get().error("upkeep failed", reason=str(error))
        await asyncio.sleep(ROUND_SECONDS)


async def one_round(resources: Resources) -> None:
    for expire in (expire_rows, expire_deliveries):
        while await resources.db.write(expire, resources.now()):
            pass
    while (blobs := await resources.db.write(empty_removed_inbox)) is not None:
        for blob in blobs:
            await asyncio.to_thread(resources.blobs.remove, blob)


async def sweep_orphans(resources: Resources) -> None:
    """Blobs that neither a mail nor a draft names: their process died between the blob and its row."""
    try:
        names = await asyncio.to_thread(lambda: list(resources.blobs.names(ORPHAN_AGE_SECONDS)))
        for name in names:
            if not await resources.db.read(is_blob_used, name):
                await asyncio.to_thread(resources.blobs.remove, name)
            await asyncio.sleep(0)
    except Exception as error:
        log.get().error("blobs were not swept", reason=str(error))


def is_blob_used(tx: Tx, name: str) -> bool:
    return raw_mails.is_blob_used(tx, name) or drafts.is_blob_used(tx, name)


def expire_deliveries(tx: Tx, now: int) -> int:
    """The log of webhooks lasts as long as its events; mail keeps its deliveries while it is there."""
    rows = tx.all(
        "select id from deliveries where kind = 'webhook' and finished_at < :limit limit :rows",
        limit=now - EVENT_LIFETIME,
        rows=STEP_ROWS,
    )
    for row in rows:
        tx.run("delete from attempts where delivery_id = :id", id=row["id"])
        tx.run("delete from deliveries where id = :id", id=row["id"])
    return len(rows)


def expire_rows(tx: Tx, now: int) -> int:
    """How many rows went: 0 when nothing is left to do."""
    removed = 0
    for table, key, moment, lifetime in EXPIRING:
        removed += tx.run(
            f"delete from {table} where ({key}) in"
            f" (select {key} from {table} where {moment} < :limit order by {moment} limit :rows)",
            limit=now - lifetime,
            rows=STEP_ROWS,
        )
    return removed


def empty_removed_inbox(tx: Tx) -> list[str] | None:
    """Removes some of one deleted inbox's mail; gives the blobs that nobody needs any more.

    None when there is no deleted inbox left.
    """
    removed = tx.one("select inbox_id from removed_inboxes order by removed_at limit 1")
    if removed is None:
        return None
    inbox_id = removed["inbox_id"]
    rows = tx.all(
        "select id from messages where inbox_id = :inbox_id limit :rows", inbox_id=inbox_id, rows=STEP_ROWS
    )
    if rows:
        return [blob for row in rows if (blob := deletion.erase(tx, row["id"])) is not None]
    if (blobs := drafts.remove_of_inbox(tx, inbox_id, STEP_ROWS)) is not None:
        return blobs
    _remove_threads(tx, inbox_id)
    return []


def _remove_threads(tx: Tx, inbox_id: str) -> None:
    """The last step when no thread is left: the inbox itself is forgotten."""
    rows = tx.all(
        "select id from threads where inbox_id = :inbox_id limit :rows", inbox_id=inbox_id, rows=STEP_ROWS
    )
    labels.remove_all_of_threads(tx, [row["id"] for row in rows])
    for row in rows:
        related.forget_thread(tx, row["id"])
        tx.run("delete from participants where thread_id = :id", id=row["id"])
        tx.run("delete from threads where id = :id", id=row["id"])
    if not rows:
        for table in ("handovers", "correspondents"):
            tx.run(f"delete from {table} where inbox_id = :inbox_id", inbox_id=inbox_id)
        tx.run("delete from webhooks where owner = :inbox_id", inbox_id=inbox_id)
        for table in ("policies", "policy_rules", "pauses"):
            tx.run(f"delete from {table} where scope_id = :inbox_id", inbox_id=inbox_id)
        tx.run("delete from removed_inboxes where inbox_id = :inbox_id", inbox_id=inbox_id)
