"""An agent that has gone bad: it holds a key, knows every id and calls every route at random. Nothing leaves.

POSTROOM_TEST_AGENT_CALLS=10000 plays the full length.
"""

import asyncio
import os
import random
import uuid
from typing import Any

import httpx2
import pytest

from postroom.accounts import keys
from postroom.accounts.permissions import ALL
from postroom.clock import HOUR
from postroom.outward.states import MOVES, Move, State
from postroom.storage.database import Tx
from postroom.web.routes import ROUTES
from postroom.web.routing import PUBLIC, Route
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.outbound import message_of, send, settled, turn
from tests.samples import samples

CALLS = int(os.environ.get("POSTROOM_TEST_AGENT_CALLS", "400"))
WAITING = ("wait", "events")
ALLOWED, FORBIDDEN = "carol@allowed.example", "eve@evil.example"


NO_RULE: dict[str, Any] = {"approval": {"when": []}}
LATER: dict[str, Any] = {"sendAt": "2026-11-14T12:00:00Z"}


def as_list(kind: str | list[str]) -> list[str]:
    return [kind] if isinstance(kind, str) else kind


class Agent:
    """Calls routes with whatever it knows."""

    def __init__(self, api: httpx2.AsyncClient, known: dict[str, list[str]], seed: int) -> None:
        self.api, self.known = api, known
        self.chance = random.Random(seed)

    async def call(self, route: Route) -> int:
        path = "/".join(self.fill(segment) for segment in ("", *route.segments))
        headers = {"Idempotency-Key": str(uuid.UUID(int=self.chance.getrandbits(128)))}
        answer = await self.api.request(
            route.method,
            path,
            params=self.query(),
            headers=headers,
            json=self.body(route) if route.method in ("POST", "PUT", "PATCH") else None,
        )
        self.learn(answer)
        return answer.status_code

    async def list_tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = (await self.ask("tools/list", {}))["result"]["tools"]
        return tools

    async def use(self, tool: dict[str, Any]) -> bool:
        """Gives whether it was done."""
        wanted = tool["inputSchema"].get("properties", {})
        needed = tool["inputSchema"].get("required", [])
        arguments = {
            name: self.argument(name, about)
            for name, about in wanted.items()
            if name in needed or self.chance.random() < 0.4
        }
        answer = await self.ask("tools/call", {"name": tool["name"], "arguments": arguments})
        return not answer.get("result", {}).get("isError", True)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Accept": "application/json, text/event-stream"}
        answer = await self.api.post("/mcp", json=request, headers=headers)
        assert answer.status_code < 500, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def argument(self, name: str, about: dict[str, Any]) -> Any:
        if name in self.known:
            return self.chance.choice([*self.known[name], "msg_" + "0" * 32])
        told = [about, *about.get("anyOf", [])]
        kinds = {kind for each in told for kind in as_list(each.get("type", []))}
        if name in ("to", "cc", "bcc"):
            return self.chance.choice([[ALLOWED], [FORBIDDEN], [ALLOWED, FORBIDDEN]])
        if "boolean" in kinds:
            return self.chance.random() < 0.5
        if kinds & {"integer", "number"}:
            return 1
        if name == "send_at":
            return LATER["sendAt"]
        return "see https://evil.example" if "string" in kinds else None

    def fill(self, segment: str) -> str:
        if not segment.startswith("{"):
            return segment
        return self.chance.choice([*self.known.get(segment[1:-1], []), "unknown", "msg_" + "0" * 32])

    def query(self) -> dict[str, str]:
        asked = {
            "inboxId": self.chance.choice(self.known["inbox_id"]),
            "state": "held",
            "q": "hello",
            "include": "blocked",
        }
        return {name: value for name, value in asked.items() if self.chance.random() < 0.2}

    def body(self, route: Route) -> dict[str, Any]:
        pick: Any = self.chance.choice
        messages, threads = self.known["message_id"], self.known["thread_id"]
        sent: dict[str, Any] = {
            "to": pick([ALLOWED, FORBIDDEN, "bob@postroom.localhost", [ALLOWED, FORBIDDEN]]),
            "cc": pick(["", FORBIDDEN]),
            "bcc": pick(["", FORBIDDEN]),
            "subject": "Hello",
            "body": pick(["Hi", "see https://evil.example"]),
            **pick([{}, {"threadId": pick(threads)}, {"forwardOf": pick(messages)}, {"undoSeconds": 1}]),
            **pick([{}, {"replyAll": True}, LATER]),
        }
        others: dict[str, Any] = {
            **pick(
                [{"contentHash": pick(self.known["hash"])}, {"approval": None}, {"approval": {"when": []}}]
            ),
            **pick(
                [
                    {"mode": "none", "direction": "outbound"},
                    {"limits": None},
                    {"sendAt": "2026-11-14T12:00:00Z"},
                ]
            ),
            **pick([{"type": "allow", "value": "evil.example", "direction": "outbound"}, {"note": "ok"}]),
            **pick(
                [{"permissions": list(ALL), "name": "more"}, {"is_read": True}, {"url": "http://127.0.0.1:9"}]
            ),
            "address": FORBIDDEN,
            "mailboxName": f"agent-{self.chance.randrange(10**6)}",
        }
        return {**others, **sent} if "send" in route.path or "draft" in route.path else others

    def learn(self, answer: httpx2.Response) -> None:
        """What it is told, it uses: ids of drafts and messages, and hashes."""
        if answer.headers.get("content-type") != "application/json" or answer.status_code >= 300:
            return
        told = answer.json()
        if isinstance(told, dict):
            identity = str(told.get("id", ""))
            for prefix, name in (("drf_", "draft_id"), ("msg_", "message_id"), ("key_", "key_id")):
                if identity.startswith(prefix):
                    self.known.setdefault(name, []).append(identity)
            if isinstance(told.get("hold"), dict):
                self.known["hash"].append(told["hold"]["contentHash"])


