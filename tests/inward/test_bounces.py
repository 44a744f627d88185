"""Bounces and complaints by real SMTP: only what is about a mail we really sent has an effect."""

import asyncio
import smtplib
from pathlib import Path
from typing import Any

import psycopg
import pytest

from postroom.clock import DAY
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import (
    REPORT,
    events_of,
    message_of,
    message_when,
    relay_to,
    running,
    send,
    settled,
    suppressed,
)
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

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


UNCLEAR = {"status": "5.0.0", "diagnostic": "554 5.0.0 the mail was not taken"}


async def bounce(sender: Server, peer: SmtpPeer, inbox_id: str, reason: dict[str, str]) -> None:
    await sent_mail(sender, inbox_id=inbox_id)
    raw = REPORT.format(message_id="<x@y>", **{**NO_SUCH_USER, **reason})
    await hand_over(sender, raw, return_path_of(peer))


async def test_the_third_bounce_that_does_not_say_why_suppresses(sender: Server, peer: SmtpPeer) -> None:
    inbox_id = await sender.new_inbox("bob")
    for _ in range(2):
        await bounce(sender, peer, inbox_id, UNCLEAR)
        assert await suppressed(sender) == {}
    await bounce(sender, peer, inbox_id, UNCLEAR)
    assert await suppressed(sender) == {CAROL: "bounce"}


async def test_only_bounces_of_the_last_thirty_days_count(sender: Server, peer: SmtpPeer) -> None:
    inbox_id = await sender.new_inbox("bob")
    await bounce(sender, peer, inbox_id, UNCLEAR)
    sender.clock.turn(31 * DAY)
    await bounce(sender, peer, inbox_id, UNCLEAR)
    await bounce(sender, peer, inbox_id, UNCLEAR)
    assert await suppressed(sender) == {}
    await bounce(sender, peer, inbox_id, UNCLEAR)
    assert await suppressed(sender) == {CAROL: "bounce"}


async def test_a_fault_of_the_sender_never_suppresses(sender: Server, peer: SmtpPeer) -> None:
    reasons = [
        {"status": "5.7.1", "diagnostic": "550 5.7.1 access denied"},
        {"status": "5.1.1", "diagnostic": "553 5.1.1 no such domain (in reply to MAIL FROM command)"},
        {"status": "5.0.0", "diagnostic": "553 see http://dnsbl.lists.example/?ip=192.0.2.1"},
    ]
    for number, reason in enumerate(reasons):
        inbox_id = await sender.new_inbox(f"bob{number}")
        for _ in range(4):
            await bounce(sender, peer, inbox_id, reason)
        assert await suppressed(sender) == {}, reason
    assert len(await events_of(sender, "message.bounced")) == 4 * len(reasons)


