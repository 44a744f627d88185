"""Messages over REST: lists, one message, and the mail as it came."""

import asyncio
import json
import smtplib
from typing import Any

import httpx2
import pytest

from postroom.accounts import accounts, keys
from postroom.clock import MINUTE
from postroom.resources import Tx
from postroom.upkeep.upkeep_loop import one_round
from tests.conftest import Server
from tests.plain_transport import http_client
from tests.raw_mails import assert_is_message, html_mail, raw_mail, raw_mail_with_files

pytestmark = pytest.mark.sqlite_alone


async def subjects(api: httpx2.AsyncClient, inbox_id: str, query: str = "") -> tuple[list[str], int]:
    page = (await api.get(f"/v1/inboxes/{inbox_id}/messages{query}")).json()
    return [message["subject"] for message in page["data"]], page["total"]


async def receive_many(server: Server, count: int) -> None:
    for number in range(count):
        server.clock.turn(1)
        await server.deliver(raw_mail(subject=str(number)), "hello")


async def stranger(server: Server) -> httpx2.AsyncClient:
    """A client with the key of another account."""

    def add(tx: Tx, token: str, now: int) -> None:
        keys.add(tx, accounts.add(tx, "other", "free", now).id, None, "key", token, now)

    token = keys.new_token()
    await server.resources.db.write(add, token, server.clock.now())
    return server.client(token)


