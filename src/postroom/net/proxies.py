"""Who is really there, when a proxy that the operator trusts stands between: what it says, read strictly.

The PROXY protocol, versions 1 and 2, before the first byte of a connection; `X-Forwarded-For` and `Forwarded`
(RFC 7239) in the head of a request.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network
Headers = Sequence[tuple[bytes, bytes]]

V1_START, V2_START = b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n"
V1_LONGEST_BYTES = 107
V2_FIXED_BYTES = 16
V2_LONGEST_BYTES = 4096  # the addresses need 36; the rest are remarks that nobody here reads
V2_LOCAL, V2_PROXY = 0x20, 0x21
V2_TCP4, V2_TCP6 = 0x11, 0x21
MOST_HOPS = 32
_V1_TCP = re.compile(rb"PROXY (TCP4|TCP6) ([0-9a-fA-F:.]+) ([0-9a-fA-F:.]+) ([0-9]{1,5}) ([0-9]{1,5})\r\n")
_V1_UNKNOWN = re.compile(rb"PROXY UNKNOWN(?: [ -~]*)?\r\n")
_FORWARDED_FOR = re.compile(r'(?:^|;)[ \t]*for=("?)([^";,]*)\1[ \t]*(?=;|$)', re.IGNORECASE)
_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::[0-9]{1,5})?|([0-9.]+)(?::[0-9]{1,5})?|([0-9a-fA-F:.]+)")


class NoProxyHeader(Exception):
    """These bytes do not begin with a header of the PROXY protocol."""


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """`address` is None where the proxy speaks for itself, as its probes do."""

    address: str | None
    length: int  # bytes of the header


def parse_header(data: bytes) -> ProxyHeader | None:
    """None while more bytes are needed. Raises NoProxyHeader."""
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
    address = None if found is None else _address(found[2].decode())
    if found is None or address is None or address.version != int(found[1][3:]):
        raise NoProxyHeader
    return ProxyHeader(_plain(address), end)


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
        return ProxyHeader(_plain(IPv6Address(inside[:16])), end)
    if command == V2_PROXY and family in (V2_TCP4, V2_TCP6):
        raise NoProxyHeader
    return ProxyHeader(None, end)


class Proxies:
    """Those whose word counts. Without any, nobody's does."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self.networks = tuple(networks)

    def __bool__(self) -> bool:
        return bool(self.networks)

    def trusts(self, address: str) -> bool:
        parsed = _address(address)
        return parsed is not None and any(parsed in network for network in self.networks)

    def client_of(self, peer: str, headers: Headers) -> str:
        """From the nearest proxy backwards, each hop only on the word of one that is trusted.

        A proxy writes one of the two fields, and passes on what a client wrote into the other. So where both
        stand and disagree, neither is believed.
        """
        if not self.trusts(peer):
            return peer
        chains = [chain for chain in (_forwarded_for(headers), _forwarded(headers)) if chain]
        found = {self._walk(peer, chain) for chain in chains}
        return found.pop() if len(found) == 1 else peer

    def _walk(self, peer: str, chain: Sequence[str]) -> str:
        for hop in reversed(chain[-MOST_HOPS:]):
            named = _named_address(hop)
            if named is None:
                return peer
            peer = named
            if not self.trusts(peer):
                return peer
        return peer


def _forwarded_for(headers: Headers) -> list[str]:
    return _list(headers, b"x-forwarded-for")


def _forwarded(headers: Headers) -> list[str]:
    """The `for` of each hop; "" for one that names nobody."""
    found = (_FORWARDED_FOR.search(hop) for hop in _list(headers, b"forwarded")[-MOST_HOPS:])
    return ["" if hop is None else hop[2] for hop in found]


def _list(headers: Headers, name: bytes) -> list[str]:
    """A field may stand several times: together they are one list (RFC 9110 section 5.3)."""
    values = [value.decode("latin-1") for field, value in headers if field == name]
    return [part.strip(" \t") for part in ",".join(values).split(",")] if values else []


def _named_address(hop: str) -> str | None:
    found = _WITH_PORT.fullmatch(hop)
    address = None if found is None else _address(found[1] or found[2] or found[3])
    return None if address is None else _plain(address)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An IPv4 address that a socket of both families writes as IPv6 is the IPv4 address."""
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return parsed if isinstance(parsed, IPv4Address) else parsed.ipv4_mapped or parsed


def _plain(address: IPv4Address | IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
