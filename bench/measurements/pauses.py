"""The longest pause of the event loop, and /health beside it, while four senders repeat hostile shapes."""

import asyncio
import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from bench import hostile_shapes
from bench.hostile_shapes import Shape
from bench.processes import CHECKOUT, HOST, scratch_folder
from bench.results import Result, at_most
from tests.ports import free_port

SENDERS = 4
MOST_PAUSE_MS, MOST_HEALTH_MS = 50.0, 100.0
WORST_SHOWN = 5
INBOX = "hello@postroom.localhost"

Attack = Callable[[], Awaitable[None]]


@dataclass
class Watched:
    """A running server, and what is known of it."""

    process: "subprocess.Popen[str]"
    http_port: int
    smtp_port: int
    token: str
    inbox_id: str = ""

    def longest_pause_ms(self) -> tuple[float, float]:
        """By the clock, and of it the work of the loop."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        pause, work = self.process.stdout.readline().split()
        return float(pause), float(work)


@dataclass
class Seen:
    pauses_ms: dict[str, float] = field(default_factory=dict)
    work_ms: dict[str, float] = field(default_factory=dict)
    health_ms: list[float] = field(default_factory=list)


def measure(seconds: float = 0.6, most_shapes: int | None = None) -> list[Result]:
    with scratch_folder() as folder, _running(folder) as server:
        seen = asyncio.run(_attack_all(server, seconds, most_shapes))
    health = sorted(seen.health_ms)
    worst = sorted(seen.pauses_ms.items(), key=lambda item: -item[1])
    dearest = sorted(seen.work_ms.items(), key=lambda item: -item[1])
    return [
        Result("hostile shapes", len(seen.pauses_ms), ""),
        Result("longest pause of the loop", worst[0][1], "ms", at_most(MOST_PAUSE_MS)),
        Result("/health beside them, p99", health[int(len(health) * 0.99)], "ms", at_most(MOST_HEALTH_MS)),
        *(Result(f"longest pause: {name}", pause, "ms") for name, pause in worst[:WORST_SHOWN]),
        *(Result(f"most work at once: {name}", work, "ms") for name, work in dearest[:WORST_SHOWN]),
    ]


@contextlib.contextmanager
def _running(folder: Path) -> Iterator[Watched]:
    port = free_port()
    settings = {
        "POSTROOM_DATA_DIR": str(folder),
        "POSTROOM_HTTP": f"{HOST}:{port}",
        "POSTROOM_SMTP": f"{HOST}:0",
        "POSTROOM_OUTBOUND": "smtp://127.0.0.1:9",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.watched_server"],
        cwd=CHECKOUT,
        env=kept | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        smtp_port, token = process.stdout.readline().split()
        yield Watched(process, port, int(smtp_port), token)
    finally:
        process.kill()
        process.communicate()


async def _attack_all(server: Watched, seconds: float, most_shapes: int | None) -> Seen:
    seen = Seen()
    async with httpx2.AsyncClient(
        base_url=f"http://{HOST}:{server.http_port}", headers={"Authorization": f"Bearer {server.token}"}
    ) as api:
        made = await api.post("/v1/inboxes", json={"mailboxName": "hello"})
        server.inbox_id = made.json()["id"]
        for name, attack in itertools.islice(_attacks(server, api), most_shapes):
            await _attack(server, name, attack, seconds, seen)
    return seen


async def _attack(server: Watched, name: str, attack: Attack, seconds: float, seen: Seen) -> None:
    server.longest_pause_ms()
    ends = time.perf_counter() + seconds
    senders = [asyncio.create_task(_repeat(attack, ends)) for _ in range(SENDERS)]
    while time.perf_counter() < ends:
        seen.health_ms.append(await _health_ms(server))
        await asyncio.sleep(0.01)
    await asyncio.gather(*senders)
    seen.pauses_ms[name], seen.work_ms[name] = server.longest_pause_ms()


async def _repeat(attack: Attack, ends: float) -> None:
    while time.perf_counter() < ends:
        with contextlib.suppress(
            OSError, EOFError, asyncio.IncompleteReadError, TimeoutError, httpx2.HTTPError
        ):
            async with asyncio.timeout(10):
                await attack()
        await asyncio.sleep(0)


async def _health_ms(server: Watched) -> float:
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection(HOST, server.http_port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await reader.read()
    writer.close()
    return (time.perf_counter() - started) * 1000


def _attacks(server: Watched, api: httpx2.AsyncClient) -> Iterator[tuple[str, Attack]]:
    for shape in hostile_shapes.mails():
        yield shape.name, lambda shape=shape: _send_mail(server, shape)  # type: ignore[misc]
    for name, body in hostile_shapes.requests().items():
        yield f"request of {name}", lambda body=body: _send_request(server, api, body)  # type: ignore[misc]
    for name, frame in hostile_shapes.frames().items():
        yield f"frames: {name}", lambda frame=frame: _send_frames(server, frame)  # type: ignore[misc]
    for name, answer in hostile_shapes.answers().items():
        yield f"target: {name}", lambda answer=answer: _be_target(api, answer)  # type: ignore[misc]


async def _send_mail(server: Watched, shape: Shape) -> None:
    reader, writer = await asyncio.open_connection(HOST, server.smtp_port)
    await reader.readline()
    for words in (b"HELO x", b"MAIL FROM:<a@x.example>", f"RCPT TO:<{INBOX}>".encode(), b"DATA"):
        writer.write(words + b"\r\n")
        await reader.readline()
    writer.write(shape.content + b"\r\n.\r\n")
    await reader.readline()
    writer.close()


async def _send_request(server: Watched, api: httpx2.AsyncClient, body: bytes) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": os.urandom(8).hex()}
    await api.post(f"/v1/inboxes/{server.inbox_id}/send", content=body, headers=headers)


async def _send_frames(server: Watched, frame: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, server.http_port)
    writer.write(
        f"GET /v1/ws?token={server.token} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    writer.write(frame * 40_000)
    await reader.read()
    writer.close()


async def _be_target(api: httpx2.AsyncClient, answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while not writer.is_closing():
                writer.write(answer * max(1, 60_000 // len(answer)))
                await writer.drain()

    target = await asyncio.start_server(talk, HOST, 0)
    url = f"http://{HOST}:{target.sockets[0].getsockname()[1]}/hook"
    try:
        await api.put("/v1/webhook", json={"url": url})
        await api.post("/v1/webhook/test")
    finally:
        target.close()
        await api.delete("/v1/webhook")
