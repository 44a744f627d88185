"""Bounces and complaints by real SMTP: only what is about a mail we really sent has an effect."""

import asyncio
import smtplib
from typing import Any

import pytest

from postroom.clock import DAY
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.outbound import REPORT, events_of, message_of, send, settled, suppressed

CAROL = "carol@there.example"
NO_SUCH_USER: dict[str, str] = {
    "recipient": CAROL,
    "action": "failed",
    "status": "5.1.1",
    "diagnostic": "550 5.1.1 no such user",
}
COMPLAINT = """\
Subject: Complaint\r
Message-ID: <complaint@there.example>\r
From: feedback@there.example\r
To: <bob@postroom.localhost>\r
MIME-Version: 1.0\r
Content-Type: multipart/report; report-type=feedback-report; boundary=b\r
\r
--b\r
Content-Type: text/plain\r
\r
Somebody pressed the button.\r
--b\r
Content-Type: message/feedback-report\r
\r
Feedback-Type: abuse\r
User-Agent: there/1\r
Version: 1\r
Original-Rcpt-To: <{recipient}>\r
\r
--b\r
Content-Type: message/rfc822\r
\r
Message-ID: {message_id}\r
Subject: Hello\r
\r
Hi there\r
--b--\r
"""


async def hand_over(server: Server, raw: str, recipient: str) -> None:
    def talk() -> None:
        with smtplib.SMTP("127.0.0.1", server.smtp_port, timeout=120) as smtp:
            smtp.sendmail("", [recipient], raw.encode())

    await asyncio.to_thread(talk)


def return_path_of(peer: SmtpPeer, number: int = -1) -> str:
    return peer.mails[number].mail_line.split(b"<")[1].split(b">")[0].decode()


async def sent_mail(sender: Server, *to: str, inbox_id: str | None = None) -> dict[str, Any]:
    inbox_id = inbox_id or await sender.new_inbox("bob")
    return await settled(sender, await send(sender, inbox_id, *(to or (CAROL,))))


async def received_total(sender: Server, message: dict[str, Any]) -> int:
    query = {"direction": "inbound"}
    page = (await sender.api.get(f"/v1/inboxes/{message['inboxId']}/messages", params=query)).json()
    total: int = page["total"]
    return total


async def assert_no_effect(sender: Server, message: dict[str, Any], arrived: int = 1) -> None:
    """The report is ordinary mail: it lies in the inbox and has changed nothing."""
    assert (await message_of(sender, message["id"]))["status"] == "sent"
    assert await suppressed(sender) == {}
    assert await events_of(sender, "message.bounced", "message.complained") == []
    assert await received_total(sender, message) == arrived


async def assert_bounced(sender: Server, message: dict[str, Any], reason: str) -> None:
    now = await message_of(sender, message["id"])
    assert now["status"] == "failed"
    (recipient,) = now["recipients"]
    assert (recipient["state"], recipient["lastReply"]) == ("bounced", reason)
    (event,) = await events_of(sender, "message.bounced")
    assert (event["message"]["id"], event["recipient"], event["reason"]) == (message["id"], CAROL, reason)


