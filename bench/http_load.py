"""A load client on bare protocols, in a process of its own, so that the server is what is measured.

Each connection sends its next request when the answer to the last one is complete.
"""

import asyncio
import itertools
import re
import time
from collections.abc import Iterator
from typing import cast

import msgspec
import uvloop

from bench import load_client
from bench.processes import HOST

DEADLINE_SECONDS = 120

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


class Load(msgspec.Struct, frozen=True):
    port: int
    requests: list[str]  # sent in turn, again from the first after the last
    connections: int
    count: int


class LoadReport(msgspec.Struct, frozen=True):
    per_second: float
    p50_ms: float
    p99_ms: float


def get_request(path: str, token: str = "") -> str:
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{authorization}\r\n"


def run_load(load: Load) -> LoadReport:
    report = load_client.run(__name__, msgspec.json.encode(load))
    return msgspec.json.decode(report, type=LoadReport)


class _Run:
    """The requests still to send, and the time each answered one took."""

    def __init__(self, load: Load) -> None:
        requests = itertools.cycle([request.encode() for request in load.requests])
        self.unsent: Iterator[bytes] = itertools.islice(requests, load.count)
        self.seconds: list[float] = []
        self.open_connections = load.connections
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, reason: str) -> None:
        if not self.finished.done():
            self.finished.set_exception(RuntimeError(reason))

    def finish_connection(self) -> None:
        self.open_connections -= 1
        if self.open_connections == 0 and not self.finished.done():
            self.finished.set_result(None)


class _Connection(asyncio.Protocol):
    def __init__(self, run: _Run) -> None:
        self._run = run
        self._answer = b""
        self._sent_at = 0.0
        self._is_finished = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class, which has the methods
        self._send_next()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not _is_complete(self._answer):
            return
        self._run.seconds.append(time.perf_counter() - self._sent_at)
        if not self._answer.startswith(b"HTTP/1.1 200 "):
            self._run.fail(f"not a good answer: {self._answer[:300]!r}")
        self._send_next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_finished:
            self._run.fail(f"the server closed the connection: {error}")

    def _send_next(self) -> None:
        self._answer = b""
        request = next(self._run.unsent, None)
        if request is None:
            self._is_finished = True
            self._transport.close()
            self._run.finish_connection()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)


def _is_complete(answer: bytes) -> bool:
    head_end = answer.find(b"\r\n\r\n")
    length = _LENGTH.search(answer, 0, head_end + 2) if head_end >= 0 else None
    return length is not None and len(answer) >= head_end + 4 + int(length[1])


async def _apply(load: Load) -> LoadReport:
    run = _Run(load)
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    for _ in range(load.connections):
        await loop.create_connection(lambda: _Connection(run), HOST, load.port)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await run.finished
    elapsed = time.perf_counter() - started
    times = sorted(run.seconds)
    return LoadReport(len(times) / elapsed, _at(times, 0.50) * 1000, _at(times, 0.99) * 1000)


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def apply(load: bytes) -> bytes:
    return msgspec.json.encode(uvloop.run(_apply(msgspec.json.decode(load, type=Load))))
