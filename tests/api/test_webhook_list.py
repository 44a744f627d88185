"""Several webhooks: each with its own secret, for some inboxes, pods and kinds of events."""

import base64
import json
from collections import Counter
from typing import Any

import pytest

from postroom.clock import to_iso
from postroom.events.webhook_signature import sign, standard_headers
from postroom.storage.database import Tx
from tests.api.endpoint import running_endpoint
from tests.api.test_dashboard import signed_in
from tests.api.test_keys import second_account
from tests.api.test_pods import told
from tests.conftest import Server
from tests.raw_mails import raw_mail
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone


async def add(server: Server, url: str, **body: Any) -> dict[str, Any]:
    answer = await server.api.post("/v1/webhooks", json={"url": url, **body})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_each_webhook_gets_what_it_wants_signed_with_its_own_secret(server: Server) -> None:
    pod = (await server.api.post("/v1/pods", json={"name": "p"})).json()["id"]
    one = await server.new_inbox("one")
    await server.api.post("/v1/inboxes", json={"mailboxName": "two", "podId": pod})
    other = await server.new_inbox("other")
    async with (
        running_endpoint() as all_of_it,
        running_endpoint() as some,
        running_endpoint() as account,
        running_endpoint() as inbox,
    ):
        await server.api.put("/v1/webhook", json={"url": account.url})
        await server.api.patch(f"/v1/inboxes/{other}", json={"webhookUrl": inbox.url})
        first = await add(server, all_of_it.url, headers={"X-Tenant": "seven"})
        second = await add(server, some.url, inboxIds=[one], podIds=[pod])
        await add(server, some.url, eventTypes=["message.sent"])
        assert first["id"].startswith("whk_")
        assert first["headers"] == {"X-Tenant": "***"}
        for name in ("one", "two", "other"):
            await server.deliver(raw_mail(subject=name), name)
        await all_of_it.wait_for(3)
        await some.wait_for(2)
        await account.wait_for(2)
        await inbox.wait_for(1)
        assert await server.resources.db.read(count_deliveries) == {
            all_of_it.url: 3,
            some.url: 2,
            account.url: 2,
            inbox.url: 1,
        }  # what is not there will not come either
        for endpoint, secret in ((all_of_it, first["secret"]), (some, second["secret"])):
            headers, body = endpoint.requests[0]
            timestamp = int(headers["x-timestamp"])
            assert headers["x-signature"] == sign(secret, timestamp, body)
            standard = standard_headers(secret, headers["x-event-id"], timestamp, body)
            assert {name: headers[name] for name in standard} == standard
        assert all_of_it.requests[0][0]["x-tenant"] == "seven"
        assert "x-tenant" not in some.requests[0][0]


def count_deliveries(tx: Tx) -> dict[str, int]:
    """By address: they are written together with their event."""
    return dict(Counter(row["target"] for row in tx.all("select target from deliveries")))


async def test_a_webhook_is_listed_changed_tested_rotated_and_removed(server: Server) -> None:
    async with running_endpoint() as endpoint:
        made = await add(server, endpoint.url, clientId="mine", eventTypes=["message.sent"])
        path = f"/v1/webhooks/{made['id']}"
        shown = (await server.api.get(path)).json()
        assert shown == {name: value for name, value in made.items() if name != "secret"}
        listed = (await server.api.get("/v1/webhooks")).json()
        assert (listed["total"], listed["data"]) == (1, [shown])
        changed = await server.api.patch(path, json={"eventTypes": ["message.failed"], "enabled": False})
        assert (changed.json()["eventTypes"], changed.json()["enabled"]) == (["message.failed"], False)
        assert changed.json()["url"] == endpoint.url
        assert "secret" not in changed.json()
        again = (await server.api.patch(path, json={"enabled": True})).json()
        assert (again["enabled"], again["disabledReason"]) == (True, None)
        await server.api.patch(path, json={"headers": {"X-A": "1", "X-B": "2"}})
        kept = (await server.api.patch(path, json={"headers": {"X-A": "***", "X-C": "3"}})).json()
        assert kept["headers"] == {"X-A": "***", "X-C": "***"}
        rotated = (await server.api.post(f"{path}/rotate-secret")).json()["secret"]
        assert rotated != made["secret"]
        assert (await server.api.post(f"{path}/test")).json()["ok"] is True
        headers, body = endpoint.requests[0]
        assert [headers.get(name) for name in ("x-a", "x-b", "x-c")] == ["1", None, "3"]
        assert headers["x-signature"] == sign(rotated, int(headers["x-timestamp"]), body)
        assert (await server.api.get("/v1/webhook")).status_code == 404  # it is none of the list
        assert (await server.api.delete(path)).status_code == 204
        assert told(await server.api.get(path)) == (404, "not_found")


