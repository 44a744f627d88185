"""A server for mail clients: listens, checks deadlines and keys of its connections, and stops orderly."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from postroom import log
from postroom.config import ConfigError, Endpoint
from postroom.net.listening import listen_on
from postroom.net.mail_clients.connection import ClientConnection, ClientContext
from postroom.net.proxies import Proxies
from postroom.net.proxy_protocol import ProxyProtocol

BACKLOG = 512
WATCH_SECONDS = 1.0


class MailClientServer(ABC):
    """`stopping_seconds`: a stop gives up once no open question ended for so long; None: never."""

    setting: ClassVar[str]
    key_ended: ClassVar[bytes]
    shutting_down: ClassVar[bytes]
    stopping_seconds: ClassVar[float | None] = None

    def __init__(
        self,
        shared: ClientContext,
        proxies: Proxies,
        connect: Callable[[str | None], ClientConnection[Any]],
    ) -> None:
        self._shared = shared
        self._connect = connect
        # The server speaks first: without a header, a proxy looks like a client that waits for the greeting.
        self._proxy_protocol = ProxyProtocol(proxies, requires_header=True)
        self._listeners: list[asyncio.Server] = []

    @abstractmethod
    async def _find_allowed(self, asked: list[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those pairs of key and inbox that are still allowed."""

    @property
    def port(self) -> int:
        """The port in use, also if the system chose it."""
        assert self._listeners, "the server is not started"
        port: int = self._listeners[0].sockets[0].getsockname()[1]
        return port

    async def start(self, endpoint: Endpoint) -> None:
        self._shared.spool_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        loop = asyncio.get_running_loop()
        try:
            self._listeners = [
                await loop.create_server(
                    lambda: self._proxy_protocol.protocol(self._connect), sock=each, backlog=BACKLOG
                )
                for each in listen_on(endpoint.host, endpoint.port, BACKLOG)
            ]
        except OSError as error:
            raise ConfigError(self.setting, f"cannot listen on {endpoint}: {error.strerror}") from error

    def count(self) -> int:
        return self._shared.admissions.count()

    async def run(self) -> None:
        """Runs until cancelled: checks the deadlines of all connections, and keys that have ended."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            self.check_times(loop.time())
            await self._close_ended()

    def check_times(self, now: float) -> None:
        for connection in self._shared.admissions.all():
            try:
                connection.check_time(now)
            except Exception:
                log.get().exception("the connection of a mail client failed and was closed")
                connection.abort()

    async def _close_ended(self) -> None:
        """Closes connections whose key ended or lost a permission, or whose inbox was deleted."""
        logged_in = [
            (connection, who)
            for connection in self._shared.admissions.all()
            if connection.may_end and (who := connection.logged_in) is not None
        ]
        if not logged_in:
            return
        allowed = await self._find_allowed(sorted({who for _, who in logged_in}))
        for connection, who in logged_in:
            if who not in allowed:
                connection.hang_up(self.key_ended)

    async def stop(self) -> None:
        """Ends every session with a message; requests under way get their answer first."""
        if not self._listeners:
            return
        for each in self._listeners:
            each.close()
        self._proxy_protocol.close()
        admissions, tasks = self._shared.admissions, self._shared.tasks
        admissions.is_closed = True
        for connection in admissions.all():
            connection.hang_up(self.shutting_down)
        is_going_on = True
        while tasks and is_going_on:
            done, _ = await asyncio.wait(set(tasks), timeout=self.stopping_seconds)
            is_going_on = bool(done)
        for connection in admissions.all():
            connection.abort()
        for task in set(tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
