"""Mail for outside that is kept instead of sent."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom import config as configuration
from postroom.couriers.outbound_routing import CapturingCourier
from postroom.mailbox import raw_mails
from postroom.outward.courier import DeliveryError, OutgoingMail
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.outbound import events_of, is_signed, running, send, settled
from tests.samples import samples

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def captured(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running(tmp_path, database_url, clock, "capture") as server:
        yield server


async def test_mail_for_outside_is_sent_captured_and_told(captured: Server) -> None:
    message_id = await send(captured, await captured.new_inbox("bob"), "carol@there.example")
    message = await settled(captured, message_id)
    assert (message["status"], message["captured"]) == ("sent", True)
    (recipient,) = message["recipients"]
    assert (recipient["state"], recipient["lastCode"], recipient["attempts"]) == ("captured", 250, 1)
    (event,) = await events_of(captured, "message.sent", "message.failed")
    assert (event["event"], event["message"]["id"]) == ("message.sent", message_id)
    async with signed_in(captured) as page:
        shown = (await page.get(f"/app/mail/{message['threadId']}")).text
    assert '<span class="state amber">captured</span>' in shown
    assert '<span class="state green">sent</span>' not in shown


async def test_a_captured_mail_is_kept_as_it_would_have_left_signed(captured: Server) -> None:
    message_id = await send(captured, await captured.new_inbox("bob"), "carol@there.example")
    await settled(captured, message_id)
    raw = (await captured.api.get(f"/v1/messages/{message_id}/raw")).content
    assert await is_signed(captured, raw, "postroom.localhost")


async def test_a_large_captured_mail_is_kept_signed_too(captured: Server) -> None:
    body = "All work and no play. " * 4000
    html = f"<p>{'x' * raw_mails.IN_ROW_BYTES}</p>"
    inbox_id = await captured.new_inbox("bob")
    message_id = await send(captured, inbox_id, "carol@there.example", body=body, bodyHtml=html)
    await settled(captured, message_id)
    raw = (await captured.api.get(f"/v1/messages/{message_id}/raw")).content
    assert await is_signed(captured, raw, "postroom.localhost")


async def test_mail_for_an_inbox_here_is_delivered_and_not_captured(captured: Server) -> None:
    bob = await captured.new_inbox("bob")
    await captured.new_inbox("dan")
    message = await settled(captured, await send(captured, bob, "dan@postroom.localhost"))
    assert "captured" not in message
    assert message["recipients"][0]["state"] == "delivered"


async def test_with_recipients_here_and_outside_each_has_its_own_state(captured: Server) -> None:
    bob = await captured.new_inbox("bob")
    await captured.new_inbox("dan")
    recipients = ("dan@postroom.localhost", "carol@there.example")
    message = await settled(captured, await send(captured, bob, *recipients))
    assert (message["status"], message["captured"]) == ("sent", True)
    states = {recipient["address"]: recipient["state"] for recipient in message["recipients"]}
    assert states == {"dan@postroom.localhost": "delivered", "carol@there.example": "captured"}
    listed = (await captured.api.get(f"/v1/inboxes/{bob}/messages")).json()["data"]
    assert [message["captured"] for message in listed] == [True]


@pytest.mark.both_databases
async def test_a_captured_mail_is_done_and_cannot_be_sent_again(captured: Server) -> None:
    message_id = await send(captured, await captured.new_inbox("bob"), "carol@there.example")
    await settled(captured, message_id)
    for decision in ("retry", "cancel"):
        assert (await captured.api.post(f"/v1/messages/{message_id}/{decision}")).status_code == 409


async def test_what_no_server_could_be_given_is_not_captured() -> None:
    mail = OutgoingMail("bob@postroom.localhost", "carol@there.example\r\nDATA", b"Subject: x\r\n\r\n", "x")
    with pytest.raises(DeliveryError):
        await CapturingCourier().deliver(mail)


@samples(
    ("environment", "outbound"),
    [
        ({}, "capture"),
        ({"POSTROOM_DOMAIN": "postroom.localhost."}, "capture"),
        ({"POSTROOM_DOMAIN": "mail.example.com"}, "mx"),
        ({"POSTROOM_OUTBOUND": "mx"}, "mx"),
        ({"POSTROOM_OUTBOUND": "capture", "POSTROOM_DOMAIN": "mail.example.com"}, "capture"),
    ],
)
def test_at_home_nothing_leaves_unless_told(environment: dict[str, str], outbound: str) -> None:
    assert configuration.load(environment).outbound == outbound
