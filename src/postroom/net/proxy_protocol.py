"""Where a connection from a trusted proxy waits until the proxy has said whom it brings."""

import asyncio
from collections.abc import Callable
from typing import cast

from postroom import log
from postroom.net.proxies import NoProxyHeader, Proxies, parse_header

PATIENCE_SECONDS = 10.0
MakeProtocol = Callable[[str | None], asyncio.Protocol]


class ProxyProtocol:
    """Everybody who waits there. `requires_header`: who is brought without a word is turned away."""

    def __init__(self, proxies: Proxies, requires_header: bool) -> None:
        self.proxies = proxies
        self.requires_header = requires_header
        self.waiting: set[ProxiedConnection] = set()

    def protocol(self, make: MakeProtocol) -> asyncio.Protocol:
        """`make` gets the address that the proxy named, or None."""
        return ProxiedConnection(self, make) if self.proxies else make(None)

    def close(self) -> None:
        for each in list(self.waiting):
            each.abort()


class ProxiedConnection(asyncio.Protocol):
    """Reads the header of the PROXY protocol, and hands the connection on to the protocol behind it."""

    def __init__(self, owner: ProxyProtocol, make: MakeProtocol) -> None:
        self._proxy_protocol = owner
        self._make = make
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if not isinstance(peer, tuple) or not self._proxy_protocol.proxies.trusts(peer[0]):
            self._hand_over(None)
            return
        self._proxy_protocol.waiting.add(self)
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._reject)

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            header = parse_header(self._received)
        except NoProxyHeader:
            if self._proxy_protocol.requires_header:
                self._reject()
            else:
                self._hand_over(None)
            return
        if header is not None:
            self._received = self._received[header.length :]
            self._hand_over(header.address)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _reject(self) -> None:
        log.get().seldom("a proxy did not say whom it brings")
        self.abort()

    def _hand_over(self, address: str | None) -> None:
        self._leave()
        assert self._transport is not None
        protocol = self._make(address)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._received:
            protocol.data_received(self._received)

    def _leave(self) -> None:
        self._proxy_protocol.waiting.discard(self)
        if self._timer is not None:
            self._timer.cancel()
