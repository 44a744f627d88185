"""Where mail programs send: TLS from the first byte on port 465, STARTTLS on all others."""

import asyncio
import ssl
from functools import partial

from postroom import log
from postroom.accounts.permissions import WRITING
from postroom.config import ConfigError, Endpoint
from postroom.net.failed_logins import FailedLogins
from postroom.net.proxies import Proxies
from postroom.net.proxy_protocol import ProxyProtocol
from postroom.operations.folders import names
from postroom.resources import Resources
from postroom.smtp.connection_limits import LimitedConnection, LocalConnectionLimits
from postroom.smtp.dialogue import replies
from postroom.smtp.limits import SessionLimits
from postroom.smtp.submission.connection import SubmissionConnection, SubmissionContext

SUBMISSIONS_PORT = 465
BACKLOG = 512
WATCH_SECONDS = 1.0
KEY_ENDED = b"421 4.7.0 The key was revoked, or may send no more\r\n"


class SubmissionServer:
    def __init__(
        self, resources: Resources, tls: ssl.SSLContext, is_tls_from_the_start: bool = False
    ) -> None:
        limits = SessionLimits(hostname=resources.config.domain)
        self._limits = limits
        self._connections = LocalConnectionLimits(limits)
        self._context = SubmissionContext(
            resources,
            limits,
            resources.config.data_dir / "spool",
            tls,
            is_tls_from_the_start,
            self._connections,
            FailedLogins(),
        )
        # The server speaks first: without a header, a proxy looks like a client that waits for the greeting.
        proxies = Proxies(resources.config.trusted_proxies)
        self._proxy_protocol = ProxyProtocol(proxies, requires_header=True)
        self._listener: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._listener is not None, "the server is not started"
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def start(self, endpoint: Endpoint) -> None:
        self._context.spool_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                self._connection, endpoint.host, endpoint.port, backlog=BACKLOG
            )
        except OSError as error:
            reason = f"cannot listen on {endpoint}: {error.strerror}"
            raise ConfigError("POSTROOM_SUBMISSION", reason) from error

    def count(self) -> int:
        return len(self._connections.open_connections())

    def _connection(self) -> asyncio.Protocol:
        return self._proxy_protocol.protocol(partial(SubmissionConnection, self._context))

    async def run(self) -> None:
        """Runs until cancelled: the deadlines of all connections together, and keys that have ended."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for connection in self._connections.open_connections():
                self._check_time(connection, loop.time())
            await self._close_ended()

    async def _close_ended(self) -> None:
        """Of those between two mails; of a mail that is under way the key is asked by itself."""
        logged_in = [
            (connection, connection.logged_in)
            for connection in self._connections.open_connections()
            if isinstance(connection, SubmissionConnection) and connection.idle_since is not None
        ]
        asked = sorted({who for _, who in logged_in if who is not None})
        if not asked:
            return
        resources = self._context.resources
        allowed = await resources.db.read(names.find_allowed, asked, WRITING, resources.now())
        for connection, who in logged_in:
            if who is not None and who not in allowed:
                connection.hang_up(KEY_ENDED)

    def _check_time(self, connection: LimitedConnection, now: float) -> None:
        try:
            connection.check_time(now)
        except Exception:
            log.get().exception("a connection failed and was closed")
            connection.abort()

    async def stop(self) -> None:
        """Ends every session with 421; a mail that is being sent gets its answer first."""
        if self._listener is None:
            return
        self._listener.close()
        self._proxy_protocol.close()
        self._connections.close()
        for connection in self._connections.open_connections():
            connection.hang_up(replies.SHUTTING_DOWN)
        while self._context.tasks:
            await asyncio.wait(set(self._context.tasks))
        for connection in self._connections.open_connections():
            connection.abort()
