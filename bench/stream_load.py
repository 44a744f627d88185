"""Many streams on bare sockets and a few mail senders, in a process of their own."""

import asyncio
import re
import time
from functools import partial
from typing import cast

import msgspec
import uvloop

from bench import load_client
from bench.processes import HOST

DEADLINE_SECONDS = 120
SENDERS = 8
BODY = "A line of an ordinary letter, as long as such lines are.\r\n" * 20

_NUMBER = re.compile(rb'"subject":"mail (\d+)"')
_SUBSCRIBE = b'{"type":"subscribe"}'
_MASKED_SUBSCRIBE = bytes([0x81, 0x80 | len(_SUBSCRIBE), 0, 0, 0, 0]) + _SUBSCRIBE
_SUBSCRIBED = b'{"type":"subscribed"'


class StreamLoad(msgspec.Struct, frozen=True):
    http_port: int
    smtp_port: int
    token: str
    streams: int
    recipient: str
    mails: int
    mails_per_second: float


class StreamReport(msgspec.Struct, frozen=True):
    """From the end of DATA to the frame."""

    p50_ms: float
    p99_ms: float


def run_stream_load(load: StreamLoad) -> StreamReport:
    report = load_client.run(__name__, msgspec.json.encode(load))
    return msgspec.json.decode(report, type=StreamReport)


class _Run:
    def __init__(self, load: StreamLoad) -> None:
        self.load = load
        self.started_at = time.time_ns()  # the same mail twice would be taken for a repetition
        self.sent_at: dict[int, float] = {}
        self.seconds: list[float] = []
        self.unsubscribed = load.streams
        self.subscribed = asyncio.Event()
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def note_subscribed(self) -> None:
        self.unsubscribed -= 1
        if not self.unsubscribed:
            self.subscribed.set()

    def note_frames(self, numbers: list[bytes]) -> None:
        now = time.perf_counter()
        self.seconds += [now - self.sent_at[int(number)] for number in numbers]
        if len(self.seconds) == self.load.mails * self.load.streams:
            self.finished.set_result(None)

    def fail(self, reason: str) -> None:
        if not self.finished.done():
            self.finished.set_exception(RuntimeError(reason))
            self.subscribed.set()


class _Stream(asyncio.Protocol):
    """Reads no more of a frame than the number of its mail."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._rest = b""
        self._is_subscribed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class, which has the methods
        self._transport.write(
            f"GET /v1/ws HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {self._run.load.token}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        if not self._is_subscribed:
            self._subscribe(data)
            return
        end = 0
        numbers = []
        for match in _NUMBER.finditer(data):
            numbers.append(match[1])
            end = match.end()
        self._rest = data[max(end, len(data) - 40) :]
        if numbers:
            self._run.note_frames(numbers)

    def connection_lost(self, error: Exception | None) -> None:
        self._run.fail(f"the server closed a stream: {error}, {self._rest[-200:]!r}")

    def _subscribe(self, data: bytes) -> None:
        self._rest = data
        if data.endswith(b"\r\n\r\n"):
            self._transport.write(_MASKED_SUBSCRIBE)
        elif _SUBSCRIBED in data and data.endswith(b"}"):
            self._is_subscribed = True
            self._rest = b""
            self._run.note_subscribed()


class _Sender:
    """One SMTP session that sends a mail after the other."""

    def __init__(self, run: _Run, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._run = run
        self._reader = reader
        self._writer = writer

    async def greet(self) -> None:
        await self._reply(b"220")
        self._writer.write(b"EHLO bench\r\n")
        await self._reply(b"250")

    async def send(self, number: int) -> None:
        recipient = self._run.load.recipient
        self._writer.write(f"MAIL FROM:<alice@example.com>\r\nRCPT TO:<{recipient}>\r\nDATA\r\n".encode())
        for code in (b"250", b"250", b"354"):
            await self._reply(code)
        head = f"From: <alice@example.com>\r\nTo: <{recipient}>\r\nSubject: mail {number}\r\n"
        self._run.sent_at[number] = time.perf_counter()
        self._writer.write(
            f"{head}Message-ID: <{number}.{self._run.started_at}@example.com>\r\n\r\n{BODY}.\r\n".encode()
        )
        await self._reply(b"250")

    async def _reply(self, code: bytes) -> None:
        line = await self._reader.readline()
        while line[3:4] == b"-":
            line = await self._reader.readline()
        if not line.startswith(code):
            raise RuntimeError(f"the server answered {line!r}")


async def _send_mails(run: _Run) -> None:
    """On a timetable that does not wait for answers."""
    load = run.load
    free: asyncio.Queue[_Sender] = asyncio.Queue()
    for _ in range(SENDERS):
        sender = _Sender(run, *await asyncio.open_connection(HOST, load.smtp_port))
        await sender.greet()
        free.put_nowait(sender)

    async def send(sender: _Sender, number: int) -> None:
        await sender.send(number)
        free.put_nowait(sender)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(load.mails):
            await asyncio.sleep(started + number / load.mails_per_second - time.perf_counter())
            tasks.create_task(send(await free.get(), number))


async def _apply(load: StreamLoad) -> StreamReport:
    run = _Run(load)
    loop = asyncio.get_running_loop()
    for _ in range(load.streams):
        await loop.create_connection(partial(_Stream, run), HOST, load.http_port)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await run.subscribed.wait()
        await _send_mails(run)
        await run.finished
    times = sorted(run.seconds)
    return StreamReport(_at(times, 0.50) * 1000, _at(times, 0.99) * 1000)


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def apply(load: bytes) -> bytes:
    return msgspec.json.encode(uvloop.run(_apply(msgspec.json.decode(load, type=StreamLoad))))
