"""Sends that answer all, pass a mail on, carry headers and metadata, or leave later."""

from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from postroom import limits
from postroom.clock import DAY, HOUR, MINUTE, SECOND, to_iso
from postroom_mail.mime.parse import parse_mail
from tests.api.test_send import raw_of, send, status_of
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.raw_mails import assert_is_message

pytestmark = pytest.mark.sqlite_alone

TO_MANY = (
    b"From: Alice <alice@example.com>\r\n"
    b"Reply-To: Desk <desk@example.com>, desk+two@example.org\r\n"
    b"To: Bob <bob@postroom.localhost>, Carol <carol@example.com>, DESK@example.com\r\n"
    b"Cc: dave@example.com, carol@example.com, bob+tag@postroom.localhost, not an address\r\n"
    b"Subject: Plans\r\nMessage-ID: <plans@example.com>\r\n\r\nShall we meet?\r\n"
)
WITH_FILE = (
    b"From: Alice <alice@example.com>\r\nTo: bob@postroom.localhost\r\nSubject: The contract\r\n"
    b"Message-ID: <contract@example.com>\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/plain\r\n\r\nPlease sign.\r\n"
    b"--b\r\nContent-Type: application/pdf; name=contract.pdf\r\n"
    b"Content-Disposition: attachment; filename=contract.pdf\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\nJVBERi0xLjQ=\r\n--b--\r\n"
)


