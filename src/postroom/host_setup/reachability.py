"""What can be reached: the ports of this machine, its addresses, and port 25 of others."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from msgspec import Struct

from postroom.config import Config, Endpoint
from postroom.host_setup.systemd import SetupFailed
from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.listening import close_all, listen_on
from postroom.net.public_addresses import is_public
from postroom.net.smtp_probe import probe

SMTP_PORT = 25
BACKLOG = 1
BUSY = {errno.EADDRINUSE: "in use", errno.EACCES: "not allowed for this user"}
SERVERS = 3  # of the owner's domain, tried in their order
# Public addresses: nothing is sent there, only their routes are looked up.
ELSEWHERE, ELSEWHERE_BY_IPV6 = "192.88.99.1", "2002:c058:6301::1"


class PortTry(Struct, frozen=True):
    """The outcome of a real try; `server` is "" where none was found: then nothing could be tried."""

    is_open: bool
    server: str
    reason: str


def endpoints(config: Config) -> list[Endpoint]:
    """Return every address that the server will listen on."""
    certificates = [config.acme_http] if config.acme and config.acme_http else []
    programs = [config.imap, *config.submission] if config.imap else [*config.submission]
    return [config.smtp, config.http, *certificates, *programs]


def busy_ports(wanted: Iterable[Endpoint]) -> dict[int, str]:
    """Return the ports that cannot be listened on, each with the reason."""
    found = {}
    for endpoint in wanted:
        try:
            close_all(listen_on(endpoint.host, endpoint.port, BACKLOG))
        except OSError as error:
            found[endpoint.port] = BUSY.get(error.errno or 0, os.strerror(error.errno or 0))
    return found


class HostAddresses(Struct, frozen=True):
    """Public addresses of the host; "" for none."""

    ipv4: str = ""
    ipv6: str = ""

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(each for each in (self.ipv4, self.ipv6) if each)


def own_address(family: socket.AddressFamily = socket.AF_INET) -> str:
    """Return the address from which this machine reaches the internet; "" without a route."""
    elsewhere = ELSEWHERE if family == socket.AF_INET else ELSEWHERE_BY_IPV6
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.connect((elsewhere, SMTP_PORT))
        return str(asking.getsockname()[0])
    return ""


def own_public_ipv6() -> str:
    address = own_address(socket.AF_INET6)
    return address if is_public(address) else ""


async def find_addresses(resolver: Resolver, host: str) -> HostAddresses:
    """Return those of this machine. Behind a NAT the IPv4 address is the one that the DNS has."""
    address, ipv6 = own_address(), own_public_ipv6()
    if is_public(address):
        return HostAddresses(address, ipv6)
    with contextlib.suppress(DnsTemporary):
        found = await resolver.ipv4(host)
        return HostAddresses(next((each for each in found if is_public(each)), ""), ipv6)
    return HostAddresses("", ipv6)


async def find_ipv6(resolver: Resolver, host: str) -> tuple[str, ...]:
    with contextlib.suppress(DnsTemporary):
        return await resolver.ipv6(host)
    return ()


def to_addresses(given: Iterable[str]) -> HostAddresses:
    """Return what `--address` names: at most one of each kind. Raises SetupFailed."""
    found = {4: "", 6: ""}
    for text in given:
        try:
            address = ip_address(text)
        except ValueError:
            raise SetupFailed(f"--address is not an IP address: '{text}'.") from None
        if found[address.version]:
            raise SetupFailed(f"--address names two IPv{address.version} addresses. Give one.")
        found[address.version] = str(address)
    return HostAddresses(found[4], found[6])


def takes_ipv6(config: Config) -> bool:
    """Return whether email can come in by IPv6."""
    return ":" in config.smtp.host


async def try_way_out(resolver: Resolver, own_name: str, owner: str) -> PortTry:
    """Connect to the mail servers of the owner's domain at port 25, as an email to the owner would."""
    domain = owner.rpartition("@")[2]
    try:
        hosts = [host for _, host in await resolver.mx(domain) if host] or [domain]
        found = [ip for host in hosts[:SERVERS] for ip in await _some_of_each(resolver, host)]
    except DnsTemporary:
        return PortTry(False, "", f"the DNS gives no answer for {domain}")
    if not found:
        return PortTry(False, "", f"{domain} has no mail server")
    answers = await asyncio.gather(*(probe(each, SMTP_PORT, own_name) for each in found))
    for address, answer in zip(found, answers, strict=True):
        if not answer.fault:
            return PortTry(True, address, answer.greeting)
    return PortTry(False, found[0], answers[0].fault)


async def _some_of_each(resolver: Resolver, host: str) -> list[str]:
    """Return one address of each kind that this machine can reach."""
    found = list((await resolver.ipv4(host))[:1])
    return [*found, *(await resolver.ipv6(host))[:1]] if own_public_ipv6() else found
