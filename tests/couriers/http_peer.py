"""A real HTTP server on the loopback, made of raw bytes, that answers as it is told."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def say(*parts: bytes) -> Answer:
    """Send the parts and hang up."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return answer


def say_and_stall(part: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(part)
        await asyncio.Event().wait()

    return answer


def repeat(head: bytes, part: bytes, pause_seconds: float = 0) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_seconds)

    return answer


@dataclass
class Request:
    head: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None


@dataclass
class HttpPeer:
    answer: Answer = field(default_factory=lambda: say(OK))
    tls: ssl.SSLContext | None = None
    address: str = "127.0.0.1"
    port: int = 0

    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open_now: int = 0
    most_open: int = 0

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, self.address, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def url(self, path: str = "/hook", host: str | None = None) -> str:
        return f"{'https' if self.tls else 'http'}://{host or self.address}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            self.requests.append(await _read_request(reader))
            await self.answer(writer)
            writer.close()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_now -= 1
            self._tasks.discard(task)
            if not writer.is_closing():
                writer.transport.abort()


async def _read_request(reader: asyncio.StreamReader) -> Request:
    request = Request(await reader.readuntil(b"\r\n\r\n"), b"")
    request.body = await reader.readexactly(int(request.header("Content-Length") or 0))
    return request
