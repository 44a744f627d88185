"""What can be reached: the ports of this machine, its addresses, and port 25 of others."""

import asyncio
import contextlib
import socket
from collections.abc import Iterable

from msgspec import Struct

from postroom.config import Config, Endpoint
from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.public_addresses import is_public
from postroom.net.smtp_probe import probe

SMTP_PORT = 25
SERVERS = 3  # of the owner's domain, tried in their order
ELSEWHERE = "192.88.99.1"  # a public address; nothing is sent there, only its route is looked up


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
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        try:
            socket.create_server((endpoint.host, endpoint.port), family=family).close()
        except OSError as error:
            found[endpoint.port] = error.strerror or str(error)
    return found


def own_address() -> str:
    """Return the IPv4 address from which this machine reaches the internet; "" without a route."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((ELSEWHERE, SMTP_PORT))
        return str(asking.getsockname()[0])
    return ""


async def find_address(resolver: Resolver, host: str) -> str:
    """Return the public IPv4 address of the host: of this machine, or behind a NAT as the DNS has it."""
    address = own_address()
    if is_public(address):
        return address
    with contextlib.suppress(DnsTemporary):
        return next((each for each in await resolver.ipv4(host) if is_public(each)), "")
    return ""


async def try_way_out(resolver: Resolver, own_name: str, owner: str) -> PortTry:
    """Connect to the mail servers of the owner's domain at port 25, as an email to the owner would."""
    domain = owner.rpartition("@")[2]
    try:
        hosts = [host for _, host in await resolver.mx(domain) if host] or [domain]
        found = [ip for host in hosts[:SERVERS] for ip in (await resolver.ipv4(host))[:1]]
    except DnsTemporary:
        return PortTry(False, "", f"the DNS gives no answer for {domain}")
    if not found:
        return PortTry(False, "", f"{domain} has no mail server")
    answers = await asyncio.gather(*(probe(each, SMTP_PORT, own_name) for each in found))
    for address, answer in zip(found, answers, strict=True):
        if not answer.fault:
            return PortTry(True, address, answer.greeting)
    return PortTry(False, found[0], answers[0].fault)
