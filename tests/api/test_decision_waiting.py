"""Waiting for a decision: the answer comes with the change, to who may see it, and so many wait at once."""

import asyncio
from typing import Any

import pytest

from postroom import limits
from tests.conftest import Server, until_somebody_listens
from tests.raw_mails import raw_mail


async def held(server: Server) -> str:
    inbox_id = await server.new_inbox("held")
    rules = {"approval": {"when": ["always"]}}
    assert (await server.api.patch(f"/v1/inboxes/{inbox_id}", json=rules)).is_success
    body = {"to": "bob@there.example", "subject": "Hello", "body": "Hello"}
    headers = {"Idempotency-Key": "1"}
    sent = await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)
    message_id: str = sent.json()["messageId"]
    return message_id


async def test_a_waiting_request_is_answered_by_the_decision(server: Server) -> None:
    message_id = await held(server)
    path = f"/v1/messages/{message_id}"
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(server.api.get(f"{path}?wait=60", timeout=120))
        await until_somebody_listens(server)
        assert (await server.api.post(f"/v1/messages/{message_id}/cancel")).is_success
    answer: dict[str, Any] = waiting.result().json()
    assert (answer["status"], answer["hold"]["state"]) == ("failed", "cancelled")
    assert (await server.api.get(f"{path}?wait=60")).json() == answer  # it is decided: nothing to wait for


@pytest.mark.sqlite_alone
async def test_a_wait_ends_with_its_time_or_the_message_and_is_bounded(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_id = await held(server)
    path = f"/v1/messages/{message_id}"
    assert (await server.api.get(f"{path}?wait=0.01")).json()["hold"]["state"] == "held"
    for wrong in ("61", "-1", "nan", "inf", "x", ""):
        refused = (await server.api.get(f"{path}?wait={wrong}")).json()
        assert (refused["error"], refused["field"]) == ("bad_request", "wait"), wrong
    assert (await server.api.get("/v1/messages/msg_unknown?wait=60")).status_code == 404

    await server.deliver(raw_mail(), "held")
    inbox_id = (await server.api.get(path)).json()["inboxId"]
    came = (await server.api.get(f"/v1/inboxes/{inbox_id}/wait?after=0", timeout=120)).json()["id"]
    assert (await server.api.get(f"/v1/messages/{came}?wait=60")).json()["status"] == "received"

    monkeypatch.setattr(limits, "DECISIONS_AWAITED", 1)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(server.api.get(f"{path}?wait=60", timeout=120))
        await until_somebody_listens(server)
        refused = (await server.api.get(f"{path}?wait=1")).json()
        assert (refused["error"], refused["field"]) == ("rate_limit_exceeded", "wait")
        assert (await server.api.post(f"{path}/cancel")).is_success
    assert waiting.result().json()["hold"]["state"] == "cancelled"
