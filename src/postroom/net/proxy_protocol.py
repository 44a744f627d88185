"""The PROXY protocol, versions 1 and 2: a trusted proxy names the client before its first byte.

Sections are those of HAProxy's proxy-protocol.txt.
"""

import asyncio
import re
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import cast

from msgspec import Struct

from postroom import log
from postroom.net.proxies import Proxies, parse_address, plain_address

HEADER_SECONDS = 10.0  # a proxy sends it first; the protocol asks for at least three
MakeProtocol = Callable[[str | None], asyncio.Protocol]

V1_START, V2_START = b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n"
V1_LONGEST_BYTES = 107  # section 2.1
V2_FIXED_BYTES = 16  # section 2.2
V2_LONGEST_BYTES = 4096  # the addresses need 36; the rest are extensions that are not read here
V2_LOCAL, V2_PROXY = 0x20, 0x21
V2_TCP4, V2_TCP6 = 0x11, 0x21
NO_HEADER = "a proxy sent no PROXY header"
_V1_TCP = re.compile(rb"PROXY (TCP4|TCP6) ([0-9a-fA-F:.]+) ([0-9a-fA-F:.]+) ([0-9]{1,5}) ([0-9]{1,5})\r\n")
_V1_UNKNOWN = re.compile(rb"PROXY UNKNOWN(?: [ -~]*)?\r\n")


class NoProxyHeader(Exception):
    """These bytes do not start with a header of the PROXY protocol."""


class ProxyHeader(Struct, frozen=True):
    """`address` is None for a connection of the proxy itself, such as a health check."""

    address: str | None
    length: int  # bytes of the header


def parse_header(data: bytes) -> ProxyHeader | None:
    """Return None while more bytes are needed. Raises NoProxyHeader."""
    if data.startswith(V2_START):
        return _parse_v2(data)
    if data.startswith(V1_START):
        return _parse_v1(data)
    if V2_START.startswith(data) or V1_START.startswith(data):
        return None
    raise NoProxyHeader


def _parse_v1(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, V1_LONGEST_BYTES) + 2
    if end < 2:
        if len(data) >= V1_LONGEST_BYTES:
            raise NoProxyHeader
        return None
    line = data[:end]
    if _V1_UNKNOWN.fullmatch(line):
        return ProxyHeader(None, end)
    found = _V1_TCP.fullmatch(line)
    address = None if found is None else parse_address(found[2].decode())
    if found is None or address is None or address.version != int(found[1][3:]):
        raise NoProxyHeader
    return ProxyHeader(plain_address(address), end)


def _parse_v2(data: bytes) -> ProxyHeader | None:
    if len(data) < V2_FIXED_BYTES:
        return None
    command, family, size = struct.unpack_from("!BBH", data, len(V2_START))
    end = V2_FIXED_BYTES + size
    if command not in (V2_LOCAL, V2_PROXY) or end > V2_LONGEST_BYTES:
        raise NoProxyHeader
    if len(data) < end:
        return None
    inside = data[V2_FIXED_BYTES:end]
    if command == V2_PROXY and family == V2_TCP4 and size >= 12:
        return ProxyHeader(str(IPv4Address(inside[:4])), end)
    if command == V2_PROXY and family == V2_TCP6 and size >= 36:
        return ProxyHeader(plain_address(IPv6Address(inside[:16])), end)
    if command == V2_PROXY and family in (V2_TCP4, V2_TCP6):
        raise NoProxyHeader
    return ProxyHeader(None, end)


class ProxyProtocol:
    """Reads the header before another protocol. `requires_header`: a proxy that sends none is rejected."""

    def __init__(self, proxies: Proxies, requires_header: bool) -> None:
        self.proxies = proxies
        self.requires_header = requires_header
        self.waiting: set[ProxiedConnection] = set()

    def protocol(self, make: MakeProtocol) -> asyncio.Protocol:
        """Return the protocol. `make` gets the address of the client that the proxy names, or None."""
        return ProxiedConnection(self, make) if self.proxies else make(None)

    def close(self) -> None:
        for each in list(self.waiting):
            each.abort()


class ProxiedConnection(asyncio.Protocol):
    """Reads the header, and hands the connection over to the real protocol."""

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
        self._timer = asyncio.get_running_loop().call_later(HEADER_SECONDS, self._reject)

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
        self._stop_waiting()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _reject(self) -> None:
        log.get().seldom(NO_HEADER)
        self.abort()

    def _hand_over(self, address: str | None) -> None:
        self._stop_waiting()
        assert self._transport is not None
        protocol = self._make(address)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._received:
            protocol.data_received(self._received)

    def _stop_waiting(self) -> None:
        self._proxy_protocol.waiting.discard(self)
        if self._timer is not None:
            self._timer.cancel()
