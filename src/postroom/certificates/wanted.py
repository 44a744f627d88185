"""Which names get certificates: the server's own, and the policy and mail hosts of verified domains."""

import asyncio
import contextlib
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from postroom.accounts import domains
from postroom.config import Config
from postroom.net.dns import DnsTemporary, Resolver
from postroom.resources import Resources, Tx

LOOKUPS_AT_ONCE = 8


def own_names(config: Config) -> tuple[str, ...]:
    """Return the mail host, as MX records name it, and the host of the base URL."""
    host = urlsplit(config.base_url).hostname or ""
    return tuple(dict.fromkeys(name for name in (config.domain, host) if is_public_name(name)))


def is_public_name(name: str) -> bool:
    """Return whether authorities sign for it: for no address, and no name of a private network."""
    with contextlib.suppress(ValueError):
        ip_address(name)
        return False
    return "." in name and not name.endswith((".localhost", ".local", ".internal", ".lan", ".home.arpa"))


async def list_wanted(resources: Resources, in_use: Sequence[str]) -> list[tuple[str, ...]]:
    """List the wanted certificates, one per host. A host of a domain counts once its name leads here.

    A host in `in_use` stays while DNS gives no answer.
    """
    config = resources.config
    own = own_names(config)
    if not own:
        return []
    names = await resources.db.read(list_hosts, config.domain, config.mta_sts != "none")
    limit = asyncio.Semaphore(LOOKUPS_AT_ONCE)

    async def leads_here(name: str) -> bool:
        async with limit:
            return await is_alias(resources.resolver, name, own, unknown=name in in_use)

    found = await asyncio.gather(*(leads_here(name) for name in names if name not in own))
    others = [name for name in names if name not in own]
    return [own, *((name,) for name, is_here in zip(others, found, strict=True) if is_here)]


def list_hosts(tx: Tx, service_domain: str, has_policy: bool) -> list[str]:
    """Return the hosts of MTA-STS policies, and names by which mail clients may know this server."""
    verified = domains.list_verified_names(tx)
    policies = [f"mta-sts.{name}" for name in (service_domain, *verified)] if has_policy else []
    return [*policies, *(f"mail.{name}" for name in verified)]


async def is_alias(resolver: Resolver, name: str, own: Sequence[str], *, unknown: bool) -> bool:
    """Returns True if the name leads to an address of this server's host."""
    try:
        there = set(await resolver.addresses(name))
        here = {address for host in own for address in await resolver.addresses(host)}
    except DnsTemporary:
        return unknown
    return bool(there & here)
