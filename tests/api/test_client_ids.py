"""A clientId makes creation idempotent: the same one again, in the same scope, returns what is there."""

import asyncio
from typing import Any

import pytest

from tests.api.test_pods import inbox_in, new_pod, pod_client
from tests.conftest import Server

Json = dict[str, Any]


async def creations(server: Server) -> dict[str, tuple[str, Json, Json]]:
    """For each kind the path, a body, and what another body would change."""
    bob = await server.new_inbox("bob")
    template = {"inboxId": bob, "name": "shipped", "body": "Hello {{name}}"}
    return {
        "inbox": ("/v1/inboxes", {"mailboxName": "orders"}, {"mailboxName": "others"}),
        "webhook": ("/v1/webhooks", {"url": "http://127.0.0.1:9/a"}, {"url": "http://127.0.0.1:9/b"}),
        "template": ("/v1/templates", template, {"name": "other"}),
        "draft": (f"/v1/inboxes/{bob}/drafts", {"subject": "One"}, {"subject": "Two"}),
    }


@pytest.mark.sqlite_alone
async def test_the_same_client_id_again_returns_what_is_there(server: Server) -> None:
    for kind, (path, body, other) in (await creations(server)).items():
        first = await server.api.post(path, json={**body, "clientId": "c/1"})
        assert (first.status_code, first.json()["clientId"]) == (201, "c/1"), (kind, first.text)
        again = await server.api.post(path, json={**body, **other, "clientId": "c/1"})
        shown = {name: value for name, value in first.json().items() if name != "secret"}
        assert (again.status_code, again.json()) == (200, shown), kind
        for bad in ("", "a b", "x" * 256, "schl\u00fcssel"):
            refused = await server.api.post(path, json={**body, "clientId": bad})
            assert (refused.status_code, refused.json()["field"]) == (400, "clientId"), (kind, bad)
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 2


async def test_of_two_requests_at_once_one_creates(server: Server) -> None:
    for kind, (path, body, _) in (await creations(server)).items():
        asked = [server.api.post(path, json={**body, "clientId": "once"}) for _ in range(3)]
        answers = await asyncio.gather(*asked)
        assert sorted(answer.status_code for answer in answers) == [200, 200, 201], kind
        assert len({answer.json()["id"] for answer in answers}) == 1, kind


@pytest.mark.sqlite_alone
async def test_a_client_id_counts_within_its_pod_or_inbox(server: Server) -> None:
    """Another pod's or inbox's is free, and tells nothing."""
    for name in ("one", "two"):
        await new_pod(server, clientId=name)
    async with await pod_client(server, "one") as one, await pod_client(server, "two") as two:
        mine = await inbox_in(one, "mine", clientId="shop")
        theirs = await inbox_in(two, "theirs", clientId="shop")
        assert mine != theirs
        drafts = [
            await api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"clientId": "d"})
            for api, inbox_id in ((one, mine), (two, theirs), (one, mine))
        ]
        assert [answer.status_code for answer in drafts] == [201, 201, 200]
        stranger = await two.post(f"/v1/inboxes/{mine}/drafts", json={"clientId": "d"})
        assert stranger.status_code == 404


@pytest.mark.sqlite_alone
async def test_files_of_a_repeated_draft_are_not_taken(server: Server) -> None:
    bob = await server.new_inbox("bob")
    path, body = f"/v1/inboxes/{bob}/drafts", {"subject": "One", "clientId": "d"}
    made = await server.api.post(path, json=body)
    upload = {"inboxId": bob, "filename": "a.txt", "contentType": "text/plain", "sizeBytes": 2}
    link = (await server.api.post("/v1/uploads", json=upload)).json()
    assert (await server.api.put(link["url"], content=b"hi")).status_code < 300
    again = await server.api.post(path, json={**body, "attachments": [{"uploadId": link["id"]}]})
    assert (again.status_code, again.json()) == (200, made.json())
    taken = await server.api.post(path, json={"attachments": [{"uploadId": link["id"]}]})
    assert (taken.status_code, [file["filename"] for file in taken.json()["attachments"]]) == (201, ["a.txt"])
