"""Domain reports: what other servers reported about mail in the name of a domain, and about TLS to it."""

import hashlib
from typing import Final, Literal

from msgspec import Struct

from postroom import log
from postroom.accounts import domains
from postroom.clock import DAY
from postroom.deliverability.answer_check import answer_check
from postroom.inward import received_reports
from postroom.inward.received_reports import ReceivedReport
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Row, Tx, item_from_row
from postroom_mail.authentication.lookup import Lookup
from postroom_mail.mime.parse import parse_mail
from postroom_mail.reports.dmarc_report import AggregateReport
from postroom_mail.reports.domain_report import find_report
from postroom_mail.reports.tls_report import TlsReport

Kind = Literal["dmarc", "tls"]
DMARC: Final = "dmarc"
TLS: Final = "tls"
LIFETIME = 400 * DAY
ROWS_A_DAY = 20_000  # of one domain: a flood of reports must not fill the disk
SHOWN_ROWS = 1_000


class ReportedRow(Struct, frozen=True):
    """For TLS, `source` is the reporter, `spf` the policy and `dkim` the result."""

    source: str
    spf: str
    dkim: str
    disposition: str
    count: int

    @classmethod
    def from_row(cls, row: Row) -> "ReportedRow":
        return item_from_row(cls, row, count=int(row["total"]))


class DayCount(Struct, frozen=True):
    """How many passed DMARC on a day, and how many did not."""

    day: int
    passed: int
    failed: int


async def read_mail(resources: Resources, lookup: Lookup, received: ReceivedReport) -> None:
    """Reads mail to the server itself."""
    if received.is_check:
        await answer_check(resources, lookup, received)
    else:
        await read_report(resources, received)


async def read_report(resources: Resources, received: ReceivedReport) -> None:
    """Runs in a thread: unpacked it may be a thousand times as large."""
    try:
        mail = await pools.READING.run(parse_mail, received.content)
        report = await pools.READING.run(find_report, mail)
    except Exception:
        log.get().exception("a report about a domain could not be read", report=received.id)
        report = None
    await resources.db.write(store, received, report, resources.config.domain, resources.now())


def store(
    tx: Tx, received: ReceivedReport, report: AggregateReport | TlsReport | None, service: str, now: int
) -> None:
    """Store each report once, by whichever node is first, however often it is sent."""
    owner = domains.SERVICE if received.domain == service else domains.find_owner(tx, received.domain)
    if not received_reports.remove(tx, received.id) or report is None or owner is None:
        return
    kind = DMARC if isinstance(report, AggregateReport) else TLS
    rows = _rows_about(report, received.domain)
    if _count_of_today(tx, owner, received.domain, now) + len(rows) > ROWS_A_DAY:
        log.get().seldom("too many reports about a domain in a day", domain=received.domain)
        return
    hashed = hashlib.sha256(f"{report.reporter}\0{report.report_id}\0{report.begins_at}".encode()).hexdigest()
    day = (report.begins_at + report.ends_at) // 2 // DAY
    tx.many(
        "insert into domain_reports (owner, domain, kind, report_hash, position, reporter, day, source, spf,"
        " dkim, disposition, count, received_at) values :rows"
        " on conflict (owner, domain, kind, report_hash, position) do nothing",
        [
            (
                owner,
                received.domain,
                kind,
                hashed,
                position,
                report.reporter,
                day,
                row.source,
                row.spf,
                row.dkim,
                row.disposition,
                row.count,
                now,
            )
            for position, row in enumerate(rows)
        ],
    )


def _rows_about(report: AggregateReport | TlsReport, domain: str) -> list[ReportedRow]:
    """Leaves out what a report says of other domains."""
    if isinstance(report, TlsReport):
        return [
            ReportedRow(report.reporter, row.policy, row.result, "", row.count)
            for row in report.rows
            if is_within(row.domain, domain)
        ]
    if not is_within(report.domain, domain):
        return []
    return [ReportedRow(row.source, row.spf, row.dkim, row.disposition, row.count) for row in report.rows]


def is_within(name: str, domain: str) -> bool:
    return name == domain or name.endswith(f".{domain}")


def _count_of_today(tx: Tx, owner: str, domain: str, now: int) -> int:
    row = tx.one(
        "select count(*) as number from domain_reports where owner = :owner and domain = :domain"
        " and received_at > :since",
        owner=owner,
        domain=domain,
        since=now - DAY,
    )
    return int(row["number"]) if row else 0


def list_rows(tx: Tx, owner: str, domain: str, kind: Kind, first: int, last: int) -> list[ReportedRow]:
    """List the rows of these days, highest count first."""
    rows = tx.all(
        "select source, spf, dkim, disposition, sum(count) as total from domain_reports"
        " where owner = :owner and domain = :domain and kind = :kind and day between :first and :last"
        " group by source, spf, dkim, disposition"
        " order by sum(count) desc, source, spf, dkim, disposition limit :limit",
        owner=owner,
        domain=domain,
        kind=kind,
        first=first,
        last=last,
        limit=SHOWN_ROWS,
    )
    return [ReportedRow.from_row(row) for row in rows]


def count_days(tx: Tx, owner: str, domain: str, first: int, last: int) -> list[DayCount]:
    """Count every day, including those without reports."""
    rows = tx.all(
        "select day, sum(case when spf = 'pass' or dkim = 'pass' then count else 0 end) as passed,"
        " sum(count) as total from domain_reports"
        " where owner = :owner and domain = :domain and kind = 'dmarc' and day between :first and :last"
        " group by day",
        owner=owner,
        domain=domain,
        first=first,
        last=last,
    )
    found = {row["day"]: (int(row["passed"]), int(row["total"])) for row in rows}
    counts = [(day, *found.get(day, (0, 0))) for day in range(first, last + 1)]
    return [DayCount(day, passed, total - passed) for day, passed, total in counts]


def remove_all(tx: Tx, owner: str, domain: str) -> None:
    tx.run("delete from domain_reports where owner = :owner and domain = :domain", owner=owner, domain=domain)
