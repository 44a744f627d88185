"""A real server process, killed again and again while it delivers: every mail leaves, and no mail twice
that was known to have left.

POSTROOM_TEST_SENDS and POSTROOM_TEST_KILLS make it as long as you like (1,000 and 30 take some minutes);
POSTROOM_TEST_AT_ONCE is the number of sends that race for a limit.
"""

import asyncio
import contextlib
import os
import random
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from postroom.accounts import accounts, keys
from postroom.clock import SystemClock
from postroom.mailbox import inboxes
from postroom.storage import group_commit
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from tests import warm_start
from tests.conftest import Server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.outbound import relay_to
from tests.plain_transport import http_client
from tests.ports import free_port
from tests.waiting import until

SENDS = int(os.environ.get("POSTROOM_TEST_SENDS", "40"))
KILLS = int(os.environ.get("POSTROOM_TEST_KILLS", "2"))
AT_ONCE = int(os.environ.get("POSTROOM_TEST_AT_ONCE", "40"))
SENDS_OF_AN_INBOX = 10  # the limit of a minute
INBOXES_OF_AN_ACCOUNT = 20
PATIENCE_SECONDS = 180 + SENDS / 2

_message_id = re.compile(rb"^Message-ID: (<[^>]+>)", re.MULTILINE | re.IGNORECASE)


class Process:
    """A server on a folder, which can be killed and started again."""

    def __init__(self, folder: Path, outbound: str) -> None:
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")},
            "POSTROOM_DATA_DIR": str(folder),
            "POSTROOM_HTTP": f"127.0.0.1:{self.port}",
            "POSTROOM_SMTP": f"127.0.0.1:{free_port()}",
            "POSTROOM_OUTBOUND": outbound,
            "POSTROOM_WORKERS": "0",  # they take mail in, and none comes
        }
        self._log = folder / "server.log"
        self._process: warm_start.Process | None = None

    async def start(self) -> None:
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        with self._log.open("a") as log:
            self._process = warm_start.start(self._environment, log)
        assert self._process.stdout is not None
        assert "is ready" in self._process.stdout.readline(), self._log.read_text()

    async def kill(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)
        self._process.stdout.close()


async def seed(folder: Path, inbox_count: int) -> list[tuple[str, str]]:
    """A token and an inbox for every ten sends."""
    now = SystemClock().now()

    def add_accounts(tx: Tx) -> list[tuple[str, str]]:
        made = []
        for number in range(inbox_count):
            if number % INBOXES_OF_AN_ACCOUNT == 0:
                account = accounts.add(tx, f"account {number}", "free", now)
                token = keys.new_token()
                keys.add(tx, account.id, None, "key", token, now)
            inbox = inboxes.add(tx, account.id, f"agent-{number}", None, None, "postroom.localhost", now)
            made.append((token, inbox.id))
        return made

    db = await open_database(settings(folder), now)
    try:
        return await db.write(add_accounts)
    finally:
        await db.close()


