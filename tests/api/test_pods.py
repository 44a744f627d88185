"""Pods: the tenants of an account, each for itself."""

from typing import Any

import pytest
from httpx2 import AsyncClient, Response

from tests.api.test_keys import second_account
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


async def new_pod(server: Server, **body: str) -> dict[str, Any]:
    answer = await server.api.post("/v1/pods", json=body)
    assert answer.status_code == 201, answer.text
    pod: dict[str, Any] = answer.json()
    return pod


async def pod_client(server: Server, pod_id: str, **body: object) -> AsyncClient:
    answer = await server.api.post(f"/v1/pods/{pod_id}/api-keys", json=body)
    assert answer.status_code == 201, answer.text
    return server.client(answer.json()["token"])


async def inbox_in(client: AsyncClient, name: str, **body: str) -> str:
    answer = await client.post("/v1/inboxes", json={"mailboxName": name, **body})
    assert answer.status_code == 201, answer.text
    inbox_id: str = answer.json()["id"]
    return inbox_id


def told(answer: Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


async def test_every_account_has_a_default_pod_where_inboxes_go(server: Server) -> None:
    pods = (await server.api.get("/v1/pods")).json()
    assert (pods["total"], [pod["isDefault"] for pod in pods["data"]]) == (1, [True])
    inbox_id = await server.new_inbox("own")
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["podId"] == pods["data"][0]["id"]
    assert told(await server.api.delete(f"/v1/pods/{pods['data'][0]['id']}")) == (409, "default_pod")


async def test_a_client_id_stands_wherever_a_pod_id_may(server: Server) -> None:
    pod = await new_pod(server, clientId="customer:7", name="Seven")
    assert (pod["clientId"], pod["name"], pod["isDefault"]) == ("customer:7", "Seven", False)
    inbox_id = await inbox_in(server.api, "seven", podId="customer:7")
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["podId"] == pod["id"]
    assert (await server.api.get("/v1/pods/customer:7")).json() == pod
    renamed = await server.api.patch("/v1/pods/customer:7", json={"name": None})
    assert renamed.json()["name"] is None
    made = await server.api.post("/v1/pods/customer:7/api-keys", json={"name": "k"})
    assert (made.status_code, made.json()["podId"]) == (201, pod["id"])
    listed = (await server.api.get("/v1/pods/customer:7/api-keys")).json()
    assert [key["id"] for key in listed["data"]] == [made.json()["id"]]
    gone = await server.api.delete(f"/v1/pods/customer:7/api-keys/{made.json()['id']}")
    assert gone.status_code == 204


async def test_a_client_id_is_unique_visible_and_no_pod_id(server: Server) -> None:
    await new_pod(server, clientId="a")
    assert told(await server.api.post("/v1/pods", json={"clientId": "a"})) == (409, "client_id_taken")
    for wrong in ["", "a/b", "pod_x", "a b", "ä", "x" * 256, "a\n", 3]:
        answer = await server.api.post("/v1/pods", json={"clientId": wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, "clientId"), wrong
    assert (await server.api.get("/v1/pods")).json()["total"] == 2


async def test_a_pod_goes_only_when_nothing_lies_in_it(server: Server) -> None:
    pod = await new_pod(server)
    inbox_id = await inbox_in(server.api, "tenant", podId=pod["id"])
    domain = await server.api.post("/v1/domains", json={"domain": "tenant.example", "podId": pod["id"]})
    assert domain.json()["podId"] == pod["id"]
    tenant = await pod_client(server, pod["id"])
    assert told(await server.api.delete(f"/v1/pods/{pod['id']}")) == (409, "pod_not_empty")
    await server.api.delete(f"/v1/inboxes/{inbox_id}")
    assert told(await server.api.delete(f"/v1/pods/{pod['id']}")) == (409, "pod_has_domains")
    await server.api.delete(f"/v1/domains/{domain.json()['id']}")
    assert (await server.api.delete(f"/v1/pods/{pod['id']}")).status_code == 204
    assert told(await server.api.get(f"/v1/pods/{pod['id']}")) == (404, "not_found")
    assert (await server.api.get("/v1/pods")).json()["total"] == 1
    assert (await tenant.get("/v1/me")).status_code == 401
    await tenant.aclose()


async def test_a_pod_key_sees_and_makes_only_what_is_in_its_pod(server: Server) -> None:
    mine, other = await new_pod(server, clientId="mine"), await new_pod(server, clientId="other")
    theirs = await inbox_in(server.api, "theirs", podId="other")
    hidden = (await server.api.post("/v1/domains", json={"domain": "hidden.example"})).json()["id"]
    async with await pod_client(server, "mine") as tenant:
        own = await inbox_in(tenant, "own")
        assert (await tenant.get(f"/v1/inboxes/{own}")).json()["podId"] == mine["id"]
        listed = (await tenant.get("/v1/inboxes")).json()
        assert ([inbox["id"] for inbox in listed["data"]], listed["total"]) == ([own], 1)
        pods = (await tenant.get("/v1/pods")).json()
        assert ([pod["id"] for pod in pods["data"]], pods["total"]) == ([mine["id"]], 1)
        for path in (f"/v1/inboxes/{theirs}", f"/v1/pods/{other['id']}", "/v1/pods/other"):
            assert told(await tenant.get(path)) == (404, "not_found"), path
        assert told(await tenant.get(f"/v1/domains/{hidden}")) == (404, "not_found")
        assert (await tenant.get("/v1/domains")).json() == {"data": [], "total": 0}
        for foreign in (other["id"], "other", "pod_" + "0" * 32, "nobody"):
            answer = await tenant.post("/v1/inboxes", json={"mailboxName": "more", "podId": foreign})
            assert (answer.status_code, answer.json()["field"]) == (400, "podId")
        for answer in [
            await tenant.post("/v1/pods", json={}),
            await tenant.patch("/v1/pods/mine", json={"name": "x"}),
            await tenant.delete("/v1/pods/mine"),
            await tenant.get("/v1/pods/mine/api-keys"),
            await tenant.post(f"/v1/inboxes/{own}/api-keys", json={}),
            await tenant.get("/v1/api-keys"),
            await tenant.get("/v1/account"),
        ]:
            assert told(answer) == (403, "forbidden")
        me = (await tenant.get("/v1/me")).json()
        assert (me["scope"], me["podId"], me["apiKeyScope"]) == (
            "pod",
            mine["id"],
            {"podId": mine["id"], "inboxId": None},
        )


async def test_a_pod_key_reads_events_of_its_pod_alone(server: Server) -> None:
    await new_pod(server, clientId="mine")
    await inbox_in(server.api, "mine", podId="mine")
    await inbox_in(server.api, "outside")
    for name in ("outside", "mine"):
        await server.deliver(b"From: a@example.com\r\nSubject: hi\r\n\r\nhi", name)
    async with await pod_client(server, "mine") as tenant:
        page = (await tenant.get("/v1/events", params={"wait": "60"})).json()["data"]
        assert [event["message"]["to"] for event in page] == ["mine@postroom.localhost"]
        entries = (await tenant.get("/v1/audit")).json()["data"]
        assert {entry["action"] for entry in entries} == {"pod.created", "inbox.created", "key.created"}


async def test_an_inbox_key_has_no_business_with_pods(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    token = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()["token"]
    async with server.client(token) as agent:
        assert told(await agent.get("/v1/pods")) == (403, "forbidden")


async def test_another_accounts_pod_does_not_exist(server: Server) -> None:
    pod = await new_pod(server, clientId="mine")
    async with server.client(await second_account(server)) as stranger:
        missing = await stranger.get("/v1/pods/pod_" + "0" * 32)
        for path in (f"/v1/pods/{pod['id']}", "/v1/pods/mine", f"/v1/pods/{pod['id']}/api-keys"):
            answer = await stranger.get(path)
            assert (answer.status_code, answer.json()) == (404, missing.json())
        assert (await stranger.post("/v1/pods", json={"clientId": "mine"})).status_code == 201


async def test_a_refused_webhook_url_creates_no_inbox(server: Server) -> None:
    body = {"mailboxName": "hooked", "webhookUrl": "ftp://example.com/"}
    assert told(await server.api.post("/v1/inboxes", json=body)) == (422, "invalid_webhook_url")
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 0
    body["webhookUrl"] = "http://127.0.0.1:9/hook"
    made = (await server.api.post("/v1/inboxes", json=body)).json()
    assert (made["webhookUrl"], made["webhookSecret"][:6]) == (body["webhookUrl"], "whsec_")


async def test_a_pod_is_held_for_approval_as_it_says(server: Server) -> None:
    pod = await new_pod(server)
    approval = {"when": ["strangers", {"overPerDay": 5}], "expiresHours": 24, "reviewers": ["A@Example.com"]}
    changed = await server.api.patch(f"/v1/pods/{pod['id']}", json={"approval": approval})
    assert changed.json()["approval"] == {**approval, "reviewers": ["a@example.com"], "approvals": 1}
    wrong = await server.api.patch(f"/v1/pods/{pod['id']}", json={"approval": {"when": ["sometimes"]}})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "approval")
    entries = (await server.api.get("/v1/audit?action=pod.changed")).json()["data"]
    assert (entries[0]["before"]["approval"], entries[0]["after"]["approval"]["expiresHours"]) == (None, 24)
