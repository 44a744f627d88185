"""TLS reports: a daily report to a domain about sessions with its servers (RFC 8460)."""

from msgspec import Struct

from postroom import ids
from postroom.clock import DAY
from postroom.queue import deliveries
from postroom.queue.deliveries import NewDelivery
from postroom.storage.database import Tx

LIFETIME = 10 * DAY  # longer than a report is retried
SPREAD = 4 * 3_600_000  # reports are spread over this time after midnight (section 4.1)


class SentTlsReport(Struct, frozen=True):
    id: str
    domain: str
    day: int
    content: bytes  # gzip


def add(tx: Tx, report: SentTlsReport, account_id: str, targets: list[tuple[str, str]], now: int) -> bool:
    """False if the domain had one for this day. `targets` are addresses, each with its lane."""
    is_first = tx.run(
        "insert into tls_reports (id, domain, day, content, created_at)"
        " values (:id, :domain, :day, :content, :now) on conflict (domain, day) do nothing",
        id=report.id,
        domain=report.domain,
        day=report.day,
        content=report.content,
        now=now,
    )
    if not is_first:
        return False
    due_at = max(now, (report.day + 1) * DAY + spread_of(report.id))
    new = [
        NewDelivery(
            id=ids.new(ids.NOTICE_DELIVERY, now),
            account_id=account_id,
            inbox_id="",
            kind=deliveries.NOTICE,
            message_id=report.id,
            target=target,
            lane=lane,
            due_at=due_at,
            created_at=now,
        )
        for target, lane in targets
    ]
    deliveries.add_all(tx, new)
    tx.ring(deliveries.NOTICE_BELL)
    return True


def spread_of(report_id: str) -> int:
    """Return how long after midnight a report is due: different for each, below `SPREAD`."""
    return int(report_id[-8:], 16) % SPREAD


def find(tx: Tx, report_id: str) -> SentTlsReport | None:
    row = tx.one("select * from tls_reports where id = :id", id=report_id)
    return None if row is None else SentTlsReport(row["id"], row["domain"], row["day"], bytes(row["content"]))
