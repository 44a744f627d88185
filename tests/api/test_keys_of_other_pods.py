"""An Idempotency-Key used in another pod or inbox: a narrower API key cannot tell. Nothing is sent twice."""

from typing import Any

import pytest
from httpx2 import AsyncClient, Response

from tests.api.test_pods import inbox_in, new_pod, pod_client, told
from tests.conftest import Server

KEY = "order-7"
REUSED = (422, "idempotency_key_reused")


async def send(api: AsyncClient, inbox_id: str, text: str = "hi", **body: Any) -> Response:
    sent = {"to": "desk@postroom.localhost", "subject": "Order", "body": text, **body}
    return await api.post(f"/v1/inboxes/{inbox_id}/send", json=sent, headers={"Idempotency-Key": KEY})


async def inbox_client(server: Server, inbox_id: str) -> AsyncClient:
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})
    return server.client(made.json()["token"])


def is_new(answer: Response) -> bool:
    assert answer.status_code == 200, answer.text
    return "Idempotent-Replayed" not in answer.headers


def is_replay_of(answer: Response, first: Response) -> bool:
    assert answer.status_code == 200, answer.text
    return answer.headers["Idempotent-Replayed"] == "true" and answer.json() == first.json()


@pytest.mark.sqlite_alone
async def test_a_pod_key_does_not_learn_that_another_pod_has_used_its_idempotency_key(server: Server) -> None:
    for name in ("mine", "other"):
        await new_pod(server, clientId=name)
    await server.new_inbox("desk")
    theirs = await inbox_in(server.api, "theirs", podId="other")
    mine, second = [await inbox_in(server.api, name, podId="mine") for name in ("mine", "second")]
    first = await send(server.api, theirs)
    assert is_new(first)
    async with await pod_client(server, "mine") as tenant, await inbox_client(server, mine) as agent:
        own = await send(tenant, mine)
        assert is_new(own)
        assert is_replay_of(await send(tenant, mine), own)
        assert told(await send(tenant, mine, "other")) == REUSED
        assert told(await send(tenant, second)) == REUSED
        # The same request with a key of the inbox or of the account is the same send.
        assert is_replay_of(await send(agent, mine), own)
        assert is_replay_of(await send(server.api, mine), own)
        assert told(await send(server.api, second)) == REUSED
        assert is_replay_of(await send(server.api, theirs), first)


@pytest.mark.sqlite_alone
async def test_an_inbox_key_does_not_learn_that_another_inbox_has_used_its_idempotency_key(
    server: Server,
) -> None:
    await new_pod(server, clientId="mine")
    await server.new_inbox("desk")
    mine, second = [await inbox_in(server.api, name, podId="mine") for name in ("mine", "second")]
    outside = await server.new_inbox("outside")
    assert is_new(await send(server.api, outside))
    async with await inbox_client(server, mine) as agent, await pod_client(server, "mine") as tenant:
        own = await send(agent, mine)
        assert is_new(own)
        assert is_replay_of(await send(agent, mine), own)
        assert is_replay_of(await send(tenant, mine), own)
        assert told(await send(agent, mine, "other")) == REUSED
    async with await inbox_client(server, second) as agent:
        assert is_new(await send(agent, second))


@pytest.mark.sqlite_alone
async def test_a_key_is_one_for_all_who_see_the_inbox_that_used_it(server: Server) -> None:
    await new_pod(server, clientId="mine")
    await server.new_inbox("desk")
    mine = await inbox_in(server.api, "mine", podId="mine")
    async with await pod_client(server, "mine") as tenant, await inbox_client(server, mine) as agent:
        first = await send(agent, mine)
        assert is_new(first)
        for api in (agent, tenant, server.api):
            assert is_replay_of(await send(api, mine), first)
            assert told(await send(api, mine, "other")) == REUSED


@pytest.mark.sqlite_alone
async def test_the_answer_of_a_held_send_is_replayed_under_a_key_that_another_pod_uses(
    server: Server,
) -> None:
    await new_pod(server, clientId="mine")
    await server.new_inbox("desk")
    mine, outside = await inbox_in(server.api, "mine", podId="mine"), await server.new_inbox("outside")
    assert is_new(await send(server.api, outside))
    async with await pod_client(server, "mine") as tenant:
        later = await send(tenant, mine, undoSeconds=60)
        assert later.json()["hold"]["state"] == "scheduled", later.text
        assert is_replay_of(await send(tenant, mine, undoSeconds=60), later)


@pytest.mark.sqlite_alone
async def test_a_client_id_is_taken_only_within_the_scope_of_the_key(server: Server) -> None:
    """Of webhooks and domains: a pod key does not learn what another pod has named."""
    for name in ("mine", "other"):
        await new_pod(server, clientId=name)
    hook = {"url": "http://127.0.0.1:8026/hook", "clientId": "orders"}
    async with await pod_client(server, "mine") as mine, await pod_client(server, "other") as other:
        theirs = await other.post("/v1/webhooks", json=hook)
        own = await mine.post("/v1/webhooks", json=hook)
        assert (theirs.status_code, own.status_code) == (201, 201), own.text
        again = await mine.post("/v1/webhooks", json=hook)
        assert (again.status_code, again.json()["id"]) == (200, own.json()["id"])
        asked = {"url": hook["url"], "event_types": ["message.received"], "client_id": "orders"}
        again = await mine.post("/v0/webhooks", json=asked)
        assert again.json()["webhook_id"] == own.json()["id"]
        domains = [
            await api.post("/v0/domains", json={"domain": f"{name}.example.com", "client_id": "shop"})
            for api, name in ((other, "theirs"), (mine, "own"), (mine, "second"))
        ]
        assert [answer.status_code for answer in domains] == [200] * 3, domains[1].text
        assert [answer.json()["domain"] for answer in domains] == [
            "theirs.example.com",
            "own.example.com",
            "own.example.com",
        ]
