"""Email that is refused before its 250: by the DMARC policy of its sender's domain, or as junk."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.events import event_log
from postroom.inward import refusals
from postroom.mailbox import correspondents
from postroom.net.dns import Resolver
from postroom.web.agentmail import events as agentmail_events
from postroom_mail.authentication import arc_seal, dkim
from postroom_mail.authentication.arc_seal import SeenResults
from tests.api.test_junk import NOTE, came, messages_of, offer
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer, Records
from tests.inward.proxied import PEER, hand_over
from tests.inward.test_junk_sources import service
from tests.mail.keys import private_key, signing_key
from tests.raw_mails import raw_mail
from tests.waiting import until

RECORDS: Records = {
    ("_dmarc.bank.test", "TXT"): ["v=DMARC1; p=reject"],
    ("_dmarc.bank.zone", "TXT"): ["v=DMARC1; p=reject"],
    ("_dmarc.shop.test", "TXT"): ["v=DMARC1; p=quarantine"],
    ("_dmarc.trial.test", "TXT"): ["v=DMARC1; p=reject; t=y"],
    ("_dmarc.old-trial.test", "TXT"): ["v=DMARC1; p=reject; pct=0"],
    ("_dmarc.huge.test", "TXT"): [b"v=DMARC1; p=reject; x=" + b"y" * 30_000] * 2,
    ("huge.test", "TXT"): [b"v=spf1 " + b"ip4:8.8.8.8 " * 4_000],
    ("lists.test", "TXT"): [f"v=spf1 ip4:{PEER} -all"],
    ("bank.test", "TXT"): ["v=spf1 ip4:8.8.8.8 -all"],
    ("news.test", "TXT"): [f"v=spf1 ip4:{PEER} -all"],
    ("_dmarc.news.test", "TXT"): ["v=DMARC1; p=none"],
    ("4.4.8.8.in-addr.arpa", "PTR"): ["mail.sender.test"],
    ("s1._domainkey.lists.test", "TXT"): [dkim.public_record(signing_key())],
    ("s1._domainkey.other.test", "TXT"): [dkim.public_record(signing_key())],
}
HERE = "hello@postroom.localhost"
OF_LIST = {"list_id": "The list <talk.lists.test>"}


@contextlib.asynccontextmanager
async def refusing(
    folder: Path, database_url: str, clock: FakeClock, **values: str
) -> AsyncIterator[tuple[Server, DnsServer]]:
    config = settings(folder, DATABASE_URL=database_url, TRUSTED_PROXIES="127.0.0.1", **values)
    async with DnsServer(RECORDS) as names:
        resolver = Resolver([names.address], deadline_seconds=60)
        async with running_server(config, clock, resolver) as server:
            yield server, names


def forged(domain: str, number: int = 0, **fields: str) -> bytes:
    sender = {"from": f"Support <help@{domain}>", "message_id": f"<{number}@{domain}>"}
    return raw_mail(NOTE, subject=f"About {number}", **sender, **fields)


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("workers", ["0", "1"])
async def test_email_that_its_domain_wants_rejected_gets_a_550_and_is_nowhere(
    database_url: str, tmp_path: Path, clock: FakeClock, workers: str
) -> None:
    async with refusing(tmp_path, database_url, clock, DMARC="reject", WORKERS=workers) as (server, names):
        inbox_id = await server.new_inbox("hello")
        answer = await hand_over(server.smtp_port, forged("bank.test"), HERE)
        assert answer == "550 5.7.26 Refused: DMARC fails, and bank.test asks to reject such mail"
        for other in ("noreply", "dmarc"):  # that have no inbox, and refuse nothing by themselves
            both = (HERE, f"{other}@postroom.localhost")
            assert (await hand_over(server.smtp_port, forged("bank.test"), *both)).startswith("550 5.7.26 ")
        kept = [
            (forged("shop.test", 1), "alice@sender.test", PEER, "quarantine", None),
            (forged("trial.test", 2), "alice@sender.test", PEER, "quarantine", "policy_test_mode"),
            (forged("old-trial.test", 3), "alice@sender.test", PEER, "quarantine", "policy_test_mode"),
            (forged("bank.test", 4, **OF_LIST), "owner@lists.test", PEER, "quarantine", "mailing_list"),
            (forged("bank.zone", 5), "alice@sender.test", "10.1.2.3", "quarantine", "local_policy"),
            (forged("nobody.test", 6), "alice@sender.test", PEER, None, None),
        ]
        for raw, sender, peer_ip, _, _ in kept:
            said = await hand_over(server.smtp_port, raw, HERE, sender=sender, peer_ip=peer_ip)
            assert said.startswith("250 "), said
        several = raw_mail(NOTE, **{"from": "eve@sender.test, Support <help@bank.test>"})
        answer = await hand_over(server.smtp_port, several, HERE)
        assert answer == "550 5.7.26 Refused: DMARC fails, and bank.test asks to reject such mail"
        names.truncated |= {"_dmarc.huge.test", "huge.test"}  # which leads to TCP, and 60 kB
        said = await hand_over(server.smtp_port, forged("huge.test", 9), HERE, sender="a@huge.test")
        assert said.startswith("250 "), "two records are none"
        pretended = forged("bank.test", 7, **OF_LIST)  # the list vouches for nothing
        assert (await hand_over(server.smtp_port, pretended, HERE)).startswith("550 5.7.26 ")
        names.servfail.add("_dmarc.down.test")
        assert (await hand_over(server.smtp_port, forged("down.test", 8), HERE)).startswith("250 ")
        await came(server, len(kept) + 2)
        found = {each["subject"]: each for each in await messages_of(server, inbox_id)}
        assert set(found) == {f"About {number}" for number in (1, 2, 3, 4, 5, 6, 8, 9)}
        huge = found["About 9"]["auth"]
        assert (huge["dmarc"], huge["spf"]) == ("none", "permerror")
        for number, (_, _, _, disposition, override) in enumerate(kept, 1):
            shown = found[f"About {number}"]
            auth = shown["auth"]
            assert (auth.get("disposition"), auth.get("override")) == (disposition, override), number
            assert shown["junk"]["isJunk"] == (disposition == "quarantine"), number
        metrics = (await server.api.get("/metrics")).text
        assert 'postroom_mail_refused_total{reason="dmarc"}' in metrics


def sealed(raw: bytes, sealer: str, *, dmarc: str = "pass", author: str = "bank.test") -> bytes:
    arc = "pass" if raw.startswith(b"ARC-Seal: ") else "none"
    seen = SeenResults("pass", "pass", dmarc, arc, author)
    now = int(time.time() * 1000)
    fields = arc_seal.seal(raw, seen, domain=sealer, selector="s1", key=private_key(), sealed_at=now)
    assert fields.startswith(b"ARC-Seal: ")
    return fields + raw


@pytest.mark.sqlite_alone
async def test_email_that_fails_dmarc_is_accepted_if_a_trusted_forwarder_sealed_that_it_passed(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    trusting = refusing(tmp_path, database_url, clock, DMARC="reject", TRUSTED_SEALERS="lists.test")
    async with trusting as (server, _):
        inbox_id = await server.new_inbox("hello")
        raw = forged("bank.test", 1)
        for refused in (
            sealed(raw, "other.test"),
            sealed(raw, "lists.test", dmarc="fail"),
            sealed(raw, "lists.test", author="elsewhere.test"),
            sealed(raw, "lists.test").replace(b"Subject: About 1", b"Subject: Pay 500"),
            sealed(sealed(raw, "other.test"), "lists.test"),
            sealed(
                raw_mail(NOTE, **{"from": "eve@shop.test, a@bank.test"}), "lists.test", author="shop.test"
            ),
        ):
            said = await hand_over(server.smtp_port, refused, HERE)
            assert said.startswith("550 5.7.26 "), said
        said = await hand_over(server.smtp_port, sealed(raw, "lists.test"), HERE)
        assert said.startswith("250 "), said
        await came(server, 1)
        (shown,) = await messages_of(server, inbox_id)
        auth = shown["auth"]
        assert (auth["dmarc"], auth["arc"], auth["override"]) == ("pass", "pass", "trusted_forwarder")
        assert not shown["junk"]["isJunk"]


@pytest.mark.sqlite_alone
async def test_a_sender_who_passes_dmarc_is_verified_also_where_email_waits_for_the_junk_filter(
    tmp_path: Path, database_url: str, clock: FakeClock
) -> None:
    async with refusing(tmp_path, database_url, clock, JUNK="folder") as (server, _):
        inbox_id, sender = await server.new_inbox("hello"), "help@bank.test"
        said = await hand_over(server.smtp_port, forged("bank.test"), HERE, sender=sender, peer_ip="8.8.8.8")
        assert said.startswith("250 ")
        await came(server, 1)
        known = await server.resources.db.read(correspondents.list_known, inbox_id, [sender])
        assert known[sender].verified_at is not None


@pytest.mark.sqlite_alone
@pytest.mark.parametrize(
    ("dmarc", "trusted", "disposition", "override"),
    [
        ("mark", "", "none", "local_policy"),
        ("junk", "", "quarantine", "local_policy"),
        ("reject", "lists.test", "none", "trusted_forwarder"),
    ],
)
async def test_a_message_says_what_was_done_for_a_policy_and_why(
    tmp_path: Path,
    database_url: str,
    clock: FakeClock,
    dmarc: str,
    trusted: str,
    disposition: str,
    override: str,
) -> None:
    more = {"DMARC": dmarc, "TRUSTED_SEALERS": trusted}
    async with refusing(tmp_path, database_url, clock, **more) as (server, _):
        inbox_id = await server.new_inbox("hello")
        raw = forged("bank.test", 1, **OF_LIST)
        assert (await hand_over(server.smtp_port, raw, HERE, sender="owner@lists.test")).startswith("250 ")
        await came(server, 1)
        (shown,) = await messages_of(server, inbox_id)
        (event,) = (await server.api.get("/v1/events?event_types=message.received")).json()["data"]
        stored = await server.resources.db.read(event_log.find, event["event_id"])
        assert stored is not None
        retold = await server.resources.db.read(agentmail_events.render, stored)
        assert [each.kind for each in retold] == ["message.received", "message.received.unauthenticated"]
        auth = shown["auth"]
        assert (auth["policy"], auth["disposition"], auth["override"]) == ("reject", disposition, override)
        assert shown["junk"]["isJunk"] == (disposition == "quarantine")


@pytest.mark.sqlite_alone
async def test_junk_is_refused_only_if_all_its_inboxes_refuse_it_and_content_alone_never_ends_a_talk(
    database_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of_rspamd: list[bytes] = []

    async def rspamd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"Content-Length: ")[2].split()[0])
        asked_of_rspamd.append(head + await reader.readexactly(length))
        writer.write(b'HTTP/1.1 200 OK\r\n\r\n{"score": 3.0}')  # neither junk nor wanted
        writer.close()

    async with (
        service(rspamd) as address,
        refusing(tmp_path, database_url, clock, RSPAMD_URL=f"http://{address}") as (server, _),
    ):
        hello, other = await server.new_inbox("hello"), await server.new_inbox("other")
        junk = {"action": "reject", "threshold": 0.9, "rejectThreshold": 0.95}
        await server.api.patch(f"/v1/inboxes/{hello}", json={"junk": junk})
        there = "other@postroom.localhost"
        for others in ((), ("noreply@postroom.localhost",)):
            answer = await hand_over(server.smtp_port, offer(1), HERE, *others)
            assert answer == "550 5.7.1 Refused as junk"
        assert await messages_of(server, hello, include="junk") == []

        assert (await hand_over(server.smtp_port, offer(2), HERE, there)).startswith("250 ")
        await came(server, 2)
        ((apart,), (marked,)) = (
            await messages_of(server, hello, include="junk"),
            await messages_of(server, other),
        )
        assert (apart["folder"], marked["folder"]) == ("junk", "inbox")
        assert len(asked_of_rspamd) == 2, "once for each email, for all of its inboxes"
        for field in (b"IP: 8.8.4.4", b"Helo: mail.sender.test", b"From: alice@sender.test"):
            assert all(b"\r\n%s\r\n" % field in each for each in asked_of_rspamd)

        sent = await server.api.post(
            f"/v1/inboxes/{hello}/send",
            json={"to": "somebody@elsewhere.example", "subject": "Offer?", "body": "Tell me more."},
            headers={"Idempotency-Key": "3f0a2cf8-57e4-4c0e-9a53-6a0d3f9d7a11"},
        )
        asked = (await server.api.get(f"/v1/messages/{sent.json()['id']}")).json()["rfcMessageId"]
        assert (await hand_over(server.smtp_port, offer(3, in_reply_to=asked), HERE)).startswith("250 ")

        high = {**junk, "rejectThreshold": 1}
        await server.api.patch(f"/v1/inboxes/{hello}", json={"junk": high})
        below = await hand_over(server.smtp_port, offer(4), HERE)
        assert below.startswith("250 "), "below the higher threshold it lies in Junk"
        await server.api.patch(f"/v1/inboxes/{hello}", json={"junk": junk})
        monkeypatch.setattr(refusals, "SECONDS", 0.0)
        assert (await hand_over(server.smtp_port, offer(5), HERE)).startswith("250 ")

        async def all_are_apart() -> bool:
            return len(await messages_of(server, hello, include="junk")) >= 5

        await until(all_are_apart)
        subjects = [each["folder"] for each in await messages_of(server, hello, include="junk")]
        assert subjects.count("junk") == 3
