"""The IMAP server: listens, watches clock and keys for every connection, and stops in an orderly way."""

import asyncio
import ssl
from contextlib import suppress
from functools import partial

from postroom import log
from postroom.accounts.permissions import READING
from postroom.config import ConfigError, Endpoint
from postroom.imap.admission import Admissions
from postroom.imap.connection import ImapConnection, ImapContext
from postroom.imap.dialogue.limits import ImapLimits
from postroom.imap.dialogue.protocol import SHUTTING_DOWN
from postroom.imap.watching import InboxWatch
from postroom.inward.examine import Extractor
from postroom.net.failed_logins import FailedLogins
from postroom.net.proxies import Proxies
from postroom.net.proxy_protocol import ProxyProtocol
from postroom.operations.folders import names
from postroom.resources import Resources

IMAPS_PORT = 993
BACKLOG = 512
WATCH_SECONDS = 1.0
KEY_ENDED = b"* BYE [UNAVAILABLE] The key was revoked, or may read no more.\r\n"
STOPPING_SECONDS = 5.0


class ImapServer:
    """TLS from the first byte on port 993, STARTTLS on all others."""

    def __init__(
        self,
        resources: Resources,
        extractor: Extractor,
        tls: ssl.SSLContext | None,
        limits: ImapLimits | None = None,
        is_tls_from_the_start: bool = False,
    ) -> None:
        self._resources = resources
        self._limits = limits or ImapLimits()
        self._admissions = Admissions(self._limits)
        self.watch = InboxWatch(resources)
        self._context = ImapContext(
            resources,
            extractor,
            self._limits,
            tls,
            is_tls_from_the_start,
            self._admissions,
            FailedLogins(),
            self.watch,
            resources.config.data_dir / "spool",
            asyncio.Semaphore(self._limits.max_large_mails),
        )
        # The server speaks first: without a header, a proxy looks like a client that waits for the greeting.
        proxies = Proxies(resources.config.trusted_proxies)
        self._proxy_protocol = ProxyProtocol(proxies, requires_header=True)
        self._listener: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port in use, also if the system chose it."""
        assert self._listener is not None, "the server is not started"
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def start(self, endpoint: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        self._context.spool_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._listener = await loop.create_server(
                self._connection, endpoint.host, endpoint.port, backlog=BACKLOG
            )
        except OSError as error:
            raise ConfigError("POSTROOM_IMAP", f"cannot listen on {endpoint}: {error.strerror}") from error

    def count(self) -> int:
        return self._admissions.count()

    def _connection(self) -> asyncio.Protocol:
        return self._proxy_protocol.protocol(partial(ImapConnection, self._context))

    async def run(self) -> None:
        """Runs until cancelled: deadlines of all connections together, and keys that have ended."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for connection in self._admissions.all():
                self._check_time(connection, loop.time())
            await self._close_ended()

    def _check_time(self, connection: object, now: float) -> None:
        assert isinstance(connection, ImapConnection)
        try:
            connection.check_time(now)
        except Exception:
            log.get().exception("an IMAP connection failed and was closed")
            connection.abort()

    async def _close_ended(self) -> None:
        """A key that ends, or may read no more, ends its connections; so does an inbox that is deleted."""
        logged_in = [
            (connection, (connection.state.caller.key_id, connection.state.inbox.id))
            for connection in self._admissions.all()
            if isinstance(connection, ImapConnection)
            and connection.state.caller is not None
            and connection.state.inbox is not None
        ]
        if not logged_in:
            return
        asked = sorted({who for _, who in logged_in})
        there = await self._resources.db.read(names.find_allowed, asked, READING, self._resources.now())
        for connection, who in logged_in:
            if who not in there:
                connection.hang_up(KEY_ENDED)

    async def stop(self) -> None:
        """Ends every session with BYE; what is being written gets its answer first."""
        if self._listener is None:
            return
        self._listener.close()
        self._proxy_protocol.close()
        self._admissions.is_closed = True
        for connection in self._admissions.all():
            connection.hang_up(SHUTTING_DOWN)
        if self._context.tasks:
            await asyncio.wait(set(self._context.tasks), timeout=STOPPING_SECONDS)
        for connection in self._admissions.all():
            connection.abort()
        for task in set(self._context.tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.watch.close()