async def test_a_hard_bounce_to_the_return_path_fails_the_message_and_suppresses(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    await hand_over(sender, REPORT.format(message_id="<unknown@x>", **NO_SUCH_USER), return_path_of(peer))
    await assert_bounced(sender, message, "550 5.1.1 no such user")
    assert await suppressed(sender) == {CAROL: "bounce"}
    assert await received_total(sender, message) == 1


async def test_a_hard_bounce_is_also_known_by_our_message_id(sender: Server) -> None:
    message = await sent_mail(sender)
    raw = REPORT.format(message_id=message["rfcMessageId"], **NO_SUCH_USER)
    await hand_over(sender, raw, "bob@postroom.localhost")
    await assert_bounced(sender, message, "550 5.1.1 no such user")
    assert await suppressed(sender) == {CAROL: "bounce"}


async def test_the_same_report_twice_is_one_bounce(sender: Server, peer: SmtpPeer) -> None:
    message = await sent_mail(sender)
    raw = REPORT.format(message_id=message["rfcMessageId"], **NO_SUCH_USER)
    await hand_over(sender, raw, return_path_of(peer))
    await hand_over(sender, raw, return_path_of(peer))
    await hand_over(sender, f"X-Again: yes\r\n{raw}", "bob@postroom.localhost")
    await assert_bounced(sender, message, "550 5.1.1 no such user")


async def test_a_refusal_of_the_content_fails_the_message_and_suppresses_nobody(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    reason = {"status": "5.7.1", "diagnostic": "554 5.7.1 blocked by policy"}
    await hand_over(
        sender, REPORT.format(message_id="<x@y>", **{**NO_SUCH_USER, **reason}), return_path_of(peer)
    )
    await assert_bounced(sender, message, "554 5.7.1 blocked by policy")
    assert await suppressed(sender) == {}


@pytest.mark.parametrize(
    "soft",
    [
        {"status": "4.4.7", "diagnostic": "451 4.4.7 expired"},
        {"status": "5.2.2", "diagnostic": "552 5.2.2 mailbox full"},
        {"action": "delayed", "status": "4.2.0", "diagnostic": "450 later"},
        {"action": "delivered", "status": "2.0.0", "diagnostic": "250 ok"},
    ],
    ids=lambda soft: soft["diagnostic"],
)
async def test_a_soft_bounce_changes_nothing(sender: Server, peer: SmtpPeer, soft: dict[str, str]) -> None:
    message = await sent_mail(sender)
    await hand_over(
        sender, REPORT.format(message_id="<x@y>", **{**NO_SUCH_USER, **soft}), return_path_of(peer)
    )
    await assert_no_effect(sender, message)


async def test_a_forged_report_is_ordinary_mail(sender: Server) -> None:
    message = await sent_mail(sender)
    unknown_id = REPORT.format(message_id="<made-up@postroom.localhost>", **NO_SUCH_USER)
    wrong_recipient = REPORT.format(
        message_id=message["rfcMessageId"], **{**NO_SUCH_USER, "recipient": "victim@there.example"}
    )
    complaint = COMPLAINT.format(message_id=message["rfcMessageId"], recipient="victim@there.example")
    for raw in (unknown_id, wrong_recipient, complaint):
        await hand_over(sender, raw, "bob@postroom.localhost")
    await assert_no_effect(sender, message, arrived=3)


async def test_a_report_to_another_inbox_than_the_sender_has_no_effect(sender: Server) -> None:
    message = await sent_mail(sender)
    await sender.new_inbox("mallory")
    await hand_over(
        sender,
        REPORT.format(message_id=message["rfcMessageId"], **NO_SUCH_USER),
        "mallory@postroom.localhost",
    )
    await assert_no_effect(sender, message, arrived=0)


async def test_a_report_that_comes_too_late_has_no_effect(sender: Server, peer: SmtpPeer) -> None:
    message = await sent_mail(sender)
    sender.clock.turn(8 * DAY)
    raw = REPORT.format(message_id=message["rfcMessageId"], **NO_SUCH_USER)
    await hand_over(sender, raw, "bob@postroom.localhost")
    await assert_no_effect(sender, message)
    sender.clock.turn(8 * DAY)
    with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
        await hand_over(sender, raw, return_path_of(peer))
    assert [code for code, _ in refused.value.recipients.values()] == [550]


async def test_a_tampered_return_path_is_refused_even_where_an_inbox_has_its_name(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    path = return_path_of(peer)
    at = len("bounces+") + 5
    tampered = path[:at] + ("a" if path[at] != "a" else "b") + path[at + 1 :]
    own = await sender.new_inbox("bounces")
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        await hand_over(sender, REPORT.format(message_id="<x@y>", **NO_SUCH_USER), tampered)
    await assert_no_effect(sender, message, arrived=0)
    await hand_over(sender, REPORT.format(message_id="<x@y>", **NO_SUCH_USER), path)
    await assert_bounced(sender, message, "550 5.1.1 no such user")
    assert (await sender.api.get(f"/v1/inboxes/{own}/messages")).json()["total"] == 0


async def test_a_complaint_suppresses_and_tells_and_the_mail_stays_sent(sender: Server) -> None:
    message = await sent_mail(sender)
    raw = COMPLAINT.format(message_id=message["rfcMessageId"], recipient=CAROL)
    await hand_over(sender, raw, "bob@postroom.localhost")
    await hand_over(sender, raw, "bob@postroom.localhost")
    assert await suppressed(sender) == {CAROL: "complaint"}
    (event,) = await events_of(sender, "message.complained")
    assert (event["message"]["id"], event["recipient"]) == (message["id"], CAROL)
    assert (await message_of(sender, message["id"]))["status"] == "sent"


async def test_a_bounce_of_one_recipient_leaves_the_others_as_they_are(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender, CAROL, "dave@there.example")
    number = next(at for at, mail in enumerate(peer.mails) if CAROL.encode() in mail.rcpt_line)
    await hand_over(sender, REPORT.format(message_id="<x@y>", **NO_SUCH_USER), return_path_of(peer, number))
    now = await message_of(sender, message["id"])
    assert now["status"] == "failed"
    assert [recipient["state"] for recipient in now["recipients"]] == ["bounced", "delivered"]


async def test_a_message_with_a_bounced_recipient_stays_failed_after_a_retry_of_another(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.behaviour["RCPT"] = [b"554 5.3.0 no"]
    message = await sent_mail(sender, CAROL, "dave@there.example")
    for mail in range(len(peer.mails)):
        recipient = peer.mails[mail].rcpt_line.split(b"<")[1].split(b">")[0].decode()
        report = {**NO_SUCH_USER, "recipient": recipient}
        await hand_over(sender, REPORT.format(message_id="<x@y>", **report), return_path_of(peer, mail))
    again = (await sender.api.post(f"/v1/messages/{message['id']}/retry")).json()
    assert again["status"] == "failed"
