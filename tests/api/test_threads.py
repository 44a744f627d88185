"""Threads over REST, made by mail that comes in."""

from typing import Any

import pytest

from postroom.operations.threads import ChangedThread
from tests.conftest import Server
from tests.raw_mails import assert_is_exactly, assert_is_message, raw_mail

pytestmark = pytest.mark.sqlite_alone


async def threads_of(server: Server, inbox_id: str, query: str = "") -> list[dict[str, Any]]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads{query}")).json()
    data: list[dict[str, Any]] = page["data"]
    assert page["total"] == len(data)
    return data


async def receive(server: Server, name: str = "hello", **fields: str) -> str:
    """The thread that a new mail comes into."""
    server.clock.turn(1)
    text = f"mail of {server.clock.now()}"
    await server.deliver(raw_mail(text, **fields), name)
    inboxes = (await server.api.get("/v1/inboxes")).json()["data"]
    inbox_id = next(inbox["id"] for inbox in inboxes if inbox["address"].startswith(f"{name}@"))
    newest = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=1")).json()["data"][0]
    assert newest["bodyText"] == text + "\n"
    thread_id: str = newest["threadId"]
    return thread_id


async def test_a_reply_joins_the_thread_of_what_it_answers(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    first = await receive(server, subject="Plan", message_id="<1@x>")
    second = await receive(server, subject="Re: Plan", message_id="<2@x>", in_reply_to="<1@x>")
    third = await receive(server, subject="AW: Plan", in_reply_to="<2@x>")
    assert first == second == third
    [thread] = await threads_of(server, inbox_id)
    assert thread == {
        "id": first,
        "inboxId": inbox_id,
        "subject": "Plan",
        "from": {"name": "Alice", "address": "alice@example.com"},
        "participants": [{"name": "Alice", "address": "alice@example.com"}],
        "preview": "mail of 1794650400003",
        "lastDirection": "inbound",
        "codes": [],
        "verdict": "clean",
        "hasAttachments": False,
        "lastMessageAt": "2026-11-14T10:00:00.003Z",
        "isRead": False,
        "messageCount": 3,
        "createdAt": "2026-11-14T10:00:00.001Z",
        "labels": [],
        "relatedThreadIds": [],
        "assigneeId": None,
        "snoozedUntil": None,
        "isDone": False,
        "awaiting": None,
        "legalHold": False,
    }
    assert (await server.api.get(f"/v1/threads/{first}")).json() == thread


async def test_in_reply_to_goes_before_references_and_the_first_that_had_an_id_before_others(
    server: Server,
) -> None:
    await server.new_inbox("hello")
    a = await receive(server, message_id="<a@x>")
    b = await receive(server, message_id="<b@x>")
    assert await receive(server, references="<a@x>", in_reply_to="<b@x>") == b
    assert await receive(server, references="<nothing@x> <a@x>") == a
    assert await receive(server, references="<a@x>", in_reply_to="<nothing@x>") == a
    assert await receive(server, references="<nothing@x>\r\n <b@x>\r\n <other@x>") == b
    first = await receive(server, message_id="<same@x>")
    second = await receive(server, message_id="<same@x>")
    assert first != second
    assert await receive(server, in_reply_to="<same@x>") == first


async def test_what_answers_nothing_known_starts_a_thread(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    ids = {
        await receive(server, subject="Same", message_id="<1@x>"),
        await receive(server, subject="Re: Same", message_id="<2@x>"),
        await receive(server, subject="Same", in_reply_to="<unknown@x>"),
        await receive(server, in_reply_to="<>", references=""),
        await receive(server, in_reply_to=""),
        await receive(server),
        await receive(server, in_reply_to='""'),
    }
    assert len(ids) == 7
    assert len(await threads_of(server, inbox_id)) == 7


async def test_a_forged_id_never_crosses_inboxes(server: Server) -> None:
    hello, other = await server.new_inbox("hello"), await server.new_inbox("other")
    await receive(server, "hello", message_id="<secret@x>")
    await receive(server, "other", in_reply_to="<secret@x>", references="<secret@x>")
    await server.deliver(raw_mail("both", in_reply_to="<secret@x>"), "hello", "other")
    assert [thread["messageCount"] for thread in await threads_of(server, hello)] == [2]
    assert [thread["messageCount"] for thread in await threads_of(server, other)] == [1, 1]


async def test_an_inbound_message_makes_its_thread_unread_again(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id = await receive(server, message_id="<1@x>")
    await server.api.patch(f"/v1/threads/{thread_id}", json={"is_read": True})
    assert await threads_of(server, inbox_id, "?is_read=false") == []
    assert await receive(server, in_reply_to="<1@x>") == thread_id
    assert [thread["id"] for thread in await threads_of(server, inbox_id, "?is_read=false")] == [thread_id]
    assert await threads_of(server, inbox_id, "?is_read=true") == []


async def test_the_read_flag_is_set_and_cleared_any_number_of_times_by_a_flag_alone(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id = await receive(server)
    for body in (
        {"is_read": True},
        {"is_read": True},
        {"isRead": False},
        {"isRead": False},
        {"isRead": True},
    ):
        (flag,) = body.values()
        answer = await server.api.patch(f"/v1/threads/{thread_id}", json=body)
        assert answer.status_code == 200
        assert_is_exactly(ChangedThread, answer.content)
        thread = (await server.api.get(f"/v1/threads/{thread_id}")).json()
        assert answer.json() == {**thread, "isRead": flag, "ok": True}
        assert len(await threads_of(server, inbox_id, "?is_read=true")) == flag
        assert len(await threads_of(server, inbox_id, "?is_read=false")) == (not flag)
        assert len(await threads_of(server, inbox_id)) == 1
    await server.api.patch(f"/v1/threads/{thread_id}", json={"is_read": False})
    for wrong in ({}, {"is_read": None}, {"is_read": "true"}, {"is_read": 1}, {"read": True}):
        answer = await server.api.patch(f"/v1/threads/{thread_id}", json=wrong)
        assert (answer.status_code, answer.json()["field"]) == (400, "is_read"), wrong
    assert not (await server.api.get(f"/v1/threads/{thread_id}")).json()["isRead"]


async def test_the_filter_has_an_alias_and_refuses_other_words(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await receive(server)
    read = await receive(server)
    await server.api.patch(f"/v1/threads/{read}", json={"is_read": True})
    for name in ("is_read", "isRead"):
        assert [thread["id"] for thread in await threads_of(server, inbox_id, f"?{name}=true")] == [read]
        assert [thread["isRead"] for thread in await threads_of(server, inbox_id, f"?{name}=false")] == [
            False
        ]
    for value in ("maybe", "", "2"):
        answer = await server.api.get(f"/v1/inboxes/{inbox_id}/threads?is_read={value}")
        assert answer.status_code == 400, value


async def test_threads_come_newest_first_in_pages_with_a_total(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    ids = [await receive(server, message_id=f"<{number}@x>") for number in range(5)]
    await receive(server, in_reply_to="<1@x>")
    newest_first = [ids[1], ids[4], ids[3], ids[2], ids[0]]
    for query, expected in (
        ("", newest_first),
        ("?limit=2", newest_first[:2]),
        ("?limit=2&offset=1", newest_first[1:3]),
        ("?limit=100&offset=4", newest_first[4:]),
        ("?offset=5", []),
        ("?limit=100000", newest_first),
        ("?is_read=false&limit=1&offset=2", newest_first[2:3]),
    ):
        page = (await server.api.get(f"/v1/inboxes/{inbox_id}/threads{query}")).json()
        assert [thread["id"] for thread in page["data"]] == expected, query
        assert page["total"] == 5


async def test_the_messages_of_a_thread_come_oldest_first(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id = await receive(server, subject="Plan", message_id="<1@x>")
    await receive(server, subject="Apart")
    for _ in range(3):
        await receive(server, in_reply_to="<1@x>")
    answer = await server.api.get(f"/v1/threads/{thread_id}/messages")
    page = answer.json()
    moments = [message["createdAt"] for message in page["data"]]
    assert moments == sorted(moments)
    assert len(set(moments)) == 4
    del page["data"]
    assert page == {
        "threadId": thread_id,
        "inboxId": inbox_id,
        "subject": "Plan",
        "isRead": False,
        "total": 4,
        "relatedThreadIds": [],
    }
    second = (await server.api.get(f"/v1/threads/{thread_id}/messages?limit=1&offset=1")).json()
    assert [message["createdAt"] for message in second["data"]] == moments[1:2]
    assert second["total"] == 4
    for message in answer.json()["data"]:
        assert_is_message((await server.api.get(f"/v1/messages/{message['id']}")).content)


async def test_threads_of_others_and_malformed_ids_are_not_found(server: Server) -> None:
    await server.new_inbox("hello")
    thread_id = await receive(server)
    other = (await server.api.post("/v1/inboxes", json={"mailboxName": "other"})).json()["id"]
    scoped = (await server.api.post(f"/v1/inboxes/{other}/api-keys", json={"name": "k"})).json()["token"]
    async with server.client(scoped) as api:
        for method, path in (("GET", ""), ("PATCH", ""), ("GET", "/messages")):
            answer = await api.request(method, f"/v1/threads/{thread_id}{path}", json={"is_read": True})
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    for wrong in ("thr_0", "nothing", thread_id.replace("thr_", "msg_"), thread_id.upper(), "%F0%9F%93%AE"):
        assert (await server.api.get(f"/v1/threads/{wrong}")).status_code == 404
    assert (await server.api.get("/v1/inboxes/inb_0/threads")).status_code == 404
    assert not (await server.api.get(f"/v1/threads/{thread_id}")).json()["isRead"]