async def send_until_accepted(client: httpx2.AsyncClient, token: str, inbox_id: str, number: int) -> None:
    """As a client should: the same key again for as long as there is no answer."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"send-{number}"}
    body = {"to": f"p{number}@d{number % 7}.example", "subject": f"Mail {number}", "body": "Hello"}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with contextlib.suppress(httpx2.TransportError):
                answer = await client.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)
                assert answer.status_code == 200, answer.text
                return
            await asyncio.sleep(0.05)


def known_as_delivered(folder: Path) -> set[bytes]:
    """The Message-IDs that the dead server had written down as accepted by the peer."""
    with contextlib.closing(sqlite3.connect(folder / "postroom.db")) as connection:
        rows = connection.execute(
            "select rfc_message_id from messages join deliveries on deliveries.message_id = messages.id"
            " where deliveries.state = 'delivered'"
        )
        return {rfc_message_id.encode() for (rfc_message_id,) in rows}


def ids_of(peer: SmtpPeer, since: int = 0) -> list[bytes]:
    return [found[1] for mail in peer.mails[since:] if (found := _message_id.search(mail.raw))]


async def kill_while_delivering(
    server: Process, peer: SmtpPeer, folder: Path, sends: list["asyncio.Task[None]"], is_held: bool
) -> set[bytes]:
    """Held: the peer has mails whole and has not answered. Gives what must never come again."""
    gate, held = peer.hold, peer.held
    assert gate is not None

    async def some_wait() -> bool:
        return peer.held > held or all(send.done() for send in sends)

    async def all_ended() -> bool:
        return peer.open_now == 0

    if is_held:
        gate.clear()
        await until(some_wait, "the peer has a mail whole")
    await asyncio.sleep(random.uniform(0, 0.3))
    await server.kill()
    gate.set()
    await until(all_ended, "the peer noticed the death")
    return known_as_delivered(folder)


@pytest.mark.share(2)
async def test_kills_during_delivery_lose_no_mail_and_repeat_only_lost_answers(tmp_path: Path) -> None:
    senders = await seed(tmp_path, -(-SENDS // SENDS_OF_AN_INBOX))
    async with SmtpPeer(hold=asyncio.Event()) as peer:
        assert peer.hold is not None
        peer.hold.set()
        server = Process(tmp_path, relay_to(peer))
        await server.start()
        try:
            await run_with_kills(server, peer, tmp_path, senders)
        finally:
            await server.kill()


async def run_with_kills(
    server: Process, peer: SmtpPeer, folder: Path, senders: list[tuple[str, str]]
) -> None:
    async with http_client(server.base_url) as client:
        sends = [
            asyncio.create_task(send_paced(client, *senders[number // SENDS_OF_AN_INBOX], number))
            for number in range(SENDS)
        ]
        lives: list[tuple[set[bytes], int]] = []
        for number in range(KILLS):
            finished = await kill_while_delivering(server, peer, folder, sends, is_held=number % 2 == 0)
            lives.append((finished, len(peer.mails)))
            await server.start()
            await asyncio.sleep(random.uniform(0.2, 1))
        await asyncio.gather(*sends)

    async def all_arrived() -> bool:
        return len(set(ids_of(peer))) >= SENDS

    async def all_recorded() -> bool:
        return known_as_delivered(folder) == set(ids_of(peer))

    await until(all_arrived, "every mail has arrived")
    await until(all_recorded, "every arrival is recorded")
    arrivals = Counter(ids_of(peer))
    assert len(arrivals) == SENDS
    assert max(arrivals.values()) <= 1 + KILLS
    assert known_as_delivered(folder) == set(arrivals)
    for finished, seen in lives:  # looked at last: what a dead server held comes again only after its lease
        assert not finished & set(ids_of(peer, since=seen)), "a mail known as delivered went again"


async def send_paced(client: httpx2.AsyncClient, token: str, inbox_id: str, number: int) -> None:
    """Spread over the time of the kills, so that there is always something to deliver."""
    await asyncio.sleep(random.uniform(0, 2 * KILLS))
    await send_until_accepted(client, token, inbox_id, number)


async def statuses_of_all(
    server: Server, name: str, bodies: Callable[[int], dict[str, object]]
) -> Counter[int]:
    inbox_id = await server.new_inbox(name)

    async def send(number: int) -> int:
        key = {"Idempotency-Key": f"{name}-{number}"}
        answer = await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=bodies(number), headers=key)
        return answer.status_code

    return Counter(await asyncio.gather(*(send(number) for number in range(AT_ONCE))))


async def test_sends_at_once_pass_neither_the_limit_of_a_minute_nor_the_cold_one_by_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "BATCH_LIMIT", AT_ONCE // 2 - 1)  # more than two commits hold

    def to_one(number: int) -> dict[str, object]:
        return {"to": "carol@there.example", "subject": "x", "body": "x"}

    def to_three_strangers(number: int) -> dict[str, object]:
        to = [f"p{number}-{part}@there.example" for part in range(3)]
        return {"to": to, "subject": "x", "body": "x"}

    assert await statuses_of_all(server, "minute", to_one) == {200: 10, 429: AT_ONCE - 10}
    assert await statuses_of_all(server, "cold", to_three_strangers) == {200: 6, 429: AT_ONCE - 6}
