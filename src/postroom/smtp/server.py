"""The SMTP server: listens, watches the clock for every connection, and stops without losing a mail."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from postroom import log
from postroom.net.listening import listen_on
from postroom.net.proxies import Proxies
from postroom.net.proxy_protocol import ProxyProtocol
from postroom.smtp.backend import MailIntake, RecipientDirectory
from postroom.smtp.connection import ConnectionContext, SmtpConnection
from postroom.smtp.connection_limits import ConnectionLimits, LimitedConnection, LocalConnectionLimits
from postroom.smtp.dialogue import replies
from postroom.smtp.harvesters import Harvesters
from postroom.smtp.limits import SessionLimits

_BACKLOG = 512  # connections that the system accepts while the loop is busy
_LONGEST_WATCH_SECONDS = 1.0
_SHORTEST_WATCH_SECONDS = 0.01


class Server:
    """Receives mail for the recipients in `directory`, and gives it to `intake`.

    With a `tls` context the server offers STARTTLS. Mail above a limit is spooled in `spool_folder`.
    A connection from one of `proxies` has the address that its PROXY header names.
    """

    def __init__(
        self,
        directory: RecipientDirectory,
        intake: MailIntake,
        limits: SessionLimits,
        spool_folder: Path,
        tls: ssl.SSLContext | None = None,
        connections: ConnectionLimits | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self._limits = limits
        self._connections = connections or LocalConnectionLimits(limits)
        self._harvesters = Harvesters()
        self._context = ConnectionContext(
            directory, intake, limits, spool_folder, tls, self._connections, self._harvesters
        )
        # The server speaks first: without a header, a proxy looks like a client that waits for the greeting.
        self._proxy_protocol = ProxyProtocol(proxies or Proxies(), requires_header=True)
        self._listeners: list[asyncio.Server] = []
        self._watch: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port in use, also if the system chose it."""
        assert self._listeners, "the server is not started"
        port: int = self._listeners[0].sockets[0].getsockname()[1]
        return port

    async def start(self, host: str, port: int) -> None:
        """Listens on its own port."""
        await self.start_on(listen_on(host, port, _BACKLOG))

    async def start_on(self, sockets: Sequence[socket.socket]) -> None:
        """Listens on sockets that are already bound."""
        loop = asyncio.get_running_loop()
        self._listeners = [
            await loop.create_server(self._connection, sock=each, backlog=_BACKLOG) for each in sockets
        ]
        self._begin(loop)

    def count(self) -> int:
        """Return how many clients are connected."""
        return len(self._connections.open_connections())

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._context.spool_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._watch = loop.create_task(self._watch_clock())

    async def stop(self) -> None:
        """Ends every session with 421; an email that is being stored gets its answer first."""
        if self._watch is None:
            return
        for listener in self._listeners:
            listener.close()
        self._proxy_protocol.close()
        self._connections.close()
        self._harvesters.close()
        for connection in self._connections.open_connections():
            connection.hang_up(replies.SHUTTING_DOWN)
        while self._context.tasks:
            await asyncio.wait(set(self._context.tasks))
        await self._wait_until_closed()
        self._watch.cancel()
        with suppress(asyncio.CancelledError):
            await self._watch

    def _connection(self) -> asyncio.Protocol:
        return self._proxy_protocol.protocol(partial(SmtpConnection, self._context))

    async def _wait_until_closed(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._connections.all_closed.wait(), self._limits.linger_seconds)
        for connection in self._connections.open_connections():
            connection.abort()

    async def _watch_clock(self) -> None:
        """Checks all deadlines together: that costs less than a timer for each command."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_watch_seconds(self._limits))
            now = loop.time()
            for connection in self._connections.open_connections():
                self._check_time(connection, now)

    def _check_time(self, connection: LimitedConnection, now: float) -> None:
        """Check the times of a connection. An error in one must not end the checks of the others."""
        try:
            connection.check_time(now)
        except Exception:
            log.get().exception("a connection failed and was closed")
            connection.abort()


def _watch_seconds(limits: SessionLimits) -> float:
    shortest = min(
        limits.command_timeout_seconds,
        limits.data_timeout_seconds,
        limits.mail_timeout_seconds,
        limits.data_grace_seconds,
        limits.linger_seconds,
    )
    return min(_LONGEST_WATCH_SECONDS, max(shortest / 4, _SHORTEST_WATCH_SECONDS))
