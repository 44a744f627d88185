"""Forged authors where the peer proves nothing: private addresses, connected mailboxes, provider posts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.inward.mails import UNKNOWN_PEER, Arrival, Destination, Origin
from postroom.inward.receive import OwnReader, receive_mail
from postroom_mail.mime import headers
from tests.api.test_policy import allow
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer, asks_once
from tests.raw_mails import raw_mail

POLICY = ["v=DMARC1; p=none"]


@pytest.fixture
async def names() -> AsyncIterator[DnsServer]:
    records = {("_dmarc.bank.example", "TXT"): POLICY, ("_dmarc.bank.com", "TXT"): POLICY}
    async with DnsServer(records) as dns:
        yield dns


@pytest.fixture
async def server(
    names: DnsServer, database_url: str, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path, DATABASE_URL=database_url), clock, asks_once(names)) as one:
        yield one


async def hand_in(server: Server, inbox_id: str, sender: str, peer: str = UNKNOWN_PEER) -> None:
    raw = raw_mail("Pay 500", **{"from": sender})
    origin = Origin((Destination(inbox_id),), b"", peer, "", sender)
    await receive_mail(server.resources, OwnReader(10_000), Arrival(origin, raw))


async def last_of(server: Server, number: int) -> tuple[str, str]:
    """Kind of the event with this number, and what DMARC says of its message."""
    after = None
    for _ in range(number):
        event = await server.next_event(after)
        after = event["event_id"]
    return event["event"], event["message"]["auth"]["dmarc"]


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("peer", [UNKNOWN_PEER, "10.0.0.7", "127.0.0.1"])
async def test_unsigned_mail_of_a_domain_with_a_policy_fails_whatever_the_peer(
    server: Server, peer: str
) -> None:
    inbox_id = await server.new_inbox("hello")
    await hand_in(server, inbox_id, "ceo@bank.com", peer)
    assert await last_of(server, 1) == ("message.received", "fail")
    await hand_in(server, inbox_id, "ceo@shop.com", peer)
    assert await last_of(server, 2) == ("message.received", "none")


@pytest.mark.sqlite_alone
async def test_forged_mail_meets_no_allow_rule(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await allow(server, "inbound", "bank.example", "shop.example", inboxId=inbox_id)
    await server.deliver(raw_mail(**{"from": "ceo@bank.example"}), "hello")
    assert await last_of(server, 1) == ("message.blocked", "fail")
    await hand_in(server, inbox_id, "ceo@bank.example")
    assert await last_of(server, 2) == ("message.blocked", "fail")
    await server.deliver(raw_mail(**{"from": "ann@shop.example"}), "hello")
    assert await last_of(server, 3) == ("message.received", "none")


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("peer", [UNKNOWN_PEER, "10.0.0.7"])
async def test_a_sender_of_several_domains_is_an_error_and_makes_nobody_known(
    server: Server, peer: str
) -> None:
    """Also of domains that nobody can own, which are not asked for: a mail client may show either of them."""
    inbox_id = await server.new_inbox("hello")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["strangers"]}})
    await hand_in(server, inbox_id, "ceo@office.example, eve@outside.test", peer)
    assert await last_of(server, 1) == ("message.received", "permerror")
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send",
        json={"to": "ceo@office.example", "subject": "Hello", "body": "Hello"},
        headers={"Idempotency-Key": "1"},
    )
    assert answer.json()["hold"]["reasons"] == ["strangers"]


@pytest.mark.sqlite_alone
async def test_mail_that_cannot_be_judged_meets_no_allow_rule(server: Server, names: DnsServer) -> None:
    inbox_id = await server.new_inbox("hello")
    await allow(server, "inbound", "bank.example", "other.example", inboxId=inbox_id)
    many = b"X: y\r\n" * (headers.MAX_FIELDS - 100)
    longer = b"X-Long: " + b"y" * 600_000 + b"\r\n"
    await server.deliver(longer + many + raw_mail(**{"from": "ceo@bank.example"}), "hello")
    assert await last_of(server, 1) == ("message.blocked", "permerror")
    names.servfail.add("_dmarc.other.example")
    await server.deliver(raw_mail(**{"from": "ceo@other.example"}), "hello")
    assert await last_of(server, 2) == ("message.blocked", "temperror")


@pytest.mark.sqlite_alone
async def test_a_domain_that_is_known_to_have_no_policy_is_not_asked_again(
    server: Server, names: DnsServer
) -> None:
    inbox_id = await server.new_inbox("hello")
    for number in (1, 2, 3):
        await hand_in(server, inbox_id, "ann@shop.com", "10.0.0.7")
        assert await last_of(server, number) == ("message.received", "none")
    assert names.queries[("_dmarc.shop.com", "TXT")] == 1
