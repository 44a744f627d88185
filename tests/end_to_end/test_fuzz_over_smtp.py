"""Damaged mails over real SMTP: none is refused, lost or shown wrongly.

POSTROOM_TEST_FUZZ_SMTP_MAILS sets how many.
"""

import asyncio
import os
import random
import re
import smtplib
from collections.abc import Sequence

import pytest

from postroom.accounts.scope import Scope
from postroom.events.event_log import EventChoice, list_after
from postroom.resources import Tx
from tests.conftest import Server
from tests.mail.soundness import SAMPLES
from tests.mail.test_parse_fuzz import mutated
from tests.raw_mails import assert_is_message, assert_is_payload
from tests.waiting import until

MAILS = int(os.environ.get("POSTROOM_TEST_FUZZ_SMTP_MAILS", "24"))
INBOXES = 4
PATIENCE_SECONDS = 180
BARE_LINE_END = re.compile(rb"\r(?!\n)|(?<!\r)\n")


def damaged_mails(count: int) -> list[bytes]:
    chance = random.Random(20261114)
    seeds = [path.read_bytes() for path in sorted(SAMPLES.glob("*.eml"))]
    # A number makes each mail differ from every other, so that none counts as handed over again.
    return [mutated(chance, seeds) + b"\r\n%d\r\n" % number for number in range(count)]


def hand_over(port: int, mails: Sequence[bytes]) -> list[int]:
    """The answer to each mail; a mail of its own numbers goes to an inbox of its own number."""
    codes = []
    with smtplib.SMTP("127.0.0.1", port, timeout=PATIENCE_SECONDS) as smtp:
        smtp.ehlo()
        for number, raw in enumerate(mails):
            smtp.mail("fuzz@example.com")
            smtp.rcpt(f"box-{number % INBOXES}@postroom.localhost")
            codes.append(smtp.data(raw)[0])
    return codes


async def wait_for_events(server: Server, count: int) -> list[bytes]:
    async def found() -> list[bytes] | None:
        payloads = await server.resources.db.read(stored_payloads)
        return payloads if len(payloads) >= count else None

    return await until(found, "not all events came")


def stored_payloads(tx: Tx) -> list[bytes]:
    account = tx.one("select id from accounts")
    assert account is not None
    found, wanted = [], EventChoice(Scope(account["id"]))
    page = list_after(tx, wanted, 0, 1000)
    while page.events:
        found += page.events
        page = list_after(tx, wanted, page.last_position, 1000)
    return [event.payload for event in found]


def message_ids(tx: Tx) -> list[str]:
    return [row["id"] for row in tx.all("select id from messages order by id")]


async def assert_is_served_whole(server: Server, message_id: str) -> None:
    message = await server.api.get(f"/v1/messages/{message_id}")
    assert message.status_code == 200
    assert_is_message(message.content)
    raw = await server.api.get(f"/v1/messages/{message_id}/raw")
    assert raw.status_code == 200
    assert b"\0" not in raw.content
    assert not BARE_LINE_END.search(raw.content)
    for file in message.json()["attachments"][:3]:
        content = await server.api.get(file["url"])
        assert content.status_code == 200
        assert len(content.content) == file["sizeBytes"]


async def test_damaged_mails_are_stored_announced_and_served(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(INBOXES):
        await server.new_inbox(f"box-{number}")
    codes = await asyncio.to_thread(hand_over, server.smtp_port, damaged_mails(MAILS))
    payloads = await wait_for_events(server, MAILS)
    log = capsys.readouterr().err.splitlines()
    assert codes == [250] * MAILS
    assert [line for line in log if 'level=info event="mail received"' not in line] == []
    assert len(log) == MAILS
    for payload in payloads:
        assert_is_payload(payload)
    stored = await server.resources.db.read(message_ids)
    assert len(stored) == len(payloads) == MAILS
    for message_id in stored:
        server.clock.turn(1_000)  # more than the requests that a minute allows
        await assert_is_served_whole(server, message_id)
