"""Stands before a server that others depend on, and can swallow every byte, or be gone."""

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from tests.ports import free_port

CHUNK = 64 * 1024
TURNS_OF_ACCEPTING = 5  # of the loop, from the socket to the task of a connection

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LossyProxy:
    """Has a thread of its own, so that it works while the test waits."""

    def __init__(
        self, listen: Callable[[Accept], Awaitable[asyncio.Server]], dial: Callable[[], Awaitable[Ends]]
    ) -> None:
        self._listen = listen
        self._dial = dial
        self._server: asyncio.Server | None = None
        self._swallows = False
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def swallow(self) -> None:
        """From now on whatever is said is lost, and new connections are never answered."""
        self._swallows = True

    def go_away(self) -> None:
        """Every connection is cut, and a new one is refused."""
        self._run(self._end())

    def carry(self) -> None:
        """What was lost stays lost."""
        self._swallows = False
        if self._server is None:
            self._run(self._begin())

    def start(self) -> None:
        self._thread.start()
        self._run(self._begin())

    def stop(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Awaitable[None]) -> None:
        async def wait() -> None:
            await work

        asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    async def _begin(self) -> None:
        self._server = await self._listen(self._accept)

    async def _end(self) -> None:
        if self._server is not None:
            await self._accept_what_has_come(self._server)
            self._server.close()
            self._server = None
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept_what_has_come(self, server: asyncio.Server) -> None:
        """A server that closes while a connection is half accepted leaves its socket open."""
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        for _ in range(TURNS_OF_ACCEPTING):
            await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            answers, there = await self._dial()
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(reader, there))
                both.create_task(self._carry(answers, writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for end in (writer, there):
                if end is not None:
                    end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            if not self._swallows:
                writer.write(chunk)
                await writer.drain()
        if not self._swallows:
            raise ConnectionResetError  # the other end is told as well


@contextlib.contextmanager
def lossy_proxy(url: str) -> Iterator[tuple[LossyProxy, str]]:
    """Before a PostgreSQL on a Unix socket. The proxy, and the URL of the database behind it.

    The folder of a test is too deep: the path of a socket has at most 107 bytes.
    """
    host, name = url.rpartition("host=")[2], ".s.PGSQL.5432"
    with tempfile.TemporaryDirectory() as folder:

        async def listen(accept: Accept) -> asyncio.Server:
            Path(folder, name).unlink(missing_ok=True)
            return await asyncio.start_unix_server(accept, f"{folder}/{name}")

        proxy = LossyProxy(listen, lambda: asyncio.open_unix_connection(f"{host}/{name}"))
        proxy.start()
        try:
            yield proxy, url.replace(f"host={host}", f"host={folder}")
        finally:
            proxy.stop()


@contextlib.contextmanager
def lossy_port(target: int) -> Iterator[tuple[LossyProxy, int]]:
    """Before a port of this machine. The proxy, and the port to use instead."""
    port = free_port()

    async def listen(accept: Accept) -> asyncio.Server:
        return await asyncio.start_server(accept, "127.0.0.1", port)

    proxy = LossyProxy(listen, lambda: asyncio.open_connection("127.0.0.1", target))
    proxy.start()
    try:
        yield proxy, port
    finally:
        proxy.stop()
