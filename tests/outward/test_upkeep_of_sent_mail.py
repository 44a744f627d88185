"""Upkeep: what a send leaves behind goes when its time has come or its inbox is deleted."""

from postroom.clock import DAY
from postroom.storage.database import Tx
from postroom.upkeep import upkeep_loop
from tests.conftest import Server
from tests.outbound import send, settled

TABLES = ("idempotency_keys", "deliveries", "attempts", "messages", "raw_mails", "threads", "participants")


def counts(tx: Tx) -> dict[str, int]:
    rows = {table: tx.one(f"select count(*) as total from {table}") for table in TABLES}
    return {table: row["total"] for table, row in rows.items() if row is not None}


async def test_keys_are_forgotten_after_a_day_and_deliveries_with_their_inbox(sender: Server) -> None:
    bob = await sender.new_inbox("bob")
    await settled(sender, await send(sender, bob, "carol@there.example"))
    before = await sender.resources.db.read(counts)
    assert min(before.values()) >= 1
    sender.clock.turn(DAY + 1)
    await upkeep_loop.one_round(sender.resources)
    assert await sender.resources.db.read(counts) == {**before, "idempotency_keys": 0}
    await sender.api.delete(f"/v1/inboxes/{bob}")
    await upkeep_loop.one_round(sender.resources)
    assert await sender.resources.db.read(counts) == dict.fromkeys(TABLES, 0)