async def read(server: Server, answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
    return message


async def thread_of(server: Server, raw: bytes) -> str:
    await server.deliver(raw, "bob")
    thread_id: str = (await server.next_event())["thread_id"]
    return thread_id


async def test_an_answer_to_all_goes_to_reply_to_and_who_is_named_and_copies_everybody_else_once(
    server: Server,
) -> None:
    bob = await server.new_inbox("bob")
    thread_id = await thread_of(server, TO_MANY)
    message = await read(server, await send(server, bob, to=None, threadId=thread_id, replyAll=True))
    assert message["headerTo"] == "Desk <desk@example.com>, desk+two@example.org"
    assert message["cc"] == ["Carol <carol@example.com>", "dave@example.com", "Alice <alice@example.com>"]
    assert message["subject"] == "Re: Plans"
    assert "> Shall we meet?" in message["bodyText"]
    asked: dict[str, Any] = {"to": "new@example.com", "cc": "DAVE@example.com", "bcc": "carol@example.com"}
    message = await read(server, await send(server, bob, threadId=thread_id, replyAll=True, **asked))
    assert message["headerTo"] == "new@example.com, Desk <desk@example.com>, desk+two@example.org"
    assert message["cc"] == ["DAVE@example.com", "Alice <alice@example.com>"]
    addresses = [each["address"] for each in message["recipients"]]
    assert len(addresses) == len(set(addresses)) == 6


async def test_without_reply_to_or_with_one_that_is_this_inbox_the_sender_is_answered(server: Server) -> None:
    bob = await server.new_inbox("bob")
    for number, field in enumerate((b"", b"Reply-To: bob@postroom.localhost\r\n")):
        raw = b"%sFrom: alice@example.com\r\nTo: bob@postroom.localhost\r\nSubject: %d\r\n\r\nHi\r\n"
        await server.deliver(raw % (field, number), "bob")
        threads: list[dict[str, Any]] = []
        while not threads:
            page = (await server.api.get(f"/v1/inboxes/{bob}/threads")).json()
            threads = [thread for thread in page["data"] if thread["subject"] == str(number)]
        asked: dict[str, Any] = {"to": None, "threadId": threads[0]["id"], "replyAll": True}
        message = await read(server, await send(server, bob, **asked))
        assert (message["headerTo"], message["cc"]) == ("alice@example.com", [])


async def test_an_answer_to_all_needs_a_mail_that_came_in_and_room_for_everybody(server: Server) -> None:
    bob = await server.new_inbox("bob")
    assert (await send(server, bob, to=None, replyAll=True)).json()["field"] == "threadId"
    own = (await send(server, bob)).json()["threadId"]
    nobody = await send(server, bob, to=None, threadId=own, replyAll=True)
    assert (nobody.status_code, nobody.json()["field"]) == (400, "replyAll")
    many = b", ".join(b"p%d@example.com" % number for number in range(60))
    crowd = b"From: a@example.com\r\nTo: bob@postroom.localhost, %s\r\nSubject: Crowd\r\n\r\nHi\r\n" % many
    await server.deliver(crowd, "bob")
    events: list[dict[str, Any]] = []
    while not events:
        page = (await server.api.get("/v1/events?event_types=message.received&wait=20")).json()
        events = page["data"]
    asked: dict[str, Any] = {"to": None, "threadId": events[0]["thread_id"], "replyAll": True}
    refused = await send(server, bob, **asked)
    assert (refused.status_code, refused.json()["field"]) == (400, "replyAll")


async def test_an_answer_to_one_message_takes_people_quote_and_references_from_it(server: Server) -> None:
    bob, other = await server.new_inbox("bob"), await server.new_inbox("other")
    thread_id = await thread_of(server, TO_MANY)
    (first,) = (await server.api.get(f"/v1/threads/{thread_id}/messages")).json()["data"]
    later = (
        b"From: eve@example.com\r\nSubject: Re: Plans\r\nIn-Reply-To: <plans@example.com>\r\n\r\nLater.\r\n"
    )
    await server.deliver(later, "bob")
    await server.next_event((await server.next_event())["event_id"])
    sent = await send(server, bob, to=None, subject=None, replyToMessageId=first["id"])
    message = await read(server, sent)
    assert message["headerTo"] == "Desk <desk@example.com>, desk+two@example.org"
    assert message["cc"] == ["Alice <alice@example.com>"]
    assert (message["threadId"], message["subject"]) == (thread_id, "Re: Plans")
    assert "> Shall we meet?" in message["bodyText"]
    raw = (await raw_of(server, message["id"])).decode()
    assert "In-Reply-To: <plans@example.com>\r\nReferences: <plans@example.com>\r\n" in raw
    everybody = await send(server, bob, to=None, replyToMessageId=first["id"], replyAll=True)
    assert "dave@example.com" in (await read(server, everybody))["cc"]
    draft = {"body": "Yes", "replyToMessageId": first["id"]}
    made = await server.api.post(f"/v1/inboxes/{bob}/drafts", json=draft)
    assert made.json()["replyToMessageId"] == first["id"]
    assert (await server.api.post(f"/v1/inboxes/{other}/drafts", json=draft)).status_code == 404
    assert (await send(server, other, replyToMessageId=first["id"])).status_code == 404
    another = (await read(server, await send(server, bob, to="a@example.com", subject="s")))["threadId"]
    wrong = await send(server, bob, threadId=another, replyToMessageId=first["id"])
    assert (wrong.status_code, wrong.json()["field"]) == (400, "replyToMessageId")


async def test_a_forward_starts_a_thread_with_the_text_and_the_files_as_they_came(server: Server) -> None:
    bob, other, _ = [await server.new_inbox(name) for name in ("bob", "other", "carol")]
    await server.deliver(WITH_FILE, "bob")
    event = await server.next_event()
    answer = await send(server, bob, subject=None, forwardOf=event["message"]["id"], body="For you")
    message = await read(server, answer)
    assert message["subject"] == "Fwd: The contract"
    assert message["threadId"] != event["thread_id"]
    assert message["bodyText"].startswith("For you\n\n---------- Forwarded message ----------\nFrom: Alice")
    assert "> Please sign." in message["bodyText"]
    assert message["replyText"] == "For you"
    mail = parse_mail(await raw_of(server, message["id"]))
    assert [(file.filename, file.content_type, file.content) for file in mail.attachments] == [
        ("contract.pdf", "application/pdf", b"%PDF-1.4")
    ]
    assert mail.references == ()
    again = await read(server, await send(server, bob, subject=None, forwardOf=message["id"]))
    assert again["subject"] == "Fwd: The contract"
    third = await send(server, bob, subject="Look", forwardOf=message["id"], threadId=event["thread_id"])
    named = await read(server, third)
    assert (named["subject"], named["threadId"]) == ("Look", event["thread_id"])
    for message_id in (event["message"]["id"], "msg_" + "0" * 32, "nonsense"):
        answer = await send(server, other, forwardOf=message_id)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_a_forward_of_html_escapes_what_a_stranger_wrote(server: Server) -> None:
    bob = await server.new_inbox("bob")
    raw = b"From: a@example.com\r\nSubject: <b>x</b>\r\n\r\n<script>1</script>\r\n"
    await server.deliver(raw, "bob")
    event = await server.next_event()
    answer = await send(server, bob, forwardOf=event["message"]["id"], body="<p>See</p>")
    message = await read(server, answer)
    assert "<script>" not in message["bodyHtml"]
    assert "&lt;script&gt;" in message["bodyHtml"]
    assert "Subject: &lt;b&gt;x&lt;/b&gt;" in message["bodyHtml"]


async def test_the_files_of_a_forward_count_toward_the_limit(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ATTACHMENTS_BYTES", 500_000)
    bob = await server.new_inbox("bob")
    big = ("attachments", ("a.bin", b"x" * 300_000))
    fields = {"to": "bob@postroom.localhost", "subject": "Big", "body": "x"}
    path = f"/v1/inboxes/{bob}/send"
    first = await server.api.post(path, data=fields, files=[big], headers={"Idempotency-Key": "1"})
    fields["forwardOf"] = first.json()["id"]
    second = await server.api.post(path, data=fields, files=[big], headers={"Idempotency-Key": "2"})
    assert (second.status_code, second.json()["error"]) == (413, "payload_too_large")


STEERING = ("X-SMTPAPI", "x-msys-api", "X-MC-BccAddress", "X-SES-Tenant", "X-PM-Tag", "X-Mailgun-Recipients")
OTHER_STEERING = ("X-Mailin-Custom", "X-MJ-CustomID", "X-Postmark-Server", "x-mc-preserverecipients")


async def test_a_header_that_steers_a_relay_is_refused_in_sends_and_drafts(server: Server) -> None:
    bob = await server.new_inbox("bob")
    draft = (await server.api.post(f"/v1/inboxes/{bob}/drafts", json={"body": "x"})).json()["id"]
    for name in (*STEERING, *OTHER_STEERING):
        own = {"to": "a@example.com", "subject": "x", "body": "x", "headers": {name: "x"}}
        sent = await server.api.post(f"/v1/inboxes/{bob}/send", json=own, headers={"Idempotency-Key": name})
        assert (sent.status_code, sent.json()["field"]) == (400, "headers"), name
        drafted = await server.api.post(f"/v1/inboxes/{bob}/drafts", json=own)
        assert (drafted.status_code, drafted.json()["field"]) == (400, "headers"), name
        changed = await server.api.patch(f"/v1/drafts/{draft}", json={"headers": {name: "x"}})
        assert (changed.status_code, changed.json()["field"]) == (400, "headers"), name


async def test_a_header_that_the_server_allows_by_name_is_sent(tmp_path: Path, clock: FakeClock) -> None:
    config = settings(tmp_path, DATABASE_URL="", ALLOWED_HEADERS="X-SMTPAPI, x-pm-tag")
    async with running_server(config, clock) as server:
        bob = await server.new_inbox("bob")
        own = {"to": "a@example.com", "subject": "x", "body": "x"}
        for number, (name, status) in enumerate(
            {"X-SmtpApi": 200, "X-PM-Tag": 200, "X-PM-Other": 400}.items()
        ):
            answer = await server.api.post(
                f"/v1/inboxes/{bob}/send",
                json={**own, "headers": {name: "x"}},
                headers={"Idempotency-Key": str(number)},
            )
            assert answer.status_code == status, name


async def test_own_headers_are_written_and_metadata_is_kept_and_never_sent(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    own: dict[str, Any] = {"headers": {"X-Order": "7", "X-Gruß": "no"}, "metadata": {"run": "r-1 ✓"}}
    assert (await send(server, bob, **own)).json()["field"] == "headers"
    own["headers"] = {"X-Order": "7", "X-Name": "Größe = 1"}
    answer = await send(server, bob, **own)
    message = await status_of(server, answer.json()["id"], "sent")
    assert message["metadata"] == {"run": "r-1 ✓"}
    raw = await raw_of(server, message["id"])
    assert b"\r\nX-Order: 7\r\n" in raw
    assert b"\r\nX-Name: =?utf-8?" in raw
    assert b"r-1" not in raw
    events = (await server.api.get("/v1/events")).json()["data"]
    shown = {event["event"]: event["message"].get("metadata") for event in events}
    assert shown == {"message.sent": {"run": "r-1 ✓"}, "message.received": None}
    (received,) = (await server.api.get(f"/v1/inboxes/{carol}/messages")).json()["data"]
    assert "metadata" not in received


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"headers": {"Subject": "x"}}, "headers"),
    ({"headers": {"X-": "x"}}, "headers"),
    ({"headers": {"X-A B": "x"}}, "headers"),
    ({"headers": {"X-A:": "x"}}, "headers"),
    ({"headers": {"X-A\r\nBcc": "x"}}, "headers"),
    ({"headers": {"X-A": "x\r\nBcc: eve@example.com"}}, "headers"),
    ({"headers": {"X-A": "\x00"}}, "headers"),
    ({"headers": {"X-A": ""}}, "headers"),
    ({"headers": {"X-A": "1", "x-a": "2"}}, "headers"),
    ({"headers": {"X-A": 1}}, "headers"),
    ({"headers": {f"X-{number}": "x" for number in range(21)}}, "headers"),
    ({"headers": ["X-A"]}, "headers"),
    ({"metadata": {str(number): "x" for number in range(21)}}, "metadata"),
    ({"metadata": {"a": 1}}, "metadata"),
    ({"metadata": {"": "x"}}, "metadata"),
    ({"metadata": {"a": "x" * 1001}}, "metadata"),
    ({"undoSeconds": 121}, "undoSeconds"),
    ({"undoSeconds": -1}, "undoSeconds"),
    ({"undoSeconds": "soon"}, "undoSeconds"),
    ({"sendAt": ""}, "sendAt"),
    ({"sendAt": "now"}, "sendAt"),
    ({"sendAt": 1_800_000_000}, "sendAt"),
    ({"sendAt": "1800000000"}, "sendAt"),
    ({"sendAt": "2026-11-20"}, "sendAt"),
    ({"sendAt": "2026-11-20T10:00:00"}, "sendAt"),
    ({"sendAt": "2026-11-20 10:00:00Z"}, "sendAt"),
    ({"sendAt": "2026-02-30T10:00:00Z"}, "sendAt"),
    ({"sendAt": "2026-11-20T10:00:00+99:00"}, "sendAt"),
    ({"sendAt": "0001-01-01T00:00:00+23:59"}, "sendAt"),
    ({"sendAt": "9999-12-31T23:59:59-23:59"}, "sendAt"),
    ({"replyAll": True, "forwardOf": "msg_" + "0" * 32, "threadId": "thr_" + "0" * 32}, "forwardOf"),
]


