"""Whether a webhook URL may be called: checks of its text, and of the addresses behind its host."""

import asyncio
import re
import socket
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from msgspec import Struct

from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.public_addresses import ForbiddenAddress, check_host_literal, is_public, parse_loose_ipv4

if TYPE_CHECKING:
    import httpx2  # loaded with the first webhook

_MAX_URL_CHARACTERS = 2048
_MAX_ADDRESSES = 4  # tried one after the other until one answers
_DEFAULT_PORTS = {"http": 80, "https": 443}
_FIRST_FREE_PORT = 1024  # below are services that read lines of a request as commands (RFC 6335 section 6)
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")


class ForbiddenTarget(Exception):
    """The URL may not be called; the reason is for the person who set it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HasNoAddress(ForbiddenTarget):
    """The name has no address now; it may get one again."""


class Target(Struct, frozen=True):
    """The URL of a request and the only addresses that may be connected to."""

    url: "httpx2.URL"
    host: str  # as the certificate must name it
    ips: tuple[str, ...]

    @property
    def host_header(self) -> str:
        return self.url.netloc.decode("ascii")


def check_url(url: str, allow_private: bool) -> None:
    """Raises ForbiddenTarget for what can be refused without DNS."""
    parsed = _parse(url, allow_private)
    _literal(parsed, allow_private)


async def resolve_target(resolver: Resolver, url: str, allow_private: bool) -> Target:
    """Raises ForbiddenTarget, and DnsTemporary if the host could not be looked up.

    One private address among several forbids all: such names are used to pass a check and then change.
    """
    parsed = _parse(url, allow_private)
    host, ip = _host(parsed), _literal(parsed, allow_private)
    ips = (ip,) if ip is not None else await _addresses(resolver, host, allow_private)
    if not ips:
        raise HasNoAddress(f"the host {host} has no address")
    if not allow_private and not all(is_public(ip) for ip in ips):
        raise ForbiddenTarget(f"the host {host} leads to an address that is not public")
    return Target(parsed, ip or host, ips[:_MAX_ADDRESSES])


def _parse(url: str, allow_private: bool) -> "httpx2.URL":
    """Parse a URL, both for the check and the request, so that they cannot read it differently."""
    import httpx2

    if len(url) > _MAX_URL_CHARACTERS:
        raise ForbiddenTarget(f"the URL is longer than {_MAX_URL_CHARACTERS} characters")
    if any(character.isspace() or not character.isprintable() or character == "\\" for character in url):
        raise ForbiddenTarget("the URL has a space, a backslash or a control character")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ForbiddenTarget("the URL cannot be read") from error
    _require_plain(parsed, allow_private)
    return parsed.copy_with(fragment=None)


def _require_plain(url: "httpx2.URL", allow_private: bool) -> None:
    if url.scheme not in _DEFAULT_PORTS or not url.raw_host:
        raise ForbiddenTarget("the URL must start with http:// or https:// and name a host")
    if url.userinfo:
        raise ForbiddenTarget("the URL must not have a user name or a password")
    port = url.port if url.port is not None else _DEFAULT_PORTS[url.scheme]
    if not 1 <= port <= 65535:
        raise ForbiddenTarget("the port must be 1 to 65535")
    # On ports below, a service such as SMTP may take the request for its own protocol.
    if not allow_private and port < _FIRST_FREE_PORT and port not in _DEFAULT_PORTS.values():
        raise ForbiddenTarget("the port must be 80, 443 or above 1023")


def _host(url: "httpx2.URL") -> str:
    return url.raw_host.decode("ascii").lower().removesuffix(".")


def _literal(url: "httpx2.URL", allow_private: bool) -> str | None:
    """Return the address that the host denotes, None for a name to look up."""
    host = _host(url)
    try:
        address = check_host_literal(host)
    except ForbiddenAddress as error:
        address = _any_literal(host) if allow_private else None
        if address is None:
            raise ForbiddenTarget(f"the host {host[:255]} is not an address that may be called") from error
    if address is None:
        _require_name(host, allow_private)
    return address


def _any_literal(host: str) -> str | None:
    """Return any address except one with a zone, which is only valid on one machine."""
    if ":" not in host:
        return parse_loose_ipv4(host)
    try:
        return None if "%" in host else str(IPv6Address(host))
    except ValueError:
        return None


def _require_name(host: str, allow_private: bool) -> None:
    if not _NAME.fullmatch(host):
        raise ForbiddenTarget(f"{host[:255]} is not a host name")
    if _is_localhost(host) and not allow_private:
        raise ForbiddenTarget("the host is this machine itself")


def _is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


async def _addresses(resolver: Resolver, host: str, allow_private: bool) -> tuple[str, ...]:
    if _is_localhost(host):
        return "127.0.0.1", "::1"  # never looked up in DNS (RFC 6761 section 6.3)
    if not allow_private:
        return await resolver.addresses(host)
    try:
        return await resolver.addresses(host) or await _addresses_of_this_machine(host)
    except DnsTemporary:
        found = await _addresses_of_this_machine(host)
        if not found:
            raise
        return found


async def _addresses_of_this_machine(host: str) -> tuple[str, ...]:
    """Return addresses of the hosts file and other system sources, only if private targets are allowed."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
