"""The SMTP server: listens, watches the clock for every connection, and stops without losing a mail."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from postroom import log
from postroom.net.doorstep import Doorstep
from postroom.net.proxies import Proxies
from postroom.smtp.connection import Premises, SmtpConnection
from postroom.smtp.dialogue import replies
from postroom.smtp.policy import Directory, Mailroom, SessionLimits
from postroom.smtp.visitors import Guestbook, Visitor, Visitors

_BACKLOG = 512
_LONGEST_WATCH_SECONDS = 1.0
_SHORTEST_WATCH_SECONDS = 0.01


class Server:
    """Receives mail for whom `directory` knows, and gives it to `mailroom`.

    With a `tls` context the server offers STARTTLS. Mail above a limit is spooled in `spool_folder`.
    Who comes through one of `proxies` is who that says it brings.
    """

    def __init__(
        self,
        directory: Directory,
        mailroom: Mailroom,
        policy: SessionLimits,
        spool_folder: Path,
        tls: ssl.SSLContext | None = None,
        visitors: Guestbook | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self._policy = policy
        self._visitors = visitors or Visitors(policy)
        self._surroundings = Premises(directory, mailroom, policy, spool_folder, tls, self._visitors)
        # The server speaks first, so a proxy that says nothing would look like a client that listens.
        self._doorstep = Doorstep(proxies or Proxies(), must_announce=True)
        self._listeners: list[asyncio.Server] = []
        self._watch: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port in use, also when the system chose it."""
        assert self._listeners, "the server is not started"
        port: int = self._listeners[0].sockets[0].getsockname()[1]
        return port

    async def start(self, host: str, port: int) -> None:
        """On a port of its own."""
        loop = asyncio.get_running_loop()
        self._listeners = [await loop.create_server(self._connection, host, port, backlog=_BACKLOG)]
        self._begin(loop)

    async def start_on(self, sockets: Sequence[socket.socket]) -> None:
        """On sockets that somebody else has bound."""
        loop = asyncio.get_running_loop()
        self._listeners = [
            await loop.create_server(self._connection, sock=each, backlog=_BACKLOG) for each in sockets
        ]
        self._begin(loop)

    def count(self) -> int:
        """How many clients are here."""
        return len(self._visitors.present())

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._surroundings.spool_folder.mkdir(parents=True, exist_ok=True)
        self._watch = loop.create_task(self._watch_clock())

    async def stop(self) -> None:
        """Ends every session with 421; a mail that is being taken over gets its answer first."""
        if self._watch is None:
            return
        for listener in self._listeners:
            listener.close()
        self._doorstep.close()
        self._visitors.close()
        for visitor in self._visitors.present():
            visitor.hang_up(replies.SHUTTING_DOWN)
        while self._surroundings.tasks:
            await asyncio.wait(set(self._surroundings.tasks))
        await self._see_everybody_out()
        self._watch.cancel()
        with suppress(asyncio.CancelledError):
            await self._watch

    def _connection(self) -> asyncio.Protocol:
        return self._doorstep.protocol(partial(SmtpConnection, self._surroundings))

    async def _see_everybody_out(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._visitors.all_left.wait(), self._policy.linger_seconds)
        for visitor in self._visitors.present():
            visitor.abort()

    async def _watch_clock(self) -> None:
        """One look at all deadlines now and then costs less than a timer for each command."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_watch_seconds(self._policy))
            now = loop.time()
            for visitor in self._visitors.present():
                self._check_time(visitor, now)

    def _check_time(self, visitor: Visitor, now: float) -> None:
        """A visitor that cannot be looked at must not stop the clock of the others."""
        try:
            visitor.check_time(now)
        except Exception:
            log.get().exception("a connection was cut off")
            visitor.abort()


def _watch_seconds(policy: SessionLimits) -> float:
    shortest = min(
        policy.command_timeout_seconds,
        policy.data_timeout_seconds,
        policy.mail_timeout_seconds,
        policy.data_grace_seconds,
        policy.linger_seconds,
    )
    return min(_LONGEST_WATCH_SECONDS, max(shortest / 4, _SHORTEST_WATCH_SECONDS))
