"""Fills a data folder with accounts before a server starts on it."""

from pathlib import Path

import uvloop

from postroom import config
from postroom.accounts import accounts, keys
from postroom.clock import SystemClock
from postroom.mailbox import inboxes
from postroom.storage.database import Tx
from postroom.storage.opening import open_database


def seed(folder: Path, account_count: int, inboxes_each: int, database_url: str = "") -> list[str]:
    """Gives a key of each account. Each may make 1,000 requests a minute, so load needs many."""
    return uvloop.run(_seed(folder, account_count, inboxes_each, database_url))


async def _seed(folder: Path, account_count: int, inboxes_each: int, database_url: str) -> list[str]:
    now = SystemClock().now()
    settings = config.load({"POSTROOM_DATA_DIR": str(folder), "POSTROOM_DATABASE_URL": database_url})
    db = await open_database(settings, now)
    try:
        return await db.write(_add_accounts, settings.domain, account_count, inboxes_each, now)
    finally:
        await db.close()


def _add_accounts(tx: Tx, domain: str, account_count: int, inboxes_each: int, now: int) -> list[str]:
    tokens = []
    for number in range(account_count):
        account = accounts.add(tx, f"bench {number}", "developer", now)
        tokens.append(keys.new_token())
        keys.add(tx, account.id, None, "bench", tokens[-1], now)
        for inbox_number in range(inboxes_each):
            name = f"bench-{number}-{inbox_number}"
            inboxes.add(tx, account.id, name, None, f"Bench inbox {inbox_number}", domain, now)
    return tokens