async def test_what_is_wrong_with_a_webhook_is_said(server: Server) -> None:
    url = "http://127.0.0.1:9/hook"
    for body, field in (
        ({"inboxIds": ["inb_none"]}, "inboxIds"),
        ({"podIds": ["nobody"]}, "podIds"),
        ({"eventTypes": ["message.sung"]}, "eventTypes"),
        ({"headers": {"X-Signature": "forged"}}, "headers"),
        ({"headers": {"content-length": "1"}}, "headers"),
        ({"headers": {"X-A": "line\r\nbreak"}}, "headers"),
        ({"headers": {"bad name": "x"}}, "headers"),
        ({"clientId": "a b"}, "clientId"),
    ):
        answer = await server.api.post("/v1/webhooks", json={"url": url, **body})
        assert (answer.status_code, answer.json()["field"]) == (400, field), body
    assert told(await server.api.post("/v1/webhooks", json={"url": "ftp://x"})) == (
        422,
        "invalid_webhook_url",
    )
    made = await add(server, url, clientId="a")
    again = await server.api.post("/v1/webhooks", json={"url": f"{url}/other", "clientId": "a"})
    assert (again.status_code, again.json()) == (200, {k: v for k, v in made.items() if k != "secret"})
    bad = await server.api.patch(f"/v1/webhooks/{made['id']}", json={"url": "ftp://x"})
    assert told(bad) == (422, "invalid_webhook_url")
    for _ in range(49):
        await add(server, url)
    assert told(await server.api.post("/v1/webhooks", json={"url": url})) == (422, "webhook_limit_reached")


async def test_webhooks_of_others_are_not_found(server: Server) -> None:
    made = await add(server, "http://127.0.0.1:9/hook")
    async with server.client(await second_account(server)) as other:
        for answer in (
            await other.get(f"/v1/webhooks/{made['id']}"),
            await other.patch(f"/v1/webhooks/{made['id']}", json={}),
            await other.delete(f"/v1/webhooks/{made['id']}"),
            await other.post(f"/v1/webhooks/{made['id']}/test"),
        ):
            assert told(answer) == (404, "not_found")
        assert (await other.get("/v1/webhooks")).json()["total"] == 0


