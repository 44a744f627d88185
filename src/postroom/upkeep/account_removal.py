"""Deletes accounts: closed at once, then emptied in small transactions."""

from postroom import log
from postroom.accounts import accounts
from postroom.accounts.accounts import Account
from postroom.accounts.scope import Scope
from postroom.errors import FirstAccountStays
from postroom.mailbox import inboxes, legal_holds
from postroom.storage.database import Tx
from postroom.upkeep.inbox_removal import OF_A_SCOPE

# Tables with rows of an account, and the key of each.
OF_AN_ACCOUNT = (
    ("events", "id"),
    ("idempotency_keys", "idempotency_key"),
    ("suppressions", "address"),
    ("inbox_creations", "inbox_id"),
    ("audit", "id"),
    ("policy_audit", "id"),
    ("usage_days", "inbox_id"),
    ("domains", "id"),
    ("domain_health", "domain_id"),
    ("warm_ups", "domain"),
    ("warm_up_domains", "domain"),
    ("provider_hours", "hour_at"),
    ("letters", "id"),
    ("audit_heads", "count"),
    ("audit_exports", "account_id"),
    ("notifications", "id"),
    ("feedback", "id"),
    ("rules", "id"),
    ("junk_examples", "message_id"),
    ("junk_models", "teacher"),
    ("jobs", "id"),
)


# Tables that let somebody in, or send something out: emptied at once.
CLOSED = """
    sessions login_links keys webhooks users mail_links passkeys oauth_grants
    oauth_codes device_codes notification_targets push_subscriptions connections
    delayed_actions tool_calls address_uses file_links
""".split()


def close(tx: Tx, account: Account, now: int) -> None:
    """Close an account. Nobody can sign in any more, and its name is free. Upkeep removes the rest.

    The first account stays: it has the operator's pages.
    """
    if accounts.is_first(tx, account.id):
        raise FirstAccountStays("The first account is the operator's own and cannot be deleted.")
    for table in ("taken_mails", "posts"):
        tx.run(
            f"delete from {table} where connection_id in (select id from connections where account_id = :id)",
            id=account.id,
        )
    for table in CLOSED:
        tx.run(f"delete from {table} where account_id = :id", id=account.id)
    tx.run(
        "update accounts set removed_at = :now, name = 'deleted ' || id"
        " where id = :id and removed_at is null",
        now=now,
        id=account.id,
    )
    legal_holds.require_free_account(tx, account.id)
    log.get().info("an account is deleted", account=account.id)


def remove_some(tx: Tx, now: int, rows: int) -> bool:
    """Removes some rows of a closed account. False if no closed account is left."""
    row = tx.one("select id from accounts where removed_at is not null order by removed_at, id limit 1")
    if row is None:
        return False
    account_id = row["id"]
    if not (
        _remove_inboxes(tx, account_id, now, rows)
        or _remove_deliveries(tx, account_id, rows)
        or any(_remove_rows(tx, table, key, account_id, rows) for table, key in OF_AN_ACCOUNT)
    ):
        _remove_rest(tx, account_id)
    return True


def _remove_inboxes(tx: Tx, account_id: str, now: int, rows: int) -> bool:
    found = tx.all("select id from inboxes where account_id = :id limit :rows", id=account_id, rows=rows)
    for row in found:
        inboxes.remove(tx, Scope(account_id), row["id"], now)
    return bool(found)


def _remove_deliveries(tx: Tx, account_id: str, rows: int) -> bool:
    """Remove deliveries of webhooks; those of an email are removed with it."""
    found = tx.all(
        "select id from deliveries where account_id = :id and kind = 'webhook' limit :rows",
        id=account_id,
        rows=rows,
    )
    for row in found:
        tx.run("delete from attempts where delivery_id = :id", id=row["id"])
        tx.run("delete from deliveries where id = :id", id=row["id"])
    return bool(found)


def _remove_rows(tx: Tx, table: str, key: str, account_id: str, rows: int) -> bool:
    removed = tx.run(
        f"delete from {table} where account_id = :id and {key} in"
        f" (select {key} from {table} where account_id = :id limit :rows)",
        id=account_id,
        rows=rows,
    )
    return removed > 0


def _remove_rest(tx: Tx, account_id: str) -> None:
    for table in OF_A_SCOPE:
        tx.run(
            f"delete from {table} where scope_id = :id or scope_id in"
            " (select id from pods where account_id = :id)",
            id=account_id,
        )
    for table in ("dkim_keys", "domain_reports"):
        tx.run(f"delete from {table} where owner = :id", id=account_id)
    for table in ("keys", "pods"):
        tx.run(f"delete from {table} where account_id = :id", id=account_id)
    tx.run("delete from accounts where id = :id", id=account_id)
