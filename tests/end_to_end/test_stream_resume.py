"""A client that drops its stream at random while mail arrives and the server is killed misses nothing.

POSTROOM_TEST_DISCONNECTS, POSTROOM_TEST_MAILS and POSTROOM_TEST_KILLS set how much of it there is.
"""

import asyncio
import json
import os
import random
import signal
import smtplib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests import warm_start
from tests.plain_transport import http_client
from tests.ports import free_port
from tests.waiting import until

DISCONNECTS = int(os.environ.get("POSTROOM_TEST_DISCONNECTS", "8"))
MAILS = int(os.environ.get("POSTROOM_TEST_MAILS", "60"))
KILLS = int(os.environ.get("POSTROOM_TEST_KILLS", "2"))
DEADLINE_SECONDS = 180 + MAILS / 20 + 2 * DISCONNECTS
INBOXES = ("one", "two", "three")
TOKEN = "pr_" + "t" * 43
SEED = 20_261_115


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


@dataclass
class Life:
    """A server that can be killed and started again."""

    folder: Path
    http: str = field(default_factory=free_address)
    smtp: str = field(default_factory=free_address)

    def start(self) -> None:
        settings = {
            "POSTROOM_DATA_DIR": str(self.folder),
            "POSTROOM_HTTP": self.http,
            "POSTROOM_SMTP": self.smtp,
            "POSTROOM_API_KEY": TOKEN,
            "POSTROOM_WORKERS": "0",
        }
        log_path = self.folder.parent / "log"
        with log_path.open("a") as log:
            self._process = warm_start.start(os.environ | settings, log)
        assert self._process.stdout is not None
        assert "is ready" in self._process.stdout.readline(), log_path.read_text()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def living(folder: Path) -> Iterator[Life]:
    life = Life(folder)
    life.start()
    try:
        yield life
    finally:
        life.kill()


def raw_mail(number: int, name: str) -> bytes:
    return (
        f"From: Alice <alice@example.com>\r\nTo: {name}@postroom.localhost\r\nSubject: {number}\r\n"
        f"Message-ID: <{number}@example.com>\r\n\r\nMail {number}.\r\n"
    ).encode()


def hand_over(life: Life, start: int, end: int) -> int:
    """Mails from `start` on, one after the other, until the server is gone. Gives the first without a 250."""
    host, _, port = life.smtp.partition(":")
    number = start
    with (
        suppress(smtplib.SMTPException, OSError),
        smtplib.SMTP(host, int(port), timeout=DEADLINE_SECONDS) as smtp,
    ):
        while number < end:
            name = INBOXES[number % len(INBOXES)]
            smtp.sendmail("alice@example.com", [f"{name}@postroom.localhost"], raw_mail(number, name))
            number += 1
    return number


async def send_all(life: Life) -> None:
    """A mail without its 250 goes again, as a mail server would send it."""
    number = 0
    while number < MAILS:
        number = await asyncio.to_thread(hand_over, life, number, min(number + 10, MAILS))
        await asyncio.sleep(0.02)


async def kill_now_and_then(life: Life, log: "Log", dice: random.Random) -> None:
    """Spread over the run: after each part of the disconnects."""

    def has_come(part: int) -> bool:
        return log.disconnects >= DISCONNECTS * part // (KILLS + 1)

    for kill in range(KILLS):
        await until(partial(has_come, kill + 1))
        await asyncio.sleep(dice.uniform(0, 0.2))
        life.kill()
        await asyncio.to_thread(life.start)


@dataclass
class Log:
    """What a client keeps: the events it saw, without those it saw before, and where to resume."""

    events: list[dict[str, Any]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    last_event_id: str | None = None
    disconnects: int = 0

    def note(self, event: dict[str, Any]) -> None:
        self.last_event_id = event["event_id"]
        if event["event_id"] not in self.seen:
            self.seen.add(event["event_id"])
            self.events.append(event)

    def is_complete(self) -> bool:
        return len({event["message"]["subject"] for event in self.events}) == MAILS


async def listen(life: Life, log: Log, most: int | None, is_subscribed: asyncio.Event | None = None) -> None:
    """Until the client leaves without a word after so many events, or the server dies."""
    url = f"ws://{life.http}/v1/ws?token={TOKEN}"
    async with connect(url, proxy=None, open_timeout=None, close_timeout=1) as stream:
        resume = {} if log.last_event_id is None else {"last_event_id": log.last_event_id}
        await stream.send(json.dumps({"type": "subscribe", **resume}))
        heard = 0
        while (most is None or heard < most) and not log.is_complete():
            message = json.loads(await stream.recv())
            if is_subscribed is not None:
                is_subscribed.set()
            if "event_id" in message:
                log.note(message)
                heard += 1
        stream.transport.abort()


async def listen_at_random(life: Life, log: Log, dice: random.Random) -> None:
    while not log.is_complete():
        is_enough = log.disconnects >= DISCONNECTS
        most = None if is_enough else dice.randint(0, MAILS // DISCONNECTS)
        with suppress(OSError, WebSocketException, TimeoutError):
            async with asyncio.timeout(None if is_enough else dice.uniform(0.05, 1.0)):
                await listen(life, log, most)
        log.disconnects += 1
        await asyncio.sleep(dice.uniform(0, 0.05))


async def read_whole_log(life: Life) -> list[str]:
    """Every event there is, by the REST interface, in its order."""
    found: list[str] = []
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with http_client(f"http://{life.http}", headers) as api:
        query: dict[str, str] = {"limit": "100"}
        while page := (await api.get("/v1/events", params=query)).json()["data"]:
            found += [event["event_id"] for event in page]
            query["after"] = found[-1]
    return found


async def make_inboxes(life: Life) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with http_client(f"http://{life.http}", headers) as api:
        for name in INBOXES:
            assert (await api.post("/v1/inboxes", json={"mailboxName": name})).status_code == 201


async def hear_the_first(life: Life, log: Log) -> None:
    """Who has no event yet has nothing to resume from: the run begins with one."""
    is_subscribed = asyncio.Event()
    async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(listen(life, log, 1, is_subscribed))
        await is_subscribed.wait()  # a mail that comes before is told to nobody, nor when it comes again
        assert await asyncio.to_thread(hand_over, life, 0, 1) == 1


async def test_after_disconnects_and_kills_every_event_was_seen_once_and_in_order(tmp_path: Path) -> None:
    log, dice = Log(), random.Random(SEED)
    with living(tmp_path / "data") as life:
        await make_inboxes(life)
        await hear_the_first(life, log)
        first = log.events[0]["event_id"]
        async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as tasks:
            tasks.create_task(listen_at_random(life, log, dice))
            tasks.create_task(kill_now_and_then(life, log, dice))
            tasks.create_task(send_all(life))
        stored = await read_whole_log(life)
    stored = stored[stored.index(first) :]
    seen = [event["event_id"] for event in log.events]
    assert seen == stored[: len(seen)]
    assert log.disconnects >= DISCONNECTS
    for inbox_id in {event["inbox_id"] for event in log.events}:
        numbers = [int(event["message"]["subject"]) for event in log.events if event["inbox_id"] == inbox_id]
        assert numbers == sorted(numbers)
