"""Where webhooks may lead when private networks are closed, and what a dead endpoint holds up: nothing."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom import ids
from postroom.accounts import accounts, keys
from postroom.assembly import serving
from postroom.couriers import webhook
from postroom.net.dns import Resolver
from postroom.storage.database import Tx
from tests.api.endpoint import Endpoint, running_endpoint
from tests.api.test_stream import mail
from tests.api.test_webhooks import deliveries, set_webhook, until_state
from tests.conftest import Server, api_client, settings
from tests.couriers.test_target import BAD_EVERYWHERE, PRIVATE_SPELLINGS, TurnedTime
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer
from tests.mail.keys import signing_key

PUBLIC_IP, METADATA_IP = "93.184.216.34", "169.254.169.254"
BACKLOG = 150


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No post is over because the machine is busy, and one to a dead endpoint outlasts its test."""
    patient = partial(webhook.WebhookLimits, deadline_seconds=600, connect_seconds=120)
    monkeypatch.setattr(webhook, "WebhookLimits", patient)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running_endpoint() as peer:
        yield peer


@pytest.fixture
async def dns() -> AsyncIterator[DnsServer]:
    async with DnsServer({("hook.example", "A"): [PUBLIC_IP]}) as running:
        yield running


@pytest.fixture
def resolver_time() -> TurnedTime:
    return TurnedTime()


@pytest.fixture
async def closed_server(
    tmp_path: Path, dns: DnsServer, clock: FakeClock, resolver_time: TurnedTime
) -> AsyncIterator[Server]:
    """A server that may not call private networks, with a DNS of its own."""
    config = settings(tmp_path, ALLOW_PRIVATE_WEBHOOKS="off")
    resolver = Resolver([dns.address], deadline_seconds=60, monotonic=resolver_time)
    async with serving(config, clock, resolver, signing_key) as postroom:
        assert postroom.first_token is not None
        async with api_client(postroom.resources.config.base_url, postroom.first_token) as api:
            yield Server(postroom.resources, api, postroom.first_token, clock, postroom.smtp_port)


def is_refused(answer: httpx2.Response) -> bool:
    return (answer.status_code, answer.json()["error"]) == (422, "invalid_webhook_url")


@pytest.mark.sqlite_alone
async def test_private_ranges_are_refused_in_every_spelling_and_bad_urls_too(closed_server: Server) -> None:
    inbox = f"/v1/inboxes/{await closed_server.new_inbox('hello')}"
    urls = [f"{scheme}://{host}/" for host in PRIVATE_SPELLINGS for scheme in ("http", "https")]
    for url in urls + [url for url in BAD_EVERYWHERE if url.isascii()]:
        assert is_refused(await closed_server.api.put("/v1/webhook", json={"url": url})), url
        assert is_refused(await closed_server.api.patch(inbox, json={"webhookUrl": url})), url
    assert (await closed_server.api.get("/v1/webhook")).status_code == 404
    assert (await closed_server.api.get(inbox)).json()["webhookUrl"] is None


@pytest.mark.sqlite_alone
async def test_a_name_that_leads_inside_is_refused(closed_server: Server, dns: DnsServer) -> None:
    dns.records["inside.example", "A"] = [PUBLIC_IP, METADATA_IP]
    dns.records["alias.example", "CNAME"] = ["inside.example."]
    dns.records["six.example", "AAAA"] = ["::ffff:127.0.0.1"]
    for host in ("inside.example", "alias.example", "six.example", "nobody.example"):
        answer = await closed_server.api.put("/v1/webhook", json={"url": f"https://{host}/"})
        assert is_refused(answer), host
    assert (await set_webhook(closed_server, "https://hook.example/"))["enabled"]