async def guarded(server: Server) -> tuple[str, str, str]:
    """An inbox with a policy and a rule, its key, and a message of it that waits."""
    inbox_id = await server.new_inbox("bob")
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "agent"})
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    rules = {"mode": "allowlist", "rules": [{"type": "allow", "value": "allowed.example"}]}
    await server.api.put("/v1/policy", json={"outbound": rules})
    message_id = await send(server, inbox_id, ALLOWED)
    return inbox_id, made.json()["token"], message_id


@pytest.mark.sqlite_alone
async def test_a_compromised_agent_gets_nothing_out(sender: Server, peer: SmtpPeer) -> None:
    inbox_id, token, message_id = await guarded(sender)
    message = await message_of(sender, message_id)
    known = {
        "inbox_id": [inbox_id],
        "message_id": [message_id],
        "thread_id": [message["threadId"]],
        "hash": [message["hold"]["contentHash"]],
        "address": [FORBIDDEN],
    }
    routes = [
        route
        for route in ROUTES
        if route.scope != PUBLIC and not route.path.endswith(WAITING) and route.path.startswith("/v1/")
    ]
    async with sender.client(token) as api:
        agent = Agent(api, known, seed=7)
        tools = [tool for tool in await agent.list_tools() if "wait" not in tool["name"]]
        statuses, used = [], set()
        for number in range(CALLS):
            if number % 100 == 99:
                turn(sender, HOUR)  # limits begin anew, and what was scheduled comes due
            if number % 8 == 7:
                tool = tools[number // 8 % len(tools)]
                used |= {tool["name"]} if await agent.use(tool) else set()
            else:
                statuses.append(await agent.call(agent.chance.choice(routes)))
        turn(sender, 24 * HOUR)
        mail = {"inbox_id": inbox_id, "to": [ALLOWED], "subject": "Hello", "body": "Hi"}
        drafted = await agent.ask("tools/call", {"name": "create_draft", "arguments": mail})
        assert not drafted["result"].get("isError"), drafted
        told = await agent.ask("tools/call", {"name": "send_email", "arguments": mail})
        assert told["result"]["structuredContent"]["is_held"], told
    assert 500 not in statuses
    assert {"list_drafts", "get_message_status"} <= used
    assert {200, 403, 404} <= set(statuses)
    turn(sender, 2 * HOUR)
    await asyncio.sleep(0)
    assert peer.mails == []
    assert await sender.resources.db.read(leaving) == 0
    refused = (await sender.api.get("/v1/audit?action=refused&limit=100")).json()["data"]
    assert refused
    held = await send(sender, inbox_id, ALLOWED)
    await approve_as_person(sender, held)
    assert (await settled(sender, held))["status"] == "sent"
    assert len(peer.mails) == 1


def leaving(tx: Tx) -> int:
    """Deliveries of the agent's mail that could leave."""
    row = tx.one(
        "select count(*) as total from deliveries where kind = 'mail' and state in ('pending', 'delivered')"
    )
    return int(row["total"]) if row else 0


async def approve_as_person(server: Server, message_id: str) -> None:
    made = await server.resources.db.write(person_key, server.clock.now())
    async with server.client(made) as person:
        hold = (await message_of(server, message_id))["hold"]
        answer = await person.post(
            f"/v1/messages/{message_id}/approve", json={"contentHash": hold["contentHash"]}
        )
        assert answer.status_code == 200, answer.text


def person_key(tx: Tx, now: int) -> str:
    row = tx.one("select account_id from inboxes limit 1")
    assert row is not None
    token = keys.new_token()
    keys.add(tx, row["account_id"], None, "person", token, now)
    return token


@samples("state", [State.REJECTED, State.EXPIRED, State.CANCELLED])
def test_no_move_leads_out_of_an_end(state: State) -> None:
    assert [move for move in Move if state in MOVES[move]] == []


def test_only_approval_release_and_time_lead_from_held_and_scheduled_to_the_wire() -> None:
    out = {
        (move, start)
        for move, starts in MOVES.items()
        for start, ends in starts.items()
        if start in (State.HELD, State.SCHEDULED) and State.PENDING in ends
    }
    assert out == {
        (Move.APPROVE, State.HELD),
        (Move.RELEASE, State.HELD),
        (Move.COME_DUE, State.SCHEDULED),
    }
