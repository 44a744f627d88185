"""A letter to check@ is answered with what was seen of it, to proved senders alone, and seldom."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.deliverability.answer_check import PAUSE, answer_check
from postroom.inward import received_reports
from postroom.inward.received_reports import ReceivedReport, came_by_tls
from postroom.net.dns import Resolver
from postroom.outward.notices.system_emails import SystemEmail
from postroom.storage.database import Tx, item_from_row
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer, ZoneLookup
from tests.outbound import running

SERVICE = "postroom.localhost"
PEER = "203.0.114.7"  # public, for SPF is asked of no other
ZONE = {
    ("sender.example", "TXT"): [f"v=spf1 ip4:{PEER} -all"],
    ("_dmarc.sender.example", "TXT"): ["v=DMARC1; p=reject"],
    ("open.example", "TXT"): [f"v=spf1 ip4:{PEER} -all"],
}


NAMES = {("7.114.0.203.in-addr.arpa", "PTR"): ["mx.sender.example."], ("mx.sender.example", "A"): [PEER]}


@pytest.fixture
async def host(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with DnsServer(NAMES) as dns:
        resolver = Resolver([dns.address], deadline_seconds=60)
        async with running(tmp_path, database_url, clock, "capture", resolver) as server:
            yield server


def list_letters(tx: Tx) -> list[SystemEmail]:
    return [item_from_row(SystemEmail, row) for row in tx.all("select * from letters order by id")]


async def ask(host: Server, sender: str, mail_from: str | None = None, more: str = "") -> list[SystemEmail]:
    raw = f"From: {sender}\r\n{more}Subject: How do I look?\r\n\r\nWell?\r\n".encode()
    now, path = host.clock.now(), sender if mail_from is None else mail_from
    asked = ReceivedReport("rpt_1", SERVICE, raw, now, True, PEER, "mx.sender.example", path, has_tls=True)

    def take(tx: Tx) -> None:
        tx.run("delete from letters")
        received_reports.add_all(tx, [asked])
        received_reports.claim_due(tx, [], 1, now)  # else the loop of the server may be first

    await host.resources.db.write(take)
    await answer_check(host.resources, ZoneLookup(ZONE), asked)
    return await host.resources.db.read(list_letters)


async def test_who_is_proved_gets_an_answer_once_in_ten_minutes(host: Server) -> None:
    (letter,) = await ask(host, "ann@sender.example")
    assert letter.recipient == "ann@sender.example"
    for words in (
        "SPF: pass",
        "DKIM: none",
        "DMARC: pass",
        "ARC: none",
        "TLS: yes",
        f"From address: {PEER}",
        "leads back",
    ):
        assert words in letter.content
    assert await ask(host, "ann@sender.example") == []
    assert len(await ask(host, "bob@sender.example")) == 1
    host.clock.turn(PAUSE)
    assert len(await ask(host, "ann@sender.example")) == 1
    assert len(await ask(host, "ann@open.example")) == 1, "without a policy the very domain is proof enough"


async def test_nobody_gets_an_answer_to_what_another_wrote(host: Server) -> None:
    assert await ask(host, "ann@sender.example", "evil@other.example") == []
    assert await ask(host, "ann@other.example") == []
    assert await ask(host, "ann@open.example", "evil@sender.example") == []
    assert await ask(host, "ann@sender.example", "") == []
    assert await ask(host, "ann@sender.example", more="Auto-Submitted: auto-replied\r\n") == []
    assert await host.resources.db.read(lambda tx: tx.all("select 1 as one from received_reports")) == []


def test_the_trace_says_whether_it_came_by_tls() -> None:
    assert came_by_tls(b"Received: from a ([192.0.2.1])\r\n\tby b with ESMTPS id 1;\r\n")
    assert not came_by_tls(b"Received: from a ([192.0.2.1])\r\n\tby b with ESMTP id 1;\r\n")
