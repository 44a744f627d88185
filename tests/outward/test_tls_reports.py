"""Domains are told of sessions with their servers: once a day, as they ask, signed (RFC 8460)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from postroom.accounts import accounts, dkim_keys
from postroom.clock import DAY, HOUR
from postroom.couriers.outbound_routing import CapturingCourier
from postroom.couriers.webhook import HttpCourier
from postroom.inward.receive import Reader
from postroom.net.dns import Resolver
from postroom.outward.deliver_mail import Outbound
from postroom.outward.notices import tls_reports
from postroom.outward.notices.deliver_notice import deliver_notice
from postroom.outward.sign_mail import Signers
from postroom.queue import deliveries, tls_sessions
from postroom.queue.deliveries import Delivery
from postroom.queue.recording import Recorder
from postroom.queue.tls_sessions import MOST_OF_A_DAY, TlsPolicyKept, TlsSession
from postroom.storage.database import Database, Tx
from postroom.storage.journal import Journal
from postroom.storage.opening import open_database
from postroom_mail.mime.parse import parse_mail
from postroom_mail.reports.domain_report import find_report
from postroom_mail.reports.tls_report import TlsReport
from tests.conftest import Server, settings
from tests.couriers.certificates import make_certificate, server_context, trusting_context
from tests.couriers.http_peer import HttpPeer
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import START, FakeClock
from tests.doubles_dns import DnsServer
from tests.outbound import PATIENCE_SECONDS, is_signed, running
from tests.waiting import until

STS = TlsPolicyKept("sts", ("version: STSv1",), ("mx.there.example",))
GOOD = TlsSession("there.example", STS, "success")
BAD = TlsSession(
    "there.example",
    STS,
    "certificate-expired",
    "mx.there.example",
    "192.0.2.1",
    "it has expired",
    "198.51.100.7",
)
ADDRESSES = ["mailto:tls@there.example"]
OTHER = TlsSession("there.example", TlsPolicyKept("no-policy-found"), "success")


def targets(tx: Tx) -> list[str]:
    return [
        row["target"] for row in tx.all("select target from deliveries where kind = 'notice' order by id")
    ]


def notices(tx: Tx) -> list[Delivery]:
    return [Delivery.from_row(row) for row in tx.all("select * from deliveries where kind = 'notice'")]


async def until_a_key_signs(db: Database) -> None:
    """It is made while the server starts."""
    await until(lambda: db.read(dkim_keys.list_active, "service", "postroom.localhost"))


@pytest.fixture
async def dns() -> AsyncIterator[DnsServer]:
    async with DnsServer(
        {("_smtp._tls.there.example", "TXT"): ["v=TLSRPTv1; rua=mailto:tls@there.example"]}
    ) as server:
        yield server


@pytest.mark.sqlite_alone
async def test_sessions_are_counted_by_day_domain_policy_and_result(db: Database) -> None:
    await db.write(tls_sessions.add_all, [GOOD, BAD, GOOD, OTHER], START)
    await db.write(tls_sessions.add_all, [GOOD], START + DAY)
    day = START // DAY
    assert await db.read(tls_sessions.list_days, day + 2, 10) == [
        (day, "there.example"),
        (day + 1, "there.example"),
    ]
    assert await db.read(tls_sessions.list_days, day, 10) == []
    found = await db.write(tls_sessions.take, "there.example", day)
    assert {(each.session, each.count) for each in found} == {(GOOD, 2), (BAD, 1), (OTHER, 1)}
    assert await db.write(tls_sessions.take, "there.example", day) == []


@pytest.mark.sqlite_alone
async def test_a_domain_that_changes_all_the_time_fills_no_table(db: Database) -> None:
    many = [
        TlsSession("there.example", STS, "success", reason=str(number)) for number in range(MOST_OF_A_DAY + 5)
    ]
    await db.write(tls_sessions.add_all, [*many, many[0]], START)
    found = await db.write(tls_sessions.take, "there.example", START // DAY)
    assert (len(found), sum(each.count for each in found)) == (MOST_OF_A_DAY, MOST_OF_A_DAY + 1)


def reports(tx: Tx) -> int:
    return len(tx.all("select id from tls_reports"))


def write_and_die(tx: Tx, now: int) -> None:
    assert tls_reports.write_one(tx, "there.example", START // DAY, ADDRESSES, "here.example", now)
    raise ZeroDivisionError


async def test_whoever_dies_while_writing_a_report_leaves_it_to_the_next(db: Database) -> None:
    await db.write(accounts.add, accounts.FIRST, "free", START)
    await db.write(tls_sessions.add_all, [GOOD, BAD], START)
    with pytest.raises(ZeroDivisionError):
        await db.write(write_and_die, START + DAY)
    assert (await db.read(reports), await db.read(targets)) == (0, [])
    args = ("there.example", START // DAY, ADDRESSES, "here.example", START + DAY)
    assert await db.write(tls_reports.write_one, *args)
    assert (await db.read(reports), await db.read(targets)) == (1, ADDRESSES)


@pytest.mark.sqlite_alone
async def test_nodes_that_write_at_once_write_one_report(
    db: Database, database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    """SQLite has one node, which may still come to it twice."""
    other = (
        await open_database(settings(tmp_path, DATABASE_URL=database_url), clock.now())
        if database_url.startswith("postgres")
        else db
    )
    await db.write(accounts.add, accounts.FIRST, "free", START)
    for day in range(5):
        await db.write(tls_sessions.add_all, [GOOD, BAD], START + day * DAY)
        args = ("there.example", START // DAY + day, ADDRESSES, "here.example", START + (day + 1) * DAY)
        written = await asyncio.gather(
            *(node.write(tls_reports.write_one, *args) for node in (db, other) * 3)
        )
        assert sorted(written) == [False] * 5 + [True]
        await other.write(tls_sessions.add_all, [GOOD], START + day * DAY)  # counted late, told by nobody
        assert not await other.write(tls_reports.write_one, *args)
    assert (await db.read(reports), await db.read(targets)) == (5, ADDRESSES * 5)
    if other is not db:
        await other.close()


@pytest.mark.sqlite_alone
async def test_a_report_is_mailed_signed_and_never_twice(
    database_url: str, tmp_path: Path, clock: FakeClock, dns: DnsServer
) -> None:
    async with SmtpPeer() as peer:
        relay, resolver = (
            f"smtp://127.0.0.1:{peer.port}",
            Resolver([dns.address], deadline_seconds=PATIENCE_SECONDS),
        )
        async with running(tmp_path, database_url, clock, relay, resolver) as server:
            db, day = server.resources.db, clock.now() // DAY
            await db.write(tls_sessions.add_all, [GOOD, GOOD, BAD, OTHER], clock.now())
            await tls_reports.write_due(server.resources)
            assert await db.read(targets) == [], "the day is not over"
            clock.turn(DAY)
            await tls_reports.write_due(server.resources)
            await db.write(tls_sessions.add_all, [GOOD], clock.now() - DAY)  # written late, of the same day
            await tls_reports.write_due(server.resources)
            assert await db.read(targets) == ["mailto:tls@there.example"]
            await until_a_key_signs(db)
            clock.turn(DAY + 4 * HOUR)
            db.ring(deliveries.NOTICE_BELL)
            await until(lambda: bool(peer.mails), "the report was mailed")
            mail = peer.mails[0]
            assert (mail.mail_line.split()[1], b"tls@there.example" in mail.rcpt_line) == (b"FROM:<>", True)
            assert await is_signed(server, mail.raw, "postroom.localhost")
            report = find_report(parse_mail(mail.raw))
            assert isinstance(report, TlsReport)
            assert (report.begins_at, len(peer.mails)) == (day * DAY, 1)
            assert {(row.policy, row.result, row.count) for row in report.rows} == {
                ("sts", "success", 2),
                ("sts", "certificate-expired", 1),
                ("no-policy-found", "success", 1),
            }


@pytest.fixture
async def host(database_url: str, tmp_path: Path, clock: FakeClock, dns: DnsServer) -> AsyncIterator[Server]:
    resolver = Resolver([dns.address], deadline_seconds=PATIENCE_SECONDS)
    async with running(tmp_path, database_url, clock, "capture", resolver) as server:
        yield server


async def test_a_report_is_posted_by_https(host: Server, dns: DnsServer, tmp_path: Path) -> None:
    pem = make_certificate(tmp_path, "reports.there.example")
    async with HttpPeer(tls=server_context(pem)) as peer:
        url = peer.url("/v1/tlsrpt", "reports.there.example")
        dns.records["_smtp._tls.posted.example", "TXT"] = [f"v=TLSRPTv1; rua={url}"]
        dns.records["reports.there.example", "A"] = ["127.0.0.1"]
        db, session = host.resources.db, TlsSession("posted.example", STS, "success")
        await db.write(tls_sessions.add_all, [session], host.clock.now() - DAY)
        courier = HttpCourier(host.resources.resolver, allow_private=True, trusted=trusting_context(pem))
        await tls_reports.write_due(host.resources)
        (delivery,) = await db.read(notices)
        recorder, signers = Recorder(host.resources, Journal(tmp_path / "outcomes")), Signers(1)
        outbound = Outbound(CapturingCourier(), signers, b"", cast(Reader, None), recorder)
        await deliver_notice(host.resources, outbound, courier, delivery)
        signers.close()
        report, _ = await db.read(tls_reports.look_up, delivery.message_id, "postroom.localhost")
        assert report is not None
        assert peer.requests[0].body == report.content
        assert peer.requests[0].header("Content-Type") == "application/tlsrpt+gzip"
        await courier.close()


@pytest.mark.sqlite_alone
async def test_who_asks_for_nothing_is_told_nothing(host: Server, dns: DnsServer) -> None:
    db, yesterday = host.resources.db, host.clock.now() - DAY
    await db.write(tls_sessions.add_all, [TlsSession("silent.example", STS, "success")], yesterday)
    await db.write(tls_sessions.add_all, [TlsSession("unanswered.example", STS, "success")], yesterday)
    dns.servfail.add("_smtp._tls.unanswered.example")
    await tls_reports.write_due(host.resources)
    assert await db.read(targets) == []
    left = await db.read(tls_sessions.list_days, yesterday // DAY + 1, 10)
    assert [domain for _, domain in left] == ["unanswered.example"], "it is asked again"
