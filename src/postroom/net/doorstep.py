"""Where a connection from a trusted proxy waits until the proxy has said whom it brings."""

import asyncio
from collections.abc import Callable
from typing import cast

from postroom import log
from postroom.net.proxies import NotAnnounced, Proxies, parse_announcement

PATIENCE_SECONDS = 10.0
MakeProtocol = Callable[[str | None], asyncio.Protocol]


class Doorstep:
    """Everybody who waits there. `must_announce`: who is brought without a word is turned away."""

    def __init__(self, proxies: Proxies, must_announce: bool) -> None:
        self.proxies = proxies
        self.must_announce = must_announce
        self.waiting: set[ArrivingConnection] = set()

    def protocol(self, make: MakeProtocol) -> asyncio.Protocol:
        """`make` gets the address that a proxy has announced, or None."""
        return ArrivingConnection(self, make) if self.proxies else make(None)

    def close(self) -> None:
        for each in list(self.waiting):
            each.abort()


class ArrivingConnection(asyncio.Protocol):
    """Reads the header of the PROXY protocol, and hands the connection on to the protocol behind it."""

    def __init__(self, doorstep: Doorstep, make: MakeProtocol) -> None:
        self._doorstep = doorstep
        self._make = make
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if not isinstance(peer, tuple) or not self._doorstep.proxies.trusts(peer[0]):
            self._hand_on(None)
            return
        self._doorstep.waiting.add(self)
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._turn_away)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        try:
            announced = parse_announcement(self._heard)
        except NotAnnounced:
            if self._doorstep.must_announce:
                self._turn_away()
            else:
                self._hand_on(None)
            return
        if announced is not None:
            self._heard = self._heard[announced.length :]
            self._hand_on(announced.address)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _turn_away(self) -> None:
        log.get().seldom("a proxy did not say whom it brings")
        self.abort()

    def _hand_on(self, address: str | None) -> None:
        self._leave()
        assert self._transport is not None
        protocol = self._make(address)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._heard:
            protocol.data_received(self._heard)

    def _leave(self) -> None:
        self._doorstep.waiting.discard(self)
        if self._timer is not None:
            self._timer.cancel()
