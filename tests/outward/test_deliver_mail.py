"""What becomes of a mail: through the queue to a real SMTP peer that accepts, defers, refuses or hangs up."""

import asyncio
from typing import Any

import pytest

from postroom.accounts import secret_values
from postroom.clock import DAY, HOUR, MINUTE, SECOND, from_iso
from postroom.mailbox import raw_mails
from postroom.queue.claims import Claims
from postroom.queue.deliveries import MAIL
from postroom.storage.database import Tx
from postroom_mail.mime.parse import parse_mail
from postroom_mail.writing import return_path
from tests.conftest import Server
from tests.couriers.smtp_peer import DROP, SmtpPeer, Stage
from tests.outbound import (
    answered,
    events_of,
    is_signed,
    message_when,
    send,
    settled,
    suppressed,
    turn,
)

FIRST_WAITS = [1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 1 * HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR]


def states(message: dict[str, Any]) -> list[str]:
    return sorted(recipient["state"] for recipient in message["recipients"])


@pytest.mark.sqlite_alone
async def test_an_accepted_mail_is_sent_and_tells_so(sender: Server, peer: SmtpPeer) -> None:
    message_id = await send(sender, await sender.new_inbox("bob"), "Carol <carol@there.example>")
    message = await settled(sender, message_id)
    assert message["status"] == "sent"
    assert message["recipients"] == [
        {
            "address": "carol@there.example",
            "state": "delivered",
            "attempts": 1,
            "lastCode": 250,
            "lastReply": "2.0.0 taken",
            "nextAttemptAt": None,
            "tls": "none",
        }
    ]
    (mail,) = peer.mails
    assert mail.rcpt_line == b"RCPT TO:<carol@there.example>"
    assert parse_mail(mail.raw).message_id == message["rfcMessageId"]
    (event,) = await events_of(sender, "message.sent", "message.failed")
    assert (event["event"], event["message"]["id"]) == ("message.sent", message_id)


@pytest.mark.sqlite_alone
async def test_the_return_path_is_signed_and_says_whom_a_bounce_is_about(
    sender: Server, peer: SmtpPeer
) -> None:
    message_id = await send(sender, await sender.new_inbox("bob"), "a@there.example", "b@there.example")
    await settled(sender, message_id)
    secret = await sender.resources.db.read(secret_values.get, secret_values.RETURN_PATH)
    today = sender.clock.now() // DAY
    for mail in peer.mails:
        local_part, _, domain = mail.mail_line.split(b"<")[1].split(b">")[0].decode().partition("@")
        path = return_path.decode(secret, local_part, today, 1)
        assert path is not None
        assert (domain, path.message_id) == ("postroom.localhost", message_id)
        assert [b"a@there", b"b@there"][path.recipient_index] in mail.rcpt_line