async def test_bad_input_names_its_field_and_stores_nothing(server: Server) -> None:
    bob = await server.new_inbox("bob")
    for fields, field in BAD_FIELDS:
        answer = await send(server, bob, **fields)
        assert (answer.status_code, answer.json().get("field")) == (400, field), (fields, answer.text)
    assert (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 0


async def test_a_moment_that_does_not_lie_ahead_is_never_taken_for_now(server: Server) -> None:
    bob = await server.new_inbox("bob")
    for ahead in (0, -1, -HOUR, 30 * DAY + 1, 400 * DAY):
        answer = await send(server, bob, sendAt=to_iso(server.clock.now() + ahead))
        assert (answer.status_code, answer.json()["field"]) == (400, "sendAt"), ahead
    assert (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["total"] == 0


async def test_a_scheduled_send_waits_and_its_repetition_is_answered_after_its_moment(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    moment = to_iso(server.clock.now() + HOUR)
    first = await send(server, bob, key="later", sendAt=moment.replace("Z", "+00:00"))
    assert first.json()["hold"]["state"] == "scheduled"
    assert first.json()["hold"]["sendAt"] == moment
    server.clock.turn(2 * HOUR)
    message = await status_of(server, first.json()["id"], "sent")
    assert message["hold"]["state"] == "scheduled"
    again = await send(server, bob, key="later", sendAt=moment.replace("Z", "+00:00"))
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.content == first.content
    other = await send(server, bob, key="later", sendAt=moment)
    assert other.status_code == 422


async def test_a_send_can_be_undone_for_as_long_as_was_asked(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    undone = (await send(server, bob, undoSeconds=60)).json()
    kept = (await send(server, bob, undoSeconds=60, subject="Kept")).json()
    assert undone["hold"]["sendAt"] == to_iso(server.clock.now() + 60 * SECOND)
    cancelled = (await server.api.post(f"/v1/messages/{undone['id']}/cancel")).json()
    assert (cancelled["status"], cancelled["hold"]["state"]) == ("failed", "cancelled")
    server.clock.turn(2 * MINUTE)
    await status_of(server, kept["id"], "sent")
    (received,) = (await server.api.get(f"/v1/inboxes/{carol}/messages")).json()["data"]
    assert received["subject"] == "Kept"


async def test_every_field_can_come_in_a_form(server: Server) -> None:
    bob = await server.new_inbox("bob")
    thread_id = await thread_of(server, TO_MANY)
    fields = {
        "threadId": thread_id,
        "replyAll": "true",
        "body": "Yes",
        "headers": '{"X-Order": "7"}',
        "metadata": '{"run": "1"}',
        "undoSeconds": "30",
    }
    path = f"/v1/inboxes/{bob}/send"
    file = [("attachments", ("a.txt", b"hello", "text/plain"))]
    answer = await server.api.post(path, data=fields, files=file, headers={"Idempotency-Key": "f"})
    message = await read(server, answer)
    assert message["headerTo"].startswith("Desk")
    assert message["metadata"] == {"run": "1"}
    assert message["hold"]["state"] == "scheduled"
    assert b"\r\nX-Order: 7\r\n" in await raw_of(server, message["id"])
    for name, value in (("headers", "X-A: b"), ("metadata", "[1]"), ("sendAt", "1800000000")):
        wrong = {**fields, name: value}
        refused = await server.api.post(path, data=wrong, files=file, headers={"Idempotency-Key": name})
        assert (refused.status_code, refused.json().get("field")) == (400, name), refused.text


async def test_a_sent_message_shows_whom_nobody_else_sees_and_what_only_programs_read(server: Server) -> None:
    bob = await server.new_inbox("bob")
    for name in ("carol", "eve", "replies"):
        await server.new_inbox(name)
    fields: dict[str, Any] = {
        "to": "carol@postroom.localhost",
        "bcc": "Eve <eve@postroom.localhost>",
        "replyTo": "replies@postroom.localhost",
        "headers": {"X-Order": "7"},
    }
    for number, given in enumerate((fields, {"to": "carol@postroom.localhost"})):
        body = {"subject": "Hi", "body": "Yes", **given}
        key = {"Idempotency-Key": f"shown-{number}"}
        message = await read(server, await server.api.post(f"/v1/inboxes/{bob}/send", json=body, headers=key))
        assert_is_message(msgspec.json.encode(message))
        assert message["bcc"] == ([given["bcc"]] if "bcc" in given else [])
        assert (message["replyTo"], message["headers"]) == (given.get("replyTo"), given.get("headers", {}))
        listed = (await server.api.get(f"/v1/inboxes/{bob}/messages")).json()["data"]
        assert listed[0]["bcc"] == message["bcc"]
