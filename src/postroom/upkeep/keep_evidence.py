"""Keeps the audit log provable: complete chain, heads signed hourly, daily export."""

import asyncio
import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from postroom.accounts import audit_chain, signing_keys
from postroom.accounts.audit_entries import AuditEntry
from postroom.clock import DAY, SECOND, to_iso
from postroom.processes import pools
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.data_folder import make_folder, sync_folder
from postroom.storage.database import Tx

ROUND_SECONDS = 60.0
LEASE = "evidence"
LEASE_HELD = 180 * SECOND
ROWS = 500
FILE_ROWS = 20_000


class Export(NamedTuple):
    """A file of entries of one account, in the order of their chain, with keys and signed heads."""

    account_id: str
    name: str
    content: bytes
    until: int  # the number of its last entry


async def keep_evidence(resources: Resources) -> None:
    """Runs until cancelled. One node of several does the work."""
    await asyncio.sleep(leader_leases.FIRST_SECONDS)
    while True:
        if await leader_leases.hold(resources, LEASE, LEASE_HELD):
            await one_round(resources)
        resources.loops.works("evidence")
        await asyncio.sleep(ROUND_SECONDS)


async def one_round(resources: Resources) -> None:
    db, now = resources.db, resources.now()
    await db.write(signing_keys.keep_current, now)
    while await db.write(audit_chain.join_counted, now, ROWS):
        pass
    while await db.write(audit_chain.sign_grown, now, ROWS):
        pass
    if resources.config.audit_export:
        while (export := await db.read(next_export, now)) is not None:
            await pools.FILES.run(store, resources.config.audit_export, export.name, export.content)
            await db.write(mark_exported, export, now)


def next_export(tx: Tx, now: int) -> Export | None:
    """Return the next file of an account that has new entries and was not exported for a day."""
    row = tx.one(
        "select accounts.id, accounts.audit_count, coalesce(audit_exports.count, 0) as exported from accounts"
        " left join audit_exports on audit_exports.account_id = accounts.id where removed_at is null"
        " and audit_count > coalesce(audit_exports.count, 0)"
        " and (coalesce(audit_exports.exported_at, 0) <= :yesterday or audit_exports.exported_at > :now)"
        " order by accounts.id limit 1",  # a time ahead of now is that of a clock that was wrong
        yesterday=now - DAY,
        now=now,
    )
    if row is None:
        return None
    account_id, after = row["id"], row["exported"]
    entries = audit_chain.list_entries(tx, account_id, after, FILE_ROWS)
    until = max((entry.sequence or 0 for entry in entries), default=row["audit_count"])
    heads = audit_chain.list_heads(tx, account_id, after, until)
    if until == row["audit_count"]:
        heads.append(audit_chain.sign_head(tx, account_id, now))
    lines: list[object] = [{"key": key} for key in signing_keys.publish(tx).keys]
    lines += [{"entry": AuditEntry.of(entry)} for entry in entries]
    lines += [{"head": head} for head in heads]
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    end = (
        (entries[-1].hash or "")[:8] if entries else "none"
    )  # a log that was restored has others: a new file
    name = f"{account_id}/{to_iso(now)[:10]}-{after + 1}-{until}-{end}.jsonl"
    return Export(account_id, name, content, until)


def mark_exported(tx: Tx, export: Export, now: int) -> None:
    """Mark as exported, after the file is durable.

    After a crash in between it is written again, by the same name.
    """
    tx.run(
        "insert into audit_exports (account_id, count, exported_at)"
        " select id, :count, case when audit_count > :count then 0 else :now end from accounts"
        " where id = :account_id on conflict (account_id) do update set count = excluded.count,"
        " exported_at = excluded.exported_at",
        account_id=export.account_id,
        count=export.until,
        now=now,
    )


def store(target: str, name: str, content: bytes) -> None:
    """Store a file durably."""
    if target.startswith("s3://"):
        from postroom.storage.s3_blobs import away_is_unavailable, open_s3

        with away_is_unavailable():
            open_s3(target).put(name, content)
        return
    path = Path(target, name)
    make_folder(path.parent)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    sync_folder(path.parent)
