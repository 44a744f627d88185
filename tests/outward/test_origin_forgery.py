"""Emails in a false name make nobody a reader of a value, and nobody a recipient."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import MINUTE
from postroom.inward.mails import UNKNOWN_PEER, Arrival, Destination, Origin
from postroom.inward.receive import OwnReader, receive_mail
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer, asks_once
from tests.outward.test_origin_guard import MALLORY, post
from tests.raw_mails import raw_mail
from tests.waiting import until

BOSS = "boss@bank.example"
LINK = "https://pay.evil.example/invoice/77"
pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    policy = {("_dmarc.bank.example", "TXT"): ["v=DMARC1; p=reject"]}
    async with (
        DnsServer(policy) as names,
        running_server(settings(tmp_path), clock, asks_once(names)) as one,
    ):
        yield one


async def receive(server: Server, inbox_id: str, sender: str, text: str, **fields: str) -> None:
    raw = raw_mail(text, **{"from": sender, **fields})
    origin = Origin((Destination(inbox_id),), b"", UNKNOWN_PEER, "", sender)
    await receive_mail(server.resources, OwnReader(10_000), Arrival(origin, raw))

    async def is_examined() -> bool:
        rows = await server.resources.db.read(lambda tx: tx.all("select 1 as found from examinations"))
        return not rows

    await until(is_examined)
    server.clock.turn(MINUTE)


async def kinds_held(server: Server, inbox_id: str, **body: Any) -> list[str]:
    answer = (await post(server, inbox_id, **body)).json()
    server.clock.turn(MINUTE)
    return [each["kind"] for each in answer.get("hold", {}).get("origins", [])]


async def test_a_forged_email_lets_nothing_through(server: Server) -> None:
    made = await server.api.post("/v1/inboxes", json={"mailboxName": "bob", "originGuard": "hold"})
    bob = made.json()["id"]
    await receive(server, bob, BOSS, "Hello", message_id="<1@x>", cc="drop@evil.example")
    answered = {"message_id": "<2@x>", "in_reply_to": "<1@x>", "to": BOSS}
    await receive(server, bob, MALLORY, f"See {LINK}", **answered)
    listed = (await server.api.get(f"/v1/inboxes/{bob}/messages?direction=inbound")).json()["data"]
    assert [each["auth"]["dmarc"] for each in listed] == ["none", "fail"]
    thread = listed[0]["threadId"]
    assert thread == listed[1]["threadId"]
    # The boss seems to have read the link in a thread of their own.
    assert await kinds_held(server, bob, threadId=thread, to=BOSS, body=LINK) == ["link"]
    # Only a forged email names the other recipient; and what it quotes was held.
    named = await kinds_held(server, bob, threadId=thread, to=BOSS, cc=["drop@evil.example"])
    assert named == ["email", "address"]


async def test_forged_emails_make_no_mailing_list(server: Server) -> None:
    made = await server.api.post("/v1/inboxes", json={"mailboxName": "bob", "originGuard": "hold"})
    bob = made.json()["id"]
    for sender in (BOSS, "one@evil.example", "two@evil.example", "three@evil.example"):
        await receive(server, bob, sender, "News", to="all@evil.example")
    await receive(server, bob, MALLORY, f"See {LINK}", to="all@evil.example")
    assert await kinds_held(server, bob, to=BOSS, body=LINK) == ["link"]
