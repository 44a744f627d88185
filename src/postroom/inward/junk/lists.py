"""Asks DNS lists about the server that brought an email and the hosts of its links.

A list that names 127.0.0.1 answers for everything: it is left out, with an alert.
"""

import asyncio
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from postroom import log
from postroom.mailbox.documents import JunkReason
from postroom.net import public_addresses
from postroom.net.dns import DnsTemporary, Resolver
from postroom.resources import ServiceFaults
from postroom_mail.html.page import HtmlPage

Zones = Sequence[tuple[str, float]]  # names of lists, and how much each weighs

SECONDS = 3.0
MOST_HOSTS = 10
AWAY = "A DNS list does not answer."
LEFT_OUT = "A DNS list answers for everything and is left out."
NEVER_LISTED = "1.0.0.127"
REFUSALS = "127.255.255."  # how lists say that they do not answer this resolver


async def ask_lists(
    resolver: Resolver,
    address_lists: Zones,
    link_lists: Zones,
    peer_ip: str,
    page: HtmlPage,
    faults: ServiceFaults | None = None,
    now: int = 0,
) -> tuple[JunkReason, ...]:
    """Return what is listed. Lists that do not answer in time say nothing."""
    servers = [reversed_address(peer_ip)] if public_addresses.is_public(peer_ip) else []
    hosts = hosts_of(page)
    asked = [(zone, weight, servers) for zone, weight in address_lists if servers]
    asked += [(zone, weight, hosts) for zone, weight in link_lists if hosts]
    known = faults or ServiceFaults()
    found = await asyncio.gather(*(_is_listed(resolver, zone, names, known, now) for zone, _, names in asked))
    return tuple(
        JunkReason(name_of(zone), weight)
        for (zone, weight, _), is_listed in zip(asked, found, strict=True)
        if is_listed
    )


async def _is_listed(
    resolver: Resolver, zone: str, names: Iterable[str], faults: ServiceFaults, now: int
) -> bool:
    try:
        async with asyncio.timeout(SECONDS):
            answers = await asyncio.gather(*(_names(resolver, f"{name}.{zone}") for name in names))
            names_all = any(answers) and await _names(resolver, f"{NEVER_LISTED}.{zone}")
    except (DnsTemporary, TimeoutError) as error:
        faults.record(name_of(zone), AWAY, str(error) or "no answer in time", now)
        return False
    if names_all:
        log.get().seldom("a DNS list names 127.0.0.1 and is left out: it answers for everything", list=zone)
        faults.record(name_of(zone), LEFT_OUT, "it names 127.0.0.1, so it answers for everything", now)
        return False
    faults.clear(name_of(zone), now)
    return any(answers)


def name_of(zone: str) -> str:
    """Return the name of a list among the services."""
    return f"list {zone}"


async def _names(resolver: Resolver, name: str) -> bool:
    found = await resolver.ipv4(name)
    return any(each.startswith("127.") and not each.startswith(REFUSALS) for each in found)


def reversed_address(ip: str) -> str:
    return ip_address(ip).reverse_pointer.removesuffix(".in-addr.arpa").removesuffix(".ip6.arpa")


def hosts_of(page: HtmlPage) -> list[str]:
    """Return the domains of the first links, without those that are addresses."""
    found: dict[str, None] = {}
    for anchor in page.anchors[:100]:
        host = _host(anchor.url)
        if host:
            found[".".join(host.split(".")[-2:])] = None
            found[host] = None
    return list(found)[:MOST_HOSTS]


def _host(url: str) -> str:
    try:
        host = (urlsplit(url[:2000]).hostname or "").rstrip(".")
    except ValueError:
        return ""
    return host if "." in host and not host.replace(".", "").isdigit() and len(host) < 200 else ""
