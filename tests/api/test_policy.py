"""Policies: who may write to an inbox, and whom it may write to."""

import asyncio
from typing import Any

import pytest
from httpx2 import Response

from tests.api.test_pods import inbox_in, new_pod, pod_client, told
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


def mail(sender: str, number: int = 1, more: str = "") -> bytes:
    head = f"From: {sender}\r\nSubject: s\r\nMessage-ID: <{number}@example.com>\r\n{more}"
    return f"{head}\r\nhi {number}".encode()


async def allow(server: Server, direction: str, *values: str, **scope: str) -> None:
    rules = [{"type": "allow", "value": value} for value in values]
    body = {direction: {"mode": "allowlist", "rules": rules}}
    answer = await server.api.put("/v1/policy", params=scope, json=body)
    assert answer.status_code == 200, answer.text


async def block(server: Server, direction: str, value: str, **scope: str) -> str:
    body = {"type": "block", "value": value, "direction": direction}
    answer = await server.api.post("/v1/policy/rules", params=scope, json=body)
    assert answer.status_code == 201, answer.text
    rule_id: str = answer.json()["id"]
    return rule_id


async def send(server: Server, inbox_id: str, key: str, *to: str) -> Response:
    body = {"to": list(to), "subject": "s", "body": "b"}
    return await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers={"Idempotency-Key": key})


async def events(server: Server, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(120):
        while True:
            page: list[dict[str, Any]] = (await server.api.get("/v1/events")).json()["data"]
            if len(page) >= count:
                return page
            await asyncio.sleep(0.05)


async def listed(server: Server, inbox_id: str, **query: str) -> list[dict[str, Any]]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params=query)).json()
    assert page["total"] == len(page["data"])
    found: list[dict[str, Any]] = page["data"]
    return found


