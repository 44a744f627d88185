"""A customer's HTTP endpoint on loopback, for the tests of webhooks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

from tests.waiting import until

DEAD_PATH = "/dead"


class Endpoint:
    """Answers as told, and under DEAD_PATH never."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[bytes] = []
        self.url = ""
        self.dead_url = ""
        self.unanswered = 0
        self._open: set[asyncio.StreamWriter] = set()

    def hang_up(self) -> None:
        """What waits for an answer would hold up the stop of the server for three seconds."""
        for writer in self._open:
            writer.close()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A client that is killed in the middle of a request gets no answer."""
        self._open.add(writer)
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._answer(reader, writer)
        self._open.discard(writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        body = await reader.readexactly(int(headers["content-length"]))
        if head[0].split()[1] == DEAD_PATH:
            self.unanswered += 1
            await reader.read()
        else:
            self.requests.append((headers, body))
            answer = self.answers.pop(0) if self.answers else b"200 OK"
            writer.write(b"HTTP/1.1 " + answer + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()

    async def wait_for(self, count: int) -> None:
        await until(lambda: len(self.requests) >= count)

    async def wait_until_unanswered(self, count: int) -> None:
        await until(lambda: self.unanswered >= count)


@asynccontextmanager
async def running_endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    server = await asyncio.start_server(endpoint.handle, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    endpoint.url, endpoint.dead_url = base_url + "/hook", base_url + DEAD_PATH
    with closing(server):
        yield endpoint
        endpoint.hang_up()
