"""Deliveries of a report to a domain: spread over the hours after the day that it is about."""

from postroom import ids
from postroom.clock import DAY
from postroom.queue import deliveries
from postroom.queue.deliveries import NewDelivery
from postroom.storage.database import Tx

LIFETIME = 10 * DAY  # of a report: longer than it is retried
SPREAD = 4 * 3_600_000  # RFC 8460 section 4.1


def add(tx: Tx, report_id: str, day: int, account_id: str, targets: list[tuple[str, str]], now: int) -> None:
    """Add deliveries. `targets` are addresses, each with its lane."""
    due_at = max(now, (day + 1) * DAY + spread_of(report_id))
    new = [
        NewDelivery(
            id=ids.new(ids.NOTICE_DELIVERY, now),
            account_id=account_id,
            inbox_id="",
            kind=deliveries.NOTICE,
            message_id=report_id,
            target=target,
            lane=lane,
            due_at=due_at,
            created_at=now,
        )
        for target, lane in targets
    ]
    deliveries.add_all(tx, new)
    tx.ring(deliveries.NOTICE_BELL)


def spread_of(report_id: str) -> int:
    """Return how long after midnight a report is due: different for each, below `SPREAD`."""
    return int(report_id[-8:], 16) % SPREAD
