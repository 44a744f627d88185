"""The client behind trusted proxies, by `X-Forwarded-For` and `Forwarded` (RFC 7239), read strictly."""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Headers = Sequence[tuple[bytes, bytes]]

MAX_HOPS = 32  # a client may add as many as it likes in front of those of our proxies
_FORWARDED_FOR = re.compile(r'(?:^|;)[ \t]*+for=("?)([^";,\s]*+)\1[ \t]*+(?=;|$)', re.IGNORECASE)
_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::[0-9]{1,5})?|([0-9.]+)(?::[0-9]{1,5})?|([0-9a-fA-F:.]+)")


class Proxies:
    """The proxies that the operator trusts; by default none."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self.networks = tuple(networks)

    def __bool__(self) -> bool:
        return bool(self.networks)

    def trusts(self, address: str) -> bool:
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self.networks)

    def client_of(self, peer: str, headers: Headers) -> str:
        """Find the client, from the nearest proxy backwards, as long as a trusted hop names the next.

        A proxy writes one of the two fields, and passes on what the client wrote into the other. So if both
        are there and disagree, neither counts.
        """
        if not self.trusts(peer):
            return peer
        chains = [chain for chain in (_forwarded_for(headers), _forwarded(headers)) if chain]
        found = {self._walk(peer, chain) for chain in chains}
        return found.pop() if len(found) == 1 else peer

    def _walk(self, peer: str, chain: Sequence[str]) -> str:
        for hop in reversed(chain[-MAX_HOPS:]):
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
    """Return the `for` of each hop; "" if there is none."""
    found = (_FORWARDED_FOR.search(hop) for hop in _list(headers, b"forwarded")[-MAX_HOPS:])
    return ["" if hop is None else hop[2] for hop in found]


def _list(headers: Headers, name: bytes) -> list[str]:
    """Return fields of the same name as one list (RFC 9110, 5.3)."""
    values = [value.decode("latin-1") for field, value in headers if field == name]
    return [part.strip(" \t") for part in ",".join(values).split(",")] if values else []


def _named_address(hop: str) -> str | None:
    found = _WITH_PORT.fullmatch(hop)
    address = None if found is None else parse_address(found[1] or found[2] or found[3])
    return None if address is None else plain_address(address)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address. An IPv4 address mapped to IPv6, as dual-stack sockets give it, is the IPv4 one."""
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return parsed if isinstance(parsed, IPv4Address) else parsed.ipv4_mapped or parsed


def plain_address(address: IPv4Address | IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def network_of(address: str) -> str:
    """Return what the limit per address counts: one IPv4 address, or the /64 of one IPv6 customer."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ip_network((parsed, 64), strict=False))
