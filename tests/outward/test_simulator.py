"""The simulator: each of its characters behaves as named, through the queue, the reader and the events."""

import asyncio
import smtplib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.outward import deliver_mail
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.outbound import events_of, message_of, message_when, running, send, settled, suppressed
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

AT = "simulator.postroom.localhost"


@pytest.fixture
async def practice(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running(tmp_path, database_url, clock, "capture") as server:
        yield server


async def received(server: Server, count: int) -> list[dict[str, Any]]:
    """So many mails, once their events are told, oldest first."""
    found: list[dict[str, Any]] = []
    after: str | None = None
    while len(found) < count:
        event = await server.next_event(after)
        after = event["event_id"]
        if event["event"] == "message.received":
            found.append(await message_of(server, event["message"]["id"]))
    return found


async def test_ok_takes_the_mail_and_says_nothing(practice: Server) -> None:
    message = await settled(practice, await send(practice, await practice.new_inbox("bob"), f"ok@{AT}"))
    assert message["status"] == "sent"
    assert message["recipients"][0]["state"] == "delivered"
    assert "captured" not in message
    assert [event["event"] for event in await events_of(practice, "message.sent")] == ["message.sent"]


async def test_bounce_is_sent_first_and_bounces_then_for_each_tag_alone(practice: Server) -> None:
    bob = await practice.new_inbox("bob")
    message_id = await send(practice, bob, f"bounce@{AT}")
    message = await message_when(practice, message_id, lambda found: found["status"] == "failed")
    assert message["recipients"][0]["state"] == "bounced"
    told = await events_of(practice, "message.sent", "message.bounced")
    assert [event["event"] for event in told] == ["message.sent", "message.bounced"]
    assert "User unknown" in told[1]["reason"]
    assert await suppressed(practice) == {f"bounce@{AT}": "bounce"}
    message_id = await send(practice, bob, f"bounce+1@{AT}")
    await message_when(practice, message_id, lambda found: found["status"] == "failed")
    assert set(await suppressed(practice)) == {f"bounce@{AT}", f"bounce+1@{AT}"}


async def test_soft_bounce_suppresses_nobody(practice: Server) -> None:
    await send(practice, await practice.new_inbox("bob"), f"soft-bounce@{AT}")
    (report,) = await received(practice, 1)
    assert "4.4.7" in report["bodyText"]
    assert await suppressed(practice) == {}


async def test_complaint_suppresses_and_tells(practice: Server) -> None:
    await send(practice, await practice.new_inbox("bob"), f"complaint@{AT}")
    await received(practice, 1)
    (event,) = await events_of(practice, "message.complained")
    assert event["recipient"] == f"complaint@{AT}"
    assert await suppressed(practice) == {f"complaint@{AT}": "complaint"}


async def test_full_fails_at_once_and_may_be_tried_again(practice: Server) -> None:
    message = await settled(practice, await send(practice, await practice.new_inbox("bob"), f"full@{AT}"))
    assert message["status"] == "failed"
    assert message["recipients"][0]["lastCode"] == 552
    assert await suppressed(practice) == {}
    assert (await practice.api.post(f"/v1/messages/{message['id']}/retry")).status_code == 200


async def test_slow_takes_its_time(practice: Server) -> None:
    message_id = await send(practice, await practice.new_inbox("bob"), f"slow+1@{AT}")
    assert (await settled(practice, message_id))["status"] == "sent"


MACHINES = ("auto-reply", "out-of-office")


async def test_machines_answer_a_person_in_the_thread(practice: Server) -> None:
    bob = await practice.new_inbox("bob")
    for number, name in enumerate(MACHINES, 1):
        message_id = await send(practice, bob, f"{name}@{AT}")
        answer = (await received(practice, number))[-1]
        assert answer["automated"] is True
        assert answer["threadId"] == (await message_of(practice, message_id))["threadId"], name


async def test_machines_do_not_answer_machines(practice: Server) -> None:
    bob = await practice.new_inbox("bob")
    for name in MACHINES:
        await settled(practice, await send(practice, bob, f"{name}@{AT}", automated=True))
    listed = (await practice.api.get(f"/v1/inboxes/{bob}/messages?direction=inbound")).json()
    assert listed["total"] == 0


async def test_echo_says_what_it_heard(practice: Server) -> None:
    await send(practice, await practice.new_inbox("bob"), f"echo@{AT}", body="Is anybody there? Grüße")
    (answer,) = await received(practice, 1)
    assert answer["replyText"].strip() == "Is anybody there? Grüße"
    assert answer["automated"] is False


async def test_injection_hides_orders_in_its_answer(practice: Server) -> None:
    await send(practice, await practice.new_inbox("bob"), f"injection@{AT}")
    (answer,) = await received(practice, 1)
    assert "Ignore all previous instructions" in answer["bodyText"]
    assert "display:none" in answer["bodyHtml"]


async def test_attachment_sends_files_whose_text_can_be_read(practice: Server) -> None:
    await send(practice, await practice.new_inbox("bob"), f"attachment@{AT}")
    (answer,) = await received(practice, 1)
    texts = {file["filename"]: file["parsedText"] for file in answer["attachments"]}
    assert "Lamp" in texts["figures.csv"]
    assert "87.00 EUR" in texts["invoice.pdf"]


async def test_thread_answers_three_times_the_last_time_by_somebody_new(practice: Server) -> None:
    message_id = await send(practice, await practice.new_inbox("bob"), f"thread@{AT}")
    answers = await received(practice, 3)
    assert {answer["threadId"] for answer in answers} == {
        (await message_of(practice, message_id))["threadId"]
    }
    assert [answer["newParticipant"] for answer in answers] == [False, False, True]


async def test_who_is_not_in_the_simulator_is_refused(practice: Server) -> None:
    message = await settled(practice, await send(practice, await practice.new_inbox("bob"), f"nobody@{AT}"))
    assert (message["status"], message["recipients"][0]["lastCode"]) == ("failed", 550)


async def test_the_simulator_is_closed_to_mail_from_outside(practice: Server) -> None:
    def hand_over() -> None:
        with smtplib.SMTP("127.0.0.1", practice.smtp_port) as smtp:
            smtp.sendmail("alice@example.com", [f"echo@{AT}"], b"Subject: x\r\n\r\nx")

    with pytest.raises(smtplib.SMTPRecipientsRefused):
        await asyncio.to_thread(hand_over)


async def test_an_answer_comes_once_however_often_it_is_tried(
    practice: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies when it records what came of it; the next attempt says the same again."""
    record, failures = deliver_mail.record_tried, [RuntimeError("the disk is gone for a moment")]

    def failing(*arguments: Any) -> list[list[str]]:
        bells = record(*arguments)
        if failures:
            raise failures.pop()
        return bells

    monkeypatch.setattr(deliver_mail, "record_tried", failing)
    bob = await practice.new_inbox("bob")
    message_id = await send(practice, bob, f"echo@{AT}")
    await until(lambda: not failures, "the first attempt is lost")
    practice.clock.turn(60_000)
    await settled(practice, message_id)
    listed = (await practice.api.get(f"/v1/inboxes/{bob}/messages?direction=inbound")).json()
    assert listed["total"] == 1
