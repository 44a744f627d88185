"""A load client for SMTP on bare protocols, in a process of its own, so that the server is what is measured.

Each connection pipelines MAIL, RCPT and DATA, and begins its next mail when the last one is answered.
"""

import asyncio
import functools
import random
import time
from collections import deque
from email.utils import formatdate
from typing import cast

import msgspec
import uvloop

from bench import load_client, mail_mix
from bench.processes import HOST

DEADLINE_SECONDS = 300
WORDS_OF_A_LINE = 12
WORDS = 2_000  # that the mails are made of


class SmtpLoad(msgspec.Struct, frozen=True):
    port: int
    recipient: str
    connections: int
    count: int
    size_bytes: int  # 0: the mix
    per_second: float | None = None  # None: as fast as the answers come
    seconds: float | None = None  # None: all of them, however long that takes
    run: str = "0"  # makes the mails of a run differ from those of every other


class SmtpReport(msgspec.Struct, frozen=True):
    count: int
    per_second: float
    p50_ms: float
    p99_ms: float


def run_smtp_load(load: SmtpLoad) -> SmtpReport:
    report = load_client.run(__name__, msgspec.json.encode(load))
    return msgspec.json.decode(report, type=SmtpReport)


class _Run:
    """The mails still to send, the connections that wait for one, and the time each answered mail took."""

    def __init__(self, load: SmtpLoad) -> None:
        self.load = load
        self.started = time.perf_counter()
        self.sent = 0
        self.idle: deque[_Connection] = deque()
        self.seconds: list[float] = []
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, reason: str) -> None:
        if not self.finished.done():
            self.finished.set_exception(RuntimeError(reason))

    def note(self, seconds: float) -> None:
        self.seconds.append(seconds)
        is_all = len(self.seconds) == self.load.count or (
            len(self.seconds) == self.sent and self._is_time_over()
        )
        if is_all and not self.finished.done():
            self.finished.set_result(None)

    def _is_time_over(self) -> bool:
        if self.load.seconds is None:
            return False
        return time.perf_counter() - self.started >= self.load.seconds

    def hand_out(self) -> None:
        """A mail for each idle connection, as long as one is due."""
        now = time.perf_counter()
        if self._is_time_over():
            return
        while self.idle and self.sent < self.load.count and (due_at := self._due_at(now)) <= now:
            self.idle.popleft().send(compose(self.load, self.sent), due_at)
            self.sent += 1

    def _due_at(self, now: float) -> float:
        """A mail that had to wait for a connection counts its wait: a slow server must not hide it."""
        return now if self.load.per_second is None else self.started + self.sent / self.load.per_second


@functools.cache
def lines(size_bytes: int) -> bytes:
    """Words at random, the same in every run, so that nothing is gained by what repeats itself."""
    chance = random.Random(20261115)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(WORDS)]
    text = bytearray()
    while len(text) < size_bytes:
        text += " ".join(chance.choices(words, k=WORDS_OF_A_LINE)).encode() + b"\r\n"
    return bytes(text)


def compose(load: SmtpLoad, number: int) -> bytes:
    if not load.size_bytes:
        return mail_mix.compose(load.run, number, load.recipient)
    head = (
        f"From: Sender {number} <sender-{number % 50}@example.com>\r\nTo: {load.recipient}\r\n"
        f"Subject: Mail {number} of run {load.run}\r\nMessage-ID: <{load.run}.{number}@example.com>\r\n"
        f"Date: {formatdate()}\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n\r\n"
    ).encode()
    wanted = load.size_bytes - len(head)
    text = lines(2 * load.size_bytes)
    begin = text.index(b"\n", number * 7_919 % load.size_bytes) + 1  # each mail has words of its own
    body = text[begin : text.rindex(b"\n", begin, begin + wanted) + 1]
    return head + body + b".\r\n"


class _Connection(asyncio.Protocol):
    def __init__(self, run: _Run) -> None:
        self._run = run
        self._unread = b""
        self._mail = b""
        self._due_at = 0.0
        self._answers_left = 2  # to the connection, and to EHLO

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class, which has the methods

    def connection_lost(self, error: Exception | None) -> None:
        self._run.fail(f"the server closed the connection: {error}")

    def data_received(self, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\r\n")
        for line in lines:
            if line[3:4] != b"-":
                self._hear(line)

    def send(self, mail: bytes, due_at: float) -> None:
        self._mail, self._due_at, self._answers_left = mail, due_at, 4
        self._transport.write(
            b"MAIL FROM:<sender@example.com>\r\nRCPT TO:<%s>\r\nDATA\r\n" % self._run.load.recipient.encode()
        )

    def _hear(self, answer: bytes) -> None:
        self._answers_left -= 1
        if answer.startswith(b"220"):
            self._transport.write(b"EHLO bench.example\r\n")
        elif answer.startswith(b"354"):
            self._transport.write(self._mail)
        elif not answer.startswith(b"250"):
            self._run.fail(f"not a good answer: {answer!r}")
        elif self._answers_left == 0:
            self._be_idle()

    def _be_idle(self) -> None:
        if self._mail:
            self._run.note(time.perf_counter() - self._due_at)
        self._run.idle.append(self)
        self._run.hand_out()


async def _apply(load: SmtpLoad) -> SmtpReport:
    run = _Run(load)
    loop = asyncio.get_running_loop()
    for _ in range(load.connections):
        await loop.create_connection(lambda: _Connection(run), HOST, load.port)
    pace = loop.create_task(_keep_pace(run))
    async with asyncio.timeout(DEADLINE_SECONDS):
        await run.finished
    pace.cancel()
    times = sorted(run.seconds)
    elapsed = time.perf_counter() - run.started
    return SmtpReport(len(times), len(times) / elapsed, _at(times, 0.50) * 1000, _at(times, 0.99) * 1000)


async def _keep_pace(run: _Run) -> None:
    while run.load.per_second is not None:
        run.hand_out()
        await asyncio.sleep(0.001)


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def apply(load: bytes) -> bytes:
    return msgspec.json.encode(uvloop.run(_apply(msgspec.json.decode(load, type=SmtpLoad))))
