"""Threads and messages deleted for good: nothing of them is left, and the counters stay right."""

from typing import Any

import pytest

from postroom.mailbox import raw_mails
from postroom.upkeep import deletion
from tests.api.test_pods import told
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

LARGE = b"x" * raw_mails.IN_ROW_BYTES


async def counters(server: Server, inbox_id: str) -> tuple[int, int, int, int]:
    row = await server.resources.db.read(
        lambda tx: tx.one(
            "select thread_count, unread_count, inbound_count, outbound_count from inboxes where id = :id",
            id=inbox_id,
        )
    )
    assert row is not None
    return row["thread_count"], row["unread_count"], row["inbound_count"], row["outbound_count"]


def mail(number: int, answers: int | None = None, body: bytes = b"hi") -> bytes:
    reply = b"" if answers is None else b"In-Reply-To: <%d@example.com>\r\n" % answers
    head = b"From: alice@example.com\r\nSubject: s\r\nMessage-ID: <%d@example.com>\r\n" % number
    return head + reply + b"\r\n" + body


async def listed(server: Server, inbox_id: str, what: str) -> list[dict[str, Any]]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/{what}")).json()
    assert page["total"] == len(page["data"])
    found: list[dict[str, Any]] = page["data"]
    return found


async def rows_about(server: Server, message_id: str) -> int:
    def count(tx: Any) -> int:
        return sum(
            len(tx.all(f"select 1 as one from {table} where message_id = :id", id=message_id))
            for table in deletion.OF_A_MESSAGE
        )

    return await server.resources.db.read(count)


@pytest.mark.both_databases
async def test_a_deleted_message_leaves_its_thread_with_the_rest(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1), "own")
    server.clock.turn(1000)
    await server.deliver(mail(2, answers=1, body=LARGE), "own")
    newest, oldest = await listed(server, inbox_id, "messages")
    assert list(server.resources.blobs.names(-60.0)) != []
    assert (await server.api.delete(f"/v1/messages/{newest['id']}")).status_code == 204
    assert told(await server.api.get(f"/v1/messages/{newest['id']}")) == (404, "not_found")
    assert told(await server.api.delete(f"/v1/messages/{newest['id']}")) == (404, "not_found")
    (thread,) = await listed(server, inbox_id, "threads")
    assert (thread["messageCount"], thread["lastMessageAt"]) == (1, oldest["createdAt"])
    assert thread["createdAt"] == oldest["createdAt"]
    assert await counters(server, inbox_id) == (1, 1, 1, 0)
    assert await rows_about(server, newest["id"]) == 0
    assert list(server.resources.blobs.names(-60.0)) == []
    events = (await server.api.get("/v1/events")).json()["data"]
    assert [event["message"]["id"] for event in events] == [oldest["id"], newest["id"]]


async def test_the_last_message_takes_its_thread_with_it(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1), "own")
    (message,) = await listed(server, inbox_id, "messages")
    await server.api.delete(f"/v1/messages/{message['id']}")
    assert told(await server.api.get(f"/v1/threads/{message['threadId']}")) == (404, "not_found")
    assert await counters(server, inbox_id) == (0, 0, 0, 0)
    await server.deliver(mail(2, answers=1), "own")
    assert await counters(server, inbox_id) == (1, 1, 1, 0)


async def test_a_long_thread_is_deleted_in_steps(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "STEP_ROWS", 2)
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1), "own")
    for number in range(2, 5):
        await server.deliver(mail(number, answers=1), "own")
    await server.deliver(mail(9), "own")
    thread_id = (await listed(server, inbox_id, "threads"))[-1]["id"]
    assert (await server.api.delete(f"/v1/threads/{thread_id}")).status_code == 204
    assert await counters(server, inbox_id) == (1, 1, 1, 0)
    assert len(await listed(server, inbox_id, "messages")) == 1
    entries = (await server.api.get("/v1/audit?action=thread.deleted")).json()["data"]
    assert [entry["target"] for entry in entries] == [thread_id]


async def test_a_send_that_has_not_left_is_cancelled_and_its_key_still_answers(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    body = {"to": "bob@elsewhere.example", "subject": "s", "body": "b"}
    path, headers = f"/v1/inboxes/{inbox_id}/send", {"Idempotency-Key": "once"}
    sent = (await server.api.post(path, json=body, headers=headers)).json()
    shown = (await server.api.get(f"/v1/messages/{sent['id']}")).json()
    assert sent["providerMessageId"] == shown["rfcMessageId"]
    assert (await server.api.delete(f"/v1/messages/{sent['id']}")).status_code == 204
    assert await rows_about(server, sent["id"]) == 0
    assert await counters(server, inbox_id) == (0, 0, 0, 0)
    again = await server.api.post(path, json=body, headers=headers)
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (sent, "true")
    assert await counters(server, inbox_id) == (0, 0, 0, 0)


async def test_deletion_is_for_keys_that_may_manage(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1), "own")
    (message,) = await listed(server, inbox_id, "messages")
    token = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()["token"]
    async with server.client(token) as agent:
        for path in (f"/v1/messages/{message['id']}", f"/v1/threads/{message['threadId']}"):
            assert told(await agent.delete(path)) == (403, "forbidden")