@pytest.mark.sqlite_alone
async def test_a_deferred_mail_is_tried_at_the_scheduled_times_and_fails_after_two_days(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.behaviour["RCPT"] = b"451 4.2.1 come back later"
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    started_at = sender.clock.now()
    waits = [*FIRST_WAITS, *[8 * HOUR] * 4]
    for number, wait in enumerate(waits, 1):
        message = await answered(sender, message_id, number)
        (recipient,) = message["recipients"]
        assert (message["status"], recipient["state"], recipient["lastCode"]) == ("pending", "pending", 451)
        assert "451 4.2.1 come back later" in recipient["lastReply"]
        left = from_iso(recipient["nextAttemptAt"]) - sender.clock.now()
        assert 0.8 * wait - 1 <= left <= 1.2 * wait
        turn(sender, left - 1)
        due = await sender.resources.db.write(Claims(MAIL).claim, [], 1, sender.clock.now())
        assert (due, peer.stages["RCPT"]) == ([], number), "tried before its time"
        turn(sender, 1)
    message = await settled(sender, message_id)
    assert (message["status"], message["recipients"][0]["attempts"]) == ("failed", len(waits) + 1)
    assert 0.8 * 48 * HOUR <= sender.clock.now() - started_at <= 1.2 * 48 * HOUR
    (event,) = await events_of(sender, "message.sent", "message.failed")
    assert (event["event"], event["recipient"]) == ("message.failed", "carol@there.example")
    assert "come back later" in event["reason"]
    assert await suppressed(sender) == {}


TEMPORARY: list[tuple[Stage, bytes]] = [
    ("greeting", b"421 4.3.2 closing"),
    ("greeting", b"554 5.3.2 not now"),  # the relay has not seen the mail: it judges nothing
    ("EHLO", DROP),
    ("MAIL", b"452 4.3.1 no room"),
    ("RCPT", b"450 4.2.1 busy"),
    ("RCPT", DROP),
    ("DATA", b"451 4.3.0 later"),
    ("content", DROP),
    ("dot", b"451 4.3.0 later"),
    ("dot", DROP),
]


@pytest.mark.sqlite_alone
async def test_whatever_is_temporary_at_any_stage_goes_again_and_arrives_once(
    sender: Server, peer: SmtpPeer
) -> None:
    bob = await sender.new_inbox("bob")
    for number, (stage, reply) in enumerate(TEMPORARY):
        await peer.hang_up()
        peer.behaviour[stage] = reply
        message_id = await send(sender, bob, f"p{number}@there.example")
        message = await answered(sender, message_id)
        assert message["status"] == "pending", (stage, reply)
        del peer.behaviour[stage]
        turn(sender, 72 * SECOND)
        message = await settled(sender, message_id)
        assert (message["status"], message["recipients"][0]["attempts"]) == ("sent", 2), (stage, reply)
        assert parse_mail(peer.mails[-1].raw).message_id == message["rfcMessageId"]
    assert len(peer.mails) == len(TEMPORARY)


@pytest.mark.sqlite_alone
async def test_after_a_lost_answer_to_the_final_dot_the_same_mail_goes_again(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.behaviour["dot"] = [DROP]
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    message = await answered(sender, message_id)
    assert "the final dot" in message["recipients"][0]["lastReply"]
    assert message["recipients"][0]["lastCode"] is None
    turn(sender, 72 * SECOND)
    message = await settled(sender, message_id)
    (mail,) = peer.mails
    assert peer.stages["dot"] == 2
    assert parse_mail(mail.raw).message_id == message["rfcMessageId"]
    assert mail.raw.endswith((await sender.api.get(f"/v1/messages/{message_id}/raw")).content)


PERMANENT: list[tuple[Stage, bytes, bool]] = [
    ("RCPT", b"550 5.1.1 no such user here", True),
    ("RCPT", b"550 5.1.2 unknown domain", True),
    ("RCPT", b"550 no such user", True),
    ("RCPT", b"550 5.7.1 blocked by our policy", False),
    ("RCPT", b"552 5.2.2 mailbox full", False),
    ("MAIL", b"550 5.1.8 your domain is unknown", False),
    ("DATA", b"554 5.3.0 no", False),
    ("dot", b"554 5.6.0 this looks like spam", False),
    ("dot", b"552 5.3.4 too large", False),
]


async def test_a_refusal_fails_at_once_and_suppresses_only_what_is_about_the_address(
    sender: Server, peer: SmtpPeer
) -> None:
    bob = await sender.new_inbox("bob")
    for number, (stage, reply, is_suppressed) in enumerate(PERMANENT):
        address = f"p{number}@there.example"
        peer.behaviour[stage] = reply
        message_id = await send(sender, bob, address)
        message = await settled(sender, message_id)
        del peer.behaviour[stage]
        (recipient,) = message["recipients"]
        assert (message["status"], recipient["state"], recipient["attempts"]) == ("failed", "failed", 1)
        assert recipient["lastCode"] == int(reply[:3])
        assert (address in await suppressed(sender)) == is_suppressed, reply
        event = (await events_of(sender, "message.failed"))[-1]
        assert (event["message"]["id"], event["recipient"]) == (message_id, address)
        assert reply[4:].decode() in event["reason"]
    assert set((await suppressed(sender)).values()) == {"bounce"}


@pytest.mark.sqlite_alone
async def test_each_recipient_has_its_own_state_and_one_refusal_fails_the_message(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.behaviour["RCPT"] = [b"250 fine", b"550 5.7.1 no", b"451 4.2.1 later"]
    to = [f"p{number}@there.example" for number in range(3)]
    message_id = await send(sender, await sender.new_inbox("bob"), *to)
    await settled(sender, message_id)
    message = await message_when(
        sender, message_id, lambda message: all(item["lastReply"] for item in message["recipients"])
    )
    assert [recipient["address"] for recipient in message["recipients"]] == to
    assert (message["status"], states(message)) == ("failed", ["delivered", "failed", "pending"])
    turn(sender, 72 * SECOND)
    message = await message_when(sender, message_id, lambda message: "pending" not in states(message))
    assert (message["status"], states(message)) == ("failed", ["delivered", "delivered", "failed"])
    assert [event["event"] for event in await events_of(sender, "message.sent", "message.failed")] == [
        "message.failed"
    ]


@pytest.mark.sqlite_alone
async def test_a_message_is_sent_when_the_last_of_several_recipients_has_it(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.behaviour["RCPT"] = [b"451 4.2.1 later"]
    message_id = await send(sender, await sender.new_inbox("bob"), "a@there.example", "b@there.example")
    message = await message_when(
        sender, message_id, lambda message: all(item["lastReply"] for item in message["recipients"])
    )
    assert (message["status"], states(message)) == ("pending", ["delivered", "pending"])
    turn(sender, 72 * SECOND)
    assert (await settled(sender, message_id))["status"] == "sent"
    assert len(await events_of(sender, "message.sent")) == 1


@pytest.mark.sqlite_alone
async def test_recipients_that_finish_side_by_side_leave_no_message_pending(
    sender: Server, peer: SmtpPeer
) -> None:
    bob = await sender.new_inbox("bob")
    to = [f"p{number}@d{number % 5}.example" for number in range(10)]
    sent = await asyncio.gather(*(send(sender, bob, *to) for _ in range(6)))
    for message_id in sent:
        assert (await settled(sender, message_id))["status"] == "sent"
    assert len(await events_of(sender, "message.sent")) == len(sent)


def name_blob(tx: Tx, message_id: str, blob: str) -> None:
    tx.run("update raw_mails set blob = :blob where message_id = :id", blob=blob, id=message_id)


@pytest.mark.sqlite_alone
async def test_a_fault_on_our_side_waits_like_any_other(sender: Server, peer: SmtpPeer) -> None:
    peer.behaviour["RCPT"] = [b"451 4.2.1 later"]
    message_id = await send(
        sender,
        await sender.new_inbox("bob"),
        "carol@there.example",
        body="x" * 90_000,
        bodyHtml="y" * 400_000,
    )
    await answered(sender, message_id)
    blob = (await sender.resources.db.read(raw_mails.get, message_id)).blob
    assert blob is not None
    content = await asyncio.to_thread(sender.resources.blobs.get, blob)
    await asyncio.to_thread(sender.resources.blobs.remove, blob)
    turn(sender, 72 * SECOND)
    message = await message_when(
        sender, message_id, lambda message: message["recipients"][0]["lastReply"].startswith("4.3.0")
    )
    assert (message["status"], message["recipients"][0]["attempts"]) == ("pending", 2)
    restored = await asyncio.to_thread(sender.resources.blobs.put, content)
    await sender.resources.db.write(name_blob, message_id, restored)
    turn(sender, 6 * MINUTE)
    assert (await settled(sender, message_id))["status"] == "sent"


@pytest.mark.sqlite_alone
async def test_mail_that_goes_in_circles_inside_fails_for_good(sender: Server) -> None:
    def wear_out(tx: Tx) -> None:
        worn = b"Received: by x\r\n" * 51 + b"\r\nHi\r\n"
        tx.run("update raw_mails set content = :raw, content_bytes = null", raw=worn)

    bob = await sender.new_inbox("bob")
    message_id = await send(sender, bob, "carol@there.example", "bob@postroom.localhost")
    await settled(sender, message_id)
    assert (await sender.api.delete("/v1/suppressions/bob@postroom.localhost")).status_code == 404
    await sender.resources.db.write(wear_out)
    circling = await send(sender, bob, "nobody@postroom.localhost")
    await settled(sender, circling)
    await sender.resources.db.write(wear_out)
    await sender.new_inbox("nobody")
    await sender.api.delete("/v1/suppressions/nobody@postroom.localhost")
    await sender.api.post(f"/v1/messages/{circling}/retry")
    message = await settled(sender, circling)
    assert (message["status"], message["recipients"][0]["lastCode"]) == ("failed", 554)


KINDS: list[dict[str, Any]] = [
    {"body": "plain text"},
    {"body": "<p>Hello <b>you</b></p>"},
    {"body": "text", "bodyHtml": "<p>other</p>"},
    {"subject": "Grüße aus München " * 20, "body": "Zürich 😀"},
    {"body": "." + "\r\n..\r\n.\r\n" + "x" * 5000 + " \t \r\n\r\n\r\n"},
    {"body": "file", "attachments": [{"filename": "ä.bin", "data": "AAEC/w==", "contentType": "x/y"}]},
    {"body": "copies", "cc": ["C <c@there.example>"], "bcc": "d@there.example", "automated": True},
    {"body": "reply to", "replyTo": "bob@postroom.localhost"},
    {"body": "x" * 99_000},
]


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("pipelining", [True, False])
async def test_every_kind_of_mail_arrives_whole_and_signed(
    sender: Server, peer: SmtpPeer, pipelining: bool
) -> None:
    peer.features = ("PIPELINING", "8BITMIME") if pipelining else ()
    bob = await sender.new_inbox("bob")
    for kind in KINDS:
        before = len(peer.mails)
        message_id = await send(sender, bob, "carol@there.example", **kind)
        message = await settled(sender, message_id)
        stored = (await sender.api.get(f"/v1/messages/{message_id}/raw")).content
        for mail in peer.mails[before:]:
            assert mail.raw.endswith(stored)
            assert await is_signed(sender, mail.raw, "postroom.localhost"), kind
            assert parse_mail(mail.raw).message_id == message["rfcMessageId"]


@pytest.mark.sqlite_alone
async def test_a_reply_with_its_quote_arrives_signed(sender: Server, peer: SmtpPeer) -> None:
    bob = await sender.new_inbox("bob")
    question = b"From: Alice <alice@there.example>\r\nMessage-ID: <q@there.example>\r\n\r\nWhat?\r\n"
    await sender.deliver(question, "bob")
    thread_id = (await sender.next_event())["thread_id"]
    await settled(sender, await send(sender, bob, "alice@there.example", threadId=thread_id, body="This."))
    (mail,) = peer.mails
    read = parse_mail(mail.raw)
    assert read.in_reply_to == ("<q@there.example>",)
    assert "> What?" in read.body_text
    assert await is_signed(sender, mail.raw, "postroom.localhost")
