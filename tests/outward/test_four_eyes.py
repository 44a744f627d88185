"""Sends that several people have to approve: each once, none what he wrote, whatever happens meanwhile."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from postroom.outward import reviewers
from tests.api.test_dashboard import browser, do_it_now
from tests.api.test_people import invite, links_of
from tests.conftest import Server


async def held_mail(server: Server, approvals: int = 2, **approval: Any) -> dict[str, Any]:
    """Of the first key, in an inbox where so many have to approve."""
    inbox_id = await server.new_inbox(f"held{approvals}")
    rules = {"when": ["always"], "approvals": approvals, **approval}
    changed = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": rules})
    assert changed.json()["approval"]["approvals"] == approvals
    return await send(server.api, inbox_id)


async def send(client: httpx2.AsyncClient, inbox_id: str) -> dict[str, Any]:
    body = {"to": "bob@there.example", "subject": "Hello", "body": "Hello"}
    headers = {"Idempotency-Key": f"key-{inbox_id}"}
    answer = await client.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    sent: dict[str, Any] = answer.json()
    assert sent["hold"]["state"] == "held"
    return sent


@asynccontextmanager
async def person(server: Server, name: str, **more: Any) -> AsyncIterator[httpx2.AsyncClient]:
    await invite(server, f"{name}@example.org", "approver", **more)
    token = (await links_of(server, "invitation"))[-1]
    async with browser(server) as page:
        joined = await page.post("/app/sign-in", data={"invitation": token, "name": name})
        assert joined.status_code == 303, joined.text
        yield page


async def approve(page: httpx2.AsyncClient, sent: dict[str, Any]) -> httpx2.Response:
    form = {"decision": "approve", "contentHash": sent["hold"]["contentHash"]}
    answer = await page.post(f"/app/approvals/{sent['id']}", data=form)
    if answer.status_code == 303 and "sign-in" not in answer.headers["location"]:
        await do_it_now(page)
    return answer


async def hold_of(server: Server, sent: dict[str, Any]) -> dict[str, Any]:
    hold: dict[str, Any] = (await server.api.get(f"/v1/messages/{sent['id']}")).json()["hold"]
    return hold


async def user_id(server: Server, name: str) -> str:
    listed = (await server.api.get("/v1/users")).json()["data"]
    return next(str(user["id"]) for user in listed if user["name"] == name)


@pytest.mark.sqlite_alone
async def test_two_different_people_have_to_approve(server: Server) -> None:
    sent = await held_mail(server)
    async with person(server, "ann") as ann, person(server, "ben") as ben:
        assert (await approve(ann, sent)).status_code == 303
        waiting = await hold_of(server, sent)
        assert (waiting["state"], waiting["approvalsNeeded"]) == ("held", 2)
        assert [actor["name"] for actor in waiting["approvedBy"]] == ["ann"]
        assert "1 of 2: ann" in (await ben.get("/app/approvals")).text
        assert (await approve(ann, sent)).status_code == 403  # the same person once more
        assert (await approve(ben, sent)).status_code == 303
    approved = await hold_of(server, sent)
    assert approved["state"] == "approved"
    assert approved["decidedBy"]["type"] == "user"
    actions = [each["action"] for each in (await server.api.get("/v1/audit")).json()["data"]]
    assert actions.count("message.approval_given") == 1
    assert actions.count("message.approved") == 1


@pytest.mark.sqlite_alone
async def test_two_at_once_count_each_once(server: Server) -> None:
    sent = await held_mail(server, 3)
    async with person(server, "ann") as ann, person(server, "ben") as ben:
        told = await asyncio.gather(*(approve(page, sent) for page in (ann, ben, ann, ben)))
        assert {answer.status_code for answer in told} <= {303, 403}
    waiting = await hold_of(server, sent)
    assert waiting["state"] == "held"
    assert {actor["name"] for actor in waiting["approvedBy"]} == {"ann", "ben"}


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("change", ["removed", "downgraded"])
async def test_who_may_no_longer_approve_has_not_approved(server: Server, change: str) -> None:
    sent = await held_mail(server)
    async with person(server, "ann") as ann, person(server, "ben") as ben, person(server, "cy") as cy:
        await approve(ann, sent)
        path = f"/v1/users/{await user_id(server, 'ann')}"
        if change == "removed":
            await server.api.delete(path)
        else:
            await server.api.patch(path, json={"role": "viewer"})
            assert (await approve(ann, sent)).headers["location"].startswith("/app/sign-in")
        await approve(ben, sent)
        assert (await hold_of(server, sent))["state"] == "held"
        await approve(cy, sent)
        assert (await hold_of(server, sent))["state"] == "approved"


@pytest.mark.sqlite_alone
async def test_nobody_approves_what_he_wrote(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    async with person(server, "ann") as ann, person(server, "ben") as ben:
        form = {"inboxId": inbox_id, "to": "bob@there.example", "subject": "Mine", "body": "Mine"}
        written = await ann.post("/app/compose", data={**form, "action": "send"})
        assert written.status_code == 303, written.text
        [held] = (await server.api.get("/v1/approvals")).json()["data"]
        sent = {"id": held["message"]["id"], "hold": held["hold"]}
        assert (await approve(ann, sent)).status_code == 403
        assert (await hold_of(server, sent))["state"] == "held"
        assert (await approve(ben, sent)).status_code == 303
        assert (await hold_of(server, sent))["state"] == "scheduled"  # until it can be taken back no more


@pytest.mark.sqlite_alone
async def test_keys_of_one_family_are_one_person(server: Server) -> None:
    sender = (await server.api.post("/v1/api-keys", json={"name": "sender"})).json()
    inbox_id = await server.new_inbox("family")
    rules = {"when": ["always"], "approvals": 2}
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": rules})
    async with server.client(sender["token"]) as agent:
        sent = await send(agent, inbox_id)
    body = {"contentHash": sent["hold"]["contentHash"]}
    path = f"/v1/messages/{sent['id']}/approve"
    assert (await server.api.post(path, json=body)).status_code == 200
    sister = (await server.api.post("/v1/api-keys", json={"name": "sister"})).json()
    async with server.client(sister["token"]) as other:
        assert (await other.post(path, json=body)).status_code == 403
    assert (await hold_of(server, sent))["state"] == "held"


@pytest.mark.sqlite_alone
async def test_a_reviewer_who_is_a_user_is_one_person(server: Server) -> None:
    sent = await held_mail(server, reviewers=["ann@example.org", "rita@example.org"])
    told = "select target from deliveries where kind = 'notice'"
    rows = await server.resources.db.read(lambda tx: tx.all(told))
    assert {row["target"] for row in rows} >= {"ann@example.org", "rita@example.org"}
    async with person(server, "ann") as ann:
        await approve(ann, sent)
        assert (await by_link(server, sent, "ann@example.org")).status_code == 403
        answer = await by_link(server, sent, "rita@example.org")
        assert "The email is sent now" in answer.text
    assert (await hold_of(server, sent))["state"] == "approved"


async def by_link(server: Server, sent: dict[str, Any], reviewer: str) -> httpx2.Response:
    token = await server.resources.db.read(reviewers.token_of, sent["id"], reviewer)
    async with browser(server) as page:
        shown = await page.get(f"/review/{token}")
        found = re.search(r'name="content_hash" value="(\w+)"', shown.text)
        assert found
        return await page.post(f"/review/{token}", data={"decision": "approve", "content_hash": found[1]})


@pytest.mark.sqlite_alone
async def test_one_of_another_pod_approves_nothing_here(server: Server) -> None:
    sent = await held_mail(server, 1)
    pod = (await server.api.post("/v1/pods", json={"name": "other"})).json()["id"]
    async with person(server, "ann", podIds=[pod]) as ann:
        assert (await approve(ann, sent)).status_code == 404
    assert (await hold_of(server, sent))["state"] == "held"


@pytest.mark.sqlite_alone
async def test_how_many_must_be_one_to_three(server: Server) -> None:
    for number in (0, 4, -1):
        answer = await server.api.patch("/v1/account", json={"approval": {"when": [], "approvals": number}})
        assert (answer.status_code, answer.json()["field"]) == (400, "approval")
