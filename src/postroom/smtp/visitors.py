"""Who is connected now, and the caps on how many may be, in total and from one address."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Protocol

from postroom import log
from postroom.smtp.dialogue import replies
from postroom.smtp.policy import SessionLimits, network_of


class Visitor(Protocol):
    """A connection as the server sees it. `idle_since` is None while a mail or an answer is under way."""

    @property
    def idle_since(self) -> float | None: ...
    def hang_up(self, farewell: bytes) -> None: ...
    def abort(self) -> None: ...
    def check_time(self, now: float) -> None: ...


class Guestbook(Protocol):
    """Knows who is there. `all_left` is set while nobody is."""

    all_left: asyncio.Event

    def admit(self, visitor: Visitor, address: str) -> bytes | Awaitable[bytes | None] | None:
        """Counts the visitor in, or gives the reply that turns it away."""
        ...

    def leave(self, visitor: Visitor) -> None: ...
    def close(self) -> None: ...
    def present(self) -> list[Visitor]: ...


class Visitors:
    """`all_left` is set while nobody is there."""

    def __init__(self, policy: SessionLimits) -> None:
        self._policy = policy
        self._is_closed = False
        self.all_left = asyncio.Event()
        self.all_left.set()
        self._networks: dict[Visitor, str] = {}
        self._per_network: Counter[str] = Counter()

    def admit(self, visitor: Visitor, address: str) -> bytes | None:
        """Counts the visitor in, or gives the reply that turns it away."""
        network = network_of(address)
        if self._is_closed:
            return replies.SHUTTING_DOWN
        if len(self._networks) >= self._policy.max_connections and not self._free_idlest():
            return replies.TOO_MANY_CONNECTIONS
        if self._per_network[network] >= self._policy.max_connections_per_address:
            return replies.TOO_MANY_FROM_ADDRESS
        self._networks[visitor] = network
        self._per_network[network] += 1
        self.all_left.clear()
        return None

    def _free_idlest(self) -> bool:
        """Cuts off who has said nothing for longest, so that nobody can fill the house by standing in it."""
        idle = [(since, visitor) for visitor in self._networks if (since := visitor.idle_since) is not None]
        log.get().seldom("SMTP is full", connections=len(self._networks), idle=len(idle))
        if not idle:
            return False
        _, idlest = min(idle, key=lambda pair: pair[0])
        self.leave(idlest)
        idlest.abort()
        return True

    def leave(self, visitor: Visitor) -> None:
        """Does nothing for a visitor that was turned away or has left before."""
        network = self._networks.pop(visitor, None)
        if network is None:
            return
        self._per_network[network] -= 1
        if self._per_network[network] <= 0:
            del self._per_network[network]
        if not self._networks:
            self.all_left.set()

    def close(self) -> None:
        """From now on everybody new is turned away."""
        self._is_closed = True

    def present(self) -> list[Visitor]:
        return list(self._networks)
