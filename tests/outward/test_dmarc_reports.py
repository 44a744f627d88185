"""DMARC aggregate reports: what was seen in the name of a domain is told to it, once a day (RFC 9990)."""

import gzip
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from postroom.accounts import dkim_keys
from postroom.clock import DAY, HOUR
from postroom.outward.notices import dmarc_reports
from postroom.queue import deliveries, dmarc_results
from postroom.storage.database import Database
from postroom_mail.mime.parse import parse_mail
from postroom_mail.reports.dmarc_report import AggregateReport
from postroom_mail.reports.dmarc_report_writing import SeenSender, needs_consent, read_mailboxes, write_report
from postroom_mail.reports.domain_report import find_report
from tests.api.test_junk import came
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.inward.proxied import PEER, hand_over
from tests.inward.test_refusals import HERE, OF_LIST, forged, refusing
from tests.waiting import until

RUA = "rua=mailto:d@bank.test!10m,mailto:d@agreed.test,mailto:d@victim.test,https://bank.test/x"


async def test_a_domain_is_told_what_was_done_with_email_in_its_name_and_why(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    async with SmtpPeer() as peer:
        outbound = f"smtp://127.0.0.1:{peer.port}"
        async with refusing(tmp_path, database_url, clock, DMARC="reject", OUTBOUND=outbound) as (
            server,
            names,
        ):
            names.records["_dmarc.bank.test", "TXT"] = [f"v=DMARC1; p=reject; {RUA}"]
            names.records["bank.test._report._dmarc.agreed.test", "TXT"] = ["v=DMARC1"]
            await server.new_inbox("hello")
            await server.new_inbox("other")
            port, db = server.smtp_port, server.resources.db
            for number in (1, 1, 2):  # the first is tried twice
                assert (await hand_over(port, forged("bank.test", number), HERE)).startswith("550 ")
            listed = forged("bank.test", 4, **OF_LIST)
            both = (HERE, "other@postroom.localhost")
            assert (await hand_over(port, listed, *both, sender="owner@lists.test")).startswith("250 ")
            assert (await hand_over(port, forged("shop.test", 5), HERE)).startswith("250 ")  # wants none
            await came(server, 3)
            await dmarc_reports.write_due(server.resources)
            assert await db.read(targets) == [], "the day is not over"
            day = clock.now() // DAY
            clock.turn(DAY)
            await dmarc_reports.write_due(server.resources)
            await dmarc_reports.write_due(server.resources)
            assert await db.read(targets) == ["d@agreed.test", "d@bank.test"]
            await until(lambda: db.read(dkim_keys.list_active, "service", "postroom.localhost"))
            clock.turn(DAY + 4 * HOUR)
            db.ring(deliveries.NOTICE_BELL)
            await until(lambda: len(peer.mails) == 2, "the reports were mailed")
            report = find_report(parse_mail(peer.mails[0].raw))
            assert isinstance(report, AggregateReport)
            assert (report.domain, report.begins_at, report.reporter) == (
                "bank.test",
                day * DAY,
                "postroom.localhost",
            )
            assert {(row.source, row.count, row.disposition, row.dkim, row.spf) for row in report.rows} == {
                (PEER, 2, "reject", "fail", "fail"),
                (PEER, 1, "quarantine", "fail", "fail"),
            }
            document = xml_of(message_from_bytes(peer.mails[0].raw))
            assert "<reason><type>mailing_list</type>" in document
            assert "<domain>lists.test</domain><result>pass</result>" in document
            assert document.count("<record>") == 2


def targets(tx: object) -> list[str]:
    rows = tx.all("select target from deliveries where kind = 'notice' order by target")  # type: ignore[attr-defined]
    return [row["target"] for row in rows]


def xml_of(mail: Message) -> str:
    (content,) = [part.get_payload(decode=True) for part in mail.walk() if part.get_filename()]
    assert isinstance(content, bytes)
    return gzip.decompress(content).decode()


async def test_results_of_one_content_count_once_and_two_nodes_report_them_once(db: Database) -> None:
    seen = SeenSender(PEER, "none", "", True, False, "a.test", "", "", "none", (), {"p": "none"})
    results = [dmarc_results.DmarcResult(id, "a.test", seen) for id in ("one", "one", "two")]
    await db.write(dmarc_results.add_all, results, DAY)
    await db.write(dmarc_results.add_all, results[:1], DAY)
    assert await db.read(dmarc_results.list_days, 2, 10) == [(1, "a.test")]
    assert await db.write(dmarc_results.take, "a.test", 1) == [(seen, 2)]
    assert await db.write(dmarc_results.take, "a.test", 1) == []


@pytest.mark.sqlite_alone
def test_hostile_names_stay_text_and_reports_go_only_where_they_are_wanted() -> None:
    hostile = SeenSender(
        PEER, "none", "policy_test_mode", False, True, "<a>&\x00\r\n", "]]>", "", "none", (), {"p": '"<x/>'}
    )
    document = gzip.decompress(write_report("here.test", "r", 1, "a.test", [(hostile, 1)])).decode()
    assert "&lt;a&gt;&amp;</header_from>" in document
    assert '<p>"&lt;x/&gt;</p>' in document
    assert "<type>other</type><comment>policy_test_mode</comment>" in document
    assert "\x00" not in document
    assert read_mailboxes({"rua": "mailto:a@x.test!5k, mailto:a@x.test ,ftp:x,mailto:<b>@x"}) == ["a@x.test"]
    assert needs_consent("a.test", "x@a.test") == needs_consent("s.a.test", "x@a.test") == ""
    assert needs_consent("a.test", "x@evil-a.test") == "a.test._report._dmarc.evil-a.test"