async def test_the_messages_of_an_inbox_come_newest_first_in_pages_or_the_query_is_wrong(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.new_inbox("other")
    await receive_many(server, 5)
    await server.deliver(raw_mail(subject="elsewhere"), "other")
    for query, expected in (
        ("", ["4", "3", "2", "1", "0"]),
        ("?limit=2", ["4", "3"]),
        ("?limit=2&offset=3", ["1", "0"]),
        ("?offset=5", []),
        ("?direction=inbound&limit=1", ["4"]),
        ("?limit=1000", ["4", "3", "2", "1", "0"]),
    ):
        assert await subjects(server.api, inbox_id, query) == (expected, 5), query
    assert await subjects(server.api, inbox_id, "?direction=outbound") == ([], 0)
    for query in ("direction=sideways", "direction=", "limit=0", "limit=x", "offset=-1", "limit=1.5"):
        answer = await server.api.get(f"/v1/inboxes/{inbox_id}/messages?{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), query
        assert answer.json()["field"] == query.partition("=")[0]


async def test_a_page_has_fifty_messages_unless_asked_and_never_over_a_hundred(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")

    def hand_over() -> None:
        with smtplib.SMTP("127.0.0.1", server.smtp_port) as smtp:
            for number in range(101):
                smtp.sendmail("a@example.com", ["hello@postroom.localhost"], raw_mail(subject=f"{number}"))

    await asyncio.to_thread(hand_over)
    assert len((await subjects(server.api, inbox_id))[0]) == 50
    assert len((await subjects(server.api, inbox_id, "?limit=500"))[0]) == 100
    first, second = [
        (await subjects(server.api, inbox_id, f"?limit=100&offset={offset}"))[0] for offset in (0, 100)
    ]
    assert sorted(first + second, key=int) == [str(number) for number in range(101)]


async def test_every_kind_of_message_has_exactly_the_fields_that_are_described_wherever_it_is_shown(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    mails = [
        raw_mail(),
        b"",
        html_mail("<p>Hi</p>"),
        raw_mail_with_files(("a.csv", "text/csv", b"a,b"), ("b.bin", "application/octet-stream", b"\0")),
        raw_mail("A", mime_version="1.0", content_transfer_encoding="base64"),
        raw_mail("\u2028\u2029\x1f\x7f\ud7ff\U0001f4ee", subject="=?utf-8?B?8J+Trg==?=", cc="a@b.example"),
    ]
    last = None
    for mail in mails:
        await server.deliver(mail, "hello")
        event = await server.next_event(last)
        last = event["event_id"]
        answer = await server.api.get(f"/v1/messages/{event['message']['id']}")
        assert answer.headers["Content-Type"] == "application/json"
        assert_is_message(answer.content)
    for listed in (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]:
        alone = (await server.api.get(f"/v1/messages/{listed['id']}")).json()
        thread = (await server.api.get(f"/v1/threads/{listed['threadId']}/messages")).json()
        assert listed == alone
        assert listed in thread["data"]


async def test_the_mail_is_given_back_as_it_came_behind_our_trace_with_whole_line_ends(
    server: Server,
) -> None:
    await server.new_inbox("hello")
    mails = [raw_mail("dots\r\n..\r\n.x"), raw_mail("x" * 300_000), b"no header, just words\r\n"]
    for mail in mails:
        await server.deliver(mail, "hello")
    events = (await server.api.get("/v1/events")).json()["data"]
    for event, mail in zip(events, mails, strict=True):
        answer = await server.api.get(f"/v1/messages/{event['message']['id']}/raw")
        assert answer.headers["Content-Type"] == "message/rfc822"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        trace = answer.content.removesuffix(mail)
        assert trace.startswith(b"Received: from ")
        assert trace.endswith(b";\r\n\tSat, 14 Nov 2026 10:00:00 +0000\r\n")
    await server.deliver(b"Subject: x\r\n\r\na\rb\nc\0d\r\n", "hello")
    message_id = (await server.next_event(events[-1]["event_id"]))["message"]["id"]
    raw = (await server.api.get(f"/v1/messages/{message_id}/raw")).content
    assert raw.endswith(b"\r\n\r\na\r\nb\r\ncd\r\n")


async def test_messages_of_others_and_malformed_ids_are_not_found(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    other = await server.new_inbox("other")
    await server.deliver(raw_mail(), "hello")
    message_id = (await server.next_event())["message"]["id"]
    scoped = (await server.api.post(f"/v1/inboxes/{other}/api-keys", json={"name": "k"})).json()["token"]
    paths = [
        f"/v1/messages/{message_id}",
        f"/v1/messages/{message_id}/raw",
        f"/v1/inboxes/{inbox_id}/messages",
    ]
    async with server.client(scoped) as other_inbox, await stranger(server) as other_account:
        for api in (other_inbox, other_account):
            for path in paths:
                answer = await api.get(path)
                assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path
    for wrong in ("msg_0", "x" * 10_000, message_id + "0", "..%2F..", "%00"):
        assert (await server.api.get(f"/v1/messages/{wrong}")).status_code == 404
    own = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "k"})).json()["token"]
    async with server.client(own) as api:
        assert [(await api.get(path)).status_code for path in paths] == [200, 200, 200]


async def test_totals_follow_every_change(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")

    async def totals() -> tuple[int, ...]:
        pages = [
            (await server.api.get(f"/v1/inboxes/{inbox_id}/{query}")).json()["total"]
            for query in ("messages", "threads", "threads?is_read=false", "threads?is_read=true")
        ]
        return tuple(pages)

    assert await totals() == (0, 0, 0, 0)
    await server.deliver(raw_mail("1", message_id="<1@x>"), "hello")
    assert await totals() == (1, 1, 1, 0)
    await server.deliver(raw_mail("2", in_reply_to="<1@x>"), "hello")
    assert await totals() == (2, 1, 1, 0)
    thread_id = (await server.next_event())["thread_id"]
    await server.api.patch(f"/v1/threads/{thread_id}", json={"is_read": True})
    assert await totals() == (2, 1, 0, 1)
    await server.deliver(raw_mail("3"), "hello")
    assert await totals() == (3, 2, 1, 1)
    await server.deliver(raw_mail("4", message_id="<4@x>", in_reply_to="<1@x>"), "hello")
    assert await totals() == (4, 2, 2, 0)
    await server.deliver(raw_mail("4", message_id="<4@x>", in_reply_to="<1@x>"), "hello")
    assert await totals() == (4, 2, 2, 0)
    server.clock.turn(2 * MINUTE)
    await one_round(server.resources)
    assert await totals() == (4, 2, 2, 0)


@pytest.mark.both_databases
async def test_a_deleted_inbox_is_gone_at_once_and_swept_away_soon(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    kept = await server.new_inbox("kept")
    large = raw_mail_with_files(("a.csv", "text/csv", b"a,b\n" + b"c" * 240_000))
    await server.deliver(large, "hello")
    event = await server.next_event()
    message = (await server.api.get(f"/v1/messages/{event['message']['id']}")).json()
    await server.deliver(raw_mail(message_id="<k@x>"), "hello", "kept")
    assert (await server.api.delete(f"/v1/inboxes/{inbox_id}")).status_code == 204

    paths = [
        f"/v1/inboxes/{inbox_id}/messages",
        f"/v1/inboxes/{inbox_id}/threads",
        message["attachments"][0]["url"],
    ]
    paths += [f"/v1/messages/{message['id']}", f"/v1/messages/{message['id']}/raw"]
    paths += [f"/v1/threads/{message['threadId']}", f"/v1/threads/{message['threadId']}/messages"]
    paths += [f"/v1/attachments/{message['id']}/a.csv", f"/v1/attachments/{message['id']}/a.csv/text"]
    assert {path: (await server.api.get(path)).status_code for path in paths} == dict.fromkeys(paths, 404)
    async with http_client() as keyless:
        assert (await keyless.get(message["attachments"][0]["url"])).status_code == 404
    assert await refusal(server, raw_mail("again")) == 550

    await one_round(server.resources)
    assert await rows_left(server) == {
        "messages": 1,
        "threads": 1,
        "raw_mails": 1,
        "attachments": 0,
        "examinations": 0,
        "handovers": 1,
        "removed_inboxes": 0,
    }
    assert list(server.resources.blobs.names(0)) == []
    assert await subjects(server.api, kept) == (["Hi"], 1)
    new_id = await server.new_inbox("hello")
    await server.deliver(large, "hello")
    assert await subjects(server.api, new_id) == (["Files"], 1)


async def test_a_large_mail_of_two_inboxes_outlives_one_of_them(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.new_inbox("kept")
    await server.deliver(raw_mail("x" * 300_000), "hello", "kept")
    await server.api.delete(f"/v1/inboxes/{inbox_id}")
    await one_round(server.resources)
    events = (await server.api.get("/v1/events")).json()["data"]
    [left] = [event["message"]["id"] for event in events if event["inbox_id"] != inbox_id]
    assert len((await server.api.get(f"/v1/messages/{left}/raw")).content) > 300_000


async def refusal(server: Server, raw: bytes) -> int:
    try:
        await server.deliver(raw, "hello")
    except smtplib.SMTPRecipientsRefused as error:
        [(code, _)] = error.recipients.values()
        return code
    return 250


async def rows_left(server: Server) -> dict[str, Any]:
    tables = (
        "messages",
        "threads",
        "raw_mails",
        "attachments",
        "examinations",
        "handovers",
        "removed_inboxes",
    )

    def count(tx: Tx) -> dict[str, Any]:
        rows = {table: tx.one(f"select count(*) as number from {table}") for table in tables}
        return {table: row["number"] for table, row in rows.items() if row is not None}

    return await server.resources.db.read(count)


async def test_text_is_never_null(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(b"X-Nothing: here\r\n\r\n", "hello")
    message = (await server.api.get(f"/v1/messages/{(await server.next_event())['message']['id']}")).content
    assert [name for name, value in json.loads(message).items() if value is None] == ["awaiting"]
