"""Which node keeps the search index, and removal of indexed changes and deleted accounts from it."""

import hashlib
import socket
from collections.abc import Sequence
from pathlib import Path

from postroom.storage.database import Database, Tx, one_of

LOOK_SECONDS = 60.0
FORGOTTEN_AT_ONCE = 2_000
REMOVALS_FORGOTTEN_AT_ONCE = 200  # each has the text of an email


def holder_of(data_dir: Path) -> str:
    """Return an id that a node has again after a restart, so that it regains its lease at once."""
    return hashlib.sha256(f"{socket.gethostname()} {data_dir.absolute()}".encode()).hexdigest()[:16]


async def tidy(db: Database) -> None:
    """Deletes changes that are in the index for good, and rows of deleted accounts."""
    reached = await db.read(_reached)
    if reached:
        await db.sync_index()
        while await db.write(_forget_changes, reached):
            pass
    if gone := await db.read_long(_find_gone_accounts, LOOK_SECONDS):
        await db.write_index(_forget_accounts, gone)


def _reached(tx: Tx) -> int:
    row = tx.one("select reached from search_state where name = 'index'")
    return 0 if row is None else int(row["reached"])


def progress_mark(tx: Tx) -> tuple[int, int, str]:
    """Changes whenever the index has progressed."""
    row = tx.one("select reached, version, cursor from search_state where name = 'index'")
    assert row is not None
    return row["reached"], row["version"], row["cursor"]


def list_waiting(tx: Tx, limit: int) -> list[str]:
    """List the messages whose entries are not up to date."""
    rows = tx.tuples(
        "select message_id from search_changes where number > :reached limit :limit",
        reached=_reached(tx),
        limit=limit,
    )
    return [message_id for (message_id,) in rows]


def _forget_changes(tx: Tx, reached: int) -> bool:
    """Deletes few at a time: incoming mail waits for the same writer."""
    tables = {"search_changes": FORGOTTEN_AT_ONCE}
    if tx.fulltext.is_apart:
        tables["search_removals"] = REMOVALS_FORGOTTEN_AT_ONCE
    removed = [
        tx.run(
            f"delete from {table} where number <= :reached and number in"
            f" (select number from {table} order by number limit :limit)",
            reached=reached,
            limit=limit,
        )
        for table, limit in tables.items()
    ]
    return any(removed)


def _find_gone_accounts(tx: Tx) -> list[str]:
    rows = tx.all(
        "select distinct account_id from search_realms"
        " where not exists (select 1 from accounts where accounts.id = search_realms.account_id)"
    )
    return [row["account_id"] for row in rows]


def _forget_accounts(tx: Tx, account_ids: Sequence[str]) -> None:
    is_wanted, wanted = one_of("account_id", account_ids)
    for table in ("search_latecomers", "search_newest", "search_realms"):
        tx.run(f"delete from {table} where {is_wanted}", **wanted)


def clear(tx: Tx) -> None:
    """Empties the index; it is then rebuilt, newest email first."""
    tx.fulltext.clear()
    for table in ("search_documents", "search_latecomers", "search_newest"):
        tx.run(f"delete from {table}")
    tx.run("update search_state set version = 0, cursor = '' where name = 'index'")
