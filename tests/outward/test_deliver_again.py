"""Mail that is sent again, cancelled, or was in flight when its inbox or its process went."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import DAY, MINUTE, SECOND, from_iso
from postroom.mailbox import messages
from postroom.queue import deliveries, leases
from postroom.storage.database import Tx
from postroom_mail.mime.parse import parse_mail
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import (
    answered,
    events_of,
    message_of,
    message_when,
    relay_to,
    running,
    send,
    settled,
    turn,
)
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone


def states(message: dict[str, Any]) -> list[str]:
    return sorted(recipient["state"] for recipient in message["recipients"])


async def test_a_failed_mail_can_be_sent_again_once_its_address_is_not_suppressed(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.behaviour["RCPT"] = b"550 5.1.1 no such user"
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    await settled(sender, message_id)
    refused = await sender.api.post(f"/v1/messages/{message_id}/retry")
    assert (refused.status_code, refused.json()["error"]) == (422, "recipient_suppressed")
    assert (await message_of(sender, message_id))["status"] == "failed"
    await sender.api.delete("/v1/suppressions/carol@there.example")
    del peer.behaviour["RCPT"]
    again = await sender.api.post(f"/v1/messages/{message_id}/retry")
    assert (again.status_code, again.json()["status"]) == (200, "pending")
    assert (await settled(sender, message_id))["status"] == "sent"
    done = await sender.api.post(f"/v1/messages/{message_id}/retry")
    assert (done.status_code, done.json()["error"]) == (409, "nothing_to_do")


async def test_a_waiting_mail_can_be_tried_now_and_then_has_all_its_waits_again(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.behaviour["RCPT"] = b"451 4.2.1 later"
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    await answered(sender, message_id)
    assert (await sender.api.post(f"/v1/messages/{message_id}/retry")).status_code == 200
    (recipient,) = (await answered(sender, message_id, 2))["recipients"]
    assert from_iso(recipient["nextAttemptAt"]) - sender.clock.now() <= 1.2 * MINUTE


async def test_a_cancelled_mail_is_not_tried_again(sender: Server, peer: SmtpPeer) -> None:
    peer.behaviour["RCPT"] = b"451 4.2.1 later"
    bob = await sender.new_inbox("bob")
    message_id = await send(sender, bob, "carol@there.example")
    await answered(sender, message_id)
    cancelled = await sender.api.post(f"/v1/messages/{message_id}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "failed")
    assert states(cancelled.json()) == ["cancelled"]
    assert (await sender.api.post(f"/v1/messages/{message_id}/cancel")).status_code == 409
    turn(sender, 2 * DAY)
    await answered(sender, await send(sender, bob, "dave@there.example"))
    assert peer.stages["RCPT"] == 2, "one for each"
    del peer.behaviour["RCPT"]
    assert (await sender.api.post(f"/v1/messages/{message_id}/retry")).status_code == 409
    assert (await message_of(sender, message_id))["hold"]["state"] == "cancelled"


async def test_what_was_accepted_in_the_moment_of_a_cancel_is_shown_as_it_is(
    sender: Server, peer: SmtpPeer
) -> None:
    peer.hold = asyncio.Event()
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    await until(lambda: peer.stages["DATA"] == 1, "the peer has the mail")
    assert states((await sender.api.post(f"/v1/messages/{message_id}/cancel")).json()) == ["cancelled"]
    peer.hold.set()
    message = await message_when(sender, message_id, lambda message: message["status"] == "sent")
    assert states(message) == ["delivered"]


async def test_a_cancel_in_flight_ends_a_mail_that_is_then_deferred(sender: Server, peer: SmtpPeer) -> None:
    peer.hold = asyncio.Event()
    peer.behaviour["dot"] = b"451 4.3.0 later"
    bob = await sender.new_inbox("bob")
    message_id = await send(sender, bob, "carol@there.example")
    await until(lambda: peer.stages["DATA"] == 1, "the peer has the mail")
    assert (await sender.api.post(f"/v1/messages/{message_id}/cancel")).status_code == 200
    peer.hold.set()
    await until(lambda: peer.stages["dot"] == 1, "the peer has answered")
    turn(sender, 2 * DAY)
    await answered(sender, await send(sender, bob, "dave@there.example"))
    assert peer.stages["dot"] == 2, "one for each"
    assert states(await message_of(sender, message_id)) == ["cancelled"]


async def test_a_bounce_that_overtakes_the_answer_stands(sender: Server, peer: SmtpPeer) -> None:
    peer.hold = asyncio.Event()
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    await until(lambda: peer.stages["DATA"] == 1, "the peer has the mail")

    def bounce(tx: Tx) -> None:
        messages.lock(tx, message_id)
        (delivery,) = deliveries.list_of_message(tx, message_id)
        deliveries.mark_bounced(tx, delivery, "5.1.1 no such user", sender.clock.now())
        deliveries.settle(tx, message_id)

    await sender.resources.db.write(bounce)
    peer.hold.set()
    message = await answered(sender, message_id)
    assert (message["status"], states(message)) == ("failed", ["bounced"])
    assert await events_of(sender, "message.sent") == []


async def test_a_mail_in_flight_is_not_sent_a_second_time_by_a_retry(sender: Server, peer: SmtpPeer) -> None:
    peer.hold = asyncio.Event()
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    await until(lambda: peer.stages["DATA"] == 1, "the peer has the mail")
    assert (await sender.api.post(f"/v1/messages/{message_id}/retry")).status_code == 409
    peer.hold.set()
    await settled(sender, message_id)
    assert len(peer.mails) == 1


async def test_nothing_leaves_any_more_for_a_deleted_inbox(sender: Server, peer: SmtpPeer) -> None:
    bob = await sender.new_inbox("bob")
    peer.behaviour["RCPT"] = b"451 4.2.1 later"
    message_id = await send(sender, bob, "carol@there.example")
    await answered(sender, message_id)
    assert (await sender.api.delete(f"/v1/inboxes/{bob}")).status_code == 204
    del peer.behaviour["RCPT"]
    turn(sender, 72 * SECOND)
    for _ in range(6000):
        (delivery,) = await sender.resources.db.read(deliveries.list_of_message, message_id)
        if delivery.state == deliveries.CANCELLED:
            break
        await asyncio.sleep(0.02)
    assert (delivery.state, peer.mails) == (deliveries.CANCELLED, [])


async def test_work_in_flight_when_the_process_died_goes_again_after_the_lease(
    database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> None:
    peer.hold = asyncio.Event()
    async with running(tmp_path, database_url, clock, relay_to(peer)) as first:
        bob = await first.new_inbox("bob")
        message_id = await send(first, bob, "carol@there.example")
        await until(lambda: peer.stages["DATA"] == 1, "the peer has the mail")
    peer.hold.set()
    async with running(tmp_path, database_url, clock, relay_to(peer), token=first.token) as second:
        turn(second, leases.LEASE - 1)
        await settled(second, await send(second, bob, "dave@there.example"))
        assert peer.stages["DATA"] == 2, "somebody else may still be at the first one"
        turn(second, 1)
        message = await settled(second, message_id)
    assert (message["status"], message["recipients"][0]["attempts"]) == ("sent", 2)
    assert parse_mail(peer.mails[-1].raw).message_id == message["rfcMessageId"]


@pytest.mark.both_databases
async def test_attempts_that_died_with_their_process_do_not_use_up_the_waits(
    sender: Server, peer: SmtpPeer
) -> None:
    def die_often(tx: Tx) -> None:
        tx.run("update deliveries set attempts = attempts + 40")

    peer.behaviour["RCPT"] = [b"451 4.2.1 later", b"451 4.2.1 later"]
    message_id = await send(sender, await sender.new_inbox("bob"), "carol@there.example")
    await answered(sender, message_id)
    await sender.resources.db.write(die_often)
    turn(sender, 72 * SECOND)
    message = await answered(sender, message_id, 42)
    left = from_iso(message["recipients"][0]["nextAttemptAt"]) - sender.clock.now()
    assert (message["status"], left >= 4 * MINUTE) == ("pending", True)
