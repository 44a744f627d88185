"""Reports of other servers about a domain: they come by mail, go into no inbox, and are shown by source."""

import asyncio
import smtplib
from collections.abc import AsyncIterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest

from postroom.accounts.domains import SERVICE_ID
from postroom.clock import DAY
from postroom.deliverability import domain_reports
from postroom.deliverability.domain_reports import ROWS_A_DAY
from postroom.inward import received_reports
from postroom.inward.received_reports import ReceivedReport
from postroom.storage.database import Tx
from postroom_mail.reports.dmarc_report import AggregateReport, AggregateRow
from tests.api.test_dashboard import signed_in
from tests.api.test_domains import stranger_of
from tests.conftest import Server
from tests.doubles import START, FakeClock
from tests.mail.test_reports import AGGREGATE, TLS
from tests.outbound import PATIENCE_SECONDS, running
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

SERVICE = "postroom.localhost"
FAILURE_REPORT = (
    Path(__file__).parents[1] / "mail" / "samples" / "bounces" / "others" / "dmarc_failure_as_abuse.eml"
)
PATH = f"/v1/domains/{SERVICE_ID}/reports"
SPAN = {"from": "2026-11-01", "to": "2026-11-03"}


@pytest.fixture
async def host(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running(tmp_path, database_url, clock, "capture") as server:
        yield server


def report(content: bytes, subtype: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "reports@there.example", "A report"
    mail.set_content("As every day.")
    mail.add_attachment(content, maintype="application", subtype=subtype, filename="report")
    return mail


async def hand_in(host: Server, mail: EmailMessage, *names: str) -> None:
    def speak() -> None:
        with smtplib.SMTP("127.0.0.1", host.smtp_port, timeout=PATIENCE_SECONDS) as smtp:
            smtp.send_message(mail, "reports@there.example", [f"{name}@{SERVICE}" for name in names])

    await asyncio.to_thread(speak)


async def reports_once_read(host: Server) -> dict[str, Any]:
    """When none that was handed in waits any more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await host.resources.db.read(list_waiting):
            await asyncio.sleep(0.02)
    found: dict[str, Any] = (await host.api.get(PATH, params=SPAN)).json()
    return found


def list_waiting(tx: Tx) -> list[Any]:
    return list(tx.all("select id from received_reports"))


@pytest.mark.both_databases
async def test_reports_are_shown_by_source_and_go_into_no_inbox(host: Server) -> None:
    bob = await host.new_inbox("bob")
    aggregate = AGGREGATE.replace(b"example.com", SERVICE.encode())
    await hand_in(host, report(aggregate, "xml"), "dmarc")
    await hand_in(host, report(aggregate, "xml"), "DMARC+again")
    await hand_in(host, report(AGGREGATE, "xml"), "dmarc")
    await hand_in(host, message_from_bytes(FAILURE_REPORT.read_bytes(), policy=SMTP), "dmarc")
    await hand_in(host, report(TLS.replace(b"company-y.example", SERVICE.encode()), "json"), "tls-rpt", "bob")
    found = await reports_once_read(host)
    assert found["data"] == [
        {"source": "192.0.2.123", "count": 123, "spf": "fail", "dkim": "pass", "disposition": "pass"},
        {"source": "2001:db8::25", "count": 4, "spf": "fail", "dkim": "fail", "disposition": "quarantine"},
    ]
    assert found["tls"][0] == {"source": "Company-X", "count": 5326, "policy": "sts", "result": "success"}
    assert len(found["tls"]) == 4
    assert found["days"] == [
        {"day": "2026-11-01", "passed": 123, "failed": 4},
        {"day": "2026-11-02", "passed": 0, "failed": 0},
        {"day": "2026-11-03", "passed": 0, "failed": 0},
    ]
    assert (await host.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 1
    assert (await host.api.get("/v1/threads")).json()["total"] == 1
    async with signed_in(host) as page:
        shown = (await page.get(f"/app/settings/domains/{SERVICE_ID}/reports")).text
    assert f"Reports for {SERVICE}" in shown
    async with await stranger_of(host) as theirs_api:
        assert (await theirs_api.get(PATH)).status_code == 404
    wrong = await host.api.get(PATH, params={"from": "2026-11-03", "to": "2026-11-01"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "from")


async def test_an_inbox_of_the_name_gets_its_mail(host: Server) -> None:
    dmarc = await host.new_inbox("dmarc")
    await hand_in(host, report(AGGREGATE, "xml"), "dmarc")

    async def has_come() -> bool:
        return bool((await host.api.get(f"/v1/inboxes/{dmarc}/messages")).json()["total"])

    await until(has_come)


async def test_a_flood_of_reports_fills_no_disk(host: Server) -> None:
    db = host.resources.db
    row = AggregateRow("192.0.2.1", 1, "none", "pass", "pass")
    moment = START - DAY

    def take(tx: Any, number: int, rows: int) -> None:
        waiting = ReceivedReport(f"rpt_{number}", SERVICE, b"", START)
        received_reports.add_all(tx, [waiting])
        made = AggregateReport("Flood", str(number), SERVICE, moment, moment, (row,) * rows)
        domain_reports.store(tx, waiting, made, SERVICE, START)

    await db.write(take, 1, ROWS_A_DAY)
    await db.write(take, 2, 1)
    day = moment // DAY
    found = await db.read(domain_reports.list_rows, "service", SERVICE, "dmarc", day, day)
    assert [each.count for each in found] == [ROWS_A_DAY]
    assert await db.read(list_waiting) == []
