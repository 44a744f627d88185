"""A provider that asks for less gets less, a new domain begins with little, and all of it is counted."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from postroom.accounts.domains import SERVICE_ID
from postroom.clock import DAY, HOUR, MINUTE, SECOND
from postroom.couriers.mail import SmtpCourier
from postroom.external_mailboxes.connections import WayOut
from postroom.net.dns import Resolver
from postroom.outward.delivering.receivers import Receivers
from postroom.queue.providers import paces
from postroom.queue.providers.names import provider_of
from postroom.queue.providers.paces import PaceRules
from postroom.storage.database import Database
from tests.couriers.certificates import make_certificate, server_context
from tests.couriers.smtp_peer import SmtpPeer, Stage
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer
from tests.outbound import PATIENCE_SECONDS
from tests.samples import samples
from tests.stepped import House, stepped

ZONE = {
    ("here.example", "MX"): ["10 mx1.big.example."],
    ("there.example", "MX"): ["20 other.example.", "10 mx2.big.example."],
    ("elsewhere.example", "MX"): ["10 mx.small.example."],
}
RULES = PaceRules(seconds=1, growth_percent=100, longest_seconds=300, recovery_percent=50)


@pytest.fixture
async def house(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[House]:
    """Its mail goes by MX; two domains share a provider."""
    limits = {"WARM_UP_MAILS": "2", "WARM_UP_GROWTH": "100", "WARM_UP_DAYS": "3", "PACE_RECOVERY": "50"}
    async with (
        DnsServer(ZONE) as dns,
        stepped(tmp_path, database_url, clock, SENDS_PER_MINUTE="0", COLD_PER_DAY="0", **limits) as house,
    ):
        resolver = Resolver([dns.address], deadline_seconds=PATIENCE_SECONDS)
        yield replace(house, outbound=structs.replace(house.outbound, receivers=Receivers(resolver, "mx")))
        await resolver.close()


async def waiting_for(house: House, message_id: str) -> str:
    (recipient,) = (await house.message(message_id))["recipients"]
    assert recipient["state"] == "pending"
    reply: str = recipient["lastReply"]
    return reply


async def figures(house: House, days: int = 1) -> dict[str, Any]:
    answer = await house.api.get("/v1/deliverability", params={"days": days})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def actions(house: House) -> list[str]:
    page = (await house.api.get("/v1/audit", params={"limit": 100})).json()["data"]
    return [entry["action"] for entry in reversed(page)]


@pytest.mark.sqlite_alone
@samples(
    ("host", "provider"),
    [
        ("aspmx.l.google.com", "google.com"),
        ("MX1.example.co.uk.", "example.co.uk"),
        ("mx.example.de", "example.de"),
        ("localhost", "localhost"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_a_provider_has_the_name_that_was_registered(host: str, provider: str) -> None:
    assert provider_of(host) == provider


@pytest.mark.sqlite_alone
async def test_the_provider_is_that_of_the_first_mx_or_of_the_relay() -> None:
    async with DnsServer(ZONE) as dns:
        dns.servfail.add("broken.example")
        resolver = Resolver([dns.address], deadline_seconds=PATIENCE_SECONDS)
        by_mx, through = Receivers(resolver, "mx"), Receivers(resolver, "smtp://relay.our.example:25 mx")
        assert (await by_mx.find("There.example", WayOut())).provider == "big.example"
        assert (await by_mx.find("mail.lonely.example", WayOut())).provider == "lonely.example"
        assert (await by_mx.find("broken.example", WayOut())).provider == "broken.example"
        assert (await through.find("there.example", WayOut())).provider == "our.example"
        named = await by_mx.find("there.example", WayOut("smtp://mail.tenant.example:25"))
        assert (named.provider, named.is_relay) == ("tenant.example", True)
        assert (await Receivers(resolver, "capture").find("there.example", WayOut())).provider == ""
        await resolver.close()


async def test_a_provider_that_defers_is_slowed_for_all_its_domains_and_recovers(house: House) -> None:
    bob = await house.inbox("bob")
    house.sink.mood, house.sink.host = "defers", "mx2.big.example"
    await house.send(bob, "a@here.example")
    await house.step()
    house.sink.mood = "takes"
    second = (await house.send(bob, "b@there.example"))["id"]
    other = (await house.send(bob, "c@elsewhere.example"))["id"]
    await house.step()
    assert "big.example asks for less" in await waiting_for(house, second)
    assert (await house.message(second))["recipients"][0]["attempts"] == 0, "nothing was tried"
    assert (await house.message(other))["status"] == "sent", "another provider is none of this"
    shown = {each["provider"]: each for each in (await figures(house))["data"]}
    assert (shown["big.example"]["deferred"], shown["big.example"]["pace"]["secondsBetween"]) == (1, 1.0)
    assert shown["small.example"]["pace"] is None
    await house.step(SECOND)
    assert (await house.message(second))["status"] == "sent"
    for number in range(4):
        await house.send(bob, f"d{number}@here.example")
    await house.step(5 * MINUTE)
    for _ in range(20):
        await house.step(SECOND)
    assert len(house.sink.mails) == 7, "all has gone"
    shown = {each["provider"]: each for each in (await figures(house))["data"]}
    assert (shown["big.example"]["accepted"], shown["big.example"]["pace"]) == (6, None)
    happened = [each for each in await actions(house) if each.startswith("provider.")]
    assert happened == ["provider.slowed", "provider.recovered"]


@pytest.mark.sqlite_alone
async def test_a_receiver_that_defers_on_plan_gets_its_mail_slowly_then_fully_and_each_once(
    house: House, tmp_path: Path
) -> None:
    """A real one, in the words of RFC 5321; a domain that warms up, so that both limits hold at once."""
    await warm_up(house)
    bob = await house.inbox("bob")
    plan: dict[Stage, bytes | list[bytes]] = {
        "greeting": [b"421 4.7.0 too many connections"],
        "RCPT": [b"451 4.7.1 try again later"] * 2,
        "dot": [b"451 4.3.0 busy"],
    }
    tls = server_context(make_certificate(tmp_path, "mx1.big.example"))
    zone = {("mx1.big.example", "A"): ["127.0.0.1"], **ZONE}
    async with SmtpPeer(plan, tls=tls) as peer, DnsServer(zone) as dns:
        resolver = Resolver([dns.address], deadline_seconds=PATIENCE_SECONDS)
        courier = SmtpCourier(resolver, own_name="here.example", allow_private=True, port=peer.port)
        real = replace(house, outbound=structs.replace(house.outbound, courier=courier))
        sent = [(await house.send(bob, f"p{number}@here.example"))["id"] for number in range(8)]
        await real.step()
        assert (peer.mails, peer.connections) == ([], 1), "the first 421 spares it the others"
        arrived = []
        for _ in range(3):
            for _ in range(40):
                await real.step(30 * SECOND)
            arrived.append(len(peer.mails))
            house.clock.turn(DAY)
        assert arrived == [2, 6, 8], "what was deferred counts in no day"
        assert sorted(mail.rcpt_line for mail in peer.mails) == [
            f"RCPT TO:<p{number}@here.example>".encode() for number in range(8)
        ]
        assert {(await house.message(each))["status"] for each in sent} == {"sent"}
        await courier.close()
        await resolver.close()
    assert await house.resources.db.read(paces.find, "big.example") is None
    (big,) = (await figures(house, 7))["data"]
    assert (big["accepted"], big["tls"], big["deferred"]) == (8, 8, 4)
    happened = [each for each in await actions(house) if each.startswith("provider.")]
    assert (happened[0], happened[-1]) == ("provider.slowed", "provider.recovered")


@pytest.mark.sqlite_alone
async def test_no_stranger_slows_a_provider_by_naming_its_server_before_his_own(house: House) -> None:
    bob = await house.inbox("bob")
    house.sink.mood, house.sink.host = "defers", "mx.stranger.example"
    await house.send(bob, "a@here.example")
    await house.step()
    assert await house.resources.db.read(paces.find, "big.example") is None
    shown = {each["provider"]: each for each in (await figures(house))["data"]}
    assert (shown["big.example"]["deferred"], shown["big.example"]["pace"]) == (1, None)


async def test_each_further_deferral_makes_the_wait_longer_up_to_the_longest(db: Database) -> None:
    start = 1_000_000
    assert await db.write(paces.slow_down, "p", start, RULES, start)
    assert not await db.write(paces.slow_down, "p", start - 1, RULES, start + 5), "it was under way before"
    for now, seconds in ((start + SECOND, 2), (start + 2 * SECOND, 4)):
        await db.write(paces.slow_down, "p", now, RULES, now)
        pace = await db.read(paces.find, "p")
        assert pace is not None
        assert (pace.interval_ms, pace.next_at) == (seconds * SECOND, now + seconds * SECOND)
    for number in range(10):
        await db.write(paces.slow_down, "p", start + HOUR + number, RULES, start + HOUR + number)
    pace = await db.read(paces.find, "p")
    assert pace is not None
    assert pace.interval_ms == 300 * SECOND
    assert not await db.write(paces.slow_down, "q", start, PaceRules(), start)
    assert await db.read(paces.find, "q") is None, "0 seconds: nobody is slowed"


@pytest.mark.sqlite_alone
async def test_what_waits_for_its_turn_is_spread_out_and_asked_again(db: Database) -> None:
    start = 1_000_000
    await db.write(paces.slow_down, "p", start, RULES, start)
    due = [await db.write(paces.take_turn, "p", start) for _ in range(3)]
    assert due == [start + SECOND, start + 2 * SECOND, start + 3 * SECOND]
    assert await db.write(paces.take_turn, "p", start + SECOND) is None
    assert await db.write(paces.take_turn, "p", start + SECOND) is not None, "one a second"
    times = paces.WINDOW // SECOND + 10
    asked = await db.write(lambda tx: [paces.take_turn(tx, "p", start + SECOND) for _ in range(times)])
    assert all(found is not None and found <= start + SECOND + paces.WINDOW for found in asked)
    assert await db.write(paces.take_turn, "unknown", start) is None


@pytest.mark.sqlite_alone
async def test_a_relay_is_counted_and_not_slowed(house: House) -> None:
    receivers = Receivers(house.resources.resolver, "smtp://relay.our.example:25")
    house = replace(house, outbound=structs.replace(house.outbound, receivers=receivers))
    bob = await house.inbox("bob")
    house.sink.mood = "defers"
    await house.send(bob, "a@here.example")
    await house.step()
    (shown,) = (await figures(house))["data"]
    assert (shown["provider"], shown["deferred"], shown["pace"]) == ("our.example", 1, None)


async def warm_up(house: House, is_on: bool = True) -> None:
    answer = await house.api.patch(f"/v1/domains/{SERVICE_ID}", json={"warmUp": is_on})
    assert answer.status_code == 200, answer.text
    assert answer.json()["warmUp"] is is_on


@pytest.mark.sqlite_alone
async def test_a_domain_that_warms_up_sends_more_each_day_and_the_rest_waits(house: House) -> None:
    await warm_up(house)
    bob = await house.inbox("bob")
    sent = [(await house.send(bob, f"p{number}@there.example"))["id"] for number in range(8)]
    await house.step()
    assert len(house.sink.mails) == 2
    other = (await house.send(bob, "q@elsewhere.example"))["id"]
    await house.step()
    assert (await house.message(other))["status"] == "sent", "each provider has a limit of its own"
    waiting = [each for each in sent if (await house.message(each))["status"] == "pending"]
    assert "2 emails to big.example were sent today, so this one waits until tomorrow" in await waiting_for(
        house, waiting[0]
    )
    (big, small) = (await figures(house))["warmUps"]
    assert (big["provider"], big["day"], big["limit"], big["used"]) == ("big.example", 1, 2, 2)
    assert (small["provider"], small["used"]) == ("small.example", 1)
    await house.step(DAY)
    assert len(house.sink.mails) == 2 + 1 + 4
    await house.step(DAY)
    assert len(house.sink.mails) == 2 + 1 + 4 + 2, "the third day takes the rest"
    assert [(await house.message(each))["status"] for each in sent] == ["sent"] * 8
    assert (await actions(house)).count("domain.warm_up_limit") == 2, "once a day"


@pytest.mark.sqlite_alone
async def test_what_waits_goes_when_the_warm_up_ends(house: House) -> None:
    await warm_up(house)
    bob = await house.inbox("bob")
    for number in range(4):
        await house.send(bob, f"p{number}@there.example")
    await house.step()
    assert len(house.sink.mails) == 2
    await warm_up(house, is_on=False)
    await house.step()
    assert len(house.sink.mails) == 4
    assert (await figures(house))["warmUps"] == []
    assert {"domain.warm_up_begun", "domain.warm_up_ended"} <= set(await actions(house))


async def test_a_deferred_mail_gives_its_place_of_the_day_back(house: House) -> None:
    await warm_up(house)
    bob = await house.inbox("bob")
    house.sink.mood = "defers"
    await house.send(bob, "p0@there.example")
    await house.step()
    (shown,) = (await figures(house))["warmUps"]
    assert shown["used"] == 0


@pytest.mark.sqlite_alone
async def test_a_domain_that_is_not_proved_cannot_be_warmed_up(house: House) -> None:
    added = (await house.api.post("/v1/domains", json={"domain": "mine.example"})).json()
    assert added["warmUp"] is False
    refused = await house.api.patch(f"/v1/domains/{added['id']}", json={"warmUp": True})
    assert (refused.status_code, refused.json()["error"]) == (400, "bad_request")


@pytest.mark.sqlite_alone
async def test_the_figures_of_a_provider(house: House) -> None:
    bob = await house.inbox("bob")
    await house.send(bob, "a@there.example")
    await house.step()
    house.sink.mood = "refuses"
    await house.send(bob, "b@there.example")
    await house.step()
    house.sink.mood = "defers"
    await house.send(bob, "c@elsewhere.example")
    await house.step()
    house.sink.mood = "takes"
    await house.step(2 * MINUTE)
    big, small = (await figures(house))["data"]
    assert (big["provider"], big["accepted"], big["bounced"], big["deferred"]) == ("big.example", 1, 1, 0)
    assert (big["tls"], big["complained"], big["secondsToAccept"]) == (0, 0, 0.0)
    assert (small["provider"], small["accepted"], small["deferred"]) == ("small.example", 1, 1)
    assert small["secondsToAccept"] == 120.0, "from the first attempt"
    house.clock.turn(2 * DAY)
    assert (await figures(house))["data"] == []
    assert len((await figures(house, 7))["data"]) == 2
    assert (await house.api.get("/v1/deliverability", params={"days": 2})).status_code == 400
