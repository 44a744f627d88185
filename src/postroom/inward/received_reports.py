"""Mail to the server itself, stored until it is read: reports about domains, and emails to check@."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from postroom import ids
from postroom.inward.mails import AddressedMail
from postroom.queue import leases
from postroom.queue.leases import WorkTable
from postroom.storage.database import Row, Tx, item_from_row

BELL = "received reports"
REPORTS = WorkTable("received_reports", key="id")
MAX_MAIL_BYTES = 4 * 1024 * 1024  # no honest report is larger; such mail is dropped


class ReceivedReport(Struct, frozen=True):
    id: str
    domain: str
    content: bytes
    due_at: int
    is_check: bool = False  # an email whose sender wants to know what was seen of it
    peer_ip: str = ""
    helo: str = ""
    mail_from: str = ""
    has_tls: bool = False

    @classmethod
    def from_row(cls, row: Row) -> "ReceivedReport":
        return item_from_row(
            cls,
            row,
            content=bytes(row["content"]),
            is_check=bool(row["is_check"]),
            has_tls=bool(row["has_tls"]),
        )


def new_id(now: int) -> str:
    return ids.new(ids.REPORT, now)


def to_report(addressed: AddressedMail) -> ReceivedReport:
    now, to, origin = addressed.mail.now, addressed.destination, addressed.read.origin
    return ReceivedReport(
        id=new_id(now),
        domain=to.report_domain,
        content=addressed.read.content,
        due_at=now,
        is_check=to.is_check,
        peer_ip=origin.peer_ip,
        helo=origin.helo,
        mail_from=origin.mail_from,
        has_tls=came_by_tls(origin.trace),
    )


def came_by_tls(trace: bytes) -> bool:
    """Return whether our own trace field names a protocol with TLS (RFC 3848)."""
    return b"SMTPS id " in trace


def add_all(tx: Tx, new: Iterable[ReceivedReport]) -> None:
    tx.many(
        "insert into received_reports (id, domain, content, due_at, is_check, peer_ip, helo, mail_from,"
        " has_tls) values :rows",
        [
            (
                each.id,
                each.domain,
                each.content,
                each.due_at,
                int(each.is_check),
                each.peer_ip,
                each.helo,
                each.mail_from,
                int(each.has_tls),
            )
            for each in new
            if len(each.content) <= MAX_MAIL_BYTES
        ],
    )


def is_due(tx: Tx, now: int) -> bool:
    return leases.is_due(tx, REPORTS, now)


def claim_due(tx: Tx, running: Sequence[ReceivedReport], limit: int, now: int) -> list[ReceivedReport]:
    return [ReceivedReport.from_row(row) for row in leases.claim_due(tx, REPORTS, limit, now)]


def renew(tx: Tx, running: Sequence[ReceivedReport], now: int) -> None:
    leases.renew(tx, REPORTS, [report.id for report in running], now)


def remove(tx: Tx, report_id: str) -> bool:
    """Return False if another node removed it first."""
    return leases.remove(tx, REPORTS, report_id)