async def test_a_pod_key_manages_the_webhooks_of_its_pod_alone(server: Server) -> None:
    pods = [(await server.api.post("/v1/pods", json={"name": name})).json()["id"] for name in ("p", "q")]
    inside = {"mailboxName": "inside", "podId": pods[0]}
    inbox = (await server.api.post("/v1/inboxes", json=inside)).json()["id"]
    outside = await server.new_inbox("outside")
    token = (await server.api.post(f"/v1/pods/{pods[0]}/api-keys", json={"name": "k"})).json()["token"]
    url = "http://127.0.0.1:9/hook"
    of_account = await add(server, url)
    of_other = await add(server, url, podIds=[pods[1]], clientId="other")
    async with server.client(token) as pod:
        made = await pod.post("/v1/webhooks", json={"url": url})
        assert (made.status_code, made.json()["podIds"]) == (201, [pods[0]]), made.text
        some = await pod.post("/v1/webhooks", json={"url": url, "inboxIds": [inbox]})
        assert (some.json()["inboxIds"], some.json()["podIds"]) == ([inbox], [])
        for foreign in ({"inboxIds": [outside]}, {"podIds": [pods[1]]}):
            assert (await pod.post("/v1/webhooks", json={"url": url, **foreign})).status_code == 400
        page = (await pod.get("/v1/webhooks")).json()
        own = {made.json()["id"], some.json()["id"]}
        assert ({each["id"] for each in page["data"]}, page["total"]) == (own, 2)
        path = f"/v1/webhooks/{made.json()['id']}"
        changed = await pod.patch(path, json={"podIds": [], "eventTypes": ["message.sent"]})
        assert (changed.json()["podIds"], changed.json()["eventTypes"]) == ([pods[0]], ["message.sent"])
        for other in (of_account["id"], of_other["id"]):
            assert (await pod.get(f"/v1/webhooks/{other}")).status_code == 404
            assert (await pod.patch(f"/v1/webhooks/{other}", json={"enabled": False})).status_code == 404
            assert (await pod.delete(f"/v1/webhooks/{other}")).status_code == 404
            assert (await pod.post(f"/v1/webhooks/{other}/rotate-secret")).status_code == 404
            assert (await pod.post(f"/v1/webhooks/{other}/test")).status_code == 404
        second = await pod.post(
            f"/v0/pods/{pods[0]}/webhooks",
            json={"url": url, "event_types": ["message.received"], "client_id": "other"},
        )
        assert second.json()["webhook_id"] not in (of_account["id"], of_other["id"]), second.text
        assert (await pod.post(f"{path}/rotate-secret")).status_code == 200
        assert (await pod.delete(path)).status_code == 204


@pytest.mark.both_databases
async def test_a_webhook_with_a_search_gets_only_what_matches(server: Server) -> None:
    await server.new_inbox("one")
    secret = f"whsec_{base64.b64encode(b's' * 32).decode()}"
    async with running_endpoint() as endpoint:
        made = await add(server, endpoint.url, query="from:billing -draft", ttlSeconds=3600)
        path = f"/v1/webhooks/{made['id']}"
        assert made["expiresAt"] == to_iso(server.clock.now() + 3600 * 1000)
        for sender, text in (("ann", "Pay"), ("billing", "A draft"), ("billing", "Pay")):
            await server.deliver(raw_mail(text, **{"from": f"{sender}@shop.example"}), "one")

        async def all_done() -> bool:
            page = (await server.api.get("/v1/webhook/deliveries", params={"state": "delivered"})).json()
            return bool(page["total"] == 3)

        await until(all_done)
        [(_, body)] = endpoint.requests
        assert json.loads(body)["message"]["from"] == "billing@shop.example"
        for wrong, field in (
            ({"query": "from:"}, "query"),
            ({"secret": "short"}, "secret"),
            ({"query": "\0"}, "query"),
        ):
            refused = await server.api.patch(path, json=wrong)
            assert (refused.status_code, refused.json()["field"]) == (400, field)
        changed = await server.api.patch(path, json={"secret": secret, "ttlSeconds": None, "query": "draft"})
        assert (changed.json()["expiresAt"], changed.json()["query"]) == (None, "draft")
        assert secret not in changed.text
        await server.deliver(raw_mail("Another draft"), "one")
        await endpoint.wait_for(2)
        headers, body = endpoint.requests[1]
        assert headers["x-signature"] == sign(secret, int(headers["x-timestamp"]), body)
        async with signed_in(server) as page:
            assert "matching draft" in (await page.get("/app/webhooks")).text
        ending = await add(server, endpoint.url, ttlSeconds=1)
        server.clock.turn(2000)
        await server.deliver(raw_mail("A last draft"), "one")
        await endpoint.wait_for(3)

        async def is_gone() -> bool:
            return bool((await server.api.get(f"/v1/webhooks/{ending['id']}")).status_code == 404)

        await until(is_gone)
