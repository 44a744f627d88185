"""Stands between a server and PostgreSQL, and can swallow every byte without closing a connection."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

CHUNK = 64 * 1024


class LossyProxy:
    """Listens on a Unix socket in its folder. Its own thread, so that it works while the test waits."""

    def __init__(self, target: str, folder: Path) -> None:
        self._target = target
        self._path = folder / Path(target).name
        self._swallows = False
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def swallow(self) -> None:
        """From now on whatever is said is lost, and new connections are never answered."""
        self._swallows = True

    def carry(self) -> None:
        """What was lost stays lost."""
        self._swallows = False

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, str(self._path))

    async def _end(self) -> None:
        self._server.close()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            answers, there = await asyncio.open_unix_connection(self._target)
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
def lossy_proxy(url: str, folder: Path) -> Iterator[tuple[LossyProxy, str]]:
    """The proxy, and the URL of the database behind it."""
    host = url.rpartition("host=")[2]
    proxy = LossyProxy(f"{host}/.s.PGSQL.5432", folder)
    proxy.start()
    try:
        yield proxy, url.replace(f"host={host}", f"host={folder}")
    finally:
        proxy.stop()
