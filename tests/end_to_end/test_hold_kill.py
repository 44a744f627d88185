"""A real server process, killed again and again while mails are held, approved, let go and delivered: each is
approved exactly once, none leaves before it, and none is sent again that was known to have left.

POSTROOM_TEST_HOLD_KILLS makes it as long as you like.
"""

import asyncio
import contextlib
import os
import random
import sqlite3
from collections import Counter
from pathlib import Path

import httpx2

from postroom.accounts import accounts, keys
from postroom.accounts.rules import approval
from postroom.accounts.rules.approval import Approval
from postroom.clock import SystemClock
from postroom.mailbox import inboxes
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from tests.conftest import settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.end_to_end.test_send_kill import (
    Process,
    ids_of,
    known_as_delivered,
    send_until_accepted,
)
from tests.outbound import relay_to
from tests.plain_transport import http_client
from tests.waiting import until

KILLS = int(os.environ.get("POSTROOM_TEST_HOLD_KILLS", "2"))
SENDS = 20


async def seed(folder: Path) -> tuple[str, str, list[str]]:
    """The key of the agent, the key of a person, and two inboxes whose every send waits."""
    now, agent, person = SystemClock().now(), keys.new_token(), keys.new_token()

    def make(tx: Tx) -> list[str]:
        account = accounts.add(tx, "one", "free", now)
        rule = approval.encode(Approval(["always"]))
        tx.run("update accounts set approval = :rule where id = :id", rule=rule, id=account.id)
        for token in (agent, person):
            keys.add(tx, account.id, None, "key", token, now)
        made = [
            inboxes.add(tx, account.id, name, None, None, "postroom.localhost", now)
            for name in ("one", "two")
        ]
        return [inbox.id for inbox in made]

    db = await open_database(settings(folder), now)
    try:
        return agent, person, await db.write(make)
    finally:
        await db.close()


async def approve_what_waits(client: httpx2.AsyncClient, token: str) -> None:
    """As a person would, again where no answer came; until it is cancelled."""
    headers = {"Authorization": f"Bearer {token}"}
    while True:
        with contextlib.suppress(httpx2.TransportError):
            page = (await client.get("/v1/approvals", headers=headers)).json()
            for each in page.get("data", []):
                seen = {"contentHash": each["hold"]["contentHash"]}
                path = f"/v1/messages/{each['message']['id']}/approve"
                answer = await client.post(path, json=seen, headers=headers)
                assert answer.status_code in (200, 409, 503), answer.text
        await asyncio.sleep(0.05)


def approvals_of(folder: Path) -> Counter[str]:
    """How often each message was approved, by the log of events."""
    with contextlib.closing(sqlite3.connect(folder / "postroom.db")) as connection:
        rows = connection.execute("select message_id from events where kind = 'message.approved'")
        return Counter(message_id for (message_id,) in rows)


async def test_kills_while_mails_are_held_and_approved_lose_none_and_approve_none_twice(
    tmp_path: Path,
) -> None:
    agent, person, inbox_ids = await seed(tmp_path)
    async with SmtpPeer(hold=asyncio.Event()) as peer:
        assert peer.hold is not None
        peer.hold.set()
        server = Process(tmp_path, relay_to(peer))
        await server.start()
        try:
            async with http_client(server.base_url) as client:
                await play(server, peer, tmp_path, client, agent, person, inbox_ids)
        finally:
            await server.kill()


async def play(
    server: Process,
    peer: SmtpPeer,
    folder: Path,
    client: httpx2.AsyncClient,
    agent: str,
    person: str,
    inbox_ids: list[str],
) -> None:
    sends = [
        asyncio.create_task(send_until_accepted(client, agent, inbox_ids[number % 2], number))
        for number in range(SENDS)
    ]
    deciding = asyncio.create_task(approve_what_waits(client, person))
    for _ in range(KILLS):
        await asyncio.sleep(random.uniform(0.1, 1))
        await server.kill()
        await peer.hang_up()
        assert len(set(ids_of(peer))) <= len(approvals_of(folder)), "a mail left before it was approved"
        await server.start()
    await asyncio.gather(*sends)

    async def all_recorded() -> bool:
        return len(known_as_delivered(folder)) == SENDS

    await until(all_recorded, "every approved mail has left")
    deciding.cancel()
    arrivals = Counter(ids_of(peer))
    assert len(arrivals) == SENDS
    assert max(arrivals.values()) <= 1 + KILLS
    assert set(approvals_of(folder).values()) == {1}
    assert len(approvals_of(folder)) == SENDS