async def test_fields_of_a_list_do_not_hide_a_bounce_at_the_return_path(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    raw = (
        "From: robot@there.example\r\nSubject: Returned\r\nList-Id: <crew.there.example>\r\n\r\n"
        f"The mail could not be delivered.\r\n<{CAROL}>: 550 5.1.1 no such user\r\n"
    )
    await hand_over(sender, raw, return_path_of(peer))
    await assert_bounced(sender, message, "550 5.1.1 no such user")
    assert await suppressed(sender) == {CAROL: "bounce"}


@pytest.mark.parametrize(
    "soft",
    [
        {"status": "4.4.7", "diagnostic": "451 4.4.7 expired"},
        {"status": "5.2.2", "diagnostic": "552 5.2.2 mailbox full"},
    ],
    ids=lambda soft: soft["diagnostic"],
)
async def test_what_failed_has_bounced_whatever_its_status_and_only_a_hard_reason_suppresses(
    sender: Server, peer: SmtpPeer, soft: dict[str, str]
) -> None:
    message = await sent_mail(sender)
    await hand_over(
        sender, REPORT.format(message_id="<x@y>", **{**NO_SUCH_USER, **soft}), return_path_of(peer)
    )
    await assert_bounced(sender, message, soft["diagnostic"])
    assert await suppressed(sender) == {}


@pytest.mark.both_databases
async def test_a_delay_is_kept_as_the_last_word_and_changes_nothing_else(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    delay = {"action": "delayed", "status": "4.2.0", "diagnostic": "450 later"}
    raw = REPORT.format(message_id="<x@y>", **{**NO_SUCH_USER, **delay})
    await hand_over(sender, raw, return_path_of(peer))
    await assert_no_effect(sender, message)
    (recipient,) = (await message_of(sender, message["id"]))["recipients"]
    assert (recipient["state"], recipient["lastReply"]) == ("delivered", "450 later")


async def test_news_of_a_delivery_changes_nothing(sender: Server, peer: SmtpPeer) -> None:
    message = await sent_mail(sender)
    news = {"action": "delivered", "status": "2.0.0", "diagnostic": "250 ok"}
    raw = REPORT.format(message_id="<x@y>", **{**NO_SUCH_USER, **news})
    await hand_over(sender, raw, return_path_of(peer))
    await assert_no_effect(sender, message)
    (recipient,) = (await message_of(sender, message["id"]))["recipients"]
    assert recipient["lastReply"] != "250 ok"


async def test_a_mail_to_the_return_path_that_nobody_can_read_is_a_bounce_and_says_so(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    raw = "From: system@there.example\r\nSubject: Kolme\r\n\r\nNeljä viisi kuusi.\r\n"
    await hand_over(sender, raw, return_path_of(peer))
    await assert_bounced(sender, message, "Kolme: Neljä viisi kuusi.")
    assert await suppressed(sender) == {}


async def test_an_automatic_answer_to_the_return_path_is_no_bounce(sender: Server, peer: SmtpPeer) -> None:
    message = await sent_mail(sender)
    raw = (
        f"From: {CAROL}\r\nSubject: Out of office\r\nAuto-Submitted: auto-replied\r\n\r\n"
        "I am away until Monday.\r\n"
    )
    await hand_over(sender, raw, return_path_of(peer))
    await assert_no_effect(sender, message)


async def test_a_bounce_to_the_inbox_is_attributed_by_the_return_path_it_names(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    raw = REPORT.format(message_id="<other@x>", **NO_SUCH_USER)
    named = raw.replace("Message-ID: <other@x>", f"Return-Path: <{return_path_of(peer)}>")
    await hand_over(sender, named, "bob@postroom.localhost")
    await assert_bounced(sender, message, "550 5.1.1 no such user")


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


async def assert_complained(sender: Server, message: dict[str, Any], *who: str) -> None:
    assert await suppressed(sender) == dict.fromkeys(who, "complaint")
    events = await events_of(sender, "message.complained")
    assert {(event["message"]["id"], event["recipient"]) for event in events} == {
        (message["id"], recipient) for recipient in who
    }
    assert all(event["reason"] == "abuse" for event in events)
    assert (await message_of(sender, message["id"]))["status"] == "sent"


def complaint_about(original: bytes, recipient: str = "", return_path: str = "") -> str:
    raw = COMPLAINT.format(message_id="@", recipient=recipient)
    head, tail = raw.split("Message-ID: @\r\nSubject: Hello\r\n\r\nHi there\r\n")
    if not recipient:
        head = head.replace("Original-Rcpt-To: <>\r\n", "")
    if return_path:
        head = head.replace("Version: 1\r\n", f"Version: 1\r\nOriginal-Mail-From: <{return_path}>\r\n")
    return f"{head}{original.decode()}{tail}"


async def test_a_complaint_that_names_the_return_path_suppresses_and_the_mail_stays_sent(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender, CAROL, "dave@there.example")
    number = next(at for at, mail in enumerate(peer.mails) if CAROL.encode() in mail.rcpt_line)
    raw = complaint_about(b"Subject: Hello\r\n\r\nHi\r\n", return_path=return_path_of(peer, number))
    await hand_over(sender, raw, "bob@postroom.localhost")
    await hand_over(sender, raw, "bob@postroom.localhost")
    await assert_complained(sender, message, CAROL)


async def test_a_complaint_counts_when_the_mail_inside_carries_our_signature(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    await sender.new_inbox("feedback")
    received = b"Received: from postroom.localhost by mx.there.example\r\n" + peer.mails[-1].raw
    await hand_over(sender, complaint_about(received), "feedback@postroom.localhost")
    await assert_complained(sender, message, CAROL)


async def test_a_complaint_with_our_signature_blames_whom_it_names_among_several(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender, CAROL, "dave@there.example")
    original = peer.mails[-1].raw
    await hand_over(sender, complaint_about(original), "bob@postroom.localhost")
    await hand_over(sender, complaint_about(original, "victim@there.example"), "bob@postroom.localhost")
    await assert_complained(sender, message)
    await hand_over(sender, complaint_about(original, "dave@there.example"), "bob@postroom.localhost")
    await assert_complained(sender, message, "dave@there.example")


async def test_a_complaint_about_a_mail_that_we_did_not_sign_has_no_effect(
    sender: Server, peer: SmtpPeer
) -> None:
    message = await sent_mail(sender)
    forgeries = (
        (b"Hi there", b"Hi where"),
        (b"Subject: Hello", b"Subject: Hullo"),
        (b"DKIM-Signature", b"X-Signature"),
        (b"d=postroom.localhost", b"d=there.example"),
    )
    for number, (genuine, other) in enumerate(forgeries, 1):
        forged = peer.mails[-1].raw.replace(genuine, other)
        assert forged != peer.mails[-1].raw
        await hand_over(sender, complaint_about(forged, CAROL), "bob@postroom.localhost")
        await assert_no_effect(sender, message, arrived=number)


async def test_a_complaint_by_message_id_alone_has_no_effect(sender: Server) -> None:
    message = await sent_mail(sender)
    raw = COMPLAINT.format(message_id=message["rfcMessageId"], recipient=CAROL)
    await hand_over(sender, raw, "bob@postroom.localhost")
    await assert_no_effect(sender, message)


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
    await message_when(
        sender, message["id"], lambda now: all(each["state"] != "pending" for each in now["recipients"])
    )
    for mail in range(len(peer.mails)):
        recipient = peer.mails[mail].rcpt_line.split(b"<")[1].split(b">")[0].decode()
        report = {**NO_SUCH_USER, "recipient": recipient}
        await hand_over(sender, REPORT.format(message_id="<x@y>", **report), return_path_of(peer, mail))
    again = (await sender.api.post(f"/v1/messages/{message['id']}/retry")).json()
    assert again["status"] == "failed"


async def until_somebody_waits_for(node: "psycopg.Connection[Any]") -> None:
    blocked = "select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
    await until(lambda: node.execute(blocked).fetchall())


async def test_a_bounce_waits_for_the_node_that_has_the_mail_in_hand_before_it_touches_a_recipient(
    postgres_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> None:
    """Else each would hold what the other needs next, the mail and its recipient."""
    async with running(tmp_path, postgres_url, clock, relay_to(peer)) as sender:
        message = await sent_mail(sender)
        report = REPORT.format(message_id="<x@y>", **NO_SUCH_USER)
        with psycopg.connect(postgres_url) as other_node:
            other_node.execute("set deadlock_timeout = '10ms'")
            other_node.execute("update messages set status = status where id = %s", [message["id"]])
            coming = asyncio.create_task(hand_over(sender, report, return_path_of(peer)))
            await until_somebody_waits_for(other_node)
            other_node.execute("update deliveries set last_reply = '' where message_id = %s", [message["id"]])
            other_node.commit()
        await coming
        await assert_bounced(sender, message, "550 5.1.1 no such user")