@pytest.mark.sqlite_alone
async def test_a_name_that_turns_private_later_is_refused_at_delivery_and_recorded(
    closed_server: Server, dns: DnsServer, endpoint: Endpoint, resolver_time: TurnedTime
) -> None:
    await closed_server.new_inbox("hello")
    port = endpoint.url.rpartition(":")[2].partition("/")[0]
    await set_webhook(closed_server, f"http://hook.example:{port}/hook")
    dns.records["hook.example", "A"] = ["127.0.0.1"]
    resolver_time.seconds += 3600
    await closed_server.deliver(mail(1), "hello")
    failed = await until_state(closed_server, "failed")
    (attempt,) = failed["attempts"]
    assert attempt["status"] is None
    assert "not public" in attempt["answer"]
    test = await closed_server.api.post("/v1/webhook/test")
    assert (test.status_code, test.json()["error"]) == (502, "webhook_failed")
    assert endpoint.requests == []


@pytest.mark.sqlite_alone
async def test_a_name_that_lost_its_address_is_tried_again(
    closed_server: Server, dns: DnsServer, resolver_time: TurnedTime
) -> None:
    await closed_server.new_inbox("hello")
    await set_webhook(closed_server, "http://hook.example/")
    del dns.records["hook.example", "A"]
    resolver_time.seconds += 3600
    await closed_server.deliver(mail(1), "hello")
    waiting = await until_attempted(closed_server)
    assert waiting["state"] == "pending"
    assert "no address" in waiting["attempts"][0]["answer"]


async def until_attempted(server: Server) -> dict[str, Any]:
    async with asyncio.timeout(120):
        while True:
            for delivery in await deliveries(server):
                if any(attempt["milliseconds"] is not None for attempt in delivery["attempts"]):
                    return delivery
            await asyncio.sleep(0.05)


def add_backlog(tx: Tx, count: int, now: int) -> None:
    """As many more deliveries as the one that is there, all due."""
    for _ in range(count):
        tx.run(
            "insert into deliveries (id, account_id, inbox_id, kind, message_id, event_id, target, lane,"
            " position, webhook_owner, is_cold, state, attempts, waits_used, due_at, last_reply, created_at)"
            " select :id, account_id, inbox_id, kind, message_id, event_id, target, lane, position,"
            " webhook_owner, 0, 'pending', 0, 0, :due_at, '', created_at from deliveries limit 1",
            id=ids.new(ids.WEBHOOK_DELIVERY, now),
            due_at=now - 1000,
        )


async def patch_webhook(server: Server, inbox_id: str, url: str) -> dict[str, Any]:
    changed: dict[str, Any] = (
        await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"webhookUrl": url})
    ).json()
    return changed


@pytest.mark.sqlite_alone
async def test_a_dead_endpoint_with_a_long_backlog_delays_no_other(
    server: Server, endpoint: Endpoint
) -> None:
    await patch_webhook(server, await server.new_inbox("dead"), endpoint.dead_url)
    async with running_endpoint() as living:
        await patch_webhook(server, await server.new_inbox("living"), living.url)
        await server.deliver(mail(1, "dead"), "dead")
        await endpoint.wait_until_unanswered(1)
        await server.resources.db.write(add_backlog, BACKLOG, server.clock.now())
        await server.deliver(mail(2, "living"), "living")
        await living.wait_for(1)
    attempts = [attempt for delivery in await deliveries(server) for attempt in delivery["attempts"]]
    finished = {attempt["status"] for attempt in attempts if attempt["milliseconds"] is not None}
    assert finished <= {200}  # of the dead ones not one is over


async def test_a_dead_endpoint_of_one_account_delays_no_other_account_at_the_same_host(
    server: Server, endpoint: Endpoint
) -> None:
    await server.new_inbox("dead")
    await set_webhook(server, endpoint.dead_url)
    token = await server.resources.db.write(add_account, server.clock.now())
    async with server.client(token) as api:
        other = Server(server.resources, api, token, server.clock, server.smtp_port)
        await other.new_inbox("living")
        await set_webhook(other, endpoint.url)
        await server.deliver(mail(1, "dead"), "dead")
        await endpoint.wait_until_unanswered(1)
        await server.resources.db.write(add_backlog, BACKLOG, server.clock.now())
        await server.deliver(mail(2, "living"), "living")
        await endpoint.wait_for(1)


def add_account(tx: Tx, now: int) -> str:
    account = accounts.add(tx, "other", "free", now)
    token = keys.new_token()
    keys.add(tx, account.id, None, "first key", token, now)
    return token
