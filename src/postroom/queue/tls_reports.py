"""TLS reports: a daily report to a domain about sessions with its servers (RFC 8460)."""

from msgspec import Struct

from postroom.queue import report_deliveries
from postroom.storage.database import Tx


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
    if is_first:
        report_deliveries.add(tx, report.id, report.day, account_id, targets, now)
    return bool(is_first)


def find(tx: Tx, report_id: str) -> SentTlsReport | None:
    row = tx.one("select * from tls_reports where id = :id", id=report_id)
    return None if row is None else SentTlsReport(row["id"], row["domain"], row["day"], bytes(row["content"]))
