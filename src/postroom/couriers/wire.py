"""One TCP connection to an SMTP server: limited lines in, bytes with back pressure out."""

import asyncio
import ssl
from ipaddress import ip_address
from typing import cast

_MAX_LINE_BYTES = 4096  # RFC 5321 section 4.5.3.1.5 allows 512; some servers send more
# More than any reply may be: a server that sends this much unasked is disconnected.
_MAX_UNREAD_BYTES = 64 * 1024  # of a server that answers more than it was asked
_DER = 2  # Python's internal number of this encoding


class WireBroken(Exception):
    """The connection is unusable; the text says why."""


class Wire(asyncio.Protocol):
    """One task at a time may read, one at a time may write."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._ending: str | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._is_paused = False
        self._transport: asyncio.Transport

    @property
    def is_quiet(self) -> bool:
        """Return whether it is open and has no unexpected input."""
        return self._ending is None and not self._received and not self._transport.is_closing()

    @property
    def has_tls(self) -> bool:
        return self._transport.get_extra_info("ssl_object") is not None

    @property
    def own_ip(self) -> str:
        """Our address as the other side sees it; "" behind a NAT, where it means nothing to it."""
        name = self._transport.get_extra_info("sockname") or ("",)
        try:
            address = ip_address(name[0])
        except ValueError:
            return ""
        return "" if address.is_private and not address.is_loopback else str(address)

    def certificates(self) -> list[bytes]:
        """Return the certificates shown by the other side, its own first, as DER, not verified."""
        shown = self._transport.get_extra_info("ssl_object")
        if shown is None:
            return []
        if hasattr(shown, "get_unverified_chain"):  # since Python 3.13
            return list(shown.get_unverified_chain())
        return [each.public_bytes(_DER) for each in shown._sslobj.get_unverified_chain() or []]

    def write(self, data: bytes) -> None:
        if self._ending is not None:
            raise WireBroken(self._ending)
        self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the other side has taken enough of what was written."""
        if self._is_paused and self._ending is None:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer
        if self._ending is not None:
            raise WireBroken(self._ending)

    def take_line(self) -> bytes | None:
        """Return the next line without its end; None while it is incomplete."""
        end = self._received.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        if len(line) > _MAX_LINE_BYTES:
            raise WireBroken("sent a line that is too long")
        return line.removesuffix(b"\r")

    async def wait(self) -> None:
        """Waits for more of an incomplete line."""
        if len(self._received) > _MAX_LINE_BYTES:
            raise WireBroken("sent a line without end")
        if self._ending is not None:
            raise WireBroken(self._ending)
        self._reader = asyncio.get_running_loop().create_future()
        await self._reader

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        # This came in the clear and must not be read as if it were protected (RFC 3207 section 6).
        if self._received:
            raise WireBroken("spoke before TLS had begun")
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self._transport, self, context, server_hostname=host)
        if transport is None:
            raise WireBroken("closed the connection")
        self._transport = transport

    def abort(self) -> None:
        """Drops the connection without waiting for pending writes."""
        self._end("the connection was given up")
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Neither asyncio's nor uvloop's TCP transport is an instance of the class that names its methods.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _MAX_UNREAD_BYTES:
            self._end("sent far more than was asked")
            self._transport.abort()
        self._wake(self._reader)

    def eof_received(self) -> None:
        self._end("closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("closed the connection" if exc is None else "lost the connection")

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._wake(self._writer)

    def _end(self, reason: str) -> None:
        self._ending = self._ending or reason
        self._wake(self._reader)
        self._wake(self._writer)

    @staticmethod
    def _wake(waiter: asyncio.Future[None] | None) -> None:
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
