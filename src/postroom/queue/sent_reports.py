"""Reports to domains, one a domain and day: about TLS (RFC 8460) and DMARC (RFC 9990)."""

from typing import Literal

from msgspec import Struct

from postroom.queue import report_deliveries
from postroom.storage.database import Tx

ReportTable = Literal["tls_reports", "dmarc_reports"]


class SentReport(Struct, frozen=True):
    id: str
    domain: str
    day: int
    content: bytes  # gzip


def add(
    tx: Tx, table: ReportTable, report: SentReport, account_id: str, targets: list[tuple[str, str]], now: int
) -> bool:
    """Return False if the domain had one for this day. `targets` are addresses, each with its lane."""
    is_first = tx.run(
        f"insert into {table} (id, domain, day, content, created_at)"
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


def find(tx: Tx, table: ReportTable, report_id: str) -> SentReport | None:
    row = tx.one(f"select * from {table} where id = :id", id=report_id)
    return None if row is None else SentReport(row["id"], row["domain"], row["day"], bytes(row["content"]))
