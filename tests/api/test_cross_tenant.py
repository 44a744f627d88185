"""Probes across tenants over HTTP, the stream and MCP: what is foreign is answered as what is unknown."""

import asyncio
import itertools
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from httpx2 import AsyncClient

from postroom.web.routes import ROUTES
from postroom.web.routing import PUBLIC, Route
from tests.api.test_keys import second_account
from tests.api.test_stream import hear, open_stream, subscribe
from tests.conftest import Server

MARK = "private-words"
NAMED = {
    "inbox_id": "inb",
    "thread_id": "thr",
    "message_id": "msg",
    "pod_id": "pod",
    "domain_id": "dom",
    "key_id": "key",
    "rule_id": "rul",
    "delivery_id": "whd",
    "draft_id": "drf",
    "template_id": "tpl",
    "job_id": "job",
}
BODIES: dict[str, dict[str, Any]] = {
    "NewDomain": {"domain": "probe.example"},
    "SendBody": {"to": "a@example.com", "subject": "s", "body": "b"},
    "NewRule": {"type": "block", "value": "a@example.com", "direction": "inbound"},
    "TemplateChange": {"name": "probe"},
    "ThreadChange": {"is_read": True},
    "Approve": {"contentHash": "0" * 64},
    "MessageChange": {"sendAt": "2026-11-20T10:00:00Z"},
}
Probe = tuple[Route, dict[str, str], dict[str, str]]  # with the values of its path and of its query


@dataclass(frozen=True)
class Victim:
    """The ids of what somebody else has, by the name that a path gives them."""

    ids: dict[str, str]


async def settle(api: AsyncClient, server: Server, name: str) -> Victim:
    """Something of every kind, each with the mark in its texts."""
    pod = (await api.post("/v1/pods", json={"clientId": f"client-{name}", "name": MARK})).json()["id"]
    inbox = {"mailboxName": name, "displayName": MARK, "podId": pod, "webhookUrl": "http://127.0.0.1:9/x"}
    inbox_id = (await api.post("/v1/inboxes", json=inbox)).json()["id"]
    raw = f"From: a@example.com\r\nSubject: {MARK}\r\n\r\n{MARK}\r\n".encode()
    await server.deliver(raw, name)
    async with asyncio.timeout(60):
        while not (listed := (await api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]):
            await asyncio.sleep(0.05)
    domain = await api.post("/v1/domains", json={"domain": f"{name}.example", "podId": pod})
    key = (await api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": MARK})).json()["id"]
    rule = {"type": "block", "value": f"{name}.example", "direction": "outbound"}
    rule_id = (await api.post("/v1/policy/rules", params={"inboxId": inbox_id}, json=rule)).json()["id"]
    template = {"inboxId": inbox_id, "name": MARK, "body": MARK}
    template_id = (await api.post("/v1/templates", json=template)).json()["id"]
    found = {
        "template_id": template_id,
        "inbox_id": inbox_id,
        "pod_id": pod,
        "domain_id": domain.json()["id"],
        "key_id": key,
    }
    await api.patch("/v1/account", json={"erasureApproval": True})  # the job waits
    job = await api.delete("/v1/contacts/a@example.com")
    found["job_id"] = job.json()["jobId"]
    message = {"message_id": listed[0]["id"], "thread_id": listed[0]["threadId"], "rule_id": rule_id}
    return Victim(found | message)


async def intruders(server: Server) -> list[AsyncClient]:
    """Keys that reach nothing of the victim: of another account, of another pod and of another inbox."""
    stranger = server.client(await second_account(server))
    await server.api.post("/v1/pods", json={"clientId": "beside"})
    of_pod = (await server.api.post("/v1/pods/beside/api-keys", json={})).json()["token"]
    inbox_id = await server.new_inbox("beside")
    of_inbox = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()["token"]
    return [stranger, server.client(of_pod), server.client(of_inbox)]


def aimed_routes() -> list[Route]:
    return [route for route in ROUTES if route.scope != PUBLIC and set(route.path_names) & set(NAMED)]


def scoped_routes() -> list[Route]:
    return [
        route
        for route in ROUTES
        if route.query is not None and "pod_id" in getattr(route.query, "__struct_fields__", ())
    ]


async def ask(
    client: AsyncClient, route: Route, values: dict[str, str], query: dict[str, str]
) -> tuple[int, str]:
    path = re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], "x.txt"), route.path)
    headers = {"Idempotency-Key": "probe"} if route.header else {}
    body = BODIES.get(route.body.__name__, {}) if route.body else None
    answer = await client.request(route.method, path, params=query, json=body, headers=headers)
    text = answer.text
    for value in (*values.values(), *query.values()):
        text = text.replace(value, "…")
    return answer.status_code, text


