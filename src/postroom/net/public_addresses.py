"""Which addresses are on the public internet: the only ones that others may make the server call."""

import functools
import re
import unicodedata
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_MAX_HOST_CHARACTERS = 255  # RFC 1035 section 2.3.4
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_BASE_DIGITS = {8: re.compile(r"[0-7]+"), 10: re.compile(r"[0-9]+"), 16: re.compile(r"[0-9a-fA-F]*")}
# Characters that IDNA removes from a name, so that a resolver would not see them.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
# Characters that IDNA reads as the dot between labels (RFC 3490 section 3.1).
_DOTS = dict.fromkeys(map(ord, "\u3002\uff0e\uff61"), ".")

_CLOSED_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network, and 0.0.0.0 reaches the own host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; holds one cloud's metadata service
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local; holds most metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, withdrawn
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved and broadcast
        "168.63.129.16/32",  # a cloud's host agent, public by number only
    )
)
_OPEN_IPV6 = IPv6Network("2000::/3")
_CLOSED_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which carries any IPv4 address inside
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


class ForbiddenAddress(Exception):
    """The address is not on the public internet."""


@functools.lru_cache(maxsize=4096)
def is_public(ip: str) -> bool:
    """Return whether this address, in its usual form, is on the public internet."""
    try:
        address = ip_address(ip)
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_IPV4)
    return _is_public_ipv6(address)


def check_host_literal(host: str) -> str | None:
    """Return the address that a host of a URL or an MX record denotes, None for a name.

    Raises ForbiddenAddress for an address that is not public, and for text that some parser may read as one.
    """
    if len(host) > _MAX_HOST_CHARACTERS or not host or any(character <= " " for character in host):
        raise ForbiddenAddress(host[:_MAX_HOST_CHARACTERS])
    address = _literal(host)
    if address is not None and not is_public(address):
        raise ForbiddenAddress(host)
    return address


def parse_loose_ipv4(host: str) -> str | None:
    """Return the dotted form of what browsers read as IPv4: short, decimal, octal, hex, full-width."""
    if len(host) > _MAX_HOST_CHARACTERS:
        return None
    numbers = [_number(part) for part in _plain(host).removesuffix(".").split(".")]
    if len(numbers) > 4:
        return None
    total = 0
    for position, number in enumerate(numbers):
        is_last = position == len(numbers) - 1
        limit = 256 ** (5 - len(numbers)) if is_last else 256
        if number is None or number >= limit:
            return None
        total = total * limit + number
    return str(IPv4Address(total))


def _is_public_ipv6(address: IPv6Address) -> bool:
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        return is_public(embedded)
    if address.scope_id is not None or address not in _OPEN_IPV6:
        return False
    return not any(address in network for network in _CLOSED_IPV6)


def _embedded_ipv4(address: IPv6Address) -> str | None:
    """Return the IPv4 address inside, of a mapped one or the well-known NAT64 prefix (RFC 6052)."""
    if address.scope_id is not None:
        return None
    if address.ipv4_mapped is not None or address in _NAT64:
        return str(IPv4Address(int(address) & 0xFFFFFFFF))
    return None


def _literal(host: str) -> str | None:
    if ":" in host or host.startswith("["):
        return _ipv6_literal(host)
    address = parse_loose_ipv4(host)
    last_label = _plain(host).removesuffix(".").rpartition(".")[2]
    if address is None and _NUMBER.fullmatch(last_label):
        raise ForbiddenAddress(host)
    return address


def _ipv6_literal(host: str) -> str:
    inside = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(IPv6Address(inside))
    except ValueError as error:
        raise ForbiddenAddress(host) from error


def _plain(host: str) -> str:
    """Return the host as a resolver reads it.

    Full-width and circled digits are digits, ideographic stops are dots.
    """
    return unicodedata.normalize("NFKC", host.translate(_DOTS)).translate(_INVISIBLE).translate(_DOTS)


def _number(text: str) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    base, digits = 10, text
    if text[:2].lower() == "0x":
        base, digits = 16, text[2:]
    elif len(text) > 1 and text.startswith("0"):
        base, digits = 8, text[1:]
    return int(digits or "0", base) if _BASE_DIGITS[base].fullmatch(digits) else None
