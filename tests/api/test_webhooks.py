"""Webhooks: set over REST, posted to a real endpoint, signed over the exact bytes."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroom.clock import DAY
from postroom.events import event_log, webhooks
from tests.api.endpoint import Endpoint, running_endpoint
from tests.api.test_stream import mail
from tests.conftest import Server, until_somebody_listens

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running_endpoint() as peer:
        yield peer


def signature(secret: str, headers: dict[str, str], body: bytes) -> str:
    signed = headers["x-timestamp"].encode() + b"." + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


async def set_webhook(server: Server, url: str, **fields: Any) -> dict[str, Any]:
    answer = await server.api.put("/v1/webhook", json={"url": url, **fields})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def deliveries(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.api.get("/v1/webhook/deliveries")).json()["data"]
    return found


async def until_answered(server: Server, number: int) -> dict[str, Any]:
    """The newest delivery, once so many of its attempts have their answer."""
    async with asyncio.timeout(120):
        while True:
            found = (await deliveries(server))[0]
            if len([attempt for attempt in found["attempts"] if attempt["status"]]) >= number:
                return found
            await asyncio.sleep(0.05)


async def until_state(server: Server, state: str) -> dict[str, Any]:
    async with asyncio.timeout(120):
        while (found := (await deliveries(server))[0])["state"] != state:
            await asyncio.sleep(0.05)
    return found


async def test_the_body_is_the_stored_event_and_the_signature_is_over_it(
    server: Server, endpoint: Endpoint
) -> None:
    await server.new_inbox("hello")
    webhook = await set_webhook(server, endpoint.url)
    assert webhook["eventTypes"] == ["message.received"]
    await server.deliver(mail(1), "hello")
    await endpoint.wait_for(1)
    headers, body = endpoint.requests[0]
    assert headers["x-signature"] == signature(webhook["secret"], headers, body)
    event = await server.next_event()
    stored = await server.resources.db.read(event_log.find, event["event_id"])
    assert stored is not None
    assert body == stored.payload
    assert headers["x-event-id"] == event["event_id"]
    delivered = await until_state(server, "delivered")
    (attempt,) = delivered["attempts"]
    assert (attempt["status"], attempt["answer"]) == (200, "ok")


async def test_the_secret_is_shown_once_and_after_a_rotation_both_are_valid_for_a_day(
    server: Server, endpoint: Endpoint
) -> None:
    await server.new_inbox("hello")
    first = (await set_webhook(server, endpoint.url))["secret"]
    assert "secret" not in (await server.api.get("/v1/webhook")).json()
    assert "secret" not in await set_webhook(server, endpoint.url)
    second = (await server.api.post("/v1/webhook/rotate-secret")).json()["secret"]
    assert second != first
    endpoint.answers = [b"401 Unauthorized"]
    await server.deliver(mail(1), "hello")
    await endpoint.wait_for(2)
    (new_headers, body), (old_headers, again) = endpoint.requests
    assert body == again
    assert new_headers["x-signature"] == signature(second, new_headers, body)
    assert old_headers["x-signature"] == signature(first, old_headers, body)
    await until_state(server, "delivered")
    server.clock.turn(DAY)
    endpoint.answers = [b"401 Unauthorized"]
    await server.deliver(mail(2), "hello")
    await until_answered(server, 1)
    assert len(endpoint.requests) == 3


async def test_a_put_without_a_secret_leaves_the_one_before_valid(server: Server, endpoint: Endpoint) -> None:
    await server.new_inbox("hello")
    first = (await set_webhook(server, endpoint.url))["secret"]
    await server.api.post("/v1/webhook/rotate-secret")
    await set_webhook(server, endpoint.url, eventTypes=["message.received", "message.sent"])
    endpoint.answers = [b"401 Unauthorized"]
    await server.deliver(mail(1), "hello")
    await endpoint.wait_for(2)
    headers, body = endpoint.requests[1]
    assert headers["x-signature"] == signature(first, headers, body)


async def test_a_failure_that_was_under_way_does_not_undo_a_success(server: Server) -> None:
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    await set_webhook(server, "http://127.0.0.1:9/hook")
    db, now = server.resources.db, server.clock.now()
    before = await db.read(webhooks.get, account_id)
    await db.write(webhooks.record_failure, before, False, now)
    failing = await db.read(webhooks.get, account_id)
    await db.write(webhooks.record_success, before)
    await db.write(webhooks.record_failure, failing, False, now + 5 * DAY)
    after = await db.read(webhooks.get, account_id)
    assert (after.enabled, after.failing_since) == (True, now + 5 * DAY)


async def test_an_inbox_of_its_own_webhook_is_signed_with_its_own_secret(
    server: Server, endpoint: Endpoint
) -> None:
    inbox_id = await server.new_inbox("hello")
    await set_webhook(server, "http://127.0.0.1:9/account")
    path = f"/v1/inboxes/{inbox_id}"
    changed = (await server.api.patch(path, json={"webhookUrl": endpoint.url})).json()
    assert changed["webhookUrl"] == endpoint.url
    assert "webhookSecret" not in (await server.api.get(path)).json()
    await server.deliver(mail(1), "hello")
    await endpoint.wait_for(1)
    headers, body = endpoint.requests[0]
    assert headers["x-signature"] == signature(changed["webhookSecret"], headers, body)
    cleared = (await server.api.patch(path, json={"webhookUrl": None})).json()
    assert cleared["webhookUrl"] is None


async def test_a_failure_is_tried_again_and_can_be_sent_by_hand(server: Server, endpoint: Endpoint) -> None:
    await server.new_inbox("hello")
    await set_webhook(server, endpoint.url)
    endpoint.answers = [b"500 Oops", b"503 Busy"]
    await server.deliver(mail(1), "hello")
    await until_answered(server, 1)  # from then on it waits for its next moment
    server.clock.turn(6_500)
    await endpoint.wait_for(2)
    waiting = await until_answered(server, 2)
    assert [attempt["status"] for attempt in waiting["attempts"]] == [500, 503]
    again = await server.api.post(f"/v1/webhook/deliveries/{waiting['id']}/retry")
    assert again.status_code == 200
    await endpoint.wait_for(3)
    assert (await until_state(server, "delivered"))["attempts"][2]["status"] == 200
    assert len({body for _, body in endpoint.requests}) == 1


async def test_410_disables_the_endpoint_with_a_reason_and_put_enables_it(
    server: Server, endpoint: Endpoint
) -> None:
    await server.new_inbox("hello")
    await set_webhook(server, endpoint.url)
    endpoint.answers = [b"410 Gone"]
    await server.deliver(mail(1), "hello")
    await until_state(server, "failed")
    shown = (await server.api.get("/v1/webhook")).json()
    assert (shown["enabled"], shown["disabledReason"]) == (False, "The endpoint answered 410 Gone.")
    await server.deliver(mail(2), "hello")
    await set_webhook(server, endpoint.url)
    since = {"since": "2026-01-01T00:00:00Z"}
    assert (await server.api.post("/v1/webhook/deliveries/retry", json=since)).json() == {"retried": 1}
    await endpoint.wait_for(2)


async def test_five_days_of_failure_disable_the_endpoint(server: Server, endpoint: Endpoint) -> None:
    await server.new_inbox("hello")
    await set_webhook(server, endpoint.url)
    endpoint.answers = [b"500 Oops"] * 20
    await server.deliver(mail(1), "hello")
    await until_answered(server, 1)
    server.clock.turn(5 * DAY)
    await server.deliver(mail(2), "hello")
    async with asyncio.timeout(120):
        while (await server.api.get("/v1/webhook")).json()["enabled"]:
            await asyncio.sleep(0.05)
    assert "five days" in (await server.api.get("/v1/webhook")).json()["disabledReason"]


async def test_the_test_call_posts_a_signed_event_now(server: Server, endpoint: Endpoint) -> None:
    assert (await server.api.post("/v1/webhook/test")).json()["error"] == "no_webhook_url"
    secret = (await set_webhook(server, endpoint.url))["secret"]
    answer = (await server.api.post("/v1/webhook/test")).json()
    assert (answer["ok"], answer["status"]) == (True, 200)
    headers, body = endpoint.requests[0]
    assert b'"event":"webhook.test"' in body
    assert headers["x-signature"] == signature(secret, headers, body)
    endpoint.answers = [b"500 Oops"]
    failed = await server.api.post("/v1/webhook/test")
    assert (failed.status_code, failed.json()["error"]) == (502, "webhook_failed")


async def test_a_bad_url_is_refused(server: Server) -> None:
    for url in (
        "ftp://x",
        "nonsense",
        "http://user:password@example.com/",
        "http://",
        "file:///etc/passwd",
        "",
    ):
        answer = await server.api.put("/v1/webhook", json={"url": url})
        assert (answer.status_code, answer.json()["error"]) == (422, "invalid_webhook_url"), url
    assert (await server.api.get("/v1/webhook")).status_code == 404


async def test_waiting_gives_the_first_message_that_matches(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    path = f"/v1/inboxes/{inbox_id}/wait"
    nothing = await server.api.get(path, params={"timeout": "0.1"})
    assert (nothing.status_code, nothing.content) == (204, b"")
    waiting = asyncio.create_task(
        server.api.get(path, params={"timeout": "60", "subject": "mail 2"}, timeout=120)
    )
    await until_somebody_listens(server)
    await server.deliver(mail(1), "hello")
    await server.deliver(mail(2), "hello")
    message = (await waiting).json()
    assert message["subject"] == "Mail 2"
    first = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=1&offset=1")).json()["data"][0]
    after = await server.api.get(path, params={"after": first["id"], "from": "ALICE@example.com"})
    assert after.json()["id"] == message["id"]
    assert (await server.api.get(path, params={"after": "evt_unknown"})).status_code == 404
    assert (await server.api.get(path, params={"timeout": "500"})).status_code == 400
