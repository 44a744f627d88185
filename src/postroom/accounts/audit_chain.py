"""The chain of each account's audit log: each entry names the one before it, so changes and gaps show.

The account's row has the newest hash. Appending locks that row, so several nodes make one chain.
"""

from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts import signing_keys
from postroom.accounts.audit_entries import Entry, hash_of
from postroom.clock import HOUR, MINUTE, to_iso
from postroom.fields import Timestamp
from postroom.storage.database import Row, Tx, insert_new

COUNTED_FOR = 2 * MINUTE  # a node whose clock is behind may still count a refusal of the minute before
HEAD_EVERY = HOUR


class AuditHead(Struct, rename="camel", frozen=True):
    """The newest entry of an account's audit log. `signature` covers the other fields."""

    account_id: str
    hash: str
    count: int
    at: Timestamp
    key_id: str
    signature: str = ""


def join(tx: Tx, account_id: str, entry: Entry) -> Entry:
    """Return the entry with its place at the end of the chain, which is its account's until the commit."""
    row = tx.one(
        "update accounts set audit_count = audit_count + 1 where id = :id returning audit_count, audit_hash",
        id=account_id,
    )
    if row is None:
        return entry  # of an account that is gone
    placed = replace(entry, sequence=row["audit_count"], previous_hash=row["audit_hash"])
    placed = replace(placed, hash=hash_of(placed))
    tx.run("update accounts set audit_hash = :hash where id = :id", hash=placed.hash, id=account_id)
    return placed


def join_counted(tx: Tx, now: int, rows: int) -> int:
    """Append refusals that are no longer counted, and entries from before an upgrade. Return how many."""
    waiting = tx.all(
        "select account_id from audit where sequence is null and (minute is null or minute < :minute)"
        " order by created_at, id limit :rows",
        minute=(now - COUNTED_FOR) // MINUTE,
        rows=rows,
    )
    account_ids = sorted({row["account_id"] for row in waiting})
    return sum(_join_of(tx, account_id, (now - COUNTED_FOR) // MINUTE, rows) for account_id in account_ids)


def _join_of(tx: Tx, account_id: str, minute: int, rows: int) -> int:
    """Join the account's entries of earlier minutes to the chain. Return how many there were.

    Lock the account's row before reading the entries, so that no other node joins the same ones.
    """
    if not tx.run("update accounts set audit_count = audit_count where id = :id", id=account_id):
        return tx.run("delete from audit where account_id = :id", id=account_id)
    found = tx.all(
        "select * from audit where account_id = :id and sequence is null"
        " and (minute is null or minute < :minute) order by created_at, id limit :rows",
        id=account_id,
        minute=minute,
        rows=rows,
    )
    for entry in map(Entry.from_row, found):
        placed = join(tx, account_id, entry)
        tx.run(
            "update audit set sequence = :sequence, previous_hash = :previous, hash = :hash where id = :id",
            sequence=placed.sequence,
            previous=placed.previous_hash,
            hash=placed.hash,
            id=entry.id,
        )
    return len(found)


def sign_head(tx: Tx, account_id: str, now: int) -> AuditHead:
    row = tx.one("select audit_count, audit_hash from accounts where id = :id", id=account_id)
    assert row is not None
    return _signed(tx, account_id, row, now)


def _signed(tx: Tx, account_id: str, row: Row, now: int) -> AuditHead:
    key = signing_keys.current(tx)
    head = AuditHead(account_id, row["audit_hash"], row["audit_count"], to_iso(now), key.id)
    return replace(head, signature=key.sign(signing_keys.signed_part(head)))


def sign_grown(tx: Tx, now: int, accounts: int) -> int:
    """Sign and keep the head of some accounts whose log has grown since the last one. Returns how many."""
    grown = tx.all(
        "select id, audit_count, audit_hash from accounts where audit_count > 0 and removed_at is null"
        " and not exists (select 1 from audit_heads where account_id = accounts.id"
        " and (count = accounts.audit_count or (signed_at > :recent and signed_at <= :now)))"
        " order by id limit :accounts",  # a time ahead of now is that of a clock that was wrong
        recent=now - HEAD_EVERY,
        now=now,
        accounts=accounts,
    )
    for row in grown:
        head = _signed(tx, row["id"], row, now)
        insert_new(
            tx,
            "audit_heads",
            account_id=row["id"],
            count=head.count,
            hash=head.hash,
            signed_at=now,
            signature=head.signature,
            key_id=head.key_id,
        )
    return len(grown)


def list_heads(tx: Tx, account_id: str, after: int, until: int) -> list[AuditHead]:
    """Return the kept heads behind one number of the chain, up to another."""
    rows = tx.all(
        "select * from audit_heads where account_id = :id and count > :after and count <= :until"
        " order by count",
        id=account_id,
        after=after,
        until=until,
    )
    return [
        AuditHead(
            account_id, row["hash"], row["count"], to_iso(row["signed_at"]), row["key_id"], row["signature"]
        )
        for row in rows
    ]


def list_entries(tx: Tx, account_id: str, after: int, rows: int) -> Sequence[Entry]:
    """Return entries in the order of the chain."""
    found = tx.all(
        "select * from audit where account_id = :id and sequence > :after order by sequence limit :rows",
        id=account_id,
        after=after,
        rows=rows,
    )
    return [Entry.from_row(row) for row in found]


def expire(tx: Tx, limit: int, rows: int) -> int:
    """Delete old entries from the front of each chain alone. Return how many.

    What a clock that was behind dated too early stays until all before it goes: a gap looks like
    tampering.
    """
    old = tx.all(
        "select account_id from audit where created_at < :limit group by account_id order by account_id"
        " limit :rows",
        limit=limit,
        rows=rows,
    )
    return sum(_expire_of(tx, row["account_id"], limit, rows) for row in old)


def _expire_of(tx: Tx, account_id: str, limit: int, rows: int) -> int:
    front = tx.all(
        "select sequence, created_at from audit where account_id = :id and sequence is not null"
        " order by sequence limit :rows",
        id=account_id,
        rows=rows,
    )
    old = list(takewhile(lambda row: row["created_at"] < limit, front))
    if not old:
        return 0
    last = old[-1]["sequence"]
    tx.run("delete from audit_heads where account_id = :id and count <= :last", id=account_id, last=last)
    return tx.run("delete from audit where account_id = :id and sequence <= :last", id=account_id, last=last)
