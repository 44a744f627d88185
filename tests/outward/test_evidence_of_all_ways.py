"""Each way by which an email leaves has a receipt that verifies, and the line of an agent where it is one."""

import hashlib
from collections.abc import AsyncIterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from tests.adversary import ways_out
from tests.adversary.orders import RECIPIENT
from tests.adversary.ways_out import NAME, WayOut
from tests.conftest import Server, running_server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import relay_to, settled
from tests.outward.test_evidence import require_signed

FREE = dict.fromkeys(("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY"), "0")
LINE = "An agent wrote this."
# Email that stays as its author wrote it; of a mail client this is mostly a person.
NOT_WRITTEN_HERE = (ways_out.by_redirect, ways_out.by_redirecting_rule, ways_out.by_submission)


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def server(
    database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> AsyncIterator[Server]:
    doors = {"IMAP": "127.0.0.1:0", "SUBMISSION": "127.0.0.1:0", "OUTBOUND": relay_to(peer)}
    config = settings(tmp_path, DATABASE_URL=database_url, PLAN="developer", **doors, **FREE)
    async with running_server(config, clock) as running:
        yield running


@pytest.mark.share(2)
async def test_every_way_out_has_a_receipt_and_says_that_an_agent_wrote_it(
    server: Server, peer: SmtpPeer
) -> None:
    inbox_id = await server.new_inbox(NAME)
    rule = {"disclosure": {"text": LINE, "header": True}}
    assert (await server.api.patch(f"/v1/inboxes/{inbox_id}", json=rule)).status_code == 200
    keys = (await server.api.get("/.well-known/postroom-keys.json")).json()
    faults: dict[str, Any] = {}
    for way in ways_out.ALL:
        message_id = await accepted(server, inbox_id, way)
        await settled(server, message_id)
        receipt = (await server.api.get(f"/v1/messages/{message_id}/receipt")).json()
        require_signed(receipt, keys)
        left = {hashlib.sha256(mail.raw).hexdigest(): mail.raw for mail in peer.mails}
        deliveries = receipt["deliveries"]
        raws = [left.get(each["sha256"] or "") for each in deliveries]
        is_passed_on = way in NOT_WRITTEN_HERE
        wrong = {
            "bytes": None in raws,
            "recipient": RECIPIENT not in [each["recipient"] for each in deliveries],
            "sender": not all(each["mailFrom"] for each in deliveries),
            "answer": {each["code"] for each in deliveries} != {250},
            "who": (receipt["message"]["submittedBy"] or {}).get("type") != "key",
            "line": has_line(raws[0] or b"") == is_passed_on,
            "header": (b"\r\nAI-Disclosure: " in (raws[0] or b"")) == is_passed_on,
        }
        if any(wrong.values()):
            faults[way.__name__] = [name for name, is_so in wrong.items() if is_so]
    assert faults == {}


def has_line(raw: bytes) -> bool:
    parts = (part.get_payload(decode=True) for part in message_from_bytes(raw).walk())
    return any(LINE.encode() in part for part in parts if isinstance(part, bytes))


async def accepted(server: Server, inbox_id: str, way: WayOut) -> str:
    """The first hostile email that the way takes."""
    for number in range(12):
        message_id = await way(server, inbox_id, number)
        if message_id is not None:
            return message_id
    raise AssertionError(f"{way.__name__} takes nothing")