def unknown_like(value: str, chance: random.Random) -> str:
    return f"{value[:4]}{chance.getrandbits(128):032x}"


def aimed_probes(victim: Victim, chance: random.Random) -> Iterator[Probe]:
    """Every route that names a thing in its path, with what the victim has of the kind."""
    for route in aimed_routes():
        values = {
            name: victim.ids.get(name, unknown_like(f"{prefix}_", chance))
            for name, prefix in NAMED.items()
            if name in route.path_names
        }
        yield route, values, {}


def scoped_probes(victim: Victim) -> Iterator[Probe]:
    """Every route that is asked for one inbox or pod alone."""
    for route in scoped_routes():
        yield route, {}, {"inboxId": victim.ids["inbox_id"]}
        yield route, {}, {"podId": victim.ids["pod_id"]}


@pytest.mark.sqlite_alone
async def test_no_door_tells_foreign_from_unknown(server: Server) -> None:
    victim = await settle(server.api, server, "victim")
    clients = await intruders(server)
    chance = random.Random(20_261_114)
    probes = [*aimed_probes(victim, chance), *scoped_probes(victim)]
    for client, (route, values, query) in itertools.product(clients, probes):
        server.clock.turn(200)
        foreign = await ask(client, route, values, query)
        others = {name: unknown_like(value, chance) for name, value in values.items()}
        wanted = {name: unknown_like(value, chance) for name, value in query.items()}
        assert foreign == await ask(client, route, others, wanted), (route.method, route.path, query)
        assert MARK not in foreign[1], route.path
        assert foreign[0] in (200, 400, 403, 404), (route.method, route.path, foreign)
        assert foreign[0] != 200 or json.loads(foreign[1])["data"] == []
    shown = (await server.api.get(f"/v1/messages/{victim.ids['message_id']}")).json()
    assert shown["subject"] == MARK
    for client in clients:
        await client.aclose()


@pytest.mark.sqlite_alone
async def test_the_stream_and_mcp_tell_nothing_of_what_is_foreign(server: Server) -> None:
    victim = await settle(server.api, server, "victim")
    token = await second_account(server)
    chance = random.Random(1)
    inbox_id, thread_id = victim.ids["inbox_id"], victim.ids["thread_id"]
    async with server.client(token) as stranger:
        own = (await stranger.post("/v1/inboxes", json={"mailboxName": "own"})).json()["id"]
    async with open_stream(server, token) as stream:
        for _ in range(10):
            foreign = await subscribe(stream, inbox_ids=[inbox_id])
            assert foreign["type"] == "error"
            assert foreign == await subscribe(stream, inbox_ids=[unknown_like(inbox_id, chance)])
        assert (await subscribe(stream))["type"] == "subscribed"
        for name in ("victim", "own"):
            await server.deliver(f"From: b@example.com\r\nSubject: {MARK}\r\n\r\nhi".encode(), name)
        assert (await hear(stream))["inbox_id"] == own  # what would come of the other came before
        await stream.send(json.dumps({"type": "ping"}))
        assert await hear(stream) == {"type": "pong"}
    async with server.client(token) as stranger:
        for name, arguments in (
            ("get_inbox", {"inbox_id": inbox_id}),
            ("list_threads", {"inbox_id": inbox_id}),
            ("read_thread", {"thread_id": thread_id}),
            ("mark_thread_read", {"thread_id": thread_id}),
            ("get_attachment_text", {"message_id": victim.ids["message_id"], "filename": "a.txt"}),
        ):
            others = {
                key: unknown_like(value, chance) if "_" in value[:4] else value
                for key, value in arguments.items()
            }
            answer = await call_tool(stranger, name, arguments)
            assert answer == await call_tool(stranger, name, others), name
            assert MARK not in answer


async def call_tool(client: AsyncClient, name: str, arguments: dict[str, str]) -> str:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    headers = {"Accept": "application/json, text/event-stream"}
    text = (await client.post("/mcp", json=request, headers=headers)).text
    for value in arguments.values():
        text = text.replace(value, "…")
    return text


@pytest.mark.sqlite_alone
async def test_an_expired_key_ends_its_stream(server: Server) -> None:
    body = {"expiresAt": "2026-11-14T11:00:00Z"}
    token = (await server.api.post("/v1/api-keys", json=body)).json()["token"]
    async with open_stream(server, token) as stream:
        await subscribe(stream)
        server.clock.turn(3_600_000)
        async with asyncio.timeout(60):
            await stream.wait_closed()
        assert stream.close_code == 4001
