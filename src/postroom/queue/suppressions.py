"""Suppressions: addresses that an account does not send to."""

from collections.abc import Sequence

from msgspec import Struct

from postroom.accounts.audit_erasure import hashed
from postroom.clock import DAY
from postroom.errors import NotFound
from postroom.queue.deliveries import BOUNCED, Delivery
from postroom.storage import pages
from postroom.storage.database import Row, Tx, item_from_row
from postroom_mail.reports import reasons
from postroom_mail.reports.reasons import Fault

BOUNCE, COMPLAINT, UNSUBSCRIBED, MANUAL = "bounce", "complaint", "unsub", "manual"
COUNTED_BEYOND_PAGE = 10_000
REASON_CHARACTERS = 500
# Unexplained failures: so many of them within this time suppress an address.
UNCLEAR_FAILURES = 3
UNCLEAR_WINDOW = 30 * DAY


class Suppression(Struct, frozen=True):
    address: str
    type: str
    created_at: int
    message_id: str | None = None  # the sent email that caused it
    reason: str | None = None  # what was said of it


def add(
    tx: Tx,
    account_id: str,
    address: str,
    kind: str,
    now: int,
    message_id: str | None = None,
    reason: str | None = None,
) -> Suppression:
    """Add a suppression. An address suppressed before, even if only its hash is left, keeps its reason."""
    known = find(tx, account_id, address)
    if known is not None:
        return known
    tx.run(
        "insert into suppressions (account_id, address, type, created_at, message_id, reason)"
        " values (:account_id, :address, :kind, :now, :message_id, :reason)"
        " on conflict (account_id, address) do nothing",
        account_id=account_id,
        address=address,
        kind=kind,
        now=now,
        message_id=message_id,
        reason=None if reason is None else reason[:REASON_CHARACTERS],
    )
    found = find(tx, account_id, address)
    assert found is not None
    return found


def add_after_failure(tx: Tx, delivery: Delivery, fault: Fault, reason: str, now: int) -> None:
    """Suppress the address after a permanent failure, if it is the cause.

    If the cause is unclear, the third such failure within 30 days suppresses it. A fault of the sender, the
    content or the network never does.
    """
    is_enough = fault is Fault.UNCLEAR and _count_unclear(tx, delivery, now) >= UNCLEAR_FAILURES
    if fault is Fault.RECIPIENT or is_enough:
        add(tx, delivery.account_id, delivery.target, BOUNCE, now, delivery.message_id, reason)


def _count_unclear(tx: Tx, delivery: Delivery, now: int) -> int:
    """Count the unexplained failures of this address within the window, this one included."""
    rows = tx.all(
        "select state, last_code, last_reply from deliveries where account_id = :account_id"
        " and target = :target and kind = 'mail' and state in ('bounced', 'failed')"
        " and created_at >= :since order by created_at desc limit 100",
        account_id=delivery.account_id,
        target=delivery.target,
        since=now - UNCLEAR_WINDOW,
    )
    return sum(_is_unclear(row) for row in rows)


def _is_unclear(row: Row) -> bool:
    """Return whether the cause is unclear. For a later bounce, `last_code` is still the acceptance's."""
    reply = row["last_reply"]
    code = reasons.reply_code(reply) if row["state"] == BOUNCED else row["last_code"] or 0
    return reasons.fault_of(code, reasons.found_status(reply) or None, reply) is Fault.UNCLEAR


def find(tx: Tx, account_id: str, address: str) -> Suppression | None:
    row = tx.one(
        "select * from suppressions where account_id = :account_id and address in (:address, :hashed)",
        account_id=account_id,
        address=address,
        hashed=hashed(address),
    )
    return None if row is None else item_from_row(Suppression, row)


def find_all(tx: Tx, recipients: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the suppressed ones of these pairs of account and address, and why."""
    if not recipients:
        return {}
    rows = tx.many(
        "select asked.column1 as account_id, asked.column2 as address, type from (values :rows) as asked"
        " cross join suppressions where account_id = asked.column1 and address = asked.column3",
        [
            (account_id, address, held)
            for account_id, address in recipients
            for held in (address, hashed(address))
        ],
    )
    return {(row["account_id"], row["address"]): row["type"] for row in rows}


def keep_hash_alone(tx: Tx, account_id: str, address: str) -> int:
    """Erase the address itself, which still gets no email. Return how many rows were changed."""
    return tx.run(
        "update suppressions set address = :hashed, message_id = null, reason = null"
        " where account_id = :account_id and address = :address",
        hashed=hashed(address),
        account_id=account_id,
        address=address,
    )


def list_of_account(tx: Tx, account_id: str, limit: int, offset: int) -> tuple[list[Suppression], int]:
    """List suppressions, newest first. The total counts at most ten thousand more than the page shows."""
    rows = tx.all(
        "select * from suppressions where account_id = :account_id"
        " order by created_at desc, address desc limit :limit offset :offset",
        account_id=account_id,
        limit=limit,
        offset=offset,
    )
    most = offset + limit + COUNTED_BEYOND_PAGE
    total = pages.count_up_to(tx, most, "suppressions where account_id = :id", id=account_id)
    return [item_from_row(Suppression, row) for row in rows], total


def remove(tx: Tx, account_id: str, address: str) -> None:
    removed = tx.run(
        "delete from suppressions where account_id = :account_id and address in (:address, :hashed)",
        account_id=account_id,
        address=address,
        hashed=hashed(address),
    )
    if not removed:
        raise NotFound("This address is not suppressed.")
