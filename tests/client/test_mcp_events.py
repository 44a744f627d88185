"""MCP Events: an agent subscribes to events that match a search, and its endpoint gets them, signed."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import DAY
from postroom.events.webhook_signature import standard_headers
from postroom.upkeep.upkeep_loop import one_round
from tests.api.endpoint import Endpoint
from tests.client.test_mcp_tasks import ask
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.raw_mails import raw_mail
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"t" * 32).decode()
Json = dict[str, Any]


class Receiver(Endpoint):
    """Echoes a challenge, if it wants to."""

    wants = True

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = (line.partition(":") for line in head[1:])
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests.append((headers, body))
        told = json.dumps({"challenge": json.loads(body).get("challenge") if self.wants else "no"}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(told) + told)
        await writer.drain()

    @property
    def occurrences(self) -> list[Json]:
        return [told for _, body in self.requests if "eventId" in (told := json.loads(body))]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    with closing(server):
        yield receiver


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path, MCP_EVENTS="on"), clock) as running:
        yield running


def subscription(receiver: Receiver, secret: str = SECRET, **arguments: str) -> Json:
    delivery = {"mode": "webhook", "url": receiver.url, "secret": secret}
    return {"name": "message.received", "arguments": arguments, "delivery": delivery}


async def subscribe(server: Server, asked: Json, **more: Any) -> Json:
    answer = await ask(server.api, "events/subscribe", {**asked, **more}, {})
    assert "result" in answer, answer
    result: Json = answer["result"]
    return result


async def refused(server: Server, asked: Json, method: str = "events/subscribe") -> tuple[int, Json]:
    error = (await ask(server.api, method, asked, {}))["error"]
    return error["code"], error.get("data") or {}


async def test_mail_that_matches_is_posted_signed_and_nothing_else(server: Server) -> None:
    await server.new_inbox("bob")
    listed = (await ask(server.api, "events/list", {}, {}))["result"]["events"]
    assert {"message.received", "message.bounced"} < {each["name"] for each in listed}
    assert {tuple(each["delivery"]) for each in listed} == {("webhook",)}
    async with receiving() as receiver:
        wanted = subscription(receiver, query="from:billing", verdict="clean", inbox="bob@postroom.localhost")
        made = await subscribe(server, wanted)
        headers, body = receiver.requests[0]
        assert json.loads(body)["type"] == "verification"
        assert headers["x-mcp-subscription-id"] == made["id"]
        assert headers["webhook-id"].startswith("msg_verification_")
        for sender in ("ann@shop.example", "billing@shop.example"):
            await server.deliver(
                raw_mail("Pay 5", **{"from": sender, "subject": sender}), "bob", sender=sender
            )
        await until(lambda: receiver.occurrences)
        await until(lambda: both_delivered(server))
        [told] = receiver.occurrences
        assert (told["name"], told["data"]["from"], told["data"]["preview"]) == (
            "message.received",
            "billing@shop.example",
            "Pay 5",
        )
        headers, body = receiver.requests[-1]
        stamp = int(headers["webhook-timestamp"])
        expected = standard_headers(SECRET, told["eventId"], stamp, body)["webhook-signature"]
        assert (headers["webhook-signature"], headers["x-mcp-subscription-id"]) == (expected, made["id"])


async def both_delivered(server: Server) -> bool:
    page = (await server.api.get("/v1/webhook/deliveries", params={"state": "delivered"})).json()
    return bool(page["total"] == 2)


async def test_the_same_subscription_again_is_refreshed_and_can_be_ended(server: Server) -> None:
    async with receiving() as receiver:
        asked = subscription(receiver, query="invoice")
        first = await subscribe(server, asked, ttlMs=3_600_000)
        again = await subscribe(server, subscription(receiver, OTHER, query="invoice"), ttlMs=None)
        assert (again["id"], again["refreshBefore"] > first["refreshBefore"]) == (first["id"], True)
        assert len(receiver.requests) == 1  # asked once
        other = await subscribe(server, subscription(receiver, query="receipt"))
        assert other["id"] != first["id"]
        listed = (await server.api.get("/v1/webhooks")).json()
        assert {each["clientId"] for each in listed["data"]} == {first["id"], other["id"]}
        assert SECRET not in json.dumps([listed, first, again])
        assert (await ask(server.api, "events/unsubscribe", asked, {}))["result"]["resultType"] == "complete"
        assert await refused(server, asked, "events/unsubscribe") == (-32011, {"kind": "subscription"})
        server.clock.turn(8 * DAY)
        await one_round(server.resources)
        assert (await server.api.get("/v1/webhooks")).json()["total"] == 0


async def test_an_endpoint_that_does_not_agree_gets_nothing(server: Server) -> None:
    async with receiving() as receiver:
        receiver.wants = False
        assert await refused(server, subscription(receiver)) == (-32015, {"reason": "challenge_failed"})
        assert (await server.api.get("/v1/webhooks")).json()["total"] == 0
        body = {"url": receiver.url, "format": "mcp", "secret": SECRET}
        made = (await server.api.post("/v1/webhooks", json=body)).json()
        assert made["enabled"] is False
        forced = await server.api.patch(f"/v1/webhooks/{made['id']}", json={"enabled": True})
        assert (forced.status_code, forced.json()["field"]) == (400, "enabled")


async def test_bad_subscriptions_are_refused_with_their_code(server: Server) -> None:
    async with receiving() as receiver:
        good = subscription(receiver)
        delivery = good["delivery"]
        for changed, code in (
            ({"name": "message.sung"}, -32011),
            ({"delivery": {**delivery, "mode": "push"}}, -32014),
            ({"delivery": {**delivery, "url": "http://example.com/hook"}}, -32602),
            ({"delivery": {**delivery, "url": "ftp://example.com"}}, -32602),
            ({"delivery": {**delivery, "url": "https://[::1"}}, -32602),
            ({"delivery": {**delivery, "secret": ""}}, -32602),
            ({"delivery": {**delivery, "secret": "hunter2"}}, -32602),
            ({"delivery": {**delivery, "secret": "whsec_" + "YQ=="}}, -32602),
            ({"arguments": {"query": "from:"}}, -32602),
            ({"arguments": {"verdict": "fine"}}, -32602),
            ({"arguments": {"colour": "red"}}, -32602),
            ({"arguments": {"inbox": "nobody@postroom.localhost"}}, -32602),
        ):
            assert (await refused(server, {**good, **changed}))[0] == code, changed
        assert receiver.requests == []
        inbox_id = await server.new_inbox("bob")
        made = await server.api.post("/v1/api-keys", json={"inboxId": inbox_id})
        async with server.client(made.json()["token"]) as agent:
            error = (await ask(agent, "events/subscribe", good, {}))["error"]
            assert error["code"] == -32012


async def test_a_subscription_ends_with_its_key(server: Server) -> None:
    await server.new_inbox("bob")
    made = (await server.api.post("/v1/api-keys", json={"name": "agent"})).json()
    async with receiving() as receiver:
        async with server.client(made["token"]) as agent:
            assert "result" in await ask(agent, "events/subscribe", subscription(receiver), {})
        assert (await server.api.delete(f"/v1/api-keys/{made['id']}")).status_code == 204
        await server.deliver(raw_mail("Hello"), "bob")

        async def is_gone() -> bool:
            return bool((await server.api.get("/v1/webhooks")).json()["total"] == 0)

        await until(is_gone)
        assert receiver.occurrences == []


async def test_without_the_setting_there_are_no_events(tmp_path: Path, clock: FakeClock) -> None:
    async with running_server(settings(tmp_path), clock) as server, receiving() as receiver:
        assert (await ask(server.api, "events/list", {}, {}))["error"]["code"] == -32601
        body = {"url": receiver.url, "format": "mcp", "secret": SECRET}
        answer = await server.api.post("/v1/webhooks", json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, "format")
