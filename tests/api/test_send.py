"""Sending over REST: what is accepted, what is refused, and what the mail then is."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.accounts import accounts, keys
from postroom.clock import DAY, MINUTE
from postroom_mail.mime.parse import parse_mail
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock

pytestmark = pytest.mark.sqlite_alone

MAIL = (
    b"From: Alice <alice@example.com>\r\nTo: bob@postroom.localhost\r\nSubject: Question\r\n"
    b"Message-ID: <q1@example.com>\r\n\r\nWhat is the price?\r\n"
)


async def send(
    server: Server,
    inbox_id: str,
    key: str | None = None,
    api: httpx2.AsyncClient | None = None,
    **fields: Any,
) -> httpx2.Response:
    body = {"to": "carol@postroom.localhost", "subject": "Hello", "body": "Hi Carol", **fields}
    return await (api or server.api).post(
        f"/v1/inboxes/{inbox_id}/send",
        json={name: value for name, value in body.items() if value is not None},
        headers={"Idempotency-Key": key or str(uuid.uuid4())},
    )


async def status_of(server: Server, message_id: str, wanted: str) -> dict[str, Any]:
    """Waits until the message has the status."""
    for _ in range(2400):
        message: dict[str, Any] = (await server.api.get(f"/v1/messages/{message_id}")).json()
        if message["status"] == wanted:
            return message
        await asyncio.sleep(0.05)
    raise AssertionError(f"{message['status']} never became {wanted}: {message}")


async def first_message(server: Server, inbox_id: str) -> dict[str, Any]:
    """Waits until there is one."""
    for _ in range(2400):
        page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
        if page["data"]:
            first: dict[str, Any] = page["data"][0]
            return first
        await asyncio.sleep(0.05)
    raise AssertionError("nothing arrived")


async def raw_of(server: Server, message_id: str) -> bytes:
    return (await server.api.get(f"/v1/messages/{message_id}/raw")).content


async def test_a_mail_to_an_inbox_here_arrives_and_is_sent(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    answer = await send(server, bob)
    assert answer.status_code == 200
    receipt = answer.json()
    assert set(receipt) == {
        *("id", "threadId", "inboxId", "direction", "createdAt", "messageId", "providerMessageId", "status"),
    }
    assert (receipt["direction"], receipt["status"], receipt["messageId"]) == (
        "outbound",
        "pending",
        receipt["id"],
    )
    message = await status_of(server, receipt["id"], "sent")
    assert message["recipients"] == [
        {
            "address": "carol@postroom.localhost",
            "state": "delivered",
            "attempts": 1,
            "lastCode": 250,
            "lastReply": "2.1.5 Stored in the inbox.",
            "nextAttemptAt": None,
            "tls": None,
        }
    ]
    (received,) = (await server.api.get(f"/v1/inboxes/{carol}/messages")).json()["data"]
    assert (received["fromAddr"], received["bodyText"]) == ("bob@postroom.localhost", "Hi Carol\n")
    assert received["rfcMessageId"] == message["rfcMessageId"]
    kinds = [event["event"] for event in (await server.api.get("/v1/events")).json()["data"]]
    assert sorted(kinds) == ["message.received", "message.sent"]


async def test_a_reply_has_the_headers_the_quote_the_subject_and_the_copy_where_they_are_wanted(
    server: Server,
) -> None:
    bob, other = await server.new_inbox("bob"), await server.new_inbox("other")
    await server.deliver(MAIL, "bob")
    thread_id = (await server.next_event())["thread_id"]
    answer = await send(
        server, bob, to="dave@postroom.localhost", subject="ignored", threadId=thread_id, body="7 EUR"
    )
    message = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
    assert message["subject"] == "Re: Question"
    assert message["cc"] == ["Alice <alice@example.com>"]
    assert message["replyText"] == "7 EUR"
    assert "> What is the price?" in message["bodyText"]
    assert "Alice <alice@example.com> wrote:" in message["bodyText"]
    mail = parse_mail(await raw_of(server, message["id"]))
    assert mail.in_reply_to == mail.references == ("<q1@example.com>",)
    thread = (await server.api.get(f"/v1/threads/{thread_id}")).json()
    assert (thread["isRead"], thread["messageCount"]) == (True, 2)
    answer = await send(server, bob, to="ALICE@example.com", threadId=thread_id, includeQuote=False)
    message = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
    assert (message["cc"], message["bodyText"]) == ([], "Hi Carol")
    assert (await send(server, other, threadId=thread_id)).status_code == 404


async def test_the_copy_makes_no_fifty_first_recipient(server: Server) -> None:
    bob = await server.new_inbox("bob")
    server.clock.turn(31 * DAY)  # old enough to write to so many strangers
    await server.deliver(MAIL, "bob")
    thread_id = (await server.next_event())["thread_id"]
    for count, copied in ((49, ["Alice <alice@example.com>"]), (50, [])):
        to = [f"p{number}@example.com" for number in range(count - 2)]
        others = {"cc": "c@example.com", "bcc": "d@example.com", "threadId": thread_id}
        answer = await send(server, bob, to=to, **others)
        message = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
        assert message["cc"] == ["c@example.com", *copied]
        assert len(message["recipients"]) == 50
    refused = await send(server, bob, to=[f"p{number}@example.com" for number in range(51)])
    assert (refused.status_code, refused.json()["field"]) == (400, "to")


async def test_html_is_detected_and_gets_a_text_part(server: Server) -> None:
    bob = await server.new_inbox("bob")
    await server.new_inbox("carol")
    answer = await send(server, bob, body="<p>Hello <b>Carol</b></p>")
    message = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
    assert message["bodyHtml"] == "<p>Hello <b>Carol</b></p>"
    assert message["bodyText"].strip() == "Hello Carol"
    plain = await send(server, bob, body="1 < 2 and 3 > 2")
    assert (await server.api.get(f"/v1/messages/{plain.json()['id']}")).json()["bodyHtml"] == ""


async def test_attachments_arrive_as_json_and_as_multipart(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    files = [
        {"filename": "../a.txt", "contentType": "text/plain", "data": "aGVsbG8="},
        {"filename": "a.txt", "contentType": "text/plain", "data": "d29ybGQ="},
    ]
    by_json = await send(server, bob, attachments=files)
    by_form = await server.api.post(
        f"/v1/inboxes/{bob}/send",
        data={"to": "carol@postroom.localhost", "subject": "Form", "body": "see files"},
        files=[
            ("attachments", ("a.txt", b"hello", "text/plain")),
            ("attachments", ("a.txt", b"world", "text/plain")),
        ],
        headers={"Idempotency-Key": "form-1"},
    )
    for answer in (by_json, by_form):
        assert answer.status_code == 200, answer.text
        await status_of(server, answer.json()["id"], "sent")
    for message in (await server.api.get(f"/v1/inboxes/{carol}/messages")).json()["data"]:
        assert [file["filename"] for file in message["attachments"]] == ["a.txt", "a (2).txt"]
        contents = [(await server.api.get(file["url"])).content for file in message["attachments"]]
        assert contents == [b"hello", b"world"]


async def test_bcc_is_delivered_and_never_written(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    answer = await send(server, bob, to="dave@postroom.localhost", bcc=["carol@postroom.localhost"])
    await status_of(server, answer.json()["id"], "failed")  # there is no dave
    received = await first_message(server, carol)
    assert received["deliveryRole"] == "to"
    assert b"carol" not in await raw_of(server, answer.json()["id"])


async def test_one_key_is_one_mail_whatever_the_concurrency(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    answers = await asyncio.gather(*(send(server, bob, key="same") for _ in range(100)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum(answer.headers.get("Idempotent-Replayed") == "true" for answer in answers) == 99
    await status_of(server, answers[0].json()["id"], "sent")
    assert (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 1
    assert (await server.api.get(f"/v1/inboxes/{carol}/messages")).json()["total"] == 1


async def test_a_key_used_for_another_request_is_refused_and_free_again_after_a_day(server: Server) -> None:
    bob = await server.new_inbox("bob")
    await server.new_inbox("carol")
    assert (await send(server, bob, key="k")).status_code == 200
    other = await send(server, bob, key="k", body="something else")
    assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")
    server.clock.turn(DAY)
    assert (await send(server, bob, key="k", body="something else")).status_code == 200


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"to": ""}, "to"),
    ({"to": []}, "to"),
    ({"to": "nobody"}, "to"),
    ({"to": "a@b.example, nonsense"}, "to"),
    ({"to": [f"p{n}@example.com" for n in range(51)]}, "to"),
    ({"to": "a@b.example\r\nBcc: c@d.example"}, "to"),
    ({"to": 5}, "to"),
    ({"cc": "x\ny@z.example"}, "cc"),
    ({"subject": ""}, "subject"),
    ({"subject": None}, "subject"),
    ({"subject": "a\r\nBcc: x@example.com"}, "subject"),
    ({"subject": "x" * 999}, "subject"),
    ({"body": ""}, "body"),
    ({"body": None}, "body"),
    ({"body": "x" * 100_001}, "body"),
    ({"bodyHtml": "x" * 500_001}, "bodyHtml"),
    ({"replyTo": "nobody"}, "replyTo"),
    ({"attachments": [{"filename": "a", "contentType": "text/plain", "data": "***"}]}, "attachments"),
]


async def test_bad_input_names_its_field_and_stores_nothing(server: Server) -> None:
    bob = await server.new_inbox("bob")
    answer = await server.api.post(f"/v1/inboxes/{bob}/send", json={"to": "nonsense"})
    assert (answer.status_code, answer.json()["error"]) == (400, "missing_idempotency_key")
    for fields, field in BAD_FIELDS:
        answer = await send(server, bob, **fields)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), (fields, answer.text)
        assert answer.json()["field"] == field, fields
    unknown = await send(server, bob, threadId="thr_" + "0" * 32)
    assert (unknown.status_code, unknown.json()["error"]) == (404, "not_found")
    assert (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 0


async def test_26_megabytes_of_attachments_are_too_large(server: Server) -> None:
    bob = await server.new_inbox("bob")
    answer = await server.api.post(
        f"/v1/inboxes/{bob}/send",
        data={"to": "a@b.example", "subject": "x", "body": "x"},
        files=[("attachments", ("a.bin", b"x" * (13 * 1024 * 1024))) for _ in range(2)],
        headers={"Idempotency-Key": "k"},
    )
    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")


async def test_reply_to_outside_needs_a_paid_plan(server: Server) -> None:
    bob = await server.new_inbox("bob")
    refused = await send(server, bob, replyTo="me@example.com")
    assert (refused.status_code, refused.json()["error"]) == (403, "feature_requires_paid_plan")
    assert refused.json()["feature"] == "external_reply_to"
    assert (await send(server, bob, replyTo="bob@postroom.localhost")).status_code == 200
    token = keys.new_token()
    account = await server.resources.db.write(accounts.add, "paid", "developer", server.clock.now())
    await server.resources.db.write(keys.add, account.id, None, "k", token, server.clock.now())
    async with server.client(token) as paid:
        inbox = (await paid.post("/v1/inboxes", json={"mailboxName": "paid"})).json()["id"]
        assert (await send(server, inbox, api=paid, replyTo="Me <me@example.com>")).status_code == 200


async def test_a_suppressed_recipient_is_refused_before_anything_is_stored(server: Server) -> None:
    bob = await server.new_inbox("bob")
    added = await server.api.post("/v1/suppressions", json={"address": "Carol@Postroom.localhost"})
    assert (added.status_code, added.json()["type"]) == (201, "manual")
    refused = await send(server, bob)
    assert (refused.status_code, refused.json()["error"]) == (422, "recipient_suppressed")
    assert (refused.json()["type"], refused.json()["recipient"]) == ("manual", "carol@postroom.localhost")
    assert (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 0
    several = ["x@example.com", "carol@postroom.localhost", "a@example.com"]
    assert (await server.api.post("/v1/suppressions", json={"address": several[2]})).status_code == 201
    assert (await send(server, bob, to=several)).json()["recipient"] == several[1]  # the first in line
    assert (await server.api.delete(f"/v1/suppressions/{several[2]}")).status_code == 204
    assert (await server.api.get("/v1/suppressions")).json()["total"] == 1
    assert (await server.api.delete("/v1/suppressions/carol@postroom.localhost")).status_code == 204
    assert (await server.api.delete("/v1/suppressions/carol@postroom.localhost")).status_code == 404
    assert (await send(server, bob)).status_code == 200


@pytest.mark.both_databases
async def test_the_limits_of_a_minute_and_a_day_are_exact_under_concurrency(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    config = settings(tmp_path, DATABASE_URL=database_url, SENDS_PER_DAY="30")
    async with running_server(config, clock) as server:
        bob = await server.new_inbox("bob")
        await server.new_inbox("carol")
        answers = await asyncio.gather(*(send(server, bob) for _ in range(60)))
        assert sorted(answer.status_code for answer in answers) == [200] * 10 + [429] * 50
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert (refused.json()["error"], refused.headers["Retry-After"]) == ("rate_limit_exceeded", "60")
        for _ in range(2):
            clock.turn(MINUTE)
            answers = await asyncio.gather(*(send(server, bob) for _ in range(12)))
            assert sorted(answer.status_code for answer in answers) == [200] * 10 + [429] * 2
        clock.turn(MINUTE)
        refused = await send(server, bob)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) > 3600
        clock.turn(DAY)
        assert (await send(server, bob)).status_code == 200


async def test_a_refused_send_never_takes_another_with_it(server: Server) -> None:
    inboxes = [await server.new_inbox(name) for name in ("bob", "carol", "dave")]
    await server.api.post("/v1/suppressions", json={"address": "never@example.com"})
    recipients = [
        "never@example.com" if number % 4 == 0 else f"p{number}@example.com" for number in range(24)
    ]

    answers = await asyncio.gather(
        *(send(server, inboxes[number % 3], to=recipient) for number, recipient in enumerate(recipients))
    )

    refused = [answer.status_code == 422 for answer in answers]
    assert refused == [recipient == "never@example.com" for recipient in recipients]
    totals = [(await server.api.get(f"/v1/inboxes/{inbox}/messages")).json()["total"] for inbox in inboxes]
    assert totals == [6, 6, 6]
    assert {answer.status_code for answer in answers} == {200, 422}


async def test_a_young_inbox_writes_to_twenty_strangers_a_day(server: Server) -> None:
    bob = await server.new_inbox("bob")
    first = [f"p{number}@example.com" for number in range(15)]
    assert (await send(server, bob, to=first)).status_code == 200
    assert (await send(server, bob, to=first[:3])).status_code == 200  # the same strangers again
    refused = await send(server, bob, to=[f"q{number}@example.com" for number in range(6)])
    assert (refused.status_code, refused.json()["error"]) == (429, "cold_outreach_limit")
    assert int(refused.headers["Retry-After"]) >= 1
    assert (await send(server, bob, to=[f"q{number}@example.com" for number in range(5)])).status_code == 200
    await server.deliver(MAIL, "bob")
    await server.next_event()
    assert (await send(server, bob, to="alice@example.com")).status_code == 200  # she wrote to bob
    server.clock.turn(30 * DAY)
    many = [f"r{number}@example.com" for number in range(40)]
    assert (await send(server, bob, to=many)).status_code == 200


async def test_two_machines_do_not_talk_without_end(server: Server) -> None:
    bob = await server.new_inbox("bob")
    await server.deliver(MAIL.replace(b"Subject", b"Auto-Submitted: auto-replied\r\nSubject"), "bob")
    thread_id = (await server.next_event())["thread_id"]
    answers = []
    for _ in range(21):
        server.clock.turn(MINUTE // 5)
        answers.append(await send(server, bob, to="alice@example.com", threadId=thread_id))
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]
    assert answers[-1].json()["error"] == "loop_detected"
    assert int(answers[-1].headers["Retry-After"]) > 0
