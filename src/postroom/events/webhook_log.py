"""The log of webhook deliveries: what was posted, every attempt at it, and sending it again by hand."""

from msgspec import Struct

from postroom import ids
from postroom.clock import HOUR
from postroom.errors import no_such
from postroom.queue.deliveries import Delivery
from postroom.storage import pages
from postroom.storage.database import Row, Tx, item_from_row

COUNTED_BEYOND_PAGE = 1000
LOOKED_AT = 5000  # deliveries at most: an overview never scans a table
ROWS_AT_ONCE = 500


class Attempt(Struct, frozen=True):
    number: int
    started_at: int
    milliseconds: int | None
    code: int | None
    answer: str | None
    host: str | None  # the server that took an email over; None if none outside did
    has_tls: bool

    @classmethod
    def from_row(cls, row: Row) -> "Attempt":
        return item_from_row(cls, row, has_tls=bool(row["has_tls"]))


def get(tx: Tx, account_id: str, delivery_id: str) -> Delivery:
    row = ids.is_id(ids.WEBHOOK_DELIVERY, delivery_id) and tx.one(
        "select * from deliveries where id = :id and account_id = :account_id and kind = 'webhook'",
        id=delivery_id,
        account_id=account_id,
    )
    if not row:
        raise no_such("delivery")
    return Delivery.from_row(row)


def list_of_account(
    tx: Tx, account_id: str, state: str | None, limit: int, offset: int
) -> tuple[list[Delivery], int]:
    """List deliveries, newest first. The total counts at most a thousand more than the page shows."""
    wanted = "account_id = :account_id and kind = 'webhook'"
    params = {"account_id": account_id}
    if state is not None:
        wanted += " and state = :state"
        params["state"] = state
    rows = tx.all(
        f"select * from deliveries where {wanted}"
        " order by created_at desc, id desc limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **params,
    )
    most = offset + limit + COUNTED_BEYOND_PAGE
    total = pages.count_up_to(tx, most, f"deliveries where {wanted}", **params)
    return [Delivery.from_row(row) for row in rows], total


def list_attempts(tx: Tx, delivery_id: str) -> list[Attempt]:
    rows = tx.all("select * from attempts where delivery_id = :id order by number", id=delivery_id)
    return [Attempt.from_row(row) for row in rows]


def send_again(tx: Tx, account_id: str, delivery_id: str, now: int) -> None:
    """Send a delivery again, whatever its state."""
    delivery = get(tx, account_id, delivery_id)
    tx.run(
        "update deliveries set state = 'pending', due_at = :now, waits_used = 0, finished_at = null,"
        " is_replay = 1 where id = :id",
        now=now,
        id=delivery.id,
    )


def send_failed_again(tx: Tx, account_id: str, since: int, now: int) -> int:
    """Requeues a batch. Returns how many; 0 when none is left."""
    return tx.run(
        "update deliveries set state = 'pending', due_at = :now, waits_used = 0, finished_at = null,"
        " is_replay = 1 where id in (select id from deliveries where account_id = :account_id"
        " and kind = 'webhook' and state = 'failed' and created_at >= :since"
        " order by created_at, id limit :rows)",
        now=now,
        account_id=account_id,
        since=since,
        rows=ROWS_AT_ONCE,
    )


def count_failed(tx: Tx, account_id: str, since: int) -> int:
    """Return how many would be sent again, counted up to a limit."""
    wanted = "account_id = :account_id and kind = 'webhook' and created_at >= :since and state = 'failed'"
    most = COUNTED_BEYOND_PAGE
    return pages.count_up_to(tx, most, f"deliveries where {wanted}", account_id=account_id, since=since)


class HourOfPosts(Struct, frozen=True):
    delivered: int
    failed: int  # for good, or still retried


def list_hours(tx: Tx, account_id: str, hours: int, now: int) -> list[HourOfPosts]:
    """Return how deliveries of the last hours went, oldest first."""
    first = now // HOUR - hours + 1
    rows = tx.all(
        "select created_at, state, attempts from deliveries where account_id = :account_id"
        " and kind = 'webhook' and created_at >= :since order by created_at desc, id desc limit :limit",
        account_id=account_id,
        since=first * HOUR,
        limit=LOOKED_AT,
    )
    counts = [[0, 0] for _ in range(hours)]
    for row in rows:
        is_failing = row["state"] == "failed" or (row["state"] == "pending" and row["attempts"] > 0)
        if row["state"] == "delivered" or is_failing:
            counts[min(row["created_at"] // HOUR - first, hours - 1)][is_failing] += 1
    return [HourOfPosts(delivered, failed) for delivered, failed in counts]


def find_last(tx: Tx, account_id: str, state: str) -> Delivery | None:
    row = tx.one(
        "select * from deliveries where account_id = :account_id and kind = 'webhook' and state = :state"
        " order by created_at desc, id desc limit 1",
        account_id=account_id,
        state=state,
    )
    return None if row is None else Delivery.from_row(row)