async def test_a_policy_restricts_nothing_is_set_changed_and_emptied(server: Server) -> None:
    nothing = {"mode": "inherit", "rules": []}
    assert (await server.api.get("/v1/policy")).json() == {"inbound": nothing, "outbound": nothing}
    rule_id = await block(server, "outbound", "Example.COM")
    again = await block(server, "outbound", "example.com.")
    assert again == rule_id
    mode = {"mode": "allowlist", "direction": "inbound"}
    shown = (await server.api.put("/v1/policy/mode", json=mode)).json()
    assert (shown["inbound"]["mode"], shown["outbound"]["mode"]) == ("allowlist", "inherit")
    assert [rule["value"] for rule in shown["outbound"]["rules"]] == ["example.com"]
    put = {"inbound": {"mode": "none", "rules": [{"type": "allow", "value": "*.example.com"}]}}
    shown = (await server.api.put("/v1/policy", json=put)).json()
    assert [rule["value"] for rule in shown["inbound"]["rules"]] == ["*.example.com"]
    assert len(shown["outbound"]["rules"]) == 1
    assert (await server.api.delete(f"/v1/policy/rules/{rule_id}")).status_code == 204
    assert told(await server.api.delete(f"/v1/policy/rules/{rule_id}")) == (404, "not_found")
    actions = [entry["action"] for entry in (await server.api.get("/v1/audit")).json()["data"]]
    assert actions == [
        *("policy.rule_removed", "policy.changed", "policy.changed", "policy.rule_added", "policy.rule_added")
    ]
    for wrong, field in [
        ({"type": "block", "value": "a b", "direction": "inbound"}, "value"),
        ({"type": "deny", "value": "a@b.example", "direction": "inbound"}, "type"),
        ({"type": "allow", "value": "a@b.example", "direction": "up"}, "direction"),
    ]:
        answer = await server.api.post("/v1/policy/rules", json=wrong)
        assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_a_blocked_recipient_is_refused_before_suppression_and_audited(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await block(server, "outbound", "*.example.com")
    await server.api.post("/v1/suppressions", json={"address": "bob@mail.example.com"})
    answer = await send(server, inbox_id, "1", "ok@elsewhere.example", "Bob@mail.example.com")
    assert told(answer) == (403, "recipient_not_allowed")
    assert answer.json()["recipient"] == "bob@mail.example.com"
    assert (await send(server, inbox_id, "2", "bob@example.com")).status_code == 200
    (stop,) = (await server.api.get("/v1/policy/audit")).json()["data"]
    assert (stop["action"], stop["direction"], stop["address"]) == (
        "refused",
        "outbound",
        "bob@mail.example.com",
    )
    assert (stop["rule"], stop["inboxId"], stop["messageId"]) == ("*.example.com", inbox_id, None)
    (tried,) = (await server.api.get("/v1/audit?action=refused")).json()["data"]
    assert tried["after"]["error"] == "recipient_not_allowed"


async def test_each_level_can_only_narrow(server: Server) -> None:
    pod = await new_pod(server, clientId="tenant")
    inbox_id = await inbox_in(server.api, "tenant", podId=pod["id"])
    await allow(server, "outbound", "example.com", "example.org")
    await allow(server, "outbound", "example.com", "example.net", podId="tenant")
    await block(server, "outbound", "eve@example.com", inboxId=inbox_id)
    allowed = {}
    for number, address in enumerate(
        ["bob@example.com", "bob@example.org", "bob@example.net", "eve@example.com", "eve+x@example.com"]
    ):
        allowed[address] = (await send(server, inbox_id, str(number), address)).status_code
    assert list(allowed.values()) == [200, 403, 403, 403, 403]
    await allow(server, "outbound", inboxId=inbox_id)
    assert told(await send(server, inbox_id, "9", "bob@example.com")) == (403, "recipient_not_allowed")


@pytest.mark.both_databases
async def test_mail_that_a_policy_stops_is_kept_and_not_shown(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await block(server, "inbound", "spam.example")
    await server.deliver(mail("eve@spam.example"), "own")
    await server.deliver(mail("alice@example.com", 2), "own")
    notice_of = {event["event"]: event for event in await events(server, 2)}
    assert set(notice_of) == {"message.blocked", "message.received"}
    assert notice_of["message.blocked"]["thread_id"] == ""
    assert [message["fromAddr"] for message in await listed(server, inbox_id)] == ["alice@example.com"]
    both = await listed(server, inbox_id, include="blocked")
    assert {message["fromAddr"]: message["blocked"] for message in both} == {
        "alice@example.com": False,
        "eve@spam.example": True,
    }
    inbound = await listed(server, inbox_id, include="blocked", direction="inbound")
    assert len(inbound) == 2
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["total"] == 1
    rows = await server.resources.db.read(lambda tx: tx.all("select address from correspondents"))
    assert [row["address"] for row in rows] == ["alice@example.com"]
    (stop,) = (await server.api.get("/v1/policy/audit", params={"inboxId": inbox_id})).json()["data"]
    assert (stop["action"], stop["rule"], stop["address"]) == ("blocked", "spam.example", "eve@spam.example")


async def test_released_mail_comes_in_as_if_it_came_then(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail("alice@example.com"), "own")
    await events(server, 1)
    await allow(server, "inbound", "alice@example.com", inboxId=inbox_id)
    await server.deliver(mail("bob@example.com", 2, "In-Reply-To: <1@example.com>\r\n"), "own")
    (_, blocked) = await events(server, 2)
    assert blocked["event"] == "message.blocked"
    server.clock.turn(60_000)
    path = f"/v1/messages/{blocked['message']['id']}"
    released = await server.api.post(f"{path}/release")
    assert (released.status_code, released.json()["blocked"]) == (200, False)
    newest, first = await listed(server, inbox_id)
    assert (newest["id"], newest["newParticipant"]) == (blocked["message"]["id"], True)
    assert newest["threadId"] == first["threadId"]
    assert newest["createdAt"] > first["createdAt"]
    thread = (await server.api.get(f"/v1/threads/{first['threadId']}")).json()
    assert (thread["messageCount"], thread["lastMessageAt"]) == (2, newest["createdAt"])
    assert [event["event"] for event in await events(server, 3)][-1] == "message.received"
    assert told(await server.api.post(f"{path}/release")) == (409, "nothing_to_do")
    assert await listed(server, inbox_id, include="blocked") == [newest, first]
    actions = [stop["action"] for stop in (await server.api.get("/v1/policy/audit")).json()["data"]]
    assert actions == ["released", "blocked"]


async def test_every_sender_must_pass_and_none_passes_no_list(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await allow(server, "inbound", "example.com")
    senders = ["a@example.com", "a@example.com, b@evil.example", "undisclosed", "c@EXAMPLE.com."]
    for number, sender in enumerate(senders):
        await server.deliver(mail(sender, number), "own")
    await events(server, 4)
    assert len(await listed(server, inbox_id)) == 2


async def test_mail_that_is_let_in_joins_threads_and_counts(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await allow(server, "inbound", "example.com")
    await server.deliver(mail("a@example.com", 1), "own")
    await events(server, 1)
    await server.deliver(mail("a@example.com", 2, "In-Reply-To: <1@example.com>\r\n"), "own")
    await events(server, 2)
    (thread,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["data"]
    assert (thread["messageCount"], thread["isRead"]) == (2, False)
    assert len(await listed(server, inbox_id)) == 2


async def test_an_unknown_scope_is_not_found_also_before_the_body(server: Server) -> None:
    await new_pod(server, clientId="mine")
    other = await new_pod(server, clientId="other")
    theirs = await inbox_in(server.api, "theirs", podId="other")
    async with await pod_client(server, "mine") as tenant:
        for scope in (
            {"podId": other["id"]},
            {"podId": "other"},
            {"inboxId": theirs},
            {"inboxId": "inb_" + "0" * 32},
            {"podId": "nobody"},
        ):
            assert told(await tenant.get("/v1/policy", params=scope)) == (404, "not_found")
            assert told(await tenant.put("/v1/policy", params=scope, content=b"{")) == (404, "not_found")
            assert told(await tenant.get("/v1/policy/audit", params=scope)) == (404, "not_found")
        body = {"type": "block", "value": "a@b.example", "direction": "inbound"}
        rule = (await tenant.post("/v1/policy/rules", json=body)).json()
    shown = (await server.api.get("/v1/policy", params={"podId": "mine"})).json()
    assert [item["id"] for item in shown["inbound"]["rules"]] == [rule["id"]]
    assert (await server.api.get("/v1/policy")).json()["inbound"]["rules"] == []


async def test_a_blocked_message_can_be_deleted_and_counts_stay_right(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await block(server, "inbound", "spam.example")
    await server.deliver(mail("eve@spam.example"), "own")
    (event,) = await events(server, 1)
    assert (await server.api.delete(f"/v1/messages/{event['message']['id']}")).status_code == 204
    assert await listed(server, inbox_id, include="blocked") == []
