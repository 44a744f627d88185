"""The open connections, and the limits on how many there may be, in total and from one address."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Protocol

from postroom import log
from postroom.net.proxies import network_of
from postroom.smtp.dialogue import replies
from postroom.smtp.limits import SessionLimits


class LimitedConnection(Protocol):
    """A connection as the server sees it. `idle_since` is None while an email or an answer is under way."""

    @property
    def idle_since(self) -> float | None: ...
    def hang_up(self, farewell: bytes) -> None: ...
    def abort(self) -> None: ...
    def check_time(self, now: float) -> None: ...


class ConnectionLimits(Protocol):
    """`all_closed` is set while no connection is open."""

    all_closed: asyncio.Event

    def admit(self, connection: LimitedConnection, address: str) -> bytes | Awaitable[bytes | None] | None:
        """Counts the connection, or returns the reply that refuses it."""
        ...

    def release(self, connection: LimitedConnection) -> None: ...
    def close(self) -> None: ...
    def open_connections(self) -> list[LimitedConnection]: ...


class LocalConnectionLimits:
    """Counts the connections of one process."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._is_closed = False
        self.all_closed = asyncio.Event()
        self.all_closed.set()
        self._networks: dict[LimitedConnection, str] = {}
        self._per_network: Counter[str] = Counter()

    def admit(self, connection: LimitedConnection, address: str) -> bytes | None:
        """Counts the connection, or returns the reply that refuses it."""
        network = network_of(address)
        if self._is_closed:
            return replies.SHUTTING_DOWN
        if len(self._networks) >= self._limits.max_connections and not self._close_idlest():
            return replies.TOO_MANY_CONNECTIONS
        if self._per_network[network] >= self._limits.max_connections_per_address:
            return replies.TOO_MANY_FROM_ADDRESS
        self._networks[connection] = network
        self._per_network[network] += 1
        self.all_closed.clear()
        return None

    def _close_idlest(self) -> bool:
        """Closes the connection that has been idle longest: idle clients must not keep others out."""
        idle = [(since, each) for each in self._networks if (since := each.idle_since) is not None]
        log.get().seldom("SMTP connection limit reached", connections=len(self._networks), idle=len(idle))
        if not idle:
            return False
        _, idlest = min(idle, key=lambda pair: pair[0])
        self.release(idlest)
        idlest.abort()
        return True

    def release(self, connection: LimitedConnection) -> None:
        """Does nothing for a connection that was refused or released before."""
        network = self._networks.pop(connection, None)
        if network is None:
            return
        self._per_network[network] -= 1
        if self._per_network[network] <= 0:
            del self._per_network[network]
        if not self._networks:
            self.all_closed.set()

    def close(self) -> None:
        """Refuse every new connection from now on."""
        self._is_closed = True

    def open_connections(self) -> list[LimitedConnection]:
        return list(self._networks)
