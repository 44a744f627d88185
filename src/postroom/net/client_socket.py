"""The socket of one client: it may upgrade to TLS, and reading pauses while the client is ahead of us."""

import asyncio
import ssl
from typing import cast

from postroom.net.listening import peer_of
from postroom.net.relay import is_loopback
from postroom.net.tls_start import start_tls

WRITE_AHEAD_BYTES = 256 * 1024  # held for a client that reads slowly


class ClientSocket:
    """Does nothing once the connection is closed. `peer` is the address given by a proxy, or the socket's."""

    __slots__ = ("_before_tls", "_first_words", "_is_reading", "_protocol", "_times", "_transport", "peer")

    def __init__(self, protocol: asyncio.Protocol, handshake_seconds: float, shutdown_seconds: float) -> None:
        self._protocol = protocol
        self._times = (handshake_seconds, shutdown_seconds)
        self._transport: asyncio.Transport | None = None
        self._is_reading = True
        self._before_tls = b""  # of the handshake, if a proxy's header came with it
        self._first_words: bytearray | None = None  # the last packet of a handshake may contain a command
        self.peer = ""

    def made(self, transport: asyncio.BaseTransport, proxied_address: str | None) -> None:
        self._use(transport)
        peer = transport.get_extra_info("peername")
        self.peer = proxied_address or peer_of(peer)

    def lost(self) -> None:
        self._transport = None

    def _use(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)
        self._is_reading = True

    @property
    def is_local(self) -> bool:
        return is_loopback(self.peer)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if self._transport is not None and self.is_open:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None and self.is_open:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        if self._transport is not None and self.is_open and self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and self.is_open and not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()

    def keeps_for_tls(self, data: bytes, is_greeted: bool) -> bool:
        """Return whether these bytes came during the upgrade to TLS; they are processed after it."""
        if self._first_words is not None:
            self._first_words += data
        elif not is_greeted:
            self._before_tls += data
        else:
            return False
        return True

    async def upgrade(self, tls: ssl.SSLContext | None) -> bytes | None:
        """Return what came over TLS before the upgrade was noticed; None if the connection is gone."""
        transport = self._transport
        if tls is None or transport is None or not self.is_open:
            return None
        first_words = bytearray()

        def take_early() -> bytes:
            self._first_words = first_words
            return self._before_tls

        try:
            upgraded = await start_tls(transport, self._protocol, tls, take_early, *self._times)
        except OSError:
            upgraded = None
        self._first_words = None
        if upgraded is None or upgraded.is_closing():
            # The loop does not always report the loss of a connection whose handshake failed.
            transport.abort()
            self._protocol.connection_lost(None)
            return None
        self._use(upgraded)
        return bytes(first_words)
