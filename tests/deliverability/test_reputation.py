"""An inbox whose mail bounces or is complained about is suspended, until a person lifts that."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import DAY
from postroom.config import ConfigError
from postroom.deliverability import reputation
from postroom.deliverability.reputation import Reputation, find_fault
from postroom.deliverability.watch_reputation import look_since
from tests.api.test_dashboard import signed_in
from tests.conftest import Server, running_server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import events_of, message_when, relay_to, send

pytestmark = pytest.mark.sqlite_alone

AT = "there.example"


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def host(database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer) -> AsyncIterator[Server]:
    config = settings(tmp_path, DATABASE_URL=database_url, OUTBOUND=relay_to(peer), SUSPEND_AFTER="4")
    async with running_server(config, clock) as server:
        yield server


async def judged(host: Server) -> None:
    await look_since(host.resources, host.clock.now() - DAY)


async def send_all(host: Server, peer: SmtpPeer, inbox_id: str, *names: str) -> None:
    """Each until it is taken; who is named `bounce` is refused."""
    for name in names:
        if name.startswith("bounce"):
            peer.behaviour["RCPT"] = [b"550 5.1.1 nobody of that name"]
        message_id = await send(host, inbox_id, f"{name}@{AT}")
        wanted = "failed" if name.startswith("bounce") else "sent"
        await has_status(host, message_id, wanted)


async def has_status(host: Server, message_id: str, status: str) -> None:
    await message_when(host, message_id, lambda found: found["status"] == status)


async def pause_of(host: Server, inbox_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await host.api.get("/v1/pause", params={"inboxId": inbox_id})).json()
    return found


async def test_bounces_suspend_an_inbox_and_a_person_lifts_it(host: Server, peer: SmtpPeer) -> None:
    bob, other = await host.new_inbox("bob"), await host.new_inbox("other")
    await send_all(host, peer, other, "ok+1", "ok+2", "ok+3", "ok+4")
    await send_all(host, peer, bob, "ok+1", "ok+2", "bounce+1")
    await judged(host)
    assert not (await pause_of(host, bob))["paused"], "three mails decide nothing"
    await send_all(host, peer, bob, "ok+3")
    await judged(host)
    paused = await pause_of(host, bob)
    assert paused["reason"] == "1 of 4 emails of the last 7 days bounced; the limit is 10 %."
    assert paused["by"]["type"] == "system"
    assert not (await pause_of(host, other))["paused"]
    await judged(host)
    (told,) = await events_of(host, "inbox.suspended")
    assert (told["inbox_id"], told["reason"], told["message"]["id"]) == (bob, paused["reason"], "")
    held = await host.api.get(f"/v1/messages/{await send(host, bob, f'ok+5@{AT}')}")
    assert held.json()["hold"]["state"] == "held"
    async with signed_in(host) as page:
        shown = (await page.get(f"/app/inboxes/{bob}")).text
        assert paused["reason"] in shown
        assert "kind=message.bounced" in shown, "the mails behind it are one click away"
    lifted = await host.api.delete("/v1/pause", params={"inboxId": bob})
    assert lifted.json()["paused"] is False
    (back,) = await events_of(host, "inbox.reactivated")
    assert (back["inbox_id"], back["actor"]["type"]) == (bob, "key")
    host.clock.turn(1)
    await judged(host)
    assert not (await pause_of(host, bob))["paused"], "what happened before counts no more"
    audit = (await host.api.get("/v1/audit", params={"limit": 100})).json()["data"]
    assert {"inbox.suspended", "pause.ended"} <= {entry["action"] for entry in audit}


async def test_what_happened_more_than_a_week_ago_does_not_count(host: Server, peer: SmtpPeer) -> None:
    bob = await host.new_inbox("bob")
    await send_all(host, peer, bob, "bounce+1", "bounce+2", "ok+1", "ok+2")
    now, domain = host.clock.now(), host.resources.config.domain
    assert await host.resources.db.read(reputation.measure, bob, now - DAY, domain) == Reputation(4, 2, 0)
    assert await host.resources.db.read(reputation.measure, bob, now + 1, domain) == Reputation(0, 0, 0)


async def test_what_the_simulator_refuses_suspends_nobody(host: Server) -> None:
    bob, domain = await host.new_inbox("bob"), host.resources.config.domain
    for name, status in (("bounce", "failed"), ("ok", "sent"), ("complaint", "sent")):
        message_id = await send(host, bob, f"{name}@simulator.{domain}")
        await has_status(host, message_id, status)
    since = host.clock.now() - DAY
    assert await host.resources.db.read(reputation.list_harmed, since) == [bob]
    assert await host.resources.db.read(reputation.measure, bob, since, domain) == Reputation(0, 0, 0)


def test_the_limits_are_settings_and_zero_switches_one_off(tmp_path: Path) -> None:
    usual = settings(tmp_path)
    assert find_fault(Reputation(49, 49, 49), usual) is None
    assert find_fault(Reputation(100, 10, 1), usual) is None, "up to the limit"
    assert "bounced" in (find_fault(Reputation(100, 11, 0), usual) or "")
    assert "reported as spam" in (find_fault(Reputation(100, 0, 2), usual) or "")
    off = settings(tmp_path, SUSPEND_BOUNCES="0", SUSPEND_COMPLAINTS="0.3")
    assert find_fault(Reputation(100, 100, 0), off) is None
    assert "0.3 %" in (find_fault(Reputation(100, 0, 1), off) or "")
    for wrong in ("-1", "101", "nan", "a"):
        with pytest.raises(ConfigError):
            settings(tmp_path, SUSPEND_BOUNCES=wrong)
